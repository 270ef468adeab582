/* test_poison.c - one job among many kills its worker process whenever it runs, and must take no
 * other along: it fails, all others complete. In every store, with every kind of worker, and with
 * processes that really die. (Push receivers: test_push; programs of `weir work`: test_work.sh.) */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/redis_rig.h"
#include "support/server_rig.h"

#define POISONED "{\"poison\":true}"

enum { JOBS = 1000, POISON = 300, AT_ONCE = 8, LEASE_MS = 1500 };

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
        weir_job_done(job, rc ? "1" : NULL);
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
    weir_pool pool = { .handler = handle, .threads = AT_ONCE, .prefetch = prefetch,
                       .lease_ms = LEASE_MS };
    if (weir_process(q, "x", &pool, NULL))
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

static int play(const char *kind, const char *url)
{
    weir_queue *q;
    weir_error  err;
    if (!strcmp(kind, "remote"))
        return work_remotely(strstr(url, "://") + 3);
    if (weir_open(&q, url, &(weir_options){ .wait_owner_ms = PATIENCE_MS }, &err)) {
        fprintf(stderr, "%s: %s\n", url, err.msg);
        return 1;
    }
    if (!strcmp(kind, "hand"))
        return work_by_hand(q);
    return work_in_pool(q, atoi(kind));
}

/* ---- the test ---- */

static int run_worker(const char *kind, const char *url)
{
    int   status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_poison", "--worker", kind, url, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
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

static void judge(weir_queue *q, int deaths)
{
    weir_page *page;
    weir_error err;
    uint64_t   complete = 0;
    assert_int_equal(weir_count(q, WEIR_STATE_COMPLETE, NULL, &complete, &err), WEIR_OK);
    assert_int_equal(complete, JOBS - 1);
    assert_int_equal(weir_list(q, &(weir_query){ .state = WEIR_STATE_FAILED }, &page, &err),
                     WEIR_OK);
    assert_int_equal(page->n, 1);
    assert_string_equal(page->job[0]->data, POISONED);
    assert_int_equal(page->job[0]->lost, WEIR_DEFAULT_MAX_LOST + 1);
    assert_true(deaths >= 1 && deaths <= page->job[0]->lost);   /* a lease may be lost, too */
    weir_page_free(page);
}

static void one_kills(const char *kind, const char *url, weir_queue *open)
{
    weir_error  err;
    weir_queue *q = open;
    if (!open)
        assert_int_equal(weir_open(&q, url, NULL, &err), WEIR_OK);
    add_all(q);
    if (!open)
        weir_close(q);
    int deaths = 0, status;
    while ((status = run_worker(kind, url)) && deaths <= 20) {
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            fail_msg("a worker ended with %#x", status);
        deaths++;
    }
    if (!open)
        assert_int_equal(weir_open(&q, url, &(weir_options){ .wait_owner_ms = 1000 }, &err),
                         WEIR_OK);
    judge(q, deaths);
    if (!open)
        weir_close(q);
}

/* Pools that take ahead as they see fit, pools that always do, and jobs taken by hand. */
static void all_kinds(const char *store)
{
    static const char *const kinds[] = { "0", "3", "hand" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char url[512];
        if (!rig_shared_url(store, url, sizeof url))
            skip();
        one_kills(kinds[i], url, NULL);
    }
}

static void in_redis(void **state) { (void)state; all_kinds("rig:redis+unix"); }

static void in_partitions(void **state) { (void)state; all_kinds("rig:cluster?partitions=16"); }

static void in_kue(void **state) { (void)state; all_kinds("rig:redis+kue+unix?profile=kue"); }

static void in_vertx(void **state) { (void)state; all_kinds("rig:redis+kue+unix?profile=vertx"); }

static void in_a_file(void **state)
{
    (void)state;
    static const char *const kinds[] = { "0", "3", "hand" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 40];
        tempdir_make(dir);
        snprintf(url, sizeof url, "sqlite:%s/jobs.db?durability=os", dir);
        one_kills(kinds[i], url, NULL);
        tempdir_remove(dir);
    }
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
    over_http(RT_MEM, "0");
    over_http(RT_SQLITE, "3");
}

static void remotely(void **state)
{
    (void)state;
    over_http(RT_MEM, "remote");
    over_http(RT_SQLITE, "remote");
    over_http(RT_REDIS, "remote");
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--worker"))
        return play(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_file),
        cmocka_unit_test(in_redis),
        cmocka_unit_test(in_partitions),
        cmocka_unit_test(in_kue),
        cmocka_unit_test(in_vertx),
        cmocka_unit_test(in_a_server),
        cmocka_unit_test(remotely),
    };
    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
