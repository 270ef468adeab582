/* learn.c - the tutorial of Kue, told with weir: a job with a priority, a listener for its progress
 * and one for its end, and a handler that answers with a result. */
#include <jansson.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

/* Events come on the queue's callback thread, in the order in which things happened. */
static void on_event(const weir_event *event, void *ctx)
{
    sem_t *finished = ctx;
    if (event->kind == WEIR_EVENT_PROGRESS) {
        printf("I love this! My progress => %d\n", event->progress);
    } else if (event->kind == WEIR_EVENT_COMPLETE) {
        json_t *result = json_loadb(event->text, event->text_len, 0, NULL);
        const char *feeling = json_string_value(json_object_get(result, "feeling"));
        printf("Feeling: %s\n", feeling ? feeling : "none");
        json_decref(result);
        sem_post(finished);
    }
}

static weir_code learn(weir_job *job, void *ctx)
{
    (void)ctx;
    weir_job_progress(job, 10, 100);
    return weir_job_done(job, "{\"feeling\":\"amazing and wonderful!\"}");
}

int main(void)
{
    weir_error     err;
    weir_queue    *q = NULL;
    weir_listener *listener = NULL;
    sem_t          finished;
    sem_init(&finished, 0, 0);

    if (weir_open(&q, "mem:", NULL, &err))
        return weir_complain(&err);
    weir_filter filter = { .type = "learn weir" };
    weir_spec spec = {
        .type = "learn weir",
        .data = "{\"title\":\"Learn weir\",\"content\":\"jobs, events, workers\"}",
        .priority = WEIR_HIGH,
    };
    weir_pool pool = { .handler = learn };

    int status = 0;
    if (weir_listen(q, &filter, on_event, &finished, &listener, &err) ||
        weir_add(q, &spec, NULL, &err) ||
        weir_process(q, "learn weir", &pool, &err))
        status = weir_complain(&err);
    else
        sem_wait(&finished);

    weir_unlisten(listener);
    weir_close(q);
    sem_destroy(&finished);
    return status;
}
