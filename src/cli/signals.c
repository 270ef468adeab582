/* signals.c - see signals.h. */
#include "cli/signals.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/signalfd.h>
#include "cli/clock.h"

int cli_signals(int first, ...)
{
    sigset_t set;
    va_list  args;
    sigemptyset(&set);
    va_start(args, first);
    for (int s = first; s; s = va_arg(args, int))
        sigaddset(&set, s);
    va_end(args);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL))
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int cli_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms)
{
    int64_t end = cli_clock_ms() + timeout_ms;
    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : end - cli_clock_ms();
        left = timeout_ms >= 0 && left < 0 ? 0 : left > INT_MAX ? INT_MAX : left;
        int got = poll(fds, n, (int)left);
        if (got > 0 || (got < 0 && errno != EINTR) || (got == 0 && left < INT_MAX))
            return got;
    }
}
