/* testing.c - test a handler: a queue in memory, and a clock that the test turns. A job that starts
 * in an hour and fails once is done in a moment. docs/guides/testing.md explains it. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/weir.h>

/* What is tested: the first attempt of each job fails. */
static weir_code send_mail(weir_job *job, void *ctx)
{
    (void)ctx;
    if (job->attempts == 0)
        return weir_job_fail(job, "smtp: connection refused");
    return weir_job_done(job, "{\"sent\":true}", 0, NULL);
}

static int64_t test_now(void *ctx)
{
    return atomic_load((_Atomic int64_t *)ctx);
}

static void on_failure(const weir_event *event, void *ctx)
{
    printf("it failed: %.*s\n", (int)event->text_len, event->text);
    sem_post(ctx);
}

int main(void)
{
    _Atomic int64_t now = 1800000000000;
    weir_options    options = { .now = test_now, .now_ctx = &now };
    weir_filter     failures = { .type = "mail", .events = WEIR_BIT(WEIR_EVENT_FAILED_ATTEMPT) };
    weir_spec       spec = { .type = "mail", .delay_ms = 3600000, .attempts = 2,
                             .backoff = { WEIR_BACKOFF_FIXED, .delay_ms = 60000 } };
    weir_error      err;
    weir_queue     *q;
    weir_job       *job;
    weir_added      added;
    weir_listener  *listener;
    sem_t           failed;
    sem_init(&failed, 0, 0);

    if (weir_open(&q, "mem:", &options, &err) ||
        weir_listen(q, &failures, on_failure, &failed, &listener, &err) ||
        weir_process(q, "mail", &(weir_pool_config){ .handler = send_mail }, NULL, &err) ||
        weir_add(q, &spec, &added, &err) || weir_get(q, added.id, &job, &err))
        return weir_complain(&err);
    printf("now it is %s\n", weir_state_name(job->state));
    weir_job_free(job);

    now += 3600000;             /* an hour later */
    weir_wake(q);
    sem_wait(&failed);

    now += 60000;               /* the backoff is over */
    weir_wake(q);
    if (weir_wait(q, added.id, 10000, &job, &err))
        return weir_complain(&err);
    printf("now it is %s, after %d attempts\n", weir_state_name(job->state), job->attempts);
    weir_job_free(job);
    weir_close(q);
    sem_destroy(&failed);
    return 0;
}
