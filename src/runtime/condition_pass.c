/* condition_pass.c - a job that may not run now goes back until it may: see weir/condition.h. */
#include <string.h>

#include "base/json.h"
#include "core/condition.h"
#include "runtime/delivery.h"
#include "runtime/queue.h"
#include "weir/data.h"

#define VALUE "waits_for"

/* Have the job say for what it waits; NULL: for nothing. Trouble does not matter: the job waits all
 * the same. */
static void note(weir_job *job, const char *text)
{
    const char *noted = weir_value_text(job, VALUE, NULL);
    if (noted && text ? strcmp(noted, text) == 0 : noted == text)
        return;
    weir_buf b = { 0 };
    if (text)
        weir__json_string(&b, text, strlen(text));
    if (!b.failed)
        weir_job_set(job, VALUE, text ? b.data : NULL, NULL);
    weir__buf_fini(&b);
}

bool weir_condition_pass(const weir_condition *c, weir_job *job)
{
    int64_t now = job->taken ? weir_now(job->taken->q) : 0;
    int64_t at = weir_condition_when(c, job, now);
    note(job, at > now ? weir__condition_text(c) : NULL);
    if (at <= now)
        return true;
    weir_job_return(job, at - now, NULL);
    return false;
}
