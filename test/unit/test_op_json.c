/* test_op_json.c - operations and their answers as JSON, there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event_json.h"
#include "core/job.h"
#include "core/results.h"
#include "op/batch.h"
#include "op/row.h"

/* ---- there and back ---- */

#define CALLER "0123456789abcdef0123456789abcdef"

static char *ask(const weir_op *op)
{
    weir_buf b = { 0 };
    weir__batch_begin(&b, CALLER, 7, "run1");
    weir__batch_add(&b, op);
    weir__batch_end(&b);
    return weir__buf_steal(&b, NULL);
}

static char *answer(const weir_op *op)
{
    weir_buf  b = { 0 };
    weir_batch_head head = { "run1", 42 };
    weir__batch_answer_begin(&b, &head);
    weir__batch_answer(&b, op);
    weir__batch_answer_end(&b);
    return weir__buf_steal(&b, NULL);
}

/* What was asked for can be read, and is the same. Read again by `check`, if there is one. */
static void there(const weir_op *op, void (*check)(const weir_op *op))
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_batch  batch;
    char       *text = ask(op);
    if (weir__batch_read(&in, text, strlen(text), &batch))
        fail_msg("%s: %s", text, in.err.msg);
    assert_string_equal(batch.caller, CALLER);
    assert_string_equal(batch.run, "run1");
    assert_int_equal(batch.number, 7);
    assert_int_equal(batch.n, 1);
    assert_int_equal(batch.op[0].kind, op->kind);
    weir_error err = { 0 };
    if (weir__op_check(&batch.op[0], &err))
        fail_msg("%s: %s", text, err.msg);
    char *again = ask(&batch.op[0]);
    assert_string_equal(text, again);
    if (check)
        check(&batch.op[0]);
    free(text);
    free(again);
    weir__arena_free(&arena);
}

/* The answer of `from` arrives in `to`, which asked for the same. */
static void back(const weir_op *from, weir_op *to)
{
    weir_error err = { 0 };
    weir_batch_head  head;
    char      *text = answer(from);
    if (weir__batch_read_answers(text, strlen(text), &head, &to, 1, &err))
        fail_msg("%s: %s", text, err.msg);
    assert_string_equal(head.run, "run1");
    assert_int_equal(head.event, 42);
    if (!from->err.code && to->err.code)
        fail_msg("%s: %s", text, to->err.msg);
    char *again = answer(to);
    assert_string_equal(text, again);
    free(text);
    free(again);
}

/* ---- each kind ---- */

static const char *const two_types[] = { "mail", "caf\xc3\xa9 \"x\"", NULL };

static weir_job full_job(void)
{
    return (weir_job){
        .id = WEIR_MAX_ID, .type = "mail", .state = WEIR_STATE_ACTIVE, .priority = -15,
        .data = "{\n \"to\" : 1e400 }", .data_len = 17, .result = "[1]", .result_len = 3,
        .error = "why \"so\"\n", .progress_data = "null", .progress_data_len = 4, .unique = "k",
        .worker = "h:1:1", .search_keys = "to", .backoff = { WEIR_BACKOFF_FIXED, 10, 20, 30 },
        .attempts = 1, .max_attempts = 5, .delivery = INT32_MAX, .lost = 1, .max_lost = 9,
        .progress = 50, .delay_ms = 5, .ttl_ms = 6, .deadline_at = 7, .created_at = 8,
        .promote_at = 9, .updated_at = 10, .started_at = 11, .failed_at = 12, .finished_at = 13,
        .lease_until = 15, .duration_ms = 14, .remove_on_complete = true, .search = true,
        .history = "[ {\"n\":1,\"at\":5,\"event\":\"due\",\"state\":\"inactive\"} ]",
        .history_len = 51, .values = "{\"a\":\n1}", .values_len = 8 };
}

static void check_add(const weir_op *op)
{
    const weir_spec *s = op->u.add.specs;
    assert_int_equal(op->u.add.n, 2);
    assert_string_equal(s[0].type, "mail");
    assert_int_equal(s[0].data_len, 11);
    assert_memory_equal(s[0].data, "{\"a\":\n 1.0}", 11);
    assert_int_equal(s[0].backoff.kind, WEIR_BACKOFF_EXPONENTIAL);
    assert_int_equal(s[0].backoff.max_ms, 3);
    assert_true(s[0].remove_on_complete && s[0].search && !s[1].search);
    assert_int_equal(s[0].values_len, 7);
    assert_memory_equal(s[0].values, "{\"v\":2}", 7);
    assert_null(s[1].data);
    assert_null(s[1].values);
}

static void adds(void **state)
{
    (void)state;
    weir_spec  specs[] = {
        { .type = "mail", .data = "{\"a\":\n 1.0}", .priority = -10, .attempts = 3, .delay_ms = 4,
          .backoff = { WEIR_BACKOFF_EXPONENTIAL, 2, 3, 4 }, .ttl_ms = 5, .deadline_at = 6,
          .unique = "caf\xc3\xa9", .max_lost = 7, .remove_on_complete = true, .search = true,
          .search_keys = "a", .values = "{\"v\":2}" },
        { .type = "x", .run_at = 1800000000000 },
    };
    weir_added out[] = { { .id = 1, .state = WEIR_STATE_INACTIVE,
                           .durability = WEIR_DURABILITY_OS },
                         { .id = 2, .state = WEIR_STATE_ACTIVE, .existed = true,
                           .durability = WEIR_DURABILITY_OS } }, got[2];
    weir_op op = { .kind = WEIR_OP_ADD, .u.add = { specs, 2, out, NULL } };
    weir_op to = { .kind = WEIR_OP_ADD, .u.add = { specs, 2, got, NULL } };
    there(&op, check_add);
    op.u.add.token = &(weir_token){ .key = "me", .number = UINT64_MAX,
                                    .digest = UINT64_MAX - 1 };
    there(&op, check_add);
    back(&op, &to);
    assert_int_equal(got[1].id, 2);
    assert_true(got[1].existed);
    assert_int_equal(got[0].durability, WEIR_DURABILITY_OS);
}

static void takes(void **state)
{
    (void)state;
    weir_job  one = full_job(), *jobs[] = { &one }, *got[3];
    weir_op   op = { .kind = WEIR_OP_TAKE, .u.take = { two_types, 2, 3, 500, "w", jobs, 1 } };
    weir_op   to = { .kind = WEIR_OP_TAKE, .u.take = { two_types, 2, 3, 500, "w", got, 0 } };
    there(&op, NULL);
    back(&op, &to);
    assert_int_equal(to.u.take.n_jobs, 1);
    assert_int_equal(got[0]->data_len, 17);
    assert_memory_equal(got[0]->data, "{\n \"to\" : 1e400 }", 18);
    assert_string_equal(got[0]->error, "why \"so\"\n");
    weir_job_free(got[0]);
}

static void finishes(void **state)
{
    (void)state;
    weir_job one = full_job(), *jobs[] = { &one }, *got[2];
    weir_op  op = { .kind = WEIR_OP_FINISH,
                    .u.finish = { .id = 1, .delivery = 2, .text = "{}", .len = 2,
                                  .next = { two_types, 1, 2, 30000, "w", jobs, 1 },
                                  .state = WEIR_STATE_COMPLETE } };
    weir_op  to = op;
    there(&op, NULL);
    to.u.finish.next.jobs = got;
    back(&op, &to);
    assert_int_equal(to.u.finish.state, WEIR_STATE_COMPLETE);
    assert_int_equal(to.u.finish.next.n_jobs, 1);
    assert_false(to.u.finish.next.suspect_waits);
    weir_job_free(got[0]);
    op.u.finish.next.busy = op.u.finish.next.suspect_waits = true;
    there(&op, NULL);
    back(&op, &to);
    assert_true(to.u.finish.next.suspect_waits);
    weir_job_free(got[0]);
    there(&(weir_op){ .kind = WEIR_OP_FINISH, .u.finish = { .id = 1 } }, NULL);
    there(&(weir_op){ .kind = WEIR_OP_FINISH,
                      .u.finish = { .id = 1, .outcome = WEIR_OUTCOME_FAIL, .text = "x\ny",
                                    .len = 3 } }, NULL);
    there(&(weir_op){ .kind = WEIR_OP_FINISH,
                      .u.finish = { .id = 1, .outcome = WEIR_OUTCOME_RETURN } }, NULL);
    there(&(weir_op){ .kind = WEIR_OP_FINISH,
                      .u.finish = { .id = 1, .outcome = WEIR_OUTCOME_LOST } }, NULL);
    weir_op gone = { .kind = WEIR_OP_FINISH, .u.finish = { .id = 1, .state = WEIR_STATE_ANY } };
    to = gone;
    to.u.finish.state = WEIR_STATE_FAILED;
    back(&gone, &to);
    assert_int_equal(to.u.finish.state, WEIR_STATE_ANY);
}

static void renewals(void **state)
{
    (void)state;
    weir_renewal from[] = { { 1, 2, WEIR_OK, 30 }, { 3, 4, WEIR_ESTALE, 50 } };
    weir_renewal got[] = { { 1, 2, WEIR_ESTALE, 30 }, { 3, 4, WEIR_OK, 50 } };
    weir_op    op = { .kind = WEIR_OP_RENEW, .u.renew = { from, 2 } };
    weir_op    to = { .kind = WEIR_OP_RENEW, .u.renew = { got, 2 } };
    there(&op, NULL);
    back(&op, &to);
    assert_int_equal(got[1].code, WEIR_ESTALE);
}

static void what_has_no_answer(void **state)
{
    (void)state;
    weir_op ops[] = {
        { .kind = WEIR_OP_PROGRESS, .u.progress = { 1, 2, 100, "[]", 2 } },
        { .kind = WEIR_OP_PROGRESS, .u.progress = { 1, 2, 0, NULL, 0 } },
        { .kind = WEIR_OP_LOG, .u.log = { 1, 0, "a line", 6 } },
        { .kind = WEIR_OP_LOG, .u.log = { 1, 9, "a\tline", 6 } },
        { .kind = WEIR_OP_REMOVE, .u.remove = { UINT64_MAX } },
        { .kind = WEIR_OP_CONFIGURE, .u.configure = { "*", true, false, NULL } },
        { .kind = WEIR_OP_CONFIGURE, .u.configure = { "a", false, false,
              &(weir_settings){ .keep_complete = { 1, 2 }, .keep_failed = { 3, 4 },
                                .search = true } } },
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        weir_op to = ops[i];
        there(&ops[i], NULL);
        back(&ops[i], &to);
    }
}

static void changes(void **state)
{
    (void)state;
    weir_op op = { .kind = WEIR_OP_UPDATE, .u.update = {
        .id = 1, .from = WEIR_BIT(WEIR_STATE_FAILED) | WEIR_BIT(WEIR_STATE_COMPLETE),
        .change = { .set_priority = true, .set_delay = true, .delay_ms = 0, .data = "1",
                    .data_len = 1, .state = WEIR_STATE_DELAYED },
        .old_state = WEIR_STATE_FAILED, .new_state = WEIR_STATE_DELAYED } };
    weir_op to = { .kind = WEIR_OP_UPDATE };
    there(&op, NULL);
    back(&op, &to);
    assert_int_equal(to.u.update.old_state, WEIR_STATE_FAILED);
    there(&(weir_op){ .kind = WEIR_OP_UPDATE, .u.update = { .id = 1, .change = { .run_at = 5 } } },
          NULL);
    weir_op tick = { .kind = WEIR_OP_TICK, .u.tick = { 10, 3, INT64_MAX } }, ticked = tick;
    there(&tick, NULL);
    ticked.u.tick.changed = 0;
    back(&tick, &ticked);
    assert_int_equal(ticked.u.tick.changed, 3);
}

static void imports(void **state)
{
    (void)state;
    weir_job full = full_job(), plain = { .type = "x", .state = WEIR_STATE_INACTIVE, .data = "{}",
                                          .data_len = 2, .max_attempts = 1, .max_lost = 3 };
    full.id = 5;
    full.state = WEIR_STATE_FAILED;
    full.delivery = 3;
    full.created_at = full.promote_at = full.updated_at = full.started_at = full.failed_at =
        full.finished_at = 1700000000000;
    full.result = NULL;
    full.result_len = 0;
    full.duration_ms = 0;
    full.deadline_at = 1800000000000;
    weir_line     lines[] = { { .n = 3, .at = 5, .text = "three" },
                              { .n = 4, .at = 6, .text = "four" } };
    weir_incoming jobs[] = { { .job = &full, .lines = lines, .n_lines = 2 },
                             { .job = &plain, .new_id = true } };
    weir_imported out[] = { { .id = 5, .state = WEIR_STATE_FAILED, .existed = true },
                            { .id = 6, .id_taken = true, .err = { WEIR_ESTATE, "no" } } }, got[2];
    weir_op op = { .kind = WEIR_OP_IMPORT, .u.import = { jobs, 2, out } };
    weir_op to = { .kind = WEIR_OP_IMPORT, .u.import = { jobs, 2, got } };
    there(&op, NULL);
    back(&op, &to);
    assert_int_equal(got[1].err.code, WEIR_ESTATE);
    assert_string_equal(got[1].err.msg, "no");
}

static void looks(void **state)
{
    (void)state;
    weir_job  one = full_job(), *list[] = { &one };
    weir_page page = { list, 1, true, { -5, 9 } };
    weir_line line = { .n = 1, .at = 2, .text = "x" };
    weir_op   ops[] = {
        { .kind = WEIR_OP_GET, .u.get = { 1, &one } },
        { .kind = WEIR_OP_LIST,
          .u.list = { { .state = WEIR_STATE_FAILED, .type = "a", .search = "x*",
                                              .descending = true, .after = { -1, 2 }, .limit = 10 },
                                            &page } },
        { .kind = WEIR_OP_LIST, .u.list = { { .by_priority = true, .limit = 1 }, &page } },
        { .kind = WEIR_OP_LIST, .u.list = { { .by_priority = true, .priority = INT32_MIN,
                                              .limit = 1 }, &page } },
        { .kind = WEIR_OP_LIST, .u.list = { { .ids_only = true, .limit = 1000 }, &page } },
        { .kind = WEIR_OP_LOGS, .u.logs = { 1, 2, 3, &(weir_lines){ &line, 1 } } },
        { .kind = WEIR_OP_CHECK, .u.check = { true, &(weir_report){ (char *[]){ "bad" }, 1, 1,
                                                                    7 } } },
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        weir_op to = ops[i];
        there(&ops[i], NULL);
        back(&ops[i], &to);
        weir__op_free(&to);
    }
}

static void statistics(void **state)
{
    (void)state;
    weir_op          op = { .kind = WEIR_OP_STATS }, to = op;
    weir_stats      *s = op.u.stats.stats = weir__stats_create();
    weir_type_stats *t = weir__stats_add(s, "mail");
    t->paused = true;
    t->count[WEIR_STATE_ANY] = t->count[WEIR_STATE_FAILED] = 3;
    t->completed = 4;
    t->work_ms = 5;
    t->settings.keep_failed.count = 6;
    weir__stats_sum(s);
    s->all.settings.search = true;
    s->last_id = 8;
    there(&op, NULL);
    back(&op, &to);
    assert_int_equal(to.u.stats.stats->all.count[WEIR_STATE_FAILED], 3);
    assert_string_equal(to.u.stats.stats->all.type, "*");
    weir__op_free(&op);
    weir__op_free(&to);
}

static void infos(void **state)
{
    (void)state;
    weir_info info = { .store = "sqlite", .place = "/tmp/jobs \"x\".db", .engine = "SQLite 3",
                       .weir = "0.2.0", .durability = WEIR_DURABILITY_OS, .owner_pid = 4711,
                       .owner = "weir work mail", .peers = 3, .used_bytes = 7000000000,
                       .limit_bytes = 8000000000 };
    weir_op   op = { .kind = WEIR_OP_INFO, .u.info = { &info } }, to = op;
    there(&op, NULL);
    back(&op, &to);
    assert_memory_equal(to.u.info.info, &info, sizeof info);
    weir__op_free(&to);
}

static void trends(void **state)
{
    (void)state;
    weir_trend_row  rows[] = {
        { .type = "", .record = "added=1 w0=2", .step = WEIR_TREND_HOUR, .slot = 7 },
        { .type = "caf\xc3\xa9 \"x\"", .record = "", .slot = INT64_MAX / 60000 },
    };
    weir_trend_rows some = { .n = 2, .row = rows };
    there(&(weir_op){ .kind = WEIR_OP_TREND_PUT, .u.trend_put = { rows, 2 } }, NULL);
    there(&(weir_op){ .kind = WEIR_OP_TREND_PUT, .u.trend_put = { rows, 0 } }, NULL);
    there(&(weir_op){ .kind = WEIR_OP_TREND_GET, .u.trend_get = { .from = 3, .n = 10 } }, NULL);
    weir_op op = { .kind = WEIR_OP_TREND_GET,
                   .u.trend_get = { "", WEIR_TREND_HOUR, 0, WEIR_MAX_TREND_SLOTS, &some } };
    weir_op to = { .kind = WEIR_OP_TREND_GET };
    there(&op, NULL);
    back(&op, &to);
    assert_int_equal(to.u.trend_get.rows->n, 2);
    weir__op_free(&to);
}

static void errors_arrive(void **state)
{
    (void)state;
    for (int k = 0; k < WEIR_OP_COUNT; k++) {
        weir_op op = { .kind = (weir_op_kind)k, .err = { WEIR_ESTALE, "job 1: \"over\"", "id" } };
        weir_op to = { .kind = (weir_op_kind)k };
        back(&op, &to);
        assert_int_equal(to.err.code, WEIR_ESTALE);
        assert_string_equal(to.err.msg, "job 1: \"over\"");
        assert_string_equal(to.err.field, "id");
    }
    weir_error e;
    const char *text = "{\"error\":{\"code\":\"forbidden\",\"message\":\"no\",\"field\":\"x\"}}";
    assert_true(weir__batch_error(text, strlen(text), &e));
    assert_int_equal(e.code, WEIR_OK);
    assert_string_equal(e.msg, "no");
    assert_false(weir__batch_error("<html>", 6, &e));
}

/* ---- what is not right ---- */

static void refused(const char *text, const char *why)
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_batch  batch;
    assert_int_not_equal(weir__batch_read(&in, text, strlen(text), &batch), WEIR_OK);
    assert_string_equal(in.err.msg, why);
    weir__arena_free(&arena);
}

/* An error names its member once. */
static void members_are_named_once(void **state)
{
    (void)state;
    static const char text[] = "{\"ops\":[{\"op\":\"trend_get\",\"step\":\"2m\",\"from\":1,"
                               "\"n\":1}]}";
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_batch  batch;
    assert_int_equal(weir__batch_read(&in, text, strlen(text), &batch), WEIR_EINVAL);
    assert_string_equal(in.err.field, "ops[0].step");
    assert_string_equal(in.err.msg, "ops[0].step: unknown step \"2m\", must be 1m or 1h");
    weir__arena_free(&arena);
}

static void wrong_batches_are_refused(void **state)
{
    (void)state;
    refused("", "not JSON at byte 0: the text ends too early");
    refused("[]", "[] is not an object");
    refused("{}", "ops: missing");
    refused("{\"ops\":[1]}", "ops[0]: 1 is not an object");
    refused("{\"ops\":[{}]}", "ops[0].op: missing");
    refused("{\"ops\":[{\"op\":\"fly\"}]}", "ops[0].op: \"fly\" is not an operation");
    refused("{\"ops\":[{\"op\":\"get\",\"id\":1},{\"op\":\"get\"}]}", "ops[1].id: missing");
    refused("{\"ops\":[{\"op\":\"get\",\"id\":-1}]}", "ops[0].id: -1 is not a whole number");
    refused("{\"ops\":[{\"op\":\"add\",\"jobs\":[{\"type\":7}]}]}",
            "ops[0].jobs[0].type: 7 is not a text");
    refused("{\"ops\":[],\"number\":1}", "caller: missing, but the batch has a number");
    refused("{\"ops\":[],\"caller\":\"x\"}", "caller: empty");
    refused("{\"ops\":[{\"op\":\"finish\",\"id\":1,\"delivery\":1,\"error\":\"x\","
            "\"return\":true}]}",
            "ops[0]: only one of result, error, return and lost can be given");
}

static void wrong_answers_are_errors(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"run\":\"r\",\"answers\":[]}",
        "{\"run\":\"r\",\"answers\":[7]}",
        "{\"run\":\"r\",\"answers\":[{\"jobs\":7}]}",
        "{\"run\":\"r\",\"answers\":[{\"jobs\":[{\"id\":1}]}]}",
        ("{\"run\":\"r\",\"answers\":[{\"jobs\":[{\"type\":\"a\",\"data\":1,\"state\":\"active\"},"
         "{\"type\":\"a\",\"data\":1,\"state\":\"active\"}]}]}"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        weir_job *got[1];
        weir_op   op = { .kind = WEIR_OP_TAKE, .u.take = { .n = 1, .jobs = got } }, *ops = &op;
        weir_batch_head head;
        size_t len = strlen(texts[i]);
        assert_int_equal(weir__batch_read_answers(texts[i], len, &head, &ops, 1, NULL), 0);
        assert_int_equal(op.err.code, WEIR_EIO);
        assert_int_equal(op.u.take.n_jobs, 0);
    }
    weir_batch_head head;
    assert_int_equal(weir__batch_read_answers("nope", 4, &head, NULL, 0, NULL), WEIR_EIO);
    assert_int_equal(weir__batch_read_answers("{\"answers\":[]}", 14, &head, NULL, 0, NULL),
                     WEIR_EIO);
}

/* It says more than this version knows: in the whole, in an answer, in a job, in lists. */
static void what_a_later_server_adds_is_passed_over(void **state)
{
    (void)state;
    static const char text[] =
        "{\"later\":{\"x\":[1,{\"y\":2}]},\"run\":\"r\",\"answers\":[{\"later\":[[]],\"jobs\":"
        "[{\"later\":\"}]\",\"type\":\"mail\",\"id\":7,\"data\":1,\"state\":\"active\","
        "\"more\":{}}]}],\"behind\":null}";
    weir_job       *got[1];
    weir_op         op = { .kind = WEIR_OP_TAKE, .u.take = { .n = 1, .jobs = got } }, *ops = &op;
    weir_batch_head head;
    weir_error      err = { 0 };
    if (weir__batch_read_answers(text, strlen(text), &head, &ops, 1, &err) || op.err.code)
        fail_msg("%s%s", err.msg, op.err.msg);
    assert_int_equal(op.u.take.n_jobs, 1);
    assert_int_equal(got[0]->id, 7);
    assert_string_equal(got[0]->type, "mail");
    weir_job_free(got[0]);
}

/* ---- events ---- */

static void events_arrive(void **state)
{
    (void)state;
    const weir_event events[] = {
        { .kind = WEIR_EVENT_START, .state = WEIR_STATE_ACTIVE, .id = UINT64_MAX, .type = "a\"b",
          .at = 5, .attempts = 1, .progress = 2, .delivery = 3, .text = "w", .text_len = 1 },
        { .kind = WEIR_EVENT_COMPLETE, .id = 1, .type = "a", .text = "{\"x\":1}", .text_len = 7 },
        { .kind = WEIR_EVENT_PROGRESS, .state = WEIR_STATE_ACTIVE, .id = 1, .type = "a",
          .text = "7", .text_len = 1 },
        { .kind = WEIR_EVENT_PAUSE, .type = "a" },
        { .kind = WEIR_EVENT_ERROR, .text = "trouble", .text_len = 7, .missed = 4 },
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        weir_arena  arena = { 0 };
        weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
        weir_buf    text = { 0 }, again = { 0 };
        weir_event  got;
        weir__event_json(&text, &events[i]);
        assert_true(weir__event_read(&in, text.data, text.len, &got));
        weir__event_json(&again, &got);
        assert_string_equal(text.data, again.data);
        assert_int_equal(got.text_len, events[i].text_len);
        weir__buf_fini(&text);
        weir__buf_fini(&again);
        weir__arena_free(&arena);
    }
}

/* ---- rows ---- */

static bool has_a_type(const weir_field *f)
{
    for (; f && f->name; f++)
        if (!strcmp(f->name, "type") || has_a_type(f->fields))
            return true;
    return false;
}

/* A new operation with types in its answer says how it is cut to those that a caller sees. */
static void answers_with_types_are_cut(void **state)
{
    (void)state;
    for (int kind = 0; kind < WEIR_OP_COUNT; kind++) {
        const weir_op_row *row = weir__op_rows[kind];
        bool               cut = row->cut != weir__op_no_cut;
        if (cut != (row->scope == WEIR_SCOPE_ANSWER && has_a_type(row->answer)))
            fail_msg("%s %s its answer", row->name, cut ? "need not cut" : "does not cut");
    }
}

/* Only reads have steps, and all of their functions. */
static void reads_have_steps(void **state)
{
    (void)state;
    for (int kind = 0; kind < WEIR_OP_COUNT; kind++) {
        weir_op           op = { .kind = (weir_op_kind)kind };
        const weir_steps *s = weir__op_row(&op)->steps;
        if (s == weir__op_no_steps)
            continue;
        assert_false(weir__op_writes(&op));
        assert_non_null(s->limit(&op));
        assert_true(s->create && s->gather && s->give);
    }
}

static void jobs_with_an_answer_each_are_named(void **state)
{
    (void)state;
    for (int kind = 0; kind < WEIR_OP_COUNT; kind++) {
        const weir_op_row *row = weir__op_rows[kind];
        assert_true(!row->each || row->job != weir__op_no_job);
    }
}

static bool sees_mail(const void *caller, const char *type)
{
    return !strcmp(caller, "me") && !strcmp(type, "mail");
}

static void statistics_are_cut(void **state)
{
    (void)state;
    weir_op op = { .kind = WEIR_OP_STATS, .u.stats.stats = weir__stats_create() };
    assert_non_null(op.u.stats.stats);
    weir__stats_add(op.u.stats.stats, "mail")->completed = 2;
    weir__stats_add(op.u.stats.stats, "sms")->completed = 5;
    weir__stats_sum(op.u.stats.stats);
    assert_true(weir__op_row(&op)->cut(&op, sees_mail, "me"));
    assert_int_equal(op.u.stats.stats->n, 1);
    assert_string_equal(op.u.stats.stats->type[0].type, "mail");
    assert_int_equal(op.u.stats.stats->all.completed, 2);
    weir__op_free(&op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds), cmocka_unit_test(takes), cmocka_unit_test(finishes),
        cmocka_unit_test(renewals), cmocka_unit_test(what_has_no_answer),
        cmocka_unit_test(changes), cmocka_unit_test(imports), cmocka_unit_test(looks),
        cmocka_unit_test(statistics), cmocka_unit_test(infos), cmocka_unit_test(trends),
        cmocka_unit_test(answers_with_types_are_cut), cmocka_unit_test(reads_have_steps),
        cmocka_unit_test(jobs_with_an_answer_each_are_named),
        cmocka_unit_test(statistics_are_cut), cmocka_unit_test(errors_arrive),
        cmocka_unit_test(members_are_named_once),
        cmocka_unit_test(wrong_batches_are_refused), cmocka_unit_test(wrong_answers_are_errors),
        cmocka_unit_test(what_a_later_server_adds_is_passed_over),
        cmocka_unit_test(events_arrive),
    };
    return cmocka_run_group_tests_name("op_json", tests, NULL, NULL);
}
