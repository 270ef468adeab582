/* clock.h - reads the clocks of the machine, and waits with a time limit. No other file of the
 * library or the server calls clock_gettime(). Safe from any thread, except a weir_clock_watch.
 *
 *     clock       somebody may set it   runs while the machine sleeps   used for
 *     wall        yes                   yes                             moments that users see
 *     steady      no                    yes                             leases, timers of a queue
 *     monotonic   no                    no                              timeouts, measuring
 *
 * The steady clock and the monotonic clock start anywhere: only differences mean something, and a
 * time of one of them must not be compared with a time of the other. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

int64_t weir__wall_ms(void);            /* since 1970 */
int64_t weir__steady_ms(void);
int64_t weir__monotonic_ms(void);
int64_t weir__monotonic_ns(void);
int64_t weir__coarse_ms(void);          /* the monotonic clock; cheaper, some milliseconds late */

/* The wall clock and the steady clock at one moment. */
void weir__clock_read(int64_t *wall_ms, int64_t *steady_ms);

/* Remembers how far the wall clock is ahead of the steady one. {0} has no value yet. */
typedef struct weir_clock_watch {
    bool    started;
    int64_t ahead_ms;
} weir_clock_watch;

/* How far the wall clock was set since the last call: 0, or at least WEIR_CLOCK_STEP_MS either way.
 * Less is taken for the usual corrections of a clock. steady_ms 0 means that it is not known. */
enum { WEIR_CLOCK_STEP_MS = 500 };
int64_t weir__clock_step(weir_clock_watch *w, int64_t wall_ms, int64_t steady_ms);

/* The moment of the monotonic clock at which a wait ends. */
typedef struct weir_deadline {
    int64_t at_ns;                      /* INT64_MAX: never */
} weir_deadline;

/* In `ms` milliseconds; negative: never. */
weir_deadline weir__deadline_in(int64_t ms);

/* Milliseconds until the deadline, rounded up: 0 when it has passed, -1 when it never comes. poll()
 * and weir__futex_wait() take the same. */
int64_t weir__deadline_left_ms(weir_deadline d);

/* A condition for weir__cond_wait_until(). Release it with pthread_cond_destroy(). */
void weir__cond_init(pthread_cond_t *cond);

/* Wait for the condition, which weir__cond_init() made, with the lock held. False: the deadline has
 * passed. May return early. */
bool weir__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, weir_deadline d);

#endif
