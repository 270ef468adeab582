/* store_fixture.h - a store opened for a test, with a clock that the test turns, a record of every
 * event and wake-up, and one short function for each operation.
 *
 * What the functions give back (jobs, pages, lines ...) belongs to the fixture and is released when
 * it is closed. Every operation goes through weir__op_check() first, as in the library. */
#ifndef WEIR_TEST_STORE_FIXTURE_H
#define WEIR_TEST_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

#include "base/buf.h"
#include "store/store.h"
#include "support/tempdir.h"

#define CHECK(what)          assert_true(what)
#define CHECK_INT(a, b)      assert_int_equal((a), (b))
#define CHECK_STR(a, b)      assert_string_equal((a), (b))

/* The stores that every suite runs on, unless it is told others; '@' after the scheme is a
 * directory of the fixture's own. */
#define TEST_STORES                                                                       \
    "mem:", "sqlite:@/jobs.db?durability=os", "sqlite:@/jobs.db?durability=disk",         \
    "rig:redis+unix", "rig:redis+kue+unix?profile=kue", "rig:redis+kue+unix?profile=vertx", \
    "rig:cluster?partitions=1", "rig:cluster?partitions=16",                              \
    "served:mem:", "served:sqlite:@/jobs.db?durability=os",                               \
    "shared:sqlite:@/jobs.db?durability=os"

/* Which ones: the arguments, else $WEIR_TEST_STORES (separated by commas), else TEST_STORES.
 * Answers how many; free() what *out points at. */
size_t store_urls(int argc, char **argv, char ***out);

/* The clock starts here. */
#define FIXTURE_START INT64_C(1700000000000)

typedef struct fixture {
    char        dir[TEMPDIR_MAX];
    char        url[TEMPDIR_MAX + 256];
    weir_store *store;
    weir_env    env;
    _Atomic int64_t now;        /* the fixture is shared memory: the owner looks at it, too */
    _Atomic int64_t stepped;    /* how far set_clock() has set it */
    weir_queue *served;         /* "served:": the server's queue */
    pid_t       owner;          /* "shared:": the process that owns the store ... */
    int         owner_pipe;     /* ... until this is closed */
    struct srv_server *server;
    weir_error  err;            /* of the last operation */
    weir_buf    events;         /* since the last look: see event_text() */
    size_t      n_events;
    int64_t     due;            /* the earliest wake-up wanted since the last TICK */
    size_t      n_due;
    bool        partitions;     /* then ids are translated: see store_ids.c */
    struct { uint64_t ours, store; } *ids;
    size_t      n_ids;
    struct { void *thing; void (*release)(void *); } *held;
    size_t      n_held, cap_held;
} fixture;

/* NULL when it cannot be opened; says why on standard error. For "rig:..." see
 * rig_shared_url(). "served:URL" is the http store, with a server in this process that serves URL
 * by the fixture's clock; its own queue does nothing by itself when something is due. "shared:URL"
 * is the store of a process that works through the owner of URL: another process, with a queue like
 * that. */
fixture *fixture_open(const char *url);
fixture *fixture_open_sqlite(void);                 /* a file in a directory of its own */
/* Close its store, as if the process ended; and open it again. */
void      fixture_shut(fixture *f);
weir_code fixture_open_again(fixture *f);

void     fixture_close(fixture *f);
bool     persistent(const fixture *f);
bool     looks_around(const fixture *f);    /* others do things without telling: it wants a TICK now
                                               and then, also when it knows of nothing */
bool     asks_for_ticks(const fixture *f);  /* says when something is due; else a server's own
                                               queue sees to that */
bool     keeps_bytes(const fixture *f);     /* of texts, also when they are not UTF-8 */
bool     owned(const fixture *f);           /* by one process: what was active when it was closed
                                               is lost when it is opened again */
weir_code reopen(fixture *f);               /* close, open again: for persistent stores */
void     release_held(fixture *f);          /* what was given back so far */

/* ---- operations; each answers with its code and leaves the message in f->err ---- */

weir_code run(fixture *f, weir_op *op);                     /* check and run one, at f->now */
weir_code run_batch(fixture *f, weir_op **ops, size_t n);   /* that were checked before */

uint64_t  add(fixture *f, const char *type);                /* the id; it must work */
uint64_t  add_spec(fixture *f, const weir_spec *spec);      /* the id; it must work and be new */
weir_code try_add(fixture *f, const weir_spec *spec, weir_added *out);
weir_code add_many(fixture *f, const weir_spec *specs, size_t n, weir_added *out);

#define LEASE_MS 30000
#define WORKER   "host:1:1"
const weir_job *take(fixture *f, const char *type);         /* NULL: none */
/* Of several types, NULL at the end. */
size_t take_some(fixture *f, const char *const *types, size_t n, const weir_job **out);
/* Only those for which this condition is true. */
size_t take_when(fixture *f, const char *const *types, size_t n, const char *when,
                 const weir_job **out);
/* As a worker that has other jobs; *waits: a suspect was passed over. */
size_t take_busy(fixture *f, const char *const *types, size_t n, const weir_job **out, bool *waits);
/* And as one that has none. */
size_t take_idle(fixture *f, const char *const *types, size_t n, const weir_job **out, bool *waits);
const weir_job *take_as(fixture *f, const char *type, const char *worker, int64_t lease_ms);

weir_code finish(fixture *f, const weir_job *job);
weir_code finish_with(fixture *f, const weir_job *job, const char *result);
weir_code fail_job(fixture *f, const weir_job *job, const char *text);
weir_code give_up(fixture *f, const weir_job *job, const char *text);
weir_code give_back(fixture *f, const weir_job *job);
weir_code give_back_for(fixture *f, const weir_job *job, int64_t delay_ms);
weir_code lose(fixture *f, const weir_job *job);            /* its worker died */
weir_code finish_and_take(fixture *f, const weir_job *job, const char *type, const weir_job **next);
weir_code renew(fixture *f, const weir_job *job, int64_t lease_ms);
weir_code progress(fixture *f, const weir_job *job, int32_t percent, const char *data);
weir_code log_from(fixture *f, const weir_job *job, const char *text);     /* by its worker */
weir_code log_line(fixture *f, uint64_t id, const char *text);             /* by anybody */

size_t tick(fixture *f);                                    /* one, without a limit to speak of */
size_t tick_some(fixture *f, size_t limit, int64_t *next_at);
void   later(fixture *f, int64_t ms);                       /* time passes: do all that is due */
void   set_clock(fixture *f, int64_t ms);                   /* none passes: the wall clock is set */

weir_code update(fixture *f, uint64_t id, const weir_change *change);
weir_code retry_job(fixture *f, uint64_t id);
weir_code promote_job(fixture *f, uint64_t id);
weir_code cancel_job(fixture *f, uint64_t id);
weir_code remove_job(fixture *f, uint64_t id);
weir_code set_paused(fixture *f, const char *type, bool paused);
weir_code configure(fixture *f, const char *type, const weir_settings *settings);
weir_code import_many(fixture *f, const weir_incoming *jobs, size_t n, weir_imported *out);
weir_imported import_job(fixture *f, const weir_job *job);  /* its own answer; the call must work */

const weir_job   *get(fixture *f, uint64_t id);             /* NULL: not there */
weir_state        state_of(fixture *f, uint64_t id);        /* WEIR_STATE_ANY: not there */
const weir_page  *list(fixture *f, const weir_query *query);            /* NULL: refused */
const weir_lines *logs(fixture *f, uint64_t id, uint64_t after, size_t limit);
const weir_stats *stats(fixture *f);
const weir_type_stats *stats_of(fixture *f, const char *type);          /* NULL: unknown */
uint64_t          count(fixture *f, weir_state state, const char *type);
const weir_report *check(fixture *f, bool mend);

/* store_vertx.c: in the layout of Vert.x Kue every job has an address among its values, which other
 * stores do not make. These leave it out. */
bool     has_addresses(const char *url);
void     drop_addresses(weir_op *op);

/* store_ids.c */
bool     has_partitions(const char *url);       /* more than one */
void     ids_to_store(const fixture *f, weir_op *op);
void     ids_from_store(fixture *f, weir_op *op);
uint64_t id_from_store(const fixture *f, uint64_t id);

/* The ids of a page as "3 1 2". */
const char *ids_of(fixture *f, const weir_page *page);
const char *listed(fixture *f, const weir_query *query);

/* The events since the last look, as "enqueue 1, start 1": kind and id; or with everything:
 * "start 1 mail active 0 0 1 host:1:1" (kind, id, type, state, attempts, progress, delivery,
 * text). */
const char *events(fixture *f);
const char *events_in_full(fixture *f);
#define CHECK_DUE(f, at)      assert_true(!asks_for_ticks(f) || (f)->due <= (at))
#define CHECK_EVENTS(f, text) assert_string_equal(events(f), (text))

/* A job must be ... */
#define CHECK_STATE(f, id, want) \
    assert_string_equal(weir_state_name(state_of(f, id)), weir_state_name(want))

/* The store itself finds nothing wrong, its counts are those of its lists, and every job is in
 * just one list. */
void check_all_is_well(fixture *f);

#endif
