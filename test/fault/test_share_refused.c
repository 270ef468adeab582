/* test_share_refused.c - one SQLite file, many processes: what cannot be shared, or not now.
 * Another version, too many connections, an owner that is stopped, file systems that are read-only
 * or have no sockets, and a listener that does not read its events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/sqlite/share.h"
#include "support/tempdir.h"
#include "weir/weir.h"

enum { PATIENCE_MS = 60000 };

#define OK(call) assert_int_equal((call), WEIR_OK)

typedef struct rig {
    char        dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 30], url[TEMPDIR_MAX + 100];
    weir_queue *q;
    weir_error  err;
    int         go[2];              /* a pipe: a child may open its queue */
} rig;

static void begin(rig *r)
{
    memset(r, 0, sizeof *r);
    assert_true(tempdir_make(r->dir));
    snprintf(r->path, sizeof r->path, "%s/jobs.db", r->dir);
    snprintf(r->url, sizeof r->url, "sqlite:%s?durability=os", r->path);
}

static void finish(rig *r)
{
    weir_close(r->q);
    tempdir_remove(r->dir);
}

static struct sockaddr_un socket_of(const rig *r)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s-socket", r->path);
    assert_true(n > 0 && (size_t)n < sizeof at.sun_path);
    return at;
}

static int connect_to_owner(const rig *r)
{
    struct sockaddr_un at = socket_of(r);
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* A child that runs until it is killed, or the test ends. It writes a byte when it is ready. It is
 * made before this process has threads: one of them may have a lock of the allocator. */
static pid_t start_child(rig *r, void (*run)(rig *r, int ready), int *ready)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        run(r, fds[1]);
        _exit(1);
    }
    close(fds[1]);
    char byte;
    assert_int_equal(read(fds[0], &byte, 1), 1);
    if (ready)
        *ready = fds[0];
    else
        close(fds[0]);
    return pid;
}

static void kill_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A signal takes a while to reach all threads of a child on a busy machine. */
static void stop_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
}

static void own_until_killed(rig *r, int ready)
{
    weir_queue *q;
    if (weir_open(&q, r->url, NULL, NULL) || write(ready, "r", 1) != 1)
        return;
    for (;;)
        pause();
}

/* ---- versions ---- */

/* What the owner says to a HELLO of another version is a WELCOME of its own, which such a process
 * takes for what it is; then the connection ends. */
static void the_owner_ends_another_version(void **state)
{
    (void)state;
    rig        r;
    sq_head    head = { .size = sizeof(sq_hello), .kind = SQF_HELLO };
    sq_hello   hello = { .magic = "weir 0.0.1", .purpose = SQ_FOR_CALLS };
    sq_welcome welcome;
    char       byte;
    begin(&r);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    int fd = connect_to_owner(&r);
    assert_int_equal(send(fd, &head, sizeof head, 0), sizeof head);
    assert_int_equal(send(fd, &hello, sizeof hello, 0), sizeof hello);
    assert_int_equal(recv(fd, &head, sizeof head, MSG_WAITALL), sizeof head);
    assert_int_equal(head.kind, SQF_WELCOME);
    assert_int_equal(recv(fd, &welcome, sizeof welcome, MSG_WAITALL), sizeof welcome);
    assert_string_equal(welcome.magic, "weir " WEIR_VERSION);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
    finish(&r);
}

static void answer_as_another_version(rig *r, int ready)
{
    char               lock[sizeof r->path + 10];
    struct sockaddr_un at = socket_of(r);
    struct {
        sq_head    head;
        sq_welcome welcome;
    } frame = { { sizeof(sq_welcome), SQF_WELCOME }, { .magic = "weir 0.0.1" } };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(lock, sizeof lock, "%s-owner", r->path);
    int mine = open(lock, O_RDWR | O_CREAT, 0600);
    if (mine < 0 || flock(mine, LOCK_EX) || bind(fd, (struct sockaddr *)&at, sizeof at) ||
        listen(fd, 4) || write(ready, "r", 1) != 1)
        return;
    for (;;) {
        int one = accept(fd, NULL, NULL);
        (void)!send(one, &frame, sizeof frame, MSG_NOSIGNAL);
    }
}

static void an_owner_of_another_version_is_refused(void **state)
{
    (void)state;
    rig r;
    begin(&r);
    pid_t pid = start_child(&r, answer_as_another_version, NULL);
    assert_int_equal(weir_open(&r.q, r.url, NULL, &r.err), WEIR_EVERSION);
    assert_non_null(strstr(r.err.msg, "another version of weir"));
    kill_child(pid);
    finish(&r);
}

/* ---- connections ---- */

static void more_connections_are_turned_away(void **state)
{
    (void)state;
    rig            r;
    int            fds[SQ_MAX_CONNECTIONS], n = 0;
    struct rlimit  files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < SQ_MAX_CONNECTIONS + 100)
        skip();
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    begin(&r);
    pid_t owner = start_child(&r, own_until_killed, NULL);
    while (n < SQ_MAX_CONNECTIONS)
        fds[n++] = connect_to_owner(&r);
    assert_int_equal(weir_open(&r.q, r.url, NULL, &r.err), WEIR_EBUSY);
    assert_non_null(strstr(r.err.msg, "too many connections"));
    while (n > SQ_MAX_CONNECTIONS / 2)
        close(fds[--n]);
    weir_code rc;
    while ((rc = weir_open(&r.q, r.url, NULL, &r.err)) == WEIR_EBUSY)
        continue;                           /* until the owner has seen that they ended */
    OK(rc);
    OK(weir_add(r.q, &(weir_spec){ .type = "t" }, NULL, &r.err));
    while (n)
        close(fds[--n]);
    kill_child(owner);
    finish(&r);
}

/* ---- an owner that is stopped ---- */

static void a_stopped_owner_is_busy_and_keeps_its_file(void **state)
{
    (void)state;
    rig          r;
    weir_queue  *other;
    weir_added   added;
    weir_future *f;
    begin(&r);
    pid_t owner = start_child(&r, own_until_killed, NULL);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    OK(weir_add(r.q, &(weir_spec){ .type = "t" }, NULL, &r.err));
    stop_child(owner);
    OK(weir_add_async(r.q, &(weir_spec){ .type = "t" }, &added, &f, &r.err));
    assert_int_equal(weir_open(&other, r.url, NULL, &r.err), WEIR_EBUSY);   /* after 10 s */
    assert_non_null(strstr(r.err.msg, ", which has not answered for 10 s: "));
    assert_false(weir_future_done(f));
    assert_int_equal(kill(owner, SIGCONT), 0);
    OK(weir_future_wait(f, PATIENCE_MS, &r.err));       /* the call that waited is answered */
    assert_int_equal(added.id, 2);
    weir_future_free(f);
    OK(weir_open(&other, r.url, NULL, &r.err));
    weir_close(other);
    kill_child(owner);
    finish(&r);
}

/* ---- events ---- */

static void on_event(const weir_event *ev, void *ctx)
{
    int fd = *(int *)ctx;
    (void)!write(fd, ev->kind == WEIR_EVENT_ERROR ? "e" : ".", 1);
}

static void listen_until_killed(rig *r, int ready)
{
    weir_queue    *q;
    weir_listener *l;
    weir_filter    all = { .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) | WEIR_BIT(WEIR_EVENT_ERROR) };
    char           byte;
    if (write(ready, "r", 1) != 1 || read(r->go[0], &byte, 1) != 1 ||
        weir_open(&q, r->url, NULL, NULL) || weir_listen(q, &all, on_event, &ready, &l, NULL))
        return;
    for (;;)
        pause();
}

/* On a busy machine it is connected to the owner only some time after weir_listen(). */
static void until_it_hears(rig *r, int events)
{
    struct pollfd fd = { .fd = events, .events = POLLIN };
    char          got;
    do
        OK(weir_add(r->q, &(weir_spec){ .type = "t" }, NULL, &r->err));
    while (poll(&fd, 1, 100) == 0);
    assert_int_equal(read(events, &got, 1), 1);
}

/* More events than are kept for it, while it is stopped: it learns that some are missing. */
static void a_listener_that_does_not_read_learns_of_the_gap(void **state)
{
    (void)state;
    enum { JOBS = 40000, LOT = 10000 };
    static weir_spec specs[LOT];
    rig              r;
    int              events;
    char             got = '.';
    begin(&r);
    for (int i = 0; i < LOT; i++)
        specs[i] = (weir_spec){ .type = "t" };
    assert_int_equal(pipe(r.go), 0);
    pid_t pid = start_child(&r, listen_until_killed, &events);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    assert_int_equal(write(r.go[1], "g", 1), 1);
    until_it_hears(&r, events);
    stop_child(pid);
    for (int i = 0; i < JOBS; i += LOT)
        OK(weir_add_many(r.q, specs, LOT, NULL, NULL, &r.err));
    assert_int_equal(kill(pid, SIGCONT), 0);
    while (got != 'e') {
        struct pollfd fd = { .fd = events, .events = POLLIN };
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        assert_int_equal(read(events, &got, 1), 1);
    }
    close(events);
    close(r.go[0]);
    close(r.go[1]);
    kill_child(pid);
    finish(&r);
}

/* ---- file systems ---- */

static atomic_bool no_sockets;
int __real_bind(int fd, const struct sockaddr *at, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len);

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len)
{
    if (at->sa_family == AF_UNIX && atomic_load(&no_sockets)) {
        errno = EPERM;
        return -1;
    }
    return __real_bind(fd, at, len);
}

static void without_sockets_the_owner_works_alone(void **state)
{
    (void)state;
    rig         r;
    weir_queue *other;
    uint64_t    n = 0;
    begin(&r);
    atomic_store(&no_sockets, true);
    OK(weir_open(&r.q, r.url, &(weir_options){ .name = "first" }, &r.err));
    OK(weir_add(r.q, &(weir_spec){ .type = "t" }, NULL, &r.err));
    assert_int_equal(weir_open(&other, r.url, NULL, &r.err), WEIR_EBUSY);
    assert_non_null(strstr(r.err.msg, "first"));
    OK(weir_open(&other, r.url, &(weir_options){ .read_only = true }, &r.err));
    OK(weir_count(other, WEIR_STATE_INACTIVE, "t", &n, &r.err));
    assert_int_equal(n, 1);
    weir_close(other);
    atomic_store(&no_sockets, false);
    finish(&r);
}

/* In a mount namespace of its own, beside the owner. Which line went wrong; 0: none. */
static int use_read_only(rig *r)
{
#define MUST(condition)      \
    do {                     \
        if (!(condition))    \
            return __LINE__; \
    } while (0)
    uint64_t n = 0;
    weir_queue *q;
    MUST(!mount(r->dir, r->dir, NULL, MS_BIND, NULL));
    MUST(!mount(NULL, r->dir, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
    MUST(weir_open(&q, r->url, NULL, &r->err) == WEIR_EREADONLY);
    MUST(strstr(r->err.msg, "its file system is read-only"));
    MUST(!weir_open(&q, r->url, &(weir_options){ .read_only = true }, &r->err));
    MUST(!weir_count(q, WEIR_STATE_INACTIVE, "t", &n, &r->err) && n == 1);
    weir_close(q);
#undef MUST
    return 0;
}

static void a_read_only_file_system_is_named(void **state)
{
    (void)state;
    enum { CANNOT = 77 };
    rig r;
    int line, status;
    begin(&r);
    OK(weir_open(&r.q, r.url, NULL, &r.err));
    OK(weir_add(r.q, &(weir_spec){ .type = "t" }, NULL, &r.err));
    pid_t pid = fork();
    if (!pid) {
        if (geteuid() || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
            _exit(CANNOT);
        line = use_read_only(&r);
        if (line)
            fprintf(stderr, "line %d: %s\n", line, r.err.msg);
        _exit(line != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    finish(&r);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_ends_another_version),
        cmocka_unit_test(an_owner_of_another_version_is_refused),
        cmocka_unit_test(more_connections_are_turned_away),
        cmocka_unit_test(a_stopped_owner_is_busy_and_keeps_its_file),
        cmocka_unit_test(a_listener_that_does_not_read_learns_of_the_gap),
        cmocka_unit_test(without_sockets_the_owner_works_alone),
        cmocka_unit_test(a_read_only_file_system_is_named),
    };
    return cmocka_run_group_tests_name("share-refused", tests, NULL, NULL);
}
