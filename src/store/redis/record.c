/* record.c - jobs, events and types as the scripts keep them: see record.h. */
#include "store/redis/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_REMOVE = 1, FLAG_SEARCH = 2, FLAG_KEY = 4 };

/* Bytes of the numbers at the head of a record, and of those the script appends. */
#define X(bytes, member) +bytes
enum { HEAD = 0 REDIS_TIMES(X) REDIS_NUMBERS(X), TIMES = 0 REDIS_TIMES(X) };
#undef X

enum { FIXED_TEXTS = 3, TEXTS = 7 };        /* type, unique, search keys; and four that change */

/* ---- writing ---- */

static void put_number(weir_buf *b, int bytes, int64_t n)
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

static size_t packed_len(const char *text)
{
    size_t len = text ? strlen(text) : 0;
    return !text ? 1 : len + (len < 32 ? 1 : len <= UINT8_MAX ? 2 : 3);
}

void weir__record_put(weir_buf *b, const weir_job *j, redis_beside beside, bool with_times)
{
    uint64_t lines = beside.lines;
    size_t  type = strlen(j->type);
    int64_t type_len = (int64_t)type;
    int64_t fixed_len = (int64_t)(type + packed_len(j->unique) + packed_len(j->search_keys));
    int64_t flags = (j->remove_on_complete ? FLAG_REMOVE : 0) | (j->search ? FLAG_SEARCH : 0) |
                    (j->unique ? FLAG_KEY : 0);
#define GET(member)    (int64_t)(member)
#define X(bytes, from) put_number(b, bytes, GET(from));
    if (with_times) {
        REDIS_TIMES(X)
    }
    REDIS_NUMBERS(X)
#undef X
    weir__buf_add(b, j->type, type);
    put_text(b, j->unique);
    put_text(b, j->search_keys);
    weir__mp_text(b, j->result, j->result_len);
    put_text(b, j->error);
    weir__mp_text(b, j->progress_data, j->progress_data_len);
    put_text(b, j->worker);
    if (beside.data)
        weir__buf_add(b, j->data, j->data_len);
}

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

/* The numbers, and where the texts are, the last of them its data. False: it is no record. */
static bool read_record(weir_job *job, mp_slice text[TEXTS + 1], uint64_t *out_lines,
                        const char *record, size_t len)
{
    const unsigned char *at = (const unsigned char *)record;
    weir_job *j = job;
    int64_t   type_len = 0, fixed_len = 0, flags = 0;
    uint64_t  lines = 0;
    if (len < HEAD)
        return false;
#define X(bytes, to) to = (__typeof__(to))get_number(&at, bytes, bytes == 4);
    REDIS_TIMES(X)
    REDIS_NUMBERS(X)
#undef X
    if ((size_t)type_len > len - HEAD || !type_len || j->state <= WEIR_ANY ||
        j->state >= WEIR_STATES)
        return false;
    j->remove_on_complete = (flags & FLAG_REMOVE) != 0;
    j->search = (flags & FLAG_SEARCH) != 0;
    text[0] = (mp_slice){ record + HEAD, (size_t)type_len };
    mp_reader r = weir__mp_reader(record + HEAD + type_len, len - HEAD - (size_t)type_len);
    for (int i = 1; i < TEXTS; i++)
        text[i] = weir__mp_read_text(&r);
    j->result_len = text[3].len;
    j->progress_data_len = text[5].len;
    text[TEXTS] = (mp_slice){ (const char *)r.at, (size_t)(r.end - r.at) };
    *out_lines = lines;
    return !r.bad;
}

weir_code weir__record_get(weir_job **out, uint64_t id, const char *record, size_t len,
                           const char *data, size_t data_len, redis_beside *beside,
                           weir_error *err)
{
    mp_slice text[TEXTS + 1];
    weir_job j = { .id = id };
    uint64_t lines;
    *out = NULL;
    if (!read_record(&j, text, &lines, record, len))
        return weir_fail(err, WEIR_ECORRUPT, "job %" PRIu64 ": its record cannot be read", id);
    mp_slice body = text[TEXTS];
    if (beside)
        *beside = (redis_beside){ .lines = lines, .data = body.len != 0 };
    if (!body.len)
        body = data && data_len ? (mp_slice){ data, data_len } : (mp_slice){ "{}", 2 };
    size_t size = sizeof j + body.len + 1;
    for (int i = 0; i < TEXTS; i++)
        size += text[i].len + 1;
    weir_job *job = malloc(size);
    if (!job)
        return weir_fail(err, WEIR_ENOMEM, "job %" PRIu64 ": out of memory", id);
    char *at = (char *)(job + 1);
    *job = j;
    job->type = keep_text(&at, text[0]);
    job->unique = keep_text(&at, text[1]);
    job->search_keys = keep_text(&at, text[2]);
    job->result = keep_text(&at, text[3]);
    job->error = keep_text(&at, text[4]);
    job->progress_data = keep_text(&at, text[5]);
    job->worker = keep_text(&at, text[6]);
    job->data = keep_text(&at, body);
    job->data_len = body.len;
    *out = job;
    return WEIR_OK;
}

/* ---- events ---- */

void weir__record_event(weir_buf *b, weir_event_kind kind, const weir_job *j, weir_state state,
                        const char *text, size_t len)
{
    weir__mp_int(b, (int64_t)kind);
    weir__mp_int(b, (int64_t)state);
    weir__mp_text(b, j->type, strlen(j->type));
    weir__mp_int(b, j->attempts);
    weir__mp_int(b, j->progress);
    weir__mp_int(b, j->delivery);
    weir__mp_text(b, text, len);
    weir__mp_int(b, (int64_t)j->id);
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
