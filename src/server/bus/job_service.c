/* job_service.c - Vert.x Kue's JobService: see job_service.h.
 *
 * Messages are handled on a thread of their own. An action with one call of the store starts it and
 * replies when it is done, so that many go to the store together; lists are read on the thread. */
#include "server/bus/job_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "server/bus/job_call.h"

/* ---- calls ---- */

static void release(job_call *c)
{
    srv_job_service *s = c->s;
    weir_future_free(c->future);
    weir_job_free(c->job);
    weir_stats_free(c->stats);
    weir_message_free(c->m);
    weir__buf_fini(&c->out);
    weir__arena_free(&c->arena);
    free(c);
    pthread_mutex_lock(&s->lock);
    if (--s->calls == 0)
        pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void job_call_reply(job_call *c)
{
    if (c->out.failed)
        weir_message_fail(c->m, JOB_CALL_FAILED, "out of memory", NULL);
    else
        weir_message_reply(c->m, &(weir_content){ .body = c->out.data, .body_len = c->out.len },
                           NULL);
    release(c);
}

void job_call_fail(job_call *c, int code, const char *fmt, ...)
{
    char text[WEIR_ERROR_MAX + 100];
    WEIR__FORMAT(text, fmt);
    weir_message_fail(c->m, code, text, NULL);
    release(c);
}

void job_call_reply_null(job_call *c)
{
    weir__buf_str(&c->out, "null");
    job_call_reply(c);
}

/* On the callback thread of the queue. */
static void call_done(weir_code code, const weir_error *err, void *ctx)
{
    job_call *c = ctx;
    c->err = (weir_error){ 0 };
    if (code)
        c->err = *err;
    c->done(c);
}

void job_call_await(job_call *c, weir_code started, void (*done)(job_call *c))
{
    c->done = done;
    if (started)
        job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
    else
        weir_future_then(c->future, call_done, c);
}

bool job_call_failed(job_call *c)
{
    if (!c->err.code)
        return false;
    job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
    return true;
}

/* ---- looking ---- */


static void got_job(job_call *c)
{
    if (c->err.code == WEIR_ENOENT) {
        job_call_reply_null(c);
    } else if (!job_call_failed(c)) {
        srv_vertx_job(&c->out, c->job);
        job_call_reply(c);
    }
}

static void get_job(job_call *c)
{
    if (c->args.id <= 0)
        job_call_reply_null(c);
    else
        job_call_await(c, weir_get_async(c->q, (uint64_t)c->args.id, &c->job, &c->future, &c->err),
                       got_job);
}

static void got_exists(job_call *c)
{
    if (job_call_failed(c))
        return;
    weir__buf_str(&c->out, c->exists ? "true" : "false");
    job_call_reply(c);
}

static void exists_job(job_call *c)
{
    if (c->args.id <= 0)
        got_exists(c);
    else
        job_call_await(c, weir_exists_async(c->q, (uint64_t)c->args.id, &c->exists, &c->future,
                                            &c->err), got_exists);
}

static void removed(job_call *c)
{
    if (c->err.code == WEIR_ENOENT || !job_call_failed(c))
        job_call_reply_null(c);
}

static void remove_job(job_call *c)
{
    if (c->args.id <= 0)
        job_call_reply_null(c);
    else
        job_call_await(c, weir_remove_async(c->q, (uint64_t)c->args.id, &c->future, &c->err),
                       removed);
}

static void counted(job_call *c)
{
    if (job_call_failed(c))
        return;
    weir__buf_uint(&c->out, c->count);
    job_call_reply(c);
}

static void count(job_call *c, weir_state state, const char *type)
{
    job_call_await(c, weir_count_async(c->q, state, type, &c->count, &c->future, &c->err), counted);
}

static void card(job_call *c)         { count(c, c->state, NULL); }
static void card_by_type(job_call *c) { count(c, c->state, c->args.type); }
static void complete_count(job_call *c) { count(c, WEIR_STATE_COMPLETE, c->args.type); }
static void failed_count(job_call *c)   { count(c, WEIR_STATE_FAILED, c->args.type); }
static void inactive_count(job_call *c) { count(c, WEIR_STATE_INACTIVE, c->args.type); }
static void active_count(job_call *c)   { count(c, WEIR_STATE_ACTIVE, c->args.type); }
static void delayed_count(job_call *c)  { count(c, WEIR_STATE_DELAYED, c->args.type); }

static void got_types(job_call *c)
{
    if (job_call_failed(c))
        return;
    weir__buf_char(&c->out, '[');
    for (size_t i = 0; i < c->stats->n; i++) {
        const char *type = c->stats->type[i].type;
        weir__buf_str(&c->out, i ? "," : "");
        weir__json_string(&c->out, type, strlen(type));
    }
    weir__buf_char(&c->out, ']');
    job_call_reply(c);
}

static void get_types(job_call *c)
{
    job_call_await(c, weir_get_stats_async(c->q, &c->stats, &c->future, &c->err), got_types);
}

static void got_work_time(job_call *c)
{
    if (job_call_failed(c))
        return;
    weir__buf_int(&c->out, c->stats->all.work_ms);
    job_call_reply(c);
}

static void get_work_time(job_call *c)
{
    job_call_await(c, weir_get_stats_async(c->q, &c->stats, &c->future, &c->err), got_work_time);
}

/* ---- adding ---- */

/* A job with an address that is not saved yet: whoever listens to its address from here on misses
 * none of its events. */
static void create_job(job_call *c)
{
    char address[SRV_UUID];
    if (!srv_make_uuid(address)) {
        job_call_fail(c, JOB_CALL_FAILED, "no random numbers");
        return;
    }
    weir__buf_printf(&c->out, "{\"id\":-1,\"address_id\":\"%s\",\"type\":", address);
    weir__json_string(&c->out, c->args.type, strlen(c->args.type));
    weir__buf_str(&c->out, ",\"data\":");
    if (c->args.data.len)
        weir__buf_add(&c->out, c->args.data.text, c->args.data.len);
    else
        weir__buf_str(&c->out, "{}");
    weir__buf_str(&c->out, ",\"priority\":\"NORMAL\",\"state\":\"INACTIVE\"}");
    job_call_reply(c);
}

static void saved(job_call *c)
{
    if (job_call_failed(c))
        return;
    weir_future_free(c->future);
    c->future = NULL;
    job_call_await(c, weir_get_async(c->q, c->added.id, &c->job, &c->future, &c->err), got_job);
}

static void save_job(job_call *c)
{
    weir_reader    in = { .alloc = weir__arena_alloc, .ctx = &c->arena };
    srv_vertx_body b;
    char           address[SRV_UUID];
    weir_buf       values = { 0 };
    size_t         len;
    const char    *body = weir_message_body(c->m, &len);
    weir_json_piece job = c->args.job.len ? c->args.job : (weir_json_piece){ body, len };
    if (srv_vertx_spec(&in, job, &b)) {
        bool no_type = strcmp(in.err.msg, SRV_VERTX_NO_TYPE) == 0;
        job_call_fail(c, no_type ? JOB_CALL_FAILED : JOB_CALL_WRONG, "%s", in.err.msg);
    } else if (b.id > 0) {
        job_call_fail(c, JOB_CALL_FAILED, "job %" PRId64 " is saved already; PUT /job changes it",
                      b.id);
    } else if (!b.address && !srv_make_uuid(address)) {
        job_call_fail(c, JOB_CALL_FAILED, "no random numbers");
    } else {
        srv_vertx_values(&values, b.address ? b.address : address);
        b.spec.values = values.failed ? NULL : values.data;
        job_call_await(c, weir_add_async(c->q, &b.spec, &c->added, &c->future, &c->err), saved);
    }
    weir__buf_fini(&values);
}

/* ---- the table ---- */

enum { ID = 1, TYPE = 2, RANGE = 4, STATE = 8, MESSAGE = 16 };      /* arguments that are needed */

/* name, function, arguments it needs, what it is in the audit log (NULL: it changes nothing),
 * administrative */
#define JOB_ACTIONS(X)                                                                            \
    X("getJob", get_job, ID, NULL, false)                                                         \
    X("removeJob", remove_job, ID, "job.delete", true)                                            \
    X("existsJob", exists_job, ID, NULL, false)                                                   \
    X("getJobLog", job_call_log, ID, NULL, false)                                                 \
    X("jobRangeByState", job_call_state_range, RANGE, NULL, false)                                \
    X("jobRangeByType", job_call_type_range, RANGE | TYPE, NULL, false)                           \
    X("jobRange", job_call_range, RANGE, NULL, false)                                             \
    X("cardByType", card_by_type, TYPE | STATE, NULL, false)                                      \
    X("card", card, STATE, NULL, false)                                                           \
    X("completeCount", complete_count, 0, NULL, false)                                            \
    X("failedCount", failed_count, 0, NULL, false)                                                \
    X("inactiveCount", inactive_count, 0, NULL, false)                                            \
    X("activeCount", active_count, 0, NULL, false)                                                \
    X("delayedCount", delayed_count, 0, NULL, false)                                              \
    X("getAllTypes", get_types, 0, NULL, false)                                                   \
    X("getIdsByState", job_call_ids, STATE, NULL, false)                                          \
    X("getWorkTime", get_work_time, 0, NULL, false)                                               \
    X("createJob", create_job, TYPE, NULL, false)                                                 \
    X("saveJob", save_job, 0, "job.add", false)                                                   \
    X("takeJob", job_call_take, TYPE, "job.take", false)                                          \
    X("renewJob", job_call_renew, ID, "job.renew", false)                                         \
    X("jobProgress", job_call_progress, ID, "job.progress", false)                                \
    X("jobDone", job_call_done, ID, "job.finish", false)                                          \
    X("jobDoneFail", job_call_done_fail, ID | MESSAGE, "job.finish", false)

static const struct {
    const char *name;
    void      (*run)(job_call *c);
    unsigned    needs;
    const char *audit;
    bool        admin;
} actions[] = {
#define X(name, run, needs, audit, admin) { name, run, needs, audit, admin },
    JOB_ACTIONS(X)
#undef X
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static size_t find_action(const char *name)
{
    size_t i = 0;
    while (i < ACTIONS && strcmp(actions[i].name, name) != 0)
        i++;
    return i;
}

const char *srv_job_service_audit(const char *action, bool *admin)
{
    size_t i = find_action(action);
    *admin = i < ACTIONS && actions[i].admin;
    return i < ACTIONS ? actions[i].audit : NULL;
}

/* ---- messages ---- */

#define ARG(name, how, member, ...) WEIR_FIELD(name, how, offsetof(job_args, member), __VA_ARGS__)
static const weir_field arg_fields[] = {
    ARG("id", weir__as_int, id, .min = -1, .max = INT64_MAX, .given = offsetof(job_args, has_id)),
    ARG("from", weir__as_int, from, .given = offsetof(job_args, has_from)),
    ARG("to", weir__as_int, to, .given = offsetof(job_args, has_to)),
    ARG("complete", weir__as_int, complete, .needed = false),
    ARG("total", weir__as_int, total, .needed = false),
    ARG("lease", weir__as_ms, lease_ms, .min = WEIR_MIN_LEASE_MS, .max = WEIR_MAX_MS),
    ARG("delivery", weir__as_any_delivery, delivery, .needed = false),
    ARG("type", weir__as_text, type, .needed = false),
    ARG("state", weir__as_text, state, .needed = false),
    ARG("order", weir__as_text, order, .needed = false),
    ARG("message", weir__as_text, message, .needed = false),
    ARG("worker", weir__as_text, worker, .min = 1, .max = WEIR_MAX_WORKER),
    ARG("job", weir__as_raw, job, .needed = false),
    ARG("data", weir__as_raw, data, .needed = false),
    ARG("result", weir__as_raw, result, .needed = false),
    { 0 }
};

static bool is_upper(const char *state)
{
    return state[strcspn(state, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

/* NULL: all that is needed is there. */
static const char *missing(const job_args *a, unsigned needs)
{
    return needs & ID && !a->has_id                         ? "id"
           : needs & TYPE && !a->type                       ? "type"
           : needs & RANGE && !(a->has_from && a->has_to)   ? "from and to"
           : needs & STATE && !a->state                     ? "state"
           : needs & MESSAGE && !a->message                 ? "message" : NULL;
}

bool job_call_read_args(job_call *c, unsigned needs)
{
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &c->arena };
    size_t      len;
    const char *body = weir_message_body(c->m, &len), *name;
    weir_code   rc = WEIR_OK;
    body += strspn(body, " \t\r\n");
    if (*body == '{')
        rc = srv_vertx_read(&in, arg_fields, (weir_json_piece){ body, strlen(body) }, &c->args);
    if (!rc && c->args.job.len)
        rc = srv_vertx_read(&in, arg_fields, c->args.job, &c->args);
    if (rc)
        job_call_fail(c, JOB_CALL_WRONG, "%s", in.err.msg);
    else if ((name = missing(&c->args, needs)))
        job_call_fail(c, JOB_CALL_WRONG, "%s: missing", name);
    else if (needs & STATE && (!is_upper(c->args.state) ||
                               !weir_state_parse(c->args.state, &c->state)))
        job_call_fail(c, JOB_CALL_WRONG, "No enum constant io.vertx.blueprint.kue.queue.JobState."
                      "%.100s", c->args.state);
    else
        return true;
    return false;
}

job_call *job_call_open(srv_job_service *s, weir_message *m)
{
    job_call *c = calloc(1, sizeof *c);
    if (!c) {
        weir_message_fail(m, JOB_CALL_FAILED, "out of memory", NULL);
        return NULL;
    }
    c->s = s;
    c->q = s->q;
    c->m = weir_message_keep(m);
    pthread_mutex_lock(&s->lock);
    s->calls++;
    pthread_mutex_unlock(&s->lock);
    return c;
}

static void run_action(weir_message *m, void *ctx)
{
    size_t    i = find_action(weir_message_header(m, "action"));
    job_call *c = job_call_open(ctx, m);
    if (c && job_call_read_args(c, actions[i].needs))
        actions[i].run(c);
}

/* ---- the thread ---- */

static void run_mailbox(weir_inbox_task *task)
{
    srv_job_service *s = (srv_job_service *)((char *)task - offsetof(srv_job_service, task));
    atomic_store(&s->posted, false);
    while (!atomic_load(&s->closing) && weir_mailbox_run(s->mb, 1, 0))
        ;
}

static void wake(void *ctx)
{
    srv_job_service *s = ctx;
    if (!atomic_exchange(&s->posted, true))
        srv_loop_post(s->loop, &s->task);
}

/* ---- the beginning and the end ---- */

weir_code srv_job_service_create(srv_job_service **out, weir_bus *bus, weir_queue *q,
                                 weir_error *err)
{
    static const weir_action named[] = {
#define X(label, ...) { .name = label, .run = run_action },
        JOB_ACTIONS(X)
#undef X
        { .name = NULL }
    };
    srv_job_service *s = *out = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "job service: out of memory");
    s->bus = bus;
    s->q = q;
    s->task.run = run_mailbox;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    weir_code rc = srv_loop_create(&s->loop, "weir-jobs", err);
    if (!rc)
        rc = weir_mailbox_create(&s->mb, bus, &(weir_mailbox_config){ .wake = wake, .ctx = s },
                                 err);
    if (!rc)
        rc = weir_service_publish(&s->service, bus, &(weir_service_config){
                                  .name = SRV_JOB_SERVICE, .actions = named, .ctx = s,
                                  .mailbox = s->mb }, err);
    if (!rc)
        rc = job_ends_open(s, err);
    if (rc) {
        srv_job_service_destroy(s);
        *out = NULL;
    }
    return rc;
}

void srv_job_service_destroy(srv_job_service *s)
{
    if (!s)
        return;
    atomic_store(&s->closing, true);
    weir_service_close(s->service);
    job_ends_close(s);
    srv_loop_destroy(s->loop);
    job_ends_drop(s);
    pthread_mutex_lock(&s->lock);
    while (s->calls)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (s->mb)
        weir_mailbox_destroy(s->mb);
    job_taken_fini(s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
