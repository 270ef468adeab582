/* case_suspect.c - a job whose worker died runs alone in its worker. */
#include "conformance/conformance.h"

static const char *const a_only[] = { "a", NULL };
static const char *const a_and_b[] = { "a", "b", NULL };

static uint64_t with_priority(fixture *f, const char *type, int32_t priority)
{
    return add_spec(f, &(weir_spec){ .type = type, .priority = priority });
}

/* The next job of the type is taken, and its worker dies. */
static uint64_t suspect(fixture *f, const char *type)
{
    const weir_job *j = take(f, type);
    CHECK(j);
    CHECK_INT(lose(f, j), WEIR_OK);
    return j->id;
}

static void a_worker_that_died(fixture *f)
{
    uint64_t        id = add_spec(f, &(weir_spec){ .type = "a", .max_lost = 1, .attempts = 3 });
    const weir_job *j = take(f, "a");
    events(f);
    CHECK_INT(lose(f, j), WEIR_OK);
    CHECK_EVENTS(f, "stalled 1, enqueue 1");
    CHECK_INT(lose(f, j), WEIR_ESTALE);
    const weir_job *now = get(f, id);
    CHECK_INT(now->state, WEIR_STATE_INACTIVE);
    CHECK_INT(now->lost, 1);
    CHECK_INT(now->attempts, 0);
    CHECK_STR(logs(f, id, 0, 0)->line[0].text, "stalled | worker " WORKER " was lost (1 of 1)");
    j = take(f, "a");
    events(f);
    CHECK_INT(lose(f, j), WEIR_OK);
    CHECK_EVENTS(f, "stalled 1, failed 1");
    now = get(f, id);
    CHECK_INT(now->state, WEIR_STATE_FAILED);
    CHECK_INT(now->lost, 2);                        /* as often as a worker died with it */
    CHECK_INT(now->attempts, 0);
    CHECK_STR(now->error, "stalled | worker " WORKER " was lost, and 1 before it: not tried again");
    check_all_is_well(f);
}

static void lost_with_its_lease_it_counts_the_same(fixture *f)
{
    uint64_t id = add_spec(f, &(weir_spec){ .type = "a", .max_lost = 2 });
    for (int i = 1; i <= 3; i++) {
        CHECK_INT(take(f, "a")->id, id);
        later(f, LEASE_MS);
        CHECK_INT(get(f, id)->lost, i);
    }
    CHECK_STATE(f, id, WEIR_STATE_FAILED);
    CHECK_INT(retry_job(f, id), WEIR_OK);           /* a new start: it is no suspect any more */
    CHECK_INT(get(f, id)->lost, 0);
}

static void an_idle_worker_gets_it_alone(fixture *f)
{
    const weir_job *got[10];
    bool            waits;
    uint64_t        first = add(f, "a"), second = add(f, "a");
    add(f, "a");
    CHECK_INT(suspect(f, "a"), first);
    CHECK_INT(take_idle(f, a_only, 10, got, &waits), 1);
    CHECK_INT(got[0]->id, first);
    CHECK(!waits);
    CHECK_INT(take_idle(f, a_only, 10, got, &waits), 2);
    CHECK_INT(got[0]->id, second);
    CHECK(!waits);
}

static void a_busy_worker_gets_those_behind_it(fixture *f)
{
    const weir_job *got[10];
    bool            waits;
    uint64_t        first = add(f, "a"), second = add(f, "a"), third = add(f, "a");
    suspect(f, "a");
    CHECK_INT(take_busy(f, a_only, 1, got, &waits), 1);
    CHECK_INT(got[0]->id, second);
    CHECK(waits);
    CHECK_INT(take_busy(f, a_only, 10, got, &waits), 1);
    CHECK_INT(got[0]->id, third);
    CHECK(waits);
    CHECK_INT(take_busy(f, a_only, 10, got, &waits), 0);
    CHECK(waits);
    CHECK_STATE(f, first, WEIR_STATE_INACTIVE);
    CHECK_INT(take_idle(f, a_only, 10, got, &waits), 1);
    CHECK_INT(got[0]->id, first);
    CHECK_INT(take_busy(f, a_only, 10, got, &waits), 0);
    CHECK(!waits);
    check_all_is_well(f);
}

static void others_before_it_are_given_without_it(fixture *f)
{
    const weir_job *got[10];
    bool            waits;
    uint64_t        last = with_priority(f, "a", 5);
    suspect(f, "a");
    uint64_t        best = with_priority(f, "a", -5), behind = with_priority(f, "a", 10);
    CHECK_INT(take_idle(f, a_only, 10, got, &waits), 2);
    CHECK_INT(got[0]->id, best);
    CHECK_INT(got[1]->id, behind);
    CHECK(waits);
    CHECK_STATE(f, last, WEIR_STATE_INACTIVE);
}

static void over_several_types(fixture *f)
{
    const weir_job *got[10];
    bool            waits;
    uint64_t        a1 = add(f, "a"), b1 = add(f, "b"), a2 = add(f, "a"), b2 = add(f, "b");
    suspect(f, "a");
    suspect(f, "b");
    CHECK_INT(take_busy(f, a_and_b, 10, got, &waits), 2);
    CHECK_INT(got[0]->id, a2);
    CHECK_INT(got[1]->id, b2);
    CHECK(waits);
    CHECK_INT(take_idle(f, a_and_b, 10, got, &waits), 1);
    CHECK_INT(got[0]->id, a1);
    CHECK_INT(take_idle(f, a_and_b, 10, got, &waits), 1);
    CHECK_INT(got[0]->id, b1);
}

static void with_a_deadline_and_with_much_data(fixture *f)
{
    const weir_job *got[10];
    bool            waits;
    char            data[20000];
    memset(data, ' ', sizeof data);
    data[0] = '[';
    data[sizeof data - 1] = ']';
    uint64_t first = add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + 1000000 });
    uint64_t second = add_spec(f, &(weir_spec){ .type = "a", .data = data,
                                                .data_len = sizeof data });
    uint64_t third = add_spec(f, &(weir_spec){ .type = "a", .deadline_at = f->now + 1000000 });
    uint64_t fourth = add_spec(f, &(weir_spec){ .type = "b", .data = data,
                                                .data_len = sizeof data });
    CHECK_INT(suspect(f, "a"), first);
    CHECK_INT(take_busy(f, a_only, 1, got, &waits), 1);
    CHECK_INT(got[0]->id, second);
    CHECK(waits);
    CHECK_INT(lose(f, got[0]), WEIR_OK);
    CHECK_INT(take_busy(f, a_and_b, 2, got, &waits), 2);
    CHECK_INT(got[0]->id, third);
    CHECK_INT(got[1]->id, fourth);
    CHECK(waits);
    CHECK_INT(take_idle(f, a_and_b, 2, got, &waits), 1);
    CHECK_INT(got[0]->id, first);
    CHECK_INT(take_idle(f, a_and_b, 2, got, &waits), 1);
    CHECK_INT(got[0]->id, second);
}

static void a_paused_type_has_none_that_waits(fixture *f)
{
    const weir_job *got[10];
    bool            waits;
    add(f, "a");
    suspect(f, "a");
    CHECK_INT(set_paused(f, "a", true), WEIR_OK);
    CHECK_INT(take_busy(f, a_only, 10, got, &waits), 0);
    CHECK(!waits);
    CHECK_INT(take_idle(f, a_only, 10, got, &waits), 0);
}

static void the_next_job_of_an_end(fixture *f)
{
    const char     *type = "a";
    weir_job       *job = NULL;
    uint64_t        first = add(f, "a"), second = add(f, "a");
    const weir_job *held = take(f, "a");
    CHECK_INT(suspect(f, "a"), second);
    weir_op op = { .kind = WEIR_OP_FINISH,
                   .u.finish = { .id = held->id, .delivery = held->delivery,
                                 .next = { .types = &type, .n_types = 1, .n = 1, .busy = true,
                                           .lease_ms = LEASE_MS, .worker = WORKER,
                                           .jobs = &job } } };
    CHECK_INT(run(f, &op), WEIR_OK);
    CHECK_INT(op.u.finish.next.n_jobs, 0);
    CHECK(op.u.finish.next.suspect_waits);
    CHECK_STATE(f, first, WEIR_STATE_COMPLETE);
    add(f, "b");
    held = take(f, "b");
    const weir_job *next;
    CHECK_INT(finish_and_take(f, held, "a", &next), WEIR_OK);
    CHECK(next);
    CHECK_INT(next->id, second);
}

/* Several takes in one batch: a store may make one step of them. */
static void takes_side_by_side(fixture *f)
{
    enum { N = 3 };
    weir_job *jobs[N][4] = { { 0 } };
    weir_op   ops[N], *all[N];
    for (int i = 0; i < 7; i++)
        add(f, "a");
    uint64_t id = suspect(f, "a");
    for (size_t i = 0; i < N; i++) {
        ops[i] = (weir_op){ .kind = WEIR_OP_TAKE, .now_ms = f->now,
                            .u.take = { .types = a_only, .n_types = 1, .n = 2, .worker = WORKER,
                                        .lease_ms = LEASE_MS, .busy = i != 1, .jobs = jobs[i] } };
        all[i] = &ops[i];
        CHECK_INT(weir__op_check(&ops[i], NULL), WEIR_OK);
    }
    CHECK_INT(run_batch(f, all, N), WEIR_OK);
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(ops[i].err.code, WEIR_OK);
        CHECK_INT(ops[i].u.take.n_jobs, i == 1 ? 1 : 2);
        CHECK_INT(ops[i].u.take.suspect_waits, i == 0);
        for (size_t k = 0; k < ops[i].u.take.n_jobs; k++) {
            CHECK_INT(jobs[i][k]->id == id, i == 1);
            weir_job_free(jobs[i][k]);
        }
    }
}

/* Takes of one batch that want the same: a store may make one step of them. Those that had enough
 * before the suspect passed over nothing. */
static void only_takes_that_reach_it_pass_over_it(fixture *f)
{
    enum { N = 4 };
    static const size_t gets[N] = { 2, 2, 2, 0 };
    weir_job           *jobs[N][2] = { { 0 } };
    weir_op             ops[N], *all[N];
    with_priority(f, "a", 5);
    suspect(f, "a");
    for (int i = 0; i < 3; i++)
        with_priority(f, "a", -5);
    for (int i = 0; i < 3; i++)
        with_priority(f, "a", 10);
    for (size_t i = 0; i < N; i++) {
        ops[i] = (weir_op){ .kind = WEIR_OP_TAKE, .now_ms = f->now,
                            .u.take = { .types = a_only, .n_types = 1, .n = 2, .worker = WORKER,
                                        .lease_ms = LEASE_MS, .busy = true, .jobs = jobs[i] } };
        all[i] = &ops[i];
        CHECK_INT(weir__op_check(&ops[i], NULL), WEIR_OK);
    }
    CHECK_INT(run_batch(f, all, N), WEIR_OK);
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(ops[i].err.code, WEIR_OK);
        CHECK_INT(ops[i].u.take.n_jobs, gets[i]);
        CHECK_INT(ops[i].u.take.suspect_waits, i > 0);
        for (size_t k = 0; k < ops[i].u.take.n_jobs; k++)
            weir_job_free(jobs[i][k]);
    }
}

/* The same of ends; one of them is stale, and takes nothing. */
static void only_ends_whose_take_reaches_it_pass_over_it(fixture *f)
{
    enum { N = 4, STALE = 2 };
    const weir_job *held[N];
    weir_job       *jobs[N] = { 0 };
    weir_op         ops[N], *all[N];
    with_priority(f, "a", 5);
    suspect(f, "a");
    with_priority(f, "a", -5);
    with_priority(f, "a", 10);
    for (size_t i = 0; i < N; i++) {
        add(f, "b");
        held[i] = take(f, "b");
        CHECK(held[i]);
        ops[i] = (weir_op){ .kind = WEIR_OP_FINISH, .now_ms = f->now,
                            .u.finish = { .id = held[i]->id,
                                          .delivery = held[i]->delivery + (i == STALE),
                                          .next = { .types = a_only, .n_types = 1, .n = 1,
                                                    .worker = WORKER, .lease_ms = LEASE_MS,
                                                    .busy = true, .jobs = &jobs[i] } } };
        all[i] = &ops[i];
        CHECK_INT(weir__op_check(&ops[i], NULL), WEIR_OK);
    }
    CHECK_INT(run_batch(f, all, N), WEIR_OK);
    for (size_t i = 0; i < N; i++) {
        const weir_op_take *next = &ops[i].u.finish.next;
        CHECK_INT(ops[i].err.code, i == STALE ? WEIR_ESTALE : WEIR_OK);
        CHECK_INT(next->n_jobs, i < 2);
        CHECK_INT(next->suspect_waits, i > 0 && i != STALE);
        if (next->n_jobs)
            weir_job_free(jobs[i]);
    }
}

static void many_of_them_before_others(fixture *f)
{
    enum { N = WEIR_MAX_PASSED + 50 };
    const weir_job *got[N];
    bool            waits;
    for (int i = 0; i < N; i++)
        add(f, "a");
    for (size_t n = 0; n < N;) {
        size_t more = take_some(f, a_only, N, got);
        for (size_t i = 0; i < more; i++)
            CHECK_INT(lose(f, got[i]), WEIR_OK);
        n += more;
        if (more == 1)
            break;
    }
    uint64_t last = add(f, "a");
    CHECK(take_busy(f, a_only, 1, got, &waits) <= 1);
    CHECK(waits);
    for (int i = 0; i < N - WEIR_MAX_PASSED + 1; i++) {
        CHECK_INT(take_idle(f, a_only, 9, got, &waits), 1);
        CHECK_INT(finish(f, got[0]), WEIR_OK);
    }
    if (state_of(f, last) == WEIR_STATE_INACTIVE) {
        CHECK_INT(take_busy(f, a_only, 1, got, &waits), 1);
        CHECK_INT(got[0]->id, last);
        CHECK(waits);
    }
    check_all_is_well(f);
}

const conformance_case cases_suspect[] = {
    CASE(a_worker_that_died),
    CASE(lost_with_its_lease_it_counts_the_same),
    ORDERED_CASE(an_idle_worker_gets_it_alone),
    ORDERED_CASE(a_busy_worker_gets_those_behind_it),
    ORDERED_CASE(others_before_it_are_given_without_it),
    ORDERED_CASE(over_several_types),
    ORDERED_CASE(with_a_deadline_and_with_much_data),
    CASE(a_paused_type_has_none_that_waits),
    CASE(the_next_job_of_an_end),
    ORDERED_CASE(takes_side_by_side),
    ORDERED_CASE(only_takes_that_reach_it_pass_over_it),
    ORDERED_CASE(only_ends_whose_take_reaches_it_pass_over_it),
    ORDERED_CASE(many_of_them_before_others),
    { 0 }
};
