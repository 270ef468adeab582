/* fuzz_cli.c - the values of the command line. The first byte picks the parser, the rest is the
 * text; before a time are four bytes more: the seconds since 1970 that it is now. */
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "cli/options.h"
#include "fuzz/fuzz.h"

static void check_failed(weir_code rc, const weir_error *err)
{
    MUST(rc == WEIR_EINVAL && err->code == rc && err->msg[0]);
}

/* ---- times ---- */

static int64_t read_time(const char *text, int64_t now)
{
    int64_t at = -1;
    MUST(!opt_time("at", text, now, false, &at, NULL));
    return at;
}

/* Written in UTC, in local time and as a number it is the same time. */
static void written_again(int64_t at)
{
    char      day[64], text[128], zone[16];
    struct tm tm;
    time_t    seconds = (time_t)(at / 1000);
    MUST(gmtime_r(&seconds, &tm));
    if (tm.tm_year + 1900 < 9999) {
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(text, sizeof text, "%s.%03dZ", day, (int)(at % 1000));
        MUST(read_time(text, 0) == at);
        MUST(localtime_r(&seconds, &tm));
        strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &tm);
        strftime(zone, sizeof zone, "%z", &tm);
        snprintf(text, sizeof text, "%s.%03d%s", day, (int)(at % 1000), zone);
        MUST(read_time(text, 0) == at);
    }
    snprintf(text, sizeof text, "%lld", (long long)at);
    if (strlen(text) >= 12)
        MUST(read_time(text, 0) == at);
}

/* "HH:MM" is the next time that the clock shows it, unless it is left out on that day. */
static void next_one(const char *text, int64_t now, int64_t at)
{
    enum { TWO_DAYS = 2 * 86400 * 1000 };
    struct tm tm, want;
    time_t    seconds = (time_t)(at / 1000);
    int       hour = atoi(text), minute = atoi(text + 3);
    MUST(at > now && at - now < TWO_DAYS);
    MUST(localtime_r(&seconds, &tm));
    want = tm;
    want.tm_hour = hour;
    want.tm_min = minute;
    want.tm_isdst = -1;
    mktime(&want);
    bool left_out = want.tm_hour != hour;
    MUST(left_out || (tm.tm_hour == hour && tm.tm_min == minute));
}

static void a_time(const char *text, int64_t now)
{
    weir_error err;
    int64_t    at;
    weir_code  rc = opt_time("at", text, now, false, &at, &err);
    if (rc) {
        check_failed(rc, &err);
        return;
    }
    MUST(at > 0);
    written_again(at);
    if (strlen(text) >= 5 && text[2] == ':')
        next_one(text, now, at);
}

/* ---- the others ---- */

/* Digits without zeros in front, after a minus where there may be one. */
static size_t plain_number(const char *s, bool negative)
{
    size_t sign = negative && *s == '-' && s[1] != '0', n = strspn(s + sign, "0123456789");
    return n && (s[sign] != '0' || n == 1) ? sign + n : 0;
}

static void cursor(const char *text)
{
    weir_cursor c, again;
    char        out[64];
    if (!opt_cursor(text, &c))
        return;
    snprintf(out, sizeof out, "%lld.%llu", (long long)c.rank, (unsigned long long)c.id);
    MUST(opt_cursor(out, &again) && again.rank == c.rank && again.id == c.id);
    size_t n = plain_number(text, true);
    if (n && text[n] == '.' && plain_number(text + n + 1, false) == strlen(text + n + 1))
        MUST(!strcmp(text, out));       /* not another place in the list */
}

static void keep(const char *text)
{
    weir_keep k, again;
    char      out[64];
    if (!opt_keep(text, &k))
        return;
    bool forever = k.age_ms == WEIR_FOREVER;
    MUST(forever || (k.age_ms >= 0 && k.age_ms <= WEIR_MAX_MS));
    MUST(k.count >= 0 && !(forever && k.count));
    if (forever)
        strcpy(out, "forever");
    else if (k.age_ms && k.count)
        snprintf(out, sizeof out, "%lldms,%lld", (long long)k.age_ms, (long long)k.count);
    else if (k.age_ms)
        snprintf(out, sizeof out, "%lldms", (long long)k.age_ms);
    else if (k.count)
        snprintf(out, sizeof out, "%lld", (long long)k.count);
    else
        strcpy(out, "default");
    MUST(opt_keep(out, &again) && again.age_ms == k.age_ms && again.count == k.count);
    MUST(k.age_ms || k.count || !strcmp(text, "default"));
}

/* Every name between commas counts, however many there are. */
static void events(const char *text)
{
    weir_error err;
    uint32_t   got = 0, want = 0;
    bool       known = true;
    weir_code  rc = opt_events(text, &got, &err);
    for (const char *p = text; *p;) {
        size_t          n = strcspn(p, ",");
        char           *name = strndup(p, n);
        weir_event_kind kind;
        MUST(name);
        if (n && weir_event_parse(name, &kind))
            want |= WEIR_BIT(kind);
        else if (n)
            known = false;
        free(name);
        p += n + (p[n] == ',');
    }
    MUST(!rc == (known && want));
    if (rc)
        check_failed(rc, &err);
    else
        MUST(got == want);
}

static void number(const char *text)
{
    weir_error err;
    uint64_t   id = 0;
    int64_t    n = 0, again = 1;
    char       out[32];
    weir_code  rc = opt_id(text, &id, &err);
    if (rc)
        check_failed(rc, &err);
    if (opt_whole(text, &n)) {
        snprintf(out, sizeof out, "%lld", (long long)n);
        MUST(opt_whole(out, &again) && again == n);
        MUST(plain_number(text, true) != strlen(text) || !strcmp(text, out));
        MUST(!rc == (n > 0 && *text != '+'));
        MUST(rc || id == (uint64_t)n);
    } else {
        MUST(rc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const char *text) = { cursor, keep, events, number };
    enum { PARSERS = sizeof parsers / sizeof *parsers };
    if (!size)
        return 0;
    /* Summer time without files of zones: on a day in March the clock shows no 02:30. */
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    size_t which = data[0] % (PARSERS + 1), skip = which == PARSERS ? 5 : 1;
    if (size < skip)
        return 0;
    char *text = strndup((const char *)data + skip, size - skip);
    MUST(text);
    if (which == PARSERS)
        a_time(text, ((int64_t)data[1] << 24 | data[2] << 16 | data[3] << 8 | data[4]) * 1000);
    else
        parsers[which](text);
    free(text);
    return 0;
}
