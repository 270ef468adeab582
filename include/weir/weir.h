/* weir.h - a job queue. Include this; docs/api.md is the guide. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "weir/bus.h"
#include "weir/data.h"
#include "weir/error.h"
#include "weir/event.h"
#include "weir/future.h"
#include "weir/job.h"
#include "weir/queue.h"
#include "weir/remote.h"
#include "weir/schedule.h"
#include "weir/worker.h"
#include "weir/workqueue.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.2.0"
#define WEIR_VERSION_NUMBER 0x000200   /* 0xMMmmpp: can be compared */

WEIR_API const char *weir_version(void);        /* of the library that runs */

#ifdef __cplusplus
}
#endif
#endif
