/* restore.c - the table of record and the queue are compared: what the queue has lost is submitted
 * again, rows of what has ended are brought up to date.
 *
 * A row that is open (ready or running), and no job: was the job lost with its store, or did it end
 * and was removed? The second must not run again. Two things in the queue answer that:
 *
 * - The mark: a schedule, paused, named "weir/task-table/TABLE/CLASSIFIER", which nobody can fire
 *   (WEIR_OWN_SCHEDULE), put there when no row of the classifier was open, or when all had been
 *   restored. If it was there before the look for the jobs, and is the same one behind it, the
 *   queue was not lost since, and has removed the job.
 * - The token of the add, which the store remembers for WEIR_TOKEN_MS. Within that time it has the
 *   last word, also if an older copy of a Redis came back, with the mark but without its last jobs:
 *   if the token is known, the job was removed; else the add with it submits the task again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "task/inner.h"

#define REMOVED "removed from the queue"

enum {
    ROWS = 200,
    TOKEN_SAFE_MS = WEIR_TOKEN_MS - 3600000     /* so old, a row may have no token any more */
};

/* ---- the mark ---- */

static void mark_name(const weir_tasks *t, const char *classifier,
                      char out[WEIR_MAX_SCHEDULE_NAME + 1])
{
    size_t room = WEIR_MAX_SCHEDULE_NAME + 1;
    size_t need = (size_t)snprintf(out, room, WEIR_OWN_SCHEDULE "task-table/%s/%s",
                                   weir__record_name(t->table), classifier);
    if (need >= room)
        snprintf(out, room, WEIR_OWN_SCHEDULE "task-table/%.60s/%s", weir__record_name(t->table),
                 weir__task_word_classifier(classifier).text);
}

/* When it was put; 0: no mark. */
static weir_code read_mark(weir_tasks *t, const char *classifier, int64_t *out, weir_error *err)
{
    char            name[WEIR_MAX_SCHEDULE_NAME + 1];
    weir_schedules *found;
    weir_error      own;
    mark_name(t, classifier, name);
    weir_code rc = weir_schedule_get(t->q, name, &found, &own);
    *out = !rc && found->n ? found->schedule[0].created_at : 0;
    if (!rc)
        weir_schedules_free(found);
    else if (rc != WEIR_ENOENT && err)
        *err = own;
    return rc == WEIR_ENOENT ? WEIR_OK : rc;
}

/* A caller without that right works without it: then a row without a job is taken for lost. */
static void put_mark(weir_tasks *t, const char *classifier)
{
    char          name[WEIR_MAX_SCHEDULE_NAME + 1];
    weir_schedule mark = { .name = name, .when = "@monthly", .paused = true,
                           .job = { .type = "task-table", .data =
                           "{\"why\":\"while this schedule is here, the tasks of the table of "
                           "record are in this queue, or have ended\"}" } };
    mark_name(t, classifier, name);
    weir_schedule_import(t->q, &mark, NULL, NULL);
}

static bool is_marked(weir_tasks *t, const char *classifier)
{
    bool found = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_marked && !found; i++)
        found = strcmp(t->marked[i].name, classifier) == 0;
    if (!found && t->n_marked < TASK_MARKED)
        snprintf(t->marked[t->n_marked++].name, sizeof t->marked[0].name, "%s", classifier);
    pthread_mutex_unlock(&t->lock);
    return found;
}

weir_code weir__task_mark(weir_tasks *t, const char *classifier, weir_error *err)
{
    int64_t at;
    if (is_marked(t, classifier))
        return WEIR_OK;
    weir_code rc = read_mark(t, classifier, &at, err);
    if (rc || at)
        return rc;
    weir_arena     arena = { 0 };
    weir_task_spec spec;
    int64_t        created;
    size_t         n = 0;
    rc = weir__record_open_rows(t->table, classifier, NULL, "", 1, &arena, &spec, &created, &n,
                                err);
    weir__arena_free(&arena);
    if (!rc && !n)
        put_mark(t, classifier);
    return rc;
}

/* ---- rows ---- */

typedef struct restoring {
    weir_tasks *t;
    const char *classifier;
    bool        sweep;              /* leave alone what a lost queue has lost */
    size_t      count;
} restoring;

typedef struct row_page {
    weir_task_spec spec[ROWS];
    int64_t        created[ROWS];
    size_t         n;
    weir_arena     arena;
} row_page;

/* The row of a task that has ended, unless its schedule makes it ready again. */
static weir_code write_ended(restoring *r, const weir_task *task, weir_error *err)
{
    bool      armed;
    weir_code rc = weir__task_rearm(r->t, task, &armed, err);
    r->count += !rc && armed;
    return rc || armed ? rc : weir__record_update(r->t->table, task, err);
}

/* Their adds are known, and yet there was no job a moment before: if there is still none ... */
static weir_code close_known(restoring *r, const weir_task_spec *specs, const bool *known, size_t n,
                             weir_error *err)
{
    const char *ids[ROWS];
    weir_task  *there[ROWS];
    for (size_t i = 0; i < n; i++)
        ids[i] = known[i] ? specs[i].id : NULL;
    weir_code rc = weir__task_find_ids(r->t, ids, n, there, err);
    for (size_t i = 0; i < n && !rc; i++)
        if (known[i] && !there[i])
            rc = weir__record_close_row(r->t->table, specs[i].id, REMOVED, weir_now(r->t->q), err);
    weir__task_free_all(there, n);
    return rc;
}

/* Rows without a job. `kept`: the queue was not lost since it has its mark. */
static weir_code settle_missing(restoring *r, const row_page *rows, const size_t *missing, size_t n,
                                bool kept, weir_error *err)
{
    weir_task_spec lost[ROWS];
    bool           known[ROWS];
    size_t         n_lost = 0;
    int64_t        now = weir_now(r->t->q);
    weir_code      rc = WEIR_OK;
    if (r->sweep && !kept)
        return rc;
    for (size_t i = 0; i < n && !rc; i++) {
        const weir_task_spec *spec = &rows->spec[missing[i]];
        if (kept && rows->created[missing[i]] < now - TOKEN_SAFE_MS)
            rc = weir__record_close_row(r->t->table, spec->id, REMOVED, now, err);
        else
            lost[n_lost++] = *spec;
    }
    if (!rc)
        rc = weir__task_restore(r->t, lost, n_lost, known, &r->count, err);
    return rc ? rc : close_known(r, lost, known, n_lost, err);
}

static weir_code settle_rows(restoring *r, const row_page *rows, weir_error *err)
{
    const char *ids[ROWS];
    weir_task  *there[ROWS];
    size_t      missing[ROWS], n = 0;
    int64_t     before, after = 0;
    for (size_t i = 0; i < rows->n; i++)
        ids[i] = rows->spec[i].id;
    weir_code rc = read_mark(r->t, r->classifier, &before, err);
    if (!rc)
        rc = weir__task_find_ids(r->t, ids, rows->n, there, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows->n && !rc; i++) {
        if (!there[i])
            missing[n++] = i;
        else if (there[i]->state != WEIR_TASK_READY && there[i]->state != WEIR_TASK_RUNNING)
            rc = write_ended(r, there[i], err);
    }
    weir__task_free_all(there, rows->n);
    if (!rc && n)
        rc = read_mark(r->t, r->classifier, &after, err);
    return rc || !n ? rc
                    : settle_missing(r, rows, missing, n, before && before == after, err);
}

static weir_code settle_all(restoring *r, weir_error *err)
{
    char      after[WEIR_MAX_TASK_ID + 1] = "";
    bool      more = true;
    row_page *rows = calloc(1, sizeof *rows);
    weir_code rc = rows ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    while (!rc && more) {
        rc = weir__record_open_rows(r->t->table, r->classifier, NULL, after, ROWS, &rows->arena,
                                    rows->spec, rows->created, &rows->n, err);
        if (!rc && rows->n) {
            snprintf(after, sizeof after, "%s", rows->spec[rows->n - 1].id);
            rc = settle_rows(r, rows, err);
        }
        more = rows->n == ROWS;
        weir__arena_free(&rows->arena);
        rows->arena = (weir_arena){ 0 };
    }
    free(rows);
    return rc;
}

weir_code weir__task_sweep(weir_tasks *t, weir_error *err)
{
    weir_arena arena = { 0 };
    restoring  r = { .t = t, .classifier = "", .sweep = true };
    weir_code  rc = WEIR_OK;
    while (!rc && r.classifier) {
        rc = weir__record_classifier(t->table, r.classifier, &arena, &r.classifier, err);
        if (!rc && r.classifier)
            rc = settle_all(&r, err);
    }
    weir__arena_free(&arena);
    return rc;
}

/* ---- initialize ---- */

/* Tasks with a schedule that ended without being armed again. */
static weir_code arm_ended(weir_tasks *t, const char *classifier, size_t *count, weir_error *err)
{
    weir_task_query query = { .classifier = classifier, .limit = WEIR_MAX_TASKS };
    bool            more = true;
    weir_code       rc = WEIR_OK;
    while (more && !rc) {
        weir_task_page *page;
        if ((rc = weir_task_list(t, &query, &page, err)))
            break;
        for (size_t i = 0; i < page->n && !rc; i++) {
            bool was;
            rc = weir__task_rearm(t, page->task[i], &was, err);
            *count += was;
        }
        more = page->more;
        query.after = page->next;
        weir_task_page_free(page);
    }
    return rc;
}

static weir_code restore_classifier(weir_tasks *t, const char *classifier, size_t *count,
                                    weir_error *err)
{
    restoring r = { .t = t, .classifier = classifier };
    int64_t   mark = 0;
    weir_code rc = settle_all(&r, err);
    if (!rc)
        rc = read_mark(t, classifier, &mark, err);
    if (!rc && !mark)
        put_mark(t, classifier);
    *count += r.count;
    return rc;
}

/* Every classifier with open rows. */
static weir_code restore_all(weir_tasks *t, size_t *count, weir_error *err)
{
    weir_arena  arena = { 0 };
    const char *classifier = "";
    weir_code   rc = weir__record_classifier(t->table, classifier, &arena, &classifier, err);
    while (!rc && classifier) {
        rc = restore_classifier(t, classifier, count, err);
        if (!rc)
            rc = weir__record_classifier(t->table, classifier, &arena, &classifier, err);
    }
    weir__arena_free(&arena);
    return rc;
}

weir_code weir_task_initialize(weir_tasks *t, const char *classifier, size_t *armed,
                               weir_error *err)
{
    size_t    count = 0;
    weir_code rc = arm_ended(t, classifier, &count, err);
    if (!rc && t->table && classifier)
        rc = restore_classifier(t, classifier, &count, err);
    else if (!rc && t->table)
        rc = restore_all(t, &count, err);
    if (armed)
        *armed = count;
    return rc;
}
