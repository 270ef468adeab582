/* test_alloc.c - the sqlite store when memory runs out: the Nth allocation of SQLite fails, for
 * every N until a run gets through without a failure.
 *
 * An operation that answers WEIR_OK must have happened and one that answers WEIR_ENOMEM must not,
 * whichever allocation it was; and afterwards the store works and finds itself in order. */
#include "support/store_fixture.h"

#include <stdio.h>
#include <string.h>

#include "store/sqlite/sq.h"

/* ---- SQLite's allocator, with a fuse ---- */

static sqlite3_mem_methods real;
static long                countdown;       /* allocations until one fails; 0: none will */
static bool                stays;           /* from then on all of them fail */
static bool                failed;

static bool blown(void)
{
    if (failed && stays)
        return true;
    if (countdown == 0 || --countdown > 0)
        return false;
    return failed = true;
}

static void *fused_malloc(int n)
{
    return blown() ? NULL : real.xMalloc(n);
}

static void *fused_realloc(void *p, int n)
{
    return blown() ? NULL : real.xRealloc(p, n);
}

static void arm(long n, bool forever)
{
    countdown = n;
    stays = forever;
    failed = false;
}

static bool disarm(void)
{
    bool was = failed;
    countdown = 0;
    stays = failed = false;
    return was;
}

/* ---- one run: every kind of operation while the fuse burns ---- */

enum { FAILING = 2, TO_CANCEL = 4, WAITING, N_JOBS = WAITING };     /* ids; 1 to 3 are taken */

static fixture *prepare(void)
{
    fixture *f = fixture_open("sqlite:@/jobs.db?durability=os");
    assert_non_null(f);
    weir_spec spec = { .type = "mail", .data = "{\"to\":\"ann\"}", .attempts = 2, .search = true };
    for (int i = 0; i < N_JOBS; i++)
        add_spec(f, &spec);
    return f;
}

enum { OPS = 13, FAR = 50 };

static const weir_line     far_lines[] = { { .n = 4, .at = 5, .text = "four" },
                                           { .n = 5, .at = 6, .text = "five" } };
static const weir_job      far[] = {
    { .id = FAR, .type = "far", .state = WEIR_STATE_FAILED, .error = "no", .search = true },
    { .id = FAR + 1, .type = "far", .unique = "key" },
};
static const weir_incoming incoming[] = {
    { .job = &far[0], .lines = far_lines, .n_lines = 2 }, { .job = &far[1] },
};

typedef struct script {
    const weir_job *first, *second;
    weir_spec       spec[2];
    weir_added      added[2];
    weir_job       *taken;
    weir_imported   imported[2];
    weir_op         op[OPS];
    size_t          n;
} script;

static const char *const mail[] = { "mail" };
static const weir_token  token = { .key = "me", .number = 1 };

static void write_script(script *c, fixture *f)
{
    memset(c, 0, sizeof *c);
    c->first = take(f, "mail");
    c->second = take(f, "mail");
    c->spec[0] = (weir_spec){ .type = "new", .unique = "key", .search = true };
    c->spec[1] = (weir_spec){ .type = "mail", .delay_ms = 1000 };
    const weir_op ops[] = {
        { .kind = WEIR_OP_ADD, .u.add = { c->spec, 2, c->added, &token } },
        { .kind = WEIR_OP_PROGRESS,
          .u.progress = { c->first->id, c->first->delivery, 50, "[1]", 3 } },
        { .kind = WEIR_OP_LOG, .u.log = { c->first->id, c->first->delivery, "half way", 8 } },
        { .kind = WEIR_OP_FINISH,
          .u.finish = { .id = c->first->id, .delivery = c->first->delivery, .text = "[2]", .len = 3,
                        .next = { mail, 1, 1, LEASE_MS, WORKER, &c->taken, 0 } } },
        { .kind = WEIR_OP_FINISH,
          .u.finish = { .id = c->second->id, .delivery = c->second->delivery,
                        .outcome = WEIR_OUTCOME_FAIL, .text = "no", .len = 2 } },
        { .kind = WEIR_OP_UPDATE,
          .u.update = { .id = TO_CANCEL, .change = { .state = WEIR_STATE_CANCELLED } } },
        { .kind = WEIR_OP_REMOVE, .u.remove = { .id = WAITING } },
        { .kind = WEIR_OP_CONFIGURE, .u.configure = { .type = "fax", .set_paused = true,
                                                      .paused = true } },
        { .kind = WEIR_OP_GET, .u.get = { .id = FAILING } },
        { .kind = WEIR_OP_LIST, .u.list = { .query = { .search = "ann" } } },
        { .kind = WEIR_OP_STATS },
        { .kind = WEIR_OP_TICK, .u.tick = { .limit = 10 } },
        { .kind = WEIR_OP_IMPORT, .u.import = { incoming, 2, c->imported } },
    };
    _Static_assert(sizeof ops / sizeof *ops == OPS, "as many");
    c->n = sizeof ops / sizeof *ops;
    memcpy(c->op, ops, sizeof ops);
    for (size_t i = 0; i < c->n; i++)
        assert_int_equal(weir__op_check(&c->op[i], &f->err), WEIR_OK);
}

static void drop_answers(script *c)
{
    for (size_t i = 0; i < c->n; i++) {
        weir_op *op = &c->op[i];
        if (op->kind == WEIR_OP_GET)
            weir_job_free(op->u.get.job);
        if (op->kind == WEIR_OP_LIST)
            weir_page_free(op->u.list.page);
        if (op->kind == WEIR_OP_STATS)
            weir_stats_free(op->u.stats.stats);
        if (op->kind == WEIR_OP_FINISH && op->u.finish.next.n_jobs)
            weir_job_free(c->taken);
    }
}

/* When memory runs out while FTS5 opens a blob, it reports a damaged index instead. That is
 * SQLite's answer: all is well in the file, and the operation did not happen. */
static bool searches(const weir_op *op)
{
    return op->kind == WEIR_OP_ADD || op->kind == WEIR_OP_REMOVE || op->kind == WEIR_OP_LIST ||
           op->kind == WEIR_OP_IMPORT;
}

/* What was answered is what is there. */
static void compare(script *c, fixture *f)
{
    bool done[OPS];
    for (size_t i = 0; i < c->n; i++) {
        weir_code code = c->op[i].err.code;
        done[i] = code == WEIR_OK;
        if (!done[i] && code != WEIR_ENOMEM && !(code == WEIR_ECORRUPT && searches(&c->op[i])))
            fail_msg("operation %zu: %s", i, c->op[i].err.msg);
    }
    const weir_type_stats *fax = stats_of(f, "fax"), *new = stats_of(f, "new");
    CHECK(done[0] == (new != NULL));
    CHECK(done[0] == (count(f, WEIR_STATE_DELAYED, "mail") == 1));
    const weir_job *first = get(f, c->first->id), *second = get(f, c->second->id);
    CHECK_INT(first->state, done[3] ? WEIR_STATE_COMPLETE : WEIR_STATE_ACTIVE);
    CHECK_INT(first->progress, done[3] ? 100 : done[1] ? 50 : 0);
    CHECK(done[1] == (first->progress_data != NULL));
    CHECK_INT(logs(f, c->first->id, 0, 10)->n, done[2]);
    CHECK_INT(c->op[3].u.finish.next.n_jobs, done[3]);
    if (done[3])
        CHECK_INT(state_of(f, c->taken->id), WEIR_STATE_ACTIVE);
    CHECK_INT(second->attempts, done[4]);
    CHECK_INT(logs(f, c->second->id, 0, 10)->n, done[4]);
    CHECK(done[5] == (state_of(f, TO_CANCEL) == WEIR_STATE_CANCELLED));
    CHECK(done[6] == (state_of(f, WAITING) == WEIR_STATE_ANY));
    CHECK(done[7] == (fax && fax->paused));
    CHECK_INT(count(f, WEIR_STATE_ANY, "far"), done[12] ? 2 : 0);
    CHECK(done[12] == (logs(f, FAR, 0, 0) != NULL));
    if (!done[3])       /* its worker may try again */
        CHECK_INT(finish(f, c->first), WEIR_OK);
}

/* True: the fuse was still burning at the end, so this N is beyond the last. */
static bool survive(long n, bool forever, bool as_batch)
{
    fixture *f = prepare();
    script   c;
    weir_op *batch[OPS];
    write_script(&c, f);
    for (size_t i = 0; i < c.n; i++)
        batch[i] = &c.op[i];
    arm(n, forever);
    if (as_batch)
        run_batch(f, batch, c.n);
    for (size_t i = 0; !as_batch && i < c.n; i++)
        run_batch(f, &batch[i], 1);
    bool through = !disarm();
    compare(&c, f);
    check_all_is_well(f);
    CHECK_INT(reopen(f), WEIR_OK);
    check_all_is_well(f);
    drop_answers(&c);
    fixture_close(f);
    return through;
}

/* Every one at first, then not quite: late ones are much alike. */
static long next_of(long n)
{
    return n + 1 + n / 60;
}

static void survive_all(bool forever, bool as_batch)
{
    long n = 1;
    while (!survive(n, forever, as_batch))
        n = next_of(n);
    print_message("# up to %ld allocations\n", n);
    assert_true(n > 20);        /* else nothing was tested */
}

static void one_failure_in_a_batch(void **state)
{
    (void)state;
    survive_all(false, true);
}

static void one_failure_among_single_operations(void **state)
{
    (void)state;
    survive_all(false, false);
}

static void no_memory_until_the_end(void **state)
{
    (void)state;
    survive_all(true, true);
}

/* Open fails cleanly, and works the next time. */
static void opening(void **state)
{
    (void)state;
    fixture *f = prepare();
    long     n = 1;
    for (bool through = false; !through; n = next_of(n)) {
        f->store->ops->close(f->store);
        f->store = NULL;
        arm(n, false);
        weir_code rc = weir__store_open(&f->store, f->url, &f->env, &f->err);
        through = !disarm();
        if (rc) {
            assert_int_equal(rc, WEIR_ENOMEM);
            assert_null(f->store);
            assert_int_equal(weir__store_open(&f->store, f->url, &f->env, &f->err), WEIR_OK);
        }
    }
    assert_true(n > 20);
    CHECK_INT(count(f, WEIR_STATE_ANY, "mail"), N_JOBS);
    check_all_is_well(f);
    fixture_close(f);
}

int main(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
    sqlite3_mem_methods fused = real;
    fused.xMalloc = fused_malloc;
    fused.xRealloc = fused_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &fused);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_failure_in_a_batch),
        cmocka_unit_test(one_failure_among_single_operations),
        cmocka_unit_test(no_memory_until_the_end),
        cmocka_unit_test(opening),
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
