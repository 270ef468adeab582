/* input.h - what a command reads from standard input or a file. */
#ifndef WEIR_CLI_INPUT_H
#define WEIR_CLI_INPUT_H

#include <stdio.h>
#include "weir/weir.h"

/* A job's data from standard input; free(). NULL with err set: trouble, or it is too long. */
char *cli_read_data(size_t *len, weir_error *err);

/* An error of data that came as an argument: if it is no JSON, show what would be right. */
void cli_show_json(weir_error *err);

/* One line of `in`, in memory of its own, without white space at its end. An input longer than
 * `max` is cut, but stays longer than `max`. False at the end of the input; *line is NULL when out
 * of memory. */
bool cli_read_line(FILE *in, size_t max, char **line, size_t *len);

#endif
