/* api_tasks.c - tasks: submit, list, find, adjust, fire, cancel, wait for their end. A token that
 * is bound to types has the tasks whose jobs are of these types. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/audit.h"
#include "server/api/api.h"
#include "server/http/body.h"
#include "server/http/inner.h"
#include "server/http/parts.h"
#include "server/tasks.h"

enum { FIRST = 2, SOME = 16, AT_ONCE = 100, MAX_READS = 100 };  /* tasks at once; parts */

/* The arguments, in memory of the request. */
typedef struct question {
    srv_task_ask         ask;
    srv_request         *r;
    void               (*reply)(struct question *q);    /* if there is no error */
    weir_error           err;
    weir_items           specs;         /* of weir_task_spec */
    weir_task_submitted *submitted;
    bool                 bulk, or_find, made;
    bool                 hidden;        /* there is such a task, but not for this caller */
    int64_t              wait_ms;       /* -1: do not wait */
    const char          *id;
    weir_task           *task;
    weir_job            *job;           /* that was waited for */
    weir_task_query      query;
    weir_task_page      *page;
    srv_parts            parts;         /* of a list: large tasks are read and sent in parts */
    size_t               seen, shown, left, bytes;  /* tasks read, in the answer, wanted yet */
    int                  reads;         /* that may follow */
    weir_texts           ids, relative_ids;
    const char          *classifier, *reason;
    size_t               n;
} question;

static question *question_of(srv_task_ask *ask)
{
    return (question *)(void *)((char *)ask - offsetof(question, ask));
}

/* On the request's loop. */
static void answered(weir_inbox_task *task)
{
    question *q = (question *)(void *)((char *)task - offsetof(question, ask.done));
    if (!q->err.code)
        q->reply(q);
    else if (!q->r->parts || !srv_parts_failed(q->r))
        srv_reply_error(q->r, &q->err);
}

static void post(question *q, void (*run)(weir_tasks *t, srv_task_ask *ask),
                 void (*reply)(question *q))
{
    q->reply = reply;
    q->ask = (srv_task_ask){ .run = run, .loop = q->r->loop, .done.run = answered };
    srv_tasks_post(q->r->server->tasks, &q->ask);
}

/* NULL: it was answered. */
static question *begin(srv_request *r, unsigned role)
{
    question *q;
    if (!srv_allow_own(r, role) || !SRV_STATE(r, q))
        return NULL;
    q->r = r;
    q->id = r->arg[0];
    q->wait_ms = -1;
    return q;
}

static bool lacks(const question *q, const weir_task *task)
{
    char type[WEIR_MAX_TASK_TEXT + 24];
    if (task->spec.version)
        snprintf(type, sizeof type, "%s@%" PRId64, task->spec.service, task->spec.version);
    else
        snprintf(type, sizeof type, "%s", task->spec.service);
    return srv_caller_lacks(&q->r->who, type);
}

static void task_json(weir_buf *out, const weir_task *task)
{
    size_t len;
    char  *json = weir_task_json(task, &len);
    if (json)
        weir__buf_add(out, json, len);
    else
        out->failed = true;
    free(json);
}

static void reply_task(question *q)
{
    weir_buf body = { 0 };
    task_json(&body, q->task);
    int status = q->made ? 201 : q->task->unfinished ? 202 : 200;
    srv_audit_id(q->r, q->task->job);
    weir_task_free(q->task);
    srv_reply_json(q->r, status, &body);
}

/* The task of the path, if the caller has it. */
static void find(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    if (weir_task_find(t, q->id, &q->task, &q->err) || !lacks(q, q->task))
        return;
    weir_task_free(q->task);
    q->task = NULL;
    q->hidden = true;
    weir_fail(&q->err, WEIR_ENOENT, "there is no task %s", q->id);
}

/* ---- GET ---- */

static void show(srv_request *r)
{
    question *q = begin(r, WEIR_ROLE_READ);
    if (q)
        post(q, find, reply_task);
}

static size_t page_bytes(const weir_task_page *page)
{
    size_t bytes = 0;
    for (size_t i = 0; i < page->n; i++)
        bytes += strlen(page->task[i]->spec.attachment);
    return bytes;
}

/* Tasks of relative ids come in one page, so it is refused when it is too large: more of them are
 * asked for as long as that is not known. */
static void list_related(weir_tasks *t, question *q)
{
    size_t wanted = q->query.limit;
    q->query.limit = FIRST < wanted ? FIRST : wanted;
    while (!weir_task_list(t, &q->query, &q->page, &q->err)) {
        if (!q->page->more || q->query.limit == wanted)
            return;
        size_t bytes = page_bytes(q->page);
        weir_task_page_free(q->page);
        q->page = NULL;
        if (2 * bytes >= SRV_MAX_PAGE) {
            weir_fail(&q->err, WEIR_ELIMIT, "relative_ids: their tasks are too large for one page "
                      "(SRV_MAX_PAGE); ask for fewer");
            return;
        }
        q->query.limit = 2 * q->query.limit < wanted ? 2 * q->query.limit : wanted;
    }
}

static void list(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    if (q->query.relative_ids)
        list_related(t, q);
    else
        weir_task_list(t, &q->query, &q->page, &q->err);
}

static void reply_part(question *q)
{
    weir_buf       *out = &q->parts.body;
    weir_task_page *page = q->page;
    size_t          before = out->len;
    for (size_t i = 0; i < page->n; i++) {
        if (lacks(q, page->task[i]))
            continue;
        if (q->shown++)
            weir__buf_char(out, ',');
        task_json(out, page->task[i]);
    }
    bool more = page->more;
    q->query.after = page->next;
    q->seen += page->n;
    q->left -= page->n;
    q->bytes += out->len - before;
    weir_task_page_free(page);
    if (more && q->left && q->bytes < SRV_MAX_PAGE && !q->query.relative_ids && q->reads-- > 0) {
        srv_parts_go_on(q->r);
        return;
    }
    if (more)
        weir__buf_printf(out, "],\"next\":\"%" PRId64 ".%" PRIu64 "\"}", q->query.after.rank,
                         q->query.after.id);
    else
        weir__buf_str(out, "],\"next\":null}");
    srv_parts_end(q->r);
}

static void list_part(srv_request *r)
{
    question *q = r->state;
    size_t    fit = q->seen ? srv_parts_items(q->seen, q->bytes)
                    : q->reads == MAX_READS ? FIRST : SOME;
    fit = fit < AT_ONCE ? fit : AT_ONCE;
    q->query.limit = q->query.relative_ids || fit > q->left ? q->left : fit;
    post(q, list, reply_part);
}

/* "a,b" as a list, NULL at the end. */
static bool split(srv_request *r, const char *text, const char *const **out)
{
    if (!text)
        return true;
    size_t       n = 0, size = strlen(text) + 1;
    const char **list_of = srv_alloc(r, (size + 1) * sizeof *list_of);
    char        *copy = srv_strndup(r, text, size - 1);
    if (!list_of || !copy)
        return false;
    for (char *rest = copy, *one; (one = strsep(&rest, ","));)
        list_of[n++] = one;
    *out = list_of;
    return true;
}

static void show_list(srv_request *r)
{
    question   *q = begin(r, WEIR_ROLE_READ);
    int64_t     limit = 100;
    const char *state = srv_query(r, "state"), *after = srv_query(r, "after");
    int         end = 0;
    if (!q || !srv_query_int(r, "limit", 1, WEIR_MAX_TASKS, &limit))
        return;
    q->left = (size_t)limit;
    q->reads = MAX_READS;
    q->query.classifier = srv_query(r, "classifier");
    if (state && !weir_task_state_parse(state, &q->query.state))
        srv_reply_fail(r, WEIR_EINVAL, "state", "state: unknown state; expected ready, running, "
                       "completed, failed, cancelled or timed_out");
    else if (after && (sscanf(after, "%" SCNd64 ".%" SCNu64 "%n", &q->query.after.rank,
                              &q->query.after.id, &end) != 2 || after[end]))
        srv_reply_fail(r, WEIR_EINVAL, "after", "after: expected \"next\" of the page before");
    else if (!split(r, srv_query(r, "relative_ids"), &q->query.relative_ids))
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
    else if (srv_parts_begin(r, &q->parts, SRV_JSON, list_part)) {
        weir__buf_str(&q->parts.body, "{\"tasks\":[");
        list_part(r);
    }
}

/* ---- POST /v1/tasks ---- */

#define AT(member) offsetof(weir_task_spec, member)
static const weir_field spec_fields[] = {
    WEIR_FIELD("service", weir__as_text, AT(service)),
    WEIR_FIELD("id", weir__as_text, AT(id)),
    WEIR_FIELD("classifier", weir__as_text, AT(classifier)),
    WEIR_FIELD("relative_id", weir__as_text, AT(relative_id)),
    WEIR_FIELD("name", weir__as_text, AT(name)),
    WEIR_FIELD("attachment", weir__as_raw, AT(attachment)),
    WEIR_FIELD("var1", weir__as_text, AT(var1)),
    WEIR_FIELD("var2", weir__as_text, AT(var2)),
    WEIR_FIELD("var3", weir__as_text, AT(var3)),
    WEIR_FIELD("result_store", weir__as_text, AT(result_store)),
    WEIR_FIELD("version", weir__as_int, AT(version)),
    WEIR_FIELD("timeout", weir__as_ms, AT(timeout_ms)),
    WEIR_FIELD("run_at", weir__as_moment, AT(run_at)),
    WEIR_FIELD("schedule", weir__as_text, AT(schedule)),
    WEIR_FIELD("zone", weir__as_text, AT(zone)),
    { 0 }
};
#undef AT

static weir_code read_spec(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    (void)f;
    return weir__read(in, spec_fields, value, to);
}

/* May the caller submit this? False: it was answered. */
static bool may_submit(question *q, const weir_task_spec *spec)
{
    const weir_task task = { .spec = *spec };
    if (!spec->service || !lacks(q, &task))
        return true;
    return srv_allow(q->r, WEIR_ROLE_PRODUCE, spec->service);
}

static bool read_specs(question *q)
{
    weir_reader     in;
    weir_json_piece all;
    weir_json_walk  w;
    weir_field      many = { .max = WEIR_MAX_TASKS };
    if (!srv_body_open(q->r, &in, &all))
        return false;
    q->bulk = weir__json_open(&w, all) && !w.object;
    weir_task_spec *one = q->bulk ? NULL : srv_alloc(q->r, sizeof *one);
    weir_code       rc = q->bulk ? weir__read_list(&in, &many, all, sizeof *one, read_spec,
                                                   &q->specs.item, &q->specs.n)
                         : one   ? weir__read(&in, spec_fields, all, one)
                                 : weir_fail(&in.err, WEIR_ENOMEM, "out of memory");
    if (rc) {
        srv_body_refuse(q->r, &in);
        return false;
    }
    if (!q->bulk)
        q->specs = (weir_items){ one, 1 };
    const weir_task_spec *specs = q->specs.item;
    for (size_t i = 0; i < q->specs.n; i++) {
        if (!may_submit(q, &specs[i]))
            return false;
    }
    return true;
}

static void submit(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    bool      existed;
    if (!q->or_find) {
        weir_code rc = weir_task_submit(t, q->specs.item, q->specs.n, q->submitted, &q->err);
        if (q->bulk && rc && rc != WEIR_ELIMIT)
            q->err.code = WEIR_OK;          /* each has its own */
        return;
    }
    if (!weir_task_find_or_submit(t, q->specs.item, &q->task, &existed, &q->err))
        q->made = !existed;
}

static void submitted_json(weir_buf *out, const weir_task_submitted *s)
{
    if (s->err.code) {
        weir__buf_str(out, "{\"error\":");
        srv_error_json(out, &s->err);
    } else {
        weir__buf_str(out, "{\"id\":");
        weir__json_string(out, s->id, strlen(s->id));
        weir__buf_printf(out, ",\"job\":%" PRIu64, s->job);
    }
    weir__buf_char(out, '}');
}

static void too_long(srv_request *r)
{
    r->cancel = NULL;
    srv_not_after(r);
    srv_give_up(r);
}

static void find_ended(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    if (!weir_task_find(t, q->id, &q->task, &q->err))
        q->task->unfinished = q->task->state == WEIR_TASK_READY ||
                              q->task->state == WEIR_TASK_RUNNING;
}

/* It has ended, or the time is over: look at it. */
static void waited(srv_request *r, weir_code code, const weir_error *err)
{
    question *q = r->state;
    r->cancel = NULL;
    srv_not_after(r);
    weir_job_free(q->job);
    if (code && code != WEIR_ETIMEOUT)
        srv_failed(r, code, err);
    else
        post(q, find_ended, reply_task);
}

static void wait_for(question *q)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    q->id = q->submitted->id;
    weir_code rc = weir_wait_async(srv_queue(q->r), q->submitted->job, &q->job, &f, &err);
    if (!rc) {
        q->r->cancel = too_long;
        srv_after(q->r, q->wait_ms, too_long);
    }
    srv_await(q->r, rc, &err, f, waited);
}

static void reply_submitted(question *q)
{
    weir_buf body = { 0 };
    if (q->or_find) {
        reply_task(q);
        return;
    }
    if (q->wait_ms >= 0) {
        wait_for(q);
        return;
    }
    for (size_t i = 0; i < q->specs.n; i++)
        if (!q->submitted[i].err.code)
            srv_audit_id(q->r, q->submitted[i].job);
    if (q->bulk)
        weir__buf_char(&body, '[');
    for (size_t i = 0; i < q->specs.n; i++) {
        if (i)
            weir__buf_char(&body, ',');
        submitted_json(&body, &q->submitted[i]);
    }
    if (q->bulk)
        weir__buf_char(&body, ']');
    srv_reply_json(q->r, q->bulk ? 200 : 201, &body);
}

static void post_tasks(srv_request *r)
{
    question *q = begin(r, WEIR_ROLE_PRODUCE);
    if (!q || !srv_query_ms(r, "wait", SRV_MAX_WAIT_MS, &q->wait_ms) ||
        !srv_query_bool(r, "or_find", &q->or_find) || !read_specs(q))
        return;
    if (q->bulk && (q->wait_ms >= 0 || q->or_find)) {
        const char *name = q->or_find ? "or_find" : "wait";
        srv_reply_fail(r, WEIR_EINVAL, name, "%s: only for one task, this is a list", name);
        return;
    }
    if (q->or_find && q->wait_ms >= 0) {
        srv_reply_fail(r, WEIR_EINVAL, "wait", "wait: not together with or_find");
        return;
    }
    q->submitted = srv_alloc(r, (q->specs.n + 1) * sizeof *q->submitted);
    if (!q->submitted)
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
    else
        post(q, submit, reply_submitted);
}

/* ---- one task: adjust, fire ---- */

static void adjust(weir_tasks *t, srv_task_ask *ask)
{
    question       *q = question_of(ask);
    weir_task_spec *spec = q->specs.item;
    find(t, ask);
    if (q->hidden || (q->err.code && q->err.code != WEIR_ENOENT))
        return;
    q->err = (weir_error){ 0 };
    weir_task_free(q->task);
    q->task = NULL;
    spec->id = q->id;
    if (!weir_task_adjust(t, spec, &q->made, &q->err))
        find(t, ask);
}

static void put(srv_request *r)
{
    question       *q = begin(r, WEIR_ROLE_ADMIN);
    weir_task_spec *spec = q ? srv_alloc(r, sizeof *spec) : NULL;
    if (!q)
        return;
    if (!spec) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    q->specs = (weir_items){ spec, 1 };
    if (!srv_body(r, spec_fields, spec))
        return;
    if (spec->id && strcmp(spec->id, q->id) != 0)
        srv_reply_fail(r, WEIR_EINVAL, "id", "id: it is not the id in the path; leave it out, or "
                       "write the same");
    else if (*r->who.types && !spec->service)
        srv_reply_fail(r, WEIR_EINVAL, "service", "service: missing; a token that is bound to "
                       "types has to name it");
    else if (may_submit(q, spec))
        post(q, adjust, reply_task);
}

static void fire(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    find(t, ask);
    if (q->err.code)
        return;
    weir_task_free(q->task);
    q->task = NULL;
    if (!weir_task_promote(t, q->id, &q->err))
        find(t, ask);
}

static void fire_task(srv_request *r)
{
    question *q = begin(r, WEIR_ROLE_ADMIN);
    if (q)
        post(q, fire, reply_task);
}

/* ---- POST /v1/tasks/cancel, /v1/tasks/initialize ---- */

static const weir_field cancel_fields[] = {
    WEIR_FIELD("ids", weir__as_texts, offsetof(question, ids), .max = WEIR_MAX_TASKS),
    WEIR_FIELD("classifier", weir__as_text, offsetof(question, classifier)),
    WEIR_FIELD("relative_ids", weir__as_texts, offsetof(question, relative_ids),
               .max = WEIR_MAX_TASKS),
    WEIR_FIELD("reason", weir__as_text, offsetof(question, reason)),
    { 0 }
};

static void cancel(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    if (q->ids.text)
        weir_task_cancel(t, q->ids.text, q->ids.n, q->reason, &q->n, &q->err);
    else
        weir_task_cancel_relative(t, q->classifier, q->relative_ids.text, q->relative_ids.n,
                                  q->reason, &q->n, &q->err);
}

static void reply_cancelled(question *q)
{
    weir_buf body = { 0 };
    weir__buf_printf(&body, "{\"cancelled\":%zu}", q->n);
    srv_audit_detail(q->r, "%zu cancelled%s%.200s", q->n, q->reason ? ": " : "",
                     q->reason ? q->reason : "");
    srv_reply_json(q->r, 200, &body);
}

static void cancel_tasks(srv_request *r)
{
    question *q = srv_allow(r, WEIR_ROLE_ADMIN, NULL) ? begin(r, WEIR_ROLE_ADMIN) : NULL;
    if (!q || !srv_body(r, cancel_fields, q))
        return;
    if (!q->ids.text == !q->relative_ids.text)
        srv_reply_fail(r, WEIR_EINVAL, "ids", "ids: expected either \"ids\" or \"relative_ids\"");
    else
        post(q, cancel, reply_cancelled);
}

static void initialize(weir_tasks *t, srv_task_ask *ask)
{
    question *q = question_of(ask);
    weir_task_initialize(t, q->classifier, &q->n, &q->err);
}

static void reply_armed(question *q)
{
    weir_buf body = { 0 };
    weir__buf_printf(&body, "{\"armed\":%zu}", q->n);
    srv_reply_json(q->r, 200, &body);
}

static void initialize_tasks(srv_request *r)
{
    question *q = srv_allow(r, WEIR_ROLE_ADMIN, NULL) ? begin(r, WEIR_ROLE_ADMIN) : NULL;
    if (!q)
        return;
    q->classifier = srv_query(r, "classifier");
    post(q, initialize, reply_armed);
}

/* ---- routes ---- */

static const srv_param list_query[] = {
    { "classifier", SRV_P_TEXT, "Tasks of this classifier (any; with relative_ids: default)" },
    { "relative_ids", SRV_P_LIST, "Tasks with one of these relative ids" },
    { "state", SRV_P_TEXT, "ready, running, completed, failed, cancelled or timed_out" },
    { "limit", SRV_P_INT, "Tasks in a page (100); with a state, a page may have fewer" },
    { "after", SRV_P_TEXT, "\"next\" of the page before" },
    { 0 }
};

static const srv_param submit_query[] = {
    { "wait", SRV_P_MS, "one task: answer when it has ended (200), or after this time (202)" },
    { "or_find", SRV_P_BOOL, "one task: if there is one with this id, answer with that (200)" },
    { 0 }
};

static const srv_param initialize_query[] = {
    { "classifier", SRV_P_TEXT, "Tasks of this classifier (all)" },
    { 0 }
};

const srv_route srv_tasks_routes[] = {
    { "POST", "/v1/tasks", WEIR_ROLE_PRODUCE, post_tasks, SRV_MAX_BODY, submit_query, 0,
      "Submit a task, or a list of tasks", "TaskPost", "TaskSubmitted", 201 },
    { "GET", "/v1/tasks", WEIR_ROLE_READ, show_list, 0, list_query, 0,
      "Tasks, in the order of their submission", NULL, "TaskPage", 200 },
    { "POST", "/v1/tasks/cancel", WEIR_ROLE_ADMIN, cancel_tasks, SRV_MAX_SMALL_BODY, NULL, 0,
      "Cancel tasks that are ready", "TaskCancel", "TaskCancelled", 200 },
    { "POST", "/v1/tasks/initialize", WEIR_ROLE_ADMIN, initialize_tasks, 0, initialize_query, 0,
      "Arm tasks with a schedule that ended without being armed again", NULL, "TaskArmed", 200 },
    { "GET", "/v1/tasks/{id}", WEIR_ROLE_READ, show, 0, NULL, 0, "One task, with its result", NULL,
      "Task", 200 },
    { "PUT", "/v1/tasks/{id}", WEIR_ROLE_ADMIN, put, SRV_MAX_BODY, NULL, 0,
      "Change a task, or submit it if it is unknown", "TaskSpec", "Task", 200 },
    { "POST", "/v1/tasks/{id}/fire", WEIR_ROLE_ADMIN, fire_task, 0, NULL, 0,
      "Make a task due now", NULL, "Task", 200 },
    { 0 }
};
