/* look.c - get, list, logs, stats and check as JSON: see wire.h. */
#include <string.h>

#include "core/job.h"
#include "core/results.h"
#include "wire/inner.h"

static weir_code no_memory(weir_reader *in)
{
    return weir_fail(&in->err, WEIR_ENOMEM, "out of memory");
}

/* ---- get ---- */

static void ask_get(weir_buf *b, const weir_op *op)
{
    weir__wire_id(b, ",\"id\":", op->u.get.id);
}

static const weir_field asked_get[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(get.id), .needed = true),
    { 0 }
};

static void answer_get(weir_buf *b, const weir_op *op)
{
    weir__buf_str(b, ",\"job\":");
    weir__job_json(b, op->u.get.job);
}

static const weir_field told_get[] = {
    FIELD_ERROR,
    WEIR_FIELD("job", weir__as_object, TOLD(job), .fields = weir__job_fields),
    { 0 }
};

static weir_code take_get(weir_reader *in, wire_told *t)
{
    if (!t->job.job.type)
        return weir__wire_nonsense(in, "no job");
    weir__wire_job_init(&t->job.job);
    t->op->u.get.job = weir__job_copy(&t->job.job);
    return t->op->u.get.job ? WEIR_OK : no_memory(in);
}

const wire_kind weir__wire_op_get = { ask_get, asked_get, NULL, answer_get, told_get, take_get };

/* ---- list ---- */

static void put_cursor(weir_buf *b, const char *name, const weir_cursor *c)
{
    weir__buf_str(b, name);
    weir__wire_int(b, "{\"rank\":", c->rank);
    weir__wire_id(b, ",\"id\":", c->id);
    weir__buf_char(b, '}');
}

static const weir_field cursor_fields[] = {
    WEIR_FIELD("rank", weir__as_int, offsetof(weir_cursor, rank), .needed = true),
    WEIR_FIELD("id", weir__wire_as_number, offsetof(weir_cursor, id), .needed = true),
    { 0 }
};

static void ask_list(weir_buf *b, const weir_op *op)
{
    const weir_query *q = &op->u.list.query;
    weir__wire_int(b, ",\"limit\":", (int64_t)q->limit);
    weir__wire_state(b, ",\"state\":", q->state);
    if (q->type)
        weir__wire_text(b, ",\"type\":", q->type, strlen(q->type));
    if (q->search)
        weir__wire_text(b, ",\"search\":", q->search, strlen(q->search));
    if (q->by_priority)
        weir__wire_int(b, ",\"priority\":", q->priority);
    weir__wire_flag(b, ",\"desc\":", q->descending);
    weir__wire_flag(b, ",\"ids\":", q->ids_only);
    if (q->after.rank || q->after.id)
        put_cursor(b, ",\"after\":", &q->after);
}

static const weir_field asked_list[] = {
    FIELD_OP,
    WEIR_FIELD("limit", weir__as_int, ASKED(limit), .min = 0, .max = WEIR_MAX_PAGE),
    WEIR_FIELD("state", weir__as_state, ASKED_OP(list.query.state)),
    WEIR_FIELD("type", weir__as_text, ASKED_OP(list.query.type)),
    WEIR_FIELD("search", weir__as_text, ASKED_OP(list.query.search)),
    WEIR_FIELD("priority", weir__as_priority, ASKED_OP(list.query.priority),
               .given = ASKED_OP(list.query.by_priority)),
    WEIR_FIELD("desc", weir__as_bool, ASKED_OP(list.query.descending)),
    WEIR_FIELD("ids", weir__as_bool, ASKED_OP(list.query.ids_only)),
    WEIR_FIELD("after", weir__as_object, ASKED_OP(list.query.after), .fields = cursor_fields),
    { 0 }
};

static weir_code read_list(weir_reader *in, wire_asked *a)
{
    (void)in;
    a->op.u.list.query.limit = (size_t)a->limit;
    return WEIR_OK;
}

static void answer_list(weir_buf *b, const weir_op *op)
{
    const weir_page *page = op->u.list.page;
    if (page->more)
        put_cursor(b, ",\"next\":", &page->next);
    if (!op->u.list.query.ids_only) {
        weir__wire_jobs(b, page->job, page->n);
        return;
    }
    weir__buf_str(b, ",\"ids\":[");
    for (size_t i = 0; i < page->n; i++)
        weir__wire_id(b, i ? "," : "", page->job[i]->id);
    weir__buf_char(b, ']');
}

static const weir_field told_list[] = {
    FIELD_ERROR,
    WEIR_FIELD("next", weir__as_object, TOLD(next), .fields = cursor_fields, .given = TOLD(more)),
    WEIR_FIELD("jobs", weir__wire_as_page, TOLD(page), .inside = true),
    WEIR_FIELD("ids", weir__as_ids, TOLD(ids), .max = WEIR_MAX_PAGE),
    { 0 }
};

/* Jobs of which nothing is known but the id. */
static weir_code make_page(weir_reader *in, wire_told *t)
{
    t->page = weir__page_create(t->ids.n);
    for (size_t i = 0; t->page && i < t->ids.n; i++) {
        weir_job *job = weir__job_copy(&(weir_job){ .id = t->ids.id[i] });
        if (!job)
            return no_memory(in);
        t->page->job[t->page->n++] = job;
    }
    return t->page ? WEIR_OK : no_memory(in);
}

static weir_code take_list(weir_reader *in, wire_told *t)
{
    if (!t->page && make_page(in, t))
        return in->err.code;
    t->page->more = t->more;
    t->page->next = t->next;
    t->op->u.list.page = t->page;
    t->page = NULL;
    return WEIR_OK;
}

const wire_kind weir__wire_op_list = { ask_list, asked_list, read_list, answer_list, told_list,
                                       take_list };

/* ---- logs ---- */

static void ask_logs(weir_buf *b, const weir_op *op)
{
    weir__wire_id(b, ",\"id\":", op->u.logs.id);
    weir__wire_id(b, ",\"after\":", op->u.logs.after);
    weir__wire_int(b, ",\"limit\":", (int64_t)op->u.logs.limit);
}

static const weir_field asked_logs[] = {
    FIELD_OP,
    WEIR_FIELD("id", weir__wire_as_number, ASKED_OP(logs.id), .needed = true),
    WEIR_FIELD("after", weir__wire_as_number, ASKED_OP(logs.after)),
    WEIR_FIELD("limit", weir__as_int, ASKED(limit), .min = 0, .max = WEIR_MAX_PAGE),
    { 0 }
};

static weir_code read_logs(weir_reader *in, wire_asked *a)
{
    (void)in;
    a->op.u.logs.limit = (size_t)a->limit;
    return WEIR_OK;
}

static void answer_logs(weir_buf *b, const weir_op *op)
{
    weir__wire_lines(b, ",\"lines\":", op->u.logs.lines->line, op->u.logs.lines->n);
}

static const weir_field told_logs[] = {
    FIELD_ERROR,
    WEIR_FIELD("lines", weir__as_list, TOLD(items), .fields = weir__line_fields,
               .size = sizeof(weir_line)),
    { 0 }
};

static weir_code take_logs(weir_reader *in, wire_told *t)
{
    const weir_line *from = t->items.item;
    weir_lines      *lines = weir__lines_create();
    bool             ok = lines != NULL;
    for (size_t i = 0; ok && i < t->items.n; i++)
        ok = weir__lines_add(lines, from[i].n, from[i].at, from[i].text, strlen(from[i].text));
    if (!ok) {
        weir_lines_release(lines);
        return no_memory(in);
    }
    t->op->u.logs.lines = lines;
    return WEIR_OK;
}

const wire_kind weir__wire_op_logs = { ask_logs, asked_logs, read_logs, answer_logs, told_logs,
                                       take_logs };

/* ---- stats ---- */

#define KEEP(member) offsetof(weir_keep, member)
static const weir_field keep_fields[] = {
    WEIR_FIELD("age", weir__as_ms, KEEP(age_ms)),
    WEIR_FIELD("count", weir__as_int, KEEP(count), .min = 0, .max = INT64_MAX),
    { 0 }
};
#undef KEEP
#define SETTING(member) offsetof(weir_settings, member)
const weir_field weir__wire_settings_fields[] = {
    WEIR_FIELD("keep_complete", weir__as_object, SETTING(keep_complete), .fields = keep_fields),
    WEIR_FIELD("keep_failed", weir__as_object, SETTING(keep_failed), .fields = keep_fields),
    WEIR_FIELD("search", weir__as_bool, SETTING(search)),
    { 0 }
};
#undef SETTING

static void put_keep(weir_buf *b, const char *name, const weir_keep *k)
{
    weir__buf_str(b, name);
    weir__wire_int(b, "{\"age\":", k->age_ms);
    weir__wire_int(b, ",\"count\":", k->count);
    weir__buf_char(b, '}');
}

void weir__wire_settings(weir_buf *b, const weir_settings *s)
{
    put_keep(b, ",\"settings\":{\"keep_complete\":", &s->keep_complete);
    put_keep(b, ",\"keep_failed\":", &s->keep_failed);
    weir__buf_str(b, s->search ? ",\"search\":true}" : ",\"search\":false}");
}

static void put_type(weir_buf *b, const weir_type_stats *t)
{
    weir__wire_text(b, "{\"type\":", t->type, strlen(t->type));
    weir__wire_flag(b, ",\"paused\":", t->paused);
    weir__wire_settings(b, &t->settings);
    weir__buf_str(b, ",\"counts\":{\"any\":");
    weir__wire_id(b, "", t->count[WEIR_ANY]);
    for (weir_state s = WEIR_INACTIVE; s < WEIR_STATES; s++)
        weir__buf_printf(b, ",\"%s\":%llu", weir_state_name(s), (unsigned long long)t->count[s]);
    weir__wire_id(b, "},\"completed\":", t->completed);
    weir__wire_id(b, ",\"failed\":", t->failed);
    weir__wire_int(b, ",\"work_ms\":", t->work_ms);
    weir__wire_int(b, ",\"last_taken_at\":", t->last_taken_at);
    weir__wire_int(b, ",\"oldest_at\":", t->oldest_at);
    weir__buf_char(b, '}');
}

#define COUNT(name, state) \
    WEIR_FIELD(name, weir__wire_as_number, (state) * sizeof(uint64_t))
static const weir_field count_fields[] = {
    COUNT("any", WEIR_ANY), COUNT("inactive", WEIR_INACTIVE), COUNT("delayed", WEIR_DELAYED),
    COUNT("active", WEIR_ACTIVE), COUNT("complete", WEIR_COMPLETE), COUNT("failed", WEIR_FAILED),
    COUNT("cancelled", WEIR_CANCELLED), { 0 }
};
#undef COUNT
#define TYPE(member) offsetof(weir_type_stats, member)
static const weir_field type_fields[] = {
    WEIR_FIELD("type", weir__as_text, TYPE(type), .needed = true),
    WEIR_FIELD("paused", weir__as_bool, TYPE(paused)),
    WEIR_FIELD("settings", weir__as_object, TYPE(settings), .fields = weir__wire_settings_fields),
    WEIR_FIELD("counts", weir__as_object, TYPE(count), .fields = count_fields),
    WEIR_FIELD("completed", weir__wire_as_number, TYPE(completed)),
    WEIR_FIELD("failed", weir__wire_as_number, TYPE(failed)),
    WEIR_FIELD("work_ms", weir__as_int, TYPE(work_ms)),
    WEIR_FIELD("last_taken_at", weir__as_int, TYPE(last_taken_at)),
    WEIR_FIELD("oldest_at", weir__as_int, TYPE(oldest_at)),
    { 0 }
};
#undef TYPE

static void ask_stats(weir_buf *b, const weir_op *op)
{
    (void)b;
    (void)op;
}

static const weir_field asked_stats[] = { FIELD_OP, { 0 } };

static void answer_stats(weir_buf *b, const weir_op *op)
{
    const weir_stats *s = op->u.stats.stats;
    weir__wire_id(b, ",\"last_id\":", s->last_id);
    weir__buf_str(b, ",\"all\":");
    put_type(b, &s->all);
    weir__buf_str(b, ",\"types\":[");
    for (size_t i = 0; i < s->n; i++) {
        weir__wire_next(b, i);
        put_type(b, &s->type[i]);
    }
    weir__buf_char(b, ']');
}

static const weir_field told_stats[] = {
    FIELD_ERROR,
    WEIR_FIELD("last_id", weir__wire_as_number, TOLD(last_id)),
    WEIR_FIELD("all", weir__as_object, TOLD(all), .fields = type_fields),
    WEIR_FIELD("types", weir__as_list, TOLD(items), .fields = type_fields,
               .size = sizeof(weir_type_stats)),
    { 0 }
};

static weir_code take_stats(weir_reader *in, wire_told *t)
{
    const weir_type_stats *from = t->items.item;
    weir_stats            *s = weir__stats_create();
    bool                   ok = s != NULL;
    for (size_t i = 0; ok && i < t->items.n; i++) {
        weir_type_stats *to = weir__stats_add(s, from[i].type);
        const char      *name = to ? to->type : NULL;
        ok = to != NULL;
        if (ok)
            *to = from[i];
        if (ok)
            to->type = name;
    }
    if (!ok) {
        weir_stats_release(s);
        return no_memory(in);
    }
    const char *name = s->all.type;
    s->all = t->all;
    s->all.type = name;
    s->last_id = t->last_id;
    t->op->u.stats.stats = s;
    return WEIR_OK;
}

const wire_kind weir__wire_op_stats = { ask_stats, asked_stats, NULL, answer_stats, told_stats,
                                        take_stats };

/* ---- check ---- */

static void ask_check(weir_buf *b, const weir_op *op)
{
    weir__wire_flag(b, ",\"mend\":", op->u.check.mend);
}

static const weir_field asked_check[] = {
    FIELD_OP,
    WEIR_FIELD("mend", weir__as_bool, ASKED_OP(check.mend)),
    { 0 }
};

static void answer_check(weir_buf *b, const weir_op *op)
{
    const weir_report *r = op->u.check.report;
    weir__wire_id(b, ",\"jobs\":", r->jobs);
    weir__wire_int(b, ",\"mended\":", (int64_t)r->mended);
    weir__buf_str(b, ",\"lines\":[");
    for (size_t i = 0; i < r->n; i++) {
        weir__wire_next(b, i);
        weir__json_string(b, r->line[i], strlen(r->line[i]));
    }
    weir__buf_char(b, ']');
}

static const weir_field told_check[] = {
    FIELD_ERROR,
    WEIR_FIELD("jobs", weir__wire_as_number, TOLD(count)),
    WEIR_FIELD("mended", weir__as_int, TOLD(mended), .min = 0, .max = INT64_MAX),
    WEIR_FIELD("lines", weir__as_texts, TOLD(texts)),
    { 0 }
};

static weir_code take_check(weir_reader *in, wire_told *t)
{
    weir_report *r = weir__report_create();
    bool         ok = r != NULL;
    for (size_t i = 0; ok && i < t->texts.n; i++)
        ok = weir__report_line(r, "%s", t->texts.text[i]);
    if (!ok) {
        weir_report_release(r);
        return no_memory(in);
    }
    r->jobs = t->count;
    r->mended = (size_t)t->mended;
    t->op->u.check.report = r;
    return WEIR_OK;
}

const wire_kind weir__wire_op_check = { ask_check, asked_check, NULL, answer_check, told_check,
                                        take_check };
