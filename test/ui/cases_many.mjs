// cases_many.mjs - a million jobs, and every page can be used within a second.
import assert from 'node:assert/strict';
import { test, until, withinASecond } from './rig.mjs';

const JOBS = 1000000, LOT = 10000, TYPES = 7;
const PRIORITIES = ['normal', 'low', 'high', 'critical'];

const spec = (i) => ({
    type: `type-${i % TYPES}`, priority: PRIORITIES[i % 4], data: { title: `Job ${i}`, user: i % 1000 },
    ...(i % 5 ? {} : { delay: '7d' }),
});

// In lots, two at a time: one is read while the other is stored.
async function fill(server) {
    let next = 0;
    const lane = async () => {
        for (let from; (from = next) < JOBS;) {
            next += LOT;
            await server.call('POST', '/v1/jobs', Array.from({ length: LOT }, (_, i) => spec(from + i)));
        }
    };
    await Promise.all([lane(), lane()]);
}

// How long until the page shows what it is for, and answers a click.
async function interactive(page, url, ready) {
    await page.goto('about:blank');
    await page.goto(url, { waitUntil: 'commit' });
    return page.waitForFunction(ready, undefined, { polling: 20 })
        .then(() => page.evaluate(() => new Promise((r) =>
            requestAnimationFrame(() => setTimeout(() => r(performance.now()), 0)))));
}

test('a million jobs: every page within a second', async (t) => {
    const server = await t.serve();
    await fill(server);
    const bad = await server.ended({ type: 'rare', data: { title: 'rare' }, search: true }, { error: 'no' });
    const { counts } = await server.call('GET', '/v1/stats');
    assert.equal(counts.inactive + counts.delayed, JOBS);
    const page = await t.open(server, '/settings');
    const list = () => document.querySelectorAll('.row').length > 0;
    const pages = {
        '/': () => document.querySelectorAll('tbody tr').length >= 7 && document.querySelector('canvas'),
        '/inactive': list,
        '/inactive?order=desc': list,
        '/inactive?type=type-3': list,
        '/inactive?priority=low': list,
        '/inactive?priority=low&order=desc&type=type-2': list,
        '/delayed': list,
        '/delayed?priority=high': list,
        '/failed': list,
        '/jobs': list,
        '/jobs?q=rare': list,
        '/failed?type=rare&error=no': list,
        '/jobs?state=delayed,failed': list,
        '/jobs?state=failed,complete&since=24h': list,
        '/inactive?type=type-3&since=24h': list,
        '/delayed?since=24h&sort=id': list,
        '/failed?sort=took': list,
        '/errors': () => document.querySelectorAll('tbody tr').length > 0,
        '/types/type-3': () => document.querySelector('canvas') && document.querySelectorAll('main li').length >= 5,
        '/schedules': () => document.querySelector('main h1')?.textContent === 'Schedules',
        '/tasks': () => document.querySelector('main h1')?.textContent === 'Tasks',
        '/bus': () => document.querySelector('main h1')?.textContent === 'Event bus',
        '/audit': () => document.querySelector('main h1')?.textContent === 'Audit',
        '/types': () => document.querySelectorAll('tbody tr').length >= 14,
        '/workers': () => document.querySelector('main h1')?.textContent === 'Workers',
        '/settings': () => document.querySelector('main h1')?.textContent === 'Settings',
        [`/jobs/${JOBS / 2}`]: () => document.querySelector('.timeline li'),
        [`/jobs/${bad}`]: () => document.querySelector('.timeline li'),
    };
    for (const [path, ready] of Object.entries(pages))
        await withinASecond(path, () => interactive(page, server.url + path, ready));

    // too many to sort: the list says so
    await page.goto(`${server.url}/inactive?sort=created`);
    await page.getByRole('alert').getByText('choose fewer').waitFor();
    await page.getByRole('button', { name: 'Show them in the usual order' }).click();
    await until(async () => await page.locator('.row').count() >= 50, 'the list in its usual order');

    // the filter is exact, and goes on where it ends
    await page.goto(`${server.url}/inactive?priority=low`);
    const rows = page.locator('.row');
    await until(async () => await rows.count() >= 50);
    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
    await until(async () => await rows.count() >= 100);
    const priorities = await rows.locator('.priority').allInnerTexts();
    assert.deepEqual([...new Set(priorities)], ['low']);
    assert.ok(priorities.length >= 100);

    // "all that match" is counted at once, by the store
    await page.goto(`${server.url}/delayed?type=type-0`);
    await page.getByRole('button', { name: 'Delete all' }).click();
    const n = (await server.call('GET', '/v1/types/type-0')).counts.delayed;
    await page.getByRole('dialog').getByText(`This concerns ${n.toLocaleString('en')} jobs.`).waitFor();
});
