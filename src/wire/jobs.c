/* jobs.c - jobs, and what is to become one, as JSON: see wire.h. */
#include <string.h>

#include "core/job.h"
#include "core/job_fields.h"
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

static void put_backoff(weir_buf *b, const char *head, const weir_backoff *f)
{
    const char *name = weir_backoff_name(f->kind);
    if (f->kind == WEIR_IMMEDIATE && !f->delay_ms && !f->max_ms && !f->jitter_pct)
        return;
    weir__buf_str(b, head);
    weir__wire_text(b, "{\"type\":", name, strlen(name));
    weir__wire_int(b, ",\"delay\":", f->delay_ms);
    int_if(b, ",\"maxDelay\":", f->max_ms);
    int_if(b, ",\"jitter\":", f->jitter_pct);
    weir__buf_char(b, '}');
}

static void raw_if(weir_buf *b, const char *name, const char *json, size_t len)
{
    if (json)
        weir__wire_raw(b, name, json, len ? len : strlen(json));
}

/* How a member is written, by its kind. The type is the first. */
#define PUT_TYPE(name, member)     weir__wire_text(b, "{" name, s->member, strlen(s->member));
#define PUT_PRIORITY(name, member) int_if(b, "," name, s->member);
#define PUT_COUNT                  PUT_PRIORITY
#define PUT_MS                     PUT_PRIORITY
#define PUT_MOMENT                 PUT_PRIORITY
#define PUT_FLAG(name, member)     weir__wire_flag(b, "," name, s->member);
#define PUT_UNIQUE(name, member)   text_if(b, "," name, s->member);
#define PUT_KEYS                   PUT_UNIQUE
#define PUT_JSON(name, member)     raw_if(b, "," name, s->member, s->member##_len);
#define PUT_VALUES                 PUT_JSON
#define PUT_BACKOFF(name, member)  put_backoff(b, "," name, &s->member);

void weir__wire_spec(weir_buf *b, const weir_spec *s)
{
#define ROW(X, shape, member, kind, name) PUT_##kind("\"" name "\":", member)
    WEIR_SPEC_FIELDS(ROW, )
#undef ROW
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
