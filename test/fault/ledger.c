/* ledger.c - kill -9 at any moment, and nothing is lost: proved by an independent ledger.
 *
 * A child process has the store open; its producers add jobs and its workers do them, and all write
 * what they saw to a plain append-only file. The parent kills it again and again at random moments,
 * lets the last child finish everything, and then compares the ledger with the store. Where
 * processes can share a store there are always several children, and one of them is killed.
 *
 *   - every add that was acknowledged is there, complete, exactly once;
 *   - no delivery of a job was begun twice;
 *   - no job was begun again after its completion was announced;
 *   - nothing was done that nobody wanted;
 *   - `check` finds nothing wrong, after every reopening.
 *
 * Usage: ledger [--kills N] [--jobs N] [--seed N] [--dir DIR] [--durability os|disk] [--store URL]
 * A URL of a store that processes share: "redis://...", or "rig:redis+unix" for a server of its
 * own.
 * Prints TAP. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "support/redis_rig.h"
#include "weir/weir.h"

enum { PRODUCERS = 4, WORKERS = 4, LOT = 5, SHARERS = 3, SHARED_LEASE_MS = 1500 };

static struct {
    int      kills;
    uint64_t jobs, seed;
    char     dir[400], url[500], ledger[450];
    const char *durability, *store;     /* store NULL: sqlite */
    int64_t  lease_ms;                  /* of children that die; 0: the next owner knows it */
} cfg = { .kills = 20, .jobs = 4000, .durability = "os" };

static uint64_t rng;

static uint64_t next_random(void)
{
    rng += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = rng;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void give_up(const char *what, const char *why)
{
    printf("Bail out! %s: %s\n", what, why);
    fflush(stdout);
    _exit(1);
}

/* ---- the ledger: a record is a line, written with one write(2), so that no kill tears it ---- */

static int ledger_fd;

__attribute__((format(printf, 1, 2))) static void record(const char *fmt, ...)
{
    char line[160];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (write(ledger_fd, line, (size_t)n) != n)
        give_up("ledger", "short write");
}

/* ---- the child ---- */

typedef struct child {
    weir_queue      *q;
    _Atomic uint64_t next_key;     /* keys to add: next_key .. last_key */
    uint64_t         last_key;
} child;

/* What a job is like follows from its key: some fail once or twice, some start later, some are
 * removed when they are done. */
static weir_spec spec_of(uint64_t key, char data[64])
{
    snprintf(data, 64, "{\"k\":%" PRIu64 "}", key);
    return (weir_spec){ .type = key % 3 ? "odd" : "even", .data = data, .attempts = 3,
                        .priority = (int32_t)(key % 5), .max_lost = 1000000,
                        .delay_ms = key % 11 == 0 ? 5 : 0, .remove_on_complete = key % 7 == 0,
                        .backoff = { key % 2 ? WEIR_FIXED : WEIR_IMMEDIATE, .delay_ms = 2 } };
}

static void *produce(void *arg)
{
    child *c = arg;
    for (;;) {
        uint64_t key = atomic_fetch_add(&c->next_key, LOT);
        if (key >= c->last_key)
            return NULL;
        weir_spec spec[LOT];
        weir_added added[LOT];
        char data[LOT][64];
        weir_error err;
        size_t n = 0;
        for (; n < LOT && key + n < c->last_key; n++) {
            spec[n] = spec_of(key + n, data[n]);
            record("want %" PRIu64 "\n", key + n);
        }
        /* One in five goes as a lot, the others one by one. */
        for (size_t i = 0; i < n;) {
            size_t lot = key / LOT % 5 ? 1 : n;
            if (weir_add_many(c->q, &spec[i], lot, &added[i], &err))
                give_up("add", err.msg);
            for (size_t end = i + lot; i < end; i++)
                record("added %" PRIu64 " %" PRIu64 "\n", key + i, added[i].id);
        }
    }
}

static uint64_t key_of(const weir_job *job)
{
    return strtoull(job->data + strlen("{\"k\":"), NULL, 10);
}

static weir_code handle(weir_job *job, void *ctx)
{
    (void)ctx;
    uint64_t key = key_of(job);
    record("begin %" PRIu64 " %" PRIu32 " %" PRIu64 "\n", job->id, job->delivery, key);
    if (job->attempts < (int32_t)(key % 13 == 0 ? 2 : key % 5 == 0))
        return weir_job_fail(job, "not yet");
    return weir_job_done(job, "{\"ok\":true}");
}

static void on_event(const weir_event *ev, void *ctx)
{
    (void)ctx;
    record("%s %" PRIu64 " %d\n", ev->kind == WEIR_EVENT_COMPLETE ? "done" : "failed", ev->id,
           (int)getpid());
}

static void check_store(weir_queue *q)
{
    weir_error err;
    weir_report *report;
    if (weir_check(q, false, &report, &err))
        give_up("check", err.msg);
    if (report->n)
        give_up("check", report->line[0]);
    weir_report_release(report);
}

static bool anything_left(weir_queue *q)
{
    weir_error err;
    weir_stats *stats;
    if (weir_get_stats(q, &stats, &err))
        give_up("stats", err.msg);
    const uint64_t *count = stats->all.count;
    bool left = count[WEIR_INACTIVE] + count[WEIR_DELAYED] + count[WEIR_ACTIVE] > 0;
    weir_stats_release(stats);
    return left;
}

/* Add the keys from..to and do what there is to do; until everything is done, or until killed. */
static int run_child(uint64_t from, uint64_t to)
{
    static const char *const types[] = { "even", "odd", NULL };
    child c = { .next_key = from, .last_key = to };
    weir_error err;
    weir_listener *l;
    weir_filter ends = { .events = 1u << WEIR_EVENT_COMPLETE | 1u << WEIR_EVENT_FAILED };
    ledger_fd = open(cfg.ledger, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (weir_open(&c.q, cfg.url, NULL, &err))
        give_up("open", err.msg);
    check_store(c.q);
    if (weir_listen(c.q, &ends, on_event, NULL, &l, &err))
        give_up("listen", err.msg);
    weir_pool plain = { .handler = handle, .threads = WORKERS, .types = types,
                        .lease_ms = cfg.lease_ms };
    weir_pool ahead = { .handler = handle, .threads = 2, .types = types, .prefetch = 8,
                        .lease_ms = cfg.lease_ms };
    if (weir_process(c.q, NULL, &plain, &err) || weir_process(c.q, NULL, &ahead, &err))
        give_up("process", err.msg);
    pthread_t producer[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&producer[i], NULL, produce, &c);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producer[i], NULL);
    while (anything_left(c.q))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (weir_stop(c.q, NULL, WEIR_FOREVER, &err))
        give_up("stop", err.msg);
    check_store(c.q);
    weir_close(c.q);
    return 0;
}

/* ---- the parent ---- */

static pid_t start_child(const char *self, uint64_t from, uint64_t to)
{
    pid_t pid = fork();
    if (pid == 0) {
        char a[32], b[32];
        snprintf(a, sizeof a, "%" PRIu64, from);
        snprintf(b, sizeof b, "%" PRIu64, to);
        execl(self, self, "--child", a, b, cfg.dir, cfg.url, cfg.store ? "shared" : "owned",
              (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Returns how the child ended: 0, or the signal. 0 for a child that was never started, too. */
static int end_child(pid_t pid, bool killing)
{
    int status;
    if (!pid)
        return 0;
    if (killing)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    if (WEXITSTATUS(status))
        give_up("child", "it failed by itself");
    return 0;
}

static pid_t  alive[SHARERS];      /* a ring */
static size_t n_started;

/* Start a child, wait a while, and kill it, or where several share the store the oldest of them.
 * Answers how many were killed. */
static int run_and_kill(const char *self, uint64_t from, uint64_t to, int64_t after_us)
{
    size_t          sharers = cfg.store ? SHARERS : 1;
    struct timespec ts = { (time_t)(after_us / 1000000), (long)(after_us % 1000000) * 1000 };
    alive[n_started++ % sharers] = start_child(self, from, to);
    nanosleep(&ts, NULL);           /* the moment of the kill: any will do */
    pid_t victim = alive[n_started % sharers];
    alive[n_started % sharers] = 0;
    return end_child(victim, true) != 0;
}

/* The last child, and those that are still there, until everything is done. */
static void run_to_the_end(const char *self, uint64_t from, uint64_t to)
{
    end_child(start_child(self, from, to), false);
    for (size_t i = 0; i < SHARERS; i++)
        end_child(alive[i], false);
}

/* What the ledger says of one job. */
typedef struct entry {
    uint64_t id, key;
    uint32_t deliveries[64];
    uint32_t n, completions;
    int      heard_by[8];  /* children that heard that it is complete */
    bool     acknowledged;
} entry;

static struct {
    weir_map by_id;
    weir_map wanted;       /* key + 1 -> anything */
    uint64_t acknowledged, begun, begun_twice, resurrected, phantoms, completed_twice, failed;
} seen;

static entry *entry_of(uint64_t id)
{
    entry *e = weir__map_get(&seen.by_id, id);
    if (!e) {
        e = calloc(1, sizeof *e);
        e->id = id;
        weir__map_put(&seen.by_id, id, e);
    }
    return e;
}

static void read_begin(entry *e, uint32_t delivery, uint64_t key)
{
    seen.begun++;
    if (!weir__map_get(&seen.wanted, key + 1))
        seen.phantoms++;
    if (e->completions)
        seen.resurrected++;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->deliveries[i] == delivery)
            seen.begun_twice++;
    e->key = key;
    if (e->n < sizeof e->deliveries / sizeof *e->deliveries)
        e->deliveries[e->n++] = delivery;
}

/* Where children share a store, all of them hear of it; but each of them once. */
static void read_done(entry *e, int pid)
{
    for (uint32_t i = 0; i < e->completions; i++)
        if (e->heard_by[i] == pid)
            seen.completed_twice++;
    if (e->completions < sizeof e->heard_by / sizeof *e->heard_by)
        e->heard_by[e->completions++] = pid;
}

static void read_ledger(void)
{
    static char mark;
    char line[200];
    FILE *f = fopen(cfg.ledger, "r");
    if (!f)
        give_up("ledger", "cannot be read");
    while (fgets(line, sizeof line, f)) {
        uint64_t a, b;
        uint32_t d;
        int pid;
        if (sscanf(line, "want %" SCNu64, &a) == 1) {
            weir__map_put(&seen.wanted, a + 1, &mark);
        } else if (sscanf(line, "added %" SCNu64 " %" SCNu64, &a, &b) == 2) {
            entry_of(b)->acknowledged = true;
            entry_of(b)->key = a;
            seen.acknowledged++;
        } else if (sscanf(line, "begin %" SCNu64 " %" SCNu32 " %" SCNu64, &a, &d, &b) == 3) {
            read_begin(entry_of(a), d, b);
        } else if (sscanf(line, "done %" SCNu64 " %d", &a, &pid) == 2) {
            read_done(entry_of(a), pid);
        } else {
            seen.failed++;
        }
    }
    fclose(f);
}

static uint64_t count_added(void)
{
    char line[200];
    uint64_t n = 0;
    FILE *f = fopen(cfg.ledger, "r");
    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, "added ", 6) == 0;
    if (f)
        fclose(f);
    return n;
}

/* Everything in the store must be complete, once per key, and wanted. */
static void read_store(uint64_t *stored, uint64_t *unfinished, uint64_t *doubled, weir_map *ids)
{
    weir_error err;
    weir_queue *q;
    weir_map keys = { 0 };
    static char mark;
    if (weir_open(&q, cfg.url, &(weir_options){ .read_only = true }, &err))
        give_up("open", err.msg);
    weir_query query = { .limit = WEIR_MAX_PAGE };
    for (bool more = true; more;) {
        weir_page *page;
        if (weir_list(q, &query, &page, &err))
            give_up("list", err.msg);
        for (size_t i = 0; i < page->n; i++) {
            const weir_job *job = page->job[i];
            uint64_t key = key_of(job);
            ++*stored;
            *unfinished += job->state != WEIR_COMPLETE;
            *doubled += weir__map_get(&keys, key + 1) != NULL;
            seen.phantoms += weir__map_get(&seen.wanted, key + 1) == NULL;
            weir__map_put(&keys, key + 1, &mark);
            weir__map_put(ids, job->id, &mark);
        }
        more = page->more;
        query.after = page->next;
        weir_page_release(page);
    }
    weir__map_fini(&keys);
    weir_close(q);
}

/* Acknowledged, and neither in the store nor begun as one that is removed when it is done. */
static uint64_t count_lost(const weir_map *ids)
{
    uint64_t lost = 0, id;
    size_t pos = 0;
    void *value;
    while (weir__map_next(&seen.by_id, &pos, &id, &value)) {
        entry *e = value;
        bool gone_rightly = e->key % 7 == 0 && e->n > 0;
        if (e->acknowledged && !weir__map_get(ids, id) && !gone_rightly)
            lost++;
        free(e);
    }
    weir__map_fini(&seen.by_id);
    return lost;
}

static int cases, failures;

static void verdict(const char *what, uint64_t bad)
{
    printf("%sok %d - %s%s", bad ? "not " : "", ++cases, what, bad ? "" : "\n");
    if (bad)
        printf(" (%" PRIu64 ", seed %" PRIu64 ")\n", bad, cfg.seed);
    failures += bad != 0;
}

static int run_parent(const char *self)
{
    enum { TRIES = 4 };      /* children at most for each kill: some are done before it comes */
    uint64_t lot = cfg.jobs * 2 / (uint64_t)cfg.kills + 1, from = 0;
    uint64_t stored = 0, unfinished = 0, doubled = 0;
    weir_map ids = { 0 };
    int killed = 0;
    printf("# seed %" PRIu64 "\n", cfg.seed);
    rng = cfg.seed;
    for (int i = 0; i < TRIES * cfg.kills && killed < cfg.kills; i++, from += lot) {
        /* Mostly in the thick of it, sometimes in the first steps of opening. */
        int64_t after_us = (int64_t)(next_random() % (i % 5 ? 120000 : 15000));
        killed += run_and_kill(self, from, from + lot, after_us);
        if (isatty(2))
            fprintf(stderr, "\r%d of %d kills", killed, cfg.kills);
    }
    uint64_t so_far = count_added();
    run_to_the_end(self, from, from + (so_far < cfg.jobs ? cfg.jobs - so_far : 0));
    read_ledger();
    read_store(&stored, &unfinished, &doubled, &ids);
    printf("# %d children were killed; %" PRIu64 " jobs acknowledged, %" PRIu64 " kept, "
           "%" PRIu64 " deliveries begun\n", killed, seen.acknowledged, stored, seen.begun);
    printf("1..10\n");
    verdict("as many children were killed as were to be", killed != cfg.kills);
    verdict("as many jobs were added as were to be", seen.acknowledged < cfg.jobs);
    verdict("no acknowledged job is lost", count_lost(&ids));
    verdict("every job is complete", unfinished);
    verdict("no job is there twice", doubled);
    verdict("no delivery was begun twice", seen.begun_twice);
    verdict("no job ran after it was complete", seen.resurrected);
    verdict("no job was completed twice", seen.completed_twice);
    verdict("no job failed for good", seen.failed);
    verdict("nothing was done that nobody wanted", seen.phantoms);
    weir__map_fini(&ids);
    weir__map_fini(&seen.wanted);
    return failures != 0;
}

static void use_dir(const char *dir)
{
    snprintf(cfg.dir, sizeof cfg.dir, "%s", dir);
    snprintf(cfg.ledger, sizeof cfg.ledger, "%s/ledger", cfg.dir);
}

/* The store is the one that was named, or a file in the directory. */
static void use_store(void)
{
    if (!cfg.store)
        snprintf(cfg.url, sizeof cfg.url, "sqlite:%s/jobs.db?durability=%s", cfg.dir,
                 cfg.durability);
    else if (!rig_is_shared(cfg.store))
        snprintf(cfg.url, sizeof cfg.url, "%s", cfg.store);
    else if (!rig_shared_url(cfg.store, cfg.url, sizeof cfg.url))
        give_up(cfg.store, "cannot be started");
}

static void remove_dir(void)
{
    static const char *const names[] = { "ledger", "jobs.db", "jobs.db-wal", "jobs.db-shm",
                                         "jobs.db-owner", "jobs.db-events" };
    char path[500];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", cfg.dir, names[i]);
        unlink(path);
    }
    rmdir(cfg.dir);
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "kills", required_argument, NULL, 'k' },
                                             { "jobs", required_argument, NULL, 'j' },
                                             { "seed", required_argument, NULL, 's' },
                                             { "dir", required_argument, NULL, 'd' },
                                             { "durability", required_argument, NULL, 'u' },
                                             { "store", required_argument, NULL, 't' },
                                             { 0 } };
    if (argc == 7 && strcmp(argv[1], "--child") == 0) {
        use_dir(argv[4]);
        snprintf(cfg.url, sizeof cfg.url, "%s", argv[5]);
        cfg.lease_ms = strcmp(argv[6], "shared") == 0 ? SHARED_LEASE_MS : 0;
        return run_child(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    }
    const char *where = "/tmp";
    cfg.seed = (uint64_t)time(NULL);
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (opt) {
        case 'k': cfg.kills = atoi(optarg); break;
        case 'j': cfg.jobs = strtoull(optarg, NULL, 10); break;
        case 's': cfg.seed = strtoull(optarg, NULL, 10); break;
        case 'd': where = optarg; break;
        case 'u': cfg.durability = optarg; break;
        case 't': cfg.store = optarg; break;
        default:  return 2;
        }
    }
    char dir[350];
    snprintf(dir, sizeof dir, "%s/weir-ledger-XXXXXX", where);
    if (!mkdtemp(dir))
        give_up(dir, "cannot be made");
    use_dir(dir);
    use_store();
    int rc = run_parent("/proc/self/exe");
    if (rc)
        printf("# kept: %s\n", cfg.dir);
    else
        remove_dir();
    return rc;
}
