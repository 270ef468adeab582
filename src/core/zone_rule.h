/* zone_rule.h - the rule at the end of a zone's file, which holds for all times after the file's
 * table: "CET-1CEST,M3.5.0,M10.5.0/3" (POSIX's TZ, with the extensions of RFC 8536). Pure. */
#ifndef WEIR_CORE_ZONE_RULE_H
#define WEIR_CORE_ZONE_RULE_H

#include "core/zone.h"

/* A day of a year and a time of that day, in seconds, which may be negative or beyond the day. */
typedef struct weir_zone_day {
    enum { ZONE_JULIAN, ZONE_DAY, ZONE_WEEKDAY } kind;
    int     month, week, day;       /* JULIAN: day 1 to 365 without leap days, DAY: 0 to 365 */
    int32_t time;
} weir_zone_day;

typedef struct weir_zone_rule {
    bool          has_dst;
    int32_t       std, dst;         /* seconds east of UTC */
    weir_zone_day start, end;       /* of daylight saving time */
} weir_zone_rule;

/* False: `text` is no such rule. */
bool weir__zone_rule_parse(weir_zone_rule *out, const char *text);

weir_zone_span weir__zone_rule_span(const weir_zone_rule *r, int64_t at);

#endif
