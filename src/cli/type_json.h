/* type_json.h - what is known of a type, as JSON. */
#ifndef WEIR_CLI_TYPE_JSON_H
#define WEIR_CLI_TYPE_JSON_H

#include "cli/out_json.h"

/* `name` is NULL in an array and on a line of its own. */
void type_json(jw *w, const char *name, const weir_type_stats *t);

#endif
