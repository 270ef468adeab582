/* case_lot.c - jobs that are alike, added or taken together. A store may keep them as one as long
 * as nobody can tell. */
#include "conformance/conformance.h"

enum { LOT = 10 };

/* Ids 1 to 10 in a store without partitions. */
static void add_lot(fixture *f, const char *type, bool remove)
{
    weir_spec  specs[LOT];
    weir_added added[LOT];
    for (size_t i = 0; i < LOT; i++)
        specs[i] = (weir_spec){ .type = type, .attempts = 3, .remove_on_complete = remove };
    CHECK_INT(add_many(f, specs, LOT, added), WEIR_OK);
}

static size_t take_lot(fixture *f, size_t n, const weir_job **out)
{
    return take_some(f, (const char *[]){ "a", NULL }, n, out);
}

static const char *waiting(fixture *f)
{
    return listed(f, &(weir_query){ .state = WEIR_STATE_INACTIVE });
}

static const char *running(fixture *f)
{
    return listed(f, &(weir_query){ .state = WEIR_STATE_ACTIVE });
}

static void a_lot_is_taken_in_pieces(fixture *f)
{
    const weir_job *got[LOT];
    add_lot(f, "a", false);
    CHECK_INT(take_lot(f, 4, got), 4);
    CHECK_INT(got[0]->id, 1);
    CHECK_INT(got[3]->id, 4);
    CHECK_STR(waiting(f), "5 6 7 8 9 10");
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "a"), 6);
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, "a"), 4);
    f->now += 5;
    CHECK_INT(take_lot(f, LOT, got), 6);
    CHECK_INT(got[5]->id, 10);
    CHECK_STR(waiting(f), "");
    CHECK_STR(running(f), "1 2 3 4 5 6 7 8 9 10");
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, "a"), 10);
}

static void one_leaves_the_lot(fixture *f)
{
    add_lot(f, "a", false);
    CHECK_INT(remove_job(f, 3), WEIR_OK);
    CHECK_STR(waiting(f), "1 2 4 5 6 7 8 9 10");
    CHECK_INT(cancel_job(f, 10), WEIR_OK);
    CHECK_INT(cancel_job(f, 1), WEIR_OK);
    CHECK_STR(waiting(f), "2 4 5 6 7 8 9");
    CHECK_INT(update(f, 6, &(weir_change){ .set_priority = true, .priority = WEIR_PRIORITY_HIGH }),
              WEIR_OK);
    CHECK_INT(update(f, 8, &(weir_change){ .data = "[8]" }), WEIR_OK);
    CHECK_INT(log_line(f, 5, "hello"), WEIR_OK);
    CHECK_STR(waiting(f), "6 2 4 5 7 8 9");
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "a"), 7);
    const weir_job *got[LOT];
    CHECK_INT(take_lot(f, LOT, got), 7);
    const uint64_t want[] = { 6, 2, 4, 5, 7, 8, 9 };
    for (size_t i = 0; i < 7; i++)
        CHECK_INT(got[i]->id, want[i]);
    CHECK_STR(got[5]->data, "[8]");
    CHECK_INT(logs(f, 5, 0, 10)->n, 1);
}

static void pages_end_within_a_lot(fixture *f)
{
    add_lot(f, "a", false);
    weir_query q = { .state = WEIR_STATE_INACTIVE, .limit = 4 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "1 2 3 4");
    q.after = page->next;
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "5 6 7 8");
    q.after = page->next;
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "9 10");
    CHECK(!page->more);
    q = (weir_query){ .state = WEIR_STATE_INACTIVE, .limit = 4, .descending = true };
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "10 9 8 7");
    q.after = page->next;
    CHECK_STR(ids_of(f, list(f, &q)), "6 5 4 3");
    const weir_job *got[LOT];
    CHECK_INT(take_lot(f, LOT, got), LOT);
    q = (weir_query){ .state = WEIR_STATE_ACTIVE, .limit = 4 };
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "1 2 3 4");
    q.after = page->next;
    CHECK_STR(ids_of(f, list(f, &q)), "5 6 7 8");
    q = (weir_query){ .state = WEIR_STATE_ACTIVE, .limit = 4, .descending = true,
                      .after = page->next };
    CHECK_STR(ids_of(f, list(f, &q)), "3 2 1");
}

/* A page may end with the last one that is left of a lot. */
static void pages_end_with_a_lot(fixture *f)
{
    const weir_job *got[LOT];
    add_lot(f, "a", false);
    CHECK_INT(take_lot(f, LOT - 1, got), LOT - 1);
    for (size_t i = 0; i < 3; i++)
        add(f, "a");                         /* 11 to 13 */
    weir_query       q = { .state = WEIR_STATE_INACTIVE, .limit = 1 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "10");
    q.after = page->next;
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "11");
    CHECK(page->more);
    q.after = page->next;
    CHECK_STR(ids_of(f, list(f, &q)), "12");
}

static void lots_of_two_types_are_taken_by_id(fixture *f)
{
    const weir_job *got[2 * LOT];
    add_lot(f, "a", false);
    add(f, "b");                             /* 11 */
    add_lot(f, "a", false);                  /* to 21 */
    CHECK_INT(take_some(f, (const char *[]){ "b", "a", NULL }, 13, got), 13);
    for (size_t i = 0; i < 13; i++)
        CHECK_INT(got[i]->id, i + 1);
    CHECK_STR(waiting(f), "14 15 16 17 18 19 20 21");
}

static void those_taken_together_end_each_in_its_way(fixture *f)
{
    const weir_job *got[LOT];
    add_lot(f, "a", false);
    CHECK_INT(take_lot(f, LOT, got), LOT);
    f->now += 7;
    CHECK_INT(finish(f, got[1]), WEIR_OK);
    CHECK_INT(finish_with(f, got[2], "{\"n\":3}"), WEIR_OK);
    CHECK_INT(finish(f, got[1]), WEIR_ESTALE);
    CHECK_INT(fail_job(f, got[3], "no"), WEIR_OK);
    CHECK_INT(give_back(f, got[4]), WEIR_OK);
    CHECK_INT(progress(f, got[5], 50, NULL), WEIR_OK);
    CHECK_INT(log_from(f, got[6], "hello"), WEIR_OK);
    CHECK_INT(cancel_job(f, 8), WEIR_OK);
    CHECK_INT(remove_job(f, 9), WEIR_OK);
    CHECK_STR(running(f), "1 6 7 10");
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, "a"), 4);
    CHECK_STR(waiting(f), "4 5");
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_COMPLETE }), "2 3");
    CHECK_STR(get(f, 3)->result, "{\"n\":3}");
    CHECK_INT(get(f, 2)->duration_ms, 7);
    CHECK_STR(get(f, 2)->worker, WORKER);
    CHECK_INT(get(f, 6)->progress, 50);
    CHECK_INT(finish(f, got[5]), WEIR_OK);
    CHECK_INT(finish(f, got[0]), WEIR_OK);
    CHECK_INT(finish(f, got[9]), WEIR_OK);
    CHECK_STR(running(f), "7");
    CHECK_INT(stats_of(f, "a")->completed, 5);
}

/* The middle ones are renewed. */
static void leases_of_a_lot_end_one_by_one(fixture *f)
{
    const weir_job *got[LOT];
    add_lot(f, "a", false);
    CHECK_INT(take_lot(f, LOT, got), LOT);
    f->now += 1000;
    CHECK_INT(finish(f, got[0]), WEIR_OK);
    for (size_t i = 4; i < 6; i++)
        CHECK_INT(renew(f, got[i], 600000), WEIR_OK);
    CHECK_INT(get(f, 5)->lease_until, f->now + 600000);
    CHECK_INT(get(f, 7)->lease_until, got[6]->lease_until);
    later(f, got[6]->lease_until - f->now);
    CHECK_STR(running(f), "5 6");
    CHECK_STR(waiting(f), "2 3 4 7 8 9 10");
    CHECK_INT(get(f, 7)->lost, 1);
    CHECK_INT(finish(f, got[6]), WEIR_ESTALE);
    CHECK_INT(finish(f, got[4]), WEIR_OK);
}

static void a_lot_that_goes_when_done(fixture *f)
{
    const weir_job *got[LOT];
    add_lot(f, "a", true);
    CHECK_INT(take_lot(f, LOT, got), LOT);
    for (size_t i = 0; i < LOT; i++)
        CHECK_INT(finish(f, got[i]), WEIR_OK);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
    CHECK_STR(listed(f, &(weir_query){ 0 }), "");
}

/* End n of them in one run of the store. */
static void finish_together(fixture *f, const weir_job *const *jobs, size_t n)
{
    weir_op  ops[LOT], *list[LOT];
    for (size_t i = 0; i < n; i++) {
        ops[i] = (weir_op){ .kind = WEIR_OP_FINISH, .now_ms = f->now };
        ops[i].u.finish = (weir_op_finish){ .id = jobs[i]->id, .delivery = 1 };
        list[i] = &ops[i];
        CHECK_INT(weir__op_check(list[i], &f->err), WEIR_OK);
    }
    CHECK_INT(run_batch(f, list, n), WEIR_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(ops[i].err.code, WEIR_OK);
        CHECK_INT(ops[i].u.finish.state, WEIR_STATE_COMPLETE);
    }
}

static const char *complete_ones(fixture *f)
{
    return listed(f, &(weir_query){ .state = WEIR_STATE_COMPLETE });
}

static void take_and_finish_lot(fixture *f)
{
    const weir_job *got[LOT];
    add_lot(f, "a", false);
    CHECK_INT(take_lot(f, LOT, got), LOT);
    f->now += 3;
    finish_together(f, got, LOT);
    CHECK_INT(count(f, WEIR_STATE_COMPLETE, "a"), LOT);
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, "a"), 0);
}

static void those_that_ended_together_are_listed(fixture *f)
{
    take_and_finish_lot(f);
    CHECK_STR(complete_ones(f), "1 2 3 4 5 6 7 8 9 10");
    weir_query q = { .state = WEIR_STATE_COMPLETE, .limit = 4 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "1 2 3 4");
    CHECK_INT(page->job[2]->duration_ms, 3);
    CHECK_STR(page->job[2]->worker, WORKER);
    q.after = page->next;
    CHECK_STR(ids_of(f, list(f, &q)), "5 6 7 8");
    q.descending = true;
    CHECK_STR(ids_of(f, list(f, &q)), "3 2 1");
    CHECK_INT(get(f, 7)->attempts, 1);
    CHECK_INT(get(f, 7)->finished_at, f->now);
}

static void one_leaves_those_that_ended_together(fixture *f)
{
    take_and_finish_lot(f);
    CHECK_INT(remove_job(f, 4), WEIR_OK);
    CHECK_INT(retry_job(f, 7), WEIR_OK);
    CHECK_INT(log_line(f, 9, "seen"), WEIR_OK);
    CHECK_STR(complete_ones(f), "1 2 3 5 6 8 9 10");
    CHECK_STR(waiting(f), "7");
    CHECK_INT(count(f, WEIR_STATE_COMPLETE, "a"), 8);
    CHECK_INT(logs(f, 9, 0, 10)->n, 1);
    f->now += 3;
    CHECK_INT(finish(f, take(f, "a")), WEIR_OK);
    CHECK_STR(complete_ones(f), "1 2 3 5 6 8 9 10 7");
    CHECK_INT(stats_of(f, "a")->completed, 11);
}

static void those_that_ended_together_go_in_time(fixture *f)
{
    take_and_finish_lot(f);
    configure(f, "a", &(weir_settings){ .keep_complete = { .count = 7 } });
    events(f);
    CHECK_INT(tick_some(f, 2, NULL), 2);
    CHECK_STR(complete_ones(f), "3 4 5 6 7 8 9 10");
    later(f, 0);
    CHECK_STR(complete_ones(f), "4 5 6 7 8 9 10");
    CHECK_STR(events_in_full(f), "remove 1 a any 1 100 1, remove 2 a any 1 100 1, "
                                 "remove 3 a any 1 100 1");
    configure(f, "a", &(weir_settings){ .keep_complete = { .age_ms = 100 } });
    later(f, 100);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 0);
}

const conformance_case cases_lot[] = {
    ORDERED_CASE(a_lot_is_taken_in_pieces),
    ORDERED_CASE(one_leaves_the_lot),
    ORDERED_CASE(pages_end_within_a_lot),
    ORDERED_CASE(pages_end_with_a_lot),
    ORDERED_CASE(lots_of_two_types_are_taken_by_id),
    ORDERED_CASE(those_taken_together_end_each_in_its_way),
    ORDERED_CASE(leases_of_a_lot_end_one_by_one),
    CASE(a_lot_that_goes_when_done),
    ORDERED_CASE(those_that_ended_together_are_listed),
    ORDERED_CASE(one_leaves_those_that_ended_together),
    ORDERED_CASE(those_that_ended_together_go_in_time),
    { 0 },
};
