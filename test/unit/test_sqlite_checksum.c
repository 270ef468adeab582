/* test_sqlite_checksum.c - bytes that change in the file by themselves: they are noticed, the job
 * is not run, and all others are. */
#include "support/store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "store/sqlite/sq.h"

static void path_of(const fixture *f, char out[TEMPDIR_MAX + 64])
{
    snprintf(out, TEMPDIR_MAX + 64, "%s/jobs.db", f->dir);
}

/* Change the file while it is closed, by SQL: its indexes agree. */
static void damage(fixture *f, const char *sql)
{
    char     path[TEMPDIR_MAX + 64], *why = NULL;
    sqlite3 *db;
    fixture_shut(f);
    path_of(f, path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why))
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
    CHECK_INT(fixture_open_again(f), WEIR_OK);
}

static bool says(const weir_report *r, const char *text)
{
    for (size_t i = 0; i < r->n; i++)
        if (strstr(r->line[i], text))
            return true;
    return false;
}

/* ---- the checksum itself ---- */

static void both_ways_agree(void **state)
{
    (void)state;
    char     bytes[300];
    uint64_t words[32];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37 + 11);
    memcpy(words, bytes, sizeof words);
    CHECK_INT(weir__crc32c_slow(0xffffffff, "123456789", 9) ^ 0xffffffff, 0xe3069283);
    CHECK_INT(weir__crc32c(0xffffffff, "123456789", 9) ^ 0xffffffff, 0xe3069283);
    for (size_t n = 0; n < sizeof bytes; n++)
        CHECK_INT(weir__crc32c(7, bytes, n), weir__crc32c_slow(7, bytes, n));
    CHECK_INT(weir__crc32c_words(7, words, 32), weir__crc32c_slow(7, bytes, sizeof words));
}

/* ---- every byte and every column ---- */

static unsigned char *read_file(const char *path, size_t *n)
{
    struct stat st;
    int         fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && !fstat(fd, &st));
    unsigned char *bytes = malloc((size_t)st.st_size);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *n = (size_t)st.st_size;
    return bytes;
}

static void write_file(const char *path, const unsigned char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

/* A job with something in every column. */
static void add_full_job(fixture *f)
{
    add_spec(f, &(weir_spec){
        .type = "mail", .data = "{\"to\":\"marker-of-this-job\"}", .priority = -7, .attempts = 4,
        .delay_ms = 50, .backoff = { WEIR_BACKOFF_EXPONENTIAL, 100, 900, 30 }, .ttl_ms = 77777,
        .deadline_at = f->now + 9999999, .unique = "key", .max_lost = 8,
        .remove_on_complete = true, .search = true, .search_keys = "to" });
    later(f, 50);
    const weir_job *job = take(f, "mail");
    progress(f, job, 33, "[3]");
    fail_job(f, job, "why");
}

/* Is something wrong with the file, as a reader sees it? One that needs no events, for which it
 * would wait until an owner is there. */
static bool noticed(fixture *f)
{
    f->env.read_only = true;
    f->env.test_clock = false;
    bool bad = weir__store_open(&f->store, f->url, &f->env, &f->err) != WEIR_OK;
    if (!bad) {
        weir_op op = { .kind = WEIR_OP_CHECK };
        bad = run(f, &op) != WEIR_OK || op.u.check.report->n > 0;
        weir_report_free(op.u.check.report);
        fixture_shut(f);
    }
    f->env.read_only = false;
    f->env.test_clock = true;
    return bad;
}

static void every_byte_of_a_job_counts(void **state)
{
    (void)state;
    enum { PAGE = 4096, LEAF = 0x0d };
    static const unsigned char flips[] = { 0x01, 0x80, 0x10, 0x42, 0x08 };
    fixture *f = fixture_open_sqlite();
    char     path[TEMPDIR_MAX + 64];
    size_t   n, flipped = 0;
    add_full_job(f);
    fixture_shut(f);
    path_of(f, path);
    unsigned char *bytes = read_file(path, &n);
    static const char marker[] = "{\"to\":\"marker-of-this-job\"}";
    unsigned char *at = memmem(bytes, n, marker, sizeof marker - 1);
    assert_non_null(at);
    unsigned char *page = bytes + (size_t)(at - bytes) / PAGE * PAGE;
    assert_int_equal(page[0], LEAF);
    size_t cell = (size_t)page[8] << 8 | page[9];       /* the only one: up to the page's end */
    for (size_t i = cell; i < PAGE; i++) {
        page[i] ^= flips[i % sizeof flips];
        write_file(path, bytes, n);
        if (!noticed(f))
            fail_msg("byte %zu of the record was changed by %#x, and nobody noticed", i - cell,
                     flips[i % sizeof flips]);
        page[i] ^= flips[i % sizeof flips];
        flipped++;
    }
    assert_true(flipped > 150);
    write_file(path, bytes, n);
    assert_false(noticed(f));
    free(bytes);
    fixture_close(f);
}

static void every_column_counts(void **state)
{
    (void)state;
    static const char *const columns[] = {
#define X(name, life, sort) "\"" #name "\"",
        SQL_COLUMNS(X)
#undef X
    };
    for (size_t i = SQL_C_id + 1; i < sizeof columns / sizeof *columns; i++) {
        fixture *f = fixture_open_sqlite();
        char     sql[300];
        add_full_job(f);
        add(f, "other");            /* so that type can be one that exists */
        snprintf(sql, sizeof sql, "UPDATE job SET %s = CASE typeof(%s) WHEN 'text' THEN %s || ' '"
                 " WHEN 'null' THEN 'x' ELSE %s + 1 END WHERE id = 1", columns[i], columns[i],
                 columns[i], columns[i]);
        damage(f, sql);
        if (!check(f, false)->n)
            fail_msg("%s was changed, and check says nothing", columns[i]);
        check(f, true);
        check_all_is_well(f);
        fixture_close(f);
    }
}

static void rows_cannot_be_swapped(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add_spec(f, &(weir_spec){ .type = "a", .data = "1" });
    add_spec(f, &(weir_spec){ .type = "a", .data = "2" });
    damage(f, "UPDATE job SET id = 3 WHERE id = 1; UPDATE job SET id = 1 WHERE id = 2;"
              "UPDATE job SET id = 2 WHERE id = 3");
    CHECK_INT(check(f, false)->n, 2);
    fixture_close(f);
}

static void lines_of_a_log_count(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add(f, "a");
    log_line(f, 1, "one");
    log_line(f, 1, "two");
    damage(f, "UPDATE log SET text = 'tow' WHERE n = 2");
    CHECK(says(check(f, false), "job 1: line 2 of its log does not match its checksum"));
    CHECK_INT(check(f, true)->mended, 1);
    check_all_is_well(f);
    fixture_close(f);
}

/* ---- what becomes of the job ---- */

static void a_damaged_job_is_not_run(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    for (int i = 0; i < 5; i++)
        add(f, "mail");
    damage(f, "UPDATE job SET data = '{\"amount\":1000}' WHERE id IN (1, 3)");
    CHECK(says(check(f, false), "job 3: its record does not match its checksum"));
    events(f);
    static const uint64_t sound[] = { 2, 4, 5 };
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(take(f, "mail")->id, sound[i]);
    CHECK(!take(f, "mail"));
    CHECK_STATE(f, 1, WEIR_STATE_FAILED);
    CHECK_STR(get(f, 3)->error, SQ_DAMAGED_TEXT);
    CHECK_INT(count(f, WEIR_STATE_FAILED, "mail"), 2);
    CHECK_INT(count(f, WEIR_STATE_INACTIVE, "mail"), 0);
    CHECK_INT(retry_job(f, 3), WEIR_ECORRUPT);
    CHECK(strstr(f->err.msg, "job 3 is damaged"));
    CHECK(says(check(f, false), "job 3: its record does not match its checksum"));
    CHECK_INT(remove_job(f, 1), WEIR_OK);
    CHECK(says(check(f, true), "job 3: its record does not match its checksum; kept as it is"));
    check_all_is_well(f);
    CHECK_INT(retry_job(f, 3), WEIR_OK);            /* somebody has looked at it */
    CHECK_INT(take(f, "mail")->id, 3);
    fixture_close(f);
}

static void so_with_several_types(void **state)
{
    (void)state;
    fixture        *f = fixture_open_sqlite();
    const weir_job *got[4];
    for (int i = 0; i < 2; i++) {
        add(f, "a");
        add(f, "b");
    }
    damage(f, "UPDATE job SET max_attempts = 99 WHERE id = 1;"
              "UPDATE job SET ttl_ms = 1 WHERE id = 4");
    CHECK_INT(take_some(f, (const char *[]){ "a", "b", NULL }, 4, got), 2);
    CHECK_INT(got[0]->id, 2);
    CHECK_INT(got[1]->id, 3);
    CHECK_STATE(f, 1, WEIR_STATE_FAILED);
    CHECK_STATE(f, 4, WEIR_STATE_FAILED);
    fixture_close(f);
}

static void time_sets_damaged_jobs_aside(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 100 });
    add(f, "b");
    take(f, "b");
    damage(f, "UPDATE job SET priority = 5 WHERE id = 1");
    later(f, 100);
    CHECK_STATE(f, 1, WEIR_STATE_FAILED);
    CHECK_STATE(f, 2, WEIR_STATE_INACTIVE);
    f->env.keep_taken = true;
    CHECK_INT(take(f, "b")->id, 3);
    damage(f, "UPDATE job SET worker = 'somebody' WHERE id = 3");
    later(f, LEASE_MS);
    CHECK_STATE(f, 3, WEIR_STATE_FAILED);
    CHECK_INT(check(f, true)->n, 2);
    check_all_is_well(f);
    fixture_close(f);
}

/* Where the indexes disagree with the row, SQLite cannot change it: it is passed over until check
 * mends the file. */
static void a_row_that_no_index_agrees_with_stops_nothing(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    char     path[TEMPDIR_MAX + 64];
    size_t   n;
    for (int i = 0; i < 3; i++)
        add_spec(f, &(weir_spec){ .type = "mail", .priority = 1000 + i,
                                  .data = i ? "{}" : "\"first of three\"" });
    fixture_shut(f);
    path_of(f, path);
    unsigned char *bytes = read_file(path, &n);
    unsigned char *at = memmem(bytes, n, "\"first of three\"", 16);
    assert_non_null(at);
    /* priority and rank are 1000 = 0x03e8: change both, in the row alone */
    for (unsigned char *p = at - 120; p < at; p++)
        if (p[0] == 0x03 && p[1] == 0xe8)
            p[0] = 0x13;
    write_file(path, bytes, n);
    free(bytes);
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    CHECK_INT(take(f, "mail")->id, 2);
    CHECK_INT(take(f, "mail")->id, 3);
    CHECK(!take(f, "mail"));
    CHECK(says(check(f, false), "job 1: its record does not match its checksum"));
    check(f, true);
    CHECK_STATE(f, 1, WEIR_STATE_FAILED);
    check_all_is_well(f);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_agree),
        cmocka_unit_test(every_byte_of_a_job_counts),
        cmocka_unit_test(every_column_counts),
        cmocka_unit_test(rows_cannot_be_swapped),
        cmocka_unit_test(lines_of_a_log_count),
        cmocka_unit_test(a_damaged_job_is_not_run),
        cmocka_unit_test(so_with_several_types),
        cmocka_unit_test(time_sets_damaged_jobs_aside),
        cmocka_unit_test(a_row_that_no_index_agrees_with_stops_nothing),
    };
    return cmocka_run_group_tests_name("sqlite checksums", tests, NULL, NULL);
}
