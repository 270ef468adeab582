/* tick.h - what time does to jobs: the order of what is due, how much of each sort one TICK does,
 * retention, and when the next TICK is wanted. No clock, no store.
 *
 * A store keeps one weir_agenda. The store notes there when something will be due
 * (weir__agenda_follow(), weir__agenda_want()), and runs a TICK with weir__tick_run(), which asks
 * the store to find jobs and to change them (weir_tick_ops). A new sort is a line in weir_due, a
 * function in the table of tick.c, and, if it is not about jobs, a function of weir_tick_ops. */
#ifndef WEIR_CORE_TICK_H
#define WEIR_CORE_TICK_H

#include "core/job.h"

/* Sorts, in the order in which a TICK does them; op/op.h and the step K of Redis (layout.h) have
 * the same numbers. */
typedef enum weir_due {
    WEIR_DUE_LEASE = 1,         /* active, lease over; by id */
    WEIR_DUE_TTL,               /* active, ttl over; by id */
    WEIR_DUE_WAITING,           /* inactive or delayed, weir__job_due() reached; by that time, id */
    WEIR_DUE_FINISHED,          /* finished, more or older than its type keeps; oldest first */
    WEIR_DUE_TOKENS,            /* adds with a token that are remembered; oldest first */
    WEIR_DUE_SCHEDULES,         /* not done by a TICK, which only says when: runtime/schedules.c */
    WEIR_DUE_COUNT
} weir_due;

/* Tokens are forgotten this much late at most, so that many go at once. */
enum { WEIR_TOKEN_LATE_MS = 60000 };

/* Is the job still as its sort (1..3) says? Then change it as the sort does. */
bool weir__job_is_due(const weir_job *j, weir_due sort);
void weir__job_come_due(weir_job *j, weir_due sort, int64_t now, weir_effects *e);

/* When a token is to be forgotten that was used at this time (INT64_MAX: no token). */
static inline int64_t weir__token_until(int64_t used_at)
{
    return used_at == INT64_MAX ? INT64_MAX : used_at + WEIR_TOKEN_MS + WEIR_TOKEN_LATE_MS;
}

/* Which of a type's settings are about jobs that ended in this state. */
static inline const weir_keep *weir__keep_of(const weir_settings *set, weir_state state)
{
    return state == WEIR_STATE_COMPLETE ? &set->keep_complete : &set->keep_failed;
}

/* Stores keep settings with the defaults filled in, and 0 for "no limit": what a caller gives as
 * they are kept, and back. `defaults`: {0} means them; else it is for ever (Kue). */
extern const weir_settings weir__default_settings;
weir_settings weir__settings_in(const weir_settings *given, bool defaults);
weir_settings weir__settings_out(const weir_settings *kept);

/* Finished jobs of one type in one state: what is kept of them, and how many there are. */
typedef struct weir_kept {
    const weir_keep *keep;
    uint64_t         n;
} weir_kept;

/* When the oldest of them, which ended at `finished_at`, has to go. INT64_MAX: never; INT64_MIN: at
 * once, even if the clock is turned back. */
int64_t weir__keep_until(weir_kept kept, int64_t finished_at);

/* ---- when a TICK is wanted ---- */

typedef struct weir_agenda {
    int64_t at[WEIR_DUE_COUNT];     /* nothing of that sort is due before. May be early, never
                                       late */
    int64_t wanted;                 /* earliest time since the last weir__agenda_announce() */
    int64_t announced;              /* what the last one, or the last TICK, said */
} weir_agenda;

void weir__agenda_init(weir_agenda *a);         /* nothing is due */

static inline void weir__agenda_want(weir_agenda *a, weir_due sort, int64_t at)
{
    if (at < a->at[sort])
        a->at[sort] = at;
    if (at < a->wanted)
        a->wanted = at;
}

/* The job is in its final form: note the times at which it is due. `ttl_until` is used if it is
 * active, `kept` (of its type and state, with this job) if it is finished. */
void weir__agenda_follow(weir_agenda *a, const weir_job *j, int64_t ttl_until, weir_kept kept);

/* Anything may be due: the clock was set, or what was known is lost. */
void weir__agenda_doubt(weir_agenda *a);

/* After a batch was committed: is a TICK wanted earlier than was announced? Then at *at. */
bool weir__agenda_announce(weir_agenda *a, int64_t *at);

/* ---- running one ---- */

typedef struct weir_due_list {          /* ids */
    uint64_t *id;
    size_t    n, cap;
} weir_due_list;

bool weir__due_add(weir_due_list *list, uint64_t id);       /* false: out of memory */

typedef struct weir_tick_ops {
    /* Add the jobs of a sort (1..3) that are due to the list: 1 and 2 all of them in any order, 3
     * the first `limit` in their order. */
    weir_code (*find)(void *store, weir_due sort, int64_t now, size_t limit, weir_due_list *list);
    /* weir__job_come_due() for this job, and apply. */
    weir_code (*change)(void *store, weir_due sort, uint64_t id, int64_t now);
    /* The end of the first lease (1) or ttl (2), the first weir__job_due() (3), when the oldest
     * token was used (5), or when the first schedule is due (6); INT64_MAX: none. */
    int64_t   (*earliest)(void *store, weir_due sort);
    /* The i-th type in the order of names, without "*". False: there are no more. */
    bool      (*kept)(void *store, size_t i, weir_state state, weir_kept *out);
    /* The job of that type and state that ended first; 0: none. */
    uint64_t  (*oldest)(void *store, size_t i, weir_state state, int64_t *finished_at);
    /* weir__job_remove() for this job, and apply. */
    weir_code (*remove)(void *store, uint64_t id, int64_t now);
    /* Forget up to `limit` tokens that were used before or at that time; *n: how many. */
    weir_code (*forget_tokens)(void *store, int64_t until, size_t limit, size_t *n);
} weir_tick_ops;

/* Do what is due at `now`, at most `limit` of each sort, in their order. On failure of one step the
 * steps before it stay done. *changed: how many jobs were changed; *next_at: when something is due
 * again, INT64_MAX: nothing, at most `now`: there is more now. The next time is compared with
 * that. *schedules_due: a schedule is due, and *next_at does not count it. */
weir_code weir__tick_run(weir_agenda *a, const weir_tick_ops *ops, void *store, int64_t now,
                         size_t limit, size_t *changed, int64_t *next_at, bool *schedules_due);

/* Sort 1 for all active jobs, whatever their lease: the process that owned them is gone. */
weir_code weir__tick_lose_all(weir_agenda *a, const weir_tick_ops *ops, void *store, int64_t now);

#endif
