// jobs.mjs - the job service of Vert.x Kue, called over the bus: a job is created, watched and saved by one
// side, taken and done by the other. It finds the server in WEIR_STORE.
import { Bus } from '../../clients/js/bus.js';

const bus = new Bus();
const service = (action, args) => bus.call('vertx.kue.service.job.internal', action, args);

// The producer: a job has an address before it is saved, so that no event is missed.
const job = await service('createJob', { type: 'email', data: { to: 'ann@example.org' } });
const on = (event, handler) =>
    bus.consume(`vertx.kue.handler.job.${event}.${job.address_id}.${job.type}`, ({ body }) => handler(body));
await on('start', () => console.log('start'));
await on('progress', (percent) => console.log(`progress: ${percent} %`));
const completed = new Promise((resolve) => void on('complete', resolve));
const { state } = await service('saveJob', { job });
console.log(`saved: ${state}`);

// The worker: in another program, as a rule.
const taken = await service('takeJob', { type: 'email', worker: 'example' });
await service('jobProgress', { job: taken, complete: 1, total: 2 });
await service('jobDone', { job: { ...taken, result: { sent_to: taken.data.to } } });

const { result } = await completed;
console.log(`complete: ${JSON.stringify(result)}`);
console.log(`complete jobs: ${await service('completeCount', { type: 'email' })}`);
bus.close();
