/* api_observe.c - POST /v1/observe: jobs as server-sent events, for a consumer that holds at most
 * `window` of them at once.
 *
 *     first take ──► stream: take ──► event `job` ──► ended by POST /v1/finish ──► event `over`
 *                      ▲       └── none: rest in a long poll (longpoll.h)  │
 *                      └────────────────── there is room again ────────────┘
 *
 * The stream renews the leases of what it holds. One call of the library is under way at a time:
 * step() begins the next one. When the stream ends, the jobs that it holds go back at once. If the
 * client disconnected without a reason, they are lost, since it may have died of one of them; else
 * they are unused. */
#include <inttypes.h>
#include <string.h>

#include "core/condition.h"
#include "core/job.h"
#include "server/access/audit.h"
#include "server/api/api.h"
#include "server/api/take.h"
#include "server/http/body.h"
#include "server/http/inner.h"
#include "server/live/holds.h"
#include "server/live/workers.h"

enum {
    BEAT_MS       = 15 * 1000,      /* a comment, so that dead connections are noticed */
    RETRY_MS      = 1000,           /* after which a store that failed is asked again */
    RENEWALS      = 3               /* in the time of a lease */
};

typedef struct observing {
    srv_taking      t;              /* first: its poll finds it */
    srv_holder      holder;
    int64_t         window, left;   /* `left`: jobs to come; INT64_MAX: without an end */
    int64_t         lease_ms;
    weir_condition *when;           /* NULL: none */
    bool            begun;          /* the stream has */
    bool            calling;        /* a call of the library is under way */
    bool            asks;           /* it should look for jobs, even if it rests */
    bool            failed;         /* the last take did: it waits for the timer */
    bool            closing;
    bool            out;            /* the jobs are given back: the last message is next */
    srv_timer       timer;          /* for the next heartbeat, renewal or look */
    const char     *event, *why;    /* the last message; NULL: it goes on. Empty: nobody reads it */
    weir_outcome    fate;           /* of the jobs that it holds then */
    int64_t         renew_at, beat_at, look_at;     /* srv_loop_ms() */
    srv_held       *list;           /* room for `window` of each */
    weir_lease     *leases;
    weir_renewed   *renewed;
    weir_ending    *endings;        /* of the sent jobs, and of a take that was not sent */
} observing;

static void step(observing *o);

static observing *observing_of(srv_request *r)
{
    return r->state;
}

static srv_workers *workers_of(const observing *o)
{
    return o->t.r->server->workers;
}

/* ---- the end ---- */

/* The first reason counts. */
static void stop(observing *o, const char *event, const char *why, weir_outcome fate)
{
    if (o->event)
        return;
    o->event = event;
    o->why = why;
    o->fate = fate;
}

static void leave_poll(observing *o, size_t got)
{
    if (!o->t.polls)
        return;
    o->t.polls = o->t.rests = false;
    srv_workers_unwait(workers_of(o), &o->t.poll);
    srv_longpoll_leave(&o->t.poll, got);
}

static void say_last(observing *o)
{
    weir_buf last = { 0 };
    weir__buf_printf(&last, "event: %s\ndata: {\"event\":\"%s\",\"text\":", o->event, o->event);
    weir__json_string(&last, o->why, strlen(o->why));
    weir__buf_str(&last, "}\n\n");
    if (!last.failed)
        srv_stream_write(o->t.r, last.data, last.len);
    weir__buf_fini(&last);
}

static void leave(observing *o)
{
    srv_request *r = o->t.r;
    srv_timer_unset(&o->timer);
    weir_condition_free(o->when);
    srv_workers_wait(workers_of(o), o->t.what.worker, -1, weir_now(srv_queue(r)));
    srv_stream_leave(r);
}

/* All is given back, and nobody calls it any more. The last line: `o` is gone. */
static void end(observing *o)
{
    srv_request *r = o->t.r;
    leave(o);
    srv_audit_detail(r, "%s", *o->event ? o->why : "the client has gone");
    if (!o->begun && r->revoked) {
        srv_reply_status(r, 401, "unauthorized", "the token is not valid any more");
        return;
    }
    if (!o->begun)
        srv_stream_begin(r, 200, "text/event-stream");
    if (*o->event)
        say_last(o);
    srv_stream_end(r, true);
}

static void given_back(srv_request *r, weir_code code, const weir_error *err)
{
    (void)code, (void)err;          /* what did not go back does when its lease is over */
    observing *o = observing_of(r);
    o->out = true;
    if (srv_holds_leave(&o->holder))
        end(o);                     /* else changed() does */
}

/* Jobs that were taken but not sent are unused in any case. */
static size_t list_endings(observing *o)
{
    size_t n = 0, held = srv_holds_list(&o->holder, o->list, (size_t)o->window);
    for (size_t i = 0; i < o->t.n_jobs; i++) {
        const weir_job *job = o->t.jobs[i];
        o->endings[n++] = (weir_ending){ .id = job->id, .delivery = job->delivery,
                                         .outcome = WEIR_OUTCOME_RETURN };
        weir_job_free(o->t.jobs[i]);
    }
    o->t.n_jobs = 0;
    for (size_t i = 0; i < held; i++)
        o->endings[n++] = (weir_ending){ .id = o->list[i].id, .delivery = o->list[i].delivery,
                                         .outcome = o->fate };
    return n;
}

static void close_stream(observing *o)
{
    srv_request *r = o->t.r;
    weir_future *f = NULL;
    weir_error   err = { 0 };
    o->closing = o->calling = true;
    leave_poll(o, 0);
    size_t n = list_endings(o);
    for (size_t i = 0; i < n; i++)
        srv_workers_ended(workers_of(o), o->endings[i].id, o->endings[i].delivery);
    if (!n) {
        given_back(r, WEIR_OK, NULL);
        return;
    }
    atomic_fetch_add(&r->server->counters.jobs_returned, n);
    weir_code rc = weir_finish_async(srv_queue(r), o->endings, n, NULL, &f, &err);
    srv_await(r, rc, &err, f, given_back);
}

/* The client is gone, its token is, or the server stops. */
static void note_cancel(observing *o)
{
    const srv_request *r = o->t.r;
    if (r->revoked)
        stop(o, "revoked", "the token is not valid any more", WEIR_OUTCOME_RETURN);
    else if (srv_gone(r))
        stop(o, "", "", WEIR_OUTCOME_LOST);
    else
        stop(o, "closing", "the server stops", WEIR_OUTCOME_RETURN);
}

static void on_cancel(srv_request *r)
{
    note_cancel(observing_of(r));
    step(observing_of(r));
}

/* ---- what is sent ---- */

/* Line ends between the parts of a job's JSON would end the event. */
static void add_job(weir_buf *out, const weir_job *job)
{
    weir__buf_str(out, "event: job\ndata: ");
    size_t at = out->len;
    srv_taken_json(out, job);
    for (; !out->failed && at < out->len; at++)
        if (out->data[at] == '\n' || out->data[at] == '\r')
            out->data[at] = ' ';
    weir__buf_str(out, "\n\n");
}

static void audit_taken(observing *o)
{
    uint64_t ids[SRV_AUDIT_IDS];
    size_t   n = 0;
    if (!srv_audited(o->t.r))
        return;
    for (; n < o->t.n_jobs && n < SRV_AUDIT_IDS; n++)
        ids[n] = o->t.jobs[n]->id;
    srv_audit_also(o->t.r, &(srv_audit_item){ .action = "job.take", .status = 200, .ids = ids,
                                              .n_ids = n, .count = o->t.n_jobs });
}

/* Send what was taken, and hold it; what there is no memory or nobody for goes back. */
static void send_jobs(observing *o)
{
    srv_request *r = o->t.r;
    weir_buf     out = { 0 };
    size_t       n = 0;
    for (size_t i = 0; i < o->t.n_jobs; i++)
        add_job(&out, o->t.jobs[i]);
    if (out.failed)
        stop(o, "error", "out of memory", WEIR_OUTCOME_RETURN);
    else if (!srv_auth_again(r) || srv_is_cancelled(r))
        note_cancel(o);
    for (; !o->event && n < o->t.n_jobs; n++)
        if (!srv_holds_add(&o->holder, o->t.jobs[n]->id, o->t.jobs[n]->delivery))
            stop(o, "error", "out of memory", WEIR_OUTCOME_RETURN);
    if (!o->event) {
        srv_stream_write(r, out.data, out.len);     /* if the client is gone, `cancel` follows */
        audit_taken(o);
        atomic_fetch_add(&r->server->counters.jobs_taken, n);
        o->left -= o->left == INT64_MAX ? 0 : (int64_t)n;
        for (size_t i = 0; i < n; i++)
            weir_job_free(o->t.jobs[i]);
        o->t.n_jobs = 0;
    }
    weir__buf_fini(&out);
}

/* ---- taking ---- */

static size_t room(observing *o)
{
    int64_t n = o->window - (int64_t)srv_holds_count(&o->holder);
    if (o->begun && srv_stream_behind(o->t.r))
        return 0;                   /* it has not read the last ones */
    return (size_t)(n < o->left ? n : o->left);
}

static void begin(observing *o)
{
    if (o->begun)
        return;
    o->begun = true;
    srv_reply_header(o->t.r, "X-Accel-Buffering", "no");    /* a proxy in between shall not wait */
    srv_stream_begin(o->t.r, 200, "text/event-stream");
    srv_stream_write(o->t.r, ":\n\n", 3);
}

/* If the first take fails, that is the answer. Later ones are tried again. False: `o` is gone. */
static bool look_failed(observing *o, const weir_error *err)
{
    srv_taking_took(&o->t, true);
    leave_poll(o, SRV_LONGPOLL_FAILED);
    if (!o->begun && !o->event) {
        leave(o);
        srv_reply_error(o->t.r, err);
        return false;
    }
    o->failed = true;
    o->look_at = srv_loop_ms() + RETRY_MS;
    return true;
}

static void looked(srv_request *r, weir_code code, const weir_error *err);

static bool ask(observing *o)
{
    weir_future *f = NULL;
    weir_error   err = { 0 };
    if (weir_take_async(srv_queue(o->t.r), &o->t.what, o->t.jobs, &o->t.n_jobs, &f, &err))
        return look_failed(o, &err);
    o->calling = true;
    srv_await(o->t.r, WEIR_OK, &err, f, looked);
    return true;
}

/* Nothing was found, or nothing may be taken now. */
static void rest(observing *o, bool aside)
{
    o->t.rests = aside ? srv_longpoll_stand_aside(&o->t.poll) : srv_longpoll_rest(&o->t.poll);
    if (o->when)
        o->look_at = srv_loop_ms() +
                     weir__condition_rest_ms(o->when, weir_now(srv_queue(o->t.r)));
}

/* There is room. False: `o` is gone. */
static bool look(observing *o)
{
    o->asks = false;
    o->t.what.n = room(o);
    if (o->t.rests)                 /* not woken: its condition may be true now */
        leave_poll(o, 0);
    if (!o->t.polls) {
        o->t.poll.n = o->t.what.n;
        o->t.polls = srv_longpoll_enter(o->t.r->server->polls, &o->t.poll);
    }
    if (o->t.polls && srv_taking_enter(&o->t, false))
        return ask(o);
    begin(o);
    if (o->t.polls) {
        rest(o, true);
    } else {                        /* out of memory */
        o->failed = true;
        o->look_at = srv_loop_ms() + RETRY_MS;
    }
    return true;
}

static void looked(srv_request *r, weir_code code, const weir_error *err)
{
    observing *o = observing_of(r);
    o->calling = false;
    if (code && !look_failed(o, err))
        return;
    if (!code)
        srv_taking_took(&o->t, false);
    if (!o->event)
        begin(o);
    if (o->t.n_jobs) {
        leave_poll(o, weir__jobs_fill_take(o->t.jobs, o->t.n_jobs) ? SRV_LONGPOLL_FAILED
                                                                   : o->t.n_jobs);
        o->asks = true;
        send_jobs(o);
    } else if (o->t.polls && !o->t.waits) {
        rest(o, false);
    } else if (o->t.polls && srv_taking_enter(&o->t, true)) {
        ask(o);                     /* it has nothing else: it gets the suspect */
    } else if (o->t.polls) {
        rest(o, srv_workers_closed(workers_of(o), o->t.what.worker));
    }
    step(o);
}

/* Jobs have come, or its worker may take again. */
static void look_again(srv_longpoll *p)
{
    observing *o = (observing *)p;
    o->t.rests = false;
    o->asks = true;
    if (!srv_auth_again(o->t.r))
        note_cancel(o);
    step(o);
}

/* ---- leases ---- */

static void renewed(srv_request *r, weir_code code, const weir_error *err)
{
    (void)err;                      /* it tries again */
    observing *o = observing_of(r);
    o->calling = false;
    for (size_t i = 0; !code && o->leases[i].id; i++) {
        const weir_lease *l = &o->leases[i];
        if (o->renewed[i].err.code == WEIR_ESTALE)
            srv_holds_ended(r->server->holds, l->id, l->delivery);
        else if (!o->renewed[i].err.code)
            srv_workers_renewed(workers_of(o), l->id, l->delivery, o->lease_ms);
    }
    step(o);
}

static void renew(observing *o)
{
    weir_future *f = NULL;
    weir_error   err = { 0 };
    size_t       n = srv_holds_list(&o->holder, o->list, (size_t)o->window);
    o->renew_at = srv_loop_ms() + o->lease_ms / RENEWALS;
    if (!n)
        return;
    for (size_t i = 0; i < n; i++)
        o->leases[i] = (weir_lease){ .id = o->list[i].id, .delivery = o->list[i].delivery,
                                     .lease_ms = o->lease_ms };
    o->leases[n] = (weir_lease){ 0 };
    memset(o->renewed, 0, n * sizeof *o->renewed);
    if (weir_renew_async(srv_queue(o->t.r), o->leases, n, o->renewed, &f, &err))
        return;
    o->calling = true;
    srv_await(o->t.r, WEIR_OK, &err, f, renewed);
}

/* ---- what comes next ---- */

static void on_timer(void *ctx)
{
    observing   *o = ctx;
    srv_request *r = o->t.r;
    int64_t      now = srv_loop_ms();
    if (!srv_auth_again(r))
        note_cancel(o);
    if (now >= o->beat_at) {
        o->beat_at = now + BEAT_MS;
        srv_workers_seen(workers_of(o), o->t.what.worker, o->t.what.types,
                         weir_now(srv_queue(r)));
        if (!srv_stream_behind(r))
            srv_stream_write(r, ":\n\n", 3);
    }
    if (now >= o->look_at && (o->failed || (o->when && o->t.rests))) {
        o->failed = false;
        o->asks = true;
    }
    step(o);
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void set_timer(observing *o)
{
    int64_t at = o->beat_at, now = srv_loop_ms();
    if (!o->calling)
        at = min(at, o->renew_at);
    if (!o->calling && (o->failed || (o->when && o->t.rests)))
        at = min(at, o->look_at);
    if (srv_timer_set(&o->timer, o->t.r->loop, at > now ? at - now : 1, on_timer, o))
        stop(o, "error", "out of memory", WEIR_OUTCOME_RETURN);
}

/* Begin what has to be done, until a call is under way. */
static void go_on(observing *o)
{
    if (srv_loop_ms() >= o->renew_at)
        renew(o);
    while (!o->calling && !o->failed && (o->asks || (o->t.polls && !o->t.rests)) && room(o))
        look(o);
    if (!o->calling && !room(o) && !o->t.rests)
        leave_poll(o, SRV_LONGPOLL_FAILED);     /* it was woken, but has no room: others look */
}

/* After anything has changed; the last line of its callers, since `o` may be gone. */
static void step(observing *o)
{
    if (o->closing || (!o->begun && !o->event))
        return;
    if (!o->left && !srv_holds_count(&o->holder))
        stop(o, "end", "all jobs of \"take\" have ended", WEIR_OUTCOME_RETURN);
    if (!o->calling && !o->event)
        go_on(o);
    if (!o->event)
        set_timer(o);
    if (!o->calling && o->event)
        close_stream(o);
}

/* Deliveries have ended: there is room. */
static void on_changed(srv_holder *h)
{
    observing *o = (observing *)((char *)h - offsetof(observing, holder));
    srv_held   held;
    bool       unsure, any = false;
    if (o->out) {
        end(o);
        return;
    }
    while (srv_holds_over(h, &held, &unsure)) {
        weir_buf text = { 0 };
        any = true;
        srv_workers_ended(workers_of(o), held.id, held.delivery);
        weir__buf_printf(&text, "event: over\ndata: {\"event\":\"over\",\"id\":%" PRIu64
                         ",\"delivery\":%" PRIu32 "}\n\n", held.id, held.delivery);
        if (!text.failed && !o->closing)
            srv_stream_write(o->t.r, text.data, text.len);
        weir__buf_fini(&text);
    }
    if (o->closing)
        return;
    if (unsure)
        o->renew_at = 0;
    o->asks = o->asks || (any && !o->t.rests);      /* a resting stream is woken by new jobs */
    step(o);
}

/* The client has read what it was sent. */
static void on_drained(srv_request *r)
{
    observing *o = observing_of(r);
    o->asks = o->asks || !o->t.rests;
    step(o);
}

/* ---- POST /v1/observe ---- */

typedef struct order {
    srv_take_request w;
    int64_t          take;
} order;

#define AT(member) offsetof(order, member)
static const weir_field observe_fields[] = {
    WEIR_FIELD("types", weir__as_texts, AT(w.types), .needed = true, .min = 1,
               .max = WEIR_MAX_TAKE_TYPES),
    WEIR_FIELD("window", weir__as_int, AT(w.n), .min = 1, .max = WEIR_MAX_PAGE),
    WEIR_FIELD("take", weir__as_int, AT(take), .min = 1, .max = INT32_MAX),
    WEIR_FIELD("lease", weir__as_ms, AT(w.lease_ms), .min = WEIR_MIN_LEASE_MS,
               .max = WEIR_MAX_MS),
    WEIR_FIELD("worker", weir__as_text, AT(w.worker), .min = 1, .max = WEIR_MAX_WORKER),
    WEIR_FIELD("when", weir__as_text, AT(w.when), .min = 1),
    { 0 }
};
#undef AT

/* False: out of memory, and it was answered. */
static bool make_room(observing *o)
{
    size_t n = (size_t)o->window;
    o->list = srv_alloc(o->t.r, n * sizeof *o->list);
    o->leases = srv_alloc(o->t.r, (n + 1) * sizeof *o->leases);
    o->renewed = srv_alloc(o->t.r, n * sizeof *o->renewed);
    o->endings = srv_alloc(o->t.r, 2 * n * sizeof *o->endings);
    if (o->list && o->leases && o->renewed && o->endings)
        return true;
    srv_reply_fail(o->t.r, WEIR_ENOMEM, NULL, "out of memory");
    return false;
}

static void handle_observe(srv_request *r)
{
    order      in = { .w = { .n = 1 } };
    observing *o;
    if (!SRV_STATE(r, o) || !srv_body(r, observe_fields, &in) ||
        !srv_taking_init(&o->t, r, &in.w))
        return;
    o->window = in.w.n;
    o->left = in.take ? in.take : INT64_MAX;
    o->lease_ms = in.w.lease_ms ? in.w.lease_ms : WEIR_DEFAULT_LEASE_MS;
    o->holder = (srv_holder){ .loop = r->loop, .changed = on_changed,
                              .holds = r->server->holds };
    o->t.poll = (srv_longpoll){ .loop = r->loop, .types = o->t.what.types,
                                .picky = in.w.when != NULL, .look = look_again };
    o->renew_at = srv_loop_ms() + o->lease_ms / RENEWALS;
    o->beat_at = srv_loop_ms() + BEAT_MS;
    if (!make_room(o) || !srv_stream_admit(r))
        return;
    if (in.w.when)                  /* what is wrong with it is the answer of the first take */
        weir_condition_parse(&o->when, in.w.when, NULL);
    srv_workers_wait(workers_of(o), o->t.what.worker, 1, weir_now(srv_queue(r)));
    r->endless = true;
    r->cancel = on_cancel;
    r->drained = on_drained;
    if (look(o))
        step(o);
}

const srv_route srv_observe_routes[] = {
    { "POST", "/v1/observe", WEIR_ROLE_WORK, handle_observe, SRV_MAX_SMALL_BODY, NULL, 0,
      "Jobs as server-sent events, at most `window` unended at a time", "Observe", "Items", 200 },
    { 0 }
};
