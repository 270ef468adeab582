/* queue.h - open a queue; add, find, change and count jobs.
 *
 * A weir_queue may be used from any number of threads at once, and any number of queues may be
 * open in a process. Every call that can fail returns a code, explains itself in `err` (which may
 * be NULL), and sets its outputs to NULL or zero when it fails. `x_async` is `x` without the
 * waiting: see future.h. Besides the codes listed for each call, every call can fail with
 * WEIR_EUNAVAIL, WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM, WEIR_ECLOSED, and in a queue that is
 * open for reading WEIR_EREADONLY. */
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include "weir/event.h"
#include "weir/future.h"
#include "weir/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- open and close ---- */

typedef enum weir_durability {
    WEIR_DURABILITY_DEFAULT = 0,    /* what the URL says (`?durability=os`), else disk; redis: else
                                       what its server does */
    WEIR_DURABILITY_DISK,           /* acknowledged means synced to the disk */
    WEIR_DURABILITY_OS,             /* survives a killed process, not a power cut */
    WEIR_DURABILITY_NONE            /* nothing is promised: mem:, or a Redis that answers before it
                                       writes */
} weir_durability;

WEIR_API const char *weir_durability_name(weir_durability d);   /* "disk" */

typedef struct weir_options {
    weir_durability durability;
    bool            read_only;       /* only look; sqlite: also beside the file's owner */
    int64_t         wait_owner_ms;   /* sqlite: how long to wait for an owner that serves no
                                        others to go; 0: not */
    const char     *name;            /* of this program, shown to others; NULL: its file name */
    int64_t       (*now)(void *ctx); /* a clock of your own (tests): ms since 1970; after */
    void           *now_ctx;         /* turning it call weir_wake(). NULL: the system's */
    int64_t       (*steady)(void *ctx);     /* with `now`: a clock beside it that nobody sets, in ms
                                        from any start but 0; same ctx. NULL: as `now` */
    bool            keep_taken;      /* sqlite: workers are elsewhere and outlive the file's owner:
                                        what they took from the last one is still theirs, with
                                        what was left of their leases, 5 s at least. Else it is
                                        lost */
    bool            brief;           /* sqlite: this process makes a few calls and closes: it does
                                        not mark the file as in use, which costs a sync, before
                                        another process connects */
    bool            without_log;     /* sqlite: open the file, also if it was copied without its log
                                        (WEIR_ECORRUPT otherwise): what was only in there is gone */
    void           *reserved[WEIR_RESERVED];
} weir_options;

/* Open the queue at `url`: "sqlite:jobs.db", "sqlite:/var/lib/x/jobs.db?durability=os",
 * "redis://host", "http://host:7340", "mem:" (docs/stores.md has all of them). A missing store is
 * made, unless read_only is set. `opt` may be NULL. On success *out belongs
 * to the caller: weir_close(). Errors: WEIR_EINVAL (URL), WEIR_EBUSY (names the owner's pid),
 * WEIR_ENOENT (for reading, not there), WEIR_EREADONLY (no permission to write), WEIR_ECORRUPT,
 * WEIR_EVERSION, WEIR_EUNAVAIL (a server, not there). */
WEIR_API weir_code weir_open(weir_queue **out, const char *url, const weir_options *opt,
                             weir_error *err);

/* Stop all workers without waiting for running handlers (call weir_stop() first to be graceful),
 * finish what was submitted, and release everything, listeners included. A handler that is still
 * running keeps its job pointer valid until it returns; what it asks of it then ends with
 * WEIR_ECLOSED. Not from a callback of this queue. NULL is fine. */
WEIR_API void weir_close(weir_queue *q);

/* The clock of weir_options.now has been turned: look at what is due. Any thread. */
WEIR_API void weir_wake(weir_queue *q);

/* Milliseconds since 1970 by the queue's clock. */
WEIR_API int64_t weir_now(weir_queue *q);

/* ---- add ---- */

typedef struct weir_added {
    uint64_t        id;
    weir_state      state;
    bool            existed;        /* its unique key was taken: this is the job that has it */
    weir_durability durability;     /* what was reached before the answer */
    void           *reserved[WEIR_RESERVED];
} weir_added;

/* Add one job. `out` may be NULL. Errors: WEIR_EINVAL, WEIR_ELIMIT; they name the member. */
WEIR_API weir_code weir_add(weir_queue *q, const weir_spec *spec, weir_added *out, weir_error *err);
WEIR_API weir_code weir_add_async(weir_queue *q, const weir_spec *spec, weir_added *out,
                                  weir_future **f, weir_error *err);

/* Identifies a call, so that the store recognises its repetition. */
typedef struct weir_token {
    const char *key;                /* who calls: at most WEIR_MAX_TOKEN bytes of UTF-8 */
    uint64_t    number;             /* of the call; a later one with this key has a higher number */
    uint64_t    digest;             /* of what is asked, made by the caller; 0: none */
    void       *reserved[WEIR_RESERVED];
} weir_token;

/* Add n jobs (at most WEIR_MAX_ADD), all or none: what is wrong with a job is known before any is
 * stored, so a mistake leaves nothing half added. Therefore weir_added has no error of its own, in
 * contrast to weir_ended, weir_renewed and weir_imported, whose items can fail one by one. `out`
 * has room for n, or is NULL. An error names the element: "jobs[3].type: ...".
 * With a token (NULL: none) the call can be repeated safely, when it is not known whether it was
 * done: if a call with this key and number was done in the last WEIR_TOKEN_MS, nothing is added,
 * and the answer is that call's. A higher number takes the place of the lower one, which then ends
 * with WEIR_ESTALE: the store remembers one call of each key. The same key and number with another
 * number of jobs or another digest: WEIR_EINVAL. */
WEIR_API weir_code weir_add_many(weir_queue *q, const weir_spec *specs, size_t n,
                                 const weir_token *token, weir_added *out, weir_error *err);
WEIR_API weir_code weir_add_many_async(weir_queue *q, const weir_spec *specs, size_t n,
                                       const weir_token *token, weir_added *out, weir_future **f,
                                       weir_error *err);

/* ---- one job ---- */

/* *out belongs to the caller: weir_job_free(). Error: WEIR_ENOENT. */
WEIR_API weir_code weir_get(weir_queue *q, uint64_t id, weir_job **out, weir_error *err);
WEIR_API weir_code weir_get_async(weir_queue *q, uint64_t id, weir_job **out, weir_future **f,
                                  weir_error *err);

/* Is there a job with this id? */
WEIR_API weir_code weir_exists(weir_queue *q, uint64_t id, bool *out, weir_error *err);
WEIR_API weir_code weir_exists_async(weir_queue *q, uint64_t id, bool *out, weir_future **f,
                                     weir_error *err);

/* Wait until the job is complete, failed or cancelled, at most `timeout_ms`. *out (may be NULL)
 * gets the job as it is then, also when it failed: weir_job_free(). A job that is removed when
 * it completes is taken from its last event: only id, type, state, result, attempts are set.
 * Errors: WEIR_ETIMEOUT, WEIR_ENOENT. */
WEIR_API weir_code weir_wait(weir_queue *q, uint64_t id, int64_t timeout_ms, weir_job **out,
                             weir_error *err);
WEIR_API weir_code weir_wait_async(weir_queue *q, uint64_t id, weir_job **out, weir_future **f,
                                   weir_error *err);

/* A change of a job. {0} changes nothing. */
typedef struct weir_change {
    bool        set_priority;
    bool        set_delay;
    int32_t     priority;       /* in any state but active */
    int64_t     delay_ms;       /* from now: inactive or delayed becomes delayed, or with 0
                                   inactive; with state WEIR_STATE_DELAYED also what is finished */
    const char *data;           /* JSON; in any state but active */
    size_t      data_len;       /* 0: data ends at its NUL */
    weir_state  state;          /* WEIR_STATE_INACTIVE: delayed is promoted, finished runs again;
                                   WEIR_STATE_DELAYED: with set_delay or run_at;
                                   WEIR_STATE_CANCELLED: cancels; WEIR_STATE_COMPLETE,
                                   WEIR_STATE_FAILED: ended by hand;
                                   WEIR_STATE_ACTIVE: the caller has it, see worker. The last three
                                   from any state but active, and without data or a delay */
    int64_t     run_at;         /* as delay_ms, but until this moment (past: now), and the job's
                                   delay_ms, of which its backoff may be made, stays; 0: not */
    uint32_t    from;           /* states it must be in, bits WEIR_BIT(weir_state); 0: any that
                                   allows it */
    const char *values;         /* JSON object: set these values of the job and leave the others as
                                   they are; null removes one. In any state */
    size_t      values_len;     /* 0: values ends at its NUL */
    uint32_t    delivery;       /* only if the job is active with this delivery, else WEIR_ESTALE;
                                   0: whoever has it */
    /* With WEIR_STATE_ACTIVE: who has it then (NULL: the name of this queue's workers), and the
     * lease; 0: WEIR_DEFAULT_LEASE_MS. The caller ends it as a remote worker does, with the
     * delivery number that weir_get() shows, or it is queued again when the lease is over. */
    const char *worker;
    int64_t     lease_ms;
    const char *by;             /* who changes it, for its history: "the schedule report"; NULL: a
                                   person, "by hand" */
    void       *reserved[WEIR_RESERVED - 1];
} weir_change;

typedef struct weir_updated {
    weir_state from, to;        /* the job's state before and after */
    void      *reserved[WEIR_RESERVED];
} weir_updated;

/* Change a job, all of it or nothing. `out` may be NULL. Errors: WEIR_ENOENT; WEIR_ESTATE (names
 * the state it is in); WEIR_EINVAL, WEIR_ELIMIT. */
WEIR_API weir_code weir_update(weir_queue *q, uint64_t id, const weir_change *change,
                               weir_updated *out, weir_error *err);
WEIR_API weir_code weir_update_async(weir_queue *q, uint64_t id, const weir_change *change,
                                     weir_updated *out, weir_future **f, weir_error *err);

/* Set one value of a job, in any state: `value` is JSON, NULL removes it. A name has letters,
 * digits, "_", "-", "." and ":", and is not that of a field that every job has ("state").
 * weir_change.values sets several at once. Errors as weir_update(). */
WEIR_API weir_code weir_set(weir_queue *q, uint64_t id, const char *name, const char *value,
                            weir_error *err);
WEIR_API weir_code weir_set_async(weir_queue *q, uint64_t id, const char *name, const char *value,
                                  weir_future **f, weir_error *err);

/* Run it again: complete, failed or cancelled becomes inactive, with all its attempts. */
WEIR_API weir_code weir_retry(weir_queue *q, uint64_t id, weir_error *err);
WEIR_API weir_code weir_retry_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);

/* Do not wait for its time: delayed becomes inactive. */
WEIR_API weir_code weir_promote(weir_queue *q, uint64_t id, weir_error *err);
WEIR_API weir_code weir_promote_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);

/* Cancel a job that is inactive, delayed or active. weir_job_cancelled() returns true in its
 * running handler, whose outcome is rejected. */
WEIR_API weir_code weir_cancel(weir_queue *q, uint64_t id, weir_error *err);
WEIR_API weir_code weir_cancel_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);

/* Forget it and its log, in any state. */
WEIR_API weir_code weir_remove(weir_queue *q, uint64_t id, weir_error *err);
WEIR_API weir_code weir_remove_async(weir_queue *q, uint64_t id, weir_future **f, weir_error *err);

/* ---- log ---- */

/* Append a line of `len` bytes (0: it ends at its NUL) to the job's log, in any state. Longer than
 * WEIR_MAX_TEXT it is cut, and beyond WEIR_MAX_LOG lines the oldest goes. With delivery 0 anybody
 * writes; WEIR_ENOENT: there is no such job. With a delivery number the worker that has the job
 * writes, which extends the ttl; WEIR_ESTALE: the job is no longer its. weir adds lines of its own
 * when an attempt fails ("error | why") and when something unusual happens ("stalled | ..."). */
WEIR_API weir_code weir_log(weir_queue *q, uint64_t id, uint32_t delivery, const char *line,
                            size_t len, weir_error *err);
WEIR_API weir_code weir_log_async(weir_queue *q, uint64_t id, uint32_t delivery, const char *line,
                                  size_t len, weir_future **f, weir_error *err);

typedef struct weir_line {
    uint64_t    n;              /* 1, 2, 3 ...: its number in the job's log */
    int64_t     at;
    const char *text;
    void       *reserved[WEIR_RESERVED];
} weir_line;

typedef struct weir_lines {
    weir_line *line;
    size_t     n;
} weir_lines;

/* The lines after number `after` (0: from the start), oldest first, at most `limit` (0:
 * WEIR_MAX_PAGE). *out belongs to the caller: weir_lines_free(). Error: WEIR_ENOENT. */
WEIR_API weir_code weir_logs(weir_queue *q, uint64_t id, uint64_t after, size_t limit,
                             weir_lines **out, weir_error *err);
WEIR_API weir_code weir_logs_async(weir_queue *q, uint64_t id, uint64_t after, size_t limit,
                                   weir_lines **out, weir_future **f, weir_error *err);
WEIR_API void weir_lines_free(weir_lines *lines);

/* ---- lists ---- */

/* Where a page ends. {0} is the start. Treat it as opaque. */
typedef struct weir_cursor {
    int64_t  rank;
    uint64_t id;
} weir_cursor;

/* The order of a list; jobs with the same value are ordered by id. */
typedef enum weir_sort {
    WEIR_SORT_USUAL = 0,        /* see weir_query */
    WEIR_SORT_ID,
    WEIR_SORT_CREATED,
    WEIR_SORT_STARTED,          /* of the last attempt; first those that never started */
    WEIR_SORT_ENDED,            /* first those that have not ended */
    WEIR_SORT_TOOK,             /* duration_ms */
    WEIR_SORT_ATTEMPTS,
    WEIR_SORT_PRIORITY,         /* the most urgent first */
    WEIR_SORT_COUNT
} weir_sort;

WEIR_API const char *weir_sort_name(weir_sort sort);              /* "took"; "usual" */
WEIR_API bool weir_sort_parse(const char *text, weir_sort *out);  /* any case; not "usual" */

/* Which jobs. {0} is all of them. The usual order: with a state, by what matters in it (inactive:
 * as they will run; delayed: by their time; active: by their start; finished: by their end); of
 * several finished states, by their end; else, or with `search`, by id.
 * Inactive jobs of a priority are found at once, in other lists by looking at one job after the
 * other; so are jobs of an error, jobs between two times in a list that is not by time, and those
 * of other states in a list by id. So that a call stays short, it looks at about WEIR_MAX_LOOK of
 * them: such a page may have fewer jobs than `limit`, even none, and yet there is more.
 * Sorted by what a list of the store is not ordered by, each page looks at all jobs that the rest
 * of the query chooses; WEIR_ELIMIT if these are more than WEIR_MAX_SORT. */
typedef struct weir_query {
    weir_state  state;
    uint32_t    states;         /* instead of `state`: bits WEIR_BIT(weir_state); 0: all */
    const char *type;
    const char *const *types;   /* instead of `type`: at most WEIR_MAX_TAKE_TYPES, then NULL */
    const char *search;         /* every word of it is in data, error or log; a word ending in * is
                                   the start of one. Only jobs added with `search` are found */
    const char *error;          /* only jobs whose error has this mask: weir_mask_error() */
    bool        by_priority;    /* only jobs of just this priority */
    int32_t     priority;
    int64_t     since;          /* only jobs whose weir_job_moment() is not before this; 0: any */
    int64_t     until;          /* only jobs whose weir_job_moment() is before this; 0: any */
    weir_sort   sort;
    bool        descending;
    bool        ids_only;       /* fill page->job[i] with ids alone (all else zero) */
    weir_cursor after;          /* where the last page ended */
    size_t      limit;          /* at most WEIR_MAX_PAGE; 0: 100 */
    void       *reserved[WEIR_RESERVED];
} weir_query;

typedef struct weir_page {
    weir_job  **job;
    size_t      n;
    bool        more;
    weir_cursor next;           /* for weir_query.after, when there is more */
} weir_page;

/* *out is the caller's: weir_page_free(), which frees the jobs too (to keep one, set its place to
 * NULL). A server ends a page of large jobs early, with `more`. WEIR_EINVAL, WEIR_ELIMIT. */
WEIR_API weir_code weir_list(weir_queue *q, const weir_query *query, weir_page **out,
                             weir_error *err);
WEIR_API weir_code weir_list_async(weir_queue *q, const weir_query *query, weir_page **out,
                                   weir_future **f, weir_error *err);
WEIR_API void weir_page_free(weir_page *page);

/* ---- counts ---- */

/* How many jobs, by state and type (WEIR_STATE_ANY, NULL: all). Looks at no job. A type that was
 * never seen has none. Error: WEIR_EINVAL (no such state). */
WEIR_API weir_code weir_count(weir_queue *q, weir_state state, const char *type, uint64_t *out,
                              weir_error *err);
WEIR_API weir_code weir_count_async(weir_queue *q, weir_state state, const char *type,
                                    uint64_t *out, weir_future **f, weir_error *err);

/* WEIR_OK: the store answers, and could keep a change now. A file finds that out by writing to its
 * disk, unless it has just done so. A queue that is open for reading only asks a server likewise; a
 * file it does not write to: it looks whether this process may write (WEIR_EREADONLY) and, unless
 * the file has an owner, whether the disk has any room. */
WEIR_API weir_code weir_ready(weir_queue *q, weir_error *err);
WEIR_API weir_code weir_ready_async(weir_queue *q, weir_future **f, weir_error *err);

/* How long finished jobs of a type are kept. {0} is the default: complete jobs
 * WEIR_DEFAULT_KEEP_COMPLETE_MS, and WEIR_DEFAULT_KEEP_COMPLETE of a type at most; failed and
 * cancelled ones WEIR_DEFAULT_KEEP_FAILED_MS. In the layouts of Kue, whose jobs may be another
 * program's, it is for ever. { .age_ms = WEIR_FOREVER } is for ever in all stores. */
typedef struct weir_keep {
    int64_t age_ms;             /* WEIR_FOREVER, or 0 with a count: however old */
    int64_t count;              /* 0: however many; the oldest go first */
} weir_keep;

#define WEIR_DEFAULT_KEEP_COMPLETE_MS (INT64_C(7) * 86400 * 1000)
#define WEIR_DEFAULT_KEEP_FAILED_MS   (INT64_C(90) * 86400 * 1000)
enum { WEIR_DEFAULT_KEEP_COMPLETE = 100000 };

/* Settings of a type. The type "*" has the settings of every type without its own. */
typedef struct weir_settings {
    weir_keep keep_complete;
    weir_keep keep_failed;      /* also for cancelled ones */
    bool      search;           /* index new jobs of this type */
    void     *reserved[WEIR_RESERVED];
} weir_settings;

typedef struct weir_type_stats {
    const char   *type;
    bool          paused;
    weir_settings settings;             /* that hold for it, defaults filled in */
    uint64_t      count[WEIR_STATE_COUNT];  /* by state; [WEIR_STATE_ANY] is their sum */
    uint64_t      completed;            /* executions, ever */
    uint64_t      failed;               /* failed executions, ever */
    int64_t       work_ms;              /* time spent in executions that completed, ever */
    int64_t       last_taken_at;        /* when a worker last took one; 0: never */
    int64_t       oldest_at;            /* created_at of the job that is next; 0: none waits */
    void         *reserved[WEIR_RESERVED];
} weir_type_stats;

typedef struct weir_stats {
    weir_type_stats  all;               /* the sum; type is "*", with its settings */
    weir_type_stats *type;              /* by name */
    size_t           n;
    uint64_t         last_id;
} weir_stats;

/* All of it in one consistent view, without looking at jobs: types, counts, work time. *out
 * belongs to the caller: weir_stats_free(). */
WEIR_API weir_code weir_get_stats(weir_queue *q, weir_stats **out, weir_error *err);
WEIR_API weir_code weir_get_stats_async(weir_queue *q, weir_stats **out, weir_future **f,
                                        weir_error *err);
WEIR_API void weir_stats_free(weir_stats *stats);

/* As one JSON object: what GET /v1/stats and GET /v1/types/{type} answer (docs/http.md). The caller
 * frees it with free(). NULL when out of memory. */
WEIR_API char *weir_stats_json(const weir_stats *stats, size_t *out_len);
WEIR_API char *weir_type_json(const weir_type_stats *type, size_t *out_len);

/* ---- the queue itself ---- */

enum { WEIR_BATCH_SIZES = 11 };

/* How the store is being used by this process, since weir_open(). */
typedef struct weir_metrics {
    uint64_t batches;                   /* calls of the store */
    uint64_t operations;                /* in them */
    uint64_t busy_ns;                   /* time they took */
    uint64_t size[WEIR_BATCH_SIZES];    /* batches by size: [i] of at most 1 << i operations, and
                                           of more than half as many */
    void    *reserved[WEIR_RESERVED];
} weir_metrics;

/* Never waits for the store. Any thread. */
WEIR_API void weir_get_metrics(weir_queue *q, weir_metrics *out);

/* Where the jobs are, and which process keeps them. A text that does not apply is "". */
typedef struct weir_info {
    char            store[16];      /* "mem", "sqlite", "redis", "redis+kue" */
    char            place[240];     /* the file, or the address of the Redis */
    char            engine[40];     /* "SQLite 3.40.1", "Redis 7.0.15" */
    char            weir[16];       /* version of weir in the process that answered: the server, or
                                       the owner of the file; else this one */
    weir_durability durability;     /* that an add reaches */
    int64_t         owner_pid;      /* sqlite: the process that owns the file; 0: none; -1: one
                                       whose number cannot be seen from here (of another user, or
                                       in another container) */
    char            owner[64];      /* ... its program: weir_options.name; of -1 perhaps only whose
                                       process it is */
    uint32_t        peers;          /* ... other processes that work through it, without this one.
                                       0 in a queue that is open for reading */
    int64_t         used_bytes;     /* of what bounds the store: of the file's disk (by everybody),
                                       or of the memory of the Redis, of several the fullest ... */
    int64_t         limit_bytes;    /* ... and how much there is; 0: no limit, or it is not known */
    void           *reserved[WEIR_RESERVED - 2];
} weir_info;

/* Over http it is what the server keeps its jobs in. */
WEIR_API weir_code weir_get_info(weir_queue *q, weir_info *out, weir_error *err);
WEIR_API weir_code weir_get_info_async(weir_queue *q, weir_info *out, weir_future **f,
                                       weir_error *err);

/* ---- types ---- */

/* No worker takes jobs of a paused type; jobs that run, or that a pool has prefetched, go on. "*"
 * pauses all of them (resuming one type does not undo that). The type need not exist yet. */
WEIR_API weir_code weir_pause(weir_queue *q, const char *type, weir_error *err);
WEIR_API weir_code weir_pause_async(weir_queue *q, const char *type, weir_future **f,
                                    weir_error *err);
WEIR_API weir_code weir_resume(weir_queue *q, const char *type, weir_error *err);
WEIR_API weir_code weir_resume_async(weir_queue *q, const char *type, weir_future **f,
                                     weir_error *err);

/* Set all settings of a type. Jobs beyond the new limits are removed
 * immediately. */
WEIR_API weir_code weir_configure(weir_queue *q, const char *type, const weir_settings *settings,
                                  weir_error *err);
WEIR_API weir_code weir_configure_async(weir_queue *q, const char *type,
                                        const weir_settings *settings, weir_future **f,
                                        weir_error *err);

/* ---- moving jobs between stores ---- */

/* A job as it is elsewhere, with its log: lines oldest first, their numbers without a gap. */
typedef struct weir_incoming {
    const weir_job  *job;
    const weir_line *lines;
    size_t           n_lines;
    bool             new_id;        /* give it the next id, also if it has one */
    void            *reserved[WEIR_RESERVED];
} weir_incoming;

typedef struct weir_imported {
    weir_error err;             /* code WEIR_OK: it is there. WEIR_ESTATE: its id is another job's
                                   here, or another job has its unique key. Others: trouble of the
                                   partition it belongs to */
    uint64_t   id;
    weir_state state;
    bool       existed;         /* the job itself was there already; nothing was changed */
    bool       id_taken;        /* WEIR_ESTATE because of its id: another one would do */
    void      *reserved[WEIR_RESERVED];
} weir_imported;

/* Put n jobs in (at most WEIR_MAX_IMPORT) as they are: state, times, attempts, delivery, error,
 * result, log. An active job is imported as inactive. A job keeps its id
 * (ids given later are higher) unless it has none or new_id says so. When there is a job with
 * that id, type and created_at, it is the same one, imported before: so a call can be repeated.
 * Each job is put in, or not, by itself: out[i] says so; `out` may be NULL. The retention of its
 * type applies to an imported job. Type counters (executions, work time) stay as they are.
 * Errors: WEIR_EINVAL, WEIR_ELIMIT; they name the job and its member ("jobs[3].attempts: ..."),
 * and none was put in. */
WEIR_API weir_code weir_import(weir_queue *q, const weir_incoming *jobs, size_t n,
                               weir_imported *out, weir_error *err);
WEIR_API weir_code weir_import_async(weir_queue *q, const weir_incoming *jobs, size_t n,
                                     weir_imported *out, weir_future **f, weir_error *err);

/* A job or schedule with this time (in the year 8307) or a later one is parked: `weir migrate`
 * moves it between two stores, and lists show it so. Its own time is what is beyond, modulo
 * WEIR_PARKED_SPAN: a source adds the span to the time of a job of which the target has a copy. */
#define WEIR_PARKED_AT   INT64_C(200000000000000)
#define WEIR_PARKED_SPAN INT64_C(26000000000000)

/* Read a job from JSON with the names of weir_job_json(), and its log from the member "log":
 * [{"n":1,"at":1700000000000,"text":"..."}]. Only "type" is needed. Unknown members are
 * rejected, as is anything that weir_import() rejects. *out belongs to the caller:
 * weir_job_free(); so does *log (`log` may be NULL; without lines it is empty):
 * weir_lines_free(). Errors: WEIR_EINVAL, WEIR_ELIMIT; they name the member. */
WEIR_API weir_code weir_job_parse(const char *json, size_t len, weir_job **out, weir_lines **log,
                                  weir_error *err);

/* ---- understanding and mending ---- */

/* One thing that happened to a job, or will. */
typedef struct weir_moment {
    int64_t     at;
    const char *what;
    void       *reserved[WEIR_RESERVED];
} weir_moment;

typedef struct weir_story {
    weir_moment *moment;        /* oldest first; what is to come is last */
    size_t       n;
} weir_story;

/* All that is known to have happened to a job: added, each delivery and how it ended, each wait,
 * what was done by hand. Nothing is asked of the store. *out belongs to the caller:
 * weir_story_free(). */
WEIR_API weir_code weir_job_story(const weir_job *job, weir_story **out, weir_error *err);
WEIR_API void weir_story_free(weir_story *story);

/* A remedy that would help a job. Append only: the HTTP API has the names. */
#define WEIR_REMEDIES(X)                                                                          \
    X(NONE,             "none")             /* nothing needs to be done */                        \
    X(RESUME,           "resume")           /* resume its type */                                 \
    X(RESUME_ALL,       "resume_all")       /* resume the type "*": the whole queue is paused */  \
    X(START_WORKER,     "start_worker")     /* start a worker for its type: none takes jobs */    \
    X(ADD_WORKERS,      "add_workers")      /* more workers for its type, or a better priority */ \
    X(PROMOTE,          "promote")          /* promote it, to start it now */                     \
    X(FINISH_MIGRATION, "finish_migration") /* the migration that has parked it must go on */     \
    X(CANCEL,           "cancel")           /* cancel it, if it should not go on */               \
    X(STOP_WORKER,      "stop_worker")      /* stop its worker, if it should not go on: this      \
                                               queue is open for reading only */                  \
    X(RETRY,            "retry")            /* look at its log, mend the cause, retry it */       \
    X(RETRY_LONGER,     "retry_longer")     /* the same, with a longer ttl or with progress */

typedef enum weir_remedy {
#define X(name, text) WEIR_REMEDY_##name,
    WEIR_REMEDIES(X)
#undef X
    WEIR_REMEDY_COUNT
} weir_remedy;

WEIR_API const char *weir_remedy_name(weir_remedy remedy);      /* "start_worker" */

typedef struct weir_explanation {
    weir_job    *job;
    const char  *why;           /* why it is not running, or what became of it; some sentences */
    weir_remedy  remedy;
    weir_moment *moment;        /* as weir_job_story() gives it */
    size_t       n;
} weir_explanation;

/* Why is this job not running, or what happened to it, and what would help? Several reads, one
 * after the other: it may move on meanwhile. *out belongs to the caller:
 * weir_explanation_free(). Error: WEIR_ENOENT. */
WEIR_API weir_code weir_explain(weir_queue *q, uint64_t id, weir_explanation **out,
                                weir_error *err);
WEIR_API weir_code weir_explain_async(weir_queue *q, uint64_t id, weir_explanation **out,
                                      weir_future **f, weir_error *err);
WEIR_API void weir_explanation_free(weir_explanation *e);

/* The damage of a store: one line each. */
typedef struct weir_report {
    char   **line;
    size_t   n;                 /* 0: all is well */
    size_t   mended;            /* how many of them were mended */
    uint64_t jobs;              /* how many were looked at */
} weir_report;

/* Compare everything derived (counts, order, search, unique keys) with the jobs themselves, and
 * each job of a file with its checksum. Looks at every job; other calls wait. With `mend`, what
 * differs is made anew from the jobs, and a damaged job that had not ended fails. *out belongs to
 * the caller: weir_report_free(). */
WEIR_API weir_code weir_check(weir_queue *q, bool mend, weir_report **out, weir_error *err);
WEIR_API weir_code weir_check_async(weir_queue *q, bool mend, weir_report **out, weir_future **f,
                                    weir_error *err);
WEIR_API void weir_report_free(weir_report *r);

#ifdef __cplusplus
}
#endif
#endif
