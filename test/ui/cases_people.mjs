// cases_people.mjs - who may do what; and that the page can be used with a keyboard, on a phone, in
// the dark, and by those who listen to it.
import assert from 'node:assert/strict';
import { test, until } from './rig.mjs';

const VIEWS = ['/', '/inactive', '/active', '/delayed', '/failed', '/complete', '/cancelled', '/jobs',
    '/types', '/tasks', '/workers', '/audit', '/settings'];

// A few jobs, of which the first has failed.
async function someJobs(server) {
    const id = await server.ended({ type: 'mail', data: { title: 'to ann' }, search: true },
        { error: 'smtp: 550 no such user, and a long line about it that goes on and on and on and on' });
    await server.add({ type: 'a-type-with-a-rather-long-name-for-a-phone', data: {}, delay: '1h' });
    await server.add({ type: 'video', data: { title: 'x'.repeat(300) } });
    await server.take('video', 'a-worker-with-a-rather-long-name-for-a-phone:12345');
    return id;
}

test('a token is asked for, and signs in and out', async (t) => {
    const server = await t.serve();
    server.token = server.addToken('boss', '--role', 'admin');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, '')).status === 401);
    await server.add({ type: 'mail', data: { title: 'secret' } });
    const page = await t.open(server, '/inactive', { token: '' });
    await page.getByLabel('Token').fill('wtk_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByText('secret').count(), 0);
    await page.getByLabel('Token').fill(server.token);
    await page.keyboard.press('Enter');
    await page.getByText('secret').waitFor();               // at the address that was asked for
    await page.getByText('live', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('secret').waitFor();
    assert.ok(!page.url().includes('wtk_'));
    await page.goto(server.url + '/settings');
    await page.getByText('You use the token boss.').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
});

test('who did what is shown to an admin, and to nobody else', async (t) => {
    const server = await t.serve();
    const id = await someJobs(server);
    server.token = server.addToken('boss', '--role', 'admin');
    const ann = server.addToken('ann', '--role', 'admin');
    const eye = server.addToken('eye', '--role', 'read');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, eye)).status === 200 &&
        (await server.raw('GET', '/v1/stats', undefined, '')).status === 401);
    await server.call('POST', `/v1/jobs/${id}/retry`, undefined, ann);
    await server.call('POST', '/v1/types/mail/pause');
    assert.equal((await server.raw('DELETE', `/v1/jobs/${id}`, undefined, eye)).status, 403);

    const page = await t.open(server, '/');
    await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click();
    const rows = page.getByRole('row');
    await rows.filter({ hasText: 'ann' }).filter({ hasText: 'job.retry' }).filter({ hasText: 'done' }).waitFor();
    await rows.filter({ hasText: 'boss' }).filter({ hasText: 'type.pause' }).waitFor();
    await rows.filter({ hasText: 'eye' }).filter({ hasText: 'refused: 403' }).waitFor();
    await page.getByLabel('Token').fill('ann');
    await page.keyboard.press('Enter');
    await until(async () => await page.getByText('type.pause', { exact: true }).count() === 1);     // the option
    assert.match(page.url(), /token=ann/);
    await page.getByLabel('Action').selectOption('type');
    await page.getByText('No recorded action matches.').waitFor();
    await page.goto(`${server.url}/jobs/${id}`);
    const panel = page.getByRole('region', { name: 'By whom' });
    await panel.getByText('job.retry').waitFor();
    await panel.getByRole('link').click();
    await rows.filter({ hasText: 'job.retry' }).waitFor();

    const other = await t.open(server, '/', { token: eye });
    await other.getByRole('navigation').getByRole('link', { name: 'Settings' }).waitFor();
    assert.equal(await other.getByRole('link', { name: 'Audit' }).count(), 0);
    await other.goto(server.url + '/audit');
    await other.getByRole('alert').waitFor();
});

test('a token that may only read sees no buttons and cannot act', async (t) => {
    const server = await t.serve();
    const id = await someJobs(server);
    server.token = server.addToken('boss', '--role', 'admin');
    const reader = server.addToken('eye', '--role', 'read');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, reader)).status === 200 &&
        (await server.raw('GET', '/v1/stats', undefined, '')).status === 401);
    const page = await t.open(server, '/', { token: reader });
    for (const path of [...VIEWS, `/jobs/${id}`]) {
        await page.goto(server.url + path);
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByRole('heading').first().waitFor();
        await until(async () => await page.locator('[aria-busy=true]').count() === 0, path);
        const buttons = await page.getByRole('main').locator('button:not([aria-pressed])').allInnerTexts();
        const acts = buttons.filter((b) => !/^(Copy|Copy as curl|Download|Sign out|More)$/.test(b.trim()));
        assert.deepEqual(acts, [], path);
        assert.equal(await page.getByRole('main').getByRole('checkbox', { name: /^(?!follow$)/ }).count(), 0, path);
    }
    await page.goto(server.url + '/failed');
    await page.keyboard.press('j');
    await page.keyboard.press('r');
    await page.goto(server.url + '/settings');
    assert.match(await page.getByRole('region', { name: 'You' }).innerText(), /You may read\./);
    const asked = [
        ['POST', `/v1/jobs/${id}/retry`], ['DELETE', `/v1/jobs/${id}`],
        ['PATCH', `/v1/jobs/${id}`, { priority: 'high' }],
        ['POST', '/v1/jobs/bulk', { action: 'retry', filter: { ids: [id] } }],
        ['POST', '/v1/types/mail/pause'], ['POST', '/v1/jobs', { type: 'mail', data: {} }],
    ];
    for (const [method, path, body] of asked)
        assert.equal((await server.raw(method, path, body, reader)).status, 403, path);
    assert.equal(await server.state(id), 'failed');
});

test('a token of one type sees that type alone', async (t) => {
    const server = await t.serve();
    await someJobs(server);
    server.token = server.addToken('boss', '--role', 'admin');
    const token = server.addToken('mailer', '--role', 'admin', '--type', 'mail');
    await until(async () => (await server.raw('GET', '/v1/jobs', undefined, token)).status === 200 &&
        (await server.raw('GET', '/v1/jobs', undefined, '')).status === 401);
    const page = await t.open(server, '/', { token });
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByRole('row').filter({ hasText: 'mail' }).first().waitFor();
    assert.equal(await page.getByText('video').count(), 0);
    await page.goto(server.url + '/jobs');
    await until(async () => await page.locator('.row').count() === 1);
    await page.getByRole('button', { name: 'Retry job 1' }).click();
    await until(async () => await server.state(1) === 'inactive');
});

test('the keyboard is enough', async (t) => {
    const server = await t.serve();
    const ids = [];
    for (let i = 0; i < 3; i++)
        ids.push(await server.ended({ type: 'mail', data: { title: `n${i}` }, search: true }, { error: 'no' }));
    ids.reverse();
    const page = await t.open(server, '/failed');
    const press = (key) => page.keyboard.press(key);
    const at = () => page.locator('.row.at').getAttribute('data-id');
    await page.locator('.row').nth(2).waitFor();
    await press('j');
    assert.equal(await at(), String(ids[0]));
    await press('j');
    await press('j');
    await press('j');
    assert.equal(await at(), String(ids[2]));
    await press('k');
    assert.equal(await at(), String(ids[1]));
    await press('x');
    await page.getByText('1 selected').waitFor();
    assert.ok(await page.getByLabel(`Select job ${ids[1]}`).isChecked());
    await press('Enter');
    await until(() => page.url().endsWith(`/jobs/${ids[1]}`));
    await page.getByRole('heading', { name: `#${ids[1]}` }).waitFor();
    await press('u');
    await until(() => page.url().endsWith('/failed'));
    await page.locator('.row').nth(2).waitFor();
    // the list holds still under the mark, which stays at its job
    await press('j');
    await server.ended({ type: 'mail', data: {} }, { error: 'newer' });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await page.locator('.row').count(), 3);
    await press('n');
    await until(async () => await page.locator('.row').count() === 4);
    assert.equal(await at(), String(ids[0]));
    await press('r');
    await until(async () => await server.state(ids[0]) === 'inactive');
    assert.equal(await server.state(ids[0] + 1), 'failed');
    // help, and keys mean nothing beneath a dialog
    await press('?');
    await page.getByRole('dialog').waitFor();
    await press('/');
    assert.equal(await page.evaluate(() => document.activeElement.closest('dialog') !== null), true);
    await press('Escape');
    await until(async () => await page.getByRole('dialog').count() === 0);
    await press('/');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Search jobs');
    await page.keyboard.type('jkxr?');
    assert.equal(await page.getByLabel('Search jobs').inputValue(), 'jkxr?');
    await press('Escape');
    // a button that has the focus is pressed by Enter, whatever the list thinks of it
    const button = page.getByRole('button', { name: `Retry job ${ids[1]}` });
    await page.goto(server.url + '/failed');
    await press('j');
    await button.focus();
    await press('Enter');
    await until(async () => await server.state(ids[1]) === 'inactive');
    assert.ok(page.url().endsWith('/failed'));
});

test('the first key press leads past the menu', async (t) => {
    const server = await t.serve();
    await someJobs(server);
    const page = await t.open(server, '/failed');
    await page.locator('.row').waitFor();
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', { name: 'Skip to the content' });
    assert.ok(await skip.evaluate((el) => el === document.activeElement && el.getBoundingClientRect().top >= 0));
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement.closest('main') !== null));
    assert.ok(page.url().endsWith('/failed'));
});

test('everything that can be pressed or filled in has a name', async (t) => {
    const server = await t.serve();
    const id = await someJobs(server);
    const page = await t.open(server, '/');
    const nameless = () => page.evaluate(() => [...document.querySelectorAll(
        'button, input, select, textarea, a, [role=img], svg')].filter((el) => {
        const label = el.getAttribute('aria-label') || el.getAttribute('title') ||
            [...(el.labels ?? [])].map((l) => l.textContent).join('') ||
            (/^(BUTTON|A)$/.test(el.tagName) ? el.textContent : '');
        return !label.trim() && el.getAttribute('aria-hidden') !== 'true';
    }).map((el) => el.outerHTML));
    for (const path of [...VIEWS, `/jobs/${id}`]) {
        await page.goto(server.url + path);
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByRole('heading').first().waitFor();
        await until(async () => await page.locator('[aria-busy=true]').count() === 0, path);
        assert.deepEqual(await nameless(), [], path);
        assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, path);
        for (const role of ['banner', 'navigation', 'main', 'search'])
            assert.equal(await page.getByRole(role).count(), 1, `${role} of ${path}`);
    }
    await page.getByRole('button', { name: 'Edit and run again' }).click();
    assert.deepEqual(await nameless(), []);
    // states are told by marks and words, not by colour alone
    await page.goto(server.url + '/failed');
    await page.locator('.row .mark').waitFor();
    assert.equal(await page.locator('.row .mark').innerText(), '✕');
    assert.equal(await page.locator('.row .mark').getAttribute('title'), 'Failed');
});

// What is wider than the place it has, within `root`. The text of a list's row ends with dots.
const tooWide = (page, root = 'body') => page.evaluate((selector) => [...document.querySelectorAll(`${selector} *`)]
    .filter((el) => el.clientWidth && !el.closest('.hidden, .skip, .row .text, svg, canvas') &&
        !/^(INPUT|SELECT|TEXTAREA|OPTION)$/.test(el.tagName) &&
        (el.scrollWidth > el.clientWidth + 1 && getComputedStyle(el).overflowX !== 'visible' ||
            el.getBoundingClientRect().right > innerWidth + 1))
    .map((el) => `${el.tagName}.${el.className} ${el.scrollWidth}/${el.clientWidth}`), root);

test('a phone shows all of it without scrolling sideways', async (t) => {
    const server = await t.serve();
    const id = await someJobs(server);
    await server.call('PUT', '/v1/schedules/night', { when: '30 6 * * 1', zone: 'Europe/Berlin', job: { type: 'mail' } });
    const page = await t.open(server, '/', { width: 360, height: 740 });
    for (const path of [...VIEWS, `/jobs/${id}`, '/failed?q=nothing-like-it', '/schedules?name=night', '/bus', '/no/where']) {
        await page.goto(server.url + path);
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByRole('heading').first().waitFor();
        await until(async () => await page.locator('[aria-busy=true]').count() === 0, path);
        // charts take their width from the page a moment after it is there
        await until(async () => await page.evaluate(
            () => document.documentElement.scrollWidth - innerWidth) <= 0, `${path} fits the phone`);
        await until(async () => !(await tooWide(page)).length, `all of ${path}`, 5000).catch(async (e) => {
            throw new Error(`${e.message}: ${await tooWide(page)}`);
        });
    }
    // what was cut off: the buttons of the types
    await page.goto(server.url + '/types');
    await page.getByRole('button', { name: 'Pause mail' }).click();
    await until(async () => (await server.call('GET', '/v1/types/mail')).paused, 'paused');
    await page.getByRole('button', { name: 'Change the retention of mail' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Leave it' }).click();
    // the views are a menu
    const menu = page.getByRole('button', { name: 'Views' });
    assert.equal(await menu.getAttribute('aria-expanded'), 'false');
    assert.equal(await page.getByRole('link', { name: 'Workers' }).isVisible(), false);
    await menu.click();
    assert.deepEqual(await tooWide(page, 'nav'), []);
    await page.getByRole('navigation').getByRole('link', { name: 'Workers' }).click();
    await page.getByRole('heading', { name: 'Workers' }).waitFor();
    assert.equal(await menu.getAttribute('aria-expanded'), 'false');
    await page.goto(server.url + '/failed');
    const retry = page.getByRole('button', { name: `Retry job ${id}` });
    await retry.click();
    await until(async () => await server.state(id) === 'inactive');
    await page.goto(server.url + '/jobs/' + id);
    await page.getByRole('button', { name: 'Edit and run again' }).click();
    const box = await page.getByRole('dialog').boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
});

// The contrast of two colours "rgb(r, g, b)", as WCAG has it.
function contrast(a, b) {
    const light = (text) => {
        const [r, g, bl] = text.match(/[\d.]+/g).slice(0, 3).map((c) => c / 255)
            .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
    };
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
}

test('light and dark can both be read', async (t) => {
    const server = await t.serve();
    const id = await someJobs(server);
    const colours = (page, selector) => page.locator(selector).first().evaluate((el) => {
        let at = el;
        while (at && getComputedStyle(at).backgroundColor === 'rgba(0, 0, 0, 0)')
            at = at.parentElement;
        return [getComputedStyle(el).color, getComputedStyle(at).backgroundColor];
    });
    for (const dark of [false, true]) {
        const page = await t.open(server, '/failed', { dark });
        await page.locator('.row').waitFor();
        for (const selector of ['.row .what a', '.row .text', '.row .bad', '.row .when', 'nav a', 'nav .count',
            'h1', '.brand', '.row .do button', '.bulk button']) {
            const [ink, paper] = await colours(page, selector);
            assert.ok(contrast(ink, paper) >= 4.5, `${selector}: ${ink} on ${paper}`);
        }
        const [, paper] = await colours(page, 'h1');
        assert.equal(contrast(paper, 'rgb(255, 255, 255)') > 7, dark);
        await page.goto(`${server.url}/jobs/${id}`);
        await page.getByRole('region', { name: 'Error' }).waitFor();
        const [ink, under] = await colours(page, '.panel.wrong pre');
        assert.ok(contrast(ink, under) >= 4.5);
    }
    // by hand, and kept
    const page = await t.open(server, '/');
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByRole('button', { name: 'Colours: auto' }).click();
    await page.getByRole('button', { name: 'Colours: light' }).click();
    await page.getByRole('button', { name: 'Colours: dark' }).waitFor();
    const dark = await ground();
    assert.notEqual(dark, light);
    await page.reload();
    await page.getByRole('button', { name: 'Colours: dark' }).waitFor();
    assert.equal(await ground(), dark);
});
