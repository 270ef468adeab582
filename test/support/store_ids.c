/* store_ids.c - ids as the tests know them. A queue with partitions gives ids that say where a job
 * is; the cases of the conformance suite count from 1. So where there are partitions, ids are
 * numbered as they come, and translated on their way to the store and back. */
#include "support/store_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE (UINT64_C(1) << 40)     /* ids of no job begin here */

bool has_partitions(const char *url)
{
    const char *at = strstr(url, "partitions=");
    return at && atoi(at + strlen("partitions=")) > 1;
}

static uint64_t to_store(const fixture *f, uint64_t id)
{
    for (size_t i = 0; i < f->n_ids; i++) {
        if (f->ids[i].ours == id)
            return f->ids[i].store;
    }
    return id + NOWHERE;
}

uint64_t id_from_store(const fixture *f, uint64_t id)
{
    for (size_t i = 0; f->partitions && i < f->n_ids; i++) {
        if (f->ids[i].store == id)
            return f->ids[i].ours;
    }
    return id >= NOWHERE ? id - NOWHERE : id;
}

/* One more than the highest so far, unless the test itself has named it. */
static uint64_t learn(fixture *f, uint64_t id, uint64_t named_so)
{
    uint64_t last = 0;
    for (size_t i = 0; i < f->n_ids; i++) {
        if (f->ids[i].store == id)
            return f->ids[i].ours;
        last = f->ids[i].ours > last ? f->ids[i].ours : last;
    }
    f->ids = realloc(f->ids, (f->n_ids + 1) * sizeof *f->ids);
    assert_non_null(f->ids);
    f->ids[f->n_ids].store = id;
    f->ids[f->n_ids].ours = named_so ? named_so : last + 1;
    return f->ids[f->n_ids++].ours;
}

void ids_to_store(const fixture *f, weir_op *op)
{
    uint64_t *id;
    for (size_t i = 0; (id = weir__op_row(op)->job(op, i)); i++)
        *id = to_store(f, *id);
}

static void jobs_from_store(const fixture *f, weir_job **jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jobs[i]->id = id_from_store(f, jobs[i]->id);
}

/* "job 27: job 43 has its unique key now" */
static void message_from_store(const fixture *f, char *msg)
{
    char  out[WEIR_ERROR_MAX];
    char *from = msg;
    for (size_t n = 0; n < sizeof out - 24;) {
        if (from - msg > 4 - 1 && !strncmp(from - 4, "job ", 4) && strspn(from, "0123456789"))
            n += (size_t)snprintf(out + n, sizeof out - n, "%" PRIu64,
                                  id_from_store(f, strtoull(from, &from, 10)));
        out[n++] = *from;
        if (!*from++) {
            memcpy(msg, out, n);
            return;
        }
    }
}

/* The store's last id, if it is that, is the test's last. */
static uint64_t last_from_store(const fixture *f, uint64_t id)
{
    uint64_t last = 0;
    for (size_t i = 0; i < f->n_ids; i++) {
        if (f->ids[i].store > id)
            return id;
        last = f->ids[i].ours > last ? f->ids[i].ours : last;
    }
    return last;
}

/* A job that came from elsewhere with an id has kept it. */
static void imported_from_store(fixture *f, const weir_op_import *in)
{
    for (size_t i = 0; in->out && i < in->n; i++) {
        uint64_t *id = &in->out[i].id;
        if (*id)
            *id = learn(f, *id, in->jobs[i].new_id ? 0 : in->jobs[i].job->id);
        message_from_store(f, in->out[i].err.msg);
    }
}

void ids_from_store(fixture *f, weir_op *op)
{
    message_from_store(f, op->err.msg);
    uint64_t *id;
    for (size_t i = 0; (id = weir__op_row(op)->job(op, i)); i++)
        *id = id_from_store(f, *id);
    if (op->err.code)
        return;
    for (size_t i = 0; op->kind == WEIR_OP_ADD && i < op->u.add.n; i++)
        op->u.add.out[i].id = learn(f, op->u.add.out[i].id, 0);
    if (op->kind == WEIR_OP_TAKE)
        jobs_from_store(f, op->u.take.jobs, op->u.take.n_jobs);
    else if (op->kind == WEIR_OP_FINISH)
        jobs_from_store(f, op->u.finish.next.jobs, op->u.finish.next.n_jobs);
    else if (op->kind == WEIR_OP_GET)
        jobs_from_store(f, &op->u.get.job, 1);
    else if (op->kind == WEIR_OP_STATS)
        op->u.stats.stats->last_id = last_from_store(f, op->u.stats.stats->last_id);
    else if (op->kind == WEIR_OP_IMPORT)
        imported_from_store(f, &op->u.import);
    else if (op->kind == WEIR_OP_LIST)
        jobs_from_store(f, op->u.list.page->job, op->u.list.page->n);
}
