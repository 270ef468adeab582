/* mover.c - moving jobs, a bulk at a time: park, import, mark, release, remove. See mover.h. */
#include "cli/migrate/mover_inner.h"

#include <stdlib.h>
#include <string.h>

/* A job that is parked is delayed until PARKED and its own time; in the source MARKED and its own
 * time, once the target has it. A job for after the year 2793 (the span) is as good as parked. */
#define PARKED WEIR_PARKED_AT
#define MARKED (WEIR_PARKED_AT + WEIR_PARKED_SPAN)

enum {
    WAITING       = WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_DELAYED),
    AGAIN_MS      = 60000,                  /* what was refused, when following */
    IMPORT_BYTES  = 16 * 1024 * 1024        /* in one call, about */
};

void mover_fini(mover *m)
{
    free(m->refused.slot);
    m->refused = (mover_refused){ 0 };
}

/* ---- calls of a bulk ---- */

weir_code mover_await(bulk *l, weir_error *err)
{
    weir_code rc = WEIR_OK;
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (d->f)
            weir_future_wait(d->f, WEIR_FOREVER, &d->err);
        weir_future_free(d->f);
        d->f = NULL;
        weir_code got = d->err.code;
        if (got && got != WEIR_ENOENT && got != WEIR_ESTATE && !rc) {
            rc = got;
            *err = d->err;
        }
    }
    return rc;
}

static void begin_calls(bulk *l)
{
    for (size_t i = 0; i < l->n; i++)
        l->load[i].err = (weir_error){ 0 };
}

static void empty(bulk *l)
{
    for (size_t i = 0; i < l->n; i++) {
        weir_job_free(l->load[i].job);
        weir_job_free(l->load[i].got);
        move_log_fini(&l->load[i].log);
    }
    l->n = 0;
}

/* ---- 1: park ---- */

static bool is_parked(const weir_job *j)
{
    return j->state == WEIR_STATE_DELAYED && j->promote_at >= PARKED;
}

static bool needs_parking(const weir_job *j)
{
    return !mover_ended(j->state) && j->promote_at < WEIR_PARKED_SPAN;
}

static int64_t time_before_parking(const weir_job *parked)
{
    return (parked->promote_at - PARKED) % WEIR_PARKED_SPAN;
}

static weir_code park(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        d->promote_at = d->job->promote_at;
        if (is_parked(d->job)) {                /* by an earlier run, which has not come further */
            d->parked = true;
            d->marked = d->promote_at >= MARKED;
            d->promote_at = time_before_parking(d->job);
        } else if (needs_parking(d->job)) {
            weir_change away = { .run_at = PARKED + d->promote_at, .from = WAITING };
            d->parked = true;
            weir_update_async(m->from, d->job->id, &away, NULL, &d->f, &d->err);
        }
    }
    weir_code rc = mover_await(l, err);
    for (size_t i = 0; i < l->n; i++)
        l->load[i].off = l->load[i].err.code != WEIR_OK;
    return rc;
}

/* Parked jobs are read again: a worker may have changed them after they were listed. Only its own
 * time was lost by that, if its attempt failed: then it is tried again without waiting. */
static void settle(load *d, int64_t now)
{
    weir_job *was = d->job, *is = d->parked ? d->got : d->job;
    int64_t   until = (d->marked ? MARKED : PARKED) + d->promote_at;
    d->off = d->off || !is || (d->parked && (!is_parked(is) || is->promote_at != until));
    d->copy = d->off ? *was : *is;
    d->state = d->copy.state;
    if (d->off || !is_parked(is))
        return;
    d->state = d->promote_at > now ? WEIR_STATE_DELAYED : WEIR_STATE_INACTIVE;
    d->copy.promote_at = PARKED + d->promote_at;
    if (!is_parked(was) && was->delivery == is->delivery)
        d->state = was->state;
}

static weir_code read_parked(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (d->parked && !d->off)
            weir_get_async(m->from, d->job->id, &d->got, &d->f, &d->err);
    }
    weir_code rc = mover_await(l, err);
    for (size_t i = 0; !rc && i < l->n; i++)
        settle(&l->load[i], weir_now(m->from));
    return rc;
}

/* Take the parking back: the job stays. */
static weir_code unpark(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load       *d = &l->load[i];
        weir_change back = { .run_at = d->promote_at ? d->promote_at : 1,
                             .from = WEIR_BIT(WEIR_STATE_DELAYED) };
        if (d->parked && d->refusal.code)
            weir_update_async(m->from, d->job->id, &back, NULL, &d->f, &d->err);
    }
    return mover_await(l, err);
}

/* Read the logs of all jobs, or of the jobs that just got a line. */
static weir_code read_logs(mover *m, bulk *l, bool only_renamed, weir_error *err)
{
    weir_job *jobs[MOVER_BULK];
    move_log *logs = calloc(MOVER_BULK, sizeof *logs);
    if (!logs)
        return weir_fail(err, WEIR_ENOMEM, "out of memory");
    for (size_t i = 0; i < l->n; i++)
        jobs[i] = l->load[i].off || (only_renamed && !l->load[i].renamed) ? NULL : l->load[i].job;
    weir_code rc = move_read_logs(m->from, jobs, l->n, logs, err);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (!jobs[i])
            continue;
        move_log_fini(&d->log);
        d->log = logs[i];
        d->off = d->off || logs[i].gone;
    }
    free(logs);
    return rc;
}

/* ---- 2: import ---- */

/* What becomes of a job that is in the target already? It was imported by an earlier run and has
 * gone on from there; but a copy (--keep) may also have fallen behind. */
static bool is_behind(const weir_job *source, const weir_job *target)
{
    bool too_late = source->state == WEIR_STATE_FAILED && source->deadline_at &&
                    source->deadline_at <= source->finished_at;     /* while it was parked */
    if (target->delivery != source->delivery)
        return target->delivery < source->delivery;
    if (mover_ended(source->state) != mover_ended(target->state))
        return !too_late;
    return target->attempts < source->attempts;
}

static void arrived(load *d, const weir_imported *o, weir_error *why)
{
    if (why && why->code) {
        d->refusal = *why;
    } else if (o->err.code) {
        d->refusal = o->err;
    } else {
        d->arrived = true;
        d->existed = o->existed;
        d->waits_there = d->parked && !o->existed;
        d->at = o->id;
    }
}

/* Not with this id, but the next may do. */
static void try_next(load *d)
{
    d->arrived = d->existed = false;
    d->refusal = (weir_error){ 0 };
    if (++d->copy.id >= d->id + MOVER_OTHER_IDS)
        weir_fail(&d->refusal, WEIR_ESTATE, "job %llu: no id from %llu on will do",
                  (unsigned long long)d->job->id, (unsigned long long)d->id);
}

/* One by one: the call failed for one of them. */
static weir_code import_each(mover *m, bulk *l, const size_t *which, const weir_incoming *in,
                             size_t n, weir_imported *out, weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        weir_error why = { 0 };
        weir_code  rc = weir_import(m->to, &in[i], 1, &out[i], &why);
        if (rc && rc != WEIR_EINVAL && rc != WEIR_ELIMIT) {
            *err = why;
            return rc;
        }
        arrived(&l->load[which[i]], &out[i], &why);
    }
    return WEIR_OK;
}

static weir_code import_some(mover *m, bulk *l, const size_t *which, const weir_incoming *in,
                             size_t n, weir_error *err)
{
    weir_imported *out = calloc(n, sizeof *out);
    if (!out)
        return weir_fail(err, WEIR_ENOMEM, "out of memory");
    weir_code rc = weir_import(m->to, in, n, out, err);
    if (rc == WEIR_EINVAL || rc == WEIR_ELIMIT) {
        rc = import_each(m, l, which, in, n, out, err);
    } else {
        for (size_t i = 0; !rc && i < n; i++)
            arrived(&l->load[which[i]], &out[i], NULL);
    }
    for (size_t i = 0; !rc && i < n; i++) {
        load *d = &l->load[which[i]];
        bool  taken = out[i].id_taken, same;
        if (out[i].err.code && out[i].err.code != WEIR_ESTATE) {        /* of a partition */
            *err = out[i].err;
            rc = err->code;
        }
        if (!rc && d->existed && d->id) {
            rc = mover_is(m, d, d->at, &same, err);
            taken = !same;
        }
        if (!rc && taken && d->id)
            try_next(d);
    }
    free(out);
    return rc;
}

static size_t bytes_of(const load *d)
{
    size_t bytes = d->copy.data_len + d->copy.result_len + d->copy.progress_data_len +
                   d->copy.history_len;
    for (size_t i = 0; i < d->log.n; i++)
        bytes += strlen(d->log.line[i].text);
    return bytes;
}

/* Until each has arrived or is refused. */
static weir_code import_all(mover *m, bulk *l, weir_error *err)
{
    weir_incoming in[MOVER_BULK];
    size_t        which[MOVER_BULK], n = 0, bytes = 0;
    weir_code     rc = WEIR_OK;
    do {
        n = bytes = 0;
        for (size_t i = 0; i < l->n && bytes < IMPORT_BYTES; i++) {
            load *d = &l->load[i];
            if (d->off || d->arrived || d->refusal.code)
                continue;
            which[n] = i;
            in[n++] = (weir_incoming){ .job = &d->copy, .lines = d->log.line, .n_lines = d->log.n,
                                       .new_id = m->new_ids && m->keep };
            bytes += bytes_of(d);
        }
        rc = n ? import_some(m, l, which, in, n, err) : WEIR_OK;
    } while (n && !rc);
    return rc;
}

/* Those that were there already: are they what is to be removed here? */
static weir_code compare_existing(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (!d->existed || d->marked)
            continue;
        weir_job_free(d->got);
        d->got = NULL;
        weir_get_async(m->to, d->at, &d->got, &d->f, &d->err);
    }
    weir_code rc = mover_await(l, err);
    for (size_t i = 0; !rc && i < l->n; i++) {
        load *d = &l->load[i];
        if (!d->existed || d->marked || !d->got)
            continue;
        d->waits_there = d->parked && is_parked(d->got);
        if (!is_behind(&d->copy, d->got))
            continue;
        d->arrived = d->waits_there = false;
        weir_fail(&d->refusal, WEIR_ESTATE, "job %llu: the target has it, but not so far on; "
                  "remove it here or there", (unsigned long long)d->job->id);
    }
    return rc;
}

/* Those that an earlier run has marked: is the copy in the target still parked? If not, it has gone
 * on there, and may have ended and be gone. */
static weir_code find_marked(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (!d->marked || d->off)
            continue;
        if (!d->id)
            d->at = d->job->id;
        d->arrived = d->existed = true;
        weir_job_free(d->got);
        d->got = NULL;
        if (d->at)
            weir_get_async(m->to, d->at, &d->got, &d->f, &d->err);
    }
    weir_code rc = mover_await(l, err);
    for (size_t i = 0; !rc && i < l->n; i++) {
        load *d = &l->load[i];
        if (d->marked && d->got)
            d->waits_there = is_parked(d->got) && !strcmp(d->got->type, d->job->type) &&
                             d->got->created_at == d->job->created_at;
    }
    return rc;
}

/* ---- 3: mark ---- */

/* A job that somebody has removed or cancelled in the source meanwhile has not moved: its copy,
 * which nobody can have taken, goes again. */
static weir_code take_back(mover *m, bulk *l, weir_error *err)
{
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        bool  gone = d->err.code == WEIR_ENOENT || d->err.code == WEIR_ESTATE;
        d->err = (weir_error){ 0 };
        if (!gone)
            continue;
        d->arrived = false;
        if (d->waits_there)
            weir_remove_async(m->to, d->at, &d->f, &d->err);
        d->waits_there = false;
    }
    return mover_await(l, err);
}

static weir_code mark(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load       *d = &l->load[i];
        weir_change change = { .run_at = MARKED + d->promote_at,
                               .from = WEIR_BIT(WEIR_STATE_DELAYED) };
        if (d->arrived && d->parked && !d->marked)
            weir_update_async(m->from, d->job->id, &change, NULL, &d->f, &d->err);
    }
    weir_code rc = mover_await(l, err);
    return rc ? rc : take_back(m, l, err);
}

/* ---- 4: release, 5: remove ---- */

static weir_code release_all(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++) {
        load       *d = &l->load[i];
        weir_change change = { .run_at = d->promote_at ? d->promote_at : 1,
                               .from = WEIR_BIT(WEIR_STATE_DELAYED) };
        if (d->waits_there)
            weir_update_async(m->to, d->at, &change, NULL, &d->f, &d->err);
    }
    return mover_await(l, err);
}

static weir_code remove_all(mover *m, bulk *l, weir_error *err)
{
    begin_calls(l);
    for (size_t i = 0; i < l->n; i++)
        if (l->load[i].arrived)
            weir_remove_async(m->from, l->load[i].job->id, &l->load[i].f, &l->load[i].err);
    return mover_await(l, err);
}

/* ---- a bulk ---- */

static weir_code count(mover *m, const bulk *l, uint64_t *n, weir_error *err)
{
    int64_t until = m->follow ? weir_now(m->from) + AGAIN_MS : INT64_MAX;
    for (size_t i = 0; i < l->n; i++) {
        const load *d = &l->load[i];
        if (d->refusal.code && mover_refuse(&m->refused, d->job->id, until, d->refusal.msg, err))
            return err->code;
        if (!d->arrived)
            continue;
        mover_unrefuse(&m->refused, d->job->id);
        m->moved[d->state]++;
        m->moved[WEIR_STATE_ANY]++;
        m->existed += d->existed;
        *n += !(m->keep && d->existed);
    }
    return WEIR_OK;
}

/* Jobs that an earlier run has begun are found, and the others get their ids. */
static weir_code identify(mover *m, bulk *l, weir_error *err)
{
    weir_code rc = mover_find(m, l, err);
    if (!rc)
        rc = find_marked(m, l, err);
    if (!rc && m->new_ids)
        rc = mover_name(m, l, err);
    if (!rc && m->new_ids)
        rc = read_logs(m, l, true, err);
    for (size_t i = 0; !rc && i < l->n; i++)
        if (l->load[i].id)
            l->load[i].copy.id = l->load[i].id;
    return rc;
}

/* The steps that mover.h names; each is done for the whole bulk before the next begins. */
static weir_code move_bulk(mover *m, bulk *l, uint64_t *n, weir_error *err)
{
    weir_code rc = WEIR_OK;
    if (!m->keep && !mover_ended(l->state))
        rc = park(m, l, err);
    if (!rc)
        rc = read_parked(m, l, err);
    if (!rc)
        rc = read_logs(m, l, false, err);
    if (!rc && !m->keep)
        rc = identify(m, l, err);
    if (!rc)
        rc = import_all(m, l, err);
    if (!rc && !m->keep)
        rc = compare_existing(m, l, err);
    if (!rc && !m->keep)
        rc = mark(m, l, err);
    if (!rc && !m->keep)
        rc = release_all(m, l, err);
    if (!rc && !m->keep)
        rc = remove_all(m, l, err);
    if (!rc && !m->keep)
        rc = unpark(m, l, err);
    return rc ? rc : count(m, l, n, err);
}

/* ---- a pass ---- */

static void fill(mover *m, bulk *l, weir_page *page, const weir_query *query)
{
    int64_t now = weir_now(m->from);
    memset(l, 0, sizeof *l);
    l->state = query->state;
    for (size_t i = 0; i < page->n; i++) {
        const weir_job *j = page->job[i];
        bool            parked = is_parked(j);
        if (mover_leaves(&m->refused, j->id, now) || (query->descending && !parked))
            continue;
        if (!parked && j->updated_at > now - m->quiet_ms) {
            m->unquiet += j->created_at <= m->began_at;
            continue;
        }
        l->load[l->n++].job = page->job[i];
        page->job[i] = NULL;
    }
}

static weir_code pass_some(mover *m, bulk *l, weir_query query, uint64_t *n, weir_error *err)
{
    weir_code rc = WEIR_OK;
    query.limit = MOVER_BULK;
    for (bool more = true; more && !rc && !m->stopped;) {
        weir_page *page;
        rc = weir_list(m->from, &query, &page, err);
        if (rc)
            break;
        more = page->more && !(query.descending && !is_parked(page->job[page->n - 1]));
        query.after = page->next;
        fill(m, l, page, &query);
        weir_page_free(page);
        rc = move_bulk(m, l, n, err);
        empty(l);
        m->stopped = m->report && m->report(m, m->ctx);
    }
    return rc;
}

/* Jobs that an earlier run has parked come first: they are the last of the delayed ones. */
weir_code mover_pass(mover *m, uint64_t *n, weir_error *err)
{
    static const weir_query order[] = {
        { .state = WEIR_STATE_DELAYED, .descending = true }, { .state = WEIR_STATE_INACTIVE },
        { .state = WEIR_STATE_DELAYED }, { .state = WEIR_STATE_COMPLETE },
            { .state = WEIR_STATE_FAILED },
        { .state = WEIR_STATE_CANCELLED },
    };
    bulk *l = malloc(sizeof *l);
    *n = m->unquiet = 0;
    if (!l)
        return weir_fail(err, WEIR_ENOMEM, "out of memory");
    weir_code rc = WEIR_OK;
    for (size_t i = m->keep; !rc && !m->stopped && i < sizeof order / sizeof *order; i++)
        rc = pass_some(m, l, order[i], n, err);
    free(l);
    return rc;
}
