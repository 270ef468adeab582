/* case_type.c - types: counts and other statistics, pausing, retention. */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "weir/weir.h"

/* ---- statistics ---- */

static void an_empty_store(fixture *f)
{
    const weir_stats *s = stats(f);
    CHECK_INT(s->n, 0);
    CHECK_INT(s->last_id, 0);
    CHECK_STR(s->all.type, "*");
    CHECK_INT(s->all.count[WEIR_STATE_ANY], 0);
    CHECK(!s->all.paused);
}

static void counts_follow_the_jobs(fixture *f)
{
    add(f, "a");
    add(f, "a");
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    add(f, "b");
    const weir_type_stats *a = stats_of(f, "a");
    CHECK_INT(a->count[WEIR_STATE_INACTIVE], 2);
    CHECK_INT(a->count[WEIR_STATE_DELAYED], 1);
    CHECK_INT(a->count[WEIR_STATE_ANY], 3);
    const weir_job *job = take(f, "a");
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, "a"), 1);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "a"), 1);
    finish(f, job);
    CHECK_INT(count(f, WEIR_STATE_ACTIVE, "a"), 0);
    CHECK_INT(count(f, WEIR_STATE_COMPLETE, "a"), 1);
    fail_job(f, take(f, "a"), "x");
    CHECK_INT(count(f, WEIR_STATE_FAILED, "a"), 1);
    cancel_job(f, 4);
    CHECK_INT(count(f, WEIR_STATE_CANCELLED, NULL), 1);
    later(f, 100);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, NULL), 1);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 4);
    remove_job(f, 1);
    CHECK_INT(count(f, WEIR_STATE_ANY, NULL), 3);
}

static void types_by_name(fixture *f)
{
    add(f, "pear");
    add(f, "Apple");
    add(f, "fig");
    add(f, "apple");
    const weir_stats *s = stats(f);
    CHECK_INT(s->n, 4);
    CHECK_STR(s->type[0].type, "Apple");
    CHECK_STR(s->type[1].type, "apple");
    CHECK_STR(s->type[2].type, "fig");
    CHECK_STR(s->type[3].type, "pear");
}

static void work_is_counted_for_ever(fixture *f)
{
    for (int i = 1; i <= 3; i++) {
        add_spec(f, &(weir_spec){ .type = "a", .remove_on_complete = i == 2 });
        const weir_job *job = take(f, "a");
        f->now += 10 * i;
        finish(f, job);
    }
    add(f, "a");
    const weir_job *job = take(f, "a");
    int64_t         taken_at = f->now;
    f->now += 1000;
    fail_job(f, job, "x");
    remove_job(f, 1);
    const weir_type_stats *a = stats_of(f, "a");
    CHECK_INT(a->completed, 3);
    CHECK_INT(a->failed, 1);
    CHECK_INT(a->work_ms, 60);
    CHECK_INT(a->last_taken_at, taken_at);
    add(f, "b");
    finish(f, take(f, "b"));
    const weir_stats *s = stats(f);
    CHECK_INT(s->all.completed, 4);
    CHECK_INT(s->all.work_ms, 60);
    CHECK_INT(s->all.last_taken_at, f->now);
}

static void the_next_to_run_tells_how_old_it_is(fixture *f)
{
    int64_t start = f->now;
    add_spec(f, &(weir_spec){ .type = "a", .priority = 5 });
    CHECK_INT(stats_of(f, "a")->oldest_at, start);
    f->now += 10;
    add(f, "a");
    CHECK_INT(stats_of(f, "a")->oldest_at, start + 10);
    take(f, "a");
    CHECK_INT(stats_of(f, "a")->oldest_at, start);
    take(f, "a");
    CHECK_INT(stats_of(f, "a")->oldest_at, 0);
}

/* ---- pause ---- */

static void a_paused_type_is_not_taken(fixture *f)
{
    const weir_job *got[5];
    add(f, "a");
    add(f, "b");
    CHECK_INT(set_paused(f, "a", true), WEIR_OK);
    CHECK(stats_of(f, "a")->paused);
    CHECK(!stats_of(f, "b")->paused);
    CHECK(!take(f, "a"));
    CHECK_INT(take_some(f, (const char *[]){ "a", "b", NULL }, 5, got), 1);
    CHECK_INT(got[0]->id, 2);
    CHECK_INT(set_paused(f, "a", false), WEIR_OK);
    CHECK_INT(take(f, "a")->id, 1);
}

static void running_jobs_go_on(fixture *f)
{
    add(f, "a");
    add(f, "a");
    const weir_job *job = take(f, "a"), *next = NULL;
    set_paused(f, "a", true);
    CHECK_INT(renew(f, job, 1000), WEIR_OK);
    CHECK_INT(finish_and_take(f, job, "a", &next), WEIR_OK);
    CHECK(!next);
}

static void all_can_be_paused(fixture *f)
{
    add(f, "a");
    CHECK_INT(set_paused(f, "*", true), WEIR_OK);
    CHECK(stats(f)->all.paused);
    CHECK(!stats_of(f, "a")->paused);
    CHECK(!take(f, "a"));
    set_paused(f, "a", true);
    CHECK_INT(set_paused(f, "a", false), WEIR_OK);
    CHECK(!take(f, "a"));                            /* that does not undo the other */
    set_paused(f, "a", true);
    CHECK_INT(set_paused(f, "*", false), WEIR_OK);
    CHECK(!take(f, "a"));
    set_paused(f, "a", false);
    CHECK_INT(take(f, "a")->id, 1);
}

static void an_unknown_type_can_be_paused(fixture *f)
{
    CHECK_INT(set_paused(f, "new", true), WEIR_OK);
    CHECK_INT(stats(f)->n, 1);
    add(f, "new");
    CHECK(!take(f, "new"));
}

static void the_star_is_not_among_the_types(fixture *f)
{
    set_paused(f, "*", true);
    configure(f, "*", &(weir_settings){ .search = true });
    CHECK_INT(stats(f)->n, 0);
    CHECK(stats(f)->all.settings.search);
    set_paused(f, "*", false);
}

static void delays_end_though_paused(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 10 });
    set_paused(f, "a", true);
    later(f, 10);
    CHECK_STATE(f, id, WEIR_STATE_INACTIVE);
}

static void pausing_tells_only_of_changes(fixture *f)
{
    set_paused(f, "a", false);
    set_paused(f, "a", true);
    set_paused(f, "a", true);
    set_paused(f, "*", true);
    set_paused(f, "a", false);
    set_paused(f, "*", false);
    set_paused(f, "*", false);
    CHECK_STR(events_in_full(f), "pause 0 a any 0 0 0, pause 0 * any 0 0 0, resume 0 a any 0 0 0, "
                                 "resume 0 * any 0 0 0");
}

/* ---- settings and retention ---- */

static void settings_are_kept(fixture *f)
{
    weir_settings s = { .keep_complete = { 1000, 5 }, .keep_failed = { 2000, 6 }, .search = true };
    CHECK_INT(configure(f, "a", &s), WEIR_OK);
    set_paused(f, "a", true);
    const weir_type_stats *a = stats_of(f, "a");
    CHECK_INT(a->settings.keep_complete.age_ms, 1000);
    CHECK_INT(a->settings.keep_complete.count, 5);
    CHECK_INT(a->settings.keep_failed.age_ms, 2000);
    CHECK_INT(a->settings.keep_failed.count, 6);
    CHECK(a->settings.search);
    CHECK(a->paused);
    CHECK_INT(configure(f, "a", &(weir_settings){ 0 }), WEIR_OK);
    CHECK_INT(stats_of(f, "a")->settings.keep_failed.count, 0);
    CHECK(stats_of(f, "a")->paused);
}

static void the_star_holds_for_types_without_their_own(fixture *f)
{
    add(f, "a");
    add(f, "b");
    configure(f, "*", &(weir_settings){ .keep_complete = { .count = 7 } });
    CHECK_INT(stats_of(f, "a")->settings.keep_complete.count, 7);
    configure(f, "b", &(weir_settings){ .keep_complete = { .count = 3 } });
    CHECK_INT(stats_of(f, "b")->settings.keep_complete.count, 3);
    configure(f, "b", &(weir_settings){ .keep_complete = { .age_ms = WEIR_FOREVER } });
    CHECK_INT(stats_of(f, "b")->settings.keep_complete.count, 0);
    set_paused(f, "a", true);                        /* that is no setting */
    CHECK_INT(stats_of(f, "a")->settings.keep_complete.count, 7);
}

static void complete_one(fixture *f, const char *type)
{
    add(f, type);
    finish(f, take(f, type));
}

static void fail_one(fixture *f, const char *type)
{
    add(f, type);
    fail_job(f, take(f, type), "x");
}

/* Jobs in the layouts of Kue may be another program's. */
static bool has_default(fixture *f)
{
    weir_op op = { .kind = WEIR_OP_INFO };
    CHECK_INT(run(f, &op), WEIR_OK);
    bool kue = !strcmp(op.u.info.info->store, "redis+kue");
    free(op.u.info.info);
    return !kue;
}

static void check_keep(fixture *f, const char *type, weir_keep complete, weir_keep failed)
{
    const weir_settings *s = type ? &stats_of(f, type)->settings : &stats(f)->all.settings;
    CHECK_INT(s->keep_complete.age_ms, complete.age_ms);
    CHECK_INT(s->keep_complete.count, complete.count);
    CHECK_INT(s->keep_failed.age_ms, failed.age_ms);
    CHECK_INT(s->keep_failed.count, failed.count);
}

static void kept_by_default(fixture *f)
{
    const weir_keep ever = { .age_ms = WEIR_FOREVER };
    bool            has = has_default(f);
    weir_keep       complete = { WEIR_DEFAULT_KEEP_COMPLETE_MS, WEIR_DEFAULT_KEEP_COMPLETE };
    weir_keep       failed = { WEIR_DEFAULT_KEEP_FAILED_MS, 0 };
    complete_one(f, "a");
    fail_one(f, "a");
    check_keep(f, "a", has ? complete : ever, has ? failed : ever);
    check_keep(f, NULL, has ? complete : ever, has ? failed : ever);
    later(f, WEIR_DEFAULT_KEEP_COMPLETE_MS - 1);
    CHECK_STATE(f, 1, WEIR_STATE_COMPLETE);
    later(f, 1);
    CHECK(!get(f, 1) == has);
    later(f, WEIR_DEFAULT_KEEP_FAILED_MS - WEIR_DEFAULT_KEEP_COMPLETE_MS - 1);
    CHECK_STATE(f, 2, WEIR_STATE_FAILED);
    later(f, 1);
    CHECK(!get(f, 2) == has);
}

static void kept_for_ever_by_choice(fixture *f)
{
    const weir_keep ever = { .age_ms = WEIR_FOREVER };
    configure(f, "*", &(weir_settings){ .keep_complete = ever, .keep_failed = ever });
    complete_one(f, "a");
    fail_one(f, "a");
    check_keep(f, "a", ever, ever);
    later(f, 4 * WEIR_DEFAULT_KEEP_FAILED_MS);
    CHECK_STATE(f, 1, WEIR_STATE_COMPLETE);
    CHECK_STATE(f, 2, WEIR_STATE_FAILED);
    configure(f, "*", &(weir_settings){ 0 });       /* the default again */
    later(f, 0);
    CHECK(!get(f, 1) == has_default(f));
    CHECK(!get(f, 2) == has_default(f));
}

static void kept_by_age(fixture *f)
{
    configure(f, "a", &(weir_settings){ .keep_complete = { .age_ms = 1000 } });
    complete_one(f, "a");
    later(f, 500);
    complete_one(f, "a");
    fail_one(f, "a");
    log_line(f, 1, "x");
    events(f);
    later(f, 499);
    CHECK_EVENTS(f, "");
    later(f, 1);
    CHECK_STR(events_in_full(f), "remove 1 a any 1 100 1");
    CHECK(!get(f, 1));
    later(f, 500);
    CHECK_EVENTS(f, "remove 2");
    CHECK_STATE(f, 3, WEIR_STATE_FAILED);
}

static void kept_by_count(fixture *f)
{
    configure(f, "a", &(weir_settings){ .keep_complete = { .count = 2 } });
    for (int i = 0; i < 5; i++) {
        complete_one(f, "a");
        f->now++;
    }
    later(f, 0);
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_COMPLETE }), "4 5");
    complete_one(f, "a");
    later(f, 0);
    CHECK_STR(listed(f, &(weir_query){ .state = WEIR_STATE_COMPLETE }), "5 6");
}

static void failed_and_cancelled_each_have_their_count(fixture *f)
{
    configure(f, "a", &(weir_settings){ .keep_failed = { .count = 1 } });
    fail_one(f, "a");
    cancel_job(f, add(f, "a"));
    complete_one(f, "a");
    complete_one(f, "a");
    later(f, 0);
    CHECK_INT(count(f, WEIR_STATE_ANY, "a"), 4);
    fail_one(f, "a");
    cancel_job(f, add(f, "a"));
    events(f);
    later(f, 0);
    CHECK_EVENTS(f, "remove 1, remove 2");
}

static void new_settings_hold_for_old_jobs(fixture *f)
{
    for (int i = 0; i < 4; i++)
        complete_one(f, i % 2 ? "a" : "b");
    events(f);
    configure(f, "*", &(weir_settings){ .keep_complete = { .count = 1 } });
    CHECK_DUE(f, f->now);
    later(f, 0);
    CHECK_EVENTS(f, "remove 2, remove 1");           /* type by type, by name */
    configure(f, "a", &(weir_settings){ .keep_complete = { .age_ms = 1 } });
    later(f, 1);
    CHECK_EVENTS(f, "remove 4");
}

static void retention_heeds_the_limit(fixture *f)
{
    int64_t next;
    for (int i = 0; i < 5; i++)
        complete_one(f, "a");
    fail_one(f, "a");
    fail_one(f, "a");
    configure(f, "a", &(weir_settings){ .keep_complete = { .count = 1 },
                                        .keep_failed = { .count = 1 } });
    events(f);
    CHECK_INT(tick_some(f, 3, &next), 3);
    CHECK(next <= f->now);
    CHECK_EVENTS(f, "remove 1, remove 2, remove 3");
    CHECK_INT(tick_some(f, 3, &next), 2);
    CHECK_EVENTS(f, "remove 4, remove 6");
    CHECK_INT(tick_some(f, 3, &next), 0);
    CHECK(next > f->now);
}

static void what_runs_again_is_kept(fixture *f)
{
    configure(f, "a", &(weir_settings){ .keep_complete = { .age_ms = 100 } });
    complete_one(f, "a");
    later(f, 50);
    retry_job(f, 1);
    later(f, 100);
    CHECK_STATE(f, 1, WEIR_STATE_INACTIVE);
    finish(f, take(f, "a"));
    later(f, 99);
    CHECK_STATE(f, 1, WEIR_STATE_COMPLETE);
    later(f, 1);
    CHECK(!get(f, 1));
}

/* ---- check ---- */

static void a_sound_store_has_nothing_to_report(fixture *f)
{
    add_spec(f, &(weir_spec){ .type = "a", .unique = "k", .search = true, .delay_ms = 5 });
    add(f, "b");
    take(f, "b");
    complete_one(f, "c");
    const weir_report *r = check(f, false);
    CHECK_INT(r->n, 0);
    CHECK_INT(r->jobs, 3);
    r = check(f, true);
    CHECK_INT(r->n, 0);
    CHECK_INT(r->mended, 0);
    CHECK_STATE(f, 2, WEIR_STATE_ACTIVE);
}

/* ---- the store itself ---- */

static void a_store_says_which_it_is(fixture *f)
{
    static const char *const names[] = { "mem", "sqlite", "redis", "redis+kue" };
    weir_op op = { .kind = WEIR_OP_INFO };
    CHECK_INT(run(f, &op), WEIR_OK);
    const weir_info *info = op.u.info.info;
    bool             known = false, file = !strcmp(info->store, "sqlite");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        known |= !strcmp(info->store, names[i]);
    CHECK(known);
    CHECK_STR(info->weir, weir_version());
    CHECK((!*info->engine && !*info->place) == !strcmp(info->store, "mem"));
    CHECK((info->owner_pid > 0) == file);
    CHECK(!file || info->limit_bytes > 0);
    CHECK(info->used_bytes >= 0 && info->used_bytes <= info->limit_bytes);
    weir_added added;
    CHECK_INT(try_add(f, &(weir_spec){ .type = "a" }, &added), WEIR_OK);
    CHECK_INT(info->durability, added.durability);
    free(op.u.info.info);
}

const conformance_case cases_type[] = {
    CASE(a_store_says_which_it_is),
    CASE(an_empty_store),
    CASE(counts_follow_the_jobs),
    CASE(types_by_name),
    CASE(work_is_counted_for_ever),
    ORDERED_CASE(the_next_to_run_tells_how_old_it_is),
    CASE(a_paused_type_is_not_taken),
    CASE(running_jobs_go_on),
    CASE(all_can_be_paused),
    CASE(an_unknown_type_can_be_paused),
    CASE(the_star_is_not_among_the_types),
    CASE(delays_end_though_paused),
    CASE(pausing_tells_only_of_changes),
    CASE(settings_are_kept),
    CASE(the_star_holds_for_types_without_their_own),
    ORDERED_CASE(kept_by_default),
    ORDERED_CASE(kept_for_ever_by_choice),
    CASE(kept_by_age),
    ORDERED_CASE(kept_by_count),
    ORDERED_CASE(failed_and_cancelled_each_have_their_count),
    ORDERED_CASE(new_settings_hold_for_old_jobs),
    ORDERED_CASE(retention_heeds_the_limit),
    CASE(what_runs_again_is_kept),
    CASE(a_sound_store_has_nothing_to_report),
    { 0 },
};
