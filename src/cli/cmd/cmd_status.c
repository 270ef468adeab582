/* cmd_status.c - weir status: which store it is, who keeps it, how many jobs it has, and what is
 * wrong. */
#include <stdarg.h>
#include <string.h>
#include "cli/say.h"
#include "cli/store.h"

enum {
    MAX_TROUBLE = 8,                /* lines */
    LONG_WAIT_MS = 60 * 1000        /* a job that waits longer, without a worker, is trouble */
};

typedef struct status {
    const cli  *c;
    weir_info   info;
    weir_stats *stats;
    weir_code   ready;              /* what weir_ready() returned */
    int64_t     now;
    char        trouble[MAX_TROUBLE][300];
    size_t      n_trouble;
} status;

/* ---- what is wrong ---- */

WEIR_PRINTF(2, 3) static void add_trouble(status *s, const char *fmt, ...)
{
    va_list args;
    if (s->n_trouble == MAX_TROUBLE)
        return;
    va_start(args, fmt);
    vsnprintf(s->trouble[s->n_trouble++], sizeof *s->trouble, fmt, args);
    va_end(args);
}

static void look_at_type(status *s, const weir_type_stats *t)
{
    unsigned long long waiting = t->count[WEIR_STATE_INACTIVE];
    char               span[32];
    if (!waiting || s->stats->all.paused)
        return;
    int64_t waited = t->oldest_at && s->now > t->oldest_at ? s->now - t->oldest_at : 0;
    term_duration(span, sizeof span, waited);
    if (t->paused)
        add_trouble(s, "%s is paused, and %llu of its jobs wait: `weir resume %s`", t->type,
                    waiting, t->type);
    else if (waited > LONG_WAIT_MS && !t->count[WEIR_STATE_ACTIVE])
        add_trouble(s, "%llu %s jobs wait, the next one for %s, and no worker has one: `weir work "
                    "%s -- PROGRAM`", waiting, t->type, span, t->type);
}

static void look_for_trouble(status *s, const weir_error *ready)
{
    if (ready->code)
        add_trouble(s, "the store is not ready: %s", ready->msg);
    if (s->stats->all.paused)
        add_trouble(s, "all types are paused: `weir resume --all`");
    for (size_t i = 0; i < s->stats->n; i++)
        look_at_type(s, &s->stats->type[i]);
}

static weir_code read_status(status *s, cli *c, weir_queue *q)
{
    weir_error ready = { 0 };
    weir_code  rc = weir_get_info(q, &s->info, &c->err);
    if (!rc)
        rc = weir_get_stats(q, &s->stats, &c->err);
    if (rc)
        return rc;
    s->now = weir_now(q);
    if (c->owner_err.code)              /* changes of this process fail with the same error */
        ready = c->owner_err;
    else
        ready.code = weir_ready(q, &ready);
    s->ready = ready.code;
    look_for_trouble(s, &ready);
    return WEIR_OK;
}

/* ---- for people ---- */

/* The source of the store's URL: option, environment ... The answer is `out`, or a constant. */
static const char *from_text(char *out, size_t size, const cli *c)
{
    static const char *const texts[] = {
        [STORE_OPTION] = "from --store", [STORE_ENVIRONMENT] = "from WEIR_STORE",
        [STORE_ANNOUNCED] = "a server of yours that runs", [STORE_DEFAULT] = "the default",
    };
    char address[200];
    if (c->store_from != STORE_ANNOUNCED || c->store == c->server)
        return texts[c->store_from];
    snprintf(out, size, "of a server of yours that runs, %s",
             cli_show_url(address, sizeof address, c->server));
    return out;
}

WEIR_PRINTF(2, 3) static void line(const char *name, const char *fmt, ...)
{
    enum { COLUMN = 12 };
    char    text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    printf("%s%-*s%s", term_on(stdout, COLOR_BOLD), COLUMN, name, term_off(stdout));
    term_wrap(stdout, text, COLUMN, term_width(stdout), true);
}

static void owner_line(const status *s)
{
    const weir_info *i = &s->info;
    char             peers[80] = "", number[60];
    if (strcmp(i->store, "sqlite") != 0)
        return;
    if (!i->owner_pid) {
        line("owner", "none: no process has the file open for changes");
        return;
    }
    if (i->owner_pid < 0)
        snprintf(number, sizeof number, "its number cannot be seen from here");
    else
        snprintf(number, sizeof number, "process %lld", (long long)i->owner_pid);
    if (i->peers)
        snprintf(peers, sizeof peers, "; %u other %s through it", i->peers,
                 i->peers == 1 ? "process works" : "processes work");
    line("owner", "%s (%s)%s", *i->owner ? i->owner : "unknown program", number, peers);
}

static void jobs_line(const status *s)
{
    char   text[300] = "", number[40];
    size_t n = 0;
    for (int i = WEIR_STATE_INACTIVE; i < WEIR_STATE_COUNT; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s", n ? ", " : "",
                              term_number(number, sizeof number, s->stats->all.count[i]),
                              weir_state_name((weir_state)i));
    line("jobs", "%s", text);
}

/* "48.2 GB" */
static const char *size_text(char *out, size_t size, int64_t bytes)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    double                   n = (double)bytes;
    size_t                   unit = 0;
    for (; n >= 999.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        n /= 1000;
    snprintf(out, size, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return out;
}

static void room_line(const status *s)
{
    char used[40], limit[40];
    if (s->info.limit_bytes)
        line("room", "%s of %s used", size_text(used, sizeof used, s->info.used_bytes),
             size_text(limit, sizeof limit, s->info.limit_bytes));
}

static void print_status(const status *s)
{
    char url[300], from[300];
    line("store", "%s (%s)", cli_show_url(url, sizeof url, s->c->store),
         from_text(from, sizeof from, s->c));
    if (*s->info.place)
        line("kept in", "%s, %s", s->info.place, s->info.engine);
    else
        line("kept in", "memory");
    room_line(s);
    line("durability", "%s", weir_durability_name(s->info.durability));
    owner_line(s);
    if (strcmp(s->info.weir, weir_version()) != 0)
        line("version", "%s, this program is %s", s->info.weir, weir_version());
    else
        line("version", "%s", s->info.weir);
    line("types", "%zu", s->stats->n);
    jobs_line(s);
    for (size_t i = 0; i < s->n_trouble; i++)
        line("trouble", "%s", s->trouble[i]);
    if (!s->n_trouble)
        line("trouble", "none");
}

/* ---- as JSON ---- */

static void text_or_null(jw *w, const char *name, const char *text)
{
    jw_text(w, name, *text ? text : NULL);
}

static void json_status(const status *s)
{
    char url[300];
    jw   w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "url", cli_show_url(url, sizeof url, s->c->store));
    jw_text(&w, "store", s->info.store);
    text_or_null(&w, "place", s->info.place);
    text_or_null(&w, "engine", s->info.engine);
    jw_text(&w, "version", s->info.weir);
    jw_text(&w, "durability", weir_durability_name(s->info.durability));
    if (s->info.limit_bytes) {
        jw_int(&w, "used_bytes", s->info.used_bytes);
        jw_int(&w, "limit_bytes", s->info.limit_bytes);
    }
    if (s->info.owner_pid) {
        jw_object(&w, "owner");
        if (s->info.owner_pid > 0)
            jw_int(&w, "pid", s->info.owner_pid);
        else
            jw_text(&w, "pid", NULL);
        jw_text(&w, "program", s->info.owner);
        jw_int(&w, "peers", s->info.peers);
        jw_end(&w, '}');
    } else {
        jw_text(&w, "owner", NULL);
    }
    jw_bool(&w, "ready", !s->ready);
    jw_int(&w, "types", (int64_t)s->stats->n);
    jw_object(&w, "counts");
    for (int i = WEIR_STATE_INACTIVE; i < WEIR_STATE_COUNT; i++)
        jw_int(&w, weir_state_name((weir_state)i), (int64_t)s->stats->all.count[i]);
    jw_int(&w, "total", (int64_t)s->stats->all.count[WEIR_STATE_ANY]);
    jw_end(&w, '}');
    jw_array(&w, "trouble");
    for (size_t i = 0; i < s->n_trouble; i++)
        jw_text(&w, NULL, s->trouble[i]);
    jw_end(&w, ']');
    jw_end(&w, '}');
}

static int run_status(cli *c, const void *values)
{
    (void)values;
    weir_queue *q = NULL;
    status      s = { .c = c };
    weir_code   rc = cli_open(c, CLI_ASK, &q);
    if (!rc)
        rc = read_status(&s, c, q);
    weir_close(q);
    if (!rc && c->json)
        json_status(&s);
    else if (!rc)
        print_status(&s);
    weir_stats_free(s.stats);
    return rc ? cli_fail(c) : weir_code_exit(s.ready);
}

const command cmd_status = {
    .name = "status", .group = GROUP_LOOK,
    .summary = "which store this is, who keeps it, and what is wrong",
    .help = "Shows the store that commands use here, the process or server that keeps it, its "
            "version, what an add is safe against, how many jobs there are, and trouble: a store "
            "that cannot keep changes, paused types with jobs, jobs that no worker takes.\n\n"
            "The exit status is 0 if the store can keep your changes, else that of the error. No "
            "job is changed.",
    .examples = "weir status\nweir status --store http://localhost:7340 --json\n",
    .run = run_status,
};
