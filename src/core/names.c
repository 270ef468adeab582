/* names.c - states, priorities, events and lengths of time as text, and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "weir/weir.h"

/* The numbers of states, backoffs and events are formats: what is there keeps its number. */
_Static_assert(WEIR_STATE_ANY == 0 && WEIR_STATE_INACTIVE == 1 && WEIR_STATE_DELAYED == 2 &&
                   WEIR_STATE_ACTIVE == 3 && WEIR_STATE_COMPLETE == 4 && WEIR_STATE_FAILED == 5 &&
                   WEIR_STATE_CANCELLED == 6,
               "a state has another number than before");
_Static_assert(WEIR_BACKOFF_NONE == 0 && WEIR_BACKOFF_FIXED == 1 && WEIR_BACKOFF_EXPONENTIAL == 2 &&
                   WEIR_BACKOFF_LINEAR == 3,
               "a backoff has another number than before");
_Static_assert(WEIR_EVENT_ENQUEUE == 0 && WEIR_EVENT_PROMOTION == 1 && WEIR_EVENT_START == 2 &&
                   WEIR_EVENT_PROGRESS == 3 && WEIR_EVENT_FAILED_ATTEMPT == 4 &&
                   WEIR_EVENT_FAILED == 5 && WEIR_EVENT_COMPLETE == 6 &&
                   WEIR_EVENT_CANCELLED == 7 && WEIR_EVENT_STALLED == 8 &&
                   WEIR_EVENT_TTL_EXCEEDED == 9 && WEIR_EVENT_REMOVE == 10 &&
                   WEIR_EVENT_PAUSE == 11 && WEIR_EVENT_RESUME == 12 && WEIR_EVENT_ERROR == 13,
               "an event has another number than before");

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *weir_version(void)
{
    return WEIR_VERSION;
}

/* ---- states, events, durability ---- */

static const char *const state_names[WEIR_STATE_COUNT] = {
    [WEIR_STATE_ANY] = "any",
    [WEIR_STATE_INACTIVE] = "inactive",
    [WEIR_STATE_DELAYED] = "delayed",
    [WEIR_STATE_ACTIVE] = "active",
    [WEIR_STATE_COMPLETE] = "complete",
    [WEIR_STATE_FAILED] = "failed",
    [WEIR_STATE_CANCELLED] = "cancelled",
};

const char *weir_state_name(weir_state state)
{
    return (unsigned)state < WEIR_STATE_COUNT ? state_names[state] : "unknown";
}

bool weir_state_parse(const char *text, weir_state *out)
{
    for (int s = WEIR_STATE_INACTIVE; text && s < WEIR_STATE_COUNT; s++) {
        if (!strcasecmp(text, state_names[s])) {
            *out = (weir_state)s;
            return true;
        }
    }
    return false;
}

static const char *const event_names[] = {
#define X(name, text) text,
    WEIR_EVENTS(X)
#undef X
};

const char *weir_event_name(weir_event_kind kind)
{
    return (unsigned)kind < WEIR_EVENT_COUNT ? event_names[kind] : "unknown";
}

static const char *const sort_names[WEIR_SORT_COUNT] = {
    [WEIR_SORT_USUAL] = "usual",
    [WEIR_SORT_ID] = "id",
    [WEIR_SORT_CREATED] = "created",
    [WEIR_SORT_STARTED] = "started",
    [WEIR_SORT_ENDED] = "ended",
    [WEIR_SORT_TOOK] = "took",
    [WEIR_SORT_ATTEMPTS] = "attempts",
    [WEIR_SORT_PRIORITY] = "priority",
};

const char *weir_sort_name(weir_sort sort)
{
    return (unsigned)sort < WEIR_SORT_COUNT ? sort_names[sort] : "unknown";
}

bool weir_sort_parse(const char *text, weir_sort *out)
{
    for (int s = WEIR_SORT_ID; text && s < WEIR_SORT_COUNT; s++) {
        if (!strcasecmp(text, sort_names[s])) {
            *out = (weir_sort)s;
            return true;
        }
    }
    return false;
}

/* Kue writes "failed attempt", command lines like "failed-attempt". */
static bool same_event(const char *text, const char *name)
{
    for (; *text && *name; text++, name++) {
        bool gap = *text == ' ' || *text == '-' || *text == '_';
        if (*name == '_' ? !gap : (*text | 0x20) != *name)
            return false;
    }
    return *text == *name;
}

bool weir_event_parse(const char *text, weir_event_kind *out)
{
    for (int k = 0; text && k < WEIR_EVENT_COUNT; k++) {
        if (same_event(text, event_names[k])) {
            *out = (weir_event_kind)k;
            return true;
        }
    }
    return false;
}

const char *weir_durability_name(weir_durability d)
{
    static const char *const names[] = { "default", "disk", "os", "none" };
    return (unsigned)d < COUNT(names) ? names[d] : "unknown";
}

/* ---- priorities ---- */

static const struct {
    const char *name;
    int32_t     priority;
} priorities[] = {
    { "low", WEIR_PRIORITY_LOW },           { "normal", WEIR_PRIORITY_NORMAL },
    { "medium", WEIR_PRIORITY_MEDIUM },     { "high", WEIR_PRIORITY_HIGH },
    { "critical", WEIR_PRIORITY_CRITICAL },
};

const char *weir_priority_name(int32_t priority)
{
    for (size_t i = 0; i < COUNT(priorities); i++) {
        if (priorities[i].priority == priority)
            return priorities[i].name;
    }
    return NULL;
}

bool weir_priority_parse(const char *text, int32_t *out)
{
    if (!text)
        return false;
    for (size_t i = 0; i < COUNT(priorities); i++) {
        if (!strcasecmp(text, priorities[i].name)) {
            *out = priorities[i].priority;
            return true;
        }
    }
    const char *digit = text + (*text == '-' || *text == '+');
    if (*digit < '0' || *digit > '9')       /* strtoll would skip spaces */
        return false;
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || *end || n < INT32_MIN || n > INT32_MAX)
        return false;
    *out = (int32_t)n;
    return true;
}

/* ---- lengths of time ---- */

/* From long to short: the order in which they may follow each other. */
static const struct {
    const char *name;
    int64_t     ms;
} units[] = {
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

#define LIKE "write it like 250ms, 5s, 1m30s, 2h or 7d"

static weir_code not_a_duration(const char *text, size_t len, weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "\"%.*s\" is not a length of time: " LIKE,
                     (int)(len < 40 ? len : 40), text);
}

static weir_code too_long(const char *text, size_t len, weir_error *err)
{
    return weir_fail(err, WEIR_ELIMIT, "%.*s is over 100 years, %" PRId64 " ms (WEIR_MAX_MS)",
                     (int)(len < 40 ? len : 40), text, WEIR_MAX_MS);
}

static weir_code parse_duration(const char *text, size_t len, int64_t *out, weir_error *err)
{
    const char *s = text, *end = text + len;
    int64_t     total = 0;
    size_t      unit = 0;           /* the first unit that may still follow */
    if (!len)
        return not_a_duration(text, len, err);
    while (s < end) {
        const char *from = s;
        int64_t     n = 0;
        for (; s < end && *s >= '0' && *s <= '9'; s++) {
            n = n * 10 + (*s - '0');
            if (n > WEIR_MAX_MS)
                return too_long(text, len, err);
        }
        if (s == from)
            return not_a_duration(text, len, err);
        const char *name = s;
        while (s < end && (*s < '0' || *s > '9'))
            s++;
        size_t  name_len = (size_t)(s - name);
        int64_t ms = 0;
        if (!name_len && from == text && s == end)
            ms = 1;                 /* a bare number */
        for (; !ms && unit < COUNT(units); unit++) {
            if (strlen(units[unit].name) == name_len && !memcmp(units[unit].name, name, name_len))
                ms = units[unit].ms;
        }
        if (!ms)
            return not_a_duration(text, len, err);
        if (n > (WEIR_MAX_MS - total) / ms)
            return too_long(text, len, err);
        total += n * ms;
    }
    *out = total;
    return WEIR_OK;
}

weir_code weir_duration_parse(const char *text, int64_t *out_ms, weir_error *err)
{
    *out_ms = 0;
    if (!text)
        return weir_fail(err, WEIR_EINVAL, "no length of time given");
    return parse_duration(text, strlen(text), out_ms, err);
}

/* ---- backoff ---- */

static weir_code not_a_backoff(const char *text, const char *why, weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "\"%.60s\" is not a backoff: %s; write it like none, "
                                       "fixed:1s, linear:2s or exponential:1s:60s:20%%", text, why);
}

/* "20%" to 20; -1: it is no such thing. */
static int32_t parse_percent(const char *s, size_t len)
{
    if (len < 2 || len > 4 || s[len - 1] != '%')
        return -1;
    int32_t n = 0;
    for (size_t i = 0; i < len - 1; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        n = n * 10 + (s[i] - '0');
    }
    return n <= 100 ? n : -1;
}

static const struct {
    const char       *name;
    weir_backoff_kind kind;
} backoffs[] = { { "none", WEIR_BACKOFF_NONE },     /* the first of a kind is its name */
                 { "immediate", WEIR_BACKOFF_NONE },
                 { "fixed", WEIR_BACKOFF_FIXED },
                 { "exponential", WEIR_BACKOFF_EXPONENTIAL },
                 { "linear", WEIR_BACKOFF_LINEAR } };

const char *weir_backoff_name(weir_backoff_kind kind)
{
    for (size_t i = 0; i < COUNT(backoffs); i++) {
        if (backoffs[i].kind == kind)
            return backoffs[i].name;
    }
    return "?";
}

static bool parse_kind(const char *s, size_t len, weir_backoff_kind *out)
{
    for (size_t i = 0; i < COUNT(backoffs); i++) {
        if (strlen(backoffs[i].name) == len && !strncasecmp(backoffs[i].name, s, len)) {
            *out = backoffs[i].kind;
            return true;
        }
    }
    return false;
}

weir_code weir_backoff_parse(const char *text, weir_backoff *out, weir_error *err)
{
    *out = (weir_backoff){ 0 };
    if (!text)
        return weir_fail(err, WEIR_EINVAL, "no backoff given");
    weir_backoff b = { 0 };
    const char  *s = text;
    size_t       len = strcspn(s, ":");
    if (!parse_kind(s, len, &b.kind))
        return not_a_backoff(text, "it is none, fixed, linear or exponential", err);
    int times = 0, most = b.kind == WEIR_BACKOFF_FIXED ? 1 : 2;
    for (s += len; *s == ':'; s += len) {
        s++;
        len = strcspn(s, ":");
        if (b.kind == WEIR_BACKOFF_NONE)
            return not_a_backoff(text, "none has no delay", err);
        if (len && s[len - 1] == '%') {
            b.jitter_pct = parse_percent(s, len);
            if (b.jitter_pct < 0)
                return not_a_backoff(text, "jitter is 0% to 100%", err);
            if (s[len])
                return not_a_backoff(text, "jitter comes last", err);
            break;
        }
        if (times == most)
            return not_a_backoff(text, most == 1 ? "a fixed delay has no cap"
                                                 : "it has one delay and one cap", err);
        weir_code rc = parse_duration(s, len, times ? &b.max_ms : &b.delay_ms, err);
        if (rc)
            return rc;
        times++;
    }
    *out = b;
    return WEIR_OK;
}
