/* body.h - the JSON that a request brings, read by a table (core/fields.h has the tables).
 *
 *     order o = { .wait_ms = 1000 };                  what is not in the body stays as it is
 *     if (!srv_body(r, order_fields, &o))
 *         return;                                     it was answered, with the name of the member
 *
 * All memory is the request's. */
#ifndef WEIR_SERVER_BODY_H
#define WEIR_SERVER_BODY_H

#include "core/fields.h"
#include "server/http/request.h"

/* Nesting of a body: what is around the data of a job, and some more, so that data that is too deep
 * is refused by its own name. */
enum { SRV_MAX_DEPTH = WEIR_MAX_DEPTH + 20 };

/* The body is an object with these members. An empty body is {}. False: it is not, and the request
 * was answered. */
bool srv_body(srv_request *r, const weir_field *table, void *out);

/* For bodies of more shapes: is it JSON? *in is ready to read pieces of *all with weir__read(), and
 * what is wrong then is the handler's to answer: srv_body_refuse(), or a part of its answer. False:
 * it is not, and the request was answered. */
bool srv_body_open(srv_request *r, weir_reader *in, weir_json_piece *all);
void srv_body_refuse(srv_request *r, const weir_reader *in);

#endif
