/* record.h - a job as the scripts keep it: see layout.h. */
#ifndef WEIR_STORE_REDIS_RECORD_H
#define WEIR_STORE_REDIS_RECORD_H

#include "store/redis/layout.h"
#include "store/redis/msgpack.h"

/* What a record holds beside the job. */
typedef struct redis_beside {
    uint64_t lines;                 /* of its log, ever: only the script counts them */
    bool     data;                  /* its data is in the record */
} redis_beside;

/* Append a record. Without times its first three numbers are left out: the script has them. */
void weir__record_put(weir_buf *b, const weir_job *j, redis_beside beside, bool with_times);

/* Does this layout keep data of that length in the record? */
bool weir__record_holds(const redis_layout *layout, size_t data_len);

/* Make a job of a record; *out belongs to the caller: weir_job_release(). `data`: if the record has
 * none; NULL: {}. `beside` may be NULL. WEIR_ECORRUPT: it is not one; WEIR_ENOMEM. */
weir_code weir__record_get(weir_job **out, uint64_t id, const char *record, size_t len,
                           const char *data, size_t data_len, redis_beside *beside,
                           weir_error *err);

/* Append an event, as in a message. */
void weir__record_event(weir_buf *b, weir_event_kind kind, const weir_job *j, weir_state state,
                        const char *text, size_t len);
enum { WEIR__EVENT_FIELDS = 8, WEIR__MESSAGE_HEAD = 4 };

/* The settings of a type as its record has them, and a type's record. */
void weir__record_settings(weir_buf *b, const weir_settings *s);
bool weir__record_type(const char *record, size_t len, weir_type_stats *out, bool *own_settings);

#endif
