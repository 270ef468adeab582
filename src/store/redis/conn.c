/* conn.c - a connection, authenticated. */
#include "store/redis/conn.h"

#include <string.h>

static weir_code command(redisContext *ctx, weir_error *err, int argc, const char **argv)
{
    redisReply *r = redisCommandArgv(ctx, argc, argv, NULL);
    weir_code   rc = WEIR_OK;
    if (!r)
        rc = weir_fail(err, WEIR_EUNAVAIL, "redis: %s", ctx->errstr);
    else if (r->type == REDIS_REPLY_ERROR)
        rc = weir_fail(err, WEIR_EINVAL, "redis: %s", r->str);
    if (r)
        freeReplyObject(r);
    return rc;
}

weir_code weir__conn_open(redisContext **out, const redis_url *url, weir_error *err)
{
    *out = NULL;
    struct timeval tv = { url->timeout_ms / 1000, url->timeout_ms % 1000 * 1000 };
    const redis_place *p = &url->place[0];
    redisContext *ctx = p->port ? redisConnectWithTimeout(p->host, p->port, tv)
                                : redisConnectUnixWithTimeout(p->host, tv);
    if (!ctx)
        return weir_fail(err, WEIR_ENOMEM, "redis: no memory for the connection");
    weir_code rc = WEIR_OK;
    if (ctx->err)
        rc = weir_fail(err, WEIR_EUNAVAIL, "redis: %s: %s", p->host, ctx->errstr);
    else
        redisSetTimeout(ctx, tv);
    if (!rc && *url->password)
        rc = command(ctx, err, *url->user ? 3 : 2,
                     *url->user ? (const char *[]){ "AUTH", url->user, url->password }
                                : (const char *[]){ "AUTH", url->password });
    if (!rc && url->db) {
        weir_buf b = { 0 };
        weir__buf_int(&b, url->db);
        rc = b.failed ? weir_fail(err, WEIR_ENOMEM, "redis: no memory for the connection")
                      : command(ctx, err, 2, (const char *[]){ "SELECT", b.data });
        weir__buf_fini(&b);
    }
    if (rc) {
        redisFree(ctx);
        return rc;
    }
    *out = ctx;
    return WEIR_OK;
}
