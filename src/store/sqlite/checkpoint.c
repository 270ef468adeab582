/* checkpoint.c - folding the log back into the file, without stopping for it.
 *
 * SQLite would do it inside a commit, and everybody would wait until the disk has it. Instead a
 * thread with a connection of its own does it when the log has grown, while commits go on. The log
 * grows little meanwhile: the next commit folds that part in too, and then the log starts again at
 * its beginning. Should the thread not keep up, or not start, a commit does the whole of it, as
 * SQLite would. */
#include "store/sqlite/sq.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"

enum {
    START = 4000,                       /* pages in the log, from which on the thread is at work */
    LIMIT = 40000                       /* ... and from which on nobody waits for it any more */
};

struct sq_checkpointer {
    sq_store       *s;                  /* for the thread: what does not change while it is open */
    pthread_t       thread;
    bool            started;
    pthread_mutex_t lock;               /* guards wanted and closing */
    pthread_cond_t  changed;
    bool            wanted, closing;
    atomic_bool     busy;               /* the thread has been asked and is not done */
    atomic_bool     caller_must;        /* a commit is to do it: little is left, or all of it */
};

/* Not into a file that another program has written over: what it has now does not belong to this
 * log. True: all of the log is in the file. */
static bool fold(const sq_store *s, sqlite3 *db)
{
    int  size = 0, folded = 0;
    bool whole = weir__sq_file_intact(s) &&
                 !sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &size, &folded) &&
                 size == folded;
    weir__sq_file_intact(s);
    return whole;
}

static bool wait_for_work(sq_checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->wanted && !c->closing)
        pthread_cond_wait(&c->changed, &c->lock);
    bool go_on = !c->closing;
    c->wanted = false;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

static void *checkpoint_main(void *arg)
{
    sq_checkpointer *c = arg;
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    int rc = sqlite3_open_v2(c->s->path, &db, flags, NULL);
    if (!rc && !weir__sq_file_there(c->s))      /* the log is not the log of another file */
        rc = SQLITE_CANTOPEN;
    if (!rc)
        rc = sqlite3_exec(db, "PRAGMA cache_size = -256; PRAGMA mmap_size = 0", NULL, NULL, NULL);
    while (wait_for_work(c)) {
        if (!rc)
            fold(c->s, db);
        atomic_store(&c->caller_must, true);
        atomic_store(&c->busy, false);
    }
    sqlite3_close(db);
    return NULL;
}

/* Have the thread do it; false: no thread runs. */
static bool ask_thread(sq_checkpointer *c)
{
    if (!c->started)
        c->started = !weir__thread_start(&c->thread, checkpoint_main, c, "weir-fold", NULL);
    if (!c->started)
        return false;
    atomic_store(&c->busy, true);
    pthread_mutex_lock(&c->lock);
    c->wanted = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return true;
}

/* After each commit, with the size of the log. If it fails here, it is tried again after the next
 * commit. */
static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    sq_checkpointer *c = ctx;
    (void)name;                         /* "main": no other database is attached */
    weir__sq_log_grew(c->s, pages);
    bool now = atomic_exchange(&c->caller_must, false) || pages >= LIMIT ||
               weir__sq_log_must_fold(c->s);
    if (!now && pages >= START && !atomic_load(&c->busy))
        now = !ask_thread(c);
    if (now && fold(c->s, db))
        weir__sq_log_folded(c->s);
    return SQLITE_OK;
}

void weir__sq_checkpoint(sq_store *s)
{
    sq_checkpointer *c = s->checkpointer = calloc(1, sizeof *c);
    if (!c)
        return;
    c->s = s;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    weir__sq_log_begin(s);
    sqlite3_wal_hook(s->db, on_commit, c);
}

void weir__sq_checkpoint_stop(sq_checkpointer *c, sqlite3 *db)
{
    if (!c)
        return;
    sqlite3_wal_hook(db, NULL, NULL);
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->started)
        pthread_join(c->thread, NULL);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
}
