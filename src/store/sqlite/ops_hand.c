/* ops_hand.c - what people do to jobs and types: update, remove, configure. */
#include "store/sqlite/sq.h"

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
    if (j->state == old)
        return;
    if (j->state == WEIR_CANCELLED)
        weir__sq_event(s, WEIR_EVENT_CANCELLED, j, t, j->state, now, NULL, 0);
    if (j->state == WEIR_INACTIVE && old == WEIR_DELAYED)
        weir__sq_event(s, WEIR_EVENT_PROMOTION, j, t, j->state, now, NULL, 0);
    if (j->state == WEIR_INACTIVE)
        weir__sq_event(s, WEIR_EVENT_ENQUEUE, j, t, j->state, now, NULL, 0);
}

/* `j` as it is to be; its strings are still those of its row. */
static weir_code write(sq_store *s, const weir_job *j, sq_type *t, weir_state old, bool new_data,
                       const weir_buf *past)
{
    weir_code rc = weir__sq_numbers(s, j, t, old, past);
    if (!rc && weir__finished(old) && !weir__finished(j->state)) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_TEXTS);
        weir__sq_int(st, 1, (int64_t)j->id);
        weir__sq_bytes(st, 2, j->progress_data, j->progress_data_len);
        weir__sq_bytes(st, 3, j->result, j->result_len);
        rc = weir__sq_do(s, st);
    }
    if (!rc && new_data) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_DATA);
        weir__sq_int(st, 1, (int64_t)j->id);
        weir__sq_bytes(st, 2, j->data, j->data_len);
        rc = weir__sq_do(s, st);
        if (!rc && j->search)
            rc = weir__sq_index_data(s, j);
    }
    return rc;
}

weir_code weir__sq_op_update(sq_store *s, weir_op *op)
{
    weir_op_update *u = &op->u.update;
    weir_job        j;
    sq_type        *t;
    sqlite3_stmt   *st;
    if (!weir__sq_get(s, u->id, &j, &t, &st))
        return s->broken ? s->error.code : weir__no_job(&op->err, u->id);
    weir_state old = j.state;
    weir_buf   past = { 0 };
    weir_code  rc = weir__job_update(&j, &u->change, u->from, op->now_ms, &past, &op->err);
    if (!rc && j.unique && weir__finished(old) && !weir__finished(j.state))
        rc = check_key(s, op, &j, t);
    if (!rc) {
        /* The row's strings are used below, so they are copied before the row is left. */
        weir_job *copy = weir__job_copy(&j);
        sqlite3_reset(st);
        rc = copy ? write(s, copy, t, old, u->change.data != NULL, &past)
                  : weir__sq_no_memory(s);
        if (!rc && old == WEIR_ACTIVE && j.state != WEIR_ACTIVE)
            weir__sq_deactivate(s, u->id);
        if (!rc)
            tell(s, copy, t, old, op->now_ms);
        weir_job_release(copy);
    }
    sqlite3_reset(st);
    weir__buf_fini(&past);
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
