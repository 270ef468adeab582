/* out_json.h - write JSON to a stream. Commas are put by themselves; names are NULL inside arrays.
 * One line a value: jw_end() of the outermost one ends the line. */
#ifndef WEIR_CLI_OUT_JSON_H
#define WEIR_CLI_OUT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "weir/weir.h"

typedef struct jw {
    FILE *out;
    int   depth;
    bool  comma;
} jw;

void jw_object(jw *w, const char *name);
void jw_array(jw *w, const char *name);
void jw_end(jw *w, char bracket);                                  /* '}' or ']' */
void jw_text(jw *w, const char *name, const char *text);           /* NULL: null */
void jw_int(jw *w, const char *name, int64_t n);
void jw_real(jw *w, const char *name, double n);
void jw_bool(jw *w, const char *name, bool b);
void jw_raw(jw *w, const char *name, const char *json, size_t len); /* already JSON; NULL: null */

/* JSON as it is; if `out` is a terminal, hidden characters (weir_is_hidden()) are escaped. */
void jw_json(FILE *out, const char *json, size_t len);

/* On one line, as weir_job_json(), weir_stats_json(), weir_error_groups_json() and weir_type_json()
 * write it. */
weir_code jw_job(FILE *out, const weir_job *job, weir_error *err);
weir_code jw_stats(FILE *out, const weir_stats *stats, weir_error *err);
weir_code jw_errors(FILE *out, const weir_error_groups *groups, weir_error *err);
weir_code jw_type(FILE *out, const weir_type_stats *type, weir_error *err);

/* A JSON string in quotes. Bytes that are not UTF-8, and NUL, become U+FFFD. */
void jw_string(FILE *out, const char *text, size_t len);

#endif
