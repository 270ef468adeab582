/* leader.h - of the processes of a bus that offer to do something, one does it: the leader. The
 * others stand by, and one of them is the leader within seconds after the leader has gone.
 *
 * Processes that offer to do NAME are its candidates: they consume weir.group.NAME. The leader also
 * consumes weir.leads.NAME. Each process sees both in its directory, and decides:
 *
 *     another process leads                   stand by
 *     a candidate with a lower name is there  stand by: that one becomes the leader
 *     neither, for LEADER_SETTLE_MS           become the leader; at once if alone on the bus
 *     two lead                                the one with the higher name yields
 *
 * A leader stays the leader when candidates with lower names come. Two processes lead at the same
 * time only if they could not reach each other: when they can again, one yields. */
#ifndef WEIR_BUS_LEADER_H
#define WEIR_BUS_LEADER_H

#include "weir/bus.h"

#define LEADER_GROUP "weir.group."          /* no longer than ".unregister": an address has room */
#define LEADER_LEADS "weir.leads."

enum { LEADER_SETTLE_MS = 100 };            /* for candidates that start at the same time */

typedef enum leader_turn {
    LEADER_FIRST,                           /* it leads: called by weir__leader_join() */
    LEADER_STARTS,                          /* it leads: this and the next, by the mailbox */
    LEADER_YIELDS,                          /* it leads no more: another process does */
    LEADER_CANDIDATES,                      /* it leads, and others have come or gone */
    LEADER_LOOKS                            /* it leads, and other processes may have come or gone,
                                               or consume something else */
} leader_turn;

/* An error of the first two: it does not lead. After LEADER_STARTS it tries again. */
typedef weir_code leader_fn(void *ctx, leader_turn turn, weir_error *err);

typedef struct leader_config {
    const char      *name;                  /* at most WEIR_MAX_BUS_ADDRESS less LEADER_GROUP */
    weir_mailbox    *mailbox;
    leader_fn       *turn;
    weir_message_fn *group;                 /* messages to weir.group.NAME */
    void            *ctx;                   /* of both */
} leader_config;

typedef struct weir_leader weir_leader;

/* Become a candidate. If the processes of the bus have no names, or there is only this one, it
 * leads: turn() was called when this returns. *out belongs to the caller, also after an error:
 * weir__leader_stop(), then weir__leader_free(). Errors: as turn(), WEIR_ENOMEM. */
weir_code weir__leader_join(weir_leader **out, weir_bus *b, const leader_config *config,
                            weir_error *err);
/* Decide for the first time, and wait until it is known who leads, but not for long. The mailbox is
 * run by its thread or its `wake`. */
void weir__leader_wait(weir_leader *l);
/* Nothing is decided from here on. Then destroy the mailbox, which closes its consumers, then free.
 * NULL is fine. */
void weir__leader_stop(weir_leader *l);
void weir__leader_free(weir_leader *l);

/* On the mailbox's thread. */
bool weir__leader_leads(const weir_leader *l);
bool weir__leader_alone(const weir_leader *l);      /* no other candidate, as decided last */
/* To all candidates, also this one. */
void weir__leader_publish(const weir_leader *l, const char *body, size_t len);

#endif
