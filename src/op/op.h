/* op.h - the operations of a store: what each one does, and one row for each with all that the rest
 * of the tree asks about operations.
 *
 * An operation is a whole step of the domain. It happens entirely or not at all, carries its own
 * inputs, outputs and error, and gets the time from its caller. Inputs are borrowed until the store
 * returns and have passed weir__op_check(). Outputs belong to the submitter: weir__op_free().
 * An operation that fails has no outputs and changed nothing.
 *
 * `mem` is the reference store: if the comments here leave a question open, mem answers it, and the
 * conformance suite asks it. core/job.h decides about jobs. */
#ifndef WEIR_OP_OP_H
#define WEIR_OP_OP_H

#include "base/buf.h"
#include "core/fields.h"
#include "core/trend.h"
#include "op/role.h"
#include "weir/remote.h"

/* kind, member of the union; one file op_MEMBER.c each */
#define WEIR_OPS(X)                                                                     \
    X(ADD,       add)       /* -> delayed, inactive */                                  \
    X(TAKE,      take)      /* inactive -> active */                                    \
    X(FINISH,    finish)    /* active -> complete, failed, delayed, inactive, gone */   \
    X(RENEW,     renew)     /* active, a new deadline */                                \
    X(PROGRESS,  progress)  /* active */                                                \
    X(LOG,       log)       /* any state */                                             \
    X(TICK,      tick)      /* whatever is due at op->now_ms */                         \
    X(UPDATE,    update)    /* by an administrator: change, retry, promote, cancel */   \
    X(REMOVE,    remove)    /* any state -> gone */                                     \
    X(CONFIGURE, configure) /* a type: pause, resume, settings */                       \
    X(IMPORT,    import)    /* from elsewhere -> any state but active */                \
    X(SCHEDULE,  schedule)  /* put or remove a schedule */                              \
    X(SCHEDULES, schedules)                                                             \
    X(TREND_PUT, trend_put) /* what happened in a minute or an hour */                  \
    X(TREND_GET, trend_get)                                                             \
    X(GET,       get)                                                                   \
    X(LIST,      list)                                                                  \
    X(LOGS,      logs)                                                                  \
    X(STATS,     stats)                                                                 \
    X(INFO,      info)      /* which store it is, and who keeps it */                   \
    X(CHECK,     check)

typedef enum weir_op_kind {
#define X(kind, member) WEIR_OP_##kind,
    WEIR_OPS(X)
#undef X
    WEIR_OP_COUNT
} weir_op_kind;

/* ---- the operations ---- */

/* Add n jobs in their order; ids increase and are never used twice. If an inactive, delayed or
 * active job of the type has a spec's unique key (also one added earlier in the same operation),
 * the spec adds nothing: out[i] names that job with existed = true.
 * With a token, the store remembers in the same step what was answered. While an add with the key
 * of this one is remembered (at + WEIR_TOKEN_MS > now): with the same number, n and digest, nothing
 * happens, and the answer is repeated. With another n or digest WEIR_EINVAL; with a higher number
 * WEIR_ESTALE (weir__token_known()). One with a higher number takes the place of the other.
 * Events: enqueue for each that is inactive. */
typedef struct weir_op_add {
    const weir_spec  *specs;
    size_t            n;
    weir_added       *out;          /* room for n */
    const weir_token *token;        /* NULL: none */
    bool              checked;      /* the specs passed weir__spec_check() */
} weir_op_add;

/* Take up to n jobs of these types that are not paused, lowest (priority, id) first over all
 * types. Each becomes active with delivery + 1, started_at = now, progress 0, worker, a lease
 * until now + lease_ms, and ttl running from now. A job whose deadline has passed
 * (deadline_at <= now) is never taken: the TICK fails it. Events: start.
 *
 * A suspect (weir__job_is_suspect()) runs alone in its worker process. When it is the best job, and
 * the worker is not busy, it is the only job of the answer. Else TAKE passes over it, says so in
 * suspect_waits, and gives the jobs behind it. Having passed over WEIR_MAX_PASSED suspects, a store
 * may end the answer.
 *
 * With `when`, jobs for which this condition is not true at op->now_ms stay as they are, for other
 * workers, and those behind them are given. A store looks at about WEIR_MAX_LOOK jobs for it.
 *
 * When the jobs that were given have WEIR_MAX_TAKE_BYTES of data, the answer ends, and is partial.
 * So a take costs little more memory than that, however large n is. */
enum { WEIR_MAX_PASSED = 100 };
typedef struct weir_op_take {
    const char *const *types;
    size_t             n_types;
    size_t             n;
    int64_t            lease_ms;
    const char        *worker;
    weir_job         **jobs;        /* room for n; weir_job_free() each */
    size_t             n_jobs;      /* out */
    const char        *when;        /* a condition; NULL: none */
    bool               busy;        /* the worker's process has other jobs: no suspects */
    bool               suspect_waits;   /* out: a suspect was passed over */
    bool               notified;    /* the caller takes again on enqueue and resume events of these
                                       types, so the store may skip partitions known to be empty */
    bool               partial;     /* out: there may be more; a part of the store did not answer,
                                       or weir__jobs_fill_take() */
} weir_op_take;

/* End the delivery of a job. WEIR_ESTALE unless the job is active with just this delivery (also
 * when it is missing). DONE: complete, or gone with remove_on_complete. FAIL: see weir__job_fail();
 * a log line "error | TEXT". GIVE_UP: as FAIL with no attempts left. RETURN: see
 * weir__job_return(). LOST: as when its lease is over, see TICK 1. When it worked and next.n > 0,
 * then take, in the same step. Events: complete; failed_attempt, then enqueue if inactive; failed;
 * enqueue if inactive; as TICK 1. */
typedef struct weir_op_finish {
    uint64_t      id;
    uint32_t      delivery;
    weir_outcome  outcome;
    const char   *text;
    size_t        len;
    int64_t       delay_ms;         /* of RETURN: delayed so long, 0: inactive at once */
    weir_op_take  next;             /* n = 0: none */
    weir_state    state;            /* out: WEIR_STATE_ANY when it is gone */
} weir_op_finish;

/* New leases until now + lease_ms. Each item has its own answer: WEIR_OK or WEIR_ESTALE. A lease is
 * seen (lease_until) in what TAKE, GET and LIST give, but by a reader of a file that another
 * process owns. */
typedef struct weir_renewal {
    uint64_t  id;
    uint32_t  delivery;
    weir_code code;                 /* out */
    int64_t   lease_ms;
} weir_renewal;

typedef struct weir_op_renew {
    weir_renewal *items;
    size_t        n;
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
 * WEIR_ENOENT when it is missing. updated_at is not changed. */
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
 * 5. what is remembered of adds with a token, and is so no longer, oldest first. Nobody can see
 *    when: so that many go at once, the store may come for them WEIR_TOKEN_LATE_MS later. */
typedef struct weir_op_tick {
    size_t  limit;
    size_t  changed;                /* out: jobs */
    int64_t next_at;                /* out: when something is due again; INT64_MAX: nothing.
                                       May be early, never late. <= now_ms: there is more now */
    bool    schedules_due;          /* out: a schedule is due now, which next_at leaves out, since
                                       the caller has to fire it (runtime/schedules.h) */
} weir_op_tick;

/* Change a job by hand: from one of `from` (bits WEIR_BIT(state); 0: any that allows it), as
 * weir__job_update() says, its events too. WEIR_ENOENT, or with change.delivery
 * WEIR_ESTALE as in finish; WEIR_ESTATE; WEIR_ELIMIT (values). A job that becomes active has a
 * lease and a ttl from then on, as after TAKE; a job that becomes failed gets a log line. */
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

/* Put a schedule, or remove one (record NULL). Its record is a text that no store reads
 * (op/schedule.h). `version` is what the caller has seen: 0 means no schedule of this name,
 * WEIR_ANY_VERSION any version. WEIR_ESTALE: somebody else has changed it since; WEIR_ENOENT: the
 * schedule to remove is missing. Versions count from 1 over all
 * schedules, so none is used twice. */
#define WEIR_ANY_VERSION UINT64_MAX
typedef struct weir_op_schedule {
    const char *name;
    const char *record;
    size_t      len;
    int64_t     due_at;             /* INT64_MAX: never */
    uint64_t    version;
    uint64_t    new_version;        /* out: 0 if it was removed */
} weir_op_schedule;

typedef struct weir_schedule_row {
    const char *name, *record;
    size_t      len;                /* of the record */
    uint64_t    version;
    int64_t     due_at;
} weir_schedule_row;

typedef struct weir_schedule_rows {
    size_t             n, cap;
    weir_schedule_row *row;
} weir_schedule_rows;

/* Room for `cap` rows; NULL: no memory. */
weir_schedule_rows *weir__rows_create(size_t cap);
/* Copy a row to the end, while there is room. False: no memory. */
bool weir__rows_add(weir_schedule_rows *rows, const weir_schedule_row *row, size_t name_len);
void weir__rows_free(weir_schedule_rows *rows);

/* The schedule of this name, if it exists; with `due` the schedules that are due at now_ms, the
 * earliest first; else the schedules behind the name `after`, in the order of names. */
typedef struct weir_op_schedules {
    const char         *name;       /* NULL: any */
    bool                due;
    const char         *after;      /* NULL: from the first on */
    size_t              limit;      /* 1 to WEIR_MAX_PAGE */
    weir_schedule_rows *rows;       /* out: weir__rows_free() */
} weir_op_schedules;

/* Put records of trends (core/trend.h), each by itself. A stored record is joined with it
 * (weir__trend_join()), so that a repetition, and a writer that has seen the same, change nothing.
 * Left out are records of slots that are not kept at now_ms, and of a type that is new in a slot
 * with WEIR_TREND_TYPES types. Records of slots that are not kept any more are removed, at the
 * latest when the next minute is put. */
enum { WEIR_MAX_TREND_PUT = 512 };
typedef struct weir_trend_row {
    const char     *type;           /* "": the whole queue */
    const char     *record;
    weir_trend_step step;
    int64_t         slot;
} weir_trend_row;
typedef struct weir_op_trend_put {
    const weir_trend_row *rows;
    size_t                n;        /* at most WEIR_MAX_TREND_PUT */
} weir_op_trend_put;

/* The records of slots from ... from + n - 1 that are there and kept at now_ms, by (slot, type). */
enum {
    WEIR_MAX_TREND_SLOTS  = 1440,   /* n, when it is of one type ... */
    WEIR_MAX_TREND_TOGETHER = 10    /* ... and of all */
};
typedef struct weir_trend_rows {
    size_t          n, cap;
    weir_trend_row *row;
} weir_trend_rows;
typedef struct weir_op_trend_get {
    const char      *type;          /* NULL: each */
    weir_trend_step  step;
    int64_t          from;
    size_t           n;             /* slots */
    weir_trend_rows *rows;          /* out: weir__trend_rows_free() */
} weir_op_trend_get;

/* Is the slot of a row kept? */
static inline bool weir__trend_row_is_kept(const weir_trend_row *row, int64_t now)
{
    return row->slot >= weir__trend_first_kept(row->step, now) &&
           row->slot <= weir__trend_last_kept(row->step, now);
}

/* The slots that a TREND_GET asks for and that are kept: from *from up to but not *end. */
static inline void weir__trend_range(const weir_op_trend_get *o, int64_t now, int64_t *from,
                                     int64_t *end)
{
    int64_t first = weir__trend_first_kept(o->step, now);
    int64_t last = weir__trend_last_kept(o->step, now);
    *from = o->from > first ? o->from : first;
    *end = o->from + (int64_t)o->n <= last ? o->from + (int64_t)o->n : last + 1;
}

/* NULL: no memory. */
weir_trend_rows *weir__trend_rows_create(void);
/* Copy a row to the end; weir__trend_write() writes the record anew, and an unreadable record is
 * left out. False: no memory. */
bool weir__trend_rows_add(weir_trend_rows *rows, const weir_trend_row *row);
void weir__trend_rows_free(weir_trend_rows *rows);

/* WEIR_ENOENT when it is missing. */
typedef struct weir_op_get {
    uint64_t  id;
    weir_job *job;                  /* out: weir_job_free() */
} weir_op_get;

/* With by_priority the page ends early, with `more`, when WEIR_MAX_LOOK jobs that match the rest of
 * the query were examined; next is then the place of the last of them. A store that walks several
 * lists at once may look at some more or fewer: whoever goes on to the end finds the same jobs. */
typedef struct weir_op_list {
    weir_query query;               /* without weir__listing_parts(), unless the store `lists_all`;
                                       limit already between 1 and WEIR_MAX_PAGE; `after` not before
                                       the priority in a list weir__ranked_by_priority() */
    weir_page *page;                /* out: weir_page_free() */
} weir_op_list;

#define WEIR__STATES ((WEIR_BIT(WEIR_STATE_COUNT) - 1) & ~WEIR_BIT(WEIR_STATE_ANY))

/* Does it take several lists of a store, or jobs that are left out, to make this one? Then the
 * runtime does so: runtime/listing.h. The query was checked. */
static inline bool weir__listing_parts(const weir_query *q)
{
    return q->states || q->types || q->error || q->since || q->until ||
           (q->sort && (q->sort != WEIR_SORT_ID || (q->state && !q->search)));
}

/* The order of a query that was checked: by id, or by what the lists of its states are ordered by
 * in a store. Neither: then all that it chooses is gathered for each page, so that few pages are
 * better than many. */
uint32_t weir__listing_states(const weir_query *q);         /* 0: all */
bool     weir__listing_by_id(const weir_query *q);
bool     weir__listing_gathers(const weir_query *q);

/* Is this list in the order of priority? Then jobs of one are next to each other, and a walk that
 * meets another has found them all. */
static inline bool weir__ranked_by_priority(const weir_query *q)
{
    return q->state == WEIR_STATE_INACTIVE && !q->search;
}

typedef struct weir_op_logs {
    uint64_t    id;
    uint64_t    after;
    size_t      limit;
    weir_lines *lines;              /* out: weir_lines_free() */
} weir_op_logs;

/* `probe`: the process that has the file open also finds out whether it could keep a change now; if
 * not, the error is the error of the change (WEIR_EFULL, WEIR_EIO, WEIR_EUNAVAIL ...). A process
 * that only reads the file looks whether it could: it changes nothing. Redis and memory only
 * answer. */
typedef struct weir_op_stats {
    bool        probe;
    weir_stats *stats;              /* out: weir_stats_free() */
} weir_op_stats;

/* Read from what the store has at hand: no job is looked at. */
typedef struct weir_op_info {
    weir_info *info;                /* out: free() */
} weir_op_info;

typedef struct weir_op_check {
    bool         mend;
    weir_report *report;            /* out: weir_report_free() */
} weir_op_check;

typedef struct weir_op {
    weir_op_kind kind;
    int64_t      now_ms;            /* by the wall clock */
    int64_t      steady_ms;         /* the same moment by a clock that nobody sets; 0: not known */
    union {
#define X(kind, member) weir_op_##member member;
        WEIR_OPS(X)
#undef X
    } u;
    weir_error   err;               /* its own outcome; code is WEIR_OK when it worked */
} weir_op;

/* ---- the rows ---- */

/* A store with two lanes may run a batch of each at once. */
typedef enum weir_lane {
    WEIR_LANE_OTHER,
    WEIR_LANE_WORK,                 /* what workers do with jobs that they hold or ask for */
    WEIR_LANE_COUNT
} weir_lane;

/* The rights of a caller with some types only, for an operation. */
typedef enum weir_scope {
    WEIR_SCOPE_NAMED,               /* the types and jobs that it names must be the caller's */
    WEIR_SCOPE_ANSWER,              /* everybody may submit it; its answer is cut to these types */
    WEIR_SCOPE_QUEUE                /* it touches the whole queue: refused */
} weir_scope;

/* Was an operation done that was sent again and refused then? */
typedef enum weir_recall {
    WEIR_RECALL_UNKNOWN,
    WEIR_RECALL_DONE,               /* its first sending did it, or its aim is reached anyway */
    WEIR_RECALL_NOT_DONE            /* its error is its answer */
} weir_recall;

/* May an operation be sent again whose answer was lost, so that it may have been done? See
 * store/remote/attempt.h. */
typedef struct weir_repeat {
    bool (*may)(const weir_op *op); /* it cannot be done twice, or that makes no difference */
    /* The first sending may be the cause of the second's error (WEIR_ESTALE, WEIR_ESTATE or
     * WEIR_ENOENT). The question, an operation that reads, shows it. recall() gets its answer and
     * sets the outputs of `op` for WEIR_RECALL_DONE. Both NULL: the second answer is right. */
    void        (*ask)(const weir_op *op, weir_op *question);
    weir_recall (*recall)(weir_op *op, const weir_op *answer);
} weir_repeat;

/* Items that the steps of a long read brought so far. */
typedef struct weir_gathered {
    void  *items;                   /* of create(), until give() */
    size_t n, bytes;                /* how many, and about how large they are */
    bool   more;                    /* there may be others behind them */
} weir_gathered;

/* A read that brings many items can be done in steps of a few items each, in whose sizes the next
 * step can be chosen. */
typedef struct weir_steps {
    /* Where it says how many items it asks for, once it is checked; NULL: it is short. */
    size_t *(*limit)(weir_op *op);
    bool    ends_early;             /* its answer may have fewer: it says where to go on */
    void   *(*create)(size_t n);    /* room for n items; NULL: no memory */
    /* A step worked: move what it brought to the others, and set `op` to continue behind that.
     * False: no memory. */
    bool    (*gather)(weir_op *op, weir_gathered *g);
    void    (*give)(weir_op *op, void *items);      /* they are the answer of `op` */
} weir_steps;

/* May a caller of some types see this one? */
typedef bool weir_sees(const void *caller, const char *type);

typedef struct weir_copier  weir_copier;    /* copy.h */
typedef struct op_request   op_request;     /* row.h */
typedef struct op_answer    op_answer;

typedef struct weir_op_row {
    const char *name;               /* the member of the union, and "op" in JSON */
    weir_lane   lane;
    weir_scope  scope;
    bool        slow;               /* it may take much longer than others: it looks at every job,
                                       or brings many */
    unsigned  (*role)(const weir_op *op);       /* one WEIR_ROLE_ */
    bool      (*writes)(const weir_op *op);     /* does it change the store? */
    const weir_steps *steps;
    /* The name of what it does in an audit log; NULL: it is not recorded. */
    const char *(*action)(const weir_op *op);
    const char *(*detail)(const weir_op *op);   /* what the log says besides ids; NULL: nothing */

    /* The place of its i-th input of a sort; NULL: there are fewer. A type may be NULL: all
     * types. */
    uint64_t          *(*job)(weir_op *op, size_t i);
    bool      each;                 /* each job that it names has an answer of its own */
    const char       **(*type)(weir_op *op, size_t i);
    const char *const *(*data)(const weir_op *op, size_t i);        /* of jobs, JSON or NULL */
    /* The place of its token, which makes repeating it safe; NULL: it can have none. */
    const weir_token **(*token)(weir_op *op);
    const weir_repeat *repeat;
    /* The take that it makes; NULL: none. One with n == 0 takes nothing. */
    const weir_op_take *(*take)(const weir_op *op);

    /* How many jobs it can answer with that it does not name. */
    size_t    (*most)(const weir_op *op);
    /* After it worked: the id of the i-th job that it did not name but added or took; 0: not
     * known. False: there are fewer. */
    bool      (*result)(const weir_op *op, size_t i, uint64_t *id);
    /* WEIR_SCOPE_ANSWER: leave in its answer what is of types that the caller sees. False: no
     * memory. */
    bool      (*cut)(weir_op *op, weir_sees *sees, const void *caller);

    weir_code (*check)(weir_op *op, weir_error *err);       /* see weir__op_check() */
    void      (*copy)(weir_copier *c, weir_op *op);         /* everything that it borrows */
    void      (*clear)(weir_op *op);                        /* "no outputs" */
    void      (*release)(weir_op *op);                      /* its outputs */

    /* As JSON: batch.h. Members are written each with a comma before it. */
    size_t    (*size)(const weir_op *op);                   /* about how long the request is */
    void      (*write_request)(weir_buf *out, const weir_op *op);
    const weir_field *request;                              /* into op_request */
    weir_code (*read_request)(weir_reader *in, op_request *r);
    void      (*write_answer)(weir_buf *out, const weir_op *op);
    const weir_field *answer;                               /* into op_answer */
    weir_code (*read_answer)(weir_reader *in, op_answer *a);
} weir_op_row;

extern const weir_op_row *const weir__op_rows[WEIR_OP_COUNT];

static inline const weir_op_row *weir__op_row(const weir_op *op)
{
    return weir__op_rows[op->kind];
}

static inline bool weir__op_writes(const weir_op *op)
{
    return weir__op_row(op)->writes(op);
}

/* The lane of a batch: WEIR_LANE_WORK if all of its operations are of that lane. */
weir_lane weir__ops_lane(weir_op *const *ops, size_t n);

/* Is the operation within the limits, its JSON valid? Fills in defaults (lengths, limits). Called
 * by the submitter, on its own thread, before the store sees it. */
weir_code weir__op_check(weir_op *op, weir_error *err);

/* Is all data that a checked operation brings a JSON object? For a store that accepts no other. */
weir_code weir__op_check_objects(const weir_op *op, weir_error *err);

/* Is the store open for reading only, and does the operation write? Then its error says so. */
bool weir__op_refused(weir_op *op, bool read_only);

/* A deep copy of everything that a checked operation borrows. The first function returns how many
 * bytes the copy takes. The second copies into a block of that size, aligned for anything, points
 * the operation at the copies, and returns the size. A block that follows it is aligned, too. */
size_t weir__op_copy_size(const weir_op *op);
size_t weir__op_copy(weir_op *op, void *block);

/* Set the outputs to "none", and the error to WEIR_OK. */
void weir__op_clear(weir_op *op);

/* Release the outputs, and set them to "none". An operation that failed has none. */
void weir__op_free(weir_op *op);

#endif
