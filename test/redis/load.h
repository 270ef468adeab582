/* load.h - producers and workers that go on whatever happens to Redis, and a ledger of what they
 * were told and what they did, to be compared with the store at the end.
 *
 * Producers and workers have a queue each, as if they were two processes. What a job is like
 * follows from its key: some fail at first, some are delayed, some are added in lots. */
#ifndef WEIR_TEST_LOAD_H
#define WEIR_TEST_LOAD_H

#include "support/runtime_fixture.h"

typedef struct load_options {
    int     producers;          /* threads; 0: 3 */
    int     workers;            /* threads; 0: 3 */
    int     prefetch;
    int64_t lease_ms;           /* 0: the usual */
    int64_t pace_us;            /* each producer rests so long after each add; 0: 500 */
} load_options;

typedef struct load load;

/* Fails the test when it cannot open the queue. */
load *load_start(const char *url, const load_options *opt);

uint64_t load_acked(load *l);                   /* jobs whose add was answered with WEIR_OK */
uint64_t load_answers(load *l, weir_code code); /* jobs whose add was answered so */
uint64_t load_begun(load *l);                   /* handlers called */

/* Wait for n more of them: the load goes on. Fails the test if they do not come. */
void load_until_acked(load *l, uint64_t n);
void load_until_begun(load *l, uint64_t n);
void load_until_answer(load *l, weir_code code, uint64_t n);
void load_until_trouble(load *l, uint64_t n);   /* WEIR_EUNAVAIL or WEIR_EUNKNOWN */

/* Stop adding, and wait until all is done. */
void load_drain(load *l);

/* Compare, and fail the test unless
 *   - every add answered WEIR_OK is there once, complete;
 *   - every add that was refused (WEIR_EUNAVAIL, WEIR_EFULL) is not there;
 *   - every add answered WEIR_EUNKNOWN is there once, complete, or not there; of a lot all or none,
 *     unless the queue has partitions;
 *   - no add had another answer;
 *   - no delivery was begun twice, and none more than leases allow;
 *   - the store finds nothing wrong with itself.
 * What was answered between these two moments (rt_ms()) may be lost, because Redis itself loses it:
 * a replica that took over did not have it. 0, 0: nothing. */
void load_verify(load *l, int64_t lost_from, int64_t lost_to);

/* Go on for a while, then drain, verify (nothing may be lost) and free it. */
void load_to_the_end(load *l);
/* So many times: the proxy holds back all bytes until the load is in trouble, and lets
 * them pass. */
struct proxy;
void load_through_hangs(load *l, struct proxy *p, int rounds);

weir_queue *load_queue(load *l);                /* the producers' */
void        load_free(load *l);

/* Wait until every one of its replicas has what the primary has now; answers the moment of that
 * "now": what was acknowledged before is on all of them. */
struct rig;
int64_t load_replicated(const struct rig *primary, int replicas);

#endif
