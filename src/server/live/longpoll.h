/* longpoll.h - who waits for jobs, and is woken when some come: long polls without polling.
 *
 * A poll is one request for up to n jobs of some types. It enters before it looks into the store
 * for the first time, and when it has found nothing it rests until there is a reason to look again:
 *
 *     srv_longpoll_enter(polls, p);
 *     look:     take from the store; jobs came: srv_longpoll_leave(p, how many)
 *     nothing:  if (!srv_longpoll_rest(p)) goto look;      a job came meanwhile
 *     resting:  p->look(p) is called on p's loop; or srv_longpoll_leave(p, 0) when the time is up
 *
 * No job is missed: what comes while a poll looks makes rest() say so, what comes while it rests
 * wakes it, and a poll that leaves with a wake it has not used passes it on. Polls are not woken in
 * vain: n new jobs wake at most n polls, on any loop, the longest waiting first. A poll that is
 * about to look counts for all the jobs that it asks for. A poll with a condition is not counted
 * on: it is woken beside the one behind it. */
#ifndef WEIR_SERVER_LONGPOLL_H
#define WEIR_SERVER_LONGPOLL_H

#include "base/list.h"
#include "server/live/counters.h"
#include "server/http/loop.h"
#include "weir/weir.h"

typedef struct srv_longpolls srv_longpolls;

/* Listens to the queue until it is destroyed, which is when no poll is left and the loops have
 * ended. NULL is fine for destroy. */
weir_code srv_longpolls_create(srv_longpolls **out, weir_queue *q, srv_counters *counters,
                               weir_error *err);
void srv_longpolls_destroy(srv_longpolls *ps);

/* Belongs to its user, who sets the first five; {0} otherwise. All calls are made on its loop. */
typedef struct srv_longpoll {
    srv_loop              *loop;
    const char *const     *types;           /* NULL at the end; must stay until it has left */
    size_t                 n;               /* jobs it asks for, at least 1 */
    bool                   picky;           /* it may leave jobs that it is woken for */
    void                 (*look)(struct srv_longpoll *p);
    srv_longpolls         *polls;
    struct srv_longpoll_loop *on;           /* its loop's */
    struct srv_longpoll_place *place;       /* one for each type */
    size_t                 n_types;
    enum { SRV_LONGPOLL_LOOKS, SRV_LONGPOLL_RESTS, SRV_LONGPOLL_WOKEN } state;
    uint64_t               turn;            /* who came first is woken first */
    uint64_t               reasons;         /* of its types to look, when it began to */
    size_t                 expected;        /* jobs it was woken for */
    bool                   chain;           /* woken for an unknown number of jobs */
    bool                   nudged;          /* srv_longpoll_wake() came before it rested */
    weir_link              link;            /* in the loop's list of those woken */
    weir_dlist            *refused_by;      /* workers.c, as is the next; NULL: in no list */
    weir_link              link_refused;
} srv_longpoll;

/* False: out of memory, and it has not entered. */
bool srv_longpoll_enter(srv_longpolls *ps, srv_longpoll *p);

/* It looked and found nothing. False: something came meanwhile, look again. True: it rests. */
bool srv_longpoll_rest(srv_longpoll *p);

/* It has not looked, since its worker may not take now. False: it was woken meanwhile. True: it
 * rests until srv_longpoll_wake(), and others get the jobs that it was woken for. */
bool srv_longpoll_stand_aside(srv_longpoll *p);

/* Have it look, if it rests, or else once it would rest. Any thread; it has entered. */
void srv_longpoll_wake(srv_longpoll *p);

/* It waits no longer, having got this many jobs. SRV_LONGPOLL_FAILED: it could not look, or left
 * some for others (WEIR_MAX_TAKE_BYTES). */
#define SRV_LONGPOLL_FAILED SIZE_MAX
void srv_longpoll_leave(srv_longpoll *p, size_t got);

#endif
