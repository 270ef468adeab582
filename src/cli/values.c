/* values.c - the values of options: numbers, moments, cursors, what to keep, which events. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/near.h"

bool opt_whole(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*digits))
        return false;
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (*end || errno)
        return false;
    *out = n;
    return true;
}

weir_code opt_id(const char *text, uint64_t *out, weir_error *err)
{
    char *end;
    errno = 0;
    unsigned long long n = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (n == 0 || *end || errno || n > INT64_MAX)
        return weir_fail(err, WEIR_EINVAL, "'%s' is not a job's id (a number from 1 on)", text);
    *out = n;
    return WEIR_OK;
}

weir_code opt_state(const char *name, const char *text, weir_state *out, weir_error *err)
{
    static const struct {
        const char *word, *state;
    } others[] = {
        { "queued", "inactive" }, { "waiting", "inactive" }, { "pending", "inactive" },
        { "scheduled", "delayed" }, { "running", "active" }, { "done", "complete" },
        { "canceled", "cancelled" },
    };
    char hint[80];
    weir_near guess = { .typed = text };
    if (weir_state_parse(text, out))
        return WEIR_OK;
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
        weir__near_try(&guess, weir_state_name((weir_state)s));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(text, others[i].word) == 0)
            guess.best = others[i].state;
    return weir_fail(err, WEIR_EINVAL, "--%s: '%s' is not a state: inactive, delayed, active, "
                     "complete, failed or cancelled%s", name, text,
                     near_hint(hint, sizeof hint, &guess, ""));
}

/* ---- moments ---- */

/* Two digits at *p, within min..max. */
static bool two(const char **p, int min, int max, int *out)
{
    const char *s = *p;
    if (!isdigit((unsigned char)s[0]) || !isdigit((unsigned char)s[1]))
        return false;
    *out = (s[0] - '0') * 10 + (s[1] - '0');
    *p += 2;
    return *out >= min && *out <= max;
}

/* "HH:MM[:SS[.fff]]" */
static bool clock_time(const char **p, struct tm *tm, int *ms)
{
    *ms = 0;
    if (!two(p, 0, 23, &tm->tm_hour) || *(*p)++ != ':' || !two(p, 0, 59, &tm->tm_min))
        return false;
    if (**p != ':')
        return true;
    ++*p;
    if (!two(p, 0, 59, &tm->tm_sec))
        return false;
    if (**p != '.')
        return true;
    int scale = 100;
    for (++*p; isdigit((unsigned char)**p); ++*p, scale /= 10)
        *ms += (**p - '0') * scale;
    return true;
}

/* "Z", "+01:00", "+0100" or nothing (local). */
static bool zone(const char **p, bool *local, int *minutes)
{
    *minutes = 0;
    *local = false;
    if (**p == 'Z' || **p == 'z') {
        ++*p;
        return true;
    }
    if (**p != '+' && **p != '-') {
        *local = true;
        return true;
    }
    int sign = *(*p)++ == '-' ? -1 : 1, hours, rest;
    if (!two(p, 0, 14, &hours))
        return false;
    if (**p == ':')
        ++*p;
    if (!two(p, 0, 59, &rest))
        return false;
    *minutes = sign * (hours * 60 + rest);
    return true;
}

static bool iso_time(const char *text, int64_t *out)
{
    struct tm tm = { .tm_isdst = -1 };
    int       ms = 0, minutes = 0, month = 0;
    bool      local = true;
    for (int i = 0; i < 4; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    tm.tm_year = atoi(text) - 1900;
    const char *p = text + 4;
    if (*p++ != '-' || !two(&p, 1, 12, &month) || *p++ != '-' || !two(&p, 1, 31, &tm.tm_mday))
        return false;
    tm.tm_mon = month - 1;
    if (*p == 'T' || *p == 't' || *p == ' ') {
        p++;
        if (!clock_time(&p, &tm, &ms) || !zone(&p, &local, &minutes))
            return false;
    }
    if (*p)
        return false;
    int    day = tm.tm_mday;
    time_t t = local ? mktime(&tm) : timegm(&tm);
    if (tm.tm_mday != day && tm.tm_mon != month - 1)    /* 30 February */
        return false;
    *out = ((int64_t)t - minutes * 60) * 1000 + ms;
    return true;
}

/* The next time the clock shows this, or the last time; local time. */
static bool by_clock(const char *text, int64_t now_ms, bool past, int64_t *out)
{
    struct tm   want = { 0 }, tm;
    int         ms;
    const char *p = text;
    if (!clock_time(&p, &want, &ms) || *p)
        return false;
    time_t now = (time_t)(now_ms / 1000);
    localtime_r(&now, &tm);
    int64_t at = 0;
    for (int days = 0; days < 2; days++) {
        struct tm try = tm;         /* mktime() changes it where the clock leaves an hour out */
        try.tm_mday += past ? -days : days;
        try.tm_hour = want.tm_hour;
        try.tm_min = want.tm_min;
        try.tm_sec = want.tm_sec;
        try.tm_isdst = -1;
        at = (int64_t)mktime(&try) * 1000 + ms;
        if (past ? at <= now_ms : at > now_ms)
            break;
    }
    *out = at;
    return true;
}

bool opt_epoch_ms(const char *text, int64_t *out)
{
    return strlen(text) >= 12 && isdigit((unsigned char)*text) && opt_whole(text, out);
}

weir_code opt_time(const char *name, const char *text, int64_t now_ms, bool past, int64_t *out,
                   weir_error *err)
{
    if (opt_epoch_ms(text, out) || iso_time(text, out) || by_clock(text, now_ms, past, out)) {
        if (*out < 1)               /* 0 would mean that none was given */
            *out = 1;
        return WEIR_OK;
    }
    return weir_fail(err, WEIR_EINVAL,
                     "--%s: '%s' is not a time such as 2026-11-16T09:00, 2026-11-16T09:00Z or "
                     "09:00", name, text);
}

/* ---- of one command each ---- */

bool opt_cursor(const char *text, weir_cursor *out)
{
    char *end;
    errno = 0;
    out->rank = strtoll(text, &end, 10);
    if (end == text || *end != '.' || !isdigit((unsigned char)end[1]))
        return false;
    out->id = strtoull(end + 1, &end, 10);
    return *end == 0 && !errno;
}

bool opt_keep(const char *text, weir_keep *out)
{
    char part[64];
    *out = (weir_keep){ 0 };
    if (strcmp(text, "default") == 0)
        return true;
    if (strcmp(text, "forever") == 0) {
        out->age_ms = WEIR_FOREVER;
        return true;
    }
    if (strlen(text) >= sizeof part || !*text)
        return false;
    strcpy(part, text);
    char   *comma = strchr(part, ',');
    int64_t n;
    if (comma)
        *comma = 0;
    if (!comma && opt_whole(part, &n)) {
        out->count = n;
        return n > 0;
    }
    if (weir_duration_parse(part, &out->age_ms, NULL) || out->age_ms <= 0)
        return false;
    if (comma && (!opt_whole(comma + 1, &out->count) || out->count <= 0))
        return false;
    return true;
}

static weir_code unknown_event(const char *name, weir_error *err)
{
    char hint[80];
    weir_near guess = { .typed = name };
    for (int k = 0; k < WEIR_EVENT_COUNT; k++)
        weir__near_try(&guess, weir_event_name((weir_event_kind)k));
    return weir_fail(err, WEIR_EINVAL, "--event: unknown event '%s'%s", name,
                     near_hint(hint, sizeof hint, &guess, ""));
}

weir_code opt_events(const char *text, uint32_t *out, weir_error *err)
{
    enum { LONGEST = 40 };          /* than any name */
    for (size_t n; *text; text += n + (text[n] == ',')) {
        char            name[LONGEST];
        weir_event_kind kind;
        n = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < LONGEST ? n : LONGEST), text);
        if (n && !weir_event_parse(name, &kind))
            return unknown_event(name, err);
        if (n)
            *out |= WEIR_BIT(kind);
    }
    if (!*out)
        return weir_fail(err, WEIR_EINVAL, "--event: no event is named");
    return WEIR_OK;
}
