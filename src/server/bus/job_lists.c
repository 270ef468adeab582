/* job_lists.c - actions of the job service that read many jobs, a page after the other, on the
 * thread of the service. The rules are the rules of Vert.x Kue's HTTP API (kue/kue_range.c). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/bus/job_call.h"

static void comma(job_call *c)
{
    if (c->out.len > 1)
        weir__buf_char(&c->out, ',');
}

/* Is the reply still short enough? False: the call has failed. */
static bool fits(job_call *c)
{
    if (c->out.len < WEIR_MAX_BUS_BODY)
        return true;
    job_call_fail(c, JOB_CALL_FAILED, "the answer is longer than %d bytes; ask for less",
                  WEIR_MAX_BUS_BODY);
    return false;
}

void job_call_log(job_call *c)
{
    uint64_t after = 0;
    size_t   n = 1;
    weir__buf_char(&c->out, '[');
    while (n) {
        weir_lines *lines = NULL;
        weir_code   rc = weir_logs(c->q, (uint64_t)c->args.id, after, 0, &lines, &c->err);
        if (rc && rc != WEIR_ENOENT) {
            job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
            return;
        }
        n = lines ? lines->n : 0;
        for (size_t i = 0; i < n; i++) {
            comma(c);
            weir__json_string(&c->out, lines->line[i].text, strlen(lines->line[i].text));
            after = lines->line[i].n;
        }
        weir_lines_free(lines);
        if (!fits(c))
            return;
    }
    weir__buf_char(&c->out, ']');
    job_call_reply(c);
}

void job_call_ids(job_call *c)
{
    weir_query query = { .state = c->state, .ids_only = true, .limit = WEIR_MAX_PAGE };
    bool       more = true;
    weir__buf_char(&c->out, '[');
    while (more) {
        weir_page *page;
        if (weir_list(c->q, &query, &page, &c->err)) {
            job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
            return;
        }
        for (size_t i = 0; i < page->n; i++) {
            comma(c);
            weir__buf_uint(&c->out, page->job[i]->id);
        }
        more = page->more;
        query.after = page->next;
        weir_page_free(page);
        if (!fits(c))
            return;
    }
    weir__buf_char(&c->out, ']');
    job_call_reply(c);
}

/* ---- ranges ---- */

/* Read the places of `want` jobs behind the first `skip`, from the nearer end. */
static weir_code read_places(job_call *c, weir_query *query, size_t skip, size_t want,
                             srv_kue_place *place, size_t *n)
{
    bool more = true;
    *n = 0;
    while (more && *n < want) {
        weir_page *page;
        weir_code  rc = weir_list(c->q, query, &page, &c->err);
        if (rc)
            return rc;
        for (size_t i = 0; i < page->n && *n < want; i++) {
            if (skip)
                skip--;
            else
                place[(*n)++] = (srv_kue_place){ page->job[i]->id, page->job[i]->priority };
        }
        more = page->more;
        query->after = page->next;
        weir_page_free(page);
    }
    return WEIR_OK;
}

/* Jobs that were removed meanwhile are left out. */
static void reply_jobs(job_call *c, const srv_kue_place *place, size_t n)
{
    weir__buf_char(&c->out, '[');
    for (size_t i = 0; i < n; i++) {
        weir_job *job;
        weir_code rc = weir_get(c->q, place[i].id, &job, &c->err);
        if (rc && rc != WEIR_ENOENT) {
            job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
            return;
        }
        if (rc)
            continue;
        comma(c);
        srv_vertx_job(&c->out, job);
        weir_job_free(job);
        if (!fits(c))
            return;
    }
    weir__buf_char(&c->out, ']');
    job_call_reply(c);
}

static void range(job_call *c, weir_state state, const char *type)
{
    enum { PAGE = 32 };                     /* jobs may be large */
    int64_t  from = c->args.from, to = c->args.to;
    uint64_t count;
    if (to < from) {
        job_call_fail(c, JOB_CALL_FAILED, "to can not be greater than from");   /* its words */
        return;
    }
    if (weir_count(c->q, state, type, &count, &c->err)) {
        job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
        return;
    }
    if (!srv_kue_ranks(count, &from, &to)) {
        reply_jobs(c, NULL, 0);
        return;
    }
    bool   sorted = !srv_kue_same_order(state, type) && count <= SRV_KUE_MAX_SORTED;
    size_t ahead = (size_t)from, behind = (size_t)((int64_t)count - 1 - to);
    size_t skip = sorted ? 0 : behind < ahead ? behind : ahead;
    size_t want = sorted ? (size_t)count : (size_t)(to - from) + 1;
    if (want > SRV_KUE_MAX_RANGE || skip > SRV_KUE_MAX_REACH) {
        job_call_fail(c, JOB_CALL_FAILED, "the range has %zu jobs, %zu from the nearer end of the "
                      "list; at most %d, and %d from it", want, skip, SRV_KUE_MAX_RANGE,
                      SRV_KUE_MAX_REACH);
        return;
    }
    weir_query     query = { .state = state, .type = type, .ids_only = !sorted,
                             .descending = !sorted && behind < ahead,
                             .limit = sorted ? PAGE : WEIR_MAX_PAGE };
    srv_kue_place *place = calloc(want, sizeof *place);
    size_t         n = 0;
    weir_code      rc = place ? read_places(c, &query, skip, want, place, &n)
                              : weir_fail(&c->err, WEIR_ENOMEM, "out of memory");
    if (rc) {
        job_call_fail(c, JOB_CALL_FAILED, "%s", c->err.msg);
    } else {
        if (sorted)
            n = srv_kue_cut(place, n, from, to);
        n = srv_kue_sort(place, n, !c->args.order || strcmp(c->args.order, "asc") != 0);
        reply_jobs(c, place, n);
    }
    free(place);
}

void job_call_range(job_call *c)
{
    range(c, WEIR_STATE_ANY, NULL);
}

/* A state that does not exist has no jobs, as in Vert.x Kue. */
static void range_of_state(job_call *c, const char *type)
{
    weir_state state;
    if (c->args.state && weir_state_parse(c->args.state, &state))
        range(c, state, type);
    else
        reply_jobs(c, NULL, 0);
}

void job_call_state_range(job_call *c)
{
    range_of_state(c, NULL);
}

void job_call_type_range(job_call *c)
{
    range_of_state(c, c->args.type);
}
