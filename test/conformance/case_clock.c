/* case_clock.c - somebody sets the wall clock: lengths of time do not change, named moments do. For
 * stores whose time is the owner's; Redis has a clock of its own (test/redis/test_clock.c). */
#include "conformance/conformance.h"

enum { HOUR_MS = 3600 * 1000, TTL_MS = 20000, DELAY_MS = 5000 };

/* ---- lengths of time ---- */

static void lease_lasts(fixture *f, int64_t step_ms)
{
    uint64_t id = add(f, "a");
    take(f, "a");
    later(f, 1000);
    set_clock(f, step_ms);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    CHECK_INT(get(f, id)->lease_until, f->now + LEASE_MS - 1000);
    later(f, LEASE_MS - 1001);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_lease_lasts_when_the_clock_is_set_forth(fixture *f)
{
    lease_lasts(f, HOUR_MS);
}

static void a_lease_lasts_no_longer_when_the_clock_is_set_back(fixture *f)
{
    lease_lasts(f, -HOUR_MS);
}

static void a_renewed_lease_lasts(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *j = take(f, "a");
    set_clock(f, HOUR_MS);
    CHECK_INT(renew(f, j, 2 * LEASE_MS), WEIR_OK);
    set_clock(f, -2 * HOUR_MS);
    later(f, 2 * LEASE_MS - 1);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    CHECK_INT(finish(f, j), WEIR_OK);
    CHECK_STATE(f, id, WEIR_STATE_COMPLETE);
}

static void ttl_lasts(fixture *f, int64_t step_ms)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .ttl_ms = TTL_MS });
    take_as(f, "a", WORKER, 10 * TTL_MS);
    later(f, 1000);
    set_clock(f, step_ms);
    later(f, TTL_MS - 1001);
    CHECK_STATE(f, id, WEIR_STATE_ACTIVE);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    CHECK_STR(get(f, id)->error, "TTL exceeded");
}

static void a_ttl_lasts_when_the_clock_is_set_forth(fixture *f)
{
    ttl_lasts(f, HOUR_MS);
}

static void a_ttl_lasts_no_longer_when_the_clock_is_set_back(fixture *f)
{
    ttl_lasts(f, -HOUR_MS);
}

static void delay_lasts(fixture *f, int64_t step_ms)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = DELAY_MS });
    later(f, 1000);
    set_clock(f, step_ms);
    CHECK_INT(get(f, id)->promote_at, f->now + DELAY_MS - 1000);
    later(f, DELAY_MS - 1001);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_delay_lasts_when_the_clock_is_set_forth(fixture *f)
{
    delay_lasts(f, HOUR_MS);
}

static void a_delay_lasts_no_longer_when_the_clock_is_set_back(fixture *f)
{
    delay_lasts(f, -HOUR_MS);
}

static void a_backoff_lasts(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2, .run_at = f->now + 10,
                                            .backoff = { WEIR_BACKOFF_FIXED,
                                                         .delay_ms = DELAY_MS } });
    later(f, 10);
    CHECK_INT(fail_job(f, take(f, "a"), "no"), WEIR_OK);
    set_clock(f, HOUR_MS);
    later(f, DELAY_MS - 1);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    later(f, 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

/* Each step counts, in either direction, and small ones are none. */
static void many_steps(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = DELAY_MS });
    for (int i = 0; i < 5; i++) {
        set_clock(f, i % 2 ? -2 * HOUR_MS : 3 * HOUR_MS);
        later(f, 900);
        CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    }
    later(f, DELAY_MS - 5 * 900);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

/* ---- named moments ---- */

static void a_moment_follows_the_clock(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .run_at = f->now + 2 * HOUR_MS });
    set_clock(f, HOUR_MS);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    set_clock(f, HOUR_MS);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_deadline_follows_the_clock(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + HOUR_MS });
    set_clock(f, HOUR_MS - 1);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
    set_clock(f, 1000);
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
}

static void by_hand_a_delay_becomes_a_moment(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = DELAY_MS });
    CHECK_INT(update(f, id, &(weir_change){ .run_at = f->now + HOUR_MS }), WEIR_OK);
    set_clock(f, HOUR_MS);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void by_hand_a_moment_becomes_a_delay(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .run_at = f->now + HOUR_MS });
    CHECK_INT(update(f, id, &(weir_change){ .set_delay = true, .delay_ms = DELAY_MS }), WEIR_OK);
    set_clock(f, 2 * HOUR_MS);
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    later(f, DELAY_MS);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

/* A change of anything else leaves it what it was, and so does a new owner of the file. */
static void it_stays_what_it_was(fixture *f)
{
    uint64_t delay = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = DELAY_MS });
    uint64_t moment = add_spec(f, &(weir_spec){ .type = "a", .run_at = f->now + 2 * HOUR_MS });
    weir_change urgent = { .set_priority = true, .priority = WEIR_PRIORITY_HIGH };
    CHECK_INT(update(f, delay, &urgent), WEIR_OK);
    CHECK_INT(update(f, moment, &urgent), WEIR_OK);
    if (owned(f))
        CHECK_INT(reopen(f), WEIR_OK);
    later(f, 0);
    set_clock(f, HOUR_MS);
    CHECK_STATE(f, delay, WEIR_STATE_DELAYED);
    CHECK_STATE(f, moment, WEIR_STATE_DELAYED);
    later(f, DELAY_MS);
    CHECK_STATE(f, delay, WEIR_STATE_INACTIVE);
    CHECK_STATE(f, moment, WEIR_STATE_DELAYED);
    set_clock(f, HOUR_MS);
    CHECK_STATE(f, moment, WEIR_STATE_INACTIVE);
}

const conformance_case cases_clock[] = {
    STEADY_CASE(a_lease_lasts_when_the_clock_is_set_forth),
    STEADY_CASE(a_lease_lasts_no_longer_when_the_clock_is_set_back),
    STEADY_CASE(a_renewed_lease_lasts),
    STEADY_CASE(a_ttl_lasts_when_the_clock_is_set_forth),
    STEADY_CASE(a_ttl_lasts_no_longer_when_the_clock_is_set_back),
    STEADY_CASE(a_delay_lasts_when_the_clock_is_set_forth),
    STEADY_CASE(a_delay_lasts_no_longer_when_the_clock_is_set_back),
    STEADY_CASE(a_backoff_lasts),
    STEADY_CASE(many_steps),
    STEADY_CASE(a_moment_follows_the_clock),
    STEADY_CASE(a_deadline_follows_the_clock),
    STEADY_CASE(by_hand_a_delay_becomes_a_moment),
    STEADY_CASE(by_hand_a_moment_becomes_a_delay),
    STEADY_CASE(it_stays_what_it_was),
    { 0 },
};
