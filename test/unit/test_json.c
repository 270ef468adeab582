/* test_json.c - checking JSON: by the RFC, and in agreement with jansson; writing strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/json.h"

enum { DEPTH = 100 };

static bool valid(const char *text, size_t len)
{
    /* Just these bytes, so that the sanitizer sees a read beyond them. */
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    size_t      where = 0;
    const char *why = NULL;
    bool        ok = weir__json_valid(copy, len, DEPTH, &where, &why);
    assert_true(where <= len);
    assert_true(ok == !*why);
    free(copy);
    return ok;
}

static bool jansson_takes(const char *text, size_t len)
{
    json_error_t err;
    json_t      *v = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
    json_decref(v);
    return v != NULL;
}

#define T(text) { text, sizeof(text) - 1 }
typedef struct text {
    const char *s;
    size_t      len;
} text;

static const text accepted[] = {
    T("{}"), T("[]"), T("0"), T("-0"), T("-1"), T("10"), T("1.5"), T("1e5"), T("1E+5"), T("1e-05"),
    T("0.0"), T("0e0"), T("-0.1e-1"), T("123456789012345678"), T("true"), T("false"), T("null"),
    T("\"\""), T("\"a\""), T(" \t\r\n1 \t\r\n"), T("[1,2,3]"), T("[[],{},[{}]]"), T("{\"a\":1}"),
    T("{\"a\":1,\"a\":2}"), T("{\"\":0}"), T(" { \"a\" : [ 1 , 2 ] , \"b\" : null } "),
    T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), T("\"\\u0041\\u00e9\\u20AC\""), T("\"\\ud83d\\ude00\""),
    T("\"\\u0000\""), T("\"\x7f\""), T("\"\xc3\xa9\""), T("\"\xe2\x82\xac\""),
    T("\"\xf0\x9f\x98\x80\""), T("\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\""),
    T("\"0123456789 0123456789 0123456789\""), T("[\"\xef\xbf\xbf\"]"), T("\"\xef\xbb\xbf\""),
};

static const text rejected[] = {
    T(""), T(" "), T("{"), T("}"), T("["), T("]"), T("[1,]"), T("[,1]"), T("[1 2]"), T("{\"a\"}"),
    T("{\"a\":}"), T("{\"a\":1,}"), T("{,}"), T("{a:1}"), T("{'a':1}"), T("{1:1}"), T("[1}"),
    T("{\"a\":1]"), T("{} {}"), T("1 2"), T("nul"), T("nulll"), T("True"), T("tru"), T("NaN"),
    T("Infinity"), T("-"), T("+1"), T("01"), T("-01"), T("1."), T(".5"), T("1e"), T("1e+"),
    T("0x10"),
    T("1.e5"), T("--1"), T("1a"), T("\""), T("\"a"), T("\"\\\""), T("\"\\x\""), T("\"\\u12\""),
    T("\"\\u12g4\""), T("\"\\u"), T("\"\\ud83d\""), T("\"\\ude00\""), T("\"\\ud83d\\u0041\""),
    T("\"\\ud83dx\""), T("\"\\ud83d\\"), T("\"\\ud83d\\ud83d\""), T("\"a\nb\""), T("\"\t\""),
    T("\"\0\""), T("\0"), T("1\0"), T("{\"a\":1}\0"), T("\"\x80\""), T("\"\xc3\""), T("\"\xc3"),
    T("\"\xc0\x80\""), T("\"\xc1\xbf\""), T("\"\xe0\x9f\xbf\""), T("\"\xed\xa0\x80\""),
    T("\"\xf0\x8f\xbf\xbf\""), T("\"\xf4\x90\x80\x80\""), T("\"\xf5\x80\x80\x80\""),
    T("\"\xe2\x82\""), T("\"\xf0\x9f\x98\""), T("\"\xfe\""), T("\xef\xbb\xbf{}"), T("// c\n1"),
    T("/* c */1"), T("[1,/**/2]"), T("\xc2\xa0" "1"), T("\x0b" "1"), T("{\"a\" 1}"), T("[\"a\"b]"),
};

static void texts_are_judged_as_the_rfc_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        if (!valid(accepted[i].s, accepted[i].len))
            fail_msg("refused: %s", accepted[i].s);
        if (!jansson_takes(accepted[i].s, accepted[i].len))
            fail_msg("jansson refuses: %s", accepted[i].s);
    }
    for (size_t i = 0; i < sizeof rejected / sizeof *rejected; i++) {
        if (valid(rejected[i].s, rejected[i].len))
            fail_msg("accepted: %s", rejected[i].s);
        /* A NUL ends the text for jansson, as if nothing came behind it. */
        if (!memchr(rejected[i].s, 0, rejected[i].len) &&
            jansson_takes(rejected[i].s, rejected[i].len))
            fail_msg("jansson accepts: %s", rejected[i].s);
    }
}

/* The RFC sets no bounds for numbers; jansson does. */
static void numbers_have_no_bounds(void **state)
{
    (void)state;
    assert_true(valid("1e999", 5));
    assert_true(valid("123456789012345678901234567890", 30));
}

/* Every prefix of a valid text is invalid (numbers aside), wherever the eight-byte steps fall. */
static void prefixes_are_refused(void **state)
{
    (void)state;
    static const char t[] = "{\"to\":\"ann@example.org\",\"n\":[1,-2.5e3,true,{\"\\u20ac\":\""
                            "\xe2\x82\xac uro, and more text behind it\"}],\"z\":null}";
    for (size_t len = 0; len < sizeof t - 1; len++)
        assert_false(valid(t, len));
    assert_true(valid(t, sizeof t - 1));
}

/* One odd byte at each place of strings of each length. */
static void odd_bytes_are_found_anywhere(void **state)
{
    (void)state;
    for (size_t len = 1; len < 40; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                char t[64];
                memset(t, 'x', sizeof t);
                t[0] = t[len + 1] = '"';
                t[at + 1] = (char)c;
                bool want = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
                if (weir__json_valid(t, len + 2, 1, NULL, NULL) != want)
                    fail_msg("byte 0x%02x at %zu of %zu", c, at, len);
            }
        }
    }
}

static void errors_say_where_and_why(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t      where;
        const char *why;
    } cases[] = {
        { "", 0, "the text ends too early" },
        { "{\"a\":1", 6, "the text ends too early" },
        { "{\"a\" 1}", 5, "':' expected" },
        { "{\"a\":1 \"b\"}", 7, "',' or '}' expected" },
        { "[1 2]", 3, "',' or ']' expected" },
        { "[1,]", 3, "value expected" },
        { "{\"a\":1,}", 7, "name in quotes expected" },
        { "{} x", 3, "more text behind the value" },
        { "[01]", 1, "number with a leading zero" },
        { "[-x]", 2, "digit expected" },
        { "\"a\\qb\"", 3, "unknown escape" },
        { "\"a\\u12x4\"", 6, "four hexadecimal digits expected" },
        { "\"a\\udc00\"", 2, "half a surrogate pair" },
        { "\"a\nb\"", 2, "control character in a string" },
        { "\"a\xff\"", 2, "invalid UTF-8" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t      where;
        const char *why;
        assert_false(weir__json_valid(cases[i].text, strlen(cases[i].text), DEPTH, &where, &why));
        assert_string_equal(why, cases[i].why);
        assert_int_equal(where, cases[i].where);
    }
}

static bool nested(int levels, int depth, const char **why)
{
    char  *t = malloc((size_t)levels * 6 + 8);
    size_t n = 0;
    assert_non_null(t);
    for (int i = 0; i < levels; i++) {
        memcpy(t + n, i % 2 ? "{\"a\":" : "[", i % 2 ? 5 : 1);
        n += i % 2 ? 5 : 1;
    }
    t[n++] = '1';
    for (int i = levels; i-- > 0;)
        t[n++] = i % 2 ? '}' : ']';
    size_t where;
    bool   ok = weir__json_valid(t, n, depth, &where, why);
    free(t);
    return ok;
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    const char *why;
    assert_true(nested(0, 0, &why));
    for (int depth = 1; depth <= 130; depth++) {
        assert_true(nested(depth, depth, &why));
        assert_false(nested(depth + 1, depth, &why));
        assert_ptr_equal(why, weir__json_too_deep);
    }
    assert_true(nested(1024, 5000, &why));
    assert_false(nested(1025, 5000, &why));
}

static void utf8_without_nul(void **state)
{
    (void)state;
    assert_true(weir__utf8_valid("", 0));
    assert_true(weir__utf8_valid("a\n\xc3\xa9\xf0\x9f\x98\x80", 8));
    assert_false(weir__utf8_valid("a\0b", 3));
    assert_false(weir__utf8_valid("\xc3", 1));
    assert_false(weir__utf8_valid("\xed\xa0\x80", 3));
    assert_false(weir__utf8_valid("abc\x80", 4));
}

static void strings_are_escaped(void **state)
{
    (void)state;
    static const struct {
        text        in;
        const char *out;
    } cases[] = {
        { T(""), "\"\"" },
        { T("plain, and long enough for more than one step"),
          "\"plain, and long enough for more than one step\"" },
        { T("\"\\/"), "\"\\\"\\\\/\"" },
        { T("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"" },
        { T("\x01\x1f\x7f"), "\"\\u0001\\u001f\x7f\"" },
        { T("a\0b"), "\"a\\u0000b\"" },
        { T("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
        { T("x\xff" "y\xc3"), "\"x\xef\xbf\xbdy\xef\xbf\xbd\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_buf b = { 0 };
        weir__json_string(&b, cases[i].in.s, cases[i].in.len);
        assert_string_equal(b.data, cases[i].out);
        weir__buf_fini(&b);
    }
}

/* What is written is valid, and what jansson reads from it is what went in. */
static void written_strings_can_be_read(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char in[12];
        memset(in, 'x', sizeof in);
        in[5] = (char)c;
        weir_buf b = { 0 };
        weir__json_string(&b, in, sizeof in);
        assert_true(valid(b.data, b.len));
        json_t *v = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(v);
        if (c < 0x80) {
            assert_int_equal(json_string_length(v), sizeof in);
            assert_memory_equal(json_string_value(v), in, sizeof in);
        } else {
            assert_int_equal(json_string_length(v), sizeof in + 2);
        }
        json_decref(v);
        weir__buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_judged_as_the_rfc_says),
        cmocka_unit_test(numbers_have_no_bounds),
        cmocka_unit_test(prefixes_are_refused),
        cmocka_unit_test(odd_bytes_are_found_anywhere),
        cmocka_unit_test(errors_say_where_and_why),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(utf8_without_nul),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(written_strings_can_be_read),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
