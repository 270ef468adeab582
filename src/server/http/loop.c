/* loop.c - an event loop with a thread of its own; other threads reach it through an inbox and
 * an eventfd, so libevent itself needs no locks. */
#include "server/http/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

struct srv_loop {
    struct event_base *base;
    struct event      *wake;
    int                fd;             /* eventfd */
    pthread_t          thread;
    bool               started;
    bool               ending;         /* the thread's own */
    weir_inbox         inbox;
};

enum { MAX_ROUNDS = 8 };    /* of tasks, before connections are looked at again */

static void woken(evutil_socket_t fd, short what, void *ctx)
{
    (void)what;
    srv_loop *l = ctx;
    uint64_t  n;
    if (read(fd, &n, sizeof n) < 0 && errno != EAGAIN)
        return;
    weir__inbox_run(&l->inbox, MAX_ROUNDS);
    if (l->ending)
        event_base_loopbreak(l->base);
}

static void *loop_main(void *ctx)
{
    srv_loop *l = ctx;
    event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static weir_code loop_open(srv_loop *l, weir_error *err)
{
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        l->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!l->base)
        return weir_fail(err, WEIR_ENOMEM, "event loop: out of memory");
    l->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->fd < 0)
        return weir_fail(err, WEIR_EIO, "event loop: eventfd: %s", strerror(errno));
    l->wake = event_new(l->base, l->fd, EV_READ | EV_PERSIST, woken, l);
    if (!l->wake || event_add(l->wake, NULL) < 0)
        return weir_fail(err, WEIR_ENOMEM, "event loop: out of memory");
    return WEIR_OK;
}

weir_code srv_loop_create(srv_loop **out, const char *name, weir_error *err)
{
    *out = NULL;
    srv_loop *l = calloc(1, sizeof *l);
    if (!l)
        return weir_fail(err, WEIR_ENOMEM, "event loop: out of memory");
    l->fd = -1;
    weir__inbox_init(&l->inbox);
    weir_code rc = loop_open(l, err);
    if (!rc)
        rc = weir__thread_start(&l->thread, loop_main, l, name, err);
    if (rc) {
        srv_loop_destroy(l);
        return rc;
    }
    l->started = true;
    *out = l;
    return WEIR_OK;
}

struct event_base *srv_loop_base(srv_loop *l)
{
    return l->base;
}

void srv_loop_post(srv_loop *l, weir_inbox_task *task)
{
    if (weir__inbox_post(&l->inbox, task)) {
        uint64_t one = 1;
        ssize_t  n = write(l->fd, &one, sizeof one);
        (void)n;        /* it can only be full, and then the loop is awake anyhow */
    }
}

bool srv_loop_here(const srv_loop *l)
{
    return pthread_equal(pthread_self(), l->thread);
}

int64_t srv_loop_ms(void)
{
    return weir__coarse_ms();
}

/* ---- calls ---- */

typedef struct call {
    weir_inbox_task  task;
    void          (*fn)(void *ctx);
    void           *ctx;
    pthread_mutex_t lock;
    pthread_cond_t  ended;
    bool            done;
} call;

static void run_call(weir_inbox_task *t)
{
    call *c = (call *)t;
    c->fn(c->ctx);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

void srv_loop_call(srv_loop *l, void (*fn)(void *ctx), void *ctx)
{
    call c = { .task.run = run_call, .fn = fn, .ctx = ctx };
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.ended, NULL);
    srv_loop_post(l, &c.task);
    pthread_mutex_lock(&c.lock);
    while (!c.done)
        pthread_cond_wait(&c.ended, &c.lock);
    pthread_mutex_unlock(&c.lock);
    pthread_cond_destroy(&c.ended);
    pthread_mutex_destroy(&c.lock);
}

/* ---- timers ---- */

static void timer_over(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd;
    (void)what;
    srv_timer *t = ctx;
    t->run(t->ctx);
}

weir_code srv_timer_set(srv_timer *t, srv_loop *l, int64_t ms, void (*run)(void *ctx), void *ctx)
{
    struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
                          .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
    t->run = run;
    t->ctx = ctx;
    if (!t->event)
        t->event = evtimer_new(l->base, timer_over, t);
    return t->event && event_add(t->event, &tv) == 0 ? WEIR_OK : WEIR_ENOMEM;
}

void srv_timer_unset(srv_timer *t)
{
    if (t->event)
        event_free(t->event);
    t->event = NULL;
}

/* ---- the end ---- */

static void loop_end(void *ctx)
{
    ((srv_loop *)ctx)->ending = true;
}

void srv_loop_destroy(srv_loop *l)
{
    if (!l)
        return;
    if (l->started) {
        srv_loop_call(l, loop_end, l);
        pthread_join(l->thread, NULL);
    }
    if (l->wake)
        event_free(l->wake);
    if (l->fd >= 0)
        close(l->fd);
    if (l->base)
        event_base_free(l->base);
    weir__inbox_fini(&l->inbox);
    free(l);
}
