/* json.h - is this text JSON (RFC 8259)? And writing it. Reading values is jansson's work. */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include "base/buf.h"

/* One value with nothing behind it but white space, valid UTF-8, no NUL, nesting at most `depth`.
 * When it is not, *where is the offset and *why a short reason ("':' expected"); for the nesting
 * that is weir__json_too_deep itself. A `depth` over 1024 is taken as that. */
bool weir__json_valid(const char *text, size_t len, int depth, size_t *where, const char **why);
extern const char weir__json_too_deep[];

/* Is this text valid UTF-8 without NUL? */
bool weir__utf8_valid(const char *text, size_t len);

/* A JSON string in quotes, escaped where it must be; bytes that are not UTF-8 become U+FFFD. */
void weir__json_string(weir_buf *out, const char *text, size_t len);

#endif
