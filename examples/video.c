/* video.c - video conversion: the number of frames is in the job's data, the handler says how far
 * it is, and three videos are converted at once. One attempt breaks off: the next one goes on with
 * the frame that the first has noted in the job. */
#include <inttypes.h>
#include <stdio.h>
#include <weir/weir.h>

enum { VIDEOS = 3, STEP = 50 };

/* Pretend to convert the frames up to this one. */
static void convert_frames(int64_t from, int64_t to)
{
    for (volatile int64_t i = from; i < to; i = i + 1)
        ;
}

static weir_code convert(weir_job *job, void *ctx)
{
    (void)ctx;
    int64_t frames = weir_data_int(job, "frames", 100);
    int64_t frame = weir_value_int(job, "frame", 0);        /* where the last attempt stopped */
    while (frame < frames) {
        if (weir_job_cancelled(job))
            return WEIR_OK; /* whatever is answered now comes too late */
        char    text[24];
        int64_t next = frame + STEP < frames ? frame + STEP : frames;
        convert_frames(frame, next);
        frame = next;
        snprintf(text, sizeof text, "%" PRId64, frame);
        weir_job_set(job, "frame", text, NULL);
        weir_job_progress(job, frame, frames, NULL, 0, NULL);
        if (weir_data_bool(job, "scratched", false) && job->attempts == 0)
            return weir_job_fail(job, "frame %" PRId64 " cannot be read", frame);
    }
    weir_job_log(job, "%" PRId64 " frames converted", frames - weir_value_int(job, "frame", 0));
    return weir_job_done(job, "{\"format\":\"avi\"}", 0, NULL);
}

static weir_code show(weir_queue *q, uint64_t id, weir_error *err)
{
    weir_job   *job;
    weir_lines *log;
    weir_code   rc = weir_wait(q, id, 60000, &job, err);
    if (rc)
        return rc;
    printf("%s: %s, %d%%, %s\n", weir_data_text(job, "title", "?"), weir_state_name(job->state),
           job->progress, job->result);
    weir_job_free(job);
    if ((rc = weir_logs(q, id, 0, 0, &log, err)))
        return rc;
    for (size_t i = 0; i < log->n; i++)
        printf("  %s\n", log->line[i].text);
    weir_lines_free(log);
    return WEIR_OK;
}

static weir_code convert_all(weir_queue *q, weir_error *err)
{
    const weir_spec specs[VIDEOS] = {
        { .type = "video conversion",
          .data = "{\"title\":\"Loki's birthday\",\"user\":1,\"frames\":200}" },
        { .type = "video conversion", .data = "{\"title\":\"Manny's holidays\",\"user\":2}" },
        { .type = "video conversion", .attempts = 2,
          .backoff = { WEIR_BACKOFF_LINEAR, .delay_ms = 20 },
          .data = "{\"title\":\"Jane's wedding\",\"user\":3,\"frames\":175,\"scratched\":true}" },
    };
    weir_added added[VIDEOS];
    weir_code  rc = weir_add_many(q, specs, VIDEOS, NULL, added, err);
    if (!rc)
        rc = weir_process(q, "video conversion",
                          &(weir_pool_config){ .handler = convert, .threads = 3 }, NULL, err);
    for (int i = 0; !rc && i < VIDEOS; i++)
        rc = show(q, added[i].id, err);
    return rc;
}

int main(void)
{
    weir_error  err;
    weir_queue *q;
    if (weir_open(&q, "sqlite:video.db", NULL, &err))
        return weir_complain(&err);
    int status = convert_all(q, &err) ? weir_complain(&err) : 0;
    weir_close(q);
    return status;
}
