/* engine.h - the Redis stores: operations become steps (layout.h), steps become calls (link.h), one
 * for each partition. Private to src/store/redis.
 *
 * A batch goes in rounds. In each, every operation that is not over yet may look (read the data
 * that its decision needs), then act. All looks share one call, all acts another. Most act at once
 * and are over. One whose job was changed by somebody else between looking and acting goes another
 * round, and so does a take that found too little in one partition. */
#ifndef WEIR_STORE_REDIS_ENGINE_H
#define WEIR_STORE_REDIS_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "core/tick.h"
#include "store/redis/layout/layout.h"
#include "store/redis/link/msgpack.h"
#include "store/redis/engine/record.h"

/* ---- messages with events, in order (event_order.c) ---- */

typedef struct redis_pending {          /* a message that waits for those before it */
    struct redis_pending *next;
    int64_t               number;
    size_t                len;
    char                  bytes[];
} redis_pending;

enum { REDIS_DELIVERED = 64 };

typedef struct redis_order {            /* of the messages of a partition */
    int64_t     next;                   /* the number that comes next */
    int64_t     received;               /* the last that the subscriber received; 0: none yet */
    _Atomic uint64_t last_id;           /* the highest id of a job that is known */
    bool        unsynced;               /* `next` is unknown: messages of our own calls are emitted
                                           at once ... */
    int64_t     delivered[REDIS_DELIVERED];     /* ... these were the last, by number */
    uint32_t    n_delivered;
    redis_pending *pending;             /* by number */
    size_t      n_pending;
} redis_order;

/* ---- some of the partitions ---- */

typedef struct redis_parts {
    uint64_t bit[WEIR_REDIS_MAX_PARTITIONS / 64];
} redis_parts;

static inline bool weir__parts_have(const redis_parts *p, uint32_t part)
{
    return p->bit[part / 64] >> part % 64 & 1;
}

static inline void weir__parts_add(redis_parts *p, uint32_t part)
{
    p->bit[part / 64] |= UINT64_C(1) << part % 64;
}

/* ---- the backlog: how many jobs wait in each partition (backlog.c) ---- */

enum { REDIS_MAX_BACKLOG = 64 };        /* types that have an entry; of others nothing is known */

typedef struct redis_backlog {
    char      type[WEIR_MAX_TYPE + 1];
    uint32_t *waits;                    /* upper bound of waiting jobs, per partition */
    uint32_t  part;                     /* the partition from which this type is taken now ... */
    int64_t   since;                    /* ... and since when, ms */
} redis_backlog;

/* ---- partitions, and the call a lane is making to each ---- */

typedef struct redis_part {
    char     prefix[WEIR_REDIS_MAX_PREFIX + 16];      /* of its keys: "{weir:0}" */
    char     channel[WEIR_REDIS_MAX_PREFIX + 32];
    uint32_t slot;
    weir_buf keys;                      /* "N key ..." of an FCALL, as RESP */
    size_t   n_keys;
} redis_part;

/* Operations that share steps: ends a step D, and the takes that follow them a step t; or takes a
 * step T. Theirs are the same types and the same lease. */
typedef struct redis_entry {
    const weir_op_finish *end;          /* NULL: a take alone */
    const weir_op_take   *take;         /* NULL: it takes nothing */
    size_t                step;         /* of D, or of T; that of t is the next */
    uint32_t              place;        /* of its end among those of D */
} redis_entry;

typedef struct redis_coalesced {
    redis_entry *entry;
    size_t       cap;
    uint32_t     n;
    bool         ends, takes;
    uint32_t     answer;                /* of D, or of T; that of t is the next */
} redis_coalesced;

/* Specs of a step A that become one argument: layout.h, REDIS_PIECE. */
typedef struct redis_piece {
    uint32_t n;
    uint16_t length[REDIS_PIECE];
    weir_buf specs;
} redis_piece;

/* The calls that ask a server how safe the last writes are: see confirm.c. */
typedef struct redis_confirm {
    redis_call guard, replicas, disk;
    bool       asks;                    /* this one does, for all partitions of its server */
    weir_error err;                     /* they are not as safe as the URL asks */
} redis_confirm;

typedef struct redis_draft {
    weir_buf   steps;
    size_t     n_args;
    uint32_t   n_answers;
    struct {                            /* the last step, if others may join it */
        char     letter;                /* 0: none */
        size_t   n_args, count_at;      /* ... and where their count is written */
        uint32_t n_jobs;
    } open;
    struct {                            /* the last group of a step A: jobs that are alike */
        const char *type;               /* an operation's; NULL: none */
        int32_t     priority;
        int64_t     flags;
        size_t      n, count_at;
        size_t      spec_at, spec_len;  /* kue: their spec, in `steps` */
    } group;
    redis_piece  piece;                 /* these two are not in `steps` yet */
    redis_coalesced coalesced;
    bool       adds;                    /* it needs memory: see redis_layout */
    uint32_t   backlog_epoch;           /* backlog.epoch[part] when the call was sent */
    uint64_t   given;                   /* jobs this lane has added here by its own choice */
    redis_call call;
    redis_confirm confirm;
} redis_draft;

/* An operation on its way. */
typedef struct redis_task {
    weir_op    *op;
    size_t      first, n;               /* its steps in this round */
    bool        over;
    int         rounds;
    uint32_t    part;                   /* add: where to; take: where it asks */
    enum { TAKE_FIRST, TAKE_PEEK, TAKE_REST } taking;
    redis_parts asked;                  /* take: for jobs */
    redis_parts waits;                  /* take: where something may wait, or does */
    bool        takes;                  /* finish: it takes, too, in this round */
    bool        finished;               /* finish: done, only taking goes on; configure: done in
                                           all partitions but the first */
    bool        with_words;             /* add: the function asked for them */
    bool        accepted;               /* add: the partition of its token has done its part */
    weir_job   *seen;                   /* finish, update: the job as it was, to be changed */
    redis_beside beside;
    weir_buf    old_run, old_spec;      /* ... and its record */
    weir_effects effects;               /* what follows, once it was decided on */
    int64_t     now;                    /* when it was seen, by Redis's clock */
    struct redis_choosing *choosing;    /* take with a condition: see choose.c */
} redis_task;

typedef struct redis_step {
    uint32_t part, answer;
    uint32_t place;                     /* of its first job, or its take, in a step they share */
} redis_step;

/* Two batches may be under way at once, each on a connection of its own: one of the operations of
 * workers (take, finish, renew ...), one of all others. */
enum { REDIS_LANES = WEIR_LANE_COUNT };

struct redis_store;

typedef struct redis_lane {
    struct redis_store *top;
    redis_layout       *layout;
    const redis_part   *part;           /* the store's */
    uint32_t            n_parts;
    redis_draft        *draft;          /* one for each */
    redis_link         *link;           /* NULL: nothing was done on this lane yet */
    char                origin[24];     /* our mark, and the lane */
    uint64_t            number;         /* of the last call */
    bool                test_clock;
    int64_t             stamp;          /* when new jobs of this batch were made: see A */
    uint32_t            add_part;       /* where the last add went ... */
    size_t              add_room;       /* ... and how many jobs of this batch may follow it */
    redis_task         *task;
    size_t              cap_tasks;
    redis_step         *step;
    size_t              n_steps, cap_steps;
    bool                failed;         /* no memory for a step */
    weir_buf            scratch;
} redis_lane;

/* ---- Redis's clock, seen by ours that is never set (server_clock.c) ---- */

typedef struct redis_clock {            /* of the server that has a partition */
    bool    known;
    int64_t least_ms, most_ms;          /* its clock is ahead of ours by something in between */
    int64_t step_ms;                    /* it was set by this much, and leases were not moved yet */
    int64_t count;                      /* of steps that leases were moved by; -1: unknown */
} redis_clock;

typedef struct redis_watch redis_watch;         /* see tokens.c */

typedef struct redis_member redis_member;       /* see member.c */

typedef struct redis_store {
    weir_store       base;
    weir_env         env;
    redis_url        url;
    redis_layout    *layout;
    char             mark[20];          /* what is ours: see redis_lane.origin */
    uint32_t         chance;            /* processes do not all begin at the same partition */
    redis_part      *part;
    uint32_t         n_parts;
    redis_lane       lane[REDIS_LANES];
    _Atomic int64_t  ahead_ms;          /* Redis's clock over ours */
    _Atomic int64_t  sure_ms;           /* the same, at least n bytes; INT64_MIN: not known yet */
    pthread_mutex_t  clock_lock;
    redis_clock     *clock;             /* of each partition; NULL: not watched */
    struct {
        pthread_mutex_t lock;
        uint32_t       *epoch;          /* per partition: enqueue events so far */
        uint32_t       *waits;          /* the memory of all type[].waits */
        redis_backlog   type[REDIS_MAX_BACKLOG];
        size_t          n, next;        /* the entry to replace */
    } backlog;
    struct {                            /* types whose tokens are waited for */
        pthread_mutex_t lock;
        redis_watch    *first;
        size_t          n;
    } tokens;
    redis_member     *member;           /* NULL: this process has not joined */
    redis_subscriber *subscriber;
    redis_channel   *channels;
    char             foreign[WEIR_REDIS_MAX_PREFIX + 32];
    char             presence_channel[WEIR_REDIS_MAX_PREFIX + 32];
    struct {                            /* events and due times, ours and other processes' */
        pthread_mutex_t lock;
        pthread_cond_t  advanced;       /* order[].next has */
        redis_order    *order;          /* of each partition's messages */
        weir_buf        strings;
        weir_event     *list;           /* of the message being emitted */
        size_t          cap_list;
        int64_t         due_announced;  /* to env.due() */
        weir_buf        notes;          /* arguments of the step X, RESP: id, type ... */
        size_t          n_notes;
    } events;
} redis_store;

/* ---- calls (call.c) ---- */

/* Begin a step of the task in a partition: append n arguments to what it answers, with
 * weir__resp_...(). Its answer is weir__step_answer(s, t->first + how many before it). */
weir_buf *weir__step(redis_lane *s, redis_task *t, uint32_t part, char letter, size_t n);

/* Begin a step, or join the last one if that is of the same letter; then append arguments, and say
 * how many, and of how many jobs they are. */
weir_buf *weir__step_join(redis_lane *s, redis_task *t, uint32_t part, char letter);
void      weir__step_more(redis_lane *s, uint32_t part, size_t n_args, uint32_t n_jobs);

/* Note that a step of the task has this answer, and is at this place of it. */
void weir__step_note(redis_lane *s, redis_task *t, uint32_t part, uint32_t answer, uint32_t place);

/* Run what the steps of this round need, one call a partition. `now`: by whose clock; 0: Redis's.
 * Calls that write carry a number. */
void weir__calls_run(redis_lane *s, int64_t now, bool writes);
void weir__calls_reset(redis_lane *s);

/* The answer of the i-th step of a task; NULL when its call failed: then *err says why. */
const redisReply *weir__step_answer(redis_lane *s, const redis_task *t, size_t i, weir_error *err);
/* The answer of D or P: a number; also -1 when its call failed, with *err set. */
int64_t weir__step_state(redis_lane *s, const redis_task *t, size_t i, weir_error *err);
/* The function has stopped before one of its steps: they go into the next round. */
bool weir__step_put_off(redis_lane *s, const redis_task *t);
/* Redis's clock when that step was carried out. */
int64_t weir__step_now(redis_lane *s, const redis_task *t, size_t i);

uint32_t weir__part_of(const redis_lane *s, uint64_t id);
uint32_t weir__part_of_key(const redis_lane *s, const char *type, const char *unique);

/* Numbers and texts in answers; what is not one is 0 or empty. */
int64_t  weir__reply_int(const redisReply *r);
uint64_t weir__reply_id(const redisReply *r);    /* 8 bytes */
mp_slice weir__reply_text(const redisReply *r);

/* ---- Redis's clock (server_clock.c) ---- */

weir_code weir__clock_open(redis_store *s, weir_error *err);
void      weir__clock_close(redis_store *s);
/* A call was sent and answered at these times of our steady clock, and done at `now` of Redis's. */
void      weir__clock_seen(redis_store *s, uint32_t part, int64_t now, int64_t sent, int64_t got);
bool      weir__clock_has_step(redis_store *s, uint32_t part);
void      weir__clock_count(redis_store *s, uint32_t part, int64_t count);
/* Add the step Y, if leases have to be moved. */
void      weir__clock_repair(redis_lane *l, redis_task *t, uint32_t part);

/* ---- how safe it is (confirm.c) ---- */

/* Wait until the writes of this round are as safe as the URL asks; at most half of its timeout. */
void weir__confirm(redis_lane *s);
/* Why the steps of a task are not as safe; NULL: they are. */
const weir_error *weir__step_unsafe(const redis_lane *s, const redis_task *t);
void weir__confirm_fini(redis_confirm *c);

/* ---- pieces (piece.c) ---- */

/* Append a spec to the specs of the open step A. */
void weir__piece_add(redis_lane *s, uint32_t part, mp_slice spec);
/* Another group or step follows: what has gathered becomes an argument. */
void weir__piece_close(redis_lane *s, uint32_t part);

/* Specs of jobs that a take has returned together, [spec ...] or [how many, places to skip, piece
 * ...]: how many there are, and the spec of the k-th; false: it is missing. */
size_t weir__piece_jobs(const redisReply *some);
bool weir__piece_spec(const redisReply *some, size_t k, mp_slice *spec);

/* ---- steps that are shared (coalesce.c) ---- */

/* End a job, and then take (NULL: not): steps D and t; or take: T. They are shared with operations
 * of the same kind that came just before. */
void weir__step_end(redis_lane *s, redis_task *t, uint32_t part, const weir_op_finish *f,
                    const weir_op_take *then);
void weir__step_take(redis_lane *s, redis_task *t, uint32_t part, const weir_op_take *take);

/* How many more jobs the take may get, in the form of a step: below zero if its worker gets no
 * suspect. */
static inline int64_t weir__taking_wants(const weir_op_take *take)
{
    int64_t n = (int64_t)(take->n - take->n_jobs);
    return take->busy || take->n_jobs ? -n : n;
}

/* The jobs that the i-th step of a task, a T or t, has given to it; adds to take->jobs. */
weir_code weir__step_taken(redis_lane *s, const redis_task *t, size_t i, weir_op_take *take,
                           weir_error *err);

/* Another step follows: what is shared becomes steps of the call. */
void weir__coalesced_close(redis_lane *s, uint32_t part);

/* ---- the backlog (backlog.c) ----
 *
 * With one partition, nothing is counted and every take asks that partition. */

bool weir__backlog_open(redis_store *s);
void weir__backlog_close(redis_store *s);
/* An event says that n jobs of this type began to wait in a partition. */
void weir__backlog_grew(redis_store *s, uint32_t part, const char *type, size_t n);
/* Events of a partition may have been missed: its counts are unknown. */
void weir__backlog_forget(redis_store *s, uint32_t part);
/* A type was resumed: the counts of all partitions are unknown. */
void weir__backlog_forget_all(redis_store *s);
/* A call to the partition is about to be sent: remember the epoch. */
void weir__backlog_mark(redis_lane *s, uint32_t part);
/* The call returned these jobs. */
void weir__backlog_shrank(redis_lane *s, uint32_t part, weir_job *const *jobs, size_t n);
/* The call found no more jobs of these types. Ignored if an event arrived since
 * weir__backlog_mark(), because event and call cannot be ordered. */
void weir__backlog_set_empty(redis_lane *s, uint32_t part, const char *const *types, size_t n);
/* The partitions that may have jobs of the take's types. */
redis_parts weir__backlog_candidates(redis_lane *s, const weir_op_take *take);
/* The partition that a take asks first. False: no partition has jobs of its types, as far as is
 * known. */
bool weir__backlog_first(redis_lane *s, const weir_op_take *take, uint32_t *part);

/* ---- taking (ops_take.c) ---- */

/* Would a take begin here? */
bool weir__taking_here(redis_lane *s, uint32_t part, const weir_op_take *take);
/* Choose where to; sets t->over when nothing waits anywhere. */
void weir__taking_begin(redis_lane *s, redis_task *t, const weir_op_take *take);
void weir__taking_act(redis_lane *s, redis_task *t, const weir_op_take *take);
/* The answer has arrived: the answers of the task's i-th step and of the later steps. */
void weir__taking_end(redis_lane *s, redis_task *t, weir_op_take *take, size_t i);

/* ---- taking with a condition (choose.c): in place of these four ---- */

void weir__choosing_begin(redis_lane *s, redis_task *t, const weir_op_take *take);
/* Is there a job to be taken? Then it is looked at before it is. */
bool weir__choosing_look(redis_lane *s, redis_task *t);
void weir__choosing_seen(redis_lane *s, redis_task *t, weir_op_take *take);
void weir__choosing_act(redis_lane *s, redis_task *t, const weir_op_take *take);
void weir__choosing_end(redis_lane *s, redis_task *t, weir_op_take *take);
void weir__choosing_free(redis_task *t);

/* ---- operations: ops_work.c, ops_take.c, ops_admin.c, ops_import.c, ops_read.c ---- */

/* The partition for n new jobs that may go to any. */
uint32_t weir__part_to_fill(redis_lane *s, size_t n);

typedef struct redis_kind {
    bool (*look)(redis_lane *s, redis_task *t);     /* adds steps that only read; NULL: none */
    void (*seen)(redis_lane *s, redis_task *t);     /* their answers are there */
    void (*act)(redis_lane *s, redis_task *t);      /* adds steps */
    void (*end)(redis_lane *s, redis_task *t);      /* their answers are there: sets t->over */
    /* Makes calls of its own to each partition, more than a round, and not together with other
     * operations. NULL: the four above run it. */
    weir_code (*alone)(redis_lane *s, weir_op *op);
} redis_kind;

extern const redis_kind weir__redis_kinds[WEIR_OP_COUNT];

/* How operations run: ACT acts, LOOK looks before it acts, ALONE runs by itself. */
#define REDIS_OPS(ACT, LOOK, ALONE)                                                               \
    ACT(ADD, add)                                                                                 \
    LOOK(TAKE, take)                                                                              \
    LOOK(FINISH, finish)                                                                          \
    ACT(RENEW, renew)                                                                             \
    ACT(PROGRESS, progress)                                                                       \
    ACT(LOG, log)                                                                                 \
    ALONE(TICK, tick)                                                                             \
    LOOK(UPDATE, update)                                                                          \
    ACT(REMOVE, remove)                                                                           \
    ACT(CONFIGURE, configure)                                                                     \
    ACT(IMPORT, import)                                                                           \
    ACT(SCHEDULE, schedule)                                                                       \
    ACT(SCHEDULES, schedules)                                                                     \
    ACT(TREND_PUT, trend_put)                                                                     \
    ACT(TREND_GET, trend_get)                                                                     \
    ACT(GET, get)                                                                                 \
    ACT(LIST, list)                                                                               \
    ACT(LOGS, logs)                                                                               \
    ACT(STATS, stats)                                                                             \
    ALONE(INFO, info)                                                                             \
    ALONE(CHECK, check)

#define ONE(kind, member) + 1
_Static_assert(REDIS_OPS(ONE, ONE, ONE) == WEIR_OP_COUNT, "every operation is in REDIS_OPS");
#undef ONE

#define ACT(kind, member)                                                                         \
    void weir__redis_##member##_act(redis_lane *s, redis_task *t);                                \
    void weir__redis_##member##_end(redis_lane *s, redis_task *t);
#define LOOK(kind, member)                                                                        \
    ACT(kind, member)                                                                             \
    bool weir__redis_##member##_look(redis_lane *s, redis_task *t);                               \
    void weir__redis_##member##_seen(redis_lane *s, redis_task *t);
#define ALONE(kind, member) weir_code weir__redis_##member(redis_lane *s, weir_op *op);
REDIS_OPS(ACT, LOOK, ALONE)
#undef ACT
#undef LOOK
#undef ALONE

/* Do all servers accept writes? Changes nothing. */
void weir__redis_try_write(redis_lane *s, weir_error *err);

/* The operation has failed so. */
void weir__task_fail(redis_task *t, const weir_error *err);
void weir__task_drop(redis_task *t);             /* what it has seen */

/* Read a job before deciding on it: G, and its answer into t->seen (NULL: not there). */
void weir__task_look(redis_lane *s, redis_task *t, uint64_t id);
weir_code weir__task_seen(redis_lane *s, redis_task *t, uint64_t id);

/* Apply a transition: a step P that puts `j` in the place of `old_...`. */
typedef struct redis_put {
    mp_slice        old_run, old_spec;
    const weir_job *j;
    redis_beside    beside;
    bool            takes;              /* refused when the job's type is paused */
} redis_put;

void weir__put_step(redis_lane *s, redis_task *t, redis_put *p, const weir_effects *e);
/* The same for t->seen and t->effects. */
void weir__put_seen(redis_lane *s, redis_task *t);

/* The words to find a job by, in the form of layout.h. */
void weir__words_of_data(weir_buf *out, const char *data, size_t len, const char *keys);
void weir__words_of_text(weir_buf *out, const char *text, size_t len);

/* Ask a partition for the first q->limit + 1 jobs of a list; with `search`, its `words` are in
 * s->scratch. A task that chooses gets none of a paused type. */
void weir__redis_list_step(redis_lane *s, redis_task *t, uint32_t part, const weir_query *q,
                           size_t words);

/* The jobs of an answer [id, run, spec ...]; adds to jobs[*n]. */
weir_code weir__jobs_of(const redisReply *r, weir_job **jobs, size_t *n, size_t room,
                        weir_error *err);

/* ---- operations of more than one round ---- */


/* ---- rounds.c, store.c ---- */

weir_code weir__redis_run(weir_store *base, weir_op **ops, size_t n, weir_error *err);

/* member.c: envelopes, as weir_store_ops has them. */
weir_code weir__redis_join(weir_store *base, const weir_member *m, weir_error *err);
void      weir__redis_leave(weir_store *base);
weir_code weir__redis_post(weir_store *base, const weir_envelope *e, weir_error *err);

/* See that the lane has its connection. */
weir_code weir__lane_open(redis_lane *l, weir_error *err);

/* ---- events (event_order.c) ---- */

weir_code weir__redis_events_open(redis_store *s, weir_error *err);
void      weir__redis_events_close(redis_store *s);
/* The message of one of our own calls. */
void weir__redis_events_of_call(redis_store *s, uint32_t part, const char *message, size_t len);
/* A job of the partition has this id. */
void weir__redis_id_seen(redis_store *s, uint32_t part, uint64_t id);
/* Kue has ended or removed jobs: the step X, if there is any such. */
void      weir__redis_events_foreign_step(redis_lane *l, redis_task *t, uint32_t part);
/* The subscription delivers all messages of a partition from this number on. */
void      weir__redis_events_sync(redis_store *s, uint32_t part, int64_t next);
/* Wait, at most briefly, until that message was emitted: before a call reports that a job is gone,
 * its final event has been delivered. */
void      weir__redis_events_wait(redis_store *s, uint32_t part, int64_t number);
/* A TICK begins, and ends with the time of the next one. Only due times later than an announced one
 * are withheld from env.due(). Times that were announced before a TICK are used up by it: a due
 * time that another lane or process sends while the TICK is under way is announced again. */
void      weir__due_begin(redis_store *s);
void      weir__due_end(redis_store *s, int64_t at);
/* A TICK is wanted at that time. */
void      weir__due_announce(redis_store *s, int64_t at);

/* ---- tokens.c ---- */

/* A take of these types found too little: with Vert.x Kue, wait for their tokens from now on. */
void weir__tokens_watch(redis_store *s, const char *const *types, size_t n);
void weir__tokens_close(redis_store *s);

#endif
