/* test_kue_events.c - what Kue's messages say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "store/redis/layout/kue/kue_events.h"

static weir_buf strings;

static bool reads(const char *message, weir_event *e)
{
    *e = (weir_event){ 0 };
    return weir__kue_event(message, strlen(message), e, &strings);
}

static weir_event must_read(const char *message)
{
    weir_event e;
    if (!reads(message, &e))
        fail_msg("not read: %s", message);
    return e;
}

static void refused(const char *message)
{
    weir_event e;
    if (reads(message, &e))
        fail_msg("read: %s", message);
}

static int end(void **state)
{
    (void)state;
    weir__buf_fini(&strings);
    return 0;
}

static void every_kind(void **state)
{
    (void)state;
    weir_event e = must_read("{\"id\":5,\"event\":\"enqueue\",\"args\":[\"enqueue\",\"mail\"]}");
    assert_int_equal(e.kind, WEIR_EVENT_ENQUEUE);
    assert_int_equal(e.state, WEIR_STATE_INACTIVE);
    assert_int_equal(e.id, 5);
    assert_string_equal(e.type, "mail");
    assert_null(e.text);
    e = must_read("{\"id\":5,\"event\":\"start\",\"args\":[\"start\",\"mail\",null]}");
    assert_int_equal(e.kind, WEIR_EVENT_START);
    assert_int_equal(e.state, WEIR_STATE_ACTIVE);
    e = must_read("{\"id\":5,\"event\":\"promotion\",\"args\":[\"promotion\"]}");
    assert_int_equal(e.kind, WEIR_EVENT_PROMOTION);
    assert_null(e.type);
    e = must_read("{\"id\":5,\"event\":\"progress\",\"args\":[\"progress\",33,{\"at\":\"x\"}]}");
    assert_int_equal(e.kind, WEIR_EVENT_PROGRESS);
    assert_int_equal(e.progress, 33);
    assert_string_equal(e.text, "{\"at\":\"x\"}");
    assert_int_equal(e.text_len, 10);
    e = must_read("{\"id\":5,\"event\":\"failed attempt\",\"args\":[\"failed attempt\",\"no\",2]}");
    assert_int_equal(e.kind, WEIR_EVENT_FAILED_ATTEMPT);
    assert_int_equal(e.attempts, 2);
    assert_string_equal(e.text, "no");
    e = must_read("{\"id\":5,\"event\":\"failed\",\"args\":[\"failed\",\"no\",null]}");
    assert_int_equal(e.kind, WEIR_EVENT_FAILED);
    assert_int_equal(e.state, WEIR_STATE_FAILED);
    e = must_read("{\"id\":5,\"event\":\"complete\",\"args\":[\"complete\",[1,2],null]}");
    assert_int_equal(e.kind, WEIR_EVENT_COMPLETE);
    assert_int_equal(e.progress, 100);
    assert_string_equal(e.text, "[1,2]");
    e = must_read("{\"id\":5,\"event\":\"complete\",\"args\":[\"complete\",null,null]}");
    assert_null(e.text);
    e = must_read("{\"id\":5,\"event\":\"ttl exceeded\",\"args\":[\"ttl exceeded\"]}");
    assert_int_equal(e.kind, WEIR_EVENT_TTL_EXCEEDED);
    e = must_read("{\"id\":5,\"event\":\"remove\",\"args\":[\"remove\",\"mail\"]}");
    assert_int_equal(e.kind, WEIR_EVENT_REMOVE);
    assert_int_equal(e.state, WEIR_STATE_ANY);
    assert_string_equal(e.type, "mail");
}

static void ids_are_numbers_or_digits(void **state)
{
    (void)state;
    assert_int_equal(must_read("{\"id\":\"77\",\"event\":\"promotion\",\"args\":[]}").id, 77);
    assert_int_equal(must_read("{\"id\":9007199254740991,\"event\":\"promotion\",\"args\":[]}").id,
                     9007199254740991);
    refused("{\"id\":0,\"event\":\"promotion\",\"args\":[]}");
    refused("{\"id\":-1,\"event\":\"promotion\",\"args\":[]}");
    refused("{\"id\":\"7x\",\"event\":\"promotion\",\"args\":[]}");
    refused("{\"id\":\"\",\"event\":\"promotion\",\"args\":[]}");
    refused("{\"id\":\"99999999999999999999\",\"event\":\"promotion\",\"args\":[]}");
    refused("{\"id\":1e300,\"event\":\"promotion\",\"args\":[]}");
    refused("{\"event\":\"promotion\",\"args\":[]}");
}

static void weirs_own_are_left_out(void **state)
{
    (void)state;
    refused("{\"id\":5,\"event\":\"enqueue\",\"args\":[\"enqueue\",\"mail\"],\"weir\":1}");
    refused("{\"weir\":1,\"id\":5,\"event\":\"enqueue\",\"args\":[\"enqueue\",\"mail\"]}");
}

static void nonsense_is_left_out(void **state)
{
    (void)state;
    refused("");
    refused("null");
    refused("[]");
    refused("{\"id\":5,\"event\":\"error\",\"args\":[\"error\",\"x\"]}");
    refused("{\"id\":5,\"event\":\"ttl exceeded ack\",\"args\":[\"ttl exceeded ack\"]}");
    refused("{\"id\":5,\"event\":\"enqueue\",\"args\":[\"enqueue\"]}");
    refused("{\"id\":5,\"event\":\"enqueue\",\"args\":[\"enqueue\",7]}");
    refused("{\"id\":5,\"event\":\"enqueue\",\"args\":[\"enqueue\",\"a\\u0000b\"]}");
    refused("{\"id\":5,\"event\":\"enqueue\",\"args\":{}}");
    refused("{\"id\":5,\"event\":5,\"args\":[]}");
    refused("{\"id\":5,\"event\":\"enqueue\"");
}

static void numbers_are_kept_within_limits(void **state)
{
    (void)state;
    weir_event e = must_read("{\"id\":5,\"event\":\"progress\",\"args\":[\"progress\",1e9,null]}");
    assert_int_equal(e.progress, 100);
    e = must_read("{\"id\":5,\"event\":\"progress\",\"args\":[\"progress\",-3,null]}");
    assert_int_equal(e.progress, 0);
    e = must_read("{\"id\":5,\"event\":\"complete\",\"args\":[\"complete\",10000000000000000000]}");
    assert_string_equal(e.text, "1e19");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),
        cmocka_unit_test(ids_are_numbers_or_digits),
        cmocka_unit_test(weirs_own_are_left_out),
        cmocka_unit_test(nonsense_is_left_out),
        cmocka_unit_test(numbers_are_kept_within_limits),
    };
    return cmocka_run_group_tests_name("kue_events", tests, NULL, end);
}
