// cases_live.mjs - what happens is on the screen within a second, without a reload; after trouble
// the page comes back by itself.
import assert from 'node:assert/strict';
import { test, until, withinASecond } from './rig.mjs';

// When `fn` of the page's document is true, from when it was asked; the page looks by itself.
async function timed(page, act, fn, arg) {
    const seen = page.waitForFunction(fn, arg, { polling: 20 });
    const began = Date.now();
    await act();
    await seen;
    return Date.now() - began;
}

test('events are on the screen within a second', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'first', data: {} });
    const page = await t.open(server, '/inactive');
    await page.getByText('live', { exact: true }).waitFor();
    await page.locator('.row').first().waitFor();
    let n = 0;
    await withinASecond('a new job in its list', () => timed(page,
        () => server.add({ type: 'mail', data: { title: `number ${++n}` } }),
        (title) => document.querySelector('.jobs')?.textContent.includes(title), `number ${n + 1}`));
    await withinASecond('the count in the menu', async () => {
        const want = (await server.call('GET', '/v1/stats')).counts.inactive + 1;
        return timed(page, () => server.add({ type: 'mail', data: {} }),
            (c) => document.querySelector('nav a[href="/inactive"] .count').textContent === String(c), want);
    });
    await page.goto(server.url + '/');
    await page.locator('.cards').waitFor();
    await withinASecond('the count in the overview', async () => {
        const want = (await server.call('GET', '/v1/stats')).counts.inactive + 1;
        return timed(page, () => server.add({ type: 'mail', data: {} }),
            (c) => document.querySelector('.cards a[href="/inactive"] b').textContent === String(c), want);
    });
});

test('a list holds still under the pointer, and lets new jobs in when asked', async (t) => {
    const server = await t.serve();
    const ids = [];
    for (let i = 0; i < 4; i++)
        ids.push(await server.ended({ type: 'mail', data: { title: `n${i}` } }, { error: `e${i}` }));
    const page = await t.open(server, '/failed');
    await page.getByText('live', { exact: true }).waitFor();
    const shown = () => page.locator('.row').evaluateAll((rows) => rows.map((r) => Number(r.dataset.id)));
    const fresh = page.getByRole('button', { name: /^\d+ new$/ });
    await until(async () => (await shown()).length === 4, 'four rows');
    const order = await shown(), row = (id) => page.locator(`[data-id="${id}"]`);
    await row(ids[1]).hover();
    // two come, one leaves: nothing moves, and what has left is said to have
    for (let i = 0; i < 2; i++)
        ids.push(await server.ended({ type: 'sms', data: {} }, { error: 'new' }));
    await server.call('POST', `/v1/jobs/${ids[2]}/retry`);
    await page.getByRole('button', { name: '2 new' }).waitFor();
    await row(ids[2]).getByText('not here any more').waitFor();
    assert.equal(await row(ids[2]).getByRole('button').count(), 0);
    assert.deepEqual(await shown(), order);
    assert.equal(await page.locator('[aria-live=polite]').filter({ has: fresh }).count(), 1);
    await fresh.click();
    const after = [ids[5], ids[4], ids[3], ids[1], ids[0]];
    await until(async () => JSON.stringify(await shown()) === JSON.stringify(after), 'all that is there now');
    // without the pointer it follows by itself
    await page.locator('h1').hover();
    ids.push(await server.ended({ type: 'sms', data: {} }, { error: 'newer' }));
    await until(async () => (await shown())[0] === ids[6], 'the newest is first');
    assert.equal(await fresh.count(), 0);
    // a job that is selected holds it, too; and so does the focus of the keyboard
    await page.getByLabel(`Select job ${ids[0]}`).check();
    await page.locator('h1').hover();
    ids.push(await server.ended({ type: 'sms', data: {} }, { error: 'newest' }));
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal((await shown())[0], ids[6]);
    await page.getByLabel(`Select job ${ids[0]}`).uncheck();
    await page.locator('h1').hover();
    await until(async () => (await shown())[0] === ids[7], 'let in when nobody is there');
    await page.getByRole('button', { name: `Retry job ${ids[0]}` }).focus();
    await page.keyboard.press('Shift+Tab');
    ids.push(await server.ended({ type: 'sms', data: {} }, { error: 'the last' }));
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal((await shown())[0], ids[7]);
});

test('a job is followed while it runs', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'video', data: {}, attempts: 2 });
    const page = await t.open(server, `/jobs/${id}`);
    await page.getByText('live', { exact: true }).waitFor();
    let job = await server.take('video', 'box:1');
    await page.getByText('Delivery 1: started by box:1').waitFor();
    let done = 0;
    await withinASecond('progress', () => timed(page,
        () => server.call('POST', `/v1/jobs/${id}/progress`, { delivery: job.delivery, done: ++done, total: 100 }),
        (p) => document.querySelector('.ring text')?.textContent === String(p), done + 1));
    await server.call('POST', `/v1/jobs/${id}/log`, { text: 'first pass' });
    await page.getByRole('region', { name: 'Log' }).getByText('first pass').waitFor();
    await server.finish(job, { error: 'codec: bad header' });
    await page.getByText('Attempt 1 failed: codec: bad header').waitFor();
    job = await until(() => server.take('video', 'box:2'));
    await page.getByText('Delivery 2: started by box:2').waitFor();
    await page.getByText('Delivery 1: started by box:1').waitFor();     // not forgotten
    await server.finish(job, { result: { frames: 1 } });
    await page.getByRole('region', { name: 'Result' }).getByText('"frames": 1').waitFor();
    assert.match(await page.getByRole('region', { name: 'Timeline' }).innerText(), /ran \d/);
});

test('charts and rates move', async (t) => {
    const server = await t.serve('--demo');
    const page = await t.open(server, '/');
    const rate = () => page.getByRole('row').filter({ hasText: 'thumbnail' }).locator('td').nth(5).innerText();
    await until(async () => Number(await rate()) > 0, 'a rate of thumbnails');
    const figure = page.getByRole('figure').first();
    await until(async () => /completed [1-9]/.test(await figure.getAttribute('aria-label')),
        'completed jobs in the chart');
    assert.ok(/oldest waits/.test(await page.getByRole('figure').nth(1).getAttribute('aria-label')));
});

test('the page comes back after a restart of the server', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: { title: 'before' } });
    const page = await t.open(server, '/inactive');
    await page.getByText('before').waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await server.stop('SIGKILL');
    await page.getByRole('heading', { name: 'The server does not answer' }).waitFor();
    await server.again();
    await page.getByText('before').waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await server.add({ type: 'mail', data: { title: 'after' } });
    await page.getByText('after').waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
});

test('a store that is down is diagnosed, and the page heals itself', async (t) => {
    const redis = await t.redis();
    const server = await t.serve('--store', `redis+unix://${redis.socket}`);
    const id = await server.add({ type: 'mail', data: { title: 'in redis' } });
    const page = await t.open(server, `/jobs/${id}`);
    await page.getByRole('button', { name: 'Edit and run again' }).click();
    await page.getByRole('dialog').getByLabel('Data').fill('{"half":"written');
    await redis.stop();
    await page.getByRole('heading', { name: 'The store does not answer' }).waitFor();
    assert.match(await page.getByRole('alert').innerText(), /redis-cli ping/);
    // one that comes just now sees the same
    const other = await t.open(server, '/failed');
    await other.getByRole('heading', { name: 'The store does not answer' }).waitFor();
    await redis.start();
    assert.equal(await page.getByRole('dialog').getByLabel('Data').inputValue(), '{"half":"written');
    await other.getByText('Nothing has failed.').waitFor();
    await until(async () => await page.getByRole('alert').count() === 0);
    // and one that hangs
    redis.child.kill('SIGSTOP');
    await other.getByRole('heading', { name: 'The store does not answer' }).waitFor();
    redis.child.kill('SIGCONT');
    await other.getByText('Nothing has failed.').waitFor();
});
