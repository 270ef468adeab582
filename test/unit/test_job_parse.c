/* test_job_parse.c - jobs from JSON: what weir_job_json() writes comes back byte by byte, and what
 * is no job is refused by the name of its member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "core/job.h"
#include "support/same_job.h"

/* ---- taking JSON apart ---- */

static void pieces_are(const char *json, const char *want)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    weir_buf        got = { 0 };
    assert_true(weir__json_valid(json, strlen(json), 100, NULL, NULL));
    assert_true(weir__json_open(&w, (weir_json_piece){ json, strlen(json) }));
    while (weir__json_next(&w, &name, &value))
        weir__buf_printf(&got, "<%.*s=%.*s>", (int)name.len, name.text, (int)value.len,
                         value.text);
    weir__buf_char(&got, w.object ? '}' : ']');
    assert_string_equal(got.data, want);
    weir__buf_fini(&got);
}

static void json_comes_apart(void **state)
{
    (void)state;
    pieces_are("{}", "}");
    pieces_are(" [ ] ", "]");
    pieces_are("{\"a\":1}", "<\"a\"=1>}");
    pieces_are(" { \"a\" : 1.50e+3 , \"b\\\"}\" : [ 1, {\"c\":\"]}\"} ] ,\n\"d\":null}",
               "<\"a\"=1.50e+3><\"b\\\"}\"=[ 1, {\"c\":\"]}\"} ]><\"d\"=null>}");
    pieces_are("[true ,-0,\"\\\\\",[],{} , \"\\u005d\"]",
               "<=true><=-0><=\"\\\\\"><=[]><={}><=\"\\u005d\">]");
    weir_json_walk w;
    assert_false(weir__json_open(&w, (weir_json_piece){ "  12 ", 5 }));
    assert_false(weir__json_open(&w, (weir_json_piece){ "", 0 }));
}

/* ---- there and back ---- */

static uint64_t chance = 42;

static uint64_t random_below(uint64_t n)
{
    uint64_t x = chance += 0x9e3779b97f4a7c15u;       /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % n;
}

static bool one_in(uint64_t n)
{
    return random_below(n) == 0;
}

/* Texts of the job in hand. */
static char   texts[16][128];
static size_t n_texts;

/* Any characters but NUL, of one to four bytes; `least` at least. */
static const char *random_text(size_t least)
{
    static const char *const odd[] = { "\"", "\\", "\n", "\t", "\x01", "\x7f", "/", "\xc3\xa9",
                                       "\xe2\x82\xac", "\xf0\x9f\x90\x9f", "\xef\xbf\xbd", " " };
    char  *to = texts[n_texts++];
    size_t n = least + (size_t)random_below(20);
    *to = '\0';
    for (size_t i = 0; i < n; i++) {
        char plain[2] = { (char)('a' + random_below(26)), '\0' };
        strcat(to, one_in(3) ? odd[random_below(sizeof odd / sizeof *odd)] : plain);
    }
    return to;
}

static const char *random_json(size_t *len)
{
    static const char *const documents[] = {
        "{}", "null", "0", "-0.0", "1e999", "12345678901234567890123456789",
        "\"\\u0000\\ud83d\\udc1f\"", "{ \"a\" : [ 1 , 2.50 ] }",
        "[[[[]]]]", "{\"a\":1,\"a\":2}", "true",
        "\"caf\xc3\xa9\"", "{\"text\":\"}]\\\"\"}",
    };
    const char *json = documents[random_below(sizeof documents / sizeof *documents)];
    *len = strlen(json);
    return json;
}

static const char *random_history(size_t *len)
{
    static const char *const histories[] = {
        "[]", "[ {\"event\":\"due\",\"n\":7,\"state\":\"inactive\",\"at\":1} ]",
        ("[{\"n\":1,\"at\":5,\"event\":\"failed_attempt\",\"state\":\"delayed\",\"delivery\":3,"
         "\"worker\":\"w\",\"started_at\":4,\"error\":\"\\u0001caf\xc3\xa9\",\"until\":6}]"),
    };
    const char *json = histories[random_below(sizeof histories / sizeof *histories)];
    *len = strlen(json);
    return json;
}

static int64_t random_moment(void)
{
    return one_in(8) ? INT64_C(253402300799999) : (int64_t)random_below(INT64_C(4000000000000)) + 1;
}

static weir_job random_job(void)
{
    weir_job j = { .id = one_in(5) ? WEIR_MAX_ID : random_below(1000000),
                   .state = (weir_state)(WEIR_STATE_INACTIVE +
                                          random_below(WEIR_STATE_COUNT - 1)) };
    bool     ended = weir__finished(j.state), done = j.state == WEIR_STATE_COMPLETE;
    do {
        n_texts = 0;
        j.type = random_text(1);
    } while (weir__type_check(j.type, "type", NULL));
    j.priority = one_in(5) ? INT32_MIN : (int32_t)random_below(100) - 50;
    j.data = random_json(&j.data_len);
    if (done && one_in(2))
        j.result = random_json(&j.result_len);
    if (j.state == WEIR_STATE_FAILED || (!done && one_in(2)))
        j.error = random_text(0);
    if (one_in(2))
        j.progress_data = random_json(&j.progress_data_len);
    j.unique = one_in(2) ? random_text(1) : NULL;
    j.worker = one_in(2) ? random_text(0) : NULL;
    j.search_keys = one_in(3) ? random_text(1) : NULL;
    j.search = j.search_keys || one_in(2);
    j.backoff = (weir_backoff){ (weir_backoff_kind)random_below(4), (int64_t)random_below(9999),
                                one_in(2) ? (int64_t)random_below(9999) : 0,
                                one_in(2) ? (int32_t)random_below(101) : 0 };
    j.max_attempts = one_in(4) ? WEIR_MAX_ATTEMPTS : 2 + (int32_t)random_below(5);
    j.attempts = (int32_t)random_below((uint64_t)j.max_attempts + (ended ? 1 : 0));
    j.attempts += done && !j.attempts;
    j.delivery = one_in(4) ? INT32_MAX : (uint32_t)random_below(9);
    j.max_lost = 1 + (int32_t)random_below(5);
    j.lost = (int32_t)random_below((uint64_t)j.max_lost + 1);
    j.progress = done ? 100 : (int32_t)random_below(101);
    j.delay_ms = one_in(3) ? WEIR_MAX_MS : (int64_t)random_below(3);
    j.ttl_ms = one_in(2) ? (int64_t)random_below(99999) : 0;
    j.deadline_at = one_in(2) ? random_moment() : 0;
    j.created_at = random_moment();
    j.promote_at = random_moment();
    j.updated_at = random_moment();
    j.started_at = one_in(2) ? random_moment() : 0;
    j.failed_at = one_in(2) ? random_moment() : 0;
    j.finished_at = ended ? random_moment() : 0;
    j.lease_until = j.state == WEIR_STATE_ACTIVE && one_in(2) ? random_moment() : 0;
    j.duration_ms = done ? (int64_t)random_below(1000) : 0;
    j.remove_on_complete = one_in(3);
    if (one_in(2))
        j.history = random_history(&j.history_len);
    if (one_in(3)) {
        j.values = one_in(2) ? "{\"a\":1,\"b\":\"x\"}" : "{\"n-1\":[ 1.50 , null]}";
        j.values_len = strlen(j.values);
    }
    return j;
}

/* The job and its log as a line of an export. */
static char *line_of(const weir_job *j, const weir_line *lines, size_t n, size_t *len)
{
    weir_buf b = { 0 };
    char    *json = weir_job_json(j, len);
    weir__buf_add(&b, json, *len - 1);
    weir__buf_str(&b, ",\"log\":[");
    for (size_t i = 0; i < n; i++) {
        weir__buf_printf(&b, "%s{\"n\":%llu,\"at\":%lld,\"text\":", i ? "," : "",
                         (unsigned long long)lines[i].n, (long long)lines[i].at);
        weir__json_string(&b, lines[i].text, strlen(lines[i].text));
        weir__buf_char(&b, '}');
    }
    weir__buf_str(&b, "]}");
    free(json);
    return weir__buf_steal(&b, len);
}

static void what_is_written_can_be_read(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        weir_job    j = random_job();
        weir_line   lines[4];
        weir_lines *log;
        weir_job   *back;
        weir_error  err = { 0 };
        size_t      len, n = (size_t)random_below(5);
        uint64_t first = 1 + random_below(1000);
        for (size_t i = 0; i < n; i++)
            lines[i] = (weir_line){ .n = first + i, .at = random_moment(),
                                     .text = random_text(0) };
        char *json = line_of(&j, lines, n, &len);
        if (weir_job_parse(json, len, &back, &log, &err))
            fail_msg("%s\nof %s", err.msg, json);
        check_same_job(back, &j);
        assert_int_equal(log->n, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(log->line[i].n, lines[i].n);
            assert_int_equal(log->line[i].at, lines[i].at);
            assert_string_equal(log->line[i].text, lines[i].text);
        }
        weir_lines_free(log);
        weir_job_free(back);
        free(json);
    }
}

static void only_the_type_is_needed(void **state)
{
    (void)state;
    weir_job  *j;
    weir_error err = { 0 };
    assert_int_equal(weir_job_parse(" {\"type\":\"m\"} ", 14, &j, NULL, &err), WEIR_OK);
    assert_int_equal(j->id, 0);
    assert_string_equal(j->type, "m");
    assert_string_equal(j->data, "{}");
    assert_int_equal(j->state, WEIR_STATE_INACTIVE);
    assert_int_equal(j->max_attempts, 1);
    assert_int_equal(j->max_lost, WEIR_DEFAULT_MAX_LOST);
    weir_job_free(j);
    weir_lines *log;
    const char *json = "{\"type\":\"m\",\"log\":[{\"text\":\"a\"},{\"text\":\"b\"}]}";
    assert_int_equal(weir_job_parse(json, strlen(json), &j, &log, &err), WEIR_OK);
    assert_int_equal(log->n, 2);
    assert_int_equal(log->line[1].n, 2);
    weir_lines_free(log);
    weir_job_free(j);
}

/* ---- what is refused ---- */

static void refused(const char *json, const char *why)
{
    weir_job   *j = (weir_job *)&chance;
    weir_lines *log = (weir_lines *)&chance;
    weir_error  err = { 0 };
    weir_code   rc = weir_job_parse(json, strlen(json), &j, &log, &err);
    assert_string_equal(err.msg, why);
    assert_true(rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
    assert_null(j);
    assert_null(log);
}

static void what_is_no_job_is_named(void **state)
{
    (void)state;
    refused("", "not JSON at byte 0: the text ends too early");
    refused("{\"type\":\"m\"", "not JSON at byte 11: the text ends too early");
    refused("[1]", "[1] is not an object");
    refused("{}", "type: missing");
    refused("{\"type\":7}", "type: 7 is not a text");
    refused("{\"type\":\"a\\u0000b\"}", "type: a zero byte in it");
    refused("{\"type\":\"m\",\"colour\":1}", "colour: unknown member");
    refused("{\"type\":\"m\",\"type\":\"n\"}", "type: is given twice");
    refused("{\"type\":\"m\",\"id\":-1}", "id: -1, must be between 0 and 281474976710656");
    refused("{\"type\":\"m\",\"id\":\"7\"}", "id: \"7\" is not a whole number");
    refused("{\"type\":\"m\",\"priority\":1.5}",
            "priority: 1.5 is not a whole number (write it in digits alone)");
    refused("{\"type\":\"m\",\"priority\":2147483648}",
            "priority: 2147483648, must be between -2147483648 and 2147483647");
    refused("{\"type\":\"m\",\"ttl\":1234567890123456789012345}",
            "ttl: 1234567890123456789012345, must be between 0 and 3162240000000");
    refused("{\"type\":\"m\",\"ttl\":99999999999999999999}",
            "ttl: 99999999999999999999, must be between 0 and 3162240000000");
    refused("{\"type\":\"m\",\"attempts\":true}", "attempts: true is not a whole number");
    refused("{\"type\":\"m\",\"attempts\":1}", "attempts: 1 of 1, but it is inactive");
    refused("{\"type\":\"m\",\"state\":\"asleep\"}",
            "state: \"asleep\" is not inactive, delayed, active, complete, failed or cancelled");
    refused("{\"type\":\"m\",\"state\":\"any\"}",
            "state: \"any\" is not inactive, delayed, active, complete, failed or cancelled");
    refused("{\"type\":\"m\",\"removeOnComplete\":1}",
            "removeOnComplete: 1 is not true or false");
    refused("{\"type\":\"m\",\"backoff\":7}",
            "backoff: 7 is not an object, or a text like \"exponential:1s:60s\"");
    refused("{\"type\":\"m\",\"backoff\":{\"type\":\"soon\"}}",
            "backoff.type: \"soon\" is not \"fixed\", \"linear\", \"exponential\" or \"none\"");
    refused("{\"type\":\"m\",\"backoff\":{\"kind\":1}}",
            "backoff.kind: unknown member; this object accepts: type, delay, maxDelay, jitter");
    refused("{\"type\":\"m\",\"backoff\":{\"type\":\"fixed\",\"jitter\":200}}",
            "backoff.jitter: 200, must be between 0 and 100");
    refused("{\"type\":\"m\",\"log\":{}}", "log: {} is not a list");
    refused("{\"type\":\"m\",\"log\":[7]}", "log[0]: 7 is not an object");
    refused("{\"type\":\"m\",\"log\":[{\"text\":\"a\"},{\"n\":2}]}", "log[1].text: missing");
    refused("{\"type\":\"m\",\"log\":[{\"text\":\"a\",\"x\":2}]}",
            "log[0].x: unknown member; this object accepts: n, at, text");
    refused("{\"type\":\"m\",\"log\":[{\"text\":\"a\",\"at\":\"now\"}]}",
            "log[0].at: \"now\" is not a whole number");
    refused("{\"type\":\"m\",\"log\":[{\"text\":\"a\"},{\"text\":\"b\",\"n\":5}]}",
            "log[1].n: 5, must be one more than that of the line before");
    refused("{\"type\":\"m\",\"error\":null}", "error: null is not a text");
}

static void nesting_has_its_limit(void **state)
{
    (void)state;
    for (int levels = WEIR_MAX_DEPTH; levels <= WEIR_MAX_DEPTH + 1; levels++) {
        weir_buf   b = { 0 };
        weir_job  *j;
        weir_error err = { 0 };
        weir__buf_str(&b, "{\"type\":\"m\",\"data\":");
        for (int i = 0; i < levels; i++)
            weir__buf_char(&b, '[');
        for (int i = 0; i < levels; i++)
            weir__buf_char(&b, ']');
        weir__buf_char(&b, '}');
        weir_code rc = weir_job_parse(b.data, b.len, &j, NULL, &err);
        assert_int_equal(rc, levels == WEIR_MAX_DEPTH ? WEIR_OK : WEIR_ELIMIT);
        weir_job_free(j);
        weir__buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_comes_apart),
        cmocka_unit_test(what_is_written_can_be_read),
        cmocka_unit_test(only_the_type_is_needed),
        cmocka_unit_test(what_is_no_job_is_named),
        cmocka_unit_test(nesting_has_its_limit),
    };
    return cmocka_run_group_tests_name("job from JSON", tests, NULL, NULL);
}
