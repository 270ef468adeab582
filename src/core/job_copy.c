/* job_copy.c - a copy of a job in one block, and the end of one. */
#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "core/job_fields.h"

/* Every member is in the table, or is private to one process (hold, texts): what is over is the
 * padding behind the flags. */
#define NUMBER(X, shape, member, ...) +sizeof((weir_job){ 0 }.member) NUMBER_##shape(member)
#define NUMBER_INT(member)
#define NUMBER_TEXT(member)
#define NUMBER_BYTES(member) +sizeof((weir_job){ 0 }.member##_len)
#define NUMBER_BACKOFF(member)
_Static_assert((0 WEIR_JOB_FIELDS(NUMBER, ) + 2 * sizeof(void *) + sizeof(int64_t) - 1) /
                       sizeof(int64_t) * sizeof(int64_t) == sizeof(weir_job),
               "a member of weir_job is missing in core/job_fields.h");

static const char *put(char **at, const char *bytes, size_t len)
{
    if (!bytes)
        return NULL;
    char *to = *at;
    memcpy(to, bytes, len);
    to[len] = '\0';
    *at = to + len + 1;
    return to;
}

weir_job *weir__job_copy(const weir_job *j)
{
    size_t size = sizeof *j;
#define TEXT(member, ...)  const size_t member##_n = j->member ? strlen(j->member) : 0;
#define BYTES(member, ...) const size_t member##_n = j->member##_len;
#define SIZE(member, ...)  size += j->member ? member##_n + 1 : 0;
#define PUT(member, ...)   c->member = put(&at, j->member, member##_n);
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
    WEIR_JOB_TEXTS(SIZE)
    WEIR_JOB_BYTES(SIZE)
    weir_job *c = malloc(size);
    if (!c)
        return NULL;
    char *at = (char *)(c + 1);
    *c = *j;
    c->taken = NULL;
    c->texts = NULL;
    WEIR_JOB_TEXTS(PUT)
    WEIR_JOB_BYTES(PUT)
    return c;
}

void weir_job_free(weir_job *job)
{
    if (!job)
        return;
    if (job->taken) {
        weir__delivery_release(job->taken);
        return;
    }
    weir__texts_free(job->texts);
    free(job);
}
