/* test_properties.c - delayqueue.properties: the grammar of Java, and the URLs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "task/properties.h"

static weir_task_properties parse(const char *text)
{
    weir_task_properties p;
    weir_error           err;
    if (weir__properties_parse(&p, text, strlen(text), &err))
        fail_msg("%s", err.msg);
    return p;
}

static void it_is_read_as_java_does(void **state)
{
    (void)state;
    static const struct { const char *text, *key; } table[] = {
        { "", "" }, { "QueueKey=a", "a" }, { "  QueueKey : a  ", "a" }, { "QueueKey a", "a" },
        { "QueueKey=a=b", "a=b" }, { "#QueueKey=a", "" }, { "! x\\\nQueueKey=a", "a" },
        { "QueueKey=a\\\r\n  b", "ab" }, { "Queue\\u004bey=\\u0061", "a" },
        { "QueueKey=a\nQueueKey=b", "b" }, { "Other=x\r\rQueueKey=a\r", "a" },
        { "QueueKey=\\:a\\qb", ":aqb" }, { "x=1\\\nQueueKey=a", "" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_string_equal(parse(table[i].text).queue_key, table[i].key);
    weir_task_properties p = parse("QueueKey=k\nTaskTableName = t_1\nDailyQueueKey=TRUE\n");
    assert_string_equal(p.table, "t_1");
    assert_true(p.daily_keys);
    assert_false(parse("DailyQueueKey=yes").daily_keys);
}

static void what_is_wrong_has_its_line(void **state)
{
    (void)state;
    static const char *const wrong[] = { "\nQueueKey=a b", "#\nQueueKey=", "\nTaskTableName=a-b",
                                         "x\nTaskTableName=1a" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_task_properties p;
        weir_error           err;
        weir_code rc = weir__properties_parse(&p, wrong[i], strlen(wrong[i]), &err);
        assert_int_equal(rc, WEIR_EINVAL);
        assert_non_null(strstr(err.msg, "properties, line 2, "));
    }
}

static void urls(void **state)
{
    (void)state;
    weir_task_properties p = { .queue_key = "k", .table = "t" }, none = { 0 };
    static const struct { const char *url, *queue, *table; } rows[] = {
        { "redis://h", "redis://h?prefix=k", "redis://h?table=t" },
        { "redis://h?timeout=1s", "redis://h?timeout=1s&prefix=k", "redis://h?timeout=1s&table=t" },
        { "redis://h?prefix=a", "redis://h?prefix=a", "redis://h?prefix=a&table=t" },
        { "sqlite:a.db?table=x", "sqlite:a.db?table=x", "sqlite:a.db?table=x" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *queue, *table, *same;
        assert_int_equal(weir_task_properties_queue(&p, rows[i].url, &queue, NULL), WEIR_OK);
        assert_int_equal(weir_task_properties_table(&p, rows[i].url, &table, NULL), WEIR_OK);
        assert_int_equal(weir_task_properties_queue(&none, rows[i].url, &same, NULL), WEIR_OK);
        assert_string_equal(queue, rows[i].queue);
        assert_string_equal(table, rows[i].table);
        assert_string_equal(same, rows[i].url);
        free(queue);
        free(table);
        free(same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_read_as_java_does), cmocka_unit_test(what_is_wrong_has_its_line),
        cmocka_unit_test(urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
