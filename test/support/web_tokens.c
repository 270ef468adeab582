/* web_tokens.c - see web_tokens.h. */
#include "support/web_tokens.h"

#include <stdio.h>
#include <string.h>

web_tokens guard;

int guard_setup(void **state)
{
    (void)state;
    web_tokens_begin(&guard);
    return 0;
}

int guard_teardown(void **state)
{
    (void)state;
    web_tokens_remove(&guard);
    return 0;
}

void web_tokens_begin(web_tokens *t)
{
    assert_true(tempdir_make(t->dir));
    snprintf(t->file, sizeof t->file, "%s/tokens.json", t->dir);
}

void web_tokens_make(web_tokens *t, const web_token *tokens, size_t n)
{
    web_tokens_begin(t);
    assert_true(n <= WEB_TOKENS);
    for (size_t i = 0; i < n; i++) {
        srv_caller c = { 0 };
        weir_error err;
        char       text[SRV_TOKEN_TEXT];
        assert_true(srv_roles_parse(tokens[i].roles, &c.roles));
        if (tokens[i].name)
            snprintf(c.name, sizeof c.name, "%s", tokens[i].name);
        else
            snprintf(c.name, sizeof c.name, "token-%zu", i);
        for (char *rest = strcpy(text, tokens[i].types), *each;
             (each = strtok_r(rest, ",", &rest));)
            assert_true(srv_caller_add_type(&c, each));
        if (srv_tokens_add(t->file, &c, 1, text, &err))
            fail_msg("%s", err.msg);
        snprintf(t->bearer[i], sizeof t->bearer[i], "Authorization: Bearer %s\r\n", text);
    }
}

void web_tokens_remove(web_tokens *t)
{
    tempdir_remove(t->dir);
}

void web_token_says(web *w, const web_tokens *t, int token, int status, const char *part,
                    const char *method, const char *target, const char *body)
{
    web_answer a = web_call_with(w, method, target, token < 0 ? NULL : t->bearer[token], body);
    if (a.status != status || !strstr(a.body ? a.body : "", part))
        fail_msg("token %d: %s %s: %d %.300s, not %d with %s", token, method, target, a.status,
                 a.body ? a.body : "", status, part);
    web_free(&a);
}
