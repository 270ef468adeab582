/* test_clock.c - Redis's clock is set by an hour, either way, while jobs are worked on: who lives
 * keeps its jobs, and those of who died are free as soon as they would have been. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "campaign/shim.h"
#include "redis/load.h"
#include "support/redis_rig.h"
#include "weir/remote.h"

enum { URL_MAX = 600, LEASE = 3000, HOUR_S = 3600 };

typedef struct layout {
    const char *scheme, *meta;      /* meta: the key that counts the steps */
} layout;

static const layout native = { "redis+unix", "{weir:0}:meta" };
static const layout kue = { "redis+kue+unix", "q:weir:meta" };

typedef struct stepped {
    rig          *r;
    const layout *layout;
    shim_page    *page;
    char       dir[TEMPDIR_MAX], url[URL_MAX];
} stepped;

/* A server under the shim, which is beside this program. */
static void begin(stepped *s, const layout *l)
{
    char    self[PATH_MAX] = "", shim[PATH_MAX + 16], page[TEMPDIR_MAX + 8];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0 && tempdir_make(s->dir));
    *strrchr(self, '/') = '\0';
    snprintf(shim, sizeof shim, "%s/libshim.so", self);
    snprintf(page, sizeof page, "%s/page", s->dir);
    int fd = open(page, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, sizeof *s->page), 0);
    s->page = mmap(NULL, sizeof *s->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(s->page != MAP_FAILED);
    close(fd);
    setenv(SHIM_PAGE_ENV, page, 1);
    setenv("LD_PRELOAD", shim, 1);
    s->r = rig_start(NULL);
    unsetenv("LD_PRELOAD");
    unsetenv(SHIM_PAGE_ENV);
    assert_non_null(s->r);
    s->layout = l;
    rig_url(s->r, l->scheme, NULL, s->url, sizeof s->url);
}

static void end(stepped *s)
{
    rig_free(s->r);
    munmap(s->page, sizeof *s->page);
    tempdir_remove(s->dir);
}

static int64_t seconds(const rig *r)
{
    redisReply *reply = rig_command(r, "TIME");
    int64_t     s = strtoll(reply->element[0]->str, NULL, 10);
    freeReplyObject(reply);
    return s;
}

static void step(stepped *s, int by_s)
{
    int64_t before = seconds(s->r);
    s->page->clock_step_s += by_s;
    int64_t after = seconds(s->r);
    assert_true(llabs(after - before - by_s) < HOUR_S / 2);     /* or the shim is not there */
}

/* How often leases were moved. */
static int64_t steps_known(const stepped *s)
{
    redisReply *reply = rig_command(s->r, "HGET %s steps", s->layout->meta);
    int64_t     n = reply->str ? strtoll(reply->str, NULL, 10) : 0;
    freeReplyObject(reply);
    return n;
}

typedef struct slow {
    gate begun, go;
} slow;

static weir_code wait_for_go(weir_job *job, void *ctx)
{
    slow *s = ctx;
    (void)job;
    gate_up(&s->begun);
    gate_wait(&s->go, 1);
    return WEIR_OK;
}

static void stay(int64_t ms)
{
    for (int64_t end_ms = rt_ms() + ms; rt_ms() < end_ms;)
        rt_breathe();
}

/* Two workers that live, one with a job that was added alone and one with jobs that are alike; a
 * third process looks on. */
static void living(const layout *l, int by_s)
{
    enum { JOBS = 4 };
    stepped   s;
    slow      work = { GATE_INIT, GATE_INIT };
    rt        box, other, *t = &box;
    weir_spec specs[JOBS];
    begin(&s, l);
    rt_open(t, s.url, false);
    rt_open(&other, s.url, false);
    record *seen = record_start(t, NULL);
    OK(weir_process(t->q, "a",
                    &(weir_pool_config){
                        .handler = wait_for_go, .ctx = &work, .threads = JOBS, .lease_ms = LEASE },
                    NULL, &t->err));
    for (int i = 0; i < JOBS; i++)
        specs[i] = (weir_spec){ .type = "a", .ttl_ms = i ? 0 : 600000 };
    OK(weir_add_many(t->q, specs, JOBS, NULL, NULL, &t->err));
    gate_wait(&work.begun, JOBS);
    stay(LEASE / 2);
    step(&s, by_s);
    UNTIL(steps_known(&s) == 1);
    stay(2 * LEASE);
    assert_int_equal(steps_known(&s), 1);      /* by one of them, not by all */
    assert_int_equal(gate_now(&work.begun), JOBS);
    assert_int_equal(record_count(seen, WEIR_EVENT_STALLED), 0);
    assert_int_equal(record_count(seen, WEIR_EVENT_TTL_EXCEEDED), 0);
    gate_up(&work.go);
    rt_until_count(t, WEIR_STATE_COMPLETE, JOBS);
    record_stop(seen);
    rt_close(&other);
    rt_check_and_close(t);
    end(&s);
}

static void living_workers_keep_their_jobs(void **state)
{
    (void)state;
    living(&native, HOUR_S);
    living(&kue, HOUR_S);
}

static void also_when_it_goes_back(void **state)
{
    (void)state;
    living(&native, -HOUR_S);
    living(&kue, -HOUR_S);
}

static weir_code count(weir_job *job, void *ctx)
{
    (void)job;
    gate_up(ctx);
    return WEIR_OK;
}

/* A remote worker never calls again, and the clock is set: its job does not wait for an hour. */
static void dead(const layout *l, int by_s)
{
    stepped s;
    gate    done = GATE_INIT;
    rt      box, *t = &box;
    begin(&s, l);
    rt_open(t, s.url, false);
    rt_add_type(t, "a");
    const char *types[] = { "a", NULL };
    weir_job   *job;
    size_t      n;
    OK(weir_take(t->q, &(weir_taking){ .remote = true, .worker = "dead", .types = types, .n = 1,
                                           .lease_ms = LEASE }, &job, &n, &t->err));
    assert_int_equal(n, 1);
    weir_job_free(job);
    rt_until_count(t, WEIR_STATE_ACTIVE, 1);
    step(&s, by_s);
    OK(weir_process(t->q, "a", &(weir_pool_config){ .handler = count, .ctx = &done }, NULL,
                    &t->err));
    gate_wait(&done, 1);
    rt_until_count(t, WEIR_STATE_COMPLETE, 1);
    rt_check_and_close(t);
    end(&s);
}

static void a_dead_worker_keeps_nothing(void **state)
{
    (void)state;
    dead(&native, -HOUR_S);
    dead(&native, HOUR_S);
    dead(&kue, -HOUR_S);
    dead(&kue, HOUR_S);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(living_workers_keep_their_jobs),
        cmocka_unit_test(also_when_it_goes_back),
        cmocka_unit_test(a_dead_worker_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
