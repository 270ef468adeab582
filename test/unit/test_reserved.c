/* test_reserved.c - reserved members of public structs: a call rejects a struct in which one of
 * them is set, whichever struct it is. */
#include "support/runtime_fixture.h"

#include <string.h>

#include "weir/retryqueue.h"

#define SET .reserved = { (void *)1 }

static void rejected(rt *t, weir_code rc, const char *field)
{
    if (rc != WEIR_EINVAL || strcmp(t->err.field, field) != 0)
        fail_msg("%s, field \"%s\": %s", weir_code_name(rc), t->err.field, t->err.msg);
    t->err = (weir_error){ 0 };
}

static weir_code nothing(weir_job *job, void *ctx)
{
    (void)job;
    (void)ctx;
    return WEIR_OK;
}

static weir_code pass(weir_item *items, size_t n, void *ctx)
{
    (void)items;
    (void)n;
    (void)ctx;
    return WEIR_OK;
}

static void ignore(const weir_event *event, void *ctx)
{
    (void)event;
    (void)ctx;
}

RT_TEST(of_jobs)
{
    weir_queue *other;
    weir_added  added;
    weir_page  *page;
    weir_spec   good = { .type = "a" }, bad = { .type = "a", SET }, specs[] = { good, bad };
    rejected(t, weir_open(&other, "mem:", &(weir_options){ SET }, &t->err), "reserved");
    assert_null(other);
    rejected(t, weir_add(t->q, &bad, &added, &t->err), "reserved");
    rejected(t, weir_add_many(t->q, specs, 2, NULL, NULL, &t->err), "jobs[1].reserved");
    rejected(t, weir_add_many(t->q, &good, 1, &(weir_token){ .key = "k", .number = 1, SET },
                              &added, &t->err), "token.reserved");
    OK(weir_add(t->q, &good, &added, &t->err));
    rejected(t, weir_update(t->q, added.id, &(weir_change){ SET }, NULL, &t->err), "reserved");
    rejected(t, weir_list(t->q, &(weir_query){ SET }, &page, &t->err), "reserved");
    rejected(t, weir_configure(t->q, "a", &(weir_settings){ SET }, &t->err), "reserved");
    rejected(t, weir_schedule_put(t->q, &(weir_schedule){ .name = "s", .when = "@daily",
                                                          .job = good, SET }, &t->err), "reserved");
    rejected(t, weir_schedule_put(t->q, &(weir_schedule){ .name = "s", .when = "@daily",
                                                          .job = bad }, &t->err), "job.reserved");
    weir_job *job = rt_get(t, added.id);
    rejected(t, weir_import(t->q, &(weir_incoming){ .job = job, SET }, 1, NULL, &t->err),
             "reserved");
    const weir_line line = { .n = 1, .at = 1, .text = "x", SET };
    rejected(t, weir_import(t->q, &(weir_incoming){ .job = job, .lines = &line, .n_lines = 1 }, 1,
                            NULL, &t->err), "log[0].reserved");
    weir_job_free(job);
    assert_int_equal(rt_count(t, WEIR_STATE_ANY), 1);
}

RT_TEST(of_workers)
{
    static const char *const types[] = { "a", NULL };
    weir_listener *listener;
    weir_job      *job = NULL;
    size_t         n;
    weir_ended     ended;
    weir_renewed   renewed;
    weir_taking    bad = { .types = types, .n = 1, SET };
    rt_add_type(t, "a");
    rejected(t, weir_process(t->q, "a", &(weir_pool_config){ .handler = nothing, SET }, NULL,
                             &t->err), "reserved");
    rejected(t, weir_take(t->q, &bad, &job, &n, &t->err), "reserved");
    assert_int_equal(n, 0);
    rejected(t, weir_finish(t->q, &(weir_ending){ .id = 1, SET }, 1, &ended, &t->err),
             "endings[0].reserved");
    rejected(t, weir_finish(t->q, &(weir_ending){ .id = 1, .next = &bad, .jobs = &job }, 1, &ended,
                            &t->err), "endings[0].next.reserved");
    assert_int_equal(ended.err.code, WEIR_EINVAL);
    rejected(t, weir_renew(t->q, &(weir_lease){ .id = 1, SET }, 1, &renewed, &t->err),
             "leases[0].reserved");
    assert_int_equal(renewed.err.code, WEIR_EINVAL);
    rejected(t, weir_listen(t->q, &(weir_filter){ SET }, ignore, NULL, &listener, &t->err),
             "reserved");
    weir_stream *stream;
    rejected(t, weir_observe(t->q, "a", &(weir_observing){ SET }, pass, NULL, NULL, &stream,
                             &t->err), "reserved");
    rejected(t, weir_trace_start(&(weir_trace_config){ SET }, &t->err), "reserved");
    assert_int_equal(rt_count(t, WEIR_STATE_INACTIVE), 1);
}

RT_TEST(of_tasks)
{
    weir_tasks         *tasks;
    weir_task_page     *page;
    weir_task_submitted out;
    rejected(t, weir_tasks_open(&tasks, t->q, &(weir_tasks_config){ SET }, &t->err), "reserved");
    OK(weir_tasks_open(&tasks, t->q, NULL, &t->err));
    rejected(t, weir_task_submit(tasks, &(weir_task_spec){ .service = "s", SET }, 1, &out, &t->err),
             "reserved");
    rejected(t, weir_task_list(tasks, &(weir_task_query){ SET }, &page, &t->err), "reserved");
    rejected(t, weir_task_serve(tasks, "s", &(weir_task_service){ SET }, &t->err), "reserved");
    weir_tasks_close(tasks);
}

static void of_the_bus(void **state)
{
    (void)state;
    rt                box = { 0 }, *t = &box;
    weir_bus         *bus;
    weir_mailbox     *mailbox;
    weir_consumer    *consumer;
    weir_service     *service;
    weir_workqueue   *work;
    const weir_action actions[] = { { 0 } }, bad[] = { { .name = "a", SET }, { 0 } };
    OK(weir_bus_create(&bus, &t->err));
    rejected(t, weir_bus_publish(bus, "a", &(weir_content){ SET }, &t->err), "reserved");
    rejected(t, weir_bus_request_async(bus, "a", NULL, &(weir_expect){ SET }, &t->err),
             "reserved");
    rejected(t, weir_mailbox_create(&mailbox, bus, &(weir_mailbox_config){ SET }, &t->err),
             "reserved");
    rejected(t, weir_bus_consume(&consumer, bus, &(weir_consumer_config){ .address = "a", SET },
                                 &t->err), "reserved");
    rejected(t, weir_service_publish(&service, bus, &(weir_service_config){ .name = "a",
                                     .actions = actions, SET }, &t->err), "reserved");
    rejected(t, weir_service_publish(&service, bus, &(weir_service_config){ .name = "a",
                                     .actions = bad }, &t->err), "reserved");
    rejected(t, weir_workqueue_open(&work, bus, &(weir_workqueue_config){ .address = "a", SET },
                                    &t->err), "reserved");
    assert_true(!mailbox && !consumer && !service && !work);
    weir_bus_close(bus);
}

#if WEIR_WITH_REDIS
static void of_retry_queues(void **state)
{
    (void)state;
    rt               box = { 0 }, *t = &box;
    weir_retryqueue *rq;
    rejected(t, weir_retryqueue_open(&rq, "redis://localhost",
                                     &(weir_retryqueue_options){ .key = "k", SET }, &t->err),
             "reserved");
    assert_null(rq);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_jobs),
        cmocka_unit_test(of_workers),
        cmocka_unit_test(of_tasks),
        cmocka_unit_test(of_the_bus),
#if WEIR_WITH_REDIS
        cmocka_unit_test(of_retry_queues),
#endif
    };
    return cmocka_run_group_tests_name("reserved", tests, NULL, NULL);
}
