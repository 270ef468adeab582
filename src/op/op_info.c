/* op_info.c - INFO: which store it is, and which process keeps it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/results.h"
#include "op/row.h"

static void clear(weir_op *op)
{
    op->u.info.info = NULL;
}

static void release(weir_op *op)
{
    free(op->u.info.info);
}

/* ---- as JSON ---- */

static const weir_field request[] = { FIELD_OP, { 0 } };

static void put(weir_buf *b, const char *name, const char *text)
{
    weir__put_text(b, name, text, strlen(text));
}

static void write_answer(weir_buf *b, const weir_op *op)
{
    const weir_info *info = op->u.info.info;
    put(b, ",\"store\":", info->store);
    put(b, ",\"place\":", info->place);
    put(b, ",\"engine\":", info->engine);
    put(b, ",\"weir\":", info->weir);
    put(b, ",\"durability\":", weir_durability_name(info->durability));
    weir__put_int(b, ",\"owner_pid\":", info->owner_pid);
    put(b, ",\"owner\":", info->owner);
    weir__put_int(b, ",\"peers\":", info->peers);
    weir__put_int(b, ",\"used\":", info->used_bytes);
    weir__put_int(b, ",\"limit\":", info->limit_bytes);
}

#define INFO(member) offsetof(op_answer, info.member)
static const weir_field answer[] = {
    FIELD_ERROR,
    WEIR_FIELD("store", weir__as_text, INFO(store)),
    WEIR_FIELD("place", weir__as_text, INFO(place)),
    WEIR_FIELD("engine", weir__as_text, INFO(engine)),
    WEIR_FIELD("weir", weir__as_text, INFO(weir)),
    WEIR_FIELD("durability", weir__as_text, ANSWER(durability)),
    WEIR_FIELD("owner_pid", weir__as_int, INFO(owner_pid), .min = -1, .max = INT64_MAX),
    WEIR_FIELD("owner", weir__as_text, INFO(owner)),
    WEIR_FIELD("peers", weir__as_int, INFO(peers), .min = 0, .max = UINT32_MAX),
    WEIR_FIELD("used", weir__as_int, INFO(used), .min = 0, .max = INT64_MAX),
    WEIR_FIELD("limit", weir__as_int, INFO(limit), .min = 0, .max = INT64_MAX),
    { 0 }
};
#undef INFO

#define COPY(member)                                                                              \
    snprintf(info->member, sizeof info->member, "%s", a->info.member ? a->info.member : "")
static weir_code read_answer(weir_reader *in, op_answer *a)
{
    if (!a->info.store)
        return weir__read_nonsense(in, "no store");
    weir_info *info = weir__info_create(a->info.store);
    if (!info)
        return weir__read_no_memory(in);
    COPY(place);
    COPY(engine);
    COPY(weir);
    COPY(owner);
    info->durability = weir__durability_read(a->durability);
    info->owner_pid = a->info.owner_pid;
    info->peers = (uint32_t)a->info.peers;
    info->used_bytes = a->info.used;
    info->limit_bytes = a->info.limit;
    a->op->u.info.info = info;
    return WEIR_OK;
}
#undef COPY

const weir_op_row weir__row_info = WEIR_OP_ROW(
    "info", WEIR_LANE_OTHER, WEIR_SCOPE_ANSWER, /* slow */ false, weir__role_read,
    /* writes */ weir__op_never, weir__op_no_steps, weir__op_no_action, weir__op_no_detail,
    weir__op_no_job, /* each */ false, weir__op_no_type, weir__op_no_data, weir__op_no_token,
    weir__repeat_always, weir__op_no_take, weir__op_no_jobs, weir__op_no_result,
    weir__op_no_cut, weir__op_no_check, weir__op_no_copy, clear, release, weir__op_small,
    weir__op_no_members, request, weir__op_read, write_answer, answer, read_answer);
