/* test_redis_link.c - what a link makes of the answers of one server, and of none: against a server
 * that says what the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "store/redis/link/net.h"
#include "support/quiet_subscriber.h"
#include "support/redis_fake.h"

/* Nothing is late in most tests, however slow the machine is; those that wait for it take the short
 * one. */
enum { TIMEOUT_MS = 20000, SHORT_MS = 1000, MAX_CALLS = 8 };

typedef struct fixture {
    fake        *server, *other;
    redis_url    url;
    redis_link  *link;
    redis_library library;
    redis_call   call[MAX_CALLS];
    size_t       n_calls;
    char         heard[4096];
} fixture;

static void set_place(redis_place *p, const fake *server)
{
    strcpy(p->host, "127.0.0.1");
    p->port = fake_port(server);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    f->server = fake_start();
    f->url = (redis_url){ .way = REDIS_ONE, .n_places = 1, .timeout_ms = TIMEOUT_MS };
    set_place(&f->url.place[0], f->server);
    f->library = (redis_library){ .label = "test", .source = "return 1", .len = 8 };
    weir__library_init(&f->library);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    weir__link_close(f->link);
    for (size_t i = 0; i < MAX_CALLS; i++)
        weir__call_fini(&f->call[i]);
    fake_stop(f->server);
    fake_stop(f->other);
    free(f);
    return 0;
}

static void open_link(fixture *f)
{
    weir_error err = { 0 };
    if (weir__link_open(&f->link, &f->url, &err))
        fail_msg("open: %s", err.msg);
}

/* Open with the short timeout. */
static void open_hasty(fixture *f)
{
    f->url.timeout_ms = SHORT_MS;
    open_link(f);
}

/* ---- calls ---- */

static redis_call *new_call(fixture *f, const char *name, bool repeatable)
{
    redis_call *c = &f->call[f->n_calls++ % MAX_CALLS];
    weir__call_reset(c);
    c->repeatable = repeatable;
    c->library = NULL;
    c->slot = 0;
    weir__resp_array(&c->command, 1);
    weir__resp_text(&c->command, name);
    return c;
}

static redis_call *run(fixture *f, redis_call *c)
{
    if (c->reply)
        freeReplyObject(c->reply);      /* it is sent again */
    c->reply = NULL;
    weir__link_send(f->link, c);
    weir__link_wait(f->link, c);
    return c;
}

static void must_be(const redis_call *c, weir_code code)
{
    if (c->err.code != code)
        fail_msg("%s (%s), not %s", weir_code_name(c->err.code), c->err.msg, weir_code_name(code));
    assert_true(!c->reply == !!code);
    assert_true(!c->err.msg[0] == !code);
}

static void must_say(const redis_call *c, const char *text)
{
    must_be(c, WEIR_OK);
    assert_string_equal(c->reply->str, text);
}

#define HEARD(f, text) assert_string_equal(fake_heard((f)->server, (f)->heard, 4096), text)

static void answers_come_to_their_calls(void **state)
{
    fixture *f = *state;
    open_link(f);
    FAKE_ANSWERS(f->server, "+a\r\n", "$2\r\nb1\r\n", ":7\r\n", "*2\r\n:1\r\n$-1\r\n", "$-1\r\n");
    redis_call *c[5];
    for (int i = 0; i < 5; i++)
        c[i] = new_call(f, (char[]){ (char)('A' + i), '\0' }, i % 2);
    weir__link_run(f->link, c, 5);
    must_say(c[0], "a");
    must_say(c[1], "b1");
    assert_int_equal(c[2]->reply->integer, 7);
    assert_int_equal(c[3]->reply->elements, 2);
    assert_int_equal(c[4]->reply->type, REDIS_REPLY_NIL);
    HEARD(f, "A;B;C;D;E;");
    assert_int_equal(fake_connections(f->server), 1);
}

/* Sent one by one, waited for in another order. */
static void order_of_waiting_does_not_matter(void **state)
{
    fixture *f = *state;
    open_link(f);
    FAKE_ANSWERS(f->server, "+a\r\n", "+b\r\n", "+c\r\n");
    redis_call *a = new_call(f, "A", false), *b = new_call(f, "B", false),
               *c = new_call(f, "C", false);
    weir__link_send(f->link, a);
    weir__link_send(f->link, b);
    weir__link_wait(f->link, b);
    must_say(b, "b");
    weir__link_send(f->link, c);
    weir__link_wait(f->link, c);
    weir__link_wait(f->link, a);
    must_say(a, "a");
    must_say(c, "c");
}

static void ask_answers_or_says_why(void **state)
{
    fixture   *f = *state;
    weir_error err = { 0 };
    open_link(f);
    FAKE_ANSWERS(f->server, "+x\r\n", "-ERR no such thing\r\n");
    const char *const argv[] = { "GET", "key" };
    redisReply *r = weir__link_ask(f->link, 0, &err, 2, argv, (size_t[]){ 3, 2 });
    assert_non_null(r);
    assert_string_equal(r->str, "x");
    freeReplyObject(r);
    HEARD(f, "GET ke;");
    assert_null(weir__link_ask(f->link, 0, &err, 2, argv, NULL));
    assert_int_equal(err.code, WEIR_EUNAVAIL);
    assert_non_null(strstr(err.msg, ": ERR no such thing"));
}

/* ---- refused ---- */

static void what_passes_is_waited_out(void **state)
{
    fixture *f = *state;
    open_link(f);
    static const char *const errors[] = {
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-BUSY Redis is busy running a script\r\n",
        "-UNKILLABLE Sorry the script already executed write commands\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n",
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        FAKE_ANSWERS(f->server, errors[i], errors[i], "+done\r\n");
        must_say(run(f, new_call(f, "A", false)), "done");
        HEARD(f, "A;A;A;");
    }
    assert_int_equal(fake_connections(f->server), 1);
}

/* A server that is no longer the primary, or wants a password, gets a new handshake. */
static void what_needs_a_new_connection_gets_one(void **state)
{
    fixture *f = *state;
    open_link(f);
    static const char *const errors[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "-MASTERDOWN Link with MASTER is down\r\n",
        "-NOAUTH Authentication required.\r\n",
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        FAKE_ANSWERS(f->server, errors[i], "+b\r\n", "+done\r\n");
        redis_call *a = new_call(f, "A", false), *b = new_call(f, "B", false);
        b->slot = 1;
        weir__link_run(f->link, (redis_call *[]){ a, b }, 2);
        must_say(a, "done");
        must_say(b, "b");       /* was on the old connection, which was closed after it */
        assert_int_equal(fake_connections(f->server), (int)i + 2);
    }
}

static void what_does_not_pass_is_said(void **state)
{
    fixture *f = *state;
    open_link(f);
    static const struct {
        const char *answer;
        weir_code   code, in_script;
    } cases[] = {
        { "-OOM command not allowed when used memory > 'maxmemory'.\r\n", WEIR_EFULL, WEIR_EFULL },
        { "-MISCONF Errors writing to the AOF file: No space left on device\r\n", WEIR_EFULL,
          WEIR_EFULL },
        { "-NOPERM this user has no permissions to run\r\n", WEIR_EREADONLY, WEIR_EREADONLY },
        { "-ERR The user executing the script can't run this command or subcommand\r\n",
          WEIR_EREADONLY, WEIR_EREADONLY },
        { "-WRONGTYPE Operation against a key\r\n", WEIR_ECORRUPT, WEIR_ECORRUPT },
        { "-ERR user_script:12: nonsense\r\n", WEIR_EUNAVAIL, WEIR_ECORRUPT },
        { "-OOMPH\r\n", WEIR_EUNAVAIL, WEIR_ECORRUPT },
        { "-MOVED 3999 127.0.0.1:6381\r\n", WEIR_EUNAVAIL, WEIR_EUNAVAIL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FAKE_ANSWERS(f->server, cases[i].answer, cases[i].answer, "+next\r\n");
        must_be(run(f, new_call(f, "A", true)), cases[i].code);
        redis_call *c = new_call(f, "B", true);
        c->library = &f->library;
        must_be(run(f, c), cases[i].in_script);
        char said[80];
        snprintf(said, sizeof said, ": %.*s", (int)strlen(cases[i].answer) - 3,
                 cases[i].answer + 1);
        if (!strstr(c->err.msg, said))
            fail_msg("\"%s\" is not in \"%s\"", said, c->err.msg);
        must_say(run(f, new_call(f, "C", true)), "next");
        HEARD(f, "A;B;C;");
    }
}

static void what_never_passes_ends_with_the_timeout(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    const char *answers[64];
    for (size_t i = 0; i < 64; i++)
        answers[i] = "-LOADING later\r\n";
    fake_answers(f->server, 64, answers);
    int64_t     begun = weir__monotonic_ms();
    redis_call *c = run(f, new_call(f, "A", false));
    must_be(c, WEIR_EUNAVAIL);
    assert_true(weir__monotonic_ms() - begun >= SHORT_MS);
    assert_true(weir__monotonic_ms() - begun < 10 * SHORT_MS);
    char msg[120];
    snprintf(msg, sizeof msg, "redis 127.0.0.1:%d: LOADING later; gave up after 1000 ms",
             fake_port(f->server));
    assert_string_equal(c->err.msg, msg);
    /* 10, 20, 40 ... ms apart: not more than that */
    fake_heard(f->server, f->heard, sizeof f->heard);
    assert_in_range(strlen(f->heard), 2 * 3, 2 * 8);
}

/* ---- functions ---- */

#define MISSING "-ERR Function not found\r\n"
/* as the fake cuts it */
#define LOAD    "FUNCTION LOAD #!lua name=weir_test_e0e1f9fabfc9\nlocal ;"

static void functions_are_loaded_when_needed(void **state)
{
    fixture *f = *state;
    open_link(f);
    redis_call *a = new_call(f, "A", false), *b = new_call(f, "B", false);
    a->library = b->library = &f->library;
    weir__link_run(f->link, (redis_call *[]){ a, b }, 2);
    HEARD(f, "A;B;");

    /* The second is told that it is there already, and goes on. */
    FAKE_ANSWERS(f->server, MISSING, MISSING, "+a\r\n", "+b\r\n");
    a = new_call(f, "A", false);
    b = new_call(f, "B", false);
    a->library = b->library = &f->library;
    weir__link_run(f->link, (redis_call *[]){ a, b }, 2);
    must_say(a, "a");
    must_say(b, "b");
    HEARD(f, "A;B;" LOAD "A;" LOAD "B;");
}

static void a_library_that_is_there_is_fine(void **state)
{
    fixture *f = *state;
    open_link(f);
    fake_say(f->server, "FUNCTION", "-ERR Library 'weir_test_e0e1f9fabfc9' already exists\r\n");
    FAKE_ANSWERS(f->server, MISSING, "+a\r\n");
    redis_call *c = new_call(f, "A", true);
    c->library = &f->library;
    must_say(run(f, c), "a");
    HEARD(f, "A;" LOAD "A;");
    fake_say(f->server, "FUNCTION", NULL);
}

static void a_library_that_is_refused_is_not_tried_again(void **state)
{
    fixture *f = *state;
    open_link(f);
    fake_say(f->server, "FUNCTION", "-NOPERM this user has no permissions to run 'function'\r\n");
    FAKE_ANSWERS(f->server, MISSING, MISSING);
    redis_call *c = new_call(f, "A", true);
    c->library = &f->library;
    must_be(run(f, c), WEIR_EREADONLY);
    assert_non_null(strstr(c->err.msg, ": functions weir_test_e0e1f9fabfc9: NOPERM this user"));
    HEARD(f, "A;" LOAD "A;");

    fake_say(f->server, "FUNCTION", NULL);
    fake_close_all(f->server);
    must_be(run(f, c), WEIR_OK);
}

/* ---- lost ---- */

static void cut_before_or_in_the_answer(void **state)
{
    fixture *f = *state;
    open_link(f);
    static const char *const cuts[] = { "!cut", "!half $100\r\nhalf", "!half *2\r\n:1\r\n" };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        FAKE_ANSWERS(f->server, cuts[i], "+again\r\n");
        must_say(run(f, new_call(f, "A", true)), "again");
        FAKE_ANSWERS(f->server, cuts[i], "+next\r\n");
        redis_call *c = run(f, new_call(f, "B", false));
        must_be(c, WEIR_EUNKNOWN);
        assert_non_null(strstr(c->err.msg, "connection lost: "));
        must_say(run(f, new_call(f, "C", false)), "next");
    }
}

/* The one before it is killed, so that nothing of it is carried out any more. */
static void the_old_connection_is_killed_first(void **state)
{
    fixture *f = *state;
    open_link(f);
    FAKE_ANSWERS(f->server, "!cut", "+again\r\n");
    must_say(run(f, new_call(f, "A", true)), "again");
    HEARD(f, "A;CLIENT KILL ID 1;A;");

    /* but not that of another process, whose number it may be by now */
    fake_say(f->server, "INFO", "=run_id:1123456789012345678901234567890123456789\r\n"
                                "role:master\r\n");
    FAKE_ANSWERS(f->server, "!cut", "+again\r\n");
    must_say(run(f, new_call(f, "B", true)), "again");
    HEARD(f, "B;B;");
}

/* Refused the second time is not refused: the first time may have done it. */
static void perhaps_done_stays_perhaps_done(void **state)
{
    fixture *f = *state;
    open_link(f);
    static const char *const errors[] = { "-OOM no memory\r\n", "-NOPERM not you\r\n",
                                          "-ERR no\r\n" };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        FAKE_ANSWERS(f->server, "!cut", errors[i]);
        must_be(run(f, new_call(f, "A", true)), WEIR_EUNKNOWN);
    }
    FAKE_ANSWERS(f->server, "!cut", "-WRONGTYPE not a hash\r\n");
    must_be(run(f, new_call(f, "A", true)), WEIR_ECORRUPT);
}

static void garbage_ends_the_connection(void **state)
{
    fixture *f = *state;
    open_link(f);
    FAKE_ANSWERS(f->server, "HTTP/1.1 400 Bad Request\r\n\r\n", "+fine\r\n");
    must_say(run(f, new_call(f, "A", true)), "fine");
    FAKE_ANSWERS(f->server, "$-7\r\n", "+fine\r\n");
    redis_call *c = run(f, new_call(f, "B", false));
    must_be(c, WEIR_EUNKNOWN);
    assert_non_null(strstr(c->err.msg, "it does not speak Redis's protocol: "));
    must_say(run(f, new_call(f, "C", false)), "fine");
}

/* Whose answers would the next ones be? */
static void answers_that_nobody_asked_for_end_it(void **state)
{
    fixture *f = *state;
    open_link(f);
    FAKE_ANSWERS(f->server, "+a\r\n+more\r\n", "+b\r\n");
    redis_call *c = run(f, new_call(f, "A", false));
    must_say(c, "a");
    must_say(run(f, new_call(f, "B", true)), "b");
    HEARD(f, "A;CLIENT KILL ID 1;B;");
}

/* A server that closes what is idle has done nothing of what comes after. */
static void closed_while_idle_is_not_unknown(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    for (int i = 0; i < 3; i++) {
        must_say(run(f, new_call(f, "A", false)), "OK");
        fake_close_all(f->server);
        must_say(run(f, new_call(f, "B", false)), "OK");
    }
    fake_stop(f->server);
    f->server = NULL;
    redis_call *c = run(f, new_call(f, "A", false));
    must_be(c, WEIR_EUNAVAIL);
    assert_non_null(strstr(c->err.msg, "Connection refused; gave up after 1000 ms"));
}

static void nobody_spins_while_nobody_is_there(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    fake_stop(f->server);
    f->server = NULL;
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 2; i++) {
        redis_call *a = new_call(f, "A", true), *b = new_call(f, "B", false);
        weir__link_run(f->link, (redis_call *[]){ a, b }, 2);
        must_be(a, WEIR_EUNAVAIL);
        must_be(b, WEIR_EUNAVAIL);
    }
    getrusage(RUSAGE_THREAD, &after);
    /* a turn is one switch; it sleeps 10, 20, 40 ... ms between them */
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 4, 100);
}

/* ---- silent ---- */

static void silence_ends_with_unknown(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    FAKE_ANSWERS(f->server, "!silent", "!silent", "!silent", "!silent");
    int64_t begun = weir__monotonic_ms();
    must_be(run(f, new_call(f, "A", false)), WEIR_EUNKNOWN);
    assert_in_range(weir__monotonic_ms() - begun, SHORT_MS, 10 * SHORT_MS);
    HEARD(f, "A;");

    begun = weir__monotonic_ms();
    must_be(run(f, new_call(f, "B", true)), WEIR_EUNKNOWN);
    assert_in_range(weir__monotonic_ms() - begun, SHORT_MS, 10 * SHORT_MS);
    fake_heard(f->server, f->heard, sizeof f->heard);
    assert_non_null(strstr(f->heard, "B;"));
}

/* A connection of which nobody said that it is gone: a new one is tried while there is time. */
static void silence_is_worth_a_new_connection(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    FAKE_ANSWERS(f->server, "!silent", "+again\r\n");
    must_say(run(f, new_call(f, "A", true)), "again");
    HEARD(f, "A;CLIENT KILL ID 1;A;");
    FAKE_ANSWERS(f->server, "!wait 700 +late\r\n");      /* but not for what cannot be repeated */
    must_say(run(f, new_call(f, "B", false)), "late");
    HEARD(f, "B;");
}

static void a_stopped_server_is_waited_for(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    fake_freeze(f->server, true);
    must_be(run(f, new_call(f, "A", false)), WEIR_EUNKNOWN);
    redis_call *c = run(f, new_call(f, "B", false));
    must_be(c, WEIR_EUNAVAIL);      /* it was not even greeted */
    assert_non_null(strstr(c->err.msg, "no answer for 500 ms; gave up after 1000 ms"));
    fake_freeze(f->server, false);
    must_say(run(f, new_call(f, "C", false)), "OK");
}

/* What is late is nobody's; what comes behind it belongs to the next. */
static void late_answers_are_dropped(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    FAKE_ANSWERS(f->server, "!wait 700 +x\r\n", "!wait 700 +late\r\n", "+b\r\n");
    redis_call *x = new_call(f, "X", false), *a = new_call(f, "A", false),
               *b = new_call(f, "B", false);
    weir__link_run(f->link, (redis_call *[]){ x, a }, 2);
    must_say(x, "x");
    must_be(a, WEIR_EUNKNOWN);
    assert_non_null(strstr(a->err.msg, ": no answer; gave up after 1000 ms"));
    must_say(run(f, b), "b");
    HEARD(f, "X;A;B;");
    assert_int_equal(fake_connections(f->server), 1);
}

static void what_was_not_sent_whole_was_not_done(void **state)
{
    fixture *f = *state;
    open_hasty(f);
    fake_freeze(f->server, true);
    redis_call *c = &f->call[0];
    size_t      len = 32 << 20;     /* more than the sockets hold */
    char       *big = calloc(1, len);
    assert_non_null(big);
    weir__resp_array(&c->command, 2);
    weir__resp_text(&c->command, "BIG");
    weir__resp_bytes(&c->command, big, len);
    free(big);
    must_be(run(f, c), WEIR_EUNAVAIL);
    fake_close_all(f->server);
    fake_freeze(f->server, false);
    must_say(run(f, new_call(f, "A", false)), "OK");
    HEARD(f, "CLIENT KILL ID 1;A;");
}

/* ---- order ---- */

static void repeated_calls_keep_the_order_of_their_slot(void **state)
{
    fixture *f = *state;
    open_link(f);
    redis_call *a = new_call(f, "A", false), *b = new_call(f, "B", false),
               *c = new_call(f, "C", false), *other = new_call(f, "O", false);
    other->slot = 9;
    FAKE_ANSWERS(f->server, "-TRYAGAIN x\r\n", "-TRYAGAIN x\r\n", "+o\r\n", "-TRYAGAIN x\r\n",
                 "+a\r\n", "-TRYAGAIN x\r\n", "+b\r\n", "+c\r\n");
    weir__link_send(f->link, a);
    weir__link_send(f->link, b);
    weir__link_send(f->link, other);
    weir__link_wait(f->link, other);
    weir__link_send(f->link, c);
    weir__link_wait(f->link, c);
    must_say(other, "o");
    must_say(c, "c");
    weir__link_wait(f->link, a);
    weir__link_wait(f->link, b);
    must_say(a, "a");
    must_say(b, "b");
    HEARD(f, "A;B;O;A;A;B;B;C;");
}

static void lost_calls_keep_their_order(void **state)
{
    fixture *f = *state;
    open_link(f);
    FAKE_ANSWERS(f->server, "+a\r\n", "!cut", "+b\r\n", "+c\r\n", "+d\r\n");
    redis_call *c[4];
    for (int i = 0; i < 4; i++)
        c[i] = new_call(f, (char[]){ (char)('A' + i), '\0' }, true);
    weir__link_run(f->link, c, 4);
    for (int i = 0; i < 4; i++)
        must_say(c[i], (char[]){ (char)('a' + i), '\0' });
    HEARD(f, "A;B;CLIENT KILL ID 1;B;C;D;");
}

/* ---- a cluster ---- */

#define CLUSTER_HELLO                                                                              \
    "*6\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n"

/* Two nodes; all slots but 0 to 99 are the other's, or all are the first one's. */
static char *map(const fixture *f, bool split, char *out, size_t size)
{
    int one = fake_port(f->server), two = fake_port(f->other);
    if (split)
        snprintf(out, size, "*2\r\n*3\r\n:0\r\n:99\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n"
                            "*3\r\n:100\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", one, two);
    else
        snprintf(out, size, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:%d\r\n", one);
    return out;
}

static void open_cluster(fixture *f, const char *slots)
{
    f->other = fake_start();
    assert_non_null(f->other);
    f->url.way = REDIS_CLUSTER;
    static char text[300];
    fake_say(f->server, "HELLO", CLUSTER_HELLO);
    fake_say(f->other, "HELLO", CLUSTER_HELLO);
    fake_say(f->server, "CLUSTER", slots ? slots : map(f, true, text, sizeof text));
    fake_say(f->other, "CLUSTER", slots ? slots : text);
    open_link(f);
}

static void calls_go_to_the_owner_of_their_slot(void **state)
{
    fixture *f = *state;
    open_cluster(f, NULL);
    redis_call *a = new_call(f, "A", false), *b = new_call(f, "B", false);
    a->slot = 99;
    b->slot = 100;
    weir__link_run(f->link, (redis_call *[]){ a, b }, 2);
    HEARD(f, "A;");
    assert_string_equal(fake_heard(f->other, f->heard, sizeof f->heard), "B;");
}

static void moved_is_followed_and_remembered(void **state)
{
    fixture *f = *state;
    open_cluster(f, NULL);
    char moved[64], slots[300];
    snprintf(moved, sizeof moved, "-MOVED 5000 127.0.0.1:%d\r\n", fake_port(f->server));
    FAKE_ANSWERS(f->other, moved);
    fake_say(f->server, "CLUSTER", map(f, false, slots, sizeof slots));     /* it asks after that */
    fake_say(f->other, "CLUSTER", slots);
    redis_call *c = new_call(f, "A", false);
    c->slot = 5000;
    must_be(run(f, c), WEIR_OK);
    HEARD(f, "A;");
    must_be(run(f, c), WEIR_OK);
    HEARD(f, "A;");
    assert_string_equal(fake_heard(f->other, f->heard, sizeof f->heard), "A;");

    /* and the whole map is asked for anew, sooner or later */
    do {
        c = new_call(f, "B", false);
        c->slot = 6000;
        must_be(run(f, c), WEIR_OK);
        fake_heard(f->server, f->heard, sizeof f->heard);
    } while (!strstr(f->heard, "B;"));
}

static void ask_is_followed_once(void **state)
{
    fixture *f = *state;
    open_cluster(f, NULL);
    char ask[64];
    snprintf(ask, sizeof ask, "-ASK 5 127.0.0.1:%d\r\n", fake_port(f->other));
    FAKE_ANSWERS(f->server, ask, "+b\r\n");
    FAKE_ANSWERS(f->other, MISSING);
    redis_call *a = new_call(f, "A", false), *b = new_call(f, "B", false);
    a->slot = b->slot = 5;
    a->library = &f->library;
    must_be(run(f, a), WEIR_OK);
    must_say(run(f, b), "b");
    HEARD(f, "A;B;");
    assert_string_equal(fake_heard(f->other, f->heard, sizeof f->heard),
                        "ASKING;A;" LOAD "ASKING;A;");
}

/* Half of the keys are here, half there: it must go to the source again, and not stay. */
static void tryagain_after_ask_begins_anew(void **state)
{
    fixture *f = *state;
    open_cluster(f, NULL);
    char ask[64];
    snprintf(ask, sizeof ask, "-ASK 5 127.0.0.1:%d\r\n", fake_port(f->other));
    FAKE_ANSWERS(f->server, ask, ask, "+done\r\n");
    FAKE_ANSWERS(f->other, "-TRYAGAIN x\r\n", "-TRYAGAIN x\r\n");
    redis_call *a = new_call(f, "A", false);
    a->slot = 5;
    must_say(run(f, a), "done");
    HEARD(f, "A;A;A;");
    assert_string_equal(fake_heard(f->other, f->heard, sizeof f->heard), "ASKING;A;ASKING;A;");
}

static void nonsense_of_a_cluster_is_not_followed(void **state)
{
    fixture *f = *state;
    f->url.timeout_ms = SHORT_MS;
    open_cluster(f, NULL);
    static const char *const nonsense[] = { "-MOVED\r\n", "-MOVED x\r\n", "-ASK 1 nohost\r\n",
                                            "-MOVED 16384 h:1\r\n", "-ASK 1 h:99999\r\n" };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        FAKE_ANSWERS(f->server, nonsense[i]);
        must_be(run(f, new_call(f, "A", false)), WEIR_EUNAVAIL);
    }
    /* two that send calls to each other, for ever */
    char here[64], there[64];
    snprintf(here, sizeof here, "-MOVED 5 127.0.0.1:%d\r\n", fake_port(f->server));
    snprintf(there, sizeof there, "-MOVED 5 127.0.0.1:%d\r\n", fake_port(f->other));
    const char *away[64], *back[64];
    for (size_t i = 0; i < 64; i++) {
        away[i] = there;
        back[i] = here;
    }
    fake_answers(f->server, 64, away);
    fake_answers(f->other, 64, back);
    fake_heard(f->server, f->heard, sizeof f->heard);
    redis_call *c = new_call(f, "B", false);
    c->slot = 5;
    must_be(run(f, c), WEIR_EUNAVAIL);
    assert_in_range(strlen(fake_heard(f->server, f->heard, sizeof f->heard)), 2 * 2, 2 * 20);
}

static void a_bad_map_is_refused(void **state)
{
    fixture *f = *state;
    static const char *const maps[] = {
        "*0\r\n", "+OK\r\n", "*1\r\n+x\r\n", "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\nh\r\n:0\r\n", "*1\r\n*3\r\n:0\r\n:9\r\n*0\r\n",
        "*1\r\n*3\r\n:-5\r\n:9\r\n*2\r\n$1\r\nh\r\n:1\r\n",
    };
    f->url.way = REDIS_CLUSTER;
    fake_say(f->server, "HELLO", CLUSTER_HELLO);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        weir_error err = { 0 };
        fake_say(f->server, "CLUSTER", maps[i]);
        assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EUNAVAIL);
        assert_null(f->link);
        assert_true(strstr(err.msg, "no slots are assigned; create the cluster first") ||
                    strstr(err.msg, "its map of the cluster is not understood"));
    }
}

/* ---- opening ---- */

#define HELLO(version, mode)                                                                      \
    "*4\r\n$7\r\nversion\r\n+" version "\r\n$4\r\nmode\r\n+" mode "\r\n"

static void servers_that_will_not_do(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *command, *answer, *msg;
        weir_code   code;
    } cases[] = {
        { "HELLO", HELLO("6.2.14", "standalone"), "Redis 6.2.14: weir needs 7.0 or later",
          WEIR_EINVAL },
        { "HELLO", "-ERR unknown command `HELLO`, with args beginning with: `2`, `AUTH`, "
                   "`default`, `hush`\r\n", "older than Redis 7.0, which weir needs", WEIR_EINVAL },
        { "HELLO", HELLO("7.2.0", "cluster"), "it is in cluster mode: add ?cluster=1 to the URL",
          WEIR_EINVAL },
        { "HELLO", HELLO("7.2.0", "sentinel"), "it is a sentinel: redis+sentinel://HOST:PORT/NAME",
          WEIR_EINVAL },
        { "HELLO", "-NOAUTH HELLO must be called with the client already authenticated\r\n",
          "it requires a password: redis://USER:PASSWORD@HOST", WEIR_EINVAL },
        { "HELLO", "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
          "WRONGPASS invalid username-password pair or user is disabled.", WEIR_EINVAL },
        { "HELLO", "-ERR I do not like hush\r\n", "refused", WEIR_EUNAVAIL },
        { "HELLO", "-ERR max number of clients reached\r\n",
          "ERR max number of clients reached", WEIR_EUNAVAIL },
        { "HELLO", "!\r\n", "it does not speak Redis's protocol: Protocol error, got \"!\" as "
                            "reply type byte", WEIR_EUNAVAIL },
        { "SELECT", "-ERR DB index is out of range\r\n",
          "database 3: ERR DB index is out of range", WEIR_EINVAL },
        { "INFO", "-NOPERM this user has no permissions to run the 'info' command\r\n",
          "the user needs the right +info, by which weir sees what the server would do to its jobs",
          WEIR_EINVAL },
        { "INFO", "=role:master", NULL, WEIR_OK },
        { "INFO", "=role:slave\r\nmaster_host:10.0.0.7\r\nmaster_port:6380\r\n",
          "it is a replica: name its primary, 10.0.0.7:6380, or ask sentinels with "
          "redis+sentinel://", WEIR_EINVAL },
        { "INFO", "=role:master\r\nmaxmemory_policy:allkeys-lru\r\n",
          "its maxmemory-policy allkeys-lru throws jobs away: CONFIG SET maxmemory-policy "
          "noeviction, or insist with ?allow-eviction=1", WEIR_EINVAL },
        { "INFO", ":1\r\n", "INFO: no text", WEIR_EUNAVAIL },
        { "CONFIG", "-NOPERM not you\r\n", NULL, WEIR_OK },
    };
    strcpy(f->url.password, "hush");
    f->url.db = 3;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_error err = { 0 };
        char       msg[300];
        fake_say(f->server, cases[i].command, cases[i].answer);
        weir_code rc = weir__link_open(&f->link, &f->url, &err);
        if (rc != cases[i].code)
            fail_msg("%s: %s", cases[i].answer, err.msg);
        snprintf(msg, sizeof msg, "redis 127.0.0.1:%d: %s", fake_port(f->server),
                 cases[i].msg ? cases[i].msg : "");
        if (cases[i].msg)
            assert_string_equal(err.msg, msg);
        assert_true(!f->link == !!rc);
        weir__link_close(f->link);
        f->link = NULL;
        fake_say(f->server, cases[i].command, NULL);
    }
}

static void eviction_can_be_insisted_on(void **state)
{
    fixture *f = *state;
    fake_say(f->server, "INFO", "=role:master\r\nmaxmemory_policy:allkeys-lru\r\n");
    f->url.allow_eviction = true;
    open_link(f);
    must_be(run(f, new_call(f, "A", false)), WEIR_OK);
}

static void a_cluster_is_expected(void **state)
{
    fixture   *f = *state;
    weir_error err = { 0 };
    f->url.way = REDIS_CLUSTER;
    assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, ": it is not in cluster mode: leave ?cluster=1 out of the "
                                    "URL"));
}

static void nobody_there(void **state)
{
    fixture   *f = *state;
    weir_error err = { 0 };
    char       msg[80];
    snprintf(msg, sizeof msg, "redis 127.0.0.1:%d: Connection refused", fake_port(f->server));
    fake_stop(f->server);
    f->server = NULL;
    assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EUNAVAIL);
    assert_string_equal(err.msg, msg);
    f->url.way = REDIS_CLUSTER;
    assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EUNAVAIL);
    assert_string_equal(err.msg, msg);
    f->url.way = REDIS_UNIX;
    f->url.place[0] = (redis_place){ .host = "/nowhere/redis.sock" };
    assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EUNAVAIL);
    assert_string_equal(err.msg, "redis /nowhere/redis.sock: No such file or directory");
    f->url.way = REDIS_ONE;
    f->url.place[0] = (redis_place){ .host = "nobody.invalid", .port = 1 };
    assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EUNAVAIL);
    assert_memory_equal(err.msg, "redis nobody.invalid:1: ", 24);
}

static void a_server_that_says_nothing_does_not_hold_us(void **state)
{
    fixture   *f = *state;
    weir_error err = { 0 };
    f->url.timeout_ms = SHORT_MS;
    fake_freeze(f->server, true);
    int64_t begun = weir__monotonic_ms();
    assert_int_equal(weir__link_open(&f->link, &f->url, &err), WEIR_EUNAVAIL);
    assert_in_range(weir__monotonic_ms() - begun, SHORT_MS / 2, 10 * SHORT_MS);
    assert_non_null(strstr(err.msg, ": no answer for 500 ms"));
}

/* ---- what is lost while it is sent ---- */

/* Our end of a connection to a server: -1, there is none to which something was sent. */
static int our_end(const fake *server)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in at;
        struct tcp_info    info = { 0 };
        socklen_t          len = sizeof at, info_len = sizeof info;
        if (!getpeername(fd, (struct sockaddr *)&at, &len) && at.sin_family == AF_INET &&
            ntohs(at.sin_port) == fake_port(server) &&
            !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) && info.tcpi_bytes_acked > 1)
            return fd;
    }
    return -1;
}

/* From now on, sending over our end fails. */
static void break_sending(const fake *server)
{
    int fd;
    while ((fd = our_end(server)) < 0)
        sched_yield();
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
}

static void a_call_that_cannot_be_sent_goes_over_a_new_connection(void **state)
{
    fixture *f = *state;
    open_link(f);
    fake_freeze(f->server, true);
    break_sending(f->server);
    redis_call *c = new_call(f, "A", false);
    weir__link_send(f->link, c);
    fake_freeze(f->server, false);
    weir__link_wait(f->link, c);
    must_say(c, "OK");
    assert_int_equal(fake_connections(f->server), 2);
}

static void *open_subscriber(void *arg)
{
    fixture      *f = arg;
    redis_channel channel = { .name = "c", .sharded = true };
    redis_subscriber *e;
    weir_error    err;
    weir_code         rc =
        weir__subscriber_open(&e, &f->url, &channel, 1, ignore_message, not_lost, f, &err);
    weir__subscriber_close(e);
    return rc ? f : NULL;
}

static void a_subscriber_that_cannot_ask_asks_over_a_new_connection(void **state)
{
    fixture  *f = *state;
    pthread_t thread;
    void     *failed;
    fake_freeze(f->server, true);
    FAKE_ANSWERS(f->server, "*3\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n:1\r\n");
    assert_int_equal(pthread_create(&thread, NULL, open_subscriber, f), 0);
    break_sending(f->server);       /* it has sent its greeting */
    fake_freeze(f->server, false);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(fake_connections(f->server), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_come_to_their_calls),
        TEST(order_of_waiting_does_not_matter),
        TEST(ask_answers_or_says_why),
        TEST(what_passes_is_waited_out),
        TEST(what_needs_a_new_connection_gets_one),
        TEST(what_does_not_pass_is_said),
        TEST(what_never_passes_ends_with_the_timeout),
        TEST(functions_are_loaded_when_needed),
        TEST(a_library_that_is_there_is_fine),
        TEST(a_library_that_is_refused_is_not_tried_again),
        TEST(cut_before_or_in_the_answer),
        TEST(the_old_connection_is_killed_first),
        TEST(perhaps_done_stays_perhaps_done),
        TEST(garbage_ends_the_connection),
        TEST(answers_that_nobody_asked_for_end_it),
        TEST(closed_while_idle_is_not_unknown),
        TEST(nobody_spins_while_nobody_is_there),
        TEST(silence_ends_with_unknown),
        TEST(silence_is_worth_a_new_connection),
        TEST(a_stopped_server_is_waited_for),
        TEST(late_answers_are_dropped),
        TEST(what_was_not_sent_whole_was_not_done),
        TEST(repeated_calls_keep_the_order_of_their_slot),
        TEST(lost_calls_keep_their_order),
        TEST(calls_go_to_the_owner_of_their_slot),
        TEST(moved_is_followed_and_remembered),
        TEST(ask_is_followed_once),
        TEST(tryagain_after_ask_begins_anew),
        TEST(nonsense_of_a_cluster_is_not_followed),
        TEST(a_bad_map_is_refused),
        TEST(servers_that_will_not_do),
        TEST(eviction_can_be_insisted_on),
        TEST(a_cluster_is_expected),
        TEST(nobody_there),
        TEST(a_server_that_says_nothing_does_not_hold_us),
        TEST(a_call_that_cannot_be_sent_goes_over_a_new_connection),
        TEST(a_subscriber_that_cannot_ask_asks_over_a_new_connection),
    };
    return cmocka_run_group_tests_name("redis_link", tests, NULL, NULL);
}
