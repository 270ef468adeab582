/* fuzz_import.c - lines that are to be imported: types or a job. What is read as a job is one that
 * a store takes, and comes back the same when it is written and read again. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/migrate/import_types.h"
#include "core/job.h"
#include "fuzz/fuzz.h"
#include "store/store.h"

static void check_refused(weir_code rc, const weir_error *err)
{
    MUST(rc == WEIR_EINVAL || rc == WEIR_ELIMIT || rc == WEIR_EVERSION);
    MUST(err->code == rc && err->msg[0]);
}

static void types(const char *line, size_t len)
{
    import_type *list;
    size_t       n;
    weir_error   err = { 0 };
    weir_code    rc = import_types(line, len, &list, &n, &err);
    if (rc) {
        check_refused(rc, &err);
        MUST(!list && !n);
    }
    for (size_t i = 0; i < n; i++)
        MUST(list[i].type[0] && strlen(list[i].type) <= WEIR_MAX_TYPE);
    free(list);
}

static char *written(const weir_job *j, const weir_lines *log, size_t *len)
{
    weir_buf b = { 0 };
    char    *json = weir_job_json(j, len);
    MUST(json);
    weir__buf_add(&b, json, *len - 1);
    weir__buf_str(&b, ",\"log\":[");
    for (size_t i = 0; i < log->n; i++) {
        weir__buf_printf(&b, "%s{\"n\":%llu,\"at\":%lld,\"text\":", i ? "," : "",
                         (unsigned long long)log->line[i].n, (long long)log->line[i].at);
        weir__json_string(&b, log->line[i].text, strlen(log->line[i].text));
        weir__buf_char(&b, '}');
    }
    weir__buf_str(&b, "]}");
    free(json);
    MUST(!b.failed);
    return weir__buf_steal(&b, len);
}

static void job(const char *line, size_t len)
{
    weir_job   *j, *again;
    weir_lines *log, *log_again;
    weir_error  err = { 0 };
    weir_code   rc = weir_job_parse(line, len, &j, &log, &err);
    if (rc) {
        check_refused(rc, &err);
        MUST(!j && !log);
        return;
    }
    MUST(weir__json_valid(line, len, WEIR_MAX_DEPTH + 1, NULL, NULL));
    weir_imported out;
    weir_incoming in = { .job = j, .lines = log->line, .n_lines = log->n };
    weir_op       op = { .kind = WEIR_OP_IMPORT, .u.import = { &in, 1, &out } };
    MUST(!weir__op_check(&op, &err));
    weir_job here = *j;
    weir__job_import(&here, 1, 1);
    weir__job_check(&here);

    size_t n, n_again;
    char  *text = written(j, log, &n);
    MUST(!weir_job_parse(text, n, &again, &log_again, &err));
    char *text_again = written(again, log_again, &n_again);
    MUST(n == n_again && !memcmp(text, text_again, n));
    free(text);
    free(text_again);
    weir_job_free(j);
    weir_job_free(again);
    weir_lines_free(log);
    weir_lines_free(log_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data;
    if (import_is_types(line, size))
        types(line, size);
    else
        job(line, size);
    return 0;
}
