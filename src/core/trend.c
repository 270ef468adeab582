/* trend.c - see trend.h. */
#include "core/trend.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static const char *const count_names[] = {
#define X(name, text) text,
    WEIR_TREND_COUNTS(X)
};
static const char *const gauge_names[] = {
    WEIR_TREND_GAUGES(X)
#undef X
};
enum { PER_OCTAVE = 4 };

void weir__trend_clear(weir_trend *t)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < WEIR_TREND_N_GAUGES; i++)
        t->gauge[i] = -1;
}

bool weir__trend_is_empty(const weir_trend *t)
{
    weir_trend none;
    weir__trend_clear(&none);
    return memcmp(t, &none, sizeof none) == 0;
}

/* ---- histograms ---- */

/* The whole part of 2 to the power of bucket / PER_OCTAVE. */
static int64_t upper_end(int bucket)
{
    static const double within[PER_OCTAVE] = { 1.0, 1.189207115002721, 1.4142135623730951,
                                               1.681792830507429 };
    return (int64_t)((double)(INT64_C(1) << (bucket / PER_OCTAVE)) * within[bucket % PER_OCTAVE]);
}

static void add_up(uint32_t *to, uint64_t n)
{
    *to = n > UINT32_MAX - *to ? UINT32_MAX : *to + (uint32_t)n;
}

void weir__trend_time(uint32_t *histogram, int64_t ms)
{
    int i = ms > 1 ? PER_OCTAVE * (63 - __builtin_clzll((unsigned long long)ms)) : 0;
    while (i < WEIR_TREND_BUCKETS - 1 && upper_end(i) < ms)
        i++;
    if (i > WEIR_TREND_BUCKETS - 1)
        i = WEIR_TREND_BUCKETS - 1;
    add_up(&histogram[i], 1);
}

int64_t weir__trend_share(const uint32_t *histogram, double share)
{
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < WEIR_TREND_BUCKETS; i++)
        all += histogram[i];
    if (!all)
        return -1;
    uint64_t want = (uint64_t)((double)all * share);
    int      i = 0;
    want += (double)want < (double)all * share || !want;
    while (i < WEIR_TREND_BUCKETS - 1 && (seen += histogram[i]) < want)
        i++;
    return upper_end(i);
}

/* ---- two records ---- */

void weir__trend_join(weir_trend *a, const weir_trend *b)
{
#define HIGHER(member, n)                                                                         \
    for (int i = 0; i < (n); i++)                                                                 \
        a->member[i] = a->member[i] > b->member[i] ? a->member[i] : b->member[i]
    HIGHER(count, WEIR_TREND_N_COUNTS);
    HIGHER(gauge, WEIR_TREND_N_GAUGES);
    HIGHER(waited, WEIR_TREND_BUCKETS);
    HIGHER(ran, WEIR_TREND_BUCKETS);
#undef HIGHER
}

void weir__trend_follow(weir_trend *a, const weir_trend *b)
{
    for (int i = 0; i < WEIR_TREND_N_COUNTS; i++) {
        uint64_t room = (uint64_t)WEIR_TREND_MOST - a->count[i];
        a->count[i] += b->count[i] < room ? b->count[i] : room;
    }
    for (int i = 0; i < WEIR_TREND_N_GAUGES; i++)
        a->gauge[i] = b->gauge[i] >= 0 ? b->gauge[i] : a->gauge[i];
    for (int i = 0; i < WEIR_TREND_BUCKETS; i++) {
        add_up(&a->waited[i], b->waited[i]);
        add_up(&a->ran[i], b->ran[i]);
    }
}

/* ---- as text ---- */

static void put(char *out, size_t *len, const char *name, int i, uint64_t value)
{
    char number[12] = "";
    if (i >= 0)
        snprintf(number, sizeof number, "%d", i);
    int n = snprintf(out + *len, WEIR_TREND_MAX_BYTES - *len, "%s%s%s=%llu", *len ? " " : "", name,
                     number, (unsigned long long)value);
    assert(n > 0 && *len + (size_t)n < WEIR_TREND_MAX_BYTES);
    *len += (size_t)n;
}

static uint64_t bounded(uint64_t n)
{
    return n < (uint64_t)WEIR_TREND_MOST ? n : (uint64_t)WEIR_TREND_MOST;
}

size_t weir__trend_write(const weir_trend *t, char out[WEIR_TREND_MAX_BYTES])
{
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < WEIR_TREND_N_COUNTS; i++)
        if (t->count[i])
            put(out, &len, count_names[i], -1, bounded(t->count[i]));
    for (int i = 0; i < WEIR_TREND_N_GAUGES; i++)
        if (t->gauge[i] >= 0)
            put(out, &len, gauge_names[i], -1, bounded((uint64_t)t->gauge[i]));
    for (int i = 0; i < WEIR_TREND_BUCKETS; i++)
        if (t->waited[i])
            put(out, &len, "w", i, t->waited[i]);
    for (int i = 0; i < WEIR_TREND_BUCKETS; i++)
        if (t->ran[i])
            put(out, &len, "r", i, t->ran[i]);
    return len;
}

/* Digits, at most `most`; behind them the text goes on. False: no number. */
static bool read_number(const char **at, uint64_t most, uint64_t *out)
{
    const char *p = *at;
    uint64_t    n = 0;
    while (*p >= '0' && *p <= '9' && n <= most)
        n = 10 * n + (uint64_t)(*p++ - '0');
    bool ok = p > *at && n <= most;
    *at = p;
    *out = n;
    return ok;
}

static int named(const char *const *names, int n, const char *text, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == len && !memcmp(names[i], text, len))
            return i;
    return -1;
}

/* The place of a name in a record; each is set at most once. */
static bool set(weir_trend *t, const char *name, size_t len, uint64_t value)
{
    uint64_t    bucket;
    const char *digits = name + 1;
    int         i = named(count_names, WEIR_TREND_N_COUNTS, name, len);
    if (i >= 0) {
        bool first = !t->count[i];
        t->count[i] = value;
        return first;
    }
    if ((i = named(gauge_names, WEIR_TREND_N_GAUGES, name, len)) >= 0) {
        bool first = t->gauge[i] < 0;
        t->gauge[i] = (int64_t)value;
        return first;
    }
    if ((*name != 'w' && *name != 'r') || value > UINT32_MAX ||
        !read_number(&digits, WEIR_TREND_BUCKETS - 1, &bucket) || digits != name + len)
        return false;
    uint32_t *place = &(*name == 'w' ? t->waited : t->ran)[bucket];
    bool      first = !*place;
    *place = (uint32_t)value;
    return first;
}

weir_code weir__trend_read(weir_trend *out, const char *text, weir_error *err)
{
    weir__trend_clear(out);
    for (const char *at = text; *at;) {
        size_t      len = strcspn(at, "= ");
        const char *value = at + len + 1;
        uint64_t    n;
        if (at[len] != '=' || !read_number(&value, (uint64_t)WEIR_TREND_MOST, &n) ||
            (*value && *value != ' ') || !set(out, at, len, n)) {
            weir__trend_clear(out);
            return weir__fail_field(err, WEIR_EINVAL, "record", "\"%.40s\" is not NAME=NUMBER of "
                                    "a trend, or is given twice", at);
        }
        at = value + strspn(value, " ");
    }
    return WEIR_OK;
}

size_t weir__trend_join_texts(const char *a, const char *b, char out[WEIR_TREND_MAX_BYTES])
{
    weir_trend one, other;
    weir__trend_read(&one, a, NULL);
    weir__trend_read(&other, b, NULL);
    weir__trend_join(&one, &other);
    return weir__trend_write(&one, out);
}

/* ---- slots ---- */

static const struct {
    const char *name;
    int64_t     ms, kept;
} steps[] = {
    [WEIR_TREND_MINUTE] = { "1m", 60000, WEIR_TREND_MINUTES },
    [WEIR_TREND_HOUR] = { "1h", 3600000, WEIR_TREND_HOURS },
};

int64_t weir__trend_step_ms(weir_trend_step step)
{
    return steps[step].ms;
}

const char *weir__trend_step_name(weir_trend_step step)
{
    return steps[step].name;
}

weir_trend_step weir__trend_step_named(const char *name, size_t len)
{
    for (int i = 0; i < WEIR_TREND_STEPS; i++)
        if (strlen(steps[i].name) == len && !memcmp(steps[i].name, name, len))
            return (weir_trend_step)i;
    return WEIR_TREND_STEPS;
}

int64_t weir__trend_first_kept(weir_trend_step step, int64_t now)
{
    int64_t first = now / steps[step].ms - steps[step].kept + 1;
    return first > 0 ? first : 0;
}

int64_t weir__trend_last_kept(weir_trend_step step, int64_t now)
{
    return (now + WEIR_TREND_AHEAD_MS) / steps[step].ms;
}
