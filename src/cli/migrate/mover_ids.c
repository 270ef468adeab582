/* mover_ids.c - new ids for jobs that move, and room for ids that stay.
 *
 * An imported job is recognised by its id. So a new id is chosen and written down in the source (a
 * line of the job's log, which people can read later) before the job goes. It gets that id, or the
 * next suitable one: another job may have got it meanwhile, or, in a store of several partitions,
 * it may not go with the job's unique key. */
#include "cli/migrate/mover_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPREAD = 1000000
};

/* ---- naming ---- */

static const char mark[] = "moved | job %llu becomes job %llu, or the next that will do";

/* The id that an earlier run has written down; 0: none. */
static uint64_t written(const load *d)
{
    for (size_t i = d->log.n; i > 0; i--) {
        unsigned long long id, becomes;
        char               line[120];
        if (sscanf(d->log.line[i - 1].text, "moved | job %llu becomes job %llu,", &id,
                   &becomes) != 2 || id != d->job->id)
            continue;
        snprintf(line, sizeof line, mark, id, becomes);
        if (!strcmp(line, d->log.line[i - 1].text))
            return becomes;
    }
    return 0;
}

weir_code mover_name(mover *m, bulk *l, weir_error *err)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(m->to, &s, err);
    if (rc)
        return rc;
    uint64_t next = s->last_id + 1;
    weir_stats_free(s);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        char  line[120];
        d->err = (weir_error){ 0 };
        d->renamed = !d->off && !d->arrived && !d->known;
        if (d->renamed) {
            d->id = next++;
            snprintf(line, sizeof line, mark, (unsigned long long)d->job->id,
                     (unsigned long long)d->id);
            weir_log_async(m->from, d->job->id, 0, line, 0, &d->f, &d->err);
        }
    }
    rc = mover_await(l, err);
    for (size_t i = 0; i < l->n; i++)
        l->load[i].off = l->load[i].off || l->load[i].err.code;
    return rc;
}

weir_code mover_is(mover *m, const load *d, uint64_t id, bool *out, weir_error *err)
{
    char      line[120];
    weir_job *job = NULL;
    move_log  log = { 0 };
    weir_code rc = weir_get(m->to, id, &job, err);
    *out = false;
    snprintf(line, sizeof line, mark, (unsigned long long)d->job->id, (unsigned long long)d->id);
    if (!rc && !strcmp(job->type, d->job->type) && job->created_at == d->job->created_at)
        rc = move_read_logs(m->to, &job, 1, &log, err);
    for (size_t i = 0; !rc && i < log.n && !*out; i++)
        *out = !strcmp(log.line[i].text, line);
    move_log_fini(&log);
    weir_job_free(job);
    return rc == WEIR_ENOENT ? WEIR_OK : rc;
}

/* ---- jobs of an earlier run ---- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The ids at which the named ones may be, each once: free() them. NULL: out of memory. */
static uint64_t *candidates(const bulk *l, size_t *n)
{
    uint64_t *ids = malloc((l->n * MOVER_OTHER_IDS + 1) * sizeof *ids);
    *n = 0;
    for (size_t i = 0; ids && i < l->n; i++)
        for (uint64_t k = 0; l->load[i].known && !l->load[i].off && k < MOVER_OTHER_IDS; k++)
            ids[(*n)++] = l->load[i].id + k;
    if (ids)
        qsort(ids, *n, sizeof *ids, by_number);
    size_t kept = 0;
    for (size_t i = 0; ids && i < *n; i++)
        if (!kept || ids[kept - 1] != ids[i])
            ids[kept++] = ids[i];
    *n = kept;
    return ids;
}

/* The job of the bulk that this line of a log names; the line belongs to job `at` in the target. */
static void recognise(bulk *l, const char *line, uint64_t at)
{
    unsigned long long id, becomes;
    if (sscanf(line, "moved | job %llu becomes job %llu,", &id, &becomes) != 2)
        return;
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (!d->known || d->off || d->job->id != id || d->id != becomes)
            continue;
        d->arrived = d->existed = true;
        d->at = at;
    }
}

/* Look at n ids of the target, at most a bulk. */
static weir_code look_at(mover *m, bulk *l, const uint64_t *ids, size_t n, weir_error *err)
{
    weir_job    *jobs[MOVER_BULK] = { 0 };
    weir_future *f[MOVER_BULK] = { 0 };
    move_log    *logs = calloc(MOVER_BULK, sizeof *logs);
    weir_code    rc = logs ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "out of memory");
    for (size_t i = 0; !rc && i < n; i++)
        rc = weir_get_async(m->to, ids[i], &jobs[i], &f[i], err);
    for (size_t i = 0; i < n; i++) {
        weir_error why = { 0 };
        if (f[i] && weir_future_wait(f[i], WEIR_FOREVER, &why) && why.code != WEIR_ENOENT && !rc) {
            *err = why;
            rc = why.code;
        }
        weir_future_free(f[i]);
    }
    if (!rc)
        rc = move_read_logs(m->to, jobs, n, logs, err);
    for (size_t i = 0; logs && i < n; i++) {
        for (size_t k = 0; jobs[i] && k < l->n; k++)
            l->load[k].taken = l->load[k].taken || l->load[k].id == ids[i];
        for (size_t k = 0; !rc && k < logs[i].n; k++)
            recognise(l, logs[i].line[k].text, ids[i]);
        move_log_fini(&logs[i]);
        weir_job_free(jobs[i]);
    }
    free(logs);
    return rc;
}

weir_code mover_find(mover *m, bulk *l, weir_error *err)
{
    size_t n;
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        d->id = d->off ? 0 : written(d);
        d->known = d->id != 0;
    }
    uint64_t *ids = candidates(l, &n);
    weir_code rc = ids ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "out of memory");
    for (size_t i = 0; !rc && i < n; i += MOVER_BULK)
        rc = look_at(m, l, ids + i, n - i < MOVER_BULK ? n - i : MOVER_BULK, err);
    for (size_t i = 0; i < l->n; i++) {
        load *d = &l->load[i];
        if (!d->known || d->arrived || d->marked || !d->taken)
            continue;
        d->known = false;
        d->id = 0;
    }
    free(ids);
    return rc;
}

/* ---- room ---- */

/* The store goes on above the highest id it has ever had: so it has one for a moment. */
weir_code mover_spread_ids(mover *m, weir_error *err)
{
    weir_stats *from = NULL, *to = NULL;
    weir_code   rc = weir_get_stats(m->from, &from, err);
    if (!rc)
        rc = weir_get_stats(m->to, &to, err);
    if (!rc && from->n && to->last_id < from->last_id + SPREAD / 2) {
        weir_job      highest = { .id = from->last_id + SPREAD, .type = from->type[0].type,
                                  .state = WEIR_STATE_CANCELLED };
        weir_imported out;
        rc = weir_import(m->to, &(weir_incoming){ .job = &highest }, 1, &out, err);
        if (!rc && !out.err.code)
            rc = weir_remove(m->to, highest.id, err);
        if (rc == WEIR_ENOENT)          /* the type keeps none */
            rc = WEIR_OK;
    }
    weir_stats_free(from);
    weir_stats_free(to);
    return rc;
}
