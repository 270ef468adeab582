/* share.c - one SQLite file, many processes: two that add and two that work, how soon a handler in
 * another process starts, what the death of the owner costs, and one `weir add` beside an owner. */
#include "bench.h"
#include "redis.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PRODUCERS = 2, WORKERS = 2, PROCESSES = PRODUCERS + WORKERS, KILLS = 20 };

/* In memory that all processes see. */
typedef struct team {
    const lives  *l;
    atomic_int    ready;
    atomic_bool   go, stop;
    atomic_size_t done;             /* jobs */
    double        began, ended[PROCESSES];
    _Atomic double killed_at, back_at;      /* the owner's death, the first add after it */
} team;

static void rest(double ms)
{
    int64_t ns = (int64_t)(ms * 1e6);
    nanosleep(&(struct timespec){ ns / 1000000000, ns % 1000000000 }, NULL);
}

static team *make_team(const lives *l)
{
    team *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    t->l = l;
    return t;
}

static pid_t start(team *t, void (*run)(team *, int), int i)
{
    pid_t parent = getpid();
    fflush(NULL);                   /* or the child would write it again */
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    run(t, i);
    _exit(0);
}

static void end(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
        exit(1);
}

static void wait_ready(team *t, int n)
{
    while (atomic_load(&t->ready) < n)
        rest(1);
}

/* ---- lives ---- */

static weir_code handle(weir_job *job, void *ctx)
{
    team     *t = ctx;
    weir_code rc = weir_job_done(job, BENCH_RESULT, 0, NULL);
    atomic_fetch_add(&t->done, 1);
    return rc;
}

static weir_queue *open_pool(team *t)
{
    weir_error  err;
    weir_queue *q;
    weir_pool_config pool = { .handler = handle, .ctx = t, .threads = t->l->workers / WORKERS,
                              .prefetch = t->l->prefetch };
    if (weir_open(&q, t->l->url, NULL, &err) || weir_process(q, "bench", &pool, NULL, &err))
        die("open", &err);
    atomic_fetch_add(&t->ready, 1);
    return q;
}

static void work(team *t, int i)
{
    weir_error  err;
    weir_queue *q = open_pool(t);
    while (atomic_load(&t->done) < t->l->n)
        rest(1);
    if (weir_stop(q, NULL, WEIR_FOREVER, &err))
        die("stop", &err);
    t->ended[i] = seconds();
    weir_close(q);
}

static void wait_go(void *ctx)
{
    team *t = ctx;
    atomic_fetch_add(&t->ready, 1);
    while (!atomic_load(&t->go))
        rest(0.1);
}

static void produce(team *t, int i)
{
    lives mine = *t->l;
    mine.n /= PRODUCERS;
    mine.producers /= PRODUCERS;
    t->ended[i] = lead_adds(&mine, wait_go, t);
}

/* Lives per second of four processes. */
static double run_team(const lives *l)
{
    team  *t = make_team(l);
    pid_t  pid[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = start(t, i < WORKERS ? work : produce, i);
    wait_ready(t, PROCESSES);
    rest(100);                      /* the workers wait for jobs by now */
    t->began = seconds();
    atomic_store(&t->go, true);
    double last = 0;
    for (int i = 0; i < PROCESSES; i++) {
        end(pid[i]);
        last = t->ended[i] > last ? t->ended[i] : last;
    }
    double rate = (double)l->n / (last - t->began);
    munmap(t, sizeof *t);
    return rate;
}

static void over_one_process(const char *name, lives l, double target)
{
    double ratio[MAX_ROUNDS], many = 0, one = 0;
    for (int i = 0; i < rounds; i++) {
        l.url = fresh_store("os");
        one = run_lives(&l);
        l.url = fresh_store("os");
        many = run_team(&l);
        ratio[i] = many / one;
    }
    note(name, many, one);
    report(name, middle(ratio, rounds), "x", true, target);
}

static lives bulks(void)
{
    return (lives){ .n = scaled(100000), .producers = 4, .workers = 4, .bulk = 100,
                    .prefetch = 32 };
}

void share_lives(void)
{
    over_one_process("2 + 2 processes on a file, plain calls, over 4 + 4 threads",
                     (lives){ .n = scaled(60000), .producers = 4, .workers = 4, .bulk = 1 }, 0.6);
    over_one_process("2 + 2 processes on a file, bulks of 100, over 4 + 4 threads", bulks(), 0.7);
}

/* ---- NATS JetStream ---- */

/* Connections, messages under way, and how many are fetched at a time. */
static const char *const nats_ways[] = { "1 1000 256", "2 1000 256", "1 1000 1000", "1 256 256" };
enum { NATS_WAYS = sizeof nats_ways / sizeof *nats_ways };

/* Lives per second of one way, by the driver in WEIR_PEERS. */
static double run_nats(size_t n, const char *way)
{
    static const char script[] =
        "set -e; d=$(mktemp -d); trap 'kill $pid 2>/dev/null; rm -rf \"$d\"' EXIT\n"
        "cc -O2 -pthread -w -o $d/driver \"$WEIR_PEERS/nats.c\" -lnats\n"
        "port=$((20000 + $$ %% 20000))\n"
        "nats-server -a 127.0.0.1 -p $port -js -sd $d/js >$d/log 2>&1 & pid=$!\n"
        "for i in $(seq 100); do (: </dev/tcp/127.0.0.1/$port) 2>/dev/null && break; sleep .05; "
        "done\n"
        "set -- %s; $d/driver $port %zu $1 $2 both x $pid $3\n";
    char   command[2000], line[1000];
    double rate = 0;
    snprintf(command, sizeof command, script, way, n);
    setenv("BENCH_SCRIPT", command, 1);
    fflush(NULL);
    FILE *file = popen("exec bash -c \"$BENCH_SCRIPT\"", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "\"lifecycles_per_s\":");
        if (at)
            rate = strtod(at + 19, NULL);
    }
    if (!file || pclose(file) != 0 || rate <= 0) {
        fprintf(stderr, "bench: no measure came from nats-server\n");
        exit(1);
    }
    return rate;
}

/* Which way is the best depends on the machine: that of the first round is kept. */
static const char *best_nats_way(size_t n)
{
    const char *best = NULL;
    double      most = 0;
    for (int i = 0; i < NATS_WAYS; i++) {
        double rate = run_nats(n, nats_ways[i]);
        if (rate > most) {
            most = rate;
            best = nats_ways[i];
        }
    }
    return best;
}

void share_nats(void)
{
    static const char name[] = "2 + 2 processes on a file, bulks of 100, over NATS JetStream";
    const char       *dir = getenv("WEIR_PEERS");
    double            ratio[MAX_ROUNDS], ours = 0, peer = 0;
    lives             l = bulks();
    if (!dir || !*dir || system("command -v nats-server >/dev/null 2>&1")) {
        report_skipped(name, "set WEIR_PEERS; needs nats-server");
        return;
    }
    const char *way = best_nats_way(scaled(100000));
    for (int i = 0; i < rounds; i++) {
        peer = run_nats(scaled(100000), way);
        l.url = fresh_store("os");
        ours = run_team(&l);
        ratio[i] = ours / peer;
    }
    note(name, ours, peer);
    report(name, middle(ratio, rounds), "x", true, 1.2);
}

/* ---- starts ---- */

void share_starts(void)
{
    double p50, p99;
    pair_starts(fresh_store("os"), scaled(2000), 200, &p50, &p99);
    report("add to handler start, two processes on a file, p50", p50, "ms", false, 0.5);
    report("add to handler start, two processes on a file, p99", p99, "ms", false, 3);
}

/* ---- the owner is killed ---- */

static void add_on(team *t, int i)
{
    weir_error  err;
    weir_queue *q;
    (void)i;
    if (weir_open(&q, t->l->url, NULL, &err))
        die("open", &err);
    atomic_fetch_add(&t->ready, 1);
    while (!atomic_load(&t->stop)) {
        double begun = seconds();
        if (weir_add(q, &(weir_spec){ .type = "bench", .data = BENCH_DATA }, NULL, &err))
            die("add", &err);
        double killed = atomic_load(&t->killed_at);
        if (killed > 0 && begun > killed && !(atomic_load(&t->back_at) > 0))
            atomic_store(&t->back_at, seconds());
    }
    weir_close(q);
}

static void own(team *t, int i)
{
    (void)i;
    open_pool(t);
    for (;;)
        pause();
}

/* Milliseconds from the death of the owner until an add that began after it is acknowledged. */
static double kill_once(void)
{
    lives l = { .url = fresh_store("os"), .workers = 4 };
    team *t = make_team(&l);
    pid_t owner = start(t, own, 0), pid[3];
    wait_ready(t, 1);
    for (int i = 0; i < 3; i++)
        pid[i] = start(t, i ? add_on : own, i);
    wait_ready(t, 4);
    rest(100);
    kill(owner, SIGKILL);
    atomic_store(&t->killed_at, seconds());
    while (!(atomic_load(&t->back_at) > 0))
        rest(0.1);
    double ms = (atomic_load(&t->back_at) - atomic_load(&t->killed_at)) * 1e3;
    atomic_store(&t->stop, true);
    waitpid(owner, NULL, 0);
    for (int i = 1; i < 3; i++)
        end(pid[i]);
    kill(pid[0], SIGKILL);
    waitpid(pid[0], NULL, 0);
    munmap(t, sizeof *t);
    return ms;
}

void share_kills(void)
{
    double ms[KILLS];
    for (int i = 0; i < KILLS; i++)
        ms[i] = kill_once();
    sort_samples(ms, KILLS);
    report("owner killed: until adds are acknowledged again, p99 of 20", ms[KILLS - 1], "ms", false,
           300);
}

/* ---- one command ---- */

/* Milliseconds for one of them, of `n` in a row. */
static double time_command(const char *command, int n)
{
    char   loop[2000];
    double begun = seconds();
    snprintf(loop, sizeof loop, "for i in $(seq %d); do %s >/dev/null || exit 1; done", n, command);
    if (system(loop)) {
        fprintf(stderr, "bench: this failed: %s\n", command);
        exit(1);
    }
    return (seconds() - begun) * 1e3 / n;
}

void share_command(void)
{
    static const char name[] = "weir add beside an owner, over sqlite3 'insert ...'";
    enum { TIMES = 50 };
    double            ratio[MAX_ROUNDS], ours = 0, theirs = 0;
    char              add[1000], insert[1000], self[400];
    ssize_t           len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0 || system("command -v sqlite3 >/dev/null 2>&1")) {
        report_skipped(name, "needs sqlite3");
        return;
    }
    self[len] = '\0';
    for (int i = 0; i < 2; i++)     /* .../bench/bench: the build */
        *strrchr(self, '/') = '\0';
    for (int i = 0; i < rounds; i++) {
        lives       l = { .url = fresh_store("disk"), .workers = 2 };
        const char *path = l.url + strlen("sqlite:");
        size_t      path_len = strcspn(path, "?");
        snprintf(insert, sizeof insert, "sqlite3 '%.*s-plain' 'create table if not exists "
                 "t(a,b,c); insert into t values(1,2,3)'", (int)path_len, path);
        snprintf(add, sizeof add, "%s/src/cli/weir --store '%s' add x '{\"a\":1}'", self, l.url);
        team *t = make_team(&l);
        pid_t owner = start(t, own, 0);
        wait_ready(t, 1);
        theirs = time_command(insert, TIMES);
        ours = time_command(add, TIMES);
        ratio[i] = ours / theirs;
        kill(owner, SIGKILL);
        waitpid(owner, NULL, 0);
        munmap(t, sizeof *t);
        snprintf(insert, sizeof insert, "%.*s-plain", (int)path_len, path);
        unlink(insert);
    }
    printf("  %-56s %9.2f over %.2f ms\n", name, ours, theirs);
    report(name, middle(ratio, rounds), "x", false, 1.5);
}
