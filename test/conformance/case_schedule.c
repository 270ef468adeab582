/* case_schedule.c - rows of schedules: versions, order, what is due. What a schedule does is
 * decided elsewhere (test_firing.c), and who fires it (test_runtime_schedules.c). */
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

static const char *record_of(const char *name, int n)
{
    static char text[300];
    snprintf(text, sizeof text,
             "{\"name\":\"%s\",\"when\":\"%d * * * *\",\"job\":{\"type\":\"a\"}}", name, n);
    return text;
}

static weir_code put(fixture *f, const char *name, int n, int64_t due_at, uint64_t version,
                     uint64_t *new_version)
{
    weir_op   op = { .kind = WEIR_OP_SCHEDULE,
                     .u.schedule = { .name = name, .record = record_of(name, n), .due_at = due_at,
                                     .version = version } };
    weir_code rc = run(f, &op);
    if (new_version)
        *new_version = op.u.schedule.new_version;
    return rc;
}

static weir_code take_away(fixture *f, const char *name, uint64_t version)
{
    weir_op op = { .kind = WEIR_OP_SCHEDULE,
                   .u.schedule = { .name = name, .due_at = INT64_MAX, .version = version } };
    return run(f, &op);
}

/* The names as "a b c", and the first row. */
static const char *names(fixture *f, weir_op_schedules what, weir_schedule_row *first)
{
    static char text[400], kept[400], name[200];
    weir_op     op = { .kind = WEIR_OP_SCHEDULES, .u.schedules = what };
    *text = 0;
    CHECK_INT(run(f, &op), WEIR_OK);
    weir_schedule_rows *rows = op.u.schedules.rows;
    for (size_t i = 0; i < rows->n; i++) {
        strcat(text, i ? " " : "");
        strcat(text, rows->row[i].name);
        CHECK_INT(strlen(rows->row[i].record), rows->row[i].len);
    }
    if (first && rows->n) {
        *first = rows->row[0];
        first->record = strcpy(kept, rows->row[0].record);
        first->name = strcpy(name, rows->row[0].name);
    }
    weir__op_free(&op);
    return text;
}

static const char *all(fixture *f)
{
    return names(f, (weir_op_schedules){ .limit = 100 }, NULL);
}

static const char *due(fixture *f)
{
    return names(f, (weir_op_schedules){ .due = true, .limit = 100 }, NULL);
}

static bool tick_says_due(fixture *f, int64_t *next_at)
{
    weir_op op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = 100 } };
    CHECK_INT(run(f, &op), WEIR_OK);
    f->due = op.u.tick.next_at;             /* from now on it says what is earlier than that */
    if (next_at)
        *next_at = op.u.tick.next_at;
    return op.u.tick.schedules_due;
}

static void a_schedule_is_kept_as_it_is(fixture *f)
{
    weir_schedule_row row = { 0 };
    uint64_t          v1, v2;
    int64_t           at = f->now + 5000;
    CHECK_INT(put(f, "night ü", 5, at, 0, &v1), WEIR_OK);
    CHECK(v1 > 0);
    CHECK_STR(names(f, (weir_op_schedules){ .name = "night ü", .limit = 1 }, &row), "night ü");
    CHECK_STR(row.record, record_of("night ü", 5));
    CHECK(row.due_at == at);
    CHECK(row.version == v1);
    CHECK_INT(put(f, "night ü", 6, INT64_MAX, v1, &v2), WEIR_OK);
    CHECK(v2 > v1);
    CHECK_STR(names(f, (weir_op_schedules){ .name = "night ü", .limit = 1 }, &row), "night ü");
    CHECK_STR(row.record, record_of("night ü", 6));
    CHECK(row.due_at == INT64_MAX);
    CHECK(row.version == v2);
    CHECK_STR(names(f, (weir_op_schedules){ .name = "other", .limit = 1 }, NULL), "");
}

static void only_who_has_seen_it_last_changes_it(fixture *f)
{
    uint64_t v1, v2, v3;
    CHECK_INT(put(f, "s", 1, INT64_MAX, 7, NULL), WEIR_ESTALE);
    CHECK_STR(all(f), "");
    CHECK_INT(put(f, "s", 1, INT64_MAX, 0, &v1), WEIR_OK);
    CHECK_INT(put(f, "s", 2, INT64_MAX, 0, NULL), WEIR_ESTALE);
    CHECK(strstr(f->err.msg, "changed meanwhile") != NULL);
    CHECK_INT(put(f, "s", 2, INT64_MAX, v1, &v2), WEIR_OK);
    CHECK_INT(put(f, "s", 3, INT64_MAX, v1, NULL), WEIR_ESTALE);
    CHECK_INT(take_away(f, "s", v1), WEIR_ESTALE);
    CHECK_INT(put(f, "s", 3, INT64_MAX, WEIR_ANY_VERSION, &v3), WEIR_OK);
    CHECK(v3 > v2);
    CHECK_INT(take_away(f, "s", v3), WEIR_OK);
    CHECK_INT(take_away(f, "s", WEIR_ANY_VERSION), WEIR_ENOENT);
    CHECK_INT(put(f, "s", 1, INT64_MAX, 0, &v1), WEIR_OK);
    CHECK(v1 != v2 && v1 != v3);            /* a late one must not take it for the old one */
}

static void pages_are_in_the_order_of_names(fixture *f)
{
    for (const char *name = "dbeac"; *name; name++)
        CHECK_INT(put(f, (char[]){ *name, 0 }, 1, f->now, 0, NULL), WEIR_OK);
    CHECK_STR(all(f), "a b c d e");
    CHECK_STR(names(f, (weir_op_schedules){ .limit = 2 }, NULL), "a b");
    CHECK_STR(names(f, (weir_op_schedules){ .limit = 2, .after = "b" }, NULL), "c d");
    CHECK_STR(names(f, (weir_op_schedules){ .limit = 2, .after = "bb" }, NULL), "c d");
    CHECK_STR(names(f, (weir_op_schedules){ .limit = 2, .after = "e" }, NULL), "");
    CHECK_INT(take_away(f, "c", WEIR_ANY_VERSION), WEIR_OK);
    CHECK_STR(all(f), "a b d e");
}

static void a_tick_says_what_is_due(fixture *f)
{
    int64_t next_at, start = f->now;
    CHECK(!tick_says_due(f, NULL));
    CHECK_INT(put(f, "b", 1, start + 1000, 0, NULL), WEIR_OK);
    CHECK_DUE(f, start + 1000);
    CHECK_INT(put(f, "a", 1, start + 2000, 0, NULL), WEIR_OK);
    CHECK_INT(put(f, "never", 1, INT64_MAX, 0, NULL), WEIR_OK);
    CHECK(!tick_says_due(f, &next_at));
    CHECK(next_at <= start + 1000);
    CHECK_STR(due(f), "");
    f->now = start + 1000;
    CHECK(tick_says_due(f, &next_at));
    CHECK(next_at > f->now || looks_around(f));         /* a TICK alone would not end it */
    CHECK_STR(due(f), "b");
    f->now = start + 2500;
    CHECK_STR(due(f), "b a");
    CHECK_STR(names(f, (weir_op_schedules){ .due = true, .limit = 1 }, NULL), "b");
    CHECK_INT(put(f, "b", 1, start + 9000, WEIR_ANY_VERSION, NULL), WEIR_OK);
    CHECK(tick_says_due(f, NULL));
    CHECK_STR(due(f), "a");
    CHECK_INT(take_away(f, "a", WEIR_ANY_VERSION), WEIR_OK);
    CHECK(!tick_says_due(f, &next_at));
    CHECK(next_at <= start + 9000);
}

static void bad_rows_are_refused(fixture *f)
{
    weir_op op = { .kind = WEIR_OP_SCHEDULE,
                   .u.schedule = { .name = "s", .record = "{}", .due_at = 1 } };
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    op.u.schedule.record = "{\"name\":\"s\",\"when\":\"0 0 30 2 *\",\"job\":{\"type\":\"a\"}}";
    op.u.schedule.len = 0;
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    op.u.schedule.record = record_of("other", 1);
    op.u.schedule.len = 0;
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    op.u.schedule.name = "";
    CHECK_INT(run(f, &op), WEIR_EINVAL);
    CHECK_STR(all(f), "");
}

static void schedules_stay_when_the_store_is_closed(fixture *f)
{
    int64_t at = f->now + 1000;
    CHECK_INT(put(f, "s", 4, at, 0, NULL), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_STR(all(f), "s");
    f->now = at;
    CHECK(tick_says_due(f, NULL));
    CHECK_STR(due(f), "s");
}

const conformance_case cases_schedule[] = {
    CASE(a_schedule_is_kept_as_it_is),
    CASE(only_who_has_seen_it_last_changes_it),
    CASE(pages_are_in_the_order_of_names),
    CASE(a_tick_says_what_is_due),
    CASE(bad_rows_are_refused),
    PERSISTENT_CASE(schedules_stay_when_the_store_is_closed),
    { 0 }
};
