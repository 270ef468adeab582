/* probe.h - calls over a link whose order, loss and repetition can be told: each carries the next
 * number of its key, and a function keeps the last one.
 *
 * Each step sends two calls for each key, one behind the other, and sees that every number was
 * carried out once and in order, however often it had to be sent. Asserts with cmocka. */
#ifndef WEIR_TEST_PROBE_H
#define WEIR_TEST_PROBE_H

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "store/redis/link/link.h"

enum { PROBE_MAX_KEYS = 16, PROBE_DEPTH = 2 };

typedef struct probe_key {
    char       name[32];
    uint32_t   slot;
    int64_t    number;          /* the last that was carried out, as we know */
    redis_call call[PROBE_DEPTH];
} probe_key;

typedef struct probe {
    redis_link  *link;
    redis_library library;
    probe_key    key[PROBE_MAX_KEYS];
    size_t       n;
    /* since the last look */
    size_t       unavailable, unknown;  /* the first call of a key in a step ended so */
    size_t       lost;          /* numbers that Redis had said it had, and has no longer */
} probe;

redis_url probe_url(const char *url);           /* of a URL that is right */
void      probe_open(probe *p, const redis_url *url, size_t n_keys);
void      probe_close(probe *p);
void      probe_step(probe *p);
/* Steps until `done` says true; fails after RIG_PATIENCE_MS. */
void      probe_until(probe *p, bool (*done)(void *ctx), void *ctx);
void      probe_steps(probe *p, int n);

/* ---- a subscriber that counts ---- */

enum { PROBE_MAX_CHANNELS = 4 };

typedef struct probe_subscriber {
    redis_subscriber *subscriber;
    redis_channel   channel[PROBE_MAX_CHANNELS];
    size_t          n;
    pthread_mutex_t lock;
    pthread_cond_t  came;
    size_t          lost[PROBE_MAX_CHANNELS], messages[PROBE_MAX_CHANNELS];
    char            last[PROBE_MAX_CHANNELS][64];
} probe_subscriber;

void probe_subscribe(probe_subscriber *e, const redis_url *url, size_t n,
                     const redis_channel *channels);
void probe_unsubscribe(probe_subscriber *e);
/* Wait until `lost` was called that often for a channel. */
void probe_wait_lost(probe_subscriber *e, size_t channel, size_t times);
/* Publish over the link until it is received. */
void probe_tell(probe_subscriber *e, probe *p, size_t channel, const char *message);

#endif
