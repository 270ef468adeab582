// test_client.mjs WEIR CLIENT-DIRECTORY - the JavaScript client against a real server. Writes TAP.
import assert from 'node:assert/strict';
import { client, run } from './rig.mjs';

const { ReturnJob, Weir, WeirError } = await client('weir.js');

// Work while `during` runs.
async function working(queue, types, handler, options, during) {
    const stop = new AbortController();
    const work = queue.work(types, handler, { ...options, signal: stop.signal });
    try {
        return await during();
    } finally {
        stop.abort();
        await work;
    }
}

const cases = {
    async 'adds and finds'(queue) {
        const added = await queue.add('mail', { to: 'ann@example.org' }, { priority: 'high', attempts: 3 });
        assert.equal(added.state, 'inactive');
        const job = await queue.get(added.id);
        assert.deepEqual(job.data, { to: 'ann@example.org' });
        assert.equal(job.priority, -10);
        assert.equal((await queue.list({ type: 'mail' })).jobs[0].id, added.id);
        await queue.remove(added.id);
        await assert.rejects(queue.get(added.id), (e) => e instanceof WeirError && e.status === 404);
    },
    async 'keeps schedules'(queue) {
        const made = await queue.schedulePut('a/b', { when: '30 6 * * 1', zone: 'Europe/Berlin',
            job: { type: 'report', attempts: 3 } });
        assert.equal(made.words, 'at 06:30 on Monday (Europe/Berlin)');
        assert.equal((await queue.schedule('a/b')).next.length, 5);
        const id = await queue.scheduleFire('a/b');
        assert.equal((await queue.get(id)).values.schedule, 'a/b');
        assert.equal(await queue.scheduleBackfill('a/b', 1774569600000, 1775449800001), 2);
        assert.ok((await queue.schedulePause('a/b')).paused);
        assert.ok(!(await queue.scheduleResume('a/b')).paused);
        assert.equal((await queue.scheduleNext('@daily', { n: 7 })).next.length, 7);
        const names = [];
        for await (const s of queue.schedules()) names.push(s.name);
        assert.deepEqual(names, ['a/b']);
        await queue.scheduleRemove('a/b');
        await assert.rejects(queue.schedule('a/b'), (e) => e.status === 404);
    },
    async 'adds many, each by itself'(queue) {
        const answers = await queue.addMany([{ type: 'a' }, { type: 'b', attempts: -1 }, { type: 'c' }]);
        assert.ok(answers[0].id && answers[2].id && answers[1].error.field.endsWith('attempts'));
    },
    async 'says what is wrong'(queue) {
        await assert.rejects(queue.add('mail', {}, { priorty: 3 }),
            (e) => e.status === 400 && /priorty/.test(e.message));
        await assert.rejects(new Weir('http://127.0.0.1:1').get(1),
            (e) => e.status === 0 && e.code === 'EUNAVAIL');
    },
    async 'the server is that of WEIR_STORE'(_, { url }) {
        process.env.WEIR_STORE = url;
        assert.equal((await new Weir().stats()).type, '*');
        process.env.WEIR_STORE = `${url}?token=wtk_1`;
        assert.equal((await new Weir().stats()).type, '*');
        process.env.WEIR_STORE = 'sqlite:jobs.db';
        assert.throws(() => new Weir(), /sqlite:\.\.\.: not a weir server; expected http/);
        for (const [address, what] of [['localhost:7340', 'localhost:7340'], ['127.0.0.1', '127.0.0.1']]) {
            process.env.WEIR_STORE = address;
            assert.throws(() => new Weir(), (e) => e.message.includes(`the scheme is missing; write http://${what}`));
        }
        delete process.env.WEIR_STORE;
    },
    async 'works'(queue) {
        const handler = async (job) => {
            await job.log('adding');
            await job.progress(1, 2);
            return job.data.a + 1;
        };
        await working(queue, 'sum', handler, { concurrency: 4 }, async () => {
            const ids = [];
            for (let a = 0; a < 20; a++)
                ids.push((await queue.add('sum', { a })).id);
            for (let a = 0; a < 20; a++)
                assert.equal((await queue.wait(ids[a], { timeoutMs: 60000 })).result, a + 1);
            assert.equal((await queue.log(ids[0]))[0].text, 'adding');
        });
    },
    async 'changes jobs, pauses types, lists some'(queue) {
        const { id } = await queue.add('held', {}, { priority: 'low' });
        await queue.pause('held');
        assert.ok((await queue.types()).find((t) => t.type === 'held').paused);
        await queue.resume('held');
        assert.equal((await queue.update(id, { priority: 'high', from: 'inactive' })).priority, -10);
        await assert.rejects(queue.update(id, { priority: 1, from: 'failed' }), (e) => e.code === 'ESTATE');
        const other = (await queue.add('held', {}, { delay: '1h' })).id;
        await queue.cancel(id);
        const ids = async (filter) => (await queue.list({ type: 'held', ...filter })).jobs.map((j) => j.id);
        assert.deepEqual(await ids({ state: ['cancelled', 'delayed'], order: 'desc' }), [other, id]);
        assert.deepEqual(await ids({ state: 'cancelled,failed', since: '1h' }), [id]);
        assert.deepEqual(await ids({ sort: 'priority' }), [id, other]);
        await assert.rejects(queue.list({ state: ['odd'] }), (e) => e.field === 'state');
    },
    async 'what is no JSON is refused'(queue) {
        await assert.rejects(queue.add('nan', { x: [NaN] }), /^TypeError: 0: NaN is not JSON; use null or a text/);
        await assert.rejects(queue.add('nan', Infinity), /Infinity is not JSON/);
        await working(queue, 'nan', () => 0 / 0, {}, async () => {
            const job = await queue.wait((await queue.add('nan')).id);
            assert.equal(job.error, 'the value: NaN is not JSON; use null or a text');
        });
    },
    async 'a trace goes on in the jobs that a handler adds'(queue, server) {
        const trace = '0af7651916cd43dd8448eb211c80319c', here = `00-${trace}-b7ad6b7169203331-01`;
        const traced = new Weir(server.url, { traceparent: here });
        const later = () => new Promise((resolve) => { setImmediate(resolve); });
        const handler = async (job) => {
            await later();
            return job.traceparent && (await queue.add('child')).id;
        };
        await working(queue, 'parent', handler, { concurrency: 2 }, async () => {
            const [one, none] = await Promise.all([traced.add('parent'), queue.add('parent')]);
            const child = (await queue.wait(one.id)).result;
            assert.ok((await queue.get(child)).values.traceparent.startsWith(`00-${trace}-`));
            assert.equal((await queue.wait(none.id)).result, null);
        });
        assert.equal((await queue.get((await queue.add('child')).id)).values, undefined);
    },
    async 'values stay with the job'(queue) {
        const handler = async (job) => {
            if (job.attempts === 0) {
                await job.set({ step: 1, note: 'halfway' });
                throw new Error('again');
            }
            await job.set({ note: null });
            return [job.values, (await queue.get(job.id)).values];
        };
        const { id } = await queue.add('values', {}, { attempts: 2, values: { color: 'red' } });
        await queue.set(id, { size: 7, color: null });
        await working(queue, 'values', handler, {}, async () => {
            const job = await queue.wait(id, { timeoutMs: 60000 });
            assert.deepEqual(job.result, [{ size: 7, step: 1 }, { size: 7, step: 1 }]);
        });
    },
    async 'failures use up attempts'(queue) {
        let runs = 0;
        const fail = async () => { runs++; throw new Error('no such thing'); };
        await working(queue, 'bad', fail, {}, async () => {
            const job = await queue.wait((await queue.add('bad', {}, { attempts: 3 })).id);
            assert.equal(job.state, 'failed');
            assert.equal(job.error, 'no such thing');
        });
        assert.equal(runs, 3);
    },
    async 'a returned job runs again'(queue) {
        let runs = 0;
        const handler = async () => { if (++runs < 3) throw new ReturnJob(runs * 10 - 10); return runs; };
        await working(queue, 'again', handler, {}, async () => {
            const job = await queue.wait((await queue.add('again')).id);
            assert.equal(job.result, 3);
            assert.equal(job.attempts, 1);
            assert.deepEqual(job.history.map((past) => past.state).slice(0, 2), ['inactive', 'delayed']);
        });
    },
    async 'leases are renewed'(queue) {
        const handler = (job) => new Promise((r) => setTimeout(() => r(job.signal.aborted), 2000));
        await working(queue, 'slow', handler, { leaseMs: 500 }, async () => {
            const job = await queue.wait((await queue.add('slow')).id);
            assert.equal(job.result, false);
            assert.equal(job.delivery, 1);
        });
    },
    async 'a cancelled handler is told'(queue) {
        let told, started;
        const begun = new Promise((r) => { started = r; }), heard = new Promise((r) => { told = r; });
        const handler = (job) => new Promise((r) => {
            started();
            job.signal.addEventListener('abort', () => { told(); r(); });
        });
        await working(queue, 'stop', handler, { leaseMs: 300 }, async () => {
            const { id } = await queue.add('stop');
            await begun;
            await queue.cancel(id);
            await heard;
            assert.equal((await queue.get(id)).state, 'cancelled');
        });
    },
    async 'hears events'(queue) {
        const stop = new AbortController(), heard = new Set();
        const listening = (async () => {
            for await (const e of queue.events({ type: 'heard', signal: stop.signal })) {
                heard.add(e.event);
                if (['enqueue', 'start', 'complete'].every((name) => heard.has(name)))
                    return;
            }
        })();
        await working(queue, 'heard', async () => {}, {}, async () => {
            let done = false;
            void listening.then(() => { done = true; });
            while (!done)
                await queue.wait((await queue.add('heard')).id);
        });
        stop.abort();
    },
};

process.exit(await run(cases, (each, server) => each(new Weir(server.url), server)));
