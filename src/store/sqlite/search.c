/* search.c - finding jobs by the words in their data, error and log.
 *
 * Each text of a job is a row of its own in the FTS5 table (see schema.c), so that a new log line
 * costs one line. A query is one stream of rows for each of its words, all in order of their ids,
 * and finds the jobs that occur in every stream. */
#include "store/sqlite/sq.h"

#include <stdlib.h>
#include <string.h>

#include "core/search.h"

enum { MAX_WORDS = 64, LEAP_AFTER = 64 };

/* ---- the index ---- */

weir_code weir__sq_index(sq_store *s, uint64_t id, int slot, const char *text, size_t len)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_INDEX_PUT);
    weir__sq_int(st, 1, (int64_t)(id << SQ_SLOT_BITS | (uint64_t)slot));
    weir__sq_bytes(st, 2, text, len);
    return weir__sq_do(s, st);
}

weir_code weir__sq_index_data(sq_store *s, const weir_job *j)
{
    weir_buf  text = { 0 };
    weir_code rc;
    if (!weir__search_text(&text, j->data, j->data_len, j->search_keys) || text.failed)
        rc = weir__sq_no_memory(s);
    else
        rc = weir__sq_index(s, j->id, SQ_SLOT_DATA, text.data ? text.data : "", text.len);
    weir__buf_fini(&text);
    return rc;
}

weir_code weir__sq_unindex(sq_store *s, uint64_t id, int slot)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_INDEX_DROP);
    weir__sq_int(st, 1, (int64_t)(id << SQ_SLOT_BITS | (uint64_t)slot));
    return weir__sq_do(s, st);
}

/* ---- queries ---- */

typedef struct stream {
    sqlite3_stmt *st;
    bool          prefix;
    bool          end;
    uint64_t      job;          /* where it stands; 0: not begun */
} stream;

typedef struct hunt {
    sq_store *s;
    bool      down;
    stream    word[MAX_WORDS];
    size_t    n;
} hunt;

static const char up_sql[] = "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid >= ?2"
                             " ORDER BY rowid";
static const char down_sql[] = "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid < ?2"
                               " ORDER BY rowid DESC";

/* From the first row of `job`, or downwards from its last. */
static void place(hunt *h, stream *w, uint64_t job)
{
    uint64_t last = (uint64_t)INT64_MAX >> SQ_SLOT_BITS;
    if (job > last)
        job = last;
    sqlite3_reset(w->st);
    weir__sq_int(w->st, 2, (int64_t)(h->down ? job == last ? (uint64_t)INT64_MAX
                                                           : (job + 1) << SQ_SLOT_BITS
                                             : job << SQ_SLOT_BITS));
}

static bool reached(const hunt *h, const stream *w, uint64_t job)
{
    return h->down ? w->job <= job : w->job >= job;
}

/* Bring the stream to `job` or, without it, to the next one beyond. A word that is far behind is
 * looked up anew from there; not so the start of words, where every look-up costs all matches. */
static void seek(hunt *h, stream *w, uint64_t job)
{
    int steps = 0;
    while (!w->end && (!w->job || !reached(h, w, job))) {
        if (w->job && ++steps % LEAP_AFTER == 0 && !w->prefix)
            place(h, w, job);
        if (weir__sq_row(h->s, w->st))
            w->job = (uint64_t)sqlite3_column_int64(w->st, 0) >> SQ_SLOT_BITS;
        else
            w->end = true;
    }
}

static void hunt_fini(hunt *h)
{
    for (size_t i = 0; i < h->n; i++)
        sqlite3_finalize(h->word[i].st);
}

static bool add_word(hunt *h, const char *word, size_t len, bool prefix, uint64_t from)
{
    weir_buf match = { 0 };
    weir__buf_char(&match, '"');
    weir__buf_add(&match, word, len);
    weir__buf_str(&match, prefix ? "\"*" : "\"");
    if (match.failed) {
        weir__buf_fini(&match);
        weir__sq_no_memory(h->s);
        return false;
    }
    stream *w = &h->word[h->n++];
    *w = (stream){ .prefix = prefix };
    int rc = sqlite3_prepare_v2(h->s->db, h->down ? down_sql : up_sql, -1, &w->st, NULL);
    if (!rc)
        rc = sqlite3_bind_text(w->st, 1, match.data, (int)match.len, SQLITE_TRANSIENT);
    weir__buf_fini(&match);
    if (rc) {
        weir__sq_broken(h->s, rc);
        return false;
    }
    place(h, w, from);
    return true;
}

/* The next job at or beyond `from` in which every word is; 0: none. */
static uint64_t next_found(hunt *h, uint64_t from)
{
    uint64_t job = from;
    for (size_t agree = 0, i = 0; agree < h->n; i = (i + 1) % h->n) {
        stream *w = &h->word[i];
        seek(h, w, job);
        if (w->end)
            return 0;
        agree = w->job == job ? agree + 1 : 1;
        job = w->job;
    }
    return job;
}

/* Is the job of the query's type and state? Then what is its priority? */
static bool wanted(sq_store *s, const weir_query *q, const sq_type *type, uint64_t id,
                   int32_t *priority)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_PLACE);
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return false;
    bool fits = (!q->state || sqlite3_column_int(st, SQL_P_state) == (int)q->state) &&
                (!type || sqlite3_column_int64(st, SQL_P_type) == type->id);
    *priority = sqlite3_column_int(st, SQL_P_priority);
    sqlite3_reset(st);
    return fits;
}

weir_code weir__sq_search(sq_store *s, weir_op *op, weir_pager *pager)
{
    const weir_query *q = pager->q;
    const sq_type    *type = q->type ? weir__sq_type(s, q->type) : NULL;
    if (q->type && !type)
        return WEIR_OK;
    hunt     h = { .s = s, .down = q->descending };
    uint64_t from = q->after.id ? (q->descending ? q->after.id - 1 : q->after.id + 1)
                    : q->descending ? (uint64_t)INT64_MAX >> SQ_SLOT_BITS : 1;
    size_t   len = strlen(q->search), pos = 0, word, word_len;
    while (weir__search_word(q->search, len, &pos, &word, &word_len)) {
        if (h.n == MAX_WORDS) {
            hunt_fini(&h);
            return weir_fail(&op->err, WEIR_ELIMIT, "search: more than %d words", MAX_WORDS);
        }
        if (!add_word(&h, q->search + word, word_len, q->search[word + word_len] == '*', from))
            break;
    }
    uint64_t id = h.n && from && !s->broken ? next_found(&h, from) : 0;
    while (id && !s->broken) {
        int32_t priority;
        if (wanted(s, q, type, id, &priority) &&
            !weir__sq_page_add(s, pager, (weir_cursor){ .id = id }, priority))
            break;
        from = h.down ? id - 1 : id + 1;
        id = from ? next_found(&h, from) : 0;
    }
    hunt_fini(&h);
    return s->broken ? s->error.code : WEIR_OK;
}
