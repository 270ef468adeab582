/* test_poison.c - one job among many kills its worker process whenever it runs, and must take no
 * other along: it fails, all others complete. In every store, with every kind of worker, and with
 * processes that really die. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/beside.h"
#include "support/receiver.h"
#include "support/redis_rig.h"
#include "support/server_rig.h"

#define POISONED "{\"poison\":true}"

enum {
    JOBS = 1000, POISON = 300, AT_ONCE = 8, LEASE_MS = 1500,
    TOGETHER = 3,               /* processes on one file */
    MAX_DEATHS = 20
};

static const char *const types[] = { "x", NULL };

static void die_of(const char *data)
{
    if (strstr(data, "poison"))
        raise(SIGKILL);
}

/* ---- the workers: processes that are started anew until one comes to the end ---- */

static weir_code handle(weir_job *job, void *ctx)
{
    (void)ctx;
    usleep(500);                        /* so that others are under way when it dies */
    die_of(job->data);
    return WEIR_OK;
}

static bool is_over(weir_queue *q)
{
    weir_stats *s;
    if (weir_get_stats(q, &s, NULL))
        return false;
    const uint64_t *n = s->all.count;
    bool            over = !n[WEIR_STATE_INACTIVE] && !n[WEIR_STATE_ACTIVE];
    weir_stats_free(s);
    return over;
}

/* A thread that takes by hand. */
static void *take_by_hand(void *arg)
{
    weir_queue *q = arg;
    while (!is_over(q)) {
        weir_job *job;
        size_t    n;
        weir_taking what = { .types = types, .n = 1, .lease_ms = LEASE_MS };
        if (weir_take(q, &what, &job, &n, NULL) || !n) {
            rt_breathe();
            continue;
        }
        weir_code rc = handle(job, NULL);
        weir_job_done(job, rc ? "1" : NULL, 0, NULL);
        weir_job_free(job);
    }
    return NULL;
}

static int work_by_hand(weir_queue *q)
{
    pthread_t thread[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        pthread_create(&thread[i], NULL, take_by_hand, q);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(thread[i], NULL);
    weir_close(q);
    return 0;
}

static int work_in_pool(weir_queue *q, int32_t prefetch)
{
    weir_pool_config pool = { .handler = handle, .threads = AT_ONCE, .prefetch = prefetch,
                              .lease_ms = LEASE_MS };
    if (weir_process(q, "x", &pool, NULL, NULL))
        return 1;
    while (!is_over(q))
        usleep(20000);
    weir_stop(q, NULL, PATIENCE_MS, NULL);
    weir_close(q);
    return 0;
}

/* Over HTTP, as a program in any language would: take some, work, end them and take the next. */
static int work_remotely(const char *host)
{
    web  w = { 0 };
    char body[8192], take[200];
    snprintf(w.host, sizeof w.host, "%s", host);
    snprintf(take, sizeof take,
             "{\"types\":[\"x\"],\"n\":%d,\"lease\":%d,\"worker\":\"remote:%d\"}", AT_ONCE,
             LEASE_MS, (int)getpid());
    json_t *answer = web_json(&w, 200, "POST", "/v1/take", take);
    for (;;) {
        json_t *jobs = json_object_get(answer, "jobs"), *job;
        size_t  i, at = (size_t)snprintf(body, sizeof body, "{\"jobs\":[");
        size_t  n = json_array_size(jobs);
        json_array_foreach(jobs, i, job) {
            if (json_object_get(json_object_get(job, "data"), "poison"))
                raise(SIGKILL);
            at += (size_t)snprintf(body + at, sizeof body - at,
                                   "%s{\"id\":%lld,\"delivery\":%lld}", i ? "," : "",
                                   (long long)json_integer_value(json_object_get(job, "id")),
                                   (long long)json_integer_value(json_object_get(job, "delivery")));
        }
        snprintf(body + at, sizeof body - at, "],\"take\":%s}", take);
        json_decref(answer);
        if (n) {
            answer = web_json(&w, 200, "POST", "/v1/finish", body);
            continue;
        }
        json_t *stats = web_json(&w, 200, "GET", "/v1/stats", NULL);
        json_t *counts = json_object_get(stats, "counts");
        bool    over = !json_integer_value(json_object_get(counts, "inactive")) &&
                       !json_integer_value(json_object_get(counts, "active"));
        json_decref(stats);
        if (over)
            return 0;
        rt_breathe();
        answer = web_json(&w, 200, "POST", "/v1/take", take);
    }
}

/* `weir work --exec`: the program kills the worker that started it. */
static int work_with_programs(const char *url)
{
    char program[PATH_MAX];
    beside("src/cli/weir", 2, program);
    execl(program, "weir", "--store", url, "work", "x", "-j", "8", "--drain", "--quiet", "--lease",
          "1500ms", "--exec",
          "read data; case $data in *poison*) kill -9 $PPID; sleep 60;; esac", (char *)NULL);
    return 127;
}

static reply receive(const received *in, size_t n, void *ctx)
{
    (void)n, (void)ctx;
    usleep(500);
    die_of(in->body);
    return (reply){ .body = "1" };
}

/* A receiver of push requests, until it dies or is killed. */
static _Noreturn void work_as_receiver(int port)
{
    receiver r;
    receiver_start(&r, port, receive, NULL);
    for (;;)
        pause();
}

static int play(const char *kind, const char *url)
{
    weir_queue *q;
    weir_error  err;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!strcmp(kind, "remote"))
        return work_remotely(strstr(url, "://") + 3);
    if (!strcmp(kind, "exec"))
        return work_with_programs(url);
    if (!strcmp(kind, "push"))
        work_as_receiver(atoi(url));
    if (weir_open(&q, url, &(weir_options){ .wait_owner_ms = PATIENCE_MS }, &err)) {
        fprintf(stderr, "%s: %s\n", url, err.msg);
        return 1;
    }
    if (!strcmp(kind, "hand"))
        return work_by_hand(q);
    return work_in_pool(q, atoi(kind));
}

/* ---- the test ---- */

static pid_t start_worker(const char *kind, const char *url)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_poison", "--worker", kind, url, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* It has come to the end, or died of the poison. */
static bool has_died(int status)
{
    if (status && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
        fail_msg("a worker ended with %#x", status);
    return status != 0;
}

static void add_all(weir_queue *q)
{
    weir_error err;
    for (int from = 0; from < JOBS; from += 100) {
        weir_spec  specs[100];
        weir_added added[100];
        for (int i = 0; i < 100; i++)
            specs[i] = (weir_spec){ .type = "x",
                                    .data = from + i == POISON ? POISONED : "{}" };
        if (weir_add_many(q, specs, 100, NULL, added, &err))
            fail_msg("%s", err.msg);
    }
}

static void judge(weir_queue *q, int deaths, int deaths_each)
{
    weir_page *page;
    weir_error err;
    uint64_t   complete = 0;
    assert_int_equal(weir_list(q, &(weir_query){ .state = WEIR_STATE_FAILED }, &page, &err),
                     WEIR_OK);
    for (size_t i = 0; i < page->n; i++)
        print_message("# job %llu, lost %d: %s\n", (unsigned long long)page->job[i]->id,
                      page->job[i]->lost, page->job[i]->error);
    assert_int_equal(page->n, 1);
    assert_int_equal(weir_count(q, WEIR_STATE_COMPLETE, NULL, &complete, &err), WEIR_OK);
    assert_int_equal(complete, JOBS - 1);
    assert_string_equal(page->job[0]->data, POISONED);
    assert_int_equal(page->job[0]->lost, WEIR_DEFAULT_MAX_LOST + 1);
    assert_true(deaths >= 1);
    assert_true(deaths <= deaths_each * page->job[0]->lost);    /* a lease may be lost, too */
    weir_page_free(page);
}

static weir_queue *open_url(const char *url)
{
    weir_error  err;
    weir_queue *q;
    if (weir_open(&q, url, &(weir_options){ .wait_owner_ms = PATIENCE_MS }, &err))
        fail_msg("%s: %s", url, err.msg);
    return q;
}

/* One process after the other. A file must not be open here meanwhile: `open` is NULL. */
static void one_kills(const char *kind, const char *url, weir_queue *open)
{
    weir_queue *q = open ? open : open_url(url);
    add_all(q);
    int  deaths = 0;
    bool over = false;
    while (!over && deaths <= MAX_DEATHS) {
        int status;
        if (!open)
            weir_close(q);
        pid_t pid = start_worker(kind, url);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        deaths += has_died(status);
        q = open ? open : open_url(url);
        over = !status && is_over(q);
    }
    judge(q, deaths, 1);
    if (!open)
        weir_close(q);
}

/* Several processes at once, each started anew when it dies, until all have come to the end. */
static void some_together(const char *kind, const char *url)
{
    weir_queue *q = open_url(url);
    pid_t       pid[TOGETHER];
    int         deaths = 0, status;
    add_all(q);
    weir_close(q);
    for (int i = 0; i < TOGETHER; i++)
        pid[i] = start_worker(kind, url);
    for (int running = TOGETHER; running && deaths <= MAX_DEATHS;) {
        pid_t ended = wait(&status);
        int   i = 0;
        while (i < TOGETHER && pid[i] != ended)
            i++;
        if (i == TOGETHER)
            continue;                   /* a server of the rig */
        deaths += has_died(status);
        running -= !status;
        if (status)
            pid[i] = start_worker(kind, url);
    }
    q = open_url(url);
    assert_true(is_over(q));
    judge(q, deaths, 1);
    weir_close(q);
}

/* Pools that take ahead as they see fit, pools that always do, jobs taken by hand, programs. */
static const char *const kinds[] = { "0", "3", "hand", "exec", NULL };

static void all_kinds(const char *store)
{
    for (const char *const *kind = kinds; *kind; kind++) {
        char url[512];
        if (!rig_shared_url(store, url, sizeof url))
            skip();
        one_kills(*kind, url, NULL);
    }
}

#define REDIS     "rig:redis+unix"
#define CLUSTER   "rig:cluster?partitions=16"
#define KUE       "rig:redis+kue+unix?profile=kue"
#define VERTX     "rig:redis+kue+unix?profile=vertx"

static const char *const behind_a_server[] = { RT_MEM, RT_SQLITE, REDIS, CLUSTER, KUE, VERTX,
                                               NULL };

static void in_redis(void **state) { (void)state; all_kinds(REDIS); }

static void in_partitions(void **state) { (void)state; all_kinds(CLUSTER); }

static void in_kue(void **state) { (void)state; all_kinds(KUE); }

static void in_vertx(void **state) { (void)state; all_kinds(VERTX); }

static void in_file(const char *kind, bool together)
{
    char dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 40];
    tempdir_make(dir);
    snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=os", dir);
    if (together)
        some_together(kind, url);
    else
        one_kills(kind, url, NULL);
    tempdir_remove(dir);
}

static void in_a_file(void **state)
{
    (void)state;
    for (const char *const *kind = kinds; *kind; kind++)
        in_file(*kind, false);
}

static void in_a_file_of_many(void **state)
{
    (void)state;
    in_file("0", true);
    in_file("3", true);
    in_file("hand", true);
}

static void over_http(const char *store, const char *kind)
{
    web  w;
    char url[100];
    web_start(&w, store, false, NULL);
    snprintf(url, sizeof url, "http://%s", w.host);
    one_kills(kind, url, w.t.q);
    web_stop(&w);
}

static void in_a_server(void **state)
{
    (void)state;
    for (const char *const *kind = kinds; *kind; kind++)
        over_http(RT_MEM, *kind);
    over_http(RT_SQLITE, "3");
}

static void remotely(void **state)
{
    (void)state;
    for (const char *const *store = behind_a_server; *store; store++)
        over_http(*store, "remote");
}

/* When a kept connection ends without an answer, the request is sent once more. */
static void pushed_from(const char *store)
{
    enum { DEATHS_EACH = 2 };
    web      w;
    receiver r;
    char     port[16], body[256];
    int      deaths = 0, status;
    receiver_start(&r, 0, NULL, NULL);              /* a port that is free */
    snprintf(port, sizeof port, "%d", r.port);
    receiver_stop(&r);
    web_start(&w, store, false, &(srv_options){ .push_private = true });
    add_all(w.t.q);
    pid_t pid = start_worker("push", port);
    snprintf(body, sizeof body, "{\"types\":[\"x\"],\"url\":\"http://127.0.0.1:%s/\","
             "\"secret\":\"a secret of the test\",\"concurrency\":%d}", port, AT_ONCE);
    json_decref(web_json(&w, 201, "PUT", "/v1/push/t", body));
    while (!is_over(w.t.q) && deaths <= MAX_DEATHS) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            deaths += has_died(status);
            pid = start_worker("push", port);
        }
        rt_breathe();
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    judge(w.t.q, deaths, DEATHS_EACH);
    web_stop(&w);
}

static void pushed(void **state)
{
    (void)state;
    for (const char *const *store = behind_a_server; *store; store++)
        pushed_from(*store);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--worker"))
        return play(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_file),
        cmocka_unit_test(in_a_file_of_many),
        cmocka_unit_test(in_redis),
        cmocka_unit_test(in_partitions),
        cmocka_unit_test(in_kue),
        cmocka_unit_test(in_vertx),
        cmocka_unit_test(in_a_server),
        cmocka_unit_test(remotely),
        cmocka_unit_test(pushed),
    };
    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
