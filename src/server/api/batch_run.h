/* batch_run.h - runs the operations of a batch and writes their answers. Operations that read run a
 * few at a time, and long ones step by step (weir_steps). So the size of the answers is checked
 * between the steps: any batch costs about SRV_MAX_BATCH_ANSWER. */
#ifndef WEIR_SERVER_API_BATCH_RUN_H
#define WEIR_SERVER_API_BATCH_RUN_H

#include "base/buf.h"
#include "op/op.h"
#include "server/http/request.h"

/* Set op, n, out (the start of the answer), answered and begun; zero the rest. */
typedef struct srv_batch_run {
    weir_op            *op;
    size_t              n;
    weir_buf            out;
    /* `out` has an answer for each operation. Reads that worked have no outputs any more, the
     * others are the caller's: weir__op_free(). */
    void              (*answered)(srv_request *r);
    bool                begun;          /* answered() must be called, whatever happens */
    size_t              at, end;        /* the group that runs: op[at] to op[end - 1] */
    size_t              reads, bytes;   /* that were answered, and how long their answers are */
    size_t              room;           /* bytes of `out` that are counted as unread */
    bool                full;           /* there is no room for more */
    size_t              wanted;         /* items of the long read that runs; 0: none runs */
    weir_gathered       all;            /* the operations that it has read */
} srv_batch_run;

/* Operations with an error are left out. b must be the first member of r->state. When there are
 * only reads, unless `begun`, and no room for another unread answer, the request is answered so at
 * once, and nothing runs. */
void srv_batch_run_start(srv_request *r, srv_batch_run *b);

#endif
