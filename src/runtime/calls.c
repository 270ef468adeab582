/* calls.c - the calls of queue.h, each twice: plain (waits) and async (a future). Both build the
 * same operation and give its answer to the caller in the same way. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "core/values.h"
#include "runtime/future.h"
#include "runtime/delivery.h"
#include "runtime/listing.h"
#include "runtime/trace.h"

/* ---- how answers reach the caller ---- */

static void give_added(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_added *out = to->out;
    const weir_op_add *add = &op->u.add;
    if (!out)
        return;
    if (op->err.code)
        memset(out, 0, add->n * sizeof *out);
    else if (add->out != out)
        memcpy(out, add->out, add->n * sizeof *out);
}

static void give_imported(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_imported *out = to->out;
    const weir_op_import *in = &op->u.import;
    if (!out)
        return;
    for (size_t i = 0; op->err.code && i < in->n; i++)
        out[i] = (weir_imported){ .err = op->err };
    if (!op->err.code && in->out != out)
        memcpy(out, in->out, in->n * sizeof *out);
}

static void give_job(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_job *answer = op->err.code ? NULL : op->u.get.job;
    if (to->out)
        *(weir_job **)to->out = answer;
    else
        weir_job_free(answer);
}

/* ENOENT is the answer "no", not an error. */
static void give_exists(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    if (to->out)
        *(bool *)to->out = !op->err.code;
    if (!op->err.code)
        weir_job_free(op->u.get.job);
    else if (op->err.code == WEIR_ENOENT)
        op->err.code = WEIR_OK;
}

static void give_lines(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_lines *answer = op->err.code ? NULL : op->u.logs.lines;
    if (to->out)
        *(weir_lines **)to->out = answer;
    else
        weir_lines_free(answer);
}

static void give_page(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_page *answer = op->err.code ? NULL : op->u.list.page;
    if (to->out)
        *(weir_page **)to->out = answer;
    else
        weir_page_free(answer);
}

static void give_stats(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_stats *answer = op->err.code ? NULL : op->u.stats.stats;
    if (to->out)
        *(weir_stats **)to->out = answer;
    else
        weir_stats_free(answer);
}

static void give_info(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_info *out = to->out;
    *out = op->err.code ? (weir_info){ 0 } : *op->u.info.info;
    if (!op->err.code)
        free(op->u.info.info);
}

static void give_report(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_report *answer = op->err.code ? NULL : op->u.check.report;
    if (to->out)
        *(weir_report **)to->out = answer;
    else
        weir_report_free(answer);
}

static void give_count(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    weir_stats *stats = op->err.code ? NULL : op->u.stats.stats;
    uint64_t count = stats && !to->type ? stats->all.count[to->state] : 0;
    for (size_t i = 0; stats && to->type && i < stats->n; i++)
        if (strcmp(stats->type[i].type, to->type) == 0)
            count = stats->type[i].count[to->state];
    if (to->out)
        *(uint64_t *)to->out = count;
    weir_stats_free(stats);
}

/* A suspect came beside other jobs: it goes back, and is taken when no others are left. */
static void give_back(weir_queue *q, weir_job *job)
{
    weir_ending ending = { .id = job->id, .delivery = job->delivery,
                           .outcome = WEIR_OUTCOME_RETURN };
    weir_finish_async(q, &ending, 1, NULL, NULL, NULL);     /* else its lease runs out */
    weir_job_free(job);
}

static void give_taken(weir_queue *q, weir_op *op, const weir_reply *to)
{
    weir_job **out = to->out;
    weir_op_take *take = &op->u.take;
    if (out)
        *to->n_out = 0;
    if (!weir__queue_answered(q, to->pass, op->err.code ? NULL : take, NULL)) {
        give_back(q, take->jobs[0]);
        return;
    }
    for (size_t i = 0; !op->err.code && i < take->n_jobs; i++) {
        weir_job *job = take->jobs[i];
        if (out &&
            weir__delivery_create(q, job, NULL, take->lease_ms, weir__queue_steady(q))) {
            out[(*to->n_out)++] = job;
            continue;
        }
        weir__queue_left(q, job);
        weir_job_free(job);          /* unwanted or out of memory: its lease will run out */
    }
}

/* ---- add ---- */

static weir_code add(weir_queue *q, weir_op_add what, weir_added *give, weir_error *err)
{
    weir__add_trace trace;
    weir_error      own;
    weir__add_trace_begin(&trace, &what);
    weir_op   op = { .kind = WEIR_OP_ADD, .u.add = what };
    weir_code rc = weir__call(q, &op, &(weir_reply){ .give = give_added, .out = give },
                              err ? err : &own);
    weir__add_trace_end(&trace, rc ? NULL : op.u.add.out, rc ? (err ? err : &own) : NULL);
    return rc;
}

static weir_code add_async(weir_queue *q, weir_op_add what, weir_added *give, weir_future **f,
                           weir_error *err)
{
    weir__add_trace trace;
    weir__add_trace_begin(&trace, &what);
    weir_op   op = { .kind = WEIR_OP_ADD, .u.add = what };
    weir_code rc = weir__call_async(q, &op, &(weir_reply){ .give = give_added, .out = give }, f,
                                    err);
    weir__add_trace_end(&trace, NULL, rc ? err : NULL);
    return rc;
}

weir_code weir_add(weir_queue *q, const weir_spec *spec, weir_added *out, weir_error *err)
{
    weir_added own;
    return add(q, (weir_op_add){ .specs = spec, .n = 1, .out = out ? out : &own }, out, err);
}

weir_code weir_add_async(weir_queue *q, const weir_spec *spec, weir_added *out, weir_future **f,
                         weir_error *err)
{
    return add_async(q, (weir_op_add){ .specs = spec, .n = 1 }, out, f, err);
}

weir_code weir_add_many(weir_queue *q, const weir_spec *specs, size_t n, const weir_token *token,
                        weir_added *out, weir_error *err)
{
    weir_added *own = out ? NULL : calloc(n ? n : 1, sizeof *own);
    if (!out && !own)
        return weir_fail(err, WEIR_ENOMEM, "add: out of memory");
    weir_code rc = add(q, (weir_op_add){ .token = token, .specs = specs, .n = n,
                                         .out = out ? out : own }, out, err);
    free(own);
    return rc;
}

weir_code weir_add_many_async(weir_queue *q, const weir_spec *specs, size_t n,
                              const weir_token *token, weir_added *out, weir_future **f,
                              weir_error *err)
{
    return add_async(q, (weir_op_add){ .token = token, .specs = specs, .n = n }, out, f, err);
}

/* ---- one job ---- */

static weir_op op_get(uint64_t id)
{
    return (weir_op){ .kind = WEIR_OP_GET, .u.get = { .id = id } };
}

weir_code weir_get(weir_queue *q, uint64_t id, weir_job **out, weir_error *err)
{
    weir_op op = op_get(id);
    return weir__call(q, &op, &(weir_reply){ .give = give_job, .out = out }, err);
}

weir_code weir_get_async(weir_queue *q, uint64_t id, weir_job **out, weir_future **f,
                         weir_error *err)
{
    weir_op op = op_get(id);
    return weir__call_async(q, &op, &(weir_reply){ .give = give_job, .out = out }, f, err);
}

weir_code weir_exists(weir_queue *q, uint64_t id, bool *out, weir_error *err)
{
    weir_op op = op_get(id);
    return weir__call(q, &op, &(weir_reply){ .give = give_exists, .out = out }, err);
}

weir_code weir_exists_async(weir_queue *q, uint64_t id, bool *out, weir_future **f,
                            weir_error *err)
{
    weir_op op = op_get(id);
    return weir__call_async(q, &op, &(weir_reply){ .give = give_exists, .out = out }, f, err);
}

static weir_op op_update(uint64_t id, const weir_change *change, uint32_t from)
{
    return (weir_op){ .kind = WEIR_OP_UPDATE,
                      .u.update = { .id = id, .from = from, .change = *change } };
}

/* The caller that sets a job to active has it. */
static weir_op op_change(const weir_queue *q, uint64_t id, const weir_change *change)
{
    weir_op op = op_update(id, change, change->from);
    if (change->state == WEIR_STATE_ACTIVE && !change->worker)
        op.u.update.change.worker = q->name;
    return op;
}

static void give_updated(weir_queue *q, weir_op *op, const weir_reply *to)
{
    (void)q;
    const weir_op_update *u = &op->u.update;
    weir_updated         *out = to->out;
    if (out)
        *out = op->err.code ? (weir_updated){ 0 } : (weir_updated){ .from = u->old_state,
                                                                     .to = u->new_state };
}

weir_code weir_update(weir_queue *q, uint64_t id, const weir_change *change, weir_updated *out,
                      weir_error *err)
{
    weir_op op = op_change(q, id, change);
    return weir__call(q, &op, &(weir_reply){ .give = give_updated, .out = out }, err);
}

weir_code weir_update_async(weir_queue *q, uint64_t id, const weir_change *change,
                            weir_updated *out, weir_future **f, weir_error *err)
{
    weir_op op = op_change(q, id, change);
    return weir__call_async(q, &op, &(weir_reply){ .give = give_updated, .out = out }, f, err);
}

weir_code weir_set(weir_queue *q, uint64_t id, const char *name, const char *value, weir_error *err)
{
    weir_buf  b = { 0 };
    weir_code rc = weir__values_one(&b, name, value, err);
    if (!rc)
        rc = weir_update(q, id, &(weir_change){ .values = b.data, .values_len = b.len }, NULL, err);
    weir__buf_fini(&b);
    return rc;
}

weir_code weir_set_async(weir_queue *q, uint64_t id, const char *name, const char *value,
                         weir_future **f, weir_error *err)
{
    weir_buf    b = { 0 };
    weir_code   rc = weir__values_one(&b, name, value, err);
    weir_change change = { .values = b.data, .values_len = b.len };
    if (f)
        *f = NULL;
    if (!rc)
        rc = weir_update_async(q, id, &change, NULL, f, err);
    weir__buf_fini(&b);
    return rc;
}

static weir_op op_retry(uint64_t id)
{
    return op_update(id, &(weir_change){ .state = WEIR_STATE_INACTIVE },
                     WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) |
                         WEIR_BIT(WEIR_STATE_CANCELLED));
}

weir_code weir_retry(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_op op = op_retry(id);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_retry_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err)
{
    weir_op op = op_retry(id);
    return weir__call_async(q, &op, NULL, f, err);
}

static weir_op op_promote(uint64_t id)
{
    return op_update(id, &(weir_change){ .state = WEIR_STATE_INACTIVE },
                     WEIR_BIT(WEIR_STATE_DELAYED));
}

weir_code weir_promote(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_op op = op_promote(id);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_promote_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err)
{
    weir_op op = op_promote(id);
    return weir__call_async(q, &op, NULL, f, err);
}

static weir_op op_cancel(uint64_t id)
{
    return op_update(id, &(weir_change){ .state = WEIR_STATE_CANCELLED }, 0);
}

weir_code weir_cancel(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_op op = op_cancel(id);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_cancel_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err)
{
    weir_op op = op_cancel(id);
    return weir__call_async(q, &op, NULL, f, err);
}

static weir_op op_remove(uint64_t id)
{
    return (weir_op){ .kind = WEIR_OP_REMOVE, .u.remove = { .id = id } };
}

weir_code weir_remove(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_op op = op_remove(id);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_remove_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err)
{
    weir_op op = op_remove(id);
    return weir__call_async(q, &op, NULL, f, err);
}

/* ---- log ---- */

static weir_op op_log(uint64_t id, uint32_t delivery, const char *line, size_t len)
{
    if (line && !len)
        len = strlen(line);
    return (weir_op){ .kind = WEIR_OP_LOG,
                      .u.log = { .id = id, .delivery = delivery, .text = line, .len = len } };
}

weir_code weir_log(weir_queue *q, uint64_t id, uint32_t delivery, const char *line, size_t len,
                   weir_error *err)
{
    weir_op op = op_log(id, delivery, line, len);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_log_async(weir_queue *q, uint64_t id, uint32_t delivery, const char *line,
                         size_t len, weir_future **f, weir_error *err)
{
    weir_op op = op_log(id, delivery, line, len);
    return weir__call_async(q, &op, NULL, f, err);
}

static weir_op op_logs(uint64_t id, uint64_t after, size_t limit)
{
    return (weir_op){ .kind = WEIR_OP_LOGS,
                      .u.logs = { .id = id, .after = after, .limit = limit } };
}

weir_code weir_logs(weir_queue *q, uint64_t id, uint64_t after, size_t limit, weir_lines **out,
                    weir_error *err)
{
    weir_op op = op_logs(id, after, limit);
    return weir__call(q, &op, &(weir_reply){ .give = give_lines, .out = out }, err);
}

weir_code weir_logs_async(weir_queue *q, uint64_t id, uint64_t after, size_t limit,
                          weir_lines **out, weir_future **f, weir_error *err)
{
    weir_op op = op_logs(id, after, limit);
    return weir__call_async(q, &op, &(weir_reply){ .give = give_lines, .out = out }, f, err);
}

/* ---- lists and counts ---- */

static weir_op op_list(const weir_query *query)
{
    static const weir_query all;
    return (weir_op){ .kind = WEIR_OP_LIST, .u.list = { .query = query ? *query : all } };
}

weir_code weir_list(weir_queue *q, const weir_query *query, weir_page **out, weir_error *err)
{
    weir_op      op = op_list(query);
    weir_future *f;
    weir_error   why;
    if (weir__op_check(&op, &why) || !weir__listing_needed(q, &op.u.list.query))
        return weir__call(q, &op, &(weir_reply){ .give = give_page, .out = out }, err);
    weir_code rc = weir__listing_async(q, &op.u.list, out, &f, err);
    if (!rc)
        rc = weir_future_wait(f, WEIR_FOREVER, err);
    weir_future_free(f);
    return rc;
}

weir_code weir_list_async(weir_queue *q, const weir_query *query, weir_page **out, weir_future **f,
                          weir_error *err)
{
    weir_op      op = op_list(query);
    weir_future *own;
    weir_error   why;
    if (weir__op_check(&op, &why) || !weir__listing_needed(q, &op.u.list.query))
        return weir__call_async(q, &op, &(weir_reply){ .give = give_page, .out = out }, f, err);
    weir_code rc = weir__listing_async(q, &op.u.list, out, &own, err);
    if (f)
        *f = own;
    else
        weir_future_free(own);
    return rc;
}

static weir_code check_state(weir_state state, weir_error *err)
{
    if ((unsigned)state >= WEIR_STATE_COUNT)
        return weir__fail_field(err, WEIR_EINVAL, "state", "%d is not one", (int)state);
    return WEIR_OK;
}

weir_code weir_count(weir_queue *q, weir_state state, const char *type, uint64_t *out,
                     weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_STATS };
    *out = 0;
    weir_code rc = check_state(state, err);
    if (rc)
        return rc;
    weir_reply to = { .give = give_count, .out = out, .state = state, .type = type };
    return weir__call(q, &op, &to, err);
}

weir_code weir_count_async(weir_queue *q, weir_state state, const char *type, uint64_t *out,
                           weir_future **f, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_STATS };
    if (out)
        *out = 0;
    if (f)
        *f = NULL;
    weir_code rc = check_state(state, err);
    if (rc)
        return rc;
    weir_reply to = { .give = give_count, .out = out, .state = state, .type = type };
    return weir__call_async(q, &op, &to, f, err);
}

weir_code weir_ready(weir_queue *q, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_STATS, .u.stats = { .probe = true } };
    return weir__call(q, &op, &(weir_reply){ .give = give_stats }, err);
}

weir_code weir_ready_async(weir_queue *q, weir_future **f, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_STATS, .u.stats = { .probe = true } };
    return weir__call_async(q, &op, &(weir_reply){ .give = give_stats }, f, err);
}

weir_code weir_get_stats(weir_queue *q, weir_stats **out, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_STATS };
    return weir__call(q, &op, &(weir_reply){ .give = give_stats, .out = out }, err);
}

weir_code weir_get_stats_async(weir_queue *q, weir_stats **out, weir_future **f, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_STATS };
    return weir__call_async(q, &op, &(weir_reply){ .give = give_stats, .out = out }, f, err);
}

weir_code weir_get_info(weir_queue *q, weir_info *out, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_INFO };
    return weir__call(q, &op, &(weir_reply){ .give = give_info, .out = out }, err);
}

weir_code weir_get_info_async(weir_queue *q, weir_info *out, weir_future **f, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_INFO };
    return weir__call_async(q, &op, &(weir_reply){ .give = give_info, .out = out }, f, err);
}

/* ---- types ---- */

static weir_op op_paused(const char *type, bool paused)
{
    return (weir_op){ .kind = WEIR_OP_CONFIGURE,
                      .u.configure = { .type = type, .set_paused = true, .paused = paused } };
}

weir_code weir_pause(weir_queue *q, const char *type, weir_error *err)
{
    weir_op op = op_paused(type, true);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_pause_async(weir_queue *q, const char *type, weir_future **f, weir_error *err)
{
    weir_op op = op_paused(type, true);
    return weir__call_async(q, &op, NULL, f, err);
}

weir_code weir_resume(weir_queue *q, const char *type, weir_error *err)
{
    weir_op op = op_paused(type, false);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_resume_async(weir_queue *q, const char *type, weir_future **f, weir_error *err)
{
    weir_op op = op_paused(type, false);
    return weir__call_async(q, &op, NULL, f, err);
}

static weir_op op_configure(const char *type, const weir_settings *settings)
{
    return (weir_op){ .kind = WEIR_OP_CONFIGURE,
                      .u.configure = { .type = type, .settings = settings } };
}

weir_code weir_configure(weir_queue *q, const char *type, const weir_settings *settings,
                         weir_error *err)
{
    weir_op op = op_configure(type, settings);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_configure_async(weir_queue *q, const char *type, const weir_settings *settings,
                               weir_future **f, weir_error *err)
{
    weir_op op = op_configure(type, settings);
    return weir__call_async(q, &op, NULL, f, err);
}

/* ---- import ---- */

weir_code weir_import(weir_queue *q, const weir_incoming *jobs, size_t n, weir_imported *out,
                      weir_error *err)
{
    weir_imported *own = out ? NULL : calloc(n ? n : 1, sizeof *own);
    if (!out && !own)
        return weir_fail(err, WEIR_ENOMEM, "import: out of memory");
    weir_op op = { .kind = WEIR_OP_IMPORT, .u.import = { .jobs = jobs, .n = n,
                                                         .out = out ? out : own } };
    weir_code rc = weir__call(q, &op, &(weir_reply){ .give = give_imported, .out = out }, err);
    free(own);
    return rc;
}

weir_code weir_import_async(weir_queue *q, const weir_incoming *jobs, size_t n, weir_imported *out,
                            weir_future **f, weir_error *err)
{
    weir_op    op = { .kind = WEIR_OP_IMPORT, .u.import = { .jobs = jobs, .n = n } };
    weir_error why;
    weir_code  rc = weir__call_async(q, &op, &(weir_reply){ .give = give_imported, .out = out }, f,
                                     &why);
    for (size_t i = 0; rc && out && i < n; i++)
        out[i].err = why;
    if (rc && err)
        *err = why;
    return rc;
}

/* ---- check ---- */

weir_code weir_check(weir_queue *q, bool mend, weir_report **out, weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_CHECK, .u.check = { .mend = mend } };
    return weir__call(q, &op, &(weir_reply){ .give = give_report, .out = out }, err);
}

weir_code weir_check_async(weir_queue *q, bool mend, weir_report **out, weir_future **f,
                           weir_error *err)
{
    weir_op op = { .kind = WEIR_OP_CHECK, .u.check = { .mend = mend } };
    return weir__call_async(q, &op, &(weir_reply){ .give = give_report, .out = out }, f, err);
}

/* ---- take ---- */

/* No job is taken beside a suspect: then the answer is "none", as in an empty queue. */
static weir_op op_take(weir_queue *q, const weir_taking *what, weir_job **jobs, weir_pass pass)
{
    weir_taking own = *what;
    own.busy = pass == WEIR__PASS_BUSY;
    return (weir_op){ .kind = WEIR_OP_TAKE, .u.take = weir__taking(q, &own, jobs) };
}

weir_code weir_take(weir_queue *q, const weir_taking *what, weir_job **out, size_t *n_out,
                    weir_error *err)
{
    *n_out = 0;
    if (WEIR__CHECK_RESERVED(what, err))
        return WEIR_EINVAL;
    if (what->remote)
        return weir__take_remote(q, what, out, n_out, err);
    weir_pass pass = weir__queue_enter_by_hand(q);
    weir_op op = op_take(q, what, out, pass);
    weir_reply to = { .give = give_taken, .out = out, .n_out = n_out, .pass = pass };
    if (pass)
        return weir__call(q, &op, &to, err);
    return weir__op_check(&op, err);
}

weir_code weir_take_async(weir_queue *q, const weir_taking *what, weir_job **out, size_t *n_out,
                          weir_future **f, weir_error *err)
{
    if (n_out)
        *n_out = 0;
    if (f)
        *f = NULL;
    if (WEIR__CHECK_RESERVED(what, err))
        return WEIR_EINVAL;
    if (what->remote)
        return weir__take_remote_async(q, what, out, n_out, f, err);
    weir_pass pass = weir__queue_enter_by_hand(q);
    weir_op op = op_take(q, what, NULL, pass);
    weir_reply to = { .give = give_taken, .out = out, .n_out = n_out, .pass = pass };
    if (pass)
        return weir__call_async(q, &op, &to, f, err);
    return weir__future_none(q, f, err);
}
