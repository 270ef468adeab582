/* layout_native.c - the native layout: its function and its keys; docs/redis.md says what they
 * hold. */
#include "store/redis/layout.h"
#include "native.lua.h"

/* All that its function may touch; it makes them of the prefix, too (lua/native/1_prelude.lua). */
static const char *const keys[] = {
    ":meta", ":jobs", ":runs", ":data", ":log", ":inactive", ":delayed", ":active", ":complete",
    ":failed", ":cancelled", ":lease", ":ttl", ":due", ":held", ":unique", ":types", ":ids",
    ":blocks", ":words", ":found", ":tokens", ":tokens:at", NULL
};

/* Their numbers: lua/native/constants.lua. The counts of a type are looked at last. */
static const redis_walk walks[] = {
    { ":jobs", false, 0 },     { ":runs", false, 2 },      { ":data", false, 3 },
    { ":log", false, 4 },      { ":inactive", true, 5 },   { ":delayed", true, 6 },
    { ":active", true, 7 },    { ":complete", true, 8 },   { ":failed", true, 9 },
    { ":cancelled", true, 10 }, { ":lease", true, 11 },    { ":ttl", true, 12 },
    { ":due", true, 13 },      { ":held", true, 14 },      { ":unique", false, 15 },
    { ":ids", true, 17 },      { ":blocks", false, 18 },   { ":words", true, 19 },
    { ":found", false, 20 },   { ":types", false, 16 },    { NULL, false, 0 },
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
