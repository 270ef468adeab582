// screenshots.mjs WEIR OUTDIR - pictures of the main views for the documents, from the demo. Not a
// test: `node test/ui/screenshots.mjs build/release/src/cli/weir docs/images` when the looks change.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Server, sleep, theBrowser, until } from './rig.mjs';

const [weir, out] = process.argv.slice(2).map((p) => resolve(p));
const FLOW_MS = Number(process.env.FLOW_MS ?? 150000);      // until the curves have something to say

const dir = mkdtempSync(join(tmpdir(), 'weir-ui-'));
mkdirSync(out, { recursive: true });
const server = await new Server(weir, dir).start('--demo', '--title', 'weir');
const browser = await theBrowser();

async function shoot(name, path, { width = 1200, height = 760, dark = false, scale = 1, ready } = {}) {
    const context = await browser.newContext({
        viewport: { width, height }, deviceScaleFactor: scale, colorScheme: dark ? 'dark' : 'light',
        reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    await page.goto(server.url + path);
    await page.getByText('live', { exact: true }).waitFor();
    await page.locator(ready).first().waitFor();
    await sleep(3000);                                      // rates need a few counts
    const file = join(out, `${name}.png`);
    await page.screenshot({ path: file });
    await context.close();
    // 256 colours are enough for a page of few
    execFileSync('pngquant', ['--force', '--skip-if-larger', '--speed', '1', '--output', file, file]);
}

await sleep(FLOW_MS);
const failed = await until(async () => (await server.call('GET',
    '/v1/jobs?state=failed&type=import&order=desc&limit=1')).jobs[0], 'an import that failed', 600000);
await shoot('overview', '/', { ready: 'canvas' });
await shoot('overview-dark', '/', { ready: 'canvas', dark: true });
await shoot('failed', '/failed', { ready: '.row' });
await shoot('job', `/jobs/${failed.id}`, { ready: '.timeline li' });
await server.call('POST', '/v1/tasks', { service: 'report', id: 'invoices-2026', classifier: 'orders', schedule: '0 6 1 * *' });
await server.call('POST', '/v1/tasks', { service: 'mail', id: 'reminder-4711', classifier: 'orders', schedule: '@daily' });
const schedule = (await server.call('GET', '/v1/schedules?limit=1')).schedules[0].name;
await shoot('errors', '/errors', { ready: 'tbody tr' });
await shoot('errors-dark', '/errors', { ready: 'tbody tr', dark: true });
await shoot('errors-phone', '/errors', { ready: 'tbody tr', width: 390, height: 844 });
await shoot('type', '/types/mail', { ready: 'canvas' });
await shoot('type-dark', '/types/mail', { ready: 'canvas', dark: true });
await shoot('schedules', `/schedules?name=${encodeURIComponent(schedule)}`, { ready: '.calendar' });
await shoot('tasks', '/tasks', { ready: 'tbody tr' });
await shoot('phone', '/', { ready: 'canvas', width: 390, height: 844 });
await browser.close();
await server.stop();
rmSync(dir, { recursive: true, force: true });
