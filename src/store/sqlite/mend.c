/* mend.c - repairs a job whose record is damaged: check --mend takes its columns as they are,
 * within their limits, and makes the job failed unless it has ended. */
#include "store/sqlite/sq.h"

#include <string.h>

#include "base/json.h"

static void limit32(int32_t *n, int32_t low, int32_t high)
{
    *n = *n < low ? low : *n > high ? high : *n;
}

static void limit64(int64_t *n)
{
    *n = *n < 0 ? 0 : *n > WEIR_MAX_MS ? WEIR_MAX_MS : *n;
}

static bool is_json(const char *text, size_t len)
{
    size_t      at;
    const char *why;
    return text && weir__json_valid(text, len, WEIR_MAX_DEPTH, &at, &why);
}

/* The maximum of a number, by its kind. */
#define LIMIT_NOTHING(n)  (void)(n)
#define LIMIT_ID          LIMIT_NOTHING
#define LIMIT_STATE       LIMIT_NOTHING
#define LIMIT_PRIORITY    LIMIT_NOTHING
#define LIMIT_DELIVERY    LIMIT_NOTHING
#define LIMIT_FLAG        LIMIT_NOTHING
#define LIMIT_MS(n)       limit64(n)
#define LIMIT_MOMENT(n)   limit64(n)
#define LIMIT_COUNT(n)    limit32(n, 0, INT32_MAX)
#define LIMIT_LOST(n)     limit32(n, 0, INT32_MAX)
#define LIMIT_PERCENT(n)  limit32(n, 0, 100)
#define LIMIT_BACKOFF(n)  *(n) = (unsigned)*(n) > WEIR_BACKOFF_LINEAR ? WEIR_BACKOFF_NONE : *(n)

static void mend_numbers(weir_job *j)
{
#define X(member, name, kind, ...) LIMIT_##kind(&j->member);
    WEIR_JOB_NUMBERS(X)
#undef X
    limit32(&j->max_attempts, 1, INT32_MAX);
    limit32(&j->attempts, 0, j->max_attempts);
    limit32(&j->max_lost, 1, INT32_MAX);
    limit32(&j->lost, 0, j->max_lost);
}

/* Data is kept as a JSON string, if it is none; other JSON is dropped. */
static void mend_texts(weir_job *j, weir_buf *data)
{
    if (!is_json(j->data, j->data_len)) {
        weir__json_string(data, j->data ? j->data : "", j->data_len);
        j->data = data->data;
        j->data_len = data->len;
    }
    if (j->state != WEIR_STATE_COMPLETE)
        j->result = NULL;
#define X(member, ...)                                                                            \
    if (!is_json(j->member, j->member##_len)) {                                                   \
        j->member = NULL;                                                                         \
        j->member##_len = 0;                                                                      \
    }
    WEIR_JOB_BYTES(X)
#undef X
}

bool weir__sq_mend_job(weir_job *j, int64_t now, weir_buf *data)
{
    bool ended = weir__finished(j->state);
    if (!ended) {
        j->state = WEIR_STATE_FAILED;
        j->failed_at = j->finished_at = j->updated_at = now;
    }
    mend_numbers(j);
    mend_texts(j, data);
    if (!j->finished_at)
        j->finished_at = now;
    if (j->state != WEIR_STATE_COMPLETE)
        j->duration_ms = 0;
    if (j->state == WEIR_STATE_FAILED && (!ended || !j->error))
        j->error = SQ_DAMAGED_TEXT;
    if (j->state == WEIR_STATE_COMPLETE) {
        j->error = NULL;
        j->progress = 100;
        j->attempts = j->attempts ? j->attempts : 1;
    }
    j->lease_until = 0;
    return ended;
}
