/* tick.c - what time does to jobs. */
#include "core/tick.h"

#include <assert.h>
#include <stdlib.h>

#include "base/grow.h"

/* ---- one job ---- */

bool weir__job_is_due(const weir_job *j, weir_due sort)
{
    return sort == WEIR_DUE_WAITING ? j->state == WEIR_STATE_INACTIVE ||
        j->state == WEIR_STATE_DELAYED
                                    : j->state == WEIR_STATE_ACTIVE;
}

void weir__job_come_due(weir_job *j, weir_due sort, int64_t now, weir_effects *e)
{
    assert(weir__job_is_due(j, sort));
    if (sort == WEIR_DUE_LEASE)
        weir__job_lose(j, now, e);
    else if (sort == WEIR_DUE_TTL)
        weir__job_exceed(j, now, e);
    else if (j->deadline_at && j->deadline_at <= now)
        weir__job_expire(j, now, e);
    else
        weir__job_promote(j, now, e);
}

int64_t weir__keep_until(weir_kept kept, int64_t finished_at)
{
    if (kept.keep->count && kept.n > (uint64_t)kept.keep->count)
        return INT64_MIN;
    return kept.keep->age_ms ? finished_at + kept.keep->age_ms : INT64_MAX;
}

/* ---- settings ---- */

const weir_settings weir__default_settings = {
    .keep_complete = { WEIR_DEFAULT_KEEP_COMPLETE_MS, WEIR_DEFAULT_KEEP_COMPLETE },
    .keep_failed = { WEIR_DEFAULT_KEEP_FAILED_MS, 0 },
};

static weir_keep keep_in(const weir_keep *given, const weir_keep *preset)
{
    if (!given->age_ms && !given->count)
        return *preset;
    return (weir_keep){ given->age_ms == WEIR_FOREVER ? 0 : given->age_ms, given->count };
}

weir_settings weir__settings_in(const weir_settings *given, bool defaults)
{
    static const weir_settings none;
    const weir_settings       *preset = defaults ? &weir__default_settings : &none;
    return (weir_settings){
        .keep_complete = keep_in(&given->keep_complete, &preset->keep_complete),
        .keep_failed = keep_in(&given->keep_failed, &preset->keep_failed),
        .search = given->search,
    };
}

static weir_keep keep_out(const weir_keep *kept)
{
    return (weir_keep){ kept->age_ms || kept->count ? kept->age_ms : WEIR_FOREVER, kept->count };
}

weir_settings weir__settings_out(const weir_settings *kept)
{
    return (weir_settings){ .keep_complete = keep_out(&kept->keep_complete),
                            .keep_failed = keep_out(&kept->keep_failed), .search = kept->search };
}

/* ---- when a TICK is wanted ---- */

void weir__agenda_init(weir_agenda *a)
{
    for (int sort = 0; sort < WEIR_DUE_COUNT; sort++)
        a->at[sort] = INT64_MAX;
    a->wanted = a->announced = INT64_MAX;
}

void weir__agenda_follow(weir_agenda *a, const weir_job *j, int64_t ttl_until, weir_kept kept)
{
    if (j->state == WEIR_STATE_ACTIVE) {
        weir__agenda_want(a, WEIR_DUE_LEASE, j->lease_until);
        weir__agenda_want(a, WEIR_DUE_TTL, ttl_until);
    } else if (weir__finished(j->state)) {
        weir__agenda_want(a, WEIR_DUE_FINISHED, weir__keep_until(kept, j->finished_at));
    } else if (weir__job_due(j)) {
        weir__agenda_want(a, WEIR_DUE_WAITING, weir__job_due(j));
    }
}

void weir__agenda_doubt(weir_agenda *a)
{
    for (int sort = 0; sort < WEIR_DUE_COUNT; sort++)
        a->at[sort] = INT64_MIN;
    a->wanted = INT64_MIN;
    a->announced = INT64_MAX;
}

bool weir__agenda_announce(weir_agenda *a, int64_t *at)
{
    *at = a->wanted;
    a->wanted = INT64_MAX;
    if (*at >= a->announced)
        return false;
    a->announced = *at;
    return true;
}

/* ---- running one ---- */

typedef struct run {
    weir_agenda         *a;
    const weir_tick_ops *ops;
    void                *store;
    int64_t              now;
    size_t               limit;
    size_t               changed;       /* jobs */
} run;

bool weir__due_add(weir_due_list *list, uint64_t id)
{
    if (!weir__grow(&list->id, &list->cap, list->n + 1, sizeof *list->id))
        return false;
    list->id[list->n++] = id;
    return true;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Jobs that were due at `until` are changed one by one. */
static weir_code change_until(run *r, weir_due sort, int64_t until)
{
    weir_due_list list = { 0 };
    weir_code     rc = r->ops->find(r->store, sort, until, r->limit, &list);
    if (sort != WEIR_DUE_WAITING && list.n)
        qsort(list.id, list.n, sizeof *list.id, by_id);
    for (size_t i = 0; !rc && i < list.n && i < r->limit; i++) {
        rc = r->ops->change(r->store, sort, list.id[i], r->now);
        r->changed += !rc;
    }
    free(list.id);
    if (!rc)
        r->a->at[sort] = r->ops->earliest(r->store, sort);
    return rc;
}

/* Sorts 1 to 3. */
static weir_code change_jobs(run *r, weir_due sort)
{
    return change_until(r, sort, r->now);
}

/* Remove up to *left jobs of a type in a state. *at: when the next one has to go. */
static weir_code remove_old(run *r, size_t i, weir_state state, size_t *left, int64_t *at)
{
    weir_code rc = WEIR_OK;
    while (!rc) {
        weir_kept kept;
        int64_t   finished_at;
        *at = INT64_MAX;
        if (!r->ops->kept(r->store, i, state, &kept) || !kept.n ||
            (!kept.keep->age_ms && !kept.keep->count))
            break;
        uint64_t id = r->ops->oldest(r->store, i, state, &finished_at);
        if (!id)
            break;
        *at = weir__keep_until(kept, finished_at);
        if (*at > r->now || !*left)
            break;
        rc = r->ops->remove(r->store, id, r->now);
        r->changed += !rc;
        --*left;
    }
    return rc;
}

static weir_code remove_finished(run *r, weir_due sort)
{
    weir_kept kept;
    size_t    left = r->limit;
    int64_t   next = INT64_MAX;
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && r->ops->kept(r->store, i, WEIR_STATE_COMPLETE, &kept); i++) {
        for (weir_state state = WEIR_STATE_COMPLETE; !rc &&
             state <= WEIR_STATE_CANCELLED; state++) {
            int64_t at;
            rc = remove_old(r, i, state, &left, &at);
            if (at < next)
                next = at;
        }
    }
    if (!rc)
        r->a->at[sort] = next;
    return rc;
}

static weir_code forget_tokens(run *r, weir_due sort)
{
    size_t    n = 0;
    weir_code rc = r->ops->forget_tokens(r->store, r->now - WEIR_TOKEN_MS, r->limit, &n);
    if (rc)
        return rc;
    int64_t oldest = r->ops->earliest(r->store, sort);
    r->a->at[sort] = weir__token_until(oldest);
    if (n == r->limit)                  /* there may be more */
        r->a->at[sort] = r->now;
    return WEIR_OK;
}

static weir_code look_at_schedules(run *r, weir_due sort)
{
    r->a->at[sort] = r->ops->earliest(r->store, sort);
    return WEIR_OK;
}

static weir_code (*const do_sort[WEIR_DUE_COUNT])(run *r, weir_due sort) = {
    [WEIR_DUE_LEASE] = change_jobs,
    [WEIR_DUE_TTL] = change_jobs,
    [WEIR_DUE_WAITING] = change_jobs,
    [WEIR_DUE_FINISHED] = remove_finished,
    [WEIR_DUE_TOKENS] = forget_tokens,
    [WEIR_DUE_SCHEDULES] = look_at_schedules,
};

weir_code weir__tick_run(weir_agenda *a, const weir_tick_ops *ops, void *store, int64_t now,
                         size_t limit, size_t *changed, int64_t *next_at, bool *schedules_due)
{
    run       r = { .a = a, .ops = ops, .store = store, .now = now, .limit = limit };
    weir_code rc = WEIR_OK;
    *next_at = INT64_MAX;
    for (weir_due sort = WEIR_DUE_LEASE; sort < WEIR_DUE_COUNT; sort++) {
        if (!rc && a->at[sort] <= now)
            rc = do_sort[sort](&r, sort);
    }
    for (weir_due sort = WEIR_DUE_LEASE; sort < WEIR_DUE_COUNT; sort++) {
        if (a->at[sort] < *next_at && (sort != WEIR_DUE_SCHEDULES || a->at[sort] > now))
            *next_at = a->at[sort];
    }
    *schedules_due = a->at[WEIR_DUE_SCHEDULES] <= now;
    *changed = r.changed;
    a->announced = a->wanted = *next_at;
    return rc;
}

weir_code weir__tick_lose_all(weir_agenda *a, const weir_tick_ops *ops, void *store, int64_t now)
{
    run r = { .a = a, .ops = ops, .store = store, .now = now, .limit = SIZE_MAX };
    return change_until(&r, WEIR_DUE_LEASE, INT64_MAX);
}
