/* take_id.h - take one job by its id, whatever its time. */
#ifndef WEIR_RUNTIME_TAKE_ID_H
#define WEIR_RUNTIME_TAKE_ID_H

#include "weir/worker.h"

/* As weir_take() for the job `id`, which must be inactive or delayed. `worker`: NULL is this
 * program's name. Errors: WEIR_ENOENT; WEIR_ESTATE: it is in another state, or this process must
 * run another job alone. */
weir_code weir__take_id(weir_queue *q, uint64_t id, int64_t lease_ms, const char *worker,
                        weir_job **out, weir_error *err);

#endif
