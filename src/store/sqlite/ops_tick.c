/* ops_tick.c - what time does to jobs: lost leases, ttl, deadlines, delays, retention; and to
 * tokens. */
#include "store/sqlite/sq.h"

#include <stdlib.h>
#include <string.h>

enum { DAMAGED_MS = 1000 };     /* until the next TICK, when a damaged row is in the way */

/* ---- active: lease or ttl over ---- */

weir_code weir__sq_lose(sq_store *s, uint64_t id, int64_t now, weir_state *state)
{
    weir_job      j;
    sq_type      *t;
    sqlite3_stmt *st;
    char          line[WEIR__LINE];
    weir_buf      past = { 0 };
    sq_rest       rest;
    if (!weir__sq_get(s, id, &j, &t, &st))
        return s->broken ? s->error.code : WEIR_OK;
    if (!weir__sq_sound(s, st, &j, &t, &rest)) {
        sqlite3_reset(st);
        weir__sq_note_damaged(s, id);
        weir_code rc = weir__sq_set_aside(s, now);
        if (weir__sq_is_damaged(s, id))
            weir__sq_deactivate(s, id);
        *state = WEIR_FAILED;
        return s->broken ? s->error.code : rc;
    }
    weir__job_lose(&j, now, line, &past);
    sqlite3_reset(st);
    weir__sq_deactivate(s, id);
    *state = j.state;
    bool   failed = j.state == WEIR_FAILED;
    size_t len = strlen(line);
    if (failed)
        rest.error = weir__sq_text_sum(line, len);
    weir_code rc = weir__sq_numbers(s, &j, t, WEIR_ACTIVE, &past, &rest);
    weir__buf_fini(&past);
    if (!rc && failed)
        rc = weir__sq_error(s, &j, line, len);
    if (!rc)
        rc = weir__sq_log(s, id, j.search, now, NULL, line, len);
    weir__sq_event(s, WEIR_EVENT_STALLED, &j, t, j.state, now, NULL, 0);
    if (failed)
        weir__sq_event(s, WEIR_EVENT_FAILED, &j, t, j.state, now,
                       weir__sq_hold_text(s, line, len), len);
    else
        weir__sq_event(s, WEIR_EVENT_ENQUEUE, &j, t, j.state, now, NULL, 0);
    return s->broken ? s->error.code : rc;
}

static weir_code lose(sq_store *s, uint64_t id, int64_t now)
{
    weir_state state;
    return weir__sq_lose(s, id, now, &state);
}

static weir_code exceed(sq_store *s, uint64_t id, int64_t now)
{
    sq_active *a = weir__map_get(&s->active, id);
    weir_job   j = a->job;
    sq_type   *t = a->type;
    sq_rest    rest = a->rest;
    weir_buf   past = { 0 };
    weir__sq_deactivate(s, id);
    sqlite3_stmt *st = weir__sq_past(s, &j);
    weir__job_exceed(&j, now, &past);
    sqlite3_reset(st);
    weir__sq_event(s, WEIR_EVENT_TTL_EXCEEDED, &j, t, j.state, now, NULL, 0);
    weir_code rc = weir__sq_failed(s, &j, t, sizeof WEIR__TTL_TEXT - 1, now, &past, &rest);
    weir__buf_fini(&past);
    return s->broken ? s->error.code : rc;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t end_of_lease(const sq_active *a)
{
    return a->job.lease_until;
}

static int64_t end_of_ttl(const sq_active *a)
{
    return a->ttl_until;
}

/* Those of the active whose time is over, by id; at most `limit`. */
static weir_code tick_active(sq_store *s, int64_t (*end)(const sq_active *),
                             weir_code (*one)(sq_store *, uint64_t, int64_t), weir_op *op)
{
    uint64_t id, *list = NULL;
    size_t   pos = 0, n = 0;
    void    *a;
    while (weir__map_next(&s->active, &pos, &id, &a))
        n += end(a) <= op->now_ms;
    if (!n)
        return WEIR_OK;
    list = malloc(n * sizeof *list);
    if (!list)
        return weir__sq_no_memory(s);
    pos = n = 0;
    while (weir__map_next(&s->active, &pos, &id, &a))
        if (end(a) <= op->now_ms)
            list[n++] = id;
    qsort(list, n, sizeof *list, by_number);
    weir_code rc = WEIR_OK;
    for (size_t i = 0; !rc && i < n && i < op->u.tick.limit; i++) {
        rc = one(s, list[i], op->now_ms);
        op->u.tick.changed++;
    }
    free(list);
    return rc;
}

static int64_t next_active(const sq_store *s)
{
    int64_t  at = INT64_MAX;
    size_t   pos = 0;
    uint64_t id;
    void    *value;
    while (weir__map_next(&s->active, &pos, &id, &value)) {
        const sq_active *a = value;
        if (a->job.lease_until < at)
            at = a->job.lease_until;
        if (a->ttl_until < at)
            at = a->ttl_until;
    }
    return at;
}

/* ---- waiting: deadline or promotion ---- */

/* `j` as it is from now on: past its deadline, or at its time. */
static weir_code came_due(sq_store *s, const weir_job *j, sq_type *t, weir_state old, int64_t now,
                          const weir_buf *past, sq_rest *rest)
{
    size_t len = sizeof WEIR__DEADLINE_TEXT - 1;
    if (j->state == WEIR_FAILED)
        rest->error = weir__sq_text_sum(WEIR__DEADLINE_TEXT, len);
    weir_code rc = weir__sq_numbers(s, j, t, old, past, rest);
    if (j->state == WEIR_FAILED) {
        if (!rc)
            rc = weir__sq_error(s, j, WEIR__DEADLINE_TEXT, len);
        if (!rc)
            rc = weir__sq_log(s, j->id, j->search, now, "error", WEIR__DEADLINE_TEXT, len);
        weir__sq_event(s, WEIR_EVENT_FAILED, j, t, j->state, now, WEIR__DEADLINE_TEXT, len);
        return rc;
    }
    weir__sq_event(s, WEIR_EVENT_PROMOTION, j, t, j->state, now, NULL, 0);
    weir__sq_event(s, WEIR_EVENT_ENQUEUE, j, t, j->state, now, NULL, 0);
    return rc;
}

/* The job that `st` is at; with it that is reset. */
static weir_code come_due(sq_store *s, sqlite3_stmt *st, int64_t now)
{
    weir_job  j;
    sq_type  *t;
    sq_rest   rest;
    weir_buf  past = { 0 };
    weir_code rc = WEIR_OK;
    if (!weir__sq_sound(s, st, &j, &t, &rest)) {
        weir__sq_note_damaged(s, (uint64_t)sqlite3_column_int64(st, SQ_C_id));
        sqlite3_reset(st);
        return s->broken ? s->error.code : weir__sq_set_aside(s, now);
    }
    if (j.state != WEIR_INACTIVE && j.state != WEIR_DELAYED)
        rc = weir__sq_damaged(s, "a job that does not wait is due; check mends that");
    weir_state old = rc ? WEIR_ANY : j.state;
    if (!rc && j.deadline_at && j.deadline_at <= now)
        weir__job_expire(&j, now, &past);
    else if (!rc)
        weir__job_promote(&j, now, &past);
    sqlite3_reset(st);
    if (!rc)
        rc = came_due(s, &j, t, old, now, &past, &rest);
    weir__buf_fini(&past);
    return rc;
}

static weir_code tick_waiting(sq_store *s, weir_op *op)
{
    int64_t passed_over = 0;
    for (size_t i = 0; i < op->u.tick.limit; i++) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_DUE);
        weir__sq_int(st, 1, op->now_ms);
        weir__sq_int(st, 2, passed_over);
        if (!weir__sq_row(s, st))
            break;
        uint64_t  id = (uint64_t)sqlite3_column_int64(st, SQ_C_id);
        weir_code rc = come_due(s, st, op->now_ms);
        if (rc)
            return rc;
        passed_over += weir__sq_is_damaged(s, id);
        op->u.tick.changed++;
    }
    return s->broken ? s->error.code : WEIR_OK;
}

int64_t weir__sq_next_waiting(sq_store *s)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_NEXT_DUE);
    int64_t       at = INT64_MAX;
    if (weir__sq_row(s, st)) {
        if (sqlite3_column_type(st, 0) != SQLITE_NULL)
            at = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    return at;
}

/* ---- finished: retention ---- */

typedef struct old_job {
    uint64_t id;
    bool     search;
} old_job;

/* When the oldest job of this type and state has to go; INT64_MAX: not, INT64_MIN: at once. */
static int64_t goes_at(sq_store *s, const sq_type *t, weir_state state, old_job *old)
{
    const weir_keep *keep = weir__sq_keep(s, t, state);
    if (!t->count[state] || (!keep->age_ms && !keep->count))
        return INT64_MAX;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_OLDEST);
    weir__sq_int(st, 1, t->id);
    weir__sq_int(st, 2, state);
    if (!weir__sq_row(s, st))
        return INT64_MAX;
    int64_t at = keep->age_ms ? sqlite3_column_int64(st, 1) + keep->age_ms : INT64_MAX;
    *old = (old_job){ (uint64_t)sqlite3_column_int64(st, 0), sqlite3_column_int(st, 2) != 0 };
    sqlite3_reset(st);
    return keep->count && t->count[state] > (uint64_t)keep->count ? INT64_MIN : at;
}

static weir_code drop_old(sq_store *s, sq_type *t, weir_state state, const old_job *old,
                          int64_t now)
{
    weir_job      j;
    sq_type      *same;
    sqlite3_stmt *st;
    if (!weir__sq_get(s, old->id, &j, &same, &st))
        return s->broken ? s->error.code : weir__sq_damaged(s, "an index names a job that is gone");
    sqlite3_reset(st);
    weir_code rc = weir__sq_forget(s, old->id, t, state, old->search);
    weir__sq_event(s, WEIR_EVENT_REMOVE, &j, t, WEIR_ANY, now, NULL, 0);
    return rc;
}

static weir_code tick_finished(sq_store *s, weir_op *op)
{
    int64_t now = op->now_ms, next = INT64_MAX;
    size_t  done = 0;
    if (s->keep_due > now)
        return WEIR_OK;
    for (size_t i = 0; i < s->types.n && !s->broken; i++) {
        sq_type *t = s->types.by_name[i];
        for (weir_state state = WEIR_COMPLETE; state <= WEIR_CANCELLED; state++) {
            int64_t at;
            old_job old = { 0 };
            while ((at = goes_at(s, t, state, &old)) <= now && done < op->u.tick.limit &&
                   !s->broken) {
                weir_code rc = drop_old(s, t, state, &old, now);
                if (rc)
                    return rc;
                done++;
            }
            if (at < next)
                next = at;
        }
    }
    s->keep_due = next;
    op->u.tick.changed += done;
    return s->broken ? s->error.code : WEIR_OK;
}

/* ---- all of it ---- */

weir_code weir__sq_op_tick(sq_store *s, weir_op *op)
{
    weir_op_tick *t = &op->u.tick;
    weir_code     rc = WEIR_OK;
    t->changed = 0;
    t->next_at = op->now_ms;
    if (s->active_due <= op->now_ms) {
        rc = tick_active(s, end_of_lease, lose, op);
        if (!rc)
            rc = tick_active(s, end_of_ttl, exceed, op);
        s->active_due = next_active(s);
    }
    if (!rc)
        rc = tick_waiting(s, op);
    if (!rc)
        rc = tick_finished(s, op);
    if (!rc)
        rc = weir__sq_tokens_tick(s, t->limit, op->now_ms);
    if (rc)
        return rc;
    const int64_t due[] = { s->active_due, s->keep_due, s->token_due, weir__sq_next_waiting(s) };
    t->next_at = INT64_MAX;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++)
        if (due[i] < t->next_at)
            t->next_at = due[i];
    if (s->damaged.n && t->next_at <= op->now_ms)       /* a row that cannot be changed stays due */
        t->next_at = op->now_ms + DAMAGED_MS;
    /* What the batch wished for before is part of this answer. */
    s->told_due = s->due = t->next_at;
    return s->broken ? s->error.code : WEIR_OK;
}
