// Made by make-cjs.mjs from weir.js, worker.js, observe.js, bus.js: change those.
'use strict';

const { FIRST_PAUSE_MS, LAST_PAUSE_MS, pause, newKey, inTrace, workerName, WeirError, ReturnJob, trackTraces, traceNow, toJson, findServer, Weir } = (() => {
// weir.js - background jobs on a weir server, from Node 18, Deno or a browser; no dependencies.
//
//     import { Weir } from 'weir';
//
//     const queue = new Weir();       // the server of WEIR_STORE; or new Weir('http://...', { token: 'wtk_...' })
//     const { id } = await queue.add('mail', { to: 'ann@example.org' }, { priority: 'high', attempts: 3 });
//     console.log((await queue.wait(id, { timeoutMs: 10000 })).result);
//
//     await queue.work('mail', async (job) => send(job.data), { concurrency: 4, signal });
//
// Times are in milliseconds, and their names end in Ms; where the server takes a time (delay, ttl,
// backoff ...), a text such as "5s" does as well. What goes wrong is a WeirError.

const FIRST_PAUSE_MS = 100, LAST_PAUSE_MS = 10000;       // before another try; doubled each time
const LONG_POLL_MS = 30000, TRIES = 5;
const ENDED = ['complete', 'failed', 'cancelled'];

/** What went wrong: `status` of HTTP (0: no answer), `code` ("EINVAL"), `message`, `field`. */
class WeirError extends Error {
    constructor(status, code, message, field) {
        super(message);
        this.name = 'WeirError';
        this.status = status;
        this.code = code;
        this.field = field;
    }
}

/** Thrown by a handler to give the job back: it runs again after `delay` (milliseconds, or a text
 *  such as "5s"), and no attempt is used up. */
class ReturnJob extends Error {
    constructor(delay = 0) {
        super('the job runs again');
        this.delay = delay;
    }
}

const pause = (ms, signal) => new Promise((resolve) => {
    const timer = setTimeout(done, ms * (0.5 + Math.random()));
    function done() {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
    }
    signal?.addEventListener('abort', done);
});

// Unique is enough; Node 18 and pages without https have no crypto.randomUUID().
const newKey = () => globalThis.crypto?.randomUUID?.() ??
    Array.from({ length: 3 }, () => Math.random().toString(36).slice(2)).join('');

const query = (params) => {
    const text = new URLSearchParams(
        Object.entries(params).filter(([, v]) => v !== undefined && v !== null)).toString();
    return text && `?${text}`;
};

function environment(name) {
    try {
        return globalThis.Deno ? globalThis.Deno.env.get(name) : globalThis.process?.env?.[name];
    } catch {
        return undefined;           // Deno without --allow-env
    }
}

// The W3C trace context of what runs here: what it adds or sends belongs to this trace. Node and Deno
// know what runs; a browser has no such storage.
let storage;

async function trackTraces() {
    if (!globalThis.process?.versions?.node && !globalThis.Deno)
        return;
    const name = 'node:async_hooks';            // not for bundlers
    const { AsyncLocalStorage } = await import(name);
    storage ??= new AsyncLocalStorage();
}

const inTrace = (traceparent, fn) => storage ? storage.run({ traceparent }, fn) : fn();
function traceNow() {
    const inside = storage?.getStore();
    return inside ? inside.traceparent : environment('TRACEPARENT');
}

/** JSON, which has no NaN and no infinity: JSON.stringify() would make null of them. */
function toJson(value) {
    return JSON.stringify(value, (name, one) => {
        if (typeof one === 'number' && !Number.isFinite(one))
            throw new TypeError(`${name || 'the value'}: ${one} is not JSON; use null or a text`);
        return one;
    });
}

// "localhost:7340" would be a URL of the scheme "localhost".
const withoutScheme = (url) => /^([\w.-]+(:\d+)?|\[[0-9A-Fa-f:]+\](:\d+)?)$/.test(url);

/** Where the server is, and the token for it: { base, token }. What is not given: as Weir does. */
function findServer(url = environment('WEIR_STORE') || 'http://127.0.0.1:7340', token) {
    if (withoutScheme(url))
        throw new TypeError(`${url}: the scheme is missing; write http://${url} (as an argument or in WEIR_STORE)`);
    const at = new URL(url);
    if (!['http:', 'https:'].includes(at.protocol))
        throw new TypeError(`${at.protocol}...: not a weir server; expected http://HOST:7340 ` +
            '(as an argument or in WEIR_STORE)');
    token ??= at.searchParams.get('token') ?? environment('WEIR_TOKEN');
    at.search = '';
    return { base: String(at).replace(/\/+$/, ''), token };
}

const workqueuePath = (address) => `/v1/workqueues/${encodeURIComponent(address)}`;
const pathOf = (schedule) => `/v1/schedules/${encodeURIComponent(schedule)}`;

class Weir {
    #base;
    #token;
    #traceparent;

    /** Without arguments, in Node: the server of WEIR_STORE (else this machine's), and WEIR_TOKEN. Calls
     *  belong to the trace `traceparent`, or else to that of the handler that makes them. */
    constructor(url, { token, traceparent } = {}) {
        const server = findServer(url, token);
        this.#traceparent = traceparent;
        this.#base = server.base;
        this.#token = server.token;
    }

    #headers(more) {
        const traceparent = this.#traceparent ?? traceNow();
        return {
            ...(this.#token && { Authorization: `Bearer ${this.#token}` }),
            ...(traceparent && { traceparent }), ...more,
        };
    }

    /** One request. With `again` (GET always) it is repeated when no answer came. */
    async call(method, path, body, { headers = {}, again = method === 'GET', signal } = {}) {
        const init = { method, signal, headers: this.#headers(headers) };
        if (body !== undefined) {
            init.body = toJson(body);
            init.headers['Content-Type'] = 'application/json';
        }
        for (let left = TRIES - 1, wait = FIRST_PAUSE_MS; ; left--, wait *= 2) {
            let answer, text;
            try {
                answer = await fetch(this.#base + path, init);
                text = await answer.text();
            } catch (why) {
                if (signal?.aborted)
                    throw why;
                if (!again || !left)
                    throw new WeirError(0, 'EUNAVAIL',
                        `no answer from the server: ${why.cause?.message ?? why.message}`);
            }
            if (answer && !(answer.status === 503 && again && left))
                return Weir.#read(answer, text);
            await pause(wait, signal);
        }
    }

    static #read(answer, text) {
        let body;
        try {
            body = text ? JSON.parse(text) : undefined;
        } catch { /* not ours: a proxy's */ }
        if (answer.ok)
            return body;
        const e = body?.error ?? {};
        throw new WeirError(answer.status, e.code ?? String(answer.status),
            e.message ?? `HTTP status ${answer.status}`, e.field);
    }

    // ---- jobs ----

    /** Add a job: { id, state, existed, durability }. Repeated by itself when the line breaks,
     *  without adding twice. */
    add(type, data, options = {}) {
        return this.call('POST', '/v1/jobs', { ...options, type, data },
            { again: true, headers: { 'Idempotency-Key': newKey() } });
    }

    /** Add up to 10,000 jobs: answers in the same order, each as add() gives it or { error }. */
    async addMany(specs) {
        return (await this.call('POST', '/v1/jobs', specs,
            { again: true, headers: { 'Idempotency-Key': newKey() } })).results;
    }

    get(id) { return this.call('GET', `/v1/jobs/${id}`); }

    /** One page: { jobs, next }; give { after: next } for the next. The rest of the filter is that of
     *  GET /v1/jobs: state (one, or a list), type, priority, search, since, until, sort, order, limit ... */
    list(filter = {}) { return this.call('GET', `/v1/jobs${query(filter)}`); }

    /** The job when it has ended, or as it is after `timeoutMs`. */
    async wait(id, { timeoutMs = Infinity, signal } = {}) {
        const end = Date.now() + timeoutMs;
        for (;;) {
            const left = Math.max(0, Math.min(LONG_POLL_MS, end - Date.now()));
            const job = await this.call('GET', `/v1/jobs/${id}/wait?timeout=${Math.round(left)}ms`,
                undefined, { signal });
            if (ENDED.includes(job.state) || Date.now() >= end)
                return job;
        }
    }

    /** Set values of a job, in any state; null removes one. */
    set(id, values) { return this.call('POST', `/v1/jobs/${id}/values`, { values }); }
    retry(id) { return this.call('POST', `/v1/jobs/${id}/retry`); }
    promote(id) { return this.call('POST', `/v1/jobs/${id}/promote`); }
    cancel(id) { return this.call('POST', `/v1/jobs/${id}/cancel`); }
    /** Change a job, all of it or nothing: { priority, data, values, delay, run_at, state, from }. */
    update(id, changes) { return this.call('PATCH', `/v1/jobs/${id}`, changes); }
    remove(id) { return this.call('DELETE', `/v1/jobs/${id}`); }
    async log(id, after = 0) { return (await this.call('GET', `/v1/jobs/${id}/log?after=${after}`)).lines; }
    stats() { return this.call('GET', '/v1/stats'); }

    // ---- types ----

    /** All types, each with its counts and settings. */
    async types() { return (await this.call('GET', '/v1/types')).types; }
    /** Workers take no more jobs of this type ('*': of any), until resume(). */
    pause(type = '*') {
        return this.call('POST', `/v1/types/${encodeURIComponent(type)}/pause`, undefined, { again: true });
    }
    resume(type = '*') {
        return this.call('POST', `/v1/types/${encodeURIComponent(type)}/resume`, undefined, { again: true });
    }

    // ---- schedules ----

    /** Add a schedule, or change it: { when, job: { type, data ... }, zone, overlap, missed ... }. */
    schedulePut(name, schedule) { return this.call('PUT', pathOf(name), schedule); }
    schedule(name) { return this.call('GET', pathOf(name)); }
    /** All of them, in the order of names: for await (const s of queue.schedules()) ... */
    async *schedules() {
        for (let after = ''; after !== null;) {
            const page = await this.call('GET', `/v1/schedules${query({ after: after || null })}`);
            yield* page.schedules;
            after = page.next;
        }
    }
    /** When an expression fires next: { words, next: [ms ...] }. more: zone, n, from ... */
    scheduleNext(when, more = {}) {
        return this.call('GET', `/v1/firings${query({ when, ...more })}`);
    }
    schedulePause(name) { return this.call('POST', `${pathOf(name)}/pause`); }
    scheduleResume(name) { return this.call('POST', `${pathOf(name)}/resume`); }
    /** Add its job now; the answer is the job's id. */
    async scheduleFire(name) { return (await this.call('POST', `${pathOf(name)}/fire`)).id; }
    /** Add a job for each firing of a past span; the answer is how many. */
    async scheduleBackfill(name, from, to) {
        return (await this.call('POST', `${pathOf(name)}/backfill`, to === undefined ? { from } : { from, to })).added;
    }
    scheduleRemove(name) { return this.call('DELETE', pathOf(name)); }

    // ---- work queues: bus.js sends work to them and processes it ----

    /** Start a work queue at this address of the event bus, unless it runs: { process_timeout, persist,
     *  collection, timed_out_first }. */
    workqueuePut(address, settings = {}) { return this.call('PUT', workqueuePath(address), settings, { again: true }); }
    /** All work queues, each with its numbers: waiting, running, idle, busy, done ... */
    async workqueues() { return (await this.call('GET', '/v1/workqueues')).work_queues; }
    workqueueRemove(address) { return this.call('DELETE', workqueuePath(address)); }

    // ---- events ----

    /** What happens, for as long as you like: for await (const e of queue.events({ type })) ...
     *  Comes back by itself after a break; { event: 'lost' }: some may have been missed. */
    async *events({ type, id, event, signal } = {}) {
        const path = `/v1/events${query({ type, id, event: event && String(event) })}`;
        for (let last, wait = FIRST_PAUSE_MS; !signal?.aborted;) {
            try {
                const answer = await fetch(this.#base + path, {
                    signal,
                    headers: this.#headers({ Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) }),
                });
                if (!answer.ok)
                    Weir.#read(answer, await answer.text());
                wait = FIRST_PAUSE_MS;
                for await (const m of messages(answer.body)) {
                    last = m.id ?? last;
                    if (m.event === 'lost' || m.event === 'dropped')
                        yield { event: 'lost' };
                    else if (m.data)
                        yield JSON.parse(m.data);
                }
            } catch (why) {
                if (why instanceof WeirError)
                    throw why;
            }
            await pause(wait, signal);
            wait = Math.min(wait * 2, LAST_PAUSE_MS);
        }
    }

    // ---- work ----

    /** Take jobs of these types and call handler(job), `concurrency` at once, until `signal` aborts;
     *  then those under way finish. What it returns is the result, what it throws fails the job.
     *  A job has log(text), progress(done, total, data), set(values), and `signal`, which aborts
     *  when there is no point in going on. With `when`, only jobs for which this condition is true
     *  ('data.region = "eu"'). */
    async work(types, handler, { concurrency = 1, leaseMs = 30000, worker, when, signal } = {}) {
        await trackTraces();
        const work = new Work(this, [types].flat(), handler, leaseMs, worker ?? workerName(), when);
        const renewing = setInterval(() => void work.renew(), leaseMs / 3);
        try {
            await Promise.all(Array.from({ length: concurrency }, () => work.loop(signal)));
        } finally {
            clearInterval(renewing);
        }
    }
}

const workerName = () => globalThis.process?.pid ? `node:${process.pid}` : 'browser';

async function* messages(body) {
    const decoder = new TextDecoder(), reader = body.getReader();
    try {
        for (let text = ''; ;) {
            const { value, done } = await reader.read();
            if (done)
                return;
            text += decoder.decode(value, { stream: true });
            for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
                const m = {};
                for (const line of text.slice(0, end).split('\n')) {
                    const colon = line.indexOf(':');
                    if (colon > 0)
                        m[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '');
                }
                yield m;
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

class Work {
    constructor(queue, types, handler, leaseMs, worker, when) {
        Object.assign(this, { queue, types, handler, leaseMs, worker, when });
        this.held = new Map();      // "id/delivery" to { id, delivery, lost: AbortController }
    }

    async loop(signal) {
        while (!signal?.aborted) {
            try {
                const { jobs } = await this.queue.call('POST', '/v1/take', {
                    types: this.types, n: 1, wait: LONG_POLL_MS, lease: this.leaseMs, worker: this.worker,
                    when: this.when,
                }, { signal });
                for (const job of jobs)
                    await this.do(job);
            } catch (why) {
                if (signal?.aborted)
                    return;
                if (!(why instanceof WeirError) || (why.status && ![429, 503, 504].includes(why.status)))
                    throw why;
                await pause(1000, signal);      // the server is away: it comes back
            }
        }
    }

    async do(job) {
        const { id, delivery } = job, key = `${id}/${delivery}`, lost = new AbortController();
        this.held.set(key, { id, delivery, lost });
        job.signal = lost.signal;
        job.log = (text) => this.queue.call('POST', `/v1/jobs/${id}/log`, { text: String(text), delivery });
        job.progress = (done, total, data) =>
            this.queue.call('POST', `/v1/jobs/${id}/progress`, { delivery, done, total, data });
        job.set = async (values) => {
            await this.queue.call('POST', `/v1/jobs/${id}/values`, { values, delivery });
            job.values = Object.fromEntries(Object.entries({ ...job.values, ...values })
                .filter(([, value]) => value !== null));
        };
        const end = { id, delivery };
        try {
            const result = (await inTrace(job.traceparent, () => this.handler(job))) ?? null;
            toJson(result);                     // what is no JSON is the handler's failure
            end.result = result;
        } catch (why) {
            if (why instanceof ReturnJob)
                Object.assign(end, { return: true, delay: why.delay });
            else
                end.error = String(why?.message || why);
        }
        try {
            if (!lost.signal.aborted)
                await this.finish(end);
        } finally {
            this.held.delete(key);
        }
    }

    // Sent again until the server answers: an outcome that comes twice changes nothing.
    async finish(end) {
        for (const until = Date.now() + this.leaseMs; ;) {
            try {
                await this.queue.call('POST', '/v1/finish', { jobs: [end] });
                return;
            } catch (why) {
                if ((why.status && why.status < 500) || Date.now() > until)
                    return;                     // the lease decides what becomes of it
                await pause(300);
            }
        }
    }

    async renew() {
        const held = [...this.held.values()];
        if (!held.length)
            return;
        try {
            const { results } = await this.queue.call('POST', '/v1/renew', {
                lease: this.leaseMs, jobs: held.map(({ id, delivery }) => ({ id, delivery })),
            });
            results.forEach((said, i) => said.error && held[i].lost.abort());
        } catch { /* the next time */ }
    }
}

return { FIRST_PAUSE_MS, LAST_PAUSE_MS, pause, newKey, inTrace, workerName, WeirError, ReturnJob, trackTraces, traceNow, toJson, findServer, Weir };
})();

const { worker, run } = (() => {
// worker.js - workers by name: worker() registers a function, run() works until SIGTERM.
//
//     import { run, worker } from 'weir';
//
//     worker('mail', async (job) => send(job.data.to), { concurrency: 4 });
//
//     await run();            // the server of WEIR_STORE; or run('http://...', { token: 'wtk_...' })

const registered = [];

/** Register handler(job) for these types; run() calls it. Options are those of queue.work(): concurrency,
 *  leaseMs, worker. Answers the handler. */
function worker(types, handler, options = {}) {
    if (typeof handler !== 'function')
        throw new TypeError('worker: the handler is missing; write worker(\'mail\', async (job) => ...)');
    registered.push({ types, handler, options });
    return handler;
}

/** Work with all registered handlers until SIGTERM or SIGINT arrives, or `signal` aborts. Handlers that run
 *  may finish. */
async function run(url, { token, signal } = {}) {
    if (!registered.length)
        throw new Error('run: no worker is registered; call worker(\'mail\', handler) before');
    const queue = new Weir(url, { token }), stop = new AbortController();
    const end = () => stop.abort();
    const forget = onSignals(end);
    signal?.addEventListener('abort', end);
    if (signal?.aborted)
        end();
    try {
        await Promise.all(registered.map(({ types, handler, options }) =>
            queue.work(types, handler, { ...options, signal: stop.signal })
                .finally(end)));            // one that fails ends all
    } finally {
        signal?.removeEventListener('abort', end);
        forget();
    }
}

// Call end() when the process is to end; the answer undoes that. A browser has no such signals.
function onSignals(end) {
    const { Deno, process } = globalThis, names = ['SIGTERM', 'SIGINT'];
    const [add, remove] = Deno ? [Deno.addSignalListener, Deno.removeSignalListener]
        : process?.on ? [(name, fn) => process.on(name, fn), (name, fn) => process.off(name, fn)]
            : [() => {}, () => {}];
    names.forEach((name) => add(name, end));
    return () => names.forEach((name) => remove(name, end));
}

return { worker, run };
})();

const { observe } = (() => {
// observe.js - the jobs of a weir server as an async iterator.
//
//     import { Weir, observe } from 'weir';
//
//     for await (const job of observe(new Weir(), 'mail', { window: 10, signal }))
//         await job.done({ sent: true });         // or fail(), giveBack(), giveUp()
//
// At most `window` jobs are without an outcome at any time: the others stay in the queue. Their
// leases are renewed meanwhile. When the loop is left, jobs without an outcome go back to the queue.


const LONG_POLL_MS = 30000;

class Stream {
    constructor(queue, types, leaseMs, worker, when) {
        Object.assign(this, { queue, types, leaseMs, worker, when });
        this.held = new Map();          // "id/delivery" to { job, lost: AbortController }
        this.changed = () => {};        // resolves what waits for room
    }

    /** Wait until fewer than n jobs are without an outcome. */
    async room(n, signal) {
        while (this.held.size >= n && !signal?.aborted)
            await new Promise((resolve) => {
                this.changed = resolve;
                signal?.addEventListener('abort', resolve, { once: true });
            });
    }

    /** Take up to n jobs; none when the server is away for a moment. */
    async take(n, signal) {
        try {
            const { jobs } = await this.queue.call('POST', '/v1/take', {
                types: this.types, n, wait: LONG_POLL_MS, lease: this.leaseMs, worker: this.worker,
                when: this.when,
            }, { signal });
            return jobs.map((job) => this.hold(job));
        } catch (why) {
            if (signal?.aborted)
                return [];
            if (!(why instanceof WeirError) || (why.status && ![429, 503, 504].includes(why.status)))
                throw why;
            await pause(1000, signal);
            return [];
        }
    }

    hold(job) {
        const { id, delivery } = job, lost = new AbortController();
        this.held.set(`${id}/${delivery}`, { job, lost });
        job.signal = lost.signal;
        job.done = (result = null) => this.end(job, { result });
        job.fail = (error) => this.end(job, { error: String(error) });
        job.giveUp = (error) => this.end(job, { error: String(error), final: true });
        job.giveBack = (delay = 0) => this.end(job, { return: true, delay });
        return job;
    }

    /** Sent again until the server answers: an outcome that comes twice changes nothing. */
    async end({ id, delivery }, outcome) {
        if (!this.held.delete(`${id}/${delivery}`))
            throw new WeirError(409, 'ESTALE', 'the job has an outcome already');
        try {
            for (const until = Date.now() + this.leaseMs; ;) {
                try {
                    const { results } = await this.queue.call('POST', '/v1/finish',
                        { jobs: [{ id, delivery, ...outcome }] });
                    if (results[0].error)
                        throw new WeirError(409, results[0].error.code, results[0].error.message);
                    return;
                } catch (why) {
                    if ((why.status && why.status < 500) || Date.now() > until)
                        throw why;
                    await pause(300);
                }
            }
        } finally {
            this.changed();
        }
    }

    async renew() {
        const held = [...this.held.values()];
        if (!held.length)
            return;
        try {
            const { results } = await this.queue.call('POST', '/v1/renew', {
                lease: this.leaseMs,
                jobs: held.map(({ job }) => ({ id: job.id, delivery: job.delivery })),
            });
            results.forEach((said, i) => said.error && held[i].lost.abort());
        } catch { /* the next time */ }
    }
}

/** Jobs of these types, one by one, until `signal` aborts or the loop is left. A job has done(result),
 *  fail(error), giveUp(error), giveBack(delay), and `signal`, which aborts when it is lost. With `when`,
 *  only jobs for which this condition is true ('data.region = "eu"'); the others stay for others. */
async function* observe(queue, types, { window = 1, leaseMs = 30000, worker, when, signal } = {}) {
    const stream = new Stream(queue, [types].flat(), leaseMs, worker ?? `${workerName()}:observe`, when);
    const renewing = setInterval(() => void stream.renew(), leaseMs / 3);
    try {
        while (!signal?.aborted) {
            await stream.room(window, signal);
            if (!signal?.aborted)
                yield* await stream.take(window - stream.held.size, signal);
        }
    } finally {
        clearInterval(renewing);
        await Promise.all([...stream.held.values()].map(({ job }) => job.giveBack().catch(() => {})));
    }
}

return { observe };
})();

const { BusError, Message, Bus } = (() => {
// bus.js - the event bus of a weir server, from Node 18, Deno or a browser.
//
//     import { Bus } from 'weir';
//
//     const bus = new Bus();          // the server of WEIR_STORE; or new Bus('http://...', { token: 'wtk_...' });
//                                     // or a list of servers on one store, which are tried in turn
//     await bus.consume('square', (message) => message.body ** 2);
//     console.log((await bus.request('square', 7, { timeoutMs: 1000 })).body);      // 49
//     await bus.publish('news', { text: 'it works' }, { headers: { from: 'ann' } });
//     bus.close();
//
// A bus connects by itself, and again after a break; consumers, services and processors are there
// again then. Calls wait for the connection, at most as long as a request waits. What goes wrong on
// the bus is a BusError. docs/bus.md has the rules of the bus, and of the messages below.

const REQUEST_MS = 30000;       // how long a request waits by default
const PING_MS = 5000;           // the server disconnects a WebSocket that is silent for 10 s
const SILENCE_MS = 20000;       // without an answer to pings the connection is lost
const GRACE_MS = 2000;          // the server ends a request in time; this long after, we do
const HEAD = 4;                 // bytes before each message over TCP: its length, big-endian

/** A failure on the bus: `failure` is NO_HANDLERS, TIMEOUT, RECIPIENT_FAILURE or ERROR, `code` a number
 *  (-1 unless the recipient has chosen one), `error` of an ERROR weir's own code ("ELOST"). A handler throws
 *  one to fail a request with a code. */
class BusError extends WeirError {
    constructor(message, { code = -1, failure = 'RECIPIENT_FAILURE', error } = {}) {
        super(0, code, message);
        this.name = 'BusError';
        this.failure = failure;
        this.error = error;
    }
}

const own = (error, message) => new BusError(message, { failure: 'ERROR', error });
// A message belongs to the trace of what sends it, unless its headers say another.
function traced(headers) {
    const traceparent = traceNow();
    return traceparent ? { traceparent, ...headers } : headers;
}

const lost = () => own('ELOST', 'the connection to the server was lost');
const closed = () => own('ECLOSED', 'the bus is closed');

/** A message, or a reply: `address`, `body`, `headers`; `sent` is false if it was published. */
class Message {
    #replyAddress;
    #answer;

    constructor(frame, answer) {
        this.address = frame.address;
        this.body = frame.body ?? null;
        this.headers = frame.headers ?? {};
        this.sent = frame.send !== false;
        this.#replyAddress = frame.replyAddress;
        this.#answer = answer;
    }

    /** True until it is answered, if the sender waits for that. */
    get expectsReply() { return this.#replyAddress !== undefined; }

    #answerWith(members, timeoutMs) {
        if (!this.expectsReply)
            throw own('ESTALE', 'nobody waits for a reply to this message');
        const answered = this.#answer({ type: 'send', address: this.#replyAddress, ...members }, timeoutMs);
        this.#replyAddress = undefined;
        return answered;
    }

    /** Answer it. */
    reply(body, { headers } = {}) {
        return this.#answerWith({ body, headers: traced(headers) });
    }

    /** Answer it, and wait for the answer to that: a Message. */
    request(body, { headers, timeoutMs = REQUEST_MS } = {}) {
        return this.#answerWith({ body, headers: traced(headers) }, timeoutMs);
    }

    /** Answer it with a failure. */
    fail(code, text) {
        return this.#answerWith({ failureCode: code, message: text });
    }
}

class Bus {
    #servers;                   // the first is tried next, or is the one in use
    #line;                      // the connection; undefined: there is none
    #up = false;                // it is there, and the server knows our consumers
    #closed = false;
    #refused;                   // why the server did not let us in
    #receivedAt = 0;
    #numbers = 0;
    #waiting = new Set();       // calls that wait for the connection: { resolve, reject }
    #fences = [];               // pings that are not answered, in order: { id, what, resolve, reject }
    #requests = new Map();      // reply address to { resolve, reject, timer }
    #consumers = new Map();     // address to handlers; the first has the next turn
    #processors = new Set();    // { ask, concurrency }
    #stop = new AbortController();

    /** Without arguments, in Node: the server of WEIR_STORE (else this machine's), and WEIR_TOKEN. A list of
     *  addresses is of servers on one store: when the one in use is lost, the next is tried. */
    constructor(url, { token } = {}) {
        const urls = Array.isArray(url) ? url : [url];
        if (!urls.length)
            throw new TypeError('the list of servers is empty; expected at least one address');
        this.#servers = urls.map((one) => findServer(one, token));
        void this.#run();
    }

    /** Disconnect. What waits fails. */
    close() {
        this.#closed = true;
        this.#stop.abort();
        this.#line?.close();
        this.#line = undefined;
        this.#down(closed());
    }

    // ---- messages ----

    /** To every consumer of the address. Done when the server has it. */
    async publish(address, body, { headers } = {}) {
        await this.#connected();
        await this.#post({ type: 'publish', address, body, headers: traced(headers) });
    }

    /** To one consumer of the address; they take turns. Done when the server has it. */
    async send(address, body, { headers } = {}) {
        await this.#connected();
        await this.#post({ type: 'send', address, body, headers: traced(headers) });
    }

    /** As send, and wait for the reply: a Message. */
    async request(address, body, { headers, timeoutMs = REQUEST_MS } = {}) {
        const end = Date.now() + timeoutMs;
        await this.#connected(timeoutMs);
        return this.#ask({ type: 'send', address, body, headers: traced(headers) }, Math.max(1, end - Date.now()));
    }

    /** Call handler(message) for each message to the address. What it returns is the reply, what it
     *  throws the failure; if it returns undefined, it replies itself, or nobody waits. Answers
     *  { close() }, when the server has registered it. */
    async consume(address, handler) {
        const handlers = this.#consumers.get(address) ?? [];
        this.#consumers.set(address, handlers);
        handlers.push(handler);
        const close = async () => {
            if (!handlers.includes(handler))
                return;
            handlers.splice(handlers.indexOf(handler), 1);
            if (handlers.length)
                return;
            this.#consumers.delete(address);
            if (this.#up)
                await this.#post({ type: 'unregister', address }).catch(() => {});
        };
        try {
            await this.#connected();
            await this.#post({ type: 'register', address });
        } catch (why) {
            await close();
            throw why;
        }
        return { close };
    }

    // ---- services ----

    /** Publish a service: actions are functions of (args, message), by name; what they return is the
     *  result, what they throw the failure. Answers { close() }. */
    service(name, actions) {
        return this.consume(name, async (message) => {
            const { action } = message.headers;
            if (!action)
                throw new BusError('action not specified', { code: 500 });
            if (!Object.hasOwn(actions, action))
                throw new BusError(`Invalid action: ${action}`, { code: 500 });
            return (await actions[action](message.body ?? {}, message)) ?? null;
        });
    }

    /** Call an action of a service: its result. */
    async call(name, action, args = {}, { headers, timeoutMs } = {}) {
        return (await this.request(name, args, { headers: { ...headers, action }, timeoutMs })).body;
    }

    // ---- work queues ----

    /** Process the work of a work queue, `concurrency` messages at once: what handler(message) returns
     *  is the reply, what it throws the failure. `processor` is the address at which the work comes.
     *  Answers { close() }: no more work; resolves when what runs has ended. */
    async process(address, handler, { concurrency = 1,
        processor = `${address}.processor.${newKey().slice(0, 8)}` } = {}) {
        const running = new Set();
        const consumer = await this.consume(processor, (message) => {
            const run = (async () => (await handler(message)) ?? null)();
            running.add(run);
            const ended = () => running.delete(run);
            run.then(ended, ended);
            return run;
        });
        const ask = async (verb) => {
            const { body } = await this.request(`${address}.${verb}`, { processor });
            if (body?.status !== 'ok')
                throw new BusError(body?.message ?? `${address}: not a work queue`);
        };
        const one = { ask, concurrency };
        try {
            for (let i = 0; i < concurrency; i++)
                await ask('register');
        } catch (why) {
            await consumer.close();
            throw why;
        }
        this.#processors.add(one);
        return {
            close: async () => {
                this.#processors.delete(one);
                for (let i = 0; i < concurrency && this.#up; i++)
                    await ask('unregister').catch(() => {});
                await Promise.allSettled(running);
                await consumer.close();
            },
        };
    }

    // ---- the connection ----

    async #run() {
        await trackTraces();
        let left = this.#servers.length, wait = FIRST_PAUSE_MS, refused;    // left: to try before a pause
        while (!this.#closed) {
            try {
                await this.#connect(this.#servers[0], () => {
                    wait = FIRST_PAUSE_MS;
                    refused = undefined;
                });
            } catch (why) {
                if (why instanceof BusError || (why.status >= 400 && why.status < 500))
                    refused = why;
            }
            this.#servers.push(this.#servers.shift());
            if (this.#closed || --left)
                continue;
            if (refused)
                this.#down(this.#refused = refused);
            await pause(wait, this.#stop.signal);
            left = this.#servers.length;
            wait = Math.min(wait * 2, LAST_PAUSE_MS);
            refused = undefined;
        }
    }

    // Connect, say who we are and what we consume; returns when the connection has ended. Throws a BusError
    // if the server answers, but does not let us in.
    async #connect({ base, token }, arrived) {
        const on = { text: (text) => this.#read(text) };
        const ended = new Promise((resolve) => { on.end = resolve; });
        const line = await (inNode ? openTcp : openWebSocket)(base, on);
        if (this.#closed)
            return line.close();
        this.#line = line;
        this.#receivedAt = Date.now();
        const pinging = setInterval(() => this.#beat(line), PING_MS);
        const over = ended.then(() => {
            clearInterval(pinging);
            if (this.#line === line)
                this.#line = undefined;
            this.#down();
        });
        try {
            await this.#handshake(token);
        } catch (why) {
            const refused = this.#line === line;
            line.close();
            await over;
            if (refused)
                throw why;
            return;
        }
        arrived();
        this.#up = true;
        this.#refused = undefined;
        for (const { resolve } of this.#waiting)
            resolve();
        this.#processors.forEach((processor) => void this.#again(processor, line));
        await over;
    }

    async #handshake(token) {
        await this.#post(undefined, token && { Authorization: `Bearer ${token}` });
        await Promise.all([...this.#consumers.keys()].map((address) =>
            this.#post({ type: 'register', address }).catch((why) => {
                if (this.#line === undefined)
                    throw why;          // else it is not permitted (any more): consume() says so
            })));
    }

    // The server forgot our processors with the connection.
    async #again(processor, line) {
        let wait = FIRST_PAUSE_MS, slots = processor.concurrency;
        while (slots && this.#line === line && this.#processors.has(processor)) {
            try {
                await processor.ask('register');
                slots--;
            } catch {
                await pause(wait, this.#stop.signal);
                wait = Math.min(wait * 2, LAST_PAUSE_MS);
            }
        }
    }

    #beat(line) {
        if (Date.now() - this.#receivedAt > SILENCE_MS)
            line.close();
        else if (this.#line === line)
            this.#post().catch(() => {});
    }

    // No connection: what waits for answers fails; with `why`, also what waits for a connection.
    #down(why) {
        this.#up = false;
        const failed = [...this.#fences, ...this.#requests.values(), ...(why ? this.#waiting : [])];
        this.#fences = [];
        this.#requests.clear();
        for (const { reject, timer } of failed) {
            clearTimeout(timer);
            reject(why ?? lost());
        }
    }

    #connected(timeoutMs = REQUEST_MS) {
        if (this.#up)
            return undefined;
        if (this.#closed)
            throw closed();
        if (this.#refused)
            throw this.#refused;
        let waiter, timer;
        return new Promise((resolve, reject) => {
            timer = setTimeout(() => reject(
                new WeirError(0, 'EUNAVAIL', 'no connection to the event bus of the server')), timeoutMs);
            this.#waiting.add(waiter = { resolve, reject });
        }).finally(() => {
            clearTimeout(timer);
            this.#waiting.delete(waiter);
        });
    }

    // ---- out ----

    #write(message) {
        if (!this.#line)
            throw lost();
        this.#line.write(toJson(message));
    }

    // Send a message that the server does not answer, and a ping, which it does: what it complains
    // about before it answers is this message.
    #post(message, headers) {
        const id = `f${++this.#numbers}`;
        const what = message ? `${message.type} ${message.address}` : 'connect';
        if (message)
            this.#write(message);
        this.#write({ type: 'ping', replyAddress: id, headers });
        return new Promise((resolve, reject) => this.#fences.push({ id, what, resolve, reject }));
    }

    #ask(message, timeoutMs) {
        const replyAddress = `r${++this.#numbers}`, timeout = String(Math.max(1, Math.ceil(timeoutMs)));
        this.#write({ ...message, replyAddress, headers: { ...message.headers, timeout } });
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                this.#requests.delete(replyAddress);
                reject(new BusError(`no reply from ${message.address} within ${timeout} ms`,
                    { failure: 'TIMEOUT' }));
            }, timeoutMs + GRACE_MS);
            this.#requests.set(replyAddress, { resolve, reject, timer, what: `send ${message.address}` });
        });
    }

    // ---- in ----

    #read(text) {
        const frame = JSON.parse(text);
        this.#receivedAt = Date.now();
        if (frame.type === 'pong')
            this.#passFence(this.#fences[0]);
        else if (frame.type === 'err')
            this.#readError(frame);
        else if (frame.type === 'message')
            this.#readMessage(frame);
    }

    #passFence(fence, why = fence?.why) {
        if (!fence)
            return;
        this.#fences.splice(this.#fences.indexOf(fence), 1);
        if (why)
            fence.reject(why);
        else
            fence.resolve();
    }

    #readError({ address, message, failureCode, failureType, error }) {
        const request = this.#requests.get(address);
        const fence = address === undefined ? this.#fences[0] : this.#fences.find(({ id }) => id === address);
        const denied = /^\w+$/.test(message) && failureType !== 'RECIPIENT_FAILURE';   // a code of the bridge
        const why = new BusError(denied ? `${message}: ${(request ?? fence)?.what}` : message,
            { code: failureCode ?? -1, failure: failureType ?? 'ERROR', error });
        if (request) {
            this.#requests.delete(address);
            clearTimeout(request.timer);
            request.reject(why);
        } else if (address !== undefined) {
            this.#passFence(fence, why);
        } else if (fence) {
            fence.why ??= why;
        }
    }

    #readMessage(frame) {
        const line = this.#line;
        const message = new Message(frame, (answer, timeoutMs) => {
            const given = this.#line !== line ? Promise.reject(lost())
                : timeoutMs === undefined ? this.#post(answer) : this.#ask(answer, timeoutMs);
            if (timeoutMs === undefined)
                given.catch(() => {});          // who does not wait for it need not know
            return given;
        });
        const request = this.#requests.get(frame.address);
        if (request) {
            this.#requests.delete(frame.address);
            clearTimeout(request.timer);
            request.resolve(message);
            return;
        }
        const handlers = this.#consumers.get(frame.address) ?? [];
        if (!message.sent) {
            for (const handler of [...handlers])
                void handle(handler, message);
        } else if (handlers.length) {
            handlers.push(handlers.shift());
            void handle(handlers[handlers.length - 1], message);
        }
    }
}

async function handle(handler, message) {
    try {
        const value = await inTrace(message.headers.traceparent, () => handler(message));
        if (value !== undefined && message.expectsReply)
            message.reply(value);
    } catch (why) {
        if (!message.expectsReply)
            throw why;                          // a bug of the program, as in any handler of events
        message.fail(Number.isInteger(why?.code) ? why.code : -1, String(why?.message || why));
    }
}

// ---- connections: { write(text), close() }; on.text(text), then on.end() once ----

const inNode = !!globalThis.process?.versions?.node && !globalThis.Deno;

async function openTcp(base, on) {
    const { request } = await import(base.startsWith('https:') ? 'node:https' : 'node:http');
    return new Promise((resolve, reject) => {
        const asked = request(`${base}/eventbus/tcp`, { headers: { Connection: 'Upgrade', Upgrade: 'weir-bus' } });
        asked.setTimeout(SILENCE_MS, () => asked.destroy(new Error('no answer')));
        asked.once('error', reject);
        asked.once('response', (answer) => {
            answer.resume();
            reject(new WeirError(answer.statusCode, String(answer.statusCode),
                `/eventbus/tcp: HTTP status ${answer.statusCode}`));
        });
        asked.once('upgrade', (_, socket, rest) => {
            const read = frameReader(on.text);
            socket.setTimeout(0);
            socket.setNoDelay(true);
            socket.on('data', read).on('error', () => {}).once('close', on.end);
            resolve({
                write(text) {
                    const frame = Buffer.allocUnsafe(HEAD + Buffer.byteLength(text));
                    frame.writeUInt32BE(frame.length - HEAD);
                    frame.write(text, HEAD);
                    socket.write(frame);
                },
                close: () => socket.destroy(),
            });
            read(rest);
        });
        asked.end();
    });
}

// Of chunks of bytes, the frames that are whole.
function frameReader(found) {
    let parts = [], have = 0, need = HEAD;
    return (chunk) => {
        parts.push(chunk);
        have += chunk.length;
        if (have < need)
            return;
        let bytes = Buffer.concat(parts);
        for (;;) {
            need = bytes.length < HEAD ? HEAD : HEAD + bytes.readUInt32BE(0);
            if (bytes.length < need)
                break;
            found(bytes.toString('utf8', HEAD, need));
            bytes = bytes.subarray(need);
        }
        parts = [bytes];
        have = bytes.length;
    };
}

function openWebSocket(base, on) {
    return new Promise((resolve, reject) => {
        const socket = new WebSocket(`${base.replace(/^http/, 'ws')}/eventbus/ws`);
        socket.onmessage = ({ data }) => on.text(data);
        socket.onclose = () => {
            reject(new Error('the server cannot be reached'));
            on.end();
        };
        socket.onopen = () => resolve({
            write: (text) => socket.send(text),
            close() {               // without waiting for the other side, which may be gone
                socket.onmessage = null;
                socket.close();
                on.end();
            },
        });
    });
}

return { BusError, Message, Bus };
})();

module.exports = { ReturnJob, Weir, WeirError, run, worker, observe, Bus, BusError, Message };
