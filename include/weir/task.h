/* task.h - tasks: work that the caller names, finds again, moves and cancels by ids of its own.
 *
 * A task is a job. Its type is the name of the service that does the task ("mail", or "mail@2" for
 * tasks of version 2), its data has the other members below, and its state is the job's:
 *
 *     ready        inactive or delayed
 *     running      active
 *     completed    complete
 *     failed       failed
 *     cancelled    cancelled
 *     timed out    failed with "TTL exceeded"
 *
 * So pools, pages, limits, retention, events and workers in other languages are those of jobs, and
 * tasks are kept in every store. docs/time.md has the guide.
 *
 * A weir_tasks may be used from any number of threads at once. Calls fail as those of queue.h do,
 * and with the errors that are listed. They have no `_async` twins: a call can be several
 * operations of the store, each of which depends on the answer before it. A program that must not
 * wait makes them on a thread of its own. */
#ifndef WEIR_TASK_H
#define WEIR_TASK_H

#include "weir/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits: beyond one, a task is refused with WEIR_ELIMIT. */
enum {
    WEIR_MAX_TASK_ID       = 64,        /* bytes of a task's id */
    WEIR_MAX_TASK_TEXT     = 100,       /* bytes of its other texts, one by one */
    WEIR_MAX_TASK_SERVICES = 100,       /* services of one weir_tasks, their versions included */
    WEIR_MAX_TASKS         = 1000,      /* tasks, or ids, in one call */
    WEIR_TASK_LEASE_MS     = 600000     /* a task that weir_task_fire() began and that has no end by
                                           then runs again */
};

typedef enum weir_task_state {
    WEIR_TASK_ANY = 0,                  /* in a query: whatever the state */
    WEIR_TASK_READY,
    WEIR_TASK_RUNNING,
    WEIR_TASK_COMPLETED,
    WEIR_TASK_FAILED,
    WEIR_TASK_CANCELLED,
    WEIR_TASK_TIMED_OUT,
    WEIR_TASK_STATE_COUNT
} weir_task_state;

WEIR_API const char *weir_task_state_name(weir_task_state state);             /* "timed out" */
WEIR_API bool weir_task_state_parse(const char *text, weir_task_state *out);  /* or "timed_out" */

/* A task to submit. Only `service` is needed. All pointers are borrowed for the call. */
typedef struct weir_task_spec {
    const char *service;            /* who does it: weir_task_serve(). It has no "@" */
    const char *id;                 /* unique in the queue, as long as the task is kept; NULL: a new
                                       one of 20 characters. Later ones of a machine sort after
                                       earlier ones; no two machines make the same */
    const char *classifier;         /* NULL: "default" */
    const char *relative_id;        /* of what the task is about: an order, a user */
    const char *name;               /* for people; NULL: the service */
    const char *attachment;         /* JSON for the handler */
    size_t      attachment_len;     /* 0: attachment ends at its NUL */
    const char *var1, *var2, *var3; /* texts for the handler */
    const char *result_store;       /* NULL: "direct": the result is kept with the task and in the
                                       table of record. With any other name it is not in that
                                       table; nothing is stored under that name */
    int64_t     version;            /* only a weir_tasks of this version or a later one does it */
    int64_t     timeout_ms;         /* 0: none. The handler is not stopped, but what it answers
                                       later is ignored: weir_job_cancelled() */
    int64_t     run_at;             /* 0: the next firing of the schedule, else now */
    const char *schedule;           /* an expression (schedule.h): whatever became of a run, the
                                       task is ready again for the next firing after its start */
    const char *zone;               /* of the schedule; NULL: "UTC" */
    void       *reserved[WEIR_RESERVED];
} weir_task_spec;

/* A task, as it was when it was read. Made by weir, freed by the caller with weir_task_free(). */
typedef struct weir_task {
    weir_task_spec  spec;           /* defaults filled in; run_at: when it runs, or was to run */
    weir_task_state state;
    uint64_t        job;            /* its job's id */
    int64_t         created_at;
    int64_t         started_at;     /* of the last run; 0: never */
    int64_t         ended_at;       /* 0: it has not */
    const char     *result_state;   /* what the handler said, the error, or the reason of a cancel;
                                       of a ready task, what was said last; NULL: nothing yet */
    const char     *result;         /* JSON, of a completed task; NULL: none */
    size_t          result_len;
    const char     *host, *ip;      /* who ran it last; NULL: not known */
    bool            unfinished;     /* weir_task_invoke() did not wait for its end */
    weir_job       *taken;          /* in a handler: its job, for weir_job_log(),
                                       weir_job_progress() and weir_job_cancelled(); else NULL */
    struct weir__task_room *room;   /* private */
} weir_task;

WEIR_API void weir_task_free(weir_task *task);   /* NULL is fine */

/* The task as one JSON object (docs/http.md). The caller frees it with free(). NULL when out of
 * memory. */
WEIR_API char *weir_task_json(const weir_task *task, size_t *out_len);

/* ---- delayqueue.properties ---- */

/* The settings of delayqueue.properties. A missing name is "" or false. */
typedef struct weir_task_properties {
    char queue_key[WEIR_MAX_TASK_TEXT + 1];     /* QueueKey: the prefix of the queue on Redis */
    char table[WEIR_MAX_TASK_TEXT + 1];         /* TaskTableName: of the table and the view */
    bool daily_keys;                            /* DailyQueueKey; it changes nothing: a task that is
                                                   due at midnight must not stay behind */
    void *reserved[WEIR_RESERVED];
} weir_task_properties;

/* Read a file of Java properties. WEIR_ENOENT, WEIR_EIO; WEIR_EINVAL: a value is wrong. */
WEIR_API weir_code weir_task_properties_read(const char *file, weir_task_properties *out,
                                             weir_error *err);

/* The URL of a queue with QueueKey as its prefix, if it is on Redis and has none; the URL of a
 * table of record with TaskTableName, if it names none. *out is the caller's: free(). */
WEIR_API weir_code weir_task_properties_queue(const weir_task_properties *p, const char *url,
                                              char **out, weir_error *err);
WEIR_API weir_code weir_task_properties_table(const weir_task_properties *p, const char *url,
                                              char **out, weir_error *err);

/* ---- open and close ---- */

typedef struct weir_tasks weir_tasks;

typedef struct weir_tasks_config {
    int64_t     version;            /* of this program: it does tasks up to this version */
    const char *worker;             /* who runs tasks in weir_task_fire(); NULL: this program */
    const char *table;              /* a table of record in another database, for a queue that can
                                       be lost: "mysql://USER:PASSWORD@HOST:PORT/DATABASE" or
                                       "sqlite:FILE", with "?table=NAME" (t_delay_task) and for
                                       mysql "&socket=FILE". A task has its row before it is
                                       acknowledged. Every program that submits or does tasks of
                                       the queue names the same one. NULL: none */
    const char *properties;         /* a file, delayqueue.properties, which names the table unless
                                       `table` does; NULL: none */
    void       *reserved[WEIR_RESERVED];
} weir_tasks_config;

/* Tasks in this queue, which must stay open. `config` may be NULL. *out belongs to the caller:
 * weir_tasks_close(). That stops the loop, and waits for handlers that run; what they answer then
 * is ignored (weir_tasks_stop() first to be graceful). */
WEIR_API weir_code weir_tasks_open(weir_tasks **out, weir_queue *q, const weir_tasks_config *config,
                                   weir_error *err);
WEIR_API void weir_tasks_close(weir_tasks *t);   /* NULL is fine */

/* The SQL that shows the tasks of a SQLite store as a table with delayqueue's columns: a temporary
 * view of this name (NULL: "t_delay_task"), for a program that reads the file. *out is the
 * caller's: free(). WEIR_EINVAL: the name. */
WEIR_API weir_code weir_task_view(const char *name, char **out, weir_error *err);

/* ---- submit and find ---- */

/* The result for one task. */
typedef struct weir_task_submitted {
    weir_error err;                 /* code WEIR_OK: it is there. WEIR_ESTATE: another task has its
                                       id. Others are of its members */
    char       id[WEIR_MAX_TASK_ID + 1];
    uint64_t   job;
    void      *reserved[WEIR_RESERVED];
} weir_task_submitted;

/* Submit n tasks, at most WEIR_MAX_TASKS; out[i] is for specs[i]. Each is submitted, or not, by
 * itself. The call returns the error of the first that was not. */
WEIR_API weir_code weir_task_submit(weir_tasks *t, const weir_task_spec *specs, size_t n,
                                    weir_task_submitted *out, weir_error *err);

/* Find the task with spec->id, or else submit it. However many processes call this at once, there
 * is one task. *existed (may be NULL): it was there. *out (may be NULL): weir_task_free(). */
WEIR_API weir_code weir_task_find_or_submit(weir_tasks *t, const weir_task_spec *spec,
                                            weir_task **out, bool *existed, weir_error *err);

/* With its result, if it has one. *out: weir_task_free(). Error: WEIR_ENOENT. */
WEIR_API weir_code weir_task_find(weir_tasks *t, const char *id, weir_task **out, weir_error *err);

/* Which tasks; {0} is all of them. */
typedef struct weir_task_query {
    const char        *classifier;      /* NULL: any; with relative_ids: "default" */
    const char *const *relative_ids;    /* NULL at the end: tasks with one of these. NULL: any */
    weir_task_state    state;
    weir_cursor        after;           /* weir_task_page.next of the page before; not with
                                           relative_ids */
    size_t             limit;           /* at most WEIR_MAX_TASKS; 0: 100 */
    void              *reserved[WEIR_RESERVED];
} weir_task_query;

typedef struct weir_task_page {
    weir_task **task;                   /* by the order of submission; with relative_ids, of each */
    size_t      n;
    bool        more;                   /* with a state, a page may be short, and there is more */
    weir_cursor next;                   /* for weir_task_query.after, when there is more */
} weir_task_page;

/* *out: weir_task_page_free(), which frees the tasks, too (to keep one, set its place to NULL).
 * Errors: WEIR_EINVAL, WEIR_ELIMIT. */
WEIR_API weir_code weir_task_list(weir_tasks *t, const weir_task_query *query, weir_task_page **out,
                                  weir_error *err);
WEIR_API void weir_task_page_free(weir_task_page *page);

/* ---- change ---- */

/* Cancel tasks that are ready, by their ids, or by their classifier (NULL: "default") and relative
 * ids; n is at most WEIR_MAX_TASKS. `reason` (may be NULL) becomes their result_state. *cancelled
 * (may be NULL): how many were. Tasks that are unknown, run or have ended are left as they are. */
WEIR_API weir_code weir_task_cancel(weir_tasks *t, const char *const *ids, size_t n,
                                    const char *reason, size_t *cancelled, weir_error *err);
WEIR_API weir_code weir_task_cancel_relative(weir_tasks *t, const char *classifier,
                                             const char *const *relative_ids, size_t n,
                                             const char *reason, size_t *cancelled,
                                             weir_error *err);

/* Change the task with spec->id: members that are NULL or 0 stay as they are. An unknown task is
 * submitted; *submitted (may be NULL) says so. The service, the version and the timeout cannot
 * change: WEIR_EINVAL. WEIR_ESTATE: it runs; with a run_at or a schedule, also: it has ended.
 * WEIR_ENOENT: it is unknown, and there is no service to submit it with. */
WEIR_API weir_code weir_task_adjust(weir_tasks *t, const weir_task_spec *spec, bool *submitted,
                                    weir_error *err);

/* After trouble: what should be ready, is. Tasks of this classifier (NULL: of all) that have a
 * schedule and ended without being armed again are ready for their next firing. With a table of
 * record, tasks that its rows show as ready or running, and that the queue has lost, are submitted
 * again; rows of tasks that have ended or were removed are brought up to date. *armed (may be
 * NULL): how many. */
WEIR_API weir_code weir_task_initialize(weir_tasks *t, const char *classifier, size_t *armed,
                                        weir_error *err);

/* ---- run ---- */

typedef struct weir_task_run weir_task_run;      /* one run of a task, inside its handler */

/* Does one task. May block as long as it likes. Its answer:
 *
 *   return weir_task_done(run, "sent", "{\"n\":1}");    completed, with a text and a result in JSON
 *   return WEIR_OK;                                     completed, without them
 *   return weir_task_fail(run, "smtp: %s", why);        failed
 *   return weir_task_again(run, 5000, "not yet");       ready again: fire it again in 5 s
 *   return any other code;                              failed, with the text of the code */
typedef weir_code weir_task_fn(weir_task_run *run, const weir_task *task, void *ctx);

/* `text` and `result` may be NULL. WEIR_EINVAL: the result is not JSON; WEIR_ELIMIT. */
WEIR_API weir_code weir_task_done(weir_task_run *run, const char *text, const char *result);
WEIR_API weir_code weir_task_fail(weir_task_run *run, const char *fmt, ...) WEIR_PRINTF(2, 3);
WEIR_API weir_code weir_task_again(weir_task_run *run, int64_t delay_ms, const char *text);

typedef struct weir_task_service {
    weir_task_fn *run;
    weir_task_fn *before;           /* before each run; if it returns an error, the run fails with
                                       that and `run` is not called. NULL: none */
    /* After each run, with its outcome: what `before` or `run` returned, or what became of the task
     * meanwhile. WEIR_ETIMEOUT: it has timed out; WEIR_ESTALE: it was cancelled or removed, or its
     * lease ended. The handler's outcome is then ignored. NULL: none. */
    void        (*after)(const weir_task *task, weir_code outcome, void *ctx);
    void         *ctx;
    void         *reserved[WEIR_RESERVED];
} weir_task_service;

/* Do tasks of this service here. The service must stay until weir_tasks_close(). Not while the loop
 * runs: WEIR_ESTATE, which is also for a service that is there already. */
WEIR_API weir_code weir_task_serve(weir_tasks *t, const char *service,
                                   const weir_task_service *what, weir_error *err);

/* Run due tasks of the services here, on the calling thread, at most `max` (0: all). *fired (may be
 * NULL): how many. */
WEIR_API weir_code weir_task_fire(weir_tasks *t, size_t max, size_t *fired, weir_error *err);

/* Run this task now, on the calling thread, whatever its time, its service's other tasks and its
 * version. It does not run again at its time. WEIR_ENOENT; WEIR_ESTATE: it is not ready.
 * WEIR_EINVAL: its service is not served here. */
WEIR_API weir_code weir_task_fire_id(weir_tasks *t, const char *id, weir_error *err);

/* Make this task due now, for whoever does its service. Errors as weir_task_fire_id(). */
WEIR_API weir_code weir_task_promote(weir_tasks *t, const char *id, weir_error *err);

/* Run due tasks of the services here until weir_tasks_stop(), on threads of their own, `threads` at
 * once (0: 1), and as many again for each version beyond 0. Returns at once. */
WEIR_API weir_code weir_tasks_run(weir_tasks *t, int32_t threads, weir_error *err);

/* Stop the loop: as weir_stop() for these pools. Without a loop, WEIR_OK. */
WEIR_API weir_code weir_tasks_stop(weir_tasks *t, int64_t timeout_ms, weir_error *err);

/* Follow tasks of this queue until weir_tasks_close(), whoever does them: a pool of another
 * program, `weir work`, a worker at a server. One with a schedule that has completed, failed or
 * timed out is ready again for its next firing. With a table of record, its row is written when a
 * task ends, is cancelled, tried again or removed; a row that cannot be written now is written
 * later. weir_tasks_run() does so for the services here, `weir serve` and `weir work` for all. */
WEIR_API weir_code weir_tasks_follow(weir_tasks *t, weir_error *err);

/* Submit a task and wait for its end, at most `timeout_ms`. *out is the task with its result; if it
 * has not ended by then, `unfinished` is set, and the task goes on. */
WEIR_API weir_code weir_task_invoke(weir_tasks *t, const weir_task_spec *spec, int64_t timeout_ms,
                                    weir_task **out, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
