/* case_list.c - lists: their order, pages in both directions, and pages of jobs that move. */
#include "conformance/conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_FAILED }), "");
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
    const int32_t priority[] = { 0, WEIR_LOW, WEIR_CRITICAL, 0, WEIR_HIGH, WEIR_LOW, INT32_MIN };
    for (size_t i = 0; i < 7; i++)
        add_spec(f, &(weir_spec){ .type = i % 2 ? "odd" : "even", .priority = priority[i] });
    check_all_pages(f, (weir_query){ .state = WEIR_INACTIVE }, "7 3 5 1 4 2 6", "6 2 4 1 5 3 7");
    check_all_pages(f, (weir_query){ .state = WEIR_INACTIVE, .type = "odd" }, "4 2 6", "6 2 4");
}

static void delayed_jobs_by_their_time(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 300 });
    add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 100 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 200 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    check_all_pages(f, (weir_query){ .state = WEIR_DELAYED }, "2 4 3 1", "1 3 4 2");
    check_all_pages(f, (weir_query){ .state = WEIR_DELAYED, .type = "a" }, "4 3 1", "1 3 4");
}

static void active_jobs_by_their_start(fixture *f)
{
    for (int i = 0; i < 4; i++)
        add_spec(f, &(weir_spec){ .type = "a", .priority = -i });
    for (int i = 0; i < 4; i++) {
        take(f, "a");
        f->now += i % 2;
    }
    check_all_pages(f, (weir_query){ .state = WEIR_ACTIVE }, "3 4 1 2", "2 1 4 3");
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
    check_all_pages(f, (weir_query){ .state = WEIR_COMPLETE }, "4 3 2 1", "1 2 3 4");
    check_all_pages(f, (weir_query){ .state = WEIR_COMPLETE, .type = "a" }, "4 2", "2 4");
}

static void a_whole_job_is_listed(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .data = "[1]", .attempts = 3, .unique = "u" });
    fail_job(f, take(f, "a"), "why");
    const weir_job *j = list(f, &(weir_query){ .state = WEIR_INACTIVE })->job[0];
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
    const weir_page *page = list(f, &(weir_query){ .state = WEIR_INACTIVE, .ids_only = true });
    CHECK_STR(ids_of(f, page), "2 1");
    CHECK(!page->job[1]->type && !page->job[1]->data);
    CHECK_INT(page->job[1]->priority, 0);
    CHECK_INT(page->job[1]->state, WEIR_ANY);
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
    weir_query q = { .state = WEIR_INACTIVE, .limit = 2 };
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
    weir_query q = { .state = WEIR_INACTIVE, .limit = 2, .descending = true };
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
    CHECK(!list(f, &(weir_query){ .limit = 4, .state = WEIR_INACTIVE })->more);
    CHECK(list(f, &(weir_query){ .limit = 3, .state = WEIR_INACTIVE })->more);
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

const conformance_case cases_list[] = {
    CASE(an_empty_list),
    CASE(all_jobs_by_id),
    CASE(waiting_jobs_as_they_will_run),
    CASE(delayed_jobs_by_their_time),
    ORDERED_CASE(active_jobs_by_their_start),
    ORDERED_CASE(finished_jobs_by_their_end),
    CASE(a_whole_job_is_listed),
    CASE(ids_alone),
    CASE(a_page_goes_on_though_its_last_job_is_gone),
    ORDERED_CASE(pages_neither_skip_nor_repeat_while_jobs_move),
    CASE(backwards_too),
    CASE(more_is_exact),
    CASE(the_usual_page_has_a_hundred),
    { 0 },
};
