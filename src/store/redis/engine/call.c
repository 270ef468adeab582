/* call.c - from steps to calls: what the operations of a round need is one call for each partition,
 * and what comes back is cut into their answers. */
#include "store/redis/engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { HEAD_ARGS = REDIS_FIRST_STEP - 1 };      /* of the function, before the steps */

uint32_t weir__part_of(const redis_lane *s, uint64_t id)
{
    return (uint32_t)(id % s->n_parts);
}

static bool note_step(redis_lane *s, uint32_t part, uint32_t answer, uint32_t place)
{
    if (!weir__grow(&s->step, &s->cap_steps, s->n_steps + 1, sizeof *s->step))
        return false;
    s->step[s->n_steps++] = (redis_step){ part, answer, place };
    return true;
}

void weir__step_note(redis_lane *s, redis_task *t, uint32_t part, uint32_t answer, uint32_t place)
{
    if (!t->n)
        t->first = s->n_steps;
    t->n++;
    if (!note_step(s, part, answer, place))
        s->failed = true;
}

/* The gathered arguments become part of the call. */
static void close_open(redis_lane *s, uint32_t part)
{
    weir__piece_close(s, part);
    weir__coalesced_close(s, part);
}

weir_buf *weir__step_join(redis_lane *s, redis_task *t, uint32_t part, char letter)
{
    redis_draft *p = &s->draft[part];
    weir_buf    *b = &p->steps;
    if (p->open.letter == letter) {
        weir__step_note(s, t, part, p->n_answers - 1, p->open.n_jobs);
        return b;
    }
    close_open(s, part);
    weir__step_note(s, t, part, p->n_answers++, 0);
    p->n_args += 2;
    p->adds = p->adds || letter == 'A' || letter == 'a' || letter == 'M';
    weir__resp_bytes(b, &letter, 1);
    p->open.letter = letter;
    p->open.count_at = weir__resp_room(b);
    p->open.n_args = p->open.n_jobs = 0;
    p->group.type = NULL;
    return b;
}

void weir__step_more(redis_lane *s, uint32_t part, size_t n_args, uint32_t n_jobs)
{
    redis_draft *p = &s->draft[part];
    p->n_args += n_args;
    p->open.n_args += n_args;
    p->open.n_jobs += n_jobs;
    weir__resp_count(&p->steps, p->open.count_at, p->open.n_args);
}

weir_buf *weir__step(redis_lane *s, redis_task *t, uint32_t part, char letter, size_t n)
{
    redis_draft *p = &s->draft[part];
    p->open.letter = 0;
    weir_buf *b = weir__step_join(s, t, part, letter);
    weir__step_more(s, part, n, 0);
    p->open.letter = 0;
    return b;
}

static void make_command(redis_lane *s, uint32_t i, int64_t now, bool writes)
{
    const redis_part   *part = &s->part[i];
    redis_draft        *p = &s->draft[i];
    redis_call         *c = &p->call;
    weir_buf           *b = &c->command;
    close_open(s, i);
    weir__call_reset(c);
    weir__backlog_mark(s, i);
    c->slot = part->slot;
    c->library = &s->layout->library;
    c->repeatable = true;
    weir__resp_array(b, 3 + part->n_keys + HEAD_ARGS + p->n_args);
    weir__resp_text(b, "FCALL");
    weir__resp_parts(b, c->library->name, strlen(c->library->name), p->adds ? "_add" : "_rest",
                     p->adds ? 4 : 5);
    weir__buf_add(b, part->keys.data, part->keys.len);
    if (now)
        weir__resp_int(b, now);
    else
        weir__resp_bytes(b, "", 0);
    weir__resp_text(b, s->origin);
    if (writes)
        weir__resp_int(b, (int64_t)++s->number);
    else
        weir__resp_bytes(b, "", 0);
    weir__resp_text(b, part->prefix);
    weir__resp_int(b, s->n_parts);
    weir__resp_int(b, i);
    weir__resp_int(b, (int64_t)atomic_load(&s->top->events.order[i].last_id));
    weir__buf_add(b, p->steps.data, p->steps.len);
    if (b->failed || p->steps.failed || s->scratch.failed || s->failed)
        weir_fail(&c->err, WEIR_ENOMEM, "redis: no memory for a call");
}

/* `sent`: by our clock that is never set; 0: the call did not ask for Redis's. */
static void take_answer(redis_lane *s, uint32_t i, int64_t sent_ms, int64_t sent)
{
    redis_draft *p = &s->draft[i];
    redis_call  *c = &p->call;
    if (strstr(c->err.msg, "WRONGTYPE"))
        weir_fail(&c->err, WEIR_ECORRUPT, "redis: a key that begins with %s is not weir's "
                  "(WRONGTYPE): remove it, or use another prefix=", s->part[i].prefix);
    if (c->err.code)
        return;
    const redisReply *r = c->reply;
    if (r->type != REDIS_REPLY_ARRAY || r->elements < 2 || r->elements > p->n_answers + 2u) {
        weir_fail(&c->err, WEIR_ECORRUPT, "redis: the function gave no answer that can be read");
        return;
    }
    if (!s->test_clock) {
        int64_t now = weir__reply_int(r->element[0]), got_ms = s->top->env.now(s->top->env.ctx);
        atomic_store(&s->top->ahead_ms, now - sent_ms);
        atomic_store(&s->top->sure_ms, now - got_ms - 1);
        if (sent)
            weir__clock_seen(s->top, i, now, sent, weir__steady_ms());
    }
    mp_slice message = weir__reply_text(r->element[1]);
    if (message.len)
        weir__redis_events_of_call(s->top, i, message.at, message.len);
}

void weir__calls_run(redis_lane *s, int64_t now, bool writes)
{
    int64_t sent_ms = s->top->env.now(s->top->env.ctx), sent = now ? 0 : weir__steady_ms();
    for (uint32_t i = 0; i < s->n_parts; i++) {
        redis_draft *p = &s->draft[i];
        if (!p->n_answers)
            continue;
        make_command(s, i, now, writes);
        if (!p->call.err.code)
            weir__link_send(s->link, &p->call);
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        redis_draft *p = &s->draft[i];
        if (p->n_answers && p->call.err.code != WEIR_ENOMEM)
            weir__link_wait(s->link, &p->call);
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        if (s->draft[i].n_answers)
            take_answer(s, i, sent_ms, sent);
    }
}

void weir__calls_reset(redis_lane *s)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        redis_draft *p = &s->draft[i];
        weir__buf_clear(&p->steps);
        p->steps.failed = false;
        p->n_args = 0;
        p->n_answers = 0;
        p->open.letter = 0;
        p->adds = false;
        p->coalesced.n = 0;
        p->piece.n = 0;
        weir__buf_clear(&p->piece.specs);
    }
    s->n_steps = 0;
    s->failed = s->scratch.failed = false;
}

/* ---- answers ---- */

const redisReply *weir__step_answer(redis_lane *s, const redis_task *t, size_t i, weir_error *err)
{
    const redis_step *step = &s->step[t->first + i];
    const redis_call *c = &s->draft[step->part].call;
    if (c->err.code) {
        *err = c->err;
        return NULL;
    }
    return c->reply->element[2 + step->answer];
}

int64_t weir__step_state(redis_lane *s, const redis_task *t, size_t i, weir_error *err)
{
    const redisReply *r = weir__step_answer(s, t, i, err);
    if (!r)
        return -1;
    if (r->type != REDIS_REPLY_ARRAY)
        return weir__reply_int(r);
    uint32_t place = s->step[t->first + i].place;
    return place < r->elements ? weir__reply_int(r->element[place]) : -1;
}

bool weir__step_put_off(redis_lane *s, const redis_task *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const redis_step *step = &s->step[t->first + i];
        const redis_call *c = &s->draft[step->part].call;
        if (!c->err.code && step->answer + 2 >= c->reply->elements)
            return true;
    }
    return false;
}

int64_t weir__step_now(redis_lane *s, const redis_task *t, size_t i)
{
    return weir__reply_int(s->draft[s->step[t->first + i].part].call.reply->element[0]);
}

/* Lua's large numbers come as text: Redis cuts what is beyond 2^53. */
int64_t weir__reply_int(const redisReply *r)
{
    if (r->type == REDIS_REPLY_INTEGER)
        return r->integer;
    return r->type == REDIS_REPLY_STRING ? strtoll(r->str, NULL, 10) : 0;
}

uint64_t weir__reply_id(const redisReply *r)
{
    uint64_t id = 0;
    for (size_t i = 0; r->type == REDIS_REPLY_STRING && i < (size_t)r->len; i++)
        id = id << 8 | (unsigned char)r->str[i];
    return id;
}

mp_slice weir__reply_text(const redisReply *r)
{
    if (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS)
        return (mp_slice){ r->str, (size_t)r->len };
    return (mp_slice){ "", 0 };
}

weir_code weir__jobs_of(const redisReply *r, weir_job **jobs, size_t *n, size_t room,
                        weir_error *err)
{
    for (size_t i = 0; i + 2 < r->elements && *n < room; i += 3) {
        mp_slice  run = weir__reply_text(r->element[i + 1]);
        mp_slice  spec = weir__reply_text(r->element[i + 2]);
        uint64_t  id = weir__reply_id(r->element[i]);
        weir_code rc = weir__record_get(&jobs[*n], id, run, spec, NULL, err);
        if (rc)
            return rc;
        (*n)++;
    }
    return WEIR_OK;
}
