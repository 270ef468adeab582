/* mend.c - a job whose record is damaged, made into one that can be kept: check --mend takes its
 * columns as they are, within their limits, and makes it failed unless it has ended. */
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

static void mend_numbers(weir_job *j)
{
    int64_t *const all[] = { &j->delay_ms, &j->ttl_ms, &j->deadline_at, &j->created_at,
                             &j->promote_at, &j->updated_at, &j->started_at, &j->failed_at,
                             &j->finished_at, &j->duration_ms, &j->backoff.delay_ms,
                             &j->backoff.max_ms };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        limit64(all[i]);
    limit32(&j->max_attempts, 1, INT32_MAX);
    limit32(&j->attempts, 0, j->max_attempts);
    limit32(&j->max_lost, 1, INT32_MAX);
    limit32(&j->lost, 0, j->max_lost);
    limit32(&j->progress, 0, 100);
    limit32(&j->backoff.jitter_pct, 0, 100);
    if (j->backoff.kind < WEIR_IMMEDIATE || j->backoff.kind > WEIR_LINEAR)
        j->backoff.kind = WEIR_IMMEDIATE;
}

static void mend_texts(weir_job *j, weir_buf *data)
{
    if (!is_json(j->data, j->data_len)) {
        weir__json_string(data, j->data ? j->data : "", j->data_len);
        j->data = data->data;
        j->data_len = data->len;
    }
    if (!is_json(j->progress_data, j->progress_data_len)) {
        j->progress_data = NULL;
        j->progress_data_len = 0;
    }
    if (!is_json(j->values, j->values_len)) {
        j->values = NULL;
        j->values_len = 0;
    }
    if (!is_json(j->history, j->history_len)) {
        j->history = NULL;
        j->history_len = 0;
    }
    if (j->state != WEIR_COMPLETE || !is_json(j->result, j->result_len)) {
        j->result = NULL;
        j->result_len = 0;
    }
}

bool weir__sq_mend_job(weir_job *j, int64_t now, weir_buf *data)
{
    bool ended = weir__finished(j->state);
    if (!ended) {
        j->state = WEIR_FAILED;
        j->failed_at = j->finished_at = j->updated_at = now;
    }
    mend_numbers(j);
    mend_texts(j, data);
    if (!j->finished_at)
        j->finished_at = now;
    if (j->state != WEIR_COMPLETE)
        j->duration_ms = 0;
    if (j->state == WEIR_FAILED && (!ended || !j->error))
        j->error = SQ_DAMAGED_TEXT;
    if (j->state == WEIR_COMPLETE) {
        j->error = NULL;
        j->progress = 100;
        j->attempts = j->attempts ? j->attempts : 1;
    }
    j->lease_until = 0;
    return ended;
}
