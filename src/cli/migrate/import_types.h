/* import_types.h - lines of an export that are no jobs: what the first one says of types, and
 * schedules. */
#ifndef WEIR_CLI_IMPORT_TYPES_H
#define WEIR_CLI_IMPORT_TYPES_H

#include "weir/weir.h"

typedef struct import_type {
    char          type[WEIR_MAX_TYPE + 1];
    bool          paused;
    bool          set;              /* has settings */
    weir_settings settings;
} import_type;

/* How the line of a schedule begins; its JSON object and a bracket follow. */
#define IMPORT_SCHEDULE "{\"weir\":\"schedule\",\"schedule\":"

/* Is this line about types, rather than a job? */
bool import_is_types(const char *line, size_t len);

/* Read it. *out belongs to the caller: free(). An error names the member. */
weir_code import_types(const char *line, size_t len, import_type **out, size_t *n, weir_error *err);

#endif
