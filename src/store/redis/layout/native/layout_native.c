/* layout_native.c - the native layout: its function and its keys; docs/redis.md says what they
 * hold. */
#include "store/redis/layout/layout.h"
#include "native.lua.h"

/* All keys that its function may use; 1_prelude.lua makes their names from the prefix, too. */
#define X(name, key, sort, walk) key,
static const char *const keys[] = { REDIS_NATIVE_KEYS(X) NULL };
#undef X

enum { IS_HASH = false, IS_ZSET = true, IS_STATE = true };
#define WALK_V(name, key, sort)    { key, IS_##sort, 0 },
#define WALK_W(name, key, sort)    { key, IS_##sort, REDIS_KEY_##name },
#define WALK_LAST(name, key, sort)
#define WALK_NONE(name, key, sort)
#define LAST_V(name, key, sort)
#define LAST_W(name, key, sort)
#define LAST_LAST(name, key, sort) WALK_W(name, key, sort)
#define LAST_NONE(name, key, sort)
#define WALK(name, key, sort, walk) WALK_##walk(name, key, sort)
#define LAST(name, key, sort, walk) LAST_##walk(name, key, sort)
static const redis_walk walks[] = {
    REDIS_NATIVE_KEYS(WALK) REDIS_NATIVE_KEYS(LAST) { NULL, false, 0 },
};

redis_layout weir__layout_native = {
    .library = { .label = "native", .source = NATIVE_LUA, .len = sizeof NATIVE_LUA - 1 },
    .keys = keys,
    .walks = walks,
    .data_in_record = true,
    .meta = ":meta",
    .channel = ":events",
    .sharded = true,
};
