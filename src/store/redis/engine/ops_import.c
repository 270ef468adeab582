/* ops_import.c - jobs that come from another store, as they are there: one step each. */
#include "store/redis/engine/engine.h"

#include <inttypes.h>
#include <string.h>

#include "core/values.h"
#include "store/answers.h"

static bool waits_with_key(const weir_job *j)
{
    return j->unique && !weir__finished(j->state);
}

/* Where a job goes: its id says so, or else its key. */
static uint32_t part_of(redis_lane *s, const weir_incoming *in)
{
    const weir_job *j = in->job;
    if (!in->new_id && j->id)
        return weir__part_of(s, j->id);
    return waits_with_key(j) ? weir__part_of_key(s, j->type, j->unique)
                             : weir__part_to_fill(s, 1);
}

/* A key is looked for in its own partition alone. */
static bool key_is_elsewhere(const redis_lane *s, const weir_job *j, uint32_t part)
{
    return waits_with_key(j) && weir__part_of_key(s, j->type, j->unique) != part;
}

static void put_words(redis_lane *s, const weir_job *j, const weir_incoming *in)
{
    weir_buf *b = &s->scratch, text = { 0 };
    weir__buf_clear(b);
    if (!j->search)
        return;
    weir__buf_str(&text, j->error ? j->error : "");
    for (size_t i = 0; i < in->n_lines; i++) {
        weir__buf_char(&text, ' ');
        weir__buf_str(&text, in->lines[i].text);
    }
    weir__mp_array(b, 2);
    weir__words_of_data(b, j->data, j->data_len, j->search_keys);
    weir__words_of_text(b, text.len ? text.data : "", text.len);
    b->failed = b->failed || text.failed;
    weir__buf_fini(&text);
}

static void put_line(redis_lane *s, weir_buf *b, const weir_line *line)
{
    weir__buf_clear(&s->scratch);
    weir__buf_printf(&s->scratch, "%" PRIu64 " %" PRId64 " ", line->n, line->at);
    weir__buf_str(&s->scratch, line->text);
    weir__resp_bytes(b, s->scratch.data, s->scratch.len);
}

static void import_step(redis_lane *s, redis_task *t, const weir_incoming *in, uint32_t part)
{
    weir_job  j = *in->job;
    weir_buf  values = { 0 };
    bool      keep = !in->new_id && j.id;
    weir_buf *b = weir__step(s, t, part, 'M', 6 + in->n_lines);
    weir__job_import(&j, keep ? j.id : 0, t->op->now_ms);
    if (!weir__job_values(&j, &values))
        s->failed = true;
    weir__resp_text(b, keep ? "1" : "0");
    weir__resp_int(b, (int64_t)j.id);
    weir__buf_clear(&s->scratch);
    redis_beside beside = { .lines = in->n_lines ? in->lines[in->n_lines - 1].n : 0,
                            .data = weir__record_holds(s->layout, j.data_len) };
    weir__run_put(&s->scratch, &j, beside);
    weir__resp_bytes(b, s->scratch.data, s->scratch.len);
    weir__buf_clear(&s->scratch);
    weir__spec_put(&s->scratch, &j, beside.data);
    weir__resp_bytes(b, s->scratch.data, s->scratch.len);
    weir__buf_fini(&values);
    weir__resp_bytes(b, j.data, beside.data ? 0 : j.data_len);
    put_words(s, &j, in);
    weir__resp_bytes(b, s->scratch.len ? s->scratch.data : "", s->scratch.len);
    for (size_t i = 0; i < in->n_lines; i++)
        put_line(s, b, &in->lines[i]);
}

void weir__redis_import_act(redis_lane *s, redis_task *t)
{
    weir_op_import *m = &t->op->u.import;
    for (size_t i = 0; i < m->n; i++) {
        const weir_incoming *in = &m->jobs[i];
        uint32_t             part = part_of(s, in);
        m->out[i] = (weir_imported){ 0 };
        m->out[i].id_taken = key_is_elsewhere(s, in->job, part);
        if (m->out[i].id_taken)
            weir_fail(&m->out[i].err, WEIR_ESTATE, "job %" PRIu64 ": its unique key belongs to "
                      "another partition here than its id; a new id would do", in->job->id);
        else
            import_step(s, t, in, part);
    }
}

static void imported(const weir_incoming *in, const redisReply *r, weir_imported *out)
{
    enum { PUT, THERE, OTHER, KEY };
    uint64_t id = (uint64_t)weir__reply_int(r->element[1]);
    int64_t  answer = weir__reply_int(r->element[0]);
    if (answer == OTHER)
        out->id_taken = weir__id_taken(&out->err, id);
    else if (answer == KEY)
        weir__key_taken(&out->err, in->job->id, id);
    else
        out->state = (weir_state)weir__reply_int(r->element[2]);
    out->id = answer != KEY ? id : in->new_id ? 0 : in->job->id;
    out->existed = answer == THERE;
}

void weir__redis_import_end(redis_lane *s, redis_task *t)
{
    weir_op_import *m = &t->op->u.import;
    size_t          step = 0, lost = 0;
    t->over = true;
    for (size_t i = 0; i < m->n; i++) {
        if (m->out[i].err.code)
            continue;
        weir_error        err = { 0 };
        const redisReply *r = weir__step_answer(s, t, step++, &err);
        if (r && (r->type != REDIS_REPLY_ARRAY || r->elements != 3))
            weir_fail(&err, WEIR_ECORRUPT, "redis: the function gave no answer that can be read");
        if (err.code)
            m->out[i].err = err;
        else
            imported(&m->jobs[i], r, &m->out[i]);
        lost += err.code != WEIR_OK;
        if (lost == t->n)               /* of no job is it known: then the operation has failed */
            weir__task_fail(t, &err);
    }
}
