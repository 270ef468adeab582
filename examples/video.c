/* video.c - converts "videos": long jobs that tell how far they are, with data of their own, and
 * stop early when somebody cancels them. The urgent one goes first though it was added last. */
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

enum { FRAMES = 400, STEP = 100, VIDEOS = 3 };

static void convert_frames(int n)
{
    for (volatile int i = 0; i < n * 1000; i = i + 1)
        ;
}

static weir_code convert(weir_job *job, void *ctx)
{
    (void)ctx;
    for (int frame = STEP; frame <= FRAMES; frame += STEP) {
        if (weir_cancelled(job))
            return WEIR_OK; /* whatever is answered now comes too late */
        convert_frames(STEP);
        char data[64];
        snprintf(data, sizeof data, "{\"frame\":%d}", frame);
        weir_job_progress_data(job, frame, FRAMES, data);
    }
    return weir_job_done(job, "{\"format\":\"webm\"}");
}

static void show(const weir_event *event, void *ctx)
{
    sem_t *finished = ctx;
    char   bar[21];
    switch (event->kind) {
    case WEIR_EVENT_PROGRESS:
        memset(bar, '-', 20);
        memset(bar, '#', (size_t)event->progress / 5);
        bar[20] = '\0';
        printf("video %" PRIu64 " [%s] %3d%% %s\n", event->id, bar, event->progress, event->text);
        break;
    case WEIR_EVENT_COMPLETE:
    case WEIR_EVENT_CANCELLED:
        printf("video %" PRIu64 " is %s\n", event->id, weir_event_name(event->kind));
        sem_post(finished);
        break;
    default:
        break;
    }
}

static weir_code convert_all(weir_queue *q, sem_t *finished, weir_error *err)
{
    const weir_spec specs[VIDEOS] = {
        { .type = "video", .data = "{\"file\":\"holiday.mov\"}", .ttl_ms = 60000 },
        { .type = "video", .data = "{\"file\":\"mistake.mov\"}", .ttl_ms = 60000 },
        { .type = "video", .data = "{\"file\":\"news.mov\"}", .priority = WEIR_CRITICAL },
    };
    weir_added added[VIDEOS];
    weir_code  rc = weir_add_many(q, specs, VIDEOS, added, err);
    if (!rc)
        rc = weir_cancel(q, added[1].id, err);
    if (!rc)
        rc = weir_process(q, "video", &(weir_pool){ .handler = convert }, err);
    for (int i = 0; !rc && i < VIDEOS; i++)
        sem_wait(finished);
    return rc;
}

int main(void)
{
    weir_error     err;
    weir_queue    *q;
    weir_listener *listener = NULL;
    sem_t          finished;
    sem_init(&finished, 0, 0);

    if (weir_open(&q, "mem:", NULL, &err))
        return weir_complain(&err);
    int status = 0;
    if (weir_listen(q, &(weir_filter){ .type = "video" }, show, &finished, &listener, &err) ||
        convert_all(q, &finished, &err))
        status = weir_complain(&err);
    weir_unlisten(listener);
    weir_close(q);
    sem_destroy(&finished);
    return status;
}
