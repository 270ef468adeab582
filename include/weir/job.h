/* job.h - what a job is: states, priorities, what can be asked for when adding one (weir_spec),
 * and all that is known of one (weir_job).
 *
 * Names of members: `..._ms` is a length of time, `..._at` a moment, in milliseconds since
 * 1970-01-01 UTC. Zero always means "the default" or "never". */
#ifndef WEIR_JOB_H
#define WEIR_JOB_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits. A value over one is refused with WEIR_ELIMIT or WEIR_EINVAL and changes nothing. */
enum {
    WEIR_MAX_TYPE        = 128,              /* bytes of a type's name */
    WEIR_MAX_DATA        = 1024 * 1024,      /* bytes of data, of a result, of progress data */
    WEIR_MAX_DEPTH       = 100,              /* nesting of JSON */
    WEIR_MAX_UNIQUE      = 256,              /* bytes of a unique key */
    WEIR_MAX_SEARCH_KEYS = 512,              /* bytes of the list of search keys */
    WEIR_MAX_VALUES      = 32,               /* values of a job */
    WEIR_MAX_VALUE_NAME  = 64,               /* bytes of a value's name */
    WEIR_MAX_VALUES_BYTES = 8 * 1024,        /* bytes of all of them, as a JSON object */
    WEIR_MAX_TEXT        = 64 * 1024,        /* bytes of an error or a log line; more is cut */
    WEIR_MAX_LOG         = 10000,            /* log lines of a job; the oldest go */
    WEIR_MAX_HISTORY     = 50,               /* entries of its history; the oldest go */
    WEIR_MAX_HISTORY_BYTES = 16 * 1024,      /* and bytes of all of them */
    WEIR_MAX_BY          = 128,              /* bytes of who changed it, in an entry */
    WEIR_MAX_ATTEMPTS    = 1000000,          /* attempts, and lost workers */
    WEIR_MAX_ADD         = 10000,            /* jobs in one call of weir_add_many() */
    WEIR_MAX_ADD_BYTES   = 64 * 1024 * 1024, /* and their bytes of data */
    WEIR_MAX_TOKEN       = 128,              /* bytes of a token's key: weir_token */
    WEIR_TOKEN_MS        = 24 * 3600 * 1000, /* how long one is remembered */
    WEIR_MAX_IMPORT      = 1000,             /* jobs in one call of weir_import(); their texts: as
                                                WEIR_MAX_ADD_BYTES, but one job is never too big */
    WEIR_MAX_PAGE        = 1000,             /* jobs in one page of a list, or taken at once */
    WEIR_MAX_LOOK        = 5000,             /* jobs looked at for one page of a list by priority,
                                               or for one take with a condition */
    WEIR_MAX_SORT        = 100000,           /* jobs looked at for one page of a sorted list */
    WEIR_MAX_TAKE_TYPES  = 100,              /* types one worker takes */
    WEIR_MAX_TAKE_BYTES  = 4 * 1024 * 1024,  /* bytes of data of the jobs of one take, which ends
                                                when its jobs reach this size */
    WEIR_MAX_WORKER      = 200,              /* bytes of a worker's name */
    WEIR_DEFAULT_MAX_LOST = 3,
    WEIR_DEFAULT_LEASE_MS = 30000
};
#define WEIR_MAX_MS (INT64_C(100) * 366 * 86400 * 1000)   /* a delay, ttl or lease: 100 years */
#define WEIR_MAX_ID (UINT64_C(1) << 48)                   /* an id that a job can come in with */

/* Append only: these numbers are in files, in Redis and on sockets. */
typedef enum weir_state {
    WEIR_STATE_ANY = 0,         /* in a query: whatever the state */
    WEIR_STATE_INACTIVE = 1,    /* waits for a worker */
    WEIR_STATE_DELAYED = 2,     /* waits for its time */
    WEIR_STATE_ACTIVE = 3,      /* a worker has it */
    WEIR_STATE_COMPLETE = 4,
    WEIR_STATE_FAILED = 5,
    WEIR_STATE_CANCELLED = 6,
    WEIR_STATE_COUNT            /* how many there are, WEIR_STATE_ANY included */
} weir_state;

WEIR_API const char *weir_state_name(weir_state state);              /* "inactive"; "any" */
WEIR_API bool weir_state_parse(const char *text, weir_state *out);   /* any case; not "any" */

/* Any int32 will do; lower runs first, and within a priority the oldest. */
enum {
    WEIR_PRIORITY_LOW = 10,
    WEIR_PRIORITY_NORMAL = 0,
    WEIR_PRIORITY_MEDIUM = -5,
    WEIR_PRIORITY_HIGH = -10,
    WEIR_PRIORITY_CRITICAL = -15
};

WEIR_API const char *weir_priority_name(int32_t priority);             /* NULL if it has no name */
WEIR_API bool weir_priority_parse(const char *text, int32_t *out);     /* a name or a number */

/* Append only, as states are. */
typedef enum weir_backoff_kind {
    WEIR_BACKOFF_NONE = 0,      /* a failed job is queued again at once */
    WEIR_BACKOFF_FIXED,         /* after delay_ms; if that is 0, after the job's own delay_ms */
    WEIR_BACKOFF_EXPONENTIAL,   /* after delay_ms/2 * (2^n - 1), n = failures so far: 0.5, 1.5,
                                   3.5 ... */
    WEIR_BACKOFF_LINEAR         /* after delay_ms * n: 1, 2, 3 ... */
} weir_backoff_kind;

WEIR_API const char *weir_backoff_name(weir_backoff_kind kind);        /* "none", "fixed" ... */

typedef struct weir_backoff {
    weir_backoff_kind kind;
    int64_t           delay_ms;
    int64_t           max_ms;       /* the delay is never longer; 0: no cap */
    int32_t           jitter_pct;   /* 0..100: up to this share is taken off, differently per job */
} weir_backoff;

/* "none", "fixed:1s", "linear:2s", "exponential:1s:60s". The second time is a cap, which fixed has
 * not; all but none may have jitter at the end: ":20%". */
WEIR_API weir_code weir_backoff_parse(const char *text, weir_backoff *out, weir_error *err);

/* A length of time: "250ms", "5s", "1m30s", "2h", "7d"; a bare number is milliseconds. */
WEIR_API weir_code weir_duration_parse(const char *text, int64_t *out_ms, weir_error *err);

/* Is this a character that nobody sees: a control character, one that turns the direction of text,
 * or one without width? Types must not contain one; escape them before you print text of jobs. */
WEIR_API bool weir_is_hidden(uint32_t code_point);

/* A job to add. Only `type` is needed. All pointers are borrowed for the call. */
typedef struct weir_spec {
    const char  *type;
    const char  *data;              /* JSON; NULL means {} */
    size_t       data_len;          /* 0: data ends at its NUL */
    int32_t      priority;
    int32_t      attempts;          /* executions at most (weir_job.max_attempts); 0: 1 */
    int64_t      delay_ms;          /* start this much later ... */
    int64_t      run_at;            /* ... or at this moment (not both); past: now */
    weir_backoff backoff;
    int64_t      ttl_ms;            /* an attempt that takes longer fails with "TTL exceeded" */
    int64_t      deadline_at;       /* not started by then: fails with "Deadline exceeded" */
    const char  *unique;            /* while a job of this type with this key waits or runs, adding
                                       answers with that job instead */
    int32_t      max_lost;          /* how many times a worker may crash while running the job
                                       before the job fails; 0: 3 */
    bool         remove_on_complete;
    bool         search;            /* index data, error and log for weir_query.search */
    const char  *search_keys;       /* index only these members of data: "to, customer.name";
                                       implies search */
    const char  *values;            /* small values of your own beside data, as a JSON object; they
                                       can be changed in any state: weir_set(), weir_job_set() */
    size_t       values_len;        /* 0: values ends at its NUL */
    void        *reserved[WEIR_RESERVED];
} weir_spec;

/* One job, as it was when it was read. Made by weir, freed by the caller with
 * weir_job_free(); never written to by the caller. Strings end with NUL; a string that is not
 * there is NULL. A later weir may add members at the end. */
typedef struct weir_job {
    uint64_t     id;
    const char  *type;
    weir_state   state;
    int32_t      priority;
    const char  *data;              /* JSON, never NULL */
    size_t       data_len;
    const char  *result;            /* JSON */
    size_t       result_len;
    const char  *error;             /* of the last failure; gone when the job completes */
    const char  *progress_data;     /* JSON */
    size_t       progress_data_len;
    const char  *unique;
    const char  *worker;            /* who has or had it: "host:pid:thread"; taken ahead:
                                       "host:pid" */
    const char  *search_keys;
    weir_backoff backoff;
    int32_t      attempts;          /* executions that have ended, with success or failure */
    int32_t      max_attempts;
    uint32_t     delivery;          /* times it was given to a worker: fences off late ones */
    int32_t      lost;              /* times a worker died with it; if any, it runs alone in its
                                       worker from then on */
    int32_t      max_lost;
    int32_t      progress;          /* percent */
    int64_t      delay_ms, ttl_ms;
    int64_t      deadline_at, created_at, promote_at, updated_at;
    int64_t      started_at, failed_at, finished_at;
    int64_t      duration_ms;       /* of the execution that completed */
    bool         remove_on_complete;
    bool         search;
    bool         at_moment;         /* private: promote_at was named as a moment (run_at), not as a
                                       delay: it follows the wall clock when somebody sets that */
    struct weir__delivery *taken;   /* private: ties a taken job to its queue */
    int64_t      lease_until;       /* active: then it is lost, unless its worker renews. 0: not
                                       active, or it is not known: a worker of Kue's has it, or a
                                       file is read that another process owns */
    const char *history; /* JSON: what happened to it and is not shown above, as a list of
                            entries: docs/http.md; in words: weir_job_story() */
    size_t       history_len;
    struct weir__texts *texts;      /* private: what weir_data_text() has given */
    const char  *values;            /* JSON: an object, its members in the order of their names;
                                       NULL: none. To read one: weir_value_int() and others */
    size_t       values_len;
} weir_job;

WEIR_API void weir_job_free(weir_job *job);   /* NULL is fine */

/* The time of a job: its end; before that its start, when it is due, or when it was added. */
WEIR_API int64_t weir_job_moment(const weir_job *job);

/* The job as one JSON object with Kue's names (docs/cli.md lists them). The caller frees it with
 * free(). NULL when out of memory. */
WEIR_API char *weir_job_json(const weir_job *job, size_t *out_len);

#ifdef __cplusplus
}
#endif
#endif
