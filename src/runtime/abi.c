/* abi.c - the sizes of the public structs that callers allocate or that are inside of these. A
 * program may run with a later library than it was compiled with, so these sizes never change: a
 * new member takes the place of a reserved one (weir.h). The sizes are those of 64-bit systems. */
#include "weir/retryqueue.h"
#include "weir/weir.h"

#define SIZES(X)                                                                                  \
    X(weir_error, 340) X(weir_backoff, 32) X(weir_keep, 16) X(weir_header, 16)                    \
    X(weir_cursor, 16) X(weir_reply, 1048)                                                        \
    /* filled by the caller, who leaves the reserved members NULL */                              \
    X(weir_spec, 168) X(weir_filter, 56) X(weir_options, 88) X(weir_token, 56)                    \
    X(weir_change, 128) X(weir_query, 128) X(weir_settings, 72) X(weir_incoming, 64)               \
    X(weir_pool_config, 80) X(weir_taking, 80) X(weir_ending, 88) X(weir_lease, 56)               \
    X(weir_schedule, 1632) X(weir_content, 72) X(weir_expect, 64) X(weir_mailbox_config, 64)       \
    X(weir_consumer_config, 64) X(weir_service_config, 64) X(weir_workqueue_config, 72)           \
    X(weir_task_spec, 160) X(weir_tasks_config, 64) X(weir_task_query, 80)                        \
    X(weir_task_service, 64) X(weir_observing, 128) X(weir_action, 48) X(weir_trace_config, 56)   \
    X(weir_retryqueue_options, 72) X(weir_retryqueue_observing, 56) X(weir_retry_task, 64)        \
    /* filled by weir */                                                                          \
    X(weir_added, 56) X(weir_updated, 40) X(weir_metrics, 144) X(weir_info, 432)                  \
    X(weir_imported, 392) X(weir_ended, 392) X(weir_renewed, 376) X(weir_pool_stats, 80)          \
    X(weir_workqueue_stats, 96) X(weir_task_submitted, 448) X(weir_trace_stats, 64)               \
    X(weir_task_properties, 240)                                                                  \
    /* in arrays that weir allocates */                                                           \
    X(weir_line, 56) X(weir_moment, 48) X(weir_type_stats, 216) X(weir_firing, 64)                \
    X(weir_item, 48) X(weir_bus_address, 72) X(weir_error_group, 80)

#define SAME_SIZE(type, size)                                                                     \
    _Static_assert(sizeof(void *) != 8 || sizeof(type) == (size),                                 \
                   "the size of " #type " has changed: use a reserved member");
SIZES(SAME_SIZE)
