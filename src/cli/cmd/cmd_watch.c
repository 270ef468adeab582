/* cmd_watch.c - weir watch: one line for each thing that happens. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/store.h"
#include "cli/types.h"

typedef struct watch_opts {
    opt_texts   types;
    opt_num     id, limit, wait;
    const char *event;
} watch_opts;
CLI_VALUES_FIT(watch_opts);

#define AT(member) offsetof(watch_opts, member)
static const option_entry watch_options[] = {
    TYPE_OPTION(AT(types), "only jobs of this type; may be given several times"),
    { .name = "id", .letter = 'i', .kind = OPT_INT, .at = AT(id), .arg = "ID", .min = 1,
      .max = INT64_MAX, .help = "only this job" },
    { .name = "event", .letter = 'e', .kind = OPT_TEXT, .at = AT(event), .arg = "EVENTS",
      .words = "enqueue promotion start progress "
               "failed_attempt failed complete cancelled stalled ttl_exceeded remove pause resume "
               "error",
      .many = true,
      .help = "only these, with commas between: enqueue, promotion, start, progress, "
              "failed_attempt, failed, complete, cancelled, stalled, ttl_exceeded, remove, pause, "
              "resume, error" },
    { .name = "limit", .letter = 'n', .kind = OPT_INT, .at = AT(limit), .arg = "N", .min = 1,
      .help = "end after this many" },
    { .name = "for", .kind = OPT_DURATION, .at = AT(wait), .arg = "TIME", .min = 1,
      .help = "end after this time" },
    { 0 }
};
#undef AT

/* Written by the callback thread alone, but for `left`'s start. */
typedef struct watcher {
    const cli *c;
    cli_types  types;       /* others are not shown; none: all */
    int64_t    left;        /* events to show; -1: no limit */
    int        done;        /* eventfd: all shown */
} watcher;

static void event_json(const weir_event *e)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "event", weir_event_name(e->kind));
    jw_int(&w, "at", e->at);
    if (e->id)
        jw_int(&w, "id", (int64_t)e->id);
    if (e->type)
        jw_text(&w, "type", e->type);
    if (e->id && e->state != WEIR_STATE_ANY)
        jw_text(&w, "state", weir_state_name(e->state));
    if (e->id) {
        jw_int(&w, "attempts", e->attempts);
        jw_int(&w, "progress", e->progress);
        jw_int(&w, "delivery", e->delivery);
    }
    if (e->kind == WEIR_EVENT_COMPLETE || e->kind == WEIR_EVENT_PROGRESS) {
        if (e->text)
            jw_raw(&w, e->kind == WEIR_EVENT_COMPLETE ? "result" : "data", e->text, e->text_len);
    } else if (e->text) {
        jw_text(&w, "text", e->text);
    }
    if (e->missed)
        jw_int(&w, "missed", e->missed);
    jw_end(&w, '}');
}

enum { TEXT_COLUMN = 48 };      /* where the text of an event begins */

static term_color event_color(weir_event_kind kind)
{
    switch (kind) {
    case WEIR_EVENT_COMPLETE:       return COLOR_GREEN;
    case WEIR_EVENT_FAILED:
    case WEIR_EVENT_ERROR:          return COLOR_RED;
    case WEIR_EVENT_FAILED_ATTEMPT:
    case WEIR_EVENT_STALLED:
    case WEIR_EVENT_TTL_EXCEEDED:
    case WEIR_EVENT_CANCELLED:
    case WEIR_EVENT_PAUSE:          return COLOR_YELLOW;
    case WEIR_EVENT_START:
    case WEIR_EVENT_PROGRESS:       return COLOR_CYAN;
    default:                        return COLOR_NONE;
    }
}

/* The text of an error: all of it, in lines of its own if there is no room behind the columns. */
static void error_text(const char *text)
{
    int  width = term_width(stdout), indent = width < TEXT_COLUMN + 30 ? 4 : TEXT_COLUMN;
    char clean[4 * WEIR_ERROR_MAX];
    if (!term_is_tty(stdout)) {
        puts(term_clean(clean, sizeof clean, text, 0));
        return;
    }
    if (indent < TEXT_COLUMN)
        putchar('\n');
    term_wrap(stdout, text, indent, width, indent == TEXT_COLUMN);
}

static void event_text(const weir_event *e)
{
    char at[40], rest[1000], id[24] = "-", clean[1100], type[64];
    if (e->id)
        snprintf(id, sizeof id, "%llu", (unsigned long long)e->id);
    if (e->kind == WEIR_EVENT_PROGRESS)
        snprintf(rest, sizeof rest, "%d%% %.900s", (int)e->progress, e->text ? e->text : "");
    else
        snprintf(rest, sizeof rest, "%.990s", e->text ? e->text : "");
    if (strlen(term_moment(at, sizeof at, e->at)) < 12)
        strcpy(at, "           -");
    if (e->missed)
        printf("... %u events missed\n", (unsigned)e->missed);
    printf("%s%s%s %6s %s%-14s%s %-12s ", term_on(stdout, COLOR_DIM), at + 11,
           term_off(stdout), id, term_on(stdout, event_color(e->kind)), weir_event_name(e->kind),
           term_off(stdout), term_clean(type, sizeof type, e->type ? e->type : "*", 0));
    if (e->kind == WEIR_EVENT_ERROR)
        error_text(rest);
    else
        puts(term_clean(clean, sizeof clean, rest, term_width(stdout) - TEXT_COLUMN));
}

static void on_event(const weir_event *e, void *ctx)
{
    watcher *w = ctx;
    if (w->left == 0 || (w->types.n > 1 && e->type && !cli_types_have(&w->types, e->type)))
        return;
    if (w->c->json)
        event_json(e);
    else
        event_text(e);
    bool broken = fflush(stdout) != 0;
    if (w->left > 0)
        w->left--;
    if (w->left == 0 || broken) {
        w->left = 0;
        eventfd_write(w->done, 1);
    }
}

static int run_watch(cli *c, const void *values)
{
    const watch_opts *o = values;
    weir_queue       *q;
    weir_listener    *listener = NULL;
    weir_filter       filter = { .id = (uint64_t)o->id.n };
    watcher           w = { .c = c, .left = o->limit.set ? o->limit.n : -1 };
    if (cli_types_take(c, &o->types, &w.types))
        return cli_usage(c, "%s", c->err.msg);
    if (w.types.n == 1)
        filter.type = w.types.name[0];
    if (o->event && opt_events(o->event, &filter.events, &c->err))
        return cli_usage(c, "%s", c->err.msg);
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    cli_types_note(c, q, &w.types, TYPES_WAIT);
    w.done = eventfd(0, EFD_CLOEXEC);
    weir_code rc = weir_listen(q, &filter, on_event, &w, &listener, &c->err);
    if (!rc) {
        /* From now on it sees every event. Until here a signal has ended it at once. */
        int           signals = cli_signals(SIGINT, SIGTERM, SIGHUP, 0);
        struct pollfd p[] = { { .fd = signals, .events = POLLIN },
                              { .fd = w.done, .events = POLLIN } };
        cli_poll(p, 2, o->wait.set ? o->wait.n : -1);
        weir_unlisten(listener);
        close(signals);
    }
    weir_close(q);
    close(w.done);
    return rc ? cli_fail(c) : 0;
}

const command cmd_watch = {
    .name = "watch", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "show what happens, as it happens",
    .help = "One line for each event.",
    .examples = "weir watch\nweir watch mail --event failed,failed_attempt --json\n",
    .options = watch_options, .run = run_watch,
};
