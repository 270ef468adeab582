/* submit.c - new tasks, each with an id that no other has.
 *
 * A task with an id of its own is looked for first. Then its add carries a token whose key is the
 * id and whose digest is this call's alone. If several calls found nothing, one adds and the others
 * are refused (WEIR_EINVAL). The store remembers the token for WEIR_TOKEN_MS, which is longer than
 * any call lasts between the look and the add.
 *
 * If the token is taken, and yet there is no task, the task was removed: the next number of the
 * token is free. A call that is late with a lower one ends with WEIR_ESTALE, and looks again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "task/inner.h"

/* How many times within WEIR_TOKEN_MS a task may be removed and its id be used again. */
enum { MAX_REUSED = 1000 };

typedef struct sending {
    task_draft   draft;
    bool         given;             /* the id is the caller's */
    bool         has_row;           /* in the table of record */
    bool         restored;          /* the row was there before */
    bool         known;             /* ... and the store remembers its add */
    char         key[WEIR_MAX_TASK_ID + 8];
    weir_token   token;
    weir_added   added;
    weir_future *future;
} sending;

static weir_code no_memory(weir_error *err)
{
    return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
}

static weir_code taken(weir_error *err, const char *id)
{
    return weir__fail_field(err, WEIR_ESTATE, "id", "there is a task %s", id);
}

/* ---- one after the other ---- */

static weir_code add_number(weir_tasks *t, sending *s, const weir_task_spec *spec, uint64_t number,
                            weir_error *err)
{
    weir_spec job = weir__task_job(&s->draft, spec);
    s->token.number = number;
    return weir_add_many(t->q, &job, 1, &s->token, &s->added, err);
}

/* The token was taken before this call: by a task that is there, or that was removed. */
static weir_code add_again(weir_tasks *t, sending *s, const weir_task_spec *spec, weir_error *err)
{
    weir_code rc = WEIR_ESTATE;
    for (uint64_t number = 1; number <= MAX_REUSED; number++) {
        const char *id = s->draft.id;
        weir_task  *there;
        if ((rc = weir__task_find_ids(t, &id, 1, &there, err)))
            return rc;
        if (there) {            /* with a row of this call, it was submitted from that by another */
            s->added.id = there->job;
            weir_task_free(there);
            return s->has_row ? WEIR_OK : taken(err, id);
        }
        *err = (weir_error){ 0 };
        rc = add_number(t, s, spec, number + 1, err);
        if (rc != WEIR_EINVAL && rc != WEIR_ESTALE)
            return rc;
    }
    return weir__fail_field(err, WEIR_ESTATE, "id", "%s was removed and used again %d times today",
                            s->draft.id, MAX_REUSED);
}

/* ---- many at once ---- */

static void draft_all(weir_tasks *t, const weir_task_spec *specs, size_t n, sending *all,
                      weir_task_submitted *out)
{
    int64_t now = weir_now(t->q);
    for (size_t i = 0; i < n; i++) {
        sending *s = &all[i];
        out[i] = (weir_task_submitted){ 0 };
        s->given = specs[i].id != NULL;
        if (weir__task_draft(&s->draft, &specs[i], now, &out[i].err))
            continue;
        memcpy(out[i].id, s->draft.id, sizeof out[i].id);
        snprintf(s->key, sizeof s->key, "task:%s", s->draft.id);
        s->token = (weir_token){ .key = s->key, .number = 1, .digest = weir__task_random() };
    }
}

/* Tasks whose id is there already. */
static weir_code look_all(weir_tasks *t, const sending *all, size_t n, weir_task_submitted *out,
                          weir_error *err)
{
    const char **ids = calloc(n, sizeof *ids);
    weir_task  **there = calloc(n, sizeof *there);
    weir_code    rc = ids && there ? WEIR_OK : no_memory(err);
    for (size_t i = 0; !rc && i < n; i++)
        ids[i] = all[i].given && !out[i].err.code ? out[i].id : NULL;
    if (!rc)
        rc = weir__task_find_ids(t, ids, n, there, err);
    for (size_t i = 0; !rc && i < n; i++) {
        if (there[i])
            taken(&out[i].err, out[i].id);
        weir_task_free(there[i]);
    }
    free(ids);
    free(there);
    return rc;
}

/* Rows come first, so that no task is acknowledged without one. */
static void write_rows(weir_tasks *t, const weir_task_spec *specs, size_t n, sending *all,
                       weir_task_submitted *out)
{
    int64_t now = weir_now(t->q);
    for (size_t i = 0; i < n && t->table; i++) {
        task_draft *d = &all[i].draft;
        const char *classifier = specs[i].classifier ? specs[i].classifier : "default";
        if (out[i].err.code || weir__task_mark(t, classifier, &out[i].err))
            continue;
        weir_code rc = weir__record_insert(t->table, &specs[i], d->id, d->run_at, now, &out[i].err);
        if (rc == WEIR_ESTATE)
            taken(&out[i].err, d->id);
        all[i].has_row = !rc;
    }
}

/* A row of a task that was refused. If it is not known what became of the add, the row stays. */
static void drop_row(weir_tasks *t, const sending *s, weir_code rc)
{
    if (s->has_row && (rc == WEIR_EINVAL || rc == WEIR_ELIMIT || rc == WEIR_ESTATE))
        weir__record_remove(t->table, s->draft.id, NULL);
}

static void add_all(weir_tasks *t, const weir_task_spec *specs, size_t n, sending *all,
                    weir_task_submitted *out)
{
    for (size_t i = 0; i < n; i++) {
        sending *s = &all[i];
        if (out[i].err.code)
            continue;
        weir_spec job = weir__task_job(&s->draft, &specs[i]);
        weir_add_many_async(t->q, &job, 1, s->given || t->table ? &s->token : NULL, &s->added,
                            &s->future, &out[i].err);
    }
    for (size_t i = 0; i < n; i++) {
        sending  *s = &all[i];
        weir_code rc = s->future ? weir_future_wait(s->future, WEIR_FOREVER, &out[i].err)
                                 : out[i].err.code;
        weir_future_free(s->future);
        if (s->future && (rc == WEIR_EINVAL || rc == WEIR_ESTALE) && s->restored) {
            s->known = true;
        } else if (s->future && (rc == WEIR_EINVAL || rc == WEIR_ESTALE) && s->token.key) {
            out[i].err = (weir_error){ 0 };
            rc = add_again(t, s, &specs[i], &out[i].err);
        }
        out[i].job = rc ? 0 : s->added.id;
        drop_row(t, s, rc);
    }
}

static weir_code first_error(const weir_task_submitted *out, size_t n, weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!out[i].err.code)
            continue;
        if (err)
            *err = out[i].err;
        return n == 1 ? out[i].err.code
                      : weir__fail_inside(err, out[i].err.code, "tasks[%zu]", i);
    }
    return WEIR_OK;
}

/* `known`: all have rows, which stay as they are; NULL: rows are inserted. */
static weir_code submit(weir_tasks *t, const weir_task_spec *specs, size_t n, bool *known,
                        weir_task_submitted *out, weir_error *err)
{
    if (n > WEIR_MAX_TASKS)
        return weir__fail_field(err, WEIR_ELIMIT, "tasks", "%zu, at most %d (WEIR_MAX_TASKS)", n,
                                WEIR_MAX_TASKS);
    sending             *all = calloc(n ? n : 1, sizeof *all);
    weir_task_submitted *own = out ? out : calloc(n ? n : 1, sizeof *own);
    weir_code            rc = all && own ? WEIR_OK : no_memory(err);
    if (!rc) {
        draft_all(t, specs, n, all, own);
        rc = look_all(t, all, n, own, err);
    }
    if (!rc) {
        for (size_t i = 0; i < n; i++)
            all[i].restored = known != NULL;
        if (!known)
            write_rows(t, specs, n, all, own);
        add_all(t, specs, n, all, own);
        for (size_t i = 0; known && i < n; i++)
            known[i] = all[i].known;
        rc = first_error(own, n, err);
    }
    for (size_t i = 0; all && i < n; i++)
        weir__buf_fini(&all[i].draft.data);
    if (own != out)
        free(own);
    free(all);
    return rc;
}

weir_code weir_task_submit(weir_tasks *t, const weir_task_spec *specs, size_t n,
                           weir_task_submitted *out, weir_error *err)
{
    return submit(t, specs, n, NULL, out, err);
}

weir_code weir__task_restore(weir_tasks *t, const weir_task_spec *specs, size_t n, bool *known,
                             size_t *count, weir_error *err)
{
    weir_task_submitted *out = calloc(n ? n : 1, sizeof *out);
    if (!out)
        return no_memory(err);
    memset(known, 0, n * sizeof *known);
    weir_code rc = submit(t, specs, n, known, out, err);
    bool      all = rc && n && !out[0].err.code && !out[0].job;     /* none was tried */
    rc = all ? rc : WEIR_OK;
    for (size_t i = 0; i < n && !all; i++) {
        *count += out[i].job != 0;
        if (out[i].err.code && out[i].err.code != WEIR_ESTATE && !known[i] && !rc) {
            rc = out[i].err.code;
            if (err)
                *err = out[i].err;
        }
    }
    free(out);
    return rc;
}

/* ---- find, or else submit ---- */

/* There is a row with this id, but no task: the queue has lost it. */
static weir_code restore_one(weir_tasks *t, const char *id, weir_error *err)
{
    weir_arena     arena = { 0 };
    weir_task_spec spec;
    size_t         n = 0, count = 0;
    int64_t        at;
    bool           known = false;
    weir_code      rc = weir__record_open_rows(t->table, NULL, id, "", 1, &arena, &spec, &at, &n,
                                               err);
    if (!rc && n)
        rc = weir__task_restore(t, &spec, 1, &known, &count, err);
    else if (!rc)
        rc = weir_fail(err, WEIR_ESTATE, "the task %s has ended, and the queue has lost it", id);
    weir_task *there = NULL;
    if (!rc && known)           /* perhaps only just now */
        rc = weir__task_find_ids(t, &id, 1, &there, err);
    if (!rc && known && !there)
        rc = weir_fail(err, WEIR_ESTATE, "the task %s was removed from the queue", id);
    weir_task_free(there);
    weir__arena_free(&arena);
    return rc;
}

weir_code weir_task_find_or_submit(weir_tasks *t, const weir_task_spec *spec, weir_task **out,
                                   bool *existed, weir_error *err)
{
    weir_task_submitted added;
    weir_task          *found = NULL;
    weir_error          own = { 0 };
    weir_code           rc = weir__task_id_check(spec->id, "id", &own);
    if (out)
        *out = NULL;
    while (!rc && !found) {         /* again: it was removed in between */
        rc = weir_task_submit(t, spec, 1, &added, &own);
        bool was_there = rc == WEIR_ESTATE;
        if (existed)
            *existed = was_there;
        if (!rc && !out)
            return WEIR_OK;
        if (!rc || was_there)
            rc = weir__task_find_ids(t, &spec->id, 1, &found, &own);
        if (!rc && was_there && !found && t->table)
            rc = restore_one(t, spec->id, &own);
    }
    if (out)
        *out = found;
    else
        weir_task_free(found);
    if (rc && err)
        *err = own;
    return rc;
}
