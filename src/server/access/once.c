/* once.c - idempotency keys of callers: see once.h. */
#include "server/access/once.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum { SHA256_BYTES = 32 };

/* A token's name has no colon, so two callers never get the same text. */
bool srv_once_key(const srv_request *r, const char *route, const char *key,
                  char out[WEIR_MAX_TOKEN + 1])
{
    unsigned char digest[SHA256_BYTES];
    size_t        len = strlen(key);
    int           n = snprintf(out, WEIR_MAX_TOKEN + 1, "%s:%s:", route, r->who.name);
    if ((size_t)n + 1 + len <= WEIR_MAX_TOKEN && weir__utf8_valid(key, len)) {
        out[n] = '=';                               /* as it is */
        memcpy(out + n + 1, key, len + 1);
        return true;
    }
    if (EVP_Digest(key, len, digest, NULL, EVP_sha256(), NULL) != 1)
        return false;
    /* A name of 63 bytes leaves room for most of the digest, and for all that matters. */
    for (size_t i = 0; i < sizeof digest && n + 2 <= WEIR_MAX_TOKEN; i++)
        n += snprintf(out + n, WEIR_MAX_TOKEN + 1 - (size_t)n, "%02x", digest[i]);
    return true;
}

bool srv_once_digest(const char *body, size_t len, uint64_t *out)
{
    unsigned char digest[SHA256_BYTES];
    if (EVP_Digest(body, len, digest, NULL, EVP_sha256(), NULL) != 1)
        return false;
    memcpy(out, digest, sizeof *out);
    *out += !*out;
    return true;
}
