/* layout.h - how jobs are laid out in Redis, as far as C is concerned: a function that carries out
 * steps. There are two, native (layout/native) and kue (layout/kue): same steps, same answers. They
 * share layout/common, which calls functions that each has.
 *
 * The life cycle is decided in C, by core/job.c, as in every store. A function only moves records:
 * it takes, it completes (without decisions), and it replaces an old record by a new one, if the
 * old one is still as C read it. So a failure, an update or a TICK reads, decides, and puts; when
 * somebody else was quicker, it reads again.
 *
 * ---- the call ----
 *
 *   FCALL function n KEYS... ARGV...   The function does not look at KEYS: its keys follow from the
 *                                      prefix. A call names all of them, so that a cluster does
 *                                      not run a call while some have moved to another node; who is
 *                                      no cluster, just of the first: each one costs time
 *   ARGV[1]  now in ms, or "" for the server's clock (TIME)
 *   ARGV[2]  the caller's mark, for `origin` and repetitions: 16 hex digits
 *   ARGV[3]  number of the call, "" if it only reads. Calls of one caller alternate between two
 *            lanes (number % 2). When a lane's last number is this one, nothing is done, and the
 *            answer is that of last time; of jobs that a take gave, as they are now, if they are
 *            still active with that delivery. When it is a later one, nothing is done at all: the
 *            call has been under way too long, and nobody waits for its answer
 *   ARGV[4]  prefix of the keys ("{weir:0}"; kue "q"), ARGV[5] partitions, ARGV[6] this partition
 *   ARGV[7]  the highest id of a job in this partition that the caller knows, 0: none. Native: new
 *            jobs get higher ones. So when Redis is emptied, ids do not begin again while programs
 *            go on, and what a worker reports of a job that is gone is not taken for another's
 *   then the steps, each: its letter, the number of its arguments, its arguments
 *
 *   answer   [now, message or "", answer of step 1, answer of step 2, ...]
 *
 * `message` is what was published to the other processes on the channel that
 * redis_layout names, if anything happened: MessagePack, an array of
 *   number (1 more than that of the last message; of the first: than the time in microseconds),
 *   now, origin, due (ms; 0: none)
 * and behind it, up to the end of the message, for each event
 *   kind, state, type, attempts, progress, delivery, text or false, id
 * A run of jobs whose ids follow each other may be one event with kind + REDIS_RUN_OF (its id is
 * the first), followed by count and step. Jobs that differ in nothing but text and id may be one
 * with kind + REDIS_LIST_OF, which has a count in the place of its id, and then for each of them id
 * and text or false.
 * `due`: something that was done must be looked at by a TICK at that time, INT64_MIN as -1 (at
 * once). A message is also published when only `due` is set.
 *
 * ---- a record ----
 *
 * A job without its id is two strings, so that what never changes is not written again and again.
 * The spec is its numbers, big-endian, its type, as MessagePack unique, search_keys and values
 * (false: not there; values are an array of names and texts, see core/values.h), and its data; the
 * run is its numbers, its type, and as MessagePack result, error, progress_data, worker and, if it
 * has one, its history. A job that waits and was never touched has no run, or "".
 * In answers that are asked for data the spec always ends with it. Where it is stored, and in
 * steps, long data is apart (native; REDIS_APART), or all data is (kue); then `data` beside it.
 * The function compares the old record with what is stored now (kue: with what it makes of the
 * hash). Ids in answers with records are 8 bytes, big-endian.
 * In answers to G, I and F that are asked for data the run of an active job ends with one more
 * number as MessagePack: when its lease ends; 0 or none: there is no lease (kue: it is Kue's). It
 * is stored nowhere but in the set of leases. A take's lease ends at started_at + lease.
 *
 * ---- the steps ----
 *
 *  A add      in groups: type, rank, count, flags, spec (kue: and then the data of each), or if it
 *             has more than one job, native: piece ..., REDIS_PIECE specs in each but the last; or
 *             of one job type, rank, "0", flags, spec, data, extra
 *                                                           -> [first id] if all are new and
 *             inactive: ids follow each other (+ partitions); else -> [id, state, existed] for each
 *             `rank`: 8 bytes, see below. The spec of one job, and kue's, comes without its first
 *             number: it is `now`, and the function's to put before it. Others have it anyway:
 *             it stays if it is at most REDIS_STAMP_MS before `now`, as making a long string anew
 *             costs more than keeping it; else it becomes `now`, too.
 *             `extra`: "" or MessagePack [delay, run_at,
 *             deadline, unique or false, words or false]: then state and promote_at are the
 *             function's to decide (weir__job_init()), and a taken unique key answers with its
 *             holder.
 *             Type settings may say `search`: then jobs without words answer "words" instead,
 *             nothing is done of this step and those behind it (they have no answers), and the
 *             caller sends words along.
 *  a once     key, number (20 digits), "JOBS DIGEST" (jobs in all), then as A  -> as A; when that
 *             call is remembered what was answered then; or "NUMBER JOBS DIGEST": another one of
 *             the key is, so this one is refused (weir__token_known())
 *  T take     lease, types, type ..., then for each that takes: worker, n, place
 *             n below zero: -n jobs, and its worker is busy (weir_op_take)
 *             -> [] or [how many each got (2 bytes each; REDIS_PASSED more if it passed over a
 *             suspect), then the jobs in that order: id (8 bytes), run, spec; or of jobs whose ids
 *             follow each other and that have the same run: id of the first, the run up to the
 *             worker, [spec ...] or [how many, the places to skip in the first piece, piece ...]]
 *  t          the same, but each only if the end at that place (from 1 on) in the step before, D or
 *             P, worked
 *  D done     for all jobs, in one argument: id (8 bytes), delivery (4), how many (2), "1" or "0";
 *             then the results of those with "1". The ids of several follow each other, and they
 *             end alike
 *             -> state (0: gone), or -1: stale; one for all, or one for each
 *  G get      with data ("1", "0"), id ...                  -> [run, spec] for each; of one that
 *             is not there [number of the last message]: its last event was in one of those
 *  P put      id, old run, old spec, run, spec, data, has data, failed, line, words, events, lease,
 *             takes ("1", "0")
 *             -> 1, 0 (changed meanwhile), -holder of its unique key, 2 (kue: it waits, and is to
 *             have another state, but one of Kue's workers is just taking it), or 3 (it was to be
 *             taken, and its type is paused).
 *             `failed`: add that to the type's failures. `line`: "" or a log line, which the new
 *             run counts. `words`: see below. `events`: as in the message.
 *             `lease`: ms from its start, of a job that becomes active. One that was active and is
 *             not any more loses its lease and ttl.
 *  N renew    per lease: id, delivery, ms                   -> [1 or 0 ...]
 *  S progress id, delivery, percent, data, has data         -> 1, or 0: stale
 *  L log      id, delivery ("0": any), line, words          -> 1, 0: stale, -1: not there
 *  E erase    id                                            -> 1, 0: not there, or 2 as for P
 *             (vertx). Event remove
 *  C configure type, paused ("", "0", "1"), settings ("" or MessagePack)    -> 1
 *  K due      limit, sort (1..4)                            -> [sort, id, run, spec, id ...]
 *             The first sort from there on of which something is due, at most `limit` of it: 1
 *             leases over (by id), 2 ttl over (by id), 3 waiting and due (by time, id). When there
 *             is none: retention is carried out (see TICK 4 and 5), -> [4, removed, next_at, steps
 *             of the clock so far, 1 if a schedule is due] (next_at -1: now; "": nothing; it leaves
 *             out schedules that are due). Kue: behind these may be a list of new jobs whose words
 *             are wanted, [last id that was looked at, id, data, id ...]
 *  Y step     ms, count                                     -> 0. Redis's clock was set by that
 *             much. Moves leases and ttls with it, if N steps are known so far: the last
 *             answer to K says how many
 *  H schedule name, version seen ("*": any), due_at or "", record ("": remove)
 *                                                           -> version, 0: it was changed, -1: not
 *             there, -2: it was removed. All schedules are in the first partition
 *  h schedules name or "", "1": those that are due, after, limit
 *                                                           -> [name, version, due_at or "", record
 *             ...]
 *  U trend    most types in a slot, then per record: "STEP SLOT " ("1m 28333333 "), when it is
 *             removed (no other step or slot has that time), type, record
 *                                                           -> 1. Joined with the record that is
 *             there. All trends are in the first partition
 *  u trends   "1": of one type, type, then per slot: "STEP SLOT ", when it is removed
 *                                                           -> [which slot (from 1 on), type,
 *             record ...]
 *  I list     state, type or "", descending, rank, id (0: from the start), limit, data ("1", "0"),
 *             priority or "", look, takes ("1", "0")        -> [id, run, spec ...] in the order of
 *             weir_query. `takes`: none of a type that is paused. If it stops because `look` jobs
 *             were looked at for their priority, it says last where that was: [..., rank, id].
 *             look 0: the list is in order of priority, and begins where it is wanted, or any is
 *  F find     state or 0, type or "", descending, id, limit, with data, priority or "", look,
 *             word ...   (the same, by id; a word ending in "*" is the start of one)
 *  O logs     id, after, limit                              -> -1, or [n, at, text ...]
 *  Z stats                                                  -> last id, then for each type:
 *             [name, type record, six counts, oldest_at], name "*" for the defaults
 *  M import   keep id ("1"), id, run, spec, data, words, line ...  -> [code, id, state]: 0 put in,
 *             1 was there already (same type and created_at; its state now), 2 id is another job's,
 *             3 unique key is taken (by that id). A line: "NUMBER AT TEXT"; their numbers have no
 *             gap, the last is the record's `lines`. `words`: "" or [those of the data, those of
 *             error and log]. Event enqueue if inactive
 *  V verify   mend, field ...                               -> [jobs, line ...]: is all that is
 *             derived from the jobs in these fields as it should be? How many jobs that were
 *  W          mend, number of a key, member ...             -> [line ...]: do these members (or
 *             fields) belong there? (C walks the keys with HSCAN and ZSCAN.) A number at the end
 *             of either answer: the step has looked at that many of them; ask it for the
 *             others
 *  Q          last id that was looked at, then per job id, words           -> 0. Kue only: they are
 *             searched from now on
 *  X foreign  per job id, type or ""                       -> 0. Kue only: its processes have ended
 *             or removed these jobs
 *
 * `words`: "" or MessagePack array of the words (lower case) by which a job that is searched is to
 * be found: those of its data with A and P with data, those of the line with L and P.
 *
 * `rank`: an int64 r as 8 bytes, big-endian, of r + 2^52, so that bytes compare as numbers do. */
#ifndef WEIR_STORE_REDIS_LAYOUT_H
#define WEIR_STORE_REDIS_LAYOUT_H

#include "base/buf.h"
#include "core/job_fields.h"
#include "store/redis/link/link.h"

/* Where the numbers of a job are in its spec and run: core/job_fields.h. Beside them are
 *
 *   X(name, part, at, bytes)
 *
 * Lua counts bytes from 1. created_at is the first number of a spec, which the function puts before
 * a new one. promote_at 0 is created_at. lines: of its log, ever. A run ends with flags and
 * type_len, too, so that the end of a job need not read its spec. */
#define REDIS_BESIDE(X)                                                                           \
    X(flags,    SPEC,  7, 1)                                                                      \
    X(type_len, SPEC, 10, 1)                                                                      \
    X(lines,    RUN,  14, 4)                                                                      \
    X(flags,    RUN,  REDIS_RUN_HEAD - 2, 1)                                                      \
    X(type_len, RUN,  REDIS_RUN_HEAD - 1, 1)

/* Bytes of all numbers of a part; its type follows. */
enum { REDIS_IN_NONE, REDIS_IN_FLAG, REDIS_IN_SPEC, REDIS_IN_RUN };
#define REDIS__SPEC(name, part, at, bytes) +(REDIS_IN_##part == REDIS_IN_SPEC ? bytes : 0)
#define REDIS__RUN(name, part, at, bytes)  +(REDIS_IN_##part == REDIS_IN_RUN ? bytes : 0)
#define REDIS__JOB_SPEC(m, name, k, j, s, l, part, at, bytes) REDIS__SPEC(name, part, at, bytes)
#define REDIS__JOB_RUN(m, name, k, j, s, l, part, at, bytes)  REDIS__RUN(name, part, at, bytes)
enum {
    REDIS_SPEC_HEAD = 0 REDIS_BESIDE(REDIS__SPEC) WEIR_JOB_NUMBERS(REDIS__JOB_SPEC),
    REDIS_RUN_HEAD = 0 REDIS_BESIDE(REDIS__RUN) WEIR_JOB_NUMBERS(REDIS__JOB_RUN)
};

/* Flags of a job. APART: its data is kept apart. */
#define REDIS_FLAGS(X)                                                                            \
    X(REMOVES, 1) X(SEARCHED, 2) X(HAS_KEY, 4) X(HAS_TTL, 8) X(HAS_DEADLINE, 16) X(APART, 32)
enum {
#define X(name, bit) REDIS_##name = bit,
    REDIS_FLAGS(X)
#undef X
};

/* Data of at most this many bytes is kept in the spec. Kinds of events: see the message. */
enum { REDIS_SHORT_DATA = 1024, REDIS_RUN_OF = 32, REDIS_LIST_OF = 64, REDIS_STAMP_MS = 50 };

/* The native layout has the version of records in its META. */
#define REDIS__IS_TEXT(m, name, k, j, s, l, part, ...) +(REDIS_IN_##part != REDIS_IN_NONE)
_Static_assert((int)REDIS_SPEC_HEAD + (int)REDIS_RUN_HEAD == WEIR__REDIS_BYTES &&
                   0 WEIR_JOB_TEXTS(REDIS__IS_TEXT) WEIR_JOB_BYTES(REDIS__IS_TEXT) ==
                       WEIR__REDIS_TEXTS,
               "records have changed: raise WEIR__REDIS_VERSION (core/job_fields.h), too");

/* Specs in a piece: how many it has (1 byte), the length of each (2 bytes), the specs. */
enum { REDIS_PIECE = 16 };

/* Calls: the place in ARGV of the first step; bytes of an end in a step D; INT64_MIN as `due`;
 * the bit of a take that passed over a suspect. The number added to a rank. */
enum { REDIS_FIRST_STEP = 8, REDIS_END = 15, REDIS_AT_ONCE = -1, REDIS_PASSED = 1 << 15 };
/* When Redis's clock was set, ms: what each lease has left, and how exactly a step is known. */
enum { REDIS_GRACE_MS = 15000, REDIS_CLOCK_SLACK_MS = 2000 };
#define REDIS_ZERO_RANK (INT64_C(1) << 52)

/* A type's record: X(name, bytes where native stores it). COMPLETE_AGE to SEARCH are its settings,
 * the native function keeps what follows TAKEN to itself. */
#define REDIS_TYPE_RECORD(X)                                                                      \
    X(PAUSED, 1) X(HAS_SETTINGS, 1)                                                               \
    X(COMPLETE_AGE, 7) X(COMPLETE_COUNT, 7) X(FAILED_AGE, 7) X(FAILED_COUNT, 7) X(SEARCH, 1)      \
    X(COMPLETED, 7) X(FAILED, 7) X(WORK, 7) X(TAKEN, 7)                                           \
    X(SPANS, 7) X(GRANTED, 7) X(DONE, 7)
enum {
    REDIS_T_NONE,                       /* Lua counts from 1 */
#define X(name, bytes) REDIS_T_##name,
    REDIS_TYPE_RECORD(X)
#undef X
    REDIS_T_END,
    REDIS_T_ANSWERED = REDIS_T_TAKEN    /* the last one that answers carry */
};

/* The keys of the native layout, behind the prefix; Lua has their numbers, from 1 on. A row is
 *
 *   X(name, key, sort, walk)
 *
 *   sort   HASH, ZSET, or STATE: the sorted set of a state
 *   walk   CHECK gives its fields to step V, or its fields or members to step W; LAST: to step W
 *          when it has been through all others, which are counted there; NONE: it does not look */
#define REDIS_NATIVE_KEYS(X)                                                                      \
    X(JOBS, ":jobs", HASH, V)               X(RUNS, ":runs", HASH, W)                             \
    X(DATA, ":data", HASH, W)               X(LOG, ":log", HASH, W)                               \
    X(INACTIVE, ":inactive", STATE, W)      X(DELAYED, ":delayed", STATE, W)                      \
    X(ACTIVE, ":active", STATE, W)          X(COMPLETE, ":complete", STATE, W)                    \
    X(FAILED, ":failed", STATE, W)          X(CANCELLED, ":cancelled", STATE, W)                  \
    X(LEASE, ":lease", ZSET, W)             X(TTL, ":ttl", ZSET, W)                               \
    X(DUE, ":due", ZSET, W)                 X(GRANTED, ":granted", ZSET, W)                       \
    X(UNIQUE, ":unique", HASH, W)           X(TYPES, ":types", HASH, LAST)                        \
    X(IDS, ":ids", ZSET, W)                 X(BLOCKS, ":blocks", HASH, W)                         \
    X(WORDS, ":words", ZSET, W)             X(FOUND, ":found", HASH, W)                           \
    X(META, ":meta", HASH, NONE)            X(TOKENS, ":tokens", HASH, NONE)                      \
    X(TOKENS_AT, ":tokens:at", ZSET, NONE)  X(SCHEDULES, ":schedules", HASH, NONE)                \
    X(SCHEDULES_DUE, ":schedules:due", ZSET, NONE)                                                \
    X(SCHEDULES_BY_NAME, ":schedules:names", ZSET, NONE)                                          \
    X(TRENDS, ":trends", HASH, NONE)        X(TRENDS_AT, ":trends:at", ZSET, NONE)
enum {
    REDIS_KEY_NONE,
#define X(name, key, sort, walk) REDIS_KEY_##name,
    REDIS_NATIVE_KEYS(X)
#undef X
};
_Static_assert(REDIS_KEY_TRENDS == REDIS_KEY_SCHEDULES + 3, "layout.trend_key() counts on it");
_Static_assert(REDIS_KEY_CANCELLED - REDIS_KEY_INACTIVE ==
                   WEIR_STATE_CANCELLED - WEIR_STATE_INACTIVE &&
                   REDIS_KEY_CANCELLED - WEIR_STATE_CANCELLED + WEIR_STATE_COUNT == REDIS_KEY_LEASE,
               "the sets of states must be in the order of the states");

/* The walk of kue over the types: layout_kue.c has the others. */
enum { REDIS_KUE_TYPES_WALK = 13 };

/* A key that CHECK walks with HSCAN or ZSCAN, giving its fields or members to V or W. */
typedef struct redis_walk {
    const char *key;                    /* behind the prefix */
    bool        zset;
    int         number;                 /* 0: to V; else to W, as this key */
} redis_walk;

/* The function is there under two names: NAME_add is refused when Redis is out of memory, NAME_rest
 * is not, so that workers go on and make room. */
typedef struct redis_layout {
    redis_library      library;
    const char *const *keys;            /* of a partition, behind its prefix; NULL ends */
    const redis_walk  *walks;           /* NULL key at the end */
    bool               data_in_record;  /* if it has at most REDIS_SHORT_DATA bytes; and specs of
                                           a step A are in pieces */
    bool               keeps_for_ever;  /* settings that are not given: see weir_keep */
    const char        *meta;            /* the hash that numbers messages, behind the prefix */
    const char        *channel;         /* of messages, behind the prefix: ":events" */
    bool               sharded;         /* published with SPUBLISH */
    /* kue: the channel of Kue's own messages, behind the prefix, and how to read one: false if it
     * is weir's own or of no event. The event's strings are in `strings`. */
    const char        *foreign;
    /* kue: a channel without messages, to which every weir subscribes, after `foreign`. If both
     * have equally many subscribers, all of them are weir, and the script does not publish on the
     * foreign one. */
    const char        *presence_channel;
    bool (*read_foreign)(const char *message, size_t len, weir_event *out, weir_buf *strings);
} redis_layout;

extern redis_layout weir__layout_native, weir__layout_kue, weir__layout_vertx;

#endif
