/* ops.c - several operations under one future: see ops.h, and group.h for how. */
#include "runtime/ops.h"

#include "runtime/group.h"

typedef struct batch {
    weir_group     group;
    weir_op       *ops;             /* the caller's */
    weir_group_one one[];
} batch;

static void fill(void *ctx, bool wanted)
{
    batch *b = ctx;
    (void)wanted;
    for (size_t i = 0; i < b->group.n; i++)
        b->ops[i] = b->one[i].ticket.op;
}

weir_code weir__ops_check(weir_queue *q, weir_op *op, weir_error *err)
{
    weir_code rc = weir__op_check(op, err);
    return !rc && q->objects_only ? weir__op_check_objects(op, err) : rc;
}

weir_code weir__ops_run_async(weir_queue *q, weir_op *ops, size_t n, weir_future **f,
                              weir_error *err)
{
    size_t    size = sizeof(batch) + n * sizeof(weir_group_one);
    weir_code rc = weir__future_create(q, f, size, NULL, err);
    if (rc)
        return rc;
    batch *b = weir__future_bytes(*f);
    b->ops = ops;
    weir__group_init(&b->group, q, *f, b->one, n);
    for (size_t i = 0; i < n; i++) {
        if (!ops[i].err.code)
            weir__ops_check(q, &ops[i], &ops[i].err);
        b->one[i].ticket.op = ops[i];
    }
    weir__group_start(&b->group, fill, b);
    return WEIR_OK;
}
