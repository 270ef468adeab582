/* store.c - the Redis stores: opening, closing, and batches in rounds: see engine.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "store/redis/engine.h"

enum {
    LAYOUT_VERSION = 1,
    MAX_ROUNDS     = 1000           /* of an operation whose job others keep changing */
};

/* ---- batches ---- */

const redis_kind weir__redis_kinds[WEIR_OP_KINDS] = {
#define KIND(kind, member) [WEIR_OP_##kind] = { .act = weir__redis_##member##_act, \
                                                .end = weir__redis_##member##_end }
    KIND(ADD, add),
    KIND(TAKE, take),
    [WEIR_OP_FINISH] = { weir__redis_finish_look, weir__redis_finish_seen, weir__redis_finish_act,
                         weir__redis_finish_end },
    KIND(RENEW, renew),
    KIND(PROGRESS, progress),
    KIND(LOG, log),
    [WEIR_OP_UPDATE] = { weir__redis_update_look, weir__redis_update_seen, weir__redis_update_act,
                         weir__redis_update_end },
    KIND(REMOVE, remove),
    KIND(CONFIGURE, configure),
    KIND(IMPORT, import),
    KIND(GET, get),
    KIND(LIST, list),
    KIND(LOGS, logs),
    KIND(STATS, stats),
#undef KIND
};

/* Steps of its own in each partition, more than a round: not together with others. */
static weir_code (*const alone[WEIR_OP_KINDS])(redis_store *s, weir_op *op) = {
    [WEIR_OP_TICK] = weir__redis_tick,
    [WEIR_OP_CHECK] = weir__redis_check,
};

static bool look_round(redis_store *s, redis_task *tasks, size_t n)
{
    bool looks = false;
    weir__calls_reset(s);
    for (size_t i = 0; i < n; i++) {
        redis_task       *t = &tasks[i];
        const redis_kind *k = &weir__redis_kinds[t->op->kind];
        t->n = 0;
        if (!t->over && k->look && k->look(s, t))
            looks = true;
    }
    return looks;
}

static void act_round(redis_store *s, redis_task *tasks, size_t n, int64_t now)
{
    bool writes = false;
    weir__calls_reset(s);
    for (size_t i = 0; i < n; i++) {
        redis_task *t = &tasks[i];
        t->n = 0;
        if (t->over)
            continue;
        weir__redis_kinds[t->op->kind].act(s, t);
        writes = writes || weir__op_info[t->op->kind].writes;
    }
    weir__calls_run(s, now, writes);
}

/* With too little memory for the adds, a call was refused whole: the others go on without them. */
static bool is_refused_with_adds(redis_store *s, const redis_task *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const redis_part *p = &s->part[s->step[t->first + i].part];
        if (p->call.err.code == WEIR_EFULL && p->adds)
            return t->op->kind != WEIR_OP_ADD && t->op->kind != WEIR_OP_IMPORT;
    }
    return false;
}

static size_t end_round(redis_store *s, redis_task *tasks, size_t n)
{
    size_t going = 0;
    for (size_t i = 0; i < n; i++) {
        redis_task *t = &tasks[i];
        if (t->over)
            continue;
        if (!weir__step_put_off(s, t) && !is_refused_with_adds(s, t))
            weir__redis_kinds[t->op->kind].end(s, t);
        if (!t->over && ++t->rounds == MAX_ROUNDS) {
            weir_fail(&t->op->err, WEIR_EUNAVAIL, "%s: others keep changing the job",
                      weir__op_info[t->op->kind].name);
            t->over = true;
        }
        going += !t->over;
    }
    return going;
}

/* May it give to workers, or add, jobs that nobody has named yet? */
static bool makes_news(const weir_op *op)
{
    return op->kind == WEIR_OP_ADD || op->kind == WEIR_OP_TAKE || op->kind == WEIR_OP_IMPORT ||
           (op->kind == WEIR_OP_FINISH && op->u.finish.next.n);
}

/* What was looked for is there. One that did not find what it expects, behind one that may just be
 * about to bring it, has to look again after that one: answers how many come before it. */
static size_t see(redis_store *s, redis_task *tasks, size_t n)
{
    bool news = false;
    for (size_t i = 0; i < n; i++) {
        redis_task *t = &tasks[i];
        if (!t->over && t->n) {
            weir__redis_kinds[t->op->kind].seen(s, t);
            if (t->over && news) {
                t->over = false;
                t->op->err = (weir_error){ 0 };
                return i;
            }
        }
        news = news || makes_news(t->op);
    }
    return n;
}

/* Run n tasks until they are over, or the first of them: answers how many. */
static size_t run_tasks(redis_store *s, redis_task *tasks, size_t n, int64_t now)
{
    for (size_t going = n; going > 0;) {
        if (look_round(s, tasks, n)) {
            weir__calls_run(s, now, false);
            n = see(s, tasks, n);
        }
        act_round(s, tasks, n, now);
        going = end_round(s, tasks, n);
    }
    for (size_t i = 0; i < n; i++)
        weir__task_drop(&tasks[i]);
    return n;
}

/* What the operations of a segment touch. One that looks before it acts must not come behind one
 * that may change what it looks at. */
typedef struct touched {
    uint64_t bits[16];
    bool     any;                   /* jobs that nobody named */
    bool     some;
    int64_t  now;
} touched;

static uint64_t id_of(const weir_op *op)
{
    switch (op->kind) {
    case WEIR_OP_FINISH:   return op->u.finish.id;
    case WEIR_OP_PROGRESS: return op->u.progress.id;
    case WEIR_OP_LOG:      return op->u.log.id;
    case WEIR_OP_UPDATE:   return op->u.update.id;
    case WEIR_OP_REMOVE:   return op->u.remove.id;
    default:               return 0;
    }
}

/* Does it fit into the segment? Notes what it touches. */
static bool fits(touched *seg, const weir_op *op, bool own_clock)
{
    uint64_t id = id_of(op);
    uint64_t bit = UINT64_C(1) << id % 64, *word = &seg->bits[id / 64 % 16];
    bool fails = op->kind == WEIR_OP_FINISH && op->u.finish.outcome == WEIR_OUTCOME_FAIL;
    bool updates = op->kind == WEIR_OP_UPDATE;
    if (seg->some && ((fails || updates) && (*word & bit)))
        return false;
    if (seg->some && updates && seg->any)
        return false;
    if (seg->some && own_clock && op->now_ms != seg->now)
        return false;
    if (id)
        *word |= bit;
    seg->any = seg->any || makes_news(op);
    seg->some = true;
    seg->now = op->now_ms;
    return true;
}

static bool room_for_tasks(redis_store *s, size_t n)
{
    if (n <= s->cap_tasks)
        return true;
    redis_task *more = realloc(s->task, n * sizeof *more);
    if (!more)
        return false;
    s->task = more;
    s->cap_tasks = n;
    return true;
}

static weir_code redis_run(weir_store *base, weir_op **ops, size_t n, weir_error *err)
{
    redis_store *s = (redis_store *)base;
    if (!room_for_tasks(s, n))
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    for (size_t i = 0; i < n;) {
        touched seg = { 0 };
        size_t  tasks = 0;
        int64_t now = s->env.own_clock ? ops[i]->now_ms : 0;
        for (; i < n && !alone[ops[i]->kind] && fits(&seg, ops[i], s->env.own_clock); i++) {
            ops[i]->err = (weir_error){ 0 };
            if (s->env.read_only && weir__op_info[ops[i]->kind].writes)
                weir_fail(&ops[i]->err, WEIR_EREADONLY, "the store is open for reading only");
            else
                s->task[tasks++] = (redis_task){ .op = ops[i] };
        }
        for (size_t done = 0; done < tasks;)
            done += run_tasks(s, s->task + done, tasks - done, now);
        if (!seg.some) {
            weir_op *op = ops[i++];
            op->err = (weir_error){ 0 };
            if (s->env.read_only && !(op->kind == WEIR_OP_CHECK && !op->u.check.mend))
                weir_fail(&op->err, WEIR_EREADONLY, "the store is open for reading only");
            else
                alone[op->kind](s, op);
        }
    }
    return WEIR_OK;
}

/* ---- open ---- */

static bool make_part(redis_store *s, uint32_t i)
{
    redis_part *p = &s->part[i];
    if (s->url.kue)
        snprintf(p->prefix, sizeof p->prefix, "%s", s->url.prefix);
    else
        snprintf(p->prefix, sizeof p->prefix, "{%s:%" PRIu32 "}", s->url.prefix, i);
    snprintf(p->channel, sizeof p->channel, "%s%s", p->prefix, s->layout->channel);
    char key[sizeof p->prefix + 32];
    while (s->layout->keys[p->n_keys])
        p->n_keys++;
    weir__resp_int(&p->keys, (int64_t)p->n_keys);
    for (size_t k = 0; k < p->n_keys; k++) {
        snprintf(key, sizeof key, "%s%s", p->prefix, s->layout->keys[k]);
        weir__resp_text(&p->keys, key);
    }
    snprintf(key, sizeof key, "%s%s", p->prefix, s->layout->keys[0]);
    p->slot = weir__redis_slot(key, strlen(key));
    return !p->keys.failed;
}

static weir_code make_parts(redis_store *s, uint32_t n, weir_error *err)
{
    s->part = calloc(n, sizeof *s->part);
    s->n_parts = s->part ? n : 0;
    bool ok = s->part != NULL;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = make_part(s, i);
    return ok ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
}

/* One command to the node of the meta key; its answer as a number, `none` if there is none. */
static weir_code ask_meta(redis_store *s, const char *command, const char *field, int64_t value,
                          int64_t none, int64_t *out, weir_error *err)
{
    char key[WEIR_REDIS_MAX_PREFIX + 32], number[24];
    snprintf(key, sizeof key, "{%s:0}:meta", s->url.prefix);
    snprintf(number, sizeof number, "%" PRId64, value);
    const char *argv[] = { command, key, field, number };
    int         argc = value ? 4 : 3;
    redisReply *r = weir__link_ask(s->link, weir__redis_slot(key, strlen(key)), err, argc, argv,
                                   NULL);
    if (!r)
        return err->code;
    *out = r->type == REDIS_REPLY_NIL ? none : weir__reply_int(r);
    freeReplyObject(r);
    return WEIR_OK;
}

/* Is there a queue, of our version, with as many partitions as we think? A new one gets as many as
 * the URL says; who comes first decides. */
static weir_code agree(redis_store *s, uint32_t *parts, weir_error *err)
{
    int64_t   version, n, dummy;
    weir_code rc = ask_meta(s, "HGET", "version", 0, 0, &version, err);
    if (!rc && !version && s->env.read_only)
        return weir_fail(err, WEIR_ENOENT, "there is no queue \"%s\" in this Redis", s->url.prefix);
    if (!rc && !version)
        rc = ask_meta(s, "HSETNX", "partitions", s->url.partitions ? s->url.partitions : 1, 0,
                      &dummy, err);
    if (!rc && !version)
        rc = ask_meta(s, "HSETNX", "version", LAYOUT_VERSION, 0, &dummy, err);
    if (!rc)
        rc = ask_meta(s, "HGET", "version", 0, 0, &version, err);
    if (!rc)
        rc = ask_meta(s, "HGET", "partitions", 0, 0, &n, err);
    if (rc)
        return rc;
    if (version != LAYOUT_VERSION)
        return weir_fail(err, WEIR_EVERSION, "queue \"%s\" has layout version %" PRId64
                         ", this weir knows %d", s->url.prefix, version, LAYOUT_VERSION);
    if (n < 1 || n > WEIR_REDIS_MAX_PARTITIONS)
        return weir_fail(err, WEIR_ECORRUPT, "queue \"%s\": %" PRId64 " partitions, must be 1 to %d",
                         s->url.prefix, n, WEIR_REDIS_MAX_PARTITIONS);
    if (s->url.partitions && n != s->url.partitions)
        return weir_fail(err, WEIR_EINVAL, "queue \"%s\" was made with %" PRId64 " partitions, not "
                         "%" PRIu32 ": leave partitions out of the URL, or move its jobs to a new "
                         "queue (weir migrate)", s->url.prefix, n, s->url.partitions);
    *parts = (uint32_t)n;
    return WEIR_OK;
}

static weir_code check_durability(redis_store *s, weir_error *err)
{
    s->durability = weir__link_durability(s->link);
    bool disk = s->durability == WEIR_DURABLE_DISK, os = s->durability == WEIR_DURABLE_OS;
    if ((s->env.durability == WEIR_DURABLE_DISK && !disk) ||
        (s->env.durability == WEIR_DURABLE_OS && !disk && !os))
        return weir_fail(err, WEIR_EINVAL, "durability: %s was asked for, but this Redis reaches "
                         "%s: set appendonly yes%s, or leave durability out",
                         weir_durability_name(s->env.durability),
                         weir_durability_name(s->durability),
                         s->env.durability == WEIR_DURABLE_DISK ? " and appendfsync always" : "");
    return WEIR_OK;
}

static bool make_origin(redis_store *s)
{
    uint64_t mark;
    if (getrandom(&mark, sizeof mark, 0) != (ssize_t)sizeof mark)
        return false;
    snprintf(s->origin, sizeof s->origin, "%016" PRIx64, mark);
    return true;
}

/* The two lanes of our calls are not needed any more. */
static void forget_caller(redis_store *s)
{
    char lane[2][24];
    for (int i = 0; i < 2; i++)
        snprintf(lane[i], sizeof lane[i], "%s:%d", s->origin, i);
    for (uint32_t i = 0; i < s->n_parts; i++) {
        redis_part *p = &s->part[i];
        if (p->call.err.code || s->url.kue)
            continue;
        char key[sizeof p->prefix + 16];
        snprintf(key, sizeof key, "%s:meta", p->prefix);
        weir__call_reset(&p->call);
        p->call.slot = p->slot;
        p->call.repeatable = true;
        p->call.script = NULL;
        weir__resp_array(&p->call.command, 4);
        weir__resp_text(&p->call.command, "HDEL");
        weir__resp_text(&p->call.command, key);
        weir__resp_text(&p->call.command, lane[0]);
        weir__resp_text(&p->call.command, lane[1]);
        if (p->call.command.failed)
            continue;
        weir__link_send(s->link, &p->call);
        weir__link_wait(s->link, &p->call);
    }
}

static void redis_close(weir_store *base)
{
    redis_store *s = (redis_store *)base;
    if (!s)
        return;
    weir__heard_close(s);
    if (s->link && s->number)
        forget_caller(s);
    weir__link_close(s->link);
    for (uint32_t i = 0; i < s->n_parts; i++) {
        weir__buf_fini(&s->part[i].keys);
        weir__buf_fini(&s->part[i].steps);
        weir__call_fini(&s->part[i].call);
    }
    free(s->part);
    free(s->task);
    free(s->step);
    weir__buf_fini(&s->scratch);
    free(s);
}

static pthread_once_t scripts_once = PTHREAD_ONCE_INIT;

static void init_scripts(void)
{
    redis_layout *const all[] = { &weir__layout_native, &weir__layout_kue, &weir__layout_vertx };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weir__script_init(&all[i]->add);
        weir__script_init(&all[i]->rest);
    }
}

static weir_code start(redis_store *s, weir_error *err)
{
    uint32_t  parts = 1;
    weir_code rc = weir__link_open(&s->link, &s->url, err);
    if (!rc)
        rc = check_durability(s, err);
    if (!rc && !s->url.kue)
        rc = agree(s, &parts, err);
    if (!rc)
        rc = make_parts(s, parts, err);
    if (!rc && s->layout->foreign)
        snprintf(s->foreign, sizeof s->foreign, "%s%s", s->url.prefix, s->layout->foreign);
    if (!rc)
        rc = weir__heard_open(s, err);
    return rc;
}

static weir_code redis_open(weir_store **out, const weir_url *url, const weir_env *env,
                            weir_error *err)
{
    weir_error mine;
    *out = NULL;
    if (!err)
        err = &mine;
    redis_store *s = calloc(1, sizeof *s);
    if (!s)
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    s->base.ops = url->ops;
    s->env = *env;
    s->env.name = NULL;                 /* borrowed only for the call */
    atomic_store(&s->hint, UINT32_MAX);
    weir_code rc = weir__redis_url(url, &s->url, err);
    s->layout = !s->url.kue   ? &weir__layout_native
              : s->url.vertx  ? &weir__layout_vertx
                              : &weir__layout_kue;
    pthread_once(&scripts_once, init_scripts);
    if (!rc && !make_origin(s))
        rc = weir_fail(err, WEIR_EIO, "redis: no random numbers: %s", strerror(errno));
    if (!rc)
        rc = start(s, err);
    if (rc)
        redis_close(&s->base);
    else
        *out = &s->base;
    return rc;
}

const weir_store_ops weir__redis_store = {
    .name = "redis",
    .version = WEIR_STORE_OPS_VERSION,
    .options = weir__redis_options,
    .open = redis_open,
    .close = redis_close,
    .run = redis_run,
};

const weir_store_ops weir__kue_store = {
    .name = "redis+kue",
    .version = WEIR_STORE_OPS_VERSION,
    .options = weir__kue_options,
    .open = redis_open,
    .close = redis_close,
    .run = redis_run,
};
