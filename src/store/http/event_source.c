/* event_source.c - the source of a feed (store/feed.h) that listens to /v1/events: see http.h.
 * Every message has an id, "RUN-N"; given the last one, the server resumes after it, or says that
 * some were lost. When the connection has broken and the next one fails, an ERROR event says so,
 * once: a worker that waits for jobs makes no other call that would fail. */
#include "store/http/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/event_json.h"

enum { SILENCE_MS = 45 * 1000 };    /* three heartbeats: the connection is given up */

struct http_event_source {
    const http_url    *url;
    const weir_env    *env;
    weir_feed         *opened;      /* for whoever opened it; the thread uses `feed` */
    CURLM             *multi;       /* the thread's, but for waking it; as is what follows */
    weir_feed         *feed;
    CURL              *curl;
    struct curl_slist *headers, *resuming;
    char               why[CURL_ERROR_SIZE];
    http_sse           sse;
    weir_buf           refusal;     /* what came with a status other than 200 */
    bool               begun;       /* of this connection: the answer has begun, with 200 */
    bool               live;        /* likewise: an id came */
    bool               was_live;    /* a connection was, and no ERROR event has reported its end */
    int64_t            read_ms;    /* when the last byte came */
};

/* ---- what comes ---- */

/* "RUN-N". False: it is not, or not later than the last one. */
static bool is_later(const weir_place *last, const char *id, weir_place *out)
{
    const char *dash = strrchr(id, '-');
    if (!dash || dash - id > WEIR_MAX_RUN)
        return false;
    memcpy(out->run, id, (size_t)(dash - id));
    out->run[dash - id] = '\0';
    out->number = strtoull(dash + 1, NULL, 10);
    return strcmp(last->run, out->run) != 0 || out->number > last->number;
}

static void emit_lost(const http_event_source *e)
{
    if (e->env->lost)
        e->env->lost(e->env->ctx);
}

static void emit_event(const http_event_source *e, const char *data, size_t len)
{
    weir_event  event;
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena, .lenient = true };
    if (weir__event_read(&in, data, len, &event)) {
        if (event.missed)           /* by the server itself, which was too slow for its store */
            emit_lost(e);
        event.missed = 0;
        e->env->emit(e->env->ctx, &event, 1);
    }
    weir__arena_free(&arena);
}

/* No connection since the last one has broken. */
static void emit_trouble(const http_event_source *e, const weir_error *why)
{
    weir_event event = { .kind = WEIR_EVENT_ERROR, .at = e->env->now(e->env->ctx),
                         .text = why->msg, .text_len = strlen(why->msg) };
    e->env->emit(e->env->ctx, &event, 1);
}

/* The server begins with an id. A connection counts only from there on. When it breaks, the next
 * connection names the last id. The server then sends the later events, or reports that events were
 * lost. */
static void on_message(void *ctx, const char *id, const char *event, const char *data, size_t len)
{
    http_event_source *e = ctx;
    weir_feed *f = e->feed;
    weir_place place = { 0 };
    bool       later = is_later(weir__feed_place(f), id, &place);
    if (!strcmp(event, "lost"))
        emit_lost(e);
    else if (later && data)
        emit_event(e, data, len);
    if (later)
        weir__feed_reached(f, &place);
    if (*id && !e->live) {
        e->live = e->was_live = true;
        weir__feed_live(f);
    }
}

static long status_of(const http_event_source *e)
{
    long status = 0;
    weir__curl.easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    http_event_source *e = ctx;
    bool      last = size * n <= 2 && *bytes != ' ';        /* "\r\n" */
    e->read_ms = weir__monotonic_ms();
    if (last && status_of(e) == 200)
        e->begun = true;
    return size * n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    http_event_source *e = ctx;
    e->read_ms = weir__monotonic_ms();
    if (e->begun)
        return weir__sse_feed(&e->sse, bytes, size * n) ? size * n : 0;
    if (e->refusal.len < WEIR_HTTP_MAX_EVENT)
        weir__buf_add(&e->refusal, bytes, size * n);
    return size * n;
}

/* ---- connections ---- */

/* Say where we stopped. The list of headers is made anew: it is short, and this is rare. */
static bool set_resuming(http_event_source *e)
{
    char line[sizeof e->sse.id + 32];
    weir__curl.slist_free_all(e->resuming);
    e->resuming = NULL;
    for (struct curl_slist *h = e->headers; h; h = h->next) {
        struct curl_slist *more = weir__curl.slist_append(e->resuming, h->data);
        if (!more)
            return false;
        e->resuming = more;
    }
    if (*e->sse.id) {
        snprintf(line, sizeof line, "Last-Event-ID: %s", e->sse.id);
        struct curl_slist *more = weir__curl.slist_append(e->resuming, line);
        if (!more)
            return false;
    }
    return !weir__curl.easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->resuming);
}

/* One connection, from its start to its end. */
static void receive(void *ctx, weir_feed *f, weir_error *why)
{
    http_event_source *e = ctx;
    int      running = 1, left;
    CURLcode rc = CURLE_OK;
    weir__sse_reset(&e->sse);
    weir__buf_clear(&e->refusal);
    e->why[0] = '\0';
    e->begun = e->live = false;
    e->feed = f;
    e->read_ms = weir__monotonic_ms();
    if (!set_resuming(e) || weir__curl.multi_add_handle(e->multi, e->curl)) {
        weir_fail(why, WEIR_ENOMEM, "http: no memory to listen");
        return;
    }
    while (running && !weir__feed_stopping(f)) {
        if (weir__curl.multi_perform(e->multi, &running))
            break;
        int64_t silent = weir__monotonic_ms() - e->read_ms;
        if (silent >= SILENCE_MS) {
            snprintf(e->why, sizeof e->why, "no sign of life for %" PRId64 " s", silent / 1000);
            rc = CURLE_OPERATION_TIMEDOUT;
            break;
        }
        if (running)
            weir__curl.multi_poll(e->multi, NULL, 0, (int)(SILENCE_MS - silent), NULL);
    }
    for (CURLMsg *m; (m = weir__curl.multi_info_read(e->multi, &left));)
        rc = m->data.result;
    long status = status_of(e);
    weir__curl.multi_remove_handle(e->multi, e->curl);
    if (!rc && status && status != 200)
        weir__http_refusal(e->url, status, e->refusal.data ? e->refusal.data : "", e->refusal.len,
                           why);
    else
        weir__http_trouble(e->url, rc, rc ? e->why : "the server ended the events", why);
    if (!e->live && e->was_live && !weir__feed_stopping(f)) {
        e->was_live = false;
        emit_trouble(e, why);
    }
}

static void wake(void *ctx)
{
    weir__curl.multi_wakeup(((http_event_source *)ctx)->multi);
}

static const weir_feed_source source = { .thread = "weir-http", .receive = receive, .wake = wake };

/* ---- open and close ---- */

static weir_code set_up(http_event_source *e, weir_error *err)
{
    char target[sizeof e->url->base + 16];
    snprintf(target, sizeof target, "%s/v1/events", e->url->base);
    e->sse.message = on_message;
    e->sse.ctx = e;
    e->multi = weir__curl.multi_init();
    e->curl = weir__http_handle(e->url, &e->headers, "text/event-stream");
    if (!e->multi || !e->curl || weir__curl.easy_setopt(e->curl, CURLOPT_URL, target) ||
        weir__curl.easy_setopt(e->curl, CURLOPT_ERRORBUFFER, e->why) ||
        weir__curl.easy_setopt(e->curl, CURLOPT_HEADERFUNCTION, on_header) ||
        weir__curl.easy_setopt(e->curl, CURLOPT_HEADERDATA, e) ||
        weir__curl.easy_setopt(e->curl, CURLOPT_WRITEFUNCTION, on_bytes) ||
        weir__curl.easy_setopt(e->curl, CURLOPT_WRITEDATA, e))
        return weir_fail(err, WEIR_ENOMEM, "http: no memory to listen");
    return weir__feed_open(&e->opened, &source, e, e->url->timeout_ms, err);
}

weir_code weir__http_events_open(http_event_source **out, const http_url *url, const weir_env *env,
                                 weir_error *err)
{
    *out = NULL;
    http_event_source *e = calloc(1, sizeof *e);
    if (!e)
        return weir_fail(err, WEIR_ENOMEM, "http: no memory to listen");
    e->url = url;
    e->env = env;
    weir_code rc = set_up(e, err);
    if (rc)
        weir__http_events_close(e);
    else
        *out = e;
    return rc;
}

void weir__http_events_close(http_event_source *e)
{
    if (!e)
        return;
    weir__feed_close(e->opened);
    if (e->curl)
        weir__curl.easy_cleanup(e->curl);
    if (e->multi)
        weir__curl.multi_cleanup(e->multi);
    weir__curl.slist_free_all(e->headers);
    weir__curl.slist_free_all(e->resuming);
    weir__sse_fini(&e->sse);
    weir__buf_fini(&e->refusal);
    free(e);
}

void weir__http_events_until(http_event_source *e, const char *run, uint64_t event)
{
    weir_place place = { .number = event };
    snprintf(place.run, sizeof place.run, "%s", run);
    weir__feed_until(e ? e->opened : NULL, &place);
}
