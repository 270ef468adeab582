/* job_json.c - a job as JSON with Kue's names. */
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "core/job_fields.h"

/* `name` has its comma, quotes and colon. Inline: it is a literal each time. */
static inline void number(weir_buf *b, const char *name, int64_t n)
{
    weir__buf_str(b, name);
    weir__buf_int(b, n);
}

static inline void text(weir_buf *b, const char *name, const char *value)
{
    weir__buf_str(b, name);
    weir__json_string(b, value, strlen(value));
}

static inline void number_if(weir_buf *b, const char *name, int64_t n)
{
    if (n)
        number(b, name, n);
}

static inline void raw(weir_buf *b, const char *name, const char *json, size_t len)
{
    weir__buf_str(b, name);
    weir__buf_add(b, json ? json : "null", json ? len : 4);
}

static bool has_backoff(const weir_backoff *f)
{
    return f->kind != WEIR_BACKOFF_NONE || f->delay_ms || f->max_ms || f->jitter_pct;
}

static void backoff(weir_buf *b, const char *name, const weir_backoff *f)
{
    weir__buf_str(b, name);
    text(b, "{\"type\":", weir_backoff_name(f->kind));
    number(b, ",\"delay\":", f->delay_ms);
    number_if(b, ",\"maxDelay\":", f->max_ms);
    number_if(b, ",\"jitter\":", f->jitter_pct);
    weir__buf_char(b, '}');
}

/* How a field is written, by its kind. The id is the first. */
#define PUT_ID(name, member)       weir__buf_str(b, "{" name); weir__buf_uint(b, job->member)
#define PUT_NUMBER(name, member)   number(b, "," name, job->member)
#define PUT_PRIORITY               PUT_NUMBER
#define PUT_COUNT                  PUT_NUMBER
#define PUT_LOST                   PUT_NUMBER
#define PUT_PERCENT                PUT_NUMBER
#define PUT_DELIVERY               PUT_NUMBER
#define PUT_MS                     PUT_NUMBER
#define PUT_MOMENT                 PUT_NUMBER
#define PUT_STATE(name, member)    text(b, "," name, weir_state_name(job->member))
#define PUT_FLAG(name, member)     weir__buf_str(b, "," name "true")
#define PUT_WORDS(name, member)    text(b, "," name, job->member ? job->member : "")
#define PUT_TYPE                   PUT_WORDS
#define PUT_UNIQUE                 PUT_WORDS
#define PUT_KEYS                   PUT_WORDS
#define PUT_JSON(name, member)     raw(b, "," name, job->member, job->member##_len)
#define PUT_VALUES                 PUT_JSON
#define PUT_HISTORY                PUT_JSON
#define PUT_BACKOFF(name, member)  backoff(b, "," name, &job->member)

/* And whether. */
#define SHOWN_ALWAYS(shape, member) true
#define SHOWN_SET(shape, member)    IS_SET_##shape(member)
#define SHOWN_DONE(shape, member)   (job->state == WEIR_STATE_COMPLETE || job->member)
#define SHOWN_RARE(shape, member)   (job->member && job->member != WEIR_DEFAULT_MAX_LOST)
#define SHOWN_NEVER(shape, member)  false
#define IS_SET_INT(member)          job->member
#define IS_SET_TEXT(member)         job->member
#define IS_SET_BYTES(member)        job->member
#define IS_SET_BACKOFF(member)      has_backoff(&job->member)

void weir__job_json(weir_buf *b, const weir_job *job)
{
    size_t size = 512;
#define X(member, ...) size += job->member##_len;
    WEIR_JOB_BYTES(X)
#undef X
    weir__buf_reserve(b, size);
#define ROW(X, shape, member, kind, name, shown, ...)                                             \
    if (SHOWN_##shown(shape, member)) {                                                           \
        PUT_##kind("\"" name "\":", member);                                                      \
    }
    WEIR_JOB_FIELDS(ROW, )
#undef ROW
    weir__buf_char(b, '}');
}

char *weir_job_json(const weir_job *job, size_t *out_len)
{
    weir_buf b = { 0 };
    weir__job_json(&b, job);
    /* On one line: outside of strings a line break is only white space, and inside it cannot be. */
    for (size_t i = 0; i < b.len; i++) {
        if (b.data[i] == '\n' || b.data[i] == '\r')
            b.data[i] = ' ';
    }
    return weir__buf_steal(&b, out_len);
}
