/* job_parse.c - a job from JSON, with the names of job_json.c.
 *
 * The text is taken apart, not read as a whole: what a job has of JSON itself (data, result,
 * progress data) must come back byte by byte, with all the digits of its numbers. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "core/results.h"

typedef weir_json_piece piece;

enum { MAX_TEXTS = 8, SHOWN = 60 };

typedef struct reader {
    weir_job    j;                  /* points at the text, and at: */
    json_t     *texts[MAX_TEXTS];
    size_t      n_texts;
    weir_lines *log;
    weir_error *err;
} reader;

/* ---- values ---- */

/* What is there instead of what is wanted, for people. */
static weir_code not_a(reader *r, const char *name, piece value, const char *wanted)
{
    return weir_fail(r->err, WEIR_EINVAL, "%s: %.*s%s is not %s", name,
                     (int)(value.len < SHOWN ? value.len : SHOWN), value.text,
                     value.len > SHOWN ? "..." : "", wanted);
}

static weir_code no_memory(reader *r)
{
    return weir_fail(r->err, WEIR_ENOMEM, "job: out of memory");
}

static weir_code read_number(reader *r, const char *name, piece value, int64_t min, int64_t max,
                             int64_t *out)
{
    char digits[24], *end;
    if (value.len >= sizeof digits)
        return not_a(r, name, value, "a whole number that fits");
    memcpy(digits, value.text, value.len);
    digits[value.len] = '\0';
    errno = 0;
    long long n = strtoll(digits, &end, 10);
    if (end == digits || *end)
        return not_a(r, name, value, "a whole number");
    if (errno || n < min || n > max)
        return weir_fail(r->err, WEIR_EINVAL, "%s: %s, must be between %" PRId64 " and %" PRId64,
                         name, digits, min, max);
    *out = n;
    return WEIR_OK;
}

/* The string, as long as *held is. */
static weir_code read_string(reader *r, const char *name, piece value, json_t **held)
{
    json_error_t why;
    *held = NULL;
    if (*value.text != '"')
        return not_a(r, name, value, "a string");
    *held = json_loadb(value.text, value.len, JSON_DECODE_ANY, &why);
    if (*held)
        return WEIR_OK;
    if (json_error_code(&why) == json_error_out_of_memory)
        return no_memory(r);
    return weir_fail(r->err, WEIR_EINVAL, "%s: a zero byte in it", name);
}

static bool is(piece value, const char *text)
{
    return value.len == strlen(text) && !memcmp(value.text, text, value.len);
}

/* ---- members ---- */

typedef struct member member;
struct member {
    const char *name;
    size_t      offset;             /* in weir_job */
    weir_code (*read)(reader *r, const member *m, piece value);
};

static void *place(reader *r, const member *m)
{
    return (char *)&r->j + m->offset;
}

static weir_code read_id(reader *r, const member *m, piece value)
{
    int64_t   n = 0;
    weir_code rc = read_number(r, m->name, value, 0, (int64_t)WEIR_MAX_ID, &n);
    *(uint64_t *)place(r, m) = (uint64_t)n;
    return rc;
}

static weir_code read_delivery(reader *r, const member *m, piece value)
{
    int64_t   n = 0;
    weir_code rc = read_number(r, m->name, value, 0, INT32_MAX, &n);
    *(uint32_t *)place(r, m) = (uint32_t)n;
    return rc;
}

static weir_code read_int(reader *r, const member *m, piece value)
{
    int64_t   n = 0;
    weir_code rc = read_number(r, m->name, value, INT32_MIN, INT32_MAX, &n);
    *(int32_t *)place(r, m) = (int32_t)n;
    return rc;
}

static weir_code read_long(reader *r, const member *m, piece value)
{
    return read_number(r, m->name, value, 0, INT64_MAX, place(r, m));
}

static weir_code read_text(reader *r, const member *m, piece value)
{
    json_t   *held;
    weir_code rc = read_string(r, m->name, value, &held);
    if (rc)
        return rc;
    r->texts[r->n_texts++] = held;
    *(const char **)place(r, m) = json_string_value(held);
    return WEIR_OK;
}

/* The text itself; its length is the member behind it. */
static weir_code read_json(reader *r, const member *m, piece value)
{
    const char **text = place(r, m);
    *text = value.text;
    *(size_t *)(void *)(text + 1) = value.len;
    return WEIR_OK;
}
_Static_assert(offsetof(weir_job, data_len) == offsetof(weir_job, data) + sizeof(char *) &&
                   offsetof(weir_job, result_len) == offsetof(weir_job, result) + sizeof(char *) &&
                   offsetof(weir_job, progress_data_len) ==
                       offsetof(weir_job, progress_data) + sizeof(char *),
               "read_json() sets both");

static weir_code read_flag(reader *r, const member *m, piece value)
{
    bool *to = place(r, m);
    *to = is(value, "true");
    return *to || is(value, "false") ? WEIR_OK : not_a(r, m->name, value, "true or false");
}

static weir_code read_state(reader *r, const member *m, piece value)
{
    for (weir_state s = WEIR_INACTIVE; s < WEIR_STATES; s++) {
        const char *name = weir_state_name(s);
        size_t      len = strlen(name);
        if (value.len == len + 2 && *value.text == '"' && !memcmp(value.text + 1, name, len)) {
            r->j.state = s;
            return WEIR_OK;
        }
    }
    return not_a(r, m->name, value, "\"inactive\", \"delayed\", \"active\", \"complete\", "
                                    "\"failed\" or \"cancelled\"");
}

static weir_code read_backoff_kind(reader *r, const member *m, piece value)
{
    weir_backoff_kind *kind = place(r, m);
    *kind = is(value, "\"exponential\"") ? WEIR_EXPONENTIAL
            : is(value, "\"fixed\"")     ? WEIR_FIXED : WEIR_IMMEDIATE;
    return *kind || is(value, "\"none\"")
               ? WEIR_OK : not_a(r, m->name, value, "\"fixed\", \"exponential\" or \"none\"");
}

static weir_code read_members(reader *r, const char *what, const member *table, size_t n,
                              piece value);

#define AT(name) offsetof(weir_job, name)
static weir_code read_backoff(reader *r, const member *m, piece value)
{
    static const member members[] = {
        { "backoff.type", AT(backoff.kind), read_backoff_kind },
        { "backoff.delay", AT(backoff.delay_ms), read_long },
        { "backoff.maxDelay", AT(backoff.max_ms), read_long },
        { "backoff.jitter", AT(backoff.jitter_pct), read_int },
    };
    return read_members(r, m->name, members, sizeof members / sizeof *members, value);
}

static weir_code read_log(reader *r, const member *m, piece value);

static const member members[] = {
    { "id", AT(id), read_id },
    { "type", AT(type), read_text },
    { "data", AT(data), read_json },
    { "priority", AT(priority), read_int },
    { "state", AT(state), read_state },
    { "delay", AT(delay_ms), read_long },
    { "max_attempts", AT(max_attempts), read_int },
    { "attempts", AT(attempts), read_int },
    { "progress", AT(progress), read_int },
    { "progress_data", AT(progress_data), read_json },
    { "result", AT(result), read_json },
    { "error", AT(error), read_text },
    { "created_at", AT(created_at), read_long },
    { "promote_at", AT(promote_at), read_long },
    { "updated_at", AT(updated_at), read_long },
    { "failed_at", AT(failed_at), read_long },
    { "started_at", AT(started_at), read_long },
    { "finished_at", AT(finished_at), read_long },
    { "duration", AT(duration_ms), read_long },
    { "ttl", AT(ttl_ms), read_long },
    { "deadline", AT(deadline_at), read_long },
    { "unique", AT(unique), read_text },
    { "removeOnComplete", AT(remove_on_complete), read_flag },
    { "backoff", 0, read_backoff },
    { "workerId", AT(worker), read_text },
    { "delivery", AT(delivery), read_delivery },
    { "lost", AT(lost), read_int },
    { "max_lost", AT(max_lost), read_int },
    { "search", AT(search), read_flag },
    { "search_keys", AT(search_keys), read_text },
    { "log", 0, read_log },
};
#undef AT
_Static_assert(sizeof members / sizeof *members <= 64, "one bit each");

/* The entry of a member; those of a part ("backoff.type") are found by what is behind the dot. */
static size_t find(const member *table, size_t n, piece name)
{
    size_t i = 0;
    for (; i < n; i++) {
        const char *dot = strchr(table[i].name, '.'), *known = dot ? dot + 1 : table[i].name;
        size_t      len = strlen(known);
        if (name.len == len + 2 && !memcmp(name.text + 1, known, len))
            break;
    }
    return i;
}

static weir_code read_members(reader *r, const char *what, const member *table, size_t n,
                              piece value)
{
    weir_json_walk w;
    piece          name, one;
    uint64_t       seen = 0;
    if (!weir__json_open(&w, value) || !w.object)
        return not_a(r, what, value, "an object");
    while (weir__json_next(&w, &name, &one)) {
        size_t i = find(table, n, name);
        if (i == n)
            return weir_fail(r->err, WEIR_EINVAL, "%s: there is no member %.*s", what,
                             (int)(name.len < SHOWN ? name.len : SHOWN), name.text);
        if (seen >> i & 1)
            return weir_fail(r->err, WEIR_EINVAL, "%s: is there twice", table[i].name);
        seen |= UINT64_C(1) << i;
        weir_code rc = table[i].read(r, &table[i], one);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

/* ---- the log ---- */

static weir_code read_line(reader *r, size_t at, piece value)
{
    static const char *const names[] = { "\"n\"", "\"at\"", "\"text\"" };
    weir_json_walk w;
    piece          name, one, got[3] = { 0 };
    int64_t        n = (int64_t)at + 1, when = 0;
    json_t        *text = NULL;
    weir_code      rc = WEIR_OK;
    char           what[40];
    snprintf(what, sizeof what, "log[%zu]", at);
    if (!weir__json_open(&w, value) || !w.object)
        return not_a(r, what, value, "an object");
    while (weir__json_next(&w, &name, &one)) {
        size_t i = 0;
        while (i < 3 && !is(name, names[i]))
            i++;
        if (i == 3 || got[i].len)
            return not_a(r, what, name, "one of n, at and text, each once");
        got[i] = one;
    }
    snprintf(what, sizeof what, "log[%zu].n", at);
    if (got[0].len)
        rc = read_number(r, what, got[0], 1, INT64_MAX, &n);
    snprintf(what, sizeof what, "log[%zu].at", at);
    if (!rc && got[1].len)
        rc = read_number(r, what, got[1], 0, INT64_MAX, &when);
    snprintf(what, sizeof what, "log[%zu].text", at);
    if (!rc)
        rc = got[2].len ? read_string(r, what, got[2], &text)
                        : weir_fail(r->err, WEIR_EINVAL, "%s: missing", what);
    if (!rc && !weir__lines_add(r->log, (uint64_t)n, when, json_string_value(text),
                                json_string_length(text)))
        rc = no_memory(r);
    json_decref(text);
    return rc;
}

static weir_code read_log(reader *r, const member *m, piece value)
{
    weir_json_walk w;
    piece          name, one;
    weir_code      rc = WEIR_OK;
    if (!weir__json_open(&w, value) || w.object)
        return not_a(r, m->name, value, "an array");
    while (!rc && weir__json_next(&w, &name, &one)) {
        if (r->log->n == WEIR_MAX_LOG)
            return weir_fail(r->err, WEIR_ELIMIT, "log: more than %d lines (WEIR_MAX_LOG)",
                             WEIR_MAX_LOG);
        rc = read_line(r, r->log->n, one);
    }
    return rc;
}

/* ---- all of it ---- */

static weir_code read_job(reader *r, piece text)
{
    size_t      where;
    const char *why;
    /* the job itself is one level above its data */
    if (!weir__json_valid(text.text, text.len, WEIR_MAX_DEPTH + 1, &where, &why))
        return weir_fail(r->err, WEIR_EINVAL, "not JSON at byte %zu: %s", where, why);
    weir_code rc = read_members(r, "job", members, sizeof members / sizeof *members, text);
    if (!rc)
        rc = weir__job_valid(&r->j, r->err);
    return rc ? rc : weir__lines_valid(r->log->line, r->log->n, r->err);
}

weir_code weir_job_parse(const char *json, size_t len, weir_job **out, weir_lines **log,
                         weir_error *err)
{
    reader r = { .j = { .state = WEIR_INACTIVE, .data = "{}", .data_len = 2, .max_attempts = 1,
                        .max_lost = WEIR_DEFAULT_MAX_LOST },
                 .log = weir__lines_create(), .err = err };
    *out = NULL;
    if (log)
        *log = NULL;
    weir_code rc = r.log ? read_job(&r, (piece){ json, len }) : no_memory(&r);
    if (!rc) {
        *out = weir__job_copy(&r.j);
        rc = *out ? WEIR_OK : no_memory(&r);
    }
    for (size_t i = 0; i < r.n_texts; i++)
        json_decref(r.texts[i]);
    if (!rc && log)
        *log = r.log;
    else
        weir_lines_release(r.log);
    return rc;
}
