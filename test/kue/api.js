// api.js WEIR MODULES [ONLY] - Kue's JSON API as the real Kue answers it and as `weir serve` does: the
// same requests go to both, and the answers must be the same: status, content type, and the body byte
// for byte, but for what plain() takes out. Where they differ on purpose, both answers are written
// down with the reason; docs/kue.md, "The HTTP API", tells of each.
'use strict';
const { ask, assert, main, serve, side, test: oneTest, until, url } = require('./rig');

// ---- asking ----

// Times are their own; that they are there, and are text, must be the same.
const plain = (text) => text
  .replace(/"(created_at|promote_at|updated_at|failed_at|started_at)":"\d{13}"/g, '"$1":"TIME"')
  .replace(/"duration":"\d+"/g, '"duration":"MS"')
  .replace(/"workTime":\d+/, '"workTime":MS')
  .replace(/"workerId":"[^"]+"/g, '"workerId":"NAME"');

// Both sides of a case. weir's store is one of these in turn.
const stores = { mem: () => 'mem:', 'redis+kue': (prefix) => url(`w${prefix}`) };
let store;

let routes;                             // Kue's: [method, path, pattern]
const asked = [];                       // what had the same answer from both

async function both(prefix, ...options) {
  const kue = await side(prefix, 'http.js');
  const weir = await serve('--store', store(prefix), 'serve', '--listen', '127.0.0.1:0', ...options);
  routes = kue.routes;
  const ports = { kue: kue.port, weir: weir.port };
  const pair = async (q) => ({ kue: await ask(ports.kue, q), weir: await ask(ports.weir, q) });
  const name = (q) => `${q[0]} ${q[1]} ${q[2] === undefined ? '' : JSON.stringify(q[2])}`;
  return {
    ports, kue,
    // The same answer from both: its body, if it is JSON.
    async same(...q) {
      const { kue: k, weir: w } = await pair(q);
      assert.deepStrictEqual({ ...w, body: plain(w.body) }, { ...k, body: plain(k.body) }, name(q));
      asked.push([q[0], q[1].replace(/\?.*/, '')]);
      return k.body && JSON.parse(k.body);
    },
    // The same in another order: arrays of texts.
    async sameSet(...q) {
      const { kue: k, weir: w } = await pair(q);
      assert.deepStrictEqual(JSON.parse(w.body).sort(), JSON.parse(k.body).sort(), name(q));
    },
    // Not the same, on purpose: [status, part of the body] of each.
    async differs(why, q, k, w) {
      const got = await pair(q);
      for (const [who, [status, part]] of [['kue', k], ['weir', w]]) {
        assert.strictEqual(got[who].status, status, `${who}: ${name(q)} (${why}): ${got[who].body}`);
        assert(got[who].body.includes(part), `${who}: ${name(q)} (${why}): ${got[who].body}`);
      }
    },
    // Have all that waits worked on, as the data says, until the counts are these on both sides.
    async work(types, counts) {
      await kue.do('work', { types });
      await until('kue to be done', async () => counted(await ask(ports.kue, ['GET', '/stats']), counts));
      while (await workOnce(ports.weir, types));
      assert(counted(await ask(ports.weir, ['GET', '/stats']), counts), 'weir has done the same');
    },
  };
}

function counted(answer, counts) {
  const have = JSON.parse(answer.body);
  return Object.keys(counts).every((state) => have[`${state}Count`] === counts[state]);
}

// What http.js does with a job, over weir's own API.
async function workOnce(port, types) {
  const post = async (path, body) => {
    const a = await ask(port, ['POST', path, body]);
    assert(a.status < 300, `${path}: ${a.status} ${a.body}`);
    return a.body && JSON.parse(a.body);
  };
  const { jobs: [job] } = await post('/v1/take', { types, n: 1, worker: 'api.js' });
  if (!job) return false;
  const d = job.data || {}, { id, delivery } = job;
  for (const text of d.log || []) await post(`/v1/jobs/${id}/log`, { text, delivery });
  if (d.progress)
    await post(`/v1/jobs/${id}/progress`,
      { delivery, done: d.progress, total: 100, data: d.progress_data });
  if (d.hang) return true;
  const end = job.attempts < (d.fail || 0) ? { error: 'no luck' } : { result: d.result };
  await post('/v1/finish', { jobs: [{ id, delivery, ...end }] });
  return true;
}

function test(what, run) {
  for (const name of Object.keys(stores))
    oneTest(`${what} (${name})`, (prefix) => { store = stores[name]; return run(prefix); });
}

const HOUR = 3600 * 1000;
const job = (type, data, options) => ({ type, data, options });

// ---- cases ----

test('an empty queue', async (prefix) => {
  const t = await both(prefix);
  for (const path of ['/stats', '/stats?x=1', '/job/types', '/job/search', '/job/search?q=',
    '/job/search?q=word', '/jobs/0..10', '/jobs/0..10/desc', '/jobs/-5..-1', '/jobs/inactive/0..10',
    '/jobs/bogus/0..10/asc', '/jobs/mail/failed/0..3', '/jobs/mail/failed/0..3/desc',
    '/jobs/mail/failed/stats', '/jobs/mail/bogus/stats', '/job/1', '/job/0', '/job/01', '/job/word',
    '/job/-1', '/job/1%2F2', '/job/%22%3Cb%3E', '/job/1/log', '/job/word/log', '/jobs/a..b',
    '/jobs/0..b', '/jobs/x..1/asc'])
    await t.same('GET', path);
  for (const q of [['DELETE', '/job/7'], ['PUT', '/job/7/state/inactive'], ['DELETE', '/job/word'],
    ['PUT', '/job/7/priority/1'], ['PUT', '/job/7/priority/low'], ['PUT', '/job/word/state/failed']])
    await t.same(...q);
});

test('adding jobs, with all options, and looking at them', async (prefix) => {
  const t = await both(prefix);
  const options = [{ priority: 'low' }, { priority: 'critical' }, { priority: -7 }, { priority: '3' },
    { priority: 0 }, { attempts: 5 }, { attempts: '4' }, { attempts: 0 }, { delay: HOUR }, { delay: 0 },
    { delay: -5 }, { ttl: 5000 }, { ttl: -1 }, { backoff: true }, { backoff: false },
    { backoff: { type: 'fixed', delay: 100 } }, { removeOnComplete: true }, { unheard: 'of' }, null, {},
    { backoff: { type: 'exponential', delay: 100, maxDelay: 9000 } },
    { priority: 'medium', attempts: 2, delay: HOUR, ttl: 100, removeOnComplete: true,
      backoff: { type: 'fixed', delay: 1 }, searchKeys: ['title'] }];
  const datas = [{ title: 'Hi', to: ['a', 'b'] }, undefined, null, 0, 'text', 7, [1, { a: [] }, {}],
    { deep: { text: '\u00e9 <b>"quoted"</b>\n', none: null } }];
  const bodies = [
    ...datas.map((data) => job('mail', data)), ...options.map((o) => job('opts', { title: 'x' }, o)),
    { type: 'mail', data: {}, other: 'member' }, job('t\u00e4st/"x', {}),
    [job('mail'), job('mail', { n: 1 }), job('a', {}, { priority: 'high' })],
    [job('mail'), {}, { data: 1 }, 7, 'text', [], job('mail')],
    [{}], {}, [], { data: {} }, job(''), job(null), job(0), job(false),
  ];
  for (const body of bodies) await t.same('POST', '/job', body);
  await t.same('POST', '/job', undefined);
  await t.same('POST', '/job', '');
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'])
    await t.same('POST', '/job', '{"type":"mail"}', { 'Content-Type': type });
  await t.same('POST', '/job', ' {"type" : "mail",\n"data":{ "a" : [ 1 , 2 ] } } ',
    { 'Content-Type': 'application/json; charset=utf-8' });

  const jobs = await t.same('GET', '/jobs/0..-1');
  assert(jobs.length > 30);
  for (const { id } of jobs) {
    await t.same('GET', `/job/${id}`);
    await t.same('GET', `/job/${id}/log`);
  }
  await t.same('GET', '/stats');
  await t.sameSet('GET', '/job/types');
  await t.same('GET', '/jobs/t%C3%A4st%2F%22x/inactive/stats');
  await t.same('GET', '/jobs/t%C3%A4st%2F%22x/inactive/0..1');
});

test('what Kue stores unseen is refused', async (prefix) => {
  const t = await both(prefix);
  for (const [why, what, member] of [
    ['text would be evaluated', job('x', {}, { backoff: 'function(){}' }), 'backoff'],
    ['a number is no backoff', job('x', {}, { backoff: 7 }), 'backoff'],
    ['it breaks the worker', job('x', {}, { backoff: { type: 'other' } }), 'backoff'],
    ['the job never runs', job('x', {}, { priority: 'soon' }), 'priority'],
    ['it is no number', job('x', {}, { attempts: 'many' }), 'attempts'],
    ['it is below 0', job('x', {}, { attempts: -1 }), 'attempts'],
    ['it is ignored there', job('x', {}, { delay: '5s' }), 'delay'],
    ['it is no text', job(7), 'type'],
    ['they are no object', job('x', {}, 'all'), 'options'],
  ])
    await t.differs(why, ['POST', '/job', what], [200, 'job created'], [400, `{"error":"${member}: `]);
  for (const [body, part] of [['{"type":', 'not JSON'], ['"text"', 'the body must be']])
    await t.differs('an error is a page there', ['POST', '/job', body], [400, '<!DOCTYPE html>'],
      [400, `{"error":"${part}`]);
  await t.differs('null breaks the request off there', ['POST', '/job', '[null]'], [500, 'TypeError'],
    [400, '[{"error":"Must provide job type"}]']);
});

test('numbers keep their digits', async (prefix) => {
  const t = await both(prefix);
  await t.same('POST', '/job', '{"type":"n","data":[12345678901234567890,1.50]}');
  await t.differs('they go through a double there', ['GET', '/job/1'],
    [200, '"data":[12345678901234567000,1.5]'], [200, '"data":[12345678901234567890,1.50]']);
});

test('ranges of every kind', async (prefix) => {
  const t = await both(prefix);
  const priorities = ['low', 'normal', 'high', -3, 'critical'];
  const lot = [];
  for (let i = 0; i < 24; i++)
    lot.push(job(i % 3 ? 'mail' : 'video', { i },
      { priority: priorities[i % 5], delay: i % 4 ? 0 : HOUR * (1 + i * 7 % 5) }));
  await t.same('POST', '/job', lot);
  const lists = ['', '/inactive', '/delayed', '/mail/inactive', '/video/inactive', '/mail/delayed',
    '/mail/failed', '/none/inactive'];
  const ranges = ['0..0', '0..10', '3..7', '7..3', '-1..-1', '-5..-2', '-100..4', '0..-1', '20..100',
    '100..200', '5..-5', '-2..0', '0..3x', '2..1e3', '%201..2', '+1..2'];
  for (const list of lists)
    for (const range of ranges)
      for (const order of ['', '/asc', '/desc', '/other'])
        await t.same('GET', `/jobs${list}/${range}${order}`);
  for (const type of ['mail', 'video', 'none'])
    for (const state of ['inactive', 'delayed', 'active', 'complete', 'failed', 'bogus'])
      await t.same('GET', `/jobs/${type}/${state}/stats`);
  await t.same('GET', '/stats');
});

test('jobs that were worked on', async (prefix) => {
  const t = await both(prefix);
  await t.same('POST', '/job', [
    job('w', { result: { sent: true, n: [1, 2] } }), job('w', { result: 'text' }),
    job('w', { result: 7 }), job('w', {}), job('w', { log: ['one', 'two "quoted"', '\u00e9'] }),
    job('w', { progress: 33, progress_data: { step: 1 }, hang: true }), job('w', { fail: 9 }),
    job('w', { fail: 1 }, { attempts: 3, priority: 'high' }),
    job('w', { result: {} }, { priority: 'low' }), job('w', {}, { removeOnComplete: true }),
    job('w', { fail: 9 }, { attempts: 2 }), job('w', {}, { delay: HOUR }),
  ]);
  await t.work(['w'], { complete: 7, failed: 2, active: 1, delayed: 1, inactive: 0 });
  for (const id of [1, 2, 3, 4, 5, 6, 9, 10, 12]) {
    await t.same('GET', `/job/${id}`);
    await t.same('GET', `/job/${id}/log`);
  }
  for (const id of [7, 11]) {
    await t.same('GET', `/job/${id}`);
    await t.differs('a failure is logged with its text', ['GET', `/job/${id}/log`], [200, '[""'],
      [200, '["error | no luck"']);
  }
  await t.differs('an error goes when a later attempt succeeds', ['GET', '/job/8'],
    [200, '"state":"complete","error":"no luck"'], [200, '"state":"complete","created_at"']);
  await t.same('GET', '/stats');
  for (const state of ['failed', 'active', 'delayed', 'w/failed', 'w/active', 'w/delayed'])
    for (const range of ['0..10', '0..0', '-1..-1', '1..1/desc', '0..10/desc'])
      await t.same('GET', `/jobs/${state}/${range}`);
  for (const range of ['1..5', '1..1', '2..3/desc', '-1..-1'])      // rank 0 is job 8
    for (const list of ['complete', 'w/complete'])
      await t.same('GET', `/jobs/${list}/${range}`);
});

test('changing jobs', async (prefix) => {
  const t = await both(prefix);
  await t.same('POST', '/job', [job('p', { n: 1 }), job('p', { n: 2 }), job('p', { n: 3 }, { delay: HOUR }),
    job('p', { n: 4 }, { delay: HOUR, priority: 'high' }), job('q', { n: 5 })]);
  const lists = ['/stats', '/jobs/0..-1', '/jobs/0..1', '/jobs/inactive/0..1', '/jobs/delayed/0..9',
    '/jobs/p/inactive/0..0', '/jobs/p/delayed/0..0'];
  for (const q of [
    ['PUT', '/job/2/priority/-10'], ['PUT', '/job/1/priority/5x'], ['PUT', '/job/1/priority/%205'],
    ['PUT', '/job/1/priority/x5'], ['PUT', '/job/4/priority/3'], ['PUT', '/job/3/state/inactive'],
    ['PUT', '/job/3/state/delayed'], ['PUT', '/job/1/state/inactive'], ['PUT', '/job/4/state/delayed'],
    ['DELETE', '/job/2'], ['DELETE', '/job/2'], ['GET', '/job/2'], ['GET', '/job/2/log'],
    ['PUT', '/job/2/state/inactive'], ['PUT', '/job/4/state/inactive', {}], ['DELETE', '/job/4', ''],
  ]) {
    await t.same(...q);
    for (const list of lists) await t.same('GET', list);
  }
  const done = [200, '{"message":"updated state"}'];
  // Set by hand: the same sets and counts. What is in the job is not: Kue writes nothing but the state.
  const sets = ['/stats', '/jobs/q/active/stats', '/jobs/q/complete/stats', '/jobs/q/failed/stats', '/jobs/q/inactive/stats'];
  for (const state of ['complete', 'failed', 'inactive', 'failed', 'complete', 'active']) {
    await t.same('PUT', `/job/5/state/${state}`);
    for (const path of sets) await t.same('GET', path);
    for (const port of [t.ports.kue, t.ports.weir]) {
      const there = JSON.parse((await ask(port, ['GET', '/job/5'])).body);
      assert.deepStrictEqual([there.state, there.data, there.attempts.made], [state, { n: 5 }, 0]);
    }
  }
  await t.differs('states are those there are', ['PUT', '/job/1/state/bogus'], done,
    [400, '{"error":"unknown state \\"bogus\\"']);
  // Who set it active may end it; a job that a worker has is the worker's.
  for (const state of ['complete', 'inactive']) await t.same('PUT', `/job/5/state/${state}`);
  const taken = await ask(t.ports.weir, ['POST', '/v1/take', { types: ['q'], n: 1, worker: 'api.js' }]);
  assert.strictEqual(JSON.parse(taken.body).jobs.length, 1);
  await t.differs('a worker has it', ['PUT', '/job/5/state/complete'], done,
    [409, '{"error":"job 5 is active: a worker has it']);
  await t.differs('it is a state here', ['PUT', '/job/5/state/cancelled'], done, done);
  await t.differs('a GET changes nothing', ['GET', '/inactive/3'], [200, '{"message":"job 3 inactive"}'],
    [405, '{"error":"a GET changes nothing here']);
});

test('a GET restarts a job where it may', async (prefix) => {
  const t = await both(prefix, '--kue-get');
  await t.same('POST', '/job', [job('g', {}, { delay: HOUR }), job('g', {})]);
  for (const id of [1, 2, 7]) await t.same('GET', `/inactive/${id}`);
  // Kue answers before it has done so.
  await until('kue to have it', async () => JSON.parse((await ask(t.ports.kue, ['GET', '/stats'])).body).inactiveCount === 2);
  await t.same('GET', '/stats');
  await t.same('GET', '/jobs/inactive/0..9');
});

// In this order Kue's repository asks its own API (test/jsonapi.js, which the package does not have).
test('what the tests of Kue ask', async (prefix) => {
  const t = await both(prefix, '--search', 'on');
  const one = (n) => job('test:inserts', { title: n, data: 'test:inserts:data' }, { priority: [10, 0, -5, -10, -15][n] });
  const { id } = await t.same('POST', '/job', one(0));
  assert.strictEqual((await t.same('POST', '/job', [0, 1, 2, 3, 4].map(one))).length, 5);
  assert.strictEqual((await t.same('GET', `/job/${id}`)).state, 'inactive');
  await t.same('PUT', `/job/${id}/state/active`);
  for (const port of [t.ports.kue, t.ports.weir])
    assert.strictEqual(JSON.parse((await ask(port, ['GET', `/job/${id}`])).body).state, 'active');
  assert((await t.same('DELETE', `/job/${id}`)).message.includes(id));
  assert.deepStrictEqual(await t.same('GET', '/job/search'), []);
  const found = '/job/search?q=test%3Ainserts%3Adata';
  await until('the index', async () => JSON.parse((await ask(t.ports.kue, ['GET', found])).body).length === 5);
  await t.sameSet('GET', found);
  assert.strictEqual((await t.same('GET', '/jobs/0..3')).length, 4);
  assert.strictEqual((await t.same('GET', '/jobs/test:inserts/inactive/0..20/asc')).length, 5);
  await t.same('GET', '/stats');
  const wrong = await t.same('POST', '/job', [one(0), { ...one(1), type: undefined }, one(2)]);
  assert.deepStrictEqual(wrong[1], { error: 'Must provide job type' });
});

test('failed jobs run again', async (prefix) => {
  const t = await both(prefix);
  await t.same('POST', '/job', [job('f', { fail: 9 }), job('f', { fail: 9 }, { priority: 'high' })]);
  await t.work(['f'], { failed: 2, inactive: 0, active: 0 });
  await t.same('GET', '/jobs/failed/0..9');
  await t.same('GET', '/jobs/failed/0..0');
  await t.same('DELETE', '/job/1');
  await t.same('GET', '/jobs/failed/0..9');
  await t.same('PUT', '/job/2/priority/7');
  await t.same('GET', '/job/2');
  await t.same('PUT', '/job/2/state/inactive');
  const tries = async () => JSON.parse((await ask(t.ports.kue, ['GET', '/job/2/log'])).body).length;
  await until('kue to try', async () => await tries() > 1);
  await t.work(['f'], { failed: 1, inactive: 0, active: 0 });
  // Kue has queued it twice, and may run it twice.
  await until('the same end', async () => (await t.same('GET', '/job/2')).state === 'failed');
});

test('searching', async (prefix) => {
  const t = await both(prefix);
  const found = async (word) => (await ask(t.ports.kue, ['GET', `/job/search?q=${word}`])).body;
  await t.same('POST', '/job', [
    job('s', { title: 'welcome aboard', to: 'ann' }, { searchKeys: 'title' }),
    job('s', { title: 'welcome back', to: 'bob' }, { searchKeys: ['title', 'to'] }),
    job('s', { title: 'nothing', deep: { name: 'zebra' } }, { searchKeys: ['deep.name'] })]);
  await until('the index', async () => await found('zebra') === '["3"]');
  for (const q of ['welcome', 'aboard', 'zebra', 'bob', 'ann', 'unheard', 'welcome+back'])
    await t.sameSet('GET', `/job/search?q=${q}`);
  await t.same('DELETE', '/job/2');
  await until('the index', async () => await found('bob') === '[]');
  for (const q of ['welcome', 'bob']) await t.same('GET', `/job/search?q=${q}`);
});

test('who accepts no JSON finds nothing', async (prefix) => {
  const t = await both(prefix);
  for (const accept of ['*/*', 'application/json', 'application/*;q=0.5', 'text/html, */*;q=0.1',
    'APPLICATION/JSON', 'text/html,application/json;q=0.2'])
    await t.same('GET', '/stats', undefined, { Accept: accept });
  for (const accept of ['text/html', 'application/json;q=0', 'text/*, application/json;q=0, */*',
    'application/jsonp', 'application/json;version=1'])
    for (const [method, path, body] of [['GET', '/stats'], ['DELETE', '/job/1'], ['POST', '/job', job('x')]])
      await t.differs('404 is a page there', [method, path, body, { Accept: accept }], [404, 'Cannot'],
        [404, '"error"']);
  await t.same('GET', '/stats');
});

test('a browser gets a page', async (prefix) => {
  const t = await both(prefix);
  for (const path of ['/', '/active', '/inactive', '/failed', '/complete', '/delayed'])
    for (const port of [t.ports.kue, t.ports.weir]) {
      const page = await ask(port, ['GET', path, undefined, { Accept: 'text/html' }]);
      assert.deepStrictEqual([page.status, page.type], [200, 'text/html; charset=utf-8'], `${path}: ${page.body}`);
      asked.push(['GET', path]);
    }
});

// The same dice on both sides; a seed that fails can be given again.
test('anything, in any order', async (prefix) => {
  const t = await both(prefix);
  let seed = Number(process.env.WEIR_TEST_SEED) || 20261116;
  console.log(`# WEIR_TEST_SEED=${seed}`);
  const die = (n) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor(seed / 65536) % n;
  };
  const of = (...list) => list[die(list.length)];
  const type = () => of('mail', 'video', 'x');
  const state = () => of('inactive', 'delayed', 'failed', 'active', 'complete', 'bogus');
  const range = () => `${die(30) - 10}..${die(40) - 10}${of('', '/asc', '/desc')}`;
  let n = 0;
  const id = () => 1 + die(n + 3);
  const one = () => job(type(), of({ n }, {}, [n], 'text', undefined),
    of(undefined, {}, { priority: of('low', 'high', 4, '-2') }, { delay: HOUR * (1 + die(9)) },
      { attempts: 1 + die(4), ttl: 1000 + die(9) }));
  const requests = [
    () => ['POST', '/job', one()], () => ['POST', '/job', [one(), one(), of({}, one())]],
    () => ['GET', `/job/${id()}`], () => ['GET', `/job/${id()}/log`], () => ['GET', '/stats'],
    () => ['GET', `/jobs/${range()}`], () => ['GET', `/jobs/${state()}/${range()}`],
    () => ['GET', `/jobs/${type()}/${state()}/${range()}`],
    () => ['GET', `/jobs/${type()}/${state()}/stats`], () => ['DELETE', `/job/${id()}`],
    () => ['PUT', `/job/${id()}/priority/${of(die(20) - 10, 'x', '3y')}`],
    () => ['PUT', `/job/${id()}/state/inactive`],
  ];
  for (let i = 0; i < 600; i++) {
    const answer = await t.same(...of(...requests)());
    for (const made of [].concat(answer)) if (made && made.message === 'job created') n = made.id;
  }
  assert(n > 50);
});

// The last case: those before it have asked. A path belongs to the first route that takes it.
test('every route of Kue was asked', async (prefix) => {
  await both(prefix);
  const first = (method, path) => routes.find(([m, , pattern]) => m === method && new RegExp(pattern, 'i').test(path));
  const had = new Set(asked.map(([method, path]) => first(method, path)).filter(Boolean).map(([m, path]) => `${m} ${path}`));
  assert(routes.length >= 20, `${routes.length} routes`);
  assert.deepStrictEqual(routes.map(([m, path]) => `${m} ${path}`).filter((r) => !had.has(r)), []);
});

main();
