/* many.c - many small jobs: four threads add them in lots, a pool with prefetch does them, some
 * fail, and the counts at the end account for every one. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

enum { PRODUCERS = 4, LOTS = 25, LOT = 100, JOBS = PRODUCERS * LOTS * LOT };

/* Every hundredth number is bad. */
static weir_code check_number(weir_job *job, void *ctx)
{
    (void)ctx;
    long n = strtol(job->data, NULL, 10); /* the data is JSON; a bare number is enough */
    if (n % 100 == 0)
        return weir_job_fail(job, "%ld is a bad number", n);
    return WEIR_OK;
}

static void *produce(void *arg)
{
    weir_queue *q = arg;
    char        data[LOT][16];
    weir_spec   spec[LOT];
    for (int lot = 0; lot < LOTS; lot++) {
        for (int i = 0; i < LOT; i++) {
            snprintf(data[i], sizeof data[i], "%d", lot * LOT + i);
            spec[i] = (weir_spec){ .type = i % 2 ? "odd" : "even", .data = data[i] };
        }
        weir_error err;
        if (weir_add_many(q, spec, LOT, NULL, &err))
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
    weir_filter    ends = { .events = 1u << WEIR_EVENT_COMPLETE | 1u << WEIR_EVENT_FAILED };
    const char    *types[] = { "even", "odd", NULL };
    weir_pool      pool = { .handler = check_number, .threads = 4, .prefetch = 16, .types = types };
    sem_init(&ended, 0, 0);

    weir_code rc = weir_listen(q, &ends, on_end, &ended, &listener, err);
    if (!rc)
        rc = weir_process(q, NULL, &pool, err);
    if (!rc) {
        pthread_t thread[PRODUCERS];
        for (int i = 0; i < PRODUCERS; i++)
            pthread_create(&thread[i], NULL, produce, q);
        for (int i = 0; i < PRODUCERS; i++)
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
    for (size_t i = 0; i < stats->n; i++) {
        const weir_type_stats *t = &stats->type[i];
        printf("%-4s  waiting %d  complete %d  failed %d\n", t->type,
               (int)t->count[WEIR_INACTIVE], (int)t->count[WEIR_COMPLETE],
               (int)t->count[WEIR_FAILED]);
    }
    printf("all   %d of %d\n", (int)(stats->all.completed + stats->all.failed), JOBS);
    weir_stats_release(stats);
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
