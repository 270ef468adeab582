/* cmd_migrate.c - weir migrate: move all jobs from one store to another. mover.h says how. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/migrate/mover.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/store.h"

typedef struct migrate_opts {
    const char *from, *to;
    bool        follow, new_ids, keep;
} migrate_opts;
CLI_VALUES_FIT(migrate_opts);

#define AT(member) offsetof(migrate_opts, member)
static const option_entry migrate_options[] = {
    { .name = "from", .kind = OPT_TEXT, .at = AT(from), .arg = "URL", .words = "<file>",
      .help = "the source; needed" },
    { .name = "to", .kind = OPT_TEXT, .at = AT(to), .arg = "URL", .words = "<file>",
      .help = "the target; needed" },
    { .name = "follow", .letter = 'f', .kind = OPT_FLAG, .at = AT(follow),
      .help = "go on with what comes, until interrupted" },
    { .name = "new-ids", .kind = OPT_FLAG, .at = AT(new_ids),
      .help = "give each job the next id of the target; its log names both" },
    { .name = "keep", .kind = OPT_FLAG, .at = AT(keep),
      .help = "copy once: leave all in the source, which then runs what waits there, as the "
              "target does" },
    { 0 }
};
#undef AT

enum {
    LOOK_AGAIN_MS = 1000,
    SAY_AGAIN_MS  = 5000,
    KUE_QUIET_MS  = 3000        /* Kue is done with a job long before */
};

typedef struct migration {
    cli                *c;
    const migrate_opts *o;
    mover               m;
    int                 signals;
    int                 news;           /* eventfd: something happened in the source */
    int64_t             began, said;
    uint64_t            active;         /* jobs that workers of the source have */
    uint64_t            rest;           /* ... and others that are there, refused ones too */
    term_progress       bar;
} migration;

/* ---- while it goes on ---- */

static bool interrupted(const migration *g)
{
    struct pollfd p = { .fd = g->signals, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}

static bool on_bulk(mover *m, void *ctx)
{
    migration *g = ctx;
    uint64_t   done = m->moved[WEIR_STATE_ANY] + m->refused.n;
    char       a[32], b[32];
    if (done > g->bar.total)
        g->bar.total = done;
    term_progress_show(&g->bar, done);
    int64_t now = cli_clock_ms();
    if (!term_is_tty(stderr) && !g->c->json && now - g->said >= SAY_AGAIN_MS) {
        g->said = now;
        fprintf(stderr, "%s %s of %s\n", g->bar.what, term_number(a, sizeof a, done),
                term_number(b, sizeof b, g->bar.total));
    }
    return interrupted(g);
}

static weir_code look(migration *g)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(g->m.from, &s, &g->c->err);
    if (rc)
        return rc;
    g->active = s->all.count[WEIR_STATE_ACTIVE];
    g->rest = s->all.count[WEIR_STATE_ANY] - g->active;
    g->bar.total = g->m.moved[WEIR_STATE_ANY] + g->rest;
    weir_stats_free(s);
    return WEIR_OK;
}

/* Delayed jobs that are added emit no event, so we also look now and then. */
static void wait_for_news(migration *g)
{
    struct pollfd p[] = { { .fd = g->signals, .events = POLLIN },
                          { .fd = g->news, .events = POLLIN } };
    eventfd_t     n;
    cli_poll(p, 2, LOOK_AGAIN_MS);
    eventfd_read(g->news, &n);
    g->m.stopped = interrupted(g);
}

/* Pass after pass, until there is nothing more to move. */
static weir_code move_all(migration *g)
{
    uint64_t  n;
    weir_code rc = WEIR_OK;
    do {
        rc = look(g);
        if (!rc && !g->m.keep)
            rc = mover_schedules(&g->m, &g->c->err);
        if (!rc)
            rc = mover_pass(&g->m, &n, &g->c->err);
        if (!rc && g->m.keep)           /* the target gives ids to what they fire */
            rc = mover_schedules(&g->m, &g->c->err);
        if (!rc && !n && g->m.unquiet && !g->o->follow)
            wait_for_news(g);
    } while (!rc && !g->m.stopped && !g->m.keep && (n || (g->m.unquiet && !g->o->follow)));
    return rc ? rc : look(g);
}

static void on_event(const weir_event *e, void *ctx)
{
    const migration *g = ctx;
    (void)e;
    eventfd_write(g->news, 1);
}

static bool may_pass(weir_code rc)
{
    return weir_code_may_retry(rc) || rc == WEIR_EUNKNOWN;
}

static void say_trouble(migration *g)
{
    char    clean[WEIR_ERROR_MAX];
    int64_t now = cli_clock_ms();
    if (now - g->said < SAY_AGAIN_MS)
        return;
    g->said = now;
    term_progress_end(&g->bar);
    fprintf(stderr, "weir: %s; trying again\n",
            term_clean(clean, sizeof clean, g->c->err.msg, 0));
}

static weir_code follow(migration *g)
{
    static const uint32_t quiet = WEIR_BIT(WEIR_EVENT_REMOVE) | WEIR_BIT(WEIR_EVENT_PROGRESS) |
                                  WEIR_BIT(WEIR_EVENT_START) | WEIR_BIT(WEIR_EVENT_PROMOTION);
    weir_filter    filter = { .events = (WEIR_BIT(WEIR_EVENT_COUNT) - 1) & ~quiet };
    weir_listener *listener;
    weir_code      rc = weir_listen(g->m.from, &filter, on_event, g, &listener, &g->c->err);
    if (rc)
        return rc;
    for (;;) {
        rc = move_all(g);
        if (rc && !may_pass(rc))
            break;
        if (rc)
            say_trouble(g);
        rc = WEIR_OK;
        if (!g->m.stopped)
            wait_for_news(g);
        if (g->m.stopped)
            break;
    }
    weir_unlisten(listener);
    return rc;
}

/* ---- what came of it ---- */

/* In the source, and neither active nor refused: they came or changed meanwhile. */
static uint64_t others(const migration *g)
{
    return g->o->keep || g->rest < g->m.refused.n ? 0 : g->rest - g->m.refused.n;
}

static void print_json(const migration *g)
{
    const mover *m = &g->m;
    jw           w = { .out = stdout };
    jw_object(&w, NULL);
    jw_int(&w, g->o->keep ? "copied" : "moved", (int64_t)m->moved[WEIR_STATE_ANY]);
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
        if (s != WEIR_STATE_ACTIVE)
            jw_int(&w, weir_state_name((weir_state)s), (int64_t)m->moved[s]);
    jw_int(&w, "existed", (int64_t)m->existed);
    jw_int(&w, "types", (int64_t)m->types);
    jw_int(&w, "schedules", (int64_t)m->schedules);
    jw_int(&w, "schedules_left", (int64_t)m->schedules_left);
    jw_int(&w, "active", (int64_t)g->active);
    jw_array(&w, "refused");
    for (size_t i = 0; i < m->refused.n_shown; i++) {
        jw_object(&w, NULL);
        jw_int(&w, "id", (int64_t)m->refused.shown[i].id);
        jw_text(&w, "why", m->refused.shown[i].why);
        jw_end(&w, '}');
    }
    jw_end(&w, ']');
    jw_int(&w, "refusals", (int64_t)m->refused.n);
    jw_int(&w, "others", (int64_t)others(g));
    jw_real(&w, "seconds", (double)(cli_clock_ms() - g->began) / 1000);
    jw_end(&w, '}');
}

static void print_rest(const migration *g)
{
    const mover *m = &g->m;
    char         number[32], clean[WEIR_ERROR_MAX];
    uint64_t     more = others(g);
    for (size_t i = 0; i < m->refused.n_shown; i++)
        fprintf(stderr, "weir: %s\n", term_clean(clean, sizeof clean, m->refused.shown[i].why, 0));
    if (m->schedules_left)
        printf("%zu %s left in the source: %s\n", m->schedules_left,
               m->schedules_left == 1 ? "schedule was" : "schedules were",
               term_clean(clean, sizeof clean, m->schedule_trouble.msg, 0));
    if (m->refused.n)
        printf("%s %s left in the source because the target rejected %s\n",
               term_number(number, sizeof number, m->refused.n),
               m->refused.n == 1 ? "job was" : "jobs were", m->refused.n == 1 ? "it" : "them");
    if (g->active)
        printf("%s %s in the source: workers there have %s; run this again when they are done%s\n",
               term_number(number, sizeof number, g->active), g->active == 1 ? "stays" : "stay",
               g->active == 1 ? "it" : "them", g->o->follow ? "" : ", or with --follow");
    if (more)
        printf("%s more %s in the source, added or changed meanwhile; run this again\n",
               term_number(number, sizeof number, more), more == 1 ? "is" : "are");
}

static void print_text(const migration *g)
{
    const mover *m = &g->m;
    char         number[32], time[32];
    const char  *separator = ": ";
    uint64_t     n = m->moved[WEIR_STATE_ANY];
    printf("%s %s %s in %s", term_number(number, sizeof number, n), n == 1 ? "job" : "jobs",
           g->o->keep ? "copied" : "moved",
           term_duration(time, sizeof time, cli_clock_ms() - g->began));
    for (int s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++) {
        if (!m->moved[s])
            continue;
        printf("%s%s %s", separator, term_number(number, sizeof number, m->moved[s]),
               weir_state_name((weir_state)s));
        separator = ", ";
    }
    putchar('\n');
    if (m->existed)
        printf("%s of them %s in the target already\n",
               term_number(number, sizeof number, m->existed), m->existed == 1 ? "was" : "were");
    if (m->types)
        printf("settings of %zu %s copied\n", m->types, m->types == 1 ? "type" : "types");
    if (m->schedules)
        printf("%zu %s %s\n", m->schedules, m->schedules == 1 ? "schedule" : "schedules",
               g->o->keep ? "copied" : "moved");
    print_rest(g);
}

static int report_end(migration *g, weir_code rc)
{
    bool cut = g->m.stopped && !g->o->follow;
    term_progress_end(&g->bar);
    if (g->c->json)
        print_json(g);
    else
        print_text(g);
    fflush(stdout);
    if (rc) {
        weir_error why = g->c->err;
        weir_fail(&g->c->err, rc, "%s; run this again to go on", why.msg);
    } else if (cut) {
        rc = weir_fail(&g->c->err, WEIR_ECLOSED, "interrupted; run this again to go on");
    }
    if (rc)
        return cli_fail(g->c);
    bool left = g->m.refused.n || g->m.schedules_left || others(g) || (g->active && !g->o->keep);
    return left ? weir_code_exit(WEIR_ESTATE) : 0;
}

/* ---- the command ---- */

static weir_code name_store(cli *c, weir_code rc, const char *option, const char *url)
{
    char       shown[120];
    weir_error why = c->err;
    if (rc == WEIR_ENOENT)
        return weir_fail(&c->err, rc, "%s: there is no store %s", option,
                         cli_show_url(shown, sizeof shown, url));
    return rc ? weir_fail(&c->err, rc, "%s: %s", option, why.msg) : rc;
}

/* A copy needs no more than to read, which works also beside the source's owner. A missing source
 * is not made. */
static weir_code open_both(migration *g)
{
    cli        *c = g->c;
    weir_queue *there;
    weir_code   rc = cli_open_url(c, g->o->from, CLI_LOOK, &there);
    if (!rc && g->o->keep)
        g->m.from = there;
    else if (!rc) {
        weir_close(there);
        rc = cli_open_url(c, g->o->from, CLI_CHANGE, &g->m.from);
    }
    rc = name_store(c, rc, "--from", g->o->from);
    if (!rc)
        rc = name_store(c, cli_open_url(c, g->o->to, CLI_CHANGE, &g->m.to), "--to", g->o->to);
    return rc;
}

/* The owner's lock would say so too, but not that we are the owner. */
static bool is_same_file(const char *a, const char *b)
{
    char        path[2][4096];
    const char *url[] = { a, b };
    struct stat st[2];
    for (int i = 0; i < 2; i++) {
        if (strncmp(url[i], "sqlite:", 7) != 0)
            return false;
        snprintf(path[i], sizeof path[i], "%.*s", (int)strcspn(url[i] + 7, "?"), url[i] + 7);
        if (stat(path[i], &st[i]))
            return false;
    }
    return st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

static const char *conflict(const migrate_opts *o)
{
    if (!o->from || !o->to)
        return "--from URL and --to URL are needed";
    if (strcmp(o->from, o->to) == 0 || is_same_file(o->from, o->to))
        return "--from and --to are the same store";
    if (o->keep && o->follow)
        return "--keep and --follow exclude each other";
    if (strncmp(o->to, "mem:", 4) == 0)
        return "--to mem: would be gone with this command";
    return NULL;
}

/* Does the target give ids of its own while jobs move? */
static weir_code spread_ids(migration *g)
{
    weir_schedules *some = NULL;
    weir_error     *err = &g->c->err;
    if (g->o->new_ids || g->o->keep)
        return WEIR_OK;
    weir_code rc = weir_schedules_list(g->m.from, NULL, 1, &some, err);
    if (!rc && (g->o->follow || some->n))
        rc = mover_spread_ids(&g->m, err);
    weir_schedules_free(some);
    return rc;
}

static int run_migrate(cli *c, const void *values)
{
    const migrate_opts *o = values;
    if (conflict(o))
        return cli_usage(c, "%s", conflict(o));
    migration g = { .c = c, .o = o, .began = cli_clock_ms(), .said = cli_clock_ms(),
                    .bar = { .what = o->keep ? "copying" : "moving" } };
    g.m = (mover){ .keep = o->keep, .new_ids = o->new_ids, .follow = o->follow, .report = on_bulk,
                   .ctx = &g };
    bool from_kue = strncmp(o->from, "redis+kue", 9) == 0 ||
                    strncmp(o->from, "rediss+kue", 10) == 0;
    if (from_kue && !o->keep)
        g.m.quiet_ms = KUE_QUIET_MS;
    g.signals = cli_signals(SIGINT, SIGTERM, SIGHUP, 0);
    g.news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int       status;
    weir_code rc = open_both(&g);
    if (!rc)
        rc = mover_check(&g.m, &c->err);
    if (!rc)
        rc = mover_types(&g.m, &c->err);
    if (!rc)
        rc = spread_ids(&g);
    if (!rc)
        g.m.began_at = weir_now(g.m.from);
    if (rc)
        status = cli_fail(c);
    else
        status = report_end(&g, o->follow ? follow(&g) : move_all(&g));
    weir_close(g.m.from);
    weir_close(g.m.to);
    mover_fini(&g.m);
    close(g.news);
    close(g.signals);
    return status;
}

const command cmd_migrate = {
    .name = "migrate", .group = GROUP_STORE, .args = "--from URL --to URL",
    .summary = "move all jobs and schedules to another store, which may be in use",
    .help = "Settings and pauses of types first, then schedules, then jobs with their ids and "
            "logs. Producers and workers of both stores may go on: each job moves once, and one "
            "side runs it. Jobs that workers of the source have are left to them; with --follow "
            "it goes on until interrupted and moves those, and new ones, too. It can be stopped, "
            "or killed, at any time: the next run goes on. Exit status 4 when jobs stay.",
    .examples = "weir migrate --from sqlite:jobs.db --to redis://localhost\n"
                "weir migrate --from redis+kue://localhost --to redis://localhost --follow\n",
    .options = migrate_options, .run = run_migrate,
};
