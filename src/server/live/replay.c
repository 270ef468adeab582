/* replay.c - answers for batches that are sent again: see replay.h. */
#include "server/live/replay.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/named.h"
#include "op/batch.h"

/* A repetition that came before the first was done. Part of its request's memory. */
typedef struct waiter {
    weir_inbox_task task;
    struct waiter *next;
    srv_request   *r;
    weir_buf       answer;
} waiter;

/* The caller and its token: an answer is for them alone. */
typedef struct caller_id {
    char text[WEIR_BATCH_CALLER + 1 + sizeof ((srv_caller *)0)->name];
} caller_id;

struct srv_replay {
    weir_named  named;                  /* by its id */
    srv_replay *older, *newer;
    caller_id   id;
    uint64_t    number;
    bool        running;
    weir_buf    answer;                 /* empty: it was forgotten */
    waiter     *waiters;
};

struct srv_replays {
    pthread_mutex_t lock;               /* guards what follows */
    weir_names      by_name;
    srv_replay     *oldest, *newest;
    size_t          n, bytes;
};

weir_code srv_replays_create(srv_replays **out, weir_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return weir_fail(err, WEIR_ENOMEM, "batches: out of memory");
    pthread_mutex_init(&(*out)->lock, NULL);
    return WEIR_OK;
}

/* ---- the list, oldest first ---- */

static void take_out(srv_replays *s, srv_replay *c)
{
    *(c->older ? &c->older->newer : &s->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &s->newest) = c->older;
    c->older = c->newer = NULL;
}

static void put_last(srv_replays *s, srv_replay *c)
{
    c->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = c;
    s->newest = c;
}

static void forget_answer(srv_replays *s, srv_replay *c)
{
    s->bytes -= c->answer.len;
    weir__buf_fini(&c->answer);
}

static void forget(srv_replays *s, srv_replay *c)
{
    forget_answer(s, c);
    take_out(s, c);
    weir__names_remove(&s->by_name, &c->named);
    s->n--;
    free(c);
}

void srv_replays_destroy(srv_replays *s)
{
    if (!s)
        return;
    while (s->oldest)
        forget(s, s->oldest);
    weir__names_fini(&s->by_name);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Keep within the limits. Callers being served stay. */
static void tidy(srv_replays *s)
{
    for (srv_replay *c = s->oldest, *next; c && s->n > SRV_MAX_CALLERS; c = next) {
        next = c->newer;
        if (!c->running)
            forget(s, c);
    }
    for (srv_replay *c = s->oldest; c && s->bytes > SRV_MAX_REPLAY; c = c->newer)
        forget_answer(s, c);
}

/* ---- a batch ---- */

static srv_replay *caller_of(srv_replays *s, const srv_request *r, const char *caller)
{
    caller_id id;
    snprintf(id.text, sizeof id.text, "%.*s:%s", WEIR_BATCH_CALLER, caller, r->who.name);
    srv_replay *c = weir__names_get(&s->by_name, id.text);
    if (c) {
        take_out(s, c);
        put_last(s, c);
        return c;
    }
    c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->id = id;
    if (!weir__names_put(&s->by_name, &c->named, c->id.text)) {
        free(c);
        return NULL;
    }
    put_last(s, c);
    s->n++;
    return c;
}

static void reply_waiter(weir_inbox_task *task)
{
    waiter *w = (waiter *)task;
    srv_reply_json(w->r, 200, &w->answer);
}

/* Decide what to do with it; lock held. *wait: nothing, it is answered with the first. */
static weir_code enter(srv_replays *s, srv_replay *c, srv_request *r, uint64_t number,
                       weir_buf *answer, bool *wait, weir_error *err)
{
    if (number < c->number)
        return weir_fail(err, WEIR_ESTALE, "number: %llu, but %llu was sent already",
                         (unsigned long long)number, (unsigned long long)c->number);
    if (number > c->number) {
        if (c->running)
            return weir_fail(err, WEIR_EUNAVAIL, "number: the batch before is not done yet");
        forget_answer(s, c);
        c->number = number;
        c->running = true;
        return WEIR_OK;
    }
    if (!c->running && !c->answer.len)
        return weir_fail(err, WEIR_EUNKNOWN, "number: this batch was done, but its answer was too "
                                             "much to be kept (SRV_MAX_REPLAY)");
    *wait = c->running;
    if (c->running) {
        waiter *w = srv_alloc(r, sizeof *w);
        if (!w)
            return weir_fail(err, WEIR_ENOMEM, "out of memory");
        *w = (waiter){ .task.run = reply_waiter, .next = c->waiters, .r = r };
        c->waiters = w;
    } else {
        weir__buf_add(answer, c->answer.data, c->answer.len);
    }
    return WEIR_OK;
}

srv_replay *srv_replay_begin(srv_replays *s, srv_request *r, const char *caller, uint64_t number)
{
    weir_error err = { 0 };
    weir_buf   answer = { 0 };
    bool       wait = false;
    pthread_mutex_lock(&s->lock);
    srv_replay *c = caller_of(s, r, caller);
    weir_code   rc = c ? enter(s, c, r, number, &answer, &wait, &err)
                       : weir_fail(&err, WEIR_ENOMEM, "out of memory");
    bool        is_new = !rc && !wait && !answer.len && !answer.failed;
    tidy(s);
    pthread_mutex_unlock(&s->lock);
    if (is_new)
        return c;
    if (rc)
        srv_reply_error(r, &err);
    else if (!wait)
        srv_reply_json(r, 200, &answer);
    return NULL;
}

void srv_replay_end(srv_replays *s, srv_replay *c, const weir_buf *answer)
{
    pthread_mutex_lock(&s->lock);
    waiter *waiters = c->waiters;
    c->waiters = NULL;
    c->running = false;
    if (!answer->failed && answer->len <= SRV_MAX_REPLAY)
        weir__buf_add(&c->answer, answer->data, answer->len);
    if (c->answer.failed)
        weir__buf_fini(&c->answer);
    s->bytes += c->answer.len;
    tidy(s);
    pthread_mutex_unlock(&s->lock);
    for (waiter *w = waiters, *next; w; w = next) {
        next = w->next;
        weir__buf_add(&w->answer, answer->data, answer->len);
        w->answer.failed = w->answer.failed || answer->failed;
        srv_loop_post(w->r->loop, &w->task);
    }
}
