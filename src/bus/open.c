/* open.c - the bus of all processes of a store. */
#include "bus/client.h"
#include "bus/cluster.h"
#include "runtime/envelopes.h"

_Static_assert(WEIR_MAX_ENVELOPE >= WEIR_MAX_BUS_BODY + WEIR_MAX_BUS_HEADERS_BYTES +
               WEIR_MAX_BUS_HEADERS * 16 + WEIR_MAX_BUS_ADDRESS + 100,
               "the longest message fits into an envelope");

static weir_code join(void *ctx, const weir_member *m, weir_error *err)
{
    return weir__queue_join(ctx, m, err);
}

static void leave(void *ctx)
{
    weir__queue_leave(ctx);
}

static weir_code post(void *ctx, const weir_envelope *e, weir_error *err)
{
    return weir__queue_post(ctx, e, err);
}

weir_code weir_bus_open(weir_bus **out, weir_queue *q, weir_error *err)
{
    weir_code rc = weir_bus_create(out, err);
    if (rc || !weir__queue_shared(q))
        return rc;
    weir_carrier carrier = { .join = join, .leave = leave, .post = post, .ctx = q,
                             .silent_ends = weir__queue_silent_ends(q) };
    rc = weir__queue_bridged(q) ? weir__client_join(*out, &carrier, err)
                                : weir__cluster_join(*out, &carrier, WEIR_BUS_JOIN_MS, err);
    if (rc) {
        weir_bus_close(*out);
        *out = NULL;
    }
    return rc;
}
