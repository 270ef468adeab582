/* json.c - what requests and answers of operations have in common as JSON: see row.h. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "core/job_fields.h"
#include "core/results.h"
#include "op/row.h"

/* ---- writing ---- */

void weir__put_int(weir_buf *out, const char *name, int64_t n)
{
    weir__buf_str(out, name);
    weir__buf_int(out, n);
}

void weir__put_id(weir_buf *out, const char *name, uint64_t id)
{
    weir__buf_str(out, name);
    weir__buf_uint(out, id);
}

void weir__put_text(weir_buf *out, const char *name, const char *text, size_t len)
{
    weir__buf_str(out, name);
    weir__json_string(out, text, len);
}

void weir__put_state(weir_buf *out, const char *name, weir_state state)
{
    const char *text = weir_state_name(state);
    if (state != WEIR_STATE_ANY)
        weir__put_text(out, name, text, strlen(text));
}

void weir__put_states(weir_buf *out, const char *before, uint32_t states)
{
    for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        if (states & WEIR_BIT(s)) {
            weir__put_state(out, before, s);
            before = ",";
        }
    }
    if (states)
        weir__buf_char(out, ']');
}

void weir__put_flag(weir_buf *out, const char *name, bool flag)
{
    if (!flag)
        return;
    weir__buf_str(out, name);
    weir__buf_str(out, "true");
}

void weir__put_raw(weir_buf *out, const char *name, const char *json, size_t len)
{
    weir__buf_str(out, name);
    weir__buf_add(out, json, len);
}

void weir__put_error(weir_buf *out, const weir_error *err)
{
    const char *name = weir_code_name(err->code);
    weir__put_text(out, ",\"error\":{\"code\":", name, strlen(name));
    weir__put_text(out, ",\"message\":", err->msg, strlen(err->msg));
    if (*err->field)
        weir__put_text(out, ",\"field\":", err->field, strlen(err->field));
    weir__buf_char(out, '}');
}

/* ---- reading ---- */

weir_durability weir__durability_read(const char *name)
{
    for (weir_durability d = WEIR_DURABILITY_DISK; name && d < WEIR_DURABILITY_NONE; d++)
        if (!strcmp(name, weir_durability_name(d)))
            return d;
    return WEIR_DURABILITY_NONE;
}

void *weir__read_room(weir_reader *in, size_t n, size_t size)
{
    void *room = in->alloc(in->ctx, (n ? n : 1) * size);
    if (!room)
        weir__read_no_memory(in);
    return room;
}

weir_code weir__read_no_memory(weir_reader *in)
{
    return weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
}

weir_code weir__read_nonsense(weir_reader *in, const char *what)
{
    return weir_fail(&in->err, WEIR_EIO, "%s", what);
}

typedef struct fault {
    const char *code, *message, *field;
} fault;

weir_code weir__as_error(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    static const weir_field fields[] = {
        WEIR_FIELD("code", weir__as_text, offsetof(fault, code), .needed = true),
        WEIR_FIELD("message", weir__as_text, offsetof(fault, message), .needed = true),
        WEIR_FIELD("field", weir__as_text, offsetof(fault, field)),
        { 0 }
    };
    fault       got = { 0 };
    weir_error *err = to;
    (void)f;
    if (weir__as_object(in, &(weir_field){ .fields = fields }, value, &got))
        return in->err.code;
    weir_code code = WEIR_OK;
    for (weir_code c = WEIR_OK; c < WEIR_CODE_COUNT; c++) {
        if (!strcmp(got.code, weir_code_name(c)))
            code = c;
    }
    weir_fail(err, code, "%s", got.message);
    snprintf(err->field, sizeof err->field, "%s", got.field ? got.field : "");
    return WEIR_OK;
}

/* ---- specs ---- */

static void int_if(weir_buf *b, const char *name, int64_t n)
{
    if (n)
        weir__put_int(b, name, n);
}

static void text_if(weir_buf *b, const char *name, const char *text)
{
    if (text)
        weir__put_text(b, name, text, strlen(text));
}

static void put_backoff(weir_buf *b, const char *head, const weir_backoff *f)
{
    const char *name = weir_backoff_name(f->kind);
    if (f->kind == WEIR_BACKOFF_NONE && !f->delay_ms && !f->max_ms && !f->jitter_pct)
        return;
    weir__buf_str(b, head);
    weir__put_text(b, "{\"type\":", name, strlen(name));
    weir__put_int(b, ",\"delay\":", f->delay_ms);
    int_if(b, ",\"maxDelay\":", f->max_ms);
    int_if(b, ",\"jitter\":", f->jitter_pct);
    weir__buf_char(b, '}');
}

static void raw_if(weir_buf *b, const char *name, const char *json, size_t len)
{
    if (json)
        weir__put_raw(b, name, json, len ? len : strlen(json));
}

/* How a member is written, by its kind. The type is the first. */
#define PUT_TYPE(name, member)     weir__put_text(b, "{" name, s->member, strlen(s->member));
#define PUT_PRIORITY(name, member) int_if(b, "," name, s->member);
#define PUT_COUNT                  PUT_PRIORITY
#define PUT_MS                     PUT_PRIORITY
#define PUT_MOMENT                 PUT_PRIORITY
#define PUT_FLAG(name, member)     weir__put_flag(b, "," name, s->member);
#define PUT_UNIQUE(name, member)   text_if(b, "," name, s->member);
#define PUT_KEYS                   PUT_UNIQUE
#define PUT_JSON(name, member)     raw_if(b, "," name, s->member, s->member##_len);
#define PUT_VALUES                 PUT_JSON
#define PUT_BACKOFF(name, member)  put_backoff(b, "," name, &s->member);

void weir__put_spec(weir_buf *b, const weir_spec *s)
{
#define ROW(X, shape, member, kind, name) PUT_##kind("\"" name "\":", member)
    WEIR_SPEC_FIELDS(ROW, )
#undef ROW
    weir__buf_char(b, '}');
}

/* ---- jobs ---- */

void weir__put_jobs(weir_buf *b, weir_job *const *jobs, size_t n)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < n; i++) {
        weir__put_next(b, i);
        weir__job_json(b, jobs[i]);
    }
    weir__buf_char(b, ']');
}

weir_code weir__as_page(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    const op_answer *a = (const op_answer *)((char *)to - ANSWER(page));
    weir_page      **page = to;
    weir_json_walk   w;
    weir_json_piece  none, one;
    size_t           most = weir__op_row(a->op)->most(a->op);
    (void)f;
    *page = weir__page_create(most);
    if (!*page)
        return weir__read_no_memory(in);
    if (!weir__json_open(&w, value) || w.object)
        return weir__not_a(in, value, "a list");
    while (weir__json_begin(&w, &none, &one)) {
        weir_read_job j = { 0 };
        if ((*page)->n == most)
            return weir__read_nonsense(in, "more jobs than were asked for");
        if (weir__as_object(in, &(weir_field){ .fields = weir__job_fields }, one, &j))
            return in->err.code;
        weir__read_job_defaults(&j.job);
        weir_job *copy = weir__job_copy(&j.job);
        if (!copy)
            return weir__read_no_memory(in);
        (*page)->job[(*page)->n++] = copy;
        w.at = in->end;
    }
    in->end = none.text + 1;
    return WEIR_OK;
}

void weir__put_lines(weir_buf *b, const char *name, const weir_line *lines, size_t n)
{
    weir__buf_str(b, name);
    weir__buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        weir__put_next(b, i);
        weir__put_id(b, "{\"n\":", lines[i].n);
        weir__put_int(b, ",\"at\":", lines[i].at);
        weir__put_text(b, ",\"text\":", lines[i].text, strlen(lines[i].text));
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

/* ---- settings ---- */

#define KEEP(member) offsetof(weir_keep, member)
static const weir_field keep_fields[] = {
    WEIR_FIELD("age", weir__as_int, KEEP(age_ms), .min = WEIR_FOREVER, .max = WEIR_MAX_MS),
    WEIR_FIELD("count", weir__as_int, KEEP(count), .min = 0, .max = INT64_MAX),
    { 0 }
};
#undef KEEP
#define SETTING(member) offsetof(weir_settings, member)
const weir_field weir__settings_fields[] = {
    WEIR_FIELD("keep_complete", weir__as_object, SETTING(keep_complete), .fields = keep_fields),
    WEIR_FIELD("keep_failed", weir__as_object, SETTING(keep_failed), .fields = keep_fields),
    WEIR_FIELD("search", weir__as_bool, SETTING(search)),
    { 0 }
};
#undef SETTING

static void put_keep(weir_buf *b, const char *name, const weir_keep *k)
{
    weir__buf_str(b, name);
    weir__put_int(b, "{\"age\":", k->age_ms);
    weir__put_int(b, ",\"count\":", k->count);
    weir__buf_char(b, '}');
}

void weir__put_settings(weir_buf *b, const weir_settings *s)
{
    put_keep(b, ",\"settings\":{\"keep_complete\":", &s->keep_complete);
    put_keep(b, ",\"keep_failed\":", &s->keep_failed);
    weir__buf_str(b, s->search ? ",\"search\":true}" : ",\"search\":false}");
}
