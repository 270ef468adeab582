/* test_task_table.c - a table of record for tasks, in a SQLite file and in a MariaDB server: its
 * rows follow the tasks. When Redis is emptied, under load too, nothing of the tasks is lost. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/redis_rig.h"
#include "support/runtime_fixture.h"
#include "task/table.h"

static char dir[TEMPDIR_MAX], socket_path[TEMPDIR_MAX + 20];
static rig *redis;

/* ---- a MariaDB server of the test's own ---- */

static pid_t server;

/* Start a program with its output in a file of `dir`. */
static pid_t start(const char *log, char *const argv[])
{
    char path[TEMPDIR_MAX + 40];
    snprintf(path, sizeof path, "%s/%s", dir, log);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);       /* also when the test is aborted */
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execvp(argv[0], argv);
        _exit(127);
    }
    return pid;
}

static int set_up(void **state)
{
    char data[TEMPDIR_MAX + 40], sock[TEMPDIR_MAX + 40], init[TEMPDIR_MAX + 40];
    char init_option[TEMPDIR_MAX + 60], pid_file[TEMPDIR_MAX + 60];
    (void)state;
    if (!tempdir_make(dir) || !(redis = rig_start(NULL)))
        return -1;
    snprintf(data, sizeof data, "%s/data", dir);
    if (mkdir(data, 0700))
        return -1;
    snprintf(data, sizeof data, "--datadir=%s/data", dir);
    snprintf(socket_path, sizeof socket_path, "%s/sql", dir);
    snprintf(sock, sizeof sock, "--socket=%s", socket_path);
    snprintf(init, sizeof init, "%s/init.sql", dir);
    snprintf(init_option, sizeof init_option, "--init-file=%s", init);
    snprintf(pid_file, sizeof pid_file, "--pid-file=%s/sql.pid", dir);
    FILE *f = fopen(init, "w");
    if (!f)
        return -1;
    fputs("CREATE DATABASE IF NOT EXISTS weir;\n", f);
    fclose(f);
    server = start("server.log", (char *[]){ "mariadbd", "--no-defaults", data, sock, pid_file,
                   "--skip-networking", "--skip-grant-tables", "--user=root",
                   "--innodb-buffer-pool-size=16M", init_option, NULL });
    return server > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    if (server > 0) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
    rig_free(redis);
    tempdir_remove(dir);
    return 0;
}

/* ---- a queue on Redis, and its table ---- */

typedef struct place {
    weir_queue *q;
    weir_tasks *tasks;
    weir_error  err;
    char        table[TEMPDIR_MAX + 120];
    gate        ran;
} place;

#define MUST(call) assert_ok_((call), &p->err, #call, __FILE__, __LINE__)

static weir_code run_task(weir_task_run *run, const weir_task *task, void *ctx)
{
    place *p = ctx;
    gate_up(&p->ran);
    return task->spec.var1 ? weir_task_fail(run, "it's %s", task->spec.var1)
                           : weir_task_done(run, "sent", "{\"n\":1}");
}

static void open_place(place *p, const char *scheme, const char *name)
{
    char url[300], query[60];
    *p = (place){ .ran = GATE_INIT };
    if (strcmp(scheme, "mysql") == 0)
        snprintf(p->table, sizeof p->table, "mysql://root@localhost/weir?table=%s&socket=%s", name,
                 socket_path);
    else
        snprintf(p->table, sizeof p->table, "sqlite:%s/record.db?table=%s", dir, name);
    snprintf(query, sizeof query, "prefix=%s-%s", scheme, name);
    rig_url(redis, "redis+unix", query, url, sizeof url);
    MUST(weir_open(&p->q, url, NULL, &p->err));
    weir_code rc;
    UNTIL((rc = weir_tasks_open(&p->tasks, p->q, &(weir_tasks_config){ .table = p->table },
                                &p->err)) != WEIR_EUNAVAIL &&
          rc != WEIR_EIO);              /* the server starts, and makes its database */
    MUST(rc);
    MUST(weir_task_serve(p->tasks, "a", &(weir_task_service){ .run = run_task, .ctx = p },
                         &p->err));
}

static void close_place(place *p)
{
    weir_tasks_close(p->tasks);
    weir_close(p->q);
}

static char answer[2000];

static void note_row(const char *const *cell, void *ctx)
{
    (void)ctx;
    size_t len = strlen(answer);
    snprintf(answer + len, sizeof answer - len, "%s;", cell[0] ? cell[0] : "-");
}

/* The first column of each row. */
static const char *ask(place *p, const char *sql)
{
    bool               mysql = strncmp(p->table, "mysql:", 6) == 0;
    const task_db_ops *ops = mysql ? &weir__task_mysql : &weir__task_sqlite;
    task_db           *db;
    char               file[TEMPDIR_MAX + 20];
    snprintf(file, sizeof file, "%s/record.db", dir);
    MUST(ops->open(&db, mysql ? "//root@localhost/weir" : file, mysql ? socket_path : NULL,
                   &p->err));
    answer[0] = 0;
    MUST(ops->run(db, sql, note_row, NULL, &p->err));
    ops->close(db);
    return answer;
}

/* ---- cases, in both databases ---- */

static void rows_follow_in(const char *scheme)
{
    place  p_, *p = &p_;
    size_t n;
    open_place(p, scheme, "t_follow");
    weir_task_spec spec[] = {
        { .service = "a", .id = "1", .relative_id = "o'x\\", .attachment = "{\"a\":\"it's\"}",
          .timeout_ms = 2500 },
        { .service = "a", .id = "2", .var1 = "bad", .result_store = "direct" },
        { .service = "a", .id = "3", .run_at = INT64_C(4102444800123), .version = 7 },
    };
    MUST(weir_task_submit(p->tasks, spec, 3, NULL, &p->err));
    assert_int_equal(weir_task_submit(p->tasks, spec, 1, NULL, &p->err), WEIR_ESTATE);
    assert_string_equal(ask(p, "SELECT STATE FROM t_follow ORDER BY TASK_ID"),
                        "\u5f85\u8fd0\u884c;\u5f85\u8fd0\u884c;\u5f85\u8fd0\u884c;");
    assert_string_equal(ask(p, "SELECT RELATIVE_ID FROM t_follow WHERE TASK_ID='1'"), "o'x\\;");
    assert_string_equal(ask(p, "SELECT TIMEOUT FROM t_follow WHERE TASK_ID='1'"), "3;");
    assert_string_equal(ask(p, "SELECT RUN_AT FROM t_follow WHERE TASK_ID='3'"),
                        "2100-01-01 00:00:00.123;");
    size_t fired, total = 0;
    UNTIL((weir_task_fire(p->tasks, 0, &fired, &p->err), total += fired) == 2);
    MUST(weir_task_adjust(p->tasks, &(weir_task_spec){ .id = "3", .var2 = "new" }, NULL, &p->err));
    assert_string_equal(ask(p, "SELECT VAR2 FROM t_follow WHERE TASK_ID='3'"), "new;");
    MUST(weir_task_cancel(p->tasks, (const char *[]){ "3" }, 1, "not wanted", &n, &p->err));
    assert_int_equal(n, 1);
    assert_string_equal(ask(p, "SELECT STATE FROM t_follow ORDER BY TASK_ID"),
                        "\u5df2\u5b8c\u6210;\u5df2\u5931\u8d25;\u5df2\u53d6\u6d88;");
    assert_string_equal(ask(p, "SELECT RESULT_STATE FROM t_follow ORDER BY TASK_ID"),
                        "sent;it's bad;not wanted;");
    assert_string_equal(ask(p, "SELECT RESULT FROM t_follow ORDER BY TASK_ID"), "{\"n\":1};-;-;");
    assert_string_equal(ask(p, "SELECT count(*) FROM t_follow WHERE HOSTNAME IS NOT NULL AND"
                            " CLIENT_IP IS NOT NULL AND START_TIME IS NOT NULL"), "2;");
    close_place(p);
}

/* A worker that knows nothing of tasks takes the best job. */
static weir_job *take(place *p)
{
    weir_job   *job = NULL;
    size_t      n = 0;
    weir_taking what = { .types = (const char *[]){ "a", NULL }, .n = 1, .lease_ms = 60000 };
    UNTIL((assert_ok_(weir_take(p->q, &what, &job, &n, &p->err), &p->err, "take", __FILE__,
                      __LINE__), n == 1));
    return job;
}

static void finish_elsewhere(place *p, bool well)
{
    weir_job *job = take(p);
    assert_int_equal(well ? weir_job_done(job, "7", 1, NULL) : weir_job_fail(job, "broken"),
                     well ? WEIR_OK : WEIR_EJOB);
    weir_job_free(job);
}

#define READY     "\u5f85\u8fd0\u884c;"
#define COMPLETED "\u5df2\u5b8c\u6210;"
#define FAILED    "\u5df2\u5931\u8d25;"
#define CANCELLED "\u5df2\u53d6\u6d88;"

/* What is done past weir_task_*() is in the rows, too: nothing runs again once Redis is lost. */
static void ends_elsewhere_are_recorded_in(const char *scheme)
{
    place               p_, *p = &p_;
    size_t              armed;
    weir_task_submitted added[5];
    int64_t             later = INT64_C(4102444800000);
    open_place(p, scheme, "t_ends");
    MUST(weir_tasks_follow(p->tasks, &p->err));
    weir_task_spec spec[] = {
        { .service = "a", .id = "1" }, { .service = "a", .id = "2" },
        { .service = "a", .id = "3", .run_at = later },
        { .service = "a", .id = "4", .run_at = later },
        { .service = "a", .id = "5", .run_at = later },
    };
    MUST(weir_task_submit(p->tasks, spec, 5, added, &p->err));
    finish_elsewhere(p, true);
    finish_elsewhere(p, false);
    MUST(weir_update(p->q, added[2].job, &(weir_change){ .state = WEIR_STATE_CANCELLED }, NULL,
                     &p->err));
    MUST(weir_remove(p->q, added[3].job, &p->err));
    UNTIL(strcmp(ask(p, "SELECT STATE FROM t_ends ORDER BY TASK_ID"),
                 COMPLETED FAILED CANCELLED CANCELLED READY) == 0);
    assert_string_equal(ask(p, "SELECT RESULT FROM t_ends WHERE TASK_ID='1'"), "7;");
    assert_true(rig_do(redis, "FLUSHALL"));
    MUST(weir_task_initialize(p->tasks, NULL, &armed, &p->err));
    assert_int_equal(armed, 1);
    close_place(p);
}

/* Rows that nobody wrote: initialize() asks the queue whether it was lost. */
static void what_was_removed_is_not_lost_in(const char *scheme)
{
    place               p_, *p = &p_;
    size_t              armed;
    weir_task_submitted added[3];
    open_place(p, scheme, "t_removed");
    weir_task_spec spec[] = { { .service = "a", .id = "1" }, { .service = "a" },
                              { .service = "a", .id = "3" } };
    MUST(weir_task_submit(p->tasks, spec, 3, added, &p->err));
    MUST(weir_remove(p->q, added[0].job, &p->err));
    MUST(weir_remove(p->q, added[1].job, &p->err));
    MUST(weir_task_initialize(p->tasks, NULL, &armed, &p->err));
    assert_int_equal(armed, 0);
    assert_string_equal(ask(p, "SELECT RESULT_STATE FROM t_removed WHERE TASK_ID='1'"),
                        "removed from the queue;");
    MUST(weir_remove(p->q, added[2].job, &p->err));      /* so long ago that no token is known */
    ask(p, "UPDATE t_removed SET CREATE_TIME='2001-01-01 00:00:00.000'");
    MUST(weir_task_initialize(p->tasks, NULL, &armed, &p->err));
    assert_int_equal(armed, 0);
    assert_string_equal(ask(p, "SELECT STATE FROM t_removed"), CANCELLED CANCELLED CANCELLED);
    MUST(weir_task_submit(p->tasks, &(weir_task_spec){ .service = "a" }, 1, NULL, &p->err));
    ask(p, "UPDATE t_removed SET CREATE_TIME='2001-01-01 00:00:00.000'");
    assert_true(rig_do(redis, "FLUSHALL"));
    MUST(weir_task_initialize(p->tasks, NULL, &armed, &p->err));
    assert_int_equal(armed, 1);
    close_place(p);
}

static void a_row_that_cannot_be_written_is_an_error_in(const char *scheme)
{
    place  p_, *p = &p_;
    size_t n;
    open_place(p, scheme, "t_gone");
    weir_task_spec spec[] = { { .service = "a", .id = "1" }, { .service = "a", .id = "2" },
                              { .service = "a", .id = "3" } };
    MUST(weir_task_submit(p->tasks, spec, 3, NULL, &p->err));
    weir_task_spec far = { .id = "1", .run_at = INT64_C(4102444800000) };
    MUST(weir_task_adjust(p->tasks, &far, NULL, &p->err));
    MUST(weir_task_promote(p->tasks, "1", &p->err));
    assert_string_equal(ask(p, "SELECT count(*) FROM t_gone WHERE"
                            " RUN_AT<'2099-01-01 00:00:00'"), "3;");
    ask(p, "DROP TABLE t_gone");
    assert_int_equal(weir_task_cancel(p->tasks, (const char *[]){ "1" }, 1, NULL, &n, &p->err),
                     WEIR_EIO);
    assert_int_equal(n, 1);             /* it is cancelled, but its row does not say so */
    assert_int_equal(weir_task_adjust(p->tasks, &(weir_task_spec){ .id = "2", .var1 = "x" }, NULL,
                                      &p->err), WEIR_EIO);
    assert_int_equal(weir_task_promote(p->tasks, "3", &p->err), WEIR_EIO);
    close_place(p);
}

/* The first address is not lost when the one who follows writes the row of a failed task again. */
static void a_failed_task_keeps_its_address_in(const char *scheme)
{
    place  p_, *p = &p_;
    size_t fired;
    open_place(p, scheme, "t_address");
    MUST(weir_tasks_follow(p->tasks, &p->err));
    MUST(weir_task_submit(p->tasks, &(weir_task_spec){ .service = "a", .var1 = "bad" }, 1, NULL,
                          &p->err));
    UNTIL((weir_task_fire(p->tasks, 0, &fired, &p->err), fired == 1));
    close_place(p);                     /* what was to be written is written by then */
    assert_string_equal(ask(p, "SELECT count(*) FROM t_address WHERE CLIENT_IP IS NOT NULL AND"
                            " HOSTNAME IS NOT NULL AND STATE='\u5df2\u5931\u8d25'"), "1;");
}

static void lost_tasks_come_back_in(const char *scheme)
{
    place  p_, *p = &p_;
    size_t armed;
    open_place(p, scheme, "t_lost");
    weir_task_spec spec[] = {
        { .service = "a", .id = "1", .relative_id = "x", .attachment = "[1]", .var3 = "v" },
        { .service = "a", .id = "2", .schedule = "30 6 * * 1", .zone = "Europe/Berlin" },
        { .service = "a", .id = "3", .classifier = "other" },
    };
    MUST(weir_task_submit(p->tasks, spec, 3, NULL, &p->err));
    assert_true(rig_do(redis, "FLUSHALL"));
    weir_task *task;
    bool       existed;
    assert_int_equal(weir_task_find(p->tasks, "1", &task, &p->err), WEIR_ENOENT);
    MUST(weir_task_initialize(p->tasks, "default", &armed, &p->err));
    assert_int_equal(armed, 2);
    MUST(weir_task_initialize(p->tasks, "default", &armed, &p->err));
    assert_int_equal(armed, 0);
    MUST(weir_task_find(p->tasks, "1", &task, &p->err));
    assert_string_equal(task->spec.relative_id, "x");
    assert_string_equal(task->spec.attachment, "[1]");
    assert_string_equal(task->spec.var3, "v");
    weir_task_free(task);
    MUST(weir_task_find(p->tasks, "2", &task, &p->err));
    assert_string_equal(task->spec.schedule, "30 6 * * 1");
    assert_string_equal(task->spec.zone, "Europe/Berlin");
    weir_task_free(task);
    MUST(weir_task_find_or_submit(p->tasks, &spec[2], &task, &existed, &p->err));
    assert_true(existed);               /* its row was there, so the task is submitted again */
    assert_int_equal(task->state, WEIR_TASK_READY);
    weir_task_free(task);
    assert_true(rig_do(redis, "FLUSHALL"));
    MUST(weir_task_initialize(p->tasks, NULL, &armed, &p->err));        /* of all classifiers */
    assert_int_equal(armed, 3);
    MUST(weir_task_find(p->tasks, "3", &task, &p->err));
    assert_string_equal(task->spec.classifier, "other");
    weir_task_free(task);
    close_place(p);
}

/* ---- Redis is emptied under load ---- */

enum { ROUNDS = 3, RAN_BEFORE = 40 };

typedef struct load {
    place      *p;
    size_t      acknowledged;
    atomic_bool stop;
} load;

static void *submit_many(void *ctx)
{
    load *l = ctx;
    for (int i = 0; !atomic_load(&l->stop); i++) {
        weir_error     err;
        char           id[24];
        weir_task_spec spec = { .service = "a", .id = id };
        snprintf(id, sizeof id, "%06d", i);
        l->acknowledged += !weir_task_submit(l->p->tasks, &spec, 1, NULL, &err);
    }
    return NULL;
}

/* Programs submit and do tasks, Redis loses everything, the programs go on. */
static void nothing_is_lost_in(const char *scheme)
{
    place  p_, *p = &p_;
    load   l = { .p = p };
    open_place(p, scheme, "t_load");
    MUST(weir_tasks_run(p->tasks, 2, &p->err));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit_many, &l), 0);
    for (int i = 0; i < ROUNDS; i++) {
        gate_wait(&p->ran, gate_now(&p->ran) + RAN_BEFORE);
        assert_true(rig_do(redis, "FLUSHALL"));
    }
    gate_wait(&p->ran, gate_now(&p->ran) + RAN_BEFORE);
    atomic_store(&l.stop, true);
    pthread_join(thread, NULL);
    assert_true(l.acknowledged >= ROUNDS * RAN_BEFORE);
    MUST(weir_task_initialize(p->tasks, NULL, NULL, &p->err));
    UNTIL(strtoul(ask(p, "SELECT count(*) FROM t_load WHERE STATE<>'\u5df2\u5b8c\u6210'"), NULL,
                  10) == 0);
    assert_true(strtoul(ask(p, "SELECT count(*) FROM t_load"), NULL, 10) >= l.acknowledged);
    MUST(weir_tasks_stop(p->tasks, PATIENCE_MS, &p->err));
    close_place(p);
}

static void what_is_refused(void **state)
{
    (void)state;
    place  p_, *p = &p_;
    weir_tasks *t;
    static const char *const wrong[] = { "oracle:x", "mysql:x", "sqlite:/nowhere/at/all/x.db",
                                         "sqlite:x.db?table=a b", "sqlite:x.db?tabel=a" };
    open_place(p, "sqlite", "t_refused");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_tasks_config config = { .table = wrong[i] };
        assert_int_not_equal(weir_tasks_open(&t, p->q, &config, &p->err), WEIR_OK);
        assert_null(t);
    }
    close_place(p);
    open_place(p, "mysql", "t_refused");
    weir_task_spec too_long = { .service = "a", .id = "twenty-one-characters" };
    assert_int_equal(weir_task_submit(p->tasks, &too_long, 1, NULL, &p->err), WEIR_ELIMIT);
    weir_task *task;
    assert_int_equal(weir_task_find(p->tasks, too_long.id, &task, &p->err), WEIR_ENOENT);
    close_place(p);
}

#define BOTH(fn)                                                                                  \
    static void fn(void **state)                                                                  \
    {                                                                                             \
        (void)state;                                                                              \
        fn##_in("sqlite");                                                                        \
        fn##_in("mysql");                                                                         \
    }
BOTH(rows_follow)
BOTH(ends_elsewhere_are_recorded)
BOTH(what_was_removed_is_not_lost)
BOTH(a_row_that_cannot_be_written_is_an_error)
BOTH(a_failed_task_keeps_its_address)
BOTH(lost_tasks_come_back)
BOTH(nothing_is_lost)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow), cmocka_unit_test(ends_elsewhere_are_recorded),
        cmocka_unit_test(what_was_removed_is_not_lost),
        cmocka_unit_test(a_row_that_cannot_be_written_is_an_error),
        cmocka_unit_test(a_failed_task_keeps_its_address),
        cmocka_unit_test(lost_tasks_come_back),
        cmocka_unit_test(nothing_is_lost), cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests_name("task-table", tests, set_up, tear_down);
}
