/* wire.c - batches and their answers as JSON: what is around the operations. See wire.h. */
#include "wire/wire.h"

#include <string.h>

#include "wire/inner.h"

static const wire_kind *const kinds[WEIR_OP_KINDS] = {
#define X(kind, member, writes) &weir__wire_op_##member,
    WEIR_OPS(X)
#undef X
};

/* ---- writing ---- */

void weir__wire_int(weir_buf *out, const char *name, int64_t n)
{
    weir__buf_str(out, name);
    weir__buf_int(out, n);
}

void weir__wire_id(weir_buf *out, const char *name, uint64_t id)
{
    weir__buf_str(out, name);
    weir__buf_uint(out, id);
}

void weir__wire_text(weir_buf *out, const char *name, const char *text, size_t len)
{
    weir__buf_str(out, name);
    weir__json_string(out, text, len);
}

void weir__wire_state(weir_buf *out, const char *name, weir_state state)
{
    const char *text = weir_state_name(state);
    if (state != WEIR_ANY)
        weir__wire_text(out, name, text, strlen(text));
}

void weir__wire_flag(weir_buf *out, const char *name, bool flag)
{
    if (!flag)
        return;
    weir__buf_str(out, name);
    weir__buf_str(out, "true");
}

void weir__wire_raw(weir_buf *out, const char *name, const char *json, size_t len)
{
    weir__buf_str(out, name);
    weir__buf_add(out, json, len);
}

void weir__wire_fault(weir_buf *out, const weir_error *err)
{
    const char *name = weir_code_name(err->code);
    weir__wire_text(out, ",\"error\":{\"code\":", name, strlen(name));
    weir__wire_text(out, ",\"message\":", err->msg, strlen(err->msg));
    weir__buf_char(out, '}');
}

/* ---- reading ---- */

void *weir__wire_room(weir_reader *in, size_t n, size_t size)
{
    void *room = in->alloc(in->ctx, (n ? n : 1) * size);
    if (!room)
        weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
    return room;
}

weir_code weir__wire_nonsense(weir_reader *in, const char *what)
{
    return weir_fail(&in->err, WEIR_EIO, "%s", what);
}

weir_code weir__wire_as_number(weir_reader *in, const weir_field *f, weir_json_piece value,
                               void *to)
{
    uint64_t n = 0;
    (void)f;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = (unsigned)(unsigned char)value.text[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return weir__not_a(in, value, "a whole number");
        n = n * 10 + digit;
    }
    *(uint64_t *)to = n;
    return WEIR_OK;
}

weir_code weir__wire_as_delivery(weir_reader *in, const weir_field *f, weir_json_piece value,
                                 void *to)
{
    uint64_t n = 0;
    if (weir__wire_as_number(in, f, value, &n))
        return in->err.code;
    if (n > UINT32_MAX)
        return weir__not_a(in, value, "a delivery number");
    *(uint32_t *)to = (uint32_t)n;
    return WEIR_OK;
}

typedef struct fault {
    const char *code, *message, *field;
} fault;

weir_code weir__wire_as_error(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    static const weir_field fields[] = {
        WEIR_FIELD("code", weir__as_text, offsetof(fault, code), .needed = true),
        WEIR_FIELD("message", weir__as_text, offsetof(fault, message), .needed = true),
        WEIR_FIELD("field", weir__as_text, offsetof(fault, field)),
        { 0 }
    };
    fault       got = { 0 };
    weir_error *err = to;
    (void)f;
    if (weir__as_object(in, &(weir_field){ .fields = fields }, value, &got))
        return in->err.code;
    weir_code code = WEIR_OK;
    for (weir_code c = WEIR_OK; c < WEIR_CODES_END; c++) {
        if (!strcmp(got.code, weir_code_name(c)))
            code = c;
    }
    weir_fail(err, code, "%s", got.message);
    return WEIR_OK;
}

bool weir__wire_error(const char *text, size_t len, weir_error *out)
{
    static const weir_field fields[] = {
        WEIR_FIELD("error", weir__wire_as_error, 0, .needed = true),
        { 0 }
    };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    bool        ok = !weir__read_check(&in, text, len, WIRE_DEPTH) &&
              !weir__read(&in, fields, (weir_json_piece){ text, len }, out);
    weir__arena_free(&arena);
    return ok;
}

/* ---- asking ---- */

void weir__wire_begin(weir_buf *out, const char *caller, uint64_t number, const char *run)
{
    weir__wire_text(out, "{\"caller\":", caller, strlen(caller));
    weir__wire_id(out, ",\"number\":", number);
    if (*run)
        weir__wire_text(out, ",\"run\":", run, strlen(run));
    weir__buf_str(out, ",\"ops\":[");
}

void weir__wire_ask(weir_buf *out, const weir_op *op)
{
    weir__wire_next(out, out->len && out->data[out->len - 1] != '[');
    weir__buf_str(out, "{\"op\":\"");
    weir__buf_str(out, weir__op_info[op->kind].name);
    weir__buf_char(out, '"');
    kinds[op->kind]->ask(out, op);
    weir__buf_char(out, '}');
}

void weir__wire_end(weir_buf *out)
{
    weir__buf_str(out, "]}");
}

typedef struct reply {
    const char *run;
    uint64_t    event;
    weir_op   **ops;
    size_t      n, taken;
    bool        answers;            /* they were there */
} reply;

/* One answer. What is not one leaves WEIR_EIO: the operation may have been done all the same. */
static void take_one(weir_reader *in, weir_json_piece value, weir_op *op)
{
    const wire_kind *k = kinds[op->kind];
    wire_told        t = { .op = op };
    op->err = (weir_error){ 0 };
    weir_code rc = weir__read(in, k->told, value, &t);
    if (rc)
        in->end = weir__json_end(value);
    const char *end = in->end;
    if (!rc && t.failed) {
        op->err = t.err;
        if (!op->err.code)
            op->err.code = WEIR_EIO;
    } else if (!rc && k->take) {
        rc = k->take(in, &t);
    }
    if (rc)
        weir_fail(&op->err, rc == WEIR_ENOMEM ? rc : WEIR_EIO, "the server's answer to %s is not "
                  "understood: %s", weir__op_info[op->kind].name, in->err.msg);
    weir_page_release(t.page);
    in->err = (weir_error){ 0 };
    in->end = end;
}

static weir_code as_answers(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    reply          *got = (reply *)((char *)to - offsetof(reply, answers));
    weir_json_walk  w;
    weir_json_piece none, one;
    (void)f;
    if (!got->run)
        return weir__wire_nonsense(in, "there is no run before them");
    if (!weir__json_open(&w, value) || w.object)
        return weir__not_a(in, value, "a list");
    got->answers = true;
    while (weir__json_begin(&w, &none, &one)) {
        if (got->taken == got->n)
            return weir__wire_nonsense(in, "more than were asked for");
        take_one(in, one, got->ops[got->taken++]);
        w.at = in->end;
    }
    in->end = none.text + 1;
    return WEIR_OK;
}

weir_code weir__wire_take(const char *text, size_t len, wire_head *head, weir_op **ops, size_t n,
                          weir_error *err)
{
    static const weir_field fields[] = {
        WEIR_FIELD("run", weir__as_text, offsetof(reply, run), .max = WIRE_RUN),
        WEIR_FIELD("event", weir__wire_as_number, offsetof(reply, event)),
        WEIR_FIELD("answers", as_answers, offsetof(reply, answers), .inside = true,
                   .needed = true),
        { 0 }
    };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    reply       got = { .ops = ops, .n = n };
    weir_code   rc = weir__read_check(&in, text, len, WIRE_DEPTH);
    if (!rc)
        rc = weir__read(&in, fields, (weir_json_piece){ text, len }, &got);
    if (got.answers) {              /* whatever is behind them */
        rc = WEIR_OK;
        strcpy(head->run, got.run);
        head->event = got.event;
    } else {
        rc = weir_fail(err, WEIR_EIO, "the server's answer is not understood: %s", in.err.msg);
    }
    for (size_t i = got.taken; !rc && i < n; i++)
        weir_fail(&ops[i]->err, WEIR_EIO, "the server did not answer to %s",
                  weir__op_info[ops[i]->kind].name);
    weir__arena_free(&arena);
    return rc;
}

/* ---- answering ---- */

/* Which operation is it? The member may be anywhere. */
static weir_code find_kind(weir_reader *in, weir_json_piece value, weir_op_kind *out)
{
    weir_json_walk  w;
    weir_json_piece name, one;
    if (!weir__json_open(&w, value) || !w.object)
        return weir__not_a(in, value, "an object");
    while (weir__json_next(&w, &name, &one)) {
        if (name.len != 4 || memcmp(name.text, "\"op\"", 4) != 0)
            continue;
        for (*out = 0; *out < WEIR_OP_KINDS; ++*out) {
            const char *known = weir__op_info[*out].name;
            if (one.len == strlen(known) + 2 && !memcmp(one.text + 1, known, one.len - 2))
                return WEIR_OK;
        }
        weir__not_a(in, one, "an operation");
        strcpy(in->field, "op");
        return WEIR_EINVAL;
    }
    strcpy(in->field, "op");
    return weir_fail(&in->err, WEIR_EINVAL, "missing");
}

static weir_code as_op(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    wire_asked a = { 0 };
    (void)f;
    if (find_kind(in, value, &a.op.kind))
        return in->err.code;
    const wire_kind *k = kinds[a.op.kind];
    if (weir__as_object(in, &(weir_field){ .fields = k->asked }, value, &a) ||
        (k->read && k->read(in, &a)))
        return in->err.code;
    *(weir_op *)to = a.op;
    return WEIR_OK;
}

static weir_code as_ops(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    weir_items *items = to;
    items->item = NULL;
    return weir__read_list(in, f, value, sizeof(weir_op), as_op, &items->item, &items->n);
}

weir_code weir__wire_read(weir_reader *in, const char *text, size_t len, wire_batch *out)
{
    typedef struct batch {
        const char *caller, *run;
        uint64_t    number;
        weir_items  ops;
    } batch;
    static const weir_field fields[] = {
        WEIR_FIELD("caller", weir__as_text, offsetof(batch, caller), .min = WIRE_CALLER,
                   .max = WIRE_CALLER),
        WEIR_FIELD("number", weir__wire_as_number, offsetof(batch, number)),
        WEIR_FIELD("run", weir__as_text, offsetof(batch, run), .max = WIRE_RUN),
        WEIR_FIELD("ops", as_ops, offsetof(batch, ops), .needed = true, .max = WIRE_MAX_OPS,
                   .inside = true),
        { 0 }
    };
    batch got = { 0 };
    *out = (wire_batch){ 0 };
    if (weir__read_check(in, text, len, WIRE_DEPTH) ||
        weir__read(in, fields, (weir_json_piece){ text, len }, &got))
        return in->err.code;
    if (got.number && !got.caller) {
        strcpy(in->field, "caller");
        return weir_fail(&in->err, WEIR_EINVAL, "caller: missing, but the batch has a number");
    }
    *out = (wire_batch){ .caller = got.caller, .run = got.run, .number = got.number,
                         .op = got.ops.item, .n = got.ops.n };
    return WEIR_OK;
}

void weir__wire_reply(weir_buf *out, const wire_head *head)
{
    weir__wire_text(out, "{\"run\":", head->run, strlen(head->run));
    weir__wire_id(out, ",\"event\":", head->event);
    weir__buf_str(out, ",\"answers\":[");
}

void weir__wire_answer(weir_buf *out, const weir_op *op)
{
    weir__wire_next(out, out->len && out->data[out->len - 1] != '[');
    size_t from = out->len;
    if (op->err.code)
        weir__wire_fault(out, &op->err);
    else
        kinds[op->kind]->answer(out, op);
    if (out->failed)
        return;
    if (out->len == from)
        weir__buf_char(out, '{');
    else
        out->data[from] = '{';                      /* the comma of its first member */
    weir__buf_char(out, '}');
}

void weir__wire_replied(weir_buf *out)
{
    weir__buf_str(out, "]}");
}

static void drop_jobs(weir_op_take *t)
{
    for (size_t i = 0; i < t->n_jobs; i++)
        weir_job_release(t->jobs[i]);
    t->n_jobs = 0;
}

void weir__wire_drop(weir_op *op)
{
    switch (op->kind) {
    case WEIR_OP_TAKE:
        drop_jobs(&op->u.take);
        break;
    case WEIR_OP_FINISH:
        drop_jobs(&op->u.finish.next);
        break;
    case WEIR_OP_GET:
        weir_job_release(op->u.get.job);
        op->u.get.job = NULL;
        break;
    case WEIR_OP_LIST:
        weir_page_release(op->u.list.page);
        op->u.list.page = NULL;
        break;
    case WEIR_OP_LOGS:
        weir_lines_release(op->u.logs.lines);
        op->u.logs.lines = NULL;
        break;
    case WEIR_OP_STATS:
        weir_stats_release(op->u.stats.stats);
        op->u.stats.stats = NULL;
        break;
    case WEIR_OP_CHECK:
        weir_report_release(op->u.check.report);
        op->u.check.report = NULL;
        break;
    default:
        break;
    }
}
