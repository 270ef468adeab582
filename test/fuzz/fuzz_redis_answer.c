/* fuzz_redis_answer.c - what servers say when a link connects: the handshake of one, the map of a
 * cluster, the primary of a sentinel, and MOVED. The first byte picks one; the rest comes from the
 * server. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "store/redis/link/net.h"

static void on_node(void *ctx, redis_node *n)
{
    (void)ctx;
    (void)n;
}

static void on_reply(void *ctx, redis_node *n, redisReply *r)
{
    (void)ctx;
    MUST(n->state == NODE_READY && !n->probe);
    freeReplyObject(r);
}

static void on_found(void *ctx)
{
    redis_net *net = *(redis_net **)ctx;
    MUST(net->located && !net->probing);
}

static const redis_net_ops ops = { on_node, on_reply, on_node, on_found };

/* Whatever is known of places must be fit to connect to. */
static void check(const redis_net *net)
{
    for (size_t i = 0; i < net->n_nodes; i++) {
        const redis_node *n = net->node[i];
        MUST(n->place.port > 0 && n->place.port < 65536);
        MUST(strnlen(n->place.host, sizeof n->place.host) < sizeof n->place.host);
    }
    for (size_t i = 0; net->owner && i < WEIR_REDIS_SLOTS; i++)
        MUST(net->owner[i] == 0xffff || net->owner[i] < net->n_nodes);
    const weir_error *why = net->n_nodes && !net->probe.why.code ? &net->node[0]->why
                                                                 : &net->probe.why;
    MUST(!why->code == !why->msg[0]);
    for (const char *s = why->msg; *s; s++)
        MUST((unsigned char)*s >= 0x20 && *s != 0x7f);
}

/* As if it had been connected, and these bytes had come. */
static void answer(redis_node *n, const uint8_t *data, size_t size)
{
    int fds[2];
    MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    MUST(write(fds[1], data, size) == (ssize_t)size);
    shutdown(fds[1], SHUT_WR);
    n->fd = fds[0];
    n->state = NODE_HANDSHAKE;
    n->reader = redisReaderCreate();
    MUST(n->reader);
    weir__handshake_begin(n);
    for (int i = 0; i < 100 && n->state != NODE_CLOSED; i++)
        weir__node_io(n, POLLIN);
    MUST(n->state == NODE_CLOSED && n->fd < 0 && !n->reader);
    close(fds[1]);
}

static void redirect(redis_net *net, const uint8_t *data, size_t size)
{
    char     text[512] = "";
    uint32_t slot = WEIR_REDIS_SLOTS;
    memcpy(text, data, size < sizeof text ? size : sizeof text - 1);
    weir_code     code;
    redis_refusal what = weir__refusal(text, true, &code);
    MUST(what <= REFUSED_MISSING && code != WEIR_OK);
    redis_node *n = weir__net_redirect(net, &net->probe, weir__refusal_rest(text), &slot);
    if (n) {
        MUST(slot < WEIR_REDIS_SLOTS);
        weir__net_set_owner(net, slot, n);
        MUST(weir__net_owner(net, slot) == n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const redis_way ways[] = { REDIS_ONE, REDIS_CLUSTER, REDIS_SENTINEL, REDIS_CLUSTER };
    redis_net  net, *ctx = &net;
    redis_url  url = { .n_places = 1, .timeout_ms = 1000, .primary = "m", .password = "p", .db = 1,
                       .place = { { "h", 1 } } };
    weir_error err;
    if (!size || size > 60000)
        return 0;
    int what = data[0] % 4;
    url.way = ways[what];
    MUST(!weir__net_init(&net, &url, &ops, &ctx, &err));
    if (what == 3)
        redirect(&net, data + 1, size - 1);
    else
        answer(what ? &net.probe : net.node[0], data + 1, size - 1);
    check(&net);
    weir__net_fini(&net);
    return 0;
}
