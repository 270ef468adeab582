/* read_ahead.c - the best waiting jobs of a type, kept in memory so that a take need not look for
 * them.
 *
 * An invariant, for every type: ahead->job[0..n) are exactly its first n inactive jobs in the order
 * in which they will be taken, as they are in the file. None of them has a deadline, so that they
 * can be taken at any time. If `complete`, there are no others. A new job is put in its place or
 * cuts the list off there; a job that changes or leaves cuts it off. It is never more than a copy:
 * forgetting it costs a SELECT, nothing else. */
#include "store/sqlite/sq.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_DATA = 16384,                   /* of a job that is kept */
    MAX_BYTES = 4 * 1024 * 1024,        /* of all of them, over all types */
    BYTES_OF_ONE = 512                  /* besides its long texts, about */
};

static size_t bytes_of(const weir_job *j)
{
    return j->data_len + j->history_len + j->values_len + BYTES_OF_ONE;
}

/* Forget job[from..n). */
static void cut(sq_store *s, sq_ahead *a, size_t from)
{
    a->complete = false;
    while (a->n > from) {
        weir_job *j = a->job[--a->n];
        s->ahead_bytes -= bytes_of(j);
        weir_job_free(j);
    }
}

static weir_job *copy_of(sq_store *s, const weir_job *j)
{
    if (j->deadline_at || j->data_len > MAX_DATA || s->ahead_bytes + bytes_of(j) > MAX_BYTES)
        return NULL;
    weir_job *copy = weir__job_copy(j);
    if (copy)
        s->ahead_bytes += bytes_of(copy);
    return copy;
}

void weir__sq_ahead_drop(sq_store *s, sq_type *t)
{
    if (!t->ahead)
        return;
    cut(s, t->ahead, 0);
    free(t->ahead);
    t->ahead = NULL;
}

void weir__sq_ahead_arrive(sq_store *s, sq_type *t, const weir_job *j, bool with_texts)
{
    if (!t->ahead && !t->count[WEIR_STATE_INACTIVE])
        t->ahead = calloc(1, sizeof *t->ahead);
    sq_ahead *a = t->ahead;
    if (!a)
        return;
    if (!t->count[WEIR_STATE_INACTIVE])
        a->complete = true;             /* the first one: whatever comes is known from here on */
    size_t at = a->n;
    while (at > 0 && weir__job_before(j->priority, j->id, a->job[at - 1]->priority,
                                      a->job[at - 1]->id))
        at--;
    if (at == a->n && !a->complete)
        return;
    if (at == SQ_AHEAD_MAX) {
        a->complete = false;
        return;
    }
    if (a->n == SQ_AHEAD_MAX)
        cut(s, a, a->n - 1);
    weir_job *copy = with_texts ? copy_of(s, j) : NULL;
    if (!copy) {
        cut(s, a, at);
        return;
    }
    memmove(a->job + at + 1, a->job + at, (a->n - at) * sizeof(weir_job *));
    a->job[at] = copy;
    a->n++;
}

void weir__sq_ahead_leave(sq_store *s, sq_type *t, uint64_t id)
{
    sq_ahead *a = t->ahead;
    for (size_t i = 0; a && i < a->n; i++) {
        if (a->job[i]->id == id) {
            cut(s, a, i);
            a->read_size = 0;           /* no use in reading far ahead if that changes */
        }
    }
}

/* Read the next ones, more each time that all of them were of use. */
static void fill(sq_store *s, sq_type *t)
{
    if (!t->ahead)
        t->ahead = calloc(1, sizeof *t->ahead);
    sq_ahead *a = t->ahead;
    if (!a) {
        weir__sq_no_memory(s);
        return;
    }
    a->read_size = !a->read_size                     ? 1
                   : a->read_size * 4 > SQ_AHEAD_MAX ? SQ_AHEAD_MAX
                                                     : a->read_size * 4;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_WAITING);
    weir__sq_int(st, 1, t->id);
    size_t most = (size_t)a->read_size + s->damaged.n, seen = 0;
    weir__sq_int(st, 2, (int64_t)most);
    bool row;
    for (; (row = weir__sq_row(s, st)); seen++) {
        weir_job j;
        sq_type *same;
        sql_sums  sums;
        if (!weir__sq_sound(s, st, &j, &same, &sums)) {
            weir__sq_note_damaged(s, (uint64_t)sqlite3_column_int64(st, SQL_C_id));
            continue;
        }
        weir_job *copy = a->n < (size_t)a->read_size ? copy_of(s, &j) : NULL;
        if (!copy)
            break;
        a->job[a->n++] = copy;
    }
    sqlite3_reset(st);
    a->complete = !row && !s->broken && seen < most;
}

const weir_job *weir__sq_ahead_at(sq_store *s, sq_type *t, size_t at)
{
    if (t->count[WEIR_STATE_INACTIVE] <= at)
        return NULL;
    if (!t->ahead || !t->ahead->n)
        fill(s, t);
    return !s->broken && at < t->ahead->n ? t->ahead->job[at] : NULL;
}

void weir__sq_ahead_took(sq_store *s, sq_type *t, uint64_t id)
{
    sq_ahead *a = t->ahead;
    size_t    at = 0, n = a ? a->n : 0;
    while (at < n && a->job[at]->id != id)
        at++;
    if (at == n)                        /* not known: then it is behind what is */
        return;
    s->ahead_bytes -= bytes_of(a->job[at]);
    weir_job_free(a->job[at]);
    a->n--;
    memmove(a->job + at, a->job + at + 1, (a->n - at) * sizeof(weir_job *));
}
