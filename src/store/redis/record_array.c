/* record.c - jobs, events and types to MessagePack and back: see record.h. */
#include "store/redis/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How many fields there are, and how many of them are text. */
#define X(kind, member) +1
enum { FIELDS = 0 REDIS_ARRAY_FIELDS(X) };
#undef X
#define COUNT_N 0
#define COUNT_F 0
#define COUNT_L 0
#define COUNT_T 1
#define COUNT_B 1
#define X(kind, member) +COUNT_##kind
enum { TEXTS = 0 REDIS_ARRAY_FIELDS(X) };
#undef X

enum { FLAG_REMOVE = 1, FLAG_SEARCH = 2 };

/* ---- writing ---- */

#define PUT_N(member) weir__mp_int(b, (int64_t)j->member);
#define PUT_T(member) weir__mp_text(b, j->member, j->member ? strlen(j->member) : 0);
#define PUT_B(member) weir__mp_text(b, j->member, j->member##_len);
#define PUT_L(member) weir__mp_int(b, (int64_t)lines);
#define PUT_F(member)                                                                             \
    weir__mp_int(b, (j->remove_on_complete ? FLAG_REMOVE : 0) | (j->search ? FLAG_SEARCH : 0));

void weir__record_put_array(weir_buf *b, const weir_job *j, uint64_t lines, bool with_times)
{
    weir__mp_array(b, FIELDS);
#define X(kind, member) PUT_##kind(member)
    REDIS_OWN_FIELDS(X)
    if (with_times) {
        REDIS_ARRAY_TIMES(X)
    }
#undef X
}

/* ---- reading ---- */

static char *put_text(char **at, mp_slice s)
{
    if (!s.at)
        return NULL;
    char *to = memcpy(*at, s.at, s.len);
    to[s.len] = '\0';
    *at += s.len + 1;
    return to;
}

#define READ_N(member) j.member = (__typeof__(j.member))weir__mp_read_int(&r);
#define READ_T(member) texts += (text[n++] = weir__mp_read_text(&r)).len + 1;
#define READ_B(member) READ_T(member) j.member##_len = text[n - 1].len;
#define READ_L(member) member = (uint64_t)weir__mp_read_int(&r);
#define READ_F(member)                                                                            \
    flags = weir__mp_read_int(&r);                                                                \
    j.remove_on_complete = (flags & FLAG_REMOVE) != 0;                                            \
    j.search = (flags & FLAG_SEARCH) != 0;

#define COPY_N(member)
#define COPY_L(member)
#define COPY_F(member)
#define COPY_T(member) job->member = put_text(&at, text[n++]);
#define COPY_B(member) COPY_T(member)

weir_code weir__record_get_array(weir_job **out, uint64_t id, const char *record, size_t len,
                           const char *data, size_t data_len, uint64_t *out_lines, weir_error *err)
{
    mp_reader r = weir__mp_reader(record, len);
    mp_slice  text[TEXTS];
    weir_job  j = { .id = id };
    size_t    n = 0, texts = 0;
    uint64_t  lines = 0;
    int64_t   flags = 0;
    *out = NULL;
    bool      whole = weir__mp_read_array(&r) == FIELDS;
#define X(kind, member) READ_##kind(member)
    REDIS_ARRAY_FIELDS(X)
#undef X
    if (!whole || r.bad || r.at != r.end || !text[0].at || j.state <= WEIR_ANY ||
        j.state >= WEIR_STATES)
        return weir_fail(err, WEIR_ECORRUPT, "job %" PRIu64 ": its record cannot be read", id);

    mp_slice body = { data ? data : "{}", data ? data_len : 2 };
    weir_job *job = malloc(sizeof *job + texts + body.len + 1);
    if (!job)
        return weir_fail(err, WEIR_ENOMEM, "job %" PRIu64 ": out of memory", id);
    char *at = (char *)(job + 1);
    *job = j;
    n = 0;
#define X(kind, member) COPY_##kind(member)
    REDIS_ARRAY_FIELDS(X)
#undef X
    job->data = put_text(&at, body);
    job->data_len = body.len;
    if (out_lines)
        *out_lines = lines;
    *out = job;
    return WEIR_OK;
}

