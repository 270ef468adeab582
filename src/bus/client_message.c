/* client_message.c - a message of a server's bridge: see client_message.h. */
#include "bus/client_message.h"

#include <string.h>

static bool read_headers(weir_reader *in, client_message *m)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    size_t          len;
    m->content = (weir_content){ .body = m->body.text, .body_len = m->body.len,
                                 .headers = m->header };
    if (!m->headers.text || *m->headers.text != '{' || !weir__json_open(&w, m->headers))
        return true;
    while (weir__json_next(&w, &name, &value)) {
        char *texts = in->alloc(in->ctx, name.len + value.len + 2);
        if (!texts || m->content.n_headers == WEIR_MAX_BUS_HEADERS || *value.text != '"' ||
            !weir__json_text(name, texts, &len) ||
            !weir__json_text(value, texts + name.len + 1, &len))
            return false;
        m->header[m->content.n_headers++] = (weir_header){ texts, texts + name.len + 1 };
    }
    return true;
}

bool weir__client_read(weir_reader *in, const char *text, size_t len, client_message *out)
{
#define MEMBER(name) offsetof(client_message, name)
    static const weir_field fields[] = {
        WEIR_FIELD("type", weir__as_text, MEMBER(type), .needed = true),
        WEIR_FIELD("address", weir__as_text, MEMBER(address)),
        WEIR_FIELD("replyAddress", weir__as_text, MEMBER(reply_address)),
        WEIR_FIELD("sourceAddress", weir__as_text, MEMBER(source)),
        WEIR_FIELD("failureType", weir__as_text, MEMBER(failure)),
        WEIR_FIELD("error", weir__as_text, MEMBER(error)),
        WEIR_FIELD("failureCode", weir__as_int32, MEMBER(code)),
        WEIR_FIELD("message", weir__as_text, MEMBER(text)),
        WEIR_FIELD("send", weir__as_bool, MEMBER(send)),
        WEIR_FIELD("headers", weir__as_raw, MEMBER(headers)),
        WEIR_FIELD("body", weir__as_raw, MEMBER(body)),
        { 0 }
    };
#undef MEMBER
    weir_json_piece all = { text, len };
    return !weir__read_check(in, text, len, WEIR_MAX_DEPTH + 2) &&
           !weir__read(in, fields, all, out) && read_headers(in, out);
}
