/* test_store.c - what every store is spared: bad URLs, and operations over the limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/quiet_env.h"

/* ---- URLs ---- */

static const weir_env env = QUIET_ENV("test");

#define KNOWN                                                                                     \
    "known are sqlite:FILE, redis://HOST, rediss://HOST, redis+kue://HOST, http://HOST:7340 and "  \
    "mem:"

static void bad_urls_say_what_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *url, *msg;
    } cases[] = {
        { NULL, "store URL: missing; " KNOWN },
        { "", "store URL: empty; " KNOWN },
        { "jobs.db", "store URL \"jobs.db\" has no scheme; for a file write sqlite:jobs.db" },
        { "/a:b", "store URL \"/a:b\" has no scheme; for a file write sqlite:/a:b" },
        { "redid://a:secret@x", "store URL: unknown scheme \"redid\"; " KNOWN },
        { ":x", "store URL: unknown scheme \"\"; " KNOWN },
        { "MEM:", "store URL: unknown scheme \"MEM\"; " KNOWN },
        { "mem:?durability=none", "store URL: durability=none, must be disk or os" },
        { "mem:?durability=", "store URL: durability=, must be disk or os" },
        { "mem:?durability", "store URL: option \"durability\" has no value "
                             "(NAME=VALUE)" },
        { "mem:?durability=os&x=1", "store URL: unknown option \"x\"; "
                                    "mem: accepts durability=disk|os" },
        { "mem:?&", "store URL: option \"\" has no value (NAME=VALUE)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_store *s = (weir_store *)&env;
        weir_error  err;
        assert_int_equal(weir__store_open(&s, cases[i].url, &env, &err), WEIR_EINVAL);
        assert_null(s);
        assert_string_equal(err.msg, cases[i].msg);
    }
}

static void good_urls_open(void **state)
{
    (void)state;
    static const char *const urls[] = { "mem:", "mem:?", "mem:?durability=os",
                                        "mem:?durability=disk&durability=os" };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        weir_store *s;
        weir_error  err;
        if (weir__store_open(&s, urls[i], &env, &err))
            fail_msg("%s: %s", urls[i], err.msg);
        assert_string_equal(s->ops->name, "mem");
        s->ops->close(s);
    }
}

/* A store that is open for reading may be checked, not mended. */
static void a_reader_changes_nothing(void **state)
{
    (void)state;
    weir_store *s;
    weir_env    e = env;
    weir_op     add = { .kind = WEIR_OP_ADD }, check = { .kind = WEIR_OP_CHECK };
    weir_op     mend = { .kind = WEIR_OP_CHECK, .u.check.mend = true };
    weir_op    *ops[] = { &add, &check, &mend };
    e.read_only = true;
    assert_int_equal(weir__store_open(&s, "mem:", &e, NULL), WEIR_OK);
    assert_int_equal(s->ops->run(s, ops, 3, NULL), WEIR_OK);
    assert_int_equal(add.err.code, WEIR_EREADONLY);
    assert_int_equal(check.err.code, WEIR_OK);
    assert_int_equal(mend.err.code, WEIR_EREADONLY);
    assert_null(mend.u.check.report);
    weir__op_free(&check);
    assert_null(check.u.check.report);
    s->ops->close(s);
}

static void options_are_checked_too(void **state)
{
    (void)state;
    weir_store *s;
    weir_error  err;
    weir_env    e = env;
    e.durability = WEIR_DURABILITY_NONE;
    assert_int_equal(weir__store_open(&s, "mem:", &e, &err), WEIR_EINVAL);
    assert_string_equal(err.msg, "durability: none, must be disk or os");
    e = env;
    e.wait_owner_ms = -1;
    assert_int_equal(weir__store_open(&s, "mem:", &e, &err), WEIR_EINVAL);
}

static void every_operation_has_a_name(void **state)
{
    (void)state;
    for (int k = 0; k < WEIR_OP_COUNT; k++)
        assert_true(strlen(weir__op_rows[k]->name) > 0);
    assert_string_equal(weir__op_rows[WEIR_OP_FINISH]->name, "finish");
    assert_true(weir__op_writes(&(weir_op){ .kind = WEIR_OP_TAKE }));
    assert_false(weir__op_writes(&(weir_op){ .kind = WEIR_OP_LIST }));
    assert_false(weir__op_writes(&(weir_op){ .kind = WEIR_OP_CHECK }));
    assert_true(weir__op_writes(&(weir_op){ .kind = WEIR_OP_CHECK, .u.check.mend = true }));
}

/* ---- operations ---- */

static void check(weir_op *op, weir_code code, const char *msg)
{
    weir_error err = { 0 };
    weir_code  rc = weir__op_check(op, &err);
    assert_string_equal(err.msg, msg);
    assert_int_equal(rc, code);
}

static void adds(void **state)
{
    (void)state;
    static weir_added out[WEIR_MAX_ADD + 1];
    weir_spec        *specs = calloc(WEIR_MAX_ADD + 1, sizeof *specs);
    char             *big = malloc(WEIR_MAX_DATA);
    assert_true(specs && big);
    for (size_t i = 0; i <= WEIR_MAX_ADD; i++)
        specs[i].type = "m";
    weir_op op = { .kind = WEIR_OP_ADD,
                   .u.add = { .specs = specs, .n = WEIR_MAX_ADD, .out = out } };
    check(&op, WEIR_OK, "");
    op.u.add.n++;
    check(&op, WEIR_ELIMIT, "jobs: 10001, at most 10000 (WEIR_MAX_ADD)");
    op.u.add.n = 2;
    specs[1].type = "";
    check(&op, WEIR_EINVAL, "jobs[1].type: empty");
    specs[0].type = "";
    op.u.add.n = 1;
    check(&op, WEIR_EINVAL, "type: empty");
    op.u.add.specs = NULL;
    check(&op, WEIR_EINVAL, "jobs: missing");

    /* 64 of 1 MiB fit, one byte more does not. */
    memset(big, ' ', WEIR_MAX_DATA);
    big[0] = '1';
    for (size_t i = 0; i < 65; i++)
        specs[i] = (weir_spec){ .type = "m", .data = big, .data_len = WEIR_MAX_DATA };
    specs[64].data_len = 1;
    op.u.add = (weir_op_add){ .specs = specs, .n = 64, .out = out };
    check(&op, WEIR_OK, "");
    op.u.add.n = 65;
    check(&op, WEIR_ELIMIT,
          "jobs[64].data: more than 67108864 bytes together (WEIR_MAX_ADD_BYTES)");
    free(big);
    free(specs);
}

static void takes(void **state)
{
    (void)state;
    const char *types[WEIR_MAX_TAKE_TYPES + 1];
    weir_job   *jobs[1];
    for (size_t i = 0; i <= WEIR_MAX_TAKE_TYPES; i++)
        types[i] = "m";
    const weir_op good = { .kind = WEIR_OP_TAKE,
                           .u.take = { .types = types, .n_types = WEIR_MAX_TAKE_TYPES,
                                       .n = WEIR_MAX_PAGE, .worker = "w", .jobs = jobs } };
    weir_op op = good;
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.take.lease_ms, WEIR_DEFAULT_LEASE_MS);
    op = good;
    op.u.take.lease_ms = 5;
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.take.lease_ms, 5);
    op.u.take.lease_ms = -5;
    check(&op, WEIR_EINVAL, "lease_ms: -5, must not be negative");
    op = good;
    op.u.take.n = 0;
    check(&op, WEIR_EINVAL, "n: 0, must be at least 1");
    op.u.take.n = WEIR_MAX_PAGE + 1;
    check(&op, WEIR_ELIMIT, "n: 1001, at most 1000 (WEIR_MAX_PAGE)");
    op = good;
    op.u.take.n_types = 0;
    check(&op, WEIR_EINVAL, "types: none given");
    op.u.take.n_types = WEIR_MAX_TAKE_TYPES + 1;
    check(&op, WEIR_ELIMIT, "types: 101, at most 100 (WEIR_MAX_TAKE_TYPES)");
    op = good;
    op.u.take.worker = NULL;
    check(&op, WEIR_EINVAL, "worker: missing");
    op = good;
    types[1] = "*";
    check(&op, WEIR_EINVAL, "types[1]: \"*\" cannot be taken, name the types");
    types[1] = "";
    check(&op, WEIR_EINVAL, "types[1]: empty");

    op = (weir_op){ .kind = WEIR_OP_FINISH, .u.finish.next = good.u.take };
    check(&op, WEIR_EINVAL, "types[1]: empty");
    types[1] = "m";
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.finish.next.lease_ms, WEIR_DEFAULT_LEASE_MS);
}

static void finishes(void **state)
{
    (void)state;
    weir_op op = { .kind = WEIR_OP_FINISH, .u.finish = { .text = "[1]" } };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.finish.len, 3);
    op.u.finish = (weir_op_finish){ .len = 7 };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.finish.len, 0);
    op.u.finish.text = "[1";
    check(&op, WEIR_EINVAL, "result: not JSON at byte 2: the text ends too early");
    op.u.finish = (weir_op_finish){ .outcome = WEIR_OUTCOME_FAIL };
    check(&op, WEIR_OK, "");
    assert_string_equal(op.u.finish.text, "the job failed");
    assert_int_equal(op.u.finish.len, 14);
    op.u.finish = (weir_op_finish){ .outcome = WEIR_OUTCOME_FAIL, .text = "a\xff\0b", .len = 4 };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.finish.len, 2);
    op.u.finish.outcome = WEIR_OUTCOME_RETURN;
    check(&op, WEIR_OK, "");
    assert_null(op.u.finish.text);
    op.u.finish.delay_ms = -1;
    check(&op, WEIR_EINVAL, "delay_ms: -1 ms, must be 0 to 3162240000000 (WEIR_MAX_MS)");
    op.u.finish.delay_ms = 1;
    op.u.finish.outcome = WEIR_OUTCOME_DONE;
    check(&op, WEIR_EINVAL, "delay_ms: only a job that is returned can have one");
    op.u.finish.outcome = (weir_outcome)7;
    check(&op, WEIR_EINVAL, "outcome: unknown number 7, must be 0 to 4");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char *text = malloc(WEIR_MAX_TEXT + 3);
    assert_non_null(text);
    memset(text, 'x', WEIR_MAX_TEXT + 2);
    memcpy(text + WEIR_MAX_TEXT - 1, "\xc3\xa9", 2);
    text[WEIR_MAX_TEXT + 2] = '\0';
    weir_op op = { .kind = WEIR_OP_LOG, .u.log = { .text = text } };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.log.len, WEIR_MAX_TEXT - 1);
    op = (weir_op){ .kind = WEIR_OP_FINISH,
                    .u.finish = { .outcome = WEIR_OUTCOME_FAIL, .text = text } };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.finish.len, WEIR_MAX_TEXT - 1);
    op = (weir_op){ .kind = WEIR_OP_LOG, .u.log = { .text = "" } };
    check(&op, WEIR_OK, "");
    op.u.log.text = NULL;
    check(&op, WEIR_EINVAL, "log: no line given");
    free(text);
}

static void the_others(void **state)
{
    (void)state;
    weir_renewal items[2] = { { .lease_ms = 0 }, { .lease_ms = 7 } };
    weir_op    op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = items, .n = 2 } };
    check(&op, WEIR_OK, "");
    assert_int_equal(items[0].lease_ms, WEIR_DEFAULT_LEASE_MS);
    assert_int_equal(items[1].lease_ms, 7);
    items[1].lease_ms = WEIR_MAX_MS + 1;
    check(&op, WEIR_ELIMIT, "leases[1].lease_ms: 3162240000001 ms, at most 3162240000000 "
          "(WEIR_MAX_MS)");

    op = (weir_op){ .kind = WEIR_OP_PROGRESS, .u.progress = { .percent = 100, .data = "{}" } };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.progress.len, 2);
    op.u.progress.data = "x";
    op.u.progress.len = 1;
    check(&op, WEIR_EINVAL, "progress data: not JSON at byte 0: value expected");
    op.u.progress.percent = 101;
    check(&op, WEIR_EINVAL, "progress: 101 percent, must be 0 to 100");

    op = (weir_op){ .kind = WEIR_OP_UPDATE, .u.update.change = { .data = "[1]" } };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.update.change.data_len, 3);
    op.u.update.change = (weir_change){ .set_delay = true, .delay_ms = -1 };
    check(&op, WEIR_EINVAL, "delay_ms: -1, must not be negative");
    op.u.update.change = (weir_change){ .state = WEIR_STATE_COUNT };
    check(&op, WEIR_EINVAL, "state: unknown number 7, must be 0 to 6");

    weir_settings settings = { .keep_failed.age_ms = -2 };
    op = (weir_op){ .kind = WEIR_OP_CONFIGURE, .u.configure = { .type = "*" } };
    check(&op, WEIR_OK, "");
    op.u.configure.settings = &settings;
    check(&op, WEIR_EINVAL, "keep_failed.age_ms: -2, must not be negative");
    settings = (weir_settings){ .keep_complete.count = -1 };
    check(&op, WEIR_EINVAL, "keep_complete.count: -1, must not be negative");
    op.u.configure.type = NULL;
    check(&op, WEIR_EINVAL, "type: missing");
}

static void lists(void **state)
{
    (void)state;
    char    long_query[1026] = "";
    weir_op op = { .kind = WEIR_OP_LIST };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.list.query.limit, 100);
    op.u.list.query.limit = 1001;
    check(&op, WEIR_ELIMIT, "limit: 1001, at most 1000 (WEIR_MAX_PAGE)");
    op.u.list.query = (weir_query){ .state = (weir_state)-1 };
    check(&op, WEIR_EINVAL, "state: unknown number -1, must be 0 to 6");
    op.u.list.query = (weir_query){ .type = "" };
    check(&op, WEIR_EINVAL, "type: empty");
    memset(long_query, 'x', sizeof long_query - 1);
    op.u.list.query = (weir_query){ .search = long_query };
    check(&op, WEIR_ELIMIT, "search: 1025 bytes, at most 1024");
    op.u.list.query = (weir_query){ .search = "\xff" };
    check(&op, WEIR_EINVAL, "search: not valid UTF-8");
    op.u.list.query = (weir_query){ .state = WEIR_STATE_INACTIVE, .by_priority = true,
                                    .priority = 7 };
    check(&op, WEIR_OK, "");                        /* a walk begins just before the priority */
    assert_int_equal(op.u.list.query.after.rank, 6);
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.list.query.after.rank, 6);
    op.u.list.query = (weir_query){ .state = WEIR_STATE_FAILED, .by_priority = true,
                                    .priority = 7 };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.list.query.after.id, 0);

    op = (weir_op){ .kind = WEIR_OP_LOGS };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.logs.limit, WEIR_MAX_PAGE);
    op = (weir_op){ .kind = WEIR_OP_TICK };
    check(&op, WEIR_OK, "");
    assert_int_equal(op.u.tick.limit, WEIR_MAX_PAGE);
    static const weir_op_kind plain[] = { WEIR_OP_REMOVE, WEIR_OP_GET, WEIR_OP_STATS,
                                          WEIR_OP_INFO, WEIR_OP_CHECK };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        op = (weir_op){ .kind = plain[i] };
        check(&op, WEIR_OK, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_urls_say_what_is_known),
        cmocka_unit_test(good_urls_open),
        cmocka_unit_test(a_reader_changes_nothing),
        cmocka_unit_test(options_are_checked_too),
        cmocka_unit_test(every_operation_has_a_name),
        cmocka_unit_test(adds),
        cmocka_unit_test(takes),
        cmocka_unit_test(finishes),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(the_others),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
