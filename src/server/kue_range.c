/* kue_range.c - jobs by rank, as Kue asks for them: the ranks `from` to `to` of a list, both
 * included, counted from the end when below 0; and then by id, whatever the order of the list.
 *
 * weir lists by key: a rank is reached by going through the ids before it, from the nearer end. The
 * order of its lists is that of Kue's sets for inactive jobs (priority, then id) and for delayed
 * ones (their time). Kue has all others by priority, then id, too: while such a list is short, it
 * is read in whole and sorted so. Beyond, the ranks are those of weir's order: active jobs by their
 * start, finished ones by their end, all jobs by id. */
#include <stdlib.h>
#include <string.h>

#include "server/kue.h"

enum { PAGE = 100 };                /* jobs read at once; they may be of 1 MB each, and more */

static int by_id(const void *a, const void *b)
{
    const weir_job *x = *(weir_job *const *)a, *y = *(weir_job *const *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_priority(const void *a, const void *b)
{
    const weir_job *x = *(weir_job *const *)a, *y = *(weir_job *const *)b;
    return x->priority != y->priority ? (x->priority < y->priority ? -1 : 1) : by_id(a, b);
}

/* ---- the answer ---- */

static void answer(srv_request *r)
{
    srv_kue *k = r->state;
    if (k->n_jobs)
        qsort(k->jobs, k->n_jobs, sizeof *k->jobs, by_id);
    uint64_t last = 0;
    for (size_t i = 0; i < k->n_jobs; i++) {
        const weir_job *j = k->jobs[k->desc ? k->n_jobs - 1 - i : i];
        if (j->id == last)      /* it moved while the pages were read, and is in two of them */
            continue;
        weir__buf_char(&k->out, last ? ',' : '[');
        if (k->vertx)
            srv_vertx_job(&k->out, j);
        else
            srv_kue_job(&k->out, j, NULL);
        last = j->id;
    }
    weir__buf_str(&k->out, last ? "]" : "[]");
    srv_kue_reply(r, 200);
}

/* All jobs of the list are there: keep those between the ranks. */
static void cut(srv_kue *k)
{
    size_t kept = 0;
    if (k->n_jobs)
        qsort(k->jobs, k->n_jobs, sizeof *k->jobs, by_priority);
    for (size_t i = 0; i < k->n_jobs; i++) {
        if ((int64_t)i < k->from || (int64_t)i > k->to)
            weir_job_release(k->jobs[i]);
        else
            k->jobs[kept++] = k->jobs[i];
    }
    k->n_jobs = kept;
}

/* ---- pages ---- */

static void read_range(srv_request *r, bool sorted);
static void next_page(srv_request *r);

/* The jobs of a page become the request's. False: they are too many bytes. */
static bool keep(srv_kue *k)
{
    for (size_t i = 0; i < k->page->n && k->n_jobs < k->want; i++) {
        weir_job *j = k->page->job[i];
        k->bytes += j->data_len + j->result_len + j->progress_data_len;
        k->bytes += j->error ? strlen(j->error) : 0;
        k->jobs[k->n_jobs++] = j;
        k->page->job[i] = NULL;
    }
    return k->bytes <= SRV_KUE_MAX_ANSWER;
}

static void drop_page(srv_kue *k)
{
    weir_page_release(k->page);
    k->page = NULL;
}

static void too_large(srv_request *r)
{
    srv_kue *k = r->state;
    drop_page(k);
    if (k->sorted)          /* as a whole; the range itself may be small */
        read_range(r, false);
    else
        srv_kue_error(r, 413, "the jobs of this range have more than %d bytes "
                              "(SRV_KUE_MAX_ANSWER): ask for fewer", SRV_KUE_MAX_ANSWER);
}

static void got_page(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    if (code) {
        srv_kue_failed(r, err);
        return;
    }
    if (k->query.ids_only) {
        k->skip -= k->page->n < k->skip ? k->page->n : k->skip;
    } else if (!keep(k)) {
        too_large(r);
        return;
    }
    bool more = k->page->more && k->n_jobs < k->want;
    k->query.after = k->page->next;
    drop_page(k);
    if (more) {
        next_page(r);
        return;
    }
    if (k->sorted)
        cut(k);
    answer(r);
}

static void next_page(srv_request *r)
{
    srv_kue     *k = r->state;
    weir_future *f = NULL;
    size_t       left = k->skip ? k->skip : k->want - k->n_jobs;
    size_t       most = k->skip ? WEIR_MAX_PAGE : PAGE;
    k->query.ids_only = k->skip > 0;
    k->query.limit = left < most ? left : most;
    weir_code rc = weir_list_async(srv_queue(r), &k->query, &k->page, &f, &k->err);
    srv_await(r, rc, &k->err, f, got_page);
}

/* ---- ranks ---- */

/* As ZRANGE has it. False: there is nothing between them. */
static bool settle(srv_kue *k)
{
    int64_t total = (int64_t)k->count;
    if (k->from < 0)
        k->from = k->from + total > 0 ? k->from + total : 0;
    if (k->to < 0)
        k->to += total;
    if (k->to >= total)
        k->to = total - 1;
    return k->from <= k->to;
}

/* Read the range, or all of a short list to sort it. */
static void read_range(srv_request *r, bool sorted)
{
    srv_kue *k = r->state;
    size_t   ahead = (size_t)k->from, behind = (size_t)k->count - 1 - (size_t)k->to;
    srv_kue_drop_jobs(k);
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
    k->jobs = calloc(k->want, sizeof *k->jobs);
    if (k->jobs)
        next_page(r);
    else
        srv_kue_error(r, 503, "out of memory");
}

static void counted(srv_request *r, weir_code code, const weir_error *err)
{
    srv_kue *k = r->state;
    bool     as_kue = k->query.state == WEIR_INACTIVE ||
                      (k->query.state == WEIR_DELAYED && !k->query.type);
    if (code)
        srv_kue_failed(r, err);
    else if (!settle(k))
        answer(r);
    else
        read_range(r, !as_kue && k->count <= SRV_KUE_MAX_SORTED);
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
        answer(r);
        return;
    }
    weir_code rc = weir_count_async(srv_queue(r), state, k->query.type, &k->count, &f, &k->err);
    srv_await(r, rc, &k->err, f, counted);
}
