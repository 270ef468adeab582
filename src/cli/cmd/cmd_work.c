/* cmd_work.c - weir work: a pool whose handler is a program. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include "cli/exec/exec.h"
#include "cli/exec/guard.h"
#include "cli/exec/program.h"
#include "cli/follow.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/trouble.h"
#include "cli/types.h"

typedef struct work_opts {
    opt_texts   types;
    opt_num     jobs, lease, kill_after, shutdown;
    const char *exec, *pass_env, *table, *when, *log_format, *log_level;
    bool        drain;
} work_opts;
CLI_VALUES_FIT(work_opts);

#define AT(member) offsetof(work_opts, member)
static const option_entry work_options[] = {
    TYPE_OPTION(AT(types), "jobs of this type; may be given several times"),
    { .name = "exec", .letter = 'x', .kind = OPT_TEXT, .at = AT(exec), .arg = "CMD",
      .words = "<command>", .help = "or a command for /bin/sh -c" },
    { .name = "jobs", .letter = 'j', .kind = OPT_INT, .at = AT(jobs), .arg = "N", .min = 1,
      .max = WEIR_MAX_THREADS, .help = "jobs at once (1)" },
    WHEN_OPTION(AT(when)),
    { .name = "drain", .kind = OPT_FLAG, .at = AT(drain),
      .help = "end when none of these types waits, is delayed or runs any more" },
    { .name = "lease", .kind = OPT_DURATION, .at = AT(lease), .arg = "TIME",
      .min = WEIR_MIN_LEASE_MS,
      .help = "lease duration: a job whose worker does not renew it in time is queued again "
              "(30s)" },
    { .name = "kill-after", .kind = OPT_DURATION, .at = AT(kill_after), .arg = "TIME",
      .help = "from SIGTERM to SIGKILL for a job that must end (10s)" },
    { .name = "shutdown-timeout", .kind = OPT_DURATION, .at = AT(shutdown), .arg = "TIME",
      .help = "how long running jobs may go on after SIGTERM (30s)" },
    { .name = "pass-env", .kind = OPT_TEXT, .at = AT(pass_env), .arg = "NAMES",
      .words = "WEIR_STORE WEIR_TOKEN", .many = true,
      .help = "variables WEIR_* that the program gets, with commas between: WEIR_STORE,WEIR_TOKEN "
              "(none, since they may hold secrets)" },
    TASK_TABLE_OPTION(AT(table)),
    LOG_OPTIONS(AT(log_format), AT(log_level)),
    { 0 }
};
#undef AT

enum {
    KILL_AFTER_MS = 10000,
    DRAIN_MS = 20,         /* between two looks at what is left */
    MAX_BEGUN = 2 * WEIR_MAX_THREADS,
    REAP_MS = 10
};

/* A job that this worker has begun, and whose end has not been printed. */
typedef struct begun {
    uint64_t id;
    uint32_t delivery;
    int64_t  at;                /* cli_clock_ms() */
    int64_t  took_ms;           /* -1: its program runs */
} begun;

typedef struct worker {
    cli             *c;
    const work_opts *o;
    cli_types        types;
    weir_queue      *q;
    weir_tasks      *tasks;         /* followed */
    exec_config      exec;
    guard            guard;
    int              signals;       /* SIGTERM, SIGINT */
    int              moved;         /* eventfd: a job has ended, or cannot run */
    cli_trouble      trouble;       /* of the store */
    pthread_mutex_t  lock;          /* guards what follows */
    begun            begun[MAX_BEGUN];
    size_t           n_begun;
} worker;

/* ---- a line for each job of this worker that has ended ---- */

/* Lock held. */
static begun *find_begun(worker *w, uint64_t id, uint32_t delivery)
{
    for (size_t i = 0; i < w->n_begun; i++)
        if (w->begun[i].id == id && w->begun[i].delivery == delivery)
            return &w->begun[i];
    return NULL;
}

static void note_begin(worker *w, const weir_job *job)
{
    pthread_mutex_lock(&w->lock);
    size_t at = w->n_begun;
    if (at == MAX_BEGUN)        /* instead of one whose end was missed: at most half of them run */
        for (at = 0; w->begun[at].took_ms < 0;)
            at++;
    else
        w->n_begun++;
    w->begun[at] = (begun){ job->id, job->delivery, cli_clock_ms(), -1 };
    pthread_mutex_unlock(&w->lock);
}

static void note_end(worker *w, uint64_t id, uint32_t delivery)
{
    pthread_mutex_lock(&w->lock);
    begun *b = find_begun(w, id, delivery);
    if (b)
        b->took_ms = cli_clock_ms() - b->at;
    pthread_mutex_unlock(&w->lock);
}

/* How long it took. -1: it is not this worker's, or its end was seen before. */
static int64_t take_begun(worker *w, const weir_event *e)
{
    int64_t took = -1;
    pthread_mutex_lock(&w->lock);
    begun *b = find_begun(w, e->id, e->delivery);
    if (b) {
        took = b->took_ms >= 0 ? b->took_ms : cli_clock_ms() - b->at;
        *b = w->begun[--w->n_begun];
    }
    pthread_mutex_unlock(&w->lock);
    return took;
}

static void end_json(const weir_event *e, int64_t took)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, "id", (int64_t)e->id);
    jw_text(&w, "type", e->type);
    jw_text(&w, "event", weir_event_name(e->kind));
    if (e->state != WEIR_STATE_ANY)
        jw_text(&w, "state", weir_state_name(e->state));
    jw_int(&w, "attempts", e->attempts);
    jw_int(&w, "duration", took);
    if (e->kind == WEIR_EVENT_COMPLETE && e->text)
        jw_raw(&w, "result", e->text, e->text_len);
    else if (e->text)
        jw_text(&w, "error", e->text);
    jw_end(&w, '}');
}

static void end_text(const weir_event *e, int64_t took)
{
    static const struct { const char *mark, *plain; term_color color; } look[WEIR_EVENT_COUNT] = {
        [WEIR_EVENT_COMPLETE] = { "\xe2\x9c\x93", "ok", COLOR_GREEN },
        [WEIR_EVENT_FAILED] = { "\xe2\x9c\x97", "failed", COLOR_RED },
        [WEIR_EVENT_FAILED_ATTEMPT] = { "\xe2\x86\xbb", "again", COLOR_YELLOW },
        [WEIR_EVENT_CANCELLED] = { "\xe2\x88\x85", "cancelled", COLOR_YELLOW }
    };
    enum { LOG_WIDTH = 500 };        /* in a file there is room for more */
    char        type[64], text[32], line[200], rest[2100];
    const char *mark = term_utf8() ? look[e->kind].mark : look[e->kind].plain;
    snprintf(line, sizeof line, " %llu %s %s%s", (unsigned long long)e->id,
             term_clean(type, sizeof type, e->type, 30), term_duration(text, sizeof text, took),
             e->text ? " " : "");
    int room = (term_is_tty(stdout) ? term_width(stdout) : LOG_WIDTH) - term_text_width(mark) -
               term_text_width(line);
    printf("%s%s%s%s%s\n", term_on(stdout, look[e->kind].color), mark, term_off(stdout), line,
           term_clean(rest, sizeof rest, e->text ? e->text : "", room > 20 ? room : 20));
}

/* Behind the line of the last of these failures. */
static void say_slow(worker *w)
{
    if (atomic_exchange(&w->exec.slow_id, 0))
        cli_warn(w->c, "%d jobs have failed one after the other; slowing down", EXEC_STREAK);
}

static void on_event(const weir_event *e, void *ctx)
{
    worker *w = ctx;
    if (e->kind == WEIR_EVENT_ERROR)
        cli_trouble_hint(&w->trouble);
    if (!e->type || !cli_types_have(&w->types, e->type)) {
        eventfd_write(w->moved, 1);
        return;
    }
    bool    ended = e->kind == WEIR_EVENT_COMPLETE || e->kind == WEIR_EVENT_FAILED ||
                    e->kind == WEIR_EVENT_FAILED_ATTEMPT || e->kind == WEIR_EVENT_CANCELLED;
    bool    gone = e->kind == WEIR_EVENT_REMOVE || e->kind == WEIR_EVENT_STALLED;
    int64_t took = ended || gone ? take_begun(w, e) : -1;
    if (ended && took >= 0 && !w->c->quiet) {
        if (w->c->json)
            end_json(e, took);
        else
            end_text(e, took);
        fflush(stdout);
    }
    if (ended && e->id == atomic_load(&w->exec.slow_id) &&
        e->delivery == atomic_load(&w->exec.slow_delivery))
        say_slow(w);
    eventfd_write(w->moved, 1);
}

/* ---- is anything left? ---- */

typedef enum left { LEFT_SOME, LEFT_NONE, LEFT_PAUSED } left;

static weir_code look_what_is_left(worker *w, left *out)
{
    weir_stats *s;
    uint64_t    can = 0, paused = 0;
    weir_code   rc = weir_get_stats(w->q, &s, &w->c->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->n; i++) {
        const weir_type_stats *t = &s->type[i];
        if (!cli_types_have(&w->types, t->type))
            continue;
        uint64_t waiting = t->count[WEIR_STATE_INACTIVE] + t->count[WEIR_STATE_DELAYED];
        can += t->count[WEIR_STATE_ACTIVE];
        *(t->paused || s->all.paused ? &paused : &can) += waiting;
    }
    weir_stats_free(s);
    *out = can ? LEFT_SOME : paused ? LEFT_PAUSED : LEFT_NONE;
    return WEIR_OK;
}

/* ---- the end ---- */

static void *stop_thread(void *arg)
{
    worker *w = arg;
    int64_t ms = w->o->shutdown.set ? w->o->shutdown.n : WEIR_DRAIN_MS;
    return (void *)(intptr_t)weir_stop(w->q, NULL, ms, &w->c->err);
}

static bool got_signal(worker *w)
{
    struct signalfd_siginfo info;
    return read(w->signals, &info, sizeof info) == sizeof info;
}

static void nap(int ms, int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    cli_poll(&p, 1, ms);
}

/* Stop the pool while listening for a second signal, then see the programs off: those whose time
 * is up are being killed by their handlers. */
static weir_code stop(worker *w)
{
    pthread_t thread;
    void     *answer = NULL;
    atomic_store(&w->exec.stopping, true);
    if (pthread_create(&thread, NULL, stop_thread, w))
        return weir_fail(&w->c->err, WEIR_ENOMEM, "cannot start a thread");
    while (pthread_tryjoin_np(thread, &answer)) {
        nap(REAP_MS, w->signals);
        if (got_signal(w))
            atomic_store(&w->exec.kill_now, true);
    }
    while (atomic_load(&w->exec.running) > 0) {
        nap(REAP_MS, w->signals);
        if (got_signal(w))
            atomic_store(&w->exec.kill_now, true);
    }
    return (weir_code)(intptr_t)answer;
}

static const char *program_of(const worker *w)
{
    return w->exec.argv ? w->exec.argv[0] : w->exec.command;
}

/* A program that cannot run is an error, many failures are a remark. */
static weir_code say_trouble(worker *w)
{
    int why = atomic_load(&w->exec.cannot);
    if (why)
        return weir_fail(&w->c->err, WEIR_ENOENT, "'%.100s' cannot run (%d); its job waits again, "
                         "and this worker stops", program_of(w), why);
    say_slow(w);
    return WEIR_OK;
}

static void say_start(worker *w)
{
    char   shown[200], types[200] = "";
    size_t n = 0;
    for (size_t i = 0; i < w->types.n && n < sizeof types; i++)
        n += (size_t)snprintf(types + n, sizeof types - n, "%s%s", i ? ", " : "", w->types.name[i]);
    cli_note(w->c, "working on %s in %s with '%s', %lld at once%s", types,
             cli_show_url(shown, sizeof shown, w->c->store),
             program_of(w),
             (long long)(w->o->jobs.set ? w->o->jobs.n : 1),
             w->o->drain ? " until none is left" : "; SIGTERM or Ctrl-C stops it");
}

static weir_code run(worker *w)
{
    struct pollfd p[] = { { .fd = w->signals, .events = POLLIN },
                          { .fd = w->exec.changed, .events = POLLIN },
                          { .fd = w->trouble.wake, .events = POLLIN },
                          { .fd = w->o->drain ? w->moved : -1, .events = POLLIN } };
    for (bool first = true;; first = false) {
        if (!first)
            cli_poll(p, 4, cli_trouble_wait(&w->trouble));
        if (got_signal(w)) {
            if (term_is_tty(stderr))
                cli_note(w->c, "letting running jobs finish; once more to kill them");
            return WEIR_OK;
        }
        eventfd_t count;
        if (!eventfd_read(w->exec.changed, &count) && say_trouble(w))
            return w->c->err.code;
        cli_trouble_look(&w->trouble);
        if (!w->o->drain)
            continue;
        if (!first)
            eventfd_read(w->moved, &count);
        left      what = LEFT_SOME;
        weir_code rc = look_what_is_left(w, &what);
        if (rc)
            return rc;
        if (what == LEFT_NONE)
            return WEIR_OK;
        if (what == LEFT_PAUSED)
            return weir_fail(&w->c->err, WEIR_ESTATE, "the remaining jobs are of a paused type; "
                             "`weir resume` lets them run");
        nap(DRAIN_MS, w->signals);
    }
}

static weir_code do_job(weir_job *job, void *ctx)
{
    worker   *w = ctx;
    uint64_t  id = job->id;
    uint32_t  delivery = job->delivery;
    note_begin(w, job);
    weir_code rc = exec_job(job, &w->exec);
    note_end(w, id, delivery);
    return rc;
}

static weir_code work(worker *w)
{
    cli            *c = w->c;
    weir_listener  *listener;
    weir_pool_config pool = {
        .handler = do_job, .ctx = w, .types = w->types.name,
        .threads = w->o->jobs.set ? (int32_t)w->o->jobs.n : 1, .lease_ms = w->o->lease.n,
        .when = w->o->when
    };
    weir_code rc = weir_listen(w->q, NULL, on_event, w, &listener, &c->err);
    if (!rc)
        rc = weir_process(w->q, NULL, &pool, NULL, &c->err);
    if (rc)
        return rc;
    say_start(w);
    rc = run(w);
    weir_error why = c->err;
    weir_code  stopped = stop(w);
    if (rc)
        c->err = why;
    else if (stopped == WEIR_ETIMEOUT)
        rc = weir_fail(&c->err, stopped, "some jobs did not finish in time and failed with "
                       "\"Shutdown\"");
    else
        rc = stopped ? stopped : cli_trouble_left(&w->trouble);
    return rc;
}

static int run_work(cli *c, const void *values)
{
    const work_opts *o = values;
    worker           w = { .c = c, .o = o, .lock = PTHREAD_MUTEX_INITIALIZER };
    if (cli_log_set(&c->log, o->log_format, o->log_level, &c->err) ||
        cli_types_take(c, &o->types, &w.types))
        return cli_usage(c, "%s", c->err.msg);
    if (w.types.n == 0)
        return cli_usage(c, "TYPE is missing");
    if (cli_when_check(c, o->when))
        return cli_usage(c, "--%s", c->err.msg);
    if (o->when && o->drain)
        return cli_usage(c, "either --drain or --when: jobs for which the condition is not true "
                         "stay, so that the worker would never end");
    if (c->rest && (o->exec || !*c->rest))
        return cli_usage(c, o->exec ? "either --exec, or -- and a program"
                                    : "no program behind --");
    if (!c->rest && (!o->exec || !*o->exec))
        return cli_usage(c, "which program does the jobs? Give -- PROGRAM, or --exec CMD");
    if (program_check(o->exec, c->rest, &c->err))
        return cli_fail(c);
    w.exec.command = o->exec;
    w.exec.argv = c->rest;
    w.exec.pass_env = o->pass_env;
    w.exec.log = c->log.json ? &c->log : NULL;
    w.exec.kill_after_ms = o->kill_after.set ? o->kill_after.n : KILL_AFTER_MS;
    signal(SIGPIPE, SIG_IGN);
    w.signals = cli_signals(SIGTERM, SIGINT, 0);
    w.moved = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w.exec.changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cli_trouble_init(&w.trouble, c);
    weir_code rc = cli_open(c, CLI_CHANGE, &w.q);
    if (!rc)
        rc = cli_follow(c, w.q, o->table, &w.tasks);
    if (!rc)
        rc = guard_start(&w.guard, w.q, &c->err);
    w.exec.guard = &w.guard;
    w.exec.q = w.trouble.q = w.q;
    if (!rc)
        cli_types_note(c, w.q, &w.types, o->drain ? "it has no jobs" : TYPES_WAIT);
    if (!rc) {
        rc = work(&w);
        guard_stop(&w.guard);
    }
    weir_tasks_close(w.tasks);
    weir_close(w.q);        /* calls the listener for all that has happened, then releases it */
    cli_trouble_fini(&w.trouble);
    close(w.signals);
    close(w.moved);
    close(w.exec.changed);
    return rc ? cli_fail(c) : 0;
}

const command cmd_work = {
    .name = "work", .group = GROUP_START, .args = "TYPE... -- PROGRAM [ARG...]", .max_args = -1,
    .rest = true,
    .words = "<type>",
    .summary = "do jobs with a program of yours",
    .help = "PROGRAM, or CMD of --exec with /bin/sh -c, runs once for each job, with the job's "
            "data on standard input. Its standard output is the result (JSON as it is, other text "
            "as a string), its exit status the outcome; 0 is success. On file descriptor 3 it may "
            "write lines `progress 40/100` and `log TEXT`. The last line of its standard error "
            "becomes part of the error. It finds WEIR_JOB_ID, WEIR_JOB_TYPE, WEIR_JOB_ATTEMPT, "
            "WEIR_JOB_MAX_ATTEMPTS and WEIR_JOB_DELIVERY in its environment.\n\n"
            "A job that was cancelled or is out of time gets SIGTERM, then SIGKILL. SIGTERM or "
            "SIGINT to weir lets the running jobs finish; a second one does not. When weir itself "
            "is killed, its programs are killed too.\n\n"
            "The program is looked up before the first job. If it cannot run later (exit status "
            "126 or 127), its job waits again and the worker stops with status 3. After 10 "
            "failures one after the other the worker slows down.\n\n"
            "Tasks with a schedule (`weir task`) are ready again after each run.",
    .examples = "weir work mail -j 4 -- ./send-mail --from noreply@example.org\n"
                "weir work resize crop --exec './convert-image | sort' --drain\n",
    .options = work_options, .run = run_work,
};
