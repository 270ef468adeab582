// screenshots.mjs WEIR OUTDIR - pictures of the main views for the documents, from the demo. Not a
// test: `node test/ui/screenshots.mjs build/release/src/cli/weir docs/images` when the looks change.
// It waits until the demo has filled the charts of 15 minutes; DEMO_URL names one that has already. The minutes of
// the hours before, which charts of types show, are made up here.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Server, sleep, theBrowser, until } from './rig.mjs';

const [weir, out] = process.argv.slice(2).map((p) => resolve(p));
const FLOW_MS = Number(process.env.FLOW_MS ?? (process.env.DEMO_URL ? 0 : 900000));      // until the curves have something to say

const dir = mkdtempSync(join(tmpdir(), 'weir-ui-'));
mkdirSync(out, { recursive: true });
const server = new Server(weir, dir);
if (process.env.DEMO_URL)
    server.url = process.env.DEMO_URL;
else
    await server.start('--demo', '--title', 'weir');
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

// ---- the past of the demo: a record for each type and minute (src/core/trend.h) ----

// Each minute so many jobs, which wait and run so long in the middle, and so many of which fail.
const PAST = {
    mail: { n: 150, wait: 3, run: 300, fails: 0.04, attempts: 3 }, video: { n: 17, wait: 400, run: 6200, fails: 0.08, attempts: 2 },
    payment: { n: 65, wait: 4, run: 420, fails: 0.25, attempts: 4 }, thumbnail: { n: 390, wait: 9, run: 95, fails: 0.01, attempts: 1 },
    report: { n: 12, wait: 40, run: 1500, fails: 0.05, attempts: 1 }, import: { n: 7, wait: 5, run: 900, fails: 0.6, attempts: 2 },
};
const PAST_MINUTES = 185, MAX_ROWS = 500;

// The same at each call, between -1 and 1: waves and some noise.
const wave = (minute, salt) => Math.sin(minute / 17 + salt) * 0.5 + Math.sin(minute / 5.3 + 2 * salt) * 0.2 +
    (Math.abs(Math.sin(minute * 12.9898 + salt * 78.233) * 43758.5453) % 1 - 0.5) * 0.6;

// n times around `middle` ms as buckets "w12=3": most near it, few far above.
function histogram(into, letter, n, middle) {
    const SHARES = [[0.5, 0.05], [0.7, 0.15], [0.9, 0.25], [1.1, 0.25], [1.5, 0.15], [2.2, 0.09], [4, 0.06]];
    for (const [times, share] of SHARES) {
        const i = Math.max(0, Math.ceil(4 * Math.log2(Math.max(1, middle * times))));
        into[letter + i] = (into[letter + i] ?? 0) + Math.round(n * share);
    }
}

function minuteOf(type, minute, salt) {
    const { n, wait, run, fails, attempts } = PAST[type];
    const jobs = Math.round(n * (1 + 0.3 * wave(minute, salt))), bad = Math.round(jobs * fails * (1 + 0.5 * wave(minute, salt + 1)));
    const failed = Math.round(bad * fails ** (attempts - 1));
    const of = { added: jobs, complete: jobs - failed, failed, attempt: bad - failed,
        backlog: Math.max(0, Math.round(n / 200 * (1 + 2 * wave(minute, salt + 2)))), oldest: Math.round(wait * (1 + wave(minute, salt))) };
    histogram(of, 'w', jobs, wait * (1 + 0.7 * wave(minute, salt + 3)));
    histogram(of, 'r', jobs, run * (1 + 0.2 * wave(minute, salt + 4)));
    return of;
}

async function putPast() {
    const { jobs: [first] } = await server.call('GET', '/v1/jobs?order=asc&limit=1');
    const began = Math.floor((first?.created_at ?? Date.now()) / 60000), rows = [];
    for (let slot = began - PAST_MINUTES; slot < began; slot++) {
        const all = {};
        const put = (type, of) => rows.push({ step: '1m', slot, type,
            record: Object.entries(of).filter(([k, v]) => v || k === 'backlog' || k === 'oldest').map(([k, v]) => `${k}=${v}`).join(' ') });
        Object.keys(PAST).forEach((type, i) => {
            const of = minuteOf(type, slot, i + 1);
            for (const [k, v] of Object.entries(of))
                all[k] = k === 'oldest' ? Math.max(all[k] ?? 0, v) : (all[k] ?? 0) + v;
            put(type, of);
        });
        put('', all);
    }
    while (rows.length)
        await server.call('POST', '/v1/batch', { ops: [{ op: 'trend_put', rows: rows.splice(0, MAX_ROWS) }] });
}

await sleep(FLOW_MS);
await putPast();
const failed = await until(async () => (await server.call('GET',
    '/v1/jobs?state=failed&type=import&order=desc&limit=1')).jobs[0], 'an import that failed', 600000);
await shoot('overview', '/', { ready: 'canvas' });
await shoot('overview-dark', '/', { ready: 'canvas', dark: true });
await shoot('failed', '/failed', { ready: '.row' });
await shoot('job', `/jobs/${failed.id}`, { ready: '.timeline li' });
await server.raw('POST', '/v1/tasks', { service: 'report', id: 'invoices-2026', classifier: 'orders', schedule: '0 6 1 * *' });
await server.raw('POST', '/v1/tasks', { service: 'mail', id: 'reminder-4711', classifier: 'orders', schedule: '@daily' });
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
if (!process.env.DEMO_URL)
    await server.stop();
rmSync(dir, { recursive: true, force: true });
