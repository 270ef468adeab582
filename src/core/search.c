/* search.c - which text of a job is searched, and what a query asks for. */
#include "core/search.h"

#include <jansson.h>
#include <string.h>

/* ---- text ---- */

static void add_word(weir_buf *out, const char *text, size_t len)
{
    if (out->len)
        weir__buf_char(out, ' ');
    size_t from = out->len;
    weir__buf_add(out, text, len);
    for (size_t i = from; i < out->len; i++) {      /* "\u0000": no text for an index */
        if (!out->data[i])
            out->data[i] = ' ';
    }
}

static void add_number(weir_buf *out, const json_t *v)
{
    char   text[40];
    size_t len = json_dumpb(v, text, sizeof text, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    add_word(out, text, len < sizeof text ? len : sizeof text);
}

/* All values in `v`, and with `names` the names of members. Depth: the limit of valid data. */
static void add_values(weir_buf *out, json_t *v, bool names)
{
    const char *name;
    size_t      i;
    json_t     *child;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        json_object_foreach(v, name, child) {
            if (names)
                add_word(out, name, strlen(name));
            add_values(out, child, names);
        }
        break;
    case JSON_ARRAY:
        json_array_foreach(v, i, child)
            add_values(out, child, names);
        break;
    case JSON_STRING:
        add_word(out, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        add_number(out, v);
        break;
    case JSON_TRUE:
        add_word(out, "true", 4);
        break;
    case JSON_FALSE:
        add_word(out, "false", 5);
        break;
    case JSON_NULL:
        break;
    }
}

/* The values at "customer.name". An array on the way means each of its elements; a member whose
 * name has dots is found by its whole name. */
static void add_path(weir_buf *out, json_t *v, const char *path, size_t len)
{
    size_t  i;
    json_t *child;
    if (json_is_array(v)) {
        json_array_foreach(v, i, child)
            add_path(out, child, path, len);
        return;
    }
    if ((child = json_object_getn(v, path, len))) {
        add_values(out, child, false);
        return;
    }
    const char *dot = memchr(path, '.', len);
    if (!dot)
        return;
    size_t first = (size_t)(dot - path);
    if ((child = json_object_getn(v, path, first)))
        add_path(out, child, dot + 1, len - first - 1);
}

bool weir__search_text(weir_buf *out, const char *data, size_t len, const char *keys)
{
    json_error_t why;
    json_t      *v = json_loadb(data, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (!v && json_error_code(&why) == json_error_out_of_memory)
        return false;
    if (!v) {
        /* Valid, but beyond what jansson reads (1e999, twenty digits). The text itself has the
         * words, too; only single members cannot be distinguished. */
        if (!keys)
            add_word(out, data, len);
        return !out->failed;
    }
    if (!keys)
        add_values(out, v, true);
    while (keys && *(keys += strspn(keys, ", \t"))) {
        size_t n = strcspn(keys, ", \t");
        add_path(out, v, keys, n);
        keys += n;
    }
    json_decref(v);
    return !out->failed;
}

/* ---- words ---- */

static bool in_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c >= 0x80;
}

bool weir__search_word(const char *text, size_t len, size_t *pos, size_t *word, size_t *word_len)
{
    size_t i = *pos;
    while (i < len && !in_word((unsigned char)text[i]))
        i++;
    size_t from = i;
    while (i < len && in_word((unsigned char)text[i]))
        i++;
    *pos = i;
    *word = from;
    *word_len = i - from;
    return i > from;
}

static bool same(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char x = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] | 0x20) : a[i];
        char y = b[i] >= 'A' && b[i] <= 'Z' ? (char)(b[i] | 0x20) : b[i];
        if (x != y)
            return false;
    }
    return true;
}

static bool has_word(const char *text, size_t len, const char *want, size_t want_len, bool prefix)
{
    size_t pos = 0, word, n;
    while (weir__search_word(text, len, &pos, &word, &n)) {
        if ((prefix ? n >= want_len : n == want_len) && same(text + word, want, want_len))
            return true;
    }
    return false;
}

bool weir__search_match(const char *query, const char *text, size_t len)
{
    size_t query_len = strlen(query), pos = 0, word, n;
    bool   any = false;
    while (weir__search_word(query, query_len, &pos, &word, &n)) {
        any = true;
        if (!has_word(text, len, query + word, n, query[pos] == '*'))
            return false;
    }
    return any;
}
