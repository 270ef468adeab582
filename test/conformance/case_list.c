/* case_list.c - lists: their order, pages in both directions, and pages of jobs that move. */
#include "conformance/conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error_mask.h"

/* All pages of a query, `limit` at a time, as "1 2 3"; checks that none but the last is short. */
static void check_pages(fixture *f, weir_query q, size_t limit, const char *want)
{
    char   all[4000] = "";
    size_t len = 0;
    q.limit = limit;
    for (;;) {
        const weir_page *page = list(f, &q);
        assert_non_null(page);
        CHECK(page->n <= limit);
        CHECK(!page->more || page->n == limit);
        for (size_t i = 0; i < page->n; i++)
            len += (size_t)snprintf(all + len, sizeof all - len, "%s%" PRIu64, len ? " " : "",
                                    page->job[i]->id);
        if (!page->more)
            break;
        q.after = page->next;
    }
    CHECK_STR(all, want);
}

static void check_all_pages(fixture *f, weir_query q, const char *want, const char *backwards)
{
    for (size_t limit = 1; limit <= 4; limit++) {
        q.descending = false;
        check_pages(f, q, limit, want);
        q.descending = true;
        check_pages(f, q, limit, backwards);
    }
}

static void an_empty_list(fixture *f)
{
    const weir_page *page = list(f, &(weir_query){ 0 });
    CHECK_INT(page->n, 0);
    CHECK(!page->more);
    add(f, "a");
    CHECK_STR(listed(f, &(weir_query){ .type = "b" }), "");
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_FAILED }), "");
}

static void all_jobs_by_id(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "b", .priority = 5 });
    add(f, "a");
    add_spec(f, &(weir_spec){ .type = "c", .delay_ms = 10 });
    add(f, "b");
    finish(f, take(f, "a"));
    check_all_pages(f, (weir_query){ 0 }, "1 2 3 4", "4 3 2 1");
    check_all_pages(f, (weir_query){ .type = "b" }, "1 4", "4 1");
}

static void waiting_jobs_as_they_will_run(fixture *f)
{
    const int32_t priority[] = { 0, WEIR_PRIORITY_LOW, WEIR_PRIORITY_CRITICAL, 0,
                                 WEIR_PRIORITY_HIGH, WEIR_PRIORITY_LOW, INT32_MIN };
    for (size_t i = 0; i < 7; i++)
        add_spec(f, &(weir_spec){ .type = i % 2 ? "odd" : "even", .priority = priority[i] });
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_INACTIVE }, "7 3 5 1 4 2 6",
                    "6 2 4 1 5 3 7");
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_INACTIVE, .type = "odd" }, "4 2 6",
                    "6 2 4");
}

static void delayed_jobs_by_their_time(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 300 });
    add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 100 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 200 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_DELAYED }, "2 4 3 1", "1 3 4 2");
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_DELAYED, .type = "a" }, "4 3 1", "1 3 4");
}

static void active_jobs_by_their_start(fixture *f)
{
    for (int i = 0; i < 4; i++)
        add_spec(f, &(weir_spec){ .type = "a", .priority = -i });
    for (int i = 0; i < 4; i++) {
        take(f, "a");
        f->now += i % 2;
    }
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_ACTIVE }, "3 4 1 2", "2 1 4 3");
}

static void finished_jobs_by_their_end(fixture *f)
{
    const weir_job *job[4];
    for (int i = 0; i < 4; i++)
        add(f, i % 2 ? "a" : "b");
    take_some(f, (const char *[]){ "a", "b", NULL }, 4, job);
    for (int i = 3; i >= 0; i--) {
        finish(f, job[i]);
        f->now += 10;
    }
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_COMPLETE }, "4 3 2 1", "1 2 3 4");
    check_all_pages(f, (weir_query){ .state = WEIR_STATE_COMPLETE, .type = "a" }, "4 2", "2 4");
}

static void a_whole_job_is_listed(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .data = "[1]", .attempts = 3, .unique = "u" });
    fail_job(f, take(f, "a"), "why");
    const weir_job *j = list(f, &(weir_query){ .state = WEIR_STATE_INACTIVE })->job[0];
    CHECK_STR(j->type, "a");
    CHECK_STR(j->data, "[1]");
    CHECK_STR(j->error, "why");
    CHECK_STR(j->unique, "u");
    CHECK_INT(j->attempts, 1);
    CHECK_INT(j->delivery, 1);
}

static void ids_alone(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .priority = 7 });
    add(f, "a");
    const weir_page *page = list(f,
                                 &(weir_query){ .state = WEIR_STATE_INACTIVE, .ids_only = true });
    CHECK_STR(ids_of(f, page), "2 1");
    CHECK(!page->job[1]->type && !page->job[1]->data);
    CHECK_INT(page->job[1]->priority, 0);
    CHECK_INT(page->job[1]->state, WEIR_STATE_ANY);
}

static void a_page_goes_on_though_its_last_job_is_gone(fixture *f)
{
    for (int i = 0; i < 6; i++)
        add(f, i % 2 ? "a" : "b");
    weir_query q = { .limit = 2 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "1 2");
    remove_job(f, 2);
    remove_job(f, 3);
    q.after = page->next;
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "4 5");
    q.after = page->next;
    CHECK_STR(listed(f, &q), "6");
}

static void pages_neither_skip_nor_repeat_while_jobs_move(fixture *f)
{
    for (int i = 0; i < 6; i++)
        add_spec(f, &(weir_spec){ .type = "a", .priority = i });
    weir_query q = { .state = WEIR_STATE_INACTIVE, .limit = 2 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "1 2");
    CHECK_INT(take(f, "a")->id, 1);
    CHECK_INT(take(f, "a")->id, 2);                              /* the page's last one has moved */
    add_spec(f, &(weir_spec){ .type = "a", .priority = -9 });    /* and one came in before it */
    q.after = page->next;
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "3 4");
    q.after = page->next;
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "5 6");
    CHECK(!page->more);
}

static void backwards_too(fixture *f)
{
    for (int i = 0; i < 5; i++)
        add_spec(f, &(weir_spec){ .type = "a", .priority = -i });
    weir_query q = { .state = WEIR_STATE_INACTIVE, .limit = 2, .descending = true };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "1 2");
    remove_job(f, 2);
    remove_job(f, 3);
    q.after = page->next;
    CHECK_STR(listed(f, &q), "4 5");
}

static void more_is_exact(fixture *f)
{
    for (int i = 0; i < 4; i++)
        add(f, "a");
    CHECK(list(f, &(weir_query){ .limit = 3 })->more);
    CHECK(!list(f, &(weir_query){ .limit = 4 })->more);
    CHECK(!list(f, &(weir_query){ .limit = 5 })->more);
    CHECK(!list(f, &(weir_query){ .limit = 4, .state = WEIR_STATE_INACTIVE })->more);
    CHECK(list(f, &(weir_query){ .limit = 3, .state = WEIR_STATE_INACTIVE })->more);
}

static void the_usual_page_has_a_hundred(fixture *f)
{
    weir_spec  specs[150] = { 0 };
    weir_added out[150];
    for (size_t i = 0; i < 150; i++)
        specs[i].type = "a";
    CHECK_INT(add_many(f, specs, 150, out), WEIR_OK);
    const weir_page *page = list(f, &(weir_query){ 0 });
    CHECK_INT(page->n, 100);
    CHECK(page->more);
    CHECK(!list(f, &(weir_query){ .limit = WEIR_MAX_PAGE + 1 }));
    CHECK_INT(f->err.code, WEIR_ELIMIT);
}

/* ---- by priority ---- */

static weir_query of_priority(weir_state state, const char *type, int32_t priority)
{
    return (weir_query){ .state = state, .type = type, .by_priority = true, .priority = priority };
}

/* 1 to 24: of two types, of priorities -10, 0, 10 and 7 in turn. */
static void add_by_turns(fixture *f, int64_t delay_ms)
{
    static const int32_t priority[] = { WEIR_PRIORITY_HIGH, 0, WEIR_PRIORITY_LOW, 7 };
    for (int i = 0; i < 24; i++)
        add_spec(f, &(weir_spec){ .type = i % 3 ? "a" : "b", .priority = priority[i % 4],
                                  .delay_ms = delay_ms, .data = "[\"word\"]", .search = true });
}

static void waiting_jobs_of_a_priority(fixture *f)
{
    add_by_turns(f, 0);
    add_spec(f, &(weir_spec){ .type = "a", .priority = INT32_MIN });
    add_spec(f, &(weir_spec){ .type = "a", .priority = INT32_MAX });
    check_all_pages(f, of_priority(WEIR_STATE_INACTIVE, NULL, 0), "2 6 10 14 18 22",
                    "22 18 14 10 6 2");
    check_all_pages(f, of_priority(WEIR_STATE_INACTIVE, "b", 0), "10 22", "22 10");
    check_all_pages(f, of_priority(WEIR_STATE_INACTIVE, NULL, 7), "4 8 12 16 20 24",
                    "24 20 16 12 8 4");
    check_all_pages(f, of_priority(WEIR_STATE_INACTIVE, NULL, INT32_MIN), "25", "25");
    check_all_pages(f, of_priority(WEIR_STATE_INACTIVE, NULL, INT32_MAX), "26", "26");
    check_all_pages(f, of_priority(WEIR_STATE_INACTIVE, NULL, 8), "", "");
    check_all_pages(f, of_priority(WEIR_STATE_DELAYED, NULL, 0), "", "");
}

static void a_place_outside_of_the_priority(fixture *f)
{
    add_by_turns(f, 0);
    weir_query q = of_priority(WEIR_STATE_INACTIVE, NULL, 0);
    q.after = (weir_cursor){ .rank = -3, .id = 1000 };
    CHECK_STR(listed(f, &q), "2 6 10 14 18 22");
    q.after.rank = 3;
    CHECK_STR(listed(f, &q), "");
    q.descending = true;
    CHECK_STR(listed(f, &q), "22 18 14 10 6 2");
    q.after.rank = -3;
    CHECK_STR(listed(f, &q), "");
}

static void all_jobs_of_a_priority(fixture *f)
{
    add_by_turns(f, 0);
    for (int i = 0; i < 6; i++)
        finish(f, take(f, "a"));                            /* those of -10, two of 0 */
    check_all_pages(f, of_priority(WEIR_STATE_ANY, NULL, 0), "2 6 10 14 18 22", "22 18 14 10 6 2");
    check_all_pages(f, of_priority(WEIR_STATE_ANY, "a", WEIR_PRIORITY_HIGH), "5 9 17 21",
                    "21 17 9 5");
    weir_query words = of_priority(WEIR_STATE_ANY, NULL, 7);
    words.search = "word";
    check_all_pages(f, words, "4 8 12 16 20 24", "24 20 16 12 8 4");
    words = of_priority(WEIR_STATE_INACTIVE, "a", 0);
    words.search = "wor*";
    check_all_pages(f, words, "14 18", "18 14");
}

static void delayed_jobs_of_a_priority(fixture *f)
{
    add_by_turns(f, 1000);
    check_all_pages(f, of_priority(WEIR_STATE_DELAYED, NULL, 0), "2 6 10 14 18 22",
                    "22 18 14 10 6 2");
    check_all_pages(f, of_priority(WEIR_STATE_DELAYED, "b", WEIR_PRIORITY_LOW), "7 19", "19 7");
    CHECK_INT(update(f, 7, &(weir_change){ .set_priority = true }), WEIR_OK);
    check_all_pages(f, of_priority(WEIR_STATE_DELAYED, "b", WEIR_PRIORITY_LOW), "19", "19");
    check_all_pages(f, of_priority(WEIR_STATE_DELAYED, "b", 0), "7 10 22", "22 10 7");
}

static void jobs_that_run_or_ended_of_a_priority(fixture *f)
{
    const weir_job *job[24];
    add_by_turns(f, 0);
    CHECK_INT(take_some(f, (const char *[]){ "a", "b", NULL }, 24, job), 24);
    check_all_pages(f, of_priority(WEIR_STATE_ACTIVE, NULL, 7), "4 8 12 16 20 24",
                    "24 20 16 12 8 4");
    check_all_pages(f, of_priority(WEIR_STATE_ACTIVE, "b", 0), "10 22", "22 10");
    for (size_t i = 0; i < 24; i++) {
        f->now += 10;
        CHECK_INT(i % 2 ? finish(f, job[i]) : fail_job(f, job[i], "why"), WEIR_OK);
    }
    check_all_pages(f, of_priority(WEIR_STATE_COMPLETE, NULL, 0), "6 14 22", "22 14 6");
    check_all_pages(f, of_priority(WEIR_STATE_FAILED, NULL, 0), "2 10 18", "18 10 2");
    check_all_pages(f, of_priority(WEIR_STATE_FAILED, "b", 0), "10", "10");
    check_all_pages(f, of_priority(WEIR_STATE_FAILED, NULL, 1), "", "");
}

/* More jobs than one call looks at lie between those that are wanted. One in a hundred is of
 * another type. */
enum { SOME = 50, BETWEEN = WEIR_MAX_LOOK + 1000, MANY = 2150, LONG = SOME + BETWEEN + MANY };

static bool is_high(size_t i)
{
    return i < SOME || i >= SOME + BETWEEN;
}

static void import_long_list(fixture *f, weir_state state)
{
    static weir_job      jobs[WEIR_MAX_IMPORT];
    static weir_incoming in[WEIR_MAX_IMPORT];
    static weir_imported out[WEIR_MAX_IMPORT];
    size_t               n = 0;
    for (size_t i = 0; i < LONG; i++) {
        bool ended = state == WEIR_STATE_COMPLETE;
        jobs[n] = (weir_job){ .type = i % 100 ? "a" : "b", .state = state,
                              .priority = is_high(i) ? WEIR_PRIORITY_HIGH : WEIR_PRIORITY_LOW,
                              .max_attempts = 1, .attempts = ended, .progress = ended ? 100 : 0,
                              .finished_at = ended ? f->now + (int64_t)i : 0,
                              .started_at = ended ? f->now : 0,
                              .promote_at = f->now + (ended ? 0 : 1 + (int64_t)i) };
        in[n] = (weir_incoming){ .job = &jobs[n], .new_id = true };
        if (++n < WEIR_MAX_IMPORT && i + 1 < LONG)
            continue;
        CHECK_INT(import_many(f, in, n, out), WEIR_OK);
        n = 0;
    }
}

/* Every job that is high is found once, the others never. */
static void check_long_list(fixture *f, weir_state state, const char *type, bool descending)
{
    static bool seen[LONG + 1];
    weir_query  q = of_priority(state, type, WEIR_PRIORITY_HIGH);
    size_t      n = 0, want = 0;
    for (size_t i = 0; i < LONG; i++)
        want += is_high(i) && (!type || *type == (i % 100 ? 'a' : 'b'));
    memset(seen, 0, sizeof seen);
    q.descending = descending;
    q.limit = WEIR_MAX_PAGE;
    q.ids_only = true;
    for (bool more = true; more;) {
        const weir_page *page = list(f, &q);
        assert_non_null(page);
        for (size_t i = 0; i < page->n; i++) {
            uint64_t id = page->job[i]->id;
            CHECK(id && id <= LONG && is_high(id - 1) && !seen[id]);
            seen[id] = true;
        }
        n += page->n;
        more = page->more;
        q.after = page->next;
        release_held(f);
    }
    CHECK_INT(n, want);
}

static void check_long_lists(fixture *f, weir_state state)
{
    import_long_list(f, state);
    for (int down = 0; down < 2; down++) {
        check_long_list(f, state, NULL, down);
        check_long_list(f, state, "a", down);
        check_long_list(f, state, "b", down);
        check_long_list(f, WEIR_STATE_ANY, NULL, down);
        check_long_list(f, WEIR_STATE_ANY, "a", down);
    }
}

static void a_priority_far_apart_among_delayed_jobs(fixture *f)
{
    check_long_lists(f, WEIR_STATE_DELAYED);
}

static void a_priority_far_apart_among_ended_jobs(fixture *f)
{
    check_long_lists(f, WEIR_STATE_COMPLETE);
}

/* ---- groups of errors ---- */

static void add_failed(fixture *f, const char *type, const char *error)
{
    add(f, type);
    const weir_job *job = take(f, type);
    CHECK_INT(fail_job(f, job, error), WEIR_OK);
    f->now += 10;
}

/* What weir_get_errors() makes of a list: the error and the end of a failed job are in it. */
static void failed_jobs_in_groups(fixture *f)
{
    weir_error_groups *g = weir__error_groups_create();
    assert_non_null(g);
    int64_t start = f->now;
    add_failed(f, "a", "no user \"ann\"\nat line 3");
    add_failed(f, "b", "no user \"ann\"");
    add_failed(f, "a", "timeout after 30s");
    add_failed(f, "a", "no user \"bob\"");
    const weir_page *page = list(f, &(weir_query){ .state = WEIR_STATE_FAILED, .type = "a",
                                                   .descending = true });
    CHECK_INT(page->n, 3);
    for (size_t i = 0; i < page->n; i++)
        CHECK(weir__error_groups_add(g, page->job[i]));
    weir__error_groups_sort(g);
    CHECK_INT(g->n, 2);
    CHECK_STR(g->group[0].error, "no user \"*\"");
    CHECK_INT(g->group[0].count, 2);
    CHECK_INT(g->group[0].first_at, start);
    CHECK_INT(g->group[0].last_at, start + 30);
    CHECK_INT(g->group[0].example, 4);
    CHECK_STR(g->group[1].error, "timeout after *s");
    weir_error_groups_free(g);
}

const conformance_case cases_list[] = {
    CASE(an_empty_list),
    CASE(all_jobs_by_id),
    CASE(waiting_jobs_as_they_will_run),
    CASE(delayed_jobs_by_their_time),
    ORDERED_CASE(active_jobs_by_their_start),
    ORDERED_CASE(finished_jobs_by_their_end),
    CASE(a_whole_job_is_listed),
    CASE(ids_alone),
    ORDERED_CASE(failed_jobs_in_groups),
    CASE(a_page_goes_on_though_its_last_job_is_gone),
    ORDERED_CASE(pages_neither_skip_nor_repeat_while_jobs_move),
    CASE(backwards_too),
    CASE(more_is_exact),
    CASE(the_usual_page_has_a_hundred),
    ORDERED_CASE(waiting_jobs_of_a_priority),
    ORDERED_CASE(a_place_outside_of_the_priority),
    ORDERED_CASE(all_jobs_of_a_priority),
    ORDERED_CASE(delayed_jobs_of_a_priority),
    ORDERED_CASE(jobs_that_run_or_ended_of_a_priority),
    CASE(a_priority_far_apart_among_delayed_jobs),
    CASE(a_priority_far_apart_among_ended_jobs),
    { 0 },
};
