/* test_search.c - the text of a job that is searched, words, and queries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/search.h"

static void text_of_data(void **state)
{
    (void)state;
    static const struct {
        const char *data, *keys, *text;
    } cases[] = {
        { "{}", NULL, "" },
        { "\"a b\"", NULL, "a b" },
        { "[1,-2,1.5,true,false,null,\"x\"]", NULL, "1 -2 1.5 true false x" },
        { "0.1", NULL, "0.1" },
        { "{\"to\":\"ann\"}", NULL, "to ann" },
        { "{\"o\":{\"p\":[\"q\",{\"r\":7}]}}", NULL, "o p q r 7" },
        { "\"\\u20ac \\u0000x\"", NULL, "\xe2\x82\xac  x" },
        { "{\"to\":\"ann\",\"b\":1}", "to", "ann" },
        { "{\"to\":\"ann\",\"b\":1}", "b,to", "1 ann" },
        { "{\"to\":\"ann\",\"b\":1}", " , b  to ,", "1 ann" },
        { "{\"to\":\"ann\"}", "cc", "" },
        { "{\"customer\":{\"name\":\"bob\",\"id\":3}}", "customer.name", "bob" },
        { "{\"customer\":{\"name\":\"bob\",\"id\":3}}", "customer", "bob 3" },
        { "{\"c\":[{\"n\":\"x\"},{\"n\":\"y\"},5]}", "c.n", "x y" },
        { "{\"a.b\":\"dotted\",\"a\":{\"b\":\"nested\"}}", "a.b", "dotted" },
        { "{\"a\":\"x\"}", "a.b.c", "" },
        { "{\"a\":\"x\"}", "..", "" },
        { "\"scalar\"", "a", "" },
        { "{\"a\":1e999,\"b\":\"x\"}", NULL, "{\"a\":1e999,\"b\":\"x\"}" },
        { "{\"a\":1e999,\"b\":\"x\"}", "b", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_buf b = { 0 };
        weir__buf_str(&b, "");
        assert_true(weir__search_text(&b, cases[i].data, strlen(cases[i].data), cases[i].keys));
        assert_int_equal(b.len, strlen(b.data));
        assert_string_equal(b.data, cases[i].text);
        weir__buf_fini(&b);
    }
}

static void texts_are_put_behind_each_other(void **state)
{
    (void)state;
    weir_buf b = { 0 };
    weir__buf_str(&b, "error");
    assert_true(weir__search_text(&b, "[\"a\"]", 5, NULL));
    assert_string_equal(b.data, "error a");
    weir__buf_fini(&b);
}

static void words(void **state)
{
    (void)state;
    static const char t[] = "  ann@example.org, x2 \xc3\xa9t\xc3\xa9!";
    static const char *const want[] = { "ann", "example", "org", "x2", "\xc3\xa9t\xc3\xa9" };
    size_t pos = 0, word, len, n = 0;
    while (weir__search_word(t, sizeof t - 1, &pos, &word, &len)) {
        assert_true(n < sizeof want / sizeof *want);
        assert_int_equal(len, strlen(want[n]));
        assert_memory_equal(t + word, want[n], len);
        n++;
    }
    assert_int_equal(n, sizeof want / sizeof *want);
    assert_int_equal(pos, sizeof t - 1);
}

static void queries(void **state)
{
    (void)state;
    static const char text[] = "to Ann@Example.org subject Gr\xc3\xbc\xc3\x9f" "e 42";
    static const struct {
        const char *query;
        bool        found;
    } cases[] = {
        { "ann", true },          { "ANN", true },        { "an", false },
        { "an*", true },          { "a* e* 4*", true },   { "ann example", true },
        { "ann nobody", false },  { "ann@example.org", true }, { "42", true },
        { "4", false },           { "", false },          { "  , !", false },
        { "*", false },           { "nn*", false },       { "gr\xc3\xbc*", true },
        { "exampleorg", false },  { "ann *", true },      { "example*", true },
        { "examples*", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (weir__search_match(cases[i].query, text, sizeof text - 1) != cases[i].found)
            fail_msg("\"%s\"", cases[i].query);
    }
    assert_false(weir__search_match("a", "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_data),
        cmocka_unit_test(texts_are_put_behind_each_other),
        cmocka_unit_test(words),
        cmocka_unit_test(queries),
    };
    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
