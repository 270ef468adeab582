/* c.c - test/clients/scenario.md with the C library. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

enum { PATIENCE_MS = 60000 };

#define CHECK(what)                                                                               \
    do {                                                                                          \
        if (!(what)) {                                                                            \
            printf("Bail out! %s:%d: %s: %s\n", __FILE__, __LINE__, #what, err.msg);              \
            fflush(stdout);                                                                       \
            abort();                                                                              \
        }                                                                                         \
    } while (0)

static weir_queue *q;
static weir_bus   *bus;
static weir_error  err;
static atomic_int  seen, cancelled, heard[2];

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Repeat `what` until it is true. */
#define UNTIL(what)                                                                               \
    for (time_t end_ = time(NULL) + PATIENCE_MS / 1000; !(what); pause_ms(5))                     \
        CHECK(time(NULL) < end_)

static uint64_t add_one(weir_spec spec)
{
    weir_added added;
    CHECK(!weir_add(q, &spec, &added, &err));
    return added.id;
}

/* Wait for a job: its state; `result` is what it must have, or NULL. */
static weir_state ended(uint64_t id, const char *result)
{
    weir_job *job;
    CHECK(!weir_wait(q, id, PATIENCE_MS, &job, &err));
    CHECK(!result || (job->result && !strcmp(job->result, result)));
    weir_state state = job->state;
    weir_job_free(job);
    return state;
}

static weir_state state_of(uint64_t id)
{
    weir_job *job;
    CHECK(!weir_get(q, id, &job, &err));
    weir_state state = job->state;
    weir_job_free(job);
    return state;
}

static bool has_progress(uint64_t id, int32_t percent)
{
    weir_job *job;
    CHECK(!weir_get(q, id, &job, &err));
    bool has = job->progress == percent;
    weir_job_free(job);
    return has;
}

/* ---- handlers ---- */

static weir_code sum(weir_job *job, void *ctx)
{
    (void)ctx;
    char text[32];
    snprintf(text, sizeof text, "%d",
             (int)(weir_data_int(job, "a", 0) + weir_data_int(job, "b", 0)));
    return weir_job_done(job, text, 0, NULL);
}

static weir_code flaky(weir_job *job, void *ctx)
{
    (void)ctx;
    return job->delivery == 1 ? weir_job_fail(job, "not yet") : WEIR_OK;
}

static weir_code slow(weir_job *job, void *ctx)
{
    (void)ctx;
    weir_job_progress(job, 1, 4, NULL, 0, NULL);
    weir_job_log(job, "a quarter");
    UNTIL(atomic_load(&seen));
    return WEIR_OK;
}

static weir_code endless(weir_job *job, void *ctx)
{
    (void)ctx;
    weir_job_progress(job, 1, 2, NULL, 0, NULL);
    UNTIL(weir_job_cancelled(job));
    atomic_store(&cancelled, 1);
    return WEIR_OK;
}

static void twice(weir_message *m, void *ctx)
{
    (void)ctx;
    char text[32];
    snprintf(text, sizeof text, "%d", 2 * atoi(weir_message_body(m, NULL)));
    weir_message_reply(m, &(weir_content){ .body = text }, NULL);
}

static void news(weir_message *m, void *ctx)
{
    (void)m;
    atomic_store((atomic_int *)ctx, 1);
}

/* ---- steps ---- */

static void add(void)
{
    const char *data = "{\"to\":\"ann\",\"n\":[1,2.5,\"ä\"]}";
    weir_spec   spec = { .type = "first", .data = data, .priority = WEIR_PRIORITY_HIGH,
                         .attempts = 3, .unique = "u" };
    uint64_t    id = add_one(spec);
    weir_job   *job;
    CHECK(!weir_get(q, id, &job, &err));
    CHECK(!strcmp(job->data, data) && job->priority == -10 && job->max_attempts == 3);
    CHECK(job->state == WEIR_STATE_INACTIVE);
    weir_job_free(job);
    weir_added same;
    CHECK(!weir_add(q, &spec, &same, &err) && same.existed && same.id == id);
}

static void bulk(void)
{
    static weir_spec  specs[100];
    static weir_added added[100];
    for (int i = 0; i < 100; i++)
        specs[i].type = "bulk";
    CHECK(!weir_add_many(q, specs, 100, NULL, added, &err));
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < i; k++)
            CHECK(added[i].id != added[k].id);
    weir_page *page;
    CHECK(!weir_list(q, &(weir_query){ .type = "bulk", .state = WEIR_STATE_INACTIVE,
                                       .limit = 1000 }, &page, &err));
    CHECK(page->n == 100);
    weir_page_free(page);
}

static void wait_for_one(void)
{
    uint64_t id = add_one((weir_spec){ .type = "first" });
    CHECK(weir_wait(q, id, 50, NULL, &err) == WEIR_ETIMEOUT);
}

static void work(void)
{
    uint64_t id[10];
    char     text[40];
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "{\"a\":%d,\"b\":1}", i);
        id[i] = add_one((weir_spec){ .type = "sum", .data = text });
    }
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "%d", i + 1);
        CHECK(ended(id[i], text) == WEIR_STATE_COMPLETE);
    }
}

static void fail_and_retry(void)
{
    uint64_t id = add_one((weir_spec){ .type = "flaky", .attempts = 2 });
    CHECK(ended(id, NULL) == WEIR_STATE_COMPLETE);
    id = add_one((weir_spec){ .type = "flaky" });
    CHECK(ended(id, NULL) == WEIR_STATE_FAILED);
    weir_job *job;
    CHECK(!weir_get(q, id, &job, &err) && !strcmp(job->error, "not yet"));
    weir_job_free(job);
    CHECK(!weir_retry(q, id, &err));
    CHECK(ended(id, NULL) == WEIR_STATE_COMPLETE);
}

static bool has_line(uint64_t id, const char *text)
{
    weir_lines *lines;
    CHECK(!weir_logs(q, id, 0, 0, &lines, &err));
    bool has = lines->n == 1 && !strcmp(lines->line[0].text, text);
    weir_lines_free(lines);
    return has;
}

static void progress(void)
{
    uint64_t id = add_one((weir_spec){ .type = "slow" });
    UNTIL(has_progress(id, 25) && has_line(id, "a quarter"));
    atomic_store(&seen, 1);
    CHECK(ended(id, NULL) == WEIR_STATE_COMPLETE);
}

static void cancel(void)
{
    uint64_t id = add_one((weir_spec){ .type = "endless" });
    UNTIL(has_progress(id, 50));
    CHECK(!weir_cancel(q, id, &err));
    UNTIL(atomic_load(&cancelled));
    CHECK(state_of(id) == WEIR_STATE_CANCELLED);
    id = add_one((weir_spec){ .type = "first", .delay_ms = 3600000 });
    CHECK(!weir_cancel(q, id, &err));
    CHECK(state_of(id) == WEIR_STATE_CANCELLED);
}

static void schedule(void)
{
    weir_schedules *list;
    uint64_t        id;
    CHECK(!weir_schedule_put(q, &(weir_schedule){ .name = "nightly", .when = "0 3 * * *",
                                                  .job = { .type = "night" } }, &err));
    CHECK(!weir_schedule_fire(q, "nightly", &id, &err));
    CHECK(state_of(id) == WEIR_STATE_INACTIVE);
    CHECK(!weir_schedule_get(q, "nightly", &list, &err) && list->schedule[0].next_at > 0);
    weir_schedules_free(list);
    CHECK(!weir_schedule_remove(q, "nightly", &err));
    CHECK(weir_schedule_get(q, "nightly", &list, &err) == WEIR_ENOENT);
}

static weir_code request(const char *body, const char *expected)
{
    weir_reply reply;
    weir_code  rc = weir_bus_request(bus, "double", &(weir_content){ .body = body }, 2000, &reply,
                                     &err);
    if (!rc)
        CHECK(!strcmp(weir_message_body(reply.message, NULL), expected));
    weir_message_free(reply.message);
    return rc;
}

static void talk(void)
{
    weir_consumer *c[2];
    UNTIL(!request("21", "42"));
    for (int i = 0; i < 2; i++)
        CHECK(!weir_bus_consume(&c[i], bus, &(weir_consumer_config){ .address = "news",
                                .handler = news, .ctx = &heard[i] }, &err));
    CHECK(!weir_bus_publish(bus, "news", &(weir_content){ .body = "\"!\"" }, &err));
    UNTIL(atomic_load(&heard[0]) && atomic_load(&heard[1]));
    for (int i = 0; i < 2; i++)
        weir_consumer_close(c[i]);
    weir_reply reply;
    CHECK(weir_bus_request(bus, "nobody", NULL, 2000, &reply, &err));
    CHECK(reply.failure == WEIR_FAILURE_NO_HANDLERS);
}

static void reconnect(void)
{
    char       line[32];
    weir_added added;
    weir_job  *job = NULL;
    uint64_t   id = add_one((weir_spec){ .type = "stays" });
    printf("# restart\n");
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin));
    UNTIL(!weir_get(q, id, &job, &err));
    CHECK(!strcmp(job->type, "stays"));
    weir_job_free(job);
    UNTIL(!weir_add(q, &(weir_spec){ .type = "sum", .data = "{\"a\":1,\"b\":2}" }, &added, &err));
    UNTIL(!weir_wait(q, added.id, PATIENCE_MS, &job, &err));
    CHECK(!strcmp(job->result, "3"));
    weir_job_free(job);
    UNTIL(!request("4", "8"));
}

static const struct { const char *name; void (*run)(void); } steps[] = {
    { "add", add }, { "bulk", bulk }, { "wait", wait_for_one }, { "work", work },
    { "fail and retry", fail_and_retry }, { "progress", progress }, { "cancel", cancel },
    { "schedule", schedule }, { "talk", talk }, { "reconnect", reconnect },
};

static const struct { const char *type; weir_handler *handler; } handlers[] = {
    { "sum", sum }, { "flaky", flaky }, { "slow", slow }, { "endless", endless },
};

int main(void)
{
    weir_consumer *doubles;
    int            n = sizeof steps / sizeof *steps;
    CHECK(!weir_open(&q, getenv("WEIR_STORE"), NULL, &err));
    CHECK(!weir_bus_open(&bus, q, &err));
    CHECK(!weir_bus_consume(&doubles, bus, &(weir_consumer_config){ .address = "double",
                            .handler = twice }, &err));
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        CHECK(!weir_process(q, handlers[i].type, &(weir_pool_config){ .threads = 2,
                            .handler = handlers[i].handler }, NULL, &err));
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        steps[i].run();
        printf("ok %d - %s\n", i + 1, steps[i].name);
        fflush(stdout);
    }
    weir_consumer_close(doubles);
    weir_bus_close(bus);
    weir_close(q);
    return 0;
}
