// js.mjs CLIENT-DIRECTORY - scenario.md with the JavaScript client.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { Bus, Weir } = await import(pathToFileURL(join(process.argv[2], 'index.js')).href);

const PATIENCE_MS = 60000;
const DATA = { to: 'ann', n: [1, 2.5, 'ä'] };
const queue = new Weir(), bus = new Bus(), stop = new AbortController();
let seen = false, cancelled = false;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what) {
    for (const end = Date.now() + PATIENCE_MS; !(await what()); await pause(5))
        assert.ok(Date.now() < end, `never: ${what}`);
}

// A call, repeated while the server is away.
async function again(call) {
    for (const end = Date.now() + PATIENCE_MS; ; await pause(20)) {
        try {
            return await call();
        } catch (why) {
            if (Date.now() > end)
                throw why;
        }
    }
}

const failure = async (promise) => promise.then(() => { throw new Error('it did not fail'); }, (why) => why);
const done = (id) => queue.wait(id, { timeoutMs: PATIENCE_MS });

const handlers = {
    sum: (job) => job.data.a + job.data.b,
    flaky: (job) => {
        if (job.delivery === 1)
            throw new Error('not yet');
    },
    slow: async (job) => {
        await job.progress(1, 4);
        await job.log('a quarter');
        await until(() => seen);
    },
    endless: async (job) => {
        await job.progress(1, 2);
        await until(() => job.signal.aborted);
        cancelled = true;
    },
};

const steps = {
    async add() {
        const added = await queue.add('first', DATA, { priority: 'high', attempts: 3, unique: 'u' });
        const job = await queue.get(added.id);
        assert.deepEqual([job.data, job.priority, job.max_attempts, job.state], [DATA, -10, 3, 'inactive']);
        assert.deepEqual(await queue.add('first', {}, { unique: 'u' }), { ...added, existed: true });
    },
    async bulk() {
        const added = await queue.addMany(Array.from({ length: 100 }, () => ({ type: 'bulk' })));
        assert.equal(new Set(added.map(({ id }) => id)).size, 100);
        assert.equal((await queue.list({ type: 'bulk', state: 'inactive', limit: 1000 })).jobs.length, 100);
    },
    async wait() {
        const { id } = await queue.add('first');
        assert.equal((await queue.wait(id, { timeoutMs: 50 })).state, 'inactive');
    },
    async work() {
        const ids = [];
        for (let i = 0; i < 10; i++)
            ids.push((await queue.add('sum', { a: i, b: 1 })).id);
        for (const [i, id] of ids.entries()) {
            const job = await done(id);
            assert.deepEqual([job.state, job.result], ['complete', i + 1]);
        }
    },
    async fail_and_retry() {
        let job = await done((await queue.add('flaky', {}, { attempts: 2 })).id);
        assert.deepEqual([job.state, job.attempts], ['complete', 2]);
        const { id } = await queue.add('flaky');
        job = await done(id);
        assert.equal(job.state, 'failed');
        assert.match(job.error, /not yet/);
        await queue.retry(id);
        assert.equal((await done(id)).state, 'complete');
    },
    async progress() {
        const { id } = await queue.add('slow');
        await until(async () => (await queue.get(id)).progress === 25 &&
            (await queue.log(id)).map(({ text }) => text).join() === 'a quarter');
        seen = true;
        assert.equal((await done(id)).state, 'complete');
    },
    async cancel() {
        const { id } = await queue.add('endless');
        await until(async () => (await queue.get(id)).progress === 50);
        await queue.cancel(id);
        await until(() => cancelled);
        assert.equal((await queue.get(id)).state, 'cancelled');
        const delayed = await queue.add('first', {}, { delay: '1h' });
        await queue.cancel(delayed.id);
        assert.equal((await queue.get(delayed.id)).state, 'cancelled');
    },
    async schedule() {
        await queue.schedulePut('nightly', { when: '0 3 * * *', job: { type: 'night' } });
        assert.equal((await queue.get(await queue.scheduleFire('nightly'))).type, 'night');
        assert.ok((await queue.schedule('nightly')).next_at);
        await queue.scheduleRemove('nightly');
        assert.equal((await failure(queue.schedule('nightly'))).code, 'ENOENT');
    },
    async talk() {
        await bus.consume('double', (message) => message.body * 2);
        assert.equal((await bus.request('double', 21)).body, 42);
        const heard = [];
        for (const name of ['a', 'b'])
            await bus.consume('news', (message) => { heard.push(name + message.body); });
        await bus.publish('news', '!');
        await until(() => heard.sort().join() === 'a!,b!');
        assert.equal((await failure(bus.request('nobody'))).failure, 'NO_HANDLERS');
    },
    async reconnect() {
        const { id } = await queue.add('stays');
        console.log('# restart');
        await once(process.stdin, 'data');
        assert.equal((await again(() => queue.get(id))).type, 'stays');
        const sum = (await again(() => queue.add('sum', { a: 1, b: 2 }))).id;
        assert.equal((await again(() => done(sum))).result, 3);
        assert.equal((await again(() => bus.request('double', 4))).body, 8);
    },
};

const workers = Object.entries(handlers).map(([type, handler]) =>
    queue.work(type, handler, { concurrency: 2, signal: stop.signal }));
console.log(`1..${Object.keys(steps).length}`);
let n = 0;
for (const [name, step] of Object.entries(steps)) {
    await step();
    console.log(`ok ${++n} - ${name}`);
}
stop.abort();
await Promise.all(workers);
bus.close();
process.stdin.destroy();
