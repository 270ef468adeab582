/* active.c - the jobs that workers have, with their leases. */
#include "store/sqlite/sq.h"

#include <stdlib.h>

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

void weir__sq_lease(sq_store *s, sq_active *a, int64_t until)
{
    a->job.lease_until = until;
    if (until < s->active_due)
        s->active_due = until;
    weir__sq_want(s, until);
}

void weir__sq_ttl(sq_store *s, sq_active *a, int64_t now)
{
    a->ttl_until = INT64_MAX;
    if (!a->job.ttl_ms)
        return;
    a->ttl_until = now + a->job.ttl_ms;
    if (a->ttl_until < s->active_due)
        s->active_due = a->ttl_until;
    weir__sq_want(s, a->ttl_until);
}

weir_code weir__sq_activate(sq_store *s, const weir_job *j, sq_type *t, int64_t now)
{
    sq_active *a = malloc(sizeof *a);
    if (!a)
        return weir__sq_no_memory(s);
    *a = (sq_active){ .type = t, .job = *j, .has_progress_data = j->progress_data != NULL };
    a->job.type = t->name;
    a->job.data = a->job.result = a->job.error = a->job.progress_data = NULL;
    a->job.unique = a->job.worker = a->job.search_keys = a->job.history = NULL;
    a->job.data_len = a->job.result_len = a->job.progress_data_len = a->job.history_len = 0;
    a->job.hold = NULL;
    if (!weir__map_put(&s->active, j->id, a)) {
        free(a);
        return weir__sq_no_memory(s);
    }
    weir__sq_lease(s, a, j->lease_until);
    weir__sq_ttl(s, a, now);
    return WEIR_OK;
}

void weir__sq_deactivate(sq_store *s, uint64_t id)
{
    free(weir__map_remove(&s->active, id));
}

static weir_code load_type(sq_store *s, sq_type *t, const weir_map *old, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_ALL_ACTIVE);
    weir__sq_int(st, 1, t->id);
    weir_job  j;
    sq_type  *type;
    weir_code rc = WEIR_OK;
    while (!rc && weir__sq_row(s, st)) {
        rc = weir__sq_read(s, st, &j, &type);
        const sq_active *known = rc ? NULL : weir__map_get(old, j.id);
        if (known && known->job.delivery != j.delivery)
            known = NULL;
        j.lease_until = known ? known->job.lease_until : now + WEIR_DEFAULT_LEASE_MS;
        if (!rc)
            rc = weir__sq_activate(s, &j, t, now);
        if (!rc && known) {
            sq_active *a = weir__map_get(&s->active, j.id);
            a->ttl_until = known->ttl_until;
            if (a->ttl_until < s->active_due)
                s->active_due = a->ttl_until;
        }
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
    s->active_due = INT64_MAX;
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
