/* retryqueue.c - a retry queue in one sorted set: see weir/retryqueue.h. Each step is one
 * script, so that it happens entirely or not at all.
 *
 *   KEY             tasks that wait; score: WEIR_RETRY_MAX less their time
 *   KEY:held        with hold_ms: tasks that were popped; score: when they are returned
 *   KEY:malformed   members that were no tasks; score: when they were found
 *
 * In a cluster the three are on one slot: KEY is in braces in the names of the last two, unless it
 * has some itself. */
#include "weir/retryqueue.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/thread.h"
#include "store/redis/link/link.h"

enum { KEYS = 3, MAX_NAME = WEIR_RETRY_MAX_KEY + 16, DEFAULT_POLL_MS = 1000 };

struct weir_retryqueue {
    weir_retryqueue_options opt;
    char             key[KEYS][MAX_NAME];
    uint32_t         slot;
    char            *pop;           /* the script, with the condition in it */
    pthread_mutex_t  link_lock;     /* guards link */
    redis_link      *link;

    weir_retryqueue_observing how;
    weir_retry_next_fn  *on_next;
    weir_retry_error_fn *on_error;
    pthread_t       *thread;
    pthread_mutex_t  lock;          /* guards what follows */
    pthread_cond_t   wake;
    int32_t          n_threads;     /* 0: not observed */
    bool             stopping;
};

/* ---- scripts ---- */

#define LUA_NOW                                                                         \
    "local t = redis.call('TIME')\n"                                                    \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"                               \
    "local function text(n) return string.format('%.0f', n) end\n"

static const char due[] =
    "return redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[1], 'BYSCORE', 'REV', 'LIMIT', 0, "
    "ARGV[3])\n";

/* ARGV: MAX, limit, hold_ms. Returns how many members were malformed, then member, created,
 * failures and payload of each task.
 *
 * A member counts once, and only if it was in the set: ZREM says so. A condition may have removed
 * members itself, so as many as the set has lost by then need no ZREM of ours. */
static const char pop_head[] =
    LUA_NOW
    "local max, limit, hold = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n"
    "local out, n, malformed = { 0 }, 0, 0\n"
    "local function whole(v, most)\n"
    "  return type(v) == 'number' and v >= 0 and v <= most and v % 1 == 0\n"
    "end\n"
    "local function give(m)\n"
    "  local ok, v = pcall(cjson.decode, m)\n"
    "  if ok and type(v) == 'table' and whole(v.created, 2^53) and\n"
    "     whole(v.numFailures, 2^31 - 2) and type(v.payload) == 'string' and\n"
    "     not string.find(v.payload, '%z') then\n"
    "    if hold > 0 then redis.call('ZADD', KEYS[2], text(now + hold), m) end\n"
    "    n = n + 1\n"
    "    for _, x in ipairs({ m, text(v.created), text(v.numFailures), v.payload }) do\n"
    "      out[#out + 1] = x\n"
    "    end\n"
    "  else\n"
    "    malformed = malformed + 1\n"
    "    redis.call('ZADD', KEYS[3], text(now), m)\n"
    "  end\n"
    "end\n"
    "if hold > 0 then\n"
    "  for _, m in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', text(now), 'BYSCORE', 'LIMIT', 0,\n"
    "                                limit)) do\n"
    "    redis.call('ZREM', KEYS[2], m)\n"
    "    redis.call('ZREM', KEYS[1], m)\n"
    "    give(m)\n"
    "  end\n"
    "end\n"
    "local function condition(KEYS, ARGV)\n";
static const char pop_tail[] =
    "\nend\n"
    "if n < limit then\n"
    "  local before, seen = redis.call('ZCARD', KEYS[1]), {}\n"
    "  local chosen = condition({ KEYS[1] }, { text(max - now), text(max), text(limit - n),\n"
    "                                          text(now) })\n"
    "  if type(chosen) ~= 'table' then\n"
    "    return redis.error_reply('ERR the condition must return a list of members')\n"
    "  end\n"
    "  local gone = before - redis.call('ZCARD', KEYS[1])\n"
    "  for _, member in ipairs(chosen) do\n"
    "    local m = tostring(member)\n"
    "    if not seen[m] then\n"
    "      seen[m] = true\n"
    "      if redis.call('ZREM', KEYS[1], m) == 1 then\n"
    "        give(m)\n"
    "      elseif gone > 0 then\n"
    "        gone = gone - 1\n"
    "        give(m)\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "out[1] = malformed\n"
    "return out\n";

/* ARGV: MAX, the member to remove ('': none), the member to add ('': none), when, in ms from now.
 * Returns 0 when the first was not held. */
static const char end_script[] =
    LUA_NOW
    "if ARGV[2] ~= '' and redis.call('ZREM', KEYS[2], ARGV[2]) == 0 then return 0 end\n"
    "if ARGV[3] ~= '' then\n"
    "  redis.call('ZADD', KEYS[1], text(ARGV[1] - now - ARGV[4]), ARGV[3])\n"
    "end\n"
    "return 1\n";

/* NULL with *err set; freeReplyObject() what comes. */
static redisReply *ask(weir_retryqueue *rq, const weir_buf *command, weir_error *err)
{
    redis_call c = { .slot = rq->slot, .command = *command };
    pthread_mutex_lock(&rq->link_lock);
    weir__link_send(rq->link, &c);
    weir__link_wait(rq->link, &c);
    pthread_mutex_unlock(&rq->link_lock);
    if (!c.reply)
        weir_fail(err, c.err.code, "retry queue: %s", c.err.msg);
    return c.reply;
}

/* EVAL with the keys of the queue, WEIR_RETRY_MAX and three more arguments. */
static redisReply *eval(weir_retryqueue *rq, const char *script, const char *const arg[3],
                        weir_error *err)
{
    weir_buf b = { 0 };
    weir__resp_array(&b, 3 + KEYS + 4);
    weir__resp_text(&b, "EVAL");
    weir__resp_text(&b, script);
    weir__resp_int(&b, KEYS);
    for (int i = 0; i < KEYS; i++)
        weir__resp_text(&b, rq->key[i]);
    weir__resp_int(&b, WEIR_RETRY_MAX);
    for (int i = 0; i < 3; i++)
        weir__resp_text(&b, arg[i]);
    redisReply *r = b.failed ? NULL : ask(rq, &b, err);
    if (b.failed)
        weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
    weir__buf_fini(&b);
    return r;
}

/* ---- opening ---- */

static weir_code check(weir_retryqueue_options *o, weir_error *err)
{
    size_t    len = o->key ? strlen(o->key) : 0;
    weir_code rc = WEIR__CHECK_RESERVED(o, err);
    if (rc)
        return rc;
    if (len < 1 || len > WEIR_RETRY_MAX_KEY)
        return weir__fail_field(err, WEIR_EINVAL, "key", "%zu bytes, must be 1 to %d "
                                "(WEIR_RETRY_MAX_KEY)", len, WEIR_RETRY_MAX_KEY);
    if (o->hold_ms < 0 || o->hold_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "hold_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)o->hold_ms, (long long)WEIR_MAX_MS);
    if (o->backoff_ms < 0 || o->backoff_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "backoff_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)o->backoff_ms, (long long)WEIR_MAX_MS);
    if (o->max_failures < 0)
        return weir__fail_field(err, WEIR_EINVAL, "max_failures", "%d, must be 0 (%d) or more",
                                o->max_failures, WEIR_RETRY_FAILURES);
    if (o->condition && strlen(o->condition) > WEIR_RETRY_MAX_CONDITION)
        return weir__fail_field(err, WEIR_ELIMIT, "condition", "%zu bytes, at most %d "
                                "(WEIR_RETRY_MAX_CONDITION)", strlen(o->condition),
                                WEIR_RETRY_MAX_CONDITION);
    if (!o->backoff_ms)
        o->backoff_ms = WEIR_RETRY_BACKOFF_MS;
    if (!o->max_failures)
        o->max_failures = WEIR_RETRY_FAILURES;
    return WEIR_OK;
}

static void name_keys(weir_retryqueue *rq)
{
    const char *key = rq->opt.key, *braces = strchr(key, '{');
    bool        tagged = braces && strchr(braces, '}');
    snprintf(rq->key[0], MAX_NAME, "%s", key);
    snprintf(rq->key[1], MAX_NAME, tagged ? "%s:held" : "{%s}:held", key);
    snprintf(rq->key[2], MAX_NAME, tagged ? "%s:malformed" : "{%s}:malformed", key);
    rq->slot = weir__redis_slot(key, strlen(key));
}

static weir_code connect_to(weir_retryqueue *rq, const char *text, weir_error *err)
{
    weir_url  url;
    redis_url where;
    weir_code rc = weir__url_parse(text, &url, err);
    if (!rc && strncmp(url.scheme, "redis", 5) != 0)
        rc = weir_fail(err, WEIR_EINVAL, "retry queue: a URL of Redis was expected, not %s:",
                       url.scheme);
    if (!rc)
        rc = weir__redis_url(&url, &where, err);
    if (!rc)
        rc = weir__redis_password(&where, err);
    return rc ? rc : weir__link_open(&rq->link, &where, err);
}

/* Have Redis compile the script: a condition that is none is found here. */
static weir_code make_script(weir_retryqueue *rq, weir_error *err)
{
    weir_buf b = { 0 }, command = { 0 };
    weir__buf_str(&b, pop_head);
    weir__buf_str(&b, rq->opt.condition ? rq->opt.condition : due);
    weir__buf_str(&b, pop_tail);
    rq->pop = weir__buf_steal(&b, NULL);
    weir__resp_array(&command, 3);
    weir__resp_text(&command, "SCRIPT");
    weir__resp_text(&command, "LOAD");
    weir__resp_text(&command, rq->pop ? rq->pop : "");
    if (!rq->pop || command.failed) {
        weir__buf_fini(&command);
        return weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
    }
    weir_error  why;
    redisReply *r = ask(rq, &command, &why);
    weir__buf_fini(&command);
    freeReplyObject(r);
    if (r)
        return WEIR_OK;
    if (strstr(why.msg, "compiling script"))
        return weir__fail_field(err, WEIR_EINVAL, "condition", "%s", why.msg);
    return weir_fail(err, why.code, "%s", why.msg);
}

weir_code weir_retryqueue_open(weir_retryqueue **out, const char *url,
                               const weir_retryqueue_options *opt, weir_error *err)
{
    *out = NULL;
    weir_retryqueue *rq = calloc(1, sizeof *rq);
    if (!rq)
        return weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
    rq->opt = *opt;
    pthread_mutex_init(&rq->link_lock, NULL);
    pthread_mutex_init(&rq->lock, NULL);
    weir__cond_init(&rq->wake);
    weir_code rc = check(&rq->opt, err);
    if (!rc) {
        name_keys(rq);
        rc = connect_to(rq, url, err);
    }
    if (!rc)
        rc = make_script(rq, err);
    rq->opt.key = rq->opt.condition = NULL;     /* they were the caller's */
    if (rc)
        weir_retryqueue_close(rq);
    else
        *out = rq;
    return rc;
}

void weir_retryqueue_close(weir_retryqueue *rq)
{
    if (!rq)
        return;
    if (rq->link)
        weir__link_close(rq->link);
    pthread_mutex_destroy(&rq->link_lock);
    pthread_mutex_destroy(&rq->lock);
    pthread_cond_destroy(&rq->wake);
    free(rq->pop);
    free(rq);
}

/* ---- tasks ---- */

/* `member` ends, if it is held; `next` comes in delay_ms. Both may be "". */
static weir_code end_task(weir_retryqueue *rq, const char *member, const char *next,
                          int64_t delay_ms, weir_error *err)
{
    char        delay[24];
    const char *old = rq->opt.hold_ms ? member : "";
    snprintf(delay, sizeof delay, "%" PRId64, delay_ms);
    if (!*old && !*next)
        return WEIR_OK;
    redisReply *r = eval(rq, end_script, (const char *const[]){ old, next, delay }, err);
    if (!r)
        return err ? err->code : WEIR_EUNAVAIL;
    bool held = r->type == REDIS_REPLY_INTEGER && r->integer == 1;
    freeReplyObject(r);
    return held ? WEIR_OK : weir_fail(err, WEIR_ESTALE, "retry queue: the task was held too long, "
                                      "and somebody else has ended it");
}

/* The member of a task; the caller frees it. */
static char *make_member(const weir_retry_task *task, int32_t failures)
{
    weir_buf b = { 0 };
    int64_t  created = task->created_at, steady;
    if (!created)
        weir__clock_read(&created, &steady);
    weir__buf_printf(&b, "{\"created\":%" PRId64 ",\"numFailures\":%" PRId32 ",\"payload\":",
                     created, failures);
    weir__json_string(&b, task->payload, strlen(task->payload));
    weir__buf_char(&b, '}');
    return weir__buf_steal(&b, NULL);
}

static weir_code check_task(const weir_retry_task *task, weir_error *err)
{
    weir_code rc = WEIR__CHECK_RESERVED(task, err);
    if (rc)
        return rc;
    if (!task->payload)
        return weir__fail_field(err, WEIR_EINVAL, "payload", "missing");
    if (task->created_at < 0)
        return weir__fail_field(err, WEIR_EINVAL, "created_at", "%lld, must not be negative",
                                (long long)task->created_at);
    if (task->failures < 0 || task->failures == INT32_MAX)
        return weir__fail_field(err, WEIR_EINVAL, "failures", "%d, must be 0 to %d",
                                task->failures, INT32_MAX - 1);
    return WEIR_OK;
}

weir_code weir_retryqueue_add(weir_retryqueue *rq, const weir_retry_task *task, int64_t at_ms,
                              weir_error *err)
{
    weir_error  own;
    weir_code   rc = check_task(task, err ? err : &own);
    if (!rc && (at_ms < 0 || at_ms > WEIR_MAX_MS))
        rc = weir__fail_field(err, WEIR_EINVAL, "at_ms", "%lld, must be 0 to %lld (WEIR_MAX_MS)",
                              (long long)at_ms, (long long)WEIR_MAX_MS);
    if (rc)
        return rc;
    char *member = make_member(task, task->failures);
    if (!member)
        return weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
    if (!at_ms) {
        rc = end_task(rq, "", member, 0, err ? err : &own);
    } else {
        weir_buf b = { 0 };
        weir__resp_array(&b, 4);
        weir__resp_text(&b, "ZADD");
        weir__resp_text(&b, rq->key[0]);
        weir__resp_int(&b, WEIR_RETRY_MAX - at_ms);
        weir__resp_text(&b, member);
        redisReply *r = b.failed ? NULL : ask(rq, &b, &own);
        if (!r)
            rc = b.failed ? weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory")
                          : weir_fail(err, own.code, "%s", own.msg);
        freeReplyObject(r);
        weir__buf_fini(&b);
    }
    free(member);
    return rc;
}

weir_code weir_retryqueue_done(weir_retryqueue *rq, const weir_retry_task *task, weir_error *err)
{
    weir_error own;
    return end_task(rq, task->member, "", 0, err ? err : &own);
}

weir_code weir_retryqueue_fail(weir_retryqueue *rq, const weir_retry_task *task, bool *again,
                               weir_error *err)
{
    weir_error own;
    weir_code  rc = check_task(task, err);
    if (again)
        *again = false;
    if (rc)
        return rc;
    int32_t failures = task->failures + 1;
    if (failures >= rq->opt.max_failures)
        return weir_retryqueue_done(rq, task, err);
    char *next = make_member(task, failures);
    if (!next)
        return weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
    int64_t most = WEIR_MAX_MS / failures;
    rc = end_task(rq, task->member, next,
                  rq->opt.backoff_ms < most ? rq->opt.backoff_ms * failures : WEIR_MAX_MS,
                  err ? err : &own);
    free(next);
    if (again)
        *again = !rc;
    return rc;
}

/* ---- popping ---- */

/* A reply of the pop script as tasks, in one block with their texts. NULL: out of memory. */
static weir_retry_tasks *read_tasks(const redisReply *r)
{
    size_t n = (r->elements - 1) / 4, bytes = 0;
    for (size_t i = 1; i < r->elements; i++)
        bytes += r->element[i]->len + 1;
    weir_retry_tasks *all = malloc(sizeof *all + n * sizeof *all->task + bytes);
    if (!all)
        return NULL;
    all->task = (weir_retry_task *)(all + 1);
    all->n = n;
    all->malformed = (size_t)r->element[0]->integer;
    char *at = (char *)(all->task + n);
    for (size_t i = 0; i < n; i++) {
        redisReply *const *e = &r->element[1 + 4 * i];
        all->task[i] = (weir_retry_task){ .created_at = strtoll(e[1]->str, NULL, 10),
                                          .failures = (int32_t)strtol(e[2]->str, NULL, 10) };
        all->task[i].member = memcpy(at, e[0]->str, e[0]->len + 1);
        at += e[0]->len + 1;
        all->task[i].payload = memcpy(at, e[3]->str, e[3]->len + 1);
        at += e[3]->len + 1;
    }
    return all;
}

weir_code weir_retryqueue_pop(weir_retryqueue *rq, size_t limit, weir_retry_tasks **out,
                              weir_error *err)
{
    char       wanted[24], hold[24];
    weir_error own, *why = err ? err : &own;
    *out = NULL;
    if (limit > WEIR_RETRY_MAX_POP)
        return weir__fail_field(err, WEIR_ELIMIT, "limit", "%zu, at most %d (WEIR_RETRY_MAX_POP)",
                                limit, WEIR_RETRY_MAX_POP);
    snprintf(wanted, sizeof wanted, "%zu", limit ? limit : (size_t)WEIR_RETRY_MAX_POP);
    snprintf(hold, sizeof hold, "%" PRId64, rq->opt.hold_ms);
    redisReply *r = eval(rq, rq->pop, (const char *const[]){ wanted, hold, "" }, why);
    if (!r)
        return why->code;
    bool good = r->type == REDIS_REPLY_ARRAY && r->elements % 4 == 1;
    *out = good ? read_tasks(r) : NULL;
    freeReplyObject(r);
    if (!good)
        return weir_fail(err, WEIR_ECORRUPT, "retry queue: the answer of Redis is no list of "
                                             "tasks");
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
}

void weir_retry_tasks_free(weir_retry_tasks *tasks)
{
    free(tasks);
}

/* ---- as a stream ---- */

static bool stopping(weir_retryqueue *rq)
{
    pthread_mutex_lock(&rq->lock);
    bool yes = rq->stopping;
    pthread_mutex_unlock(&rq->lock);
    return yes;
}

static void report(weir_retryqueue *rq, const weir_error *why)
{
    if (rq->on_error)
        rq->on_error(why, rq->how.ctx);
}

/* Pass a task on, or give it back if the stream ends. */
static void pass_on(weir_retryqueue *rq, const weir_retry_task *task)
{
    weir_error err;
    weir_code  rc;
    if (stopping(rq))
        rc = end_task(rq, task->member, task->member, 0, &err);
    else if (!rq->on_next(task, rq->how.ctx))
        rc = weir_retryqueue_done(rq, task, &err);
    else
        rc = weir_retryqueue_fail(rq, task, NULL, &err);
    if (rc)
        report(rq, &err);
}

static void *watch(void *arg)
{
    weir_retryqueue *rq = arg;
    while (!stopping(rq)) {
        weir_retry_tasks *tasks;
        weir_error        err;
        weir_code         rc = weir_retryqueue_pop(rq, (size_t)rq->how.limit, &tasks, &err);
        size_t            n = rc ? 0 : tasks->n;
        if (!rc && tasks->malformed)
            weir_fail(&err, WEIR_ECORRUPT, "retry queue: malformed members were moved to %.150s: "
                      "%zu", rq->key[2], tasks->malformed);
        if (rc || tasks->malformed)
            report(rq, &err);
        for (size_t i = 0; i < n; i++)
            pass_on(rq, &tasks->task[i]);
        weir_retry_tasks_free(tasks);
        weir_deadline until = weir__deadline_in(rq->how.poll_ms);
        pthread_mutex_lock(&rq->lock);
        while (!n && !rq->stopping && weir__cond_wait_until(&rq->wake, &rq->lock, until))
            ;
        pthread_mutex_unlock(&rq->lock);
    }
    return NULL;
}

static weir_code check_observing(const weir_retryqueue_observing *how, weir_error *err)
{
    enum { MAX_THREADS = 1024 };
    weir_code rc = WEIR__CHECK_RESERVED(how, err);
    if (rc)
        return rc;
    if (how->poll_ms < 0 || how->poll_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "poll_ms", "%lld, must be 0 to %lld "
                                "(WEIR_MAX_MS)", (long long)how->poll_ms, (long long)WEIR_MAX_MS);
    if (how->threads < 0 || how->threads > MAX_THREADS)
        return weir__fail_field(err, WEIR_EINVAL, "threads", "%d, must be 0 to %d", how->threads,
                                MAX_THREADS);
    if (how->limit < 0 || how->limit > WEIR_RETRY_MAX_POP)
        return weir__fail_field(err, WEIR_EINVAL, "limit", "%d, must be 0 to %d "
                                "(WEIR_RETRY_MAX_POP)", how->limit, WEIR_RETRY_MAX_POP);
    return WEIR_OK;
}

weir_code weir_retryqueue_observe(weir_retryqueue *rq, const weir_retryqueue_observing *how,
                                  weir_retry_next_fn *on_next, weir_retry_error_fn *on_error,
                                  weir_error *err)
{
    weir_code rc = check_observing(how, err);
    if (!rc && rq->n_threads)
        rc = weir_fail(err, WEIR_ESTATE, "retry queue: it is observed already");
    if (rc)
        return rc;
    int32_t threads = how->threads ? how->threads : 1;
    rq->thread = calloc((size_t)threads, sizeof *rq->thread);
    if (!rq->thread)
        return weir_fail(err, WEIR_ENOMEM, "retry queue: out of memory");
    rq->how = *how;
    rq->how.limit = how->limit ? how->limit : 1;
    rq->how.poll_ms = how->poll_ms ? how->poll_ms : DEFAULT_POLL_MS;
    rq->on_next = on_next;
    rq->on_error = on_error;
    rq->stopping = false;
    while (!rc && rq->n_threads < threads) {
        rc = weir__thread_start(&rq->thread[rq->n_threads], watch, rq, "weir-retry", err);
        rq->n_threads += !rc;
    }
    if (rc)
        weir_retryqueue_stop(rq);
    return rc;
}

void weir_retryqueue_stop(weir_retryqueue *rq)
{
    pthread_mutex_lock(&rq->lock);
    rq->stopping = true;
    pthread_cond_broadcast(&rq->wake);
    pthread_mutex_unlock(&rq->lock);
    for (int32_t i = 0; i < rq->n_threads; i++)
        pthread_join(rq->thread[i], NULL);
    free(rq->thread);
    rq->thread = NULL;
    rq->n_threads = 0;
}
