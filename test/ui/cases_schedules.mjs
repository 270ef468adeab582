// cases_schedules.mjs - schedules: what the list says, a preview while one types, runs by hand.
import assert from 'node:assert/strict';
import { test, until } from './rig.mjs';

const HOURLY = { when: '@hourly', zone: 'Europe/Berlin', job: { type: 'report', attempts: 3 } };
const schedule = (server, name) => server.call('GET', `/v1/schedules/${encodeURIComponent(name)}`);

test('schedules are listed with plain words and the next run', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/schedules');
    await page.locator('.empty .command').waitFor();
    await server.call('PUT', '/v1/schedules/night', HOURLY);
    await page.getByRole('cell', { name: /^every hour/ }).waitFor();
    await page.getByRole('link', { name: 'night' }).click();
    const detail = page.getByRole('region', { name: 'Schedule night' });
    await detail.waitFor();
    assert.equal(await detail.locator('ol').first().locator('li').count(), 5);
    await until(() => page.url().endsWith('/schedules?name=night'));
});

test('a schedule is fired, paused, resumed and removed', async (t) => {
    const server = await t.serve();
    await server.call('PUT', '/v1/schedules/night', HOURLY);
    const page = await t.open(server, '/schedules?name=night');
    await page.getByRole('button', { name: 'Fire now' }).click();
    await page.getByText('added by hand').waitFor();
    assert.equal((await server.job(1)).type, 'report');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('None: it is paused.').waitFor();
    assert.equal((await schedule(server, 'night')).paused, true);
    await page.getByRole('button', { name: 'Resume' }).click();
    await until(async () => (await schedule(server, 'night')).paused === false, 'resumed');
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await page.locator('.empty .command').waitFor();
});

test('a schedule is added and changed, with a preview while one types', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/schedules');
    await page.getByRole('button', { name: 'Add a schedule' }).click();
    await page.getByLabel('Name').fill('<b>weekly</b>');
    await page.getByLabel('When').fill('61 * * * *');
    await page.getByText(/column 1/).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Save' }).isDisabled());
    await page.getByLabel('When').fill('30 6 * * 1');
    await page.getByLabel('Time zone').fill('Europe/Berlin');
    await page.getByText('at 06:30 on Monday (Europe/Berlin)').waitFor();
    assert.equal(await page.locator('.preview li').count(), 5);
    await page.getByLabel('Type of its jobs').fill('report');
    await page.getByLabel('Data (JSON)').fill('{"n":1}');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('link', { name: '<b>weekly</b>' }).click();
    const made = await schedule(server, '<b>weekly</b>');
    assert.deepEqual(made.job, { type: 'report', data: { n: 1 } });
    await page.getByRole('button', { name: 'Change' }).click();
    await page.getByLabel('When').fill('@daily');
    await page.getByText(/^every day|^at 00:00/).first().waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await until(async () => (await schedule(server, '<b>weekly</b>')).when === '@daily', 'changed');
});
