/* test_core.c - the life of a job: every arrow, what it changes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/job.h"

enum { T0 = 1000000 };

/* Room for effects; what a job points at there stays until so many others were asked for. */
static weir_effects rooms[64];

static weir_effects *room(void)
{
    static size_t turn;
    weir_effects *e = &rooms[turn++ % (sizeof rooms / sizeof *rooms)];
    weir__effects_fini(e);
    return e;
}

static int free_rooms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        weir__effects_fini(&rooms[i]);
    return 0;
}

/* ---- jobs in each state ---- */

static weir_job fresh(const weir_spec *spec)
{
    weir_job j;
    weir__job_init(&j, spec, 7, T0);
    return j;
}

static weir_job taken(const weir_spec *spec)
{
    weir_job j = fresh(spec);
    if (j.state == WEIR_STATE_DELAYED)
        weir__job_promote(&j, j.promote_at, room());
    weir__job_take(&j, "host:1:2", 30, T0 + 10, room());
    return j;
}

/* A job in `state`, reached as a job gets there; at T0 + 20 if finished. */
static weir_job in_state(weir_state state)
{
    weir_spec   spec = { .type = "mail", .data = "{\"a\":1}", .attempts = 2 };
    weir_error  err;
    weir_change cancel = { .state = WEIR_STATE_CANCELLED };
    if (state == WEIR_STATE_DELAYED)
        spec.delay_ms = 5000;
    if (state == WEIR_STATE_FAILED)
        spec.attempts = 1;
    weir_job j = state == WEIR_STATE_INACTIVE || state == WEIR_STATE_DELAYED ? fresh(&spec)
        : taken(&spec);
    if (state == WEIR_STATE_COMPLETE)
        weir__job_complete(&j, "[1]", 3, T0 + 20, room());
    if (state == WEIR_STATE_FAILED)
        weir__job_fail(&j, "no", 2, false, T0 + 20, room());
    if (state == WEIR_STATE_CANCELLED)
        assert_int_equal(weir__job_update(&j, &cancel, 0, T0 + 20, room(), &err), WEIR_OK);
    assert_int_equal(j.state, state);
    return j;
}

/* ---- new ---- */

static void a_new_job_has_the_defaults(void **state)
{
    (void)state;
    weir_job j = fresh(&(weir_spec){ .type = "mail" });
    assert_int_equal(j.state, WEIR_STATE_INACTIVE);
    assert_string_equal(j.data, "{}");
    assert_int_equal(j.data_len, 2);
    assert_int_equal(j.max_attempts, 1);
    assert_int_equal(j.max_lost, WEIR_DEFAULT_MAX_LOST);
    assert_int_equal(j.created_at, T0);
    assert_int_equal(j.updated_at, T0);
    assert_int_equal(j.promote_at, T0);
    assert_int_equal(j.delivery, 0);
    assert_null(j.taken);
}

static void a_new_job_keeps_what_was_asked_for(void **state)
{
    (void)state;
    weir_job j = fresh(&(weir_spec){ .type = "mail", .data = "[1,2]xx", .data_len = 5,
                                     .priority = -10, .attempts = 4, .ttl_ms = 9,
                                     .deadline_at = T0 + 77, .unique = "k", .max_lost = 2,
                                     .remove_on_complete = true, .search_keys = "to",
                                     .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 3 } });
    assert_int_equal(j.data_len, 5);
    assert_int_equal(j.priority, -10);
    assert_int_equal(j.max_attempts, 4);
    assert_int_equal(j.ttl_ms, 9);
    assert_int_equal(j.deadline_at, T0 + 77);
    assert_string_equal(j.unique, "k");
    assert_int_equal(j.max_lost, 2);
    assert_true(j.remove_on_complete);
    assert_true(j.search);      /* keys imply it */
    assert_int_equal(j.backoff.delay_ms, 3);
}

static void a_job_whose_time_is_to_come_is_delayed(void **state)
{
    (void)state;
    static const struct {
        int64_t    delay_ms, run_at;
        weir_state state;
        int64_t    promote_at, delay;
    } cases[] = {
        { 0, 0, WEIR_STATE_INACTIVE, T0, 0 },
        { 500, 0, WEIR_STATE_DELAYED, T0 + 500, 500 },
        { 0, T0 + 1, WEIR_STATE_DELAYED, T0 + 1, 0 },
        { 0, T0, WEIR_STATE_INACTIVE, T0, 0 },
        { 0, T0 - 5, WEIR_STATE_INACTIVE, T0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_job j = fresh(&(weir_spec){ .type = "mail", .delay_ms = cases[i].delay_ms,
                                         .run_at = cases[i].run_at });
        assert_int_equal(j.state, cases[i].state);
        assert_int_equal(j.promote_at, cases[i].promote_at);
        assert_int_equal(j.delay_ms, cases[i].delay);
    }
}

/* ---- take and finish ---- */

static void take_begins_a_delivery(void **state)
{
    (void)state;
    weir_job j = fresh(&(weir_spec){ .type = "mail" });
    j.progress = 40;
    j.progress_data = "1";
    j.progress_data_len = 1;
    weir__job_take(&j, "w", 30, T0 + 10, room());
    assert_int_equal(j.state, WEIR_STATE_ACTIVE);
    assert_int_equal(j.delivery, 1);
    assert_string_equal(j.worker, "w");
    assert_int_equal(j.started_at, T0 + 10);
    assert_int_equal(j.updated_at, T0 + 10);
    assert_int_equal(j.progress, 0);
    assert_null(j.progress_data);
    assert_int_equal(j.progress_data_len, 0);
    assert_int_equal(j.attempts, 0);
}

static void complete_ends_it_well(void **state)
{
    (void)state;
    weir_job j = taken(&(weir_spec){ .type = "mail", .attempts = 3 });
    j.error = "an earlier one";
    weir__job_complete(&j, "true", 4, T0 + 35, room());
    assert_int_equal(j.state, WEIR_STATE_COMPLETE);
    assert_int_equal(j.attempts, 1);
    assert_int_equal(j.progress, 100);
    assert_string_equal(j.result, "true");
    assert_null(j.error);
    assert_int_equal(j.finished_at, T0 + 35);
    assert_int_equal(j.updated_at, T0 + 35);
    assert_int_equal(j.duration_ms, 25);

    j = taken(&(weir_spec){ .type = "mail" });
    weir__job_complete(&j, NULL, 5, T0, room());        /* the clock went back */
    assert_int_equal(j.duration_ms, 0);
    assert_int_equal(j.result_len, 0);
}

static void exactly_attempts_executions(void **state)
{
    (void)state;
    for (int attempts = 1; attempts <= 5; attempts++) {
        weir_job j = fresh(&(weir_spec){ .type = "mail", .attempts = attempts });
        int      runs = 0;
        while (j.state == WEIR_STATE_INACTIVE) {
            weir__job_take(&j, "w", 30, T0 + ++runs, room());
            weir__job_fail(&j, "no", 2, false, T0 + runs, room());
            assert_int_equal(j.attempts, runs);
            assert_int_equal(j.failed_at, T0 + runs);
            assert_int_equal(j.finished_at, runs == attempts ? T0 + runs : 0);
        }
        assert_int_equal(runs, attempts);
        assert_int_equal(j.state, WEIR_STATE_FAILED);
        assert_string_equal(j.error, "no");
    }
}

static void a_failure_with_backoff_waits(void **state)
{
    (void)state;
    weir_job j = taken(&(weir_spec){ .type = "mail", .attempts = 2, .delay_ms = 70,
                                     .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 900 } });
    weir__job_fail(&j, "no", 2, false, T0 + 100, room());
    assert_int_equal(j.state, WEIR_STATE_DELAYED);
    assert_int_equal(j.promote_at, T0 + 1000);
    assert_int_equal(j.delay_ms, 70);           /* the user's, still */
    assert_int_equal(j.updated_at, T0 + 100);
    weir__job_promote(&j, T0 + 1005, room());
    assert_int_equal(j.state, WEIR_STATE_INACTIVE);
    assert_int_equal(j.promote_at, T0 + 1000);
    assert_int_equal(j.updated_at, T0 + 1005);
}

static void return_uses_up_nothing_but_the_delivery(void **state)
{
    (void)state;
    weir_job j = taken(&(weir_spec){ .type = "mail" });
    weir__job_return(&j, 0, T0 + 30, room());
    assert_int_equal(j.state, WEIR_STATE_INACTIVE);
    assert_int_equal(j.attempts, 0);
    assert_int_equal(j.lost, 0);
    assert_int_equal(j.delivery, 1);
    assert_int_equal(j.started_at, T0 + 10);
    assert_int_equal(j.updated_at, T0 + 30);
    weir__job_take(&j, "v", 30, T0 + 40, room());
    assert_int_equal(j.delivery, 2);
    weir__job_return(&j, 500, T0 + 50, room());
    assert_int_equal(j.state, WEIR_STATE_DELAYED);
    assert_int_equal(j.promote_at, T0 + 550);
    assert_int_equal(j.attempts, 0);
}

static void lost_workers_are_counted(void **state)
{
    (void)state;
    weir_job      j = fresh(&(weir_spec){ .type = "mail" });
    weir_effects *e = room();
    for (int i = 1; i <= WEIR_DEFAULT_MAX_LOST; i++) {
        weir__job_take(&j, "W", 30, T0 + i, room());
        weir__job_lose(&j, T0 + i, e = room());
        char want[64];
        snprintf(want, sizeof want, "stalled | worker W was lost (%d of 3)", i);
        assert_string_equal(e->log.data, want);
        assert_int_equal(j.state, WEIR_STATE_INACTIVE);
        assert_int_equal(j.lost, i);
        assert_null(j.error);
    }
    weir__job_take(&j, "W", 30, T0 + 50, room());
    weir__job_lose(&j, T0 + 60, e = room());
    assert_string_equal(j.error, "stalled | worker W was lost, and 3 before it: not tried again");
    assert_string_equal(e->log.data, j.error);
    assert_int_equal(j.state, WEIR_STATE_FAILED);
    assert_int_equal(j.attempts, 0);
    assert_int_equal(j.lost, 4);
    assert_int_equal(j.failed_at, T0 + 60);
    assert_int_equal(j.finished_at, T0 + 60);
}

static void a_long_worker_name_fits_the_line(void **state)
{
    (void)state;
    char          name[500];
    weir_effects *e = room();
    memset(name, 'w', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    weir_job j = fresh(&(weir_spec){ .type = "mail" });
    weir__job_take(&j, name, 30, T0, room());
    weir__job_lose(&j, T0, e);
    assert_non_null(strstr(e->log.data, "www was lost (1 of 3)"));
}

static void past_the_deadline_it_fails(void **state)
{
    (void)state;
    for (int delay = 0; delay <= 500; delay += 500) {
        weir_job j = fresh(&(weir_spec){ .type = "mail", .delay_ms = delay });
        weir__job_expire(&j, T0 + 9, room());
        assert_int_equal(j.state, WEIR_STATE_FAILED);
        assert_string_equal(j.error, "Deadline exceeded");
        assert_int_equal(j.attempts, 0);
        assert_int_equal(j.failed_at, T0 + 9);
        assert_int_equal(j.finished_at, T0 + 9);
        assert_int_equal(j.updated_at, T0 + 9);
    }
}

static void rank_and_due_follow_the_state(void **state)
{
    (void)state;
    weir_job j = fresh(&(weir_spec){ .type = "mail", .priority = -5 });
    assert_int_equal(weir__job_rank(&j), -5);
    assert_int_equal(weir__job_due(&j), 0);
    j.deadline_at = T0 + 9;
    assert_int_equal(weir__job_due(&j), T0 + 9);
    j = in_state(WEIR_STATE_DELAYED);
    assert_int_equal(weir__job_rank(&j), T0 + 5000);
    assert_int_equal(weir__job_due(&j), T0 + 5000);
    j.deadline_at = T0 + 9;
    assert_int_equal(weir__job_due(&j), T0 + 9);
    j.deadline_at = T0 + 9000;
    assert_int_equal(weir__job_due(&j), T0 + 5000);
    j = in_state(WEIR_STATE_ACTIVE);
    j.deadline_at = T0 + 9000;
    assert_int_equal(weir__job_rank(&j), T0 + 10);
    assert_int_equal(weir__job_due(&j), 0);
    for (int s = WEIR_STATE_COMPLETE; s <= WEIR_STATE_CANCELLED; s++) {
        j = in_state((weir_state)s);
        assert_int_equal(weir__job_rank(&j), T0 + 20);
        assert_int_equal(weir__job_due(&j), 0);
    }
}

/* ---- backoff ---- */

static void backoff_delays(void **state)
{
    (void)state;
    static const struct {
        weir_backoff b;
        int64_t      own_delay;
        int32_t      failures;
        int64_t      ms;
    } cases[] = {
        { { WEIR_BACKOFF_NONE, .delay_ms = 1000 }, 500, 1, 0 },
        { { WEIR_BACKOFF_FIXED, .delay_ms = 1000 }, 0, 1, 1000 },
        { { WEIR_BACKOFF_FIXED, .delay_ms = 1000 }, 0, 9, 1000 },
        { { .kind = WEIR_BACKOFF_FIXED }, 700, 3, 700 },
        { { .kind = WEIR_BACKOFF_FIXED }, 0, 3, 0 },
        { { WEIR_BACKOFF_FIXED, .delay_ms = 1000, .max_ms = 300 }, 0, 1, 300 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000 }, 0, 1, 500 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000 }, 0, 2, 1500 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000 }, 0, 3, 3500 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000 }, 0, 4, 7500 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1 }, 0, 1, 1 },       /* 0.5, half up */
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 3 }, 0, 2, 5 },       /* 4.5 */
        { { .kind = WEIR_BACKOFF_EXPONENTIAL }, 1000, 2, 1500 },
        { { .kind = WEIR_BACKOFF_EXPONENTIAL }, 0, 2, 0 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000, .max_ms = 2000 }, 0, 3, 2000 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000, .max_ms = 2000 }, 0, 2, 1500 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000 }, 0, 0, 0 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1 }, 0, 42, INT64_C(2199023255552) },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1 }, 0, 43, WEIR_MAX_MS },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1 }, 0, 1000000, WEIR_MAX_MS },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = WEIR_MAX_MS }, 0, 1, WEIR_MAX_MS / 2 },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = WEIR_MAX_MS }, 0, 2, WEIR_MAX_MS },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = WEIR_MAX_MS }, 0, INT32_MAX, WEIR_MAX_MS },
        { { WEIR_BACKOFF_EXPONENTIAL, .delay_ms = 1000, .max_ms = 60000 }, 0, INT32_MAX, 60000 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = 2000 }, 0, 0, 0 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = 2000 }, 0, 1, 2000 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = 2000 }, 0, 2, 4000 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = 2000 }, 0, 100, 200000 },
        { { .kind = WEIR_BACKOFF_LINEAR }, 700, 3, 2100 },
        { { .kind = WEIR_BACKOFF_LINEAR }, 0, 3, 0 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = 2000, .max_ms = 5000 }, 0, 2, 4000 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = 2000, .max_ms = 5000 }, 0, 3, 5000 },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = WEIR_MAX_MS }, 0, 1, WEIR_MAX_MS },
        { { WEIR_BACKOFF_LINEAR, .delay_ms = WEIR_MAX_MS }, 0, INT32_MAX, WEIR_MAX_MS },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_job j = { .id = 1, .backoff = cases[i].b, .delay_ms = cases[i].own_delay };
        assert_int_equal(weir__backoff_ms(&j, cases[i].failures), cases[i].ms);
    }
}

/* The formula of the jitter, with 128 bits instead of two steps. */
static int64_t with_jitter(int64_t delay, int32_t pct, uint64_t id, int32_t failures)
{
    __extension__ typedef __int128 wide;
    wide h = ((int64_t)(id % 9973) * 7919 + (int64_t)failures * 104729) % 10007;
    return delay - (int64_t)((wide)delay * pct * h / (100 * 10007));
}

static void jitter_takes_off_up_to_its_share(void **state)
{
    (void)state;
    static const int64_t delays[] = { 1, 2, 999, 60000, 1000700, 1000701, 86400000, WEIR_MAX_MS };
    int64_t              least = INT64_MAX, most = 0;
    for (size_t d = 0; d < sizeof delays / sizeof *delays; d++) {
        for (uint64_t id = 1; id < 300; id++) {
            for (int32_t pct = 0; pct <= 100; pct += 25) {
                weir_job j = { .id = id * 7919,
                               .backoff = { WEIR_BACKOFF_FIXED, delays[d], .jitter_pct = pct } };
                int64_t  ms = weir__backoff_ms(&j, 3);
                assert_int_equal(ms, with_jitter(delays[d], pct, j.id, 3));
                assert_true(ms <= delays[d] && ms >= delays[d] - delays[d] / 100 * pct - pct);
                if (delays[d] == 60000 && pct == 50) {
                    least = ms < least ? ms : least;
                    most = ms > most ? ms : most;
                }
            }
        }
    }
    assert_true(least < 31500 && most > 58500);     /* it does spread */
}

/* ---- by hand ---- */

/* What becomes of a job in each state when asked for each state. E: WEIR_ESTATE. */
static void states_asked_for(void **state)
{
    (void)state;
    enum { E = -WEIR_ESTATE, V = -WEIR_EINVAL };
    static const struct {
        weir_change change;
        int         becomes[WEIR_STATE_COUNT];   /* from inactive, delayed, active, complete ... */
    } cases[] = {
        { { .state = WEIR_STATE_ANY },
          { 0, WEIR_STATE_INACTIVE, WEIR_STATE_DELAYED, WEIR_STATE_ACTIVE, WEIR_STATE_COMPLETE,
            WEIR_STATE_FAILED, WEIR_STATE_CANCELLED } },
        { { .state = WEIR_STATE_INACTIVE },
          { 0, E, WEIR_STATE_INACTIVE, E, WEIR_STATE_INACTIVE, WEIR_STATE_INACTIVE,
            WEIR_STATE_INACTIVE } },
        { { .state = WEIR_STATE_DELAYED }, { 0, V, E, E, V, V, V } },
        { { .state = WEIR_STATE_ACTIVE, .worker = "w", .lease_ms = 9 },
          { 0, WEIR_STATE_ACTIVE, WEIR_STATE_ACTIVE, E, WEIR_STATE_ACTIVE, WEIR_STATE_ACTIVE,
            WEIR_STATE_ACTIVE } },
        { { .state = WEIR_STATE_COMPLETE },
          { 0, WEIR_STATE_COMPLETE, WEIR_STATE_COMPLETE, E, E, WEIR_STATE_COMPLETE,
            WEIR_STATE_COMPLETE } },
        { { .state = WEIR_STATE_FAILED },
          { 0, WEIR_STATE_FAILED, WEIR_STATE_FAILED, E, WEIR_STATE_FAILED, E, WEIR_STATE_FAILED } },
        { { .state = WEIR_STATE_FAILED, .data = "[]" }, { 0, V, V, E, V, E, V } },
        { { .state = WEIR_STATE_COMPLETE, .set_delay = true }, { 0, V, V, E, E, V, V } },
        { { .state = WEIR_STATE_CANCELLED },
          { 0, WEIR_STATE_CANCELLED, WEIR_STATE_CANCELLED, WEIR_STATE_CANCELLED, E, E, E } },
        { { .state = WEIR_STATE_COUNT }, { 0, V, V, V, V, V, V } },
        { { .set_delay = true, .delay_ms = 50 },
          { 0, WEIR_STATE_DELAYED, WEIR_STATE_DELAYED, E, E, E, E } },
        { { .set_delay = true }, { 0, WEIR_STATE_INACTIVE, WEIR_STATE_INACTIVE, E, E, E, E } },
        { { .state = WEIR_STATE_DELAYED, .set_delay = true, .delay_ms = 50 },
          { 0, WEIR_STATE_DELAYED, WEIR_STATE_DELAYED, E, WEIR_STATE_DELAYED, WEIR_STATE_DELAYED,
            WEIR_STATE_DELAYED } },
        { { .state = WEIR_STATE_DELAYED, .set_delay = true },
          { 0, WEIR_STATE_INACTIVE, WEIR_STATE_INACTIVE, E, WEIR_STATE_INACTIVE,
            WEIR_STATE_INACTIVE, WEIR_STATE_INACTIVE } },
        { { .state = WEIR_STATE_INACTIVE, .set_delay = true, .delay_ms = 50 },
          { 0, E, V, E, V, V, V } },
        { { .state = WEIR_STATE_CANCELLED, .set_delay = true }, { 0, V, V, V, E, E, E } },
        { { .set_priority = true, .priority = 9 },
          { 0, WEIR_STATE_INACTIVE, WEIR_STATE_DELAYED, E, WEIR_STATE_COMPLETE, WEIR_STATE_FAILED,
            WEIR_STATE_CANCELLED } },
        { { .data = "[]" },
          { 0, WEIR_STATE_INACTIVE, WEIR_STATE_DELAYED, E, WEIR_STATE_COMPLETE, WEIR_STATE_FAILED,
            WEIR_STATE_CANCELLED } },
        { { .state = WEIR_STATE_CANCELLED, .set_priority = true },
          { 0, WEIR_STATE_CANCELLED, WEIR_STATE_CANCELLED, E, E, E, E } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int from = WEIR_STATE_INACTIVE; from < WEIR_STATE_COUNT; from++) {
            weir_job   before = in_state((weir_state)from), j = before;
            weir_error err = { 0 };
            weir_code  rc = weir__job_update(&j, &cases[i].change, 0, T0 + 100, room(), &err);
            int        got = rc ? -(int)rc : (int)j.state;
            if (got != cases[i].becomes[from])
                fail_msg("case %zu from %s: %d (%s), not %d", i, weir_state_name((weir_state)from),
                         got, rc ? err.msg : "", cases[i].becomes[from]);
            if (rc) {
                assert_memory_equal(&j, &before, sizeof j);
                assert_true(strlen(err.msg) > 0);
            }
        }
    }
}

static void nothing_changes_nothing(void **state)
{
    (void)state;
    weir_job before = in_state(WEIR_STATE_FAILED), j = before;
    assert_int_equal(weir__job_update(&j, &(weir_change){ 0 }, 0, T0 + 100, room(), NULL), WEIR_OK);
    assert_memory_equal(&j, &before, sizeof j);
}

static void changes_are_made(void **state)
{
    (void)state;
    weir_job j = in_state(WEIR_STATE_DELAYED);
    assert_int_equal(weir__job_update(&j, &(weir_change){ .set_priority = true, .priority = -15,
                                                          .data = "[7]", .set_delay = true,
                                                          .delay_ms = 30 }, 0, T0 + 100, room(),
                                      NULL), WEIR_OK);
    assert_int_equal(j.priority, -15);
    assert_string_equal(j.data, "[7]");
    assert_int_equal(j.data_len, 3);
    assert_int_equal(j.delay_ms, 30);
    assert_int_equal(j.promote_at, T0 + 130);
    assert_int_equal(j.updated_at, T0 + 100);

    j = in_state(WEIR_STATE_DELAYED);
    assert_int_equal(weir__job_update(&j, &(weir_change){ .state = WEIR_STATE_INACTIVE }, 0,
                                      T0 + 100, room(), NULL), WEIR_OK);
    assert_int_equal(j.promote_at, T0 + 100);
    assert_int_equal(j.delay_ms, 5000);

    j = in_state(WEIR_STATE_ACTIVE);
    assert_int_equal(weir__job_update(&j, &(weir_change){ .state = WEIR_STATE_CANCELLED }, 0,
                                      T0 + 100, room(), NULL), WEIR_OK);
    assert_int_equal(j.finished_at, T0 + 100);
    assert_int_equal(j.updated_at, T0 + 100);
    assert_int_equal(j.attempts, 0);
}

static void retry_begins_anew_but_remembers(void **state)
{
    (void)state;
    for (int s = WEIR_STATE_COMPLETE; s <= WEIR_STATE_CANCELLED; s++) {
        weir_job j = in_state((weir_state)s), old = j;
        j.lost = 2;
        j.progress_data = "1";
        j.progress_data_len = 1;
        j.deadline_at = T0 + 50;        /* past: still allowed, the next tick fails it */
        assert_int_equal(weir__job_update(&j, &(weir_change){ .state = WEIR_STATE_INACTIVE }, 0,
                                          T0 + 100, room(), NULL), WEIR_OK);
        assert_int_equal(j.state, WEIR_STATE_INACTIVE);
        assert_int_equal(j.attempts, 0);
        assert_int_equal(j.lost, 0);
        assert_int_equal(j.progress, 0);
        assert_null(j.progress_data);
        assert_null(j.result);
        assert_int_equal(j.result_len, 0);
        assert_int_equal(j.finished_at, 0);
        assert_int_equal(j.duration_ms, 0);
        assert_int_equal(j.promote_at, T0 + 100);
        assert_int_equal(j.updated_at, T0 + 100);
        assert_ptr_equal(j.error, old.error);
        assert_int_equal(j.failed_at, old.failed_at);
        assert_int_equal(j.delivery, 1);
        assert_int_equal(j.created_at, T0);
    }
}

static void errors_name_the_job_and_its_state(void **state)
{
    (void)state;
    static const struct {
        weir_state  in;
        weir_change change;
        uint32_t    from;
        const char *msg;
    } cases[] = {
        { WEIR_STATE_INACTIVE, { .state = WEIR_STATE_INACTIVE }, 0, "job 7 is already inactive" },
        { WEIR_STATE_DELAYED, { .state = WEIR_STATE_DELAYED }, 0, "job 7 is already delayed" },
        { WEIR_STATE_CANCELLED, { .state = WEIR_STATE_CANCELLED }, 0,
          "job 7 is already cancelled" },
        { WEIR_STATE_ACTIVE, { .state = WEIR_STATE_COMPLETE }, 0,
          "job 7 is active: a worker has it, and must end it; or cancel it first" },
        { WEIR_STATE_FAILED, { .state = WEIR_STATE_FAILED }, 0, "job 7 is already failed" },
        { WEIR_STATE_COMPLETE, { .state = WEIR_STATE_CANCELLED }, 0,
          "job 7 is complete: only inactive, delayed and active ones can be cancelled" },
        { WEIR_STATE_ACTIVE, { .state = WEIR_STATE_INACTIVE },
          WEIR_BIT(WEIR_STATE_COMPLETE) | WEIR_BIT(WEIR_STATE_FAILED) |
              WEIR_BIT(WEIR_STATE_CANCELLED),
          "job 7 is active, but must be complete, failed or cancelled for this" },
        { WEIR_STATE_FAILED, { .state = WEIR_STATE_INACTIVE }, WEIR_BIT(WEIR_STATE_DELAYED),
          "job 7 is failed, but must be delayed for this" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_job   j = in_state(cases[i].in);
        weir_error err;
        assert_int_equal(weir__job_update(&j, &cases[i].change, cases[i].from, T0 + 100, room(),
                                          &err), WEIR_ESTATE);
        assert_string_equal(err.msg, cases[i].msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_job_has_the_defaults),
        cmocka_unit_test(a_new_job_keeps_what_was_asked_for),
        cmocka_unit_test(a_job_whose_time_is_to_come_is_delayed),
        cmocka_unit_test(take_begins_a_delivery),
        cmocka_unit_test(complete_ends_it_well),
        cmocka_unit_test(exactly_attempts_executions),
        cmocka_unit_test(a_failure_with_backoff_waits),
        cmocka_unit_test(return_uses_up_nothing_but_the_delivery),
        cmocka_unit_test(lost_workers_are_counted),
        cmocka_unit_test(a_long_worker_name_fits_the_line),
        cmocka_unit_test(past_the_deadline_it_fails),
        cmocka_unit_test(rank_and_due_follow_the_state),
        cmocka_unit_test(backoff_delays),
        cmocka_unit_test(jitter_takes_off_up_to_its_share),
        cmocka_unit_test(states_asked_for),
        cmocka_unit_test(nothing_changes_nothing),
        cmocka_unit_test(changes_are_made),
        cmocka_unit_test(retry_begins_anew_but_remembers),
        cmocka_unit_test(errors_name_the_job_and_its_state),
    };
    return cmocka_run_group_tests_name("core", tests, NULL, free_rooms);
}
