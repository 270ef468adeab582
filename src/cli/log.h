/* log.h - what a command says on standard error besides its answer: lines with a level, as text for
 * people or as JSON for a collector. To the journal of systemd each goes with its priority.
 * docs/deploy.md says what a line has. */
#ifndef WEIR_CLI_LOG_H
#define WEIR_CLI_LOG_H

#include <stdbool.h>
#include <stdio.h>
#include "weir/weir.h"

typedef enum log_level { LEVEL_INFO, LEVEL_WARNING, LEVEL_ERROR, LEVELS } log_level;

/* {0}: all levels, as text. */
typedef struct cli_log {
    bool      json;
    log_level least;
} cli_log;

/* All but the text may be missing. */
typedef struct log_line {
    log_level       level;
    const char     *text;
    const weir_job *job;            /* JSON has its id and type */
    const char     *address;        /* ... and where a server listens */
} log_line;

/* For the commands that run for long. */
#define LOG_FORMAT_WORDS "text json"
#define LOG_LEVEL_WORDS  "info warning error"
#define LOG_OPTIONS(format_at, level_at)                                                          \
    { .name = "log-format", .kind = OPT_CHOICE, .at = (format_at), .arg = "text|json",            \
      .words = LOG_FORMAT_WORDS, .help = "of the lines on standard error (text)" },               \
    { .name = "log-level", .kind = OPT_CHOICE, .at = (level_at), .arg = "info|warning|error",     \
      .words = LOG_LEVEL_WORDS, .help = "the least level of these lines (info)" }

/* The settings of options, else of WEIR_LOG_FORMAT and WEIR_LOG_LEVEL, which may be wrong:
 * WEIR_EINVAL. */
weir_code cli_log_set(cli_log *l, const char *format, const char *level, weir_error *err);

/* Any thread. A line goes out by one write, or not at all when its level is too low. */
void cli_log_write(const cli_log *l, const log_line *line);

/* On a stream of one's own, whatever its level. */
void cli_log_print(FILE *out, const cli_log *l, const log_line *line);

#endif
