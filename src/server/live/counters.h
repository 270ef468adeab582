/* counters.h - what the server counts of itself, for /metrics: a member of srv_server. Plain
 * atomics: anybody adds, nobody waits. All only grow from the start of the server, but for the
 * gauges, which say how many there are now. */
#ifndef WEIR_SERVER_COUNTERS_H
#define WEIR_SERVER_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "server/server.h"

typedef struct srv_counters {
    /* remote workers: POST /v1/take, /v1/finish, /v1/renew */
    _Atomic uint64_t jobs_taken;            /* jobs handed out */
    _Atomic uint64_t jobs_ended;            /* deliveries that were ended: done, failed, returned */
    _Atomic uint64_t jobs_stale;            /* endings and renewals that came too late (ESTALE) */
    _Atomic uint64_t jobs_returned;         /* taken for a client that was gone, and given back */
    _Atomic uint64_t leases_lost;           /* jobs whose worker, remote or not, was lost */
    _Atomic int64_t  takes_waiting;         /* gauge: long polls */
    /* live events: GET /v1/events */
    _Atomic int64_t  listeners;             /* gauge */
    _Atomic uint64_t listeners_dropped;     /* they were too slow */
    _Atomic uint64_t listeners_refused;     /* there were SRV_MAX_LISTENERS */
    /* the server itself */
    _Atomic uint64_t reloads_failed;        /* of certificates and the access log */
    _Atomic uint64_t over_share[SRV_SHARES];    /* refused: more than a caller's share */
    _Atomic uint64_t answers_refused;       /* too many bytes of answers were not taken */
    _Atomic uint64_t answers_delayed;       /* parts of answers that had to wait for room */
    _Atomic uint64_t callers_revoked;       /* whose stream or wait ended with their token */
    _Atomic uint64_t events_sent;           /* events times those they were sent to */
} srv_counters;

#endif
