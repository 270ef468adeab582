/* test_fields.c - JSON objects read into structs by a table: every kind of member, and every way in
 * which one can be wrong, with its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/job.h"
#include "support/every_field.h"

/* ---- memory that is counted, and ends ---- */

enum { MOST = 64 };
static void  *blocks[MOST];
static size_t n_blocks, blocks_left = MOST;

static void *block(void *ctx, size_t size)
{
    (void)ctx;
    if (!blocks_left)
        return NULL;
    blocks_left--;
    assert_true(n_blocks < MOST);
    return blocks[n_blocks++] = calloc(1, size);
}

static int forget(void **state)
{
    (void)state;
    while (n_blocks)
        free(blocks[--n_blocks]);
    blocks_left = MOST;
    return 0;
}

static weir_reader in;

static weir_code read_text(const char *json, whole *w)
{
    in = (weir_reader){ .alloc = block };
    *w = (whole){ 0 };
    weir_code rc = weir__read_check(&in, json, strlen(json), 20);
    return rc ? rc : weir__read(&in, fields, (weir_json_piece){ json, strlen(json) }, w);
}

static whole right(const char *json)
{
    whole w;
    if (read_text(json, &w))
        fail_msg("%s: %s", json, in.err.msg);
    return w;
}

static void wrong(const char *json, weir_code code, const char *field, const char *message)
{
    whole     w;
    weir_code rc = read_text(json, &w);
    assert_string_equal(in.err.msg, message);
    assert_string_equal(in.err.field, field);
    assert_int_equal(rc, code);
    assert_int_equal(in.err.code, code);
}

static bool piece_is(weir_json_piece p, const char *text)
{
    return p.len == strlen(text) && !memcmp(p.text, text, p.len);
}

/* ---- what is right ---- */

static void members_are_read(void **state)
{
    (void)state;
    whole w = right(" { \"text\" : \"caf\\u00e9\\n\", \"type\":\"mail\","
                    "\"n\":-9223372036854775808,"
                    "\"wait\":\"1m\",\"at\":253402300799999,\"small\":-2147483648,"
                    "\"priority\":\"high\",\"flag\":false,\"state\":\"failed\"} ");
    assert_string_equal(w.text, "caf\xc3\xa9\n");
    assert_string_equal(w.type, "mail");
    assert_true(w.n == INT64_MIN && w.wait_ms == 60000 && w.at == WEIR__MAX_AT);
    assert_true(w.small == INT32_MIN && w.priority == WEIR_PRIORITY_HIGH);
    assert_true(!w.flag && w.had_flag && w.state == WEIR_STATE_FAILED);
    w = right("{\"n\":9223372036854775807,\"wait\":10,\"priority\":-0,\"flag\":true}");
    assert_true(w.n == INT64_MAX && w.wait_ms == 10 && w.flag && !w.priority);
    w = right("{\"n\":-9223372036854775807}");
    assert_true(w.n == -INT64_MAX && !w.had_flag);
}

static void states_and_backoff_have_two_forms(void **state)
{
    (void)state;
    assert_int_equal(right("{\"states\":\"active\"}").states, WEIR_BIT(WEIR_STATE_ACTIVE));
    assert_int_equal(right("{\"states\":[\"failed\",\"Complete\",\"failed\"]}").states,
                     WEIR_BIT(WEIR_STATE_FAILED) | WEIR_BIT(WEIR_STATE_COMPLETE));
    weir_backoff b = right("{\"backoff\":\"exponential:1s:60s:20%\"}").backoff;
    weir_backoff o = right("{\"backoff\":{\"type\":\"exponential\",\"delay\":\"1s\","
                           "\"maxDelay\":60000,\"jitter\":20}}").backoff;
    assert_true(b.kind == WEIR_BACKOFF_EXPONENTIAL && o.kind == b.kind && o.delay_ms == 1000 &&
                o.delay_ms == b.delay_ms && o.max_ms == b.max_ms && o.jitter_pct == b.jitter_pct);
    assert_int_equal(right("{\"backoff\":{\"type\":\"none\"}}").backoff.kind, WEIR_BACKOFF_NONE);
    assert_int_equal(right("{\"backoff\":{\"type\":\"linear\"}}").backoff.kind,
                     WEIR_BACKOFF_LINEAR);
}

static void pieces_keep_every_byte(void **state)
{
    (void)state;
    whole w = right("{\"raw\": { \"a\" : 1.00000000000000000001e400, \"b\":\"\\u0000\" } }");
    assert_true(piece_is(w.raw, "{ \"a\" : 1.00000000000000000001e400, \"b\":\"\\u0000\" }"));
    assert_true(piece_is(right("{\"raw\":null}").raw, "null"));
}

static void lists_are_read(void **state)
{
    (void)state;
    whole w = right("{\"texts\":[\"a\",\"\",\"c\"],\"ids\":[1,9223372036854775807],"
                    "\"parts\":[{\"id\":1},{\"result\":{},\"delivery\":4294967295,\"id\":2}],"
                    "\"one\":{\"id\":7}}");
    assert_int_equal(w.texts.n, 3);
    assert_string_equal(w.texts.text[2], "c");
    assert_null(w.texts.text[3]);
    assert_true(w.ids.n == 2 && w.ids.id[1] == INT64_MAX);
    const part *p = w.parts.item;
    assert_true(w.parts.n == 2 && p[0].id == 1 && !p[0].delivery && !p[0].result.text);
    assert_true(p[1].id == 2 && p[1].delivery == UINT32_MAX && piece_is(p[1].result, "{}"));
    assert_int_equal(w.one.id, 7);
    w = right("{\"texts\":[],\"parts\":[ ]}");
    assert_true(!w.texts.n && w.texts.text && !w.texts.text[0] && !w.parts.n);
    assert_int_equal(right("{\"texts\":[\"1\",\"2\",\"3\",\"4\"]}").texts.n, 4);
}

static void texts_lose_their_escapes(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "\"\"", "" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
        { "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
        { "\"\\uffff\\u07ff\\u0800\"", "\xef\xbf\xbf\xdf\xbf\xe0\xa0\x80" },
        { "\"\xf0\x9f\x98\x80 x\\\\u0041\"", "\xf0\x9f\x98\x80 x\\u0041" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char   to[80];
        size_t len, size = strlen(pairs[i][0]);
        assert_true(weir__json_text((weir_json_piece){ pairs[i][0], size }, to, &len));
        assert_string_equal(to, pairs[i][1]);
        assert_int_equal(len, strlen(pairs[i][1]));
    }
}

static void texts_share_memory(void **state)
{
    (void)state;
    right("{\"texts\":[\"one\",\"two\",\"three\",\"four\"],\"text\":\"five\",\"type\":\"six\"}");
    assert_int_equal(n_blocks, 5);      /* one for the texts; the list grew to 1, 2, 4, 8 */
}

/* ---- what is not ---- */

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    wrong("", WEIR_EINVAL, "", "not JSON at byte 0: the text ends too early");
    wrong("{\"n\":1", WEIR_EINVAL, "", "not JSON at byte 6: the text ends too early");
    wrong("{\"n\":01}", WEIR_EINVAL, "", "not JSON at byte 5: number with a leading zero");
    wrong("{\"text\":\"\xff\"}", WEIR_EINVAL, "", "not JSON at byte 9: invalid UTF-8");
    wrong("{} {}", WEIR_EINVAL, "", "not JSON at byte 3: more text behind the value");
    wrong("[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]", WEIR_ELIMIT, "",
          "nested too deeply at byte 20, at most 20 levels");
    wrong("[1]", WEIR_EINVAL, "", "[1] is not an object");
    wrong("null", WEIR_EINVAL, "", "null is not an object");
}

static void members_are_refused_by_name(void **state)
{
    (void)state;
    wrong("{\"n\":1,\"n\":1}", WEIR_EINVAL, "n", "n: is given twice");
    wrong("{\"one\":{}}", WEIR_EINVAL, "one.id", "one.id: missing");
    wrong("{\"one\":{\"Id\":1}}", WEIR_EINVAL, "one.Id",
          "one.Id: unknown member; did you mean \"id\"?");
    wrong("{\"parts\":[{\"id\":1},{\"id\":1,\"id\":2}]}", WEIR_EINVAL, "parts[1].id",
          "parts[1].id: is given twice");
    wrong("{\"parts\":[{\"id\":1},7]}", WEIR_EINVAL, "parts[1]", "parts[1]: 7 is not an object");
    wrong("{\"nn\":1}", WEIR_EINVAL, "nn",
          "nn: unknown member; did you mean \"n\"?");
    wrong("{\"colour\":1}", WEIR_EINVAL, "colour",
          "colour: unknown member; this object accepts: text, type, n, wait, at, small, priority, "
          "flag, state, states, backoff, raw, texts, ids, parts, one");
    wrong("{\"\":1,\"n\":2}", WEIR_EINVAL, "",
          "unknown member; this object accepts: text, type, n, wait, at, small, priority, flag, "
          "state, states, backoff, raw, texts, ids, parts, one");
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    char json[2000];
    memset(json, 'x', sizeof json);
    memcpy(json, "{\"one\":{\"", 9);
    memcpy(json + sizeof json - 7, "\":1}}", 6);
    whole w;
    assert_int_equal(read_text(json, &w), WEIR_EINVAL);
    assert_int_equal(strlen(in.err.field), 4 + 60);
    assert_memory_equal(in.err.field, "one.xxx", 7);
}

static void numbers_are_whole_and_fit(void **state)
{
    (void)state;
    wrong("{\"n\":9223372036854775808}", WEIR_EINVAL, "n",
          "n: 9223372036854775808, must be between -9223372036854775808 and 9223372036854775807");
    wrong("{\"n\":-9223372036854775809}", WEIR_EINVAL, "n",
          "n: -9223372036854775809, must be between -9223372036854775808 and 9223372036854775807");
    wrong("{\"n\":18446744073709551617}", WEIR_EINVAL, "n",
          "n: 18446744073709551617, must be between -9223372036854775808 and 9223372036854775807");
    wrong("{\"n\":1.0}", WEIR_EINVAL, "n",
          "n: 1.0 is not a whole number (write it in digits alone)");
    wrong("{\"n\":1e3}", WEIR_EINVAL, "n",
          "n: 1e3 is not a whole number (write it in digits alone)");
    wrong("{\"n\":\"1\"}", WEIR_EINVAL, "n", "n: \"1\" is not a whole number");
    wrong("{\"n\":null}", WEIR_EINVAL, "n", "n: null is not a whole number");
    wrong("{\"small\":2147483648}", WEIR_EINVAL, "small",
          "small: 2147483648, must be between -2147483648 and 2147483647");
    wrong("{\"at\":-1}", WEIR_EINVAL, "at", "at: -1, must be between 0 and 253402300799999");
    wrong("{\"ids\":[1,0]}", WEIR_EINVAL, "ids[1]",
          "ids[1]: 0, must be between 1 and 9223372036854775807");
    wrong("{\"one\":{\"id\":1,\"delivery\":4294967296}}", WEIR_EINVAL, "one.delivery",
          "one.delivery: 4294967296, must be between 1 and 4294967295");
}

static void lengths_of_time_are_bounded(void **state)
{
    (void)state;
    wrong("{\"wait\":9}", WEIR_EINVAL, "wait", "wait: 9, must be between 10 and 60000");
    wrong("{\"wait\":\"9ms\"}", WEIR_EINVAL, "wait", "wait: 9ms, must be between 10 and 60000 ms");
    wrong("{\"wait\":\"2m\"}", WEIR_EINVAL, "wait", "wait: 2m, must be between 10 and 60000 ms");
    wrong("{\"wait\":\"soon\"}", WEIR_EINVAL, "wait",
          "wait: \"soon\" is not a length of time: write it like 250ms, 5s, 1m30s, 2h or 7d");
    wrong("{\"wait\":\"1s\\u0000\"}", WEIR_EINVAL, "wait",
          "wait: \"1s\\u0000\" is not a length of time, like 250ms, 5s, 1m30s or 2h");
    wrong("{\"wait\":1.5}", WEIR_EINVAL, "wait",
          "wait: 1.5 is not a whole number (write it in digits alone)");
}

static void texts_are_bounded(void **state)
{
    (void)state;
    wrong("{\"text\":5}", WEIR_EINVAL, "text", "text: 5 is not a text");
    wrong("{\"text\":\"\"}", WEIR_EINVAL, "text", "text: empty");
    wrong("{\"text\":\"123456789\"}", WEIR_ELIMIT, "text", "text: 9 bytes, at most 8");
    wrong("{\"text\":\"a\\u0000b\"}", WEIR_EINVAL, "text", "text: a zero byte in it");
    wrong("{\"type\":\"a\\nb\"}", WEIR_EINVAL, "type",
          "type: invisible or control character U+000A at byte 1; use visible characters");
    wrong("{\"flag\":1}", WEIR_EINVAL, "flag", "flag: 1 is not true or false");
    wrong("{\"flag\":\"true\"}", WEIR_EINVAL, "flag", "flag: \"true\" is not true or false");
    wrong("{\"priority\":\"urgent\"}", WEIR_EINVAL, "priority",
          "priority: \"urgent\" is not low, normal, medium, high, critical or a number");
    wrong("{\"state\":\"any\"}", WEIR_EINVAL, "state",
          "state: \"any\" is not inactive, delayed, active, complete, failed or cancelled");
    wrong("{\"states\":[\"failed\",3]}", WEIR_EINVAL, "states[1]",
          "states[1]: 3 is not inactive, delayed, active, complete, failed or cancelled");
    wrong("{\"states\":[]}", WEIR_EINVAL, "states", "states: no state in it");
    wrong("{\"states\":{}}", WEIR_EINVAL, "states", "states: {} is not a list of states");
    wrong("{\"backoff\":7}", WEIR_EINVAL, "backoff",
          "backoff: 7 is not an object, or a text like \"exponential:1s:60s\"");
    wrong("{\"backoff\":{\"type\":\"wild\"}}", WEIR_EINVAL, "backoff.type",
          "backoff.type: \"wild\" is not \"fixed\", \"linear\", \"exponential\" or \"none\"");
    wrong("{\"backoff\":{\"type\":\"fixed\",\"jitter\":101}}", WEIR_EINVAL, "backoff.jitter",
          "backoff.jitter: 101, must be between 0 and 100");
    wrong("{\"backoff\":{\"delay\":5}}", WEIR_EINVAL, "backoff.type", "backoff.type: missing");
}

static void lists_are_bounded(void **state)
{
    (void)state;
    wrong("{\"texts\":\"a\"}", WEIR_EINVAL, "texts", "texts: \"a\" is not a list");
    wrong("{\"texts\":[\"a\",1]}", WEIR_EINVAL, "texts[1]", "texts[1]: 1 is not a text");
    wrong("{\"texts\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"]}", WEIR_ELIMIT, "texts",
          "texts: more than 5 of them");
    wrong("{\"ids\":[]}", WEIR_EINVAL, "ids", "ids: 0 of them, at least 1");
    wrong("{\"parts\":[{\"id\":1},{\"id\":1},{\"id\":1},{\"id\":1}]}", WEIR_ELIMIT, "parts",
          "parts: more than 3 of them");
}

static void memory_may_end(void **state)
{
    const char *json = "{\"text\":\"x\",\"texts\":[\"a\",\"b\"],\"ids\":[1],"
                       "\"parts\":[{\"id\":1}]}";
    for (size_t left = 0;; left++) {
        whole w;
        forget(state);
        blocks_left = left;
        weir_code rc = read_text(json, &w);
        if (!rc)
            break;
        assert_int_equal(rc, WEIR_ENOMEM);
        assert_non_null(strstr(in.err.msg, "out of memory"));
        assert_true(left < 20);
    }
}

/* ---- what to add ---- */

static weir_code read_spec(const char *json, weir_spec *spec)
{
    in = (weir_reader){ .alloc = block };
    assert_int_equal(weir__read_check(&in, json, strlen(json), 200), WEIR_OK);
    return weir__read_spec(&in, (weir_json_piece){ json, strlen(json) }, spec);
}

static void specs_are_read(void **state)
{
    (void)state;
    weir_spec s;
    assert_int_equal(read_spec("{\"type\":\"mail\"}", &s), WEIR_OK);
    assert_true(!strcmp(s.type, "mail") && !s.data && !s.attempts && !s.run_at);
    assert_int_equal(read_spec("{\"type\":\"mail\",\"data\":12345678901234567890,\"priority\":-5,"
                               "\"attempts\":3,\"delay\":\"5s\",\"backoff\":\"fixed:1s\","
                               "\"ttl\":1000,\"deadline\":1800000000000,\"unique\":\"k\","
                               "\"max_lost\":2,\"removeOnComplete\":true,\"search\":true,"
                               "\"search_keys\":\"to\"}", &s), WEIR_OK);
    assert_int_equal(s.data_len, 20);
    assert_memory_equal(s.data, "12345678901234567890", 20);
    assert_true(s.priority == -5 && s.attempts == 3 && s.delay_ms == 5000 && s.ttl_ms == 1000);
    assert_true(s.backoff.kind == WEIR_BACKOFF_FIXED && s.backoff.delay_ms == 1000 &&
                s.max_lost == 2);
    assert_true(s.deadline_at == INT64_C(1800000000000) && s.remove_on_complete && s.search);
    assert_string_equal(s.unique, "k");
    assert_string_equal(s.search_keys, "to");
}

static void spec_is_wrong(const char *json, weir_code code, const char *field, const char *message)
{
    weir_spec s;
    weir_code rc = read_spec(json, &s);
    assert_string_equal(in.err.msg, message);
    assert_string_equal(in.err.field, field);
    assert_int_equal(rc, code);
}

static void specs_are_refused_by_name(void **state)
{
    (void)state;
    char deep[600];
    spec_is_wrong("{}", WEIR_EINVAL, "type", "type: missing");
    spec_is_wrong("{\"type\":\"\"}", WEIR_EINVAL, "type", "type: empty");
    spec_is_wrong("{\"type\":\"*\"}", WEIR_EINVAL, "type",
                  "type: \"*\" stands for all types, a job needs one");
    spec_is_wrong("{\"type\":\"a\",\"attempts\":0}", WEIR_EINVAL, "attempts",
                  "attempts: 0, must be between 1 and 1000000");
    spec_is_wrong("{\"type\":\"a\",\"delay\":1,\"run_at\":2}", WEIR_EINVAL, "run_at",
                  "run_at: there is a delay, too; only one of them can be given");
    spec_is_wrong("{\"type\":\"a\",\"unique\":\"\"}", WEIR_EINVAL, "unique", "unique: empty");
    strcpy(deep, "{\"type\":\"a\",\"data\":");
    for (int i = 0; i <= WEIR_MAX_DEPTH; i++)
        strcat(deep, "[");
    for (int i = 0; i <= WEIR_MAX_DEPTH; i++)
        strcat(deep, "]");
    strcat(deep, "}");
    spec_is_wrong(deep, WEIR_ELIMIT, "data",
                  "data: nested too deeply at byte 100, at most 100 levels (WEIR_MAX_DEPTH)");
}

#define CASE(fn) cmocka_unit_test_teardown(fn, forget)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(members_are_read),
        CASE(states_and_backoff_have_two_forms),
        CASE(pieces_keep_every_byte),
        CASE(lists_are_read),
        CASE(texts_lose_their_escapes),
        CASE(texts_share_memory),
        CASE(what_is_no_json_is_refused),
        CASE(members_are_refused_by_name),
        CASE(a_long_name_is_cut),
        CASE(numbers_are_whole_and_fit),
        CASE(lengths_of_time_are_bounded),
        CASE(texts_are_bounded),
        CASE(lists_are_bounded),
        CASE(memory_may_end),
        CASE(specs_are_read),
        CASE(specs_are_refused_by_name),
    };
    return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
