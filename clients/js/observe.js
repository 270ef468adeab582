// observe.js - the jobs of a weir server as an async iterator.
//
//     import { Weir, observe } from 'weir';
//
//     for await (const job of observe(new Weir(), 'mail', { window: 10, signal }))
//         await job.done({ sent: true });         // or fail(), giveBack(), giveUp()
//
// At most `window` jobs are without an outcome at any time: the others stay in the queue. Their
// leases are renewed meanwhile. When the loop is left, jobs without an outcome go back to the queue.

import { WeirError, pause, workerName } from './weir.js';

const LONG_POLL_MS = 30000;

class Stream {
    constructor(queue, types, leaseMs, worker, when) {
        Object.assign(this, { queue, types, leaseMs, worker, when });
        this.held = new Map();          // "id/delivery" to { job, lost: AbortController }
        this.changed = () => {};        // resolves what waits for room
    }

    /** Wait until fewer than n jobs are without an outcome. */
    async room(n, signal) {
        while (this.held.size >= n && !signal?.aborted)
            await new Promise((resolve) => {
                this.changed = resolve;
                signal?.addEventListener('abort', resolve, { once: true });
            });
    }

    /** Take up to n jobs; none when the server is away for a moment. */
    async take(n, signal) {
        try {
            const { jobs } = await this.queue.call('POST', '/v1/take', {
                types: this.types, n, wait: LONG_POLL_MS, lease: this.leaseMs, worker: this.worker,
                when: this.when,
            }, { signal });
            return jobs.map((job) => this.hold(job));
        } catch (why) {
            if (signal?.aborted)
                return [];
            if (!(why instanceof WeirError) || (why.status && ![429, 503, 504].includes(why.status)))
                throw why;
            await pause(1000, signal);
            return [];
        }
    }

    hold(job) {
        const { id, delivery } = job, lost = new AbortController();
        this.held.set(`${id}/${delivery}`, { job, lost });
        job.signal = lost.signal;
        job.done = (result = null) => this.end(job, { result });
        job.fail = (error) => this.end(job, { error: String(error) });
        job.giveUp = (error) => this.end(job, { error: String(error), final: true });
        job.giveBack = (delay = 0) => this.end(job, { return: true, delay });
        return job;
    }

    /** Sent again until the server answers: an outcome that comes twice changes nothing. */
    async end({ id, delivery }, outcome) {
        if (!this.held.delete(`${id}/${delivery}`))
            throw new WeirError(409, 'ESTALE', 'the job has an outcome already');
        try {
            for (const until = Date.now() + this.leaseMs; ;) {
                try {
                    const { results } = await this.queue.call('POST', '/v1/finish',
                        { jobs: [{ id, delivery, ...outcome }] });
                    if (results[0].error)
                        throw new WeirError(409, results[0].error.code, results[0].error.message);
                    return;
                } catch (why) {
                    if ((why.status && why.status < 500) || Date.now() > until)
                        throw why;
                    await pause(300);
                }
            }
        } finally {
            this.changed();
        }
    }

    async renew() {
        const held = [...this.held.values()];
        if (!held.length)
            return;
        try {
            const { results } = await this.queue.call('POST', '/v1/renew', {
                lease: this.leaseMs,
                jobs: held.map(({ job }) => ({ id: job.id, delivery: job.delivery })),
            });
            results.forEach((said, i) => said.error && held[i].lost.abort());
        } catch { /* the next time */ }
    }
}

/** Jobs of these types, one by one, until `signal` aborts or the loop is left. A job has done(result),
 *  fail(error), giveUp(error), giveBack(delay), and `signal`, which aborts when it is lost. With `when`,
 *  only jobs for which this condition is true ('data.region = "eu"'); the others stay for others. */
export async function* observe(queue, types, { window = 1, leaseMs = 30000, worker, when, signal } = {}) {
    const stream = new Stream(queue, [types].flat(), leaseMs, worker ?? `${workerName()}:observe`, when);
    const renewing = setInterval(() => void stream.renew(), leaseMs / 3);
    try {
        while (!signal?.aborted) {
            await stream.room(window, signal);
            if (!signal?.aborted)
                yield* await stream.take(window - stream.held.size, signal);
        }
    } finally {
        clearInterval(renewing);
        await Promise.all([...stream.held.values()].map(({ job }) => job.giveBack().catch(() => {})));
    }
}
