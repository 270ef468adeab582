/* find.c - tasks by their id, and by classifier and relative ids, through their jobs' index. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "task/inner.h"

void weir__task_free_all(weir_task **tasks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        weir_task_free(tasks[i]);
        tasks[i] = NULL;
    }
}

static weir_code no_memory(weir_error *err)
{
    return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
}

/* ---- by id ---- */

/* More tasks than this whose ids have one hash are not looked at. */
enum { SAME_HASH = 20 };

/* The task of this id in a page of candidates; the oldest, if there were several. */
static weir_code pick(weir_page *page, const char *id, weir_task **out, weir_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < page->n && !*out; i++) {
        weir_job *job = page->job[i];
        page->job[i] = NULL;
        if (!weir__task_of_job(job, false, out))
            return no_memory(err);
        if (*out && strcmp((*out)->spec.id, id) != 0) {
            weir_task_free(*out);
            *out = NULL;
        }
    }
    return WEIR_OK;
}

typedef struct look {
    weir_future *future;
    weir_page   *page;
} look;

/* Wait for all of them, also after a failure: they fill memory of the caller. */
static weir_code gather(look *looks, const char *const *ids, size_t n, weir_task **out,
                        weir_code rc, weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        weir_error own = { 0 };
        weir_code  one = looks[i].future ? weir_future_wait(looks[i].future, WEIR_FOREVER, &own)
                                         : WEIR_OK;
        if (!one && looks[i].page)
            one = pick(looks[i].page, ids[i], &out[i], &own);
        weir_future_free(looks[i].future);
        weir_page_free(looks[i].page);
        if (one && !rc) {
            rc = one;
            if (err)
                *err = own;
        }
    }
    if (rc)
        weir__task_free_all(out, n);
    return rc;
}

weir_code weir__task_find_ids(weir_tasks *t, const char *const *ids, size_t n, weir_task **out,
                              weir_error *err)
{
    memset(out, 0, n * sizeof *out);
    look     *looks = calloc(n ? n : 1, sizeof *looks);
    weir_code rc = looks ? WEIR_OK : no_memory(err);
    for (size_t i = 0; looks && i < n && !rc; i++) {
        task_word word;
        if (!ids[i])
            continue;
        if ((rc = weir__task_id_check(ids[i], "id", err)))
            break;
        word = weir__task_word_id(ids[i]);
        weir_query query = { .search = word.text, .limit = SAME_HASH };
        rc = weir_list_async(t->q, &query, &looks[i].page, &looks[i].future, err);
    }
    if (looks)
        rc = gather(looks, ids, n, out, rc, err);
    free(looks);
    return rc;
}

weir_code weir_task_find(weir_tasks *t, const char *id, weir_task **out, weir_error *err)
{
    *out = NULL;
    weir_code rc = weir__task_id_check(id, "id", err);
    if (!rc)
        rc = weir__task_find_ids(t, &id, 1, out, err);
    if (!rc && !*out)
        rc = weir_fail(err, WEIR_ENOENT, "there is no task %s", id);
    return rc;
}

/* ---- lists ---- */

enum { DEFAULT_LIMIT = 100 };

void weir_task_page_free(weir_task_page *page)
{
    if (!page)
        return;
    for (size_t i = 0; i < page->n; i++)
        weir_task_free(page->task[i]);
    free(page->task);
    free(page);
}

static bool matches(const weir_task *task, const weir_task_query *q, const char *relative_id)
{
    return (!q->state || q->state == task->state) &&
           (!q->classifier || strcmp(q->classifier, task->spec.classifier) == 0) &&
           (!relative_id || (task->spec.relative_id &&
                             strcmp(relative_id, task->spec.relative_id) == 0));
}

/* Jobs of one page that are asked for become tasks of `out`, which has room. */
static weir_code collect(weir_page *page, const weir_task_query *q, const char *relative_id,
                         weir_task_page *out, weir_error *err)
{
    for (size_t i = 0; i < page->n; i++) {
        weir_task *task;
        weir_job  *job = page->job[i];
        page->job[i] = NULL;
        if (!weir__task_of_job(job, false, &task))
            return no_memory(err);
        if (task && matches(task, q, relative_id))
            out->task[out->n++] = task;
        else
            weir_task_free(task);
    }
    return WEIR_OK;
}

static weir_code read_page(weir_tasks *t, const weir_task_query *q, const char *relative_id,
                           size_t room, weir_cursor *at, weir_task_page *out, weir_error *err)
{
    task_word  word = relative_id ? weir__task_word_relative(q->classifier, relative_id)
                      : q->classifier ? weir__task_word_classifier(q->classifier)
                                      : (task_word){ TASK_WORD_ALL };
    weir_query query = { .search = word.text, .after = *at, .limit = room };
    weir_page *page;
    weir_code  rc = weir_list(t->q, &query, &page, err);
    if (rc)
        return rc;
    out->more = page->more;
    *at = page->next;
    rc = collect(page, q, relative_id, out, err);
    weir_page_free(page);
    return rc;
}

/* All pages of one relative id, as far as there is room. */
static weir_code read_relative(weir_tasks *t, const weir_task_query *q, const char *relative_id,
                               weir_task_page *out, weir_error *err)
{
    weir_cursor at = { 0 };
    weir_code   rc;
    do {
        if (out->n == q->limit) {
            out->more = true;
            return WEIR_OK;
        }
        rc = read_page(t, q, relative_id, q->limit - out->n, &at, out, err);
    } while (!rc && out->more);
    return rc;
}

static weir_code check_query(weir_task_query *q, weir_error *err)
{
    if (WEIR__CHECK_RESERVED(q, err))
        return WEIR_EINVAL;
    if (!q->limit)
        q->limit = DEFAULT_LIMIT;
    if (q->limit > WEIR_MAX_TASKS)
        return weir__fail_field(err, WEIR_ELIMIT, "limit", "%zu, at most %d (WEIR_MAX_TASKS)",
                                q->limit, WEIR_MAX_TASKS);
    if (weir__check_number(q->state, WEIR_TASK_STATE_COUNT, "state", err))
        return WEIR_EINVAL;
    if (q->relative_ids && q->after.id)
        return weir__fail_field(err, WEIR_EINVAL, "after", "not together with relative ids, whose "
                                "tasks come in one page");
    if (q->relative_ids && !q->classifier)
        q->classifier = "default";
    weir_code rc = weir__task_text_check(q->classifier, "classifier", err);
    for (size_t i = 0; !rc && q->relative_ids && q->relative_ids[i]; i++)
        rc = weir__task_text_check(q->relative_ids[i], "relative_ids", err);
    return rc;
}

weir_code weir_task_list(weir_tasks *t, const weir_task_query *query, weir_task_page **out,
                         weir_error *err)
{
    weir_task_query q = *query;
    *out = NULL;
    weir_code       rc = check_query(&q, err);
    if (rc)
        return rc;
    weir_task_page *page = calloc(1, sizeof *page);
    if (page)
        page->task = calloc(q.limit, sizeof *page->task);
    if (!page || !page->task) {
        free(page);
        return no_memory(err);
    }
    weir_cursor at = q.after;
    if (!q.relative_ids)
        rc = read_page(t, &q, NULL, q.limit, &at, page, err);
    for (size_t i = 0; !rc && q.relative_ids && q.relative_ids[i] && !page->more; i++)
        rc = read_relative(t, &q, q.relative_ids[i], page, err);
    page->next = at;
    if (rc)
        weir_task_page_free(page);
    else
        *out = page;
    return rc;
}
