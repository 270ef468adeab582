/* hand.c - tick, update, remove, configure and import as JSON: see wire.h. */
#include <string.h>

#include "core/job.h"
#include "wire/inner.h"

static void answer_nothing(weir_buf *b, const weir_op *op)
{
    (void)b;
    (void)op;
}

static const weir_field told_nothing[] = { FIELD_ERROR, { 0 } };

/* ---- tick ---- */

static void ask_tick(weir_buf *b, const weir_op *op)
{
    weir__wire_int(b, ",\"limit\":", (int64_t)op->u.tick.limit);
}

static const weir_field asked_tick[] = {
    FIELD_OP,
    WEIR_FIELD("limit", weir__as_int, ASKED(limit), .min = 0, .max = WEIR_MAX_PAGE),
    { 0 }
};

static weir_code read_tick(weir_reader *in, wire_asked *a)
{
    (void)in;
    a->op.u.tick.limit = (size_t)a->limit;
    return WEIR_OK;
}

static void answer_tick(weir_buf *b, const weir_op *op)
{
    weir__wire_int(b, ",\"changed\":", (int64_t)op->u.tick.changed);
    weir__wire_int(b, ",\"next_at\":", op->u.tick.next_at);
}

static const weir_field told_tick[] = {
    FIELD_ERROR,
    WEIR_FIELD("changed", weir__as_int, TOLD(changed), .min = 0, .max = INT64_MAX),
    WEIR_FIELD("next_at", weir__as_int, TOLD(next_at)),
    { 0 }
};

static weir_code take_tick(weir_reader *in, wire_told *t)
{
    (void)in;
    t->op->u.tick.changed = (size_t)t->changed;
    t->op->u.tick.next_at = t->next_at;
    return WEIR_OK;
}

const wire_kind weir__wire_op_tick = { ask_tick, asked_tick, read_tick, answer_tick, told_tick,
                                       take_tick };

/* ---- update ---- */

static void ask_update(weir_buf *b, const weir_op *op)
{
    const weir_op_update *u = &op->u.update;
    const weir_change    *c = &u->change;
    weir__wire_id(b, ",\"id\":", u->id);
    const char *before = ",\"from\":[";
    for (weir_state s = WEIR_INACTIVE; s < WEIR_STATES; s++) {
        if (u->from >> s & 1) {
            weir__wire_state(b, before, s);
            before = ",";
        }
    }
    if (!before[1])
        weir__buf_char(b, ']');
    if (c->set_priority)
        weir__wire_int(b, ",\"priority\":", c->priority);
    if (c->set_delay)
        weir__wire_int(b, ",\"delay\":", c->delay_ms);
    if (c->run_at)
        weir__wire_int(b, ",\"run_at\":", c->run_at);
    if (c->data)
        weir__wire_raw(b, ",\"data\":", c->data, c->data_len);
    if (c->values)
        weir__wire_raw(b, ",\"values\":", c->values, c->values_len);
    if (c->delivery)
        weir__wire_int(b, ",\"delivery\":", c->delivery);
    weir__wire_state(b, ",\"state\":", c->state);
    if (c->worker)
        weir__wire_text(b, ",\"worker\":", c->worker, strlen(c->worker));
    if (c->lease_ms)
        weir__wire_int(b, ",\"lease\":", c->lease_ms);
}

static const weir_field asked_update[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(update.id), .needed = true),
    WEIR_FIELD("from", weir__as_states, ASKED_OP(update.from)),
    WEIR_FIELD("priority", weir__as_int32, ASKED_OP(update.change.priority),
               .given = ASKED_OP(update.change.set_priority)),
    WEIR_FIELD("delay", weir__as_ms, ASKED_OP(update.change.delay_ms),
               .given = ASKED_OP(update.change.set_delay)),
    WEIR_FIELD("run_at", weir__as_moment, ASKED_OP(update.change.run_at)),
    WEIR_FIELD("data", weir__as_raw, ASKED_OP(update.change.data)),
    WEIR_FIELD("values", weir__as_raw, ASKED_OP(update.change.values)),
    WEIR_FIELD("delivery", weir__as_delivery, ASKED_OP(update.change.delivery)),
    WEIR_FIELD("state", weir__as_state, ASKED_OP(update.change.state)),
    WEIR_FIELD("worker", weir__as_text, ASKED_OP(update.change.worker)),
    WEIR_FIELD("lease", weir__as_ms, ASKED_OP(update.change.lease_ms)),
    { 0 }
};
_Static_assert(offsetof(weir_change, data_len) == offsetof(weir_change, data) + sizeof(char *) &&
                   offsetof(weir_change, values_len) ==
                       offsetof(weir_change, values) + sizeof(char *),
               "weir__as_raw() sets both");

static void answer_update(weir_buf *b, const weir_op *op)
{
    weir__wire_state(b, ",\"old\":", op->u.update.old_state);
    weir__wire_state(b, ",\"new\":", op->u.update.new_state);
}

static const weir_field told_update[] = {
    FIELD_ERROR,
    WEIR_FIELD("old", weir__as_state, TOLD(old_state)),
    WEIR_FIELD("new", weir__as_state, TOLD(state)),
    { 0 }
};

static weir_code take_update(weir_reader *in, wire_told *t)
{
    (void)in;
    t->op->u.update.old_state = t->old_state;
    t->op->u.update.new_state = t->state;
    return WEIR_OK;
}

const wire_kind weir__wire_op_update = { ask_update, asked_update, NULL, answer_update,
                                         told_update, take_update };

/* ---- remove ---- */

static void ask_remove(weir_buf *b, const weir_op *op)
{
    weir__wire_id(b, ",\"id\":", op->u.remove.id);
}

static const weir_field asked_remove[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(remove.id), .needed = true),
    { 0 }
};

const wire_kind weir__wire_op_remove = { ask_remove, asked_remove, NULL, answer_nothing,
                                         told_nothing, NULL };

/* ---- configure ---- */

static void ask_configure(weir_buf *b, const weir_op *op)
{
    const weir_op_configure *c = &op->u.configure;
    weir__wire_text(b, ",\"type\":", c->type, strlen(c->type));
    if (c->set_paused)
        weir__buf_str(b, c->paused ? ",\"paused\":true" : ",\"paused\":false");
    if (c->settings)
        weir__wire_settings(b, c->settings);
}

static const weir_field asked_configure[] = {
    FIELD_OP,
    WEIR_FIELD("type", weir__as_text, ASKED_OP(configure.type), .needed = true),
    WEIR_FIELD("paused", weir__as_bool, ASKED_OP(configure.paused),
               .given = ASKED_OP(configure.set_paused)),
    WEIR_FIELD("settings", weir__as_object, ASKED(settings), .fields = weir__wire_settings_fields,
               .given = ASKED(has_settings)),
    { 0 }
};

static weir_code read_configure(weir_reader *in, wire_asked *a)
{
    if (!a->has_settings)
        return WEIR_OK;
    weir_settings *copy = weir__wire_room(in, 1, sizeof *copy);
    if (copy)
        *copy = a->settings;
    a->op.u.configure.settings = copy;
    return in->err.code;
}

const wire_kind weir__wire_op_configure = { ask_configure, asked_configure, read_configure,
                                            answer_nothing, told_nothing, NULL };

/* ---- import ---- */

static void ask_import(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.import.n; i++) {
        const weir_incoming *in = &op->u.import.jobs[i];
        weir_job             job = *in->job;
        if (job.state == WEIR_ANY)                  /* as weir__job_import() has it */
            job.state = WEIR_INACTIVE;
        if (!job.data) {
            job.data = "{}";
            job.data_len = 2;
        }
        job.lease_until = 0;
        weir__wire_next(b, i);
        weir__buf_str(b, "{\"job\":");
        weir__job_json(b, &job);
        if (in->n_lines)
            weir__wire_lines(b, ",\"log\":", in->lines, in->n_lines);
        weir__wire_flag(b, ",\"new_id\":", in->new_id);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

typedef struct incoming {
    weir_read_job job;
    weir_items    log;              /* of weir_line */
    bool          new_id;
} incoming;

static const weir_field incoming_fields[] = {
    WEIR_FIELD("job", weir__as_object, offsetof(incoming, job), .fields = weir__job_fields,
               .needed = true),
    WEIR_FIELD("log", weir__as_list, offsetof(incoming, log), .fields = weir__line_fields,
               .size = sizeof(weir_line), .max = WEIR_MAX_LOG),
    WEIR_FIELD("new_id", weir__as_bool, offsetof(incoming, new_id)),
    { 0 }
};
static const weir_field asked_import[] = {
    FIELD_OP,
    WEIR_FIELD("jobs", weir__as_list, ASKED(items), .fields = incoming_fields,
               .size = sizeof(incoming), .needed = true, .max = WEIR_MAX_IMPORT),
    { 0 }
};

static weir_code read_import(weir_reader *in, wire_asked *a)
{
    weir_op_import *m = &a->op.u.import;
    incoming       *from = a->items.item;
    weir_incoming  *jobs = weir__wire_room(in, a->items.n, sizeof *jobs);
    m->n = a->items.n;
    m->jobs = jobs;
    m->out = weir__wire_room(in, m->n, sizeof *m->out);
    for (size_t i = 0; !in->err.code && i < m->n; i++) {
        weir__wire_job_init(&from[i].job.job);
        jobs[i] = (weir_incoming){ .job = &from[i].job.job, .lines = from[i].log.item,
                                   .n_lines = from[i].log.n, .new_id = from[i].new_id };
    }
    return in->err.code;
}

static void answer_import(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.import.n; i++) {
        const weir_imported *o = &op->u.import.out[i];
        weir__wire_next(b, i);
        weir__wire_id(b, "{\"id\":", o->id);
        weir__wire_state(b, ",\"state\":", o->state);
        weir__wire_flag(b, ",\"existed\":", o->existed);
        weir__wire_flag(b, ",\"id_taken\":", o->id_taken);
        if (o->err.code)
            weir__wire_fault(b, &o->err);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

#define IMPORTED(member) offsetof(weir_imported, member)
static const weir_field imported_fields[] = {
    WEIR_FIELD("id", weir__wire_as_number, IMPORTED(id)),
    WEIR_FIELD("state", weir__as_state, IMPORTED(state)),
    WEIR_FIELD("existed", weir__as_bool, IMPORTED(existed)),
    WEIR_FIELD("id_taken", weir__as_bool, IMPORTED(id_taken)),
    WEIR_FIELD("error", weir__wire_as_error, IMPORTED(err)),
    { 0 }
};
#undef IMPORTED
static const weir_field told_import[] = {
    FIELD_ERROR,
    WEIR_FIELD("jobs", weir__as_list, TOLD(items), .fields = imported_fields,
               .size = sizeof(weir_imported)),
    { 0 }
};

static weir_code take_import(weir_reader *in, wire_told *t)
{
    weir_op_import *m = &t->op->u.import;
    if (t->items.n != m->n)
        return weir__wire_nonsense(in, "not as many jobs as were put in");
    if (m->n)
        memcpy(m->out, t->items.item, m->n * sizeof *m->out);
    return WEIR_OK;
}

const wire_kind weir__wire_op_import = { ask_import, asked_import, read_import, answer_import,
                                         told_import, take_import };
