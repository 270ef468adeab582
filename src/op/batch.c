/* batch.c - batches and their answers as JSON: what is around the operations. See batch.h. */
#include "op/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "op/row.h"

enum { EVENT_WIDTH = 20 };          /* characters of the number of an event in an answer */

bool weir__batch_error(const char *text, size_t len, weir_error *out)
{
    static const weir_field fields[] = {
        WEIR_FIELD("error", weir__as_error, 0, .needed = true),
        { 0 }
    };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    bool        ok = !weir__read_check(&in, text, len, WEIR_BATCH_DEPTH) &&
              !weir__read(&in, fields, (weir_json_piece){ text, len }, out);
    weir__arena_free(&arena);
    return ok;
}

/* ---- asking ---- */

void weir__batch_begin(weir_buf *out, const char *caller, uint64_t number, const char *run)
{
    weir__put_text(out, "{\"caller\":", caller, strlen(caller));
    weir__put_id(out, ",\"number\":", number);
    if (*run)
        weir__put_text(out, ",\"run\":", run, strlen(run));
    weir__buf_str(out, ",\"ops\":[");
}

void weir__batch_add(weir_buf *out, const weir_op *op)
{
    weir__put_next(out, out->len && out->data[out->len - 1] != '[');
    weir__buf_str(out, "{\"op\":\"");
    weir__buf_str(out, weir__op_row(op)->name);
    weir__buf_char(out, '"');
    weir__op_row(op)->write_request(out, op);
    weir__buf_char(out, '}');
}

void weir__batch_end(weir_buf *out)
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

/* One answer. A malformed answer leaves WEIR_EIO: the operation may have been done all the same. */
static void read_one(weir_reader *in, weir_json_piece value, weir_op *op)
{
    const weir_op_row *row = weir__op_row(op);
    op_answer          a = { .op = op };
    op->err = (weir_error){ 0 };
    weir_code rc = weir__read(in, row->answer, value, &a);
    if (rc)
        in->end = weir__json_end(value);
    const char *end = in->end;
    if (!rc && a.failed) {
        op->err = a.err;
        if (!op->err.code)
            op->err.code = WEIR_EIO;
    } else if (!rc) {
        rc = row->read_answer(in, &a);
    }
    if (rc)
        weir_fail(&op->err, rc == WEIR_ENOMEM ? rc : WEIR_EIO, "the server's answer to %s is not "
                  "understood: %s", row->name, in->err.msg);
    weir_page_free(a.page);
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
        return weir__read_nonsense(in, "there is no run before them");
    if (!weir__json_open(&w, value) || w.object)
        return weir__not_a(in, value, "a list");
    got->answers = true;
    while (weir__json_begin(&w, &none, &one)) {
        if (got->taken == got->n)
            return weir__read_nonsense(in, "more than were asked for");
        read_one(in, one, got->ops[got->taken++]);
        w.at = in->end;
    }
    in->end = none.text + 1;
    return WEIR_OK;
}

weir_code weir__batch_read_answers(const char *text, size_t len, weir_batch_head *head,
                                   weir_op **ops, size_t n, weir_error *err)
{
    static const weir_field fields[] = {
        WEIR_FIELD("run", weir__as_text, offsetof(reply, run), .max = WEIR_BATCH_RUN),
        WEIR_FIELD("event", weir__as_number, offsetof(reply, event)),
        WEIR_FIELD("answers", as_answers, offsetof(reply, answers), .inside = true,
                   .needed = true),
        { 0 }
    };
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena, .lenient = true };
    reply       got = { .ops = ops, .n = n };
    weir_code   rc = weir__read_check(&in, text, len, WEIR_BATCH_DEPTH);
    if (!rc)
        rc = weir__read(&in, fields, (weir_json_piece){ text, len }, &got);
    if (got.answers) {              /* whatever is behind them */
        rc = WEIR_OK;
        strcpy(head->run, got.run ? got.run : "");
        head->event = got.event;
    } else {
        rc = weir_fail(err, WEIR_EIO, "the server's answer is not understood: %s", in.err.msg);
    }
    for (size_t i = got.taken; !rc && i < n; i++)
        weir_fail(&ops[i]->err, WEIR_EIO, "the server did not answer to %s",
                  weir__op_row(ops[i])->name);
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
        for (*out = 0; *out < WEIR_OP_COUNT; ++*out) {
            const char *known = weir__op_rows[*out]->name;
            if (one.len == strlen(known) + 2 && !memcmp(one.text + 1, known, one.len - 2))
                return WEIR_OK;
        }
        weir__not_a(in, one, "an operation");
        strcpy(in->err.field, "op");
        return WEIR_EINVAL;
    }
    weir_fail(&in->err, WEIR_EINVAL, "missing");
    strcpy(in->err.field, "op");
    return WEIR_EINVAL;
}

static weir_code as_op(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    op_request r = { 0 };
    (void)f;
    if (find_kind(in, value, &r.op.kind))
        return in->err.code;
    const weir_op_row *row = weir__op_row(&r.op);
    if (weir__as_object(in, &(weir_field){ .fields = row->request }, value, &r) ||
        row->read_request(in, &r))
        return in->err.code;
    *(weir_op *)to = r.op;
    return WEIR_OK;
}

static weir_code as_ops(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    weir_items *items = to;
    items->item = NULL;
    return weir__read_list(in, f, value, sizeof(weir_op), as_op, &items->item, &items->n);
}

bool weir__batch_takes(const weir_op *op)
{
    const weir_op_take *take = weir__op_row(op)->take(op);
    return take && take->n;
}

static weir_code check_takes(weir_reader *in, const weir_batch *b)
{
    size_t takes = 0;
    for (size_t i = 0; i < b->n; i++)
        takes += weir__batch_takes(&b->op[i]);
    if (takes <= WEIR_BATCH_MAX_TAKES)
        return WEIR_OK;
    return weir__fail_field(&in->err, WEIR_ELIMIT, "ops", "%zu of them take jobs, at most %d may "
                            "(WEIR_BATCH_MAX_TAKES)", takes, WEIR_BATCH_MAX_TAKES);
}

weir_code weir__batch_read(weir_reader *in, const char *text, size_t len, weir_batch *out)
{
    typedef struct batch {
        const char *caller, *run;
        uint64_t    number;
        weir_items  ops;
    } batch;
    static const weir_field fields[] = {
        WEIR_FIELD("caller", weir__as_text, offsetof(batch, caller), .min = WEIR_BATCH_CALLER,
                   .max = WEIR_BATCH_CALLER),
        WEIR_FIELD("number", weir__as_number, offsetof(batch, number)),
        WEIR_FIELD("run", weir__as_text, offsetof(batch, run), .max = WEIR_BATCH_RUN),
        WEIR_FIELD("ops", as_ops, offsetof(batch, ops), .needed = true, .max = WEIR_BATCH_MAX_OPS,
                   .inside = true),
        { 0 }
    };
    batch got = { 0 };
    *out = (weir_batch){ 0 };
    if (weir__read_check(in, text, len, WEIR_BATCH_DEPTH) ||
        weir__read(in, fields, (weir_json_piece){ text, len }, &got))
        return in->err.code;
    if (got.number && !got.caller) {
        return weir__fail_field(&in->err, WEIR_EINVAL, "caller", "missing, but the batch has a "
                                "number");
    }
    *out = (weir_batch){ .caller = got.caller, .run = got.run, .number = got.number,
                         .op = got.ops.item, .n = got.ops.n };
    return check_takes(in, out);
}

void weir__batch_answer_begin(weir_buf *out, const weir_batch_head *head)
{
    weir__put_text(out, "{\"run\":", head->run, strlen(head->run));
    weir__buf_printf(out, ",\"event\":%-*" PRIu64 ",\"answers\":[", EVENT_WIDTH, head->event);
}

void weir__batch_answer_event(weir_buf *out, uint64_t event)
{
    static const char before[] = "\"event\":";
    char              text[EVENT_WIDTH + 1];
    char             *at = out->failed ? NULL : strstr(out->data, before);
    if (at)
        memcpy(at + sizeof before - 1, text,
               (size_t)snprintf(text, sizeof text, "%-*" PRIu64, EVENT_WIDTH, event));
}

void weir__batch_answer(weir_buf *out, const weir_op *op)
{
    weir__put_next(out, out->len && out->data[out->len - 1] != '[');
    size_t from = out->len;
    if (op->err.code)
        weir__put_error(out, &op->err);
    else
        weir__op_row(op)->write_answer(out, op);
    if (out->failed)
        return;
    if (out->len == from)
        weir__buf_char(out, '{');
    else
        out->data[from] = '{';                      /* the comma of its first member */
    weir__buf_char(out, '}');
}

void weir__batch_answer_end(weir_buf *out)
{
    weir__buf_str(out, "]}");
}
