/* test_http1.c - the reader of HTTP/1.1: a request that RFC 9112 does not allow is refused with its
 * status and ends the connection, however its bytes are cut, and nothing behind it is answered. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/http1.h"
#include "support/server_rig.h"

typedef struct row {
    int         status;
    const char *bytes;
    size_t      len;
} row;

#define ROW(status, bytes) { status, bytes, sizeof(bytes) - 1 }
#define HOST "Host: localhost\r\n"
#define LINE(field) "GET /healthz HTTP/1.1\r\n" HOST field "\r\n\r\n"
#define POST(fields, body)                                                                       \
    "POST /v1/jobs HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n" fields "\r\n" body
#define CHUNKED(body) POST("Transfer-Encoding: chunked\r\n", body)
#define JOB "{\"type\":\"t\"}"              /* 12 bytes: c */
#define SMUGGLED "GET /smuggled HTTP/1.1\r\n" HOST "\r\n"

/* What the reader refuses by itself. */
static const row malformed[] = {
    /* ---- the request line ---- */
    ROW(400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    ROW(400, "\n"),
    ROW(400, "\r\n\r\nGET /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "\rGET /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, " GET /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "hello\r\n\r\n"),
    ROW(400, "GE(T /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET\t/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET\0/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET  /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz  HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz HTTP/1.1 \r\n" HOST "\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\n" HOST "\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\rHost: localhost\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\rHost: localhost\r\n\r\n"),
    ROW(400, "GET /health z HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz\t HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz#top HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /health\x01z HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /health\x7fz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /health\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /health\0z HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "AVERYLONGMETHODNAME / HTTP/1.1\r\n" HOST "\r\n"),
    /* ---- versions ---- */
    ROW(505, "GET /healthz\r\n"),
    ROW(400, "GET /healthz \r\n"),
    ROW(505, "GET /healthz HTTP/0.9\r\n" HOST "\r\n"),
    ROW(505, "GET /healthz HTTP/1.2\r\n" HOST "\r\n"),
    ROW(505, "GET /healthz HTTP/2.0\r\n" HOST "\r\n"),
    ROW(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.10\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz HTTP/11\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz HTTP/1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz http/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz HTTPS/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET /healthz RTSP/1.0\r\n" HOST "\r\n"),
    /* ---- fields ---- */
    ROW(400, LINE("bad header")),
    ROW(400, LINE(": empty name")),
    ROW(400, LINE("X : y")),
    ROW(400, LINE("X\t: y")),
    ROW(400, LINE("X Y: z")),
    ROW(400, LINE("X(Y): z")),
    ROW(400, LINE("X\x7f: z")),
    ROW(400, LINE("X\xc3\xa4: z")),
    ROW(400, LINE("X\0Y: z")),
    ROW(400, LINE("X: a\r\n folded")),
    ROW(400, LINE("X: a\r\n\tfolded")),
    ROW(400, "GET /healthz HTTP/1.1\r\n X: y\r\n" HOST "\r\n"),
    ROW(400, LINE("X: a\nY: b")),
    ROW(400, LINE("X: a\rY: b")),
    ROW(400, LINE("X: a\r\rY: b")),
    ROW(400, LINE("X: a\0b")),
    ROW(400, LINE("X: a\x0b" "b")),
    ROW(400, LINE("X: a\x1b[31m")),
    ROW(400, LINE("X: a\x7f")),
    ROW(400, "GET /healthz HTTP/1.1\r\n" HOST "X: y\r\n\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\n" HOST "X: y\r\n\rG"),
    /* ---- Host ---- */
    ROW(400, "GET /healthz HTTP/1.1\r\n\r\n"),
    ROW(400, LINE("Host: localhost")),
    ROW(400, LINE("hOST: other")),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: user@localhost\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: localhost:65536\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: localhost:80:80\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: [nonsense]\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: [::1]x\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.1\r\nHost: a%zz\r\n\r\n"),
    ROW(400, "GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    /* ---- the length of the body ---- */
    ROW(400, POST("Content-Length: 12\r\nContent-Length: 12\r\n", JOB)),
    ROW(400, POST("Content-Length: 12\r\ncontent-length: 5\r\n", JOB)),
    ROW(400, POST("Content-Length: 12, 12\r\n", JOB)),
    ROW(400, POST("Content-Length: +12\r\n", JOB)),
    ROW(400, POST("Content-Length: -1\r\n", JOB)),
    ROW(400, POST("Content-Length: 1 2\r\n", JOB)),
    ROW(400, POST("Content-Length: 0xc\r\n", JOB)),
    ROW(400, POST("Content-Length: 12.0\r\n", JOB)),
    ROW(400, POST("Content-Length:\r\n", JOB)),
    ROW(400, POST("Content-Length: \xd9\xa1\r\n", JOB)),
    ROW(413, POST("Content-Length: 99999999999999999999\r\n", JOB)),
    ROW(400, POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    ROW(501, POST("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: identity\r\n", JOB)),
    ROW(400, POST("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: ,chunked\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")),
    ROW(400, POST("Transfer-Encoding:\r\n", "0\r\n\r\n")),
    ROW(400, "POST /v1/jobs HTTP/1.0\r\n" HOST "Content-Type: application/json\r\n"
             "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    /* ---- chunks ---- */
    ROW(400, CHUNKED("\r\n")),
    ROW(400, CHUNKED("g\r\n")),
    ROW(400, CHUNKED("0xc\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("-c\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("+c\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED(" c\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c \r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c ;x\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c,\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("000000000000000c\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("fffffffffffffffff\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c\rX" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c;a\nb\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c;a\rb\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c;a\0b\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "0\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "XX0\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\n0\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r0\r\n\r\n")),
    ROW(400, CHUNKED("b\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\n\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\n\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\n\rX")),
    /* ---- trailers ---- */
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\nContent-Length: 5\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\ntransfer-encoding: chunked\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\nHost: other\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\nX : y\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\nX: y\r\n z\r\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\nX: y\n\r\n")),
    ROW(400, CHUNKED("c\r\n" JOB "\r\n0\r\nno colon\r\n\r\n")),
};

/* Well-formed, but not for this server: targets, methods, expectations, types of bodies. */
static const row unwanted[] = {
    ROW(400, "GET healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET localhost:80 HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET * HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "CONNECT localhost:80 HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "TRACE /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "get /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(501, "BREW /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http:///healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http://other/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http://localhost:1/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET http://me@localhost/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(421, "GET https://localhost/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(400, "GET ftp://localhost/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(417, POST("Expect: a-pony\r\nContent-Length: 12\r\n", JOB)),
    ROW(415, "POST /v1/jobs HTTP/1.1\r\n" HOST "Content-Type: application/jsonp\r\n"
             "Content-Length: 12\r\n\r\n" JOB),
    ROW(415, "POST /v1/jobs HTTP/1.1\r\n" HOST "Content-Type: application/json x\r\n"
             "Content-Length: 12\r\n\r\n" JOB),
    ROW(415, "POST /v1/jobs HTTP/1.1\r\n" HOST "Content-Type: application/json,text/plain\r\n"
             "Content-Length: 12\r\n\r\n" JOB),
};

static const row good[] = {
    ROW(200, "GET /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "\r\nGET /healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET http://LocalHost/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET HTTP://localhost/healthz HTTP/1.1\r\n" HOST "\r\n"),
    ROW(200, "GET /healthz HTTP/1.1\r\nhost:localhost:65535\r\n\r\n"),
    ROW(200, "GET /healthz HTTP/1.1\r\nHost: \t localhost: \t \r\n\r\n"),
    ROW(200, "GET /healthz HTTP/1.1\r\nHost: [::1]:7340\r\n\r\n"),
    ROW(200, "GET /healthz HTTP/1.1\r\nHost: a-b.c_d~!$&'()*+,;=%2f\r\n\r\n"),
    ROW(200, LINE("X:")),
    ROW(200, LINE("X:  \t ")),
    ROW(200, LINE("X: a \t b\xc3\xa4\xff")),
    ROW(200, LINE("!#$%&'*+-.^_`|~09azAZ: (\"<@>,;:\\/[]?={}) ")),
    ROW(200, LINE("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA")),
    ROW(200, "GET /healthz HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n"),
    ROW(200, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
    ROW(201, POST("Content-Length: 12\r\n", JOB)),
    ROW(201, POST("Content-Length: 0000012\r\n", JOB)),
    ROW(201, POST("Expect: 100-Continue\r\nContent-Length: 12\r\n", JOB)),
    ROW(201, "POST /v1/jobs HTTP/1.1\r\n" HOST "Content-Length: 12\r\n"
             "Content-Type: Application/JSON ; charset=utf-8\r\n\r\n" JOB),
    ROW(201, CHUNKED("c\r\n" JOB "\r\n0\r\n\r\n")),
    ROW(201, POST("transfer-encoding:\tChunked \r\n", "00c\r\n" JOB "\r\n000\r\n\r\n")),
    ROW(201, CHUNKED("C;name=value;other=\"a; b\"\r\n" JOB "\r\n0;last\r\n\r\n")),
    ROW(201, CHUNKED("1\r\n{\r\nb\r\n\"type\":\"t\"}\r\n0\r\nX: y\r\nChecksum: 1\r\n\r\n")),
};

#define EACH(rows) rows, sizeof rows / sizeof *rows

/* ---- the reader by itself ---- */

/* Read in pieces of this size; the status it is refused with, or 0 with the number of requests. */
static int read_in_pieces(const row *r, size_t piece, int *complete)
{
    srv_http1      h = { 0 };
    srv_http1_head head = { 0 };
    *complete = 0;
    for (size_t from = 0; from < r->len && !h.status; from += piece) {
        size_t          n = r->len - from < piece ? r->len - from : piece;
        char           *copy = malloc(n);       /* so that reading beyond it shows */
        const char     *at = copy, *end = copy + n;
        srv_http1_event ev;
        assert_non_null(copy);
        memcpy(copy, r->bytes + from, n);
        while ((ev = srv_http1_read(&h, &at, end)) && ev != SRV_HTTP1_BAD) {
            if (ev == SRV_HTTP1_BEGIN) {
                h.head = &head;
            } else if (ev == SRV_HTTP1_END) {
                srv_http1_head_fini(&head);
                head = (srv_http1_head){ 0 };
                ++*complete;
            }
        }
        assert_true(at == end || h.status);
        free(copy);
    }
    srv_http1_head_fini(&head);
    return h.status;
}

static void the_pieces_do_not_matter(void **state)
{
    (void)state;
    static const size_t pieces[] = { 1, 2, 3, 7, 65536 };
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        int complete;
        for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
            int status = read_in_pieces(&malformed[i], pieces[p], &complete);
            if (status != malformed[i].status)
                fail_msg("pieces of %zu: %d, not %d: %s", pieces[p], status, malformed[i].status,
                         malformed[i].bytes);
        }
        for (size_t i = 0; i < sizeof good / sizeof *good; i++)
            if (read_in_pieces(&good[i], pieces[p], &complete) || complete != 1)
                fail_msg("pieces of %zu: %s", pieces[p], good[i].bytes);
    }
}

/* ---- a real server ---- */

static int connect_eager(web *w)
{
    int fd = web_connect(w), on = 1;
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    return fd;
}

/* Send until the server has closed its side: what comes after that is lost. */
static void send_pieces(int fd, const char *bytes, size_t len, size_t piece)
{
    for (size_t from = 0; from < len; from += piece) {
        size_t n = len - from < piece ? len - from : piece;
        if (send(fd, bytes + from, n, MSG_NOSIGNAL) < 0) {
            assert_true(errno == EPIPE || errno == ECONNRESET);
            return;
        }
    }
}

/* One answer with this status, then the end: the request behind it is not answered. */
static void refused(web *w, const row *r, size_t piece)
{
    int fd = connect_eager(w);
    send_pieces(fd, r->bytes, r->len, piece);
    send_pieces(fd, SMUGGLED, sizeof SMUGGLED - 1, piece);
    web_answer a = web_read(fd);
    if (a.status != r->status)
        fail_msg("%d, not %d: %s", a.status, r->status, r->bytes);
    const char *connection = web_header(&a, "Connection");
    assert_true(connection && !strcmp(connection, "close"));
    web_free(&a);
    if (!web_closed(fd))
        fail_msg("more than one answer: %s", r->bytes);
    close(fd);
}

static void refused_each(web *w, const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        refused(w, &rows[i], SIZE_MAX / 2);
        refused(w, &rows[i], 1);
    }
}

static void what_is_malformed_ends_the_connection(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    refused_each(&w, EACH(malformed));
    refused_each(&w, EACH(unwanted));
    web_stop(&w);
}

static void what_is_well_formed_is_answered(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (size_t i = 0; i < 2 * sizeof good / sizeof *good; i++) {
        const row *r = &good[i / 2];
        int        fd = connect_eager(&w);
        send_pieces(fd, r->bytes, r->len, i % 2 ? 1 : SIZE_MAX / 2);
        send_pieces(fd, SMUGGLED, sizeof SMUGGLED - 1, i % 2 ? 1 : SIZE_MAX / 2);
        web_answer a = web_read(fd);
        if (a.status != r->status)
            fail_msg("%d, not %d: %s", a.status, r->status, r->bytes);
        web_free(&a);
        a = web_read(fd);               /* and so is the one behind it */
        assert_int_equal(a.status, 404);
        web_free(&a);
        close(fd);
    }
    web_stop(&w);
}

/* Elements without end are refused as soon as they are too long, not when memory is used up. */
static void what_is_endless_is_refused(void **state)
{
    (void)state;
    static const struct { const char *begin, *again; int status; } endless[] = {
        { "", "A", 501 },
        { "GET /", "a", 414 },
        { "GET / HTTP/1.1\r\n", "X: y\r\n", 431 },
        { "GET / HTTP/1.1\r\n", "X", 431 },
        { "GET / HTTP/1.1\r\nX:", " ", 431 },
        { "GET / HTTP/1.1\r\nX:", "y", 431 },
        { "GET / HTTP/1.1\r\nX: y", " ", 431 },
        { CHUNKED(""), "0", 400 },
        { CHUNKED("c;"), "x", 400 },
        { CHUNKED(""), "1;0123456789\r\n \r\n", 400 },
        { CHUNKED("0\r\n"), "X: y\r\n", 431 },
        { CHUNKED("0\r\nX: "), "y", 431 },
    };
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        weir_buf b = { 0 };
        int      complete;
        weir__buf_str(&b, endless[i].begin);
        while (b.len < 128 * 1024)
            weir__buf_str(&b, endless[i].again);
        row r = { endless[i].status, b.data, b.len };
        for (size_t piece = 1; piece < 70000; piece = piece * 7 + 1)
            if (read_in_pieces(&r, piece, &complete) != r.status)
                fail_msg("%zu: %s... is not refused with %d", i, endless[i].begin, r.status);
        weir__buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pieces_do_not_matter),
        cmocka_unit_test(what_is_endless_is_refused),
        cmocka_unit_test(what_is_malformed_ends_the_connection),
        cmocka_unit_test(what_is_well_formed_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
