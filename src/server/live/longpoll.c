/* longpoll.c - who waits for jobs: see longpoll.h.
 *
 * For each type that anybody waits for there is a list of the polls that rest, longest waiting
 * first. The queue's event `enqueue` counts one job on the first of them. That poll is woken, and
 * stays in the list until as many jobs are counted on it as it asks for, or it begins to look. When
 * the number of jobs is unknown (a type is resumed, events were missed, a wake was not used), one
 * poll is woken. If it gets as many jobs as it asks for, it wakes the next: a chain instead of a
 * crowd.
 *
 * One lock guards all of it; it is held for a few pointers at a time, also by the queue's callback
 * thread, which never waits for a loop. */
#include "server/live/longpoll.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/named.h"

/* A type that somebody waits for. */
typedef struct poll_type {
    weir_named             named;       /* first: it is found by it */
    uint64_t               reasons;     /* to look, so far */
    size_t                 refs;        /* places of polls that have entered */
    weir_dlist             places;      /* of the polls that rest, or are woken and ask for more */
    char                   name[];
} poll_type;

/* A poll's place in the list of one of its types. */
typedef struct srv_longpoll_place {
    poll_type             *type;
    srv_longpoll          *poll;
    weir_link              link;        /* in the list of its type */
    bool                   in;          /* the list */
} place;

/* The polls of a loop that are to look now. */
typedef struct srv_longpoll_loop {
    weir_inbox_task        task;         /* first: it is found by it */
    srv_longpolls        *polls;
    srv_loop             *loop;
    struct srv_longpoll_loop *next;
    weir_dlist            woken;        /* of srv_longpoll */
    bool                  posted;
} poll_loop;

struct srv_longpolls {
    weir_listener  *listener;
    srv_counters   *counters;
    pthread_mutex_t lock;               /* guards what follows, and all polls */
    weir_names      types;              /* of poll_type */
    poll_loop        *loops;
    uint64_t        turns;
};

/* ---- types ---- */

/* With a reference. NULL: out of memory. */
static poll_type *type_get(srv_longpolls *ps, const char *name)
{
    poll_type *t = weir__names_get(&ps->types, name);
    if (!t)
        t = WEIR__NAMES_ADD(&ps->types, poll_type, name);
    if (t)
        t->refs++;
    return t;
}

static void type_unref(srv_longpolls *ps, poll_type *t)
{
    if (--t->refs)
        return;
    weir__names_remove(&ps->types, &t->named);
    free(t);
}

/* How often there was a reason for this poll to look. */
static uint64_t reasons_of(const srv_longpoll *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n_types; i++)
        sum += p->place[i].type->reasons;
    return sum;
}

/* ---- lists ---- */

/* Polls that have waited longer stand before it. A new poll goes to the end, a poll that has looked
 * in vain to the front: neither has far to go. */
static void line_up_for(poll_type *t, place *own)
{
    uint64_t turn = own->poll->turn;
    place   *before = WEIR_OF(t->places.last, place, link);
    if (before && before->poll->turn > turn) {
        before = NULL;
        WEIR_EACH(place, at, &t->places, link) {
            if (at->poll->turn >= turn)
                break;
            before = at;
        }
    }
    weir__list_insert(&t->places, before ? &before->link : NULL, &own->link);
    own->in = true;
}

static void line_up(srv_longpoll *p)
{
    for (size_t i = 0; i < p->n_types; i++)
        line_up_for(p->place[i].type, &p->place[i]);
}

static void step_out(srv_longpoll *p)
{
    for (size_t i = 0; i < p->n_types; i++) {
        place *own = &p->place[i];
        if (!own->in)
            continue;
        weir__list_remove(&own->type->places, &own->link);
        own->in = false;
    }
}

/* ---- waking ---- */

/* Have it look, if it rests. */
static void wake(srv_longpoll *p)
{
    if (p->state != SRV_LONGPOLL_RESTS)
        return;
    poll_loop *d = p->on;
    p->state = SRV_LONGPOLL_WOKEN;
    weir__list_append(&d->woken, &p->link);
    if (!d->posted) {
        d->posted = true;
        srv_loop_post(d->loop, &d->task);
    }
}

/* The first that can be counted on; those before it look beside it. NULL: none. */
static srv_longpoll *first_of(poll_type *t)
{
    WEIR_EACH(place, at, &t->places, link) {
        if (!at->poll->picky)
            return at->poll;
        wake(at->poll);
    }
    return NULL;
}

/* One job has come. */
static void job_came(poll_type *t)
{
    t->reasons++;
    srv_longpoll *p = first_of(t);
    if (!p)
        return;
    wake(p);
    if (++p->expected >= p->n)
        step_out(p);
}

/* There may be jobs; their number is unknown. */
static void some_may_be(poll_type *t)
{
    srv_longpoll *p = first_of(t);
    if (!p)
        return;
    p->chain = true;
    wake(p);
    step_out(p);
}

static void all_look(srv_longpolls *ps)
{
    size_t     pos = 0;
    poll_type *t = NULL;
    while ((t = weir__names_next(&ps->types, &pos, t))) {
        t->reasons++;
        some_may_be(t);
    }
}

/* On the queue's callback thread. */
static void on_event(const weir_event *ev, void *ctx)
{
    srv_longpolls *ps = ctx;
    if (ev->kind == WEIR_EVENT_STALLED)         /* `enqueue` or `failed` follows */
        atomic_fetch_add(&ps->counters->leases_lost, 1);
    pthread_mutex_lock(&ps->lock);
    poll_type *t = ev->type ? weir__names_get(&ps->types, ev->type) : NULL;
    bool       all = ev->kind == WEIR_EVENT_RESUME && (!ev->type || strcmp(ev->type, "*") == 0);
    if (all || ev->missed || ev->kind == WEIR_EVENT_ERROR) {
        all_look(ps);
    } else if (t && ev->kind == WEIR_EVENT_ENQUEUE) {
        job_came(t);
    } else if (t && ev->kind == WEIR_EVENT_RESUME) {
        t->reasons++;
        some_may_be(t);
    }
    pthread_mutex_unlock(&ps->lock);
}

/* On the loop. NULL: none is left. */
static srv_longpoll *next_woken(poll_loop *d)
{
    pthread_mutex_lock(&d->polls->lock);
    srv_longpoll *p = WEIR_OF(d->woken.first, srv_longpoll, link);
    if (p) {
        weir__list_remove(&d->woken, &p->link);
        step_out(p);
        p->state = SRV_LONGPOLL_LOOKS;
        p->reasons = reasons_of(p);
    } else {
        d->posted = false;
    }
    pthread_mutex_unlock(&d->polls->lock);
    return p;
}

static void run_woken(weir_inbox_task *task)
{
    poll_loop *d = (poll_loop *)task;
    srv_longpoll *p;
    while ((p = next_woken(d)))
        p->look(p);
}

/* ---- coming and going ---- */

/* NULL: out of memory. */
static poll_loop *loop_of(srv_longpolls *ps, srv_loop *loop)
{
    poll_loop *d = ps->loops;
    while (d && d->loop != loop)
        d = d->next;
    if (d)
        return d;
    d = malloc(sizeof *d);
    if (!d)
        return NULL;
    *d = (poll_loop){ .task.run = run_woken, .polls = ps, .loop = loop, .next = ps->loops };
    ps->loops = d;
    return d;
}

/* Give back what a poll has of its types. */
static void let_go(srv_longpoll *p)
{
    for (size_t i = 0; i < p->n_types; i++)
        type_unref(p->polls, p->place[i].type);
    free(p->place);
    p->place = NULL;
}

bool srv_longpoll_enter(srv_longpolls *ps, srv_longpoll *p)
{
    size_t n = 0;
    while (p->types[n])
        n++;
    p->polls = ps;
    p->state = SRV_LONGPOLL_LOOKS;
    p->n_types = 0;
    p->place = calloc(n, sizeof *p->place);
    if (!p->place)
        return false;
    pthread_mutex_lock(&ps->lock);
    p->on = loop_of(ps, p->loop);
    for (; p->on && p->n_types < n; p->n_types++) {
        place *own = &p->place[p->n_types];
        own->poll = p;
        own->type = type_get(ps, p->types[p->n_types]);
        if (!own->type)
            break;
    }
    bool entered = p->n_types == n;
    if (entered) {
        p->turn = ps->turns++;
        p->reasons = reasons_of(p);
        atomic_fetch_add(&ps->counters->takes_waiting, 1);
    } else {
        let_go(p);
    }
    pthread_mutex_unlock(&ps->lock);
    return entered;
}

bool srv_longpoll_rest(srv_longpoll *p)
{
    pthread_mutex_lock(&p->polls->lock);
    uint64_t now = reasons_of(p);
    bool     rests = now == p->reasons && !p->nudged;
    p->nudged = false;
    p->reasons = now;
    p->expected = 0;
    p->chain = false;
    if (rests) {
        p->state = SRV_LONGPOLL_RESTS;
        line_up(p);
    }
    pthread_mutex_unlock(&p->polls->lock);
    return rests;
}

bool srv_longpoll_stand_aside(srv_longpoll *p)
{
    pthread_mutex_lock(&p->polls->lock);
    bool rests = !p->nudged, owes = p->chain || p->expected;
    p->nudged = false;
    if (rests) {
        p->expected = 0;
        p->chain = false;
        p->state = SRV_LONGPOLL_RESTS;
    }
    for (size_t i = 0; rests && owes && i < p->n_types; i++)
        some_may_be(p->place[i].type);
    pthread_mutex_unlock(&p->polls->lock);
    return rests;
}

void srv_longpoll_wake(srv_longpoll *p)
{
    pthread_mutex_lock(&p->polls->lock);
    if (p->state == SRV_LONGPOLL_RESTS)
        wake(p);
    else if (p->state == SRV_LONGPOLL_LOOKS)
        p->nudged = true;
    pthread_mutex_unlock(&p->polls->lock);
}

void srv_longpoll_leave(srv_longpoll *p, size_t got)
{
    srv_longpolls *ps = p->polls;
    pthread_mutex_lock(&ps->lock);
    if (p->state == SRV_LONGPOLL_WOKEN)
        weir__list_remove(&p->on->woken, &p->link);
    if (p->state != SRV_LONGPOLL_LOOKS)
        step_out(p);
    bool owes = p->chain || p->expected;
    if (p->state == SRV_LONGPOLL_WOKEN || (owes && got == SRV_LONGPOLL_FAILED) ||
        (p->chain && got == p->n))
        for (size_t i = 0; i < p->n_types; i++)
            some_may_be(p->place[i].type);
    atomic_fetch_sub(&ps->counters->takes_waiting, 1);
    let_go(p);
    pthread_mutex_unlock(&ps->lock);
}

weir_code srv_longpolls_create(srv_longpolls **out, weir_queue *q, srv_counters *counters,
                               weir_error *err)
{
    weir_filter filter = { .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) | WEIR_BIT(WEIR_EVENT_RESUME) |
                                     WEIR_BIT(WEIR_EVENT_STALLED) | WEIR_BIT(WEIR_EVENT_ERROR) };
    *out = NULL;
    srv_longpolls *ps = calloc(1, sizeof *ps);
    if (!ps)
        return weir_fail(err, WEIR_ENOMEM, "long polls: out of memory");
    ps->counters = counters;
    pthread_mutex_init(&ps->lock, NULL);
    weir_code rc = weir_listen(q, &filter, on_event, ps, &ps->listener, err);
    if (rc) {
        srv_longpolls_destroy(ps);
        return rc;
    }
    *out = ps;
    return WEIR_OK;
}

void srv_longpolls_destroy(srv_longpolls *ps)
{
    if (!ps)
        return;
    weir_unlisten(ps->listener);
    for (poll_loop *d = ps->loops; d;) {
        poll_loop *next = d->next;
        free(d);
        d = next;
    }
    weir__names_fini(&ps->types);
    pthread_mutex_destroy(&ps->lock);
    free(ps);
}
