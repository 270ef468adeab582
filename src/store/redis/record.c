/* record.c - jobs, events and types as the functions keep them: see record.h. */
#include "store/redis/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"

/* Bytes of the numbers at the head of a spec, and of a run. */
#define X(bytes, member) +bytes
enum { SPEC_HEAD = 0 REDIS_SPEC(X), RUN_HEAD = 0 REDIS_RUN(X) };
#undef X

/* Texts: of the spec type, unique, search keys, values, data; of the run four that change, and the
 * history, if there is one. */
enum {
    TYPE, UNIQUE, SEARCH_KEYS, VALUES, DATA, RESULT, ERROR, PROGRESS_DATA, WORKER, HISTORY, TEXTS
};

/* ---- writing ---- */

void weir__put_number(weir_buf *b, int bytes, int64_t n)
{
    char     out[8];
    uint64_t rest = (uint64_t)n;
    for (int i = bytes - 1; i >= 0; i--, rest >>= 8)
        out[i] = (char)(rest & 0xff);
    weir__buf_add(b, out, (size_t)bytes);
}

static void put_text(weir_buf *b, const char *text)
{
    weir__mp_text(b, text, text ? strlen(text) : 0);
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
    return (j->remove_on_complete ? REDIS_REMOVES : 0) | (j->search ? REDIS_SEARCHED : 0) |
           (j->unique ? REDIS_HAS_KEY : 0) | (j->ttl_ms ? REDIS_HAS_TTL : 0) |
           (j->deadline_at ? REDIS_HAS_DEADLINE : 0);
}

static int64_t flags_of(const weir_job *j, bool apart)
{
    return weir__record_flags(j) | (apart ? REDIS_APART : 0);
}

#define GET(member)    (int64_t)(member)
#define X(bytes, from) weir__put_number(b, bytes, GET(from));

void weir__spec_put(weir_buf *b, const weir_job *j, bool with_data)
{
    int64_t type_len = (int64_t)strlen(j->type), flags = flags_of(j, !with_data);
    REDIS_SPEC(X)
    weir__buf_add(b, j->type, (size_t)type_len);
    put_text(b, j->unique);
    put_text(b, j->search_keys);
    put_values(b, j);
    if (with_data)
        weir__buf_add(b, j->data, j->data_len);
}

void weir__run_put(weir_buf *b, const weir_job *j, redis_beside beside)
{
    int64_t  type_len = (int64_t)strlen(j->type), flags = flags_of(j, !beside.data);
    uint64_t lines = beside.lines;
    REDIS_RUN(X)
    weir__buf_add(b, j->type, (size_t)type_len);
    weir__mp_text(b, j->result, j->result_len);
    put_text(b, j->error);
    weir__mp_text(b, j->progress_data, j->progress_data_len);
    put_text(b, j->worker);
    if (j->history)
        weir__mp_text(b, j->history, j->history_len);
}

#undef X
#undef GET

bool weir__record_holds(const redis_layout *layout, size_t data_len)
{
    return layout->data_in_record && data_len <= REDIS_SHORT_DATA;
}

/* ---- reading ---- */

static int64_t get_number(const unsigned char **at, int bytes, bool is_signed)
{
    uint64_t n = is_signed && **at & 0x80 ? UINT64_MAX : 0;
    for (; bytes > 0; bytes--)
        n = n << 8 | *(*at)++;
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

#define X(bytes, to) to = (__typeof__(to))get_number(&at, bytes, bytes == 4);

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

/* Each: the numbers, and where the texts are. False: it is none. */
static bool read_spec(weir_job *j, mp_slice text[TEXTS], bool *apart, weir_buf *values,
                      mp_slice spec)
{
    const unsigned char *at = (const unsigned char *)spec.at;
    int64_t              type_len = 0, flags = 0;
    if (spec.len < SPEC_HEAD)
        return false;
    REDIS_SPEC(X)
    if ((size_t)type_len > spec.len - SPEC_HEAD || !type_len)
        return false;
    j->remove_on_complete = (flags & REDIS_REMOVES) != 0;
    j->search = (flags & REDIS_SEARCHED) != 0;
    *apart = (flags & REDIS_APART) != 0;
    text[TYPE] = (mp_slice){ spec.at + SPEC_HEAD, (size_t)type_len };
    mp_reader r = weir__mp_reader(spec.at + SPEC_HEAD + type_len,
                                  spec.len - SPEC_HEAD - (size_t)type_len);
    text[UNIQUE] = weir__mp_read_text(&r);
    text[SEARCH_KEYS] = weir__mp_read_text(&r);
    read_values(&r, values);
    if (values->len)
        text[VALUES] = weir__buf_slice(values);
    j->values_len = values->len;
    text[DATA] = (mp_slice){ (const char *)r.at, (size_t)(r.end - r.at) };
    return !r.bad;
}

static bool read_run(weir_job *j, mp_slice text[TEXTS], uint64_t *out_lines, mp_slice run)
{
    const unsigned char *at = (const unsigned char *)run.at;
    int64_t              type_len = 0, flags = 0;
    uint64_t             lines = 0;
    if (run.len < RUN_HEAD)
        return false;
    REDIS_RUN(X)
    (void)flags;
    if ((size_t)type_len > run.len - RUN_HEAD || j->state <= WEIR_ANY || j->state >= WEIR_STATES)
        return false;
    mp_reader r = weir__mp_reader(run.at + RUN_HEAD + type_len,
                                  run.len - RUN_HEAD - (size_t)type_len);
    for (int i = RESULT; i < HISTORY; i++)
        text[i] = weir__mp_read_text(&r);
    if (weir__mp_is_text(&r))
        text[HISTORY] = weir__mp_read_text(&r);
    j->result_len = text[RESULT].len;
    j->progress_data_len = text[PROGRESS_DATA].len;
    j->history_len = text[HISTORY].len;
    if (j->state == WEIR_ACTIVE && r.at < r.end)
        j->lease_until = weir__mp_read_int(&r);
    *out_lines = lines;
    return !r.bad;
}

#undef X

/* Nothing has happened to it yet. */
static void be_new(weir_job *j)
{
    j->state = WEIR_INACTIVE;
    j->promote_at = j->updated_at = j->created_at;
}

/* The job with its texts, in one block; NULL: out of memory. */
static weir_job *make_job(const weir_job *j, const mp_slice text[TEXTS])
{
    size_t size = sizeof *j;
    for (int i = 0; i < TEXTS; i++)
        size += text[i].len + 1;
    weir_job *job = malloc(size);
    if (!job)
        return NULL;
    char *at = (char *)(job + 1);
    *job = *j;
    job->type = keep_text(&at, text[TYPE]);
    job->unique = keep_text(&at, text[UNIQUE]);
    job->search_keys = keep_text(&at, text[SEARCH_KEYS]);
    job->values = keep_text(&at, text[VALUES]);
    job->result = keep_text(&at, text[RESULT]);
    job->error = keep_text(&at, text[ERROR]);
    job->progress_data = keep_text(&at, text[PROGRESS_DATA]);
    job->worker = keep_text(&at, text[WORKER]);
    job->history = keep_text(&at, text[HISTORY]);
    job->data = keep_text(&at, text[DATA]);
    job->data_len = text[DATA].len;
    return job;
}

weir_code weir__record_get(weir_job **out, uint64_t id, mp_slice run, mp_slice spec,
                           redis_beside *beside, weir_error *err)
{
    mp_slice text[TEXTS] = { { NULL, 0 } };
    weir_job j = { .id = id };
    weir_buf values = { 0 };
    uint64_t lines = 0;
    bool     apart;
    *out = NULL;
    if (!read_spec(&j, text, &apart, &values, spec) ||
        (run.len && !read_run(&j, text, &lines, run))) {
        weir__buf_fini(&values);
        return weir_fail(err, WEIR_ECORRUPT, "job %" PRIu64 ": its record cannot be read", id);
    }
    if (!run.len)
        be_new(&j);
    if (!j.promote_at)
        j.promote_at = j.created_at;
    if (beside)
        *beside = (redis_beside){ .lines = lines, .data = !apart };
    if (!text[DATA].len)
        text[DATA] = (mp_slice){ "{}", 2 };
    *out = values.failed ? NULL : make_job(&j, text);
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

void weir__record_settings(weir_buf *b, const weir_settings *s)
{
    weir__mp_array(b, 5);
    weir__mp_int(b, s->keep_complete.age_ms);
    weir__mp_int(b, s->keep_complete.count);
    weir__mp_int(b, s->keep_failed.age_ms);
    weir__mp_int(b, s->keep_failed.count);
    weir__mp_int(b, s->search);
}

bool weir__record_type(const char *record, size_t len, weir_type_stats *out, bool *own_settings)
{
    mp_reader      r = weir__mp_reader(record, len);
    weir_settings *s = &out->settings;
    bool           whole = weir__mp_read_array(&r) == 11;
    out->paused = weir__mp_read_int(&r) != 0;
    *own_settings = weir__mp_read_int(&r) != 0;
    s->keep_complete.age_ms = weir__mp_read_int(&r);
    s->keep_complete.count = weir__mp_read_int(&r);
    s->keep_failed.age_ms = weir__mp_read_int(&r);
    s->keep_failed.count = weir__mp_read_int(&r);
    s->search = weir__mp_read_int(&r) != 0;
    out->completed = (uint64_t)weir__mp_read_int(&r);
    out->failed = (uint64_t)weir__mp_read_int(&r);
    out->work_ms = weir__mp_read_int(&r);
    out->last_taken_at = weir__mp_read_int(&r);
    return whole && !r.bad;
}
