/* jobs.c - jobs, and what is to become one, as JSON: see wire.h. */
#include <string.h>

#include "core/job.h"
#include "core/results.h"
#include "wire/inner.h"

/* ---- what to add ---- */

static void int_if(weir_buf *b, const char *name, int64_t n)
{
    if (n)
        weir__wire_int(b, name, n);
}

static void text_if(weir_buf *b, const char *name, const char *text)
{
    if (text)
        weir__wire_text(b, name, text, strlen(text));
}

static void put_backoff(weir_buf *b, const weir_backoff *f)
{
    const char *name = weir_backoff_name(f->kind);
    if (f->kind == WEIR_IMMEDIATE && !f->delay_ms && !f->max_ms && !f->jitter_pct)
        return;
    weir__wire_text(b, ",\"backoff\":{\"type\":", name, strlen(name));
    weir__wire_int(b, ",\"delay\":", f->delay_ms);
    int_if(b, ",\"maxDelay\":", f->max_ms);
    int_if(b, ",\"jitter\":", f->jitter_pct);
    weir__buf_char(b, '}');
}

void weir__wire_spec(weir_buf *b, const weir_spec *s)
{
    size_t len = s->data_len || !s->data ? s->data_len : strlen(s->data);
    weir__wire_text(b, "{\"type\":", s->type, strlen(s->type));
    if (s->data)
        weir__wire_raw(b, ",\"data\":", s->data, len);
    if (s->values)
        weir__wire_raw(b, ",\"values\":", s->values,
                       s->values_len ? s->values_len : strlen(s->values));
    int_if(b, ",\"priority\":", s->priority);
    int_if(b, ",\"attempts\":", s->attempts);
    int_if(b, ",\"delay\":", s->delay_ms);
    int_if(b, ",\"run_at\":", s->run_at);
    put_backoff(b, &s->backoff);
    int_if(b, ",\"ttl\":", s->ttl_ms);
    int_if(b, ",\"deadline\":", s->deadline_at);
    text_if(b, ",\"unique\":", s->unique);
    int_if(b, ",\"max_lost\":", s->max_lost);
    weir__wire_flag(b, ",\"removeOnComplete\":", s->remove_on_complete);
    weir__wire_flag(b, ",\"search\":", s->search);
    text_if(b, ",\"search_keys\":", s->search_keys);
    weir__buf_char(b, '}');
}

/* ---- jobs ---- */

void weir__wire_jobs(weir_buf *b, weir_job *const *jobs, size_t n)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < n; i++) {
        weir__wire_next(b, i);
        weir__job_json(b, jobs[i]);
    }
    weir__buf_char(b, ']');
}

/* How many jobs an operation can answer with. */
static size_t most_jobs(const weir_op *op)
{
    switch (op->kind) {
    case WEIR_OP_TAKE:   return op->u.take.n;
    case WEIR_OP_FINISH: return op->u.finish.next.n;
    case WEIR_OP_LIST:   return op->u.list.query.limit;
    default:             return 0;
    }
}

weir_code weir__wire_as_page(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    const wire_told *t = (const wire_told *)((char *)to - TOLD(page));
    weir_page      **page = to;
    weir_json_walk   w;
    weir_json_piece  none, one;
    size_t           most = most_jobs(t->op);
    (void)f;
    *page = weir__page_create(most);
    if (!*page)
        return weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
    if (!weir__json_open(&w, value) || w.object)
        return weir__not_a(in, value, "a list");
    while (weir__json_begin(&w, &none, &one)) {
        weir_read_job j = { 0 };
        if ((*page)->n == most)
            return weir__wire_nonsense(in, "more jobs than were asked for");
        if (weir__as_object(in, &(weir_field){ .fields = weir__job_fields }, one, &j))
            return in->err.code;
        weir__wire_job_init(&j.job);
        weir_job *copy = weir__job_copy(&j.job);
        if (!copy)
            return weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
        (*page)->job[(*page)->n++] = copy;
        w.at = in->end;
    }
    in->end = none.text + 1;
    return WEIR_OK;
}

void weir__wire_lines(weir_buf *b, const char *name, const weir_line *lines, size_t n)
{
    weir__buf_str(b, name);
    weir__buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        weir__wire_next(b, i);
        weir__wire_id(b, "{\"n\":", lines[i].n);
        weir__wire_int(b, ",\"at\":", lines[i].at);
        weir__wire_text(b, ",\"text\":", lines[i].text, strlen(lines[i].text));
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}
