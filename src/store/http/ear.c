/* ear.c - a thread that listens to /v1/events and, whatever happens to the connection, connects
 * again: see http.h. Every message has an id, "RUN-N"; told the last one, the server goes on where
 * it stopped, or says that something was lost. */
#include "store/http/http.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "core/event_json.h"

enum {
    SILENCE_MS = 45 * 1000,         /* three heartbeats: the connection is given up */
    FIRST_PAUSE_MS = 50,
    LONGEST_PAUSE_MS = 2000,
    A_MOMENT_MS = 2000              /* weir__http_ear_until() */
};

struct http_ear {
    const http_url    *url;
    const weir_env    *env;
    CURLM             *multi;       /* the thread's, but for waking it */
    CURL              *curl;
    struct curl_slist *headers, *resuming;
    char               why[CURL_ERROR_SIZE];
    http_sse           sse;         /* the thread's */
    weir_buf           refusal;     /* what came with a status other than 200 */
    bool               begun;       /* of this connection: the answer has begun, with 200 */
    int64_t            heard_ms;    /* when the last byte came */
    atomic_bool        stop;
    pthread_t          thread;
    bool               running;

    pthread_mutex_t lock;           /* of what follows, for whoever waits */
    pthread_cond_t  moved;
    bool            hears, ever;
    weir_error      trouble;
    char            run[WEIR_BATCH_RUN + 1];      /* of the last event */
    uint64_t        number;
};

/* ---- what comes ---- */

/* "RUN-N". False: it is not, or not later than the last one. Only this thread changes what it is
 * compared with: no lock. */
static bool is_later(const http_ear *e, const char *id, size_t *run_len, uint64_t *number)
{
    const char *dash = strrchr(id, '-');
    if (!dash || dash - id > WEIR_BATCH_RUN)
        return false;
    *run_len = (size_t)(dash - id);
    *number = strtoull(dash + 1, NULL, 10);
    bool same = strlen(e->run) == *run_len && !memcmp(e->run, id, *run_len);
    return !same || *number > e->number;
}

static void note_told(http_ear *e, const char *run, size_t run_len, uint64_t number)
{
    pthread_mutex_lock(&e->lock);
    memcpy(e->run, run, run_len);
    e->run[run_len] = '\0';
    e->number = number;
    pthread_cond_broadcast(&e->moved);
    pthread_mutex_unlock(&e->lock);
}

static void tell_lost(const http_ear *e)
{
    if (e->env->lost)
        e->env->lost(e->env->ctx);
}

static void tell_event(const http_ear *e, const char *data, size_t len)
{
    weir_event  event;
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    if (weir__event_read(&in, data, len, &event)) {
        if (event.missed)           /* by the server itself, which was too slow for its store */
            tell_lost(e);
        event.missed = 0;
        e->env->emit(e->env->ctx, &event, 1);
    }
    weir__arena_free(&arena);
}

/* The server begins with an id. A connection counts only from there on: when it breaks, the next
 * one names the last id, and the server sends the events after it or says that some were lost. */
static void begin_to_hear(http_ear *e)
{
    pthread_mutex_lock(&e->lock);
    e->hears = e->ever = true;
    pthread_cond_broadcast(&e->moved);
    pthread_mutex_unlock(&e->lock);
}

static void on_message(void *ctx, const char *id, const char *event, const char *data, size_t len)
{
    http_ear *e = ctx;
    size_t    run_len = 0;
    uint64_t  number = 0;
    bool      later = is_later(e, id, &run_len, &number);
    if (!strcmp(event, "lost"))
        tell_lost(e);
    else if (later && data)
        tell_event(e, data, len);
    if (later)
        note_told(e, id, run_len, number);
    if (*id && !e->hears)
        begin_to_hear(e);
}

static long status_of(const http_ear *e)
{
    long status = 0;
    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    http_ear *e = ctx;
    bool      last = size * n <= 2 && *bytes != ' ';        /* "\r\n" */
    e->heard_ms = weir__monotonic_ms();
    if (last && status_of(e) == 200)
        e->begun = true;
    return size * n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    http_ear *e = ctx;
    e->heard_ms = weir__monotonic_ms();
    if (e->begun)
        return weir__sse_feed(&e->sse, bytes, size * n) ? size * n : 0;
    if (e->refusal.len < WEIR_HTTP_MAX_EVENT)
        weir__buf_add(&e->refusal, bytes, size * n);
    return size * n;
}

/* ---- connections ---- */

static void deaf(http_ear *e, const weir_error *why)
{
    pthread_mutex_lock(&e->lock);
    e->hears = false;
    e->trouble = *why;
    pthread_cond_broadcast(&e->moved);
    pthread_mutex_unlock(&e->lock);
}

/* Say where we stopped. The list of headers is made anew: it is short, and this is rare. */
static bool set_resuming(http_ear *e)
{
    char line[sizeof e->sse.id + 32];
    curl_slist_free_all(e->resuming);
    e->resuming = NULL;
    for (struct curl_slist *h = e->headers; h; h = h->next) {
        struct curl_slist *more = curl_slist_append(e->resuming, h->data);
        if (!more)
            return false;
        e->resuming = more;
    }
    if (*e->sse.id) {
        snprintf(line, sizeof line, "Last-Event-ID: %s", e->sse.id);
        struct curl_slist *more = curl_slist_append(e->resuming, line);
        if (!more)
            return false;
    }
    return !curl_easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->resuming);
}

/* One connection, from its start to its end. */
static void listen_once(http_ear *e, weir_error *why)
{
    int      running = 1, left;
    CURLcode rc = CURLE_OK;
    weir__sse_reset(&e->sse);
    weir__buf_clear(&e->refusal);
    e->why[0] = '\0';
    e->begun = false;
    e->heard_ms = weir__monotonic_ms();
    if (!set_resuming(e) || curl_multi_add_handle(e->multi, e->curl)) {
        weir_fail(why, WEIR_ENOMEM, "http: no memory to listen");
        return;
    }
    while (running && !atomic_load(&e->stop)) {
        if (curl_multi_perform(e->multi, &running))
            break;
        int64_t silent = weir__monotonic_ms() - e->heard_ms;
        if (silent >= SILENCE_MS) {
            snprintf(e->why, sizeof e->why, "no sign of life for %" PRId64 " s", silent / 1000);
            rc = CURLE_OPERATION_TIMEDOUT;
            break;
        }
        if (running)
            curl_multi_poll(e->multi, NULL, 0, (int)(SILENCE_MS - silent), NULL);
    }
    for (CURLMsg *m; (m = curl_multi_info_read(e->multi, &left));)
        rc = m->data.result;
    long status = status_of(e);
    curl_multi_remove_handle(e->multi, e->curl);
    if (!rc && status && status != 200)
        weir__http_refusal(e->url, status, e->refusal.data ? e->refusal.data : "", e->refusal.len,
                           why);
    else
        weir__http_trouble(e->url, rc, rc ? e->why : "the server ended the events", why);
}

static void *listen_on(void *arg)
{
    http_ear *e = arg;
    int64_t   pause = FIRST_PAUSE_MS;
    while (!atomic_load(&e->stop)) {
        weir_error why = { 0 };
        listen_once(e, &why);
        deaf(e, &why);
        pause = e->begun ? FIRST_PAUSE_MS : pause * 2;
        if (pause > LONGEST_PAUSE_MS)
            pause = LONGEST_PAUSE_MS;
        if (!atomic_load(&e->stop))
            curl_multi_poll(e->multi, NULL, 0, (int)pause, NULL);
    }
    return NULL;
}

/* ---- open and close ---- */

/* Trouble that time does not cure ends it at once. */
static weir_code wait_until_heard(http_ear *e, weir_error *err)
{
    weir_deadline until = weir__deadline_in(e->url->timeout_ms);
    bool          late = false;
    pthread_mutex_lock(&e->lock);
    while (!e->ever && !late && (!e->trouble.code || e->trouble.code == WEIR_EUNAVAIL))
        late = !weir__cond_wait_until(&e->moved, &e->lock, until);
    weir_code rc = WEIR_OK;
    if (!e->ever)
        rc = weir_fail(err, e->trouble.code ? e->trouble.code : WEIR_EUNAVAIL, "%s",
                       e->trouble.code ? e->trouble.msg : "http: no events within the timeout");
    pthread_mutex_unlock(&e->lock);
    return rc;
}

static weir_code set_up(http_ear *e, weir_error *err)
{
    char target[sizeof e->url->base + 16];
    snprintf(target, sizeof target, "%s/v1/events", e->url->base);
    e->sse.message = on_message;
    e->sse.ctx = e;
    e->multi = curl_multi_init();
    e->curl = weir__http_handle(e->url, &e->headers, "text/event-stream");
    if (!e->multi || !e->curl || curl_easy_setopt(e->curl, CURLOPT_URL, target) ||
        curl_easy_setopt(e->curl, CURLOPT_ERRORBUFFER, e->why) ||
        curl_easy_setopt(e->curl, CURLOPT_HEADERFUNCTION, on_header) ||
        curl_easy_setopt(e->curl, CURLOPT_HEADERDATA, e) ||
        curl_easy_setopt(e->curl, CURLOPT_WRITEFUNCTION, on_bytes) ||
        curl_easy_setopt(e->curl, CURLOPT_WRITEDATA, e))
        return weir_fail(err, WEIR_ENOMEM, "http: no memory to listen");
    weir_code rc = weir__thread_start(&e->thread, listen_on, e, "weir-http", err);
    e->running = !rc;
    return rc;
}

weir_code weir__http_ear_open(http_ear **out, const http_url *url, const weir_env *env,
                              weir_error *err)
{
    *out = NULL;
    http_ear *e = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "http: no memory to listen");
    e->url = url;
    e->env = env;
    pthread_mutex_init(&e->lock, NULL);
    weir__cond_init(&e->moved);
    weir_code rc = set_up(e, err);
    if (!rc)
        rc = wait_until_heard(e, err);
    if (rc)
        weir__http_ear_close(e);
    else
        *out = e;
    return rc;
}

void weir__http_ear_close(http_ear *e)
{
    if (!e)
        return;
    if (e->running) {
        atomic_store(&e->stop, true);
        curl_multi_wakeup(e->multi);
        pthread_join(e->thread, NULL);
    }
    if (e->curl)
        curl_easy_cleanup(e->curl);
    if (e->multi)
        curl_multi_cleanup(e->multi);
    curl_slist_free_all(e->headers);
    curl_slist_free_all(e->resuming);
    weir__sse_fini(&e->sse);
    weir__buf_fini(&e->refusal);
    pthread_cond_destroy(&e->moved);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

void weir__http_ear_until(http_ear *e, const char *run, uint64_t event)
{
    if (!e)
        return;
    weir_deadline until = weir__deadline_in(A_MOMENT_MS);
    pthread_mutex_lock(&e->lock);
    while (e->hears && event && !(!strcmp(e->run, run) && e->number >= event))
        if (!weir__cond_wait_until(&e->moved, &e->lock, until))
            break;
    pthread_mutex_unlock(&e->lock);
}
