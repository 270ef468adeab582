// rig.js - what the cases share: a server, clients of the bridges as promises, TAP.
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');
const { createRequire } = require('module');

const [weir, modules] = process.argv.slice(2);
const load = createRequire(path.join(modules, 'x.js'));
const PATIENCE_MS = 60000;      // for what must happen soon: it only matters when a test fails

const children = new Set();
process.on('exit', () => children.forEach((c) => c.kill('SIGKILL')));

// weir serve on free ports; `config` is written to a file.
async function serve(config = {}, store = 'mem:') {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-bus-'));
  fs.writeFileSync(path.join(dir, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const child = spawn(weir, ['--store', store, 'serve', '--listen', '127.0.0.1:0', '--bus', '127.0.0.1:0',
    '--data', dir, '--config', path.join(dir, 'config.json')], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  let out = '';
  child.stdout.on('data', (d) => { out += d; });
  await until(() => out.includes('\n') || child.exitCode !== null, 'the server is ready');
  const [, http, bus] = out.match(/ at https?:\/\/(\S+) and bus at (\S+)\n/);
  return {
    http, busPort: Number(bus.split(':')[1]), dir, pid: child.pid,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      await until(() => child.exitCode !== null || child.signalCode !== null, 'the server has ended');
      children.delete(child);
      fs.rmSync(dir, { recursive: true });
    },
  };
}

async function until(fn, what) {
  const end = Date.now() + PATIENCE_MS;
  while (!fn()) {
    if (Date.now() > end) throw new Error(`waited too long: ${what}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}

// ---- clients: each is { send, publish, register, unregister, close } ----

const wrap = (bus, close) => ({
  bus, close,
  publish: (address, body, headers) => bus.publish(address, body, headers || {}),
  post: (address, body, headers) => bus.send(address, body, headers || {}),
  request: (address, body, headers) => new Promise((ok, no) => {
    bus.send(address, body, headers || {}, (err, m) => (err ? no(err) : ok(m)));
  }),
  reply: (message, body) => new Promise((ok, no) => {
    message.reply(body, {}, (err, m) => (err ? no(err) : ok(m)));
  }),
  on: (address, handler) => bus.registerHandler(address, {}, handler),
  off: (address, handler) => bus.unregisterHandler(address, {}, handler),
});

const clients = {
  async 'vertx3-tcp-eventbus-client'(server, options = {}) {
    const warn = console.warn;
    console.warn = () => {};            // one for each pong
    const EventBus = load('vertx3-tcp-eventbus-client/lib/tcp-vertx-eventbus.js');
    const bus = new EventBus('127.0.0.1', server.busPort, options);
    await new Promise((ok) => { bus.onopen = ok; });
    return wrap(bus, () => { bus.transport.destroy(); console.warn = warn; });
  },
  '@vertx/eventbus-bridge-client.js': (server) => sockjs(server, '@vertx/eventbus-bridge-client.js'),
  'vertx3-eventbus-client': (server) => sockjs(server, 'vertx3-eventbus-client'),
};

async function sockjs(server, name) {
  const EventBus = load(name);
  const bus = new EventBus(`http://${server.http}/eventbus`, { vertxbus_ping_interval: 2000 });
  bus.onerror = () => {};                 // what no handler takes: rejected promises have it
  await new Promise((ok) => { bus.onopen = ok; });
  return wrap(bus, () => bus.close());
}

// Registering is not answered: it is there when a message to an address of one's own has come back.
let fences = 0;
async function settled(client) {
  const address = `fence.${process.pid}.${++fences}`;
  let there = false;
  const handler = () => { there = true; };
  client.on(address, handler);
  client.publish(address, 1);
  await until(() => there, 'registered');
  client.off(address, handler);
}

// ---- TAP ----

let cases = 0;
let failed = 0;
async function test(name, fn) {
  cases++;
  try {
    let timer;
    const late = new Promise((ok, no) => { timer = setTimeout(() => no(new Error('too long')), 2 * PATIENCE_MS); });
    await Promise.race([fn(), late]);
    clearTimeout(timer);
    console.log(`ok ${cases} - ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${cases} - ${name}\n# ${String(e.stack || JSON.stringify(e)).replace(/\n/g, '\n# ')}`);
  }
}
function done() {
  console.log(`1..${cases}`);
  process.exit(failed ? 1 : 0);
}

module.exports = { assert, clients, done, serve, settled, test, until };
