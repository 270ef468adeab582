/* run.c - batches of operations, in rounds: see engine.h. */
#include <stdlib.h>

#include "store/redis/engine.h"

enum { MAX_ROUNDS = 1000 };         /* of an operation whose job others keep changing */

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
static weir_code (*const alone[WEIR_OP_KINDS])(redis_lane *s, weir_op *op) = {
    [WEIR_OP_TICK] = weir__redis_tick,
    [WEIR_OP_CHECK] = weir__redis_check,
};

static bool look_round(redis_lane *s, redis_task *tasks, size_t n)
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

/* Must it be as safe as the URL asks before it is acknowledged? What workers do is not waited for:
 * if it is lost, the job runs again. */
static bool must_last(const weir_op *op)
{
    return weir__op_info[op->kind].writes && !weir__op_info[op->kind].lane;
}

static void act_round(redis_lane *s, redis_task *tasks, size_t n, int64_t now)
{
    bool writes = false, lasts = false;
    weir__calls_reset(s);
    for (size_t i = 0; i < n; i++) {
        redis_task *t = &tasks[i];
        t->n = 0;
        if (t->over)
            continue;
        weir__redis_kinds[t->op->kind].act(s, t);
        writes = writes || weir__op_info[t->op->kind].writes;
        lasts = lasts || must_last(t->op);
    }
    weir__calls_run(s, now, writes);
    if (lasts)
        weir__confirm(s);
}

/* With too little memory for the adds, a call was refused whole: the others go on without them. */
static bool is_refused_with_adds(redis_lane *s, const redis_task *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const redis_draft *p = &s->draft[s->step[t->first + i].part];
        if (p->call.err.code == WEIR_EFULL && p->adds)
            return t->op->kind != WEIR_OP_ADD && t->op->kind != WEIR_OP_IMPORT;
    }
    return false;
}

static void end_task(redis_lane *s, redis_task *t)
{
    const weir_error *unsafe = must_last(t->op) ? weir__step_unsafe(s, t) : NULL;
    weir__redis_kinds[t->op->kind].end(s, t);
    if (unsafe && !t->op->err.code)
        weir__task_fail(t, unsafe);
}

static size_t end_round(redis_lane *s, redis_task *tasks, size_t n)
{
    size_t going = 0;
    for (size_t i = 0; i < n; i++) {
        redis_task *t = &tasks[i];
        if (t->over)
            continue;
        if (!weir__step_put_off(s, t) && !is_refused_with_adds(s, t))
            end_task(s, t);
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
static size_t see(redis_lane *s, redis_task *tasks, size_t n)
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
static size_t run_tasks(redis_lane *s, redis_task *tasks, size_t n, int64_t now)
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
    bool ends = op->kind == WEIR_OP_FINISH && op->u.finish.outcome != WEIR_OUTCOME_DONE;
    bool updates = op->kind == WEIR_OP_UPDATE;
    if (seg->some && ((ends || updates) && (*word & bit)))
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

static bool room_for_tasks(redis_lane *s, size_t n)
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

/* Is it what workers do with jobs they have or want? Then it may go beside everything else. */
static bool is_work(weir_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!weir__op_info[ops[i]->kind].lane)
            return false;
    }
    return true;
}

static bool may_run(const redis_store *top, const weir_op *op)
{
    bool only_looks = op->kind == WEIR_OP_CHECK && !op->u.check.mend;
    return !top->env.read_only || only_looks || !weir__op_info[op->kind].writes;
}

static weir_code refuse(weir_op *op)
{
    return weir_fail(&op->err, WEIR_EREADONLY, "the store is open for reading only");
}

/* Now, by Redis's clock: not later than it is there, but maybe some ms before. 0: not known. */
static int64_t stamp_of(redis_store *top)
{
    int64_t sure = atomic_load(&top->sure_ms);
    return sure == INT64_MIN ? 0 : top->env.now(top->env.ctx) + sure;
}

weir_code weir__redis_run(weir_store *base, weir_op **ops, size_t n, weir_error *err)
{
    redis_store *top = (redis_store *)base;
    redis_lane  *s = &top->lane[is_work(ops, n)];
    if (!room_for_tasks(s, n))
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    weir_code rc = weir__lane_open(s, err);
    if (rc)
        return rc;
    s->add_room = 0;
    for (size_t i = 0; i < n;) {
        touched seg = { 0 };
        size_t  tasks = 0;
        int64_t now = s->own_clock ? ops[i]->now_ms : 0;
        s->stamp = now ? now : stamp_of(top);
        for (; i < n && !alone[ops[i]->kind] && fits(&seg, ops[i], s->own_clock); i++) {
            ops[i]->err = (weir_error){ 0 };
            if (may_run(top, ops[i]))
                s->task[tasks++] = (redis_task){ .op = ops[i] };
            else
                refuse(ops[i]);
        }
        for (size_t done = 0; done < tasks;)
            done += run_tasks(s, s->task + done, tasks - done, now);
        if (!seg.some) {
            weir_op *op = ops[i++];
            op->err = (weir_error){ 0 };
            if (may_run(top, op))
                alone[op->kind](s, op);
            else
                refuse(op);
        }
    }
    return WEIR_OK;
}
