/* test_sqlite_file.c - what people do to the files under an owner: delete, rename, replace, link
 * and copy them. It is noticed and said, and nothing that was acknowledged is overwritten. */
#include "support/store_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite/outside.h"
#include "store/sqlite/sq.h"

/* A path in the fixture's directory, in one of a few buffers. */
static const char *in(const fixture *f, const char *name)
{
    static char buf[4][TEMPDIR_MAX + 64];
    static int  next;
    char       *out = buf[next++ % 4];
    snprintf(out, sizeof buf[0], "%s/%s", f->dir, name);
    return out;
}

static bool exists(const fixture *f, const char *name)
{
    return access(in(f, name), F_OK) == 0;
}

static void copy(const fixture *f, const char *from, const char *to)
{
    char    bytes[65536];
    ssize_t n;
    int     a = open(in(f, from), O_RDONLY);
    int     b = open(in(f, to), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(a >= 0 && b >= 0);
    while ((n = read(a, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(b, bytes, (size_t)n), n);
    close(a);
    close(b);
}

/* Another store, opened by another process: its code and what it says. */
static weir_code open_elsewhere(const fixture *f, const char *name, bool read_only, char said[240])
{
    int   fd[2], status;
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        char        url[TEMPDIR_MAX + 80];
        weir_store *store;
        weir_error  err = { .msg = "" };
        weir_env    env = f->env;
        env.read_only = read_only;
        snprintf(url, sizeof url, "sqlite:%s", in(f, name));
        weir_code rc = weir__store_open(&store, url, &env, &err);
        if (write(fd[1], err.msg, sizeof err.msg) != (ssize_t)sizeof err.msg)
            _exit(99);
        _exit((int)rc);
    }
    close(fd[1]);
    assert_int_equal(read(fd[0], said, 240), 240);
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (weir_code)WEXITSTATUS(status);
}

/* The path is looked at now and then: adds fail soon, and say why. */
static void adds_fail_soon(fixture *f, const char *why)
{
    weir_added out;
    weir_code  rc = WEIR_OK;
    for (int i = 0; i < 1000 && !rc; i++) {
        rc = try_add(f, &(weir_spec){ .type = "mail" }, &out);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    CHECK_INT(rc, WEIR_EUNAVAIL);
    if (!strstr(f->err.msg, why))
        fail_msg("\"%s\" does not say: %s", f->err.msg, why);
    CHECK(get(f, 1) != NULL);                   /* reading goes on */
    CHECK(strstr(check(f, false)->line[0], why));
}

/* ---- while it is open ---- */

static void a_deleted_file_takes_no_more_jobs(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add(f, "mail");
    CHECK_INT(unlink(in(f, "jobs.db")), 0);
    adds_fail_soon(f, "jobs.db was deleted while it was in use");
    fixture_shut(f);
    CHECK(exists(f, "jobs.db-wal"));            /* all that is left of them */
    CHECK_INT(fixture_open_again(f), WEIR_ECORRUPT);
    CHECK(strstr(f->err.msg, "jobs.db is missing, but its log jobs.db-wal has"));
    CHECK(exists(f, "jobs.db-wal") && !exists(f, "jobs.db"));
    fixture_close(f);
}

static void a_renamed_file_can_be_put_back(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add(f, "mail");
    CHECK_INT(rename(in(f, "jobs.db"), in(f, "old.db")), 0);
    adds_fail_soon(f, "jobs.db was renamed while it was in use");
    CHECK_INT(rename(in(f, "old.db"), in(f, "jobs.db")), 0);
    uint64_t id = add(f, "mail");               /* at once */
    CHECK_INT(rename(in(f, "jobs.db"), in(f, "old.db")), 0);
    adds_fail_soon(f, "jobs.db was renamed");
    fixture_shut(f);
    CHECK_INT(fixture_open_again(f), WEIR_ECORRUPT);
    CHECK_INT(rename(in(f, "old.db"), in(f, "jobs.db")), 0);
    CHECK_INT(fixture_open_again(f), WEIR_OK);        /* with what was in the log */
    CHECK(get(f, id) != NULL);
    check_all_is_well(f);
    fixture_close(f);
}

static void a_replaced_file_is_not_written_to(void **state)
{
    (void)state;
    fixture    *f = fixture_open_sqlite();
    struct stat before, after;
    add(f, "mail");
    copy(f, "jobs.db", "copy.db");
    CHECK_INT(stat(in(f, "copy.db"), &before), 0);
    CHECK_INT(rename(in(f, "jobs.db"), in(f, "old.db")), 0);
    CHECK_INT(rename(in(f, "copy.db"), in(f, "jobs.db")), 0);
    adds_fail_soon(f, "jobs.db was replaced by another file while it was in use");
    fixture_shut(f);
    CHECK_INT(stat(in(f, "jobs.db"), &after), 0);
    CHECK_INT(after.st_size, before.st_size);
    CHECK_INT(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    fixture_close(f);
}

/* The bytes of a file. The caller frees them. */
static char *bytes_of(const fixture *f, const char *name, size_t *len)
{
    struct stat st;
    int         fd = open(in(f, name), O_RDONLY);
    assert_true(fd >= 0 && !fstat(fd, &st));
    char *bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(bytes);
    *len = (size_t)st.st_size;
    assert_int_equal(read(fd, bytes, *len), *len);
    close(fd);
    return bytes;
}

static bool is_same_file(const fixture *f, const char *a, const char *b)
{
    size_t n, m;
    char  *x = bytes_of(f, a, &n), *y = bytes_of(f, b, &m);
    bool   same = n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

/* `cp backup.db jobs.db`: the file is the same one, its bytes are others. Adds until the log would
 * be folded many times over. */
static void refuses_after_copy_over(fixture *f, const char *backup)
{
    enum { MANY = 300 };
    static weir_spec  many[MANY];
    static weir_added out[MANY];
    copy(f, backup, "jobs.db");
    for (int i = 0; i < MANY; i++)
        many[i] = (weir_spec){ .type = "mail" };
    weir_code rc = WEIR_OK;
    for (int i = 0; i < 1000 && !rc; i++) {
        rc = try_add(f, &(weir_spec){ .type = "mail" }, out);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    CHECK_INT(rc, WEIR_EUNAVAIL);
    CHECK(strstr(f->err.msg, "jobs.db was overwritten while it was in use"));
    CHECK(strstr(check(f, false)->line[0], "jobs.db was overwritten"));
    for (int i = 0; i < 100; i++)
        CHECK_INT(add_many(f, many, MANY, out), WEIR_EUNAVAIL);
    CHECK(is_same_file(f, backup, "jobs.db"));
    fixture_shut(f);
    CHECK(is_same_file(f, backup, "jobs.db"));
}

/* Another program, such as sqlite3, runs this on the file. */
static void run_elsewhere(const fixture *f, const char *sql)
{
    int   status;
    pid_t pid = fork();
    if (!pid) {
        sqlite3 *db;
        _exit(sqlite3_open(in(f, "jobs.db"), &db) || sqlite3_exec(db, sql, NULL, NULL, NULL));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void add_jobs(fixture *f, int n)
{
    for (int i = 0; i < n; i++)
        add(f, "mail");
}

static void a_copy_over_the_file_is_noticed(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add_jobs(f, 5);
    fixture_shut(f);
    copy(f, "jobs.db", "backup.db");            /* as long as the file will be */
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    add(f, "mail");
    run_elsewhere(f, "PRAGMA wal_checkpoint");  /* till then it is the same as the backup */
    add_jobs(f, 2);                             /* in a new log */
    check_all_is_well(f);
    refuses_after_copy_over(f, "backup.db");
    CHECK(fixture_open_again(f) != WEIR_OK);    /* the log is not that of the copy */
    CHECK(is_same_file(f, "backup.db", "jobs.db"));
    CHECK_INT(unlink(in(f, "jobs.db-wal")), 0);
    unlink(in(f, "jobs.db-shm"));
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    CHECK(get(f, 5) != NULL && get(f, 6) == NULL);
    check_all_is_well(f);
    fixture_close(f);
}

static void a_copy_of_sqlite_over_the_file_is_noticed(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    char     sql[TEMPDIR_MAX + 100];
    add_jobs(f, 5);
    snprintf(sql, sizeof sql, "VACUUM INTO '%s'", in(f, "backup.db"));
    run_elsewhere(f, sql);
    refuses_after_copy_over(f, "backup.db");
    fixture_close(f);
}

static void an_emptied_file_is_noticed_and_can_be_put_back(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add_jobs(f, 5);
    copy(f, "jobs.db", "same.db");
    CHECK_INT(truncate(in(f, "jobs.db"), 0), 0);
    weir_added out;
    weir_code  rc = WEIR_OK;
    for (int i = 0; i < 1000 && !rc; i++) {
        rc = try_add(f, &(weir_spec){ .type = "mail" }, &out);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    CHECK_INT(rc, WEIR_EUNAVAIL);
    CHECK(strstr(f->err.msg, "jobs.db was overwritten while it was in use"));
    copy(f, "same.db", "jobs.db");
    add(f, "mail");
    check_all_is_well(f);
    fixture_close(f);
}

/* Another program may fold the log in, and change the time of the file. */
static void a_checkpoint_by_another_program_is_none(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    for (int round = 0; round < 20; round++) {
        add_jobs(f, 20);
        run_elsewhere(f, "PRAGMA wal_checkpoint");
        nanosleep(&(struct timespec){ .tv_nsec = 11000000 }, NULL);
    }
    check_all_is_well(f);
    reopen(f);
    check_all_is_well(f);
    fixture_close(f);
}

static void a_lost_log_is_noticed(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add(f, "mail");
    CHECK_INT(rename(in(f, "jobs.db-wal"), in(f, "log")), 0);
    adds_fail_soon(f, "jobs.db has lost its log");
    CHECK_INT(rename(in(f, "log"), in(f, "jobs.db-wal")), 0);
    add(f, "mail");
    check_all_is_well(f);
    fixture_close(f);
}

/* ---- other names, other owners ---- */

static void a_second_name_is_refused(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    char     said[240];
    add(f, "mail");
    CHECK_INT(link(in(f, "jobs.db"), in(f, "again.db")), 0);
    CHECK_INT(open_elsewhere(f, "again.db", false, said), WEIR_EINVAL);
    CHECK(strstr(said, "again.db has 2 names (hard links)"));
    CHECK_INT(open_elsewhere(f, "again.db", true, said), WEIR_EINVAL);
    adds_fail_soon(f, "jobs.db has got a second name (hard link)");
    CHECK_INT(unlink(in(f, "again.db")), 0);
    add(f, "mail");
    check_all_is_well(f);
    fixture_close(f);
}

static void without_its_mark_it_still_has_an_owner(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    char     said[240];
    add(f, "mail");
    CHECK_INT(unlink(in(f, "jobs.db-owner")), 0);
    CHECK_INT(open_elsewhere(f, "jobs.db", false, said), WEIR_EBUSY);
    CHECK(strstr(said, "jobs.db belongs to another process"));
    weir_store *store;
    CHECK_INT(weir__store_open(&store, f->url, &f->env, &f->err), WEIR_EBUSY);
    CHECK_INT(open_elsewhere(f, "jobs.db", true, said), WEIR_OK);
    add(f, "mail");                             /* neither has disturbed the owner */
    check_all_is_well(f);
    fixture_shut(f);
    CHECK_INT(open_elsewhere(f, "jobs.db", false, said), WEIR_OK);
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    fixture_close(f);
}

/* A reader of this process keeps its locks when the owner closes. */
static void a_reader_outlives_the_owner(void **state)
{
    (void)state;
    fixture    *f = fixture_open_sqlite();
    weir_store *reader;
    weir_env    env = f->env;
    char        said[240];
    add(f, "mail");
    env.read_only = true;
    CHECK_INT(weir__store_open(&reader, f->url, &env, &f->err), WEIR_OK);
    fixture_shut(f);
    CHECK_INT(open_elsewhere(f, "jobs.db", false, said), WEIR_OK);
    weir_op  op = { .kind = WEIR_OP_STATS, .now_ms = f->now }, *ops = &op;
    CHECK_INT(reader->ops->run(reader, &ops, 1, &f->err), WEIR_OK);
    CHECK_INT(op.err.code, WEIR_OK);
    CHECK_INT(op.u.stats.stats->all.count[WEIR_STATE_ANY], 1);
    weir_stats_free(op.u.stats.stats);
    reader->ops->close(reader);
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    fixture_close(f);
}

/* ---- copies ---- */

static void f_use(fixture *f, const char *name)
{
    if (f->store)
        fixture_shut(f);
    snprintf(f->url, sizeof f->url, "sqlite:%s?durability=os", in(f, name));
    assert_int_equal(fixture_open_again(f), WEIR_OK);
}

/* What a kill would leave of jobs.db now. */
static void copy_both(const fixture *f, const char *name)
{
    char log[40];
    snprintf(log, sizeof log, "%s-wal", name);
    copy(f, "jobs.db", name);
    copy(f, "jobs.db-wal", log);
}

static bool same_bytes(const fixture *f, const char *a, const char *b)
{
    int  x, y;
    FILE *one = fopen(in(f, a), "rb"), *other = fopen(in(f, b), "rb");
    assert_true(one && other);
    do {
        x = getc(one);
        y = getc(other);
    } while (x == y && x != EOF);
    fclose(one);
    fclose(other);
    return x == y;
}

/* As a process that stays open does. */
static void f_stay(fixture *f)
{
    f->store->ops->want(f->store, 0);
}

static void lacks_its_log(const fixture *f, const char *name)
{
    char said[240], want[120];
    snprintf(want, sizeof want, "%s was copied without its log %s-wal", name, name);
    copy(f, name, "file.before");
    for (int read_only = 0; read_only < 2; read_only++) {
        CHECK_INT(open_elsewhere(f, name, read_only, said), WEIR_ECORRUPT);
        CHECK(strstr(said, want) && strstr(said, "or mend "));
        CHECK(same_bytes(f, name, "file.before"));
    }
}

static void has_jobs(fixture *f, const char *name, uint64_t jobs)
{
    f_use(f, name);
    CHECK_INT(stats(f)->all.count[WEIR_STATE_ANY], jobs);
    check_all_is_well(f);
    fixture_shut(f);
}

static void a_copy_without_its_log_is_refused(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    f_stay(f);
    add(f, "mail");
    copy(f, "jobs.db", "first.db");             /* from the first commit on */
    add(f, "mail");
    copy(f, "jobs.db", "second.db");
    copy_both(f, "whole.db");
    fixture_shut(f);
    copy(f, "jobs.db", "closed.db");            /* closing has folded the log in */
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    f_stay(f);
    copy(f, "jobs.db", "opened.db");            /* nothing is only in the log yet */
    add(f, "mail");
    copy(f, "jobs.db", "third.db");
    fixture_shut(f);
    lacks_its_log(f, "first.db");
    lacks_its_log(f, "second.db");
    lacks_its_log(f, "third.db");
    has_jobs(f, "whole.db", 2);
    has_jobs(f, "closed.db", 2);
    has_jobs(f, "opened.db", 2);
    has_jobs(f, "jobs.db", 3);
    f->env.without_log = true;                  /* what it has is accepted */
    f_use(f, "second.db");
    const weir_report *r = check(f, true);
    CHECK(r->n == 1 && r->mended == 1 && strstr(r->line[0], "log of the file was missing"));
    check_all_is_well(f);
    fixture_shut(f);
    f->env.without_log = false;
    has_jobs(f, "second.db", 1);
    fixture_close(f);
}

/* Whenever a kill comes, the log is there. The next owner closes cleanly, also if it is brief. */
static void a_log_that_a_kill_has_left_is_used(void **state)
{
    (void)state;
    static const char *const left[] = { "one.db", "two.db", "three.db" };
    fixture *f = fixture_open_sqlite();
    f_stay(f);
    for (int i = 0; i < 3; i++) {
        add(f, "mail");
        copy_both(f, left[i]);
    }
    for (uint64_t i = 0; i < 3; i++) {
        has_jobs(f, left[i], i + 1);
        has_jobs(f, left[i], i + 1);
    }
    fixture_close(f);
}

/* SQLite's own copies are whole, also if they are made again and again. */
static void a_copy_that_sqlite_made_is_whole(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    f_stay(f);
    for (uint64_t i = 1; i <= 20; i++) {
        sqlite3 *to;
        add(f, "mail");
        assert_int_equal(sqlite3_open(in(f, "backup.db"), &to), SQLITE_OK);
        sqlite3_backup *b = sqlite3_backup_init(to, "main", ((sq_store *)f->store)->db, "main");
        CHECK_INT(sqlite3_backup_step(b, -1), SQLITE_DONE);
        CHECK_INT(sqlite3_backup_finish(b), SQLITE_OK);
        sqlite3_close(to);
        char said[240];
        if (open_elsewhere(f, "backup.db", true, said))
            fail_msg("copy %d: %s", (int)i, said);
    }
    char sql[TEMPDIR_MAX + 100];
    snprintf(sql, sizeof sql, "VACUUM INTO '%s'", in(f, "vacuum.db"));
    CHECK_INT(sqlite3_exec(((sq_store *)f->store)->db, sql, NULL, NULL, NULL), SQLITE_OK);
    has_jobs(f, "backup.db", 20);
    has_jobs(f, "vacuum.db", 20);
    fixture_close(f);
}

static void a_file_without_tables_names_its_log(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    sqlite3 *db;
    fixture_shut(f);
    assert_int_equal(sqlite3_open(in(f, "bare.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; CREATE TABLE x(y); DROP TABLE x",
                                  NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    char said[240];
    CHECK_INT(open_elsewhere(f, "bare.db", false, said), WEIR_ECORRUPT);
    CHECK(strstr(said, "bare.db has no tables: its log bare.db-wal is missing"));
    CHECK_INT(open_elsewhere(f, "bare.db", true, said), WEIR_ECORRUPT);
    CHECK_INT(fixture_open_again(f), WEIR_OK);
    fixture_close(f);
}

/* ---- logs of other files ---- */

static void is_refused(const fixture *f, const char *name)
{
    char said[240], want[120], log[40];
    snprintf(want, sizeof want, "%s-wal is not the log of this %s", name, name);
    snprintf(log, sizeof log, "%s-wal", name);
    copy(f, name, "file.before");
    copy(f, log, "log.before");
    for (int read_only = 0; read_only < 2; read_only++) {
        CHECK_INT(open_elsewhere(f, name, read_only, said), WEIR_ECORRUPT);
        CHECK(strstr(said, want) && strstr(said, "or move"));
        CHECK(same_bytes(f, name, "file.before") && same_bytes(f, log, "log.before"));
    }
}

static void a_log_of_another_file_is_refused(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    for (int i = 0; i < 3; i++)
        add(f, "mail");
    copy_both(f, "b.db");
    copy_both(f, "control.db");
    f_use(f, "control.db");
    CHECK_INT(stats(f)->all.count[WEIR_STATE_ANY], 3);
    f_use(f, "a.db");
    add(f, "other");
    fixture_shut(f);
    copy(f, "a.db", "b.db");                    /* b.db-wal stays */
    is_refused(f, "b.db");
    CHECK_INT(rename(in(f, "b.db-wal"), in(f, "log")), 0);
    f_use(f, "b.db");
    CHECK_INT(stats(f)->all.count[WEIR_STATE_ANY], 1);
    check_all_is_well(f);
    fixture_close(f);
}

static void the_log_of_a_newer_file_is_refused(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    add(f, "mail");
    fixture_shut(f);
    copy(f, "jobs.db", "backup.db");
    for (int i = 0; i < 3; i++) {               /* each of them begins a log */
        CHECK_INT(fixture_open_again(f), WEIR_OK);
        add(f, "mail");
        if (i < 2)
            fixture_shut(f);
    }
    copy(f, "jobs.db-wal", "backup.db-wal");
    is_refused(f, "backup.db");
    fixture_close(f);
}

/* Whenever the owner is killed: before, in and after checkpoints, and with marks or without. */
static void its_own_log_is_never_refused(void **state)
{
    (void)state;
    fixture *f = fixture_open_sqlite();
    char     said[240];
    for (int i = 1; i <= 40; i++) {
        add(f, "mail");
        if (i % 3 == 0 || i % 7 < 2)            /* so the next commit begins a log */
            sqlite3_wal_checkpoint_v2(((sq_store *)f->store)->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                      NULL, NULL);
        copy_both(f, "left.db");
        if (open_elsewhere(f, "left.db", i % 2, said))
            fail_msg("after %d: %s", i, said);
        unlink(in(f, "left.db-owner"));
        if (i % 11 == 0) {                      /* and from a log that was left behind */
            copy_both(f, "next.db");
            fixture_shut(f);
            CHECK_INT(rename(in(f, "next.db"), in(f, "jobs.db")), 0);
            CHECK_INT(rename(in(f, "next.db-wal"), in(f, "jobs.db-wal")), 0);
            CHECK_INT(fixture_open_again(f), WEIR_OK);
        }
    }
    CHECK_INT(stats(f)->all.count[WEIR_STATE_ANY], 40);
    check_all_is_well(f);
    fixture_close(f);
}

/* ---- file systems ---- */

static void network_file_systems_are_recognised(void **state)
{
    (void)state;
    char type[40];
    assert_string_equal(weir__sq_network(0x6969, ""), "nfs");
    assert_string_equal(weir__sq_network(0xff534d42, ""), "cifs");
    assert_string_equal(weir__sq_network(0x01021997, ""), "9p");
    assert_string_equal(weir__sq_network(SQ_FUSE_MAGIC, "fuse.sshfs"), "fuse.sshfs");
    assert_null(weir__sq_network(SQ_FUSE_MAGIC, "fuse.gocryptfs"));
    assert_null(weir__sq_network(SQ_FUSE_MAGIC, "fuse"));
    assert_null(weir__sq_network(0xef53, "fuse.sshfs"));       /* ext4 */
    assert_null(weir__sq_network(0x01021994, ""));             /* tmpfs */
    static const char line[] = "36 35 0:47 / /mnt/a\\040-\\040b rw,noatime shared:1 master:2 - "
                               "fuse.sshfs ann@host:/ rw,user_id=0\n";
    assert_true(weir__sq_mount_type(line, makedev(0, 47), type, sizeof type));
    assert_string_equal(type, "fuse.sshfs");
    assert_false(weir__sq_mount_type(line, makedev(1, 47), type, sizeof type));
    assert_false(weir__sq_mount_type("36 35 0:47 / /mnt", makedev(0, 47), type, sizeof type));
    assert_false(weir__sq_mount_type("", 0, type, sizeof type));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deleted_file_takes_no_more_jobs),
        cmocka_unit_test(a_renamed_file_can_be_put_back),
        cmocka_unit_test(a_replaced_file_is_not_written_to),
        cmocka_unit_test(a_copy_over_the_file_is_noticed),
        cmocka_unit_test(a_copy_of_sqlite_over_the_file_is_noticed),
        cmocka_unit_test(an_emptied_file_is_noticed_and_can_be_put_back),
        cmocka_unit_test(a_checkpoint_by_another_program_is_none),
        cmocka_unit_test(a_lost_log_is_noticed),
        cmocka_unit_test(a_second_name_is_refused),
        cmocka_unit_test(without_its_mark_it_still_has_an_owner),
        cmocka_unit_test(a_reader_outlives_the_owner),
        cmocka_unit_test(a_copy_without_its_log_is_refused),
        cmocka_unit_test(a_log_that_a_kill_has_left_is_used),
        cmocka_unit_test(a_copy_that_sqlite_made_is_whole),
        cmocka_unit_test(a_file_without_tables_names_its_log),
        cmocka_unit_test(a_log_of_another_file_is_refused),
        cmocka_unit_test(the_log_of_a_newer_file_is_refused),
        cmocka_unit_test(its_own_log_is_never_refused),
        cmocka_unit_test(network_file_systems_are_recognised),
    };
    return cmocka_run_group_tests_name("sqlite files", tests, NULL, NULL);
}
