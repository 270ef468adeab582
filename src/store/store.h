/* store.h - what a place to keep jobs must do: run batches of atomic operations.
 *
 * A store is one const table (weir_store_ops). One thread enters it at a time: the caller of run()
 * (the batcher) ensures that. op/op.h has the operations and their contracts.
 *
 * Leases, ttls and delays are lengths of time: where one process owns the jobs (mem, sqlite), they
 * do not depend on the wall clock. When op->now_ms and op->steady_ms show that it was set, by
 * weir__clock_step(), the store first does weir__job_clock_set() for every job, and the same for
 * ttls. Moments that were named (run_at, deadline_at) and the ages of finished jobs follow the wall
 * clock. Redis has a clock of its own (docs/redis.md); over http it is the server's. */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include "op/op.h"
#include "store/envelope.h"

/* Events of every kind of other processes: bits WEIR_BIT(weir_event_kind), for want(). */
#define WEIR_WANT_EVENTS UINT32_MAX

/* The environment of a store: values of its user, and functions that the store may call. The
 * functions are called from inside open() or run(), or from a thread of the store's; they must not
 * call back into the store. */
typedef struct weir_env {
    weir_durability durability;     /* WEIR_DURABILITY_DEFAULT: nobody said, also not the URL */
    bool            read_only;
    int64_t         wait_owner_ms;
    const char     *name;           /* of the program, for the owner's mark */
    bool            without_log;    /* open a file although its log is missing: queue.h */
    bool            brief;          /* this process makes a few calls and closes: queue.h */
    bool            keep_taken;     /* active jobs are not lost with the last owner: queue.h */
    bool            test_clock;     /* now() is not the system's clock but a test's: a store that
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
    /* Run these operations of other processes together with the operations of this process, and
     * wait for their answers. They were not checked. From a thread of the store's alone, since it
     * comes back through run(). WEIR_ECLOSED: not done, this process closes the store. NULL: the
     * store does nothing for other processes. */
    void          (*run)(void *ctx, weir_op *const *ops, size_t n);
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
    weir_durability       durability;       /* WEIR_DURABILITY_DEFAULT: it says nothing */
    struct { const char *name, *value; } option[WEIR_MAX_URL_OPTIONS];
    size_t                n_options;        /* without durability */
    char                  text[WEIR_MAX_URL + 1];
} weir_url;

enum { WEIR_STORE_OPS_VERSION = 12 };

struct weir_store_ops {
    const char *name;               /* "sqlite" */
    unsigned    version;            /* WEIR_STORE_OPS_VERSION; checked when opened */
    const char *absent;             /* "Redis": this build has no code for it, and nothing else is
                                       set here. NULL: it is there */
    const char *const *options;     /* names of its options besides durability, NULL at the end;
                                       NULL:
                                       none. Others are refused before open() */
    /* Jobs that were active when the last owner died are dealt with as in TICK 1 before open()
     * returns (where one process owns the jobs). *out is NULL, `err` is not. */
    weir_code (*open)(weir_store **out, const weir_url *url, const weir_env *env, weir_error *err);
    void      (*close)(weir_store *s);
    /* Run n operations, in order, with one commit. Returns an error only when none of them was
     * applied; otherwise each carries its own. */
    weir_code (*run)(weir_store *s, weir_op **ops, size_t n, weir_error *err);
    /* This process stays, and asks for these events (WEIR_WANT_EVENTS): it begins to listen, to
     * wait or to work; 0: it only stays, and env->run() may be called from now on. Earlier requests
     * still hold. Events after the call are not missed silently. Any thread, as long as the
     * store is open, also while run() is running. NULL: env gets every event anyway. */
    void      (*want)(weir_store *s, uint32_t what);
    /* Exchange envelopes with the other processes that have joined (store/envelope.h), until
     * leave(). One member at a time. Waits until envelopes arrive, but not long. leave() returns
     * when no function of the member runs any more. post() does not block: any thread between the
     * two. WEIR_EUNAVAIL, WEIR_EFULL: the envelope was not sent. All NULL: no other process can
     * have this store open. */
    weir_code (*join)(weir_store *s, const weir_member *m, weir_error *err);
    void      (*leave)(weir_store *s);
    weir_code (*post)(weir_store *s, const weir_envelope *e, weir_error *err);
    bool      silent_ends;          /* member->gone() does not report every process that ends:
                                       members must give signs of life */
    bool      bridged;              /* envelopes are messages of a server's TCP bridge (docs/bus.md)
                                       from and to that server; gone(): it is disconnected */
    /* 2: two threads may enter run() at once, if one batch has only operations of WEIR_LANE_WORK
     * and the other has none of them. 0: only one thread may. */
    unsigned  lanes;
    bool      remote;               /* a batch costs a round trip: worth waiting for callers */
    bool      in_process;           /* an operation is over before a thread is asleep and awake
                                       again: nothing is won by not waiting for it */
    /* weir_guard_fd(). Any thread, as long as the store is open. NULL: -1. */
    int       (*guard_fd)(weir_store *s);
};

struct weir_store {                 /* first member of every backend */
    const weir_store_ops *ops;
    bool                  objects_only;     /* data must be so: weir__op_check_objects() */
    bool                  server_fires;     /* schedules: the server does, not this process */
    bool                  lists_all;        /* LIST with weir__listing_parts(), too */
    bool                  waits;            /* run() waits for another process of this machine;
                                               changes in run() alone */
};

/* Is it a URL of a known store, with known options? */
weir_code weir__url_parse(const char *url, weir_url *out, weir_error *err);

/* The value of an option, or NULL. */
const char *weir__url_option(const weir_url *url, const char *name);

/* Open the store at `url`; options in its query ("?durability=os") are put into a copy of *env.
 * On success *out belongs to the caller: (*out)->ops->close(). */
weir_code weir__store_open(weir_store **out, const char *url, const weir_env *env, weir_error *err);

extern const weir_store_ops weir__mem_store;
extern const weir_store_ops weir__sqlite_store;
extern const weir_store_ops weir__redis_store;
extern const weir_store_ops weir__kue_store;
extern const weir_store_ops weir__http_store;

#endif
