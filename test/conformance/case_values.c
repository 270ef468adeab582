/* case_values.c - small values of the user's own that are kept with a job. */
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#include "core/job.h"

static uint64_t add_with(fixture *f, const char *values)
{
    return add_spec(f, &(weir_spec){ .type = "a", .values = values });
}

static weir_code set(fixture *f, uint64_t id, const char *values)
{
    return update(f, id, &(weir_change){ .values = values });
}

static void check_values(fixture *f, uint64_t id, const char *want)
{
    const weir_job *j = get(f, id);
    CHECK_INT(!j->values, !want);
    if (want)
        CHECK_STR(j->values, want);
    CHECK_INT(j->values_len, want ? strlen(want) : 0);
}

static void values_are_kept_with_the_job(fixture *f)
{
    uint64_t id = add_with(f, "{\"color\":\"red\",\"n\":1.50}"), none = add(f, "b");
    check_values(f, id, "{\"color\":\"red\",\"n\":1.50}");
    check_values(f, none, NULL);
    CHECK_STR(list(f, &(weir_query){ .type = "a" })->job[0]->values,
              "{\"color\":\"red\",\"n\":1.50}");
    CHECK_STR(take(f, "a")->values, "{\"color\":\"red\",\"n\":1.50}");
    CHECK(!take(f, "b")->values);
    CHECK_STR(get(f, id)->data, "{}");
}

static void they_are_kept_in_one_form(fixture *f)
{
    uint64_t id = add_with(f, " { \"b\" : 2 , \"a\" : \"\\u00e9\\/\" ,\"B\":[1, 2], \"b\":3 } ");
    check_values(f, id, "{\"B\":[1, 2],\"a\":\"\xc3\xa9/\",\"b\":3}");
    check_values(f, add_with(f, "{}"), NULL);
    check_values(f, add_spec(f, &(weir_spec){ .type = "a", .values = "{\"a\":1}xx",
                                              .values_len = 7 }), "{\"a\":1}");
}

static void a_text_stays_a_text(fixture *f)
{
    uint64_t id = add_with(f, "{\"a\":\"5\",\"b\":\"null\",\"c\":\"\",\"d\":\" 5 \",\"e\":\"[1]\","
                              "\"f\":\"\\\"q\\\"\",\"g\":\"true\",\"h\":\"{\",\"i\":\"x y\"}");
    check_values(f, id, "{\"a\":\"5\",\"b\":\"null\",\"c\":\"\",\"d\":\" 5 \",\"e\":\"[1]\","
                        "\"f\":\"\\\"q\\\"\",\"g\":\"true\",\"h\":\"{\",\"i\":\"x y\"}");
    CHECK_INT(set(f, id, "{\"z\":{\"deep\":[null,\"5\"]}}"), WEIR_OK);
    CHECK(strstr(get(f, id)->values, "\"i\":\"x y\",\"z\":{\"deep\":[null,\"5\"]}}"));
    CHECK(strstr(take(f, "a")->values, "{\"a\":\"5\",\"b\":\"null\""));
}

static void values_are_set_and_removed(fixture *f)
{
    uint64_t id = add(f, "a");
    CHECK_INT(set(f, id, "{\"b\":1}"), WEIR_OK);
    check_values(f, id, "{\"b\":1}");
    CHECK_INT(set(f, id, "{\"a\":\"x\",\"c\":true}"), WEIR_OK);
    check_values(f, id, "{\"a\":\"x\",\"b\":1,\"c\":true}");
    CHECK_INT(set(f, id, "{\"b\":[],\"c\":null,\"d\":null}"), WEIR_OK);
    check_values(f, id, "{\"a\":\"x\",\"b\":[]}");
    CHECK_INT(set(f, id, "{}"), WEIR_OK);
    check_values(f, id, "{\"a\":\"x\",\"b\":[]}");
    CHECK_INT(set(f, id, "{\"a\":null,\"b\":null}"), WEIR_OK);
    check_values(f, id, NULL);
    CHECK_INT(set(f, 99, "{\"a\":1}"), WEIR_ENOENT);
}

static uint64_t add_in_state(fixture *f, weir_state state)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .values = "{\"old\":1}",
                                            .delay_ms = state == WEIR_STATE_DELAYED ? 5000 : 0 });
    if (state == WEIR_STATE_CANCELLED)
        cancel_job(f, id);
    if (state == WEIR_STATE_ACTIVE)
        take(f, "a");
    if (state == WEIR_STATE_COMPLETE)
        finish(f, take(f, "a"));
    if (state == WEIR_STATE_FAILED)
        fail_job(f, take(f, "a"), "no");
    CHECK_STATE(f, id, state);
    return id;
}

/* Neither an event nor an entry in the history, and all else stays as it was. */
static void values_can_be_set_in_any_state(fixture *f)
{
    for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        uint64_t        id = add_in_state(f, s);
        const weir_job *was = get(f, id);
        events(f);
        f->now += 7;
        CHECK_INT(set(f, id, "{\"new\":\"yes\"}"), WEIR_OK);
        CHECK_EVENTS(f, "");
        const weir_job *is = get(f, id);
        CHECK_STR(is->values, "{\"new\":\"yes\",\"old\":1}");
        CHECK_INT(is->state, s);
        CHECK_INT(is->updated_at, f->now);
        CHECK_INT(is->finished_at, was->finished_at);
        CHECK_INT(is->lease_until, was->lease_until);
        CHECK_INT(is->attempts, was->attempts);
        CHECK_INT(!is->history, !was->history);
        CHECK_INT(is->history_len, was->history_len);
        remove_job(f, id);
    }
}

static void values_stay_whatever_becomes_of_the_job(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .attempts = 2, .values = "{\"v\":1}" });
    const weir_job *job = take(f, "a");
    CHECK_INT(progress(f, job, 10, "[1]"), WEIR_OK);
    CHECK_INT(log_from(f, job, "here"), WEIR_OK);
    CHECK_INT(update(f, id, &(weir_change){ .values = "{\"w\":2}", .delivery = job->delivery }),
              WEIR_OK);
    CHECK_INT(progress(f, job, 20, NULL), WEIR_OK);
    fail_job(f, job, "no");
    check_values(f, id, "{\"v\":1,\"w\":2}");
    CHECK_INT(update(f, id, &(weir_change){ .set_priority = true, .priority = 3 }), WEIR_OK);
    job = take(f, "a");
    CHECK_STR(job->values, "{\"v\":1,\"w\":2}");
    finish_with(f, job, "[2]");
    check_values(f, id, "{\"v\":1,\"w\":2}");
    CHECK_STR(get(f, id)->result, "[2]");
    CHECK_INT(retry_job(f, id), WEIR_OK);
    CHECK_STR(take(f, "a")->values, "{\"v\":1,\"w\":2}");
    later(f, LEASE_MS);
    check_values(f, id, "{\"v\":1,\"w\":2}");
}

static void a_late_worker_sets_nothing(fixture *f)
{
    uint64_t        id = add(f, "a");
    const weir_job *job = take(f, "a");
    weir_change     change = { .values = "{\"a\":1}", .delivery = job->delivery + 1 };
    CHECK_INT(update(f, id, &change), WEIR_ESTALE);
    later(f, LEASE_MS);
    change.delivery = job->delivery;
    CHECK_INT(update(f, id, &change), WEIR_ESTALE);
    const weir_job *again = take(f, "a");
    CHECK_INT(update(f, id, &change), WEIR_ESTALE);
    check_values(f, id, NULL);
    change.delivery = again->delivery;
    CHECK_INT(update(f, id, &change), WEIR_OK);
    check_values(f, id, "{\"a\":1}");
    CHECK_INT(renew(f, again, 1000), WEIR_OK);
    CHECK_INT(finish(f, again), WEIR_OK);
    CHECK_INT(update(f, id, &change), WEIR_ESTALE);
    CHECK_INT(update(f, 99, &change), WEIR_ESTALE);
}

static void a_change_is_made_as_a_whole(fixture *f)
{
    uint64_t id = add_with(f, "{\"a\":1}");
    CHECK_INT(update(f, id, &(weir_change){ .values = "{\"a\":2}", .data = "[1]",
                                            .set_priority = true, .priority = -9 }), WEIR_OK);
    check_values(f, id, "{\"a\":2}");
    CHECK_STR(get(f, id)->data, "[1]");
    CHECK_INT(get(f, id)->priority, -9);
    take(f, "a");
    CHECK_INT(update(f, id, &(weir_change){ .values = "{\"a\":3}", .data = "[2]" }), WEIR_ESTATE);
    check_values(f, id, "{\"a\":2}");
    CHECK_INT(update(f, id, &(weir_change){ .values = "{\"a\":4}", .state = WEIR_STATE_CANCELLED }),
              WEIR_OK);
    check_values(f, id, "{\"a\":4}");
}

/* An object with n values, from number `from` on. */
static const char *many(char *room, size_t from, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)sprintf(room + at, "%s\"v%02zu\":%zu", i ? "," : "{", from + i, i);
    strcpy(room + at, "}");
    return room;
}

static void there_are_limits(fixture *f)
{
    char     room[2 * WEIR_MAX_VALUES_BYTES];
    uint64_t id = add_with(f, many(room, 0, WEIR_MAX_VALUES));
    CHECK_INT(set(f, id, "{\"v40\":1}"), WEIR_ELIMIT);
    CHECK_STR(f->err.msg, "values: more than 32 (WEIR_MAX_VALUES)");
    CHECK(!strstr(get(f, id)->values, "v40"));
    CHECK_INT(set(f, id, "{\"v00\":null,\"v40\":1}"), WEIR_OK);
    CHECK(strstr(get(f, id)->values, "\"v31\":31,\"v40\":1}"));
    CHECK_INT(set(f, id, many(room, 0, WEIR_MAX_VALUES + 1)), WEIR_ELIMIT);
    int n = sprintf(room, "{\"long\":\"");
    memset(room + n, 'x', WEIR_MAX_VALUES_BYTES - (size_t)n - 2);
    strcpy(room + WEIR_MAX_VALUES_BYTES - 2, "\"}");
    CHECK_INT(set(f, id, room), WEIR_ELIMIT);           /* with what is there */
    uint64_t other = add_with(f, room);
    check_values(f, other, room);
    strcpy(room + WEIR_MAX_VALUES_BYTES - 2, "x\"}");
    CHECK_INT(try_add(f, &(weir_spec){ .type = "a", .values = room }, NULL), WEIR_ELIMIT);
}

/* It is Vert.x Kue's, and there every job has one. */
static void an_address_does_not_count(fixture *f)
{
    char room[WEIR_MAX_VALUES_BYTES];
    add_with(f, many(room, 0, WEIR_MAX_VALUES));
    CHECK_INT(set(f, 1, "{\"address_id\":\"x\"}"), WEIR_OK);
    CHECK_INT(set(f, 1, "{\"v00\":\"y\"}"), WEIR_OK);
    CHECK(strstr(get(f, 1)->values, "\"v00\":\"y\",\"v01\":1,"));
    CHECK(strstr(get(f, 1)->values, ",\"v31\":31}"));
    CHECK_INT(set(f, 1, "{\"v32\":1}"), WEIR_ELIMIT);
    sprintf(room, "{\"address_id\":\"%0*d\"}", 255, 0);
    CHECK_INT(set(f, 1, room), WEIR_ELIMIT);
}

static void what_cannot_be_a_value_is_refused(fixture *f)
{
    static const struct {
        const char *values, *why;
    } cases[] = {
        { "[1]", "values: not an object" },
        { "{\"a\":1", "values: not JSON at byte 6" },
        { "{\"a\":\"x\\u0000y\"}", "values.a: a zero byte in it" },
        { "{\"\":1}", "values: a name is empty" },
        { "{\"a b\":1}", "values: \"a b\" is not a name of letters" },
        { "{\"caf\xc3\xa9\":1}", "values: \"caf\xc3\xa9\" is not a name of letters" },
        { "{\"\\u0061\":1}", "values: \"\\u0061\" is not a name of letters" },
        { "{\"state\":1}", "values.state: this is the name of a field of every job" },
        { "{\"weir_x\":1}", "values.weir_x: this is the name of a field of every job" },
    };
    uint64_t id = add(f, "a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_code rc = try_add(f, &(weir_spec){ .type = "a", .values = cases[i].values }, NULL);
        CHECK_INT(rc, WEIR_EINVAL);
        CHECK(!strncmp(f->err.msg, cases[i].why, strlen(cases[i].why)));
        CHECK_INT(set(f, id, cases[i].values), WEIR_EINVAL);
        CHECK(!strncmp(f->err.msg, cases[i].why, strlen(cases[i].why)));
    }
    CHECK_INT(try_add(f, &(weir_spec){ .type = "a", .values = "{\"a\":null}" }, NULL),
              WEIR_EINVAL);
    CHECK_STR(f->err.msg, "values.a: null is no value");
    char name[WEIR_MAX_VALUE_NAME + 20];
    sprintf(name, "{\"%0*d\":1}", WEIR_MAX_VALUE_NAME + 1, 0);
    CHECK_INT(set(f, id, name), WEIR_ELIMIT);
    sprintf(name, "{\"%0*d\":1}", WEIR_MAX_VALUE_NAME, 0);
    CHECK_INT(set(f, id, name), WEIR_OK);
    check_values(f, id, name);
}

static void each_of_many_has_its_own(fixture *f)
{
    enum { N = 40 };
    weir_spec       specs[N];
    char            text[N][32];
    weir_added      out[N];
    const weir_job *taken[N];
    for (size_t i = 0; i < N; i++) {
        sprintf(text[i], "{\"n\":%zu}", i / 2);
        specs[i] = (weir_spec){ .type = "a", .values = i % 2 ? text[i] : NULL };
    }
    CHECK_INT(add_many(f, specs, N, out), WEIR_OK);
    CHECK_INT(take_some(f, (const char *[]){ "a", NULL }, N, taken), N);
    for (size_t i = 0; i < N; i++) {
        check_values(f, out[i].id, specs[i].values);
        size_t at = 0;
        while (taken[at]->id != out[i].id)
            at++;
        CHECK_INT(!taken[at]->values, !specs[i].values);
        if (specs[i].values)
            CHECK_STR(taken[at]->values, specs[i].values);
        if (i % 3)
            CHECK_INT(finish(f, taken[at]), WEIR_OK);
    }
    for (size_t i = 0; i < N; i++)
        check_values(f, out[i].id, specs[i].values);
}

static void they_are_not_searched(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .search = true, .data = "{\"x\":\"hay\"}",
                              .values = "{\"x\":\"needle\"}" });
    CHECK_STR(listed(f, &(weir_query){ .search = "hay" }), "1");
    CHECK_STR(listed(f, &(weir_query){ .search = "needle" }), "");
}

static void they_are_there_after_a_restart(fixture *f)
{
    uint64_t one = add_with(f, "{\"a\":\"5\"}"), two = add(f, "a");
    CHECK_INT(set(f, two, "{\"b\":[1]}"), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    check_values(f, one, "{\"a\":\"5\"}");
    check_values(f, two, "{\"b\":[1]}");
}

const conformance_case cases_values[] = {
    CASE(values_are_kept_with_the_job),
    CASE(they_are_kept_in_one_form),
    CASE(a_text_stays_a_text),
    CASE(values_are_set_and_removed),
    CASE(values_can_be_set_in_any_state),
    CASE(values_stay_whatever_becomes_of_the_job),
    CASE(a_late_worker_sets_nothing),
    CASE(a_change_is_made_as_a_whole),
    CASE(there_are_limits),
    CASE(an_address_does_not_count),
    CASE(what_cannot_be_a_value_is_refused),
    CASE(each_of_many_has_its_own),
    CASE(they_are_not_searched),
    PERSISTENT_CASE(they_are_there_after_a_restart),
    { 0 }
};
