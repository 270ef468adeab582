/* input.c - see input.h. */
#include "cli/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *cli_read_data(size_t *len, weir_error *err)
{
    char   *text = malloc(WEIR_MAX_DATA + 2);
    ssize_t n = 1;
    *len = 0;
    if (!text) {
        weir_fail(err, WEIR_ENOMEM, "standard input");
        return NULL;
    }
    while (n != 0 && *len <= WEIR_MAX_DATA) {
        n = read(STDIN_FILENO, text + *len, WEIR_MAX_DATA + 1 - *len);
        if (n < 0 && errno != EINTR) {
            weir_fail(err, WEIR_EIO, "standard input: %s", strerror(errno));
            free(text);
            return NULL;
        }
        *len += n > 0 ? (size_t)n : 0;
    }
    if (*len > WEIR_MAX_DATA) {
        weir_fail(err, WEIR_ELIMIT, "data: more than %d bytes (WEIR_MAX_DATA)", (int)WEIR_MAX_DATA);
        free(text);
        return NULL;
    }
    text[*len] = 0;
    return text;
}

void cli_show_json(weir_error *err)
{
    char   why[sizeof err->msg];
    size_t n = strlen(err->field);
    bool   is_data = n >= 4 && strcmp(err->field + n - 4, "data") == 0;
    if (err->code != WEIR_EINVAL || !is_data || !strstr(err->msg, "not JSON"))
        return;
    snprintf(why, sizeof why, "%s", err->msg);
    weir_fail(err, WEIR_EINVAL, "%.160s; write '{\"to\":\"ann\"}' in single quotes", why);
}

bool cli_read_line(FILE *in, size_t max, char **line, size_t *len)
{
    size_t cap = 256;
    int    byte = getc(in);
    bool   there = byte != EOF;
    *len = 0;
    *line = malloc(cap);
    for (; *line && byte != EOF && byte != '\n'; byte = getc(in)) {
        if (*len + 1 == cap && cap <= max) {
            char *more = realloc(*line, cap *= 2);
            if (!more)
                free(*line);
            *line = more;
        }
        if (*line && *len + 1 < cap)
            (*line)[(*len)++] = (char)byte;
    }
    while (*line && *len > 0 && strchr(" \t\r", (*line)[*len - 1]))
        --*len;
    if (*line)
        (*line)[*len] = 0;
    return there;
}
