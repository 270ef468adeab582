/* token_uses.c - when tokens were last used: a file beside the file of the tokens.
 *
 *     {"used":{"9f86d081884c7d65":1794823850000}}
 *
 * A token is named by the first bytes of its hash: during a rotation two have the same name. The
 * file is a note for people, so it is written without waiting for the disk. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "server/access/file.h"
#include "server/access/tokens.h"

enum { KEY_BYTES = 8 };

static void key_of(const srv_token *t, char out[2 * KEY_BYTES + 1])
{
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", t->hash[i]);
}

static bool path_of(const char *tokens, char *out, size_t size)
{
    return (size_t)snprintf(out, size, "%s.used", tokens) < size;
}

void srv_tokens_read_uses(srv_tokens *t, const char *path)
{
    char     file[4096];
    weir_buf text = { 0 };
    if (path_of(path, file, sizeof file) && !srv_file_read(file, &text, NULL)) {
        json_t       *all = json_loadb(text.data, text.len, 0, NULL);
        const json_t *used = json_object_get(all, "used");
        for (size_t i = 0; i < t->n; i++) {
            char key[2 * KEY_BYTES + 1];
            key_of(&t->token[i], key);
            int64_t at = json_integer_value(json_object_get(used, key));
            if (at > t->token[i].used_at)
                t->token[i].used_at = at;
        }
        json_decref(all);
    }
    weir__buf_fini(&text);
}

weir_code srv_tokens_write_uses(const srv_tokens *t, const char *path, weir_error *err)
{
    char      file[4096], key[2 * KEY_BYTES + 1];
    weir_buf  text = { 0 };
    weir_code rc;
    if (!path_of(path, file, sizeof file))
        return weir_fail(err, WEIR_EINVAL, "tokens: the path is too long");
    weir__buf_str(&text, "{\"used\":{");
    for (size_t i = 0, n = 0; i < t->n; i++) {
        int64_t at = t->token[i].used_at;
        if (!at)
            continue;
        key_of(&t->token[i], key);
        weir__buf_printf(&text, "%s\n\"%s\":%lld", n++ ? "," : "", key, (long long)at);
    }
    weir__buf_str(&text, "}}\n");
    rc = text.failed ? weir_fail(err, WEIR_ENOMEM, "tokens: out of memory")
                     : srv_file_replace_soon(file, text.data, text.len, err);
    weir__buf_fini(&text);
    return rc;
}
