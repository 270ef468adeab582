/* op_import.c - IMPORT: jobs from elsewhere, as they are there. */
#include <string.h>

#include "core/job.h"
#include "core/job_fields.h"
#include "op/row.h"

static const char *action(const weir_op *op)
{
    (void)op;
    return "job.import";
}

static const char **type(weir_op *op, size_t i)
{
    weir_op_import *m = &op->u.import;
    return i < m->n ? &((weir_job *)(uintptr_t)m->jobs[i].job)->type : NULL;
}

static const char *const *data(const weir_op *op, size_t i)
{
    return i < op->u.import.n ? &op->u.import.jobs[i].job->data : NULL;
}

static size_t most(const weir_op *op)
{
    return op->u.import.n;
}

static bool result(const weir_op *op, size_t i, uint64_t *id)
{
    *id = 0;
    if (i >= op->u.import.n)
        return false;
    if (!op->u.import.out[i].err.code)
        *id = op->u.import.out[i].id;
    return true;
}

/* ---- check ---- */

/* How many bytes of text come in with it. */
static size_t bytes_of(const weir_incoming *in)
{
    const weir_job *j = in->job;
    size_t          bytes = 0;
#define BYTES(member, ...) bytes += j->member##_len;
    WEIR_JOB_BYTES(BYTES)
#undef BYTES
    bytes += j->error ? strlen(j->error) : 0;
    for (size_t i = 0; i < in->n_lines; i++)
        bytes += strlen(in->lines[i].text);
    return bytes;
}

static weir_code check_incoming(const weir_incoming *in, weir_error *err)
{
    if (!in->job)
        return weir__fail_field(err, WEIR_EINVAL, "job", "missing");
    if (in->n_lines && !in->lines)
        return weir__fail_field(err, WEIR_EINVAL, "lines", "missing");
    weir_code rc = WEIR__CHECK_RESERVED(in, err);
    if (!rc)
        rc = weir__job_valid(in->job, err);
    return rc ? rc : weir__lines_valid(in->lines, in->n_lines, err);
}

static weir_code too_many(size_t i, weir_error *err)
{
    weir_fail(err, WEIR_ELIMIT, "more than %d bytes together (WEIR_MAX_ADD_BYTES)",
              WEIR_MAX_ADD_BYTES);
    return weir__fail_inside(err, WEIR_ELIMIT, "jobs[%zu]", i);
}

static weir_code check(weir_op *op, weir_error *err)
{
    const weir_op_import *m = &op->u.import;
    size_t                bytes = 0;
    if (m->n > WEIR_MAX_IMPORT)
        return weir__fail_field(err, WEIR_ELIMIT, "jobs", "%zu, at most %d (WEIR_MAX_IMPORT)", m->n,
                                WEIR_MAX_IMPORT);
    if (m->n && !m->jobs)
        return weir__fail_field(err, WEIR_EINVAL, "jobs", "missing");
    for (size_t i = 0; i < m->n; i++) {
        weir_code rc = check_incoming(&m->jobs[i], err);
        if (rc)
            return m->n > 1 ? weir__fail_inside(err, rc, "jobs[%zu]", i) : rc;
        bytes += bytes_of(&m->jobs[i]);
        if (i && bytes > WEIR_MAX_ADD_BYTES)
            return too_many(i, err);
    }
    return WEIR_OK;
}

/* ---- sent again: a job with its own id is recognised by the store ---- */

static bool may_repeat(const weir_op *op)
{
    for (size_t i = 0; i < op->u.import.n; i++)
        if (op->u.import.jobs[i].new_id || !op->u.import.jobs[i].job->id)
            return false;
    return true;
}

static const weir_repeat repeat[] = { { .may = may_repeat } };

/* ---- copy ---- */

static void copy_job(weir_copier *c, weir_job *j)
{
#define TEXT(member, ...)  weir__copy_text(c, &j->member);
#define BYTES(member, ...) weir__copy_bytes(c, &j->member, j->member##_len);
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef TEXT
#undef BYTES
}

static void copy(weir_copier *c, weir_op *op)
{
    weir_op_import *m = &op->u.import;
    weir_incoming  *jobs = weir__copy_array(c, m->jobs, m->n * sizeof *jobs);
    for (size_t i = 0; i < m->n; i++) {
        weir_job  *j = weir__copy_array(c, jobs[i].job, sizeof *j);
        weir_line *lines = weir__copy_array(c, jobs[i].lines, jobs[i].n_lines * sizeof *lines);
        copy_job(c, j);
        for (size_t k = 0; k < jobs[i].n_lines; k++)
            weir__copy_text(c, &lines[k].text);
        if (c->block) {
            jobs[i].job = j;
            jobs[i].lines = lines;
        }
    }
    m->jobs = jobs;
    m->out = weir__copy_room(c, m->n * sizeof *m->out);
}

/* ---- as JSON ---- */

/* A request of its own each: jobs with their logs may be long. */
static size_t size(const weir_op *op)
{
    (void)op;
    return WEIR_MAX_ADD_BYTES;
}

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.import.n; i++) {
        const weir_incoming *in = &op->u.import.jobs[i];
        weir_job             job = *in->job;
        if (job.state == WEIR_STATE_ANY)                  /* as weir__job_import() has it */
            job.state = WEIR_STATE_INACTIVE;
        if (!job.data) {
            job.data = "{}";
            job.data_len = 2;
        }
        job.lease_until = 0;
        weir__put_next(b, i);
        weir__buf_str(b, "{\"job\":");
        weir__job_json(b, &job);
        if (in->n_lines)
            weir__put_lines(b, ",\"log\":", in->lines, in->n_lines);
        weir__put_flag(b, ",\"new_id\":", in->new_id);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

typedef struct incoming {
    weir_read_job job;
    weir_items    log;              /* of weir_line */
    bool          new_id;
} incoming;

static const weir_field incoming_fields[] = {
    WEIR_FIELD("job", weir__as_object, offsetof(incoming, job), .fields = weir__job_fields,
               .needed = true),
    WEIR_FIELD("log", weir__as_list, offsetof(incoming, log), .fields = weir__line_fields,
               .size = sizeof(weir_line), .max = WEIR_MAX_LOG),
    WEIR_FIELD("new_id", weir__as_bool, offsetof(incoming, new_id)),
    { 0 }
};
static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("jobs", weir__as_list, REQUEST(items), .fields = incoming_fields,
               .size = sizeof(incoming), .needed = true, .max = WEIR_MAX_IMPORT),
    { 0 }
};

static weir_code read_request(weir_reader *in, op_request *r)
{
    weir_op_import *m = &r->op.u.import;
    incoming       *from = r->items.item;
    weir_incoming  *jobs = weir__read_room(in, r->items.n, sizeof *jobs);
    m->n = r->items.n;
    m->jobs = jobs;
    m->out = weir__read_room(in, m->n, sizeof *m->out);
    for (size_t i = 0; !in->err.code && i < m->n; i++) {
        weir__read_job_defaults(&from[i].job.job);
        jobs[i] = (weir_incoming){ .job = &from[i].job.job, .lines = from[i].log.item,
                                   .n_lines = from[i].log.n, .new_id = from[i].new_id };
    }
    return in->err.code;
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"jobs\":[");
    for (size_t i = 0; i < op->u.import.n; i++) {
        const weir_imported *o = &op->u.import.out[i];
        weir__put_next(b, i);
        weir__put_id(b, "{\"id\":", o->id);
        weir__put_state(b, ",\"state\":", o->state);
        weir__put_flag(b, ",\"existed\":", o->existed);
        weir__put_flag(b, ",\"id_taken\":", o->id_taken);
        if (o->err.code)
            weir__put_error(b, &o->err);
        weir__buf_char(b, '}');
    }
    weir__buf_char(b, ']');
}

#define IMPORTED(member) offsetof(weir_imported, member)
static const weir_field imported_fields[] = {
    WEIR_FIELD("id", weir__as_number, IMPORTED(id)),
    WEIR_FIELD("state", weir__as_state, IMPORTED(state)),
    WEIR_FIELD("existed", weir__as_bool, IMPORTED(existed)),
    WEIR_FIELD("id_taken", weir__as_bool, IMPORTED(id_taken)),
    WEIR_FIELD("error", weir__as_error, IMPORTED(err)),
    { 0 }
};
#undef IMPORTED
static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("jobs", weir__as_list, ANSWER(items), .fields = imported_fields,
               .size = sizeof(weir_imported)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    weir_op_import *m = &a->op->u.import;
    if (a->items.n != m->n)
        return weir__read_nonsense(in, "not as many jobs as were put in");
    if (m->n)
        memcpy(m->out, a->items.item, m->n * sizeof *m->out);
    return WEIR_OK;
}

const weir_op_row weir__row_import = WEIR_OP_ROW(
    "import", WEIR_LANE_OTHER, WEIR_SCOPE_NAMED, /* slow */ true, weir__role_admin,
    /* writes */ weir__op_always, weir__op_no_steps, action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, type, data, weir__op_no_token, repeat, weir__op_no_take,
    most, result, weir__op_no_cut, check, copy, weir__op_no_output, weir__op_no_output, size,
    write_request, request, read_request, write_answer, answer, read_answer);
