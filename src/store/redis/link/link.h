/* link.h - the way to Redis: one primary, a cluster, or whatever the sentinels say.
 *
 * A link carries calls. A call is one command, usually FCALL, for the node that has its slot. The
 * link connects, authenticates, loads missing libraries of functions, and follows MOVED and ASK. It
 * waits out LOADING, TRYAGAIN, CLUSTERDOWN, READONLY and a primary that is being replaced. When a
 * connection is lost, it connects again. A call is safe to repeat if it was refused, was not sent
 * whole, or is `repeatable`. It is repeated until url->timeout_ms have passed since it was sent.
 * Then it ends with one of these, and always with one of these:
 *
 *   WEIR_EUNAVAIL   certainly not done (it was never sent whole, or the server refused it)
 *   WEIR_EUNKNOWN   perhaps done: it was sent, and no answer came
 *   WEIR_EFULL      refused for lack of memory (OOM) or because of the server's disk (MISCONF)
 *   WEIR_EREADONLY  a user without the right to (NOPERM)
 *   WEIR_ECORRUPT   a key is not what it should be (WRONGTYPE), or the function found nonsense
 *   WEIR_ENOMEM     no memory to send it: certainly not done
 *
 * A connection that takes the place of another has the server close that one before anything is
 * sent again: what lies unread in it is never carried out after its repetition.
 *
 * One thread at a time uses a link. Nobody spins: between tries it sleeps, 10 ms at first, then
 * twice as long, at most 500 ms. */
#ifndef WEIR_STORE_REDIS_LINK_H
#define WEIR_STORE_REDIS_LINK_H

#include <hiredis/hiredis.h>
#include "base/buf.h"
#include "store/store.h"

/* ---- where ---- */

enum {
    WEIR_REDIS_MAX_NODES      = 64,     /* named in a URL */
    WEIR_REDIS_MAX_PREFIX     = 64,     /* bytes */
    WEIR_REDIS_MAX_PARTITIONS = 256,
    WEIR_REDIS_TIMEOUT_MS     = 5000,
    WEIR_REDIS_SLOTS          = 16384
};

typedef enum redis_way { REDIS_ONE, REDIS_UNIX, REDIS_CLUSTER, REDIS_SENTINEL } redis_way;

typedef struct redis_place {
    char host[256];                     /* or the path of a socket */
    int  port;                          /* 0: a socket */
} redis_place;

/* The parts of a URL: redis://[user:password@]host[:port][,host:port...][/db]?option=value
 *                  redis+unix:///path/of/socket
 *                  redis+sentinel://[user:password@]host:port,host:port/name-of-primary[/db]
 * and the same with redis+kue, redis+kue+unix, redis+kue+sentinel; with TLS rediss,
 * rediss+sentinel, rediss+kue, rediss+kue+sentinel. */
typedef struct redis_url {
    redis_way   way;
    redis_place place[WEIR_REDIS_MAX_NODES];
    size_t      n_places;
    char        primary[128];           /* sentinel: its name */
    char        user[128], password[256];
    int         db;
    char        prefix[WEIR_REDIS_MAX_PREFIX + 1];   /* "weir"; kue: "q" or "vertx_kue" */
    uint32_t    partitions;             /* 0: as the queue has it, 1 for a new one */
    bool        kue, vertx;             /* the layout of Kue; its profile=vertx */
    bool        allow_eviction;
    int64_t     timeout_ms;             /* timeout=5s */
    int64_t     promotion_ms;           /* kue: interval to look for delayed jobs of others; 0: as
                                           the layout does */
    bool        tls;
    char        cacert[256], cadir[256], cert[256], key[256];   /* files in PEM; "": none */
    char        servername[256];        /* that certificates must have; "": the host */
    char        password_file[256];     /* see weir__redis_password() */
    uint32_t    replicas;               /* must have a change before it is acknowledged */
    weir_durability durability;         /* asked for; WEIR_DURABILITY_DEFAULT: whatever it is */
} redis_url;

/* The names of options, for weir_store_ops.options. */
extern const char *const weir__redis_options[], *const weir__kue_options[];

/* Never puts the password into an error. */
weir_code weir__redis_url(const weir_url *url, redis_url *out, weir_error *err);
/* Read url->password_file, if it names one, into url->password. */
weir_code weir__redis_password(redis_url *url, weir_error *err);

/* ---- calls ---- */

/* Functions in Lua that a server keeps (FUNCTION LOAD). The name of a library contains a hash of
 * its text, so that the server can have libraries of several versions of weir:
 * "weir_native_0123456789ab". */
typedef struct redis_library {
    const char *label;                  /* "native" */
    const char *source;                 /* registers functions whose names begin with NAME */
    size_t      len;
    char        name[40];               /* these are filled in by weir__library_init() */
    char        head[128];              /* goes before the source: says the name, twice */
} redis_library;

void weir__library_init(redis_library *l);

typedef struct redis_call {
    uint32_t            slot;           /* in a cluster: weir__redis_slot(tag) */
    const redis_library *library;       /* whose function the command names; NULL: none */
    bool                repeatable;     /* repeating it does no harm: it only reads, or carries a
                                           number by which the function recognises a repetition */
    weir_buf            command;        /* RESP, whole; the caller's */
    redisReply         *reply;          /* out: never of type ERROR; weir__call_reset() frees it */
    weir_error          err;            /* out: WEIR_OK when there is a reply */
    struct redis_node  *node;           /* out: the server that replied, and ... */
    uint64_t            connection;     /* ... over which connection */
    weir_durability     durability;     /* out: what that server does before it replies */
    bool                pinned;         /* in: send it over that connection, once, or fail */
    /* the link's own */
    struct redis_call  *next;
    uint64_t            number;         /* in the order in which they were sent */
    int64_t             until_ms, again_ms;
    int                 state, tries;
    bool                maybe;          /* it was sent, and its answer was lost: perhaps done */
    bool                loading;        /* its library goes before it */
    int                 before;         /* answers to come before its own */
    uint64_t            end;            /* where its bytes end among the bytes of the connection */
    struct redis_node  *asked;          /* the node that needs ASKING first */
} redis_call;

/* Append to a command: "*3\r\n" for the number of arguments, then each of them. */
void weir__resp_array(weir_buf *b, size_t n);
void weir__resp_bytes(weir_buf *b, const void *data, size_t len);
void weir__resp_text(weir_buf *b, const char *text);
void weir__resp_parts(weir_buf *b, const void *first, size_t first_len, const void *data,
                      size_t len);                                      /* both as one */
/* A count that is not known yet: where it is, and then what it is. */
size_t weir__resp_room(weir_buf *b);
void   weir__resp_count(weir_buf *b, size_t at, size_t n);
void weir__resp_int(weir_buf *b, int64_t n);

/* Free the reply and empty the command; what was allocated for it is kept. {0} is fine. */
void weir__call_reset(redis_call *c);
void weir__call_fini(redis_call *c);

/* The slot of a key: CRC16 of what is between its first braces, or of all of it. */
uint32_t weir__redis_slot(const char *key, size_t len);

/* ---- the link ---- */

typedef struct redis_link redis_link;

/* Connects, and returns the error of the first try (wrong password: WEIR_EINVAL with Redis's words;
 * nobody there: WEIR_EUNAVAIL with the address); a cluster or sentinels that do answer have
 * url->timeout_ms to have primaries. Refuses, with the remedy and WEIR_EINVAL: a Redis older than
 * 7.0; a maxmemory-policy other than noeviction unless url->allow_eviction; a replica; url.way not
 * cluster though the server is in cluster mode, and the other way round; a server that does not
 * reach url->durability. Servers that it connects to later are held to the same. *url is copied. */
weir_code weir__link_open(redis_link **out, const redis_url *url, weir_error *err);
/* The same, but it connects for the first call, which waits as if a connection had been lost. */
weir_code weir__link_create(redis_link **out, const redis_url *url, weir_error *err);
void      weir__link_close(redis_link *l);

/* Send without waiting. Calls for one slot are carried out in the order in which they were sent,
 * also if they are repeated. One exception: if the server refuses a call (LOADING, say) and accepts
 * the next, which was under way already, the next is first. The call must stay until it was waited
 * for. Nothing happens but inside these functions. */
void weir__link_send(redis_link *l, redis_call *c);

/* Until c has its reply or its error. */
void weir__link_wait(redis_link *l, redis_call *c);

/* Send all of them, then wait for all of them. */
void weir__link_run(redis_link *l, redis_call *const *calls, size_t n);

/* Run one command that may be repeated ("HSCAN", key, cursor ...; HSETNX) on the node of a slot.
 * NULL with *err set; freeReplyObject() what comes. */
redisReply *weir__link_ask(redis_link *l, uint32_t slot, weir_error *err, int argc,
                           const char *const *argv, const size_t *argv_len);

/* ---- the subscriber ---- */

/* A thread with connections of its own that receives published messages. In a cluster, and for
 * channels marked `sharded`, it uses SSUBSCRIBE at the node that has the slot, and follows when
 * that moves. After 10 s of silence on a connection the subscriber sends PING, and connects again
 * if no answer comes within the timeout. */
typedef struct redis_subscriber redis_subscriber;

typedef struct redis_channel {
    const char *name;                   /* borrowed until weir__subscriber_close() */
    bool        sharded;                /* published with SPUBLISH */
} redis_channel;

/* Both are called on the subscriber's thread. `lost`: messages of this channel may have been
 * missed; it is subscribed (again) now. Called once for each channel at the start, too. */
typedef void redis_message_fn(void *ctx, size_t channel, const char *message, size_t len);
typedef void redis_lost_fn(void *ctx, size_t channel);

/* Waits until it is subscribed, at most url->timeout_ms. */
weir_code weir__subscriber_open(redis_subscriber **out, const redis_url *url,
                                const redis_channel *channels, size_t n,
                                redis_message_fn *on_message, redis_lost_fn *lost, void *ctx,
                                weir_error *err);
/* No function is being called afterwards; NULL is fine. */
void weir__subscriber_close(redis_subscriber *e);

#endif
