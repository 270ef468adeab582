// side.js SOCKET PREFIX - one process of the real Kue: adds jobs, works, listens. Does what the
// test's messages ask, and sends answers, events and what its workers do.
//
// What a worker does is in the job's data: fail (times), sleep (ms), log, progress, result, hang.
'use strict';
const kue = require('kue');

const [, , socket, prefix] = process.argv;
const queue = kue.createQueue({
  prefix,
  redis: { createClientFactory: () => require('redis').createClient(socket) },
  promotion: { interval: 100 },
});
const tell = (message) => process.send && process.send(message);
queue.on('error', (e) => tell({ error: String(e) }));
queue.setMaxListeners(0);
for (const event of ['enqueue', 'start', 'promotion', 'progress', 'failed attempt', 'failed', 'complete',
  'remove', 'error', 'ttl exceeded', 'cancelled', 'stalled'])
  queue.on('job ' + event, (id, ...args) => tell({ event, id, args, at: Date.now() }));

function work(job, done) {
  const d = job.data || {};
  const made = Number(job.toJSON().attempts.made);
  tell({ ran: job.id, made, at: Date.now() });
  if (d.log) job.log('%s', d.log);
  if (d.progress) job.progress(d.progress, 100, { note: 'half' });
  if (d.hang) return;
  setTimeout(() => (made < (d.fail || 0) ? done(new Error('kue says no')) : done(null, d.result)),
    d.sleep || 0);
}

const get = (id) => new Promise((ok, no) => kue.Job.get(id, (e, job) => (e ? no(e) : ok(job))));

const doing = {
  add({ type, data, priority, attempts, delay, backoff, ttl, removeOnComplete }) {
    const job = queue.create(type, data || {});
    if (priority !== undefined) job.priority(priority);
    if (attempts) job.attempts(attempts);
    if (delay) job.delay(delay);
    if (backoff) job.backoff(backoff);
    if (ttl) job.ttl(ttl);
    if (removeOnComplete) job.removeOnComplete(true);
    return new Promise((ok, no) => job.save((e) => (e ? no(e) : ok(job.id))));
  },
  async many({ n, ...what }) {
    const ids = [];
    for (let i = 0; i < n; i++) ids.push(await doing.add(what));
    return ids;
  },
  work({ type, n }) { queue.process(type, n || 1, work); },
  async get({ id }) { return JSON.parse(JSON.stringify(await get(id))); },
  log({ id }) { return new Promise((ok, no) => kue.Job.log(id, (e, l) => (e ? no(e) : ok(l)))); },
  async restart({ id }) {
    const job = await get(id);
    return new Promise((ok, no) => job.inactive((e) => (e ? no(e) : ok())));
  },
  async remove({ id }) {
    const job = await get(id);
    return new Promise((ok, no) => job.remove((e) => (e ? no(e) : ok())));
  },
  async set({ id, name, value }) {
    const job = await get(id);
    return new Promise((ok, no) => job.set(name, value, (e) => (e ? no(e) : ok())));
  },
  async field({ id, name }) {
    const job = await get(id);
    return new Promise((ok, no) => job.get(name, (e, value) => (e ? no(e) : ok(value))));
  },
  ids({ state }) { return new Promise((ok, no) => queue[state]((e, l) => (e ? no(e) : ok(l)))); },
  shutdown() { return new Promise((ok) => queue.shutdown(2000, () => ok())); },
};

process.on('disconnect', () => process.exit(0));
process.on('message', async (m) => {
  try {
    tell({ answer: m.n, value: await doing[m.do](m.what) });
  } catch (e) {
    tell({ answer: m.n, failed: String(e && e.stack || e) });
  }
});
// Its own subscription must stand before anybody counts events.
require('kue/lib/queue/events').add({ id: 0 }, () => tell({ ready: true }));
