/* probe.c - static tracepoints. See probe.h. */
#include "runtime/probe.h"

#if WEIR_WITH_PROBES
#include <sys/sdt.h>

static void probe_take(const weir_op_take *take)
{
    for (size_t i = 0; i < take->n_jobs; i++)
        DTRACE_PROBE3(weir, take, take->jobs[i]->id, take->jobs[i]->type, take->jobs[i]->delivery);
}

void weir__probe_op(const weir_op *op)
{
    if (op->err.code)
        return;
    if (op->kind == WEIR_OP_ADD) {
        for (size_t i = 0; op->u.add.out && i < op->u.add.n; i++)
            DTRACE_PROBE2(weir, add, op->u.add.out[i].id, op->u.add.specs[i].type);
    } else if (op->kind == WEIR_OP_TAKE) {
        probe_take(&op->u.take);
    } else if (op->kind == WEIR_OP_FINISH) {
        DTRACE_PROBE3(weir, finish, op->u.finish.id, op->u.finish.delivery,
                      (int)op->u.finish.outcome);
        probe_take(&op->u.finish.next);
    }
}
#endif
