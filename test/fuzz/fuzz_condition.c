/* fuzz_condition.c - a condition on the first line, a job's data on the second. A condition that is
 * accepted has an answer, now or later. */
#include <string.h>

#include "core/condition.h"
#include "core/job.h"
#include "fuzz/fuzz.h"
#include "weir/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { NOW = 1000000000 };
    char *text = strndup((const char *)data, size);
    MUST(text);
    char *line = strchr(text, '\n');
    if (line)
        *line++ = 0;
    size_t          len = line ? strlen(line) : 0;
    bool            json = len && weir_json_valid(line, len);
    weir_job        job = { .type = "a", .data = json ? line : "{}", .data_len = json ? len : 2 };
    weir_condition *c;
    weir_error      err = { 0 };
    if (!weir_condition_parse(&c, text, &err))
        MUST(weir_condition_when(c, &job, NOW) >= NOW);
    else
        MUST(!c && (err.code == WEIR_EINVAL || err.code == WEIR_ELIMIT));
    weir_condition_free(c);
    weir__texts_free(job.texts);
    free(text);
    return 0;
}
