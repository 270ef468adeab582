// servers.js WEIR MODULES - two servers on one Redis are one to Vert.x's own clients. When one of them is
// killed, its clients connect to the other one and go on, and so do work queues that both have.
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');
const { assert, clients, done, serve, settled, test, until } = require('./rig');

async function redis() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-redis-'));
  const socket = path.join(dir, 'redis.sock');
  const child = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', dir],
    { stdio: 'ignore' });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  await until(() => fs.existsSync(socket), 'Redis is ready');
  return {
    url: `redis+unix://${socket}`,
    stop: async () => {
      kill();
      await until(() => child.signalCode !== null, 'Redis has ended');
      fs.rmSync(dir, { recursive: true });
    },
  };
}

// The reply to a request, once the address is known at the client's server.
async function answer(client, address, body) {
  for (;;) {
    try {
      return (await client.request(address, body, { timeout: '1000' })).body;
    } catch (e) {
      if (!['NO_HANDLERS', 'TIMEOUT', 'ERROR'].includes(e.failureType)) throw e;
      await new Promise((ok) => setTimeout(ok, 10));
    }
  }
}

const echo = (client, name) => client.on('echo', (err, m) => m.reply([name, m.body], {}));

async function one_is_killed(name, store) {
  const first = await serve({}, store);
  const second = await serve({}, store);
  const a = await clients[name](first);
  const b = await clients[name](second);
  const news = [];
  echo(b, 'b');
  b.on('news', (err, m) => news.push(m.body));
  await settled(b);
  assert.deepStrictEqual(await answer(a, 'echo', 1), ['b', 1]);
  a.publish('news', 'across');
  await until(() => news.length, 'a publish has crossed');
  b.bus.onclose = () => {};
  b.bus.onerror = () => {};
  await second.stop('SIGKILL');
  const again = await clients[name](first);         // what its user does when it is disconnected
  echo(again, 'again');
  await settled(again);
  assert.deepStrictEqual(await answer(a, 'echo', 2), ['again', 2]);
  await assert.rejects(a.request('news', 1), (e) => ['NO_HANDLERS', 'ERROR'].includes(e.failureType));
  a.close();
  again.close();
  await first.stop();
}

// ---- work queues of one address at two servers ----

const both = { work_queues: [{ address: 'memory' }, { address: 'kept', persist: true }] };

async function queue(server, address) {
  const response = await fetch(`http://${server.http}/v1/workqueues/${address}`);
  return response.json();
}

async function when(fn, what) {
  for (let is = false; !is;) {
    is = await fn();
    if (!is) await new Promise((ok) => setTimeout(ok, 20));
  }
}

// Two servers, of which the first serves the addresses, and a client of each.
async function pair(store) {
  const servers = [await serve(both, store)];
  servers.push(await serve(both, store));
  for (const address of ['memory', 'kept']) {
    assert.strictEqual((await queue(servers[0], address)).standby, false);
    assert.strictEqual((await queue(servers[1], address)).standby, true);
  }
  const at = await Promise.all(servers.map((s) => clients['vertx3-tcp-eventbus-client'](s)));
  for (const c of at) c.bus.onclose = c.bus.onerror = () => {};
  return { servers, at };
}

async function processor(client, work, address, handle) {
  client.on(address, (err, m) => handle(m));
  await settled(client);
  assert.deepStrictEqual((await client.request(`${work}.register`, { processor: address })).body,
    { status: 'ok' });
}

// Three processors at two servers: in each round each of them has one message.
async function round_by_round(store, work) {
  const { servers, at } = await pair(store);
  const got = [];
  for (const [i, client] of [at[0], at[1], at[1]].entries())
    await processor(client, work, `p${i}`, (m) => { got.push(i); m.reply(i, {}); });
  for (let round = 0; round < 10; round++) {
    got.length = 0;
    await Promise.all([0, 1, 2].map((n) => at[n % 2].request(work, n)));
    assert.deepStrictEqual(got.sort(), [0, 1, 2]);
    await when(async () => (await queue(servers[0], work)).idle === 3, 'all are idle');
  }
  const counts = await Promise.all(servers.map((s) => queue(s, work)));
  assert.deepStrictEqual(counts.map((q) => [q.standby, q.done, q.idle]), [[false, 30, 3], [true, 30, 3]]);
  await at[0].request(`${work}.unregister`, { processor: 'p1' });     // and it is known at the other one, too
  await servers[0].stop();
  await when(async () => !(await queue(servers[1], work)).standby, 'the other server goes on');
  assert.strictEqual((await at[1].request(work, 1)).body, 2);           // p0 is gone, p1 is unregistered
  await when(async () => (await queue(servers[1], work)).idle === 1, 'p2 alone is left');
  at.forEach((c) => c.close());
  await servers[1].stop();
}

async function memory_goes_on(store) {
  const { servers, at } = await pair(store);
  await processor(at[1], 'memory', 'p', (m) => m.reply(['done', m.body], {}));
  assert.deepStrictEqual((await at[1].request('memory', 1)).body, ['done', 1]);
  await servers[0].stop('SIGKILL');
  assert.deepStrictEqual(await answer(at[1], 'memory', 2), ['done', 2]);
  assert.strictEqual((await queue(servers[1], 'memory')).standby, false);
  at[1].close();
  await servers[1].stop();
}

// What was accepted is in the ledger, and all of it is done by processors of the server that is left.
async function kept_goes_on(store) {
  const { servers, at } = await pair(store);
  const ledger = new Set();
  const done = new Set();
  let killed = false;
  at[1].on('ok', () => ledger.add(ledger.size));
  await settled(at[1]);
  for (let n = 0; n < 40; n++) at[1].post('kept', { n, accepted_reply: 'ok' });
  await until(() => ledger.size === 40, 'all are accepted');
  for (const p of ['k1', 'k2', 'k3'])
    await processor(at[1], 'kept', p, (m) => {
      if (killed || m.body.n % 3) done.add(m.body.n);         // the others are never answered
      if (killed || m.body.n % 3) m.reply({}, {});
    });
  await until(() => done.size > 1, 'some are done');
  killed = true;
  await servers[0].stop('SIGKILL');
  await until(() => done.size === 40, 'all are done');
  await when(async () => (await queue(servers[1], 'kept')).waiting === 0, 'none is left');
  at[1].close();
  await servers[1].stop();
}

// A job that was taken at one server ends at the other one, by its address.
async function ends_elsewhere(store) {
  const servers = [await serve({}, store), await serve({}, store)];
  const [a, b] = await Promise.all(servers.map((s) => clients['vertx3-tcp-eventbus-client'](s)));
  const call = async (client, action, body) =>
    (await client.request('vertx.kue.service.job.internal', body, { action, localOnly: 'true' })).body;
  for (const [how, body, state] of [['done', { result: 7 }, 'complete'], ['done_fail', 'broken', 'failed']]) {
    const job = await call(a, 'createJob', { type: how, data: {} });
    await call(a, 'saveJob', { job });
    const taken = await call(a, 'takeJob', { type: how });
    assert.strictEqual(taken.address_id, job.address_id);
    const ended = await b.request(`vertx.kue.handler.workers.${how}.${job.address_id}`, body);
    assert.strictEqual(ended.body, state);
    assert.strictEqual((await call(b, 'getJob', { id: taken.id })).state, state.toUpperCase());
  }
  await assert.rejects(b.request('vertx.kue.handler.workers.done_fail.nobody', 'x'),
    (e) => e.failureType === 'RECIPIENT_FAILURE' && /job_not_exist/.test(e.message));
  a.close();
  b.close();
  for (const s of servers) await s.stop();
}

const sharedFile = () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-shared-'));
  return [`sqlite:${dir}/jobs.db`, () => fs.rmSync(dir, { recursive: true })];
};

async function on_both(what, run, redis_url) {
  const [file, remove] = sharedFile();
  await test(`on a file: ${what}`, () => run(file));
  await test(`on Redis: ${what}`, () => run(redis_url));
  remove();
}

(async () => {
  const store = await redis();
  for (const name of Object.keys(clients))
    await test(`${name}: two servers on one Redis, one is killed`, () => one_is_killed(name, store.url));
  await on_both('three processors and thirty messages in memory', (s) => round_by_round(s, 'memory'), store.url);
  await on_both('three processors and thirty messages in the store', (s) => round_by_round(s, 'kept'), store.url);
  await on_both('work in memory goes on after kill -9', memory_goes_on, store.url);
  await on_both('a job ends at another server than the one it was taken at', ends_elsewhere, store.url);
  await on_both('no persistent work is lost by kill -9', kept_goes_on, store.url);
  await store.stop();
  done();
})();
