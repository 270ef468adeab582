/* work_store.h - the inside of a persistent work queue: what work_store.c and work_batch.c share.
 *
 * Operations for the store (messages to add, jobs that have ended, jobs to take, leases to renew)
 * gather while one batch is under way. They are the next batch: the busier the queue, the fewer
 * commits a message costs. Outcomes come on the callback thread of the store's queue and are handed
 * to the mailbox, on whose thread all else runs. */
#ifndef WEIR_BUS_WORK_STORE_H
#define WEIR_BUS_WORK_STORE_H

#include "bus/work.h"

enum { WORK_AT_ONCE = 1000 };           /* messages, jobs and endings of a batch */

/* A message on its way to the store. */
typedef struct adding {
    weir_link     link;
    weir_message *message;
    size_t        size;
    weir_buf      values;           /* of its job: the headers */
    char          accepted[];
} adding;

typedef enum part { PART_ADD, PART_END, PART_TAKE, PART_RENEW, PARTS } part;

/* One batch, from its submission to its outcome on the mailbox's thread. */
typedef struct batch {
    delivery        d;                  /* first */
    weir_workqueue *q;
    _Atomic int     left;               /* parts that are not done */
    weir_future    *future[PARTS];      /* NULL: not part of it */
    weir_error      err[PARTS];
    weir_dlist      adds, ends;
    size_t          n_adds, n_ends, n_take, n_taken, n_leases;
    weir_added      added[WORK_AT_ONCE];
    weir_ending     ending[WORK_AT_ONCE];
    weir_ended      ended[WORK_AT_ONCE];
    weir_job       *job[WORK_AT_ONCE];
    weir_lease     *leases;
    weir_renewed   *renewed;        /* of each */
} batch;

typedef struct work_store {
    weir_queue    *queue;
    char          *type;
    weir_listener *listener;
    weir_map       held;                /* jobs that were taken and have not ended: id to work */
    weir_map       senders;             /* of jobs that are not held: id to message */
    weir_dlist     early;               /* job_end that came before the batch's jobs were known */
    weir_dlist     adds, endings;       /* for the next batch */
    size_t         n_adds, add_bytes;   /* also of the batch under way */
    size_t         n_endings;
    batch         *batch;               /* under way */
    bus_request   *timer;               /* with a reference; NULL: none */
    int64_t        renew_at;            /* monotonic ms */
    bool           flush_posted, more;  /* more: the store may have jobs that wait */
    bool           closing;
    atomic_bool    news;                /* an event `enqueue` has come since the last look ... */
    atomic_bool    hungry;              /* ... and the next one wakes the queue */
    atomic_bool    known;               /* the end of a job may be news */
    bool           stopped;             /* guarded by q->lock, with `changed` */
    pthread_cond_t changed;
} work_store;

/* The end of a job, as an event reports it. */
typedef struct job_end {
    delivery        d;                  /* first */
    weir_workqueue *q;
    uint64_t        id;
    weir_event_kind kind;
    size_t          len;
    char            text[];             /* "": none */
} job_end;

/* work_batch.c */
/* Submit what there is to be done, unless a batch is under way. */
void weir__work_flush(weir_workqueue *q);
size_t weir__work_wanted(const weir_workqueue *q);      /* jobs to take */
void weir__work_free_early(work_store *s);

/* work_headers.c */
void weir__work_write_headers(weir_buf *out, const weir_message *m);    /* as values of a job */
void weir__work_read_headers(work *w);                                  /* of its job */

/* work_store.c */
void weir__work_set_timer(weir_workqueue *q, int64_t ms);       /* flush after a while */
void weir__work_update_known(work_store *s);
/* The sender waits for the end of a job that is not held, unless that was earlier. Takes over the
 * message; NULL is fine. */
void weir__work_put_sender(work_store *s, uint64_t id, weir_message *m);

#endif
