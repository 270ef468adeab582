/* ops_read.c - the operations that only look: get, list, logs, stats. Answers of partitions are
 * merged here. */
#include "store/redis/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "core/tick.h"
#include "core/search.h"
#include "store/answers.h"

static void no_memory(redis_task *t)
{
    weir_fail(&t->op->err, WEIR_ENOMEM, "%s: out of memory", weir__op_row(t->op)->name);
}

/* ---- get ---- */

void weir__redis_get_act(redis_lane *s, redis_task *t)
{
    uint64_t  id = t->op->u.get.id;
    weir_buf *b = weir__step(s, t, weir__part_of(s, id), 'G', 2);
    t->op->u.get.job = NULL;
    weir__resp_text(b, "1");
    weir__resp_int(b, (int64_t)id);
}

void weir__redis_get_end(redis_lane *s, redis_task *t)
{
    weir_op_get      *g = &t->op->u.get;
    const redisReply *r = weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
    if (!r)
        return;
    if (r->elements != 1 || r->element[0]->elements != 2) {
        if (r->elements == 1 && r->element[0]->elements == 1)
            weir__redis_events_wait(s->top, weir__part_of(s, g->id),
                                    weir__reply_int(r->element[0]->element[0]));
        weir__no_job(&t->op->err, g->id);
        return;
    }
    mp_slice run = weir__reply_text(r->element[0]->element[0]);
    mp_slice spec = weir__reply_text(r->element[0]->element[1]);
    weir__record_get(&g->job, g->id, run, spec, NULL, &t->op->err);
}

/* ---- list ---- */

static bool by_id(const weir_query *q)
{
    return !q->state || q->search;
}

/* The words of a query as arguments: lower case, "*" behind the start of one. Answers how many. */
static size_t query_words(weir_buf *args, const char *query)
{
    size_t len = strlen(query), pos = 0, at, word, n = 0;
    while (weir__search_word(query, len, &pos, &at, &word)) {
        weir_buf w = { 0 };
        for (size_t i = at; i < at + word; i++) {
            char c = query[i];
            weir__buf_char(&w, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
        }
        if (query[at + word] == '*')
            weir__buf_char(&w, '*');
        weir__resp_bytes(args, w.data, w.len);
        args->failed = args->failed || w.failed;
        weir__buf_fini(&w);
        n++;
    }
    return n;
}

void weir__redis_list_step(redis_lane *s, redis_task *t, uint32_t part, const weir_query *q,
                           size_t words)
{
    bool      takes = t->choosing != NULL;
    bool      walks = q->by_priority && !weir__ranked_by_priority(q);
    uint32_t  look = walks ? WEIR_MAX_LOOK / s->n_parts + 1 : 0;
    weir_buf *b = weir__step(s, t, part, q->search ? 'F' : 'I', q->search ? 8 + words : 10);
    weir__resp_int(b, q->state);
    weir__resp_text(b, q->type ? q->type : "");
    weir__resp_text(b, q->descending ? "1" : "0");
    if (!q->search)
        weir__resp_int(b, q->after.rank);
    weir__resp_int(b, (int64_t)q->after.id);
    weir__resp_int(b, (int64_t)q->limit + 1);
    weir__resp_text(b, q->ids_only ? "0" : "1");
    if (q->by_priority)
        weir__resp_int(b, q->priority);
    else
        weir__resp_text(b, "");
    weir__resp_int(b, look);
    if (!q->search)
        weir__resp_text(b, takes ? "1" : "0");
    if (words)
        weir__buf_add(b, s->scratch.data, s->scratch.len);
}

void weir__redis_list_act(redis_lane *s, redis_task *t)
{
    const weir_query *q = &t->op->u.list.query;
    size_t            words = 0;
    t->op->u.list.page = NULL;
    weir__buf_clear(&s->scratch);
    if (q->search && !(words = query_words(&s->scratch, q->search)))
        return;                                  /* a query without words finds nothing */
    for (uint32_t part = 0; part < s->n_parts; part++)
        weir__redis_list_step(s, t, part, q, words);
}

/* The answer of a partition, and how far it is merged. */
typedef struct stream {
    const redisReply *r;
    size_t            at;
    weir_job         *head;
} stream;

static weir_code advance(stream *st, weir_error *err)
{
    size_t n = 0;
    st->head = NULL;
    if (st->at + 2 >= st->r->elements)
        return WEIR_OK;
    redisReply one = *st->r;
    one.element += st->at;
    one.elements = 3;
    st->at += 3;
    return weir__jobs_of(&one, &st->head, &n, 1, err);
}

static weir_cursor place_of(const weir_job *job, const weir_query *q)
{
    return (weir_cursor){ .rank = by_id(q) ? 0 : weir__job_rank(job), .id = job->id };
}

static bool comes_first(weir_cursor a, weir_cursor b, const weir_query *q)
{
    if (q->descending)
        return a.rank != b.rank ? a.rank > b.rank : a.id > b.id;
    return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
}

/* A partition that stopped looking for a priority says where. Jobs of others beyond the first of
 * these places must wait for the next page. id 0: all have looked at all of theirs. */
static weir_cursor first_stop(const weir_query *q, const stream *streams, size_t n)
{
    weir_cursor first = { 0 };
    for (size_t i = 0; i < n; i++) {
        const redisReply *r = streams[i].r;
        if (r->elements % 3 != 2)
            continue;
        weir_cursor stop = { .rank = weir__reply_int(r->element[r->elements - 2]),
                             .id = (uint64_t)weir__reply_int(r->element[r->elements - 1]) };
        if (!first.id || comes_first(stop, first, q))
            first = stop;
    }
    return first;
}

static weir_code put_on_page(weir_page *page, const weir_query *q, weir_job *job)
{
    page->next = place_of(job, q);
    if (q->ids_only) {
        weir_job bare = { .id = job->id };
        weir_job_free(job);
        job = weir__job_copy(&bare);
        if (!job)
            return WEIR_ENOMEM;
    }
    page->job[page->n++] = job;
    return WEIR_OK;
}

static weir_code merge(weir_page *page, const weir_query *q, stream *streams, size_t n,
                       weir_error *err)
{
    weir_cursor stop = first_stop(q, streams, n);
    for (;;) {
        stream     *best = NULL;
        weir_cursor at = { 0 };
        for (size_t i = 0; i < n; i++) {
            if (streams[i].head && (!best || comes_first(place_of(streams[i].head, q), at, q))) {
                best = &streams[i];
                at = place_of(best->head, q);
            }
        }
        if (!best || (stop.id && comes_first(stop, at, q)))
            break;
        if (page->n == q->limit) {
            page->more = true;
            return WEIR_OK;
        }
        weir_job *job = best->head;
        best->head = NULL;
        weir_code rc = put_on_page(page, q, job);
        if (rc)
            return weir_fail(err, rc, "list: out of memory");
        if ((rc = advance(best, err)))
            return rc;
    }
    page->more = stop.id != 0;
    page->next = stop;
    return WEIR_OK;
}

void weir__redis_list_end(redis_lane *s, redis_task *t)
{
    weir_op_list *l = &t->op->u.list;
    weir_error   *err = &t->op->err;
    stream       *streams = calloc(t->n ? t->n : 1, sizeof *streams);
    l->page = weir__page_create(l->query.limit);
    t->over = true;
    if (!streams || !l->page)
        no_memory(t);
    for (size_t i = 0; !err->code && i < t->n; i++) {
        streams[i].r = weir__step_answer(s, t, i, err);
        if (streams[i].r)
            advance(&streams[i], err);
    }
    if (!err->code)
        merge(l->page, &l->query, streams, t->n, err);
    for (size_t i = 0; streams && i < t->n; i++)
        weir_job_free(streams[i].head);
    free(streams);
    if (err->code) {
        weir_page_free(l->page);
        l->page = NULL;
    }
}

/* ---- logs ---- */

void weir__redis_logs_act(redis_lane *s, redis_task *t)
{
    const weir_op_logs *l = &t->op->u.logs;
    weir_buf           *b = weir__step(s, t, weir__part_of(s, l->id), 'O', 3);
    t->op->u.logs.lines = NULL;
    weir__resp_int(b, (int64_t)l->id);
    weir__resp_int(b, l->after > INT64_MAX ? INT64_MAX : (int64_t)l->after);
    weir__resp_int(b, (int64_t)l->limit);
}

void weir__redis_logs_end(redis_lane *s, redis_task *t)
{
    weir_op_logs     *l = &t->op->u.logs;
    const redisReply *r = weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
    if (!r)
        return;
    if (r->type != REDIS_REPLY_ARRAY) {
        weir__no_job(&t->op->err, l->id);
        return;
    }
    l->lines = weir__lines_create();
    bool ok = l->lines != NULL;
    for (size_t i = 0; ok && i + 2 < r->elements; i += 3) {
        mp_slice text = weir__reply_text(r->element[i + 2]);
        ok = weir__lines_add(l->lines, (uint64_t)weir__reply_int(r->element[i]),
                             weir__reply_int(r->element[i + 1]), text.at, text.len);
    }
    if (ok)
        return;
    weir_lines_free(l->lines);
    l->lines = NULL;
    no_memory(t);
}

/* ---- stats ---- */

void weir__redis_stats_act(redis_lane *s, redis_task *t)
{
    t->op->u.stats.stats = NULL;
    for (uint32_t part = 0; part < s->n_parts; part++)
        weir__step(s, t, part, 'Z', 0);
}

static weir_type_stats *find_type(weir_stats *stats, mp_slice name)
{
    for (size_t i = 0; i < stats->n; i++) {
        const char *known = stats->type[i].type;
        if (strlen(known) == name.len && !memcmp(known, name.at, name.len))
            return &stats->type[i];
    }
    char *copy = strndup(name.at, name.len);
    weir_type_stats *made = copy ? weir__stats_add(stats, copy) : NULL;
    free(copy);
    return made;
}

/* Rows of an answer are [name, record, six counts, oldest]; the row of "*" has the defaults. */
static bool is_star(const redisReply *row)
{
    mp_slice name = weir__reply_text(row->element[0]);
    return name.len == 1 && *name.at == '*';
}

static void read_star(weir_stats *stats, const redisReply *row)
{
    mp_slice record = weir__reply_text(row->element[1]);
    bool     own;
    weir_type_stats star = { 0 };
    if (!weir__record_type(record.at, record.len, &star, &own))
        return;
    stats->all.paused = star.paused;
    if (own)
        stats->all.settings = star.settings;
}

static bool add_row(weir_stats *stats, const redisReply *row)
{
    mp_slice         record = weir__reply_text(row->element[1]);
    weir_type_stats  part = { 0 };
    bool             own = false;
    weir_type_stats *sum = find_type(stats, weir__reply_text(row->element[0]));
    if (!sum)
        return false;
    weir__record_type(record.at, record.len, &part, &own);
    sum->paused = part.paused;
    sum->settings = own ? part.settings : stats->all.settings;
    for (int st = WEIR_STATE_INACTIVE; st < WEIR_STATE_COUNT; st++) {
        uint64_t n = (uint64_t)weir__reply_int(row->element[1 + st]);
        sum->count[st] += n;
        sum->count[WEIR_STATE_ANY] += n;
    }
    sum->completed += part.completed;
    sum->failed += part.failed;
    sum->work_ms += part.work_ms;
    if (part.last_taken_at > sum->last_taken_at)
        sum->last_taken_at = part.last_taken_at;
    int64_t oldest = weir__reply_int(row->element[8]);
    if (oldest && (!sum->oldest_at || oldest < sum->oldest_at))
        sum->oldest_at = oldest;
    return true;
}

static int compare_types(const void *a, const void *b)
{
    return strcmp(((const weir_type_stats *)a)->type, ((const weir_type_stats *)b)->type);
}

static bool add_rows(weir_stats *stats, const redisReply *r)
{
    uint64_t last = r->elements ? (uint64_t)weir__reply_int(r->element[0]) : 0;
    bool     ok = true;
    if (last > stats->last_id)
        stats->last_id = last;
    for (size_t i = 1; i < r->elements; i++) {
        if (r->element[i]->elements == 9 && is_star(r->element[i]))
            read_star(stats, r->element[i]);
    }
    for (size_t i = 1; ok && i < r->elements; i++) {
        if (r->element[i]->elements == 9 && !is_star(r->element[i]))
            ok = add_row(stats, r->element[i]);
    }
    return ok;
}

void weir__redis_stats_end(redis_lane *s, redis_task *t)
{
    weir_stats *stats = weir__stats_create();
    weir_error *err = &t->op->err;
    bool        ok = stats != NULL;
    t->over = true;
    if (ok && !s->layout->keeps_for_ever)
        stats->all.settings = weir__default_settings;       /* unless "*" has its own */
    for (size_t i = 0; ok && i < t->n; i++) {
        const redisReply *r = weir__step_answer(s, t, i, err);
        ok = r && add_rows(stats, r);
    }
    if (!ok) {
        weir_stats_free(stats);
        if (!err->code)
            no_memory(t);
        return;
    }
    if (stats->n)
        qsort(stats->type, stats->n, sizeof *stats->type, compare_types);
    weir_type_stats star = stats->all;
    weir__stats_sum(stats);
    stats->all.paused = star.paused;
    stats->all.settings = weir__settings_out(&star.settings);
    for (size_t i = 0; i < stats->n; i++)
        stats->type[i].settings = weir__settings_out(&stats->type[i].settings);
    if (t->op->u.stats.probe)
        weir__redis_try_write(s, err);
    if (err->code)
        weir_stats_free(stats);
    else
        t->op->u.stats.stats = stats;
}
