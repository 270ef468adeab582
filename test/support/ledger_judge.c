/* ledger_judge.c - the parent's side of the ledger: read it and compare it with the store. See
 * ledger.h. */
#include "support/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum { MOST_DELIVERIES = 64, MOST_LISTENERS = 16 };

/* What the ledger says of one job. */
typedef struct entry {
    uint64_t key;
    uint32_t deliveries[MOST_DELIVERIES];
    uint32_t n_deliveries;
    int      complete_at[MOST_LISTENERS];    /* processes that got its complete event */
    uint32_t n_complete;
    bool     acknowledged, stored;
} entry;

typedef struct book {
    weir_map       by_id;           /* id -> entry */
    weir_map       wanted;          /* key + 1 -> anything */
    weir_map       id_of;           /* key + 1 -> the entry of its job */
    ledger_result *out;
    uint64_t       poison;
} book;

uint64_t ledger_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void blame(book *b, const char *what, uint64_t id)
{
    if (!b->out->trouble[0])
        snprintf(b->out->trouble, sizeof b->out->trouble, "job %" PRIu64 " %s", id, what);
}

static entry *entry_of(book *b, uint64_t id)
{
    entry *e = weir__map_get(&b->by_id, id);
    if (!e) {
        e = calloc(1, sizeof *e);
        weir__map_put(&b->by_id, id, e);
    }
    return e;
}

/* The job `id` has this key: no other job may have it. */
static void set_key(book *b, entry *e, uint64_t id, uint64_t key)
{
    entry *other = weir__map_get(&b->id_of, key + 1);
    if (other && other != e) {
        b->out->added_twice++;
        blame(b, "has the key of another job", id);
    }
    if (!weir__map_get(&b->wanted, key + 1)) {
        b->out->invented++;
        blame(b, "was never added", id);
    }
    e->key = key;
    weir__map_put(&b->id_of, key + 1, e);
}

static void read_begin(book *b, uint64_t id, uint32_t delivery, uint64_t key)
{
    entry *e = entry_of(b, id);
    set_key(b, e, id, key);
    b->out->deliveries++;
    b->out->executed += e->n_deliveries == 0;
    if (e->n_complete) {
        b->out->begun_after++;
        blame(b, "began after it was complete", id);
    }
    for (uint32_t i = 0; i < e->n_deliveries; i++) {
        if (e->deliveries[i] == delivery) {
            b->out->begun_twice++;
            blame(b, "began twice with one delivery", id);
        }
    }
    if (e->n_deliveries < MOST_DELIVERIES)
        e->deliveries[e->n_deliveries++] = delivery;
}

/* Every process that shares the store gets the event, each of them once. */
static void read_done(book *b, uint64_t id, int pid)
{
    entry *e = entry_of(b, id);
    for (uint32_t i = 0; i < e->n_complete; i++) {
        if (e->complete_at[i] == pid) {
            b->out->completed_twice++;
            blame(b, "completed twice", id);
        }
    }
    if (e->n_complete < MOST_LISTENERS)
        e->complete_at[e->n_complete++] = pid;
}

static void read_line(book *b, const char *line)
{
    static char mark;
    uint64_t    a, c;
    uint32_t    delivery;
    int         pid;
    if (sscanf(line, "want %" SCNu64, &a) == 1) {
        weir__map_put(&b->wanted, a + 1, &mark);
    } else if (sscanf(line, "added %" SCNu64 " %" SCNu64, &a, &c) == 2) {
        entry *e = entry_of(b, c);
        set_key(b, e, c, a);
        b->out->acknowledged += !e->acknowledged;
        e->acknowledged = true;
    } else if (sscanf(line, "begin %" SCNu64 " %" SCNu32 " %" SCNu64, &a, &delivery, &c) == 3) {
        read_begin(b, a, delivery, c);
    } else if (sscanf(line, "done %" SCNu64 " %d", &a, &pid) == 2) {
        read_done(b, a, pid);
    }
}

static void judge_job(book *b, const weir_job *job)
{
    uint64_t key = strtoull(job->data + strlen("{\"k\":"), NULL, 10);
    entry   *e = entry_of(b, job->id);
    set_key(b, e, job->id, key);
    e->stored = true;
    b->out->stored++;
    if (key == b->poison) {
        b->out->spared = job->state != WEIR_STATE_FAILED;
        return;
    }
    b->out->failed += job->state == WEIR_STATE_FAILED;
    b->out->unfinished += job->state != WEIR_STATE_FAILED && job->state != WEIR_STATE_COMPLETE;
    if (job->state != WEIR_STATE_COMPLETE)
        blame(b, weir_state_name(job->state), job->id);
}

static weir_code judge_jobs(book *b, weir_queue *q, weir_error *err)
{
    weir_query query = { .limit = WEIR_MAX_PAGE };
    for (bool more = true; more;) {
        weir_page *page;
        weir_code  rc = weir_list(q, &query, &page, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < page->n; i++)
            judge_job(b, page->job[i]);
        more = page->more;
        query.after = page->next;
        weir_page_free(page);
    }
    return WEIR_OK;
}

static weir_code judge_store(book *b, const char *url, weir_error *err)
{
    weir_queue  *q;
    weir_report *report;
    weir_code    rc = weir_open(&q, url, NULL, err);
    if (rc)
        return rc;
    rc = judge_jobs(b, q, err);
    if (!rc)
        rc = weir_check(q, false, &report, err);
    if (!rc) {
        b->out->inconsistent = report->n;
        if (report->n && !b->out->trouble[0])
            snprintf(b->out->trouble, sizeof b->out->trouble, "check: %.200s", report->line[0]);
        weir_report_free(report);
    }
    weir_close(q);
    return rc;
}

/* Acknowledged, and neither in the store nor begun as one that is removed when it is complete. */
static void count_lost(book *b)
{
    uint64_t id;
    size_t   pos = 0;
    void    *value;
    while (weir__map_next(&b->by_id, &pos, &id, &value)) {
        entry *e = value;
        bool   removed = e->key % 7 == 0 && e->n_deliveries > 0;
        if (e->acknowledged && !e->stored && !removed) {
            b->out->lost++;
            blame(b, "is lost", id);
        }
        free(e);
    }
}

bool ledger_judge(const char *path, const char *url, uint64_t poison, ledger_result *out)
{
    book       b = { .out = out, .poison = poison };
    char       line[200];
    weir_error err;
    *out = (ledger_result){ 0 };
    FILE *f = fopen(path, "r");
    if (!f) {
        snprintf(out->trouble, sizeof out->trouble, "%s cannot be read", path);
        return false;
    }
    while (fgets(line, sizeof line, f))
        read_line(&b, line);
    fclose(f);
    weir_code rc = judge_store(&b, url, &err);
    if (rc)
        snprintf(out->trouble, sizeof out->trouble, "%s", err.msg);
    else
        count_lost(&b);
    weir__map_fini(&b.by_id);
    weir__map_fini(&b.wanted);
    weir__map_fini(&b.id_of);
    return rc == WEIR_OK;
}

uint64_t ledger_acknowledged(const char *path)
{
    char     line[200];
    uint64_t n = 0;
    FILE    *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, "added ", 6) == 0;
    if (f)
        fclose(f);
    return n;
}
