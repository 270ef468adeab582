/* envelope.h - bytes that the processes of one store send each other, beside the events of jobs.
 * The event bus puts its messages into envelopes; a store does not look inside.
 *
 * A process that takes part is a member. An envelope arrives at most once; envelopes of one sender
 * to one process arrive in their order; none is kept for later. */
#ifndef WEIR_STORE_ENVELOPE_H
#define WEIR_STORE_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    WEIR_PROCESS = 17,                          /* bytes of a member's name, with its NUL */
    WEIR_MAX_ENVELOPE = (16 * 1024 + 64) * 1024 /* bytes: the longest message of the bus fits */
};

typedef struct weir_envelope {
    const char *to;                             /* a member; NULL: all others */
    const char *bytes;                          /* may contain anything */
    size_t      len;
    bool        count;                          /* to all: call member->reached() */
} weir_envelope;

/* The functions are called on threads of the store's, arrived() on one. They must not block; they
 * may call post(). */
typedef struct weir_member {
    char  process[WEIR_PROCESS];                /* 16 characters that nobody else has */
    void (*arrived)(void *ctx, const char *bytes, size_t len);          /* borrowed for the call */
    void (*reached)(void *ctx, size_t others);  /* as many members were sent the envelope */
    /* The connection to the others is new: envelopes of both directions may have been lost. */
    void (*lost)(void *ctx);
    void (*gone)(void *ctx, const char *process);       /* this member has ended */
    void  *ctx;
} weir_member;

#endif
