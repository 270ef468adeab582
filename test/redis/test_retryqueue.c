/* test_retryqueue.c - the retry queue in a sorted set, on a real Redis, beside members that were
 * written as the programs of the old retry queue write them. */
#include "weir/retryqueue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/redis/link/link.h"
#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

#define KEY "sorted1"
enum { URL_MAX = 600 };

typedef struct box {
    rig             *redis;
    char             url[URL_MAX];
    weir_retryqueue *rq;
    weir_error       err;
} box;

static rig *shared;         /* one server for all tests; each begins with FLUSHALL */

static void start(box *t, weir_retryqueue_options opt)
{
    *t = (box){ .redis = shared };
    opt.key = KEY;
    assert_true(rig_do(shared, "FLUSHALL"));
    rig_url(shared, "redis+unix", NULL, t->url, URL_MAX);
    OK(weir_retryqueue_open(&t->rq, t->url, &opt, &t->err));
}

static void end(box *t)
{
    weir_retryqueue_close(t->rq);
}

static int64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static void add(box *t, const char *payload, int64_t at_ms)
{
    OK(weir_retryqueue_add(t->rq, &(weir_retry_task){ .payload = payload }, at_ms, &t->err));
}

static weir_retry_tasks *pop(box *t, size_t limit)
{
    weir_retry_tasks *tasks;
    OK(weir_retryqueue_pop(t->rq, limit, &tasks, &t->err));
    return tasks;
}

static int64_t members(const box *t, const char *key)
{
    redisReply *r = rig_command(t->redis, "ZCARD %s", key);
    assert_non_null(r);
    int64_t n = r->integer;
    freeReplyObject(r);
    return n;
}

/* The score of a member; -1: it is not there. */
static int64_t score(const box *t, const char *key, const char *member)
{
    redisReply *r = rig_command(t->redis, "ZSCORE %s %s", key, member);
    assert_non_null(r);
    int64_t n = r->str ? strtoll(r->str, NULL, 10) : -1;
    freeReplyObject(r);
    return n;
}

/* As the old programs do: ZADD with MAX less the time. */
static void add_as_before(const box *t, const char *member, int64_t at_ms)
{
    assert_true(rig_do(t->redis, "ZADD " KEY " %lld %s",
                       (long long)(INT64_C(2147483647000) - at_ms), member));
}

/* ---- the format ---- */

static void members_are_those_of_old(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ 0 });
    weir_retry_task task = { .created_at = 1400000000000, .failures = 1,
                             .payload = "{\"to\":\"ann\"}" };
    OK(weir_retryqueue_add(t->rq, &task, 1400000002000, &t->err));
    assert_int_equal(score(t, KEY, "{\"created\":1400000000000,\"numFailures\":1,"
                                    "\"payload\":\"{\\\"to\\\":\\\"ann\\\"}\"}"),
                     INT64_C(2147483647000) - INT64_C(1400000002000));
    weir_retry_tasks *tasks = pop(t, 0);
    assert_int_equal(tasks->n, 1);
    assert_int_equal(tasks->task[0].created_at, 1400000000000);
    assert_int_equal(tasks->task[0].failures, 1);
    assert_string_equal(tasks->task[0].payload, "{\"to\":\"ann\"}");
    weir_retry_tasks_free(tasks);
    assert_int_equal(members(t, KEY), 0);          /* at most once: it is gone */
    end(t);
}

static void oldest_first_and_no_more_than_the_limit(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ 0 });
    for (int i = 0; i < 5; i++) {
        char member[100];
        snprintf(member, sizeof member,
                 "{\"created\":1400000000000,\"numFailures\":0,\"payload\":\"%d\"}", i);
        add_as_before(t, member, 1400000000000 + 1000 * ((i * 2) % 5));
    }
    static const char *const want[] = { "0", "3", "1", "4", "2" };
    for (int i = 0; i < 5; i += 2) {
        weir_retry_tasks *tasks = pop(t, 2);
        assert_int_equal(tasks->n, i < 4 ? 2 : 1);
        for (size_t k = 0; k < tasks->n; k++)
            assert_string_equal(tasks->task[k].payload, want[(size_t)i + k]);
        weir_retry_tasks_free(tasks);
    }
    end(t);
}

static void not_before_its_time(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ 0 });
    int64_t at = now() + 300;
    add(t, "later", at);
    add(t, "after 2038", INT64_C(2200000000000));
    weir_retry_tasks *tasks;
    for (;;) {
        tasks = pop(t, 0);
        if (tasks->n)
            break;
        weir_retry_tasks_free(tasks);
        rt_breathe();
    }
    assert_true(now() >= at);
    assert_int_equal(tasks->n, 1);
    assert_string_equal(tasks->task[0].payload, "later");
    weir_retry_tasks_free(tasks);
    assert_int_equal(members(t, KEY), 1);
    end(t);
}

typedef struct popper {
    box       *t;
    pthread_t  thread;
    atomic_int *got;        /* how often each task came */
} popper;

static void *pop_all(void *arg)
{
    popper          *p = arg;
    box             *t = p->t;
    weir_retryqueue *rq;
    OK(weir_retryqueue_open(&rq, t->url, &(weir_retryqueue_options){ .key = KEY }, &t->err));
    for (size_t n = 1; n;) {
        weir_retry_tasks *tasks;
        OK(weir_retryqueue_pop(rq, 7, &tasks, &t->err));
        n = tasks->n;
        for (size_t i = 0; i < n; i++)
            atomic_fetch_add(&p->got[atoi(tasks->task[i].payload)], 1);
        weir_retry_tasks_free(tasks);
    }
    weir_retryqueue_close(rq);
    return NULL;
}

static void no_two_poppers_get_the_same(void **state)
{
    (void)state;
    enum { TASKS = 500, POPPERS = 4 };
    box opened, *t = &opened;
    atomic_int got[TASKS] = { 0 };
    popper     p[POPPERS];
    start(t, (weir_retryqueue_options){ 0 });
    for (int i = 0; i < TASKS; i++) {
        char payload[16];
        snprintf(payload, sizeof payload, "%d", i);
        add(t, payload, 1 + i);
    }
    for (int i = 0; i < POPPERS; i++) {
        p[i] = (popper){ .t = t, .got = got };
        assert_int_equal(pthread_create(&p[i].thread, NULL, pop_all, &p[i]), 0);
    }
    for (int i = 0; i < POPPERS; i++)
        pthread_join(p[i].thread, NULL);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(got[i], 1);
    end(t);
}

/* ---- failures ---- */

static void a_linear_backoff_up_to_a_limit(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ .max_failures = 3, .backoff_ms = 5000 });
    weir_retry_task task = { .created_at = 1, .payload = "x", .member = "" };
    for (int failures = 1; failures <= 3; failures++) {
        char    member[100];
        bool    again;
        int64_t before = now();
        OK(weir_retryqueue_fail(t->rq, &task, &again, &t->err));
        assert_int_equal(again, failures < 3);
        snprintf(member, sizeof member, "{\"created\":1,\"numFailures\":%d,\"payload\":\"x\"}",
                 failures);
        int64_t at = WEIR_RETRY_MAX - score(t, KEY, member);
        if (again)
            assert_in_range(at, before + failures * 5000 - 1, now() + failures * 5000 + 1);
        assert_int_equal(members(t, KEY), failures < 3 ? failures : 2);
        task.failures = failures;
    }
    end(t);
}

static void malformed_members_are_set_aside(void **state)
{
    (void)state;
    static const char *const garbage[] = { "garbage", "{", "{}", "[1,2]", "null",
        "{\"created\":\"x\",\"numFailures\":0,\"payload\":\"\"}",
        "{\"created\":1,\"numFailures\":-1,\"payload\":\"\"}",
        "{\"created\":1,\"numFailures\":0,\"payload\":7}",
        "{\"created\":1,\"numFailures\":0,\"payload\":\"a\\u0000b\"}" };
    size_t n = sizeof garbage / sizeof *garbage;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ 0 });
    for (size_t i = 0; i < n; i++)
        add_as_before(t, garbage[i], 1000);
    add(t, "good", 2000);
    weir_retry_tasks *tasks = pop(t, 0);
    assert_int_equal(tasks->n, 1);
    assert_string_equal(tasks->task[0].payload, "good");
    assert_int_equal(tasks->malformed, n);
    weir_retry_tasks_free(tasks);
    assert_int_equal(members(t, KEY), 0);
    assert_int_equal(members(t, "{" KEY "}:malformed"), n);
    end(t);
}

/* ---- on a cluster ---- */

/* All keys of a queue are in one slot, also while it moves to a node that has no script yet. */
static void on_a_cluster(void **state)
{
    (void)state;
    rig_nodes *c = rig_cluster(2, 0);
    assert_non_null(c);
    uint32_t slot = weir__redis_slot(KEY, strlen(KEY));
    box      opened = { .redis = rig_cluster_primary(c, slot) }, *t = &opened;
    assert_non_null(t->redis);
    rig_cluster_url(c, "redis", "", t->url, URL_MAX);
    weir_retryqueue_options opt = { .key = KEY, .hold_ms = 600000, .backoff_ms = 1 };
    OK(weir_retryqueue_open(&t->rq, t->url, &opt, &t->err));
    for (int i = 0; i < 2; i++) {
        add(t, "a", 1000);
        add(t, "b", 2000);
        add(t, "later", now() + 600000);
        add_as_before(t, "garbage", 1500);
        weir_retry_tasks *tasks = pop(t, 0), *again;
        assert_int_equal(tasks->n, 2);
        assert_int_equal(tasks->malformed, 1);
        assert_string_equal(tasks->task[0].payload, "a");
        assert_int_equal(members(t, "{" KEY "}:malformed"), 1);
        assert_int_equal(members(t, "{" KEY "}:held"), 2);
        OK(weir_retryqueue_done(t->rq, &tasks->task[0], &t->err));
        OK(weir_retryqueue_fail(t->rq, &tasks->task[1], NULL, &t->err));
        assert_int_equal(members(t, "{" KEY "}:held"), 0);
        UNTIL((again = pop(t, 0))->n || (weir_retry_tasks_free(again), false));
        assert_string_equal(again->task[0].payload, "b");
        assert_int_equal(again->task[0].failures, 1);
        OK(weir_retryqueue_done(t->rq, &again->task[0], &t->err));
        weir_retry_tasks_free(again);
        weir_retry_tasks_free(tasks);
        rig *to = t->redis == c->node[0] ? c->node[1] : c->node[0];
        assert_true(rig_cluster_move(c, slot, to));
        t->redis = to;
    }
    assert_int_equal(members(t, KEY), 2);           /* those for later */
    weir_retryqueue_close(t->rq);
    rig_nodes_free(c);
}

/* ---- at least once ---- */

static void held_until_it_is_done(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ .hold_ms = 200 });
    add(t, "a", 1000);
    add(t, "b", 2000);
    weir_retry_tasks *first = pop(t, 0);
    assert_int_equal(first->n, 2);
    OK(weir_retryqueue_done(t->rq, &first->task[0], &t->err));
    assert_int_equal(weir_retryqueue_done(t->rq, &first->task[0], &t->err), WEIR_ESTALE);
    weir_retry_tasks *second;
    UNTIL((second = pop(t, 0))->n || (weir_retry_tasks_free(second), false));
    assert_int_equal(second->n, 1);                 /* b: whoever had it is gone */
    assert_string_equal(second->task[0].payload, "b");
    bool again;
    OK(weir_retryqueue_fail(t->rq, &second->task[0], &again, &t->err));
    assert_true(again);
    assert_int_equal(members(t, "{" KEY "}:held"), 0);
    assert_int_equal(weir_retryqueue_fail(t->rq, &first->task[1], &again, &t->err), WEIR_ESTALE);
    assert_int_equal(members(t, KEY), 1);
    weir_retry_tasks_free(first);
    weir_retry_tasks_free(second);
    end(t);
}

/* ---- conditions ---- */

static void a_condition_of_its_own(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ .hold_ms = 60000, .condition =
        "local due = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2])\n"
        "for _, m in ipairs(due) do\n"
        "  if cjson.decode(m).payload == 'eu' then return { m } end\n"
        "end\n"
        "return {}" });
    add(t, "us", 1000);
    add(t, "eu", 2000);
    weir_retry_tasks *tasks = pop(t, 0);
    assert_int_equal(tasks->n, 1);
    assert_string_equal(tasks->task[0].payload, "eu");
    OK(weir_retryqueue_done(t->rq, &tasks->task[0], &t->err));
    weir_retry_tasks_free(tasks);
    tasks = pop(t, 0);
    assert_int_equal(tasks->n, 0);
    weir_retry_tasks_free(tasks);
    assert_int_equal(members(t, KEY), 1);
    end(t);
}

/* Whatever a condition answers, a member comes once, and only if it was in the set. */
static void a_condition_names_members_twice_or_none(void **state)
{
    (void)state;
    static const char *const removing[] = {
        "local due = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2])\n",
        "local due = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2])\n"
        "redis.call('ZREMRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2])\n" };
    for (int i = 0; i < 2; i++) {
        char condition[600];
        snprintf(condition, sizeof condition,
                 "%sreturn { due[1], due[1], due[2], 'unknown', due[2], "
                 "'{\"created\":1,\"numFailures\":0,\"payload\":\"made up\"}' }", removing[i]);
        box opened, *t = &opened;
        start(t, (weir_retryqueue_options){ .condition = condition });
        add(t, "a", 1000);
        add(t, "b", 2000);
        weir_retry_tasks *tasks = pop(t, 0);
        assert_int_equal(tasks->n, 2);
        assert_int_equal(tasks->malformed, 0);
        assert_string_equal(tasks->task[0].payload, "b");      /* the order of ZRANGEBYSCORE */
        assert_string_equal(tasks->task[1].payload, "a");
        weir_retry_tasks_free(tasks);
        assert_int_equal(members(t, KEY), 0);
        assert_int_equal(members(t, "{" KEY "}:malformed"), 0);
        end(t);
    }
}

/* What somebody put beside the tasks that are held is set aside once. */
static void a_malformed_member_that_is_held(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ .hold_ms = 60000 });
    assert_true(rig_do(t->redis, "ZADD {" KEY "}:held 1 garbage"));
    for (size_t i = 0; i < 2; i++) {
        weir_retry_tasks *tasks = pop(t, 0);
        assert_int_equal(tasks->malformed, i ? 0 : 1);
        weir_retry_tasks_free(tasks);
    }
    assert_int_equal(members(t, "{" KEY "}:held"), 0);
    end(t);
}

/* Two consumers pop what is held too long: each task comes to one of them at a time, and only one
 * of them ends it. */
typedef struct holder {
    box       *t;
    pthread_t  thread;
    atomic_int *ended, *left;
} holder;

static void *end_all(void *arg)
{
    holder          *h = arg;
    box             *t = h->t;
    weir_error       err;
    weir_retryqueue *rq;
    OK(weir_retryqueue_open(&rq, t->url, &(weir_retryqueue_options){ .key = KEY, .hold_ms = 1 },
                            &err));
    while (atomic_load(h->left) > 0) {
        weir_retry_tasks *tasks;
        OK(weir_retryqueue_pop(rq, 3, &tasks, &err));
        for (size_t i = 0; i < tasks->n; i++) {
            weir_code rc = weir_retryqueue_done(rq, &tasks->task[i], &err);
            assert_true(!rc || rc == WEIR_ESTALE);
            if (!rc) {
                atomic_fetch_add(&h->ended[atoi(tasks->task[i].payload)], 1);
                atomic_fetch_sub(h->left, 1);
            }
        }
        weir_retry_tasks_free(tasks);
    }
    weir_retryqueue_close(rq);
    return NULL;
}

static void each_task_is_ended_once(void **state)
{
    (void)state;
    enum { TASKS = 200, HOLDERS = 2 };
    box opened, *t = &opened;
    atomic_int ended[TASKS] = { 0 }, left = TASKS;
    holder     h[HOLDERS];
    start(t, (weir_retryqueue_options){ .hold_ms = 1 });
    for (int i = 0; i < TASKS; i++) {
        char payload[16];
        snprintf(payload, sizeof payload, "%d", i);
        add(t, payload, 1 + i);
    }
    for (int i = 0; i < HOLDERS; i++) {
        h[i] = (holder){ .t = t, .ended = ended, .left = &left };
        assert_int_equal(pthread_create(&h[i].thread, NULL, end_all, &h[i]), 0);
    }
    for (int i = 0; i < HOLDERS; i++)
        pthread_join(h[i].thread, NULL);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(ended[i], 1);
    assert_int_equal(members(t, KEY) + members(t, "{" KEY "}:held"), 0);
    end(t);
}

static void a_wrong_condition_is_refused(void **state)
{
    (void)state;
    box opened, *t = &opened;
    start(t, (weir_retryqueue_options){ .condition = "return 'one'" });
    weir_retry_tasks *tasks;
    weir_retryqueue  *other;
    add(t, "x", 1000);
    assert_int_not_equal(weir_retryqueue_pop(t->rq, 0, &tasks, &t->err), WEIR_OK);
    assert_non_null(strstr(t->err.msg, "list of members"));
    assert_int_equal(members(t, KEY), 1);
    assert_int_equal(weir_retryqueue_open(&other, t->url, &(weir_retryqueue_options){
                         .key = KEY, .condition = "return {" }, &t->err), WEIR_EINVAL);
    assert_string_equal(t->err.field, "condition");
    assert_null(other);
    assert_int_equal(weir_retryqueue_open(&other, t->url, &(weir_retryqueue_options){ 0 }, &t->err),
                     WEIR_EINVAL);
    assert_string_equal(t->err.field, "key");
    assert_int_equal(weir_retryqueue_open(&other, "mem:", &(weir_retryqueue_options){
                         .key = KEY }, &t->err), WEIR_EINVAL);
    end(t);
}

/* ---- as a stream ---- */

typedef struct seen {
    gate            tasks, troubles;
    pthread_mutex_t lock;
    char            payload[16][16];
    int             failures[16];
    size_t          n;
    bool            fails;
} seen;

static weir_code on_next(const weir_retry_task *task, void *ctx)
{
    seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    snprintf(s->payload[s->n % 16], 16, "%s", task->payload);
    s->failures[s->n++ % 16] = task->failures;
    pthread_mutex_unlock(&s->lock);
    gate_up(&s->tasks);
    return s->fails ? WEIR_EJOB : WEIR_OK;
}

static void on_error(const weir_error *why, void *ctx)
{
    seen *s = ctx;
    assert_int_not_equal(why->code, WEIR_OK);
    gate_up(&s->troubles);
}

#define SEEN_INIT                                                                       \
    { .tasks = GATE_INIT, .troubles = GATE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER }

static void a_stream_with_a_poll_interval(void **state)
{
    (void)state;
    box opened, *t = &opened;
    seen s = SEEN_INIT;
    start(t, (weir_retryqueue_options){ .hold_ms = 60000 });
    weir_retryqueue_observing how = { .poll_ms = 10, .ctx = &s };
    OK(weir_retryqueue_observe(t->rq, &how, on_next, on_error, &t->err));
    assert_int_equal(weir_retryqueue_observe(t->rq, &how, on_next, on_error, &t->err), WEIR_ESTATE);
    add(t, "first", 0);
    gate_wait(&s.tasks, 1);
    add_as_before(t, "garbage", 1000);
    gate_wait(&s.troubles, 1);                      /* it is reported, and the stream goes on */
    add(t, "second", now() + 50);
    gate_wait(&s.tasks, 2);
    weir_retryqueue_stop(t->rq);
    assert_string_equal(s.payload[0], "first");
    assert_string_equal(s.payload[1], "second");
    assert_int_equal(members(t, KEY) + members(t, "{" KEY "}:held"), 0);
    add(t, "third", 0);
    OK(weir_retryqueue_observe(t->rq, &how, on_next, on_error, &t->err));
    gate_wait(&s.tasks, 3);
    weir_retryqueue_stop(t->rq);
    end(t);
}

static void a_task_that_fails_is_tried_again(void **state)
{
    (void)state;
    box opened, *t = &opened;
    seen s = SEEN_INIT;
    s.fails = true;
    start(t, (weir_retryqueue_options){ .backoff_ms = 100 });
    OK(weir_retryqueue_observe(t->rq, &(weir_retryqueue_observing){ .poll_ms = 5, .ctx = &s,
                                                                   .threads = 2 },
                               on_next, on_error, &t->err));
    add(t, "x", 0);
    gate_wait(&s.tasks, 2);                         /* at 0 and 100 ms, then never more */
    UNTIL(members(t, KEY) == 0);
    assert_false(gate_wait_ms(&s.tasks, 3, 250));
    weir_retryqueue_stop(t->rq);
    assert_int_equal(s.failures[0], 0);
    assert_int_equal(s.failures[1], 1);
    end(t);
}

static void redis_away_is_reported(void **state)
{
    (void)state;
    box opened, *t = &opened;
    seen s = SEEN_INIT;
    rig *own = rig_start(NULL);
    assert_non_null(own);
    start(t, (weir_retryqueue_options){ 0 });
    end(t);
    rig_url(own, "redis+unix", "timeout=200ms", t->url, URL_MAX);
    OK(weir_retryqueue_open(&t->rq, t->url, &(weir_retryqueue_options){ .key = KEY }, &t->err));
    OK(weir_retryqueue_observe(t->rq, &(weir_retryqueue_observing){ .poll_ms = 5, .ctx = &s },
                               on_next, on_error, &t->err));
    rig_kill9(own);
    gate_wait(&s.troubles, 1);
    assert_true(rig_begin(own) && rig_ready(own));
    assert_true(rig_do(own, "ZADD " KEY " 2147483646000 %s",
                       "{\"created\":1,\"numFailures\":0,\"payload\":\"back\"}"));
    gate_wait(&s.tasks, 1);
    weir_retryqueue_stop(t->rq);
    end(t);
    rig_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_those_of_old),
        cmocka_unit_test(oldest_first_and_no_more_than_the_limit),
        cmocka_unit_test(not_before_its_time),
        cmocka_unit_test(no_two_poppers_get_the_same),
        cmocka_unit_test(a_linear_backoff_up_to_a_limit),
        cmocka_unit_test(malformed_members_are_set_aside),
        cmocka_unit_test(on_a_cluster),
        cmocka_unit_test(held_until_it_is_done),
        cmocka_unit_test(a_condition_of_its_own),
        cmocka_unit_test(a_condition_names_members_twice_or_none),
        cmocka_unit_test(a_malformed_member_that_is_held),
        cmocka_unit_test(each_task_is_ended_once),
        cmocka_unit_test(a_wrong_condition_is_refused),
        cmocka_unit_test(a_stream_with_a_poll_interval),
        cmocka_unit_test(a_task_that_fails_is_tried_again),
        cmocka_unit_test(redis_away_is_reported),
    };
    shared = rig_start(NULL);
    int failed = shared ? cmocka_run_group_tests_name("retryqueue", tests, NULL, NULL) : 1;
    rig_free(shared);
    return failed;
}
