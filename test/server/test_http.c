/* test_http.c - HTTP itself: what is well-formed is answered, what is not gets a clear 4xx or a
 * clean end, and neither leaks nor hangs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/server_rig.h"

#define GET_HEALTH "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

static void expect(int fd, int status, const char *part)
{
    web_answer a = web_read(fd);
    if (a.status != status || !strstr(a.body, part))
        fail_msg("status %d, not %d: %s", a.status, status, a.body ? a.body : "(nothing)");
    web_free(&a);
}

/* Send these bytes on a connection of their own; the answer. */
static void raw(web *w, const char *bytes, int status, const char *part)
{
    int fd = web_connect(w);
    web_send(fd, bytes);
    shutdown(fd, SHUT_WR);
    expect(fd, status, part);
    assert_true(web_closed(fd));
    close(fd);
}

static void health_is_answered(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    web_answer a = web_call(&w, "GET", "/healthz", NULL);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "{\"ok\":true}");
    assert_string_equal(web_header(&a, "X-Content-Type-Options"), "nosniff");
    assert_string_equal(web_header(&a, "Cross-Origin-Opener-Policy"), "same-origin");
    assert_null(web_header(&a, "Strict-Transport-Security"));       /* without TLS */
    assert_non_null(web_header(&a, "Date"));
    web_free(&a);
    a = web_call(&w, "HEAD", "/healthz", NULL);
    assert_int_equal(a.status, 200);
    web_free(&a);
    web_stop(&w);
}

static void requests_follow_each_other(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    int fd = web_connect(&w);
    for (int i = 0; i < 3; i++) {
        web_send(fd, GET_HEALTH);
        expect(fd, 200, "ok");
    }
    web_send(fd, GET_HEALTH GET_HEALTH "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" GET_HEALTH);
    expect(fd, 200, "ok");
    expect(fd, 200, "ok");
    expect(fd, 404, "/nowhere");
    expect(fd, 200, "ok");
    close(fd);
    /* byte by byte */
    fd = web_connect(&w);
    for (const char *c = GET_HEALTH; *c; c++)
        web_send_bytes(fd, c, 1);
    expect(fd, 200, "ok");
    close(fd);
    web_stop(&w);
}

static void a_half_closed_client_hears_its_answers(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    int fd = web_connect(&w);
    web_send(fd, GET_HEALTH GET_HEALTH);
    shutdown(fd, SHUT_WR);
    expect(fd, 200, "ok");
    expect(fd, 200, "ok");
    assert_true(web_closed(fd));
    close(fd);
    web_stop(&w);
}

static void what_is_no_http_is_refused(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    static const struct { const char *bytes; int status; const char *part; } cases[] = {
        { "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "" },
        { "hello\r\n\r\n", 400, "" },
        { "GET /healthz\r\n\r\n", 505, "HTTP/1.1" },
        { "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n", 505, "HTTP/1.1" },
        { "GET /healthz HTTP/1.1\r\n\r\n", 400, "Host is missing" },
        { "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400,
          "Host is given more than once" },
        { "GET /healthz HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400, "" },
        { "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "" },
        { "GET /a/../healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, ". or .." },
        { "GET /%2e%2e/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, ". or .." },
        { "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "control" },
        { "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "hexadecimal" },
        { "GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400, "UTF-8" },
        { "GET /healthz?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", 400,
          "unknown parameter \\\"x\\\"; this route accepts none" },
        { "GET //healthz HTTP/1.1\r\nHost: x\r\n\r\n", 404, "" },
        { "DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 405, "possible: GET" },
        { "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
          "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "" },
        { "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
          "hello", 400, "" },
        { "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, "" },
        { "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413,
          "" },
        { "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 404, "/nowhere" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        raw(&w, cases[i].bytes, cases[i].status, cases[i].part);
    web_stop(&w);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    web   w;
    char *big = malloc(200001);
    web_start(&w, RT_MEM, false, NULL);
    assert_non_null(big);
    memset(big, 'a', 200000);
    big[200000] = '\0';
    web_error(&w, 414, "http", "SRV_MAX_TARGET", "GET", (memcpy(big, "/", 1), big), NULL);
    memcpy(big, "X: ", 3);
    strcpy(big + 17000, "\r\n");
    web_answer a = web_call_with(&w, "GET", "/healthz", big, NULL);
    assert_int_equal(a.status, 431);
    web_free(&a);
    char *at = big;
    for (int i = 0; i < 120; i++)
        at += sprintf(at, "X-%d: 1\r\n", i);
    a = web_call_with(&w, "GET", "/healthz", big, NULL);
    assert_int_equal(a.status, 431);
    web_free(&a);
    web_error(&w, 405, "http", "possible: GET", "POST", "/healthz", "{}");
    free(big);
    web_stop(&w);
}

static void broken_off_requests_leave_nothing(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    static const char whole[] = "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{";
    for (size_t n = 0; n < sizeof whole; n++) {
        int fd = web_connect(&w);
        web_send_bytes(fd, whole, n);
        close(fd);
    }
    web_answer a = web_call(&w, "GET", "/healthz", NULL);
    assert_int_equal(a.status, 200);
    web_free(&a);
    web_stop(&w);
}

static void browsers_get_a_page_for_unknown_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *accept;
        bool        page;
    } cases[] = {
        { "GET", "/nowhere", "Accept: text/html,*/*;q=0.8\r\n", true },
        { "GET", "/jobs/1/2/3?a=b", "Accept: text/html\r\n", true },
        { "GET", "/types/%E0%A4%A", "Accept: text/html\r\n", true },
        { "GET", "/nowhere", "Accept: application/json\r\n", false },
        { "GET", "/nowhere", "", false },
        { "GET", "/v1/nowhere", "Accept: text/html\r\n", false },
        { "GET", "/assets/a/b", "Accept: text/html\r\n", false },
        { "POST", "/nowhere", "Accept: text/html\r\n", false },
    };
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        web_answer a = web_call_with(&w, cases[i].method, cases[i].path, cases[i].accept, NULL);
        bool       page = !strncmp(web_header(&a, "Content-Type"), "text/html", 9);
        if (a.status != 404 || page != cases[i].page)
            fail_msg("%s %s %s: %d", cases[i].method, cases[i].path, cases[i].accept, a.status);
        web_free(&a);
    }
    web_stop(&w);
}

static void idle_connections_do_no_harm(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    web w;
    web_start(&w, RT_MEM, false, NULL);
    int *fd = malloc(MANY * sizeof *fd);
    assert_non_null(fd);
    for (int i = 0; i < MANY; i++)
        fd[i] = web_connect(&w);
    web_answer a = web_call(&w, "GET", "/healthz", NULL);
    assert_int_equal(a.status, 200);
    web_free(&a);
    web_send(fd[MANY / 2], GET_HEALTH);
    expect(fd[MANY / 2], 200, "ok");
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    free(fd);
    web_stop(&w);
}

/* A client that is too slow gets 408; one that says nothing is closed. */
static void slow_clients_are_let_go(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .limits = { .head_ms = 100, .idle_ms = 300 } });
    int idle = web_connect(&w), slow = web_connect(&w);
    web_send(slow, "GET /healthz HTTP/1.1\r\nHost:");
    expect(slow, 408, "too long");
    close(slow);
    assert_true(web_closed(idle));
    close(idle);
    int kept = web_connect(&w);
    web_send(kept, GET_HEALTH);
    expect(kept, 200, "ok");
    assert_true(web_closed(kept));
    close(kept);
    web_stop(&w);
}

static void connections_are_counted(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .limits = { .connections = 2 } });
    int a = web_connect(&w), b = web_connect(&w);
    web_send(a, GET_HEALTH);
    expect(a, 200, "ok");
    web_send(b, GET_HEALTH);
    expect(b, 200, "ok");
    int c = web_connect(&w);
    expect(c, 503, "SRV_MAX_CONNECTIONS");
    close(c);
    close(a);
    for (bool in = false; !in;) {       /* its place is free soon */
        c = web_connect(&w);
        web_send(c, GET_HEALTH);
        web_answer answer = web_read(c);
        in = answer.status == 200;
        web_free(&answer);
        close(c);
    }
    close(b);
    web_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_is_answered),
        cmocka_unit_test(requests_follow_each_other),
        cmocka_unit_test(a_half_closed_client_hears_its_answers),
        cmocka_unit_test(what_is_no_http_is_refused),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(broken_off_requests_leave_nothing),
        cmocka_unit_test(browsers_get_a_page_for_unknown_addresses),
        cmocka_unit_test(idle_connections_do_no_harm),
        cmocka_unit_test(slow_clients_are_let_go),
        cmocka_unit_test(connections_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
