/* kue_range.c - jobs by rank, as Kue asks for them: the ranks `from` to `to` of a list, both
 * included, counted from the end when below 0; and then by id, whatever the order of the list.
 *
 * weir lists by key: a rank is reached by going through the ids before it, from the nearer end. Its
 * lists have the order of Kue's sets for inactive jobs (priority, then id) and for delayed ones
 * (their time). Kue has all others by priority, then id, too: while such a list is short, it is
 * read in whole and sorted so. Other ranks follow weir's order: active jobs by their start,
 * finished ones by their end, all jobs by id.
 *
 * As in Kue, the ids are read first, then the jobs, each as it is then. Jobs may be large, so they
 * are read a few at a time and sent in parts. */
#include <stdlib.h>
#include <string.h>

#include "server/kue/kue.h"

enum { AT_ONCE = 32 };              /* jobs read at once; they may be of 1 MB each, and more */

typedef srv_kue_place place;

/* Memory of the request. */
typedef struct srv_kue_range {
    size_t     n, at;               /* places; the next to be read */
    size_t     bytes;               /* of the jobs that were read for their priority */
    size_t     n_jobs;
    weir_job  *job[AT_ONCE];
    weir_error err[AT_ONCE];
    place      place[];             /* at most k->want */
} range;

static int by_id(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_priority(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->priority != y->priority ? (x->priority < y->priority ? -1 : 1) : by_id(a, b);
}

/* ---- ranks and places ---- */

bool srv_kue_ranks(uint64_t count, int64_t *from, int64_t *to)
{
    int64_t total = (int64_t)count;
    if (*from < 0)
        *from = *from + total > 0 ? *from + total : 0;
    if (*to < 0)
        *to += total;
    if (*to >= total)
        *to = total - 1;
    return *from <= *to;
}

bool srv_kue_same_order(weir_state state, const char *type)
{
    return state == WEIR_STATE_INACTIVE || (state == WEIR_STATE_DELAYED && !type);
}

size_t srv_kue_cut(place *all, size_t n, int64_t from, int64_t to)
{
    size_t kept = 0;
    if (n)
        qsort(all, n, sizeof *all, by_priority);
    for (size_t i = 0; i < n; i++)
        if ((int64_t)i >= from && (int64_t)i <= to)
            all[kept++] = all[i];
    return kept;
}

/* A job that moved may be in two pages. */
size_t srv_kue_sort(place *all, size_t n, bool desc)
{
    size_t kept = 0;
    if (n)
        qsort(all, n, sizeof *all, by_id);
    for (size_t i = 0; i < n; i++)
        if (!kept || all[i].id != all[kept - 1].id)
            all[kept++] = all[i];
    for (size_t i = 0; desc && i < kept / 2; i++) {
        place first = all[i];
        all[i] = all[kept - 1 - i];
        all[kept - 1 - i] = first;
    }
    return kept;
}

/* ---- jobs ---- */

static void add_job(srv_request *r, const weir_job *j)
{
    const srv_kue *k = r->state;
    weir_buf       item = { 0 };
    if (k->api->vertx)
        srv_vertx_job(&item, j);
    else
        srv_kue_job(&item, j, NULL);
    srv_kue_list_item(r, &item);
}

/* Jobs that were removed meanwhile are left out. */
static void got_jobs(srv_request *r, weir_code code, const weir_error *err)
{
    range      *g = ((srv_kue *)r->state)->range;
    weir_error  why = { 0 };
    (void)code;
    (void)err;
    for (size_t i = 0; i < g->n_jobs; i++) {
        if (g->err[i].code && g->err[i].code != WEIR_ENOENT)
            why = g->err[i];
        else if (!g->err[i].code)
            add_job(r, g->job[i]);
        weir_job_free(g->job[i]);
    }
    if (why.code)
        srv_kue_list_failed(r, &why);
    else if (g->at < g->n)
        srv_parts_go_on(r);
    else
        srv_kue_list_end(r);
}

static void read_jobs(srv_request *r)
{
    srv_kue *k = r->state;
    range   *g = k->range;
    size_t   fit = srv_parts_items(k->n, k->bytes), left = g->n - g->at;
    g->n_jobs = fit < AT_ONCE ? fit : AT_ONCE;
    if (g->n_jobs > left)
        g->n_jobs = left;
    srv_gather(r, got_jobs);
    for (size_t i = 0; i < g->n_jobs; i++) {
        weir_future *f = NULL;
        g->job[i] = NULL;
        g->err[i] = (weir_error){ 0 };
        weir_code rc = weir_get_async(srv_queue(r), g->place[g->at++].id, &g->job[i], &f,
                                      &g->err[i]);
        srv_join(r, rc, f, &g->err[i]);
    }
    srv_gathered(r);
}

static void answer_nothing(srv_request *r)
{
    weir__buf_str(&((srv_kue *)r->state)->out, "[]");
    srv_kue_reply(r, 200);
}

/* All places are known. */
static void answer(srv_request *r)
{
    srv_kue *k = r->state;
    range   *g = k->range;
    g->n = srv_kue_sort(g->place, g->n, k->desc);
    if (g->n)
        srv_kue_list(r, read_jobs);
    else
        answer_nothing(r);
}

/* ---- places ---- */

static size_t size_of(const weir_job *j)
{
    return j->data_len + j->result_len + j->progress_data_len + (j->error ? strlen(j->error) : 0);
}

static void read_range(srv_request *r, bool sorted);
static void next_page(srv_request *r);

static void got_page(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    range   *g = k->range;
    if (code) {
        srv_kue_failed(r, err);
        return;
    }
    for (size_t i = 0; i < k->page->n && g->n < k->want; i++) {
        const weir_job *j = k->page->job[i];
        if (k->skip)
            k->skip--;
        else
            g->place[g->n++] = (place){ j->id, j->priority };
        g->bytes += k->sorted ? size_of(j) : 0;
    }
    bool more = k->page->more && g->n < k->want;
    k->query.after = k->page->next;
    weir_page_free(k->page);
    k->page = NULL;
    if (g->bytes > SRV_KUE_MAX_SORTED_BYTES) {
        read_range(r, false);
        return;
    }
    if (more) {
        next_page(r);
        return;
    }
    if (k->sorted)
        g->n = srv_kue_cut(g->place, g->n, k->from, k->to);
    answer(r);
}

/* Priorities do not come with ids alone: to sort, the jobs themselves are read. */
static void next_page(srv_request *r)
{
    srv_kue     *k = r->state;
    range       *g = k->range;
    weir_future *f = NULL;
    size_t       left = k->skip + k->want - g->n, most = WEIR_MAX_PAGE;
    k->query.ids_only = !k->sorted;
    if (k->sorted) {
        most = srv_parts_items(g->n, g->bytes);
        most = most < AT_ONCE ? most : AT_ONCE;
    }
    k->query.limit = left < most ? left : most;
    weir_code rc = weir_list_async(srv_queue(r), &k->query, &k->page, &f, &k->err);
    srv_await(r, rc, &k->err, f, got_page);
}

/* ---- a range ---- */

/* Read the range, or all of a short list to sort it. */
static void read_range(srv_request *r, bool sorted)
{
    srv_kue *k = r->state;
    size_t   ahead = (size_t)k->from, behind = (size_t)k->count - 1 - (size_t)k->to;
    k->sorted = sorted;
    k->query.after = (weir_cursor){ 0 };
    k->query.descending = !sorted && behind < ahead;
    k->skip = sorted ? 0 : behind < ahead ? behind : ahead;
    k->want = sorted ? (size_t)k->count : (size_t)(k->to - k->from) + 1;
    if (k->want > SRV_KUE_MAX_RANGE || k->skip > SRV_KUE_MAX_REACH) {
        srv_kue_error(r, 413, "the range has %zu jobs, %zu from the nearer end of the list: at "
                              "most %d (SRV_KUE_MAX_RANGE), %d from it (SRV_KUE_MAX_REACH); "
                              "GET /v1/jobs goes through all", k->want, k->skip,
                      SRV_KUE_MAX_RANGE, SRV_KUE_MAX_REACH);
        return;
    }
    k->range = srv_alloc(r, sizeof *k->range + k->want * sizeof *k->range->place);
    if (k->range)
        next_page(r);
    else
        srv_kue_error(r, 503, "out of memory");
}

static void counted(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code)
        srv_kue_failed(r, err);
    else if (!srv_kue_ranks(k->count, &k->from, &k->to))
        answer_nothing(r);
    else
        read_range(r, !srv_kue_same_order(k->query.state, k->query.type) &&
                      k->count <= SRV_KUE_MAX_SORTED);
}

void srv_kue_range(srv_request *r, weir_state state, const char *asked, int64_t from, int64_t to,
                   bool desc)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    k->from = from;
    k->to = to;
    k->desc = desc;
    k->query.state = state;
    if (srv_kue_unscoped(r, asked))
        return;
    if (!srv_kue_scope(r, asked, &k->query.type)) {
        answer_nothing(r);
        return;
    }
    weir_code rc = weir_count_async(srv_queue(r), state, k->query.type, &k->count, &f, &k->err);
    srv_await(r, rc, &k->err, f, counted);
}

static void answer_range(srv_request *r)
{
    srv_kue           *k = r->state;
    const char *const *arg = r->arg;
    const char        *path = r->route->path;
    const char        *type = strstr(path, "{type}") ? *arg++ : NULL;
    weir_state         state = WEIR_STATE_ANY;
    if (strstr(path, "{state}") && !weir_state_parse(*arg++, &state))
        answer_nothing(r);
    else
        k->api->range(r, state, type, arg);
}

void srv_kue_get_range(srv_request *r, const srv_kue_api *api)
{
    if (srv_kue_begin(r, api))
        answer_range(r);
}
