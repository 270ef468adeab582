/* case_trend.c - records of trends: joined, kept for a time, read by slot and type. */
#include "conformance/conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000
#define HOUR_MS   3600000

static weir_code put(fixture *f, weir_trend_step step, int64_t slot, const char *type,
                     const char *record)
{
    weir_trend_row row = { .type = type, .record = record, .step = step, .slot = slot };
    weir_op        op = { .kind = WEIR_OP_TREND_PUT, .u.trend_put = { .rows = &row, .n = 1 } };
    return run(f, &op);
}

/* "TYPE slots behind `from`: record; ...". */
static const char *got(fixture *f, weir_trend_step step, const char *type, int64_t from, size_t n)
{
    static char text[2000];
    weir_op     op = { .kind = WEIR_OP_TREND_GET,
                       .u.trend_get = { .type = type, .step = step, .from = from, .n = n } };
    *text = 0;
    CHECK_INT(run(f, &op), WEIR_OK);
    for (size_t i = 0; i < op.u.trend_get.rows->n; i++) {
        const weir_trend_row *row = &op.u.trend_get.rows->row[i];
        size_t                len = strlen(text);
        CHECK_INT(row->step, step);
        snprintf(text + len, sizeof text - len, "%s%s %" PRId64 ": %s", len ? "; " : "", row->type,
                 row->slot - from, row->record);
    }
    weir__op_free(&op);
    return text;
}

static void a_record_is_kept_and_joined(fixture *f)
{
    int64_t slot = f->now / MINUTE_MS;
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "mail", slot, 5), "");
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "mail", "r7=2 added=3 w0=1"), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "mail", slot, 1), "mail 0: added=3 w0=1 r7=2");
    const char *more = "added=2 complete=1 backlog=0 w0=5";
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "mail", more), WEIR_OK);
    const char *joined = "mail 0: added=3 complete=1 backlog=0 w0=5 r7=2";
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "mail", slot, 1), joined);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "mail", more), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "mail", slot, 1), joined);
    more = "lost=99999999999999 r1=4294967295";
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "mail", more), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "mail", slot, 1),
              "mail 0: added=3 complete=1 lost=99999999999999 backlog=0 w0=5 r1=4294967295 r7=2");
    CHECK_STR(got(f, WEIR_TREND_HOUR, "mail", f->now / HOUR_MS, 1), "");
}

static void rows_come_by_slot_and_type(fixture *f)
{
    int64_t        slot = f->now / MINUTE_MS;
    weir_trend_row rows[] = {
        { .type = "b", .record = "added=2", .slot = slot },
        { .type = "", .record = "added=3", .slot = slot },
        { .type = "a b'\"%", .record = "added=1", .slot = slot },
        { .type = "b", .record = "added=4", .slot = slot - 2 },
        { .type = "b", .record = "failed=1", .slot = slot },
        { .type = "b", .record = "added=9", .step = WEIR_TREND_HOUR, .slot = f->now / HOUR_MS },
    };
    weir_op op = { .kind = WEIR_OP_TREND_PUT,
                   .u.trend_put = { .rows = rows, .n = sizeof rows / sizeof *rows } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, NULL, slot - 5, 10),
              "b 3: added=4;  5: added=3; a b'\"% 5: added=1; b 5: added=2 failed=1");
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "b", slot - 2, 2), "b 0: added=4");
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "", slot - 100, 1440), " 100: added=3");
    CHECK_STR(got(f, WEIR_TREND_HOUR, NULL, f->now / HOUR_MS, 1), "b 0: added=9");
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "c", slot - 5, 10), "");
}

static void old_records_go(fixture *f)
{
    int64_t minute = f->now / MINUTE_MS, hour = f->now / HOUR_MS;
    int64_t first = minute - WEIR_TREND_MINUTES + 1;
    CHECK_INT(put(f, WEIR_TREND_MINUTE, first, "a", "added=1"), WEIR_OK);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, first - 1, "a", "added=1"), WEIR_OK);    /* left out */
    CHECK_INT(put(f, WEIR_TREND_HOUR, hour - WEIR_TREND_HOURS + 1, "a", "added=1"), WEIR_OK);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, minute + 600, "a", "added=1"), WEIR_OK);    /* left out */
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "a", first - 1, 1440), "a 1: added=1");
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "a", minute, 1440), "");
    CHECK_STR(got(f, WEIR_TREND_HOUR, "a", hour - WEIR_TREND_HOURS, 10), "a 1: added=1");
    f->now += MINUTE_MS;
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "a", first - 1, 1440), "");
    CHECK_INT(put(f, WEIR_TREND_MINUTE, minute, "a", "added=1"), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "a", first - 1, 1440), "");
    f->now -= MINUTE_MS;                    /* it was removed, not only hidden */
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "a", first - 1, 1440), "");
}

static void a_slot_has_a_bounded_number_of_types(fixture *f)
{
    char           name[WEIR_TREND_TYPES + 2][12];
    weir_trend_row rows[WEIR_TREND_TYPES + 2];
    int64_t        slot = f->now / MINUTE_MS;
    for (size_t i = 0; i < WEIR_TREND_TYPES + 2; i++) {
        snprintf(name[i], sizeof name[i], "t%03zu", i);
        rows[i] = (weir_trend_row){ .type = name[i], .record = "added=1", .slot = slot };
    }
    weir_op op = { .kind = WEIR_OP_TREND_PUT,
                   .u.trend_put = { .rows = rows, .n = WEIR_TREND_TYPES + 2 } };
    CHECK_INT(run(f, &op), WEIR_OK);
    op = (weir_op){ .kind = WEIR_OP_TREND_GET, .u.trend_get = { .from = slot, .n = 1 } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(op.u.trend_get.rows->n, WEIR_TREND_TYPES);
    weir__op_free(&op);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "t200", slot, 1), "t200 0: added=1");
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "t201", slot, 1), "");
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "t200", "added=2"), WEIR_OK);     /* it is there */
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "t200", slot, 1), "t200 0: added=2");
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot - 1, "t201", "added=1"), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_MINUTE, "t201", slot - 1, 2), "t201 0: added=1");
}

static void bad_trends_are_refused(fixture *f)
{
    int64_t slot = f->now / MINUTE_MS;
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "a", "added"), WEIR_EINVAL);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "a", "w128=1"), WEIR_EINVAL);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "a", "added=100000000000000"), WEIR_EINVAL);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, slot, "a\nb", "added=1"), WEIR_EINVAL);
    CHECK_INT(put(f, WEIR_TREND_MINUTE, -1, "a", "added=1"), WEIR_EINVAL);
    CHECK_INT(put(f, WEIR_TREND_STEPS, slot, "a", "added=1"), WEIR_EINVAL);
    weir_op op = { .kind = WEIR_OP_TREND_GET, .u.trend_get = { .type = "a", .n = 1441 } };
    CHECK_INT(run(f, &op), WEIR_ELIMIT);
    op.u.trend_get = (weir_op_trend_get){ .n = 11 };
    CHECK_INT(run(f, &op), WEIR_ELIMIT);
    op.u.trend_get = (weir_op_trend_get){ .n = 0 };
    CHECK_INT(run(f, &op), WEIR_ELIMIT);
}

static void trends_stay_when_the_store_is_closed(fixture *f)
{
    int64_t slot = f->now / HOUR_MS;
    CHECK_INT(put(f, WEIR_TREND_HOUR, slot, "a", "added=7 r5=1"), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_STR(got(f, WEIR_TREND_HOUR, "a", slot, 1), "a 0: added=7 r5=1");
}

const conformance_case cases_trend[] = {
    CASE(a_record_is_kept_and_joined),
    CASE(rows_come_by_slot_and_type),
    CASE(old_records_go),
    CASE(a_slot_has_a_bounded_number_of_types),
    CASE(bad_trends_are_refused),
    PERSISTENT_CASE(trends_stay_when_the_store_is_closed),
    { 0 }
};
