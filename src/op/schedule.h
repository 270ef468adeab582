/* schedule.h - a schedule as the text that stores keep: a JSON object with the members of
 * weir_schedule. Pure: no lock, any thread. */
#ifndef WEIR_OP_SCHEDULE_H
#define WEIR_OP_SCHEDULE_H

#include "core/fields.h"
#include "weir/schedule.h"

weir_code weir__schedule_name_check(const char *name, weir_error *err);

/* Is it the record of a schedule of this name that can be fired? */
weir_code weir__schedule_record_check(const char *name, const char *record, size_t len,
                                      weir_error *err);

/* Is everything of it that a caller gives right: expression, zone, limits, job? */
weir_code weir__schedule_check(const weir_schedule *s, weir_error *err);

void weir__schedule_write(weir_buf *out, const weir_schedule *s);

/* The texts of *out are in the reader's memory, or in `record`. */
weir_code weir__schedule_read(weir_reader *in, const char *record, size_t len, weir_schedule *out);

#endif
