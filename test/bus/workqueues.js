// workqueues.js WEIR MODULES - work queues of a server, with Vert.x's own clients as senders and processors:
// the scenarios of mod-work-queue's tests, restarts, and kill -9 with a ledger of what was accepted.
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { assert, clients, done, serve, settled, test, until } = require('./rig');

const names = Object.keys(clients);
const open = (server, i) => clients[names[i % names.length]](server);

// A processor at an address of its own, registered once; `handle` gets each message.
async function processor(client, queue, address, handle) {
  client.on(address, (err, m) => handle(m));
  await settled(client);
  const answer = await client.request(`${queue}.register`, { processor: address });
  assert.deepStrictEqual(answer.body, { status: 'ok' });
}

async function withClients(server, n, fn) {
  const all = [];
  for (let i = 0; i < n; i++) all.push(await open(server, i));
  try { return await fn(all); } finally { all.forEach((c) => c.close()); }
}

async function status(server, address) {
  const response = await fetch(`http://${server.http}/v1/workqueues`);
  return (await response.json()).work_queues.find((q) => q.address === address);
}

const scenarios = {
  async 'ten processors and thirty messages'(server, queue) {
    await withClients(server, 4, async ([sender, ...workers]) => {
      const got = new Map();
      for (let i = 0; i < 10; i++)
        await processor(workers[i % 3], queue, `${queue}.p${i}`, (m) => {
          got.set(m.body.n, (got.get(m.body.n) || 0) + 1);
          m.reply({ by: i });
        });
      const by = new Map();
      await Promise.all([...Array(30).keys()].map(async (n) => {
        const r = await sender.request(queue, { n });
        by.set(r.body.by, (by.get(r.body.by) || 0) + 1);
      }));
      assert.deepStrictEqual([...got.values()], Array(30).fill(1));
      assert.strictEqual([...by.values()].reduce((a, b) => a + b), 30);
      assert.strictEqual(by.size, 10);
    });
  },

  async 'thirty messages with accepted replies, in both spellings'(server, queue) {
    await withClients(server, 3, async ([sender, a, b]) => {
      let accepted = 0;
      let processed = 0;
      sender.on(`${queue}.accepted`, (err, m) => { accepted += m.body.status === 'accepted'; });
      await settled(sender);
      for (let n = 0; n < 30; n++)          // nobody processes yet: they are accepted all the same
        sender.post(queue, { n, [n % 2 ? 'accepted-reply' : 'accepted_reply']: `${queue}.accepted` });
      await until(() => accepted === 30, 'all are accepted');
      for (const [i, w] of [a, b].entries())
        await processor(w, queue, `${queue}.q${i}`, (m) => { processed++; m.reply({}); });
      await until(() => processed === 30, 'all are processed');
    });
  },

  async 'a conversation of three steps'(server, queue) {
    await withClients(server, 2, async ([sender, worker]) => {
      const heard = [];
      await processor(worker, queue, `${queue}.talker`, async (m) => {
        heard.push(m.body.step);
        const second = await worker.reply(m, { step: 'which?' });
        heard.push(second.body.step);
        second.reply({ step: 'done' });
      });
      const first = await sender.request(queue, { step: 'begin' });
      assert.strictEqual(first.body.step, 'which?');
      const last = await sender.reply(first, { step: 'this' });
      assert.strictEqual(last.body.step, 'done');
      assert.deepStrictEqual(heard, ['begin', 'this']);
    });
  },

  async 'a processor that disconnects loses its work to the next, at once'(server, queue) {
    await withClients(server, 3, async ([sender, silent, good]) => {
      let had = false;
      await processor(silent, queue, `${queue}.silent`, () => { had = true; });
      const reply = sender.request(queue, { n: 1 });
      await until(() => had, 'the first processor has it');
      await processor(good, queue, `${queue}.good`, (m) => m.reply('mine'));
      silent.close();
      assert.strictEqual((await reply).body, 'mine');
      for (;;) {                            // and nothing waits for a processor that is gone
        const q = await status(server, queue);
        if (q.idle === 1 && q.busy === 0) break;
      }
    });
  },

  async 'unregistered processors receive no more'(server, queue) {
    await withClients(server, 2, async ([sender, worker]) => {
      const got = [];
      await processor(worker, queue, `${queue}.a`, (m) => { got.push('a'); m.reply(1); });
      await processor(worker, queue, `${queue}.b`, (m) => { got.push('b'); m.reply(1); });
      await worker.request(`${queue}.unregister`, { processor: `${queue}.a` });
      for (let i = 0; i < 3; i++) await sender.request(queue, i);
      assert.deepStrictEqual(got, ['b', 'b', 'b']);
      const wrong = await sender.request(`${queue}.register`, {});
      assert.deepStrictEqual(wrong.body, { status: 'error', message: 'processor must be specified' });
    });
  },
};

// ---- what survives ----

const ledgerStore = () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-work-'));
  return [`sqlite:${dir}/jobs.db`, () => fs.rmSync(dir, { recursive: true })];
};

const keeps = { work_queues: [{ address: 'kept', persistor_address: 'test.persistor', collection: 'work' }] };

// Send n messages; resolves when all are accepted, which for a persistent queue means stored.
async function accepted(client, queue, n) {
  const seen = new Set();
  client.on(`${queue}.ok`, (err, m) => { if (m.body.status === 'accepted') seen.add(seen.size); });
  await settled(client);
  for (let i = 0; i < n; i++) client.post(queue, { n: i, accepted_reply: `${queue}.ok` });
  await until(() => seen.size === n, `${n} are accepted`);
}

async function a_hundred_through(signal) {
  const [store, remove] = ledgerStore();
  const first = await serve(keeps, store);
  const done = new Set();
  await withClients(first, 2, async ([sender, worker]) => {
    await accepted(sender, 'kept', 100);
    let begun = 0;                          // one takes some of them and answers none
    await processor(worker, 'kept', 'kept.silent', () => { begun++; });
    await until(() => begun > 0, 'one is being processed');
    if (signal === 'SIGKILL') await first.stop(signal);
  });
  if (signal !== 'SIGKILL') await first.stop(signal);
  const second = await serve(keeps, store);
  await withClients(second, 3, async (workers) => {
    for (const [i, w] of workers.entries())
      await processor(w, 'kept', `kept.p${i}`, (m) => { done.add(m.body.n); m.reply({}); });
    await until(() => done.size === 100, 'all hundred are processed');
    for (;;) {                              // and removed from the store when they are done
      const stats = await (await fetch(`http://${second.http}/v1/stats`)).json();
      if (Object.values(stats.counts).every((n) => n === 0)) break;
    }
  });
  await second.stop();
  remove();
}

(async () => {
  const all = Object.keys(scenarios);
  const server = await serve({ work_queues: all.flatMap((name, i) => [
    { address: `q${i}` }, { address: `s${i}`, persist: true, process_timeout: 300000 }]) });
  for (const [i, [name, run]] of Object.entries(scenarios).entries()) {
    await test(`in memory: ${name}`, () => run(server, `q${i}`));
    await test(`in the store: ${name}`, () => run(server, `s${i}`));
  }
  await server.stop();
  await test('a hundred persistent messages through a restart', () => a_hundred_through('SIGTERM'));
  await test('a hundred persistent messages through kill -9', () => a_hundred_through('SIGKILL'));
  done();
})();
