/* properties.h - a file of Java properties: names and values, of which a few are asked for. */
#ifndef WEIR_TASK_PROPERTIES_H
#define WEIR_TASK_PROPERTIES_H

#include "weir/task.h"

enum { WEIR_PROPERTIES_MAX = 65536 };       /* bytes of a file */

/* Read text as java.util.Properties does: comments, lines that go on, escapes. The last of several
 * values of a name holds; other names are left alone. WEIR_EINVAL: a value is wrong; the message
 * has the line. */
weir_code weir__properties_parse(weir_task_properties *out, const char *text, size_t len,
                                 weir_error *err);

#endif
