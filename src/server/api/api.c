/* api.c - what the handlers of API v1 share. */
#include "server/api/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "server/http/parts.h"

bool srv_allow_own(srv_request *r, unsigned role)
{
    return srv_allow(r, role, *r->who.types ? r->who.types : NULL);
}

bool srv_allow_scope(srv_request *r, unsigned role, const char **type)
{
    char types[150];
    if (!*type)
        *type = srv_caller_only_type(&r->who);
    if (*type || !*r->who.types)
        return srv_allow(r, role, *type);
    srv_reply_status(r, 403, "forbidden", "this token is for several types of jobs: name one (%s)",
                     srv_caller_types_text(&r->who, types, sizeof types));
    return false;
}

static bool sees(const void *caller, const char *type)
{
    return !srv_caller_lacks(caller, type);
}

bool srv_own_stats(const srv_request *r, weir_stats **stats)
{
    return !*r->who.types || weir__stats_cut(stats, sees, &r->who);
}

bool srv_own_answer(const srv_request *r, weir_op *op)
{
    return !*r->who.types || weir__op_row(op)->cut(op, sees, &r->who);
}

bool srv_failed(srv_request *r, weir_code code, const weir_error *err)
{
    if (code)
        srv_reply_error(r, err);
    return code != WEIR_OK;
}

bool srv_part_failed(srv_request *r, weir_code code, const weir_error *err)
{
    if (code && !srv_parts_failed(r))
        srv_reply_error(r, err);
    return code != WEIR_OK;
}

void srv_reply_done(srv_request *r, weir_code code, const weir_error *err)
{
    if (!srv_failed(r, code, err))
        srv_reply_empty(r, 204);
}

bool srv_state(srv_request *r, void **st, size_t size)
{
    *st = r->state = srv_alloc(r, size);
    if (!*st)
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
    return *st != NULL;
}

void srv_forbidden_json(weir_buf *out, const char *message, const char *field)
{
    weir__buf_str(out, "{\"code\":\"forbidden\",\"message\":");
    weir__json_string(out, message, strlen(message));
    weir__buf_str(out, ",\"field\":");
    weir__json_string(out, field, strlen(field));
    weir__buf_char(out, '}');
}

void srv_id_state_json(weir_buf *out, uint64_t id, weir_state state)
{
    weir__buf_str(out, "{\"id\":");
    weir__buf_uint(out, id);
    weir__buf_str(out, ",\"state\":\"");
    weir__buf_str(out, weir_state_name(state));
    weir__buf_char(out, '"');
}

/* ---- one job ---- */

void srv_reply_job(srv_request *r, int status, weir_job *job)
{
    weir_buf body = { 0 };
    weir__job_json(&body, job);
    weir_job_free(job);
    srv_reply_json(r, status, &body);
}

typedef struct looking {
    weir_job    *job;
    uint64_t     id;
    int          status;            /* 0: 200 when it has ended, else 202 */
    void       (*then)(srv_request *r, uint64_t id);
    srv_handler *gone;
    void        *before;            /* the state of whoever gave `gone` */
} looking;

static void get(srv_request *r, looking *l, srv_then *then)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    weir_code    rc = weir_get_async(srv_queue(r), l->id, &l->job, &f, &err);
    srv_await(r, rc, &err, f, then);
}

static void got_to_reply(srv_request *r, weir_code code, const weir_error *err)
{
    looking *l = r->state;
    if (srv_failed(r, code, err))
        return;
    int ended = weir__finished(l->job->state) ? 200 : 202;
    srv_reply_job(r, l->status ? l->status : ended, l->job);
}

void srv_reply_job_now(srv_request *r, int status, uint64_t id)
{
    looking *l;
    if (!SRV_STATE(r, l))
        return;
    l->id = id;
    l->status = status;
    get(r, l, got_to_reply);
}

static void got_to_check(srv_request *r, weir_code code, const weir_error *err)
{
    looking *l = r->state;
    if (srv_failed(r, code, err))
        return;
    bool own = !srv_caller_lacks(&r->who, l->job->type);
    weir_job_free(l->job);
    if (own)
        l->then(r, l->id);
    else
        srv_reply_fail(r, WEIR_ENOENT, NULL, "there is no job %" PRIu64, l->id);
}

void srv_on_job(srv_request *r, unsigned role, void (*then)(srv_request *r, uint64_t id))
{
    uint64_t id;
    looking *l;
    if (!srv_arg_id(r, 0, &id) || !srv_allow_own(r, role))
        return;
    if (!*r->who.types) {
        then(r, id);
        return;
    }
    if (!SRV_STATE(r, l))
        return;
    l->id = id;
    l->then = then;
    get(r, l, got_to_check);
}

/* ---- until it has ended ---- */

static void too_long(srv_request *r)
{
    r->cancel = NULL;
    srv_not_after(r);
    srv_give_up(r);
}

static void ended(srv_request *r, weir_code code, const weir_error *err)
{
    looking *l = r->state;
    r->cancel = NULL;
    srv_not_after(r);
    if (code == WEIR_ETIMEOUT || (!code && !l->job)) {      /* given up, perhaps just as it ended */
        srv_reply_job_now(r, 0, l->id);
    } else if (code == WEIR_ENOENT && l->gone) {
        r->state = l->before;
        l->gone(r);
    } else if (!srv_failed(r, code, err)) {
        srv_reply_job(r, 200, l->job);
    }
}

void srv_reply_ended(srv_request *r, uint64_t id, int64_t ms, srv_handler *gone)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    void        *before = r->state;
    looking     *l;
    if (!SRV_STATE(r, l))
        return;
    *l = (looking){ .id = id, .gone = gone, .before = before };
    weir_code rc = weir_wait_async(srv_queue(r), id, &l->job, &f, &err);
    srv_await(r, rc, &err, f, ended);
    if (rc)
        return;                 /* it was answered */
    r->cancel = too_long;
    if (srv_is_cancelled(r))
        too_long(r);
    else
        srv_after(r, ms, too_long);
}

/* ---- cursors ---- */

void srv_cursor_write(weir_buf *out, const weir_cursor *c)
{
    weir__buf_char(out, '"');
    weir__buf_int(out, c->rank);
    weir__buf_char(out, '.');
    weir__buf_uint(out, c->id);
    weir__buf_char(out, '"');
}

bool srv_cursor_read(const char *text, weir_cursor *out)
{
    char *end;
    if (strspn(text, "-.0123456789") != strlen(text))       /* strtoll() would skip blanks */
        return false;
    errno = 0;
    out->rank = strtoll(text, &end, 10);
    if (end == text || *end != '.' || end[1] < '0' || end[1] > '9')
        return false;
    out->id = strtoull(end + 1, &end, 10);
    return !errno && !*end;
}
