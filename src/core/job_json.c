/* job_json.c - a job as a copy of its own, and as JSON with Kue's names. */
#include "core/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* ---- copy and release ---- */

static const char *put(char **at, const char *bytes, size_t len)
{
    if (!bytes)
        return NULL;
    char *to = *at;
    memcpy(to, bytes, len);
    to[len] = '\0';
    *at = to + len + 1;
    return to;
}

static size_t room(const char *text, size_t len)
{
    return text ? len + 1 : 0;
}

static size_t length(const char *text)
{
    return text ? strlen(text) : 0;
}

weir_job *weir__job_copy(const weir_job *j)
{
    size_t type = length(j->type), error = length(j->error), unique = length(j->unique);
    size_t worker = length(j->worker), keys = length(j->search_keys);
    size_t size = sizeof *j + room(j->type, type) + room(j->data, j->data_len) +
                  room(j->result, j->result_len) + room(j->error, error) +
                  room(j->progress_data, j->progress_data_len) + room(j->unique, unique) +
                  room(j->worker, worker) + room(j->search_keys, keys) +
                  room(j->history, j->history_len) + room(j->values, j->values_len);
    weir_job *c = malloc(size);
    if (!c)
        return NULL;
    char *at = (char *)(c + 1);
    *c = *j;
    c->hold = NULL;
    c->texts = NULL;
    c->type = put(&at, j->type, type);
    c->data = put(&at, j->data, j->data_len);
    c->result = put(&at, j->result, j->result_len);
    c->error = put(&at, j->error, error);
    c->progress_data = put(&at, j->progress_data, j->progress_data_len);
    c->unique = put(&at, j->unique, unique);
    c->worker = put(&at, j->worker, worker);
    c->search_keys = put(&at, j->search_keys, keys);
    c->history = put(&at, j->history, j->history_len);
    c->values = put(&at, j->values, j->values_len);
    return c;
}

void weir_job_release(weir_job *job)
{
    if (!job)
        return;
    if (job->hold) {
        weir__hold_release(job->hold);
        return;
    }
    weir__texts_free(job->texts);
    free(job);
}

/* ---- JSON ---- */

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

static inline void text_if(weir_buf *b, const char *name, const char *value)
{
    if (value)
        text(b, name, value);
}

static inline void raw_if(weir_buf *b, const char *name, const char *json, size_t len)
{
    if (json) {
        weir__buf_str(b, name);
        weir__buf_add(b, json, len);
    }
}

static void backoff(weir_buf *b, const weir_backoff *f)
{
    if (f->kind == WEIR_IMMEDIATE && !f->delay_ms && !f->max_ms && !f->jitter_pct)
        return;
    text(b, ",\"backoff\":{\"type\":", weir_backoff_name(f->kind));
    number(b, ",\"delay\":", f->delay_ms);
    number_if(b, ",\"maxDelay\":", f->max_ms);
    number_if(b, ",\"jitter\":", f->jitter_pct);
    weir__buf_char(b, '}');
}

void weir__job_json(weir_buf *b, const weir_job *job)
{
    weir__buf_reserve(b, 512 + job->data_len + job->result_len + job->progress_data_len +
                             job->history_len + job->values_len);
    weir__buf_str(b, "{\"id\":");
    weir__buf_uint(b, job->id);
    text(b, ",\"type\":", job->type ? job->type : "");
    raw_if(b, ",\"data\":", job->data ? job->data : "null", job->data ? job->data_len : 4);
    raw_if(b, ",\"values\":", job->values, job->values_len);
    number(b, ",\"priority\":", job->priority);
    text(b, ",\"state\":", weir_state_name(job->state));
    number(b, ",\"delay\":", job->delay_ms);
    number(b, ",\"max_attempts\":", job->max_attempts);
    number(b, ",\"attempts\":", job->attempts);
    number(b, ",\"progress\":", job->progress);
    raw_if(b, ",\"progress_data\":", job->progress_data, job->progress_data_len);
    raw_if(b, ",\"result\":", job->result, job->result_len);
    text_if(b, ",\"error\":", job->error);
    number(b, ",\"created_at\":", job->created_at);
    number(b, ",\"promote_at\":", job->promote_at);
    number(b, ",\"updated_at\":", job->updated_at);
    number_if(b, ",\"failed_at\":", job->failed_at);
    number_if(b, ",\"started_at\":", job->started_at);
    number_if(b, ",\"finished_at\":", job->finished_at);
    number_if(b, ",\"lease_until\":", job->lease_until);
    if (job->state == WEIR_COMPLETE || job->duration_ms)    /* 0 ms is a duration, too */
        number(b, ",\"duration\":", job->duration_ms);
    number_if(b, ",\"ttl\":", job->ttl_ms);
    number_if(b, ",\"deadline\":", job->deadline_at);
    text_if(b, ",\"unique\":", job->unique);
    if (job->remove_on_complete)
        weir__buf_str(b, ",\"removeOnComplete\":true");
    backoff(b, &job->backoff);
    text_if(b, ",\"workerId\":", job->worker);
    number_if(b, ",\"delivery\":", job->delivery);
    number_if(b, ",\"lost\":", job->lost);
    if (job->max_lost && job->max_lost != WEIR_DEFAULT_MAX_LOST)
        number(b, ",\"max_lost\":", job->max_lost);
    if (job->search)
        weir__buf_str(b, ",\"search\":true");
    text_if(b, ",\"search_keys\":", job->search_keys);
    raw_if(b, ",\"history\":", job->history, job->history_len);
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
