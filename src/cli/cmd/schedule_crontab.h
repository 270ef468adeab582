/* schedule_crontab.h - `weir schedule import crontab`. */
#ifndef WEIR_CLI_SCHEDULE_CRONTAB_H
#define WEIR_CLI_SCHEDULE_CRONTAB_H

#include "cli/cli.h"

/* Make a schedule of each entry of the crontab `path` (NULL: standard input). `zone` is for entries
 * without CRON_TZ; NULL: the machine's. Returns the exit status. */
int schedule_import_crontab(cli *c, const char *path, const char *zone, bool user_column);

#endif
