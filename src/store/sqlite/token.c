/* token.c - answers to adds with a token, so that a repeated add gets the same answer. A row for
 * each key; schema.c has its columns. */
#include "store/sqlite/sq.h"

#include <stdlib.h>
#include <string.h>

#include "store/answers.h"

/* The answers of an add: the digest, then runs of jobs whose ids follow each other. */
enum { DIGEST_BYTES = 8, RUN_BYTES = 8 + 4 + 1, EXISTED = 0x80 };   /* first id, count, state */

static void put_number(unsigned char *at, uint64_t n, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, n >>= 8)
        at[i] = n & 0xff;
}

static uint64_t get_number(const unsigned char *at, int bytes)
{
    uint64_t n = 0;
    for (int i = 0; i < bytes; i++)
        n = n << 8 | at[i];
    return n;
}

static unsigned char mark_of(const weir_added *a)
{
    return (unsigned char)((unsigned)a->state | (a->existed ? EXISTED : 0));
}

/* How many from `first` on are one run. */
static size_t run_length(const weir_added *first, size_t n)
{
    size_t k = 1;
    while (k < n && first[k].id == first->id + k && mark_of(&first[k]) == mark_of(first))
        k++;
    return k;
}

/* Take the digest off and count the jobs. False: the bytes are not in our format. */
static bool read_call(const unsigned char **runs, size_t *len, weir_token_call *known)
{
    if (*len < DIGEST_BYTES || (*len - DIGEST_BYTES) % RUN_BYTES)
        return false;
    known->digest = get_number(*runs, DIGEST_BYTES);
    *runs += DIGEST_BYTES;
    *len -= DIGEST_BYTES;
    for (size_t i = 0; i < *len; i += RUN_BYTES)
        known->n += get_number(*runs + i + 8, 4);
    return known->n <= WEIR_MAX_ADD;
}

static void answer(sq_store *s, weir_added *out, const unsigned char *runs, size_t len)
{
    for (size_t i = 0; i < len; i += RUN_BYTES) {
        uint64_t id = get_number(runs + i, 8), n = get_number(runs + i + 8, 4);
        unsigned mark = runs[i + 12];
        while (n--)
            *out++ = (weir_added){ .id = id++, .state = (weir_state)(mark & ~(unsigned)EXISTED),
                                   .existed = mark & EXISTED, .durability = s->env.durability };
    }
}

weir_code weir__sq_token_look(sq_store *s, weir_op *op, bool *again)
{
    const weir_op_add *a = &op->u.add;
    sqlite3_stmt      *st = weir__sq_stmt(s, SQ_TOKEN);
    weir_code          rc = WEIR_OK;
    *again = false;
    weir__sq_string(st, 1, a->token->key);
    weir__sq_int(st, 2, op->now_ms - WEIR_TOKEN_MS);
    if (weir__sq_row(s, st)) {
        weir_token_call      known = { .number = (uint64_t)sqlite3_column_int64(st, 0) };
        const unsigned char *runs = sqlite3_column_blob(st, 1);
        size_t               len = (size_t)sqlite3_column_bytes(st, 1);
        if (!read_call(&runs, &len, &known))
            rc = weir__sq_damaged(s, "the record of a token cannot be read");
        else
            rc = weir__token_known(a->token, a->n, &known, again, &op->err);
        if (*again)
            answer(s, a->out, runs, len);
        sqlite3_reset(st);
    }
    return s->broken ? s->error.code : rc;
}

weir_code weir__sq_token_put(sq_store *s, const weir_op *op)
{
    const weir_op_add *a = &op->u.add;
    unsigned char     *runs = malloc(DIGEST_BYTES + a->n * RUN_BYTES);
    size_t             len = DIGEST_BYTES;
    if (!runs)
        return weir__sq_no_memory(s);
    put_number(runs, a->token->digest, DIGEST_BYTES);
    for (size_t i = 0, n; i < a->n; i += n, len += RUN_BYTES) {
        n = run_length(&a->out[i], a->n - i);
        put_number(runs + len, a->out[i].id, 8);
        put_number(runs + len + 8, n, 4);
        runs[len + 12] = mark_of(&a->out[i]);
    }
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TOKEN_PUT);
    weir__sq_string(st, 1, a->token->key);
    weir__sq_int(st, 2, (int64_t)a->token->number);
    weir__sq_int(st, 3, op->now_ms);
    sqlite3_bind_blob(st, 4, runs, (int)len, SQLITE_STATIC);
    weir_code rc = weir__sq_do(s, st);
    free(runs);
    weir__agenda_want(&s->agenda, WEIR_DUE_TOKENS, weir__token_until(op->now_ms));
    return rc;
}

weir_code weir__sq_tokens_forget(sq_store *s, int64_t until, size_t limit, size_t *n)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_TOKEN_SWEEP);
    weir__sq_int(st, 1, until);
    weir__sq_int(st, 2, (int64_t)limit);
    weir_code rc = weir__sq_do(s, st);
    *n = rc ? 0 : (size_t)sqlite3_changes(s->db);
    return rc;
}
