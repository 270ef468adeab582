/* mover_inner.h - the inside of mover.h, shared by its files. */
#ifndef WEIR_CLI_MOVER_INNER_H
#define WEIR_CLI_MOVER_INNER_H

#include "cli/migrate/mover.h"

/* Ids that are tried for one job that gets a new one, and where it is looked for later. */
enum { MOVER_OTHER_IDS = 1024 };

/* A job on its way. */
typedef struct load {
    weir_job     *job;              /* as it is in the source */
    weir_job      copy;             /* ... and is to be in the target: the same strings */
    move_log      log;
    uint64_t      id;               /* that it is to have in the target, or the next */
    uint64_t      at;               /* ... and has */
    int64_t       promote_at;       /* its own, while it is parked */
    weir_state    state;            /* that it has when it has moved */
    bool          parked;
    bool          marked;           /* an earlier run has written down that the target has it */
    bool          waits_there;      /* its copy in the target is parked */
    bool          off;              /* not now: somebody else was quicker */
    bool          known;            /* an earlier run has written down which id it gets */
    bool          taken;            /* ... but another job has it now */
    bool          renamed;          /* it was written down now */
    bool          arrived, existed;
    weir_error    refusal;          /* why it did not; code WEIR_OK: it did, or was not tried */
    /* of the call that is under way */
    weir_future  *f;
    weir_error    err;
    weir_job     *got;
} load;

typedef struct bulk {
    load       load[MOVER_BULK];
    size_t     n;
    weir_state state;               /* all of them have, or had */
} bulk;

static inline bool mover_ended(weir_state s)
{
    return s == WEIR_STATE_COMPLETE || s == WEIR_STATE_FAILED || s == WEIR_STATE_CANCELLED;
}

/* Wait for the calls of a bulk; each has its answer in load.err. The code is for failures of a
 * store: a job that is gone, or in another state, is no failure. */
weir_code mover_await(bulk *l, weir_error *err);

/* ---- mover_ids.c ---- */

/* Which jobs that an earlier run has named have arrived, and which names can still be used? An
 * earlier run may have given new ids when this one does not. */
weir_code mover_find(mover *m, bulk *l, weir_error *err);

/* Give the others an id in the target, written down in the source first, so that after a crash the
 * same one is found again. */
weir_code mover_name(mover *m, bulk *l, weir_error *err);

/* Is the job with this id in the target the job that was named so here? Others may be of its type
 * and created_at. */
weir_code mover_is(mover *m, const load *d, uint64_t id, bool *out, weir_error *err);

/* ---- mover_refused.c ---- */

bool      mover_leaves(const mover_refused *r, uint64_t id, int64_t now);
weir_code mover_refuse(mover_refused *r, uint64_t id, int64_t until, const char *why,
                       weir_error *err);
void      mover_unrefuse(mover_refused *r, uint64_t id);

#endif
