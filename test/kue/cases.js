// cases.js WEIR NODE_MODULES [NAME] - weir and the real Kue on one Redis at the same time. Each case
// has a prefix of its own; NAME runs only the cases with that in their names.
'use strict';
const { ask, assert, command, dir, fs, hash, main, monitor, path, serve, side, sleep, subscribe, test, until, url,
  weir } = require('./rig');

const same = assert.deepStrictEqual;
const sorted = (list) => [...list].sort((a, b) => a - b);
const lines = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);
const count = (prefix, ...key) => command('ZCARD', [prefix, 'jobs', ...key].join(':'));
const file = (prefix, name) => path.join(dir, `${prefix}-${name}`);
// A shell program that notes its job's id, and another for one that does more after it.
const noting = (prefix) => `echo $WEIR_JOB_ID >>${file(prefix, 'ran')}`;
const ran = (prefix) => lines(file(prefix, 'ran')).map(Number);

const zid = (id) => `${String(String(id).length).padStart(2, '0')}|${id}`;

// Nothing is left of a job.
async function gone(prefix, id) {
  same(await command('EXISTS', `${prefix}:job:${id}`, `${prefix}:job:${id}:log`), 0);
  for (const state of ['inactive', 'active', 'complete', 'failed', 'delayed'])
    same(await command('ZSCORE', `${prefix}:jobs:${state}`, `0${String(id).length}|${id}`), null);
  same(await command('ZSCORE', `${prefix}:jobs`, `0${String(id).length}|${id}`), null);
}


test('kue adds, weir works: by priority, then oldest', async (q) => {
  const k = await side(q), w = weir(q);
  const order = ['low', 'normal', 'critical', 'high', 'medium', 'normal', 'critical', -7];
  const ids = [];
  for (const priority of order) ids.push(await k.do('add', { type: 'mail', priority, data: { to: 'ann' } }));
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', noting(q) + '; cat');
  same(ran(q), [3, 7, 4, 8, 5, 2, 6, 1].map((i) => ids[i - 1]));
  const job = await k.do('get', { id: ids[0] });
  same(job.state, 'complete');
  same(job.result, { to: 'ann' });
  same(job.attempts, { made: 1, remaining: 0, max: 1 });
  same(job.progress, '100');
  assert(job.workerId && Number(job.duration) >= 0 && Number(job.started_at) >= Number(job.created_at));
  await until('complete events', () => k.saw('complete').length === order.length);
  same(k.saw('complete', ids[0])[0].args, [{ to: 'ann' }, null]);
  same(k.saw('start', ids[0])[0].args, ['mail', null]);
  same(await command('GET', `${q}:stats:work-time`) !== null, true);
  same(await count(q, 'complete'), 8);
  same(await count(q, 'mail', 'complete'), 8);
  same(await count(q, 'inactive') + await count(q, 'active') + await count(q, 'mail', 'inactive'), 0);
  same(await command('LLEN', `${q}:mail:jobs`), 0);
  await w.run('check');
});

test('weir adds, kue works: by priority, then oldest', async (q) => {
  const k = await side(q), w = weir(q), ids = [];
  for (const p of ['low', 'normal', 'critical', 'high', 'medium', 'normal', '-7'])
    ids.push(await w.add('mail', '{"result":{"sent":true}}', '--priority=' + p));
  same(await command('LLEN', `${q}:mail:jobs`), 7);
  const watch = await w.start('watch', '--json');
  await k.do('work', { type: 'mail' });
  await until('all done', async () => await count(q, 'complete') === 7);
  same(k.ran.map((r) => r.ran), [3, 4, 7, 5, 2, 6, 1].map((i) => ids[i - 1]));
  const job = await w.job(ids[0]);
  same([job.state, job.attempts, job.progress, job.result], ['complete', 1, 100, { sent: true }]);
  assert(job.workerId.startsWith('kue:') || job.worker.startsWith('kue:'));
  assert(job.finished_at >= job.started_at);
  const seen = () => watch.lines.map((l) => JSON.parse(l)).filter((e) => e.id === ids[0]).map((e) => e.event);
  await until('events of kue', () => seen().includes('complete'));
  same(seen().filter((e) => e === 'start' || e === 'complete'), ['start', 'complete']);
  await w.run('check');
});

test('twelve jobs alike run oldest first, in a queue with braces; one without is another', async (q) => {
  const braces = `{${q}}`, k = await side(braces), w = weir(braces), other = weir(q), ids = [];
  await other.add('mail');
  for (let i = 0; i < 12; i++) ids.push(await (i % 2 ? k.do('add', { type: 'mail' }) : w.add('mail')));
  same(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  same(await command('ZRANGE', `${braces}:jobs:mail:inactive`, 0, -1),
    ids.map((id) => `${String(String(id).length).padStart(2, '0')}|${id}`));
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', noting(q));
  same(ran(q), ids);
  same([await other.run('count', '--state', 'inactive'), await w.run('count', '--state', 'complete')], ['1', '12']);
});

test('the hash is as kue writes it', async (q) => {
  const k = await side(q), w = weir(q);
  const theirs = await k.do('add', { type: 'a', data: { n: 1 }, priority: 'high', attempts: 3, delay: 90000,
    ttl: 5000, backoff: { type: 'exponential', delay: 1000 }, removeOnComplete: true });
  const ours = await w.add('a', '{"n":1}', '-p', 'high', '--attempts', 3, '-d', '90s', '--ttl', '5s', '-b', 'exponential:1s',
    '--remove-on-complete');
  const a = await hash(`${q}:job:${theirs}`), b = await hash(`${q}:job:${ours}`);
  for (const name of ['created_at', 'promote_at', 'updated_at']) {
    assert(/^\d{13}$/.test(a[name]) && /^\d{13}$/.test(b[name]), name);
    delete a[name];
    delete b[name];
  }
  same(b, a);
  for (const id of [theirs, ours])
    same(await command('ZSCORE', `${q}:jobs:delayed`, `01|${id}`), (await hash(`${q}:job:${id}`)).promote_at);
  same(await command('ZRANGE', `${q}:jobs:a:delayed`, 0, -1, 'WITHSCORES'), ['01|1', '-10', '01|2', '-10']);
  same(await command('SMEMBERS', `${q}:job:types`), ['a']);
  same([theirs, ours, await command('GET', `${q}:ids`)], [1, 2, '2']);
});

test('priorities are the same scores on both sides', async (q) => {
  const k = await side(q), w = weir(q), zids = [];
  for (const [name, score] of [['low', 10], [3, 3], ['normal', 0], ['medium', -5], ['high', -10], ['critical', -15]]) {
    const ids = [await k.do('add', { type: 'mail', priority: name }), await w.add('mail', `--priority=${name}`)];
    for (const id of ids) {
      zids.push(zid(id));
      same((await hash(`${q}:job:${id}`)).priority, String(score));
      for (const key of ['jobs', 'jobs:inactive', 'jobs:mail:inactive'])
        same(await command('ZSCORE', `${q}:${key}`, zid(id)), String(score));
    }
  }
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', noting(q));
  const urgent_first = [];
  for (let i = zids.length; i; i -= 2) urgent_first.push(i - 1, i);
  same(ran(q), urgent_first);
});

// A job is among all, in the set of its state, in that of its type and state, and in no other.
async function is_in(q, id, type, state) {
  for (const s of ['inactive', 'delayed', 'active', 'complete', 'failed', 'cancelled'])
    for (const key of [`jobs:${s}`, `jobs:${type}:${s}`])
      same(await command('ZSCORE', `${q}:${key}`, zid(id)) !== null, s === state, `${key}, ${state}`);
  same(await command('ZSCORE', `${q}:jobs`, zid(id)) !== null, state !== 'removed');
  same(await command('EXISTS', `${q}:job:${id}`), state === 'removed' ? 0 : 1);
  same(await command('LLEN', `${q}:${type}:jobs`), state === 'inactive' ? 1 : 0);
}

test('after each step a job is in the sets of its state and in no other', async (q) => {
  const w = weir(q), go = file(q, 'go');
  const id = await w.add('mail', '--delay', '1h', '--attempts', 2, '--backoff', 'fixed:1h');
  await is_in(q, id, 'mail', 'delayed');
  const fail = async () => {
    const before = (await w.job(id)).attempts;
    const worker = await w.start('work', 'mail', '--quiet', '--exec', 'exit 1');
    await until('failed', async () => (await w.job(id)).attempts > before);
    await worker.stop();
  };
  const by = (...what) => () => w.run(what[0], id, ...what.slice(1));
  for (const [step, state] of [[by('promote'), 'inactive'], [fail, 'delayed'], [by('promote'), 'inactive'], [fail, 'failed'],
    [by('retry'), 'inactive'], [by('cancel'), 'cancelled'], [by('retry'), 'inactive'],
    [by('update', '--state', 'complete'), 'complete'], [by('update', '--state', 'failed'), 'failed'],
    [by('update', '--state', 'inactive'), 'inactive']]) {
    await step();
    await is_in(q, id, 'mail', state);
  }
  const worker = await w.start('work', 'mail', '--quiet', '--exec', `until [ -e ${go} ]; do sleep 0.05; done`);
  await until('taken', async () => (await w.job(id)).state === 'active');
  await is_in(q, id, 'mail', 'active');
  fs.writeFileSync(go, '');
  await until('complete', async () => (await w.job(id)).state === 'complete');
  await is_in(q, id, 'mail', 'complete');
  await worker.stop();
  await w.run('rm', id);
  await is_in(q, id, 'mail', 'removed');
  await w.run('check');
});

test('both kinds of worker at once: every job runs once', async (q) => {
  const k1 = await side(q), k2 = await side(q), w = weir(q), each = 150;
  const work = [await w.start('work', 'mail', '--jobs', 3, '--quiet', '--exec', noting(q)),
    await w.start('work', 'mail', '--jobs', 2, '--quiet', '--exec', noting(q))];
  await k1.do('work', { type: 'mail', n: 3 });
  await k2.do('work', { type: 'mail', n: 2 });
  const data = path.join(dir, `${q}-data`);
  fs.writeFileSync(data, '{"sleep":2}\n'.repeat(each));
  const adds = [k1.do('many', { n: each, type: 'mail', data: { sleep: 2 } }),
    k2.do('many', { n: each, type: 'mail', data: { sleep: 2 } })];
  for (let i = 0; i < 5; i++) adds.push(w.run('add', 'mail', '{"sleep":2}', '--quiet', '--count', each / 5));
  await Promise.all(adds);
  const all = 3 * each;
  await until('all of them', async () => await count(q, 'complete') === all);
  for (const s of work) await s.stop();
  const ids = [...ran(q), ...k1.ran.map((r) => r.ran), ...k2.ran.map((r) => r.ran)];
  same(sorted(ids), Array.from({ length: all }, (_, i) => i + 1));
  assert(ran(q).length > 0 && k1.ran.length > 0 && k2.ran.length > 0, 'each had some');
  same(await count(q, 'mail', 'inactive') + await count(q, 'active') + await count(q, 'inactive'), 0);
  assert(await command('LLEN', `${q}:mail:jobs`) <= 5, 'no heap of tokens');
  same((await w.ids('mail', '--state', 'complete', '--all')).length, all);
  same(await w.ids('--all', '--reverse'), Array.from({ length: all }, (_, i) => i + 1));
  await w.run('check');
  same([k1.errors, k2.errors], [[], []]);
});

test('attempts and backoff of a job of kue, failing with weir', async (q) => {
  const k = await side(q), w = weir(q);
  const id = await k.do('add', { type: 'mail', attempts: 3, backoff: { type: 'exponential', delay: 200 } });
  const before = (await hash(`${q}:job:${id}`)).backoff;
  const worker = await w.start('work', 'mail', '--exec',
    `date +%s%3N >>${file(q, 'ran')}; [ $WEIR_JOB_ATTEMPT -ge 3 ] || { echo smtp down >&2; exit 1; }`);
  await until('complete', async () => (await w.job(id)).state === 'complete');
  const at = ran(q);
  same(at.length, 3);
  assert(at[1] - at[0] >= 100 && at[2] - at[1] >= 300, `gaps: ${at}`);
  const job = await k.do('get', { id });
  same([job.attempts, job.state], [{ made: 3, remaining: 0, max: 3 }, 'complete']);
  await until('events', () => k.saw('complete', id).length);
  same(k.saw('failed attempt', id).map((e) => e.args[1]), [1, 2]);
  assert(k.saw('failed attempt', id)[0].args[0].includes('smtp down'));
  same(k.saw('error', id).length, 2);
  same(k.saw('promotion', id).length, 2);
  same((await hash(`${q}:job:${id}`)).backoff, before);
  assert((await k.do('log', { id }))[0].startsWith('error | '));
  await worker.stop();
  await w.run('check');
});

test('attempts and backoff of a job of weir, failing with kue', async (q) => {
  const k = await side(q), w = weir(q);
  const watch = await w.start('watch', '--json');
  await k.do('work', { type: 'mail' });
  const id = await w.add('mail', '{"fail":2}', '--attempts', 3, '--backoff', 'fixed:100ms');
  await until('complete', async () => (await w.job(id)).state === 'complete');
  const at = k.ran.map((r) => r.at);
  same([at.length, (await w.job(id)).attempts], [3, 3]);
  assert(at[1] - at[0] >= 99 && at[2] - at[1] >= 99, `gaps: ${at}`);
  const last = await w.add('mail', '{"fail":9}', '--attempts', 2);
  await until('failed', async () => (await w.job(last)).state === 'failed');
  const job = await w.job(last);
  same([job.attempts, job.max_attempts], [2, 2]);
  assert(job.error.startsWith('Error: kue says no'));
  assert(job.failed_at === job.finished_at);
  const seen = (i) => watch.lines.map((l) => JSON.parse(l)).filter((e) => e.id === i).map((e) => e.event);
  await until('its events', () => seen(last).includes('failed'));
  same(seen(id).filter((e) => e === 'failed_attempt').length, 2);
  same(seen(last).filter((e) => e === 'failed_attempt').length, 1);
  same(await w.ids('--state', 'failed'), [last]);
  await w.run('retry', last);
  await until('failed again', async () => k.ran.length === 3 + 4);
  await until('failed again', async () => (await w.job(last)).state === 'failed');
  await w.run('check');
});

test('a linear backoff of weir is a fixed one to kue, and stays linear', async (q) => {
  const k = await side(q), w = weir(q);
  const id = await w.add('mail', '{"fail":1}', '--attempts', 5, '--backoff', 'linear:100ms:60s');
  const h = await hash(`${q}:job:${id}`);
  same(JSON.parse(h.backoff), { type: 'fixed', linear: true, delay: 100, maxDelay: 60050, max: 60000 });
  await k.do('work', { type: 'mail' });
  await until('complete', async () => (await w.job(id)).state === 'complete');
  same(k.ran.length, 2);
  assert(k.ran[1].at - k.ran[0].at >= 99, 'the delay of kue');
  same((await w.job(id)).backoff, { type: 'linear', delay: 100, maxDelay: 60000 });
  same(k.errors, []);
});

test('ttl: with weir, with kue, and of a worker of kue that is dead', async (q) => {
  const k = await side(q), w = weir(q);
  const worker = await w.start('work', 'ours', '--quiet', '--exec', 'exec sleep 100');
  const one = await k.do('add', { type: 'ours', ttl: 300 });
  await until('failed', async () => (await k.do('get', { id: one })).state === 'failed');
  same((await k.do('get', { id: one })).error, 'TTL exceeded');
  await until('events', () => k.saw('failed', one).length);
  same(k.saw('ttl exceeded', one).length, 1);
  same(k.saw('failed', one)[0].args, ['TTL exceeded', null]);

  await k.do('work', { type: 'theirs' });
  const two = await w.add('theirs', '{"hang":true}', '--ttl', '300ms');
  await until('failed', async () => (await w.job(two)).state === 'failed');
  same((await w.job(two)).error, 'TTL exceeded');
  await until('no longer active', async () => await count(q, 'active') === 0);

  const three = await w.add('theirs', '{"hang":true}', '--ttl', '1h', '--attempts', 2);
  await until('taken', async () => (await w.job(three)).state === 'active');
  await k.kill9();
  await command('ZADD', `${q}:jobs:active`, Date.now() - 20000, `01|${three}`);   // that was long ago
  await until('given up', async () => (await w.job(three)).state === 'inactive');
  same([(await w.job(three)).attempts, (await w.job(three)).error], [1, 'TTL exceeded']);
  await worker.stop();
  await w.run('check');
});

test('progress and log, both ways', async (q) => {
  const k = await side(q), w = weir(q);
  const watch = await w.start('watch', '--json', '--event', 'progress');
  const one = await k.do('add', { type: 'ours' });
  await w.run('work', 'ours', '--drain', '--quiet', '--exec', 'echo progress 40/100 >&3; echo log half way >&3; sleep 0.2');
  await until('progress', () => k.saw('progress', one).length);
  same(k.saw('progress', one)[0].args[0], 40);
  same(await k.do('log', { id: one }), ['half way']);
  await k.do('work', { type: 'theirs' });
  const two = await w.add('theirs', '{"progress":50,"log":"kue was here"}');
  await until('complete', async () => (await w.job(two)).state === 'complete');
  assert((await w.run('log', two)).includes('kue was here'));
  await w.run('log', two, 'and so was weir');
  same(await k.do('log', { id: two }), ['kue was here', 'and so was weir']);
  same((await w.job(two)).progress_data, { note: 'half' });
  await until('its event', () => watch.lines.some((l) => JSON.parse(l).id === two && JSON.parse(l).progress === 50));
  await w.run('check');
});

test('removeOnComplete, both ways', async (q) => {
  const k = await side(q), w = weir(q);
  const one = await k.do('add', { type: 'ours', removeOnComplete: true });
  await w.run('work', 'ours', '--drain', '--quiet', '--exec', 'echo log x >&3');
  await gone(q, one);
  await until('its event', () => k.saw('remove', one).length);
  same(k.saw('complete', one).length, 1);
  await k.do('work', { type: 'theirs' });
  const two = await w.add('theirs', '{"log":"x"}', '--remove-on-complete', '--search', '--unique', 'u');
  await until('gone', async () => await command('EXISTS', `${q}:job:${two}`) === 0);
  await gone(q, two);
  const again = await w.add('theirs', '{}', '--unique', 'u');
  assert(again !== two, 'its key is free');
});

test('removed in any state: nothing is left, and kue hears of it', async (q) => {
  const k = await side(q), w = weir(q), go = file(q, 'go');
  const states = {
    delayed: ['--delay', '1h'], inactive: [], cancelled: [], complete: [], failed: [], active: [],
  };
  const ids = {};
  for (const [state, options] of Object.entries(states)) {
    ids[state] = await w.add(state, ...options);
    await w.run('log', ids[state], 'a line');
  }
  await w.run('cancel', ids.cancelled);
  await w.run('update', ids.complete, '--state', 'complete');
  await w.run('update', ids.failed, '--state', 'failed');
  const worker = await w.start('work', 'active', '--quiet', '--exec', `until [ -e ${go} ]; do sleep 0.05; done; echo 1`);
  await until('taken', async () => (await w.job(ids.active)).state === 'active');
  for (const [state, id] of Object.entries(ids)) {
    same([(await w.job(id)).state, await command('EXISTS', `${q}:job:${id}:log`)], [state, 1]);
    await w.run('rm', id);
    await gone(q, id);
    await until('its event', () => k.saw('remove', id).length);
    same(k.saw('remove', id)[0].args, [state]);
  }
  fs.writeFileSync(go, '');              // the answer of a worker whose job is gone brings nothing back
  await worker.stop();
  await gone(q, ids.active);
  await w.run('check');
});

// The messages of one job, in which only the words of an error differ.
const told = (messages, id) => messages.filter((m) => Number(m.id) === id)
  .map(({ event, args }) => JSON.stringify([event, ...args.slice(1).map((a) => (/kue says no/.test(a) ? 'WHY' : a))])).sort();

test('messages are those of kue', async (q) => {
  const k = await side(q), w = weir(q), messages = await subscribe(`${q}:events`);
  const worker = await w.start('work', 'ours', '--quiet', '--exec', 'echo \'progress 50/100 {"note":"half"}\' >&3; ' +
    '[ $WEIR_JOB_ATTEMPT -gt 1 ] && echo 7 || { echo kue says no >&2; exit 1; }');
  await k.do('work', { type: 'theirs' });
  const add = (type) => k.do('add', { type, attempts: 2, data: { fail: 1, progress: 50, result: 7 }, removeOnComplete: true });
  const ours = await add('ours'), theirs = await add('theirs');
  for (const id of [ours, theirs])
    await until('the last', () => messages.some((m) => Number(m.id) === id && m.event === 'remove'));
  same(told(messages, ours), told(messages, theirs).map((m) => m.replace('theirs', 'ours')));
  for (const m of messages) {
    same(m.args[0], m.event);
    same(Object.keys(m).filter((name) => name !== 'weir').sort(), ['args', 'event', 'id']);
  }
  await worker.stop();
});

test('where weir alone listens, nothing is published for kue', async (q) => {
  const w = weir(q), watch = await w.start('watch', '--json'), asked = await monitor();
  const published = () => asked.filter(([name, channel]) => /^s?publish$/i.test(name) && channel === `${q}:events`);
  await w.add('mail');
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', 'true');
  await until('seen', () => watch.lines.some((l) => JSON.parse(l).event === 'complete'));
  assert(asked.some(([name]) => /^fcall/i.test(name)), 'the monitor sees what weir asks');
  same(published(), []);
  const k = await side(q), id = await w.add('mail');
  await until('its event', () => k.saw('enqueue', id).length);
  assert(published().length > 0);
});

test('delayed jobs are promoted once, whoever does it', async (q) => {
  const k = await side(q), w = weir(q), each = 40;
  const worker = await w.start('work', 'mail', '--jobs', 4, '--quiet', '--exec', noting(q));
  const second = await w.start('work', 'other', '--exec', 'true');
  await k.do('work', { type: 'mail', n: 4 });
  await k.do('many', { n: each, type: 'mail', delay: 700 });
  await w.run('add', 'mail', '--delay', '500ms', '--count', each, '--quiet');
  await until('all of them', async () => await count(q, 'complete') === 2 * each);
  await sleep(300);                      // what is run twice is run by now
  const ids = [...ran(q), ...k.ran.map((r) => r.ran)];
  same(sorted(ids), Array.from({ length: 2 * each }, (_, i) => i + 1));
  for (let id = 1; id <= 2 * each; id++) same(k.saw('promotion', id).length, 1, `promotions of ${id}`);
  await worker.stop();
  await second.stop();
  same(await count(q, 'delayed') + await count(q, 'mail', 'delayed'), 0);
  await w.run('check');
});

test('delayed jobs of a producer of kue are promoted by weir alone, soon', async (q) => {
  const k = await side(q), w = weir(q);                  // no worker of kue, so no promoter
  const worker = await w.start('work', 'mail', '--quiet', '--exec', 'true');
  const id = await k.do('add', { type: 'mail', delay: 300 });
  await until('complete', async () => (await w.job(id)).state === 'complete');
  const job = await w.job(id);
  assert(job.started_at >= job.promote_at && job.started_at - job.promote_at < 3000, JSON.stringify(job));
  await worker.stop();
});

test('an idle worker of weir starts a job of kue at once', async (q) => {
  const k = await side(q), w = weir(q);
  const worker = await w.start('work', 'mail', '--quiet', '--exec', 'true');
  const late = [];
  for (let i = 0; i < 20; i++) {
    const id = await k.do('add', { type: 'mail' });
    await until('complete', async () => (await hash(`${q}:job:${id}`)).state === 'complete');
    const h = await hash(`${q}:job:${id}`);
    late.push(h.started_at - h.created_at);
  }
  assert(sorted(late)[10] < 200, `ms: ${late}`);         // without an event it would be a second
  await worker.stop();
});

test('a job of a weir worker that was killed comes back, and kue does it', async (q) => {
  const k = await side(q), w = weir(q);
  const id = await k.do('add', { type: 'mail' });
  const worker = await w.start('work', 'mail', '--quiet', '--lease', '500ms', '--exec', 'exec sleep 100');
  await until('taken', async () => (await w.job(id)).state === 'active');
  await worker.kill9();
  const other = await w.start('work', 'other', '--quiet', '--exec', 'true');
  await k.do('work', { type: 'mail' });
  await until('complete', async () => (await k.do('get', { id })).state === 'complete');
  const job = await w.job(id);
  same([job.lost, job.attempts, k.ran.length], [1, 1, 1]);
  same(k.saw('stalled', id).length, 1);
  await other.stop();
  await w.run('check');
});

test('a job that a worker of kue holds is left to it', async (q) => {
  const k = await side(q), w = weir(q);
  await k.do('work', { type: 'mail' });
  const id = await w.add('mail', '{"sleep":2500}', '--attempts', 3);
  await until('taken', async () => (await w.job(id)).state === 'active');
  const held = await hash(`${q}:job:${id}`);
  const worker = await w.start('work', 'mail', '--quiet', '--lease', '200ms', '--exec', noting(q));
  await until('complete', async () => {
    const h = await hash(`${q}:job:${id}`);
    if (h.state === 'active') same([h.started_at, h.workerId], [held.started_at, held.workerId]);
    return h.state === 'complete';
  });
  same([ran(q), k.ran.length, (await w.job(id)).lost || 0], [[], 1, 0]);
  await worker.stop();
  await w.run('check');
});

test('a job that kue has taken since: no lease of before counts, and no late answer', async (q) => {
  const k = await side(q), w = weir(q);
  const go = file(q, 'go');
  const dead = await w.start('work', 'dead', '--quiet', '--lease', '3s', '--exec', 'exec sleep 100');
  const late = await w.start('work', 'late', '--exec', `until [ -e ${go} ]; do sleep 0.1; done; echo 1`);
  const ids = [await k.do('add', { type: 'dead', data: { sleep: 5000, result: 2 } }),
    await k.do('add', { type: 'late', data: { sleep: 3000, result: 2 } })];
  for (const id of ids) await until('taken', async () => (await w.job(id)).state === 'active');
  for (const id of ids) assert((await w.job(id)).lease_until > 0);
  await dead.kill9();
  await k.do('work', { type: 'dead' });
  await k.do('work', { type: 'late' });
  for (const id of ids) await k.do('restart', { id });
  await until('kue has both', () => k.ran.length === 2);
  for (const id of ids) same((await w.job(id)).lease_until, undefined);
  fs.writeFileSync(go, '');
  for (const id of ids) await until('complete', async () => (await w.job(id)).state === 'complete');
  await late.stop();
  for (const id of ids) {
    const job = await w.job(id);
    same([job.result, job.lost || 0, job.attempts], [2, 0, 1]);
    assert(job.finished_at - job.started_at >= 2900, 'kue did it to the end');
  }
  same(k.ran.length, 2);
  await w.run('check');
});

test('text in backoff is not evaluated', async (q) => {
  const k = await side(q), w = weir(q), mark = file(q, 'evaluated');
  const texts = [`require('fs').writeFileSync('${mark}', 'x')`, '(function(){ return 5 })()', '{"type":"evil"}',
    '{"type":"fixed","delay":"x"', '[1,2', 'true', '{"type":"fixed","delay":1e999}', '{'.repeat(900), 'redis.call("FLUSHALL")',
    'function( attempts, delay ) { return 1; }'];
  const ids = [];
  for (const text of texts) {
    const id = await k.do('add', { type: 'mail', attempts: 2 });
    await command('HSET', `${q}:job:${id}`, 'backoff', text);
    ids.push(id);
  }
  await w.run('list', '--all');
  const worker = await w.start('work', 'mail', '--quiet', '--exec', noting(q) + '; [ $WEIR_JOB_ATTEMPT = 2 ]');
  const waits = ids[6];                  // 1e999 ms are as long as weir waits at most
  await until('tried', async () => await count(q, 'complete') === texts.length - 1);
  same((await w.job(waits)).state, 'delayed');
  for (let i = 0; i < texts.length; i++) same((await hash(`${q}:job:${ids[i]}`)).backoff, texts[i]);
  same(fs.existsSync(mark), false);
  same(ran(q).length, 2 * texts.length - 1);
  await worker.stop();
});

test('what kue wrote half is no job, and stays', async (q) => {
  const k = await side(q), w = weir(q);
  const id = await k.do('add', { type: 'mail' });
  await command('INCR', `${q}:ids`);
  await command('HSET', `${q}:job:2`, 'updated_at', 1);
  for (const key of ['jobs', 'jobs:inactive', 'jobs:mail:inactive']) await command('ZADD', `${q}:${key}`, -20, '01|2');
  for (const key of ['jobs', 'jobs:complete', 'jobs:mail:complete']) await command('ZADD', `${q}:${key}`, -20, '01|9');
  await command('ZADD', `${q}:jobs:delayed`, 5, '01|8');
  same(await w.ids(), [id]);
  same(await w.ids('--state', 'complete'), []);
  await assert.rejects(w.job(2));
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', noting(q));
  same(ran(q), [id]);
  same(await hash(`${q}:job:2`), { updated_at: '1' });
});

// Jobs of a lot are taken and ended together, as far as they are still alike.
test('of a lot, jobs that others have changed are what they are now', async (q) => {
  const w = weir(q), server = await serve('--store', url(q), 'serve', '--listen', '127.0.0.1:0');
  const post = async (what, body) => (await fetch(`http://127.0.0.1:${server.port}/v1/${what}`,
    { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();
  await w.run('add', 'a', '{"n":1}', '--count', 10);
  await command('HSET', `${q}:job:3`, 'ttl', 90000);
  await command('HSET', `${q}:job:8`, 'max_attempts', 7);
  await command('HSET', `${q}:job:4`, 'anything', 'else');
  await command('HDEL', `${q}:job:5`, 'data');
  await command('HSET', `${q}:job:6`, 'removeOnComplete', 'true');
  await command('HSET', `${q}:job:7`, 'state', 'failed');
  await command('ZREM', `${q}:jobs:a:inactive`, '02|10');          // a worker of Kue's is just taking it
  await command('ZADD', `${q}:jobs:b:inactive`, 0, '02|10');
  const { jobs } = await post('take', { types: ['a', 'b'], n: 10, worker: 'me' });
  same(jobs.map((j) => [j.id, j.ttl, j.max_attempts, j.data, j.workerId]),
    [[1, undefined, 1, { n: 1 }, 'me'], [2, undefined, 1, { n: 1 }, 'me'], [3, 90000, 1, { n: 1 }, 'me'],
      [4, undefined, 1, { n: 1 }, 'me'], [5, undefined, 1, {}, 'me'], [6, undefined, 1, { n: 1 }, 'me'],
      [8, undefined, 7, { n: 1 }, 'me'], [9, undefined, 1, { n: 1 }, 'me']]);
  same(await command('EXISTS', `${q}:jobs:a:inactive`, `${q}:jobs:b:inactive`), 0);
  await command('HSET', `${q}:job:4`, 'state', 'failed');
  await command('HSET', `${q}:job:2`, 'priority', -5);
  const { results } = await post('finish', { jobs: jobs.map((j) => ({ id: j.id, delivery: 1, result: 'ok' })) });
  same(results.map((r) => (r.error ? 'refused' : r.state)),
    ['complete', 'complete', 'complete', 'refused', 'complete', null, 'complete', 'complete']);
  same(await command('ZRANGE', `${q}:jobs:a:complete`, 0, -1, 'WITHSCORES'),
    ['01|2', '-5', '01|1', '0', '01|3', '0', '01|5', '0', '01|8', '0', '01|9', '0']);
  same(await command('ZRANGE', `${q}:jobs:active`, 0, -1), ['01|4']);
  same(await command('EXISTS', `${q}:weir:ttl`), 0);
  await gone(q, 6);
  const h = await hash(`${q}:job:2`);
  same([h.state, h.progress, h.attempts, h.result], ['complete', '100', '1', '"ok"']);
});

test('a worker of kue without tokens gets some', async (q) => {
  const k = await side(q), w = weir(q);
  await w.run('add', 'mail', '--count', 5, '--quiet');
  await command('DEL', `${q}:mail:jobs`);
  await k.do('work', { type: 'mail' });
  const other = await w.start('work', 'other', '--quiet', '--exec', 'true');
  await until('all done', async () => await count(q, 'complete') === 5);
  await other.stop();
});

test('cancelled jobs: kue leaves them alone, and can restart or remove them', async (q) => {
  const k = await side(q), w = weir(q);
  const ids = (await w.run('add', 'mail', '--count', 3)).split('\n').map(Number);
  await w.run('cancel', ...ids);
  await k.do('work', { type: 'mail' });
  same((await k.do('get', { id: ids[0] })).state, 'cancelled');
  const id = await w.add('mail');
  await until('complete', async () => (await w.job(id)).state === 'complete');
  same(k.ran.map((r) => r.ran), [id]);
  await k.do('restart', { id: ids[0] });
  await until('complete', async () => (await w.job(ids[0])).state === 'complete');
  await k.do('remove', { id: ids[1] });
  await until('noticed', async () => (await w.ids('--state', 'cancelled')).length === 1);
  same(await w.ids('--state', 'cancelled'), [ids[2]]);
  same(Number(await w.run('count', '--state', 'cancelled')), 1);
  await w.run('retry', ids[2]);
  await until('complete', async () => (await w.job(ids[2])).state === 'complete');
});

test('what kue has ended is in the lists of weir by its end, and goes with retention', async (q) => {
  const k = await side(q), w = weir(q);
  await k.do('work', { type: 'mail', n: 1 });
  const ids = [];
  for (const p of [3, 2, 1]) {
    ids.push(await k.do('add', { type: 'mail', priority: p, data: { fail: p === 2 ? 1 : 0 } }));
    await until('ended', async () => await count(q, 'complete') + await count(q, 'failed') === ids.length);
  }
  same(await w.ids('--state', 'complete', '--reverse'), [ids[0], ids[2]]);
  same(await w.ids('mail', '--state', 'complete'), [ids[2], ids[0]]);
  const other = await w.start('work', 'other', '--quiet', '--exec', 'true');
  await until('its list is even', async () => await command('ZCARD', `${q}:weir:done:mail:complete`) === 2);
  await w.run('types', 'mail', '--keep-complete', '1');
  await until('the oldest went', async () => (await w.ids('--state', 'complete')).length === 1);
  same(await w.ids(), [ids[2], ids[1]]);
  await gone(q, ids[0]);
  await other.stop();
  await w.run('check');
});

test('kue shuts down and weir takes over, and the other way round', async (q) => {
  const k = await side(q), w = weir(q);
  await k.do('work', { type: 'mail', n: 2 });
  await w.run('add', 'mail', '{"sleep":20}', '--count', 20, '--quiet');
  await until('some are done', () => k.ran.length > 4);
  await k.do('shutdown');
  await w.run('add', 'mail', '{"sleep":20}', '--count', 20, '--quiet');     // kue may have done all of them
  const worker = await w.start('work', 'mail', '--quiet', '--exec', noting(q) + '; sleep 0.02');
  await until('some more', () => ran(q).length > 4);
  await worker.stop();
  const other = await side(q);
  await other.do('work', { type: 'mail' });
  await until('the rest', async () => await count(q, 'complete') === 40);
  same(sorted([...k.ran.map((r) => r.ran), ...ran(q), ...other.ran.map((r) => r.ran)]),
    Array.from({ length: 40 }, (_, i) => i + 1));
  await w.run('check');
});

test("while kue's promoter has its lock, weir promotes nothing that is due", async (q) => {
  const w = weir(q);
  const worker = await w.start('work', 'mail', '--quiet', '--exec', 'true');
  await command('SET', 'promotion:lock', 'kue', 'PX', 3000);
  const until_ms = await command('PEXPIRETIME', 'promotion:lock');
  const id = await w.add('mail', '--delay', '200ms');
  const late = await w.add('mail', '--delay', '1h');
  await w.run('promote', late);          // by hand and before its time: Kue's promoter does not see it
  await until('done', async () => (await w.job(late)).state === 'complete');
  await until('the lock is over', async () => {
    const h = await hash(`${q}:job:${id}`);
    if (await command('EXISTS', 'promotion:lock')) same(h.state, 'delayed');
    return h.state === 'complete';
  });
  const job = await w.job(id);
  assert(job.started_at >= until_ms, JSON.stringify(job));
  await command('SET', 'promotion:lock', 'not of kue');
  const other = await w.add('mail', '--delay', '100ms');
  await until('done', async () => (await w.job(other)).state === 'complete');
  await worker.stop();
});

// Jobs as Kue leaves them, many at once.
async function written(q, n, each) {
  const batch = [];
  for (let id = 1; id <= n; id++) {
    const { type, state, score, priority, ...more } = each(id);
    const h = { type, state, priority, created_at: 1000, updated_at: 2000, promote_at: 1000, max_attempts: 1, data: '{}', ...more };
    batch.push(command('HMSET', `${q}:job:${id}`, ...Object.entries(h).flat()),
      command('ZADD', `${q}:jobs`, priority, zid(id)), command('ZADD', `${q}:jobs:${state}`, score, zid(id)),
      command('ZADD', `${q}:jobs:${type}:${state}`, priority, zid(id)), command('SADD', `${q}:job:types`, type));
  }
  batch.push(command('SET', `${q}:ids`, n));
  await Promise.all(batch);
}

// The ids of jobs in an order: by a number, then by id.
const order = (n, fits, by) => Array.from({ length: n }, (_, i) => i + 1).filter(fits)
  .sort((a, b) => by(a) - by(b) || a - b);

test('long lists of what kue has ended, and of what waits', async (q) => {
  const w = weir(q), n = 6000, end = (id) => 5000 + (id * 7919) % 1000;
  const now = Date.now(), due_at = (id) => now + 1e7 + ((id * 31) % 97) * 1000;
  const done = (id) => id % 2 === 0, type = (id) => (id % 30 === 1 ? 'rare' : 'mail');
  await written(q, n, (id) => (done(id)
    ? { type: 'mail', state: 'complete', priority: id % 3, score: id % 3, started_at: end(id) - 10, duration: 10, progress: 100, attempts: 1 }
    : { type: type(id), state: 'delayed', priority: id % 3, score: due_at(id), promote_at: due_at(id) }));
  const worker = await w.start('work', 'other', '--quiet', '--exec', 'true');
  await until('the list is even', async () => await command('ZCARD', `${q}:weir:done:mail:complete`) === n / 2);
  same(await w.ids('--all', '--reverse'), order(n, () => true, () => 0));
  same(await w.ids('mail', '--all'), order(n, (id) => done(id) || type(id) === 'mail', () => 0).reverse());
  same(await w.ids('--state', 'complete', '--all', '--reverse'), order(n, done, end));
  same(await w.ids('mail', '--state', 'complete', '--all'), order(n, done, end).reverse());
  same(await w.ids('--state', 'delayed', '--all'), order(n, (id) => !done(id), due_at));
  for (const t of ['mail', 'rare']) {
    const ids = order(n, (id) => !done(id) && type(id) === t, due_at);
    same(await w.ids(t, '--state', 'delayed', '--all'), ids);
    same(await w.ids(t, '--state', 'delayed', '--all', '--reverse'), ids.reverse());
  }
  // What Kue removes is out of our list, too.
  const k = await side(q);
  await k.do('remove', { id: 2 });
  await until('noticed', async () => await command('ZSCORE', `${q}:weir:done:mail:complete`, '01|2') === null);
  await worker.stop();
  await w.run('check');
});

test('values: what one side sets, the other gets', async (q) => {
  const k = await side(q), w = weir(q);
  const id = await w.add('mail', '{}', '--set', 'color=red', '--set', 'tries=2', '--set', 'list=[1,"x"]',
    '--set', 'digits="5"');
  for (const [name, text] of [['color', 'red'], ['tries', '2'], ['list', '[1,"x"]'], ['digits', '"5"']])
    same(await k.do('field', { id, name }), text);
  await k.do('set', { id, name: 'color', value: 'blue' });
  await k.do('set', { id, name: 'size', value: 7 });
  await k.do('set', { id, name: 'note', value: 'two words' });
  same((await w.job(id)).values, { color: 'blue', digits: '5', list: [1, 'x'], note: 'two words', size: 7, tries: 2 });
  await w.run('set', id, 'tries=null', 'note=seen');
  same([await k.do('field', { id, name: 'tries' }), await k.do('field', { id, name: 'note' })], [null, 'seen']);
  same((await k.do('get', { id })).state, 'inactive');
  await k.do('work', { type: 'mail' });
  await until('complete', async () => (await w.job(id)).state === 'complete');
  same((await w.job(id)).values, { color: 'blue', digits: '5', list: [1, 'x'], note: 'seen', size: 7 });
  const ours = await k.do('add', { type: 'ours' });
  await k.do('set', { id: ours, name: 'a b', value: 'no name of a value' });
  await k.do('set', { id: ours, name: 'v', value: '1' });
  const worker = await w.start('work', 'ours', '--quiet', '--exec', 'true');
  await until('complete', async () => (await w.job(ours)).state === 'complete');
  same((await w.job(ours)).values, { v: 1 });
  await w.run('set', ours, 'w=2');
  same([(await hash(`${q}:job:${ours}`))['a b'], (await w.job(ours)).values], ['no name of a value', { v: 1, w: 2 }]);
  await worker.stop();
  await w.run('check');
  same(k.errors, []);
});

test('vertx: names, fields and sets are those of Vert.x Kue', async (q) => {
  const w = weir(q, 'profile=vertx');
  const id = await w.add('mail', '{"to":"ann"}', '-p', 'high', '--attempts', 3, '--backoff', 'fixed:1s');
  const h = await hash(`${q}:job:${id}`);
  assert(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/.test(h.address_id), h.address_id);
  same([h.id, h.zid, h.type, h.priority, h.state, h.data], ['1', '01|1', 'mail', 'HIGH', 'INACTIVE', '{"to":"ann"}']);
  same([h.attempts, h.max_attempts, h.delay, h.ttl, h.progress, h.duration, h.failed_at, h.started_at, h.removeOnComplete],
    ['0', '3', '0', '0', '0', '0', '0', '0', 'false']);
  same(h.backoff, '{"type":"fixed","delay":1000}');
  same((await w.job(id)).values, { address_id: h.address_id });
  await w.run('set', id, 'address_id=null', 'v=1');
  same((await w.job(id)).values, { address_id: h.address_id, v: 1 });
  await w.run('set', id, 'v=null');
  same(await command('ZRANGE', `${q}:jobs:mail:INACTIVE`, 0, -1, 'WITHSCORES'), ['01|1', '-10']);
  same(await command('LLEN', `${q}:mail:jobs`), 1);
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', 'echo 5');
  const done = await hash(`${q}:job:${id}`);
  same([done.state, done.attempts, done.result, done.progress], ['COMPLETE', '0', '5', '100']);
  same((await w.job(id)).attempts, 1);
  const odd = await w.add('mail', '--priority=-9');      // no name: the nearest, so that it can be read
  same((await hash(`${q}:job:${odd}`)).priority, 'HIGH');
  same((await w.job(odd)).priority, -9);
  await w.run('cancel', odd);
  same((await hash(`${q}:job:${odd}`)).state, 'FAILED');
  same([(await w.job(odd)).state, await count(q, 'FAILED')], ['cancelled', 0]);
  await w.run('check');
});

// What a producer of Vert.x Kue writes for a job that is not delayed, with these other fields.
async function added_by_vertx(q, more = {}) {
  const id = await command('INCR', `${q}:ids`), at = Date.now();
  const zid = `${String(String(id).length).padStart(2, '0')}|${id}`;
  const h = { address_id: `00000000-0000-4000-a000-${String(id).padStart(12, '0')}`, id, zid, type: 'mail', priority: 'NORMAL',
    state: 'INACTIVE', delay: 0, max_attempts: 1, attempts: 0, removeOnComplete: 'false', ttl: 0, progress: 0, created_at: at,
    promote_at: at, updated_at: at, failed_at: 0, started_at: 0, duration: 0, data: '{}', ...more };
  await command('SADD', `${q}:job:types`, 'mail');
  await command('HMSET', `${q}:job:${id}`, ...Object.entries(h).flat());
  await command('ZADD', `${q}:jobs`, 0, zid);
  for (const key of ['jobs:INACTIVE', 'jobs:mail:INACTIVE']) await command('ZADD', `${q}:${key}`, 0, zid);
  await command('LPUSH', `${q}:mail:jobs`, 1);
  return id;
}

test('vertx: a backoff in the hash without a type is fixed, without a delay that of the job', async (q) => {
  const w = weir(q, 'profile=vertx');
  const cases = [['{"delay":70}', '0', 70], ['{}', '40', 40], ['{"type":"fixed"}', '30', 30], ['{"type":"other","delay":70}', '0', 0]];
  for (const [backoff, delay] of cases) await added_by_vertx(q, { max_attempts: 2, backoff, delay });
  await w.run('work', 'mail', '--drain', '--quiet', '--exec', '[ "$WEIR_JOB_ATTEMPT" = 2 ]');
  for (let id = 1; id <= cases.length; id++) {
    const job = await w.job(id), h = await hash(`${q}:job:${id}`);
    same([job.state, job.attempts, h.backoff], ['complete', 2, cases[id - 1][0]]);
    assert(job.started_at - job.failed_at >= cases[id - 1][2], `${id}: ${job.started_at - job.failed_at}`);
  }
});

test('vertx: data that is not an object is refused', async (q) => {
  const w = weir(q, 'profile=vertx');
  const s = await serve('--store', url(q, 'profile=vertx'), 'serve', '--listen', '127.0.0.1:0');
  for (const data of ['[1]', '"text"', '5', 'null', 'true'])
    await assert.rejects(w.run('add', 'mail', data), /data: must be a JSON object in this store/);
  const id = await w.add('mail', ' {"n":1}');
  await assert.rejects(w.run('update', id, '--data', '[1]'), /data: must be a JSON object/);
  const answer = await ask(s.port, ['POST', '/job', [{ type: 'mail', data: [1] }, { type: 'mail' }]]);
  same(answer.status, 400);
  assert(/^\[\{"error":"jobs\[0\].data: must be a JSON object/.test(answer.body), answer.body);
  same((await ask(s.port, ['POST', '/v1/jobs', { type: 'mail', data: [] }])).status, 400);
  same((await ask(s.port, ['PUT', '/job', { type: 'mail', data: [] }])).status, 400);
  same((await ask(s.port, ['POST', '/v1/jobs', [{ type: 'mail' }, { type: 'mail', data: 1 }], { 'Idempotency-Key': 'k' }])).status, 400);
  same(await command('GET', `${q}:ids`), '1');
});

test('vertx: a job that nobody told of is found', async (q) => {
  const w = weir(q, 'profile=vertx');
  const worker = await w.start('work', 'mail', '--jobs', 2, '--quiet', '--exec', noting(q));
  for (let id = 1; id <= 5; id++) await added_by_vertx(q);
  await until('all done', async () => await count(q, 'COMPLETE') === 5);
  same(sorted(ran(q)), [1, 2, 3, 4, 5]);
  await w.add('mail');          // a token that came when its job was taken already goes with the next
  await until('one more', async () => await count(q, 'COMPLETE') === 6);
  same(await command('LLEN', `${q}:mail:jobs`), 0);
  await worker.stop();
});

test('search finds what either side adds', async (q) => {
  const k = await side(q), w = weir(q);
  await w.run('types', 'other', '--new', '--keep-complete', '7');         // has settings of its own
  const s = await serve('--store', url(q), 'serve', '--listen', '127.0.0.1:0', '--search', 'on');
  const found = async (word) => JSON.parse((await ask(s.port, ['GET', `/job/search?q=${word}`])).body).map(Number);
  const ours = [await w.add('mail', '{"title":"welcome aboard"}'), await w.add('other', '{"title":"welcome"}')];
  same(await found('welcome'), ours);
  same((await ask(s.port, ['POST', '/job', { type: 'mail', data: { to: 'bob', title: 'Welcome back' } }])).status, 200);
  const theirs = [await k.do('add', { type: 'mail', data: { title: 'you are welcome' } }),
    await k.do('add', { type: 'news', data: { deep: { title: 'Welcome!' } }, priority: 'high' })];
  const all = sorted([...ours, 3, ...theirs]);
  await until('all are found', async () => (await found('welcome')).length === all.length);
  same(await found('welcome'), all);
  same(await found('aboard'), [ours[0]]);
  // they work as before, and what is removed is not found any more
  await k.do('work', { type: 'news' });
  await until('done', async () => (await w.job(theirs[1])).state === 'complete');
  await k.do('remove', { id: theirs[1] });
  await until('forgotten', async () => (await found('welcome')).length === all.length - 1);
  await w.run('rm', theirs[0]);
  same(await found('you'), []);
  same(await command('KEYS', `${q}:search:*`), []);               // Kue's own index is left alone
  await until('its words are gone, too', () => w.run('check'));
});

test('vertx: search finds what Vert.x Kue adds', async (q) => {
  const w = weir(q, 'profile=vertx');
  const s = await serve('--store', url(q, 'profile=vertx'), 'serve', '--listen', '127.0.0.1:0', '--search', 'on');
  const id = await added_by_vertx(q, { data: '{"title":"Welcome"}' });
  await until('found', async () => (await ask(s.port, ['GET', '/job/search?q=welcome'])).body === `["${id}"]`);
  await w.run('rm', id);
  same((await ask(s.port, ['GET', '/job/search?q=welcome'])).body, '[]');
  await w.run('check');
});

test('weir migrate: kue adds and works while its jobs move', async (q) => {
  const N = 200, k = await side(q), w = weir(q), ids = [];
  const to = `redis+unix://${path.join(dir, 's')}?prefix=new-${q}`;
  const fails = (i) => (i % 11 ? 0 : 1);
  await k.do('work', { type: 'mail', n: 2 });
  const worker = await w.start('--store', to, 'work', 'mail', '--jobs', 2, '--quiet', '--exec', noting(q));
  const mover = await w.start('migrate', '--from', `redis+kue+unix://${path.join(dir, 's')}?prefix=${q}`,
    '--to', to, '--follow');
  const add = async () => ids.push(await k.do('add', { type: 'mail', attempts: 2,
    data: { sleep: 80, fail: fails(ids.length) }, delay: ids.length % 5 ? 0 : 50,
    backoff: { delay: 30, type: 'fixed' } }));
  while (ids.length < N) await add();
  await until('both have done some', async () => {
    if (k.ran.length + ran(q).length > ids.length - N) await add();      // N wait, not many more
    return k.ran.length && ran(q).length;
  });
  const there = async (...args) => Number(await w.run('--store', to, 'count', ...args));
  await until('all moved and done', async () => await there('--state', 'complete') === ids.length);
  await mover.stop();
  await worker.stop();
  same(await w.run('count'), '0');
  // each was done once, by Kue or by weir
  const by_kue = k.ran.filter((r) => r.made >= fails(ids.indexOf(r.ran))).map((r) => r.ran);
  assert(by_kue.length > 0 && ran(q).length > 0);
  same(sorted([...by_kue, ...ran(q)]), ids);
  same(k.errors, []);
  await w.run('check');
  await w.run('--store', to, 'check');
});

main();
