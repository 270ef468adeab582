/* load.c - producers, workers and their ledger: see load.h. */
#include "redis/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/proxy.h"
#include "support/redis_rig.h"

enum { MAX_KEYS = 200000, LOT = 5, MAX_THREADS = 16, DELIVERIES = 64 };

/* What is known of the job with a key. Written by its producer and by handlers. */
typedef struct entry {
    _Atomic int      answer;            /* of its add: 1 + weir_code; 0: none yet */
    uint64_t         id;
    int64_t          answered_at;
    _Atomic uint32_t begun;
    _Atomic uint64_t deliveries;        /* bits */
    _Atomic int64_t  last_begun_at;
    uint32_t         found;             /* in the store */
} entry;

struct load {
    rt               add, work;         /* the two queues */
    weir_queue      *q;
    load_options     opt;
    pthread_t        producer[MAX_THREADS];
    _Atomic bool     stop;
    bool             stopped;
    _Atomic uint64_t next_key, begun, begun_twice, answers[WEIR_CODE_COUNT];
    entry           *entries;
};

/* ---- jobs ---- */

static int32_t failures_of(uint64_t key)
{
    return key % 17 == 0 ? 2 : key % 13 == 0;
}

/* Where a queue has partitions, a unique key picks one: a lot with such keys goes to several. */
static weir_spec spec_of(uint64_t key, char data[64], char unique[32])
{
    snprintf(data, 64, "{\"k\":%" PRIu64 "}", key);
    snprintf(unique, 32, "u%" PRIu64, key);
    return (weir_spec){ .type = key % 3 ? "odd" : "even", .data = data, .attempts = 3,
                        .priority = (int32_t)(key % 5), .max_lost = 1000,
                        .unique = key % 4 == 0 ? unique : NULL,
                        .delay_ms = key % 11 == 0 ? 20 : 0,
                        .backoff = { key % 2 ? WEIR_BACKOFF_FIXED : WEIR_BACKOFF_NONE,
                                     .delay_ms = 5 } };
}

static uint64_t key_of(const weir_job *job)
{
    return strtoull(job->data + strlen("{\"k\":"), NULL, 10);
}

static void rest_us(int64_t us)
{
    nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, NULL);
}

/* Every tenth lot goes as one call, the others one by one. */
static bool is_lot(uint64_t key)
{
    return key / LOT % 10 == 0;
}

static void note(load *l, uint64_t key, weir_code rc, uint64_t id)
{
    entry *e = &l->entries[key];
    e->id = id;
    e->answered_at = rt_ms();
    atomic_store(&e->answer, 1 + (int)rc);
    atomic_fetch_add(&l->answers[rc], 1);
}

static void *produce(void *arg)
{
    load *l = arg;
    while (!atomic_load(&l->stop)) {
        uint64_t   key = atomic_fetch_add(&l->next_key, LOT);
        weir_spec  spec[LOT];
        weir_added added[LOT];
        weir_error err;
        char       data[LOT][64], unique[LOT][32];
        if (key + LOT > MAX_KEYS)
            return NULL;
        for (uint64_t i = 0; i < LOT; i++)
            spec[i] = spec_of(key + i, data[i], unique[i]);
        size_t lot = is_lot(key) ? LOT : 1;
        for (uint64_t i = 0; i < LOT && !atomic_load(&l->stop); i += lot) {
            memset(added, 0, sizeof added);
            weir_code rc = weir_add_many(l->q, &spec[i], lot, NULL, added, &err);
            for (size_t k = 0; k < lot; k++)
                note(l, key + i + k, rc, added[k].id);
            rest_us(l->opt.pace_us);
        }
    }
    return NULL;
}

static weir_code handle(weir_job *job, void *ctx)
{
    load    *l = ctx;
    uint64_t key = key_of(job);
    if (key >= MAX_KEYS)
        abort();
    entry   *e = &l->entries[key];
    uint64_t bit = UINT64_C(1) << job->delivery % DELIVERIES;
    if (atomic_fetch_or(&e->deliveries, bit) & bit)
        atomic_fetch_add(&l->begun_twice, 1);
    atomic_fetch_add(&e->begun, 1);
    atomic_store(&e->last_begun_at, rt_ms());
    atomic_fetch_add(&l->begun, 1);
    if (job->attempts < failures_of(key))
        return weir_job_fail(job, "not yet");
    return weir_job_done(job, "{\"ok\":true}", 0, NULL);
}

/* ---- start and wait ---- */

load *load_start(const char *url, const load_options *opt)
{
    static const char *const types[] = { "even", "odd", NULL };
    load *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->entries = calloc(MAX_KEYS, sizeof *l->entries);
    assert_non_null(l->entries);
    l->opt = opt ? *opt : (load_options){ 0 };
    l->opt.producers = l->opt.producers ? l->opt.producers : 3;
    l->opt.pace_us = l->opt.pace_us ? l->opt.pace_us : 500;
    rt_open_until(&l->add, url);
    rt_open_until(&l->work, l->add.url);
    l->q = l->add.q;
    weir_pool_config pool = { .handler = handle, .ctx = l, .types = types,
                              .threads = l->opt.workers ? l->opt.workers : 3,
                              .prefetch = l->opt.prefetch, .lease_ms = l->opt.lease_ms };
    rt *t = &l->work;
    OK(weir_process(t->q, NULL, &pool, NULL, &t->err));
    for (int i = 0; i < l->opt.producers; i++)
        assert_int_equal(pthread_create(&l->producer[i], NULL, produce, l), 0);
    return l;
}

weir_queue *load_queue(load *l)
{
    return l->q;
}

uint64_t load_answers(load *l, weir_code code)
{
    return atomic_load(&l->answers[code]);
}

uint64_t load_acked(load *l)
{
    return load_answers(l, WEIR_OK);
}

uint64_t load_begun(load *l)
{
    return atomic_load(&l->begun);
}

void load_until_answer(load *l, weir_code code, uint64_t n)
{
    uint64_t want = load_answers(l, code) + n;
    UNTIL(load_answers(l, code) >= want);
}

static uint64_t troubled(load *l)
{
    return load_answers(l, WEIR_EUNAVAIL) + load_answers(l, WEIR_EUNKNOWN);
}

void load_until_trouble(load *l, uint64_t n)
{
    uint64_t want = troubled(l) + n;
    UNTIL(troubled(l) >= want);
}

void load_until_acked(load *l, uint64_t n)
{
    load_until_answer(l, WEIR_OK, n);
}

void load_until_begun(load *l, uint64_t n)
{
    uint64_t want = load_begun(l) + n;
    UNTIL(load_begun(l) >= want);
}

static void stop_producers(load *l)
{
    atomic_store(&l->stop, true);
    for (int i = 0; i < l->opt.producers && !l->stopped; i++)
        pthread_join(l->producer[i], NULL);
    l->stopped = true;
}

/* How many are not done; UINT64_MAX: cannot be told just now. */
static uint64_t left(load *l)
{
    weir_stats *stats;
    if (weir_get_stats(l->q, &stats, &l->add.err))
        return UINT64_MAX;
    const uint64_t *count = stats->all.count;
    uint64_t        n = count[WEIR_STATE_INACTIVE] + count[WEIR_STATE_DELAYED] +
                        count[WEIR_STATE_ACTIVE];
    weir_stats_free(stats);
    return n;
}

/* It waits as long as there are fewer and fewer: how many there are depends on how slow the line
 * and the machine were. */
void load_drain(load *l)
{
    stop_producers(l);
    int64_t  end = rt_ms() + PATIENCE_MS;
    uint64_t fewest = UINT64_MAX;
    for (uint64_t n; (n = left(l));) {
        if (n < fewest) {
            fewest = n;
            end = rt_ms() + PATIENCE_MS;
        }
        if (rt_ms() > end)
            fail_msg("%" PRIu64 " jobs are never done (%s)", n, n == UINT64_MAX ? l->add.err.msg
                                                                              : "no trouble");
        for (int i = 0; i < 10; i++)
            rt_breathe();
    }
}

/* ---- compare ---- */

static void expect(bool good, const entry *e, uint64_t key, const weir_job *job, const char *what)
{
    if (good)
        return;
    fail_msg("%s: key %" PRIu64 ", add answered %s as %" PRIu64 ", begun %u times; job %" PRIu64
             ": %s, delivery %u, attempts %d, lost %d", what, key,
             e->answer ? weir_code_name((weir_code)(e->answer - 1)) : "never", e->id, e->begun,
             job ? job->id : 0, job ? weir_state_name(job->state) : "-", job ? job->delivery : 0,
             job ? job->attempts : 0, job ? job->lost : 0);
}

static bool within(int64_t at, int64_t from, int64_t to)
{
    return from <= at && at <= to;
}

static void look_at(load *l, const weir_job *job, int64_t lost_from, int64_t lost_to)
{
    uint64_t key = key_of(job);
    assert_true(key < MAX_KEYS);
    entry *e = &l->entries[key];
    int    answer = e->answer - 1;
    expect(!e->found++, e, key, job, "it is there twice");
    expect(answer == WEIR_OK || answer == WEIR_EUNKNOWN, e, key, job, "it should not be there");
    expect(answer != WEIR_OK || e->id == job->id, e, key, job, "another id was answered");
    expect(job->state == WEIR_STATE_COMPLETE, e, key, job, "it is not complete");
    expect(job->attempts == failures_of(key) + 1, e, key, job, "wrong number of attempts");
    /* A take, a failure or an end that Redis lost makes one run again. */
    uint32_t allowed = (uint32_t)(failures_of(key) + 1 + job->lost);
    bool     excused = within(e->last_begun_at, lost_from, INT64_MAX) && lost_to;
    expect(e->begun <= allowed || (excused && e->begun <= allowed + 3), e, key, job,
           "it ran more often than leases allow");
    expect(e->begun >= 1, e, key, job, "complete, but never begun");
}

static void look_at_all(load *l, rt *t, int64_t lost_from, int64_t lost_to)
{
    weir_query query = { .limit = WEIR_MAX_PAGE };
    for (bool more = true; more;) {
        weir_page *page;
        OK(weir_list(t->q, &query, &page, &t->err));
        for (size_t i = 0; i < page->n; i++)
            look_at(l, page->job[i], lost_from, lost_to);
        more = page->more;
        query.after = page->next;
        weir_page_free(page);
    }
}

static void look_at_ledger(load *l, int64_t lost_from, int64_t lost_to)
{
    uint64_t keys = atomic_load(&l->next_key), lost = 0;
    for (uint64_t key = 0; key < keys && key < MAX_KEYS; key++) {
        const entry *e = &l->entries[key];
        int          answer = e->answer - 1;
        if (answer < 0) {                       /* stopped before it was added */
            expect(!e->found, e, key, NULL, "nobody added it");
            continue;
        }
        expect(answer == WEIR_OK || answer == WEIR_EUNKNOWN || answer == WEIR_EUNAVAIL ||
                   answer == WEIR_EFULL, e, key, NULL, "not one of the answers it may have");
        if (answer == WEIR_OK && !e->found) {
            expect(lost_to && within(e->answered_at, lost_from, lost_to), e, key, NULL,
                   "acknowledged and lost");
            lost++;
        }
        bool in_parts = answer == WEIR_EUNKNOWN && strstr(l->add.url, "partitions=");
        if (is_lot(key) && !in_parts && !lost_to)
            expect(e->found == l->entries[key - key % LOT].found, e, key, NULL, "part of a lot");
    }
    print_message("# adds: %" PRIu64 " ok, %" PRIu64 " unavailable, %" PRIu64 " unknown, %" PRIu64
                  " full; %" PRIu64 " begun; %" PRIu64 " lost by Redis\n", load_acked(l),
                  load_answers(l, WEIR_EUNAVAIL), load_answers(l, WEIR_EUNKNOWN),
                  load_answers(l, WEIR_EFULL), load_begun(l), lost);
}

/* A queue with more patience than a load may have. */
static void open_patiently(rt *t, const char *url)
{
    char        patient[sizeof t->url];
    char       *at = strstr(strcpy(patient, url), "timeout=");
    const char *rest = at ? strchr(url + (at - patient), '&') : NULL;
    if (!at) {
        strcat(patient, strchr(url, '?') ? "&" : "?");
        at = strchr(patient, '\0');
    }
    snprintf(at, sizeof patient - (size_t)(at - patient), "timeout=60s%s", rest ? rest : "");
    rt_open(t, patient, false);
}

void load_verify(load *l, int64_t lost_from, int64_t lost_to)
{
    rt t;
    assert_true(l->stopped);
    if (!lost_to)
        assert_int_equal(l->begun_twice, 0);
    open_patiently(&t, l->add.url);
    look_at_all(l, &t, lost_from, lost_to);
    look_at_ledger(l, lost_from, lost_to);
    rt_check_and_close(&t);
}

void load_free(load *l)
{
    stop_producers(l);
    rt_close(&l->work);
    rt_close(&l->add);
    free(l->entries);
    free(l);
}

int64_t load_replicated(const struct rig *primary, int replicas)
{
    int64_t now = rt_ms(), offset = rig_info(primary, "replication", "master_repl_offset");
    for (int i = 0; i < replicas; i++) {
        char field[32];
        snprintf(field, sizeof field, "slave%d:offset", i);
        UNTIL(rig_info(primary, "replication", field) >= offset);
    }
    return now;
}

void load_to_the_end(load *l)
{
    load_until_acked(l, 50);
    load_until_begun(l, 50);
    load_drain(l);
    load_verify(l, 0, 0);
    load_free(l);
}

void load_through_hangs(load *l, struct proxy *p, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        load_until_acked(l, 30);
        proxy_hold(p, true);
        load_until_trouble(l, 1);
        if (i % 2)
            proxy_cut_all(p);
        proxy_hold(p, false);       /* what was held back comes late, and must do no harm */
    }
}
