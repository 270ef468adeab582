/* push.c - the push thread: what wakes it, its turns, its start and its end. */
#include "server/push/push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/push/push_inner.h"

/* ---- from other threads ----
 *
 * The thread is woken with the lock held, and ends with the lock held: so nobody is inside of
 * `multi` when that is released. */

static void post(srv_push *p, weir_inbox_task *task)
{
    if (weir__inbox_post(&p->inbox, task))
        weir__curl.multi_wakeup(p->multi);
}

void push_post(srv_push *p, weir_inbox_task *task)
{
    pthread_mutex_lock(&p->lock);
    post(p, task);
    pthread_mutex_unlock(&p->lock);
}

static void run_ask(weir_inbox_task *task)
{
    srv_push_ask *ask = (srv_push_ask *)task;
    ask->run(ask->push, ask);
    srv_loop_post(ask->loop, &ask->done);       /* it is the asker's again */
}

void srv_push_post(srv_push *p, srv_push_ask *ask)
{
    ask->task.run = run_ask;
    ask->push = p;
    pthread_mutex_lock(&p->lock);
    bool ended = p->ended;
    if (!ended)
        post(p, &ask->task);
    pthread_mutex_unlock(&p->lock);
    if (ended) {
        weir_fail(&ask->err, WEIR_ECLOSED, "the server is stopping");
        srv_loop_post(ask->loop, &ask->done);
    }
}

static bool wants(const push_target *t, const char *type)
{
    for (size_t i = 0; i < t->is->types.n; i++) {
        if (!strcmp(t->is->types.text[i], type))
            return true;
    }
    return false;
}

/* On the callback thread of the queue. An event that is not about jobs of one type concerns all. */
static void on_event(const weir_event *e, void *ctx)
{
    srv_push *p = ctx;
    bool      all = e->missed || e->kind != WEIR_EVENT_ENQUEUE, news = false;
    pthread_mutex_lock(&p->lock);
    for (push_target *t = p->targets; t; t = t->next) {
        if (!t->woken && (all || wants(t, e->type)))
            news = t->woken = true;
    }
    if (news)
        weir__curl.multi_wakeup(p->multi);
    pthread_mutex_unlock(&p->lock);
}

/* Every event costs something, so that without targets there is no listener. */
weir_code push_listen(srv_push *p, bool needed, weir_error *err)
{
    static const weir_filter filter = { .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) |
                                                  WEIR_BIT(WEIR_EVENT_RESUME) |
                                                  WEIR_BIT(WEIR_EVENT_ERROR) };
    if (needed && !p->listener)
        return weir_listen(p->q, &filter, on_event, p, &p->listener, err);
    if (!needed) {
        weir_unlisten(p->listener);
        p->listener = NULL;
    }
    return WEIR_OK;
}

/* ---- the thread ---- */

/* Requests have so long from the moment when the thread sees that it is to end. */
static void look_at_drain(srv_push *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->drain && !p->drain_ms)
        p->drain_ms = weir__monotonic_ms() + SRV_DRAIN_MS;
    pthread_mutex_unlock(&p->lock);
}

/* How long there is nothing to do unless something happens. */
static int sleep_ms(srv_push *p)
{
    enum { LONG_MS = 60 * 60 * 1000 };
    int64_t now = weir__monotonic_ms(), until = now + LONG_MS;
    pthread_mutex_lock(&p->lock);
    for (push_target *t = p->targets; t; t = t->next) {
        int64_t ready = t->ready_ms > t->refused_ms ? t->ready_ms : t->refused_ms;
        if (t->woken && push_room(p, t) && ready < until)
            until = ready;
    }
    pthread_mutex_unlock(&p->lock);
    if (p->again && p->again_ms < until)
        until = p->again_ms;
    if (p->drain_ms && p->under_way && p->drain_ms < until)
        until = p->drain_ms;
    return until > now ? (int)(until - now) : 0;
}

/* Nothing is under way, and nothing more will be. */
static bool is_over(srv_push *p)
{
    if (!p->drain_ms || p->under_way || p->again || p->calls)
        return false;
    pthread_mutex_lock(&p->lock);
    p->ended = weir__inbox_is_empty(&p->inbox);
    bool over = p->ended;
    pthread_mutex_unlock(&p->lock);
    return over;
}

static void *push_main(void *arg)
{
    srv_push *p = arg;
    while (!is_over(p)) {
        look_at_drain(p);
        weir__inbox_run(&p->inbox, 1);
        push_settle_again(p);
        push_sweep(p);
        push_look_at_targets(p);
        push_look_at_requests(p);
        if (p->drain_ms && weir__monotonic_ms() >= p->drain_ms)
            push_break_off(p);
        if (!is_over(p))
            weir__curl.multi_poll(p->multi, NULL, 0, sleep_ms(p), NULL);
    }
    return NULL;
}

/* ---- start and end ---- */

weir_code srv_push_start(srv_push **out, weir_queue *q, srv_workers *workers,
                         const srv_options *opt, weir_error *err)
{
    *out = NULL;
    srv_push *p = calloc(1, sizeof *p);
    if (!p)
        return weir_fail(err, WEIR_ENOMEM, "push: out of memory");
    p->q = q;
    p->workers = workers;
    p->opt = opt;
    weir__inbox_init(&p->inbox);
    pthread_mutex_init(&p->lock, NULL);
    weir_code rc = weir__curl_load(err);
    if (!rc && (!(p->multi = weir__curl.multi_init()) ||
                (opt->data_dir && asprintf(&p->path, "%s/push.json", opt->data_dir) < 0)))
        rc = weir_fail(err, WEIR_ENOMEM, "push: out of memory");
    if (!rc)
        rc = push_load(p, err);
    if (!rc)
        rc = weir__thread_start(&p->thread, push_main, p, "weir-push", err);
    p->started = !rc;
    if (rc)
        srv_push_destroy(p);
    else
        *out = p;
    return rc;
}

void srv_push_drain(srv_push *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->drain = true;
    if (!p->ended)
        weir__curl.multi_wakeup(p->multi);
    pthread_mutex_unlock(&p->lock);
}

void srv_push_stop(srv_push *p)
{
    if (!p || !p->started)
        return;
    srv_push_drain(p);
    pthread_join(p->thread, NULL);
    p->started = false;
}

void srv_push_destroy(srv_push *p)
{
    if (!p)
        return;
    weir_unlisten(p->listener);
    for (push_target *t; (t = p->targets); push_target_free(t))
        p->targets = t->next;
    if (p->multi)
        weir__curl.multi_cleanup(p->multi);
    weir__inbox_fini(&p->inbox);
    pthread_mutex_destroy(&p->lock);
    free(p->path);
    free(p);
}
