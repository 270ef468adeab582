/* case_token.c - adds that carry a token can be repeated. */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "core/tick.h"

static weir_code add_once(fixture *f, const char *key, uint64_t number, const weir_spec *specs,
                          size_t n, weir_added *out)
{
    weir_token token = { .key = key, .number = number };
    weir_op    op = { .kind = WEIR_OP_ADD,
                      .u.add = { .token = &token, .specs = specs, .n = n, .out = out } };
    return run(f, &op);
}

static weir_code add_one(fixture *f, const char *key, uint64_t number, weir_added *out)
{
    return add_once(f, key, number, &(weir_spec){ .type = "a" }, 1, out);
}

static void repeating_answers_the_same(fixture *f)
{
    const weir_spec three[] = { { .type = "a" }, { .type = "b", .delay_ms = 5000 },
                                { .type = "a", .data = "[3]", .search = true } };
    weir_added      first[3], again[3] = { { 0 } };
    CHECK_INT(add_once(f, "me", 7, three, 3, first), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
    CHECK_STR(events(f), "enqueue 1, enqueue 3");
    for (int i = 0; i < 2; i++) {
        f->now += 1000;
        memset(again, 0, sizeof again);
        CHECK_INT(add_once(f, "me", 7, three, 3, again), WEIR_OK);
        for (int k = 0; k < 3; k++) {
            CHECK_INT(again[k].id, first[k].id);
            CHECK_INT(again[k].state, first[k].state);
            CHECK_INT(again[k].existed, false);
            CHECK_INT(again[k].durability, first[k].durability);
        }
    }
    CHECK_INT(again[1].state, WEIR_STATE_DELAYED);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
    CHECK_STR(events(f), "");
}

/* It is the answer of then, whatever has become of the jobs. */
static void the_answer_is_that_of_the_first_call(fixture *f)
{
    weir_added out = { 0 };
    CHECK_INT(add_one(f, "me", 1, &out), WEIR_OK);
    uint64_t id = out.id;
    CHECK_INT(finish(f, take(f, "a")), WEIR_OK);
    CHECK_INT(add_one(f, "me", 1, &out), WEIR_OK);
    CHECK_INT(out.state, WEIR_STATE_INACTIVE);
    CHECK_INT(remove_job(f, id), WEIR_OK);
    CHECK_INT(add_one(f, "me", 1, &out), WEIR_OK);
    CHECK_INT(out.id, id);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
}

static void a_higher_number_is_another_call(fixture *f)
{
    weir_added out = { 0 };
    CHECK_INT(add_one(f, "me", 1, &out), WEIR_OK);
    CHECK_INT(add_one(f, "me", 2, &out), WEIR_OK);
    CHECK_INT(out.id, 2);
    CHECK_INT(add_one(f, "me", UINT64_MAX, &out), WEIR_OK);
    CHECK_INT(out.id, 3);
    CHECK_INT(add_one(f, "me", UINT64_MAX, &out), WEIR_OK);
    CHECK_INT(out.id, 3);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
}

static void a_lower_number_is_over(fixture *f)
{
    weir_added out = { 0 };
    CHECK_INT(add_one(f, "me", 10, &out), WEIR_OK);
    CHECK_INT(add_one(f, "me", 9, &out), WEIR_ESTALE);
    CHECK_STR(f->err.msg, "token: call 9 is over, the last was 10");
    CHECK_INT(add_one(f, "me", 0, &out), WEIR_ESTALE);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 1);
    CHECK_INT(add_one(f, "me", UINT64_C(1) << 63, &out), WEIR_OK);
    CHECK_INT(add_one(f, "me", (UINT64_C(1) << 63) - 1, &out), WEIR_ESTALE);
    CHECK_INT(add_one(f, "ME", 1, &out), WEIR_OK);         /* that is somebody else */
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
}

static void another_number_of_jobs_is_refused(fixture *f)
{
    const weir_spec two[] = { { .type = "a" }, { .type = "a" } };
    weir_added      out[2] = { { 0 } };
    CHECK_INT(add_once(f, "me", 4, two, 2, out), WEIR_OK);
    CHECK_INT(add_once(f, "me", 4, two, 1, out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "token: call 4 was for 2 jobs, not 1");
    CHECK_INT(add_once(f, "me", 4, two, 0, out), WEIR_EINVAL);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
    CHECK_INT(add_once(f, "none", 4, two, 0, out), WEIR_OK);
    CHECK_INT(add_once(f, "none", 4, two, 0, out), WEIR_OK);
    CHECK_INT(add_once(f, "none", 4, two, 2, out), WEIR_EINVAL);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
}

static void another_digest_is_refused(fixture *f)
{
    const weir_spec two[] = { { .type = "a" }, { .type = "b", .unique = "first" } };
    const weir_spec other[] = { { .type = "a" }, { .type = "c", .unique = "second" } };
    weir_token      token = { .key = "me", .number = 4, .digest = UINT64_MAX };
    weir_added      first[2], out[2] = { { 0 } };
    weir_op         op = { .kind = WEIR_OP_ADD,
                           .u.add = { .token = &token, .specs = two, .n = 2, .out = first } };
    CHECK_INT(run(f, &op), WEIR_OK);
    op.u.add.out = out;
    op.u.add.specs = other;
    token.digest = 17;
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "token: call 4 was for other jobs; use another key or a higher number");
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
    token.digest = UINT64_MAX;
    op.u.add.specs = two;
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK(out[0].id == first[0].id && out[1].id == first[1].id);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
    token = (weir_token){ .key = "me", .number = 5 };           /* another call */
    op.u.add.specs = other;
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 4);
}

static void with_unique_keys_inside(fixture *f)
{
    const weir_spec three[] = { { .type = "a", .unique = "k" }, { .type = "a" },
                                { .type = "a", .unique = "other" } };
    weir_added      first[3], out[3] = { { 0 } };
    uint64_t        holder = add_spec(f, &three[0]);
    CHECK_INT(add_once(f, "me", 1, three, 3, first), WEIR_OK);
    CHECK(first[0].existed && first[0].id == holder);
    CHECK(!first[1].existed && !first[2].existed);
    CHECK_INT(cancel_job(f, holder), WEIR_OK);             /* its key is free now */
    CHECK_INT(add_once(f, "me", 1, three, 3, out), WEIR_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(out[i].id, first[i].id);
        CHECK_INT(out[i].state, first[i].state);
        CHECK_INT(out[i].existed, first[i].existed);
    }
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
    CHECK_INT(add_once(f, "me", 2, three, 3, out), WEIR_OK);
    CHECK(!out[0].existed && !out[1].existed && out[2].existed);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 5);
}

static void what_failed_is_not_remembered(fixture *f)
{
    weir_added out[2] = { { 0 } };
    CHECK_INT(add_once(f, "me", 1, (weir_spec[]){ { .type = "a" }, { .type = "" } }, 2, out),
              WEIR_EINVAL);
    CHECK_INT(add_one(f, "me", 1, out), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 1);
}

static void a_type_that_is_searched(fixture *f)
{
    weir_added out = { 0 };
    CHECK_INT(configure(f, "a", &(weir_settings){ .search = true }), WEIR_OK);
    const weir_spec spec = { .type = "a", .data = "\"hello\"" };
    CHECK_INT(add_once(f, "me", 1, &spec, 1, &out), WEIR_OK);
    CHECK_INT(add_once(f, "me", 1, &spec, 1, &out), WEIR_OK);
    CHECK_STR(listed(f, &(weir_query){ .search = "hello" }), "1");
}

static void several_in_one_batch(fixture *f)
{
    weir_spec  spec = { .type = "a" };
    weir_token token[4] = { { .key = "me", .number = 1 }, { .key = "me", .number = 1 },
                            { .key = "me", .number = 3 }, { .key = "me", .number = 2 } };
    weir_added out[4] = { { 0 } };
    weir_op    op[4], *ops[4];
    for (int i = 0; i < 4; i++) {
        op[i] = (weir_op){ .kind = WEIR_OP_ADD, .now_ms = f->now,
                           .u.add = { &spec, 1, &out[i], &token[i] } };
        CHECK_INT(weir__op_check(&op[i], &f->err), WEIR_OK);
        ops[i] = &op[i];
    }
    CHECK_INT(run_batch(f, ops, 4), WEIR_OK);
    CHECK_INT(op[0].err.code, WEIR_OK);
    CHECK_INT(out[1].id, out[0].id);
    CHECK_INT(out[2].id, out[0].id + 1);
    CHECK_INT(op[3].err.code, WEIR_ESTALE);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
}

static void ten_thousand_are_remembered(fixture *f)
{
    weir_spec  *specs = calloc(WEIR_MAX_ADD, sizeof *specs);
    weir_added *out = calloc(2 * WEIR_MAX_ADD, sizeof *out);
    for (int i = 0; i < WEIR_MAX_ADD; i++)
        specs[i] = (weir_spec){ .type = "a", .delay_ms = i % 3 ? 0 : 500 };
    weir_code first = add_once(f, "me", 1, specs, WEIR_MAX_ADD, out);
    weir_code again = add_once(f, "me", 1, specs, WEIR_MAX_ADD, out + WEIR_MAX_ADD);
    size_t    same = 0;
    for (int i = 0; i < WEIR_MAX_ADD; i++)
        same += out[i].id == out[WEIR_MAX_ADD + i].id && out[i].id &&
                out[i].state == out[WEIR_MAX_ADD + i].state;
    free(specs);
    free(out);
    CHECK_INT(first, WEIR_OK);
    CHECK_INT(again, WEIR_OK);
    CHECK_INT(same, WEIR_MAX_ADD);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), WEIR_MAX_ADD);
}

static void after_a_day_it_is_forgotten(fixture *f)
{
    weir_added out = { 0 };
    CHECK_INT(add_one(f, "me", 5, &out), WEIR_OK);
    CHECK_DUE(f, f->now + WEIR_TOKEN_MS + WEIR_TOKEN_LATE_MS);
    f->now += WEIR_TOKEN_MS - 1;
    CHECK_INT(add_one(f, "me", 5, &out), WEIR_OK);
    CHECK_INT(out.id, 1);
    CHECK_INT(add_one(f, "me", 4, &out), WEIR_ESTALE);
    f->now += 1;
    CHECK_INT(add_one(f, "me", 4, &out), WEIR_OK);
    CHECK_INT(out.id, 2);
    CHECK_INT(add_one(f, "me", 4, &out), WEIR_OK);
    CHECK_INT(out.id, 2);
}

static void old_ones_are_swept(fixture *f)
{
    weir_added out = { 0 };
    char       key[] = "key 0";
    for (; key[4] < '7'; key[4]++)
        CHECK_INT(add_one(f, key, 1, &out), WEIR_OK);
    f->now += WEIR_TOKEN_LATE_MS + 1000;
    CHECK_INT(add_one(f, "younger", 1, &out), WEIR_OK);
    int64_t next_at, late = f->now + WEIR_TOKEN_MS + WEIR_TOKEN_LATE_MS;
    f->now += WEIR_TOKEN_MS - 1000;
    CHECK_INT(tick_some(f, 3, &next_at), 0);
    CHECK(next_at <= f->now);                              /* there are more */
    CHECK_INT(tick_some(f, 3, &next_at), 0);
    CHECK_INT(tick_some(f, 3, &next_at), 0);
    CHECK(next_at > f->now && next_at <= late);
    f->now = late;
    while (next_at <= f->now)
        CHECK_INT(tick_some(f, 3, &next_at), 0);
    CHECK(looks_around(f) || next_at == INT64_MAX);        /* nothing is left of them */
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 8);
}

static void keys_that_cannot_be(fixture *f)
{
    char       key[WEIR_MAX_TOKEN + 2];
    weir_added out = { 0 };
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    CHECK_INT(add_one(f, NULL, 1, &out), WEIR_EINVAL);
    CHECK_INT(add_one(f, "", 1, &out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "token.key: empty");
    CHECK_INT(add_one(f, "\xff", 1, &out), WEIR_EINVAL);
    CHECK_INT(add_one(f, key, 1, &out), WEIR_ELIMIT);
    key[WEIR_MAX_TOKEN] = '\0';
    CHECK_INT(add_one(f, key, 1, &out), WEIR_OK);
    CHECK_INT(add_one(f, "caf\xc3\xa9 \"x\" %s\n", 1, &out), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 2);
}

static void it_is_still_known_after_reopening(fixture *f)
{
    const weir_spec two[] = { { .type = "a" }, { .type = "a", .delay_ms = 9000 } };
    weir_added      first[2], out[2] = { { 0 } };
    CHECK_INT(add_once(f, "me", 3, two, 2, first), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(add_once(f, "me", 3, two, 2, out), WEIR_OK);
    CHECK(out[0].id == first[0].id && out[1].id == first[1].id);
    CHECK_INT(out[1].state, WEIR_STATE_DELAYED);
    CHECK_INT(add_once(f, "me", 2, two, 2, out), WEIR_ESTALE);
    int64_t next_at;
    f->now += WEIR_TOKEN_MS + WEIR_TOKEN_LATE_MS;
    later(f, 0);
    tick_some(f, 10, &next_at);
    CHECK(looks_around(f) || next_at == INT64_MAX);
}

/* Nobody can add under a number that a call without jobs has; and it adds none to one that had. */
static void a_call_without_jobs_has_its_number(fixture *f)
{
    weir_added added;
    CHECK_INT(add_once(f, "me", 4, NULL, 0, NULL), WEIR_OK);
    CHECK_INT(add_one(f, "me", 4, &added), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "token: call 4 was for 0 jobs, not 1");
    CHECK_INT(add_once(f, "me", 4, NULL, 0, NULL), WEIR_OK);
    CHECK_INT(add_one(f, "me", 5, &added), WEIR_OK);
    CHECK_INT(add_once(f, "me", 5, NULL, 0, NULL), WEIR_EINVAL);
    CHECK_INT(add_one(f, "me", 5, &added), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 1);
}

const conformance_case cases_token[] = {
    CASE(repeating_answers_the_same),
    CASE(the_answer_is_that_of_the_first_call),
    CASE(a_higher_number_is_another_call),
    CASE(a_lower_number_is_over),
    CASE(another_number_of_jobs_is_refused),
    CASE(a_call_without_jobs_has_its_number),
    CASE(another_digest_is_refused),
    CASE(with_unique_keys_inside),
    CASE(what_failed_is_not_remembered),
    CASE(a_type_that_is_searched),
    CASE(several_in_one_batch),
    CASE(ten_thousand_are_remembered),
    CASE(after_a_day_it_is_forgotten),
    ORDERED_CASE(old_ones_are_swept),
    CASE(keys_that_cannot_be),
    PERSISTENT_CASE(it_is_still_known_after_reopening),
    { 0 },
};
