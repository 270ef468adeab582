/* take_id.c - take one job by its id: it is made active for this process by hand, then read. */
#include "runtime/take_id.h"

#include "runtime/delivery.h"
#include "runtime/gate.h"
#include "weir/remote.h"

enum { READY = WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_DELAYED) };

static void give_back(weir_queue *q, weir_job **job)
{
    weir_ending ending = { .id = (*job)->id, .delivery = (*job)->delivery,
                           .outcome = WEIR_OUTCOME_RETURN };
    weir_finish_async(q, &ending, 1, NULL, NULL, NULL);     /* else its lease runs out */
    weir_job_free(*job);
    *job = NULL;
}

weir_code weir__take_id(weir_queue *q, uint64_t id, int64_t lease_ms, const char *worker,
                        weir_job **out, weir_error *err)
{
    *out = NULL;
    const weir_change mine = { .state = WEIR_STATE_ACTIVE, .from = READY, .worker = worker,
                               .lease_ms = lease_ms };
    weir_pass         pass = weir__queue_enter_by_hand(q);
    if (!pass)
        return weir_fail(err, WEIR_ESTATE, "this process has a job that must run alone; try again "
                         "when it has ended");
    int64_t   asked_at = weir__queue_steady(q);
    weir_code rc = weir_update(q, id, &mine, NULL, err);
    if (!rc)
        rc = weir_get(q, id, out, err);     /* if it fails, the lease runs out */
    weir_op_take take = { .jobs = out, .n_jobs = 1 };
    bool         keep = weir__queue_answered(q, pass, rc ? NULL : &take, NULL);
    if (rc)
        return rc;
    if (!keep) {
        give_back(q, out);
        return weir_fail(err, WEIR_ESTATE, "a worker died with this job, so it must run alone; try "
                         "again when this process has no other");
    }
    if (!weir__delivery_create(q, *out, NULL, lease_ms, asked_at)) {
        weir__queue_left(q, *out);
        give_back(q, out);
        return weir_fail(err, WEIR_ENOMEM, "task: out of memory");
    }
    return WEIR_OK;
}
