/* stats_json.h - counts, settings and times of types as JSON: for the API of the server, and for
 * weir_stats_json(). */
#ifndef WEIR_CORE_STATS_JSON_H
#define WEIR_CORE_STATS_JSON_H

#include "base/buf.h"
#include "weir/queue.h"

/* All but the last bracket, so that members can follow. */
void weir__type_json_open(weir_buf *out, const weir_type_stats *t);
void weir__type_json(weir_buf *out, const weir_type_stats *t);

#endif
