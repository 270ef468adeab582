/* test_task.c - tasks, on every store.
 *
 *   test_task [URL...]      as test_conformance */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/child.h"
#include "support/store_fixture.h"

/* ---- what cases share ---- */

typedef struct rig {
    rt          t;
    weir_tasks *tasks;
    gate        ran;
    weir_error  err;
} rig;

#undef OK
#define OK(call) assert_ok_((call), &r->err, #call, __FILE__, __LINE__)

static void open_tasks(rig *r, int64_t version)
{
    OK(weir_tasks_open(&r->tasks, r->t.q, &(weir_tasks_config){ .version = version }, &r->err));
}

static void submit(rig *r, const weir_task_spec *spec)
{
    OK(weir_task_submit(r->tasks, spec, 1, NULL, &r->err));
}

static weir_task *find(rig *r, const char *id)
{
    weir_task *task;
    OK(weir_task_find(r->tasks, id, &task, &r->err));
    return task;
}

static weir_task_state task_state(rig *r, const char *id)
{
    weir_task      *task = find(r, id);
    weir_task_state state = task->state;
    weir_task_free(task);
    return state;
}

/* Fire until `n` more tasks have run. */
static void fire_until(rig *r, size_t n)
{
    size_t total = 0, fired;
    UNTIL((assert_ok_(weir_task_fire(r->tasks, n - total, &fired, &r->err), &r->err, "fire",
                      __FILE__, __LINE__), total += fired) >= n);
    assert_int_equal(total, n);
}

static size_t fire_all(rig *r)
{
    size_t fired;
    OK(weir_task_fire(r->tasks, 0, &fired, &r->err));
    return fired;
}

static weir_code count_up(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)task;
    rig *r = ctx;
    gate_up(&r->ran);
    return weir_task_done(run, "done", NULL);
}

static void serve(rig *r, const char *service, weir_task_fn *fn)
{
    OK(weir_task_serve(r->tasks, service, &(weir_task_service){ .run = fn, .ctx = r }, &r->err));
}

/* ---- submit and find ---- */

static void a_task_has_defaults(rig *r)
{
    weir_task_submitted added;
    OK(weir_task_submit(r->tasks, &(weir_task_spec){ .service = "mail" }, 1, &added, &r->err));
    assert_int_equal(strlen(added.id), 20);
    weir_task *task = find(r, added.id);
    assert_string_equal(task->spec.id, added.id);
    assert_string_equal(task->spec.service, "mail");
    assert_string_equal(task->spec.name, "mail");
    assert_string_equal(task->spec.classifier, "default");
    assert_string_equal(task->spec.result_store, "direct");
    assert_null(task->spec.relative_id);
    assert_null(task->spec.attachment);
    assert_int_equal(task->spec.timeout_ms, 0);
    assert_int_equal(task->spec.version, 0);
    assert_int_equal(task->state, WEIR_TASK_READY);
    assert_int_equal(task->job, added.job);
    assert_int_equal(task->spec.run_at, task->created_at);
    assert_null(task->result_state);
    weir_task_free(task);
}

static void all_members_are_found_again(rig *r)
{
    int64_t        at = weir_now(r->t.q) + 60000;
    weir_task_spec spec = { .service = "mail", .id = "order-1", .classifier = "orders",
                            .relative_id = "o 1/\u00e4", .name = "say thanks",
                            .attachment = "{\"to\":[\"ann\", 1e2]}", .var1 = "a", .var2 = "b\"c",
                            .var3 = "d", .result_store = "elsewhere", .version = 7,
                            .timeout_ms = 5000, .run_at = at };
    submit(r, &spec);
    weir_task *task = find(r, "order-1");
    assert_string_equal(task->spec.service, "mail");
    assert_string_equal(task->spec.classifier, "orders");
    assert_string_equal(task->spec.relative_id, spec.relative_id);
    assert_string_equal(task->spec.name, "say thanks");
    assert_string_equal(task->spec.attachment, spec.attachment);
    assert_string_equal(task->spec.var1, "a");
    assert_string_equal(task->spec.var2, "b\"c");
    assert_string_equal(task->spec.var3, "d");
    assert_string_equal(task->spec.result_store, "elsewhere");
    assert_int_equal(task->spec.version, 7);
    assert_int_equal(task->spec.timeout_ms, 5000);
    assert_int_equal(task->spec.run_at, at);
    weir_task_free(task);
    assert_int_equal(weir_task_find(r->tasks, "order-2", &task, &r->err), WEIR_ENOENT);
    assert_null(task);
}

static void what_is_wrong_is_named(rig *r)
{
    static const struct { weir_task_spec spec; const char *field; weir_code code; } wrong[] = {
        { { 0 }, "service", WEIR_EINVAL },
        { { .service = "a@1" }, "service", WEIR_EINVAL },
        { { .service = "a\nb" }, "service", WEIR_EINVAL },
        { { .service = "a", .id = "" }, "id", WEIR_EINVAL },
        { { .service = "a", .attachment = "{" }, "attachment", WEIR_EINVAL },
        { { .service = "a", .version = -1 }, "version", WEIR_EINVAL },
        { { .service = "a", .timeout_ms = -1 }, "timeout_ms", WEIR_EINVAL },
        { { .service = "a", .schedule = "61 * * * *" }, "schedule", WEIR_EINVAL },
        { { .service = "a", .zone = "UTC" }, "zone", WEIR_EINVAL },
        { { .service = "a", .var2 = "\xff" }, "var2", WEIR_EINVAL },
    };
    char long_text[WEIR_MAX_TASK_TEXT + 2];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_task_submitted out;
        assert_int_equal(weir_task_submit(r->tasks, &wrong[i].spec, 1, &out, &r->err),
                         wrong[i].code);
        assert_string_equal(r->err.field, wrong[i].field);
        assert_int_equal(out.job, 0);
    }
    weir_task_spec too_long = { .service = "a", .relative_id = long_text };
    assert_int_equal(weir_task_submit(r->tasks, &too_long, 1, NULL, &r->err), WEIR_ELIMIT);
    assert_string_equal(r->err.field, "relative_id");
    char *large = malloc(WEIR_MAX_DATA + 1);        /* as JSON, and too much with the rest */
    memset(large, '1', WEIR_MAX_DATA);
    large[WEIR_MAX_DATA] = 0;
    too_long = (weir_task_spec){ .service = "a", .attachment = large };
    assert_int_equal(weir_task_submit(r->tasks, &too_long, 1, NULL, &r->err), WEIR_ELIMIT);
    assert_string_equal(r->err.field, "attachment");
    assert_int_equal(strncmp(r->err.msg, "attachment: ", 12), 0);
    free(large);
    assert_int_equal(rt_count(&r->t, WEIR_STATE_ANY), 0);
}

static void many_are_submitted_each_by_itself(rig *r)
{
    weir_task_spec spec[] = { { .service = "a", .id = "1" }, { .service = "a", .version = -1 },
                              { .service = "b" }, { .service = "a", .id = "1" } };
    weir_task_submitted out[4];
    assert_int_equal(weir_task_submit(r->tasks, spec, 4, out, &r->err), WEIR_EINVAL);
    assert_string_equal(r->err.field, "tasks[1].version");
    assert_int_equal(out[0].err.code, WEIR_OK);
    assert_int_equal(out[1].err.code, WEIR_EINVAL);
    assert_int_equal(out[2].err.code, WEIR_OK);
    assert_int_equal(out[3].err.code, WEIR_ESTATE);
    assert_int_equal(rt_count(&r->t, WEIR_STATE_ANY), 2);
}

static void an_id_is_unique_also_after_the_end(rig *r)
{
    weir_task_spec spec = { .service = "a", .id = "once" };
    serve(r, "a", count_up);
    submit(r, &spec);
    assert_int_equal(weir_task_submit(r->tasks, &spec, 1, NULL, &r->err), WEIR_ESTATE);
    fire_until(r, 1);
    assert_int_equal(weir_task_submit(r->tasks, &spec, 1, NULL, &r->err), WEIR_ESTATE);
    spec.service = "b";             /* unique in the queue, not in the service */
    assert_int_equal(weir_task_submit(r->tasks, &spec, 1, NULL, &r->err), WEIR_ESTATE);
    weir_task *task;
    bool       existed;
    OK(weir_task_find_or_submit(r->tasks, &spec, &task, &existed, &r->err));
    assert_true(existed);
    assert_int_equal(task->state, WEIR_TASK_COMPLETED);
    uint64_t job = task->job;
    weir_task_free(task);
    for (int i = 0; i < 3; i++) {   /* removed, the id is free, however often that happens */
        OK(weir_remove(r->t.q, job, &r->err));
        OK(weir_task_find_or_submit(r->tasks, &spec, &task, &existed, &r->err));
        assert_false(existed);
        job = task->job;
        weir_task_free(task);
    }
    assert_int_equal(rt_count(&r->t, WEIR_STATE_ANY), 1);
}

static void ids_are_in_order(rig *r)
{
    enum { N = 200 };
    weir_task_spec      spec[N];
    weir_task_submitted out[N];
    for (int i = 0; i < N; i++)
        spec[i] = (weir_task_spec){ .service = "a" };
    OK(weir_task_submit(r->tasks, spec, N, out, &r->err));
    for (int i = 1; i < N; i++)
        assert_true(strcmp(out[i - 1].id, out[i].id) < 0);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

typedef char id_text[WEIR_MAX_TASK_ID + 1];

static void assert_all_differ(id_text *ids, size_t n)
{
    qsort(ids, n, sizeof *ids, by_text);
    for (size_t i = 1; i < n; i++)
        assert_string_not_equal(ids[i - 1], ids[i]);
}

enum { ID_THREADS = 4, ID_TASKS = 250 };

typedef struct submitter {
    rig      *r;
    pthread_t thread;
    id_text   ids[ID_TASKS];
    weir_code rc;
} submitter;

static void *submit_without_ids(void *ctx)
{
    submitter          *s = ctx;
    weir_task_submitted out[10];
    weir_task_spec      spec[10];
    for (int i = 0; i < 10; i++)
        spec[i] = (weir_task_spec){ .service = "a" };
    for (int i = 0; i < ID_TASKS && !s->rc; i += 10) {
        s->rc = weir_task_submit(s->r->tasks, spec, 10, out, NULL);
        for (int k = 0; k < 10; k++)
            memcpy(s->ids[i + k], out[k].id, sizeof out[k].id);
    }
    return NULL;
}

static void ids_of_threads_differ(rig *r)
{
    static submitter all[ID_THREADS];
    static id_text   ids[ID_THREADS * ID_TASKS];
    for (int i = 0; i < ID_THREADS; i++) {
        all[i].r = r;
        assert_int_equal(pthread_create(&all[i].thread, NULL, submit_without_ids, &all[i]), 0);
    }
    for (int i = 0; i < ID_THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].rc, WEIR_OK);
        for (int k = 1; k < ID_TASKS; k++)      /* each thread's are in order */
            assert_true(strcmp(all[i].ids[k - 1], all[i].ids[k]) < 0);
        memcpy(ids[i * ID_TASKS], all[i].ids, sizeof all[i].ids);
    }
    assert_all_differ(ids, ID_THREADS * ID_TASKS);
}

static size_t check_list(rig *r, const weir_task_query *query, const char *want)
{
    weir_task_page *page;
    char            text[400] = "";
    OK(weir_task_list(r->tasks, query, &page, &r->err));
    for (size_t i = 0; i < page->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", page->task[i]->spec.id);
    if (want)
        assert_string_equal(text, want);
    size_t n = page->n;
    weir_task_page_free(page);
    return n;
}

static void lists_are_by_classifier_and_relative_ids(rig *r)
{
    const weir_task_spec spec[] = {
        { .service = "a", .id = "1", .relative_id = "x" },
        { .service = "a", .id = "2", .relative_id = "y" },
        { .service = "b", .id = "3", .relative_id = "x", .classifier = "other" },
        { .service = "b", .id = "4", .relative_id = "x" },
        { .service = "b", .id = "5", .classifier = "other" },
    };
    for (size_t i = 0; i < 5; i++)
        submit(r, &spec[i]);
    rt_add(&r->t, &(weir_spec){ .type = "a", .data = "{\"task\":\"1\"}", .search = true });
    const char *const x[] = { "x", NULL }, *const yx[] = { "y", "x", NULL };
    const char *const z[] = { "z", NULL };
    assert_int_equal(check_list(r, &(weir_task_query){ 0 }, NULL), 5);
    assert_int_equal(check_list(r, &(weir_task_query){ .classifier = "other" }, NULL), 2);
    assert_int_equal(check_list(r, &(weir_task_query){ .relative_ids = x }, NULL), 2);
    assert_int_equal(check_list(r, &(weir_task_query){ .relative_ids = yx }, NULL), 3);
    check_list(r, &(weir_task_query){ .relative_ids = x, .classifier = "other" }, "3 ");
    check_list(r, &(weir_task_query){ .relative_ids = z }, "");
    check_list(r, &(weir_task_query){ .classifier = "none" }, "");
    OK(weir_task_cancel(r->tasks, (const char *[]){ "4" }, 1, NULL, NULL, &r->err));
    check_list(r, &(weir_task_query){ .state = WEIR_TASK_CANCELLED }, "4 ");
    check_list(r, &(weir_task_query){ .state = WEIR_TASK_READY, .relative_ids = x }, "1 ");
    /* Page by page. */
    weir_task_query query = { .limit = 2 };
    size_t          total = 0;
    for (bool more = true; more;) {
        weir_task_page *page;
        OK(weir_task_list(r->tasks, &query, &page, &r->err));
        total += page->n;
        more = page->more;
        query.after = page->next;
        weir_task_page_free(page);
    }
    assert_int_equal(total, 5);
}

/* ---- run ---- */

static weir_code answer(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    gate_up(&r->ran);
    assert_int_equal(task->state, WEIR_TASK_RUNNING);
    assert_non_null(task->taken);
    if (task->spec.var1 && strcmp(task->spec.var1, "fail") == 0)
        return weir_task_fail(run, "no %s", "luck");
    if (task->spec.var1 && strcmp(task->spec.var1, "code") == 0)
        return WEIR_EIO;
    return weir_task_done(run, "sent", task->spec.attachment);
}

static void a_run_ends_with_its_result(rig *r)
{
    serve(r, "a", answer);
    submit(r, &(weir_task_spec){ .service = "a", .id = "good", .attachment = "{\"n\":[1,2]}" });
    submit(r, &(weir_task_spec){ .service = "a", .id = "bad", .var1 = "fail" });
    submit(r, &(weir_task_spec){ .service = "a", .id = "worse", .var1 = "code" });
    fire_until(r, 3);
    assert_int_equal(fire_all(r), 0);
    weir_task *good = find(r, "good"), *bad = find(r, "bad"), *worse = find(r, "worse");
    assert_int_equal(good->state, WEIR_TASK_COMPLETED);
    assert_string_equal(good->result_state, "sent");
    assert_string_equal(good->result, "{\"n\":[1,2]}");
    assert_non_null(good->host);
    assert_non_null(good->ip);
    assert_true(good->started_at >= good->created_at && good->ended_at >= good->started_at);
    assert_int_equal(bad->state, WEIR_TASK_FAILED);
    assert_string_equal(bad->result_state, "no luck");
    assert_true(bad->ended_at > 0);
    assert_null(bad->result);
    assert_int_equal(worse->state, WEIR_TASK_FAILED);
    assert_string_equal(worse->result_state, weir_code_text(WEIR_EIO));
    weir_task_free(good);
    weir_task_free(bad);
    weir_task_free(worse);
}

/* A worker that knows nothing of tasks. */
static void a_plain_result_is_the_result(rig *r)
{
    submit(r, &(weir_task_spec){ .service = "a", .id = "1" });
    const char *const types[] = { "a", NULL };
    weir_job         *job;
    size_t            n;
    OK(weir_take(r->t.q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &r->err));
    assert_int_equal(n, 1);
    assert_int_equal(weir_job_done(job, "{\"sent\":true}", 0, NULL), WEIR_OK);
    weir_job_free(job);
    weir_task *task = find(r, "1");
    assert_int_equal(task->state, WEIR_TASK_COMPLETED);
    assert_null(task->result_state);
    assert_string_equal(task->result, "{\"sent\":true}");
    weir_task_free(task);
}

static void fire_runs_as_many_as_asked_for(rig *r)
{
    serve(r, "a", count_up);
    serve(r, "b", count_up);
    for (int i = 0; i < 5; i++)
        submit(r, &(weir_task_spec){ .service = i % 2 ? "a" : "b" });
    submit(r, &(weir_task_spec){ .service = "elsewhere", .id = "other" });
    fire_until(r, 1);
    fire_until(r, 2);
    assert_int_equal(fire_all(r), 2);
    assert_int_equal(fire_all(r), 0);
    assert_int_equal(gate_now(&r->ran), 5);
    assert_int_equal(task_state(r, "other"), WEIR_TASK_READY);
}

static void a_task_runs_at_its_time(rig *r)
{
    serve(r, "a", count_up);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1",
                                 .run_at = weir_now(r->t.q) + 5000 });
    assert_int_equal(fire_all(r), 0);
    rt_later(&r->t, 4000);
    assert_int_equal(fire_all(r), 0);
    rt_later(&r->t, 1001);
    fire_until(r, 1);
    assert_int_equal(task_state(r, "1"), WEIR_TASK_COMPLETED);
}

static void a_task_fired_by_hand_runs_once(rig *r)
{
    serve(r, "a", count_up);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1",
                                 .run_at = weir_now(r->t.q) + 5000 });
    submit(r, &(weir_task_spec){ .service = "b", .id = "2" });
    OK(weir_task_fire_id(r->tasks, "1", &r->err));
    assert_int_equal(gate_now(&r->ran), 1);
    assert_int_equal(task_state(r, "1"), WEIR_TASK_COMPLETED);
    assert_int_equal(weir_task_fire_id(r->tasks, "1", &r->err), WEIR_ESTATE);
    assert_int_equal(weir_task_fire_id(r->tasks, "2", &r->err), WEIR_EINVAL);
    assert_int_equal(weir_task_fire_id(r->tasks, "3", &r->err), WEIR_ENOENT);
    rt_later(&r->t, 6000);
    submit(r, &(weir_task_spec){ .service = "a", .id = "4" });
    fire_until(r, 1);               /* the new one: the first does not run again at its time */
    assert_int_equal(fire_all(r), 0);
    assert_int_equal(gate_now(&r->ran), 2);
}

static void a_promoted_task_is_due(rig *r)
{
    serve(r, "a", count_up);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1",
                                 .run_at = weir_now(r->t.q) + 3600000 });
    OK(weir_task_promote(r->tasks, "1", &r->err));
    fire_until(r, 1);
    assert_int_equal(weir_task_promote(r->tasks, "1", &r->err), WEIR_ESTATE);
}

static weir_code turn_clock(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    gate_up(&r->ran);
    if (gate_now(&r->ran) == 1) {
        rt_later(&r->t, 3000);
        UNTIL(rt_state(&r->t, task->job) != WEIR_STATE_ACTIVE);
    }
    return weir_task_done(run, "too late", NULL);
}

static void a_slow_task_times_out(rig *r)
{
    serve(r, "a", turn_clock);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .timeout_ms = 2000 });
    fire_until(r, 1);
    weir_task *task = find(r, "1");
    assert_int_equal(task->state, WEIR_TASK_TIMED_OUT);
    assert_string_equal(task->result_state, "TTL exceeded");
    weir_task_free(task);
    assert_int_equal(fire_all(r), 0);
}

static weir_code give_result(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)task, (void)ctx;
    return weir_task_done(run, NULL, "{\"n\":1}");
}

/* Wherever it is to be kept, it is found with the task, as long as that is kept: 7 days, in Kue's
 * layouts for ever. */
static void a_result_is_kept_for_seven_days(rig *r)
{
    weir_task *task;
    serve(r, "a", give_result);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .result_store = "RedisResultStore" });
    fire_until(r, 1);
    rt_later(&r->t, WEIR_DEFAULT_KEEP_COMPLETE_MS - 60000);
    task = find(r, "1");
    assert_string_equal(task->spec.result_store, "RedisResultStore");
    assert_string_equal(task->result, "{\"n\":1}");
    weir_task_free(task);
    rt_later(&r->t, 2 * 60000);
    if (strstr(r->t.url, "kue")) {
        weir_task_free(find(r, "1"));
        return;
    }
    weir_code rc;
    UNTIL((rc = weir_task_find(r->tasks, "1", &task, &r->err), weir_task_free(task),
           rc == WEIR_ENOENT));
}

static void a_service_that_is_not_here_is_named(rig *r)
{
    size_t fired;
    assert_int_equal(weir_task_fire(r->tasks, 0, &fired, &r->err), WEIR_ESTATE);
    assert_int_equal(weir_tasks_run(r->tasks, 1, &r->err), WEIR_ESTATE);
    assert_non_null(strstr(r->err.msg, "no service is served here"));
    submit(r, &(weir_task_spec){ .service = "b", .id = "1" });
    serve(r, "a", count_up);
    assert_int_equal(weir_task_serve(r->tasks, "a", &(weir_task_service){ .run = count_up },
                                     &r->err), WEIR_ESTATE);
    assert_int_equal(weir_task_serve(r->tasks, "c", &(weir_task_service){ .run = NULL }, &r->err),
                     WEIR_EINVAL);
    assert_int_equal(weir_task_fire_id(r->tasks, "1", &r->err), WEIR_EINVAL);
    assert_string_equal(r->err.field, "service");
    assert_non_null(strstr(r->err.msg, "b is not served here"));
    assert_int_equal(task_state(r, "1"), WEIR_TASK_READY);
    uint64_t id = rt_add_type(&r->t, "a");      /* a job that is no task */
    fire_until(r, 1);
    weir_job *job = rt_get(&r->t, id);
    assert_int_equal(job->state, WEIR_STATE_FAILED);
    assert_non_null(strstr(job->error, "is not a task"));
    weir_job_free(job);
}

static weir_code say_ttl(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)task, (void)ctx;
    return weir_task_fail(run, "TTL exceeded");
}

static void words_alone_are_no_timeout(rig *r)
{
    serve(r, "a", say_ttl);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .timeout_ms = 60000 });
    submit(r, &(weir_task_spec){ .service = "a", .id = "2" });
    fire_until(r, 2);
    assert_int_equal(task_state(r, "1"), WEIR_TASK_FAILED);
    assert_int_equal(task_state(r, "2"), WEIR_TASK_FAILED);
}

static char order[40];

static weir_code hook_before(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)ctx;
    strcat(order, "before ");
    return task->spec.var1 ? weir_task_fail(run, "not allowed") : WEIR_OK;
}

static weir_code hook_run(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)run, (void)task, (void)ctx;
    strcat(order, "run ");
    return WEIR_OK;
}

static void hook_after(const weir_task *task, weir_code outcome, void *ctx)
{
    (void)task, (void)ctx;
    strcat(order, outcome ? "after! " : "after ");
}

static void hooks_are_around_a_run(rig *r)
{
    weir_task_service s = { .run = hook_run, .before = hook_before, .after = hook_after };
    OK(weir_task_serve(r->tasks, "a", &s, &r->err));
    assert_int_equal(weir_task_serve(r->tasks, "a", &s, &r->err), WEIR_ESTATE);
    order[0] = 0;
    submit(r, &(weir_task_spec){ .service = "a", .id = "1" });
    fire_until(r, 1);
    assert_string_equal(order, "before run after ");
    order[0] = 0;
    submit(r, &(weir_task_spec){ .service = "a", .id = "2", .var1 = "no" });
    fire_until(r, 1);
    assert_string_equal(order, "before after! ");
    assert_int_equal(task_state(r, "2"), WEIR_TASK_FAILED);
}

static void keep_outcome(const weir_task *task, weir_code outcome, void *ctx)
{
    (void)ctx;
    snprintf(order + strlen(order), sizeof order - strlen(order), "%s %s ", task->spec.id,
             weir_code_name(outcome));
}

static weir_code cancelled_meanwhile(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    OK(weir_cancel(r->t.q, task->job, &r->err));
    UNTIL(weir_job_cancelled(task->taken));
    return weir_task_done(run, "too late", NULL);
}

/* The store has the last word on how a task has ended, and the hook is told that. */
static void the_hook_learns_of_a_lost_task(rig *r)
{
    weir_task_service slow = { .run = turn_clock, .after = keep_outcome, .ctx = r };
    weir_task_service cancelled = { .run = cancelled_meanwhile, .after = keep_outcome, .ctx = r };
    order[0] = 0;
    OK(weir_task_serve(r->tasks, "slow", &slow, &r->err));
    OK(weir_task_serve(r->tasks, "cancelled", &cancelled, &r->err));
    submit(r, &(weir_task_spec){ .service = "slow", .id = "1", .timeout_ms = 2000 });
    fire_until(r, 1);
    assert_int_equal(task_state(r, "1"), WEIR_TASK_TIMED_OUT);
    submit(r, &(weir_task_spec){ .service = "cancelled", .id = "2" });
    fire_until(r, 1);
    assert_string_equal(order, "1 ETIMEOUT 2 ESTALE ");
}

static weir_code not_json(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)ctx;
    weir_code rc = strcmp(task->spec.id, "1") ? weir_task_again(run, -1, "soon")
                                              : weir_task_done(run, "sent", "{\"n\":1");
    assert_int_equal(rc, WEIR_EINVAL);
    return rc;
}

static void a_refused_answer_says_why(rig *r)
{
    serve(r, "a", not_json);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1" });
    submit(r, &(weir_task_spec){ .service = "a", .id = "2" });
    fire_until(r, 2);
    static const char *const want[] = { "result: not JSON: ", "delay_ms: -1, must be 0 to " };
    for (int i = 0; i < 2; i++) {
        weir_task *task = find(r, i ? "2" : "1");
        assert_int_equal(task->state, WEIR_TASK_FAILED);
        assert_non_null(strstr(task->result_state, want[i]));
        weir_task_free(task);
    }
}

static weir_code twice(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    gate_up(&r->ran);
    if (gate_now(&r->ran) == 1)
        return weir_task_again(run, 1000, "not yet");
    assert_string_equal(task->result_state, "not yet");
    return weir_task_done(run, "now", NULL);
}

static void a_task_can_be_fired_again(rig *r)
{
    serve(r, "a", twice);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1" });
    fire_until(r, 1);
    weir_task *task = find(r, "1");
    assert_int_equal(task->state, WEIR_TASK_READY);
    assert_string_equal(task->result_state, "not yet");
    weir_task_free(task);
    assert_int_equal(fire_all(r), 0);
    rt_later(&r->t, 1001);
    fire_until(r, 1);
    assert_int_equal(task_state(r, "1"), WEIR_TASK_COMPLETED);
}

/* ---- schedules ---- */

static weir_code scheduled(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    (void)task;
    gate_up(&r->ran);
    return gate_now(&r->ran) == 1 ? weir_task_done(run, "fine", NULL)
                                  : weir_task_fail(run, "broken");
}

static void a_scheduled_task_is_ready_again(rig *r)
{
    int64_t day = 86400000, now = weir_now(r->t.q), midnight = (now / day + 1) * day;
    serve(r, "a", scheduled);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .schedule = "@daily" });
    for (int i = 0; i < 2; i++) {       /* after success, and after a failure */
        weir_task *task = find(r, "1");
        assert_int_equal(task->state, WEIR_TASK_READY);
        assert_int_equal(task->spec.run_at, midnight + i * day);
        if (i)
            assert_string_equal(task->result_state, "fine");
        weir_task_free(task);
        rt_later(&r->t, midnight + i * day - weir_now(r->t.q) + 1);
        fire_until(r, 1);
    }
    weir_task *task = find(r, "1");
    assert_int_equal(task->state, WEIR_TASK_READY);
    assert_string_equal(task->result_state, "broken");
    assert_int_equal(task->spec.run_at, midnight + 2 * day);
    weir_task_free(task);
}

static void a_scheduled_task_that_timed_out_is_armed(rig *r)
{
    int64_t hour = 3600000, next = (weir_now(r->t.q) / hour + 1) * hour;
    size_t  armed;
    serve(r, "a", turn_clock);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .schedule = "@hourly",
                                 .timeout_ms = 2000 });
    rt_later(&r->t, next - weir_now(r->t.q) + 1);
    fire_until(r, 1);
    bool served = r->t.served != NULL;      /* then the server arms it, perhaps */
    assert_true(served || task_state(r, "1") == WEIR_TASK_TIMED_OUT);
    OK(weir_task_initialize(r->tasks, "other", &armed, &r->err));
    assert_int_equal(armed, 0);
    OK(weir_task_initialize(r->tasks, NULL, &armed, &r->err));
    assert_true(armed == 1 || served);
    weir_task *task = find(r, "1");
    assert_int_equal(task->state, WEIR_TASK_READY);
    assert_string_equal(task->result_state, "TTL exceeded");
    assert_int_equal(task->spec.run_at, next + hour);
    weir_task_free(task);
    OK(weir_task_initialize(r->tasks, NULL, &armed, &r->err));
    assert_int_equal(armed, 0);
}

static weir_code timed_out(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    (void)run;
    rt_later(&r->t, 3000);
    UNTIL(weir_job_cancelled(task->taken));
    return WEIR_OK;
}

static void all_classifiers_are_initialized(rig *r)
{
    static const char *const classifiers[] = { NULL, "orders", "mails" };
    size_t                   armed;
    char                     id[] = "1";
    serve(r, "a", timed_out);
    for (int i = 0; i < 3; i++, id[0]++) {
        submit(r, &(weir_task_spec){ .service = "a", .id = id, .classifier = classifiers[i],
                                     .schedule = "@hourly", .run_at = weir_now(r->t.q),
                                     .timeout_ms = 2000 });
        fire_until(r, 1);
    }
    OK(weir_task_initialize(r->tasks, NULL, &armed, &r->err));
    assert_true(armed == 3 || r->t.served);     /* a server arms them, perhaps */
    for (id[0] = '1'; id[0] < '4'; id[0]++)
        assert_int_equal(task_state(r, id), WEIR_TASK_READY);
}

/* As a worker that knows nothing of tasks does: complete, then failed, then out of time. */
static void a_scheduled_task_done_by_others_is_armed(rig *r)
{
    int64_t hour = 3600000, next = (weir_now(r->t.q) / hour + 1) * hour;
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .schedule = "@hourly",
                                 .timeout_ms = 2000 });
    OK(weir_tasks_follow(r->tasks, &r->err));
    for (int i = 0; i < 3; i++) {
        weir_job *job = NULL;
        size_t    n;
        rt_later(&r->t, next + i * hour - weir_now(r->t.q) + 1);
        UNTIL((assert_ok_(weir_take(r->t.q, &(weir_taking){ .types = (const char *[]){ "a", NULL },
                                    .n = 1, .lease_ms = 60000 }, &job, &n, &r->err), &r->err,
                          "take", __FILE__, __LINE__), n == 1));
        if (i == 0)
            weir_job_done(job, NULL, 0, NULL);
        else if (i == 1)
            weir_job_fail(job, "broken");
        else
            rt_later(&r->t, 2001);
        UNTIL(task_state(r, "1") == WEIR_TASK_READY);
        weir_job_free(job);
        weir_task *task = find(r, "1");
        assert_int_equal(task->spec.run_at, next + (i + 1) * hour);
        job = rt_get(&r->t, task->job);
        assert_non_null(strstr(job->history, "\"event\":\"retried\",\"state\":\"delayed\","
                               "\"by\":\"its schedule\""));
        weir_job_free(job);
        weir_task_free(task);
    }
}

static int64_t run_at_if_ready(rig *r, const char *id)
{
    weir_task *task = find(r, id);
    int64_t    at = task->state == WEIR_TASK_READY ? task->spec.run_at : 0;
    weir_task_free(task);
    return at;
}

static void the_loop_arms_what_timed_out(rig *r)
{
    int64_t hour = 3600000, next = (weir_now(r->t.q) / hour + 1) * hour;
    serve(r, "a", turn_clock);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1", .schedule = "@hourly",
                                 .timeout_ms = 2000 });
    OK(weir_tasks_run(r->tasks, 1, &r->err));
    rt_later(&r->t, next - weir_now(r->t.q) + 1);
    UNTIL(run_at_if_ready(r, "1") == next + hour);
    OK(weir_tasks_stop(r->tasks, PATIENCE_MS, &r->err));
}

/* ---- change ---- */

static void cancelling_counts_and_gives_a_reason(rig *r)
{
    serve(r, "a", count_up);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        submit(r, &(weir_task_spec){ .service = "a", .id = id, .version = i == 1 ? 3 : 0,
                                     .run_at = weir_now(r->t.q) + (i ? 60000 : 0) });
    }
    fire_until(r, 1);
    size_t n;
    OK(weir_task_cancel(r->tasks, (const char *[]){ "0", "1", "none", "2" }, 4, "not wanted", &n,
                        &r->err));
    assert_int_equal(n, 2);             /* one had ended, one is unknown */
    weir_task *task = find(r, "1");
    assert_int_equal(task->state, WEIR_TASK_CANCELLED);
    assert_string_equal(task->result_state, "not wanted");
    assert_true(task->ended_at > 0);
    weir_task_free(task);
    assert_int_equal(task_state(r, "0"), WEIR_TASK_COMPLETED);
    OK(weir_task_cancel(r->tasks, (const char *[]){ "1" }, 1, "again", &n, &r->err));
    assert_int_equal(n, 0);
    rt_later(&r->t, 61000);
    assert_int_equal(fire_all(r), 0);
}

static void cancelling_by_relative_ids(rig *r)
{
    const weir_task_spec spec[] = {
        { .service = "a", .id = "1", .relative_id = "x" },
        { .service = "b", .id = "2", .relative_id = "x" },
        { .service = "a", .id = "3", .relative_id = "y" },
        { .service = "a", .id = "4", .relative_id = "x", .classifier = "other" },
    };
    for (size_t i = 0; i < 4; i++)
        submit(r, &spec[i]);
    size_t n;
    OK(weir_task_cancel_relative(r->tasks, NULL, (const char *[]){ "x", "z" }, 2, "gone", &n,
                                 &r->err));
    assert_int_equal(n, 2);
    assert_int_equal(task_state(r, "2"), WEIR_TASK_CANCELLED);
    assert_int_equal(task_state(r, "3"), WEIR_TASK_READY);
    assert_int_equal(task_state(r, "4"), WEIR_TASK_READY);
    OK(weir_task_cancel_relative(r->tasks, NULL, (const char *[]){ "x" }, 1, NULL, &n, &r->err));
    assert_int_equal(n, 0);
}

static void adjusting_changes_or_submits(rig *r)
{
    serve(r, "a", count_up);
    int64_t        now = weir_now(r->t.q);
    weir_task_spec spec = { .service = "a", .id = "1", .var1 = "old", .relative_id = "x",
                            .run_at = now + 60000 };
    bool           submitted;
    OK(weir_task_adjust(r->tasks, &spec, &submitted, &r->err));
    assert_true(submitted);
    OK(weir_task_adjust(r->tasks, &(weir_task_spec){ .id = "1", .run_at = now + 1000,
                                                     .relative_id = "y" }, &submitted, &r->err));
    assert_false(submitted);
    weir_task *task = find(r, "1");
    assert_string_equal(task->spec.var1, "old");
    assert_string_equal(task->spec.relative_id, "y");
    assert_int_equal(task->spec.run_at, now + 1000);
    weir_task_free(task);
    const char *const x[] = { "x", NULL }, *const y[] = { "y", NULL };
    check_list(r, &(weir_task_query){ .relative_ids = x }, "");
    check_list(r, &(weir_task_query){ .relative_ids = y }, "1 ");
    assert_int_equal(weir_task_adjust(r->tasks, &(weir_task_spec){ .id = "1", .service = "b" },
                                      NULL, &r->err), WEIR_EINVAL);
    rt_later(&r->t, 1001);
    fire_until(r, 1);
    spec.run_at = now + 90000;
    assert_int_equal(weir_task_adjust(r->tasks, &spec, NULL, &r->err), WEIR_ESTATE);
    assert_non_null(strstr(r->err.msg, "the task 1 is completed, not ready"));
    assert_int_equal(weir_task_adjust(r->tasks, &(weir_task_spec){ .id = "none", .var1 = "x" },
                                      NULL, &r->err), WEIR_ENOENT);
    assert_non_null(strstr(r->err.msg, "name its service"));
}

static weir_code adjust_itself(weir_task_run *run, const weir_task *task, void *ctx)
{
    rig *r = ctx;
    assert_int_equal(weir_task_adjust(r->tasks, &(weir_task_spec){ .id = task->spec.id,
                                                                   .var1 = "x" }, NULL, &r->err),
                     WEIR_ESTATE);
    return weir_task_done(run, r->err.msg, NULL);
}

static void a_running_task_is_not_adjusted(rig *r)
{
    serve(r, "a", adjust_itself);
    submit(r, &(weir_task_spec){ .service = "a", .id = "1" });
    fire_until(r, 1);
    weir_task *task = find(r, "1");
    assert_string_equal(task->result_state, "the task 1 is running; it can change when the run is "
                        "over");
    weir_task_free(task);
}

/* ---- versions, the loop, invoke ---- */

static void an_old_program_leaves_new_tasks(rig *r)
{
    serve(r, "a", count_up);
    submit(r, &(weir_task_spec){ .service = "a", .id = "new", .version = 2 });
    submit(r, &(weir_task_spec){ .service = "a", .id = "old" });
    fire_until(r, 1);               /* the new one at the head does not block what is behind */
    assert_int_equal(fire_all(r), 0);
    assert_int_equal(task_state(r, "new"), WEIR_TASK_READY);
    weir_tasks_close(r->tasks);
    open_tasks(r, 2);
    serve(r, "a", count_up);
    fire_until(r, 1);
    assert_int_equal(task_state(r, "new"), WEIR_TASK_COMPLETED);
}

static void the_loop_runs_until_it_is_stopped(rig *r)
{
    weir_tasks_close(r->tasks);
    open_tasks(r, 3);
    assert_int_equal(weir_tasks_run(r->tasks, 1, &r->err), WEIR_ESTATE);
    serve(r, "a", count_up);
    serve(r, "b", count_up);
    submit(r, &(weir_task_spec){ .service = "a", .version = 1 });
    OK(weir_tasks_run(r->tasks, 2, &r->err));
    assert_int_equal(weir_tasks_run(r->tasks, 2, &r->err), WEIR_ESTATE);
    submit(r, &(weir_task_spec){ .service = "a" });
    submit(r, &(weir_task_spec){ .service = "b" });
    submit(r, &(weir_task_spec){ .service = "b", .version = 2 });     /* a type that is new */
    gate_wait(&r->ran, 4);
    OK(weir_tasks_stop(r->tasks, PATIENCE_MS, &r->err));
    OK(weir_tasks_stop(r->tasks, PATIENCE_MS, &r->err));
    submit(r, &(weir_task_spec){ .service = "a", .id = "later" });
    assert_int_equal(task_state(r, "later"), WEIR_TASK_READY);
    OK(weir_tasks_run(r->tasks, 1, &r->err));
    gate_wait(&r->ran, 5);
    OK(weir_tasks_stop(r->tasks, PATIENCE_MS, &r->err));
}

static void invoking_waits_for_the_end(rig *r)
{
    weir_task *task;
    serve(r, "a", answer);
    OK(weir_tasks_run(r->tasks, 1, &r->err));
    weir_task_spec spec = { .service = "a", .attachment = "[1]" };
    OK(weir_task_invoke(r->tasks, &spec, PATIENCE_MS, &task, &r->err));
    assert_false(task->unfinished);
    assert_int_equal(task->state, WEIR_TASK_COMPLETED);
    assert_string_equal(task->result, "[1]");
    weir_task_free(task);
    spec.var1 = "fail";
    OK(weir_task_invoke(r->tasks, &spec, PATIENCE_MS, &task, &r->err));
    assert_int_equal(task->state, WEIR_TASK_FAILED);
    weir_task_free(task);
    spec.service = "nobody";
    OK(weir_task_invoke(r->tasks, &spec, 20, &task, &r->err));
    assert_true(task->unfinished);
    assert_int_equal(task->state, WEIR_TASK_READY);
    weir_task_free(task);
    OK(weir_tasks_stop(r->tasks, PATIENCE_MS, &r->err));
}

/* ---- many at once ---- */

enum { THREADS = 8, ROUNDS = 10 };

static void *start_at_once(void *ctx)
{
    rig *r = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        char id[20];
        bool existed;
        snprintf(id, sizeof id, "job-%d", i);
        weir_error     err;
        weir_task_spec spec = { .service = "a", .id = id };
        if (weir_task_find_or_submit(r->tasks, &spec, NULL, &existed, &err)) {
            fprintf(stderr, "find_or_submit: %s\n", err.msg);
            abort();
        }
        if (!existed)
            gate_up(&r->ran);
    }
    return NULL;
}

static void find_or_submit_makes_one(rig *r)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, start_at_once, r), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(gate_now(&r->ran), ROUNDS);
    assert_int_equal(rt_count(&r->t, WEIR_STATE_ANY), ROUNDS);
}

/* In a process of its own: find or submit each id, run what is due, say what was done. */
static weir_code say_id(weir_task_run *run, const weir_task *task, void *ctx)
{
    (void)run, (void)ctx;
    child_print("ran %s", task->spec.id);
    return WEIR_OK;
}

enum { OWN_IDS = 20 };              /* tasks of each process whose ids it makes */

static int play(char **argv)
{
    weir_queue *q;
    weir_tasks *t;
    weir_error  err;
    char        line[20];
    if (weir_open(&q, argv[0], NULL, &err) || weir_tasks_open(&t, q, NULL, &err) ||
        weir_task_serve(t, "a", &(weir_task_service){ .run = say_id }, &err) ||
        weir_tasks_run(t, 1, &err))
        return weir_complain(&err);
    child_print("ready");
    if (!child_told(line, sizeof line))
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        bool existed;
        char id[20];
        snprintf(id, sizeof id, "job-%d", i);
        weir_task_spec spec = { .service = "a", .id = id };
        if (weir_task_find_or_submit(t, &spec, NULL, &existed, &err))
            return weir_complain(&err);
        if (!existed)
            child_print("made %s", id);
    }
    for (int i = 0; i < OWN_IDS; i++)
        if (weir_task_submit(t, &(weir_task_spec){ .service = "nobody" }, 1, NULL, &err))
            return weir_complain(&err);
    child_print("over");
    while (child_told(line, sizeof line))
        ;
    weir_code rc = weir_tasks_stop(t, PATIENCE_MS, &err);
    weir_tasks_close(t);
    weir_close(q);
    return rc ? weir_complain(&err) : 0;
}

/* The tasks are so short that one has often ended before another process looks. */
static void processes_that_start_at_once_make_one(rig *r)
{
    enum { PROCESSES = 5 };
    child *all[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        all[i] = child_start("starter", r->t.url, NULL);
    for (int i = 0; i < PROCESSES; i++)
        child_until(all[i], "ready", 1);
    for (int i = 0; i < PROCESSES; i++)
        child_tell(all[i], "go");
    for (int i = 0; i < PROCESSES; i++)
        child_until(all[i], "over", 1);
    rt_until_count(&r->t, WEIR_STATE_COMPLETE, ROUNDS);
    size_t made = 0, ran = 0;
    for (int i = 0; i < PROCESSES; i++) {
        made += child_count(all[i], "made ");
        ran += child_count(all[i], "ran ");
        child_end(all[i]);
    }
    assert_int_equal(made, ROUNDS);
    assert_int_equal(ran, ROUNDS);
    static id_text  ids[PROCESSES * OWN_IDS + ROUNDS];
    weir_task_page *page;
    OK(weir_task_list(r->tasks, &(weir_task_query){ .limit = WEIR_MAX_TASKS }, &page, &r->err));
    assert_int_equal(page->n, PROCESSES * OWN_IDS + ROUNDS);
    for (size_t i = 0; i < page->n; i++)
        snprintf(ids[i], sizeof ids[i], "%s", page->task[i]->spec.id);
    assert_all_differ(ids, page->n);
    weir_task_page_free(page);
}

/* ---- every case on every store ---- */

typedef struct task_case {
    const char *name;
    void      (*run)(rig *r);
    bool        test_clock, processes;
} task_case;

#define CASE(fn)       { #fn, fn, false, false }
#define CLOCK_CASE(fn) { #fn, fn, true, false }

static const task_case cases[] = {
    CASE(a_task_has_defaults),
    CASE(all_members_are_found_again),
    CASE(what_is_wrong_is_named),
    CASE(many_are_submitted_each_by_itself),
    CASE(an_id_is_unique_also_after_the_end),
    CASE(ids_are_in_order),
    CASE(ids_of_threads_differ),
    CASE(lists_are_by_classifier_and_relative_ids),
    CASE(a_run_ends_with_its_result),
    CASE(a_plain_result_is_the_result),
    CASE(fire_runs_as_many_as_asked_for),
    CLOCK_CASE(a_task_runs_at_its_time),
    CLOCK_CASE(a_task_fired_by_hand_runs_once),
    CASE(a_promoted_task_is_due),
    CLOCK_CASE(a_slow_task_times_out),
    CLOCK_CASE(a_result_is_kept_for_seven_days),
    CASE(a_service_that_is_not_here_is_named),
    CASE(words_alone_are_no_timeout),
    CASE(hooks_are_around_a_run),
    CLOCK_CASE(a_task_can_be_fired_again),
    CLOCK_CASE(the_hook_learns_of_a_lost_task),
    CASE(a_refused_answer_says_why),
    CLOCK_CASE(a_scheduled_task_is_ready_again),
    CLOCK_CASE(a_scheduled_task_that_timed_out_is_armed),
    CLOCK_CASE(all_classifiers_are_initialized),
    CLOCK_CASE(a_scheduled_task_done_by_others_is_armed),
    CLOCK_CASE(the_loop_arms_what_timed_out),
    CLOCK_CASE(cancelling_counts_and_gives_a_reason),
    CASE(cancelling_by_relative_ids),
    CLOCK_CASE(adjusting_changes_or_submits),
    CASE(a_running_task_is_not_adjusted),
    CASE(an_old_program_leaves_new_tasks),
    CASE(the_loop_runs_until_it_is_stopped),
    CASE(invoking_waits_for_the_end),
    CASE(find_or_submit_makes_one),
    { "processes_that_start_at_once_make_one", processes_that_start_at_once_make_one, false, true },
};

typedef struct run_of_case {
    const char      *url;
    const task_case *one;
    char             name[160];
} run_of_case;

static void run_case(void **state)
{
    const run_of_case *of = *state;
    rig                r = { .ran = GATE_INIT };
    rt_open(&r.t, of->url, of->one->test_clock);
    open_tasks(&r, 0);
    of->one->run(&r);
    weir_tasks_close(r.tasks);
    rt_check_and_close(&r.t);
}

int main(int argc, char **argv)
{
    if (child_role(argc, argv))
        return play(argv + 3);
    char **urls;
    size_t n_urls = store_urls(argc, argv, &urls), n = 0, n_cases = sizeof cases / sizeof *cases;
    run_of_case       *runs = calloc(n_urls * n_cases + 1, sizeof *runs);
    struct CMUnitTest *tests = calloc(n_urls * n_cases + 1, sizeof *tests);
    if (!urls || !runs || !tests)
        return 2;
    for (size_t u = 0; u < n_urls; u++) {
        const char *url = urls[u];
        for (size_t c = 0; c < n_cases && strncmp(url, "shared:", 7) != 0; c++) {
            if (cases[c].processes && strncmp(url, "mem:", 4) == 0)
                continue;       /* "shared:" is what that case does on a file */
            runs[n] = (run_of_case){ .url = url, .one = &cases[c] };
            snprintf(runs[n].name, sizeof runs[n].name, "%s: %s", url, cases[c].name);
            tests[n] = (struct CMUnitTest){ .name = runs[n].name, .test_func = run_case,
                                            .initial_state = &runs[n] };
            n++;
        }
    }
    int failed = _cmocka_run_group_tests("task", tests, n, NULL, NULL);
    free(tests);
    free(runs);
    free(urls);
    return failed ? 1 : 0;
}
