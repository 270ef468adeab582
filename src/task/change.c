/* change.c - tasks that wait: cancel, adjust, promote, arm again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "core/values.h"
#include "task/inner.h"

enum { READY = WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_DELAYED) };

static weir_code no_memory(weir_error *err)
{
    return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
}

/* ---- the row ---- */

weir_code weir__task_record(weir_tasks *t, const char *id, weir_error *err)
{
    weir_task *task = NULL;
    weir_code  rc = t->table ? weir__task_find_ids(t, &id, 1, &task, err) : WEIR_OK;
    if (!rc && task)
        rc = weir__record_update(t->table, task, err);
    weir_task_free(task);
    return rc;
}

/* ---- cancel ---- */

typedef struct cancelling {
    weir_future *future;
    bool         asked;
} cancelling;

/* It was not ready, or is gone. */
static bool is_late(weir_code rc)
{
    return rc == WEIR_ESTATE || rc == WEIR_ENOENT || rc == WEIR_ESTALE;
}

static weir_code cancel_all(weir_tasks *t, weir_task *const *tasks, size_t n, const char *values,
                            size_t *count, weir_error *err)
{
    cancelling *each = calloc(n ? n : 1, sizeof *each);
    weir_code   rc = each ? WEIR_OK : no_memory(err);
    const weir_change change = { .state = WEIR_STATE_CANCELLED, .from = READY, .values = values };
    for (size_t i = 0; !rc && i < n; i++) {
        if (!tasks[i] || tasks[i]->state != WEIR_TASK_READY)
            continue;
        rc = weir_update_async(t->q, tasks[i]->job, &change, NULL, &each[i].future, err);
        each[i].asked = !rc;
    }
    for (size_t i = 0; each && i < n; i++) {
        weir_error own = { 0 };
        weir_code  one = each[i].asked ? weir_future_wait(each[i].future, WEIR_FOREVER, &own)
                                       : WEIR_OK;
        weir_future_free(each[i].future);
        *count += each[i].asked && !one;
        if (each[i].asked && !one)
            one = weir__task_record(t, tasks[i]->spec.id, &own);
        if (one && !is_late(one) && !rc) {
            rc = one;
            if (err)
                *err = own;
        }
    }
    free(each);
    return rc;
}

/* The value that keeps what was said; NULL in `text` is nothing. */
static weir_code said(weir_buf *out, const char *text, weir_error *err)
{
    weir_buf  json = { 0 };
    weir_code rc = WEIR_OK;
    if (!text)
        return rc;
    weir__json_string(&json, text, weir__utf8_cut(text, strlen(text), TASK_SAID_BYTES));
    rc = json.failed ? no_memory(err) : weir__values_one(out, TASK_SAID, json.data, err);
    weir__buf_fini(&json);
    return rc;
}

static weir_code check_n(size_t n, const char *field, weir_error *err)
{
    return n <= WEIR_MAX_TASKS ? WEIR_OK
           : weir__fail_field(err, WEIR_ELIMIT, field, "%zu, at most %d (WEIR_MAX_TASKS)", n,
                              WEIR_MAX_TASKS);
}

weir_code weir_task_cancel(weir_tasks *t, const char *const *ids, size_t n, const char *reason,
                           size_t *cancelled, weir_error *err)
{
    size_t      count = 0;
    weir_buf    values = { 0 };
    weir_task **tasks = calloc(n ? n : 1, sizeof *tasks);
    weir_code   rc = tasks ? check_n(n, "ids", err) : no_memory(err);
    if (!rc)
        rc = said(&values, reason, err);
    if (!rc)
        rc = weir__task_find_ids(t, ids, n, tasks, err);
    if (!rc)
        rc = cancel_all(t, tasks, n, values.data, &count, err);
    if (tasks)
        weir__task_free_all(tasks, n);
    free(tasks);
    weir__buf_fini(&values);
    if (cancelled)
        *cancelled = count;
    return rc;
}

/* Cancelled tasks leave the list of ready ones: until a page is empty. */
static weir_code cancel_pages(weir_tasks *t, const weir_task_query *query, const char *values,
                              size_t *count, weir_error *err)
{
    bool      more = true;
    weir_code rc = WEIR_OK;
    while (more && !rc) {
        weir_task_page *page;
        size_t          before = *count;
        if ((rc = weir_task_list(t, query, &page, err)))
            break;
        rc = cancel_all(t, page->task, page->n, values, count, err);
        more = page->more && *count > before;
        weir_task_page_free(page);
    }
    return rc;
}

weir_code weir_task_cancel_relative(weir_tasks *t, const char *classifier,
                                    const char *const *relative_ids, size_t n, const char *reason,
                                    size_t *cancelled, weir_error *err)
{
    size_t       count = 0;
    weir_buf     values = { 0 };
    const char **list = calloc(n + 1, sizeof *list);
    weir_code    rc = list ? check_n(n, "relative_ids", err) : no_memory(err);
    if (!rc)
        rc = said(&values, reason, err);
    if (!rc && n) {
        memcpy(list, relative_ids, n * sizeof *list);
        weir_task_query query = { .classifier = classifier, .relative_ids = list,
                                  .state = WEIR_TASK_READY, .limit = WEIR_MAX_TASKS };
        rc = cancel_pages(t, &query, values.data, &count, err);
    }
    free(list);
    weir__buf_fini(&values);
    if (cancelled)
        *cancelled = count;
    return rc;
}

/* ---- adjust ---- */

static weir_code fixed(const weir_task_spec *old, const weir_task_spec *new, weir_error *err)
{
    const char *field = new->service && strcmp(new->service, old->service) ? "service"
                        : new->version && new->version != old->version ? "version"
                        : new->timeout_ms && new->timeout_ms != old->timeout_ms ? "timeout_ms"
                        : NULL;
    return field ? weir__fail_field(err, WEIR_EINVAL, field, "it cannot change; cancel the task "
                                    "and submit another") : WEIR_OK;
}

static weir_task_spec merged(const weir_task_spec *old, const weir_task_spec *new)
{
    weir_task_spec s = *old;
#define TAKE(member) s.member = new->member ? new->member : s.member
    TAKE(classifier);
    TAKE(relative_id);
    TAKE(name);
    TAKE(var1);
    TAKE(var2);
    TAKE(var3);
    TAKE(result_store);
    TAKE(schedule);
    TAKE(zone);
#undef TAKE
    if (new->attachment) {
        s.attachment = new->attachment;
        s.attachment_len = new->attachment_len;
    }
    s.run_at = new->run_at;
    return s;
}

/* It was in another state than the change needs, or is just now. */
static weir_code not_now(weir_tasks *t, const weir_task *task, weir_error *err)
{
    weir_task *now;
    weir_code  rc = weir_task_find(t, task->spec.id, &now, err);
    if (rc)
        return rc;
    if (now->state == WEIR_TASK_RUNNING)
        rc = weir_fail(err, WEIR_ESTATE, "the task %s is running; it can change when the run is "
                       "over", task->spec.id);
    else
        rc = weir__task_not_ready(now, err);
    weir_task_free(now);
    return rc;
}

static weir_code change(weir_tasks *t, const weir_task *task, const weir_task_spec *spec,
                        weir_error *err)
{
    enum { NOT_RUNNING = READY | WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) |
                         WEIR_BIT(WEIR_STATE_CANCELLED) };
    task_draft     draft = { 0 };
    weir_task_spec s = merged(&task->spec, spec);
    weir_code      rc = fixed(&task->spec, spec, err);
    if (!rc)
        rc = weir__task_draft(&draft, &s, weir_now(t->q), err);
    if (!rc) {
        bool        moves = spec->run_at || spec->schedule;
        weir_change c = { .data = draft.data.data, .data_len = draft.data.len,
                          .run_at = moves ? draft.run_at : 0,
                          .from = moves ? READY : NOT_RUNNING };
        rc = weir_update(t->q, task->job, &c, NULL, err);
        if (rc == WEIR_ESTATE)
            rc = not_now(t, task, err);
        else if (!rc)
            rc = weir__task_record(t, task->spec.id, err);
    }
    weir__buf_fini(&draft.data);
    return rc;
}

weir_code weir_task_adjust(weir_tasks *t, const weir_task_spec *spec, bool *submitted,
                           weir_error *err)
{
    weir_task *task;
    weir_code  rc = weir__task_id_check(spec->id, "id", err);
    if (submitted)
        *submitted = false;
    if (!rc)
        rc = weir__task_find_ids(t, &spec->id, 1, &task, err);
    if (rc)
        return rc;
    if (!task && !spec->service)
        return weir_fail(err, WEIR_ENOENT, "there is no task %s; to submit it, name its service",
                         spec->id);
    if (!task) {
        rc = weir_task_submit(t, spec, 1, NULL, err);
        if (submitted)
            *submitted = !rc;
        return rc;
    }
    rc = change(t, task, spec, err);
    weir_task_free(task);
    return rc;
}

/* ---- promote, arm again ---- */

weir_code weir__task_not_ready(const weir_task *task, weir_error *err)
{
    return weir_fail(err, WEIR_ESTATE, "the task %s is %s, not ready", task->spec.id,
                     task->state == WEIR_TASK_READY ? "running or has ended"
                                                    : weir_task_state_name(task->state));
}

weir_code weir_task_promote(weir_tasks *t, const char *id, weir_error *err)
{
    weir_task *task;
    weir_code  rc = weir_task_find(t, id, &task, err);
    if (rc)
        return rc;
    const weir_change now = { .set_delay = true, .from = READY };
    rc = weir_update(t->q, task->job, &now, NULL, err);
    if (rc == WEIR_ESTATE)
        rc = weir__task_not_ready(task, err);
    else if (!rc)
        rc = weir__task_record(t, id, err);
    weir_task_free(task);
    return rc;
}

weir_code weir__task_rearm(weir_tasks *t, const weir_task *task, bool *armed, weir_error *err)
{
    *armed = false;
    weir_task_state s = task->state;
    if (!task->spec.schedule || s == WEIR_TASK_READY || s == WEIR_TASK_RUNNING ||
        s == WEIR_TASK_CANCELLED)
        return WEIR_OK;
    weir_buf  values = { 0 };
    int64_t   next = 0;
    weir_code rc = weir__task_next(&task->spec, task->created_at, task->started_at, &next, err);
    if (!rc)
        rc = said(&values, task->result_state, err);
    if (!rc && next) {
        const weir_change change = { .state = WEIR_STATE_DELAYED, .run_at = next,
                                     .values = values.data, .by = "its schedule",
                                     .from = WEIR_BIT(WEIR_STATE_COMPLETE) |
                                             WEIR_BIT(WEIR_STATE_FAILED) };
        rc = weir_update(t->q, task->job, &change, NULL, err);
        *armed = !rc;
        if (*armed)
            rc = weir__task_record(t, task->spec.id, err);
    }
    weir__buf_fini(&values);
    return is_late(rc) ? WEIR_OK : rc;
}
