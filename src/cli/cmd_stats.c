/* cmd_stats.c - weir stats, types, pause and resume: what is said of types, not of single jobs. */
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"

static void settings_json(jw *w, const weir_settings *s)
{
    jw_object(w, "keep_complete");
    jw_int(w, "age", s->keep_complete.age_ms);
    jw_int(w, "count", s->keep_complete.count);
    jw_end(w, '}');
    jw_object(w, "keep_failed");
    jw_int(w, "age", s->keep_failed.age_ms);
    jw_int(w, "count", s->keep_failed.count);
    jw_end(w, '}');
    jw_bool(w, "search", s->search);
}

static void type_json(jw *w, const char *name, const weir_type_stats *t)
{
    jw_object(w, name);
    jw_text(w, "type", t->type);
    jw_bool(w, "paused", t->paused);
    for (int s = WEIR_INACTIVE; s < WEIR_STATES; s++)
        jw_int(w, weir_state_name((weir_state)s), (int64_t)t->count[s]);
    jw_int(w, "total", (int64_t)t->count[WEIR_ANY]);
    jw_int(w, "completed", (int64_t)t->completed);
    jw_int(w, "failures", (int64_t)t->failed);
    jw_int(w, "work_time", t->work_ms);
    jw_int(w, "last_taken_at", t->last_taken_at);
    jw_int(w, "oldest_at", t->oldest_at);
    settings_json(w, &t->settings);
    jw_end(w, '}');
}

static const table_column stats_columns[] = {
    { "TYPE", false, true }, { "INACTIVE", true, false }, { "DELAYED", true, false },
    { "ACTIVE", true, false }, { "COMPLETE", true, false }, { "FAILED", true, false },
    { "CANCELLED", true, false }, { "WORK", true, false }
};

static void stats_row(table *t, const weir_type_stats *s, const char *name)
{
    static const int column[WEIR_STATES] = {
        [WEIR_INACTIVE] = 1, [WEIR_DELAYED] = 2, [WEIR_ACTIVE] = 3, [WEIR_COMPLETE] = 4,
        [WEIR_FAILED] = 5, [WEIR_CANCELLED] = 6
    };
    char text[40];
    table_row(t);
    table_cell(t, 0, s->paused ? COLOR_YELLOW : COLOR_NONE, "%s%s", name,
               s->paused ? " (paused)" : "");
    for (int i = WEIR_INACTIVE; i < WEIR_STATES; i++)
        table_cell(t, column[i], s->count[i] ? term_state_color((weir_state)i) : COLOR_DIM, "%s",
                   term_number(text, sizeof text, s->count[i]));
    table_cell(t, 7, COLOR_NONE, "%s", term_duration(text, sizeof text, s->work_ms));
}

static void stats_table(const weir_stats *s)
{
    table t;
    table_init(&t, stats_columns, 8);
    for (size_t i = 0; i < s->n; i++)
        stats_row(&t, &s->type[i], s->type[i].type);
    stats_row(&t, &s->all, "all");
    table_print(&t, stdout, 0);
    table_fini(&t);
}

int cmd_stats(cli *c, const void *values)
{
    (void)values;
    weir_queue *q;
    weir_stats *s;
    if (cli_open(c, CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = weir_get_stats(q, &s, &c->err);
    weir_close(q);
    if (rc)
        return cli_fail(c);
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_int(&w, "last_id", (int64_t)s->last_id);
        type_json(&w, "all", &s->all);
        jw_array(&w, "types");
        for (size_t i = 0; i < s->n; i++)
            type_json(&w, NULL, &s->type[i]);
        jw_end(&w, ']');
        jw_end(&w, '}');
    } else {
        stats_table(s);
    }
    weir_stats_release(s);
    return 0;
}

/* ---- types ---- */

typedef struct types_opts {
    const char *keep_complete, *keep_failed, *search;
} types_opts;
CLI_VALUES_FIT(types_opts);

#define AT(member) offsetof(types_opts, member)
const option_entry types_options[] = {
    { "keep-complete", 0, OPT_TEXT, AT(keep_complete), "KEEP", "how long complete jobs are kept", 0,
      0, "7d,1000 all" },
    { "keep-failed", 0, OPT_TEXT, AT(keep_failed), "KEEP",
      "how long failed and cancelled jobs are kept", 0, 0, "30d all" },
    { "search", 0, OPT_TEXT, AT(search), "on|off", "index new jobs of this type for --search", 0, 0,
      "on off" },
    { 0 }
};
#undef AT

static const char *show_keep(char *out, size_t size, const weir_keep *k)
{
    char age[32];
    if (!k->age_ms && !k->count)
        snprintf(out, size, "all");
    else if (!k->count)
        snprintf(out, size, "%s", term_duration(age, sizeof age, k->age_ms));
    else if (!k->age_ms)
        snprintf(out, size, "%lld", (long long)k->count);
    else
        snprintf(out, size, "%s,%lld", term_duration(age, sizeof age, k->age_ms),
                 (long long)k->count);
    return out;
}

static const table_column types_columns[] = {
    { "TYPE", false, true }, { "JOBS", true, false }, { "WAIT", true, false },
    { "PAUSED", false, false }, { "LAST TAKEN", true, false }, { "KEEP COMPLETE", true, false },
    { "KEEP FAILED", true, false }, { "SEARCH", false, false }
};

static void types_row(table *t, const weir_type_stats *s, int64_t now)
{
    char text[80];
    table_row(t);
    table_cell(t, 0, COLOR_NONE, "%s", s->type);
    table_cell(t, 1, COLOR_NONE, "%s", term_number(text, sizeof text, s->count[WEIR_ANY]));
    table_cell(t, 2, COLOR_NONE, "%s", s->oldest_at
               ? term_duration(text, sizeof text, now > s->oldest_at ? now - s->oldest_at : 0)
               : "-");
    table_cell(t, 3, COLOR_YELLOW, "%s", s->paused ? "paused" : "");
    table_cell(t, 4, COLOR_NONE, "%s", term_relative(text, sizeof text, s->last_taken_at, now));
    table_cell(t, 5, COLOR_NONE, "%s", show_keep(text, sizeof text, &s->settings.keep_complete));
    table_cell(t, 6, COLOR_NONE, "%s", show_keep(text, sizeof text, &s->settings.keep_failed));
    table_cell(t, 7, COLOR_NONE, "%s", s->settings.search ? "on" : "off");
}

static void print_types(const cli *c, const weir_stats *s, const char *only, int64_t now)
{
    table t;
    jw    w = { .out = stdout };
    table_init(&t, types_columns, 8);
    for (size_t i = 0; i <= s->n; i++) {
        const weir_type_stats *one = i < s->n ? &s->type[i] : &s->all;
        if (only && strcmp(one->type, only) != 0)
            continue;
        if (c->json && (i < s->n || only))
            type_json(&w, NULL, one);
        else if (!c->json)
            types_row(&t, one, now);
    }
    if (!c->json)
        table_print(&t, stdout, 0);
    table_fini(&t);
}

static const weir_type_stats *find_type(const weir_stats *s, const char *type)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->type[i].type, type) == 0)
            return &s->type[i];
    return strcmp(type, "*") == 0 ? &s->all : NULL;
}

/* What is not named stays as it is. */
static weir_code configure(cli *c, weir_queue *q, const types_opts *o, const weir_settings *changes)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(q, &s, &c->err);
    if (rc)
        return rc;
    const weir_type_stats *now = find_type(s, c->args[0]);
    weir_settings          set = now ? now->settings : s->all.settings;
    weir_stats_release(s);
    if (o->keep_complete)
        set.keep_complete = changes->keep_complete;
    if (o->keep_failed)
        set.keep_failed = changes->keep_failed;
    if (o->search)
        set.search = changes->search;
    return weir_configure(q, c->args[0], &set, &c->err);
}

int cmd_types(cli *c, const void *values)
{
    const types_opts *o = values;
    weir_queue       *q;
    weir_stats       *s = NULL;
    weir_settings     set = { 0 };
    bool              change = o->keep_complete || o->keep_failed || o->search;
    if (change && c->n_args == 0)
        return cli_usage(c, "which type? '*' stands for all that have no settings of their own");
    if (o->keep_complete && !opt_keep(o->keep_complete, &set.keep_complete))
        return cli_usage(c, "--keep-complete: '%s' is not 7d, 1000, 7d,1000 or all",
                         o->keep_complete);
    if (o->keep_failed && !opt_keep(o->keep_failed, &set.keep_failed))
        return cli_usage(c, "--keep-failed: '%s' is not 7d, 1000, 7d,1000 or all", o->keep_failed);
    if (o->search && strcmp(o->search, "on") != 0 && strcmp(o->search, "off") != 0)
        return cli_usage(c, "--search: '%s' is not on or off", o->search);
    set.search = o->search && strcmp(o->search, "on") == 0;
    if (cli_open(c, change ? CLI_CHANGE : CLI_LOOK, &q))
        return cli_fail(c);
    weir_code rc = change ? configure(c, q, o, &set) : WEIR_OK;
    if (!rc && !change)
        rc = weir_get_stats(q, &s, &c->err);
    if (!rc && !change && c->n_args && !find_type(s, c->args[0]))
        rc = weir_fail(&c->err, WEIR_ENOENT, "there is no type '%s'", c->args[0]);
    if (!rc && !change)
        print_types(c, s, c->n_args ? c->args[0] : NULL, weir_now(q));
    weir_stats_release(s);
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}

/* ---- pause, resume ---- */

int cmd_pause(cli *c, const void *values)
{
    (void)values;
    bool        pause = strcmp(c->command->name, "pause") == 0;
    weir_queue *q;
    if (cli_open(c, CLI_CHANGE, &q))
        return cli_fail(c);
    weir_code rc = WEIR_OK;
    int       i = 0;
    do {
        const char *type = c->n_args ? c->args[i] : "*";
        rc = pause ? weir_pause(q, type, &c->err) : weir_resume(q, type, &c->err);
        if (!rc && c->json) {
            jw w = { .out = stdout };
            jw_object(&w, NULL);
            jw_text(&w, "type", type);
            jw_bool(&w, "paused", pause);
            jw_end(&w, '}');
        }
    } while (!rc && ++i < c->n_args);
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}
