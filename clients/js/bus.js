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
import {
    FIRST_PAUSE_MS, LAST_PAUSE_MS, WeirError, findServer, inTrace, newKey, pause, toJson, traceNow, trackTraces,
} from './weir.js';

const REQUEST_MS = 30000;       // how long a request waits by default
const PING_MS = 5000;           // the server disconnects a WebSocket that is silent for 10 s
const SILENCE_MS = 20000;       // without an answer to pings the connection is lost
const GRACE_MS = 2000;          // the server ends a request in time; this long after, we do
const HEAD = 4;                 // bytes before each message over TCP: its length, big-endian

/** A failure on the bus: `failure` is NO_HANDLERS, TIMEOUT, RECIPIENT_FAILURE or ERROR, `code` a number
 *  (-1 unless the recipient has chosen one), `error` of an ERROR weir's own code ("ELOST"). A handler throws
 *  one to fail a request with a code. */
export class BusError extends WeirError {
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
export class Message {
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

export class Bus {
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
