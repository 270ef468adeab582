/* test_mover.c - moving jobs between queues that are in use: every job is run once, by one side,
 * and what cannot move stays as it was. */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/migrate/mover.h"
#include "support/same_job.h"

#define OK(call)                                                                    \
    do {                                                                            \
        weir_error err_ = { 0 };                                                    \
        weir_error *err = &err_;                                                    \
        weir_code rc_ = (call);                                                     \
        if (rc_)                                                                    \
            fail_msg("%s: %s: %s", #call, weir_code_name(rc_), err->msg);           \
    } while (0)

/* ---- two queues ---- */

typedef struct pair {
    weir_queue *from, *to;
    mover       m;
} pair;

static int64_t frozen(void *ctx)
{
    (void)ctx;
    return INT64_C(1700000000000);
}

static void set_up(pair *p, bool clock_stands)
{
    weir_options opt = { .now = clock_stands ? frozen : NULL };
    *p = (pair){ 0 };
    OK(weir_open(&p->from, "mem:", &opt, err));
    OK(weir_open(&p->to, "mem:", &opt, err));
    p->m = (mover){ .from = p->from, .to = p->to };
}

static void tear_down(pair *p)
{
    for (int i = 0; i < 2; i++) {
        weir_report *r;
        OK(weir_check(i ? p->to : p->from, false, &r, err));
        assert_int_equal(r->n, 0);
        weir_report_free(r);
    }
    weir_close(p->from);
    weir_close(p->to);
    mover_fini(&p->m);
}

static uint64_t pass(pair *p)
{
    uint64_t n = 0;
    OK(mover_pass(&p->m, &n, err));
    return n;
}

static uint64_t count(weir_queue *q, weir_state state)
{
    uint64_t n;
    OK(weir_count(q, state, NULL, &n, err));
    return n;
}

static weir_job *get(weir_queue *q, uint64_t id)
{
    weir_job *job;
    OK(weir_get(q, id, &job, err));
    return job;
}

static weir_job *take_one(weir_queue *q, const char *type)
{
    weir_job *job = NULL;
    size_t    n;
    OK(weir_take(q, &(weir_taking){ .types = (const char *const[]){ type, NULL }, .n = 1 }, &job,
                 &n, err));
    return n ? job : NULL;
}

/* ---- one by one ---- */

static void all_of_a_job_moves(void **state)
{
    (void)state;
    pair p;
    set_up(&p, true);
    OK(weir_add(p.from, &(weir_spec){ .type = "a", .data = "[1]", .priority = -3, .unique = "k",
                                      .attempts = 3, .backoff = { .kind = WEIR_BACKOFF_FIXED } },
                                          NULL,
                err));
    OK(weir_add(p.from, &(weir_spec){ .type = "a", .delay_ms = 5000 }, NULL, err));
    OK(weir_add(p.from, &(weir_spec){ .type = "b", .search = true }, NULL, err));
    for (int i = 0; i < 1500; i++)
        OK(weir_log(p.from, 1, 0, i == 1200 ? "needle" : "hay", 0, err));
    weir_job *job = take_one(p.from, "b");
    OK(weir_job_done(job, "{\"r\":1}", 0, NULL));
    weir_job_free(job);
    OK(weir_update(p.from, 2, &(weir_change){ .set_priority = true, .priority = 4 }, NULL, err));
    weir_job *was[3], *is;
    for (uint64_t id = 1; id <= 3; id++)
        was[id - 1] = get(p.from, id);
    assert_non_null(was[1]->history);                   /* its way here is no part of it */
    OK(mover_check(&p.m, err));
    assert_int_equal(pass(&p), 3);
    assert_int_equal(pass(&p), 0);
    assert_int_equal(count(p.from, WEIR_STATE_ANY), 0);
    for (uint64_t id = 1; id <= 3; id++) {
        is = get(p.to, id);
        check_same_job(is, was[id - 1]);
        weir_job_free(is);
        weir_job_free(was[id - 1]);
    }
    weir_lines *lines;
    OK(weir_logs(p.to, 1, 1200, 0, &lines, err));
    assert_int_equal(lines->n, 300);
    assert_string_equal(lines->line[0].text, "needle");
    weir_lines_free(lines);
    assert_int_equal(p.m.moved[WEIR_STATE_INACTIVE], 1);
    assert_int_equal(p.m.moved[WEIR_STATE_DELAYED], 1);
    assert_int_equal(p.m.moved[WEIR_STATE_COMPLETE], 1);
    tear_down(&p);
}

static void what_a_worker_has_is_left_to_it(void **state)
{
    (void)state;
    pair p;
    set_up(&p, true);
    OK(weir_add(p.from, &(weir_spec){ .type = "a" }, NULL, err));
    weir_job *job = take_one(p.from, "a");
    assert_int_equal(pass(&p), 0);
    assert_int_equal(count(p.from, WEIR_STATE_ACTIVE), 1);
    OK(weir_job_done(job, NULL, 0, NULL));
    weir_job_free(job);
    assert_int_equal(pass(&p), 1);
    assert_int_equal(count(p.to, WEIR_STATE_COMPLETE), 1);
    tear_down(&p);
}

static void paused_types_move_and_stay_paused(void **state)
{
    (void)state;
    pair          p;
    weir_settings keep = { .keep_complete = { .count = 7 } };
    weir_settings all = { .keep_failed = { .age_ms = 5 }, .search = true };
    set_up(&p, true);
    OK(weir_add(p.from, &(weir_spec){ .type = "a" }, NULL, err));
    OK(weir_add(p.from, &(weir_spec){ .type = "plain" }, NULL, err));
    OK(weir_pause(p.from, "a", err));
    OK(weir_configure(p.from, "a", &keep, err));
    OK(weir_configure(p.from, "*", &all, err));
    OK(weir_configure(p.to, "own", &keep, err));
    OK(mover_types(&p.m, err));
    assert_int_equal(p.m.types, 2);
    assert_int_equal(pass(&p), 2);
    weir_stats *s;
    OK(weir_get_stats(p.to, &s, err));
    assert_int_equal(s->n, 3);
    assert_true(s->type[0].paused);
    assert_int_equal(s->type[0].settings.keep_complete.count, 7);
    assert_false(s->type[0].settings.search);
    assert_int_equal(s->type[1].settings.keep_complete.count, 7);       /* own */
    assert_true(s->type[2].settings.search);                            /* plain: those of * */
    assert_int_equal(s->all.settings.keep_failed.age_ms, 5);
    weir_stats_free(s);
    OK(mover_types(&p.m, err));
    assert_int_equal(p.m.types, 2);         /* nothing is left to copy */
    tear_down(&p);
}

static void the_same_store_is_noticed(void **state)
{
    (void)state;
    pair       p;
    weir_error why = { 0 };
    set_up(&p, true);
    mover same = { .from = p.from, .to = p.from };
    OK(mover_check(&same, err));                        /* empty: nothing can be lost */
    OK(weir_add(p.from, &(weir_spec){ .type = "a" }, NULL, err));
    assert_int_equal(mover_check(&same, &why), WEIR_EINVAL);
    assert_non_null(strstr(why.msg, "the target is the source"));
    /* a copy is another store, though it has the same job */
    weir_job *job = get(p.from, 1);
    OK(weir_import(p.to, &(weir_incoming){ .job = job }, 1, NULL, err));
    weir_job_free(job);
    OK(mover_check(&p.m, err));
    tear_down(&p);
}

static void what_is_refused_stays_as_it_was(void **state)
{
    (void)state;
    pair p;
    set_up(&p, true);
    OK(weir_add(p.from, &(weir_spec){ .type = "a", .delay_ms = 500 }, NULL, err));
    OK(weir_add(p.from, &(weir_spec){ .type = "b", .unique = "k", .priority = 4 }, NULL, err));
    OK(weir_add(p.from, &(weir_spec){ .type = "b" }, NULL, err));
    OK(weir_add(p.to, &(weir_spec){ .type = "other" }, NULL, err));     /* has id 1 */
    weir_job far = { .id = 900, .type = "b", .unique = "k" };
    OK(weir_import(p.to, &(weir_incoming){ .job = &far }, 1, NULL, err));
    assert_int_equal(pass(&p), 1);
    assert_int_equal(p.m.refused.n, 2);
    assert_int_equal(p.m.refused.n_shown, 2);
    weir_job *delayed = get(p.from, 1), *waits = get(p.from, 2);
    assert_int_equal(delayed->state, WEIR_STATE_DELAYED);
    assert_int_equal(delayed->promote_at, frozen(NULL) + 500);
    assert_int_equal(delayed->delay_ms, 500);
    assert_int_equal(waits->state, WEIR_STATE_INACTIVE);
    assert_int_equal(waits->priority, 4);
    weir_job_free(delayed);
    weir_job_free(waits);
    assert_int_equal(pass(&p), 0);
    OK(weir_remove(p.to, 900, err));
    mover again = { .from = p.from, .to = p.to };
    uint64_t n;
    OK(mover_pass(&again, &n, err));
    assert_int_equal(n, 1);
    mover_fini(&again);
    tear_down(&p);
}

/* ---- after a crash ---- */

/* After which step a run was killed: see mover.h. */
typedef enum step { PARKED, IMPORTED, MARKED, RELEASED, STEPS } step;

static void park_until(weir_queue *q, uint64_t id, int64_t at)
{
    OK(weir_update(q, id, &(weir_change){ .run_at = at }, NULL, err));
}

/* What it has left of this job of the source, with id `there` in the target. */
static void leave(pair *p, uint64_t id, uint64_t there, step last)
{
    weir_job   *job = get(p->from, id), copy = *job;
    weir_lines *lines;
    OK(weir_logs(p->from, id, 0, 0, &lines, err));
    park_until(p->from, id, WEIR_PARKED_AT + job->promote_at);
    copy.id = there;
    copy.state = WEIR_STATE_DELAYED;
    copy.promote_at += WEIR_PARKED_AT;
    if (last >= IMPORTED)
        OK(weir_import(p->to, &(weir_incoming){ .job = &copy, .lines = lines->line,
                                                   .n_lines = lines->n }, 1, NULL,
                       err));
    if (last >= MARKED)
        park_until(p->from, id, WEIR_PARKED_AT + WEIR_PARKED_SPAN + job->promote_at);
    if (last >= RELEASED)
        park_until(p->to, there, job->promote_at);
    weir_lines_free(lines);
    weir_job_free(job);
}

/* Each step, a job that can run and one that is delayed. The released one runs, and is removed when
 * it is done: only the mark in the source tells that it was there. */
static void go_on_after_each_step(bool new_ids, bool flag_of_second_run)
{
    enum { JOBS_LEFT = 2 * STEPS, FIRST = 100 };
    pair      p;
    weir_job *was[JOBS_LEFT], *is;
    set_up(&p, true);
    for (uint64_t id = 1; id <= JOBS_LEFT; id++) {
        char     line[100];
        uint64_t there = new_ids ? FIRST + id : id;
        OK(weir_add(p.from, &(weir_spec){ .type = id == 2 * RELEASED + 1 ? "ran" : "a",
                                          .delay_ms = id % 2 ? 0 : 700,
                                          .remove_on_complete = true }, NULL, err));
        snprintf(line, sizeof line, "moved | job %" PRIu64 " becomes job %" PRIu64
                 ", or the next that will do", id, there);
        if (new_ids)
            OK(weir_log(p.from, id, 0, line, 0, err));
        was[id - 1] = get(p.from, id);
        leave(&p, id, there, (step)((id - 1) / 2));
    }
    assert_null(take_one(p.from, "a"));                 /* nobody has what is parked */
    assert_null(take_one(p.to, "a"));
    is = take_one(p.to, "ran");
    OK(weir_job_done(is, NULL, 0, NULL));
    weir_job_free(is);
    p.m.new_ids = flag_of_second_run;
    assert_int_equal(pass(&p), JOBS_LEFT);
    assert_int_equal(count(p.from, WEIR_STATE_ANY), 0);
    assert_int_equal(count(p.to, WEIR_STATE_ANY), JOBS_LEFT - 1);
    assert_null(take_one(p.to, "ran"));
    for (uint64_t id = 1; id <= JOBS_LEFT; id++) {
        weir_job want = *was[id - 1];
        want.id = new_ids ? FIRST + id : id;
        if (id != 2 * RELEASED + 1) {
            is = get(p.to, want.id);
            check_same_job(is, &want);
            weir_job_free(is);
        }
        weir_job_free(was[id - 1]);
    }
    tear_down(&p);
}

static void each_step_can_be_the_last(void **state)
{
    (void)state;
    go_on_after_each_step(false, false);
}

static void each_step_can_be_the_last_with_new_ids(void **state)
{
    (void)state;
    go_on_after_each_step(true, true);
    go_on_after_each_step(true, false);
}

static void a_second_run_goes_on(void **state)
{
    (void)state;
    pair p;
    set_up(&p, true);
    for (int i = 0; i < 2; i++)
        OK(weir_add(p.from, &(weir_spec){ .type = "a", .delay_ms = i ? 700 : 0 }, NULL, err));
    for (int i = 0; i < 2; i++)
        OK(weir_add(p.from, &(weir_spec){ .type = "b", .delay_ms = i ? 700 : 0 }, NULL, err));
    weir_job *was[4], *is;
    for (uint64_t id = 1; id <= 4; id++) {
        was[id - 1] = get(p.from, id);
        leave(&p, id, id, id > 2 ? RELEASED : PARKED);
    }
    assert_null(take_one(p.from, "a"));                 /* nobody has what is parked */
    weir_explanation *e;
    OK(weir_explain(p.from, 1, &e, err));
    assert_non_null(strstr(e->why, "on its way from one store to another"));
    weir_explanation_free(e);
    is = take_one(p.to, "b");                           /* the target has gone on */
    OK(weir_job_done(is, NULL, 0, NULL));
    weir_job_free(is);
    assert_int_equal(pass(&p), 4);
    assert_int_equal(p.m.existed, 2);
    assert_int_equal(count(p.from, WEIR_STATE_ANY), 0);
    assert_int_equal(count(p.to, WEIR_STATE_ANY), 4);
    assert_int_equal(count(p.to, WEIR_STATE_COMPLETE), 1);
    for (uint64_t id = 1; id <= 4; id++) {
        is = get(p.to, id);
        if (id != 3)
            check_same_job(is, was[id - 1]);
        weir_job_free(is);
        weir_job_free(was[id - 1]);
    }
    tear_down(&p);
}

static void a_copy_that_fell_behind_is_not_taken_for_it(void **state)
{
    (void)state;
    pair p;
    set_up(&p, true);
    OK(weir_add(p.from, &(weir_spec){ .type = "a" }, NULL, err));
    OK(weir_add(p.from, &(weir_spec){ .type = "b" }, NULL, err));
    p.m.keep = true;
    assert_int_equal(pass(&p), 2);
    assert_int_equal(pass(&p), 0);
    assert_int_equal(count(p.from, WEIR_STATE_INACTIVE), 2);
    weir_job *job = take_one(p.from, "a");              /* the source goes on with it */
    OK(weir_job_done(job, NULL, 0, NULL));
    weir_job_free(job);
    p.m.keep = false;
    assert_int_equal(pass(&p), 1);                      /* b */
    assert_int_equal(p.m.refused.n, 1);
    assert_non_null(strstr(p.m.refused.shown[0].why, "not so far on"));
    assert_int_equal(count(p.from, WEIR_STATE_COMPLETE), 1);
    tear_down(&p);
}

/* ---- new ids ---- */

static void new_ids_are_written_down_first(void **state)
{
    (void)state;
    pair       p;
    weir_spec  specs[3] = { { .type = "a" }, { .type = "a" }, { .type = "a", .delay_ms = 900 } };
    weir_lines *lines;
    set_up(&p, true);
    OK(weir_add(p.to, &(weir_spec){ .type = "x" }, NULL, err));
    OK(weir_add_many(p.from, specs, 3, NULL, NULL, err));     /* same type, same created_at */
    p.m.new_ids = true;
    assert_int_equal(pass(&p), 3);
    assert_int_equal(count(p.from, WEIR_STATE_ANY), 0);
    for (uint64_t id = 2; id <= 4; id++) {
        char want[80];
        snprintf(want, sizeof want, "moved | job %" PRIu64 " becomes job %" PRIu64
                 ", or the next that will do", id - 1, id);
        OK(weir_logs(p.to, id, 0, 0, &lines, err));
        assert_int_equal(lines->n, 1);
        assert_string_equal(lines->line[0].text, want);
        weir_lines_free(lines);
    }
    tear_down(&p);
}

/* Three alike: the first was named, the second named and imported, the third not even that. The id
 * of the first is taken by another job meanwhile. */
static void a_second_run_finds_new_ids(void **state)
{
    (void)state;
    pair      p;
    weir_spec specs[3] = { { .type = "a" }, { .type = "a" }, { .type = "a" } };
    set_up(&p, true);
    OK(weir_add_many(p.from, specs, 3, NULL, NULL, err));
    OK(weir_log(p.from, 1, 0, "moved | job 1 becomes job 10, or the next that will do", 0, err));
    OK(weir_log(p.from, 2, 0, "moved | job 2 becomes job 11, or the next that will do", 0, err));
    weir_job   *second = get(p.from, 2), there;
    weir_lines *lines;
    OK(weir_logs(p.from, 2, 0, 0, &lines, err));
    there = *second;
    there.id = 11;
    weir_incoming in = { .job = &there, .lines = lines->line, .n_lines = lines->n };
    OK(weir_import(p.to, &in, 1, NULL, err));
    weir_job other = { .id = 10, .type = "a", .created_at = second->created_at };
    OK(weir_import(p.to, &(weir_incoming){ .job = &other }, 1, NULL, err));
    weir_lines_free(lines);
    weir_job_free(second);
    p.m.new_ids = true;
    assert_int_equal(pass(&p), 3);
    assert_int_equal(p.m.existed, 1);
    assert_int_equal(count(p.from, WEIR_STATE_ANY), 0);
    assert_int_equal(count(p.to, WEIR_STATE_ANY), 4);         /* 10, 11, and two more */
    tear_down(&p);
}

/* ---- in full use ---- */

enum { PRODUCERS = 2, JOBS = 3000, KINDS = 8 };

typedef struct traffic {
    pair        p;
    atomic_int  added, done, ready;
    atomic_uint ran[JOBS][KINDS];           /* by number and attempt */
} traffic;

static weir_code handle(weir_job *job, void *ctx)
{
    traffic *t = ctx;
    unsigned n = (unsigned)strtoul(job->data + 1, NULL, 10);
    assert_true(n < JOBS && job->attempts < KINDS);
    atomic_fetch_add(&t->ran[n][job->attempts], 1);
    if (n % 7 == 0 && job->attempts == 0)
        return weir_job_fail(job, "not yet");
    atomic_fetch_add(&t->done, 1);
    return WEIR_OK;
}

static void *produce(void *arg)
{
    traffic *t = arg;
    for (;;) {
        int n = atomic_fetch_add(&t->added, 1);
        if (n >= JOBS)
            return NULL;
        char      data[24];
        bool      late = n > JOBS / 2;      /* from there on, some go to the target */
        weir_spec spec = { .type = n % 3 ? "a" : "b", .data = data, .attempts = 2,
                           .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 1 + n % 20 },
                           .delay_ms = n % 5 ? 0 : 1 + n % 30, .priority = n % 4 };
        snprintf(data, sizeof data, "[%d]", n);
        OK(weir_add(late && n % 2 ? t->p.to : t->p.from, &spec, NULL, err));
        atomic_store(&t->ready, 1);
        if (n % 50 == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

static void each_job_is_run_by_one_side(bool new_ids)
{
    traffic  *t = calloc(1, sizeof *t);
    weir_pool_config pool = { .handler = handle, .ctx = t, .threads = 2, .prefetch = 2 };
    pthread_t thread[PRODUCERS];
    set_up(&t->p, false);
    t->p.m.new_ids = new_ids;
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, produce, t), 0);
    while (!atomic_load(&t->ready))
        sched_yield();
    OK(mover_spread_ids(&t->p.m, err));
    for (int i = 0; i < 2; i++) {
        weir_queue *q = i ? t->p.to : t->p.from;
        OK(weir_process(q, "a", &pool, NULL, err));
        OK(weir_process(q, "b", &pool, NULL, err));
    }
    /* Until all were run, and have moved: 20 s, should that never be. */
    for (int i = 0; i < 20000; i++) {
        uint64_t n = pass(&t->p);
        if (!n && atomic_load(&t->done) >= JOBS && !count(t->p.from, WEIR_STATE_ANY))
            break;
        if (!n)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        OK(weir_stop(i ? t->p.to : t->p.from, NULL, 10000, err));
    while (pass(&t->p))
        continue;
    assert_int_equal(t->p.m.refused.n, 0);
    assert_int_equal(count(t->p.from, WEIR_STATE_ANY), 0);
    assert_int_equal(count(t->p.to, WEIR_STATE_COMPLETE), JOBS);
    for (int n = 0; n < JOBS; n++) {
        assert_int_equal(t->ran[n][0], 1);
        assert_int_equal(t->ran[n][1], n % 7 == 0);
    }
    tear_down(&t->p);
    free(t);
}

static void ids_stay(void **state)
{
    (void)state;
    each_job_is_run_by_one_side(false);
}

static void ids_are_new(void **state)
{
    (void)state;
    each_job_is_run_by_one_side(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_job_moves),
        cmocka_unit_test(what_a_worker_has_is_left_to_it),
        cmocka_unit_test(paused_types_move_and_stay_paused),
        cmocka_unit_test(the_same_store_is_noticed),
        cmocka_unit_test(what_is_refused_stays_as_it_was),
        cmocka_unit_test(each_step_can_be_the_last),
        cmocka_unit_test(each_step_can_be_the_last_with_new_ids),
        cmocka_unit_test(a_second_run_goes_on),
        cmocka_unit_test(a_copy_that_fell_behind_is_not_taken_for_it),
        cmocka_unit_test(new_ids_are_written_down_first),
        cmocka_unit_test(a_second_run_finds_new_ids),
        cmocka_unit_test(ids_stay),
        cmocka_unit_test(ids_are_new),
    };
    return cmocka_run_group_tests_name("mover", tests, NULL, NULL);
}
