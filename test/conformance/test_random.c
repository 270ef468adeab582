/* test_random.c - the same random operations on mem and on another store must have the same
 * answers.
 *
 *   test_random [--seed N] [--ops M] [--stores A,B] [--shrink]
 *
 * The seed is printed; with it a run is the same again. Each store is compared with mem: codes and
 * messages, all outputs, whole jobs, events, lists, statistics, logs; and neither may be late with
 * its wake-ups. Stores that keep jobs are closed and opened in between. On a difference: the seed,
 * the last operations and both answers; --shrink then looks for fewer operations that show one. */
#include "conformance/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "support/redis_rig.h"

enum {
    DEFAULT_OPS = 120000,
    SLOW_SHARE = 20,        /* a store that syncs gets this much fewer, */
    FAR_SHARE = 6,          /* and one in another process this much */
    LAST_OPS = 20,          /* shown with a difference */
    CHECK_EVERY = 150,      /* batches */
    PURGE_EVERY = 40,
    PURGE_ABOVE = 300,      /* jobs */
    REOPEN_ONE_IN = 250,
    SHRINK_SECONDS = 60
};

/* One of the two stores. */
typedef struct side {
    fixture *f;
    paging   pages;
    attempt  attempts[MAX_BATCH];
    int64_t  wake;                      /* when it said a TICK is wanted */
    weir_buf answer;                    /* to the last operation or batch looked at */
} side;

typedef struct trial {
    uint64_t    seed;
    size_t      max_ops;
    const char *url;
    const bool *skip;                   /* batches to leave out; NULL: none */
    size_t      n_skip;                 /* with skip: how many batches there are at all */
    bool        quiet;
    /* out */
    size_t      ops, batches;
    size_t      answers[WEIR_OP_COUNT][WEIR_CODE_COUNT];
    bool        differs;
} trial;

typedef struct duel {
    trial   *t;
    side     left, right;               /* mem, and the other one */
    model    model;
    plan     plans[MAX_BATCH];
    size_t   n;                         /* operations in this batch */
    char    *last[LAST_OPS];
    size_t   n_last;
    int64_t  now;
} duel;

/* ---- telling of a difference ---- */

static void remember(duel *d, const plan *p)
{
    weir_buf text = { 0 };
    weir__buf_printf(&text, "%zu: ", d->t->ops);
    plan_describe(p, &text);
    size_t at = d->n_last++ % LAST_OPS;
    free(d->last[at]);
    d->last[at] = weir__buf_steal(&text, NULL);
}

static void differ(duel *d, const char *what, const char *left, const char *right)
{
    trial *t = d->t;
    if (t->differs)
        return;
    t->differs = true;
    if (t->quiet)
        return;
    printf("# %s differs in batch %zu, at about operation %zu\n", what, t->batches, t->ops);
    if (!t->skip)
        printf("# again: --seed %" PRIu64 " --ops %zu --stores '%s'\n", t->seed, t->ops, t->url);
    for (size_t i = d->n_last > LAST_OPS ? d->n_last - LAST_OPS : 0; i < d->n_last; i++)
        printf("#   %s\n", d->last[i % LAST_OPS]);
    printf("# ---- mem:\n%s\n# ---- %s\n%s\n# ----\n", left, t->url, right);
}

/* As it is after a way on which only UTF-8 goes. */
static void make_utf8(weir_buf *text)
{
    weir_buf out = { 0 };
    weir__json_string(&out, text->data ? text->data : "", text->len);
    weir__buf_fini(text);
    *text = out;
}

static void compare(duel *d, const char *what)
{
    if (!keeps_bytes(d->right.f)) {
        make_utf8(&d->left.answer);
        make_utf8(&d->right.answer);
    }
    const char *left = d->left.answer.len ? d->left.answer.data : "";
    const char *right = d->right.answer.len ? d->right.answer.data : "";
    if (d->left.answer.len != d->right.answer.len || memcmp(left, right, d->left.answer.len) != 0)
        differ(d, what, left, right);
}

/* ---- running ---- */

/* Check all, run those that pass. */
static void run_side(side *s, const plan *plans, size_t n)
{
    weir_op *ops[MAX_BATCH];
    size_t   passed = 0, ticks = 0;
    for (size_t i = 0; i < n; i++) {
        attempt *a = &s->attempts[i];
        attempt_init(a, &plans[i], &s->pages);
        a->refused = weir__op_check(&a->op, &a->op.err);
        if (!a->refused)
            ops[passed++] = &a->op;
    }
    s->f->due = INT64_MAX;
    weir_code rc = run_batch(s->f, ops, passed);
    if (rc) {
        for (size_t i = 0; i < passed; i++)
            ops[i]->err = s->f->err;
        return;
    }
    int64_t next_at = INT64_MAX;
    for (size_t i = 0; i < passed; i++) {
        if (ops[i]->kind == WEIR_OP_TICK && !ops[i]->err.code) {
            next_at = ops[i]->u.tick.next_at;
            ticks++;
        }
    }
    s->wake = ticks ? next_at : s->wake;
    if (s->f->due < s->wake)
        s->wake = s->f->due;
}

/* A TICK that finds work must have been asked for by then. */
static void check_in_time(duel *d, const side *s, int64_t wake)
{
    const weir_op *first = &s->attempts[0].op;
    if (!asks_for_ticks(s->f) || rig_is_cut(d->t->url) || first->kind != WEIR_OP_TICK ||
        first->err.code || !first->u.tick.changed || wake <= d->now)
        return;
    char text[sizeof s->f->url + 200];
    snprintf(text, sizeof text, "%s: found %zu jobs due at %" PRId64 ", but wanted no TICK before %"
             PRId64, s->f->url, first->u.tick.changed, d->now - FIXTURE_START,
             wake - FIXTURE_START);
    differ(d, "what is due", s == &d->left ? text : "", s == &d->right ? text : "");
}

/* A line of what happened: see fixture_emit(). */
typedef struct told {
    unsigned long long job;
    const char        *at;
    size_t             len;
} told;

static int by_job_and_time(const void *a, const void *b)
{
    const told *x = a, *y = b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Job by job, and what happened to each in its order. Where ends share a step, and then takes, the
 * jobs of a batch come in another order than in mem. */
static void sort_events(weir_buf *text)
{
    told    *all = calloc(text->len + 1, sizeof *all);
    weir_buf out = { 0 };
    size_t   n = 0;
    for (const char *at = text->data, *end = at + text->len; all && at && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t      len = stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);
        told        line = { .at = at, .len = len };
        if (sscanf(at, "%*[^0-9\t\n]%llu\t", &line.job) == 1 || !n)
            all[n++] = line;
        else
            all[n - 1].len += len;              /* a text of several lines */
        at += len;
    }
    if (n)
        qsort(all, n, sizeof *all, by_job_and_time);
    for (size_t i = 0; i < n; i++)
        weir__buf_add(&out, all[i].at, all[i].len);
    free(all);
    weir__buf_fini(text);
    *text = out;
}

static void take_events(side *s)
{
    weir__buf_clear(&s->answer);
    weir__buf_add(&s->answer, s->f->events.data ? s->f->events.data : "", s->f->events.len);
    weir__buf_clear(&s->f->events);
}

static void run_both(duel *d)
{
    int64_t left_wake = d->left.wake, right_wake = d->right.wake;
    d->left.f->now = d->right.f->now = d->now;
    run_side(&d->left, d->plans, d->n);
    run_side(&d->right, d->plans, d->n);
    for (size_t i = 0; i < d->n; i++) {
        attempt *l = &d->left.attempts[i], *r = &d->right.attempts[i];
        d->t->ops++;
        remember(d, &d->plans[i]);
        weir__buf_clear(&d->left.answer);
        weir__buf_clear(&d->right.answer);
        attempt_answer(l, &d->left.answer);
        attempt_answer(r, &d->right.answer);
        if (l->op.kind != WEIR_OP_TICK || !rig_is_cut(d->t->url))
            compare(d, weir__op_row(&l->op)->name);      /* a repeated TICK changes less */
        d->t->answers[l->op.kind][l->op.err.code]++;
        if (l->op.kind == WEIR_OP_CHECK && !l->op.err.code && l->op.u.check.report->n)
            differ(d, "a damaged store", d->left.answer.data, "");
        attempt_learn(l, &d->model);
        attempt_page(l, &d->left.pages);
        attempt_page(r, &d->right.pages);
    }
    check_in_time(d, &d->left, left_wake);
    check_in_time(d, &d->right, right_wake);
    for (size_t i = 0; i < d->n; i++) {
        attempt_free(&d->left.attempts[i]);
        attempt_free(&d->right.attempts[i]);
    }
    take_events(&d->left);
    take_events(&d->right);
    if (rig_is_shared(d->t->url)) {
        sort_events(&d->left.answer);
        sort_events(&d->right.answer);
    }
    if (!rig_is_cut(d->t->url))         /* with a connection, events are lost */
        compare(d, "events");
}

static void run_plan(duel *d, const weir_op *op)
{
    d->plans[0] = (plan){ .op = *op };
    d->plans[0].op.now_ms = d->now;
    d->n = 1;
    run_both(d);
}

/* ---- from time to time ---- */

static void check_both(duel *d)
{
    run_plan(d, &(weir_op){ .kind = WEIR_OP_CHECK });
    run_plan(d, &(weir_op){ .kind = WEIR_OP_STATS });
    run_plan(d, &(weir_op){ .kind = WEIR_OP_INFO });
    run_plan(d, &(weir_op){ .kind = WEIR_OP_LIST, .u.list.query.limit = WEIR_MAX_PAGE });
}

/* Remove the oldest jobs, so that there are never many. */
static void purge(duel *d)
{
    const weir_page *page = list(d->left.f, &(weir_query){ .ids_only = true,
                                                           .limit = WEIR_MAX_PAGE });
    size_t surplus = page && page->n > PURGE_ABOVE ? page->n - PURGE_ABOVE / 2 : 0;
    for (size_t i = 0; i < surplus && !d->t->differs; i += d->n) {
        d->n = surplus - i < MAX_BATCH ? surplus - i : MAX_BATCH;
        for (size_t k = 0; k < d->n; k++)
            d->plans[k] = (plan){ .op = { .kind = WEIR_OP_REMOVE, .now_ms = d->now,
                                          .u.remove = { page->job[i + k]->id } } };
        run_both(d);
    }
    release_held(d->left.f);
}

static void tick_all(duel *d, side *s)
{
    do {
        weir_op op = { .kind = WEIR_OP_TICK };
        if (run(s->f, &op)) {
            differ(d, s->f->url, s->f->err.msg, "");
            return;
        }
        s->wake = op.u.tick.next_at;
    } while (s->wake <= d->now);
}

/* mem cannot be opened again: its leases are made to end instead. */
static void end_leases(duel *d)
{
    fixture         *mem = d->left.f;
    const weir_page *page = list(mem, &(weir_query){ .state = WEIR_STATE_ACTIVE,
                                                     .limit = WEIR_MAX_PAGE });
    mem->now = d->now;
    for (size_t i = 0; page && i < page->n; i++)
        renew(mem, page->job[i], 1);
    release_held(mem);
    d->now++;
}

/* Opening what one process owns deals with active jobs as TICK does with lost leases. What remains
 * to be done by TICK is the same then; together, the two must have told the same. */
static void reopen_right(duel *d)
{
    if (owned(d->right.f))
        end_leases(d);
    d->left.f->now = d->right.f->now = d->now;
    if (reopen(d->right.f)) {
        differ(d, "opening", "", d->right.f->err.msg);
        return;
    }
    tick_all(d, &d->left);
    tick_all(d, &d->right);
    take_events(&d->left);
    take_events(&d->right);
    if (!rig_is_cut(d->t->url))
        compare(d, "events of opening");
    check_both(d);
}

static int64_t step(chance *c)
{
    size_t kind = below(c, 100);
    if (kind < 55)
        return 0;
    if (kind < 90)
        return (int64_t)below(c, 40);
    if (kind < 98)
        return (int64_t)below(c, 900);
    if (kind < 99)
        return one_in(c, 20) ? WEIR_TOKEN_MS : 6000;
    return -(int64_t)below(c, 50);
}

/* A batch that is repeated answers reads and takes with the jobs as they are behind all of it. So
 * over a line that is cut, what reads goes alone, and behind a take come only takes and ends. */
static size_t repeatable(const duel *d, size_t n)
{
    size_t k = 0;
    for (bool takes = false; k < n; k++) {
        const weir_op *op = &d->plans[k].op;
        bool           ends = op->kind == WEIR_OP_FINISH;
        if (!weir__op_writes(op) || (takes && !ends && op->kind != WEIR_OP_TAKE))
            break;
        takes = takes || op->kind == WEIR_OP_TAKE || (ends && op->u.finish.next.n);
    }
    return k ? k : 1;
}

static void one_batch(duel *d, size_t number)
{
    chance c = { .state = d->t->seed * 1000003 + number };   /* its own: batches can be left out */
    chance_next(&c);
    d->now += step(&c);
    size_t n = one_in(&c, 3) ? 1 : 1 + below(&c, MAX_BATCH);
    bool   ends = d->model.n_held && one_in(&c, 6);
    if (ends && n > d->model.n_held)
        n = d->model.n_held;
    for (size_t i = 0; i < n; i++) {
        if (ends)
            plan_end(&d->plans[i], &d->model, i, d->now);
        else
            plan_op(&d->plans[i], &c, &d->model, d->now);
    }
    d->n = rig_is_cut(d->t->url) ? repeatable(d, n) : n;
    run_both(d);
    if (!d->t->differs && number % CHECK_EVERY == CHECK_EVERY - 1)
        check_both(d);
    if (!d->t->differs && number % PURGE_EVERY == PURGE_EVERY - 1)
        purge(d);
    if (!d->t->differs && persistent(d->right.f) && one_in(&c, REOPEN_ONE_IN))
        reopen_right(d);
}

/* False: a store could not be opened. */
/* The default of the layouts of Kue, which mem: has not. */
static void keep_for_ever(duel *d)
{
    static const weir_settings ever = { .keep_complete = { .age_ms = WEIR_FOREVER },
                                        .keep_failed = { .age_ms = WEIR_FOREVER } };
    run_plan(d, &(weir_op){ .kind = WEIR_OP_CONFIGURE,
                            .u.configure = { .type = "*", .settings = &ever } });
}

static bool run_trial(trial *t)
{
    duel *d = calloc(1, sizeof *d);
    if (!d)
        return false;
    t->ops = t->batches = 0;
    memset(t->answers, 0, sizeof t->answers);
    t->differs = false;
    d->t = t;
    d->now = FIXTURE_START;
    d->left.wake = d->right.wake = INT64_MAX;
    d->left.f = fixture_open("mem:");
    d->right.f = fixture_open(t->url);
    bool opened = d->left.f && d->right.f;
    if (opened && strstr(t->url, "kue"))
        keep_for_ever(d);
    while (opened && t->ops < t->max_ops && !t->differs) {
        if (t->skip && t->batches == t->n_skip)
            break;
        if (!t->skip || !t->skip[t->batches])
            one_batch(d, t->batches);
        t->batches++;
    }
    if (opened && !t->differs)
        check_both(d);
    fixture_close(d->left.f);
    fixture_close(d->right.f);
    weir__buf_fini(&d->left.answer);
    weir__buf_fini(&d->right.answer);
    for (size_t i = 0; i < LAST_OPS; i++)
        free(d->last[i]);
    free(d);
    return opened;
}

/* ---- fewer operations ---- */

/* Leave out ever smaller runs of batches as long as a difference remains, then show that. */
static void shrink(const trial *found)
{
    size_t n = found->batches;
    bool  *skip = calloc(n + 1, sizeof *skip), *best = calloc(n + 1, sizeof *best);
    time_t end = time(NULL) + SHRINK_SECONDS;
    trial  t = *found;
    t.quiet = true;
    t.skip = skip;
    t.n_skip = n;
    for (size_t size = n / 2; skip && best && size > 0; size /= 2) {
        for (size_t at = 0; at < n && time(NULL) < end; at += size) {
            memcpy(skip, best, n);
            for (size_t i = at; i < at + size && i < n; i++)
                skip[i] = true;
            t.max_ops = found->ops;
            if (run_trial(&t) && t.differs) {
                memcpy(best, skip, n);
                memset(best + t.batches, true, n - t.batches);
            }
        }
    }
    if (skip && best) {
        memcpy(skip, best, n);
        t.quiet = false;
        t.max_ops = found->ops;
        printf("# ---- with as few batches as were found:\n");
        run_trial(&t);
        printf("# ---- %zu operations\n", t.ops);
    }
    free(skip);
    free(best);
}

/* ---- arguments ---- */

typedef struct settings {
    uint64_t seed;
    size_t   ops;
    char    *stores;
    bool     shrink;
} settings;

static bool parse(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--shrink")) {
            s->shrink = true;
            continue;
        }
        if (!value)
            return false;
        if (!strcmp(argv[i], "--seed"))
            s->seed = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--ops"))
            s->ops = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--stores"))
            s->stores = value;
        else
            return false;
        i++;
    }
    return true;
}

/* How often each operation had which answer. False: one of them never worked, so that the run
 * shows little. */
static bool tell_answers(const trial *t)
{
    bool all = true;
    for (int kind = 0; kind < WEIR_OP_COUNT; kind++) {
        printf("# %-9s", weir__op_rows[kind]->name);
        for (int code = 0; code < WEIR_CODE_COUNT; code++) {
            if (t->answers[kind][code])
                printf("  %s %zu", weir_code_name((weir_code)code), t->answers[kind][code]);
        }
        printf("\n");
        all = all && t->answers[kind][WEIR_OK] > 0;
    }
    return all;
}

static bool run_store(const settings *s, const char *url, size_t number)
{
    trial t = { .seed = s->seed, .url = url, .max_ops = s->ops ? s->ops : DEFAULT_OPS };
    if (!s->ops && strstr(url, "durability=disk"))
        t.max_ops /= SLOW_SHARE;
    if (!s->ops && (rig_is_shared(url) || strstr(url, "served:") || strstr(url, "shared:")))
        t.max_ops /= FAR_SHARE;
    bool ok = run_trial(&t) && !t.differs;
    if (ok)
        ok = tell_answers(&t) || s->ops;
    if (t.differs && s->shrink)
        shrink(&t);
    printf("%s %zu - %s as mem: in %zu operations, seed %" PRIu64 "\n", ok ? "ok" : "not ok",
           number, url, t.ops, t.seed);
    fflush(stdout);
    return ok;
}

/* mem with itself only when asked for; what has partitions has other ids and another order. */
static bool is_compared(const char *url, size_t n_urls)
{
    return (strcmp(url, "mem:") != 0 || n_urls == 1) && !has_partitions(url);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("WEIR_TEST_SEED");
    settings    s = { .seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) };
    if (!parse(argc, argv, &s)) {
        fprintf(stderr, "usage: test_random [--seed N] [--ops M] [--stores A,B] [--shrink]\n");
        return 2;
    }
    if (s.stores)
        setenv("WEIR_TEST_STORES", s.stores, 1);
    char **urls;
    size_t n_urls = store_urls(0, NULL, &urls), n = 0, failed = 0;
    for (size_t i = 0; i < n_urls; i++)
        n += is_compared(urls[i], n_urls);
    printf("1..%zu\n# seed %" PRIu64 "\n", n, s.seed);
    fflush(stdout);
    for (size_t i = 0, number = 1; i < n_urls; i++) {
        if (is_compared(urls[i], n_urls))
            failed += !run_store(&s, urls[i], number++);
    }
    free(urls);
    return failed ? 1 : 0;
}
