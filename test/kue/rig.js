// rig.js - what the cases stand on: a Redis server, processes of Kue, the program weir, and TAP.
'use strict';
const { spawn, fork, execFile } = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const assert = require('assert');

const WEIR = path.resolve(process.argv[2]);
const MODULES = path.resolve(process.argv[3]);           // node_modules with kue in it
const PATIENCE_MS = 60000;                               // only matters when something is wrong
const redis = require(path.join(MODULES, 'redis'));

const sleep = (ms) => new Promise((ok) => setTimeout(ok, ms));

// Ask until the answer is good; what is asked may fail meanwhile.
async function until(what, ask) {
  const end = Date.now() + PATIENCE_MS;
  let last;
  while (Date.now() < end) {
    try { last = await ask(); } catch (e) { last = e; }
    if (last && !(last instanceof Error)) return last;
    await sleep(10);
  }
  throw new Error(`waited for ${what}; last: ${last && last.stack || last}`);
}

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-kue-'));
const socket = path.join(dir, 's');
const running = new Set();                               // processes to end with a case
const clients = [];                                      // and clients
let server, client;

function track(p) {
  running.add(p);
  p.on('exit', () => running.delete(p));
  return p;
}

async function startRedis() {
  server = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', dir,
    '--logfile', path.join(dir, 'redis.log')], { stdio: 'ignore' });
  await until('the server', () => fs.existsSync(socket));
  client = redis.createClient(socket);
  client.on('error', () => {});
  await until('an answer', () => command('PING'));
}

// Any command, as words.
function command(name, ...args) {
  return new Promise((ok, no) => client.send_command(name, args.map(String),
    (e, r) => (e ? no(e) : ok(r))));
}

// The messages of a channel from now on; what every client asks of Redis from now on.
async function listener(what, channel) {
  const c = redis.createClient(socket), seen = [];
  clients.push(c);
  c.on('error', () => {});
  c.on('message', (from, text) => seen.push(JSON.parse(text)));
  c.on('monitor', (time, words) => seen.push(words));
  await new Promise((ok, no) => c[what](...(channel ? [channel] : []), (e) => (e ? no(e) : ok())));
  return seen;
}
const subscribe = (channel) => listener('subscribe', channel);
const monitor = () => listener('monitor');

async function hash(key) { return (await command('HGETALL', key)) || {}; }

// ---- Kue ----

async function side(prefix, script = 'side.js') {
  const p = track(fork(path.join(__dirname, script), [socket, prefix],
    { env: { ...process.env, NODE_PATH: MODULES, NODE_NO_WARNINGS: '1' }, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }));
  const s = { p, events: [], ran: [], errors: [], ready: false };
  const waiting = new Map();
  let n = 0;
  p.on('message', (m) => {
    if (m.ready) { s.ready = true; s.port = m.port; s.routes = m.routes; }
    if (m.event) s.events.push(m);
    if (m.ran) s.ran.push(m);
    if (m.error) s.errors.push(m.error);
    if (!m.answer) return;
    const [ok, no] = waiting.get(m.answer);
    waiting.delete(m.answer);
    if (m.failed) no(new Error(m.failed)); else ok(m.value);
  });
  s.do = (what, args) => new Promise((ok, no) => {
    waiting.set(++n, [ok, no]);
    p.send({ n, do: what, what: args || {} });
  });
  s.saw = (event, id) => s.events.filter((e) => e.event === event && (id === undefined || e.id === id));
  s.kill9 = () => ended(p, 'SIGKILL');
  await until('kue', () => s.ready);
  return s;
}

function ended(p, signal) {
  return new Promise((ok) => {
    if (p.exitCode !== null || p.signalCode !== null) { ok(); return; }
    p.once('exit', () => ok());
    if (signal) p.kill(signal);
  });
}

// ---- weir ----

const url = (prefix, query) => `redis+kue+unix://${socket}?prefix=${prefix}${query ? '&' + query : ''}`;

function environment(prefix, query) {
  return { ...process.env, WEIR_STORE: url(prefix, query), NO_COLOR: '1', TZ: 'UTC', HOME: dir };
}

// Commands of weir on a queue: await w.run('add', 'mail'), w.start('work', ...).
function weir(prefix, query) {
  const env = environment(prefix, query);
  const run = (...args) => new Promise((ok, no) => execFile(WEIR, args.map(String), { env, maxBuffer: 1 << 26 },
    (e, out, err) => (e ? no(new Error(`weir ${args.join(' ')}: ${out}${err}`)) : ok(out.trim()))));
  return {
    run,
    json: async (...args) => JSON.parse(await run('--json', ...args)),
    job: async (id) => JSON.parse(await run('--json', 'get', id)),
    add: async (...args) => Number(await run('add', ...args)),
    ids: async (...args) => (await run('list', '--ids', ...args)).split('\n').filter(Boolean).map(Number),
    // One that goes on: its lines, and when it is listening.
    async start(...args) {
      const p = track(spawn(WEIR, args.map(String), { env, cwd: dir, stdio: ['ignore', 'pipe', 'ignore'] }));
      const s = { p, lines: [], stop: () => ended(p, 'SIGTERM'), kill9: () => ended(p, 'SIGKILL') };
      let rest = '';
      p.stdout.on('data', (d) => {
        const lines = (rest + d).split('\n');
        rest = lines.pop();
        s.lines.push(...lines);
      });
      await until('weir to listen', async () => p.exitCode !== null || hears(p.pid));
      return s;
    },
  };
}

// A server of weir's: its port.
async function serve(...args) {
  const p = track(spawn(WEIR, args.map(String),
    { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, HOME: dir } }));
  let out = '';
  p.stdout.on('data', (d) => { out += d; });
  const port = await until('weir to serve', () => /http:\/\/127\.0\.0\.1:(\d+)/.exec(out));
  return { p, port: Number(port[1]) };
}

// Ask a server: [method, path, body as text or a value, headers].
const agent = new http.Agent({ keepAlive: true });

function ask(port, [method, path, body, headers]) {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const said = text === undefined ? {}
    : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
  const what = { host: '127.0.0.1', port, method, path, agent, headers: { ...said, ...headers } };
  return new Promise((ok, no) => {
    const r = http.request(what, (res) => {
      let got = '';
      res.setEncoding('utf8');
      res.on('data', (d) => { got += d; });
      res.on('end', () => ok({ status: res.statusCode, type: res.headers['content-type'], body: got }));
    });
    r.on('error', no);
    r.end(text);
  });
}

// `weir watch` waits for signals once it sees every event; `weir work` does so before it takes.
function hears(pid) {
  return fs.readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try { return fs.readlinkSync(`/proc/${pid}/fd/${fd}`).includes('signalfd'); } catch (e) { return false; }
  });
}

// ---- TAP ----

const cases = [];
const test = (name, fn) => cases.push([name, fn]);

async function endAll() {
  for (const c of clients.splice(0)) c.end(false);
  await Promise.all([...running].map((p) => ended(p, 'SIGKILL')));
}

async function main() {
  const only = process.argv[4];
  const list = only ? cases.filter(([name]) => name.includes(only)) : cases;
  console.log(`1..${list.length}`);
  await startRedis();
  let n = 0, bad = 0;
  for (const [name, fn] of list) {
    n++;
    try {
      await command('FLUSHALL');
      await fn(`t${n}`);
      console.log(`ok ${n} - ${name}`);
    } catch (e) {
      bad++;
      console.log(`not ok ${n} - ${name}`);
      console.log(String(e && e.stack || e).replace(/^/gm, '# '));
    }
    await endAll();
  }
  client.quit();
  await ended(server, 'SIGTERM');
  fs.rmSync(dir, { recursive: true, force: true });
  process.exit(bad ? 1 : 0);
}

process.on('exit', () => {
  for (const p of [...running, server]) if (p) p.kill('SIGKILL');
});

module.exports = { ask, assert, command, dir, hash, main, monitor, serve, side, sleep, subscribe, test, until, url, weir, fs,
  path };
