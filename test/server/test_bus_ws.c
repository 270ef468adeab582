/* test_bus_ws.c - the bus at /eventbus over raw sockets: SockJS, plain WebSockets, errors, limits,
 * pages of others. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/access/tokens.h"
#include "server/bus/bridge.h"
#include "support/server_rig.h"
#include "support/tcp_client.h"

/* ---- a client ---- */

#define UPGRADE "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"                     \
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static bool read_all(int fd, void *to, size_t n)
{
    for (char *at = to; n;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        ssize_t got = read(fd, at, n);
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static int dial(web *w, const char *path, const char *headers)
{
    char req[600], head[600] = "";
    int  fd = web_connect(w);
    snprintf(req, sizeof req, "GET %s HTTP/1.1\r\nHost: %s\r\n" UPGRADE "%s\r\n", path, w->host,
             headers);
    web_send(fd, req);
    for (size_t n = 0; !strstr(head, "\r\n\r\n"); n++)
        assert_true(n < sizeof head - 1 && read_all(fd, head + n, 1));
    assert_memory_equal(head, "HTTP/1.1 101 ", 13);
    assert_non_null(strstr(head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    return fd;
}

/* A masked frame. */
static void frame(int fd, int first, const char *text, size_t len)
{
    unsigned char *out = malloc(len + 14), *at = out;
    *at++ = (unsigned char)first;
    if (len < 126) {
        *at++ = (unsigned char)(0x80 | len);
    } else {
        *at++ = len < 65536 ? 0xfe : 0xff;
        for (int i = len < 65536 ? 1 : 7; i >= 0; i--)
            *at++ = (unsigned char)(len >> 8 * i);
    }
    static const unsigned char mask[4] = { 1, 2, 3, 4 };
    memcpy(at, mask, 4);
    at += 4;
    for (size_t i = 0; i < len; i++)
        at[i] = (unsigned char)text[i] ^ mask[i % 4];
    web_send_bytes(fd, out, (size_t)(at - out) + len);
    free(out);
}

static void tell(int fd, const char *text)
{
    frame(fd, 0x81, text, strlen(text));
}

/* The next frame: *first is its first byte; NULL: the connection is closed. free(). */
static char *next_frame(int fd, int *first)
{
    unsigned char head[2], more[8];
    if (!read_all(fd, head, 2))
        return NULL;
    size_t len = head[1], n = len == 126 ? 2 : len == 127 ? 8 : 0;
    assert_true(len < 128);                             /* a server does not mask */
    if (n) {
        assert_true(read_all(fd, more, n));
        len = 0;
        for (size_t i = 0; i < n; i++)
            len = len << 8 | more[i];
    }
    char *text = malloc(len + 1);
    assert_true(read_all(fd, text, len));
    text[len] = '\0';
    *first = head[0];
    return text;
}

static void expect(int fd, const char *text)
{
    int   first;
    char *got = next_frame(fd, &first);
    assert_non_null(got);
    assert_int_equal(first, 0x81);                      /* text, never binary */
    assert_string_equal(got, text);
    free(got);
}

static void expect_code(int fd, const char *code)
{
    char text[100];
    snprintf(text, sizeof text, "{\"type\":\"err\",\"body\":\"%s\"}", code);
    expect(fd, text);
}

static void expect_close(int fd, int code)
{
    int   first;
    char *got = next_frame(fd, &first);
    assert_non_null(got);
    assert_int_equal(first, 0x88);
    assert_int_equal((unsigned char)got[0] << 8 | (unsigned char)got[1], code);
    free(got);
    assert_null(next_frame(fd, &first));
}

/* ---- cases ---- */

static void information(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, NULL);
    web_says(&w, 200, "{\"websocket\":true,\"cookie_needed\":false,\"origins\":[\"*:*\"],"
                      "\"entropy\":", "GET", "/eventbus/info?t=123", NULL);
    web_says(&w, 200, "Welcome to SockJS!\n", "GET", "/eventbus", NULL);
    web_says(&w, 200, "Welcome to SockJS!\n", "GET", "/eventbus/", NULL);
    web_error(&w, 400, "websocket", "this address is for WebSockets", "GET", "/eventbus/websocket",
              NULL);
    web_error(&w, 404, "http", "have no dots", "GET", "/eventbus/a.b/c/websocket", NULL);
    web_answer a = web_call_with(&w, "GET", "/eventbus/websocket",
                                 "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Version: 8\r\n", NULL);
    assert_int_equal(a.status, 426);
    assert_string_equal(web_header(&a, "Sec-WebSocket-Version"), "13");
    web_free(&a);
    web_stop(&w);
}

static void plain_websockets(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, NULL);
    int a = dial(&w, "/eventbus/websocket", ""), b = dial(&w, "/eventbus/websocket", "");
    tell(a, "{\"type\":\"ping\"}");                     /* no pong */
    tell(a, "{\"type\":\"register\",\"address\":\"news\"}");
    tell(a, "{\"type\":\"register\",\"address\":\"news\"}");
    expect_code(a, "address_already_registered");
    tell(a, "{\"type\":\"unregister\",\"address\":\"other\"}");         /* silent */
    tell(b, "{\"type\":\"publish\",\"address\":\"news\",\"body\":[1]}");
    expect(a, "{\"type\":\"rec\",\"address\":\"news\",\"body\":[1]}");
    tell(b, "{\"type\":\"send\",\"address\":\"news\",\"headers\":{\"k\":\"v\"}}");
    expect(a, "{\"type\":\"rec\",\"address\":\"news\",\"headers\":{\"k\":\"v\"},\"body\":null}");
    tell(b, "{\"type\":\"send\",\"address\":\"nobody\",\"replyAddress\":\"r\",\"body\":1}");
    expect(b, "{\"type\":\"err\",\"address\":\"r\",\"failureCode\":-1,\"failureType\":"
              "\"NO_HANDLERS\",\"message\":\"No handlers for address nobody\"}");
    frame(b, 0x01, "{\"type\":\"publish\",", 18);       /* in two parts, with a ping between */
    frame(b, 0x89, "x", 1);
    frame(b, 0x80, "\"address\":\"news\",\"body\":2}", 26);
    int   first;
    char *pong = next_frame(b, &first);
    assert_int_equal(first, 0x8a);
    assert_string_equal(pong, "x");
    free(pong);
    expect(a, "{\"type\":\"rec\",\"address\":\"news\",\"body\":2}");
    frame(a, 0x88, "\x03\xe8", 2);
    expect_close(a, 1000);
    close(a);
    close(b);
    web_stop(&w);
}

/* /eventbus/ws has the messages of the TCP bridge; what is wrong with a request is its failure. */
static void own_messages(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, NULL);
    int fd = dial(&w, "/eventbus/ws", "");
    tell(fd, "{\"type\":\"ping\"}");
    expect(fd, "{\"type\":\"pong\"}");
    tell(fd, "{\"type\":\"register\",\"address\":\"news\"}");
    tell(fd, "{\"type\":\"publish\",\"address\":\"news\",\"body\":[1]}");
    expect(fd, "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},\"body\":[1],"
               "\"send\":false}");
    tell(fd, "{\"type\":\"ping\",\"replyAddress\":\"f1\",\"headers\":"
             "{\"Authorization\":\"Bearer wtk_no\"}}");
    expect(fd, "{\"type\":\"pong\"}");                 /* this server has no tokens */
    close(fd);
    web_stop(&w);
}

static void protocol_errors(void **state)
{
    static const struct {
        const char *json, *code;
    } wrong[] = {
        { "nonsense", "invalid_json" },
        { "{\"address\":\"a\"}", "missing_type" },
        { "{\"type\":\"dance\",\"address\":\"a\"}", "invalid_type" },
        { "{\"type\":\"publish\"}", "missing_address" },
        { "{\"type\":\"send\",\"address\":\"a\",\"replyAddress\":\"0123456789012345678901234567890"
          "123456\"}", "invalid_reply_address" },
    };
    (void)state;
    web  w;
    char text[400], address[202];
    web_start(&w, "mem:", false, NULL);
    int fd = dial(&w, "/eventbus/websocket", "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tell(fd, wrong[i].json);
        expect_code(fd, wrong[i].code);
    }
    memset(address, 'a', 201);
    address[201] = '\0';
    snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"%s\"}", address);
    tell(fd, text);
    expect_code(fd, "max_address_length_reached");
    for (int i = 0; i <= BRIDGE_MAX_HANDLERS; i++) {
        snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"a%d\"}", i);
        tell(fd, text);
    }
    expect_code(fd, "max_handlers_reached");
    frame(fd, 0x81, "\xff", 1);                         /* not UTF-8: 1007 */
    expect_close(fd, 1007);
    close(fd);
    fd = dial(&w, "/eventbus/websocket", "");
    web_send_bytes(fd, "\x81\x01x", 3);                 /* not masked: 1002 */
    expect_close(fd, 1002);
    close(fd);
    fd = dial(&w, "/eventbus/websocket", "");
    web_send_bytes(fd, "\x81\xff\0\0\0\xff\0\0\0\0aaaab", 15);  /* too long: 1009 */
    expect_close(fd, 1009);
    close(fd);
    web_stop(&w);
}

static void sockjs(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, NULL);
    int fd = dial(&w, "/eventbus/123/abcdefgh/websocket", "");
    expect(fd, "o");
    tell(fd, "");
    tell(fd, "[\"{\\\"type\\\":\\\"register\\\",\\\"address\\\":\\\"a\\\"}\","
             "\"{\\\"type\\\":\\\"publish\\\",\\\"address\\\":\\\"a\\\","
             "\\\"body\\\":\\\"\xc3\xa4\\\"}\"]");
    expect(fd, "a[\"{\\\"type\\\":\\\"rec\\\",\\\"address\\\":\\\"a\\\","
               "\\\"body\\\":\\\"\xc3\xa4\\\"}\"]");
    tell(fd, "\"{\\\"type\\\":\\\"send\\\",\\\"address\\\":\\\"a\\\",\\\"body\\\":1}\"");
    expect(fd, "a[\"{\\\"type\\\":\\\"rec\\\",\\\"address\\\":\\\"a\\\",\\\"body\\\":1}\"]");
    tell(fd, "[1]");
    expect_close(fd, 1002);
    close(fd);
    fd = dial(&w, "/eventbus/0/x/websocket", "");
    expect(fd, "o");
    srv_stop(w.s);                                      /* the last words */
    expect(fd, "c[3000,\"Go away!\"]");
    expect_close(fd, 1001);
    close(fd);
    web_stop(&w);
}

/* A client of SockJS, which may be silent itself, receives a heartbeat again and again. */
static void heartbeats(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, &(srv_options){ .limits.heartbeat_ms = 20 });
    int fd = dial(&w, "/eventbus/0/x/websocket", "");
    expect(fd, "o");
    for (int i = 0; i < 3; i++)
        expect(fd, "h");
    close(fd);
    web_stop(&w);
}

static void a_silent_client(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, &(srv_options){ .limits.ping_ms = 100 });
    int fd = dial(&w, "/eventbus/websocket", ""), first;
    for (int i = 0; i < 3; i++) {
        tell(fd, "{\"type\":\"send\",\"address\":\"x\",\"replyAddress\":\"r\"}");
        free(next_frame(fd, &first));
    }
    expect_close(fd, 1001);
    close(fd);
    fd = dial(&w, "/eventbus/0/x/websocket", "");
    expect(fd, "o");
    expect(fd, "c[3000,\"Go away!\"]");
    expect_close(fd, 1001);
    close(fd);
    web_stop(&w);
}

/* ---- large, deep, in pieces ---- */

#define REGISTER "{\"type\":\"register\",\"address\":\"a\"}"
#define PUBLISH "{\"type\":\"publish\",\"address\":\"a\",\"body\":"
#define RECEIVED "{\"type\":\"rec\",\"address\":\"a\",\"body\":"

/* A text in one frame of less than 126 bytes, at `to`; the mask is zero. Its length. */
static size_t put_frame(char *to, const char *text)
{
    size_t len = strlen(text);
    to[0] = (char)0x81;
    to[1] = (char)(0x80 | len);
    memset(to + 2, 0, 4);
    memcpy(to + 6, text, len);
    return len + 6;
}

static void frames_in_pieces_and_together(void **state)
{
    (void)state;
    web    w;
    char   all[400];
    size_t n = put_frame(all, REGISTER);
    n += put_frame(all + n, PUBLISH "\"\xc3\xa4\"}");
    n += put_frame(all + n, PUBLISH "2}");
    web_start(&w, "mem:", false, NULL);
    for (int together = 0; together < 2; together++) {
        int fd = dial(&w, "/eventbus/websocket", "");
        for (size_t i = 0, step = together ? n : 1; i < n; i += step)
            web_send_bytes(fd, all + i, step);
        expect(fd, RECEIVED "\"\xc3\xa4\"}");
        expect(fd, RECEIVED "2}");
        close(fd);
    }
    int fd = dial(&w, "/eventbus/websocket", "");
    frame(fd, 0x01, REGISTER, 10);                      /* one message in three frames */
    frame(fd, 0x00, &REGISTER[10], 5);
    frame(fd, 0x80, &REGISTER[15], strlen(REGISTER) - 15);
    tell(fd, PUBLISH "3}");
    expect(fd, RECEIVED "3}");
    close(fd);
    web_stop(&w);
}

/* PUBLISH with a text of `len` bytes, quotes included, as its body. free(). */
static char *publish_text(size_t len)
{
    char  *json = malloc(len + 100);
    size_t n = strlen(PUBLISH);
    memcpy(json, PUBLISH, n);
    memset(json + n, 'x', len);
    json[n] = json[n + len - 1] = '"';
    strcpy(json + n + len, "}");
    return json;
}

static void bodies_up_to_the_limit(void **state)
{
    (void)state;
    static const size_t sizes[] = { 10 * 1024 * 1024, WEIR_MAX_BUS_BODY };
    web w;
    web_start(&w, "mem:", false, NULL);
    int fd = dial(&w, "/eventbus/websocket", "");
    tell(fd, REGISTER);
    for (size_t i = 0; i < 2; i++) {
        int   first;
        char *json = publish_text(sizes[i]);
        tell(fd, json);
        char *got = next_frame(fd, &first);
        assert_non_null(got);
        assert_int_equal(strlen(got), strlen(RECEIVED) + sizes[i] + 1);
        free(got);
        free(json);
    }
    char *json = publish_text(WEIR_MAX_BUS_BODY + 1);
    tell(fd, json);
    expect_code(fd, "rejected");
    free(json);
    tell(fd, PUBLISH "1}");                             /* and the connection goes on */
    expect(fd, RECEIVED "1}");
    close(fd);
    web_stop(&w);
}

/* ---- services ---- */

static void add_up(weir_message *m, void *ctx)
{
    char text[32];
    int  a, b;
    (void)ctx;
    if (sscanf(weir_message_body(m, NULL), "{\"a\":%d,\"b\":%d}", &a, &b) != 2) {
        weir_message_fail(m, 400, "a and b are expected", NULL);
        return;
    }
    snprintf(text, sizeof text, "%d", a + b);
    weir_message_reply(m, &(weir_content){ .body = text }, NULL);
}

/* A C program publishes a service through the server; clients of both bridges call it. */
static void a_service_of_a_program(void **state)
{
    static const char        call[] = "{\"type\":\"send\",\"address\":\"calc\","
        "\"replyAddress\":\"r\",\"headers\":{\"action\":\"%s\"},\"body\":{\"a\":1,\"b\":2}}";
    static const weir_action actions[] = { { .name = "add", .run = add_up }, { .name = NULL } };
    (void)state;
    web           w;
    char          url[200], add[300], mul[300];
    weir_queue   *q;
    weir_bus     *bus;
    weir_service *service;
    weir_reply    r;
    web_start(&w, "mem:", false, &(srv_options){ .bus = { .listen = "127.0.0.1:0" } });
    snprintf(url, sizeof url, "http://%s", w.host);
    snprintf(add, sizeof add, call, "add");
    snprintf(mul, sizeof mul, call, "mul");
    assert_int_equal(weir_open(&q, url, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_bus_open(&bus, q, NULL), WEIR_OK);
    assert_int_equal(weir_service_publish(&service, bus, &(weir_service_config){
                     .name = "calc", .actions = actions }, NULL), WEIR_OK);
    while (weir_service_call(bus, "calc", "add", "{}", 0, &r, NULL) == WEIR_ENOENT)
        rt_breathe();                                   /* until the server knows it */
    int tcp = tcp_dial(srv_bus_address(w.s)), ws = dial(&w, "/eventbus/websocket", "");
    tcp_tell(tcp, add);
    tcp_expect(tcp, "{\"type\":\"message\",\"address\":\"r\",\"headers\":{},\"body\":3,"
                    "\"send\":true}");
    tcp_tell(tcp, mul);
    char *got = tcp_next(tcp);
    assert_non_null(strstr(got, "\"failureCode\":500"));
    assert_non_null(strstr(got, "Invalid action: mul"));
    free(got);
    tell(ws, add);
    expect(ws, "{\"type\":\"rec\",\"address\":\"r\",\"body\":3}");
    tell(ws, mul);
    int first;
    got = next_frame(ws, &first);
    assert_non_null(strstr(got, "\"failureCode\":500"));
    assert_non_null(strstr(got, "Invalid action: mul"));
    free(got);
    close(tcp);
    close(ws);
    weir_service_close(service);
    weir_bus_close(bus);
    weir_close(q);
    web_stop(&w);
}

static void deep_bodies(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, NULL);
    int fd = dial(&w, "/eventbus/websocket", "");
    tell(fd, REGISTER);
    for (int depth = WEIR_MAX_DEPTH; depth <= WEIR_MAX_DEPTH + 1; depth++) {
        char   json[2 * WEIR_MAX_DEPTH + 200], want[sizeof json];
        size_t n = strlen(PUBLISH);
        memcpy(json, PUBLISH, n);
        memset(json + n, '[', (size_t)depth);
        memset(json + n + depth, ']', (size_t)depth);
        strcpy(json + n + 2 * depth, "}");
        snprintf(want, sizeof want, "%s%s", RECEIVED, json + n);
        tell(fd, json);
        if (depth <= WEIR_MAX_DEPTH)
            expect(fd, want);
        else
            expect_code(fd, "invalid_json");
    }
    close(fd);
    web_stop(&w);
}

/* A page of another site opens a WebSocket: browsers let it, so the server must not. */
static void pages_of_others(void **state)
{
    (void)state;
    web w;
    web_start(&w, "mem:", false, NULL);
    int fd = dial(&w, "/eventbus/websocket", "Origin: https://evil.example\r\n");
    tell(fd, "{\"type\":\"register\",\"address\":\"a\"}");
    expect_code(fd, "access_denied");
    tell(fd, "{\"type\":\"publish\",\"address\":\"a\"}");
    expect_code(fd, "access_denied");
    close(fd);
    char own[200];
    snprintf(own, sizeof own, "Origin: http://%s\r\n", w.host);
    fd = dial(&w, "/eventbus/websocket", own);
    tell(fd, "{\"type\":\"register\",\"address\":\"a\"}");
    tell(fd, "{\"type\":\"publish\",\"address\":\"a\",\"body\":1}");
    expect(fd, "{\"type\":\"rec\",\"address\":\"a\",\"body\":1}");
    close(fd);
    web_stop(&w);
}

/* sockjs-client asks with credentials: browsers want an answer that allows them. */
static void information_for_other_origins(void **state)
{
    static const char *const origins[] = { "https://other.example", NULL };
    (void)state;
    web w;
    web_start(&w, "mem:", false, &(srv_options){ .origins = origins });
    web_answer a = web_call_with(&w, "GET", "/eventbus/info", "Origin: https://other.example\r\n",
                                 NULL);
    assert_int_equal(a.status, 200);
    assert_string_equal(web_header(&a, "Access-Control-Allow-Origin"), origins[0]);
    assert_string_equal(web_header(&a, "Access-Control-Allow-Credentials"), "true");
    web_free(&a);
    a = web_call_with(&w, "GET", "/eventbus/info", "Origin: https://evil.example\r\n", NULL);
    assert_null(web_header(&a, "Access-Control-Allow-Credentials"));
    web_free(&a);
    a = web_call_with(&w, "GET", "/v1/jobs", "Origin: https://other.example\r\n", NULL);
    assert_int_equal(a.status, 200);
    assert_null(web_header(&a, "Access-Control-Allow-Credentials"));
    web_free(&a);
    int fd = dial(&w, "/eventbus/websocket", "Origin: https://other.example\r\n");
    tell(fd, "{\"type\":\"register\",\"address\":\"a\"}");
    tell(fd, "{\"type\":\"publish\",\"address\":\"a\",\"body\":1}");
    expect(fd, "{\"type\":\"rec\",\"address\":\"a\",\"body\":1}");
    close(fd);
    web_stop(&w);
}

/* Each client has an address of its own and one of all; it receives what is published, asks its
 * neighbour, and leaves nothing behind. */
static void a_thousand_clients(void **state)
{
    enum { N = 1000 };
    static int fd[N];
    char       text[200];
    web        w;
    struct rlimit files;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    web_start(&w, "mem:", false, &(srv_options){ .limits.ping_ms = PATIENCE_MS });
    for (int i = 0; i < N; i++) {
        fd[i] = dial(&w, "/eventbus/ws", "");
        tell(fd[i], "{\"type\":\"register\",\"address\":\"all\"}");
        snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"one.%d\"}", i);
        tell(fd[i], text);
        tell(fd[i], "{\"type\":\"ping\"}");
    }
    for (int i = 0; i < N; i++)
        expect(fd[i], "{\"type\":\"pong\"}");
    tell(fd[0], "{\"type\":\"publish\",\"address\":\"all\",\"body\":1}");
    for (int i = 0; i < N; i++)
        expect(fd[i], "{\"type\":\"message\",\"address\":\"all\",\"headers\":{},\"body\":1,"
                      "\"send\":false}");
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "{\"type\":\"send\",\"address\":\"one.%d\","
                 "\"replyAddress\":\"r\",\"body\":%d}", (i + 1) % N, i);
        tell(fd[i], text);
    }
    for (int i = 0; i < N; i++) {
        char reply[WEIR_REPLY_ADDRESS];
        int  first, from = (i + N - 1) % N;
        char *got = next_frame(fd[i], &first), *at = strstr(got, "\"replyAddress\":\"");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "\"replyAddress\":\"%36[^\"]", reply), 1);
        snprintf(text, sizeof text, "\"body\":%d,", from);
        assert_non_null(strstr(got, text));
        free(got);
        snprintf(text, sizeof text, "{\"type\":\"send\",\"address\":\"%s\",\"body\":%d}", reply, i);
        tell(fd[i], text);
        snprintf(text, sizeof text, "{\"type\":\"message\",\"address\":\"r\",\"headers\":{},"
                 "\"body\":%d,\"send\":true}", i);
        if (i)
            expect(fd[from], text);
    }
    expect(fd[N - 1], "{\"type\":\"message\",\"address\":\"r\",\"headers\":{},\"body\":0,"
                      "\"send\":true}");
    for (int i = 1; i < N; i++)
        close(fd[i]);
    for (bool gone = false; !gone; usleep(1000)) {
        web_answer a = web_call(&w, "GET", "/v1/bus", NULL);
        gone = strstr(a.body, "{\"address\":\"all\",\"here\":1,") && !strstr(a.body, "\"one.999\"");
        web_free(&a);
    }
    close(fd[0]);
    web_stop(&w);
}

static void tokens(void **state)
{
    static const char *const any[] = { ".*", NULL };
    (void)state;
    web        w;
    weir_error err;
    srv_caller who = { .name = "app" };
    char       dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20], token[SRV_TOKEN_TEXT], text[300];
    tempdir_make(dir);
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    assert_true(srv_roles_parse("work", &who.roles));
    assert_int_equal(srv_tokens_add(file, &who, 1, token, &err), WEIR_OK);
    web_start(&w, "mem:", false, &(srv_options){ .tokens_file = file,
              .bus = { .inbound = any, .outbound = any } });
    int fd = dial(&w, "/eventbus/websocket", "");
    tell(fd, "{\"type\":\"register\",\"address\":\"a\"}");
    expect_code(fd, "access_denied");
    snprintf(text, sizeof text, "{\"type\":\"register\",\"address\":\"a\",\"headers\":"
             "{\"Authorization\":\"Bearer %s\"}}", token);
    tell(fd, text);
    tell(fd, "{\"type\":\"publish\",\"address\":\"a\",\"body\":1}");
    expect(fd, "{\"type\":\"rec\",\"address\":\"a\",\"body\":1}");
    close(fd);
    snprintf(text, sizeof text, "Authorization: Bearer %s\r\n", token);
    fd = dial(&w, "/eventbus/websocket", text);
    tell(fd, "{\"type\":\"register\",\"address\":\"a\"}");
    tell(fd, "{\"type\":\"publish\",\"address\":\"a\",\"body\":2}");
    expect(fd, "{\"type\":\"rec\",\"address\":\"a\",\"body\":2}");
    assert_int_equal(srv_tokens_remove(file, "app", &err), WEIR_OK);
    assert_int_equal(srv_reload(w.s, &err), WEIR_OK);
    expect_close(fd, 1008);
    close(fd);
    web_stop(&w);
    tempdir_remove(dir);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(information),     cmocka_unit_test(information_for_other_origins),
        cmocka_unit_test(plain_websockets),
        cmocka_unit_test(frames_in_pieces_and_together),
        cmocka_unit_test(bodies_up_to_the_limit),
        cmocka_unit_test(deep_bodies),
        cmocka_unit_test(a_service_of_a_program),
        cmocka_unit_test(own_messages),
        cmocka_unit_test(protocol_errors), cmocka_unit_test(sockjs),
        cmocka_unit_test(heartbeats),      cmocka_unit_test(a_silent_client),
        cmocka_unit_test(pages_of_others), cmocka_unit_test(tokens),
        cmocka_unit_test(a_thousand_clients),
    };
    return cmocka_run_group_tests_name("bus_ws", tests, NULL, NULL);
}
