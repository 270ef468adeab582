/* futex.h - sleep on a 32-bit word until somebody wakes it: the cheapest way for one thread to
 * wait for another, and one that costs nothing when it need not wait. Linux. */
#ifndef WEIR_BASE_FUTEX_H
#define WEIR_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleep while *word is `expected`, at most `timeout_ms` (negative: no limit). May return early. */
static inline void weir__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ms)
{
    struct timespec ts = { (time_t)(timeout_ms / 1000), (long)(timeout_ms % 1000) * 1000000L };
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ms < 0 ? NULL : &ts, NULL, 0);
}

/* Wake all who sleep on it. The word may be gone by then: that wakes nobody, or somebody early. */
static inline void weir__futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
