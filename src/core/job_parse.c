/* job_parse.c - a job from JSON, with the names of job_json.c; its log, too. fields.h reads it:
 * what a job has of JSON itself (data, result, progress data) comes back byte by byte, with all
 * the digits of its numbers. */
#include <string.h>

#include "core/fields.h"
#include "core/job.h"
#include "core/results.h"

#define AT(member) offsetof(weir_line, member)
const weir_field weir__line_fields[] = {         /* n 0: one more than the last */
    WEIR_FIELD("n", weir__as_int, AT(n), .min = 1, .max = INT64_MAX),
    WEIR_FIELD("at", weir__as_moment, AT(at)),
    WEIR_FIELD("text", weir__as_text, AT(text), .needed = true),
    { 0 }
};
#undef AT

#define AT(member) offsetof(weir_read_job, job.member)
const weir_field weir__job_fields[] = {          /* in the order in which they are written */
    WEIR_FIELD("id", weir__as_id, AT(id), .max = (int64_t)WEIR_MAX_ID),
    WEIR_FIELD("type", weir__as_text, AT(type), .needed = true),
    WEIR_FIELD("data", weir__as_raw, AT(data)),
    WEIR_FIELD("values", weir__as_raw, AT(values)),
    WEIR_FIELD("priority", weir__as_priority, AT(priority)),
    WEIR_FIELD("state", weir__as_state, AT(state)),
    WEIR_FIELD("delay", weir__as_ms, AT(delay_ms)),
    WEIR_FIELD("max_attempts", weir__as_int32, AT(max_attempts)),
    WEIR_FIELD("attempts", weir__as_int32, AT(attempts)),
    WEIR_FIELD("progress", weir__as_int32, AT(progress)),
    WEIR_FIELD("progress_data", weir__as_raw, AT(progress_data)),
    WEIR_FIELD("result", weir__as_raw, AT(result)),
    WEIR_FIELD("error", weir__as_text, AT(error)),
    WEIR_FIELD("created_at", weir__as_moment, AT(created_at)),
    WEIR_FIELD("promote_at", weir__as_moment, AT(promote_at)),
    WEIR_FIELD("updated_at", weir__as_moment, AT(updated_at)),
    WEIR_FIELD("failed_at", weir__as_moment, AT(failed_at)),
    WEIR_FIELD("started_at", weir__as_moment, AT(started_at)),
    WEIR_FIELD("finished_at", weir__as_moment, AT(finished_at)),
    WEIR_FIELD("lease_until", weir__as_moment, AT(lease_until)),
    WEIR_FIELD("duration", weir__as_int, AT(duration_ms), .max = INT64_MAX),
    WEIR_FIELD("ttl", weir__as_ms, AT(ttl_ms)),
    WEIR_FIELD("deadline", weir__as_moment, AT(deadline_at)),
    WEIR_FIELD("unique", weir__as_text, AT(unique)),
    WEIR_FIELD("removeOnComplete", weir__as_bool, AT(remove_on_complete)),
    WEIR_FIELD("backoff", weir__as_backoff, AT(backoff)),
    WEIR_FIELD("workerId", weir__as_text, AT(worker)),
    WEIR_FIELD("delivery", weir__as_delivery, AT(delivery), .max = INT32_MAX),
    WEIR_FIELD("lost", weir__as_int32, AT(lost)),
    WEIR_FIELD("max_lost", weir__as_int32, AT(max_lost)),
    WEIR_FIELD("search", weir__as_bool, AT(search)),
    WEIR_FIELD("search_keys", weir__as_text, AT(search_keys)),
    WEIR_FIELD("history", weir__as_raw, AT(history)),
    WEIR_FIELD("log", weir__as_list, offsetof(weir_read_job, log), .max = WEIR_MAX_LOG,
               .fields = weir__line_fields, .size = sizeof(weir_line)),
    { 0 }
};
#undef AT
_Static_assert(offsetof(weir_job, data_len) == offsetof(weir_job, data) + sizeof(char *) &&
                   offsetof(weir_job, result_len) == offsetof(weir_job, result) + sizeof(char *) &&
                   offsetof(weir_job, progress_data_len) ==
                       offsetof(weir_job, progress_data) + sizeof(char *) &&
                   offsetof(weir_job, history_len) ==
                       offsetof(weir_job, history) + sizeof(char *) &&
                   offsetof(weir_job, values_len) == offsetof(weir_job, values) + sizeof(char *),
               "weir__as_raw() sets both");

/* ---- all of it ---- */

static weir_code no_memory(weir_error *err)
{
    return weir_fail(err, WEIR_ENOMEM, "job: out of memory");
}

static weir_code make_log(const weir_items *from, weir_lines *log, weir_error *err)
{
    const weir_line *lines = from->item;
    for (size_t i = 0; i < from->n; i++) {
        uint64_t n = lines[i].n ? lines[i].n : i + 1;
        if (!weir__lines_add(log, n, lines[i].at, lines[i].text, strlen(lines[i].text)))
            return no_memory(err);
    }
    return weir__lines_valid(log->line, log->n, err);
}

static weir_code read_job(weir_reader *in, const char *json, size_t len, weir_read_job *out,
                          weir_lines *log)
{
    /* the job itself is one level above its data */
    weir_code rc = weir__read_check(in, json, len, WEIR_MAX_DEPTH + 1);
    if (!rc)
        rc = weir__read(in, weir__job_fields, (weir_json_piece){ json, len }, out);
    if (!rc)
        rc = weir__job_valid(&out->job, &in->err);
    return rc ? rc : make_log(&out->log, log, &in->err);
}

weir_code weir_job_parse(const char *json, size_t len, weir_job **out, weir_lines **log,
                         weir_error *err)
{
    weir_arena    arena = { 0 };
    weir_reader   in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_lines   *lines = weir__lines_create();
    weir_read_job p = { .job = { .state = WEIR_INACTIVE, .data = "{}", .data_len = 2,
                                 .max_attempts = 1, .max_lost = WEIR_DEFAULT_MAX_LOST } };
    *out = NULL;
    if (log)
        *log = NULL;
    weir_code rc = lines ? read_job(&in, json, len, &p, lines) : no_memory(&in.err);
    if (!rc && !(*out = weir__job_copy(&p.job)))
        rc = no_memory(&in.err);
    if (rc && err)
        *err = in.err;
    weir__arena_free(&arena);
    if (!rc && log)
        *log = lines;
    else
        weir_lines_release(lines);
    return rc;
}
