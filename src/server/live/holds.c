/* holds.c - deliveries that streams have sent: see holds.h. */
#include "server/live/holds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/map.h"

typedef struct hold {
    srv_held    is;
    srv_holder *holder;
    weir_link   link;                   /* in one of the holder's lists */
} hold;

struct srv_holds {
    weir_listener  *listener;
    atomic_size_t   n;                  /* in `by_id` */
    pthread_mutex_t lock;               /* guards what follows, and all holders */
    weir_map        by_id;              /* id -> hold, of the held ones */
};

/* ---- under the lock ---- */

static void post(srv_holder *h)
{
    if (h->posted)
        return;
    h->posted = true;
    srv_loop_post(h->loop, &h->task);
}

static void unhold(srv_holds *hs, hold *d)
{
    weir__map_remove(&hs->by_id, d->is.id);
    weir__list_remove(&d->holder->held, &d->link);
    atomic_fetch_sub(&hs->n, 1);
}

static void end(srv_holds *hs, hold *d)
{
    unhold(hs, d);
    weir__list_append(&d->holder->over, &d->link);
    post(d->holder);
}

static void doubt_all(srv_holds *hs)
{
    size_t   pos = 0;
    uint64_t id;
    void    *d;
    while (weir__map_next(&hs->by_id, &pos, &id, &d)) {
        ((hold *)d)->holder->unsure = true;
        post(((hold *)d)->holder);
    }
}

/* ---- events ---- */

/* On the queue's callback thread. An event of an older delivery may come late. */
static void on_event(const weir_event *ev, void *ctx)
{
    srv_holds *hs = ctx;
    if (!atomic_load(&hs->n))
        return;
    pthread_mutex_lock(&hs->lock);
    hold *d = ev->id ? weir__map_get(&hs->by_id, ev->id) : NULL;
    if (ev->missed || ev->kind == WEIR_EVENT_ERROR)
        doubt_all(hs);
    if (d && (ev->kind == WEIR_EVENT_REMOVE || ev->delivery > d->is.delivery ||
              (ev->delivery == d->is.delivery && ev->state != WEIR_STATE_ACTIVE)))
        end(hs, d);
    pthread_mutex_unlock(&hs->lock);
}

/* ---- holders ---- */

static void run(weir_inbox_task *task)
{
    srv_holder *h = (srv_holder *)((char *)task - offsetof(srv_holder, task));
    pthread_mutex_lock(&h->holds->lock);
    h->posted = false;
    pthread_mutex_unlock(&h->holds->lock);
    h->changed(h);
}

bool srv_holds_add(srv_holder *h, uint64_t id, uint32_t delivery)
{
    srv_holds *hs = h->holds;
    hold      *d = malloc(sizeof *d);
    if (!d)
        return false;
    *d = (hold){ .is = { id, delivery }, .holder = h };
    h->task.run = run;
    pthread_mutex_lock(&hs->lock);
    hold *old = weir__map_get(&hs->by_id, id);
    if (old)                            /* of an older delivery, whose end was not noticed */
        end(hs, old);
    bool ok = weir__map_put(&hs->by_id, id, d);
    if (ok) {
        weir__list_append(&h->held, &d->link);
        h->n++;
        atomic_fetch_add(&hs->n, 1);
    }
    pthread_mutex_unlock(&hs->lock);
    if (!ok)
        free(d);
    return ok;
}

void srv_holds_ended(srv_holds *hs, uint64_t id, uint32_t delivery)
{
    if (!atomic_load(&hs->n))
        return;
    pthread_mutex_lock(&hs->lock);
    hold *d = weir__map_get(&hs->by_id, id);
    if (d && d->is.delivery == delivery)
        end(hs, d);
    pthread_mutex_unlock(&hs->lock);
}

bool srv_holds_over(srv_holder *h, srv_held *out, bool *unsure)
{
    pthread_mutex_lock(&h->holds->lock);
    hold *d = WEIR_OF(h->over.first, hold, link);
    *unsure = h->unsure;
    if (d) {
        weir__list_remove(&h->over, &d->link);
        h->n--;
        *out = d->is;
    } else {
        h->unsure = false;
    }
    pthread_mutex_unlock(&h->holds->lock);
    free(d);
    return d != NULL;
}

size_t srv_holds_count(srv_holder *h)
{
    pthread_mutex_lock(&h->holds->lock);
    size_t n = h->n;
    pthread_mutex_unlock(&h->holds->lock);
    return n;
}

size_t srv_holds_list(srv_holder *h, srv_held *out, size_t max)
{
    size_t n = 0;
    pthread_mutex_lock(&h->holds->lock);
    WEIR_EACH(hold, d, &h->held, link)
        if (n < max)
            out[n++] = d->is;
    pthread_mutex_unlock(&h->holds->lock);
    return n;
}

bool srv_holds_leave(srv_holder *h)
{
    pthread_mutex_lock(&h->holds->lock);
    WEIR_EACH(hold, d, &h->held, link) {
        unhold(h->holds, d);
        free(d);
    }
    WEIR_EACH(hold, d, &h->over, link) {
        weir__list_remove(&h->over, &d->link);
        free(d);
    }
    h->n = 0;
    bool left = !h->posted;
    pthread_mutex_unlock(&h->holds->lock);
    return left;
}

/* ---- all of them ---- */

weir_code srv_holds_create(srv_holds **out, weir_queue *q, weir_error *err)
{
    /* Events that begin a delivery, or go on with one, do not end it. */
    const uint32_t not_these = WEIR_BIT(WEIR_EVENT_START) | WEIR_BIT(WEIR_EVENT_PROGRESS) |
                               WEIR_BIT(WEIR_EVENT_PAUSE) | WEIR_BIT(WEIR_EVENT_RESUME);
    weir_filter    filter = { .events = (WEIR_BIT(WEIR_EVENT_COUNT) - 1) & ~not_these };
    srv_holds     *hs = *out = calloc(1, sizeof *hs);
    if (!hs)
        return weir_fail(err, WEIR_ENOMEM, "streams of jobs: out of memory");
    pthread_mutex_init(&hs->lock, NULL);
    weir_code rc = weir_listen(q, &filter, on_event, hs, &hs->listener, err);
    if (rc) {
        srv_holds_destroy(hs);
        *out = NULL;
    }
    return rc;
}

void srv_holds_destroy(srv_holds *hs)
{
    if (!hs)
        return;
    weir_unlisten(hs->listener);
    weir__map_fini(&hs->by_id);
    pthread_mutex_destroy(&hs->lock);
    free(hs);
}
