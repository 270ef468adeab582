/* record.h - a job as the scripts keep it: see layout.h. */
#ifndef WEIR_STORE_REDIS_RECORD_H
#define WEIR_STORE_REDIS_RECORD_H

#include "store/redis/layout.h"
#include "store/redis/msgpack.h"

/* Append a record. `lines` is the number of log lines, which only the script counts. Without times
 * its first three numbers are left out: the script has them. */
void weir__record_put(weir_buf *b, const weir_job *j, uint64_t lines, bool with_times);

/* Make a job of a record; *out belongs to the caller: weir_job_release(). `data` may be NULL: {}.
 * `lines` may be NULL. WEIR_ECORRUPT: it is not one; WEIR_ENOMEM. */
weir_code weir__record_get(weir_job **out, uint64_t id, const char *record, size_t len,
                           const char *data, size_t data_len, uint64_t *lines, weir_error *err);

/* Append an event, as in a message. */
void weir__record_event(weir_buf *b, weir_event_kind kind, const weir_job *j, weir_state state,
                        const char *text, size_t len);
enum { WEIR__EVENT_FIELDS = 8, WEIR__MESSAGE_HEAD = 4 };

/* The settings of a type as its record has them, and a type's record. */
void weir__record_settings(weir_buf *b, const weir_settings *s);
bool weir__record_type(const char *record, size_t len, weir_type_stats *out, bool *own_settings);

#endif
