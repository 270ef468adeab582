// cases_axe.mjs - what axe-core, a checker of accessibility, says of every view: light and dark, on a
// phone, a laptop and a large screen.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, UI, until } from './rig.mjs';

const AXE = readFileSync(join(UI, 'node_modules/axe-core/axe.min.js'), 'utf8');
const WIDTHS = [390, 1280, 1920];

// Something for every view to show.
async function fill(server) {
    const failed = await server.ended({ type: 'mail', data: { title: 'to ann' }, search: true, attempts: 1 },
        { error: 'smtp: 550 no such user' });
    await server.ended({ type: 'mail', data: {} }, { result: { sent: true } });
    await server.add({ type: 'report', data: {}, delay: '1h', priority: 'high' });
    await server.call('POST', `/v1/jobs/${await server.add({ type: 'sms', data: {} })}/cancel`);
    await server.add({ type: 'video', data: { title: 'film' } });
    await server.take('video', 'box:1');
    await server.add({ type: 'mail', data: {} });
    await server.call('PUT', '/v1/schedules/night', { when: '30 6 * * 1', zone: 'Europe/Berlin', job: { type: 'report' } });
    await server.call('POST', '/v1/schedules/night/fire');
    await server.call('POST', '/v1/tasks', { service: 'thank', id: 't-1', schedule: '@hourly', attachment: { n: 1 } });
    await server.call('PUT', '/v1/workqueues/resize', {});
    return failed;
}

// Each rule that is broken, and where for example.
const broken = (page) => page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations.map((v) => `${v.id}, ${v.nodes.length} times: ${v.nodes[0].html.slice(0, 200)}`);
});

test('axe finds nothing in any view, light or dark, at three widths', async (t) => {
    const server = await t.serve();
    const failed = await fill(server);
    const views = ['/', '/inactive', '/active', '/delayed', '/failed', '/complete', '/cancelled', '/jobs', '/failed?q=none',
        '/errors', '/types', '/types/mail', '/schedules', '/schedules?name=night', '/tasks', '/tasks/t-1', '/workers', '/bus', '/audit',
        '/settings', `/jobs/${failed}`, '/no/where'];
    const dialogs = [['/', 'Add a job'], [`/jobs/${failed}`, 'Edit and run again'], ['/types', 'Change the retention of mail'],
        ['/schedules', 'Add a schedule'], ['/tasks', 'Submit a task'], ['/failed', 'Keyboard shortcuts'], ['/errors', 'Retry …']];
    const page = await t.open(server, '/settings');
    const found = [];
    const look = async (where) => {
        await page.evaluate(AXE);
        for (const dark of [false, true]) {
            await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
            for (const width of WIDTHS) {
                await page.setViewportSize({ width, height: 900 });
                found.push(...(await broken(page)).map((b) => `${where} at ${width}${dark ? ' dark' : ''}: ${b}`));
            }
        }
        await page.setViewportSize({ width: 1280, height: 900 });
    };
    const show = async (path) => {
        await page.goto(server.url + path);
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByRole('heading', { level: 1 }).waitFor();
        await until(async () => await page.locator('[aria-busy=true]').count() === 0, path);
    };
    for (const path of views) {
        await show(path);
        await look(path);
    }
    for (const [path, name] of dialogs) {
        await show(path);
        await page.getByRole('button', { name }).first().click();
        await page.getByRole('dialog').waitFor();
        await look(`${path}, ${name}`);
    }
    assert.equal(found.join('\n'), '');
});
