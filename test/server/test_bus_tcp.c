/* test_bus_tcp.c - the TCP bridge over raw sockets: every type of message, errors, permissions,
 * tokens, and bytes that no client should send. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/access/tokens.h"
#include "server/bus/bridge.h"
#include "server/bus/permit.h"
#include "support/server_rig.h"
#include "support/tcp_client.h"

/* ---- a client ---- */

static int dial(web *w)
{
    return tcp_dial(srv_bus_address(w->s));
}

static void expect_code(int fd, const char *code)
{
    char text[100];
    snprintf(text, sizeof text, "{\"type\":\"err\",\"message\":\"%s\"}", code);
    tcp_expect(fd, text);
}

static void start(web *w, const srv_options *opt)
{
    srv_options o = opt ? *opt : (srv_options){ 0 };
    if (!o.bus.listen)
        o.bus.listen = "127.0.0.1:0";
    web_start(w, "mem:", false, &o);
}

/* ---- messages ---- */

static void publish_and_send(void **state)
{
    (void)state;
    web w;
    start(&w, NULL);
    int a = dial(&w), b = dial(&w), c = dial(&w);
    tcp_tell(a, "{\"type\":\"register\",\"address\":\"news\"}");
    tcp_tell(a, "{\"type\":\"register\",\"address\":\"news\"}");        /* once is enough */
    tcp_sync(a);                                   /* so it is the first in turn */
    tcp_tell(b, "{\"type\":\"register\",\"address\":\"news\",\"headers\":{}}");
    tcp_sync(b);
    tcp_tell(c, "{\"type\":\"publish\",\"address\":\"news\",\"body\":[1, {\"a\":null}]}");
    const char *published = "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},"
                            "\"body\":[1, {\"a\":null}],\"send\":false}";
    tcp_expect(a, published);
    tcp_expect(b, published);
    tcp_tell(c, "{\"type\":\"send\",\"address\":\"news\",\"headers\":{\"k\":\"v\",\"n\":5},"
            "\"body\":\"x\"}");
    tcp_tell(c, "{\"type\":\"send\",\"address\":\"news\"}");
    tcp_expect(a, "{\"type\":\"message\",\"address\":\"news\","
                  "\"headers\":{\"k\":\"v\",\"n\":\"5\"},"
                  "\"body\":\"x\",\"send\":true}");
    tcp_expect(b, "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},\"send\":true}");
    tcp_tell(a, "{\"type\":\"unregister\",\"address\":\"news\"}");
    tcp_tell(a, "{\"type\":\"unregister\",\"address\":\"news\"}");
    expect_code(a, "unknown_address");
    tcp_tell(c, "{\"type\":\"send\",\"address\":\"news\",\"body\":7}");
    tcp_expect(b, "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},\"body\":7,"
              "\"send\":true}");
    close(a);
    close(b);
    close(c);
    web_stop(&w);
}

static void requests(void **state)
{
    (void)state;
    web  w;
    char reply[WEIR_REPLY_ADDRESS], text[300];
    start(&w, NULL);
    int server = dial(&w), client = dial(&w);
    tcp_tell(server, "{\"type\":\"register\",\"address\":\"calc\"}");
    tcp_sync(server);
    tcp_tell(client, "{\"type\":\"send\",\"address\":\"calc\",\"replyAddress\":\"r1\",\"body\":1}");
    char *got = tcp_next_request(server, reply);
    assert_string_equal(got, "{\"type\":\"message\",\"address\":\"calc\",\"headers\":{},"
                             "\"body\":1,\"send\":true}");
    free(got);
    snprintf(text, sizeof text, "{\"type\":\"send\",\"address\":\"%s\",\"body\":{\"n\":2},"
             "\"headers\":{\"h\":\"1\"}}", reply);
    tcp_tell(server, text);
    tcp_expect(client, "{\"type\":\"message\",\"address\":\"r1\",\"headers\":{\"h\":\"1\"},"
                   "\"body\":{\"n\":2},\"send\":true}");
    tcp_tell(server, text);                             /* the reply address has had its one use */
    tcp_sync(server);
    tcp_sync(client);

    tcp_tell(client, "{\"type\":\"send\",\"address\":\"calc\",\"replyAddress\":\"r2\",\"body\":1}");
    free(tcp_next_request(server, reply));
    snprintf(text, sizeof text, "{\"type\":\"send\",\"address\":\"%s\",\"failureCode\":4,"
             "\"message\":\"odd\"}", reply);
    tcp_tell(server, text);
    tcp_expect(client, "{\"type\":\"err\",\"address\":\"r2\",\"sourceAddress\":\"calc\","
                   "\"failureCode\":4,\"failureType\":\"RECIPIENT_FAILURE\",\"message\":\"odd\"}");

    tcp_tell(client, "{\"type\":\"send\",\"address\":\"nobody\",\"replyAddress\":\"r3\"}");
    tcp_expect(client, "{\"type\":\"err\",\"address\":\"r3\",\"sourceAddress\":\"nobody\","
                   "\"failureCode\":-1,\"failureType\":\"NO_HANDLERS\","
                   "\"message\":\"No handlers for address nobody\"}");

    static const char *const wrong[] = { "", "0", "-5", " 5", "5s", "1e3", "604800001",
                                         "99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char request[200];
        snprintf(request, sizeof request, "{\"type\":\"send\",\"address\":\"calc\","
                 "\"replyAddress\":\"r\",\"headers\":{\"timeout\":\"%s\"}}", wrong[i]);
        tcp_tell(client, request);
        expect_code(client, "invalid_timeout");
    }
    tcp_tell(client, "{\"type\":\"send\",\"address\":\"calc\",\"replyAddress\":\"r4\","
                 "\"headers\":{\"timeout\":\"20\"}}");
    got = tcp_next_request(server, reply);
    assert_null(strstr(got, "timeout"));            /* it was for the bridge */
    free(got);
    got = tcp_next(client);
    assert_non_null(strstr(got, "\"failureCode\":-1,\"failureType\":\"TIMEOUT\",\"message\":"
                                "\"Timed out after waiting 20(ms) for a reply."));
    free(got);
    close(server);
    close(client);
    web_stop(&w);
}

static void a_conversation(void **state)
{
    (void)state;
    web  w;
    char reply[WEIR_REPLY_ADDRESS], text[300];
    start(&w, NULL);
    int server = dial(&w), client = dial(&w);
    tcp_tell(server, "{\"type\":\"register\",\"address\":\"talk\"}");
    tcp_sync(server);
    tcp_tell(client, "{\"type\":\"send\",\"address\":\"talk\",\"replyAddress\":\"r1\",\"body\":1}");
    free(tcp_next_request(server, reply));
    snprintf(text, sizeof text, "{\"type\":\"send\",\"address\":\"%s\",\"body\":2,"
             "\"replyAddress\":\"s1\"}", reply);
    tcp_tell(server, text);
    char *got = tcp_next_request(client, reply);
    assert_string_equal(got, "{\"type\":\"message\",\"address\":\"r1\",\"headers\":{},\"body\":2,"
                             "\"send\":true}");
    free(got);
    snprintf(text, sizeof text, "{\"type\":\"send\",\"address\":\"%s\",\"body\":3}", reply);
    tcp_tell(client, text);
    tcp_expect(server, "{\"type\":\"message\",\"address\":\"s1\",\"headers\":{},\"body\":3,"
                   "\"send\":true}");
    close(server);
    close(client);
    web_stop(&w);
}

static void a_client_that_disconnects(void **state)
{
    (void)state;
    web  w;
    char reply[WEIR_REPLY_ADDRESS];
    start(&w, NULL);
    int server = dial(&w), client = dial(&w);
    tcp_tell(server, "{\"type\":\"register\",\"address\":\"calc\"}");
    tcp_sync(server);
    tcp_tell(client, "{\"type\":\"send\",\"address\":\"calc\",\"replyAddress\":\"r1\"}");
    free(tcp_next_request(server, reply));
    close(server);                                  /* it owed a reply: that is known at once */
    char *got = tcp_next(client);
    assert_non_null(strstr(got, "\"failureCode\":-1,\"failureType\":\"ERROR\",\"error\":\"ELOST\","
                                "\"message\":\"the recipient has dis"));
    free(got);
    tcp_tell(client, "{\"type\":\"send\",\"address\":\"calc\",\"replyAddress\":\"r2\"}");
    got = tcp_next(client);
    assert_non_null(strstr(got, "NO_HANDLERS"));
    free(got);
    close(client);
    web_stop(&w);
}

/* The server's end of a connection, which is in this process. */
static int server_end(int client)
{
    struct sockaddr_in here, peer;
    socklen_t          len = sizeof here;
    assert_int_equal(getsockname(client, (struct sockaddr *)&here, &len), 0);
    for (int fd = 3; fd < 1024; fd++) {
        len = sizeof peer;
        if (!getpeername(fd, (struct sockaddr *)&peer, &len) && peer.sin_family == AF_INET &&
            peer.sin_port == here.sin_port && peer.sin_addr.s_addr == here.sin_addr.s_addr)
            return fd;
    }
    fail_msg("no connection of the server's");
    return -1;
}

static int option(int fd, int level, int name)
{
    int       value = -1;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* A client whose host vanishes closes nothing: the kernel notices that it acknowledges nothing. */
static void a_host_that_vanishes(void **state)
{
    (void)state;
    web w;
    start(&w, NULL);
    int client[2] = { dial(&w), web_connect(&w) };
    tcp_sync(client[0]);
    web_send(client[1], "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
    web_answer got = web_read(client[1]);
    web_free(&got);
    for (int i = 0; i < 2; i++) {
        int fd = server_end(client[i]);
        assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 15);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
        close(client[i]);
    }
    web_stop(&w);
}

/* ---- wrong messages ---- */

static void protocol_errors(void **state)
{
    static const struct {
        const char *json, *code;
    } wrong[] = {
        { "{\"type\":\"dance\",\"address\":\"a\"}", "unknown_type" },
        { "{\"address\":\"a\"}", "unknown_type" },
        { "{\"type\":\"send\"}", "missing_address" },
        { "{\"type\":\"publish\",\"address\":\"\"}", "missing_address" },
        { "{\"type\":\"register\",\"address\":null}", "missing_address" },
        { "{\"type\":\"unregister\"}", "missing_address" },
        { "{\"type\":\"send\",\"address\":5}", "invalid_json" },
        { "{\"type\":\"send\",\"address\":\"a\",\"headers\":[]}", "invalid_json" },
        { "{\"type\":\"send\",\"address\":\"a\\u0000b\"}", "invalid_json" },
        { "not json", "invalid_json" },
        { "[]", "invalid_json" },
        { "", "invalid_json" },
        { "{\"type\":\"ping\"}{}", "invalid_json" },
        { "{\"type\":\"publish\",\"address\":\"a\",\"body\":\"\xff\"}", "invalid_json" },
        { "{\"type\":\"send\",\"address\":\"a\",\"replyAddress\":\"0123456789012345678901234567890"
          "123456\"}", "invalid_reply_address" },
    };
    (void)state;
    web  w;
    char deep[500];
    start(&w, NULL);
    int fd = dial(&w);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tcp_tell(fd, wrong[i].json);
        expect_code(fd, wrong[i].code);
    }
    strcpy(deep, "{\"type\":\"publish\",\"address\":\"a\",\"body\":");
    size_t n = strlen(deep);
    memset(deep + n, '[', 101);
    memset(deep + n + 101, ']', 101);
    strcpy(deep + n + 202, "}");
    tcp_tell(fd, deep);
    expect_code(fd, "invalid_json");
    tcp_sync(fd);                                  /* and the connection goes on */
    web_send_bytes(fd, "\xff\xff\xff\xff", 4);
    expect_code(fd, "max_frame_size_reached");
    assert_null(tcp_next(fd));
    close(fd);
    web_stop(&w);
}

static void bytes_in_pieces_and_together(void **state)
{
    static const char one[] = "{\"type\":\"register\",\"address\":\"a\"}";
    static const char two[] = "{\"type\":\"publish\",\"address\":\"a\",\"body\":\"\xc3\xa4\"}";
    (void)state;
    web    w;
    char   all[300];
    size_t n = 0;
    start(&w, NULL);
    tcp_put_head(all, sizeof one - 1);
    memcpy(all + 4, one, sizeof one - 1);
    n = 4 + sizeof one - 1;
    for (int i = 0; i < 2; i++) {
        tcp_put_head(all + n, sizeof two - 1);
        memcpy(all + n + 4, two, sizeof two - 1);
        n += 4 + sizeof two - 1;
    }
    const char *message = "{\"type\":\"message\",\"address\":\"a\",\"headers\":{},"
                          "\"body\":\"\xc3\xa4\",\"send\":false}";
    int fd = dial(&w);
    for (size_t i = 0; i < n; i++)
        web_send_bytes(fd, all + i, 1);
    tcp_expect(fd, message);
    tcp_expect(fd, message);
    close(fd);
    fd = dial(&w);
    web_send_bytes(fd, all, n);
    tcp_expect(fd, message);
    tcp_expect(fd, message);
    close(fd);
    web_stop(&w);
}

static void ten_megabytes(void **state)
{
    (void)state;
    enum { N = 10 * 1024 * 1024 };
    web   w;
    char *big = malloc(N + 200);
    start(&w, NULL);
    int a = dial(&w), b = dial(&w);
    tcp_tell(a, "{\"type\":\"register\",\"address\":\"big\"}");
    tcp_sync(a);
    strcpy(big, "{\"type\":\"send\",\"address\":\"big\",\"body\":\"");
    size_t n = strlen(big);
    memset(big + n, 'x', N);
    strcpy(big + n + N, "\"}");
    tcp_tell(b, big);
    char *got = tcp_next(a);
    assert_non_null(got);
    assert_int_equal(strlen(got), strlen("{\"type\":\"message\",\"address\":\"big\",\"headers\":{},"
                                         "\"body\":\"\",\"send\":true}") + N);
    free(got);
    free(big);
    tcp_sync(b);
    close(a);
    close(b);
    web_stop(&w);
}

static void bodies_up_to_the_limit(void **state)
{
    (void)state;
    static const char head[] = "{\"type\":\"publish\",\"address\":\"big\",\"body\":";
    web   w;
    char *json = malloc(WEIR_MAX_BUS_BODY + 200);
    start(&w, NULL);
    int fd = dial(&w);
    tcp_tell(fd, "{\"type\":\"register\",\"address\":\"big\"}");
    for (size_t len = WEIR_MAX_BUS_BODY; len <= WEIR_MAX_BUS_BODY + 1; len++) {
        strcpy(json, head);
        memset(json + strlen(head), 'x', len);
        json[strlen(head)] = json[strlen(head) + len - 1] = '"';
        strcpy(json + strlen(head) + len, "}");
        tcp_tell(fd, json);
        if (len > WEIR_MAX_BUS_BODY) {
            expect_code(fd, "rejected");
            continue;
        }
        char *got = tcp_next(fd);
        assert_non_null(got);
        assert_true(strlen(got) > WEIR_MAX_BUS_BODY);
        free(got);
    }
    tcp_sync(fd);                                  /* and the connection goes on */
    free(json);
    close(fd);
    web_stop(&w);
}

/* One that does not read keeps nobody else waiting, and costs a bounded amount of memory. */
static void a_client_that_does_not_read(void **state)
{
    (void)state;
    enum { N = 200, SIZE = 512 * 1024 };        /* more than fits into its mailbox */
    web   w;
    char *body = malloc(SIZE + 100);
    start(&w, NULL);
    int deaf = dial(&w), well = dial(&w), sender = dial(&w), got = 0;
    tcp_tell(deaf, "{\"type\":\"register\",\"address\":\"news\"}");
    tcp_sync(deaf);
    tcp_tell(well, "{\"type\":\"register\",\"address\":\"news\"}");
    tcp_sync(well);
    strcpy(body, "{\"type\":\"publish\",\"address\":\"news\",\"body\":\"");
    size_t n = strlen(body);
    memset(body + n, 'x', SIZE);
    strcpy(body + n + SIZE, "\"}");
    for (int i = 0; i < N; i++) {
        tcp_tell(sender, body);
        tcp_sync(sender);
        char *text = tcp_next(well);
        got += text != NULL;
        free(text);
    }
    assert_int_equal(got, N);
    close(deaf);
    close(well);
    close(sender);
    free(body);
    web_stop(&w);
}

/* ---- permissions and tokens ---- */

static char *make_token(const char *file, const char *name, unsigned roles, char *text)
{
    weir_error err;
    srv_caller who = { .roles = roles };
    snprintf(who.name, sizeof who.name, "%s", name);
    assert_int_equal(srv_tokens_add(file, &who, 1, text, &err), WEIR_OK);
    return text;
}

static void permissions(void **state)
{
    static const char *const inbound[] = { "chat\\.[a-z]+", "echo", "one|one\\.two", "weir\\.bus",
                                           NULL };
    static const char *const outbound[] = { "chat\\..*", NULL };
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20], token[SRV_TOKEN_TEXT], text[300];
    tempdir_make(dir);
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    unsigned roles;
    assert_true(srv_roles_parse("produce", &roles));
    make_token(file, "app", roles, token);
    start(&w, &(srv_options){ .tokens_file = file, .bus = { .inbound = inbound,
                                                            .outbound = outbound } });
    int fd = dial(&w);
    tcp_sync(fd);
    tcp_tell(fd, "{\"type\":\"send\",\"address\":\"echo\"}");           /* without a token */
    expect_code(fd, "access_denied");
    tcp_tell(fd, "{\"type\":\"ping\",\"headers\":{\"Authorization\":\"Bearer wtk_wrong\"}}");
    expect_code(fd, "access_denied");
    snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"chat.room\",\"headers\":"
             "{\"Authorization\":\"Bearer %s\"}}", token);
    tcp_tell(fd, text);
    tcp_sync(fd);                                                  /* from here on it is known */
    tcp_tell(fd, "{\"type\":\"publish\",\"address\":\"chat.room\",\"body\":1}");
    tcp_expect(fd, "{\"type\":\"message\",\"address\":\"chat.room\",\"headers\":{},\"body\":1,"
               "\"send\":false}");
    tcp_tell(fd, "{\"type\":\"register\",\"address\":\"echo\"}");
    expect_code(fd, "access_denied");
    tcp_tell(fd, "{\"type\":\"publish\",\"address\":\"chat.room2\"}");  /* matched whole */
    expect_code(fd, "access_denied");
    tcp_tell(fd, "{\"type\":\"send\",\"address\":\"echo.not\",\"replyAddress\":\"r\"}");
    expect_code(fd, "access_denied");
    tcp_tell(fd, "{\"type\":\"unregister\",\"address\":\"other\"}");
    expect_code(fd, "access_denied");
    tcp_tell(fd, "{\"type\":\"publish\",\"address\":\"one.two\"}");
    tcp_sync(fd);
    tcp_tell(fd, "{\"type\":\"publish\",\"address\":\"one.three\"}");
    expect_code(fd, "access_denied");
    tcp_tell(fd, "{\"type\":\"send\",\"address\":\"weir.bus\"}");       /* admins alone */
    expect_code(fd, "access_denied");

    weir_error err;                                                 /* a token that is taken away */
    assert_int_equal(srv_tokens_remove(file, "app", &err), WEIR_OK);
    assert_int_equal(srv_reload(w.s, &err), WEIR_OK);
    assert_null(tcp_next(fd));
    close(fd);
    web_stop(&w);
    tempdir_remove(dir);
}

/* An address of this machine that is not loopback. False: it has none. */
static bool find_own_address(struct in_addr *out)
{
    struct ifaddrs *all = NULL;
    bool            found = false;
    getifaddrs(&all);
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP))
            continue;
        *out = ((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
        found = ntohl(out->s_addr) >> 24 != 127;
    }
    freeifaddrs(all);
    return found;
}

static void show_token(int fd, const char *token)
{
    char text[200];
    snprintf(text, sizeof text, "{\"type\":\"ping\",\"headers\":{\"Authorization\":"
             "\"Bearer %s\"}}", token);
    tcp_tell(fd, text);
    tcp_expect(fd, "{\"type\":\"pong\"}");
}

/* The permissions hold for an admin, too, unless that one is on loopback. */
static void an_admin_from_elsewhere(void **state)
{
    static const char *const local[] = { "127.0.0.1:5", "127.0.0.2:51234", "[::1]:5" };
    static const char *const remote[] = { "10.0.0.1:5", "1.127.0.0:5", "[::1:2]:5",
                                          "[fe80::1%eth0]:5", "[::ffff:127.0.0.1]:5", "?", "" };
    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_true(srv_permits_all_to(local[i]));
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        assert_false(srv_permits_all_to(remote[i]));

    web                w;
    char               dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20], token[SRV_TOKEN_TEXT];
    struct sockaddr_in at = { .sin_family = AF_INET };
    if (!find_own_address(&at.sin_addr))
        return;
    tempdir_make(dir);
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    make_token(file, "boss", WEIR_ROLE_ALL, token);
    start(&w, &(srv_options){ .tokens_file = file, .bus.listen = "0.0.0.0:0" });
    at.sin_port = htons((uint16_t)atoi(strchr(srv_bus_address(w.s), ':') + 1));
    int here = dial(&w), there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(there, (struct sockaddr *)&at, sizeof at), 0);
    show_token(here, token);
    show_token(there, token);
    tcp_tell(here, "{\"type\":\"publish\",\"address\":\"x\"}");
    tcp_sync(here);
    tcp_tell(there, "{\"type\":\"publish\",\"address\":\"x\"}");
    expect_code(there, "access_denied");
    tcp_tell(there, "{\"type\":\"register\",\"address\":\"x\"}");
    expect_code(there, "access_denied");
    tcp_tell(there, "{\"type\":\"send\",\"address\":\"weir.bus\",\"replyAddress\":\"r\","
                    "\"headers\":{\"action\":\"addresses\"}}");   /* as GET /v1/bus */
    char *got = tcp_next(there);
    assert_non_null(strstr(got, "\"address\":\"r\""));
    assert_null(strstr(got, "access_denied"));
    free(got);
    close(here);
    close(there);
    web_stop(&w);
    tempdir_remove(dir);
}

/* A token that comes in a message pays for the messages of its connection. */
static void the_quota_of_a_token(void **state)
{
    (void)state;
    web  w;
    char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20], token[SRV_TOKEN_TEXT], text[300];
    tempdir_make(dir);
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    unsigned roles;
    assert_true(srv_roles_parse("admin", &roles));
    make_token(file, "app", roles, token);
    start(&w, &(srv_options){ .tokens_file = file,
                                  .limits.caller = { [SRV_SHARE_RATE] = 2,
                                                     [SRV_SHARE_CONNECTIONS] = 1 } });
    int one = dial(&w), other = dial(&w);
    snprintf(text, sizeof text, "{\"type\":\"ping\",\"headers\":{\"Authorization\":\"Bearer %s\"}}",
             token);
    tcp_tell(one, text);
    tcp_expect(one, "{\"type\":\"pong\"}");
    tcp_tell(other, text);
    expect_code(other, "rate_limited");             /* its one connection is the other */
    for (int i = 0; i < 100; i++)
        tcp_tell(one, "{\"type\":\"ping\"}");
    int pongs = 0;
    for (int i = 0; i < 100; i++) {
        char *got = tcp_next(one);
        pongs += strstr(got, "pong") != NULL;
        free(got);
    }
    assert_true(pongs < 100);
    close(one);
    close(other);
    web_stop(&w);
    tempdir_remove(dir);
}

static void wrong_settings(void **state)
{
    static const char *const bad[] = { "a(", NULL };
    static const char *const closes_more[] = { "a)|(b", NULL };     /* that it opens */
    (void)state;
    srv_server *s;
    weir_error  err;
    rt          t;
    rt_open(&t, "mem:", false);
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0",
                     .bus = { .listen = "127.0.0.1:0", .inbound = bad } }, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "bus: inbound: \"a(\""));
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0",
                     .bus = { .outbound = closes_more } }, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "bus: outbound: \"a)|(b\""));
    static const struct { const char *pattern, *part; } escapes[] = {
        { "job\\.\\d+", "POSIX has no \\d; write [0-9]" },
        { "\\w+", "POSIX has no \\w; write [A-Za-z0-9_]" },
        { "a\\\\\\s", "POSIX has no \\s; write [[:space:]]" },
        { "(a)\\1", "POSIX has no \\1; write the character alone" },
    };
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        const char *const list[] = { escapes[i].pattern, NULL };
        assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0",
                         .bus = { .inbound = list } }, &err), WEIR_EINVAL);
        assert_non_null(strstr(err.msg, escapes[i].part));
    }
    static const char *const some[] = { "chat\\..*", NULL };     /* but nobody has a token */
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0",
                     .bus = { .inbound = some } }, &err), WEIR_OK);
    assert_non_null(strstr(srv_warning(s), "inbound and outbound of the bus are for callers with a "
                                           "token, and there is none"));
    srv_stop(s);
    srv_destroy(s);
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0",
                     .bus = { .listen = "nowhere" } }, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "bus: \"nowhere\" is not ADDRESS:PORT"));
    assert_int_equal(srv_start(&s, t.q, &(srv_options){ .listen = "127.0.0.1:0",
                     .bus = { .listen = "0.0.0.0:0" } }, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "weir token add"));
    rt_close(&t);
}

static void too_many_handlers(void **state)
{
    (void)state;
    web  w;
    char text[100];
    start(&w, NULL);
    int fd = dial(&w);
    for (int i = 0; i <= BRIDGE_MAX_HANDLERS; i++) {
        snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"a%d\"}", i);
        tcp_tell(fd, text);
    }
    expect_code(fd, "max_handlers_reached");
    tcp_tell(fd, "{\"type\":\"send\",\"address\":\"a0\",\"replyAddress\":\"r\"}");
    expect_code(fd, "max_handlers_reached");
    close(fd);
    web_stop(&w);
}

static void a_thousand_clients(void **state)
{
    (void)state;
    enum { N = 1000 };
    web w;
    int fd[N], sender;
    start(&w, NULL);
    for (int i = 0; i < N; i++) {
        fd[i] = dial(&w);
        tcp_tell(fd[i], "{\"type\":\"register\",\"address\":\"news\"}");
    }
    for (int i = 0; i < N; i++)
        tcp_sync(fd[i]);
    sender = dial(&w);
    tcp_tell(sender, "{\"type\":\"publish\",\"address\":\"news\",\"body\":1}");
    for (int i = 0; i < N; i++) {
        tcp_expect(fd[i], "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},\"body\":1,"
                      "\"send\":false}");
        close(fd[i]);
    }
    close(sender);
    web_stop(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(publish_and_send),
        cmocka_unit_test(requests),
        cmocka_unit_test(a_conversation),
        cmocka_unit_test(a_client_that_disconnects),
        cmocka_unit_test(a_host_that_vanishes),
        cmocka_unit_test(protocol_errors),
        cmocka_unit_test(bytes_in_pieces_and_together),
        cmocka_unit_test(ten_megabytes),
        cmocka_unit_test(bodies_up_to_the_limit),
        cmocka_unit_test(a_client_that_does_not_read),
        cmocka_unit_test(permissions),
        cmocka_unit_test(an_admin_from_elsewhere),
        cmocka_unit_test(the_quota_of_a_token),
        cmocka_unit_test(wrong_settings),
        cmocka_unit_test(too_many_handlers),
        cmocka_unit_test(a_thousand_clients),
    };
    return cmocka_run_group_tests_name("bus_tcp", tests, NULL, NULL);
}
