/* constants.c - writes the numbers that Lua shares with C, as a constants.lua: see embed-lua.sh.
 * Built and run at build time, once for each layout: constants native|kue.
 *
 * Names are those of C in capitals: the states; EVENT_START; SPEC_PRIORITY and RUN_STATE, the first
 * byte of a number in its part (Lua counts from 1); flags and limits without REDIS_ and WEIR_. A
 * number that is Lua's alone stays in that layout's constants.lua.
 *
 * In Lua a job is a table j, with its fields at numbers such as j[PRIORITY]. These numbers are
 * written here, and so are lists of them for struct.pack() and the like. So no list there can lack
 * a new field. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tick.h"
#include "store/redis/layout/kue/hash.h"
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

/* Texts, and the data of a job, which no table has. */
typedef struct text {
    const char *name, *kind;
    int         part, at;
} text;

static text texts[] = {
#define X(m, name, kind, j, s, l, part, at, bytes) { #name, #kind, REDIS_IN_##part, at },
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
};
enum { TEXTS = sizeof texts / sizeof *texts };

static int by_text_place(const void *a, const void *b)
{
    const text *x = a, *y = b;
    return x->part != y->part ? x->part - y->part : x->at - y->at;
}

/* UNIQUE is the name of a key. */
static const char *lua_name(const text *t)
{
    return strcmp(t->name, "unique") ? t->name : "unique_key";
}

static bool is_in(const text *t, int part)
{
    return t->part == part && strcmp(t->name, "data") != 0;
}

/* Flags and type_len are in both parts: a table has the flags of the spec. */
static bool is_beside_run(const number *n)
{
    return n->part == REDIS_IN_RUN && n->at >= REDIS_RUN_HEAD - 2;
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
    put("", "VERSION", WEIR__REDIS_VERSION);
#define WEIR(name) put("", #name, WEIR_##name)
    WEIR(MAX_LOG);
    WEIR(MAX_PASSED);
    WEIR(MAX_TAKE_BYTES);
    WEIR(TOKEN_MS);
    WEIR(TOKEN_LATE_MS);
    WEIR(DEFAULT_KEEP_COMPLETE_MS);
    WEIR(DEFAULT_KEEP_COMPLETE);
    WEIR(DEFAULT_KEEP_FAILED_MS);
}

/* ---- native ---- */

/* Texts of a part as elements of j: `name` = j[29],j[30] ...; NAME_COUNT how many. The history is
 * left out: it ends a run. */
static void put_texts_of_j(const char *name, int part, int first)
{
    int n = 0;
    printf("local %s = ", name);
    for (const text *x = texts; x < texts + TEXTS; x++)
        if (is_in(x, part) && strcmp(x->name, "history") != 0) {
            printf("%sj[%d]", n ? "," : "", first + n);
            n++;
        }
    printf("\nlocal %s_COUNT = %d\n", name, n);
}

/* The place of each text in j, from `k` + 1 on; returns the last. */
static int put_text_places(int k)
{
    put("", "type", ++k);
    int spec = k + 1;
    for (const text *x = texts; x < texts + TEXTS; x++)
        if (is_in(x, REDIS_IN_SPEC))
            put("", lua_name(x), ++k);
    int run = k + 1;
    for (const text *x = texts; x < texts + TEXTS; x++)
        if (is_in(x, REDIS_IN_RUN))
            put("", lua_name(x), ++k);
    put_texts_of_j("SPEC_TEXTS_OF_J", REDIS_IN_SPEC, spec);
    put_texts_of_j("RUN_TEXTS_OF_J", REDIS_IN_RUN, run);
    put("", "FIRST_RUN_TEXT", run);
    return k;
}

/* The texts of a run but its history, by their names: `local RUN_TEXTS, history = texts_of(r)`. The
 * worker is the last of them, since jobs that are taken together differ in it alone. */
static void put_run_texts(void)
{
    const char *names = "", *none = "", *last = "";
    char        list[2][400] = { "", "" };
    for (const text *x = texts; x < texts + TEXTS; x++) {
        if (!is_in(x, REDIS_IN_RUN) || !strcmp(x->name, "history"))
            continue;
        snprintf(list[0] + strlen(list[0]), sizeof list[0] - strlen(list[0]), "%s%s", names,
                 x->name);
        if (strcmp(x->name, "worker") != 0) {
            snprintf(list[1] + strlen(list[1]), sizeof list[1] - strlen(list[1]), "%sFALSE", none);
            none = "..";
        }
        names = ",";
        last = x->name;
    }
    if (strcmp(last, "worker") != 0 || strncmp(list[0], "result,", 7) != 0) {
        fprintf(stderr, "constants: texts of a run begin with result and end with worker\n");
        exit(EXIT_FAILURE);
    }
    printf("local RUN_TEXTS = %s\nlocal RUN_TEXTS_BEHIND_RESULT = %s\n", list[0], list[0] + 7);
    printf("local NO_TEXTS_BEFORE_WORKER = %s\n", list[1]);
    printf("local NO_TEXTS_FROM_RESULT_TO_WORKER = %s\n", list[1] + strlen("FALSE.."));
}

/* A job as a table (3_job.lua): the numbers of its spec, of its run but for the flags and type_len
 * there, then the texts. */
static void put_decoded(void)
{
    int k = 0, last_of_spec = 0;
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        if (n->part == REDIS_IN_SPEC)
            put("", n->name, last_of_spec = ++k);
        else if (n->part == REDIS_IN_RUN && !is_beside_run(n))
            put("", n->name, ++k);
    }
    put("", "SPEC_END", last_of_spec);
    put("", "RUN_END", k);
    printf("local RUN_NUMBERS_OF_J = ");
    for (int i = last_of_spec + 1; i <= k; i++)
        printf("j[%d]%s", i, i < k ? "," : "\n");
    put("", "short_data", put_text_places(k) + 1);
    put_run_texts();
    put_format("RUN_NUMBERS_FORMAT", REDIS_IN_RUN, false, "");
}

/* A run that C did not make (2_work.lua): the function writes the numbers up to the duration. The
 * numbers behind it are 0 in a new run, and do not change. */
static void put_rest(void)
{
    int duration = 0;
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        if (n->part != REDIS_IN_RUN || is_beside_run(n))
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

/* Fields that 2_record.lua and 3_write.lua use by name, since Kue has a field for them or weir's
 * meaning differs from Kue's. Any other is kept in weir_more, by the code that put_kue_record() and
 * put_kue_more() write: a new one needs nothing in Lua. */
static const char *const in_hash[] = {
    "created_at", "flags", "backoff_kind", "backoff_jitter_pct", "priority", "max_attempts",
    "max_lost", "backoff_delay_ms", "backoff_max_ms", "delay_ms", "ttl_ms", "deadline_at", "state",
    "progress", "attempts", "delivery", "lost", "lines", "promote_at", "updated_at", "started_at",
    "failed_at", "finished_at", "duration_ms", "type", "unique", "search_keys", "values", "result",
    "error", "progress_data", "worker", "history",
};

static bool is_in_hash(const char *name)
{
    for (size_t i = 0; i < sizeof in_hash / sizeof *in_hash; i++)
        if (!strcmp(in_hash[i], name))
            return true;
    return false;
}

/* The highest value of a number in weir_more, by its kind. */
static int64_t highest_of(const number *n)
{
    static const struct {
        const char *kind;
        int64_t     highest;
    } limits[] = {
        { "COUNT", WEIR_MAX_ATTEMPTS }, { "MS", WEIR_MAX_MS },  { "MOMENT", WEIR__MAX_AT },
        { "PERCENT", 100 },             { "LOST", UINT32_MAX }, { "FLAG", 1 },
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (!strcmp(limits[i].kind, n->kind))
            return limits[i].highest;
    fprintf(stderr, "constants: %s (%s) has no place in Kue's hash: name it in in_hash[], and "
            "write it in layout/kue/2_record.lua and 3_write.lua\n", n->name, n->kind);
    exit(EXIT_FAILURE);
}

static bool is_in_table(const number *n)
{
    return (n->part == REDIS_IN_SPEC || n->part == REDIS_IN_RUN) && !is_beside_run(n) &&
           strcmp(n->name, "type_len") != 0;
}

/* The numbers of a part in the order of the record, as elements of j. */
static void put_kue_numbers(const char *name, int part)
{
    const char *comma = "";
    int         k = 0;
    printf("local %s = ", name);
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        k += is_in_table(n);
        if (n->part != part)
            continue;
        if (!strcmp(n->name, "flags") || !strcmp(n->name, "type_len"))
            printf("%s%s", comma, n->name);
        else
            printf("%sj[%d]", comma, k);
        comma = ",";
    }
    puts("");
}

/* The fields of a job in their order. `which`: 0 the table itself, with the text of weir_more for
 * fields that are not in_hash; 1 the names of the fields in_hash; 2 their values in an empty
 * table. */
static void put_kue_record(const char *name, int which)
{
    const char *comma = "";
    printf("local %s = ", name);
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        bool known = is_in_hash(n->name);
        if (!is_in_table(n) || (!known && which))
            continue;
        if (which == 2)
            printf("%s0", comma);
        else if (known)
            printf("%s%s", comma, n->name);
        else
            printf("%sint(more.%s,%" PRId64 ")", comma, n->name, highest_of(n));
        comma = ",";
    }
    for (int part = REDIS_IN_NONE; part <= REDIS_IN_RUN; part++) {
        for (const text *x = texts; x < texts + TEXTS; x++) {
            bool known = is_in_hash(x->name);
            if ((part == REDIS_IN_NONE ? strcmp(x->name, "type") != 0 : !is_in(x, part)) ||
                (!known && which))
                continue;
            if (which == 2)
                printf(",false");
            else if (known)
                printf(",%s", strcmp(x->name, "type") ? lua_name(x) : "type_name");
            else
                printf(",text_in(more.%s)", x->name);
        }
    }
    puts("");
}

/* Name and place in j of the fields that are not in_hash. */
static void put_kue_more(void)
{
    int         k = 0;
    const char *comma = "";
    printf("local MORE_NUMBERS = ");
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        k += is_in_table(n);
        if (!is_in_table(n) || is_in_hash(n->name))
            continue;
        printf("%s'%s',%d", comma, n->name, k);
        comma = ",";
    }
    puts(*comma ? "" : "nil");
    comma = "";
    k++;                                /* the type */
    printf("local MORE_TEXTS = ");
    for (int part = REDIS_IN_SPEC; part <= REDIS_IN_RUN; part++)
        for (const text *x = texts; x < texts + TEXTS; x++) {
            k += is_in(x, part);
            if (!is_in(x, part) || is_in_hash(x->name))
                continue;
            printf("%s'%s',%d", comma, x->name, k);
            comma = ",";
        }
    puts(*comma ? "" : "nil");
}

static void put_kue_fields(void)
{
    int k = 0, first_of_run = 0;
    for (const number *n = numbers; n < numbers + NUMBERS; n++) {
        if (!is_in_table(n))
            continue;
        put("", n->name, ++k);
        if (!first_of_run && n->part == REDIS_IN_RUN)
            first_of_run = k;
    }
    put("", "FIRST_RUN_NUMBER", first_of_run);
    put("", "LAST_RUN_NUMBER", k);
    put("", "LAST_FIELD", put_text_places(k));
    put_kue_numbers("SPEC_NUMBERS_OF_J", REDIS_IN_SPEC);
    put_kue_numbers("RUN_NUMBERS_OF_J", REDIS_IN_RUN);
    put_kue_record("ALL_FIELDS", 0);
    put_kue_record("FIELDS_IN_HASH", 1);
    put_kue_record("NO_FIELDS_IN_HASH", 2);
    put_kue_more();
}

static void put_kue_hash(void)
{
    const char *comma = "";
#define X(name, ...) put("H_", #name, KUE_H_##name);
    KUE_HASH(X)
    KUE_VERTX_HASH(X)
#undef X
    put("H_", "FEWEST", KUE_H_FEWEST);
    put("H_", "FEW", KUE_H_FEW);
    put("H_", "LAST", KUE_H_LAST);
    printf("local KUE_HASH = ");
#define X(name, kue, vertx) printf("%s'%s'", comma, kue); comma = ",";
    KUE_HASH(X)
#undef X
    printf("\nlocal VERTX_HASH = ");
    comma = "";
#define X(name, kue, vertx) printf("%s'%s'", comma, vertx); comma = ",";
    KUE_HASH(X)
#undef X
#define X(name, vertx) printf(",'%s'", vertx);
    KUE_VERTX_HASH(X)
#undef X
    puts("");
}

static void put_kue(void)
{
    put_kue_fields();
    put_kue_hash();
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
    qsort(texts, TEXTS, sizeof *texts, by_text_place);
    put_common();
    if (native)
        put_native();
    else
        put_kue();
    return ferror(stdout) || fclose(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
