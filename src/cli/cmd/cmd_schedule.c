/* cmd_schedule.c - weir schedule: jobs that are added again and again, and when an expression in
 * the manner of cron fires. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/action.h"
#include "cli/cmd/schedule_crontab.h"
#include "cli/input.h"
#include "cli/near.h"
#include "cli/say.h"
#include "cli/store.h"

typedef struct schedule_opts {
    const char *zone, *missed, *overlap, *backoff;
    bool        day_or_weekday, paused, user_column;
    opt_num     from, to, limit, start, end, jitter, missed_limit, priority, attempts, ttl;
    opt_texts   except;
} schedule_opts;
CLI_VALUES_FIT(schedule_opts);

enum { DEFAULT_FIRINGS = 5, MOMENT_MAX = 40 };

#define AT(member) offsetof(schedule_opts, member)
static const option_entry schedule_options[] = {
    { .name = "tz", .kind = OPT_TEXT, .at = AT(zone), .arg = "ZONE", .actions = "add next import",
      .help = "the time zone, as Europe/Berlin (UTC; of a crontab: the machine's)" },
    { .name = "day-or-weekday", .kind = OPT_FLAG, .at = AT(day_or_weekday), .actions = "add next",
      .help = "if day and weekday are both restricted, one is enough, as in Vixie cron; else both "
              "must match" },
    { .name = "from", .kind = OPT_TIME, .at = AT(from), .arg = "TIME", .actions = "next backfill",
      .help = "firings after this time (now); of a backfill: from this time on" },
    { .name = "to", .kind = OPT_TIME, .at = AT(to), .arg = "TIME", .actions = "backfill",
      .help = "up to this time (now)" },
    { .name = "limit", .letter = 'n', .kind = OPT_INT, .at = AT(limit), .arg = "N", .min = 1,
      .max = WEIR_MAX_FIRINGS, .actions = "next", .help = "how many (5)" },
    { .name = "start", .kind = OPT_TIME, .at = AT(start), .arg = "TIME", .actions = "add next",
      .help = "no firing before" },
    { .name = "end", .kind = OPT_TIME, .at = AT(end), .arg = "TIME", .actions = "add next",
      .help = "no firing after" },
    { .name = "except", .kind = OPT_TEXTS, .at = AT(except), .arg = "DATE", .actions = "add next",
      .help = "no firing on this date, 2026-12-25; can be repeated" },
    { .name = "jitter", .kind = OPT_DURATION, .at = AT(jitter), .arg = "TIME", .actions = "add",
      .help = "fire up to this much later, always by the same amount" },
    { .name = "missed", .kind = OPT_TEXT, .at = AT(missed), .arg = "HOW", .actions = "add",
      .words = "once skip all",
      .help = "firings for which no process was there: once for all of them (the default), skip, "
              "or all" },
    { .name = "missed-limit", .kind = OPT_INT, .at = AT(missed_limit), .arg = "N", .min = 1,
      .max = WEIR_MAX_FIRINGS, .actions = "add",
      .help = "with --missed all, at most N firings (100)" },
    { .name = "overlap", .kind = OPT_TEXT, .at = AT(overlap), .arg = "HOW", .actions = "add",
      .words = "allow skip queue replace",
      .help = "if the last job has not ended: allow another (the default), skip, queue one, or "
              "replace it" },
    { .name = "paused", .kind = OPT_FLAG, .at = AT(paused), .actions = "add",
      .help = "it does not fire until `weir schedule resume`" },
    { .name = "priority", .letter = 'p', .kind = OPT_PRIORITY, .at = AT(priority),
      .arg = "PRIORITY", .words = "low normal medium high critical", .actions = "add",
      .help = "of its jobs" },
    { .name = "attempts", .kind = OPT_INT, .at = AT(attempts), .arg = "N", .actions = "add",
      .min = 1, .max = WEIR_MAX_ATTEMPTS, .help = "of its jobs (1)" },
    { .name = "backoff", .letter = 'b', .kind = OPT_TEXT, .at = AT(backoff), .arg = "HOW",
      .words = "none fixed:1s linear:2s exponential:1s:60s", .actions = "add",
      .help = "of its jobs, as in `weir add`" },
    { .name = "ttl", .kind = OPT_DURATION, .at = AT(ttl), .arg = "TIME", .min = 1,
      .actions = "add", .help = "of its jobs" },
    { .name = "user-column", .kind = OPT_FLAG, .at = AT(user_column), .actions = "import",
      .help = "a system's crontab, which has the user before the command" },
    { 0 }
};
#undef AT

/* "2026-03-29T01:00:00Z" */
static const char *utc(char out[MOMENT_MAX], int64_t at_ms)
{
    time_t    t = (time_t)(at_ms / 1000);
    struct tm tm;
    size_t    len = strftime(out, MOMENT_MAX, "%Y-%m-%dT%H:%M:%S", gmtime_r(&t, &tm));
    if (at_ms % 1000)
        snprintf(out + len, MOMENT_MAX - len, ".%03dZ", (int)(at_ms % 1000));
    else
        snprintf(out + len, MOMENT_MAX - len, "Z");
    return out;
}

/* ---- next ---- */

/* "2026-12-25,2026-12-26"; NULL: none, or no memory. */
static char *dates(const opt_texts *except)
{
    size_t size = 1;
    for (size_t i = 0; i < except->n; i++)
        size += strlen(except->text[i]) + 1;
    char *out = except->n ? calloc(1, size) : NULL;
    for (size_t i = 0; out && i < except->n; i++) {
        strcat(out, i ? "," : "");
        strcat(out, except->text[i]);
    }
    return out;
}

static int next(cli *c, const schedule_opts *o)
{
    int64_t at[WEIR_MAX_FIRINGS];
    size_t  n;
    char    text[MOMENT_MAX];
    if (c->n_args > 2)
        return cli_usage(c, "EXPR is one argument: write it in quotes");
    char         *except = dates(&o->except);
    weir_schedule s = { .when = c->args[1], .zone = o->zone, .except = except,
                        .day_or_weekday = o->day_or_weekday, .start_at = o->start.n,
                        .end_at = o->end.n };
    weir_code     rc = weir_schedule_next(&s, o->from.set ? o->from.n : cli_wall_ms(), at,
                                          o->limit.set ? (size_t)o->limit.n : DEFAULT_FIRINGS,
                                          &n, &c->err);
    free(except);
    if (rc)
        return cli_fail(c);
    jw w = { .out = stdout };
    if (c->json)
        jw_array(&w, NULL);
    for (size_t i = 0; i < n; i++) {
        if (c->json)
            jw_text(&w, NULL, utc(text, at[i]));
        else
            puts(utc(text, at[i]));
    }
    if (c->json)
        jw_end(&w, ']');
    return 0;
}

/* ---- add ---- */

static int add(cli *c, const schedule_opts *o)
{
    char         *except = dates(&o->except);
    weir_schedule s = {
        .name = c->args[1], .when = c->args[2], .zone = o->zone,
        .day_or_weekday = o->day_or_weekday, .start_at = o->start.n, .end_at = o->end.n,
        .except = except, .jitter_ms = o->jitter.n, .missed_limit = (int32_t)o->missed_limit.n,
        .paused = o->paused,
        .job = { .type = c->args[3], .data = c->n_args > 4 ? c->args[4] : NULL,
                 .priority = (int32_t)o->priority.n, .attempts = (int32_t)o->attempts.n,
                 .ttl_ms = o->ttl.n }
    };
    weir_queue *q = NULL;
    int         status = 0;
    if (o->missed && !weir_missed_parse(o->missed, &s.missed))
        status = cli_usage(c, "--missed: '%s' is not once, skip or all", o->missed);
    else if (o->overlap && !weir_overlap_parse(o->overlap, &s.overlap))
        status = cli_usage(c, "--overlap: '%s' is not allow, skip, queue or replace", o->overlap);
    else if (o->backoff && weir_backoff_parse(o->backoff, &s.job.backoff, &c->err))
        status = cli_usage(c, "--backoff: %s", c->err.msg);
    else if (cli_open(c, CLI_CHANGE, &q) || weir_schedule_put(q, &s, &c->err)) {
        cli_show_json(&c->err);
        status = cli_fail(c);
    } else
        cli_done(c, "kept the schedule %s, which adds %s jobs", s.name, s.job.type);
    weir_close(q);
    free(except);
    return status;
}

/* ---- list, get ---- */

static void print_number(jw *w, const char *name, int64_t n)
{
    if (n)
        jw_int(w, name, n);
}

/* The names are the names of the HTTP API. */
static void print_spec(jw *w, const weir_spec *job)
{
    jw_object(w, "job");
    jw_text(w, "type", job->type);
    if (job->data)
        jw_raw(w, "data", job->data, job->data_len);
    print_number(w, "priority", job->priority);
    print_number(w, "attempts", job->attempts);
    if (job->backoff.kind != WEIR_BACKOFF_NONE) {
        jw_object(w, "backoff");
        jw_text(w, "type", weir_backoff_name(job->backoff.kind));
        jw_int(w, "delay", job->backoff.delay_ms);
        print_number(w, "max", job->backoff.max_ms);
        jw_end(w, '}');
    }
    print_number(w, "ttl", job->ttl_ms);
    jw_end(w, '}');
}

static void print_json(const weir_schedule *s, const char *words, const char *explanation)
{
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "name", s->name);
    jw_text(&w, "when", s->when);
    jw_text(&w, "words", words);
    jw_text(&w, "explanation", explanation);
    jw_text(&w, "zone", s->zone ? s->zone : "UTC");
    if (s->day_or_weekday)
        jw_bool(&w, "day_or_weekday", true);
    print_spec(&w, &s->job);
    print_number(&w, "start_at", s->start_at);
    print_number(&w, "end_at", s->end_at);
    if (s->except)
        jw_text(&w, "except", s->except);
    print_number(&w, "jitter", s->jitter_ms);
    jw_bool(&w, "paused", s->paused);
    jw_text(&w, "missed", weir_missed_name(s->missed));
    print_number(&w, "missed_limit", s->missed_limit);
    jw_text(&w, "overlap", weir_overlap_name(s->overlap));
    jw_int(&w, "next_at", s->next_at);
    jw_int(&w, "last_at", s->last_at);
    jw_int(&w, "last_job", (int64_t)s->last_job);
    jw_int(&w, "fired", s->fired);
    jw_array(&w, "history");
    for (size_t i = 0; i < s->n_history; i++) {
        jw_object(&w, NULL);
        jw_int(&w, "at", s->history[i].at);
        jw_int(&w, "done_at", s->history[i].done_at);
        jw_text(&w, "outcome", weir_firing_name(s->history[i].outcome));
        if (s->history[i].job)
            jw_int(&w, "job", (int64_t)s->history[i].job);
        jw_end(&w, '}');
    }
    jw_end(&w, ']');
    jw_end(&w, '}');
}

static void print_line(const char *label, const char *text)
{
    char clean[WEIR_MAX_WHEN * 4];
    if (text)
        printf("  %-10s %s\n", label, term_clean(clean, sizeof clean, text, 0));
}

static void print_moment(const char *label, int64_t at_ms)
{
    char at[MOMENT_MAX];
    if (at_ms)
        print_line(label, utc(at, at_ms));
}

static void print_ms(const char *label, int64_t ms)
{
    char text[40];
    if (ms)
        print_line(label, term_duration(text, sizeof text, ms));
}

/* Missing values have their defaults. */
static void print_policies(const weir_schedule *s)
{
    char text[80];
    if (s->missed == WEIR_MISSED_ALL) {
        snprintf(text, sizeof text, "all, at most %d", s->missed_limit ? (int)s->missed_limit
                                                                       : WEIR_MISSED_LIMIT);
        print_line("missed", text);
    } else if (s->missed) {
        print_line("missed", weir_missed_name(s->missed));
    }
    if (s->overlap)
        print_line("overlap", weir_overlap_name(s->overlap));
    print_ms("jitter", s->jitter_ms);
    if (s->day_or_weekday)
        print_line("matches", "day or weekday");
    print_line("except", s->except);
    print_moment("start", s->start_at);
    print_moment("end", s->end_at);
}

static void print_job(const weir_spec *job)
{
    char text[120];
    print_line("adds", job->type);
    print_line("data", job->data);
    if (job->priority) {
        const char *name = weir_priority_name(job->priority);
        snprintf(text, sizeof text, "%d", (int)job->priority);
        print_line("priority", name ? name : text);
    }
    if (job->attempts) {
        snprintf(text, sizeof text, "%d", (int)job->attempts);
        print_line("attempts", text);
    }
    if (job->backoff.kind != WEIR_BACKOFF_NONE) {
        char delay[40];
        snprintf(text, sizeof text, "%s %s", weir_backoff_name(job->backoff.kind),
                 term_duration(delay, sizeof delay, job->backoff.delay_ms));
        print_line("backoff", text);
    }
    print_ms("ttl", job->ttl_ms);
}

static void print_text(const weir_schedule *s, const char *words, const char *explanation)
{
    char at[MOMENT_MAX], clean[WEIR_MAX_SCHEDULE_NAME * 4];
    printf("%s%s%s  %s\n", term_on(stdout, COLOR_BOLD),
           term_clean(clean, sizeof clean, s->name, 0), term_off(stdout), words);
    printf("  %s\n", explanation);
    print_line("when", s->when);
    print_line("zone", s->zone ? s->zone : "UTC");
    print_policies(s);
    print_job(&s->job);
    print_moment("created", s->created_at);
    printf("  %-10s %lld time%s\n", "fired", (long long)s->fired, s->fired == 1 ? "" : "s");
    for (size_t i = 0; i < s->n_history; i++) {
        const weir_firing *f = &s->history[i];
        printf("  %s  %s", utc(at, f->at), weir_firing_name(f->outcome));
        if (f->job)
            printf(", job %llu", (unsigned long long)f->job);
        putchar('\n');
    }
}

/* Why it fires or does not, in words. */
static void print_why(const weir_schedule *s, const char *words, const char *explanation)
{
    char clean[WEIR_MAX_SCHEDULE_NAME * 4];
    printf("%s%s%s fires %s.\n", term_on(stdout, COLOR_BOLD),
           term_clean(clean, sizeof clean, s->name, 0), term_off(stdout), words);
    puts(explanation);
}

static void print_table(const weir_schedules *list, table *out)
{
    for (size_t i = 0; i < list->n; i++) {
        const weir_schedule *s = &list->schedule[i];
        char                 at[MOMENT_MAX], *words = NULL;
        if (s->own)
            continue;
        weir_schedule_words(s, &words, NULL);
        table_row(out);
        table_cell(out, 0, COLOR_BOLD, "%s", s->name);
        table_cell(out, 1, COLOR_NONE, "%s", words ? words : s->when);
        table_cell(out, 2, COLOR_NONE, "%s", s->job.type);
        table_cell(out, 3, s->paused ? COLOR_YELLOW : COLOR_NONE, "%s",
                   s->paused                      ? "paused"
                   : s->next_at >= WEIR_PARKED_AT ? "moving"
                   : s->next_at                   ? utc(at, s->next_at)
                                                  : "never");
        free(words);
    }
}

/* Print one. */
typedef void printer(const weir_schedule *s, const char *words, const char *explanation);

static void print_each(const cli *c, const weir_schedules *list, printer *as_text)
{
    for (size_t i = 0; i < list->n; i++) {
        const weir_schedule *s = &list->schedule[i];
        char                *words = NULL, *explanation = NULL;
        if (s->own && !c->args[1])      /* only when it is asked for */
            continue;
        weir_schedule_words(s, &words, NULL);
        weir_schedule_explain(s, cli_wall_ms(), &explanation, NULL);
        (c->json ? print_json : as_text)(s, words ? words : "", explanation ? explanation : "");
        free(words);
        free(explanation);
    }
}

static weir_code list_all(cli *c, weir_queue *q)
{
    static const table_column columns[] = { { "NAME", false, true }, { "FIRES", false, true },
                                            { "TYPE", false, true }, { "NEXT", false, false } };
    char            after[WEIR_MAX_SCHEDULE_NAME + 1] = "";
    weir_schedules *list = NULL;
    weir_code       rc = WEIR_OK;
    table           out;
    table_init(&out, columns, 4);
    do {
        weir_schedules_free(list);
        rc = weir_schedules_list(q, *after ? after : NULL, 0, &list, &c->err);
        if (rc || !list->n)
            break;
        if (c->json)
            print_each(c, list, print_text);
        else
            print_table(list, &out);
        snprintf(after, sizeof after, "%s", list->schedule[list->n - 1].name);
    } while (list->more);
    weir_schedules_free(list);
    if (!rc && out.n_rows)
        table_print(&out, stdout, 0);
    else if (!rc && !c->json)
        fputs("no schedules\n", stderr);
    table_fini(&out);
    return rc;
}

/* There is no schedule of this name: is there one with a similar name? */
static void hint_name(cli *c, weir_queue *q, const char *name)
{
    char            hint[WEIR_MAX_SCHEDULE_NAME + 40], why[sizeof c->err.msg];
    weir_schedules *list = NULL;
    weir_near       guess = { .typed = name };
    if (c->err.code != WEIR_ENOENT || weir_schedules_list(q, NULL, 0, &list, NULL))
        return;
    for (size_t i = 0; i < list->n; i++)
        if (!list->schedule[i].own)
            weir__near_try(&guess, list->schedule[i].name);
    snprintf(why, sizeof why, "%s", c->err.msg);
    weir_fail(&c->err, WEIR_ENOENT, "%s%s", why, near_hint(hint, sizeof hint, &guess, ""));
    weir_schedules_free(list);
}

static weir_code get_one(cli *c, weir_queue *q)
{
    weir_schedules *list;
    weir_code       rc = weir_schedule_get(q, c->args[1], &list, &c->err);
    if (rc)
        hint_name(c, q, c->args[1]);
    else
        print_each(c, list, strcmp(c->args[0], "get") == 0 ? print_text : print_why);
    weir_schedules_free(list);
    return rc;
}

static int look(cli *c, weir_code (*how)(cli *c, weir_queue *q))
{
    weir_queue *q;
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = how(c, q);
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}

static int list(cli *c, const schedule_opts *o)
{
    (void)o;
    return look(c, list_all);
}

static int get(cli *c, const schedule_opts *o)
{
    (void)o;
    return look(c, get_one);
}

/* ---- rm, pause, resume, fire, backfill ---- */

/* fire and backfill print what they added. */
static void done(const cli *c, const char *verb, const char *name)
{
    if (strcmp(verb, "rm") == 0)
        cli_done(c, "removed the schedule %s", name);
    else if (strcmp(verb, "pause") == 0)
        cli_done(c, "paused the schedule %s", name);
    else if (strcmp(verb, "resume") == 0)
        cli_done(c, "resumed the schedule %s", name);
}

static int act(cli *c, const schedule_opts *o)
{
    const char *verb = c->args[0], *name = c->args[1];
    weir_queue *q;
    weir_code   rc;
    uint64_t    id = 0;
    size_t      n = 0;
    if (cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    if (strcmp(verb, "rm") == 0)
        rc = weir_schedule_remove(q, name, &c->err);
    else if (strcmp(verb, "fire") == 0)
        rc = weir_schedule_fire(q, name, &id, &c->err);
    else if (strcmp(verb, "backfill") == 0)
        rc = weir_schedule_backfill(q, name, o->from.n, o->to.set ? o->to.n : cli_wall_ms(), &n,
                                    &c->err);
    else
        rc = weir_schedule_pause(q, name, strcmp(verb, "pause") == 0, &c->err);
    if (rc)
        hint_name(c, q, name);
    weir_close(q);
    if (rc)
        return cli_fail(c);
    done(c, verb, name);
    if (id)
        printf(c->json ? "{\"id\":%llu}\n" : "%llu\n", (unsigned long long)id);
    if (strcmp(verb, "backfill") == 0)
        printf(c->json ? "{\"added\":%zu}\n" : "%zu\n", n);
    return 0;
}

static int backfill(cli *c, const schedule_opts *o)
{
    return o->from.set ? act(c, o) : cli_usage(c, "backfill: --from is missing");
}

static int import(cli *c, const schedule_opts *o)
{
    const char *path = c->n_args > 2 && strcmp(c->args[2], "-") != 0 ? c->args[2] : NULL;
    if (strcmp(c->args[1], "crontab") != 0)
        return cli_usage(c, "import: unknown format '%s'; expected crontab", c->args[1]);
    return schedule_import_crontab(c, path, o->zone, o->user_column);
}

static const struct {
    cli_action action;
    int      (*run)(cli *c, const schedule_opts *o);
} verbs[] = {
    { { "add", 4, 5, "NAME EXPR TYPE [JSON]" }, add }, { { "list", 1, 1, "nothing" }, list },
    { { "get", 2, 2, "NAME" }, get },                  { { "explain", 2, 2, "NAME" }, get },
    { { "rm", 2, 2, "NAME" }, act },                   { { "pause", 2, 2, "NAME" }, act },
    { { "resume", 2, 2, "NAME" }, act },               { { "fire", 2, 2, "NAME" }, act },
    { { "backfill", 2, 2, "NAME" }, backfill },        { { "next", 2, 9, "EXPR" }, next },
    { { "import", 2, 3, "crontab [FILE|-]" }, import },
};

static int run_schedule(cli *c, const void *values)
{
    int status, i = CLI_FIND_ACTION(c, verbs, &status);
    return i < 0 ? status : verbs[i].run(c, values);
}

const command cmd_schedule = {
    .name = "schedule", .group = GROUP_MORE,
    .args = "ACTION [ARGUMENTS]", .min_args = 1, .max_args = -1,
    .words = "add list get explain rm pause resume fire backfill next import",
    .summary = "jobs that are added again and again",
    .help = "`add NAME EXPR TYPE [JSON]` keeps a schedule, or changes the one of this name; "
            "`list`; `get NAME` shows it with its last firings; `explain NAME` says when it fires "
            "next, or why not; `rm`, `pause`, `resume NAME`; "
            "`fire NAME` adds its job now; `backfill NAME --from TIME` adds a job for each firing "
            "of a past span; `next EXPR` prints the next firings in UTC and needs no store; "
            "`import crontab [FILE|-]` makes a schedule of each line of a crontab, and prints the "
            "workers that run the commands.\n"
            "\n"
            "EXPR is five fields (minute, hour, day, month, weekday), six with seconds first, "
            "@daily and the like, or an interval such as 'every 90m'. While a process has the "
            "store open (`weir serve`, `weir work`), each firing adds one job.",
    .examples = "weir schedule add report '30 6 * * 1' report --tz Europe/Berlin --overlap skip\n"
                "crontab -l | weir schedule import crontab\n"
                "weir schedule next '0 0 L * *' --from 2026-03-29T00:00:00Z -n 12 --json\n",
    .options = schedule_options, .run = run_schedule,
};
