// cases_hostile.mjs - whatever is in a job is shown as the text it is. That no script ran, no dialog
// came up and the content policy was not even asked is seen to for every page of every case.
import assert from 'node:assert/strict';
import { test, until } from './rig.mjs';

const SCRIPT = '<script>alert(1)</script><img src=x onerror=alert(2)></pre></textarea>' +
    '<a href="javascript:alert(3)">click</a><svg onload=alert(4)>';
const RTL = 'مرحبا \u202Egpj.exe\u202C שלום';

// Every view on which something of a job can be seen.
async function everywhere(page, server, id) {
    for (const path of ['/', '/jobs', '/failed', '/complete', '/inactive', '/active', '/types', '/workers',
        `/jobs/${id}`, `/jobs?q=${encodeURIComponent(SCRIPT)}`]) {
        await page.goto(server.url + path);
        await page.getByRole('heading').first().waitFor();
        await until(async () => await page.locator('[aria-busy=true]').count() === 0, path);
    }
}

async function nothingForeign(page) {
    assert.equal(await page.locator('main :is(script, img, iframe, object, embed)').count(), 0);
    assert.equal(await page.locator('a[href^="javascript:" i]').count(), 0);
    assert.equal(await page.evaluate(() => document.querySelector('main [onerror], main [onload]')), null);
}

test('markup in data, results, errors, logs, names and titles is text', async (t) => {
    const server = await t.serve('--title', SCRIPT);
    const type = `t${SCRIPT}`.slice(0, 100);
    const spec = { type, data: { title: SCRIPT, [SCRIPT]: SCRIPT, link: 'javascript:alert(5)' }, search: true };
    const bad = await server.add(spec);
    let job = await server.take(type, SCRIPT.slice(0, 60));
    await server.call('POST', `/v1/jobs/${bad}/log`, { text: `${SCRIPT}\n\u0007 line` });
    await server.call('POST', `/v1/jobs/${bad}/progress`,
        { delivery: job.delivery, done: 1, total: 3, data: SCRIPT });
    await server.finish(job, { error: SCRIPT });
    const good = await server.add(spec);
    job = await server.take(type, SCRIPT.slice(0, 60));
    await server.finish(job, { result: { html: SCRIPT } });
    await server.add(spec);
    await server.add(spec);
    await server.take(type, SCRIPT.slice(0, 60));
    const page = await t.open(server, '/');
    await everywhere(page, server, bad);
    await page.goto(`${server.url}/jobs/${bad}`);
    for (const name of ['Error', 'Data', 'Log', 'Progress data', 'Timeline']) {
        const part = page.getByRole('region', { name, exact: true });
        await until(async () => (await part.innerText()).includes('<script>alert(1)</script>'), name);
    }
    await nothingForeign(page);
    await page.getByRole('button', { name: 'Edit and run again' }).click();
    await page.getByRole('dialog').getByLabel('Data').waitFor();
    await nothingForeign(page);
    await page.goto(`${server.url}/jobs/${good}`);
    await page.getByRole('region', { name: 'Result' }).waitFor();
    await nothingForeign(page);
    await page.goto(`${server.url}/failed`);
    await page.locator('.row').waitFor();
    await nothingForeign(page);
    assert.ok((await page.locator('.brand').innerText()).startsWith('<script>'));
});

test('text that runs from right to left stays in its place', async (t) => {
    const server = await t.serve();
    const id = await server.ended({ type: 'mail', data: { title: RTL, name: RTL } }, { error: RTL });
    const page = await t.open(server, '/failed');
    const row = page.locator('.row');
    await row.waitFor();
    assert.ok((await row.innerText()).includes(RTL));
    // it turns its own line alone: the id stays on the left of it, the buttons on the right
    const left = (await row.getByText(`#${id}`).boundingBox()).x;
    assert.ok(left < (await row.locator('.when').boundingBox()).x);
    assert.equal(await row.locator('.text').first().getAttribute('dir'), 'auto');
    await page.goto(`${server.url}/jobs/${id}`);
    await page.getByRole('region', { name: 'Data' }).getByText('مرحبا').first().waitFor();
});

test('strings of a megabyte do not hold the page up', async (t) => {
    const server = await t.serve();
    const big = 'x<b>'.repeat(250000);
    const id = await server.ended({ type: 'mail', data: { title: big } }, { error: big.slice(0, 60000) });
    await server.ended({ type: 'mail', data: big }, { result: big });
    const page = await t.open(server, '/failed');
    await page.locator('.row').waitFor();
    assert.ok((await page.locator('.row').innerText()).length < 1000);
    await page.goto(`${server.url}/jobs/${id}`);
    const data = page.getByRole('region', { name: 'Data' });
    await data.getByRole('button', { name: /^Show all [\d,]+ characters$/ }).click();
    await until(async () => (await data.innerText()).length > 1000000);
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
    await page.getByRole('dialog').waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

test('deep JSON and numbers of 64 bits are shown as they are', async (t) => {
    const server = await t.serve();
    const depth = 99;
    const deep = '{"a":'.repeat(depth) + '[18446744073709551615,-9223372036854775808,0.1000,1e400]' +
        '}'.repeat(depth);
    const add = async (data) => JSON.parse((await server.raw('POST', '/v1/jobs',
        `{"type":"n","data":${data}}`)).text).id;
    const id = await add(deep);
    const flat = await add('{"n":12345678901234567890,"f":1.10,"esc":"\\u003cb\\u003e \\\\\\" ,}"}');
    assert.ok(id && flat);
    const page = await t.open(server, `/jobs/${id}`);
    const data = page.getByRole('region', { name: 'Data' });
    await data.waitFor();
    for (const number of ['18446744073709551615', '-9223372036854775808', '0.1000', '1e400'])
        assert.ok((await data.innerText()).includes(number), number);
    await page.goto(`${server.url}/inactive`);
    await page.getByText('12345678901234567890').waitFor();     // also where it stands for a title
    await page.getByText('1.10').waitFor();
    await page.goto(`${server.url}/jobs/${flat}`);
    await data.getByText('12345678901234567890').waitFor();
});

test('addresses that make no sense do no harm', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: {} });
    const page = await t.open(server, '/');
    for (const path of ['/jobs/0', '/jobs/99999999999999999999', '/jobs/abc', '/failed?type=%EF%BF%BD%3C',
        '/jobs?q=%22%3Cscript%3E*%20(((', '/inactive?priority=nonsense', '/inactive?order=sideways',
        '/?span=constructor', '/jobs?q=' + 'w'.repeat(500), '/failed?priority=__proto__']) {
        await page.goto(server.url + path);
        await page.getByRole('navigation').waitFor();
        await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
    }
});
