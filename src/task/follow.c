/* follow.c - what becomes of tasks, whoever does them: one with a schedule that has ended is armed
 * again, and the row of each is written.
 *
 * Events only say where to look. A thread of its own looks at the jobs, since it waits for the
 * queue and for the database. It writes the present state of the job. If the job has changed
 * meanwhile, it reads it again, so that the last of several followers to write is right. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"
#include "task/inner.h"

enum {
    ROOM = 4096,            /* jobs that wait to be looked at; more: a sweep finds their rows */
    BATCH = 64,
    TYPES = 1024,           /* that this follower remembers */
    TURNS = 5,              /* looks at a job that changes while its row is written */
    RETRY_MS = 500,         /* after trouble */
    PAUSE_MS = 20,          /* between looks (one a type) for tasks of types that had none */
    SWEEP_SHARE = 20        /* a sweep is followed by a pause that is this many times as long */
};

typedef struct seen_type {
    char *name;
    bool  has_tasks;
} seen_type;

typedef struct seen {
    uint64_t job;
    size_t   type;
} seen;

struct task_follower {
    weir_tasks     *t;
    bool            ours;
    weir_listener  *listener;
    pthread_t       thread;
    pthread_mutex_t lock;           /* guards what follows */
    pthread_cond_t  changed;
    bool            stop, sweep, caught_up;
    int64_t         sweep_at;       /* not before (weir__monotonic_ms()) */
    seen            ring[ROOM];
    size_t          first, n;
    seen_type       type[TYPES];
    size_t          n_types;
};

void weir__task_ended_here(weir_tasks *t, const weir_job *job)
{
    pthread_mutex_lock(&t->lock);
    t->ended[job->id % TASK_ENDED] = (struct task_ended){ job->id, job->delivery };
    pthread_mutex_unlock(&t->lock);
}

static bool ended_here(weir_tasks *t, const weir_event *e)
{
    pthread_mutex_lock(&t->lock);
    const struct task_ended *one = &t->ended[e->id % TASK_ENDED];
    bool ended = one->job == e->id && one->delivery == e->delivery;
    pthread_mutex_unlock(&t->lock);
    return ended;
}

/* ---- events ---- */

/* With the lock. TYPES: there are too many. */
static size_t type_of(struct task_follower *f, const char *name)
{
    for (size_t i = 0; i < f->n_types; i++)
        if (strcmp(f->type[i].name, name) == 0)
            return i;
    if (f->n_types == TYPES || !(f->type[f->n_types].name = strdup(name)))
        return TYPES;
    return f->n_types++;
}

static void on_event(const weir_event *e, void *ctx)
{
    struct task_follower *f = ctx;
    bool record = f->t->table != NULL, gone = e->kind == WEIR_EVENT_REMOVE || !e->state;
    pthread_mutex_lock(&f->lock);
    f->sweep = f->sweep || (record && e->missed);
    pthread_mutex_unlock(&f->lock);
    if (!e->id || !e->type || (f->ours && !weir__task_is_ours(f->t, e->type)) ||
        (e->kind == WEIR_EVENT_COMPLETE && ended_here(f->t, e)) ||
        (e->kind == WEIR_EVENT_ENQUEUE && !e->delivery) || (gone && !record))
        return;
    pthread_mutex_lock(&f->lock);
    size_t type = gone ? TYPES : type_of(f, e->type);
    if (gone || type == TYPES || f->n == ROOM)
        f->sweep = record;
    else
        f->ring[(f->first + f->n++) % ROOM] = (seen){ e->id, type };
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* ---- a look at jobs ---- */

/* Does it change while its row is written? Then once more. */
static weir_code settle(weir_tasks *t, weir_job *job, weir_error *err)
{
    weir_code rc = WEIR_OK;
    bool      again = job != NULL;
    for (int turn = 0; again && !rc && turn < TURNS; turn++) {
        weir_task *task = NULL;
        weir_job  *now = NULL;
        bool       armed = false;
        if (!weir__task_of_job(job, true, &task))
            rc = WEIR_ENOMEM;
        if (!rc && task)
            rc = weir__task_rearm(t, task, &armed, err);
        again = !rc && task && !armed && t->table;
        if (again)
            rc = weir__record_update(t->table, task, err);
        if (again && !rc)
            rc = weir_get(t->q, job->id, &now, err);
        if (rc == WEIR_ENOENT) {
            rc = WEIR_OK;           /* the event says so, too */
            again = false;
        }
        again = again && !rc && (now->state != job->state || now->delivery != job->delivery ||
                                 now->updated_at != job->updated_at);
        weir_task_free(task);
        weir_job_free(job);
        job = now;
    }
    weir_job_free(job);
    return rc;
}

/* Jobs of a type are looked at if one of them is a task. */
static weir_code look_at_type(struct task_follower *f, size_t type, weir_error *err)
{
    weir_page *page;
    pthread_mutex_lock(&f->lock);
    const char *name = f->type[type].name;      /* stays as long as the follower */
    bool        known = f->type[type].has_tasks;
    pthread_mutex_unlock(&f->lock);
    if (known || f->ours)
        return WEIR_OK;
    weir_query query = { .search = TASK_WORD_ALL, .type = name, .limit = 1, .ids_only = true };
    weir_code  rc = weir_list(f->t->q, &query, &page, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&f->lock);
    f->type[type].has_tasks = page->n > 0;
    pthread_mutex_unlock(&f->lock);
    weir_page_free(page);
    return rc;
}

static bool is_wanted(struct task_follower *f, size_t type)
{
    pthread_mutex_lock(&f->lock);
    bool wanted = f->ours || f->type[type].has_tasks;
    pthread_mutex_unlock(&f->lock);
    return wanted;
}

/* Has one before it the same type? */
static bool is_before(const seen *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all[k].type == all[i].type)
            return true;
    return false;
}

/* *left: how many of them, moved to the front, could not be done for now. */
static weir_code look(struct task_follower *f, seen *all, size_t n, size_t *left)
{
    weir_job    *job[BATCH] = { NULL };
    weir_future *future[BATCH] = { NULL };
    bool         idle = true;
    weir_code    first = WEIR_OK;
    *left = 0;
    for (size_t i = 0; i < n && !first; i++)
        if (!is_before(all, i))
            first = look_at_type(f, all[i].type, NULL);
    for (size_t i = 0; i < n && !first; i++)
        if (is_wanted(f, all[i].type))
            weir_get_async(f->t->q, all[i].job, &job[i], &future[i], NULL);
    for (size_t i = 0; i < n; i++) {
        weir_code rc = first;
        if (future[i])
            rc = weir_future_wait(future[i], WEIR_FOREVER, NULL);
        else if (!first && is_wanted(f, all[i].type))
            rc = WEIR_ENOMEM;
        idle = idle && !future[i];
        weir_future_free(future[i]);
        if (!rc)
            rc = settle(f->t, job[i], NULL);
        if (weir_code_may_retry(rc) || rc == WEIR_EIO || rc == WEIR_EFULL)
            all[(*left)++] = all[i];
    }
    if (idle && !*left)
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
    return *left ? WEIR_EUNAVAIL : WEIR_OK;
}

/* ---- the thread ---- */

/* With the lock. */
static void wait_ms(struct task_follower *f, int64_t ms)
{
    weir__cond_wait_until(&f->changed, &f->lock, weir__deadline_in(ms));
}

/* With the lock, which it gives up meanwhile. */
static void sweep(struct task_follower *f)
{
    f->sweep = false;
    pthread_mutex_unlock(&f->lock);
    int64_t   start = weir__monotonic_ms();
    weir_code rc = weir__task_sweep(f->t, NULL);
    int64_t   end = weir__monotonic_ms();
    pthread_mutex_lock(&f->lock);
    f->sweep = f->sweep || rc;
    f->sweep_at = end + (end - start) * SWEEP_SHARE + (rc ? RETRY_MS : 0);
}

/* With the lock, which it gives up meanwhile. */
static void take_batch(struct task_follower *f)
{
    seen   batch[BATCH];
    size_t n = 0, left;
    for (; n < BATCH && n < f->n; n++)
        batch[n] = f->ring[(f->first + n) % ROOM];
    f->first = (f->first + n) % ROOM;
    f->n -= n;
    pthread_mutex_unlock(&f->lock);
    weir_code rc = look(f, batch, n, &left);
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < left; i++) {
        if (f->n < ROOM)
            f->ring[(f->first + f->n++) % ROOM] = batch[i];
        else
            f->sweep = f->t->table != NULL;
    }
    if (rc && f->stop)
        f->n = 0;                   /* weir_task_initialize() mends it */
    else if (rc)
        wait_ms(f, RETRY_MS);
}

static void *follow(void *ctx)
{
    struct task_follower *f = ctx;
    pthread_mutex_lock(&f->lock);
    while (!f->stop || f->n) {
        int64_t now = weir__monotonic_ms();
        if (f->n)
            take_batch(f);
        else if (f->sweep && f->sweep_at <= now)
            sweep(f);
        else if (f->sweep)
            wait_ms(f, f->sweep_at - now);
        else
            pthread_cond_wait(&f->changed, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- begin and end ---- */

static void destroy(struct task_follower *f)
{
    for (size_t i = 0; i < f->n_types; i++)
        free(f->type[i].name);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

weir_code weir__task_follow(weir_tasks *t, bool ours, weir_error *err)
{
    uint32_t events = WEIR_BIT(WEIR_EVENT_COMPLETE) | WEIR_BIT(WEIR_EVENT_FAILED);
    if (t->table)
        events |= WEIR_BIT(WEIR_EVENT_CANCELLED) | WEIR_BIT(WEIR_EVENT_REMOVE) |
                  WEIR_BIT(WEIR_EVENT_ENQUEUE) | WEIR_BIT(WEIR_EVENT_FAILED_ATTEMPT);
    if (t->follower)
        return WEIR_OK;
    struct task_follower *f = calloc(1, sizeof *f);
    if (!f)
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    weir__cond_init(&f->changed);
    pthread_mutex_init(&f->lock, NULL);
    f->t = t;
    f->ours = ours;
    f->sweep = t->table != NULL;        /* what happened while nobody followed */
    weir_code rc = weir_listen(t->q, &(weir_filter){ .events = events }, on_event, f, &f->listener,
                               err);
    if (!rc && (rc = weir__thread_start(&f->thread, follow, f, "weir-follow", err)))
        weir_unlisten(f->listener);
    if (rc)
        destroy(f);
    else
        t->follower = f;
    return rc;
}

static void caught_up(weir_code code, const weir_error *err, void *ctx)
{
    struct task_follower *f = ctx;
    (void)code;
    (void)err;
    pthread_mutex_lock(&f->lock);
    f->caught_up = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* On the thread of callbacks, events that happened before this come first. */
static void catch_up(struct task_follower *f)
{
    weir_future *future;
    bool         exists;
    if (weir_exists_async(f->t->q, 1, &exists, &future, NULL))
        return;
    if (!weir_future_then(future, caught_up, f)) {
        pthread_mutex_lock(&f->lock);
        while (!f->caught_up)
            pthread_cond_wait(&f->changed, &f->lock);
        pthread_mutex_unlock(&f->lock);
    }
    weir_future_free(future);
}

void weir__task_unfollow(weir_tasks *t)
{
    struct task_follower *f = t->follower;
    if (!f)
        return;
    catch_up(f);
    weir_unlisten(f->listener);
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    t->follower = NULL;
    destroy(f);
}

weir_code weir_tasks_follow(weir_tasks *t, weir_error *err)
{
    if (t->follower && t->follower->ours)       /* the loop's: this one sees more */
        weir__task_unfollow(t);
    return weir__task_follow(t, false, err);
}
