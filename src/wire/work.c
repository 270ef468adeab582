/* work.c - add, take, finish, renew, progress and log as JSON: see wire.h. */
#include <string.h>

#include "wire/inner.h"

/* ---- add ---- */

static void ask_add(weir_buf *b, const weir_op *op)
{
    const weir_token *token = op->u.add.token;
    if (token) {
        weir__wire_text(b, ",\"once\":{\"key\":", token->key, strlen(token->key));
        weir__wire_id(b, ",\"number\":", token->number);
        if (token->digest)
            weir__wire_id(b, ",\"digest\":", token->digest);
        weir__buf_char(b, '}');
    }
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.add.n; i++) {
        weir__wire_next(b, i);
        weir__wire_spec(b, &op->u.add.specs[i]);
    }
    weir__buf_char(b, ']');
}

static const weir_field once_fields[] = {
    WEIR_FIELD("key", weir__as_text, offsetof(weir_token, key), .needed = true),
    WEIR_FIELD("number", weir__wire_as_number, offsetof(weir_token, number), .needed = true),
    WEIR_FIELD("digest", weir__wire_as_number, offsetof(weir_token, digest)),
    { 0 }
};
static const weir_field asked_add[] = {
    FIELD_OP,
    WEIR_FIELD("once", weir__as_object, ASKED(once), .fields = once_fields,
               .given = ASKED(has_once)),
    WEIR_FIELD("jobs", weir__as_list, ASKED(items), .fields = weir__spec_fields,
               .size = sizeof(weir_spec), .needed = true, .max = WEIR_MAX_ADD, .inside = true),
    { 0 }
};

static weir_code read_add(weir_reader *in, wire_asked *a)
{
    weir_op_add *add = &a->op.u.add;
    add->specs = a->items.item;
    add->n = a->items.n;
    add->out = weir__wire_room(in, add->n, sizeof *add->out);
    if (a->has_once) {
        weir_token *token = weir__wire_room(in, 1, sizeof *token);
        if (token)
            *token = a->once;
        add->token = token;
    }
    return in->err.code;
}

static void answer_add(weir_buf *b, const weir_op *op)
{
    const weir_op_add *add = &op->u.add;
    const char        *durability = weir_durability_name(add->n ? add->out[0].durability
                                                                : WEIR_DURABLE_NONE);
    weir__wire_text(b, ",\"durability\":", durability, strlen(durability));
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < add->n; i++) {
        weir__wire_next(b, i);
        weir__wire_id(b, "{\"id\":", add->out[i].id);
        weir__wire_state(b, ",\"state\":", add->out[i].state);
        weir__wire_flag(b, ",\"existed\":", add->out[i].existed);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

static const weir_field added_fields[] = {
    WEIR_FIELD("id", weir__wire_as_number, offsetof(weir_added, id), .needed = true),
    WEIR_FIELD("state", weir__as_state, offsetof(weir_added, state)),
    WEIR_FIELD("existed", weir__as_bool, offsetof(weir_added, existed)),
    { 0 }
};
static const weir_field told_add[] = {
    FIELD_ERROR,
    WEIR_FIELD("durability", weir__as_text, TOLD(durability)),
    WEIR_FIELD("jobs", weir__as_list, TOLD(items), .fields = added_fields,
               .size = sizeof(weir_added), .inside = true),
    { 0 }
};

static weir_code take_add(weir_reader *in, wire_told *t)
{
    weir_op_add    *add = &t->op->u.add;
    weir_durability d = WEIR_DURABLE_NONE;
    if (t->items.n != add->n)
        return weir__wire_nonsense(in, "not as many jobs as were added");
    for (weir_durability one = WEIR_DURABLE_DISK; t->durability && one < WEIR_DURABLE_NONE; one++) {
        if (!strcmp(t->durability, weir_durability_name(one)))
            d = one;
    }
    if (add->n)
        memcpy(add->out, t->items.item, add->n * sizeof *add->out);
    for (size_t i = 0; i < add->n; i++)
        add->out[i].durability = d;
    return WEIR_OK;
}

const wire_kind weir__wire_op_add = { ask_add, asked_add, read_add, answer_add, told_add,
                                      take_add };

/* ---- take ---- */

static void put_taking(weir_buf *b, const weir_op_take *t)
{
    weir__wire_int(b, "\"n\":", (int64_t)t->n);
    weir__wire_int(b, ",\"lease\":", t->lease_ms);
    weir__wire_text(b, ",\"worker\":", t->worker, strlen(t->worker));
    weir__buf_str(b, ",\"types\":[");
    for (size_t i = 0; i < t->n_types; i++) {
        weir__wire_next(b, i);
        weir__json_string(b, t->types[i], strlen(t->types[i]));
    }
    weir__buf_char(b, ']');
    weir__wire_flag(b, ",\"busy\":", t->busy);
}

static void ask_take(weir_buf *b, const weir_op *op)
{
    weir__buf_char(b, ',');
    put_taking(b, &op->u.take);
}

#define TAKING(base)                                                                              \
    WEIR_FIELD("n", weir__as_int, (base) + offsetof(wire_taking, n), .min = 1,                    \
               .max = WEIR_MAX_PAGE),                                                             \
    WEIR_FIELD("lease", weir__as_ms, (base) + offsetof(wire_taking, lease_ms)),                   \
    WEIR_FIELD("worker", weir__as_text, (base) + offsetof(wire_taking, worker), .needed = true),  \
    WEIR_FIELD("busy", weir__as_bool, (base) + offsetof(wire_taking, busy)),                      \
    WEIR_FIELD("types", weir__as_texts, (base) + offsetof(wire_taking, types), .needed = true,    \
               .max = WEIR_MAX_TAKE_TYPES)
static const weir_field asked_take[] = { FIELD_OP, TAKING(ASKED(take)), { 0 } };
static const weir_field next_fields[] = { TAKING(0), { 0 } };

static weir_code read_taking(weir_reader *in, const wire_taking *from, weir_op_take *to)
{
    to->types = from->types.text;
    to->n_types = from->types.n;
    to->n = from->n ? (size_t)from->n : 1;
    to->lease_ms = from->lease_ms;
    to->worker = from->worker;
    to->busy = from->busy;
    to->jobs = weir__wire_room(in, to->n, sizeof *to->jobs);
    return in->err.code;
}

static weir_code read_take(weir_reader *in, wire_asked *a)
{
    return read_taking(in, &a->take, &a->op.u.take);
}

static void answer_taking(weir_buf *b, const weir_op_take *t)
{
    weir__wire_jobs(b, t->jobs, t->n_jobs);
    weir__wire_flag(b, ",\"suspect_waits\":", t->suspect_waits);
}

static void answer_take(weir_buf *b, const weir_op *op)
{
    answer_taking(b, &op->u.take);
}

#define TAKEN                                                                                     \
    WEIR_FIELD("jobs", weir__wire_as_page, TOLD(page), .inside = true),                           \
    WEIR_FIELD("suspect_waits", weir__as_bool, TOLD(suspect_waits))

static const weir_field told_take[] = {
    FIELD_ERROR,
    TAKEN,
    { 0 }
};

/* The jobs go from the page to their place. */
static void take_jobs(wire_told *t, weir_op_take *to)
{
    to->n_jobs = t->page ? t->page->n : 0;
    if (to->n_jobs)
        memcpy(to->jobs, t->page->job, to->n_jobs * sizeof *to->jobs);
    if (t->page)
        t->page->n = 0;
    to->suspect_waits = t->suspect_waits;
}

static weir_code take_take(weir_reader *in, wire_told *t)
{
    (void)in;
    take_jobs(t, &t->op->u.take);
    return WEIR_OK;
}

const wire_kind weir__wire_op_take = { ask_take, asked_take, read_take, answer_take, told_take,
                                       take_take };

/* ---- finish ---- */

static void ask_finish(weir_buf *b, const weir_op *op)
{
    const weir_op_finish *f = &op->u.finish;
    weir__wire_id(b, ",\"id\":", f->id);
    weir__wire_int(b, ",\"delivery\":", f->delivery);
    if (f->outcome == WEIR_OUTCOME_DONE && f->text)
        weir__wire_raw(b, ",\"result\":", f->text, f->len);
    else if (f->outcome == WEIR_OUTCOME_FAIL)
        weir__wire_text(b, ",\"error\":", f->text, f->len);
    weir__wire_flag(b, ",\"release\":", f->outcome == WEIR_OUTCOME_RELEASE);
    weir__wire_flag(b, ",\"lost\":", f->outcome == WEIR_OUTCOME_LOST);
    if (!f->next.n)
        return;
    weir__buf_str(b, ",\"next\":{");
    put_taking(b, &f->next);
    weir__buf_char(b, '}');
}

static const weir_field asked_finish[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(finish.id), .needed = true),
    WEIR_FIELD("delivery", weir__wire_as_delivery, ASKED_OP(finish.delivery), .needed = true),
    WEIR_FIELD("result", weir__as_raw, ASKED(raw)),
    WEIR_FIELD("error", weir__as_text, ASKED(text), .given = ASKED(has_error)),
    WEIR_FIELD("release", weir__as_bool, ASKED(release)),
    WEIR_FIELD("lost", weir__as_bool, ASKED(lost)),
    WEIR_FIELD("next", weir__as_object, ASKED(take), .fields = next_fields,
               .given = ASKED(has_take)),
    { 0 }
};

static weir_code read_finish(weir_reader *in, wire_asked *a)
{
    weir_op_finish *f = &a->op.u.finish;
    if ((a->raw.text != NULL) + a->has_error + a->release + a->lost > 1)
        return weir_fail(&in->err, WEIR_EINVAL, "only one of result, error, release and lost can "
                                                "be given");
    f->outcome = a->has_error ? WEIR_OUTCOME_FAIL
                 : a->release ? WEIR_OUTCOME_RELEASE
                 : a->lost    ? WEIR_OUTCOME_LOST : WEIR_OUTCOME_DONE;
    f->text = a->has_error ? a->text : a->raw.text;
    f->len = a->has_error ? strlen(a->text) : a->raw.len;
    return a->has_take ? read_taking(in, &a->take, &f->next) : WEIR_OK;
}

static void answer_finish(weir_buf *b, const weir_op *op)
{
    weir__wire_state(b, ",\"state\":", op->u.finish.state);
    if (op->u.finish.next.n)
        answer_taking(b, &op->u.finish.next);
}

static const weir_field told_finish[] = {
    FIELD_ERROR,
    WEIR_FIELD("state", weir__as_state, TOLD(state)),
    TAKEN,
    { 0 }
};

static weir_code take_finish(weir_reader *in, wire_told *t)
{
    (void)in;
    t->op->u.finish.state = t->state;
    take_jobs(t, &t->op->u.finish.next);
    return WEIR_OK;
}

const wire_kind weir__wire_op_finish = { ask_finish, asked_finish, read_finish, answer_finish,
                                         told_finish, take_finish };

/* ---- renew ---- */

static void ask_renew(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.renew.n; i++) {
        const weir_lease *l = &op->u.renew.items[i];
        weir__wire_next(b, i);
        weir__wire_id(b, "{\"id\":", l->id);
        weir__wire_int(b, ",\"delivery\":", l->delivery);
        weir__wire_int(b, ",\"lease\":", l->lease_ms);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

static const weir_field lease_fields[] = {
    WEIR_FIELD("id", weir__wire_as_number, offsetof(weir_lease, id), .needed = true),
    WEIR_FIELD("delivery", weir__wire_as_delivery, offsetof(weir_lease, delivery), .needed = true),
    WEIR_FIELD("lease", weir__as_ms, offsetof(weir_lease, lease_ms)),
    { 0 }
};
static const weir_field asked_renew[] = {
    FIELD_OP,
    WEIR_FIELD("jobs", weir__as_list, ASKED(items), .fields = lease_fields,
               .size = sizeof(weir_lease), .needed = true, .max = WEIR_MAX_ADD),
    { 0 }
};

static weir_code read_renew(weir_reader *in, wire_asked *a)
{
    (void)in;
    a->op.u.renew.items = a->items.item;
    a->op.u.renew.n = a->items.n;
    return WEIR_OK;
}

static void answer_renew(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"codes\":[");
    for (size_t i = 0; i < op->u.renew.n; i++)
        weir__buf_printf(b, "%s\"%s\"", i ? "," : "", weir_code_name(op->u.renew.items[i].code));
    weir__buf_char(b, ']');
}

static const weir_field told_renew[] = {
    FIELD_ERROR,
    WEIR_FIELD("codes", weir__as_texts, TOLD(texts)),
    { 0 }
};

static weir_code take_renew(weir_reader *in, wire_told *t)
{
    weir_op_renew *r = &t->op->u.renew;
    if (t->texts.n != r->n)
        return weir__wire_nonsense(in, "not as many codes as there were leases");
    for (size_t i = 0; i < r->n; i++)
        r->items[i].code = strcmp(t->texts.text[i], "OK") ? WEIR_ESTALE : WEIR_OK;
    return WEIR_OK;
}

const wire_kind weir__wire_op_renew = { ask_renew, asked_renew, read_renew, answer_renew,
                                        told_renew, take_renew };

/* ---- progress, log ---- */

static void answer_nothing(weir_buf *b, const weir_op *op)
{
    (void)b;
    (void)op;
}

static const weir_field told_nothing[] = { FIELD_ERROR, { 0 } };

static void ask_progress(weir_buf *b, const weir_op *op)
{
    const weir_op_progress *p = &op->u.progress;
    weir__wire_id(b, ",\"id\":", p->id);
    weir__wire_int(b, ",\"delivery\":", p->delivery);
    weir__wire_int(b, ",\"percent\":", p->percent);
    if (p->data)
        weir__wire_raw(b, ",\"data\":", p->data, p->len);
}

static const weir_field asked_progress[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(progress.id), .needed = true),
    WEIR_FIELD("delivery", weir__wire_as_delivery, ASKED_OP(progress.delivery), .needed = true),
    WEIR_FIELD("percent", weir__as_int32, ASKED_OP(progress.percent), .needed = true),
    WEIR_FIELD("data", weir__as_raw, ASKED(raw)),
    { 0 }
};

static weir_code read_progress(weir_reader *in, wire_asked *a)
{
    (void)in;
    a->op.u.progress.data = a->raw.text;
    a->op.u.progress.len = a->raw.len;
    return WEIR_OK;
}

const wire_kind weir__wire_op_progress = { ask_progress, asked_progress, read_progress,
                                           answer_nothing, told_nothing, NULL };

static void ask_log(weir_buf *b, const weir_op *op)
{
    const weir_op_log *l = &op->u.log;
    weir__wire_id(b, ",\"id\":", l->id);
    if (l->delivery)
        weir__wire_int(b, ",\"delivery\":", l->delivery);
    weir__wire_text(b, ",\"text\":", l->text, l->len);
}

static const weir_field asked_log[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(log.id), .needed = true),
    WEIR_FIELD("delivery", weir__wire_as_delivery, ASKED_OP(log.delivery)),
    WEIR_FIELD("text", weir__as_text, ASKED(text), .needed = true),
    { 0 }
};

static weir_code read_log(weir_reader *in, wire_asked *a)
{
    (void)in;
    a->op.u.log.text = a->text;
    a->op.u.log.len = strlen(a->text);
    return WEIR_OK;
}

const wire_kind weir__wire_op_log = { ask_log, asked_log, read_log, answer_nothing, told_nothing,
                                      NULL };
