/* zone.h - time zones of the IANA database, as the system has them in /usr/share/zoneinfo (or in
 * the directory that TZDIR names). Nothing here reads or sets TZ, so one process can use any number
 * of zones at the same time.
 *
 * A zone is a list of spans. Within a span, local time = UTC + offset. Times are in seconds. */
#ifndef WEIR_CORE_ZONE_H
#define WEIR_CORE_ZONE_H

#include <stddef.h>
#include <stdint.h>
#include "weir/error.h"

typedef struct weir_zone weir_zone;

typedef struct weir_zone_span {
    int64_t from, until;        /* UTC; INT64_MIN and INT64_MAX: no end on that side */
    int32_t offset;             /* seconds east of UTC */
    int32_t before;             /* the offset of the span before; == offset if this is the first */
} weir_zone_span;

enum { WEIR_ZONE_NAME_MAX = 64, WEIR_ZONE_FILE_MAX = 256 * 1024 };

/* The zone of this name; NULL means "UTC", which needs no file. The first use of a name reads its
 * file, and the zone stays in memory until the process ends. Any thread. WEIR_EINVAL: no such zone;
 * WEIR_ECORRUPT: its file is not understood; WEIR_EIO, WEIR_ENOMEM. */
weir_code weir__zone_find(const weir_zone **out, const char *name, weir_error *err);

const char *weir__zone_name(const weir_zone *z);

/* The span that contains `at`. */
weir_zone_span weir__zone_span(const weir_zone *z, int64_t at);

/* The zone of a file's bytes (TZif, RFC 8536). *out is the caller's: weir__zone_destroy().
 * weir__zone_find() is the usual way to a zone. */
weir_code weir__zone_parse(weir_zone **out, const char *name, const void *bytes, size_t len,
                           weir_error *err);
void      weir__zone_destroy(weir_zone *z);

#endif
