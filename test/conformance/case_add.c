/* case_add.c - adding jobs, and unique keys. */
#include "conformance/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ids_count_from_one(fixture *f)
{
    CHECK_INT(add(f, "mail"), 1);
    CHECK_INT(add(f, "mail"), 2);
    CHECK_INT(add(f, "video"), 3);
    CHECK_INT(stats(f)->last_id, 3);
}

static void a_bare_job_has_the_defaults(fixture *f)
{
    const weir_job *j = get(f, add(f, "mail"));
    CHECK_STR(j->type, "mail");
    CHECK_STR(j->data, "{}");
    CHECK_INT(j->data_len, 2);
    CHECK_INT(j->state, WEIR_STATE_INACTIVE);
    CHECK_INT(j->priority, WEIR_PRIORITY_NORMAL);
    CHECK_INT(j->attempts, 0);
    CHECK_INT(j->max_attempts, 1);
    CHECK_INT(j->max_lost, WEIR_DEFAULT_MAX_LOST);
    CHECK_INT(j->delivery, 0);
    CHECK_INT(j->created_at, f->now);
    CHECK_INT(j->updated_at, f->now);
    CHECK_INT(j->promote_at, f->now);
    CHECK_INT(j->started_at, 0);
    CHECK_INT(j->finished_at, 0);
    CHECK(!j->result && !j->error && !j->progress_data && !j->unique && !j->worker);
    CHECK(!j->search_keys && !j->search && !j->remove_on_complete && !j->taken);
}

static void everything_asked_for_is_kept(fixture *f)
{
    const weir_job *j = get(f, add_spec(f, &(weir_spec){
        .type = "mail", .data = "{\"to\":\"ann\"}", .priority = WEIR_PRIORITY_HIGH, .attempts = 7,
        .delay_ms = 1000, .backoff = { WEIR_BACKOFF_EXPONENTIAL, 500, 60000, 20 }, .ttl_ms = 3000,
        .deadline_at = f->now + 90000, .unique = "k", .max_lost = 9, .remove_on_complete = true,
        .search = true, .search_keys = "to, cc" }));
    CHECK_STR(j->data, "{\"to\":\"ann\"}");
    CHECK_INT(j->priority, WEIR_PRIORITY_HIGH);
    CHECK_INT(j->max_attempts, 7);
    CHECK_INT(j->delay_ms, 1000);
    CHECK_INT(j->promote_at, f->now + 1000);
    CHECK_INT(j->state, WEIR_STATE_DELAYED);
    CHECK_INT(j->backoff.kind, WEIR_BACKOFF_EXPONENTIAL);
    CHECK_INT(j->backoff.delay_ms, 500);
    CHECK_INT(j->backoff.max_ms, 60000);
    CHECK_INT(j->backoff.jitter_pct, 20);
    CHECK_INT(j->ttl_ms, 3000);
    CHECK_INT(j->deadline_at, f->now + 90000);
    CHECK_STR(j->unique, "k");
    CHECK_INT(j->max_lost, 9);
    CHECK(j->remove_on_complete && j->search);
    CHECK_STR(j->search_keys, "to, cc");
}

static void the_answer_says_id_and_state(fixture *f)
{
    weir_added out[2];
    CHECK_INT(add_many(f, (weir_spec[]){ { .type = "a" }, { .type = "a", .delay_ms = 5 } }, 2, out),
              WEIR_OK);
    CHECK_INT(out[0].id, 1);
    CHECK_INT(out[0].state, WEIR_STATE_INACTIVE);
    CHECK_INT(out[1].id, 2);
    CHECK_INT(out[1].state, WEIR_STATE_DELAYED);
    CHECK(!out[0].existed && !out[1].existed);
    CHECK(out[0].durability != WEIR_DURABILITY_DEFAULT);
}

static void many_are_added_in_order(fixture *f)
{
    enum { N = 1000 };
    weir_spec  *specs = calloc(N, sizeof *specs);
    weir_added *out = calloc(N, sizeof *out);
    for (size_t i = 0; i < N; i++)
        specs[i] = (weir_spec){ .type = i % 2 ? "odd" : "even" };
    weir_code rc = add_many(f, specs, N, out);
    bool      in_order = true;
    for (size_t i = 0; i < N; i++)
        in_order = in_order && out[i].id == i + 1;
    free(specs);
    free(out);
    CHECK_INT(rc, WEIR_OK);
    CHECK(in_order);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "odd"), N / 2);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, NULL), N);
}

static void none_of_many_is_added_when_one_is_wrong(fixture *f)
{
    weir_added out[2];
    CHECK_INT(add_many(f, (weir_spec[]){ { .type = "a" }, { .type = "" } }, 2, out), WEIR_EINVAL);
    CHECK(strstr(f->err.msg, "jobs[1].type"));
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
    CHECK_INT(add(f, "a"), 1);
}

static void adding_nothing_is_fine(fixture *f)
{
    CHECK_INT(add_many(f, NULL, 0, NULL), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
}

static void data_is_bytes_with_a_length(fixture *f)
{
    const weir_job *j = get(f, add_spec(f, &(weir_spec){ .type = "a", .data = "[1,2]xyz",
                                                         .data_len = 5 }));
    CHECK_STR(j->data, "[1,2]");
    CHECK_INT(j->data_len, 5);
}

static void a_megabyte_of_data_comes_back(fixture *f)
{
    char *data = malloc(WEIR_MAX_DATA + 1);
    memset(data, 'x', WEIR_MAX_DATA);
    data[0] = data[WEIR_MAX_DATA - 1] = '"';
    data[WEIR_MAX_DATA] = '\0';
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .data = data });
    const weir_job *j = get(f, id);
    bool            same = j->data_len == WEIR_MAX_DATA && !memcmp(j->data, data, WEIR_MAX_DATA);
    free(data);
    CHECK(same);
}

static void a_moment_in_the_past_is_now(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .run_at = f->now - 5000 });
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void a_moment_to_come_delays(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .run_at = f->now + 5000 });
    CHECK_STATE(f, id, WEIR_STATE_DELAYED);
    CHECK_INT(get(f, id)->promote_at, f->now + 5000);
    CHECK_INT(get(f, id)->delay_ms, 0);
}

static void types_may_be_any_text(fixture *f)
{
    const char *odd = "caf\xc3\xa9 \"x\" ' % _ * \\ ; --";
    CHECK_INT(add(f, odd), 1);
    CHECK_STR(take(f, odd)->type, odd);
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, odd), 1);
}

/* ---- unique keys ---- */

static const weir_spec keyed = { .type = "a", .unique = "k", .attempts = 2 };

static void a_taken_key_answers_with_its_job(fixture *f)
{
    weir_added out = { 0 };
    uint64_t   id = add_spec(f, &keyed);
    CHECK_INT(try_add(f, &keyed, &out), WEIR_OK);
    CHECK(out.existed);
    CHECK_INT(out.id, id);
    CHECK_INT(out.state, WEIR_STATE_INACTIVE);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 1);
    CHECK_INT(stats(f)->last_id, 1);
    CHECK_EVENTS(f, "enqueue 1");
}

static void a_key_is_of_one_type(fixture *f)
{
    add_spec(f, &keyed);
    add_spec(f, &(weir_spec){ .type = "b", .unique = "k" });
    add_spec(f, &(weir_spec){ .type = "a", .unique = "K" });
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
}

static void a_key_is_held_while_delayed_and_active(fixture *f)
{
    weir_added out = { 0 };
    weir_spec  slow = keyed;
    slow.delay_ms = 1000;
    uint64_t id = add_spec(f, &slow);
    CHECK_INT(try_add(f, &keyed, &out), WEIR_OK);
    CHECK(out.existed && out.state == WEIR_STATE_DELAYED);
    later(f, 1000);
    const weir_job *job = take(f, "a");
    CHECK_INT(try_add(f, &keyed, &out), WEIR_OK);
    CHECK(out.existed && out.state == WEIR_STATE_ACTIVE && out.id == id);
    fail_job(f, job, "x");
    CHECK_INT(try_add(f, &keyed, &out), WEIR_OK);
    CHECK(out.existed);
}

static void a_key_is_free_once_its_job_has_ended(fixture *f)
{
    add_spec(f, &keyed);
    finish(f, take(f, "a"));
    uint64_t second = add_spec(f, &keyed);
    cancel_job(f, second);
    uint64_t third = add_spec(f, &keyed);
    remove_job(f, third);
    uint64_t fourth = add_spec(f, &keyed);
    fail_job(f, take(f, "a"), "1");
    CHECK_STATE(f, fourth, WEIR_STATE_INACTIVE);
    fail_job(f, take(f, "a"), "2");
    CHECK_STATE(f, fourth, WEIR_STATE_FAILED);
    add_spec(f, &keyed);
}

static void one_key_twice_in_one_call(fixture *f)
{
    weir_added      out[3];
    const weir_spec three[] = { keyed, { .type = "a" }, keyed };
    CHECK_INT(add_many(f, three, 3, out), WEIR_OK);
    CHECK(!out[0].existed && !out[1].existed && out[2].existed);
    CHECK_INT(out[2].id, out[0].id);
    CHECK_INT(out[1].id, out[0].id + 1);
    CHECK_INT(stats(f)->last_id, 2);
}

static void a_retry_needs_the_key_to_be_free(fixture *f)
{
    uint64_t first = add_spec(f, &keyed);
    cancel_job(f, first);
    uint64_t second = add_spec(f, &keyed);
    CHECK_INT(retry_job(f, first), WEIR_ESTATE);
    CHECK_STR(f->err.msg, "job 1: job 2 has its unique key now");
    CHECK_STATE(f, first, WEIR_STATE_CANCELLED);
    cancel_job(f, second);
    CHECK_INT(retry_job(f, first), WEIR_OK);
    weir_added out = { 0 };
    CHECK_INT(try_add(f, &keyed, &out), WEIR_OK);
    CHECK(out.existed && out.id == first);
}

const conformance_case cases_add[] = {
    CASE(ids_count_from_one),
    CASE(a_bare_job_has_the_defaults),
    CASE(everything_asked_for_is_kept),
    CASE(the_answer_says_id_and_state),
    CASE(many_are_added_in_order),
    CASE(none_of_many_is_added_when_one_is_wrong),
    CASE(adding_nothing_is_fine),
    CASE(data_is_bytes_with_a_length),
    CASE(a_megabyte_of_data_comes_back),
    CASE(a_moment_in_the_past_is_now),
    CASE(a_moment_to_come_delays),
    CASE(types_may_be_any_text),
    CASE(a_taken_key_answers_with_its_job),
    CASE(a_key_is_of_one_type),
    CASE(a_key_is_held_while_delayed_and_active),
    CASE(a_key_is_free_once_its_job_has_ended),
    CASE(one_key_twice_in_one_call),
    CASE(a_retry_needs_the_key_to_be_free),
    { 0 },
};
