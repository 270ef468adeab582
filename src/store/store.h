/* store.h - what a place to keep jobs must do: run batches of atomic operations.
 *
 * A store is one const table (weir_store_ops) and is entered by one thread at a time: whoever
 * calls run() (the batcher) sees to that. An operation is a whole step of the domain. It happens
 * entirely or not at all, carries its own inputs, outputs and error, and gets the time from its
 * caller. `mem` is the reference: where the comments here leave a question open, what mem does is
 * the answer, and the conformance suite asks it. What becomes of a job, its history too, is decided
 * by core/job.h for all of them.
 *
 * Leases, ttls and delays are lengths of time: where one process owns the jobs (mem, sqlite), they
 * do not depend on the wall clock. When op->now_ms and op->steady_ms tell that it was set, by
 * weir__clock_step(), the store first does weir__job_clock_set() for every job, and the same for
 * ttls. Moments that were named (run_at, deadline_at) and the ages of finished jobs follow the wall
 * clock. Redis has a clock of its own (docs/redis.md); over http it is the server's.
 *
 * Inputs are borrowed until run() returns and have passed weir__op_check(). Outputs belong to the
 * submitter. An operation that fails has no outputs and changed nothing. */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include "weir/remote.h"

/* kind, member of the union, does it write? */
#define WEIR_OPS(X)                                                                            \
    X(ADD,       add,       true)    /* -> delayed, inactive */                                \
    X(TAKE,      take,      true)    /* inactive -> active */                                  \
    X(FINISH,    finish,    true)    /* active -> complete, failed, delayed, inactive, gone */ \
    X(RENEW,     renew,     true)    /* active, a new deadline */                              \
    X(PROGRESS,  progress,  true)    /* active */                                              \
    X(LOG,       log,       true)    /* any state */                                           \
    X(TICK,      tick,      true)    /* whatever is due at op->now_ms */                       \
    X(UPDATE,    update,    true)    /* by hand: change, retry, promote, cancel */             \
    X(REMOVE,    remove,    true)    /* any state -> gone */                                   \
    X(CONFIGURE, configure, true)    /* a type: pause, resume, settings */                     \
    X(IMPORT,    import,    true)    /* from elsewhere -> any state but active */              \
    X(GET,       get,       false)                                                             \
    X(LIST,      list,      false)                                                             \
    X(LOGS,      logs,      false)                                                             \
    X(STATS,     stats,     false)                                                             \
    X(CHECK,     check,     true)

typedef enum weir_op_kind {
#define X(kind, member, writes) WEIR_OP_##kind,
    WEIR_OPS(X)
#undef X
    WEIR_OP_KINDS
} weir_op_kind;

/* Add n jobs in their order; ids increase and are never used twice. A spec whose unique key is
 * held by a job of its type that is inactive, delayed or active (also one added earlier in the
 * same operation) adds nothing: out[i] names that job with existed = true.
 * With a token, the store remembers in the same step what was answered. While an add with the key
 * of this one is remembered (at + WEIR_TOKEN_MS > now): with the same number, n and digest,
 * nothing happens, and the answer is that one's; with another n or digest WEIR_EINVAL; with a
 * higher number WEIR_ESTALE (weir__token_known()). One with a higher number takes the place of the
 * other.
 * Events: enqueue for each that is inactive. */
typedef struct weir_op_add {
    const weir_spec  *specs;
    size_t            n;
    weir_added       *out;          /* room for n */
    const weir_token *token;        /* NULL: none */
} weir_op_add;

/* Take up to n jobs of these types that are not paused, lowest (priority, id) first over all
 * types. Each becomes active with delivery + 1, started_at = now, progress 0, worker, a lease
 * until now + lease_ms, and ttl running from now. A job whose deadline has passed
 * (deadline_at <= now) is never taken: the TICK fails it. Events: start.
 *
 * A suspect (weir__job_is_suspect()) runs alone in its worker process. When it is the best job, and
 * the worker is not busy, it is the only job of the answer. Else TAKE passes over it, says so in
 * suspect_waits, and gives the jobs behind it. Having passed over WEIR_MAX_PASSED suspects, a store
 * may end the answer. */
enum { WEIR_MAX_PASSED = 100 };
typedef struct weir_op_take {
    const char *const *types;
    size_t             n_types;
    size_t             n;
    int64_t            lease_ms;
    const char        *worker;
    weir_job         **jobs;        /* room for n; weir_job_release() each */
    size_t             n_jobs;      /* out */
    bool               busy;        /* the worker's process has other jobs: no suspects */
    bool               suspect_waits;   /* out: a suspect was passed over */
    bool               told;        /* its caller takes again when enqueue or resume events tell
                                       of these types: the store may leave out where it found
                                       nothing, and nothing was told of since */
    bool               partial;     /* out: a part of the store did not answer; there may be more */
} weir_op_take;

/* End the delivery of a job. WEIR_ESTALE unless the job is active with just this delivery (also
 * when it is not there). DONE: complete, or gone with remove_on_complete. FAIL: see
 * weir__job_fail(); a log line "error | TEXT". LOST: as when its lease is over, see TICK 1. When it
 * worked and next.n > 0, then take, in the same step. Events: complete | failed_attempt, then
 * enqueue if inactive | failed | enqueue | as TICK 1. */
typedef struct weir_op_finish {
    uint64_t      id;
    uint32_t      delivery;
    weir_outcome  outcome;
    const char   *text;
    size_t        len;
    weir_op_take  next;             /* n = 0: none */
    weir_state    state;            /* out: WEIR_ANY when it is gone */
} weir_op_finish;

/* New leases until now + lease_ms. Each item has its own answer: WEIR_OK or WEIR_ESTALE. A lease is
 * seen (lease_until) in what TAKE, GET and LIST give, but by a reader of a file that another
 * process owns. */
typedef struct weir_op_renew {
    weir_lease *items;
    size_t      n;
} weir_op_renew;

/* Percent and data (NULL: unchanged); the ttl runs anew from now. WEIR_ESTALE as in finish.
 * Event: progress. */
typedef struct weir_op_progress {
    uint64_t    id;
    uint32_t    delivery;
    int32_t     percent;
    const char *data;
    size_t      len;
} weir_op_progress;

/* Append a line. delivery != 0: WEIR_ESTALE as in finish, and the ttl runs anew; 0: any state,
 * WEIR_ENOENT when it is not there. updated_at is not changed. */
typedef struct weir_op_log {
    uint64_t    id;
    uint32_t    delivery;
    const char *text;
    size_t      len;
} weir_op_log;

/* Do what is due at now_ms, at most `limit` jobs of each sort, in this order:
 * 1. active, lease over: weir__job_lose(), a log line "stalled | ..."  Events: stalled, then
 *    enqueue or failed. By id.
 * 2. active, ttl over: fails with "TTL exceeded" as in finish. Events: ttl_exceeded, then as FAIL.
 *    By id.
 * 3. waiting (inactive or delayed), deadline_at or promote_at reached, by (that time, id): past
 *    its deadline it fails with "Deadline exceeded" (no attempt used; log line as in FAIL; event
 *    failed); else delayed becomes inactive. Events: promotion, enqueue.
 * 4. complete, failed or cancelled beyond what its type keeps (older than age_ms: finished_at +
 *    age_ms <= now; or more than count): removed, oldest first, type by type in order of name,
 *    states in their order. Events: remove.
 * 5. what is remembered of adds with a token, and is so no longer, oldest first. Nobody can tell
 *    when: so that many go at once, the store may come for them WEIR_TOKEN_LATE_MS later. */
typedef struct weir_op_tick {
    size_t  limit;
    size_t  changed;                /* out: jobs */
    int64_t next_at;                /* out: when something is due again; INT64_MAX: nothing.
                                       May be early, never late. <= now_ms: there is more now */
} weir_op_tick;

/* Change a job by hand: from one of `from` (bits 1u << state; 0: any that allows it), as
 * weir__job_update() says, its events too. WEIR_ENOENT, or with change.delivery
 * WEIR_ESTALE as in finish; WEIR_ESTATE; WEIR_ELIMIT (values). One
 * that becomes active has a lease and a ttl from then on, as after TAKE; one that becomes failed
 * gets a log line. */
typedef struct weir_op_update {
    uint64_t    id;
    uint32_t    from;
    weir_change change;
    weir_state  old_state;          /* out */
    weir_state  new_state;          /* out */
} weir_op_update;

/* Forget a job, its log and its index entries. WEIR_ENOENT. Event: remove. */
typedef struct weir_op_remove {
    uint64_t id;
} weir_op_remove;

/* Pause or resume a type, or set its settings. Makes the type known. Events: pause, resume (only
 * when that changes something). */
typedef struct weir_op_configure {
    const char          *type;
    bool                 set_paused;
    bool                 paused;
    const weir_settings *settings;  /* NULL: as they are */
} weir_op_configure;

/* Put jobs in as they are elsewhere, in their order, each by itself: weir__job_import() says what
 * becomes of one. Its id is kept, and the last id raised to it at least, but for id 0 and new_id,
 * which take the next id. out[i].err:
 *   WEIR_OK      it was put in with its log; or a job with its id, type and created_at is there:
 *                existed = true, nothing changed, state is that job's
 *   WEIR_ESTATE  weir__id_taken(): another job has its id (id_taken = true); weir__key_taken(): it
 *                waits, and another job of its type that is inactive, delayed or active has its
 *                unique key; in a store of several partitions: its id and its key belong to
 *                different ones (id_taken = true)
 *   others       in a store of several partitions: the trouble of its own
 * Makes the type known, if it was put in; the type's counters stay. Whether it is searched is said
 * by the job alone. Events: enqueue for each that is inactive. */
typedef struct weir_op_import {
    const weir_incoming *jobs;
    size_t               n;
    weir_imported       *out;       /* room for n */
} weir_op_import;

/* WEIR_ENOENT when it is not there. */
typedef struct weir_op_get {
    uint64_t  id;
    weir_job *job;                  /* out: weir_job_release() */
} weir_op_get;

/* With by_priority the page ends early, with `more`, when WEIR_MAX_LOOK jobs were looked at that
 * the rest of the query wants; next is then the place of the last of those. A store that walks
 * several lists at once may look at some more or fewer: whoever goes on to the end finds the same
 * jobs. */
typedef struct weir_op_list {
    weir_query query;               /* limit already between 1 and WEIR_MAX_PAGE; `after` not before
                                       the priority in a list weir__ranked_by_priority() */
    weir_page *page;                /* out: weir_page_release() */
} weir_op_list;

/* Is this list in the order of priority? Then jobs of one are next to each other, and a walk that
 * meets another has found them all. */
static inline bool weir__ranked_by_priority(const weir_query *q)
{
    return q->state == WEIR_INACTIVE && !q->search;
}

typedef struct weir_op_logs {
    uint64_t    id;
    uint64_t    after;
    size_t      limit;
    weir_lines *lines;              /* out: weir_lines_release() */
} weir_op_logs;

/* `probe`: an owner of jobs also finds out whether it could keep a change now; if not, the error is
 * that of the change (WEIR_EFULL, WEIR_EIO, WEIR_EUNAVAIL ...). Stores elsewhere only answer. */
typedef struct weir_op_stats {
    bool        probe;
    weir_stats *stats;              /* out: weir_stats_release() */
} weir_op_stats;

typedef struct weir_op_check {
    bool         mend;
    weir_report *report;            /* out: weir_report_release() */
} weir_op_check;

typedef struct weir_op {
    weir_op_kind kind;
    int64_t      now_ms;            /* by the wall clock */
    int64_t      steady_ms;         /* the same moment by a clock that nobody sets; 0: not known */
    union {
#define X(kind, member, writes) weir_op_##member member;
        WEIR_OPS(X)
#undef X
    } u;
    weir_error   err;               /* its own outcome; code is WEIR_OK when it worked */
} weir_op;

/* What a store is given by whoever opens it, and may call. The functions are called from inside
 * open() or run(), or from a thread of the store's; they must not call back into the store. */
typedef struct weir_env {
    weir_durability durability;     /* WEIR_DURABLE_DEFAULT: nobody said, also not the URL */
    bool            read_only;
    int64_t         wait_owner_ms;
    const char     *name;           /* of the program, for the owner's mark */
    bool            keep_taken;     /* active jobs are not lost with the last owner: queue.h */
    bool            own_clock;      /* now() is not the system's clock but a test's: a store that
                                       would ask a server for the time takes op->now_ms instead */
    int64_t       (*now)(void *ctx);
    /* These happened, and are committed; what happened to one job is in its order. Borrowed for the
     * call. */
    void          (*emit)(void *ctx, const weir_event *events, size_t n);
    /* A TICK is wanted at that time. Called when that is earlier than what the last TICK or the
     * last call said; too early does no harm. */
    void          (*due)(void *ctx, int64_t at_ms);
    /* Events of other processes may have been missed: whoever waits for one has to look. NULL: it
     * does not matter. */
    void          (*lost)(void *ctx);
    void           *ctx;
} weir_env;

typedef struct weir_store weir_store;
typedef struct weir_store_ops weir_store_ops;

/* "SCHEME:REST?NAME=VALUE&...", cut into its parts, which are strings in one block of their own.
 * Values of options are percent-decoded; the rest is left as it is. */
enum { WEIR_MAX_URL = 4096, WEIR_MAX_URL_OPTIONS = 16 };
typedef struct weir_url {
    const weir_store_ops *ops;      /* of the scheme */
    const char           *scheme;   /* "redis+unix" */
    const char           *rest;
    weir_durability       durability;       /* WEIR_DURABLE_DEFAULT: it says nothing */
    struct { const char *name, *value; } option[WEIR_MAX_URL_OPTIONS];
    size_t                n_options;        /* without durability */
    char                  text[WEIR_MAX_URL + 1];
} weir_url;

enum { WEIR_STORE_OPS_VERSION = 8, WEIR_MAX_LANES = 2 };

struct weir_store_ops {
    const char *name;               /* "sqlite" */
    unsigned    version;            /* WEIR_STORE_OPS_VERSION; checked when opened */
    const char *const *options;     /* names it knows besides durability, NULL at the end; NULL:
                                       none. Others are refused before open() */
    /* Jobs that were active when the last owner died are dealt with as in TICK 1 before open()
     * returns (where one process owns the jobs). */
    weir_code (*open)(weir_store **out, const weir_url *url, const weir_env *env, weir_error *err);
    void      (*close)(weir_store *s);
    /* Run n operations, in order, with one commit. Returns an error only when none of them was
     * applied; otherwise each carries its own. */
    weir_code (*run)(weir_store *s, weir_op **ops, size_t n, weir_error *err);
    /* 2: run() may be entered by two threads at once, as long as one of the batches is only of
     * operations with weir_op_info.lane 1 and the other has none of them. 0: by one only. */
    unsigned  lanes;
    bool      far;                  /* a batch costs a round trip: worth waiting for callers */
    bool      instant;              /* an operation is over before a thread is asleep and awake
                                       again: nothing is won by not waiting for it */
};

struct weir_store {                 /* first member of every backend */
    const weir_store_ops *ops;
    bool                  objects_only;     /* data must be so: weir__op_check_objects() */
};

/* Is it a URL of a store we know, with options it knows? */
weir_code weir__url_parse(const char *url, weir_url *out, weir_error *err);

/* The value of an option, or NULL. */
const char *weir__url_option(const weir_url *url, const char *name);

/* Open the store at `url`; options in its query ("?durability=os") are put into a copy of *env.
 * On success *out belongs to the caller: (*out)->ops->close(). */
weir_code weir__store_open(weir_store **out, const char *url, const weir_env *env, weir_error *err);

/* Is the operation within the limits, its JSON valid? Fills in defaults (lengths, limits). Called
 * by the submitter, on its own thread, before the store sees it. */
weir_code weir__op_check(weir_op *op, weir_error *err);

/* Is all data that a checked operation brings a JSON object? For a store that accepts no other. */
weir_code weir__op_check_objects(const weir_op *op, weir_error *err);

/* The table of all operations: name and whether it writes. */
typedef struct weir_op_info {
    const char *name;
    bool        writes;
    unsigned    lane;               /* 1: what workers do with jobs they have or want */
} weir_op_info;
extern const weir_op_info weir__op_info[WEIR_OP_KINDS];

extern const weir_store_ops weir__mem_store;
extern const weir_store_ops weir__sqlite_store;
extern const weir_store_ops weir__redis_store;
extern const weir_store_ops weir__kue_store;
extern const weir_store_ops weir__http_store;

#endif
