/* ops_work.c - what producers and workers do all day: add, take, finish, renew, progress, log. */
#include "store/sqlite/sq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "core/values.h"
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
    weir_buf  values = { 0 };
    weir_code rc = weir__job_values(&j, &values) ? weir__sq_insert(s, &j, t)
                                                 : weir__sq_no_memory(s);
    if (!rc && j.search)
        rc = weir__sq_index_data(s, &j);
    if (!rc) {
        weir_effects e;
        weir__job_added(&j, &e);
        j.type = t->name;               /* it outlives the events */
        weir__sq_follow(s, &j, t, &e, now);
        s->last_id++;
        out->id = j.id;
        out->state = j.state;
    }
    weir__buf_fini(&values);
    return rc;
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

/* A take as far as it has come. */
typedef struct choice {
    weir_op_take *t;
    sq_type      *type[WEIR_MAX_TAKE_TYPES];
    size_t        n_types;
    size_t        bytes;                /* of the data of its jobs */
    size_t        passed;               /* suspects that it passed over */
    bool          alone;                /* it has a suspect */
    weir_condition *when;               /* NULL: none */
    size_t        looked;               /* jobs for which it was asked */
} choice;

/* The job becomes active: a copy for the caller and an entry among the active ones. */
static weir_code pick(sq_store *s, choice *c, const weir_job *waiting, sq_type *type, int64_t now)
{
    weir_op_take *t = c->t;
    weir_job      j = *waiting;
    weir_effects  e;
    weir__job_take(&j, t->worker, t->lease_ms, now, &e);
    weir_job *copy = weir__job_copy(&j);
    if (!copy)
        return weir__sq_no_memory(s);
    t->jobs[t->n_jobs++] = copy;
    c->bytes += copy->data_len;
    weir__sq_ahead_took(s, type, copy->id);
    weir_code rc = weir__sq_activate(s, copy, type, t->lease_ms, now);
    weir__sq_note_effects(s, copy, type, &e, now);
    return rc;
}

/* The row of a job that was picked. */
static weir_code start(sq_store *s, const weir_op_take *t, const weir_job *j, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, j->deadline_at ? SQ_TAKE_DUE : SQ_TAKE);
    sq_active    *a = weir__sq_active(s, j->id, j->delivery);
    weir__sq_int(st, 1, (int64_t)j->id);
    weir__sq_int(st, 2, now);
    weir__sq_int(st, 3, j->delivery);
    weir__sq_string(st, 4, j->worker);
    weir__sq_int(st, 5, t->lease_ms);
    weir__sq_int(st, 6, weir__sql_checksum(j, a->type->id, &a->sums));
    return weir__sq_do(s, st);
}

static bool has_enough(const choice *c)
{
    return c->t->n_jobs == c->t->n || c->passed == WEIR_MAX_PASSED || c->alone ||
           c->bytes >= WEIR_MAX_TAKE_BYTES || c->looked == WEIR_MAX_LOOK;
}

static bool is_refused(choice *c, const weir_job *j, int64_t now)
{
    c->looked += c->when != NULL;
    return c->when && !weir__condition_holds(c->when, j, now);
}

/* Is the best job a suspect that this worker does not get? */
static bool passes_over(choice *c, const weir_job *best)
{
    if (!weir__job_is_suspect(best))
        return false;
    c->alone = !c->t->busy && !c->t->n_jobs;
    if (c->alone)
        return false;
    c->passed++;
    c->t->suspect_waits = true;
    return true;
}

static weir_code pick_row(sq_store *s, choice *c, sqlite3_stmt *st, int64_t now)
{
    weir_job j;
    sq_type *type;
    sql_sums  sums;
    if (weir__sq_sound(s, st, &j, &type, &sums))
        return is_refused(c, &j, now) || passes_over(c, &j) ? WEIR_OK : pick(s, c, &j, type, now);
    weir__sq_note_damaged(s, (uint64_t)sqlite3_column_int64(st, SQL_C_id));
    return s->broken ? s->error.code : WEIR_OK;
}

/* Take from what was read ahead, best of all types first. False: some job is in the way, and only
 * the file has the jobs behind it. */
static bool pick_ahead(sq_store *s, choice *c, int64_t now)
{
    size_t passed[WEIR_MAX_TAKE_TYPES] = { 0 };
    while (!has_enough(c) && !s->broken) {
        const weir_job *best = NULL;
        size_t          of = 0;
        for (size_t i = 0; i < c->n_types; i++) {
            const weir_job *j = weir__sq_ahead_at(s, c->type[i], passed[i]);
            if (!j && c->type[i]->count[WEIR_STATE_INACTIVE] > passed[i])
                return false;
            if (j && (!best || weir__job_before(j->priority, j->id, best->priority, best->id))) {
                best = j;
                of = i;
            }
        }
        if (!best)
            break;
        size_t at = c->t->n_jobs;
        if (passes_over(c, best))
            passed[of]++;
        else if (!pick(s, c, best, c->type[of], now))
            start(s, c->t, c->t->jobs[at], now);
    }
    return true;
}

/* Rows are read one by one, so that a high limit costs nothing. */
static size_t most_rows(const choice *c)
{
    return c->when ? WEIR_MAX_LOOK : c->t->n + WEIR_MAX_PASSED;
}

static weir_code pick_of_one(sq_store *s, choice *c, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_BEST);
    weir__sq_int(st, 1, c->type[0]->id);
    weir__sq_int(st, 2, now);
    weir__sq_int(st, 3, (int64_t)most_rows(c));
    while (!has_enough(c) && weir__sq_row(s, st) && !pick_row(s, c, st, now))
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

/* The best of a type, until there are as many as are wanted that are no suspects. */
static size_t best_of_type(sq_store *s, const choice *c, size_t i, int64_t now, candidate *out)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_BEST_IDS);
    size_t        n = 0, plain = 0, wanted = c->when ? WEIR_MAX_LOOK : c->t->n + s->damaged.n;
    weir__sq_int(st, 1, c->type[i]->id);
    weir__sq_int(st, 2, now);
    weir__sq_int(st, 3, (int64_t)most_rows(c));
    while (plain < wanted && n < c->type[i]->count[WEIR_STATE_INACTIVE] && weir__sq_row(s, st)) {
        out[n++] = (candidate){ sqlite3_column_int64(st, 0),
                                (uint64_t)sqlite3_column_int64(st, 1) };
        plain += sqlite3_column_int64(st, 2) == 0;
    }
    sqlite3_reset(st);
    return n;
}

/* The best of each type in one list, and of these the best. */
static weir_code pick_of_many(sq_store *s, choice *c, int64_t now)
{
    size_t room = 0, n = 0, most = most_rows(c);
    for (size_t i = 0; i < c->n_types; i++) {
        uint64_t waiting = c->type[i]->count[WEIR_STATE_INACTIVE];
        room += waiting < most ? (size_t)waiting : most;
    }
    candidate *list = malloc((room + 1) * sizeof *list);
    if (!list)
        return weir__sq_no_memory(s);
    for (size_t i = 0; i < c->n_types && !s->broken; i++)
        n += best_of_type(s, c, i, now, list + n);
    qsort(list, n, sizeof *list, by_place);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_GET);
    for (size_t i = 0; i < n && !has_enough(c) && !s->broken; i++) {
        weir__sq_int(st, 1, (int64_t)list[i].id);
        if (weir__sq_row(s, st))
            pick_row(s, c, st, now);
        sqlite3_reset(st);
    }
    free(list);
    return s->broken ? s->error.code : WEIR_OK;
}

static weir_code take(sq_store *s, weir_op_take *t, int64_t now)
{
    choice c = { .t = t };
    t->n_jobs = 0;
    t->suspect_waits = t->partial = false;
    if (weir__sq_star(s)->paused)
        return WEIR_OK;
    for (size_t i = 0; i < t->n_types; i++) {
        sq_type *known = weir__sq_type(s, t->types[i]);
        bool     skip = !known || known->paused || !known->count[WEIR_STATE_INACTIVE];
        for (size_t k = 0; !skip && k < c.n_types; k++)
            skip = c.type[k] == known;
        if (skip)
            continue;
        assert(c.n_types < WEIR_MAX_TAKE_TYPES);
        c.type[c.n_types++] = known;
    }
    if (!c.n_types)
        return WEIR_OK;
    weir_code rc = t->when ? weir_condition_parse(&c.when, t->when, NULL) : WEIR_OK;
    if (rc)
        return weir__sq_no_memory(s);
    if (c.when || !pick_ahead(s, &c, now)) {
        c.passed = 0;                   /* the file has them, too */
        size_t at = t->n_jobs;
        rc = c.n_types == 1 ? pick_of_one(s, &c, now) : pick_of_many(s, &c, now);
        for (; !rc && at < t->n_jobs; at++)
            rc = start(s, t, t->jobs[at], now);
    }
    weir_condition_free(c.when);
    t->partial = c.bytes >= WEIR_MAX_TAKE_BYTES;
    if (!rc && s->damaged.n)
        rc = weir__sq_set_aside(s, now);
    return s->broken ? s->error.code : rc;
}

weir_code weir__sq_op_take(sq_store *s, weir_op *op)
{
    return take(s, &op->u.take, op->now_ms);
}

/* ---- finish ---- */

static weir_code end(sq_store *s, sq_active *a, const weir_op_finish *f, int64_t now,
                     weir_state *state)
{
    weir_job      j = a->job;
    sql_sums       sums = a->sums;
    weir_effects  e;
    sqlite3_stmt *st = f->outcome == WEIR_OUTCOME_DONE ? NULL : weir__sq_read_history(s, &j);
    weir__job_finish(&j, f->outcome, f->text, f->len, f->delay_ms, now, &e);
    sqlite3_reset(st);
    weir_code rc = weir__sq_apply(s, &j, a->type, &e, &sums, now);
    *state = e.to;
    weir__effects_fini(&e);
    return rc;
}

weir_code weir__sq_op_finish(sq_store *s, weir_op *op)
{
    weir_op_finish *f = &op->u.finish;
    sq_active      *a = weir__sq_active(s, f->id, f->delivery);
    f->next.n_jobs = 0;
    f->next.suspect_waits = false;
    if (!a)
        return weir__stale(&op->err, f->id, f->delivery);
    weir_code rc = f->outcome == WEIR_OUTCOME_LOST
                       ? weir__sq_come_due(s, WEIR_DUE_LEASE, f->id, op->now_ms, &f->state)
                       : end(s, a, f, op->now_ms, &f->state);
    if (!rc && f->next.n)
        rc = take(s, &f->next, op->now_ms);
    return rc;
}

/* ---- while it runs ---- */

weir_code weir__sq_op_renew(sq_store *s, weir_op *op)
{
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < op->u.renew.n; i++) {
        weir_renewal *l = &op->u.renew.items[i];
        sq_active  *a = weir__sq_active(s, l->id, l->delivery);
        l->code = a ? WEIR_OK : WEIR_ESTALE;
        if (a)
            rc = weir__sq_renew(s, a, l->lease_ms, op->now_ms);
    }
    return rc;
}

/* The event has the progress data, also when it did not change. */
static const char *old_progress_data(sq_store *s, uint64_t id, size_t *len)
{
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    const char   *text = NULL;
    if (weir__sq_get(s, id, &j, &t, &st)) {
        *len = j.progress_data_len;
        text = j.progress_data ? weir__outbox_keep(&s->out, j.progress_data, *len) : NULL;
        if (j.progress_data && !text)
            weir__sq_no_memory(s);
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
    weir_job     j = a->job;
    weir_effects e;
    weir__job_progress(&j, p->percent, p->data, p->len, op->now_ms, &e);
    if (!p->data && a->has_progress_data)
        j.progress_data = old_progress_data(s, p->id, &j.progress_data_len);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_PROGRESS);
    weir__sq_int(st, 1, (int64_t)p->id);
    weir__sq_int(st, 2, j.progress);
    weir__sq_int(st, 3, j.updated_at);
    weir__sq_bytes(st, 4, p->data, p->len);
    a->job.progress = j.progress;
    a->job.updated_at = j.updated_at;
    a->has_progress_data |= p->data != NULL;
    if (p->data)
        a->sums.progress_data = weir__sql_text_sum(p->data, p->len);
    weir__sq_int(st, 5, weir__sql_checksum(&j, a->type->id, &a->sums));
    weir_code rc = weir__sq_do(s, st);
    if (rc)
        return rc;
    weir__sq_ttl(s, a, op->now_ms);
    weir__sq_note_effects(s, &j, a->type, &e, op->now_ms);
    return s->broken ? s->error.code : WEIR_OK;
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
    weir_code rc = weir__sq_log(s, l->id, search, op->now_ms, l->text, l->len);
    if (!rc && a)
        weir__sq_ttl(s, a, op->now_ms);
    return rc;
}
