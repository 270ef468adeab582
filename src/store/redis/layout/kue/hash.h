/* hash.h - the fields of Kue's hash of a job that weir reads, in the order in which HMGET asks for
 * them: Lua's H_STATE and so on (see kue/2_record.lua). A row is
 *
 *   X(name, Kue, Vert.x Kue)
 *
 * Rows up to KUE_H_FEWEST are enough for most ends of a job, those up to KUE_H_FEW for all. */
#ifndef WEIR_STORE_REDIS_KUE_HASH_H
#define WEIR_STORE_REDIS_KUE_HASH_H

#define KUE_HASH(X)                                                                               \
    X(STATE,         "state",            "state")                                                 \
    X(TYPE,          "type",             "type")                                                  \
    X(PRIORITY,      "priority",         "priority")                                              \
    X(HELD,          "weir_held",        "weir_held")                                             \
    X(STARTED,       "started_at",       "started_at")                                            \
    X(ATTEMPTS,      "attempts",         "attempts")                                              \
    X(MAX_ATTEMPTS,  "max_attempts",     "max_attempts")                                          \
    X(MORE,          "weir_more",        "weir_more")                                             \
    X(PROGRESS,      "progress",         "progress")                                              \
    X(REMOVE,        "removeOnComplete", "removeOnComplete")                                      \
    X(TTL,           "ttl",              "ttl")                                                   \
    X(ERROR,         "error",            "error")                                                 \
    X(RESULT,        "result",           "result")                                                \
    X(BACKOFF,       "backoff",          "backoff")                                               \
    X(DELAY,         "delay",            "delay")                                                 \
    X(FAILED_AT,     "failed_at",        "failed_at")                                             \
    X(DURATION,      "duration",         "duration")                                              \
    X(WORKER,        "workerId",         "weir_worker")                                           \
    X(PROGRESS_DATA, "progress_data",    "weir_progress_data")                                    \
    X(CREATED,       "created_at",       "created_at")                                            \
    X(PROMOTE,       "promote_at",       "promote_at")                                            \
    X(UPDATED,       "updated_at",       "updated_at")                                            \
    X(HISTORY,       "weir_history",     "weir_history")                                          \
    X(DATA,          "data",             "data")

/* Vert.x Kue has these, too. */
#define KUE_VERTX_HASH(X)                                                                         \
    X(ADDRESS, "address_id") X(ID, "id") X(ZID, "zid") X(ANNOUNCED, "weir_announced")

enum {
    KUE_H_NONE,                         /* Lua counts from 1 */
#define X(name, ...) KUE_H_##name,
    KUE_HASH(X)
    KUE_VERTX_HASH(X)
#undef X
    KUE_H_END,
    KUE_H_FEWEST = KUE_H_STARTED, KUE_H_FEW = KUE_H_RESULT, KUE_H_LAST = KUE_H_END - 1
};

#endif
