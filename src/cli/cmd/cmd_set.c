/* cmd_set.c - weir set: values of a job. */
#include <stdlib.h>
#include "cli/say.h"
#include "cli/store.h"
#include "cli/values_json.h"

static int run_set(cli *c, const void *values)
{
    (void)values;
    uint64_t    id;
    weir_queue *q = NULL;
    if (opt_id(c->args[0], &id, &c->err))
        return cli_usage(c, "%s", c->err.msg);
    char *json = cli_values_json((const char *const *)&c->args[1], (size_t)c->n_args - 1, &c->err);
    if (!json)
        return cli_usage(c, "%s", c->err.msg);
    weir_code rc = cli_open(c, CLI_CHANGE, &q);
    if (!rc)
        rc = weir_update(q, id, &(weir_change){ .values = json }, NULL, &c->err);
    if (!rc && c->json) {
        weir_job *job = NULL;
        rc = weir_get(q, id, &job, &c->err);
        if (!rc)
            rc = jw_job(stdout, job, &c->err);
        weir_job_free(job);
    }
    weir_close(q);
    free(json);
    if (!rc)
        cli_done(c, "set %d %s of job %llu", c->n_args - 1, c->n_args == 2 ? "value" : "values",
                 (unsigned long long)id);
    return rc ? cli_fail(c) : 0;
}

const command cmd_set = {
    .name = "set", .group = GROUP_CHANGE, .args = "ID NAME=VALUE...", .min_args = 2,
    .max_args = 1 + WEIR_MAX_VALUES,
    .summary = "set values of a job, in any state",
    .help = "Values are small things of your own beside the data: any JSON, or a text. `null` "
            "removes one. A handler that runs sees them when it reads the job again.",
    .examples = "weir set 12 reviewed=true reviewer=ann\nweir set 12 reviewer=null\n",
    .run = run_set,
};
