/* futex.h - sleep on a 32-bit word until another thread wakes it: the cheapest way for one thread
 * to wait for another. It costs nothing when the thread need not wait. Linux. */
#ifndef WEIR_BASE_FUTEX_H
#define WEIR_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleep while *word is `expected`, at most `ns` nanoseconds. May return early. */
static inline void weir__futex_wait_ns(_Atomic uint32_t *word, uint32_t expected, int64_t ns)
{
    struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &ts, NULL, 0);
}

/* The same, at most `timeout_ms` milliseconds (negative: no limit). */
static inline void weir__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ms)
{
    if (timeout_ms < 0)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
    else
        weir__futex_wait_ns(word, expected, timeout_ms * 1000000);
}

/* Wake all who sleep on it. The word may be gone by then: that wakes nobody, or somebody early. */
static inline void weir__futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
