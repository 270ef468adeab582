/* explain.c - why a job is not running, or what became of it, in words. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/job.h"
#include "core/results.h"
#include "core/story.h"
#include "runtime/future.h"
#include "weir/data.h"
#include "weir/schedule.h"

/* Nothing in a store says which conditions its workers have. */
#define NO_WORKER                                                                                \
    ": it seems that no worker is running, or that the conditions of the running workers "       \
    "(--when) are not true for this job."

/* All that is looked at. */
typedef struct facts {
    weir_job              *job;
    const weir_type_stats *type;      /* of the job's type */
    bool                   all_paused;
    uint64_t               ahead;     /* jobs of its type that are before it ... */
    bool                   ahead_more;/* ... at least */
    int64_t                now;
    bool                   looking;   /* the store is another process's */
} facts;

/* As weir/task.h makes them. */
static bool is_task(weir_job *j)
{
    return j->search_keys && strcmp(j->search_keys, "index") == 0 &&
           weir_data_text(j, "task", NULL);
}

static void say_ago(weir_buf *b, int64_t now, int64_t at)
{
    weir__say_ms(b, now - at);
    weir__buf_str(b, " ago");
}

static void say_last_error(weir_buf *why, const weir_job *j)
{
    if (j->error)
        weir__buf_printf(why, " The last error was: %s.", j->error);
}

static void say_suspect(weir_buf *why, const weir_job *j)
{
    if (!weir__job_is_suspect(j))
        return;
    weir__buf_printf(why, " A worker died with it %d time%s (at most %d), so that it %s.", j->lost,
                     j->lost == 1 ? "" : "s", j->max_lost,
                     j->state == WEIR_STATE_ACTIVE ? "runs alone in this one"
                                             : "runs alone, in a worker that has no other job");
}

static weir_remedy explain_waiting(const facts *f, weir_buf *why)
{
    enum { QUIET_MS = 10000 };        /* with jobs waiting, a worker would have taken one by then */
    const weir_job *j = f->job;
    weir_remedy     remedy = WEIR_REMEDY_NONE;
    if (f->type->paused || f->all_paused) {
        weir__buf_printf(why, "It waits because %s%s is paused.", f->all_paused ? "" : "type ",
                         f->all_paused ? "the whole queue" : j->type);
        return f->all_paused ? WEIR_REMEDY_RESUME_ALL : WEIR_REMEDY_RESUME;
    }
    weir__buf_str(why, "It waits for a worker");
    if (f->ahead)
        weir__buf_printf(why, "; %s%" PRIu64 " of its type %s before it",
                         f->ahead_more ? "at least " : "", f->ahead, f->ahead == 1 ? "is" : "are");
    else
        weir__buf_str(why, " and is the next of its type");
    uint64_t active = f->type->count[WEIR_STATE_ACTIVE];
    if (active) {
        weir__buf_printf(why, ". %" PRIu64 " of them %s running now.", active,
                         active == 1 ? "is" : "are");
        remedy = WEIR_REMEDY_ADD_WORKERS;
    } else if (!f->type->last_taken_at && j->delivery) {
        weir__buf_str(why, ". None of them is running" NO_WORKER);
        remedy = WEIR_REMEDY_START_WORKER;
    } else if (!f->type->last_taken_at) {
        weir__buf_printf(why, ". No worker has ever taken a job of type %s" NO_WORKER, j->type);
        remedy = WEIR_REMEDY_START_WORKER;
    } else if (f->now - f->type->last_taken_at > QUIET_MS) {
        weir__buf_str(why, ". None of them is running, and the last was taken ");
        say_ago(why, f->now, f->type->last_taken_at);
        weir__buf_str(why, NO_WORKER);
        remedy = WEIR_REMEDY_START_WORKER;
    } else {
        weir__buf_str(why, ".");
    }
    say_suspect(why, j);
    say_last_error(why, j);
    return remedy;
}

static weir_remedy explain_delayed(const facts *f, weir_buf *why)
{
    enum { LATE_MS = 2000 };
    const weir_job *j = f->job;
    if (j->promote_at >= WEIR_PARKED_AT) {
        weir__buf_str(why, "It is on its way from one store to another: a migration has parked "
                           "it here, and the other store may have it too.");
        return WEIR_REMEDY_FINISH_MIGRATION;
    }
    if (j->attempts)
        weir__buf_printf(why, "Attempt %d of %d failed; it will be tried again ", j->attempts,
                         j->max_attempts);
    else
        weir__buf_str(why, "It was asked to start ");
    bool late = f->now - j->promote_at > LATE_MS;
    if (late) {
        weir__buf_str(why, "at a time that passed ");
        say_ago(why, f->now, j->promote_at);
        weir__buf_str(why, ". Nobody has the store open to queue it.");
    } else {
        weir__buf_str(why, "in ");
        weir__say_ms(why, j->promote_at - f->now);
        weir__buf_str(why, ".");
    }
    say_last_error(why, j);
    return late ? WEIR_REMEDY_START_WORKER : WEIR_REMEDY_PROMOTE;
}

static void say_lease(weir_buf *why, const weir_job *j, int64_t now)
{
    if (!j->lease_until)
        return;
    if (j->lease_until > now) {
        weir__buf_str(why, " Its lease ends in ");
        weir__say_ms(why, j->lease_until - now);
        weir__buf_str(why, ", unless the worker renews it.");
    } else {
        weir__buf_str(why, " Its lease ended ");
        say_ago(why, now, j->lease_until);
        weir__buf_printf(why, ": the worker seems to be lost, and the job %s.",
                         j->lost < j->max_lost ? "will be queued again" : "will fail");
    }
}

static weir_remedy explain_active(const facts *f, weir_buf *why)
{
    const weir_job *j = f->job;
    weir__buf_printf(why, "Worker %s has been on it for ", j->worker ? j->worker : "?");
    weir__say_ms(why, f->now - j->started_at);
    weir__buf_printf(why, " (attempt %d of %d, delivery %" PRIu32 ", %d%% done).", j->attempts + 1,
                     j->max_attempts, j->delivery, j->progress);
    say_lease(why, j, f->now);
    if (j->ttl_ms) {
        weir__buf_str(why, " It fails if it shows no progress for ");
        weir__say_ms(why, j->ttl_ms);
        weir__buf_str(why, " (ttl).");
    }
    say_suspect(why, j);
    say_last_error(why, j);
    /* The owner of the store can write to it, this process can not. */
    return f->looking ? WEIR_REMEDY_STOP_WORKER : WEIR_REMEDY_CANCEL;
}

static weir_remedy explain_complete(const facts *f, weir_buf *why)
{
    const weir_job *j = f->job;
    weir__buf_str(why, "It was completed ");
    say_ago(why, f->now, j->finished_at);
    weir__buf_str(why, ", in ");
    weir__say_ms(why, j->duration_ms);
    if (j->attempts > 1)
        weir__buf_printf(why, ", at attempt %d of %d", j->attempts, j->max_attempts);
    weir__buf_str(why, ".");
    return WEIR_REMEDY_NONE;
}

static weir_remedy explain_failed(const facts *f, weir_buf *why)
{
    const weir_job *j = f->job;
    const char *error = j->error ? j->error : "no reason was given";
    weir__buf_str(why, "It failed for good ");
    say_ago(why, f->now, j->finished_at);
    if (strcmp(error, WEIR__DEADLINE_TEXT) == 0)
        weir__buf_str(why, ": its deadline came before a worker did.");
    else if (j->lost > j->max_lost)
        weir__buf_printf(why, ": %s. Perhaps the job itself kills its workers.", error);
    else
        weir__buf_printf(why, ", after %d of %d attempts: %s.", j->attempts, j->max_attempts,
                         error);
    return strcmp(error, WEIR__TTL_TEXT) == 0 ? WEIR_REMEDY_RETRY_LONGER : WEIR_REMEDY_RETRY;
}

static weir_remedy explain_cancelled(const facts *f, weir_buf *why)
{
    const char *reason = is_task(f->job) ? weir_value_text(f->job, "result_state", NULL) : NULL;
    weir__buf_str(why, "It was cancelled ");
    say_ago(why, f->now, f->job->finished_at);
    weir__buf_printf(why, "%s%s%s.", f->job->started_at ? "" : ", before it was ever started",
                     reason ? ": " : "", reason ? reason : "");
    return WEIR_REMEDY_RETRY;
}

static weir_remedy (*const explain_state[WEIR_STATE_COUNT])(const facts *, weir_buf *) = {
    [WEIR_STATE_INACTIVE]  = explain_waiting,
    [WEIR_STATE_DELAYED]   = explain_delayed,
    [WEIR_STATE_ACTIVE]    = explain_active,
    [WEIR_STATE_COMPLETE]  = explain_complete,
    [WEIR_STATE_FAILED]    = explain_failed,
    [WEIR_STATE_CANCELLED] = explain_cancelled,
};

/* Who made it? */
static void say_schedule(weir_buf *why, weir_job *j, int64_t now)
{
    const char *name = weir_value_text(j, "schedule", NULL);
    int64_t     at = weir_value_int(j, "scheduled_at", 0);
    if (!name || !at)
        return;
    weir__buf_printf(why, " The schedule %s has added it, for a time ", name);
    weir__say_ms(why, at > now ? at - now : now - at);
    weir__buf_str(why, at > now ? " ahead." : " ago.");
}

/* The workers that may do it, and when it is due again. Workers are programs that serve its
 * version: a worker that is started for its type alone is no remedy. */
static void say_task(weir_buf *why, weir_job *j, weir_remedy *remedy)
{
    const char *version = strchr(j->type, '@'), *when;
    bool        ready = j->state == WEIR_STATE_INACTIVE || j->state == WEIR_STATE_DELAYED;
    char       *words = NULL;
    if (!is_task(j))
        return;
    if (ready && version) {
        weir__buf_printf(why, " It needs a worker of version %s or later.", version + 1);
        *remedy = *remedy == WEIR_REMEDY_START_WORKER ? WEIR_REMEDY_NONE : *remedy;
    }
    if (j->state == WEIR_STATE_CANCELLED || !(when = weir_data_text(j, "schedule", NULL)))
        return;
    weir_schedule s = { .when = when, .zone = weir_data_text(j, "zone", NULL) };
    if (!weir_schedule_words(&s, &words, NULL))
        weir__buf_printf(why, " Its schedule runs it %s.", words);
    free(words);
}

/* ---- gathering ---- */

/* A job that is being explained: one read after the other, each begun by the callback of the
 * answer to the one before, so that nobody waits. Lives inside its future. */
typedef struct explainer explainer;
struct explainer {
    weir_ticket       ticket;       /* the read under way ... */
    void            (*got)(explainer *x);       /* ... and what comes with its answer */
    weir_queue       *q;
    weir_future      *future;
    weir_explanation *e, **out;
    weir_stats       *stats;
    facts             f;
};

static void fill(void *ctx, bool wanted)
{
    explainer *x = ctx;
    if (wanted) {
        *x->out = x->e;
        x->e = NULL;
    }
}

static void end(explainer *x, const weir_error *err)
{
    weir_future *f = x->future;
    weir_stats_free(x->stats);
    if (err->code) {
        weir_explanation_free(x->e);
        x->e = NULL;
    }
    weir__future_ref(f);
    weir__future_end(f, err, fill, x);
    weir_explanation_free(x->e);         /* the caller has given it up */
    weir__future_unref(f);
}

static void no_memory(explainer *x)
{
    weir_error err;
    weir_fail(&err, WEIR_ENOMEM, "explain: out of memory");
    end(x, &err);
}

static void answered(weir_ticket *t)
{
    explainer *x = (explainer *)((char *)t - offsetof(explainer, ticket));
    if (t->op.err.code)
        end(x, &t->op.err);
    else
        x->got(x);
}

static void look(explainer *x, weir_op op, void (*got)(explainer *x))
{
    x->ticket = (weir_ticket){ .op = op, .done = answered };
    x->got = got;
    if (weir__queue_submit(x->q, &x->ticket))
        end(x, &x->ticket.op.err);
}

static void add_story(explainer *x)
{
    weir_buf    why = { 0 };
    weir_story *story;
    weir_remedy remedy = explain_state[x->f.job->state](&x->f, &why);
    say_schedule(&why, x->e->job, x->f.now);
    say_task(&why, x->e->job, &remedy);
    bool ok = !why.failed && weir__explanation_say(x->e, why.data, remedy) &&
              !weir_job_story(x->f.job, &story, NULL);
    if (ok)
        weir__explanation_set_story(x->e, story);
    weir__buf_fini(&why);
    if (ok)
        end(x, &(weir_error){ 0 });
    else
        no_memory(x);
}

static void got_waiting(explainer *x)
{
    facts     *f = &x->f;
    weir_page *page = x->ticket.op.u.list.page;
    while (f->ahead < page->n && page->job[f->ahead]->id != f->job->id)
        f->ahead++;
    f->ahead_more = f->ahead == page->n && page->more;
    if (f->ahead == page->n && !page->more)
        f->ahead = 0;                 /* it has moved on meanwhile */
    weir_page_free(page);
    add_story(x);
}

static void got_stats(explainer *x)
{
    static const weir_type_stats unknown;
    const weir_job   *j = x->f.job;
    const weir_stats *s = x->stats = x->ticket.op.u.stats.stats;
    x->f.all_paused = s->all.paused;
    x->f.now = weir_now(x->q);
    x->f.looking = x->q->read_only;
    x->f.type = &unknown;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->type[i].type, j->type) == 0)
            x->f.type = &s->type[i];
    weir_query query = { .state = WEIR_STATE_INACTIVE, .type = j->type, .ids_only = true,
                         .limit = WEIR_MAX_PAGE };
    if (j->state == WEIR_STATE_INACTIVE)
        look(x, (weir_op){ .kind = WEIR_OP_LIST, .u.list = { .query = query } }, got_waiting);
    else
        add_story(x);
}

static void got_job(explainer *x)
{
    weir_job *job = x->ticket.op.u.get.job;
    x->e = weir__explanation_create(job);
    x->f.job = job;
    if (x->e)
        look(x, (weir_op){ .kind = WEIR_OP_STATS }, got_stats);
    else
        no_memory(x);
}

/* ---- the calls ---- */

weir_code weir_explain_async(weir_queue *q, uint64_t id, weir_explanation **out, weir_future **f,
                             weir_error *err)
{
    weir_future *own;
    *out = NULL;
    *f = NULL;
    weir_code rc = weir__future_create(q, &own, sizeof(explainer), NULL, err);
    if (rc)
        return rc;
    explainer *x = weir__future_bytes(own);
    *x = (explainer){ .q = q, .future = own, .out = out };
    *f = own;
    look(x, (weir_op){ .kind = WEIR_OP_GET, .u.get = { .id = id } }, got_job);
    return WEIR_OK;
}

weir_code weir_explain(weir_queue *q, uint64_t id, weir_explanation **out, weir_error *err)
{
    weir_future *f;
    weir_code    rc = weir_explain_async(q, id, out, &f, err);
    if (!rc)
        rc = weir_future_wait(f, WEIR_FOREVER, err);
    weir_future_free(f);
    return rc;
}
