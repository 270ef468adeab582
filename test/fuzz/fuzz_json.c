/* fuzz_json.c - our check of JSON against jansson, and our writer against our check. */
#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "fuzz/fuzz.h"

enum { DEPTH = 1024 };

/* May jansson refuse what is valid? It has bounds for numbers and none of NUL in names. */
static bool own_limit(const json_error_t *err)
{
    enum json_error_code code = json_error_code(err);
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
           code == json_error_out_of_memory;
}

static void compare(const char *text, size_t len)
{
    size_t      where;
    const char *why;
    bool        ok = weir__json_valid(text, len, DEPTH, &where, &why);
    MUST(where <= len && ok == !*why);
    if (memchr(text, 0, len)) {         /* ends the text for jansson; for us it is never right */
        MUST(!ok);
        return;
    }
    if (why == weir__json_too_deep)     /* jansson goes deeper */
        return;
    json_error_t err;
    json_t      *v = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
    MUST(ok ? v || own_limit(&err) : !v);
    if (json_is_string(v) && *text == '"' && text[len - 1] == '"') {
        char  *mine = malloc(len);
        size_t n;
        MUST(mine && weir__json_text((weir_json_piece){ text, len }, mine, &n) ==
                         !memchr(json_string_value(v), 0, json_string_length(v)));
        MUST(n == json_string_length(v) && !memcmp(mine, json_string_value(v), n));
        free(mine);
    }
    json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (size)
        compare(text, size);
    else
        MUST(!weir__json_valid("", 0, DEPTH, NULL, NULL));

    weir_buf b = { 0 };
    weir__json_string(&b, text, size);
    MUST(!b.failed && weir__json_valid(b.data, b.len, 0, NULL, NULL));
    MUST(weir__utf8_valid(b.data, b.len));
    if (weir__utf8_valid(text, size)) {
        json_t *v = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        MUST(v && json_string_length(v) == size && !memcmp(json_string_value(v), text, size));
        json_decref(v);
        char  *back = malloc(b.len);
        size_t len;
        MUST(back && weir__json_text((weir_json_piece){ b.data, b.len }, back, &len));
        MUST(len == size && !memcmp(back, text, size));
        free(back);
    }
    weir__buf_fini(&b);
    return 0;
}
