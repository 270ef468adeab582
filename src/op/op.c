/* op.c - the table of operations, and what is the same for all of them: see op.h. */
#include "op/op.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "op/row.h"

const weir_op_row *const weir__op_rows[WEIR_OP_COUNT] = {
#define X(kind, member) [WEIR_OP_##kind] = &weir__row_##member,
    WEIR_OPS(X)
#undef X
};

weir_lane weir__ops_lane(weir_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (weir__op_row(ops[i])->lane != WEIR_LANE_WORK)
            return WEIR_LANE_OTHER;
    }
    return WEIR_LANE_WORK;
}

weir_code weir__op_check(weir_op *op, weir_error *err)
{
    assert((unsigned)op->kind < WEIR_OP_COUNT);
    return weir__op_row(op)->check(op, err);
}

/* `json` is valid, or NULL. Vert.x Kue deletes a job whose data it cannot read as an object. */
static weir_code check_object(const char *json, const char *field, weir_error *err)
{
    const char *at = json ? json + strspn(json, " \t\r\n") : "{";
    if (*at == '{')
        return WEIR_OK;
    return weir__fail_field(err, WEIR_EINVAL, field, "must be a JSON object in this store "
                            "(profile=vertx), since Vert.x Kue deletes a job with other data");
}

weir_code weir__op_check_objects(const weir_op *op, weir_error *err)
{
    const weir_op_row *type = weir__op_row(op);
    bool                several = type->data(op, 1);
    const char *const  *data;
    for (size_t i = 0; (data = type->data(op, i)); i++) {
        char field[40] = "data";
        if (several)
            snprintf(field, sizeof field, "jobs[%zu].data", i);
        weir_code rc = check_object(*data, field, err);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

bool weir__op_refused(weir_op *op, bool read_only)
{
    if (!read_only || !weir__op_writes(op))
        return false;
    weir_fail(&op->err, WEIR_EREADONLY, "the store is open for reading only");
    return true;
}

void weir__op_clear(weir_op *op)
{
    op->err.code = WEIR_OK;
    op->err.msg[0] = '\0';
    weir__op_row(op)->clear(op);
}

void weir__op_free(weir_op *op)
{
    if (!op->err.code)
        weir__op_row(op)->release(op);
    weir__op_row(op)->clear(op);
}
