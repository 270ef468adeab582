/* op_add.c - ADD: new jobs. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "core/job_fields.h"
#include "op/row.h"

static const char *action(const weir_op *op)
{
    (void)op;
    return "job.add";
}

static const char **type(weir_op *op, size_t i)
{
    /* A server looks at the types; it does not write to specs, which are borrowed. */
    weir_op_add *add = &op->u.add;
    return i < add->n ? &((weir_spec *)(uintptr_t)add->specs)[i].type : NULL;
}

static const char *const *data(const weir_op *op, size_t i)
{
    return i < op->u.add.n ? &op->u.add.specs[i].data : NULL;
}

static const weir_token **token(weir_op *op)
{
    return &op->u.add.token;
}

static size_t most(const weir_op *op)
{
    return op->u.add.n;
}

static bool result(const weir_op *op, size_t i, uint64_t *id)
{
    *id = i < op->u.add.n ? op->u.add.out[i].id : 0;
    return i < op->u.add.n;
}

/* ---- check ---- */

static weir_code check_token(const weir_token *t, weir_error *err)
{
    size_t    len = t->key ? strlen(t->key) : 0;
    weir_code rc = WEIR__CHECK_RESERVED(t, err);
    if (rc)
        return weir__fail_inside(err, rc, "token");
    if (!len)
        return weir__fail_field(err, WEIR_EINVAL, "token.key", "%s", t->key ? "empty" : "missing");
    if (len > WEIR_MAX_TOKEN)
        return weir__fail_field(err, WEIR_ELIMIT, "token.key", "%zu bytes, at most %d "
                                "(WEIR_MAX_TOKEN)", len, WEIR_MAX_TOKEN);
    if (!weir__utf8_valid(t->key, len))
        return weir__fail_field(err, WEIR_EINVAL, "token.key", "not valid UTF-8");
    return WEIR_OK;
}

/* The length of a text that may be missing, or end at its NUL. */
static size_t length(const char *text, size_t len)
{
    return len || !text ? len : strlen(text);
}

static size_t length_of(const weir_spec *s)
{
    return length(s->data, s->data_len) + length(s->values, s->values_len);
}

static weir_code too_many(size_t i, weir_error *err)
{
    weir__fail_field(err, WEIR_ELIMIT, "data", "more than %d bytes together (WEIR_MAX_ADD_BYTES)",
                     WEIR_MAX_ADD_BYTES);
    return weir__fail_inside(err, WEIR_ELIMIT, "jobs[%zu]", i);
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_add *a = &op->u.add;
    size_t       bytes = 0;
    weir_code    rc = a->token ? check_token(a->token, err) : WEIR_OK;
    if (rc)
        return rc;
    if (a->n > WEIR_MAX_ADD)
        return weir__fail_field(err, WEIR_ELIMIT, "jobs", "%zu, at most %d (WEIR_MAX_ADD)", a->n,
                                WEIR_MAX_ADD);
    if (a->n && !a->specs)
        return weir__fail_field(err, WEIR_EINVAL, "jobs", "missing");
    for (size_t i = 0; i < a->n; i++) {
        if (!a->checked)
            rc = weir__spec_check(&a->specs[i], a->n > 1 ? (ptrdiff_t)i : -1, err);
        if (rc)
            return rc;
        bytes += length_of(&a->specs[i]);
        if (bytes > WEIR_MAX_ADD_BYTES)
            return too_many(i, err);
    }
    return WEIR_OK;
}

static void copy(weir_copier *c, weir_op *op)
{
    weir_op_add *add = &op->u.add;
    weir_spec   *specs = weir__copy_array(c, add->specs, add->n * sizeof *specs);
    for (size_t i = 0; i < add->n; i++) {
        weir_spec *s = &specs[i];
#define TEXT(member, ...)  weir__copy_text(c, &s->member);
#define BYTES(member, ...) weir__copy_either(c, &s->member, s->member##_len);
        WEIR_SPEC_TEXTS(TEXT)
        WEIR_SPEC_BYTES(BYTES)
#undef TEXT
#undef BYTES
    }
    add->specs = specs;
    if (add->token) {
        weir_token *own = weir__copy_array(c, add->token, sizeof *own);
        weir__copy_text(c, &own->key);
        add->token = own;
    }
    add->out = weir__copy_room(c, add->n * sizeof *add->out);
}

/* ---- as JSON ---- */

static size_t size(const weir_op *op)
{
    size_t bytes = WEIR__OP_SIZE;
    for (size_t i = 0; i < op->u.add.n; i++)
        bytes += 2 * WEIR__OP_SIZE + length_of(&op->u.add.specs[i]);
    return bytes;
}

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_token *t = op->u.add.token;
    if (t) {
        weir__put_text(b, ",\"once\":{\"key\":", t->key, strlen(t->key));
        weir__put_id(b, ",\"number\":", t->number);
        if (t->digest)
            weir__put_id(b, ",\"digest\":", t->digest);
        weir__buf_char(b, '}');
    }
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.add.n; i++) {
        weir__put_next(b, i);
        weir__put_spec(b, &op->u.add.specs[i]);
    }
    weir__buf_char(b, ']');
}

static const weir_field once_fields[] = {
    WEIR_FIELD("key", weir__as_text, offsetof(weir_token, key), .needed = true),
    WEIR_FIELD("number", weir__as_number, offsetof(weir_token, number), .needed = true),
    WEIR_FIELD("digest", weir__as_number, offsetof(weir_token, digest)),
    { 0 }
};
static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("once", weir__as_object, REQUEST(once), .fields = once_fields,
               .given = REQUEST(has_once)),
    WEIR_FIELD("jobs", weir__as_list, REQUEST(items), .fields = weir__spec_fields,
               .size = sizeof(weir_spec), .needed = true, .max = WEIR_MAX_ADD, .inside = true),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    weir_op_add *add = &r->op.u.add;
    add->specs = r->items.item;
    add->n = r->items.n;
    add->out = weir__read_room(in, add->n, sizeof *add->out);
    if (r->has_once) {
        weir_token *own = weir__read_room(in, 1, sizeof *own);
        if (own)
            *own = r->once;
        add->token = own;
    }
    return in->err.code;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    const weir_op_add *add = &op->u.add;
    const char        *durability = weir_durability_name(add->n ? add->out[0].durability
                                                                : WEIR_DURABILITY_NONE);
    weir__put_text(b, ",\"durability\":", durability, strlen(durability));
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < add->n; i++) {
        weir__put_next(b, i);
        weir__put_id(b, "{\"id\":", add->out[i].id);
        weir__put_state(b, ",\"state\":", add->out[i].state);
        weir__put_flag(b, ",\"existed\":", add->out[i].existed);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

static const weir_field added_fields[] = {
    WEIR_FIELD("id", weir__as_number, offsetof(weir_added, id), .needed = true),
    WEIR_FIELD("state", weir__as_state, offsetof(weir_added, state)),
    WEIR_FIELD("existed", weir__as_bool, offsetof(weir_added, existed)),
    { 0 }
};
static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("durability", weir__as_text, ANSWER(durability)),
    WEIR_FIELD("jobs", weir__as_list, ANSWER(items), .fields = added_fields,
               .size = sizeof(weir_added), .inside = true),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    weir_op_add    *add = &a->op->u.add;
    weir_durability d = weir__durability_read(a->durability);
    if (a->items.n != add->n)
        return weir__read_nonsense(in, "not as many jobs as were added");
    if (add->n)
        memcpy(add->out, a->items.item, add->n * sizeof *add->out);
    for (size_t i = 0; i < add->n; i++)
        add->out[i].durability = d;
    return WEIR_OK;
}

const weir_op_row weir__row_add = WEIR_OP_ROW(
    "add", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_produce,
    /* writes */ weir__op_always, weir__op_no_steps, action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, type, data, token, weir__repeat_token, weir__op_no_take,
    most, result, weir__op_no_cut, check, copy, weir__op_no_output, weir__op_no_output, size,
    write_request, request, read_request, write_answer, answer, read_answer);
