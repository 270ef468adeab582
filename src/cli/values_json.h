/* values_json.h - values of a job (weir_spec.values) as the command line has them. */
#ifndef WEIR_CLI_VALUES_JSON_H
#define WEIR_CLI_VALUES_JSON_H

#include "weir/weir.h"

/* "NAME=VALUE" n times (at least once) as a JSON object: free(). A value that is not JSON is a
 * text. NULL: err says what is wrong. */
char *cli_values_json(const char *const *text, size_t n, weir_error *err);

#endif
