/* schedule.c - a schedule as JSON: see schedule.h. */
#include "op/schedule.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "core/firing.h"
#include "core/job.h"
#include "core/values.h"
#include "op/row.h"

/* ---- checks ---- */

weir_code weir__schedule_name_check(const char *name, weir_error *err)
{
    size_t len = name ? strlen(name) : 0;
    if (!len || len > WEIR_MAX_SCHEDULE_NAME || !weir__utf8_valid(name, len))
        return weir__fail_field(err, WEIR_EINVAL, "name", "a schedule's name is 1 to %d bytes of "
                                "UTF-8", WEIR_MAX_SCHEDULE_NAME);
    return WEIR_OK;
}

bool weir__schedule_is_own(const char *name)
{
    return strncmp(name, WEIR_OWN_SCHEDULE, strlen(WEIR_OWN_SCHEDULE)) == 0;
}

weir_code weir__schedule_spec(const weir_schedule *s, int64_t at, weir_buf *values, weir_spec *out,
                              weir_error *err)
{
    weir_buf    change = { 0 };
    const char *own = s->job.values;
    size_t      len = own && !s->job.values_len ? strlen(own) : s->job.values_len;
    *out = s->job;
    weir__buf_str(&change, "{\"schedule\":");
    weir__json_string(&change, s->name, strlen(s->name));
    weir__buf_printf(&change, ",\"scheduled_at\":%lld}", (long long)at);
    weir_code rc = change.failed ? weir_fail(err, WEIR_ENOMEM, "schedule: out of memory")
                                 : weir__values_merge(values, own, len,
                                                      change.data, change.len, err);
    weir__buf_fini(&change);
    out->values = values->data;
    out->values_len = values->len;
    return rc;
}

/* Its firings add values, for which there must be room. */
static weir_code check_job(const weir_schedule *s, weir_error *err)
{
    weir_buf  values = { 0 };
    weir_spec spec;
    weir_code rc = weir__spec_check(&s->job, -1, err);
    if (!rc)
        rc = weir__schedule_spec(s, WEIR__MAX_AT, &values, &spec, err);
    weir__buf_fini(&values);
    return rc ? weir__fail_inside(err, rc, "job") : WEIR_OK;
}

weir_code weir__schedule_check(const weir_schedule *s, weir_error *err)
{
    weir_cron c;
    weir_code rc = weir__schedule_name_check(s->name, err);
    if (!rc)
        rc = weir__schedule_parse(&c, s, err);
    if (!rc)
        rc = weir__ms_check(s->jitter_ms, "jitter_ms", err);
    if (rc)
        return rc;
    if (s->start_at < 0 || s->end_at < 0 || (s->end_at && s->end_at < s->start_at))
        return weir__fail_field(err, WEIR_EINVAL, "end_at", "the schedule ends before it starts");
    if (s->missed_limit < 0 || s->missed_limit > WEIR_MAX_FIRINGS)
        return weir__fail_field(err, WEIR_EINVAL, "missed_limit", "%" PRId32 " is out of range; "
                                "expected 0 to %d", s->missed_limit, WEIR_MAX_FIRINGS);
    if ((unsigned)s->missed > WEIR_MISSED_ALL || (unsigned)s->overlap > WEIR_OVERLAP_REPLACE)
        return weir__fail_field(err, WEIR_EINVAL, (unsigned)s->missed > WEIR_MISSED_ALL ? "missed" :
                                "overlap", "unknown value");
    return check_job(s, err);
}

weir_code weir__schedule_record_check(const char *name, const char *record, size_t len,
                                      weir_error *err)
{
    weir_arena    arena = { 0 };
    weir_reader   in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_schedule s;
    weir_code     rc = weir__schedule_read(&in, record, len, &s);
    if (rc && err)
        *err = in.err;
    if (!rc)
        rc = weir__schedule_check(&s, err);
    if (!rc && strcmp(s.name, name) != 0)
        rc = weir__fail_field(err, WEIR_EINVAL, "schedule.name", "it is not the name of the "
                              "operation");
    weir__arena_free(&arena);
    return rc;
}

/* ---- writing ---- */

static void put_text(weir_buf *b, const char *name, const char *text)
{
    if (text)
        weir__put_text(b, name, text, strlen(text));
}

static void put_number(weir_buf *b, const char *name, int64_t n)
{
    if (n)
        weir__put_int(b, name, n);
}

static void put_history(weir_buf *b, const weir_schedule *s)
{
    weir__buf_str(b, ",\"history\":[");
    for (size_t i = 0; i < s->n_history; i++) {
        const weir_firing *f = &s->history[i];
        weir__put_next(b, i);
        weir__put_int(b, "{\"at\":", f->at);
        weir__put_int(b, ",\"done_at\":", f->done_at);
        put_text(b, ",\"outcome\":", weir_firing_name(f->outcome));
        put_number(b, ",\"job\":", (int64_t)f->job);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

void weir__schedule_json(weir_buf *b, const weir_schedule *s)
{
    weir__put_text(b, "{\"name\":", s->name, strlen(s->name));
    put_text(b, ",\"when\":", s->when);
    put_text(b, ",\"zone\":", s->zone);
    weir__put_flag(b, ",\"day_or_weekday\":", s->day_or_weekday);
    weir__buf_str(b, ",\"job\":");
    weir__put_spec(b, &s->job);
    put_number(b, ",\"start_at\":", s->start_at);
    put_number(b, ",\"end_at\":", s->end_at);
    put_text(b, ",\"except\":", s->except);
    put_number(b, ",\"jitter\":", s->jitter_ms);
    put_text(b, ",\"missed\":", weir_missed_name(s->missed));
    put_number(b, ",\"missed_limit\":", s->missed_limit);
    put_text(b, ",\"overlap\":", weir_overlap_name(s->overlap));
    weir__buf_str(b, s->paused ? ",\"paused\":true" : ",\"paused\":false");
    put_number(b, ",\"created_at\":", s->created_at);
    put_number(b, ",\"next_at\":", s->next_at);
    put_number(b, ",\"last_at\":", s->last_at);
    put_number(b, ",\"last_job\":", (int64_t)s->last_job);
    weir__put_int(b, ",\"fired\":", s->fired);
    put_history(b, s);
}

void weir__schedule_write(weir_buf *b, const weir_schedule *s)
{
    weir__schedule_json(b, s);
    put_number(b, ",\"caught_up\":", s->caught_up);
    weir__put_id(b, ",\"series\":", s->series);
    weir__put_id(b, ",\"turn\":", s->turn);
    weir__buf_char(b, '}');
}

/* ---- reading ---- */

static weir_code as_word(weir_reader *in, weir_json_piece value, void *to,
                         bool (*parse)(const char *, void *), const char *wanted)
{
    const char *text = NULL;
    if (weir__as_text(in, &(weir_field){ 0 }, value, &text))
        return in->err.code;
    return parse(text, to) ? WEIR_OK : weir__not_a(in, value, wanted);
}

#define WORDS(type, wanted)                                                                       \
    static bool parse_##type(const char *text, void *to)                                          \
    {                                                                                             \
        return weir_##type##_parse(text, to);                                                     \
    }                                                                                             \
    static weir_code as_##type(weir_reader *in, const weir_field *f, weir_json_piece value,       \
                               void *to)                                                          \
    {                                                                                             \
        (void)f;                                                                                  \
        return as_word(in, value, to, parse_##type, wanted);                                      \
    }
WORDS(missed, "once, skip or all")
WORDS(overlap, "allow, skip, queue or replace")
WORDS(firing, "the outcome of a firing")

#define FIRING(member) offsetof(weir_firing, member)
static const weir_field firing_fields[] = {
    WEIR_FIELD("at", weir__as_int, FIRING(at), .needed = true),
    WEIR_FIELD("done_at", weir__as_int, FIRING(done_at), .needed = true),
    WEIR_FIELD("outcome", as_firing, FIRING(outcome), .needed = true),
    WEIR_FIELD("job", weir__as_number, FIRING(job)),
    { 0 }
};
#undef FIRING

typedef struct record {
    weir_schedule   s;
    weir_json_piece job;
    weir_items      history;
} record;

#define AT(member) offsetof(record, s.member)

/* The members that a caller gives. */
#define GIVEN_FIELDS                                                                              \
    WEIR_FIELD("name", weir__as_text, AT(name)),                                                  \
    WEIR_FIELD("when", weir__as_text, AT(when), .needed = true),                                  \
    WEIR_FIELD("zone", weir__as_text, AT(zone)),                                                  \
    WEIR_FIELD("day_or_weekday", weir__as_bool, AT(day_or_weekday)),                              \
    WEIR_FIELD("job", weir__as_raw, offsetof(record, job), .needed = true),                       \
    WEIR_FIELD("start_at", weir__as_moment, AT(start_at)),                                        \
    WEIR_FIELD("end_at", weir__as_moment, AT(end_at)),                                            \
    WEIR_FIELD("except", weir__as_text, AT(except), .max = WEIR_MAX_EXCEPT),                      \
    WEIR_FIELD("jitter", weir__as_ms, AT(jitter_ms)),                                             \
    WEIR_FIELD("missed", as_missed, AT(missed)),                                                  \
    WEIR_FIELD("missed_limit", weir__as_int32, AT(missed_limit), .max = WEIR_MAX_FIRINGS),        \
    WEIR_FIELD("overlap", as_overlap, AT(overlap)),                                               \
    WEIR_FIELD("paused", weir__as_bool, AT(paused))

static const weir_field given_fields[] = { GIVEN_FIELDS, { 0 } };

static const weir_field fields[] = {
    GIVEN_FIELDS,
    WEIR_FIELD("created_at", weir__as_moment, AT(created_at)),
    WEIR_FIELD("next_at", weir__as_moment, AT(next_at)),
    WEIR_FIELD("last_at", weir__as_moment, AT(last_at)),
    WEIR_FIELD("last_job", weir__as_number, AT(last_job)),
    WEIR_FIELD("fired", weir__as_int, AT(fired)),
    WEIR_FIELD("caught_up", weir__as_int32, AT(caught_up), .max = WEIR_MAX_FIRINGS),
    WEIR_FIELD("series", weir__as_number, AT(series)),
    WEIR_FIELD("turn", weir__as_number, AT(turn)),
    WEIR_FIELD("history", weir__as_list, offsetof(record, history), .fields = firing_fields,
               .size = sizeof(weir_firing), .max = WEIR_MAX_FIRED),
    { 0 }
};
#undef AT

static weir_code read_fields(weir_reader *in, const weir_field *table, weir_json_piece all,
                             weir_schedule *out)
{
    record r = { 0 };
    *out = (weir_schedule){ 0 };
    if (weir__read(in, table, all, &r) || weir__read_spec(in, r.job, &r.s.job))
        return in->err.code;
    r.s.n_history = r.history.n;
    if (r.history.n)
        memcpy(r.s.history, r.history.item, r.history.n * sizeof(weir_firing));
    *out = r.s;
    return WEIR_OK;
}

weir_code weir__schedule_read(weir_reader *in, const char *text, size_t len, weir_schedule *out)
{
    *out = (weir_schedule){ 0 };
    if (weir__read_check(in, text, len, WEIR_MAX_DEPTH + 2) ||
        read_fields(in, fields, (weir_json_piece){ text, len }, out))
        return in->err.code;
    return out->name ? WEIR_OK : weir_fail(&in->err, WEIR_EINVAL, "name: missing");
}

weir_code weir__schedule_read_given(weir_reader *in, weir_json_piece all, weir_schedule *out)
{
    return read_fields(in, given_fields, all, out);
}
