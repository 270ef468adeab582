/* answers.h - the words in which every store refuses, so that they all say the same. */
#ifndef WEIR_STORE_ANSWERS_H
#define WEIR_STORE_ANSWERS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include "weir/queue.h"

/* There is no job with this id. */
static inline weir_code weir__no_job(weir_error *err, uint64_t id)
{
    return weir_fail(err, WEIR_ENOENT, "there is no job %" PRIu64, id);
}

/* The job is not active with this delivery (or is not there at all). */
static inline weir_code weir__stale(weir_error *err, uint64_t id, uint32_t delivery)
{
    return weir_fail(err, WEIR_ESTALE, "job %" PRIu64 ": delivery %" PRIu32 " is over", id,
                     delivery);
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

/* An add of n jobs has a token whose key is remembered, with this number, for so many jobs. Is it
 * that call *again? */
static inline weir_code weir__token_known(const weir_token *token, size_t n, uint64_t number,
                                          size_t jobs, bool *again, weir_error *err)
{
    *again = token->number == number && n == jobs;
    if (token->number < number)
        return weir_fail(err, WEIR_ESTALE, "token \"%s\": %" PRIu64 " is over, the last was %"
                         PRIu64, token->key, token->number, number);
    if (token->number == number && !*again)
        return weir_fail(err, WEIR_EINVAL, "token \"%s\": %" PRIu64 " was for %zu jobs, not %zu",
                         token->key, number, jobs, n);
    return WEIR_OK;
}

#endif
