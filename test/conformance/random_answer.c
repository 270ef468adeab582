/* random_answer.c - all that can be observed of an operation, as text. What stores may differ in
 * (durability, next_at, cursors) is left out. */
#include "conformance/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/job_fields.h"

void attempt_init(attempt *a, const plan *p, const paging *pages)
{
    memset(a, 0, sizeof *a);
    a->op = p->op;
    memcpy(a->leases, p->leases, sizeof a->leases);
    switch (a->op.kind) {
    case WEIR_OP_ADD:
        a->op.u.add.out = a->added;
        break;
    case WEIR_OP_TAKE:
        a->op.u.take.jobs = a->jobs;
        break;
    case WEIR_OP_FINISH:
        a->op.u.finish.next.jobs = a->jobs;
        break;
    case WEIR_OP_RENEW:
        a->op.u.renew.items = a->leases;
        break;
    case WEIR_OP_IMPORT:
        a->op.u.import.out = a->imported;
        break;
    case WEIR_OP_LIST:
        if (p->next_page && pages->more)
            a->op.u.list.query = pages->query;
        break;
    default:
        break;
    }
}

static const char *text(const char *s)
{
    return s ? s : "-";
}

static void say_bytes(weir_buf *out, const char *name, const char *bytes, size_t len)
{
    weir__buf_printf(out, " %s %zu:", name, len);
    if (bytes)
        weir__buf_add(out, bytes, len);
    else
        weir__buf_str(out, "-");
    if (bytes && bytes[len] != '\0')
        weir__buf_str(out, "(no NUL)");
}

/* Moments count from the start. at_moment is not kept by every store. */
static void say_number(weir_buf *out, const char *name, const char *kind, int64_t n)
{
    if (!strcmp(kind, "MOMENT"))
        n = n ? n - FIXTURE_START : -1;
    if (strcmp(name, "at_moment") != 0)
        weir__buf_printf(out, " %s %" PRId64, name, n);
}

static void say_job(weir_buf *out, const weir_job *j)
{
    weir__buf_printf(out, "\n    job %s%s", weir_state_name(j->state), j->taken ? " TAKEN" : "");
#define NUMBER(member, name, kind, ...) say_number(out, #name, #kind, (int64_t)j->member);
#define TEXT(member, ...)               weir__buf_printf(out, " " #member " %s", text(j->member));
#define BYTES(member, ...)              say_bytes(out, #member, j->member, j->member##_len);
    WEIR_JOB_NUMBERS(NUMBER)
    WEIR_JOB_TEXTS(TEXT)
    WEIR_JOB_BYTES(BYTES)
#undef NUMBER
#undef TEXT
#undef BYTES
}

static void say_taken(weir_buf *out, const weir_op_take *t)
{
    weir__buf_printf(out, " took %zu%s", t->n_jobs, t->suspect_waits ? ", a suspect waits" : "");
    for (size_t i = 0; i < t->n_jobs; i++)
        say_job(out, t->jobs[i]);
}

static void say_page(weir_buf *out, const weir_page *page)
{
    weir__buf_printf(out, " %zu jobs%s", page->n, page->more ? " and more" : "");
    for (size_t i = 0; i < page->n; i++)
        say_job(out, page->job[i]);
}

static void say_type(weir_buf *out, const weir_type_stats *t)
{
    weir__buf_printf(out, "\n    %s%s keep %" PRId64 ":%" PRId64 " %" PRId64 ":%" PRId64 "%s",
                     t->type, t->paused ? " paused" : "", t->settings.keep_complete.age_ms,
                     t->settings.keep_complete.count, t->settings.keep_failed.age_ms,
                     t->settings.keep_failed.count, t->settings.search ? " search" : "");
    for (int s = 0; s < WEIR_STATE_COUNT; s++)
        weir__buf_printf(out, " %" PRIu64, t->count[s]);
    weir__buf_printf(out, " completed %" PRIu64 " failed %" PRIu64 " work %" PRId64, t->completed,
                     t->failed, t->work_ms);
    weir__buf_printf(out, " taken %" PRId64 " oldest %" PRId64, t->last_taken_at, t->oldest_at);
}

static void say_stats(weir_buf *out, const weir_stats *s)
{
    weir__buf_printf(out, " last id %" PRIu64, s->last_id);
    say_type(out, &s->all);
    for (size_t i = 0; i < s->n; i++)
        say_type(out, &s->type[i]);
}

static void say_outputs(const attempt *a, weir_buf *out)
{
    const weir_op *op = &a->op;
    switch (op->kind) {
    case WEIR_OP_ADD:
        for (size_t i = 0; i < op->u.add.n; i++)
            weir__buf_printf(out, " %" PRIu64 " %s%s", a->added[i].id,
                             weir_state_name(a->added[i].state),
                             a->added[i].existed ? " existed" : "");
        break;
    case WEIR_OP_TAKE:
        say_taken(out, &op->u.take);
        break;
    case WEIR_OP_FINISH:
        weir__buf_printf(out, " %s", weir_state_name(op->u.finish.state));
        if (op->u.finish.next.n)
            say_taken(out, &op->u.finish.next);
        break;
    case WEIR_OP_RENEW:
        for (size_t i = 0; i < op->u.renew.n; i++)
            weir__buf_printf(out, " %s", weir_code_name(a->leases[i].code));
        break;
    case WEIR_OP_TICK:
        weir__buf_printf(out, " changed %zu%s", op->u.tick.changed,
                         op->u.tick.schedules_due ? " schedules" : "");
        break;
    case WEIR_OP_SCHEDULE:
        weir__buf_printf(out, " version %" PRIu64, op->u.schedule.new_version);
        break;
    case WEIR_OP_SCHEDULES:
        for (size_t i = 0; i < op->u.schedules.rows->n; i++)
            weir__buf_printf(out, " %s/%" PRIu64 "/%" PRId64 "/%s",
                             op->u.schedules.rows->row[i].name,
                             op->u.schedules.rows->row[i].version,
                             op->u.schedules.rows->row[i].due_at,
                             op->u.schedules.rows->row[i].record);
        break;
    case WEIR_OP_TREND_GET:
        for (size_t i = 0; i < op->u.trend_get.rows->n; i++) {
            const weir_trend_row *row = &op->u.trend_get.rows->row[i];
            weir__buf_printf(out, " %d/%" PRId64 "/%s \"%s\"", row->step, row->slot, row->type,
                             row->record);
        }
        break;
    case WEIR_OP_UPDATE:
        weir__buf_printf(out, " %s to %s", weir_state_name(op->u.update.old_state),
                         weir_state_name(op->u.update.new_state));
        break;
    case WEIR_OP_IMPORT:
        for (size_t i = 0; i < op->u.import.n; i++)
            weir__buf_printf(out, " %" PRIu64 " %s%s%s %s %s;", a->imported[i].id,
                             weir_state_name(a->imported[i].state),
                             a->imported[i].existed ? " existed" : "",
                             a->imported[i].id_taken ? " taken" : "",
                             weir_code_name(a->imported[i].err.code), a->imported[i].err.msg);
        break;
    case WEIR_OP_GET:
        say_job(out, op->u.get.job);
        break;
    case WEIR_OP_LIST:
        say_page(out, op->u.list.page);
        break;
    case WEIR_OP_LOGS:
        for (size_t i = 0; i < op->u.logs.lines->n; i++)
            weir__buf_printf(out, "\n    %" PRIu64 " %" PRId64 " %s", op->u.logs.lines->line[i].n,
                             op->u.logs.lines->line[i].at - FIXTURE_START,
                             op->u.logs.lines->line[i].text);
        break;
    case WEIR_OP_STATS:
        say_stats(out, op->u.stats.stats);
        break;
    case WEIR_OP_CHECK:
        weir__buf_printf(out, " %" PRIu64 " jobs", op->u.check.report->jobs);
        for (size_t i = 0; i < op->u.check.report->n; i++)
            weir__buf_printf(out, "\n    WRONG: %s", op->u.check.report->line[i]);
        break;
    default:
        break;
    }
}

void attempt_answer(const attempt *a, weir_buf *out)
{
    weir__buf_printf(out, "%s", weir_code_name(a->op.err.code));
    if (a->op.err.code)
        weir__buf_printf(out, " %s%s", a->refused ? "(refused) " : "", a->op.err.msg);
    else
        say_outputs(a, out);
}

/* ---- what to remember ---- */

static void learn_taken(model *m, const weir_op_take *t)
{
    for (size_t i = 0; i < t->n_jobs; i++) {
        size_t at = m->n_held < MAX_HELD ? m->n_held++ : t->jobs[i]->id % MAX_HELD;
        m->held[at].id = t->jobs[i]->id;
        m->held[at].delivery = t->jobs[i]->delivery;
    }
}

static void forget(model *m, uint64_t id, uint32_t delivery)
{
    for (size_t i = 0; i < m->n_held; i++) {
        if (m->held[i].id == id && m->held[i].delivery == delivery)
            m->held[i--] = m->held[--m->n_held];
    }
}

static void learn_imported(model *m, const weir_imported *o, const weir_job *j)
{
    if (o->err.code || o->existed)
        return;
    if (o->id > m->last_id)
        m->last_id = o->id;
    size_t at = m->n_moved++ % MAX_MOVED;
    m->moved[at].id = o->id;
    m->moved[at].type = j->type;
    m->moved[at].created_at = j->created_at;
}

void attempt_learn(const attempt *a, model *m)
{
    const weir_op *op = &a->op;
    if (op->kind == WEIR_OP_FINISH && !a->refused)      /* ended, or over already */
        forget(m, op->u.finish.id, op->u.finish.delivery);
    if (op->err.code)
        return;
    if (op->kind == WEIR_OP_TAKE)
        learn_taken(m, &op->u.take);
    if (op->kind == WEIR_OP_FINISH && op->u.finish.next.n)
        learn_taken(m, &op->u.finish.next);
    for (size_t i = 0; op->kind == WEIR_OP_ADD && i < op->u.add.n; i++) {
        if (a->added[i].id > m->last_id)
            m->last_id = a->added[i].id;
    }
    for (size_t i = 0; op->kind == WEIR_OP_IMPORT && i < op->u.import.n; i++)
        learn_imported(m, &a->imported[i], op->u.import.jobs[i].job);
}

void attempt_page(const attempt *a, paging *pages)
{
    if (a->op.kind != WEIR_OP_LIST || a->op.err.code)
        return;
    pages->more = a->op.u.list.page->more;
    pages->query = a->op.u.list.query;
    pages->query.after = a->op.u.list.page->next;
}

void attempt_free(attempt *a)
{
    weir_op *op = &a->op;
    if (op->err.code)
        return;
    if (op->kind == WEIR_OP_TAKE) {
        for (size_t i = 0; i < op->u.take.n_jobs; i++)
            weir_job_free(a->jobs[i]);
    } else if (op->kind == WEIR_OP_FINISH && op->u.finish.next.n) {
        for (size_t i = 0; i < op->u.finish.next.n_jobs; i++)
            weir_job_free(a->jobs[i]);
    } else if (op->kind == WEIR_OP_GET) {
        weir_job_free(op->u.get.job);
    } else if (op->kind == WEIR_OP_LIST) {
        weir_page_free(op->u.list.page);
    } else if (op->kind == WEIR_OP_SCHEDULES) {
        weir__rows_free(op->u.schedules.rows);
    } else if (op->kind == WEIR_OP_TREND_GET) {
        weir__trend_rows_free(op->u.trend_get.rows);
    } else if (op->kind == WEIR_OP_LOGS) {
        weir_lines_free(op->u.logs.lines);
    } else if (op->kind == WEIR_OP_STATS) {
        weir_stats_free(op->u.stats.stats);
    } else if (op->kind == WEIR_OP_INFO) {
        free(op->u.info.info);
    } else if (op->kind == WEIR_OP_CHECK) {
        weir_report_free(op->u.check.report);
    }
}
