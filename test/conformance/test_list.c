/* test_list.c - lists of several states and types, between two times and sorted, on every store:
 * each is compared, page by page, with what a plain list of all jobs makes expect.
 *
 *   test_list [URL...]      as test_conformance */
#include "support/runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/store_fixture.h"

enum { JOBS = 150, QUERIES = 120, SPAN_MS = 4000 };

static const char *const types[] = { "a", "b", "c" };

/* ---- jobs of all kinds ---- */

/* The same numbers in each run. */
static uint64_t random_number(void)
{
    static uint64_t state = 20261119;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 15;
}

static void end_one(rt *t, weir_job *job, uint64_t how)
{
    rt_later(t, (int64_t)(how % 40));
    if (how % 4 == 0)
        OK(weir_job_done(job, "1", 0, &t->err));
    else if (how % 4 == 1)
        assert_int_equal(weir_job_fail(job, "why"), WEIR_EJOB);
    else if (how % 4 == 2)
        OK(weir_cancel(t->q, job->id, &t->err));
    weir_job_free(job);                         /* else it goes on */
}

static void take_one(rt *t, uint64_t n)
{
    weir_job   *job;
    size_t      got;
    weir_taking what = { .types = (const char *[]){ types[n % 3], NULL }, .n = 1,
                         .lease_ms = 3600 * 1000 };
    OK(weir_take(t->q, &what, &job, &got, &t->err));
    if (got)
        end_one(t, job, n / 3);
}

static void make_jobs(rt *t)
{
    static const int32_t priority[] = { 0, 0, 10, -10 };
    for (uint64_t i = 0; i < JOBS; i++) {
        uint64_t n = random_number();
        rt_add(t, &(weir_spec){ .type = types[n % 3], .priority = priority[n / 3 % 4],
                                .attempts = 1 + (int32_t)(n / 12 % 2), .search = n / 24 % 2,
                                .data = n / 48 % 2 ? "{\"to\":\"ann\"}" : "{\"to\":\"bob\"}",
                                .delay_ms = n / 96 % 4 ? 0 : 1 + (int64_t)(n / 384 % 90000) });
        rt_later(t, (int64_t)(n / 96 % (SPAN_MS / JOBS)));
        if (n / 7 % 3)
            take_one(t, n / 21);
    }
    size_t  changed = 1;
    int64_t next_at = 0;
    while (changed || next_at <= weir_now(t->q))        /* then nothing moves any more */
        OK(weir_tick(t->q, WEIR_MAX_PAGE, &changed, &next_at, &t->err));
}

/* ---- what to expect ---- */

typedef struct wanted {
    uint32_t    states;
    const char *types[4];
    weir_query  query;          /* the rest, without states and types */
} wanted;

static const wanted *sorting;       /* of compare() */

static bool is_ended(weir_state s)
{
    return s == WEIR_STATE_COMPLETE || s == WEIR_STATE_FAILED || s == WEIR_STATE_CANCELLED;
}

static int64_t usual_key(const weir_job *j)
{
    uint32_t s = sorting->states;
    bool     one = s && !(s & (s - 1)), ended = s;
    for (int state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++)
        ended = ended && (!(s & WEIR_BIT(state)) || is_ended((weir_state)state));
    if (sorting->query.search || (!one && !ended))
        return 0;
    return j->state == WEIR_STATE_INACTIVE ? j->priority : weir_job_moment(j);
}

static int64_t key(const weir_job *j)
{
    switch (sorting->query.sort) {
    case WEIR_SORT_USUAL:    return usual_key(j);
    case WEIR_SORT_CREATED:  return j->created_at;
    case WEIR_SORT_STARTED:  return j->started_at;
    case WEIR_SORT_ENDED:    return j->finished_at;
    case WEIR_SORT_TOOK:     return j->duration_ms;
    case WEIR_SORT_ATTEMPTS: return j->attempts;
    case WEIR_SORT_PRIORITY: return j->priority;
    default:                 return 0;
    }
}

static int compare(const void *a, const void *b)
{
    const weir_job *x = *(weir_job *const *)a, *y = *(weir_job *const *)b;
    int64_t         k = key(x), l = key(y);
    int             order = k != l ? (k < l ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
    return sorting->query.descending ? -order : order;
}

static bool fits(const wanted *w, const weir_job *j)
{
    const weir_query *q = &w->query;
    int64_t           at = weir_job_moment(j);
    bool              typed = !w->types[0];
    for (size_t i = 0; w->types[i]; i++)
        typed = typed || !strcmp(w->types[i], j->type);
    return typed && (!w->states || w->states & WEIR_BIT(j->state)) &&
           (!q->since || at >= q->since) && (!q->until || at < q->until) &&
           (!q->by_priority || j->priority == q->priority) &&
           (!q->search || (j->search && strstr(j->data, q->search)));
}

/* ---- the same by pages ---- */

static void say_query(const wanted *w, size_t limit)
{
    const weir_query *q = &w->query;
    print_message("states %#x types %s%s%s since %lld until %lld sort %s%s%s%s limit %zu\n",
                  (unsigned)w->states, w->types[0] ? w->types[0] : "-",
                  w->types[0] && w->types[1] ? w->types[1] : "",
                  w->types[0] && w->types[1] && w->types[2] ? w->types[2] : "",
                  (long long)q->since, (long long)q->until, weir_sort_name(q->sort),
                  q->descending ? " desc" : "", q->search ? " search" : "",
                  q->by_priority ? " priority" : "", limit);
}

static void check_pages(rt *t, const wanted *w, weir_job *const *want, size_t n, size_t limit)
{
    weir_query q = w->query;
    size_t     got = 0;
    q.limit = limit;
    if (w->states && !(w->states & (w->states - 1)) && w->query.limit) {
        while (!(w->states >> q.state & 1))
            q.state++;
    } else {
        q.states = w->states;
    }
    if (w->types[0])
        q.types = w->types;
    for (bool more = true; more;) {
        weir_page *page;
        OK(weir_list(t->q, &q, &page, &t->err));
        bool same = page->n <= limit;
        for (size_t i = 0; same && i < page->n; i++, got++)
            same = got < n && page->job[i]->id == want[got]->id &&
                   !page->job[i]->type == q.ids_only;
        if (!same || (!page->more && got != n)) {
            say_query(w, limit);
            fail_msg("%zu of %zu: %s", got, n, same ? "jobs are missing" : "another job");
        }
        more = page->more;
        q.after = page->next;
        weir_page_free(page);
    }
}

static wanted random_query(const weir_page *all)
{
    uint64_t n = random_number();
    wanted   w = { .states = (n & 3) ? (uint32_t)(n >> 2 & 0x7e) : 0,
                   .query = { .sort = n >> 9 & 1 ? (weir_sort)((n >> 10) % WEIR_SORT_COUNT) : 0,
                              .descending = n >> 14 & 1, .ids_only = n >> 15 & 1,
                              .search = (n >> 16 & 7) ? NULL : "ann",
                              .by_priority = !(n >> 19 & 7), .priority = n >> 22 & 1 ? 10 : 0,
                              .limit = n >> 23 & 1 } };
    for (size_t i = 0, k = 0; n >> 24 & 1 && i < 3; i++)
        if (n >> (25 + i) & 1)
            w.types[k++] = types[i];
    if (n >> 28 & 1)
        w.query.since = weir_job_moment(all->job[(n >> 30) % all->n]);
    if (n >> 29 & 1)
        w.query.until = weir_job_moment(all->job[(n >> 40) % all->n]);
    return w;
}

static void pages_are_as_a_plain_list_says(rt *t)
{
    weir_page *all;
    weir_job  *want[JOBS];
    make_jobs(t);
    OK(weir_list(t->q, &(weir_query){ .limit = WEIR_MAX_PAGE }, &all, &t->err));
    assert_int_equal(all->n, JOBS);
    for (int i = 0; i < QUERIES; i++) {
        wanted w = random_query(all);
        size_t n = 0;
        for (size_t k = 0; k < all->n; k++)
            if (fits(&w, all->job[k]))
                want[n++] = all->job[k];
        sorting = &w;
        qsort(want, n, sizeof *want, compare);
        check_pages(t, &w, want, n, 1 + (size_t)(random_number() % 20));
        check_pages(t, &w, want, n, WEIR_MAX_PAGE);
    }
    weir_page_free(all);
}

static void a_page_goes_on_though_its_last_job_is_gone(rt *t)
{
    weir_query q = { .sort = WEIR_SORT_ATTEMPTS, .limit = 2 };
    weir_page *page;
    for (int i = 0; i < 6; i++)
        rt_add_type(t, "a");
    OK(weir_list(t->q, &q, &page, &t->err));
    assert_int_equal(page->n, 2);
    assert_true(page->more);
    OK(weir_remove(t->q, page->job[1]->id, &t->err));
    uint64_t last = page->job[1]->id;
    q.after = page->next;
    weir_page_free(page);
    OK(weir_list(t->q, &q, &page, &t->err));
    assert_int_equal(page->n, 2);
    assert_true(page->job[0]->id > last);
    weir_page_free(page);
}

static void add_lot(rt *t, size_t n, const char *type, int64_t delay_ms)
{
    static weir_spec  spec[WEIR_MAX_ADD];
    static weir_added added[WEIR_MAX_ADD];
    for (size_t i = 0; i < WEIR_MAX_ADD; i++)
        spec[i] = (weir_spec){ .type = type, .delay_ms = delay_ms };
    for (size_t some; n; n -= some) {
        some = n < WEIR_MAX_ADD ? n : WEIR_MAX_ADD;
        OK(weir_add_many(t->q, spec, some, NULL, added, &t->err));
    }
}

/* How many a list has, page by page; their ids rise. */
static size_t count_pages(rt *t, weir_query q, size_t *pages)
{
    size_t     n = 0;
    uint64_t   last = 0;
    weir_page *page;
    *pages = 0;
    for (bool more = true; more; ++*pages) {
        OK(weir_list(t->q, &q, &page, &t->err));
        for (size_t i = 0; i < page->n; i++) {
            assert_true(page->job[i]->id > last);
            last = page->job[i]->id;
        }
        n += page->n;
        more = page->more;
        q.after = page->next;
        weir_page_free(page);
    }
    return n;
}

/* So many that those of two states are not gathered, but looked for among all. */
static void many_of_several_states_are_walked_through(rt *t)
{
    enum { WAITING = 12000, LATER = 2 * WEIR_MAX_LOOK };
    const weir_query q = { .states = WEIR_BIT(WEIR_STATE_INACTIVE) | WEIR_BIT(WEIR_STATE_ACTIVE),
                           .limit = WEIR_MAX_PAGE, .ids_only = true };
    size_t pages;
    add_lot(t, LATER, "later", 3600 * 1000);
    add_lot(t, WAITING, "now", 0);
    assert_int_equal(count_pages(t, q, &pages), WAITING);
    assert_true(pages >= WAITING / WEIR_MAX_PAGE);      /* some are empty, if ids are in order */
}

static void too_many_are_not_sorted(rt *t)
{
    weir_page *page;
    weir_query q = { .sort = WEIR_SORT_TOOK };
    if (strcmp(t->url, "mem:") != 0)                        /* it takes long, and is the same */
        return;
    add_lot(t, WEIR_MAX_SORT, "a", 0);
    OK(weir_list(t->q, &q, &page, &t->err));
    assert_true(page->more);
    weir_page_free(page);
    rt_add_type(t, "a");
    assert_int_equal(weir_list(t->q, &q, &page, &t->err), WEIR_ELIMIT);
    assert_null(page);
}

static void what_is_wrong_is_named(rt *t)
{
    static const char *const twice[] = { "a", "a", NULL }, *const none[] = { NULL };
    static const struct {
        weir_query  query;
        const char *field;
    } wrong[] = {
        { { .state = WEIR_STATE_FAILED, .states = WEIR_BIT(WEIR_STATE_ACTIVE) }, "states" },
        { { .states = WEIR_BIT(WEIR_STATE_ANY) }, "states" },
        { { .states = WEIR_BIT(WEIR_STATE_COUNT) }, "states" },
        { { .type = "a", .types = twice }, "types" },
        { { .types = twice }, "types[1]" },
        { { .types = none }, "types" },
        { { .sort = WEIR_SORT_COUNT }, "sort" },
        { { .since = -1 }, "since" },
        { { .until = INT64_MAX }, "until" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_page *page = (weir_page *)&t->err;
        assert_int_equal(weir_list(t->q, &wrong[i].query, &page, &t->err), WEIR_EINVAL);
        assert_string_equal(t->err.field, wrong[i].field);
        assert_null(page);
    }
}

/* ---- every case on every store ---- */

static const struct list_case {
    const char *name;
    void      (*run)(rt *t);
} cases[] = {
    { "pages_are_as_a_plain_list_says", pages_are_as_a_plain_list_says },
    { "a_page_goes_on_though_its_last_job_is_gone", a_page_goes_on_though_its_last_job_is_gone },
    { "many_of_several_states_are_walked_through", many_of_several_states_are_walked_through },
    { "too_many_are_not_sorted", too_many_are_not_sorted },
    { "what_is_wrong_is_named", what_is_wrong_is_named },
};

typedef struct run_of_case {
    const char             *url;
    const struct list_case *one;
    char                    name[160];
} run_of_case;

static void run_case(void **state)
{
    const run_of_case *of = *state;
    rt                 t;
    rt_open(&t, of->url, true);
    of->one->run(&t);
    rt_check_and_close(&t);
}

int main(int argc, char **argv)
{
    char **urls;
    size_t n_urls = store_urls(argc, argv, &urls), n = 0, n_cases = sizeof cases / sizeof *cases;
    run_of_case       *runs = calloc(n_urls * n_cases + 1, sizeof *runs);
    struct CMUnitTest *tests = calloc(n_urls * n_cases + 1, sizeof *tests);
    if (!urls || !runs || !tests)
        return 2;
    for (size_t u = 0; u < n_urls; u++) {
        for (size_t c = 0; c < n_cases && strncmp(urls[u], "shared:", 7) != 0; c++) {
            runs[n] = (run_of_case){ .url = urls[u], .one = &cases[c] };
            snprintf(runs[n].name, sizeof runs[n].name, "%s: %s", urls[u], cases[c].name);
            tests[n] = (struct CMUnitTest){ .name = runs[n].name, .test_func = run_case,
                                            .initial_state = &runs[n] };
            n++;
        }
    }
    int failed = _cmocka_run_group_tests("list", tests, n, NULL, NULL);
    free(tests);
    free(runs);
    free(urls);
    return failed ? 1 : 0;
}
