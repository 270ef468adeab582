/* same_job.c - are two jobs the same, in every member? */
#include "support/same_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

_Static_assert(sizeof(weir_job) == offsetof(weir_job, values_len) + sizeof(size_t),
               "a member was added to weir_job: compare it, too");

static void check_text(const char *is, const char *want)
{
    if (!is || !want)
        assert_ptr_equal(is, want);
    else
        assert_string_equal(is, want);
}

static void check_bytes(const char *is, size_t is_len, const char *want, size_t want_len)
{
    assert_int_equal(is_len, want_len);
    assert_int_equal(!is, !want);
    if (is)
        assert_memory_equal(is, want, is_len);
    if (is)
        assert_int_equal(is[is_len], '\0');
}

static void check_texts(const weir_job *is, const weir_job *want)
{
    check_text(is->type, want->type);
    check_bytes(is->data, is->data_len, want->data, want->data_len);
    check_bytes(is->result, is->result_len, want->result, want->result_len);
    check_bytes(is->progress_data, is->progress_data_len, want->progress_data,
                want->progress_data_len);
    check_text(is->error, want->error);
    check_text(is->unique, want->unique);
    check_text(is->worker, want->worker);
    check_text(is->search_keys, want->search_keys);
    check_bytes(is->history, is->history_len, want->history, want->history_len);
    check_bytes(is->values, is->values_len, want->values, want->values_len);
}

void check_same_job(const weir_job *is, const weir_job *want)
{
    assert_non_null(is);
    assert_int_equal(is->id, want->id);
    assert_string_equal(weir_state_name(is->state), weir_state_name(want->state));
    check_texts(is, want);
    assert_int_equal(is->priority, want->priority);
    assert_int_equal(is->backoff.kind, want->backoff.kind);
    assert_int_equal(is->backoff.delay_ms, want->backoff.delay_ms);
    assert_int_equal(is->backoff.max_ms, want->backoff.max_ms);
    assert_int_equal(is->backoff.jitter_pct, want->backoff.jitter_pct);
    assert_int_equal(is->attempts, want->attempts);
    assert_int_equal(is->max_attempts, want->max_attempts);
    assert_int_equal(is->delivery, want->delivery);
    assert_int_equal(is->lost, want->lost);
    assert_int_equal(is->max_lost, want->max_lost);
    assert_int_equal(is->progress, want->progress);
    assert_int_equal(is->delay_ms, want->delay_ms);
    assert_int_equal(is->ttl_ms, want->ttl_ms);
    assert_int_equal(is->deadline_at, want->deadline_at);
    assert_int_equal(is->created_at, want->created_at);
    assert_int_equal(is->promote_at, want->promote_at);
    assert_int_equal(is->updated_at, want->updated_at);
    assert_int_equal(is->started_at, want->started_at);
    assert_int_equal(is->failed_at, want->failed_at);
    assert_int_equal(is->finished_at, want->finished_at);
    assert_int_equal(is->lease_until, want->lease_until);
    assert_int_equal(is->duration_ms, want->duration_ms);
    assert_int_equal(is->remove_on_complete, want->remove_on_complete);
    assert_int_equal(is->search, want->search);
    assert_null(is->hold);
    assert_null(is->texts);
}
