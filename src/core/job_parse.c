/* job_parse.c - a job from JSON, with the names of job_json.c; its log, too. fields.h reads it:
 * JSON inside a job (data, result, progress data) stays byte by byte, with all the digits of its
 * numbers. */
#include <string.h>

#include "core/fields.h"
#include "core/job.h"
#include "core/job_fields.h"
#include "core/results.h"

#define AT(member) offsetof(weir_line, member)
const weir_field weir__line_fields[] = {         /* n 0: one more than the last */
    WEIR_FIELD("n", weir__as_int, AT(n), .min = 1, .max = INT64_MAX),
    WEIR_FIELD("at", weir__as_moment, AT(at)),
    WEIR_FIELD("text", weir__as_text, AT(text), .needed = true),
    { 0 }
};
#undef AT

/* How a field is read, by its kind. */
#define AT(member) offsetof(weir_read_job, job.member)
#define AS_ID(member)       weir__as_id, AT(member), .max = (int64_t)WEIR_MAX_ID
#define AS_TYPE(member)     weir__as_text, AT(member), .needed = true
#define AS_PRIORITY(member) weir__as_priority, AT(member)
#define AS_STATE(member)    weir__as_state, AT(member)
#define AS_COUNT(member)    weir__as_int32, AT(member)
#define AS_LOST(member)     weir__as_int32, AT(member)
#define AS_PERCENT(member)  weir__as_int32, AT(member)
#define AS_DELIVERY(member) weir__as_delivery, AT(member), .max = INT32_MAX
#define AS_MS(member)       weir__as_ms, AT(member)
#define AS_MOMENT(member)   weir__as_moment, AT(member)
#define AS_FLAG(member)     weir__as_bool, AT(member)
#define AS_BACKOFF(member)  weir__as_backoff, AT(member)
#define AS_WORDS(member)    weir__as_text, AT(member)
#define AS_UNIQUE           AS_WORDS
#define AS_KEYS             AS_WORDS
#define AS_JSON(member)     weir__as_raw, AT(member)
#define AS_VALUES           AS_JSON
#define AS_HISTORY          AS_JSON

#define IF_ALWAYS(...) __VA_ARGS__
#define IF_SET(...)    __VA_ARGS__
#define IF_DONE(...)   __VA_ARGS__
#define IF_RARE(...)   __VA_ARGS__
#define IF_NEVER(...)
#define ROW(X, shape, member, kind, name, shown, ...) IF_##shown(FIELD(name, AS_##kind(member)),)
#define FIELD(name, ...) WEIR_FIELD(name, __VA_ARGS__)
const weir_field weir__job_fields[] = {          /* in the order in which they are written */
    WEIR_JOB_FIELDS(ROW, )
    WEIR_FIELD("log", weir__as_list, offsetof(weir_read_job, log), .max = WEIR_MAX_LOG,
               .fields = weir__line_fields, .size = sizeof(weir_line)),
    { 0 }
};
#undef AT
#undef ROW

#define X(member, ...)                                                                            \
    _Static_assert(offsetof(weir_job, member##_len) == offsetof(weir_job, member) +               \
                       sizeof(char *), "weir__as_raw() sets both");
WEIR_JOB_BYTES(X)
#undef X

/* ---- all of it ---- */

static weir_code no_memory(weir_error *err)
{
    return weir_fail(err, WEIR_ENOMEM, "job: out of memory");
}

static weir_code make_log(const weir_items *from, weir_lines *log, weir_error *err)
{
    const weir_line *lines = from->item;
    for (size_t i = 0; i < from->n; i++) {
        uint64_t n = lines[i].n ? lines[i].n : i + 1;
        if (!weir__lines_add(log, n, lines[i].at, lines[i].text, strlen(lines[i].text)))
            return no_memory(err);
    }
    return weir__lines_valid(log->line, log->n, err);
}

static weir_code read_job(weir_reader *in, const char *json, size_t len, weir_read_job *out,
                          weir_lines *log)
{
    /* the job itself is one level above its data */
    weir_code rc = weir__read_check(in, json, len, WEIR_MAX_DEPTH + 1);
    if (!rc)
        rc = weir__read(in, weir__job_fields, (weir_json_piece){ json, len }, out);
    if (!rc)
        rc = weir__job_valid(&out->job, &in->err);
    return rc ? rc : make_log(&out->log, log, &in->err);
}

weir_code weir_job_parse(const char *json, size_t len, weir_job **out, weir_lines **log,
                         weir_error *err)
{
    weir_arena    arena = { 0 };
    weir_reader   in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_lines   *lines = weir__lines_create();
    weir_read_job p = { .job = { .state = WEIR_STATE_INACTIVE, .data = "{}", .data_len = 2,
                                 .max_attempts = 1, .max_lost = WEIR_DEFAULT_MAX_LOST } };
    *out = NULL;
    if (log)
        *log = NULL;
    weir_code rc = lines ? read_job(&in, json, len, &p, lines) : no_memory(&in.err);
    if (!rc && !(*out = weir__job_copy(&p.job)))
        rc = no_memory(&in.err);
    if (rc && err)
        *err = in.err;
    weir__arena_free(&arena);
    if (!rc && log)
        *log = lines;
    else
        weir_lines_free(lines);
    return rc;
}
