/* test_runtime_schedules.c - schedules in a store: each firing adds one job, also when two queues
 * watch one store; missed firings, overlap, pauses, by hand, history. On every store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/runtime_fixture.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE };

static void put(rt *t, weir_schedule s)
{
    if (!s.job.type)
        s.job.type = "a";
    OK(weir_schedule_put(t->q, &s, &t->err));
}

static weir_schedule get(rt *t, const char *name)
{
    weir_schedules *list;
    OK(weir_schedule_get(t->q, name, &list, &t->err));
    weir_schedule s = list->schedule[0];
    weir_schedules_free(list);
    s.name = name;              /* the texts are gone with the list */
    s.when = s.zone = s.except = NULL;
    s.job = (weir_spec){ 0 };
    return s;
}

static uint64_t jobs(rt *t)
{
    return rt_count(t, WEIR_STATE_ANY);
}

/* Turn the clock to the next full hour, and on by so much. */
static void to_the_hour(rt *t, int64_t ms)
{
    rt_later(t, HOUR - t->now % HOUR + ms);
}

RT_CLOCK_TEST(a_firing_adds_a_job)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "hourly", .when = "@hourly",
                            .job = { .type = "a", .data = "{\"x\":1}", .values = "{\"y\":2}" } });
    assert_int_equal(jobs(t), 0);
    to_the_hour(t, 0);
    UNTIL(get(t, "hourly").fired == 1);
    assert_int_equal(jobs(t), 1);
    weir_job *job = rt_get(t, get(t, "hourly").last_job);
    assert_string_equal(job->type, "a");
    assert_int_equal(weir_data_int(job, "x", 0), 1);
    assert_int_equal(weir_value_int(job, "y", 0), 2);
    assert_string_equal(weir_value_text(job, "schedule", ""), "hourly");
    assert_true(weir_value_int(job, "scheduled_at", 0) == t->now);
    weir_job_free(job);
    for (int i = 2; i < 6; i++) {
        to_the_hour(t, 0);
        UNTIL(get(t, "hourly").fired == i);
        assert_int_equal(jobs(t), i);
    }
    weir_schedule s = get(t, "hourly");
    assert_int_equal(s.n_history, 5);
    assert_true(s.history[4].at == t->now && s.history[4].job == s.last_job);
    assert_int_equal(s.history[4].outcome, WEIR_FIRING_DONE);
    assert_true(s.next_at == t->now + HOUR);
    OK(weir_schedule_remove(t->q, "hourly", &t->err));
    to_the_hour(t, 0);
    assert_int_equal(weir_schedule_remove(t->q, "hourly", &t->err), WEIR_ENOENT);
    assert_int_equal(jobs(t), 5);
}

RT_CLOCK_TEST(missed_firings)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "once", .when = "@hourly" });
    put(t, (weir_schedule){ .name = "skip", .when = "@hourly", .missed = WEIR_MISSED_SKIP });
    put(t, (weir_schedule){ .name = "all", .when = "@hourly", .missed = WEIR_MISSED_ALL,
                            .missed_limit = 3 });
    rt_later(t, 6 * HOUR + 30 * MINUTE);
    UNTIL(get(t, "once").next_at > t->now && get(t, "skip").next_at > t->now &&
          get(t, "all").next_at > t->now);
    assert_int_equal(get(t, "once").fired, 1);
    assert_int_equal(get(t, "skip").fired, 0);
    assert_int_equal(get(t, "skip").history[0].outcome, WEIR_FIRING_MISSED);
    assert_int_equal(get(t, "all").fired, 3);
    assert_int_equal(jobs(t), 4);
    to_the_hour(t, 0);
    UNTIL(get(t, "once").fired == 2 && get(t, "skip").fired == 1 && get(t, "all").fired == 4);
    assert_int_equal(jobs(t), 7);
}

RT_CLOCK_TEST(a_job_that_has_not_ended)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "allow", .when = "@hourly" });
    put(t, (weir_schedule){ .name = "skip", .when = "@hourly", .overlap = WEIR_OVERLAP_SKIP });
    put(t, (weir_schedule){ .name = "queue", .when = "@hourly", .overlap = WEIR_OVERLAP_QUEUE,
                            .job = { .type = "q" } });
    put(t, (weir_schedule){ .name = "replace", .when = "@hourly",
                            .overlap = WEIR_OVERLAP_REPLACE });
    to_the_hour(t, 0);
    UNTIL(jobs(t) == 4 && get(t, "replace").fired == 1 && get(t, "queue").fired == 1 &&
          get(t, "allow").fired == 1 && get(t, "skip").fired == 1);
    uint64_t  replaced = get(t, "replace").last_job;
    weir_job *taken;
    size_t    n;
    weir_taking what = { .types = (const char *[]){ "q", NULL }, .n = 1, .lease_ms = 100 * HOUR };
    OK(weir_take(t->q, &what, &taken, &n, &t->err));
    assert_int_equal(n, 1);
    for (int i = 0; i < 2; i++) {
        to_the_hour(t, 0);
        UNTIL(get(t, "allow").next_at > t->now && get(t, "skip").next_at > t->now &&
              get(t, "queue").next_at > t->now && get(t, "replace").next_at > t->now);
    }
    assert_int_equal(get(t, "allow").fired, 3);
    assert_int_equal(get(t, "skip").fired, 1);
    assert_int_equal(get(t, "skip").history[1].outcome, WEIR_FIRING_WAITING);
    assert_int_equal(get(t, "queue").fired, 2);         /* one runs, one waits */
    assert_int_equal(get(t, "replace").fired, 3);
    assert_int_equal(rt_state(t, replaced), WEIR_STATE_CANCELLED);
    assert_int_equal(rt_count(t, WEIR_STATE_CANCELLED), 2);
    weir_job_free(taken);
    weir_job *gone = rt_get(t, replaced);
    assert_non_null(strstr(gone->history, "\"by\":\"the schedule replace\""));
    weir_job_free(gone);
}

RT_CLOCK_TEST(a_pause_leaves_firings_out)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    OK(weir_schedule_pause(t->q, "s", true, &t->err));
    rt_later(t, 3 * HOUR);
    OK(weir_schedule_pause(t->q, "s", false, &t->err));
    assert_false(get(t, "s").paused);
    to_the_hour(t, 0);
    UNTIL(get(t, "s").fired == 1);
    assert_int_equal(jobs(t), 1);
    assert_int_equal(weir_schedule_pause(t->q, "none", true, &t->err), WEIR_ENOENT);
}

RT_CLOCK_TEST(by_hand)
{
    uint64_t id = 0;
    size_t   n = 0;
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    OK(weir_schedule_fire(t->q, "s", &id, &t->err));
    assert_int_equal(rt_state(t, id), WEIR_STATE_INACTIVE);
    assert_int_equal(get(t, "s").history[0].outcome, WEIR_FIRING_BY_HAND);
    OK(weir_schedule_backfill(t->q, "s", t->now - 5 * HOUR - 1, t->now, &n, &t->err));
    assert_int_equal(n, 6);
    assert_int_equal(jobs(t), 7);
    assert_int_equal(get(t, "s").fired, 7);
    assert_int_equal(weir_schedule_backfill(t->q, "s", 0, t->now, &n, &t->err), WEIR_ELIMIT);
    assert_int_equal(n, 0);
    assert_int_equal(weir_schedule_fire(t->q, "none", &id, &t->err), WEIR_ENOENT);
    to_the_hour(t, 0);
    UNTIL(get(t, "s").fired == 8);
    OK(weir_schedule_backfill(t->q, "s", t->now - 30 * HOUR, t->now, &n, &t->err));
    assert_int_equal(n, 30);                            /* more than the history has room for */
    assert_int_equal(get(t, "s").fired, 38);
    assert_int_equal(get(t, "s").n_history, WEIR_MAX_FIRED);
}

static void span_is(rt *t, int64_t from_at, int64_t to_at, weir_code code, const char *why)
{
    size_t n = 99;
    t->err = (weir_error){ 0 };
    assert_int_equal(weir_schedule_backfill(t->q, "s", from_at, to_at, &n, &t->err), code);
    assert_int_equal(n, 0);
    if (!strstr(t->err.msg, why))
        fail_msg("\"%s\" has no \"%s\"", t->err.msg, why);
}

RT_CLOCK_TEST(a_span_is_filled_once)
{
    size_t n = 0;
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    int64_t now = t->now;
    span_is(t, now - HOUR, now - HOUR, WEIR_EINVAL, "to: ");
    span_is(t, now - HOUR, now - 2 * HOUR, WEIR_EINVAL, "must be after the begin of the span");
    span_is(t, now - HOUR, now + HOUR, WEIR_EINVAL, "must be in the past");
    span_is(t, now + HOUR, now + 2 * HOUR, WEIR_EINVAL, "must be in the past");
    span_is(t, -1, now, WEIR_EINVAL, "from: ");
    assert_int_equal(jobs(t), 0);
    OK(weir_schedule_backfill(t->q, "s", now - 3 * HOUR, now, &n, &t->err));
    assert_int_equal(n, 3);
    span_is(t, now - 3 * HOUR, now, WEIR_OK, "");       /* again */
    assert_int_equal(jobs(t), 3);
    assert_int_equal(get(t, "s").n_history, 3);
    OK(weir_schedule_remove(t->q, "s", &t->err));       /* another one of this name */
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    OK(weir_schedule_backfill(t->q, "s", now - 3 * HOUR, now, &n, &t->err));
    assert_int_equal(n, 3);
}

/* A firing adds two values to those of the job: a schedule without room for them never fires. */
RT_TEST(a_firing_has_room_for_its_values)
{
    char   values[WEIR_MAX_VALUES * 10 + 3] = "{";
    size_t n = 1;
    for (int i = 0; i < WEIR_MAX_VALUES - 1; i++)
        n += (size_t)snprintf(values + n, sizeof values - n, "%s\"v%d\":1", i ? "," : "", i);
    snprintf(values + n, sizeof values - n, "}");
    weir_schedule s = { .name = "s", .when = "@hourly", .job = { .type = "a", .values = values } };
    assert_int_equal(weir_schedule_put(t->q, &s, &t->err), WEIR_ELIMIT);
    assert_string_equal(t->err.field, "job.values");
}

RT_TEST(what_weir_keeps_for_itself)
{
    weir_schedule   s = { .name = WEIR_OWN_SCHEDULE "x", .when = "@hourly",
                          .job = { .type = "a" } };
    weir_schedules *list;
    uint64_t        id;
    size_t          n;
    assert_int_equal(weir_schedule_put(t->q, &s, &t->err), WEIR_EINVAL);
    OK(weir_schedule_import(t->q, &s, NULL, &t->err));
    OK(weir_schedule_get(t->q, s.name, &list, &t->err));
    assert_true(list->schedule[0].own);
    weir_schedules_free(list);
    OK(weir_schedules_list(t->q, NULL, 0, &list, &t->err));
    assert_true(list->n == 1 && list->schedule[0].own);
    weir_schedules_free(list);
    assert_int_equal(weir_schedule_fire(t->q, s.name, &id, &t->err), WEIR_EINVAL);
    assert_int_equal(weir_schedule_pause(t->q, s.name, false, &t->err), WEIR_EINVAL);
    assert_int_equal(weir_schedule_backfill(t->q, s.name, 0, 1, &n, &t->err), WEIR_EINVAL);
    assert_int_equal(jobs(t), 0);
    OK(weir_schedule_remove(t->q, s.name, &t->err));
}

/* The clock is set back by a day and stays so: nothing that fired fires again. From the moment on
 * at which the schedule was to fire next, it fires as ever; after a pause, by the new time. */
RT_CLOCK_TEST(a_clock_that_stays_set_back)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    put(t, (weir_schedule){ .name = "resumed", .when = "@hourly" });
    to_the_hour(t, 0);
    UNTIL(get(t, "s").fired == 1 && get(t, "resumed").fired == 1);
    int64_t next = get(t, "s").next_at;
    rt_later(t, -24 * HOUR);
    for (int i = 0; i < 3; i++)
        to_the_hour(t, 1);
    OK(weir_schedule_pause(t->q, "resumed", true, &t->err));
    OK(weir_schedule_pause(t->q, "resumed", false, &t->err));
    to_the_hour(t, 1);
    UNTIL(get(t, "resumed").fired == 2);
    assert_int_equal(get(t, "s").fired, 1);
    assert_true(get(t, "s").next_at == next);
    assert_int_equal(jobs(t), 3);
    rt_later(t, next - t->now);
    UNTIL(get(t, "s").fired == 2);
    assert_true(get(t, "s").history[1].at == next);
}

RT_CLOCK_TEST(a_change_keeps_the_history)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    to_the_hour(t, 0);
    UNTIL(get(t, "s").fired == 1);
    int64_t next = get(t, "s").next_at;
    put(t, (weir_schedule){ .name = "s", .when = "@hourly", .overlap = WEIR_OVERLAP_SKIP });
    assert_true(get(t, "s").next_at == next);
    put(t, (weir_schedule){ .name = "s", .when = "30 * * * *", .zone = "Europe/Berlin" });
    weir_schedule s = get(t, "s");
    assert_true(s.next_at == t->now + 30 * MINUTE);
    assert_int_equal(s.fired, 1);
    assert_int_equal(s.n_history, 1);
    rt_later(t, 30 * MINUTE);
    UNTIL(get(t, "s").fired == 2);
    t->err.code = WEIR_OK;
    assert_int_equal(weir_schedule_put(t->q, &(weir_schedule){ .name = "s", .when = "0 0 30 2 *",
                                                               .job = { .type = "a" } }, &t->err),
                     WEIR_EINVAL);
    assert_int_equal(weir_schedule_put(t->q, &(weir_schedule){ .name = "s", .when = "@daily" },
                                       &t->err), WEIR_EINVAL);
}

RT_CLOCK_TEST(lists)
{
    weir_schedules *list;
    put(t, (weir_schedule){ .name = "b", .when = "30 6 * * 1", .zone = "Europe/Berlin",
                            .except = "2026-12-25" });
    put(t, (weir_schedule){ .name = "a", .when = "@daily" });
    put(t, (weir_schedule){ .name = "c", .when = "every 90m" });
    OK(weir_schedules_list(t->q, NULL, 2, &list, &t->err));
    assert_int_equal(list->n, 2);
    assert_true(list->more);
    assert_string_equal(list->schedule[0].name, "a");
    assert_string_equal(list->schedule[1].name, "b");
    assert_string_equal(list->schedule[1].when, "30 6 * * 1");
    assert_string_equal(list->schedule[1].zone, "Europe/Berlin");
    assert_string_equal(list->schedule[1].except, "2026-12-25");
    assert_string_equal(list->schedule[1].job.type, "a");
    weir_schedules_free(list);
    OK(weir_schedules_list(t->q, "b", 0, &list, &t->err));
    assert_int_equal(list->n, 1);
    assert_false(list->more);
    assert_true(list->schedule[0].next_at == list->schedule[0].created_at + 90 * MINUTE);
    weir_schedules_free(list);
    assert_int_equal(weir_schedule_get(t->q, "d", &list, &t->err), WEIR_ENOENT);
    assert_null(list);
}

static void job_ends_with_nul(weir_schedules *list)
{
    assert_int_equal(list->n, 1);
    const weir_spec *job = &list->schedule[0].job;
    assert_string_equal(job->data, "{\"x\":1}");
    assert_int_equal(job->data_len, 7);
    assert_string_equal(job->values, "{\"y\":[2]}");
    assert_int_equal(job->values_len, 9);
    weir_schedules_free(list);
}

RT_CLOCK_TEST(data_and_values_end_with_nul)
{
    weir_schedules *list;
    size_t          len;
    put(t, (weir_schedule){ .name = "s", .when = "@daily", .zone = "Europe/Berlin",
                            .job = { .type = "a", .data = "{\"x\":1}", .values = "{\"y\":[2]}",
                                     .attempts = 3 } });
    OK(weir_schedule_get(t->q, "s", &list, &t->err));
    char *text = weir_schedule_json(&list->schedule[0], &len);
    job_ends_with_nul(list);
    OK(weir_schedule_parse(text, len, &list, &t->err));
    free(text);
    job_ends_with_nul(list);
    OK(weir_schedules_list(t->q, NULL, 0, &list, &t->err));
    job_ends_with_nul(list);
}

static weir_code outcome(rt *t, weir_future *f)
{
    weir_code rc = weir_future_wait(f, 10000, &t->err);
    weir_future_free(f);
    return rc;
}

RT_CLOCK_TEST(every_call_has_an_async_twin)
{
    weir_future    *f;
    weir_schedules *list;
    uint64_t        id = 0;
    size_t          n = 0;
    char            when[] = "@hourly", name[] = "s";
    to_the_hour(t, 1);
    OK(weir_schedule_put_async(t->q, &(weir_schedule){ .name = name, .when = when,
                                                       .job = { .type = "a" } }, &f, &t->err));
    strcpy(when, "wrong");                      /* it was copied */
    strcpy(name, "x");
    OK(outcome(t, f));
    OK(weir_schedule_pause_async(t->q, "s", true, &f, &t->err));
    OK(outcome(t, f));
    assert_true(get(t, "s").paused);
    OK(weir_schedule_fire_async(t->q, "s", &id, &f, &t->err));
    OK(outcome(t, f));
    assert_int_equal(rt_state(t, id), WEIR_STATE_INACTIVE);
    OK(weir_schedule_backfill_async(t->q, "s", t->now - 3 * HOUR, t->now, &n, &f, &t->err));
    OK(outcome(t, f));
    assert_int_equal(n, 3);
    assert_int_equal(get(t, "s").n_history, 4);
    OK(weir_schedule_get_async(t->q, "s", &list, &f, &t->err));
    OK(outcome(t, f));
    assert_string_equal(list->schedule[0].when, "@hourly");
    weir_schedules_free(list);
    OK(weir_schedules_list_async(t->q, NULL, 0, &list, &f, &t->err));
    OK(outcome(t, f));
    assert_int_equal(list->n, 1);
    weir_schedules_free(list);
    OK(weir_schedules_list_async(t->q, NULL, 0, &list, &f, &t->err));
    weir_future_free(f);                        /* nobody wants the answer ... */
    weir_schedules_free(list);                  /* ... but it may have been there already */
    OK(weir_schedule_remove_async(t->q, "s", &f, &t->err));
    OK(outcome(t, f));

    OK(weir_schedule_get_async(t->q, "s", &list, &f, &t->err));
    assert_int_equal(outcome(t, f), WEIR_ENOENT);
    assert_null(list);
    OK(weir_schedule_fire_async(t->q, "s", &id, &f, &t->err));
    assert_int_equal(outcome(t, f), WEIR_ENOENT);
    assert_true(id == 0);
    assert_int_equal(weir_schedule_put_async(t->q, &(weir_schedule){ .name = "s", .when = "no",
                                                                     .job = { .type = "a" } },
                                             &f, &t->err), WEIR_EINVAL);
    assert_null(f);
    assert_int_equal(weir_schedule_pause_async(t->q, NULL, true, &f, &t->err), WEIR_EINVAL);
    assert_null(f);
}

/* A callback may call everything, so a plain call must not need the callback thread. */
static void put_in_callback(weir_code code, const weir_error *err, void *ctx)
{
    (void)code, (void)err;
    rt           *t = ctx;
    weir_schedule s = { .name = "c", .when = "@daily", .job = { .type = "a" } };
    weir_schedule_put(t->q, &s, NULL);
}

RT_CLOCK_TEST(a_callback_can_put_one)
{
    weir_future    *f;
    weir_schedules *list = NULL;
    OK(weir_ready_async(t->q, &f, &t->err));
    OK(weir_future_then(f, put_in_callback, t));
    weir_future_free(f);
    UNTIL(!weir_schedule_get(t->q, "c", &list, NULL));
    weir_schedules_free(list);
}

/* The clock is set back behind a firing. When the schedule is resumed, or its times change, it
 * fires at the next of its times. */
RT_CLOCK_TEST(a_clock_that_was_set_back)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    rt_later(t, 5 * HOUR);
    UNTIL(get(t, "s").fired == 1);
    rt_later(t, -3 * HOUR);
    OK(weir_schedule_pause(t->q, "s", true, &t->err));
    OK(weir_schedule_pause(t->q, "s", false, &t->err));
    to_the_hour(t, 0);
    UNTIL(get(t, "s").n_history == 2);
    assert_int_equal(get(t, "s").history[1].outcome, WEIR_FIRING_DONE);
    assert_int_equal(jobs(t), 2);
    rt_later(t, -2 * HOUR);
    put(t, (weir_schedule){ .name = "s", .when = "30 * * * *" });
    rt_later(t, 30 * MINUTE);
    UNTIL(get(t, "s").n_history == 3);
    assert_int_equal(get(t, "s").history[2].outcome, WEIR_FIRING_DONE);
    assert_int_equal(jobs(t), 3);
}

/* After one has fired, the others still do at their times. */
RT_CLOCK_TEST(one_after_the_other)
{
    enum { SCHEDULES = 5 };
    char name[20], when[20];
    to_the_hour(t, 0);
    for (int i = 1; i <= SCHEDULES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        snprintf(when, sizeof when, "%d * * * *", 10 * i);
        put(t, (weir_schedule){ .name = name, .when = when });
    }
    for (int i = 1; i <= SCHEDULES; i++) {
        rt_later(t, 10 * MINUTE);
        snprintf(name, sizeof name, "s%d", i);
        UNTIL(get(t, name).fired == 1);
    }
}

/* A schedule of a name that was free meanwhile is another one. */
RT_CLOCK_TEST(a_name_that_is_used_again)
{
    to_the_hour(t, 1);
    for (uint64_t i = 1; i < 4; i++) {
        put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
        to_the_hour(t, 0);
        UNTIL(get(t, "s").fired == 1);
        assert_int_equal(jobs(t), i);
        OK(weir_schedule_remove(t->q, "s", &t->err));
    }
}

/* A process was killed after it had added the job of a firing. The next one comes too late for the
 * firing, and finds the job. */
RT_CLOCK_TEST(the_job_of_a_process_that_was_killed)
{
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly", .missed = WEIR_MISSED_SKIP });
    weir_schedule s = get(t, "s");
    char          key[WEIR_MAX_TOKEN + 1];
    weir_added    added;
    snprintf(key, sizeof key, "schedule %016llx s", (unsigned long long)s.series);
    weir_queue *killed = t->served ? t->served : t->q;      /* who fires */
    OK(weir_add_many(killed, &(weir_spec){ .type = "a" }, 1,
                     &(weir_token){ .key = key, .number = s.turn }, &added, &t->err));
    to_the_hour(t, 10 * MINUTE);
    UNTIL(get(t, "s").next_at > t->now);
    s = get(t, "s");
    assert_int_equal(s.n_history, 1);
    assert_int_equal(s.history[0].outcome, WEIR_FIRING_DONE);
    assert_true(s.history[0].job == added.id && s.last_job == added.id);
    assert_int_equal(s.fired, 1);
    to_the_hour(t, 10 * MINUTE);                    /* this one nobody has fired */
    UNTIL(get(t, "s").next_at > t->now);
    assert_int_equal(get(t, "s").history[1].outcome, WEIR_FIRING_MISSED);
    assert_int_equal(jobs(t), 1);
}

/* Somebody changes the times while the schedule fires: each job is in the history. */
static void *change_times(void *arg)
{
    rt *t = arg;
    for (int i = 0; i < 300; i++) {
        weir_error    err;
        weir_schedule s = { .name = "s", .when = i % 2 ? "* * * * *" : "*/1 * * * *",
                            .job = { .type = "a" } };
        assert_ok_(weir_schedule_put(t->q, &s, &err), &err, "put", __FILE__, __LINE__);
    }
    return NULL;
}

RT_CLOCK_TEST(times_that_change_while_it_fires)
{
    pthread_t other;
    put(t, (weir_schedule){ .name = "s", .when = "* * * * *" });
    pthread_create(&other, NULL, change_times, t);
    for (int i = 0; i < 100; i++) {
        rt_later(t, MINUTE);
        rt_breathe();
    }
    pthread_join(other, NULL);
    UNTIL(get(t, "s").next_at > t->now);
    UNTIL((int64_t)jobs(t) == get(t, "s").fired);
}

static weir_schedules *park(rt *t, const char *name)
{
    weir_schedules *list;
    OK(weir_schedule_park(t->q, name, &list, &t->err));
    assert_int_equal(list->n, 1);
    return list;
}

RT_CLOCK_TEST(on_the_way_to_another_store)
{
    bool existed = true;
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly", .missed = WEIR_MISSED_ALL });
    put(t, (weir_schedule){ .name = "other", .when = "@hourly" });
    to_the_hour(t, 0);
    UNTIL(get(t, "s").fired == 1 && get(t, "other").fired == 1);
    int64_t         next = t->now + HOUR;
    weir_schedules *once = park(t, "s"), *list = park(t, "s");
    assert_true(list->schedule[0].next_at == WEIR_PARKED_AT + next);
    assert_true(list->schedule[0].turn == once->schedule[0].turn);
    weir_schedules_free(once);
    to_the_hour(t, 0);
    UNTIL(get(t, "other").fired == 2);
    assert_int_equal(get(t, "s").fired, 1);
    OK(weir_schedule_remove(t->q, "s", &t->err));
    for (int i = 0; i < 2; i++) {
        OK(weir_schedule_import(t->q, &list->schedule[0], &existed, &t->err));
        assert_false(existed);                          /* the second replaces a parked one */
    }
    assert_int_equal(get(t, "s").fired, 1);
    assert_int_equal(get(t, "s").n_history, 1);
    OK(weir_schedule_unpark(t->q, "s", &t->err));
    OK(weir_schedule_unpark(t->q, "s", &t->err));
    UNTIL(get(t, "s").fired == 2);                      /* what came due meanwhile */
    assert_true(get(t, "s").history[1].at == next);
    OK(weir_schedule_import(t->q, &list->schedule[0], &existed, &t->err));
    assert_true(existed);
    assert_int_equal(get(t, "s").fired, 2);
    weir_schedules_free(list);
    assert_int_equal(weir_schedule_park(t->q, "none", &list, &t->err), WEIR_ENOENT);
    assert_int_equal(weir_schedule_unpark(t->q, "none", &t->err), WEIR_ENOENT);
}

/* Somebody has added the job of a firing, but has not moved the schedule on when it is parked. */
RT_CLOCK_TEST(a_firing_that_has_begun_moves_along)
{
    char       key[WEIR_MAX_TOKEN + 1];
    weir_added added;
    to_the_hour(t, 1);
    put(t, (weir_schedule){ .name = "s", .when = "@hourly" });
    if (t->server) {                    /* its tokens are not ours: not near a firing */
        weir_schedules *none;
        rt_later(t, get(t, "s").next_at - t->now - WEIR_PARK_MS / 2);
        assert_int_equal(weir_schedule_park(t->q, "s", &none, &t->err), WEIR_EBUSY);
        return;
    }
    weir_schedule s = get(t, "s");
    snprintf(key, sizeof key, "schedule %016llx s", (unsigned long long)s.series);
    OK(weir_add_many(t->q, &(weir_spec){ .type = "a" }, 1,
                     &(weir_token){ .key = key, .number = s.turn }, &added, &t->err));
    for (int i = 0; i < 2; i++) {
        weir_schedules *list = park(t, "s");
        assert_true(list->schedule[0].next_at == WEIR_PARKED_AT + s.next_at + HOUR);
        assert_int_equal(list->schedule[0].fired, 1);
        assert_true(list->schedule[0].last_job == added.id);
        weir_schedules_free(list);
    }
}

RT_CLOCK_TEST(moves_have_async_twins)
{
    weir_future    *f;
    weir_schedules *list, *parsed;
    bool            existed = true;
    size_t          len;
    put(t, (weir_schedule){ .name = "s", .when = "every 90m", .except = "2026-12-25",
                            .job = { .type = "a", .data = "{\"n\":1}" } });
    OK(weir_schedule_fire(t->q, "s", NULL, &t->err));
    OK(weir_schedule_park_async(t->q, "s", &list, &f, &t->err));
    OK(outcome(t, f));
    OK(weir_schedule_import_async(t->q, &list->schedule[0], &existed, &f, &t->err));
    OK(outcome(t, f));
    assert_false(existed);
    OK(weir_schedule_unpark_async(t->q, "s", &f, &t->err));
    OK(outcome(t, f));
    assert_true(get(t, "s").next_at == list->schedule[0].next_at - WEIR_PARKED_AT);

    char *text = weir_schedule_json(&list->schedule[0], &len), *again;
    OK(weir_schedule_parse(text, len, &parsed, &t->err));
    again = weir_schedule_json(&parsed->schedule[0], &len);
    assert_string_equal(text, again);
    assert_int_equal(parsed->schedule[0].n_history, 1);
    weir_schedules_free(parsed);
    weir_schedules_free(list);
    assert_int_equal(weir_schedule_parse(text, len - 1, &parsed, &t->err), WEIR_EINVAL);
    assert_null(parsed);
    free(text);
    free(again);
}

/* Two queues on one Redis, by the real clock: none doubled, none missing. */
static void two_queues_fire_once(void **state)
{
    (void)state;
    enum { SCHEDULES = 20, FIRINGS = 4 };
    rt one, two, *t = &one;
    rt_open(&one, RT_REDIS, false);
    rt_open(&two, one.url, false);
    for (int i = 0; i < SCHEDULES; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        put(t, (weir_schedule){ .name = name, .when = "* * * * * *",
                                .end_at = weir_now(t->q) / 1000 * 1000 + FIRINGS * 1000 });
    }
    for (int i = 0; i < SCHEDULES; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        UNTIL(get(t, name).next_at == 0);
    }
    int64_t fired = 0;
    for (int i = 0; i < SCHEDULES; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        weir_schedule s = get(t, name);
        fired += s.fired;
        for (size_t k = 1; k < s.n_history; k++)
            assert_true(s.history[k].at == s.history[k - 1].at + 1000);
    }
    assert_true(fired >= SCHEDULES * (FIRINGS - 1));
    assert_int_equal(jobs(t), fired);
    rt_close(&two);
    rt_check_and_close(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_firing_adds_a_job),
        cmocka_unit_test(missed_firings),
        cmocka_unit_test(a_job_that_has_not_ended),
        cmocka_unit_test(a_pause_leaves_firings_out),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(a_span_is_filled_once),
        cmocka_unit_test(a_firing_has_room_for_its_values),
        cmocka_unit_test(what_weir_keeps_for_itself),
        cmocka_unit_test(a_change_keeps_the_history),
        cmocka_unit_test(lists),
        cmocka_unit_test(data_and_values_end_with_nul),
        cmocka_unit_test(every_call_has_an_async_twin),
        cmocka_unit_test(a_callback_can_put_one),
        cmocka_unit_test(a_clock_that_was_set_back),
        cmocka_unit_test(a_clock_that_stays_set_back),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(a_name_that_is_used_again),
        cmocka_unit_test(the_job_of_a_process_that_was_killed),
        cmocka_unit_test(times_that_change_while_it_fires),
        cmocka_unit_test(on_the_way_to_another_store),
        cmocka_unit_test(a_firing_that_has_begun_moves_along),
        cmocka_unit_test(moves_have_async_twins),
        cmocka_unit_test(two_queues_fire_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
