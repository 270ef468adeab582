/* spec.c - is what a user asks for within the limits? A job to add, and one that comes from
 * elsewhere. Every error names the member, what it has, and the limit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/history.h"
#include "core/job.h"
#include "core/values.h"

/* `limit` is one of the constants of weir/job.h: its name and number go into the message. */
#define OVER(err, field, n, what, limit)                                                       \
    weir_fail(err, WEIR_ELIMIT, "%s: %lld%s, at most %lld (%s)", field, (long long)(n), what,  \
              (long long)(limit), #limit)

static weir_code negative(const char *field, int64_t n, weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "%s: %" PRId64 ", must not be negative", field, n);
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
        return weir_fail(err, WEIR_ELIMIT, "%s: %" PRId64 ", which is after the year 9999", field,
                         at);
    return WEIR_OK;
}

weir_code weir__type_check(const char *type, const char *field, weir_error *err)
{
    if (!type)
        return weir_fail(err, WEIR_EINVAL, "%s: missing", field);
    size_t len = strlen(type);
    if (!len)
        return weir_fail(err, WEIR_EINVAL, "%s: empty", field);
    if (len > WEIR_MAX_TYPE)
        return OVER(err, field, len, " bytes", WEIR_MAX_TYPE);
    if (!weir__utf8_valid(type, len))
        return weir_fail(err, WEIR_EINVAL, "%s: not valid UTF-8", field);
    size_t   at;
    uint32_t c;
    if (weir__has_hidden(type, len, &at, &c))
        return weir_fail(err, WEIR_EINVAL, "%s: invisible or control character U+%04" PRIX32
                         " at byte %zu; use visible characters", field, c, at);
    return WEIR_OK;
}

weir_code weir__take_type_check(const char *type, const char *field, weir_error *err)
{
    weir_code rc = weir__type_check(type, field, err);
    if (!rc && !strcmp(type, "*"))
        rc = weir_fail(err, WEIR_EINVAL, "%s: \"*\" cannot be taken, name the types", field);
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
        return weir_fail(err, WEIR_ELIMIT, "%s: %s at byte %zu, at most %d levels (WEIR_MAX_DEPTH)",
                         field, why, where, WEIR_MAX_DEPTH);
    return weir_fail(err, WEIR_EINVAL, "%s: not JSON at byte %zu: %s", field, where, why);
}

/* A string that may be missing. */
static weir_code check_text(const char *text, const char *field, size_t max, const char *max_name,
                            weir_error *err)
{
    size_t len = text ? strlen(text) : 1;
    if (!len)
        return weir_fail(err, WEIR_EINVAL, "%s: empty", field);
    if (len > max)
        return weir_fail(err, WEIR_ELIMIT, "%s: %zu bytes, at most %zu (%s)", field, len, max,
                         max_name);
    if (text && !weir__utf8_valid(text, len))
        return weir_fail(err, WEIR_EINVAL, "%s: not valid UTF-8", field);
    return WEIR_OK;
}

static weir_code check_backoff(const weir_backoff *b, weir_error *err)
{
    if ((unsigned)b->kind > WEIR_LINEAR)
        return weir_fail(err, WEIR_EINVAL, "backoff.kind: %d is none of WEIR_IMMEDIATE, "
                                           "WEIR_FIXED, WEIR_EXPONENTIAL, WEIR_LINEAR",
                         (int)b->kind);
    if (b->jitter_pct < 0 || b->jitter_pct > 100)
        return weir_fail(err, WEIR_EINVAL, "backoff.jitter_pct: %" PRId32 ", must be 0 to 100",
                         b->jitter_pct);
    weir_code rc = weir__ms_check(b->delay_ms, "backoff.delay_ms", err);
    return rc ? rc : weir__ms_check(b->max_ms, "backoff.max_ms", err);
}

static weir_code check_attempts(int32_t n, const char *field, weir_error *err)
{
    if (n < 0)
        return negative(field, n, err);
    return n > WEIR_MAX_ATTEMPTS ? OVER(err, field, n, "", WEIR_MAX_ATTEMPTS) : WEIR_OK;
}

static weir_code check_times(const weir_spec *s, weir_error *err)
{
    weir_code rc;
    if (s->delay_ms && s->run_at)
        return weir_fail(err, WEIR_EINVAL, "delay_ms and run_at: only one of them can be given");
    if ((rc = weir__ms_check(s->delay_ms, "delay_ms", err)) ||
        (rc = weir__ms_check(s->ttl_ms, "ttl_ms", err)) ||
        (rc = weir__moment_check(s->run_at, "run_at", err)))
        return rc;
    return weir__moment_check(s->deadline_at, "deadline_at", err);
}

static weir_code check_job_type(const char *type, weir_error *err)
{
    weir_code rc = weir__type_check(type, "type", err);
    if (!rc && !strcmp(type, "*"))
        rc = weir_fail(err, WEIR_EINVAL, "type: \"*\" stands for all types, a job needs one");
    return rc;
}

static weir_code check_spec(const weir_spec *s, weir_error *err)
{
    weir_code rc;
    if ((rc = check_job_type(s->type, err)))
        return rc;
    if (!s->data && s->data_len)
        return weir_fail(err, WEIR_EINVAL, "data: NULL, but data_len is %zu", s->data_len);
    if (s->data) {
        size_t len = s->data_len ? s->data_len : strlen(s->data);
        if ((rc = weir__json_check(s->data, len, "data", err)))
            return rc;
    }
    if ((rc = check_attempts(s->attempts, "attempts", err)) ||
        (rc = check_attempts(s->max_lost, "max_lost", err)) || (rc = check_times(s, err)) ||
        (rc = check_backoff(&s->backoff, err)) ||
        (rc = check_text(s->unique, "unique", WEIR_MAX_UNIQUE, "WEIR_MAX_UNIQUE", err)))
        return rc;
    if ((rc = check_text(s->search_keys, "search_keys", WEIR_MAX_SEARCH_KEYS,
                         "WEIR_MAX_SEARCH_KEYS", err)) || !s->values)
        return rc;
    return weir__values_check(s->values, s->values_len ? s->values_len : strlen(s->values), false,
                              err);
}

weir_code weir__spec_check(const weir_spec *spec, ptrdiff_t index, weir_error *err)
{
    weir_code rc = check_spec(spec, err);
    if (rc && err && index >= 0)
        weir_fail(err, rc, "jobs[%td].%s", index, err->msg);
    return rc;
}

/* ---- a job from elsewhere ---- */

/* JSON of a job that may be missing. */
static weir_code check_json(const char *json, size_t len, const char *field, weir_error *err)
{
    return json ? weir__json_check(json, len, field, err) : WEIR_OK;
}

/* Text for people: any bytes, so many at most. */
static weir_code check_words(const char *text, const char *field, weir_error *err)
{
    size_t len = text ? strlen(text) : 0;
    return len > WEIR_MAX_TEXT ? OVER(err, field, len, " bytes", WEIR_MAX_TEXT) : WEIR_OK;
}

static weir_code check_texts(const weir_job *j, weir_error *err)
{
    weir_code rc;
    if ((rc = check_job_type(j->type, err)) ||
        (rc = weir__json_check(j->data, j->data_len, "data", err)) ||
        (rc = check_json(j->result, j->result_len, "result", err)) ||
        (rc = check_json(j->progress_data, j->progress_data_len, "progress_data", err)) ||
        (rc = check_words(j->error, "error", err)) ||
        (rc = check_words(j->worker, "worker", err)) ||
        (j->history && (rc = weir__history_valid(j->history, j->history_len, err))) ||
        (j->values && (rc = weir__values_check(j->values, j->values_len, false, err))) ||
        (rc = check_text(j->unique, "unique", WEIR_MAX_UNIQUE, "WEIR_MAX_UNIQUE", err)))
        return rc;
    return check_text(j->search_keys, "search_keys", WEIR_MAX_SEARCH_KEYS, "WEIR_MAX_SEARCH_KEYS",
                      err);
}

static weir_code check_moments(const weir_job *j, weir_error *err)
{
    const struct {
        const char *field;
        int64_t     at;
    } moments[] = {
        { "deadline_at", j->deadline_at }, { "created_at", j->created_at },
        { "promote_at", j->promote_at },   { "updated_at", j->updated_at },
        { "started_at", j->started_at },   { "failed_at", j->failed_at },
        { "finished_at", j->finished_at },
    };
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < sizeof moments / sizeof *moments; i++)
        rc = weir__moment_check(moments[i].at, moments[i].field, err);
    return rc;
}

static weir_code check_numbers(const weir_job *j, weir_error *err)
{
    weir_code rc;
    if (j->id > WEIR_MAX_ID)
        return weir_fail(err, WEIR_ELIMIT, "id: %" PRIu64 ", at most %" PRIu64 " (WEIR_MAX_ID)",
                         j->id, WEIR_MAX_ID);
    if (j->delivery > INT32_MAX)        /* it grows with each worker that has it */
        return weir_fail(err, WEIR_ELIMIT, "delivery: %" PRIu32 ", at most %d", j->delivery,
                         INT32_MAX);
    if ((rc = check_attempts(j->max_attempts, "max_attempts", err)) ||
        (rc = check_attempts(j->attempts, "attempts", err)) ||
        (rc = check_attempts(j->max_lost, "max_lost", err)) ||
        (rc = j->lost < 0 ? negative("lost", j->lost, err) : WEIR_OK) ||
        (rc = weir__ms_check(j->delay_ms, "delay_ms", err)) ||
        (rc = weir__ms_check(j->ttl_ms, "ttl_ms", err)) ||
        (rc = weir__ms_check(j->duration_ms, "duration_ms", err)) ||
        (rc = check_moments(j, err)))
        return rc;
    return check_backoff(&j->backoff, err);
}

/* The facts at the top of job.c. */
static weir_code check_facts(const weir_job *j, weir_error *err)
{
#define WRONG(...) weir_fail(err, WEIR_EINVAL, __VA_ARGS__)
    const char *state = weir_state_name(j->state);
    bool        ended = weir__finished(j->state);
    if (j->attempts > j->max_attempts)
        return WRONG("attempts: %" PRId32 " of %" PRId32, j->attempts, j->max_attempts);
    if (!ended && j->attempts == j->max_attempts)
        return WRONG("attempts: %" PRId32 " of %" PRId32 ", but it is %s", j->attempts,
                     j->max_attempts, state);
    if (j->lost > j->max_lost + (j->state == WEIR_FAILED))
        return WRONG("lost: %" PRId32 " of %" PRId32, j->lost, j->max_lost);
    if (j->progress < 0 || j->progress > 100)
        return WRONG("progress: %" PRId32 " percent, must be 0 to 100", j->progress);
    if (j->state == WEIR_DELAYED && !j->promote_at)
        return WRONG("promote_at: missing, and it is delayed");
    if (!ended && j->finished_at)
        return WRONG("finished_at: set, but it is %s", state);
    if (j->state == WEIR_FAILED && !j->error)
        return WRONG("error: missing, and it is failed");
    if (j->state != WEIR_COMPLETE && j->result)
        return WRONG("result: set, but it is %s", state);
    if (j->state != WEIR_COMPLETE && j->duration_ms)
        return WRONG("duration_ms: set, but it is %s", state);
    if (j->state != WEIR_COMPLETE)
        return WEIR_OK;
    if (j->progress != 100)
        return WRONG("progress: %" PRId32 " percent, but it is complete", j->progress);
    return j->error ? WRONG("error: set, but it is complete") : WEIR_OK;
#undef WRONG
}

weir_code weir__job_valid(const weir_job *job, weir_error *err)
{
    weir_job  j = *job;
    weir_code rc;
    if ((unsigned)j.state >= WEIR_STATES)
        return weir_fail(err, WEIR_EINVAL, "state: %d is none", (int)j.state);
    weir__job_import(&j, job->id, 1);
    if ((rc = check_texts(&j, err)) || (rc = check_numbers(&j, err)))
        return rc;
    return check_facts(&j, err);
}

weir_code weir__lines_valid(const weir_line *lines, size_t n, weir_error *err)
{
    char field[40];
    if (n > WEIR_MAX_LOG)
        return OVER(err, "log", n, " lines", WEIR_MAX_LOG);
    for (size_t i = 0; i < n; i++) {
        const weir_line *l = &lines[i];
        weir_code        rc;
        snprintf(field, sizeof field, "log[%zu].at", i);
        if ((rc = weir__moment_check(l->at, field, err)))
            return rc;
        snprintf(field, sizeof field, "log[%zu].text", i);
        if (!l->text)
            return weir_fail(err, WEIR_EINVAL, "%s: missing", field);
        if ((rc = check_words(l->text, field, err)))
            return rc;
        if (!l->n || l->n > WEIR_MAX_ID || l->n - i != lines[0].n)
            return weir_fail(err, WEIR_EINVAL, "log[%zu].n: %" PRIu64 ", must be %s", i, l->n,
                             i ? "one more than that of the line before" : "at least 1");
    }
    return WEIR_OK;
}
