/* net.h - the connections behind a link or a subscriber: to one server, to the primaries of a
 * cluster, or to the primary that the sentinels name. One thread uses a net; it waits in
 * weir__net_turn() alone.
 *
 * A node is a server and, if `wanted`, a connection to it:
 *
 *   CLOSED -> CONNECTING -> (SECURING ->) HANDSHAKE -> READY    and back to CLOSED from everywhere
 *
 *   SECURING    the TLS handshake, with rediss (tls.c)
 *   HANDSHAKE   HELLO, AUTH, SELECT, INFO ... (handshake.c); an unsuitable server is disconnected
 *
 * The probe is one more connection, which only asks for the topology: which servers are primaries,
 * and of which slots (topology.c). */
#ifndef WEIR_STORE_REDIS_NET_H
#define WEIR_STORE_REDIS_NET_H

#include <netdb.h>
#include <openssl/ssl.h>
#include "base/clock.h"
#include "store/redis/link/link.h"

typedef struct redis_net redis_net;
typedef struct redis_node redis_node;

typedef enum redis_node_state {
    NODE_CLOSED, NODE_CONNECTING, NODE_SECURING, NODE_HANDSHAKE, NODE_READY
} redis_node_state;

enum {
    REDIS_PAUSE_MS     = 10,            /* before the first retry, doubled each time */
    REDIS_MAX_PAUSE_MS = 500,
    REDIS_MAX_KNOWN    = 1024,          /* servers of a cluster */
    REDIS_MAX_HANDSHAKE = 8             /* commands */
};

struct redis_node {
    redis_net        *net;
    redis_place       place;
    redis_node_state  state;
    bool              probe;
    bool              wanted;           /* connect it */
    bool              draining;         /* nothing new is sent; closed after the last answer */
    int               fd;
    SSL              *ssl;              /* NULL: no TLS */
    bool              tls_writes;       /* TLS waits until it can write */
    weir_error        tls_error;        /* of what TLS did last */
    uint64_t          connection;       /* its number among the nodes of the net */
    struct addrinfo  *addresses, *address;      /* of the host, and the one being tried */
    redisReader      *reader;
    size_t            fed;              /* bytes given to the reader since it was last empty */
    weir_buf          out;
    size_t            out_at;           /* bytes of it that were written */
    uint64_t          queued, written;  /* bytes, since it was connected */
    int64_t           read_ms;          /* of the last bytes; before: of the connection's start */
    int64_t           asked_ms;         /* since when an answer is awaited ... */
    int64_t           timeout_ms;       /* ... and the longest silence allowed; 0: none awaited */
    int64_t           try_ms;           /* when to connect again ... */
    int64_t           pause_ms;         /* ... and the pause after the next disconnect */
    weir_error        why;              /* of the last disconnect */

    /* the handshake */
    unsigned char     step[REDIS_MAX_HANDSHAKE];
    size_t            n_steps, at_step;
    long long         id, old_id;       /* of the connection, by its server; of the one before */
    char              run_id[41];       /* of the server's process */
    int               version;          /* 702: Redis 7.2 */
    bool              has_aof;          /* an append-only file */
    weir_durability   durability;       /* what it does before it replies to a write */
    bool              waits_aof;        /* WAITAOF waits until a write is on its disk */

    /* the link's: calls without an answer, in order */
    redis_call         *first, *last;
    size_t              n_once;         /* of those, not repeatable */
    int                 owed;           /* answers to come after the last of them, for nobody */
    weir_error          load_error;     /* a library was refused */
};

/* Callbacks of the user: a link or a subscriber. */
typedef struct redis_net_ops {
    void (*ready)(void *ctx, redis_node *n);
    void (*reply)(void *ctx, redis_node *n, redisReply *r);     /* r is the user's now */
    void (*lost)(void *ctx, redis_node *n);     /* disconnected after READY; see n->why */
    void (*found)(void *ctx);                   /* the topology was read again */
} redis_net_ops;

struct redis_net {
    redis_url            url;
    const redis_net_ops *ops;
    void                *ctx;
    SSL_CTX             *tls;           /* NULL: no TLS */
    int                  wake_fd;       /* poll()ed too, unless negative */
    redis_node         **node;
    size_t               n_nodes;
    uint64_t             n_connections; /* so far */
    struct pollfd       *poll;          /* room for the nodes, the probe and wake_fd */
    uint16_t            *owner;         /* cluster: of each slot; NO_OWNER */
    bool                 located;       /* the topology is known and not in doubt */
    bool                 known;         /* the topology was known at least once */
    bool                 disconnected;  /* a node was, since the last turn began */
    redis_node           probe;
    bool                 probing;       /* the probe is asking, or about to */
    bool                 polling;       /* ... though nothing is in doubt */
    size_t               candidate;     /* the server it asks, counted from the first of a round */
    size_t               good;          /* sentinel: the last that answered */
    int                  rounds;        /* in which no server knew */
    int64_t              probe_ms, probe_pause_ms, probed_ms;
};

/* ---- net.c ---- */

/* The pause before the next try, by the number of tries, or by the last pause (0: no pause yet). */
int64_t   weir__pause_ms(int tries);
int64_t   weir__pause_after(int64_t pause_ms);
weir_code weir__net_init(redis_net *net, const redis_url *url, const redis_net_ops *ops, void *ctx,
                         weir_error *err);
void      weir__net_fini(redis_net *net);       /* {0} is fine; calls nobody */

/* Connect to all primaries. A single server has one try. A cluster or sentinels that answer may
 * take url->timeout_ms to name primaries. Errors that waiting would not cure end it. */
weir_code weir__net_open(redis_net *net, weir_error *err);

/* The node at that place; NULL: there are too many, or no memory. */
redis_node *weir__net_node(redis_net *net, const redis_place *place);

/* Connect wanted nodes, read, write and call the user's functions, until something happened or
 * until_ms. Does not wait if a node was disconnected since the last turn began: the user says first
 * what it needs. */
void weir__net_turn(redis_net *net, int64_t until_ms);

/* ---- topology.c ---- */

/* The primary of a slot; NULL: unknown, and being asked for. */
redis_node *weir__net_owner(redis_net *net, uint32_t slot);
bool        weir__net_owns(const redis_net *net, const redis_node *n);  /* any slot */
/* Close connections to nodes that have no slot any more, and are not in use. */
void        weir__net_close_unowned(redis_net *net, bool (*is_used)(void *ctx, redis_node *n));
/* The topology is in doubt: ask for it. */
void        weir__net_rediscover(redis_net *net);
/* Sentinels may name another primary while the old one still answers, and writes to the old one are
 * lost: so the sentinels are asked from time to time. Returns when the next time is. */
int64_t     weir__net_poll_sentinels(redis_net *net);
/* Connect the probe to the next server that may have the topology, if it is time to. */
void        weir__net_probe(redis_net *net, int64_t now);
/* "3999 10.0.0.7:6381", what follows MOVED and ASK: the node, with its slot. NULL: nonsense. */
redis_node *weir__net_redirect(redis_net *net, const redis_node *from, const char *text,
                               uint32_t *slot);
void        weir__net_set_owner(redis_net *net, uint32_t slot, const redis_node *n);
/* The probe got an answer (WEIR_OK: a useful one), or was disconnected. */
weir_code   weir__probe_answer(redis_node *probe, const redisReply *r, weir_error *err);
void        weir__probe_failed(redis_net *net);

/* ---- node.c ---- */

void weir__node_init(redis_node *n, redis_net *net, const redis_place *place);
void weir__node_fini(redis_node *n);
void weir__node_connect(redis_node *n);
/* An answer must come: a silence longer than that disconnects the node. */
void weir__node_await(redis_node *n, int64_t timeout_ms);
int64_t weir__node_due(const redis_node *n);    /* when; INT64_MAX: no answer is awaited */
/* Room for that many bytes in n->out, or false: no memory. */
bool weir__node_room(redis_node *n, size_t len);
void weir__node_flush(redis_node *n);           /* write as much as goes */
void weir__node_io(redis_node *n, short events);
bool weir__node_alive(redis_node *n);           /* false: the server closed it; now disconnected */
void weir__node_disconnect(redis_node *n, weir_code code, const char *fmt, ...) WEIR_PRINTF(3, 4);
void weir__node_close(redis_node *n);           /* without calling the user */

/* "127.0.0.1:6379" or the path of a socket. */
enum { REDIS_PLACE_TEXT = 272 };
const char *weir__place_text(const redis_place *p, char text[REDIS_PLACE_TEXT]);

/* ---- tls.c ---- */

/* The TLS context of all connections of a net: CA, certificate, key of the URL. SSL_CTX_free(). */
weir_code weir__tls_create(SSL_CTX **out, const redis_url *url, weir_error *err);
/* The socket is connected: begin the handshake. False: no memory. */
bool      weir__tls_begin(redis_node *n);
/* Go on with it. True: it is over, and the server is who it should be. False: it goes on, or
 * n->tls_error says why it does not. */
bool      weir__tls_handshake(redis_node *n);
/* As recv() and send(): -1 with EAGAIN, or EPROTO, then n->tls_error says why. */
ssize_t   weir__tls_read(redis_node *n, void *to, size_t len, bool peek);
ssize_t   weir__tls_write(redis_node *n, const void *from, size_t len);

/* ---- handshake.c ---- */

void weir__handshake_begin(redis_node *n);
/* The answer to the next command of the handshake; the node is READY after the last. */
void weir__handshake_reply(redis_node *n, const redisReply *r);

/* ---- refuse.c ---- */

/* The meaning of an error of Redis. */
typedef enum redis_refusal {
    REFUSED,            /* for good: the code says why */
    REFUSED_WAIT,       /* try again later */
    REFUSED_ELSEWHERE,  /* the same, and ask for the topology */
    REFUSED_STALE,      /* the same, and the connection is of no use any more */
    REFUSED_MOVED, REFUSED_ASK, REFUSED_MISSING
} redis_refusal;

redis_refusal weir__refusal(const char *text, bool script, weir_code *code);
/* The text behind the first word. */
const char *weir__refusal_rest(const char *text);

#endif
