/* data.h - read single members of a job's data, and its values, without a JSON library.
 *
 *     int64_t     frames = weir_data_int(job, "frames", 100);
 *     const char *city = weir_data_text(job, "user.address.city", "unknown");
 *     const char *sku = weir_data_text(job, "items[2].sku", NULL);
 *
 * A path names members, with dots between them, and elements of lists by their number, from 0. A
 * name that has a dot or a bracket in it is written in quotes: "prices[\"a.b\"]". "" is all of the
 * data. If a name occurs twice, the last one counts.
 *
 * Every function returns `otherwise` if the member is missing or has another type. No function
 * changes the job, and any thread may call them. */
#ifndef WEIR_DATA_H
#define WEIR_DATA_H

#include "weir/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A whole number that an int64_t can hold: 42, but also 42.0 and 4.2e1. */
WEIR_API int64_t weir_data_int(const weir_job *job, const char *path, int64_t otherwise);

/* Any number; true or false. */
WEIR_API double weir_data_number(const weir_job *job, const char *path, double otherwise);
WEIR_API bool weir_data_bool(const weir_job *job, const char *path, bool otherwise);

/* The characters of a string. They are kept with the job and are valid until weir_job_free(),
 * or until the handler has returned. A string that contains a zero byte counts as another type;
 * without memory for the text, the answer is `otherwise`, too. */
WEIR_API const char *weir_data_text(weir_job *job, const char *path, const char *otherwise);

/* The same for values of the job (weir_spec.values), by their names. */
WEIR_API int64_t weir_value_int(const weir_job *job, const char *name, int64_t otherwise);
WEIR_API double weir_value_number(const weir_job *job, const char *name, double otherwise);
WEIR_API bool weir_value_bool(const weir_job *job, const char *name, bool otherwise);
WEIR_API const char *weir_value_text(weir_job *job, const char *name, const char *otherwise);

/* Is the text one JSON value that weir takes: UTF-8, at most WEIR_MAX_DEPTH levels deep? */
WEIR_API bool weir_json_valid(const char *text, size_t len);

#ifdef __cplusplus
}
#endif
#endif
