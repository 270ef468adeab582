/* ledger.c - kill -9 at any moment, and nothing is lost: proved by a ledger outside the store
 * (support/ledger.h).
 *
 * The parent kills its child again and again at random moments, lets the last child finish
 * everything, and then judges. Where processes can share a store there are always several children,
 * and one of them is killed. Children run weir_check() after every opening.
 *
 * Usage: ledger [--kills N] [--jobs N] [--seed N] [--dir DIR] [--durability os|disk] [--share]
 *               [--store URL]
 * With --share several children work on one file: some of those killed own it, some do not. A URL
 * of a store that processes share: "redis://...", or "rig:redis+unix" for a server of its
 * own.
 * Prints TAP. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/ledger.h"
#include "support/redis_rig.h"

enum { SHARERS = 3, SHARED_LEASE_MS = 1500 };

static struct {
    int      kills;
    uint64_t jobs, seed;
    char     dir[400], url[500], ledger[450];
    const char *durability, *store;     /* store NULL: sqlite */
    bool     share;                     /* several children at a time */
} cfg = { .kills = 20, .jobs = 4000, .durability = "os" };

static void give_up(const char *what, const char *why)
{
    printf("Bail out! %s: %s\n", what, why);
    fflush(stdout);
    _exit(1);
}

static pid_t start_child(const char *self, uint64_t from, uint64_t to)
{
    pid_t pid = fork();
    if (pid == 0) {
        char a[32], b[32];
        snprintf(a, sizeof a, "%" PRIu64, from);
        snprintf(b, sizeof b, "%" PRIu64, to);
        execl(self, self, "--child", a, b, cfg.dir, cfg.url, cfg.share ? "shared" : "owned",
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

/* Start a child, wait a while, and kill it; where several share the store, the oldest of them (of a
 * file mostly the owner) or, one time in three, another. Answers how many were killed. */
static int run_and_kill(const char *self, uint64_t from, uint64_t to, int64_t after_us)
{
    size_t          sharers = cfg.share ? SHARERS : 1;
    struct timespec ts = { (time_t)(after_us / 1000000), (long)(after_us % 1000000) * 1000 };
    alive[n_started++ % sharers] = start_child(self, from, to);
    nanosleep(&ts, NULL);           /* the moment of the kill: any will do */
    size_t at = n_started % sharers, other = (n_started + 1) % sharers;
    if (after_us % 3 == 0 && alive[other]) {
        pid_t swap = alive[at];
        alive[at] = alive[other];
        alive[other] = swap;
    }
    pid_t victim = alive[at];
    alive[at] = 0;
    return end_child(victim, true) != 0;
}

/* The last child, and those that are still there, until everything is done. */
static void run_to_the_end(const char *self, uint64_t from, uint64_t to)
{
    end_child(start_child(self, from, to), false);
    for (size_t i = 0; i < SHARERS; i++)
        end_child(alive[i], false);
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
    uint64_t each = cfg.jobs * 2 / (uint64_t)cfg.kills + 1, from = 0, random = cfg.seed;
    int killed = 0;
    ledger_result r;
    printf("# seed %" PRIu64 "\n", cfg.seed);
    for (int i = 0; i < TRIES * cfg.kills && killed < cfg.kills; i++, from += each) {
        /* Mostly in the thick of it, sometimes in the first steps of opening. */
        int64_t after_us = (int64_t)(ledger_random(&random) % (i % 5 ? 120000 : 15000));
        killed += run_and_kill(self, from, from + each, after_us);
        if (isatty(2))
            fprintf(stderr, "\r%d of %d kills", killed, cfg.kills);
    }
    uint64_t so_far = ledger_acknowledged(cfg.ledger);
    run_to_the_end(self, from, from + (so_far < cfg.jobs ? cfg.jobs - so_far : 0));
    if (!ledger_judge(cfg.ledger, cfg.url, LEDGER_NO_POISON, &r))
        give_up("ledger", r.trouble);
    printf("# %d children were killed; %" PRIu64 " jobs acknowledged, %" PRIu64 " kept, "
           "%" PRIu64 " deliveries begun\n", killed, r.acknowledged, r.stored, r.deliveries);
    if (r.trouble[0])
        printf("# %s\n", r.trouble);
    printf("1..11\n");
    verdict("as many children were killed as were to be", killed != cfg.kills);
    verdict("as many jobs were added as were to be", r.acknowledged < cfg.jobs);
    verdict("no acknowledged job is lost", r.lost);
    verdict("every job is complete", r.unfinished);
    verdict("no job is there twice", r.added_twice);
    verdict("no delivery was begun twice", r.begun_twice);
    verdict("no job ran after it was complete", r.begun_after);
    verdict("no job was completed twice", r.completed_twice);
    verdict("no job failed for good", r.failed);
    verdict("nothing was done that nobody wanted", r.invented);
    verdict("the store is consistent", r.inconsistent);
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
                                         "jobs.db-owner", "jobs.db-socket" };
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
                                             { "share", no_argument, NULL, 'h' },
                                             { 0 } };
    if (argc == 7 && strcmp(argv[1], "--child") == 0) {
        use_dir(argv[4]);
        return ledger_work_off(&(ledger_work){
            .from = strtoull(argv[2], NULL, 10), .to = strtoull(argv[3], NULL, 10),
            .url = argv[5], .path = cfg.ledger, .poison = LEDGER_NO_POISON,
            .lease_ms = strcmp(argv[6], "shared") == 0 ? SHARED_LEASE_MS : 0 });
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
        case 't': cfg.store = optarg; cfg.share = true; break;
        case 'h': cfg.share = true; break;
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
