/* coalesce.c - adjacent ends and takes share a step: if eight workers each end a job and take
 * another, the call has two steps, not sixteen. See layout.h, D, t and T. */
#include "store/redis/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { MOST = 1000 };               /* operations that share a step */

/* ---- who shares ---- */

/* A suspect that a busy worker passes over must be offered to an idle worker: another step. */
/* A take that may get a suspect has a step of its own: it may get the very suspect that another
 * take passes over. */
static bool same_request(const weir_op_take *a, const weir_op_take *b)
{
    if (weir__taking_wants(a) > 0 || weir__taking_wants(b) > 0 || a->lease_ms != b->lease_ms ||
        a->n_types != b->n_types || a->busy != b->busy)
        return false;
    if (a->types == b->types)
        return true;
    for (size_t i = 0; i < a->n_types; i++) {
        if (strcmp(a->types[i], b->types[i]) != 0)
            return false;
    }
    return true;
}

/* One entry among the takes. */
static const weir_op_take *request_of(const redis_coalesced *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->entry[i].take)
            return g->entry[i].take;
    }
    return NULL;
}

/* An end that takes nothing may be among others that do. */
static bool joins(const redis_coalesced *g, const redis_entry *m)
{
    if (!g->n || g->n == MOST || g->ends != (m->end != NULL))
        return false;
    return !m->take || (g->takes && same_request(request_of(g), m->take));
}

static void join(redis_lane *s, redis_task *t, uint32_t part, redis_entry m)
{
    redis_draft  *p = &s->draft[part];
    redis_coalesced *g = &p->coalesced;
    if (!joins(g, &m)) {
        weir__piece_close(s, part);
        weir__coalesced_close(s, part);
        p->open.letter = 0;
        g->ends = m.end != NULL;
        g->takes = m.take != NULL;
        g->answer = p->n_answers;
        p->n_answers += (uint32_t)g->ends + (uint32_t)g->takes;
    }
    if (!weir__grow(&g->entry, &g->cap, g->n + 1, sizeof *g->entry)) {
        s->failed = true;
        return;
    }
    m.step = s->n_steps;
    g->entry[g->n++] = m;
    if (m.end)
        weir__step_note(s, t, part, g->answer, 0);
    if (m.take)
        weir__step_note(s, t, part, g->answer + g->ends, 0);
}

void weir__step_end(redis_lane *s, redis_task *t, uint32_t part, const weir_op_finish *f,
                    const weir_op_take *then)
{
    join(s, t, part, (redis_entry){ .end = f, .take = then });
}

void weir__step_take(redis_lane *s, redis_task *t, uint32_t part, const weir_op_take *take)
{
    join(s, t, part, (redis_entry){ .take = take });
}

/* ---- what they become ---- */

static int by_turn(const void *a, const void *b)
{
    const redis_entry *x = a, *y = b;
    return x->step < y->step ? -1 : 1;
}

static int by_id(const void *a, const void *b)
{
    const redis_entry *x = a, *y = b;
    if (x->end->id != y->end->id)
        return x->end->id < y->end->id ? -1 : 1;
    return by_turn(a, b);
}

static bool same_result(const weir_op_finish *a, const weir_op_finish *b)
{
    if (!a->text || !b->text)
        return a->text == b->text;
    return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

/* How many of the ends, from the first on, are of jobs whose ids follow each other, and alike. */
static uint32_t ends_alike(const redis_lane *s, const redis_entry *m, uint32_t n)
{
    uint32_t k = 1;
    while (k < n && m[k].end->id == m[0].end->id + (uint64_t)k * s->n_parts &&
           m[k].end->delivery == m[0].end->delivery && same_result(m[k].end, m[0].end))
        k++;
    return k;
}

/* In the order of ids, so that those alike are found. */
static void put_ends(redis_lane *s, redis_draft *p, redis_coalesced *g)
{
    weir_buf *b = &p->steps, ends = { 0 }, results = { 0 };
    size_t    n_results = 0;
    qsort(g->entry, g->n, sizeof *g->entry, by_id);
    for (uint32_t i = 0, n; i < g->n; i += n) {
        const weir_op_finish *f = g->entry[i].end;
        n = ends_alike(s, g->entry + i, g->n - i);
        weir__put_number(&ends, 8, (int64_t)f->id);
        weir__put_number(&ends, 4, f->delivery);
        weir__put_number(&ends, 2, n);
        weir__buf_char(&ends, f->text ? '1' : '0');
        _Static_assert(8 + 4 + 2 + 1 == REDIS_END, "the function reads as many bytes");
        if (f->text) {
            weir__resp_bytes(&results, f->text, f->len);
            n_results++;
        }
    }
    weir__resp_text(b, "D");
    weir__resp_int(b, (int64_t)(1 + n_results));
    weir__resp_bytes(b, ends.data, ends.len);
    weir__buf_add(b, results.data, results.len);
    p->n_args += 3 + n_results;
    for (uint32_t i = 0; i < g->n; i++)
        g->entry[i].place = s->step[g->entry[i].step].place = i;
    qsort(g->entry, g->n, sizeof *g->entry, by_turn);
    s->failed = s->failed || ends.failed || results.failed;
    weir__buf_fini(&ends);
    weir__buf_fini(&results);
}

/* In their own order: who came first gets the first jobs. */
static void put_takes(redis_lane *s, redis_draft *p, const redis_coalesced *g)
{
    const weir_op_take *request = request_of(g);
    weir_buf           *b = &p->steps;
    weir__resp_text(b, g->ends ? "t" : "T");
    size_t              count_at = weir__resp_room(b), n_args = 2 + request->n_types;
    uint32_t            n = 0;
    weir__resp_int(b, request->lease_ms);
    weir__resp_int(b, (int64_t)request->n_types);
    for (size_t i = 0; i < request->n_types; i++)
        weir__resp_text(b, request->types[i]);
    for (uint32_t i = 0; i < g->n; i++) {
        const redis_entry *m = &g->entry[i];
        if (!m->take)
            continue;
        weir__resp_text(b, m->take->worker);
        weir__resp_int(b, weir__taking_wants(m->take));
        weir__resp_int(b, m->place + 1);
        s->step[m->step + g->ends].place = n++;
        n_args += 3;
    }
    weir__resp_count(b, count_at, n_args);
    p->n_args += 2 + n_args;
}

void weir__coalesced_close(redis_lane *s, uint32_t part)
{
    redis_draft  *p = &s->draft[part];
    redis_coalesced *g = &p->coalesced;
    if (g->n && g->ends && !s->failed)
        put_ends(s, p, g);
    if (g->n && g->takes && !s->failed)
        put_takes(s, p, g);
    g->n = 0;
}

/* ---- what a take has given ---- */

/* The number of jobs that the take at `place` got, by the answer, with REDIS_PASSED. */
static unsigned answer_for(const uint8_t *counts, uint32_t place)
{
    return (unsigned)counts[2 * place] << 8 | counts[2 * place + 1];
}

/* The number of jobs before the take at `place`, and its own. *waits: it passed over a
 * suspect. */
static size_t part_of_take(const redisReply *counts, uint32_t place, size_t *before, bool *waits)
{
    mp_slice       text = weir__reply_text(counts);
    const uint8_t *at = (const uint8_t *)text.at;
    _Static_assert((int)WEIR_MAX_PAGE < (int)REDIS_PASSED, "the bit is free in a count");
    *before = 0;
    *waits = false;
    if (2 * ((size_t)place + 1) > text.len)
        return 0;
    for (uint32_t i = 0; i < place; i++)
        *before += answer_for(at, i) % REDIS_PASSED;
    *waits = answer_for(at, place) >= REDIS_PASSED;
    return answer_for(at, place) % REDIS_PASSED;
}

static weir_code take_one(weir_op_take *take, uint64_t id, mp_slice run, mp_slice spec,
                          weir_error *err)
{
    if (take->n_jobs == take->n)
        return weir_fail(err, WEIR_ECORRUPT, "take: more jobs than were asked for");
    weir_job **out = &take->jobs[take->n_jobs];
    weir_code  rc = weir__record_get(out, id, run, spec, NULL, err);
    take->n_jobs += !rc;
    return rc;
}

/* Jobs that share one run, which ends before the worker: n of them, behind the first `skip`. */
static weir_code take_some(redis_lane *s, weir_op_take *take, const redisReply *group, size_t skip,
                           size_t n, weir_error *err)
{
    uint64_t          first = weir__reply_id(group->element[0]);
    mp_slice          run = weir__reply_text(group->element[1]);
    mp_slice          spec;
    weir__buf_clear(&s->scratch);
    weir__buf_add(&s->scratch, run.at, run.len);
    weir__mp_text(&s->scratch, take->worker, strlen(take->worker));
    run = weir__buf_slice(&s->scratch);
    weir_code rc = WEIR_OK;
    for (size_t k = skip; !rc && k < skip + n; k++) {
        if (weir__piece_spec(group->element[2], k, &spec))      /* else: damaged by hand */
            rc = take_one(take, first + k * s->n_parts, run, spec, err);
    }
    return rc;
}

weir_code weir__step_taken(redis_lane *s, const redis_task *t, size_t i, weir_op_take *take,
                           weir_error *err)
{
    const redisReply *r = weir__step_answer(s, t, i, err);
    size_t            skip, n;
    bool              waits;
    weir_code         rc = r ? WEIR_OK : err->code;
    if (rc || !r->elements)
        return rc;
    n = part_of_take(r->element[0], s->step[t->first + i].place, &skip, &waits);
    take->suspect_waits = take->suspect_waits || waits;
    for (size_t at = 1; !rc && n && at + 2 < r->elements; at += 3) {
        redisReply group = { .elements = 3, .element = r->element + at };
        bool       alone = group.element[2]->type != REDIS_REPLY_ARRAY;
        size_t     jobs = alone ? 1 : weir__piece_jobs(group.element[2]);
        size_t     over = skip < jobs ? skip : jobs, some = jobs - over < n ? jobs - over : n;
        if (some && alone)
            rc = take_one(take, weir__reply_id(group.element[0]),
                          weir__reply_text(group.element[1]), weir__reply_text(group.element[2]),
                          err);
        else if (some)
            rc = take_some(s, take, &group, over, some, err);
        skip -= over;
        n -= some;
    }
    return rc;
}
