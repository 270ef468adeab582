/* test_api_vertx.c - Vert.x Kue's API: every route, pretty-printed byte for byte, its statuses, and
 * what is different on purpose. */
#include "server/kue/kue.h"
#include "support/kue_client.h"

#define CREATED(id) "{\n  \"message\" : \"job created\",\n  \"id\" : " #id "\n}"
#define MESSAGE(text) "{\n  \"message\" : \"" text "\"\n}"

static void start(web *w)
{
    web_start(w, RT_MEM, true, &(srv_options){ .api = SRV_API_VERTX });
}

static void put(web *w, const char *body, const char *want)
{
    ask(w, "PUT", "/job", body, 201, want);
}

static void json_is_printed_as_jackson_does(void **state)
{
    (void)state;
    static const struct {
        const char *json, *pretty, *compact;
    } cases[] = {
        { "{}", "{ }", "{}" },
        { "[]", "[ ]", "[]" },
        { " [ ] ", "[ ]", "[]" },
        { "7", "7", "7" },
        { "\"a b\\\"{\"", "\"a b\\\"{\"", "\"a b\\\"{\"" },
        { "[1,2]", "[ 1, 2 ]", "[1,2]" },
        { "[[],{ },[1]]", "[ [ ], { }, [ 1 ] ]", "[[],{},[1]]" },
        { "{\"a\":1}", "{\n  \"a\" : 1\n}", "{\"a\":1}" },
        { "{\"a\":{\"b\":[{\"c\":null},2],\"d\":\"}\"}}",
          "{\n  \"a\" : {\n    \"b\" : [ {\n      \"c\" : null\n    }, 2 ],\n    \"d\" : \"}\"\n"
          "  }\n}",
          "{\"a\":{\"b\":[{\"c\":null},2],\"d\":\"}\"}}" },
        { "[{\"a\":1},\n\t{\"a\":2}]", "[ {\n  \"a\" : 1\n}, {\n  \"a\" : 2\n} ]",
          "[{\"a\":1},{\"a\":2}]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_buf out = { 0 };
        srv_json_pretty(&out, cases[i].json, strlen(cases[i].json));
        assert_string_equal(out.data, cases[i].pretty);
        weir__buf_clear(&out);
        srv_json_compact(&out, cases[i].json, strlen(cases[i].json));
        assert_string_equal(out.data, cases[i].compact);
        weir__buf_fini(&out);
    }
}

static void a_job_is_shown_as_vertx_kue_shows_it(void **state)
{
    (void)state;
    web w;
    start(&w);
    put(&w, "{\"type\":\"mail\",\"data\":{\"to\":\"ann\"},\"priority\":\"HIGH\",\"delay\":5000,"
            "\"max_attempts\":3,\"ttl\":7000,\"removeOnComplete\":true,"
            "\"backoff\":{\"type\":\"fixed\",\"delay\":100},\"state\":\"INACTIVE\",\"id\":-1,"
            "\"address_id\":\"x\",\"progress\":0,\"created_at\":0}", CREATED(1));
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\n  \"address_id\" : \"x\",\n  \"attempts\" : 0,\n"
        "  \"backoff\" : {\n    \"type\" : \"fixed\",\n    \"delay\" : 100\n  },\n"
        "  \"created_at\" : 1700000000000,\n  \"data\" : {\n    \"to\" : \"ann\"\n  },\n"
        "  \"delay\" : 5000,\n  \"duration\" : 0,\n  \"failed_at\" : 0,\n  \"id\" : 1,\n"
        "  \"max_attempts\" : 3,\n  \"priority\" : \"HIGH\",\n  \"progress\" : 0,\n"
        "  \"promote_at\" : 1700000005000,\n  \"removeOnComplete\" : true,\n"
        "  \"started_at\" : 0,\n  \"state\" : \"DELAYED\",\n  \"ttl\" : 7000,\n"
        "  \"type\" : \"mail\",\n  \"updated_at\" : 1700000000000,\n  \"zid\" : \"01|1\"\n}");
    web_answer a = web_call(&w, "GET", "/job/1", NULL);
    assert_string_equal(web_header(&a, "Content-Type"), "application/json");
    web_free(&a);
    web_stop(&w);
}

static void a_job_that_was_worked_on_has_more(void **state)
{
    (void)state;
    web w;
    start(&w);
    rt *t = &w.t;
    put(&w, "{\"type\":\"a\",\"max_attempts\":2,\"address_id\":\"y\"}", CREATED(1));
    end(&w, take(&w, "a", 1), WEIR_OUTCOME_FAIL, "no");
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\n  \"address_id\" : \"y\",\n  \"attempts\" : 1,\n"
        "  \"created_at\" : 1700000000000,\n  \"data\" : { },\n"
        "  \"delay\" : 0,\n  \"duration\" : 0,\n  \"error\" : \"no\",\n"
        "  \"failed_at\" : 1700000000000,\n  \"id\" : 1,\n  \"max_attempts\" : 2,\n"
        "  \"priority\" : \"NORMAL\",\n...");
    weir_job *job = take(&w, "a", 1);
    rt_later(t, 5);
    end(&w, job, WEIR_OUTCOME_DONE, "{\"ok\":true}");
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\n  \"address_id\" : \"y\",\n  \"attempts\" : 1,\n"
        "  \"created_at\" : 1700000000000,\n  \"data\" : { },\n"
        "  \"delay\" : 0,\n  \"duration\" : 5,\n  \"failed_at\" : 1700000000000,\n  \"id\" : 1,\n"
        "  \"max_attempts\" : 2,\n  \"priority\" : \"NORMAL\",\n  \"progress\" : 100,\n"
        "  \"promote_at\" : 1700000000000,\n  \"removeOnComplete\" : false,\n"
        "  \"result\" : {\n    \"ok\" : true\n  },\n  \"started_at\" : 1700000000000,\n"
        "  \"state\" : \"COMPLETE\",\n...");
    ask(&w, "GET", "/job/1/log", NULL, 200, "[ \"error | no\" ]");
    ask(&w, "GET", "/stats", NULL, 200,
        "{\n  \"workTime\" : 5,\n  \"inactiveCount\" : 0,\n  \"completeCount\" : 1,\n"
        "  \"activeCount\" : 0,\n  \"failedCount\" : 0,\n  \"delayedCount\" : 0\n}");
    web_stop(&w);
}

/* The address as the store has it, and what GET shows; of a job that has none yet a UUID. */
static void a_job_has_an_address(void **state)
{
    (void)state;
    web w;
    start(&w);
    rt *t = &w.t;
    put(&w, "{\"type\":\"a\",\"address_id\":\"5\"}", CREATED(1));
    put(&w, "{\"type\":\"a\"}", CREATED(2));
    put(&w, "{\"type\":\"a\",\"address_id\":null}", CREATED(3));
    ask(&w, "GET", "/job/1", NULL, 200, "{\n  \"address_id\" : \"5\",\n...");
    weir_job   *two = rt_get(t, 2), *three = rt_get(t, 3);
    const char *address = weir_value_text(two, "address_id", "");
    assert_int_equal(strlen(address), 36);
    for (size_t i = 0; i < 36; i++)
        assert_non_null(strchr(i == 8 || i == 13 || i == 18 || i == 23 ? "-" : "0123456789abcdef",
                               address[i]));
    assert_int_equal(address[14], '4');
    assert_non_null(strchr("89ab", address[19]));
    assert_string_not_equal(address, weir_value_text(three, "address_id", ""));
    char want[80];
    snprintf(want, sizeof want, "{\n  \"address_id\" : \"%s\",\n...", address);
    ask(&w, "GET", "/job/2", NULL, 200, want);
    weir_job_free(two);
    weir_job_free(three);
    put(&w, "{\"id\":1,\"address_id\":\"other\"}", CREATED(1));
    ask(&w, "GET", "/job/1", NULL, 200, "{\n  \"address_id\" : \"other\",\n...");
    ask(&w, "PUT", "/job", "{\"type\":\"a\",\"address_id\":7}", 400,
        "{\n  \"error\" : \"address_id: ...");
    rt_add(t, &(weir_spec){ .type = "b" });
    ask(&w, "GET", "/job/4", NULL, 200, "{\n  \"attempts\" : 0,\n...");
    web_stop(&w);
}

static void priorities_have_the_nearest_name(void **state)
{
    (void)state;
    static const struct {
        int32_t     n;
        const char *name;
    } cases[] = {
        { -15, "CRITICAL" }, { INT32_MIN, "CRITICAL" }, { -10, "HIGH" }, { -9, "HIGH" },
        { -5, "MEDIUM" },    { 0, "NORMAL" },           { 1, "NORMAL" }, { 10, "LOW" },
        { INT32_MAX, "LOW" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(srv_vertx_priority(cases[i].n), cases[i].name);
}

static void what_is_wrong_is_said_so(void **state)
{
    (void)state;
    web w;
    start(&w);
    static const struct {
        const char *method, *target, *body;
        int         status;
        const char *want;
    } cases[] = {
        { "GET", "/job/abc", NULL, 400, "{\n  \"error\" : \"\\\"abc\\\" is not a number\"\n}" },
        { "GET", "/job/7", NULL, 404, "" },
        { "GET", "/job/-7", NULL, 404, "" },
        { "GET", "/job/7/log", NULL, 200, "[ ]" },
        { "GET", "/job/x/log", NULL, 400, "{\n  \"error\" : ..." },
        { "DELETE", "/job/7", NULL, 204, "" },
        { "DELETE", "/job/x", NULL, 400, "{\n  \"error\" : ..." },
        { "PUT", "/job/7/state/inactive", NULL, 404, MESSAGE("job_not_found") },
        { "PUT", "/job/x/state/inactive", NULL, 400, "{\n  \"error\" : ..." },
        { "POST", "/inactive/7", NULL, 404, "" },
        { "POST", "/inactive/x", NULL, 400, "{\n  \"error\" : ..." },
        { "GET", "/job/search/word", NULL, 501, MESSAGE("not_implemented") },
        { "GET", "/job/types", NULL, 200, "[ ]" },
        { "GET", "/jobs/a/bogus/stats", NULL, 400, "{\n  \"error\" : \"unknown state ..." },
        { "GET", "/jobs/a/failed/stats", NULL, 200, "{\n  \"count\" : 0\n}" },
        { "GET", "/jobs/0/to/9", NULL, 200, "[ ]" },
        { "GET", "/jobs/0/to/x", NULL, 400, "{\n  \"error\" : ..." },
        { "GET", "/jobs/9/to/0", NULL, 503,
          "{\n  \"error\" : \"to can not be greater than from\"\n}" },
        { "GET", "/jobs/0/to/9/up", NULL, 400, "{\n  \"error\" : \"order: ..." },
        { "GET", "/jobs/bogus/0/to/9/asc", NULL, 200, "[ ]" },
        { "GET", "/jobs/bogus/0/to/9", NULL, 200, "[ ]" },
        { "GET", "/jobs/inactive/9/to/0", NULL, 503,
          "{\n  \"error\" : \"to can not be greater than from\"\n}" },
        { "PUT", "/job", "{", 400, "{\n  \"error\" : \"not JSON ..." },
        { "PUT", "/job", "[]", 400, "{\n  \"error\" : ..." },
        { "PUT", "/job", "{\"data\":{}}", 400,
          "{\n  \"error\" : \"Job type cannot be null\"\n}" },
        { "PUT", "/job", "{\"type\":\"a\",\"data\":\"x\"}", 400, "{\n  \"error\" : \"data: ..." },
        { "PUT", "/job", "{\"type\":\"a\",\"priority\":\"SOON\"}", 400,
          "{\n  \"error\" : \"priority: ..." },
        { "PUT", "/job", "{\"type\":\"a\",\"priority\":5}", 400,
          "{\n  \"error\" : \"priority: ..." },
        { "PUT", "/job", "{\"type\":\"a\",\"backoff\":\"exit()\"}", 400,
          "{\n  \"error\" : \"backoff: ..." },
        { "PUT", "/job", "{\"id\":7,\"data\":{}}", 404, MESSAGE("job_not_found") },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ask(&w, cases[i].method, cases[i].target, cases[i].body, cases[i].status, cases[i].want);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
    web_stop(&w);
}

static void lists(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        int         n, first;
    } cases[] = {
        { "/jobs/0/to/9", 3, 1 },
        { "/jobs/0/to/9/asc", 3, 1 },
        { "/jobs/0/to/9/desc", 3, 3 },
        { "/jobs/0/to/0", 1, 2 },               /* the most urgent has rank 0 */
        { "/jobs/-1/to/-1/asc", 1, 3 },
        { "/jobs/inactive/0/to/9/desc", 3, 3 },
        { "/jobs/INACTIVE/1/to/2/asc", 2, 1 },
        { "/jobs/inactive/0/to/2", 3, 1 },      /* without an order: ascending */
        { "/jobs/a/INACTIVE/0/to/9", 2, 1 },
        { "/jobs/a/FAILED/0/to/9", 0, 0 },
        { "/jobs/a/INACTIVE/0/to/9/asc", 2, 1 },
        { "/jobs/a/inactive/0/to/9/desc", 2, 3 },
        { "/jobs/b/failed/0/to/9/desc", 0, 0 },
    };
    web w;
    start(&w);
    put(&w, "{\"type\":\"a\"}", CREATED(1));
    put(&w, "{\"type\":\"b\",\"priority\":\"CRITICAL\"}", CREATED(2));
    put(&w, "{\"type\":\"a\",\"priority\":\"LOW\",\"data\":null}", CREATED(3));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *jobs = web_json(&w, 200, "GET", cases[i].target, NULL);
        json_t *id = json_object_get(json_array_get(jobs, 0), "id");
        if ((int)json_array_size(jobs) != cases[i].n || json_integer_value(id) != cases[i].first)
            fail_msg("%s: %zu, first %d", cases[i].target, json_array_size(jobs),
                     (int)json_integer_value(id));
        json_decref(jobs);
    }
    ask(&w, "GET", "/job/types", NULL, 200, "[ \"a\", \"b\" ]");
    ask(&w, "GET", "/jobs/a/InActive/stats", NULL, 200, "{\n  \"count\" : 2\n}");
    web_stop(&w);
}

static void states_change_as_the_life_cycle_has_it(void **state)
{
    (void)state;
    web w;
    start(&w);
    rt *t = &w.t;
    put(&w, "{\"type\":\"a\",\"delay\":60000,\"address_id\":\"x\"}", CREATED(1));
    ask(&w, "PUT", "/job/1/state/INACTIVE", NULL, 200, MESSAGE("job_state_updated"));
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/COMPLETE", NULL, 200, MESSAGE("job_state_updated"));
    ask(&w, "GET", "/job/1", NULL, 200, "{\n  \"address_id\" : \"x\",\n  \"attempts\" : 0,\n...");
    ask(&w, "PUT", "/job/1/state/FAILED", NULL, 200, MESSAGE("job_state_updated"));
    assert_int_equal(rt_state(t, 1), WEIR_STATE_FAILED);
    ask(&w, "PUT", "/job/1/state/ACTIVE", NULL, 200, MESSAGE("job_state_updated"));
    assert_int_equal(rt_state(t, 1), WEIR_STATE_ACTIVE);
    /* who set it active may end it */
    ask(&w, "PUT", "/job/1/state/FAILED", NULL, 200, MESSAGE("job_state_updated"));
    assert_int_equal(rt_state(t, 1), WEIR_STATE_FAILED);
    ask(&w, "PUT", "/job/1/state/ACTIVE", NULL, 200, MESSAGE("job_state_updated"));
    rt_later(t, WEIR_DEFAULT_LEASE_MS + 1);
    rt_until(t, 1, WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/bogus", NULL, 400, "{\n  \"error\" : \"unknown state ...");
    weir_job *job = take(&w, "a", 1);
    ask(&w, "POST", "/inactive/1", NULL, 409, "{\n  \"error\" : \"job 1 is active: ...");
    end(&w, job, WEIR_OUTCOME_FAIL, "no");
    ask(&w, "POST", "/inactive/1", "{}", 200, MESSAGE("job 1 restart"));
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);
    ask(&w, "POST", "/inactive/1", NULL, 200, MESSAGE("job 1 restart"));
    ask(&w, "PUT", "/job/1/state/cancelled", NULL, 200, MESSAGE("job_state_updated"));
    ask(&w, "DELETE", "/job/1", NULL, 204, "");
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), 0);
    web_stop(&w);
}

static void a_body_with_an_id_changes_that_job(void **state)
{
    (void)state;
    web w;
    start(&w);
    rt *t = &w.t;
    rt_add(t, &(weir_spec){ .type = "a", .data = "{ \"n\": 1 }", .priority = -9, .attempts = 3,
                            .ttl_ms = 7, .backoff = { WEIR_BACKOFF_FIXED, 5, 0, 0 } });
    /* what was read, sent back as it was, changes nothing */
    web_answer read = web_call(&w, "GET", "/job/1", NULL);
    put(&w, read.body, CREATED(1));
    weir_job *j = rt_get(t, 1);
    assert_int_equal(j->priority, -9);
    assert_string_equal(j->data, "{ \"n\": 1 }");
    assert_int_equal(j->updated_at, j->created_at);
    weir_job_free(j);
    weir_job *job = take(&w, "a", 1);
    put(&w, "{\"id\":1,\"type\":\"a\"}", CREATED(1));
    ask(&w, "PUT", "/job", "{\"id\":1,\"priority\":\"LOW\"}", 409, "{\n  \"error\" : ...");
    end(&w, job, WEIR_OUTCOME_RETURN, NULL);
    web_free(&read);

    put(&w, "{\"id\":1,\"priority\":\"LOW\",\"data\":{\"n\":2},\"delay\":1000,"
            "\"state\":\"DELAYED\"}", CREATED(1));
    j = rt_get(t, 1);
    assert_int_equal(j->priority, WEIR_PRIORITY_LOW);
    assert_string_equal(j->data, "{\"n\":2}");
    assert_int_equal(j->state, WEIR_STATE_DELAYED);
    assert_int_equal(j->promote_at, j->created_at + 1000);
    weir_job_free(j);
    put(&w, "{\"id\":1,\"state\":\"INACTIVE\"}", CREATED(1));
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);

    static const char *const fixed[] = {
        "{\"id\":1,\"type\":\"b\"}",      "{\"id\":1,\"max_attempts\":4}",
        "{\"id\":1,\"ttl\":8}",           "{\"id\":1,\"removeOnComplete\":true}",
        "{\"id\":1,\"backoff\":{\"type\":\"exponential\",\"delay\":5}}",
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        ask(&w, "PUT", "/job", fixed[i], 409, "{\n  \"error\" : ...");
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), 1);
    web_stop(&w);
}

static void a_backoff_without_a_type_is_fixed(void **state)
{
    (void)state;
    web w;
    start(&w);
    static const struct {
        const char *type, *more;
        int64_t     delay_ms;               /* until the second attempt */
    } cases[] = {
        { "a", "\"backoff\":{\"delay\":300}", 300 },
        { "b", "\"delay\":200,\"backoff\":{\"type\":\"fixed\"}", 200 },
        { "c", "\"delay\":200,\"backoff\":{}", 200 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"type\":\"%s\",\"max_attempts\":2,%s}", cases[i].type,
                 cases[i].more);
        web_answer a = web_call(&w, "PUT", "/job", body);
        assert_int_equal(a.status, 201);
        web_free(&a);
        rt_later(&w.t, 1000);
        rt_until(&w.t, i + 1, WEIR_STATE_INACTIVE);
        weir_job *job = take(&w, cases[i].type, i + 1);
        end(&w, job, WEIR_OUTCOME_FAIL, "no");
        weir_job *j = rt_get(&w.t, i + 1);
        assert_int_equal(j->state, WEIR_STATE_DELAYED);
        assert_int_equal(j->promote_at - j->failed_at, cases[i].delay_ms);
        weir_job_free(j);
    }
    web_stop(&w);
}

/* What only one of them has is there with both; where both have something, --api decides. */
static void both_apis_are_there(void **state)
{
    (void)state;
    web w;
    start(&w);
    ask(&w, "POST", "/job", "{\"type\":\"a\"}", 200, "{\"message\":\"job created\",\"id\":1}");
    ask(&w, "GET", "/jobs/0..9", NULL, 200, "[{\"id\":1,\"type\":\"a\",...");
    ask(&w, "PUT", "/job/1/priority/5", NULL, 200, "{\"message\":\"updated priority\"}");
    ask(&w, "GET", "/job/search?q=x", NULL, 200, "[]");
    ask(&w, "GET", "/job/7", NULL, 404, "");
    web_stop(&w);

    web_start(&w, RT_MEM, true, NULL);
    put(&w, "{\"type\":\"a\"}", CREATED(1));
    ask(&w, "GET", "/jobs/0/to/9", NULL, 200, "[ {\n  \"address_id\" : \"...");
    ask(&w, "GET", "/jobs/inactive/0/to/9/asc", NULL, 200, "[ {\n  \"address_id\" : \"...");
    ask(&w, "GET", "/jobs/a/inactive/0/to/9/desc", NULL, 200, "[ {\n  \"address_id\" : \"...");
    ask(&w, "POST", "/inactive/1", NULL, 200, MESSAGE("job 1 restart"));
    ask(&w, "GET", "/job/search/x", NULL, 501, MESSAGE("not_implemented"));
    ask(&w, "GET", "/job/7", NULL, 200, "{\"error\":\"job \\\"7\\\" doesnt exist\"}");
    ask(&w, "DELETE", "/job/1", NULL, 200, "{\"message\":\"job 1 removed\"}");
    web_stop(&w);
}

static void who_may_add_may_not_change(void **state)
{
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], maker[128];
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    token_header(maker, file, "maker", "produce", "");
    web_start(&w, RT_MEM, true, &(srv_options){ .tokens_file = file, .api = SRV_API_VERTX });
    ask_with(&w, maker, "PUT", "/job", "{\"type\":\"a\"}", 201, CREATED(1));
    ask_with(&w, maker, "PUT", "/job", "{\"id\":1,\"data\":{}}", 403, "{\n  \"error\" : ...");
    ask_with(&w, maker, "GET", "/job/1", NULL, 200, "{\n  \"address_id\" : \"...");
    ask_with(&w, maker, "POST", "/inactive/1", NULL, 403, "{\"error\":...");
    web_stop(&w);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_printed_as_jackson_does),
        cmocka_unit_test(a_job_is_shown_as_vertx_kue_shows_it),
        cmocka_unit_test(a_job_that_was_worked_on_has_more),
        cmocka_unit_test(a_job_has_an_address),
        cmocka_unit_test(priorities_have_the_nearest_name),
        cmocka_unit_test(what_is_wrong_is_said_so),
        cmocka_unit_test(lists),
        cmocka_unit_test(states_change_as_the_life_cycle_has_it),
        cmocka_unit_test(a_body_with_an_id_changes_that_job),
        cmocka_unit_test(a_backoff_without_a_type_is_fixed),
        cmocka_unit_test(both_apis_are_there),
        cmocka_unit_test(who_may_add_may_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
