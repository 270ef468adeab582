/* condition.h - the inside of weir/condition.h: parsing and asking, as pure functions.
 *
 *     or       = and { "or" and }
 *     and      = not { "and" not }
 *     not      = "not" not | "(" or ")" | value [ compare value ]
 *     compare  = "=" "!=" "<" "<=" ">" ">="
 *     value    = "text" | number | true | false | null | data.PATH | values.NAME | now.FIELD
 *              | job.FIELD
 */
#ifndef WEIR_CORE_CONDITION_H
#define WEIR_CORE_CONDITION_H

#include "weir/condition.h"

/* The text it was made from. */
const char *weir__condition_text(const weir_condition *c);

/* The byte of a path of data.h that cannot be; SIZE_MAX: it is right. In data.c. */
size_t weir__path_wrong(const char *path);

#endif
