/* tick.c - what time does to jobs. The function says what is due, sort by sort (layout.h, K); the
 * life cycle decides here; the function puts. Each partition goes its own pace, all at once. */
#include "store/redis/engine/engine.h"

#include <stdlib.h>

#include "base/json.h"

/* The function does sorts 4 and 5 by itself, as one. */
static const weir_due DONE = WEIR_DUE_FINISHED + 1;

/* A partition's way through a TICK. */
typedef struct round {
    redis_task task;                    /* its steps: some puts, then K */
    weir_due   sort;                    /* to ask for next; DONE: it is through */
    int64_t    next_at;
    weir_buf   words;                   /* arguments of a step Q, and how many they are */
    size_t     n_words;
} round;

static weir_code put_due(redis_lane *s, round *r, weir_due sort, const redisReply *answer,
                         int64_t now, weir_error *err)
{
    for (size_t i = 1; i + 2 < answer->elements; i += 3) {
        uint64_t  id = weir__reply_id(answer->element[i]);
        redis_put p = { .old_run = weir__reply_text(answer->element[i + 1]),
                        .old_spec = weir__reply_text(answer->element[i + 2]) };
        weir_job *j;
        weir_code rc = weir__record_get(&j, id, p.old_run, p.old_spec, &p.beside, err);
        if (rc)
            return rc;
        p.j = j;
        if (weir__job_is_due(j, sort)) {        /* an index may be a moment older than its jobs */
            weir_effects e;
            weir__job_come_due(j, sort, now, &e);
            weir__put_step(s, &r->task, &p, &e);
            weir__effects_fini(&e);
        }
        weir_job_free(j);
    }
    return WEIR_OK;
}

/* New jobs of Kue's that are to be searched: the words of each. */
static void find_words(redis_lane *s, round *r, const redisReply *list)
{
    r->n_words = list->elements;
    for (size_t i = 0; i < list->elements; i++) {
        mp_slice  text = weir__reply_text(list->element[i]);
        weir_buf *tmp = &s->scratch;
        if (i == 0) {
            weir__resp_int(&r->words, weir__reply_int(list->element[i]));
        } else if (i % 2) {
            weir__resp_bytes(&r->words, text.at, text.len);
        } else {
            weir__buf_clear(tmp);
            if (weir__json_valid(text.at, text.len, WEIR_MAX_DEPTH, NULL, NULL))
                weir__words_of_data(tmp, text.at, text.len, NULL);
            else
                weir__words_of_text(tmp, text.at, text.len);
            weir__resp_bytes(&r->words, tmp->data, tmp->len);
            r->words.failed = r->words.failed || tmp->failed;
        }
    }
}

static void put_words(redis_lane *s, round *r, int64_t now)
{
    if (r->n_words && !r->words.failed) {
        weir__calls_reset(s);
        r->task.n = 0;
        weir_buf *b = weir__step(s, &r->task, 0, 'Q', r->n_words);
        weir__buf_add(b, r->words.data, r->words.len);
        weir__calls_run(s, now, true);          /* if it fails, the next TICK finds them again */
    }
    weir__buf_fini(&r->words);
}

/* The answer of a partition to K, kept while the next call is made of it. */
static weir_code take_in(redis_lane *s, round *r, uint32_t part, weir_op_tick *t, redisReply **kept,
                         int64_t *now, weir_error *err)
{
    for (size_t i = 0; i + 1 < r->task.n; i++) {
        const redisReply *put = weir__step_answer(s, &r->task, i, err);
        if (!put)
            return err->code;
        t->changed += weir__reply_int(put) == 1;
    }
    const redisReply *k = weir__step_answer(s, &r->task, r->task.n - 1, err);
    if (!k)
        return err->code;
    if (!*now)
        *now = weir__step_now(s, &r->task, r->task.n - 1);
    r->sort = k->elements ? (weir_due)(weir__reply_int(k->element[0]) + 1) : DONE;
    if (weir__clock_has_step(s->top, part)) {
        r->sort = WEIR_DUE_LEASE;       /* what is due was said by a clock that was set meanwhile */
        return WEIR_OK;
    }
    if (r->sort == DONE && k->elements == 6 && k->element[5]->elements)
        find_words(s, r, k->element[5]);
    if (r->sort == DONE && k->elements >= 3) {
        mp_slice at = weir__reply_text(k->element[2]);
        if (k->elements > 3)
            weir__clock_count(s->top, part, weir__reply_int(k->element[3]));
        t->changed += (size_t)weir__reply_int(k->element[1]);
        if (k->elements > 4 && weir__reply_int(k->element[4]))
            t->schedules_due = true;
        bool none = k->element[2]->type == REDIS_REPLY_STRING && !at.len;
        r->next_at = none ? INT64_MAX : weir__reply_int(k->element[2]);
    } else {
        redis_draft *p = &s->draft[s->step[r->task.first].part];
        *kept = p->call.reply;                   /* ours now */
        p->call.reply = NULL;
    }
    return WEIR_OK;
}

static weir_code next_call(redis_lane *s, round *r, uint32_t part, const redisReply *kept,
                           size_t limit, int64_t now, weir_error *err)
{
    r->task.n = 0;
    weir__clock_repair(s, &r->task, part);
    if (kept) {
        weir_code rc = put_due(s, r, r->sort - 1, kept->element[kept->elements - 1], now, err);
        if (rc)
            return rc;
    } else if (s->layout->read_foreign) {
        weir__redis_events_foreign_step(s, &r->task, part);
    }
    weir_buf *b = weir__step(s, &r->task, part, 'K', 2);
    weir__resp_int(b, (int64_t)limit);
    weir__resp_int(b, r->sort);
    return WEIR_OK;
}

static weir_code tick(redis_lane *s, round *rounds, redisReply **kept, weir_op *op)
{
    weir_op_tick *t = &op->u.tick;
    int64_t       now = s->test_clock ? op->now_ms : 0;
    for (uint32_t going = s->n_parts; going > 0;) {
        weir__calls_reset(s);
        for (uint32_t i = 0; i < s->n_parts; i++) {
            if (rounds[i].sort < DONE &&
                next_call(s, &rounds[i], i, kept[i], t->limit, now, &op->err))
                return op->err.code;
            freeReplyObject(kept[i]);
            kept[i] = NULL;
        }
        weir__calls_run(s, now, true);
        going = 0;
        for (uint32_t i = 0; i < s->n_parts; i++) {
            if (rounds[i].sort == DONE)
                continue;
            if (take_in(s, &rounds[i], i, t, &kept[i], &now, &op->err))
                return op->err.code;
            going += rounds[i].sort < DONE;
        }
    }
    return WEIR_OK;
}

weir_code weir__redis_tick(redis_lane *s, weir_op *op)
{
    weir_op_tick *t = &op->u.tick;
    round        *rounds = calloc(s->n_parts, sizeof *rounds);
    redisReply  **kept = calloc(s->n_parts, sizeof(redisReply *));
    t->changed = 0;
    t->next_at = INT64_MAX;
    t->schedules_due = false;
    weir__due_begin(s->top);
    if (!rounds || !kept)
        weir_fail(&op->err, WEIR_ENOMEM, "tick: out of memory");
    for (uint32_t i = 0; !op->err.code && i < s->n_parts; i++)
        rounds[i] = (round){ .sort = WEIR_DUE_LEASE, .next_at = INT64_MAX };
    if (!op->err.code)
        tick(s, rounds, kept, op);
    for (uint32_t i = 0; rounds && kept && i < s->n_parts; i++) {
        freeReplyObject(kept[i]);
        put_words(s, &rounds[i], s->test_clock ? op->now_ms : 0);
        if (rounds[i].next_at < t->next_at)
            t->next_at = rounds[i].next_at;
    }
    free(rounds);
    free(kept);
    if (op->err.code && t->changed) {            /* what was done is done; the rest comes next */
        op->err.code = WEIR_OK;
        t->next_at = op->now_ms;
    }
    if (!op->err.code) {
        if (t->next_at < 0)
            t->next_at = INT64_MIN;
        else if (t->next_at != INT64_MAX)
            t->next_at -= atomic_load(&s->top->ahead_ms);
        int64_t look_ms = s->top->url.promotion_ms;
        if (look_ms && t->next_at > op->now_ms + look_ms)
            t->next_at = op->now_ms + look_ms;
        weir__due_end(s->top, t->next_at);
    }
    return op->err.code;
}
