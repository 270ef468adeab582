/* ops_admin.c - what people do to jobs and types: update, remove, configure. */
#include "store/sqlite/sq.h"

#include <inttypes.h>
#include <string.h>

#include "store/answers.h"

/* ---- update ---- */

/* May a finished job that had a unique key wait again? */
static weir_code check_key(sq_store *s, weir_op *op, const weir_job *j, const sq_type *t)
{
    weir_state state;
    uint64_t   holder = weir__sq_holder(s, t, j->unique, &state);
    if (s->broken)
        return s->error.code;
    return holder ? weir__key_taken(&op->err, j->id, holder) : WEIR_OK;
}

/* The row's strings are used after the row is left: `j` is a copy, but for what the change made
 * new, which lasts as long as the events. */
static weir_code apply(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e,
                       int64_t lease_ms, int64_t now)
{
    weir_job *copy = weir__job_copy(j);
    if (!copy)
        return weir__sq_no_memory(s);
#define X(member, name, k, js, sh, life, ...)                                                     \
    WEIR_IF_CHANGES_##life(if (e->texts & WEIR__NEW(name)) copy->member = j->member;)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    copy->type = t->name;
    sql_sums   sums = weir__sql_sums(copy, lease_ms);
    weir_code rc = weir__sq_apply(s, copy, t, e, &sums, now);
    if (!rc && e->from == WEIR_STATE_ACTIVE && e->to == WEIR_STATE_ACTIVE)
        weir__sq_active_change(s, copy);
    weir_job_free(copy);
    return rc;
}

weir_code weir__sq_op_update(sq_store *s, weir_op *op)
{
    weir_op_update *u = &op->u.update;
    weir_job        j;
    sq_type        *t;
    sqlite3_stmt   *st;
    if (!weir__sq_get(s, u->id, &j, &t, &st))
        return s->broken ? s->error.code
                         : weir__no_job_of(&op->err, u->id, u->change.delivery);
    sql_sums      sums;
    weir_effects e;
    if (!weir__sq_sound(s, st, &j, &t, &sums)) {
        sqlite3_reset(st);
        return s->broken ? s->error.code
                         : weir_fail(&op->err, WEIR_ECORRUPT, "job %" PRIu64 " is damaged: its "
                                     "record does not match its checksum; remove it, or mend the "
                                     "store, which accepts it as it is", u->id);
    }
    weir_code rc = weir__job_update(&j, &u->change, u->from, op->now_ms, &e, &op->err);
    if (!rc && e.takes_key)
        rc = check_key(s, op, &j, t);
    if (!rc)
        rc = apply(s, &j, t, &e, weir__effects_start(&e) ? u->change.lease_ms : sums.lease_ms,
                   op->now_ms);
    sqlite3_reset(st);
    weir__effects_fini(&e);
    u->old_state = e.from;
    u->new_state = e.to;
    return rc;
}

/* ---- remove ---- */

weir_code weir__sq_op_remove(sq_store *s, weir_op *op)
{
    uint64_t  id = op->u.remove.id;
    bool      found;
    weir_code rc = weir__sq_remove_job(s, id, op->now_ms, &found);
    return rc || found ? rc : weir__no_job(&op->err, id);
}

/* ---- configure ---- */

weir_code weir__sq_op_configure(sq_store *s, weir_op *op)
{
    const weir_op_configure *c = &op->u.configure;
    sq_type                 *t = weir__sq_type_make(s, c->type);
    if (!t)
        return s->error.code;
    if (c->settings) {
        t->settings = weir__settings_in(c->settings, true);
        t->has_settings = true;
        /* Jobs beyond the new limits are removed with the next TICK. */
        weir__agenda_want(&s->agenda, WEIR_DUE_FINISHED, INT64_MIN);
        weir__sq_dirty(s, t);
    }
    if (c->set_paused && c->paused != t->paused) {
        t->paused = c->paused;
        weir__sq_dirty(s, t);
        weir_event event = weir__pause_event(t->name, c->paused, op->now_ms);
        if (!weir__outbox_add(&s->out, &event))
            return weir__sq_no_memory(s);
    }
    return WEIR_OK;
}
