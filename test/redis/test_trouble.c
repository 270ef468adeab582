/* test_trouble.c - what happens to Redis must not happen to the jobs: it is restarted, paused,
 * full, loading, a replica; its clients are killed, its functions forgotten. Every call ends with a
 * definite answer or "not known", and everything goes on by itself when the trouble is over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redis/load.h"
#include "support/redis_rig.h"

enum { URL_MAX = 600 };

static rig *start_as(const char *scheme, const rig_options *opt, const char *query,
                     char url[URL_MAX])
{
    rig *r = rig_start(opt);
    assert_non_null(r);
    rig_url(r, scheme, query, url, URL_MAX);
    return r;
}

static rig *start(const rig_options *opt, const char *query, char url[URL_MAX])
{
    return start_as("redis+unix", opt, query, url);
}

static void stay(int64_t ms)
{
    for (int64_t end = rt_ms() + ms; rt_ms() < end;)
        rt_breathe();
}

static void drain_and_verify(load *l)
{
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
}

/* ---- restarts ---- */

static void restarts(const char *scheme, const char *query, bool kill9)
{
    enum { ROUNDS = 4 };
    char  url[URL_MAX];
    rig  *r = start_as(scheme, &(rig_options){ .aof = true }, query, url);
    load *l = load_start(url, &(load_options){ .prefetch = kill9 ? 4 : 0, .lease_ms = 3000 });
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 100);
        load_until_begun(l, 50);
        if (kill9) {
            rig_kill9(r);
            assert_true(rig_begin(r) && rig_ready(r));
        } else {
            assert_true(rig_restart(r));
        }
    }
    load_until_acked(l, 100);
    load_until_begun(l, 100);
    drain_and_verify(l);
    rig_free(r);
}

static void restarted(void **state)
{
    (void)state;
    restarts("redis+unix", NULL, false);
}

static void killed_and_restarted(void **state)
{
    (void)state;
    restarts("redis+unix", NULL, true);
}

static void restarted_under_kue(void **state)
{
    (void)state;
    restarts("redis+kue+unix", "profile=kue", false);
    restarts("redis+kue+unix", "profile=kue", true);
}

static void restarted_under_vertx_kue(void **state)
{
    (void)state;
    restarts("redis+kue+unix", "profile=vertx", false);
    restarts("redis+kue+unix", "profile=vertx", true);
}

/* ---- half a transaction ---- */

/* The append-only file; it has only one since it was started. */
static void aof_path(const rig *r, char path[URL_MAX])
{
    snprintf(path, URL_MAX, "%s/appendonlydir/appendonly.aof.1.incr.aof", r->dir);
}

static off_t aof_size(const rig *r)
{
    struct stat st;
    char        path[URL_MAX];
    aof_path(r, path);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void add_special(rt *t, const weir_job *held)
{
    (void)held;
    rt_add(t, &(weir_spec){ .type = "a", .unique = "k", .ttl_ms = 5000 });
}

static void end_and_take(rt *t, const weir_job *held)
{
    static const char *const types[] = { "a", NULL };
    weir_job   *next;
    weir_taking more = { .types = types, .n = 1 };
    weir_ending e = { .id = held->id, .delivery = held->delivery, .next = &more, .jobs = &next };
    weir_ended  ended;
    OK(weir_finish(t->q, &e, 1, &ended, &t->err));
    assert_int_equal(ended.n_jobs, 1);
    weir_job_free(next);
}

/* Of the last call Redis has written `eighths` to its file when it is killed; it goes on, and is
 * started again. Answers what the check finds then. */
static size_t tear(const char *scheme, void (*last)(rt *, const weir_job *), int eighths,
                   bool repaired)
{
    static const char *const types[] = { "a", NULL };
    char         url[URL_MAX], path[URL_MAX];
    rig         *r = rig_start(&(rig_options){ .aof = true });
    rt           box, *t = &box;
    weir_job    *held;
    size_t       n;
    weir_report *report;
    assert_non_null(r);
    r->keep_torn = !repaired;
    rig_url(r, scheme, "timeout=60s", url, sizeof url);
    rt_open(t, url, false);
    uint64_t first = rt_add_type(t, "a"), second = rt_add_type(t, "a");
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1, .lease_ms = WEIR_MAX_MS }, &held, &n,
                 &t->err));
    off_t before = aof_size(r);
    last(t, held);
    off_t after = aof_size(r);
    rig_kill9(r);
    aof_path(r, path);
    assert_int_equal(truncate(path, before + (after - before) * eighths / 8), 0);
    assert_true(rig_begin(r) && rig_ready(r));
    uint64_t third = rt_add_type(t, "b");
    assert_true(rig_restart(r));
    OK(weir_check(t->q, !repaired, &report, &t->err));
    size_t found = report->n;
    if (found && repaired)
        fail_msg("%s, %d/8 written: %s", scheme, eighths, report->line[0]);
    weir_report_free(report);
    assert_true(rt_state(t, first) != WEIR_STATE_ANY && rt_state(t, second) != WEIR_STATE_ANY);
    assert_true(rt_state(t, third) == WEIR_STATE_INACTIVE);
    weir_job_free(held);
    rt_check_and_close(t);
    rig_free(r);
    return found;
}

/* Redis cuts off half a command at the end of its file, but not the transaction it belongs to, and
 * carries the beginning of that out with the start after the next. redis-check-aof cuts off all of
 * it; without that, the check finds what is wrong, and mends it. */
static void killed_in_a_transaction(void **state)
{
    (void)state;
    static const char *const schemes[] = { "redis+unix", "redis+kue+unix" };
    size_t found = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        for (int eighths = 3; eighths < 8; eighths += 2) {
            tear(schemes[i], add_special, eighths, true);
            tear(schemes[i], end_and_take, eighths, true);
            found += tear(schemes[i], add_special, eighths, false);
            found += tear(schemes[i], end_and_take, eighths, false);
        }
    }
    print_message("# without redis-check-aof: %zu lines to mend\n", found);
}

/* Takes have a connection of their own, made for the first of them: also that one waits. */
static void away_at_the_first_take(void **state)
{
    (void)state;
    static const char *const types[] = { "a", NULL };
    char         url[URL_MAX];
    rig         *r = start(&(rig_options){ .aof = true }, "timeout=60s", url);
    rt           box, *t = &box;
    weir_job    *job;
    size_t       n;
    weir_future *f;
    rt_open(t, url, false);
    rt_add_type(t, "a");
    assert_true(rig_stop(r));
    OK(weir_take_async(t->q, &(weir_taking){ .remote = true, .types = types, .n = 1 }, &job, &n, &f,
                           &t->err));
    stay(50);                   /* it finds nobody there */
    assert_true(rig_begin(r) && rig_ready(r));
    OK(weir_future_wait(f, PATIENCE_MS, &t->err));
    assert_int_equal(n, 1);
    weir_job_free(job);
    weir_future_free(f);
    rt_check_and_close(t);
    rig_free(r);
}

/* Reading its file takes a while: clients are told LOADING, and wait. */
static void loading(void **state)
{
    (void)state;
    char  url[URL_MAX];
    rig  *r = start(&(rig_options){ .aof = true }, NULL, url);
    load *l = load_start(url, NULL);
    load_until_acked(l, 300);
    assert_true(rig_configure(r, "key-load-delay 3000"));
    assert_true(rig_configure(r, "loading-process-events-interval-bytes 1024"));
    assert_true(rig_do(r, "BGREWRITEAOF"));
    UNTIL(rig_info(r, "persistence", "aof_rewrite_in_progress") == 0 &&
          rig_info(r, "persistence", "aof_rewrite_scheduled") == 0);
    assert_true(rig_stop(r) && rig_begin(r));
    bool told = false;                      /* or it was never loading, and this shows nothing */
    UNTIL(told = told || rig_info(r, "persistence", "loading") == 1);
    load_until_acked(l, 100);
    load_until_begun(l, 100);
    assert_int_equal(rig_info(r, "persistence", "loading"), 0);
    drain_and_verify(l);
    rig_free(r);
}

/* ---- connections and functions ---- */

static void clients_are_killed(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    char  url[URL_MAX];
    rig  *r = start(NULL, NULL, url);
    load *l = load_start(url, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 20);
        assert_true(rig_do(r, "CLIENT KILL TYPE normal"));
        if (i % 2)
            assert_true(rig_do(r, "CLIENT KILL TYPE pubsub"));
    }
    load_until_begun(l, 50);
    drain_and_verify(l);
    rig_free(r);
}

static void functions_are_forgotten(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    char  url[URL_MAX];
    rig  *r = start(NULL, NULL, url);
    load *l = load_start(url, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 20);
        assert_true(rig_do(r, "SCRIPT FLUSH"));
        assert_true(rig_do(r, "FUNCTION FLUSH"));
    }
    drain_and_verify(l);
    rig_free(r);
}

typedef struct done_by {
    gate done;
} done_by;

static weir_code do_it(weir_job *job, void *ctx)
{
    (void)job;
    gate_up(&((done_by *)ctx)->done);
    return WEIR_OK;
}

/* A message that says that there is work can be missed. The work must not. */
static void an_idle_worker_misses_nothing(void **state)
{
    (void)state;
    enum { ROUNDS = 40 };
    char    url[URL_MAX];
    rig    *r = start(NULL, NULL, url);
    done_by d = { .done = GATE_INIT };
    rt      box, other, *t = &box;
    rt_open(t, url, false);
    rt_open(&other, url, false);
    OK(weir_process(t->q, "a", &(weir_pool_config){ .handler = do_it, .ctx = &d }, NULL, &t->err));
    for (int i = 0; i < ROUNDS; i++) {
        assert_true(rig_do(r, "CLIENT KILL TYPE pubsub"));
        rt_add(&other, &(weir_spec){ .type = "a", .delay_ms = i % 4 ? 0 : 3 });
        gate_wait(&d.done, i + 1);
    }
    rt_close(&other);
    rt_check_and_close(t);
    rig_free(r);
}

/* ---- a server that does not answer ---- */

static void paused_for_a_while(void **state)
{
    (void)state;
    char  url[URL_MAX];
    rig  *r = start(NULL, NULL, url);
    load *l = load_start(url, NULL);
    load_until_acked(l, 100);
    rig_pause(r);
    stay(2000);
    rig_resume(r);
    load_until_acked(l, 100);
    load_until_begun(l, 50);
    drain_and_verify(l);        /* it was shorter than the timeout: nobody noticed */
    rig_free(r);
}

static void paused_for_too_long(void **state)
{
    (void)state;
    enum { ROUNDS = 3 };
    char  url[URL_MAX];
    rig  *r = start(NULL, "timeout=400ms", url);
    load *l = load_start(url, &(load_options){ .lease_ms = 3000 });
    for (int i = 0; i < ROUNDS; i++) {
        load_until_acked(l, 50);
        rig_pause(r);
        load_until_trouble(l, 1);
        rig_resume(r);
    }
    load_until_acked(l, 50);
    load_until_begun(l, 50);
    drain_and_verify(l);
    rig_free(r);
}

/* ---- nobody spins ---- */

static int64_t cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void nobody_spins(void **state)
{
    (void)state;
    enum { AWAY_MS = 3000, AT_MOST_MS = AWAY_MS / 5 };
    char  url[URL_MAX];
    rig  *r = start(&(rig_options){ .aof = true }, "timeout=3s", url);
    load *l = load_start(url, &(load_options){ .lease_ms = 1000 });
    load *ahead = load_start(strcat(url, "&prefix=other"),
                             &(load_options){ .prefetch = 4, .lease_ms = 1000 });
    load_until_acked(l, 100);
    load_until_acked(ahead, 100);
    rig_kill9(r);
    load_until_answer(l, WEIR_EUNAVAIL, 1);
    int64_t before = cpu_ms();
    stay(AWAY_MS);
    int64_t gone = cpu_ms() - before;
    assert_true(rig_begin(r));
    rig_pause(r);               /* this time it accepts, and says nothing */
    before = cpu_ms();
    stay(AWAY_MS);
    int64_t mute = cpu_ms() - before;
    rig_resume(r);
    assert_true(rig_ready(r));
    print_message("# processor time in %d ms: %" PRId64 " ms while it is gone, %" PRId64
                  " ms while it is mute\n", AWAY_MS, gone, mute);
    assert_true(gone < AT_MOST_MS);
    assert_true(mute < AT_MOST_MS);
    load_until_acked(l, 50);
    load_until_acked(ahead, 50);
    drain_and_verify(l);
    drain_and_verify(ahead);
    rig_free(r);
}

static void closing_does_not_wait_for_ever(void **state)
{
    (void)state;
    enum { TIMEOUT_MS = 1000, AT_MOST_MS = 10 * TIMEOUT_MS };
    char url[URL_MAX];
    rig *r = start(NULL, "timeout=1s", url);
    rt   box, *t = &box;
    done_by d = { .done = GATE_INIT };
    rt_open(t, url, false);
    OK(weir_process(t->q, "a", &(weir_pool_config){ .handler = do_it, .ctx = &d, .threads = 2 },
                    NULL, &t->err));
    rt_add_type(t, "a");
    gate_wait(&d.done, 1);
    rig_kill9(r);
    weir_future *f;
    OK(weir_add_async(t->q, &(weir_spec){ .type = "a" }, NULL, &f, &t->err));
    int64_t start_ms = rt_ms();
    weir_close(t->q);
    assert_true(rt_ms() - start_ms < AT_MOST_MS);
    weir_code rc = weir_future_wait(f, 0, &t->err);
    assert_int_equal(rc, WEIR_EUNAVAIL);
    weir_future_free(f);
    rig_free(r);
}

/* ---- it refuses ---- */

static void demoted(void **state)
{
    (void)state;
    char  url[URL_MAX];
    rig  *r = start(NULL, "timeout=2s", url);
    load *l = load_start(url, NULL);
    load_until_acked(l, 100);
    assert_true(rig_do(r, "REPLICAOF 127.0.0.1 1"));    /* nobody is there: it keeps its data */
    load_until_answer(l, WEIR_EUNAVAIL, 1);
    assert_true(rig_do(r, "REPLICAOF NO ONE"));
    load_until_acked(l, 100);
    load_until_begun(l, 50);
    assert_int_equal(load_answers(l, WEIR_EUNKNOWN), 0);
    drain_and_verify(l);
    /* Opening it as a replica is refused at once, and says why. */
    rt box, *t = &box;
    assert_true(rig_do(r, "REPLICAOF 127.0.0.1 1"));
    weir_queue *q;
    assert_int_not_equal(weir_open(&q, url, NULL, &t->err), WEIR_OK);
    assert_non_null(strstr(t->err.msg, "replica"));
    rig_free(r);
}

static weir_code hold_until(weir_job *job, void *ctx)
{
    (void)job;
    gate_wait(ctx, 1);
    return WEIR_OK;
}

/* Full: adds are refused, and workers make room. */
static void full(void **state)
{
    (void)state;
    enum { FILLER = 100000, MAX_JOBS = 2000 };
    char url[URL_MAX];
    rig *r = start(NULL, NULL, url);
    rt   box, *t = &box;
    gate go = GATE_INIT;
    rt_open(t, url, false);
    char *data = calloc(1, FILLER + 3);
    memset(data, 'x', FILLER + 2);
    data[0] = data[FILLER + 1] = '"';
    OK(weir_configure(t->q, "a", &(weir_settings){ .keep_complete = { .count = 1 } }, &t->err));
    OK(weir_process(t->q, "a",
                    &(weir_pool_config){ .handler = hold_until, .ctx = &go, .threads = 2 }, NULL,
                    &t->err));
    int64_t used = rig_info(r, "memory", "used_memory");
    assert_true(rig_do(r, "CONFIG SET maxmemory %lld", (long long)used + 5000000));
    weir_code rc = WEIR_OK;
    uint64_t  n = 0;
    while (!rc && n < MAX_JOBS) {
        rc = weir_add(t->q, &(weir_spec){ .type = "a", .data = data, .attempts = 2 }, NULL,
                      &t->err);
        n += rc == WEIR_OK;
    }
    assert_int_equal(rc, WEIR_EFULL);
    assert_true(n > 10);
    assert_non_null(strstr(t->err.msg, "maxmemory"));
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), n); /* reading goes on, and nothing was added */
    assert_true(rig_do(r, "CONFIG SET maxmemory 1"));           /* not even a byte more */
    assert_int_equal(weir_ready(t->q, &t->err), WEIR_EFULL);
    assert_true(rig_do(r, "CONFIG SET maxmemory %lld", (long long)used + 5000000));
    gate_up(&go);
    rt_until_count(t, WEIR_STATE_INACTIVE, 0);                /* and so does working */
    rt_until_count(t, WEIR_STATE_ACTIVE, 0);
    assert_int_equal(rt_count(t, WEIR_STATE_FAILED), 0);
    UNTIL(weir_add(t->q, &(weir_spec){ .type = "b", .data = data }, NULL, &t->err) == WEIR_OK);
    UNTIL(weir_ready(t->q, &t->err) == WEIR_OK);
    free(data);
    rt_check_and_close(t);
    rig_free(r);
}

static void full_under_load(void **state)
{
    (void)state;
    char  url[URL_MAX];
    rig  *r = start(NULL, NULL, url);
    load *l = load_start(url, NULL);
    load_until_acked(l, 100);
    assert_true(rig_do(r, "CONFIG SET maxmemory 1"));
    load_until_answer(l, WEIR_EFULL, 50);
    uint64_t acked;
    int      late = 0;                          /* a thread that counts what came before */
    do {
        assert_true(late++ < 10);
        acked = load_acked(l);
        load_until_answer(l, WEIR_EFULL, 50);
    } while (load_acked(l) != acked);
    rt box, *t = &box;
    rt_open(t, url, false);                     /* can be opened, and looked at */
    rt_until_count(t, WEIR_STATE_COMPLETE, acked);    /* workers went on until all was done */
    rt_close(t);
    assert_true(rig_do(r, "CONFIG SET maxmemory 0"));
    load_until_acked(l, 50);
    drain_and_verify(l);
    rig_free(r);
}

/* ---- not for us ---- */

static void wrong_password(void **state)
{
    (void)state;
    char url[URL_MAX], good[URL_MAX];
    rig *r = start(&(rig_options){ .password = "pa55word" }, NULL, good);
    snprintf(url, sizeof url, "redis+unix://:s3cret@%s", r->socket);
    rt_refused(url, WEIR_EINVAL, "WRONGPASS");
    snprintf(url, sizeof url, "redis+unix://ann:s3cret@%s", r->socket);
    rt_refused(url, WEIR_EINVAL, "WRONGPASS");
    snprintf(url, sizeof url, "redis+unix://%s", r->socket);
    rt_refused(url, WEIR_EINVAL, "password");
    rt box, *t = &box;
    rt_open(t, good, false);
    rt_add_type(t, "a");
    rt_check_and_close(t);
    assert_true(rig_do(r, "ACL SETUSER ann on >s3cret ~* &* +@all"));
    snprintf(url, sizeof url, "redis+unix://ann:s3cret@%s", r->socket);
    rt_open(t, url, false);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 1);
    /* A right that is taken away is an answer, not a reason to try again and again. */
    assert_true(rig_do(r, "ACL SETUSER ann -fcall"));
    int64_t before = rt_ms();
    assert_int_equal(weir_add(t->q, &(weir_spec){ .type = "a" }, NULL, &t->err), WEIR_EREADONLY);
    assert_true(rt_ms() - before < 4000);
    rt_close(t);
    rig_free(r);
}

static void nobody_there(void **state)
{
    (void)state;
    rt_refused("redis+unix:///no/such/socket", WEIR_EUNAVAIL, "/no/such/socket");
    rt_refused("redis://127.0.0.1:1", WEIR_EUNAVAIL, "127.0.0.1:1");
}

static void evicting(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(&(rig_options){ .config = "maxmemory-policy allkeys-lru\n" }, NULL, url);
    rt_refused(url, WEIR_EINVAL, "noeviction");
    strcat(url, "?allow-eviction=1");
    rt box, *t = &box;
    rt_open(t, url, false);
    rt_add_type(t, "a");
    rt_check_and_close(t);
    rig_free(r);
}

/* ---- somebody else's data ---- */

/* One call while a key is not what it should be: 1 if it noticed. It must not hang, and no other
 * error is right. */
static int noticed(rt *t, weir_code rc, const char *call)
{
    if (rc && rc != WEIR_ECORRUPT)
        fail_msg("%s: %s (%s)", call, weir_code_name(rc), t->err.msg);
    return rc == WEIR_ECORRUPT;
}

/* Some of everything. Answers how many noticed. */
static int try_all(rt *t)
{
    static const char *const types[] = { "a", NULL };
    weir_spec    found = { .type = "a", .data = "{\"to\":\"ann\"}", .unique = "v",
                           .search = true };
    weir_spec    late = { .type = "a", .delay_ms = 1000000 };
    weir_job    *job = NULL;
    weir_stats  *stats = NULL;
    weir_page   *page = NULL, *hits = NULL;
    weir_report *report = NULL;
    size_t       n = 0;
    int          all = 0;
    all += noticed(t, weir_add(t->q, &found, NULL, &t->err), "add");
    all += noticed(t, weir_add(t->q, &late, NULL, &t->err), "add later");
    all += noticed(t, weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err),
                   "take");
    all += noticed(t, weir_log(t->q, 1, 0, "line", 0, &t->err), "log");
    all += noticed(t, weir_get_stats(t->q, &stats, &t->err), "stats");
    all += noticed(t, weir_list(t->q, &(weir_query){ 0 }, &page, &t->err), "list");
    all += noticed(t, weir_list(t->q, &(weir_query){ .search = "ann" }, &hits, &t->err), "search");
    all += noticed(t, weir_check(t->q, false, &report, &t->err), "check");
    all += report && report->n > 0;
    weir_job_free(job);
    weir_stats_free(stats);
    weir_page_free(page);
    weir_page_free(hits);
    weir_report_free(report);
    return all;
}

/* A queue in which every sort of key is there. */
static void open_with_some(rt *t, const char *url)
{
    rt_open(t, url, false);
    rt_add(t, &(weir_spec){ .type = "a", .data = "{\"to\":\"ann\"}", .unique = "u", .search = true,
                            .ttl_ms = 100000 });
    rt_add(t, &(weir_spec){ .type = "a", .delay_ms = 1000000 });
    rt_add(t, &(weir_spec){ .type = "b", .ttl_ms = 100000 });
    OK(weir_log(t->q, 1, 0, "ann", 0, &t->err));
    weir_job *job;
    size_t    n;
    weir_taking b = { .types = (const char *[]){ "b", NULL }, .n = 1 };
    OK(weir_take(t->q, &b, &job, &n, &t->err));
    assert_int_equal(n, 1);
    weir_job_free(job);
}

static void wrong_type_at_a_key(void **state)
{
    (void)state;
    char url[URL_MAX];
    rig *r = start(NULL, NULL, url);
    rt   box, *t = &box;
    open_with_some(t, url);
    redisReply *keys = rig_command(r, "KEYS *");
    assert_true(keys && keys->elements > 5);
    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;
        redisReply *type = rig_command(r, "TYPE %s", key);
        bool        is_string = !strcmp(type->str, "string");
        freeReplyObject(type);
        assert_true(rig_do(r, "RENAME %s elsewhere", key));
        assert_true(is_string ? rig_do(r, "LPUSH %s x", key) : rig_do(r, "SET %s x", key));
        if (!try_all(t))
            fail_msg("nobody noticed that %s is a %s", key, is_string ? "list" : "string");
        rt_close(t);
        assert_true(rig_do(r, "FLUSHALL"));
        open_with_some(t, url);
    }
    freeReplyObject(keys);
    rt_check_and_close(t);
    rig_free(r);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);     /* "paused*" */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarted),
        cmocka_unit_test(killed_and_restarted),
        cmocka_unit_test(restarted_under_kue),
        cmocka_unit_test(restarted_under_vertx_kue),
        cmocka_unit_test(killed_in_a_transaction),
        cmocka_unit_test(away_at_the_first_take),
        cmocka_unit_test(loading),
        cmocka_unit_test(clients_are_killed),
        cmocka_unit_test(functions_are_forgotten),
        cmocka_unit_test(an_idle_worker_misses_nothing),
        cmocka_unit_test(paused_for_a_while),
        cmocka_unit_test(paused_for_too_long),
        cmocka_unit_test(nobody_spins),
        cmocka_unit_test(closing_does_not_wait_for_ever),
        cmocka_unit_test(demoted),
        cmocka_unit_test(full),
        cmocka_unit_test(full_under_load),
        cmocka_unit_test(wrong_password),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(evicting),
        cmocka_unit_test(wrong_type_at_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
