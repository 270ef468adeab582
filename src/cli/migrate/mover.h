/* mover.h - jobs on their way from one queue to another, while both are in use.
 *
 * Each job moves once and is never run by both sides, whenever the program is killed:
 *
 *   1. park     in the source: the job becomes delayed until WEIR_PARKED_AT and its own time. From
 *               here on no worker of the source takes it. (One that is active is left to its
 *               worker; one that has ended needs no parking, marking or release.)
 *   2. import   into the target, with its log, parked as well: no worker of the target takes it.
 *   3. mark     in the source: delayed by WEIR_PARKED_SPAN more. "The target has it."
 *   4. release  in the target: the job gets its own time back and can run.
 *   5. remove   from the source.
 *
 * Why each job runs once: a copy can be taken only after step 4, which follows step 3. So
 *
 *   killed      the source has it    the target           the next run
 *   after 1     parked               has no copy          imports it
 *   after 2     parked               has a parked copy    finds the copy by id, type, created_at
 *   after 3     marked               has a parked copy    releases it and removes the job
 *   after 4     marked               may have run it;     removes the job; a mark means that it is
 *                                    it may be gone       never imported again
 *
 * A copy that is parked cannot end, so it is still there when a run looks for it; the mark in the
 * source outlives a copy that has ended and was removed. Each step can be repeated. With new ids
 * the id is written into the source's log before step 2 (mover_ids.c), and the copy is found by it.
 *
 * Conditions: the next run has the same target, and no user promotes a parked job by hand. */
#ifndef WEIR_CLI_MOVER_H
#define WEIR_CLI_MOVER_H

#include "weir/weir.h"

enum { MOVER_BULK = 200, MOVER_SHOWN = 20 };

/* Jobs that the target refused, so that they are not tried again and again. */
typedef struct mover_refused {
    struct mover_slot { uint64_t id; int64_t until; } *slot;   /* id 0: free */
    size_t n, cap, used;
    struct { uint64_t id; char why[WEIR_ERROR_MAX]; } shown[MOVER_SHOWN];
    size_t n_shown;
} mover_refused;

typedef struct mover mover;
struct mover {
    weir_queue *from, *to;
    bool        keep;               /* copy: park nothing, remove nothing */
    bool        new_ids;
    bool        follow;             /* what was refused is tried again after a while */
    int64_t     quiet_ms;           /* jobs that were changed since are left alone: Kue's processes
                                       change a job in several steps */
    int64_t     began_at;           /* by the source's clock */
    bool      (*report)(mover *m, void *ctx);     /* after each bulk; true: stop. May be NULL */
    void       *ctx;
    /* what came of it so far */
    uint64_t    moved[WEIR_STATE_COUNT]; /* by the state they had; [WEIR_STATE_ANY] is the sum */
    uint64_t    existed;            /* of these, how many had been imported before */
    uint64_t    unquiet;            /* in the last pass: left alone, and not new since began_at */
    size_t      types;              /* whose settings or pause were copied */
    size_t      schedules;          /* that were moved or copied */
    size_t      schedules_left;     /* that the target refused, ... */
    weir_error  schedule_trouble;   /* ... the first of them for this reason */
    bool        stopped;
    mover_refused refused;
};

/* Are these two stores? WEIR_EINVAL: they are one and the same. */
weir_code mover_check(mover *m, weir_error *err);

/* Copy pauses and settings of types. The target's own settings stay, if the source has none. */
weir_code mover_types(mover *m, weir_error *err);

/* Move all schedules, with their history. They fire in the target from then on. */
weir_code mover_schedules(mover *m, weir_error *err);

/* Ids that the target gives by itself are to be far above the ids of the source, so that jobs can
 * be added to both meanwhile. */
weir_code mover_spread_ids(mover *m, weir_error *err);

/* Move all that can be moved now, once. *n: how many were. Trouble of a store ends it; to call it
 * again goes on. */
weir_code mover_pass(mover *m, uint64_t *n, weir_error *err);

void mover_fini(mover *m);

/* ---- shared with export and import ---- */

/* Jobs have other ids there: a schedule loses the ids of its last ones. */
void move_forget_ids(weir_schedule *s);

/* Has the type settings of its own, as far as is known? `all` has the settings of "*". */
bool move_has_settings(const weir_type_stats *t, const weir_settings *all);

/* A job's log, of however many pages. {0} is empty. */
enum { MOVE_PAGES = WEIR_MAX_LOG / WEIR_MAX_PAGE + 2 };
typedef struct move_log {
    weir_line  *line;
    size_t      n;
    bool        gone;               /* the job is gone */
    weir_lines *page[MOVE_PAGES];
    size_t      n_pages;
    weir_line  *own;                /* of more than one page */
} move_log;

/* The logs of n jobs, read together; jobs that are NULL are left out. */
weir_code move_read_logs(weir_queue *q, weir_job *const *jobs, size_t n, move_log *out,
                         weir_error *err);
void      move_log_fini(move_log *log);

#endif
