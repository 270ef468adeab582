/* ops_work.c - the operations of producers and workers: add, finish, renew, progress, log. */
#include "store/redis/engine/engine.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"
#include "store/answers.h"

/* ---- add ---- */

/* FNV-1a: where a unique key is looked for must never change. */
static uint32_t hash_text(uint32_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return (h ^ 0xff) * 16777619u;
}

uint32_t weir__part_of_key(const redis_lane *s, const char *type, const char *unique)
{
    return hash_text(hash_text(2166136261u, type), unique) % s->n_parts;
}

static uint32_t part_of_spec(const redis_lane *s, const redis_task *t, const weir_spec *spec)
{
    if (s->n_parts == 1 || !spec->unique)
        return t->part;
    return weir__part_of_key(s, spec->type, spec->unique);
}

/* Is there more to a job than its spec? */
static bool is_special(const redis_lane *s, const redis_task *t, const weir_spec *spec,
                       const weir_job *j)
{
    return spec->delay_ms || spec->run_at || spec->deadline_at || spec->unique || j->search ||
           t->with_words ||
           (s->layout->data_in_record && !weir__record_holds(s->layout, j->data_len));
}

static void put_extra(redis_lane *s, const redis_task *t, const weir_spec *spec, const weir_job *j)
{
    weir_buf *b = &s->scratch;
    weir__buf_clear(b);
    if (!spec->delay_ms && !spec->run_at && !spec->deadline_at && !spec->unique && !j->search &&
        !t->with_words)
        return;
    weir__mp_array(b, 5);
    weir__mp_int(b, spec->delay_ms);
    weir__mp_int(b, spec->run_at);
    weir__mp_int(b, spec->deadline_at);
    weir__mp_text(b, spec->unique, spec->unique ? strlen(spec->unique) : 0);
    if (j->search || t->with_words)
        weir__words_of_data(b, j->data, j->data_len, spec->search_keys);
    else
        weir__mp_text(b, NULL, 0);
}

static mp_slice make_spec(redis_lane *s, const weir_job *j)
{
    weir__buf_clear(&s->scratch);
    weir__spec_put(&s->scratch, j, weir__record_holds(s->layout, j->data_len));
    return weir__buf_slice(&s->scratch);
}

/* Which of them go to this partition, and are not there yet. */
static bool goes_to(const redis_lane *s, const redis_task *t, size_t i, uint32_t part)
{
    const weir_op_add *a = &t->op->u.add;
    return !a->out[i].id && part_of_spec(s, t, &a->specs[i]) == part;
}

/* Each partition remembers its part: what it has of the jobs, under the number of all of them. */
static void token_args(weir_buf *b, const weir_op_add *a)
{
    char number[24], jobs[48];
    snprintf(number, sizeof number, "%020" PRIu64, a->token->number);
    snprintf(jobs, sizeof jobs, "%zu %" PRIu64, a->n, a->token->digest);
    weir__resp_text(b, a->token->key);
    weir__resp_text(b, number);
    weir__resp_text(b, jobs);
}

/* A group of a step A begins: see layout.h. Answers where its count is. */
static size_t begin_group(redis_lane *s, weir_buf *b, uint32_t part, const weir_job *j)
{
    uint64_t rank = htobe64((uint64_t)(j->priority + REDIS_ZERO_RANK));
    weir__piece_close(s, part);
    weir__resp_text(b, j->type);
    weir__resp_bytes(b, &rank, sizeof rank);
    size_t count_at = weir__resp_room(b);
    weir__resp_int(b, weir__record_flags(j));
    weir__step_more(s, part, 4, 0);
    return count_at;
}

static void put_special(redis_lane *s, redis_task *t, weir_buf *b, uint32_t part,
                        const weir_spec *spec, const weir_job *j)
{
    bool inside = weir__record_holds(s->layout, j->data_len);
    begin_group(s, b, part, j);
    mp_slice whole = make_spec(s, j);
    if (!s->scratch.failed)
        weir__resp_bytes(b, whole.at + WEIR__SPEC_TIME, whole.len - WEIR__SPEC_TIME);
    weir__resp_bytes(b, j->data, inside ? 0 : j->data_len);
    put_extra(s, t, spec, j);
    weir__resp_bytes(b, s->scratch.len ? s->scratch.data : "", s->scratch.len);
    weir__step_more(s, part, 3, 1);
    s->draft[part].group.type = NULL;
}

/* Where all data is apart, a group is jobs with the same spec: that, and then the data of each. */
static void put_apart(redis_lane *s, weir_buf *b, uint32_t part, const weir_spec *spec,
                      const weir_job *j)
{
    enum { CRLF = 2 };
    redis_draft *p = &s->draft[part];
    weir__buf_clear(&s->scratch);
    weir__spec_put(&s->scratch, j, false);
    if (s->scratch.failed)
        return;
    const char *rec = s->scratch.data + WEIR__SPEC_TIME;
    size_t      len = s->scratch.len - WEIR__SPEC_TIME;
    if (!p->group.type || len != p->group.spec_len || p->group.n == WEIR_MAX_ADD ||
        memcmp(rec, b->data + p->group.spec_at, len) != 0) {
        p->group.count_at = begin_group(s, b, part, j);
        weir__resp_bytes(b, rec, len);
        weir__step_more(s, part, 1, 0);
        p->group.type = b->failed ? NULL : spec->type;
        p->group.spec_at = b->len - CRLF - len;
        p->group.spec_len = len;
        p->group.n = 0;
    }
    weir__resp_bytes(b, j->data, j->data_len);
    weir__step_more(s, part, 1, 1);
    weir__resp_count(b, p->group.count_at, ++p->group.n);
}

static void put_whole(redis_lane *s, redis_task *t, weir_buf *b, uint32_t part,
                      const weir_spec *spec, const weir_job *whole)
{
    redis_draft *p = &s->draft[part];
    weir_job     j = *whole;
    if (is_special(s, t, spec, &j)) {
        put_special(s, t, b, part, spec, &j);
        return;
    }
    if (!s->layout->data_in_record) {
        put_apart(s, b, part, spec, &j);
        return;
    }
    if (!p->group.type || j.priority != p->group.priority || strcmp(j.type, p->group.type) != 0 ||
        weir__record_flags(&j) != p->group.flags || p->group.n == WEIR_MAX_ADD) {
        p->group.count_at = begin_group(s, b, part, &j);
        p->group.type = spec->type;
        p->group.priority = j.priority;
        p->group.flags = weir__record_flags(&j);
        p->group.n = 0;
    }
    j.created_at = s->stamp;
    weir__piece_add(s, part, make_spec(s, &j));
    weir__step_more(s, part, 0, 1);
    weir__resp_count(b, p->group.count_at, ++p->group.n);
}

static void put_job(redis_lane *s, redis_task *t, weir_buf *b, uint32_t part,
                    const weir_spec *spec)
{
    weir_job j;
    weir_buf values = { 0 };
    weir__job_init(&j, spec, 1, 0);
    if (!weir__job_values(&j, &values))
        s->failed = true;
    put_whole(s, t, b, part, spec, &j);
    weir__buf_fini(&values);
}

/* Adds share a step; one with a token has its own. */
static weir_buf *begin_adding(redis_lane *s, redis_task *t, uint32_t part)
{
    const weir_op_add *a = &t->op->u.add;
    if (!a->token)
        return weir__step_join(s, t, part, 'A');
    s->draft[part].open.letter = 0;
    weir_buf *b = weir__step_join(s, t, part, 'a');
    token_args(b, a);
    weir__step_more(s, part, 3, 0);
    return b;
}

static void add_step(redis_lane *s, redis_task *t, uint32_t part)
{
    const weir_op_add *a = &t->op->u.add;
    weir_buf          *b = NULL;
    if (a->token && part == t->part && !t->accepted)
        b = begin_adding(s, t, part);            /* it remembers the call, also without a job */
    for (size_t i = 0; i < a->n; i++) {
        if (!goes_to(s, t, i, part))
            continue;
        if (!b)
            b = begin_adding(s, t, part);
        put_job(s, t, b, part, &a->specs[i]);
    }
}

/* The partition that was given the fewest jobs, so that all get as many; among equals the next in
 * turn. But jobs that came together go together, up to a number, since each partition costs a
 * call. */
uint32_t weir__part_to_fill(redis_lane *s, size_t n)
{
    enum { TOGETHER = 1000 };
    if (s->add_room < n) {
        uint32_t best = (s->add_part + 1) % s->n_parts;
        for (uint32_t k = 2; k <= s->n_parts; k++) {
            uint32_t part = (s->add_part + k) % s->n_parts;
            if (s->draft[part].given < s->draft[best].given)
                best = part;
        }
        s->add_part = best;
        s->add_room = TOGETHER;
    }
    s->add_room -= n < s->add_room ? n : s->add_room;
    s->draft[s->add_part].given += n;
    return s->add_part;
}

void weir__redis_add_act(redis_lane *s, redis_task *t)
{
    weir_op_add *a = &t->op->u.add;
    if (!t->rounds) {
        t->part = a->token ? hash_text(2166136261u, a->token->key) % s->n_parts
                           : weir__part_to_fill(s, a->n);
        for (size_t i = 0; i < a->n; i++)
            a->out[i] = (weir_added){ 0 };
    }
    /* The token's partition decides whether the call is a new one, before others add their part. */
    for (uint32_t part = 0; part < s->n_parts; part++)
        if (!a->token || t->accepted || part == t->part)
            add_step(s, t, part);
}

static void added(redis_lane *s, redis_task *t, const redis_step *step, const redisReply *r)
{
    weir_op_add *a = &t->op->u.add;
    bool         all_new = r->elements == 1;
    size_t       k = step->place;
    for (size_t i = 0; i < a->n; i++) {
        if (!goes_to(s, t, i, step->part))
            continue;
        weir_added *out = &a->out[i];
        *out = (weir_added){ .state = WEIR_STATE_INACTIVE,
                             .durability = s->draft[step->part].call.durability };
        if (all_new) {
            out->id = (uint64_t)weir__reply_int(r->element[0]) + k * s->n_parts;
        } else if (3 * k + 2 < r->elements) {
            out->id = (uint64_t)weir__reply_int(r->element[3 * k]);
            out->state = (weir_state)weir__reply_int(r->element[3 * k + 1]);
            out->existed = weir__reply_int(r->element[3 * k + 2]) != 0;
        }
        weir__redis_id_seen(s->top, step->part, out->id);
        k++;
    }
}

/* It failed in one partition. Jobs that other partitions added stay, so the error must not say
 * that none was added. */
static void add_failed(redis_task *t, const weir_error *why)
{
    weir_op_add *a = &t->op->u.add;
    size_t       n = 0;
    for (size_t i = 0; i < a->n; i++) {
        n += a->out[i].id && !a->out[i].existed;
        a->out[i] = (weir_added){ 0 };
    }
    weir_error err = *why;
    if (n)
        weir_fail(&err, WEIR_EUNKNOWN, "%zu of these %zu jobs were added, and then: %s", n, a->n,
                  why->msg);
    weir__task_fail(t, &err);
}

/* Another call of its token is remembered: "NUMBER JOBS DIGEST". */
static void token_refused(redis_task *t, const char *known)
{
    weir_op_add    *a = &t->op->u.add;
    char           *rest;
    bool            again;
    weir_error      err = { 0 };
    weir_token_call call = { .number = strtoull(known, &rest, 10) };
    call.n = strtoull(rest, &rest, 10);
    call.digest = strtoull(rest, NULL, 10);
    weir__token_known(a->token, a->n, &call, &again, &err);
    for (size_t i = 0; i < a->n; i++)
        a->out[i] = (weir_added){ 0 };
    weir__task_fail(t, &err);
}

/* The token's partition has accepted the call: is there more to do in others? */
static bool has_more_parts(redis_task *t)
{
    const weir_op_add *a = &t->op->u.add;
    if (!a->token || t->accepted)
        return false;
    t->accepted = true;
    for (size_t i = 0; i < a->n; i++)
        if (!a->out[i].id)
            return true;
    return false;
}

void weir__redis_add_end(redis_lane *s, redis_task *t)
{
    weir_error  err, why = { 0 };
    bool        again = false;
    const char *known = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const redisReply *r = weir__step_answer(s, t, i, &err);
        if (!r)
            why = err;
        else if (r->type == REDIS_REPLY_ARRAY)
            added(s, t, &s->step[t->first + i], r);
        else if (r->type == REDIS_REPLY_STRING && strcmp(r->str, "words") != 0)
            known = r->str;
        else
            again = t->with_words = true;      /* a setting of the type: they are searched */
    }
    if (!again && !known && !why.code)
        again = has_more_parts(t);
    t->over = !again;
    if (known)
        token_refused(t, known);
    else if (why.code)
        add_failed(t, &why);
}

/* ---- finish ---- */

bool weir__redis_finish_look(redis_lane *s, redis_task *t)
{
    const weir_op_finish *f = &t->op->u.finish;
    if (t->finished)
        return weir__choosing_look(s, t);
    if (f->outcome == WEIR_OUTCOME_DONE)
        return false;
    weir__task_look(s, t, f->id);
    return true;
}

void weir__redis_finish_seen(redis_lane *s, redis_task *t)
{
    weir_op_finish *f = &t->op->u.finish;
    if (t->finished) {
        weir__choosing_seen(s, t, &f->next);
        return;
    }
    if (weir__task_seen(s, t, f->id))
        return;
    if (!t->seen || t->seen->state != WEIR_STATE_ACTIVE || t->seen->delivery != f->delivery) {
        weir__stale(&t->op->err, f->id, f->delivery);
        t->over = true;
    }
}

/* Given back, or failed: then it takes only if that worked. */
static void then_take(redis_lane *s, redis_task *t, uint32_t part, const weir_op_take *take)
{
    weir_buf *b = weir__step(s, t, part, 't', 5 + take->n_types);
    weir__resp_int(b, take->lease_ms);
    weir__resp_int(b, (int64_t)take->n_types);
    for (size_t i = 0; i < take->n_types; i++)
        weir__resp_text(b, take->types[i]);
    weir__resp_text(b, take->worker);
    weir__resp_int(b, weir__taking_wants(take));
    weir__resp_text(b, "1");
}

void weir__redis_finish_act(redis_lane *s, redis_task *t)
{
    weir_op_finish *f = &t->op->u.finish;
    if (t->finished) {
        weir__taking_act(s, t, &f->next);
        return;
    }
    f->next.n_jobs = 0;
    f->next.suspect_waits = false;
    t->part = weir__part_of(s, f->id);
    t->takes = f->next.n && weir__taking_here(s, t->part, &f->next);
    if (f->outcome == WEIR_OUTCOME_DONE) {
        weir__step_end(s, t, t->part, f, t->takes ? &f->next : NULL);
        return;
    }
    weir__job_finish(t->seen, f->outcome, f->text, f->len, f->delay_ms, t->now, &t->effects);
    weir__put_seen(s, t);
    if (t->takes)
        then_take(s, t, t->part, &f->next);
}

/* The answer of D or P. */
static void finished(redis_lane *s, redis_task *t)
{
    weir_op_finish *f = &t->op->u.finish;
    int64_t         answer = weir__step_state(s, t, 0, &t->op->err);
    if (t->op->err.code) {
        t->over = true;
        return;
    }
    if (f->outcome != WEIR_OUTCOME_DONE) {
        t->finished = answer == 1;               /* 0: it was changed meanwhile: look again */
        f->state = t->seen->state;
    } else if (answer < 0) {
        weir__stale(&t->op->err, f->id, f->delivery);
        t->over = true;
    } else {
        t->finished = true;
        f->state = (weir_state)answer;
    }
}

void weir__redis_finish_end(redis_lane *s, redis_task *t)
{
    weir_op_finish *f = &t->op->u.finish;
    size_t          step = 0;
    if (!t->finished) {
        finished(s, t);
        step = 1;
    }
    if (!t->finished)
        return;
    if (t->takes) {
        weir__taking_end(s, t, &f->next, step);
    } else if (f->next.n) {
        t->takes = true;
        weir__taking_begin(s, t, &f->next);
    } else {
        t->over = true;
    }
}

/* ---- while it runs ---- */

void weir__redis_renew_act(redis_lane *s, redis_task *t)
{
    weir_op_renew *r = &t->op->u.renew;
    for (uint32_t part = 0; part < s->n_parts; part++) {
        size_t n = 0;
        for (size_t i = 0; i < r->n; i++)
            n += weir__part_of(s, r->items[i].id) == part;
        if (!n)
            continue;
        weir_buf *b = weir__step(s, t, part, 'N', 3 * n);
        for (size_t i = 0; i < r->n; i++) {
            if (weir__part_of(s, r->items[i].id) != part)
                continue;
            weir__resp_int(b, (int64_t)r->items[i].id);
            weir__resp_int(b, r->items[i].delivery);
            weir__resp_int(b, r->items[i].lease_ms);
        }
    }
}

void weir__redis_renew_end(redis_lane *s, redis_task *t)
{
    weir_op_renew *r = &t->op->u.renew;
    weir_error     err;
    t->over = true;
    for (size_t step = 0; step < t->n; step++) {
        const redisReply *a = weir__step_answer(s, t, step, &err);
        size_t            k = 0;
        if (!a) {
            weir__task_fail(t, &err);
            return;
        }
        for (size_t i = 0; i < r->n; i++) {
            if (weir__part_of(s, r->items[i].id) != s->step[t->first + step].part)
                continue;
            bool ok = k < a->elements && weir__reply_int(a->element[k]) == 1;
            r->items[i].code = ok ? WEIR_OK : WEIR_ESTALE;
            k++;
        }
    }
}

void weir__redis_progress_act(redis_lane *s, redis_task *t)
{
    const weir_op_progress *p = &t->op->u.progress;
    weir_buf               *b = weir__step(s, t, weir__part_of(s, p->id), 'S', 5);
    weir__resp_int(b, (int64_t)p->id);
    weir__resp_int(b, p->delivery);
    weir__resp_int(b, p->percent);
    weir__resp_bytes(b, p->data ? p->data : "", p->data ? p->len : 0);
    weir__resp_text(b, p->data ? "1" : "0");
}

void weir__redis_progress_end(redis_lane *s, redis_task *t)
{
    const weir_op_progress *p = &t->op->u.progress;
    const redisReply       *r = weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
    if (r && weir__reply_int(r) != 1)
        weir__stale(&t->op->err, p->id, p->delivery);
}

void weir__redis_log_act(redis_lane *s, redis_task *t)
{
    const weir_op_log *l = &t->op->u.log;
    weir_buf          *b = weir__step(s, t, weir__part_of(s, l->id), 'L', 4);
    weir__resp_int(b, (int64_t)l->id);
    weir__resp_int(b, l->delivery);
    weir__resp_bytes(b, l->text, l->len);
    weir__buf_clear(&s->scratch);
    weir__words_of_text(&s->scratch, l->text, l->len);
    weir__resp_bytes(b, s->scratch.data, s->scratch.len);
}

void weir__redis_log_end(redis_lane *s, redis_task *t)
{
    const weir_op_log *l = &t->op->u.log;
    const redisReply  *r = weir__step_answer(s, t, 0, &t->op->err);
    int64_t            answer = r ? weir__reply_int(r) : 1;
    t->over = true;
    if (answer == -1)
        weir__no_job(&t->op->err, l->id);
    else if (answer != 1)
        weir__stale(&t->op->err, l->id, l->delivery);
}
