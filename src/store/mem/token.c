/* token.c - what adds that carried a token have answered, so that one that is repeated is answered
 * the same: by key, and by time to forget them. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "store/answers.h"

static mem_token *find(const mem_store *s, const char *key)
{
    for (table_link *l = weir__table_find(&s->tokens, weir__table_hash(0, key)); l;
         l = weir__table_more(l)) {
        mem_token *t = CONTAINER(l, mem_token, link);
        if (!strcmp(t->key, key))
            return t;
    }
    return NULL;
}

static void forget(mem_store *s, mem_token *t)
{
    weir__table_remove(&s->tokens, &t->link);
    weir__tree_remove(&s->tokens_by_time, &t->by_time);
    free(t);
}

weir_code weir__mem_token_look(const mem_store *s, weir_op *op, bool *again)
{
    const weir_op_add *a = &op->u.add;
    const mem_token   *t = find(s, a->token->key);
    *again = false;
    if (!t || t->by_time.rank + WEIR_TOKEN_MS <= op->now_ms)
        return WEIR_OK;
    const weir_token_call known = { .number = t->number, .digest = t->digest, .n = t->n };
    weir_code             rc = weir__token_known(a->token, a->n, &known, again, &op->err);
    if (*again && t->n)
        memcpy(a->out, t->added, t->n * sizeof *a->out);
    return rc;
}

mem_token *weir__mem_token_create(const weir_op_add *a)
{
    size_t     bytes = a->n * sizeof *a->out, len = strlen(a->token->key) + 1;
    mem_token *t = malloc(sizeof *t + bytes + len);
    if (!t)
        return NULL;
    *t = (mem_token){ .number = a->token->number, .digest = a->token->digest, .n = a->n,
                      .key = (char *)t->added + bytes };
    memcpy(t->key, a->token->key, len);
    return t;
}

void weir__mem_token_put(mem_store *s, mem_token *t, const weir_added *added, int64_t now)
{
    mem_token *old = find(s, t->key);
    if (old)
        forget(s, old);
    if (t->n)
        memcpy(t->added, added, t->n * sizeof *added);
    t->by_time.rank = now;
    t->by_time.id = ++s->last_token;
    weir__table_add(&s->tokens, &t->link, weir__table_hash(0, t->key));
    weir__tree_add(&s->tokens_by_time, &t->by_time);
    weir__mem_want(s, now + WEIR_TOKEN_MS + WEIR_TOKEN_LATE_MS);
}

int64_t weir__mem_tokens_tick(mem_store *s, size_t limit, int64_t now)
{
    tree_node *oldest = weir__tree_first(&s->tokens_by_time);
    int64_t    late = WEIR_TOKEN_LATE_MS;
    for (; oldest && oldest->rank + WEIR_TOKEN_MS + late <= now;
         oldest = weir__tree_first(&s->tokens_by_time)) {
        if (!limit--)
            return now;
        forget(s, CONTAINER(oldest, mem_token, by_time));
        late = 0;                   /* as we are here */
    }
    return oldest ? oldest->rank + WEIR_TOKEN_MS + WEIR_TOKEN_LATE_MS : INT64_MAX;
}

void weir__mem_tokens_fini(mem_store *s)
{
    for (tree_node *n; (n = weir__tree_first(&s->tokens_by_time));)
        forget(s, CONTAINER(n, mem_token, by_time));
    weir__table_fini(&s->tokens);
}
