/* log_check.c - does the log beside a file belong to it?
 *
 * SQLite cannot detect it. If a backup is copied over PATH and PATH-wal stays, SQLite reads a
 * mixture of both, and the next checkpoint writes it into the file. So two rows of `meta` mark the
 * logs:
 *
 *     log         a random number, new for each log
 *     log_before  the number of the log before it
 *
 * The first commit of each log writes them: the commit after a checkpoint that has copied the whole
 * log into the file. They are in the log then, and in the file after the next checkpoint. Two pairs
 * are never written without such a checkpoint between them. So the `log` of the file alone must be
 * `log` or `log_before` of both together. The same commit changes the first page, whose change
 * counter SQLite raises then: file.c looks at that.
 *
 * Two cases are not noticed: a log that another program has folded in, until its second commit; and
 * a file that was copied in the middle of the log before this one.
 *
 * A third row says that some commits are only in the log:
 *
 *     in_use      the schema version of the file (PRAGMA schema_version)
 *
 * The first commit of an owner writes in_use, and a checkpoint copies it into the file before that
 * commit is acknowledged. The last commit of an owner removes it; then SQLite folds in the log and
 * deletes it. So a file with in_use and without a log was copied without its log, or has lost it.
 * A whole copy that SQLite made (.backup, VACUUM INTO) has another schema version. An owner that
 * makes a few calls and closes (weir_options.brief) writes no in_use unless it serves others. */
#include "store/sqlite/sq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { READER_LOOKS = 3 };              /* the owner may start a new log between two reads */

typedef struct marks {
    int64_t log, before, in_use;        /* 0: none */
    int64_t version;                    /* of the schema */
} marks;

/* False: they cannot be read, or it is no file of weir. */
static bool read_marks(sqlite3 *db, marks *out)
{
    sqlite3_stmt *st = NULL;
    bool there = !sqlite3_prepare_v2(db, "SELECT (SELECT value FROM meta WHERE key = 'log'),"
                                         " (SELECT value FROM meta WHERE key = 'log_before'),"
                                         " (SELECT value FROM meta WHERE key = 'in_use'),"
                                         " schema_version FROM pragma_schema_version",
                                     -1, &st, NULL) && sqlite3_step(st) == SQLITE_ROW;
    if (there)
        *out = (marks){ sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                        sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3) };
    sqlite3_finalize(st);
    return there;
}

/* Those of the file without its log, which SQLite leaves alone if the file is "immutable". */
static bool read_marks_of_file(const char *path, marks *out)
{
    sqlite3 *db = NULL;
    weir_buf uri = { 0 };
    weir__buf_str(&uri, "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            weir__buf_printf(&uri, "%%%02x", (unsigned char)*path);
        else
            weir__buf_char(&uri, *path);
    }
    weir__buf_str(&uri, "?immutable=1");
    bool there = !uri.failed &&
                 !sqlite3_open_v2(uri.data, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI |
                                                     SQLITE_OPEN_NOMUTEX, NULL) &&
                 read_marks(db, out);
    sqlite3_close(db);
    weir__buf_fini(&uri);
    return there;
}

typedef enum finding { LOG_FITS, LOG_OF_ANOTHER, LOG_MISSING } finding;

static finding compare(sq_store *s)
{
    bool  has_log = weir__sq_log_size(s) > 0;
    marks both, file;
    if (!read_marks(s->db, &both))
        return LOG_FITS;
    s->in_use = both.in_use && both.in_use == both.version;
    s->in_use_folded = false;
    if (!has_log)
        return s->in_use ? LOG_MISSING : LOG_FITS;
    return !read_marks_of_file(s->path, &file) || file.log == both.log || file.log == both.before
               ? LOG_FITS : LOG_OF_ANOTHER;
}

weir_code weir__sq_log_check(sq_store *s, weir_error *err)
{
    finding found = compare(s);
    for (int i = 1; i < READER_LOOKS && found && s->env.read_only; i++)
        found = compare(s);
    s->log_lost = found == LOG_MISSING && s->env.without_log;
    if (!found || s->log_lost)
        return WEIR_OK;
    const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
    if (found == LOG_MISSING) {
        weir_fail(err, WEIR_ECORRUPT, "%s was copied without its log %s-wal, or has lost it, with "
                  "the newest jobs; nothing was changed. Copy both (or use sqlite3's .backup), or "
                  "mend %s, which accepts the loss", name, name, name);
        if (err)                        /* the option that opens it */
            strcpy(err->field, "without_log");
        return WEIR_ECORRUPT;
    }
    return weir_fail(err, WEIR_ECORRUPT, "%s-wal is not the log of this %s, but of another or an "
                     "older one; nothing was changed. Put back the %s it was written with, or move "
                     "%s-wal away to use %s without it", name, name, name, name, name);
}

void weir__sq_log_begin(sq_store *s)
{
    s->log_new = !weir__sq_log_size(s);
}

/* This transaction writes, or is the last. */
static weir_code mark_in_use(sq_store *s)
{
    bool use = atomic_load(&s->stays) && !s->closing;
    s->in_use_next = s->in_use;
    if (s->closing ? !s->in_use : !use || s->in_use || !weir__sq_wrote(s))
        return WEIR_OK;
    s->in_use_next = use;
    return weir__sq_do(s, weir__sq_stmt(s, use ? SQ_IN_USE : SQ_NOT_IN_USE));
}

weir_code weir__sq_log_mark(sq_store *s)
{
    weir_code rc = s->checkpointer ? mark_in_use(s) : WEIR_OK;
    if (rc)
        return rc;
    s->log_marked = s->log_new && s->checkpointer && weir__sq_wrote(s);
    if (!s->log_marked)
        return WEIR_OK;
    int64_t number;
    sqlite3_randomness(sizeof number, &number);
    sqlite3_stmt *st = weir__sq_stmt(s, SQ_LOG_MARK);
    weir__sq_int(st, 1, (number & INT64_MAX) | 1);
    rc = weir__sq_do(s, st);
    return rc ? rc : weir__sq_do(s, weir__sq_stmt(s, SQ_LOG_COUNT));
}

/* A log is shorter than before only if it is a new one, after a checkpoint of another program. If
 * its first commit has written marks, they are its own. */
void weir__sq_log_grew(sq_store *s, int pages)
{
    s->log_new = !s->log_marked && (s->log_new || pages < s->log_pages);
    s->log_marked = false;
    s->log_pages = pages;
    s->in_use = s->in_use_next;
}

/* A copy by the thread of checkpoint.c does not count: commits may have followed. */
void weir__sq_log_folded(sq_store *s)
{
    s->log_new = true;
    s->in_use_folded |= s->in_use;
}

bool weir__sq_log_must_fold(const sq_store *s)
{
    return s->in_use && !s->in_use_folded && atomic_load(&s->stays);
}
