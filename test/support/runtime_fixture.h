/* runtime_fixture.h - a queue for one test, on each store in turn, with a clock that can be turned,
 * and ways to wait for things that must happen soon. Needs only the public API. */
#ifndef WEIR_TEST_RUNTIME_FIXTURE_H
#define WEIR_TEST_RUNTIME_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/tempdir.h"
#include "weir/weir.h"

enum {
    PATIENCE_MS = 60000,      /* for what must happen soon: it only matters when a test fails */
    RT_MAX_EVENTS = 4096
};

/* ---- a queue ---- */

typedef struct rt {
    weir_queue     *q;
    char            dir[TEMPDIR_MAX];     /* "": needs none */
    char            url[TEMPDIR_MAX + 256];
    bool            test_clock;
    _Atomic int64_t now;
    _Atomic int64_t set_back;             /* the wall clock is behind `now` */
    weir_error      err;                  /* of the last call */
    weir_queue     *served;               /* "served:": what a server in this process serves */
    struct srv_server *server;
} rt;

#define RT_MEM    "mem:"
#define RT_SQLITE "sqlite:@/jobs.db?durability=os"
#define RT_REDIS  "rig:redis+unix"
#define RT_SERVED "served:mem:"

/* Open a queue; '@' after the scheme is a directory of its own, "rig:..." see rig_shared_url();
 * "served:URL" is the http store, with a server in this process that serves URL; "shared:URL" is
 * a file that another queue in this process owns (t->served). */
void rt_open(rt *t, const char *url, bool test_clock);
/* Open a queue whose store may not answer within the timeout of the URL, again and again: a busy
 * machine can be slower than a short timeout. */
void rt_open_until(rt *t, const char *url);
/* Opening this URL ends with this code, and with these words; no password is in the message. */
void rt_refused(const char *url, weir_code want, const char *words);
/* Close and open it again (mem: forgets). */
void rt_reopen(rt *t);
void rt_close(rt *t);
/* Close; before that, the store must be consistent. */
void rt_check_and_close(rt *t);

/* Turn the clock. */
void rt_later(rt *t, int64_t ms);
/* Somebody sets the wall clock back, and leaves it so; time goes on. */
void rt_set_back(rt *t, int64_t ms);

uint64_t   rt_add(rt *t, const weir_spec *spec);
uint64_t   rt_add_type(rt *t, const char *type);
weir_state rt_state(rt *t, uint64_t id);          /* WEIR_STATE_ANY: it is gone */
weir_job  *rt_get(rt *t, uint64_t id);
uint64_t   rt_count(rt *t, weir_state state);
/* Wait until the job is in that state. */
void       rt_until(rt *t, uint64_t id, weir_state state);
void       rt_until_count(rt *t, weir_state state, uint64_t n);

/* Run a test on each of these stores, or on those that $WEIR_TEST_STORES names. */
void rt_each(void (*test)(rt *t), bool test_clock);

/* A test that is run on each store. */
#define RT_TEST(fn)                                                              \
    static void fn##_on(rt *t);                                                  \
    static void fn(void **state)                                                 \
    {                                                                            \
        (void)state;                                                             \
        rt_each(fn##_on, false);                                                 \
    }                                                                            \
    static void fn##_on(rt *t)

/* The same with a clock that only the test turns. */
#define RT_CLOCK_TEST(fn)                                                        \
    static void fn##_on(rt *t);                                                  \
    static void fn(void **state)                                                 \
    {                                                                            \
        (void)state;                                                             \
        rt_each(fn##_on, true);                                                  \
    }                                                                            \
    static void fn##_on(rt *t)

/* ---- waiting ---- */

/* A number that threads raise and others wait for. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t  moved;
    int             n;
} gate;

#define GATE_INIT { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

void gate_up(gate *g);
void gate_wait(gate *g, int n);              /* until it is at least n; fails after PATIENCE_MS */
bool gate_wait_ms(gate *g, int n, int ms);   /* false: it is not */
int  gate_now(gate *g);

/* Spin, politely, until the expression is true; fail after PATIENCE_MS. */
#define UNTIL(expr)                                                              \
    do {                                                                         \
        int64_t until_end_ = rt_ms() + PATIENCE_MS;                              \
        while (!(expr)) {                                                        \
            if (rt_ms() > until_end_)                                            \
                fail_msg("never: %s", #expr);                                    \
            rt_breathe();                                                        \
        }                                                                        \
    } while (0)

int64_t rt_ms(void);          /* monotonic */
void    rt_breathe(void);     /* let others run */

#define OK(call) assert_ok_((call), &t->err, #call, __FILE__, __LINE__)
void assert_ok_(weir_code rc, const weir_error *err, const char *what, const char *file, int line);

/* ---- events, as they came ---- */

typedef struct record {
    pthread_mutex_t lock;
    weir_event      event[RT_MAX_EVENTS];    /* type and text are not kept ... */
    char            text[RT_MAX_EVENTS][48]; /* ... but the start of the text is */
    size_t          n;
    weir_listener  *listener;
} record;

record *record_start(rt *t, const weir_filter *filter);
size_t  record_count(record *r, weir_event_kind kind);
void    record_until(record *r, weir_event_kind kind, size_t n);
/* The names of the events so far, as one line: "enqueue start complete". */
void    record_line(record *r, char *out, size_t size);
void    record_stop(record *r);

#endif
