/* kue_json.c - a job as Kue shows it and as Vert.x Kue shows it. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "server/kue/kue.h"

/* ---- members ---- */

static void member(weir_buf *b, const char *name)
{
    if (b->len && b->data[b->len - 1] != '{')
        weir__buf_char(b, ',');
    weir__buf_printf(b, "\"%s\":", name);
}

static void number(weir_buf *b, const char *name, int64_t n)
{
    member(b, name);
    weir__buf_int(b, n);
}

static void text(weir_buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    member(b, name);
    weir__json_string(b, value, strlen(value));
}

static void json(weir_buf *b, const char *name, const char *value, size_t len)
{
    if (!value)
        return;
    member(b, name);
    srv_json_compact(b, value, len);
}

/* A number of Kue's hash, which comes back as text, if it is there at all. */
static void text_number(weir_buf *b, const char *name, int64_t n)
{
    if (!n)
        return;
    member(b, name);
    weir__buf_printf(b, "\"%" PRId64 "\"", n);
}

/* ---- Kue ---- */

void srv_kue_job(weir_buf *b, const weir_job *j, const char *id)
{
    weir__buf_char(b, '{');
    if (id)
        text(b, "id", id);
    else
        number(b, "id", (int64_t)j->id);
    text(b, "type", j->type);
    json(b, "data", j->data, j->data_len);
    json(b, "result", j->result, j->result_len);
    number(b, "priority", j->priority);
    if (j->progress)
        text_number(b, "progress", j->progress);
    else
        number(b, "progress", 0);
    json(b, "progress_data", j->progress_data, j->progress_data_len);
    text(b, "state", weir_state_name(j->state));
    text(b, "error", j->error);
    text_number(b, "created_at", j->created_at);
    text_number(b, "promote_at", j->promote_at);
    text_number(b, "updated_at", j->updated_at);
    text_number(b, "failed_at", j->failed_at);
    text_number(b, "started_at", j->started_at);
    if (j->state == WEIR_STATE_COMPLETE) {            /* 0 ms is a duration, too */
        member(b, "duration");
        weir__buf_printf(b, "\"%" PRId64 "\"", j->duration_ms);
    }
    text_number(b, "delay", j->delay_ms);
    text(b, "workerId", j->worker);
    text_number(b, "ttl", j->ttl_ms);
    weir__buf_printf(b, ",\"attempts\":{\"made\":%" PRId32 ",\"remaining\":%" PRId32
                        ",\"max\":%" PRId32 "}}",
                     j->attempts, j->max_attempts - j->attempts, j->max_attempts);
}

/* ---- Vert.x Kue ---- */

static void upper(weir_buf *b, const char *name, const char *value)
{
    member(b, name);
    weir__buf_char(b, '"');
    for (; *value; value++)
        weir__buf_char(b, (char)toupper((unsigned char)*value));
    weir__buf_char(b, '"');
}

const char *srv_vertx_priority(int32_t priority)
{
    static const struct {
        int32_t     n;
        const char *name;
    } named[] = {
        { WEIR_PRIORITY_CRITICAL, "CRITICAL" }, { WEIR_PRIORITY_HIGH, "HIGH" },
            { WEIR_PRIORITY_MEDIUM, "MEDIUM" },
        { WEIR_PRIORITY_NORMAL, "NORMAL" },     { WEIR_PRIORITY_LOW, "LOW" },
    };
    size_t best = 0;
    for (size_t i = 1; i < sizeof named / sizeof *named; i++) {
        if (llabs((long long)priority - named[i].n) < llabs((long long)priority - named[best].n))
            best = i;
    }
    return named[best].name;
}

static void vertx_backoff(weir_buf *b, const weir_backoff *f)
{
    if (f->kind == WEIR_BACKOFF_NONE)
        return;
    member(b, "backoff");
    weir__buf_printf(b, "{\"type\":\"%s\"", weir_backoff_name(f->kind));
    number(b, "delay", f->delay_ms);
    if (f->max_ms)
        number(b, "maxDelay", f->max_ms);
    weir__buf_char(b, '}');
}

const char *srv_vertx_address(const weir_job *j, size_t *len)
{
    static const char NAME[] = "\"address_id\"";
    weir_json_walk    w;
    weir_json_piece   name, value;
    if (!j->values || !weir__json_open(&w, (weir_json_piece){ j->values, j->values_len }))
        return NULL;
    while (weir__json_next(&w, &name, &value)) {
        if (name.len != strlen(NAME) || memcmp(name.text, NAME, name.len) != 0)
            continue;
        *len = value.len;
        return value.text;
    }
    return NULL;
}

void srv_vertx_job(weir_buf *b, const weir_job *j)
{
    char        id[24];
    int         digits = snprintf(id, sizeof id, "%" PRIu64, j->id);
    size_t      len = 0;
    const char *address = srv_vertx_address(j, &len);
    weir__buf_char(b, '{');
    json(b, "address_id", address, len);
    /* A success is not among the attempts there. */
    number(b, "attempts", j->attempts - (j->state == WEIR_STATE_COMPLETE && j->attempts > 0));
    vertx_backoff(b, &j->backoff);
    number(b, "created_at", j->created_at);
    json(b, "data", j->data, j->data_len);
    number(b, "delay", j->delay_ms);
    number(b, "duration", j->duration_ms);
    text(b, "error", j->error);
    number(b, "failed_at", j->failed_at);
    number(b, "id", (int64_t)j->id);
    number(b, "max_attempts", j->max_attempts);
    text(b, "priority", srv_vertx_priority(j->priority));
    number(b, "progress", j->progress);
    number(b, "promote_at", j->promote_at);
    member(b, "removeOnComplete");
    weir__buf_str(b, j->remove_on_complete ? "true" : "false");
    json(b, "result", j->result, j->result_len);
    number(b, "started_at", j->started_at);
    upper(b, "state", weir_state_name(j->state));
    number(b, "ttl", j->ttl_ms);
    text(b, "type", j->type);
    number(b, "updated_at", j->updated_at);
    member(b, "zid");
    weir__buf_printf(b, "\"%02d|%s\"}", digits, id);
}

/* ---- white space ---- */

static bool space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The length of the run that may be copied as it is: a string, or what is outside of strings up to
 * the next white space or sign. */
static size_t run(const char *s, const char *end)
{
    const char *at = s;
    if (*at == '"') {
        for (at++; *at != '"'; at++)
            at += *at == '\\';
        return (size_t)(at + 1 - s);
    }
    while (at < end && !space(*at) && !strchr("\"{}[],:", *at))
        at++;
    return (size_t)(at - s);
}

void srv_json_compact(weir_buf *out, const char *s, size_t len)
{
    for (const char *end = s + len; s < end;) {
        size_t n = run(s, end);
        if (n)
            weir__buf_add(out, s, n);
        else if (!space(*s))
            weir__buf_char(out, *s);
        s += n ? n : 1;
    }
}

typedef struct printer {
    weir_buf *out;
    weir_buf  open;             /* '{' and '[' that are not closed yet */
    size_t    indent;
} printer;

static void line(printer *p)
{
    weir__buf_char(p->out, '\n');
    for (size_t i = 0; i < p->indent; i++)
        weir__buf_str(p->out, "  ");
}

static bool in_object(const printer *p)
{
    return p->open.len && p->open.data[p->open.len - 1] == '{';
}

static void print_open(printer *p, char c)
{
    weir__buf_char(p->out, c);
    weir__buf_char(&p->open, c);
    if (c == '{') {
        p->indent++;
        line(p);
    } else {
        weir__buf_char(p->out, ' ');
    }
}

static void print_close(printer *p, char c)
{
    if (in_object(p)) {
        p->indent--;
        line(p);
    } else {
        weir__buf_char(p->out, ' ');
    }
    if (p->open.len)
        p->open.len--;
    weir__buf_char(p->out, c);
}

static void print_sign(printer *p, char c)
{
    if (c == '{' || c == '[') {
        print_open(p, c);
    } else if (c == '}' || c == ']') {
        print_close(p, c);
    } else if (c == ':') {
        weir__buf_str(p->out, " : ");
    } else {
        weir__buf_char(p->out, c);
        if (in_object(p))
            line(p);
        else
            weir__buf_char(p->out, ' ');
    }
}

/* "{ }" and "[ ]" stay on one line. } and ] are two behind { and [. */
static bool empty(const char *s, const char *end)
{
    const char *at = s + 1;
    while (at < end && space(*at))
        at++;
    return (*s == '{' || *s == '[') && at < end && *at == *s + 2;
}

/* Jackson's printer gives each member of an object a line of its own; arrays stay on theirs, and
 * do not indent. */
void srv_json_pretty(weir_buf *out, const char *s, size_t len)
{
    printer p = { .out = out };
    for (const char *end = s + len; s < end;) {
        size_t n = run(s, end);
        if (n) {
            weir__buf_add(out, s, n);
            s += n;
        } else if (empty(s, end)) {
            weir__buf_str(out, *s == '{' ? "{ }" : "[ ]");
            s = strchr(s, *s + 2) + 1;
        } else {
            if (!space(*s))
                print_sign(&p, *s);
            s++;
        }
    }
    out->failed = out->failed || p.open.failed;
    weir__buf_fini(&p.open);
}
