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

export const FIRST_PAUSE_MS = 100, LAST_PAUSE_MS = 10000;       // before another try; doubled each time
const LONG_POLL_MS = 30000, TRIES = 5;
const ENDED = ['complete', 'failed', 'cancelled'];

/** What went wrong: `status` of HTTP (0: no answer), `code` ("EINVAL"), `message`, `field`. */
export class WeirError extends Error {
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
export class ReturnJob extends Error {
    constructor(delay = 0) {
        super('the job runs again');
        this.delay = delay;
    }
}

export const pause = (ms, signal) => new Promise((resolve) => {
    const timer = setTimeout(done, ms * (0.5 + Math.random()));
    function done() {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
    }
    signal?.addEventListener('abort', done);
});

// Unique is enough; Node 18 and pages without https have no crypto.randomUUID().
export const newKey = () => globalThis.crypto?.randomUUID?.() ??
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

export async function trackTraces() {
    if (!globalThis.process?.versions?.node && !globalThis.Deno)
        return;
    const name = 'node:async_hooks';            // not for bundlers
    const { AsyncLocalStorage } = await import(name);
    storage ??= new AsyncLocalStorage();
}

export const inTrace = (traceparent, fn) => storage ? storage.run({ traceparent }, fn) : fn();
export function traceNow() {
    const inside = storage?.getStore();
    return inside ? inside.traceparent : environment('TRACEPARENT');
}

/** JSON, which has no NaN and no infinity: JSON.stringify() would make null of them. */
export function toJson(value) {
    return JSON.stringify(value, (name, one) => {
        if (typeof one === 'number' && !Number.isFinite(one))
            throw new TypeError(`${name || 'the value'}: ${one} is not JSON; use null or a text`);
        return one;
    });
}

// "localhost:7340" would be a URL of the scheme "localhost".
const withoutScheme = (url) => /^([\w.-]+(:\d+)?|\[[0-9A-Fa-f:]+\](:\d+)?)$/.test(url);

/** Where the server is, and the token for it: { base, token }. What is not given: as Weir does. */
export function findServer(url = environment('WEIR_STORE') || 'http://127.0.0.1:7340', token) {
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

export class Weir {
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

export const workerName = () => globalThis.process?.pid ? `node:${process.pid}` : 'browser';

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
