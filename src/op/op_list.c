/* op_list.c - LIST: a page of jobs. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "core/results.h"
#include "op/row.h"

enum { DEFAULT_PAGE = 100, MAX_SEARCH = 1024 };

static const char **type(weir_op *op, size_t i)
{
    weir_query *q = &op->u.list.query;
    if (!q->types)
        return i ? NULL : &q->type;
    return q->types[i] ? &((const char **)(uintptr_t)q->types)[i] : NULL;
}

static size_t most(const weir_op *op)
{
    return op->u.list.query.limit;
}

/* Begin a list in the order of priority just before the given one. */
static void skip_to_priority(weir_query *q)
{
    const uint64_t HIGHEST = (UINT64_C(1) << 53) - 1;       /* of ids: all are exact in a double */
    weir_cursor   *c = &q->after;
    if (q->descending && (!c->id || c->rank > q->priority))
        *c = (weir_cursor){ .rank = (int64_t)q->priority + 1, .id = 1 };
    if (!q->descending && (!c->id || c->rank < q->priority))
        *c = (weir_cursor){ .rank = (int64_t)q->priority - 1, .id = HIGHEST };
}

static weir_code check_states(weir_query *q, weir_error *err)
{
    weir_code rc = weir__check_number(q->state, WEIR_STATE_COUNT, "state", err);
    if (rc)
        return rc;
    if (q->states & ~WEIR__STATES)
        return weir__fail_field(err, WEIR_EINVAL, "states", "%#x has bits of no state",
                                (unsigned)q->states);
    if (q->state && q->states)
        return weir__fail_field(err, WEIR_EINVAL, "states", "there is a state, too; only one of "
                                                            "them can be given");
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        if (q->states == WEIR_BIT(s)) {
            q->state = (weir_state)s;
            q->states = 0;
        }
    }
    if (q->states == WEIR__STATES)
        q->states = 0;
    return WEIR_OK;
}

static weir_code check_types(weir_query *q, weir_error *err)
{
    if (q->type && q->types)
        return weir__fail_field(err, WEIR_EINVAL, "types", "there is a type, too; only one of them "
                                                           "can be given");
    if (q->type)
        return weir__type_check(q->type, "type", err);
    for (size_t i = 0; q->types && q->types[i]; i++) {
        char field[32];
        if (i == WEIR_MAX_TAKE_TYPES)
            return weir__fail_field(err, WEIR_ELIMIT, "types", "more than %d "
                                    "(WEIR_MAX_TAKE_TYPES)", WEIR_MAX_TAKE_TYPES);
        snprintf(field, sizeof field, "types[%zu]", i);
        weir_code rc = weir__type_check(q->types[i], field, err);
        for (size_t k = 0; !rc && k < i; k++)
            if (!strcmp(q->types[k], q->types[i]))
                rc = weir__fail_field(err, WEIR_EINVAL, field, "\"%s\" is given twice",
                                      q->types[i]);
        if (rc)
            return rc;
    }
    if (q->types && !q->types[0])
        return weir__fail_field(err, WEIR_EINVAL, "types", "none given");
    return WEIR_OK;
}

static weir_code check_order(const weir_query *q, weir_error *err)
{
    if (q->since < 0 || q->since > WEIR__MAX_AT)
        return weir__fail_field(err, WEIR_EINVAL, "since", "not a time");
    if (q->until < 0 || q->until > WEIR__MAX_AT)
        return weir__fail_field(err, WEIR_EINVAL, "until", "not a time");
    return weir__check_number(q->sort, WEIR_SORT_COUNT, "sort", err);
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_query *q = &op->u.list.query;
    weir_code   rc = WEIR__CHECK_RESERVED(q, err);
    rc = rc ? rc : check_states(q, err);
    rc = rc ? rc : check_types(q, err);
    rc = rc ? rc : check_order(q, err);
    if (rc)
        return rc;
    size_t len = q->search ? strlen(q->search) : 0;
    if (len > MAX_SEARCH)
        return weir__fail_field(err, WEIR_ELIMIT, "search", "%zu bytes, at most %d", len,
                                MAX_SEARCH);
    if (len && !weir__utf8_valid(q->search, len))
        return weir__fail_field(err, WEIR_EINVAL, "search", "not valid UTF-8");
    if (q->by_priority && !q->sort && weir__ranked_by_priority(q))
        skip_to_priority(q);
    return weir__check_limit(&q->limit, DEFAULT_PAGE, "limit", err);
}

/* ---- its order ---- */

#define ENDED                                                                                     \
    (WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) | WEIR_BIT(WEIR_STATE_CANCELLED))

uint32_t weir__listing_states(const weir_query *q)
{
    return q->state ? WEIR_BIT(q->state) : q->states;
}

/* In these states the lists of a store are sorted so. */
static bool is_natural(const weir_query *q)
{
    uint32_t states = weir__listing_states(q);
    if (q->search || !states)
        return false;
    return (q->sort == WEIR_SORT_ENDED && !(states & ~ENDED)) ||
           (q->sort == WEIR_SORT_STARTED && states == WEIR_BIT(WEIR_STATE_ACTIVE)) ||
           (q->sort == WEIR_SORT_PRIORITY && states == WEIR_BIT(WEIR_STATE_INACTIVE));
}

bool weir__listing_by_id(const weir_query *q)
{
    uint32_t states = weir__listing_states(q);
    bool     one = states && !(states & (states - 1));
    if (q->sort > WEIR_SORT_ID)
        return false;
    return q->search || q->sort == WEIR_SORT_ID || !states || (!one && states & ~ENDED);
}

bool weir__listing_gathers(const weir_query *q)
{
    if (q->sort > WEIR_SORT_ID)
        return !is_natural(q);
    return weir__listing_by_id(q) && weir__listing_states(q) && !q->search;
}

/* ---- in steps ---- */

static size_t *limit(weir_op *op)
{
    weir_query *q = &op->u.list.query;
    return q->ids_only || weir__listing_gathers(q) ? NULL : &q->limit;   /* it ends early itself */
}

static void *create(size_t n)
{
    return weir__page_create(n);
}

static bool gather(weir_op *op, weir_gathered *g)
{
    weir_query *q = &op->u.list.query;
    weir_page  *page = op->u.list.page, *all = g->items;
    for (size_t i = 0; i < page->n; i++) {
        weir_job *job = all->job[all->n++] = page->job[i];
        g->bytes += sizeof *job + job->data_len + job->result_len + job->progress_data_len;
    }
    g->n += page->n;
    g->more = page->more && page->n == q->limit;
    page->n = 0;
    q->after = all->next = page->next;
    all->more = page->more;
    return true;
}

static void give(weir_op *op, void *items)
{
    op->u.list.page = items;
}

static const weir_steps steps[] = { { limit, true, create, gather, give } };

/* ---- the operation ---- */

static void copy(weir_copier *c, weir_op *op)
{
    weir_query *q = &op->u.list.query;
    size_t      n = 0;
    while (q->types && q->types[n])
        n++;
    if (n) {
        const char **types = weir__copy_array(c, q->types, (n + 1) * sizeof *types);
        for (size_t i = 0; i < n; i++)
            weir__copy_text(c, &types[i]);
        q->types = types;
    }
    weir__copy_text(c, &q->type);
    weir__copy_text(c, &q->search);
    weir__copy_text(c, &q->error);
}

static void clear(weir_op *op)
{
    op->u.list.page = NULL;
}

static void release(weir_op *op)
{
    weir_page_free(op->u.list.page);
}

/* ---- as JSON ---- */

static void put_cursor(weir_buf *b, const char *name, const weir_cursor *c)
{
    weir__buf_str(b, name);
    weir__put_int(b, "{\"rank\":", c->rank);
    weir__put_id(b, ",\"id\":", c->id);
    weir__buf_char(b, '}');
}

static const weir_field cursor_fields[] = {
    WEIR_FIELD("rank", weir__as_int, offsetof(weir_cursor, rank), .needed = true),
    WEIR_FIELD("id", weir__as_number, offsetof(weir_cursor, id), .needed = true),
    { 0 }
};

static void put_lists(weir_buf *b, const weir_query *q)
{
    weir__put_states(b, ",\"states\":[", q->states);
    if (q->types)
        weir__buf_str(b, ",\"types\":[");
    for (size_t i = 0; q->types && q->types[i]; i++) {
        weir__put_next(b, i);
        weir__json_string(b, q->types[i], strlen(q->types[i]));
    }
    if (q->types)
        weir__buf_char(b, ']');
}

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_query *q = &op->u.list.query;
    weir__put_int(b, ",\"limit\":", (int64_t)q->limit);
    weir__put_state(b, ",\"state\":", q->state);
    if (q->type)
        weir__put_text(b, ",\"type\":", q->type, strlen(q->type));
    put_lists(b, q);
    if (q->since)
        weir__put_int(b, ",\"since\":", q->since);
    if (q->until)
        weir__put_int(b, ",\"until\":", q->until);
    if (q->error)
        weir__put_text(b, ",\"error\":", q->error, strlen(q->error));
    if (q->sort)
        weir__buf_printf(b, ",\"sort\":\"%s\"", weir_sort_name(q->sort));
    if (q->search)
        weir__put_text(b, ",\"search\":", q->search, strlen(q->search));
    if (q->by_priority)
        weir__put_int(b, ",\"priority\":", q->priority);
    weir__put_flag(b, ",\"desc\":", q->descending);
    weir__put_flag(b, ",\"ids\":", q->ids_only);
    if (q->after.rank || q->after.id)
        put_cursor(b, ",\"after\":", &q->after);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("limit", weir__as_int, REQUEST(limit), .min = 0, .max = WEIR_MAX_PAGE),
    WEIR_FIELD("state", weir__as_state, REQUEST_OP(list.query.state)),
    WEIR_FIELD("states", weir__as_states, REQUEST_OP(list.query.states)),
    WEIR_FIELD("type", weir__as_text, REQUEST_OP(list.query.type)),
    WEIR_FIELD("types", weir__as_texts, REQUEST(texts), .max = WEIR_MAX_TAKE_TYPES),
    WEIR_FIELD("since", weir__as_int, REQUEST_OP(list.query.since), .min = 0,
               .max = WEIR__MAX_AT),
    WEIR_FIELD("until", weir__as_int, REQUEST_OP(list.query.until), .min = 0,
               .max = WEIR__MAX_AT),
    WEIR_FIELD("error", weir__as_text, REQUEST_OP(list.query.error)),
    WEIR_FIELD("sort", weir__as_sort, REQUEST_OP(list.query.sort)),
    WEIR_FIELD("search", weir__as_text, REQUEST_OP(list.query.search)),
    WEIR_FIELD("priority", weir__as_priority, REQUEST_OP(list.query.priority),
               .given = REQUEST_OP(list.query.by_priority)),
    WEIR_FIELD("desc", weir__as_bool, REQUEST_OP(list.query.descending)),
    WEIR_FIELD("ids", weir__as_bool, REQUEST_OP(list.query.ids_only)),
    WEIR_FIELD("after", weir__as_object, REQUEST_OP(list.query.after), .fields = cursor_fields),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.list.query.limit = (size_t)r->limit;
    r->op.u.list.query.types = r->texts.text;
    return WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    const weir_page *page = op->u.list.page;
    if (page->more)
        put_cursor(b, ",\"next\":", &page->next);
    if (!op->u.list.query.ids_only) {
        weir__put_jobs(b, page->job, page->n);
        return;
    }
    weir__buf_str(b, ",\"ids\":[");
    for (size_t i = 0; i < page->n; i++)
        weir__put_id(b, i ? "," : "", page->job[i]->id);
    weir__buf_char(b, ']');
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("next", weir__as_object, ANSWER(next), .fields = cursor_fields,
               .given = ANSWER(more)),
    WEIR_FIELD("jobs", weir__as_page, ANSWER(page), .inside = true),
    WEIR_FIELD("ids", weir__as_ids, ANSWER(ids), .max = WEIR_MAX_PAGE),
    { 0 }
};

/* Jobs of which nothing is known but the id. */
static weir_code make_page(weir_reader *in, op_answer *a)
{
    a->page = weir__page_create(a->ids.n);
    for (size_t i = 0; a->page && i < a->ids.n; i++) {
        weir_job *job = weir__job_copy(&(weir_job){ .id = a->ids.id[i] });
        if (!job)
            return weir__read_no_memory(in);
        a->page->job[a->page->n++] = job;
    }
    return a->page ? WEIR_OK : weir__read_no_memory(in);
}

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    if (!a->page && make_page(in, a))
        return in->err.code;
    a->page->more = a->more;
    a->page->next = a->next;
    a->op->u.list.page = a->page;
    a->page = NULL;
    return WEIR_OK;
}

const weir_op_row weir__row_list = WEIR_OP_ROW(
    "list", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, steps, weir__op_no_action, weir__op_no_detail, weir__op_no_job,
    /* each */ false, type, weir__op_no_data, weir__op_no_token, weir__repeat_always,
    weir__op_no_take, most, weir__op_no_result, weir__op_no_cut, check, copy, clear, release,
    weir__op_small, write_request, request, read_request, write_answer, answer, read_answer);
