// cases_tasks.mjs - tasks: found by id, classifier and state; submitted, fired, adjusted, cancelled.
import assert from 'node:assert/strict';
import { test, until } from './rig.mjs';

const HOUR = 3600000;
const task = (server, id) => server.call('GET', `/v1/tasks/${encodeURIComponent(id)}`);

async function someTasks(server) {
    await server.call('POST', '/v1/tasks', [
        { service: 'thank', id: 'thank/1', relative_id: '4711', attachment: { account: '@' }, var1: 'eu',
            run_at: Date.now() + HOUR },
        { service: 'thank', id: 'thank 2', relative_id: '4712', classifier: 'orders', schedule: '@hourly' },
        { service: 'count', id: 'nightly', name: 'the nightly count', run_at: Date.now() + 2 * HOUR },
    ]);
}

test('tasks are listed, filtered and shown', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/tasks');
    await page.locator('.empty .command').waitFor();
    await someTasks(server);
    const rows = page.getByRole('region', { name: 'Tasks' }).getByRole('row');
    const shows = (...ids) => until(async () => {
        const links = await rows.getByRole('link').allInnerTexts();
        return JSON.stringify(links) === JSON.stringify(ids);
    }, `the tasks ${ids}`);
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).waitFor();
    await shows('thank/1', 'thank 2', 'nightly');
    await page.getByLabel('Classifier').fill('orders');
    await page.keyboard.press('Enter');
    await shows('thank 2');
    assert.match(page.url(), /classifier=orders/);
    await page.goto(server.url + '/tasks?relative_ids=4711,4712');
    await shows('thank/1');                                 // of the default classifier
    await page.goto(server.url + '/tasks');
    await server.call('POST', '/v1/tasks/cancel', { ids: ['nightly'], reason: 'not tonight' });
    await page.getByLabel('State').selectOption('cancelled');
    await shows('nightly');
    await rows.filter({ hasText: 'not tonight' }).waitFor();
    await page.getByLabel('State').selectOption('running');
    await page.getByText('No task matches').waitFor();
    await page.goto(server.url + '/tasks');
    await page.getByRole('link', { name: 'thank/1' }).click();
    await page.getByRole('heading', { name: 'thank/1' }).waitFor();
    await until(() => page.url().endsWith('/tasks/thank%2F1'));
    const facts = page.getByRole('region', { name: 'Details' });
    assert.match(await facts.innerText(), /Service\s+thank[\s\S]+4711[\s\S]+var1\s+eu/);
    await page.reload();
    await page.getByRole('region', { name: 'Attachment' }).getByText('"account"').waitFor();
    await facts.getByRole('link', { name: /^#\d+$/ }).click();
    await page.getByRole('region', { name: 'Timeline' }).waitFor();
    await page.goto(server.url + '/tasks/nobody');
    await page.getByRole('heading', { name: 'Not here' }).waitFor();
});

test('a task is submitted, adjusted, fired and cancelled with a reason', async (t) => {
    const server = await t.serve();
    const page = await t.open(server, '/tasks');
    const form = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Submit a task' }).click();
    await form.getByLabel('Service').fill('thank');
    await form.getByLabel('Id', { exact: true }).fill('t-1');
    await form.getByLabel('Schedule').fill('61 * * * *');
    await form.getByRole('button', { name: 'Submit it' }).click();
    assert.match(await form.getByRole('alert').innerText(), /minute/);         // at its field
    assert.equal(await form.locator('[aria-invalid]').inputValue(), '61 * * * *');
    await form.getByLabel('Schedule').fill('30 6 * * 1');
    await form.getByLabel('Attachment').fill('{"account":9007199254740993123}');
    await form.getByRole('button', { name: 'Submit it' }).click();
    await page.getByRole('heading', { name: 't-1' }).waitFor();
    await page.getByText('9007199254740993123').waitFor();
    const made = await task(server, 't-1');
    assert.deepEqual([made.service, made.schedule, made.state], ['thank', '30 6 * * 1', 'ready']);

    await page.getByRole('button', { name: 'Adjust' }).click();
    await form.getByLabel('Relative id').fill('4711');
    await form.getByRole('button', { name: 'Adjust it' }).click();
    await until(async () => (await task(server, 't-1')).relative_id === '4711', 'adjusted');
    const after = await task(server, 't-1');
    assert.deepEqual([after.schedule, after.run_at, after.created_at], [made.schedule, made.run_at, made.created_at]);

    await page.getByRole('button', { name: 'Fire now' }).click();
    await until(async () => (await task(server, 't-1')).run_at <= Date.now(), 'due');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await form.getByLabel('Reason').fill('the order was <b>cancelled</b>');
    await form.getByRole('button', { name: 'Cancel it' }).click();
    await page.getByRole('region', { name: 'State' }).getByText('the order was <b>cancelled</b>').waitFor();
    assert.equal((await task(server, 't-1')).state, 'cancelled');
    assert.equal(await page.getByRole('button', { name: 'Fire now' }).count(), 0);
});

test('tasks are shown, not changed, to who may only read', async (t) => {
    const server = await t.serve();
    await someTasks(server);
    server.token = server.addToken('boss', '--role', 'admin');
    const reader = server.addToken('eye', '--role', 'read');
    await until(async () => (await server.raw('GET', '/v1/tasks', undefined, reader)).status === 200 &&
        (await server.raw('GET', '/v1/tasks', undefined, '')).status === 401);
    const page = await t.open(server, '/tasks', { token: reader });
    await page.getByRole('link', { name: 'nightly' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Submit a task' }).count(), 0);
    await page.getByRole('link', { name: 'nightly' }).click();
    await page.getByRole('heading', { name: 'nightly' }).waitFor();
    assert.deepEqual(await page.getByRole('main').getByRole('button').allInnerTexts(), []);
});
