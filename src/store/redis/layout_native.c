/* layout_native.c - the native layout: its script, its keys. docs/redis.md says what they hold. */
#include "store/redis/layout.h"
#include "native.lua.h"

/* In the order of lua/native/1_prelude.lua, which counts from 1. */
static const char *const keys[] = {
    ":jobs", ":data", ":log", ":inactive", ":delayed", ":active", ":complete", ":failed",
    ":cancelled", ":lease", ":ttl", ":due", ":unique", ":types", ":ids", ":blocks", ":words",
    ":found", ":meta", ":tokens", ":tokens:at", NULL
};

static const redis_walk walks[] = {
    { ":jobs", false, 0 },     { ":data", false, 2 },      { ":log", false, 3 },
    { ":inactive", true, 4 },  { ":delayed", true, 5 },    { ":active", true, 6 },
    { ":complete", true, 7 },  { ":failed", true, 8 },     { ":cancelled", true, 9 },
    { ":lease", true, 10 },    { ":ttl", true, 11 },       { ":due", true, 12 },
    { ":unique", false, 13 },  { ":ids", true, 15 },       { ":blocks", false, 16 },
    { ":words", true, 17 },    { ":found", false, 18 },    { NULL, false, 0 },
};

redis_layout weir__layout_native = {
    .add = { .name = "native", .source = REDIS_ADD_FLAGS NATIVE_LUA,
             .len = sizeof REDIS_ADD_FLAGS NATIVE_LUA - 1 },
    .rest = { .name = "native", .source = REDIS_REST_FLAGS NATIVE_LUA,
              .len = sizeof REDIS_REST_FLAGS NATIVE_LUA - 1 },
    .keys = keys,
    .walks = walks,
    .data_in_record = true,
    .meta = ":meta",
    .channel = ":events",
    .sharded = true,
};
