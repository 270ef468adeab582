/* op_list.c - LIST: a page of jobs. */
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "core/results.h"
#include "op/row.h"

enum { DEFAULT_PAGE = 100, MAX_SEARCH = 1024 };

static const char **type(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.list.query.type;
}

static size_t most(const weir_op *op)
{
    return op->u.list.query.limit;
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

static weir_code check(weir_op *op, weir_error *err)
{
    weir_query *q = &op->u.list.query;
    weir_code   rc = WEIR__CHECK_RESERVED(q, err);
    if (rc)
        return rc;
    if ((rc = weir__check_number(q->state, WEIR_STATE_COUNT, "state", err)))
        return rc;
    if (q->type && (rc = weir__type_check(q->type, "type", err)))
        return rc;
    size_t len = q->search ? strlen(q->search) : 0;
    if (len > MAX_SEARCH)
        return weir__fail_field(err, WEIR_ELIMIT, "search", "%zu bytes, at most %d", len,
                                MAX_SEARCH);
    if (len && !weir__utf8_valid(q->search, len))
        return weir__fail_field(err, WEIR_EINVAL, "search", "not valid UTF-8");
    if (q->by_priority && weir__ranked_by_priority(q))
        skip_to_priority(q);
    return weir__check_limit(&q->limit, DEFAULT_PAGE, "limit", err);
}

/* ---- in steps ---- */

static size_t *limit(weir_op *op)
{
    return op->u.list.query.ids_only ? NULL : &op->u.list.query.limit;
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
    weir__copy_text(c, &op->u.list.query.type);
    weir__copy_text(c, &op->u.list.query.search);
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

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_query *q = &op->u.list.query;
    weir__put_int(b, ",\"limit\":", (int64_t)q->limit);
    weir__put_state(b, ",\"state\":", q->state);
    if (q->type)
        weir__put_text(b, ",\"type\":", q->type, strlen(q->type));
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
    WEIR_FIELD("type", weir__as_text, REQUEST_OP(list.query.type)),
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
