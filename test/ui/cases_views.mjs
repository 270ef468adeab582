// cases_views.mjs - each view shows what the API says.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test, until } from './rig.mjs';

const STATES = ['inactive', 'active', 'delayed', 'failed', 'complete', 'cancelled'];
const LABELS = ['Queued', 'Active', 'Delayed', 'Failed', 'Complete', 'Cancelled'];

// One job in each state, by state.
async function oneOfEach(server) {
    const ids = {};
    ids.failed = await server.ended({ type: 'mail', data: { title: 'to ann' }, search: true },
        { error: 'smtp: 550 no such user\nsecond line' });
    ids.complete = await server.ended({ type: 'mail', data: { title: 'to bob' } },
        { result: { sent: true } });
    ids.active = await server.add({ type: 'video', data: { title: 'film' }, priority: 'high' });
    const job = await server.take('video', 'renderer-7');
    await server.call('POST', `/v1/jobs/${job.id}/progress`,
        { delivery: job.delivery, done: 42, total: 100 });
    ids.cancelled = await server.add({ type: 'mail', data: {} });
    await server.call('POST', `/v1/jobs/${ids.cancelled}/cancel`);
    ids.delayed = await server.add({ type: 'report', data: { title: 'Sales' }, delay: '1h' });
    ids.inactive = await server.add({ type: 'mail', data: { to: 'carl' } });
    return ids;
}

test('an empty queue says what to do next, with commands to copy', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/', { clipboard: true });
    await page.getByRole('heading', { name: 'There are no jobs yet' }).waitFor();
    const first = page.locator('.command').first();
    assert.equal(await first.locator('code').innerText(),
        `weir add mail '{"to":"ann@example.org"}' --store ${server.url}`);
    await first.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('Copied').waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    for (const path of ['/inactive', '/active', '/delayed', '/complete', '/jobs', '/workers']) {
        await page.goto(server.url + path);
        await page.locator('.empty').waitFor();
        assert.ok(await page.locator('.empty .command').count(), path);
    }
    for (const path of ['/failed', '/cancelled']) {         // nobody wants one of these
        await page.goto(server.url + path);
        await page.locator('.empty').waitFor();
        assert.equal(await page.locator('.empty .command').count(), 0, path);
    }
    await page.goto(server.url + '/types');
    await page.getByText('A type is known once a job of it was added.').first().waitFor();
    // and the command does what it says
    execFileSync('sh', ['-c', command.replace(/^weir/, t.weir)], { stdio: 'pipe' });
    assert.equal((await server.job(1)).type, 'mail');
    await page.getByRole('cell', { name: 'mail', exact: true }).first().waitFor();
});

test('the overview has counts, charts, types and a link for each', async (t) => {
    const server = await t.serve('--title', 'The <b>mill</b>');
    await oneOfEach(server);
    const page = await t.open(server, '/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    for (const [i, state] of STATES.entries()) {
        const card = page.locator(`.cards a[href="/${state}"]`);
        await until(async () => (await card.innerText()).replace(/\s+/g, ' ').endsWith(`${LABELS[i]} 1`),
            `${LABELS[i]} 1`);
    }
    assert.equal(await page.title(), 'Overview · The <b>mill</b>');
    assert.equal(await page.locator('.brand').innerText(), 'The <b>mill</b>');
    await page.locator('figure canvas').nth(1).waitFor();
    const row = page.getByRole('row').filter({ hasText: 'mail' }).first();
    assert.match((await row.innerText()).replace(/\s+/g, ' '), /^mail 1 0 1 /);
    // a share of failures: one of two
    assert.match(await row.innerText(), /50\.0 %/);
    await page.getByLabel('Time shown').selectOption('3h');
    await until(() => page.url().endsWith('/?span=3h'));
});

const attribute = (figures, name) =>
    figures.evaluateAll((all, name) => all.map((f) => f.getAttribute(name)), name);
const OUTCOMES = 'completed 2, retried 1, failed 1, cancelled 0, lost 0';

async function endSome(server) {
    for (const n of [1, 2, 3, 4]) {
        await server.add({ type: 'mail', data: { n }, attempts: n === 3 ? 2 : 1 });
        const job = await server.take('mail', 'box:1');
        await server.finish(job, n < 3 ? { result: { n } } : { error: 'no' });
    }
}

test('charts have one axis of time, and as many bars as they have room for', async (t) => {
    const server = await t.serve();
    await endSome(server);
    const page = await t.open(server, '/');
    const figures = page.locator('figure');
    const first = figures.first();
    for (const width of [390, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        await until(async () => {
            const plot = await first.evaluate((f) => f.clientWidth);
            const n = Number(await first.getAttribute('data-buckets'));
            return n > plot / 6 * 0.4 && n <= plot / 6;
        }, `bars for ${width} px`);
    }
    await until(async () => (await first.getAttribute('aria-label')).endsWith(OUTCOMES), OUTCOMES);
    assert.equal(await figures.count(), 4);
    await until(async () => new Set(await attribute(figures, 'data-range')).size === 1, 'one axis');
    const bars = [/15 seconds$/, /3 minutes$/, /20 minutes$/, /2 hours$/, /a week$/];
    await page.setViewportSize({ width: 1280, height: 900 });
    for (const [i, span] of ['15m', '3h', '24h', '7d', '1y'].entries()) {
        await page.getByLabel('Time shown').selectOption(span);
        await first.getByText(bars[i]).waitFor();
        await until(async () => (await first.getAttribute('aria-label')).endsWith(OUTCOMES), `${span}: ${OUTCOMES}`);
        await until(async () => new Set(await attribute(figures, 'data-range')).size === 1, 'one axis');
    }
    // pointing at one points at all
    await figures.nth(1).locator('.u-over').hover();
    await until(() => page.evaluate(() => [...document.querySelectorAll('.u-cursor-x')].length === 4 &&
        [...document.querySelectorAll('.u-cursor-x')].every((c) => /translate/.test(c.style.transform))),
    'a cursor in each');
    await until(async () => (await figures.locator('figcaption span').allInnerTexts()).every((text) =>
        /^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d$/.test(text)), 'the time that is pointed at, in each');
    await page.mouse.move(0, 0);
    await first.getByText(/^a bar is (about )?a week$/).waitFor();
});

test('history is there after a restart of the server', async (t) => {
    const server = await t.serve();
    await endSome(server);
    const page = await t.open(server, '/?span=24h');
    const first = page.locator('figure').first();
    await until(async () => (await first.getAttribute('aria-label')).endsWith(OUTCOMES), OUTCOMES);
    await server.stop();
    await server.again();
    await page.goto(`${server.url}/?span=24h`);
    await until(async () => (await first.getAttribute('aria-label')).endsWith(OUTCOMES), OUTCOMES);
});

// How many pixels of its canvas have the colour of that name.
const dotsOf = (figure, name) => figure.evaluate((el, name) => {
    const probe = document.createElement('i');
    probe.style.color = getComputedStyle(document.documentElement).getPropertyValue(name);
    el.append(probe);
    const want = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    const canvas = el.querySelector('canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4)
        n += Number(data[i + 3] > 200 && want.every((v, k) => Math.abs(v - data[i + k]) < 9));
    return n;
}, name);

test('a point of a curve without neighbours is a dot, and all charts have the same places', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: {} });
    const page = await t.open(server, '/types/mail');
    const figures = page.locator('figure');
    await until(async () => (await figures.nth(3).getAttribute('aria-label')).includes('1 wait'), 'a job waits');
    await until(async () => await dotsOf(figures.nth(3), '--accent') > 5, 'a dot');
    const places = await page.locator('.u-over').evaluateAll((all) =>
        all.map((el) => [el.offsetLeft, el.offsetTop, el.offsetWidth, el.offsetHeight].join()));
    assert.equal(new Set(places).size, 1, places.join(' '));
});

test('a type has a page: its charts, what it is set to, what waits, its errors', async (t) => {
    const server = await t.serve();
    await endSome(server);
    await server.add({ type: 'a/b "c"', data: {} });
    await server.call('PUT', '/v1/schedules/dawn', { when: '@daily', job: { type: 'mail' } });
    const page = await t.open(server, '/');
    await page.getByRole('link', { name: 'mail', exact: true }).click();
    await until(() => page.url().endsWith('/types/mail'));
    await page.getByRole('heading', { name: 'mail', level: 1 }).waitFor();
    const first = page.locator('figure').first();
    await until(async () => (await first.getAttribute('aria-label')).endsWith(OUTCOMES), OUTCOMES);
    await page.getByRole('region', { name: 'Errors' }).getByText('no', { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Oldest that wait' }).getByRole('link').first().waitFor();
    await page.getByRole('region', { name: 'Schedules' }).getByRole('link', { name: 'dawn' }).waitFor();
    await page.getByRole('region', { name: 'Numbers and settings' }).getByText('50.0 %').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    await page.goto(`${server.url}/types/${encodeURIComponent('a/b "c"')}`);
    await page.getByRole('heading', { name: 'a/b "c"', level: 1 }).waitFor();
    await page.goto(`${server.url}/types/nothing`);
    await page.getByText('The store has no such type').waitFor();
});

test('red only when something is wrong, with the remedy beside it', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'quick', data: {} });
    const page = await t.open(server, '/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(await page.locator('.wrong').count(), 0);
    // twelve that have waited long: the clock of the page is moved on, not the test's
    await server.call('POST', '/v1/jobs', Array.from({ length: 12 }, () => ({ type: 'video', data: {} })));
    const later = await t.open(server, '/settings');
    await later.clock.install({ time: Date.now() });
    await later.goto(server.url + '/');
    await later.locator('.cards').waitFor();
    await later.clock.fastForward(60000);
    const alert = later.getByRole('alert');
    await alert.getByText('12 jobs wait for “video”, and no worker takes them.').waitFor();
    assert.ok((await alert.innerText()).includes('weir work video --exec'));
    await alert.getByRole('link', { name: 'Show' }).last().click();
    await until(() => later.url().endsWith('/inactive?type=video'));
});

test("each state has its list at Kue's address", async (t) => {
    const server = await t.serve();
    const ids = await oneOfEach(server);
    const page = await t.open(server, '/settings');
    for (const [i, state] of STATES.entries()) {
        await page.goto(`${server.url}/${state}`);
        await page.getByRole('heading', { name: LABELS[i], exact: false }).first().waitFor();
        await page.locator(`[data-id="${ids[state]}"]`).waitFor();
        assert.equal(await page.locator('.row').count(), 1, state);
        const link = page.getByRole('navigation').getByRole('link', { name: LABELS[i] });
        assert.equal(await link.getAttribute('aria-current'), 'page');
        await until(async () => /1$/.test(await link.innerText()), `the count of ${state}`);
    }
    const line = async (state) => {
        await page.goto(`${server.url}/${state}`);
        await page.locator('.row').waitFor();
        return (await page.locator('.row').innerText()).replace(/\s+/g, ' ');
    };
    const failed = await line('failed');
    assert.ok(failed.includes('smtp: 550 no such user') && !failed.includes('second line'), failed);
    assert.ok(failed.includes('to ann'), failed);           // the title too, as in Kue
    assert.match(await line('delayed'), /Sales.* in (59|1 h)/);
    assert.match(await line('active'), /film/);
    assert.equal(await page.locator('.row').getByRole('img').getAttribute('aria-label'), '42 percent');
    assert.match(await line('active'), /high/);
    assert.match(await line('inactive'), /"to":"carl"/);
    await page.goto(`${server.url}/jobs`);
    await until(async () => await page.locator('.row').count() === 6, 'all six');
});

test('a list is sorted, filtered and shared by its address', async (t) => {
    const server = await t.serve();
    const ids = await server.call('POST', '/v1/jobs', [
        { type: 'a', data: {}, priority: 'low' }, { type: 'b', data: {}, priority: 'high' },
        { type: 'a', data: {}, priority: 'critical' }, { type: 'a', data: {} },
    ]).then((a) => a.results.map((r) => r.id));
    const page = await t.open(server, '/inactive');
    const shown = () => page.locator('.row').evaluateAll((rows) => rows.map((r) => Number(r.dataset.id)));
    const shows = (want, where = page) => until(async () => {
        const got = await where.locator('.row').evaluateAll((rows) =>
            rows.map((r) => Number(r.dataset.id)));
        return JSON.stringify(got) === JSON.stringify(want);
    }, `the list ${want}`).catch(async (e) => { throw new Error(`${e.message}, but ${await shown()}`); });
    await shows([ids[2], ids[1], ids[3], ids[0]]);          // the order in which they are taken
    await page.getByLabel('Order').selectOption('desc');
    await shows([ids[0], ids[3], ids[1], ids[2]]);
    await page.getByLabel('Type').selectOption('a');
    await shows([ids[0], ids[3], ids[2]]);
    await page.getByLabel('Priority').selectOption('normal');
    await shows([ids[3]]);
    const link = page.url();
    await page.goBack();
    await shows([ids[0], ids[3], ids[2]]);
    assert.equal(await page.getByLabel('Priority').inputValue(), '');
    await page.goBack();
    await page.goBack();
    await shows([ids[2], ids[1], ids[3], ids[0]]);
    await page.goForward();
    await shows([ids[0], ids[3], ids[1], ids[2]]);
    // somebody else opens the link
    const other = await t.open(server, link.slice(server.url.length));
    await shows([ids[3]], other);
    assert.equal(await other.getByLabel('Order').inputValue(), 'desc');
});

test('a list has several states, a span of time and an order, all in the address', async (t) => {
    const server = await t.serve();
    const failed = await server.ended({ type: 'mail', data: {} }, { error: 'no' });
    const complete = await server.ended({ type: 'mail', data: {} }, {});
    const waits = await server.add({ type: 'mail', data: {} });
    const delayed = await server.add({ type: 'mail', data: {}, delay: '1h' });
    const page = await t.open(server, '/failed');
    const shows = (...want) => until(async () => {
        const got = await page.locator('.row').evaluateAll((rows) => rows.map((r) => Number(r.dataset.id)));
        return JSON.stringify(got) === JSON.stringify(want);
    }, `the list ${want}`);
    const chip = (name) => page.getByRole('group', { name: 'States' }).getByRole('button', { name });
    const address = (want) => until(() => decodeURIComponent(page.url()).endsWith(want), want);
    await shows(failed);
    assert.equal(await chip('Failed').getAttribute('aria-pressed'), 'true');
    await chip('Complete').click();
    await address('/jobs?state=failed,complete');
    await shows(complete, failed);
    await page.getByRole('heading', { name: 'Failed, Complete 2' }).waitFor();
    await until(async () => await page.title().then((s) => s.startsWith('Failed, Complete')), 'the title');
    await page.getByLabel('Sort by').selectOption('created');
    await page.getByLabel('Order').selectOption('asc');
    await address('state=failed,complete&sort=created&order=asc');
    await shows(failed, complete);
    await page.getByLabel('Time', { exact: true }).selectOption('1h');
    await shows(failed, complete);
    await page.getByLabel('Time', { exact: true }).selectOption('between …');
    await page.getByLabel('to', { exact: true }).fill('2020-01-01T00:00');
    await page.getByText('No job matches.').waitFor();
    await page.goBack();
    await shows(failed, complete);
    // an action concerns those in which it can be done
    await page.goto(`${server.url}/jobs?state=failed,complete,delayed&since=1h`);
    await shows(delayed, complete, failed);
    await page.getByRole('button', { name: 'Retry all' }).click();
    await page.getByText('This concerns at least').or(page.getByText('This concerns')).waitFor();
    await page.getByRole('button', { name: 'Retry 2' }).click();
    await shows(delayed);
    // states that are searched for are either; what a chip changes is no longer searched for
    await page.getByLabel('Search jobs').fill('state:queued state:delayed');
    await page.keyboard.press('Enter');
    await page.goto(`${server.url}/jobs?q=state:queued state:delayed type:mail`);
    await shows(delayed, waits, complete, failed);
    await chip('Queued').click();
    await address('/delayed?q=type:mail');
    await shows(delayed);
});

test('a list shows what one chooses, as the address says', async (t) => {
    const server = await t.serve();
    const { complete } = await oneOfEach(server);
    const page = await t.open(server, '/complete');
    const row = page.locator(`[data-id="${complete}"]`);
    await row.waitFor();
    assert.equal(await row.locator('.col').count(), 0);
    await page.getByText('Show', { exact: true }).click();
    await page.getByLabel('worker', { exact: true }).check();
    await page.getByLabel('deliveries').check();
    await until(() => decodeURIComponent(page.url()).endsWith('/complete?cols=worker,deliveries'));
    await until(async () => (await row.locator('.col').allInnerTexts()).join() === 'w1,1', 'both');
    assert.deepEqual(await page.getByRole('columnheader').allInnerTexts().then((all) => all.slice(-4)),
        ['Worker', 'Deliveries', 'Ended', 'Actions']);
    const other = await t.open(server, '/complete?cols=worker,nonsense,took', { width: 390 });
    await until(async () => /worker w1\s+took \d/.test(await other.locator('.row .more').innerText()), 'shared');
});

test('a list sorted by how long jobs took says so, with orders in words', async (t) => {
    const server = await t.serve();
    const { complete } = await oneOfEach(server);
    const page = await t.open(server, '/complete');
    await page.getByLabel('Sort by').selectOption('took');
    const row = page.locator(`[data-id="${complete}"]`);
    await until(async () => /^\d.* m?s$/.test((await row.locator('.col').allInnerTexts()).join()), 'the time it took');
    assert.deepEqual(await page.getByLabel('Order', { exact: true }).locator('option').allInnerTexts(),
        ['shortest first', 'longest first']);
    // the job has ended, whatever the clock of the page says
    const early = await t.open(server, '/settings');
    await early.clock.install({ time: Date.now() - 60000 });
    await early.route('**/v1/server', async (route) => {
        const answer = await route.fetch(), body = await answer.json();
        await route.fulfill({ response: answer, json: { ...body, now: body.now - 60000 } });
    });
    await early.goto(`${server.url}/complete`);
    assert.match(await early.locator('.row .when').innerText(), / ago$/);
});

test('a list that the server does not make says why, in its place', async (t) => {
    const server = await t.serve();
    await server.ended({ type: 'mail', data: {} }, { result: 1 });
    const page = await t.open(server, '/settings');
    await page.route('**/v1/jobs?*sort=created*', (route) => route.fulfill({ status: 400,
        json: { error: { code: 'ELIMIT', message: 'more than 100000 jobs to sort' } } }));
    await page.goto(`${server.url}/complete?sort=created`);
    await page.getByRole('alert').getByText('more than 100000 jobs to sort').waitFor();
    assert.equal(await page.locator('[aria-busy=true]').count(), 0);
    assert.equal(await page.locator('.toast').count(), 0);
    await page.getByRole('button', { name: 'Show them in the usual order' }).click();
    await page.locator('.row').waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
    await page.goto(`${server.url}/complete?priority=bogus`);
    await page.getByRole('alert').getByText('priority').waitFor();
});

test('filters take two rows on a laptop, and are behind a button on a phone', async (t) => {
    const server = await t.serve();
    await server.ended({ type: 'mail', data: {} }, { error: 'no' });
    const page = await t.open(server, '/failed?type=mail', { width: 1280 });
    await page.locator('.row').waitFor();
    const top = async () => (await page.locator('.jobs').boundingBox()).y - (await page.locator('h1').boundingBox()).y;
    assert.ok(await top() < 140, `${await top()} pixels above the list`);
    // what is chosen to be shown is beside the menu of views, at any width
    for (const width of [390, 740, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await page.getByText('Show', { exact: true }).click();
        const box = await page.locator('.choose .panel').boundingBox();
        const left = width > 720 ? (await page.locator('main').boundingBox()).x : 0;
        assert.ok(box.x >= left && box.x + box.width <= width, `${width}: ${box.x} to ${box.x + box.width}`);
        await page.getByText('Show', { exact: true }).click();
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('button', { name: 'Filter (1)' }).waitFor();
    assert.ok(await top() < 120, `${await top()} pixels above the list`);
    assert.equal(await page.getByLabel('Type').count(), 0);
    await page.getByRole('button', { name: 'Filter (1)' }).click();
    await page.getByLabel('Type').selectOption('');
    await until(() => page.url().endsWith('/failed'));
    await page.getByLabel('Sort by').selectOption('attempts');
    await page.locator('.row').waitFor();
});

test('a list goes on when it is scrolled', async (t) => {
    const server = await t.serve();
    await server.call('POST', '/v1/jobs', Array.from({ length: 230 }, (_, i) =>
        ({ type: 'many', data: { title: `number ${i}` } })));
    const page = await t.open(server, '/inactive');
    const rows = page.locator('.row');
    await until(async () => await rows.count() >= 50);
    assert.ok(await rows.count() < 230);
    await until(async () => {
        await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
        return await rows.count() === 230;
    }, 'all 230');
    const ids = await rows.evaluateAll((r) => r.map((each) => Number(each.dataset.id)));
    assert.equal(new Set(ids).size, 230);
    assert.deepEqual(ids, [...ids].sort((a, b) => a - b));
});

test('search finds a job, a type, words of data and of errors', async (t) => {
    const server = await t.serve();
    const ann = await server.add({ type: 'mail', data: { user: 42, to: 'ann' }, search: true });
    const bob = await server.add({ type: 'mail', data: { user: 7, to: 'bob' }, search: true });
    const bad = await server.ended({ type: 'pay', data: { user: 42 }, search: true },
        { error: 'bank: connection reset by peer' });
    const page = await t.open(server, '/');
    const look = async (words) => {
        await page.getByLabel('Search jobs').fill(words);
        await page.keyboard.press('Enter');
    };
    const shows = (...want) => until(async () => {
        const got = await page.locator('.row').evaluateAll((rows) => rows.map((r) => Number(r.dataset.id)));
        return JSON.stringify(got.sort()) === JSON.stringify(want.sort());
    }, `found ${want}`);
    await look('user:42');
    await shows(ann, bad);
    await look('reset peer');
    await shows(bad);
    await look('type:mail');
    await shows(ann, bob);
    await look('type:mail user:42');
    await shows(ann);
    await look('state:failed user:42');
    await shows(bad);
    await look('state:queued');
    await shows(ann, bob);
    await look('state:failed state:queued');
    await shows(ann, bob, bad);
    await look('mail');                     // the name of a type, before words
    await shows(ann, bob);
    await look('nothing-like-it');
    await page.getByText('No job matches.').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await shows(ann, bob, bad);
    await look(`${bob}`);
    await until(() => page.url().endsWith(`/jobs/${bob}`));
    await page.getByRole('heading', { name: `#${bob} mail` }).waitFor();
});

test('the search says what it understands while one types', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: {} });
    await server.add({ type: 'mailing', data: {} });
    const page = await t.open(server, '/');
    const box = page.getByLabel('Search jobs'), said = page.locator('.understood');
    const says = (text) => until(async () => (await said.innerText()).replace(/\s+/g, ' ').includes(text), text);
    await page.locator('nav .count').first().waitFor();
    await box.focus();
    await says('a number, a type, state:queued');
    await box.fill('42');
    await says('job #42');
    await box.fill('mail state:queued smtp');
    await says('type mail state Queued words smtp');
    await box.fill('state:queued state:failed');
    await says('state Queued or Failed');
    await box.fill('state:asleep');
    await says('unknown state asleep: queued');
    await box.fill('mail state:qu');                // half a word is not wrong yet
    await said.getByRole('button', { name: 'state:queued' }).waitFor();
    assert.equal(await said.locator('.bad').count(), 0);
    await said.getByRole('button', { name: 'state:queued' }).click();
    assert.equal(await box.inputValue(), 'mail state:queued ');
    await box.fill('mai');
    await said.getByRole('button', { name: 'type:mailing' }).click();
    assert.equal(await box.inputValue(), 'type:mailing ');
    await box.press('Enter');
    await until(() => page.url().endsWith('/jobs?q=type%3Amailing'), 'the address');
    await page.locator('.row').waitFor();
    assert.equal(await page.locator('.row').count(), 1);
    assert.equal(await said.count(), 0);
});

test('a log is searched, followed and downloaded', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'mail', data: {} });
    await server.take('mail', 'w');
    const line = (text) => server.call('POST', `/v1/jobs/${id}/log`, { text });
    for (let i = 1; i <= 60; i++)
        await line(`step ${i} of 60`);
    const page = await t.open(server, `/jobs/${id}`);
    const log = page.getByRole('region', { name: 'Log' }), rows = log.locator('li');
    await until(async () => await rows.count() === 60, '60 lines');
    assert.match(await log.locator('time').first().innerText(), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
    const atEnd = () => log.locator('ol').evaluate((o) => o.scrollTop + o.clientHeight >= o.scrollHeight - 2);
    await until(atEnd, 'the end is shown');
    await line('and one more');
    await log.getByText('and one more').waitFor();
    await until(atEnd, 'the end is followed');
    await log.getByLabel('follow').uncheck();
    await log.locator('ol').evaluate((o) => { o.scrollTop = 0; });
    await line('not followed');
    await log.getByText('not followed').waitFor();
    assert.equal(await log.locator('ol').evaluate((o) => o.scrollTop), 0);
    await log.getByLabel('Search the log').fill('STEP 6');
    await until(async () => await rows.count() === 2, 'step 6 and step 60');
    await log.getByLabel('Search the log').fill('nothing like it');
    await log.getByText('None of 62 lines has “nothing like it”.').waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'),
        log.getByRole('button', { name: 'Download' }).click()]);
    assert.equal(file.suggestedFilename(), `job-${id}.log`);
    const text = readFileSync(await file.path(), 'utf8');
    assert.equal(text.trim().split('\n').length, 62);
    assert.match(text, /^\d{4}-\d\d-\d\dT\S+Z step 1 of 60\n/);
});

test('a demo says that it is one', async (t) => {
    const page = await t.open(await t.serve('--demo'), '/');
    await page.getByRole('note').getByText('This is a demo: all its jobs vanish when it ends.').waitFor();
    const other = await t.open(await t.serve(), '/');
    await other.locator('nav .count').first().waitFor();
    assert.equal(await other.getByRole('note').count(), 0);
});

test('a job is on one screen', async (t) => {
    const server = await t.serve();
    const id = await server.add({
        type: 'mail', data: { to: 'ann', big: '@@' }, priority: 'high', attempts: 3,
        backoff: { type: 'fixed', delay: 1 }, values: { campaign: 'spring' },
    });
    let job = await server.take('mail', 'box:12');
    await server.call('POST', `/v1/jobs/${id}/log`, { text: 'asking mx.example.org' });
    await server.finish(job, { error: 'smtp: 451 come again\nand more' });
    job = await until(() => server.take('mail', 'box:13'));
    await server.finish(job, { result: { message: 'id-1' } });
    const page = await t.open(server, `/jobs/${id}`);
    await page.getByRole('heading', { name: `#${id} mail` }).waitFor();
    const part = (name) => page.getByRole('region', { name, exact: true });
    assert.match(await part('Data').innerText(), /"to": "ann"/);
    assert.match(await part('Values').innerText(), /"campaign": "spring"/);
    assert.match(await part('Result').innerText(), /"message": "id-1"/);
    await part('Log').getByText('asking mx.example.org').waitFor();
    const timeline = await part('Timeline').innerText();
    for (const word of ['Added, high priority, 3 attempts', 'Attempt 1 failed: smtp: 451 come again',
        'Delivery 2: started by box:13', 'Complete', 'ran '])
        assert.ok(timeline.includes(word), `${word} in ${timeline}`);
    assert.match(await part('Details').innerText(), /Attempts\s+2 of 3/);
    assert.match(await part('Details').innerText(), /Took/);
    await page.goto(`${server.url}/jobs/999`);
    await page.getByRole('heading', { name: 'Not here' }).waitFor();
});

test('a timeline has every delivery, wait and hand, also of before the page was open', async (t) => {
    const server = await t.serve();
    const id = await server.add({
        type: 'mail', data: {}, priority: 'high', attempts: 3, backoff: { type: 'fixed', delay: 40 },
    });
    for (const worker of ['box:1', 'box:2'])
        await server.finish(await until(() => server.take('mail', worker)), { error: `no, says ${worker}` });
    await server.finish(await until(() => server.take('mail', 'box:3')), { result: 1 });
    const page = await t.open(server, `/jobs/${id}`);
    const timeline = page.getByRole('region', { name: 'Timeline', exact: true });
    const steps = () => timeline.locator('li').allInnerTexts();
    await timeline.getByText('Complete').waitFor();
    // each step with what was before it: how long it waited, was delayed, or ran
    const want = [
        /Added, high priority, 3 attempts/,
        /(waited \d.*)?Delivery 1: started by box:1/s,
        /(ran \d.*)?Attempt 1 failed: no, says box:1; tried again in 40 ms/s,
        /delayed \d.*Its time came/s,
        /Delivery 2: started by box:2/,
        /Attempt 2 failed: no, says box:2; tried again in 40 ms/,
        /delayed \d.*Its time came/s,
        /Delivery 3: started by box:3/,
        /Complete/,
    ];
    let got = await steps();
    assert.equal(got.length, want.length, got.join('\n'));
    want.forEach((w, i) => assert.match(got[i], w));
    assert.match(await timeline.innerText(), /3 deliveries, ran \d+.*, waited \d+/);
    await server.call('PATCH', `/v1/jobs/${id}`, { priority: 'low' });      // of which no event tells
    await server.call('POST', `/v1/jobs/${id}/retry`);
    await timeline.getByText('Retried by hand').waitFor();
    await timeline.getByText('Changed by hand, priority low (it was high)').waitFor();
    await timeline.getByText(/^waiting for \d/).waitFor();
    await server.call('POST', `/v1/jobs/${id}/cancel`);
    await timeline.getByText('Cancelled by hand').waitFor();
    got = await steps();
    assert.equal(got.length, want.length + 3, got.join('\n'));
    assert.match(got[0], /Added, high priority/);
    assert.match(got[9], /later.*Changed by hand/s);
});

test('a timeline that is long can be read', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'mail', data: {} });
    for (let n = 1; n <= 53; n++) {
        await server.finish(await until(() => server.take('mail', `box:${n}`)), { return: true });
    }
    const page = await t.open(server, `/jobs/${id}`);
    const timeline = page.getByRole('region', { name: 'Timeline', exact: true });
    await timeline.getByText('Delivery 53: started by box:53').waitFor();
    assert.ok(await timeline.locator('li').count() < 30);
    assert.match(await timeline.innerText(), /53 deliveries, ran at least \d/);
    assert.match(await timeline.locator('li').first().innerText(), /Added/);
    await timeline.getByRole('button', { name: 'Show 77 more' }).click();
    await timeline.getByText('What happened before is forgotten: 3 of 53').waitFor();
    await timeline.getByText('Delivery 4: started by box:4', { exact: true }).waitFor();
    assert.equal(await timeline.getByText('Given back by its worker; queued again').count(), 50);
});

test('workers are shown with what they hold', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'video', data: {} });
    await server.take('video', 'renderer-7');
    const page = await t.open(server, '/workers');
    const row = page.getByRole('row').filter({ hasText: 'renderer-7' });
    await row.getByRole('link', { name: `#${id} video` }).waitFor();
    assert.match(await row.innerText(), /for \d/);
    assert.match(await row.innerText(), /ago/);
});

test('a lease ticks, is renewed, and is said to be over before the job is lost', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'video', data: {} });
    const [job] = (await server.call('POST', '/v1/take',
        { types: ['video'], worker: 'renderer-7', lease: '55s' })).jobs;
    const renew = (lease) => server.call('POST', '/v1/renew',
        { jobs: [{ id, delivery: job.delivery }], worker: 'renderer-7', lease });
    const page = await t.open(server, '/workers');
    const row = page.getByRole('row').filter({ hasText: 'renderer-7' });
    const left = async () => Number(/lease (?:renewed .* ago, )?ends in (\d+)/.exec(await row.innerText())?.[1]);
    const first = await until(left, 'what is left');
    assert.ok(first <= 55, first);
    assert.ok(!(await row.innerText()).includes('renewed'));
    await until(async () => await left() < first, 'a lease that gets shorter');
    await renew('45m');
    await row.getByText(/renewed .* ago, ends in 4\d min/).waitFor();
    const other = await t.open(server, `/jobs/${id}`);
    const fact = other.getByRole('region', { name: 'Details', exact: true });
    await fact.getByText(/ends in 4\d min/).waitFor();
    await renew('9s');
    await Promise.all([row.getByText(/lease not renewed, ends/).waitFor(),
        fact.getByText(/not renewed, ends/).waitFor()]);
    await Promise.all([row.getByText('nothing').waitFor(),          // lost, and queued again
        other.getByText(/It waits for a worker/).waitFor()]);
    assert.ok(!(await fact.innerText()).includes('Lease'));
});

test('workers of pools in the server and of the demo are counted', async (t) => {
    const server = await t.serve('--demo');
    const page = await t.open(server, '/workers');
    for (const type of ['mail', 'thumbnail', 'payment'])
        await page.getByRole('row').filter({ hasText: type }).first().waitFor();
    await page.goto(server.url + '/');
    const cell = page.getByRole('row').filter({ hasText: 'mail' }).first().locator('td').nth(9);
    await until(async () => Number(await cell.innerText()) > 0, 'workers of mail');
    assert.equal(await page.locator('.wrong').count(), 0);
});

test('settings tell of the server and of you', async (t) => {
    const server = await t.serve('--title', 'mill');
    const page = await t.open(server, '/settings');
    const part = page.getByRole('region', { name: 'Server' });
    await part.waitFor();
    assert.match(await part.innerText(), /Title\s+mill/);
    assert.match(await part.innerText(), /sqlite:jobs\.db/);
    assert.match(await page.getByRole('region', { name: 'You' }).innerText(), /do everything/);
});

test('the tab says what is shown', async (t) => {
    const server = await t.serve('--title', 'mill');
    const id = await server.add({ type: 'mail', data: {} });
    const page = await t.open(server, '/');
    const titles = {
        '/': 'Overview', '/failed': 'Failed', '/inactive?type=mail': 'Queued: mail', '/jobs?q=ann': 'All jobs: ann',
        [`/jobs/${id}`]: `#${id} mail`, '/jobs/999': 'Not here', '/types': 'Types', '/schedules': 'Schedules',
        '/workers': 'Workers', '/bus': 'Event bus', '/audit': 'Audit', '/settings': 'Settings',
    };
    for (const [path, title] of Object.entries(titles)) {
        await page.goto(server.url + path);
        await until(async () => await page.title() === `${title} · mill`, title);
    }
    await page.getByRole('navigation').getByRole('link', { name: 'Types' }).click();
    await until(async () => await page.title() === 'Types · mill', 'without a reload');
});

test('types say how many workers each has', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: {} });
    await server.add({ type: 'sms', data: {} });
    await server.take('mail', 'box:1');
    const page = await t.open(server, '/types');
    const workers = (type) => page.getByRole('region', { name: 'Types' }).getByRole('row').filter({ hasText: type })
        .locator('[data-label=Workers]').innerText();
    await until(async () => await workers('mail') === '1' && await workers('sms') === '0', 'one and none');
});

test('an unknown address says so, with the way back', async (t) => {
    const server = await t.serve();
    const answer = await fetch(server.url + '/nowhere');
    assert.equal(answer.status, 404);
    assert.equal((await answer.json()).error.code, 'http');
    const page = await t.open(server, '/');
    assert.equal((await page.goto(server.url + '/no/where?a=b')).status(), 404);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    await page.getByRole('main').getByText('/no/where').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const response = await page.goto(server.url + '/');
    const policy = response.headers()['content-security-policy'];
    assert.ok(policy.includes("default-src 'none'") && !policy.includes('unsafe'), policy);
});

test('no view scrolls sideways, between a phone and a wide screen', async (t) => {
    const server = await t.serve();
    for (const type of ['import', 'payment', 'thumbnail']) {
        await server.ended({ type, data: {}, attempts: 1 }, { error: `sftp: customers of ${type}: permission denied` });
        await server.add({ type, data: {} });
        await server.take(type, `${type}-host.example.org:12345:1`);
        await server.call('POST', '/v1/tasks', { service: type, id: `${type}-2026-11-19`, classifier: 'orders', schedule: '0 6 1 * *' });
        await server.call('PUT', `/v1/schedules/${type}-daily`, { when: '30 6 * * 1', zone: 'Europe/Berlin', job: { type, data: {} } });
    }
    const page = await t.open(server, '/');
    for (const width of [730, 800, 1024, 1100, 1101]) {
        await page.setViewportSize({ width, height: 800 });
        for (const path of ['/', '/types', '/types/import', '/errors', '/tasks', '/schedules', '/workers', '/failed', '/jobs',
            '/jobs?state=failed,active&cols=created,at,started,waited,took,worker', '/audit', '/bus', '/settings', '/jobs/1']) {
            await page.goto(server.url + path);
            await page.getByText('live', { exact: true }).waitFor();
            await until(async () => await page.locator('main [aria-busy=true]').count() === 0, `${path} at ${width}`);
            const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(over <= 0, `${path} at ${width}: ${over} pixels too wide`);
        }
    }
});

test('the state of a failed job begins at the top of its panel, and each view has a mark in the menu', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'mail', data: {} });
    const job = await server.take('mail');
    await server.call('POST', `/v1/jobs/${id}/progress`, { delivery: job.delivery, done: 1, total: 2 });
    await server.finish(job, { error: 'no' });
    const page = await t.open(server, `/jobs/${id}`);
    const panel = page.getByRole('region', { name: 'State' });
    await panel.getByRole('img', { name: '50 percent' }).waitFor();
    const top = (await panel.getByLabel('State', { exact: true }).boundingBox()).y - (await panel.boundingBox()).y;
    assert.ok(top < 40, `${top} pixels above the state`);
    const links = page.getByRole('navigation').getByRole('link');
    assert.equal(await links.locator('.mark').count(), await links.count());
});

test('a schedule that is opened on a phone is in sight', async (t) => {
    const server = await t.serve();
    for (let i = 0; i < 12; i++)
        await server.call('PUT', `/v1/schedules/nightly-${i}`, { when: '@daily', job: { type: 'mail' } });
    const page = await t.open(server, '/schedules?name=nightly-3', { width: 390, height: 844 });
    const part = page.getByRole('region', { name: 'Schedule nightly-3' });
    await part.waitFor();
    await until(async () => (await part.boundingBox()).y < 300, 'the schedule is in sight');
});
