/* gate.c - the gate of a queue: see gate.h. A pool that was refused is woken by the timer's thread,
 * which looks at all pools: weir__pools_tend(). */
#include "runtime/gate.h"

#include "base/clock.h"
#include "core/job.h"

/* While no taker has noted a suspect, the gate needs no time. */
static int64_t time_for(const weir_gate *g)
{
    return g->knowing ? weir__monotonic_ms() : 0;
}

weir_pass weir__queue_enter(weir_queue *q, const bool *knows, bool only_alone)
{
    pthread_mutex_lock(&q->gate.lock);
    weir_gate *g = &q->gate.is;
    weir_pass  pass = weir__gate_enter(g, *knows, only_alone, time_for(g));
    pthread_mutex_unlock(&q->gate.lock);
    return pass;
}

bool weir__queue_knows(weir_queue *q, const bool *knows)
{
    pthread_mutex_lock(&q->gate.lock);
    bool is = *knows;
    pthread_mutex_unlock(&q->gate.lock);
    return is;
}

int64_t weir__queue_closed_ms(weir_queue *q)
{
    pthread_mutex_lock(&q->gate.lock);
    weir_gate *g = &q->gate.is;
    int64_t    left = g->knowing ? g->until - weir__monotonic_ms() : INT64_MAX;
    pthread_mutex_unlock(&q->gate.lock);
    return left > 0 ? left : 0;
}

weir_pass weir__queue_enter_by_hand(weir_queue *q)
{
    pthread_mutex_lock(&q->gate.lock);
    weir_pass pass = weir__gate_enter_by_hand(&q->gate.is, time_for(&q->gate.is));
    pthread_mutex_unlock(&q->gate.lock);
    return pass;
}

bool weir__queue_answered(weir_queue *q, weir_pass pass, const weir_op_take *take, bool *knows)
{
    weir_gate_answer a = { .failed = !take };
    if (take)
        a = (weir_gate_answer){ .n = take->n_jobs, .waits = take->suspect_waits,
                                .suspect = take->n_jobs && weir__job_is_suspect(take->jobs[0]) };
    pthread_mutex_lock(&q->gate.lock);
    weir_gate *g = &q->gate.is;
    int64_t    now = g->knowing || a.waits || a.suspect ? weir__monotonic_ms() : 0;
    bool       keep = weir__gate_answered(g, pass, a, knows, now);
    bool       look = weir__gate_opened(g, now) || a.waits;
    pthread_mutex_unlock(&q->gate.lock);
    if (look)
        weir__timer_set(&q->timer, &q->tend, INT64_MIN);
    return keep;
}

void weir__queue_left(weir_queue *q, const weir_job *job)
{
    pthread_mutex_lock(&q->gate.lock);
    weir_gate *g = &q->gate.is;
    weir__gate_left(g, 1, weir__job_is_suspect(job));
    bool opened = weir__gate_opened(g, time_for(g));
    pthread_mutex_unlock(&q->gate.lock);
    if (opened)
        weir__timer_set(&q->timer, &q->tend, INT64_MIN);
}

void weir__queue_forget(weir_queue *q, bool *knows)
{
    pthread_mutex_lock(&q->gate.lock);
    weir__gate_forget(&q->gate.is, knows);
    bool opened = weir__gate_opened(&q->gate.is, weir__monotonic_ms());
    pthread_mutex_unlock(&q->gate.lock);
    if (opened)
        weir__timer_set(&q->timer, &q->tend, INT64_MIN);
}
