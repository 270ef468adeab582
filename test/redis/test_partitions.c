/* test_partitions.c - a queue of several partitions: where adds go, whom takes ask, and that no job
 * is forgotten for that. One server has all of them: it counts the calls. */
#include <stdio.h>
#include <string.h>

#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

enum { PARTITIONS = 16, URL_MAX = 600 };

RIG_FIXTURE
static char url[URL_MAX];

/* A queue of its own for each case: "p1", "p2" ... */
static int n_queues;

static void open_new(rt *t, bool test_clock)
{
    char query[64];
    snprintf(query, sizeof query, "partitions=%d&prefix=p%d", PARTITIONS, ++n_queues);
    rt_open(t, rig_url(server, "redis+unix", query, url, sizeof url), test_clock);
}

static int64_t calls(void)
{
    return rig_info(server, "commandstats", "cmdstat_fcall:calls");
}

static void add_lot(rt *t, size_t n, uint64_t count[PARTITIONS])
{
    enum { MOST = 1000 };
    weir_spec  specs[MOST];
    weir_added added[MOST];
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++)
        specs[i] = (weir_spec){ .type = "a" };
    OK(weir_add_many(t->q, specs, n, NULL, added, &t->err));
    for (size_t i = 0; count && i < n; i++)
        count[added[i].id % PARTITIONS]++;
}

/* ---- adds ---- */

/* Lots of different sizes, so that some partitions would always get the large ones in turn. */
static void all_get_as_much(void **state)
{
    (void)state;
    enum { LARGE = 60, TIMES = 20 };
    rt       box, *t = &box;
    uint64_t count[PARTITIONS] = { 0 }, most = 0, least = UINT64_MAX;
    open_new(t, false);
    for (int i = 0; i < TIMES * PARTITIONS; i++)
        add_lot(t, i % 2 ? 1 : LARGE, count);
    for (int i = 0; i < PARTITIONS; i++) {
        most = count[i] > most ? count[i] : most;
        least = count[i] < least ? count[i] : least;
    }
    assert_true(most - least <= 2 * LARGE);
    rt_check_and_close(t);
}

/* Producers that are processes of their own, with one job each. */
static void not_all_begin_at_the_same(void **state)
{
    (void)state;
    enum { PRODUCERS = 12 };
    rt       box, *t = &box;
    uint64_t count[PARTITIONS] = { 0 };
    size_t   used = 0;
    open_new(t, false);
    for (int i = 0; i < PRODUCERS; i++) {
        rt_reopen(t);
        add_lot(t, 1, count);
    }
    for (int i = 0; i < PARTITIONS; i++)
        used += count[i] > 0;
    assert_true(used > 1);
    rt_close(t);
}

/* ---- takes ---- */

static weir_job *take(rt *t)
{
    static const char *const types[] = { "a", NULL };
    weir_job *job = NULL;
    size_t    n;
    OK(weir_take(t->q, &(weir_taking){ .types = types, .n = 1 }, &job, &n, &t->err));
    return n ? job : NULL;
}

static void end(rt *t, weir_job *job)
{
    OK(weir_job_done(job, NULL, 0, NULL));
    weir_job_free(job);
}

/* Who has heard of a job asks where it is, and nobody else. */
static void a_life_alone_is_three_calls(void **state)
{
    (void)state;
    enum { LIVES = 50 };
    rt box, *t = &box;
    open_new(t, false);
    assert_null(take(t));
    int64_t before = calls();
    for (int i = 0; i < LIVES; i++) {
        add_lot(t, 1, NULL);
        weir_job *job = take(t);
        assert_non_null(job);
        end(t, job);
    }
    assert_in_range(calls() - before, 3 * LIVES, 3 * LIVES + PARTITIONS);
    rt_check_and_close(t);
}

/* Who has not, looks everywhere: it may be known by other ways that there is one. */
static void what_others_added_is_found_at_once(void **state)
{
    (void)state;
    rt box, *t = &box, other;
    open_new(t, false);
    rt_open(&other, url, false);
    for (int i = 0; i < 3 * PARTITIONS; i++) {
        assert_null(take(&other));
        add_lot(t, 1, NULL);
        weir_job *job = take(&other);
        assert_non_null(job);
        end(&other, job);
    }
    rt_close(&other);
    rt_check_and_close(t);
}

/* Takes stay where they find jobs, but no partition waits for another to be empty. */
static void none_starves(void **state)
{
    (void)state;
    enum { EACH = 200, TAKES = PARTITIONS * 20, A_TURN = 25 };
    rt       box, *t = &box;
    uint64_t begun[PARTITIONS] = { 0 };
    size_t   changes = 0;
    open_new(t, true);
    for (int i = 0; i < PARTITIONS; i++)
        add_lot(t, EACH, NULL);
    uint64_t last = PARTITIONS;
    for (int i = 0; i < TAKES; i++) {
        weir_job *job = take(t);
        assert_non_null(job);
        uint64_t part = job->id % PARTITIONS;
        begun[part]++;
        changes += part != last;
        last = part;
        end(t, job);
        rt_later(t, 1);
    }
    for (int i = 0; i < PARTITIONS; i++)
        assert_in_range(begun[i], 1, A_TURN);
    assert_true(changes <= PARTITIONS + 1);
    rt_close(t);
}

/* ---- pools ---- */

typedef struct crew {
    rt      *t;
    gate     done;
    uint64_t begun[PARTITIONS];         /* by one worker alone */
    int64_t  each_ms;                   /* what a job takes, by our clock */
} crew;

static weir_code work(weir_job *job, void *ctx)
{
    crew *c = ctx;
    c->begun[job->id % PARTITIONS]++;
    if (c->each_ms)
        rt_later(c->t, c->each_ms);
    gate_up(&c->done);
    return WEIR_OK;
}

static void start_crew(crew *c, rt *t, int prefetch)
{
    *c = (crew){ .t = t, .done = GATE_INIT };
    OK(weir_process(
        t->q, "a",
        &(weir_pool_config){ .handler = work, .ctx = c, .threads = 1, .prefetch = prefetch }, NULL,
        &t->err));
}

/* A worker that ends a job and takes the next in one operation. */
static void none_starves_for_a_pool(void **state)
{
    (void)state;
    enum { EACH = 100 };
    rt   box, *t = &box;
    crew c;
    open_new(t, true);
    OK(weir_pause(t->q, "a", &t->err));
    for (int i = 0; i < PARTITIONS; i++)
        add_lot(t, EACH, NULL);
    start_crew(&c, t, 0);
    c.each_ms = 4;
    OK(weir_resume(t->q, "a", &t->err));
    gate_wait(&c.done, PARTITIONS * 10);
    OK(weir_stop(t->q, NULL, WEIR_FOREVER, &t->err));
    for (int i = 0; i < PARTITIONS; i++)
        assert_in_range(c.begun[i], 1, EACH - 1);
    rt_close(t);
}

/* Two processes, both idle: a job costs its add, the takes of both, and its end. */
static void idle_pools_ask_where_something_came(void **state)
{
    (void)state;
    enum { LIVES = 40 };
    for (int prefetch = 0; prefetch <= 4; prefetch += 4) {
        rt   box, *t = &box, other;
        crew c, d;
        open_new(t, false);
        rt_open(&other, url, false);
        start_crew(&c, t, prefetch);
        start_crew(&d, &other, prefetch);
        add_lot(t, 1, NULL);
        UNTIL(rt_count(t, WEIR_STATE_COMPLETE) == 1);
        int64_t before = calls(), counted = 0;
        for (int i = 1; i <= LIVES; i++) {
            add_lot(t, 1, NULL);
            UNTIL(gate_now(&c.done) + gate_now(&d.done) == i + 1);
            int64_t look = calls();
            rt_until_count(t, WEIR_STATE_COMPLETE, (uint64_t)i + 1);
            counted -= calls() - look;           /* the looking, and what came meanwhile */
        }
        counted += calls() - before;
        assert_true(counted <= 8 * LIVES);
        rt_close(&other);
        rt_check_and_close(t);
    }
}

/* What waits while its type is paused is nowhere to be found, and then it is everywhere. */
static void resumed_jobs_are_found(void **state)
{
    (void)state;
    enum { TIMES = 5 };
    rt   box, *t = &box, other;
    crew c;
    open_new(t, false);
    rt_open(&other, url, false);
    start_crew(&c, t, 0);
    for (int i = 1; i <= TIMES; i++) {
        OK(weir_pause(other.q, "a", &t->err));
        for (int k = 0; k < PARTITIONS; k++)
            add_lot(&other, 1, NULL);
        OK(weir_resume(other.q, "a", &t->err));
        gate_wait(&c.done, i * PARTITIONS);
    }
    rt_close(&other);
    rt_check_and_close(t);
}

/* What was added while nobody could hear of it. */
static void what_was_not_heard_of_is_found(void **state)
{
    (void)state;
    enum { TIMES = 30 };
    rt   box, *t = &box, other;
    crew c;
    open_new(t, false);
    rt_open(&other, url, false);
    start_crew(&c, t, 0);
    for (int i = 1; i <= TIMES; i++) {
        redisReply *killed = rig_command(server, "CLIENT KILL TYPE pubsub");
        assert_true(killed && killed->type == REDIS_REPLY_INTEGER);
        freeReplyObject(killed);
        add_lot(&other, 1, NULL);
        gate_wait(&c.done, i);
    }
    rt_close(&other);
    rt_check_and_close(t);
}

/* One that cannot be asked does not hide what the others have. */
static void a_partition_that_fails(void **state)
{
    (void)state;
    enum { EACH = 5, BAD = 3 };
    rt   box, *t = &box;
    crew c;
    char key[64];
    open_new(t, false);
    OK(weir_pause(t->q, "a", &t->err));
    for (int i = 0; i < PARTITIONS; i++)
        add_lot(t, EACH, NULL);
    snprintf(key, sizeof key, "{p%d:%d}:inactive", n_queues, BAD);
    assert_true(rig_do(server, "DEL %s", key) && rig_do(server, "SET %s x", key));
    start_crew(&c, t, 0);
    OK(weir_resume(t->q, "a", &t->err));
    gate_wait(&c.done, (PARTITIONS - 1) * EACH);
    rt_close(t);
}

int main(int argc, char **argv)
{
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_get_as_much),
        cmocka_unit_test(not_all_begin_at_the_same),
        cmocka_unit_test(a_life_alone_is_three_calls),
        cmocka_unit_test(what_others_added_is_found_at_once),
        cmocka_unit_test(none_starves),
        cmocka_unit_test(none_starves_for_a_pool),
        cmocka_unit_test(idle_pools_ask_where_something_came),
        cmocka_unit_test(resumed_jobs_are_found),
        cmocka_unit_test(what_was_not_heard_of_is_found),
        cmocka_unit_test(a_partition_that_fails),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
