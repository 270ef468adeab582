// cases_bus.mjs - the event bus: work queues, addresses, a message to try; and the JavaScript client of the
// bus, in a browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Bus, BusError } from '../../clients/js/bus.js';
import { test, UI, until } from './rig.mjs';

async function busOf(t, server) {
    const bus = new Bus(server.url, { token: server.token || undefined });
    t.later(() => bus.close());
    return bus;
}

const queue = async (server, address) =>
    (await server.call('GET', '/v1/workqueues')).work_queues.find((q) => q.address === address);

// The cell of this address below that heading.
async function cell(page, region, address, heading) {
    const table = page.getByRole('region', { name: region }).getByRole('table');
    const headings = await table.locator('th').allInnerTexts();
    const row = table.locator('tr', { has: page.getByRole('link', { name: address, exact: true }) });
    return (await row.locator('td').nth(headings.indexOf(heading)).innerText()).trim();
}

test('work queues are added, filled, processed and removed', async (t) => {
    const server = await t.serve(), bus = await busOf(t, server);
    const page = await t.open(server, '/bus');
    await page.getByText('workqueue add resize').waitFor();
    await page.getByRole('button', { name: 'Add a work queue' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Address').fill('resize');
    await form.getByLabel('A processor has this long').fill('soon');
    await form.getByRole('button', { name: 'Add it' }).click();
    await form.getByText(/process_timeout/).waitFor();              // what is wrong
    await form.getByLabel('A processor has this long').fill('1m');
    await form.getByRole('button', { name: 'Add it' }).click();
    await until(async () => (await queue(server, 'resize'))?.process_timeout === 60000, 'the work queue');
    await bus.send('resize', { n: 1 });
    await until(async () => await cell(page, 'Work queues', 'resize', 'Waiting') === '1', 'it waits');
    assert.equal(await cell(page, 'Work queues', 'resize', 'Processors'), 'none');
    await bus.process('resize', () => 'done', { concurrency: 2 });
    await until(async () => await cell(page, 'Work queues', 'resize', 'Done') === '1', 'it is done');
    assert.equal(await cell(page, 'Work queues', 'resize', 'Processors'), '2 (idle)');
    await page.getByRole('button', { name: 'Remove resize' }).click();
    await page.getByText('Nothing waits in it.').waitFor();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await page.getByText('workqueue add resize').waitFor();
    assert.equal(await queue(server, 'resize'), undefined);
});

test('a persistent work queue leads to its jobs', async (t) => {
    const server = await t.serve(), bus = await busOf(t, server);
    const page = await t.open(server, '/bus');
    await page.getByRole('button', { name: 'Add a work queue' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Address').fill('<i>mail</i>');
    await form.getByLabel('Keep the work as jobs').check();
    await form.getByLabel('Type of these jobs').fill('mails');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'jobs', exact: true }).waitFor();
    await bus.send('<i>mail</i>', { to: 'ann' });
    await page.getByRole('link', { name: 'jobs', exact: true }).click();
    await page.locator('.row').getByText('"to":"ann"').waitFor();
});

test('addresses are listed with their consumers, and filtered', async (t) => {
    const server = await t.serve(), bus = await busOf(t, server);
    const page = await t.open(server, '/bus');
    await page.getByText('weir bus listen news').waitFor();
    await bus.consume('news.sport', () => {});
    await bus.consume('chat', () => {});
    await page.getByRole('link', { name: 'news.sport' }).waitFor();
    await bus.publish('news.sport', 1);
    await until(async () => await cell(page, 'Addresses', 'news.sport', 'Delivered') === '1', 'delivered');
    assert.equal(await cell(page, 'Addresses', 'news.sport', 'Consumers'), '1');
    await page.getByLabel('Filter addresses').fill('sport');
    await until(async () => await page.getByRole('region', { name: 'Addresses' }).locator('tbody tr').count() === 1,
        'one is left');
    await page.getByLabel('Filter addresses').fill('nothing');
    await page.getByText('No address has “nothing” in it.').waitFor();
});

test('a message is tried: request, send, publish, and what can go wrong', async (t) => {
    const server = await t.serve(), bus = await busOf(t, server);
    const received = [];
    await bus.consume('twice', (m) => {
        received.push([m.body, m.headers.from, m.sent]);
        if (m.body === 'fail')
            throw new BusError('not this <one>', { code: 42 });
        return { n: m.body };
    });
    const page = await t.open(server, '/bus');
    const form = page.getByRole('region', { name: 'Try a message' }), said = form.getByRole('status');
    await page.getByRole('link', { name: 'twice' }).click();        // fills the form, and is an address to share
    await until(() => page.url().endsWith('/bus?address=twice'));
    assert.equal(await form.getByLabel('Address').inputValue(), 'twice');
    await form.getByLabel('Body').fill('12345678901234567890');     // more digits than a number of JavaScript has
    await form.getByLabel('Headers').fill('from: ann');
    await form.getByRole('button', { name: 'Request' }).click();
    await said.getByText(/Reply after/).waitFor();
    await form.getByLabel('Body').fill('{bad');
    await form.getByRole('button', { name: 'Request' }).click();
    await form.getByRole('alert').getByText(/^Body: /).waitFor();
    await form.getByLabel('Body').fill('"fail"');
    await form.getByLabel('Body').press('Control+Enter');
    await said.getByText('RECIPIENT_FAILURE (42) not this <one>').waitFor();
    await form.getByLabel('Headers').fill('no colon');
    await form.getByRole('button', { name: 'Request' }).click();
    await form.getByRole('alert').getByText(/no colon/).waitFor();
    await form.getByLabel('Headers').fill('');
    await form.getByLabel('Publish').check();
    await form.getByLabel('Body').fill('[1]');
    await form.getByRole('button', { name: 'Publish' }).click();
    await said.getByText(/^Published/).waitFor();
    await until(() => received.length === 3, 'it is received');
    assert.deepEqual(received.map(([, ...more]) => more), [['ann', true], ['ann', true], [undefined, false]]);
    await form.getByLabel('Address').fill('nobody');
    await form.getByLabel('Request').check();
    await form.getByRole('button', { name: 'Request' }).click();
    await said.getByText('NO_HANDLERS No handlers for address nobody').waitFor();
    await form.getByLabel('Send').check();
    await form.getByRole('button', { name: 'Send' }).click();
    await form.getByRole('alert').getByText('No consumer has nobody.').waitFor();
});

test('who is no admin sees work queues alone', async (t) => {
    const server = await t.serve();
    await server.call('PUT', '/v1/workqueues/resize', {});
    const reader = server.addToken('reader', '--role', 'read');
    await until(async () => (await server.raw('GET', '/v1/stats')).status === 401, 'tokens are needed');
    const page = await t.open(server, '/bus', { token: reader });
    await page.getByText('resize', { exact: true }).waitFor();
    await page.getByText('shown to an admin alone').waitFor();
    assert.equal(await page.getByRole('button', { name: /work queue|Remove/ }).count(), 0);
});

test('the bus fits a phone and is used with keys alone', async (t) => {
    const server = await t.serve(), bus = await busOf(t, server);
    await server.call('PUT', '/v1/workqueues/a.work.queue.with.a.rather.long.address', { persist: true });
    await bus.consume('an.address.of.many.parts.that.does.not.fit.into.one.line.of.a.phone', (m) => m.body);
    const page = await t.open(server, '/bus', { width: 390, height: 844 });
    await page.getByRole('link', { name: /^an.address/ }).waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), 'no sideways scrolling');
    await page.locator('body').press('t');
    await page.keyboard.type('an.address.of.many.parts.that.does.not.fit.into.one.line.of.a.phone');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('"hello"');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('status', { name: 'What came back' }).getByText('"hello"').waitFor();
});

// ---- the client ----

test('the JavaScript client speaks the bus in a browser', async (t) => {
    const server = await t.serve();
    server.token = server.addToken('boss', '--role', 'admin');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, '')).status === 401, 'tokens are needed');
    await server.call('PUT', '/v1/workqueues/work', {});
    const bus = await busOf(t, server);
    await bus.consume('node', (m) => `node has ${m.body}`);
    const page = await t.open(server, '/bus');
    for (const file of ['weir.js', 'bus.js'])
        await page.route(`**/client/${file}`, (route) => route.fulfill({ contentType: 'text/javascript',
            body: readFileSync(join(UI, '../clients/js', file), 'utf8') }));
    await page.evaluate(async (token) => {
        const { Bus: InPage } = await import('/client/bus.js');
        const own = window.bus = new InPage(location.origin, { token });
        window.received = [];
        await own.consume('page', (m) => { window.received.push(m.body); return `page has ${m.body}`; });
        await own.process('work', (m) => m.body * 2);
    }, server.token);
    assert.equal((await bus.request('page', 'x')).body, 'page has x');
    assert.equal((await bus.request('work', 21)).body, 42);
    assert.equal(await page.evaluate(async () => (await window.bus.request('node', 'y')).body), 'node has y');
    const why = await page.evaluate(() => window.bus.request('nobody').catch((e) => [e.failure, e.message]));
    assert.deepEqual(why, ['NO_HANDLERS', 'No handlers for address nobody']);
    await server.stop('SIGKILL');
    await server.again();
    await until(() => bus.request('page', 'again', { timeoutMs: 1000 }).then(() => true, () => false), 'registered again');
    assert.equal((await bus.request('work', 4)).body, 8);
    const refused = await page.evaluate(async () => {
        const { Bus: InPage } = await import('/client/bus.js');
        const other = new InPage(location.origin, { token: 'wtk_wrong' });
        const said = await other.publish('news', 1).catch((e) => e.message);
        other.close();
        return said;
    });
    assert.match(refused, /access_denied/);
});

// As sockjs-client does it: information, asked with credentials, then a WebSocket.
test('a page of a permitted origin reaches the bus, others do not', async (t) => {
    const sites = await Promise.all([0, 1].map(async () => {
        const site = createServer((q, r) => r.setHeader('Content-Type', 'text/html').end('<p>elsewhere'));
        await new Promise((ok) => { site.listen(0, '127.0.0.1', ok); });
        t.later(() => { site.closeAllConnections(); site.close(); });
        return `http://127.0.0.1:${site.address().port}`;
    }));
    const server = await t.serve('--origin', sites[0]);
    const reach = async (url) => {
        const page = await t.open({ url }, '/');
        return page.evaluate(async (url) => {
            const info = await fetch(`${url}/eventbus/info`, { credentials: 'include' }).catch(() => undefined);
            const socket = new WebSocket(`${url.replace('http', 'ws')}/eventbus/7/abc/websocket`);
            const said = [];
            socket.onmessage = (e) => {
                said.push(e.data);
                if (e.data === 'o')
                    for (const type of ['register', 'publish'])
                        socket.send(JSON.stringify([JSON.stringify({ type, address: 'news', body: 1 })]));
            };
            while (said.length < 2 && socket.readyState <= 1)
                await new Promise((ok) => { setTimeout(ok, 5); });
            return [info && (await info.json()).websocket, said[1]];
        }, server.url);
    };
    const [told, got] = await reach(sites[0]);
    assert.equal(told, true);
    assert.match(got, /"type\\":\\"rec\\"/);
    const [untold, refused] = await reach(sites[1]);
    assert.equal(untold, undefined);
    assert.match(refused, /access_denied/);
});
