/* cmd_set.c - weir set: values of a job; and how they are written on the command line. */
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"

static bool put_value(FILE *out, const char *text, bool first, weir_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        weir_fail(err, WEIR_EINVAL, "'%s' is not NAME=VALUE", text);
        return false;
    }
    size_t len = strlen(equals + 1);
    fputc(first ? '{' : ',', out);
    jw_string(out, text, (size_t)(equals - text));
    fputc(':', out);
    if (weir_json_valid(equals + 1, len))
        fwrite(equals + 1, 1, len, out);
    else
        jw_string(out, equals + 1, len);
    return true;
}

char *cli_values_json(const char *const *text, size_t n, weir_error *err)
{
    char  *json = NULL;
    size_t size;
    bool   ok = true;
    FILE  *out = open_memstream(&json, &size);
    for (size_t i = 0; out && ok && i < n; i++)
        ok = put_value(out, text[i], i == 0, err);
    if (out)
        fputc('}', out);
    if (!out || fclose(out)) {
        weir_fail(err, WEIR_ENOMEM, "values: out of memory");
        ok = false;
    }
    if (ok)
        return json;
    free(json);
    return NULL;
}

int cmd_set(cli *c, const void *values)
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
        rc = weir_update(q, id, &(weir_change){ .values = json }, &c->err);
    if (!rc && c->json) {
        weir_job *job = NULL;
        rc = weir_get(q, id, &job, &c->err);
        if (!rc)
            rc = cli_print_job_json(stdout, job, &c->err);
        weir_job_release(job);
    }
    weir_close(q);
    free(json);
    return rc ? cli_fail(c) : 0;
}
