/* check.c - do the trees and tables of a mem store say what its jobs say? */
#include "store/mem/mem.h"

#include <inttypes.h>
#include <string.h>

#include "core/results.h"

/* Counts of the jobs, to compare the trees and tables with. */
typedef struct tally {
    weir_report *report;
    size_t       due, unique, active;
    bool         ok;                    /* there was memory for every line */
} tally;

#define WRONG(t, ...) ((t)->ok = (t)->ok && weir__report_line((t)->report, __VA_ARGS__))

static void check_job(mem_store *s, const mem_job *m, tally *t)
{
    const weir_job *j = &m->j;
    bool            holds = j->unique && !weir__finished(j->state);
    int64_t         due = weir__job_due(j);
    weir__job_check(j);
    t->report->jobs++;
    t->due += due != 0;
    t->unique += holds;
    t->active += j->state == WEIR_STATE_ACTIVE;
    if (!weir__tree_has(&m->type->all, &m->in_all))
        WRONG(t, "job %" PRIu64 ": not in the list of its type", j->id);
    if (m->in_state.rank != weir__job_rank(j) ||
        !weir__tree_has(&m->type->in[j->state], &m->in_state))
        WRONG(t, "job %" PRIu64 ": not in its place in the list of its state", j->id);
    if (m->in_due.rank != due || (due && !weir__tree_has(&s->due, &m->in_due)))
        WRONG(t, "job %" PRIu64 ": not in its place among those that will be due", j->id);
    if (holds && weir__mem_holder(s, m->type, j->unique) != m)
        WRONG(t, "job %" PRIu64 ": does not hold its unique key", j->id);
    if (j->id > s->last_id)
        WRONG(t, "job %" PRIu64 ": beyond the last id", j->id);
    uint64_t lines = 0;
    for (const mem_line *l = m->first; l; l = l->next)
        lines++;
    if (lines != m->n_lines || lines > WEIR_MAX_LOG)
        WRONG(t, "job %" PRIu64 ": its log has %" PRIu64 " lines", j->id, lines);
}

static void check_type(const mem_type *type, tally *t)
{
    size_t sum = 0;
    for (int st = WEIR_STATE_INACTIVE; st < WEIR_STATE_COUNT; st++) {
        sum += type->in[st].n;
        if (!weir__tree_sound(&type->in[st]))
            WRONG(t, "type %s: its list of %s jobs is out of order", type->name,
                  weir_state_name((weir_state)st));
    }
    if (!weir__tree_sound(&type->all))
        WRONG(t, "type %s: its list is out of order", type->name);
    if (sum != type->all.n)
        WRONG(t, "type %s: %zu jobs by state, %zu in all", type->name, sum, type->all.n);
}

static void check_totals(const mem_store *s, tally *t)
{
    size_t all = 0, active = 0;
    for (size_t i = 0; i < s->n_types; i++)
        all += s->by_name[i]->all.n;
    for (const mem_job *m = s->active; m; m = m->next)
        active++;
    if (all != t->report->jobs)
        WRONG(t, "%zu jobs in lists, %" PRIu64 " in all", all, t->report->jobs);
    if (s->due.n != t->due || !weir__tree_sound(&s->due))
        WRONG(t, "%zu jobs will be due, %zu are listed so", t->due, s->due.n);
    if (s->unique.n != t->unique)
        WRONG(t, "%zu jobs hold a unique key, %zu are listed so", t->unique, s->unique.n);
    if (active != t->active)
        WRONG(t, "%zu jobs are active, %zu are listed so", t->active, active);
}

/* Make every tree and table anew from the jobs. */
static void mend(mem_store *s)
{
    for (size_t i = 0; i < s->n_types; i++) {
        s->by_name[i]->all = (tree){ 0 };
        memset(s->by_name[i]->in, 0, sizeof s->by_name[i]->in);
    }
    s->due = (tree){ 0 };
    s->active = NULL;
    weir__table_fini(&s->unique);
    for (table_link *l = weir__table_next(&s->jobs, NULL); l; l = weir__table_next(&s->jobs, l)) {
        mem_job *m = CONTAINER(l, mem_job, by_id);
        m->in_all.id = m->in_state.id = m->in_due.id = m->j.id;
        m->in_all.rank = 0;
        weir__tree_add(&m->type->all, &m->in_all);
        weir__mem_index(s, m);
    }
}

weir_code weir__mem_check(mem_store *s, weir_op *op)
{
    tally t = { .report = weir__report_create(), .ok = true };
    op->u.check.report = NULL;
    if (!t.report)
        return weir_fail(&op->err, WEIR_ENOMEM, "check: out of memory");
    for (table_link *l = weir__table_next(&s->jobs, NULL); l; l = weir__table_next(&s->jobs, l))
        check_job(s, CONTAINER(l, mem_job, by_id), &t);
    for (size_t i = 0; i < s->n_types; i++)
        check_type(s->by_name[i], &t);
    check_totals(s, &t);
    if (!t.ok) {
        weir_report_free(t.report);
        return weir_fail(&op->err, WEIR_ENOMEM, "check: out of memory");
    }
    if (op->u.check.mend && t.report->n) {
        mend(s);
        t.report->mended = t.report->n;
    }
    op->u.check.report = t.report;
    return WEIR_OK;
}
