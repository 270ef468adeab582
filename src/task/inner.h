/* inner.h - tasks over jobs: what the files of this room share.
 *
 * A task's members are in its job's data (spec.c writes them, read.c reads them):
 *
 *     {"task":"ID","classifier":"default","relative_id":"...","name":"...","attachment":...,
 *      "var1":"...","result_store":"direct","version":2,"schedule":"@daily","zone":"UTC",
 *      "index":"weirtask tHASH cHASH rHASH"}
 *
 * "index" alone is indexed for search, in every store: a word that all tasks have, and hashes of
 * the id, of the classifier, and of classifier and relative id. A hash finds candidates; the
 * members themselves are compared.
 *
 * The text of a handler, or the reason of a cancel, is the job's value "result_state" while the
 * task is ready or cancelled. A completed task has it in the job's result, with the handler's own:
 * {"ip":"192.0.2.1","result_state":"sent","result":{"n":1}}. Any other result is a handler's. */
#ifndef WEIR_TASK_INNER_H
#define WEIR_TASK_INNER_H

#include <pthread.h>

#include "core/fields.h"
#include "task/table.h"
#include "weir/schedule.h"
#include "weir/task.h"

enum {
    TASK_TYPE_ROOM = WEIR_MAX_TASK_TEXT + 24,      /* "SERVICE@VERSION" */
    TASK_SAID_BYTES = 300,                         /* of a result_state; more is cut */
    TASK_MARKED = 32, TASK_ENDED = 1024
};
#define TASK_SAID   "result_state"                 /* values of the job: see above, and */
#define TASK_FAILED "task_failed"                  /* the delivery whose handler failed with the
                                                      words of a timeout */

typedef struct task_service {
    char              name[WEIR_MAX_TASK_TEXT + 1];
    weir_task_service what;
} task_service;

struct weir_tasks {
    weir_queue     *q;
    int64_t         version;
    char            worker[WEIR_MAX_WORKER + 1];    /* "": this program */
    char            ip[64];
    task_table     *table;                          /* of record; NULL: none */
    pthread_mutex_t lock;                           /* guards what follows */
    task_service    service[WEIR_MAX_TASK_SERVICES];
    size_t          n_services;
    bool            running;                        /* the loop */
    int32_t         threads;
    size_t          in_handler;                     /* runs that have not ended ... */
    pthread_cond_t  quiet;                          /* ... and no more exist */
    struct task_pool {
        weir_pool  *pool;
        char        type[TASK_TYPE_ROOM];           /* a version beyond 0; "": all services */
    }               pool[WEIR_MAX_TASK_SERVICES];
    size_t          n_pools;
    struct task_marked {                            /* classifiers whose mark was looked for */
        char        name[WEIR_MAX_TASK_TEXT + 1];
    }               marked[TASK_MARKED];
    size_t          n_marked;
    struct task_ended {
        uint64_t    job;
        uint32_t    delivery;
    }               ended[TASK_ENDED];              /* runs of this program; at job % TASK_ENDED */
    weir_listener  *listener;                       /* of whoever runs and stops the loop */
    struct task_follower *follower;                 /* NULL: nothing is followed */
};

/* ---- spec.c ---- */

/* A task that is about to be submitted. */
typedef struct task_draft {
    char     type[TASK_TYPE_ROOM];
    char     id[WEIR_MAX_TASK_ID + 1];
    weir_buf data;                                  /* weir__buf_fini() */
    int64_t  run_at;
} task_draft;

/* Is all of it right? Fills in what is not given. */
weir_code weir__task_draft(task_draft *out, const weir_task_spec *spec, int64_t now,
                           weir_error *err);
weir_spec weir__task_job(const task_draft *d, const weir_task_spec *spec);

/* The type of tasks of this service and version. */
void weir__task_type(char out[TASK_TYPE_ROOM], const char *service, int64_t version);
/* The version in a type of this service; -1: it is of another. */
int64_t weir__task_type_version(const char *type, const char *service);

weir_code weir__task_id_check(const char *id, const char *field, weir_error *err);
weir_code weir__task_text_check(const char *text, const char *field, weir_error *err);

/* The first firing after `after`; 0: none. */
weir_code weir__task_next(const weir_task_spec *spec, int64_t created_at, int64_t after,
                          int64_t *out, weir_error *err);

/* Words of the index, to search for. */
typedef struct task_word {
    char text[24];
} task_word;
#define TASK_WORD_ALL "weirtask"
task_word weir__task_word_id(const char *id);
task_word weir__task_word_classifier(const char *classifier);
task_word weir__task_word_relative(const char *classifier, const char *relative_id);

/* ---- id.c ---- */

void weir__task_new_id(char out[WEIR_MAX_TASK_ID + 1]);
uint64_t weir__task_random(void);                   /* not 0 */

/* ---- read.c ---- */

/* The task that this job is; *out is NULL if it is none. Owns the job from here on, whatever the
 * outcome, unless `borrow`. False: out of memory. */
bool weir__task_of_job(weir_job *job, bool borrow, weir_task **out);

/* ---- submit.c ---- */

/* Submit tasks that have rows, and whose jobs may exist: each that was missing counts. known[i]:
 * the store remembers that this one was submitted, so it did not lose it. */
weir_code weir__task_restore(weir_tasks *t, const weir_task_spec *specs, size_t n, bool *known,
                             size_t *count, weir_error *err);

/* ---- find.c ---- */

/* Find n tasks by their ids; out[i] is NULL for an unknown id. On failure all are NULL. */
weir_code weir__task_find_ids(weir_tasks *t, const char *const *ids, size_t n, weir_task **out,
                              weir_error *err);
void weir__task_free_all(weir_task **tasks, size_t n);

/* ---- change.c ---- */

/* Write the row of this task as the queue has it now. Without a table, nothing happens. */
weir_code weir__task_record(weir_tasks *t, const char *id, weir_error *err);

/* WEIR_ESTATE: it is in another state, or was just now. */
weir_code weir__task_not_ready(const weir_task *task, weir_error *err);

/* A task with a schedule has ended without being armed again: do it. *armed: it was, and its row is
 * written; if that failed, so is the call. */
weir_code weir__task_rearm(weir_tasks *t, const weir_task *task, bool *armed, weir_error *err);

/* ---- restore.c ---- */

/* Before rows of this classifier are inserted: put its mark into the queue, if no row is open. */
weir_code weir__task_mark(weir_tasks *t, const char *classifier, weir_error *err);

/* Bring all open rows up to date with a queue that has not been lost. */
weir_code weir__task_sweep(weir_tasks *t, weir_error *err);

/* ---- follow.c ---- */

/* Follow the ends of tasks; `ours`: of services here alone. Again: nothing happens. */
weir_code weir__task_follow(weir_tasks *t, bool ours, weir_error *err);
void weir__task_unfollow(weir_tasks *t);            /* what has happened is done first */

/* The run of this job ends as its row says: no need to follow it. */
void weir__task_ended_here(weir_tasks *t, const weir_job *job);

/* ---- tasks.c ---- */

/* Is this the type of a service here, whatever its version? */
bool weir__task_is_ours(weir_tasks *t, const char *type);

/* The types of tasks that can be done here now, NULL at the end: weir__task_types_free(). */
weir_code weir__task_types(weir_tasks *t, char ***out, weir_error *err);
void weir__task_types_free(char **types);

/* The service of this name; false: it is not served here. */
bool weir__task_served(weir_tasks *t, const char *name, weir_task_service *out);

/* ---- run.c ---- */

/* The handler of the pools; ctx is the weir_tasks. */
weir_handler weir__task_handle;

#endif
