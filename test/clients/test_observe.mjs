// test_observe.mjs WEIR CLIENT-DIRECTORY - jobs as an async iterator, against a real server. Writes TAP.
// test_observe.py has the same cases.
import assert from 'node:assert/strict';
import { client, run, until } from './rig.mjs';

const { Weir } = await client('weir.js');
const { observe } = await client('observe.js');

const states = async (queue, ids) => Promise.all(ids.map(async (id) => (await queue.get(id)).state));
const add = async (queue, type, n) => {
    const ids = [];
    for (let i = 0; i < n; i++)
        ids.push((await queue.add(type, i, { attempts: 3 })).id);
    return ids;
};
const next = async (jobs) => (await jobs.next()).value;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const cases = {
    async 'each outcome'(queue) {
        const ids = await add(queue, 'each', 4), jobs = observe(queue, 'each', { window: 4 });
        const got = [await next(jobs), await next(jobs), await next(jobs), await next(jobs)];
        assert.deepEqual(got.map((job) => job.id), ids);
        await got[0].done({ n: 1 });
        await got[1].giveBack('1h');
        await got[2].giveUp('no such user');
        assert.deepEqual(await states(queue, ids), ['complete', 'delayed', 'failed', 'active']);
        await got[3].fail('no answer');
        const again = await next(jobs);
        assert.equal(again.id, ids[3]);
        await again.done();
        await assert.rejects(again.done(), { code: 'ESTALE' });
        await jobs.return();
    },
    async 'no more than the window'(queue) {
        const ids = await add(queue, 'window', 4), jobs = observe(queue, 'window', { window: 2 });
        const got = [await next(jobs), await next(jobs)];
        let came = false;
        const third = next(jobs).then((job) => { came = true; return job; });
        await sleep(50);
        assert.equal(came, false);
        assert.deepEqual(await states(queue, ids), ['active', 'active', 'inactive', 'inactive']);
        await got[0].done();
        assert.equal((await third).id, ids[2]);
        await jobs.return();
        assert.deepEqual(await states(queue, ids), ['complete', 'inactive', 'inactive', 'inactive']);
    },
    async 'jobs come as they are added'(queue) {
        const seen = [];
        setTimeout(() => void queue.add('second', 2), 50);
        for await (const job of observe(queue, ['first', 'second'])) {
            seen.push(job.data);
            await job.done();
            if (seen.length === 2)
                break;
            await queue.add('first', 1);
        }
        assert.deepEqual(seen, [2, 1]);
    },
    async 'a condition leaves jobs to others'(queue) {
        const [us, eu] = [await queue.add('region', { region: 'us' }), await queue.add('region', { region: 'eu' })];
        const some = observe(queue, 'region', { when: 'data.region = "eu"' }), others = observe(queue, 'region');
        const job = await next(some);
        assert.equal(job.id, eu.id);
        assert.equal((await next(others)).id, us.id);
        await job.done();
        const waiting = next(some);
        await queue.add('region', { region: 'us' });
        const later = await queue.add('region', { region: 'eu' });
        assert.equal((await waiting).id, later.id);
        await Promise.all([some.return(), others.return()]);
        await assert.rejects(next(observe(queue, 'region', { when: 'data.region =' })), { code: 'EINVAL' });
    },
    async 'leases are renewed'(queue) {
        const [id] = await add(queue, 'slow', 1), jobs = observe(queue, 'slow', { leaseMs: 500 });
        const job = await next(jobs);
        await sleep(1200);
        assert.equal(job.signal.aborted, false);
        assert.deepEqual(await states(queue, [id]), ['active']);
        await queue.cancel(id);
        await until(() => job.signal.aborted);
        await jobs.return();
    },
    async 'ended by its signal'(queue) {
        const stop = new AbortController();
        setTimeout(() => stop.abort(), 50);
        for await (const job of observe(queue, 'none', { signal: stop.signal }))
            assert.fail(`job ${job.id}`);
    },
};

process.exitCode = await run(cases, (each, server) => each(new Weir(server.url), server));
