/* id.c - new ids of tasks: 20 characters, 10 for the time in milliseconds and 10 at random. Those
 * of one process are in order, also within a millisecond. */
#include <pthread.h>
#include <sys/random.h>

#include "base/clock.h"
#include "task/inner.h"

enum { HALF = 10, DIGIT_BITS = 5 };
#define RANDOM_BITS (HALF * DIGIT_BITS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* guards the two */
static int64_t         last_ms;
static uint64_t        last_random;

uint64_t weir__task_random(void)
{
    uint64_t n = 0;
    while (getrandom(&n, sizeof n, 0) != sizeof n || !n)
        ;
    return n;
}

static void write_digits(char *out, uint64_t n)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    for (int i = HALF - 1; i >= 0; i--, n >>= DIGIT_BITS)
        out[i] = digits[n & 31];
}

void weir__task_new_id(char out[WEIR_MAX_TASK_ID + 1])
{
    const uint64_t mask = (UINT64_C(1) << RANDOM_BITS) - 1;
    uint64_t       fresh = weir__task_random() & mask;
    int64_t        now = weir__wall_ms();
    pthread_mutex_lock(&lock);
    if (now > last_ms) {
        last_ms = now;
        last_random = fresh;
    } else if (++last_random > mask) {
        last_ms++;
        last_random = fresh;
    }
    write_digits(out, (uint64_t)last_ms);
    write_digits(out + HALF, last_random);
    pthread_mutex_unlock(&lock);
    out[2 * HALF] = '\0';
}
