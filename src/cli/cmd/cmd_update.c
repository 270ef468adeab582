/* cmd_update.c - weir update: change a job by hand. */
#include <stdlib.h>
#include <string.h>
#include "cli/input.h"
#include "cli/say.h"
#include "cli/store.h"

typedef struct update_opts {
    opt_num     priority, delay, at, state;
    const char *data;
} update_opts;
CLI_VALUES_FIT(update_opts);

#define AT(member) offsetof(update_opts, member)
static const option_entry update_options[] = {
    { .name = "priority", .letter = 'p', .kind = OPT_PRIORITY, .at = AT(priority),
      .arg = "PRIORITY", .words = "low normal medium high critical",
      .help = "a new priority, unless it runs" },
    { .name = "delay", .letter = 'd', .kind = OPT_DURATION, .at = AT(delay), .arg = "TIME",
      .help = "start this much later, from now; 0: now" },
    { .name = "at", .kind = OPT_TIME, .at = AT(at), .arg = "TIME",
      .help = "start at this time: 2026-11-16T09:00, 09:00" },
    { .name = "data", .kind = OPT_TEXT, .at = AT(data), .arg = "JSON|-",
      .help = "new data, unless it runs; - reads standard input" },
    { .name = "state", .letter = 's', .kind = OPT_STATE, .at = AT(state), .arg = "STATE",
      .words = "inactive delayed active complete failed "
               "cancelled",
      .help = "inactive (promote, or run again), delayed (with --delay or --at), cancelled, "
              "complete or failed (end it by hand), or active (have it yourself, for 30 s)" },
    { 0 }
};
#undef AT

static int run_update(cli *c, const void *values)
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
        return cli_usage(c, "nothing to change; give --priority, --delay, --at, --data or --state");
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
        rc = weir_update(q, id, &change, NULL, &c->err);
    if (rc && !data)
        cli_show_json(&c->err);
    if (!rc && c->json) {
        weir_job *job;
        rc = weir_get(q, id, &job, &c->err);
        if (!rc)
            rc = jw_job(stdout, job, &c->err);
        weir_job_free(job);
    }
    weir_close(q);
    free(data);
    if (!rc)
        cli_done(c, "changed job %llu", (unsigned long long)id);
    return rc ? cli_fail(c) : 0;
}

const command cmd_update = {
    .name = "update", .group = GROUP_CHANGE, .args = "ID", .min_args = 1, .max_args = 1,
    .summary = "change a job's priority, delay, data or state",
    .help = "All of it happens, or nothing. A job that a worker has is not set to any state but "
            "cancelled.",
    .examples = "weir update 12 --priority high --delay 0\n"
                "weir update 12 --data '{\"to\":\"bob@example.org\"}'\n",
    .options = update_options, .run = run_update,
};
