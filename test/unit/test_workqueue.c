/* test_workqueue.c - a work queue on the bus: turns, replies, conversations, timeouts, processors
 * that leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/work.h"

enum { PATIENCE_MS = 60000 };

#define OK(call) assert_int_equal((call), WEIR_OK)
#define TEXT(text) (&(weir_content){ .body = (text) })

typedef struct rig {
    weir_bus       *bus;
    weir_mailbox   *mb;             /* of the processors and senders, run by the test */
    weir_workqueue *q;
    char            log[1000];      /* "p1:BODY," for each message a processor has received */
    weir_message   *last;
    int             replies;
    char            reply[300];
    weir_message   *reply_message;
    weir_failure    failure;
    int             code;
} rig;

typedef struct processor {
    rig        *r;
    const char *name;
    bool        silent;
} processor;

static void open_queue(rig *r, const weir_workqueue_config *config)
{
    OK(weir_bus_create(&r->bus, NULL));
    OK(weir_mailbox_create(&r->mb, r->bus, NULL, NULL));
    OK(weir_workqueue_open(&r->q, r->bus, config, NULL));
}

static void close_queue(rig *r)
{
    weir_message_free(r->last);
    weir_message_free(r->reply_message);
    weir_workqueue_close(r->q);
    weir_mailbox_destroy(r->mb);
    weir_bus_close(r->bus);
}

static void process(weir_message *m, void *ctx)
{
    processor *p = ctx;
    size_t     n = strlen(p->r->log);
    snprintf(p->r->log + n, sizeof p->r->log - n, "%s:%s,", p->name, weir_message_body(m, NULL));
    weir_message_free(p->r->last);
    p->r->last = weir_message_keep(m);
    if (!p->silent)
        OK(weir_message_reply(m, TEXT(weir_message_body(m, NULL)), NULL));
}

static weir_consumer *consume(rig *r, processor *p)
{
    weir_consumer *c;
    OK(weir_bus_consume(&c, r->bus, &(weir_consumer_config){ .address = p->name,
                        .handler = process, .ctx = p, .mailbox = r->mb }, NULL));
    return c;
}

/* Ask the queue something that it answers by itself. */
static void order(rig *r, const char *address, const char *body, const char *answer)
{
    weir_reply reply;
    OK(weir_bus_request(r->bus, address, TEXT(body), PATIENCE_MS, &reply, NULL));
    assert_string_equal(weir_message_body(reply.message, NULL), answer);
    weir_message_free(reply.message);
}

/* A reply is sent before it is counted: have the queue finish what it does. */
static void settle(rig *r)
{
    order(r, "work.unregister", "{\"processor\":\"nobody\"}", "{\"status\":\"ok\"}");
}

static void join(rig *r, const char *name)
{
    char body[100];
    snprintf(body, sizeof body, "{\"processor\":\"%s\"}", name);
    order(r, "work.register", body, "{\"status\":\"ok\"}");
}

static void replied(const weir_reply *reply, void *ctx)
{
    rig *r = ctx;
    r->replies++;
    r->failure = reply->failure;
    r->code = reply->code;
    snprintf(r->reply, sizeof r->reply, "%s",
             reply->message ? weir_message_body(reply->message, NULL) : "");
    weir_message_free(r->reply_message);
    r->reply_message = reply->message ? weir_message_keep(reply->message) : NULL;
}

static void ask(rig *r, const char *body)
{
    OK(weir_bus_request_async(r->bus, "work", TEXT(body), &(weir_expect){ .fn = replied, .ctx = r,
                              .mailbox = r->mb, .timeout_ms = PATIENCE_MS }, NULL));
}

static void wait_replies(rig *r, int n)
{
    while (r->replies < n)
        assert_true(weir_mailbox_run(r->mb, 1, PATIENCE_MS));
}

static void wait_log(rig *r, const char *log)
{
    while (strlen(r->log) < strlen(log))
        assert_true(weir_mailbox_run(r->mb, 1, PATIENCE_MS));
    assert_string_equal(r->log, log);
}

/* ---- cases ---- */

static void work_waits_and_takes_turns(void **state)
{
    (void)state;
    rig       r = { 0 };
    processor p1 = { &r, "p1", false }, p2 = { &r, "p2", false };
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    consume(&r, &p1);
    consume(&r, &p2);
    ask(&r, "1");                                   /* nobody is there yet */
    ask(&r, "{\"any\":[null]}");
    join(&r, "p1");
    join(&r, "p2");
    wait_replies(&r, 2);
    wait_log(&r, "p1:1,p2:{\"any\":[null]},");      /* one message each */
    for (int i = 3; i <= 30; i++) {
        ask(&r, "7");
        wait_replies(&r, i);
        assert_string_equal(r.reply, "7");
    }
    settle(&r);
    weir_workqueue_stats s;
    weir_workqueue_get_stats(r.q, &s);
    assert_int_equal(s.done, 30);
    assert_int_equal(s.idle + s.busy, 2);
    close_queue(&r);
}

static void three_processors_six_messages(void **state)
{
    (void)state;
    rig       r = { 0 };
    processor p[] = { { &r, "p1", false }, { &r, "p2", false }, { &r, "p3", false } };
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    for (int i = 0; i < 3; i++) {
        consume(&r, &p[i]);
        join(&r, p[i].name);
    }
    for (int i = 1; i <= 6; i++) {
        char body[] = { (char)('0' + i), '\0' };
        ask(&r, body);
    }
    wait_replies(&r, 6);
    assert_string_equal(r.log, "p1:1,p2:2,p3:3,p1:4,p2:5,p3:6,");
    close_queue(&r);
}

/* Work that timed out goes to the end of the queue, or to its head. */
static void order_of_late_work(bool first, const char *log)
{
    rig                  r = { 0 };
    processor            p1 = { &r, "p1", true }, p2 = { &r, "p2", false };
    weir_workqueue_stats s = { 0 };
    open_queue(&r, &(weir_workqueue_config){ .address = "work", .process_timeout_ms = 50,
                                             .timed_out_first = first });
    consume(&r, &p1);
    consume(&r, &p2);
    join(&r, "p1");
    ask(&r, "1");
    ask(&r, "2");
    ask(&r, "3");
    for (; !s.timed_out; weir_workqueue_get_stats(r.q, &s))
        weir_mailbox_run(r.mb, 1, 1);
    join(&r, "p2");
    wait_replies(&r, 3);
    assert_string_equal(r.log, log);
    close_queue(&r);
}

static void late_work_goes_to_the_end(void **state)
{
    (void)state;
    order_of_late_work(false, "p1:1,p2:2,p2:3,p2:1,");
}

static void late_work_goes_to_the_head(void **state)
{
    (void)state;
    order_of_late_work(true, "p1:1,p2:1,p2:2,p2:3,");
}

static void a_full_queue(void **state)
{
    static const char full[] = "{\"status\":\"error\",\"message\":\"the work queue is full\"}";
    (void)state;
    rig       r = { 0 };
    processor accepted = { &r, "accepted", true };
    char      log[200];
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    consume(&r, &accepted);
    for (int i = 0; i < WEIR_WORK_MESSAGES; i++)
        while (weir_bus_send(r.bus, "work", TEXT("1"), NULL) == WEIR_EFULL)
            usleep(100);
    settle(&r);
    order(&r, "work", "{\"accepted_reply\":\"accepted\"}", full);
    snprintf(log, sizeof log, "accepted:%s,", full);
    wait_log(&r, log);
    close_queue(&r);
}

static void what_the_queue_answers(void **state)
{
    (void)state;
    rig       r = { 0 };
    processor accepted = { &r, "accepted", true };
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    consume(&r, &accepted);
    static const char error[] = "{\"status\":\"error\",\"message\":"
                                "\"processor must be specified\"}";
    order(&r, "work.register", "{}", error);
    order(&r, "work.register", "{\"processor\":5}", error);
    order(&r, "work.unregister", "[]", error);
    static const char own[] = "{\"status\":\"error\",\"message\":\"this is an address of the work "
                              "queue; a processor needs one of its own\"}";
    order(&r, "work.register", "{\"processor\":\"work\"}", own);
    order(&r, "work.register", "{\"processor\":\"work.register\"}", own);
    order(&r, "work.unregister", "{\"processor\":\"nobody\"}", "{\"status\":\"ok\"}");
    OK(weir_bus_send(r.bus, "work", TEXT("{\"accepted_reply\":\"accepted\"}"), NULL));
    OK(weir_bus_send(r.bus, "work", TEXT(" {\"accepted-reply\":\"accepted\"}"), NULL));
    wait_log(&r, "accepted:{\"status\":\"accepted\"},accepted:{\"status\":\"accepted\"},");
    close_queue(&r);
    weir_workqueue *q;
    weir_error      err;
    static const struct { const char *address, *part; } wrong[] = {
        { NULL, "missing" }, { "", "missing" }, { "work.register", "ends in .register" },
        { "work.unregister", "ends in .unregister" }, { "weir.group.work", "processes of the bus" },
        { "weir.leads.work", "processes of the bus" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_workqueue_config c = { .address = wrong[i].address };
        assert_int_equal(weir_workqueue_open(&q, NULL, &c, &err), WEIR_EINVAL);
        assert_non_null(strstr(err.msg, wrong[i].part));
    }
}

static void failures_go_to_the_sender(void **state)
{
    (void)state;
    rig       r = { 0 };
    processor p = { &r, "p1", true };
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    consume(&r, &p);
    join(&r, "p1");
    ask(&r, "1");
    wait_log(&r, "p1:1,");
    OK(weir_message_fail(r.last, 12, "broken", NULL));
    wait_replies(&r, 1);
    assert_int_equal(r.failure, WEIR_FAILURE_RECIPIENT_FAILURE);
    assert_int_equal(r.code, 12);
    ask(&r, "2");                                   /* and the processor is idle again */
    wait_log(&r, "p1:1,p1:2,");
    weir_workqueue_close(r.q);                      /* what is not done fails */
    r.q = NULL;
    wait_replies(&r, 2);
    assert_int_equal(r.failure, WEIR_FAILURE_ERROR);
    close_queue(&r);
}

static void a_conversation(void **state)
{
    (void)state;
    rig       r = { 0 };
    processor p = { &r, "p1", true };
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    consume(&r, &p);
    join(&r, "p1");
    ask(&r, "\"knock\"");
    wait_log(&r, "p1:\"knock\",");
    weir_expect e = { .fn = replied, .ctx = &r, .mailbox = r.mb, .timeout_ms = PATIENCE_MS };
    OK(weir_message_request_async(r.last, TEXT("\"who?\""), &e, NULL));
    wait_replies(&r, 1);
    assert_string_equal(r.reply, "\"who?\"");
    OK(weir_message_request_async(r.reply_message, TEXT("\"ann\""), &e, NULL));
    wait_replies(&r, 2);                            /* at the processor */
    assert_string_equal(r.reply, "\"ann\"");
    weir_workqueue_stats s;
    weir_workqueue_get_stats(r.q, &s);
    assert_int_equal(s.done, 0);
    OK(weir_message_reply(r.reply_message, TEXT("\"bye\""), NULL));
    wait_replies(&r, 3);                            /* at the sender */
    assert_string_equal(r.reply, "\"bye\"");
    ask(&r, "2");
    wait_log(&r, "p1:\"knock\",p1:2,");
    close_queue(&r);
}

static void a_late_processor(void **state)
{
    (void)state;
    rig           r = { 0 };
    processor     p1 = { &r, "p1", true }, p2 = { &r, "p2", true };
    weir_message *late;
    open_queue(&r, &(weir_workqueue_config){ .address = "work", .process_timeout_ms = 30 });
    consume(&r, &p1);
    consume(&r, &p2);
    join(&r, "p1");
    ask(&r, "1");
    wait_log(&r, "p1:1,");
    late = weir_message_keep(r.last);
    join(&r, "p2");
    wait_log(&r, "p1:1,p2:1,");                     /* after the timeout, at once */
    OK(weir_message_reply(late, TEXT("\"late\""), NULL));
    wait_replies(&r, 1);                            /* the first answer counts */
    assert_string_equal(r.reply, "\"late\"");
    OK(weir_message_reply(r.last, TEXT("\"second\""), NULL));
    ask(&r, "2");                                   /* p1 is idle again, and for longer */
    wait_log(&r, "p1:1,p2:1,p1:2,");
    assert_int_equal(r.replies, 1);
    weir_message_free(late);
    close_queue(&r);
}

static void processors_leave(void **state)
{
    (void)state;
    rig            r = { 0 };
    processor      p1 = { &r, "p1", true }, p2 = { &r, "p2", true };
    weir_consumer *gone;
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    consume(&r, &p1);
    gone = consume(&r, &p2);
    join(&r, "p1");
    ask(&r, "1");
    wait_log(&r, "p1:1,");
    order(&r, "work.unregister", "{\"processor\":\"p1\"}", "{\"status\":\"ok\"}");      /* busy */
    OK(weir_message_reply(r.last, NULL, NULL));
    wait_replies(&r, 1);
    ask(&r, "2");
    weir_consumer_close(gone);                      /* vanished without unregistering */
    join(&r, "p2");
    join(&r, "p1");
    wait_log(&r, "p1:1,p1:2,");
    settle(&r);
    weir_workqueue_stats s;
    weir_workqueue_get_stats(r.q, &s);
    assert_int_equal(s.idle + s.busy, 1);
    close_queue(&r);
}

/* ---- processors that disconnect ---- */

static weir_workqueue_stats stats(rig *r)
{
    weir_workqueue_stats s;
    settle(r);
    weir_workqueue_get_stats(r->q, &s);
    return s;
}

static void idle_processors_disconnect(void **state)
{
    (void)state;
    rig            r = { 0 };
    processor      p1 = { &r, "p1", true }, p2 = { &r, "p2", true };
    weir_consumer *c[2];
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    c[0] = consume(&r, &p1);
    c[1] = consume(&r, &p1);
    consume(&r, &p2);
    join(&r, "p1");
    join(&r, "p1");
    join(&r, "p2");
    weir_consumer_close(c[0]);                      /* the address still has a consumer */
    assert_int_equal(stats(&r).idle, 3);
    weir_consumer_close(c[1]);
    assert_int_equal(stats(&r).idle, 1);
    ask(&r, "1");
    ask(&r, "2");
    wait_log(&r, "p2:1,");
    assert_int_equal(stats(&r).waiting, 1);
    close_queue(&r);
}

/* A client that comes again has the slots that it asks for, and no more, however often it comes. */
static void processors_come_again(void **state)
{
    (void)state;
    rig            r = { 0 };
    processor      p = { &r, "p1", true };
    weir_consumer *c;
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    for (int i = 0; i <= WEIR_WORK_SLOTS; i++) {
        c = consume(&r, &p);
        join(&r, "p1");
        weir_consumer_close(c);
    }
    c = consume(&r, &p);
    join(&r, "p1");
    assert_int_equal(stats(&r).idle, 1);
    ask(&r, "1");
    ask(&r, "2");
    wait_log(&r, "p1:1,");
    assert_int_equal(stats(&r).busy, 1);
    assert_int_equal(stats(&r).waiting, 1);
    close_queue(&r);
}

/* It stops to consume while it has work: it may still answer, and gets no more. */
static void a_busy_processor_stops_consuming(void **state)
{
    (void)state;
    rig            r = { 0 };
    processor      p = { &r, "p1", true };
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    weir_consumer *c = consume(&r, &p);
    join(&r, "p1");
    ask(&r, "1");
    wait_log(&r, "p1:1,");
    weir_consumer_close(c);
    OK(weir_message_reply(r.last, TEXT("\"done\""), NULL));
    wait_replies(&r, 1);
    assert_string_equal(r.reply, "\"done\"");
    assert_int_equal(stats(&r).idle + stats(&r).busy, 0);
    close_queue(&r);
}

/* ---- a queue that is closed while it works ---- */

typedef struct closing {
    weir_workqueue *q;
    atomic_bool     armed, waits;
} closing;

static bool is_closed(weir_workqueue *q)
{
    pthread_mutex_lock(&q->mb->lock);
    bool closed = q->mb->closed;
    pthread_mutex_unlock(&q->mb->lock);
    return closed;
}

/* The reply to the sender wakes its mailbox on the thread that handles the processor's reply: there
 * it waits until the queue is being closed, and then goes on to give the next work to the
 * processor. */
static void wake_sender(void *ctx)
{
    closing *c = ctx;
    if (!atomic_load(&c->armed))
        return;
    atomic_store(&c->waits, true);
    while (!is_closed(c->q))
        usleep(1000);
}

static void *reply_with_nothing(void *ctx)
{
    OK(weir_message_reply(ctx, NULL, NULL));
    return NULL;
}

static void closed_while_it_works(void **state)
{
    (void)state;
    rig           r = { 0 };
    processor     p = { &r, "p1", true };
    closing       c = { 0 };
    weir_mailbox *sender;
    open_queue(&r, &(weir_workqueue_config){ .address = "work" });
    c.q = r.q;
    OK(weir_mailbox_create(&sender, r.bus, &(weir_mailbox_config){ .wake = wake_sender,
                           .ctx = &c }, NULL));
    consume(&r, &p);
    join(&r, "p1");
    OK(weir_bus_request_async(r.bus, "work", TEXT("1"), &(weir_expect){ .fn = replied, .ctx = &r,
                              .mailbox = sender, .timeout_ms = PATIENCE_MS }, NULL));
    wait_log(&r, "p1:1,");
    OK(weir_bus_send(r.bus, "work", TEXT("2"), NULL));
    settle(&r);
    atomic_store(&c.armed, true);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, reply_with_nothing, r.last), 0);
    while (!atomic_load(&c.waits))
        usleep(1000);
    weir_workqueue_close(r.q);
    pthread_join(t, NULL);
    r.q = NULL;
    weir_mailbox_destroy(sender);
    close_queue(&r);
}

/* ---- in a store ---- */

static weir_queue *store;

static void open_store(rig *r, const char *url, int64_t timeout_ms)
{
    OK(weir_open(&store, url, NULL, NULL));
    open_queue(r, &(weir_workqueue_config){ .address = "work", .queue = store,
                                            .process_timeout_ms = timeout_ms });
}

static void close_store(rig *r)
{
    close_queue(r);
    weir_close(store);
}

static uint64_t count(weir_state state)
{
    uint64_t n;
    OK(weir_count(store, state, "work", &n, NULL));
    return n;
}

static void wait_count(weir_state state, uint64_t n)
{
    for (int i = 0; count(state) != n; i++) {
        assert_true(i < PATIENCE_MS);
        usleep(1000);
    }
}

static void jobs_of_a_store(void **state)
{
    (void)state;
    rig       r = { 0 };
    processor p1 = { &r, "p1", false }, accepted = { &r, "accepted", true };
    open_store(&r, "mem:", 0);
    consume(&r, &p1);
    consume(&r, &accepted);
    OK(weir_bus_send(r.bus, "work", TEXT("{\"accepted_reply\":\"accepted\"}"), NULL));
    wait_log(&r, "accepted:{\"status\":\"accepted\"},");
    assert_int_equal(count(WEIR_STATE_INACTIVE), 1);        /* it is a job, and nobody has it */
    join(&r, "p1");
    wait_count(WEIR_STATE_INACTIVE, 0);
    for (int i = 1; i <= 30; i++) {
        ask(&r, "7");
        wait_replies(&r, i);
        assert_string_equal(r.reply, "7");
    }
    wait_count(WEIR_STATE_ANY, 0);                          /* done work is forgotten */
    OK(weir_add(store, &(weir_spec){ .type = "work", .data = "[\"by hand\"]" }, NULL, NULL));
    while (!strstr(r.log, "by hand"))
        assert_true(weir_mailbox_run(r.mb, 1, PATIENCE_MS));
    wait_count(WEIR_STATE_COMPLETE, 1);
    close_store(&r);
}

/* The queue holds a few jobs for its processor, and takes more when these are done. */
static void more_jobs_than_are_held(void **state)
{
    enum { N = 60 };
    (void)state;
    rig       r = { 0 };
    processor p = { &r, "p", false };
    open_store(&r, "mem:", 0);
    consume(&r, &p);
    for (int i = 0; i < N; i++)
        OK(weir_bus_send(r.bus, "work", TEXT("1"), NULL));
    wait_count(WEIR_STATE_INACTIVE, N);
    join(&r, "p");
    while (strlen(r.log) < N * strlen("p:1,"))
        assert_true(weir_mailbox_run(r.mb, 1, PATIENCE_MS));
    wait_count(WEIR_STATE_ANY, 0);
    close_store(&r);
}

static void work_that_fails_in_a_store(void **state)
{
    (void)state;
    rig        r = { 0 };
    processor  p = { &r, "p1", true };
    weir_page *page;
    open_store(&r, "mem:", 0);
    consume(&r, &p);
    join(&r, "p1");
    ask(&r, "1");
    wait_log(&r, "p1:1,");
    OK(weir_message_fail(r.last, 12, "broken", NULL));
    wait_replies(&r, 1);
    assert_int_equal(r.code, 12);
    OK(weir_list(store, &(weir_query){ .state = WEIR_STATE_FAILED }, &page, NULL));
    assert_int_equal(page->n, 1);
    assert_string_equal(page->job[0]->error, "broken");
    ask(&r, "2");                                           /* cancelled by hand */
    wait_log(&r, "p1:1,p1:2,");
    OK(weir_cancel(store, page->job[0]->id + 1, NULL));
    wait_replies(&r, 2);
    assert_int_equal(r.failure, WEIR_FAILURE_RECIPIENT_FAILURE);
    weir_page_free(page);
    size_t big = WEIR_MAX_DATA + 1;
    char  *body = malloc(big + 1);
    memset(body, 'x', big);
    body[0] = body[big - 1] = '"';
    body[big] = '\0';
    order(&r, "work", body, "{\"status\":\"error\",\"message\":\"the body has 1048577 bytes; a "
          "persistent work queue takes at most 1048576\"}");
    free(body);
    close_store(&r);
}

/* Without processors the queue holds no job; when it is closed, its work is there for the next. */
static void work_goes_back_to_the_store(void **state)
{
    (void)state;
    rig            r = { 0 };
    processor      p = { &r, "p1", true };
    weir_consumer *c;
    open_store(&r, "mem:", 0);
    c = consume(&r, &p);
    join(&r, "p1");
    ask(&r, "1");
    ask(&r, "2");
    wait_log(&r, "p1:1,");
    weir_consumer_close(c);
    order(&r, "work.unregister", "{\"processor\":\"p1\"}", "{\"status\":\"ok\"}");
    OK(weir_message_reply(r.last, TEXT("\"one\""), NULL));
    wait_replies(&r, 1);
    wait_count(WEIR_STATE_INACTIVE, 1);
    consume(&r, &p);
    join(&r, "p1");
    wait_log(&r, "p1:1,p1:2,");
    weir_workqueue_close(r.q);
    wait_replies(&r, 2);
    assert_int_equal(r.failure, WEIR_FAILURE_ERROR);
    assert_int_equal(count(WEIR_STATE_INACTIVE), 1);
    OK(weir_workqueue_open(&r.q, r.bus, &(weir_workqueue_config){ .address = "work",
                           .queue = store }, NULL));
    join(&r, "p1");
    wait_log(&r, "p1:1,p1:2,p1:2,");
    OK(weir_message_reply(r.last, NULL, NULL));
    wait_count(WEIR_STATE_ANY, 0);
    close_store(&r);
}

static void a_late_processor_of_a_store(void **state)
{
    (void)state;
    rig           r = { 0 };
    processor     p1 = { &r, "p1", true }, p2 = { &r, "p2", true };
    weir_message *late;
    open_store(&r, "mem:", 30);
    consume(&r, &p1);
    consume(&r, &p2);
    join(&r, "p1");
    ask(&r, "1");
    wait_log(&r, "p1:1,");
    late = weir_message_keep(r.last);
    join(&r, "p2");
    wait_log(&r, "p1:1,p2:1,");
    OK(weir_message_reply(late, TEXT("\"late\""), NULL));
    wait_replies(&r, 1);
    assert_string_equal(r.reply, "\"late\"");
    OK(weir_message_reply(r.last, TEXT("\"second\""), NULL));
    wait_count(WEIR_STATE_ANY, 0);
    weir_message_free(late);
    close_store(&r);
}

/* What a processor receives has the headers of the message that became the job. */
static void headers_are_kept(void **state)
{
    (void)state;
    rig         r = { 0 };
    processor   p = { &r, "p1", true };
    weir_header h[] = { { "k", "v" }, { "\"quoted\"", "\n" }, { "k", "second" } };
    open_store(&r, "mem:", 0);
    consume(&r, &p);
    OK(weir_bus_send(r.bus, "work", &(weir_content){ .body = "1", .headers = h, .n_headers = 3 },
                     NULL));
    join(&r, "p1");
    wait_log(&r, "p1:1,");
    size_t n;
    weir_message_headers(r.last, &n);
    assert_int_equal(n, 2);
    assert_string_equal(weir_message_header(r.last, "k"), "v");
    assert_string_equal(weir_message_header(r.last, "\"quoted\""), "\n");
    static char long_one[WEIR_MAX_VALUES_BYTES + 1];
    memset(long_one, 'x', sizeof long_one - 1);
    weir_content big = { .headers = &(weir_header){ "k", long_one }, .n_headers = 1 };
    weir_reply   reply;
    OK(weir_bus_request(r.bus, "work", &big, PATIENCE_MS, &reply, NULL));
    assert_string_equal(weir_message_body(reply.message, NULL), "{\"status\":\"error\",\"message\":"
                        "\"the headers have 8212 bytes; a persistent work queue takes at most "
                        "8192\"}");
    weir_message_free(reply.message);
    close_store(&r);
}

static void two_queues_of_one_store(void **state)
{
    (void)state;
    rig             r = { 0 };
    processor       p = { &r, "p1", false };
    weir_workqueue *other;
    open_store(&r, "mem:", 0);
    OK(weir_workqueue_open(&other, r.bus, &(weir_workqueue_config){ .address = "elsewhere",
                           .queue = store, .collection = "work" }, NULL));
    consume(&r, &p);
    order(&r, "elsewhere.register", "{\"processor\":\"p1\"}", "{\"status\":\"ok\"}");
    for (int i = 1; i <= 10; i++) {
        ask(&r, "5");                               /* accepted by one, processed by the other */
        wait_replies(&r, i);
        assert_string_equal(r.reply, "5");
    }
    weir_workqueue_close(other);
    close_store(&r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_waits_and_takes_turns), cmocka_unit_test(what_the_queue_answers),
        cmocka_unit_test(failures_go_to_the_sender),  cmocka_unit_test(a_conversation),
        cmocka_unit_test(a_late_processor),           cmocka_unit_test(processors_leave),
        cmocka_unit_test(closed_while_it_works),      cmocka_unit_test(jobs_of_a_store),
        cmocka_unit_test(work_that_fails_in_a_store), cmocka_unit_test(work_goes_back_to_the_store),
        cmocka_unit_test(a_late_processor_of_a_store),
        cmocka_unit_test(more_jobs_than_are_held),
        cmocka_unit_test(two_queues_of_one_store),
        cmocka_unit_test(three_processors_six_messages),
        cmocka_unit_test(late_work_goes_to_the_end),
        cmocka_unit_test(late_work_goes_to_the_head),
        cmocka_unit_test(a_full_queue),
        cmocka_unit_test(headers_are_kept),
        cmocka_unit_test(idle_processors_disconnect),
        cmocka_unit_test(processors_come_again),
        cmocka_unit_test(a_busy_processor_stops_consuming),
    };
    return cmocka_run_group_tests_name("workqueue", tests, NULL, NULL);
}
