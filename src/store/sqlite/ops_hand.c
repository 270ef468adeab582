/* ops_hand.c - what people do to jobs and types: update, remove, configure. */
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

static void tell(sq_store *s, const weir_job *j, const sq_type *t, weir_state old, int64_t now)
{
    weir_event_kind kind[2];
    size_t          n = weir__update_events(j, old, kind);
    for (size_t i = 0; i < n; i++) {
        const char *text = weir__update_text(j, kind[i]);
        size_t      len = text ? strlen(text) : 0;
        weir__sq_event(s, kind[i], j, t, j->state, now,
                       text ? weir__sq_hold_text(s, text, len) : NULL, len);
    }
}

/* ---- set to active, complete or failed ---- */

static weir_code begin_run(sq_store *s, const weir_job *j, sq_type *t, int64_t now)
{
    int64_t       lease_ms = j->lease_until - now;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_HAVE);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_string(st, 2, j->worker);
    weir__sq_int(st, 3, lease_ms);
    weir_code rc = weir__sq_do(s, st);
    t->last_taken_at = now;
    weir__sq_dirty(s, t);
    return rc ? rc : weir__sq_activate(s, j, t, lease_ms, now);
}

static weir_code clear_error(sq_store *s, const weir_job *j)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_ERROR);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_bytes(st, 2, NULL, 0);
    weir_code rc = weir__sq_do(s, st);
    return !rc && j->search ? weir__sq_unindex(s, j->id, SQ_SLOT_ERROR) : rc;
}

static weir_code set_error(sq_store *s, const weir_job *j, int64_t now)
{
    size_t    len = strlen(j->error);
    weir_code rc = weir__sq_error(s, j, j->error, len);
    return rc ? rc : weir__sq_log(s, j->id, j->search, now, "error", j->error, len);
}

/* What was set by hand, beside the numbers. */
static weir_code write_set(sq_store *s, const weir_job *j, sq_type *t, int64_t now)
{
    switch (j->state) {
    case WEIR_ACTIVE:
        return begin_run(s, j, t, now);
    case WEIR_COMPLETE:
        return clear_error(s, j);
    case WEIR_FAILED:
        return set_error(s, j, now);
    default:
        return WEIR_OK;
    }
}

static weir_code put_text(sq_store *s, sq_sql which, uint64_t id, const char *text, size_t len)
{
    sqlite3_stmt *st = weir__sq_stmt(s, which);
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_bytes(st, 2, text, len);
    return weir__sq_do(s, st);
}

/* `j` as it is to be; its strings are still those of its row. */
static weir_code write(sq_store *s, const weir_job *j, sq_type *t, weir_state old,
                       const weir_change *change, const weir_buf *past, int64_t lease_ms,
                       int64_t now)
{
    sq_rest   rest = weir__sq_rest(j, lease_ms);
    weir_code rc = weir__sq_numbers(s, j, t, old, past, &rest);
    if (!rc && j->state != old && (weir__finished(old) || j->state == WEIR_ACTIVE)) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_TEXTS);
        weir__sq_int(st, 1, (int64_t)j->id);
        weir__sq_bytes(st, 2, j->progress_data, j->progress_data_len);
        weir__sq_bytes(st, 3, j->result, j->result_len);
        rc = weir__sq_do(s, st);
    }
    if (!rc && change->values)
        rc = put_text(s, SQ_VALUES, j->id, j->values, j->values_len);
    if (!rc && change->data)
        rc = put_text(s, SQ_DATA, j->id, j->data, j->data_len);
    if (!rc && change->data && j->search)
        rc = weir__sq_index_data(s, j);
    return rc || j->state == old ? rc : write_set(s, j, t, now);
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
    sq_rest    rest;
    weir_state old = j.state;
    weir_buf   past = { 0 }, values = { 0 };
    if (!weir__sq_sound(s, st, &j, &t, &rest)) {
        sqlite3_reset(st);
        return s->broken ? s->error.code
                         : weir_fail(&op->err, WEIR_ECORRUPT, "job %" PRIu64 " is damaged: its "
                                     "record does not match its checksum; remove it, or let weir "
                                     "check --mend accept it as it is", u->id);
    }
    weir_code  rc = weir__job_update(&j, &u->change, u->from, op->now_ms, &past, &op->err);
    if (!rc)
        rc = weir__job_set_values(&j, &u->change, op->now_ms, &values, &op->err);
    if (!rc && j.unique && weir__finished(old) && !weir__finished(j.state))
        rc = check_key(s, op, &j, t);
    if (!rc) {
        /* The row's strings are used below, so they are copied before the row is left. */
        weir_job *copy = weir__job_copy(&j);
        sqlite3_reset(st);
        int64_t lease_ms = old == WEIR_ACTIVE ? rest.lease_ms : j.lease_until - op->now_ms;
        rc = copy ? write(s, copy, t, old, &u->change, &past, lease_ms, op->now_ms)
                  : weir__sq_no_memory(s);
        if (!rc && old == WEIR_ACTIVE && j.state != WEIR_ACTIVE)
            weir__sq_deactivate(s, u->id);
        else if (!rc && old == WEIR_ACTIVE)
            weir__sq_active_change(s, copy);
        if (!rc)
            tell(s, copy, t, old, op->now_ms);
        weir_job_release(copy);
    }
    sqlite3_reset(st);
    weir__buf_fini(&past);
    weir__buf_fini(&values);
    u->old_state = old;
    u->new_state = j.state;
    return rc;
}

/* ---- remove ---- */

weir_code weir__sq_op_remove(sq_store *s, weir_op *op)
{
    uint64_t      id = op->u.remove.id;
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    if (!weir__sq_get(s, id, &j, &t, &st))
        return s->broken ? s->error.code : weir__no_job(&op->err, id);
    sqlite3_reset(st);
    if (j.state == WEIR_ACTIVE)
        weir__sq_deactivate(s, id);
    weir_code rc = weir__sq_forget(s, id, t, j.state, j.search);
    weir__sq_event(s, WEIR_EVENT_REMOVE, &j, t, WEIR_ANY, op->now_ms, NULL, 0);
    return rc;
}

/* ---- configure ---- */

weir_code weir__sq_op_configure(sq_store *s, weir_op *op)
{
    const weir_op_configure *c = &op->u.configure;
    sq_type                 *t = weir__sq_type_make(s, c->type);
    if (!t)
        return s->error.code;
    if (c->settings) {
        t->settings = *c->settings;
        t->own = true;
        s->keep_due = INT64_MIN;        /* what is too much now goes with the next TICK */
        weir__sq_want(s, INT64_MIN);
        weir__sq_dirty(s, t);
    }
    if (c->set_paused && c->paused != t->paused) {
        t->paused = c->paused;
        weir__sq_dirty(s, t);
        weir__sq_event(s, c->paused ? WEIR_EVENT_PAUSE : WEIR_EVENT_RESUME, NULL, t, WEIR_ANY,
                       op->now_ms, NULL, 0);
    }
    return WEIR_OK;
}
