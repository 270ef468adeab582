/* test_firings.c - firings of schedules, none doubled and none missing: several processes watch one
 * store, of which some are killed and some hand over, while the clock is set by an hour either way.
 *
 * Schedules fire at known times of two hours. The clock jumps into these hours, so that thousands
 * of firings are due at once; at set numbers of jobs a fault follows. At the end the jobs must be
 * exactly those that the expressions name. --whole: 10,000 firings in each store. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "campaign/shim.h"
#include "server/server.h"
#include "support/child.h"
#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

enum { HOUR_S = 3600, SPAN_S = 7500, MOST = 5, MOST_SCHEDULES = 20, URL_MAX = 600, MAX_LINE = 80 };

static bool whole;

/* ---- the clock: the machine's, and what the page says (link option --wrap) ---- */

static shim_page *page;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = __real_clock_gettime(clock, ts);
    if (!rc && page && clock == CLOCK_REALTIME)
        ts->tv_sec += page->clock_step_s;
    return rc;
}

static bool map_page(const char *path, int flags)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *page))
        return false;
    void *map = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    page = map == MAP_FAILED ? NULL : map;
    return page != NULL;
}

/* ---- in a child: URL, and what a server listens at ---- */

static void schedule_name(int i, char out[16])
{
    snprintf(out, 16, "s%d", i);
}

/* "put FIRST N EVERY": N schedules that fire from FIRST on, each EVERY seconds. */
static weir_code put_schedules(weir_queue *q, const char *line, weir_error *err)
{
    long long first = 0;
    int       n = 0, every = 0;
    char      name[16], when[32];
    sscanf(line, "put %lld %d %d", &first, &n, &every);
    snprintf(when, sizeof when, every < 60 ? "0/%d * * * * *" : "* * * * *", every);
    for (int i = 0; i < n; i++) {
        schedule_name(i, name);
        weir_code rc = weir_schedule_put(q, &(weir_schedule){
            .name = name, .when = when, .start_at = first, .end_at = first + SPAN_S * 1000 - 1,
            .missed = WEIR_MISSED_ALL, .missed_limit = WEIR_MAX_FIRINGS,
            .job = { .type = "a" } }, err);
        if (rc)
            return rc;
    }
    return WEIR_OK;
}

static int play(const char *role, char **args)
{
    weir_queue *q = NULL;
    srv_server *server = NULL;
    weir_error  err = { 0 };
    char        line[MAX_LINE];
    if (!map_page(getenv(SHIM_PAGE_ENV), 0) || weir_open(&q, args[0], NULL, &err) ||
        (!strcmp(role, "serve") &&
         srv_start(&server, q, &(srv_options){ .listen = args[1] }, &err))) {
        fprintf(stderr, "%s: %s\n", role, err.msg);
        return 1;
    }
    child_print("ready");
    while (child_told(line, sizeof line)) {
        if (!strncmp(line, "put", 3) && put_schedules(q, line, &err)) {
            fprintf(stderr, "%s: %s\n", role, err.msg);
            return 1;
        }
        weir_wake(q);               /* of a clock that is really set, the kernel says so */
        child_print("did %s", line);
    }
    if (server)
        srv_stop(server);
    srv_destroy(server);
    weir_close(q);
    return 0;
}

/* ---- stores ---- */

typedef struct scene {
    const char *kind;               /* "redis", "file", "server" */
    int         n_processes;
    int         n_schedules, every_s;
    char        dir[TEMPDIR_MAX], url[URL_MAX], listen[64];
    rig        *redis;
    child      *process[MOST];      /* the oldest first; the server, if there is one */
    int64_t     first_ms;           /* the first firing */
} scene;

static int free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof at;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* Redis has the same clock as the others: the shim, which is beside this program. */
static void start_redis(scene *s)
{
    char    self[PATH_MAX] = "", shim[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    *strrchr(self, '/') = '\0';
    snprintf(shim, sizeof shim, "%s/libshim.so", self);
    setenv("LD_PRELOAD", shim, 1);
    s->redis = rig_start(NULL);
    unsetenv("LD_PRELOAD");
    assert_non_null(s->redis);
    rig_url(s->redis, "redis+unix", NULL, s->url, sizeof s->url);
}

static child *start_process(scene *s, bool first)
{
    char file[TEMPDIR_MAX + 64];
    snprintf(file, sizeof file, "sqlite:%s/jobs.db?durability=os", s->dir);
    bool   serves = first && *s->listen;
    child *c = serves ? child_start("serve", file, s->listen, NULL)
                      : child_start("watch", s->url, NULL);
    child_until(c, "ready", 1);
    return c;
}

static void begin(scene *s)
{
    char path[TEMPDIR_MAX + 8];
    assert_true(tempdir_make(s->dir));
    snprintf(path, sizeof path, "%s/page", s->dir);
    assert_true(map_page(path, O_CREAT));
    setenv(SHIM_PAGE_ENV, path, 1);
    if (!strcmp(s->kind, "redis")) {
        start_redis(s);
    } else if (!strcmp(s->kind, "file")) {
        snprintf(s->url, sizeof s->url, "sqlite:%s/jobs.db?durability=os", s->dir);
    } else {
        snprintf(s->listen, sizeof s->listen, "127.0.0.1:%d", free_port());
        snprintf(s->url, sizeof s->url, "http://%s", s->listen);
    }
    for (int i = 0; i < s->n_processes; i++)
        s->process[i] = start_process(s, i == 0);
}

static void end(scene *s)
{
    for (int i = s->n_processes - 1; i >= 0; i--)
        child_end(s->process[i]);
    rig_free(s->redis);
    munmap(page, sizeof *page);
    page = NULL;
    tempdir_remove(s->dir);
}

/* ---- faults ---- */

static void tell(child *c, const char *line)
{
    char did[MAX_LINE + 8];
    snprintf(did, sizeof did, "did %s", line);
    size_t n = child_count(c, did);
    child_tell(c, line);
    child_until(c, did, n + 1);
}

static void set_clock(scene *s, int ahead_s)
{
    page->clock_step_s = ahead_s;
    for (int i = 0; i < s->n_processes; i++)
        tell(s->process[i], "turned");
}

/* The oldest process goes, and another comes. A server comes back at the same address. */
static void replace_oldest(scene *s, bool kill9)
{
    child *old = s->process[0];
    int    last = s->n_processes - 1;
    if (kill9) {
        child_kill9(old);
        child_free(old);
    } else {
        child_end(old);
    }
    if (*s->listen) {
        s->process[0] = start_process(s, true);
        return;
    }
    memmove(s->process, s->process + 1, (size_t)last * sizeof *s->process);
    s->process[last] = start_process(s, false);
}

static void kill_one(scene *s)
{
    replace_oldest(s, true);
}

static void hand_over(scene *s)
{
    replace_oldest(s, false);
}

static void hour_back_and_on(scene *s)
{
    int now = page->clock_step_s;
    set_clock(s, now - HOUR_S);
    set_clock(s, now);
}

static void hour_on(scene *s)
{
    set_clock(s, page->clock_step_s + HOUR_S);
}

/* What follows when so many of a hundred jobs are there. After the n-th hour_on(), 47 n are due. */
static const struct {
    int   percent;
    void (*act)(scene *s);
} faults[] = {
    { 0, hour_on },    { 6, kill_one },          { 12, hand_over }, { 18, kill_one },
    { 24, hour_back_and_on }, { 30, hand_over }, { 36, kill_one },  { 42, hour_on },
    { 50, kill_one },  { 60, hand_over },        { 70, hour_back_and_on }, { 80, kill_one },
    { 90, hour_on },   { 95, hand_over },
};

/* ---- judging ---- */

static size_t firings_each(const scene *s)
{
    return (size_t)(SPAN_S / s->every_s);
}

/* Opened for reading: this process fires nothing. */
static weir_queue *look(scene *s)
{
    weir_queue *q = NULL;
    weir_error  err = { 0 };
    UNTIL(!weir_open(&q, s->url, &(weir_options){ .read_only = true }, &err));
    return q;
}

static uint64_t count_jobs(scene *s)
{
    weir_queue *q = look(s);
    uint64_t    n = 0;
    weir_count(q, WEIR_STATE_ANY, NULL, &n, NULL);
    weir_close(q);
    return n;
}

static void until_jobs(scene *s, uint64_t n)
{
    uint64_t last = 0;
    for (int64_t since = rt_ms(); last < n; rt_breathe()) {
        uint64_t now = count_jobs(s);
        if (now > last)
            since = rt_ms();
        else if (rt_ms() - since > PATIENCE_MS)
            fail_msg("%s: %llu of %llu jobs, and no more", s->kind, (unsigned long long)now,
                     (unsigned long long)n);
        last = now > last ? now : last;
    }
}

static void check_jobs(scene *s, weir_queue *q)
{
    size_t         each = firings_each(s), n = 0;
    unsigned char *seen = calloc((size_t)s->n_schedules, each);
    weir_query     query = { .state = WEIR_STATE_INACTIVE, .limit = WEIR_MAX_PAGE };
    weir_error     err = { 0 };
    for (bool more = true; more;) {
        weir_page *got;
        assert_ok_(weir_list(q, &query, &got, &err), &err, "list", __FILE__, __LINE__);
        for (size_t i = 0; i < got->n; i++) {
            int64_t at = weir_value_int(got->job[i], "scheduled_at", 0) - s->first_ms;
            int     which = atoi(weir_value_text(got->job[i], "schedule", "s999") + 1);
            size_t  k = (size_t)(at / 1000 / s->every_s);
            assert_true(at >= 0 && at % (s->every_s * 1000) == 0 && k < each);
            assert_true(which >= 0 && which < s->n_schedules);
            assert_int_equal(seen[(size_t)which * each + k]++, 0);
        }
        n += got->n;
        more = got->more;
        query.after = got->next;
        weir_page_free(got);
    }
    free(seen);
    assert_int_equal(n, (size_t)s->n_schedules * each);         /* none twice, so all */
}

/* Each schedule has ended, with as many firings, and remembers the last of them. */
static void check_schedules(scene *s, weir_queue *q)
{
    weir_schedules *list;
    weir_error      err = { 0 };
    size_t          each = firings_each(s);
    assert_ok_(weir_schedules_list(q, NULL, 0, &list, &err), &err, "list", __FILE__, __LINE__);
    assert_int_equal(list->n, s->n_schedules);
    for (size_t i = 0; i < list->n; i++) {
        const weir_schedule *one = &list->schedule[i];
        assert_int_equal(one->fired, each);
        assert_true(one->next_at == 0);
        assert_int_equal(one->n_history, WEIR_MAX_FIRED);
        for (size_t k = 0; k < WEIR_MAX_FIRED; k++) {
            assert_int_equal(one->history[k].outcome, WEIR_FIRING_DONE);
            assert_true(one->history[k].at == s->first_ms + (int64_t)(each - WEIR_MAX_FIRED + k) *
                                                                s->every_s * 1000);
        }
    }
    weir_schedules_free(list);
}

static bool have_ended(scene *s)
{
    weir_queue     *q = look(s);
    weir_schedules *list = NULL;
    bool            ended = !weir_schedules_list(q, NULL, 0, &list, NULL);
    for (size_t i = 0; ended && i < list->n; i++)
        ended = list->schedule[i].next_at == 0;
    weir_schedules_free(list);
    weir_close(q);
    return ended;
}

static void run(const char *kind, int processes)
{
    scene    s = { .kind = kind, .n_processes = processes, .n_schedules = whole ? 20 : 8,
                   .every_s = whole ? 15 : 60 };
    uint64_t total = (uint64_t)s.n_schedules * firings_each(&s);
    char     line[MAX_LINE];
    begin(&s);
    s.first_ms = ((int64_t)time(NULL) / 60 + 2) * 60000;
    snprintf(line, sizeof line, "put %lld %d %d", (long long)s.first_ms, s.n_schedules, s.every_s);
    tell(s.process[processes - 1], line);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        until_jobs(&s, total * (uint64_t)faults[i].percent / 100);
        faults[i].act(&s);
    }
    until_jobs(&s, total);
    UNTIL(have_ended(&s));
    weir_queue *q = look(&s);
    check_jobs(&s, q);
    check_schedules(&s, q);
    weir_close(q);
    end(&s);
}

static void two_on_one_redis(void **state)
{
    (void)state;
    run("redis", 2);
}

static void five_on_one_redis(void **state)
{
    (void)state;
    run("redis", 5);
}

static void two_on_one_file(void **state)
{
    (void)state;
    run("file", 2);
}

static void five_on_one_file(void **state)
{
    (void)state;
    run("file", 5);
}

static void two_on_one_server(void **state)
{
    (void)state;
    run("server", 2);
}

static void five_on_one_server(void **state)
{
    (void)state;
    run("server", 5);
}

int main(int argc, char **argv)
{
    if (child_role(argc, argv))
        return play(child_role(argc, argv), argv + 3);
    whole = argc > 1 && !strcmp(argv[1], "--whole");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_on_one_redis),  cmocka_unit_test(five_on_one_redis),
        cmocka_unit_test(two_on_one_file),   cmocka_unit_test(five_on_one_file),
        cmocka_unit_test(two_on_one_server), cmocka_unit_test(five_on_one_server),
    };
    cmocka_set_test_filter(argc > 1 + whole ? argv[1 + whole] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
