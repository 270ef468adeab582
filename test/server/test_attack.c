/* test_attack.c - clients that mean harm, or are only badly made: what they do must cost them their
 * connection, never the server its memory, its time, or the answers of others. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/inner.h"
#include "server/access/tokens.h"
#include "server/live/workers.h"
#include "support/proxy.h"
#include "support/redis_rig.h"
#include "support/server_rig.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void expect(int fd, int status, const char *part)
{
    web_answer a = web_read(fd);
    if (a.status != status || !strstr(a.body, part))
        fail_msg("status %d, not %d: %s", a.status, status, a.body ? a.body : "(nothing)");
    web_free(&a);
}

/* A job whose data has so many bytes, and some more. */
static uint64_t add_large(web *w, size_t bytes)
{
    char *data = malloc(bytes + 3);
    assert_non_null(data);
    memset(data, 'x', bytes + 2);
    data[0] = data[bytes + 1] = '"';
    data[bytes + 2] = '\0';
    uint64_t id = rt_add(&w->t, &(weir_spec){ .type = "large", .data = data });
    free(data);
    return id;
}

/* ---- requests that two readers read differently ---- */

static void names_with_blanks_are_refused(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "Content-Length : 5\r\n", "Transfer-Encoding : chunked\r\n", " Content-Length: 5\r\n",
        "Content-Length\t: 5\r\n", "X Y: z\r\n", "X\x7f: z\r\n", "X\xc3\xa4: z\r\n",
    };
    web w;
    web_start(&w, RT_MEM, false, NULL);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        int fd = web_connect(&w);
        web_send(fd, "POST /v1/jobs HTTP/1.1\r\n");
        web_send(fd, heads[i]);
        web_send(fd, "Host: localhost\r\nContent-Type: application/json\r\n\r\n" GET("/healthz"));
        expect(fd, 400, "");
        assert_true(web_closed(fd));
        close(fd);
    }
    web_stop(&w);
}

/* ---- clients that do not listen ---- */

typedef struct unsent {
    srv_thread *thread;
    size_t    bytes;
} unsent;

static void sum_unsent(void *ctx)
{
    unsent *u = ctx;
    WEIR_EACH(srv_conn, c, &u->thread->conns, link)
        u->bytes += evbuffer_get_length(c->out) + c->in.len;
}

static size_t all_unsent(web *w)
{
    unsent u = { .thread = w->s->thread[0] };
    srv_loop_call(u.thread->loop, sum_unsent, &u);
    return u.bytes;
}

static void answers_that_nobody_takes_are_few(void **state)
{
    (void)state;
    enum { REQUESTS = 200, BYTES = 200 * 1000 };
    static const char one[] = GET("/v1/jobs/1");
    web  w;
    char all[REQUESTS * sizeof one] = "";
    web_start(&w, RT_MEM, false, &(srv_options){ .threads = 1 });
    add_large(&w, BYTES);
    for (size_t i = 0; i < REQUESTS; i++)
        memcpy(all + i * (sizeof one - 1), one, sizeof one);
    int fd = web_connect(&w);
    web_send(fd, all);
    for (size_t i = 0; i < REQUESTS; i++) {
        assert_true(all_unsent(&w) < SRV_MAX_BACKLOG + 2 * BYTES + sizeof all);
        expect(fd, 200, "xxxx");
    }
    web_send(fd, GET("/healthz"));
    expect(fd, 200, "ok");
    close(fd);
    web_stop(&w);
}

/* ---- clients that have said all they want to say ---- */

static void all_that_came_before_the_end_is_answered(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    int fd = web_connect(&w);
    web_send(fd, GET("/v1/stats") GET("/healthz") GET("/v1/stats") GET("/healthz") GET("/healthz"));
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 5; i++)
        expect(fd, 200, "");
    assert_true(web_closed(fd));
    close(fd);
    web_stop(&w);
}

static void half_a_request_at_the_end_is_forgotten(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, NULL);
    int fd = web_connect(&w);
    web_send(fd, GET("/v1/stats") "GET /healthz HTTP/1.1\r\nHo");
    shutdown(fd, SHUT_WR);
    expect(fd, 200, "");
    assert_true(web_closed(fd));        /* and not 408 when its time is up */
    close(fd);
    web_stop(&w);
}

static void nobody_waits_for_one_that_has_ended(void **state)
{
    (void)state;
    static const char take[] = "{\"types\":[\"t\"],\"wait\":60000}";
    web  w;
    char request[512];
    web_start(&w, RT_MEM, false, NULL);
    snprintf(request, sizeof request, GET("/v1/stats")
             "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s" GET("/v1/events") GET("/healthz"), strlen(take), take);
    int     fd = web_connect(&w);
    int64_t start = rt_ms();
    web_send(fd, request);
    shutdown(fd, SHUT_WR);
    expect(fd, 200, "");
    expect(fd, 200, "\"jobs\":[]");
    expect(fd, 200, "");
    expect(fd, 200, "ok");
    assert_true(web_closed(fd));
    assert_true(rt_ms() - start < 60000);
    close(fd);
    web_stop(&w);
}

/* Also when it begins to wait only after the client has ended. */
static void nobody_begins_to_wait_for_one_that_has_ended(void **state)
{
    (void)state;
    static const char body[] = "{\"type\":\"t\"}";
    web  w;
    char request[512];
    web_start(&w, RT_MEM, false, NULL);
    snprintf(request, sizeof request,
             "POST /v1/jobs?wait=60s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    for (int i = 0; i < 20; i++) {
        int     fd = web_connect(&w);
        int64_t start = rt_ms();
        web_send(fd, request);
        if (i % 2) {
            shutdown(fd, SHUT_WR);
            expect(fd, 202, "");
        }
        close(fd);
        assert_true(rt_ms() - start < 60000);
    }
    int64_t start = rt_ms();
    web_stop(&w);               /* waits for all requests */
    assert_true(rt_ms() - start < 50000);
}

/* Longer than what the kernel keeps for a client. */
static int ask_for_much(web *w, size_t *len)
{
    for (int i = 0; i < 12; i++)
        add_large(w, 1000 * 1000);
    *len = 12 * 1000 * 1000;
    int fd = web_connect(w);
    web_send(fd, "GET /jobs/0..20 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    return fd;
}

static void a_slow_reader_that_has_ended_gets_its_whole_answer(void **state)
{
    (void)state;
    web    w;
    size_t len;
    web_start(&w, RT_MEM, false, NULL);
    int fd = ask_for_much(&w, &len);
    shutdown(fd, SHUT_WR);
    web_answer other = web_call(&w, "GET", "/v1/stats", NULL);
    web_free(&other);
    web_answer a = web_read(fd);
    assert_int_equal(a.status, 200);
    assert_true(a.len >= len);
    assert_int_equal(a.body[a.len - 1], ']');
    web_free(&a);
    close(fd);
    web_stop(&w);
}

static void a_slow_reader_is_not_idle(void **state)
{
    (void)state;
    web    w;
    size_t len, got = 0;
    char   bytes[16384];
    web_start(&w, RT_MEM, false, &(srv_options){ .limits.idle_ms = 50 });
    int     fd = ask_for_much(&w, &len);
    int64_t start = rt_ms();
    for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
        got += (size_t)n;
        while (rt_ms() - start < 300 && got > 1000 * 1000) {
            web_answer other = web_call(&w, "GET", "/healthz", NULL);
            web_free(&other);
        }
    }
    assert_true(got > len);
    close(fd);
    web_stop(&w);
}

/* ---- clients that take all there is ---- */

static void slow_large_bodies_do_not_keep_out_small_ones(void **state)
{
    (void)state;
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .limits.bodies = 100 * 1000 });
    int fd = web_connect(&w);
    web_send(fd, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 "Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n");
    char hint[25];
    assert_int_equal(recv(fd, hint, sizeof hint, MSG_WAITALL), sizeof hint);
    json_decref(web_json(&w, 201, "POST", "/v1/jobs", "{\"type\":\"t\"}"));
    char *large = calloc(1, 50001);
    assert_non_null(large);
    memset(large, ' ', 50000);
    web_error(&w, 503, "http", "SRV_MAX_BODIES", "POST", "/v1/jobs", large);
    free(large);
    close(fd);
    web_stop(&w);
}

static void more_workers_than_can_be_remembered(void **state)
{
    (void)state;
    static const char *const types[] = { "t", NULL };
    rt           t;
    srv_workers *ws;
    rt_open(&t, RT_MEM, false);
    assert_int_equal(srv_workers_create(&ws, t.q, &t.err), WEIR_OK);
    for (int i = 0; i < SRV_MAX_WORKERS + 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "worker %d", i);
        srv_workers_seen(ws, name, types, 1000);
        srv_workers_wait(ws, name, 1, 1000);
    }
    srv_workers_destroy(ws);
    rt_close(&t);
}

/* When clients have all the files that a process may open, the store has none. Last of the tests:
 * not everybody may raise the limit again. */
static void files_are_left_for_others(void **state)
{
    (void)state;
    enum { FILES = 300, SPARE = 100 };
    web           w;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES, FILES }), 0);
    web_start(&w, RT_MEM, false, NULL);
    assert_in_range(w.s->opt.limits.connections, SPARE, FILES - SPARE);
    json_decref(web_json(&w, 200, "GET", "/v1/stats", NULL));
    web_stop(&w);
    setrlimit(RLIMIT_NOFILE, &before);
}

/* ---- tokens of one type ---- */

/* A worker whose job is said to be gone forgets it; the store was only away. */
static void a_store_that_is_away_is_not_a_job_that_is_gone(void **state)
{
    (void)state;
    web        w;
    char       dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], url[128];
    char       token[SRV_TOKEN_TEXT], bearer[SRV_TOKEN_TEXT + 40];
    weir_error err;
    srv_caller who = { .name = "w", .types = "t", .roles = WEIR_ROLE_READ | WEIR_ROLE_WORK };
    rig       *redis = rig_start(NULL);
    assert_non_null(redis);
    proxy *line = proxy_start(redis, 1);
    assert_non_null(line);
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    assert_int_equal(srv_tokens_add(file, &who, 1, token, &err), WEIR_OK);
    snprintf(bearer, sizeof bearer, "Authorization: Bearer %s\r\n", token);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=2s", proxy_port(line));
    web_start(&w, url, false, &(srv_options){ .tokens_file = file });
    rt_add_type(&w.t, "t");
    proxy_hold(line, true);
    web_answer a = web_call_with(&w, "POST", "/v1/batch", bearer,
                                 "{\"ops\":[{\"op\":\"finish\",\"id\":1,\"delivery\":1},{\"op\":"
                                 "\"renew\",\"jobs\":[{\"id\":1,\"delivery\":1},"
                                 "{\"id\":2,\"delivery\":1}]},{\"op\":\"get\",\"id\":1}]}");
    proxy_hold(line, false);
    assert_int_equal(a.status, 200);
    assert_null(strstr(a.body, "ENOENT"));
    assert_null(strstr(a.body, "ESTALE"));
    web_free(&a);
    web_stop(&w);
    proxy_stop(line);
    rig_free(redis);
    tempdir_remove(dir);
}

/* Does /readyz, which must be 503, tell this caller where the store is? */
static bool learns_where_the_store_is(web *w, const char *caller)
{
    web_answer a = web_call_with(w, "GET", "/readyz", caller, NULL);
    assert_int_equal(a.status, 503);
    bool learns = strstr(a.body, "127.0.0.1") != NULL;
    web_free(&a);
    return learns;
}

/* What is wrong with the store may name it: strangers learn that it is away, and no more. */
static void strangers_do_not_learn_where_the_store_is(void **state)
{
    (void)state;
    web        w;
    char       dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16], url[128];
    char       token[SRV_TOKEN_TEXT], bearer[SRV_TOKEN_TEXT + 40];
    weir_error err;
    srv_caller who = { .name = "w", .roles = WEIR_ROLE_READ };
    rig       *redis = rig_start(NULL);
    assert_non_null(redis);
    proxy *line = proxy_start(redis, 1);
    assert_non_null(line);
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    assert_int_equal(srv_tokens_add(file, &who, 1, token, &err), WEIR_OK);
    snprintf(bearer, sizeof bearer, "Authorization: Bearer %s\r\n", token);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=500ms", proxy_port(line));
    web_start(&w, url, false, &(srv_options){ .tokens_file = file });
    proxy_hold(line, true);
    UNTIL(learns_where_the_store_is(&w, bearer));   /* at first it may only be slow */
    assert_false(learns_where_the_store_is(&w, NULL));
    assert_false(learns_where_the_store_is(&w, "Authorization: Bearer wtk_wrong\r\n"));
    proxy_hold(line, false);
    web_stop(&w);
    proxy_stop(line);
    rig_free(redis);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_with_blanks_are_refused),
        cmocka_unit_test(answers_that_nobody_takes_are_few),
        cmocka_unit_test(all_that_came_before_the_end_is_answered),
        cmocka_unit_test(half_a_request_at_the_end_is_forgotten),
        cmocka_unit_test(nobody_waits_for_one_that_has_ended),
        cmocka_unit_test(nobody_begins_to_wait_for_one_that_has_ended),
        cmocka_unit_test(a_slow_reader_that_has_ended_gets_its_whole_answer),
        cmocka_unit_test(a_slow_reader_is_not_idle),
        cmocka_unit_test(slow_large_bodies_do_not_keep_out_small_ones),
        cmocka_unit_test(more_workers_than_can_be_remembered),
        cmocka_unit_test(a_store_that_is_away_is_not_a_job_that_is_gone),
        cmocka_unit_test(strangers_do_not_learn_where_the_store_is),
        cmocka_unit_test(files_are_left_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
