/* apply.c - which rows of a job a transition changes: see sql.h. */
#include "store/sql/sql.h"

#include <string.h>

static weir_code put(const sql_rows *rows, void *s, const weir_job *j, int64_t type,
                     const weir_effects *e, sql_sums *sums)
{
    if (!e->to)
        return rows->remove(s, j);
    if (e->completed) {                     /* by far the most frequent change */
        sums->lease_ms = 0;
        return rows->complete(s, j, type, sums);
    }
    weir_code rc = rows->numbers(s, j, type, &e->history, sums);
    return rc || !e->texts ? rc : rows->texts(s, j, e->texts, sums->lease_ms);
}

weir_code weir__sql_apply(const sql_rows *rows, void *s, const weir_job *j, int64_t type,
                          const weir_effects *e, sql_sums *sums, int64_t now)
{
    if (e->texts & WEIR__NEW_ERROR)
        sums->error = weir__sql_text_sum(j->error, j->error ? strlen(j->error) : 0);
    if (e->texts & WEIR__NEW_RESULT)
        sums->result = weir__sql_text_sum(j->result, j->result_len);
    weir_code rc = put(rows, s, j, type, e, sums);
    return rc || !e->log.len ? rc : rows->log(s, j, now, e->log.data, e->log.len);
}
