/* tokens.h - the tokens that callers of a server show, and the file they are kept in.
 *
 * A token is "wtk_" and 256 random bits. The file tokens.json in the data directory, for its owner
 * alone, has the name, the roles and a hash of each:
 *
 *     {"tokens":[{"name":"ci","roles":["produce"],"types":["mail"],"created_at":1794823850000,
 *                 "expires_at":1797415850000,"sha256":"9f86d081..."}]}
 *
 * It is replaced as a whole, so a reader sees it before or after a change. A name is one token, but
 * for the time of a rotation, when the old one and the new one both are valid.
 *
 * The server keeps the time of a token's last use beside it, in tokens.json.used (token_uses.c). */
#ifndef WEIR_SERVER_TOKENS_H
#define WEIR_SERVER_TOKENS_H

#include "server/access/auth.h"

enum {
    SRV_MAX_TOKENS     = 1000,
    SRV_TOKEN_HASH     = 32,                    /* bytes */
    SRV_TOKEN_TEXT     = 4 + 43 + 1,            /* bytes of a token, with the NUL */
    SRV_TOKENS_FILE    = 1024 * 1024,           /* bytes of the file at most */
    SRV_USE_MS         = 60 * 1000,             /* how exactly the last use is kept */
    SRV_EXPIRES_SOON_MS = 7 * 24 * 3600 * 1000  /* then its owner is warned */
};

typedef struct srv_token {
    srv_caller    who;
    int64_t       created_at;
    _Atomic int64_t used_at;                    /* last, to SRV_USE_MS; 0: never */
    unsigned char hash[SRV_TOKEN_HASH];
} srv_token;

typedef struct srv_tokens {
    srv_token *token;
    size_t     n;
} srv_tokens;

/* Read the file; a missing file has no tokens. *out belongs to the caller: srv_tokens_fini(),
 * also after an error. Errors: WEIR_EINVAL (what it says, or others may write to it), WEIR_EIO. */
weir_code srv_tokens_read(srv_tokens *out, const char *path, weir_error *err);
void srv_tokens_fini(srv_tokens *t);

/* Make a token for `who` and add it to the file; `text` is the only place where it ever is. Errors:
 * WEIR_EINVAL (the name), WEIR_ESTATE (there is one of that name), WEIR_ELIMIT, WEIR_EIO. */
weir_code srv_tokens_add(const char *path, const srv_caller *who, int64_t now,
                         char text[SRV_TOKEN_TEXT], weir_error *err);
/* Make a token with the name, roles and types of the old one, valid until expires_at. 0: valid for
 * as long as the old one was when it was made. If the file does not have that time, the new token
 * ends with the old one. The old one is valid until `until`; a token that an earlier rotation has
 * left is removed. Errors: as srv_tokens_add(), WEIR_ENOENT. */
enum { SRV_NEVER_EXPIRES = -1 };
weir_code srv_tokens_rotate(const char *path, const char *name, int64_t now, int64_t until,
                            int64_t expires_at, char text[SRV_TOKEN_TEXT], weir_error *err);
/* Remove every token of that name. Errors: WEIR_ENOENT, WEIR_EIO. */
weir_code srv_tokens_remove(const char *path, const char *name, weir_error *err);

/* The token that `text` is; NULL: none. Takes as long whichever it is. */
srv_token *srv_tokens_find(const srv_tokens *t, const char *text);

/* token_uses.c: set used_at of each from the file beside `path`, where that is later. A file that
 * is missing or damaged says nothing. */
void srv_tokens_read_uses(srv_tokens *t, const char *path);
/* Write that file anew. Errors: as srv_file_replace_soon(). */
weir_code srv_tokens_write_uses(const srv_tokens *t, const char *path, weir_error *err);

#endif
