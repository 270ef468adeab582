/* ledger.h - a ledger outside the store: what producers and workers saw, compared with what the
 * store has at the end.
 *
 * A child process opens the store; its producers add jobs and its workers do them, and all of them
 * write what they saw to a plain append-only file. The parent injects faults, lets the last child
 * finish everything, and then judges. What a job is like follows from its key: some fail once or
 * twice, some start later, some are removed when they are complete. */
#ifndef WEIR_TEST_LEDGER_H
#define WEIR_TEST_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "weir/weir.h"

#define LEDGER_NO_POISON UINT64_MAX

/* What one child does. */
typedef struct ledger_work {
    const char *url;
    const char *path;           /* of the ledger */
    uint64_t    from, to;       /* keys of the jobs that it adds: from .. to - 1 */
    int64_t     lease_ms;       /* 0: the default */
    bool        patient;        /* the store fails on purpose: repeat an add, with its token, until
                                   it is acknowledged. Else an error ends the child */
    bool        adds_only;      /* end when the jobs are added */
    uint64_t    poison;         /* key of the job that kills its worker, or LEDGER_NO_POISON. With
                                   a poison job all jobs have the default of max_lost */
} ledger_work;

/* Add the jobs and work until nothing is left to do. Returns the exit status of the child. */
int ledger_work_off(const ledger_work *work);

/* What the ledger and the store say together. Each of the faults should be 0. */
typedef struct ledger_result {
    uint64_t acknowledged;      /* adds that were answered with WEIR_OK */
    uint64_t executed;          /* jobs of which at least one delivery was begun */
    uint64_t deliveries;        /* begun */
    uint64_t stored;            /* jobs in the store at the end */
    /* faults: */
    uint64_t lost;              /* acknowledged, neither in the store nor done and removed */
    uint64_t unfinished;        /* in the store and neither complete nor failed */
    uint64_t failed;            /* for good, but the poison job */
    uint64_t added_twice;       /* one key, two jobs */
    uint64_t begun_twice;       /* the same delivery */
    uint64_t begun_after;       /* a job began after its completion was announced */
    uint64_t completed_twice;   /* one listener got two complete events of a job */
    uint64_t invented;          /* jobs that nobody wanted */
    uint64_t spared;            /* 1: the poison job did not fail */
    uint64_t inconsistent;      /* lines of weir_check() */
    char     trouble[WEIR_ERROR_MAX];   /* what the first fault was, where that is known; or "" */
} ledger_result;

/* Compare the ledger with the store at `url`. False, with the reason in trouble: one of them cannot
 * be read. */
bool ledger_judge(const char *path, const char *url, uint64_t poison, ledger_result *out);

/* How many adds were acknowledged so far. */
uint64_t ledger_acknowledged(const char *path);

/* A sequence of random numbers that follows from *state. */
uint64_t ledger_random(uint64_t *state);

#endif
