// jobs.js WEIR MODULES - the job service and the events of jobs, as Vert.x's own clients use them: one client
// produces, another one processes, a third one watches.
'use strict';
const { assert, clients, done, serve, settled, test, until } = require('./rig');

const SERVICE = 'vertx.kue.service.job.internal';
const call = async (client, action, body = {}) => (await client.request(SERVICE, body, { action })).body;
const on = (client, list, event, job) => client.on(
  `vertx.kue.handler.job.${event}.${job.address_id}.${job.type}`, (err, m) => list.push([event, m.body]));

const cases = {
  async 'a job from createJob to complete, with its events'(producer, worker, type) {
    const job = await call(producer, 'createJob', { type, data: { to: 'ann' } });
    const seen = [];
    for (const event of ['start', 'progress', 'complete', 'snore']) on(producer, seen, event, job);
    const all = [];
    producer.on('vertx.kue.handler.workers.job_complete', (err, m) => { if (m.body.job.type === type) all.push(m.body.job.id); });
    await settled(producer);
    const saved = await call(producer, 'saveJob', { job });
    assert.strictEqual(saved.address_id, job.address_id);
    const mine = await call(worker, 'takeJob', { type, worker: 'js' });
    assert.deepStrictEqual(mine.data, { to: 'ann' });
    await call(worker, 'jobProgress', { job: mine, complete: 1, total: 4 });
    worker.publish(`vertx.kue.handler.job.snore.${job.address_id}.${type}`, 'zzz');
    mine.result = { sent: true };
    assert.strictEqual(await call(worker, 'jobDone', { job: mine }), 'complete');
    await until(() => seen.length === 4 && all.length === 1, 'all events are there');
    assert.deepStrictEqual(seen.map(([e]) => e).filter((e) => e !== 'snore'), ['start', 'progress', 'complete']);
    assert.strictEqual(seen.find(([e]) => e === 'progress')[1], 25);
    assert.deepStrictEqual(seen.find(([e]) => e === 'complete')[1].result, { sent: true });
    assert.strictEqual((await call(producer, 'getJob', { id: saved.id })).state, 'COMPLETE');
    assert.strictEqual(await call(producer, 'completeCount', { type }), 1);
  },
  async 'a job that fails by the worker protocol'(producer, worker, type) {
    const job = await call(producer, 'createJob', { type });
    const seen = [];
    for (const event of ['error', 'failed']) on(producer, seen, event, job);
    await settled(producer);
    await call(producer, 'saveJob', { job });
    const mine = await call(worker, 'takeJob', { type });
    worker.post(`vertx.kue.handler.workers.done_fail.${mine.address_id}`, 'no paper');
    await until(() => seen.length === 2, 'error and failed');
    assert.deepStrictEqual(seen[0], ['error', { id: mine.id, message: 'no paper' }]);
    assert.strictEqual(seen[1][1].extra.message, 'no paper');
  },
  async 'failures of the service'(producer) {
    await assert.rejects(call(producer, 'dance'), (e) => e.failureCode === 500 && e.message === 'Invalid action: dance');
    await assert.rejects(call(producer, 'jobRange', { from: 2, to: 1, order: 'asc' }), (e) => e.failureCode === -1 &&
      e.failureType === 'RECIPIENT_FAILURE' && e.message === 'to can not be greater than from');
    assert.strictEqual((await call(producer, 'getJob', { id: 4711 })) || null, null);
  },
};

(async () => {
  const server = await serve();
  const names = Object.keys(clients);
  let n = 0;
  for (const name of names)
    for (const [what, run] of Object.entries(cases))
      await test(`${name}: ${what}`, async () => {
        const a = await clients[name](server);
        const b = await clients[names[(n + 1) % names.length]](server);
        try { await run(a, b, `type${++n}`); } finally { a.close(); b.close(); }
      });
  await server.stop();
  done();
})();
