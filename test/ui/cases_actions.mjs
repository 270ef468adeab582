// cases_actions.mjs - each thing that can be done from the page, with its effect seen through the API.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test, until } from './rig.mjs';

const becomes = (server, id, state) =>
    until(async () => await server.state(id) === state, `job ${id} ${state}`);

test('buttons of a job: retry, run now, cancel, delete', async (t) => {
    const server = await t.serve();
    const failed = await server.ended({ type: 'mail', data: {} }, { error: 'no' });
    const delayed = await server.add({ type: 'mail', data: {}, delay: '1h' });
    const running = await server.add({ type: 'video', data: {} });
    await server.take('video');
    const page = await t.open(server, `/jobs/${failed}`);
    const press = (name) => page.getByRole('button', { name, exact: true }).click();
    await press('Retry');
    await becomes(server, failed, 'inactive');
    await page.getByText('1 job queued again').waitFor();

    await page.goto(`${server.url}/jobs/${delayed}`);
    await press('Run now');
    await becomes(server, delayed, 'inactive');

    await page.goto(`${server.url}/jobs/${running}`);
    await press('Cancel');                      // a job that runs: at once
    await becomes(server, running, 'cancelled');

    await page.goto(`${server.url}/jobs/${delayed}`);
    await press('Cancel');
    await press('Undo');
    await page.getByText('Nothing was cancelled').waitFor();
    assert.equal(await server.state(delayed), 'inactive');
    await press('Delete');
    await press('Undo');
    await page.getByText('Nothing was deleted').waitFor();
    assert.equal(await server.state(delayed), 'inactive');
    await press('Delete');
    await becomes(server, delayed, 'gone');
    await page.getByRole('heading', { name: 'Not here' }).waitFor();
});

test('state and priority of a job are changed in place', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: 'mail', data: {}, delay: '1h' });
    const page = await t.open(server, `/jobs/${id}`);
    const part = page.getByRole('region', { name: 'State' });
    await part.getByLabel('Priority').selectOption('critical');
    await until(async () => (await server.job(id)).priority === -15);
    await part.getByLabel('State').selectOption('inactive');
    await becomes(server, id, 'inactive');
    await until(async () => await part.getByLabel('State').inputValue() === 'inactive');
    await part.getByLabel('State').selectOption('cancelled');
    await becomes(server, id, 'cancelled');
    const odd = await server.add({ type: 'mail', data: {}, priority: 7 });
    await page.goto(`${server.url}/jobs/${odd}`);
    await until(async () => await part.getByLabel('Priority').inputValue() === '7');
});

test('edit and run again, with all digits', async (t) => {
    const server = await t.serve();
    const id = await server.ended({ type: 'mail', data: '@', priority: 'high', attempts: 5 },
        { error: 'no such user' });
    const page = await t.open(server, `/jobs/${id}`);
    await page.getByRole('button', { name: 'Edit and run again' }).click();
    const dialog = page.getByRole('dialog');
    const data = '{"to":"bob","account":9007199254740993123,"amount":1.10}';
    await dialog.getByLabel('Data').fill('{"to": broken');
    await dialog.getByRole('button', { name: 'Add as a new job' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByLabel('Data').fill(data);
    await dialog.getByLabel('Type').fill('a/b 50%');
    await dialog.getByRole('button', { name: 'Add as a new job' }).click();
    await until(() => page.url().endsWith(`/jobs/${id + 1}`));
    const { text } = await server.raw('GET', `/v1/jobs/${id + 1}`);
    assert.ok(text.includes('9007199254740993123') && text.includes('1.10'), text);
    const job = JSON.parse(text);
    assert.deepEqual([job.type, job.priority, job.max_attempts], ['a/b 50%', -10, 5]);
    await page.getByText('9007199254740993123').first().waitFor();
});

// A job with all that can be given to one, which has failed.
async function manySettings(server) {
    const spec = { type: 'mail', data: { n: 1 }, values: { region: 'eu' }, priority: 7, attempts: 3, delay: '90m',
        backoff: { type: 'exponential', delay: 1500, maxDelay: 60000, jitter: 20 }, ttl: '5m', unique: 'k-1',
        deadline: Math.ceil(Date.now() / 60000 + 600) * 60000, max_lost: 5, removeOnComplete: true, search: true,
        search_keys: 'to, n' };
    const id = await server.add(spec);
    await server.call('POST', `/v1/jobs/${id}/cancel`);         // so that its key is free
    return id;
}

// What a job was told, without what became of it.
function toldOf(job) {
    const { type, data, values, priority, max_attempts, delay, backoff, ttl, unique, deadline, max_lost,
        removeOnComplete, search, search_keys } = job;
    return { type, data, values, priority, max_attempts, delay, backoff, ttl, unique, deadline, max_lost,
        removeOnComplete, search, search_keys };
}

test('edit and run again keeps every setting and fits its dialog', async (t) => {
    const server = await t.serve();
    const id = await manySettings(server);
    for (const width of [390, 1280]) {
        const page = await t.open(server, `/jobs/${id}`, { width });
        await page.getByRole('button', { name: 'Edit and run again' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByLabel('Unique key').waitFor();
        const over = await dialog.evaluate((el) => [el, ...el.querySelectorAll('*')].filter((e) =>
            e.scrollWidth > e.clientWidth + 1 && !/^(INPUT|TEXTAREA|SPAN|OPTION|DATALIST)$/.test(e.tagName) && e.clientWidth)
            .map((e) => `${e.tagName}.${e.className} ${e.scrollWidth}/${e.clientWidth}`));
        assert.deepEqual(over, [], `at ${width}`);
        if (width > 1000) {
            assert.equal(await dialog.getByLabel('Start after').inputValue(), '1h30m');
            assert.equal(await dialog.getByLabel('Pause after').inputValue(), 'exponential:1s500ms:1m:20%');
            await dialog.getByRole('button', { name: 'Add as a new job' }).click();
            await until(() => page.url().endsWith(`/jobs/${id + 1}`));
        }
    }
    assert.deepEqual(toldOf(await server.job(id + 1)), toldOf(await server.job(id)));
});

test('copy as curl keeps every setting', async (t) => {
    const server = await t.serve();
    const id = await manySettings(server);
    const page = await t.open(server, `/jobs/${id}`, { clipboard: true });
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('The curl command was copied').waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    execFileSync('sh', ['-c', command.replace('--json', "-sS -H 'Content-Type: application/json' -d")]);
    assert.deepEqual(toldOf(await server.job(id + 1)), toldOf(await server.job(id)));
});

test('a job is added by a form, which says what is wrong at the field', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: {} });
    const page = await t.open(server, '/inactive?type=mail');
    await page.getByRole('button', { name: 'Add a job' }).click();
    const dialog = page.getByRole('dialog'), add = dialog.getByRole('button', { name: 'Add', exact: true });
    assert.equal(await dialog.getByLabel('Type').inputValue(), 'mail');         // as the list is filtered
    const wrong = async (label, text, said) => {
        await dialog.getByLabel(label).fill(text);
        await add.click();
        const about = await until(() => dialog.locator('[aria-invalid]').getAttribute('aria-describedby'));
        assert.match(await dialog.locator(`#${about}`).innerText(), said);
        assert.equal(await dialog.locator('[aria-invalid]').inputValue(), text);
        assert.equal(await dialog.getByRole('alert').count(), 1);
    };
    await wrong('Data', '{"to":', /not JSON/);
    await dialog.getByLabel('Data').fill('{"to":9007199254740993123}');
    await wrong('Attempts', '-1', /must be between 1 and/);
    await dialog.getByLabel('Attempts').fill('4');
    await wrong('Pause after', 'zap:1s', /is not a backoff/);
    await dialog.getByLabel('Pause after').fill('fixed:2s');
    await wrong('Longest run', '5 parsecs', /not a length of time/);
    await dialog.getByLabel('Longest run').fill('5m');
    await dialog.getByText('Moments, unique key').click();
    await dialog.getByLabel('Unique key').fill('k');
    await dialog.getByLabel('is removed when').check();
    await add.click();
    await until(() => page.url().endsWith('/jobs/2'));
    const { text } = await server.raw('GET', '/v1/jobs/2');
    assert.ok(text.includes('9007199254740993123'), text);
    const job = JSON.parse(text);
    assert.deepEqual([job.max_attempts, job.backoff.delay, job.ttl, job.unique, job.removeOnComplete],
        [4, 2000, 300000, 'k', true]);
    // the same key again: the job that has it is shown
    await page.goto(server.url + '/');
    await page.getByRole('button', { name: 'Add a job' }).click();
    await dialog.getByLabel('Type').fill('mail');
    await dialog.getByText('Moments, unique key').click();
    await dialog.getByLabel('Unique key').fill('k');
    await add.click();
    await page.getByText('Job 2 has this unique key already').waitFor();
});

test('who may not add has no form for it', async (t) => {
    const server = await t.serve();
    server.token = server.addToken('boss', '--role', 'admin');
    const reader = server.addToken('eye', '--role', 'read'), maker = server.addToken('ann', '--role', 'produce');
    await until(async () => (await server.raw('GET', '/v1/stats', undefined, maker)).status === 200 &&
        (await server.raw('GET', '/v1/stats', undefined, '')).status === 401);
    const page = await t.open(server, '/inactive', { token: reader });
    await page.locator('.empty').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Add a job' }).count(), 0);
    const other = await t.open(server, '/inactive', { token: maker });
    await other.getByRole('button', { name: 'Add a job' }).waitFor();
});

test('copy as curl gives a command that adds the job', async (t) => {
    const server = await t.serve();
    const id = await server.add({ type: "it's", data: { text: "l'été", n: 1 }, priority: 'low' });
    const page = await t.open(server, `/jobs/${id}`, { clipboard: true });
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('The curl command was copied').waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    // --json came with curl 7.82; this one may be any
    execFileSync('sh', ['-c', command.replace('--json', "-sS -H 'Content-Type: application/json' -d")]);
    const job = await server.job(id + 1);
    assert.deepEqual([job.type, job.data, job.priority], ["it's", { text: "l'été", n: 1 }, 10]);
});

test('some are selected, counted and retried; all that match are deleted', async (t) => {
    const server = await t.serve();
    const ids = [];
    for (let i = 0; i < 6; i++)
        ids.push(await server.ended({ type: i < 4 ? 'mail' : 'sms', data: {} }, { error: `e${i}` }));
    const page = await t.open(server, '/failed');
    await page.getByLabel(`Select job ${ids[0]}`).check();
    await page.getByLabel(`Select job ${ids[5]}`).check();
    await page.getByText('2 selected').waitFor();
    await page.getByRole('button', { name: 'Retry selected' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This concerns 2 jobs.').waitFor();
    await dialog.getByRole('button', { name: 'Leave them' }).click();
    assert.equal(await server.state(ids[0]), 'failed');
    await page.getByRole('button', { name: 'Retry selected' }).click();
    await dialog.getByRole('button', { name: 'Retry 2' }).click();
    await becomes(server, ids[0], 'inactive');
    await becomes(server, ids[5], 'inactive');
    await until(async () => await page.locator('.row').count() === 4);

    await page.getByLabel('Type').selectOption('mail');
    await until(async () => await page.locator('.row').count() === 3);
    await page.getByRole('button', { name: 'Delete all' }).click();
    await dialog.getByText('This concerns 3 jobs.').waitFor();
    await dialog.getByRole('button', { name: 'Delete 3' }).click();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Nothing was deleted').waitFor();
    assert.equal(await server.state(ids[1]), 'failed');
    await page.getByRole('button', { name: 'Delete all' }).click();
    await dialog.getByRole('button', { name: 'Delete 3' }).click();
    for (const id of ids.slice(1, 4))
        await becomes(server, id, 'gone');
    assert.equal(await server.state(ids[4]), 'failed');
    await page.getByText('No job matches.').waitFor();

    // those that words find
    await server.ended({ type: 'fax', data: {}, search: true }, { error: 'carrier busy' });
    await page.goto(`${server.url}/failed?q=carrier`);
    await page.getByRole('button', { name: 'Retry all' }).click();
    await dialog.getByRole('button', { name: 'Retry 1' }).click();
    await until(async () => (await server.call('GET', '/v1/stats')).counts.failed === 1);
});

test('lists of any state are filtered by priority, and all that match are retried', async (t) => {
    const server = await t.serve();
    const failed = [], complete = [];
    for (const priority of ['high', 'low', 'high', 'normal']) {
        failed.push(await server.ended({ type: 'mail', data: {}, priority }, { error: 'no' }));
        complete.push(await server.ended({ type: 'mail', data: {}, priority }, { result: 1 }));
    }
    // more than the store looks at in a call come before the one that is wanted
    await server.call('POST', '/v1/jobs', Array.from({ length: 6000 }, () =>
        ({ type: 'sms', data: {}, priority: 'low', delay: '1h' })));
    const late = await server.add({ type: 'sms', data: {}, priority: 'high', delay: '2h' });
    const page = await t.open(server, '/failed');
    const shows = (...want) => until(async () => {
        const got = await page.locator('.row').evaluateAll((rows) => rows.map((r) => Number(r.dataset.id)));
        return JSON.stringify(got) === JSON.stringify(want);
    }, `the list ${want}`);
    await shows(...[...failed].reverse());
    await page.getByLabel('Priority').selectOption('high');
    await shows(failed[2], failed[0]);
    assert.equal(new URL(page.url()).search, '?priority=high');
    await page.goto(`${server.url}/complete?priority=high&order=asc`);
    await shows(complete[0], complete[2]);
    await page.goto(`${server.url}/delayed?priority=-10`);          // by number, too
    await shows(late);
    assert.equal(await page.getByLabel('Priority').inputValue(), 'high');
    await page.goto(`${server.url}/jobs?priority=high&type=sms`);
    await shows(late);
    await page.goto(`${server.url}/delayed?priority=7`);
    await page.getByText('No job matches.').waitFor();
    assert.equal(await page.getByLabel('Priority').inputValue(), '7');

    await page.goto(`${server.url}/failed?priority=high`);
    await shows(failed[2], failed[0]);
    await page.getByRole('button', { name: 'Retry all' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This concerns 2 jobs.').waitFor();
    await dialog.getByRole('button', { name: 'Retry 2' }).click();
    await becomes(server, failed[0], 'inactive');
    await becomes(server, failed[2], 'inactive');
    await page.getByText('No job matches.').waitFor();
    assert.equal(await server.state(failed[1]), 'failed');
    assert.equal(await server.state(failed[3]), 'failed');
    assert.equal((await server.call('GET', '/v1/stats')).counts.complete, 4);
});

test('all that are shown are selected, promoted and cancelled', async (t) => {
    const server = await t.serve();
    await server.call('POST', '/v1/jobs', Array.from({ length: 5 }, () =>
        ({ type: 'later', data: {}, delay: '1h' })));
    const page = await t.open(server, '/delayed');
    await page.getByLabel('Select all that are shown').check();
    await page.getByText('5 selected').waitFor();
    await page.getByRole('button', { name: 'Run now selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Run now 5' }).click();
    const counts = async () => (await server.call('GET', '/v1/stats')).counts;
    await until(async () => (await counts()).inactive === 5);
    await page.getByRole('link', { name: 'Queued' }).first().click();
    await page.getByRole('button', { name: 'Cancel all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel 5' }).click();
    await until(async () => (await counts()).cancelled === 5);
});

test('types are paused and resumed, one and all, whatever they are called', async (t) => {
    const server = await t.serve();
    const name = 'a/b 50% "ü" ?&#';
    await server.add({ type: name, data: {} });
    await server.add({ type: 'mail', data: {} });
    const page = await t.open(server, '/types');
    const paused = async (type) => (await server.call('GET', '/v1/stats')).types
        .find((each) => each.type === type).paused;
    await page.getByRole('button', { name: `Pause ${name}`, exact: true }).click();
    await until(() => paused(name));
    await page.getByRole('button', { name: `Resume ${name}`, exact: true }).click();
    await until(async () => !await paused(name));
    assert.equal(await paused('mail'), false);
    await page.getByRole('button', { name: 'Pause all' }).click();
    await page.getByText('The whole queue is paused').waitFor();
    assert.equal((await server.call('GET', '/v1/stats')).paused, true);
    await page.goto(server.url + '/');
    await page.getByRole('button', { name: 'Resume all' }).click();
    await until(async () => !(await server.call('GET', '/v1/stats')).paused);
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await page.reload();
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
});

test('what is kept of a type is changed', async (t) => {
    const server = await t.serve();
    await server.add({ type: 'mail', data: {} });
    const page = await t.open(server, '/types');
    await page.getByRole('button', { name: 'Change the retention of mail' }).click();
    const dialog = page.getByRole('dialog');
    const complete = dialog.getByRole('group', { name: 'Keep complete jobs' });
    await complete.getByLabel('for').fill('7d');
    await complete.getByLabel('jobs').fill('1000');
    await dialog.getByLabel('new jobs can be searched').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await until(async () => {
        const { settings } = await server.call('GET', '/v1/types/mail');
        return settings.search && settings.keep_complete.age === 7 * 86400000 &&
            settings.keep_complete.count === 1000;
    });
    await page.getByText('7d, at most 1,000 jobs').waitFor();
    await server.call('PATCH', '/v1/types/mail', { keep_complete: { age: '1h' } });
    await page.reload();
    await page.getByText('1h, at most 1,000 jobs').waitFor();
    await page.getByRole('button', { name: 'Change the retention of mail' }).click();
    assert.equal(await complete.getByLabel('for').inputValue(), '1h');
    for (const wrong of ['minus one', '7']) {       // seven what?
        await complete.getByLabel('for').fill(wrong);
        await dialog.getByRole('button', { name: 'Save' }).click();
        await dialog.getByRole('alert').filter({ hasText: wrong }).waitFor();
    }
    assert.equal((await server.call('GET', '/v1/types/mail')).settings.keep_complete.age, 3600000);
});
