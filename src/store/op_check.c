/* op_check.c - is an operation within the limits? Done once, by the submitter, so that stores see
 * only what is valid and complete. Fills in lengths, limits and leases that were left out. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "core/values.h"
#include "store/store.h"

enum { DEFAULT_PAGE = 100, MAX_SEARCH = 1024 };

/* Zero becomes `preset`; more than WEIR_MAX_PAGE is refused. */
static weir_code check_limit(size_t *limit, size_t preset, const char *field, weir_error *err)
{
    if (!*limit)
        *limit = preset;
    if (*limit > WEIR_MAX_PAGE)
        return weir_fail(err, WEIR_ELIMIT, "%s: %zu, at most %d (WEIR_MAX_PAGE)", field, *limit,
                         WEIR_MAX_PAGE);
    return WEIR_OK;
}

static weir_code check_lease(int64_t *lease_ms, weir_error *err)
{
    if (!*lease_ms)
        *lease_ms = WEIR_DEFAULT_LEASE_MS;
    return weir__ms_check(*lease_ms, "lease_ms", err);
}

/* JSON that may be missing. */
static weir_code check_json(const char *json, size_t *len, const char *field, weir_error *err)
{
    if (!json) {
        *len = 0;
        return WEIR_OK;
    }
    if (!*len)
        *len = strlen(json);
    return weir__json_check(json, *len, field, err);
}

/* Text for people: any bytes up to a NUL, cut when it is too long. */
static void cut_text(const char *text, size_t *len)
{
    *len = *len ? strnlen(text, *len) : strlen(text);
    *len = weir__utf8_cut(text, *len, WEIR_MAX_TEXT);
}

static weir_code check_token(const weir_token *t, weir_error *err)
{
    size_t len = t->key ? strlen(t->key) : 0;
    if (!len)
        return weir_fail(err, WEIR_EINVAL, "token.key: %s", t->key ? "empty" : "missing");
    if (len > WEIR_MAX_TOKEN)
        return weir_fail(err, WEIR_ELIMIT, "token.key: %zu bytes, at most %d (WEIR_MAX_TOKEN)", len,
                         WEIR_MAX_TOKEN);
    if (!weir__utf8_valid(t->key, len))
        return weir_fail(err, WEIR_EINVAL, "token.key: not valid UTF-8");
    return WEIR_OK;
}

static weir_code check_add(weir_op *op, weir_error *err)
{
    weir_op_add *a = &op->u.add;
    size_t       bytes = 0;
    weir_code    rc = a->token ? check_token(a->token, err) : WEIR_OK;
    if (rc)
        return rc;
    if (a->n > WEIR_MAX_ADD)
        return weir_fail(err, WEIR_ELIMIT, "jobs: %zu, at most %d (WEIR_MAX_ADD)", a->n,
                         WEIR_MAX_ADD);
    if (a->n && !a->specs)
        return weir_fail(err, WEIR_EINVAL, "jobs: missing");
    for (size_t i = 0; i < a->n; i++) {
        const weir_spec *s = &a->specs[i];
        rc = weir__spec_check(s, a->n > 1 ? (ptrdiff_t)i : -1, err);
        if (rc)
            return rc;
        if (s->data)
            bytes += s->data_len ? s->data_len : strlen(s->data);
        if (s->values)
            bytes += s->values_len ? s->values_len : strlen(s->values);
        if (bytes > WEIR_MAX_ADD_BYTES)
            return weir_fail(err, WEIR_ELIMIT, "jobs[%zu].data: more than %d bytes together "
                                               "(WEIR_MAX_ADD_BYTES)", i, WEIR_MAX_ADD_BYTES);
    }
    return WEIR_OK;
}

static weir_code check_worker(const char *worker, weir_error *err)
{
    if (!worker)
        return weir_fail(err, WEIR_EINVAL, "worker: missing");
    size_t len = strlen(worker);
    if (len > WEIR_MAX_WORKER)
        return weir_fail(err, WEIR_ELIMIT, "worker: %zu bytes, at most %d (WEIR_MAX_WORKER)", len,
                         WEIR_MAX_WORKER);
    return WEIR_OK;
}

static weir_code check_taking(weir_op_take *t, weir_error *err)
{
    if (!t->n)
        return weir_fail(err, WEIR_EINVAL, "n: 0, must be at least 1");
    if (!t->n_types || !t->types)
        return weir_fail(err, WEIR_EINVAL, "types: none given");
    if (t->n_types > WEIR_MAX_TAKE_TYPES)
        return weir_fail(err, WEIR_ELIMIT, "types: %zu, at most %d (WEIR_MAX_TAKE_TYPES)",
                         t->n_types, WEIR_MAX_TAKE_TYPES);
    weir_code rc = check_worker(t->worker, err);
    for (size_t i = 0; !rc && i < t->n_types; i++) {
        char field[32];
        snprintf(field, sizeof field, "types[%zu]", i);
        rc = weir__take_type_check(t->types[i], field, err);
    }
    if (!rc)
        rc = check_limit(&t->n, 1, "n", err);
    return rc ? rc : check_lease(&t->lease_ms, err);
}

static weir_code check_take(weir_op *op, weir_error *err)
{
    return check_taking(&op->u.take, err);
}

static weir_code check_finish(weir_op *op, weir_error *err)
{
    weir_op_finish *f = &op->u.finish;
    weir_code       rc = WEIR_OK;
    switch (f->outcome) {
    case WEIR_OUTCOME_DONE:
        rc = check_json(f->text, &f->len, "result", err);
        break;
    case WEIR_OUTCOME_FAIL:
        if (!f->text) {
            f->text = weir_code_text(WEIR_EJOB);
            f->len = 0;
        }
        cut_text(f->text, &f->len);
        break;
    case WEIR_OUTCOME_RELEASE:
    case WEIR_OUTCOME_LOST:
        f->text = NULL;
        f->len = 0;
        break;
    default:
        return weir_fail(err, WEIR_EINVAL, "outcome: %d is none", (int)f->outcome);
    }
    return rc || !f->next.n ? rc : check_taking(&f->next, err);
}

static weir_code check_renew(weir_op *op, weir_error *err)
{
    weir_op_renew *r = &op->u.renew;
    weir_code      rc = WEIR_OK;
    if (r->n && !r->items)
        return weir_fail(err, WEIR_EINVAL, "items: missing");
    for (size_t i = 0; !rc && i < r->n; i++)
        rc = check_lease(&r->items[i].lease_ms, err);
    return rc;
}

static weir_code check_progress(weir_op *op, weir_error *err)
{
    weir_op_progress *p = &op->u.progress;
    if (p->percent < 0 || p->percent > 100)
        return weir_fail(err, WEIR_EINVAL, "progress: %" PRId32 " percent, must be 0 to 100",
                         p->percent);
    return check_json(p->data, &p->len, "progress data", err);
}

static weir_code check_log(weir_op *op, weir_error *err)
{
    weir_op_log *l = &op->u.log;
    if (!l->text)
        return weir_fail(err, WEIR_EINVAL, "log: no line given");
    cut_text(l->text, &l->len);
    return WEIR_OK;
}

static weir_code check_tick(weir_op *op, weir_error *err)
{
    return check_limit(&op->u.tick.limit, WEIR_MAX_PAGE, "limit", err);
}

static weir_code check_update(weir_op *op, weir_error *err)
{
    weir_change *c = &op->u.update.change;
    if ((unsigned)c->state >= WEIR_STATES)
        return weir_fail(err, WEIR_EINVAL, "state: %d is none", (int)c->state);
    if (c->set_delay && c->run_at)
        return weir_fail(err, WEIR_EINVAL, "delay_ms and run_at: only one of them can be given");
    if (c->state != WEIR_ACTIVE && (c->worker || c->lease_ms))
        return weir_fail(err, WEIR_EINVAL, "%s: only together with state active",
                         c->worker ? "worker" : "lease_ms");
    weir_code rc = c->state == WEIR_ACTIVE ? check_worker(c->worker, err) : WEIR_OK;
    if (!rc && c->state == WEIR_ACTIVE)
        rc = check_lease(&c->lease_ms, err);
    if (rc)
        return rc;
    rc = c->set_delay ? weir__ms_check(c->delay_ms, "delay_ms", err)
                                : weir__moment_check(c->run_at, "run_at", err);
    if (rc || (rc = check_json(c->data, &c->data_len, "data", err)) || !c->values)
        return rc;
    if (!c->values_len)
        c->values_len = strlen(c->values);
    return weir__values_check(c->values, c->values_len, true, err);
}

static weir_code check_nothing(weir_op *op, weir_error *err)
{
    (void)op;
    (void)err;
    return WEIR_OK;
}

static weir_code check_keep(const weir_keep *k, const char *field, weir_error *err)
{
    char name[40];
    snprintf(name, sizeof name, "%s.age_ms", field);
    if (k->count < 0)
        return weir_fail(err, WEIR_EINVAL, "%s.count: %" PRId64 ", must not be negative", field,
                         k->count);
    return weir__ms_check(k->age_ms, name, err);
}

static weir_code check_configure(weir_op *op, weir_error *err)
{
    weir_op_configure   *c = &op->u.configure;
    const weir_settings *s = c->settings;
    weir_code            rc = weir__type_check(c->type, "type", err);
    if (rc || !s)
        return rc;
    rc = check_keep(&s->keep_complete, "keep_complete", err);
    return rc ? rc : check_keep(&s->keep_failed, "keep_failed", err);
}

/* How many bytes of text come in with it. */
static size_t bytes_of(const weir_incoming *in)
{
    const weir_job *j = in->job;
    size_t          bytes = j->data_len + j->result_len + j->progress_data_len + j->history_len +
                            j->values_len;
    bytes += j->error ? strlen(j->error) : 0;
    for (size_t i = 0; i < in->n_lines; i++)
        bytes += strlen(in->lines[i].text);
    return bytes;
}

static weir_code check_incoming(const weir_incoming *in, weir_error *err)
{
    if (!in->job)
        return weir_fail(err, WEIR_EINVAL, "job: missing");
    if (in->n_lines && !in->lines)
        return weir_fail(err, WEIR_EINVAL, "lines: missing");
    weir_code rc = weir__job_valid(in->job, err);
    return rc ? rc : weir__lines_valid(in->lines, in->n_lines, err);
}

static weir_code check_import(weir_op *op, weir_error *err)
{
    const weir_op_import *m = &op->u.import;
    size_t                bytes = 0;
    if (m->n > WEIR_MAX_IMPORT)
        return weir_fail(err, WEIR_ELIMIT, "jobs: %zu, at most %d (WEIR_MAX_IMPORT)", m->n,
                         WEIR_MAX_IMPORT);
    if (m->n && !m->jobs)
        return weir_fail(err, WEIR_EINVAL, "jobs: missing");
    for (size_t i = 0; i < m->n; i++) {
        weir_error why;
        weir_code  rc = check_incoming(&m->jobs[i], &why);
        if (rc && m->n > 1)
            return weir_fail(err, rc, "jobs[%zu].%s", i, why.msg);
        if (rc)
            return weir_fail(err, rc, "%s", why.msg);
        bytes += bytes_of(&m->jobs[i]);
        if (i && bytes > WEIR_MAX_ADD_BYTES)
            return weir_fail(err, WEIR_ELIMIT, "jobs[%zu]: more than %d bytes together "
                                               "(WEIR_MAX_ADD_BYTES)", i, WEIR_MAX_ADD_BYTES);
    }
    return WEIR_OK;
}

/* Begin a list in the order of priority just before the one that is wanted. */
static void skip_to_priority(weir_query *q)
{
    const uint64_t HIGHEST = (UINT64_C(1) << 53) - 1;       /* of ids: all are exact in a double */
    weir_cursor   *c = &q->after;
    if (q->descending && (!c->id || c->rank > q->priority))
        *c = (weir_cursor){ .rank = (int64_t)q->priority + 1, .id = 1 };
    if (!q->descending && (!c->id || c->rank < q->priority))
        *c = (weir_cursor){ .rank = (int64_t)q->priority - 1, .id = HIGHEST };
}

static weir_code check_list(weir_op *op, weir_error *err)
{
    weir_query *q = &op->u.list.query;
    weir_code   rc;
    if ((unsigned)q->state >= WEIR_STATES)
        return weir_fail(err, WEIR_EINVAL, "state: %d is none", (int)q->state);
    if (q->type && (rc = weir__type_check(q->type, "type", err)))
        return rc;
    size_t len = q->search ? strlen(q->search) : 0;
    if (len > MAX_SEARCH)
        return weir_fail(err, WEIR_ELIMIT, "search: %zu bytes, at most %d", len, MAX_SEARCH);
    if (len && !weir__utf8_valid(q->search, len))
        return weir_fail(err, WEIR_EINVAL, "search: not valid UTF-8");
    if (q->by_priority && weir__ranked_by_priority(q))
        skip_to_priority(q);
    return check_limit(&q->limit, DEFAULT_PAGE, "limit", err);
}

static weir_code check_logs(weir_op *op, weir_error *err)
{
    return check_limit(&op->u.logs.limit, WEIR_MAX_PAGE, "limit", err);
}

#define check_remove check_nothing
#define check_get    check_nothing
#define check_stats  check_nothing
#define check_check  check_nothing

static weir_code (*const checks[WEIR_OP_KINDS])(weir_op *op, weir_error *err) = {
#define X(kind, member, writes) check_##member,
    WEIR_OPS(X)
#undef X
};

weir_code weir__op_check(weir_op *op, weir_error *err)
{
    assert((unsigned)op->kind < WEIR_OP_KINDS);
    return checks[op->kind](op, err);
}

/* ---- data that must be an object ---- */

/* `json` is valid, or NULL. Vert.x Kue deletes a job whose data it cannot read as an object. */
static weir_code check_object(const char *json, const char *field, weir_error *err)
{
    const char *at = json ? json + strspn(json, " \t\r\n") : "{";
    if (*at == '{')
        return WEIR_OK;
    return weir_fail(err, WEIR_EINVAL, "%s: must be a JSON object in this store (profile=vertx), "
                     "since Vert.x Kue deletes a job with other data", field);
}

static weir_code check_objects(const weir_op *op, size_t i, const char *field, weir_error *err)
{
    switch (op->kind) {
    case WEIR_OP_ADD:
        return check_object(op->u.add.specs[i].data, field, err);
    case WEIR_OP_IMPORT:
        return check_object(op->u.import.jobs[i].job->data, field, err);
    default:
        return check_object(op->u.update.change.data, field, err);
    }
}

weir_code weir__op_check_objects(const weir_op *op, weir_error *err)
{
    size_t n = op->kind == WEIR_OP_ADD      ? op->u.add.n
               : op->kind == WEIR_OP_IMPORT ? op->u.import.n : op->kind == WEIR_OP_UPDATE;
    for (size_t i = 0; i < n; i++) {
        char field[40] = "data";
        if (n > 1)
            snprintf(field, sizeof field, "jobs[%zu].data", i);
        weir_code rc = check_objects(op, i, field, err);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}
