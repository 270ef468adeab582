/* audit_batch.h - the operations of a batch in the audit log. */
#ifndef WEIR_SERVER_AUDIT_BATCH_H
#define WEIR_SERVER_AUDIT_BATCH_H

#include "server/access/audit.h"
#include "op/op.h"

/* Record the operations that change something, once they are answered. */
void srv_audit_batch(srv_request *r, weir_op *op, size_t n);

#endif
