/* test_runtime_calls.c - the calls of queue.h, plain and async: the same answers, the same errors,
 * nothing borrowed after the call, nothing touched after the release. */
#include "support/runtime_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Wait for a future and let it go. */
static weir_code end_of(weir_future *f, weir_error *err)
{
    if (!f)
        abort();
    weir_code rc = weir_future_wait(f, PATIENCE_MS, err);
    assert_true(weir_future_done(f));
    weir_future_free(f);
    return rc;
}

/* `rc` of an async call: the outcome of the whole. */
#define AWAIT(call)                                                              \
    ({                                                                           \
        weir_future *f = (weir_future *)-1;                                      \
        weir_code rc_ = (call);                                                  \
        if (rc_)                                                                 \
            assert_null(f);                                                      \
        rc_ ? rc_ : end_of(f, &t->err);                                          \
    })

/* ---- one life, written down, plain and async ---- */

typedef struct notes {
    char   text[8000];
    size_t at;
} notes;

WEIR_PRINTF(2, 3) static void note(notes *n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    n->at += (size_t)vsnprintf(n->text + n->at, sizeof n->text - n->at, fmt, ap);
    va_end(ap);
    assert_true(n->at < sizeof n->text);
}

#define SAY(plain, async_)                                                       \
    do {                                                                         \
        t->err.msg[0] = 0;                                                       \
        weir_code rc_say = async ? AWAIT(async_) : (plain);                      \
        note(n, "%s", weir_code_name(rc_say));                                   \
        if (rc_say)                                                              \
            note(n, " (%s)", t->err.msg);                                        \
        note(n, "\n");                                                           \
    } while (0)

static void say_added(notes *n, const weir_added *a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note(n, "  added %" PRIu64 " %s %d\n", a[i].id, weir_state_name(a[i].state), a[i].existed);
}

static void say_job(notes *n, const weir_job *j)
{
    note(n, "  job %" PRIu64 " %s %s %s %d\n", j ? j->id : 0, j ? j->type : "",
         weir_state_name(j ? j->state : WEIR_STATE_ANY), j ? j->data : "", j ? j->priority : 0);
}

static void adding(rt *t, notes *n, bool async)
{
    weir_added added[3];
    weir_spec  spec = { .type = "mail", .data = "{\"to\":\"ann\"}", .unique = "ann" };
    SAY(weir_add(t->q, &spec, added, &t->err), weir_add_async(t->q, &spec, added, &f, &t->err));
    say_added(n, added, 1);
    weir_spec specs[3] = { { .type = "mail", .unique = "ann" }, { .type = "mail", .priority = -5 },
                           { .type = "film", .delay_ms = 100000 } };
    SAY(weir_add_many(t->q, specs, 3, NULL, added, &t->err),
        weir_add_many_async(t->q, specs, 3, NULL, added, &f, &t->err));
    say_added(n, added, 3);
    SAY(weir_add_many(t->q, specs, 0, NULL, added, &t->err),
        weir_add_many_async(t->q, specs, 0, NULL, added, &f, &t->err));
    specs[2].type = "";
    memset(added, 1, sizeof added);
    SAY(weir_add_many(t->q, specs, 3, NULL, added, &t->err),
        weir_add_many_async(t->q, specs, 3, NULL, added, &f, &t->err));
    for (int i = 0; i < 3; i++)
        note(n, "  %" PRIu64 "\n", added[i].id);
    spec.data = "{";
    memset(added, 1, sizeof added);
    SAY(weir_add(t->q, &spec, added, &t->err), weir_add_async(t->q, &spec, added, &f, &t->err));
    say_added(n, added, 1);
    spec.data = NULL;
    spec.unique = NULL;
    SAY(weir_add(t->q, &spec, NULL, &t->err), weir_add_async(t->q, &spec, NULL, &f, &t->err));
    SAY(weir_add_many(t->q, &spec, 1, NULL, NULL, &t->err),
        weir_add_many_async(t->q, &spec, 1, NULL, NULL, &f, &t->err));
}

static void adding_once(rt *t, notes *n, bool async)
{
    weir_added added[2];
    weir_spec  specs[2] = { { .type = "mail" }, { .type = "film", .delay_ms = 1000 } };
    static const weir_token tokens[] = {
        { .key = "me", .number = 5 }, { .key = "me", .number = 5 }, { .key = "me", .number = 4 },
        { .key = "me", .number = 6 }, { .key = "", .number = 1 }
    };
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        memset(added, 1, sizeof added);
        SAY(weir_add_many(t->q, specs, 2, &tokens[i], added, &t->err),
            weir_add_many_async(t->q, specs, 2, &tokens[i], added, &f, &t->err));
        say_added(n, added, 2);
    }
    SAY(weir_add_many(t->q, specs, 2, &tokens[3], NULL, &t->err),
        weir_add_many_async(t->q, specs, 2, &tokens[3], NULL, &f, &t->err));
    SAY(weir_add_many(t->q, specs, 1, NULL, added, &t->err),
        weir_add_many_async(t->q, specs, 1, NULL, added, &f, &t->err));
    say_added(n, added, 1);
}

static void reading(rt *t, notes *n, bool async)
{
    for (uint64_t id = 0; id < 8; id += 2) {
        weir_job *job = (weir_job *)-1;
        SAY(weir_get(t->q, id, &job, &t->err), weir_get_async(t->q, id, &job, &f, &t->err));
        say_job(n, job);
        weir_job_free(job);
        bool there = id == 2 ? false : true;
        SAY(weir_exists(t->q, id, &there, &t->err),
            weir_exists_async(t->q, id, &there, &f, &t->err));
        note(n, "  %d\n", there);
    }
    weir_query queries[] = { { 0 }, { .state = WEIR_STATE_INACTIVE, .type = "mail", .limit = 2 },
                             { .ids_only = true, .descending = true }, { .state = 77 },
                             { .limit = WEIR_MAX_PAGE + 1 }, { .type = "" } };
    for (size_t i = 0; i <= sizeof queries / sizeof queries[0]; i++) {
        const weir_query *query = i ? &queries[i - 1] : NULL;
        weir_page *page = (weir_page *)-1;
        SAY(weir_list(t->q, query, &page, &t->err),
            weir_list_async(t->q, query, &page, &f, &t->err));
        note(n, "  page %zu %d\n", page ? page->n : 0, page ? page->more : -1);
        for (size_t k = 0; page && k < page->n; k++)
            note(n, "  %" PRIu64, page->job[k]->id);
        weir_page_free(page);
    }
    static const struct { weir_state state; const char *type; } counts[] = {
        { WEIR_STATE_ANY, NULL }, { WEIR_STATE_INACTIVE, NULL }, { WEIR_STATE_INACTIVE, "mail" },
        { WEIR_STATE_ANY, "film" }, { WEIR_STATE_ANY, "nobody" }, { WEIR_STATE_COUNT, NULL },
        { (weir_state)-1, "mail" } };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t count = 99;
        SAY(weir_count(t->q, counts[i].state, counts[i].type, &count, &t->err),
            weir_count_async(t->q, counts[i].state, counts[i].type, &count, &f, &t->err));
        note(n, "  count %" PRIu64 "\n", count);
    }
    weir_stats *stats = (weir_stats *)-1;
    SAY(weir_get_stats(t->q, &stats, &t->err), weir_get_stats_async(t->q, &stats, &f, &t->err));
    note(n, "  stats %zu %" PRIu64 " %s\n", stats->n, stats->last_id, stats->all.type);
    weir_stats_free(stats);
    weir_report *report = (weir_report *)-1;
    SAY(weir_check(t->q, false, &report, &t->err),
        weir_check_async(t->q, false, &report, &f, &t->err));
    note(n, "  report %zu %" PRIu64 "\n", report->n, report->jobs);
    weir_report_free(report);
}

static void changing(rt *t, notes *n, bool async)
{
    weir_change changes[] = { { .set_priority = true, .priority = 3 }, { .data = "[1]" },
                              { .data = "[" }, { .set_delay = true, .delay_ms = -1 },
                              { .state = 99 }, { 0 } };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        weir_updated is = { .from = WEIR_STATE_COUNT, .to = WEIR_STATE_COUNT };
        SAY(weir_update(t->q, 2, &changes[i], &is, &t->err),
            weir_update_async(t->q, 2, &changes[i], &is, &f, &t->err));
        note(n, "  from %d to %d\n", is.from, is.to);
    }
    weir_updated is;
    OK(weir_update(t->q, 1, &(weir_change){ .set_delay = true, .delay_ms = 60000 }, &is, &t->err));
    assert_int_equal(is.from, WEIR_STATE_INACTIVE);
    assert_int_equal(is.to, WEIR_STATE_DELAYED);
    OK(weir_promote(t->q, 1, &t->err));
    static const struct {
        weir_code (*plain)(weir_queue *, uint64_t, weir_error *);
        weir_code (*async)(weir_queue *, uint64_t, weir_future **, weir_error *);
    } verbs[] = { { weir_promote, weir_promote_async }, { weir_cancel, weir_cancel_async },
                  { weir_cancel, weir_cancel_async },   { weir_retry, weir_retry_async },
                  { weir_retry, weir_retry_async },     { weir_remove, weir_remove_async },
                  { weir_remove, weir_remove_async } };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        for (uint64_t id = 2; id <= 3; id++)
            SAY(verbs[i].plain(t->q, id, &t->err), verbs[i].async(t->q, id, &f, &t->err));
    static const char *const lines[] = { "first", "", "third" };
    for (size_t i = 0; i < 3; i++)
        SAY(weir_log(t->q, 1, 0, lines[i], 0, &t->err),
            weir_log_async(t->q, 1, 0, lines[i], 0, &f, &t->err));
    SAY(weir_log(t->q, 1, 0, NULL, 0, &t->err), weir_log_async(t->q, 1, 0, NULL, 0, &f, &t->err));
    SAY(weir_log(t->q, 77, 0, "x", 0, &t->err), weir_log_async(t->q, 77, 0, "x", 0, &f, &t->err));
    for (uint64_t id = 1; id <= 2; id++) {
        weir_lines *log = (weir_lines *)-1;
        SAY(weir_logs(t->q, id, 1, 5, &log, &t->err),
            weir_logs_async(t->q, id, 1, 5, &log, &f, &t->err));
        note(n, "  lines %zu %s\n", log ? log->n : 0, log && log->n ? log->line[1].text : "-");
        weir_lines_free(log);
    }
    weir_settings keep = { .keep_complete = { .count = 5 } };
    weir_settings bad = { .keep_failed = { .count = -1 } };
    SAY(weir_pause(t->q, "film", &t->err), weir_pause_async(t->q, "film", &f, &t->err));
    SAY(weir_resume(t->q, "film", &t->err), weir_resume_async(t->q, "film", &f, &t->err));
    SAY(weir_pause(t->q, NULL, &t->err), weir_pause_async(t->q, NULL, &f, &t->err));
    SAY(weir_configure(t->q, "film", &keep, &t->err),
        weir_configure_async(t->q, "film", &keep, &f, &t->err));
    SAY(weir_configure(t->q, "film", &bad, &t->err),
        weir_configure_async(t->q, "film", &bad, &f, &t->err));
}

static void moving(rt *t, notes *n, bool async)
{
    weir_job      jobs[2] = { { .id = 40, .type = "far", .state = WEIR_STATE_FAILED, .error = "no",
                                .created_at = 5 },
                              { .id = 1, .type = "far", .created_at = 6 } };
    weir_line     line = { .n = 3, .at = 4, .text = "third" };
    weir_incoming in[2] = { { .job = &jobs[0], .lines = &line, .n_lines = 1 },
                            { .job = &jobs[1] } };
    weir_imported out[2];
    /* the job is old: without this it would be removed */
    assert_int_equal(weir_configure(t->q, "far",
                                    &(weir_settings){ .keep_failed.age_ms = WEIR_FOREVER }, NULL),
                     WEIR_OK);
    for (int i = 0; i < 3; i++) {
        jobs[1].lost = i == 2 ? 9 : 0;
        memset(out, 1, sizeof out);
        SAY(weir_import(t->q, in, 2, out, &t->err),
            weir_import_async(t->q, in, 2, out, &f, &t->err));
        for (int k = 0; k < 2; k++)
            note(n, "  %" PRIu64 " %s %d %s\n", out[k].id, weir_state_name(out[k].state),
                 out[k].existed, out[k].err.msg);
    }
    jobs[1].id = jobs[1].lost = 0;
    SAY(weir_import(t->q, in, 2, NULL, &t->err), weir_import_async(t->q, in, 2, NULL, &f, &t->err));
    SAY(weir_import(t->q, NULL, 0, NULL, &t->err),
        weir_import_async(t->q, NULL, 0, NULL, &f, &t->err));
    SAY(weir_update(t->q, 40, &(weir_change){ .run_at = 5, .from = WEIR_BIT(WEIR_STATE_DELAYED) },
                    NULL, &t->err),
        weir_update_async(t->q, 40,
                          &(weir_change){ .run_at = 5, .from = WEIR_BIT(WEIR_STATE_DELAYED) }, NULL,
                          &f, &t->err));
}

static void taking(rt *t, notes *n, bool async)
{
    static const char *const mail[] = { "mail", "film", NULL }, *const star[] = { "*", NULL };
    weir_job *job[4];
    size_t    got = 99;
    SAY(weir_take(t->q, &(weir_taking){ .types = mail, .n = 2 }, job, &got, &t->err),
        weir_take_async(t->q, &(weir_taking){ .types = mail, .n = 2 }, job, &got, &f, &t->err));
    note(n, "  got %zu\n", got);
    for (size_t i = 0; i < got; i++) {
        say_job(n, job[i]);
        note(n, "  %s\n", weir_code_name(weir_job_done(job[i], "true", 0, NULL)));
        weir_job_free(job[i]);
    }
    for (int i = 0; i < 4; i++) {
        const char *const *types = i == 0 ? star : i == 1 ? NULL : mail;
        size_t             want = i == 2 ? 0 : i == 3 ? WEIR_MAX_PAGE + 1 : 1;
        got = 99;
        SAY(weir_take(t->q, &(weir_taking){ .types = types, .n = want }, job, &got, &t->err),
            weir_take_async(t->q, &(weir_taking){ .types = types, .n = want }, job, &got, &f,
                            &t->err));
        note(n, "  got %zu\n", got);
    }
    weir_job *done = (weir_job *)-1;
    SAY(weir_wait(t->q, 1, PATIENCE_MS, &done, &t->err),
        weir_wait_async(t->q, 1, &done, &f, &t->err));
    say_job(n, done);
    weir_job_free(done);
    SAY(weir_wait(t->q, 99, PATIENCE_MS, &done, &t->err),
        weir_wait_async(t->q, 99, &done, &f, &t->err));
    say_job(n, done);
}

static void plain_and_async_agree(void **state)
{
    (void)state;
    notes *n = calloc(4, sizeof *n);
    for (int i = 0; i < 4; i++) {
        rt t;
        rt_open(&t, i & 2 ? RT_SQLITE : RT_MEM, true);
        adding(&t, &n[i], i & 1);
        reading(&t, &n[i], i & 1);
        changing(&t, &n[i], i & 1);
        taking(&t, &n[i], i & 1);
        moving(&t, &n[i], i & 1);
        adding_once(&t, &n[i], i & 1);
        rt_check_and_close(&t);
        assert_string_equal(n[0].text, n[i].text);
    }
    assert_non_null(strstr(n[0].text, "jobs[2].type"));
    assert_non_null(strstr(n[0].text, "EINVAL (data: "));
    assert_non_null(strstr(n[0].text, "  40 failed 1 \n"));
    assert_non_null(strstr(n[0].text, "  1 any 0 job 1: this id is another job's here\n"));
    assert_non_null(strstr(n[0].text, "EINVAL (jobs[1].lost: 9 of 3)\n"
                                      "  0 any 0 jobs[1].lost: 9 of 3\n"));
    assert_non_null(strstr(n[0].text, "ESTALE (token: call 4 is over, the last was 5)\n"
                                      "  added 0 any 0\n"));
    assert_non_null(strstr(n[0].text, "ESTATE (job 40 is failed, but must be delayed for this)"));
    free(n);
}

/* ---- what is borrowed is copied ---- */

/* So many that some still wait when the memory is overwritten. */
RT_TEST(async_borrows_nothing)
{
    enum { MANY = 200 };
    char type[8], data[64], unique[16], keys[8], me[8];
    weir_future *f[MANY];
    weir_added   added[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(type, sizeof type, "t%d", i % 3);
        snprintf(data, sizeof data, "{\"n\":%d}", i);
        snprintf(unique, sizeof unique, "u%d", i);
        snprintf(keys, sizeof keys, "n");
        weir_spec spec = { .type = type, .data = data, .unique = unique, .search_keys = keys };
        weir_token token = { .key = me, .number = (uint64_t)i };
        strcpy(me, "me");
        OK(weir_add_many_async(t->q, &spec, 1, &token, &added[i], &f[i], &t->err));
        memset(me, '?', sizeof me);
        memset(&token, 0xff, sizeof token);
        memset(type, '?', sizeof type);
        memset(data, '?', sizeof data);
        memset(unique, '?', sizeof unique);
        memset(keys, '?', sizeof keys);
        memset(&spec, 0xff, sizeof spec);
    }
    for (int i = 0; i < MANY; i++)
        OK(end_of(f[i], &t->err));
    char line[8] = "hello", name[8] = "t1", word[8] = "7", change[8] = "[1,2]", paused[8] = "t2";
    char *types[] = { name, NULL };
    weir_page *page;
    weir_job  *job;
    uint64_t   count;
    size_t     got;
    OK(weir_log_async(t->q, added[0].id, 0, line, 0, &f[0], &t->err));
    OK(weir_list_async(t->q, &(weir_query){ .type = name, .search = word }, &page, &f[1], &t->err));
    OK(weir_count_async(t->q, WEIR_STATE_ANY, name, &count, &f[2], &t->err));
    OK(weir_update_async(t->q, added[0].id, &(weir_change){ .data = change }, NULL, &f[3],
                         &t->err));
    OK(weir_pause_async(t->q, paused, &f[4], &t->err));
    OK(weir_take_async(t->q, &(weir_taking){ .types = (const char *const *)types, .n = 1 }, &job,
                       &got, &f[5], &t->err));
    char          far[8] = "zfar", json[8] = "[7]", why[8] = "why", past[8] = "[ ]",
                  values[12] = "{\"v\":1}";
    weir_job      moved = { .id = 999, .type = far, .state = WEIR_STATE_FAILED, .data = json,
                            .data_len = 3, .error = why, .worker = why, .unique = far,
                            .search_keys = far, .progress_data = json, .progress_data_len = 3,
                            .history = past, .history_len = 3, .values = values,
                            .values_len = 7 };
    weir_line     third = { .n = 3, .at = 4, .text = line };
    weir_incoming in = { .job = &moved, .lines = &third, .n_lines = 1 };
    weir_imported out;
    OK(weir_import_async(t->q, &in, 1, &out, &f[6], &t->err));
    memset(&in, 0xff, sizeof in);
    memset(&third, 0xff, sizeof third);
    memset(&moved, 0xff, sizeof moved);
    line[0] = name[0] = word[0] = change[0] = paused[0] = far[0] = json[0] = why[0] = '!';
    past[0] = values[0] = '!';
    types[0] = NULL;
    for (int i = 0; i < 7; i++)
        OK(end_of(f[i], &t->err));
    assert_int_equal(out.id, 999);
    weir_job *there = rt_get(t, 999);
    assert_string_equal(there->type, "zfar");
    assert_string_equal(there->data, "[7]");
    assert_string_equal(there->error, "why");
    assert_string_equal(there->worker, "why");
    assert_string_equal(there->unique, "zfar");
    assert_string_equal(there->search_keys, "zfar");
    assert_string_equal(there->progress_data, "[7]");
    assert_string_equal(there->history, "[ ]");
    assert_string_equal(there->values, "{\"v\":1}");
    weir_job_free(there);
    weir_lines *log;
    OK(weir_logs(t->q, 999, 0, 0, &log, &t->err));
    assert_string_equal(log->line[0].text, "hello");
    weir_lines_free(log);
    assert_int_equal(page->n, 1);                     /* the one with n = 7 */
    assert_string_equal(page->job[0]->data, "{\"n\":7}");
    assert_int_equal(count, 67);
    assert_int_equal(got, 1);
    assert_string_equal(job->type, "t1");
    weir_page_free(page);
    weir_job_free(job);
    job = rt_get(t, added[0].id);
    assert_string_equal(job->data, "[1,2]");
    weir_job_free(job);
    job = rt_get(t, added[5].id);
    assert_string_equal(job->type, "t2");
    assert_string_equal(job->data, "{\"n\":5}");
    assert_string_equal(job->unique, "u5");
    weir_job_free(job);
    weir_stats *stats;
    OK(weir_get_stats(t->q, &stats, &t->err));
    assert_true(stats->type[2].paused);
    weir_stats_free(stats);
}

/* ---- futures ---- */

typedef struct heard {
    gate      came;
    weir_code code;
    char      msg[WEIR_ERROR_MAX];
} heard;

static void on_done(weir_code code, const weir_error *err, void *ctx)
{
    heard *h = ctx;
    h->code = code;
    snprintf(h->msg, sizeof h->msg, "%s", code ? err->msg : "");
    gate_up(&h->came);
}

/* Hold up the callback thread, and through it nothing else. */
static void hold_up(const weir_event *ev, void *ctx)
{
    (void)ev;
    gate_wait(ctx, 1);
}

RT_TEST(then_before_and_after)
{
    heard h[5] = { { .came = GATE_INIT }, { .came = GATE_INIT }, { .came = GATE_INIT },
                   { .came = GATE_INIT }, { .came = GATE_INIT } };
    weir_future *f;
    weir_added   added;
    weir_job    *job;
    OK(weir_add_async(t->q, &(weir_spec){ .type = "a" }, &added, &f, &t->err));
    weir_future_then(f, on_done, &h[0]);
    gate_wait(&h[0].came, 1);
    assert_int_equal(h[0].code, WEIR_OK);
    assert_true(weir_future_done(f));
    assert_int_equal(weir_future_wait(f, 0, &t->err), WEIR_OK);
    assert_int_equal(weir_future_then(f, on_done, &h[4]), WEIR_ESTATE);     /* at most one */
    weir_future_free(f);

    OK(weir_get_async(t->q, 12345, &job, &f, &t->err));
    assert_int_equal(weir_future_wait(f, PATIENCE_MS, &t->err), WEIR_ENOENT);
    weir_future_then(f, on_done, &h[1]);
    gate_wait(&h[1].came, 1);
    assert_int_equal(h[1].code, WEIR_ENOENT);
    assert_non_null(strstr(h[1].msg, "12345"));
    assert_null(job);
    weir_future_free(f);

    job = NULL;
    OK(weir_get_async(t->q, added.id, &job, &f, &t->err));
    weir_future_then(f, on_done, &h[2]);
    weir_future_free(f);
    weir_job_free(job);                            /* it may have come before the release */
    bool there = true;
    OK(weir_exists_async(t->q, 777, &there, &f, &t->err));
    weir_future_then(f, on_done, &h[3]);
    weir_future_free(f);
    gate_wait(&h[2].came, 1);
    gate_wait(&h[3].came, 1);
    assert_int_equal(h[2].code, WEIR_OK);
    assert_int_equal(h[3].code, WEIR_OK);             /* "no" is an answer */
    weir_job *check = rt_get(t, added.id);            /* and nothing else was called */
    weir_job_free(check);
    assert_int_equal(gate_now(&h[4].came), 0);
    assert_int_equal(gate_now(&h[0].came), 1);
}

RT_TEST(waiting_not_long_enough)
{
    uint64_t id = rt_add_type(t, "a");
    weir_future *f;
    weir_job    *job = NULL;
    OK(weir_wait_async(t->q, id, &job, &f, &t->err));
    assert_false(weir_future_done(f));
    assert_int_equal(weir_future_wait(f, 0, &t->err), WEIR_ETIMEOUT);
    assert_int_equal(weir_future_wait(f, 5, &t->err), WEIR_ETIMEOUT);
    assert_null(job);
    OK(weir_cancel(t->q, id, &t->err));
    OK(weir_future_wait(f, WEIR_FOREVER, &t->err));
    assert_int_equal(job->state, WEIR_STATE_CANCELLED);
    weir_job_free(job);
    weir_future_free(f);
    weir_future_free(NULL);
}

typedef struct answers {
    weir_job   *job[2];
    weir_page  *page;
    weir_stats *stats;
    weir_lines *lines;
    weir_added  added;
    uint64_t    count;
    bool        there;
} answers;

/* Released at once: the answer goes nowhere (the address sanitizer looks), and is freed. */
RT_TEST(released_before_done)
{
    uint64_t id = rt_add_type(t, "a");
    static const char *const types[] = { "a", NULL };
    for (int i = 0; i < 300; i++) {
        answers *own = calloc(1, sizeof *own);
        weir_future *f[8];
        OK(weir_get_async(t->q, id, &own->job[0], &f[0], &t->err));
        OK(weir_list_async(t->q, NULL, &own->page, &f[1], &t->err));
        OK(weir_get_stats_async(t->q, &own->stats, &f[2], &t->err));
        OK(weir_count_async(t->q, WEIR_STATE_ANY, NULL, &own->count, &f[3], &t->err));
        OK(weir_logs_async(t->q, id, 0, 0, &own->lines, &f[4], &t->err));
        OK(weir_exists_async(t->q, id, &own->there, &f[5], &t->err));
        OK(weir_wait_async(t->q, id, &own->job[1], &f[6], &t->err));
        OK(weir_add_async(t->q, &(weir_spec){ .type = "b" }, &own->added, &f[7], &t->err));
        if (i % 3 == 0)
            weir_future_wait(f[i / 3 % 6], PATIENCE_MS, NULL);
        for (int k = 0; k < 8; k++)
            weir_future_free(f[k]);
        /* What came before the release is ours; after it nothing comes. */
        weir_job_free(own->job[0]);
        weir_job_free(own->job[1]);
        weir_page_free(own->page);
        weir_stats_free(own->stats);
        weir_lines_free(own->lines);
        free(own);
        if (i % 50 == 0) {
            size_t n;
            weir_job *job;
            weir_future *taken;
            OK(weir_take_async(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &taken,
                               &t->err));
            OK(weir_future_wait(taken, PATIENCE_MS, &t->err));
            if (n)
                weir_job_free(job);
            weir_future_free(taken);
        }
    }
    weir_report *report;
    OK(weir_check_async(t->q, false, NULL, NULL, &t->err));
    OK(weir_check(t->q, false, &report, &t->err));
    assert_int_equal(report->jobs, 301);
    weir_report_free(report);
}

static void close_with_futures(const char *url)
{
    enum { MANY = 400 };
    rt box, *t = &box;
    rt_open(t, url, false);
    weir_future *f[MANY];
    weir_added  *added = calloc(MANY, sizeof *added);
    heard        h = { .came = GATE_INIT };
    uint64_t     id = rt_add(t, &(weir_spec){ .type = "never", .delay_ms = 100000000 });
    weir_job    *job = (weir_job *)-1;
    weir_future *wait;
    for (int i = 0; i < MANY; i++) {
        OK(weir_add_async(t->q, &(weir_spec){ .type = "a" }, &added[i], &f[i], &t->err));
        if (i % 2)
            weir_future_then(f[i], on_done, &h);
    }
    OK(weir_wait_async(t->q, id, &job, &wait, &t->err));
    weir_close(t->q);
    for (int i = 0; i < MANY; i++) {                   /* all were submitted, so all were done */
        assert_true(weir_future_done(f[i]));
        OK(end_of(f[i], &t->err));
        assert_true(added[i].id > id);
    }
    assert_int_equal(gate_now(&h.came), MANY / 2);
    assert_int_equal(weir_future_wait(wait, 0, &t->err), WEIR_ECLOSED);
    assert_null(job);
    weir_future_then(wait, on_done, &h);
    assert_int_equal(gate_now(&h.came), MANY / 2 + 1);
    assert_int_equal(h.code, WEIR_ECLOSED);
    weir_future_free(wait);
    free(added);
    tempdir_remove(t->dir);
}

static void futures_outstanding_at_close(void **state)
{
    (void)state;
    close_with_futures(RT_MEM);
    close_with_futures(RT_SQLITE);
}

static void then_call(weir_code code, const weir_error *err, void *ctx)
{
    (void)err;
    rt *t = ctx;
    uint64_t n;
    if (code || weir_count(t->q, WEIR_STATE_ANY, NULL, &n, NULL))
        abort();
    atomic_fetch_add(&t->now, 1);
}

RT_TEST(a_callback_may_call_and_wait)
{
    t->now = 0;
    for (int i = 0; i < 50; i++) {
        weir_future *f;
        OK(weir_add_async(t->q, &(weir_spec){ .type = "a" }, NULL, &f, &t->err));
        weir_future_then(f, then_call, t);
        weir_future_free(f);
    }
    UNTIL(t->now == 50);
}

/* ---- several queues ---- */

/* As Kue's test mode: what a program adds is there to be looked at, whole and in order, and
 * nothing runs. */
static void a_queue_in_memory_collects_jobs(void **state)
{
    (void)state;
    rt   box, other, *t = &box;
    bool there;
    rt_open(t, RT_MEM, true);
    rt_open(&other, RT_MEM, true);
    rt_add(t, &(weir_spec){ .type = "mail", .data = "{\"to\":\"ann\"}", .priority = 5 });
    rt_add(t, &(weir_spec){ .type = "mail", .data = "{\"to\":\"bob\"}", .delay_ms = 1000 });
    rt_later(t, 86400 * 1000);
    rt_until(t, 2, WEIR_STATE_INACTIVE);
    weir_page *page;
    OK(weir_list(t->q, &(weir_query){ .type = "mail" }, &page, &t->err));
    assert_int_equal(page->n, 2);
    for (size_t i = 0; i < page->n; i++) {
        const weir_job *job = page->job[i];
        assert_int_equal(job->id, i + 1);
        assert_string_equal(job->data, i ? "{\"to\":\"bob\"}" : "{\"to\":\"ann\"}");
        assert_int_equal(job->state, WEIR_STATE_INACTIVE);
        assert_int_equal(job->delivery, 0);
    }
    weir_page_free(page);
    OK(weir_exists(t->q, 2, &there, &t->err));
    assert_true(there);
    OK(weir_exists(other.q, 2, &there, &t->err));
    assert_false(there);
    rt_check_and_close(t);
    rt_check_and_close(&other);
}

static void several_queues(void **state)
{
    (void)state;
    enum { MANY = 6 };
    rt q[MANY];
    for (int i = 0; i < MANY; i++)
        rt_open(&q[i], i % 2 ? RT_SQLITE : RT_MEM, false);
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k <= i; k++)
            rt_add_type(&q[i], "a");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rt_count(&q[i], WEIR_STATE_INACTIVE), i + 1);
    for (int i = 0; i < MANY; i++)
        rt_check_and_close(&q[i]);
}

static void opening_what_cannot_be(void **state)
{
    (void)state;
    static const char *const urls[] = { "", "jobs.db", "what:ever", "sqlite:", "mem:?durability=x",
                                        "sqlite:/no/such/folder/jobs.db" };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        weir_error  err = { 0 };
        weir_queue *q = (weir_queue *)-1;
        weir_code   rc = weir_open(&q, urls[i], NULL, &err);
        if (!rc || q || !err.msg[0] || err.code != rc)
            fail_msg("%s: %s %s", urls[i], weir_code_name(rc), err.msg);
    }
    weir_close(NULL);
}

/* ---- listening from another side: the callback thread held up must not hold up calls ---- */

RT_TEST(calls_go_on_beside_a_slow_callback)
{
    gate go = GATE_INIT;
    weir_listener *l;
    OK(weir_listen(t->q, NULL, hold_up, &go, &l, &t->err));
    for (int i = 0; i < 20; i++)
        rt_add_type(t, "a");
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), 20);
    weir_future *f;
    OK(weir_add_async(t->q, &(weir_spec){ .type = "a" }, NULL, &f, &t->err));
    OK(end_of(f, &t->err));
    gate_up(&go);
    weir_unlisten(l);
}

/* ---- groups of errors ---- */

static void import_failed(rt *t, int64_t from, int n)
{
    enum { AT_ONCE = 500 };
    static weir_job      job[AT_ONCE];
    static weir_incoming in[AT_ONCE];
    for (int i = 0; i < n; i++) {
        int64_t at = from + i;
        job[i] = (weir_job){ .type = i % 10 ? "mail" : "sms", .state = WEIR_STATE_FAILED,
                             .data = "{}", .data_len = 2, .attempts = 1, .max_attempts = 1,
                             .created_at = at,
                             .error = i % 2 ? "timeout after 30s" : "no user 'ann'",
                             .failed_at = at, .finished_at = at };
        in[i] = (weir_incoming){ .job = &job[i], .new_id = true };
    }
    OK(weir_import(t->q, in, (size_t)n, NULL, &t->err));
}

RT_TEST(errors_in_groups)
{
    weir_error_groups *g, *again;
    int64_t            start = weir_now(t->q) - 20000;
    assert_int_equal(weir_get_errors(t->q, "", &g, &t->err), WEIR_EINVAL);
    assert_null(g);
    for (int i = 0; i < 2000; i += 500)
        import_failed(t, start + i, 500);
    OK(weir_get_errors(t->q, NULL, &g, &t->err));
    assert_int_equal(AWAIT(weir_get_errors_async(t->q, "mail", &again, &f, &t->err)), WEIR_OK);
    assert_int_equal(g->n, 3);
    assert_int_equal(g->looked, 2000);
    assert_false(g->more);
    assert_string_equal(g->group[0].error, "timeout after *s");
    assert_int_equal(g->group[0].count, 1000);
    assert_int_equal(g->group[0].last_at - g->group[0].first_at, 1998);
    assert_string_equal(g->group[1].error, "no user '*'");
    assert_int_equal(g->group[1].count, 800);
    assert_string_equal(g->group[2].type, "sms");
    assert_int_equal(again->n, 2);
    assert_int_equal(again->looked, 1800);
    weir_error_groups_free(g);
    weir_error_groups_free(again);
}

/* A look is bounded, and says so. */
static void a_look_at_errors_ends(void **state)
{
    rt                 rt_, *t = &rt_;
    weir_error_groups *g;
    (void)state;
    rt_open(t, RT_MEM, false);
    int64_t start = weir_now(t->q) - 20000;
    for (int i = 0; i < WEIR_MAX_ERROR_JOBS; i += 500)
        import_failed(t, start + i, 500);
    OK(weir_get_errors(t->q, NULL, &g, &t->err));
    assert_int_equal(g->looked, WEIR_MAX_ERROR_JOBS);
    assert_false(g->more);
    weir_error_groups_free(g);
    import_failed(t, start + WEIR_MAX_ERROR_JOBS, 1);
    OK(weir_get_errors(t->q, NULL, &g, &t->err));
    assert_int_equal(g->looked, WEIR_MAX_ERROR_JOBS);
    assert_true(g->more);
    assert_int_equal(g->group[g->n - 1].last_at, start + WEIR_MAX_ERROR_JOBS);
    weir_error_groups_free(g);
    rt_close(t);
}

/* ---- how the store was used ---- */

RT_TEST(every_operation_is_in_one_batch)
{
    weir_metrics before, after;
    uint64_t     batches = 0, most = 0;
    weir_get_metrics(t->q, &before);
    for (int i = 0; i < 20; i++)
        rt_add_type(t, "a");
    weir_get_metrics(t->q, &after);
    assert_true(after.operations >= before.operations + 20);
    assert_true(after.batches > before.batches && after.batches <= after.operations);
    assert_true(after.busy_ns > before.busy_ns);
    for (size_t i = 0; i < WEIR_BATCH_SIZES; i++) {
        batches += after.size[i];
        most += after.size[i] << i;
    }
    assert_int_equal(batches, after.batches);
    assert_true(after.operations <= most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_async_agree),
        cmocka_unit_test(async_borrows_nothing),
        cmocka_unit_test(then_before_and_after),
        cmocka_unit_test(waiting_not_long_enough),
        cmocka_unit_test(released_before_done),
        cmocka_unit_test(futures_outstanding_at_close),
        cmocka_unit_test(a_callback_may_call_and_wait),
        cmocka_unit_test(a_queue_in_memory_collects_jobs),
        cmocka_unit_test(several_queues),
        cmocka_unit_test(opening_what_cannot_be),
        cmocka_unit_test(calls_go_on_beside_a_slow_callback),
        cmocka_unit_test(errors_in_groups),
        cmocka_unit_test(a_look_at_errors_ends),
        cmocka_unit_test(every_operation_is_in_one_batch),
    };
    return cmocka_run_group_tests_name("runtime_calls", tests, NULL, NULL);
}
