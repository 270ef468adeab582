/* test_sqlite.c - what is special about jobs in a file: its owner, its readers, its damage. What
 * every store must do is in test/conformance. */
#include "support/store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite/share.h"

#define URL "sqlite:@/jobs.db?durability=os"
enum { PATIENCE_MS = 20000 };       /* for what must happen soon */

static void *f_open(void)
{
    fixture *f = fixture_open(URL);
    assert_non_null(f);
    return f;
}

static sqlite3 *db_of(fixture *f)
{
    return ((sq_store *)f->store)->db;
}

static void sql(sqlite3 *db, const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why))
        fail_msg("%s: %s", text, why);
}

static void file_name(char out[TEMPDIR_MAX + 64], const fixture *f, const char *name)
{
    snprintf(out, TEMPDIR_MAX + 64, "%s/%s", f->dir, name);
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

/* ---- a second view of the file, with a record of events that another thread may write ---- */

typedef struct viewer {
    weir_store     *store;
    weir_env        env;
    weir_error      err;
    pthread_mutex_t lock;
    pthread_cond_t  more;
    size_t          n[WEIR_EVENT_COUNT];
    uint64_t        last_id;
    char            last_text[64];
} viewer;

static int64_t viewer_now(void *ctx)
{
    (void)ctx;
    return FIXTURE_START;
}

static void viewer_emit(void *ctx, const weir_event *e, size_t n)
{
    viewer *v = ctx;
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < n; i++) {
        v->n[e[i].kind]++;
        v->last_id = e[i].id;
        snprintf(v->last_text, sizeof v->last_text, "%s", e[i].text ? e[i].text : "");
    }
    pthread_cond_broadcast(&v->more);
    pthread_mutex_unlock(&v->lock);
}

static void viewer_due(void *ctx, int64_t at)
{
    (void)ctx;
    (void)at;
}

static weir_code viewer_open(viewer *v, const char *url, bool read_only, int64_t wait_ms)
{
    *v = (viewer){ .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };
    v->env = (weir_env){ .read_only = read_only, .wait_owner_ms = wait_ms, .name = "viewer",
                         .now = viewer_now, .emit = viewer_emit, .due = viewer_due, .ctx = v };
    weir_code rc = weir__store_open(&v->store, url, &v->env, &v->err);
    if (!rc)
        v->store->ops->want(v->store, read_only ? WEIR_WANT_EVENTS : 0);
    return rc;
}

static void viewer_close(viewer *v)
{
    if (v->store)
        v->store->ops->close(v->store);
    v->store = NULL;
}

static bool viewer_sees(viewer *v, weir_event_kind kind, size_t n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    pthread_mutex_lock(&v->lock);
    while (v->n[kind] < n && !pthread_cond_timedwait(&v->more, &v->lock, &until))
        continue;
    bool seen = v->n[kind] >= n;
    pthread_mutex_unlock(&v->lock);
    return seen;
}

static weir_code view(viewer *v, weir_op *op)
{
    weir_error err = { 0 };
    op->now_ms = FIXTURE_START;
    assert_int_equal(weir__op_check(op, &err), WEIR_OK);
    assert_int_equal(v->store->ops->run(v->store, &op, 1, &err), WEIR_OK);
    return op->err.code;
}

static uint64_t seen_jobs(viewer *v, weir_state state)
{
    weir_op op = { .kind = WEIR_OP_STATS };
    assert_int_equal(view(v, &op), WEIR_OK);
    uint64_t n = op.u.stats.stats->all.count[state];
    weir_stats_free(op.u.stats.stats);
    return n;
}

/* ---- a child that owns the file ---- */

typedef struct child {
    pid_t pid;
    int   ready, go;        /* it says when it is ready, and then waits for us */
} child;

static pid_t left_child;    /* that has not been waited for; 0: none */

static void child_main(const char *url, int ready, int go)
{
    viewer    v;
    char      byte = 'x';
    weir_job *job;
    if (viewer_open(&v, url, false, 0))
        _exit(3);
    weir_spec  specs[3] = { { .type = "mail", .attempts = 2 }, { .type = "mail" },
                            { .type = "fax" } };
    weir_added added[3];
    weir_op    add_op = { .kind = WEIR_OP_ADD, .u.add = { specs, 3, added, NULL } };
    const char *types[] = { "mail" };
    weir_op    take_op = { .kind = WEIR_OP_TAKE,
                           .u.take = { types, 1, 1, LEASE_MS, "child:1:1", &job, 0 } };
    if (view(&v, &add_op) || view(&v, &take_op) || take_op.u.take.n_jobs != 1)
        _exit(4);
    weir_job_free(job);
    if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        _exit(5);
    viewer_close(&v);
    _exit(0);
}

static child child_start(const char *url)
{
    int   ready[2], go[2];
    char  byte;
    child c;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (!c.pid) {
        close(ready[0]);
        close(go[1]);       /* or it would wait for itself when this process is gone */
        child_main(url, ready[1], go[0]);
    }
    left_child = c.pid;
    close(ready[1]);
    close(go[0]);
    c.ready = ready[0];
    c.go = go[1];
    assert_int_equal(read(c.ready, &byte, 1), 1);
    return c;
}

static int child_end(child *c)
{
    int status;
    close(c->ready);
    close(c->go);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    left_child = 0;
    return status;
}

/* After a case that failed. */
static int drop_child(void **state)
{
    (void)state;
    if (left_child) {
        kill(left_child, SIGKILL);
        waitpid(left_child, NULL, 0);
    }
    left_child = 0;
    return 0;
}

static void url_in(char out[TEMPDIR_MAX + 64], const char *dir)
{
    snprintf(out, TEMPDIR_MAX + 64, "sqlite:%s/jobs.db?durability=os", dir);
}

/* ---- the owner ---- */

static void a_second_queue_of_this_process_is_refused(void **state)
{
    (void)state;
    fixture *f = f_open();
    viewer   v;
    char     pid[32];
    snprintf(pid, sizeof pid, "process %ld (test)", (long)getpid());
    CHECK_INT(viewer_open(&v, f->url, false, 0), WEIR_EBUSY);
    CHECK(strstr(v.err.msg, pid));
    CHECK(strstr(v.err.msg, "jobs.db"));
    CHECK(add(f, "mail") == 1);         /* the owner does not notice */
    fixture_close(f);
}

static void the_owner_is_named_and_waited_for(void **state)
{
    (void)state;
    char   dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 64], pid[32];
    viewer v;
    assert_true(tempdir_make(dir));
    url_in(url, dir);
    child c = child_start(url);
    snprintf(pid, sizeof pid, "process %ld (viewer)", (long)c.pid);
    CHECK_INT(viewer_open(&v, url, false, 0), WEIR_EBUSY);
    CHECK(strstr(v.err.msg, pid));
    CHECK_INT(viewer_open(&v, url, false, 50), WEIR_EBUSY);
    CHECK(write(c.go, "x", 1) == 1);    /* now it closes, and we get the file */
    CHECK_INT(viewer_open(&v, url, false, PATIENCE_MS), WEIR_OK);
    CHECK_INT(child_end(&c), 0);
    CHECK_INT(seen_jobs(&v, WEIR_STATE_ANY), 3);
    viewer_close(&v);
    tempdir_remove(dir);
}

static void a_killed_owner_leaves_all_it_was_told(void **state)
{
    (void)state;
    char   dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 64];
    viewer v;
    assert_true(tempdir_make(dir));
    url_in(url, dir);
    child c = child_start(url);
    kill(c.pid, SIGKILL);
    CHECK(WIFSIGNALED(child_end(&c)));

    CHECK_INT(viewer_open(&v, url, true, 0), WEIR_OK);          /* with its log still there */
    CHECK_INT(seen_jobs(&v, WEIR_STATE_ANY), 3);
    CHECK_INT(seen_jobs(&v, WEIR_STATE_ACTIVE), 1);
    viewer_close(&v);

    CHECK_INT(viewer_open(&v, url, false, 0), WEIR_OK);         /* no owner is in the way */
    CHECK_INT(seen_jobs(&v, WEIR_STATE_INACTIVE), 3);
    CHECK_INT(v.n[WEIR_EVENT_STALLED], 1);
    CHECK_INT(v.n[WEIR_EVENT_ENQUEUE], 1);
    weir_op op = { .kind = WEIR_OP_GET, .u.get = { .id = 1 } };
    CHECK_INT(view(&v, &op), WEIR_OK);
    CHECK_INT(op.u.get.job->lost, 1);
    CHECK_INT(op.u.get.job->delivery, 1);
    weir_job_free(op.u.get.job);
    op = (weir_op){ .kind = WEIR_OP_CHECK };
    CHECK_INT(view(&v, &op), WEIR_OK);
    CHECK_INT(op.u.check.report->n, 0);
    weir_report_free(op.u.check.report);
    viewer_close(&v);
    tempdir_remove(dir);
}

static void nobody_else_may_read_it(void **state)
{
    (void)state;
    static const char *const names[] = { "jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-owner",
                                         "jobs.db-socket" };
    mode_t   mask = umask(0);
    fixture *f = f_open();
    add(f, "mail");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat st;
        char        path[TEMPDIR_MAX + 64];
        file_name(path, f, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    umask(mask);
    char gone[TEMPDIR_MAX + 64];
    f->store->ops->close(f->store);
    f->store = NULL;
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        file_name(gone, f, names[i]);
        assert_int_equal(access(gone, F_OK), -1);
    }
    fixture_close(f);
}

/* ---- readers ---- */

static void a_reader_sees_what_the_owner_does(void **state)
{
    (void)state;
    fixture *f = f_open();
    viewer   v;
    CHECK_INT(viewer_open(&v, f->url, true, 0), WEIR_OK);
    CHECK_INT(seen_jobs(&v, WEIR_STATE_ANY), 0);
    add(f, "mail");
    CHECK_INT(seen_jobs(&v, WEIR_STATE_INACTIVE), 1);
    const weir_job *job = take(f, "mail");
    CHECK_INT(seen_jobs(&v, WEIR_STATE_ACTIVE), 1);
    weir_op op = { .kind = WEIR_OP_GET, .u.get = { .id = 1 } };
    CHECK_INT(view(&v, &op), WEIR_OK);
    CHECK_INT(op.u.get.job->lease_until, 0);        /* the owner alone knows */
    weir_job_free(op.u.get.job);
    finish_with(f, job, "{\"ok\":true}");
    CHECK_INT(view(&v, &op), WEIR_OK);
    CHECK_STR(op.u.get.job->result, "{\"ok\":true}");
    weir_job_free(op.u.get.job);

    op = (weir_op){ .kind = WEIR_OP_REMOVE, .u.remove = { .id = 1 } };
    CHECK_INT(view(&v, &op), WEIR_EREADONLY);
    weir_spec  spec = { .type = "mail" };
    weir_added added;
    op = (weir_op){ .kind = WEIR_OP_ADD, .u.add = { &spec, 1, &added, NULL } };
    CHECK_INT(view(&v, &op), WEIR_EREADONLY);
    op = (weir_op){ .kind = WEIR_OP_CHECK, .u.check = { .mend = true } };
    CHECK_INT(view(&v, &op), WEIR_EREADONLY);
    op = (weir_op){ .kind = WEIR_OP_CHECK };
    CHECK_INT(view(&v, &op), WEIR_OK);
    CHECK_INT(op.u.check.report->n, 0);
    weir_report_free(op.u.check.report);

    f->store->ops->close(f->store);         /* also when nobody owns it */
    f->store = NULL;
    CHECK_INT(seen_jobs(&v, WEIR_STATE_COMPLETE), 1);
    viewer_close(&v);
    fixture_close(f);
}

static void a_reader_hears_of_it_from_one_owner_after_the_other(void **state)
{
    (void)state;
    fixture *f = f_open();
    viewer   v;
    f->store->ops->want(f->store, 0);
    CHECK_INT(viewer_open(&v, f->url, true, 0), WEIR_OK);
    add(f, "mail");
    CHECK(viewer_sees(&v, WEIR_EVENT_ENQUEUE, 1));
    finish_with(f, take(f, "mail"), "[1]");
    CHECK(viewer_sees(&v, WEIR_EVENT_COMPLETE, 1));
    pthread_mutex_lock(&v.lock);
    CHECK_INT(v.n[WEIR_EVENT_START], 1);
    CHECK_INT(v.last_id, 1);
    CHECK_STR(v.last_text, "[1]");
    pthread_mutex_unlock(&v.lock);
    CHECK_INT(reopen(f), WEIR_OK);
    f->store->ops->want(f->store, 0);
    size_t n = 0;
    for (int i = 0; i < PATIENCE_MS / 10 && n < 2; i++) {
        add(f, "mail");                     /* until it has found the new owner */
        nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000000 }, NULL);
        pthread_mutex_lock(&v.lock);
        n = v.n[WEIR_EVENT_ENQUEUE];
        pthread_mutex_unlock(&v.lock);
    }
    CHECK(viewer_sees(&v, WEIR_EVENT_ENQUEUE, 2));
    viewer_close(&v);
    fixture_close(f);
}

/* The owner has no thread that accepts, and is gone right after its commit. */
static void a_reader_hears_of_every_commit_after_it_has_connected(void **state)
{
    (void)state;
    fixture *f = f_open();
    viewer   v, w;
    CHECK_INT(viewer_open(&v, f->url, true, 0), WEIR_OK);
    CHECK_INT(viewer_open(&w, f->url, true, 0), WEIR_OK);
    add(f, "mail");
    f->store->ops->close(f->store);
    f->store = NULL;
    CHECK(viewer_sees(&v, WEIR_EVENT_ENQUEUE, 1));
    CHECK(viewer_sees(&w, WEIR_EVENT_ENQUEUE, 1));
    viewer_close(&v);
    viewer_close(&w);
    fixture_close(f);
}

static void events_work_in_deep_directories(void **state)
{
    (void)state;
    char   dir[TEMPDIR_MAX], deep[1024], url[1100];
    viewer owner, v;
    assert_true(tempdir_make(dir));
    int at = snprintf(deep, sizeof deep, "%s", dir);
    for (int i = 0; i < 4; i++) {
        at += snprintf(deep + at, sizeof deep - (size_t)at, "/%060d", i);
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=os", deep);
    CHECK_INT(viewer_open(&owner, url, false, 0), WEIR_OK);
    CHECK_INT(viewer_open(&v, url, true, 0), WEIR_OK);
    weir_spec  spec = { .type = "mail" };
    weir_added added;
    weir_op    op = { .kind = WEIR_OP_ADD, .u.add = { &spec, 1, &added, NULL } };
    CHECK_INT(view(&owner, &op), WEIR_OK);
    CHECK(viewer_sees(&v, WEIR_EVENT_ENQUEUE, 1));
    viewer_close(&v);
    viewer_close(&owner);
    tempdir_remove(dir);
}

/* Connect to the owner's socket for events of progress, and do not read them. */
static int deaf_listener(fixture *f)
{
    char       path[TEMPDIR_MAX + 64];
    sq_hello   hello = { .magic = SQ_MAGIC, .purpose = SQ_FOR_EVENTS,
                         .want = WEIR_BIT(WEIR_EVENT_PROGRESS) };
    sq_welcome welcome;
    f->store->ops->want(f->store, 0);        /* else it would be accepted after the next commit */
    file_name(path, f, "jobs.db");
    int fd = weir__sq_dial(path, &hello, -1, PATIENCE_MS, &welcome, &f->err);
    assert_true(fd >= 0);
    return fd;
}

static void read_all(int fd, void *out, size_t n)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    for (char *at = out; n;) {
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        ssize_t got = read(fd, at, n);
        assert_true(got > 0);
        at += got;
        n -= (size_t)got;
    }
}

static void who_does_not_listen_holds_nobody_up(void **state)
{
    (void)state;
    enum { EVENTS = 20000, BYTES = 1000 };
    fixture *f = f_open();
    char     data[BYTES + 1];
    memset(data, 'x', BYTES);
    data[0] = data[BYTES - 1] = '"';
    data[BYTES] = 0;
    add(f, "mail");
    const weir_job *job = take(f, "mail");
    int             fd = deaf_listener(f);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(progress(f, job, 1, data), WEIR_OK);
    uint64_t seen = 0, missed = 0, number = 0;
    while (number < EVENTS) {
        sq_head  head;
        uint64_t place;
        char     rest[2048];
        read_all(fd, &head, sizeof head);
        assert_in_range(head.size, sizeof place, sizeof rest);
        read_all(fd, rest, head.size);
        memcpy(&place, rest, sizeof place);     /* the first member of a sq_record, too */
        assert_true(head.kind == SQF_EVENT || head.kind == SQF_LOST);
        seen += head.kind == SQF_EVENT;
        missed += head.kind == SQF_LOST ? place - number : 0;
        number = place;
    }
    CHECK_INT(seen + missed, EVENTS);
    CHECK(missed > 0);
    CHECK(seen > 10);
    close(fd);
    CHECK_INT(finish(f, job), WEIR_OK);
    fixture_close(f);
}

/* ---- files that are not ours ---- */

static weir_code try_open(fixture *f, const char *name, bool read_only, weir_error *err)
{
    char   url[TEMPDIR_MAX + 96];
    viewer v;
    snprintf(url, sizeof url, "sqlite:%s/%s", f->dir, name);
    weir_code rc = viewer_open(&v, url, read_only, 0);
    *err = v.err;
    viewer_close(&v);
    return rc;
}

static void other_files_are_left_alone(void **state)
{
    (void)state;
    fixture   *f = f_open();
    char       path[TEMPDIR_MAX + 64], text[4096];
    weir_error err;
    sqlite3   *db;

    memset(text, 'n', sizeof text);
    file_name(path, f, "text");
    write_file(path, text, sizeof text);
    CHECK_INT(try_open(f, "text", false, &err), WEIR_ECORRUPT);
    CHECK_INT(try_open(f, "text", true, &err), WEIR_ECORRUPT);

    file_name(path, f, "other.db");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sql(db, "CREATE TABLE job(x); INSERT INTO job VALUES(1)");
    sqlite3_close(db);
    CHECK_INT(try_open(f, "other.db", false, &err), WEIR_ECORRUPT);
    CHECK(strstr(err.msg, "not weir's"));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    CHECK_STR((const char *)sqlite3_column_text(st, 0), "delete");
    sqlite3_finalize(st);
    sqlite3_close(db);
    file_name(path, f, "other.db-owner");
    CHECK(access(path, F_OK) == -1);

    CHECK_INT(try_open(f, "no/such/jobs.db", false, &err), WEIR_ENOENT);
    CHECK_INT(try_open(f, "none.db", true, &err), WEIR_ENOENT);
    CHECK_INT(try_open(f, "", false, &err), WEIR_EINVAL);
    file_name(path, f, "empty");
    write_file(path, "", 0);
    CHECK_INT(try_open(f, "empty", true, &err), WEIR_ENOENT);
    CHECK_INT(try_open(f, "empty", false, &err), WEIR_OK);      /* nothing is lost by using it */
    fixture_close(f);
}

static void another_schema_is_refused(void **state)
{
    (void)state;
    fixture   *f = f_open();
    weir_error err;
    static const char *const versions[] = { "3", "77", "-1" };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char set[64], said[64];
        snprintf(set, sizeof set, "PRAGMA user_version = %s", versions[i]);
        snprintf(said, sizeof said, "schema version %s, this weir reads version 8 only",
                 versions[i]);
        sqlite3 *db;
        if (f->store)
            f->store->ops->close(f->store);
        f->store = NULL;
        char path[TEMPDIR_MAX + 64];
        file_name(path, f, "jobs.db");
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        sql(db, set);
        sqlite3_close(db);
        CHECK_INT(try_open(f, "jobs.db", false, &err), WEIR_EVERSION);
        CHECK(strstr(err.msg, said));
        CHECK_INT(try_open(f, "jobs.db", true, &err), WEIR_EVERSION);
    }
    fixture_close(f);
}

/* As a user for whom permissions hold. */
static weir_code try_open_as_nobody(fixture *f, const char *name, bool read_only)
{
    int   status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        weir_error err;
        if (!geteuid() && (setgid(65534) || setuid(65534)))
            _exit(100);
        _exit((int)try_open(f, name, read_only, &err));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (weir_code)WEXITSTATUS(status);
}

static void without_permission_it_can_only_be_read(void **state)
{
    (void)state;
    fixture *f = f_open();
    char     path[TEMPDIR_MAX + 64], made[TEMPDIR_MAX + 64];
    add(f, "mail");
    f->store->ops->close(f->store);
    f->store = NULL;
    file_name(path, f, "jobs.db");
    file_name(made, f, "new.db");
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(f->dir, 0777), 0);       /* the file is read-only */
    CHECK_INT(try_open_as_nobody(f, "jobs.db", false), WEIR_EREADONLY);
    CHECK_INT(try_open_as_nobody(f, "jobs.db", true), WEIR_OK);
    assert_int_equal(chmod(f->dir, 0555), 0);       /* so is the directory */
    CHECK_INT(try_open_as_nobody(f, "new.db", false), WEIR_EREADONLY);
    CHECK_INT(try_open_as_nobody(f, "jobs.db", false), WEIR_EREADONLY);
    CHECK(access(made, F_OK) == -1);
    assert_int_equal(chmod(f->dir, 0700), 0);
    fixture_close(f);
}

/* ---- no space ---- */

static void limit_pages(fixture *f, int more)
{
    char          text[80];
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db_of(f), "PRAGMA page_count", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    snprintf(text, sizeof text, "PRAGMA max_page_count = %d", sqlite3_column_int(st, 0) + more);
    sqlite3_finalize(st);
    sql(db_of(f), text);
}

static void on_a_full_disk_each_gets_its_own_answer(void **state)
{
    (void)state;
    enum { BIG = 100000 };
    fixture        *f = f_open();
    char           *data = malloc(BIG + 1);
    weir_added      added[2];
    weir_job       *job = NULL;
    add(f, "mail");
    add(f, "mail");
    add(f, "fax");
    const weir_job *first = take(f, "mail");
    memset(data, '1', BIG);
    data[BIG] = 0;
    weir_spec big = { .type = "new", .data = data }, small = { .type = "mail" };
    limit_pages(f, 6);
    events(f);

    const char *types[] = { "mail" };
    weir_op     ops[5] = {
        { .kind = WEIR_OP_FINISH,
          .u.finish = { .id = first->id, .delivery = first->delivery,
                        .next = { types, 1, 1, LEASE_MS, WORKER, &job, 0 } } },
        { .kind = WEIR_OP_ADD, .u.add = { &big, 1, &added[0], NULL } },
        { .kind = WEIR_OP_GET, .u.get = { .id = 2 } },
        { .kind = WEIR_OP_ADD, .u.add = { &small, 1, &added[1], NULL } },
        { .kind = WEIR_OP_REMOVE, .u.remove = { .id = 3 } },
    };
    weir_op *batch[5];
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir__op_check(&ops[i], &f->err), WEIR_OK);
        batch[i] = &ops[i];
    }
    CHECK_INT(run_batch(f, batch, 5), WEIR_OK);
    CHECK_INT(ops[0].err.code, WEIR_OK);
    CHECK_INT(ops[1].err.code, WEIR_EFULL);
    CHECK_INT(ops[2].err.code, WEIR_OK);
    CHECK_INT(ops[3].err.code, WEIR_OK);
    CHECK_INT(ops[4].err.code, WEIR_OK);
    CHECK_INT(ops[0].u.finish.next.n_jobs, 1);
    CHECK_INT(job->id, 2);
    CHECK_INT(job->delivery, 1);
    CHECK_INT(ops[2].u.get.job->state, WEIR_STATE_ACTIVE);
    CHECK_INT(added[1].id, 4);
    CHECK_EVENTS(f, "complete 1, start 2, enqueue 4, remove 3");
    CHECK(!stats_of(f, "new"));
    CHECK(!check(f, false));                /* it tries a write of that size */
    CHECK_INT(f->err.code, WEIR_EFULL);

    weir_job_free(ops[2].u.get.job);
    CHECK_INT(try_add(f, &big, added), WEIR_EFULL);
    limit_pages(f, 100000);                 /* space again */
    CHECK_INT(try_add(f, &big, added), WEIR_OK);
    CHECK_INT(added[0].id, 5);
    CHECK_INT(finish(f, job), WEIR_OK);     /* its worker was not disturbed */
    weir_job_free(job);
    check_all_is_well(f);
    free(data);
    fixture_close(f);
}

/* ---- check ---- */

static void check_finds_and_mends(void **state)
{
    (void)state;
    static const char *const damage[] = {
        "UPDATE type SET inactive = inactive + 5, failed = 2 WHERE name = 'mail'",
        "UPDATE job SET rank = 99 WHERE id = 2",
        "UPDATE job SET due_at = 1 WHERE id = 1",
        "UPDATE job SET due_at = NULL WHERE id = 3",
        "INSERT INTO log(job, n, at, text) VALUES(77, 1, 0, 'lost')",
        "REPLACE INTO search(rowid, text) VALUES(77 << 14, 'lost')",
        "REPLACE INTO search(rowid, text) VALUES(4 << 14, 'wrong')",
        "DELETE FROM search WHERE rowid = (4 << 14) + 2 + 1",
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        fixture *f = f_open();
        add(f, "mail");
        add(f, "mail");
        add_spec(f, &(weir_spec){ .type = "mail", .delay_ms = 5000 });
        add_spec(f, &(weir_spec){ .type = "mail", .data = "{\"to\":\"ann\"}", .search = true });
        CHECK_INT(log_line(f, 4, "hello there"), WEIR_OK);
        f->store->ops->close(f->store);
        char     path[TEMPDIR_MAX + 64];
        sqlite3 *db;
        file_name(path, f, "jobs.db");
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        sql(db, damage[i]);
        sqlite3_close(db);
        CHECK_INT(weir__store_open(&f->store, f->url, &f->env, &f->err), WEIR_OK);
        CHECK(check(f, false)->n > 0);
        CHECK(check(f, false)->n > 0);              /* looking does not mend */
        const weir_report *r = check(f, true);
        CHECK(r->n > 0 && r->mended == r->n);
        CHECK_INT(check(f, false)->n, 0);
        CHECK_INT(reopen(f), WEIR_OK);
        check_all_is_well(f);
        CHECK_STR(listed(f, &(weir_query){ .search = "ann hello" }), "4");
        CHECK_STR(listed(f, &(weir_query){ .search = "lost" }), "");
        later(f, 5000);
        CHECK_STATE(f, 3, WEIR_STATE_INACTIVE);
        fixture_close(f);
    }
}

/* ---- search ---- */

static void rare_and_common_words_meet(void **state)
{
    (void)state;
    fixture *f = f_open();
    char     data[80];
    for (int i = 1; i <= 1000; i++) {
        snprintf(data, sizeof data, "{\"n\":\"common%s\",\"part\":\"x%d\"}",
                 i % 250 ? "" : " rare", i % 7);
        add_spec(f, &(weir_spec){ .type = i % 2 ? "odd" : "even", .data = data, .search = true });
    }
    CHECK_STR(listed(f, &(weir_query){ .search = "common rare" }), "250 500 750 1000");
    CHECK_STR(listed(f, &(weir_query){ .search = "rare common", .descending = true }),
              "1000 750 500 250");
    weir_query next = { .search = "ra* COMMON", .after = { .id = 250 }, .limit = 2 };
    CHECK_STR(listed(f, &next), "500 750");
    next = (weir_query){ .search = "rare", .after = { .id = 750 }, .descending = true };
    CHECK_STR(listed(f, &next), "500 250");
    CHECK_STR(listed(f, &(weir_query){ .search = "rare", .type = "odd" }), "");
    CHECK_STR(listed(f, &(weir_query){ .search = "rare x5" }), "250");
    CHECK_STR(listed(f, &(weir_query){ .search = "rare OR NEAR(common)" }), "");
    CHECK_STR(listed(f, &(weir_query){ .search = "\"rare* AND" }), "");
    check_all_is_well(f);
    fixture_close(f);
}

static void ids_are_never_used_twice(void **state)
{
    (void)state;
    fixture *f = f_open();
    add(f, "mail");
    add(f, "mail");
    add_spec(f, &(weir_spec){ .type = "fax", .remove_on_complete = true });
    CHECK_INT(finish(f, take(f, "fax")), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(add(f, "mail"), 4);
    CHECK_INT(remove_job(f, 4), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(stats(f)->last_id, 4);
    CHECK_INT(add(f, "mail"), 5);
    fixture_close(f);
}

/* ---- the log ---- */

static int commits;

static int count_commit(void *ctx)
{
    (void)ctx;
    commits++;
    return 0;
}

/* More in one commit than is written to the log in one piece: still one commit, and all there. */
static void a_large_batch_is_one_commit(void **state)
{
    (void)state;
    enum { OPS = 3, JOBS = 300, BYTES = 2000 };
    static char       data[BYTES + 1];
    static weir_spec  specs[JOBS];
    static weir_added added[OPS][JOBS];
    fixture *f = f_open();
    memset(data, '7', BYTES);
    for (int i = 0; i < JOBS; i++)
        specs[i] = (weir_spec){ .type = "mail", .data = data, .data_len = BYTES };
    weir_op  op[OPS], *ops[OPS];
    for (int i = 0; i < OPS; i++) {
        op[i] = (weir_op){ .kind = WEIR_OP_ADD, .now_ms = FIXTURE_START,
                           .u.add = { .specs = specs, .n = JOBS, .out = added[i] } };
        ops[i] = &op[i];
    }
    commits = 0;
    sqlite3_commit_hook(db_of(f), count_commit, NULL);
    CHECK_INT(f->store->ops->run(f->store, ops, OPS, &f->err), WEIR_OK);
    for (int i = 0; i < OPS; i++)
        CHECK_INT(op[i].err.code, WEIR_OK);
    CHECK_INT(commits, 1);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(stats(f)->all.count[WEIR_STATE_INACTIVE], OPS * JOBS);
    check_all_is_well(f);
    fixture_close(f);
}

/* While the owner works on, the log is folded into the file. */
static void the_log_is_folded_into_the_file(void **state)
{
    (void)state;
    enum { BYTES = 200000, ENOUGH = 10 * 1024 * 1024 };
    static char data[BYTES + 1];
    fixture    *f = f_open();
    char        path[TEMPDIR_MAX + 64];
    struct stat st;
    memset(data, '7', BYTES);
    file_name(path, f, "jobs.db");
    int64_t n = 0;
    do {
        add_spec(f, &(weir_spec){ .type = "mail", .data = data });
        CHECK_INT(stat(path, &st), 0);
        n++;
    } while (st.st_size < ENOUGH && n < 2000);
    CHECK(st.st_size >= ENOUGH);
    CHECK_INT(stats(f)->all.count[WEIR_STATE_INACTIVE], n);
    check_all_is_well(f);
    CHECK_INT(reopen(f), WEIR_OK);
    CHECK_INT(stats(f)->all.count[WEIR_STATE_INACTIVE], n);
    check_all_is_well(f);
    fixture_close(f);
}

/* Where a page begins is found by the index, however many jobs of the same rank are before it. */
static void pages_are_found_by_the_index(void **state)
{
    (void)state;
    static const sq_sql which[] = { SQ_LIST_STATE, SQ_LIST_STATE_DOWN };
    fixture *f = f_open();
    for (size_t i = 0; i < 2; i++) {
        char          text[8192];
        sqlite3_stmt *plan;
        bool          found = false;
        snprintf(text, sizeof text, "EXPLAIN QUERY PLAN %s",
                 sqlite3_sql(weir__sq_stmt((sq_store *)f->store, which[i])));
        assert_int_equal(sqlite3_prepare_v2(db_of(f), text, -1, &plan, NULL), SQLITE_OK);
        while (sqlite3_step(plan) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(plan, 3);
            found |= strstr(step, i ? "rank=? AND id<?" : "rank=? AND id>?") != NULL;
            assert_null(strstr(step, "TEMP B-TREE"));
        }
        sqlite3_finalize(plan);
        assert_true(found);
    }
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_found_by_the_index),
        cmocka_unit_test(a_second_queue_of_this_process_is_refused),
        cmocka_unit_test_teardown(the_owner_is_named_and_waited_for, drop_child),
        cmocka_unit_test_teardown(a_killed_owner_leaves_all_it_was_told, drop_child),
        cmocka_unit_test(nobody_else_may_read_it),
        cmocka_unit_test(a_reader_sees_what_the_owner_does),
        cmocka_unit_test(a_reader_hears_of_it_from_one_owner_after_the_other),
        cmocka_unit_test(a_reader_hears_of_every_commit_after_it_has_connected),
        cmocka_unit_test(events_work_in_deep_directories),
        cmocka_unit_test(who_does_not_listen_holds_nobody_up),
        cmocka_unit_test(other_files_are_left_alone),
        cmocka_unit_test(another_schema_is_refused),
        cmocka_unit_test(without_permission_it_can_only_be_read),
        cmocka_unit_test(on_a_full_disk_each_gets_its_own_answer),
        cmocka_unit_test(check_finds_and_mends),
        cmocka_unit_test(rare_and_common_words_meet),
        cmocka_unit_test(ids_are_never_used_twice),
        cmocka_unit_test(a_large_batch_is_one_commit),
        cmocka_unit_test(the_log_is_folded_into_the_file),
    };
    return cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
