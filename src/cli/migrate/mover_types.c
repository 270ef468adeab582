/* mover_types.c - what is done before jobs move: are these two stores, and which settings of types
 * go along? */
#include "cli/migrate/mover.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/clock.h"

enum { TRIES = 10 };

/* ---- two stores ---- */

/* Is the line in the log of this job? */
static weir_code has_line(weir_queue *q, weir_job *job, const char *line, bool *out,
                          weir_error *err)
{
    move_log  log;
    weir_code rc = move_read_logs(q, &job, 1, &log, err);
    *out = false;
    for (size_t i = 0; !rc && i < log.n && !*out; i++)
        *out = !strcmp(log.line[i].text, line);
    move_log_fini(&log);
    return rc;
}

/* A job of the source that is in the target too, as far as one can see: it may have been imported
 * before, or the target may be the source. Writes in one are then visible in the other. */
static weir_code probe(mover *m, weir_job *job, weir_error *err)
{
    char line[80];
    bool same;
    snprintf(line, sizeof line, "moved | is the target the source? %lx%llx%llx", (long)getpid(),
             (unsigned long long)cli_wall_ms(), (unsigned long long)cli_clock_ms());
    weir_code rc = weir_log(m->from, job->id, 0, line, 0, err);
    if (!rc)
        rc = has_line(m->to, job, line, &same, err);
    if (!rc && same)
        rc = weir_fail(err, WEIR_EINVAL, "the target is the source: both URLs lead to one store");
    return rc;
}

weir_code mover_check(mover *m, weir_error *err)
{
    if (m->keep)            /* nothing is removed, and what is there already stays as it is */
        return WEIR_OK;
    weir_code rc = WEIR_ENOENT;
    for (int i = 0; i < TRIES && rc == WEIR_ENOENT; i++) {
        weir_page *page = NULL;
        weir_job  *there = NULL;
        bool       still = false;
        rc = weir_list(m->from, &(weir_query){ .limit = 1 }, &page, err);
        if (!rc && page->n) {
            weir_job *job = page->job[0];
            rc = weir_get(m->to, job->id, &there, err);
            if (rc == WEIR_ENOENT && !weir_exists(m->from, job->id, &still, NULL) && still)
                rc = WEIR_OK;           /* it is there, but not here */
            else if (!rc && !strcmp(there->type, job->type) &&
                     there->created_at == job->created_at)
                rc = probe(m, job, err);
        }
        weir_page_free(page);
        weir_job_free(there);
    }
    if (rc == WEIR_ENOENT)
        rc = weir_fail(err, WEIR_EUNAVAIL, "jobs of the source are gone too quickly to see "
                       "whether the target is another store; try again");
    return rc;
}

/* ---- types ---- */

static bool same_settings(const weir_settings *a, const weir_settings *b)
{
    return a->keep_complete.age_ms == b->keep_complete.age_ms &&
           a->keep_complete.count == b->keep_complete.count &&
           a->keep_failed.age_ms == b->keep_failed.age_ms &&
           a->keep_failed.count == b->keep_failed.count && a->search == b->search;
}

bool move_has_settings(const weir_type_stats *t, const weir_settings *all)
{
    static const weir_settings preset = {
        .keep_complete = { WEIR_DEFAULT_KEEP_COMPLETE_MS, WEIR_DEFAULT_KEEP_COMPLETE },
        .keep_failed = { WEIR_DEFAULT_KEEP_FAILED_MS, 0 },
    };
    return !same_settings(&t->settings, strcmp(t->type, "*") == 0 ? &preset : all);
}

static const weir_type_stats *find_type(const weir_stats *s, const char *type)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->type[i].type, type) == 0)
            return &s->type[i];
    return NULL;
}

/* `there` is NULL when the target does not have the type. */
static weir_code copy_type(mover *m, const weir_type_stats *t, const weir_type_stats *there,
                           const weir_stats *from, const weir_stats *to, weir_error *err)
{
    const weir_settings *has = there ? &there->settings : &to->all.settings;
    bool      set = move_has_settings(t, &from->all.settings) && !same_settings(&t->settings, has);
    bool      pause = t->paused && !(there && there->paused);
    weir_code rc = set ? weir_configure(m->to, t->type, &t->settings, err) : WEIR_OK;
    if (!rc && pause)
        rc = weir_pause(m->to, t->type, err);
    m->types += !rc && (set || pause);
    return rc;
}

weir_code mover_types(mover *m, weir_error *err)
{
    weir_stats *from = NULL, *to = NULL;
    weir_code   rc = weir_get_stats(m->from, &from, err);
    if (!rc)
        rc = weir_get_stats(m->to, &to, err);
    if (!rc)
        rc = copy_type(m, &from->all, &to->all, from, to, err);
    weir_stats_free(to);             /* types inherit what has just been set */
    to = NULL;
    if (!rc)
        rc = weir_get_stats(m->to, &to, err);
    for (size_t i = 0; !rc && i < from->n; i++)
        rc = copy_type(m, &from->type[i], find_type(to, from->type[i].type), from, to, err);
    weir_stats_free(from);
    weir_stats_free(to);
    return rc;
}
