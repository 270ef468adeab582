/* op_stats.c - STATS: how many jobs there are of each type and state. */
#include <string.h>

#include "core/results.h"
#include "op/row.h"

static void clear(weir_op *op)
{
    op->u.stats.stats = NULL;
}

static void release(weir_op *op)
{
    weir_stats_free(op->u.stats.stats);
}

static bool cut(weir_op *op, weir_sees *sees, const void *caller)
{
    return weir__stats_cut(&op->u.stats.stats, sees, caller);
}

/* ---- as JSON ---- */

static void put_type(weir_buf *b, const weir_type_stats *t)
{
    weir__put_text(b, "{\"type\":", t->type, strlen(t->type));
    weir__put_flag(b, ",\"paused\":", t->paused);
    weir__put_settings(b, &t->settings);
    weir__buf_str(b, ",\"counts\":{\"any\":");
    weir__put_id(b, "", t->count[WEIR_STATE_ANY]);
    for (weir_state s = WEIR_STATE_INACTIVE; s < WEIR_STATE_COUNT; s++)
        weir__buf_printf(b, ",\"%s\":%llu", weir_state_name(s), (unsigned long long)t->count[s]);
    weir__put_id(b, "},\"completed\":", t->completed);
    weir__put_id(b, ",\"failed\":", t->failed);
    weir__put_int(b, ",\"work_ms\":", t->work_ms);
    weir__put_int(b, ",\"last_taken_at\":", t->last_taken_at);
    weir__put_int(b, ",\"oldest_at\":", t->oldest_at);
    weir__buf_char(b, '}');
}

#define COUNT(name, state) \
    WEIR_FIELD(name, weir__as_number, (state) * sizeof(uint64_t))
static const weir_field count_fields[] = {
    COUNT("any", WEIR_STATE_ANY), COUNT("inactive", WEIR_STATE_INACTIVE),
        COUNT("delayed", WEIR_STATE_DELAYED),
    COUNT("active", WEIR_STATE_ACTIVE), COUNT("complete", WEIR_STATE_COMPLETE),
        COUNT("failed", WEIR_STATE_FAILED),
    COUNT("cancelled", WEIR_STATE_CANCELLED), { 0 }
};
#undef COUNT
#define TYPE(member) offsetof(weir_type_stats, member)
static const weir_field type_fields[] = {
    WEIR_FIELD("type", weir__as_text, TYPE(type), .needed = true),
    WEIR_FIELD("paused", weir__as_bool, TYPE(paused)),
    WEIR_FIELD("settings", weir__as_object, TYPE(settings), .fields = weir__settings_fields),
    WEIR_FIELD("counts", weir__as_object, TYPE(count), .fields = count_fields),
    WEIR_FIELD("completed", weir__as_number, TYPE(completed)),
    WEIR_FIELD("failed", weir__as_number, TYPE(failed)),
    WEIR_FIELD("work_ms", weir__as_int, TYPE(work_ms)),
    WEIR_FIELD("last_taken_at", weir__as_int, TYPE(last_taken_at)),
    WEIR_FIELD("oldest_at", weir__as_int, TYPE(oldest_at)),
    { 0 }
};
#undef TYPE

static void write_request(weir_buf *b, const weir_op *op)
{
    weir__put_flag(b, ",\"probe\":", op->u.stats.probe);
}

static const weir_field request[] = {
    FIELD_OP,
    WEIR_FIELD("probe", weir__as_bool, REQUEST_OP(stats.probe)),
    { 0 }
};

static void write_answer(weir_buf *b, const weir_op *op)
{
    const weir_stats *s = op->u.stats.stats;
    weir__put_id(b, ",\"last_id\":", s->last_id);
    weir__buf_str(b, ",\"all\":");
    put_type(b, &s->all);
    weir__buf_str(b, ",\"types\":[");
    for (size_t i = 0; i < s->n; i++) {
        weir__put_next(b, i);
        put_type(b, &s->type[i]);
    }
    weir__buf_char(b, ']');
}

static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("last_id", weir__as_number, ANSWER(last_id)),
    WEIR_FIELD("all", weir__as_object, ANSWER(all), .fields = type_fields),
    WEIR_FIELD("types", weir__as_list, ANSWER(items), .fields = type_fields,
               .size = sizeof(weir_type_stats)),
    { 0 }
};

static weir_code read_answer(weir_reader *in, op_answer *a)
{
    const weir_type_stats *from = a->items.item;
    weir_stats            *s = weir__stats_create();
    bool                   ok = s != NULL;
    for (size_t i = 0; ok && i < a->items.n; i++) {
        weir_type_stats *to = weir__stats_add(s, from[i].type);
        const char      *name = to ? to->type : NULL;
        ok = to != NULL;
        if (ok)
            *to = from[i];
        if (ok)
            to->type = name;
    }
    if (!ok) {
        weir_stats_free(s);
        return weir__read_no_memory(in);
    }
    const char *name = s->all.type;
    s->all = a->all;
    s->all.type = name;
    s->last_id = a->last_id;
    a->op->u.stats.stats = s;
    return WEIR_OK;
}

const weir_op_row weir__row_stats = WEIR_OP_ROW(
    "stats", WEIR_LANE_OTHER, WEIR_SCOPE_ANSWER, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, weir__op_no_steps, weir__op_no_action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result, cut,
    weir__op_no_check, weir__op_no_copy, clear, release, weir__op_small, write_request,
    request, weir__op_read, write_answer, answer, read_answer);
