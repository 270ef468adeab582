/* async.c - nothing waits: jobs are added with futures, and the handler only passes each job on (as
 * one would to an event loop) and answers WEIR_LATER. One worker thread has eight jobs running. */
#include <pthread.h>
#include <stdio.h>
#include <weir/weir.h>

enum { JOBS = 8 };

/* Stands for an event loop: collects jobs, and ends them once all are there, the last one first. */
typedef struct loop {
    pthread_mutex_t lock;
    pthread_cond_t  full;
    weir_job       *job[JOBS];     /* guarded by lock, as is n */
    int             n;
} loop;

static weir_code pass_on(weir_job *job, void *ctx)
{
    loop *l = ctx;
    pthread_mutex_lock(&l->lock);
    l->job[l->n++] = job;
    if (l->n == JOBS)
        pthread_cond_signal(&l->full);
    pthread_mutex_unlock(&l->lock);
    return WEIR_LATER;
}

static void *loop_main(void *arg)
{
    loop *l = arg;
    pthread_mutex_lock(&l->lock);
    while (l->n < JOBS)
        pthread_cond_wait(&l->full, &l->lock);
    pthread_mutex_unlock(&l->lock);
    printf("%d jobs are running on one thread\n", JOBS);
    for (int i = JOBS - 1; i >= 0; i--) {
        char result[48];
        snprintf(result, sizeof result, "{\"echo\":%s}", l->job[i]->data);
        weir_job_done(l->job[i], result, 0, NULL);      /* from here on the job is not ours */
    }
    return NULL;
}

/* Add JOBS jobs without waiting for any, then wait for all. */
static weir_code add_all(weir_queue *q, weir_added *added, weir_error *err)
{
    weir_future *future[JOBS] = { 0 };
    weir_code    rc = WEIR_OK;
    for (int i = 0; !rc && i < JOBS; i++) {
        char data[16];
        snprintf(data, sizeof data, "%d", i + 1);
        rc = weir_add_async(q, &(weir_spec){ .type = "echo", .data = data }, &added[i],
                            &future[i], err);
    }
    for (int i = 0; !rc && i < JOBS; i++)
        rc = weir_future_wait(future[i], WEIR_FOREVER, err);
    for (int i = 0; i < JOBS; i++)
        weir_future_free(future[i]);
    return rc;
}

static weir_code run(weir_queue *q, loop *l, weir_error *err)
{
    weir_added added[JOBS];
    weir_pool_config pool = { .handler = pass_on, .ctx = l, .threads = 1, .running = JOBS };
    weir_code  rc = add_all(q, added, err);
    if (!rc)
        rc = weir_process(q, "echo", &pool, NULL, err);
    for (int i = 0; !rc && i < JOBS; i++) {
        weir_job *job;
        rc = weir_wait(q, added[i].id, 20000, &job, err);
        if (!rc)
            printf("%s %s\n", weir_state_name(job->state), job->result);
        if (!rc)
            weir_job_free(job);
    }
    return rc;
}

int main(void)
{
    weir_error  err;
    weir_queue *q;
    pthread_t   thread;
    loop        l = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { 0 }, 0 };
    if (weir_open(&q, "mem:", NULL, &err))
        return weir_complain(&err);
    pthread_create(&thread, NULL, loop_main, &l);
    int status = run(q, &l, &err) ? weir_complain(&err) : 0;
    if (status == 0)
        pthread_join(thread, NULL);
    weir_close(q);
    return status;
}
