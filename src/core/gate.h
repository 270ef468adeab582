/* gate.h - which jobs one worker process may have side by side: any, but a suspect
 * (weir__job_is_suspect()) only alone. So if a suspect kills its process, it kills no other job.
 *
 * The gate counts the jobs that the process has and the takes that have no answer yet. Normally
 * takes are busy ones (weir_op_take) and get no suspects. If a taker's answer says that a suspect
 * waits, the taker notes it, and the gate is closed: no taker takes until the process has no jobs.
 * Then that taker takes alone.
 *
 * A running job may wait for a job that is still to be taken. So the gate is closed for a while
 * only, then open for as long, and each time twice as long. That way neither waits for ever.
 *
 * Jobs that are taken by hand belong to no pool, and their taker may never take again. So the notes
 * of such takers are forgotten when the gate opens. When nothing is held, they may all ask at once,
 * and a taker that gets a suspect beside other jobs gives it back.
 *
 * Pure functions: no lock, and the time (monotonic ms) is the caller's. */
#ifndef WEIR_CORE_GATE_H
#define WEIR_CORE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR__GATE_FIRST_MS = 5000, WEIR__GATE_LONGEST_MS = 600000 };

typedef struct weir_gate {
    size_t   held;              /* jobs */
    size_t   flying;            /* takes without an answer */
    size_t   knowing;           /* takers that have noted a suspect ... */
    bool     by_hand;           /* ... among them those by hand */
    bool     alone;             /* a suspect is held, or taken just now */
    bool     open;              /* for a while, although a taker has noted a suspect */
    bool     refused;           /* somebody, since weir__gate_opened() ... */
    bool     refused_alone;     /* ... that takes a suspect only */
    int64_t  phase_ms;          /* how long the gate is closed, and then open */
    int64_t  until;             /* end of the phase, if a taker has noted a suspect */
} weir_gate;                    /* {0}: nothing is held */

typedef enum weir_pass {
    WEIR__PASS_NONE,            /* not now */
    WEIR__PASS_BUSY,            /* as a busy worker */
    WEIR__PASS_ALONE,           /* as an idle one; nobody else takes meanwhile */
    WEIR__PASS_BY_HAND          /* as an idle one, but others may, too */
} weir_pass;

/* May a taker ask the store? `knows` is the taker's own note, false at first. only_alone: it can
 * use no other job than the suspect. */
weir_pass weir__gate_enter(weir_gate *g, bool knows, bool only_alone, int64_t now);
weir_pass weir__gate_enter_by_hand(weir_gate *g, int64_t now);

/* The outcome of a take. */
typedef struct weir_gate_answer {
    size_t n;                   /* jobs that the process has now */
    bool   suspect;             /* they are one suspect */
    bool   waits;               /* weir_op_take.suspect_waits */
    bool   failed;              /* the store could not be asked */
} weir_gate_answer;
/* False: the suspect must go back, there are others now. `knows`: NULL by hand. */
bool weir__gate_answered(weir_gate *g, weir_pass pass, weir_gate_answer a, bool *knows,
                         int64_t now);

/* n jobs have ended, or their process lost them. */
void weir__gate_left(weir_gate *g, size_t n, bool suspect);

/* The taker takes no more. */
void weir__gate_forget(weir_gate *g, bool *knows);

/* Has the gate opened for somebody who was refused? Then it says so once. */
bool weir__gate_opened(weir_gate *g, int64_t now);

/* Does nobody take, until the process has nothing? */
bool weir__gate_closed(weir_gate *g, int64_t now);

#endif
