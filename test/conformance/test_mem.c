/* test_mem.c - what is particular to the mem store: running out of memory, and damage.
 *
 * When memory runs out, the operation says so and nothing of it has happened: each operation of a
 * script is run with its 1st, 2nd, 3rd ... allocation failing, until it works. The build wraps
 * malloc(), calloc() and realloc(). */
#include "conformance/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/mem/mem.h"

/* ---- allocations that fail ---- */

static size_t allocations_left;         /* 0: none fails; 1: the next one does */

static bool fails(void)
{
    return allocations_left && --allocations_left == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

/* ---- the script ---- */

#define TAKE_ANY { .types = both, .n_types = 2, .n = 3, .lease_ms = 1000, .worker = "w" }

static const char *const     both[] = { "a", "b" };
static const weir_settings   keep_one = { .keep_complete = { .count = 1 } };
static const weir_spec       four[] = {
    { .type = "a", .attempts = 2, .unique = "k", .data = "[1]" },
    { .type = "b", .search = true, .search_keys = "to", .ttl_ms = 50, .data = "{\"to\":\"x\"}" },
    { .type = "b", .delay_ms = 20, .unique = "k" },
    { .type = "a", .unique = "k" },
};
static const weir_spec late = { .type = "c", .deadline_at = FIXTURE_START + 10 };

static const weir_line       far_lines[] = { { .n = 4, .at = 5, .text = "four" },
                                           { .n = 5, .at = 6, .text = "five" } };
static const weir_job        far[] = {
    { .id = 20, .type = "e", .state = WEIR_STATE_COMPLETE, .data = "[1]", .data_len = 3,
      .result = "[2]",
      .result_len = 3, .progress_data = "3", .progress_data_len = 1, .worker = "w", .attempts = 1,
      .progress = 100, .created_at = 7, .history = "[]", .history_len = 2 },
    { .id = 9, .type = "a", .data = "{}", .data_len = 2, .error = "no", .unique = "far",
      .search_keys = "to", .max_attempts = 2, .created_at = 7 },
    { .id = 1, .type = "a", .created_at = 7 },
};
static const weir_incoming   incoming[] = {
    { .job = &far[0], .lines = far_lines, .n_lines = 2 }, { .job = &far[1] }, { .job = &far[2] },
    { .job = &far[1], .lines = far_lines, .n_lines = 1 },
};

static const weir_token token = { .key = "me", .number = 1 };

static const plan script[] = {
    { .op = { .kind = WEIR_OP_ADD, .u.add = { .specs = four, .n = 4 } } },
    { .op = { .kind = WEIR_OP_ADD, .u.add = { .specs = &late, .n = 1, .token = &token } } },
    { .op = { .kind = WEIR_OP_CONFIGURE, .u.configure = { .type = "d", .set_paused = true,
                                                          .paused = true } } },
    { .op = { .kind = WEIR_OP_CONFIGURE, .u.configure = { .type = "*", .settings = &keep_one } } },
    { .op = { .kind = WEIR_OP_LOG, .u.log = { .id = 2, .text = "line", .len = 4 } } },
    { .op = { .kind = WEIR_OP_UPDATE, .u.update = { .id = 1, .change = { .data = "[22]" } } } },
    { .op = { .kind = WEIR_OP_TAKE, .u.take = TAKE_ANY } },
    { .op = { .kind = WEIR_OP_PROGRESS, .u.progress = { .id = 1, .delivery = 1, .percent = 5,
                                                        .data = "[5]", .len = 3 } } },
    { .op = { .kind = WEIR_OP_FINISH, .u.finish = { .id = 1, .delivery = 1, .text = "no", .len = 2,
                                                    .outcome = WEIR_OUTCOME_FAIL,
                                                    .next = TAKE_ANY } } },
    { .op = { .kind = WEIR_OP_TICK, .now_ms = 60 } },       /* ttl, promotion, deadline */
    { .op = { .kind = WEIR_OP_TAKE, .now_ms = 60, .u.take = TAKE_ANY } },
    { .op = { .kind = WEIR_OP_FINISH, .now_ms = 70, .u.finish = { .id = 1, .delivery = 2,
                                                                  .text = "[1]", .len = 3 } } },
    { .op = { .kind = WEIR_OP_UPDATE,
              .u.update = { .id = 2, .change = { .state = WEIR_STATE_INACTIVE } } } },
    { .op = { .kind = WEIR_OP_TAKE, .now_ms = 80, .u.take = TAKE_ANY } },
    { .op = { .kind = WEIR_OP_FINISH, .now_ms = 85,
              .u.finish = { .id = 2, .delivery = 2, .outcome = WEIR_OUTCOME_RETURN,
                            .next = TAKE_ANY } } },
    { .op = { .kind = WEIR_OP_UPDATE,
              .u.update = { .id = 1,
                            .change = { .state = WEIR_STATE_INACTIVE, .data = "[3]" } } } },
    { .op = { .kind = WEIR_OP_FINISH, .now_ms = 90, .u.finish = { .id = 3, .delivery = 1 } } },
    { .op = { .kind = WEIR_OP_TICK, .now_ms = 2000 } },     /* lost leases, ttl, retention */
    { .op = { .kind = WEIR_OP_IMPORT, .now_ms = 2000, .u.import = { .jobs = incoming, .n = 4 } } },
    { .op = { .kind = WEIR_OP_GET, .u.get = { .id = 2 } } },
    { .op = { .kind = WEIR_OP_LIST, .u.list = { .query = { .state = WEIR_STATE_FAILED } } } },
    { .op = { .kind = WEIR_OP_LIST, .u.list = { .query = { .search = "x" } } } },
    { .op = { .kind = WEIR_OP_LIST, .u.list = { .query = { .by_priority = true } } } },
    { .op = { .kind = WEIR_OP_LOGS, .u.logs = { .id = 2 } } },
    { .op = { .kind = WEIR_OP_STATS } },
    { .op = { .kind = WEIR_OP_INFO } },
    { .op = { .kind = WEIR_OP_CHECK } },
    { .op = { .kind = WEIR_OP_REMOVE, .u.remove = { .id = 2 } } },
};
enum { STEPS = sizeof script / sizeof *script };

/* ---- running it ---- */

/* Run one step; the `failing`-th allocation of it fails (0: none). Its answer goes to `out`. */
static weir_code run_step(fixture *f, const plan *step, size_t failing, weir_buf *out)
{
    attempt  a;
    paging   none = { 0 };
    weir_op *op = &a.op;
    attempt_init(&a, step, &none);
    op->now_ms += FIXTURE_START;
    assert_int_equal(weir__op_check(op, &f->err), WEIR_OK);
    allocations_left = failing;
    weir_code rc = run_batch(f, &op, 1);
    allocations_left = 0;
    assert_int_equal(rc, WEIR_OK);
    rc = op->err.code;
    if (out)
        attempt_answer(&a, out);
    attempt_free(&a);
    return rc;
}

/* All that can be seen: every job, every log, the statistics. */
static char *look(fixture *f)
{
    weir_buf out = { 0 };
    run_step(f, &(plan){ .op = { .kind = WEIR_OP_STATS } }, 0, &out);
    run_step(f, &(plan){ .op = { .kind = WEIR_OP_LIST } }, 0, &out);
    run_step(f, &(plan){ .op = { .kind = WEIR_OP_CHECK } }, 0, &out);
    for (uint64_t id = 1; id <= 20; id++)
        run_step(f, &(plan){ .op = { .kind = WEIR_OP_LOGS, .u.logs = { .id = id } } }, 0, &out);
    return weir__buf_steal(&out, NULL);
}

static fixture *after_steps(size_t n)
{
    fixture *f = fixture_open("mem:");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(run_step(f, &script[i], 0, NULL), WEIR_OK);
    weir__buf_clear(&f->events);
    assert_true(weir__buf_reserve(&f->events, 4096));   /* the record of events must not fail */
    return f;
}

/* A TICK that ran out of memory may have done a part; the rest is done by the next. All others have
 * done nothing, or all. */
static void check_step(size_t n)
{
    fixture *f = after_steps(n);
    char    *before = look(f);
    weir_buf want = { 0 };
    assert_int_equal(run_step(f, &script[n], 0, &want), WEIR_OK);
    char  *after = look(f);
    char  *told = strdup(f->events.data ? f->events.data : "");
    bool   worked = false;
    size_t failing = 1;
    bool   is_tick = script[n].op.kind == WEIR_OP_TICK;
    fixture_close(f);
    for (; !worked; failing++) {
        weir_buf answer = { 0 };
        f = after_steps(n);
        weir_code rc = run_step(f, &script[n], failing, &answer);
        worked = !rc && !strcmp(answer.data, want.data);
        if (!is_tick)
            assert_true(worked || rc == WEIR_ENOMEM);
        if (rc) {
            char *now = look(f);
            assert_int_equal(rc, WEIR_ENOMEM);
            assert_string_equal(now, before);
            assert_int_equal(f->events.len, 0);
            free(now);
        }
        if (!worked)
            assert_int_equal(run_step(f, &script[n], 0, NULL), WEIR_OK);
        char *now = look(f);
        assert_string_equal(now, after);
        if (!is_tick)
            assert_string_equal(f->events.data ? f->events.data : "", told);
        assert_true(failing < 1000);
        free(now);
        weir__buf_fini(&answer);
        fixture_close(f);
    }
    free(before);
    free(after);
    free(told);
    weir__buf_fini(&want);
}

static void every_operation_survives_every_failed_allocation(void **state)
{
    (void)state;
    for (size_t n = 0; n < STEPS; n++)
        check_step(n);
}

static void a_store_that_cannot_be_opened_says_so(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t failing = 1;; failing++) {
        fixture    env = { .now = FIXTURE_START };
        weir_store *s = NULL;
        allocations_left = failing;
        weir_code rc = weir__mem_store.open(&s, &(weir_url){ .rest = "" }, &env.env, &env.err);
        bool      reached = allocations_left == 0;
        allocations_left = 0;
        if (!rc) {
            s->ops->close(s);
            if (!reached)
                break;
            continue;
        }
        assert_int_equal(rc, WEIR_ENOMEM);
        assert_null(s);
        failures++;
    }
    assert_true(failures > 1);
}

/* ---- damage ---- */

typedef struct damage {
    const char *what;
    void      (*inflict)(mem_store *s);
} damage;

static void wrong_priority(mem_store *s)
{
    weir__mem_find(s, 1)->j.priority = 77;
}

static void wrong_state(mem_store *s)
{
    weir__mem_find(s, 1)->j.state = WEIR_STATE_DELAYED;
}

static void wrong_due(mem_store *s)
{
    weir__mem_find(s, 3)->j.promote_at += 5;
}

static void lost_from_its_type(mem_store *s)
{
    mem_job *m = weir__mem_find(s, 2);
    weir__tree_remove(&m->type->all, &m->in_all);
}

static void lost_its_key(mem_store *s)
{
    weir__table_remove(&s->unique, &weir__mem_find(s, 1)->by_unique);
}

static void lost_from_the_active(mem_store *s)
{
    s->active = NULL;
}

static void wrong_count(mem_store *s)
{
    weir__mem_type(s, "a")->in[WEIR_STATE_INACTIVE].n++;
}

static const damage damages[] = {
    { "priority", wrong_priority },
    { "state", wrong_state },
    { "due", wrong_due },
    { "list of its type", lost_from_its_type },
    { "unique key", lost_its_key },
    { "active", lost_from_the_active },
    { "count", wrong_count },
};

static void check_finds_and_mends_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        fixture *f = fixture_open("mem:");
        add_spec(f, &(weir_spec){ .type = "a", .unique = "k" });
        add(f, "a");
        add_spec(f, &(weir_spec){ .type = "b", .delay_ms = 9 });
        add(f, "c");
        take(f, "c");
        damages[i].inflict((mem_store *)f->store);
        const weir_report *r = check(f, false);
        if (!r->n)
            print_error("not found: %s\n", damages[i].what);
        assert_true(r->n > 0);
        assert_int_equal(r->mended, 0);
        r = check(f, true);
        assert_true(r->n > 0);
        assert_int_equal(r->mended, r->n);
        check_all_is_well(f);
        fixture_close(f);
    }
}

/* ---- looking for a priority ---- */

/* A page ends where so many were looked at: there may be more. */
static void one_call_looks_at_so_many_jobs(void **state)
{
    (void)state;
    static weir_spec  specs[WEIR_MAX_LOOK];
    static weir_added added[WEIR_MAX_LOOK];
    fixture          *f = fixture_open("mem:");
    for (size_t i = 0; i < WEIR_MAX_LOOK; i++)
        specs[i] = (weir_spec){ .type = "a", .delay_ms = 1000, .priority = i == 1 };
    CHECK_INT(add_many(f, specs, WEIR_MAX_LOOK, added), WEIR_OK);
    weir_query       q = { .state = WEIR_STATE_DELAYED, .by_priority = true, .priority = 1 };
    const weir_page *page = list(f, &q);
    CHECK_STR(ids_of(f, page), "2");
    CHECK(!page->more);                                 /* these were all */
    add_spec(f, &(weir_spec){ .type = "a", .delay_ms = 2000, .priority = 1 });
    page = list(f, &q);
    CHECK_STR(ids_of(f, page), "2");
    CHECK(page->more);
    CHECK_INT(page->next.id, WEIR_MAX_LOOK);
    q.after = page->next;
    CHECK_INT(list(f, &q)->job[0]->id, WEIR_MAX_LOOK + 1);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_survives_every_failed_allocation),
        cmocka_unit_test(a_store_that_cannot_be_opened_says_so),
        cmocka_unit_test(check_finds_and_mends_damage),
        cmocka_unit_test(one_call_looks_at_so_many_jobs),
    };
    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
