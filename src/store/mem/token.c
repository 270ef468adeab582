/* token.c - answers to adds with a token, so that a repeated add gets the same answer: by key, and
 * by time to forget them. */
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
    weir__agenda_want(&s->agenda, WEIR_DUE_TOKENS, weir__token_until(now));
}

size_t weir__mem_tokens_forget(mem_store *s, int64_t until, size_t limit)
{
    size_t n = 0;
    for (tree_node *oldest; n < limit && (oldest = weir__tree_first(&s->tokens_by_time)) &&
                            oldest->rank <= until; n++)
        forget(s, CONTAINER(oldest, mem_token, by_time));
    return n;
}

void weir__mem_tokens_fini(mem_store *s)
{
    for (tree_node *n; (n = weir__tree_first(&s->tokens_by_time));)
        forget(s, CONTAINER(n, mem_token, by_time));
    weir__table_fini(&s->tokens);
}
