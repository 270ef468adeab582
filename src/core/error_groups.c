/* error_groups.c - see error_mask.h: how many failed jobs are looked at, and their groups. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/error_mask.h"

/* ---- a bounded look ---- */

size_t weir__look_next(const weir_look *l)
{
    enum { FIRST = 16, MOST = 500, PAGE_BYTES = 2 * 1024 * 1024 };
    if (l->jobs >= WEIR_MAX_ERROR_JOBS || l->bytes >= WEIR_MAX_ERROR_BYTES)
        return 0;
    size_t left = WEIR_MAX_ERROR_JOBS - l->jobs;
    size_t n = l->jobs ? PAGE_BYTES / (l->bytes / l->jobs + 1) + 1 : FIRST;
    n = n < MOST ? n : MOST;
    return n < left ? n : left;
}

void weir__look_add(weir_look *l, const weir_job *job)
{
    l->jobs++;
    l->bytes += sizeof *job + job->data_len + job->result_len + job->progress_data_len +
                job->history_len + job->values_len + (job->error ? strlen(job->error) : 0);
}

/* ---- groups ---- */

weir_error_groups *weir__error_groups_create(void)
{
    weir_error_groups *g = calloc(1, sizeof *g);
    if (g && !(g->group = calloc(WEIR_MAX_ERROR_GROUPS, sizeof *g->group))) {
        free(g);
        return NULL;
    }
    return g;
}

void weir_error_groups_free(weir_error_groups *g)
{
    for (size_t i = 0; g && i < g->n; i++) {
        free((char *)g->group[i].type);
        free((char *)g->group[i].error);
    }
    if (g)
        free(g->group);
    free(g);
}

static weir_error_group *find(weir_error_groups *g, const char *type, const char *mask)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->group[i].error, mask) && !strcmp(g->group[i].type, type))
            return &g->group[i];
    return NULL;
}

static weir_error_group *make(weir_error_groups *g, const char *type, const char *mask)
{
    weir_error_group *one = &g->group[g->n];
    *one = (weir_error_group){ .type = strdup(type), .error = strdup(mask),
                               .first_at = INT64_MAX };
    if (one->type && one->error) {
        g->n++;
        return one;
    }
    free((char *)one->type);
    free((char *)one->error);
    return NULL;
}

bool weir__error_groups_add(weir_error_groups *g, const weir_job *job)
{
    char    mask[WEIR_MAX_ERROR_MASK + 1];
    int64_t at = job->finished_at ? job->finished_at : job->failed_at;
    weir_mask_error(job->error, mask);
    g->looked++;
    weir_error_group *one = find(g, job->type, mask);
    if (!one && g->n == WEIR_MAX_ERROR_GROUPS) {
        g->others++;
        return true;
    }
    if (!one && !(one = make(g, job->type, mask)))
        return false;
    if (!one->count++ || at > one->last_at) {
        one->last_at = at;
        one->example = job->id;
    }
    one->first_at = at < one->first_at ? at : one->first_at;
    return true;
}

static int compare(const void *a, const void *b)
{
    const weir_error_group *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    if (x->last_at != y->last_at)
        return x->last_at < y->last_at ? 1 : -1;
    return x->example < y->example ? -1 : x->example > y->example;
}

void weir__error_groups_sort(weir_error_groups *g)
{
    qsort(g->group, g->n, sizeof *g->group, compare);
}

/* ---- as JSON ---- */

void weir__error_groups_write(weir_buf *b, const weir_error_groups *g)
{
    weir__buf_str(b, "{\"groups\":[");
    for (size_t i = 0; i < g->n; i++) {
        const weir_error_group *one = &g->group[i];
        weir__buf_str(b, i ? ",{\"type\":" : "{\"type\":");
        weir__json_string(b, one->type, strlen(one->type));
        weir__buf_str(b, ",\"error\":");
        weir__json_string(b, one->error, strlen(one->error));
        weir__buf_printf(b, ",\"count\":%" PRIu64 ",\"first_at\":%" PRId64 ",\"last_at\":%" PRId64
                         ",\"example\":%" PRIu64 "}", one->count, one->first_at, one->last_at,
                         one->example);
    }
    weir__buf_printf(b, "],\"looked\":%" PRIu64 ",\"others\":%" PRIu64 ",\"more\":%s}", g->looked,
                     g->others, g->more ? "true" : "false");
}

char *weir_error_groups_json(const weir_error_groups *g, size_t *out_len)
{
    weir_buf b = { 0 };
    weir__error_groups_write(&b, g);
    return weir__buf_steal(&b, out_len);
}
