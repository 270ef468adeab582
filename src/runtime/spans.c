/* spans.c - the exporter: a bounded list of spans and a thread that posts them to a collector as
 * OTLP over HTTP with JSON. There is one for the whole process.
 *
 * The thread sends when BULK spans wait or LINGER_MS after the first. If the collector cannot take
 * a bulk now, the thread tries again with growing pauses; while it does, spans wait up to
 * WEIR_MAX_SPANS, and further ones are dropped and counted. A bulk that the collector refuses for
 * good (a status of 4xx but 408 and 429) is dropped. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/curl.h"
#include "base/fail.h"
#include "base/thread.h"
#include "runtime/trace.h"

enum {
    BULK        = 512,
    LINGER_MS   = 500,
    FIRST_MS    = 200,          /* the first pause after trouble; each next one is twice as long */
    LONGEST_MS  = 10000,
    POST_MS     = 10000         /* for one post */
};

atomic_bool weir__tracing;

static struct exporter {
    pthread_mutex_t    lock;        /* guards what follows */
    pthread_cond_t     wake;
    weir_span         *waiting;     /* room for WEIR_MAX_SPANS; the oldest first */
    size_t             n;
    bool               stopping;
    weir_deadline      until;       /* stopping: then what is left is dropped */
    uint64_t           sent, dropped;
    weir_error         trouble;     /* the last */
    pthread_t          thread;

    /* The thread's, and made before it starts. */
    CURL              *curl;
    struct curl_slist *headers;
    char              *service;
    char               instance[80];
    weir_span          bulk[BULK];
} *exporter;

static pthread_mutex_t started = PTHREAD_MUTEX_INITIALIZER;     /* guards `exporter` */

void weir__span_send(const weir_span *s)
{
    if (!s->own.sampled)
        return;
    pthread_mutex_lock(&started);
    struct exporter *e = exporter;
    if (e) {
        pthread_mutex_lock(&e->lock);
        if (e->n < WEIR_MAX_SPANS) {
            e->waiting[e->n++] = *s;
            if (e->n == 1 || e->n == BULK)
                pthread_cond_signal(&e->wake);
        } else {
            e->dropped++;
        }
        pthread_mutex_unlock(&e->lock);
    }
    pthread_mutex_unlock(&started);
}

/* ---- one post ---- */

static size_t ignore(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * n;
}

typedef enum verdict { TAKEN, REFUSED, LATER } verdict;

static verdict post(struct exporter *e, size_t n, int64_t limit_ms, weir_error *why)
{
    weir_buf body = { 0 };
    long     status = 0;
    weir__spans_json(&body, e->service, e->instance, e->bulk, n);
    if (body.failed) {
        weir__buf_fini(&body);
        weir_fail(why, WEIR_ENOMEM, "out of memory");
        return LATER;
    }
    weir__curl.easy_setopt(e->curl, CURLOPT_POSTFIELDS, body.data);
    weir__curl.easy_setopt(e->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    weir__curl.easy_setopt(e->curl, CURLOPT_TIMEOUT_MS, (long)limit_ms);
    CURLcode rc = weir__curl.easy_perform(e->curl);
    weir__curl.easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &status);
    weir__buf_fini(&body);
    if (rc)
        weir_fail(why, WEIR_EUNAVAIL, "%s", weir__curl.easy_strerror(rc));
    else if (status < 200 || status > 299)
        weir_fail(why, WEIR_EUNAVAIL, "the collector answered with status %ld", status);
    if (!rc && status >= 200 && status <= 299)
        return TAKEN;
    return !rc && status >= 400 && status < 500 && status != 408 && status != 429 ? REFUSED : LATER;
}

/* ---- the thread ---- */

/* Lock held, but not while waiting. False: there is nothing to send and never will be. */
static bool wait_for_spans(struct exporter *e)
{
    while (!e->n && !e->stopping)
        weir__cond_wait_until(&e->wake, &e->lock, weir__deadline_in(-1));
    weir_deadline linger = weir__deadline_in(LINGER_MS);
    while (e->n < BULK && !e->stopping && weir__cond_wait_until(&e->wake, &e->lock, linger))
        ;
    return e->n;
}

/* How long the next post may take; 0: it is too late for one. Lock held. */
static int64_t limit(const struct exporter *e)
{
    int64_t left = e->stopping ? weir__deadline_left_ms(e->until) : POST_MS;
    return left < POST_MS ? left : POST_MS;
}

/* Lock held, but not while posting. */
static void send_bulk(struct exporter *e, int64_t *pause_ms)
{
    size_t     n = e->n < BULK ? e->n : BULK;
    int64_t    limit_ms = limit(e);
    weir_error why = { 0 };
    verdict    v = LATER;
    memcpy(e->bulk, e->waiting, n * sizeof *e->bulk);
    if (limit_ms > 0) {
        pthread_mutex_unlock(&e->lock);
        v = post(e, n, limit_ms, &why);
        pthread_mutex_lock(&e->lock);
    }
    if (why.code)
        e->trouble = why;
    if (v == LATER && limit(e) > 0) {
        weir_deadline d = weir__deadline_in(*pause_ms);
        while (!e->stopping && weir__cond_wait_until(&e->wake, &e->lock, d))
            ;
        *pause_ms = *pause_ms * 2 < LONGEST_MS ? *pause_ms * 2 : LONGEST_MS;
        if (!e->stopping)
            return;
        d = weir__deadline_in(FIRST_MS);    /* once more, soon, until the time is over */
        while (limit(e) > 0 && weir__cond_wait_until(&e->wake, &e->lock, d))
            ;
        return;
    }
    *pause_ms = FIRST_MS;
    *(v == TAKEN ? &e->sent : &e->dropped) += n;
    e->n -= n;
    memmove(e->waiting, e->waiting + n, e->n * sizeof *e->waiting);
}

static void *send_all(void *arg)
{
    struct exporter *e = arg;
    int64_t          pause_ms = FIRST_MS;
    pthread_mutex_lock(&e->lock);
    while (wait_for_spans(e))
        send_bulk(e, &pause_ms);
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* ---- start and stop ---- */

static void destroy(struct exporter *e)
{
    if (!e)
        return;
    if (e->curl)
        weir__curl.easy_cleanup(e->curl);
    if (e->headers)
        weir__curl.slist_free_all(e->headers);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    free(e->service);
    free(e->waiting);
    free(e);
}

static bool add_header(struct exporter *e, const char *line)
{
    struct curl_slist *more = weir__curl.slist_append(e->headers, line);
    if (more)
        e->headers = more;
    return more;
}

/* "name=value,name=value", as OpenTelemetry writes them. */
static weir_code add_headers(struct exporter *e, const char *list, weir_error *err)
{
    while (list && *list) {
        size_t      len = strcspn(list, ",");
        const char *eq = memchr(list, '=', len);
        char        line[1024];
        if (!eq || eq == list || len >= sizeof line - 2)
            return weir__fail_field(err, WEIR_EINVAL, "headers",
                                    "\"%.60s\": expected name=value,name=value", list);
        snprintf(line, sizeof line, "%.*s: %.*s", (int)(eq - list), list,
                 (int)(len - (size_t)(eq - list) - 1), eq + 1);
        if (strpbrk(line, "\r\n"))
            return weir__fail_field(err, WEIR_EINVAL, "headers", "contains a line break");
        if (!add_header(e, line))
            return weir_fail(err, WEIR_ENOMEM, "trace: out of memory");
        list += len + (list[len] == ',');
    }
    return WEIR_OK;
}

static weir_code prepare(struct exporter *e, const char *url, const char *headers, weir_error *err)
{
    weir_code rc = weir__curl_load(err);
    if (rc)
        return rc;
    e->curl = weir__curl.easy_init();
    bool ok = e->curl && add_header(e, "Content-Type: application/json") &&
              !weir__curl.easy_setopt(e->curl, CURLOPT_URL, url) &&
              !weir__curl.easy_setopt(e->curl, CURLOPT_PROTOCOLS_STR, "http,https") &&
              !weir__curl.easy_setopt(e->curl, CURLOPT_NOSIGNAL, 1L) &&
              !weir__curl.easy_setopt(e->curl, CURLOPT_WRITEFUNCTION, ignore);
    if (!ok)
        return weir_fail(err, WEIR_ENOMEM, "trace: out of memory");
    rc = add_headers(e, headers, err);
    if (!rc && weir__curl.easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->headers))
        rc = weir_fail(err, WEIR_ENOMEM, "trace: out of memory");
    return rc;
}

static weir_code create(struct exporter **out, const char *url, const char *service,
                        const char *headers, weir_error *err)
{
    struct exporter *e = *out = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "trace: out of memory");
    pthread_mutex_init(&e->lock, NULL);
    weir__cond_init(&e->wake);
    e->waiting = malloc(WEIR_MAX_SPANS * sizeof *e->waiting);
    e->service = strdup(service && *service ? service : "weir");
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(e->instance, sizeof e->instance, "%s:%d", host, (int)getpid());
    if (!e->waiting || !e->service)
        return weir_fail(err, WEIR_ENOMEM, "trace: out of memory");
    return prepare(e, url, headers, err);
}

/* The address that spans are posted to. */
static weir_code make_url(char *out, size_t size, const char *endpoint, bool whole, weir_error *err)
{
    const char *path = strstr(endpoint, "://");
    if (!path || (strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8)) ||
        !path[3] || path[3] == '/')
        return weir__fail_field(err, WEIR_EINVAL, "endpoint",
                                "\"%.80s\": expected http://host:4318 or https://...", endpoint);
    size_t len = strlen(endpoint);
    while (len && endpoint[len - 1] == '/')
        len--;
    static const char traces[] = "/v1/traces";
    bool there = len > sizeof traces - 1 &&
                 strncmp(endpoint + len - (sizeof traces - 1), traces, sizeof traces - 1) == 0;
    int n = snprintf(out, size, "%.*s%s", (int)len, endpoint, whole || there ? "" : traces);
    if (n < 0 || (size_t)n >= size)
        return weir__fail_field(err, WEIR_ELIMIT, "endpoint", "over %zu bytes", size - 1);
    return WEIR_OK;
}

weir_code weir_trace_start(const weir_trace_config *config, weir_error *err)
{
    weir_trace_config c = config ? *config : (weir_trace_config){ 0 };
    const char       *whole = NULL;
    weir_code         rc = WEIR__CHECK_RESERVED(&c, err);
    if (rc)
        return rc;
    if (!c.endpoint && !(c.endpoint = whole = getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")))
        c.endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (!c.endpoint || !*c.endpoint)
        return WEIR_OK;
    if (!c.service)
        c.service = getenv("OTEL_SERVICE_NAME");
    if (!c.headers)
        c.headers = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    char             url[1024];
    struct exporter *e = NULL;
    pthread_mutex_lock(&started);
    if (exporter)
        rc = weir_fail(err, WEIR_ESTATE, "trace: already started");
    if (!rc)
        rc = make_url(url, sizeof url, c.endpoint, whole, err);
    if (!rc)
        rc = create(&e, url, c.service, c.headers, err);
    if (!rc)
        rc = weir__thread_start(&e->thread, send_all, e, "weir-trace", err);
    if (rc)
        destroy(e);
    else
        exporter = e;
    atomic_store(&weir__tracing, exporter != NULL);
    pthread_mutex_unlock(&started);
    return rc;
}

weir_code weir_trace_stop(int64_t timeout_ms, weir_error *err)
{
    weir_code rc = WEIR_OK;
    pthread_mutex_lock(&started);
    struct exporter *e = exporter;
    exporter = NULL;
    atomic_store(&weir__tracing, false);
    pthread_mutex_unlock(&started);
    if (!e)
        return WEIR_OK;
    pthread_mutex_lock(&e->lock);
    e->until = weir__deadline_in(timeout_ms > 0 ? timeout_ms : 0);
    e->stopping = true;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    weir__trace_forget();
    if (e->dropped)
        rc = weir_fail(err, WEIR_EUNAVAIL, "trace: %llu spans were not delivered: %s",
                       (unsigned long long)e->dropped,
                       e->trouble.code ? e->trouble.msg : "too many waited");
    destroy(e);
    return rc;
}

void weir_get_trace_stats(weir_trace_stats *out)
{
    *out = (weir_trace_stats){ 0 };
    pthread_mutex_lock(&started);
    struct exporter *e = exporter;
    if (e) {
        pthread_mutex_lock(&e->lock);
        *out = (weir_trace_stats){ .started = true, .sent = e->sent, .dropped = e->dropped,
                                   .waiting = e->n };
        pthread_mutex_unlock(&e->lock);
    }
    pthread_mutex_unlock(&started);
}
