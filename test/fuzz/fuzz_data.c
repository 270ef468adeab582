/* fuzz_data.c - members of data by path: the path is the first line, the rest is the data. What is
 * found as one type is not found as another, and what is found is what the data says. */
#include <string.h>

#include "base/json.h"
#include "core/job.h"
#include "fuzz/fuzz.h"
#include "weir/data.h"

static void look(weir_job *job, const char *path)
{
    int64_t     n = weir_data_int(job, path, -7), same = weir_data_int(job, path, -8);
    double      d = weir_data_number(job, path, -7), other = weir_data_number(job, path, -8);
    const char *text = weir_data_text(job, path, NULL);
    bool        is_int = n == same, is_number = d == other;
    bool        is_bool = weir_data_bool(job, path, true) == weir_data_bool(job, path, false);
    MUST(!is_int || is_number);
    MUST(!is_int || d == (double)n);
    MUST(is_number + is_bool + (text != NULL) <= 1);
    MUST(!text || weir__utf8_valid(text, strlen(text)));
    MUST(text == weir_data_text(job, path, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t         where;
    const char    *why;
    if (!line)
        return 0;
    const char *json = (const char *)line + 1;
    size_t      len = size - (size_t)(json - (const char *)data);
    if (!weir__json_valid(json, len, WEIR_MAX_DEPTH, &where, &why))
        return 0;
    char     *path = strndup((const char *)data, (size_t)(line - data));
    weir_job *job = weir__job_copy(&(weir_job){ .id = 1, .data = json, .data_len = len });
    MUST(path && job);
    look(job, path);
    look(job, "");
    free(path);
    weir_job_free(job);
    return 0;
}
