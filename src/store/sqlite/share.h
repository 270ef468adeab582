/* share.h - one SQLite file, many processes: the first that opens it owns it, the others work
 * through the owner's socket, and when it goes, one of them takes its place.
 *
 *     serve.c      the owner's side: runs the operations of other processes in the batches of its
 *                  own queue, so that one commit spans processes, and sends them the events
 *     peer.c       the other side: a batch is one frame there and one back
 *     watch.c      the other side: receives events (store/feed.h)
 *     exchange.c   the owner's side: passes on envelopes of processes (store/envelope.h)
 *     member.c     the other side, in the owner's process, too
 *     dial.c       the address of the socket, connecting
 *     permit.c     who may do so, and where the file can be
 *     take.c       becoming the owner, or finding who is
 *
 * When the owner is gone, its connections end and its lock is free. Every process that notices
 * tries the lock: one gets it and opens the file, the others connect to its socket. Batches that
 * were under way are sent again as far as that is safe (store/remote/attempt.h). */
#ifndef WEIR_STORE_SQLITE_SHARE_H
#define WEIR_STORE_SQLITE_SHARE_H

#include "store/sqlite/frame.h"
#include "store/sqlite/sq.h"

struct sockaddr_un;

enum {
    SQ_MAX_CONNECTIONS = 1000,          /* of one owner; two for each process that works */
    SQ_WELCOME_MS = 10 * 1000,          /* how long an owner may take to answer a HELLO */
    SQ_ANSWER_MS = 60 * 1000,           /* ... a REQUEST */
    SQ_SLOW_ANSWER_MS = 1800 * 1000     /* ... a call that reads all jobs */
};

/* ---- dial.c ---- */

/* The address of the socket beside `path`, also when that is long. `dir` is to be closed after its
 * use, unless it is -1. False: no way. */
bool weir__sq_address(const char *path, struct sockaddr_un *out, int *dir);

/* Connect to the owner of the file and be welcomed. -1: WEIR_EUNAVAIL (nobody is there, or stop_fd
 * is readable), WEIR_ETIMEOUT (no answer within wait_ms), WEIR_EREADONLY (another user's),
 * WEIR_EBUSY (the owner refuses), WEIR_EVERSION. */
int weir__sq_dial(const char *path, const sq_hello *hello, int stop_fd, int64_t wait_ms,
                  sq_welcome *out, weir_error *err);

/* ---- owner.c ---- */

/* WEIR_EBUSY: the owner has not answered a HELLO in time. */
weir_code weir__sq_silent(const char *path, weir_error *err);

/* ---- permit.c ---- */

/* May the process at the other end work through this one? And this one through it, for the file at
 * `path`? */
bool weir__sq_admits(int fd);
bool weir__sq_trusts(int fd, const char *path);

/* WEIR_EREADONLY: the owner is a process of another user: at the other end of fd, or behind the
 * socket (-1). */
weir_code weir__sq_foreign_owner(int fd, const char *path, weir_error *err);

/* Before the file is made or opened. WEIR_EINVAL: it is on a network file system. */
weir_code weir__sq_place_check(const char *path, weir_error *err);

/* ---- serve.c ---- */

/* Listen at the socket. Without one (a file system that has none) the store works, but for this
 * process alone: then *out is NULL. *env is borrowed until it is closed; *used is set when a
 * process connects. */
void weir__sq_serve(sq_server **out, const char *path, const weir_env *env,
                    weir_durability durability, atomic_bool *used);
/* Start its thread, unless it runs. Any thread. */
void weir__sq_serve_start(sq_server *v);
/* These were committed: send them to the connections that asked for them. */
void weir__sq_serve_events(sq_server *v, const weir_event *events, size_t n);
/* Processes that work through this one. Any thread. */
uint32_t weir__sq_serve_peers(const sq_server *v);
/* Answer what has come in, serve nobody any more, and remove the socket. The others stay connected:
 * they wait for the end of weir__sq_serve_end(), after the lock was released. */
void weir__sq_serve_leave(sq_server *v);
void weir__sq_serve_end(sq_server *v);

/* ---- exchange.c ---- */

typedef struct sq_exchange sq_exchange;

/* With a thread of its own. NULL: out of memory. */
sq_exchange *weir__sq_exchange_create(void);
/* A connection that was welcomed for envelopes: the exchange closes `fd`. False: it was not taken.
 * Any thread. `x` may be NULL. */
bool weir__sq_exchange_add(sq_exchange *x, int fd, const char *process);
void weir__sq_exchange_destroy(sq_exchange *x);     /* NULL is fine */

/* ---- member.c ---- */

/* weir_store_ops.join(), post() and leave(). *out is set before anything arrives. */
weir_code weir__sq_join(sq_member **out, const sq_store *s, const weir_member *m, weir_error *err);
weir_code weir__sq_post(sq_member *m, const weir_envelope *e, weir_error *err);
void      weir__sq_leave(sq_member *m);         /* NULL is fine */

/* ---- peer.c ---- */

/* Run n operations through the owner, or through this process, if it has become the owner. */
void weir__sq_peer_run(sq_store *s, weir_op **ops, size_t n);

/* Connect to the owner. WEIR_EUNAVAIL, WEIR_ETIMEOUT: try again. */
weir_code weir__sq_peer_connect(sq_store *s, weir_error *err);
bool      weir__sq_peer_connected(const sq_store *s);       /* no end was seen yet */
weir_code weir__sq_peer_create(sq_peer **out, weir_error *err);
void      weir__sq_peer_destroy(sq_peer *p);

/* ---- watch.c ---- */

/* Receive the owner's events of these kinds (again, when it does already), from now on. */
void weir__sq_watch(sq_store *s, uint32_t want);
void weir__sq_watch_stop(sq_store *s);
/* Until the events up to this place were delivered: weir__feed_until(). */
void weir__sq_watch_until(sq_store *s, const weir_place *place);

/* ---- take.c ---- */

/* Become the owner (s->peer is NULL then), or connect to it. */
weir_code weir__sq_find_owner(sq_store *s, weir_error *err);

#endif
