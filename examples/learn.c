/* learn.c - the first steps of Vert.x Kue's tutorial with weir: one job with a priority, listeners
 * for its progress and its end, and a handler that takes its time and answers with a result. */
#include <semaphore.h>
#include <stdio.h>
#include <weir/weir.h>

/* Events come on the queue's callback thread, in the order in which things happened. */
static void on_event(const weir_event *event, void *ctx)
{
    sem_t *ended = ctx;
    switch (event->kind) {
    case WEIR_EVENT_PROGRESS:
        printf("I love this! My progress => %d\n", event->progress);
        break;
    case WEIR_EVENT_COMPLETE:
        printf("Feeling: %.*s\n", (int)event->text_len, event->text);
        sem_post(ended);
        break;
    case WEIR_EVENT_FAILED:
        printf("So difficult: %.*s\n", (int)event->text_len, event->text);
        sem_post(ended);
        break;
    default:
        break;
    }
}

/* A handler has a thread of its pool to itself, and may block as long as it likes. */
static weir_code learn(weir_job *job, void *ctx)
{
    (void)ctx;
    printf("Learning %s: %s\n", weir_data_text(job, "title", "?"),
           weir_data_text(job, "content", "?"));
    weir_job_progress(job, 10, 100, NULL, 0, NULL);
    return weir_job_done(job, "\"amazing and wonderful!\"", 0, NULL);
}

int main(void)
{
    weir_error     err;
    weir_queue    *q = NULL;
    weir_listener *listener = NULL;
    sem_t          ended;
    sem_init(&ended, 0, 0);

    if (weir_open(&q, "mem:", NULL, &err))
        return weir_complain(&err);
    weir_filter filter = { .type = "learn weir" };
    weir_spec spec = {
        .type = "learn weir",
        .data = "{\"title\":\"weir\",\"content\":\"jobs, events, workers\"}",
        .priority = WEIR_PRIORITY_HIGH,
    };
    weir_pool_config pool = { .handler = learn };

    int status = 0;
    if (weir_listen(q, &filter, on_event, &ended, &listener, &err) ||
        weir_add(q, &spec, NULL, &err) ||
        weir_process(q, "learn weir", &pool, NULL, &err))
        status = weir_complain(&err);
    else
        sem_wait(&ended);

    weir_unlisten(listener);
    weir_close(q);
    sem_destroy(&ended);
    return status;
}
