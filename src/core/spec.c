/* spec.c - is what a user asks for within the limits? Every error names the member, what it has,
 * and the limit. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "core/job.h"

#define MAX_AT INT64_C(253402300799999)     /* the last millisecond of the year 9999 */

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

static weir_code check_moment(int64_t at, const char *field, weir_error *err)
{
    if (at < 0)
        return negative(field, at, err);
    if (at > MAX_AT)
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
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)type[i];
        if (c < 0x20 || c == 0x7f)
            return weir_fail(err, WEIR_EINVAL, "%s: control character 0x%02x at byte %zu", field, c,
                             i);
    }
    if (!weir__utf8_valid(type, len))
        return weir_fail(err, WEIR_EINVAL, "%s: not valid UTF-8", field);
    return WEIR_OK;
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
    if ((unsigned)b->kind > WEIR_EXPONENTIAL)
        return weir_fail(err, WEIR_EINVAL, "backoff.kind: %d is none of WEIR_IMMEDIATE, "
                                           "WEIR_FIXED, WEIR_EXPONENTIAL", (int)b->kind);
    if (b->jitter_pct < 0 || b->jitter_pct > 100)
        return weir_fail(err, WEIR_EINVAL, "backoff.jitter_pct: %" PRId32 ", must be 0 to 100",
                         b->jitter_pct);
    weir_code rc = weir__ms_check(b->delay_ms, "backoff.delay_ms", err);
    return rc ? rc : weir__ms_check(b->max_ms, "backoff.max_ms", err);
}

static weir_code check_counts(const weir_spec *s, weir_error *err)
{
    if (s->attempts < 0)
        return negative("attempts", s->attempts, err);
    if (s->attempts > WEIR_MAX_ATTEMPTS)
        return OVER(err, "attempts", s->attempts, "", WEIR_MAX_ATTEMPTS);
    if (s->max_lost < 0)
        return negative("max_lost", s->max_lost, err);
    if (s->max_lost > WEIR_MAX_ATTEMPTS)
        return OVER(err, "max_lost", s->max_lost, "", WEIR_MAX_ATTEMPTS);
    return WEIR_OK;
}

static weir_code check_times(const weir_spec *s, weir_error *err)
{
    weir_code rc;
    if (s->delay_ms && s->run_at)
        return weir_fail(err, WEIR_EINVAL, "delay_ms and run_at: only one of them can be given");
    if ((rc = weir__ms_check(s->delay_ms, "delay_ms", err)) ||
        (rc = weir__ms_check(s->ttl_ms, "ttl_ms", err)) ||
        (rc = check_moment(s->run_at, "run_at", err)))
        return rc;
    return check_moment(s->deadline_at, "deadline_at", err);
}

static weir_code check_spec(const weir_spec *s, weir_error *err)
{
    weir_code rc;
    if ((rc = weir__type_check(s->type, "type", err)))
        return rc;
    if (!strcmp(s->type, "*"))
        return weir_fail(err, WEIR_EINVAL, "type: \"*\" stands for all types, a job needs one");
    if (!s->data && s->data_len)
        return weir_fail(err, WEIR_EINVAL, "data: NULL, but data_len is %zu", s->data_len);
    if (s->data) {
        size_t len = s->data_len ? s->data_len : strlen(s->data);
        if ((rc = weir__json_check(s->data, len, "data", err)))
            return rc;
    }
    if ((rc = check_counts(s, err)) || (rc = check_times(s, err)) ||
        (rc = check_backoff(&s->backoff, err)) ||
        (rc = check_text(s->unique, "unique", WEIR_MAX_UNIQUE, "WEIR_MAX_UNIQUE", err)))
        return rc;
    return check_text(s->search_keys, "search_keys", WEIR_MAX_SEARCH_KEYS, "WEIR_MAX_SEARCH_KEYS",
                      err);
}

weir_code weir__spec_check(const weir_spec *spec, ptrdiff_t index, weir_error *err)
{
    weir_code rc = check_spec(spec, err);
    if (rc && err && index >= 0)
        weir_fail(err, rc, "jobs[%td].%s", index, err->msg);
    return rc;
}
