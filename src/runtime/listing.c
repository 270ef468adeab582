/* listing.c - see listing.h. A list is made in one of two ways.
 *
 * Merged: the lists of the store are in the order that is wanted, and are merged. Jobs that the
 * query excludes (by a time, by state) are skipped, up to WEIR_MAX_LOOK jobs a page.
 *
 * Gathered: they are in another order. All chosen jobs are examined, and the places of the first
 * ones on the page are kept; then the jobs of these places are read. */
#include "runtime/listing.h"

#include <stdlib.h>
#include <string.h>

#include "core/error_mask.h"
#include "core/job.h"
#include "core/results.h"

enum {
    FIRST = 16,                     /* jobs that are read before their size is known */
    READ_BYTES = 1024 * 1024,       /* about as much is read at once */
    PAGE_BYTES = 4 * 1024 * 1024,   /* a page of large jobs ends early */
    MAX_GATHERED_IDS = 10000        /* by id, of some states: of more, all are walked through */
};
#define HIGHEST_ID ((UINT64_C(1) << 53) - 1)        /* all are exact in a double */

/* One list of the store, and how far it is read. */
typedef struct stream {
    weir_query query;
    weir_page *page;
    size_t     at;                  /* in the page */
    bool       last;                /* there is no other page */
} stream;

typedef struct listing {
    weir_ticket  ticket;            /* of the operation that runs */
    void       (*got)(struct listing *l);
    weir_queue  *q;
    weir_future *future;
    weir_page  **out, *page;
    weir_query   query;
    uint32_t     states;            /* that are wanted; 0: all */
    bool         by_id;             /* the order is by id */
    bool         gathers;
    stream      *stream;
    size_t       n, max, now;       /* streams; room for them; the stream being read */
    size_t       read, read_bytes;  /* jobs so far */
    size_t       looked;            /* jobs that were passed by, or gathered */
    size_t       bytes;             /* of the page */
    weir_cursor  seen;              /* the place of the last job that was looked at */
    weir_cursor *best;              /* room for 2 * (limit + 1) */
    size_t       n_best, next;      /* next: to be read */
} listing;

/* ---- the order ---- */

static int64_t key_of(weir_sort sort, const weir_job *j)
{
    switch (sort) {
    case WEIR_SORT_CREATED:  return j->created_at;
    case WEIR_SORT_STARTED:  return j->started_at;
    case WEIR_SORT_ENDED:    return j->finished_at;
    case WEIR_SORT_TOOK:     return j->duration_ms;
    case WEIR_SORT_ATTEMPTS: return j->attempts;
    case WEIR_SORT_PRIORITY: return j->priority;
    default:                 return 0;
    }
}

static weir_cursor place_of(const listing *l, const weir_job *j)
{
    weir_cursor at = { .id = j->id };
    if (l->query.sort > WEIR_SORT_ID)
        at.rank = key_of(l->query.sort, j);
    else if (!l->by_id)
        at.rank = weir__job_rank(j);
    return at;
}

static bool comes_first(const listing *l, weir_cursor a, weir_cursor b)
{
    if (a.rank == b.rank && a.id == b.id)
        return false;
    bool below = a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
    return below != l->query.descending;
}

/* ---- the streams ---- */

/* In a list by time those before the first moment, or behind the last one, are not read. */
static void begin_in_time(const listing *l, weir_query *s)
{
    weir_cursor start;
    if (s->descending && l->query.until)
        start = (weir_cursor){ .rank = l->query.until, .id = 1 };
    else if (!s->descending && l->query.since)
        start = (weir_cursor){ .rank = l->query.since - 1, .id = HIGHEST_ID };
    else
        return;
    if (!s->after.id || comes_first(l, s->after, start))
        s->after = start;
}

static bool is_by_time(const listing *l, const weir_query *s)
{
    return !l->query.search && s->state && s->state != WEIR_STATE_INACTIVE;
}

static weir_code add_stream(listing *l, weir_state state, const char *type, weir_error *err)
{
    const weir_query *q = &l->query;
    weir_op           op = { .kind = WEIR_OP_LIST, .u.list.query = {
        .state = state, .type = type, .search = q->search, .by_priority = q->by_priority,
        .priority = q->priority, .descending = q->descending } };
    weir_query *s = &op.u.list.query;
    if (!l->gathers)
        s->after = q->after;
    else if (q->sort <= WEIR_SORT_ID && !q->since && !q->until && !q->error)
        s->ids_only = true;
    if (is_by_time(l, s) && !(l->by_id && !l->gathers))
        begin_in_time(l, s);
    weir_code rc = weir__op_check(&op, err);
    l->stream[l->n++] = (stream){ .query = *s };
    return rc;
}

static weir_code add_streams(listing *l, const char *type, weir_error *err)
{
    weir_code rc = WEIR_OK;
    bool      walks = l->by_id && !l->gathers && !l->query.search;
    if (!l->states || walks)
        return add_stream(l, WEIR_STATE_ANY, type, err);
    for (int s = WEIR_STATE_INACTIVE; !rc && s < WEIR_STATE_COUNT; s++)
        if (l->states & WEIR_BIT(s))
            rc = add_stream(l, (weir_state)s, type, err);
    return rc;
}

static weir_code make_streams(listing *l, weir_error *err)
{
    weir_code rc = WEIR_OK;
    l->n = 0;
    if (!l->query.types)
        return add_streams(l, l->query.type, err);
    for (size_t i = 0; !rc && l->query.types[i]; i++)
        rc = add_streams(l, l->query.types[i], err);
    return rc;
}

static bool is_wanted(const listing *l, const weir_job *j)
{
    int64_t at = weir_job_moment(j);
    return (!l->states || l->states & WEIR_BIT(j->state)) &&
           (!l->query.since || at >= l->query.since) && (!l->query.until || at < l->query.until) &&
           (!l->query.error || weir__error_is(j, l->query.error));
}

/* Is nothing wanted of the stream from this job on? */
static bool is_beyond(const listing *l, const stream *s, const weir_job *j)
{
    int64_t at = weir_job_moment(j);
    if (s->query.ids_only || !is_by_time(l, &s->query))
        return false;
    return s->query.descending ? l->query.since && at < l->query.since
                               : l->query.until && at >= l->query.until;
}

/* ---- the end ---- */

static void fill(void *ctx, bool wanted)
{
    listing *l = ctx;
    if (wanted && l->out) {
        *l->out = l->page;
        l->page = NULL;
    }
}

static void end(listing *l, const weir_error *err)
{
    weir_future *f = l->future;
    for (size_t i = 0; i < l->n; i++)
        weir_page_free(l->stream[i].page);
    free(l->stream);
    free(l->best);
    if (err->code) {
        weir_page_free(l->page);
        l->page = NULL;
    }
    weir__future_ref(f);
    weir__future_end(f, err, fill, l);
    weir_page_free(l->page);            /* the caller has given it up */
    weir__future_unref(f);
}

static void end_with(listing *l, weir_code code, const char *why)
{
    weir_error err = { 0 };
    if (code)
        weir_fail(&err, code, "list: %s", why);
    end(l, &err);
}

static void end_page(listing *l, bool more)
{
    l->page->more = more;
    if (more)
        l->page->next = l->seen;
    end_with(l, WEIR_OK, NULL);
}

/* ---- operations of the store ---- */

static void answered(weir_ticket *t)
{
    listing *l = (listing *)((char *)t - offsetof(listing, ticket));
    l->got(l);
}

static void run(listing *l, const weir_op *op, void (*got)(listing *l))
{
    l->ticket = (weir_ticket){ .op = *op, .done = answered };
    l->got = got;
    if (weir__queue_submit(l->q, &l->ticket))
        end(l, &l->ticket.op.err);
}

static size_t job_bytes(const weir_job *j)
{
    return sizeof *j + j->data_len + j->result_len + j->progress_data_len;
}

static size_t jobs_to_read(const listing *l, const stream *s)
{
    size_t want = l->gathers ? WEIR_MAX_PAGE : (l->query.limit - l->page->n) / l->n + 1;
    size_t fit = l->read ? READ_BYTES / (l->read_bytes / l->read + 1) + 1 : FIRST;
    if (s->query.ids_only)
        fit = WEIR_MAX_PAGE;
    return fit < want ? fit : want;
}

static void go_on(listing *l);

static void got_page(listing *l)
{
    stream    *s = &l->stream[l->now];
    weir_page *page = l->ticket.op.u.list.page;
    if (l->ticket.op.err.code) {
        end(l, &l->ticket.op.err);
        return;
    }
    s->page = page;
    s->at = 0;
    s->last = !page->more;
    s->query.after = page->next;
    l->read += page->n;
    for (size_t i = 0; i < page->n; i++)
        l->read_bytes += job_bytes(page->job[i]);
    go_on(l);
}

static void read_more(listing *l, stream *s)
{
    weir_page_free(s->page);
    s->page = NULL;
    s->query.limit = jobs_to_read(l, s);
    l->now = (size_t)(s - l->stream);
    run(l, &(weir_op){ .kind = WEIR_OP_LIST, .u.list.query = s->query }, got_page);
}

/* The next job of a stream that is read; NULL: none. */
static const weir_job *head_of(const stream *s)
{
    return s->page && s->at < s->page->n ? s->page->job[s->at] : NULL;
}

static void end_stream(stream *s)
{
    weir_page_free(s->page);
    s->page = NULL;
    s->last = true;
}

static void put(listing *l, weir_job *job)
{
    l->bytes += job_bytes(job);
    l->page->job[l->page->n++] = job;
}

/* ---- merged ---- */

/* False: out of memory. */
static bool take_head(listing *l, stream *s)
{
    weir_job *job = s->page->job[s->at];
    if (l->query.ids_only && !(job = weir__job_copy(&(weir_job){ .id = job->id })))
        return false;
    if (!l->query.ids_only)
        s->page->job[s->at] = NULL;
    put(l, job);
    return true;
}

/* The stream whose head comes first. NULL and *reads: that stream must be read before; NULL: all
 * are at their end. */
static stream *first_stream(listing *l, stream **reads)
{
    stream *best = NULL;
    *reads = NULL;
    for (size_t i = 0; i < l->n; i++) {
        stream         *s = &l->stream[i];
        const weir_job *job = head_of(s);
        if (job && is_beyond(l, s, job)) {
            end_stream(s);
            job = NULL;
        }
        if (!job && !s->last) {
            *reads = s;
            return NULL;
        }
        if (job && (!best || comes_first(l, place_of(l, job), place_of(l, head_of(best)))))
            best = s;
    }
    return best;
}

static void merge(listing *l)
{
    stream *s, *reads;
    while ((s = first_stream(l, &reads))) {
        const weir_job *job = head_of(s);
        bool            wanted = is_wanted(l, job);
        if (wanted && (l->page->n == l->query.limit || l->bytes >= PAGE_BYTES)) {
            end_page(l, true);
            return;
        }
        l->seen = place_of(l, job);
        if (wanted && !take_head(l, s)) {
            end_with(l, WEIR_ENOMEM, "out of memory");
            return;
        }
        s->at++;
        if (!wanted && ++l->looked == WEIR_MAX_LOOK) {
            end_page(l, true);
            return;
        }
    }
    if (reads)
        read_more(l, reads);
    else
        end_page(l, false);
}

/* ---- gathered ---- */

static int compare_places(const void *a, const void *b, void *ctx)
{
    const weir_cursor *x = a, *y = b;
    const listing     *l = ctx;
    return comes_first(l, *x, *y) ? -1 : comes_first(l, *y, *x);
}

/* Keep the places that come first: one more than the page has room for. */
static void cut(listing *l)
{
    size_t most = l->query.limit + 1;
    qsort_r(l->best, l->n_best, sizeof *l->best, compare_places, l);
    if (l->n_best > most)
        l->n_best = most;
}

static void gather_job(listing *l, const stream *s, const weir_job *job)
{
    weir_cursor at = place_of(l, job);
    bool        wanted = s->query.ids_only || is_wanted(l, job);
    if (!wanted || (l->query.after.id && !comes_first(l, l->query.after, at)))
        return;
    l->best[l->n_best++] = at;
    if (l->n_best == 2 * (l->query.limit + 1))
        cut(l);
}

static void read_best(listing *l);

static void got_best(listing *l)
{
    weir_op   *op = &l->ticket.op;
    weir_job  *job = op->err.code ? NULL : op->u.get.job;
    if (op->err.code && op->err.code != WEIR_ENOENT) {
        end(l, &op->err);
        return;
    }
    l->seen = l->best[l->next++];
    if (job && is_wanted(l, job))
        put(l, job);
    else
        weir_job_free(job);                     /* it has moved on meanwhile */
    read_best(l);
}

static void read_best(listing *l)
{
    while (l->query.ids_only && l->next < l->n_best && l->page->n < l->query.limit) {
        weir_job *job = weir__job_copy(&(weir_job){ .id = l->best[l->next].id });
        if (!job) {
            end_with(l, WEIR_ENOMEM, "out of memory");
            return;
        }
        put(l, job);
        l->seen = l->best[l->next++];
    }
    size_t most = l->n_best < l->query.limit ? l->n_best : l->query.limit;
    if (l->next == most || l->bytes >= PAGE_BYTES)
        end_page(l, l->next < l->n_best);
    else
        run(l, &(weir_op){ .kind = WEIR_OP_GET, .u.get.id = l->best[l->next].id }, got_best);
}

/* Too many are chosen. By id, there is another way. */
static void give_up(listing *l)
{
    weir_error err;
    if (l->query.sort > WEIR_SORT_ID) {
        weir_fail(&err, WEIR_ELIMIT, "list: more than %d jobs are chosen, too many to sort by %s "
                  "(WEIR_MAX_SORT); choose fewer by state, type or time", WEIR_MAX_SORT,
                  weir_sort_name(l->query.sort));
        end(l, &err);
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        weir_page_free(l->stream[i].page);
    l->gathers = false;
    l->looked = l->read = l->read_bytes = 0;
    if (make_streams(l, &err))
        end(l, &err);
    else
        merge(l);
}

static void gather(listing *l)
{
    size_t most = l->query.sort > WEIR_SORT_ID ? WEIR_MAX_SORT : MAX_GATHERED_IDS;
    for (size_t i = 0; i < l->n; i++) {
        stream         *s = &l->stream[i];
        const weir_job *job;
        for (; (job = head_of(s)) && !is_beyond(l, s, job); s->at++) {
            if (l->looked++ == most) {
                give_up(l);
                return;
            }
            gather_job(l, s, job);
        }
        if (job) {
            end_stream(s);
        } else if (!s->last) {
            read_more(l, s);
            return;
        }
    }
    cut(l);
    read_best(l);
}

static void go_on(listing *l)
{
    if (l->gathers)
        gather(l);
    else
        merge(l);
}

/* ---- the call ---- */

static size_t count_streams(const weir_query *q)
{
    size_t n = 0;
    while (q->types && q->types[n])
        n++;
    return (n ? n : 1) * (WEIR_STATE_COUNT - 1);
}

static weir_code begin(listing *l, weir_error *err)
{
    weir_query *q = &l->query;
    l->states = weir__listing_states(q);
    l->gathers = weir__listing_gathers(q);
    l->by_id = weir__listing_by_id(q);
    if (!l->gathers && !l->by_id)
        q->sort = WEIR_SORT_USUAL;              /* the store sorts so, too */
    l->seen = q->after;
    l->page = weir__page_create(q->limit);
    l->stream = calloc(count_streams(q), sizeof *l->stream);
    if (l->gathers)
        l->best = calloc(2 * (q->limit + 1), sizeof *l->best);
    if (!l->page || !l->stream || (l->gathers && !l->best))
        return weir_fail(err, WEIR_ENOMEM, "list: out of memory");
    return make_streams(l, err);
}

weir_code weir__listing_async(weir_queue *q, const weir_op_list *list, weir_page **out,
                              weir_future **f, weir_error *err)
{
    weir_op      op = { .kind = WEIR_OP_LIST, .u.list.query = list->query };
    weir_error   why = { 0 };
    weir_future *own;
    weir_code    rc = weir__future_create(q, &own, sizeof(listing) + weir__op_copy_size(&op), NULL,
                                          err);
    if (out)
        *out = NULL;
    *f = NULL;
    if (rc)
        return rc;
    listing *l = weir__future_bytes(own);
    weir__op_copy(&op, (char *)(l + 1));
    *l = (listing){ .q = q, .future = own, .out = out, .query = op.u.list.query };
    *f = own;
    if (begin(l, &why))
        end(l, &why);
    else
        go_on(l);
    return WEIR_OK;
}
