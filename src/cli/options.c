/* options.c - one parser for all commands, over getopt_long. */
#include "cli/options.h"

#include <ctype.h>
#include <getopt.h>
#include <string.h>
#include "cli/clock.h"
#include "cli/near.h"
#include "cli/term.h"

enum { MAX_OPTIONS = 48, LONG_BASE = 1000, LONGEST_WORD = 40 };

#define AT(member) offsetof(opt_common, member)
const option_entry opt_common_table[] = {
    { .name = "store", .kind = OPT_TEXT, .at = AT(store), .arg = "URL", .words = "<file>",
      .help = "where the jobs are: sqlite:PATH, redis://HOST, http://HOST:7340 or mem: (else "
              "$WEIR_STORE, else the store of a server of yours that runs, else a file in your "
              "data directory)" },
    { .name = "durability", .kind = OPT_CHOICE, .at = AT(durability), .arg = "disk|os",
      .words = "disk os",
      .help = "when a change counts as done: synced to the disk (the default), or safe with the "
              "system" },
    { .name = "json", .kind = OPT_FLAG, .at = AT(json), .help = "answer in JSON" },
    { .name = "quiet", .letter = 'q', .kind = OPT_FLAG, .at = AT(quiet),
      .help = "say nothing that was not asked for" },
    { .name = "help", .letter = 'h', .kind = OPT_FLAG, .at = AT(help), .help = "show this help" },
    { 0 }
};
#undef AT

/* ---- values ---- */

static weir_code parse_duration(const option_entry *o, const char *text, int64_t *out,
                                weir_error *err)
{
    weir_error why;
    if (weir_duration_parse(text, out, &why))
        return weir_fail(err, why.code, "--%s: %s", o->name, why.msg);
    int64_t max = o->max ? o->max : WEIR_MAX_MS;
    if (*out < o->min || *out > max)
        return weir_fail(err, WEIR_EINVAL, "--%s: %s is not between %lld ms and %lld ms", o->name,
                         text, (long long)o->min, (long long)max);
    return WEIR_OK;
}

static weir_code parse_time(const option_entry *o, const char *text, int64_t *out, weir_error *err)
{
    return opt_time(o->name, text, cli_wall_ms(), false, out, err);
}

static bool is_one_of(const char *word, const char *words)
{
    size_t n = strlen(word);
    for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ')
        if (strcspn(w, " ") == n && memcmp(w, word, n) == 0)
            return true;
    return false;
}

/* A length of time counts from now: ahead, or back with OPT_PAST. */
static weir_code parse_when(const option_entry *o, const char *text, int64_t *out, weir_error *err)
{
    int64_t now = cli_wall_ms(), ms;
    bool    past = o->kind == OPT_PAST;
    *out = 0;
    if (o->words && is_one_of(text, o->words))
        return WEIR_OK;
    if (!opt_epoch_ms(text, &ms) && !weir_duration_parse(text, &ms, NULL)) {
        *out = past ? now - ms : now + ms;
        return WEIR_OK;
    }
    if (opt_time(o->name, text, now, past, out, NULL))
        return weir_fail(err, WEIR_EINVAL, "--%s: '%s' is neither a length of time (2h) nor a time "
                         "(2026-11-16T09:00)%s%s", o->name, text, o->words ? " nor " : "",
                         o->words ? o->words : "");
    return WEIR_OK;
}

static weir_code parse_int(const option_entry *o, const char *text, int64_t *out, weir_error *err)
{
    int64_t max = o->max ? o->max : INT64_MAX;
    if (opt_whole(text, out) && *out >= o->min && *out <= max)
        return WEIR_OK;
    if (!o->max)
        return weir_fail(err, WEIR_EINVAL, "--%s: '%s' is not a whole number from %lld on", o->name,
                         text, (long long)o->min);
    return weir_fail(err, WEIR_EINVAL, "--%s: '%s' is not a whole number from %lld to %lld",
                     o->name, text, (long long)o->min, (long long)max);
}

static weir_code parse_state(const option_entry *o, const char *text, int64_t *out, weir_error *err)
{
    weir_state s;
    if (opt_state(o->name, text, &s, err))
        return WEIR_EINVAL;
    *out = s;
    return WEIR_OK;
}

/* Given twice, the option adds to what it said before. */
static weir_code parse_states(const option_entry *o, const char *text, int64_t *out,
                              weir_error *err)
{
    for (size_t n; *text; text += n + (text[n] == ',')) {
        char       name[LONGEST_WORD];
        weir_state s;
        n = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", n < LONGEST_WORD ? (int)n : LONGEST_WORD, text);
        if (opt_state(o->name, name, &s, err))
            return WEIR_EINVAL;
        *out |= WEIR_BIT(s);
    }
    return *out ? WEIR_OK : weir_fail(err, WEIR_EINVAL, "--%s: no state is named", o->name);
}

static weir_code parse_priority(const option_entry *o, const char *text, int64_t *out,
                                weir_error *err)
{
    int32_t p;
    char    hint[80];
    if (!weir_priority_parse(text, &p))
        return weir_fail(err, WEIR_EINVAL, "--%s: '%s' is not low, normal, medium, high, critical "
                         "or a whole number from %ld to %ld%s", o->name, text, (long)INT32_MIN,
                         (long)INT32_MAX, near_words(hint, sizeof hint, text, OPT_PRIORITY_WORDS));
    *out = p;
    return WEIR_OK;
}

/* The kinds whose value is an opt_num. */
static weir_code (*const parse_num[OPT_KINDS])(const option_entry *o, const char *text,
                                               int64_t *out, weir_error *err) = {
    [OPT_INT] = parse_int,           [OPT_DURATION] = parse_duration, [OPT_TIME] = parse_time,
    [OPT_WHEN] = parse_when,         [OPT_PAST] = parse_when,         [OPT_STATE] = parse_state,
    [OPT_STATES] = parse_states,     [OPT_PRIORITY] = parse_priority,
};

static weir_code check_choice(const option_entry *o, const char *text, weir_error *err)
{
    char hint[80];
    if (is_one_of(text, o->words))
        return WEIR_OK;
    return weir_fail(err, WEIR_EINVAL, "--%s: '%s' is not one of: %s%s", o->name, text, o->words,
                     near_words(hint, sizeof hint, text, o->words));
}

static weir_code set_value(const option_entry *o, const char *text, void *values, weir_error *err)
{
    void      *place = (char *)values + o->at;
    opt_texts *texts = place;
    opt_num   *num = place;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)place = true;
        return WEIR_OK;
    case OPT_CHOICE:
    case OPT_TEXT:
        *(const char **)place = text;
        return o->kind == OPT_CHOICE ? check_choice(o, text, err) : WEIR_OK;
    case OPT_TEXTS:
        if (texts->n == OPT_MAX_TEXTS)
            return weir_fail(err, WEIR_EINVAL, "--%s: given more than %d times", o->name,
                             OPT_MAX_TEXTS);
        texts->text[texts->n++] = text;
        return WEIR_OK;
    default:
        num->set = true;
        return parse_num[o->kind](o, text, &num->n, err);
    }
}

/* ---- the line ---- */

/* The table for getopt_long, and the way back from its answer to our entry. */
typedef struct tables {
    struct option       longs[MAX_OPTIONS + 1];
    char                shorts[2 * MAX_OPTIONS + 4];
    const option_entry *entry[MAX_OPTIONS];
    void               *values[MAX_OPTIONS];
    int                 n;
} tables;

static void tables_add(tables *t, const option_entry *o, void *values)
{
    for (; o && o->name && t->n < MAX_OPTIONS; o++) {
        t->longs[t->n] = (struct option){ o->name, o->kind == OPT_FLAG ? no_argument
                                          : required_argument, NULL, LONG_BASE + t->n };
        t->entry[t->n] = o;
        t->values[t->n] = values;
        t->n++;
        if (o->letter) {
            char *s = t->shorts + strlen(t->shorts);
            *s++ = o->letter;
            if (o->kind != OPT_FLAG)
                *s++ = ':';
            *s = 0;
        }
    }
}

static int tables_find(const tables *t, int got)
{
    if (got >= LONG_BASE)
        return got - LONG_BASE;
    for (int i = 0; i < t->n; i++)
        if (t->entry[i]->letter == got)
            return i;
    return -1;
}

static weir_code refuse_unknown(const tables *t, const char *word, weir_error *err)
{
    char typed[64], hint[100];
    weir_near guess = { .typed = typed };
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (int i = 0; i < t->n; i++)
        weir__near_try(&guess, t->entry[i]->name);
    return weir_fail(err, WEIR_EINVAL, "unknown option --%s%s", typed,
                     near_hint(hint, sizeof hint, &guess, "--"));
}

/* The other case of the letter, else all letters there are. */
static weir_code refuse_letter(const tables *t, char letter, weir_error *err)
{
    char   known[MAX_OPTIONS * 4 + 1] = "", other = islower((unsigned char)letter)
                                                        ? (char)toupper((unsigned char)letter)
                                                        : (char)tolower((unsigned char)letter);
    size_t n = 0;
    if (other != letter && tables_find(t, other) >= 0)
        return weir_fail(err, WEIR_EINVAL, "unknown option -%c; did you mean '-%c'?", letter,
                         other);
    for (int i = 0; i < t->n; i++)
        if (t->entry[i]->letter)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s-%c", n ? ", " : "",
                                  t->entry[i]->letter);
    return weir_fail(err, WEIR_EINVAL, "unknown option -%c; this command has %s", letter, known);
}

static weir_code refuse(const tables *t, int got, char **argv, weir_error *err)
{
    int i = optopt ? tables_find(t, optopt) : -1;
    if (got == ':' && i >= 0)
        return weir_fail(err, WEIR_EINVAL, "--%s needs a value (%s)", t->entry[i]->name,
                         t->entry[i]->arg);
    if (i >= 0 && t->entry[i]->kind == OPT_FLAG)
        return weir_fail(err, WEIR_EINVAL, "--%s takes no value", t->entry[i]->name);
    if (optopt && optopt < LONG_BASE)
        return refuse_letter(t, (char)optopt, err);
    return refuse_unknown(t, argv[optind - 1], err);
}

weir_code opt_parse(int argc, char **argv, const option_entry *options, void *values,
                    opt_common *common, bool stop, int *first, weir_error *err)
{
    tables t = { .shorts = "" };
    strcpy(t.shorts, stop ? "+:" : ":");
    tables_add(&t, options, values);
    tables_add(&t, opt_common_table, common);
    optind = 0;                         /* glibc: start anew */
    opterr = 0;
    for (;;) {
        int got = getopt_long(argc, argv, t.shorts, t.longs, NULL);
        if (got == -1)
            break;
        int i = got == '?' || got == ':' ? -1 : tables_find(&t, got);
        if (i < 0)
            return refuse(&t, got, argv, err);
        if (t.values[i] == values)
            common->given |= UINT64_C(1) << i;
        weir_code rc = set_value(t.entry[i], optarg, t.values[i], err);
        if (rc)
            return rc;
    }
    *first = optind;
    return WEIR_OK;
}

weir_code opt_check_action(const option_entry *options, const opt_common *common,
                           const char *actions, const char *action, weir_error *err)
{
    if (!options || !actions || !is_one_of(action, actions))
        return WEIR_OK;
    for (int i = 0; options[i].name; i++) {
        const option_entry *o = &options[i];
        if ((common->given >> i & 1) && o->actions && !is_one_of(action, o->actions))
            return weir_fail(err, WEIR_EINVAL, "%s does not take --%s; it is an option of: %s",
                             action, o->name, o->actions);
    }
    return WEIR_OK;
}

const char *opt_actions(char *out, size_t size, const option_entry *o)
{
    size_t n = 0;
    *out = 0;
    for (const char *w = o->actions; w && *w && n < size; w += strcspn(w, " "), w += *w == ' ')
        n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? ", " : "", (int)strcspn(w, " "), w);
    if (n && n < size)
        snprintf(out + n, size - n, ": ");
    return out;
}

void opt_help(FILE *out, const option_entry *options, int width)
{
    enum { COLUMN = 27 };
    for (const option_entry *o = options; o->name; o++) {
        char left[80];
        char letter[8] = "    ";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
                 o->arg ? o->arg : "");
        if (strlen(left) >= COLUMN - 1)
            fprintf(out, "%s\n%*s", left, COLUMN, "");
        else
            fprintf(out, "%-*s", COLUMN, left);
        char text[600], actions[120];
        snprintf(text, sizeof text, "%s%s", opt_actions(actions, sizeof actions, o), o->help);
        term_wrap(out, text, COLUMN, width, true);
    }
}
