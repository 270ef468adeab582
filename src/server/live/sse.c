/* sse.c - GET /v1/events: live events as server-sent events.
 *
 * Every loop has a reader that reads the hub's ring as it fills. It writes frames that came
 * together to each of its listeners in one piece; listeners without a filter share that piece. If a
 * client does not keep up, its listener gets nothing until the client has read the earlier frames.
 * Then the listener reads on by itself (it is `behind`). If the ring has dropped its next frame
 * meanwhile, it is dropped with a last message that says why. So the memory of a listener is
 * bounded by what is sent to it at once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/live/hub.h"
#include "server/http/inner.h"

enum {
    AT_ONCE        = SRV_MAX_READ,          /* events read from the ring at a time */
    AT_ONCE_BYTES  = 64 * 1024,
    MAX_UNSENT     = SRV_MAX_BACKLOG / 4,   /* bytes; a listener that has more is behind */
    BEAT_MS        = 15 * 1000,             /* a comment, so that dead connections are noticed */
    RETRY_MS       = 2000,                  /* after which a client reconnects */
    /* A write costs some microseconds whatever its size. With many listeners a reader pauses after
     * each round, a millisecond for each group of them, so that more events come together. */
    PACE_LISTENERS = 12
};

typedef struct listener {
    srv_request     *r;
    struct srv_sse  *s;             /* its reader */
    weir_link        link;          /* in its list */
    uint64_t         at;            /* it has received its events up to this number */
    uint32_t         kinds;         /* bits WEIR_BIT(weir_event_kind) */
    uint64_t         id;            /* 0: all jobs */
    const char      *type;          /* NULL: all types, or ... */
    bool             several;       /* ... its token's types */
    bool             all;           /* whatever it is */
    bool             behind;
} listener;

typedef struct srv_sse {
    srv_reader reader;              /* first: its task is this one's */
    srv_hub   *hub;
    srv_thread *thread;
    weir_dlist listeners;
    size_t     n;
    uint64_t   at;                  /* it has read up to this number */
    srv_timer  pace, beat;
    bool       pausing, due;        /* due: there are new frames, too */
    bool       beating;
    weir_buf   all, some;           /* what goes out, to all or to one */
} sse;

/* ---- how many there are ---- */

bool srv_stream_admit(srv_request *r)
{
    _Atomic int64_t *count = &r->server->counters.listeners;
    int64_t          max = srv_settings(r)->limits.listeners;
    if (!srv_share_take(r, SRV_SHARE_LISTENERS))
        return false;
    if (atomic_fetch_add(count, 1) < max)
        return true;
    srv_stream_leave(r);
    atomic_fetch_add(&r->server->counters.listeners_refused, 1);
    srv_reply_status(r, 503, "listeners", "too many listeners (limit %" PRId64
                     ", SRV_MAX_LISTENERS); try again later", max);
    return false;
}

void srv_stream_leave(srv_request *r)
{
    srv_share_give(r, SRV_SHARE_LISTENERS);
    atomic_fetch_sub(&r->server->counters.listeners, 1);
}

/* ---- sending ---- */

static void forget(listener *l)
{
    sse *s = l->s;
    weir__list_remove(&s->listeners, &l->link);
    if (--s->n == 0)
        srv_hub_leave(s->hub, &s->reader);
    srv_stream_leave(l->r);             /* last: it has left then */
}

/* The last message it gets. */
static void end(listener *l, const char *event, const char *why)
{
    srv_request *r = l->r;
    weir_buf     last = { 0 };
    if (event) {
        weir__buf_printf(&last, "event: %s\ndata: {\"event\":\"%s\",\"text\":\"%s\"}\n\n", event,
                         event, why);
        if (!last.failed)
            srv_stream_write(r, last.data, last.len);
        weir__buf_fini(&last);
    }
    forget(l);
    srv_stream_end(r, true);
}

static void drop(listener *l)
{
    atomic_fetch_add(&l->r->server->counters.listeners_dropped, 1);
    end(l, "dropped", "too slow: the next event is not kept any more (SRV_EVENT_RING)");
}

static void revoke(listener *l)
{
    end(l, "revoked", "the token is not valid any more");
}

static bool wants(const listener *l, const srv_frame *n)
{
    return n->lost || ((l->kinds & WEIR_BIT(n->kind)) && (!l->id || l->id == n->id) &&
                       (!l->type || (n->type && strcmp(l->type, n->type) == 0)) &&
                       (!l->several || (n->type && !srv_caller_lacks(&l->r->who, n->type))));
}

/* Send it those of these frames that pass its filter; `whole` is all of it, or NULL. */
static void give(listener *l, srv_frame **frames, size_t n, const weir_buf *whole)
{
    weir_buf       *some = &l->s->some;
    const weir_buf *out = whole;
    size_t          count = n;
    if (!l->all || !whole || l->at >= frames[0]->entry.number) {
        weir__buf_clear(some);
        out = some;
        count = 0;
        for (size_t i = 0; i < n; i++)
            if (frames[i]->entry.number > l->at && wants(l, frames[i])) {
                weir__buf_add(some, frames[i]->bytes, frames[i]->len);
                count++;
            }
    }
    if (out->failed) {              /* out of memory: the heartbeat tries again */
        weir__buf_fini(some);
        l->behind = true;
        return;
    }
    if (frames[n - 1]->entry.number > l->at)
        l->at = frames[n - 1]->entry.number;
    if (!count)
        return;
    srv_stream_write(l->r, out->data, out->len);    /* if the client is gone, `cancel` follows */
    l->behind = srv_stream_behind(l->r) > MAX_UNSENT;
    atomic_fetch_add(&l->r->server->counters.events_sent, count);
}

static void unref_all(srv_frame **frames, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weir__ring_unref(&frames[i]->entry);
}

/* It is behind, and can be sent more. */
static void catch_up(listener *l)
{
    srv_frame *frames[AT_ONCE];
    bool      gone;
    l->behind = false;
    while (!l->behind) {
        size_t n = srv_hub_read(l->s->hub, NULL, l->at, frames, AT_ONCE, AT_ONCE_BYTES, &gone);
        if (gone) {
            drop(l);
            return;
        }
        if (!n)
            return;
        give(l, frames, n, NULL);
        unref_all(frames, n);
    }
}

/* ---- a loop's reader ---- */

/* The ring has gone over those who are behind, or even over the reader. */
static void drop_late(sse *s)
{
    uint64_t first, last;
    srv_hub_range(s->hub, &first, &last);
    WEIR_EACH(listener, l, &s->listeners, link)
        if (l->at + 1 < first && (l->behind || s->at + 1 < first))
            drop(l);
    if (s->at + 1 < first)
        s->at = last;
}

static void give_all(sse *s, srv_frame **frames, size_t n)
{
    weir__buf_clear(&s->all);
    for (size_t i = 0; i < n; i++)
        weir__buf_add(&s->all, frames[i]->bytes, frames[i]->len);
    WEIR_EACH(listener, l, &s->listeners, link)
        if (!l->behind)
            give(l, frames, n, s->all.failed ? NULL : &s->all);
}

static void pause_over(void *ctx);

/* Read to the end of the ring. */
static void read_on(sse *s)
{
    srv_frame *frames[AT_ONCE];
    bool      gone;
    size_t    n;
    s->due = false;
    drop_late(s);
    while ((n = srv_hub_read(s->hub, &s->reader, s->at, frames, AT_ONCE, AT_ONCE_BYTES, &gone))) {
        give_all(s, frames, n);
        s->at = frames[n - 1]->entry.number;
        unref_all(frames, n);
    }
    int64_t ms = (int64_t)(s->n / PACE_LISTENERS);
    s->pausing = ms && !srv_timer_set(&s->pace, s->thread->loop, ms, pause_over, s);
}

static void pause_over(void *ctx)
{
    sse *s = ctx;
    s->pausing = false;
    if (s->due)
        read_on(s);
}

static void on_new_frames(weir_inbox_task *task)
{
    sse *s = (sse *)task;
    s->due = true;
    if (!s->pausing)
        read_on(s);
}

/* ---- heartbeat ---- */

static void beat(void *ctx)
{
    sse *s = ctx;
    WEIR_EACH(listener, l, &s->listeners, link) {
        if (!srv_auth_again(l->r))
            revoke(l);
        else if (!l->behind)
            srv_stream_write(l->r, ":\n\n", 3);
        else if (!srv_stream_behind(l->r))
            catch_up(l);
    }
    s->beating = s->n && !srv_timer_set(&s->beat, s->thread->loop, BEAT_MS, beat, s);
}

/* ---- coming ---- */

static sse *reader_of(srv_thread *thread)
{
    if (thread->sse)
        return thread->sse;
    sse *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->reader.task.run = on_new_frames;
    s->reader.loop = thread->loop;
    s->hub = thread->server->hub;
    s->thread = thread;
    thread->sse = s;
    return s;
}

static weir_code come(listener *l, weir_error *err)
{
    sse     *s = l->s;
    uint64_t first;
    if (s->n == 0) {
        weir_code rc = srv_hub_enter(s->hub, &s->reader, err);
        if (rc)
            return rc;
        srv_hub_range(s->hub, &first, &s->at);
    }
    s->n++;
    weir__list_insert(&s->listeners, NULL, &l->link);
    if (!s->beating)
        s->beating = !srv_timer_set(&s->beat, s->thread->loop, BEAT_MS, beat, s);
    return WEIR_OK;
}

/* Where it goes on: after the number of the last that it has got in this run, if what follows is
 * still kept. False: it is not, and it begins with what comes now. */
static bool find_place(listener *l, const char *last_id)
{
    const char *run = srv_hub_run(l->s->hub), *number;
    size_t      len = strlen(run);
    uint64_t    first, last;
    srv_hub_range(l->s->hub, &first, &last);
    l->at = last;
    if (!last_id)
        return true;
    number = last_id + len + 1;
    if (strncmp(last_id, run, len) != 0 || last_id[len] != '-' || !*number ||
        strspn(number, "0123456789") != strlen(number) || strlen(number) > 18)
        return false;
    uint64_t at = strtoull(number, NULL, 10);
    if (at + 1 < first || at > last)
        return false;
    l->at = at;
    return true;
}

/* The id alone says where the client resumes, should it get no event before its connection
 * breaks. */
static void send_preamble(listener *l, bool lost)
{
    weir_buf out = { 0 };
    weir__buf_printf(&out, "retry: %d\nid: %s-%" PRIu64 "\n", RETRY_MS, srv_hub_run(l->s->hub),
                     l->at);
    if (lost)
        weir__buf_str(&out, "event: lost\ndata: {\"event\":\"lost\",\"text\":\"what came since the "
                            "last event that was seen is not kept any more\"}\n");
    weir__buf_char(&out, '\n');
    if (!out.failed)
        srv_stream_write(l->r, out.data, out.len);
    weir__buf_fini(&out);
}

static void on_drained(srv_request *r)
{
    listener *l = r->state;
    if (l->behind)
        catch_up(l);
}

/* The client is gone, its token is, or the server stops. */
static void on_cancel(srv_request *r)
{
    if (r->revoked) {
        revoke(r->state);
        return;
    }
    bool stops = atomic_load(&r->server->stopping) && !srv_gone(r);
    end(r->state, stops ? "closing" : NULL, "the server stops");
}

/* ---- GET /v1/events ---- */

/* "start,failed" as bits. False: it was answered. */
static bool read_kinds(srv_request *r, uint32_t *out)
{
    const char *list = srv_query(r, "event");
    uint32_t    bits = 0;
    while (list && *list) {
        weir_event_kind kind;
        size_t          len = strcspn(list, ",");
        char           *name = srv_strndup(r, list, len);
        if (!name || !weir_event_parse(name, &kind)) {
            srv_reply_fail(r, name ? WEIR_EINVAL : WEIR_ENOMEM, "event",
                           "event: \"%.40s\" is not the name of an event, such as start or failed",
                           name ? name : "");
            return false;
        }
        bits |= WEIR_BIT(kind);
        list += len + (list[len] == ',');
    }
    *out = bits ? bits : UINT32_MAX;
    return true;
}

/* The events it asks for. False: it was answered. */
static bool read_filter(srv_request *r, listener *l)
{
    int64_t id = 0;
    l->type = srv_query(r, "type");
    if (!l->type)
        l->type = srv_caller_only_type(&r->who);
    l->several = !l->type && *r->who.types;
    if (!srv_query_int(r, "id", 1, INT64_MAX, &id) || !read_kinds(r, &l->kinds) ||
        !srv_allow(r, WEIR_ROLE_READ, l->several ? r->who.types : l->type))
        return false;
    l->id = (uint64_t)id;
    l->all = !l->id && !l->type && !l->several && l->kinds == UINT32_MAX;
    return true;
}

static void handle_events(srv_request *r)
{
    weir_error err = { 0 };
    listener  *l = srv_alloc(r, sizeof *l);
    sse       *s = reader_of(r->conn->thread);
    if (!l || !s) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    *l = (listener){ .r = r, .s = s };
    if (!read_filter(r, l))
        return;
    if (strcmp(r->method, "HEAD") == 0) {
        srv_reply(r, 200, "text/event-stream", &(weir_buf){ 0 });
        return;
    }
    if (!srv_stream_admit(r))
        return;
    if (come(l, &err)) {
        srv_stream_leave(r);
        srv_reply_error(r, &err);
        return;
    }
    bool kept = find_place(l, srv_header(r, "Last-Event-ID"));
    r->state = l;
    r->cancel = on_cancel;
    r->drained = on_drained;
    r->endless = true;
    srv_reply_header(r, "X-Accel-Buffering", "no");     /* a proxy in between shall not wait */
    srv_stream_begin(r, 200, "text/event-stream");
    send_preamble(l, !kept);
    catch_up(l);
}

void srv_sse_close(srv_thread *thread)
{
    sse *s = thread->sse;
    if (!s)
        return;
    srv_timer_unset(&s->pace);
    srv_timer_unset(&s->beat);
    s->pausing = s->beating = false;
}

void srv_sse_free(srv_thread *thread)
{
    if (!thread->sse)
        return;
    weir__buf_fini(&thread->sse->all);
    weir__buf_fini(&thread->sse->some);
    free(thread->sse);
}

static const srv_param events_query[] = {
    { "type", SRV_P_TEXT, "of jobs of this type alone" },
    { "id", SRV_P_INT, "of this job alone" },
    { "event", SRV_P_LIST, "these alone, with commas between: start,failed" },
    { 0 }
};

const srv_route srv_events_routes[] = {
    { "GET", "/v1/events", WEIR_ROLE_READ, handle_events, 0, events_query, 0,
      "What happens, as server-sent events; Last-Event-ID goes on where a listener was", NULL,
      "Events", 200 },
    { 0 }
};
