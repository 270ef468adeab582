/* carrier.h - the way from a bus to other processes: as in weir_store_ops. */
#ifndef WEIR_BUS_CARRIER_H
#define WEIR_BUS_CARRIER_H

#include "store/envelope.h"
#include "weir/error.h"

typedef struct weir_carrier {
    weir_code (*join)(void *ctx, const weir_member *m, weir_error *err);
    void      (*leave)(void *ctx);
    weir_code (*post)(void *ctx, const weir_envelope *e, weir_error *err);
    void       *ctx;
    bool        silent_ends;
} weir_carrier;

#endif
