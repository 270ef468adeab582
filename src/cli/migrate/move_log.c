/* move_log.c - the logs of many jobs, read together: see mover.h. */
#include "cli/migrate/mover.h"

#include <stdlib.h>
#include <string.h>

void move_log_fini(move_log *log)
{
    for (size_t i = 0; i < log->n_pages; i++)
        weir_lines_free(log->page[i]);
    free(log->own);
    *log = (move_log){ 0 };
}

static bool goes_on(const move_log *log)
{
    return log->n_pages && log->n_pages < MOVE_PAGES &&
           log->page[log->n_pages - 1]->n == WEIR_MAX_PAGE;
}

/* Its pages as one array. Lines that came while it was read may push out the first. */
static weir_code join(move_log *log, weir_error *err)
{
    size_t n = 0;
    if (log->n_pages == 1) {
        log->line = log->page[0]->line;
        log->n = log->page[0]->n;
        return WEIR_OK;
    }
    log->own = malloc(MOVE_PAGES * WEIR_MAX_PAGE * sizeof *log->own);
    if (!log->own)
        return weir_fail(err, WEIR_ENOMEM, "log: out of memory");
    for (size_t i = 0; i < log->n_pages; i++) {
        memcpy(log->own + n, log->page[i]->line, log->page[i]->n * sizeof *log->own);
        n += log->page[i]->n;
    }
    size_t surplus = n > WEIR_MAX_LOG ? n - WEIR_MAX_LOG : 0;
    log->line = log->own + surplus;
    log->n = n - surplus;
    return WEIR_OK;
}

/* The pages behind the first, one by one: few logs are that long. */
static weir_code read_rest(weir_queue *q, uint64_t id, move_log *log, weir_error *err)
{
    weir_code rc = WEIR_OK;
    while (!rc && goes_on(log)) {
        const weir_lines *last = log->page[log->n_pages - 1];
        weir_lines       *page;
        rc = weir_logs(q, id, last->line[last->n - 1].n, WEIR_MAX_PAGE, &page, err);
        if (!rc)
            log->page[log->n_pages++] = page;
    }
    log->gone = rc == WEIR_ENOENT;
    if (log->gone || rc)
        return log->gone ? WEIR_OK : rc;
    return log->n_pages ? join(log, err) : WEIR_OK;
}

weir_code move_read_logs(weir_queue *q, weir_job *const *jobs, size_t n, move_log *out,
                         weir_error *err)
{
    weir_future **f = calloc(n ? n : 1, sizeof(weir_future *));
    weir_code     rc = f ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "log: out of memory");
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; !rc && i < n; i++)
        if (jobs[i])
            rc = weir_logs_async(q, jobs[i]->id, 0, WEIR_MAX_PAGE, &out[i].page[0], &f[i], err);
    for (size_t i = 0; f && i < n; i++) {
        if (!f[i])
            continue;
        weir_error why;
        weir_code  got = weir_future_wait(f[i], WEIR_FOREVER, &why);
        out[i].n_pages = !got;
        out[i].gone = got == WEIR_ENOENT;
        if (got && !out[i].gone && !rc)
            rc = weir_fail(err, got, "%s", why.msg);
        weir_future_free(f[i]);
    }
    for (size_t i = 0; !rc && i < n; i++)
        if (jobs[i] && !out[i].gone)
            rc = read_rest(q, jobs[i]->id, &out[i], err);
    free(f);
    return rc;
}
