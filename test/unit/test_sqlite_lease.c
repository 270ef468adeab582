/* test_sqlite_lease.c - what a new owner of a file makes of the leases that the last one gave. */
#include "support/store_fixture.h"

#include "store/sqlite/sq.h"

#define URL "sqlite:@/jobs.db?durability=os"
enum { GRACE_MS = 5000 };

/* A store whose workers are elsewhere, with one job that a worker took for lease_ms. */
static fixture *f_open(int64_t lease_ms, const weir_job **job)
{
    fixture *f = fixture_open(URL);
    assert_non_null(f);
    f->env.keep_taken = true;
    CHECK_INT(reopen(f), WEIR_OK);
    add(f, "mail");
    *job = take_as(f, "mail", "box:1", lease_ms);
    assert_non_null(*job);
    return f;
}

/* There is no owner for `ms`. */
static void be_away(fixture *f, int64_t ms)
{
    f->now += ms;
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_STATE(f, 1, WEIR_STATE_ACTIVE);
}

static void f_close(fixture *f)
{
    check_all_is_well(f);
    fixture_close(f);
}

static void what_was_left_is_given(void **state)
{
    (void)state;
    const weir_job *job;
    fixture        *f = f_open(60000, &job);
    be_away(f, 20000);
    CHECK_INT(get(f, 1)->lease_until, f->now + 40000);
    later(f, 39999);
    CHECK_STATE(f, 1, WEIR_STATE_ACTIVE);
    later(f, 1);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    CHECK_INT(finish(f, job), WEIR_ESTALE);
    CHECK_INT(get(f, 1)->lost, 1);
    f_close(f);
}

static void a_short_lease_stays_short(void **state)
{
    (void)state;
    const weir_job *job;
    fixture        *f = f_open(2000, &job);
    for (int i = 0; i < 3; i++)
        be_away(f, 1900);
    later(f, 2000);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    f_close(f);
}

static void there_is_time_to_renew_after_a_long_pause(void **state)
{
    (void)state;
    const weir_job *job;
    fixture        *f = f_open(60000, &job);
    be_away(f, 3600000);
    CHECK_INT(get(f, 1)->lease_until, f->now + GRACE_MS);
    CHECK_INT(renew(f, job, 60000), WEIR_OK);
    later(f, 59999);
    CHECK_INT(finish(f, job), WEIR_OK);
    f_close(f);
}

static void renewals_are_kept(void **state)
{
    (void)state;
    const weir_job *job;
    fixture        *f = f_open(10000, &job);
    for (int i = 0; i < 3; i++) {
        f->now += 9000;
        CHECK_INT(renew(f, job, 30000), WEIR_OK);
        be_away(f, 1000);
        CHECK_INT(get(f, 1)->lease_until, f->now + 29000);
    }
    CHECK_INT(finish(f, job), WEIR_OK);
    f_close(f);
}

static void a_clock_that_was_set_back_lengthens_nothing(void **state)
{
    (void)state;
    const weir_job *job;
    fixture        *f = f_open(8000, &job);
    be_away(f, -3600000);
    CHECK_INT(get(f, 1)->lease_until, f->now + 8000);
    f_close(f);
}

/* Beside its own workers the owner writes no renewals down: they die with it. */
static void without_remote_workers_all_leases_end(void **state)
{
    (void)state;
    const weir_job *job;
    fixture        *f = f_open(60000, &job);
    CHECK_INT(renew(f, job, 60000), WEIR_OK);
    f->env.keep_taken = false;
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    CHECK_INT(get(f, 1)->lost, 1);
    f_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_left_is_given),
        cmocka_unit_test(a_short_lease_stays_short),
        cmocka_unit_test(there_is_time_to_renew_after_a_long_pause),
        cmocka_unit_test(renewals_are_kept),
        cmocka_unit_test(a_clock_that_was_set_back_lengthens_nothing),
        cmocka_unit_test(without_remote_workers_all_leases_end),
    };
    return cmocka_run_group_tests_name("sqlite leases", tests, NULL, NULL);
}
