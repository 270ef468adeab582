/* log.c - see log.h. */
#include "cli/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "cli/clock.h"
#include "cli/out_json.h"
#include "cli/term.h"

enum { MAX_LINE = 1000 };

static const struct {
    const char *name;
    int         priority;           /* of syslog(3) */
} levels[LEVELS] = {
    [LEVEL_INFO] = { "info", 6 },
    [LEVEL_WARNING] = { "warning", 4 },
    [LEVEL_ERROR] = { "error", 3 },
};

/* ---- settings ---- */

/* Which of `words` is it? -1: none. */
static int find_word(const char *words, const char *text)
{
    size_t len = strlen(text);
    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, " ");
        if (n == len && memcmp(words, text, n) == 0)
            return i;
        words += n + (words[n] == ' ');
    }
    return -1;
}

static weir_code choose(int *out, const char *given, const char *variable, const char *words,
                        weir_error *err)
{
    const char *text = given ? given : getenv(variable);
    *out = text && *text ? find_word(words, text) : 0;
    if (*out >= 0)
        return WEIR_OK;
    return weir_fail(err, WEIR_EINVAL, "%s: '%s' is not one of: %s", variable, text, words);
}

weir_code cli_log_set(cli_log *l, const char *format, const char *level, weir_error *err)
{
    int       json, least;
    weir_code rc = choose(&json, format, "WEIR_LOG_FORMAT", LOG_FORMAT_WORDS, err);
    if (!rc)
        rc = choose(&least, level, "WEIR_LOG_LEVEL", LOG_LEVEL_WORDS, err);
    if (!rc)
        *l = (cli_log){ .json = json == 1, .least = (log_level)least };
    return rc;
}

/* ---- lines ---- */

/* JOURNAL_STREAM is "DEVICE:INODE" of the stream that the journal reads. */
static bool goes_to_journal(FILE *out)
{
    struct stat st;
    char        here[64];
    const char *stream = getenv("JOURNAL_STREAM");
    if (!stream || fstat(fileno(out), &st))
        return false;
    snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, here) == 0;
}

static void write_json(FILE *out, const log_line *line)
{
    int64_t   now = cli_wall_ms();
    time_t    seconds = (time_t)(now / 1000);
    struct tm tm;
    char      day[32], moment[48];
    jw        w = { .out = out };
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(moment, sizeof moment, "%s.%03dZ", day, (int)(now % 1000));
    jw_object(&w, NULL);
    jw_text(&w, "time", moment);
    jw_text(&w, "level", levels[line->level].name);
    jw_text(&w, "message", line->text);
    if (line->job) {
        jw_int(&w, "job", (int64_t)line->job->id);
        jw_text(&w, "type", line->job->type);
    }
    if (line->address)
        jw_text(&w, "address", line->address);
    jw_end(&w, '}');
}

void cli_log_print(FILE *out, const cli_log *l, const log_line *line)
{
    const char *name = line->level == LEVEL_WARNING ? "weir: warning: " : "weir: ";
    char        clean[MAX_LINE];
    char       *whole = NULL;
    size_t      len = 0;
    bool        journal = goes_to_journal(out);
    if (!l->json && term_is_tty(out)) {
        fputs(name, out);
        term_wrap(out, line->text, (int)strlen(name), term_width(out), true);
        return;
    }
    FILE *memory = open_memstream(&whole, &len);
    if (!memory)
        return;
    if (journal)                /* which adds the name itself, and reads the level from this */
        fprintf(memory, "<%d>", levels[line->level].priority);
    if (l->json)
        write_json(memory, line);
    else
        fprintf(memory, "%s%s\n", journal ? "" : name,
                term_clean(clean, sizeof clean, line->text, 0));
    fclose(memory);
    fwrite(whole, 1, len, out);
    free(whole);
}

void cli_log_write(const cli_log *l, const log_line *line)
{
    if (line->level >= l->least)
        cli_log_print(stderr, l, line);
}
