/* ops_import.c - jobs that come from another store, as they are there. */
#include "store/sqlite/sq.h"

#include <string.h>

#include "core/values.h"
#include "store/answers.h"

/* Is there a job with the id of *in? Then *out says whether it is the same one. */
static bool is_there(sq_store *s, const weir_incoming *in, weir_imported *out)
{
    weir_job      there;
    sq_type      *t;
    sqlite3_stmt *st;
    if (!out->id || !weir__sq_get(s, out->id, &there, &t, &st))
        return false;
    out->existed = !strcmp(there.type, in->job->type) && there.created_at == in->job->created_at;
    if (out->existed)
        out->state = there.state;
    else
        out->id_taken = weir__id_taken(&out->err, out->id);
    sqlite3_reset(st);
    return true;
}

/* The row, its log, and the words of both. */
static weir_code put(sq_store *s, const weir_job *j, const sq_type *t, const weir_incoming *in)
{
    weir_code rc = weir__sq_insert_complete(s, j, t);
    if (!rc && j->search)
        rc = weir__sq_index_data(s, j);
    if (!rc && j->search && j->error)
        rc = weir__sq_index(s, j->id, SQ_SLOT_ERROR, j->error, strlen(j->error));
    for (size_t i = 0; !rc && i < in->n_lines; i++)
        rc = weir__sq_log_line(s, j->id, j->search, &in->lines[i]);
    return rc;
}

static weir_code put_one(sq_store *s, const weir_job *j, sq_type *t, const weir_incoming *in,
                         weir_imported *out, int64_t now)
{
    weir_effects e;
    weir_state   state;
    weir__job_added(j, &e);
    uint64_t holder = e.takes_key ? weir__sq_holder(s, t, j->unique, &state) : 0;
    if (holder) {
        weir__key_taken(&out->err, in->job->id, holder);
        return WEIR_OK;
    }
    weir__job_check(j);
    weir_code rc = put(s, j, t, in);
    if (rc)
        return rc;
    if (j->id > s->last_id)
        s->last_id = j->id;
    weir__sq_follow(s, j, t, &e, now);
    weir__sq_dirty(s, t); /* not derived from the jobs behind counted_id, if its id is lower */
    out->id = j->id;
    out->state = j->state;
    return s->broken ? s->error.code : WEIR_OK;
}

static weir_code import_one(sq_store *s, const weir_incoming *in, weir_imported *out, int64_t now)
{
    *out = (weir_imported){ .id = in->new_id ? 0 : in->job->id };
    if (is_there(s, in, out))
        return WEIR_OK;
    sq_type *t = weir__sq_type_make(s, in->job->type);
    if (!t)
        return s->error.code;
    weir_job j = *in->job;
    weir_buf values = { 0 };
    weir__job_import(&j, out->id ? out->id : s->last_id + 1, now);
    weir_code rc = weir__job_values(&j, &values) ? put_one(s, &j, t, in, out, now)
                                                 : weir__sq_no_memory(s);
    weir__buf_fini(&values);
    return rc;
}

weir_code weir__sq_op_import(sq_store *s, weir_op *op)
{
    weir_op_import *in = &op->u.import;
    weir_code       rc = WEIR_OK;
    for (size_t i = 0; !rc && i < in->n; i++)
        rc = import_one(s, &in->jobs[i], &in->out[i], op->now_ms);
    return rc;
}
