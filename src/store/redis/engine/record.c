/* record.c - jobs, events and types as the functions keep them: see record.h. */
#include "store/redis/engine/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"

/* The numbers of a part have its first bytes, without a gap and none twice: then the sum of their
 * masks has all of its bits set. */
typedef unsigned __int128 bytes_mask;
#define BYTES_AT(at, bytes) ((((bytes_mask)1 << (bytes)) - 1) << (at))
#define SPEC_MASK(name, part, at, bytes)                                                          \
    +(REDIS_IN_##part == REDIS_IN_SPEC ? BYTES_AT(at, bytes) : 0)
#define RUN_MASK(name, part, at, bytes)                                                           \
    +(REDIS_IN_##part == REDIS_IN_RUN ? BYTES_AT(at, bytes) : 0)
#define JOB_SPEC_MASK(m, name, k, j, s, l, part, at, bytes) SPEC_MASK(name, part, at, bytes)
#define JOB_RUN_MASK(m, name, k, j, s, l, part, at, bytes)  RUN_MASK(name, part, at, bytes)
_Static_assert((0 REDIS_BESIDE(SPEC_MASK) WEIR_JOB_NUMBERS(JOB_SPEC_MASK)) ==
                   BYTES_AT(0, REDIS_SPEC_HEAD), "a number of the spec is at a wrong place");
_Static_assert((0 REDIS_BESIDE(RUN_MASK) WEIR_JOB_NUMBERS(JOB_RUN_MASK)) ==
                   BYTES_AT(0, REDIS_RUN_HEAD), "a number of the run is at a wrong place");

/* Texts by their places. In a spec, data is the last and has no length. In a run, history is the
 * last, and is missing if the job has none. */
#define X(m, name, k, j, s, l, part, at, b) TEXT_##name = at,
enum { WEIR_JOB_TEXTS(X) WEIR_JOB_BYTES(X) };
#undef X
#define IS_SPEC(m, name, k, j, s, l, part, at, b) +(REDIS_IN_##part == REDIS_IN_SPEC)
#define IS_RUN(m, name, k, j, s, l, part, at, b)  +(REDIS_IN_##part == REDIS_IN_RUN)
enum {
    SPEC_TEXTS = 0 WEIR_JOB_TEXTS(IS_SPEC) WEIR_JOB_BYTES(IS_SPEC),
    RUN_TEXTS = 0 WEIR_JOB_TEXTS(IS_RUN) WEIR_JOB_BYTES(IS_RUN),
    TEXTS = (int)SPEC_TEXTS > (int)RUN_TEXTS ? (int)SPEC_TEXTS : (int)RUN_TEXTS,
};
/* The places of n texts are 0 to n - 1: only then n powers of two are 2^n - 1 together. */
#define SPEC_PLACE(m, n, k, j, s, l, part, at, b) +((REDIS_IN_##part == REDIS_IN_SPEC) << at)
#define RUN_PLACE(m, n, k, j, s, l, part, at, b)  +((REDIS_IN_##part == REDIS_IN_RUN) << at)
_Static_assert((0 WEIR_JOB_TEXTS(SPEC_PLACE) WEIR_JOB_BYTES(SPEC_PLACE)) == (1 << SPEC_TEXTS) - 1,
               "a text of the spec is at a wrong place");
_Static_assert((0 WEIR_JOB_TEXTS(RUN_PLACE) WEIR_JOB_BYTES(RUN_PLACE)) == (1 << RUN_TEXTS) - 1,
               "a text of the run is at a wrong place");
_Static_assert((int)SPEC_TEXTS == TEXT_data + 1, "data must be the last text of a spec");
_Static_assert((int)RUN_TEXTS == TEXT_history + 1, "history must be the last text of a run");

typedef struct texts {
    mp_slice none[1], spec[TEXTS], run[TEXTS];      /* none: the type */
} texts;
#define PART_NONE none
#define PART_SPEC spec
#define PART_RUN  run
#define TEXT_IN(t, part, at) (t)->PART_##part[at]

/* ---- writing ---- */

void weir__put_number(weir_buf *b, int bytes, int64_t n)
{
    char     out[8];
    uint64_t rest = (uint64_t)n;
    for (int i = bytes - 1; i >= 0; i--, rest >>= 8)
        out[i] = (char)(rest & 0xff);
    weir__buf_add(b, out, (size_t)bytes);
}

static inline void put_at(char *head, int at, int bytes, int64_t n)
{
    for (int i = at + bytes - 1; i >= at; i--, n >>= 8)
        head[i] = (char)(n & 0xff);
}

/* An array of names and texts, or false. */
static void put_values(weir_buf *b, const weir_job *j)
{
    weir_value value[WEIR__VALUES];
    size_t     n = 0;
    weir_buf   room = { 0 };
    if (!j->values) {
        weir__mp_text(b, NULL, 0);
        return;
    }
    if (!weir__values_split(j->values, j->values_len, value, &n, &room))
        b->failed = true;
    weir__mp_array(b, 2 * n);
    for (size_t i = 0; i < n; i++) {
        weir__mp_text(b, value[i].name, value[i].name_len);
        weir__mp_text(b, value[i].text, value[i].len);
    }
    weir__buf_fini(&room);
}

int64_t weir__record_flags(const weir_job *j)
{
    int64_t flags = (j->unique ? REDIS_HAS_KEY : 0) | (j->ttl_ms ? REDIS_HAS_TTL : 0) |
                    (j->deadline_at ? REDIS_HAS_DEADLINE : 0);
#define X(member, n, k, js, s, l, part, at, b)                                                    \
    if (REDIS_IN_##part == REDIS_IN_FLAG && j->member)                                            \
        flags |= at;
    WEIR_JOB_NUMBERS(X)
#undef X
    return flags;
}

static int64_t flags_of(const weir_job *j, bool apart)
{
    return weir__record_flags(j) | (apart ? REDIS_APART : 0);
}

/* The texts of a part that are there. */
#define TEXT(member, n, k, js, s, l, part, at, b)                                                 \
    if (REDIS_IN_##part == wanted && j->member)                                                   \
        text[at] = (mp_slice){ j->member, strlen(j->member) };
#define BYTES(member, n, k, js, s, l, part, at, b)                                                \
    if (REDIS_IN_##part == wanted)                                                                \
        text[at] = (mp_slice){ j->member, j->member##_len };

static inline void gather(mp_slice text[TEXTS], const weir_job *j, int wanted)
{
    memset(text, 0, TEXTS * sizeof *text);
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
}

#undef TEXT
#undef BYTES

#define BESIDE(name, part, at, bytes)                                                             \
    if (REDIS_IN_##part == wanted)                                                                \
        put_at(head, at, bytes, (int64_t)name);
#define NUMBER(member, n, k, js, s, l, part, at, bytes)                                           \
    if (REDIS_IN_##part == wanted)                                                                \
        put_at(head, at, bytes, (int64_t)j->member);

void weir__spec_put(weir_buf *b, const weir_job *j, bool with_data)
{
    const int wanted = REDIS_IN_SPEC;
    char      head[REDIS_SPEC_HEAD];
    mp_slice  text[TEXTS];
    int64_t   type_len = (int64_t)strlen(j->type), flags = flags_of(j, !with_data), lines = 0;
    REDIS_BESIDE(BESIDE)
    WEIR_JOB_NUMBERS(NUMBER)
    gather(text, j, wanted);
    weir__buf_add(b, head, sizeof head);
    weir__buf_add(b, j->type, (size_t)type_len);
    for (int i = 0; i < TEXT_data; i++) {
        if (i == TEXT_values)
            put_values(b, j);
        else
            weir__mp_text(b, text[i].at, text[i].len);
    }
    if (with_data)
        weir__buf_add(b, j->data, j->data_len);
}

void weir__run_put(weir_buf *b, const weir_job *j, redis_beside beside)
{
    const int wanted = REDIS_IN_RUN;
    char      head[REDIS_RUN_HEAD];
    mp_slice  text[TEXTS];
    int64_t   type_len = (int64_t)strlen(j->type), flags = flags_of(j, !beside.data);
    uint64_t  lines = beside.lines;
    REDIS_BESIDE(BESIDE)
    WEIR_JOB_NUMBERS(NUMBER)
    gather(text, j, wanted);
    weir__buf_add(b, head, sizeof head);
    weir__buf_add(b, j->type, (size_t)type_len);
    for (int i = 0; i < TEXT_history; i++)
        weir__mp_text(b, text[i].at, text[i].len);
    if (j->history)
        weir__mp_text(b, j->history, j->history_len);
}

#undef BESIDE
#undef NUMBER

bool weir__record_holds(const redis_layout *layout, size_t data_len)
{
    return layout->data_in_record && data_len <= REDIS_SHORT_DATA;
}

/* ---- reading ---- */

/* Those of 4 bytes have a sign. */
static inline int64_t get_at(const char *head, int at, int bytes)
{
    const unsigned char *p = (const unsigned char *)head + at;
    uint64_t             n = bytes == 4 && *p & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < bytes; i++)
        n = n << 8 | p[i];
    return (int64_t)n;
}

static char *keep_text(char **at, mp_slice s)
{
    if (!s.at)
        return NULL;
    char *to = memcpy(*at, s.at, s.len);
    to[s.len] = '\0';
    *at += s.len + 1;
    return to;
}

/* The values that come next, if there are any: as an object, in `out`. */
static void read_values(mp_reader *r, weir_buf *out)
{
    weir_value value[WEIR__VALUES];
    if (r->at < r->end && (*r->at == 0xc2 || *r->at == 0xc0)) {         /* false, nil */
        weir__mp_read_text(r);
        return;
    }
    size_t n = weir__mp_read_array(r) / 2;
    r->bad = r->bad || n > WEIR__VALUES;
    for (size_t i = 0; !r->bad && i < n; i++) {
        mp_slice name = weir__mp_read_text(r), text = weir__mp_read_text(r);
        r->bad = r->bad || !name.at || !text.at;
        value[i] = (weir_value){ name.at, text.at, name.len, text.len };
    }
    if (!r->bad)
        weir__values_join(out, value, n);
}

#define BESIDE(name, part, at, bytes)                                                             \
    if (REDIS_IN_##part == wanted)                                                                \
        name = get_at(head, at, bytes);
#define NUMBER(member, n, k, js, s, l, part, at, bytes)                                           \
    if (REDIS_IN_##part == wanted)                                                                \
        j->member = (__typeof__(j->member))get_at(head, at, bytes);                               \
    else if (REDIS_IN_##part == REDIS_IN_FLAG && wanted == REDIS_IN_SPEC)                         \
        j->member = (flags & at) != 0;

/* Numbers of a record that are not the job's. */
typedef struct extra {
    int64_t type_len, flags, lines;
} extra;

/* The numbers of a record, and a reader of what is behind them and the type. False: it is none. */
static inline bool read_numbers(weir_job *j, extra *e, mp_reader *behind, int wanted,
                                mp_slice record, size_t head_len)
{
    const char *head = record.at;
    int64_t     type_len = 0, flags = 0, lines = 0;
    if (record.len < head_len)
        return false;
    REDIS_BESIDE(BESIDE)
    WEIR_JOB_NUMBERS(NUMBER)
    if ((size_t)type_len > record.len - head_len)
        return false;
    *e = (extra){ type_len, flags, lines };
    *behind = weir__mp_reader(head + head_len + type_len,
                              record.len - head_len - (size_t)type_len);
    return true;
}

/* Each: the numbers, and where the texts are. False: it is none. */
static bool read_spec(weir_job *j, texts *t, bool *apart, weir_buf *values, mp_slice spec)
{
    extra     e;
    mp_reader r;
    if (!read_numbers(j, &e, &r, REDIS_IN_SPEC, spec, REDIS_SPEC_HEAD) || !e.type_len)
        return false;
    *apart = (e.flags & REDIS_APART) != 0;
    *t->none = (mp_slice){ spec.at + REDIS_SPEC_HEAD, (size_t)e.type_len };
    for (int i = 0; i < TEXT_data; i++) {
        if (i != TEXT_values)
            t->spec[i] = weir__mp_read_text(&r);
        else
            read_values(&r, values);
    }
    if (values->len)
        t->spec[TEXT_values] = weir__buf_slice(values);
    t->spec[TEXT_data] = (mp_slice){ (const char *)r.at, (size_t)(r.end - r.at) };
    return !r.bad;
}

static bool read_run(weir_job *j, texts *t, uint64_t *out_lines, mp_slice run)
{
    extra     e;
    mp_reader r;
    if (!read_numbers(j, &e, &r, REDIS_IN_RUN, run, REDIS_RUN_HEAD) ||
        j->state <= WEIR_STATE_ANY || j->state >= WEIR_STATE_COUNT)
        return false;
    for (int i = 0; i < TEXT_history; i++)
        t->run[i] = weir__mp_read_text(&r);
    if (weir__mp_is_text(&r))
        t->run[TEXT_history] = weir__mp_read_text(&r);
    if (j->state == WEIR_STATE_ACTIVE && r.at < r.end)
        j->lease_until = weir__mp_read_int(&r);
    *out_lines = (uint64_t)e.lines;
    return !r.bad;
}

#undef BESIDE
#undef NUMBER

/* Nothing has happened to it yet. */
static void be_new(weir_job *j)
{
    j->state = WEIR_STATE_INACTIVE;
    j->promote_at = j->updated_at = j->created_at;
}

/* The job with its texts, in one block; NULL: out of memory. */
static weir_job *make_job(const weir_job *j, const texts *t)
{
    size_t size = sizeof *j;
#define X(m, n, k, js, s, l, part, place, b) size += TEXT_IN(t, part, place).len + 1;
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    weir_job *job = malloc(size);
    if (!job)
        return NULL;
    char *at = (char *)(job + 1);
    *job = *j;
#define X(member, n, k, js, s, l, part, place, b)                                                 \
    job->member = keep_text(&at, TEXT_IN(t, part, place));
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
#define X(member, n, k, js, s, l, part, place, b) job->member##_len = TEXT_IN(t, part, place).len;
    WEIR_JOB_BYTES(X)
#undef X
    return job;
}

weir_code weir__record_get(weir_job **out, uint64_t id, mp_slice run, mp_slice spec,
                           redis_beside *beside, weir_error *err)
{
    texts    text = { 0 };
    weir_job j = { .id = id };
    weir_buf values = { 0 };
    uint64_t lines = 0;
    bool     apart;
    *out = NULL;
    if (!read_spec(&j, &text, &apart, &values, spec) ||
        (run.len && !read_run(&j, &text, &lines, run))) {
        weir__buf_fini(&values);
        return weir_fail(err, WEIR_ECORRUPT, "job %" PRIu64 ": its record cannot be read", id);
    }
    if (!run.len)
        be_new(&j);
    if (!j.promote_at)
        j.promote_at = j.created_at;
    if (beside)
        *beside = (redis_beside){ .lines = lines, .data = !apart };
    if (!text.spec[TEXT_data].len)
        text.spec[TEXT_data] = (mp_slice){ "{}", 2 };
    *out = values.failed ? NULL : make_job(&j, &text);
    weir__buf_fini(&values);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "job %" PRIu64 ": out of memory", id);
}

/* ---- events ---- */

void weir__record_event(weir_buf *b, const weir_event *e)
{
    weir__mp_int(b, (int64_t)e->kind);
    weir__mp_int(b, (int64_t)e->state);
    weir__mp_text(b, e->type, strlen(e->type));
    weir__mp_int(b, e->attempts);
    weir__mp_int(b, e->progress);
    weir__mp_int(b, e->delivery);
    weir__mp_text(b, e->text, e->text_len);
    weir__mp_int(b, (int64_t)e->id);
}

/* ---- types ---- */

/* The settings are next to each other in a type's record. */
enum {
    SETTINGS = REDIS_T_SEARCH - REDIS_T_COMPLETE_AGE + 1,
    ANSWERED = REDIS_T_ANSWERED
};

void weir__record_settings(weir_buf *b, const weir_settings *s)
{
    const int64_t n[SETTINGS] = { s->keep_complete.age_ms, s->keep_complete.count,
                                  s->keep_failed.age_ms, s->keep_failed.count, s->search };
    weir__mp_array(b, SETTINGS);
    for (int i = 0; i < SETTINGS; i++)
        weir__mp_int(b, n[i]);
}

bool weir__record_type(const char *record, size_t len, weir_type_stats *out, bool *has_settings)
{
    mp_reader r = weir__mp_reader(record, len);
    bool      whole = weir__mp_read_array(&r) == ANSWERED;
    int64_t   n[ANSWERED + 1] = { 0 };
    for (int i = 1; i <= ANSWERED; i++)
        n[i] = weir__mp_read_int(&r);
    out->paused = n[REDIS_T_PAUSED] != 0;
    *has_settings = n[REDIS_T_HAS_SETTINGS] != 0;
    out->settings = (weir_settings){
        .keep_complete = { n[REDIS_T_COMPLETE_AGE], n[REDIS_T_COMPLETE_COUNT] },
        .keep_failed = { n[REDIS_T_FAILED_AGE], n[REDIS_T_FAILED_COUNT] },
        .search = n[REDIS_T_SEARCH] != 0,
    };
    out->completed = (uint64_t)n[REDIS_T_COMPLETED];
    out->failed = (uint64_t)n[REDIS_T_FAILED];
    out->work_ms = n[REDIS_T_WORK];
    out->last_taken_at = n[REDIS_T_TAKEN];
    return whole && !r.bad;
}
