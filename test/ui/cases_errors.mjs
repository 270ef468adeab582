// cases_errors.mjs - failed jobs in groups of the same error, and what needs attention.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test, until } from './rig.mjs';

const fail = (server, type, error) => server.ended({ type, data: {} }, { error });

async function failSome(server) {
    for (const to of ['ann', 'bob', 'eve'])
        await fail(server, 'mail', `550 no such user "${to}"`);
    await fail(server, 'mail', 'timeout after 30 s');
    await fail(server, 'sms', '550 no such user "ann"');
}

test('errors are in groups, by type, with links to their jobs', async (t) => {
    const server = await t.serve();
    await failSome(server);
    const page = await t.open(server, '/errors');
    const row = page.getByRole('row').filter({ hasText: 'mail' }).filter({ hasText: 'no such user' });
    assert.match((await row.innerText()).replace(/\s+/g, ' '), /^3 mail \* no such user "\*" .* ago .* ago #3 /);
    assert.equal(await page.locator('tbody tr').count(), 3);
    await page.getByLabel('Type').selectOption('sms');
    await until(async () => await page.locator('tbody tr').count() === 1, 'errors of sms');
    assert.equal(new URL(page.url()).search, '?type=sms');
    assert.equal(await page.title(), 'Errors: sms · weir');
    await page.getByLabel('Type').selectOption('');
    await row.getByRole('link', { name: /^3 jobs/ }).click();
    await until(async () => await page.locator('.row').count() === 3, 'the jobs of the group');
    await page.getByText('* no such user "*"', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'any error' }).click();
    await until(async () => await page.locator('.row').count() === 4, 'all of mail');
    // it follows what happens
    await page.goto(`${server.url}/errors`);
    await row.waitFor();
    await fail(server, 'mail', '550 no such user "zoe"');
    await until(async () => (await row.innerText()).startsWith('4'), 'one more');
});

async function failMany(server, n) {
    for (let i = 0; i < n; i++)
        await fail(server, 'mail', `550 no such user "${i}"`);
    await fail(server, 'mail', 'timeout after 30 s');
    return async (page) => {
        await page.getByRole('row').filter({ hasText: 'no such user' }).getByRole('button', { name: 'Retry' }).click();
        return page.getByRole('dialog');
    };
}

test('a group is retried: one first, then some at a time, which stops when they fail again', async (t) => {
    const server = await t.serve();
    const openIt = await failMany(server, 60);
    const page = await t.open(server, '/errors');
    const dialog = await openIt(page);
    assert.equal(await dialog.getByRole('button', { name: 'Retry the group anyway' }).getAttribute('class'), '');
    await dialog.getByRole('button', { name: 'Try one' }).click();
    const job = await until(() => server.take('mail'));
    assert.equal(job.id, 60);
    await server.finish(job, { result: {} });
    await dialog.getByText('It is complete.').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Retry the group' }).getAttribute('class'), 'main');
    await dialog.getByRole('button', { name: 'Retry the group' }).click();
    for (let i = 0; i < 5; i++)
        await server.finish(await until(() => server.take('mail')), { error: '550 no such user "again"' });
    await dialog.getByText('10 of about 60 retried: 0 complete, 5 failed again').waitFor();
    await dialog.getByText('Stopped, since they fail again.').waitFor();
    const { counts } = await server.call('GET', '/v1/stats');
    assert.deepEqual([counts.complete, counts.inactive, counts.failed], [1, 5, 55]);
});

test('no more of a group is queued than asked for, until outcomes are seen', async (t) => {
    const server = await t.serve();
    const openIt = await failMany(server, 25);
    const page = await t.open(server, '/errors');
    const dialog = await openIt(page);
    await dialog.getByRole('button', { name: 'Retry the group anyway' }).click();
    await dialog.getByText('10 of about 25 retried: 0 complete, 0 failed again, 10 queued').waitFor();
    await dialog.getByText('Closing this dialog or the page stops').waitFor();
    // other jobs of the type are not counted
    const other = await server.add({ type: 'mail', data: {}, priority: 'critical' });
    const first = await server.take('mail');
    assert.equal(first.id, other);
    await server.finish(first, { error: 'no' });
    let most = 0;
    for (let i = 0; i < 25; i++) {
        const job = await until(() => server.take('mail'));
        most = Math.max(most, (await server.call('GET', '/v1/stats')).counts.inactive + 1);
        await server.finish(job, { result: 1 });
    }
    assert.ok(most <= 10, `${most} were queued`);
    await dialog.getByText('25 of about 25 retried: 25 complete, 0 failed again, 0 queued').waitFor();
    await dialog.getByText('All of them were retried.').waitFor();
    assert.equal(await server.state(26), 'failed');
});

test('one that fails again says why, and closing the dialog while it retries says that it stops', async (t) => {
    const server = await t.serve();
    const openIt = await failMany(server, 30);
    const page = await t.open(server, '/errors');
    const dialog = await openIt(page);
    await dialog.getByRole('button', { name: 'Try one' }).click();
    await server.finish(await until(() => server.take('mail')), { error: '550 no such user "zoe"' });
    await dialog.getByText('It has failed again: 550 no such user "zoe"').waitFor();
    await dialog.getByText('The others will hardly do better.').waitFor();
    await dialog.getByRole('button', { name: 'Retry the group anyway' }).click();
    await dialog.getByText('10 of about 30 retried').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Stopped: 10 of about 30 of mail were retried').waitFor();
    assert.equal((await server.call('GET', '/v1/stats')).counts.inactive, 10);
});

test('a group is deleted after a count, and nothing else', async (t) => {
    const server = await t.serve();
    await failSome(server);
    const page = await t.open(server, '/types/mail');
    const part = page.getByRole('region', { name: 'Errors' });
    await part.getByRole('row').filter({ hasText: 'no such user' }).getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This concerns 3 jobs.').waitFor();
    await dialog.getByRole('button', { name: 'Delete 3' }).click();
    await until(async () => (await server.call('GET', '/v1/stats')).counts.failed === 2);
    assert.equal(await server.state(4), 'failed');
    await until(async () => await part.locator('tbody tr').count() === 1, 'the other group');
});

test('who may only read sees errors without buttons, and one of several types chooses one', async (t) => {
    const server = await t.serve();
    await failSome(server);
    server.token = server.addToken('boss', '--role', 'admin');
    const reader = server.addToken('eye', '--role', 'read');
    const both = server.addToken('two', '--role', 'admin', '--type', 'mail', '--type', 'sms');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, both)).status === 200 &&
        (await server.raw('GET', '/v1/stats', undefined, '')).status === 401);
    const page = await t.open(server, '/errors', { token: reader });
    await page.locator('tbody tr').first().waitFor();
    assert.equal(await page.locator('tbody button').count(), 0);
    const other = await t.open(server, '/errors', { token: both });
    await other.getByText('name one (mail, sms)').waitFor();
    await other.getByLabel('Type').selectOption('mail');
    await other.locator('tbody tr').first().waitFor();
});

test('a type has its slowest jobs', async (t) => {
    const server = await t.serve();
    await server.ended({ type: 'mail', data: {} }, { result: 1 });
    await server.add({ type: 'mail', data: {} });
    await server.take('mail', 'box:1');
    const page = await t.open(server, '/types/mail');
    await page.getByRole('region', { name: 'Slowest of the last 1' }).getByRole('link', { name: '#1' }).waitFor();
    await page.getByRole('region', { name: 'Running longest' }).getByText('box:1').waitFor();
});

test('a type has its oldest jobs, or those that are next where they are too many to sort', async (t) => {
    const server = await t.serve();
    const first = await server.add({ type: 'mail', data: {}, priority: 'low' });
    await server.add({ type: 'mail', data: {}, priority: 'critical' });
    const page = await t.open(server, '/types/mail');
    const oldest = page.getByRole('region', { name: 'Oldest that wait' });
    await oldest.getByRole('link').first().waitFor();
    assert.equal(await oldest.getByRole('link').first().innerText(), `#${first}`);
    await page.route('**/v1/jobs?*sort=created*', (route) => route.fulfill({ status: 422,
        json: { error: { code: 'ELIMIT', message: 'more than 100000 jobs' } } }));
    await page.reload();
    const next = page.getByRole('region', { name: 'Next to be taken' });
    await next.getByRole('link').first().waitFor();
    assert.equal(await next.getByRole('link').first().innerText(), `#${first + 1}`);
});

// What the store has of the past: minutes ago, what happened in each.
function putPast(server, type, from, to, record) {
    const slot = Math.floor(Date.now() / 60000);
    const rows = Array.from({ length: to - from }, (_, i) => ({ step: '1m', slot: slot - from - i, type, record }));
    return server.call('POST', '/v1/batch', { ops: [{ op: 'trend_put', rows }] });
}

test('what needs attention is named, with a link to where one acts', async (t) => {
    const server = await t.serve();
    await putPast(server, 'mail', 16, 60, 'added=5 complete=5 backlog=1');
    await putPast(server, 'film', 16, 60, 'added=5 complete=5 backlog=50');
    for (let i = 0; i < 10; i++)
        await fail(server, 'mail', `550 no such user "${i}"`);
    await server.call('POST', '/v1/jobs', Array.from({ length: 400 }, () => ({ type: 'film', data: {} })));
    await server.take('film', 'box:1');
    const lost = await server.call('POST', '/v1/take', { types: ['film'], n: 1, worker: 'box:2', lease: '100ms' });
    assert.equal(lost.jobs.length, 1);
    await until(async () => await server.state(lost.jobs[0].id) === 'inactive', 'its lease is over');
    const page = await t.open(server, '/');
    const part = page.getByRole('alert', { name: 'Needs attention' });
    await part.getByText('“mail” fails: 100 % of 10 runs in the last 15 minutes, 0.0 % in the hour before.').waitFor();
    await part.getByText('Most often: * no such user "*".').waitFor();
    await part.getByText('The backlog of “film” grows: 399 wait, 50 did 15 minutes ago.').waitFor();
    await part.getByText('1 job lost its worker in the last 15 minutes').waitFor();
    await part.getByText('give it a longer lease, or have it report progress').waitFor();
    // each has its advice or a command
    const items = part.locator('div:has(> p:first-child)');
    assert.ok(await items.count() >= 3);
    assert.equal(await items.count(), await part.locator('div:has(> p:first-child):has(.advice, .command)').count());
    await part.getByRole('link', { name: 'Its errors' }).click();
    await page.getByRole('heading', { name: 'Errors of mail' }).waitFor();
});

test('a store that is nearly full needs attention', async (t) => {
    const redis = await t.redis();
    const cli = (...args) => execFileSync('redis-cli', ['-s', redis.socket, ...args]).toString();
    const server = await t.serve('--store', `redis+unix://${redis.socket}`);
    await server.add({ type: 'mail', data: {} });
    const used = Number(/used_memory:(\d+)/.exec(cli('info', 'memory'))[1]);
    cli('config', 'set', 'maxmemory', String(Math.round(used * 1.05)));
    const page = await t.open(server, '/');
    await page.getByRole('alert', { name: 'Needs attention' }).getByText(/^The store has \d+ MB left of \d+ MB\./).waitFor();
});

test('nothing needs attention where all is as before', async (t) => {
    const server = await t.serve();
    await putPast(server, 'mail', 1, 60, 'added=9 complete=6 failed=1 backlog=200');
    await fail(server, 'mail', 'no');
    for (let i = 0; i < 5; i++)
        await server.ended({ type: 'mail', data: {} }, { result: 1 });
    const page = await t.open(server, '/');
    const asked = page.waitForResponse((r) => /v1\/history.*type=mail/.test(r.url()));
    await asked;
    await page.getByRole('heading', { name: 'Types' }).waitFor();
    assert.equal(await page.getByRole('alert', { name: 'Needs attention' }).count(), 0);
});

test('names of types as long as they may be fit, at each width', async (t) => {
    const server = await t.serve();
    const long = 'x'.repeat(128);
    await fail(server, long, 'no');
    await server.add({ type: long, data: {} });
    await server.add({ type: long, data: {} });
    await server.take(long, 'box:1');
    for (const width of [390, 800, 1024, 1280, 1920]) {
        const page = await t.open(server, '/', { width });
        for (const path of ['/', '/errors', '/types', `/types/${long}`, '/workers', '/failed', `/failed?type=${long}&error=no`,
            '/jobs/1']) {
            await page.goto(server.url + path);
            await page.getByText('live', { exact: true }).waitFor();
            await until(async () => (await page.locator('main').innerText()).includes(long), `${path} at ${width}`);
            const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(over <= 0, `${path} at ${width}: ${over} pixels too wide`);
        }
    }
});

test('the overview of a token of some types has charts and what needs attention', async (t) => {
    const server = await t.serve();
    await putPast(server, 'mail', 16, 60, 'added=5 complete=5 backlog=1');
    for (let i = 0; i < 10; i++)
        await fail(server, 'mail', `550 no such user "${i}"`);
    await server.ended({ type: 'film', data: {} }, { result: 1 });
    server.token = server.addToken('boss', '--role', 'admin');
    const one = server.addToken('one', '--role', 'admin', '--type', 'mail');
    const two = server.addToken('two', '--role', 'admin', '--type', 'film', '--type', 'mail');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, two)).status === 200 &&
        (await server.raw('GET', '/v1/stats', undefined, '')).status === 401, 'tokens are needed');
    for (const [token, type] of [[one, 'mail'], [two, 'film']]) {
        const page = await t.open(server, '/?span=15m', { token });
        await page.locator('.charts[aria-busy=false]').waitFor();
        await page.getByRole('alert', { name: 'Needs attention' }).getByText('“mail” fails: 100 % of 10 runs').waitFor();
        await page.getByRole('alert').getByText('Most often: * no such user "*".').waitFor();
        assert.equal(await page.getByLabel('Time shown').inputValue(), '3h');
        assert.equal(await page.getByText('The charts are those of “film”.').count(), Number(type === 'film'));
    }
    // where one answer is missing, the others count
    const page = await t.open(server, '/', { token: server.token });
    await page.route('**/v1/batch', (route) => route.fulfill({ status: 403, json: { error: { code: 'EDENIED', message: 'no' } } }));
    await page.reload();
    await page.getByRole('alert', { name: 'Needs attention' }).getByText('“mail” fails').waitFor();
});
