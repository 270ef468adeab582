/* case_import.c - jobs that come from another store. */
#include "conformance/conformance.h"

#include <string.h>

#include "core/job.h"
#include "core/job_fields.h"
#include "support/same_job.h"

/* A job as it may be elsewhere: each member has a value of its own. */
static weir_job made(fixture *f, uint64_t id, weir_state state)
{
    bool ended = weir__finished(state), done = state == WEIR_STATE_COMPLETE;
    return (weir_job){
        .id = id, .type = "a", .state = state, .priority = -7, .data = "{\"to\":\"ann\"}",
        .data_len = 12, .result = done ? "[\"ok\"]" : NULL, .result_len = done ? 6 : 0,
        .error = done ? NULL : keeps_bytes(f) ? "why \xff" : "why",
        .progress_data = "[3]", .progress_data_len = 3,
        .worker = "far:1:2", .backoff = { WEIR_BACKOFF_EXPONENTIAL, 100, 900, 30 }, .attempts = 1,
        .max_attempts = 4, .delivery = 9, .lost = 2, .max_lost = 8, .progress = done ? 100 : 33,
        .delay_ms = 50, .ttl_ms = 77, .deadline_at = f->now + 99999, .created_at = f->now - 5000,
        .promote_at = f->now + (state == WEIR_STATE_DELAYED ? 300 : -4000),
            .updated_at = f->now - 400,
        .started_at = f->now - 3000, .failed_at = f->now - 2000,
        .finished_at = ended ? f->now - 1000 : 0, .duration_ms = done ? 55 : 0,
        .lease_until = state == WEIR_STATE_ACTIVE ? f->now + 100 : 0,
        .search = true,
        .history = "[ {\"n\":7,\"at\":5,\"event\":\"due\",\"state\":\"inactive\"} ]",
        .history_len = 51,
        .values = "{\"color\":\"red\",\"n\":[1]}", .values_len = 23,
    };
}

/* Does made() give every number but flags a value? */
static void every_number_is_made(fixture *f)
{
#define X(member, name, kind, ...)                                                                \
    bool has_##name = !strcmp(#kind, "FLAG");                                                     \
    for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)                           \
        has_##name = has_##name || made(f, 1, s).member;                                          \
    CHECK(has_##name);
    WEIR_JOB_NUMBERS(X)
#undef X
}

static void jobs_come_in_as_they_are(fixture *f)
{
    every_number_is_made(f);
    for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        weir_job      j = made(f, 10 * (uint64_t)s, s);
        weir_imported out = import_job(f, &j);
        CHECK_INT(out.err.code, WEIR_OK);
        CHECK_INT(out.id, j.id);
        CHECK(!out.existed);
        if (s == WEIR_STATE_ACTIVE) {             /* nobody has it here */
            j.state = WEIR_STATE_INACTIVE;
            j.lease_until = 0;
        }
        CHECK_INT(out.state, j.state);
        check_same_job(get(f, j.id), &j);
    }
    CHECK_EVENTS(f, "enqueue 10, enqueue 30");
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "a"), 2);
    CHECK_INT(count(f, WEIR_STATE_ANY, "a"), 6);
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_INACTIVE }), "10 30");
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_DELAYED }), "20");
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_COMPLETE }), "40");
}

static void all_that_can_be_left_out(fixture *f)
{
    weir_imported out = import_job(f, &(weir_job){ .type = "a" });
    CHECK_INT(out.id, 1);
    CHECK_INT(out.state, WEIR_STATE_INACTIVE);
    weir_job want = { .id = 1, .type = "a", .state = WEIR_STATE_INACTIVE, .data = "{}",
                      .data_len = 2,
                      .max_attempts = 1, .max_lost = WEIR_DEFAULT_MAX_LOST, .created_at = f->now,
                      .promote_at = f->now, .updated_at = f->now };
    check_same_job(get(f, 1), &want);
    CHECK_INT(take(f, "a")->id, 1);
    weir_job keys = { .type = "a", .search_keys = "to", .data = "{\"to\":\"ann\"}",
                      .data_len = 12 };
    import_job(f, &keys);
    CHECK(get(f, 2)->search);
    CHECK_STR(listed(f, &(weir_query){ .search = "ann" }), "2");
}

static void the_log_comes_along(fixture *f)
{
    weir_job        j = made(f, 5, WEIR_STATE_FAILED);
    const char     *eighth = keeps_bytes(f) ? "eighth \xfe" : "eighth";
    const weir_line lines[] = { { .n = 7, .at = f->now - 50, .text = "seventh" },
                                { .n = 8, .at = f->now - 40, .text = eighth },
                                { .n = 9, .at = f->now - 30, .text = "" } };
    weir_incoming   in = { .job = &j, .lines = lines, .n_lines = 3 };
    weir_imported   out;
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_OK);
    log_line(f, 5, "tenth");
    const weir_lines *l = logs(f, 5, 0, 0);
    CHECK_INT(l->n, 4);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(l->line[i].n, lines[i].n);
        CHECK_INT(l->line[i].at, lines[i].at);
        CHECK_STR(l->line[i].text, lines[i].text);
    }
    CHECK_INT(l->line[3].n, 10);
    CHECK_INT(l->line[3].at, f->now);
    CHECK_STR(listed(f, &(weir_query){ .search = "seventh why" }), "5");
    CHECK_INT(remove_job(f, 5), WEIR_OK);
    CHECK_STR(listed(f, &(weir_query){ .search = "seventh" }), "");
    CHECK(!logs(f, 5, 0, 0));
}

static void a_log_as_long_as_it_can_be(fixture *f)
{
    static weir_line lines[WEIR_MAX_LOG];
    weir_job         j = made(f, 5, WEIR_STATE_FAILED);
    for (size_t i = 0; i < WEIR_MAX_LOG; i++)
        lines[i] = (weir_line){ .n = 4000 + i, .at = f->now, .text = i == 77 ? "needle" : "hay" };
    weir_incoming in = { .job = &j, .lines = lines, .n_lines = WEIR_MAX_LOG };
    weir_imported out;
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_OK);
    log_line(f, 5, "last");
    CHECK_INT(logs(f, 5, 0, 1)->line[0].n, 4001);
    CHECK_INT(logs(f, 5, 4000 + WEIR_MAX_LOG - 1, 1)->line[0].n, 4000 + WEIR_MAX_LOG);
    CHECK_STR(listed(f, &(weir_query){ .search = "needle last" }), "5");
}

static void ids_are_kept_and_later_ones_are_higher(fixture *f)
{
    CHECK_INT(add(f, "a"), 1);
    weir_job j = made(f, 50, WEIR_STATE_INACTIVE);
    CHECK_INT(import_job(f, &j).id, 50);
    CHECK_INT(stats(f)->last_id, 50);
    CHECK_INT(add(f, "a"), 51);
    j = made(f, 20, WEIR_STATE_INACTIVE);
    CHECK_INT(import_job(f, &j).id, 20);        /* below: the last one stays */
    CHECK_INT(add(f, "a"), 52);
    CHECK_INT(remove_job(f, 52), WEIR_OK);
    j = made(f, 0, WEIR_STATE_INACTIVE);
    CHECK_INT(import_job(f, &j).id, 53);        /* one without an id gets the next */
    CHECK_STR(listed(f, &(weir_query){ 0 }), "1 20 50 51 53");
}

static void a_new_id_can_be_had(fixture *f)
{
    weir_job      j = made(f, 5, WEIR_STATE_COMPLETE), k = made(f, 0, WEIR_STATE_DELAYED);
    weir_incoming in[] = { { .job = &j, .new_id = true }, { .job = &k }, { .job = &j },
                           { .job = &j, .new_id = true } };
    weir_imported out[4];
    add(f, "b");
    CHECK_INT(import_many(f, in, 4, out), WEIR_OK);
    CHECK_INT(out[0].id, 2);
    CHECK_INT(out[1].id, 3);
    CHECK_INT(out[2].id, 5);
    CHECK_INT(out[3].id, 6);
    j.id = 2;
    check_same_job(get(f, 2), &j);
    CHECK_INT(count(f, WEIR_STATE_COMPLETE, "a"), 3);
}

static void importing_again_changes_nothing(fixture *f)
{
    weir_job j = made(f, 5, WEIR_STATE_INACTIVE), was = j;
    import_job(f, &j);
    const weir_job *job = take(f, "a");
    progress(f, job, 44, NULL);
    events(f);
    j.priority = 99;
    j.state = WEIR_STATE_COMPLETE;
    j.error = NULL;
    j.progress = 100;
    weir_imported out = import_job(f, &j);
    CHECK_INT(out.err.code, WEIR_OK);
    CHECK(out.existed);
    CHECK_INT(out.id, 5);
    CHECK_INT(out.state, WEIR_STATE_ACTIVE);
    CHECK_INT(get(f, 5)->priority, was.priority);
    CHECK_INT(get(f, 5)->progress, 44);
    CHECK_EVENTS(f, "");
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 1);
    CHECK_INT(finish(f, job), WEIR_OK);
}

static void the_id_of_another_job_is_refused(fixture *f)
{
    weir_job j = made(f, 5, WEIR_STATE_INACTIVE), type = j, time = j;
    import_job(f, &j);
    events(f);
    type.type = "b";
    time.created_at++;
    weir_imported out = import_job(f, &type);
    CHECK_INT(out.err.code, WEIR_ESTATE);
    CHECK_STR(out.err.msg, "job 5: this id is another job's here");
    CHECK(!out.existed && out.id_taken);
    CHECK_INT(import_job(f, &time).err.code, WEIR_ESTATE);
    check_same_job(get(f, 5), &j);
    CHECK(!stats_of(f, "b"));                   /* it did not become known */
    CHECK_EVENTS(f, "");
}

static void a_unique_key_has_one_holder(fixture *f)
{
    uint64_t holder = add_spec(f, &(weir_spec){ .type = "a", .unique = "k" });
    weir_job waits = made(f, 50, WEIR_STATE_DELAYED), ended = made(f, 51, WEIR_STATE_FAILED);
    weir_job other = made(f, 52, WEIR_STATE_INACTIVE), nameless = made(f, 0, WEIR_STATE_INACTIVE);
    waits.unique = ended.unique = other.unique = nameless.unique = "k";
    other.type = "b";
    weir_imported out = import_job(f, &waits);
    CHECK_INT(out.err.code, WEIR_ESTATE);
    CHECK_STR(out.err.msg, "job 50: job 1 has its unique key now");
    CHECK(!out.id_taken);
    CHECK(!get(f, 50));
    CHECK_INT(stats(f)->last_id, 1);
    CHECK_STR(import_job(f, &nameless).err.msg, "job 1 has its unique key now");
    CHECK_INT(import_job(f, &ended).err.code, WEIR_OK);     /* it does not wait */
    CHECK_INT(import_job(f, &other).err.code, WEIR_OK);     /* another type */
    CHECK_INT(finish(f, take(f, "a")), WEIR_OK);
    CHECK_STATE(f, holder, WEIR_STATE_COMPLETE);
    CHECK_INT(import_job(f, &waits).err.code, WEIR_OK);
    weir_added added = { 0 };
    CHECK_INT(try_add(f, &(weir_spec){ .type = "a", .unique = "k" }, &added), WEIR_OK);
    CHECK(added.existed && added.id == 50);
}

static void each_job_has_its_own_answer(fixture *f)
{
    weir_job one = made(f, 5, WEIR_STATE_INACTIVE), two = made(f, 6, WEIR_STATE_INACTIVE);
    weir_job three = made(f, 5, WEIR_STATE_INACTIVE), four = made(f, 7, WEIR_STATE_INACTIVE);
    one.unique = two.unique = "k";              /* two comes too late for it */
    three.created_at += 5;
    weir_incoming in[] = { { .job = &one }, { .job = &two }, { .job = &three }, { .job = &four },
                           { .job = &four } };
    weir_imported out[5];
    CHECK_INT(import_many(f, in, 5, out), WEIR_OK);
    CHECK_INT(out[0].err.code, WEIR_OK);
    CHECK_INT(out[1].err.code, WEIR_ESTATE);
    CHECK_INT(out[2].err.code, WEIR_ESTATE);
    CHECK_INT(out[3].err.code, WEIR_OK);
    CHECK(!out[3].existed && out[4].existed);
    CHECK_STR(listed(f, &(weir_query){ 0 }), "5 7");
    CHECK_EVENTS(f, "enqueue 5, enqueue 7");
    CHECK_INT(import_many(f, NULL, 0, NULL), WEIR_OK);
}

static void they_are_taken_in_order(fixture *f)
{
    for (int i = 0; i < 3; i++)
        add(f, "a");                            /* 1, 2, 3 */
    finish(f, take(f, "a"));
    remove_job(f, 2);
    weir_job first = made(f, 9, WEIR_STATE_INACTIVE), low = made(f, 2, WEIR_STATE_INACTIVE);
    low.priority = 0;
    first.deadline_at = low.deadline_at = 0;
    import_job(f, &low);
    import_job(f, &first);
    CHECK_INT(take(f, "a")->id, 9);             /* priority -7 */
    CHECK_INT(take(f, "a")->id, 2);
    CHECK_INT(take(f, "a")->id, 3);
    CHECK(!take(f, "a"));
}

static void a_new_worker_has_a_new_delivery(fixture *f)
{
    weir_job j = made(f, 5, WEIR_STATE_ACTIVE);
    import_job(f, &j);
    CHECK_INT(finish(f, &j), WEIR_ESTALE);      /* the worker it had elsewhere */
    const weir_job *job = take(f, "a");
    CHECK_INT(job->delivery, j.delivery + 1);
    CHECK_INT(job->started_at, f->now);
    CHECK_INT(job->progress, 0);
    CHECK_INT(fail_job(f, job, "no"), WEIR_OK);
    CHECK_INT(get(f, 5)->attempts, 2);
    CHECK_INT(get(f, 5)->promote_at, f->now + weir__backoff_ms(&j, 2));
}

static void times_are_kept_and_told(fixture *f)
{
    weir_job late = made(f, 5, WEIR_STATE_DELAYED), past = made(f, 6, WEIR_STATE_DELAYED);
    weir_job over = made(f, 7, WEIR_STATE_INACTIVE);
    past.promote_at = f->now - 10;
    over.deadline_at = f->now - 10;
    later(f, 0);
    import_job(f, &late);
    CHECK_DUE(f, late.promote_at);
    import_job(f, &past);
    import_job(f, &over);
    CHECK_DUE(f, f->now);
    CHECK(!take(f, "a"));                       /* its deadline has passed */
    events(f);
    later(f, 0);
    CHECK_EVENTS(f, "promotion 6, enqueue 6, failed 7");
    CHECK_STATE(f, 5, WEIR_STATE_DELAYED);
    later(f, 300);
    CHECK_STATE(f, 5, WEIR_STATE_INACTIVE);
}

static void retention_holds_for_them(fixture *f)
{
    configure(f, "a", &(weir_settings){ .keep_complete = { .count = 2 },
                                        .keep_failed = { .age_ms = 1500 } });
    later(f, 0);
    for (uint64_t i = 0; i < 4; i++) {
        weir_job j = made(f, 10 + i, WEIR_STATE_COMPLETE);
        j.finished_at -= (int64_t)i;
        CHECK_INT(import_job(f, &j).err.code, WEIR_OK);
    }
    CHECK_INT(count(f, WEIR_STATE_COMPLETE, "a"), 4);
    CHECK_DUE(f, f->now);
    later(f, 0);
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_COMPLETE }), "11 10");
    weir_job old = made(f, 20, WEIR_STATE_FAILED);
    import_job(f, &old);
    CHECK_DUE(f, f->now + 500);
    later(f, 499);
    CHECK_STATE(f, 20, WEIR_STATE_FAILED);
    later(f, 1);
    CHECK(!get(f, 20));
}

static void type_counters_stay(fixture *f)
{
    weir_job j = made(f, 5, WEIR_STATE_COMPLETE);
    import_job(f, &j);
    const weir_type_stats *t = stats_of(f, "a");
    CHECK_INT(t->completed, 0);
    CHECK_INT(t->failed, 0);
    CHECK_INT(t->work_ms, 0);
    CHECK_INT(t->last_taken_at, 0);
}

static void settings_of_the_type_do_not_index_them(fixture *f)
{
    configure(f, "a", &(weir_settings){ .search = true });
    weir_job j = made(f, 5, WEIR_STATE_INACTIVE);
    j.search = false;
    import_job(f, &j);
    CHECK(!get(f, 5)->search);
    CHECK_STR(listed(f, &(weir_query){ .search = "ann" }), "");
}

static void a_paused_type_stays_paused(fixture *f)
{
    weir_job j = made(f, 5, WEIR_STATE_INACTIVE);
    set_paused(f, "a", true);
    import_job(f, &j);
    CHECK(!take(f, "a"));
    set_paused(f, "a", false);
    CHECK_INT(take(f, "a")->id, 5);
}

/* ---- what is refused ---- */

static void check_refused(fixture *f, const weir_job *j, weir_code code, const char *why)
{
    weir_imported out;
    CHECK_INT(import_many(f, &(weir_incoming){ .job = j }, 1, &out), code);
    CHECK_STR(f->err.msg, why);
}

#define REFUSED(state, change, code, why)                                                     \
    do {                                                                                      \
        weir_job j = made(f, 5, state);                                                       \
        change;                                                                               \
        check_refused(f, &j, code, why);                                                      \
    } while (0)

static void what_cannot_be_is_refused(fixture *f)
{
    REFUSED(WEIR_STATE_INACTIVE, j.type = NULL, WEIR_EINVAL, "type: missing");
    REFUSED(WEIR_STATE_INACTIVE, j.type = "*", WEIR_EINVAL,
            "type: \"*\" stands for all types, a job needs one");
    REFUSED(WEIR_STATE_INACTIVE, j.data = "{", WEIR_EINVAL,
            "data: not JSON at byte 1: name in quotes expected");
    REFUSED(WEIR_STATE_COMPLETE, j.result_len = 1, WEIR_EINVAL,
            "result: not JSON at byte 1: the text ends too early");
    REFUSED(WEIR_STATE_INACTIVE, j.progress_data_len = 2, WEIR_EINVAL,
            "progress_data: not JSON at byte 2: the text ends too early");
    REFUSED(WEIR_STATE_INACTIVE, j.history_len = 2, WEIR_EINVAL,
            "history: not JSON at byte 2: the text ends too early");
    REFUSED(WEIR_STATE_INACTIVE, (j.history = "[{\"n\":1}]", j.history_len = 9), WEIR_EINVAL,
            "history[0].at: missing");
    REFUSED(WEIR_STATE_INACTIVE, j.id = WEIR_MAX_ID + 1, WEIR_ELIMIT,
            "id: 281474976710657, at most 281474976710656 (WEIR_MAX_ID)");
    REFUSED(WEIR_STATE_INACTIVE, j.state = WEIR_STATE_COUNT, WEIR_EINVAL,
            "state: unknown number 7, must be 0 to 6");
    REFUSED(WEIR_STATE_INACTIVE, j.delivery = UINT32_MAX, WEIR_ELIMIT,
            "delivery: 4294967295, at most 2147483647");
    REFUSED(WEIR_STATE_INACTIVE, j.attempts = -1, WEIR_EINVAL,
            "attempts: -1, must not be negative");
    REFUSED(WEIR_STATE_INACTIVE, j.attempts = 4, WEIR_EINVAL,
            "attempts: 4 of 4, but it is inactive");
    REFUSED(WEIR_STATE_FAILED, j.attempts = 5, WEIR_EINVAL, "attempts: 5 of 4");
    REFUSED(WEIR_STATE_INACTIVE, j.max_attempts = WEIR_MAX_ATTEMPTS + 1, WEIR_ELIMIT,
            "max_attempts: 1000001, at most 1000000 (WEIR_MAX_ATTEMPTS)");
    REFUSED(WEIR_STATE_INACTIVE, j.lost = 9, WEIR_EINVAL, "lost: 9 of 8");
    REFUSED(WEIR_STATE_INACTIVE, j.progress = 101, WEIR_EINVAL,
            "progress: 101 percent, must be 0 to 100");
    REFUSED(WEIR_STATE_COMPLETE, j.progress = 99, WEIR_EINVAL,
            "progress: 99 percent, but it is complete");
    REFUSED(WEIR_STATE_COMPLETE, j.error = "x", WEIR_EINVAL, "error: set, but it is complete");
    REFUSED(WEIR_STATE_FAILED, j.error = NULL, WEIR_EINVAL, "error: missing, and it is failed");
    REFUSED(WEIR_STATE_DELAYED, j.promote_at = 0, WEIR_EINVAL,
            "promote_at: missing, and it is delayed");
    REFUSED(WEIR_STATE_DELAYED, j.finished_at = 1, WEIR_EINVAL,
            "finished_at: set, but it is delayed");
    REFUSED(WEIR_STATE_CANCELLED, (j.result = "1", j.result_len = 1), WEIR_EINVAL,
            "result: set, but it is cancelled");
    REFUSED(WEIR_STATE_FAILED, j.duration_ms = 1, WEIR_EINVAL,
            "duration_ms: set, but it is failed");
    REFUSED(WEIR_STATE_INACTIVE, j.ttl_ms = -1, WEIR_EINVAL, "ttl_ms: -1, must not be negative");
    REFUSED(WEIR_STATE_INACTIVE, j.created_at = -1, WEIR_EINVAL,
            "created_at: -1, must not be negative");
    REFUSED(WEIR_STATE_INACTIVE, j.deadline_at = INT64_C(253402300800000), WEIR_ELIMIT,
            "deadline_at: 253402300800000, which is after the year 9999");
    REFUSED(WEIR_STATE_INACTIVE, j.backoff.jitter_pct = 101, WEIR_EINVAL,
            "backoff.jitter_pct: 101, must be 0 to 100");
    REFUSED(WEIR_STATE_INACTIVE, j.unique = "", WEIR_EINVAL, "unique: empty");
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
}

static void logs_that_cannot_be_are_refused(fixture *f)
{
    weir_job      j = made(f, 5, WEIR_STATE_INACTIVE);
    weir_line     lines[] = { { .n = 1, .at = 5, .text = "one" },
                              { .n = 3, .at = 6, .text = "three" } };
    weir_incoming in = { .job = &j, .lines = lines, .n_lines = 2 };
    weir_imported out;
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "log[1].n: 3, must be one more than that of the line before");
    lines[0].n = 0;
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "log[0].n: 0, must be at least 1");
    lines[0] = (weir_line){ .n = 2, .at = 5 };
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "log[0].text: missing");
    lines[0] = (weir_line){ .n = 2, .at = -5, .text = "x" };
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "log[0].at: -5, must not be negative");
    in.n_lines = WEIR_MAX_LOG + 1;
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_ELIMIT);
    in.lines = NULL;
    CHECK_INT(import_many(f, &in, 1, &out), WEIR_EINVAL);
}

static void one_that_is_refused_stops_all(fixture *f)
{
    weir_job      one = made(f, 5, WEIR_STATE_INACTIVE), two = made(f, 6, WEIR_STATE_INACTIVE);
    weir_incoming in[] = { { .job = &one }, { .job = &two } };
    weir_imported out[2];
    two.lost = -1;
    CHECK_INT(import_many(f, in, 2, out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "jobs[1].lost: -1, must not be negative");
    in[1].job = NULL;
    CHECK_INT(import_many(f, in, 2, out), WEIR_EINVAL);
    CHECK_STR(f->err.msg, "jobs[1].job: missing");
    CHECK_INT(import_many(f, in, WEIR_MAX_IMPORT + 1, out), WEIR_ELIMIT);
    CHECK_INT(import_many(f, NULL, 2, out), WEIR_EINVAL);
    CHECK(!get(f, 5));
}

/* ---- and it stays ---- */

static void imported_jobs_are_still_there(fixture *f)
{
    const weir_line line = { .n = 3, .at = f->now, .text = "needle" };
    weir_job        done = made(f, 40, WEIR_STATE_COMPLETE), waits = made(f, 7, WEIR_STATE_DELAYED);
    weir_incoming   in[] = { { .job = &done, .lines = &line, .n_lines = 1 }, { .job = &waits } };
    weir_imported   out[2];
    add(f, "a");
    CHECK_INT(import_many(f, in, 2, out), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    check_same_job(get(f, 40), &done);
    check_same_job(get(f, 7), &waits);
    CHECK_INT(logs(f, 40, 0, 0)->line[0].n, 3);
    CHECK_INT(count(f, WEIR_STATE_ANY, "a"), 3);
    CHECK_INT(count(f, WEIR_STATE_DELAYED, "a"), 1);
    CHECK_STR(listed(f, &(weir_query){ .search = "needle" }), "40");
    CHECK_INT(remove_job(f, 40), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(add(f, "a"), 41);
}

const conformance_case cases_import[] = {
    CASE(jobs_come_in_as_they_are),
    CASE(all_that_can_be_left_out),
    CASE(the_log_comes_along),
    CASE(a_log_as_long_as_it_can_be),
    ORDERED_CASE(ids_are_kept_and_later_ones_are_higher),
    ORDERED_CASE(a_new_id_can_be_had),
    CASE(importing_again_changes_nothing),
    CASE(the_id_of_another_job_is_refused),
    ORDERED_CASE(a_unique_key_has_one_holder),
    ORDERED_CASE(each_job_has_its_own_answer),
    ORDERED_CASE(they_are_taken_in_order),
    CASE(a_new_worker_has_a_new_delivery),
    ORDERED_CASE(times_are_kept_and_told),
    ORDERED_CASE(retention_holds_for_them),
    CASE(type_counters_stay),
    CASE(settings_of_the_type_do_not_index_them),
    CASE(a_paused_type_stays_paused),
    CASE(what_cannot_be_is_refused),
    CASE(logs_that_cannot_be_are_refused),
    CASE(one_that_is_refused_stops_all),
    PERSISTENT_CASE(imported_jobs_are_still_there),
    { 0 },
};
