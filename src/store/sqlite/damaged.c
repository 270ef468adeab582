/* damaged.c - jobs whose row does not match its checksum: they are not run, and become failed. */
#include "store/sqlite/sq.h"

#include <string.h>

bool weir__sq_sound(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type, sql_sums *sums)
{
    if (!weir__sq_decode(s, st, j, type))
        return false;
    *sums = weir__sql_sums(j, sqlite3_column_int64(st, SQL_C_lease_ms));
    return sqlite3_column_int64(st, SQL_C_checksum) == weir__sql_checksum(j, (*type)->id, sums);
}

static char in_file, in_memory;     /* what the map of them says: see sq_store.damaged */

void weir__sq_note_damaged(sq_store *s, uint64_t id)
{
    if (id && !s->broken && !weir__map_get(&s->damaged, id) &&
        !weir__map_put(&s->damaged, id, &in_file))
        weir__sq_no_memory(s);
}

bool weir__sq_is_damaged(const sq_store *s, uint64_t id)
{
    return s->damaged.n && weir__map_get(&s->damaged, id) != NULL;
}

/* The checksum stays as it was: check still names the job. False: SQLite cannot change the row,
 * because an index does not agree with it. */
static bool fail_row(sq_store *s, uint64_t id, int64_t now)
{
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_SET_ASIDE);
    if (!st)
        return false;
    weir__sq_int(st, 1, (int64_t)id);
    weir__sq_int(st, 2, now);
    weir__sq_bytes(st, 3, SQ_DAMAGED_TEXT, sizeof SQ_DAMAGED_TEXT - 1);
    int rc = sqlite3_step(st);
    sqlite3_reset(st);
    if (rc != SQLITE_DONE && (rc & 0xff) != SQLITE_CORRUPT)
        weir__sq_broken(s, rc);
    return rc == SQLITE_DONE;
}

static weir_code set_aside(sq_store *s, uint64_t id, int64_t now)
{
    weir_job      j;
    sq_type      *t = NULL;
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_GET);
    weir__sq_int(st, 1, (int64_t)id);
    if (!weir__sq_row(s, st))
        return s->broken ? s->error.code : WEIR_OK;
    bool known = weir__sq_decode(s, st, &j, &t);
    sqlite3_reset(st);
    if (!known || !fail_row(s, id, now)) {
        if (!s->broken)
            weir__map_put(&s->damaged, id, &in_memory);     /* it is in there: no memory needed */
        return s->broken ? s->error.code : WEIR_OK;
    }
    weir__map_remove(&s->damaged, id);
    weir_effects e;
    weir__job_set_aside(&j, SQ_DAMAGED_TEXT, now, &e);
    weir_code rc = weir__effects_ok(&e) ? weir__sq_log(s, id, false, now, e.log.data, e.log.len)
                                        : weir__sq_no_memory(s);
    weir__sq_follow(s, &j, t, &e, now);
    weir__effects_fini(&e);
    return rc;
}

weir_code weir__sq_set_aside(sq_store *s, int64_t now)
{
    size_t    pos = 0;
    uint64_t  id;
    void     *where;
    weir_code rc = WEIR_OK;
    while (!rc && weir__map_next(&s->damaged, &pos, &id, &where))
        if (where == &in_file)
            rc = set_aside(s, id, now);
    return rc;
}
