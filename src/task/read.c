/* read.c - the task that a job is, and a task as JSON. */
#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "task/inner.h"
#include "weir/data.h"

/* ---- states ---- */

static const char *const state_names[WEIR_TASK_STATE_COUNT] = {
    "any", "ready", "running", "completed", "failed", "cancelled", "timed out",
};

const char *weir_task_state_name(weir_task_state state)
{
    return (unsigned)state < WEIR_TASK_STATE_COUNT ? state_names[state] : "unknown";
}

bool weir_task_state_parse(const char *text, weir_task_state *out)
{
    for (int s = WEIR_TASK_READY; s < WEIR_TASK_STATE_COUNT; s++) {
        if (strcmp(text, state_names[s]) == 0 ||
            (s == WEIR_TASK_TIMED_OUT && strcmp(text, "timed_out") == 0)) {
            *out = (weir_task_state)s;
            return true;
        }
    }
    return false;
}

/* It has no time limit, or its handler said these words. */
static bool timed_out(const weir_job *j)
{
    return j->error && strcmp(j->error, WEIR__TTL_TEXT) == 0 && j->ttl_ms &&
           weir_value_int(j, TASK_FAILED, 0) != j->delivery;
}

static weir_task_state state_of(const weir_job *j)
{
    switch (j->state) {
    case WEIR_STATE_ACTIVE:    return WEIR_TASK_RUNNING;
    case WEIR_STATE_COMPLETE:  return WEIR_TASK_COMPLETED;
    case WEIR_STATE_CANCELLED: return WEIR_TASK_CANCELLED;
    case WEIR_STATE_FAILED:
        return timed_out(j) ? WEIR_TASK_TIMED_OUT : WEIR_TASK_FAILED;
    default:                   return WEIR_TASK_READY;
    }
}

/* ---- a job as a task ---- */

struct weir__task_room {
    weir_task   task;
    weir_job   *job;
    bool        borrowed;
    weir_arena  arena;
    const char *index;              /* read, since every member must be; not used */
};

void weir_task_free(weir_task *task)
{
    if (!task)
        return;
    struct weir__task_room *room = task->room;
    if (!room->borrowed)
        weir_job_free(room->job);
    weir__arena_free(&room->arena);
    free(room);
}

#define AT(member) offsetof(struct weir__task_room, member)
static const weir_field data_fields[] = {
    WEIR_FIELD("task", weir__as_text, AT(task.spec.id), .needed = true),
    WEIR_FIELD("classifier", weir__as_text, AT(task.spec.classifier), .needed = true),
    WEIR_FIELD("relative_id", weir__as_text, AT(task.spec.relative_id)),
    WEIR_FIELD("name", weir__as_text, AT(task.spec.name), .needed = true),
    WEIR_FIELD("attachment", weir__as_raw, AT(task.spec.attachment)),
    WEIR_FIELD("var1", weir__as_text, AT(task.spec.var1)),
    WEIR_FIELD("var2", weir__as_text, AT(task.spec.var2)),
    WEIR_FIELD("var3", weir__as_text, AT(task.spec.var3)),
    WEIR_FIELD("result_store", weir__as_text, AT(task.spec.result_store), .needed = true),
    WEIR_FIELD("version", weir__as_int, AT(task.spec.version)),
    WEIR_FIELD("schedule", weir__as_text, AT(task.spec.schedule)),
    WEIR_FIELD("zone", weir__as_text, AT(task.spec.zone)),
    WEIR_FIELD("index", weir__as_text, AT(index), .needed = true),
    { 0 }
};
#undef AT
_Static_assert(offsetof(weir_task_spec, attachment_len) ==
                   offsetof(weir_task_spec, attachment) + sizeof(char *), "weir__as_raw sets both");

typedef struct ended {
    const char     *said, *ip;
    weir_json_piece result;
} ended;

static const weir_field result_fields[] = {
    WEIR_FIELD(TASK_SAID, weir__as_text, offsetof(ended, said)),
    WEIR_FIELD("result", weir__as_raw, offsetof(ended, result)),
    WEIR_FIELD("ip", weir__as_text, offsetof(ended, ip), .needed = true),
    { 0 }
};

/* A result that no handler of this room made is the handler's own. */
static bool read_result(struct weir__task_room *room, weir_reader *in)
{
    weir_task *t = &room->task;
    weir_job  *j = room->job;
    ended      e = { 0 };
    if (!j->result)
        return true;
    weir_code rc = weir__read(in, result_fields, (weir_json_piece){ j->result, j->result_len }, &e);
    if (rc)
        e = (ended){ .result = { j->result, j->result_len } };
    t->result_state = e.said;
    t->ip = e.ip;
    t->result_len = e.result.len;
    t->result = NULL;
    if (!e.result.text)
        return rc != WEIR_ENOMEM;
    char *copy = weir__arena_alloc(&room->arena, e.result.len + 1);
    t->result = copy ? memcpy(copy, e.result.text, e.result.len) : NULL;
    return copy && rc != WEIR_ENOMEM;
}

/* Texts end with NUL, which a piece of the data does not. */
static const char *keep(weir_arena *arena, const char *text, size_t len)
{
    char *copy = weir__arena_alloc(arena, len + 1);
    return copy ? memcpy(copy, text, len) : NULL;
}

static bool fill(struct weir__task_room *room, weir_reader *in)
{
    weir_task  *t = &room->task;
    weir_job   *j = room->job;
    const char *at = strchr(j->type, '@');
    size_t      service = at ? (size_t)(at - j->type) : strlen(j->type);
    t->spec.service = keep(&room->arena, j->type, service);
    if (t->spec.attachment)
        t->spec.attachment = keep(&room->arena, t->spec.attachment, t->spec.attachment_len);
    t->spec.timeout_ms = j->ttl_ms;
    t->spec.run_at = j->promote_at ? j->promote_at : j->created_at;
    t->state = state_of(j);
    t->job = j->id;
    t->created_at = j->created_at;
    t->started_at = j->started_at;
    t->ended_at = t->state == WEIR_TASK_READY || t->state == WEIR_TASK_RUNNING ? 0
                  : j->finished_at ? j->finished_at : j->failed_at ? j->failed_at : j->updated_at;
    t->result_state = weir_value_text(j, TASK_SAID, NULL);
    if (j->worker)
        t->host = keep(&room->arena, j->worker, strcspn(j->worker, ":"));
    if (t->state == WEIR_TASK_FAILED || t->state == WEIR_TASK_TIMED_OUT)
        t->result_state = j->error;
    return t->spec.service && (t->state != WEIR_TASK_COMPLETED || read_result(room, in));
}

bool weir__task_of_job(weir_job *job, bool borrow, weir_task **out)
{
    struct weir__task_room *room = calloc(1, sizeof *room);
    *out = NULL;
    if (!room) {
        if (!borrow)
            weir_job_free(job);
        return false;
    }
    room->job = job;
    room->borrowed = borrow;
    room->task.room = room;
    weir_reader     in = { .alloc = weir__arena_alloc, .ctx = &room->arena };
    weir_json_piece data = { job->data, job->data_len };
    weir_code       rc = weir__read(&in, data_fields, data, room);
    bool            ok = rc ? rc != WEIR_ENOMEM : fill(room, &in);
    if (rc || !ok)
        weir_task_free(&room->task);
    else
        *out = &room->task;
    return ok;
}

/* ---- as JSON ---- */

static void add_text(weir_buf *b, const char *name, const char *text)
{
    weir__buf_printf(b, ",\"%s\":", name);
    weir__json_text_or_null(b, text);
}

static void add_raw(weir_buf *b, const char *name, const char *json, size_t len)
{
    weir__buf_printf(b, ",\"%s\":", name);
    if (json)
        weir__json_line(b, json, len);
    else
        weir__buf_str(b, "null");
}

static void add_int(weir_buf *b, const char *name, int64_t n)
{
    weir__buf_printf(b, ",\"%s\":", name);
    weir__buf_int(b, n);
}

static void add_moment(weir_buf *b, const char *name, int64_t at)
{
    if (at)
        add_int(b, name, at);
    else
        add_raw(b, name, NULL, 0);
}

char *weir_task_json(const weir_task *t, size_t *out_len)
{
    const weir_task_spec *s = &t->spec;
    weir_buf              b = { 0 };
    weir__buf_str(&b, "{\"id\":");
    weir__json_string(&b, s->id, strlen(s->id));
    add_text(&b, "relative_id", s->relative_id);
    add_text(&b, "classifier", s->classifier);
    add_text(&b, "name", s->name);
    add_text(&b, "service", s->service);
    add_text(&b, "state", weir_task_state_name(t->state));
    add_moment(&b, "run_at", s->run_at);
    add_int(&b, "timeout", s->timeout_ms);
    add_moment(&b, "created_at", t->created_at);
    add_moment(&b, "started_at", t->started_at);
    add_moment(&b, "ended_at", t->ended_at);
    add_text(&b, TASK_SAID, t->result_state);
    add_text(&b, "result_store", s->result_store);
    add_raw(&b, "result", t->result, t->result_len);
    add_text(&b, "host", t->host);
    add_text(&b, "ip", t->ip);
    add_raw(&b, "attachment", s->attachment, s->attachment_len);
    add_text(&b, "var1", s->var1);
    add_text(&b, "var2", s->var2);
    add_text(&b, "var3", s->var3);
    add_text(&b, "schedule", s->schedule);
    add_text(&b, "zone", s->zone);
    add_int(&b, "version", s->version);
    weir__buf_str(&b, ",\"job\":");
    weir__buf_uint(&b, t->job);
    weir__buf_str(&b, t->unfinished ? ",\"unfinished\":true}" : "}");
    return weir__buf_steal(&b, out_len);
}
