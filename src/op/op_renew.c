/* op_renew.c - RENEW: longer leases for jobs that a worker holds. */
#include <string.h>

#include "op/row.h"

static uint64_t *job(weir_op *op, size_t i)
{
    return i < op->u.renew.n ? &op->u.renew.items[i].id : NULL;
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_renew *r = &op->u.renew;
    if (r->n && !r->items)
        return weir__fail_field(err, WEIR_EINVAL, "items", "missing");
    for (size_t i = 0; i < r->n; i++) {
        weir_code rc = weir__check_lease(&r->items[i].lease_ms, err);
        if (rc)
            return r->n > 1 ? weir__fail_inside(err, rc, "leases[%zu]", i) : rc;
    }
    return WEIR_OK;
}

static void copy(weir_copier *c, weir_op *op)
{
    weir_op_renew *r = &op->u.renew;
    r->items = weir__copy_array(c, r->items, r->n * sizeof *r->items);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.renew.n; i++) {
        const weir_renewal *l = &op->u.renew.items[i];
        weir__put_next(b, i);
        weir__put_id(b, "{\"id\":", l->id);
        weir__put_int(b, ",\"delivery\":", l->delivery);
        weir__put_int(b, ",\"lease\":", l->lease_ms);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

static const weir_field lease_fields[] = {
    WEIR_FIELD("id", weir__as_number, offsetof(weir_renewal, id), .needed = true),
    WEIR_FIELD("delivery", weir__as_any_delivery, offsetof(weir_renewal, delivery), .needed = true),
    WEIR_FIELD("lease", weir__as_ms, offsetof(weir_renewal, lease_ms)),
    { 0 }
};
static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("jobs", weir__as_list, REQUEST(items), .fields = lease_fields,
               .size = sizeof(weir_renewal), .needed = true, .max = WEIR_MAX_ADD),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    (void)in;
    r->op.u.renew.items = r->items.item;
    r->op.u.renew.n = r->items.n;
    return WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"codes\":[");
    for (size_t i = 0; i < op->u.renew.n; i++)
        weir__buf_printf(b, "%s\"%s\"", i ? "," : "", weir_code_name(op->u.renew.items[i].code));
    weir__buf_char(b, ']');
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("codes", weir__as_texts, ANSWER(texts)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    weir_op_renew *r = &a->op->u.renew;
    if (a->texts.n != r->n)
        return weir__read_nonsense(in, "not as many codes as there were leases");
    for (size_t i = 0; i < r->n; i++)
        r->items[i].code = strcmp(a->texts.text[i], "OK") ? WEIR_ESTALE : WEIR_OK;
    return WEIR_OK;
}

const weir_op_row weir__row_renew = WEIR_OP_ROW(
    "renew", WEIR_LANE_WORK, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_work,
    /* writes */ weir__op_always, weir__op_no_steps, weir__op_no_action, weir__op_no_detail,
    job, /* each */ true, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, check, copy, weir__op_no_output, weir__op_no_output, weir__op_small,
    write_request, request, read_request, write_answer, answer, read_answer);
