/* story.c - the whole story of a job in words, from its members and its history. */
#include "core/story.h"

#include <inttypes.h>

#include "core/history.h"
#include "core/job.h"
#include "core/results.h"

void weir__say_ms(weir_buf *b, int64_t ms)
{
    int64_t s = ms / 1000;
    if (ms < 1000)
        weir__buf_printf(b, "%" PRId64 " ms", ms < 0 ? 0 : ms);
    else if (s < 60)
        weir__buf_printf(b, "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
    else if (s < 3600)
        weir__buf_printf(b, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else if (s < 86400)
        weir__buf_printf(b, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    else
        weir__buf_printf(b, "%" PRId64 " d %" PRId64 " h", s / 86400, s % 86400 / 3600);
}

/* ---- an entry ---- */

/* The text of each kind; the text of its numbers follows. */
static const struct {
    const char *words;
    bool        ran;                /* then how long it ran */
    bool        by;                 /* "by hand", or who else */
} said[WEIR__HISTORY_COUNT] = {
    [WEIR__HISTORY_FAILED_ATTEMPT] = { "failed", .ran = true },
    [WEIR__HISTORY_FAILED]         = { "failed for good", .ran = true },
    [WEIR__HISTORY_TTL_EXCEEDED]   = { "took too long (ttl)", .ran = true },
    [WEIR__HISTORY_STALLED]        = { "its worker was lost", .ran = true },
    [WEIR__HISTORY_RETURNED]       = { "given back by its worker", .ran = true },
    [WEIR__HISTORY_COMPLETE]       = { "complete", .ran = true },
    [WEIR__HISTORY_DUE]            = { .words = "its time came" },
    [WEIR__HISTORY_DEADLINE]       = { .words = "failed: its deadline came before a worker did" },
    [WEIR__HISTORY_RETRIED]        = { "retried", .by = true },
    [WEIR__HISTORY_PROMOTED]       = { "promoted", .by = true },
    [WEIR__HISTORY_DELAYED]        = { "delayed", .by = true },
    [WEIR__HISTORY_CANCELLED]      = { "cancelled", .ran = true, .by = true },
    [WEIR__HISTORY_SET]            = { "set", .by = true },
    [WEIR__HISTORY_CHANGED]        = { "changed", .by = true },
};

/* The outcome of a delivery that was not the last. */
static void say_outcome(weir_buf *b, const weir_history_entry *p)
{
    if (p->until) {
        weir__buf_str(b, p->delivery ? "; tried again in " : ", to start in ");
        weir__say_ms(b, p->until - p->at);
    } else if (p->delivery && p->state == WEIR_STATE_INACTIVE) {
        weir__buf_str(b, "; queued again");
    } else if (p->kind == WEIR__HISTORY_SET) {
        weir__buf_printf(b, " to %s", weir_state_name(p->state));
    } else if (p->state == WEIR_STATE_FAILED && p->kind != WEIR__HISTORY_FAILED &&
               p->kind != WEIR__HISTORY_DEADLINE) {
        weir__buf_str(b, "; failed for good");
    }
}

/* A delay that ended early, or noticeably late. */
static void say_planned(weir_buf *b, const weir_history_entry *p)
{
    enum { LATE_MS = 1000 };
    int64_t late = p->at - p->planned;
    if (p->kind == WEIR__HISTORY_DUE ? late < LATE_MS : p->kind != WEIR__HISTORY_PROMOTED)
        return;
    weir__buf_str(b, ", ");
    weir__say_ms(b, late < 0 ? -late : late);
    weir__buf_str(b, late < 0 ? " early" : " late");
}

static void say_entry(weir_buf *b, const weir_history_entry *p)
{
    weir__buf_str(b, said[p->kind].words);
    if (said[p->kind].by)
        weir__buf_printf(b, " by %s", p->by ? p->by : "hand");
    if (said[p->kind].ran && p->delivery) {
        weir__buf_str(b, " after ");
        weir__say_ms(b, p->at - p->started_at);
    }
    if (p->error)
        weir__buf_printf(b, ": %s", p->error);
    say_outcome(b, p);
    if (p->planned)
        say_planned(b, p);
    if (p->new_priority)
        weir__buf_printf(b, ", priority %" PRId32 " (it was %" PRId32 ")", p->priority,
                         p->old_priority);
    if (p->new_data)
        weir__buf_str(b, ", new data");
}

/* ---- all of it ---- */

static bool put_start(weir_story *s, int64_t at, const char *worker, uint32_t delivery)
{
    return weir__story_moment(s, at, "started by %s (delivery %" PRIu32 ")", worker ? worker : "?",
                              delivery);
}

static bool put_entry(weir_story *s, const weir_history_entry *p)
{
    weir_buf b = { 0 };
    say_entry(&b, p);
    bool ok = (!p->delivery || put_start(s, p->started_at, p->worker, p->delivery)) && !b.failed &&
              weir__story_moment(s, p->at, "%s", b.data);
    weir__buf_fini(&b);
    return ok;
}

/* The original request. */
static int32_t first_priority(const weir_job *j, const weir_history_entry *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].new_priority)
            return p[i].old_priority;
    return j->priority;
}

static bool put_history(weir_story *s, const weir_job *j, const weir_history_entry *p, size_t n)
{
    bool ok = weir__story_moment(s, j->created_at, "added, priority %" PRId32 ", %" PRId32
                                 " attempt%s", first_priority(j, p, n), j->max_attempts,
                                 j->max_attempts == 1 ? "" : "s");
    if (n && p->n > 1)
        ok = ok && weir__story_moment(s, p->started_at ? p->started_at : p->at,
                                      "(what happened before is forgotten: %" PRIu64
                                      " of %" PRIu64 ")", p->n - 1, p[n - 1].n);
    for (size_t i = 0; i < n; i++)
        ok = ok && put_entry(s, &p[i]);
    return ok;
}

/* How its last delivery went, and its end; if no entry of the history has them. */
static bool put_end(weir_story *s, const weir_job *j, const weir_history_entry *p, size_t n)
{
    bool        started = j->started_at != 0, ended = j->finished_at != 0, failed = j->error;
    const char *end = weir_state_name(j->state);
    bool        ok = true;
    for (size_t i = 0; i < n; i++) {
        started = started && p[i].delivery != j->delivery;
        ended = ended && (p[i].state != j->state || p[i].at != j->finished_at);
        failed = failed && p[i].at != j->failed_at;
    }
    ended = ended && !(failed && j->state == WEIR_STATE_FAILED && j->failed_at == j->finished_at);
    if (started)
        ok = put_start(s, j->started_at, j->worker, j->delivery);
    if (failed)             /* by Kue, or set aside: its record was damaged */
        ok = ok && weir__story_moment(s, j->failed_at, "failed: %s", j->error);
    if (ended && j->state == WEIR_STATE_COMPLETE) {
        weir_buf b = { 0 };
        weir__say_ms(&b, j->duration_ms);
        ok = ok && !b.failed && weir__story_moment(s, j->finished_at, "%s after %s", end, b.data);
        weir__buf_fini(&b);
    } else if (ended) {
        ok = ok && weir__story_moment(s, j->finished_at, "%s", end);
    }
    return ok;
}

static bool put_future(weir_story *s, const weir_job *j)
{
    bool ok = true;
    if (j->state == WEIR_STATE_DELAYED)
        ok = weir__story_moment(s, j->promote_at, "due");
    if (j->deadline_at && !weir__finished(j->state))
        ok = ok && weir__story_moment(s, j->deadline_at, "deadline");
    return ok;
}

/* By time; what happened in one millisecond stays in the order of the history. */
static void sort(weir_moment *m, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && m[k - 1].at > m[k].at; k--) {
            weir_moment later = m[k - 1];
            m[k - 1] = m[k];
            m[k] = later;
        }
}

weir_code weir_job_story(const weir_job *job, weir_story **out, weir_error *err)
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_items  past = { 0 };
    weir_story *s = weir__story_create();
    weir_code   rc = s ? WEIR_OK : WEIR_ENOMEM;
    *out = NULL;
    if (!rc && job->history)
        rc = weir__history_read(&in, job->history, job->history_len, &past);
    if (rc && rc != WEIR_ENOMEM) {  /* of a later weir, perhaps: the rest is readable */
        past = (weir_items){ 0 };
        rc = weir__story_moment(s, job->created_at, "(%s)", in.err.msg) ? WEIR_OK : WEIR_ENOMEM;
    }
    if (!rc && (!put_history(s, job, past.item, past.n) || !put_end(s, job, past.item, past.n) ||
                !put_future(s, job)))
        rc = WEIR_ENOMEM;
    weir__arena_free(&arena);
    if (rc) {
        weir_story_free(s);
        return weir_fail(err, WEIR_ENOMEM, "story: out of memory");
    }
    sort(s->moment, s->n);
    *out = s;
    return WEIR_OK;
}
