/* sum.c - the checksum of a job's row.
 *
 * It covers the id and all columns but the derived ones (rank, due_at). The texts are summed one by
 * one, and their sums with the numbers. An active job's texts are not in memory: a change of it
 * needs only the sums of the texts that it leaves alone.
 *
 * promote_at is added at the end instead, modulo a prime: when the clock is set, one UPDATE moves
 * it in all rows that are concerned, and their checksums with it. */
#include "store/sql/sql.h"

#include <string.h>

#include "base/crc32c.h"

/* A missing text differs from an empty one, and a text that ends with NULs from a shorter one. */
uint32_t weir__sql_text_sum(const char *text, size_t len)
{
    return text ? weir__crc32c((uint32_t)len + 1, text, len) : 0;
}

static uint32_t string_sum(const char *text)
{
    return weir__sql_text_sum(text, text ? strlen(text) : 0);
}

#define TEXT(member, ...)  string_sum(j->member)
#define BYTES(member, ...) weir__sql_text_sum(j->member, j->member##_len)

static uint32_t fixed_sum(const weir_job *j)
{
    const uint64_t words[] = {
#define X(member, n, k, js, s, life, ...) WEIR_IF_NEW_##life(TEXT(member),)
        WEIR_JOB_TEXTS(X)
#undef X
#define X(member, n, k, js, s, life, ...) WEIR_IF_NEW_##life(BYTES(member),)
        WEIR_JOB_BYTES(X)
#undef X
    };
    return weir__crc32c_words(0, words, sizeof words / sizeof *words);
}

sql_sums weir__sql_sums(const weir_job *j, int64_t lease_ms)
{
    return (sql_sums){
        .lease_ms = lease_ms,
        .fixed = fixed_sum(j),
#define X(member, name, k, js, s, life, ...) WEIR_IF_MOVES_##life(.name = TEXT(member),)
        WEIR_JOB_TEXTS(X)
#undef X
#define X(member, name, k, js, s, life, ...) WEIR_IF_MOVES_##life(.name = BYTES(member),)
        WEIR_JOB_BYTES(X)
#undef X
    };
}

#undef TEXT
#undef BYTES

/* One word for each number, one for each text. */
enum {
    W_id, W_type, W_lease_ms, W_fixed,
#define X(m, name, k, js, s, life, ...) WEIR_IF_STORED_##life(W_##name,)
    WEIR_JOB_NUMBERS(X)
#undef X
#define X(m, name, k, js, s, life, ...) WEIR_IF_MOVES_##life(W_##name,)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    WORDS
};

int64_t weir__sql_checksum(const weir_job *j, int64_t type, const sql_sums *sums)
{
    uint64_t words[WORDS];
    words[W_id] = j->id;
    words[W_type] = (uint64_t)type;
    words[W_lease_ms] = (uint64_t)sums->lease_ms;
    words[W_fixed] = sums->fixed;
#define X(member, name, k, js, s, life, ...)                                                      \
    WEIR_IF_STORED_##life(words[W_##name] = (uint64_t)j->member;)
    WEIR_JOB_NUMBERS(X)
#undef X
#define X(m, name, k, js, s, life, ...) WEIR_IF_MOVES_##life(words[W_##name] = sums->name;)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    words[W_promote_at] = 0;
    uint32_t crc = weir__crc32c_words(0, words, WORDS);
    int64_t  at = j->promote_at % SQL_SUM_MODULUS;
    return ((int64_t)crc + at + (at < 0 ? SQL_SUM_MODULUS : 0)) % SQL_SUM_MODULUS;
}

int64_t weir__sql_line_checksum(uint64_t job, int64_t n, int64_t at, const char *text, size_t len)
{
    const uint64_t words[] = { job, (uint64_t)n, (uint64_t)at, weir__sql_text_sum(text, len) };
    return weir__crc32c_words(0, words, sizeof words / sizeof *words);
}
