/* test_trace.c - the W3C trace context, and what a handler, an add and their spans make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/span.h"
#include "weir/weir.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void contexts_are_read_as_w3c_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool        good, sampled;
    } table[] = {
        { GOOD, true, true },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true, false },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", true, true },
        { "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later", true, true },
        { "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.later", false, false },
        { GOOD "-more", false, false },
        { "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false },
        { "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false },
        { "00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false },
        { "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false },
        { "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", false, false },
        { "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false },
        { "", false, false },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        weir_trace t;
        char       text[WEIR_TRACEPARENT_LEN + 1];
        assert_int_equal(weir__trace_parse(&t, table[i].text, strlen(table[i].text)),
                         table[i].good);
        assert_int_equal(weir__trace_is_set(&t), table[i].good);
        assert_int_equal(t.sampled, table[i].sampled);
        if (!table[i].good)
            continue;
        weir__trace_format(&t, text);
        assert_int_equal(strlen(text), WEIR_TRACEPARENT_LEN);
        assert_memory_equal(text + 2, table[i].text + 2, 51);
    }
}

static void executions_have_their_own_spans(void **state)
{
    (void)state;
    weir_trace add, a, b, c, again;
    assert_true(weir__trace_parse(&add, GOOD, strlen(GOOD)));
    a = weir__trace_of_execution(&add, 1, 1);
    b = weir__trace_of_execution(&add, 1, 2);
    c = weir__trace_of_execution(&add, 2, 1);
    again = weir__trace_of_execution(&add, 1, 1);
    assert_memory_equal(a.trace, add.trace, sizeof a.trace);
    assert_memory_equal(a.span, again.span, sizeof a.span);
    assert_memory_not_equal(a.span, add.span, sizeof a.span);
    assert_memory_not_equal(a.span, b.span, sizeof a.span);
    assert_memory_not_equal(a.span, c.span, sizeof a.span);
    weir_trace root = weir__trace_new(&(weir_trace){ 0 });
    assert_true(weir__trace_is_set(&root) && root.sampled);
}

static void threads_have_a_context(void **state)
{
    (void)state;
    char       text[WEIR_TRACEPARENT_LEN + 1];
    weir_error err;
    assert_false(weir_trace_get(text));
    assert_string_equal(text, "");
    assert_int_equal(weir_trace_set(GOOD, &err), WEIR_OK);
    assert_int_equal(weir_trace_set("wrong", &err), WEIR_EINVAL);
    assert_string_equal(err.field, "traceparent");
    assert_true(weir_trace_get(text));
    assert_string_equal(text, GOOD);
    assert_int_equal(weir_trace_set(NULL, &err), WEIR_OK);
    assert_false(weir_trace_get(text));
}

/* ---- from an add to the handler and to what the handler adds ---- */

static char in_handler[WEIR_TRACEPARENT_LEN + 1], of_job[WEIR_TRACEPARENT_LEN + 1];

static weir_code add_a_child(weir_job *job, void *q)
{
    weir_trace_get(in_handler);
    weir_job_trace(job, of_job);
    weir_error err;
    weir_spec  spec = { .type = "child", .values = "{\"color\":\"red\"}" };
    return weir_add(q, &spec, NULL, &err);
}

static char *trace_of(weir_queue *q, uint64_t id, char out[WEIR_TRACEPARENT_LEN + 1])
{
    weir_job  *job;
    weir_error err;
    assert_int_equal(weir_get(q, id, &job, &err), WEIR_OK);
    const char *text = weir_value_text(job, WEIR_TRACEPARENT, "");
    strcpy(out, text);
    weir_job_free(job);
    return out;
}

static void children_belong_to_the_trace(void **state)
{
    (void)state;
    weir_queue *q;
    weir_error  err;
    weir_added  added, own;
    weir_job   *job;
    char        text[WEIR_TRACEPARENT_LEN + 1];
    static const char other[] = "00-11111111111111111111111111111111-2222222222222222-01";
    assert_int_equal(weir_open(&q, "mem:", NULL, &err), WEIR_OK);
    assert_int_equal(weir_trace_set(GOOD, &err), WEIR_OK);
    assert_int_equal(weir_add(q, &(weir_spec){ .type = "parent" }, &added, &err), WEIR_OK);
    char values[96];
    snprintf(values, sizeof values, "{\"traceparent\":\"%s\"}", other);
    assert_int_equal(weir_add(q, &(weir_spec){ .type = "own", .values = values }, &own, &err),
                     WEIR_OK);
    assert_int_equal(weir_add(q, &(weir_spec){ .type = "own", .values = "[" }, NULL, &err),
                     WEIR_EINVAL);
    assert_int_equal(weir_trace_set(NULL, &err), WEIR_OK);
    assert_string_equal(trace_of(q, added.id, text), GOOD);
    assert_string_equal(trace_of(q, own.id, text), other);
    assert_int_equal(weir_process(q, "parent", &(weir_pool_config){ .handler = add_a_child,
                                                                    .ctx = q }, NULL, &err),
                     WEIR_OK);
    assert_int_equal(weir_wait(q, added.id, 30000, &job, &err), WEIR_OK);
    weir_job_free(job);
    assert_string_equal(in_handler, of_job);
    assert_memory_equal(in_handler, GOOD, 35);                  /* the trace */
    assert_memory_not_equal(in_handler + 36, GOOD + 36, 16);    /* but another span */
    assert_string_equal(trace_of(q, own.id + 1, text), in_handler);
    weir_close(q);
}

static void without_a_context_jobs_have_none(void **state)
{
    (void)state;
    weir_queue *q;
    weir_error  err;
    weir_added  added;
    weir_job   *job;
    char        text[WEIR_TRACEPARENT_LEN + 1];
    assert_int_equal(weir_open(&q, "mem:", NULL, &err), WEIR_OK);
    assert_int_equal(weir_add(q, &(weir_spec){ .type = "a" }, &added, &err), WEIR_OK);
    assert_int_equal(weir_get(q, added.id, &job, &err), WEIR_OK);
    assert_null(job->values);
    assert_false(weir_job_trace(job, text));
    weir_job_free(job);
    weir_close(q);
}

/* ---- spans ---- */

static void spans_are_valid_json(void **state)
{
    (void)state;
    weir_buf  out = { 0 };
    weir_span s[2] = { { .kind = WEIR__SPAN_PRODUCER, .count = 3, .type = "a\"b", .start_ns = 5,
                         .end_ns = 7 },
                       { .kind = WEIR__SPAN_CONSUMER, .job = 9, .delivery = 2, .type = "mail",
                         .outcome = "fail", .failed = true, .error = "smtp: \"no\"" } };
    weir__trace_parse(&s[0].own, GOOD, strlen(GOOD));
    s[1].parent = s[0].own;
    s[1].own = weir__trace_of_execution(&s[0].own, 9, 2);
    weir__spans_json(&out, "my \"shop\"", "host:1", s, 2);
    assert_true(weir_json_valid(out.data, out.len));
    assert_non_null(strstr(out.data, "\"traceId\":\"0af7651916cd43dd8448eb211c80319c\""));
    assert_non_null(strstr(out.data, "\"parentSpanId\":\"b7ad6b7169203331\""));
    assert_non_null(strstr(out.data, "\"name\":\"add a\\\"b\",\"kind\":4"));
    assert_non_null(strstr(out.data, "\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"7\""));
    assert_non_null(strstr(out.data, "\"status\":{\"code\":2,\"message\":\"smtp: \\\"no\\\"\"}"));
    assert_non_null(strstr(out.data, "batch.message_count\",\"value\":{\"intValue\":\"3\"}"));
    weir__buf_fini(&out);
}

static void wrong_collectors_are_refused(void **state)
{
    (void)state;
    weir_error err;
    assert_int_equal(weir_trace_start(&(weir_trace_config){ .endpoint = "ftp://x" }, &err),
                     WEIR_EINVAL);
    assert_string_equal(err.field, "endpoint");
    assert_int_equal(weir_trace_start(&(weir_trace_config){ .endpoint = "http://" }, &err),
                     WEIR_EINVAL);
    assert_int_equal(weir_trace_start(&(weir_trace_config){ .endpoint = "http://127.0.0.1:1",
                                                            .headers = "a" }, &err), WEIR_EINVAL);
    assert_string_equal(err.field, "headers");
    assert_int_equal(weir_trace_stop(0, &err), WEIR_OK);        /* it was never started */
}

static void an_absent_collector_costs_spans_not_jobs(void **state)
{
    (void)state;
    weir_queue      *q;
    weir_error       err;
    weir_trace_stats stats;
    weir_trace_config config = { .endpoint = "http://127.0.0.1:1" };
    assert_int_equal(weir_open(&q, "mem:", NULL, &err), WEIR_OK);
    assert_int_equal(weir_trace_start(&config, &err), WEIR_OK);
    assert_int_equal(weir_trace_start(&config, &err), WEIR_ESTATE);
    for (int i = 0; i < WEIR_MAX_SPANS + 10; i++)
        assert_int_equal(weir_add(q, &(weir_spec){ .type = "a" }, NULL, &err), WEIR_OK);
    weir_get_trace_stats(&stats);
    assert_true(stats.started);
    assert_int_equal(stats.sent, 0);
    assert_true(stats.dropped >= 10);
    assert_int_equal(weir_trace_stop(1, &err), WEIR_EUNAVAIL);
    assert_non_null(strstr(err.msg, "spans were not delivered"));
    weir_close(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_read_as_w3c_says),
        cmocka_unit_test(executions_have_their_own_spans),
        cmocka_unit_test(threads_have_a_context),
        cmocka_unit_test(children_belong_to_the_trace),
        cmocka_unit_test(without_a_context_jobs_have_none),
        cmocka_unit_test(spans_are_valid_json),
        cmocka_unit_test(wrong_collectors_are_refused),
        cmocka_unit_test(an_absent_collector_costs_spans_not_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
