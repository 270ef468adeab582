/* test_runtime_remote.c - the calls of remote.h, plain and async: jobs that are worked on by id and
 * delivery alone, answers of their own for each of a batch, nothing borrowed after the call. */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/queue.h"

static const char *const mail[] = { "mail", NULL };

/* ---- the calls, plain or async ---- */

static bool async;

static weir_code end_of(rt *t, weir_code rc, weir_future *f)
{
    if (rc) {
        assert_null(f);
        return rc;
    }
    rc = weir_future_wait(f, PATIENCE_MS, &t->err);
    weir_future_free(f);
    return rc;
}

#define EITHER(plain, async_)                                                    \
    ({                                                                           \
        weir_future *f = (weir_future *)-1;                                      \
        t->err = (weir_error){ 0 };                                              \
        weir_code rc_ = async ? (async_) : (plain);                              \
        async ? end_of(t, rc_, f) : rc_;                                         \
    })

static weir_code take_for(rt *t, const weir_taking *what, weir_job **out, size_t *n)
{
    return EITHER(weir_take(t->q, what, out, n, &t->err),
                  weir_take_async(t->q, what, out, n, &f, &t->err));
}

static weir_code finish(rt *t, const weir_ending *endings, size_t n, weir_ended *out)
{
    return EITHER(weir_finish(t->q, endings, n, out, &t->err),
                  weir_finish_async(t->q, endings, n, out, &f, &t->err));
}

static weir_code renew(rt *t, const weir_lease *leases, size_t n, weir_renewed *out)
{
    return EITHER(weir_renew(t->q, leases, n, out, &t->err),
                  weir_renew_async(t->q, leases, n, out, &f, &t->err));
}

static weir_code progress(rt *t, uint64_t id, uint32_t delivery, int32_t percent, const char *data)
{
    return EITHER(weir_progress(t->q, id, delivery, percent, data, 0, &t->err),
                  weir_progress_async(t->q, id, delivery, percent, data, 0, &f, &t->err));
}

static weir_code log_by(rt *t, uint64_t id, uint32_t delivery, const char *line, size_t len)
{
    return EITHER(weir_log(t->q, id, delivery, line, len, &t->err),
                  weir_log_async(t->q, id, delivery, line, len, &f, &t->err));
}

static weir_code tick(rt *t, size_t limit, size_t *changed, int64_t *next_at)
{
    return EITHER(weir_tick(t->q, limit, changed, next_at, &t->err),
                  weir_tick_async(t->q, limit, changed, next_at, &f, &t->err));
}

/* A test that is run on each store, plain and async, with a clock that only it turns. */
#define BOTH_TEST(fn)                                                            \
    static void fn##_both(rt *t);                                                \
    static void fn##_on(rt *t)                                                   \
    {                                                                            \
        fn##_both(t);                                                            \
    }                                                                            \
    static void fn(void **state)                                                 \
    {                                                                            \
        (void)state;                                                             \
        async = false;                                                           \
        rt_each(fn##_on, true);                                                  \
        async = true;                                                            \
        rt_each(fn##_on, true);                                                  \
    }                                                                            \
    static void fn##_both(rt *t)

/* Take one job of type mail for a worker elsewhere; returns its id. It must be its first time. */
static uint64_t take_one(rt *t, int64_t lease_ms)
{
    weir_job   *job = NULL;
    size_t      n = 99;
    weir_taking what = {
        .remote = true, .types = mail, .n = 1, .lease_ms = lease_ms, .worker = "far:1"
    };
    OK(take_for(t, &what, &job, &n));
    assert_int_equal(n, 1);
    uint64_t id = job->id;
    assert_int_equal(job->delivery, 1);
    weir_job_free(job);
    return id;
}

/* ---- take ---- */

BOTH_TEST(taken_without_a_hold)
{
    uint64_t    id = rt_add_type(t, "mail");
    weir_taking what = { .remote = true, .types = mail, .n = 5, .worker = "far:1" };
    weir_job   *job[5] = { NULL };
    size_t      n = 99;
    OK(take_for(t, &what, job, &n));
    assert_int_equal(n, 1);
    assert_int_equal(job[0]->id, id);
    assert_string_equal(job[0]->worker, "far:1");
    assert_int_equal(job[0]->state, WEIR_STATE_ACTIVE);
    assert_int_equal(weir_job_done(job[0], NULL, 0, NULL), WEIR_EINVAL);     /* a copy, not taken */
    assert_false(weir_job_cancelled(job[0]));
    weir_job_free(job[0]);
    assert_int_equal(rt_state(t, id), WEIR_STATE_ACTIVE);

    OK(take_for(t, &what, job, &n));
    assert_int_equal(n, 0);
    rt_add_type(t, "mail");
    what.worker = NULL;
    OK(take_for(t, &what, job, &n));
    assert_int_equal(n, 1);
    assert_non_null(strchr(job[0]->worker, ':'));                    /* this program's */
    weir_job_free(job[0]);
}

BOTH_TEST(taking_what_cannot_be)
{
    char long_name[WEIR_MAX_WORKER + 2];
    memset(long_name, 'w', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    static const char *const star[] = { "*", NULL };
    const weir_taking bad[] = {
        { .types = mail },
        { .types = NULL, .n = 1 },
        { .types = star, .n = 1 },
        { .types = mail, .n = 1, .lease_ms = -1 },
        { .types = mail, .n = WEIR_MAX_PAGE + 1 },
        { .types = mail, .n = 1, .worker = long_name },
    };
    rt_add_type(t, "mail");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_job *job[1];
        size_t    n = 99;
        weir_code rc = take_for(t, &bad[i], job, &n);
        assert_int_equal(rc, i < 4 ? WEIR_EINVAL : WEIR_ELIMIT);
        assert_true(t->err.msg[0]);
        assert_int_equal(n, 0);
    }
    long_name[WEIR_MAX_WORKER] = '\0';
    weir_job *job;
    size_t    n;
    OK(take_for(t, &(weir_taking){ .remote = true, .types = mail, .n = 1, .worker = long_name },
                &job, &n));
    assert_string_equal(job->worker, long_name);
    weir_job_free(job);
}

/* ---- finish ---- */

BOTH_TEST(each_with_an_answer_of_its_own)
{
    for (int i = 0; i < 5; i++)
        rt_add(t, &(weir_spec){ .type = "mail", .remove_on_complete = i == 4 });
    uint64_t id[5];
    for (int i = 0; i < 5; i++)
        id[i] = take_one(t, 0);
    const weir_ending endings[] = {
        { .id = id[0], .delivery = 1, .text = "{\"a\":1}  garbage", .len = 7 },
        { .id = id[0], .delivery = 1 },
        { .id = id[1], .delivery = 1, .outcome = WEIR_OUTCOME_FAIL, .text = "no such host" },
        { .id = id[2], .delivery = 1, .outcome = WEIR_OUTCOME_RETURN, .text = "?" },
        { .id = id[3], .delivery = 1, .text = "{" },
        { .id = id[3], .delivery = 2 },
        { .id = 777, .delivery = 1 },
        { .id = id[3], .delivery = 1, .outcome = 9 },
        { .id = id[3], .delivery = 1, .outcome = WEIR_OUTCOME_FAIL },
        { .id = id[4], .delivery = 1 },
    };
    static const struct { weir_code code; weir_state state; } expected[] = {
        { WEIR_OK, WEIR_STATE_COMPLETE },  { WEIR_ESTALE, WEIR_STATE_ANY },
            { WEIR_OK, WEIR_STATE_FAILED },
        { WEIR_OK, WEIR_STATE_INACTIVE },  { WEIR_EINVAL, WEIR_STATE_ANY },
            { WEIR_ESTALE, WEIR_STATE_ANY },
        { WEIR_ESTALE, WEIR_STATE_ANY },   { WEIR_EINVAL, WEIR_STATE_ANY },
            { WEIR_OK, WEIR_STATE_FAILED },
        { WEIR_OK, WEIR_STATE_ANY },
    };
    enum { N = sizeof endings / sizeof *endings };
    weir_ended out[N];
    memset(out, 0x55, sizeof out);
    OK(finish(t, endings, N, out));
    for (int i = 0; i < N; i++) {
        assert_int_equal(out[i].err.code, expected[i].code);
        assert_int_equal(out[i].state, expected[i].state);
        assert_int_equal(out[i].n_jobs, 0);
        assert_int_equal(!out[i].err.msg[0], !out[i].err.code);
    }
    assert_non_null(strstr(out[4].err.msg, "result"));
    weir_job *job = rt_get(t, id[0]);
    assert_string_equal(job->result, "{\"a\":1}");
    weir_job_free(job);
    job = rt_get(t, id[1]);
    assert_string_equal(job->error, "no such host");
    weir_job_free(job);
    job = rt_get(t, id[3]);
    assert_string_equal(job->error, weir_code_text(WEIR_EJOB));
    weir_job_free(job);
    assert_int_equal(rt_state(t, id[4]), WEIR_STATE_ANY);
}

BOTH_TEST(none_and_all_refused)
{
    OK(finish(t, NULL, 0, NULL));
    weir_ended out[2];
    OK(finish(t, (weir_ending[2]){ { .outcome = 7 }, { .text = "[" } }, 2, out));
    assert_int_equal(out[0].err.code, WEIR_EINVAL);
    assert_int_equal(out[1].err.code, WEIR_EINVAL);
}

/* A busy worker needs one call: end these and give me others. */
BOTH_TEST(the_next_in_the_same_step)
{
    for (int i = 0; i < 6; i++)
        rt_add_type(t, "mail");
    uint64_t    a = take_one(t, 0), b = take_one(t, 0);
    weir_job   *one[1] = { NULL }, *rest[9] = { NULL }, *late[2] = { NULL };
    weir_taking next[] = { { .types = mail, .n = 1, .worker = "far:2" },
                           { .types = mail, .n = 9, .lease_ms = 5000 },
                           { .types = mail, .n = 2 },
                           { .types = mail, .n = 0 } };
    weir_ending endings[] = { { .id = a, .delivery = 1, .next = &next[0], .jobs = one },
                              { .id = a, .delivery = 1, .next = &next[2], .jobs = late },
                              { .id = b, .delivery = 1, .next = &next[1], .jobs = rest } };
    weir_ended  out[3];
    OK(finish(t, endings, 3, out));
    assert_int_equal(out[0].n_jobs, 1);
    assert_int_equal(one[0]->id, b + 1);
    assert_string_equal(one[0]->worker, "far:2");
    assert_int_equal(out[1].err.code, WEIR_ESTALE);
    assert_int_equal(out[1].n_jobs, 0);
    assert_int_equal(out[2].n_jobs, 3);
    weir_ending more = { .id = one[0]->id, .delivery = 1, .next = &next[3] };
    OK(finish(t, &more, 1, out));
    assert_int_equal(out[0].err.code, WEIR_OK);
    assert_int_equal(rt_count(t, WEIR_STATE_ACTIVE), 3);
    weir_job_free(one[0]);
    for (int i = 0; i < 3; i++)
        weir_job_free(rest[i]);
}

BOTH_TEST(finishing_what_is_over_a_limit)
{
    enum { MANY = WEIR_MAX_ADD + 1 };
    uint64_t     id = (rt_add_type(t, "mail"), take_one(t, 0));
    weir_ending *e = calloc(MANY, sizeof *e);
    weir_ended  *out = calloc(MANY, sizeof *out);
    e[0] = (weir_ending){ .id = id, .delivery = 1 };
    assert_int_equal(finish(t, e, MANY, out), WEIR_ELIMIT);
    assert_int_equal(out[0].err.code, WEIR_ELIMIT);
    assert_string_equal(out[MANY - 1].err.msg, t->err.msg);

    char *big = malloc(WEIR_MAX_DATA + 1);
    memset(big, '1', WEIR_MAX_DATA);
    for (int i = 1; i <= 65; i++)
        e[i] = (weir_ending){ .id = 5, .delivery = 1, .text = big, .len = WEIR_MAX_DATA };
    assert_int_equal(finish(t, e, 66, out), WEIR_ELIMIT);
    free(big);

    weir_taking next = { .types = mail, .n = WEIR_MAX_PAGE };
    weir_job   *jobs[1];
    memset(e + 1, 0, (MANY - 1) * sizeof *e);
    for (int i = 0; i <= WEIR_MAX_ADD / WEIR_MAX_PAGE; i++) {
        e[i].next = &next;
        e[i].jobs = jobs;
    }
    assert_int_equal(finish(t, e, 20, out), WEIR_ELIMIT);
    e[0].jobs = NULL;
    assert_int_equal(finish(t, e, 1, out), WEIR_EINVAL);
    assert_string_equal(t->err.msg, "endings[0].jobs: missing");
    next.n = WEIR_MAX_PAGE + 1;                        /* of one alone: its own answer */
    e[0].jobs = jobs;
    OK(finish(t, e, 1, out));
    assert_int_equal(out[0].err.code, WEIR_ELIMIT);
    assert_int_equal(rt_state(t, id), WEIR_STATE_ACTIVE);    /* and nothing happened */
    free(e);
    free(out);
}

/* More than one batch holds. */
BOTH_TEST(ten_thousand_at_once)
{
    weir_spec   *specs = calloc(WEIR_MAX_ADD, sizeof *specs);
    weir_ending *e = calloc(WEIR_MAX_ADD, sizeof *e);
    weir_ended  *out = calloc(WEIR_MAX_ADD, sizeof *out);
    weir_job    *jobs[WEIR_MAX_PAGE];
    weir_taking  all = { .remote = true, .types = mail, .n = WEIR_MAX_PAGE };
    size_t       n = 0, got;
    for (size_t i = 0; i < WEIR_MAX_ADD; i++)
        specs[i].type = "mail";
    OK(weir_add_many(t->q, specs, WEIR_MAX_ADD, NULL, NULL, &t->err));
    while (n < WEIR_MAX_ADD) {
        OK(take_for(t, &all, jobs, &got));
        assert_int_equal(got, WEIR_MAX_PAGE);
        for (size_t i = 0; i < got; i++) {
            e[n++] = (weir_ending){ .id = jobs[i]->id, .delivery = 1, .text = "[1,2,3]" };
            weir_job_free(jobs[i]);
        }
    }
    OK(finish(t, e, n, out));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(out[i].err.code, WEIR_OK);
    assert_int_equal(rt_count(t, WEIR_STATE_COMPLETE), n);
    free(specs);
    free(e);
    free(out);
}

/* ---- meanwhile ---- */

BOTH_TEST(leases_are_renewed_one_by_one)
{
    rt_add_type(t, "mail");
    rt_add_type(t, "mail");
    uint64_t   a = take_one(t, 1000), b = take_one(t, 1000);
    weir_lease leases[] = { { .id = a, .delivery = 1, .lease_ms = 5000 },
                            { .id = b, .delivery = 2, .lease_ms = 5000 },
                            { .id = 99, .delivery = 1 } };
    weir_renewed out[3];
    memset(out, 77, sizeof out);
    OK(renew(t, leases, 3, out));
    assert_int_equal(out[0].err.code, WEIR_OK);
    assert_string_equal(out[0].err.msg, "");
    assert_int_equal(out[1].err.code, WEIR_ESTALE);
    assert_string_equal(out[1].err.field, "");
    assert_int_equal(out[2].err.code, WEIR_ESTALE);
    assert_string_equal(out[2].err.msg, "job 99: delivery 1 is over: the job has moved on");
    atomic_fetch_add(&t->now, 1000);
    OK(tick(t, 0, NULL, NULL));
    assert_int_equal(rt_state(t, a), WEIR_STATE_ACTIVE);
    assert_int_equal(rt_state(t, b), WEIR_STATE_INACTIVE);

    leases[1].lease_ms = -1;
    assert_int_equal(renew(t, leases, 2, out), WEIR_EINVAL);
    assert_int_equal(out[0].err.code, WEIR_EINVAL);
    assert_string_equal(out[1].err.field, "leases[1].lease_ms");
    assert_int_equal(renew(t, leases + 1, 1, out), WEIR_EINVAL);
    assert_string_equal(out[0].err.field, "leases[0].lease_ms");
    OK(renew(t, NULL, 0, NULL));
    leases[1].lease_ms = 5000;
    OK(renew(t, leases, 2, NULL));              /* nobody asks for the answers */
    weir_lease   *many = calloc(WEIR_MAX_ADD + 1, sizeof *many);
    weir_renewed *answers = calloc(WEIR_MAX_ADD + 1, sizeof *answers);
    assert_int_equal(renew(t, many, WEIR_MAX_ADD + 1, answers), WEIR_ELIMIT);
    assert_int_equal(answers[WEIR_MAX_ADD].err.code, WEIR_ELIMIT);
    free(answers);
    free(many);
}

BOTH_TEST(progress_and_log_of_a_delivery)
{
    rt_add_type(t, "mail");
    uint64_t id = take_one(t, 0);
    OK(progress(t, id, 1, 40, "{\"step\":2}"));
    OK(progress(t, id, 1, 60, NULL));
    weir_job *job = rt_get(t, id);
    assert_int_equal(job->progress, 60);
    assert_string_equal(job->progress_data, "{\"step\":2}");
    weir_job_free(job);
    assert_int_equal(progress(t, id, 2, 50, NULL), WEIR_ESTALE);
    assert_int_equal(progress(t, id, 1, 101, NULL), WEIR_EINVAL);
    assert_int_equal(progress(t, id, 1, 50, "nonsense"), WEIR_EINVAL);

    OK(log_by(t, id, 1, "one line and more", 8));
    OK(log_by(t, id, 0, "from anybody", 0));
    OK(log_by(t, id, 1, "", 0));
    assert_int_equal(log_by(t, id, 2, "late", 0), WEIR_ESTALE);
    assert_int_equal(log_by(t, 77, 0, "nobody", 0), WEIR_ENOENT);
    assert_int_equal(log_by(t, id, 1, NULL, 0), WEIR_EINVAL);
    weir_lines *lines;
    OK(weir_logs(t->q, id, 0, 0, &lines, &t->err));
    assert_int_equal(lines->n, 3);
    assert_string_equal(lines->line[0].text, "one line");
    assert_string_equal(lines->line[1].text, "from anybody");
    assert_string_equal(lines->line[2].text, "");
    weir_lines_free(lines);
}

/* ---- time ---- */

/* Has the timer's thread read the clock, and does it sleep until it is woken? */
static bool timer_sleeps(weir_queue *q)
{
    pthread_mutex_lock(&q->timer.lock);
    bool asleep = q->timer.asleep;
    pthread_mutex_unlock(&q->timer.lock);
    return asleep;
}

BOTH_TEST(what_is_due_is_done)
{
    size_t  changed = 99;
    int64_t next = 99, now = t->now;
    OK(tick(t, 0, &changed, &next));
    assert_int_equal(changed, 0);
    for (int i = 0; i < 3; i++)
        rt_add(t, &(weir_spec){ .type = "mail", .delay_ms = 1000 });
    uint64_t last = rt_add(t, &(weir_spec){ .type = "mail", .delay_ms = 9000 });
    OK(tick(t, 0, &changed, &next));
    assert_int_equal(changed, 0);
    assert_true(next > now && next <= now + 1000);
    UNTIL(timer_sleeps(t->q));
    atomic_fetch_add(&t->now, 1000);                   /* the timer is not told */
    OK(tick(t, WEIR_MAX_PAGE, &changed, &next));
    assert_int_equal(changed, 3);
    assert_true(next <= now + 9000);
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 3);
    assert_int_equal(rt_state(t, last), WEIR_STATE_DELAYED);
    assert_int_equal(tick(t, WEIR_MAX_PAGE + 1, &changed, &next), WEIR_ELIMIT);
    assert_int_equal(changed, 0);
    rt_later(t, 8000);                                 /* and the timer still knows of the rest */
    rt_until(t, last, WEIR_STATE_INACTIVE);
}

/* ---- async: nothing borrowed, nothing touched ---- */

static void borrows_nothing(rt *t)
{
    enum { N = 40 };
    for (int i = 0; i < 2 * N; i++)
        rt_add_type(t, "mail");
    uint64_t id[N];
    for (int i = 0; i < N; i++)
        id[i] = take_one(t, 0);
    weir_ended  *out = calloc(N, sizeof *out);
    weir_job   **jobs = calloc(N, sizeof *jobs);
    weir_ending *e = calloc(N, sizeof *e);
    char       **text = calloc(N, sizeof *text);
    const char **types = calloc(2, sizeof *types);
    char        *type = strdup("mail"), *worker = strdup("far:9");
    weir_taking *next = calloc(1, sizeof *next);
    types[0] = type;
    *next = (weir_taking){ .types = types, .n = 1, .worker = worker };
    for (int i = 0; i < N; i++) {
        text[i] = malloc(8);
        snprintf(text[i], 8, "[%d]", i);
        e[i] = (weir_ending){ .id = id[i], .delivery = 1, .text = text[i], .next = next,
                              .jobs = &jobs[i] };
    }
    weir_future *f, *renewed, *told, *logged;
    weir_lease  *lease = calloc(1, sizeof *lease);
    weir_renewed answer;
    char        *line = strdup("a line"), *json = strdup("{\"x\":1}");
    *lease = (weir_lease){ .id = id[0], .delivery = 1 };
    OK(weir_renew_async(t->q, lease, 1, &answer, &renewed, &t->err));
    OK(weir_log_async(t->q, id[0], 1, line, 0, &logged, &t->err));
    OK(weir_progress_async(t->q, id[0], 1, 5, json, 0, &told, &t->err));
    OK(weir_finish_async(t->q, e, N, out, &f, &t->err));
    for (int i = 0; i < N; i++)
        free(text[i]);
    free(text);
    free(e);
    free(types);
    free(type);
    free(worker);
    free(next);
    free(line);
    free(json);
    free(lease);
    OK(end_of(t, WEIR_OK, renewed));
    OK(end_of(t, WEIR_OK, logged));
    OK(end_of(t, WEIR_OK, told));
    OK(end_of(t, WEIR_OK, f));
    assert_int_equal(answer.err.code, WEIR_OK);
    for (int i = 0; i < N; i++) {
        char result[8];
        snprintf(result, sizeof result, "[%d]", i);
        assert_int_equal(out[i].err.code, WEIR_OK);
        assert_int_equal(out[i].n_jobs, 1);
        assert_string_equal(jobs[i]->worker, "far:9");
        weir_job_free(jobs[i]);
        weir_job *done = rt_get(t, id[i]);
        assert_string_equal(done->result, result);
        weir_job_free(done);
    }
    free(out);
    free(jobs);
}

RT_TEST(async_borrows_nothing)
{
    borrows_nothing(t);
}

/* Released at once: the answer goes nowhere (the address sanitizer looks), and is freed. */
RT_TEST(released_before_done)
{
    async = false;
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 4; k++)
            rt_add_type(t, "mail");
        uint64_t     id[2] = { take_one(t, 0), take_one(t, 0) };
        weir_taking  what = { .remote = true, .types = mail, .n = 1 };
        weir_ended  *out = calloc(2, sizeof *out);
        weir_job   **jobs = calloc(4, sizeof *jobs);
        weir_lease   lease = { .id = id[0], .delivery = 1 };
        weir_renewed *renewed = calloc(1, sizeof *renewed);
        size_t      *n = calloc(1, sizeof *n);
        int64_t     *at = calloc(1, sizeof *at);
        weir_future *f[4];
        weir_ending  e[2] = { { .id = id[0], .delivery = 1, .next = &what, .jobs = &jobs[0] },
                              { .id = id[1], .delivery = 1 } };
        OK(weir_renew_async(t->q, &lease, 1, renewed, &f[0], &t->err));
        OK(weir_finish_async(t->q, e, 2, out, &f[1], &t->err));
        OK(weir_take_async(t->q, &what, &jobs[1], n, &f[2], &t->err));
        OK(weir_tick_async(t->q, 0, NULL, at, &f[3], &t->err));
        if (i % 3 == 0)
            weir_future_wait(f[i / 3 % 4], PATIENCE_MS, NULL);
        for (int k = 0; k < 4; k++)
            weir_future_free(f[k]);
        weir_job_free(jobs[0]);        /* what came before the release is ours */
        weir_job_free(jobs[1]);
        free(out);
        free(jobs);
        free(renewed);
        free(n);
        free(at);
        rt_until_count(t, WEIR_STATE_COMPLETE, 2 * (uint64_t)i + 2);
        /* Nothing may be left for the next round's first deliveries to be mixed up with. */
        weir_page *page;
        OK(weir_list(t->q, &(weir_query){ .state = WEIR_STATE_INACTIVE }, &page, &t->err));
        for (size_t k = 0; k < page->n; k++)
            OK(weir_remove(t->q, page->job[k]->id, &t->err));
        weir_page_free(page);
    }
}

static void closed_meanwhile(void **state)
{
    (void)state;
    rt box, *t = &box;
    rt_open(t, RT_MEM, false);
    rt_add_type(t, "mail");
    weir_job *job;
    size_t    n;
    OK(weir_take(t->q, &(weir_taking){ .types = mail, .n = 1 }, &job, &n,
                 &t->err));                     /* keeps the closed queue in memory */
    weir_queue *q = t->q;
    weir_close(q);
    weir_ended   out[2] = { { .n_jobs = 9 }, { .n_jobs = 9 } };
    weir_lease   lease = { .id = 1, .delivery = 1 };
    weir_renewed renewed;
    weir_future *f = (weir_future *)-1;
    weir_ending  e[2] = { { .id = 1, .delivery = 1 }, { .id = 2, .delivery = 1, .text = "[]" } };
    assert_int_equal(weir_finish(q, e, 2, out, &t->err), WEIR_ECLOSED);
    assert_int_equal(out[1].err.code, WEIR_ECLOSED);
    assert_int_equal(out[1].n_jobs, 0);
    assert_int_equal(weir_finish_async(q, e, 2, out, &f, NULL), WEIR_ECLOSED);
    assert_null(f);
    assert_int_equal(weir_renew(q, &lease, 1, &renewed, &t->err), WEIR_ECLOSED);
    assert_int_equal(renewed.err.code, WEIR_ECLOSED);
    weir_job_free(job);
}

static void open_for_reading(void **state)
{
    (void)state;
    rt box, *t = &box;
    rt_open(t, RT_SQLITE, false);
    rt_add_type(t, "mail");
    weir_queue *q;
    weir_ended  out[1];
    OK(weir_open(&q, t->url, &(weir_options){ .read_only = true }, &t->err));
    OK(weir_finish(q, &(weir_ending){ .id = 1, .delivery = 1 }, 1, out, &t->err));
    assert_int_equal(out[0].err.code, WEIR_EREADONLY);
    weir_close(q);
    rt_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_without_a_hold),
        cmocka_unit_test(taking_what_cannot_be),
        cmocka_unit_test(each_with_an_answer_of_its_own),
        cmocka_unit_test(none_and_all_refused),
        cmocka_unit_test(the_next_in_the_same_step),
        cmocka_unit_test(finishing_what_is_over_a_limit),
        cmocka_unit_test(ten_thousand_at_once),
        cmocka_unit_test(leases_are_renewed_one_by_one),
        cmocka_unit_test(progress_and_log_of_a_delivery),
        cmocka_unit_test(what_is_due_is_done),
        cmocka_unit_test(async_borrows_nothing),
        cmocka_unit_test(released_before_done),
        cmocka_unit_test(closed_meanwhile),
        cmocka_unit_test(open_for_reading),
    };
    return cmocka_run_group_tests_name("runtime_remote", tests, NULL, NULL);
}
