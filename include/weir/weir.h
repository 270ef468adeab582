/* weir.h - a job queue. Include this; docs/api.md is the guide. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "weir/data.h"
#include "weir/error.h"
#include "weir/event.h"
#include "weir/future.h"
#include "weir/job.h"
#include "weir/queue.h"
#include "weir/remote.h"
#include "weir/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.1.0"
#define WEIR_VERSION_NUMBER 0x000100   /* 0xMMmmpp: can be compared */

WEIR_API const char *weir_version(void);        /* of the library that runs */

#ifdef __cplusplus
}
#endif
#endif
