/* http1_field.h - the header fields that decide how a request is read: Host, Content-Length,
 * Transfer-Encoding and Connection. Only http1.c uses it. */
#ifndef WEIR_SERVER_HTTP1_FIELD_H
#define WEIR_SERVER_HTTP1_FIELD_H

#include "server/http/http1.h"

/* The number of the field with this name, any case; 0: it is none of them. */
uint8_t srv_http1_field_find(const char *name, size_t len);

/* Take the value of such a field into the head. 0, or the status to refuse the request with, and
 * why. In trailers such a field is refused: the body has been read without it. */
int srv_http1_field_read(srv_http1_head *head, uint8_t known, const char *value, bool trailer,
                         const char **why);

/* The head is complete: do its fields go together? Sets keep_alive. NULL, or why not (400). */
const char *srv_http1_fields_check(srv_http1_head *head);

#endif
