/* ops_work.c - what producers and workers do all day: add, take, finish, renew, progress, log. */
#include "store/sqlite/sq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/answers.h"

/* ---- add ---- */

static weir_code add_one(sq_store *s, const weir_spec *spec, weir_added *out, int64_t now)
{
    sq_type *t = weir__sq_type_make(s, spec->type);
    if (!t)
        return s->error.code;
    *out = (weir_added){ .durability = s->env.durability };
    if (spec->unique) {
        out->id = weir__sq_holder(s, t, spec->unique, &out->state);
        out->existed = out->id != 0;
        if (out->existed || s->broken)
            return s->broken ? s->error.code : WEIR_OK;
    }
    weir_job j;
    weir__job_init(&j, spec, s->last_id + 1, now);
    j.search = j.search || weir__sq_settings(s, t)->search;
    weir_code rc = weir__sq_insert(s, &j, t);
    if (!rc && j.search)
        rc = weir__sq_index_data(s, &j);
    if (rc)
        return rc;
    s->last_id++;
    if (j.state == WEIR_INACTIVE)
        weir__sq_ahead_arrive(s, t, &j, true);
    weir__sq_moved(s, t, WEIR_ANY, j.state);
    if (j.state == WEIR_INACTIVE)
        weir__sq_event(s, WEIR_EVENT_ENQUEUE, &j, t, j.state, now, NULL, 0);
    out->id = j.id;
    out->state = j.state;
    return WEIR_OK;
}

weir_code weir__sq_op_add(sq_store *s, weir_op *op)
{
    weir_op_add *a = &op->u.add;
    bool         again = false;
    weir_code    rc = a->token ? weir__sq_token_look(s, op, &again) : WEIR_OK;
    for (size_t i = 0; !rc && !again && i < a->n; i++)
        rc = add_one(s, &a->specs[i], &a->out[i], op->now_ms);
    if (!rc && !again && a->token)
        rc = weir__sq_token_put(s, op);
    return rc;
}

/* ---- take ---- */

/* The job becomes active: a copy for the caller and an entry among the active ones. */
static weir_code pick(sq_store *s, weir_op_take *t, const weir_job *waiting, sq_type *type,
                      int64_t now)
{
    weir_job j = *waiting;
    weir__job_take(&j, t->worker, t->lease_ms, now);
    weir_job *copy = weir__job_copy(&j);
    if (!copy)
        return weir__sq_no_memory(s);
    t->jobs[t->n_jobs++] = copy;
    weir__sq_ahead_took(s, type, copy->id);
    return weir__sq_activate(s, copy, type, now);
}

static weir_code pick_row(sq_store *s, weir_op_take *t, sqlite3_stmt *st, int64_t now)
{
    weir_job  j;
    sq_type  *type;
    weir_code rc = weir__sq_read(s, st, &j, &type);
    return rc ? rc : pick(s, t, &j, type, now);
}

static weir_code start(sq_store *s, const weir_op_take *t, const weir_job *j, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, j->deadline_at ? SQ_TAKE_DUE : SQ_TAKE);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_int(st, 2, now);
    weir__sq_int(st, 3, j->delivery);
    weir__sq_string(st, 4, j->worker);
    weir_code rc = weir__sq_do(s, st);
    if (rc)
        return rc;
    sq_active *a = weir__sq_active(s, j->id, j->delivery);
    a->type->last_taken_at = now;
    weir__sq_moved(s, a->type, WEIR_INACTIVE, WEIR_ACTIVE);
    weir__sq_event(s, WEIR_EVENT_START, j, a->type, WEIR_ACTIVE, now, t->worker,
                   t->worker ? strlen(t->worker) : 0);
    return s->broken ? s->error.code : WEIR_OK;
}

/* Take from what was read ahead, best of all types first. False: some job is in the way, and only
 * the file can tell what comes behind it. */
static bool pick_ahead(sq_store *s, weir_op_take *t, sq_type **type, size_t n_types, int64_t now)
{
    while (t->n_jobs < t->n && !s->broken) {
        const weir_job *best = NULL;
        sq_type        *of = NULL;
        for (size_t i = 0; i < n_types; i++) {
            const weir_job *j = weir__sq_ahead_first(s, type[i]);
            if (!j && type[i]->count[WEIR_INACTIVE])
                return false;
            if (j && (!best || weir__job_before(j->priority, j->id, best->priority, best->id))) {
                best = j;
                of = type[i];
            }
        }
        if (!best)
            break;
        size_t at = t->n_jobs;
        if (!pick(s, t, best, of, now))
            start(s, t, t->jobs[at], now);
    }
    return true;
}

static weir_code pick_of_one(sq_store *s, weir_op_take *t, const sq_type *type, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_BEST);
    weir__sq_int(st, 1, type->id);
    weir__sq_int(st, 2, now);
    weir__sq_int(st, 3, (int64_t)t->n);
    while (t->n_jobs < t->n && weir__sq_row(s, st) && !pick_row(s, t, st, now))
        continue;
    sqlite3_reset(st);
    return s->broken ? s->error.code : WEIR_OK;
}

typedef struct candidate {
    int64_t  rank;
    uint64_t id;
} candidate;

static int by_place(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The best n of each type, in one list, and of these the best n. */
static weir_code pick_of_many(sq_store *s, weir_op_take *t, sq_type **type, size_t n_types,
                              int64_t now)
{
    size_t        room = 0, n = 0;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_BEST_IDS);
    for (size_t i = 0; i < n_types; i++)
        room += type[i]->count[WEIR_INACTIVE] < t->n ? (size_t)type[i]->count[WEIR_INACTIVE] : t->n;
    candidate *list = malloc((room + 1) * sizeof *list);
    if (!list)
        return weir__sq_no_memory(s);
    for (size_t i = 0; i < n_types && !s->broken; i++) {
        weir__sq_int(st, 1, type[i]->id);
        weir__sq_int(st, 2, now);
        weir__sq_int(st, 3, (int64_t)t->n);
        while (n < room && weir__sq_row(s, st))
            list[n++] = (candidate){ sqlite3_column_int64(st, 0),
                                     (uint64_t)sqlite3_column_int64(st, 1) };
        sqlite3_reset(st);
    }
    qsort(list, n, sizeof *list, by_place);
    st = weir__sq_stmt(s, SQ_GET);
    for (size_t i = 0; i < n && t->n_jobs < t->n && !s->broken; i++) {
        weir__sq_int(st, 1, (int64_t)list[i].id);
        if (weir__sq_row(s, st))
            pick_row(s, t, st, now);
        sqlite3_reset(st);
    }
    free(list);
    return s->broken ? s->error.code : WEIR_OK;
}

static weir_code take(sq_store *s, weir_op_take *t, int64_t now)
{
    sq_type *type[WEIR_MAX_TAKE_TYPES];
    size_t   n = 0;
    t->n_jobs = 0;
    if (weir__sq_star(s)->paused)
        return WEIR_OK;
    for (size_t i = 0; i < t->n_types; i++) {
        sq_type *known = weir__sq_type(s, t->types[i]);
        bool     skip = !known || known->paused || !known->count[WEIR_INACTIVE];
        for (size_t k = 0; !skip && k < n; k++)
            skip = type[k] == known;
        if (skip)
            continue;
        assert(n < WEIR_MAX_TAKE_TYPES);
        type[n++] = known;
    }
    if (!n)
        return WEIR_OK;
    if (pick_ahead(s, t, type, n, now))
        return s->broken ? s->error.code : WEIR_OK;
    size_t    at = t->n_jobs;
    weir_code rc = n == 1 ? pick_of_one(s, t, type[0], now) : pick_of_many(s, t, type, n, now);
    for (; !rc && at < t->n_jobs; at++)
        rc = start(s, t, t->jobs[at], now);
    return rc;
}

weir_code weir__sq_op_take(sq_store *s, weir_op *op)
{
    return take(s, &op->u.take, op->now_ms);
}

/* ---- finish ---- */

static weir_code complete(sq_store *s, sq_type *t, weir_job *j, const weir_op_finish *f,
                          int64_t now)
{
    weir__job_complete(j, f->text, f->len, now);
    t->completed++;
    t->work_ms += j->duration_ms;
    bool      gone = j->remove_on_complete;
    weir_code rc;
    if (gone) {
        rc = weir__sq_forget(s, j->id, t, WEIR_ACTIVE, j->search);
    } else {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_COMPLETE);
        weir__sq_int(st, 1, (int64_t)j->id);
        weir__sq_int(st, 2, now);
        weir__sq_int(st, 3, j->attempts);
        weir__sq_int(st, 4, j->duration_ms);
        weir__sq_bytes(st, 5, f->text, f->len);
        rc = weir__sq_do(s, st);
        if (!rc && j->search)
            rc = weir__sq_unindex(s, j->id, SQ_SLOT_ERROR);
        weir__sq_moved(s, t, WEIR_ACTIVE, WEIR_COMPLETE);
        weir__sq_ended(s, j, t);
    }
    weir__sq_event(s, WEIR_EVENT_COMPLETE, j, t, gone ? WEIR_ANY : WEIR_COMPLETE, now, f->text,
                   f->len);
    return rc;
}

/* An execution failed, and j->error (of `len` bytes, until the batch ends) is why: in the file and
 * the log. */
weir_code weir__sq_failed(sq_store *s, const weir_job *j, sq_type *t, size_t len, int64_t now,
                          const weir_buf *past)
{
    const char *why = j->error;
    t->failed++;
    weir_code rc = weir__sq_numbers(s, j, t, WEIR_ACTIVE, past);
    if (!rc)
        rc = weir__sq_error(s, j, why, len);
    if (!rc)
        rc = weir__sq_log(s, j->id, j->search, now, "error", why, len);
    weir__sq_event(s, j->state == WEIR_FAILED ? WEIR_EVENT_FAILED : WEIR_EVENT_FAILED_ATTEMPT, j, t,
                   j->state, now, why, len);
    if (j->state == WEIR_INACTIVE)
        weir__sq_event(s, WEIR_EVENT_ENQUEUE, j, t, j->state, now, NULL, 0);
    return rc;
}

static weir_code fail(sq_store *s, sq_type *t, weir_job *j, const weir_op_finish *f, int64_t now)
{
    weir_buf    past = { 0 };
    size_t      len = f->text ? f->len : 0;
    const char *why = weir__sq_hold_text(s, f->text ? f->text : "", len);
    if (s->broken)
        return s->error.code;
    sqlite3_stmt *st = weir__sq_past(s, j);
    weir__job_fail(j, why, now, &past);
    sqlite3_reset(st);
    weir_code rc = weir__sq_failed(s, j, t, len, now, &past);
    weir__buf_fini(&past);
    return rc;
}

static weir_code release(sq_store *s, sq_type *t, weir_job *j, int64_t now)
{
    weir_buf      past = { 0 };
    sqlite3_stmt *st = weir__sq_past(s, j);
    weir__job_release(j, now, &past);
    sqlite3_reset(st);
    weir_code rc = weir__sq_numbers(s, j, t, WEIR_ACTIVE, &past);
    weir__sq_event(s, WEIR_EVENT_ENQUEUE, j, t, j->state, now, NULL, 0);
    weir__buf_fini(&past);
    return rc;
}

weir_code weir__sq_op_finish(sq_store *s, weir_op *op)
{
    weir_op_finish *f = &op->u.finish;
    sq_active      *a = weir__sq_active(s, f->id, f->delivery);
    if (!a)
        return weir__stale(&op->err, f->id, f->delivery);
    weir_job  j = a->job;
    sq_type  *t = a->type;
    weir_code rc = WEIR_OK;
    weir__sq_deactivate(s, f->id);
    switch (f->outcome) {
    case WEIR_OUTCOME_DONE:
        rc = complete(s, t, &j, f, op->now_ms);
        break;
    case WEIR_OUTCOME_FAIL:
        rc = fail(s, t, &j, f, op->now_ms);
        break;
    case WEIR_OUTCOME_RELEASE:
        rc = release(s, t, &j, op->now_ms);
        break;
    }
    f->state = j.state == WEIR_COMPLETE && j.remove_on_complete ? WEIR_ANY : j.state;
    if (!rc && f->next.n)
        rc = take(s, &f->next, op->now_ms);
    return rc;
}

/* ---- while it runs ---- */

weir_code weir__sq_op_renew(sq_store *s, weir_op *op)
{
    for (size_t i = 0; i < op->u.renew.n; i++) {
        weir_lease *l = &op->u.renew.items[i];
        sq_active  *a = weir__sq_active(s, l->id, l->delivery);
        l->code = a ? WEIR_OK : WEIR_ESTALE;
        if (a)
            weir__sq_lease(s, a, op->now_ms + l->lease_ms);
    }
    return WEIR_OK;
}

/* The event tells the progress data also when it stays as it was. */
static const char *old_progress_data(sq_store *s, uint64_t id, size_t *len)
{
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    const char   *text = NULL;
    if (weir__sq_get(s, id, &j, &t, &st)) {
        *len = j.progress_data_len;
        text = j.progress_data ? weir__sq_hold_text(s, j.progress_data, *len) : NULL;
        sqlite3_reset(st);
    }
    return text;
}

weir_code weir__sq_op_progress(sq_store *s, weir_op *op)
{
    const weir_op_progress *p = &op->u.progress;
    sq_active              *a = weir__sq_active(s, p->id, p->delivery);
    if (!a)
        return weir__stale(&op->err, p->id, p->delivery);
    const char *data = p->data;
    size_t      len = p->len;
    if (!data && a->has_progress_data)
        data = old_progress_data(s, p->id, &len);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_PROGRESS);
    weir__sq_int(st, 1, (int64_t)p->id);
    weir__sq_int(st, 2, p->percent);
    weir__sq_int(st, 3, op->now_ms);
    weir__sq_bytes(st, 4, p->data, p->len);
    weir_code rc = weir__sq_do(s, st);
    if (rc)
        return rc;
    a->job.progress = p->percent;
    a->job.updated_at = op->now_ms;
    a->has_progress_data |= p->data != NULL;
    weir__sq_ttl(s, a, op->now_ms);
    weir__sq_event(s, WEIR_EVENT_PROGRESS, &a->job, a->type, WEIR_ACTIVE, op->now_ms, data, len);
    return WEIR_OK;
}

weir_code weir__sq_op_log(sq_store *s, weir_op *op)
{
    const weir_op_log *l = &op->u.log;
    sq_active         *a = l->delivery ? weir__sq_active(s, l->id, l->delivery) : NULL;
    bool               search = a && a->job.search;
    if (l->delivery && !a)
        return weir__stale(&op->err, l->id, l->delivery);
    if (!a) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_EXISTS);
        weir__sq_int(st, 1, (int64_t)l->id);
        if (!weir__sq_row(s, st))
            return s->broken ? s->error.code : weir__no_job(&op->err, l->id);
        search = sqlite3_column_int(st, 0) != 0;
        sqlite3_reset(st);
    }
    weir_code rc = weir__sq_log(s, l->id, search, op->now_ms, NULL, l->text, l->len);
    if (!rc && a)
        weir__sq_ttl(s, a, op->now_ms);
    return rc;
}
