/* work_batch.c - what a persistent queue does in its store, a batch at a time: see work_store.h. */
#include "bus/work_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    LEASE_MS = WEIR_DEFAULT_LEASE_MS, RENEW_MS = LEASE_MS / 3,
    RETRY_MS = 500,                     /* after the store has failed */
    AT_ONCE_BYTES = 16 * 1024 * 1024,   /* of the messages of a batch, but always one */
    AHEAD = 4, AHEAD_MIN = 16           /* jobs held for each processor, and at least */
};

/* ---- messages that were added ---- */

void weir__work_free_early(work_store *s)
{
    WEIR_EACH(job_end, e, &s->early, d.link)
        free(e);
    s->early = (weir_dlist){ 0 };
}

static void added(weir_workqueue *q, batch *b)
{
    work_store *s = q->store;
    size_t      i = 0;
    WEIR_EACH(adding, a, &b->adds, link) {
        uint64_t id = b->added[i++].id;
        if (b->err[PART_ADD].code) {
            weir__work_refuse(q, a->message, a->accepted, b->err[PART_ADD].msg);
        } else {
            weir_message *sender = weir__message_asker(a->message);
            work         *w = weir__map_get(&s->held, id);
            weir__work_accept(q, a->accepted);
            if (w && !w->message)
                w->message = sender;
            else
                weir__work_put_sender(s, id, sender);
        }
        s->n_adds--;
        s->add_bytes -= a->size;
        weir_message_free(a->message);
        weir__buf_fini(&a->values);
        free(a);
    }
    weir__work_free_early(s);
}

/* ---- jobs that have ended ---- */

static weir_ending ending_of(const work *w)
{
    weir_ending e = { .id = w->job->id, .delivery = w->job->delivery,
                      .outcome = w->ending.outcome };
    if (e.outcome == WEIR_OUTCOME_FAIL)
        e.text = w->ending.text;
    if (e.outcome == WEIR_OUTCOME_DONE && w->ending.reply) {
        e.text = weir_message_body(w->ending.reply, &e.len);
        if (e.len > WEIR_MAX_DATA || strcmp(e.text, "null") == 0)
            e.text = NULL, e.len = 0;
    }
    return e;
}

/* The store has it, or it is another's by now: the processor's answer counts all the same. */
static void ended(weir_workqueue *q, work *w)
{
    work_store  *s = q->store;
    work_ending *e = &w->ending;
    weir__map_remove(&s->held, w->job->id);
    if (e->outcome == WEIR_OUTCOME_RETURN) {
        weir__work_put_sender(s, w->job->id, w->message);
        w->message = NULL;
    } else if (e->to) {
        weir__work_answer(e->to, e->reply, e->failure, e->code, e->text ? e->text : "");
    }
    weir__work_unref(q, w);
}

/* Operations that the store did not receive are sent again, first. */
static void ends_done(weir_workqueue *q, batch *b)
{
    work_store *s = q->store;
    size_t      i = 0;
    weir_link  *before = NULL;
    WEIR_EACH(work, w, &b->ends, ending.link) {
        weir_error *err = b->err[PART_END].code ? &b->err[PART_END] : &b->ended[i].err;
        i++;
        weir__list_remove(&b->ends, &w->ending.link);
        if (weir_code_may_retry(err->code) && !s->closing) {
            weir__list_insert(&s->endings, before, &w->ending.link);
            before = &w->ending.link;
            s->n_endings++;
            weir__work_set_timer(q, RETRY_MS);
        } else {
            ended(q, w);
        }
    }
}

/* ---- jobs that are taken ---- */

size_t weir__work_wanted(const weir_workqueue *q)
{
    const work_store *s = q->store;
    size_t slots = q->stats.idle + q->stats.busy, most = slots * AHEAD;
    most = !slots || s->closing ? 0 : most < AHEAD_MIN ? AHEAD_MIN : most;
    most = s->held.n < most ? most - s->held.n : 0;
    return most < WORK_AT_ONCE ? most : WORK_AT_ONCE;
}

static void taken(weir_workqueue *q, batch *b)
{
    work_store *s = q->store;
    if (b->err[PART_TAKE].code)
        weir__work_set_timer(q, RETRY_MS);
    else if (b->n_take && !b->n_taken)
        s->more = false;
    for (size_t i = 0; i < b->n_taken; i++) {
        weir_job     *j = b->job[i];
        weir_message *m = weir__map_remove(&s->senders, j->id);
        work         *w = weir__work_create(q, m, j);
        if (!w || !weir__map_put(&s->held, j->id, w)) {
            weir__work_put_sender(s, j->id, m);     /* no memory: again when its lease is over */
            if (w) {
                w->message = NULL;
                weir__work_free(q, w);
            } else {
                weir_job_free(j);
            }
            continue;
        }
        weir__work_read_headers(w);
        weir__work_enqueue(q, w, false);
    }
}

/* A lease that is lost: the job was changed by hand, or this process was away for too long. */
static void renewed(weir_workqueue *q, batch *b)
{
    for (size_t i = 0; i < b->n_leases; i++) {
        work *w = weir__map_get(&q->store->held, b->leases[i].id);
        if (b->renewed[i].err.code != WEIR_ESTALE || !w || w->ending.set || w->done ||
            w->job->delivery != b->leases[i].delivery)
            continue;
        weir__map_remove(&q->store->held, w->job->id);
        weir__work_put_sender(q->store, w->job->id, w->message);
        w->message = NULL;
        weir__work_end(q, w);
    }
}

/* ---- a batch ---- */

static void batch_done(delivery *d)
{
    batch          *b = (batch *)d;
    weir_workqueue *q = b->q;
    for (int i = 0; i < PARTS; i++)
        weir_future_free(b->future[i]);
    q->store->batch = NULL;
    added(q, b);
    ends_done(q, b);
    renewed(q, b);
    taken(q, b);
    free(b->leases);
    free(b->renewed);
    free(b);
    weir__work_dispatch(q);
    weir__work_update_known(q->store);
    weir__work_flush(q);
}

static void part_done(batch *b)
{
    if (atomic_fetch_sub(&b->left, 1) == 1)
        weir__mailbox_call(b->q->mb, &b->d);
}

#define PART_CALLBACK(name, which)                                                                \
    static void name(weir_code code, const weir_error *err, void *ctx)                            \
    {                                                                                             \
        batch *b = ctx;                                                                           \
        if (code)                                                                                 \
            b->err[which] = *err;                                                                 \
        part_done(b);                                                                             \
    }
PART_CALLBACK(add_is_done, PART_ADD)
PART_CALLBACK(end_is_done, PART_END)
PART_CALLBACK(take_is_done, PART_TAKE)
PART_CALLBACK(renew_is_done, PART_RENEW)

static weir_code submit_adds(weir_workqueue *q, batch *b)
{
    work_store *s = q->store;
    size_t      bytes = 0;
    weir_spec  *spec = calloc(WORK_AT_ONCE, sizeof *spec);
    while (spec && s->adds.first && b->n_adds < WORK_AT_ONCE) {
        adding *a = WEIR_OF(s->adds.first, adding, link);
        if (b->n_adds && bytes + a->size > AT_ONCE_BYTES)
            break;
        bytes += a->size;
        weir__list_remove(&s->adds, &a->link);
        weir__list_append(&b->adds, &a->link);
        weir_spec *p = &spec[b->n_adds++];
        p->type = s->type;
        p->data = weir_message_body(a->message, &p->data_len);
        p->values = a->values.data;
        p->values_len = a->values.len;
        p->remove_on_complete = true;
        p->max_lost = WEIR_MAX_ATTEMPTS;    /* a restart is not the work's fault */
    }
    weir_code rc = spec ? weir_add_many_async(s->queue, spec, b->n_adds, NULL, b->added,
                                              &b->future[PART_ADD], &b->err[PART_ADD])
                        : WEIR_ENOMEM;
    free(spec);
    return rc;
}

static weir_code submit_ends(weir_workqueue *q, batch *b)
{
    work_store *s = q->store;
    while (s->endings.first && b->n_ends < WORK_AT_ONCE) {
        work *w = WEIR_OF(s->endings.first, work, ending.link);
        weir__list_remove(&s->endings, &w->ending.link);
        weir__list_append(&b->ends, &w->ending.link);
        s->n_endings--;
        b->ending[b->n_ends++] = ending_of(w);
    }
    return weir_finish_async(s->queue, b->ending, b->n_ends, b->ended, &b->future[PART_END],
                             &b->err[PART_END]);
}

static weir_code submit_take(weir_workqueue *q, batch *b)
{
    const char *types[] = { q->store->type, NULL };
    weir_taking what = { .remote = true, .types = types, .n = b->n_take, .lease_ms = LEASE_MS };
    return weir_take_async(q->store->queue, &what, b->job, &b->n_taken, &b->future[PART_TAKE],
                               &b->err[PART_TAKE]);
}

static weir_code submit_renew(weir_workqueue *q, batch *b)
{
    work_store *s = q->store;
    size_t      pos = 0;
    uint64_t    id;
    void       *w;
    b->leases = calloc(s->held.n, sizeof *b->leases);
    b->renewed = calloc(s->held.n, sizeof *b->renewed);
    while (b->leases && b->renewed && weir__map_next(&s->held, &pos, &id, &w) &&
           b->n_leases < WEIR_MAX_ADD)
        if (!((work *)w)->ending.set)
            b->leases[b->n_leases++] = (weir_lease){ .id = id, .lease_ms = LEASE_MS,
                                                     .delivery = ((work *)w)->job->delivery };
    s->renew_at = weir__monotonic_ms() + RENEW_MS;
    if (!b->n_leases)
        return WEIR_OK;
    return weir_renew_async(s->queue, b->leases, b->n_leases, b->renewed, &b->future[PART_RENEW],
                            &b->err[PART_RENEW]);
}

static void signal_stopped(weir_workqueue *q)
{
    pthread_mutex_lock(&q->lock);
    q->store->stopped = true;
    pthread_cond_broadcast(&q->store->changed);
    pthread_mutex_unlock(&q->lock);
}

/* The parts of the next batch, a bit for each. */
static unsigned parts_due(const weir_workqueue *q, size_t *take)
{
    const work_store *s = q->store;
    *take = s->more ? weir__work_wanted(q) : 0;
    return (s->adds.first ? 1u << PART_ADD : 0) | (s->endings.first ? 1u << PART_END : 0) |
           (*take ? 1u << PART_TAKE : 0) |
           (s->held.n && s->renew_at <= weir__monotonic_ms() ? 1u << PART_RENEW : 0);
}

void weir__work_flush(weir_workqueue *q)
{
    static weir_code (*const submit[PARTS])(weir_workqueue *, batch *) = {
        [PART_ADD] = submit_adds, [PART_END] = submit_ends, [PART_TAKE] = submit_take,
        [PART_RENEW] = submit_renew };
    static weir_future_fn *const done[PARTS] = {
        [PART_ADD] = add_is_done, [PART_END] = end_is_done, [PART_TAKE] = take_is_done,
        [PART_RENEW] = renew_is_done };
    work_store *s = q->store;
    if (s->batch)
        return;
    atomic_store(&s->hungry, true);
    s->more |= atomic_exchange(&s->news, false) || s->adds.first;
    size_t   take;
    unsigned due = parts_due(q, &take);
    if (s->held.n)
        weir__work_set_timer(q, s->renew_at - weir__monotonic_ms());
    if (!due && s->closing)
        signal_stopped(q);
    batch *b = due ? calloc(1, sizeof *b) : NULL;
    if (!b) {
        if (due)
            weir__work_set_timer(q, RETRY_MS);
        return;
    }
    s->batch = b;
    if (s->adds.first)
        atomic_store(&s->known, true);
    b->d.call = batch_done;
    b->q = q;
    b->n_take = take;
    b->left = PARTS;
    for (int i = 0; i < PARTS; i++) {
        weir_code rc = due & 1u << i ? submit[i](q, b) : WEIR_OK;
        if (rc && !b->err[i].code)
            weir_fail(&b->err[i], rc, "out of memory");
        if (!b->future[i] || weir_future_then(b->future[i], done[i], b))
            part_done(b);
    }
}
