/* test_bus_http.c - the event bus of processes whose store is a server: everything that a bus does,
 * the server's permissions, and a connection that is cut. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/tokens.h"
#include "support/bus_talk.h"
#include "support/proxy.h"
#include "support/server_rig.h"

#undef OK
#define OK(call) assert_int_equal((call), WEIR_OK)

/* ---- a process: a queue and its bus ---- */

typedef struct process {
    weir_queue *q;
    weir_bus   *bus;
    weir_error  err;
} process;

static void join(process *p, const char *host, const char *query)
{
    char url[300];
    snprintf(url, sizeof url, "http://%s%s", host, query);
    memset(p, 0, sizeof *p);
    OK(weir_open(&p->q, url, NULL, &p->err));
    OK(weir_bus_open(&p->bus, p->q, &p->err));
}

static void leave(process *p)
{
    weir_bus_close(p->bus);
    weir_close(p->q);
}

static weir_consumer *consume(process *p, const char *address, weir_message_fn *fn, void *ctx)
{
    weir_consumer *c;
    OK(weir_bus_consume(&c, p->bus, &(weir_consumer_config){ .address = address, .handler = fn,
                                                             .ctx = ctx }, &p->err));
    return c;
}

/* Until the server knows it. */
static void wait_for(process *p, const char *address)
{
    weir_reply r;
    while (weir_bus_request(p->bus, address, TEXT("0"), 0, &r, &p->err) == WEIR_ENOENT)
        rt_breathe();
    weir_message_free(r.message);
}

static void echo(weir_message *m, void *ctx)
{
    size_t       n;
    weir_content c = { .body = weir_message_body(m, NULL) };
    c.headers = weir_message_headers(m, &n);
    c.n_headers = n;
    if (ctx)
        atomic_fetch_add((atomic_int *)ctx, 1);
    if (weir_message_expects_reply(m))
        weir_message_reply(m, &c, NULL);
}

static void decline(weir_message *m, void *ctx)
{
    (void)ctx;
    weir_message_fail(m, 42, "no, thanks", NULL);
}

static void note(weir_message *m, void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, weir_message_sent(m) ? 100 : 1);
}

static void hold(weir_message *m, void *ctx)
{
    *(weir_message *_Atomic *)ctx = weir_message_keep(m);
}

/* ---- tests ---- */

static void through_the_server(void **state)
{
    web        w;
    process    a, b;
    weir_reply r, more;
    atomic_int news[3] = { 0 };
    (void)state;
    web_start(&w, "mem:", false, NULL);
    join(&a, w.host, "");
    join(&b, w.host, "");
    weir_consumer *c[] = { consume(&b, "echo", echo, NULL), consume(&b, "fail", decline, NULL),
                           consume(&b, "talk", talk, NULL), consume(&a, "news", note, &news[0]),
                           consume(&b, "news", note, &news[1]),
                           consume(&b, "news", note, &news[2]), consume(&b, "last", echo, NULL) };
    wait_for(&a, "last");
    weir_header  h = { "k", "\"v\"" };
    weir_content with = { .body = "{\"a\":[1,\"\\u00e4\"]}", .headers = &h, .n_headers = 1 };
    OK(weir_bus_request(a.bus, "echo", &with, 0, &r, &a.err));
    assert_string_equal(weir_message_body(r.message, NULL), with.body);
    assert_string_equal(weir_message_header(r.message, "k"), "\"v\"");
    weir_message_free(r.message);
    assert_int_equal(weir_bus_request(a.bus, "fail", NULL, 0, &r, &a.err), WEIR_EREPLY);
    assert_int_equal(r.code, 42);
    assert_string_equal(r.text, "no, thanks");
    assert_int_equal(weir_bus_request(a.bus, "nobody", NULL, 0, &r, &a.err), WEIR_ENOENT);
    assert_string_equal(r.text, "No handlers for address nobody");
    OK(weir_bus_request(a.bus, "talk", TEXT("1"), 0, &r, &a.err));
    OK(weir_message_request(r.message, TEXT("3"), 0, &more, &a.err));
    assert_string_equal(weir_message_body(r.message, NULL), "2");
    assert_string_equal(weir_message_body(more.message, NULL), "4");
    weir_message_free(r.message);
    weir_message_free(more.message);
    OK(weir_bus_publish(a.bus, "news", NULL, &a.err));
    UNTIL(news[0] == 1 && news[1] == 1 && news[2] == 1);
    OK(weir_bus_send(a.bus, "news", NULL, &a.err));
    OK(weir_bus_send(a.bus, "news", NULL, &a.err));         /* one for each process */
    UNTIL(news[0] == 101 && news[1] + news[2] == 102);
    OK(weir_bus_publish(a.bus, "news", &(weir_content){ .local = true }, &a.err));
    UNTIL(news[0] == 102);
    assert_int_equal(news[1] + news[2], 102);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        weir_consumer_close(c[i]);
    while (weir_bus_request(a.bus, "last", NULL, 0, &r, &a.err) != WEIR_ENOENT)
        weir_message_free(r.message);
    leave(&a);
    leave(&b);
    web_stop(&w);
}

static void timeouts_and_big_bodies(void **state)
{
    web                   w;
    process               a, b;
    weir_reply            r;
    weir_message *_Atomic held = NULL;
    (void)state;
    web_start(&w, "mem:", false, NULL);
    join(&a, w.host, "");
    join(&b, w.host, "");
    weir_consumer *c = consume(&b, "echo", echo, NULL);
    weir_consumer *d = consume(&b, "slow", hold, (void *)&held);
    wait_for(&a, "echo");
    while (weir_bus_request(a.bus, "slow", NULL, 100, &r, &a.err) != WEIR_ETIMEOUT)
        rt_breathe();
    UNTIL(held);
    size_t len = 10 * 1024 * 1024;
    char  *body = malloc(len + 1);
    memset(body, 'x', len);
    body[0] = body[len - 1] = '"';
    body[len] = '\0';
    OK(weir_bus_request(a.bus, "echo", TEXT(body), 4 * 30000, &r, &a.err));
    assert_int_equal(strlen(weir_message_body(r.message, NULL)), len);
    weir_message_free(r.message);
    free(body);
    weir_message_free(held);
    weir_consumer_close(c);
    weir_consumer_close(d);
    leave(&a);
    leave(&b);
    web_stop(&w);
}

static void permissions_hold(void **state)
{
    static const char *const inbound[] = { "open", NULL }, *const outbound[] = { ".*", NULL };
    web        w;
    process    a;
    weir_reply r;
    weir_error err;
    char       dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 20], token[SRV_TOKEN_TEXT], query[200];
    (void)state;
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/tokens.json", dir);
    srv_caller who = { .roles = WEIR_ROLE_READ | WEIR_ROLE_PRODUCE };
    snprintf(who.name, sizeof who.name, "app");
    OK(srv_tokens_add(file, &who, 1, token, &err));
    web_start(&w, "mem:", false, &(srv_options){ .tokens_file = file,
              .bus = { .inbound = inbound, .outbound = outbound } });
    snprintf(query, sizeof query, "?token=%s", token);
    join(&a, w.host, query);
    weir_consumer *c[] = { consume(&a, "open", echo, NULL), consume(&a, "secret", echo, NULL) };
    wait_for(&a, "open");
    assert_int_equal(weir_bus_request(a.bus, "secret", NULL, 0, &r, &a.err), WEIR_EREADONLY);
    assert_int_equal(r.failure, WEIR_FAILURE_ERROR);
    assert_string_equal(r.text, "access_denied");
    weir_consumer_close(c[0]);
    weir_consumer_close(c[1]);
    leave(&a);
    web_stop(&w);
    tempdir_remove(dir);
}

static void *ask_slow(void *ctx)
{
    process   *p = ctx;
    weir_reply r;
    weir_bus_request(p->bus, "slow", NULL, 60000, &r, &p->err);
    assert_int_equal(r.failure, WEIR_FAILURE_ERROR);
    assert_int_equal(r.code, -1);
    return (void *)(intptr_t)r.error;
}

/* The connection is cut: what waits for a reply fails, and all is registered again. */
static void a_cut_is_mended(void **state)
{
    web                   w;
    process               a, b;
    weir_reply            r;
    pthread_t             t;
    void                 *error;
    char                  host[40];
    weir_message *_Atomic held = NULL;
    (void)state;
    web_start(&w, "mem:", false, NULL);
    proxy *p = proxy_start_to(atoi(strrchr(w.host, ':') + 1), 1);
    assert_non_null(p);
    snprintf(host, sizeof host, "127.0.0.1:%d", proxy_port(p));
    join(&a, host, "");
    join(&b, w.host, "");
    weir_consumer *c[] = { consume(&b, "slow", hold, (void *)&held),
                           consume(&a, "echo", echo, NULL) };
    wait_for(&b, "echo");
    assert_int_equal(pthread_create(&t, NULL, ask_slow, &a), 0);
    UNTIL(held);
    proxy_cut_all(p);
    pthread_join(t, &error);
    assert_int_equal((intptr_t)error, WEIR_ELOST);
    while (weir_bus_request(b.bus, "echo", TEXT("1"), 1000, &r, &b.err))
        rt_breathe();
    weir_message_free(r.message);
    OK(weir_bus_request(a.bus, "echo", TEXT("2"), 0, &r, &a.err));
    weir_message_free(r.message);
    weir_message_free(held);
    weir_consumer_close(c[0]);
    weir_consumer_close(c[1]);
    leave(&a);
    leave(&b);
    proxy_stop(p);
    web_stop(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_the_server), cmocka_unit_test(timeouts_and_big_bodies),
        cmocka_unit_test(permissions_hold), cmocka_unit_test(a_cut_is_mended),
    };
    return cmocka_run_group_tests_name("bus_http", tests, NULL, NULL);
}
