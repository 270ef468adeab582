/* body.c - the JSON that a request brings. */
#include "server/http/body.h"

static void *alloc(void *ctx, size_t size)
{
    return srv_alloc(ctx, size);
}

void srv_body_refuse(srv_request *r, const weir_reader *in)
{
    if (*in->err.field && !r->body_len)
        srv_reply_fail(r, in->err.code, in->err.field, "%s (there is no body)", in->err.msg);
    else if (*in->err.field)
        srv_reply_error(r, &in->err);
    else
        srv_reply_fail(r, in->err.code, NULL, "body: %s", in->err.msg);
}

bool srv_body_open(srv_request *r, weir_reader *in, weir_json_piece *all)
{
    *in = (weir_reader){ .alloc = alloc, .ctx = r };
    *all = r->body_len ? (weir_json_piece){ r->body, r->body_len } : (weir_json_piece){ "{}", 2 };
    if (!weir__read_check(in, all->text, all->len, SRV_MAX_DEPTH))
        return true;
    srv_body_refuse(r, in);
    return false;
}

bool srv_body(srv_request *r, const weir_field *table, void *out)
{
    weir_reader     in;
    weir_json_piece all;
    if (!srv_body_open(r, &in, &all))
        return false;
    if (!weir__read(&in, table, all, out))
        return true;
    srv_body_refuse(r, &in);
    return false;
}
