/* probe.h - static tracepoints (USDT) at add, take and finish, for bpftrace, perf and SystemTap:
 * docs/tracing.md lists them. A probe that nobody watches costs a no-operation instruction. Without
 * sys/sdt.h at build time no probes exist. */
#ifndef WEIR_RUNTIME_PROBE_H
#define WEIR_RUNTIME_PROBE_H

#include "op/op.h"

#if WEIR_WITH_PROBES
/* The operation was carried out. */
void weir__probe_op(const weir_op *op);
#else
static inline void weir__probe_op(const weir_op *op)
{
    (void)op;
}
#endif

#endif
