/* test_runtime_alloc.c - the whole library when memory runs out: the Nth allocation of a scenario
 * fails, for every N until a run gets through without a failure.
 *
 * Whatever fails, every call gives a definite answer, nothing is leaked (the address sanitizer
 * looks), and the store is consistent afterwards. Threads make the count vary from run to run, so
 * "the Nth" is not always the same one; that does no harm. SQLite has allocations of its own, which
 * are not counted here (test_alloc.c). */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- malloc with a fuse ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
int   __real_vasprintf(char **out, const char *fmt, va_list ap);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
int   __wrap_vasprintf(char **out, const char *fmt, va_list ap);

static atomic_long countdown;       /* allocations until one fails; 0 and below: none will */
static atomic_long blown;

static bool fails(void)
{
    if (atomic_load(&countdown) <= 0 || atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_fetch_add(&blown, 1);
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

int __wrap_vasprintf(char **out, const char *fmt, va_list ap)
{
    if (!fails())
        return __real_vasprintf(out, fmt, ap);
    *out = NULL;
    return -1;
}

/* ---- the scenario ---- */

typedef struct run {
    weir_queue *q;
    const char *url;
    uint64_t    added;          /* jobs that were acknowledged */
    atomic_int  heard, thens;
    int         asked;          /* for thens */
    gate        came;           /* a handler is done */
} run;

/* The only trouble there may be is the one that was made. */
static weir_code definite(run *r, weir_code rc, const char *what)
{
    (void)r;
    if (rc && rc != WEIR_ENOMEM && rc != WEIR_ETIMEOUT)
        fail_msg("%s: %s", what, weir_code_name(rc));
    return rc;
}

#define TRY(call) definite(r, (call), #call)

static void on_event(const weir_event *ev, void *ctx)
{
    (void)ev;
    atomic_fetch_add(&((run *)ctx)->heard, 1);
}

/* Calls the library, which must be possible wherever this runs. */
static void on_then(weir_code code, const weir_error *err, void *ctx)
{
    (void)code;
    (void)err;
    run *r = ctx;
    uint64_t n;
    weir_count(r->q, WEIR_STATE_ANY, NULL, &n, NULL);
    atomic_fetch_add(&r->thens, 1);
}

static weir_code handler(weir_job *job, void *ctx)
{
    run *r = ctx;
    weir_job_log(job, "line %d", 1);
    weir_job_progress(job, 1, 2, "{\"half\":true}", 0, NULL);
    weir_code rc = job->id % 2 ? weir_job_done(job, "{\"ok\":true}", 0, NULL)
                               : weir_job_fail(job, "no");
    gate_up(&r->came);
    return rc;
}

static void add_jobs(run *r)
{
    weir_added  added[3];
    weir_future *f;
    weir_spec   spec = { .type = "a", .data = "{\"x\":\"some words\"}", .unique = "u",
                         .search = true };
    if (!TRY(weir_add(r->q, &spec, added, NULL)))
        r->added++;
    else
        assert_int_equal(added[0].id, 0);
    weir_spec many[3] = { { .type = "a" }, { .type = "b", .delay_ms = 1000000 }, { .type = "c" } };
    if (!TRY(weir_add_many(r->q, many, 3, NULL, added, NULL)))
        r->added += 3;
    weir_token token = { .key = "me", .number = 1 };
    if (!TRY(weir_add_many(r->q, many, 1, &token, added, NULL)) ||
        !TRY(weir_add_many(r->q, many, 1, &token, added, NULL)))
        r->added++;
    if (!TRY(weir_add_async(r->q, &many[0], &added[0], &f, NULL))) {
        weir_future_then(f, on_then, r);
        r->asked++;
        if (!TRY(weir_future_wait(f, WEIR_FOREVER, NULL)))
            r->added++;
        weir_future_free(f);
    }
}

static void move_jobs(run *r)
{
    const weir_line     line = { .n = 3, .at = 4, .text = "third" };
    const weir_job      far = { .type = "far", .state = WEIR_STATE_FAILED, .error = "no",
                                .search = true };
    const weir_incoming in[2] = { { .job = &far, .lines = &line, .n_lines = 1 },
                                  { .job = &far, .new_id = true } };
    weir_imported       out[2];
    weir_future        *f;
    if (!TRY(weir_import(r->q, in, 2, out, NULL)))
        r->added += 2;
    else
        assert_int_equal(out[0].id, 0);
    if (!TRY(weir_import_async(r->q, in, 2, out, &f, NULL))) {
        if (!TRY(weir_future_wait(f, WEIR_FOREVER, NULL)))
            r->added += 2;
        weir_future_free(f);
    }
    static const char json[] = "{\"type\":\"m\",\"unique\":\"k\",\"log\":[{\"text\":\"a\"}]}";
    weir_job         *job;
    weir_lines       *lines;
    if (!TRY(weir_job_parse(json, sizeof json - 1, &job, &lines, NULL))) {
        weir_job_free(job);
        weir_lines_free(lines);
    } else {
        assert_true(!job && !lines);
    }
}

static void read_all(run *r)
{
    weir_page *page;
    weir_stats *stats;
    weir_lines *lines;
    weir_job *job;
    weir_explanation *e;
    if (!TRY(weir_list(r->q, NULL, &page, NULL)))
        weir_page_free(page);
    else
        assert_null(page);
    if (!TRY(weir_list(r->q, &(weir_query){ .search = "words" }, &page, NULL)))
        weir_page_free(page);
    if (!TRY(weir_get_stats(r->q, &stats, NULL)))
        weir_stats_free(stats);
    else
        assert_null(stats);
    bool first = false;
    if (TRY(weir_exists(r->q, 1, &first, NULL)) || !first)
        return;
    if (!TRY(weir_log(r->q, 1, 0, "by hand", 0, NULL)) &&
        !TRY(weir_logs(r->q, 1, 0, 0, &lines, NULL)))
        weir_lines_free(lines);
    if (!TRY(weir_get(r->q, 1, &job, NULL)))
        weir_job_free(job);
    weir_error_groups *groups;
    if (!TRY(weir_get_errors(r->q, NULL, &groups, NULL)))
        weir_error_groups_free(groups);
    else
        assert_null(groups);
    if (!TRY(weir_explain(r->q, 1, &e, NULL)))
        weir_explanation_free(e);
    else
        assert_null(e);
}

/* For a worker elsewhere: end one job and take another in the same step. */
static void work_for(run *r)
{
    static const char *const types[] = { "c", "a", NULL };
    weir_taking  what = { .types = types, .n = 1, .lease_ms = 100000, .worker = "far",
                          .remote = true };
    weir_job    *job = NULL, *next = NULL;
    size_t       n = 0;
    weir_future *f;
    if (TRY(weir_take_async(r->q, &what, &job, &n, &f, NULL)))
        return;
    TRY(weir_future_wait(f, WEIR_FOREVER, NULL));
    weir_future_free(f);
    if (!n)
        return;
    weir_lease   lease = { .id = job->id, .delivery = job->delivery };
    weir_renewed renewed;
    if (!TRY(weir_renew_async(r->q, &lease, 1, &renewed, &f, NULL))) {
        TRY(weir_future_wait(f, WEIR_FOREVER, NULL));
        weir_future_free(f);
    }
    TRY(weir_progress(r->q, job->id, job->delivery, 5, "[]", 0, NULL));
    TRY(weir_log(r->q, job->id, job->delivery, "far away", 0, NULL));
    weir_ending e = { .id = job->id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_FAIL,
                      .text = "not here", .next = &what, .jobs = &next };
    weir_ended  out = { .n_jobs = 9 };
    if (TRY(weir_finish(r->q, &e, 1, &out, NULL)) || TRY(out.err.code))
        assert_int_equal(out.n_jobs, 0);
    if (out.n_jobs)
        weir_job_free(next);
    weir_job_free(job);
    TRY(weir_tick(r->q, 0, NULL, NULL, NULL));
}

static void work(run *r, int prefetch)
{
    weir_pool_config pool = { .handler = handler, .ctx = r, .threads = 2, .prefetch = prefetch };
    static const char *const c[] = { "c", NULL };
    weir_job *job;
    size_t    n;
    weir_taking what = { .types = c, .n = 1, .lease_ms = 100000 };
    if (!TRY(weir_take(r->q, &what, &job, &n, NULL)) && n) {
        weir_code rc = weir_job_fail(job, "by hand");
        assert_true(rc == WEIR_EJOB || rc == WEIR_ENOMEM);
        weir_job_free(job);
    }
    if (TRY(weir_process(r->q, "a", &pool, NULL, NULL)))
        return;
    if (r->added >= 4)
        gate_wait_ms(&r->came, 1, 50);      /* unless its memory was the one */
    TRY(weir_stop(r->q, NULL, 10000, NULL));
}

static void scenario(run *r, int prefetch)
{
    weir_error     err = { 0 };
    weir_listener *l = NULL;
    weir_code      rc = weir_open(&r->q, r->url, NULL, &err);
    definite(r, rc, "open");
    if (rc) {
        assert_null(r->q);
        assert_true(err.msg[0]);
        return;
    }
    TRY(weir_listen(r->q, NULL, on_event, r, &l, NULL));
    add_jobs(r);
    move_jobs(r);
    read_all(r);
    work_for(r);
    work(r, prefetch);
    weir_unlisten(l);
    atomic_store(&countdown, 0);
    weir_report *report;
    rc = weir_check(r->q, false, &report, &err);
    assert_ok_(rc, &err, "check", __FILE__, __LINE__);
    if (report->n)
        fail_msg("not consistent: %s", report->line[0]);
    assert_int_equal(report->jobs, r->added);
    weir_report_free(report);
    weir_close(r->q);
    assert_int_equal(r->thens, r->asked);
}

static void every_allocation(bool sqlite, int prefetch)
{
    enum { ENOUGH = 3 };                     /* runs without a failure, as their count varies */
    long most = 0;
    for (long n = 1, clean = 0; clean < ENOUGH; n++) {
        rt t;
        char url[sizeof t.url];
        char dir[TEMPDIR_MAX] = "";
        snprintf(url, sizeof url, "mem:");
        if (sqlite) {
            assert_true(tempdir_make(dir));
            snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=os", dir);
        }
        run r = { .url = url, .came = GATE_INIT };
        atomic_store(&blown, 0);
        atomic_store(&countdown, n);
        scenario(&r, prefetch);
        atomic_store(&countdown, 0);
        if (atomic_load(&blown))
            most = n;
        clean = atomic_load(&blown) ? 0 : clean + 1;
        tempdir_remove(dir);
    }
    assert_true(most > 20);                  /* else the fuse is not where the library allocates */
}

static void in_memory(void **state)
{
    (void)state;
    every_allocation(false, 0);
}

static void in_memory_with_prefetch(void **state)
{
    (void)state;
    every_allocation(false, 2);
}

static void in_a_file(void **state)
{
    (void)state;
    every_allocation(true, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(in_memory_with_prefetch),
        cmocka_unit_test(in_a_file),
    };
    return cmocka_run_group_tests_name("runtime_alloc", tests, NULL, NULL);
}
