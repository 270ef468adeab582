/* cmd_types.c - weir types: the types of a store and their settings. */
#include <stdlib.h>
#include <string.h>
#include "cli/say.h"
#include "cli/store.h"
#include "cli/types.h"

typedef struct types_opts {
    opt_texts   types;
    const char *keep_complete, *keep_failed, *search;
    bool        names, new;
} types_opts;
CLI_VALUES_FIT(types_opts);

#define AT(member) offsetof(types_opts, member)
static const option_entry types_options[] = {
    TYPE_OPTION(AT(types), "only this type; may be given several times"),
    { .name = "keep-complete", .kind = OPT_TEXT, .at = AT(keep_complete), .arg = "KEEP",
      .words = "7d,1000 forever default", .help = "set how long complete jobs are kept" },
    { .name = "keep-failed", .kind = OPT_TEXT, .at = AT(keep_failed), .arg = "KEEP",
      .words = "30d forever default", .help = "set how long failed and cancelled jobs are kept" },
    { .name = "search", .kind = OPT_CHOICE, .at = AT(search), .arg = "on|off", .words = "on off",
      .help = "index new jobs of this type for --search, or do not" },
    { .name = "new", .kind = OPT_FLAG, .at = AT(new), .help = "the type may be one without jobs" },
    { .name = "names", .kind = OPT_FLAG, .at = AT(names), .help = "only the names, one a line" },
    { 0 }
};
#undef AT

/* As --keep-complete takes it, if it is whole days. */
static const char *show_age(char *out, size_t size, int64_t age_ms)
{
    enum { DAY_MS = 24 * 3600 * 1000 };
    if (age_ms % DAY_MS)
        return term_duration(out, size, age_ms);
    snprintf(out, size, "%lldd", (long long)age_ms / DAY_MS);
    return out;
}

static const char *show_keep(char *out, size_t size, const weir_keep *k)
{
    char age[32];
    if (k->age_ms == WEIR_FOREVER && !k->count)
        snprintf(out, size, "forever");
    else if (!k->count)
        snprintf(out, size, "%s", show_age(age, sizeof age, k->age_ms));
    else if (k->age_ms <= 0)
        snprintf(out, size, "%lld", (long long)k->count);
    else
        snprintf(out, size, "%s,%lld", show_age(age, sizeof age, k->age_ms),
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
    table_cell(t, 1, COLOR_NONE, "%s", term_number(text, sizeof text, s->count[WEIR_STATE_ANY]));
    table_cell(t, 2, COLOR_NONE, "%s", s->oldest_at
               ? term_duration(text, sizeof text, now > s->oldest_at ? now - s->oldest_at : 0)
               : "-");
    table_cell(t, 3, COLOR_YELLOW, "%s", s->paused ? "paused" : "");
    table_cell(t, 4, COLOR_NONE, "%s", term_relative(text, sizeof text, s->last_taken_at, now));
    table_cell(t, 5, COLOR_NONE, "%s", show_keep(text, sizeof text, &s->settings.keep_complete));
    table_cell(t, 6, COLOR_NONE, "%s", show_keep(text, sizeof text, &s->settings.keep_failed));
    table_cell(t, 7, COLOR_NONE, "%s", s->settings.search ? "on" : "off");
}

static weir_code print_types(cli *c, const types_opts *o, const weir_stats *s,
                             const cli_types *only, int64_t now)
{
    table     t;
    weir_code rc = WEIR_OK;
    table_init(&t, types_columns, 8);
    for (size_t i = 0; !rc && i <= s->n; i++) {
        const weir_type_stats *one = i < s->n ? &s->type[i] : &s->all;
        bool                   named = cli_types_have(only, one->type);
        if ((only->n && !named) || (i == s->n && !named && (c->json || o->names)))
            continue;
        if (o->names)
            puts(one->type);
        else if (c->json)
            rc = jw_type(stdout, one, &c->err);
        else
            types_row(&t, one, now);
    }
    if (!c->json && !o->names)
        table_print(&t, stdout, 0);
    table_fini(&t);
    return rc;
}

/* ---- settings ---- */

static const weir_settings *settings_of(const weir_stats *s, const char *type)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->type[i].type, type) == 0)
            return &s->type[i].settings;
    return &s->all.settings;
}

/* Settings that are not given do not change. */
static weir_code configure(cli *c, weir_queue *q, const types_opts *o, const cli_types *types,
                           const weir_settings *changes)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(q, &s, &c->err);
    for (size_t i = 0; !rc && i < types->n; i++) {
        weir_settings set = *settings_of(s, types->name[i]);
        if (o->keep_complete)
            set.keep_complete = changes->keep_complete;
        if (o->keep_failed)
            set.keep_failed = changes->keep_failed;
        if (o->search)
            set.search = changes->search;
        rc = weir_configure(q, types->name[i], &set, &c->err);
        if (!rc)
            cli_done(c, "changed the settings of %s", types->name[i]);
    }
    weir_stats_free(s);
    return rc;
}

static weir_code show(cli *c, weir_queue *q, const types_opts *o, const cli_types *types)
{
    weir_stats *s;
    weir_code   rc = weir_get_stats(q, &s, &c->err);
    if (!rc)
        rc = print_types(c, o, s, types, weir_now(q));
    weir_stats_free(s);
    return rc;
}

static int run_types(cli *c, const void *values)
{
    const types_opts *o = values;
    weir_queue       *q = NULL;
    weir_settings     set = { .search = o->search && strcmp(o->search, "on") == 0 };
    bool              change = o->keep_complete || o->keep_failed || o->search;
    cli_types         types;
    if (cli_types_take(c, &o->types, &types))
        return cli_usage(c, "%s", c->err.msg);
    if (change && types.n == 0)
        return cli_usage(c, "which type? '*' stands for all that have no settings of their own");
    if (o->keep_complete && !opt_keep(o->keep_complete, &set.keep_complete))
        return cli_usage(c, "--keep-complete: '%s' is not 7d, 1000, 7d,1000, forever or "
                         "default", o->keep_complete);
    if (o->keep_failed && !opt_keep(o->keep_failed, &set.keep_failed))
        return cli_usage(c, "--keep-failed: '%s' is not 7d, 1000, 7d,1000, forever or default",
                         o->keep_failed);
    weir_code rc = cli_open(c, change ? CLI_CHANGE : CLI_LOOK, &q);
    if (!rc && !o->new)
        rc = cli_types_check(c, q, &types);
    if (!rc)
        rc = change ? configure(c, q, o, &types, &set) : show(c, q, o, &types);
    weir_close(q);
    return rc ? cli_fail(c) : 0;
}

const command cmd_types = {
    .name = "types", .group = GROUP_LOOK, .args = "[TYPE...]", .max_args = -1, .words = "<type>",
    .summary = "list the types, or change their settings",
    .help = "Every type without its own settings has those of the type `*`. Settings that are not "
            "given do not change. Jobs beyond new limits are removed immediately.\n\n"
            "KEEP is an age, a number of jobs or both: 7d, 1000, 7d,1000; or `forever`, or "
            "`default`: complete jobs 7 days, and at most 100,000 of a type; failed and cancelled "
            "ones 90 days; in the layouts of Kue forever.",
    .examples = "weir types\nweir types mail --keep-complete 7d,1000 --keep-failed 30d\n"
                "weir types '*' --keep-complete forever\n",
    .options = types_options, .run = run_types,
};
