/* row.c - the pieces that many rows use, and checks that several operations share: see row.h. */
#include "op/row.h"

#include <string.h>

#include "core/job.h"

/* ---- pieces of rows ---- */

unsigned weir__role_read(const weir_op *op)
{
    (void)op;
    return WEIR_ROLE_READ;
}

unsigned weir__role_produce(const weir_op *op)
{
    (void)op;
    return WEIR_ROLE_PRODUCE;
}

unsigned weir__role_work(const weir_op *op)
{
    (void)op;
    return WEIR_ROLE_WORK;
}

unsigned weir__role_admin(const weir_op *op)
{
    (void)op;
    return WEIR_ROLE_ADMIN;
}

bool weir__op_always(const weir_op *op)
{
    (void)op;
    return true;
}

bool weir__op_never(const weir_op *op)
{
    (void)op;
    return false;
}

static size_t *no_limit(weir_op *op)
{
    (void)op;
    return NULL;
}

const weir_steps weir__op_no_steps[] = { { .limit = no_limit } };

const char *weir__op_no_action(const weir_op *op)
{
    (void)op;
    return NULL;
}

const char *weir__op_no_detail(const weir_op *op)
{
    (void)op;
    return NULL;
}

uint64_t *weir__op_no_job(weir_op *op, size_t i)
{
    (void)op, (void)i;
    return NULL;
}

const char **weir__op_no_type(weir_op *op, size_t i)
{
    (void)op, (void)i;
    return NULL;
}

const char *const *weir__op_no_data(const weir_op *op, size_t i)
{
    (void)op, (void)i;
    return NULL;
}

const weir_token **weir__op_no_token(weir_op *op)
{
    (void)op;
    return NULL;
}

static bool has_token(const weir_op *op)
{
    const weir_token **token = weir__op_row(op)->token((weir_op *)(uintptr_t)op);
    return token && *token;
}

const weir_repeat weir__repeat_always[] = { { .may = weir__op_always } };
const weir_repeat weir__repeat_never[] = { { .may = weir__op_never } };
const weir_repeat weir__repeat_token[] = { { .may = has_token } };

void weir__ask_job(weir_op *question, uint64_t id)
{
    *question = (weir_op){ .kind = WEIR_OP_GET, .u.get.id = id };
}

const weir_op_take *weir__op_no_take(const weir_op *op)
{
    (void)op;
    return NULL;
}

size_t weir__op_no_jobs(const weir_op *op)
{
    (void)op;
    return 0;
}

bool weir__op_no_result(const weir_op *op, size_t i, uint64_t *id)
{
    (void)op, (void)i, (void)id;
    return false;
}

bool weir__op_no_cut(weir_op *op, weir_sees *sees, const void *caller)
{
    (void)op, (void)sees, (void)caller;
    return true;
}

weir_code weir__op_no_check(weir_op *op, weir_error *err)
{
    (void)op, (void)err;
    return WEIR_OK;
}

void weir__op_no_copy(weir_copier *c, weir_op *op)
{
    (void)c, (void)op;
}

void weir__op_no_output(weir_op *op)
{
    (void)op;
}

size_t weir__op_small(const weir_op *op)
{
    (void)op;
    return WEIR__OP_SIZE;
}

size_t weir__op_with_bytes(const weir_op *op)
{
    return WEIR__OP_SIZE + weir__op_copy_size(op);
}

void weir__op_no_members(weir_buf *out, const weir_op *op)
{
    (void)out, (void)op;
}

const weir_field weir__op_no_answer[] = { FIELD_ERROR, { 0 } };

weir_code weir__op_read(weir_reader *in, op_request *r)
{
    (void)in, (void)r;
    return WEIR_OK;
}

weir_code weir__op_answered(weir_reader *in, op_answer *a)
{
    (void)in, (void)a;
    return WEIR_OK;
}

/* ---- checks ---- */

weir_code weir__check_limit(size_t *limit, size_t preset, const char *field, weir_error *err)
{
    if (!*limit)
        *limit = preset;
    if (*limit > WEIR_MAX_PAGE)
        return weir__fail_field(err, WEIR_ELIMIT, field, "%zu, at most %d (WEIR_MAX_PAGE)", *limit,
                                WEIR_MAX_PAGE);
    return WEIR_OK;
}

weir_code weir__check_lease(int64_t *lease_ms, weir_error *err)
{
    if (!*lease_ms)
        *lease_ms = WEIR_DEFAULT_LEASE_MS;
    return weir__ms_check(*lease_ms, "lease_ms", err);
}

weir_code weir__check_worker(const char *worker, weir_error *err)
{
    if (!worker)
        return weir__fail_field(err, WEIR_EINVAL, "worker", "missing");
    size_t len = strlen(worker);
    if (len > WEIR_MAX_WORKER)
        return weir__fail_field(err, WEIR_ELIMIT, "worker", "%zu bytes, at most %d "
                                "(WEIR_MAX_WORKER)", len, WEIR_MAX_WORKER);
    return WEIR_OK;
}

weir_code weir__check_json(const char *json, size_t *len, const char *field, weir_error *err)
{
    if (!json) {
        *len = 0;
        return WEIR_OK;
    }
    if (!*len)
        *len = strlen(json);
    return weir__json_check(json, *len, field, err);
}

void weir__cut_text(const char *text, size_t *len)
{
    *len = *len ? strnlen(text, *len) : strlen(text);
    *len = weir__utf8_cut(text, *len, WEIR_MAX_TEXT);
}
