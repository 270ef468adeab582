/* test_bus_cluster.c - one bus over several processes, which here are several buses in one process
 * on a carrier that can lose envelopes, repeat them, and cut a process off. */
#include <assert.h>
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
#include <time.h>

#include "bus/cluster.h"
#include "weir/workqueue.h"

enum { NODES = 3, PATIENCE_MS = 60000, JOIN_MS = 20000 };

#define OK(call) assert_int_equal((call), WEIR_OK)
#define TEXT(text) (&(weir_content){ .body = (text) })

/* ---- the carrier: a queue, and a thread that delivers ---- */

typedef struct letter {
    weir_link link;
    int       from, to;                 /* to -1: all others */
    size_t    len;
    char      bytes[];
} letter;

typedef struct net net;
typedef struct node {
    net        *in;
    int         number;
    weir_member member;
    weir_bus   *bus;
    atomic_bool joined, cut;            /* cut: nothing arrives or leaves */
} node;

struct net {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    weir_dlist      letters;
    bool            stop, busy;
    pthread_t       thread;
    bool            silent;
    atomic_int      copies;             /* each letter is delivered so often */
    atomic_int      lose_kind;          /* frames of this kind are lost; 0: none */
    node            node[NODES];
};

static void deliver(net *n, const letter *l)
{
    for (int i = 0; i < NODES; i++) {
        node *to = &n->node[i];
        if (i == l->from || (l->to >= 0 && l->to != i) || !to->joined || to->cut)
            continue;
        for (int k = 0; k < n->copies; k++)
            to->member.arrived(to->member.ctx, l->bytes, l->len);
    }
}

static void *deliver_all(void *ctx)
{
    net *n = ctx;
    pthread_mutex_lock(&n->lock);
    while (!n->stop) {
        letter *l = WEIR_OF(n->letters.first, letter, link);
        if (!l) {
            pthread_cond_wait(&n->changed, &n->lock);
            continue;
        }
        weir__list_remove(&n->letters, &l->link);
        n->busy = true;
        pthread_mutex_unlock(&n->lock);
        deliver(n, l);
        free(l);
        pthread_mutex_lock(&n->lock);
        n->busy = false;
        pthread_cond_broadcast(&n->changed);
    }
    WEIR_EACH(letter, l, &n->letters, link)
        free(l);
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

static weir_code net_post(void *ctx, const weir_envelope *e, weir_error *err)
{
    node *from = ctx;
    net  *n = from->in;
    int   to = -1, others = 0;
    for (int i = 0; i < NODES; i++) {
        if (e->to && n->node[i].joined && !strcmp(n->node[i].member.process, e->to))
            to = i;
        others += n->node[i].joined && i != from->number;
    }
    if (from->cut)
        return weir_fail(err, WEIR_EUNAVAIL, "cut off");
    if ((e->to && to < 0) || e->bytes[3] == n->lose_kind)
        return WEIR_OK;
    letter *l = malloc(sizeof *l + e->len);
    *l = (letter){ .from = from->number, .to = to, .len = e->len };
    memcpy(l->bytes, e->bytes, e->len);
    pthread_mutex_lock(&n->lock);
    assert(from->joined);                   /* nobody uses a carrier after leaving it */
    weir__list_append(&n->letters, &l->link);
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (e->count)
        from->member.reached(from->member.ctx, (size_t)others);
    return WEIR_OK;
}

static weir_code net_join(void *ctx, const weir_member *m, weir_error *err)
{
    node *me = ctx;
    (void)err;
    me->member = *m;
    me->joined = true;
    m->lost(m->ctx);
    return WEIR_OK;
}

/* No function of the member runs any more afterwards. */
static void net_leave(void *ctx)
{
    node *me = ctx;
    net  *n = me->in;
    pthread_mutex_lock(&n->lock);
    while ((n->letters.first || n->busy) && !me->cut)       /* what it posted arrives */
        pthread_cond_wait(&n->changed, &n->lock);
    me->joined = false;
    while (n->busy)
        pthread_cond_wait(&n->changed, &n->lock);
    pthread_mutex_unlock(&n->lock);
}

static void open_node(net *n, int i)
{
    node        *me = &n->node[i];
    weir_carrier carrier = { .join = net_join, .leave = net_leave, .post = net_post, .ctx = me,
                             .silent_ends = n->silent };
    weir_error   err;
    me->in = n;
    me->number = i;
    me->cut = false;
    OK(weir_bus_create(&me->bus, &err));
    OK(weir__cluster_join(me->bus, &carrier, JOIN_MS, &err));
}

static void close_node(net *n, int i)
{
    weir_bus_close(n->node[i].bus);
    n->node[i].bus = NULL;
}

static net *start(bool silent)
{
    net *n = calloc(1, sizeof *n);
    pthread_mutex_init(&n->lock, NULL);
    weir__cond_init(&n->changed);
    n->copies = 1;
    n->silent = silent;
    pthread_create(&n->thread, NULL, deliver_all, n);
    for (int i = 0; i < NODES; i++)
        open_node(n, i);
    return n;
}

static int set_up(void **state)
{
    *state = start(false);
    return 0;
}

static int set_up_silent(void **state)
{
    *state = start(true);
    return 0;
}

static int tear_down(void **state)
{
    net *n = *state;
    for (int i = 0; i < NODES; i++)
        if (n->node[i].bus)
            close_node(n, i);
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
    return 0;
}

/* ---- helpers ---- */

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Consumers of the address in other processes, as node i knows. */
static size_t count(net *n, int i, const char *address)
{
    weir_transport *t = n->node[i].bus->transport;
    return t->ops->count(t, address, false);
}

static void wait_count(net *n, int i, const char *address, size_t want)
{
    int64_t until = weir__monotonic_ms() + PATIENCE_MS;
    while (count(n, i, address) != want && weir__monotonic_ms() < until)
        pause_a_little();
    assert_int_equal(count(n, i, address), want);
}

static atomic_int received[10];

static void count_message(weir_message *m, void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    if (weir_message_expects_reply(m))
        weir_message_reply(m, TEXT("\"counted\""), NULL);
}

static void echo(weir_message *m, void *ctx)
{
    weir_content c = weir__content_of(m);
    (void)ctx;
    weir_message_reply(m, &c, NULL);
}

static void refuse(weir_message *m, void *ctx)
{
    (void)ctx;
    weir_message_fail(m, 42, "no, thanks", NULL);
}

static void keep_it(weir_message *m, void *ctx)
{
    *(weir_message *_Atomic *)ctx = weir_message_keep(m);
}

/* "2" is the reply; to the reply to that, "4". */
static void then_four(const weir_reply *reply, void *ctx)
{
    (void)ctx;
    if (reply->message) {
        assert_string_equal(weir_message_body(reply->message, NULL), "3");
        weir_message_reply(reply->message, TEXT("4"), NULL);
    }
}

static void talk(weir_message *m, void *ctx)
{
    (void)ctx;
    assert_string_equal(weir_message_body(m, NULL), "1");
    OK(weir_message_request_async(m, TEXT("2"), &(weir_expect){ .fn = then_four }, NULL));
}

static weir_consumer *consume(net *n, int i, const char *address, weir_message_fn *fn, void *ctx)
{
    weir_consumer *c;
    OK(weir_bus_consume(&c, n->node[i].bus, &(weir_consumer_config){ .address = address,
                                                                     .handler = fn, .ctx = ctx },
                        NULL));
    return c;
}

static void wait_received(int i, int want)
{
    int64_t until = weir__monotonic_ms() + PATIENCE_MS;
    while (atomic_load(&received[i]) < want && weir__monotonic_ms() < until)
        pause_a_little();
    assert_int_equal(atomic_load(&received[i]), want);
}

static weir_code ask(net *n, int i, const char *address, const char *body, int64_t timeout_ms,
                     weir_reply *out)
{
    return weir_bus_request(n->node[i].bus, address, TEXT(body), timeout_ms, out, NULL);
}

static void forget_received(void)
{
    for (int i = 0; i < 10; i++)
        atomic_store(&received[i], 0);
}

/* ---- tests ---- */

static void buses_are_one(void **state)
{
    net           *n = *state;
    weir_consumer *c[6];
    weir_reply     r;
    forget_received();
    for (int i = 0; i < 3; i++)
        c[i] = consume(n, i, "news", count_message, &received[i]);
    c[3] = consume(n, 1, "news", count_message, &received[1]);
    c[4] = consume(n, 2, "echo", echo, NULL);
    c[5] = consume(n, 2, "refuse", refuse, NULL);
    wait_count(n, 0, "news", 3);
    wait_count(n, 0, "echo", 1);
    wait_count(n, 1, "refuse", 1);
    for (int i = 0; i < 8; i++)
        OK(weir_bus_send(n->node[0].bus, "news", TEXT("1"), NULL));
    wait_received(0, 2);
    wait_received(1, 4);
    wait_received(2, 2);
    OK(weir_bus_publish(n->node[0].bus, "news", TEXT("1"), NULL));
    wait_received(0, 3);
    wait_received(1, 6);
    wait_received(2, 3);
    OK(weir_bus_publish(n->node[0].bus, "news", &(weir_content){ .local = true }, NULL));
    wait_received(0, 4);
    weir_header  h[] = { { "k", "v" }, { "l", "w" } };
    weir_content with = { .body = "[1,\"\\u00e4\"]", .headers = h, .n_headers = 2 };
    OK(weir_bus_request(n->node[0].bus, "echo", &with, 0, &r, NULL));
    assert_string_equal(weir_message_body(r.message, NULL), with.body);
    assert_string_equal(weir_message_header(r.message, "l"), "w");
    weir_message_free(r.message);
    assert_int_equal(ask(n, 1, "refuse", "1", 0, &r), WEIR_EREPLY);
    assert_int_equal(r.code, 42);
    assert_string_equal(r.text, "no, thanks");
    assert_int_equal(ask(n, 1, "nobody", "1", 0, &r), WEIR_ENOENT);
    assert_int_equal(atomic_load(&received[1]), 6);
    for (int i = 0; i < 6; i++)
        weir_consumer_close(c[i]);
    wait_count(n, 0, "news", 0);
    assert_int_equal(weir_bus_send(n->node[0].bus, "news", NULL, NULL), WEIR_ENOENT);
}

static void conversations_cross(void **state)
{
    net           *n = *state;
    weir_consumer *c = consume(n, 1, "talk", talk, NULL);
    weir_reply     two, four;
    wait_count(n, 0, "talk", 1);
    OK(ask(n, 0, "talk", "1", 0, &two));
    assert_string_equal(weir_message_body(two.message, NULL), "2");
    OK(weir_message_request(two.message, TEXT("3"), 0, &four, NULL));
    assert_string_equal(weir_message_body(four.message, NULL), "4");
    assert_false(weir_message_expects_reply(four.message));
    weir_message_free(two.message);
    weir_message_free(four.message);
    weir_consumer_close(c);
}

static void a_timeout_is_the_requesters(void **state)
{
    net                   *n = *state;
    weir_message *_Atomic  kept = NULL;
    weir_consumer         *c = consume(n, 1, "slow", keep_it, (void *)&kept);
    weir_reply             r;
    wait_count(n, 0, "slow", 1);
    assert_int_equal(ask(n, 0, "slow", "1", 50, &r), WEIR_ETIMEOUT);
    assert_non_null(strstr(r.text, "Timed out after waiting 50(ms)"));
    while (!kept)
        pause_a_little();
    weir_message_reply(kept, TEXT("1"), NULL);          /* late: nobody minds */
    weir_message_free(kept);
    weir_consumer_close(c);
}

/* What is in a frame of one kind is not delivered: the others do not learn of a change. */
static void a_consumer_that_is_gone_is_replaced(void **state)
{
    net           *n = *state;
    weir_reply     r;
    forget_received();
    weir_consumer *c[] = { consume(n, 1, "work", count_message, &received[1]),
                           consume(n, 2, "work", count_message, &received[2]) };
    wait_count(n, 0, "work", 2);
    wait_count(n, 1, "work", 1);
    n->lose_kind = FRAME_CHANGES;
    weir_consumer_close(c[0]);
    for (int i = 0; i < 4; i++) {
        OK(weir_bus_send(n->node[0].bus, "work", TEXT("1"), NULL));     /* half of them go to 1 */
        wait_received(2, i + 1);
    }
    assert_int_equal(count(n, 0, "work"), 2);
    for (int i = 0; i < 4; i++) {
        OK(ask(n, 0, "work", "1", PATIENCE_MS, &r));
        weir_message_free(r.message);
    }
    assert_int_equal(atomic_load(&received[2]), 8);
    wait_count(n, 0, "work", 1);                        /* it was corrected */
    weir_consumer_close(c[1]);
    assert_int_equal(ask(n, 0, "work", "1", PATIENCE_MS, &r), WEIR_ENOENT);
    n->lose_kind = 0;
}

static void *ask_slow(void *ctx)
{
    weir_reply r;
    ask(ctx, 0, "slow", "1", PATIENCE_MS, &r);
    return (void *)(intptr_t)r.error;
}

static void a_process_that_ends_fails_its_requests(void **state)
{
    net                  *n = *state;
    weir_message *_Atomic kept = NULL;
    weir_consumer        *c = consume(n, 1, "slow", keep_it, (void *)&kept);
    weir_reply            r = { 0 };
    wait_count(n, 0, "slow", 1);
    wait_count(n, 2, "slow", 1);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, ask_slow, n), 0);
    while (!kept)
        pause_a_little();
    for (int i = 0; i < NODES; i += 2)
        n->node[i].member.gone(n->node[i].member.ctx, n->node[1].member.process);
    void *outcome;
    pthread_join(t, &outcome);
    assert_int_equal((intptr_t)outcome, WEIR_ELOST);
    assert_int_equal(count(n, 0, "slow"), 0);
    assert_int_equal(count(n, 2, "slow"), 0);
    assert_int_equal(ask(n, 0, "slow", "1", 0, &r), WEIR_ENOENT);
    weir_message_free(kept);
    weir_consumer_close(c);
}

/* Closing a bus says so; a new process knows all addresses when it has joined. */
static void processes_come_and_go(void **state)
{
    net           *n = *state;
    weir_consumer *c = consume(n, 0, "here", echo, NULL);
    weir_consumer *d = consume(n, 1, "there", echo, NULL);
    wait_count(n, 0, "there", 1);
    wait_count(n, 1, "here", 1);
    for (int round = 0; round < 20; round++) {
        close_node(n, 2);
        open_node(n, 2);
        assert_int_equal(count(n, 2, "here"), 1);
        assert_int_equal(count(n, 2, "there"), 1);
        weir_consumer *e = consume(n, 2, "new", echo, NULL);
        wait_count(n, 0, "new", 1);
        weir_consumer_close(e);
        wait_count(n, 0, "new", 0);
    }
    weir_consumer_close(c);
    weir_consumer_close(d);
}

static void many_addresses_come_in_parts(void **state)
{
    enum { MANY = 2000 };
    net           *n = *state;
    weir_consumer *c[MANY];
    weir_mailbox  *mb;
    char           name[WEIR_MAX_BUS_ADDRESS + 1];
    close_node(n, 2);
    OK(weir_mailbox_create(&mb, n->node[0].bus, NULL, NULL));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%0200d", i);
        OK(weir_bus_consume(&c[i], n->node[0].bus, &(weir_consumer_config){ .address = name,
                            .handler = echo, .mailbox = mb }, NULL));
    }
    open_node(n, 2);
    weir_bus_addresses *list;
    OK(weir_bus_list(n->node[2].bus, &list, NULL));
    assert_int_equal(list->n, MANY);
    assert_string_equal(list->address[MANY - 1].address, name);
    assert_int_equal(list->address[0].elsewhere, 1);
    weir_bus_addresses_free(list);
    wait_count(n, 1, name, 1);
    for (int i = 0; i < MANY; i++)
        weir_consumer_close(c[i]);
    wait_count(n, 1, name, 0);
    wait_count(n, 2, name, 0);
    weir_mailbox_destroy(mb);
}

/* Every envelope arrives three times: a request has one outcome all the same. */
static void repetitions_do_no_harm(void **state)
{
    net           *n = *state;
    weir_reply     r;
    weir_consumer *c = consume(n, 1, "echo", echo, NULL);
    wait_count(n, 0, "echo", 1);
    n->copies = 3;
    for (int i = 0; i < 100; i++) {
        OK(ask(n, 0, "echo", "\"x\"", PATIENCE_MS, &r));
        weir_message_free(r.message);
    }
    weir_consumer *d = consume(n, 1, "more", echo, NULL);
    wait_count(n, 0, "more", 1);
    weir_consumer_close(d);
    wait_count(n, 0, "more", 0);
    weir_consumer_close(c);
}

/* The connection of all is new: everybody announces itself, and what changed meanwhile is known. */
static void a_new_connection_is_enough(void **state)
{
    net *n = *state;
    n->lose_kind = FRAME_CHANGES;
    weir_consumer *c = consume(n, 1, "echo", echo, NULL);
    assert_int_equal(count(n, 0, "echo"), 0);
    for (int i = 0; i < NODES; i++)
        n->node[i].member.lost(n->node[i].member.ctx);
    wait_count(n, 0, "echo", 1);
    wait_count(n, 2, "echo", 1);
    n->lose_kind = 0;
    weir_consumer_close(c);
    wait_count(n, 0, "echo", 0);
}

/* Nobody says that the process has ended: its silence does. */
static void silence_is_an_end(void **state)
{
    net           *n = *state;
    weir_reply     r;
    weir_consumer *c = consume(n, 1, "echo", echo, NULL);
    wait_count(n, 0, "echo", 1);
    OK(ask(n, 0, "echo", "1", 0, &r));
    weir_message_free(r.message);
    n->node[1].cut = true;
    assert_int_equal(ask(n, 0, "echo", "1", PATIENCE_MS, &r), WEIR_ELOST);
    assert_int_equal(r.failure, WEIR_FAILURE_ERROR);
    wait_count(n, 0, "echo", 0);
    n->node[1].cut = false;                             /* it was only cut off */
    wait_count(n, 0, "echo", 1);
    OK(ask(n, 0, "echo", "1", 0, &r));
    weir_message_free(r.message);
    weir_consumer_close(c);
}

static void a_missed_change_is_noticed(void **state)
{
    net *n = *state;
    n->lose_kind = FRAME_CHANGES;
    weir_consumer *c = consume(n, 1, "echo", echo, NULL);
    wait_count(n, 0, "echo", 1);
    n->lose_kind = 0;
    weir_consumer_close(c);
    wait_count(n, 0, "echo", 0);
}

static void big_bodies_cross(void **state)
{
    net        *n = *state;
    size_t      len = WEIR_MAX_BUS_BODY;
    char       *body = malloc(len + 1);
    weir_reply  r;
    memset(body, 'x', len);
    body[0] = body[len - 1] = '"';
    body[len] = '\0';
    weir_consumer *c = consume(n, 1, "echo", echo, NULL);
    wait_count(n, 0, "echo", 1);
    OK(ask(n, 0, "echo", body, PATIENCE_MS, &r));
    assert_int_equal(strlen(weir_message_body(r.message, NULL)), len);
    weir_message_free(r.message);
    weir_consumer_close(c);
    free(body);
}

static bool stands_by(weir_workqueue *q)
{
    weir_workqueue_stats s;
    weir_workqueue_get_stats(q, &s);
    return s.standby;
}

/* Wait until `leader` alone leads, with one idle processor; NULL: any of the two. */
static void wait_leader(weir_workqueue *const q[2], const weir_workqueue *leader)
{
    int64_t until = weir__monotonic_ms() + PATIENCE_MS;
    for (; weir__monotonic_ms() < until; pause_a_little()) {
        weir_workqueue_stats s[2];
        for (int i = 0; i < 2; i++)
            weir_workqueue_get_stats(q[i], &s[i]);
        int i = s[0].standby;
        if (s[0].standby != s[1].standby && (!leader || q[i] == leader) && s[i].idle == 1 &&
            !s[i].busy && !s[!i].idle)
            return;
    }
    fail_msg("not one leader with one processor");
}

static void work(net *n)
{
    weir_reply r;
    OK(ask(n, 2, "work", "1", PATIENCE_MS, &r));
    assert_string_equal(weir_message_body(r.message, NULL), "\"counted\"");
    weir_message_free(r.message);
}

/* Of two work queues one serves the address; when it cannot be reached the other one, with the
 * processors; and when both can be reached again, one yields. */
static void one_work_queue_leads(void **state)
{
    net            *n = *state;
    weir_workqueue *q[2];
    weir_reply      r;
    forget_received();
    for (int i = 0; i < 2; i++) {
        OK(weir_workqueue_open(&q[i], n->node[i].bus,
                               &(weir_workqueue_config){ .address = "work" }, NULL));
        assert_int_equal(stands_by(q[i]), i);
    }
    weir_consumer *p = consume(n, 2, "p", count_message, &received[2]);
    wait_count(n, 2, "work", 1);
    wait_count(n, 2, "work.register", 1);
    wait_count(n, 0, "p", 1);
    wait_count(n, 1, "p", 1);
    OK(ask(n, 2, "work.register", "{\"processor\":\"p\"}", PATIENCE_MS, &r));
    weir_message_free(r.message);
    work(n);
    wait_leader(q, q[0]);
    n->node[0].cut = true;
    weir_workqueue_stats s = { .standby = true };
    for (; s.standby; weir_workqueue_get_stats(q[1], &s))
        pause_a_little();
    wait_count(n, 2, "work", 1);
    work(n);
    n->node[0].cut = false;
    wait_leader(q, NULL);
    wait_count(n, 2, "work", 1);
    work(n);
    assert_int_equal(atomic_load(&received[2]), 3);
    wait_leader(q, NULL);
    for (int i = 0; i < 2; i++)
        weir_workqueue_close(q[i]);
    weir_consumer_close(p);
}

/* Two queues, of which the first leads; node 2 knows the addresses. */
static void open_queues(net *n, weir_workqueue *q[2])
{
    for (int i = 0; i < 2; i++)
        OK(weir_workqueue_open(&q[i], n->node[i].bus,
                               &(weir_workqueue_config){ .address = "work" }, NULL));
    wait_count(n, 2, "work.register", 1);
    wait_count(n, 1, "work.register", 1);
}

static void join_work(net *n, int i)
{
    weir_reply r;
    OK(ask(n, i, "work.register", "{\"processor\":\"p\"}", PATIENCE_MS, &r));
    assert_string_equal(weir_message_body(r.message, NULL), "{\"status\":\"ok\"}");
    weir_message_free(r.message);
}

static void wait_idle(weir_workqueue *q, size_t idle)
{
    weir_workqueue_stats s;
    int64_t until = weir__monotonic_ms() + PATIENCE_MS;
    do {
        pause_a_little();
        weir_workqueue_get_stats(q, &s);
    } while ((s.standby || s.idle != idle) && weir__monotonic_ms() < until);
    assert_false(s.standby);
    assert_int_equal(s.idle, idle);
}

/* Processors in other processes: those that are closed are gone, and one that is closed, consumes
 * again and registers again has one slot, although the other process hears of all that at once. */
static void processors_elsewhere_come_again(void **state)
{
    net            *n = *state;
    weir_workqueue *q[2];
    open_queues(n, q);
    weir_consumer *p = consume(n, 2, "p", count_message, &received[2]);
    join_work(n, 2);
    wait_idle(q[0], 1);
    for (int i = 0; i < 20; i++) {
        weir_consumer_close(p);
        p = consume(n, 2, "p", count_message, &received[2]);
        join_work(n, 2);
        wait_idle(q[0], 1);
    }
    weir_consumer_close(p);
    wait_idle(q[0], 0);
    for (int i = 0; i < 2; i++)
        weir_workqueue_close(q[i]);
}

/* The processor was a client of the leader that is killed: it is one of no more than one slot when
 * it comes again elsewhere. */
static void processors_of_a_lost_leader(void **state)
{
    net            *n = *state;
    weir_workqueue *q[2];
    open_queues(n, q);
    weir_consumer *old = consume(n, 0, "p", count_message, &received[0]);
    wait_count(n, 1, "p", 1);
    join_work(n, 0);
    wait_idle(q[0], 1);
    n->node[0].cut = true;
    wait_idle(q[1], 0);
    weir_consumer *p = consume(n, 2, "p", count_message, &received[2]);
    wait_count(n, 2, "work.register", 1);
    join_work(n, 2);
    wait_idle(q[1], 1);
    weir_workqueue_close(q[0]);
    weir_consumer_close(old);
    weir_workqueue_close(q[1]);
    weir_consumer_close(p);
}

/* The process of a processor is cut off: its slot is not used meanwhile, and is there when it is
 * back. */
static void processors_that_are_cut_off(void **state)
{
    net            *n = *state;
    weir_workqueue *q;
    OK(weir_workqueue_open(&q, n->node[0].bus, &(weir_workqueue_config){ .address = "work" },
                           NULL));
    wait_count(n, 2, "work.register", 1);
    weir_consumer *p = consume(n, 2, "p", count_message, &received[2]);
    join_work(n, 2);
    wait_idle(q, 1);
    n->node[2].cut = true;
    wait_idle(q, 0);
    n->node[2].cut = false;
    wait_idle(q, 1);
    weir_workqueue_close(q);
    weir_consumer_close(p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define S(name) cmocka_unit_test_setup_teardown(name, set_up_silent, tear_down)
int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(buses_are_one), T(conversations_cross), T(a_timeout_is_the_requesters),
        T(a_consumer_that_is_gone_is_replaced), T(a_process_that_ends_fails_its_requests),
        T(processes_come_and_go), T(many_addresses_come_in_parts), T(repetitions_do_no_harm),
        T(a_new_connection_is_enough), T(big_bodies_cross), S(silence_is_an_end),
        S(a_missed_change_is_noticed), S(one_work_queue_leads),
        T(processors_elsewhere_come_again), S(processors_of_a_lost_leader),
        S(processors_that_are_cut_off),
    };
    return cmocka_run_group_tests_name("bus_cluster", tests, NULL, NULL);
}
