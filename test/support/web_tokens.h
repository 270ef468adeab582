/* web_tokens.h - a file of tokens for a server of a test, and requests with each of them. */
#ifndef WEIR_TEST_WEB_TOKENS_H
#define WEIR_TEST_WEB_TOKENS_H

#include "server/access/tokens.h"
#include "support/server_rig.h"

enum { WEB_TOKENS = 10, WEB_BEARER = SRV_TOKEN_TEXT + 40 };

typedef struct web_token {
    const char *roles, *types;      /* as `weir token` takes them; types "": all */
    const char *name;               /* NULL: "token-N" */
} web_token;

typedef struct web_tokens {
    char dir[TEMPDIR_MAX];
    char file[TEMPDIR_MAX + 16];            /* for srv_options.tokens_file */
    char bearer[WEB_TOKENS][WEB_BEARER];    /* the header of each, with \r\n */
} web_tokens;

/* One for the tests of a file. */
extern web_tokens guard;
int guard_setup(void **state);          /* web_tokens_begin() */
int guard_teardown(void **state);

/* A directory, and in it the file "tokens.json", which has no tokens yet. */
void web_tokens_begin(web_tokens *t);
/* ... with these n tokens, at most WEB_TOKENS. */
void web_tokens_make(web_tokens *t, const web_token *tokens, size_t n);
void web_tokens_remove(web_tokens *t);

/* web_says() with a token; -1: without one. */
void web_token_says(web *w, const web_tokens *t, int token, int status, const char *part,
                    const char *method, const char *target, const char *body);

#endif
