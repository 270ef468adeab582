/* client_message.h - a message of a server's bridge, as its client (client.c) reads it. Pure
 * functions. */
#ifndef WEIR_BUS_CLIENT_MESSAGE_H
#define WEIR_BUS_CLIENT_MESSAGE_H

#include "core/fields.h"
#include "weir/bus.h"

/* Texts end with NUL; NULL: not there. */
typedef struct client_message {
    const char     *type;               /* never NULL */
    const char     *address, *reply_address, *source, *failure, *error, *text;
    int32_t         code;
    bool            send;
    weir_json_piece headers, body;
    weir_header     header[WEIR_MAX_BUS_HEADERS];
    weir_content    content;
} client_message;

/* Read it with memory of `in`, into *out, which is {0}. `text` must stay as long as *out is used.
 * False: it is not such a message, or memory is out. */
bool weir__client_read(weir_reader *in, const char *text, size_t len, client_message *out);

#endif
