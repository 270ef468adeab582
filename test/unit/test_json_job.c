/* test_json_job.c - jobs as JSON and as copies; what is given to callers, made and released. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "core/job.h"
#include "core/results.h"

static const weir_job full = {
    .id = 12, .type = "mail \"x\"", .state = WEIR_STATE_COMPLETE, .priority = -10,
    .data = "{\"a\":\n[1,\r\n2]}", .data_len = 14, .result = "{\"b\":true}", .result_len = 10,
    .error = "smtp:\n\xff", .progress_data = "7", .progress_data_len = 1, .unique = "k",
    .worker = "h:1:2", .search_keys = "to",
    .backoff = { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000, .max_ms = 60000, .jitter_pct = 20 },
    .attempts = 2, .max_attempts = 3, .delivery = 4, .lost = 1, .max_lost = 3, .progress = 100,
    .delay_ms = 5, .ttl_ms = 6, .deadline_at = 7, .created_at = 8, .promote_at = 9,
    .updated_at = 10, .started_at = 11, .failed_at = 12, .finished_at = 13, .duration_ms = 14,
    .lease_until = 15,
    .remove_on_complete = true, .search = true, .history = "[{\"n\":1}]", .history_len = 9,
    .values = "{\"a\":\n1}", .values_len = 8,
};

static void all_members_by_their_kue_names(void **state)
{
    (void)state;
    size_t len;
    char  *json = weir_job_json(&full, &len);
    assert_non_null(json);
    assert_int_equal(len, strlen(json));
    assert_string_equal(json,
        "{\"id\":12,\"type\":\"mail \\\"x\\\"\",\"data\":{\"a\": [1,  2]},"
        "\"values\":{\"a\": 1},\"priority\":-10,"
        "\"state\":\"complete\",\"delay\":5,\"max_attempts\":3,\"attempts\":2,\"progress\":100,"
        "\"progress_data\":7,\"result\":{\"b\":true},\"error\":\"smtp:\\n\xef\xbf\xbd\","
        "\"created_at\":8,\"promote_at\":9,\"updated_at\":10,\"failed_at\":12,\"started_at\":11,"
        "\"finished_at\":13,\"lease_until\":15,\"duration\":14,\"ttl\":6,\"deadline\":7,"
        "\"unique\":\"k\",\"removeOnComplete\":true,\"backoff\":{\"type\":\"exponential\","
        "\"delay\":1000,\"maxDelay\":60000,\"jitter\":20},\"workerId\":\"h:1:2\","
        "\"delivery\":4,\"lost\":1,\"search\":true,\"search_keys\":\"to\","
        "\"history\":[{\"n\":1}]}");
    free(json);
}

static void what_is_not_there_is_left_out(void **state)
{
    (void)state;
    weir_job j;
    weir__job_init(&j, &(weir_spec){ .type = "m" }, 1, 50);
    char *json = weir_job_json(&j, NULL);
    assert_string_equal(json,
        "{\"id\":1,\"type\":\"m\",\"data\":{},\"priority\":0,\"state\":\"inactive\",\"delay\":0,"
        "\"max_attempts\":1,\"attempts\":0,\"progress\":0,\"created_at\":50,\"promote_at\":50,"
        "\"updated_at\":50}");
    free(json);
    j.backoff = (weir_backoff){ .kind = WEIR_BACKOFF_FIXED };
    j.id = UINT64_MAX;
    json = weir_job_json(&j, NULL);
    assert_non_null(strstr(json, "\"backoff\":{\"type\":\"fixed\",\"delay\":0}"));
    assert_non_null(strstr(json, "{\"id\":18446744073709551615,"));
    free(json);
    j.backoff = (weir_backoff){ WEIR_BACKOFF_LINEAR, 2000, 9000, 0 };
    json = weir_job_json(&j, NULL);
    assert_non_null(strstr(json, "\"backoff\":{\"type\":\"linear\",\"delay\":2000,"
                                 "\"maxDelay\":9000}"));
    free(json);
}

static void a_job_of_which_little_is_known(void **state)
{
    (void)state;
    char   *json = weir_job_json(&(weir_job){ .id = 3 }, NULL);
    json_t *v = json_loads(json, 0, NULL);
    assert_non_null(v);
    assert_true(json_is_null(json_object_get(v, "data")));
    json_decref(v);
    free(json);
}

static void copies_stand_alone(void **state)
{
    (void)state;
    weir_job *c = weir__job_copy(&full), *bare;
    assert_non_null(c);
    assert_string_equal(c->type, full.type);
    assert_string_equal(c->data, full.data);
    assert_string_equal(c->result, full.result);
    assert_string_equal(c->error, full.error);
    assert_string_equal(c->progress_data, full.progress_data);
    assert_string_equal(c->unique, full.unique);
    assert_string_equal(c->worker, full.worker);
    assert_string_equal(c->search_keys, full.search_keys);
    assert_string_equal(c->history, full.history);
    assert_string_equal(c->values, full.values);
    assert_ptr_not_equal(c->type, full.type);
    assert_ptr_not_equal(c->search_keys, full.search_keys);
    char *a = weir_job_json(&full, NULL), *b = weir_job_json(c, NULL);
    assert_string_equal(a, b);
    free(a);
    free(b);
    weir_job_free(c);

    bare = weir__job_copy(&(weir_job){ .id = 9, .data = "1234", .data_len = 2 });
    assert_string_equal(bare->data, "12");      /* a length, not a NUL, ends it */
    assert_null(bare->type);
    assert_null(bare->result);
    weir_job_free(bare);
    weir_job_free(NULL);
}

static void results_own_what_they_show(void **state)
{
    (void)state;
    weir_page *page = weir__page_create(3);
    page->job[page->n++] = weir__job_copy(&full);
    page->job[page->n++] = NULL;                /* kept by the caller */
    weir_page_free(page);

    weir_lines *lines = weir__lines_create();
    for (uint64_t i = 1; i <= 100; i++)
        assert_true(weir__lines_add(lines, i, (int64_t)i, "lineX", 4));
    assert_int_equal(lines->n, 100);
    assert_int_equal(lines->line[99].n, 100);
    assert_string_equal(lines->line[99].text, "line");
    weir_lines_free(lines);

    weir_report *report = weir__report_create();
    for (int i = 0; i < 9; i++)
        assert_true(weir__report_line(report, "job %d", i));
    assert_string_equal(report->line[8], "job 8");
    weir_report_free(report);

    weir_explanation *e = weir__explanation_create(weir__job_copy(&full));
    assert_true(weir__explanation_say(e, "because", WEIR_REMEDY_NONE));
    assert_true(weir__explanation_say(e, "indeed", WEIR_REMEDY_RETRY));
    weir_story *story = weir__story_create();
    assert_true(weir__story_moment(story, 8, "was %s", "added"));
    weir__explanation_set_story(e, story);
    assert_string_equal(e->why, "indeed");
    assert_int_equal(e->remedy, WEIR_REMEDY_RETRY);
    assert_string_equal(e->moment[0].what, "was added");
    weir_explanation_free(e);

    weir_page_free(NULL);
    weir_lines_free(NULL);
    weir_report_free(NULL);
    weir_stats_free(NULL);
    weir_explanation_free(NULL);
    weir_story_free(NULL);
}

static void statistics_add_up(void **state)
{
    (void)state;
    weir_stats *s = weir__stats_create();
    assert_string_equal(s->all.type, "*");
    for (int i = 1; i <= 5; i++) {
        weir_type_stats *t = weir__stats_add(s, i % 2 ? "odd" : "even");
        t->count[WEIR_STATE_FAILED] = (uint64_t)i;
        t->count[WEIR_STATE_ANY] = (uint64_t)i;
        t->completed = 2;
        t->failed = 3;
        t->work_ms = 10;
        t->last_taken_at = 50 - i;
        t->oldest_at = i == 1 ? 0 : 100 + i;
    }
    weir__stats_sum(s);
    weir__stats_sum(s);
    assert_int_equal(s->n, 5);
    assert_string_equal(s->type[1].type, "even");
    assert_int_equal(s->all.count[WEIR_STATE_FAILED], 15);
    assert_int_equal(s->all.count[WEIR_STATE_ANY], 15);
    assert_int_equal(s->all.completed, 10);
    assert_int_equal(s->all.failed, 15);
    assert_int_equal(s->all.work_ms, 50);
    assert_int_equal(s->all.last_taken_at, 49);
    assert_int_equal(s->all.oldest_at, 102);
    weir_stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_members_by_their_kue_names),
        cmocka_unit_test(what_is_not_there_is_left_out),
        cmocka_unit_test(a_job_of_which_little_is_known),
        cmocka_unit_test(copies_stand_alone),
        cmocka_unit_test(results_own_what_they_show),
        cmocka_unit_test(statistics_add_up),
    };
    return cmocka_run_group_tests_name("job as JSON", tests, NULL, NULL);
}
