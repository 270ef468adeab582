/* same_job.c - are two jobs the same, in every member? */
#include "support/same_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "core/job_fields.h"

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

/* at_moment is not kept by every store: what it is for shows in promote_at. */
void check_same_job(const weir_job *is, const weir_job *want)
{
    assert_non_null(is);
    assert_string_equal(weir_state_name(is->state), weir_state_name(want->state));
#define NUMBER(member, name, ...)                                                                 \
    if (strcmp(#name, "at_moment") != 0)                                                          \
        assert_int_equal(is->member, want->member);
#define TEXT(member, ...)  check_text(is->member, want->member);
#define BYTES(member, ...)                                                                        \
    check_bytes(is->member, is->member##_len, want->member, want->member##_len);
    WEIR_JOB_NUMBERS(NUMBER)
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
    assert_null(is->taken);
    assert_null(is->texts);
}
