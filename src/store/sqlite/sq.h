/* sq.h - the inside of the sqlite store, shared by its files.
 *
 * One connection, entered by one thread at a time. An error of SQLite or of memory is noted once in
 * `error` and sets `broken`. From then on every function here does nothing until batch.c has rolled
 * back, so that callers may check once at the end. Refusals of the domain (no such job, stale) are
 * given before anything is written and do not break the batch. */
#ifndef WEIR_STORE_SQLITE_SQ_H
#define WEIR_STORE_SQLITE_SQ_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/tick.h"
#include "store/outbox.h"
#include "store/pager.h"
#include "store/sql/sql.h"

/* How the owner's connection is set up, beside its durability. Memory is bounded by the cache,
 * whatever the file's size: no mmap. The log is folded into the file every few thousand pages, so
 * that pages which change often are copied once for many changes. checkpoint.c does this, or SQLite
 * itself (wal_autocheckpoint) when there is no memory for that. */
#define SQ_OWNER_PRAGMAS                                                                       \
    "PRAGMA cache_size = -16384; PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = 4000;"      \
    "PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY;"                        \
    "PRAGMA foreign_keys = OFF"

/* ---- statements ---- */

typedef enum sq_sql {
    SQ_BEGIN, SQ_BEGIN_WRITE, SQ_COMMIT, SQ_ROLLBACK,
    SQ_INSERT, SQ_IMPORT, SQ_TAKE, SQ_TAKE_DUE, SQ_COMPLETE, SQ_NUMBERS,
#define X(m, name, k, j, s, life, ...) WEIR_IF_CHANGES_##life(SQ_SET_##name,)
    WEIR_JOB_TEXTS(X) WEIR_JOB_BYTES(X)
#undef X
    SQ_PROGRESS, SQ_DELAY_MOVE, SQ_DELETE, SQ_LEASE, SQ_LEASE_PUT, SQ_LEASE_DROP, SQ_LEASE_MOVE,
    SQ_SET_ASIDE,
    SQ_GET, SQ_HISTORY, SQ_BEST, SQ_WAITING, SQ_BEST_IDS, SQ_DUE, SQ_NEXT_DUE, SQ_OLDEST,
    SQ_OLDEST_IDS, SQ_ALL_ACTIVE, SQ_HOLDER, SQ_EXISTS,
    SQ_LIST_STATE, SQ_LIST_STATE_DOWN, SQ_LIST_TYPE, SQ_LIST_TYPE_DOWN, SQ_LIST_ALL,
    SQ_LIST_ALL_DOWN, SQ_PLACE,
    SQ_LOG_LAST, SQ_LOG_ADD, SQ_LOG_CUT, SQ_LOG_LINES, SQ_LOG_DROP, SQ_LOG_FIRST,
    SQ_INDEX_PUT, SQ_INDEX_DROP, SQ_INDEX_DROP_JOB,
    SQ_TYPES, SQ_TYPE_ADD, SQ_TYPE_SAVE, SQ_UNCOUNTED, SQ_COUNT_ACTIVE,
    SQ_LAST_ID, SQ_LAST_ID_SAVE, SQ_LOG_MARK, SQ_LOG_COUNT, SQ_IN_USE, SQ_NOT_IN_USE,
    SQ_BALLAST, SQ_BALLAST_DROP,
    SQ_TOKEN, SQ_TOKEN_PUT, SQ_TOKEN_OLDEST, SQ_TOKEN_SWEEP,
    SQ_SCHEDULE, SQ_SCHEDULE_PUT, SQ_SCHEDULE_REMOVE, SQ_SCHEDULES, SQ_SCHEDULES_DUE,
    SQ_SCHEDULE_NEXT,
    SQ_TREND, SQ_TREND_PUT, SQ_TREND_TYPES, SQ_TREND_SWEEP, SQ_TRENDS,
    SQ_STATEMENTS
} sq_sql;

/* ---- what is kept in memory ---- */

enum { SQ_AHEAD_MAX = 64 };
typedef struct sq_ahead {                   /* the next jobs of a type: see read_ahead.c */
    weir_job *job[SQ_AHEAD_MAX];
    size_t    n;
    int       read_size;                    /* how many rows the last read asked for */
    bool      complete;                     /* no other job of the type waits */
} sq_ahead;

typedef struct sq_type {
    int64_t         id;                     /* 1, 2, 3 ...; "*" is 1 */
    char           *name;
    bool            paused;
    bool            has_settings;           /* else the settings of "*" hold */
    weir_settings   settings;
    uint64_t        count[WEIR_STATE_COUNT];     /* [WEIR_STATE_ANY] is not used */
    uint64_t        completed, failed;
    int64_t         work_ms, last_taken_at;
    sq_ahead       *ahead;                  /* NULL: nothing is known */
    bool            dirty;                  /* to be written before the commit */
    struct sq_type *next_dirty;
} sq_type;

typedef struct sq_types {
    sq_type **by_id;                        /* [id - 1] */
    sq_type **by_name;                      /* sorted */
    size_t    n, cap_by_id, cap_by_name;
    sq_type  *dirty;
    bool      must_save;                    /* before this commit; else the dirty ones may wait */
    size_t    uncounted;                    /* jobs added since they were saved */
} sq_types;

/* A job that some worker has. */
typedef struct sq_active {
    weir_job job;                           /* numbers only, with its lease; strings are NULL */
    sq_type *type;
    sql_sums  sums;                          /* as in its row */
    int64_t  lease_ms;                      /* what its worker asked for last */
    bool     renewed;                       /* its lease has a row: see active.c */
    int64_t  ttl_until;                     /* INT64_MAX: no ttl */
    bool     has_progress_data;
} sq_active;

/* The finished jobs of a type and state that ended first, while a TICK removes some. */
enum { SQ_OLDEST_AT_ONCE = 64 };
typedef struct sq_oldest {
    int64_t    type;                        /* 0: none were looked for yet */
    weir_state state;
    size_t     next, n;
    uint64_t   id[SQ_OLDEST_AT_ONCE];
    int64_t    finished_at[SQ_OLDEST_AT_ONCE];
} sq_oldest;

typedef struct sq_owner {
    int   fd;
    char *path;
} sq_owner;

typedef struct sq_file {                    /* the files that are open: file.c */
    struct sq_inode *inode;                 /* of the file; NULL: not open */
    struct sq_inode *attended;              /* while this process works through the owner */
    bool             has_log;
    dev_t            log_dev;
    ino_t            log_ino;
    bool             gone;                  /* they were not at their path at the last look */
    int64_t          look_ms;               /* when to look again, on the monotonic clock */
} sq_file;

typedef struct sq_server sq_server;         /* serves other processes: serve.c */
typedef struct sq_peer   sq_peer;           /* works through the owner: peer.c */
typedef struct sq_member sq_member;         /* exchanges envelopes: member.c */
typedef struct sq_watch  sq_watch;          /* receives the owner's events: watch.c */
typedef struct sq_checkpointer sq_checkpointer;   /* folds the log into the file: checkpoint.c */

typedef struct sq_store {
    weir_store    base;
    weir_env      env;
    char         *name;                     /* env.name, ours */
    char         *path;                     /* absolute, without links */
    sq_owner      owner;
    sq_file       file;
    sqlite3      *db;
    sqlite3_stmt *stmt[SQ_STATEMENTS];

    sq_types      types;
    weir_map      active;                   /* id -> sq_active */
    weir_agenda   agenda;
    weir_clock_watch clock;
    int64_t       clock_step;               /* by which delays in the file are yet to be moved */
    weir_map      damaged;                  /* ids of jobs that are not taken: damaged.c */
    size_t        ahead_bytes;              /* in all sq_type.ahead */
    uint64_t      last_id;                  /* ever given */
    uint64_t      saved_id;                 /* what the file says; see weir__sq_forget() */
    uint64_t      first_logged;             /* no job with a smaller id has a log */
    sq_oldest     oldest;                   /* of a TICK */
    bool          save_id;
    bool          stale;                    /* the memory above must be read anew first */

    int           changes;                  /* rows that were changed before this transaction */
    int64_t       wrote_ms;                 /* the last commit that wrote, on the monotonic clock */
    weir_error    trouble;                  /* why the last write transaction failed; code OK: it
                                               did not */
    size_t        full_bytes;               /* the largest write that failed on the full disk; 0:
                                               one as large has worked since */
    bool          ballast;                  /* this transaction writes as much, for a probe */
    bool          broken;                   /* this batch cannot be committed, because of: */
    weir_error    error;

    weir_outbox   out;                      /* events of this batch */

    bool          log_new;                  /* the next commit writes its marks: log_check.c */
    bool          log_marked;               /* this transaction has written them */
    int           log_pages;                /* after the last commit */
    bool          log_lost;                 /* it was missing when the file was opened */
    bool          in_use, in_use_next;      /* is marked so; and after this transaction */
    bool          in_use_folded;            /* ... in the file itself, without the log */
    bool          closing;                  /* the next commit is the last */
    sq_checkpointer *checkpointer;

    /* Many processes: share.h. */
    sq_peer        *peer;                   /* NULL: this process has the file open itself */
    atomic_bool     owns;                   /* its lock is ours; changed by run() alone */
    sq_server      *server;                 /* of an owner; NULL: it serves nobody */
    atomic_bool     serves;                 /* `server` does not change any more */
    weir_durability asked_durability;
    atomic_bool     wanted;                 /* want() was called */
    atomic_bool     stays;                  /* ... and it is not brief, or serves others */
    sq_member      *member;                 /* NULL: this process has not joined */
    pthread_mutex_t watch_lock;             /* guards `watch`; taken by no thread of ours */
    sq_watch       *watch;                  /* NULL: no events of others are wanted */
} sq_store;

/* ---- stmt.c: statements and the errors of SQLite ---- */

/* The weir code for what SQLite says about `db` just now (rc: what it returned). */
weir_code weir__sq_code(sqlite3 *db, int rc);
weir_code weir__sq_db_fail(sqlite3 *db, int rc, const char *path, weir_error *err);
weir_code weir__sq_file_fail(const char *path, int e, weir_error *err);     /* e: an errno */
/* permit.c: e is one about permissions. Says to whom the file, or its directory, belongs. */
weir_code weir__sq_permission_fail(const char *path, int e, weir_error *err);
const char *weir__sq_file_name(const char *path);           /* without its directory */
/* permit.c: could this process own the file at `path` and write to it, as far as permissions go? */
weir_code weir__sq_may_write(const char *path, weir_error *err);
/* permit.c: "a process of user ann", the owner of the file. */
void weir__sq_say_owner(const char *path, char *out, size_t size);
/* Note trouble; the code noted is returned (the first one stays). */
weir_code weir__sq_broken(sq_store *s, int rc);
weir_code weir__sq_no_memory(sq_store *s);
weir_code weir__sq_damaged(sq_store *s, const char *what);

/* A statement of the table, prepared at its first use. NULL: broken; all functions accept that. */
sqlite3_stmt *weir__sq_stmt(sq_store *s, sq_sql which);
/* Is there a row? At the end, or when broken, the statement is reset and the answer is false. */
bool          weir__sq_row(sq_store *s, sqlite3_stmt *st);
/* Run a statement without rows, and reset it. */
weir_code     weir__sq_do(sq_store *s, sqlite3_stmt *st);
void          weir__sq_finalize(sq_store *s);

static inline void weir__sq_int(sqlite3_stmt *st, int at, int64_t v)
{
    sqlite3_bind_int64(st, at, v);
}

static inline void weir__sq_bytes(sqlite3_stmt *st, int at, const char *text, size_t len)
{
    if (text)
        sqlite3_bind_text(st, at, text, (int)len, SQLITE_STATIC);
    else
        sqlite3_bind_null(st, at);
}

static inline void weir__sq_string(sqlite3_stmt *st, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(st, at);
}

/* ---- schema.c ---- */

#define SQ_APPLICATION_ID 0x77656972           /* "weir" */

/* Make the tables, if the file is empty; else check their version. */
weir_code weir__sq_schema(sqlite3 *db, const char *path, bool read_only, weir_error *err);

/* ---- owner.c: who may write ---- */

/* WEIR_EBUSY: another process is; *alone: it serves no others. `shares`: this one would. */
weir_code weir__sq_lock_owner(sq_owner *o, const char *path, const char *name, bool shares,
                              bool *alone, weir_error *err);
void      weir__sq_disown(sq_owner *o);
/* A reader looks who owns the file: owner_pid and owner of *info. Locks nothing. */
void      weir__sq_find_out_owner(const sq_store *s, weir_info *info);

/* ---- file.c: the file itself ---- */

/* Before the file is made or opened: can the present file be used? */
weir_code weir__sq_file_look(const sq_store *s, weir_error *err);
/* The file is there: count this store, and lock it for an owner. `busy`: another owner has it. */
weir_code weir__sq_file_open(sq_store *s, bool *busy, weir_error *err);
/* SQLite has opened it and its log. */
void      weir__sq_file_ready(sq_store *s);
/* Owners: are the files still at their path? A look now and then, unless it is wanted at once. */
weir_code weir__sq_file_check(sq_store *s, bool at_once, weir_error *err);
/* Is the file that is open the one at its path? Any thread, while the store is open. */
bool      weir__sq_file_there(const sq_store *s);
/* Owners: has no other program written over it? Any thread. Also called after each checkpoint, so
 * that what is known of the file is not older. */
bool      weir__sq_file_intact(const sq_store *s);
int64_t   weir__sq_log_size(const sq_store *s);         /* bytes of PATH-wal; 0: none */
/* Readers: does the file have an owner? */
bool      weir__sq_file_owned(const sq_store *s);
/* After SQLite has closed it. */
void      weir__sq_file_close(sq_store *s);
/* A process that works through the owner has a lock on the file, too, so that the next owner can
 * see that some process may still have jobs. Ends with weir__sq_file_part(). */
void      weir__sq_file_attend(sq_store *s);
void      weir__sq_file_part(sq_store *s);
bool      weir__sq_file_attended(const sq_store *s);        /* by others */
/* A descriptor with one more lock on the file, open until the last store of this process that has
 * the file is closed: weir_guard_fd(). -1: none. Any thread, while the store is open. */
int       weir__sq_file_guard(sq_store *s);
/* The owner, before it takes the jobs of dead processes from them: until no other process has such
 * a lock, GUARD_MS at most. */
void      weir__sq_file_wait_guards(const sq_store *s);

/* Has this transaction changed anything? */
static inline bool weir__sq_wrote(const sq_store *s)
{
    return sqlite3_total_changes(s->db) != s->changes;
}

/* ---- log_check.c: the log belongs to the file ---- */

/* The file is open, and nothing was written yet. */
weir_code weir__sq_log_check(sq_store *s, weir_error *err);
/* Before the first commit. */
void      weir__sq_log_begin(sq_store *s);
/* Before each commit, and after it. */
weir_code weir__sq_log_mark(sq_store *s);
void      weir__sq_log_grew(sq_store *s, int pages);
/* After a commit and a checkpoint that has copied all of the log. */
void      weir__sq_log_folded(sq_store *s);
/* After a commit: is a checkpoint needed before it is acknowledged? */
bool      weir__sq_log_must_fold(const sq_store *s);

/* ---- types.c ---- */

weir_code weir__sq_types_load(sq_store *s);
void      weir__sq_types_fini(sq_store *s);
sq_type  *weir__sq_type(sq_store *s, const char *name);           /* NULL: never seen */
sq_type  *weir__sq_type_of(sq_store *s, int64_t id);              /* NULL: none such */
sq_type  *weir__sq_type_make(sq_store *s, const char *name);      /* NULL: broken */
/* Before a commit: write the dirty ones, unless all that changed can be derived from the jobs. */
weir_code weir__sq_types_save(sq_store *s);
void      weir__sq_dirty(sq_store *s, sq_type *t);
void      weir__sq_count_move(sq_store *s, sq_type *t, weir_state from, weir_state to);
static inline sq_type *weir__sq_star(sq_store *s)
{
    return s->types.by_id[0];
}
static inline const weir_settings *weir__sq_settings(sq_store *s, const sq_type *t)
{
    const sq_type *star = weir__sq_star(s);
    return t->has_settings      ? &t->settings
           : star->has_settings ? &star->settings
                                : &weir__default_settings;
}
static inline weir_kept weir__sq_kept(sq_store *s, const sq_type *t, weir_state state)
{
    return (weir_kept){ weir__keep_of(weir__sq_settings(s, t), state), t->count[state] };
}

/* ---- damaged.c: rows that do not match their checksums ---- */

#define SQ_DAMAGED_TEXT "damaged: its record does not match its checksum, so it is not run"

/* Read the row that `st` is at. False: it is damaged, or the store is broken. */
bool     weir__sq_sound(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type, sql_sums *sums);
/* mend.c: make j, whose columns may be anything, a job that can be kept; true: it stays in its
 * state, else it fails. Its data may then be in `data`. */
bool      weir__sq_mend_job(weir_job *j, int64_t now, weir_buf *data);
/* The job is not to be taken; set_aside() makes the noted jobs failed, when no statement is at a
 * row of theirs. If its row cannot be changed, it is only passed over. */
void      weir__sq_note_damaged(sq_store *s, uint64_t id);
bool      weir__sq_is_damaged(const sq_store *s, uint64_t id);
weir_code weir__sq_set_aside(sq_store *s, int64_t now);

/* ---- rows.c: jobs in the file ---- */

/* All columns of the row that `st` is at but type and state, whatever they are. */
void      weir__sq_columns(sqlite3_stmt *st, weir_job *j);
/* The row that `st` is at, with its lease, if we are the owner. Its strings point into the row:
 * valid until the next step or reset. False: it makes no sense, or the store is broken. */
bool      weir__sq_decode(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type);
/* The same; a row that makes no sense breaks the batch. */
weir_code weir__sq_read(sq_store *s, sqlite3_stmt *st, weir_job *j, sq_type **type);
/* The job `id`, with its statement still at it: sqlite3_reset() that. False: none, or broken. */
bool      weir__sq_get(sq_store *s, uint64_t id, weir_job *j, sq_type **type, sqlite3_stmt **st);
/* The end of a delivery needs the worker and the history of an active job besides its numbers:
 * valid until the statement is reset. NULL: none, or broken. */
sqlite3_stmt *weir__sq_read_history(sq_store *s, weir_job *j);
/* The job that waits or runs with this unique key, and its state; 0: none, or broken. */
uint64_t  weir__sq_holder(sq_store *s, const sq_type *t, const char *key, weir_state *state);
weir_code weir__sq_insert(sq_store *s, const weir_job *j, const sq_type *t);
/* The same with all that a job can have. */
weir_code weir__sq_insert_complete(sq_store *s, const weir_job *j, const sq_type *t);
/* All numbers of j, and its history if that is in `history`. `sums` has the sums of j's other
 * texts, as they will be. */
weir_code weir__sq_numbers(sq_store *s, const weir_job *j, int64_t type, const weir_buf *history,
                           const sql_sums *sums);
weir_code weir__sq_log(sq_store *s, uint64_t id, bool search, int64_t now, const char *text,
                       size_t len);
weir_code weir__sq_log_line(sq_store *s, uint64_t id, bool search, const weir_line *line);
/* Delete the job, its log and index entries. */
weir_code weir__sq_forget(sq_store *s, uint64_t id, bool search);

/* ---- apply.c: a transition of a job ---- */

/* The job is `j` from now on: in the file, in memory, with its events. Only the texts that e->texts
 * names are used; all of them if a delivery begins or data is new. `sums` has the sums of the texts
 * that were there before. */
weir_code weir__sq_apply(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e,
                         sql_sums *sums, int64_t now);
/* The part in memory: jobs read ahead, deliveries, and weir__sq_note_effects(). */
void      weir__sq_follow(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e,
                          int64_t now);
/* The counters of its type, what is due, and the events. */
void      weir__sq_note_effects(sq_store *s, const weir_job *j, sq_type *t, const weir_effects *e,
                                int64_t now);
/* Remove a job with its event. *found: it was there. */
weir_code weir__sq_remove_job(sq_store *s, uint64_t id, int64_t now, bool *found);

/* ---- read_ahead.c: what will be taken next ---- */

void            weir__sq_ahead_drop(sq_store *s, sq_type *t);
/* A job becomes inactive (its type's count does not have it yet), or is, and changed. */
void            weir__sq_ahead_arrive(sq_store *s, sq_type *t, const weir_job *j, bool with_texts);
/* An inactive job changes, or becomes something else, but not by being taken. */
void            weir__sq_ahead_leave(sq_store *s, sq_type *t, uint64_t id);
/* The next one behind the first `at`, borrowed until it was taken. NULL with more jobs waiting: one
 * with a deadline, or too large, is in the way. */
const weir_job *weir__sq_ahead_at(sq_store *s, sq_type *t, size_t at);
void            weir__sq_ahead_took(sq_store *s, sq_type *t, uint64_t id);

/* ---- search.c ---- */

/* Entries of the search index: rowid = job << SQ_SLOT_BITS | slot. */
enum { SQ_SLOT_DATA, SQ_SLOT_ERROR, SQ_SLOT_LOG, SQ_SLOT_BITS = 14 };
#define SQL_SLOT_BITS "14"
_Static_assert(SQ_SLOT_BITS == 14, "SQL text has this number");
_Static_assert(SQ_SLOT_LOG + WEIR_MAX_LOG <= 1 << SQ_SLOT_BITS, "a job has too few slots");

weir_code weir__sq_index(sq_store *s, uint64_t id, int slot, const char *text, size_t len);
weir_code weir__sq_index_data(sq_store *s, const weir_job *j);
weir_code weir__sq_unindex(sq_store *s, uint64_t id, int slot);
static inline int weir__sq_log_slot(uint64_t n)
{
    return SQ_SLOT_LOG + (int)(n % WEIR_MAX_LOG);
}
weir_code weir__sq_search(sq_store *s, weir_op *op, weir_pager *pager);

/* ---- token.c ---- */

/* If the token of an add is remembered, answer or refuse the add. */
weir_code weir__sq_token_look(sq_store *s, weir_op *op, bool *again);
weir_code weir__sq_token_put(sq_store *s, const weir_op *op);
/* Forget up to `limit` that were used before or at that time; *n: how many. */
weir_code weir__sq_tokens_forget(sq_store *s, int64_t until, size_t limit, size_t *n);

/* ---- active.c ---- */

sq_active *weir__sq_active(const sq_store *s, uint64_t id, uint32_t delivery);   /* NULL: stale */
/* A worker has j, with the lease that it says, of `lease_ms` when it was given. */
weir_code  weir__sq_activate(sq_store *s, const weir_job *j, sq_type *t, int64_t lease_ms,
                             int64_t now);
void       weir__sq_deactivate(sq_store *s, uint64_t id);
/* An active job was changed by hand, and stays active: j is how it is now, with its texts. */
void       weir__sq_active_change(sq_store *s, const weir_job *j);
weir_code  weir__sq_renew(sq_store *s, sq_active *a, int64_t lease_ms, int64_t now);
void       weir__sq_ttl(sq_store *s, sq_active *a, int64_t now);
/* Read the active ones anew from the file; leases that are known stay. */
weir_code  weir__sq_active_load(sq_store *s);

/* ---- clock_step.c ---- */

/* Before each batch: was the wall clock set? Then move what must not follow it. */
void weir__sq_clock(sq_store *s, int64_t now_ms, int64_t steady_ms);
void       weir__sq_active_fini(sq_store *s);

/* ---- sqlite.c ---- */

/* The lock is ours: open the file and serve it. On failure all is released, the lock too.
 * `inherit`: active jobs may be in the hands of living processes. */
weir_code weir__sq_open_owned(sq_store *s, bool inherit, weir_error *err);

/* ---- batch.c ---- */

weir_code weir__sq_run(weir_store *store, weir_op **ops, size_t n, weir_error *err);
void      weir__sq_run_here(sq_store *s, weir_op **ops, size_t n);      /* with the file open */
weir_code weir__sq_load(sq_store *s);
/* Have the commit of this batch write something: as much as the write that found the disk full. */
weir_code weir__sq_try_room(sq_store *s);
/* Do `fn` in a write transaction of its own; as for a batch, events go out after it. */
weir_code weir__sq_alone(sq_store *s, weir_code (*fn)(sq_store *s), weir_error *err);

/* ---- operations: one function a kind ---- */

#define X(kind, member) weir_code weir__sq_op_##member(sq_store *s, weir_op *op);
WEIR_OPS(X)
#undef X
/* weir__job_come_due() for this job; *state: what the job is now. */
weir_code weir__sq_come_due(sq_store *s, weir_due sort, uint64_t id, int64_t now,
                            weir_state *state);
/* Jobs that were active when the last owner died. */
weir_code weir__sq_lose_all(sq_store *s);
/* A list has come to this job: on the page with it, if it is wanted. False: that was the page. */
bool      weir__sq_page_add(sq_store *s, weir_pager *pager, weir_cursor at, int32_t priority);

/* ---- checkpoint.c ---- */

/* Fold the log into the file beside the work of s->db, until it is stopped. s->checkpointer is NULL
 * when out of memory: then SQLite does it by itself. */
void weir__sq_checkpoint(sq_store *s);
void weir__sq_checkpoint_stop(sq_checkpointer *c, sqlite3 *db);

extern const weir_store_ops weir__sqlite_store;

#endif
