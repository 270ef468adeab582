/* results.c - making and releasing what the library gives to its callers. */
#include "core/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/word.h"
#include "weir/weir.h"

/* Room for one more behind n: arrays have a power of two of places, so that none must note how
 * many. The new array, or NULL: the old one is as it was. */
static void *grow(void *array, size_t n, size_t size)
{
    if (n & (n - 1))
        return array;
    size_t cap = n ? 2 * n : 1;
    return cap > SIZE_MAX / size ? NULL : realloc(array, cap * size);
}

static char *copy_text(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

/* ---- info ---- */

weir_info *weir__info_create(const char *store)
{
    weir_info *info = calloc(1, sizeof *info);
    if (!info)
        return NULL;
    snprintf(info->store, sizeof info->store, "%s", store);
    snprintf(info->weir, sizeof info->weir, "%s", weir_version());
    return info;
}

/* ---- pages ---- */

weir_page *weir__page_create(size_t cap)
{
    if (cap > (SIZE_MAX - sizeof(weir_page)) / sizeof(weir_job *))
        return NULL;
    weir_page *page = calloc(1, sizeof *page + cap * sizeof(weir_job *));
    if (page)
        page->job = (weir_job **)(page + 1);
    return page;
}

void weir_page_free(weir_page *page)
{
    if (!page)
        return;
    for (size_t i = 0; i < page->n; i++)
        weir_job_free(page->job[i]);
    free(page);
}

/* ---- log lines ---- */

weir_lines *weir__lines_create(void)
{
    return calloc(1, sizeof(weir_lines));
}

bool weir__lines_add(weir_lines *lines, uint64_t n, int64_t at, const char *text, size_t len)
{
    weir_line *line = grow(lines->line, lines->n, sizeof *line);
    if (!line)
        return false;
    lines->line = line;
    char *copy = copy_text(text, len);
    if (!copy)
        return false;
    lines->line[lines->n++] = (weir_line){ .n = n, .at = at, .text = copy };
    return true;
}

void weir_lines_free(weir_lines *lines)
{
    if (!lines)
        return;
    for (size_t i = 0; i < lines->n; i++)
        free((char *)lines->line[i].text);
    free(lines->line);
    free(lines);
}

/* ---- statistics ---- */

weir_stats *weir__stats_create(void)
{
    weir_stats *stats = calloc(1, sizeof *stats);
    if (stats)
        stats->all.type = "*";
    return stats;
}

weir_type_stats *weir__stats_add(weir_stats *stats, const char *type)
{
    weir_type_stats *t = grow(stats->type, stats->n, sizeof *t);
    if (!t)
        return NULL;
    stats->type = t;
    char *name = copy_text(type, strlen(type));
    if (!name)
        return NULL;
    t += stats->n++;
    *t = (weir_type_stats){ .type = name };
    return t;
}

void weir__stats_sum(weir_stats *stats)
{
    weir_type_stats *all = &stats->all;
    memset(all->count, 0, sizeof all->count);
    all->completed = all->failed = 0;
    all->work_ms = all->last_taken_at = all->oldest_at = 0;
    for (size_t i = 0; i < stats->n; i++) {
        const weir_type_stats *t = &stats->type[i];
        for (int s = 0; s < WEIR_STATE_COUNT; s++)
            all->count[s] += t->count[s];
        all->completed += t->completed;
        all->failed += t->failed;
        all->work_ms += t->work_ms;
        if (t->last_taken_at > all->last_taken_at)
            all->last_taken_at = t->last_taken_at;
        if (t->oldest_at && (!all->oldest_at || t->oldest_at < all->oldest_at))
            all->oldest_at = t->oldest_at;
    }
}

bool weir__stats_cut(weir_stats **stats, bool (*sees)(const void *caller, const char *type),
                     const void *caller)
{
    weir_stats *all = *stats, *own = weir__stats_create();
    bool        ok = own != NULL;
    for (size_t i = 0; ok && i < all->n; i++) {
        if (!sees(caller, all->type[i].type))
            continue;
        weir_type_stats *t = weir__stats_add(own, all->type[i].type);
        const char      *name = t ? t->type : NULL;
        ok = t != NULL;
        if (ok)
            *t = all->type[i];
        if (ok)
            t->type = name;
    }
    if (ok)
        weir__stats_sum(own);
    weir_stats_free(ok ? all : own);
    if (ok)
        *stats = own;
    return ok;
}

void weir_stats_free(weir_stats *stats)
{
    if (!stats)
        return;
    for (size_t i = 0; i < stats->n; i++)
        free((char *)stats->type[i].type);
    free(stats->type);
    free(stats);
}

/* ---- reports ---- */

weir_report *weir__report_create(void)
{
    return calloc(1, sizeof(weir_report));
}

bool weir__report_line(weir_report *report, const char *fmt, ...)
{
    char **line = grow(report->line, report->n, sizeof *line);
    if (!line)
        return false;
    report->line = line;
    int len;
    WEIR__FORMAT_NEW(report->line[report->n], len, fmt);
    if (len < 0)
        return false;
    report->n++;
    return true;
}

void weir_report_free(weir_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free(r->line[i]);
    free(r->line);
    free(r);
}

/* ---- explanations ---- */

const char *weir_remedy_name(weir_remedy remedy)
{
    return WEIR__WORD(WEIR_REMEDIES, WEIR_REMEDY_COUNT, remedy, "?");
}

weir_explanation *weir__explanation_create(weir_job *job)
{
    weir_explanation *e = calloc(1, sizeof *e);
    if (!e) {
        weir_job_free(job);
        return NULL;
    }
    e->job = job;
    return e;
}

bool weir__explanation_say(weir_explanation *e, const char *why, weir_remedy remedy)
{
    char *copy = copy_text(why, strlen(why));
    if (!copy)
        return false;
    free((char *)e->why);
    e->why = copy;
    e->remedy = remedy;
    return true;
}

void weir__explanation_set_story(weir_explanation *e, weir_story *story)
{
    e->moment = story->moment;
    e->n = story->n;
    free(story);
}

static void release_moments(weir_moment *moment, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((char *)moment[i].what);
    free(moment);
}

void weir_explanation_free(weir_explanation *e)
{
    if (!e)
        return;
    release_moments(e->moment, e->n);
    free((char *)e->why);
    weir_job_free(e->job);
    free(e);
}

/* ---- stories ---- */

weir_story *weir__story_create(void)
{
    return calloc(1, sizeof(weir_story));
}

bool weir__story_moment(weir_story *s, int64_t at, const char *fmt, ...)
{
    weir_moment *moment = grow(s->moment, s->n, sizeof *moment);
    if (!moment)
        return false;
    s->moment = moment;
    char *what;
    int   len;
    WEIR__FORMAT_NEW(what, len, fmt);
    if (len < 0)
        return false;
    s->moment[s->n++] = (weir_moment){ .at = at, .what = what };
    return true;
}

void weir_story_free(weir_story *s)
{
    if (!s)
        return;
    release_moments(s->moment, s->n);
    free(s);
}
