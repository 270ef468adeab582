/* layout_native.c - the native layout: its function and its keys; docs/redis.md says what they
 * hold. */
#include "store/redis/layout.h"
#include "native.lua.h"

/* In the order of lua/native/1_prelude.lua, which counts from 1. */
static const char *const keys[] = {
    ":jobs", ":runs", ":data", ":log", ":inactive", ":delayed", ":active", ":complete", ":failed",
    ":cancelled", ":lease", ":ttl", ":due", ":unique", ":types", ":ids", ":blocks", ":words",
    ":found", ":meta", ":tokens", ":tokens:at", NULL
};

static const redis_walk walks[] = {
    { ":jobs", false, 0 },     { ":runs", false, 2 },      { ":data", false, 3 },
    { ":log", false, 4 },      { ":inactive", true, 5 },   { ":delayed", true, 6 },
    { ":active", true, 7 },    { ":complete", true, 8 },   { ":failed", true, 9 },
    { ":cancelled", true, 10 }, { ":lease", true, 11 },    { ":ttl", true, 12 },
    { ":due", true, 13 },      { ":unique", false, 14 },   { ":ids", true, 16 },
    { ":blocks", false, 17 },  { ":words", true, 18 },     { ":found", false, 19 },
    { NULL, false, 0 },
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
