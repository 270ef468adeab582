/* sqlite.c - the sqlite store: jobs in one file, owned by one process at a time, through which
 * the others work (share.h). This file opens and closes;
 * batch.c runs batches and ops_*.c has the operations. sq.h is the map. */
#include "store/sqlite/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite/outside.h"
#include "store/sqlite/wal.h"

enum { BUSY_MS = 5000, RETRY_MS = 20 };

static const char reader_sql[] = "PRAGMA cache_size = -4096; PRAGMA mmap_size = 0;"
                                 "PRAGMA query_only = ON";
static const char sync_disk[] = "PRAGMA synchronous = FULL";
static const char sync_os[] = "PRAGMA synchronous = NORMAL";

/* ---- the file ---- */

/* The absolute path of a file that need not be there yet: free(). */
static weir_code resolve(const char *rest, char **out, weir_error *err)
{
    *out = realpath(rest, NULL);
    if (*out || errno != ENOENT)
        return *out ? WEIR_OK : weir__sq_file_fail(rest, errno, err);
    const char *slash = strrchr(rest, '/');
    const char *name = slash ? slash + 1 : rest;
    char       *dir = !slash ? strdup(".") : slash == rest ? strdup("/")
                                                           : strndup(rest, (size_t)(slash - rest));
    char       *full = dir ? realpath(dir, NULL) : NULL;
    weir_code   rc = WEIR_OK;
    if (!full)
        rc = weir__sq_file_fail(dir ? dir : rest, dir ? errno : ENOMEM, err);
    else if (!*name)
        rc = weir__sq_file_fail(rest, EISDIR, err);
    else if (asprintf(out, "%s/%s", strcmp(full, "/") ? full : "", name) < 0) {
        *out = NULL;
        rc = weir__sq_file_fail(rest, ENOMEM, err);
    }
    free(dir);
    free(full);
    return rc;
}

/* Only whoever made it may read it. An existing file is not opened here: closing it would drop the
 * locks that SQLite may hold on it for another queue of this process. */
static weir_code make_file(const char *path, weir_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    else if (errno != EEXIST)
        return weir__sq_file_fail(path, errno, err);
    return WEIR_OK;
}

static weir_code open_db(sq_store *s, weir_error *err)
{
    bool look = s->env.read_only;
    int  rc = sqlite3_open_v2(s->path, &s->db,
                             SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                                 (look ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE),
                             look ? NULL : weir__wal_vfs());
    if (rc)
        return weir__sq_db_fail(s->db, rc, s->path, err);
    if (!look && sqlite3_db_readonly(s->db, "main") == 1)
        return weir_fail(err, WEIR_EREADONLY, "%s: no permission to write to it", s->path);
    /* The log may belong to another file: leave both as they are until that is checked. */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    rc = sqlite3_exec(s->db, look ? reader_sql : SQ_OWNER_PRAGMAS, NULL, NULL, NULL);
    if (!rc && !look)
        rc = sqlite3_exec(s->db, s->env.durability == WEIR_DURABILITY_OS ? sync_os : sync_disk,
                          NULL, NULL, NULL);
    if (rc)
        return weir__sq_db_fail(s->db, rc, s->path, err);
    weir_code code = weir__sq_log_check(s, err);
    if (!code)
        code = weir__sq_schema(s->db, s->path, look, err);
    if (!code)
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return code;
}

/* ---- open and close ---- */

/* The lock of PATH-owner is ours; now lock the file, which a process may own by another name. */
static weir_code lock_file(sq_store *s, weir_error *err)
{
    int64_t   left_ms = s->env.wait_owner_ms;
    bool      busy = false;
    weir_code rc = weir__sq_file_look(s, err);
    if (!rc)
        rc = make_file(s->path, err);
    while (!rc && (rc = weir__sq_file_open(s, &busy, err)) == WEIR_EBUSY && busy && left_ms > 0) {
        nanosleep(&(struct timespec){ .tv_nsec = RETRY_MS * 1000000L }, NULL);
        left_ms -= RETRY_MS;
        rc = WEIR_OK;
    }
    return rc && busy ? weir__sq_taken("", 0, s->path, err) : rc;
}

static weir_code load(sq_store *s, bool inherit, weir_error *err)
{
    if (weir__sq_load(s)) {
        *err = s->error;
        return s->error.code;
    }
    weir__sq_file_ready(s);
    weir__sq_checkpoint(s);
    s->agenda.wanted = INT64_MAX;       /* the first TICK is asked for below */
    if (s->active.n && !inherit && !weir__sq_file_attended(s)) {
        weir__sq_file_wait_guards(s);
        weir_code rc = weir__sq_alone(s, weir__sq_lose_all, err);
        if (rc)
            return rc;
    }
    int64_t now = s->env.now(s->env.ctx);
    s->agenda.announced = s->last_id ? now : INT64_MAX;
    if (s->last_id)
        s->env.due(s->env.ctx, now);
    return WEIR_OK;
}

/* At the close, changes that were not written yet are written, if possible. */
static weir_code save_all(sq_store *s)
{
    s->types.must_save = true;
    return WEIR_OK;
}

/* Close the file, whatever of it is open, and then the lock: the store is as before it was opened.
 * The end of their connections says so to the processes that wait for the lock. */
static void release_file(sq_store *s)
{
    weir__sq_serve_leave(s->server);
    weir__sq_checkpoint_stop(s->checkpointer, s->db);
    weir__sq_finalize(s);
    sqlite3_close(s->db);
    weir__sq_file_close(s);
    weir__sq_disown(&s->owner);
    weir__sq_serve_end(s->server);
    weir__sq_active_fini(s);
    weir__sq_types_fini(s);
    weir__map_fini(&s->damaged);
    s->server = NULL;
    s->checkpointer = NULL;
    s->db = NULL;
}

weir_code weir__sq_open_owned(sq_store *s, bool inherit, weir_error *err)
{
    weir__agenda_init(&s->agenda);
    if (!s->env.durability)
        s->env.durability = WEIR_DURABILITY_DISK;
    /* Before the file is opened: who comes meanwhile waits there, and need not try again. */
    weir__sq_serve(&s->server, s->path, &s->env, s->env.durability, &s->stays);
    weir_code rc = lock_file(s, err);
    if (!rc)
        rc = open_db(s, err);
    if (!rc)
        rc = load(s, inherit || s->env.keep_taken, err);
    if (rc)
        release_file(s);
    return rc;
}

static void sq_close(weir_store *base)
{
    sq_store *s = (sq_store *)base;
    if (!s)
        return;
    bool gone = !s->env.read_only && s->file.inode && weir__sq_file_check(s, true, NULL);
    bool writes = !gone && !s->env.read_only && s->file.inode && s->db;
    s->closing = true;
    if (writes && (s->in_use || (s->types.dirty && !s->stale)))
        weir__sq_alone(s, save_all, NULL);
    if (gone || (writes && s->in_use))      /* whoever finds the log again needs all of it */
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    weir__sq_watch_stop(s);
    weir__sq_peer_destroy(s->peer);
    weir__sq_file_part(s);
    release_file(s);
    weir__outbox_fini(&s->out);
    pthread_mutex_destroy(&s->watch_lock);
    free(s->path);
    free(s->name);
    free(s);
}

static weir_code open_reader(sq_store *s, weir_error *err)
{
    bool      busy;
    weir_code rc = weir__sq_file_open(s, &busy, err);
    if (!rc && (rc = open_db(s, err)) == WEIR_EREADONLY && !access(s->path, R_OK))
        weir_fail(err, rc, "%s: no permission to write %s-shm; readers need it when no "
                  "process owns the file", s->path, s->path);
    return rc;
}

/* Before anything is made beside the file. */
static weir_code may_write(const sq_store *s, weir_error *err)
{
    if (!faccessat(AT_FDCWD, s->path, R_OK | W_OK, AT_EACCESS) || errno == ENOENT)
        return WEIR_OK;
    return weir__sq_file_fail(s->path, errno, err);
}

static weir_code open_writer(sq_store *s, weir_error *err)
{
    weir_code rc = may_write(s, err);
    if (!rc)
        rc = weir__sq_peer_create(&s->peer, err);
    sq_peer  *peer = s->peer;
    if (!rc)
        rc = weir__sq_find_owner(s, err);
    if (!rc && !s->peer)
        weir__sq_peer_destroy(peer);
    return rc;
}

static weir_code sq_open(weir_store **out, const weir_url *url, const weir_env *env,
                         weir_error *err)
{
    if (!*url->rest)
        return weir_fail(err, WEIR_EINVAL, "sqlite: a path is missing, as in sqlite:jobs.db");
    sq_store *s = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "sqlite store");
    s->base.ops = &weir__sqlite_store;
    s->env = *env;
    s->asked_durability = env->durability;
    s->owner.fd = -1;
    weir__agenda_init(&s->agenda);
    pthread_mutex_init(&s->watch_lock, NULL);
    s->name = strdup(env->name ? env->name : "");
    weir_code rc = s->name ? resolve(url->rest, &s->path, err)
                           : weir_fail(err, WEIR_ENOMEM, "sqlite store");
    if (!rc)
        rc = weir__sq_place_check(s->path, err);
    if (!rc)
        rc = env->read_only ? open_reader(s, err) : open_writer(s, err);
    if (rc) {
        sq_close(&s->base);
        return rc;
    }
    if (env->test_clock)             /* a test looks at all events as soon as a call returns */
        weir__sq_watch(s, WEIR_WANT_EVENTS);
    *out = &s->base;
    return WEIR_OK;
}

static void sq_want(weir_store *base, uint32_t what)
{
    sq_store *s = (sq_store *)base;
    atomic_store(&s->wanted, true);
    if (what || !s->env.brief)
        atomic_store(&s->stays, true);
    if (atomic_load(&s->serves))
        weir__sq_serve_start(s->server);
    else
        weir__sq_watch(s, what);
}

static weir_code sq_join(weir_store *base, const weir_member *m, weir_error *err)
{
    sq_store *s = (sq_store *)base;
    return weir__sq_join(&s->member, s, m, err);
}

static void sq_leave(weir_store *base)
{
    sq_store *s = (sq_store *)base;
    weir__sq_leave(s->member);
    s->member = NULL;
}

static weir_code sq_post(weir_store *base, const weir_envelope *e, weir_error *err)
{
    return weir__sq_post(((sq_store *)base)->member, e, err);
}

/* No owner is needed for it: the lock is this process's own. */
static int sq_guard(weir_store *base)
{
    return weir__sq_file_guard((sq_store *)base);
}

const weir_store_ops weir__sqlite_store = {
    .name = "sqlite",
    .version = WEIR_STORE_OPS_VERSION,
    .open = sq_open,
    .close = sq_close,
    .run = weir__sq_run,
    .want = sq_want,
    .join = sq_join,
    .leave = sq_leave,
    .post = sq_post,
    .guard_fd = sq_guard,
};
