/* test_bus_processes.c - one event bus over real processes: on a SQLite file whose owner is killed,
 * on Redis in both layouts and as a cluster, on a Redis that is restarted, behind sentinels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/bus_talk.h"
#include "support/child.h"
#include "support/redis_rig.h"
#include "support/runtime_fixture.h"

/* ---- the other process: does what it is told ---- */

enum { MAX_CONSUMERS = 20 };

typedef struct member {
    weir_bus      *bus;
    weir_consumer *consumer[MAX_CONSUMERS];
    char           address[MAX_CONSUMERS][40];
    weir_service  *service;
    weir_error     err;
} member;

static void tell_and_echo(weir_message *m, void *ctx)
{
    weir_content c = { .body = weir_message_body(m, NULL) };
    (void)ctx;
    child_print("got %s %s", weir_message_address(m), c.body);
    if (weir_message_expects_reply(m))
        weir_message_reply(m, &c, NULL);
}

static void hold(weir_message *m, void *ctx)
{
    (void)ctx;
    weir_message_keep(m);                       /* and never answer: the process is killed */
    child_print("held %s", weir_message_body(m, NULL));
}

static void add_up(weir_message *m, void *ctx)
{
    int a = 0, b = 0;
    char sum[24];
    (void)ctx;
    if (sscanf(weir_message_body(m, NULL), "{\"a\":%d,\"b\":%d}", &a, &b) != 2) {
        weir_message_fail(m, 7, "a and b must be numbers", NULL);
        return;
    }
    snprintf(sum, sizeof sum, "%d", a + b);
    weir_message_reply(m, TEXT(sum), NULL);
}

static void do_consume(member *me, const char *address, weir_message_fn *fn)
{
    for (int i = 0; i < MAX_CONSUMERS; i++) {
        if (me->consumer[i])
            continue;
        snprintf(me->address[i], sizeof me->address[i], "%s", address);
        if (weir_bus_consume(&me->consumer[i], me->bus,
                             &(weir_consumer_config){ .address = address, .handler = fn },
                             &me->err))
            child_print("error %s", me->err.msg);
        return;
    }
}

static void do_close(member *me, const char *address)
{
    for (int i = 0; i < MAX_CONSUMERS; i++)
        if (me->consumer[i] && (!address || !strcmp(me->address[i], address))) {
            weir_consumer_close(me->consumer[i]);
            me->consumer[i] = NULL;
        }
}

static size_t elsewhere(member *me, const char *address)
{
    weir_bus_addresses *list;
    size_t              n = 0;
    if (weir_bus_list(me->bus, &list, &me->err))
        return 0;
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->address[i].address, address))
            n = list->address[i].elsewhere;
    weir_bus_addresses_free(list);
    return n;
}

static void print_outcome(const weir_reply *r)
{
    if (r->message)
        child_print("reply %s", weir_message_body(r->message, NULL));
    else
        child_print("failure %s %d %s", weir_failure_name(r->failure), r->code, r->text);
    weir_message_free(r->message);
}

static void do_chat(member *me, const char *address)
{
    weir_reply two, four;
    if (weir_bus_request(me->bus, address, TEXT("1"), 0, &two, &me->err)) {
        child_print("error %s", me->err.msg);
        return;
    }
    if (weir_message_request(two.message, TEXT("3"), 0, &four, &me->err))
        child_print("error %s", me->err.msg);
    else
        child_print("chat %s%s", weir_message_body(two.message, NULL),
                    weir_message_body(four.message, NULL));
    weir_message_free(two.message);
    weir_message_free(four.message);
}

static void serve(member *me, const char *name)
{
    static const weir_action actions[] = { { .name = "add", .run = add_up }, { .name = NULL } };
    weir_service_publish(&me->service, me->bus,
                         &(weir_service_config){ .name = name, .actions = actions }, &me->err);
}

/* COMMAND ADDRESS BODY */
static void obey(member *me, const char *command, const char *address, const char *body)
{
    weir_reply r;
    if (!strcmp(command, "consume")) {
        do_consume(me, address, tell_and_echo);
    } else if (!strcmp(command, "hold")) {
        do_consume(me, address, hold);
    } else if (!strcmp(command, "talk")) {
        do_consume(me, address, talk);
    } else if (!strcmp(command, "serve")) {
        serve(me, address);
    } else if (!strcmp(command, "close")) {
        do_close(me, address);
    } else if (!strcmp(command, "send")) {
        weir_code rc = weir_bus_send(me->bus, address, TEXT(body), &me->err);
        child_print("sent %s", rc ? me->err.msg : "ok");
    } else if (!strcmp(command, "publish")) {
        weir_code rc = weir_bus_publish(me->bus, address, TEXT(body), &me->err);
        child_print("published %s", rc ? me->err.msg : "ok");
    } else if (!strcmp(command, "request")) {
        weir_bus_request(me->bus, address, TEXT(body), RIG_PATIENCE_MS, &r, &me->err);
        print_outcome(&r);
    } else if (!strcmp(command, "persist")) {           /* until there is a reply */
        while (weir_bus_request(me->bus, address, TEXT(body), 1000, &r, &me->err))
            rt_breathe();
        print_outcome(&r);
    } else if (!strcmp(command, "call")) {
        weir_service_call(me->bus, address, "add", body, 0, &r, &me->err);
        print_outcome(&r);
    } else if (!strcmp(command, "chat")) {
        do_chat(me, address);
    } else if (!strcmp(command, "wait")) {
        while (elsewhere(me, address) != (size_t)atoi(body))
            rt_breathe();
        child_print("seen %s %s", address, body);
    }
}

/* member URL */
static int play(char **args)
{
    member      me = { 0 };
    weir_queue *q = NULL;
    char        line[200];
    weir_code   rc = weir_open(&q, args[0], NULL, &me.err);
    if (!rc)
        rc = weir_bus_open(&me.bus, q, &me.err);
    child_print(rc ? "error %s" : "ready%s", rc ? me.err.msg : "");
    while (!rc && child_told(line, sizeof line)) {
        char *command = strtok(line, " "), *address = strtok(NULL, " "), *body = strtok(NULL, "");
        obey(&me, command, address ? address : "", body ? body : "null");
    }
    weir_service_close(me.service);
    do_close(&me, NULL);
    weir_bus_close(me.bus);
    weir_close(q);
    return rc;
}

/* ---- the test ---- */

static child *start_member(const char *url)
{
    child *c = child_start("member", url, NULL);
    child_until(c, "ready", 1);
    return c;
}

static void tell(child *c, const char *format, const char *a, const char *b)
{
    char line[200];
    snprintf(line, sizeof line, format, a, b);
    child_tell(c, line);
}

/* Tell, and wait for one more line that begins so. */
static void ask(child *c, const char *line, const char *answer)
{
    size_t before = child_count(c, answer);
    child_tell(c, line);
    child_until(c, answer, before + 1);
}

static void wait_for(child *c, const char *address, const char *n)
{
    char line[100], answer[100];
    snprintf(line, sizeof line, "wait %s %s", address, n);
    snprintf(answer, sizeof answer, "seen %s %s", address, n);
    ask(c, line, answer);
}

/* Everything that a bus does, between a, b and c. */
static void talk_to_each_other(child *a, child *b, child *c)
{
    child_tell(b, "consume echo");
    child_tell(b, "talk talk");
    child_tell(b, "serve calc");
    child_tell(a, "consume news");
    child_tell(b, "consume news");
    child_tell(c, "consume news");
    wait_for(a, "echo", "1");
    wait_for(a, "talk", "1");
    wait_for(a, "calc", "1");
    wait_for(a, "news", "2");
    ask(a, "request echo [1,2]", "reply [1,2]");
    ask(a, "send echo \"sent\"", "sent ok");
    child_until(b, "got echo \"sent\"", 1);
    ask(a, "publish news 7", "published ok");
    child_until(a, "got news 7", 1);
    child_until(b, "got news 7", 1);
    child_until(c, "got news 7", 1);
    for (int i = 0; i < 6; i++)
        ask(a, "send news 8", "sent ok");
    child_until(a, "got news 8", 2);
    child_until(b, "got news 8", 2);
    child_until(c, "got news 8", 2);
    ask(a, "chat talk", "chat 24");
    ask(a, "call calc {\"a\":1,\"b\":2}", "reply 3");
    ask(a, "call calc {}", "failure RECIPIENT_FAILURE 7 a and b must be numbers");
    ask(a, "request nobody 1", "failure NO_HANDLERS -1 No handlers for address nobody");
    child_tell(b, "close echo");
    wait_for(a, "echo", "0");
    ask(a, "send echo 1", "sent No handlers for address echo");
}

/* A process that comes later knows everything when it has joined; one that is killed vanishes, and
 * what it was asked fails. */
static void come_and_be_killed(const char *url, child *a)
{
    child *b = start_member(url);
    child_tell(b, "hold slow");
    wait_for(a, "slow", "1");
    child *late = start_member(url);
    tell(late, "request slow %s%s", "1", "");
    child_until(b, "held 1", 1);
    child_kill9(b);
    child_until(late, "failure ERROR -1 ", 1);
    wait_for(a, "slow", "0");
    ask(a, "request slow 1", "failure NO_HANDLERS");
    child_end(late);
    child_free(b);
}

static void meet(const char *url)
{
    child *a = start_member(url), *b = start_member(url), *c = start_member(url);
    talk_to_each_other(a, b, c);
    come_and_be_killed(url, a);
    child_end(b);                               /* the others learn that it has left */
    wait_for(a, "talk", "0");
    child_end(c);
    child_end(a);
}

static void on_a_file(void **state)
{
    char dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 40];
    (void)state;
    assert_true(tempdir_make(dir));
    snprintf(url, sizeof url, "sqlite:%s/jobs.db", dir);
    meet(url);
    tempdir_remove(dir);
}

/* The owner of the file is killed: the others find each other at the next one. */
static void the_owner_is_killed(void **state)
{
    char dir[TEMPDIR_MAX], url[TEMPDIR_MAX + 40];
    (void)state;
    assert_true(tempdir_make(dir));
    snprintf(url, sizeof url, "sqlite:%s/jobs.db", dir);
    child *owner = start_member(url), *a = start_member(url), *b = start_member(url);
    for (int round = 0; round < 3; round++) {
        child_tell(owner, "hold slow");
        child_tell(b, "consume echo");
        wait_for(a, "slow", "1");
        wait_for(a, "echo", "1");
        ask(a, "request echo 1", "reply 1");
        size_t held = child_count(owner, "held"), failed = child_count(a, "failure ERROR -1 ");
        child_tell(a, "request slow 5");
        child_until(owner, "held", held + 1);
        child_kill9(owner);
        child_until(a, "failure ERROR -1 the process that consumed slow was lost", failed + 1);
        ask(a, "persist echo 2", "reply 2");
        wait_for(a, "slow", "0");
        wait_for(a, "echo", "1");
        child_free(owner);
        owner = start_member(url);              /* a or b owns the file by now */
        child_tell(b, "close echo");
        wait_for(owner, "echo", "0");
        ask(owner, "chat talk", "error");
        child *next = round == 0 ? a : b;       /* perhaps the owner: killed in the next round */
        child *spare = owner;
        owner = next;
        if (round == 0)
            a = spare;
        else
            b = spare;
    }
    child_end(owner);
    child_end(a);
    child_end(b);
    tempdir_remove(dir);
}

static void on_redis(void **state)
{
    static const char *const urls[] = { "rig:redis+unix", "rig:redis+kue+unix",
                                        "rig:redis+kue+unix?profile=vertx", "rig:cluster" };
    char url[1000];
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_true(rig_shared_url(urls[i], url, sizeof url));
        meet(url);
    }
}

/* A Redis that goes and comes back: the bus is there again by itself. */
static void redis_is_restarted(void **state)
{
    char url[1000];
    rig *r = rig_start(NULL);
    (void)state;
    assert_non_null(r);
    rig_url(r, "redis+unix", NULL, url, sizeof url);
    child *a = start_member(url), *b = start_member(url);
    child_tell(b, "consume echo");
    wait_for(a, "echo", "1");
    ask(a, "request echo 1", "reply 1");
    rig_kill9(r);
    wait_for(a, "echo", "0");                   /* it cannot be reached */
    child_tell(b, "consume more");
    assert_true(rig_begin(r) && rig_ready(r));
    wait_for(a, "echo", "1");
    wait_for(a, "more", "1");
    ask(a, "persist echo 2", "reply 2");
    child_end(b);
    wait_for(a, "echo", "0");
    child_end(a);
    rig_free(r);
}

/* The primary is killed: the bus goes on at the replica that the sentinels choose. */
static void the_primary_is_killed(void **state)
{
    char       url[1000];
    rig_nodes *n = rig_sentinels(3, 1);
    (void)state;
    assert_non_null(n);
    rig_sentinel_url(n, "redis+sentinel", NULL, url, sizeof url);
    child *a = start_member(url), *b = start_member(url);
    child_tell(b, "consume echo");
    wait_for(a, "echo", "1");
    ask(a, "request echo 1", "reply 1");
    rig *old = rig_sentinel_primary(n);
    assert_non_null(old);
    rig_kill9(old);
    assert_non_null(rig_sentinel_failed_over(n, old));
    ask(a, "persist echo 2", "reply 2");
    wait_for(a, "echo", "1");
    child_end(b);
    wait_for(a, "echo", "0");
    child_end(a);
    rig_nodes_free(n);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_file), cmocka_unit_test(the_owner_is_killed),
        cmocka_unit_test(on_redis), cmocka_unit_test(redis_is_restarted),
        cmocka_unit_test(the_primary_is_killed),
    };
    if (child_role(argc, argv))
        return play(argv + 3);
    return cmocka_run_group_tests_name("bus_processes", tests, NULL, NULL);
}
