/* batch.c - batches: one transaction, its events after the commit, and what happens when SQLite
 * fails in the middle.
 *
 * Then everything is rolled back and the memory is read anew from the file. The operations of a
 * batch are then run one by one, each in a transaction of its own, so that each gets its own
 * answer. On a full disk reads still work, and so do operations that free space. */
#include "store/sqlite/share.h"

#include <stdlib.h>
#include <string.h>

static weir_code (*const run_one[WEIR_OP_COUNT])(sq_store *, weir_op *) = {
#define X(kind, member) [WEIR_OP_##kind] = weir__sq_op_##member,
    WEIR_OPS(X)
#undef X
};

/* ---- events ---- */

/* The transaction is committed: emit its events. */
static void publish(sq_store *s)
{
    int64_t due_at;
    if (s->out.n) {
        s->env.emit(s->env.ctx, s->out.events, s->out.n);
        weir__sq_serve_events(s->server, s->out.events, s->out.n);
    }
    weir__outbox_clear(&s->out);
    if (weir__agenda_announce(&s->agenda, &due_at))
        s->env.due(s->env.ctx, due_at);
}

/* ---- room on the disk ----
 *
 * When a write has failed on a full disk, a smaller one may still fit into what is left. So the
 * store counts as full until a write of about the same size is committed: a real one, or a probe's,
 * which leaves nothing behind. */

enum {
    FULL_MAX = 1024 * 1024,         /* bytes; a larger write that failed counts as one of these */
    FULL_SLACK = 32 * 1024          /* pages that change beside the data: indexes, counters */
};

/* About how many bytes n operations write. */
static size_t bytes_of(weir_op *const *ops, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += weir__op_row(ops[i])->size(ops[i]);
    return bytes < FULL_MAX ? bytes : FULL_MAX;
}

weir_code weir__sq_try_room(sq_store *s)
{
    if (!s->full_bytes) {
        s->save_id = true;
        return WEIR_OK;
    }
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_BALLAST);
    weir__sq_int(st, 1, (int64_t)s->full_bytes + FULL_SLACK);
    s->ballast = true;
    return weir__sq_do(s, st);
}

static weir_code drop_ballast(sq_store *s)
{
    s->ballast = false;
    return weir__sq_do(s, weir__sq_stmt(s, SQ_BALLAST_DROP));
}

static void note_commit(sq_store *s, weir_op *const *ops, size_t n)
{
    if (!weir__sq_wrote(s))             /* an empty commit proves nothing */
        return;
    s->trouble.code = WEIR_OK;
    s->wrote_ms = weir__coarse_ms();
    if (s->full_bytes && (s->ballast || bytes_of(ops, n) >= s->full_bytes))
        s->full_bytes = 0;
}

/* Several operations are tried again, each alone: then its own size is noted. */
static void note_failure(sq_store *s, weir_op *const *ops, size_t n)
{
    size_t bytes = s->error.code == WEIR_EFULL && n == 1 ? bytes_of(ops, n) : 0;
    s->trouble = s->error;
    if (bytes > s->full_bytes)
        s->full_bytes = bytes;
}

/* ---- transactions ---- */

typedef enum need { NOTHING, READS, WRITES } need;

static need need_of(const sq_store *s, const weir_op *op)
{
    if (op->kind == WEIR_OP_RENEW && !s->env.keep_taken)    /* leases are in memory */
        return NOTHING;
    if (op->kind == WEIR_OP_STATS)
        return op->u.stats.probe && !s->env.read_only ? WRITES : READS;
    if (op->kind == WEIR_OP_CHECK)
        return (op->u.check.mend || s->trouble.code || s->full_bytes) && !s->env.read_only &&
                       !s->file.gone
                   ? WRITES : READS;
    return weir__op_writes(op) ? WRITES : READS;
}

static weir_code read_last_id(sq_store *s)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LAST_ID);
    if (weir__sq_row(s, st)) {
        s->last_id = (uint64_t)sqlite3_column_int64(st, 0);
        s->saved_id = (uint64_t)sqlite3_column_int64(st, 1);
        sqlite3_reset(st);
    }
    s->save_id = false;
    return s->broken ? s->error.code : WEIR_OK;
}

weir_code weir__sq_load(sq_store *s)
{
    weir_code rc = weir__sq_types_load(s);
    s->first_logged = 0;                    /* not known */
    if (!rc)
        rc = read_last_id(s);
    if (!rc && !s->env.read_only)
        rc = weir__sq_active_load(s);
    if (!s->env.read_only)
        weir__agenda_doubt(&s->agenda);
    s->stale = rc != WEIR_OK;
    return rc;
}

/* Give up what was done since the last commit. */
static void undo(sq_store *s, bool wrote)
{
    weir__outbox_clear(&s->out);
    s->agenda.wanted = INT64_MAX;
    for (int i = 0; i < SQ_STATEMENTS; i++)
        sqlite3_reset(s->stmt[i]);
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_step(weir__sq_stmt(s, SQ_ROLLBACK));
    sqlite3_reset(s->stmt[SQ_ROLLBACK]);
    s->broken = false;
    if (!wrote)
        return;
    weir_error why = s->error;
    s->stale = true;
    weir__sq_load(s);           /* if that fails: again before the next batch */
    s->broken = false;
    s->error = why;
}

static weir_code begin(sq_store *s, need n)
{
    s->changes = sqlite3_total_changes(s->db);
    if (n == NOTHING)
        return WEIR_OK;
    weir_code rc = weir__sq_do(s, weir__sq_stmt(s, n == WRITES ? SQ_BEGIN_WRITE : SQ_BEGIN));
    if (!rc && (s->env.read_only || s->stale))
        rc = weir__sq_load(s);
    return rc;
}

static weir_code commit(sq_store *s, need n)
{
    if (n == NOTHING)
        return WEIR_OK;
    if (n == WRITES && weir__sq_file_check(s, false, &s->error)) {
        s->broken = true;
        return s->error.code;
    }
    weir_code rc = n == WRITES ? weir__sq_types_save(s) : WEIR_OK;
    if (!rc && s->save_id) {
        sqlite3_stmt *st = weir__sq_stmt(s, SQ_LAST_ID_SAVE);
        weir__sq_int(st, 1, (int64_t)s->last_id);
        rc = weir__sq_do(s, st);
        s->saved_id = s->last_id;
        s->save_id = false;
    }
    if (!rc)
        rc = weir__sq_log_mark(s);
    return rc ? rc : weir__sq_do(s, weir__sq_stmt(s, SQ_COMMIT));
}

/* A commit that failed may be in the log all the same, when only its sync did, and would count
 * after a kill. The next transaction is written over it: this one, which changes nothing. */
static void supersede_failed_commit(sq_store *s)
{
    weir_error why = s->error;
    s->save_id = true;
    if (begin(s, WRITES) || commit(s, WRITES))
        undo(s, true);
    s->error = why;
}

/* ---- batches ---- */

/* Run n operations in one transaction. False: none of them happened, because of s->error. */
static bool transact(sq_store *s, weir_op **ops, size_t n)
{
    need most = NOTHING;
    for (size_t i = 0; i < n; i++) {
        weir__op_clear(ops[i]);
        need here = need_of(s, ops[i]);
        if (here > most && !weir__op_refused(ops[i], s->env.read_only))
            most = here;
    }
    if (most == NOTHING && s->stale)
        most = READS;
    size_t i = 0;
    if (!begin(s, most))
        for (; i < n && !s->broken; i++)
            if (!weir__op_refused(ops[i], s->env.read_only))
                run_one[ops[i]->kind](s, ops[i]);
    bool tried = !s->broken;
    if (tried && !commit(s, most)) {
        note_commit(s, ops, n);
        publish(s);
        return true;
    }
    if (most == WRITES)
        note_failure(s, ops, n);
    s->ballast = false;
    for (size_t k = 0; k < i; k++)
        weir__op_free(ops[k]);
    undo(s, most != READS || s->env.read_only);
    if (tried && most == WRITES)
        supersede_failed_commit(s);
    return false;
}

void weir__sq_run_here(sq_store *s, weir_op **ops, size_t n)
{
    if (n && !s->env.read_only)
        weir__sq_clock(s, ops[0]->now_ms, ops[0]->steady_ms);
    if (n && !transact(s, ops, n))
        for (size_t i = 0; i < n; i++) {
            if (n > 1 && transact(s, ops + i, 1))
                continue;
            ops[i]->err = s->error;
        }
    if (s->ballast)
        weir__sq_alone(s, drop_ballast, NULL);
}

weir_code weir__sq_run(weir_store *store, weir_op **ops, size_t n, weir_error *err)
{
    (void)err;
    sq_store *s = (sq_store *)store;
    if (s->peer)
        weir__sq_peer_run(s, ops, n);
    else
        weir__sq_run_here(s, ops, n);
    return WEIR_OK;
}

weir_code weir__sq_alone(sq_store *s, weir_code (*fn)(sq_store *s), weir_error *err)
{
    weir_code rc = begin(s, WRITES);
    if (!rc)
        rc = fn(s);
    if (!rc)
        rc = commit(s, WRITES);
    if (!rc) {
        publish(s);
        return WEIR_OK;
    }
    weir_error why = s->error;
    undo(s, true);
    if (err)
        *err = why;
    return why.code;
}
