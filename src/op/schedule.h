/* schedule.h - a schedule as the text that stores keep: a JSON object with the members of
 * weir_schedule. Pure: no lock, any thread. */
#ifndef WEIR_OP_SCHEDULE_H
#define WEIR_OP_SCHEDULE_H

#include "core/fields.h"
#include "weir/schedule.h"

weir_code weir__schedule_name_check(const char *name, weir_error *err);
/* Is the name reserved for weir (WEIR_OWN_SCHEDULE)? */
bool weir__schedule_is_own(const char *name);

/* Is it the record of a schedule of this name that can be fired? */
weir_code weir__schedule_record_check(const char *name, const char *record, size_t len,
                                      weir_error *err);

/* Is everything of it that a caller gives right: expression, zone, limits, job? */
weir_code weir__schedule_check(const weir_schedule *s, weir_error *err);

/* The job that a firing adds. The values of the job are in `values`. */
weir_code weir__schedule_spec(const weir_schedule *s, int64_t at, weir_buf *values, weir_spec *out,
                              weir_error *err);

/* As JSON for people and programs, all but the last bracket. */
void weir__schedule_json(weir_buf *out, const weir_schedule *s);

/* As the record that stores keep: that, and what numbers its firings. */
void weir__schedule_write(weir_buf *out, const weir_schedule *s);

/* The texts of *out are in the reader's memory, or in `record`. */
weir_code weir__schedule_read(weir_reader *in, const char *record, size_t len, weir_schedule *out);

/* A schedule from a caller: members that the store sets are unknown, and the name may be
 * missing. */
weir_code weir__schedule_read_given(weir_reader *in, weir_json_piece all, weir_schedule *out);

#endif
