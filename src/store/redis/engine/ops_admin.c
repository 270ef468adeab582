/* ops_admin.c - the operations that read a job, decide, and put it back: update (ops_work.c and
 * tick.c use the reading and putting, too). Also remove, configure, and the words by which jobs are
 * found. */
#include "store/redis/engine/engine.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/search.h"
#include "core/tick.h"
#include "store/answers.h"

void weir__task_fail(redis_task *t, const weir_error *err)
{
    t->op->err = *err;
    t->over = true;
}

void weir__task_drop(redis_task *t)
{
    weir_job_free(t->seen);
    t->seen = NULL;
    weir__buf_fini(&t->old_run);
    weir__buf_fini(&t->old_spec);
    weir__effects_fini(&t->effects);
}

/* ---- look ---- */

void weir__task_look(redis_lane *s, redis_task *t, uint64_t id)
{
    weir__task_drop(t);
    weir_buf *b = weir__step(s, t, weir__part_of(s, id), 'G', 2);
    weir__resp_text(b, "0");
    weir__resp_int(b, (int64_t)id);
}

weir_code weir__task_seen(redis_lane *s, redis_task *t, uint64_t id)
{
    weir_error        err = { 0 };
    const redisReply *r = weir__step_answer(s, t, 0, &err);
    if (r && r->elements == 1 && r->element[0]->elements == 2) {
        mp_slice run = weir__reply_text(r->element[0]->element[0]);
        mp_slice spec = weir__reply_text(r->element[0]->element[1]);
        t->now = weir__step_now(s, t, 0);
        weir__buf_add(&t->old_run, run.at, run.len);
        weir__buf_add(&t->old_spec, spec.at, spec.len);
        weir__record_get(&t->seen, id, run, spec, &t->beside, &err);
        if (!err.code && (t->old_run.failed || t->old_spec.failed))
            weir_fail(&err, WEIR_ENOMEM, "job: out of memory");
    }
    if (err.code)
        weir__task_fail(t, &err);
    return err.code;
}

/* ---- put ---- */

static void put_events(weir_buf *out, const weir_effects *e, const weir_job *j)
{
    weir__buf_clear(out);
    for (uint32_t i = 0; i < e->n_events; i++) {
        weir_event event;
        weir__effects_event(e, i, j, 0, &event);
        weir__record_event(out, &event);
    }
}

void weir__put_step(redis_lane *s, redis_task *t, redis_put *p, const weir_effects *e)
{
    const weir_job *j = p->j;
    weir_buf       *b = weir__step(s, t, weir__part_of(s, j->id), 'P', 13);
    weir_buf       *tmp = &s->scratch;
    bool            new_data = e->texts & WEIR__NEW(data), has_line = e->log.len > 0;
    weir__resp_int(b, (int64_t)j->id);
    weir__resp_bytes(b, p->old_run.at, p->old_run.len);
    weir__resp_bytes(b, p->old_spec.at, p->old_spec.len);
    if (new_data)
        p->beside.data = weir__record_holds(s->layout, j->data_len);
    if (has_line)
        p->beside.lines++;
    bool apart = new_data && !p->beside.data;
    weir__buf_clear(tmp);
    weir__run_put(tmp, j, p->beside);
    weir__resp_bytes(b, tmp->data, tmp->len);
    weir__buf_clear(tmp);
    weir__spec_put(tmp, j, p->beside.data);
    weir__resp_bytes(b, tmp->data, tmp->len);
    weir__resp_bytes(b, apart ? j->data : "", apart ? j->data_len : 0);
    weir__resp_text(b, new_data ? "1" : "0");
    weir__resp_int(b, e->failed);
    weir__resp_bytes(b, has_line ? e->log.data : "", e->log.len);
    weir__buf_clear(tmp);
    if (j->search && new_data)
        weir__words_of_data(tmp, j->data, j->data_len, j->search_keys);
    else if (j->search && has_line)
        weir__words_of_text(tmp, e->log.data, e->log.len);
    weir__resp_bytes(b, tmp->len ? tmp->data : "", tmp->len);
    put_events(tmp, e, j);
    weir__resp_bytes(b, tmp->len ? tmp->data : "", tmp->len);
    weir__resp_int(b, weir__effects_start(e) ? j->lease_until - j->started_at : 0);
    weir__resp_text(b, p->takes ? "1" : "0");
    if (tmp->failed || !weir__effects_ok(e))
        s->failed = true;
}

void weir__put_seen(redis_lane *s, redis_task *t)
{
    redis_put p = { .old_run = weir__buf_slice(&t->old_run),
                    .old_spec = weir__buf_slice(&t->old_spec), .j = t->seen, .beside = t->beside,
                    .takes = t->choosing != NULL };
    weir__put_step(s, t, &p, &t->effects);
}

/* ---- words ---- */

static int compare_slices(const void *a, const void *b)
{
    const mp_slice *x = a, *y = b;
    int             d = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
    return d ? d : x->len < y->len ? -1 : x->len > y->len;
}

/* Each word once, in lower case. `text` is changed. */
static void put_words(weir_buf *out, char *text, size_t len)
{
    size_t    n = 0, cap = 0, pos = 0, at, word;
    mp_slice *words = NULL;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)((unsigned char)text[i] < 128 ? tolower((unsigned char)text[i]) : text[i]);
    while (weir__search_word(text, len, &pos, &at, &word)) {
        if (!weir__grow(&words, &cap, n + 1, sizeof *words)) {
            out->failed = true;
            break;
        }
        words[n++] = (mp_slice){ text + at, word };
    }
    if (n)
        qsort(words, n, sizeof *words, compare_slices);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!kept || compare_slices(&words[kept - 1], &words[i]) != 0)
            words[kept++] = words[i];
    }
    weir__mp_array(out, kept);
    for (size_t i = 0; i < kept; i++)
        weir__mp_text(out, words[i].at, words[i].len);
    free(words);
}

void weir__words_of_data(weir_buf *out, const char *data, size_t len, const char *keys)
{
    weir_buf text = { 0 };
    if (!weir__search_text(&text, data, len, keys) || text.failed)
        out->failed = true;
    else
        put_words(out, text.data, text.len);
    weir__buf_fini(&text);
}

void weir__words_of_text(weir_buf *out, const char *line, size_t len)
{
    weir_buf text = { 0 };
    weir__buf_add(&text, line, len);
    if (text.failed)
        out->failed = true;
    else
        put_words(out, text.data, text.len);
    weir__buf_fini(&text);
}

/* ---- update ---- */

bool weir__redis_update_look(redis_lane *s, redis_task *t)
{
    weir__task_look(s, t, t->op->u.update.id);
    return true;
}

void weir__redis_update_seen(redis_lane *s, redis_task *t)
{
    weir_op_update *u = &t->op->u.update;
    if (weir__task_seen(s, t, u->id))
        return;
    if (!t->seen)
        weir__no_job_of(&t->op->err, u->id, u->change.delivery);
    if (t->seen)
        u->old_state = t->seen->state;
    t->over = !t->seen || weir__job_update(t->seen, &u->change, u->from, t->now, &t->effects,
                                           &t->op->err);
}

void weir__redis_update_act(redis_lane *s, redis_task *t)
{
    weir__put_seen(s, t);
}

static void being_taken(weir_error *err, uint64_t id)
{
    weir_fail(err, WEIR_ESTATE, "job %" PRIu64 ": a worker of Kue is just taking it", id);
}

void weir__redis_update_end(redis_lane *s, redis_task *t)
{
    weir_op_update   *u = &t->op->u.update;
    const redisReply *r = weir__step_answer(s, t, 0, &t->op->err);
    int64_t           answer = r ? weir__reply_int(r) : 1;
    t->over = answer != 0;                       /* 0: it was changed meanwhile: look again */
    if (answer == 2)
        being_taken(&t->op->err, u->id);
    else if (answer < 0)
        weir__key_taken(&t->op->err, u->id, (uint64_t)-answer);
    else if (r)
        u->new_state = t->seen->state;
}

/* ---- remove, configure ---- */

void weir__redis_remove_act(redis_lane *s, redis_task *t)
{
    uint64_t id = t->op->u.remove.id;
    weir__resp_int(weir__step(s, t, weir__part_of(s, id), 'E', 1), (int64_t)id);
}

void weir__redis_remove_end(redis_lane *s, redis_task *t)
{
    const redisReply *r = weir__step_answer(s, t, 0, &t->op->err);
    t->over = true;
    int64_t answer = r ? weir__reply_int(r) : 1;
    if (answer == 2)
        being_taken(&t->op->err, t->op->u.remove.id);
    else if (answer != 1)
        weir__no_job(&t->op->err, t->op->u.remove.id);
}

/* Every partition keeps the settings of every type. */
/* In all partitions but the first, then in the first, whose function emits the event: workers that
 * look again because a type was resumed find it resumed everywhere. */
void weir__redis_configure_act(redis_lane *s, redis_task *t)
{
    uint32_t first = s->n_parts > 1 && !t->finished ? 1 : 0, end = first ? s->n_parts : 1;
    const weir_op_configure *c = &t->op->u.configure;
    weir__buf_clear(&s->scratch);
    if (c->settings) {
        weir_settings kept = weir__settings_in(c->settings, !s->layout->keeps_for_ever);
        weir__record_settings(&s->scratch, &kept);
    }
    for (uint32_t part = first; part < end; part++) {
        weir_buf *b = weir__step(s, t, part, 'C', 3);
        weir__resp_text(b, c->type);
        weir__resp_text(b, !c->set_paused ? "" : c->paused ? "1" : "0");
        weir__resp_bytes(b, s->scratch.len ? s->scratch.data : "", s->scratch.len);
    }
}

void weir__redis_configure_end(redis_lane *s, redis_task *t)
{
    weir_error err, why = { 0 };
    size_t     n = t->finished ? s->n_parts - 1 : 0;
    for (size_t i = 0; i < t->n; i++) {
        if (weir__step_answer(s, t, i, &err))
            n++;
        else
            why = err;
    }
    t->finished = true;
    t->over = why.code || n == s->n_parts;
    if (why.code && n)
        weir_fail(&t->op->err, WEIR_EUNKNOWN, "done in %zu of %u partitions: %s", n, s->n_parts,
                  why.msg);
    else if (why.code)
        t->op->err = why;
}
