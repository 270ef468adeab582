/* fuzz_fd3.c - what a program says on descriptor 3 under `weir work --exec`. The first byte says
 * how large the pieces are in which it comes, the second whether a very long line begins it. */
#include <string.h>

#include "base/buf.h"
#include "cli/exec/exec_lines.h"
#include "fuzz/fuzz.h"

/* A job that is being worked on, for the progress: one for all inputs. */
static weir_job *a_job(weir_queue **out)
{
    static weir_queue *q;
    static weir_job   *job;
    if (!job) {
        const char *const types[] = { "fuzz", NULL };
        size_t            n = 0;
        MUST(!weir_open(&q, "mem:", NULL, NULL));
        MUST(!weir_add(q, &(weir_spec){ .type = types[0] }, NULL, NULL));
        MUST(!weir_take(q, &(weir_taking){ .types = types, .n = 1, .lease_ms = WEIR_MAX_MS }, &job,
                        &n, NULL) &&
             n == 1);
    }
    *out = q;
    return job;
}

static void use_progress(const said *s)
{
    weir_queue *q;
    weir_job   *job = a_job(&q), *now;
    weir_code   rc = weir_job_progress(job, s->done, s->total, s->text, 0, NULL);
    MUST(!rc || rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
    if (s->done < 0 || s->total <= 0)
        MUST(rc == WEIR_EINVAL);
    if (rc)
        return;
    MUST(!weir_get(q, job->id, &now, NULL));
    MUST(now->progress >= 0 && now->progress <= 100);
    MUST((now->progress == 100) == (s->done >= s->total));
    MUST(!s->text || now->progress_data_len == strlen(s->text));
    weir_job_free(now);
}

static void same_again(const said *s)
{
    weir_buf b = { 0 };
    weir__buf_printf(&b, "progress %lld/%lld", (long long)s->done, (long long)s->total);
    if (s->text)
        weir__buf_printf(&b, " %s", s->text);
    said again = said_on_fd3(b.data);
    MUST(again.kind == SAID_PROGRESS && again.done == s->done && again.total == s->total);
    MUST(!s->text == !again.text && (!s->text || !strcmp(s->text, again.text)));
    weir__buf_fini(&b);
}

static void note_line(void *ctx, const char *line)
{
    MUST(!strchr(line, '\n') && strlen(line) <= LINE_MAX_BYTES);
    weir__buf_str(ctx, line);
    weir__buf_char(ctx, '\n');
}

static void use_line(void *ctx, const char *line)
{
    said s = said_on_fd3(line);
    note_line(ctx, line);
    switch (s.kind) {
    case SAID_NOTHING:
        MUST(!*line);
        break;
    case SAID_PROGRESS:
        MUST(!strncmp(line, "progress ", 9) && (!s.text || *s.text));
        same_again(&s);
        use_progress(&s);
        break;
    case SAID_LOG:
        MUST(!strncmp(line, "log ", 4) && s.text == line + 4);
        break;
    case SAID_OTHER:
        MUST(*line && s.text == line && strncmp(line, "log ", 4));
        break;
    }
}

static void cut(const weir_buf *in, size_t piece, line_fn *fn, weir_buf *lines)
{
    text begun = { 0 };
    for (size_t at = 0, n; at < in->len; at += n) {
        n = in->len - at < piece ? in->len - at : piece;
        lines_add(&begun, in->data + at, n, fn, lines);
        MUST(begun.len <= LINE_MAX_BYTES);
    }
    lines_end(&begun, fn, lines);
    free(begun.bytes);
}

/* Short lines of plain text come out as they are. */
static void nothing_lost(const weir_buf *in, const weir_buf *lines)
{
    if (!in->len || in->len > LINE_MAX_BYTES || memchr(in->data, 0, in->len) ||
        memchr(in->data, '\r', in->len))
        return;
    MUST(lines->len == in->len + (in->data[in->len - 1] != '\n'));
    MUST(!memcmp(lines->data, in->data, in->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    weir_buf in = { 0 }, once = { 0 }, pieces = { 0 };
    if (data[1] & 1) {          /* ends a little before the longest line there may be, or at it */
        size_t fill = LINE_MAX_BYTES - (data[1] >> 1);
        MUST(weir__buf_reserve(&in, fill));
        memset(in.data, 'x', fill);
        in.len = fill;
    }
    weir__buf_add(&in, data + 2, size - 2);
    cut(&in, in.len, use_line, &once);
    cut(&in, (data[1] & 1 ? 1000u : 1u) + data[0], note_line, &pieces);
    MUST(once.len == pieces.len && (!once.len || !memcmp(once.data, pieces.data, once.len)));
    nothing_lost(&in, &once);
    weir__buf_fini(&in);
    weir__buf_fini(&once);
    weir__buf_fini(&pieces);
    return 0;
}
