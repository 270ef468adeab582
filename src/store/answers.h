/* answers.h - the words in which every store refuses, so that they all say the same. */
#ifndef WEIR_STORE_ANSWERS_H
#define WEIR_STORE_ANSWERS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/job.h"
#include "op/op.h"

/* There is no job with this id. */
static inline weir_code weir__no_job(weir_error *err, uint64_t id)
{
    return weir_fail(err, WEIR_ENOENT, "there is no job %" PRIu64, id);
}

/* The same, for a call that may name the delivery of a worker: then that is over, too. */
static inline weir_code weir__no_job_of(weir_error *err, uint64_t id, uint32_t delivery)
{
    return delivery ? weir__stale(err, id, delivery) : weir__no_job(err, id);
}

/* A job would wait (again), but another one has taken its unique key. id 0: it has none yet. */
static inline weir_code weir__key_taken(weir_error *err, uint64_t id, uint64_t holder)
{
    if (!id)
        return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 " has its unique key now", holder);
    return weir_fail(err, WEIR_ESTATE, "job %" PRIu64 ": job %" PRIu64 " has its unique key now",
                     id, holder);
}

/* A job is to come in with its id, but that is another's. True. */
static inline bool weir__id_taken(weir_error *err, uint64_t id)
{
    weir_fail(err, WEIR_ESTATE, "job %" PRIu64 ": this id is another job's here", id);
    return true;
}

/* An add of n jobs has a token whose key is remembered, with this call. Is it that call *again? The
 * messages leave the key out: a server puts its caller's name into it. */
typedef struct weir_token_call {
    uint64_t number, digest;
    size_t   n;                     /* jobs */
} weir_token_call;

static inline weir_code weir__token_known(const weir_token *token, size_t n,
                                          const weir_token_call *known, bool *again,
                                          weir_error *err)
{
    bool same = token->number == known->number;
    *again = same && n == known->n && token->digest == known->digest;
    if (token->number < known->number)
        return weir_fail(err, WEIR_ESTALE, "token: call %" PRIu64 " is over, the last was %" PRIu64,
                         token->number, known->number);
    if (same && n != known->n)
        return weir_fail(err, WEIR_EINVAL, "token: call %" PRIu64 " was for %zu jobs, not %zu",
                         token->number, known->n, n);
    if (same && !*again)
        return weir_fail(err, WEIR_EINVAL, "token: call %" PRIu64 " was for other jobs; use "
                         "another key or a higher number", token->number);
    return WEIR_OK;
}

/* A schedule is to be put or removed; the stored schedule has this version (0: no such
 * schedule). */
static inline bool weir__schedule_may_change(const weir_op_schedule *o, uint64_t version,
                                             weir_error *err)
{
    if (!o->record && !version)
        weir_fail(err, WEIR_ENOENT, "there is no schedule %.128s", o->name);
    else if (o->version != WEIR_ANY_VERSION && o->version != version)
        weir_fail(err, WEIR_ESTALE, "schedule %.128s: it was changed meanwhile", o->name);
    else
        return true;
    return false;
}

#endif
