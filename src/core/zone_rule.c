/* zone_rule.c - the rule for the years after a zone's table: see zone_rule.h. */
#include "core/zone_rule.h"

#include <string.h>
#include "core/civil.h"

/* ---- parsing: each function moves *s behind what it read ---- */

static bool read_number(const char **s, int max, int *out)
{
    int n = 0;
    if (**s < '0' || **s > '9')
        return false;
    for (; **s >= '0' && **s <= '9'; ++*s) {
        n = n * 10 + (**s - '0');
        if (n > max)
            return false;
    }
    *out = n;
    return true;
}

/* "CET" or "<+03>"; its text does not matter. */
static bool skip_name(const char **s)
{
    const char *from = *s;
    if (**s == '<') {
        while (**s && **s != '>')
            ++*s;
        return *(*s)++ == '>';
    }
    while ((**s >= 'A' && **s <= 'Z') || (**s >= 'a' && **s <= 'z'))
        ++*s;
    return *s - from >= 3;
}

/* "[-]h[:mm[:ss]]" in seconds. */
static bool read_time(const char **s, int max_hours, int32_t *out)
{
    int sign = **s == '-' ? -1 : 1, hours, minutes = 0, seconds = 0;
    if (**s == '-' || **s == '+')
        ++*s;
    if (!read_number(s, max_hours, &hours))
        return false;
    if (**s == ':' && (++*s, !read_number(s, 59, &minutes)))
        return false;
    if (**s == ':' && (++*s, !read_number(s, 59, &seconds)))
        return false;
    *out = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

/* "M3.5.0", "J60" or "59", then perhaps "/time". */
static bool read_day(const char **s, weir_zone_day *out)
{
    *out = (weir_zone_day){ .time = 2 * 3600 };
    if (*(*s)++ != ',')
        return false;
    if (**s == 'M') {
        out->kind = ZONE_WEEKDAY;
        ++*s;
        if (!read_number(s, 12, &out->month) || !out->month || *(*s)++ != '.' ||
            !read_number(s, 5, &out->week) || !out->week || *(*s)++ != '.' ||
            !read_number(s, 6, &out->day))
            return false;
    } else {
        out->kind = **s == 'J' ? ZONE_JULIAN : ZONE_DAY;
        *s += out->kind == ZONE_JULIAN;
        if (!read_number(s, 365, &out->day) || (out->kind == ZONE_JULIAN && !out->day))
            return false;
    }
    if (**s != '/')
        return true;
    ++*s;
    return read_time(s, 167, &out->time);
}

bool weir__zone_rule_parse(weir_zone_rule *out, const char *text)
{
    const char *s = text;
    *out = (weir_zone_rule){ 0 };
    if (!skip_name(&s) || !read_time(&s, 24, &out->std))
        return false;
    out->std = -out->std;               /* POSIX counts to the west */
    if (!*s)
        return true;
    out->has_dst = true;
    out->dst = out->std + 3600;
    if (!skip_name(&s))
        return false;
    if (*s != ',') {
        if (!read_time(&s, 24, &out->dst))
            return false;
        out->dst = -out->dst;
    }
    return read_day(&s, &out->start) && read_day(&s, &out->end) && !*s;
}

/* ---- spans ---- */

/* Local seconds since 1970 of that day and time in a year. */
static int64_t moment_of(const weir_zone_day *d, int year)
{
    int64_t days;
    if (d->kind == ZONE_WEEKDAY) {
        days = weir__days_of(year, d->month, 1);
        int first = 1 + (d->day - weir__weekday_of(days) + 7) % 7, day = first + (d->week - 1) * 7;
        days += (day > weir__days_in_month(year, d->month) ? day - 7 : day) - 1;
    } else {
        days = weir__days_of(year, 1, 1) + d->day;
        if (d->kind == ZONE_JULIAN && !(weir__is_leap(year) && d->day >= 60))
            days--;
    }
    return days * WEIR__DAY_S + d->time;
}

typedef struct edge {
    int64_t at;
    int32_t offset;             /* from then on */
} edge;

/* Edges that meet, as in a rule of daylight saving time all year, are none. */
static size_t put_edge(edge *list, size_t n, edge e)
{
    size_t i = n;
    if (n && list[n - 1].at == e.at)
        return n - 1;
    for (; i > 0 && list[i - 1].at > e.at; i--)
        list[i] = list[i - 1];
    list[i] = e;
    return n + 1;
}

weir_zone_span weir__zone_rule_span(const weir_zone_rule *r, int64_t at)
{
    weir_zone_span span = { INT64_MIN, INT64_MAX, r->std, r->std };
    edge           list[6];
    size_t         n = 0;
    if (!r->has_dst)
        return span;
    int year = weir__date_of(weir__div_floor(at + r->std, WEIR__DAY_S)).year;
    for (int y = year - 1; y <= year + 1; y++) {
        n = put_edge(list, n, (edge){ moment_of(&r->start, y) - r->std, r->dst });
        n = put_edge(list, n, (edge){ moment_of(&r->end, y) - r->dst, r->std });
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].at > at) {
            span.until = list[i].at;
            break;
        }
        span.from = list[i].at;
        span.offset = list[i].offset;
        span.before = i ? list[i - 1].offset : list[i].offset == r->std ? r->dst : r->std;
    }
    return span;
}
