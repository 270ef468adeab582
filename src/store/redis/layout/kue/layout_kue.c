/* layout_kue.c - the layouts of Kue and of Vert.x Kue: one script, of which the first line says
 * which of them it is. docs/kue.md says what the keys hold. */
#include "store/redis/layout/kue/kue_events.h"
#include "store/redis/layout/layout.h"
#include "kue.lua.h"

#define KUE_PROFILE   "local VERTX = false\n"
#define VERTX_PROFILE "local VERTX = true\n"
#define LIBRARY(name, profile)                                                                    \
    { .label = name, .source = profile KUE_LUA, .len = sizeof profile KUE_LUA - 1 }

/* The others follow from types and ids, and are on the one node there is. */
static const char *const keys[] = { ":ids", NULL };

/* The numbers are the places in walks() of layout/kue/verify.lua. Kue's own sets differ by the case
 * of the state. */
#define OUR_WALKS                                                                                 \
    { ":weir:lease", true, 7 }, { ":weir:ttl", true, 8 }, { ":weir:deadline", true, 9 },          \
    { ":weir:unique", false, 10 }, { ":weir:words", true, 11 }, { ":weir:found", false, 12 },     \
    { ":weir:types", false, REDIS_KUE_TYPES_WALK }, { NULL, false, 0 }

static const redis_walk kue_walks[] = {
    { ":jobs", true, 0 },          { ":jobs:inactive", true, 1 }, { ":jobs:delayed", true, 2 },
    { ":jobs:active", true, 3 },   { ":jobs:complete", true, 4 }, { ":jobs:failed", true, 5 },
    { ":jobs:cancelled", true, 6 }, OUR_WALKS,
};

static const redis_walk vertx_walks[] = {
    { ":jobs", true, 0 },          { ":jobs:INACTIVE", true, 1 }, { ":jobs:DELAYED", true, 2 },
    { ":jobs:ACTIVE", true, 3 },   { ":jobs:COMPLETE", true, 4 }, { ":jobs:FAILED", true, 5 },
    { ":jobs:CANCELLED", true, 6 }, OUR_WALKS,
};

redis_layout weir__layout_kue = {
    .library = LIBRARY("kue", KUE_PROFILE),
    .keys = keys,
    .walks = kue_walks,
    .keeps_for_ever = true,
    .meta = ":weir:meta",
    .channel = ":weir:events",
    .foreign = ":events",
    .presence_channel = ":weir:presence",
    .read_foreign = weir__kue_event,
};

/* Vert.x Kue publishes its events over its own bus, not over Redis. */
redis_layout weir__layout_vertx = {
    .library = LIBRARY("vertx", VERTX_PROFILE),
    .keys = keys,
    .walks = vertx_walks,
    .keeps_for_ever = true,
    .meta = ":weir:meta",
    .channel = ":weir:events",
};
