// clients.js WEIR MODULES - Vert.x's own clients, each against the bridge that it speaks to, and against
// one another: publish, send, requests, failures, conversations, headers, bodies of every kind.
'use strict';
const { execFile, execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { promisify } = require('util');
const { assert, clients, done, serve, settled, test, until } = require('./rig');

const [, modules] = process.argv.slice(2);

async function pair(server, one, other = one) {
  const a = await clients[one](server);
  const b = await clients[other](server);
  return [a, b, () => { a.close(); b.close(); }];
}

const bodies = [null, true, 5, -1.5, 'text', 'ä\u0000\u{1F600}', [], [1, [null]], {}, { a: { b: 'c' } }];

const cases = {
  async 'publish reaches all, send one in turn'(a, b) {
    const got = { a: [], b: [] };
    a.on('news', (err, m) => got.a.push(m.body));
    b.on('news', (err, m) => got.b.push(m.body));
    await settled(a);
    await settled(b);
    a.publish('news', 'hello');
    await until(() => got.a.length && got.b.length, 'both have it');
    for (let i = 0; i < 4; i++) b.post('news', i);
    await until(() => got.a.length + got.b.length === 6, 'four more');
    assert.strictEqual(got.a.length, 3);
    assert.strictEqual(got.b.length, 3);
  },
  async 'a request is replied to, with any body'(a, b) {
    a.on('echo', (err, m) => m.reply(m.body === undefined ? null : m.body, { seen: String(m.headers && m.headers.k) }));
    await settled(a);
    for (const body of bodies) {
      const reply = await b.request('echo', body, { k: 'v' });
      assert.deepStrictEqual(reply.body === undefined ? null : reply.body, body);
      assert.strictEqual(reply.headers.seen, 'v');
    }
  },
  async 'failures have their types'(a, b) {
    a.on('silent', () => {});
    await settled(a);
    await assert.rejects(b.request('nobody.at.all', 1), (e) => e.failureType === 'NO_HANDLERS' &&
      e.failureCode === -1 && e.message === 'No handlers for address nobody.at.all');
    await assert.rejects(b.request('silent', 1, { timeout: '50' }), (e) => e.failureType === 'TIMEOUT' &&
      /^Timed out after waiting 50\(ms\) for a reply. address: \S+, repliedAddress: silent$/.test(e.message));
  },
  async 'a conversation of three steps'(a, b) {
    const heard = [];
    a.on('talk', async (err, m) => {
      heard.push(m.body);
      const more = await a.reply(m, 'who?');
      heard.push(more.body);
      more.reply('bye', {});
    });
    await settled(a);
    const first = await b.request('talk', 'knock');
    assert.strictEqual(first.body, 'who?');
    const last = await b.reply(first, 'ann');
    assert.strictEqual(last.body, 'bye');
    assert.deepStrictEqual(heard, ['knock', 'ann']);
  },
  async 'a client that has unregistered, or gone, has no consumers'(a, b) {
    const handler = (err, m) => m.reply(1);
    a.on('there', handler);
    await settled(a);
    await b.request('there', 1);
    a.off('there', handler);
    await settled(a);
    await assert.rejects(b.request('there', 1), (e) => e.failureType === 'NO_HANDLERS');
    a.on('there', handler);
    await settled(a);
    a.close();
    for (;;) {
      try {
        await b.request('there', 1);
      } catch (e) {
        if (e.failureType === 'NO_HANDLERS') break;
      }
    }
  },
};

function makeCertificate(dir) {
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => path.join(dir, name));
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-days', '2', '-keyout', key, '-out', cert, '-subj', '/CN=weir', '-addext', 'subjectAltName=IP:127.0.0.1'],
  { stdio: 'ignore' });
  return { cert, key };
}

// The bridge's port speaks TLS when the server does. The client does if it has a certificate of its own.
async function overTls() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-bus-tls-'));
  const { cert, key } = makeCertificate(dir);
  const server = await serve({ 'tls-cert': cert, 'tls-key': key });
  const pem = { cert: fs.readFileSync(cert), key: fs.readFileSync(key), ca: [fs.readFileSync(cert)] };
  const [a, b] = [await clients['vertx3-tcp-eventbus-client'](server, pem),
    await clients['vertx3-tcp-eventbus-client'](server, pem)];
  a.on('echo', (err, m) => m.reply(m.body));
  await settled(a);
  const body = 'x'.repeat(100000);
  assert.strictEqual((await b.request('echo', body)).body, body);
  a.close();
  b.close();
  await server.stop();
  fs.rmSync(dir, { recursive: true });
}

// An npm client of SockJS at https: its WebSocket is wss. Its process must know the certificate from the start.
async function overWss(name) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-bus-tls-'));
  const pem = makeCertificate(dir);
  const server = await serve({ 'tls-cert': pem.cert, 'tls-key': pem.key });
  const program = `
    const EventBus = require('module').createRequire(${JSON.stringify(path.join(modules, 'x.js'))})('${name}');
    const bus = new EventBus('https://${server.http}/eventbus');
    bus.onopen = () => {
      bus.registerHandler('echo', {}, (err, m) => m.reply(m.body));
      bus.send('echo', 'x'.repeat(100000), {}, (err, m) => {
        console.log(err ? JSON.stringify(err) : m.body.length, bus.sockJSConn._transport.ws.url.split(':')[0]);
        process.exit(0);
      });
    };`;
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: pem.cert }, timeout: 60000 });
    assert.strictEqual(stdout, '100000 wss\n');
  } finally {
    await server.stop();
    fs.rmSync(dir, { recursive: true });
  }
}

(async () => {
  const server = await serve();
  const names = Object.keys(clients);
  const pairs = names.map((n) => [n, n]);
  for (let i = 1; i < names.length; i++) pairs.push([names[0], names[i]], [names[i], names[0]]);
  for (const [one, other] of pairs)
    for (const [name, run] of Object.entries(cases))
      await test(`${one}${one === other ? '' : ` and ${other}`}: ${name}`, async () => {
        const [a, b, close] = await pair(server, one, other);
        try { await run(a, b); } finally { close(); }
      });
  await server.stop();
  await test('vertx3-tcp-eventbus-client over TLS', overTls);
  for (const name of names.slice(1))
    await test(`${name} over wss`, () => overWss(name));
  done();
})();
