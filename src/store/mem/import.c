/* import.c - jobs that come from another store, as they are there. */
#include "store/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "store/answers.h"

static bool copy_lines(mem_job *m, const weir_line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mem_line *line = weir__mem_line(lines[i].text, strlen(lines[i].text));
        if (!line)
            return false;
        line->n = lines[i].n;
        line->at = lines[i].at;
        weir__mem_line_put(m, line);
    }
    return true;
}

/* The job with all that it has, in no tree or table yet. NULL: out of memory. */
static mem_job *create(mem_type *t, const weir_job *j, const weir_incoming *in)
{
    mem_job *m = weir__mem_job_create(t, j);
    if (!m)
        return NULL;
    if (copy_lines(m, in->lines, in->n_lines))
        return m;
    weir__mem_job_free(m);
    return NULL;
}

static bool same_job(const mem_job *m, const weir_job *j)
{
    return !strcmp(m->j.type, j->type) && m->j.created_at == j->created_at;
}

/* False: out of memory. */
static bool import_one(mem_store *s, const weir_incoming *in, weir_imported *out, int64_t now)
{
    uint64_t id = in->new_id ? 0 : in->job->id;
    mem_job *there = id ? weir__mem_find(s, id) : NULL;
    *out = (weir_imported){ .id = id };
    if (there && !same_job(there, in->job)) {
        out->id_taken = weir__id_taken(&out->err, id);
        return true;
    }
    if (there) {
        out->existed = true;
        out->state = there->j.state;
        return true;
    }
    mem_type *t = weir__mem_type_make(s, in->job->type);
    if (!t)
        return false;
    weir_job j = *in->job;
    weir__job_import(&j, id ? id : s->last_id + 1, now);
    weir_effects e;
    weir__job_added(&j, &e);
    mem_job *holder = e.takes_key ? weir__mem_holder(s, t, j.unique) : NULL;
    if (holder) {
        weir__key_taken(&out->err, in->job->id, holder->j.id);
        return true;
    }
    mem_job *m = create(t, &j, in);
    if (!m)
        return false;
    weir__job_check(&m->j);
    weir__mem_job_put(s, m);
    out->id = j.id;
    out->state = j.state;
    return true;
}

weir_code weir__mem_import(mem_store *s, weir_op *op)
{
    weir_op_import *in = &op->u.import;
    uint64_t        last_id = s->last_id;
    size_t          n = 0;
    bool            ok = weir__outbox_reserve(&s->out, in->n);
    while (ok && n < in->n && (ok = import_one(s, &in->jobs[n], &in->out[n], op->now_ms)))
        n++;
    for (size_t i = 0; i < n; i++) {
        const weir_imported *o = &in->out[i];
        if (o->err.code || o->existed)
            continue;
        mem_job *m = weir__mem_find(s, o->id);
        if (!ok) {
            weir__mem_forget(s, m);
            continue;
        }
        weir_effects e;
        m->type->known = true;
        weir__job_added(&m->j, &e);
        weir__mem_follow(s, m, &e, op->now_ms);
    }
    if (ok)
        return WEIR_OK;
    s->last_id = last_id;
    return weir_fail(&op->err, WEIR_ENOMEM, "import: out of memory");
}
