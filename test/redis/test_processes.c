/* test_processes.c - many processes on one Redis: producers, workers and watchers that know nothing
 * of each other. Each job runs once, each due thing happens once, and everybody hears of it.
 * $WEIR_TEST_SCHEME: another layout than the native one ("redis+kue+unix"). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/child.h"
#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

/* ---- roles ---- */

static uint64_t key_of(const weir_job *job)
{
    return strtoull(job->data + strlen("{\"k\":"), NULL, 10);
}

/* Says when it begins; "stay": until it is cancelled. */
static weir_code handle(weir_job *job, void *ctx)
{
    const char *manner = ctx;
    child_print("begin %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRId64 " %s", key_of(job),
                job->delivery, job->id, rt_ms(), job->type);
    if (!strcmp(manner, "stay")) {
        while (!weir_job_cancelled(job))
            rt_breathe();
        child_print("cancelled %" PRIu64, job->id);
    }
    if (!strcmp(manner, "tell")) {
        weir_job_progress(job, 1, 2, "{\"half\":true}", 0, NULL);
        weir_job_log(job, "on the way");
    }
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

/* worker URL TYPES THREADS PREFETCH LEASE MANNER */
static weir_code work(weir_queue *q, char **args, weir_error *err)
{
    const char *types[8] = { 0 };
    size_t      n = 0;
    for (char *type = strtok(args[1], ","); type && n < 7; type = strtok(NULL, ","))
        types[n++] = type;
    return weir_process(q, NULL,
                        &(weir_pool_config){ .handler = handle,
                                             .ctx = args[5],
                                             .types = types,
                                             .threads = atoi(args[2]),
                                             .prefetch = atoi(args[3]),
                                             .lease_ms = atoi(args[4]) },
                        NULL, err);
}

/* producer URL FROM N: when told to. */
static weir_code produce(weir_queue *q, char **args, weir_error *err)
{
    uint64_t from = strtoull(args[1], NULL, 10), n = strtoull(args[2], NULL, 10);
    char     line[64];
    child_told(line, sizeof line);
    for (uint64_t key = from; key < from + n; key++) {
        char       data[32];
        weir_added added;
        snprintf(data, sizeof data, "{\"k\":%" PRIu64 "}", key);
        weir_code rc = weir_add(q, &(weir_spec){ .type = key % 3 ? "odd" : "even", .data = data,
                                                 .priority = (int32_t)(key % 4) }, &added, err);
        if (rc)
            return rc;
        child_print("added %" PRIu64 " %" PRIu64, key, added.id);
    }
    return WEIR_OK;
}

/* claimant URL N: adds N jobs with unique keys that others want, too. */
static weir_code claim(weir_queue *q, char **args, weir_error *err)
{
    char line[64], unique[32];
    int  n = atoi(args[1]);
    child_told(line, sizeof line);
    for (int i = 0; i < n; i++) {
        weir_added added;
        snprintf(unique, sizeof unique, "u%d", i);
        weir_code rc = weir_add(q, &(weir_spec){ .type = "u", .unique = unique, .delay_ms = 60000 },
                                &added, err);
        if (rc)
            return rc;
        child_print("claimed %d %" PRIu64 " %s", i, added.id, added.existed ? "theirs" : "ours");
    }
    return WEIR_OK;
}

static void on_event(const weir_event *ev, void *ctx)
{
    (void)ctx;
    child_print("event %s %" PRIu64 " %.*s", weir_event_name(ev->kind), ev->id,
                (int)(ev->text_len < 200 ? ev->text_len : 200), ev->text ? ev->text : "");
}

static weir_code watch(weir_queue *q, char **args, weir_error *err)
{
    weir_listener *l;                   /* released with the queue */
    (void)args;
    return weir_listen(q, NULL, on_event, NULL, &l, err);
}

static const struct {
    const char *name;
    weir_code (*begin)(weir_queue *q, char **args, weir_error *err);
} roles[] = { { "worker", work }, { "producer", produce }, { "claimant", claim },
              { "watcher", watch } };

/* Until standard input is closed. */
static int play(const char *role, char **args)
{
    weir_queue *q;
    weir_error  err;
    char        line[64];
    if (weir_open(&q, args[0], NULL, &err))
        return weir_complain(&err);
    child_print("open");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i].name) && roles[i].begin(q, args, &err))
            return weir_complain(&err);
    child_print("ready");
    while (child_told(line, sizeof line))
        ;
    if (weir_stop(q, NULL, PATIENCE_MS, &err))
        return weir_complain(&err);
    weir_close(q);
    return 0;
}

/* ---- a queue for one case ---- */

RIG_FIXTURE

static void open_queue(rt *t)
{
    static int n;
    char       url[512], query[32];
    const char *scheme = getenv("WEIR_TEST_SCHEME");
    snprintf(query, sizeof query, "prefix=p%d", ++n);
    rt_open(t, rig_url(server, scheme ? scheme : "redis+unix", query, url, sizeof url), false);
}

static child *start_worker(rt *t, const char *types, const char *threads, const char *prefetch,
                           const char *lease, const char *manner)
{
    child *c = child_start("worker", t->url, types, threads, prefetch, lease, manner, NULL);
    child_until(c, "ready", 1);
    return c;
}

static child *start_watcher(rt *t)
{
    child *c = child_start("watcher", t->url, NULL);
    child_until(c, "ready", 1);
    return c;
}

/* How often each key was begun, and by whom. */
typedef struct begun {
    size_t   n;
    uint32_t times[4096], last_delivery[4096];
    int64_t  last_at[4096];
} begun;

static void read_begin(const char *line, void *ctx)
{
    begun   *b = ctx;
    uint64_t key, id;
    uint32_t delivery;
    int64_t  at;
    if (sscanf(line, "begin %" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNd64, &key, &delivery, &id,
               &at) != 4)
        return;
    assert_true(key < 4096);
    b->n++;
    b->times[key]++;
    b->last_delivery[key] = delivery;
    b->last_at[key] = at;
}

/* ---- each job once ---- */

static void each_job_runs_once(void **state)
{
    (void)state;
    enum { PRODUCERS = 3, WORKERS = 3, EACH = 200, ALL = PRODUCERS * EACH };
    rt     box, *t = &box;
    child *producer[PRODUCERS], *worker[WORKERS];
    open_queue(t);
    child *watcher = start_watcher(t);
    for (int i = 0; i < WORKERS; i++)
        worker[i] = start_worker(t, "even,odd", "2", i ? "0" : "4", "30000", "quick");
    for (int i = 0; i < PRODUCERS; i++) {
        char from[16], n[16];
        snprintf(from, sizeof from, "%d", i * EACH);
        snprintf(n, sizeof n, "%d", EACH);
        producer[i] = child_start("producer", t->url, from, n, NULL);
        child_until(producer[i], "open", 1);
    }
    for (int i = 0; i < PRODUCERS; i++)
        child_tell(producer[i], "go");
    for (int i = 0; i < PRODUCERS; i++)
        child_until(producer[i], "added ", EACH);
    rt_until_count(t, WEIR_STATE_COMPLETE, ALL);
    UNTIL(child_count(worker[0], "begin ") + child_count(worker[1], "begin ") +
              child_count(worker[2], "begin ") >= ALL);
    begun *b = calloc(1, sizeof *b);
    for (int i = 0; i < WORKERS; i++) {
        assert_true(child_count(worker[i], "begin ") > 0);      /* nobody had it all */
        child_each(worker[i], read_begin, b);
    }
    assert_int_equal(b->n, ALL);
    for (int key = 0; key < ALL; key++) {
        assert_int_equal(b->times[key], 1);
        assert_int_equal(b->last_delivery[key], 1);
    }
    free(b);
    child_until(watcher, "event complete ", ALL);
    for (int i = 0; i < WORKERS; i++)
        child_end(worker[i]);
    for (int i = 0; i < PRODUCERS; i++)
        child_end(producer[i]);
    assert_int_equal(child_count(watcher, "event enqueue "), ALL);
    assert_int_equal(child_count(watcher, "event start "), ALL);
    assert_int_equal(child_count(watcher, "event complete "), ALL);
    assert_int_equal(child_count(watcher, "event "), 3 * ALL);
    child_end(watcher);
    rt_check_and_close(t);
}

static void a_unique_key_has_one_holder(void **state)
{
    (void)state;
    enum { CLAIMANTS = 4, KEYS = 50 };
    rt     box, *t = &box;
    child *claimant[CLAIMANTS];
    size_t ours = 0;
    open_queue(t);
    for (int i = 0; i < CLAIMANTS; i++) {
        claimant[i] = child_start("claimant", t->url, "50", NULL);
        child_until(claimant[i], "open", 1);
    }
    for (int i = 0; i < CLAIMANTS; i++)
        child_tell(claimant[i], "go");
    for (int i = 0; i < CLAIMANTS; i++)
        child_until(claimant[i], "claimed ", KEYS);
    assert_int_equal(rt_count(t, WEIR_STATE_DELAYED), KEYS);
    for (int key = 0; key < KEYS; key++) {
        weir_added added;
        char       unique[32], line[64];
        snprintf(unique, sizeof unique, "u%d", key);
        OK(weir_add(t->q, &(weir_spec){ .type = "u", .unique = unique }, &added, &t->err));
        assert_true(added.existed);
        for (int i = 0; i < CLAIMANTS; i++) {
            snprintf(line, sizeof line, "claimed %d %" PRIu64 " ", key, added.id);
            assert_int_equal(child_count(claimant[i], line), 1);
            strcat(line, "ours");
            ours += child_count(claimant[i], line);
        }
    }
    assert_int_equal(ours, KEYS);
    for (int i = 0; i < CLAIMANTS; i++)
        child_end(claimant[i]);
    rt_check_and_close(t);
}

/* ---- without polling ---- */

/* Wait until nobody asks Redis for anything any more. */
static int64_t until_quiet(void)
{
    int64_t was = -1, is = rig_commands(server), end = rt_ms() + PATIENCE_MS;
    while (was != is) {
        if (rt_ms() > end)
            fail_msg("somebody keeps asking");
        for (int i = 0; i < 200; i++)
            rt_breathe();
        was = is;
        is = rig_commands(server);
    }
    return is;
}

/* Processes that wait ask nothing of Redis. */
static void nobody_asks(void)
{
    int64_t commands = until_quiet(), end = rt_ms() + 2000;
    while (rt_ms() < end)
        rt_breathe();
    assert_int_equal(rig_commands(server), commands);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void an_idle_worker_is_woken(void **state)
{
    (void)state;
    enum { TIMES = 21, SOON_MS = 200 };
    rt      box, *t = &box;
    begun  *b = calloc(1, sizeof *b);
    int64_t took[TIMES];
    open_queue(t);
    child *worker = start_worker(t, "even,odd", "2", "0", "30000", "quick");
    child *ahead = start_worker(t, "even,odd", "1", "4", "30000", "quick");
    for (int i = 0; i < TIMES; i++) {
        char data[32];
        snprintf(data, sizeof data, "{\"k\":%d}", i);
        int64_t  start = rt_ms();
        uint64_t id = rt_add(t, &(weir_spec){ .type = "odd", .data = data });
        rt_until(t, id, WEIR_STATE_COMPLETE);
        UNTIL(child_count(worker, "begin ") + child_count(ahead, "begin ") > (size_t)i);
        memset(b, 0, sizeof *b);
        child_each(worker, read_begin, b);
        child_each(ahead, read_begin, b);
        assert_int_equal(b->times[i], 1);
        took[i] = b->last_at[i] - start;
    }
    qsort(took, TIMES, sizeof *took, by_size);
    print_message("# add to begin: %" PRId64 " ms, at most %" PRId64 " ms\n", took[TIMES / 2],
                  took[TIMES - 1]);
    assert_true(took[TIMES / 2] < SOON_MS);
    if (!strstr(t->url, "kue"))         /* Kue tells of little: beside it one has to look */
        nobody_asks();
    child_end(worker);
    child_end(ahead);
    rt_check_and_close(t);
    free(b);
}

/* ---- timers in every process ---- */

static void what_is_due_happens_once(void **state)
{
    (void)state;
    enum { WATCHERS = 3, JOBS = 150, DELAY_MS = 600 };
    rt     box, *t = &box;
    child *watcher[WATCHERS];
    begun *b = calloc(1, sizeof *b);
    open_queue(t);
    for (int i = 0; i < WATCHERS; i++)
        watcher[i] = start_watcher(t);
    child  *worker = start_worker(t, "a", "2", "0", "30000", "quick");
    int64_t first = rt_ms();
    for (int i = 0; i < JOBS; i++) {
        char data[32];
        snprintf(data, sizeof data, "{\"k\":%d}", i);
        rt_add(t, &(weir_spec){ .type = "a", .data = data, .delay_ms = DELAY_MS });
    }
    rt_until_count(t, WEIR_STATE_COMPLETE, JOBS);
    child_until(worker, "begin ", JOBS);
    child_each(worker, read_begin, b);
    assert_int_equal(b->n, JOBS);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(b->times[i], 1);
        assert_true(b->last_at[i] >= first + DELAY_MS - 2);     /* two clocks */
    }
    OK(weir_configure(t->q, "a", &(weir_settings){ .keep_complete = { .age_ms = 1 } }, &t->err));
    rt_until_count(t, WEIR_STATE_ANY, 0);
    for (int i = 0; i < WATCHERS; i++) {
        child_until(watcher[i], "event remove ", JOBS);
        assert_int_equal(child_count(watcher[i], "event promotion "), JOBS);
        assert_int_equal(child_count(watcher[i], "event enqueue "), JOBS);
        assert_int_equal(child_count(watcher[i], "event remove "), JOBS);
        child_end(watcher[i]);
    }
    child_end(worker);
    rt_check_and_close(t);
    free(b);
}

/* Its own process has no timer for it any more, the others have. */
static void a_killed_worker_loses_its_jobs(void **state)
{
    (void)state;
    enum { JOBS = 6, LEASE_MS = 700 };
    rt     box, *t = &box;
    begun *b = calloc(1, sizeof *b);
    open_queue(t);
    child *watcher = start_watcher(t);
    child *first = start_worker(t, "a", "6", "0", "700", "stay");
    for (int i = 0; i < JOBS; i++) {
        char data[32];
        snprintf(data, sizeof data, "{\"k\":%d}", i);
        rt_add(t, &(weir_spec){ .type = "a", .data = data });
    }
    child_until(first, "begin ", JOBS);
    child *second = start_worker(t, "a", "2", "0", "30000", "quick");
    int64_t killed = rt_ms();
    child_kill9(first);
    assert_int_equal(rt_count(t, WEIR_STATE_ACTIVE), JOBS);
    child_until(second, "begin ", JOBS);
    child_each(second, read_begin, b);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(b->times[i], 1);
        assert_int_equal(b->last_delivery[i], 2);
        assert_true(b->last_at[i] > killed);
    }
    rt_until_count(t, WEIR_STATE_COMPLETE, JOBS);
    child_until(watcher, "event complete ", JOBS);
    assert_int_equal(child_count(watcher, "event stalled "), JOBS);
    assert_int_equal(child_count(watcher, "event start "), 2 * JOBS);
    for (uint64_t id = 1; id <= JOBS; id++) {
        weir_job *job = rt_get(t, id);
        assert_int_equal(job->lost, 1);
        assert_int_equal(job->attempts, 1);
        weir_job_free(job);
    }
    child_free(first);
    child_end(second);
    child_end(watcher);
    rt_check_and_close(t);
    free(b);
}

/* A worker that lives keeps its job, though its lease is short and other timers run. */
static void a_living_worker_keeps_its_job(void **state)
{
    (void)state;
    rt box, *t = &box;
    open_queue(t);
    child   *watcher = start_watcher(t);
    child   *worker = start_worker(t, "a", "1", "0", "300", "stay");
    uint64_t id = rt_add(t, &(weir_spec){ .type = "a", .data = "{\"k\":0}" });
    child_until(worker, "begin ", 1);
    int64_t end = rt_ms() + 1500;       /* five leases */
    while (rt_ms() < end) {
        assert_int_equal(rt_state(t, id), WEIR_STATE_ACTIVE);
        for (int i = 0; i < 50; i++)
            rt_breathe();
    }
    OK(weir_cancel(t->q, id, &t->err));
    child_until(worker, "cancelled ", 1);
    child_until(watcher, "event cancelled ", 1);
    assert_int_equal(child_count(watcher, "event stalled "), 0);
    child_end(worker);
    child_end(watcher);
    rt_check_and_close(t);
}

/* ---- by hand, from elsewhere ---- */

static void a_running_job_is_cancelled_from_elsewhere(void **state)
{
    (void)state;
    rt box, *t = &box;
    open_queue(t);
    child   *worker = start_worker(t, "a", "2", "0", "30000", "stay");
    uint64_t one = rt_add(t, &(weir_spec){ .type = "a", .data = "{\"k\":1}" });
    uint64_t two = rt_add(t, &(weir_spec){ .type = "a", .data = "{\"k\":2}" });
    child_until(worker, "begin ", 2);
    OK(weir_cancel(t->q, one, &t->err));
    char line[64];
    snprintf(line, sizeof line, "cancelled %" PRIu64, one);
    child_until(worker, line, 1);
    assert_int_equal(child_count(worker, "cancelled "), 1);
    assert_int_equal(rt_state(t, one), WEIR_STATE_CANCELLED);
    assert_int_equal(rt_state(t, two), WEIR_STATE_ACTIVE);
    OK(weir_remove(t->q, two, &t->err));
    child_until(worker, "cancelled ", 2);
    assert_int_equal(rt_state(t, two), WEIR_STATE_ANY);
    child_end(worker);
    rt_check_and_close(t);
}

static void pausing_and_resuming_reach_all(void **state)
{
    (void)state;
    rt box, *t = &box;
    open_queue(t);
    child *watcher = start_watcher(t);
    child *worker = start_worker(t, "a,b", "1", "0", "30000", "quick");
    for (int round = 0; round < 3; round++) {
        const char *what = round == 2 ? "*" : "a";
        OK(weir_pause(t->q, what, &t->err));
        rt_add(t, &(weir_spec){ .type = "a", .data = "{\"k\":1}",
                                .priority = WEIR_PRIORITY_CRITICAL });
        if (round < 2) {                /* the other type goes on, past the paused one */
            uint64_t other = rt_add(t, &(weir_spec){ .type = "b", .data = "{\"k\":2}" });
            rt_until(t, other, WEIR_STATE_COMPLETE);
        }
        until_quiet();
        assert_int_equal(child_count(worker, "begin 1 "), round);
        OK(weir_resume(t->q, what, &t->err));
        child_until(worker, "begin 1 ", (size_t)round + 1);
        rt_until_count(t, WEIR_STATE_ACTIVE, 0);
    }
    child_until(watcher, "event resume ", 3);
    assert_int_equal(child_count(watcher, "event pause "), 3);
    child_end(worker);
    child_end(watcher);
    rt_check_and_close(t);
}

static void a_result_is_awaited_from_elsewhere(void **state)
{
    (void)state;
    rt        box, *t = &box;
    weir_job *job;
    open_queue(t);
    child   *watcher = start_watcher(t);
    uint64_t id = rt_add(t, &(weir_spec){ .type = "a", .data = "{\"k\":1}" });
    uint64_t gone = rt_add(t, &(weir_spec){ .type = "a", .data = "{\"k\":2}",
                                            .remove_on_complete = true });
    weir_future *f;
    weir_job    *later = NULL;
    OK(weir_wait_async(t->q, gone, &later, &f, &t->err));
    child *worker = start_worker(t, "a", "1", "0", "30000", "tell");
    OK(weir_wait(t->q, id, PATIENCE_MS, &job, &t->err));
    assert_int_equal(job->state, WEIR_STATE_COMPLETE);
    assert_string_equal(job->result, "{\"ok\":true}");
    weir_job_free(job);
    OK(weir_future_wait(f, PATIENCE_MS, &t->err));
    weir_future_free(f);
    assert_non_null(later);
    assert_int_equal(later->state, WEIR_STATE_COMPLETE);
    assert_string_equal(later->result, "{\"ok\":true}");
    weir_job_free(later);
    child_until(watcher, "event complete ", 2);
    assert_int_equal(child_count(watcher, "event progress 1 {\"half\":true}"), 1);
    weir_lines *lines;
    OK(weir_logs(t->q, id, 0, 0, &lines, &t->err));
    assert_int_equal(lines->n, 1);
    assert_string_equal(lines->line[0].text, "on the way");
    weir_lines_free(lines);
    child_end(worker);
    child_end(watcher);
    rt_check_and_close(t);
}

int main(int argc, char **argv)
{
    if (child_role(argc, argv))
        return play(child_role(argc, argv), argv + 3);
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);     /* "paused*" */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_runs_once),
        cmocka_unit_test(a_unique_key_has_one_holder),
        cmocka_unit_test(an_idle_worker_is_woken),
        cmocka_unit_test(what_is_due_happens_once),
        cmocka_unit_test(a_killed_worker_loses_its_jobs),
        cmocka_unit_test(a_living_worker_keeps_its_job),
        cmocka_unit_test(a_running_job_is_cancelled_from_elsewhere),
        cmocka_unit_test(pausing_and_resuming_reach_all),
        cmocka_unit_test(a_result_is_awaited_from_elsewhere),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
