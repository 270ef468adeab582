/* constants.c - writes the numbers that Lua shares with C, as a constants.lua: see embed-lua.sh.
 * Built and run at build time, once for each layout: constants native|kue.
 *
 * Names are those of C in capitals: the states; EVENT_START; SPEC_PRIORITY and RUN_STATE, the first
 * byte of a number in its part (Lua counts from 1); flags and limits without REDIS_ and WEIR_. A
 * number that is Lua's alone stays in that layout's constants.lua. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tick.h"
#include "store/redis/layout/layout.h"
#include "weir/event.h"

static void put(const char *prefix, const char *name, int64_t value)
{
    printf("local %s", prefix);
    for (; *name; name++)
        putchar(toupper((unsigned char)*name));
    printf(" = %" PRId64 "\n", value);
}

/* ---- records ---- */

typedef struct number {
    const char *name, *kind;
    int         part, at, bytes;
} number;

static number numbers[] = {
#define X(m, name, kind, j, s, l, part, at, bytes)                                                \
    { #name, #kind, REDIS_IN_##part, at, bytes },
    WEIR_JOB_NUMBERS(X)
#undef X
#define X(name, part, at, bytes) { #name, "", REDIS_IN_##part, at, bytes },
    REDIS_BESIDE(X)
#undef X
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int by_place(const void *a, const void *b)
{
    const number *x = a, *y = b;
    return x->part != y->part ? x->part - y->part : x->at - y->at;
}

static void put_letter(int bytes, char letter)
{
    if (bytes == 1)
        putchar('B');
    else
        printf("%c%d", letter, bytes);
}

/* The format with which struct.pack() makes the numbers of a part. `whole`: also flags and type_len
 * of a run. */
static void put_format(const char *name, int part, bool whole, const char *more)
{
    printf("local %s = '>", name);
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        if (n->part == part && (whole || n->at < REDIS_RUN_HEAD - 2))
            put_letter(n->bytes, strcmp(n->kind, "PRIORITY") ? 'I' : 'i');
    }
    printf("%s'\n", more);
}

static void put_places(int part, const char *prefix, int head)
{
    for (const number *n = numbers; n < numbers + NUMBERS; n++)
        if (n->part == part)
            put(prefix, n->name, n->at + 1);
    put(prefix, "type", head + 1);
}

/* ---- both layouts ---- */

static void put_common(void)
{
#define STATE(name) put("", #name, WEIR_STATE_##name)
    STATE(INACTIVE);
    STATE(DELAYED);
    STATE(ACTIVE);
    STATE(COMPLETE);
    STATE(FAILED);
    STATE(CANCELLED);
    _Static_assert(WEIR_STATE_COUNT == WEIR_STATE_CANCELLED + 1, "a state is missing here");
#define X(name, text) put("EVENT_", #name, WEIR_EVENT_##name);
    WEIR_EVENTS(X)
#undef X
#define X(name, bit) put("", #name, bit);
    REDIS_FLAGS(X)
#undef X
#define X(name, bytes) put("T_", #name, REDIS_T_##name);
    REDIS_TYPE_RECORD(X)
#undef X
    put_places(REDIS_IN_SPEC, "SPEC_", REDIS_SPEC_HEAD);
    put_places(REDIS_IN_RUN, "RUN_", REDIS_RUN_HEAD);
    put_format("SPEC_FORMAT", REDIS_IN_SPEC, true, "");
    put_format("RUN_FORMAT", REDIS_IN_RUN, true, "");
#define REDIS(name) put("", #name, REDIS_##name)
    REDIS(RUN_OF);
    REDIS(END);
    REDIS(PASSED);
    REDIS(FIRST_STEP);
    REDIS(AT_ONCE);
    REDIS(GRACE_MS);
    REDIS(CLOCK_SLACK_MS);
#define WEIR(name) put("", #name, WEIR_##name)
    WEIR(MAX_LOG);
    WEIR(MAX_PASSED);
    WEIR(TOKEN_MS);
    WEIR(TOKEN_LATE_MS);
}

/* ---- native ---- */

/* A job as a table (3_more.lua): the numbers of its spec, of its run but for the flags and type_len
 * there, then these. */
static const char *const texts[] = {
    "type", "unique_key", "search_keys", "result", "error", "progress_data", "worker", "short_data",
    "history", "values"
};

static void put_decoded(void)
{
    int k = 0, last_of_spec = 0;
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        if (n->part == REDIS_IN_SPEC)
            put("", n->name, last_of_spec = ++k);
        else if (n->part == REDIS_IN_RUN && n->at < REDIS_RUN_HEAD - 2)
            put("", n->name, ++k);
    }
    put("", "SPEC_END", last_of_spec);
    put("", "RUN_END", k);
    printf("local RUN_NUMBERS_OF_J = ");
    for (int i = last_of_spec + 1; i <= k; i++)
        printf("j[%d]%s", i, i < k ? "," : "\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put("", texts[i], ++k);
    put_format("RUN_NUMBERS_FORMAT", REDIS_IN_RUN, false, "");
}

/* A run that C did not make (2_work.lua): the function knows the numbers up to the duration, those
 * behind it are 0 in a new run, and stay as they are. */
static void put_rest(void)
{
    int duration = 0;
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        if (n->part != REDIS_IN_RUN || n->at >= REDIS_RUN_HEAD - 2)
            continue;
        if (!strcmp(n->name, "duration_ms")) {
            put("", "RUN_AFTER_DURATION", n->at + n->bytes + 1);
            printf("local NO_DURATION_NOR_REST = ");
            duration = n->at;
        }
        if (duration)
            printf("%s0", n->at > duration ? "," : "");
    }
    puts("");
    put_format("RUN_AND_TYPE_FORMAT", REDIS_IN_RUN, true, "c0");
}

static void put_native_keys(void)
{
    enum { HASH, ZSET, STATE_SET };
#define SORT_HASH  HASH
#define SORT_ZSET  ZSET
#define SORT_STATE STATE_SET
    /* Lua counts those behind SCHEDULES from there: a function has at most 200 local names. */
#define X(name, key, sort, walk)                                                                  \
    if (SORT_##sort != STATE_SET && REDIS_KEY_##name <= REDIS_KEY_SCHEDULES)                      \
        put("", #name, REDIS_KEY_##name);
    REDIS_NATIVE_KEYS(X)
#undef X
    put("", "STATE_KEY", REDIS_KEY_INACTIVE - WEIR_STATE_INACTIVE);
    put("", "FIRST_SET", REDIS_KEY_INACTIVE);
    put("", "LAST_SET", REDIS_KEY_GRANTED);
    const char *comma = "";
    printf("local KEY_SUFFIXES = ");
#define X(name, key, sort, walk)                                                                  \
    printf("%s'%s'", comma, key);                                                                 \
    comma = ",";
    REDIS_NATIVE_KEYS(X)
#undef X
    puts("");
}

static void put_native(void)
{
    put_native_keys();
    put_decoded();
    put_rest();
    printf("local TYPE_FORMAT = '>");
#define X(name, bytes) put_letter(bytes, 'I');
    REDIS_TYPE_RECORD(X)
#undef X
    puts("'");
    put("", "T_ANSWERED", REDIS_T_ANSWERED);
    REDIS(LIST_OF);
    REDIS(STAMP_MS);
    REDIS(PIECE);
    REDIS(ZERO_RANK);
}

/* ---- kue ---- */

static void put_kue(void)
{
    put("", "SPEC_HEAD", REDIS_SPEC_HEAD);
    put("", "RUN_HEAD", REDIS_RUN_HEAD);
    put("", "TYPES_WALK", REDIS_KUE_TYPES_WALK);
    put("", "MAX_TIMES", WEIR_MAX_ATTEMPTS);        /* MAX_ATTEMPTS is a field of a job */
    put("", "IMMEDIATE", WEIR_BACKOFF_NONE);
#define BACKOFF(name) put("", #name, WEIR_BACKOFF_##name)
    BACKOFF(FIXED);
    BACKOFF(EXPONENTIAL);
    BACKOFF(LINEAR);
    WEIR(MAX_MS);
    WEIR(DEFAULT_MAX_LOST);
    WEIR(MAX_VALUES);
    WEIR(MAX_VALUE_NAME);
    WEIR(MAX_VALUES_BYTES);
}

int main(int argc, char **argv)
{
    bool native = argc == 2 && !strcmp(argv[1], "native");
    if (!native && (argc != 2 || strcmp(argv[1], "kue") != 0)) {
        fprintf(stderr, "usage: constants native|kue\n");
        return EXIT_FAILURE;
    }
    qsort(numbers, NUMBERS, sizeof *numbers, by_place);
    put_common();
    if (native)
        put_native();
    else
        put_kue();
    return ferror(stdout) || fclose(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
