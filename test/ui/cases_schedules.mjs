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

test('a demo has schedules, and jobs that fail for several reasons', async (t) => {
    const server = await t.serve('--demo');
    const page = await t.open(server, '/schedules');
    await page.getByRole('link', { name: 'demo-weekly' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'demo-newsletter' }).getByText('paused').waitFor();
    await until(async () => {
        const { jobs } = await server.call('GET', '/v1/jobs?limit=1000&order=desc');
        return new Set(jobs.map((j) => j.error?.replace(/\d+/g, 'N')).filter(Boolean)).size > 2;
    }, 'three kinds of errors');
});

test('a schedule is fired, paused, resumed and removed', async (t) => {
    const server = await t.serve();
    await server.call('PUT', '/v1/schedules/night', HOURLY);
    const page = await t.open(server, '/schedules?name=night');
    await page.getByRole('button', { name: 'Fire now' }).click();
    await page.getByRole('listitem').filter({ hasText: 'added by hand' }).waitFor();
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

test('a calendar has the past and coming runs of a schedule', async (t) => {
    const server = await t.serve();
    const next = (await server.call('GET', '/v1/firings?when=30+6+*+*+*&zone=Asia/Tokyo')).next;
    const day = (at) => new Date(at + 9 * 3600000).toISOString().slice(0, 10);          // in Tokyo
    await server.call('PUT', '/v1/schedules/dawn', { when: '30 6 * * *', zone: 'Asia/Tokyo', except: day(next[1]),
        job: { type: 'report' } });
    await server.call('POST', '/v1/schedules/dawn/fire');
    const [run] = (await schedule(server, 'dawn')).history;
    const page = await t.open(server, '/schedules?name=dawn');
    const cell = (at) => page.getByRole('button', { name: new RegExp(`^${day(at)}: `) });
    const turnTo = async (at) => {              // the month in which that is, in the calendar
        const after = page.getByRole('button', { name: 'Month after' });
        await page.getByText('days in Asia/Tokyo').waitFor();
        if (!await cell(at).count())
            await after.click();
        await cell(at).waitFor();
    };
    await turnTo(run.at);
    await until(async () => /1 added a job/.test(await cell(run.at).getAttribute('title')), 'the run of today');
    await cell(run.at).click();
    await page.getByRole('status', { name: `Runs of ${day(run.at)}` }).getByText('added by hand').waitFor();
    await turnTo(next[0]);
    await until(async () => /1 to come/.test(await cell(next[0]).getAttribute('title')), 'the next run');
    assert.match(await cell(next[0]).innerText(), /06:30/);
    await turnTo(next[1]);
    assert.match(await cell(next[1]).getAttribute('title'), /does not run/);
    await page.getByRole('button', { name: 'Month after' }).click();
    await page.getByRole('button', { name: 'Today' }).click();
});

test('a schedule has holidays, an end, jitter and a rule for missed runs', async (t) => {
    const server = await t.serve();
    await server.call('PUT', '/v1/schedules/night', { ...HOURLY, start_at: 1767261645123 });
    const page = await t.open(server, '/schedules?name=night', { width: 390, height: 844 });
    await page.getByRole('button', { name: 'Change' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('When', { exact: true }).fill('0 6 * * *');
    const off = form.locator('.day', { hasText: '06:00' });
    await form.getByRole('button', { name: 'Month after' }).click();       // full of runs, whatever the day is
    await until(async () => await off.count() > 27, 'a month of runs');
    const day = (await off.nth(9).getAttribute('title')).slice(0, 10);
    await off.nth(9).click();
    await form.getByRole('button', { name: `${day}: does not run` }).waitFor();
    assert.equal(await form.getByLabel('Days on which').inputValue(), day);
    await form.getByLabel('Not after').fill('2100-01-01T12:00');
    await form.getByLabel('Up to this much later').fill('90s');
    await form.getByLabel('If no process was there').selectOption('all');
    await form.getByLabel('At most this many').fill('7');
    await form.getByLabel('If day and weekday').check();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), 'no sideways scrolling');
    await form.getByRole('button', { name: 'Save' }).click();
    await until(async () => (await schedule(server, 'night')).when === '0 6 * * *', 'changed');
    const s = await schedule(server, 'night');
    assert.deepEqual([s.except, s.jitter, s.missed, s.missed_limit, s.day_or_weekday, s.start_at, s.zone, s.job],
        [day, 90000, 'all', 7, true, 1767261645123, HOURLY.zone, HOURLY.job]);
    assert.equal(new Date(s.end_at).getFullYear(), 2100);
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

test('many schedules are shown a page at a time', async (t) => {
    const server = await t.serve();
    const name = (i) => `s${String(i).padStart(3, '0')}`;
    for (let i = 0; i < 250; i++)
        await server.call('PUT', `/v1/schedules/${name(i)}`, HOURLY);
    const page = await t.open(server, '/schedules');
    const rows = page.getByRole('region', { name: 'Schedules' }).locator('tbody tr');
    await until(async () => await rows.count() === 100, 'a page');
    assert.equal(await page.getByRole('button', { name: 'First page' }).count(), 0);
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByRole('link', { name: name(199) }).waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await until(async () => await rows.count() === 50, 'the last page');
    assert.equal(await page.getByRole('button', { name: 'Next page' }).count(), 0);
    await page.getByLabel('Name', { exact: true }).fill(name(7));           // on another page
    await page.getByLabel('Name', { exact: true }).press('Enter');
    await page.getByRole('region', { name: `Schedule ${name(7)}` }).getByText(/^It fires next on /).waitFor();
    await page.getByLabel('Name', { exact: true }).fill('none');
    await page.getByLabel('Name', { exact: true }).press('Enter');
    await page.getByText('There is no schedule none.').waitFor();
    await page.getByRole('button', { name: 'First page' }).click();
    await page.getByRole('link', { name: name(0) }).waitFor();
});

// Its history has 20 runs; what was planned before them is known from its expression.
test('the calendar has all runs of the past', async (t) => {
    const server = await t.serve();
    const DAY = 86400000, today = Math.floor(Date.now() / DAY) * DAY, day = (n) => today - n * DAY + 6.5 * 3600000;
    const history = Array.from({ length: 20 }, (_, i) => (
        { at: day(20 - i), done_at: day(20 - i) + 5, outcome: 'fired', job: 100 + i }));
    await server.call('POST', '/v1/batch', { ops: [{ op: 'schedule', name: 'dawn',
        due_at: day(-1), version: 0, schedule: { name: 'dawn', when: '30 6 * * *', job: { type: 'report' },
            created_at: day(100), next_at: day(-1), fired: 99, turn: 120, series: 7, history } }] });
    const page = await t.open(server, '/schedules?name=dawn');
    await page.getByRole('region', { name: 'Schedule dawn' }).waitFor();
    const cell = (at) => page.getByRole('button', { name: new RegExp(`^${new Date(at).toISOString().slice(0, 10)}: `) });
    for (const [n, words] of [[20, /1 added a job/], [21, /1 planned/], [60, /1 planned/], [99, /1 planned/]]) {
        for (let i = 0; i < 5 && !await cell(day(n)).count(); i++)
            await page.getByRole('button', { name: 'Month before' }).click();
        await until(async () => words.test(await cell(day(n)).getAttribute('title')), `the run ${n} days ago`);
    }
    await cell(day(99)).click();
    await page.getByText('planned; what became of it is not kept').waitFor();
});

test('the timeline of a job names the schedule that replaced it', async (t) => {
    const server = await t.serve();
    await server.call('PUT', '/v1/schedules/beat', { when: '* * * * * *', overlap: 'replace', job: { type: 'beat' } });
    await until(async () => (await schedule(server, 'beat')).fired >= 2, 'a second run');
    const page = await t.open(server, '/jobs/1');
    await page.getByText('Cancelled by the schedule beat').waitFor();
});
