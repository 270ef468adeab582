/* op_finish.c - FINISH: the end of a delivery, and perhaps the next jobs. */
#include <string.h>

#include "core/history.h"
#include "core/job.h"
#include "op/row.h"

static const char *action(const weir_op *op)
{
    (void)op;
    return "job.finish";
}

static const weir_op_take *take(const weir_op *op)
{
    return &op->u.finish.next;
}

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.finish.id;
}

static const char **type(weir_op *op, size_t i)
{
    weir_op_take *next = &op->u.finish.next;
    return i < next->n_types ? &((const char **)(uintptr_t)next->types)[i] : NULL;
}

static size_t most(const weir_op *op)
{
    return op->u.finish.next.n;
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_finish *f = &op->u.finish;
    weir_code       rc = WEIR_OK;
    switch (f->outcome) {
    case WEIR_OUTCOME_DONE:
        rc = weir__check_json(f->text, &f->len, "result", err);
        break;
    case WEIR_OUTCOME_FAIL:
    case WEIR_OUTCOME_GIVE_UP:
        if (!f->text) {
            f->text = weir_code_text(WEIR_EJOB);
            f->len = 0;
        }
        weir__cut_text(f->text, &f->len);
        break;
    case WEIR_OUTCOME_RETURN:
    case WEIR_OUTCOME_LOST:
        f->text = NULL;
        f->len = 0;
        break;
    default:
        return weir__check_number(f->outcome, WEIR_OUTCOME_GIVE_UP + 1, "outcome", err);
    }
    if (!rc && f->delay_ms && f->outcome != WEIR_OUTCOME_RETURN)
        return weir__fail_field(err, WEIR_EINVAL, "delay_ms", "only a job that is returned can "
                                "have one");
    if (!rc && (f->delay_ms < 0 || f->delay_ms > WEIR_MAX_MS))
        return weir__fail_field(err, WEIR_EINVAL, "delay_ms", "%lld ms, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)f->delay_ms, (long long)WEIR_MAX_MS);
    return rc || !f->next.n ? rc : weir__take_check(&f->next, err);
}

static void copy(weir_copier *c, weir_op *op)
{
    weir__copy_bytes(c, &op->u.finish.text, op->u.finish.len);
    if (op->u.finish.next.n)
        weir__take_copy(c, &op->u.finish.next);
}

static void clear(weir_op *op)
{
    op->u.finish.next.n_jobs = 0;
}

static void release(weir_op *op)
{
    weir__take_free(&op->u.finish.next);
}

/* ---- sent again ---- */

static void ask(const weir_op *op, weir_op *question)
{
    weir__ask_job(question, op->u.finish.id);
}

/* The entry in the history for the end of a delivery. False: nothing. */
static bool find_end(const weir_job *j, uint32_t delivery, weir_history_entry *out)
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_items  all = { 0 };
    bool        found = false;
    if (j->history && !weir__history_read(&in, j->history, j->history_len, &all)) {
        const weir_history_entry *p = all.item;
        for (size_t i = 0; i < all.n; i++) {
            if (p[i].delivery != delivery)
                continue;
            *out = p[i];
            found = true;
        }
    }
    weir__arena_free(&arena);
    return found;
}

static bool ends_so(weir_outcome outcome, weir_history_kind kind)
{
    switch (outcome) {
    case WEIR_OUTCOME_DONE:
        return kind == WEIR__HISTORY_COMPLETE;
    case WEIR_OUTCOME_FAIL:
    case WEIR_OUTCOME_GIVE_UP:
        return kind == WEIR__HISTORY_FAILED_ATTEMPT || kind == WEIR__HISTORY_FAILED;
    case WEIR_OUTCOME_RETURN:
        return kind == WEIR__HISTORY_RETURNED;
    default:
        return kind == WEIR__HISTORY_STALLED;
    }
}

/* The delivery is over: was it this outcome that ended it? If the job is gone, its outcome is
 * unknown. The first sending may have taken the next jobs; they come back when their leases end. */
static weir_recall recall(weir_op *op, const weir_op *answer)
{
    weir_op_finish    *f = &op->u.finish;
    const weir_job    *j = answer->u.get.job;
    weir_history_entry end;
    weir_recall        known = WEIR_RECALL_UNKNOWN;
    if (answer->err.code || !j)
        return WEIR_RECALL_UNKNOWN;
    if (find_end(j, f->delivery, &end))
        known = ends_so(f->outcome, end.kind) ? WEIR_RECALL_DONE : WEIR_RECALL_NOT_DONE;
    else if (j->delivery == f->delivery && j->state == WEIR_STATE_COMPLETE) {
        known = f->outcome == WEIR_OUTCOME_DONE ? WEIR_RECALL_DONE : WEIR_RECALL_NOT_DONE;
        end.state = WEIR_STATE_COMPLETE;
    }
    if (known == WEIR_RECALL_DONE) {
        f->state = end.state;
        f->next.partial = true;             /* so the caller asks for the next jobs */
    }
    return known;
}

static const weir_repeat repeat[] = { { weir__op_always, ask, recall } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_finish *f = &op->u.finish;
    weir__put_id(b, ",\"id\":", f->id);
    weir__put_int(b, ",\"delivery\":", f->delivery);
    if (f->outcome == WEIR_OUTCOME_DONE && f->text)
        weir__put_raw(b, ",\"result\":", f->text, f->len);
    else if (f->outcome == WEIR_OUTCOME_FAIL || f->outcome == WEIR_OUTCOME_GIVE_UP)
        weir__put_text(b, ",\"error\":", f->text, f->len);
    weir__put_flag(b, ",\"final\":", f->outcome == WEIR_OUTCOME_GIVE_UP);
    weir__put_flag(b, ",\"return\":", f->outcome == WEIR_OUTCOME_RETURN);
    if (f->delay_ms)
        weir__put_int(b, ",\"delay\":", f->delay_ms);
    weir__put_flag(b, ",\"lost\":", f->outcome == WEIR_OUTCOME_LOST);
    if (!f->next.n)
        return;
    weir__buf_str(b, ",\"next\":{");
    weir__take_write(b, &f->next);
    weir__buf_char(b, '}');
}

static const weir_field next_fields[] = { WEIR__TAKE_REQUEST(0), { 0 } };
static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(finish.id), .needed = true),
    WEIR_FIELD("delivery", weir__as_any_delivery, REQUEST_OP(finish.delivery), .needed = true),
    WEIR_FIELD("result", weir__as_raw, REQUEST(raw)),
    WEIR_FIELD("error", weir__as_text, REQUEST(text), .given = REQUEST(has_error)),
    WEIR_FIELD("final", weir__as_bool, REQUEST(final)),
    WEIR_FIELD("return", weir__as_bool, REQUEST(returned)),
    WEIR_FIELD("delay", weir__as_ms, REQUEST_OP(finish.delay_ms)),
    WEIR_FIELD("lost", weir__as_bool, REQUEST(lost)),
    WEIR_FIELD("next", weir__as_object, REQUEST(take), .fields = next_fields,
               .given = REQUEST(has_take)),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    weir_op_finish *f = &r->op.u.finish;
    if ((r->raw.text != NULL) + r->has_error + r->returned + r->lost > 1)
        return weir_fail(&in->err, WEIR_EINVAL, "only one of result, error, return and lost can "
                                                "be given");
    if (r->final && !r->has_error)
        return weir_fail(&in->err, WEIR_EINVAL, "final: only a job with an error can have it");
    f->outcome = r->final ? WEIR_OUTCOME_GIVE_UP
                 : r->has_error ? WEIR_OUTCOME_FAIL
                 : r->returned ? WEIR_OUTCOME_RETURN
                 : r->lost    ? WEIR_OUTCOME_LOST : WEIR_OUTCOME_DONE;
    f->text = r->has_error ? r->text : r->raw.text;
    f->len = r->has_error ? strlen(r->text) : r->raw.len;
    return r->has_take ? weir__take_read(in, &r->take, &f->next) : WEIR_OK;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__put_state(b, ",\"state\":", op->u.finish.state);
    if (op->u.finish.next.n)
        weir__take_write_answer(b, &op->u.finish.next);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("state", weir__as_state, ANSWER(state)),
    WEIR__TAKE_ANSWER,
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    (void)in;
    a->op->u.finish.state = a->state;
    weir__take_read_answer(a, &a->op->u.finish.next);
    return WEIR_OK;
}

const weir_op_row weir__row_finish = WEIR_OP_ROW(
    "finish", WEIR_LANE_WORK, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_work,
    /* writes */ weir__op_always, weir__op_no_steps, action, weir__op_no_detail, job,
    /* each */ false, type, weir__op_no_data, weir__op_no_token, repeat, take, most,
    weir__op_no_result, weir__op_no_cut, check, copy, clear, release, weir__op_with_bytes,
    write_request, request, read_request, write_answer, answer, read_answer);
