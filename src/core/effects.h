/* effects.h - the consequences of a transition: what a store does beside keeping the changed job.
 *
 * A function of job.h changes a weir_job and fills a weir_effects. A store finds the job, calls the
 * function, and applies both in one atomic step:
 *
 *   row       keep the job. `texts` names the texts that changed; all numbers may have changed
 *   key       `takes_key`: no other job may hold the unique key (weir__key_taken()); hold it.
 *             `frees_key`: release it
 *   search    if job.search: the words of data (WEIR__NEW(data)), of the error (WEIR__NEW(error);
 *             NULL: none any more) and of the log line become what the job is found by
 *   log       append `log`, if it is not empty
 *   counters  move the job from `from` to `to`; add completed, failed, work_ms to its type
 *   delivery  weir__effects_start(): the lease (job.lease_until) and the ttl begin, and the type's
 *             last_taken_at is now. weir__effects_end(): lease and ttl are over
 *   time      weir__agenda_follow() (tick.h)
 *   events    after the commit, in their order: weir__effects_event()
 *
 * The buffers belong to *e, and the job points into them: copy what is kept, then call
 * weir__effects_fini(). They stay empty in added, remove, take, progress and complete of job.h.
 * Memory is the only thing that can be missing: weir__effects_ok(). A function of job.h that gets a
 * weir_effects begins with an empty one, whatever *e was before. */
#ifndef WEIR_CORE_EFFECTS_H
#define WEIR_CORE_EFFECTS_H

#include "base/buf.h"
#include "core/job_fields.h"
#include "weir/event.h"

/* The texts of a job that something may change after the add, from 0 on, and the bit of each. */
enum {
#define X(member, name, kind, json, shown, life, ...) WEIR_IF_CHANGES_##life(WEIR__TEXT_AT_##name,)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    WEIR__CHANGING_TEXTS
};
#define WEIR__NEW(name) (1u << WEIR__TEXT_AT_##name)

enum { WEIR__MAX_EVENTS = 3 };      /* of one transition */

typedef struct weir_effects {
    weir_state      from;           /* WEIR_STATE_ANY: the job is new */
    weir_state      to;             /* WEIR_STATE_ANY: the job is gone, with its log */
    uint32_t        n_events;
    weir_event_kind event[WEIR__MAX_EVENTS];
    uint32_t        texts;          /* bits WEIR__NEW(...) */
    uint32_t        completed, failed;
    int64_t         work_ms;
    bool            takes_key, frees_key;
    weir_buf        log;            /* "error | TEXT" or "stalled | TEXT", at most WEIR_MAX_TEXT */
    weir_buf        error, history, values;     /* the texts of the job that were made here */
} weir_effects;

static inline bool weir__effects_ok(const weir_effects *e)
{
    return !e->log.failed && !e->error.failed && !e->history.failed && !e->values.failed;
}

/* A delivery begins. */
static inline bool weir__effects_start(const weir_effects *e)
{
    return e->to == WEIR_STATE_ACTIVE && e->from != WEIR_STATE_ACTIVE;
}

/* A delivery is over. */
static inline bool weir__effects_end(const weir_effects *e)
{
    return e->from == WEIR_STATE_ACTIVE && e->to != WEIR_STATE_ACTIVE;
}

/* The i-th event. Its strings point into `j`, the job after the transition. */
void weir__effects_event(const weir_effects *e, size_t i, const weir_job *j, int64_t now,
                         weir_event *out);

/* A type was paused, or resumed. */
weir_event weir__pause_event(const char *type, bool paused, int64_t now);

void weir__effects_fini(weir_effects *e);

#endif
