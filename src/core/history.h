/* history.h - what happened to a job and would be forgotten otherwise, since it only has room for
 * its last start, its last error, its last end. It is a JSON array of entries, oldest first:
 *
 *   [{"n":1,"at":1700000002000,"event":"failed_attempt","state":"delayed","delivery":1,
 *     "worker":"host:7:1","started_at":1700000000000,"error":"no","until":1700000003000},
 *    {"n":2,"at":1700000003001,"event":"due","state":"inactive","planned":1700000003000}]
 *
 * The functions of job.c write them: one for each change of state but add, take and complete by a
 * worker, and what a retry makes a job forget. So a job that is done at once has none, and costs
 * nothing.
 * WEIR_MAX_HISTORY entries are kept, in WEIR_MAX_HISTORY_BYTES; the oldest go, and the number of
 * the number of the first that is left shows how many. Pure: no lock, any thread. */
#ifndef WEIR_CORE_HISTORY_H
#define WEIR_CORE_HISTORY_H

#include "core/fields.h"

#define WEIR__PASTS(X)                                                                       \
    X(FAILED_ATTEMPT, "failed_attempt")  /* a delivery ended so; state says what it became */ \
    X(FAILED,         "failed")                                                              \
    X(TTL_EXCEEDED,   "ttl_exceeded")                                                        \
    X(STALLED,        "stalled")         /* its worker was lost */                           \
    X(RETURNED,       "returned")                                                            \
    X(COMPLETE,       "complete")        /* before it was retried */                         \
    X(DUE,            "due")             /* its delay is over */                             \
    X(DEADLINE,       "deadline")        /* failed while it waited */                        \
    X(RETRIED,        "retried")         /* by hand, or whom `by` names, like those below */ \
    X(PROMOTED,       "promoted")                                                            \
    X(DELAYED,        "delayed")         /* anew */                                          \
    X(CANCELLED,      "cancelled")                                                           \
    X(SET,            "set")             /* to active, complete or failed */                 \
    X(CHANGED,        "changed")         /* its priority, its data */

typedef enum weir_history_kind {
#define X(name, text) WEIR__HISTORY_##name,
    WEIR__PASTS(X)
#undef X
    WEIR__HISTORY_COUNT
} weir_history_kind;

/* An entry. Missing members are zero. */
typedef struct weir_history_entry {
    uint64_t       n;               /* 1, 2, 3 ...: no number is used twice */
    int64_t        at;
    weir_history_kind kind;
    weir_state     state;           /* since then */
    uint32_t       delivery;        /* the delivery that ended, its worker and its start */
    const char    *worker;
    int64_t        started_at;
    const char    *error;
    const char    *by;              /* who changed it; NULL: a person */
    int64_t        planned;         /* a delay ended: when it was to end */
    int64_t        until;           /* a delay began: until then */
    bool           new_priority, new_data;
    int32_t        old_priority, priority;
} weir_history_entry;

/* Append an entry to `text`: an array, or empty. Its n is the next one. A text that is no array of
 * entries is dropped. */
void weir__history_add(weir_buf *text, const weir_history_entry *p);

/* Read all of it; texts are where `in` puts them, and errors begin with "history". */
weir_code weir__history_read(weir_reader *in, const char *text, size_t len, weir_items *out);

/* Can a job come in with this? */
weir_code weir__history_valid(const char *text, size_t len, weir_error *err);

#endif
