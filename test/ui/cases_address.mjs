// cases_address.mjs - addresses that are broken, and parameters that a view does not understand.
import assert from 'node:assert/strict';
import { test, until } from './rig.mjs';

test('parameters that an address does not understand are named', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/errors?tpye=mail');
    await page.getByText('unknown parameter “tpye”; this view accepts type').waitFor();
    await page.goto(`${server.url}/?span=5m`);
    await page.getByText('span: “5m” is none of 15m, 3h, 24h, 7d, 1y').waitFor();
    await page.goto(`${server.url}/failed?type=mail&order=desc`);
    await page.locator('.empty').waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
});

test('a broken address shows the page that says so', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/');
    const answer = await page.goto(`${server.url}/types/%E0%A4%A`);
    assert.equal(answer.status(), 404);
    await page.getByRole('navigation').waitFor();
    await page.getByText('The store has no such type').waitFor();
});

test('values that a parameter cannot have are named, and the view goes on', async (t) => {
    const server = await t.serve();
    await server.ended({ type: 'mail', data: {} }, { error: 'no' });
    const page = await t.open(server, '/failed?sort=bogus&order=up&cols=toString,constructor,took');
    await page.locator('.row').waitFor();
    await page.getByText('sort: “bogus” is none of id, created').waitFor();
    await page.getByText('order: “up” is none of asc, desc').waitFor();
    await page.getByText('cols: “toString” is none of created').waitFor();
    await page.getByText('cols: “constructor” is none of created').waitFor();
    await page.goto(`${server.url}/jobs?state=queued,nonsense,failed`);
    await page.locator('.row').waitFor();
    await page.getByText('state: “nonsense” is none of inactive').waitFor();
    assert.equal(await page.getByRole('alert').count(), 1);
    await page.goto(`${server.url}/jobs?q=state:constructor`);
    await page.locator('.row').waitFor();
    await page.goto(`${server.url}/tasks?state=nonsense`);
    await page.getByText('state: “nonsense” is none of ready').waitFor();
});

test('a task whose address is broken is not there', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/');
    for (const path of ['/tasks/%E0%A4%A', '/tasks/a%zz']) {
        await page.goto(server.url + path);
        await page.getByRole('heading', { name: 'Not here' }).waitFor();
    }
});

test('a view that throws says so, and the others work', async (t) => {
    const server = await t.serve();
    await server.ended({ type: 'mail', data: {} }, { error: 'no' });
    const page = await t.open(server, '/');
    await page.route('**/v1/errors', (route) => route.fulfill({ json: { looked: 1 } }));
    await page.getByRole('navigation').getByRole('link', { name: 'Errors' }).click();
    const said = page.getByRole('alert').filter({ hasText: 'This view cannot be shown' });
    await said.getByText('TypeError').waitFor();
    await page.unroute('**/v1/errors');
    await said.getByRole('button', { name: 'Try again' }).click();
    await page.locator('tbody tr').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Types', exact: true }).click();
    await page.getByRole('heading', { name: 'Types', level: 1 }).waitFor();
    await until(async () => await said.count() === 0, 'the view of types');
});
