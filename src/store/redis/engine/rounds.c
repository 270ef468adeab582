/* rounds.c - batches of operations, in rounds: see engine.h. */
#include <stdlib.h>

#include "store/redis/engine/engine.h"

#include "base/grow.h"

enum { MAX_ROUNDS = 1000 };         /* of an operation whose job others keep changing */

#define ACT(kind, member)                                                                         \
    [WEIR_OP_##kind] = { .act = weir__redis_##member##_act, .end = weir__redis_##member##_end },
#define LOOK(kind, member)                                                                        \
    [WEIR_OP_##kind] = { .look = weir__redis_##member##_look,                                     \
                         .seen = weir__redis_##member##_seen,                                     \
                         .act = weir__redis_##member##_act, .end = weir__redis_##member##_end },
#define ALONE(kind, member) [WEIR_OP_##kind] = { .alone = weir__redis_##member },
const redis_kind weir__redis_kinds[WEIR_OP_COUNT] = { REDIS_OPS(ACT, LOOK, ALONE) };
#undef ACT
#undef LOOK
#undef ALONE

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

/* Must it be as safe as the URL asks before it is acknowledged? The batch does not wait for
 * operations of workers to be confirmed: if one is lost, the job runs again. */
static bool must_last(const weir_op *op)
{
    return weir__op_writes(op) && !weir__op_row(op)->lane;
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
        writes = writes || weir__op_writes(t->op);
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
            weir_fail(&t->op->err, WEIR_EUNAVAIL, "%s: other processes keep changing the job",
                      weir__op_row(t->op)->name);
            t->over = true;
        }
        going += !t->over;
    }
    return going;
}

/* May it give to workers, or add, jobs that nobody has named yet? */
static bool emits_events(const weir_op *op)
{
    return weir__op_row(op)->most(op) && weir__op_writes(op);
}

/* The jobs that were looked for are there. If a task did not find what it expects, an earlier task
 * may be about to write that. The task must then look again after the earlier one. Returns how many
 * come before it. */
static size_t see(redis_lane *s, redis_task *tasks, size_t n)
{
    bool emitted = false;
    for (size_t i = 0; i < n; i++) {
        redis_task *t = &tasks[i];
        if (!t->over && t->n) {
            weir__redis_kinds[t->op->kind].seen(s, t);
            if (t->over && emitted) {
                t->over = false;
                t->op->err = (weir_error){ 0 };
                return i;
            }
        }
        emitted = emitted || emits_events(t->op);
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
    for (size_t i = 0; i < n; i++) {
        weir__task_drop(&tasks[i]);
        weir__choosing_free(&tasks[i]);
    }
    return n;
}

/* The jobs that the operations of a segment touch. A task that looks before it acts must not follow
 * a task that may change the same data. */
typedef struct touched {
    uint64_t bits[16];
    bool     any;                   /* jobs that nobody named */
    bool     some;
    bool     chooses;               /* a take with a condition, which takes several rounds: alone */
    int64_t  now;
} touched;

/* Does the segment have an operation that may change a job that this one names? */
static bool is_touched(const touched *seg, weir_op *op)
{
    const uint64_t *id;
    for (size_t i = 0; (id = weir__op_row(op)->job(op, i)); i++) {
        if (seg->bits[*id / 64 % 16] >> *id % 64 & 1)
            return true;
    }
    return false;
}

static void touch(touched *seg, weir_op *op)
{
    const uint64_t *id;
    for (size_t i = 0; weir__op_writes(op) && (id = weir__op_row(op)->job(op, i)); i++)
        seg->bits[*id / 64 % 16] |= UINT64_C(1) << *id % 64;
    seg->any = seg->any || emits_events(op);
    seg->some = true;
    seg->now = op->now_ms;
}

static bool has_condition(const weir_op *op)
{
    const weir_op_take *take = weir__op_row(op)->take(op);
    return take && take->n && take->when;
}

/* Does it fit into the segment? Then it is noted there. */
static bool fits(touched *seg, weir_op *op, bool test_clock)
{
    bool ends = op->kind == WEIR_OP_FINISH && op->u.finish.outcome != WEIR_OUTCOME_DONE;
    bool updates = op->kind == WEIR_OP_UPDATE;
    bool waits = ((ends || updates) && is_touched(seg, op)) || (updates && seg->any) ||
                 (test_clock && op->now_ms != seg->now) || seg->chooses || has_condition(op);
    if (seg->some && waits)
        return false;
    seg->chooses = has_condition(op);
    touch(seg, op);
    return true;
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
    redis_lane  *s = &top->lane[weir__ops_lane(ops, n)];
    if (!weir__grow(&s->task, &s->cap_tasks, n, sizeof *s->task))
        return weir_fail(err, WEIR_ENOMEM, "redis: out of memory");
    weir_code rc = weir__lane_open(s, err);
    if (rc)
        return rc;
    s->add_room = 0;
    for (size_t i = 0; i < n;) {
        touched seg = { 0 };
        size_t  tasks = 0;
        int64_t now = s->test_clock ? ops[i]->now_ms : 0;
        s->stamp = now ? now : stamp_of(top);
        for (; i < n && !weir__redis_kinds[ops[i]->kind].alone &&
               fits(&seg, ops[i], s->test_clock); i++) {
            weir__op_clear(ops[i]);
            if (!weir__op_refused(ops[i], top->env.read_only))
                s->task[tasks++] = (redis_task){ .op = ops[i] };
        }
        for (size_t done = 0; done < tasks;)
            done += run_tasks(s, s->task + done, tasks - done, now);
        if (!seg.some) {
            weir_op *op = ops[i++];
            weir__op_clear(op);
            if (!weir__op_refused(op, top->env.read_only))
                weir__redis_kinds[op->kind].alone(s, op);
        }
    }
    return WEIR_OK;
}
