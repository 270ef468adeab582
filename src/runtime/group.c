/* group.c - tickets that run together under one future: see group.h. */
#include "runtime/group.h"

void weir__group_init(weir_group *g, weir_queue *q, weir_future *f, weir_group_one *one, size_t n)
{
    *g = (weir_group){ .q = q, .future = f, .n = n, .one = one };
}

static void end_some(weir_group *g, size_t n)
{
    const weir_error none = { .code = WEIR_OK };
    if (atomic_fetch_sub(&g->left, n) == n)
        weir__future_end(g->future, &none, g->fill, g->ctx);
}

/* The store named the time of the next TICK in this answer and does not repeat it. */
static void set_timer(weir_queue *q, const weir_op *op)
{
    if (op->kind == WEIR_OP_TICK && !op->err.code)
        weir__timer_set(&q->timer, &q->tick, weir__queue_steady_of(q, op->u.tick.next_at));
}

static void answered(weir_ticket *t)
{
    weir_group *g = ((weir_group_one *)((char *)t - offsetof(weir_group_one, ticket)))->group;
    set_timer(g->q, &t->op);
    end_some(g, 1);
}

/* Link the tickets of a lane. Returns how many there are. */
static size_t link_lane(weir_group *g, weir_batcher *lane, weir_ticket **first)
{
    size_t        count = 0;
    weir_ticket **link = first;
    for (size_t i = 0; i < g->n; i++) {
        weir_ticket *t = &g->one[i].ticket;
        if (t->op.err.code || weir__queue_batcher(g->q, t->op.kind) != lane)
            continue;
        g->one[i].group = g;
        t->done = answered;
        t->detached = false;
        *link = t;
        link = &t->next;
        count++;
    }
    *link = NULL;
    return count;
}

/* The queue is closed: none of the linked tickets runs. */
static void refuse(weir_group *g, weir_ticket *first, size_t count)
{
    weir_error why = first->op.err;
    for (weir_ticket *t = first, *next; t; t = next) {
        next = t->next;
        t->op.err = why;
    }
    end_some(g, count);
}

void weir__group_start(weir_group *g, void (*fill)(void *ctx, bool wanted), void *ctx)
{
    weir_queue  *q = g->q;
    weir_ticket *first[WEIR_LANE_COUNT] = { 0 };
    size_t       count[WEIR_LANE_COUNT] = { 0 };
    g->fill = fill;
    g->ctx = ctx;
    atomic_store(&g->left, 1);          /* ours, so that the group stays */
    for (unsigned i = 0; i < WEIR_LANE_COUNT; i++)
        count[i] = link_lane(g, &q->batcher[i], &first[i]);
    for (unsigned i = 0; i < WEIR_LANE_COUNT; i++) {
        atomic_fetch_add(&g->left, count[i]);
        if (count[i] && weir__batcher_submit_all(&q->batcher[i], first[i]))
            refuse(g, first[i], count[i]);
    }
    end_some(g, 1);
}
