// http.js SOCKET PREFIX - Kue's own JSON API on a free port, with its search, and its workers. What a
// worker does is in the job's data, as in api.js. Sends its port, and starts workers when told to.
'use strict';
const kue = require('kue');

const [, , socket, prefix] = process.argv;
const queue = kue.createQueue({
  prefix,
  redis: { createClientFactory: () => require('redis').createClient(socket) },
  disableSearch: false,
});
queue.on('error', (e) => process.send && process.send({ error: String(e) }));
queue.setMaxListeners(0);

function work(job, done) {
  const d = job.data || {};
  for (const line of d.log || []) job.log('%s', line);
  if (d.progress) job.progress(d.progress, 100, d.progress_data);
  if (d.hang) return;
  const made = Number(job.toJSON().attempts.made);
  if (made < (d.fail || 0)) done('no luck'); else done(null, d.result);
}

const started = new Set();
process.on('disconnect', () => process.exit(0));
process.on('message', (m) => {
  for (const type of m.what.types) {
    if (!started.has(type)) queue.process(type, 4, work);
    started.add(type);
  }
  process.send({ answer: m.n });
});
kue.app.set('env', 'test');     // do not print what is wrong with requests
// Its routes as it tries them, each once: method, path, and the pattern of paths.
const routes = kue.app._router.stack.filter((layer) => layer.route)
  .map(({ route, regexp }) => [Object.keys(route.methods)[0].toUpperCase(), route.path, regexp.source]);
const server = kue.app.listen(0, '127.0.0.1',
  () => process.send({ ready: true, port: server.address().port, routes }));
