/* schedule_calls.c - the calls of schedule.h, each twice: plain (waits) and async (a future). */
#include "runtime/schedule_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/fail.h"
#include "core/firing.h"
#include "core/job_fields.h"

/* ---- steps ---- */

bool weir__call_over(schedule_call *c, const weir_error *err)
{
    c->err = *err;
    return false;
}

bool weir__call_fail(schedule_call *c, weir_code code, const char *what)
{
    weir_fail(&c->err, code, "%s", what);
    return false;
}

bool weir__call_go_on(schedule_call *c, weir_op op, schedule_step *next)
{
    c->ticket.op = op;
    c->next = next;
    return !weir__ops_check(c->q, &c->ticket.op, &c->err);
}

static schedule_step got_schedule;

bool weir__call_read(schedule_call *c)
{
    return weir__call_go_on(c, (weir_op){ .kind = WEIR_OP_SCHEDULES,
                               .u.schedules = { .name = c->name, .limit = 1 } }, got_schedule);
}

/* Bytes of the job are in the record: a NUL behind them, so that they can be printed as texts. */
static void end_bytes(char *record, const weir_spec *job)
{
#define X(member, ...)                                                                            \
    if (job->member)                                                                              \
        record[job->member + job->member##_len - record] = 0;
    WEIR_SPEC_BYTES(X)
#undef X
}

/* Copy the row's record to `arena` and read it there. */
static bool load(const weir_schedule_row *row, weir_arena *arena, weir_kept *out)
{
    weir_schedule_row own = *row;
    char             *copy = weir__arena_alloc(arena, row->len + 1);
    if (!copy)
        return false;
    own.record = memcpy(copy, row->record, row->len);
    weir__schedule_load(&own, arena, out);
    end_bytes(copy, &out->s.job);
    return out->err.code != WEIR_ENOMEM;
}

static bool got_schedule(schedule_call *c)
{
    weir_schedule_rows *rows = c->ticket.op.u.schedules.rows;
    if (c->ticket.op.err.code)
        return weir__call_over(c, &c->ticket.op.err);
    weir__arena_free(&c->read);
    c->read = (weir_arena){ 0 };
    c->k = (weir_kept){ 0 };
    c->known = rows->n > 0;
    bool ok = !c->known || load(&rows->row[0], &c->read, &c->k);
    weir__rows_free(rows);
    if (!ok)
        return weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    return c->k.err.code ? weir__call_over(c, &c->k.err) : c->then(c);
}

bool weir__call_missing(schedule_call *c)
{
    weir_fail(&c->err, WEIR_ENOENT, "there is no schedule %s", c->name);
    return false;
}

/* Somebody else may have changed the schedule since it was read. */
static bool was_put(schedule_call *c)
{
    if (c->ticket.op.err.code == WEIR_ESTALE)
        return weir__call_read(c);
    return weir__call_over(c, &c->ticket.op.err);
}

bool weir__call_put(schedule_call *c, const weir_schedule *s)
{
    weir_op op = weir__schedule_op_put(s, c->k.version, weir__schedule_due(s), &c->record);
    if (c->record.failed)
        return weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    return weir__call_go_on(c, op, was_put);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Would it fire at the same times? */
static bool same_times(const weir_schedule *a, const weir_schedule *b)
{
    return same_text(a->when, b->when) && same_text(a->zone, b->zone) &&
           same_text(a->except, b->except) && a->day_or_weekday == b->day_or_weekday &&
           a->start_at == b->start_at && a->end_at == b->end_at && a->paused == b->paused;
}

static bool random_number(schedule_call *c, uint64_t *out)
{
    return getrandom(out, sizeof *out, 0) == sizeof *out ||
           weir__call_fail(c, WEIR_EIO, "schedule: the system gives no random numbers");
}

bool weir__call_new_series(schedule_call *c, weir_schedule *s)
{
    return random_number(c, &s->series);
}

static bool put_given(schedule_call *c)
{
    const weir_schedule *old = &c->k.s;
    weir_schedule       *own = &c->given;
    own->created_at = c->known ? old->created_at : weir_now(c->q);
    own->next_at = old->next_at;
    own->last_at = old->last_at;
    own->last_job = old->last_job;
    own->fired = old->fired;
    own->caught_up = 0;
    own->series = old->series;
    own->turn = old->turn;
    own->n_history = old->n_history;
    memcpy(own->history, old->history, sizeof own->history);
    if (!c->known && !weir__call_new_series(c, own))
        return false;
    if (!c->known || !same_times(own, old))
        weir__schedule_restart(own, &c->cron, weir_now(c->q));
    return weir__call_put(c, own);
}

static bool pause_it(schedule_call *c)
{
    weir_schedule *s = &c->k.s;
    if (!c->known)
        return weir__call_missing(c);
    if (s->paused && !c->paused)
        weir__schedule_restart(s, &c->k.cron, weir_now(c->q));
    s->paused = c->paused;
    return weir__call_put(c, s);
}

/* ---- firing by hand ---- */

static bool note_added(schedule_call *c)
{
    int64_t now = weir_now(c->q);
    if (!c->known)
        return weir__call_over(c, &(weir_error){ 0 });             /* it was removed meanwhile */
    for (size_t i = 0; i < c->n; i++)
        weir__schedule_note(&c->k.s, (weir_firing){ .at = c->at[i], .done_at = now,
                                                    .outcome = WEIR_FIRING_BY_HAND,
                                                    .job = c->added[i].id });
    return weir__call_put(c, &c->k.s);
}

static bool were_added(schedule_call *c)
{
    if (c->ticket.op.err.code == WEIR_EINVAL && c->token.key) {     /* the token is known */
        c->n = 0;
        return weir__call_over(c, &(weir_error){ 0 });
    }
    if (c->ticket.op.err.code)
        return weir__call_over(c, &c->ticket.op.err);
    c->then = note_added;
    return weir__call_read(c);
}

weir_code weir__call_spec(schedule_call *c, int64_t at, weir_spec *out)
{
    weir_buf  values = { 0 };
    weir_code rc = weir__schedule_spec(&c->k.s, at, &values, out, &c->err);
    if (!rc) {
        char *copy = weir__arena_alloc(&c->arena, values.len + 1);
        if (copy)
            out->values = memcpy(copy, values.data, values.len);
        else
            rc = weir_fail(&c->err, WEIR_ENOMEM, "schedule: out of memory");
    }
    weir__buf_fini(&values);
    return rc;
}

static bool add_jobs(schedule_call *c)
{
    weir_spec *specs = weir__arena_alloc(&c->arena, c->n * sizeof *specs);
    c->added = weir__arena_alloc(&c->arena, c->n * sizeof *c->added);
    if (!specs || !c->added)
        return weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    for (size_t i = 0; i < c->n; i++)
        if (weir__call_spec(c, c->at[i], &specs[i]))
            return false;
    return weir__call_go_on(c, (weir_op){ .kind = WEIR_OP_ADD,
                               .u.add = { .specs = specs, .n = c->n, .out = c->added,
                                          .token = c->token.key ? &c->token : NULL } },
                               were_added);
}

static bool fire_now(schedule_call *c)
{
    if (!c->known)
        return weir__call_missing(c);
    c->at = weir__arena_alloc(&c->arena, sizeof *c->at);
    if (!c->at)
        return weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    *c->at = weir_now(c->q);
    c->n = 1;
    return add_jobs(c);
}

/* The store identifies the span by its token, and the call that has filled it by the digest. */
static bool name_span(schedule_call *c)
{
    snprintf(c->key, sizeof c->key, "backfill %016llx %lld %lld",
             (unsigned long long)c->k.s.series, (long long)c->from_at, (long long)c->to_at);
    c->token = (weir_token){ .key = c->key, .number = 1 };
    return random_number(c, &c->token.digest);
}

static bool check_span(schedule_call *c)
{
    long long from = c->from_at, to = c->to_at;
    if (from < 0)
        weir__fail_field(&c->err, WEIR_EINVAL, "from", "%lld, must be a moment after 1970", from);
    else if (to <= from)
        weir__fail_field(&c->err, WEIR_EINVAL, "to", "%lld, must be after the begin of the span",
                         to);
    else if (to > weir_now(c->q))
        weir__fail_field(&c->err, WEIR_EINVAL, "to", "%lld, must be in the past; later firings are "
                         "still to come", to);
    else
        return true;
    return false;
}

static bool fire_span(schedule_call *c)
{
    enum { ROOM = WEIR_MAX_FIRINGS + 1 };
    const weir_kept *k = &c->k;
    if (!c->known)
        return weir__call_missing(c);
    if (!check_span(c))
        return false;
    c->at = weir__arena_alloc(&c->arena, ROOM * sizeof *c->at);
    if (!c->at)
        return weir__call_fail(c, WEIR_ENOMEM, "backfill: out of memory");
    int64_t at = weir__schedule_after(&k->s, &k->cron, c->from_at > 0 ? c->from_at - 1 : 0);
    for (; at && at < c->to_at && c->n < ROOM; at = weir__schedule_after(&k->s, &k->cron, at))
        c->at[c->n++] = at;
    if (c->n == ROOM) {
        weir_fail(&c->err, WEIR_ELIMIT, "backfill: more than %d firings in this span",
                  WEIR_MAX_FIRINGS);
        return false;
    }
    if (!c->n)
        return weir__call_over(c, &(weir_error){ 0 });
    return name_span(c) && add_jobs(c);
}

/* ---- reading ---- */

typedef struct list {
    weir_schedules head;            /* first: it is what the caller has */
    weir_arena     arena;
} list;

void weir_schedules_free(weir_schedules *s)
{
    list *l = (list *)s;
    if (!l)
        return;
    weir__arena_free(&l->arena);
    free(l);
}

weir_schedules *weir__schedules_make(const weir_schedule_rows *rows, bool full)
{
    list *l = calloc(1, sizeof *l);
    bool  ok = l && (l->head.schedule = weir__arena_alloc(&l->arena, (rows->n + 1) *
                                                          sizeof(weir_schedule)));
    for (size_t i = 0; ok && i < rows->n; i++) {
        weir_kept k;
        ok = load(&rows->row[i], &l->arena, &k);
        if (ok && k.s.name)
            l->head.schedule[l->head.n++] = k.s;
    }
    if (ok) {
        l->head.more = full;
        return &l->head;
    }
    weir_schedules_free(l ? &l->head : NULL);
    return NULL;
}

static bool got_list(schedule_call *c)
{
    weir_op_schedules *op = &c->ticket.op.u.schedules;
    if (c->ticket.op.err.code)
        return weir__call_over(c, &c->ticket.op.err);
    bool   full = !op->name && op->rows->n == op->limit;
    size_t n = op->rows->n;
    c->list = weir__schedules_make(op->rows, full);
    weir__rows_free(op->rows);
    if (!c->list)
        return weir__call_fail(c, WEIR_ENOMEM, "schedules: out of memory");
    return op->name && !n ? weir__call_missing(c) : weir__call_over(c, &(weir_error){ 0 });
}

/* ---- running the steps ---- */

/* Give the answers, or "nothing", to the caller. */
static void give(void *ctx, bool wanted)
{
    schedule_call *c = ctx;
    bool  ok = !c->err.code;
    if (!wanted)
        return;
    if (c->list_out && ok) {
        *c->list_out = c->list;
        c->list = NULL;
    }
    if (c->id_out)
        *c->id_out = ok ? c->added[0].id : 0;
    if (c->n_out)
        *c->n_out = ok ? c->n : 0;
    if (c->existed_out)
        *c->existed_out = ok && c->existed;
}

static void release(schedule_call *c)
{
    weir_schedules_free(c->list);
    weir__buf_fini(&c->record);
    weir__arena_free(&c->read);
    weir__arena_free(&c->arena);
}

static void nothing_yet(schedule_call *c)
{
    if (c->list_out)
        *c->list_out = NULL;
    if (c->id_out)
        *c->id_out = 0;
    if (c->n_out)
        *c->n_out = 0;
    if (c->existed_out)
        *c->existed_out = false;
}

weir_code weir__call_steps(weir_queue *q, schedule_call *c, schedule_step *first, weir_error *err)
{
    c->q = q;
    nothing_yet(c);
    for (bool more = first(c); more; more = c->next(c))
        weir__batcher_run(weir__queue_batcher(q, c->ticket.op.kind), &c->ticket);
    give(c, true);
    release(c);
    if (c->err.code && err)
        *err = c->err;
    return c->err.code;
}

static void end(schedule_call *c)
{
    weir_future *f = c->future;
    weir__future_ref(f);
    weir__future_end(f, &c->err, give, c);
    release(c);
    weir__future_unref(f);
}

/* On the callback thread. */
static void move_on(void *ctx);

static void answered(weir_ticket *t)
{
    schedule_call *c = (schedule_call *)((char *)t - offsetof(schedule_call, ticket));
    if (!weir__events_post(&c->q->events, &c->post, move_on, c))
        move_on(c);                     /* closed: better here than never */
}

static void submit(schedule_call *c)
{
    c->ticket.done = answered;
    if (weir__queue_submit(c->q, &c->ticket)) {
        c->err = c->ticket.op.err;
        end(c);
    }
}

static void move_on(void *ctx)
{
    schedule_call *c = ctx;
    if (c->next(c))
        submit(c);
    else
        end(c);
}

static const char *copy_text(weir_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char  *copy = weir__arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* The borrowed arguments of the call. */
static bool copy_all(schedule_call *c)
{
    weir_schedule_row row;
    weir_kept         k;
    if (c->name && !(c->name = copy_text(&c->arena, c->name)))
        return false;
    if (!c->given.name)
        return true;
    weir__schedule_write(&c->record, &c->given);
    row = (weir_schedule_row){ .record = c->record.data, .len = c->record.len };
    if (c->record.failed || !load(&row, &c->arena, &k))
        return false;
    c->given = k.s;
    return true;
}

/* Refused at once if the first step fails. */
weir_code weir__call_steps_async(weir_queue *q, schedule_call *what, schedule_step *first,
                                 weir_future **out, weir_error *err)
{
    weir_future *f;
    if (out)
        *out = NULL;
    nothing_yet(what);
    weir_code rc = weir__future_create(q, &f, sizeof(schedule_call), NULL, err);
    if (rc)
        return rc;
    schedule_call *c = weir__future_bytes(f);
    *c = *what;
    c->q = q;
    c->future = f;
    if (!copy_all(c))
        weir__call_fail(c, WEIR_ENOMEM, "schedule: out of memory");
    else if (first(c)) {
        if (out)
            *out = f;
        submit(c);
        if (!out)
            weir_future_free(f);
        return WEIR_OK;
    }
    rc = c->err.code;
    if (err)
        *err = c->err;
    release(c);
    weir__future_unref(f);
    weir__future_unref(f);
    return rc;
}

/* ---- the calls ---- */

/* Schedules of weir's own are not changed, and do not fire. */
static weir_code check_not_own(const char *name, weir_error *err)
{
    return !weir__schedule_is_own(name) ? WEIR_OK
           : weir__fail_field(err, WEIR_EINVAL, "name", "names that begin with \"%s\" are weir's "
                              "own; choose another", WEIR_OWN_SCHEDULE);
}

static weir_code check_given(schedule_call *c, const weir_schedule *s, weir_error *err)
{
    weir_code rc = weir__schedule_check(s, err);
    if (!rc)
        rc = check_not_own(s->name, err);
    *c = (schedule_call){ .name = s->name, .given = *s, .then = put_given };
    return rc ? rc : weir__schedule_parse(&c->cron, s, err);
}

weir_code weir_schedule_put(weir_queue *q, const weir_schedule *s, weir_error *err)
{
    schedule_call      c;
    weir_code rc = check_given(&c, s, err);
    return rc ? rc : weir__call_steps(q, &c, weir__call_read, err);
}

weir_code weir_schedule_put_async(weir_queue *q, const weir_schedule *s, weir_future **f,
                                  weir_error *err)
{
    schedule_call      c;
    weir_code rc = check_given(&c, s, err);
    if (!rc)
        return weir__call_steps_async(q, &c, weir__call_read, f, err);
    if (f)
        *f = NULL;
    return rc;
}

static weir_op op_remove(const char *name)
{
    return (weir_op){ .kind = WEIR_OP_SCHEDULE,
                      .u.schedule = { .name = name, .due_at = INT64_MAX,
                                      .version = WEIR_ANY_VERSION } };
}

weir_code weir_schedule_remove(weir_queue *q, const char *name, weir_error *err)
{
    weir_op op = op_remove(name);
    return weir__call(q, &op, NULL, err);
}

weir_code weir_schedule_remove_async(weir_queue *q, const char *name, weir_future **f,
                                     weir_error *err)
{
    weir_op op = op_remove(name);
    return weir__call_async(q, &op, NULL, f, err);
}

/* `name` may be NULL, which the check of the first operation must not take for "all". */
bool weir__call_read_named(schedule_call *c)
{
    return !weir__schedule_name_check(c->name, &c->err) && weir__call_read(c);
}

/* A schedule that the caller may change. */
static bool read_to_change(schedule_call *c)
{
    return !weir__schedule_name_check(c->name, &c->err) && !check_not_own(c->name, &c->err) &&
           weir__call_read(c);
}

weir_code weir_schedule_pause(weir_queue *q, const char *name, bool paused, weir_error *err)
{
    schedule_call c = { .name = name, .then = pause_it, .paused = paused };
    return weir__call_steps(q, &c, read_to_change, err);
}

weir_code weir_schedule_pause_async(weir_queue *q, const char *name, bool paused, weir_future **f,
                                    weir_error *err)
{
    schedule_call c = { .name = name, .then = pause_it, .paused = paused };
    return weir__call_steps_async(q, &c, read_to_change, f, err);
}

weir_code weir_schedule_fire(weir_queue *q, const char *name, uint64_t *id, weir_error *err)
{
    schedule_call c = { .name = name, .then = fire_now, .id_out = id };
    return weir__call_steps(q, &c, read_to_change, err);
}

weir_code weir_schedule_fire_async(weir_queue *q, const char *name, uint64_t *id, weir_future **f,
                                   weir_error *err)
{
    schedule_call c = { .name = name, .then = fire_now, .id_out = id };
    return weir__call_steps_async(q, &c, read_to_change, f, err);
}

weir_code weir_schedule_backfill(weir_queue *q, const char *name, int64_t from_at, int64_t to_at,
                                 size_t *n, weir_error *err)
{
    schedule_call c = { .name = name, .then = fire_span, .from_at = from_at, .to_at = to_at,
                        .n_out = n };
    return weir__call_steps(q, &c, read_to_change, err);
}

weir_code weir_schedule_backfill_async(weir_queue *q, const char *name, int64_t from_at,
                                       int64_t to_at, size_t *n, weir_future **f, weir_error *err)
{
    schedule_call c = { .name = name, .then = fire_span, .from_at = from_at, .to_at = to_at,
                        .n_out = n };
    return weir__call_steps_async(q, &c, read_to_change, f, err);
}

static bool read_page(schedule_call *c)
{
    return weir__call_go_on(c, (weir_op){ .kind = WEIR_OP_SCHEDULES,
                               .u.schedules = { .after = c->name, .limit = c->n } }, got_list);
}

static bool read_one(schedule_call *c)
{
    if (weir__schedule_name_check(c->name, &c->err))
        return false;
    return weir__call_go_on(c, (weir_op){ .kind = WEIR_OP_SCHEDULES,
                               .u.schedules = { .name = c->name, .limit = 1 } }, got_list);
}

weir_code weir_schedules_list(weir_queue *q, const char *after, size_t limit,
                              weir_schedules **out, weir_error *err)
{
    schedule_call c = { .name = after, .n = limit ? limit : WEIR_MAX_PAGE, .list_out = out };
    return weir__call_steps(q, &c, read_page, err);
}

weir_code weir_schedules_list_async(weir_queue *q, const char *after, size_t limit,
                                    weir_schedules **out, weir_future **f, weir_error *err)
{
    schedule_call c = { .name = after, .n = limit ? limit : WEIR_MAX_PAGE, .list_out = out };
    return weir__call_steps_async(q, &c, read_page, f, err);
}

weir_code weir_schedule_get(weir_queue *q, const char *name, weir_schedules **out, weir_error *err)
{
    schedule_call c = { .name = name, .list_out = out };
    return weir__call_steps(q, &c, read_one, err);
}

weir_code weir_schedule_get_async(weir_queue *q, const char *name, weir_schedules **out,
                                  weir_future **f, weir_error *err)
{
    schedule_call c = { .name = name, .list_out = out };
    return weir__call_steps_async(q, &c, read_one, f, err);
}
