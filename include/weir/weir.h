/* weir.h - all of the library: include this. docs/api.md is the guide. Two patterns hold for all
 * calls.
 *
 * A call over many items takes an array of n items and an array of n results. If items can fail one
 * by one (weir_finish(), weir_renew(), weir_import()), each result begins with `weir_error err`.
 * When the call itself fails, nothing was done and every result has the error of the call. A call
 * that does all or nothing (weir_add_many()) has one error, and err.field names the item:
 * "jobs[3].type".
 *
 * Structs that the caller allocates end with `void *reserved[WEIR_RESERVED]`. A later version puts
 * a new member in the place of one of them, so that the size stays, and {0} means what it meant
 * before. The caller leaves them NULL, by {0} or a designated initialiser; a call that finds
 * another value fails with WEIR_EINVAL. Structs that weir allocates one by one (weir_job,
 * weir_page) grow at their end; those in its arrays (weir_line, weir_type_stats) have reserved
 * members, too. Values inside of others (weir_backoff, weir_keep, weir_header) and weir_error stay
 * as they are. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "weir/bus.h"
#include "weir/data.h"
#include "weir/error.h"
#include "weir/errors.h"
#include "weir/event.h"
#include "weir/future.h"
#include "weir/job.h"
#include "weir/observe.h"
#include "weir/queue.h"
#include "weir/remote.h"
#include "weir/schedule.h"
#include "weir/task.h"
#include "weir/trace.h"
#include "weir/worker.h"
#include "weir/workqueue.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.2.0"
#define WEIR_VERSION_NUMBER 0x000200   /* 0xMMmmpp: can be compared */

/* The version of the library that runs. */
WEIR_API const char *weir_version(void);

#ifdef __cplusplus
}
#endif
#endif
