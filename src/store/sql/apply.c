/* apply.c - which rows of a job a transition changes: see sql.h. */
#include "store/sql/sql.h"

#include <assert.h>
#include <string.h>

static weir_code put(const sql_rows *rows, void *s, const weir_job *j, int64_t type,
                     const weir_effects *e, sql_sums *sums)
{
    if (!e->to)
        return rows->remove(s, j);
    if (e->completed) {                     /* by far the most frequent change */
        assert(e->texts == (WEIR__NEW(result) | WEIR__NEW(error)));
        sums->lease_ms = 0;
        return rows->complete(s, j, type, sums);
    }
    weir_code rc = rows->numbers(s, j, type, &e->history, sums);
    return rc || !e->texts ? rc : rows->texts(s, j, e->texts);
}

weir_code weir__sql_apply(const sql_rows *rows, void *s, const weir_job *j, int64_t type,
                          const weir_effects *e, sql_sums *sums, int64_t now)
{
#define SUM(name, len)                                                                            \
    if (e->texts & WEIR__NEW(name))                                                               \
        sums->name = weir__sql_text_sum(j->name, len);
#define X(name, len, life) WEIR_IF_MOVES_##life(SUM(name, len))
    WEIR_JOB_STRINGS(X)
#undef X
#undef SUM
    weir_code rc = put(rows, s, j, type, e, sums);
    return rc || !e->log.len ? rc : rows->log(s, j, now, e->log.data, e->log.len);
}
