/* work.h - the inside of a work queue. workqueue.c has the addresses, the beginning and the end,
 * work.c the choice of processors, work_slot.c the processors, work_store.c work that is kept in a
 * store.
 *
 * All of it runs from one mailbox, one thing at a time, so that only the numbers need a lock. If
 * work is in memory, the thread that brings something handles it at once: a hand-over to another
 * thread costs more than the handling. A busy queue hands over all the same, so that it does not
 * keep that thread from its own duties. A persistent queue has a thread, so that batches gather.
 *
 * Work is in `waiting` or in the hands of a processor: a delivery, which takes a slot. When the
 * time of a delivery is over, its work goes to the next processor, but the delivery stays until its
 * answer or its end. A late answer frees the slot and, if the work is not done by then, ends it.
 *
 * If several processes have a queue of one address, one of them has the three addresses: the
 * leader. The others have its registrations, and one of them goes on when it is gone
 * (work_group.c).
 *
 * Work of a persistent queue is a job of the store. A message becomes a job first. The queue takes
 * as many jobs as its processors can use soon, and renews their leases. It ends each job in the
 * store before the sender has the reply. */
#ifndef WEIR_BUS_WORK_H
#define WEIR_BUS_WORK_H

#include "base/map.h"
#include "bus/leader.h"
#include "bus/vanish.h"
#include "core/fields.h"
#include "store/envelope.h"
#include "weir/queue.h"
#include "weir/remote.h"
#include "weir/workqueue.h"

/* A registration of a processor. */
typedef struct slot {
    weir_link link;                         /* of idle, busy, away or known */
    bool      leaves;                       /* it was unregistered while busy */
    bool      merged;                       /* see work_group.c */
    char      process[WEIR_PROCESS];        /* that consumed the address and was lost; "": none */
    char      address[];
} slot;

/* How a job of the store ends, and what the sender receives then. */
typedef struct work_ending {
    weir_link     link;                     /* of endings */
    bool          set;                      /* it waits for the store, or is on the way to it */
    weir_outcome  outcome;
    weir_message *to, *reply;               /* NULL: nobody; a failure */
    weir_failure  failure;
    int           code;
    char         *text;                     /* of the failure */
} work_ending;

typedef struct work {
    weir_link     link;                     /* of waiting, if it waits */
    weir_message *message;                  /* the sender's; NULL: it came from the store alone */
    weir_job     *job;                      /* NULL: it is in memory only */
    weir_header  *headers;                  /* of the job, in the arena */
    size_t        n_headers;
    weir_arena    arena;
    size_t        size;
    bool          waits, done;
    int           refs;                     /* deliveries, and the ending */
    work_ending   ending;
} work;

typedef struct work_delivery {
    weir_link       link;                   /* of deliveries */
    weir_workqueue *q;
    int             refs;                   /* calls that will come: an answer, the timer */
    work           *work;
    slot           *slot;                   /* NULL: it is free again */
    bus_request    *timer;                  /* with a reference */
    bool            late;
    weir_message   *asks;                   /* the processor's, that expects the sender's reply */
    weir_message   *sender;                 /* that expects the processor's; NULL: work->message */
} work_delivery;

struct weir_workqueue {
    weir_bus             *bus;
    weir_mailbox         *mb;
    int64_t               timeout_ms;
    bool                  timed_out_first;
    weir_dlist            waiting, idle, busy, deliveries;
    weir_leader          *leader;
    weir_dlist            known;            /* slots of the leader; in the leader: empty */
    weir_dlist            away;             /* slots whose process was lost; it may come back */
    size_t                n_away;
    vanish_watch          vanish;           /* of the addresses of slots */
    weir_consumer        *consumer[3];      /* of the three addresses; in the leader */
    uint64_t              changes;          /* of the registrations, as published last */
    char                 *address;
    size_t                bytes;
    pthread_mutex_t       lock;             /* guards the next two */
    weir_workqueue_stats  stats;            /* without done_per_second, which is in ... */
    weir_rate             rate;
    struct work_store    *store;            /* NULL: work is in memory, and the rest is used */
    pthread_cond_t        changed;          /* of the next two, which `lock` guards, too */
    bool                  handed_over;      /* the thread is to run the mailbox */
    bool                  closing;
    bool                  threaded;
    pthread_t             thread;
};

/* Changes a number of the stats. */
#define WORK_COUNT(q, member, n)                                                                  \
    (pthread_mutex_lock(&(q)->lock), (q)->stats.member += (n), pthread_mutex_unlock(&(q)->lock))

/* ---- work.c ---- */

/* Work that waits, last or first. Takes over its message and job. NULL: out of memory. */
work *weir__work_create(weir_workqueue *q, weir_message *m, weir_job *job);
void weir__work_enqueue(weir_workqueue *q, work *w, bool first);
/* It is not to be given to a processor (any more). It is freed when nobody has it. */
void weir__work_end(weir_workqueue *q, work *w);
void weir__work_unref(weir_workqueue *q, work *w);
/* Processors that have this work are idle again. */
void weir__work_release(weir_workqueue *q, work *w);
void weir__work_dispatch(weir_workqueue *q);
void weir__work_drop_all(weir_workqueue *q);        /* the mailbox is gone: fail and free it all */
void weir__work_free(weir_workqueue *q, work *w);
/* Reply with the content of `reply`; NULL: with the failure. */
void weir__work_answer(weir_message *to, const weir_message *reply, weir_failure failure, int code,
                       const char *text);

/* ---- work_slot.c ---- */

slot *weir__work_make_slot(weir_workqueue *q, const char *address);     /* NULL: out of memory */
void weir__work_free_slot(weir_workqueue *q, slot *s);  /* it is in no list */
void weir__work_add_slot(weir_workqueue *q, slot *s);   /* as an idle one */
void weir__work_put_away(weir_workqueue *q, slot *s);
void weir__work_end_slot(weir_workqueue *q, slot *s);   /* free it, and report that to the others */
/* A slot of a processor, an idle one if possible. */
void weir__work_remove_slot(weir_workqueue *q, const char *address);
/* Is there room for one more? Removed slots make room. */
bool weir__work_room_for_slot(weir_workqueue *q);
/* Slots whose process is back are idle again. */
void weir__work_look_away(weir_workqueue *q);
vanish_fn weir__work_vanished;

/* ---- work_store.c ---- */

weir_code weir__work_store_open(weir_workqueue *q, const weir_workqueue_config *config,
                                weir_error *err);
/* Stop: give back to the store what is not done. Waits. Not on the mailbox's thread. */
void weir__work_store_stop(weir_workqueue *q);
void weir__work_store_free(weir_workqueue *q);      /* after the mailbox */
/* A message that is work. `accepted`: where its acceptance is reported; "": nowhere. */
void weir__work_store_add(weir_workqueue *q, weir_message *m, const char *accepted);
/* The work has an outcome: `reply` NULL is a failure. `to` has the reply when the store has it. */
void weir__work_store_finish(weir_workqueue *q, work *w, weir_message *to, const weir_reply *reply);
/* A slot has come or gone, work is waiting no more: take or give back. */
void weir__work_store_turn(weir_workqueue *q);

/* ---- work_group.c ---- */

leader_fn       weir__work_turn;
weir_message_fn weir__work_take_group;
/* The leader has one more or one less slot: send it to the others. */
void weir__work_publish_slot(weir_workqueue *q, bool more, const char *address);

/* ---- workqueue.c ---- */

/* Consume the three addresses. */
weir_code weir__work_consume(weir_workqueue *q, weir_error *err);

/* {"status":"error","message":text} to the sender of `m` and to `accepted`. */
void weir__work_refuse(weir_workqueue *q, weir_message *m, const char *accepted, const char *text);
void weir__work_accept(weir_workqueue *q, const char *accepted);

#endif
