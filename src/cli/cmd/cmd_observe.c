/* cmd_observe.c - weir observe: jobs as lines of JSON, for shells and any other language.
 *
 * A job's line goes to standard output. The reader's answer, a line on standard input, is its
 * outcome; at most --window jobs wait for theirs, so the reader gets as many as it can handle. When
 * the reader is gone, or nobody can answer any more, jobs without an outcome go back. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/follow.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/types.h"

enum {
    MAX_WINDOW  = 10000,
    MAX_ANSWER  = WEIR_MAX_DATA + 64,       /* bytes of a line: an id, a word, a result */
    DRAIN_MS    = 30000,                    /* for the last outcomes to reach the store */
    LOOK_MS     = 1                         /* how often the pipe is looked at with --auto-ack */
};

typedef struct observe_opts {
    opt_num     limit, window, lease, poll;
    opt_texts   types;
    const char *when, *table;
    bool        auto_ack;
} observe_opts;
CLI_VALUES_FIT(observe_opts);

#define AT(member) offsetof(observe_opts, member)
static const option_entry observe_options[] = {
    { .name = "auto-ack", .kind = OPT_FLAG, .at = AT(auto_ack),
      .help = "a job is complete when its line was read; standard input is not used" },
    { .name = "window", .kind = OPT_INT, .at = AT(window), .arg = "N", .min = 1, .max = MAX_WINDOW,
      .help = "jobs at once without an answer (default 1)" },
    TYPE_OPTION(AT(types), "jobs of this type; may be given several times"),
    WHEN_OPTION(AT(when)),
    { .name = "limit", .letter = 'n', .kind = OPT_INT, .at = AT(limit), .arg = "N", .min = 1,
      .help = "end after this many" },
    { .name = "lease", .kind = OPT_DURATION, .at = AT(lease), .arg = "TIME",
      .min = WEIR_MIN_LEASE_MS, .max = WEIR_MAX_MS,
      .help = "how long jobs stay taken if this program is killed (default 30s)" },
    { .name = "poll", .kind = OPT_DURATION, .at = AT(poll), .arg = "TIME", .min = 1,
      .max = WEIR_MAX_MS, .help = "ask the store this often (default: as soon as a job waits)" },
    TASK_TABLE_OPTION(AT(table)),
    { 0 }
};
#undef AT

typedef struct observer {
    const cli      *c;
    bool            auto_ack, is_pipe;
    int             ended;          /* eventfd: no job comes any more */
    atomic_bool     gone;           /* the reader is, or this program ends */
    pthread_mutex_t lock;           /* guards what follows */
    weir_job       *held[MAX_WINDOW];
    size_t          n_held;
    char           *line;           /* of the answer that is being read */
    size_t          n_line;         /* the main thread's */
} observer;

/* A job waits for its answer from now on. False: this program ends. */
static bool hold(observer *o, weir_job *job)
{
    pthread_mutex_lock(&o->lock);
    bool ok = !atomic_load(&o->gone);
    if (ok)
        o->held[o->n_held++] = job;
    pthread_mutex_unlock(&o->lock);
    return ok;
}

/* ---- lines to the reader ---- */

/* Write without being stuck when the reader does not read: a pipe that is ready takes PIPE_BUF
 * bytes. False: nobody reads any more. */
static bool write_all(observer *o, const char *text, size_t len)
{
    enum { WAIT_MS = 100 };
    while (len && !atomic_load(&o->gone)) {
        struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
        int ready = poll(&p, 1, WAIT_MS);
        if (ready <= 0)
            continue;
        if (p.revents & (POLLERR | POLLNVAL))
            return false;
        ssize_t n = write(STDOUT_FILENO, text, len < PIPE_BUF ? len : PIPE_BUF);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return !len;
}

static bool write_job(observer *o, const weir_job *job)
{
    size_t len;
    char  *json = weir_job_json(job, &len);
    if (!json)
        return false;
    json[len] = '\n';                       /* in place of its NUL */
    bool written = write_all(o, json, len + 1);
    free(json);
    return written;
}

/* Wait until the reader has read all. False: it never will. */
static bool was_read(observer *o)
{
    while (o->is_pipe) {
        int left = 0;
        if (ioctl(STDOUT_FILENO, FIONREAD, &left) || !left)
            break;
        struct pollfd p = { .fd = STDOUT_FILENO };
        if ((poll(&p, 1, LOOK_MS) > 0 && p.revents & POLLERR) || atomic_load(&o->gone))
            return false;
    }
    return true;
}

static weir_code on_next(weir_item *items, size_t n, void *ctx)
{
    observer *o = ctx;
    weir_job *job = items->job;
    (void)n;
    if (!o->auto_ack && !hold(o, job))      /* before the line: its answer may come at once */
        return weir_job_return(job, 0, NULL);
    bool there = write_job(o, job) && (!o->auto_ack || was_read(o));
    if (!there)
        eventfd_write(o->ended, 1);
    if (!o->auto_ack)
        return WEIR_LATER;
    return there ? WEIR_OK : weir_job_return(job, 0, NULL);
}

static void on_error(const weir_error *why, void *ctx)
{
    const observer *o = ctx;
    cli_note(o->c, "%s; trying again", why->msg);
}

static void on_end(void *ctx)
{
    const observer *o = ctx;
    eventfd_write(o->ended, 1);
}

/* ---- answers ---- */

/* Remove a job from the list of jobs without an answer; id 0: any. NULL: no such job. */
static weir_job *release(observer *o, uint64_t id)
{
    weir_job *job = NULL;
    pthread_mutex_lock(&o->lock);
    for (size_t i = 0; i < o->n_held && !job; i++) {
        if (!id || o->held[i]->id == id) {
            job = o->held[i];
            o->held[i] = o->held[--o->n_held];
        }
    }
    pthread_mutex_unlock(&o->lock);
    return job;
}

static size_t held(observer *o)
{
    pthread_mutex_lock(&o->lock);
    size_t n = o->n_held;
    pthread_mutex_unlock(&o->lock);
    return n;
}

static weir_code answer_done(weir_job *job, const char *rest, weir_error *err)
{
    return weir_job_done(job, *rest ? rest : NULL, 0, err);
}

/* weir_job_fail() has no weir_error: the text of the code is all there is to say. */
static weir_code failed(weir_code rc, weir_error *err)
{
    return rc == WEIR_EJOB ? WEIR_OK : weir_fail(err, rc, "%s", weir_code_text(rc));
}

static weir_code answer_fail(weir_job *job, const char *rest, weir_error *err)
{
    return failed(weir_job_fail(job, "%s", *rest ? rest : "failed"), err);
}

static weir_code answer_give_up(weir_job *job, const char *rest, weir_error *err)
{
    return failed(weir_job_give_up(job, "%s", *rest ? rest : "given up"), err);
}

static weir_code answer_return(weir_job *job, const char *rest, weir_error *err)
{
    int64_t   delay_ms = 0;
    weir_code rc = *rest ? weir_duration_parse(rest, &delay_ms, err) : WEIR_OK;
    return rc ? rc : weir_job_return(job, delay_ms, err);
}

static const struct {
    const char *word;
    weir_code (*run)(weir_job *job, const char *rest, weir_error *err);
} answers[] = {
    { "", answer_done },        { "done", answer_done },       { "fail", answer_fail },
    { "return", answer_return }, { "give-up", answer_give_up },
};

/* A line "ID [WORD [REST]]". The error is printed, and the job goes on. */
static void answer(observer *o, char *line)
{
    char    *end;
    uint64_t id = strtoull(line, &end, 10);
    char    *word = end + strspn(end, " \t");
    char    *rest = word + strcspn(word, " \t");
    if (*rest)
        *rest++ = '\0';
    rest += strspn(rest, " \t");
    size_t i = 0, n = sizeof answers / sizeof *answers;
    while (i < n && strcmp(answers[i].word, word) != 0)
        i++;
    if (!id || end == line || i == n) {
        cli_note(o->c, "answer \"%.80s\": expected ID, ID done [RESULT], ID fail [TEXT], "
                 "ID return [DELAY] or ID give-up [TEXT]", line);
        return;
    }
    weir_job *job = release(o, id);
    if (!job) {
        cli_note(o->c, "answer for job %" PRIu64 ": it does not wait for one", id);
        return;
    }
    weir_error err;
    weir_code  rc = answers[i].run(job, rest, &err);
    if (rc == WEIR_EINVAL || rc == WEIR_ELIMIT || rc == WEIR_ENOMEM)
        hold(o, job);                       /* the answer was refused: another may come */
    if (rc)
        cli_note(o->c, "answer for job %" PRIu64 ": %s", id, err.msg);
}

/* Read what there is of answers. False: no more will come. */
static bool read_answers(observer *o)
{
    ssize_t n = read(STDIN_FILENO, o->line + o->n_line, MAX_ANSWER - o->n_line);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0)
        return false;
    o->n_line += (size_t)n;
    char *start = o->line, *end;
    while ((end = memchr(start, '\n', o->n_line - (size_t)(start - o->line)))) {
        *end = '\0';
        if (end > start)
            answer(o, start);
        start = end + 1;
    }
    o->n_line -= (size_t)(start - o->line);
    memmove(o->line, start, o->n_line);
    if (o->n_line < MAX_ANSWER)
        return true;
    cli_note(o->c, "answer: more than %d bytes (MAX_ANSWER) without an end", MAX_ANSWER);
    return false;
}

/* ---- the command ---- */

/* Until a signal comes, the reader is gone, no answer can come, or all is done. */
static void wait_for_end(observer *o, int signals)
{
    struct pollfd p[] = { { .fd = signals, .events = POLLIN },
                          { .fd = o->ended, .events = POLLIN },
                          { .fd = STDOUT_FILENO },
                          { .fd = o->auto_ack ? -1 : STDIN_FILENO, .events = POLLIN } };
    bool over = false;
    while (!over || held(o)) {
        if (cli_poll(p, 4, -1) < 0 || p[0].revents || p[2].revents & (POLLERR | POLLNVAL))
            return;
        if (p[1].revents) {                 /* what is held may still be answered */
            over = true;
            p[1].fd = -1;
        }
        if (p[3].revents && !read_answers(o))
            return;
    }
}

/* The jobs without an outcome go back. */
static weir_code finish(observer *o, weir_stream *stream, weir_error *err)
{
    weir_job *job;
    pthread_mutex_lock(&o->lock);
    atomic_store(&o->gone, true);
    pthread_mutex_unlock(&o->lock);
    while ((job = release(o, 0)))
        weir_job_return(job, 0, NULL);
    weir_code rc = weir_stream_stop(stream, DRAIN_MS, err);
    weir_stream_free(stream);
    return rc;
}

static int run_observe(cli *c, const void *values)
{
    const observe_opts *opt = values;
    static observer     o;
    weir_queue         *q;
    weir_stream        *stream;
    weir_tasks         *tasks = NULL;
    cli_types           types;
    struct stat         st;
    if (cli_types_take(c, &opt->types, &types))
        return cli_usage(c, "%s", c->err.msg);
    if (types.n == 0)
        return cli_usage(c, "TYPE is missing");
    o = (observer){ .c = c, .auto_ack = opt->auto_ack, .lock = PTHREAD_MUTEX_INITIALIZER,
                    .is_pipe = !fstat(STDOUT_FILENO, &st) && S_ISFIFO(st.st_mode),
                    .line = malloc(MAX_ANSWER), .ended = eventfd(0, EFD_CLOEXEC) };
    if (opt->auto_ack && opt->window.set)
        return cli_usage(c, "either --auto-ack or --window: no job waits for an answer with "
                         "--auto-ack");
    if (cli_when_check(c, opt->when))
        return cli_usage(c, "--%s", c->err.msg);
    signal(SIGPIPE, SIG_IGN);
    int signals = cli_signals(SIGINT, SIGTERM, SIGHUP, 0);
    if (!o.line || cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    cli_types_note(c, q, &types, TYPES_WAIT);
    weir_observing how = { .ctx = &o, .types = types.name, .take = opt->limit.n,
                           .held = opt->window.set ? (int32_t)opt->window.n : 1,
                           .prefetch = WEIR_PREFETCH_NONE, .lease_ms = opt->lease.n,
                           .poll_ms = opt->poll.n, .when = opt->when };
    weir_code rc = cli_follow(c, q, opt->table, &tasks);
    if (!rc)
        rc = weir_observe(q, NULL, &how, on_next, on_error, on_end, &stream, &c->err);
    if (!rc) {
        wait_for_end(&o, signals);
        rc = finish(&o, stream, &c->err);
    }
    weir_tasks_close(tasks);
    weir_close(q);
    close(signals);
    close(o.ended);
    free(o.line);
    return rc ? cli_fail(c) : 0;
}

const command cmd_observe = {
    .name = "observe", .group = GROUP_START, .args = "TYPE...", .max_args = -1,
    .words = "<type>",
    .summary = "jobs as lines of JSON, for shells and other languages",
    .help = "Each job is one line on standard output, and waits for an answer on standard input: "
            "`ID` or `ID done [RESULT]`: it is complete; `ID fail [TEXT]`: it is tried again if "
            "attempts are left; `ID return [DELAY]`: the job waits again, and no attempt is used; "
            "`ID give-up [TEXT]`: it has failed. Its lease is renewed meanwhile.\n\n"
            "At most --window jobs wait for their answers; the others stay in the queue. When the "
            "reader is gone, standard input ends or a signal comes, jobs without an answer go "
            "back, without using an attempt. If this program is killed, they go to other workers "
            "when their leases end.\n\n"
            "With --auto-ack the next job is taken when the line of the last one was read.",
    .examples = "weir observe mail --auto-ack | while read -r job; do handle \"$job\"; done\n",
    .options = observe_options, .run = run_observe,
};
