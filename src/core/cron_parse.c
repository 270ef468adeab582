/* cron_parse.c - reads an expression: see cron.h. Each field becomes bit sets; nothing is expanded
 * before its numbers are known to be in range. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "core/cron.h"
#include "core/cron_days.h"
#include "weir/job.h"
#include "weir/schedule.h"

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const char *const months[] = { "JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                      "JUL", "AUG", "SEP", "OCT", "NOV", "DEC", NULL };
static const char *const weekdays[] = { "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL };

typedef struct field_kind {
    const char        *name;
    int                min, max;
    int                star;            /* where "*" begins: "*" + "/2" of weekdays is 1, 3, 5, 7 */
    const char *const *names;           /* of min, min + 1 ...; may be NULL */
} field_kind;

static const field_kind kinds[FIELDS] = {
    { "second", 0, 59, 0, NULL },          { "minute", 0, 59, 0, NULL },
    { "hour", 0, 23, 0, NULL },            { "day of the month", 1, 31, 1, NULL },
    { "month", 1, 12, 1, months },         { "weekday", 0, 7, 1, weekdays },
};

/* The text being read: [s, end) is left of the field. */
typedef struct reader {
    const char       *text, *s, *end;
    int               field;
    const field_kind *kind;
    weir_cron        *cron;
    weir_error       *err;
} reader;

static weir_code bad(const reader *r, const char *where, const char *fmt, ...) WEIR_PRINTF(3, 4);

static weir_code bad(const reader *r, const char *where, const char *fmt, ...)
{
    char why[160];
    WEIR__FORMAT(why, fmt);
    return weir_fail(r->err, WEIR_EINVAL, "\"%.40s\", column %d, %s: %s", r->text,
                     (int)(where - r->text) + 1, r->kind->name, why);
}

/* ---- one part of a field ---- */

static bool next_is(const reader *r, char c)
{
    return r->s < r->end && toupper((unsigned char)*r->s) == c;
}

static bool accept(reader *r, char c)
{
    if (!next_is(r, c))
        return false;
    r->s++;
    return true;
}

static weir_code read_number(reader *r, const char *what, int min, int max, int *out)
{
    enum { FAR = 100000 };              /* beyond any limit */
    const char *from = r->s;
    int         n = 0;
    for (; r->s < r->end && isdigit((unsigned char)*r->s); r->s++)
        n = n < FAR ? n * 10 + (*r->s - '0') : FAR;
    if (r->s == from)
        return bad(r, from, "%s is missing; expected a number from %d to %d", what, min, max);
    if (n < min || n > max)
        return bad(r, from, "%s %.*s is out of range; expected %d to %d", what,
                   (int)(r->s - from < 12 ? r->s - from : 12), from, min, max);
    *out = n;
    return WEIR_OK;
}

/* A number or a name. `ends_range`: Sunday is then 7, the last of the week. */
static weir_code read_value(reader *r, bool ends_range, int *out)
{
    const field_kind *k = r->kind;
    size_t            left = (size_t)(r->end - r->s);
    for (int i = 0; k->names && k->names[i] && left >= 3; i++) {
        if (strncasecmp(r->s, k->names[i], 3) == 0) {
            r->s += 3;
            *out = r->field == WEEKDAY && i == 0 && ends_range ? 7 : k->min + i;
            return WEIR_OK;
        }
    }
    if (left && !isdigit((unsigned char)*r->s))
        return bad(r, r->s, "\"%.*s\" is not understood; expected a number from %d to %d%s",
                   (int)(left < 12 ? left : 12), r->s, k->min, k->max,
                   r->field == MONTH ? " or JAN to DEC" : k->names ? " or SUN to SAT" : "");
    return read_number(r, "the value", k->min, k->max, out);
}

static void set_value(reader *r, int n)
{
    weir_cron *c = r->cron;
    switch (r->field) {
    case SECOND: c->seconds |= UINT64_C(1) << n; break;
    case MINUTE: c->minutes |= UINT64_C(1) << n; break;
    case HOUR:   c->hours |= UINT32_C(1) << n; break;
    case DAY:    c->days |= UINT32_C(1) << n; break;
    case MONTH:  c->months |= UINT32_C(1) << n; break;
    default:     c->weekdays |= (uint8_t)(1 << n % 7); break;
    }
}

/* "/n", if it is there, and all values from `low` to `high`. */
static weir_code set_range(reader *r, int low, int high)
{
    int step = 1;
    if (accept(r, '/')) {
        weir_code rc = read_number(r, "the step", 1, r->kind->max - r->kind->star + 1, &step);
        if (rc)
            return rc;
    }
    for (int n = low; n <= high; n += step)
        set_value(r, n);
    return WEIR_OK;
}

/* "L", "LW" and "L-3" of the day, "L" of the weekday. */
static weir_code read_last(reader *r)
{
    int n = 0;
    r->s++;
    if (r->field == WEEKDAY) {
        set_value(r, 0);                /* the last day of the week */
    } else if (accept(r, 'W')) {
        r->cron->last_weekday = true;
    } else {
        if (accept(r, '-')) {
            weir_code rc = read_number(r, "the number of days before the last", 1, 30, &n);
            if (rc)
                return rc;
        }
        r->cron->days_before_last |= UINT32_C(1) << n;
    }
    return WEIR_OK;
}

/* The text that may follow a value. */
static weir_code read_suffix(reader *r, int value)
{
    const char *from = r->s;
    weir_cron  *c = r->cron;
    int         n;
    if (r->field == DAY && accept(r, 'W')) {
        c->nearest_weekdays |= UINT32_C(1) << value;
    } else if (r->field == DAY && accept(r, 'L')) {
        if (value > 30)
            return bad(r, from - 2, "no month has a day %d days before its last", value);
        c->days_before_last |= UINT32_C(1) << value;
    } else if (r->field == WEEKDAY && accept(r, 'L')) {
        c->last_weekdays |= (uint8_t)(1 << value % 7);
    } else if (r->field == WEEKDAY && accept(r, '#')) {
        weir_code rc = read_number(r, "the number behind #", 1, 5, &n);
        if (rc)
            return rc;
        c->nth_weekdays[n - 1] |= (uint8_t)(1 << value % 7);
    } else if (accept(r, '-')) {
        weir_code rc = read_value(r, true, &n);
        if (rc)
            return rc;
        if (n < value)
            return bad(r, from + 1, "the range ends before it begins");
        return set_range(r, value, n);
    } else {
        return set_range(r, value, next_is(r, '/') ? r->kind->max : value);
    }
    return WEIR_OK;
}

static weir_code read_part(reader *r)
{
    bool      of_days = r->field == DAY || r->field == WEEKDAY;
    weir_code rc;
    int       value;
    if (accept(r, '*')) {
        rc = set_range(r, r->kind->star, r->kind->max);
    } else if (of_days && accept(r, '?')) {
        rc = next_is(r, '/') ? bad(r, r->s, "a step does not go with ?")
                             : set_range(r, r->kind->star, r->kind->max);
    } else if (of_days && next_is(r, 'L')) {
        rc = read_last(r);
    } else {
        rc = read_value(r, false, &value);
        if (!rc)
            rc = read_suffix(r, value);
    }
    if (rc || r->s == r->end || *r->s == ',')
        return rc;
    return bad(r, r->s, "\"%.*s\" is not understood here",
               (int)(r->end - r->s < 12 ? r->end - r->s : 12), r->s);
}

static weir_code read_field(reader *r)
{
    bool any = *r->s == '*' || *r->s == '?';
    if (r->field == DAY)
        r->cron->any_day = any;
    if (r->field == WEEKDAY)
        r->cron->any_weekday = any;
    weir_code rc;
    do
        rc = read_part(r);
    while (!rc && accept(r, ','));
    return rc;
}

/* ---- five or six fields ---- */

static weir_code read_fields(weir_cron *c, const char *text, weir_error *err)
{
    static const char space[] = " \t";
    const char       *from[FIELDS], *s = text + strspn(text, space), *place = s;
    size_t            len[FIELDS];
    int               n = 0;
    for (; *s; s += strspn(s, space), n++) {
        size_t l = strcspn(s, space);
        if (n < FIELDS) {
            from[n] = s;
            len[n] = l;
        }
        place = n < FIELDS ? s + l : n == FIELDS ? s : place;
        s += l;
    }
    if (n != 5 && n != 6)           /* the place: where one is missing, or the first too many */
        return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: it has %d field%s; expected 5 "
                         "(minute, hour, day, month, weekday), or 6 with the second first", text,
                         (int)(place - text) + 1, n, n == 1 ? "" : "s");
    c->seconds = n == 5;                /* second 0 */
    for (int i = 0; i < n; i++) {
        int       field = i + FIELDS - n;
        reader    r = { text, from[i], from[i] + len[i], field, &kinds[field], c, err };
        weir_code rc = read_field(&r);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

/* Dates and weekdays repeat every 400 years. */
static weir_code check_fires(const weir_cron *c, const char *text, weir_error *err)
{
    weir_date d = { 2000, 1, 1 };
    if (weir__cron_next_day(c, &d, 2399))
        return WEIR_OK;
    const char *third[3] = { text, text, text };        /* from the end: the day */
    int         n = 0;
    for (const char *s = text + strspn(text, " \t"); *s; s += strspn(s, " \t")) {
        third[n++ % 3] = s;
        s += strcspn(s, " \t");
    }
    return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: it never fires: no date matches its "
                     "day, month and weekday", text, (int)(third[n % 3] - text) + 1);
}

/* ---- other forms ---- */

static const struct {
    const char *name, *fields;
} aliases[] = {
    { "@yearly", "0 0 1 1 *" },   { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" },   { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

/* The rest of `text` behind `word` and at least one blank; NULL: it begins with something else. */
static const char *behind(const char *text, const char *word)
{
    size_t len = strlen(word);
    if (strncasecmp(text, word, len) != 0 || (text[len] != ' ' && text[len] != '\t'))
        return NULL;
    return text + len + strspn(text + len, " \t");
}

/* "12:00" or "??:30". */
static weir_code read_at(weir_cron *c, const char *text, const char *at, weir_error *err)
{
    bool any = strncmp(at, "??", 2) == 0;
    int  hour = 0, minute;
    for (int i = 0; i < 5; i++)
        if (i == 2 ? at[i] != ':' : !isdigit((unsigned char)at[i]) && !(any && i < 2))
            return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: \"%.20s\" is not understood; "
                             "write it like @at 06:30 or @at ??:30", text,
                             (int)(at - text) + i + 1, at);
    if (!any)
        hour = (at[0] - '0') * 10 + at[1] - '0';
    minute = (at[3] - '0') * 10 + at[4] - '0';
    if (at[5 + strspn(at + 5, " \t")] || hour > 23 || minute > 59)
        return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: \"%.20s\" is no time of a day; "
                         "expected 00:00 to 23:59", text, (int)(at - text) + 1, at);
    char fields[32];
    snprintf(fields, sizeof fields, any ? "%d * * * *" : "%d %d * * *", minute, hour);
    return read_fields(c, fields, err);
}

/* "15m" or "2 hours": aligned to the clock, as delayqueue does it. */
static weir_code read_clock_every(weir_cron *c, const char *text, const char *s, weir_error *err)
{
    static const struct {
        const char *unit, *fields;
        long        max;
    } units[] = {
        { "h", "0 */%ld * * *", 23 }, { "hour", "0 */%ld * * *", 23 },
        { "hours", "0 */%ld * * *", 23 }, { "m", "*/%ld * * * *", 59 },
        { "minute", "*/%ld * * * *", 59 }, { "minutes", "*/%ld * * * *", 59 },
    };
    char        fields[40], unit[10], *end;
    const char *place = s;
    long        n = isdigit((unsigned char)*s) ? strtol(s, &end, 10) : 0;
    if (n >= 1) {
        place = end;
        end += strspn(end, " \t");
        snprintf(unit, sizeof unit, "%.*s", (int)strcspn(end, " \t"), end);
        end += strcspn(end, " \t");
        for (size_t i = 0; i < sizeof units / sizeof *units && !end[strspn(end, " \t")]; i++) {
            if (strcasecmp(unit, units[i].unit) != 0)
                continue;
            if (n > units[i].max)
                return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: %ld is out of range, "
                                 "since @every follows the clock; expected 1 to %ld, or write "
                                 "every %ld%c", text, (int)(s - text) + 1, n, units[i].max, n,
                                 *units[i].unit);
            snprintf(fields, sizeof fields, units[i].fields, n);
            return read_fields(c, fields, err);
        }
    }
    return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: \"%.20s\" is not understood; write "
                     "it like @every 15m or @every 2h; for other intervals, every 90m or every 30s",
                     text, (int)(place - text) + 1, s);
}

static weir_code read_interval(weir_cron *c, const char *text, const char *s, weir_error *err)
{
    weir_error why = { 0 };
    char       length[40];
    size_t     len = strcspn(s, " \t");
    snprintf(length, sizeof length, "%.*s", (int)len, s);
    if (len >= sizeof length || s[len + strspn(s + len, " \t")] ||
        !isalpha((unsigned char)length[len ? len - 1 : 0]))
        return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: expected one length of time such "
                         "as 30s, 90m or 1h30m", text, (int)(s - text) + 1);
    if (weir_duration_parse(length, &c->every_ms, &why))
        return weir_fail(err, why.code, "\"%.40s\", column %d: %.150s", text, (int)(s - text) + 1,
                         why.msg);
    if (c->every_ms < WEIR_CRON_MIN_EVERY_MS)
        return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: an interval is at least 1s", text,
                         (int)(s - text) + 1);
    return WEIR_OK;
}

static weir_code read_text(weir_cron *c, const char *text, weir_error *err)
{
    const char *s = text + strspn(text, " \t"), *rest;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        size_t len = strlen(aliases[i].name);
        if (strncasecmp(s, aliases[i].name, len) == 0 && !s[len + strspn(s + len, " \t")])
            return read_fields(c, aliases[i].fields, err);
    }
    if ((rest = behind(s, "@at")))
        return read_at(c, text, rest, err);
    if ((rest = behind(s, "@every")))
        return read_clock_every(c, text, rest, err);
    if ((rest = behind(s, "every")))
        return read_interval(c, text, rest, err);
    if (*s == '@')
        return weir_fail(err, WEIR_EINVAL, "\"%.60s\", column %d: \"%.30s\" is unknown; expected "
                         "@yearly, @monthly, @weekly, @daily, @hourly, @every 15m or @at 06:30",
                         text, (int)(s - text) + 1, s);
    return read_fields(c, text, err);
}

/* The message has the expression or the zone in it, so that its field need not be in it, too. */
static weir_code wrong(weir_error *err, weir_code rc, const char *field)
{
    if (err)
        strcpy(err->field, field);
    return rc;
}

weir_code weir__cron_parse(weir_cron *out, const char *text, const char *zone, bool either,
                           weir_error *err)
{
    weir_cron c = { .either = either };
    *out = (weir_cron){ 0 };
    if (!text || strlen(text) > WEIR_MAX_WHEN)
        return wrong(err, weir_fail(err, WEIR_EINVAL, "the expression %s",
                                    text ? "is longer than 256 bytes (WEIR_MAX_WHEN)"
                                         : "is missing"), "when");
    weir_code rc = weir__zone_find(&c.zone, zone, err);
    if (rc)
        return wrong(err, rc, "zone");
    rc = read_text(&c, text, err);
    if (!rc && !c.every_ms)
        rc = check_fires(&c, text, err);
    if (rc)
        return wrong(err, rc, "when");
    *out = c;
    return WEIR_OK;
}
