/* many.c - many jobs: four users add videos all the time, six are converted at once and never more,
 * and the counts at the end account for every one. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum { USERS = 4, VIDEOS = 250, WORKERS = 6, JOBS = USERS * VIDEOS };

static const char *const names[USERS] = { "tobi", "loki", "jane", "manny" };
static atomic_int        running, most, frames_done;

/* Every hundredth video is damaged. */
static weir_code convert(weir_job *job, void *ctx)
{
    (void)ctx;
    int now = atomic_fetch_add(&running, 1) + 1, before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    int64_t n = weir_data_int(job, "number", 0);
    atomic_fetch_add(&frames_done, (int)weir_data_int(job, "frames", 100));
    atomic_fetch_sub(&running, 1);
    if (n % 100 == 0)
        return weir_job_fail(job, "video %d of %s is damaged", (int)n,
                             weir_data_text(job, "user.name", "nobody"));
    return WEIR_OK;
}

static void *create(void *arg)
{
    weir_queue *q = ((void **)arg)[0];
    const char *name = ((void **)arg)[1];
    for (int i = 1; i <= VIDEOS; i++) {
        char       data[128];
        weir_error err;
        snprintf(data, sizeof data, "{\"title\":\"converting %s's to avi\",\"number\":%d,"
                 "\"user\":{\"name\":\"%s\"},\"frames\":200}", name, i, name);
        if (weir_add(q, &(weir_spec){ .type = "video conversion", .data = data }, NULL, &err))
            exit(weir_complain(&err));
    }
    return NULL;
}

static void on_end(const weir_event *event, void *ctx)
{
    (void)event;
    sem_post(ctx);
}

static weir_code run(weir_queue *q, weir_error *err)
{
    sem_t          ended;
    weir_listener *listener = NULL;
    weir_filter    ends = { .events = WEIR_BIT(WEIR_EVENT_COMPLETE) | WEIR_BIT(WEIR_EVENT_FAILED) };
    weir_pool_config pool = { .handler = convert, .threads = WORKERS };
    sem_init(&ended, 0, 0);

    weir_code rc = weir_listen(q, &ends, on_end, &ended, &listener, err);
    if (!rc)
        rc = weir_process(q, "video conversion", &pool, NULL, err);
    if (!rc) {
        pthread_t thread[USERS];
        void     *arg[USERS][2];
        for (int i = 0; i < USERS; i++) {
            arg[i][0] = q;
            arg[i][1] = (void *)names[i];
            pthread_create(&thread[i], NULL, create, arg[i]);
        }
        for (int i = 0; i < USERS; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < JOBS; i++)
            sem_wait(&ended);
    }
    weir_unlisten(listener);
    sem_destroy(&ended);
    return rc;
}

static weir_code print_counts(weir_queue *q, weir_error *err)
{
    weir_stats *stats;
    weir_code   rc = weir_get_stats(q, &stats, err);
    if (rc)
        return rc;
    printf("waiting %d  complete %d  failed %d\n", (int)stats->all.count[WEIR_STATE_INACTIVE],
           (int)stats->all.count[WEIR_STATE_COMPLETE], (int)stats->all.count[WEIR_STATE_FAILED]);
    printf("%d frames, never more than %d videos at once\n", atomic_load(&frames_done),
           atomic_load(&most) <= WORKERS ? WORKERS : atomic_load(&most));
    weir_stats_free(stats);
    return WEIR_OK;
}

int main(void)
{
    weir_error  err;
    weir_queue *q;
    if (weir_open(&q, "sqlite:many.db?durability=os", NULL, &err))
        return weir_complain(&err);
    int status = run(q, &err) || print_counts(q, &err) ? weir_complain(&err) : 0;
    weir_close(q);
    return status;
}
