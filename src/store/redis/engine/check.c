/* check.c - is what is derived from jobs as it should be? The check walks every key that has an
 * entry for each job with HSCAN or ZSCAN. The script examines some hundreds of entries in one step;
 * other calls are served between the steps. */
#include "store/redis/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/results.h"

enum { CHUNK = 500 };

typedef struct walk {
    redis_lane      *s;
    weir_report      *report;
    uint32_t          part;
    const redis_walk *key;
    bool              mend;
    int64_t           now;
    weir_error       *err;
} walk;

/* Send a chunk of fields or members to the script, from that place on; their lines go to the
 * report.
 * *done: how many of them were looked at. */
static weir_code look_at_some(walk *w, const redisReply *chunk, size_t from, size_t *done)
{
    redis_task  t = { 0 };
    redis_lane *s = w->s;
    size_t       n = chunk->elements / 2 - from; /* each with its value or score */
    bool         jobs = !w->key->number;
    weir__calls_reset(s);
    weir_buf *b = weir__step(s, &t, w->part, jobs ? 'V' : 'W', n + (jobs ? 1 : 2));
    weir__resp_text(b, w->mend ? "1" : "0");
    if (!jobs)
        weir__resp_int(b, w->key->number);
    for (size_t i = from; i < from + n; i++) {
        mp_slice member = weir__reply_text(chunk->element[2 * i]);
        weir__resp_bytes(b, member.at, member.len);
    }
    weir__calls_run(s, w->now, w->mend);
    const redisReply *r = weir__step_answer(s, &t, 0, w->err);
    if (!r)
        return w->err->code;
    *done = n;
    if (jobs && r->elements)
        w->report->jobs += (size_t)weir__reply_int(r->element[0]);
    for (size_t i = jobs; i < r->elements; i++) {
        mp_slice line = weir__reply_text(r->element[i]);
        if (r->element[i]->type == REDIS_REPLY_INTEGER)
            *done = (size_t)r->element[i]->integer;
        else if (!weir__report_line(w->report, "%.*s", (int)line.len, line.at))
            return weir_fail(w->err, WEIR_ENOMEM, "check: out of memory");
    }
    return WEIR_OK;
}

static weir_code look_at(walk *w, const redisReply *chunk)
{
    weir_code rc = WEIR_OK;
    for (size_t from = 0, done = 1; !rc && done && from < chunk->elements / 2; from += done)
        rc = look_at_some(w, chunk, from, &done);
    return rc;
}

static weir_code walk_key(walk *w)
{
    char key[WEIR_REDIS_MAX_PREFIX + 64], cursor[24] = "0", count[12];
    const redis_part *p = &w->s->part[w->part];
    snprintf(key, sizeof key, "%s%s", p->prefix, w->key->key);
    snprintf(count, sizeof count, "%d", CHUNK);
    do {
        const char *argv[] = { w->key->zset ? "ZSCAN" : "HSCAN", key, cursor, "COUNT", count };
        redisReply *r = weir__link_ask(w->s->link, p->slot, w->err, 5, argv, NULL);
        if (!r)
            return w->err->code;
        weir_code rc = WEIR_OK;
        if (r->type == REDIS_REPLY_ARRAY && r->elements == 2) {
            snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
            if (r->element[1]->elements)
                rc = look_at(w, r->element[1]);
        } else {
            rc = weir_fail(w->err, WEIR_ECORRUPT, "check: %s gave no answer that can be read",
                           argv[0]);
        }
        freeReplyObject(r);
        if (rc)
            return rc;
    } while (strcmp(cursor, "0") != 0);
    return WEIR_OK;
}

weir_code weir__redis_check(redis_lane *s, weir_op *op)
{
    walk w = { .s = s, .report = weir__report_create(), .mend = op->u.check.mend,
               .now = s->test_clock ? op->now_ms : 0, .err = &op->err };
    op->u.check.report = NULL;
    if (!w.report)
        return weir_fail(&op->err, WEIR_ENOMEM, "check: out of memory");
    for (w.part = 0; !op->err.code && w.part < s->n_parts; w.part++) {
        for (w.key = s->layout->walks; !op->err.code && w.key->key; w.key++)
            walk_key(&w);
    }
    if (op->err.code) {
        weir_report_free(w.report);
        return op->err.code;
    }
    for (size_t i = 0; w.mend && i < w.report->n; i++)
        w.report->mended += !strstr(w.report->line[i], "its data is missing") &&
                            !strstr(w.report->line[i], "cannot be read");
    op->u.check.report = w.report;
    return WEIR_OK;
}
