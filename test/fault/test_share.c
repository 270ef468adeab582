/* test_share.c - one SQLite file, many processes: what those who work through the owner keep when
 * it closes or is killed. Queues of one process exclude each other like processes do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/tempdir.h"
#include "weir/weir.h"

enum { PATIENCE_MS = 60000, LEASE_MS = 1500 };

#define OK(call) assert_int_equal((call), WEIR_OK)

typedef struct rig {
    char        dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 300];
    weir_queue *q;                  /* works through the owner, at first */
    weir_error  err;
    sem_t       begun, go;
    atomic_int  complete, errors;   /* events */
} rig;

static void begin(rig *r, const char *name)
{
    memset(r, 0, sizeof *r);
    assert_true(tempdir_make(r->dir));
    snprintf(r->url, sizeof r->url, "sqlite:%s/%s?durability=os", r->dir, name);
    sem_init(&r->begun, 0, 0);
    sem_init(&r->go, 0, 0);
}

static void finish(rig *r)
{
    weir_close(r->q);
    tempdir_remove(r->dir);
}

static void wait_sem(sem_t *s)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    int rc;
    while ((rc = sem_timedwait(s, &until)) && errno == EINTR)
        ;
    assert_int_equal(rc, 0);
}

static weir_code slow(weir_job *job, void *ctx)
{
    rig *r = ctx;
    sem_post(&r->begun);
    wait_sem(&r->go);
    return weir_job_done(job, "[1]", 0, NULL);
}

static void on_event(const weir_event *ev, void *ctx)
{
    rig *r = ctx;
    atomic_fetch_add(ev->kind == WEIR_EVENT_COMPLETE ? &r->complete : &r->errors, 1);
}

static uint64_t add(rig *r, weir_queue *q, const char *type)
{
    weir_added added;
    OK(weir_add(q, &(weir_spec){ .type = type }, &added, &r->err));
    return added.id;
}

/* A process that owns the file until it is killed. */
static pid_t start_owner(rig *r)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);       /* it ends with the test, also if that fails */
        weir_queue *q;
        char        ok = weir_open(&q, r->url, NULL, NULL) == WEIR_OK;
        (void)!write(fds[1], &ok, 1);
        for (;;)
            pause();
    }
    char ok = 0;
    assert_int_equal(read(fds[0], &ok, 1), 1);
    assert_true(ok);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void kill_owner(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The worker has a job, somebody waits for it and listens: the owner goes, and all goes on. */
static void start_work(rig *r, uint64_t *id, weir_future **f, weir_job **job)
{
    weir_listener *l;
    weir_pool_config pool = { .handler = slow, .ctx = r, .threads = 1, .lease_ms = LEASE_MS };
    weir_filter    filter = { .events = WEIR_BIT(WEIR_EVENT_COMPLETE) };
    OK(weir_listen(r->q, &filter, on_event, r, &l, &r->err));
    OK(weir_process(r->q, "slow", &pool, NULL, &r->err));
    *id = add(r, r->q, "slow");
    wait_sem(&r->begun);
    OK(weir_wait_async(r->q, *id, job, f, &r->err));
}

static void check_end(rig *r, uint64_t id, weir_future *f, weir_job **job)
{
    sem_post(&r->go);
    OK(weir_future_wait(f, PATIENCE_MS, &r->err));
    weir_future_free(f);
    assert_int_equal((*job)->id, id);
    assert_int_equal((*job)->state, WEIR_STATE_COMPLETE);
    assert_int_equal((*job)->delivery, 1);
    assert_int_equal((*job)->lost, 0);
    weir_job_free(*job);
    assert_int_equal(atomic_load(&r->complete), 1);
}

static void an_owner_that_closes_hands_over(void **state)
{
    (void)state;
    rig          r;
    uint64_t     id;
    weir_queue  *owner;
    weir_future *f;
    weir_job    *job;
    begin(&r, "jobs.db");
    OK(weir_open(&owner, r.url, NULL, &r.err));
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    start_work(&r, &id, &f, &job);
    weir_close(owner);
    assert_true(add(&r, r.q, "other") > id);
    OK(weir_open(&owner, r.url, NULL, &r.err));         /* works through the other now */
    add(&r, owner, "other");
    check_end(&r, id, f, &job);
    weir_close(owner);
    finish(&r);
}

static void a_killed_owner_takes_nothing_with_it(void **state)
{
    (void)state;
    rig          r;
    uint64_t     id;
    weir_future *f;
    weir_job    *job;
    begin(&r, "jobs.db");
    pid_t owner = start_owner(&r);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    start_work(&r, &id, &f, &job);
    kill_owner(owner);
    add(&r, r.q, "other");
    /* longer than the lease: it is renewed at the new owner */
    nanosleep(&(struct timespec){ 2, 0 }, NULL);
    check_end(&r, id, f, &job);
    finish(&r);
}

/* Nobody calls: the worker notices by itself, and does what comes due. */
static void an_idle_worker_takes_over(void **state)
{
    (void)state;
    rig        r;
    weir_job  *job;
    weir_added added;
    weir_pool_config pool = { .handler = slow, .ctx = &r, .threads = 1 };
    begin(&r, "jobs.db");
    sem_post(&r.go);
    pid_t owner = start_owner(&r);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    OK(weir_process(r.q, "slow", &pool, NULL, &r.err));
    OK(weir_add(r.q, &(weir_spec){ .type = "slow", .delay_ms = 300 }, &added, &r.err));
    kill_owner(owner);
    wait_sem(&r.begun);
    OK(weir_wait(r.q, added.id, PATIENCE_MS, &job, &r.err));
    weir_job_free(job);
    finish(&r);
}

/* Jobs of an owner that was alone come back at once. */
static void what_a_lone_owner_had_is_lost_with_it(void **state)
{
    (void)state;
    rig               r;
    weir_job         *job;
    size_t            n;
    const char *const types[] = { "t", NULL };
    begin(&r, "jobs.db");
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    add(&r, r.q, "t");
    weir_close(r.q);
    pid_t pid = fork();
    if (!pid) {
        weir_taking what = { .types = types, .n = 1, .lease_ms = 60000 };
        if (weir_open(&r.q, r.url, NULL, &r.err) ||
            weir_take(r.q, &what, &job, &n, &r.err) || n != 1)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    OK(weir_take(r.q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &r.err));
    assert_int_equal(n, 1);
    assert_int_equal(job->delivery, 2);
    OK(weir_job_done(job, NULL, 0, NULL));
    weir_job_free(job);
    finish(&r);
}

static void a_promise_is_not_weakened(void **state)
{
    (void)state;
    rig         r;
    weir_queue *other;
    char        url[sizeof r.url + 20];
    begin(&r, "jobs.db");
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=disk", r.dir);
    assert_int_equal(weir_open(&other, url, NULL, &r.err), WEIR_EINVAL);
    assert_non_null(strstr(r.err.msg, "disk was asked for"));
    snprintf(url, sizeof url, "sqlite:%s/jobs.db", r.dir);
    OK(weir_open(&other, url, NULL, &r.err));
    weir_added added;
    OK(weir_add(other, &(weir_spec){ .type = "t" }, &added, &r.err));
    assert_int_equal(added.durability, WEIR_DURABILITY_OS);
    weir_close(other);
    finish(&r);
}

static void names_may_be_long(void **state)
{
    (void)state;
    rig         r;
    weir_queue *other;
    char        name[200];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    begin(&r, name);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    OK(weir_open(&other, r.url, NULL, &r.err));
    add(&r, other, "t");
    weir_close(other);
    finish(&r);
}

/* A child that the owner forked keeps the sockets open until it calls exec(). The owner must not
 * serve a connection that ends meanwhile. */
static void a_child_of_the_owner_disturbs_nobody(void **state)
{
    (void)state;
    rig         r;
    int         up[2], down[2];
    weir_queue *other;
    char        byte;
    begin(&r, "jobs.db");
    assert_int_equal(pipe(up) | pipe(down), 0);
    pid_t peer = fork();
    if (!peer) {
        bool ok = read(down[0], &byte, 1) == 1 && !weir_open(&other, r.url, NULL, &r.err) &&
                  !weir_add(other, &(weir_spec){ .type = "t" }, NULL, &r.err) &&
                  write(up[1], "c", 1) == 1 && read(down[0], &byte, 1) == 1;
        weir_close(other);
        ok = ok && !weir_open(&other, r.url, NULL, &r.err) &&
             !weir_add(other, &(weir_spec){ .type = "t" }, NULL, &r.err);
        weir_close(other);
        _exit(!ok);
    }
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_int_equal(read(up[0], &byte, 1), 1);
    pid_t holder = fork();
    if (!holder) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);       /* it ends with the test, also if that fails */
        pause();
        _exit(0);
    }
    assert_int_equal(write(down[1], "x", 1), 1);
    int status;
    waitpid(peer, &status, 0);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    kill_owner(holder);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
    finish(&r);
}

/* ---- calls in flight ---- */

enum { KILLS = 12, CYCLES_AFTER = 2 };

/* A thread that makes every sort of call again and again. What must not be unknown is done, and
 * what was answered is true. */
typedef struct caller {
    rig        *r;
    pthread_t   thread;
    int         number, cycle;
    atomic_int *killed;
    unsigned    unknown;            /* answers of the two calls that cannot be repeated */
    weir_error  err;
    const char *wrong;              /* NULL: nothing */
} caller;

/* The call, which must work; else the caller ends. */
#define MUST(call)                                                                                \
    do {                                                                                          \
        if (!c->wrong && (call) != WEIR_OK)                                                       \
            c->wrong = #call;                                                                     \
    } while (0)
#define MUST_BE(condition)                                                                        \
    do {                                                                                          \
        if (!c->wrong && !(condition))                                                            \
            c->wrong = #condition;                                                                \
    } while (0)

/* A job in the hands of this thread; NULL: an answer was lost with its owner, so the job comes
 * back when its lease ends. */
static weir_job *hold_job(caller *c, const char *type)
{
    const char *const types[] = { type, NULL };
    weir_taking       what = { .types = types, .n = 1, .lease_ms = LEASE_MS,
                               .remote = true };
    weir_job         *job = NULL;
    weir_added        added;
    size_t            n = 0;
    MUST(weir_add(c->r->q, &(weir_spec){ .type = type, .attempts = 5 }, &added, &c->err));
    MUST(weir_take(c->r->q, &what, &job, &n, &c->err));
    return n ? job : NULL;
}

static void end_job(caller *c, weir_outcome outcome, weir_state want)
{
    char        type[40];
    weir_ended  ended;
    weir_queue *q = c->r->q;
    snprintf(type, sizeof type, "end-%d-%d-%d", c->number, c->cycle, (int)outcome);
    weir_job *job = hold_job(c, type);
    if (!job)
        return;
    weir_lease   lease = { .id = job->id, .delivery = job->delivery, .lease_ms = LEASE_MS };
    weir_renewed renewed;
    weir_ending  ending = { .id = job->id, .delivery = job->delivery, .outcome = outcome };
    MUST(weir_renew(q, &lease, 1, &renewed, &c->err));
    MUST(weir_progress(q, job->id, job->delivery, 50, NULL, 0, &c->err));
    MUST(weir_finish(q, &ending, 1, &ended, &c->err));
    if (!c->wrong)
        c->err = ended.err;
    MUST(ended.err.code);
    MUST_BE(ended.state == want);
    weir_job_free(job);
}

static void change_job(caller *c)
{
    char        type[40];
    weir_added  added;
    weir_job   *job = NULL;
    weir_queue *q = c->r->q;
    weir_change change = { .set_priority = true, .priority = 7, .data = "[7]" };
    snprintf(type, sizeof type, "change-%d-%d", c->number, c->cycle);
    MUST(weir_add(q, &(weir_spec){ .type = type }, &added, &c->err));
    MUST(weir_pause(q, type, &c->err));
    MUST(weir_resume(q, type, &c->err));
    MUST(weir_update(q, added.id, &change, NULL, &c->err));
    MUST(weir_set(q, added.id, "place", "7", &c->err));
    MUST(weir_cancel(q, added.id, &c->err));
    MUST(weir_get(q, added.id, &job, &c->err));
    MUST_BE(job->state == WEIR_STATE_CANCELLED && job->priority == 7);
    weir_job_free(job);
    weir_code rc = c->wrong ? WEIR_OK : weir_log(q, added.id, 0, "line", 0, &c->err);
    c->unknown += rc == WEIR_EUNKNOWN;
    MUST_BE(!rc || rc == WEIR_EUNKNOWN);
    rc = c->wrong ? WEIR_OK : weir_retry(q, added.id, &c->err);
    c->unknown += rc == WEIR_EUNKNOWN;
    MUST_BE(!rc || rc == WEIR_EUNKNOWN);
    MUST(weir_remove(q, added.id, &c->err));
    bool there = false;
    MUST(weir_exists(q, added.id, &there, &c->err));
    MUST_BE(!there);
}

static void *call_all_the_time(void *arg)
{
    caller *c = arg;
    for (int after = 0; !c->wrong && after < CYCLES_AFTER;) {
        after += atomic_load(c->killed);
        c->cycle++;
        end_job(c, WEIR_OUTCOME_DONE, WEIR_STATE_COMPLETE);
        end_job(c, WEIR_OUTCOME_FAIL, WEIR_STATE_INACTIVE);
        end_job(c, WEIR_OUTCOME_GIVE_UP, WEIR_STATE_FAILED);
        end_job(c, WEIR_OUTCOME_RETURN, WEIR_STATE_INACTIVE);
        change_job(c);
    }
    return NULL;
}

static void calls_in_flight_are_answered(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    rig      r;
    unsigned unknown = 0;
    begin(&r, "jobs.db");
    for (int k = 0; k < KILLS; k++) {
        atomic_int killed = 0;
        caller     callers[THREADS] = { { 0 } };
        pid_t      owner = start_owner(&r);
        OK(weir_open(&r.q, r.url, NULL, &r.err));
        for (int i = 0; i < THREADS; i++) {
            callers[i] = (caller){ .r = &r, .number = k * THREADS + i, .killed = &killed };
            pthread_create(&callers[i].thread, NULL, call_all_the_time, &callers[i]);
        }
        nanosleep(&(struct timespec){ 0, 20000000L + k * 1700000L }, NULL);
        kill_owner(owner);
        atomic_store(&killed, 1);
        for (int i = 0; i < THREADS; i++) {
            caller *c = &callers[i];
            pthread_join(c->thread, NULL);
            if (c->wrong)
                fail_msg("kill %d: %s: %s", k, c->wrong, c->err.msg);
            unknown += c->unknown;
        }
        weir_report *report;
        OK(weir_check(r.q, false, &report, &r.err));
        assert_int_equal(report->n, 0);
        weir_report_free(report);
        weir_close(r.q);
    }
    r.q = NULL;
    print_message("# %u calls of %d kills are not known to be done\n", unknown, KILLS);
    finish(&r);
}

/* ---- one commit for many ---- */

enum { ADDERS = 8, MOST_FDS = 256 };

/* Has this process sent something that the process at the other end has not read? */
static bool is_sent(void)
{
    for (int fd = 3; fd < MOST_FDS; fd++) {
        struct sockaddr_un at;
        socklen_t          len = sizeof at;
        int                unread = 0;
        if (!getpeername(fd, (struct sockaddr *)&at, &len) && at.sun_family == AF_UNIX &&
            !ioctl(fd, SIOCOUTQ, &unread) && unread > 0)
            return true;
    }
    return false;
}

/* A process that adds a job, says so, and on a word sends another one. */
static void add_twice(rig *r, int up, int down)
{
    weir_future *f = NULL;
    weir_spec    spec = { .type = "t" };
    weir_added   added;
    char         byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool ok = !weir_open(&r->q, r->url, NULL, NULL) && !weir_add(r->q, &spec, &added, NULL) &&
              write(up, "r", 1) == 1 && read(down, &byte, 1) == 1 &&
              !weir_add_async(r->q, &spec, &added, &f, NULL);
    while (ok && !weir_future_done(f) && !is_sent())
        poll(NULL, 0, 1);
    ok = ok && write(up, "s", 1) == 1 && !weir_future_wait(f, PATIENCE_MS, NULL);
    weir_future_free(f);
    weir_close(r->q);
    _exit(!ok);
}

static void await_bytes(int fd, int n)
{
    char byte;
    while (n--)
        assert_int_equal(read(fd, &byte, 1), 1);
}

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The commits in the log, which is small: it was not folded. The last frame of each has the size of
 * the file; see "WAL file format" of SQLite. */
static unsigned count_commits(const rig *r)
{
    enum { PAGE_SIZE_AT = 8, SALT_AT = 16, HEAD = 32, FRAME = 24, FILE_SIZE_AT = 4 };
    unsigned char head[HEAD], frame[FRAME];
    char          path[TEMPDIR_MAX + 30];
    unsigned      n = 0;
    snprintf(path, sizeof path, "%s/jobs.db-wal", r->dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, HEAD, 1, f), 1);
    while (fread(frame, FRAME, 1, f) == 1 && !memcmp(frame + 8, head + SALT_AT, 8)) {
        n += big_endian(frame + FILE_SIZE_AT) != 0;
        fseek(f, (long)big_endian(head + PAGE_SIZE_AT), SEEK_CUR);
    }
    fclose(f);
    return n;
}

/* The owner does not run while the others send their adds, so it finds them all at once. */
static void adds_of_several_processes_share_a_commit(void **state)
{
    (void)state;
    rig   r;
    int   up[2], down[2], status;
    pid_t adder[ADDERS];
    begin(&r, "jobs.db");
    assert_int_equal(pipe(up) | pipe(down), 0);
    pid_t owner = start_owner(&r);
    for (int i = 0; i < ADDERS; i++)
        if (!(adder[i] = fork()))
            add_twice(&r, up[1], down[0]);
    await_bytes(up[0], ADDERS);
    unsigned before = count_commits(&r);
    kill(owner, SIGSTOP);
    assert_int_equal(waitpid(owner, &status, WUNTRACED), owner);
    for (int i = 0; i < ADDERS; i++)
        assert_int_equal(write(down[1], "g", 1), 1);
    await_bytes(up[0], ADDERS);
    kill(owner, SIGCONT);
    for (int i = 0; i < ADDERS; i++) {
        assert_int_equal(waitpid(adder[i], &status, 0), adder[i]);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    }
    unsigned commits = count_commits(&r) - before;
    print_message("# %d adds of as many processes, %u commits\n", ADDERS, commits);
    assert_in_range(commits, 1, ADDERS - 1);
    kill_owner(owner);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    uint64_t n;
    OK(weir_count(r.q, WEIR_STATE_ANY, "t", &n, &r.err));
    assert_int_equal(n, 2 * ADDERS);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
    finish(&r);
}

/* ---- users ---- */

enum { NOBODY = 65534 };

/* A directory that everybody can write to, with a file of this user's. */
static void begin_open_to_all(rig *r)
{
    begin(r, "jobs.db");
    assert_int_equal(chmod(r->dir, 0777), 0);
}

static void become_nobody(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgid(NOBODY) || setuid(NOBODY))
        _exit(100);
}

static int exit_status(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct sockaddr_un socket_of(const rig *r)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/jobs.db-socket", r->dir);
    assert_true(n > 0 && (size_t)n < sizeof at.sun_path);
    return at;
}

/* Also when the socket lets them connect, for whatever reason. */
static void an_owner_serves_no_other_users(void **state)
{
    (void)state;
    rig r;
    if (geteuid())
        skip();
    begin_open_to_all(&r);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    struct sockaddr_un at = socket_of(&r);
    assert_int_equal(chmod(at.sun_path, 0666), 0);
    pid_t pid = fork();
    if (!pid) {
        char          byte;
        struct pollfd fd = { .fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN };
        close_range(3, (unsigned)fd.fd - 1, 0);
        become_nobody();
        _exit(connect(fd.fd, (struct sockaddr *)&at, sizeof at) ? 1 :
              poll(&fd, 1, PATIENCE_MS) != 1 ? 2 : read(fd.fd, &byte, 1) != 0);
    }
    assert_int_equal(exit_status(pid), 0);
    finish(&r);
}

/* Somebody else has made the socket, and answers for the owner. */
static void a_stranger_is_not_taken_for_the_owner(void **state)
{
    (void)state;
    rig  r;
    int  up[2];
    char byte;
    if (geteuid())
        skip();
    begin_open_to_all(&r);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    weir_close(r.q);
    r.q = NULL;
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    if (!pid) {
        char               lock[TEMPDIR_MAX + 30];
        struct sockaddr_un at = socket_of(&r);
        int                fd = socket(AF_UNIX, SOCK_STREAM, 0);
        become_nobody();
        snprintf(lock, sizeof lock, "%s/jobs.db-owner", r.dir);
        int mine = open(lock, O_RDWR | O_CREAT, 0600);
        if (flock(mine, LOCK_EX) || bind(fd, (struct sockaddr *)&at, sizeof at) ||
            listen(fd, 1) || write(up[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    assert_int_equal(weir_open(&r.q, r.url, NULL, &r.err), WEIR_EREADONLY);
    assert_non_null(strstr(r.err.msg, "another user"));
    kill_owner(pid);
    close(up[0]);
    close(up[1]);
    finish(&r);
}

/* root works through the owner of somebody's file, and leaves nothing behind that locks them
 * out. */
static void root_may_use_the_files_of_others(void **state)
{
    (void)state;
    rig  r;
    int  up[2], down[2];
    char byte;
    if (geteuid())
        skip();
    begin_open_to_all(&r);
    assert_int_equal(pipe(up) | pipe(down), 0);
    pid_t pid = fork();
    if (!pid) {
        become_nobody();
        close(down[1]);
        bool ok = !weir_open(&r.q, r.url, NULL, &r.err) && write(up[1], "x", 1) == 1 &&
                  read(down[0], &byte, 1) == 1;
        weir_close(r.q);
        ok = ok && write(up[1], "x", 1) == 1 && read(down[0], &byte, 1) == 1 &&
             !weir_open(&r.q, r.url, NULL, &r.err);
        weir_close(r.q);
        _exit(!ok);
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    add(&r, r.q, "t");
    weir_close(r.q);
    r.q = NULL;
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_int_equal(read(up[0], &byte, 1), 1);
    kill_owner(start_owner(&r));
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_int_equal(exit_status(pid), 0);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_that_closes_hands_over),
        cmocka_unit_test(a_killed_owner_takes_nothing_with_it),
        cmocka_unit_test(an_idle_worker_takes_over),
        cmocka_unit_test(what_a_lone_owner_had_is_lost_with_it),
        cmocka_unit_test(a_promise_is_not_weakened),
        cmocka_unit_test(names_may_be_long),
        cmocka_unit_test(a_child_of_the_owner_disturbs_nobody),
        cmocka_unit_test(calls_in_flight_are_answered),
        cmocka_unit_test(adds_of_several_processes_share_a_commit),
        cmocka_unit_test(an_owner_serves_no_other_users),
        cmocka_unit_test(a_stranger_is_not_taken_for_the_owner),
        cmocka_unit_test(root_may_use_the_files_of_others),
    };
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
