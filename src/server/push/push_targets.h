/* push_targets.h - where jobs are pushed to: what a target is, and the file that keeps them.
 * No lock, no thread: whoever calls owns what it passes. */
#ifndef WEIR_SERVER_PUSH_TARGETS_H
#define WEIR_SERVER_PUSH_TARGETS_H

#include "core/fields.h"

enum {
    SRV_PUSH_MAX_TARGETS     = 100,
    SRV_PUSH_MAX_NAME        = 64,                  /* bytes */
    SRV_PUSH_MAX_URL         = 2048,
    SRV_PUSH_MIN_SECRET      = 16,                  /* bytes: not to be guessed */
    SRV_PUSH_MAX_SECRET      = 256,
    SRV_PUSH_CONCURRENCY     = 4,                   /* unless it says so */
    SRV_PUSH_MAX_CONCURRENCY = 100,
    SRV_PUSH_TIMEOUT_MS      = 30 * 1000,
    SRV_PUSH_MIN_TIMEOUT_MS  = 100,
    SRV_PUSH_MAX_TIMEOUT_MS  = 60 * 60 * 1000,
    SRV_PUSH_LATER_MS        = 5 * 60 * 1000,
    SRV_PUSH_MIN_LATER_MS    = 1000,
    SRV_PUSH_MAX_LATER_MS    = 7 * 24 * 60 * 60 * 1000
};

typedef struct srv_push_target {
    const char *name;           /* letters, digits, '.', '_' and '-' */
    weir_texts  types;          /* of the jobs it gets */
    const char *url;
    const char *secret;         /* signs what is sent; never shown */
    const char *old_secret;     /* signs it too, while the secret is changed; NULL: none */
    bool        rotate;         /* of a PUT: the secret that it replaces becomes the old one */
    int64_t     concurrency;    /* requests at once */
    int64_t     timeout_ms;     /* for an answer */
    int64_t     later_ms;       /* to finish a job after the answer 202 */
    bool        paused;         /* it answered 410: gets nothing until it is put again */
} srv_push_target;

/* The defaults of a target. */
extern const srv_push_target srv_push_defaults;

/* Members of the body of a PUT. */
extern const weir_field srv_push_fields[];

/* Is it right? It may have no secret yet (NULL). Errors:
 * WEIR_EINVAL, WEIR_ELIMIT, WEIR_ENOMEM. */
weir_code srv_push_check(const srv_push_target *t, weir_error *err);

/* Would a request go to an address that is known not to be public? See netguard.h. WEIR_EINVAL: it
 * would. The address that is really connected to is looked at again. */
weir_code srv_push_check_public(const srv_push_target *t, weir_error *err);

/* A copy in one piece of memory: free(). NULL: out of memory. */
srv_push_target *srv_push_copy(const srv_push_target *t);

/* Targets as they are in the file, and back:
 *
 *     {"targets":[{"name":"mail","types":["mail"],"url":"https://...","concurrency":4,
 *                  "timeout":30000,"later":300000,"secret":"...","old_secret":"...",
 *                  "paused":false}, ...]}
 *
 * Each of out[0..*n) belongs to the caller: free(). Errors: WEIR_EINVAL, WEIR_ELIMIT, WEIR_ENOMEM;
 * they name the member. */
weir_code srv_push_parse(const char *text, size_t len, srv_push_target *out[SRV_PUSH_MAX_TARGETS],
                         size_t *n, weir_error *err);
void srv_push_write(weir_buf *out, const srv_push_target *const *targets, size_t n);

/* Types, URL, limits and times as members of an object, with a comma at the end; no secret,
 * but `rotating` where there is an old one. */
void srv_push_show(weir_buf *out, const srv_push_target *t);

#endif
