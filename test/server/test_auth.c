/* test_auth.c - the door: who is let in on an open server and on a closed one, what pages of others
 * get, and what is written about it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/access/guard.h"
#include "support/web_tokens.h"

static void add_token(const char *name, const char *roles, char text[SRV_TOKEN_TEXT])
{
    weir_error err;
    srv_caller c = { 0 };
    assert_true(srv_roles_parse(roles, &c.roles));
    snprintf(c.name, sizeof c.name, "%s", name);
    if (srv_tokens_add(guard.file, &c, 1, text, &err))
        fail_msg("%s", err.msg);
}

/* ---- the guard alone ---- */

static const srv_route read_route = { .method = "GET", .path = "/x", .roles = WEIR_ROLE_READ };
static const srv_route add_route = { .method = "POST", .path = "/x", .roles = WEIR_ROLE_PRODUCE };
static const srv_route open_route = { .method = "GET", .path = "/o", .flags = SRV_OPEN };

static srv_guard *guard_on(const srv_options *opt, const char *address, bool loopback)
{
    srv_guard *g;
    weir_error err;
    if (srv_guard_create(&g, opt, address, loopback, &err))
        fail_msg("%s", err.msg);
    return g;
}

static int ask(srv_guard *g, srv_head head)
{
    srv_caller  who;
    srv_refusal no = { 0 };
    if (!head.route)
        head.route = &read_route;
    head.method = head.route->method;
    head.peer = head.peer ? head.peer : "127.0.0.1:40000";
    bool in = srv_guard_admit(g, &head, 0, &who, &no);
    if (!in && !*no.why)
        fail_msg("no reason given");
    return in ? 200 : no.status;
}

static void an_open_server(void **state)
{
    (void)state;
    static const char *const origins[] = { "https://jobs.example.org", NULL };
    srv_options opt = { .data_dir = guard.dir, .origins = origins };
    srv_guard  *g = guard_on(&opt, "127.0.0.1:7340", true);

    /* whoever is no browser */
    assert_int_equal(ask(g, (srv_head){ 0 }), 200);
    assert_int_equal(ask(g, (srv_head){ .host = "127.0.0.1:7340" }), 200);
    assert_int_equal(ask(g, (srv_head){ .host = "LOCALHOST:7340", .route = &add_route }), 200);
    assert_int_equal(ask(g, (srv_head){ .host = "[::1]:7340" }), 200);
    assert_int_equal(ask(g, (srv_head){ .host = "jobs.example.org" }), 200);
    /* names that were made to lead here */
    static const char *const wrong[] = { "evil.example", "localhost.evil.example:7340",
                                         "127.0.0.1.evil.example", "", "evil.example:7340" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ask(g, (srv_head){ .host = wrong[i] }), 403);
    assert_int_equal(ask(g, (srv_head){ .host = "evil.example", .route = &open_route }), 200);

    /* pages */
    static const struct { const char *origin, *site; int status; } pages[] = {
        { NULL, "same-origin", 200 },
        { NULL, "none", 200 },
        { NULL, "cross-site", 403 },
        { NULL, "same-site", 403 },
        { NULL, "nonsense", 403 },
        { "http://localhost:7340", "same-origin", 200 },
        { "http://localhost:7340", NULL, 200 },
        { "https://localhost:7340", NULL, 200 },
        { "http://localhost:7341", NULL, 403 },
        { "http://evil.example", NULL, 403 },
        { "http://evil.example", "cross-site", 403 },
        { "null", NULL, 403 },
        { "null", "cross-site", 403 },
        { "https://jobs.example.org", NULL, 200 },
        { "https://jobs.example.org", "cross-site", 200 },
        { "https://jobs.example.org.evil.example", "cross-site", 403 },
    };
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        srv_head head = { .host = "localhost:7340", .origin = pages[i].origin,
                          .fetch_site = pages[i].site };
        if (ask(g, head) != pages[i].status)
            fail_msg("%s %s", pages[i].origin, pages[i].site);
        head.route = &add_route;
        assert_int_equal(ask(g, head), pages[i].status);
    }
    assert_true(srv_guard_shares(g, "https://jobs.example.org"));
    assert_false(srv_guard_shares(g, "http://localhost:7340"));
    assert_false(srv_guard_shares(g, NULL));
    srv_guard_destroy(g);
}

static void a_closed_server(void **state)
{
    (void)state;
    char       reader[SRV_TOKEN_TEXT], header[SRV_TOKEN_TEXT + 20];
    weir_error err;
    srv_guard *g;
    srv_options opt = { .data_dir = guard.dir };
    assert_int_equal(srv_guard_create(&g, &opt, "0.0.0.0:7340", false, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "weir token add"));
    assert_null(g);

    add_token("eye", "read", reader);
    g = guard_on(&opt, "0.0.0.0:7340", false);
    snprintf(header, sizeof header, "Bearer %s", reader);
    assert_int_equal(ask(g, (srv_head){ 0 }), 401);
    assert_int_equal(ask(g, (srv_head){ .authorization = header }), 200);
    assert_int_equal(ask(g, (srv_head){ .authorization = header, .host = "any.name" }), 200);
    assert_int_equal(ask(g, (srv_head){ .authorization = header, .route = &add_route }), 403);
    assert_int_equal(ask(g, (srv_head){ .authorization = header, .fetch_site = "same-site" }), 403);
    assert_int_equal(ask(g, (srv_head){ .route = &open_route }), 200);
    static const char *const wrong[] = { "", "Bearer", "Bearer ", "Basic YTpi", "Bearer wtk_",
        "Bearer wtk_0000000000000000000000000000000000000000000" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ask(g, (srv_head){ .authorization = wrong[i] }), 401);
    snprintf(header, sizeof header, "bearer   %s", reader);
    assert_int_equal(ask(g, (srv_head){ .authorization = header }), 200);
    assert_int_equal(ask(g, (srv_head){ .authorization = reader }), 401);

    /* without its last token it is not open to all, but to nobody */
    assert_int_equal(srv_tokens_remove(guard.file, "eye", &err), WEIR_OK);
    assert_int_equal(srv_guard_reload(g, &err), WEIR_OK);
    assert_int_equal(ask(g, (srv_head){ .authorization = header }), 401);
    assert_int_equal(ask(g, (srv_head){ 0 }), 401);
    srv_guard_destroy(g);
}

static void loopback_stays_closed(void **state)
{
    (void)state;
    char        token[SRV_TOKEN_TEXT];
    weir_error  err;
    srv_options opt = { .data_dir = guard.dir };
    srv_guard  *g = guard_on(&opt, "127.0.0.1:7340", true);
    srv_head    local = { .host = "localhost" };
    assert_int_equal(ask(g, local), 200);
    add_token("eye", "read", token);
    assert_int_equal(srv_guard_reload(g, &err), WEIR_OK);
    assert_int_equal(ask(g, local), 401);
    assert_int_equal(unlink(guard.file), 0);
    assert_int_equal(srv_guard_reload(g, &err), WEIR_OK);
    assert_int_equal(ask(g, local), 401);
    srv_guard_destroy(g);
}

static void wrong_tokens_are_slowed_down(void **state)
{
    (void)state;
    char        token[SRV_TOKEN_TEXT], header[SRV_TOKEN_TEXT + 20];
    srv_options opt = { .data_dir = guard.dir };
    add_token("a", "admin", token);
    snprintf(header, sizeof header, "Bearer %s", token);
    srv_guard *g = guard_on(&opt, "127.0.0.1:0", true);
    srv_head   h = { .authorization = "Bearer wrong", .peer = "10.0.0.1:1", .route = &read_route };
    for (int i = 0; i < SRV_MAX_WRONG; i++)
        assert_int_equal(ask(g, h), 401);
    srv_caller  who;
    srv_refusal no;
    h.peer = "10.0.0.1:2";          /* another port is the same client */
    assert_false(srv_guard_admit(g, &h, 1500, &who, &no));
    assert_int_equal(no.status, 429);
    assert_int_equal(no.retry_after, 59);
    assert_int_equal(ask(g, (srv_head){ .authorization = "Bearer wrong", .peer = "10.0.0.2:1" }),
                     401);
    h.authorization = header;       /* who is behind the same proxy gets in */
    assert_int_equal(ask(g, h), 200);
    h.authorization = "Bearer wrong";
    assert_false(srv_guard_admit(g, &h, SRV_WRONG_MS, &who, &no));
    assert_int_equal(no.status, 401);

    /* addresses without number: no more memory, and all of them get an answer */
    for (int i = 0; i < 5000; i++) {
        char peer[64];
        snprintf(peer, sizeof peer, "[2001:db8:%x:%x::1]:99", i >> 8, i & 255);
        h.peer = peer;
        assert_int_equal(ask(g, h), 401);
    }
    srv_guard_destroy(g);
}

static void a_changed_file_is_seen(void **state)
{
    (void)state;
    char        token[SRV_TOKEN_TEXT], header[SRV_TOKEN_TEXT + 20];
    srv_options opt = { .data_dir = guard.dir };
    srv_caller  who;
    srv_refusal no;
    srv_guard  *g = guard_on(&opt, "127.0.0.1:0", true);
    srv_head    h = { .route = &read_route, .method = "GET", .peer = "127.0.0.1:1" };
    assert_true(srv_guard_admit(g, &h, 0, &who, &no));
    assert_int_equal(who.roles, WEIR_ROLE_ALL);
    assert_string_equal(who.name, "");
    add_token("a", "read", token);
    snprintf(header, sizeof header, "Bearer %s", token);
    assert_true(srv_guard_admit(g, &h, SRV_TOKENS_MS - 1, &who, &no));
    assert_false(srv_guard_admit(g, &h, SRV_TOKENS_MS, &who, &no));
    h.authorization = header;
    assert_true(srv_guard_admit(g, &h, SRV_TOKENS_MS, &who, &no));
    assert_string_equal(who.name, "a");
    assert_int_equal(who.roles, WEIR_ROLE_READ);

    FILE *out = fopen(guard.file, "w");     /* a broken file changes nothing; reload reports it */
    fputs("broken", out);
    fclose(out);
    assert_true(srv_guard_admit(g, &h, 10 * SRV_TOKENS_MS, &who, &no));
    weir_error err;
    assert_int_equal(srv_guard_reload(g, &err), WEIR_EINVAL);
    assert_true(srv_guard_admit(g, &h, 20 * SRV_TOKENS_MS, &who, &no));
    srv_guard_destroy(g);
}

/* ---- through the server ---- */

static int64_t last_use(const char *token)
{
    srv_tokens t;
    weir_error err;
    assert_int_equal(srv_tokens_read(&t, guard.file, &err), WEIR_OK);
    srv_tokens_read_uses(&t, guard.file);
    int64_t at = srv_tokens_find(&t, token)->used_at;
    srv_tokens_fini(&t);
    return at;
}

/* Written at the first use of each, then at most once in SRV_USE_MS, and when the server stops. */
static void the_last_use_is_kept(void **state)
{
    (void)state;
    char        ann[SRV_TOKEN_TEXT], bob[SRV_TOKEN_TEXT], bearer[80];
    srv_options opt = { .data_dir = guard.dir };
    add_token("ann", "read", ann);
    add_token("bob", "read", bob);
    srv_guard *g = guard_on(&opt, "127.0.0.1:7340", true);
    snprintf(bearer, sizeof bearer, "Bearer %s", ann);
    assert_true(last_use(ann) == 0);
    assert_int_equal(ask(g, (srv_head){ .authorization = bearer }), 200);
    int64_t at = last_use(ann);
    assert_true(at > 1700000000000);
    snprintf(bearer, sizeof bearer, "Bearer %s", bob);
    assert_int_equal(ask(g, (srv_head){ .authorization = bearer }), 200);
    assert_true(last_use(bob) >= at);
    srv_guard_destroy(g);
    assert_true(last_use(bob) >= at && last_use(ann) == at);
    g = guard_on(&opt, "127.0.0.1:7340", true);         /* a restart keeps it */
    srv_guard_destroy(g);
    assert_true(last_use(ann) == at);
}

static void an_expired_token(void **state)
{
    (void)state;
    char             text[SRV_TOKEN_TEXT], bearer[80];
    weir_error       err;
    srv_refusal      no;
    srv_options      opt = { .data_dir = guard.dir };
    srv_caller       who, c = { .name = "old", .roles = WEIR_ROLE_ALL,
                                .expires_at = 1700000000000 };
    srv_token_counts n;
    assert_int_equal(srv_tokens_add(guard.file, &c, 1, text, &err), WEIR_OK);
    snprintf(bearer, sizeof bearer, "Bearer %s", text);
    srv_guard *g = guard_on(&opt, "127.0.0.1:7340", true);
    srv_head   head = { .route = &read_route, .method = "GET", .peer = "127.0.0.1:1",
                        .authorization = bearer };
    assert_false(srv_guard_admit(g, &head, 0, &who, &no));
    assert_int_equal(no.status, 401);
    assert_non_null(strstr(no.why, "the token 'old' expired at 2023-11-14T22:13:20Z"));
    strcpy(c.name, "soon");
    c.expires_at = (int64_t)time(NULL) * 1000 + SRV_EXPIRES_SOON_MS / 2;
    assert_int_equal(srv_tokens_add(guard.file, &c, 1, text, &err), WEIR_OK);
    strcpy(c.name, "later");
    c.expires_at = (int64_t)time(NULL) * 1000 + 2 * (int64_t)SRV_EXPIRES_SOON_MS;
    assert_int_equal(srv_tokens_add(guard.file, &c, 1, text, &err), WEIR_OK);
    assert_int_equal(srv_guard_reload(g, &err), WEIR_OK);
    srv_guard_count_tokens(g, &n);
    assert_int_equal(n.expired, 1);
    assert_int_equal(n.soon, 1);
    assert_int_equal(n.valid, 2);
    assert_string_equal(n.next, "soon");
    /* one that expires while its caller is let in: callers are to be checked again */
    strcpy(c.name, "now");
    c.expires_at = (int64_t)time(NULL) * 1000 + 4000;
    assert_int_equal(srv_tokens_add(guard.file, &c, 1, text, &err), WEIR_OK);
    assert_int_equal(srv_guard_reload(g, &err), WEIR_OK);
    uint64_t version = srv_guard_watch(g, 0);
    snprintf(bearer, sizeof bearer, "Bearer %s", text);
    while (srv_guard_admit(g, &head, 0, &who, &no))
        usleep(10000);
    assert_true(srv_guard_watch(g, 0) != version);
    assert_non_null(strstr(no.why, "the token 'now' expired at"));
    srv_guard_destroy(g);
}

static void over_http(void **state)
{
    (void)state;
    web  w;
    char token[SRV_TOKEN_TEXT], header[200], log[TEMPDIR_MAX + 16];
    snprintf(log, sizeof log, "%s/access.log", guard.dir);
    add_token("eye", "read", token);
    web_start(&w, RT_MEM, false, &(srv_options){ .data_dir = guard.dir, .access_log = log });

    web_answer a = web_call(&w, "GET", "/metrics", NULL);
    assert_int_equal(a.status, 401);
    assert_string_equal(web_header(&a, "WWW-Authenticate"), "Bearer realm=\"weir\"");
    assert_non_null(strstr(a.body, "\"unauthorized\""));
    web_free(&a);
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
    a = web_call_with(&w, "GET", "/metrics?secret=hidden", header, NULL);
    assert_int_equal(a.status, 400);            /* there is no such parameter */
    web_free(&a);
    a = web_call_with(&w, "GET", "/metrics", header, NULL);
    assert_int_equal(a.status, 200);
    web_free(&a);
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\nSec-Fetch-Site: cross-site\r\n",
             token);
    a = web_call_with(&w, "GET", "/metrics", header, NULL);
    assert_int_equal(a.status, 403);
    assert_string_equal(web_header(&a, "X-Content-Type-Options"), "nosniff");
    assert_string_equal(web_header(&a, "Cache-Control"), "no-store");
    assert_string_equal(web_header(&a, "Referrer-Policy"), "no-referrer");
    assert_non_null(strstr(web_header(&a, "Content-Security-Policy"), "default-src 'none'"));
    assert_non_null(strstr(web_header(&a, "Content-Security-Policy"), "frame-ancestors 'none'"));
    web_free(&a);
    for (int i = 0; i < SRV_MAX_WRONG; i++) {
        a = web_call_with(&w, "GET", "/metrics", "Authorization: Bearer no\r\n", NULL);
        assert_int_equal(a.status, 401);
        web_free(&a);
    }
    a = web_call_with(&w, "GET", "/metrics", "Authorization: Bearer no\r\n", NULL);
    assert_int_equal(a.status, 429);
    assert_true(atoi(web_header(&a, "Retry-After")) > 1);
    web_free(&a);
    web_stop(&w);

    char   text[20000];
    FILE  *in = fopen(log, "r");
    size_t n = fread(text, 1, sizeof text - 1, in), lines = 0;
    text[n] = 0;
    fclose(in);
    assert_null(strstr(text, token + 4));
    assert_null(strstr(text, "hidden"));
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest)); lines++) {
        json_t *j = json_loads(line, 0, NULL);
        if (!j || !json_is_integer(json_object_get(j, "ms")))
            fail_msg("%s", line);
        assert_string_equal(json_string_value(json_object_get(j, "path")), "/metrics");
        if (lines == 2) {
            assert_string_equal(json_string_value(json_object_get(j, "token")), "eye");
            assert_string_equal(json_string_value(json_object_get(j, "method")), "GET");
            assert_int_equal(json_integer_value(json_object_get(j, "status")), 200);
            assert_true(json_integer_value(json_object_get(j, "bytes")) > 100);
        }
        json_decref(j);
    }
    assert_int_equal(lines, 4 + SRV_MAX_WRONG + 1);
}

static void pages_of_other_origins(void **state)
{
    (void)state;
    static const char *const origins[] = { "https://jobs.example.org", NULL };
    web w;
    web_start(&w, RT_MEM, false, &(srv_options){ .origins = origins });
    web_answer a = web_call_with(&w, "OPTIONS", "/metrics",
        "Origin: https://jobs.example.org\r\nAccess-Control-Request-Method: GET\r\n", NULL);
    assert_int_equal(a.status, 204);
    assert_string_equal(web_header(&a, "Access-Control-Allow-Origin"), origins[0]);
    assert_non_null(strstr(web_header(&a, "Access-Control-Allow-Methods"), "GET"));
    assert_non_null(strstr(web_header(&a, "Access-Control-Allow-Headers"), "Authorization"));
    assert_string_equal(web_header(&a, "Vary"), "Origin");
    web_free(&a);
    a = web_call_with(&w, "OPTIONS", "/metrics",
        "Origin: https://evil.example\r\nAccess-Control-Request-Method: GET\r\n", NULL);
    assert_int_equal(a.status, 403);
    assert_null(web_header(&a, "Access-Control-Allow-Origin"));
    web_free(&a);
    a = web_call_with(&w, "GET", "/metrics", "Origin: https://jobs.example.org\r\n", NULL);
    assert_int_equal(a.status, 200);
    assert_string_equal(web_header(&a, "Access-Control-Allow-Origin"), origins[0]);
    web_free(&a);
    a = web_call(&w, "GET", "/metrics", NULL);
    assert_null(web_header(&a, "Access-Control-Allow-Origin"));
    web_free(&a);
    a = web_call(&w, "OPTIONS", "/metrics", NULL);      /* no page: what can be done here */
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(web_header(&a, "Allow"), "GET"));
    web_free(&a);
    web_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_open_server, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(a_closed_server, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(loopback_stays_closed, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(wrong_tokens_are_slowed_down, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(a_changed_file_is_seen, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(the_last_use_is_kept, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(an_expired_token, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(over_http, guard_setup, guard_teardown),
        cmocka_unit_test_setup_teardown(pages_of_other_origins, guard_setup, guard_teardown),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
