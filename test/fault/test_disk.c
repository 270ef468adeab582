/* test_disk.c - jobs on a disk that fails, and on one that loses its power.
 *
 * A VFS below the store's counts what is written to the file and its log, lets one of the calls
 * fail, and records them all. So for every single call: whoever got an answer has it, whoever got
 * an error changed nothing, and what is left after a kill or a power cut opens as a whole. The
 * cache is so small that pages reach the log in the middle of a transaction. */
#include "support/store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/sq.h"

#define OS   "sqlite:@/jobs.db?durability=os"
#define DISK "sqlite:@/jobs.db?durability=disk"

/* ---- the disk ---- */

enum { DB, LOG, FILES };
enum what { WRITE, CUT, SYNC, ACK };
enum fault { NO_ROOM, BAD_WRITE, BAD_SYNC, FAULTS };

typedef struct call {
    enum what what;
    int     file;
    int64_t at;                     /* of WRITE; the size of CUT; which one of ACK */
    size_t  len;
    char   *bytes;
} call;

static struct {
    sqlite3_vfs     vfs, *system;
    pthread_mutex_t lock;
    bool            counting, recording;
    enum fault fault;
    long            n[2];           /* writes (and cuts), syncs since counting began */
    long            fails_at;       /* the one of these that fails: 0 for none */
    bool            for_good;       /* and all after it */
    call           *calls;
    size_t          n_calls, cap_calls;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef struct tfile {
    sqlite3_file  base;
    int           which;
    sqlite3_file *real;
} tfile;

#define REAL(f) (((tfile *)(f))->real)
#define CALL(f, method, ...) REAL(f)->pMethods->method(REAL(f), ##__VA_ARGS__)

static void record(enum what what, int file, int64_t at, const void *bytes, size_t len)
{
    if (!disk.recording)
        return;
    if (disk.n_calls == disk.cap_calls) {
        disk.cap_calls = disk.cap_calls ? 2 * disk.cap_calls : 1024;
        disk.calls = realloc(disk.calls, disk.cap_calls * sizeof *disk.calls);
    }
    call *c = &disk.calls[disk.n_calls++];
    *c = (call){ .what = what, .file = file, .at = at, .len = len };
    if (len) {
        c->bytes = malloc(len);
        memcpy(c->bytes, bytes, len);
    }
}

static bool fails(bool sync)
{
    if (!disk.counting)
        return false;
    long n = ++disk.n[sync];
    return disk.fails_at && sync == (disk.fault == BAD_SYNC) &&
           (n == disk.fails_at || (disk.for_good && n > disk.fails_at));
}

static int t_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
    pthread_mutex_lock(&disk.lock);
    int rc;
    if (fails(false)) {             /* half of it is there */
        CALL(f, xWrite, bytes, n / 2, at);
        rc = disk.fault == NO_ROOM ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    } else {
        record(WRITE, ((tfile *)f)->which, at, bytes, (size_t)n);
        rc = CALL(f, xWrite, bytes, n, at);
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int t_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    pthread_mutex_lock(&disk.lock);
    int rc = SQLITE_IOERR_TRUNCATE;
    if (!fails(false)) {
        record(CUT, ((tfile *)f)->which, size, NULL, 0);
        rc = CALL(f, xTruncate, size);
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int t_sync(sqlite3_file *f, int flags)
{
    pthread_mutex_lock(&disk.lock);
    int rc = SQLITE_IOERR_FSYNC;
    if (!fails(true)) {
        record(SYNC, ((tfile *)f)->which, 0, NULL, 0);
        rc = disk.counting || disk.recording ? SQLITE_OK : CALL(f, xSync, flags);
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int t_close(sqlite3_file *f) { return CALL(f, xClose); }
static int t_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return CALL(f, xRead, to, n, at);
}
static int t_size(sqlite3_file *f, sqlite3_int64 *size) { return CALL(f, xFileSize, size); }
static int t_lock(sqlite3_file *f, int level) { return CALL(f, xLock, level); }
static int t_unlock(sqlite3_file *f, int level) { return CALL(f, xUnlock, level); }
static int t_reserved(sqlite3_file *f, int *out) { return CALL(f, xCheckReservedLock, out); }
static int t_control(sqlite3_file *f, int op, void *arg) { return CALL(f, xFileControl, op, arg); }
static int t_sector(sqlite3_file *f) { return CALL(f, xSectorSize); }
static int t_device(sqlite3_file *f) { return CALL(f, xDeviceCharacteristics); }
static int t_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return CALL(f, xShmMap, page, size, extend, out);
}
static int t_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return CALL(f, xShmLock, at, n, flags);
}
static void t_barrier(sqlite3_file *f) { CALL(f, xShmBarrier); }
static int t_unmap(sqlite3_file *f, int del) { return CALL(f, xShmUnmap, del); }

static const sqlite3_io_methods t_methods = {
    .iVersion = 2, .xClose = t_close, .xRead = t_read, .xWrite = t_write,
    .xTruncate = t_truncate, .xSync = t_sync, .xFileSize = t_size, .xLock = t_lock,
    .xUnlock = t_unlock, .xCheckReservedLock = t_reserved, .xFileControl = t_control,
    .xSectorSize = t_sector, .xDeviceCharacteristics = t_device, .xShmMap = t_map,
    .xShmLock = t_shm_lock, .xShmBarrier = t_barrier, .xShmUnmap = t_unmap,
};

static int t_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    (void)vfs;
    if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        return disk.system->xOpen(disk.system, name, f, flags, out);
    tfile *t = (tfile *)f;
    *t = (tfile){ .which = flags & SQLITE_OPEN_WAL ? LOG : DB, .real = (sqlite3_file *)(t + 1) };
    int rc = disk.system->xOpen(disk.system, name, t->real, flags, out);
    if (!rc)
        t->base.pMethods = &t_methods;
    return rc;
}

/* Before the first store is opened, so that the store's VFS stands on this one. */
static int put_disk(void **state)
{
    (void)state;
    disk.system = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.system;
    disk.vfs.pNext = NULL;
    disk.vfs.zName = "faulty";
    disk.vfs.szOsFile += (int)sizeof(tfile);
    disk.vfs.xOpen = t_open;
    return sqlite3_vfs_register(&disk.vfs, 1);
}

static void forget_calls(void)
{
    while (disk.n_calls)
        free(disk.calls[--disk.n_calls].bytes);
    free(disk.calls);
    disk.calls = NULL;
    disk.cap_calls = 0;
}

/* ---- what must be there ---- */

enum { JOBS = 400, BATCH = 24, SNAPSHOTS = 64 };

typedef struct model {
    uint64_t last;                  /* id */
    uint8_t  state[JOBS];           /* [id]; WEIR_STATE_ANY: none */
    uint32_t delivery[JOBS];
} model;

static uint64_t rnd;
static unsigned dice(unsigned sides)
{
    rnd ^= rnd << 13;
    rnd ^= rnd >> 7;
    rnd ^= rnd << 17;
    return (unsigned)((rnd >> 32) % sides);
}

static sqlite3 *db_of(fixture *f)
{
    return ((sq_store *)f->store)->db;
}

static fixture *start(const char *url, uint64_t seed)
{
    rnd = seed * 2654435761u + 88172645463325252u;
    fixture *f = fixture_open(url);
    assert_non_null(f);
    assert_int_equal(sqlite3_exec(db_of(f), "PRAGMA cache_size = 6", NULL, NULL, NULL), SQLITE_OK);
    return f;
}

static char big[70000];

/* Adds of small and large jobs, takes, ends, removals: one commit if all goes well. The model
 * follows the answers. How many failed? */
static size_t one_batch(fixture *f, model *m, size_t n)
{
    static const char *const types[] = { "a", "b", "c" };
    weir_op    op[BATCH] = { 0 }, *ops[BATCH];
    weir_spec  spec[BATCH] = { 0 };
    weir_added added[BATCH] = { 0 };
    weir_job  *job[BATCH] = { 0 };
    bool       used[JOBS] = { 0 };
    size_t     failed = 0;
    if (!big[0])
        memset(big, '7', sizeof big);
    for (size_t i = 0; i < n; i++) {
        uint64_t id = m->last ? 1 + dice((unsigned)m->last) : 0;
        weir_op *o = ops[i] = &op[i];
        unsigned kind = dice(5);
        if (id && !used[id] && m->state[id] == WEIR_STATE_ACTIVE) {
            *o = (weir_op){ .kind = WEIR_OP_FINISH,
                            .u.finish = { .id = id, .delivery = m->delivery[id],
                                          .outcome = dice(2) ? WEIR_OUTCOME_DONE
                                                             : WEIR_OUTCOME_FAIL,
                                          .text = "1", .len = 1 } };
            used[id] = true;
        } else if (id && kind == 0) {
            *o = (weir_op){ .kind = WEIR_OP_TAKE,
                            .u.take = { .types = types, .n_types = 3, .n = 1, .worker = WORKER,
                                        .lease_ms = LEASE_MS, .jobs = &job[i] } };
        } else if (id && !used[id] && kind == 1 && m->state[id] > WEIR_STATE_ACTIVE) {
            *o = (weir_op){ .kind = WEIR_OP_REMOVE, .u.remove.id = id };
            used[id] = true;
        } else {
            spec[i] = (weir_spec){ .type = types[dice(3)], .data = big,
                                   .data_len = 1 + (dice(3) ? dice(300) : dice(sizeof big - 1)) };
            *o = (weir_op){ .kind = WEIR_OP_ADD,
                            .u.add = { .specs = &spec[i], .n = 1, .out = &added[i] } };
        }
        o->now_ms = f->now;
        assert_int_equal(weir__op_check(o, &f->err), WEIR_OK);
    }
    assert_int_equal(run_batch(f, ops, n), WEIR_OK);
    for (size_t i = 0; i < n; i++) {
        weir_op *o = &op[i];
        if (o->err.code) {
            failed++;
            continue;
        }
        if (o->kind == WEIR_OP_ADD) {
            assert_true(added[i].id < JOBS);
            m->last = added[i].id > m->last ? added[i].id : m->last;
            m->state[added[i].id] = WEIR_STATE_INACTIVE;
        } else if (o->kind == WEIR_OP_TAKE && o->u.take.n_jobs) {
            m->state[job[i]->id] = WEIR_STATE_ACTIVE;
            m->delivery[job[i]->id] = job[i]->delivery;
            weir_job_free(job[i]);
        } else if (o->kind == WEIR_OP_FINISH) {
            m->state[o->u.finish.id] = (uint8_t)o->u.finish.state;
        } else if (o->kind == WEIR_OP_REMOVE) {
            m->state[o->u.remove.id] = WEIR_STATE_ANY;
        }
    }
    return failed;
}

/* reopened: who was active has lost its worker. */
static bool agrees(fixture *f, const model *m, bool reopened)
{
    bool same = true;
    for (uint64_t id = 1; same && id < JOBS; id++) {
        weir_state want = m->state[id];
        if (reopened && want == WEIR_STATE_ACTIVE)
            want = WEIR_STATE_INACTIVE;
        same = state_of(f, id) == want;
    }
    release_held(f);
    return same;
}

static char *slurp(const char *dir, const char *name, size_t *len)
{
    char path[TEMPDIR_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *in = fopen(path, "rb");
    *len = 0;
    if (!in)
        return NULL;
    fseek(in, 0, SEEK_END);
    *len = (size_t)ftell(in);
    rewind(in);
    char *bytes = malloc(*len + 1);
    assert_int_equal(fread(bytes, 1, *len, in), *len);
    fclose(in);
    return bytes;
}

static const char *const names[FILES] = { "jobs.db", "jobs.db-wal" };

typedef struct image {
    char  *bytes[FILES];
    size_t len[FILES];
} image;

static void image_free(image *m)
{
    for (int i = 0; i < FILES; i++)
        free(m->bytes[i]);
}

static image image_of(const fixture *f)
{
    image m;
    for (int i = 0; i < FILES; i++)
        m.bytes[i] = slurp(f->dir, names[i], &m.len[i]);
    return m;
}

/* Open what was left on the disk: is it one of these, and sound? Which; -1: none. */
static int open_image(const image *m, const model *const *may_be, int n)
{
    fixture g = { .now = FIXTURE_START };
    assert_true(tempdir_make(g.dir));
    for (int i = 0; i < FILES; i++) {
        char path[TEMPDIR_MAX + 64];
        snprintf(path, sizeof path, "%s/%s", g.dir, names[i]);
        FILE *out = m->bytes[i] ? fopen(path, "wb") : NULL;
        if (out) {
            assert_int_equal(fwrite(m->bytes[i], 1, m->len[i], out), m->len[i]);
            fclose(out);
        }
    }
    bool counting = disk.counting, recording = disk.recording;
    disk.counting = disk.recording = false;
    fixture *h = fixture_open("mem:");      /* for its clock and its record */
    assert_non_null(h);
    h->store->ops->close(h->store);
    h->store = NULL;
    snprintf(h->url, sizeof h->url, "sqlite:%s/jobs.db?durability=os", g.dir);
    int found = -1;
    if (!weir__store_open(&h->store, h->url, &h->env, &h->err)) {
        check_all_is_well(h);
        for (int i = 0; i < n && found < 0; i++)
            if (agrees(h, may_be[i], true))
                found = i;
    } else {
        print_error("%s\n", h->err.msg);
    }
    fixture_close(h);
    tempdir_remove(g.dir);
    disk.counting = counting;
    disk.recording = recording;
    return found;
}

/* ---- a kill ---- */

static void what_was_answered_survives_a_kill(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        fixture *f = start(seed % 2 ? OS : DISK, seed);
        model    m = { 0 };
        for (int i = 0; i < 14; i++) {
            assert_int_equal(one_batch(f, &m, 1 + dice(BATCH)), 0);
            if (!dice(4))
                sqlite3_wal_checkpoint_v2(db_of(f), NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
            image left = image_of(f);
            if (open_image(&left, &(const model *){ &m }, 1) != 0)
                fail_msg("seed %d: batch %d is not there", (int)seed, i);
            image_free(&left);
        }
        fixture_close(f);
    }
}

/* ---- a call that fails ---- */

static long with_fault(const char *url, enum fault fault, long at, bool for_good)
{
    fixture *f = start(url, 7);
    model    m = { 0 };
    disk.fault = fault;
    disk.fails_at = at;
    disk.for_good = for_good;
    disk.n[0] = disk.n[1] = 0;
    assert_int_equal(one_batch(f, &m, BATCH), 0);
    disk.counting = true;
    for (int i = 0; i < 8; i++) {
        long before = disk.n[fault == BAD_SYNC];
        one_batch(f, &m, 1 + dice(i % 2 ? 1 : BATCH));
        if (i == 3 || i == 5)
            sqlite3_wal_checkpoint_v2(db_of(f), NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        bool hit = before < at && disk.n[fault == BAD_SYNC] >= at;
        if (hit && !agrees(f, &m, false))
            fail_msg("%s: fault %d in call %ld: wrong at once", url, fault, at);
        image left = { 0 };
        if (hit && (fault != BAD_SYNC || !for_good))    /* without any sync nobody can tell */
            left = image_of(f);
        if (left.bytes[DB] && open_image(&left, &(const model *){ &m }, 1) != 0)
            fail_msg("%s: fault %d in call %ld: wrong after a kill", url, fault, at);
        image_free(&left);
    }
    long calls = disk.n[fault == BAD_SYNC];
    disk.counting = false;
    if (for_good)                       /* there is room again */
        one_batch(f, &m, BATCH);
    check_all_is_well(f);
    if (!agrees(f, &m, false))
        fail_msg("%s: fault %d in call %ld: wrong in the end", url, fault, at);
    assert_int_equal(reopen(f), WEIR_OK);
    if (!agrees(f, &m, true))
        fail_msg("%s: fault %d in call %ld: wrong when opened again", url, fault, at);
    fixture_close(f);
    return calls;
}

static void each_call_may_fail(void **state)
{
    (void)state;
    for (int fault = NO_ROOM; fault < FAULTS; fault++) {
        for (int for_good = 0; for_good < 2; for_good++) {
            const char *url = fault == BAD_WRITE ? OS : DISK;
            long        n = with_fault(url, fault, 0, false);
            assert_true(n > 5);
            for (long at = 1; at <= n; at += 1 + n / 30)
                with_fault(url, fault, at, for_good);
        }
    }
}

/* ---- a power cut ---- */

static void apply(image *m, const call *c, size_t from, size_t len)
{
    char **bytes = &m->bytes[c->file];
    size_t *size = &m->len[c->file], end = (size_t)c->at + from + len;
    if (c->what == CUT)
        end = (size_t)c->at;
    if (end > *size) {                      /* there is room: see after_cut() */
        memset(*bytes + *size, 0, end - *size);
        *size = end;
    }
    if (c->what == CUT)
        *size = end;
    else if (len)
        memcpy(*bytes + c->at + from, c->bytes + from, len);
}

enum rest { NONE_OF_IT, ALL_OF_IT, SOME_WRITES, SOME_SECTORS, RESTS };

/* The disk when the power goes before call `k`: what was synced, and of the rest whatever. */
static image after_cut(const image *base, size_t k, enum rest rest)
{
    image  m;
    size_t synced[FILES] = { 0 };
    for (int i = 0; i < FILES; i++) {
        size_t room = m.len[i] = base->len[i];
        for (size_t c = 0; c < k; c++)
            if (disk.calls[c].file == i && (size_t)disk.calls[c].at + disk.calls[c].len > room)
                room = (size_t)disk.calls[c].at + disk.calls[c].len;
        m.bytes[i] = malloc(room + 1);
        memcpy(m.bytes[i], base->bytes[i] ? base->bytes[i] : "", m.len[i]);
    }
    for (size_t i = 0; i < k; i++)
        if (disk.calls[i].what == SYNC)
            synced[disk.calls[i].file] = i;
    for (size_t i = 0; i < k; i++) {
        const call *c = &disk.calls[i];
        if (c->what != WRITE && c->what != CUT)
            continue;
        if (i < synced[c->file] || rest == ALL_OF_IT || (rest == SOME_WRITES && dice(2)))
            apply(&m, c, 0, c->len);
        else if (rest == SOME_SECTORS)
            for (size_t at = 0; at < c->len; at += 512)
                if (dice(2))
                    apply(&m, c, at, c->len - at < 512 ? c->len - at : 512);
    }
    return m;
}

static void check_cut(const image *base, const model *snaps, int n_snaps, size_t k, enum rest rest)
{
    int acked = 0;
    for (size_t i = 0; i < k; i++)
        if (disk.calls[i].what == ACK)
            acked = (int)disk.calls[i].at;
    const model *may_be[2] = { &snaps[acked], &snaps[acked + 1 < n_snaps ? acked + 1 : acked] };
    image        left = after_cut(base, k, rest);
    if (open_image(&left, may_be, 2) < 0)
        fail_msg("power cut before call %zu of %zu (%d): batch %d is not there, or half of one",
                 k, disk.n_calls, rest, acked);
    image_free(&left);
}

static void ack(int n)
{
    pthread_mutex_lock(&disk.lock);
    record(ACK, 0, n, NULL, 0);
    pthread_mutex_unlock(&disk.lock);
}

static void what_was_answered_survives_a_power_cut(void **state)
{
    (void)state;
    static model snaps[SNAPSHOTS];
    for (uint64_t seed = 1; seed <= 2; seed++) {
        fixture *f = start(DISK, seed);
        int      n = 0;
        snaps[0] = (model){ 0 };
        one_batch(f, &snaps[0], BATCH);
        image base = image_of(f);
        disk.recording = true;
        while (n < 10) {
            n++;
            snaps[n] = snaps[n - 1];
            assert_int_equal(one_batch(f, &snaps[n], 1 + dice(BATCH)), 0);
            ack(n);
            if (n % 4 == 0)
                sqlite3_wal_checkpoint_v2(db_of(f), NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        }
        disk.recording = false;
        for (size_t k = 0; k <= disk.n_calls; k++) {
            bool boundary = k && disk.calls[k - 1].what != WRITE;
            for (int rest = 0; boundary && rest < RESTS; rest++)
                check_cut(&base, snaps, n + 1, k, rest);
            if (!boundary && !dice(1 + (unsigned)disk.n_calls / 40))
                check_cut(&base, snaps, n + 1, k, dice(RESTS));
        }
        forget_calls();
        image_free(&base);
        fixture_close(f);
    }
}

static size_t syncs_of_file(void)
{
    size_t n = 0;
    pthread_mutex_lock(&disk.lock);
    for (size_t i = 0; i < disk.n_calls; i++)
        n += disk.calls[i].what == SYNC && disk.calls[i].file == DB;
    pthread_mutex_unlock(&disk.lock);
    return n;
}

static void fill(fixture *f, model *m, size_t n)
{
    static weir_spec  specs[BATCH];
    static weir_added added[BATCH];
    memset(big, '7', sizeof big);
    for (size_t i = 0; i < n; i++)
        specs[i] = (weir_spec){ .type = "a", .data = big, .data_len = sizeof big };
    assert_int_equal(add_many(f, specs, n, added), WEIR_OK);
    for (size_t i = 0; i < n; i++)
        m->state[added[i].id] = WEIR_STATE_INACTIVE;
    m->last = added[n - 1].id;
}

/* The same while a thread folds the log into the file and the owner goes on. */
static void a_power_cut_while_the_log_is_folded(void **state)
{
    (void)state;
    static model snaps[SNAPSHOTS];
    fixture     *f = start(DISK, 11);
    int          n = 0;
    assert_int_equal(sqlite3_exec(db_of(f), "PRAGMA cache_size = -16384", NULL, NULL, NULL), 0);
    snaps[0] = (model){ 0 };
    one_batch(f, &snaps[0], BATCH);
    image base = image_of(f);
    disk.recording = true;
    while (n + 1 < SNAPSHOTS && syncs_of_file() < 2) {
        n++;
        snaps[n] = snaps[n - 1];
        if (snaps[n].last < 290)
            fill(f, &snaps[n], BATCH);
        else
            assert_int_equal(one_batch(f, &snaps[n], 1), 0);
        ack(n);
        for (int i = 0; n > SNAPSHOTS / 2 && i < 200 && !syncs_of_file(); i++)
            usleep(1000);                   /* the thread is behind */
    }
    pthread_mutex_lock(&disk.lock);
    disk.recording = false;
    pthread_mutex_unlock(&disk.lock);
    assert_true(syncs_of_file() > 0);
    size_t first = 0;
    while (disk.calls[first].file != DB || disk.calls[first].what != WRITE)
        first++;
    for (int i = 0; i < 16; i++)
        check_cut(&base, snaps, n + 1, first + dice((unsigned)(disk.n_calls - first + 1)),
                  i % RESTS);
    check_cut(&base, snaps, n + 1, disk.n_calls, NONE_OF_IT);
    fixture_close(f);
    forget_calls();
    image_free(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_answered_survives_a_kill),
        cmocka_unit_test(each_call_may_fail),
        cmocka_unit_test(what_was_answered_survives_a_power_cut),
        cmocka_unit_test(a_power_cut_while_the_log_is_folded),
    };
    return cmocka_run_group_tests(tests, put_disk, NULL);
}
