// servers.js WEIR MODULES - two servers on one Redis are one to Vert.x's own clients. When one of them is
// killed, its clients connect to the other one and go on.
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

(async () => {
  const store = await redis();
  for (const name of Object.keys(clients))
    await test(`${name}: two servers on one Redis, one is killed`, () => one_is_killed(name, store.url));
  await store.stop();
  done();
})();
