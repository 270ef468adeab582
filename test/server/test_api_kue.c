/* test_api_kue.c - Kue's JSON API: every route, byte for byte where clients look, its errors, and
 * what is different on purpose. (test/kue/api.js asks the real Kue the same things.) */
#include "server/kue/kue.h"
#include "support/kue_client.h"
#include "support/redis_rig.h"

#define CREATED(id) "{\"message\":\"job created\",\"id\":" #id "}"
#define GONE(id)    "{\"error\":\"job \\\"" id "\\\" doesnt exist\"}"

/* A job of list routes, at the start of the clock, with nothing special about it. */
#define PLAIN_JOB(id, type, state, priority)                                                   \
    "{\"id\":" id ",\"type\":\"" type "\",\"data\":{},\"priority\":" priority                  \
    ",\"progress\":0,\"state\":\"" state "\",\"created_at\":\"" T0 "\",\"promote_at\":\"" T0   \
    "\",\"updated_at\":\"" T0 "\",\"attempts\":{\"made\":0,\"remaining\":1,\"max\":1}}"

static void start(web *w)
{
    web_start(w, RT_MEM, true, NULL);
}

static void post(web *w, const char *body, const char *want)
{
    ask(w, "POST", "/job", body, 200, want);
}

/* ---- one job ---- */

static void a_job_is_shown_as_kue_shows_it(void **state)
{
    (void)state;
    web w;
    start(&w);
    post(&w, "{\"type\":\"mail\",\"data\":{ \"title\" : \"Hi <b>\", \"n\": [1, 2.50] },"
             "\"options\":{\"attempts\":3,\"priority\":\"high\",\"delay\":5000,\"ttl\":\"7000\","
             "\"backoff\":{\"type\":\"fixed\",\"delay\":100},\"removeOnComplete\":false}}",
         CREATED(1));
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\"id\":\"1\",\"type\":\"mail\",\"data\":{\"title\":\"Hi <b>\",\"n\":[1,2.50]},"
        "\"priority\":-10,\"progress\":0,\"state\":\"delayed\",\"created_at\":\"1700000000000\","
        "\"promote_at\":\"1700000005000\",\"updated_at\":\"1700000000000\",\"delay\":\"5000\","
        "\"ttl\":\"7000\",\"attempts\":{\"made\":0,\"remaining\":3,\"max\":3}}");
    web_answer a = web_call(&w, "GET", "/job/1", NULL);
    assert_string_equal(web_header(&a, "Content-Type"), "application/json; charset=utf-8");
    web_free(&a);
    post(&w, " \n{ \"type\" : \"plain\" } ", CREATED(2));
    ask(&w, "GET", "/job/2", NULL, 200, PLAIN_JOB("\"2\"", "plain", "inactive", "0"));
    web_stop(&w);
}

static void a_job_that_was_worked_on_has_more(void **state)
{
    (void)state;
    web w;
    start(&w);
    rt *t = &w.t;
    post(&w, "{\"type\":\"a\",\"options\":{\"attempts\":2}}", CREATED(1));
    rt_later(t, 10);
    weir_job *job = take(&w, "a", 1);
    OK(weir_progress(t->q, 1, job->delivery, 33, "{\"step\": 1}", 0, &t->err));
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\"id\":\"1\",\"type\":\"a\",\"data\":{},\"priority\":0,\"progress\":\"33\","
        "\"progress_data\":{\"step\":1},\"state\":\"active\",\"created_at\":\"1700000000000\","
        "\"promote_at\":\"1700000000000\",\"updated_at\":\"1700000000010\","
        "\"started_at\":\"1700000000010\",\"workerId\":\"me\","
        "\"attempts\":{\"made\":0,\"remaining\":2,\"max\":2}}");
    end(&w, job, WEIR_OUTCOME_FAIL, "no \"luck\"");
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\"id\":\"1\",\"type\":\"a\",\"data\":{},\"priority\":0,\"progress\":\"33\","
        "\"progress_data\":{\"step\":1},\"state\":\"inactive\",\"error\":\"no \\\"luck\\\"\","
        "\"created_at\":\"1700000000000\",\"promote_at\":\"1700000000000\","
        "\"updated_at\":\"1700000000010\",\"failed_at\":\"1700000000010\","
        "\"started_at\":\"1700000000010\",\"workerId\":\"me\","
        "\"attempts\":{\"made\":1,\"remaining\":1,\"max\":2}}");
    job = take(&w, "a", 1);
    rt_later(t, 5);
    end(&w, job, WEIR_OUTCOME_DONE, "{\"sent\": true}");
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\"id\":\"1\",\"type\":\"a\",\"data\":{},\"result\":{\"sent\":true},\"priority\":0,"
        "\"progress\":\"100\",\"state\":\"complete\","
        "\"created_at\":\"1700000000000\",\"promote_at\":\"1700000000000\","
        "\"updated_at\":\"1700000000015\",\"failed_at\":\"1700000000010\","
        "\"started_at\":\"1700000000010\",\"duration\":\"5\",\"workerId\":\"me\","
        "\"attempts\":{\"made\":2,\"remaining\":0,\"max\":2}}");
    ask(&w, "GET", "/job/1/log", NULL, 200, "[\"error | no \\\"luck\\\"\"]");
    ask(&w, "GET", "/stats", NULL, 200,
        "{\"inactiveCount\":0,\"completeCount\":1,\"activeCount\":0,\"failedCount\":0,"
        "\"delayedCount\":0,\"workTime\":5}");
    web_stop(&w);
}

static void what_is_not_there_is_said_so(void **state)
{
    (void)state;
    web w;
    start(&w);
    static const char *const ids[] = { "999", "0", "01", "abc", "-1", "1e3", "99999999999999999" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char target[64], want[96];
        snprintf(target, sizeof target, "/job/%s", ids[i]);
        snprintf(want, sizeof want, GONE("%s"), ids[i]);
        ask(&w, "GET", target, NULL, 200, want);
        ask(&w, "DELETE", target, NULL, 200, want);
        snprintf(target, sizeof target, "/job/%s/state/inactive", ids[i]);
        ask(&w, "PUT", target, NULL, 200, want);
        snprintf(target, sizeof target, "/job/%s/priority/3", ids[i]);
        ask(&w, "PUT", target, NULL, 200, want);
        snprintf(target, sizeof target, "/job/%s/log", ids[i]);
        ask(&w, "GET", target, NULL, 200, "[]");
    }
    ask(&w, "GET", "/job/%22%3Cb%3E%2F", NULL, 200,
        "{\"error\":\"job \\\"\\\"<b>/\\\" doesnt exist\"}");
    ask(&w, "GET", "/stats", NULL, 200,
        "{\"inactiveCount\":0,\"completeCount\":0,\"activeCount\":0,\"failedCount\":0,"
        "\"delayedCount\":0,\"workTime\":null}");
    ask(&w, "GET", "/job/types", NULL, 200, "[]");
    ask(&w, "GET", "/jobs/0..10", NULL, 200, "[]");
    web_stop(&w);
}

static void a_long_log_comes_in_whole(void **state)
{
    (void)state;
    enum { LINES = 2500 };
    web w;
    start(&w);
    rt      *t = &w.t;
    uint64_t id = rt_add_type(t, "a");
    for (int i = 0; i < LINES; i++)
        OK(weir_log(t->q, id, 0, "line", 0, &t->err));
    json_t *log = web_json(&w, 200, "GET", "/job/1/log", NULL);
    assert_int_equal(json_array_size(log), LINES);
    json_decref(log);
    web_stop(&w);
}

/* ---- lists ---- */

#define A PLAIN_JOB("1", "a", "inactive", "0")
#define B PLAIN_JOB("2", "b", "inactive", "-10")
#define C PLAIN_JOB("3", "a", "inactive", "10")

static void ranges_are_by_rank_and_then_by_id(void **state)
{
    (void)state;
    web w;
    start(&w);
    post(&w, "[{\"type\":\"a\"},{\"type\":\"b\",\"options\":{\"priority\":\"high\"}},"
             "{\"type\":\"a\",\"options\":{\"priority\":\"10\"}}]",
         "[" CREATED(1) "," CREATED(2) "," CREATED(3) "]");
    static const struct {
        const char *target, *want;
    } cases[] = {
        { "/jobs/0..10", "[" A "," B "," C "]" },
        { "/jobs/0..10/asc", "[" A "," B "," C "]" },
        { "/jobs/0..10/whatever", "[" A "," B "," C "]" },
        { "/jobs/0..10/desc", "[" C "," B "," A "]" },
        { "/jobs/0..0", "[" B "]" },                    /* the most urgent has rank 0 */
        { "/jobs/0..1", "[" A "," B "]" },
        { "/jobs/1..2/desc", "[" C "," A "]" },
        { "/jobs/-1..-1", "[" C "]" },
        { "/jobs/-2..-1", "[" A "," C "]" },
        { "/jobs/-100..-3", "[" B "]" },
        { "/jobs/0..-1", "[" A "," B "," C "]" },
        { "/jobs/2..1", "[]" },
        { "/jobs/3..9", "[]" },
        { "/jobs/0..-4", "[]" },
        { "/jobs/0..1x", "[" A "," B "]" },             /* parseInt() */
        { "/jobs/a..b", "{\"error\":\"ERR value is not an integer or out of range\"}" },
        { "/jobs/0..b", "{\"error\":\"ERR value is not an integer or out of range\"}" },
        { "/jobs/inactive/0..0", "[" B "]" },
        { "/jobs/inactive/-1..-1/asc", "[" C "]" },
        { "/jobs/inactive/0..9/desc", "[" C "," B "," A "]" },
        { "/jobs/INACTIVE/0..0", "[" B "]" },
        { "/jobs/failed/0..9", "[]" },
        { "/jobs/bogus/0..9", "[]" },
        { "/jobs/a/inactive/0..9", "[" A "," C "]" },
        { "/jobs/a/inactive/1..1/asc", "[" C "]" },
        { "/jobs/a/inactive/0..9/desc", "[" C "," A "]" },
        { "/jobs/a/bogus/0..9", "[]" },
        { "/jobs/nothing/inactive/0..9", "[]" },
        { "/jobs/a/inactive/stats", "{\"count\":2}" },
        { "/jobs/a/failed/stats", "{\"count\":0}" },
        { "/jobs/a/bogus/stats", "{\"count\":0}" },
        { "/jobs/nothing/inactive/stats", "{\"count\":0}" },
        { "/job/types", "[\"a\",\"b\"]" },
        { "/stats", "{\"inactiveCount\":3,\"completeCount\":0,\"activeCount\":0,"
                    "\"failedCount\":0,\"delayedCount\":0,\"workTime\":null}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ask(&w, "GET", cases[i].target, NULL, 200, cases[i].want);
    web_stop(&w);
}

static json_int_t first_id(web *w, const char *target, size_t n)
{
    json_t *jobs = web_json(w, 200, "GET", target, NULL);
    assert_int_equal(json_array_size(jobs), n);
    json_int_t id = json_integer_value(json_object_get(json_array_get(jobs, 0), "id"));
    json_decref(jobs);
    return id;
}

static void add_many(web *w, size_t n)
{
    rt        *t = &w->t;
    weir_spec *specs = calloc(n, sizeof *specs);
    for (size_t i = 0; i < n; i++)
        specs[i] = (weir_spec){ .type = "many" };
    OK(weir_add_many(t->q, specs, n, NULL, NULL, &t->err));
    free(specs);
}

/* Beyond a page ranks are reached by pages, from the nearer end. */
static void long_lists_are_reached_from_both_ends(void **state)
{
    (void)state;
    web w;
    start(&w);
    add_many(&w, 2345);
    add_many(&w, 9000);
    assert_int_equal(first_id(&w, "/jobs/0..10", 11), 1);
    assert_int_equal(first_id(&w, "/jobs/inactive/2000..2010", 11), 2001);
    assert_int_equal(first_id(&w, "/jobs/many/inactive/-3..-1", 3), 11343);
    assert_int_equal(first_id(&w, "/jobs/9000..9009/desc", 10), 9010);
    assert_int_equal(first_id(&w, "/jobs/1000..10999", 10000), 1001);
    ask(&w, "GET", "/jobs/0..-1", NULL, 413, "{\"error\":\"the range has 11345 jobs, ...");
    ask(&w, "GET", "/jobs/inactive/0..10000", NULL, 413, "{\"error\":\"the range has 10001 ...");
    web_stop(&w);
}

/* Too large to be sorted as a whole: in weir's order then. */
static void large_jobs_are_answered_in_parts(void **state)
{
    (void)state;
    enum { JOBS = 80, BYTES = 1000 * 1000 };
    web w;
    start(&w);
    char *data = malloc(BYTES + 1);
    memset(data, 'x', BYTES);
    data[0] = data[BYTES - 1] = '"';
    data[BYTES] = '\0';
    for (int i = 0; i < JOBS; i++)
        rt_add(&w.t, &(weir_spec){ .type = "a", .data = data, .priority = JOBS - i });
    free(data);
    assert_int_equal(first_id(&w, "/jobs/1..2", 2), 2);
    assert_int_equal(first_id(&w, "/jobs/-2..-1", 2), JOBS - 1);
    assert_int_equal(first_id(&w, "/jobs/0..-1", JOBS), 1);
    assert_int_equal(first_id(&w, "/jobs/inactive/0..-1/desc", JOBS), JOBS);
    web_stop(&w);
}

/* ---- adding ---- */

static void nothing_to_add_is_no_content(void **state)
{
    (void)state;
    web w;
    start(&w);
    ask(&w, "POST", "/job", "{}", 204, "");
    ask(&w, "POST", "/job", "[]", 204, "");
    ask(&w, "POST", "/job", NULL, 204, "");
    ask_with(&w, "Content-Type: text/plain\r\n", "POST", "/job", "{\"type\":\"a\"}", 204, "");
    ask_with(&w, "Content-Type: application/jsonp\r\n", "POST", "/job", "{\"type\":\"a\"}", 204,
             "");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
    ask_with(&w, "Content-Type: application/JSON; charset=utf-8\r\n", "POST", "/job",
             "{\"type\":\"a\"}", 200, CREATED(1));
    web_stop(&w);
}

#define WITH(options) "{\"type\":\"a\",\"options\":{" options "}}"
#define NO_TYPE "{\"error\":\"Must provide job type\"}"

static void what_cannot_be_added_is_refused(void **state)
{
    (void)state;
    web w;
    start(&w);
    static const struct {
        const char *body;
        int         status;
        const char *want;
    } cases[] = {
        { "{\"type\":", 400, "{\"error\":\"not JSON at byte ..." },
        { "\"text\"", 400, "{\"error\":\"the body must be an object or an array\"}" },
        { "7", 400, "{\"error\":\"the body must be an object or an array\"}" },
        { "{\"data\":{}}", 400, NO_TYPE },
        { "{\"type\":\"\"}", 400, NO_TYPE },
        { "{\"type\":null,\"data\":{}}", 400, NO_TYPE },
        { "{\"type\":0}", 400, NO_TYPE },
        { "{\"type\":7}", 400, "{\"error\":\"type: 7 is not a text\"}" },
        { "{\"type\":\"*\"}", 400, "{\"error\":\"type: ..." },
        { "[null]", 400, "[" NO_TYPE "]" },
        { "[1,\"x\",[],{}]", 400, "[" NO_TYPE "," NO_TYPE "," NO_TYPE "," NO_TYPE "]" },
        { "{\"type\":\"a\",\"options\":7}", 400, "{\"error\":\"options: must be an object\"}" },
        { WITH("\"attempts\":\"many\""), 400, "{\"error\":\"attempts: ..." },
        { WITH("\"attempts\":1.5"), 400, "{\"error\":\"attempts: ..." },
        { WITH("\"attempts\":-1"), 400, "{\"error\":\"attempts: -1, ..." },
        { WITH("\"priority\":\"soon\""), 400, "{\"error\":\"priority: ..." },
        { WITH("\"delay\":\"5s\""), 400, "{\"error\":\"delay: ..." },
        { WITH("\"delay\":true"), 400, "{\"error\":\"delay: ..." },
        { WITH("\"delay\":9e18"), 400, "{\"error\":\"delay: ..." },
        { WITH("\"searchKeys\":[\"a,b\"]"), 400,
          "{\"error\":\"searchKeys: ..." },
        { WITH("\"searchKeys\":{}"), 400, "{\"error\":\"searchKeys: ..." },
        /* what Kue evaluates */
        { WITH("\"backoff\":\"process.exit()\""), 400,
          "{\"error\":\"backoff: \\\"process.exit()\\\" is not true or ..." },
        { WITH("\"backoff\":7"), 400, "{\"error\":\"backoff: ..." },
        { WITH("\"backoff\":{\"type\":\"other\"}"), 400,
          "{\"error\":\"backoff: type: ..." },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ask(&w, "POST", "/job", cases[i].body, cases[i].status, cases[i].want);
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
    web_stop(&w);
}

static void a_lot_is_added_in_order_past_its_errors(void **state)
{
    (void)state;
    web w;
    start(&w);
    ask(&w, "POST", "/job",
        "[{\"type\":\"a\"},{},{\"type\":\"b\",\"data\":5},"
        "{\"type\":\"c\",\"options\":{\"backoff\":\"x\"}},{\"type\":\"d\",\"data\":\"text\"}]",
        400, "[" CREATED(1) "," NO_TYPE "," CREATED(2) ",{\"error\":\"backoff: ...");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_INACTIVE), 3);
    weir_job *job = rt_get(&w.t, 3);
    assert_string_equal(job->type, "d");
    assert_string_equal(job->data, "\"text\"");
    weir_job_free(job);

    weir_buf body = { 0 };
    for (int i = 0; i <= WEIR_MAX_ADD; i++)
        weir__buf_str(&body, i ? ",{\"type\":\"x\"}" : "[{\"type\":\"x\"}");
    weir__buf_char(&body, ']');
    ask(&w, "POST", "/job", body.data, 413, "{\"error\":\"10001 jobs, at most 10000 ...");
    weir__buf_fini(&body);
    web_stop(&w);
}

/* The options of a job added with them. */
static weir_job *with_options(web *w, const char *options)
{
    static uint64_t last;
    char            body[512];
    snprintf(body, sizeof body, "{\"type\":\"a\",\"options\":%s}", options);
    json_t *answer = web_json(w, 200, "POST", "/job", body);
    last = (uint64_t)json_integer_value(json_object_get(answer, "id"));
    json_decref(answer);
    return rt_get(&w->t, last);
}

static void options_mean_what_they_mean_in_kue(void **state)
{
    (void)state;
    web w;
    start(&w);
    /* zero, false, null and nothing are not there; neither is what Kue does not know */
    weir_job *j = with_options(&w, "{\"attempts\":0,\"priority\":0,\"delay\":false,\"ttl\":null,"
                                   "\"backoff\":\"\",\"searchKeys\":0.0,\"removeOnComplete\":0,"
                                   "\"unheard\":{\"of\":1}}");
    assert_int_equal(j->max_attempts, 1);
    assert_int_equal(j->backoff.kind, WEIR_BACKOFF_NONE);
    assert_int_equal(j->state, WEIR_STATE_INACTIVE);
    assert_false(j->remove_on_complete || j->search || j->ttl_ms);
    weir_job_free(j);

    j = with_options(&w, "{\"attempts\":\"5\",\"priority\":-7,\"delay\":-5,\"ttl\":-1,"
                         "\"removeOnComplete\":1,\"searchKeys\":[\"to\",\"who.name\"],"
                         "\"backoff\":true}");
    assert_int_equal(j->max_attempts, 5);
    assert_int_equal(j->priority, -7);
    assert_int_equal(j->state, WEIR_STATE_INACTIVE);
    assert_int_equal(j->ttl_ms, 0);
    assert_true(j->remove_on_complete);
    assert_string_equal(j->search_keys, "to,who.name");
    assert_int_equal(j->backoff.kind, WEIR_BACKOFF_FIXED);
    weir_job_free(j);

    j = with_options(&w, "{\"backoff\":{\"delay\":70}}");       /* no type: fixed */
    assert_int_equal(j->backoff.kind, WEIR_BACKOFF_FIXED);
    assert_int_equal(j->backoff.delay_ms, 70);
    weir_job_free(j);

    /* the cap is short by half the delay there */
    j = with_options(&w, "{\"searchKeys\":\"to\",\"backoff\":{\"type\":\"exponential\","
                         "\"delay\":1000,\"maxDelay\":60000}}");
    assert_string_equal(j->search_keys, "to");
    assert_int_equal(j->backoff.kind, WEIR_BACKOFF_EXPONENTIAL);
    assert_int_equal(j->backoff.delay_ms, 1000);
    assert_int_equal(j->backoff.max_ms, 59500);
    weir_job_free(j);
    web_stop(&w);
}

/* ---- search ---- */

static void search_answers_with_ids_as_text(void **state)
{
    (void)state;
    web w;
    start(&w);
    post(&w, "[{\"type\":\"a\",\"data\":{\"title\":\"Hello world\"},"
             "\"options\":{\"searchKeys\":\"title\"}},"
             "{\"type\":\"a\",\"data\":{\"title\":\"hello you\"},"
             "\"options\":{\"searchKeys\":[\"title\"]}},"
             "{\"type\":\"a\",\"data\":{\"title\":\"hello unsearched\"}}]",
         "[" CREATED(1) "," CREATED(2) "," CREATED(3) "]");
    ask(&w, "GET", "/job/search?q=hello", NULL, 200, "[\"1\",\"2\"]");
    ask(&w, "GET", "/job/search?q=hello+world", NULL, 200, "[\"1\"]");
    ask(&w, "GET", "/job/search?q=nothing", NULL, 200, "[]");
    ask(&w, "GET", "/job/search?q=", NULL, 200, "[]");
    ask(&w, "GET", "/job/search", NULL, 200, "[]");
    ask(&w, "DELETE", "/job/1", NULL, 200, "{\"message\":\"job 1 removed\"}");
    ask(&w, "GET", "/job/search?q=hello&other=1", NULL, 200, "[\"2\"]");
    web_stop(&w);
}

/* ---- changing ---- */

#define DONE "{\"message\":\"updated state\"}"

static void states_change_as_the_life_cycle_has_it(void **state)
{
    (void)state;
    web w;
    start(&w);
    rt *t = &w.t;
    post(&w, "{\"type\":\"a\",\"options\":{\"delay\":60000}}", CREATED(1));
    ask(&w, "PUT", "/job/1/state/delayed", NULL, 200, DONE);
    ask(&w, "PUT", "/job/1/state/inactive", NULL, 200, DONE);
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/inactive", "{}", 200, DONE);
    rt_later(t, 1000);
    ask(&w, "PUT", "/job/1/state/delayed", NULL, 200, DONE);
    weir_job *j = rt_get(t, 1);
    assert_int_equal(j->state, WEIR_STATE_DELAYED);
    assert_int_equal(j->promote_at, INT64_C(1700000060000));    /* its own delay from its making */
    weir_job_free(j);
    rt_later(t, 70000);
    rt_until(t, 1, WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/delayed", NULL, 200, DONE);    /* that was long ago: at once */
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);

    ask(&w, "PUT", "/job/1/state/complete", NULL, 200, DONE);
    assert_int_equal(rt_state(t, 1), WEIR_STATE_COMPLETE);
    ask(&w, "PUT", "/job/1/state/failed", NULL, 200, DONE);
    assert_int_equal(rt_state(t, 1), WEIR_STATE_FAILED);
    ask(&w, "PUT", "/job/1/state/active", NULL, 200, DONE);
    j = rt_get(t, 1);
    assert_int_equal(j->state, WEIR_STATE_ACTIVE);
    assert_string_equal(j->worker, "127.0.0.1");
    weir_job_free(j);
    ask(&w, "PUT", "/job/1/state/complete", NULL, 200, DONE);   /* whoever set it has it */
    assert_int_equal(rt_state(t, 1), WEIR_STATE_COMPLETE);
    ask(&w, "PUT", "/job/1/state/active", NULL, 200, DONE);
    ask(&w, "PUT", "/job/1/state/failed", NULL, 200, DONE);
    j = rt_get(t, 1);
    assert_int_equal(j->state, WEIR_STATE_FAILED);
    assert_string_equal(j->error, "Failed by hand");
    weir_job_free(j);
    ask(&w, "PUT", "/job/1/state/active", NULL, 200, DONE);
    ask(&w, "PUT", "/job/1/state/inactive", NULL, 200, DONE);
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/active", NULL, 200, DONE);
    rt_later(t, WEIR_DEFAULT_LEASE_MS + 1);                     /* whoever set it is gone */
    rt_until(t, 1, WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/bogus", NULL, 400,
        "{\"error\":\"unknown state \\\"bogus\\\": ...");

    weir_job *job = take(&w, "a", 1);
    ask(&w, "PUT", "/job/1/state/active", NULL, 200, DONE);
    ask(&w, "PUT", "/job/1/state/inactive", NULL, 409, "{\"error\":\"job 1 is active: ...");
    ask(&w, "PUT", "/job/1/priority/5", NULL, 409, "{\"error\":\"job 1 is active: ...");
    end(&w, job, WEIR_OUTCOME_FAIL, "no");
    assert_int_equal(rt_state(t, 1), WEIR_STATE_FAILED);
    ask(&w, "PUT", "/job/1/state/failed", NULL, 200, DONE);
    ask(&w, "PUT", "/job/1/state/inactive", NULL, 200, DONE);
    assert_int_equal(rt_state(t, 1), WEIR_STATE_INACTIVE);
    ask(&w, "PUT", "/job/1/state/cancelled", NULL, 200, DONE);
    assert_int_equal(rt_state(t, 1), WEIR_STATE_CANCELLED);
    json_int_t id = first_id(&w, "/jobs/cancelled/0..9", 1);
    assert_int_equal(id, 1);
    web_stop(&w);
}

static void priorities_and_removal(void **state)
{
    (void)state;
    web w;
    start(&w);
    post(&w, "[{\"type\":\"a\"},{\"type\":\"a\"}]", "[" CREATED(1) "," CREATED(2) "]");
    ask(&w, "PUT", "/job/2/priority/-10", NULL, 200, "{\"message\":\"updated priority\"}");
    assert_int_equal(first_id(&w, "/jobs/inactive/0..0", 1), 2);
    ask(&w, "PUT", "/job/2/priority/5x", NULL, 200, "{\"message\":\"updated priority\"}");
    assert_int_equal(first_id(&w, "/jobs/inactive/0..0", 1), 1);
    ask(&w, "PUT", "/job/2/priority/low", NULL, 200, "{\"error\":\"invalid priority\"}");
    ask(&w, "PUT", "/job/77/priority/low", NULL, 200, "{\"error\":\"invalid priority\"}");
    ask(&w, "PUT", "/job/2/priority/99999999999", NULL, 200, "{\"error\":\"invalid priority\"}");
    ask(&w, "DELETE", "/job/2", NULL, 200, "{\"message\":\"job 2 removed\"}");
    ask(&w, "DELETE", "/job/2", NULL, 200, GONE("2"));
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 1);
    web_stop(&w);
}

static void a_get_changes_nothing_unless_it_may(void **state)
{
    (void)state;
    web w;
    start(&w);
    post(&w, "{\"type\":\"a\",\"options\":{\"delay\":60000}}", CREATED(1));
    ask(&w, "GET", "/inactive/1", NULL, 405,
        "{\"error\":\"a GET changes nothing here: PUT /job/1/state/inactive or POST "
        "/inactive/1, ...");
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_DELAYED);
    web_stop(&w);

    web_start(&w, RT_MEM, true, &(srv_options){ .kue_get = true });
    post(&w, "{\"type\":\"a\",\"options\":{\"delay\":60000}}", CREATED(1));
    ask(&w, "GET", "/inactive/1", NULL, 200, "{\"message\":\"job 1 inactive\"}");
    ask(&w, "GET", "/inactive/7", NULL, 200, GONE("7"));
    assert_int_equal(rt_state(&w.t, 1), WEIR_STATE_INACTIVE);
    web_stop(&w);
}

/* ---- around it ---- */

static void who_accepts_no_json_finds_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        bool        json;
    } cases[] = {
        { NULL, true },
        { "*/*", true },
        { "application/json", true },
        { "APPLICATION/JSON;q=0.5", true },
        { "application/*", true },
        { "text/html, application/json ; q=0.1", true },
        { "text/html,application/xhtml+xml,*/*;q=0.8", true },
        { "text/html", false },
        { "", false },
        { "application/json;q=0", false },
        { "*/*, application/json;q=0.0", false },
        { "application/*;q=0, application/json", true },
        { "application/json;version=2", false },
        { "application/jsonp", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (srv_accepts_json(cases[i].accept) != cases[i].json)
            fail_msg("%s", cases[i].accept);
    }
    web w;
    start(&w);
    static const char *const paths[] = { "/stats", "/job/types", "/job/1", "/jobs/0..3",
                                         "/job/search?q=a" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        ask_with(&w, "Accept: text/html\r\n", "GET", paths[i], NULL, 404, "{\"error\":...");
    ask_with(&w, "Accept: text/html\r\n", "POST", "/job", "{\"type\":\"a\"}", 404,
             "{\"error\":...");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 0);
    web_stop(&w);
}

static void data_comes_back_as_it_was(void **state)
{
    (void)state;
    web w;
    start(&w);
    post(&w, "{\"type\":\"t\\u00e4st/\\\"x\",\"data\":[12345678901234567890,\"a\\u0000b\", 1e5,"
             "{\"\":{} , \"x\":[ ]}]}", CREATED(1));
    ask(&w, "GET", "/job/1", NULL, 200,
        "{\"id\":\"1\",\"type\":\"t\xc3\xa4st/\\\"x\",\"data\":[12345678901234567890,"
        "\"a\\u0000b\",1e5,{\"\":{},\"x\":[]}],\"priority\":0,...");
    ask(&w, "GET", "/jobs/t%C3%A4st%2F%22x/inactive/stats", NULL, 200, "{\"count\":1}");
    web_stop(&w);
}

static void a_token_sees_the_jobs_of_its_type(void **state)
{
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], any[128], own[128], eye[128];
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    token_header(any, file, "any", "admin", "");
    token_header(own, file, "own", "admin", "a");
    token_header(eye, file, "eye", "read", "");
    web_start(&w, RT_MEM, true, &(srv_options){ .tokens_file = file });
    ask_with(&w, any, "POST", "/job", "[{\"type\":\"a\"},{\"type\":\"b\"}]", 200,
             "[" CREATED(1) "," CREATED(2) "]");
    const struct {
        const char *method, *target, *body;
        int         status;
        const char *want;
    } cases[] = {
        { "GET", "/job/1", NULL, 200, "{\"id\":\"1\",..." },
        { "GET", "/job/2", NULL, 200, GONE("2") },
        { "GET", "/job/2/log", NULL, 200, "[]" },
        { "DELETE", "/job/2", NULL, 200, GONE("2") },
        { "PUT", "/job/2/state/cancelled", NULL, 200, GONE("2") },
        { "PUT", "/job/2/priority/1", NULL, 200, GONE("2") },
        { "POST", "/inactive/2", NULL, 404, "" },
        { "PUT", "/job", "{\"id\":2,\"data\":{}}", 404, "{\n  \"message\" : ..." },
        { "PUT", "/job", "{\"type\":\"b\"}", 403, "{\n  \"error\" : ..." },
        { "GET", "/jobs/0..9", NULL, 200, "[" PLAIN_JOB("1", "a", "inactive", "0") "]" },
        { "GET", "/jobs/inactive/0..9", NULL, 200,
          "[" PLAIN_JOB("1", "a", "inactive", "0") "]" },
        { "GET", "/jobs/b/inactive/0..9", NULL, 200, "[]" },
        { "GET", "/jobs/b/inactive/stats", NULL, 200, "{\"count\":0}" },
        { "GET", "/jobs/a/inactive/stats", NULL, 200, "{\"count\":1}" },
        { "GET", "/job/types", NULL, 200, "[\"a\"]" },
        { "GET", "/stats", NULL, 200, "{\"inactiveCount\":1,..." },
        { "POST", "/job", "[{\"type\":\"b\"},{\"type\":\"a\"}]", 403,
          "[{\"error\":\"type: this token is for jobs of type a\"}," CREATED(3) "]" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ask_with(&w, own, cases[i].method, cases[i].target, cases[i].body, cases[i].status,
                 cases[i].want);
    ask_with(&w, eye, "GET", "/job/2", NULL, 200, "{\"id\":\"2\",...");
    ask_with(&w, eye, "DELETE", "/job/2", NULL, 403, "{\"error\":...");
    ask_with(&w, eye, "POST", "/job", "{\"type\":\"a\"}", 403, "{\"error\":...");
    ask(&w, "GET", "/job/2", NULL, 401, "{\"error\":...");
    assert_int_equal(rt_count(&w.t, WEIR_STATE_ANY), 3);
    web_stop(&w);
    tempdir_remove(dir);
}

static void away(web *w, const char *method, const char *target, const char *body,
                 const char *start)
{
    web_answer a = web_call(w, method, target, body);
    if (a.status != 503 || strncmp(a.body, start, strlen(start)) != 0 ||
        !web_header(&a, "Retry-After"))
        fail_msg("%s %s: %d %s", method, target, a.status, a.body);
    web_free(&a);
}

static void a_store_that_is_away_is_said_so(void **state)
{
    (void)state;
    web  w;
    char url[512];
    rig *redis = rig_start(NULL);
    web_start(&w, rig_url(redis, "redis+unix", "timeout=200ms", url, sizeof url), false, NULL);
    post(&w, "{\"type\":\"a\"}", CREATED(1));
    assert_true(rig_stop(redis));
    static const char *const targets[] = { "/stats", "/job/types", "/job/1", "/job/1/log",
                                           "/jobs/0..9", "/jobs/a/inactive/0..9",
                                           "/jobs/a/inactive/stats", "/job/search?q=x" };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        away(&w, "GET", targets[i], NULL, "{\"error\":\"");
    away(&w, "POST", "/job", "{\"type\":\"a\"}", "{\"error\":\"");
    away(&w, "POST", "/job", "[{\"type\":\"a\"},{}]", "[{\"error\":\"");
    away(&w, "PUT", "/job/1/priority/1", NULL, "{\"error\":\"");
    away(&w, "PUT", "/job/1/state/inactive", NULL, "{\"error\":\"");
    away(&w, "DELETE", "/job/1", NULL, "{\"error\":\"");
    away(&w, "PUT", "/job", "{\"type\":\"a\"}", "{\n  \"error\" : \"");
    assert_true(rig_begin(redis) && rig_ready(redis));
    rt *t = &w.t;
    bool there;
    UNTIL(weir_exists(t->q, 1, &there, &t->err) == WEIR_OK);
    web_stop(&w);
    rig_free(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_shown_as_kue_shows_it),
        cmocka_unit_test(a_job_that_was_worked_on_has_more),
        cmocka_unit_test(what_is_not_there_is_said_so),
        cmocka_unit_test(a_long_log_comes_in_whole),
        cmocka_unit_test(ranges_are_by_rank_and_then_by_id),
        cmocka_unit_test(long_lists_are_reached_from_both_ends),
        cmocka_unit_test(large_jobs_are_answered_in_parts),
        cmocka_unit_test(nothing_to_add_is_no_content),
        cmocka_unit_test(what_cannot_be_added_is_refused),
        cmocka_unit_test(a_lot_is_added_in_order_past_its_errors),
        cmocka_unit_test(options_mean_what_they_mean_in_kue),
        cmocka_unit_test(search_answers_with_ids_as_text),
        cmocka_unit_test(states_change_as_the_life_cycle_has_it),
        cmocka_unit_test(priorities_and_removal),
        cmocka_unit_test(a_get_changes_nothing_unless_it_may),
        cmocka_unit_test(who_accepts_no_json_finds_nothing),
        cmocka_unit_test(data_comes_back_as_it_was),
        cmocka_unit_test(a_token_sees_the_jobs_of_its_type),
        cmocka_unit_test(a_store_that_is_away_is_said_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
