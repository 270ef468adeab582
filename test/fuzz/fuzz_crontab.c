/* fuzz_crontab.c - a crontab. Each entry has an expression, a command and names that a store takes;
 * a wrong line is named, and reading goes on behind it. */
#include <stdlib.h>
#include <string.h>

#include "cli/crontab.h"
#include "fuzz/fuzz.h"

static void check_entry(const crontab_entry *e)
{
    MUST(e->line > 0 && e->when && *e->when && e->command && e->script &&
         strstr(e->script, "cd; "));
    MUST(strlen(e->type) < sizeof e->type && strlen(e->name) < sizeof e->name);
    MUST(!strncmp(e->type, "cron-", 5) && !strncmp(e->name, "cron-", 5));
    for (const char *c = e->name; *c; c++)
        MUST((unsigned char)*c < 0x7f && *c > ' ');
    char *quoted = crontab_quote(e->script);
    MUST(quoted && *quoted == '\'' && quoted[strlen(quoted) - 1] == '\'');
    free(quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    crontab_entry e;
    size_t        last = 0;
    if (!size)
        return 0;
    crontab c = { .at = (const char *)data + 1, .end = (const char *)data + size,
                  .user_column = data[0] == 'u' };
    for (crontab_step step = CRONTAB_ENTRY; step != CRONTAB_END;) {
        weir_error err = { 0 };
        step = crontab_next(&c, &e, &err);
        MUST(step == CRONTAB_END || c.line > last);
        last = c.line;
        if (step == CRONTAB_ENTRY)
            check_entry(&e);
        else
            MUST(!e.when && !e.command);
        if (step == CRONTAB_WRONG)
            MUST(err.code == WEIR_EINVAL && strncmp(err.msg, "line ", 5) == 0);
        crontab_entry_fini(&e);
    }
    crontab_fini(&c);
    return 0;
}
