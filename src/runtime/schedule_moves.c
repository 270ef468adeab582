/* schedule_moves.c - schedules on their way between stores: import, park and release, and as JSON.
 *
 * A parked schedule has the next turn, so that a process which is firing it cannot move it on. The
 * token of the last turn shows what that process does: either the job was added, or no process can
 * add it any more. Both can be asked again by the next run of a migration. */
#include <string.h>

#include "core/firing.h"
#include "runtime/schedule_call.h"

static bool is_parked(const weir_schedule *s)
{
    return s->next_at >= WEIR_PARKED_AT;
}

/* ---- import ---- */

static bool import_given(schedule_call *c)
{
    weir_schedule *own = &c->given;
    c->existed = c->known && !is_parked(&c->k.s);
    if (c->existed)
        return weir__call_over(c, &(weir_error){ 0 });
    if (!own->turn)
        own->turn = 1;
    if (!own->created_at) {
        own->created_at = weir_now(c->q);
        weir__schedule_restart(own, &c->cron, own->created_at);
    }
    return weir__call_new_series(c, own) && weir__call_put(c, own);
}

static weir_code check_given(schedule_call *c, const weir_schedule *s, bool *existed,
                             weir_error *err)
{
    weir_code rc = weir__schedule_check(s, err);
    *c = (schedule_call){ .name = s->name, .given = *s, .then = import_given,
                          .existed_out = existed };
    return rc ? rc : weir__schedule_parse(&c->cron, s, err);
}

weir_code weir_schedule_import(weir_queue *q, const weir_schedule *s, bool *existed,
                               weir_error *err)
{
    schedule_call c;
    weir_code     rc = check_given(&c, s, existed, err);
    return rc ? rc : weir__call_steps(q, &c, weir__call_read, err);
}

weir_code weir_schedule_import_async(weir_queue *q, const weir_schedule *s, bool *existed,
                                     weir_future **f, weir_error *err)
{
    schedule_call c;
    weir_code     rc = check_given(&c, s, existed, err);
    if (!rc)
        return weir__call_steps_async(q, &c, weir__call_read, f, err);
    if (f)
        *f = NULL;
    return rc;
}

/* ---- park ---- */

/* The caller gets what was read, and what was found out about the last firing. */
static bool give_parked(schedule_call *c)
{
    weir__buf_clear(&c->record);
    weir__schedule_write(&c->record, &c->k.s);
    weir_schedule_row  row = { .name = c->k.s.name, .record = c->record.data,
                               .len = c->record.len };
    weir_schedule_rows rows = { .n = 1, .cap = 1, .row = &row };
    c->list = c->record.failed ? NULL : weir__schedules_make(&rows, false);
    if (!c->list)
        return weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    return weir__call_over(c, &(weir_error){ 0 });
}

/* It has fired: its job is noted, unless who fired it has done so. */
static bool found_job(schedule_call *c)
{
    weir_schedule *s = &c->k.s;
    int64_t        at = s->next_at - WEIR_PARKED_AT;
    weir_firing    done = { .at = at, .done_at = weir_now(c->q), .outcome = WEIR_FIRING_DONE };
    if (c->ticket.op.err.code)
        return weir__call_over(c, &c->ticket.op.err);
    done.job = c->added->id;
    if (!weir__schedule_has_noted(s, done))
        weir__schedule_note(s, done);
    s->next_at = WEIR_PARKED_AT + weir__schedule_after(s, &c->k.cron, at);
    return give_parked(c);
}

static weir_op op_add(schedule_call *c, weir_spec *spec)
{
    char       *key = weir__arena_alloc(&c->arena, WEIR_MAX_TOKEN + 1);
    weir_token *token = weir__arena_alloc(&c->arena, sizeof *token);
    if (!key || !token)
        return (weir_op){ 0 };
    *token = weir__schedule_token(&c->k.s, c->k.s.turn - 1, key);
    return (weir_op){ .kind = WEIR_OP_ADD, .u.add = { .specs = spec, .n = spec != NULL,
                                                      .out = c->added, .token = token } };
}

static bool was_claimed(schedule_call *c)
{
    weir_code  rc = c->ticket.op.err.code;
    weir_spec *spec = weir__arena_alloc(&c->arena, sizeof *spec);
    if (!rc)
        return give_parked(c);
    if (rc != WEIR_EINVAL)
        return weir__call_over(c, &c->ticket.op.err);
    if (!spec || weir__call_spec(c, c->k.s.next_at - WEIR_PARKED_AT, spec))
        return spec ? false : weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    weir_op op = op_add(c, spec);
    return op.u.add.token ? weir__call_go_on(c, op, found_job)
                          : weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
}

/* Has the last firing added its job? If not, it never will. */
static bool claim(schedule_call *c)
{
    c->added = weir__arena_alloc(&c->arena, sizeof *c->added);
    weir_op op = c->added ? op_add(c, NULL) : (weir_op){ 0 };
    return op.u.add.token ? weir__call_go_on(c, op, was_claimed)
                          : weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
}

/* It is parked, or somebody else has changed it: look again. */
static bool was_parked(schedule_call *c)
{
    weir_code rc = c->ticket.op.err.code;
    return rc && rc != WEIR_ESTALE ? weir__call_over(c, &c->ticket.op.err) : weir__call_read(c);
}

/* A server's firings carry tokens that are not ours. */
static bool fires_elsewhere(const schedule_call *c)
{
    int64_t due = weir__schedule_due(&c->k.s);
    return c->q->server_fires && due != INT64_MAX && due < weir_now(c->q) + WEIR_PARK_MS;
}

static bool park_it(schedule_call *c)
{
    weir_schedule *s = &c->k.s;
    if (!c->known)
        return weir__call_missing(c);
    if (is_parked(s))
        return c->q->server_fires ? give_parked(c) : claim(c);
    if (fires_elsewhere(c)) {
        weir_fail(&c->err, WEIR_EBUSY, "schedule %s: the server fires it within %d s; pause it, or "
                  "try again", s->name, WEIR_PARK_MS / 1000);
        return false;
    }
    s->next_at += WEIR_PARKED_AT;
    s->turn++;
    weir_op op = weir__schedule_op_put(s, c->k.version, weir__schedule_due(s), &c->record);
    if (c->record.failed)
        return weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    return weir__call_go_on(c, op, was_parked);
}

weir_code weir_schedule_park(weir_queue *q, const char *name, weir_schedules **out,
                             weir_error *err)
{
    schedule_call c = { .name = name, .then = park_it, .list_out = out };
    return weir__call_steps(q, &c, weir__call_read_named, err);
}

weir_code weir_schedule_park_async(weir_queue *q, const char *name, weir_schedules **out,
                                   weir_future **f, weir_error *err)
{
    schedule_call c = { .name = name, .then = park_it, .list_out = out };
    return weir__call_steps_async(q, &c, weir__call_read_named, f, err);
}

/* ---- unpark ---- */

static bool unpark_it(schedule_call *c)
{
    if (!c->known)
        return weir__call_missing(c);
    if (!is_parked(&c->k.s))
        return weir__call_over(c, &(weir_error){ 0 });
    c->k.s.next_at -= WEIR_PARKED_AT;
    return weir__call_put(c, &c->k.s);
}

weir_code weir_schedule_unpark(weir_queue *q, const char *name, weir_error *err)
{
    schedule_call c = { .name = name, .then = unpark_it };
    return weir__call_steps(q, &c, weir__call_read_named, err);
}

weir_code weir_schedule_unpark_async(weir_queue *q, const char *name, weir_future **f,
                                      weir_error *err)
{
    schedule_call c = { .name = name, .then = unpark_it };
    return weir__call_steps_async(q, &c, weir__call_read_named, f, err);
}

/* ---- as JSON ---- */

char *weir_schedule_json(const weir_schedule *s, size_t *len)
{
    weir_buf b = { 0 };
    weir__schedule_json(&b, s);
    weir__buf_char(&b, '}');
    return weir__buf_steal(&b, len);
}

weir_code weir_schedule_parse(const char *text, size_t len, weir_schedules **out, weir_error *err)
{
    weir_arena    arena = { 0 };
    weir_reader   in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_schedule s;
    *out = NULL;
    weir_code rc = weir__schedule_read(&in, text, len, &s);
    if (rc && err)
        *err = in.err;
    if (!rc)
        rc = weir__schedule_check(&s, err);
    weir__arena_free(&arena);
    if (rc)
        return rc;
    weir_schedule_row  row = { .record = text, .len = len };
    weir_schedule_rows rows = { .n = 1, .cap = 1, .row = &row };
    *out = weir__schedules_make(&rows, false);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "schedule: out of memory");
}
