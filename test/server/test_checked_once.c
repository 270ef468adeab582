/* test_checked_once.c - POST /v1/jobs checks the JSON of a body once, data and all, in every store:
 * what a job's data costs grows with its size, not with the layers it goes through. Counted at the
 * one function that checks JSON, which the linker wraps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "support/server_rig.h"

/* Bytes that were checked since a test has set it to 0. */
static _Atomic size_t checked;

typedef bool valid_fn(const char *text, size_t len, int depth, size_t *where, const char **why);
valid_fn __real_weir__json_valid, __wrap_weir__json_valid;

bool __wrap_weir__json_valid(const char *text, size_t len, int depth, size_t *where,
                             const char **why)
{
    checked += len;
    return __real_weir__json_valid(text, len, depth, where, why);
}

/* An object of about `bytes` bytes with all kinds of values. */
static void put_data(weir_buf *out, size_t bytes)
{
    size_t start = out->len;
    weir__buf_str(out, "{\"rows\":[0");
    while (out->len - start < bytes - 64)
        weir__buf_str(out, ",{\"n\":12.5,\"t\":[true,null],\"s\":\"caf\\u00e9 \\\"x\\\"\"}");
    weir__buf_str(out, "]}");
}

static void is_checked_once(const char *url, const char *headers, size_t jobs, size_t bytes)
{
    web      w;
    weir_buf body = { 0 };
    web_start(&w, url, false, NULL);
    for (size_t i = 0; i < jobs; i++) {
        weir__buf_str(&body, i ? ",{\"type\":\"a\",\"data\":" : "[{\"type\":\"a\",\"data\":");
        put_data(&body, bytes);
        weir__buf_char(&body, '}');
    }
    weir__buf_char(&body, ']');
    assert_false(body.failed);
    char *text = body.data;
    if (jobs == 1) {                    /* no list */
        body.data[body.len - 1] = '\0';
        text++;
    }
    checked = 0;
    web_answer a = web_call_with(&w, "POST", "/v1/jobs", headers, text);
    size_t     n = checked;
    if (a.status != 201)
        fail_msg("%s: %d %s", url, a.status, a.body);
    if (n != strlen(text))
        fail_msg("%s: %zu bytes were checked of a body of %zu", url, n, strlen(text));
    web_free(&a);
    weir_job *job = rt_get(&w.t, 1);
    assert_true(job->data_len >= bytes / 2);
    weir_job_free(job);
    weir__buf_fini(&body);
    web_stop(&w);
}

static const char *const urls[] = { RT_MEM, RT_SQLITE, RT_REDIS,
                                    "rig:redis+kue+unix?profile=vertx" };
enum { URLS = sizeof urls / sizeof *urls };

static void one_large_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < URLS; i++)
        is_checked_once(urls[i], NULL, 1, 1000 * 1000);
}

static void a_list_of_jobs(void **state)
{
    (void)state;
    for (size_t i = 0; i < URLS; i++)
        is_checked_once(urls[i], NULL, 50, 20 * 1000);
}

static void with_an_idempotency_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < URLS; i++)
        is_checked_once(urls[i], "Idempotency-Key: k\r\n", 1, 1000 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_large_job),
        cmocka_unit_test(a_list_of_jobs),
        cmocka_unit_test(with_an_idempotency_key),
    };
    return cmocka_run_group_tests_name("checked_once", tests, NULL, NULL);
}
