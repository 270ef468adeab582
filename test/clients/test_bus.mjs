// test_bus.mjs WEIR CLIENT-DIRECTORY - the JavaScript client of the event bus against a real server. Writes
// TAP. test_bus.py has the same cases; test/ui/cases_bus.mjs runs the client in a browser.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { client, directory, redis, run, Server, until, weir } from './rig.mjs';

const { Weir } = await client('weir.js');
const { Bus, BusError } = await client('bus.js');

async function withBus(server, options, fn) {
    const bus = new Bus(server.url, options);
    try {
        return await fn(bus);
    } finally {
        bus.close();
    }
}

const fails = async (call) => {
    try {
        await call;
    } catch (why) {
        return why;
    }
    throw new Error('it did not fail');
};

const statusOf = async (server, address) =>
    (await new Weir(server.url).workqueues()).find((q) => q.address === address);

const cases = {
    async 'publishes to all and sends in turns'(bus, server) {
        await withBus(server, {}, async (other) => {
            const heard = { a: [], b: [] };
            for (const [name, one] of [['a', bus], ['b', other]])
                await one.consume('news', (m) => { heard[name].push([m.body, m.sent, m.headers]); });
            await bus.publish('news', { text: 'Füße \u{1f389}' }, { headers: { from: 'ann' } });
            await until(() => heard.a.length && heard.b.length);
            assert.deepEqual(heard.a, [[{ text: 'Füße \u{1f389}' }, false, { from: 'ann' }]]);
            assert.deepEqual(heard.b, heard.a);
            for (let n = 0; n < 4; n++)
                await other.send('news', n);
            await until(() => heard.a.length + heard.b.length === 6);
            assert.equal(heard.a.length, 3);
            assert.equal(heard.a[1][1], true);
        });
    },
    async 'consumers of one bus take turns, too'(bus) {
        const heard = [];
        const first = await bus.consume('turns', () => { heard.push('a'); });
        await bus.consume('turns', () => { heard.push('b'); });
        for (let n = 0; n < 4; n++)
            await bus.send('turns');
        await until(() => heard.length === 4);
        assert.deepEqual(heard.sort(), ['a', 'a', 'b', 'b']);
        await bus.publish('turns');
        await until(() => heard.length === 6);
        await first.close();
        await bus.publish('turns');
        await until(() => heard.length === 7);
        assert.equal(heard[6], 'b');
    },
    async 'requests are answered or fail'(bus) {
        await bus.consume('ask', async (message) => {
            switch (message.body) {
            case 'typed': throw new BusError('no such user', { code: 404 });
            case 'raised': throw new TypeError('a bug');
            case 'bigint': return 1n;
            case 'later':
                setTimeout(() => message.reply('now', { headers: { k: 'v' } }), 1);
                return undefined;
            case 'silent': return undefined;
            default: return { got: message.body };
            }
        });
        assert.deepEqual((await bus.request('ask', [1, null, 'x'])).body, { got: [1, null, 'x'] });
        const late = await bus.request('ask', 'later');
        assert.deepEqual([late.body, late.headers, late.expectsReply], ['now', { k: 'v' }, false]);
        let why = await fails(bus.request('ask', 'typed'));
        assert.deepEqual([why.failure, why.code, why.message], ['RECIPIENT_FAILURE', 404, 'no such user']);
        why = await fails(bus.request('ask', 'raised'));
        assert.deepEqual([why.failure, why.code, why.message], ['RECIPIENT_FAILURE', -1, 'a bug']);
        assert.match((await fails(bus.request('ask', 'bigint'))).message, /BigInt/);
        assert.equal((await fails(bus.request('ask', 'silent', { timeoutMs: 50 }))).failure, 'TIMEOUT');
        why = await fails(bus.request('nobody', 1));
        assert.deepEqual([why.failure, why.code, why.message],
            ['NO_HANDLERS', -1, 'No handlers for address nobody']);
        const big = 'x'.repeat(10 << 20);
        assert.equal((await bus.request('ask', big)).body.got, big);
    },
    async 'replies are replied to'(bus) {
        const heard = [];
        await bus.consume('talk', async (message) => {
            try {
                const second = await message.request({ step: 'which?' });
                heard.push(second.body);
                await second.reply('done');
            } catch (why) {
                heard.push(why.code);
            }
        });
        const first = await bus.request('talk', 'begin');
        assert.deepEqual([first.body, first.expectsReply], [{ step: 'which?' }, true]);
        assert.equal((await first.request('this')).body, 'done');
        assert.throws(() => first.reply(1), /nobody waits/);
        (await bus.request('talk', 'begin')).fail(7, 'never mind');
        await until(() => heard.length === 2);
        assert.deepEqual(heard, ['this', 7]);
    },
    async 'services are called'(bus, server) {
        await withBus(server, {}, async (other) => {
            await other.service('calc', {
                add: ({ a, b }) => a + b,
                fail: async () => { throw new BusError('not today', { code: 9 }); },
                nothing: () => {},
            });
            assert.equal(await bus.call('calc', 'add', { a: 1, b: 2 }), 3);
            assert.equal(await bus.call('calc', 'nothing'), null);
            assert.equal((await fails(bus.call('calc', 'fail'))).code, 9);
            const why = await fails(bus.call('calc', 'toString'));
            assert.deepEqual([why.code, why.message], [500, 'Invalid action: toString']);
            assert.equal((await fails(bus.request('calc', {}))).message, 'action not specified');
        });
        assert.equal(await bus.call('vertx.kue.service.job.internal', 'existsJob', { id: 1 }), false);
    },
    async 'a trace goes on in messages and jobs'(bus, server) {
        const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', queue = new Weir(server.url);
        await bus.consume('traced', async (m) => [m.headers.traceparent,
            (await queue.get((await queue.add('child')).id)).values.traceparent]);
        await bus.consume('first', async () => (await bus.request('traced')).body);
        assert.deepEqual((await bus.request('first', null, { headers: { traceparent: trace } })).body, [trace, trace]);
        const mine = trace.replace('0af7', '1111');
        assert.equal((await bus.request('traced', null, { headers: { traceparent: mine } })).body[0], mine);
    },
    async 'processors have the work of a work queue'(bus, server) {
        const queue = new Weir(server.url);
        await queue.workqueuePut('resize');
        await queue.workqueuePut('res/ize', { process_timeout: '1m', persist: true });
        assert.equal((await statusOf(server, 'res/ize')).process_timeout, 60000);
        await queue.workqueueRemove('res/ize');
        assert.deepEqual((await queue.workqueues()).map((q) => q.address), ['resize']);
        let running = 0, most = 0;
        await withBus(server, {}, async (worker) => {
            const processor = await worker.process('resize', async (message) => {
                most = Math.max(most, ++running);
                await until(() => most === 3);          // three at once
                running--;
                if (message.body === 7)
                    throw new Error('not seven');
                return message.body === 8 ? undefined : message.body * 2;
            }, { concurrency: 3 });
            const answers = await Promise.all(Array.from({ length: 9 }, (_, n) =>
                bus.request('resize', n).then((m) => m.body, (why) => why.message)));
            assert.deepEqual(answers, [0, 2, 4, 6, 8, 10, 12, 'not seven', null]);
            assert.equal(most, 3);
            await processor.close();
            await until(async () => (await statusOf(server, 'resize')).idle === 0);
            await bus.send('resize', 1);
            await until(async () => (await statusOf(server, 'resize')).waiting === 1);
        });
        assert.match((await fails(bus.process('no.such.queue', () => {}))).message, /No handlers/);
    },
    async 'a killed server is found again'(bus, server) {
        const heard = [];
        let started = false;
        await bus.consume('again', (m) => { heard.push(m.body); return 'yes'; });
        const silent = await bus.consume('silent', () => { started = true; });
        await new Weir(server.url).workqueuePut('kept');
        await bus.process('kept', (m) => { heard.push(m.body); });
        const waiting = fails(bus.request('silent', 1));
        await until(() => started);
        await server.stop('SIGKILL');
        const why = await waiting;
        assert.deepEqual([why.failure, why.error, why.message],
            ['ERROR', 'ELOST', 'the connection to the server was lost']);
        const calling = bus.publish('again', 1);        // waits for the server
        await server.start();
        await calling;
        await until(() => heard.length === 1);
        assert.equal((await bus.request('again', 2)).body, 'yes');
        await bus.request('kept', 3);
        assert.deepEqual(heard, [1, 2, 3]);
        await silent.close();
        assert.equal((await fails(bus.request('silent', 1))).failure, 'NO_HANDLERS');
    },
    async 'when a server is killed, the other one of the list is used'() {
        const store = await redis(), servers = [new Server(), new Server()];
        for (const server of servers) {
            server.store = store.url;
            await server.start();
            for (const address of ['memory', 'kept'])
                await new Weir(server.url).workqueuePut(address, { persist: address === 'kept' });
        }
        const [first, second] = servers;
        const bus = new Bus([first.url, second.url]), far = new Bus(second.url);
        // What is on its way when a server is killed fails, and its consumers vanish within seconds.
        const ask = async (address, body) => {
            let reply;
            await until(async () => {
                reply = await far.request(address, body, { timeoutMs: 1000 }).catch(() => undefined);
                return reply;
            });
            return reply.body;
        };
        await bus.consume('square', (m) => m.body ** 2);
        await bus.process('memory', (m) => m.body + 1, { concurrency: 2 });
        await bus.process('kept', (m) => m.body + 2);
        assert.deepEqual([await ask('square', 7), await ask('memory', 1), await ask('kept', 1)], [49, 2, 3]);
        await first.stop('SIGKILL');
        assert.deepEqual([await ask('square', 8), await ask('memory', 2), await ask('kept', 2)], [64, 3, 4]);
        await until(async () => (await statusOf(second, 'memory')).idle === 2);
        assert.equal((await bus.request('square', 9)).body, 81);
        await first.start();                            // and back again
        await second.stop('SIGKILL');
        await until(async () => (await bus.request('square', 2).catch(() => ({}))).body === 4);
        bus.close();
        far.close();
        await first.stop();
        servers.forEach((server) => server.remove());
        await store.stop();
        assert.throws(() => new Bus([]), /list of servers is empty/);
    },
    async 'permissions and tokens'() {
        const guarded = new Server();
        const config = join(guarded.dir, 'config.json');
        writeFileSync(config, JSON.stringify({ bus: { inbound: ['chat\\..*'], outbound: ['chat\\..*'] } }),
            { mode: 0o600 });
        guarded.options = ['--config', config];
        const token = (name, role) => execFileSync(weir, ['token', 'add', name, '--role', role, '--data', guarded.dir], { stdio: 'pipe' })
            .toString().trim();
        const guest = token('guest', 'produce'), admin = token('boss', 'admin');
        await guarded.start();
        await withBus(guarded, { token: guest }, async (bus) => {
            const heard = [];
            await bus.consume('chat.x', (m) => { heard.push(m.body); });
            await bus.publish('chat.x', 1);
            await until(() => heard.length === 1);
            for (const [call, what] of [['publish', 'publish'], ['send', 'send'], ['request', 'send']]) {
                const why = await fails(bus[call]('secret', 1));
                assert.deepEqual([why.failure, why.message], ['ERROR', `access_denied: ${what} secret`]);
            }
            assert.equal((await fails(bus.consume('secret', () => {}))).message, 'access_denied: register secret');
            await bus.publish('chat.x', 2);             // and goes on
            await until(() => heard.length === 2);
        });
        await withBus(guarded, { token: admin }, async (bus) => {
            await bus.consume('secret', (m) => m.body);
            assert.equal((await bus.request('secret', 5)).body, 5);
        });
        await withBus(guarded, { token: 'wtk_wrong' }, async (bus) => {
            assert.match((await fails(bus.publish('chat.x', 1))).message, /access_denied/);
        });
        assert.equal(await guarded.stop(), 0);
        guarded.remove();
    },
    async 'speaks TLS'() {
        const secure = new Server(), pem = [join(secure.dir, 'cert.pem'), join(secure.dir, 'key.pem')];
        execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
            '-days', '2', '-keyout', pem[1], '-out', pem[0], '-subj', '/CN=localhost', '-addext',
            'subjectAltName=IP:127.0.0.1'], { stdio: 'pipe' });
        secure.options = ['--tls-cert', pem[0], '--tls-key', pem[1]];
        await secure.start();
        const program = `import { Bus } from ${JSON.stringify(join(directory, 'bus.js'))};
            const bus = new Bus();
            await bus.consume('echo', (m) => m.body);
            console.log((await bus.request('echo', 'over TLS')).body);
            bus.close();`;
        const said = execFileSync(process.execPath, ['--input-type=module', '-e', program],
            { env: { ...process.env, WEIR_STORE: secure.url, NODE_EXTRA_CA_CERTS: pem[0] } });
        assert.equal(String(said), 'over TLS\n');
        await withBus(secure, {}, async (bus) => {      // does not know the certificate
            assert.equal((await fails(bus.request('echo', 1, { timeoutMs: 300 }))).code, 'EUNAVAIL');
        });
        assert.equal(await secure.stop(), 0);
        secure.remove();
    },
    async 'a closed bus says so'(bus) {
        await bus.consume('x', () => {});
        bus.close();
        assert.equal((await fails(bus.publish('x'))).error, 'ECLOSED');
        assert.match((await fails(bus.request('x'))).message, /closed/);
    },
};

process.exit(await run(cases, (each, server) => withBus(server, {}, (bus) => each(bus, server))));
