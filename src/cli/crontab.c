/* crontab.c - reading a crontab: see crontab.h. */
#include "cli/crontab.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line, or what is left of it. */
typedef struct slice {
    const char *at, *end;
} slice;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(slice *s)
{
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
}

static slice next_word(slice *s)
{
    slice word = { s->at, s->at };
    while (s->at < s->end && !is_blank(*s->at))
        s->at++;
    word.end = s->at;
    skip_blanks(s);
    return word;
}

static char *copy(slice s)
{
    return strndup(s.at, (size_t)(s.end - s.at));
}

static bool is(slice word, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(word.end - word.at) == len && strncasecmp(word.at, text, len) == 0;
}

static crontab_step wrong(const crontab *c, const char *line, const char *at, weir_error *err,
                          const char *what)
{
    weir_fail(err, WEIR_EINVAL, "line %zu, column %zu: %s", c->line, (size_t)(at - line) + 1, what);
    return CRONTAB_WRONG;
}

static crontab_step no_memory(weir_error *err)
{
    weir_fail(err, WEIR_ENOMEM, "crontab: out of memory");
    return CRONTAB_WRONG;
}

/* ---- settings ---- */

static bool is_name(char c, bool first)
{
    return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

static slice unquoted(slice s)
{
    while (s.end > s.at && is_blank(s.end[-1]))
        s.end--;
    if (s.end - s.at >= 2 && (*s.at == '"' || *s.at == '\'') && s.end[-1] == *s.at) {
        s.at++;
        s.end--;
    }
    return s;
}

static crontab_setting *find_setting(crontab *c, const char *name)
{
    for (size_t i = 0; i < c->n_settings; i++)
        if (strcmp(c->setting[i].name, name) == 0)
            return &c->setting[i];
    return NULL;
}

static const char *value_of(crontab *c, const char *name)
{
    const crontab_setting *s = find_setting(c, name);
    return s ? s->value : NULL;
}

static crontab_step set(crontab *c, slice name, slice value, const char *line, weir_error *err)
{
    crontab_setting s = { copy(name), copy(unquoted(value)) }, *old;
    if (!s.name || !s.value) {
        free(s.name);
        free(s.value);
        return no_memory(err);
    }
    old = find_setting(c, s.name);
    if (!old && c->n_settings == CRONTAB_MAX_SETTINGS) {
        free(s.name);
        free(s.value);
        return wrong(c, line, line, err, "too many settings; at most 100 (CRONTAB_MAX_SETTINGS)");
    }
    if (old) {
        free(old->name);
        free(old->value);
        *old = s;
    } else {
        c->setting[c->n_settings++] = s;
    }
    return CRONTAB_END;
}

/* NAME = "VALUE". CRONTAB_END: it was set. */
static crontab_step read_setting(crontab *c, slice s, const char *line, weir_error *err)
{
    char  quote = *s.at == '"' || *s.at == '\'' ? *s.at : 0;
    slice name = { s.at + (quote != 0), s.at + (quote != 0) };
    while (name.end < s.end && is_name(*name.end, name.end == name.at))
        name.end++;
    s.at = name.end;
    if (quote && s.at < s.end && *s.at == quote)
        s.at++;
    skip_blanks(&s);
    if (name.at == name.end || s.at == s.end || *s.at != '=')
        return wrong(c, line, s.at, err, "neither a time nor a setting; expected five fields, "
                     "@daily and the like, or NAME=VALUE");
    s.at++;
    skip_blanks(&s);
    return set(c, name, s, line, err);
}

/* ---- weekdays: cron counts them from Sunday ---- */

static bool read_weekday(slice *s, unsigned *out)
{
    static const char *const names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };
    for (unsigned i = 0; i < 7 && s->end - s->at >= 3; i++) {
        if (strncasecmp(s->at, names[i], 3) == 0) {
            s->at += 3;
            *out = i;
            return true;
        }
    }
    if (s->at == s->end || *s->at < '0' || *s->at > '7')
        return false;
    *out = (unsigned)(*s->at++ - '0');
    return true;
}

/* One part: "*", "1", "1-5", with "/2" or without. False: it is for weir to reject. */
static bool read_part(slice part, unsigned *days)
{
    unsigned from = 0, to = 6, step = 1;
    if (part.at < part.end && *part.at == '*') {
        part.at++;
    } else {
        if (!read_weekday(&part, &from))
            return false;
        to = from;
        if (part.at < part.end && *part.at == '-') {
            part.at++;
            if (!read_weekday(&part, &to))
                return false;
        }
    }
    if (part.end - part.at == 2 && *part.at == '/' && part.at[1] >= '1' && part.at[1] <= '7') {
        step = (unsigned)(part.at[1] - '0');
        part.at += 2;
    }
    if (part.at != part.end || from > to)
        return false;
    for (unsigned day = from; day <= to; day += step)
        *days |= 1U << day % 7;
    return true;
}

/* "*", or a list of numbers; as it is, if it cannot be read. */
static void write_weekdays(FILE *out, slice field)
{
    unsigned days = 0;
    bool     ok = true, first = true;
    for (slice rest = field; ok && rest.at <= rest.end;) {
        const char *comma = memchr(rest.at, ',', (size_t)(rest.end - rest.at));
        ok = read_part((slice){ rest.at, comma ? comma : rest.end }, &days);
        rest.at = comma ? comma + 1 : rest.end + 1;
    }
    if (!ok || days == 0x7f) {
        fwrite(ok ? "*" : field.at, 1, ok ? 1 : (size_t)(field.end - field.at), out);
        return;
    }
    for (unsigned day = 0; day < 7; day++) {
        if (!(days & 1U << day))
            continue;
        fprintf(out, first ? "%u" : ",%u", day);
        first = false;
    }
}

/* ---- entries ---- */

static crontab_step read_fields(crontab *c, slice *s, const char *line, crontab_entry *out,
                                weir_error *err)
{
    enum { DAY = 2, WEEKDAY = 4, FIELDS = 5 };
    size_t      size;
    slice       field[FIELDS];
    const char *start = s->at;
    for (int i = 0; i < FIELDS; i++) {
        field[i] = next_word(s);
        if (field[i].at == field[i].end)
            return wrong(c, line, start, err, "an entry has five fields and a command");
    }
    FILE *when = open_memstream(&out->when, &size);
    if (!when)
        return no_memory(err);
    fwrite(start, 1, (size_t)(field[WEEKDAY].at - start), when);
    write_weekdays(when, field[WEEKDAY]);
    out->day_or_weekday = *field[DAY].at != '*' && *field[WEEKDAY].at != '*';
    return fclose(when) ? no_memory(err) : CRONTAB_ENTRY;
}

static crontab_step read_when(crontab *c, slice *s, const char *line, crontab_entry *out,
                              weir_error *err)
{
    const char *zone = value_of(c, "CRON_TZ");
    out->line = c->line;
    if (zone && *zone && !(out->zone = strdup(zone)))
        return no_memory(err);
    if (*s->at != '@')
        return read_fields(c, s, line, out, err);
    slice word = next_word(s);
    if (is(word, "@reboot"))
        return wrong(c, line, word.at, err, "@reboot is the start of a machine, not a time; start "
                     "this command with the system");
    out->when = copy(word);
    return out->when ? CRONTAB_ENTRY : no_memory(err);
}

/* ---- the command ---- */

static void write_quoted(FILE *out, const char *at, size_t len)
{
    fputc('\'', out);
    for (size_t i = 0; i < len; i++) {
        if (at[i] == '\'')
            fputs("'\\''", out);
        else
            fputc(at[i], out);
    }
    fputc('\'', out);
}

char *crontab_quote(const char *text)
{
    char  *quoted = NULL;
    size_t size;
    FILE  *out = open_memstream(&quoted, &size);
    if (!out)
        return NULL;
    write_quoted(out, text, strlen(text));
    if (!fclose(out))
        return quoted;
    free(quoted);
    return NULL;
}

/* The command with "%" as newline and "\%" as "%"; *input is behind the first newline. */
static char *unescape(slice s, const char **input)
{
    char *text = malloc((size_t)(s.end - s.at) + 1), *to = text;
    *input = NULL;
    for (; text && s.at < s.end; s.at++) {
        if (*s.at == '\\' && s.at + 1 < s.end && s.at[1] == '%') {
            *to++ = *++s.at;
        } else if (*s.at == '%' && !*input) {
            *to++ = '\0';
            *input = to;
        } else {
            *to++ = *s.at == '%' ? '\n' : *s.at;
        }
    }
    if (text)
        *to = '\0';
    return text;
}

static bool is_of_cron(const char *name)
{
    return !strcmp(name, "CRON_TZ") || !strcmp(name, "MAILTO") || !strcmp(name, "MAILFROM") ||
           !strcmp(name, "SHELL");
}

static void write_input(FILE *out, const char *input)
{
    fputs("printf '%s\\n'", out);
    for (const char *end; input; input = *end ? end + 1 : NULL) {
        end = strchrnul(input, '\n');
        fputc(' ', out);
        write_quoted(out, input, (size_t)(end - input));
    }
    fputs(" | ", out);
}

/* The environment that cron gives: the settings, the home directory, standard input, the shell. */
static void write_script(FILE *out, crontab *c, const char *command, const char *input)
{
    const char *shell = value_of(c, "SHELL");
    for (size_t i = 0; i < c->n_settings; i++) {
        if (is_of_cron(c->setting[i].name))
            continue;
        fprintf(out, "export %s=", c->setting[i].name);
        write_quoted(out, c->setting[i].value, strlen(c->setting[i].value));
        fputs("; ", out);
    }
    fputs("cd; ", out);
    if (!input && (!shell || !strcmp(shell, "/bin/sh"))) {
        fprintf(out, "exec </dev/null; %s", command);
        return;
    }
    if (input)
        write_input(out, input);
    write_quoted(out, shell ? shell : "/bin/sh", strlen(shell ? shell : "/bin/sh"));
    fputs(" -c ", out);
    write_quoted(out, command, strlen(command));
    if (!input)
        fputs(" </dev/null", out);
}

/* ---- names that follow from what an entry says ---- */

static uint32_t hash(uint32_t h, const char *text)
{
    for (; text && *text; text++)                       /* FNV-1a */
        h = (h ^ (unsigned char)*text) * UINT32_C(16777619);
    return (h ^ 0xff) * UINT32_C(16777619);
}

static void make_names(crontab_entry *e)
{
    enum { SLUG = 32 };
    char        slug[SLUG + 1] = "";
    size_t      n = 0;
    const char *word = e->command + strspn(e->command, " \t");
    for (const char *c = word; *c && !isspace((unsigned char)*c) && n < SLUG; c++) {
        if (*c == '/')
            n = 0;
        else if (isalnum((unsigned char)*c) || strchr("._-", *c))
            slug[n++] = *c;
    }
    slug[n] = '\0';
    uint32_t h = hash(hash(UINT32_C(2166136261), e->script), e->user);
    snprintf(e->type, sizeof e->type, "cron-%s-%08x", n ? slug : "job", h);
    h = hash(hash(h, e->when), e->zone);
    snprintf(e->name, sizeof e->name, "cron-%s-%08x", n ? slug : "job", h);
}

static crontab_step read_command(crontab *c, slice s, const char *line, crontab_entry *out,
                                 weir_error *err)
{
    const char *input;
    size_t      size;
    if (c->user_column) {
        slice user = next_word(&s);
        if (user.at < user.end && !(out->user = copy(user)))
            return no_memory(err);
    }
    if (s.at == s.end)
        return wrong(c, line, s.at, err, c->user_column ? "expected a user and a command"
                                                        : "the command is missing");
    if (!(out->command = unescape(s, &input)))
        return no_memory(err);
    FILE *script = open_memstream(&out->script, &size);
    if (!script)
        return no_memory(err);
    write_script(script, c, out->command, input);
    if (fclose(script))
        return no_memory(err);
    make_names(out);
    return CRONTAB_ENTRY;
}

/* CRONTAB_END: the line has no entry. */
static crontab_step read_line(crontab *c, slice s, crontab_entry *out, weir_error *err)
{
    const char *line = s.at;
    if (s.end > s.at && s.end[-1] == '\r')
        s.end--;
    if (s.end > s.at && memchr(s.at, '\0', (size_t)(s.end - s.at)))
        return wrong(c, line, line, err, "a NUL byte; expected text");
    skip_blanks(&s);
    if (s.at == s.end || *s.at == '#')
        return CRONTAB_END;
    if (*s.at == '"' || *s.at == '\'' || is_name(*s.at, true))
        return read_setting(c, s, line, err);
    crontab_step step = read_when(c, &s, line, out, err);
    return step == CRONTAB_ENTRY ? read_command(c, s, line, out, err) : step;
}

crontab_step crontab_next(crontab *c, crontab_entry *out, weir_error *err)
{
    crontab_step step = CRONTAB_END;
    *out = (crontab_entry){ 0 };
    while (c->at < c->end && step == CRONTAB_END) {
        const char *end = memchr(c->at, '\n', (size_t)(c->end - c->at));
        slice       line = { c->at, end ? end : c->end };
        c->at = end ? end + 1 : c->end;
        c->line++;
        step = read_line(c, line, out, err);
    }
    if (step != CRONTAB_ENTRY)
        crontab_entry_fini(out);
    return step;
}

void crontab_entry_fini(crontab_entry *e)
{
    free(e->when);
    free(e->zone);
    free(e->user);
    free(e->command);
    free(e->script);
    *e = (crontab_entry){ 0 };
}

void crontab_fini(crontab *c)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        free(c->setting[i].name);
        free(c->setting[i].value);
    }
    c->n_settings = 0;
}
