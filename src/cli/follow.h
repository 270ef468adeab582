/* follow.h - tasks are followed while a command works: schedules are armed again, rows written. */
#ifndef WEIR_CLI_FOLLOW_H
#define WEIR_CLI_FOLLOW_H

#include "cli/cli.h"
#include "weir/task.h"

/* `record`: the table of record; NULL: none. *out: weir_tasks_close(), while the queue is open. */
weir_code cli_follow(cli *c, weir_queue *q, const char *record, weir_tasks **out);

#define TASK_TABLE_OPTION(at_)                                                                    \
    { .name = "task-table", .kind = OPT_TEXT, .at = (at_), .arg = "URL",                          \
      .help = "write the rows of tasks that end to this table of record: "                        \
              "mysql://USER:PASSWORD@HOST/DATABASE, or sqlite:FILE" }

#endif
