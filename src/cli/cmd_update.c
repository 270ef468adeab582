/* cmd_update.c - weir update: change a job by hand. */
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"

typedef struct update_opts {
    opt_num     priority, delay, at, state;
    const char *data;
} update_opts;
CLI_VALUES_FIT(update_opts);

#define AT(member) offsetof(update_opts, member)
const option_entry update_options[] = {
    { "priority", 'p', OPT_PRIORITY, AT(priority), "PRIORITY", "a new priority, unless it runs", 0,
      0, "low normal medium high critical" },
    { "delay", 'd', OPT_DURATION, AT(delay), "TIME", "start this much later, from now; 0: now", 0,
      0, NULL },
    { "at", 0, OPT_TIME, AT(at), "TIME", "start at this time: 2026-11-16T09:00, 09:00", 0, 0,
      NULL },
    { "data", 0, OPT_TEXT, AT(data), "JSON|-", "new data, unless it runs; - reads standard input",
      0, 0, NULL },
    { "state", 's', OPT_STATE, AT(state), "STATE",
      "inactive (promote, or run again), delayed (with --delay or --at), cancelled, complete or "
      "failed (end it by hand), or active (have it yourself, for 30 s)", 0, 0,
      "inactive delayed active complete failed cancelled" },
    { 0 }
};
#undef AT

int cmd_update(cli *c, const void *values)
{
    const update_opts *o = values;
    weir_queue        *q = NULL;
    uint64_t           id;
    char              *data = NULL;
    weir_change        change = {
        .set_priority = o->priority.set, .priority = (int32_t)o->priority.n,
        .set_delay = o->delay.set, .delay_ms = o->delay.n, .data = o->data,
        .data_len = o->data ? strlen(o->data) : 0, .state = (weir_state)o->state.n,
        .run_at = o->at.n
    };
    if (opt_id(c->args[0], &id, &c->err))
        return cli_usage(c, "%s", c->err.msg);
    if (!o->priority.set && !o->delay.set && !o->at.set && !o->data && !o->state.set)
        return cli_usage(c, "what is to change? Give --priority, --delay, --at, --data or --state");
    if (o->delay.set && o->at.set)
        return cli_usage(c, "--delay and --at exclude each other");
    if (o->data && strcmp(o->data, "-") == 0) {
        data = cli_read_data(&change.data_len, &c->err);
        if (!data)
            return cli_fail(c);
        change.data = data;
    }
    weir_code rc = WEIR_OK;
    if (o->data && change.data_len == 0)
        rc = weir_fail(&c->err, WEIR_EINVAL, "--data: is empty, not JSON");
    if (!rc)
        rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc)
        rc = weir_update(q, id, &change, &c->err);
    if (!rc && c->json) {
        weir_job *job;
        rc = weir_get(q, id, &job, &c->err);
        if (!rc)
            rc = cli_print_job_json(stdout, job, &c->err);
        weir_job_release(job);
    }
    weir_close(q);
    free(data);
    return rc ? cli_fail(c) : 0;
}
