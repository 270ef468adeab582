/* record.h - a job as the functions keep it: see layout.h. */
#ifndef WEIR_STORE_REDIS_RECORD_H
#define WEIR_STORE_REDIS_RECORD_H

#include "store/redis/layout/layout.h"
#include "store/redis/link/msgpack.h"

/* The parts of a record beside the job. */
typedef struct redis_beside {
    uint64_t lines;                 /* of its log, ever */
    bool     data;                  /* its data is in the spec */
} redis_beside;

/* Append a number, big-endian. */
void weir__put_number(weir_buf *b, int bytes, int64_t n);

/* Its flags, REDIS_..., but for REDIS_APART, which is for whoever stores it to say. */
int64_t weir__record_flags(const weir_job *j);

/* Append the two strings of a record. */
void weir__spec_put(weir_buf *b, const weir_job *j, bool with_data);
void weir__run_put(weir_buf *b, const weir_job *j, redis_beside beside);

/* Bytes of the first number of a spec, which is the function's to put. */
#define X(m, name, k, j, s, l, part, at, bytes) WEIR__BYTES_OF_##name = bytes,
enum { WEIR_JOB_NUMBERS(X) WEIR__SPEC_TIME = WEIR__BYTES_OF_created_at };
#undef X

/* Does this layout keep data of that length in the spec? */
bool weir__record_holds(const redis_layout *layout, size_t data_len);

/* Make a job of a record; *out belongs to the caller: weir_job_free(). Without data it has {}.
 * `beside` may be NULL. WEIR_ECORRUPT: it is not one; WEIR_ENOMEM. */
weir_code weir__record_get(weir_job **out, uint64_t id, mp_slice run, mp_slice spec,
                           redis_beside *beside, weir_error *err);

/* Append an event, as in a message. */
void weir__record_event(weir_buf *b, const weir_event *e);

/* The settings of a type as its record has them, and a type's record. */
void weir__record_settings(weir_buf *b, const weir_settings *s);
bool weir__record_type(const char *record, size_t len, weir_type_stats *out, bool *has_settings);

#endif
