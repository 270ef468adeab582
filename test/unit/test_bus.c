/* test_bus.c - the bus inside one process: addresses, requests, conversations, limits, services; a
 * transport that joins two buses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/transport.h"
#include "bus/watch.h"
#include "weir/bus.h"

enum { PATIENCE_MS = 60000 };

#define OK(call) assert_int_equal((call), WEIR_OK)
#define TEXT(text) (&(weir_content){ .body = (text) })

/* ---- a bus, and a mailbox that the test runs itself ---- */

typedef struct rig {
    weir_bus     *bus;
    weir_mailbox *mb;
    weir_error    err;
} rig;

static int set_up(void **state)
{
    rig *r = calloc(1, sizeof *r);
    OK(weir_bus_create(&r->bus, &r->err));
    OK(weir_mailbox_create(&r->mb, r->bus, NULL, &r->err));
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    rig *r = *state;
    weir_mailbox_destroy(r->mb);
    weir_bus_close(r->bus);
    free(r);
    return 0;
}

/* What a consumer has received, in order: bodies with a comma behind each. */
typedef struct inbox {
    char          text[1000];
    weir_message *last;
} inbox;

static void receive(weir_message *m, void *ctx)
{
    inbox *in = ctx;
    strcat(strcat(in->text, weir_message_body(m, NULL)), ",");
    weir_message_free(in->last);
    in->last = weir_message_keep(m);
}

static weir_consumer *consume(rig *r, const char *address, weir_message_fn *fn, void *ctx)
{
    weir_consumer *c;
    OK(weir_bus_consume(&c, r->bus, &(weir_consumer_config){ .address = address, .handler = fn,
                                                             .ctx = ctx, .mailbox = r->mb },
                        &r->err));
    return c;
}

static void run(rig *r)
{
    while (weir_mailbox_run(r->mb, 100, 0))
        ;
}

/* The reply to a request, once the mailbox has run. */
typedef struct outcome {
    int           n;
    weir_failure  failure;
    int           code;
    char          text[WEIR_MAX_FAILURE + 1];
    weir_message *message;
} outcome;

static void replied(const weir_reply *reply, void *ctx)
{
    outcome *o = ctx;
    o->n++;
    o->failure = reply->failure;
    o->code = reply->code;
    snprintf(o->text, sizeof o->text, "%s",
             reply->message ? weir_message_body(reply->message, NULL) : reply->text);
    weir_message_free(o->message);
    o->message = reply->message ? weir_message_keep(reply->message) : NULL;
}

static void request(rig *r, const char *address, const char *body, outcome *o, int64_t timeout_ms)
{
    OK(weir_bus_request_async(r->bus, address, TEXT(body),
                              &(weir_expect){ .fn = replied, .ctx = o, .mailbox = r->mb,
                                              .timeout_ms = timeout_ms }, &r->err));
}

static void wait_for(rig *r, const outcome *o, int n)
{
    while (o->n < n)
        assert_true(weir_mailbox_run(r->mb, 1, PATIENCE_MS));
}

/* ---- publish, send ---- */

static void all_receive_a_publish(void **state)
{
    rig  *r = *state;
    inbox a = { 0 }, b = { 0 }, other = { 0 };
    consume(r, "news", receive, &a);
    consume(r, "news", receive, &b);
    consume(r, "news.sport", receive, &other);
    OK(weir_bus_publish(r->bus, "news", TEXT("1"), &r->err));
    OK(weir_bus_publish(r->bus, "news", TEXT("\"two\""), &r->err));
    OK(weir_bus_publish(r->bus, "nobody", NULL, &r->err));
    run(r);
    assert_string_equal(a.text, "1,\"two\",");
    assert_string_equal(b.text, a.text);
    assert_string_equal(other.text, "");
    assert_false(weir_message_sent(a.last));
    assert_false(weir_message_expects_reply(a.last));
    assert_int_equal(weir_message_reply(a.last, NULL, &r->err), WEIR_ESTATE);
    weir_message_free(a.last);
    weir_message_free(b.last);
}

static void consumers_take_turns(void **state)
{
    rig  *r = *state;
    inbox in[3] = { 0 };
    char  body[16];
    for (int i = 0; i < 3; i++)
        consume(r, "work", receive, &in[i]);
    for (int i = 1; i <= 6; i++) {
        snprintf(body, sizeof body, "%d", i);
        OK(weir_bus_send(r->bus, "work", TEXT(body), &r->err));
    }
    run(r);
    assert_string_equal(in[0].text, "1,4,");
    assert_string_equal(in[1].text, "2,5,");
    assert_string_equal(in[2].text, "3,6,");
    assert_true(weir_message_sent(in[0].last));
    for (int i = 0; i < 3; i++)
        weir_message_free(in[i].last);
}

static void headers_and_any_body_arrive(void **state)
{
    static const char *const bodies[] = { "null", "true", "-1.5e3", "\"x\\u0000y\"", "[1,[]]",
                                          "{\"a\":{\"b\":null}}" };
    rig        *r = *state;
    inbox       in = { 0 };
    weir_header headers[] = { { "lang", "de" }, { "empty", "" } };
    size_t      n;
    consume(r, "any", receive, &in);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        OK(weir_bus_send(r->bus, "any", &(weir_content){ .body = bodies[i], .headers = headers,
                                                         .n_headers = 2 }, &r->err));
        run(r);
        assert_string_equal(weir_message_body(in.last, &n), bodies[i]);
        assert_int_equal(n, strlen(bodies[i]));
        assert_string_equal(weir_message_header(in.last, "lang"), "de");
        assert_string_equal(weir_message_header(in.last, "empty"), "");
        assert_null(weir_message_header(in.last, "Lang"));
        assert_string_equal(weir_message_headers(in.last, &n)[0].name, "lang");
        assert_int_equal(n, 2);
    }
    OK(weir_bus_send(r->bus, "any", NULL, &r->err));
    run(r);
    assert_string_equal(weir_message_body(in.last, NULL), "null");
    weir_message_free(in.last);
}

static void what_is_wrong_is_rejected(void **state)
{
    rig        *r = *state;
    char        deep[300], address[300];
    weir_header many[WEIR_MAX_BUS_HEADERS + 1];
    memset(deep, '[', 101);
    memset(deep + 101, ']', 101);
    deep[202] = '\0';
    memset(address, 'a', WEIR_MAX_BUS_ADDRESS + 1);
    address[WEIR_MAX_BUS_ADDRESS + 1] = '\0';
    for (int i = 0; i <= WEIR_MAX_BUS_HEADERS; i++)
        many[i] = (weir_header){ "a", "b" };
    assert_int_equal(weir_bus_publish(r->bus, "a", TEXT("{"), &r->err), WEIR_EINVAL);
    assert_int_equal(weir_bus_publish(r->bus, "a", TEXT("1 2"), &r->err), WEIR_EINVAL);
    assert_int_equal(weir_bus_publish(r->bus, "a", TEXT("\"\xff\""), &r->err), WEIR_EINVAL);
    assert_int_equal(weir_bus_publish(r->bus, "a", TEXT(deep), &r->err), WEIR_ELIMIT);
    assert_int_equal(weir_bus_publish(r->bus, "", NULL, &r->err), WEIR_EINVAL);
    assert_int_equal(weir_bus_publish(r->bus, NULL, NULL, &r->err), WEIR_EINVAL);
    assert_int_equal(weir_bus_publish(r->bus, address, NULL, &r->err), WEIR_ELIMIT);
    assert_int_equal(weir_bus_send(r->bus, "\xc3", NULL, &r->err), WEIR_EINVAL);
    assert_int_equal(weir_bus_send(r->bus, "a", &(weir_content){ .headers = many,
                     .n_headers = WEIR_MAX_BUS_HEADERS + 1 }, &r->err), WEIR_ELIMIT);
    assert_int_equal(weir_bus_send(r->bus, "nobody", NULL, &r->err), WEIR_ENOENT);
    assert_string_equal(r->err.msg, "No handlers for address nobody");
}

/* ---- requests ---- */

static void echo(weir_message *m, void *ctx)
{
    (void)ctx;
    OK(weir_message_reply(m, TEXT(weir_message_body(m, NULL)), NULL));
    assert_int_equal(weir_message_reply(m, NULL, NULL), WEIR_ESTALE);
}

static void refuse(weir_message *m, void *ctx)
{
    (void)ctx;
    OK(weir_message_fail(m, 42, "no more soup", NULL));
}

static void a_request_has_one_outcome(void **state)
{
    rig    *r = *state;
    inbox   silent = { 0 };
    outcome o = { 0 };
    consume(r, "echo", echo, NULL);
    consume(r, "fail", refuse, NULL);
    consume(r, "silent", receive, &silent);
    request(r, "echo", "{\"a\":1}", &o, 0);
    wait_for(r, &o, 1);
    assert_int_equal(o.failure, WEIR_FAILURE_NONE);
    assert_string_equal(o.text, "{\"a\":1}");
    request(r, "fail", "1", &o, 0);
    wait_for(r, &o, 2);
    assert_int_equal(o.failure, WEIR_FAILURE_RECIPIENT_FAILURE);
    assert_int_equal(o.code, 42);
    assert_string_equal(o.text, "no more soup");
    request(r, "nobody", "1", &o, 0);
    wait_for(r, &o, 3);
    assert_int_equal(o.failure, WEIR_FAILURE_NO_HANDLERS);
    assert_int_equal(o.code, -1);
    assert_string_equal(o.text, "No handlers for address nobody");
    request(r, "silent", "1", &o, 20);
    wait_for(r, &o, 4);
    assert_int_equal(o.failure, WEIR_FAILURE_TIMEOUT);
    assert_non_null(strstr(o.text, "Timed out after waiting 20(ms) for a reply. address: __weir."));
    assert_non_null(strstr(o.text, "repliedAddress: silent"));
    assert_int_equal(weir_message_reply(silent.last, NULL, &r->err), WEIR_ESTALE);
    run(r);
    assert_int_equal(o.n, 4);
    weir_message_free(silent.last);
}

static void timeouts_end_in_their_order(void **state)
{
    rig    *r = *state;
    inbox   silent = { 0 };
    outcome o[4] = { 0 };
    consume(r, "silent", receive, &silent);
    request(r, "silent", "1", &o[0], PATIENCE_MS);
    request(r, "silent", "2", &o[1], 200);
    request(r, "silent", "3", &o[2], 20);
    request(r, "silent", "4", &o[3], 100);
    wait_for(r, &o[2], 1);
    wait_for(r, &o[3], 1);
    wait_for(r, &o[1], 1);
    assert_int_equal(o[0].n, 0);
    weir_message_free(silent.last);
}

static void a_plain_call_waits(void **state)
{
    rig           *r = *state;
    weir_reply     reply;
    weir_consumer *c[2];
    OK(weir_bus_consume(&c[0], r->bus, &(weir_consumer_config){ .address = "echo",
                        .handler = echo }, &r->err));
    OK(weir_bus_consume(&c[1], r->bus, &(weir_consumer_config){ .address = "fail",
                        .handler = refuse }, &r->err));
    OK(weir_bus_request(r->bus, "echo", TEXT("[7]"), 0, &reply, &r->err));
    assert_string_equal(weir_message_body(reply.message, NULL), "[7]");
    weir_message_free(reply.message);
    assert_int_equal(weir_bus_request(r->bus, "fail", NULL, 0, &reply, &r->err), WEIR_EREPLY);
    assert_int_equal(reply.code, 42);
    assert_string_equal(r->err.msg, "no more soup");
    assert_int_equal(weir_bus_request(r->bus, "nobody", NULL, 0, &reply, &r->err), WEIR_ENOENT);
    weir_consumer_close(c[0]);
    weir_consumer_close(c[1]);
    assert_int_equal(weir_bus_request(r->bus, "echo", NULL, 0, &reply, &r->err), WEIR_ENOENT);
}

static void replied_without_a_mailbox(const weir_reply *reply, void *ctx)
{
    assert_int_equal(reply->failure, WEIR_FAILURE_NO_HANDLERS);
    atomic_store((atomic_int *)ctx, 1);
}

static void a_request_needs_no_mailbox(void **state)
{
    rig       *r = *state;
    atomic_int done = 0;
    OK(weir_bus_request_async(r->bus, "nobody", NULL,
                              &(weir_expect){ .fn = replied_without_a_mailbox, .ctx = &done },
                              &r->err));
    while (!atomic_load(&done))
        ;
}

/* ---- conversations ---- */

typedef struct talk {
    rig    *r;
    outcome answer;
} talk;

static void start_talk(weir_message *m, void *ctx)
{
    talk *t = ctx;
    OK(weir_message_request_async(m, TEXT("\"who is there?\""),
                                  &(weir_expect){ .fn = replied, .ctx = &t->answer,
                                                  .mailbox = t->r->mb }, NULL));
}

static void replies_are_replied_to(void **state)
{
    rig    *r = *state;
    talk    t = { .r = r };
    outcome o = { 0 }, end = { 0 };
    consume(r, "door", start_talk, &t);
    request(r, "door", "\"knock\"", &o, 0);
    wait_for(r, &o, 1);
    assert_string_equal(o.text, "\"who is there?\"");
    assert_true(weir_message_expects_reply(o.message));
    OK(weir_message_request_async(o.message, TEXT("\"Ann\""),
                                  &(weir_expect){ .fn = replied, .ctx = &end, .mailbox = r->mb },
                                  &r->err));
    wait_for(r, &t.answer, 1);
    assert_string_equal(t.answer.text, "\"Ann\"");
    OK(weir_message_fail(t.answer.message, 7, "go away", &r->err));
    wait_for(r, &end, 1);
    assert_int_equal(end.code, 7);
    weir_message_free(o.message);
    weir_message_free(t.answer.message);
}

/* ---- limits ---- */

static void a_full_mailbox_has_a_policy(void **state)
{
    rig           *r = *state;
    inbox          in = { 0 }, second = { 0 };
    weir_mailbox  *small;
    weir_consumer *c;
    outcome        o = { 0 };
    OK(weir_mailbox_create(&small, r->bus, &(weir_mailbox_config){ .messages = 2 }, &r->err));
    OK(weir_bus_consume(&c, r->bus, &(weir_consumer_config){ .address = "a", .handler = receive,
                        .ctx = &in, .mailbox = small }, &r->err));
    for (int i = 0; i < 3; i++)
        OK(weir_bus_publish(r->bus, "a", TEXT("1"), &r->err));
    assert_int_equal(weir_consumer_missed(c), 1);
    assert_int_equal(weir_bus_send(r->bus, "a", TEXT("2"), &r->err), WEIR_EFULL);
    request(r, "a", "3", &o, 0);
    wait_for(r, &o, 1);
    assert_int_equal(o.failure, WEIR_FAILURE_ERROR);
    assert_non_null(strstr(o.text, "full"));
    consume(r, "a", receive, &second);              /* has room: sends go there */
    OK(weir_bus_send(r->bus, "a", TEXT("4"), &r->err));
    OK(weir_bus_send(r->bus, "a", TEXT("5"), &r->err));
    run(r);
    assert_string_equal(second.text, "4,5,");
    assert_int_equal(weir_mailbox_run(small, 10, 0), 2);
    assert_string_equal(in.text, "1,1,");
    weir_message_free(in.last);
    weir_message_free(second.last);
    weir_mailbox_destroy(small);
}

static void the_limit_of_bytes(void **state)
{
    rig          *r = *state;
    inbox         in = { 0 };
    weir_mailbox *small;
    weir_consumer *c;
    OK(weir_mailbox_create(&small, r->bus, &(weir_mailbox_config){ .bytes = 100 }, &r->err));
    OK(weir_bus_consume(&c, r->bus, &(weir_consumer_config){ .address = "a", .handler = receive,
                        .ctx = &in, .mailbox = small }, &r->err));
    OK(weir_bus_send(r->bus, "a", TEXT("\"more than its limit, but it is the only one, so that any "
                                       "message can be delivered at all: always one\""), &r->err));
    assert_int_equal(weir_bus_send(r->bus, "a", TEXT("2"), &r->err), WEIR_EFULL);
    weir_mailbox_destroy(small);
}

/* ---- closing ---- */

static void what_waits_goes_to_another(void **state)
{
    rig           *r = *state;
    inbox          first = { 0 }, second = { 0 };
    outcome        o = { 0 }, none = { 0 };
    weir_consumer *c = consume(r, "work", receive, &first);
    request(r, "work", "1", &o, PATIENCE_MS);
    OK(weir_bus_publish(r->bus, "work", TEXT("2"), &r->err));
    weir_consumer *d = consume(r, "work", receive, &second);
    weir_consumer_close(c);
    run(r);
    assert_string_equal(first.text, "");
    assert_string_equal(second.text, "1,");
    OK(weir_message_reply(second.last, TEXT("true"), &r->err));
    wait_for(r, &o, 1);
    request(r, "work", "3", &none, PATIENCE_MS);
    weir_consumer_close(d);
    wait_for(r, &none, 1);
    assert_int_equal(none.failure, WEIR_FAILURE_NO_HANDLERS);
    weir_message_free(o.message);
    weir_message_free(second.last);
}

static void close_self(weir_message *m, void *ctx)
{
    (void)m;
    weir_consumer **c = ctx;
    weir_consumer_close(*c);
    *c = NULL;
}

static void a_handler_closes_its_consumer(void **state)
{
    rig           *r = *state;
    weir_consumer *c = consume(r, "once", close_self, &c);
    OK(weir_bus_send(r->bus, "once", NULL, &r->err));
    OK(weir_bus_send(r->bus, "once", NULL, &r->err));
    run(r);
    assert_null(c);
    assert_int_equal(weir_bus_send(r->bus, "once", NULL, &r->err), WEIR_ENOENT);
}

/* A handler that has begun ends before weir_consumer_close() returns, and none begins after. */
typedef struct slow {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            began, go;
    bool            ended;
} slow;

static void run_slowly(weir_message *m, void *ctx)
{
    (void)m;
    slow *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->began = true;
    pthread_cond_broadcast(&s->changed);
    while (!s->go)
        pthread_cond_wait(&s->changed, &s->lock);
    s->ended = true;
    pthread_mutex_unlock(&s->lock);
}

static void *let_go(void *ctx)
{
    slow *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->go = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void a_slow_consumer_delays_nobody(void **state)
{
    rig           *r = *state;
    slow           s = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0 };
    weir_consumer *a, *b;
    weir_reply     reply;
    pthread_t      other;
    OK(weir_bus_consume(&a, r->bus, &(weir_consumer_config){ .address = "slow",
                        .handler = run_slowly, .ctx = &s }, &r->err));
    OK(weir_bus_consume(&b, r->bus, &(weir_consumer_config){ .address = "echo",
                        .handler = echo }, &r->err));
    OK(weir_bus_send(r->bus, "slow", NULL, &r->err));
    pthread_mutex_lock(&s.lock);
    while (!s.began)
        pthread_cond_wait(&s.changed, &s.lock);
    pthread_mutex_unlock(&s.lock);
    OK(weir_bus_request(r->bus, "echo", TEXT("1"), PATIENCE_MS, &reply, &r->err));
    weir_message_free(reply.message);
    pthread_create(&other, NULL, let_go, &s);
    weir_consumer_close(a);
    assert_true(s.ended);
    pthread_join(other, NULL);
    weir_consumer_close(b);
}

static void count_wake(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void one_wake_until_it_is_empty(void **state)
{
    rig           *r = *state;
    atomic_int     wakes = 0;
    inbox          in = { 0 };
    weir_mailbox  *mb;
    weir_consumer *c;
    OK(weir_mailbox_create(&mb, r->bus, &(weir_mailbox_config){ .wake = count_wake, .ctx = &wakes },
                           &r->err));
    OK(weir_bus_consume(&c, r->bus, &(weir_consumer_config){ .address = "a", .handler = receive,
                        .ctx = &in, .mailbox = mb }, &r->err));
    for (int i = 0; i < 3; i++)
        OK(weir_bus_send(r->bus, "a", TEXT("1"), &r->err));
    assert_int_equal(wakes, 1);
    assert_int_equal(weir_mailbox_run(mb, 2, 0), 2);
    OK(weir_bus_send(r->bus, "a", TEXT("2"), &r->err));
    assert_int_equal(wakes, 1);
    assert_int_equal(weir_mailbox_run(mb, 100, 0), 2);
    OK(weir_bus_send(r->bus, "a", TEXT("3"), &r->err));
    assert_int_equal(wakes, 2);
    weir_message_free(in.last);
    weir_mailbox_destroy(mb);
}

/* ---- services ---- */

static void add_up(weir_message *m, void *ctx)
{
    char text[80];
    int  a, b;
    if (sscanf(weir_message_body(m, NULL), "{\"a\":%d,\"b\":%d}", &a, &b) != 2) {
        weir_message_fail(m, 400, "a and b are expected", NULL);
        return;
    }
    snprintf(text, sizeof text, "%d", a + b + *(int *)ctx);
    OK(weir_message_reply(m, TEXT(text), NULL));
}

static void services_are_called_by_name(void **state)
{
    static const weir_action actions[] = { { .name = "add", .run = add_up }, { .name = NULL } };
    rig          *r = *state;
    weir_service *s;
    weir_reply    reply;
    int           more = 100;
    OK(weir_service_publish(&s, r->bus, &(weir_service_config){ .name = "calc", .actions = actions,
                            .ctx = &more }, &r->err));
    OK(weir_service_call(r->bus, "calc", "add", "{\"a\":1,\"b\":2}", 0, &reply, &r->err));
    assert_string_equal(weir_message_body(reply.message, NULL), "103");
    weir_message_free(reply.message);
    assert_int_equal(weir_service_call(r->bus, "calc", "add", NULL, 0, &reply, &r->err),
                     WEIR_EREPLY);
    assert_int_equal(reply.code, 400);
    assert_int_equal(weir_service_call(r->bus, "calc", "mul", NULL, 0, &reply, &r->err),
                     WEIR_EREPLY);
    assert_int_equal(reply.code, 500);
    assert_string_equal(reply.text, "Invalid action: mul");
    assert_int_equal(weir_bus_request(r->bus, "calc", NULL, 0, &reply, &r->err), WEIR_EREPLY);
    assert_string_equal(reply.text, "action not specified");
    weir_service_close(s);
    assert_int_equal(weir_service_call(r->bus, "calc", "add", NULL, 0, &reply, &r->err),
                     WEIR_ENOENT);
}

/* ---- many threads ---- */

enum { THREADS = 4, ROUNDS = 500 };

static void *storm(void *ctx)
{
    weir_bus     *b = ctx;
    weir_mailbox *mb;
    outcome       o = { 0 };
    OK(weir_mailbox_create(&mb, b, NULL, NULL));
    for (int i = 0; i < ROUNDS; i++) {
        weir_consumer *c;
        OK(weir_bus_consume(&c, b, &(weir_consumer_config){ .address = "echo", .handler = echo,
                            .mailbox = mb }, NULL));
        OK(weir_bus_request_async(b, "echo", TEXT("1"), &(weir_expect){ .fn = replied, .ctx = &o,
                                  .mailbox = mb, .timeout_ms = PATIENCE_MS }, NULL));
        weir_mailbox_run(mb, 3, 0);
        weir_consumer_close(c);
        OK(weir_bus_publish(b, "noise", NULL, NULL));
    }
    while (o.n < ROUNDS)
        weir_mailbox_run(mb, 10, PATIENCE_MS);
    weir_message_free(o.message);
    weir_mailbox_destroy(mb);
    return NULL;
}

static void threads_come_and_go(void **state)
{
    rig      *r = *state;
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, storm, r->bus);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

/* ---- consumers of beginnings, and what is there ---- */

typedef struct news {
    weir_bus_watch watch;
    char           text[200];
} news;

static void write_news(weir_bus_watch *w, const char *address, bool on)
{
    news *n = (news *)w;
    strcat(strcat(strcat(n->text, on ? "+" : "-"), address), " ");
}

static void a_prefix_has_consumers(void **state)
{
    rig           *r = *state;
    inbox          whole = { 0 }, rest = { 0 };
    weir_consumer *prefix, *c;
    OK(weir__bus_consume_prefix(&prefix, r->bus,
                                &(weir_consumer_config){ .address = "job.", .handler = receive,
                                                         .ctx = &rest, .mailbox = r->mb },
                                &r->err));
    c = consume(r, "job.1", receive, &whole);
    OK(weir_bus_send(r->bus, "job.1", TEXT("1"), &r->err));
    OK(weir_bus_send(r->bus, "job.2", TEXT("2"), &r->err));
    OK(weir_bus_publish(r->bus, "job.2", TEXT("3"), &r->err));      /* for whole addresses alone */
    assert_int_equal(weir_bus_send(r->bus, "jo", TEXT("4"), &r->err), WEIR_ENOENT);
    run(r);
    assert_string_equal(whole.text, "1,");
    assert_string_equal(rest.text, "2,");
    weir_consumer_close(c);
    OK(weir_bus_send(r->bus, "job.1", TEXT("5"), &r->err));
    run(r);
    assert_string_equal(rest.text, "2,5,");
    weir_consumer_close(prefix);
    assert_int_equal(weir_bus_send(r->bus, "job.1", TEXT("6"), &r->err), WEIR_ENOENT);
    weir_message_free(whole.last);
    weir_message_free(rest.last);
}

static void consumers_are_watched(void **state)
{
    rig           *r = *state;
    inbox          in = { 0 };
    news           n = { .watch = { .prefix = "job.", .changed = write_news } };
    weir_consumer *c[3];
    weir__bus_watch(r->bus, &n.watch);
    c[0] = consume(r, "job.1", receive, &in);
    c[1] = consume(r, "job.1", receive, &in);
    c[2] = consume(r, "mail", receive, &in);
    for (int i = 0; i < 3; i++)
        weir_consumer_close(c[i]);
    assert_string_equal(n.text, "+job.1 -job.1 ");
}

static void addresses_are_listed(void **state)
{
    rig                *r = *state;
    inbox               in = { 0 };
    weir_bus_addresses *list;
    OK(weir_bus_list(r->bus, &list, &r->err));
    assert_int_equal(list->n, 0);
    weir_bus_addresses_free(list);
    weir_consumer *c[] = { consume(r, "b", receive, &in), consume(r, "a", receive, &in),
                           consume(r, "b", receive, &in) };
    OK(weir_bus_publish(r->bus, "b", NULL, &r->err));
    OK(weir_bus_send(r->bus, "b", NULL, &r->err));
    OK(weir_bus_list(r->bus, &list, &r->err));
    assert_int_equal(list->n, 2);
    assert_string_equal(list->address[0].address, "a");
    assert_int_equal(list->address[0].delivered, 0);
    assert_string_equal(list->address[1].address, "b");
    assert_int_equal(list->address[1].here, 2);
    assert_int_equal(list->address[1].elsewhere, 0);
    assert_int_equal(list->address[1].delivered, 3);
    weir_bus_addresses_free(list);
    for (int i = 0; i < 3; i++)
        weir_consumer_close(c[i]);
    run(r);
    weir_message_free(in.last);
}

/* ---- a transport: two buses in one process, each the other's only peer ---- */

typedef struct pair_end {
    weir_transport  t;
    weir_bus       *other;
    struct pair_end *peer;
    bool            broken;
    struct { char address[40]; bool prefix; size_t n; } at[10]; /* guarded by the bus of this end */
} pair_end;

static bool pair_listen(weir_transport *t, const char *address, bool prefix, size_t consumers)
{
    pair_end *p = (pair_end *)t;
    int       i = 0;
    while (strcmp(p->at[i].address, address) != 0 && p->at[i].n)
        i++;
    snprintf(p->at[i].address, sizeof p->at[i].address, "%s", address);
    p->at[i].prefix = prefix;
    p->at[i].n = consumers;
    return true;
}

static size_t pair_count(weir_transport *t, const char *address, bool prefix)
{
    const pair_end *p = ((pair_end *)t)->peer;
    for (int i = 0; i < 10; i++)
        if (p->at[i].prefix == prefix && p->at[i].n &&
            (prefix ? !strncmp(address, p->at[i].address, strlen(p->at[i].address))
                    : !strcmp(address, p->at[i].address)))
            return p->at[i].n;
    return 0;
}

static void pair_list(weir_transport *t, weir_address_fn *fn, void *ctx)
{
    const pair_end *p = ((pair_end *)t)->peer;
    for (int i = 0; i < 10; i++)
        if (p->at[i].n && !p->at[i].prefix)
            fn(ctx, p->at[i].address, p->at[i].n);
}

static weir_code pair_publish(weir_transport *t, weir_message *m, const char *unless,
                              weir_error *err)
{
    (void)unless;
    weir_content c = weir__content_of(m);
    return weir__bus_arrive(((pair_end *)t)->other, weir_message_address(m), &c, false, NULL, err);
}

static void carry_back(const weir_reply *reply, void *ctx)
{
    weir_message *m = ctx;
    if (reply->message) {
        weir_content c = weir__content_of(reply->message);
        weir_message_reply(m, &c, NULL);
    } else {
        weir__message_answer(m, reply->failure, reply->code, reply->text, NULL);
    }
    weir_message_free(m);
}

static weir_code pair_send(weir_transport *t, weir_message *m, weir_error *err)
{
    weir_content c = weir__content_of(m);
    bool         reply = weir_message_expects_reply(m);
    weir_expect  e = { .fn = carry_back, .ctx = m, .timeout_ms = weir__message_left_ms(m) };
    if (((pair_end *)t)->broken)
        return weir_fail(err, WEIR_EUNAVAIL, "the line is cut");
    assert_true(!reply || (e.timeout_ms > 0 && e.timeout_ms <= WEIR_REPLY_TIMEOUT_MS));
    if (reply)
        weir_message_keep(m);
    weir_code rc = weir__bus_arrive(((pair_end *)t)->other, weir_message_address(m), &c, true,
                                    reply ? &e : NULL, err);
    if (rc && reply)
        weir_message_free(m);
    return rc;
}

/* The bus of the rig, and another one, joined. */
typedef struct pair {
    pair_end  a, b;
    weir_bus *there;
    weir_mailbox *mb;                   /* of `there` */
} pair;

static void join_pair(rig *r, pair *p)
{
    static const weir_transport_ops ops = { .listen = pair_listen, .count = pair_count,
                                            .list = pair_list, .publish = pair_publish,
                                            .send = pair_send };
    OK(weir_bus_create(&p->there, &r->err));
    OK(weir_mailbox_create(&p->mb, p->there, NULL, &r->err));
    p->a = (pair_end){ .t.ops = &ops, .other = p->there, .peer = &p->b };
    p->b = (pair_end){ .t.ops = &ops, .other = r->bus, .peer = &p->a };
    weir__bus_attach(r->bus, &p->a.t);
    weir__bus_attach(p->there, &p->b.t);
}

static void part_pair(pair *p)
{
    weir_mailbox_destroy(p->mb);
    weir_bus_close(p->there);
}

static weir_consumer *consume_there(pair *p, const char *address, weir_message_fn *fn, void *ctx)
{
    weir_error     err;
    weir_consumer *c;
    OK(weir_bus_consume(&c, p->there, &(weir_consumer_config){ .address = address, .handler = fn,
                                                               .ctx = ctx, .mailbox = p->mb },
                        &err));
    return c;
}

static void run_there(pair *p)
{
    while (weir_mailbox_run(p->mb, 100, 0))
        ;
}

static void a_transport_joins_buses(void **state)
{
    rig           *r = *state;
    pair           p;
    weir_consumer *c[3];
    weir_reply     reply;
    inbox          here = { 0 };
    join_pair(r, &p);
    OK(weir_bus_consume(&c[0], p.there, &(weir_consumer_config){ .address = "echo",
                        .handler = echo }, &r->err));
    OK(weir_bus_consume(&c[1], p.there, &(weir_consumer_config){ .address = "fail",
                        .handler = refuse }, &r->err));
    OK(weir_bus_request(r->bus, "echo", TEXT("[1]"), 0, &reply, &r->err));
    assert_string_equal(weir_message_body(reply.message, NULL), "[1]");
    weir_message_free(reply.message);
    assert_int_equal(weir_bus_request(r->bus, "fail", NULL, 0, &reply, &r->err), WEIR_EREPLY);
    assert_int_equal(reply.code, 42);
    assert_int_equal(weir_bus_request(r->bus, "echo", &(weir_content){ .local = true }, 0, &reply,
                                      &r->err), WEIR_ENOENT);
    c[2] = consume(r, "news", receive, &here);
    OK(weir_bus_publish(p.there, "news", TEXT("5"), &r->err));
    OK(weir_bus_send(p.there, "news", TEXT("6"), &r->err));
    run(r);
    assert_string_equal(here.text, "5,6,");
    for (int i = 0; i < 3; i++)
        weir_consumer_close(c[i]);
    assert_int_equal(weir_bus_send(r->bus, "echo", NULL, &r->err), WEIR_ENOENT);
    weir_message_free(here.last);
    part_pair(&p);
}

/* Every consumer has its turn, wherever it is. */
static void turns_go_by_consumers(void **state)
{
    rig           *r = *state;
    pair           p;
    inbox          here = { 0 }, there[3] = { 0 };
    weir_consumer *c[4];
    join_pair(r, &p);
    c[0] = consume(r, "work", receive, &here);
    for (int i = 0; i < 3; i++)
        c[i + 1] = consume_there(&p, "work", receive, &there[i]);
    for (int i = 0; i < 8; i++)
        OK(weir_bus_send(r->bus, "work", TEXT("1"), &r->err));
    run(r);
    run_there(&p);
    assert_string_equal(here.text, "1,1,");
    for (int i = 0; i < 3; i++)
        assert_string_equal(there[i].text, "1,1,");
    weir_bus_addresses *list;
    OK(weir_bus_list(r->bus, &list, &r->err));
    assert_int_equal(list->n, 1);
    assert_int_equal(list->address[0].here, 1);
    assert_int_equal(list->address[0].elsewhere, 3);
    weir_bus_addresses_free(list);
    for (int i = 0; i < 4; i++)
        weir_consumer_close(c[i]);
    weir_message_free(here.last);
    for (int i = 0; i < 3; i++)
        weir_message_free(there[i].last);
    part_pair(&p);
}

/* If one side cannot take a message, the other one gets it. */
static void the_other_side_is_tried(void **state)
{
    rig           *r = *state;
    pair           p;
    inbox          here = { 0 }, there = { 0 };
    weir_mailbox  *small;
    weir_consumer *c[2];
    join_pair(r, &p);
    OK(weir_mailbox_create(&small, r->bus, &(weir_mailbox_config){ .messages = 1 }, &r->err));
    OK(weir_bus_consume(&c[0], r->bus, &(weir_consumer_config){ .address = "work",
                        .handler = receive, .ctx = &here, .mailbox = small }, &r->err));
    c[1] = consume_there(&p, "work", receive, &there);
    for (int i = 0; i < 4; i++)                         /* one fits here */
        OK(weir_bus_send(r->bus, "work", TEXT("1"), &r->err));
    run_there(&p);
    assert_string_equal(there.text, "1,1,1,");
    weir_mailbox_run(small, 1, 0);
    p.a.broken = true;
    OK(weir_bus_send(r->bus, "work", TEXT("2"), &r->err));
    weir_mailbox_run(small, 1, 0);
    OK(weir_bus_send(r->bus, "work", TEXT("3"), &r->err));
    assert_int_equal(weir_bus_send(r->bus, "work", TEXT("4"), &r->err), WEIR_EUNAVAIL);
    weir_mailbox_run(small, 1, 0);
    assert_string_equal(here.text, "1,2,3,");
    weir_consumer_close(c[0]);
    weir_consumer_close(c[1]);
    weir_mailbox_destroy(small);
    weir_message_free(here.last);
    weir_message_free(there.last);
    part_pair(&p);
}

/* When a consumer is closed, what waited for it goes elsewhere, unless it is local. */
static void a_local_message_stays(void **state)
{
    rig           *r = *state;
    pair           p;
    inbox          here = { 0 }, there = { 0 };
    outcome        o = { 0 };
    weir_consumer *c[2];
    join_pair(r, &p);
    c[0] = consume(r, "work", receive, &here);
    OK(weir_bus_send(r->bus, "work", TEXT("1"), &r->err));
    OK(weir_bus_request_async(r->bus, "work", &(weir_content){ .body = "2", .local = true },
                              &(weir_expect){ .fn = replied, .ctx = &o, .mailbox = r->mb },
                              &r->err));
    c[1] = consume_there(&p, "work", receive, &there);
    weir_consumer_close(c[0]);
    run(r);
    run_there(&p);
    assert_string_equal(here.text, "");
    assert_string_equal(there.text, "1,");
    assert_int_equal(o.n, 1);
    assert_int_equal(o.failure, WEIR_FAILURE_NO_HANDLERS);
    weir_consumer_close(c[1]);
    weir_message_free(there.last);
    part_pair(&p);
}

static void prefixes_are_found_elsewhere(void **state)
{
    rig           *r = *state;
    pair           p;
    inbox          there = { 0 };
    weir_consumer *c;
    join_pair(r, &p);
    OK(weir__bus_consume_prefix(&c, p.there,
                                &(weir_consumer_config){ .address = "job.", .handler = receive,
                                                         .ctx = &there, .mailbox = p.mb },
                                &r->err));
    OK(weir_bus_send(r->bus, "job.7", TEXT("7"), &r->err));
    run_there(&p);
    assert_string_equal(there.text, "7,");
    weir_consumer_close(c);
    assert_int_equal(weir_bus_send(r->bus, "job.7", NULL, &r->err), WEIR_ENOENT);
    weir_message_free(there.last);
    part_pair(&p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(all_receive_a_publish), T(consumers_take_turns), T(headers_and_any_body_arrive),
        T(what_is_wrong_is_rejected), T(a_request_has_one_outcome), T(timeouts_end_in_their_order),
        T(a_plain_call_waits), T(a_request_needs_no_mailbox), T(replies_are_replied_to),
        T(a_full_mailbox_has_a_policy), T(the_limit_of_bytes), T(what_waits_goes_to_another),
        T(a_handler_closes_its_consumer), T(a_slow_consumer_delays_nobody),
        T(one_wake_until_it_is_empty), T(services_are_called_by_name), T(threads_come_and_go),
        T(a_prefix_has_consumers), T(consumers_are_watched), T(addresses_are_listed),
        T(a_transport_joins_buses), T(turns_go_by_consumers), T(the_other_side_is_tried),
        T(a_local_message_stays), T(prefixes_are_found_elsewhere),
    };
    return cmocka_run_group_tests_name("bus", tests, NULL, NULL);
}
