/* spec.c - is what a user asks for within the limits? A job to add, and a job that comes from
 * elsewhere. Every error names the member, what it has, and the limit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "core/history.h"
#include "core/job.h"
#include "core/job_fields.h"
#include "core/values.h"

/* `limit` is one of the constants of weir/job.h: its name and number go into the message. */
#define OVER(err, field, n, what, limit)                                                       \
    weir__fail_field(err, WEIR_ELIMIT, field, "%lld%s, at most %lld (%s)", (long long)(n), what,  \
              (long long)(limit), #limit)

static weir_code negative(const char *field, int64_t n, weir_error *err)
{
    return weir__fail_field(err, WEIR_EINVAL, field, "%" PRId64 ", must not be negative", n);
}

weir_code weir__ms_check(int64_t ms, const char *field, weir_error *err)
{
    if (ms < 0)
        return negative(field, ms, err);
    return ms > WEIR_MAX_MS ? OVER(err, field, ms, " ms", WEIR_MAX_MS) : WEIR_OK;
}

weir_code weir__moment_check(int64_t at, const char *field, weir_error *err)
{
    if (at < 0)
        return negative(field, at, err);
    if (at > WEIR__MAX_AT)
        return weir__fail_field(err, WEIR_ELIMIT, field, "%" PRId64 ", which is after the year "
                                "9999", at);
    return WEIR_OK;
}

weir_code weir__type_check(const char *type, const char *field, weir_error *err)
{
    if (!type)
        return weir__fail_field(err, WEIR_EINVAL, field, "missing");
    size_t len = strlen(type);
    if (!len)
        return weir__fail_field(err, WEIR_EINVAL, field, "empty");
    if (len > WEIR_MAX_TYPE)
        return OVER(err, field, len, " bytes", WEIR_MAX_TYPE);
    if (!weir__utf8_valid(type, len))
        return weir__fail_field(err, WEIR_EINVAL, field, "not valid UTF-8");
    size_t   at;
    uint32_t c;
    if (weir__has_hidden(type, len, &at, &c))
        return weir__fail_field(err, WEIR_EINVAL, field, "invisible or control character U+%04"
                                PRIX32 " at byte %zu; use visible characters", c, at);
    return WEIR_OK;
}

weir_code weir__take_type_check(const char *type, const char *field, weir_error *err)
{
    weir_code rc = weir__type_check(type, field, err);
    if (!rc && !strcmp(type, "*"))
        rc = weir__fail_field(err, WEIR_EINVAL, field, "\"*\" cannot be taken, name the types");
    return rc;
}

weir_code weir__json_check(const char *json, size_t len, const char *field, weir_error *err)
{
    if (len > WEIR_MAX_DATA)
        return OVER(err, field, len, " bytes", WEIR_MAX_DATA);
    size_t      where;
    const char *why;
    if (weir__json_valid(json, len, WEIR_MAX_DEPTH, &where, &why))
        return WEIR_OK;
    if (why == weir__json_too_deep)
        return weir__fail_field(err, WEIR_ELIMIT, field, "%s at byte %zu, at most %d levels "
                                "(WEIR_MAX_DEPTH)", why, where, WEIR_MAX_DEPTH);
    return weir__fail_field(err, WEIR_EINVAL, field, "not JSON at byte %zu: %s", where, why);
}

/* A string that may be missing. */
static weir_code check_text(const char *text, const char *field, size_t max, const char *max_name,
                            weir_error *err)
{
    size_t len = text ? strlen(text) : 1;
    if (!len)
        return weir__fail_field(err, WEIR_EINVAL, field, "empty");
    if (len > max)
        return weir__fail_field(err, WEIR_ELIMIT, field, "%zu bytes, at most %zu (%s)", len, max,
                                max_name);
    if (text && !weir__utf8_valid(text, len))
        return weir__fail_field(err, WEIR_EINVAL, field, "not valid UTF-8");
    return WEIR_OK;
}

static weir_code check_backoff(const weir_backoff *b, weir_error *err)
{
    weir_code rc = weir__check_number(b->kind, WEIR_BACKOFF_LINEAR + 1, "backoff.kind", err);
    if (rc)
        return rc;
    if (b->jitter_pct < 0 || b->jitter_pct > 100)
        return weir__fail_field(err, WEIR_EINVAL, "backoff.jitter_pct", "%" PRId32 ", must be 0 to "
                                "100", b->jitter_pct);
    rc = weir__ms_check(b->delay_ms, "backoff.delay_ms", err);
    return rc ? rc : weir__ms_check(b->max_ms, "backoff.max_ms", err);
}

static weir_code check_attempts(int32_t n, const char *field, weir_error *err)
{
    if (n < 0)
        return negative(field, n, err);
    return n > WEIR_MAX_ATTEMPTS ? OVER(err, field, n, "", WEIR_MAX_ATTEMPTS) : WEIR_OK;
}

static weir_code check_job_type(const char *type, weir_error *err)
{
    weir_code rc = weir__type_check(type, "type", err);
    if (!rc && !strcmp(type, "*"))
        rc = weir__fail_field(err, WEIR_EINVAL, "type", "\"*\" stands for all types, a job needs "
                              "one");
    return rc;
}

/* The permitted content of a field, by its kind; `p` is a spec or a job. */
#define CHECK_TYPE(p, member)     check_job_type((p)->member, err)
#define CHECK_PRIORITY(p, member) WEIR_OK
#define CHECK_FLAG(p, member)     WEIR_OK
#define CHECK_COUNT(p, member)    check_attempts((p)->member, #member, err)
#define CHECK_MS(p, member)       weir__ms_check((p)->member, #member, err)
#define CHECK_MOMENT(p, member)   weir__moment_check((p)->member, #member, err)
#define CHECK_BACKOFF(p, member)  check_backoff(&(p)->member, err)
#define CHECK_UNIQUE(p, member)                                                                   \
    check_text((p)->member, #member, WEIR_MAX_UNIQUE, "WEIR_MAX_UNIQUE", err)
#define CHECK_KEYS(p, member)                                                                     \
    check_text((p)->member, #member, WEIR_MAX_SEARCH_KEYS, "WEIR_MAX_SEARCH_KEYS", err)
#define CHECK_JSON(p, member)     check_json((p)->member, (p)->member##_len, #member, err)
#define CHECK_VALUES(p, member)                                                                   \
    ((p)->member ? weir__values_check((p)->member, (p)->member##_len, false, err) : WEIR_OK)

/* JSON that may be missing. */
static weir_code check_json(const char *json, size_t len, const char *field, weir_error *err)
{
    if (json)
        return weir__json_check(json, len, field, err);
    return len ? weir__fail_field(err, WEIR_EINVAL, field, "NULL, but %s_len is %zu", field, len)
               : WEIR_OK;
}

static weir_code check_spec(const weir_spec *spec, weir_error *err)
{
    weir_spec s = *spec;
    weir_code rc = WEIR__CHECK_RESERVED(spec, err);
#define X(member, ...)                                                                            \
    if (s.member && !s.member##_len)                                                              \
        s.member##_len = strlen(s.member);
    WEIR_SPEC_BYTES(X)
#undef X
#define ROW(X, shape, member, kind, name)                                                         \
    if (!rc)                                                                                      \
        rc = CHECK_##kind(&s, member);
    WEIR_SPEC_FIELDS(ROW, )
#undef ROW
    if (!rc && s.delay_ms && s.run_at)
        rc = weir__fail_field(err, WEIR_EINVAL, "run_at", "delay_ms is given, too; only one of "
                              "them can be given");
    return rc;
}

weir_code weir__spec_check_known(const weir_spec *spec, weir_error *err)
{
    weir_spec s = *spec;
    size_t    len = s.data_len || !s.data ? s.data_len : strlen(s.data);
    s.data = NULL;
    s.data_len = 0;
    weir_code rc = check_spec(&s, err);
    return !rc && len > WEIR_MAX_DATA ? OVER(err, "data", len, " bytes", WEIR_MAX_DATA) : rc;
}

weir_code weir__spec_check(const weir_spec *spec, ptrdiff_t index, weir_error *err)
{
    weir_code rc = check_spec(spec, err);
    if (rc && err && index >= 0)
        weir__fail_inside(err, rc, "jobs[%td]", index);
    return rc;
}

/* ---- a job from elsewhere ---- */

/* Text for people: any bytes, at most this many. */
static weir_code check_words(const char *text, const char *field, weir_error *err)
{
    size_t len = text ? strlen(text) : 0;
    return len > WEIR_MAX_TEXT ? OVER(err, field, len, " bytes", WEIR_MAX_TEXT) : WEIR_OK;
}

static weir_code check_id(uint64_t id, weir_error *err)
{
    if (id > WEIR_MAX_ID)
        return weir__fail_field(err, WEIR_ELIMIT, "id", "%" PRIu64 ", at most %" PRIu64
                                " (WEIR_MAX_ID)", id, WEIR_MAX_ID);
    return WEIR_OK;
}

static weir_code check_delivery(uint32_t n, weir_error *err)
{
    if (n > INT32_MAX)                  /* it grows with each worker that has it */
        return weir__fail_field(err, WEIR_ELIMIT, "delivery", "%" PRIu32 ", at most %d", n,
                                INT32_MAX);
    return WEIR_OK;
}

static weir_code check_percent(int32_t n, const char *field, weir_error *err)
{
    if (n < 0 || n > 100)
        return weir__fail_field(err, WEIR_EINVAL, field, "%" PRId32 " percent, must be 0 to 100",
                                n);
    return WEIR_OK;
}

/* Kinds that only a job has. Its state was looked at before. */
#define CHECK_ID(p, member)       check_id((p)->member, err)
#define CHECK_STATE(p, member)    WEIR_OK
#define CHECK_DELIVERY(p, member) check_delivery((p)->member, err)
#define CHECK_LOST(p, member)                                                                     \
    ((p)->member < 0 ? negative(#member, (p)->member, err) : WEIR_OK)
#define CHECK_PERCENT(p, member)  check_percent((p)->member, #member, err)
#define CHECK_WORDS(p, member)    check_words((p)->member, #member, err)
#define CHECK_HISTORY(p, member)                                                                  \
    ((p)->member ? weir__history_valid((p)->member, (p)->member##_len, err) : WEIR_OK)

static weir_code check_fields(const weir_job *j, weir_error *err)
{
    weir_code rc = WEIR_OK;
#define ROW(X, shape, member, kind, ...)                                                          \
    if (!rc)                                                                                      \
        rc = CHECK_##kind(j, member);
    WEIR_JOB_FIELDS(ROW, )
#undef ROW
    return rc;
}

/* The facts at the top of job.c. */
static weir_code check_facts(const weir_job *j, weir_error *err)
{
#define WRONG(field, ...) weir__fail_field(err, WEIR_EINVAL, field, __VA_ARGS__)
    const char *state = weir_state_name(j->state);
    bool        ended = weir__finished(j->state);
    if (j->attempts > j->max_attempts)
        return WRONG("attempts", "%" PRId32 " of %" PRId32, j->attempts, j->max_attempts);
    if (!ended && j->attempts == j->max_attempts)
        return WRONG("attempts", "%" PRId32 " of %" PRId32 ", but it is %s", j->attempts,
                     j->max_attempts, state);
    if (j->lost > j->max_lost + (j->state == WEIR_STATE_FAILED))
        return WRONG("lost", "%" PRId32 " of %" PRId32, j->lost, j->max_lost);
    if (j->state == WEIR_STATE_DELAYED && !j->promote_at)
        return WRONG("promote_at", "missing, and it is delayed");
    if (!ended && j->finished_at)
        return WRONG("finished_at", "set, but it is %s", state);
    if (j->state == WEIR_STATE_FAILED && !j->error)
        return WRONG("error", "missing, and it is failed");
    if (j->state != WEIR_STATE_COMPLETE && j->result)
        return WRONG("result", "set, but it is %s", state);
    if (j->state != WEIR_STATE_COMPLETE && j->duration_ms)
        return WRONG("duration_ms", "set, but it is %s", state);
    if (j->state != WEIR_STATE_COMPLETE)
        return WEIR_OK;
    if (j->progress != 100)
        return WRONG("progress", "%" PRId32 " percent, but it is complete", j->progress);
    return j->error ? WRONG("error", "set, but it is complete") : WEIR_OK;
#undef WRONG
}

weir_code weir__job_valid(const weir_job *job, weir_error *err)
{
    weir_job  j = *job;
    weir_code rc;
    if ((rc = weir__check_number(j.state, WEIR_STATE_COUNT, "state", err)))
        return rc;
    weir__job_import(&j, job->id, 1);
    rc = check_fields(&j, err);
    return rc ? rc : check_facts(&j, err);
}

weir_code weir__lines_valid(const weir_line *lines, size_t n, weir_error *err)
{
    char field[40];
    if (n > WEIR_MAX_LOG)
        return OVER(err, "log", n, " lines", WEIR_MAX_LOG);
    for (size_t i = 0; i < n; i++) {
        const weir_line *l = &lines[i];
        weir_code        rc = WEIR__CHECK_RESERVED(l, err);
        if (rc)
            return weir__fail_inside(err, rc, "log[%zu]", i);
        snprintf(field, sizeof field, "log[%zu].at", i);
        if ((rc = weir__moment_check(l->at, field, err)))
            return rc;
        snprintf(field, sizeof field, "log[%zu].text", i);
        if (!l->text)
            return weir__fail_field(err, WEIR_EINVAL, field, "missing");
        if ((rc = check_words(l->text, field, err)))
            return rc;
        snprintf(field, sizeof field, "log[%zu].n", i);
        if (!l->n || l->n > WEIR_MAX_ID || l->n - i != lines[0].n)
            return weir__fail_field(err, WEIR_EINVAL, field, "%" PRIu64 ", must be %s", l->n, i ?
                                    "one more than that of the line before" : "at least 1");
    }
    return WEIR_OK;
}
