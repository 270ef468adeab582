/* test_bus_servers.c - several weir servers on one Redis are one to the clients of their event bus;
 * when one of them is killed, its clients go on at another one. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/child.h"
#include "support/redis_rig.h"
#include "support/server_rig.h"
#include "support/tcp_client.h"

/* ---- a server in a process of its own ---- */

/* server URL */
static int play(char **args)
{
    weir_error  err = { 0 };
    weir_queue *q = NULL;
    srv_server *s = NULL;
    char        line[16];
    weir_code   rc = weir_open(&q, args[0], NULL, &err);
    if (!rc)
        rc = srv_start(&s, q, &(srv_options){ .listen = "127.0.0.1:0",
                                              .bus = { .listen = "127.0.0.1:0" } }, &err);
    if (rc)
        child_print("error %s", err.msg);
    else
        child_print("bus %s", srv_bus_address(s));
    while (!rc && child_told(line, sizeof line))
        ;
    if (s)
        srv_stop(s);
    srv_destroy(s);
    weir_close(q);
    return rc;
}

static void read_address(const char *line, void *ctx)
{
    sscanf(line, "bus %63s", (char *)ctx);
}

static child *start_server(const char *url, char address[64])
{
    child *c = child_start("server", url, NULL);
    child_until(c, "bus ", 1);
    child_each(c, read_address, address);
    return c;
}

/* ---- clients ---- */

static void say(int fd, const char *type, const char *address, const char *more)
{
    char json[600];
    snprintf(json, sizeof json, "{\"type\":\"%s\",\"address\":\"%s\"%s}", type, address, more);
    tcp_tell(fd, json);
}

/* Until a request there has an answer: the address may not be known yet. False: the connection is
 * gone. */
static bool knows(int fd, const char *address, bool known)
{
    for (;;) {
        say(fd, "send", address, ",\"replyAddress\":\"r\",\"body\":1");
        char *text = tcp_next(fd);
        if (!text)
            return false;
        bool none = strstr(text, "NO_HANDLERS");
        free(text);
        if (none != known)
            return true;
        rt_breathe();
    }
}

/* A client that answers every request with what it was sent, until its connection ends. */
static void *echo(void *ctx)
{
    int   fd = *(int *)ctx;
    char *text;
    while ((text = tcp_next(fd))) {
        char *at = strstr(text, "\"replyAddress\":\""), reply[WEIR_REPLY_ADDRESS];
        if (at && sscanf(at, "\"replyAddress\":\"%36[^\"]", reply) == 1)
            say(fd, "send", reply, ",\"body\":\"echo\"");
        free(text);
    }
    return NULL;
}

static void answers(int fd)
{
    say(fd, "send", "echo", ",\"replyAddress\":\"r\",\"body\":1");
    tcp_expect(fd, "{\"type\":\"message\",\"address\":\"r\",\"headers\":{},"
                   "\"body\":\"echo\",\"send\":true}");
}

/* ---- the test ---- */

static void two_servers_are_one(void **state)
{
    char url[1000], at[3][64];
    (void)state;
    assert_true(rig_shared_url("rig:redis+unix", url, sizeof url));
    child *first = start_server(url, at[0]), *second = start_server(url, at[1]);
    int    a = tcp_dial(at[0]), b = tcp_dial(at[1]), c = tcp_dial(at[1]);
    pthread_t t;
    say(b, "register", "echo", "");
    say(c, "register", "news", "");
    tcp_sync(b);
    tcp_sync(c);
    assert_int_equal(pthread_create(&t, NULL, echo, &b), 0);
    assert_true(knows(a, "echo", true));
    answers(a);                                 /* from one server to the other and back */
    say(a, "publish", "news", ",\"body\":[1]");
    tcp_expect(c, "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},\"body\":[1],"
                  "\"send\":false}");
    int64_t killed = rt_ms();
    child_kill9(second);
    pthread_join(t, NULL);                      /* its clients lose their connections ... */
    assert_null(tcp_next(c));
    assert_true(knows(a, "echo", false));       /* ... and their consumers vanish */
    print_message("# gone after %" PRId64 " ms\n", rt_ms() - killed);
    close(b);
    close(c);
    b = tcp_dial(at[0]);                        /* the clients go on at the first server */
    say(b, "register", "echo", "");
    tcp_sync(b);
    assert_int_equal(pthread_create(&t, NULL, echo, &b), 0);
    answers(a);
    child *third = start_server(url, at[2]);    /* one that comes later knows all at once */
    c = tcp_dial(at[2]);
    answers(c);
    child_end(first);                           /* an orderly end */
    pthread_join(t, NULL);
    assert_true(knows(c, "echo", false));
    close(a);
    close(b);
    close(c);
    child_end(third);
    child_free(second);
}

/* The header localOnly: consumers of the client's own server, no others. */
static void local_messages_stay_at_their_server(void **state)
{
    static const char local[] = ",\"headers\":{\"localOnly\":\"true\"},\"body\":1";
    char url[1000], at[2][64], request[200], *got = NULL;
    (void)state;
    assert_true(rig_shared_url("rig:redis+unix", url, sizeof url));
    child *first = start_server(url, at[0]), *second = start_server(url, at[1]);
    int    a = tcp_dial(at[0]), near = tcp_dial(at[0]), far = tcp_dial(at[1]);
    say(far, "register", "far", "");
    say(far, "register", "both", "");
    say(near, "register", "both", "");
    tcp_sync(far);
    tcp_sync(near);
    do {                                        /* until the first server knows the address */
        say(a, "send", "far", ",\"replyAddress\":\"r\",\"headers\":{\"timeout\":\"200\"},"
                              "\"body\":1");
        free(got);
        got = tcp_next(a);
    } while (strstr(got, "NO_HANDLERS"));
    free(got);
    free(tcp_next(far));
    snprintf(request, sizeof request, ",\"replyAddress\":\"r2\"%s", local);
    say(a, "send", "far", request);
    got = tcp_next(a);
    assert_non_null(strstr(got, "NO_HANDLERS"));
    free(got);
    say(a, "publish", "both", local);
    say(a, "publish", "both", ",\"body\":2");
    for (int i = 1; i <= 2; i++) {
        char want[200];
        snprintf(want, sizeof want, "{\"type\":\"message\",\"address\":\"both\",\"headers\":{},"
                 "\"body\":%d,\"send\":false}", i);
        tcp_expect(near, want);
        if (i == 2)
            tcp_expect(far, want);              /* its first */
    }
    close(a);
    close(near);
    close(far);
    child_end(first);
    child_end(second);
}

/* Until the consumer at the other server answers; any failure is tried again. */
static void wait_for_echo(int fd)
{
    for (bool done = false; !done;) {
        say(fd, "send", "echo", ",\"replyAddress\":\"r\",\"headers\":{\"timeout\":\"1000\"},"
                                "\"body\":1");
        char *text = tcp_next(fd);
        assert_non_null(text);
        done = strstr(text, "\"body\":\"echo\"");
        free(text);
        if (!done)
            rt_breathe();
    }
}

/* Clients keep their connections, and the bus is whole again without their doing. */
static void redis_is_restarted(void **state)
{
    char      url[1000], at[2][64];
    pthread_t t;
    (void)state;
    rig *r = rig_start(NULL);
    assert_non_null(r);
    rig_url(r, "redis+unix", NULL, url, sizeof url);
    child *first = start_server(url, at[0]), *second = start_server(url, at[1]);
    int    a = tcp_dial(at[0]), b = tcp_dial(at[1]), c = tcp_dial(at[0]);
    say(b, "register", "echo", "");
    say(c, "register", "news", "");
    tcp_sync(b);
    tcp_sync(c);
    assert_int_equal(pthread_create(&t, NULL, echo, &b), 0);
    wait_for_echo(a);
    rig_kill9(r);
    say(a, "publish", "news", ",\"body\":1");   /* within one server it goes on */
    tcp_expect(c, "{\"type\":\"message\",\"address\":\"news\",\"headers\":{},\"body\":1,"
                  "\"send\":false}");
    assert_true(rig_restart(r));
    wait_for_echo(a);
    close(a);
    close(c);
    child_end(first);
    child_end(second);
    pthread_join(t, NULL);
    close(b);
    rig_free(r);
}

/* ---- work queues ---- */

/* What the server of this client answers itself. */
static char *ask_server(int fd, const char *action, const char *body)
{
    char more[300];
    snprintf(more, sizeof more, ",\"replyAddress\":\"r\",\"headers\":{\"action\":\"%s\","
             "\"localOnly\":\"true\"},\"body\":%s", action, body);
    say(fd, "send", "weir.bus", more);
    char *text = tcp_next(fd);
    assert_non_null(text);
    return text;
}

static void says(int fd, const char *action, const char *body, const char *part)
{
    char *text = ask_server(fd, action, body);
    if (!strstr(text, part))
        fail_msg("%s %s: %s, not %s", action, body, text, part);
    free(text);
}

static void wait_says(int fd, const char *action, const char *body, const char *part)
{
    for (bool done = false; !done; rt_breathe()) {
        char *text = ask_server(fd, action, body);
        done = strstr(text, part);
        free(text);
    }
}

static void accepted(int fd, const char *address, const char *body)
{
    char more[200];
    snprintf(more, sizeof more, ",\"replyAddress\":\"r\",\"body\":%s", body);
    say(fd, "send", address, more);
    tcp_expect(fd, "{\"type\":\"message\",\"address\":\"r\",\"headers\":{},"
                   "\"body\":{\"status\":\"ok\"},\"send\":true}");
}

/* Whichever server is asked, the answer is about all of them. */
static void work_queues_of_all_servers(void **state)
{
    char url[1000], at[2][64];
    (void)state;
    rig *r = rig_start(NULL);
    assert_non_null(r);
    rig_url(r, "redis+unix", NULL, url, sizeof url);
    child *first = start_server(url, at[0]), *second = start_server(url, at[1]);
    int    fd[2] = { tcp_dial(at[0]), tcp_dial(at[1]) };
    says(fd[0], "workQueues", "{}", "{\"work_queues\":[]}");
    says(fd[0], "putWorkQueue", "{\"address\":\"a\"}", "\"standby\":false,\"servers\":1}");
    says(fd[1], "putWorkQueue", "{\"address\":\"b\"}", "\"standby\":false,\"servers\":1}");
    for (int i = 0; i < 2; i++) {               /* each server has one of them */
        says(fd[i], "workQueues", "{}", "{\"address\":\"a\",");
        says(fd[i], "workQueues", "{}", "{\"address\":\"b\",");
    }
    says(fd[0], "getWorkQueue", "{\"address\":\"b\"}", "\"standby\":true,\"servers\":1}");
    says(fd[1], "putWorkQueue", "{\"address\":\"a\",\"process_timeout\":\"1s\"}",
         "another server runs the work queue with other settings");
    says(fd[1], "putWorkQueue", "{\"address\":\"a\"}", "\"standby\":true,\"servers\":2}");
    say(fd[1], "register", "p", "");
    tcp_sync(fd[1]);
    accepted(fd[1], "a.register", "{\"processor\":\"p\"}");
    wait_says(fd[0], "getWorkQueue", "{\"address\":\"a\"}", "\"idle\":1,");
    wait_says(fd[1], "getWorkQueue", "{\"address\":\"a\"}", "\"idle\":1,");
    says(fd[1], "removeWorkQueue", "{\"address\":\"a\"}", "\"address\":\"r\"");
    says(fd[0], "removeWorkQueue", "{\"address\":\"b\"}", "\"address\":\"r\"");
    for (int i = 0; i < 2; i++) {
        says(fd[i], "workQueues", "{}", "{\"work_queues\":[]}");
        says(fd[i], "removeWorkQueue", "{\"address\":\"a\"}", "\"failureCode\":404");
    }
    close(fd[0]);
    close(fd[1]);
    child_end(first);
    child_end(second);
    rig_free(r);
}

/* ---- events of jobs ---- */

enum { JOBS = 50, MAX_ID = 100 * 1000 };

typedef struct listener {
    atomic_int seen[MAX_ID + 1];                /* by the id of the job */
} listener;

/* {"extra":null,"job":{...,"id":7,...}} */
static void count_event(listener *l, const char *body)
{
    const char *at = strstr(body, "\"id\":");
    assert_non_null(at);
    int id = atoi(at + 5);
    assert_in_range(id, 1, MAX_ID);
    atomic_fetch_add(&l->seen[id], 1);
}

static void on_message(weir_message *m, void *ctx)
{
    count_event(ctx, weir_message_body(m, NULL));
}

typedef struct client {
    int      fd;
    listener l;
} client;

static void *read_events(void *ctx)
{
    client *c = ctx;
    char   *text;
    while ((text = tcp_next(c->fd))) {
        if (strstr(text, "\"extra\""))
            count_event(&c->l, text);
        free(text);
    }
    return NULL;
}

static void add_jobs(weir_queue *q, int first, int n)
{
    for (int i = 0; i < n; i++) {
        weir_added out;
        assert_int_equal(weir_add(q, &(weir_spec){ .type = "t" }, &out, NULL), WEIR_OK);
        assert_int_equal(out.id, first + i);
    }
}

static void wait_seen(listener *l, int id)
{
    while (!atomic_load(&l->seen[id]))
        rt_breathe();
}

static void seen_once(listener *l, int first, int n)
{
    for (int i = first; i < first + n; i++)
        assert_int_equal(atomic_load(&l->seen[i]), 1);
}

/* Each listener receives each event once: clients of both servers, and a program that has the bus
 * open itself. When the server that publishes to programs is killed, the other one does. */
static void job_events_reach_all_once(void **state)
{
    static const char address[] = "vertx.kue.handler.workers.job_enqueue";
    char           url[1000], at[2][64];
    weir_queue    *q;
    weir_bus      *bus;
    weir_consumer *c;
    static listener own;
    static client  near, far;
    pthread_t      t[2];
    (void)state;
    rig *r = rig_start(NULL);
    assert_non_null(r);
    rig_url(r, "redis+unix", NULL, url, sizeof url);
    assert_int_equal(weir_open(&q, url, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_bus_open(&bus, q, NULL), WEIR_OK);
    assert_int_equal(weir_bus_consume(&c, bus, &(weir_consumer_config){ .address = address,
                                      .handler = on_message, .ctx = &own }, NULL), WEIR_OK);
    child *first = start_server(url, at[0]), *second = start_server(url, at[1]);
    near.fd = tcp_dial(at[0]);
    far.fd = tcp_dial(at[1]);
    say(near.fd, "register", address, "");
    say(far.fd, "register", address, "");
    tcp_sync(near.fd);
    tcp_sync(far.fd);
    assert_int_equal(pthread_create(&t[0], NULL, read_events, &near), 0);
    assert_int_equal(pthread_create(&t[1], NULL, read_events, &far), 0);
    add_jobs(q, 1, JOBS);
    wait_seen(&near.l, JOBS);
    wait_seen(&far.l, JOBS);
    wait_seen(&own, JOBS);                      /* events come in their order: this is the last */
    seen_once(&near.l, 1, JOBS);
    seen_once(&far.l, 1, JOBS);
    seen_once(&own, 1, JOBS);
    child_kill9(first);
    pthread_join(t[0], NULL);
    int id = JOBS, since = JOBS + 1;
    do {                                        /* until the other one has taken over */
        add_jobs(q, ++id, 1);
        wait_seen(&far.l, id);
        while (since < id && !atomic_load(&own.seen[since]))
            since++;
        rt_breathe();
    } while (!atomic_load(&own.seen[since]));
    add_jobs(q, ++id, 1);
    wait_seen(&own, id);
    wait_seen(&far.l, id);
    seen_once(&own, since, id + 1 - since);
    seen_once(&far.l, JOBS + 1, id - JOBS);
    weir_consumer_close(c);
    weir_bus_close(bus);
    weir_close(q);
    child_end(second);
    pthread_join(t[1], NULL);
    close(near.fd);
    close(far.fd);
    child_free(first);
    rig_free(r);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_servers_are_one),
        cmocka_unit_test(local_messages_stay_at_their_server),
        cmocka_unit_test(redis_is_restarted),
        cmocka_unit_test(work_queues_of_all_servers),
        cmocka_unit_test(job_events_reach_all_once),
    };
    if (child_role(argc, argv))
        return play(argv + 3);
    return cmocka_run_group_tests_name("bus_servers", tests, NULL, NULL);
}
