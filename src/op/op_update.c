/* op_update.c - UPDATE: a job changed by an administrator, or its values by its worker. */
#include <string.h>

#include "core/job.h"
#include "core/values.h"
#include "op/row.h"

/* Workers may set values of their jobs, and nothing else. */
static unsigned role(const weir_op *op)
{
    const weir_change *c = &op->u.update.change;
    bool               values_only = c->values && !c->set_priority && !c->set_delay &&
                                     !c->run_at && !c->data && !c->state;
    return values_only ? WEIR_ROLE_WORK : WEIR_ROLE_ADMIN;
}

static const char *action(const weir_op *op)
{
    (void)op;
    return "job.change";
}

static const char *detail(const weir_op *op)
{
    return op->u.update.change.state ? weir_state_name(op->u.update.change.state) : NULL;
}

static uint64_t *job(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.update.id;
}

static const char *const *data(const weir_op *op, size_t i)
{
    return i ? NULL : &op->u.update.change.data;
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_change *c = &op->u.update.change;
    weir_code    rc = WEIR__CHECK_RESERVED(c, err);
    if (!rc)
        rc = weir__check_number(c->state, WEIR_STATE_COUNT, "state", err);
    if (rc)
        return rc;
    if (c->set_delay && c->run_at)
        return weir__fail_field(err, WEIR_EINVAL, "run_at", "delay_ms is given, too; only one of "
                                "them can be given");
    if (c->state != WEIR_STATE_ACTIVE && (c->worker || c->lease_ms))
        return weir__fail_field(err, WEIR_EINVAL, c->worker ? "worker" : "lease_ms",
                                "only together with state active");
    if (c->by && (strlen(c->by) > WEIR_MAX_BY || !weir__utf8_valid(c->by, strlen(c->by))))
        return weir__fail_field(err, WEIR_EINVAL, "by", "expected at most %d bytes of UTF-8 "
                                "(WEIR_MAX_BY)", WEIR_MAX_BY);
    if (c->state == WEIR_STATE_ACTIVE)
        rc = weir__check_worker(c->worker, err);
    if (!rc && c->state == WEIR_STATE_ACTIVE)
        rc = weir__check_lease(&c->lease_ms, err);
    if (rc)
        return rc;
    rc = c->set_delay ? weir__ms_check(c->delay_ms, "delay_ms", err)
                      : weir__moment_check(c->run_at, "run_at", err);
    if (!rc)
        rc = weir__check_json(c->data, &c->data_len, "data", err);
    if (rc || !c->values)
        return rc;
    if (!c->values_len)
        c->values_len = strlen(c->values);
    return weir__values_check(c->values, c->values_len, true, err);
}

static void copy(weir_copier *c, weir_op *op)
{
    weir_change *change = &op->u.update.change;
    weir__copy_bytes(c, &change->data, change->data_len);
    weir__copy_bytes(c, &change->values, change->values_len);
    weir__copy_text(c, &change->worker);
    weir__copy_text(c, &change->by);
}

/* ---- sent again ---- */

/* Values, priority and data are set to what they are already, and so is a state in which a job
 * stays. Waiting is none: the job may have run meanwhile, and would run twice. */
static bool may_repeat(const weir_op *op)
{
    const weir_change *c = &op->u.update.change;
    return !c->set_delay && !c->run_at && c->state != WEIR_STATE_INACTIVE &&
           c->state != WEIR_STATE_DELAYED;
}

static void ask(const weir_op *op, weir_op *question)
{
    weir__ask_job(question, op->u.update.id);
}

static bool is_as_asked(const weir_job *j, const weir_change *c)
{
    return (!c->state || j->state == c->state) &&
           (c->state != WEIR_STATE_ACTIVE || (j->worker && !strcmp(j->worker, c->worker))) &&
           (!c->set_priority || j->priority == c->priority) &&
           (!c->data || (j->data_len == c->data_len && !memcmp(j->data, c->data, j->data_len)));
}

/* A job that is as it was to become; whether it was so before is of no interest. Its state before
 * is forgotten. */
static weir_recall recall(weir_op *op, const weir_op *answer)
{
    weir_op_update *u = &op->u.update;
    const weir_job *j = answer->u.get.job;
    if (answer->err.code || !j || u->change.values || !is_as_asked(j, &u->change))
        return WEIR_RECALL_UNKNOWN;
    u->old_state = u->change.state ? WEIR_STATE_ANY : j->state;
    u->new_state = j->state;
    return WEIR_RECALL_DONE;
}

static const weir_repeat repeat[] = { { may_repeat, ask, recall } };

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_update *u = &op->u.update;
    const weir_change    *c = &u->change;
    weir__put_id(b, ",\"id\":", u->id);
    weir__put_states(b, ",\"from\":[", u->from);
    if (c->set_priority)
        weir__put_int(b, ",\"priority\":", c->priority);
    if (c->set_delay)
        weir__put_int(b, ",\"delay\":", c->delay_ms);
    if (c->run_at)
        weir__put_int(b, ",\"run_at\":", c->run_at);
    if (c->data)
        weir__put_raw(b, ",\"data\":", c->data, c->data_len);
    if (c->values)
        weir__put_raw(b, ",\"values\":", c->values, c->values_len);
    if (c->delivery)
        weir__put_int(b, ",\"delivery\":", c->delivery);
    weir__put_state(b, ",\"state\":", c->state);
    if (c->worker)
        weir__put_text(b, ",\"worker\":", c->worker, strlen(c->worker));
    if (c->lease_ms)
        weir__put_int(b, ",\"lease\":", c->lease_ms);
    if (c->by)
        weir__put_text(b, ",\"by\":", c->by, strlen(c->by));
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__as_number, REQUEST_OP(update.id), .needed = true),
    WEIR_FIELD("from", weir__as_states, REQUEST_OP(update.from)),
    WEIR_FIELD("priority", weir__as_int32, REQUEST_OP(update.change.priority),
               .given = REQUEST_OP(update.change.set_priority)),
    WEIR_FIELD("delay", weir__as_ms, REQUEST_OP(update.change.delay_ms),
               .given = REQUEST_OP(update.change.set_delay)),
    WEIR_FIELD("run_at", weir__as_moment, REQUEST_OP(update.change.run_at)),
    WEIR_FIELD("data", weir__as_raw, REQUEST_OP(update.change.data)),
    WEIR_FIELD("values", weir__as_raw, REQUEST_OP(update.change.values)),
    WEIR_FIELD("delivery", weir__as_delivery, REQUEST_OP(update.change.delivery)),
    WEIR_FIELD("state", weir__as_state, REQUEST_OP(update.change.state)),
    WEIR_FIELD("worker", weir__as_text, REQUEST_OP(update.change.worker)),
    WEIR_FIELD("lease", weir__as_ms, REQUEST_OP(update.change.lease_ms)),
    WEIR_FIELD("by", weir__as_text, REQUEST_OP(update.change.by)),
    { 0 }
};
_Static_assert(offsetof(weir_change, data_len) == offsetof(weir_change, data) + sizeof(char *) &&
                   offsetof(weir_change, values_len) ==
                       offsetof(weir_change, values) + sizeof(char *),
               "weir__as_raw() sets both");

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__put_state(b, ",\"old\":", op->u.update.old_state);
    weir__put_state(b, ",\"new\":", op->u.update.new_state);
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("old", weir__as_state, ANSWER(old_state)),
    WEIR_FIELD("new", weir__as_state, ANSWER(state)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    (void)in;
    a->op->u.update.old_state = a->old_state;
    a->op->u.update.new_state = a->state;
    return WEIR_OK;
}

const weir_op_row weir__row_update = WEIR_OP_ROW(
    "update", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, role,
    /* writes */ weir__op_always, weir__op_no_steps, action, detail, job, /* each */ false,
    weir__op_no_type, data, weir__op_no_token, repeat, weir__op_no_take, weir__op_no_jobs,
    weir__op_no_result, weir__op_no_cut, check, copy, weir__op_no_output, weir__op_no_output,
    weir__op_with_bytes, write_request, request, weir__op_read, write_answer, answer, read_answer);
