/* poll.c - who waits for jobs: see poll.h.
 *
 * For each type that anybody waits for there is a list of the polls that rest, longest waiting
 * first. The queue's event `enqueue` counts one job on the first of them, which is woken and stays
 * in the list until it is counted on for all it wants or begins to look. When it is not known how
 * many jobs there are (a type is resumed, events were missed, a wake was not used), one poll is
 * woken, and if it gets all it wants it wakes the next: a chain instead of a crowd.
 *
 * One lock guards all of it; it is held for a few pointers at a time, also by the queue's callback
 * thread, which never waits for a loop. */
#include "server/poll.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/named.h"

/* A type that somebody waits for. */
typedef struct poll_type {
    weir_named             named;       /* first: it is found by it */
    uint64_t               told;        /* how often there was a reason to look */
    size_t                 refs;        /* places of polls that have entered */
    weir_dlist             places;      /* of those that rest, or are woken and want more */
    char                   name[];
} poll_type;

/* A poll's place in the list of one of its types. */
typedef struct srv_poll_place {
    poll_type             *type;
    srv_poll              *poll;
    weir_link              link;        /* in the list of its type */
    bool                   in;          /* the list */
} place;

/* What a loop is told: its polls that are to look now. */
typedef struct srv_poll_desk {
    srv_task              task;         /* first: the desk is found by it */
    srv_polls            *polls;
    srv_loop             *loop;
    struct srv_poll_desk *next;
    weir_dlist            woken;        /* of srv_poll */
    bool                  posted;
} desk;

struct srv_polls {
    weir_listener  *ear;
    srv_counters   *counters;
    pthread_mutex_t lock;               /* guards what follows, and all polls */
    weir_names      types;              /* of poll_type */
    desk           *desks;
    uint64_t        turns;
};

/* ---- types ---- */

/* With a reference. NULL: out of memory. */
static poll_type *type_get(srv_polls *ps, const char *name)
{
    poll_type *t = weir__names_get(&ps->types, name);
    if (!t) {
        t = calloc(1, sizeof *t + strlen(name) + 1);
        if (!t || !weir__names_put(&ps->types, &t->named, strcpy(t->name, name))) {
            free(t);
            return NULL;
        }
    }
    t->refs++;
    return t;
}

static void type_unref(srv_polls *ps, poll_type *t)
{
    if (--t->refs)
        return;
    weir__names_remove(&ps->types, &t->named);
    free(t);
}

/* How often there was a reason for this poll to look. */
static uint64_t told(const srv_poll *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n_types; i++)
        sum += p->place[i].type->told;
    return sum;
}

/* ---- lists ---- */

/* Who has waited longer stands before it. One that has only come goes to the end, one that has
 * looked in vain to the front: neither has far to go. */
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

static void line_up(srv_poll *p)
{
    for (size_t i = 0; i < p->n_types; i++)
        line_up_for(p->place[i].type, &p->place[i]);
}

static void step_out(srv_poll *p)
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
static void wake(srv_poll *p)
{
    if (p->state != SRV_POLL_RESTS)
        return;
    desk *d = p->desk;
    p->state = SRV_POLL_WOKEN;
    weir__list_append(&d->woken, &p->link);
    if (!d->posted) {
        d->posted = true;
        srv_loop_post(d->loop, &d->task);
    }
}

/* One job has come. */
static void job_came(poll_type *t)
{
    t->told++;
    place *first = WEIR_OF(t->places.first, place, link);
    if (!first)
        return;
    srv_poll *p = first->poll;
    wake(p);
    if (++p->expected >= p->n)
        step_out(p);
}

/* There may be jobs, nobody knows how many. */
static void some_may_be(poll_type *t)
{
    place *first = WEIR_OF(t->places.first, place, link);
    if (!first)
        return;
    srv_poll *p = first->poll;
    p->chain = true;
    wake(p);
    step_out(p);
}

static void all_look(srv_polls *ps)
{
    size_t     pos = 0;
    poll_type *t = NULL;
    while ((t = weir__names_next(&ps->types, &pos, t))) {
        t->told++;
        some_may_be(t);
    }
}

/* On the queue's callback thread. */
static void on_event(const weir_event *ev, void *ctx)
{
    srv_polls *ps = ctx;
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
        t->told++;
        some_may_be(t);
    }
    pthread_mutex_unlock(&ps->lock);
}

/* On the loop. NULL: none is left to be told. */
static srv_poll *next_woken(desk *d)
{
    pthread_mutex_lock(&d->polls->lock);
    srv_poll *p = WEIR_OF(d->woken.first, srv_poll, link);
    if (p) {
        weir__list_remove(&d->woken, &p->link);
        step_out(p);
        p->state = SRV_POLL_LOOKS;
        p->heard = told(p);
    } else {
        d->posted = false;
    }
    pthread_mutex_unlock(&d->polls->lock);
    return p;
}

static void run_woken(srv_task *task)
{
    desk     *d = (desk *)task;
    srv_poll *p;
    while ((p = next_woken(d)))
        p->look(p);
}

/* ---- coming and going ---- */

/* NULL: out of memory. */
static desk *desk_of(srv_polls *ps, srv_loop *loop)
{
    desk *d = ps->desks;
    while (d && d->loop != loop)
        d = d->next;
    if (d)
        return d;
    d = malloc(sizeof *d);
    if (!d)
        return NULL;
    *d = (desk){ .task.run = run_woken, .polls = ps, .loop = loop, .next = ps->desks };
    ps->desks = d;
    return d;
}

/* Give back what a poll has of its types. */
static void let_go(srv_poll *p)
{
    for (size_t i = 0; i < p->n_types; i++)
        type_unref(p->polls, p->place[i].type);
    free(p->place);
    p->place = NULL;
}

bool srv_poll_enter(srv_polls *ps, srv_poll *p)
{
    size_t n = 0;
    while (p->types[n])
        n++;
    p->polls = ps;
    p->state = SRV_POLL_LOOKS;
    p->n_types = 0;
    p->place = calloc(n, sizeof *p->place);
    if (!p->place)
        return false;
    pthread_mutex_lock(&ps->lock);
    p->desk = desk_of(ps, p->loop);
    for (; p->desk && p->n_types < n; p->n_types++) {
        place *own = &p->place[p->n_types];
        own->poll = p;
        own->type = type_get(ps, p->types[p->n_types]);
        if (!own->type)
            break;
    }
    bool entered = p->n_types == n;
    if (entered) {
        p->turn = ps->turns++;
        p->heard = told(p);
        atomic_fetch_add(&ps->counters->takes_waiting, 1);
    } else {
        let_go(p);
    }
    pthread_mutex_unlock(&ps->lock);
    return entered;
}

bool srv_poll_rest(srv_poll *p)
{
    pthread_mutex_lock(&p->polls->lock);
    uint64_t now = told(p);
    bool     rests = now == p->heard && !p->nudged;
    p->nudged = false;
    p->heard = now;
    p->expected = 0;
    p->chain = false;
    if (rests) {
        p->state = SRV_POLL_RESTS;
        line_up(p);
    }
    pthread_mutex_unlock(&p->polls->lock);
    return rests;
}

bool srv_poll_stand_aside(srv_poll *p)
{
    pthread_mutex_lock(&p->polls->lock);
    bool rests = !p->nudged, owes = p->chain || p->expected;
    p->nudged = false;
    if (rests) {
        p->expected = 0;
        p->chain = false;
        p->state = SRV_POLL_RESTS;
    }
    for (size_t i = 0; rests && owes && i < p->n_types; i++)
        some_may_be(p->place[i].type);
    pthread_mutex_unlock(&p->polls->lock);
    return rests;
}

void srv_poll_wake(srv_poll *p)
{
    pthread_mutex_lock(&p->polls->lock);
    if (p->state == SRV_POLL_RESTS)
        wake(p);
    else if (p->state == SRV_POLL_LOOKS)
        p->nudged = true;
    pthread_mutex_unlock(&p->polls->lock);
}

void srv_poll_leave(srv_poll *p, size_t got)
{
    srv_polls *ps = p->polls;
    pthread_mutex_lock(&ps->lock);
    if (p->state == SRV_POLL_WOKEN)
        weir__list_remove(&p->desk->woken, &p->link);
    if (p->state != SRV_POLL_LOOKS)
        step_out(p);
    bool owes = p->chain || p->expected;
    if (p->state == SRV_POLL_WOKEN || (owes && got == SRV_POLL_FAILED) || (p->chain && got == p->n))
        for (size_t i = 0; i < p->n_types; i++)
            some_may_be(p->place[i].type);
    atomic_fetch_sub(&ps->counters->takes_waiting, 1);
    let_go(p);
    pthread_mutex_unlock(&ps->lock);
}

weir_code srv_polls_create(srv_polls **out, weir_queue *q, srv_counters *counters, weir_error *err)
{
    weir_filter filter = { .events = 1u << WEIR_EVENT_ENQUEUE | 1u << WEIR_EVENT_RESUME |
                                     1u << WEIR_EVENT_STALLED | 1u << WEIR_EVENT_ERROR };
    *out = NULL;
    srv_polls *ps = calloc(1, sizeof *ps);
    if (!ps)
        return weir_fail(err, WEIR_ENOMEM, "long polls: out of memory");
    ps->counters = counters;
    pthread_mutex_init(&ps->lock, NULL);
    weir_code rc = weir_listen(q, &filter, on_event, ps, &ps->ear, err);
    if (rc) {
        srv_polls_destroy(ps);
        return rc;
    }
    *out = ps;
    return WEIR_OK;
}

void srv_polls_destroy(srv_polls *ps)
{
    if (!ps)
        return;
    weir_unlisten(ps->ear);
    for (desk *d = ps->desks; d;) {
        desk *next = d->next;
        free(d);
        d = next;
    }
    weir__names_fini(&ps->types);
    pthread_mutex_destroy(&ps->lock);
    free(ps);
}
