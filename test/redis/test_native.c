/* test_native.c - what only the native layout has: where data is kept, what lost callers leave
 * behind, what check finds when somebody meddled with the keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

enum { URL_MAX = 600, SHORT = 1024 };        /* SHORT: REDIS_SHORT_DATA */

typedef struct one {
    rig        *r;
    char        url[URL_MAX];
    weir_queue *q;
    weir_error  err;
} one;

static void open_one(one *t)
{
    *t = (one){ .r = rig_start(NULL) };
    assert_non_null(t->r);
    rig_url(t->r, "redis+unix", "", t->url, sizeof t->url);
    OK(weir_open(&t->q, t->url, NULL, &t->err));
}

static void close_one(one *t)
{
    weir_close(t->q);
    rig_free(t->r);
}

static int64_t number(one *t, const char *command)
{
    redisReply *r = rig_command(t->r, command);
    assert_non_null(r);
    int64_t n = r->integer;
    freeReplyObject(r);
    return n;
}

/* JSON text of that many bytes. */
static char *json_of(size_t n)
{
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    text[n] = '\0';
    return text;
}

static void check_data(one *t, uint64_t id, const char *want, int64_t apart)
{
    weir_job *job = NULL;
    OK(weir_get(t->q, id, &job, &t->err));
    assert_string_equal(job->data, want);
    weir_job_free(job);
    assert_int_equal(number(t, "HLEN {weir:0}:data"), apart);
}

static void long_data_is_kept_apart(void **state)
{
    (void)state;
    one        t_, *t = &t_;
    char      *small = json_of(SHORT), *large = json_of(SHORT + 1);
    weir_added a, b;
    open_one(t);
    OK(weir_add(t->q, &(weir_spec){ .type = "mail", .data = small }, &a, &t->err));
    check_data(t, a.id, small, 0);
    OK(weir_add(t->q, &(weir_spec){ .type = "mail", .data = large, .delay_ms = 60000 }, &b,
                &t->err));
    check_data(t, b.id, large, 1);
    OK(weir_update(t->q, a.id, &(weir_change){ .data = large }, NULL, &t->err));
    check_data(t, a.id, large, 2);
    OK(weir_update(t->q, b.id, &(weir_change){ .data = small }, NULL, &t->err));
    check_data(t, b.id, small, 1);
    OK(weir_promote(t->q, b.id, &t->err));
    check_data(t, b.id, small, 1);

    static const char *const types[] = { "mail", NULL };
    weir_job *job[2];
    size_t    n = 0;
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 2 }, job, &n, &t->err));
    assert_int_equal(n, 2);
    assert_string_equal(job[0]->data, large);
    assert_string_equal(job[1]->data, small);
    for (size_t i = 0; i < n; i++) {
        OK(weir_job_done(job[i], "1", 0, NULL));
        weir_job_free(job[i]);
    }
    check_data(t, a.id, large, 1);
    OK(weir_remove(t->q, a.id, &t->err));
    assert_int_equal(number(t, "HLEN {weir:0}:data"), 0);
    close_one(t);
    free(small);
    free(large);
}

static void lost_callers_are_forgotten(void **state)
{
    (void)state;
    static const char long_ago[] = "\0\0\0\0\0\0\0\7" "\0\0\0\0\0\0\3\350" "x";
    one t_, *t = &t_;
    open_one(t);
    OK(weir_add(t->q, &(weir_spec){ .type = "mail" }, NULL, &t->err));
    for (int i = 0; i < 600; i++)
        assert_true(rig_do(t->r, "HSET {weir:0}:meta lost%d:0 %b", i, long_ago, sizeof long_ago));
    assert_true(number(t, "HLEN {weir:0}:meta") > 600);
    OK(weir_configure(t->q, "mail", &(weir_settings){ .keep_complete = { .count = 5 } }, &t->err));
    UNTIL(number(t, "HLEN {weir:0}:meta") < 100);        /* a tick comes by itself */
    OK(weir_add(t->q, &(weir_spec){ .type = "mail" }, NULL, &t->err));
    close_one(t);
}

static void check_finds_what_was_meddled_with(void **state)
{
    (void)state;
    one          t_, *t = &t_;
    weir_report *report = NULL;
    open_one(t);
    for (int i = 0; i < 3; i++)
        OK(weir_add(t->q, &(weir_spec){ .type = "mail", .unique = i ? NULL : "k" }, NULL, &t->err));
    assert_true(rig_do(t->r, "DEL {weir:0}:inactive"));
    assert_true(rig_do(t->r, "HDEL {weir:0}:jobs %b", "\0\0\0\0\0\0\0\2", (size_t)8));
    assert_true(rig_do(t->r, "DEL {weir:0}:unique"));
    OK(weir_check(t->q, false, &report, &t->err));
    assert_true(report->n >= 4);             /* two places, a key, a block of the wrong size */
    assert_int_equal(report->mended, 0);
    weir_report_free(report);
    OK(weir_check(t->q, true, &report, &t->err));
    assert_int_equal(report->mended, report->n);
    weir_report_free(report);
    OK(weir_check(t->q, false, &report, &t->err));
    assert_int_equal(report->n, 0);
    assert_int_equal(report->jobs, 2);
    weir_report_free(report);
    uint64_t n = 0;
    OK(weir_count(t->q, WEIR_STATE_INACTIVE, "mail", &n, &t->err));
    assert_int_equal(n, 2);
    close_one(t);
}

enum { LOT = 40, TAKEN = 20 };               /* pieces of 16, 16 and 8: redis.md */

/* Add jobs that are alike, and take the first of them. */
static void begin_lot(one *t, weir_job *jobs[TAKEN])
{
    weir_spec specs[LOT];
    size_t    n = 0;
    for (size_t i = 0; i < LOT; i++)
        specs[i] = (weir_spec){ .type = "mail" };
    OK(weir_add_many(t->q, specs, LOT, NULL, NULL, &t->err));
    OK(weir_take(t->q, &(weir_taking){ .remote = true, .types = (const char *[]){ "mail", NULL },
                                           .worker = "w", .n = TAKEN }, jobs, &n, &t->err));
    assert_int_equal(n, TAKEN);
}

static void end_lot(one *t, weir_job *jobs[TAKEN])
{
    for (size_t i = 0; i < TAKEN; i++)
        weir_job_free(jobs[i]);
    close_one(t);
}

/* Somebody removes the piece that begins with this job. */
static void lose_piece(one *t, char first)
{
    const char field[] = { 'p', 0, 0, 0, 0, 0, 0, 0, first };
    assert_true(rig_do(t->r, "HDEL {weir:0}:jobs %b", field, sizeof field));
}

static size_t lines_of_check(one *t, bool mend, uint64_t jobs)
{
    weir_report *report = NULL;
    OK(weir_check(t->q, mend, &report, &t->err));
    size_t n = report->n;
    assert_int_equal(report->mended, mend ? n : 0);
    assert_int_equal(report->jobs, jobs);
    weir_report_free(report);
    return n;
}

static uint64_t counted(one *t, weir_state state)
{
    uint64_t n = 0;
    OK(weir_count(t->q, state, "mail", &n, &t->err));
    return n;
}

/* Of those that wait as one entry some are gone, and of those that were taken. */
static void check_finds_what_was_meddled_with_in_a_lot(void **state)
{
    (void)state;
    one       t_, *t = &t_;
    weir_job *jobs[TAKEN];
    open_one(t);
    begin_lot(t, jobs);
    assert_int_equal(lines_of_check(t, false, LOT), 0);
    lose_piece(t, 17);                                   /* 17 to 20 are held, 21 to 32 wait */
    assert_true(rig_do(t->r, "DEL {weir:0}:granted"));
    assert_true(lines_of_check(t, true, 24) >= 3);       /* a place, a grant, a lease */
    assert_int_equal(lines_of_check(t, false, 24), 0);
    uint64_t waiting = counted(t, WEIR_STATE_INACTIVE), active = counted(t, WEIR_STATE_ACTIVE);
    assert_true(waiting + active == 24 && waiting >= 8);
    end_lot(t, jobs);
}

/* And of those that were completed together. */
static void check_finds_what_was_meddled_with_in_a_completion(void **state)
{
    (void)state;
    one         t_, *t = &t_;
    weir_job   *jobs[TAKEN];
    weir_ending endings[TAKEN];
    weir_ended  ended[TAKEN];
    open_one(t);
    begin_lot(t, jobs);
    for (size_t i = 0; i < TAKEN; i++)
        endings[i] = (weir_ending){ .id = jobs[i]->id, .delivery = 1 };
    OK(weir_finish(t->q, endings, TAKEN, ended, &t->err));
    assert_int_equal(number(t, "ZCARD {weir:0}:complete"), 1);       /* they are one entry */
    assert_int_equal(counted(t, WEIR_STATE_COMPLETE), TAKEN);
    assert_int_equal(lines_of_check(t, false, LOT), 0);
    assert_true(rig_do(t->r, "DEL {weir:0}:complete"));
    assert_true(lines_of_check(t, true, LOT) >= 1);
    assert_int_equal(counted(t, WEIR_STATE_COMPLETE), TAKEN);
    lose_piece(t, 1);
    assert_true(lines_of_check(t, true, LOT - 16) >= 1);
    assert_int_equal(lines_of_check(t, false, LOT - 16), 0);
    assert_int_equal(counted(t, WEIR_STATE_COMPLETE), TAKEN - 16);
    end_lot(t, jobs);
}

/* A piece goes with its last job, in whatever order and way they go; who has failed does not keep
 * it. */
static void pieces_go_with_their_jobs(void **state)
{
    (void)state;
    one         t_, *t = &t_;
    weir_job   *jobs[TAKEN];
    weir_ending failed = { .id = 3, .delivery = 1, .outcome = WEIR_OUTCOME_FAIL, .text = "no" };
    weir_ended  ended;
    open_one(t);
    begin_lot(t, jobs);
    assert_int_equal(number(t, "HLEN {weir:0}:jobs"), 3);
    OK(weir_finish(t->q, &failed, 1, &ended, &t->err));
    assert_int_equal(number(t, "HLEN {weir:0}:jobs"), 5);       /* its own, and what is gone */
    for (uint64_t id = 17; id <= 32; id++)
        OK(weir_remove(t->q, id, &t->err));
    assert_int_equal(number(t, "HLEN {weir:0}:jobs"), 4);
    assert_int_equal(lines_of_check(t, false, LOT - 16), 0);
    for (uint64_t id = LOT; id > 0; id--) {
        if (id <= 16 || id > 32)
            OK(weir_remove(t->q, id, &t->err));
    }
    assert_int_equal(number(t, "HLEN {weir:0}:jobs"), 0);
    assert_int_equal(lines_of_check(t, false, 0), 0);
    end_lot(t, jobs);
}

/* Between the walk over the keys and the look at what came, others may have removed both fields. */
static void check_forgives_a_piece_that_went_meanwhile(void **state)
{
    (void)state;
    one         t_, *t = &t_;
    open_one(t);
    OK(weir_add(t->q, &(weir_spec){ .type = "mail" }, NULL, &t->err));
    redisReply *list = rig_command(t->r, "FUNCTION LIST LIBRARYNAME weir_native_*");
    assert_true(list && list->elements == 1 && list->element[0]->elements > 1);
    const char *name = list->element[0]->element[1]->str;
    for (const char *kind = "pg"; *kind; kind++) {
        const char  field[] = { *kind, 0, 0, 0, 0, 0, 0, 0, 17 };
        redisReply *r = rig_command(t->r, "FCALL %s_rest 1 {weir:0}:meta %s 0123456789abcdef %s "
                                          "{weir:0} 1 0 0 V 2 0 %b", name, "", "", field,
                                    sizeof field);
        assert_true(r && r->elements == 3 && r->element[2]->elements == 1);
        assert_int_equal(r->element[2]->element[0]->integer, 0);
        freeReplyObject(r);
    }
    freeReplyObject(list);
    close_one(t);
}

static int64_t calls_of(one *t, const char *command)
{
    char        head[64];
    redisReply *r = rig_command(t->r, "INFO commandstats");
    assert_non_null(r);
    snprintf(head, sizeof head, "cmdstat_%s:calls=", command);
    const char *at = strstr(r->str, head);
    int64_t     n = at ? atoll(at + strlen(head)) : 0;
    freeReplyObject(r);
    return n;
}

/* Redis does nothing else meanwhile. */
static void check_does_not_read_a_piece_for_each_job(void **state)
{
    (void)state;
    enum { MANY = 640 };
    one       t_, *t = &t_;
    weir_spec specs[MANY];
    open_one(t);
    for (size_t i = 0; i < MANY; i++)
        specs[i] = (weir_spec){ .type = "mail" };
    OK(weir_add_many(t->q, specs, MANY, NULL, NULL, &t->err));
    assert_true(rig_do(t->r, "CONFIG RESETSTAT"));
    assert_int_equal(lines_of_check(t, false, MANY), 0);
    assert_true(calls_of(t, "hmget") < MANY);
    close_one(t);
}

/* What is no piece is told of, stays, and is in nobody's way. */
static void check_tells_of_what_cannot_be_read(void **state)
{
    (void)state;
    one          t_, *t = &t_;
    weir_job    *jobs[TAKEN];
    weir_report *report = NULL;
    const char   far[] = { 'p', 0, 0, 0, 0, 0, 0, 0, 50 };
    open_one(t);
    begin_lot(t, jobs);
    assert_true(rig_do(t->r, "HSET {weir:0}:jobs %b xx", far, sizeof far));
    assert_true(rig_do(t->r, "HSET {weir:0}:jobs what x"));
    for (int mend = 0; mend < 2; mend++) {
        OK(weir_check(t->q, mend, &report, &t->err));
        assert_int_equal(report->n, 2);
        assert_non_null(strstr(report->line[0], "cannot be read"));
        assert_int_equal(report->mended, 0);
        assert_int_equal(report->jobs, LOT);
        weir_report_free(report);
    }
    assert_int_equal(weir_get(t->q, 52, &(weir_job *){ NULL }, &t->err), WEIR_ENOENT);
    end_lot(t, jobs);
}

/* What says of no piece that its jobs are gone does not stay, nor does a piece without jobs. */
static void check_finds_what_is_left_of_a_piece(void **state)
{
    (void)state;
    one       t_, *t = &t_;
    weir_job *jobs[TAKEN];
    open_one(t);
    begin_lot(t, jobs);
    OK(weir_remove(t->q, 38, &t->err));
    lose_piece(t, 33);
    assert_true(lines_of_check(t, true, 32) >= 2);
    assert_int_equal(lines_of_check(t, false, 32), 0);
    assert_int_equal(number(t, "HLEN {weir:0}:jobs"), 2);
    const char gone[] = { 'g', 0, 0, 0, 0, 0, 0, 0, 17 };
    assert_true(rig_do(t->r, "HSET {weir:0}:jobs %b 65535", gone, sizeof gone));
    assert_true(lines_of_check(t, true, 16) >= 2);
    lines_of_check(t, true, 16);                         /* what the piece has left behind */
    assert_int_equal(lines_of_check(t, false, 16), 0);
    assert_int_equal(number(t, "HLEN {weir:0}:jobs"), 1);
    end_lot(t, jobs);
}

/* Calls that are made at the same time share a step, but a span has room for 65,535. */
static void more_at_once_than_a_span_holds(void **state)
{
    (void)state;
    enum { CALLS = 16, EACH = WEIR_MAX_ADD };
    one          t_, *t = &t_;
    weir_spec   *specs = calloc(EACH, sizeof *specs);
    weir_future *futures[CALLS];
    open_one(t);
    for (size_t i = 0; i < EACH; i++)
        specs[i] = (weir_spec){ .type = "mail" };
    for (size_t i = 0; i < CALLS; i++)
        OK(weir_add_many_async(t->q, specs, EACH, NULL, NULL, &futures[i], &t->err));
    for (size_t i = 0; i < CALLS; i++) {
        OK(weir_future_wait(futures[i], -1, &t->err));
        weir_future_free(futures[i]);
    }
    assert_int_equal(counted(t, WEIR_STATE_INACTIVE), CALLS * EACH);
    assert_int_equal(lines_of_check(t, false, CALLS * EACH), 0);
    free(specs);
    close_one(t);
}

static size_t take_of(one *t, const char *type, size_t n, weir_job **jobs)
{
    size_t got = 0;
    weir_taking what = { .types = (const char *[]){ type, NULL }, .n = n, .worker = "w",
                         .lease_ms = 60000, .remote = true };
    OK(weir_take(t->q, &what, jobs, &got, &t->err));
    return got;
}

/* What is missing is not given, and does not make the store busy for ever. */
static void meddling_does_not_stop_the_others(void **state)
{
    (void)state;
    one         t_, *t = &t_;
    weir_job   *jobs[TAKEN], *more[10];
    open_one(t);
    begin_lot(t, jobs);
    lose_piece(t, 17);
    assert_int_equal(take_of(t, "mail", 10, more), 8);
    assert_int_equal(more[0]->id, 33);
    assert_true(rig_do(t->r, "DEL {weir:0}:granted"));       /* nobody knows when the leases end */
    weir_lease   lease = { .id = 3, .delivery = 1, .lease_ms = 60000 };
    weir_renewed renewed;
    OK(weir_renew(t->q, &lease, 1, &renewed, &t->err));
    assert_int_equal(renewed.err.code, WEIR_OK);
    for (size_t i = 0; i < 8; i++)
        weir_job_free(more[i]);
    end_lot(t, jobs);
}

/* With two partitions as with more: wherever a job waits, a take finds it. */
static void a_take_looks_into_every_partition(void **state)
{
    (void)state;
    one       t_, *t = &t_;
    weir_job *job;
    open_one(t);
    weir_close(t->q);
    char url[600];
    OK(weir_open(&t->q, rig_url(t->r, "redis+unix", "prefix=two&partitions=2", url, sizeof url),
                 NULL, &t->err));
    for (int i = 0; i < 20; i++) {
        OK(weir_add(t->q, &(weir_spec){ .type = "mail" }, NULL, &t->err));
        assert_int_equal(take_of(t, "other", 1, &job), 0);    /* it knows no more where to look */
        assert_int_equal(take_of(t, "mail", 1, &job), 1);
        weir_job_free(job);
    }
    close_one(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_data_is_kept_apart),
        cmocka_unit_test(lost_callers_are_forgotten),
        cmocka_unit_test(check_finds_what_was_meddled_with),
        cmocka_unit_test(check_finds_what_was_meddled_with_in_a_lot),
        cmocka_unit_test(check_finds_what_was_meddled_with_in_a_completion),
        cmocka_unit_test(more_at_once_than_a_span_holds),
        cmocka_unit_test(meddling_does_not_stop_the_others),
        cmocka_unit_test(pieces_go_with_their_jobs),
        cmocka_unit_test(check_finds_what_is_left_of_a_piece),
        cmocka_unit_test(check_tells_of_what_cannot_be_read),
        cmocka_unit_test(check_forgives_a_piece_that_went_meanwhile),
        cmocka_unit_test(check_does_not_read_a_piece_for_each_job),
        cmocka_unit_test(a_take_looks_into_every_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
