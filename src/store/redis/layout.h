/* layout.h - how jobs are laid out in Redis, as far as C is concerned: a script that carries out
 * steps. There are two, native (lua/native) and kue (lua/kue): same steps, same answers.
 *
 * The life cycle is decided in C, by core/job.c, as in every store. A script only moves records
 * about: it takes, it completes (which need no thinking), and it puts a new record in the place of
 * an old one, if that is still what C saw. So a failure, an update or a TICK reads, decides, and
 * puts; when somebody else was quicker, it reads again.
 *
 * ---- the call ----
 *
 *   EVALSHA sha n KEYS... ARGV...      KEYS: every key the script may touch (native); for kue just
 *                                      one, "PREFIX:ids": its keys depend on types and ids
 *   ARGV[1]  now in ms, or "" for the server's clock (TIME)
 *   ARGV[2]  the caller's mark, for `origin` and repetitions: 16 hex digits
 *   ARGV[3]  number of the call, "" if it only reads. Calls of one caller alternate between two
 *            lanes (number % 2). When a lane's last number is this one, nothing is done, and the
 *            answer is that of last time; of jobs that a take gave, as they are now, if they are
 *            still active with that delivery. When it is a later one, nothing is done at all: the
 *            call has been under way too long, and nobody waits for its answer
 *   ARGV[4]  prefix of the keys ("{weir:0}"; kue "q"), ARGV[5] partitions, ARGV[6] this partition
 *   then the steps, each: its letter, the number of its arguments, its arguments
 *
 *   answer   [now, message or "", answer of step 1, answer of step 2, ...]
 *
 * `message` is what was published to the other processes on the channel that
 * redis_layout names, if anything happened: MessagePack, one flat array of
 *   number (1 more than that of the last message), now, origin, due (ms; 0: none),
 *   then for each event: kind, state, type, attempts, progress, delivery, text or false, id
 * A run of jobs whose ids follow each other may be one event with kind + REDIS_RUN (its id is the
 * first), followed by count, step and six zeros.
 * `due`: something that was done must be looked at by a TICK at that time, INT64_MIN as -1 (at
 * once). A message is also published when only `due` is set.
 *
 * ---- a record ----
 *
 * A job without its id and its data: REDIS_TIMES and REDIS_NUMBERS, big-endian, 120 bytes; its
 * type; then as MessagePack unique, search_keys, result, error, progress_data, worker (false: not
 * there).
 * Native: then its data, if it is short; where an answer or a step has `data` beside it is "" then.
 * The script compares the old record with what is stored now (kue: with what it makes of the hash).
 *
 * ---- the steps ----
 *
 *  A add      per job: type, rank, record, data, extra     -> [first id] if all are new and
 *             inactive: ids follow each other (+ partitions); else -> [id, state, existed] for each
 *             `rank`: 8 bytes, see below. The record comes without its first three numbers,
 *             REDIS_TIMES: they are `now`, and the script's to put before it. `extra`: "" or
 *             MessagePack [delay, run_at, deadline, unique or false, words or false]: then state
 *             and promote_at are the script's to decide (weir__job_init()), and a taken unique
 *             key answers with its holder.
 *             Type settings may say `search`: then jobs without words answer "words" instead,
 *             nothing is done of this step and those behind it (they have no answers), and the
 *             caller sends words along.
 *  a once     key, number (20 digits), jobs in all, then as A  -> as A; when that call is
 *             remembered what was answered then; or "NUMBER JOBS": another one of the key is, so
 *             this one is refused (weir__token_known())
 *  T take     n, lease, worker, type ...                    -> [id, record, data, id, record ...]
 *  t          the same, but only if the step before worked  -> [] otherwise
 *  D done     id, delivery, result, has result              -> state (0: gone), or -1: stale
 *  R release  id, delivery                                  -> state, or -1: stale
 *  G get      with data ("1", "0"), id ...                  -> [record, data] for each; of one that
 *             is not there [number of the last message]: its end was told in one of those
 *  P put      id, old record, new record, data, has data, failed, line, words, events
 *             -> 1, 0 (changed meanwhile), -holder of its unique key, or 2 (kue: it is to be
 *             delayed, but one of Kue's workers is just taking it).
 *             New record "": remove. `failed`: add that to the type's failures. `line`: "" or a
 *             log line. `words`: see below. `events`: MessagePack, flat, as in the message.
 *             Never makes a job active; one that was and is not any more loses its lease and ttl.
 *  N renew    per lease: id, delivery, ms                   -> [1 or 0 ...]
 *  S progress id, delivery, percent, data, has data         -> 1, or 0: stale
 *  L log      id, delivery ("0": any), line, words          -> 1, 0: stale, -1: not there
 *  E erase    id                                            -> 1, or 0: not there. Event remove
 *  C configure type, paused ("", "0", "1"), settings ("" or MessagePack)    -> 1
 *  K due      limit, sort (1..4)                            -> [sort, id, record, id, record ...]
 *             The first sort from there on of which something is due, at most `limit` of it: 1
 *             leases over (by id), 2 ttl over (by id), 3 waiting and due (by time, id). When there
 *             is none: retention is carried out (see TICK 4 and 5), -> [4, removed, next_at]
 *             (next_at -1: now; "": nothing)
 *  I list     state, type or "", descending, rank, id (0: from the start), limit, data ("1", "0")
 *             -> [id, record, data ...] in the order of weir_query
 *  F find     state or 0, type or "", descending, id, limit, with data, word ...   (the same, by
 *             id; a word ending in "*" is the start of one)
 *  O logs     id, after, limit                              -> -1, or [n, at, text ...]
 *  Z stats                                                  -> last id, then for each type:
 *             [name, type record, six counts, oldest_at], name "*" for the defaults
 *  M import   keep id ("1"), id, record, data, words, line ...  -> [code, id, state]: 0 put in, 1
 *             was there already (same type and created_at; its state now), 2 id is another job's, 3
 *             unique key is taken (by that id). A line: "NUMBER AT TEXT"; their numbers have no
 *             gap, the last is the record's `lines`. `words`: "" or [those of the data, those of
 *             error and log]. Event enqueue if inactive
 *  V verify   mend, id ...                                  -> [line ...]: is all that is derived
 *             from these jobs as it should be?
 *  W          mend, number of a key in KEYS, member ...     -> [line ...]: do these members (or
 *             fields) belong there? (C walks the keys with HSCAN and ZSCAN.)
 *  X heard    per job id, type or ""                       -> 0. Kue only: its processes have ended
 *             or removed these jobs
 *
 * `words`: "" or MessagePack array of the words (lower case) by which a job that is searched is to
 * be found: those of its data with A and P with data, those of the line with L and P.
 *
 * `rank`: an int64 r as 8 bytes, big-endian, of r + 2^52, so that bytes compare as numbers do. */
#ifndef WEIR_STORE_REDIS_LAYOUT_H
#define WEIR_STORE_REDIS_LAYOUT_H

#include "base/buf.h"
#include "store/redis/link.h"

/* The numbers at the head of a record: how many bytes, and of what. Lua counts from 1. */
#define REDIS_TIMES(X)      X(7, j->created_at) X(7, j->promote_at) X(7, j->updated_at)
#define REDIS_NUMBERS(X)                                                                          \
    X(1, j->state)              /*  22 */                                                         \
    X(1, j->progress)           /*  23 */                                                         \
    X(4, j->attempts)           /*  24 */                                                         \
    X(4, j->delivery)           /*  28 */                                                         \
    X(4, j->lost)               /*  32 */                                                         \
    X(4, lines)                 /*  36: log lines ever; the script counts them */                 \
    X(7, j->started_at)         /*  40 */                                                         \
    X(7, j->failed_at)          /*  47 */                                                         \
    X(7, j->finished_at)        /*  54 */                                                         \
    X(7, j->duration_ms)        /*  61 */                                                         \
    X(1, flags)                 /*  68: 1 remove_on_complete, 2 search, 4 has a unique key */     \
    X(1, j->backoff.kind)       /*  69 */                                                         \
    X(1, j->backoff.jitter_pct) /*  70 */                                                         \
    X(2, fixed_len)             /*  71: bytes of type, unique key and search keys */              \
    X(1, type_len)              /*  73 */                                                         \
    X(4, j->priority)           /*  74 */                                                         \
    X(4, j->max_attempts)       /*  78 */                                                         \
    X(4, j->max_lost)           /*  82 */                                                         \
    X(7, j->backoff.delay_ms)   /*  86 */                                                         \
    X(7, j->backoff.max_ms)     /*  93 */                                                         \
    X(7, j->delay_ms)           /* 100 */                                                         \
    X(7, j->ttl_ms)             /* 107 */                                                         \
    X(7, j->deadline_at)        /* 114 */

enum { REDIS_SHORT_DATA = 1024, REDIS_RUN = 32 };

/* A type's record: [paused, own settings (0, 1), keep_complete age, count, keep_failed age, count,
 * search, completed, failed, work_ms, last_taken_at]; settings in C are its elements 3 to 7. */

/* A key that CHECK walks with HSCAN or ZSCAN, giving its fields or members to V or W. */
typedef struct redis_walk {
    const char *key;                    /* behind the prefix */
    bool        zset;
    int         number;                 /* 0: to V; else to W, as this key */
} redis_walk;

/* The script is there twice: `add` is refused when Redis is out of memory, `rest` is not, so that
 * workers go on and make room. */
typedef struct redis_layout {
    redis_script       add, rest;
    const char *const *keys;            /* KEYS of a partition, behind its prefix; NULL ends */
    const redis_walk  *walks;           /* NULL key at the end */
    bool               data_in_record;  /* if it has at most REDIS_SHORT_DATA bytes */
    const char        *meta;            /* the hash that counts messages, behind the prefix */
    const char        *channel;         /* of messages, behind the prefix: ":events" */
    bool               sharded;         /* published with SPUBLISH */
    /* kue: the channel of Kue's own messages, behind the prefix, and how to read one: false if it
     * is weir's own or nothing to tell of. The event's strings are in `strings`. */
    const char        *foreign;
    /* kue: on this channel nothing is told. Who listens to the foreign one and not to this is not
     * weir: when nobody does, the script need not publish there. Whoever listens to both begins
     * with the foreign one. */
    const char        *ears;
    bool (*hear)(const char *message, size_t len, weir_event *out, weir_buf *strings);
} redis_layout;

#define REDIS_ADD_FLAGS  "#!lua\n"
#define REDIS_REST_FLAGS "#!lua flags=allow-oom\n"

extern redis_layout weir__layout_native, weir__layout_kue, weir__layout_vertx;

#endif
