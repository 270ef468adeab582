/* cmd_top.c - weir top: what goes on, on one screen. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>
#include "cli/say.h"
#include "cli/select.h"
#include "cli/signals.h"
#include "cli/store.h"

typedef struct top_opts {
    opt_texts types;
    bool      once;
} top_opts;
CLI_VALUES_FIT(top_opts);

static const option_entry top_options[] = {
    TYPE_OPTION(offsetof(top_opts, types), "only this type; may be given several times"),
    { .name = "once", .kind = OPT_FLAG, .at = offsetof(top_opts, once),
      .help = "print it once and end" },
    { 0 }
};

enum {
    FRAME_MS = 200,        /* at most one frame in this time */
    IDLE_MS = 1000,        /* and at least one in this, for the times on it */
    RATES = 8,             /* looks that the rates are measured over */
    ACTIVE_ROWS = 10,
    FAILED_ROWS = 5
};

/* The first jobs of a list. */
typedef struct few {
    weir_job *job[ACTIVE_ROWS];
    size_t    n;
} few;
_Static_assert(FAILED_ROWS <= ACTIVE_ROWS, "few");

/* All that is on a frame. */
typedef struct scene {
    weir_stats *stats;              /* `all` is the sum of the types that are wanted, ... */
    size_t      n_types;            /* ... which are the first */
    few         active, failed;
} scene;

typedef struct sample {
    int64_t  at;
    uint64_t completed, failed, last_id;
} sample;

typedef struct top {
    cli        *c;
    weir_queue *q;
    cli_types   types;              /* none: all */
    int         moved;              /* eventfd */
    sample      past[RATES];        /* a ring: past[n % RATES] is the oldest */
    size_t      n;
    double      done_rate, fail_rate, add_rate;
} top;

static void few_fini(few *r)
{
    for (size_t i = 0; i < r->n; i++)
        weir_job_free(r->job[i]);
}

static void scene_fini(scene *s)
{
    weir_stats_free(s->stats);
    few_fini(&s->active);
    few_fini(&s->failed);
    *s = (scene){ 0 };
}

/* The jobs that began first, or that ended last. */
static weir_code read_few(top *t, weir_state state, size_t max, few *out)
{
    static const select_opts every = { 0 };
    selection *s;
    weir_code  rc = selection_create(&s, t->c, t->q, &every, &t->types, WEIR_BIT(state),
                                     SELECT_USUAL);
    while (!rc && out->n < max) {
        rc = selection_next(s, max - out->n, &out->job[out->n]);
        if (rc || !out->job[out->n])
            break;
        out->n++;
    }
    selection_destroy(s);
    return rc;
}

static void add_up(weir_type_stats *sum, const weir_type_stats *t)
{
    for (int i = 0; i < WEIR_STATE_COUNT; i++)
        sum->count[i] += t->count[i];
    sum->completed += t->completed;
    sum->failed += t->failed;
}

/* Put the types that are wanted first. How many these are. */
static size_t keep_types(weir_stats *s, const cli_types *types)
{
    size_t          n = 0;
    weir_type_stats sum = { .type = s->all.type, .paused = s->all.paused };
    for (size_t i = 0; i < s->n; i++) {
        if (!cli_types_have(types, s->type[i].type))
            continue;
        weir_type_stats other = s->type[n];
        add_up(&sum, &s->type[i]);
        s->type[n++] = s->type[i];
        s->type[i] = other;
    }
    s->all = sum;
    return n;
}

static weir_code scene_read(top *t, scene *s)
{
    weir_code rc = weir_get_stats(t->q, &s->stats, &t->c->err);
    if (!rc)
        s->n_types = t->types.n ? keep_types(s->stats, &t->types) : s->stats->n;
    if (!rc)
        rc = read_few(t, WEIR_STATE_ACTIVE, ACTIVE_ROWS, &s->active);
    if (!rc)
        rc = read_few(t, WEIR_STATE_FAILED, FAILED_ROWS, &s->failed);
    return rc;
}

static void measure(top *t, const scene *s)
{
    sample now = { cli_clock_ms(), s->stats->all.completed, s->stats->all.failed,
                   s->stats->last_id };
    if (t->n && now.at - t->past[(t->n - 1) % RATES].at < 500)
        return;
    if (t->n) {
        const sample *old = &t->past[t->n < RATES ? 0 : t->n % RATES];
        double        s_passed = (double)(now.at - old->at) / 1000;
        t->done_rate = (double)(now.completed - old->completed) / s_passed;
        t->fail_rate = (double)(now.failed - old->failed) / s_passed;
        t->add_rate = (double)(now.last_id - old->last_id) / s_passed;
    }
    t->past[t->n++ % RATES] = now;
}

/* ---- drawing ---- */

static void draw_head(FILE *out, const top *t, const scene *s, int64_t now)
{
    const weir_type_stats *a = &s->stats->all;
    char  at[40], url[200], number[32];
    int   used = 0;
    term_moment(at, sizeof at, now);
    at[19] = 0;
    fprintf(out, "%sweir top%s  %s  %s%s%s%s\n\n", term_on(stdout, COLOR_BOLD), term_off(stdout),
            at, term_on(stdout, COLOR_DIM),
            term_clean(url, sizeof url, t->c->store, term_width(stdout) - 42), term_off(stdout),
            a->paused ? "  PAUSED" : "");
    for (int i = WEIR_STATE_INACTIVE; i < WEIR_STATE_COUNT; i++) {
        term_number(number, sizeof number, a->count[i]);
        used += (int)strlen(number) + 2 + (int)strlen(weir_state_name((weir_state)i));
        if (used > term_width(stdout)) {
            fputc('\n', out);
            used = 0;
        }
        fprintf(out, "%s%s%s %s  ", term_on(stdout, term_state_color((weir_state)i)), number,
                term_off(stdout), weir_state_name((weir_state)i));
        used++;
    }
    fputc('\n', out);
    if (t->n) {         /* one look alone gives no rates, and adds are not counted by type */
        fputs(term_on(stdout, COLOR_DIM), out);
        if (!t->types.n)
            fprintf(out, "added %.1f/s  ", t->add_rate);
        fprintf(out, "completed %.1f/s  failed %.1f/s%s\n", t->done_rate, t->fail_rate,
                term_off(stdout));
    }
    fputc('\n', out);
}

/* Each type with a bar: what is done of what is there. */
static void draw_types(FILE *out, const scene *s, size_t rows, int64_t now)
{
    fprintf(out, "%s%-16s %-20s %8s %8s %7s %6s %7s%s\n", term_on(stdout, COLOR_BOLD), "TYPE",
            "DONE", "WAITING", "DELAYED", "ACTIVE", "FAILED", "OLDEST", term_off(stdout));
    for (size_t i = 0; i < s->n_types && i < rows; i++) {
        const weir_type_stats *y = &s->stats->type[i];
        char name[80], bar[100], oldest[32];
        uint64_t total = y->count[WEIR_STATE_ANY];
        uint64_t done = y->count[WEIR_STATE_COMPLETE] + y->count[WEIR_STATE_FAILED] +
                        y->count[WEIR_STATE_CANCELLED];
        term_clean(name, sizeof name, y->type, y->paused ? 9 : 16);
        if (y->paused)
            strcat(name, " paused");
        term_bar(bar, sizeof bar, (double)done, (double)total, 20);
        fprintf(out, "%s%*s %s%s%s %8llu %8llu %7llu %6llu %7s\n", name,
                16 - term_text_width(name), "", term_on(stdout, COLOR_GREEN), bar, term_off(stdout),
                (unsigned long long)y->count[WEIR_STATE_INACTIVE],
                (unsigned long long)y->count[WEIR_STATE_DELAYED],
                (unsigned long long)y->count[WEIR_STATE_ACTIVE],
                (unsigned long long)y->count[WEIR_STATE_FAILED],
                y->oldest_at ? term_duration(oldest, sizeof oldest,
                                             now > y->oldest_at ? now - y->oldest_at : 0) : "-");
    }
}

static void draw_active(FILE *out, const scene *s, size_t rows, int64_t now)
{
    char name[80], bar[100], took[32], worker[80];
    if (s->active.n == 0 || rows == 0)
        return;
    fprintf(out, "\n%sRUNNING%s\n", term_on(stdout, COLOR_BOLD), term_off(stdout));
    for (size_t i = 0; i < s->active.n && i < rows; i++) {
        const weir_job *j = s->active.job[i];
        term_clean(name, sizeof name, j->type, 16);
        term_bar(bar, sizeof bar, j->progress, 100, 20);
        fprintf(out, "%8llu %s%*s %s%s%s %3d%% %7s  %s%s%s\n", (unsigned long long)j->id, name,
                16 - term_text_width(name), "", term_on(stdout, COLOR_CYAN), bar, term_off(stdout),
                (int)j->progress, term_duration(took, sizeof took, now > j->started_at
                                                ? now - j->started_at : 0),
                term_on(stdout, COLOR_DIM),
                term_clean(worker, sizeof worker, j->worker ? j->worker : "", 17),
                term_off(stdout));
    }
}

static void draw_failed(FILE *out, const scene *s, size_t rows, int64_t now)
{
    char name[80], when[40], why[600];
    if (s->failed.n == 0 || rows == 0)
        return;
    fprintf(out, "\n%sFAILED LAST%s\n", term_on(stdout, COLOR_BOLD), term_off(stdout));
    for (size_t i = 0; i < s->failed.n && i < rows; i++) {
        const weir_job *j = s->failed.job[i];
        term_clean(name, sizeof name, j->type, 16);
        fprintf(out, "%8llu %s%*s %10s  %s%s%s\n", (unsigned long long)j->id, name,
                16 - term_text_width(name), "",
                term_relative(when, sizeof when, j->finished_at, now), term_on(stdout, COLOR_RED),
                term_clean(why, sizeof why, j->error ? j->error : "", term_width(stdout) - 38),
                term_off(stdout));
    }
}

/* As much as fits the height. */
static void draw(FILE *out, const top *t, const scene *s, int height)
{
    int64_t now = weir_now(t->q);
    size_t  room = height > 8 ? (size_t)height - 8 : 1;
    size_t  active = s->active.n, failed = s->failed.n, types = s->n_types;
    size_t  heads = (active ? 2u : 0) + (failed ? 2u : 0);
    while (types + active + failed + heads > room && (types > 3 || active > 1 || failed > 1)) {
        if (failed > 1 && failed >= active)
            failed--;
        else if (active > 1 && active >= types)
            active--;
        else if (types > 3)
            types--;
        else if (active > 1)
            active--;
        else
            break;
    }
    draw_head(out, t, s, now);
    draw_types(out, s, types, now);
    draw_active(out, s, active, now);
    draw_failed(out, s, failed, now);
}

static void frame_json(const scene *s)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    for (int i = WEIR_STATE_INACTIVE; i < WEIR_STATE_COUNT; i++)
        jw_int(&w, weir_state_name((weir_state)i), (int64_t)s->stats->all.count[i]);
    const few  *page[] = { &s->active, &s->failed };
    const char *name[] = { "running", "failed_last" };
    for (int k = 0; k < 2; k++) {
        jw_array(&w, name[k]);
        for (size_t i = 0; i < page[k]->n; i++) {
            size_t len = 0;
            char  *text = weir_job_json(page[k]->job[i], &len);
            jw_raw(&w, NULL, text, len);
            free(text);
        }
        jw_end(&w, ']');
    }
    jw_end(&w, '}');
}

static weir_code once(top *t)
{
    scene     s = { 0 };
    weir_code rc = scene_read(t, &s);
    if (!rc && t->c->json)
        frame_json(&s);
    else if (!rc)
        draw(stdout, t, &s, 1000);
    scene_fini(&s);
    return rc;
}

/* ---- the live screen ---- */

/* Written in one piece, each line cleared to its end, so that nothing flickers. */
static weir_code frame(top *t)
{
    scene     s = { 0 };
    char     *text = NULL;
    size_t    len = 0;
    weir_code rc = scene_read(t, &s);
    FILE     *out = rc ? NULL : open_memstream(&text, &len);
    if (!out) {
        scene_fini(&s);
        return rc ? rc : weir_fail(&t->c->err, WEIR_ENOMEM, "top");
    }
    int height = term_height(stdout);
    measure(t, &s);
    draw(out, t, &s, height);
    fclose(out);
    fputs("\033[H", stdout);
    char *line = text;
    for (int row = 1; *line && row < height; row++) {
        size_t n = strcspn(line, "\n");
        printf("%.*s\033[K\r\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    printf("\033[J%sq quits%s", term_on(stdout, COLOR_DIM), term_off(stdout));
    fflush(stdout);
    free(text);
    scene_fini(&s);
    return WEIR_OK;
}

static void on_event(const weir_event *e, void *ctx)
{
    (void)e;
    eventfd_write(((top *)ctx)->moved, 1);
}

/* A signal that ends it, or 'q'. A new size of the window only means another frame. */
static bool wants_out(int signals, int keys)
{
    struct signalfd_siginfo info;
    char                    key;
    struct pollfd           p = { .fd = keys, .events = POLLIN };
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGWINCH)
            return true;
    while (poll(&p, 1, 0) > 0) {
        ssize_t n = read(keys, &key, 1);
        if (n <= 0 || key == 'q' || key == 'Q')
            return true;
    }
    return false;
}

static weir_code live(top *t, int signals, int keys)
{
    weir_listener *listener;
    weir_code      rc = weir_listen(t->q, NULL, on_event, t, &listener, &t->c->err);
    if (rc)
        return rc;
    for (;;) {
        int64_t began = cli_clock_ms();
        rc = frame(t);
        if (rc)
            break;
        struct pollfd p[] = { { .fd = signals, .events = POLLIN },
                              { .fd = keys, .events = POLLIN },
                              { .fd = t->moved, .events = POLLIN } };
        poll(p, 3, IDLE_MS);
        if (wants_out(signals, keys))
            break;
        int64_t passed = cli_clock_ms() - began;
        if (passed < FRAME_MS)
            poll(p, 2, (int)(FRAME_MS - passed));
        if (wants_out(signals, keys))
            break;
        eventfd_t count;
        eventfd_read(t->moved, &count);
    }
    weir_unlisten(listener);
    return rc;
}

/* All signals that end a program arrive by descriptor here, so every way out passes the lines
 * that give the terminal back. */
static weir_code screen(top *t, int signals)
{
    struct termios before, raw;
    bool           keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    if (keys) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VSUSP] = _POSIX_VDISABLE;
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
    weir_code rc = live(t, signals, keys ? STDIN_FILENO : -1);
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return rc;
}

static int run_top(cli *c, const void *values)
{
    const top_opts *o = values;
    top             t = { .c = c };
    bool            still = o->once || c->json || !term_is_tty(stdout);
    if (cli_types_take(c, &o->types, &t.types))
        return cli_usage(c, "%s", c->err.msg);
    int signals = still ? -1 : cli_signals(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, 0);
    if (cli_open(c, CLI_LOOK, &t.q))
        return cli_fail(c);
    t.moved = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    weir_code rc = cli_types_check(c, t.q, &t.types);
    if (!rc)
        rc = still ? once(&t) : screen(&t, signals);
    weir_close(t.q);
    close(t.moved);
    if (signals >= 0)
        close(signals);
    return rc ? cli_fail(c) : 0;
}

const command cmd_top = {
    .name = "top", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "a live screen: counts, rates, active jobs, failures",
    .help = "`q` quits. A standard output that is no terminal gets it once, without rates.",
    .options = top_options, .run = run_top,
};
