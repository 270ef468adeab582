/* json.h - is this text JSON (RFC 8259)? Taking it apart without changing a byte, and writing it.
 * core/fields.h reads whole objects into structs on top of this. */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include "base/buf.h"

/* One value with nothing behind it but white space, valid UTF-8, no NUL, nesting at most `depth`.
 * When it is not, *where is the offset and *why a short reason ("':' expected"); for the nesting
 * that is weir__json_too_deep itself. A `depth` over 1024 is taken as that. */
bool weir__json_valid(const char *text, size_t len, int depth, size_t *where, const char **why);
extern const char weir__json_too_deep[];

/* Step through an object or array that is known to be valid. The pieces point into the text,
 * unchanged: names and strings in their quotes, numbers with all their digits. */
typedef struct weir_json_piece {
    const char *text;
    size_t      len;
} weir_json_piece;
typedef struct weir_json_walk {
    const char *at, *end;
    bool        object;
} weir_json_walk;
/* False: `value` is neither object nor array. */
bool weir__json_open(weir_json_walk *w, weir_json_piece value);
/* The next member or element (`name` is empty then). False: that was all. */
bool weir__json_next(weir_json_walk *w, weir_json_piece *name, weir_json_piece *value);
/* The same, but where the value ends is not looked for: `value` goes to the end of the text. To go
 * on, set w->at to the end. When that was all, name->text is the bracket that closes. So who walks
 * through what is nested anyway need not have it searched for its end at each level. */
bool weir__json_begin(weir_json_walk *w, weir_json_piece *name, weir_json_piece *value);
const char *weir__json_end(weir_json_piece value);

/* The characters of a string that is known to be valid, quotes and all. `to` has room for
 * string.len bytes and ends with NUL after. False: there is a zero byte in it. */
bool weir__json_text(weir_json_piece string, char *to, size_t *len);

/* Is this text valid UTF-8 without NUL? */
bool weir__utf8_valid(const char *text, size_t len);

/* A JSON string in quotes, escaped where it must be; bytes that are not UTF-8 become U+FFFD. */
void weir__json_string(weir_buf *out, const char *text, size_t len);
/* A text with its NUL; NULL: null. */
void weir__json_text_or_null(weir_buf *out, const char *text);

/* Valid JSON as it is, but on one line: outside of strings a line break is only white space, and
 * inside it cannot be. */
void weir__json_line(weir_buf *out, const char *json, size_t len);

#endif
