/* active.c - the jobs that workers have, with their leases.
 *
 * Leases are in memory, since this process is the only owner. Workers that outlive the owner
 * (env.keep_taken) must not lose their jobs to the next owner, and jobs of dead workers must run
 * again. So the file has the lease of each job. lease_ms of the job is what the take asked for, and
 * its lease began at started_at. A renewal is a row in `lease`, so that it need not write the job
 * and its data again; the row goes when the job is no longer active.
 *
 * The next owner goes on with what was left of a lease, but gives GRACE_MS at least (the whole
 * lease, if that is shorter): without an owner nobody could renew. It never gives more than what
 * was asked for, also when the clock was set back. */
#include "store/sqlite/sq.h"

#include <stdlib.h>

enum { GRACE_MS = 5000 };

static void drop_all(weir_map *m)
{
    size_t   pos = 0;
    uint64_t id;
    void    *a;
    while (weir__map_next(m, &pos, &id, &a))
        free(a);
    weir__map_fini(m);
}

void weir__sq_active_fini(sq_store *s)
{
    drop_all(&s->active);
}

sq_active *weir__sq_active(const sq_store *s, uint64_t id, uint32_t delivery)
{
    sq_active *a = weir__map_get(&s->active, id);
    return a && a->job.delivery == delivery ? a : NULL;
}

static void set_lease(sq_store *s, sq_active *a, int64_t until)
{
    a->job.lease_until = until;
    weir__agenda_want(&s->agenda, WEIR_DUE_LEASE, until);
}

weir_code weir__sq_renew(sq_store *s, sq_active *a, int64_t lease_ms, int64_t now)
{
    a->lease_ms = lease_ms;
    set_lease(s, a, now + lease_ms);
    if (!s->env.keep_taken)
        return WEIR_OK;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LEASE_PUT);
    weir__sq_int(st, 1, (int64_t)a->job.id);
    weir__sq_int(st, 2, a->job.delivery);
    weir__sq_int(st, 3, lease_ms);
    weir__sq_int(st, 4, now + lease_ms);
    a->renewed = true;
    return weir__sq_do(s, st);
}

void weir__sq_ttl(sq_store *s, sq_active *a, int64_t now)
{
    a->ttl_until = weir__job_ttl_until(&a->job, now);
    weir__agenda_want(&s->agenda, WEIR_DUE_TTL, a->ttl_until);
}

/* Numbers only: the texts belong to the caller. */
static void set_job(sq_active *a, const weir_job *j)
{
    a->job = *j;
    a->job.type = a->type->name;
    a->job.data = a->job.result = a->job.error = a->job.progress_data = NULL;
    a->job.unique = a->job.worker = a->job.search_keys = a->job.history = a->job.values = NULL;
    a->job.data_len = a->job.result_len = a->job.progress_data_len = a->job.history_len = 0;
    a->job.values_len = 0;
    a->job.taken = NULL;
    a->has_progress_data = j->progress_data != NULL;
}

void weir__sq_active_change(sq_store *s, const weir_job *j)
{
    sq_active *a = weir__sq_active(s, j->id, j->delivery);
    if (!a)
        return;
    int64_t until = a->job.lease_until;
    set_job(a, j);
    a->job.lease_until = until;
    a->sums = weir__sql_sums(j, a->sums.lease_ms);
}

weir_code weir__sq_activate(sq_store *s, const weir_job *j, sq_type *t, int64_t lease_ms,
                            int64_t now)
{
    sq_active *a = malloc(sizeof *a);
    if (!a)
        return weir__sq_no_memory(s);
    *a = (sq_active){ .type = t, .lease_ms = lease_ms, .sums = weir__sql_sums(j, lease_ms) };
    set_job(a, j);
    if (!weir__map_put(&s->active, j->id, a)) {
        free(a);
        return weir__sq_no_memory(s);
    }
    set_lease(s, a, j->lease_until);
    weir__sq_ttl(s, a, now);
    return WEIR_OK;
}

void weir__sq_deactivate(sq_store *s, uint64_t id)
{
    sq_active *a = weir__map_remove(&s->active, id);
    if (a && a->renewed) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_LEASE_DROP);
        weir__sq_int(st, 1, (int64_t)id);
        weir__sq_do(s, st);
    }
    free(a);
}

/* An active job of the last owner's, with the lease in the file. */
static weir_code inherit(sq_store *s, weir_job *j, sq_type *t, int64_t asked_ms, int64_t now)
{
    bool          renewed = false;
    int64_t       lease_ms = asked_ms, until = j->started_at + asked_ms;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LEASE);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_int(st, 2, j->delivery);
    if (weir__sq_row(s, st)) {
        renewed = true;
        lease_ms = sqlite3_column_int64(st, 0);
        until = sqlite3_column_int64(st, 1);
        sqlite3_reset(st);
    }
    int64_t least = lease_ms < GRACE_MS ? lease_ms : GRACE_MS;
    if (until < now + least)
        until = now + least;
    if (until > now + lease_ms)
        until = now + lease_ms;
    j->lease_until = until;
    weir_code rc = weir__sq_activate(s, j, t, asked_ms, now);
    if (rc)
        return rc;
    sq_active *a = weir__map_get(&s->active, j->id);
    a->renewed = renewed;
    a->lease_ms = lease_ms;
    return s->broken ? s->error.code : WEIR_OK;
}

/* If this owner gave the job away itself, its numbers in memory stay. */
static weir_code keep(sq_store *s, weir_job *j, sq_type *t, const sq_active *known, int64_t now)
{
    j->lease_until = known->job.lease_until;
    weir_code rc = weir__sq_activate(s, j, t, known->sums.lease_ms, now);
    if (rc)
        return rc;
    sq_active *a = weir__map_get(&s->active, j->id);
    a->lease_ms = known->lease_ms;
    a->renewed = known->renewed;
    a->ttl_until = known->ttl_until;
    return WEIR_OK;
}

static weir_code load_type(sq_store *s, sq_type *t, const weir_map *old, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_ALL_ACTIVE);
    weir__sq_int(st, 1, t->id);
    weir_job  j;
    sq_type  *type;
    weir_code rc = WEIR_OK;
    while (!rc && weir__sq_row(s, st)) {
        if (!weir__sq_decode(s, st, &j, &type))     /* the index says that it is active: check */
            continue;
        const sq_active *known = weir__map_get(old, j.id);
        if (known && known->job.delivery == j.delivery)
            rc = keep(s, &j, t, known, now);
        else
            rc = inherit(s, &j, t, sqlite3_column_int64(st, SQL_C_lease_ms), now);
        if (rc)
            sqlite3_reset(st);
    }
    return s->broken ? s->error.code : rc;
}

weir_code weir__sq_active_load(sq_store *s)
{
    weir_map  old = s->active;
    int64_t   now = s->env.now(s->env.ctx);
    weir_code rc = WEIR_OK;
    s->active = (weir_map){ 0 };
    for (size_t i = 0; !rc && i < s->types.n; i++)
        rc = load_type(s, s->types.by_id[i], &old, now);
    if (rc) {           /* keep the old leases for the next try */
        drop_all(&s->active);
        s->active = old;
    } else {
        drop_all(&old);
    }
    return rc;
}
