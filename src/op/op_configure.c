/* op_configure.c - CONFIGURE: pause or resume a type, or set its settings. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/job.h"
#include "op/row.h"

static const char *action(const weir_op *op)
{
    if (op->u.configure.set_paused)
        return op->u.configure.paused ? "type.pause" : "type.resume";
    return "type.settings";
}

static const char *detail(const weir_op *op)
{
    return op->u.configure.type;
}

static const char **type(weir_op *op, size_t i)
{
    return i ? NULL : &op->u.configure.type;
}

static weir_code check_keep(const weir_keep *k, const char *field, weir_error *err)
{
    weir_code rc = k->age_ms == WEIR_FOREVER ? WEIR_OK : weir__ms_check(k->age_ms, "age_ms", err);
    if (!rc && k->count < 0)
        rc = weir__fail_field(err, WEIR_EINVAL, "count", "%" PRId64 ", must not be negative",
                              k->count);
    return rc ? weir__fail_inside(err, rc, "%s", field) : WEIR_OK;
}

static weir_code check(weir_op *op, weir_error *err)
{
    weir_op_configure   *c = &op->u.configure;
    const weir_settings *s = c->settings;
    weir_code            rc = weir__type_check(c->type, "type", err);
    if (rc || !s)
        return rc;
    rc = WEIR__CHECK_RESERVED(s, err);
    if (!rc)
        rc = check_keep(&s->keep_complete, "keep_complete", err);
    return rc ? rc : check_keep(&s->keep_failed, "keep_failed", err);
}

static void copy(weir_copier *c, weir_op *op)
{
    weir_op_configure *conf = &op->u.configure;
    weir__copy_text(c, &conf->type);
    if (conf->settings)
        conf->settings = weir__copy_array(c, conf->settings, sizeof *conf->settings);
}

/* ---- as JSON ---- */

static void write_request(weir_buf *b, const weir_op *op)
{
    const weir_op_configure *c = &op->u.configure;
    weir__put_text(b, ",\"type\":", c->type, strlen(c->type));
    if (c->set_paused)
        weir__buf_str(b, c->paused ? ",\"paused\":true" : ",\"paused\":false");
    if (c->settings)
        weir__put_settings(b, c->settings);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("type", weir__as_text, REQUEST_OP(configure.type), .needed = true),
    WEIR_FIELD("paused", weir__as_bool, REQUEST_OP(configure.paused),
               .given = REQUEST_OP(configure.set_paused)),
    WEIR_FIELD("settings", weir__as_object, REQUEST(settings), .fields = weir__settings_fields,
               .given = REQUEST(has_settings)),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    if (!r->has_settings)
        return WEIR_OK;
    weir_settings *own = weir__read_room(in, 1, sizeof *own);
    if (own)
        *own = r->settings;
    r->op.u.configure.settings = own;
    return in->err.code;
}

const weir_op_row weir__row_configure = WEIR_OP_ROW(
    "configure", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ false, weir__role_admin,
    /* writes */ weir__op_always, weir__op_no_steps, action, detail, weir__op_no_job,
    /* each */ false, type, weir__op_no_data, weir__op_no_token, weir__repeat_always,
    weir__op_no_take, weir__op_no_jobs, weir__op_no_result, weir__op_no_cut, check, copy,
    weir__op_no_output, weir__op_no_output, weir__op_small, write_request, request,
    read_request, weir__op_no_members, weir__op_no_answer, weir__op_answered);
