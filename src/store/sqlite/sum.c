/* sum.c - the checksum of a job's row, and what becomes of a job whose row does not match it.
 *
 * It covers the id and all columns but those that are derived from others (rank, due_at), which
 * check.c compares. The texts are summed one by one, and their sums with the numbers: so a change
 * of an active job, whose texts are not in memory, needs only the sums of those it leaves alone.
 *
 * promote_at is added at the end instead, modulo a prime: when the clock is set, one UPDATE moves
 * it in all rows that are concerned, and their checksums with it. */
#include "store/sqlite/sq.h"

#include <string.h>

#include "base/crc32c.h"

/* A missing text is not an empty one, nor one that ends with NULs a shorter one. */
uint32_t weir__sq_text_sum(const char *text, size_t len)
{
    return text ? weir__crc32c((uint32_t)len + 1, text, len) : 0;
}

static uint32_t string_sum(const char *text)
{
    return weir__sq_text_sum(text, text ? strlen(text) : 0);
}

#define TEXT(member, ...)  string_sum(j->member)
#define BYTES(member, ...) weir__sq_text_sum(j->member, j->member##_len)

uint32_t weir__sq_fixed_sum(const weir_job *j)
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

sq_rest weir__sq_rest(const weir_job *j, int64_t lease_ms)
{
    return (sq_rest){
        .lease_ms = lease_ms,
        .fixed = weir__sq_fixed_sum(j),
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

int64_t weir__sq_sum(const weir_job *j, const sq_type *t, const sq_rest *rest)
{
    uint64_t words[WORDS];
    words[W_id] = j->id;
    words[W_type] = (uint64_t)t->id;
    words[W_lease_ms] = (uint64_t)rest->lease_ms;
    words[W_fixed] = rest->fixed;
#define X(member, name, k, js, s, life, ...)                                                      \
    WEIR_IF_STORED_##life(words[W_##name] = (uint64_t)j->member;)
    WEIR_JOB_NUMBERS(X)
#undef X
#define X(m, name, k, js, s, life, ...) WEIR_IF_MOVES_##life(words[W_##name] = rest->name;)
    WEIR_JOB_TEXTS(X)
    WEIR_JOB_BYTES(X)
#undef X
    words[W_promote_at] = 0;
    uint32_t crc = weir__crc32c_words(0, words, WORDS);
    int64_t  at = j->promote_at % SQ_SUM_MODULUS;
    return ((int64_t)crc + at + (at < 0 ? SQ_SUM_MODULUS : 0)) % SQ_SUM_MODULUS;
}

int64_t weir__sq_line_sum(uint64_t job, int64_t n, int64_t at, const char *text, size_t len)
{
    const uint64_t words[] = { job, (uint64_t)n, (uint64_t)at, weir__sq_text_sum(text, len) };
    return weir__crc32c_words(0, words, sizeof words / sizeof *words);
}

bool weir__sq_sound(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type, sq_rest *rest)
{
    if (!weir__sq_decode(s, st, j, type))
        return false;
    *rest = weir__sq_rest(j, sqlite3_column_int64(st, SQ_C_lease_ms));
    return sqlite3_column_int64(st, SQ_C_checksum) == weir__sq_sum(j, *type, rest);
}

/* ---- jobs that are damaged ---- */

static char in_file, in_memory;     /* what the map of them says: see sq_store.damaged */

void weir__sq_note_damaged(sq_store *s, uint64_t id)
{
    if (id && !s->broken && !weir__map_get(&s->damaged, id) &&
        !weir__map_put(&s->damaged, id, &in_file))
        weir__sq_no_memory(s);
}

bool weir__sq_is_damaged(const sq_store *s, uint64_t id)
{
    return s->damaged.n && weir__map_get(&s->damaged, id) != NULL;
}

/* The checksum stays as it was: check still names the job. False: SQLite cannot change the row,
 * because an index does not agree with it. */
static bool fail_row(sq_store *s, uint64_t id, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_SET_ASIDE);
    if (!st)
        return false;
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_int(st, 2, now);
    weir__sq_bytes(st, 3, SQ_DAMAGED_TEXT, sizeof SQ_DAMAGED_TEXT - 1);
    int rc = sqlite3_step(st);
    sqlite3_reset(st);
    if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_CORRUPT)
        weir__sq_broken(s, rc);
    return rc == SQLITE_DONE;
}

static weir_code set_aside(sq_store *s, uint64_t id, int64_t now)
{
    weir_job      j;
    sq_type      *t = NULL;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_GET);
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return s->broken ? s->error.code : WEIR_OK;
    bool known = weir__sq_decode(s, st, &j, &t);
    sqlite3_reset(st);
    if (!known || !fail_row(s, id, now)) {
        if (!s->broken)
            weir__map_put(&s->damaged, id, &in_memory);     /* it is in there: no memory needed */
        return s->broken ? s->error.code : WEIR_OK;
    }
    weir__map_remove(&s->damaged, id);
    weir_effects e;
    weir__job_set_aside(&j, SQ_DAMAGED_TEXT, now, &e);
    weir_code rc = weir__effects_ok(&e) ? weir__sq_log(s, id, false, now, e.log.data, e.log.len)
                                        : weir__sq_no_memory(s);
    weir__sq_follow(s, &j, t, &e, now);
    weir__effects_fini(&e);
    return rc;
}

weir_code weir__sq_set_aside(sq_store *s, int64_t now)
{
    size_t    pos = 0;
    uint64_t  id;
    void     *where;
    weir_code rc = WEIR_OK;
    while (!rc && weir__map_next(&s->damaged, &pos, &id, &where))
        if (where == &in_file)
            rc = set_aside(s, id, now);
    return rc;
}
