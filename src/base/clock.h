/* clock.h - the wall clock, which somebody may set, and the steady clock, which nobody can. Safe
 * from any thread, but for a weir_clock_watch. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds of the steady clock. It starts anywhere, and goes on while the machine sleeps. */
int64_t weir__steady_ms(void);

/* Both clocks at one moment. */
void weir__clock_read(int64_t *wall_ms, int64_t *steady_ms);

/* Remembers how far the wall clock is ahead of the steady one. {0} knows nothing yet. */
typedef struct weir_clock_watch {
    bool    started;
    int64_t ahead_ms;
} weir_clock_watch;

/* How far the wall clock was set since the last call: 0, or at least WEIR_CLOCK_STEP_MS either way.
 * Less is taken for the usual corrections of a clock. steady_ms 0 means that it is not known. */
enum { WEIR_CLOCK_STEP_MS = 500 };
int64_t weir__clock_step(weir_clock_watch *w, int64_t wall_ms, int64_t steady_ms);

#endif
