/* feed.c - a thread that receives, and connects again: see feed.h. */
#include "store/feed.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

enum {
    PAUSE_MS = 50,
    LONGEST_PAUSE_MS = 2000,
    UNTIL_MS = 2000             /* weir__feed_until() */
};

struct weir_feed {
    const weir_feed_source *source;
    void                   *ctx;
    atomic_bool             stop;
    pthread_t               thread;

    pthread_mutex_t lock;       /* guards what follows; `place` is written by the thread alone */
    pthread_cond_t  moved;
    bool            live, ever;             /* ever: it was live once */
    bool            begun;                  /* live since the last connection was begun */
    weir_error      trouble;                /* code WEIR_OK: none yet */
    weir_place      place;
};

bool weir__feed_stopping(const weir_feed *f)
{
    return atomic_load(&f->stop);
}

static void set_live(weir_feed *f, bool live, const weir_error *why)
{
    pthread_mutex_lock(&f->lock);
    f->live = live;
    f->ever = f->ever || live;
    f->begun = f->begun || live;
    if (why)
        f->trouble = *why;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

void weir__feed_live(weir_feed *f)
{
    set_live(f, true, NULL);
}

void weir__feed_down(weir_feed *f, const weir_error *why)
{
    set_live(f, false, why);
}

void weir__feed_reached(weir_feed *f, const weir_place *place)
{
    pthread_mutex_lock(&f->lock);
    f->place = *place;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

const weir_place *weir__feed_place(const weir_feed *f)
{
    return &f->place;           /* the thread's own */
}

/* ---- the thread ---- */

static void rest(weir_feed *f, int64_t ms)
{
    weir_deadline until = weir__deadline_in(ms);
    pthread_mutex_lock(&f->lock);
    while (!atomic_load(&f->stop) && weir__cond_wait_until(&f->moved, &f->lock, until))
        ;
    pthread_mutex_unlock(&f->lock);
}

static void *receive_on(void *arg)
{
    weir_feed *f = arg;
    int64_t    first = f->source->pause_ms ? f->source->pause_ms : PAUSE_MS, pause = first;
    while (!atomic_load(&f->stop)) {
        weir_error why = { 0 };
        f->begun = false;
        f->source->receive(f->ctx, f, &why);
        weir__feed_down(f, &why);
        rest(f, pause = f->begun ? first : pause);
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
    return NULL;
}

/* ---- open and close ---- */

weir_code weir__feed_wait(weir_feed *f, int64_t wait_ms, weir_error *err)
{
    weir_deadline until = weir__deadline_in(wait_ms);
    bool          late = false;
    pthread_mutex_lock(&f->lock);
    while (!f->ever && !late && (!f->trouble.code || f->trouble.code == WEIR_EUNAVAIL))
        late = !weir__cond_wait_until(&f->moved, &f->lock, until);
    weir_code rc = WEIR_OK;
    if (!f->ever)
        rc = weir_fail(err, f->trouble.code ? f->trouble.code : WEIR_EUNAVAIL, "%s",
                       f->trouble.code ? f->trouble.msg : "no events within the timeout");
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static void feed_free(weir_feed *f)
{
    pthread_cond_destroy(&f->moved);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

weir_code weir__feed_open(weir_feed **out, const weir_feed_source *source, void *ctx,
                          int64_t wait_ms, weir_error *err)
{
    *out = NULL;
    weir_feed *f = calloc(1, sizeof *f);
    if (!f)
        return weir_fail(err, WEIR_ENOMEM, "no memory to receive events");
    f->source = source;
    f->ctx = ctx;
    pthread_mutex_init(&f->lock, NULL);
    weir__cond_init(&f->moved);
    weir_code rc = weir__thread_start(&f->thread, receive_on, f, source->thread, err);
    if (rc) {
        feed_free(f);
        return rc;
    }
    if (wait_ms && (rc = weir__feed_wait(f, wait_ms, err)))
        weir__feed_close(f);
    else
        *out = f;
    return rc;
}

void weir__feed_close(weir_feed *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    atomic_store(&f->stop, true);
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
    f->source->wake(f->ctx);
    pthread_join(f->thread, NULL);
    feed_free(f);
}

void weir__feed_until(weir_feed *f, const weir_place *place)
{
    if (!f || !place->number)
        return;
    weir_deadline until = weir__deadline_in(UNTIL_MS);
    pthread_mutex_lock(&f->lock);
    while (f->live && !(!strcmp(f->place.run, place->run) && f->place.number >= place->number))
        if (!weir__cond_wait_until(&f->moved, &f->lock, until))
            break;
    pthread_mutex_unlock(&f->lock);
}
