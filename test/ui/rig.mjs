// rig.mjs - what the cases of the page share: the real `weir serve`, Redis, the browser, TAP.
// Everything a case starts is stopped when it ends; a sanitizer's complaint fails the case, and so
// does whatever the page must never do: a dialog, an exception, a breach of its content policy.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, openSync, closeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const UI = join(here, '../../ui');
const { chromium } = createRequire(join(UI, 'package.json'))('playwright-core');

const PATIENCE_MS = Number(process.env.WEIR_TEST_PATIENCE_MS ?? 60000);     // for what must happen soon: only matters when it does not
const SOON_MS = 1000, TRIES = 8;
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// Wait until fn() answers something true, and answer that.
export async function until(fn, what, ms = PATIENCE_MS) {
    for (const end = Date.now() + ms; ;) {
        const got = await fn();
        if (got)
            return got;
        if (Date.now() > end)
            throw new Error(`in vain: ${what ?? fn}`);
        await sleep(25);
    }
}

// The page promises a second. Other tests run beside this one, so it has a few tries for it: `fn`
// does the thing once and answers how many ms it took.
export async function withinASecond(what, fn) {
    const took = [];
    while (took.length < TRIES && !(Math.min(...took) < SOON_MS))
        took.push(Math.round(await fn()));
    console.log(`# ${what}: ${took.join(', ')} ms`);
    assert.ok(Math.min(...took) < SOON_MS, `${what}: ${took.join(', ')} ms`);
}

// ---- servers ----

function ended(child) {
    return child.exitCode !== null || child.signalCode !== null;
}

// None outlives this process, however it ends.
const children = new Set();
process.once('exit', () => [...children].forEach((c) => ended(c) || c.kill('SIGKILL')));

function start(program, args, dir, name) {
    const out = openSync(join(dir, `${name}.out`), 'a'), err = openSync(join(dir, `${name}.err`), 'a');
    const child = spawn(program, args, {
        cwd: dir, stdio: ['ignore', out, err],
        env: { PATH: process.env.PATH, HOME: dir, UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? '' },
    });
    closeSync(out);
    closeSync(err);
    children.add(child);
    return child;
}

async function stop(child, signal = 'SIGTERM') {
    if (!ended(child))
        child.kill(signal);
    await until(() => ended(child), 'the end of a server');
}

export class Server {
    constructor(weir, dir) {
        Object.assign(this, { weir, dir, token: '', listen: '127.0.0.1:0', args: [] });
    }

    async start(...args) {
        this.args = args;
        const read = (name) => existsSync(join(this.dir, name))
            ? readFileSync(join(this.dir, name), 'utf8') : '';
        const before = read('weir.out').length;
        this.child = start(this.weir, ['serve', '--listen', this.listen, ...args], this.dir, 'weir');
        const line = await until(() => {
            if (ended(this.child))
                throw new Error(`weir serve ended: ${read('weir.err')}`);
            return / at (http:.*)\n/.exec(read('weir.out').slice(before));
        }, 'the line of weir serve');
        this.url = line[1];
        this.listen = this.url.slice('http://'.length);
        return this;
    }

    async stop(signal) {
        if (!this.child)
            return;
        await stop(this.child, signal);
        const said = readFileSync(join(this.dir, 'weir.err'), 'utf8');
        assert.ok(!/Sanitizer|runtime error/.test(said), said);
        assert.ok(signal === 'SIGKILL' || this.child.exitCode === 0, `weir serve: ${said}`);
        this.child = undefined;
    }

    // Again at the same address, with the same jobs.
    again() {
        return this.start(...this.args);
    }

    addToken(name, ...args) {
        return execFileSync(this.weir, ['token', 'add', name, ...args],
            { cwd: this.dir, env: { PATH: process.env.PATH, HOME: this.dir }, stdio: 'pipe' })
            .toString().trim();
    }

    async raw(method, path, body, token = this.token) {
        const answer = await fetch(this.url + path, {
            method,
            headers: {
                ...(token ? { Authorization: `Bearer ${token}` } : {}),
                ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
            },
            body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
        });
        return { status: answer.status, text: await answer.text() };
    }

    async call(method, path, body, token) {
        const { status, text } = await this.raw(method, path, body, token);
        assert.ok(status < 300, `${method} ${path}: ${status} ${text.slice(0, 500)}`);
        return text ? JSON.parse(text) : undefined;
    }

    add = async (spec) => (await this.call('POST', '/v1/jobs', spec)).id;
    job = (id) => this.call('GET', `/v1/jobs/${id}`);
    state = async (id) => {
        const { status, text } = await this.raw('GET', `/v1/jobs/${id}`);
        return status === 404 ? 'gone' : JSON.parse(text).state;
    };
    take = async (type, worker = 'w1') => (await this.call('POST', '/v1/take',
        { types: [type], n: 1, worker, lease: '60s' })).jobs[0];
    finish = (job, how) => this.call('POST', '/v1/finish',
        { jobs: [{ id: job.id, delivery: job.delivery, ...how }] });
    // A job that has ended: with {"result":...} or {"error":"..."}.
    async ended(spec, how) {
        const id = await this.add(spec);
        const job = await this.take(spec.type);
        assert.equal(job.id, id);
        await this.finish(job, how);
        return id;
    }
}

export class Redis {
    constructor(dir) {
        this.dir = dir;
        this.socket = join(dir, 'redis.sock');
    }
    async start() {
        this.child = start('redis-server', ['--port', '0', '--unixsocket', this.socket, '--dir',
            this.dir, '--save', '', '--appendonly', 'yes'], this.dir, 'redis');
        await until(() => existsSync(this.socket), 'the socket of Redis');
        return this;
    }
    async stop() {
        if (this.child)
            await stop(this.child);
        this.child = undefined;
    }
}

// ---- the browser ----

let browser;
export async function theBrowser() {
    browser ??= await chromium.launch({
        executablePath: CHROMIUM, headless: true,
        args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking',
            '--disable-component-update', '--no-first-run'],
    });
    return browser;
}

// What a page did that none may do.
const FORBIDDEN = /Content.Security.Policy|Refused to|violates the following/i;

async function openPage(t, { width = 1280, height = 900, dark = false, token, clipboard } = {}) {
    const context = await (await theBrowser()).newContext({
        viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce',
        ...(clipboard ? { permissions: ['clipboard-read', 'clipboard-write'] } : {}),
    });
    t.later(() => context.close());
    if (token)
        await context.addInitScript((text) => sessionStorage.setItem('weir-token', text), token);
    await context.addInitScript(() => {
        window.addEventListener('securitypolicyviolation',
            (e) => console.error(`Content Security Policy: ${e.violatedDirective} ${e.blockedURI}`));
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('dialog', (d) => { t.bad.push(`a dialog: ${d.message()}`); void d.dismiss(); });
    page.on('pageerror', (e) => t.bad.push(`an exception: ${e.stack}`));
    page.on('console', (m) => m.type() === 'error' && FORBIDDEN.test(m.text()) &&
        t.bad.push(m.text()));
    page.on('request', (r) => {
        if (!/^(data|blob|about):/.test(r.url()) && !r.url().startsWith('http://127.0.0.1:'))
            t.bad.push(`asked ${r.url()}`);
    });
    return page;
}

// ---- cases ----

const cases = [];
export const test = (name, fn) => cases.push({ name, fn });

class Case {
    constructor(weir) {
        Object.assign(this, { weir, bad: [], ends: [] });
        this.dir = mkdtempSync(join(tmpdir(), 'weir-ui-'));
        this.later(() => rmSync(this.dir, { recursive: true, force: true }));
    }
    later(fn) {
        this.ends.unshift(fn);
    }
    // A server with its own file of jobs; `args` are more options of `weir serve`.
    async serve(...args) {
        const server = new Server(this.weir, this.dir);
        this.later(() => server.stop());
        const store = args.includes('--store') || args.includes('--demo')
            ? [] : ['--store', 'sqlite:jobs.db?durability=os'];
        return server.start(...store, ...args);
    }
    async redis() {
        const redis = new Redis(this.dir);
        this.later(() => redis.stop());
        return redis.start();
    }
    // A new page, in a browser window that shares nothing with others, at that address.
    async open(server, path, options) {
        const page = await openPage(this, { token: server.token, ...options });
        await page.goto(server.url + path);
        return page;
    }
    async run(fn) {
        let failed;
        try {
            await fn(this);
        } catch (e) {
            failed = e;
        }
        for (const end of this.ends)
            try {
                await end();
            } catch (e) {
                failed ??= e;
            }
        if (failed)
            throw failed;
        assert.deepEqual(this.bad, []);
    }
}

// Run all cases, or those whose names contain one of `only`; TAP on standard output.
export async function runCases(weir, only) {
    const chosen = cases.filter((c) => !only.length || only.some((word) => c.name.includes(word)));
    let failed = 0;
    console.log(`1..${chosen.length}`);
    for (const [i, { name, fn }] of chosen.entries()) {
        const began = Date.now();
        try {
            await new Case(weir).run(fn);
            console.log(`ok ${i + 1} - ${name}`);
        } catch (e) {
            failed++;
            console.log(`not ok ${i + 1} - ${name}`);
            console.log(String(e?.stack ?? e).replace(/\x1b\[\d+m/g, '').replace(/^/gm, '# '));
        }
        if (only.length)
            console.log(`# ${Date.now() - began} ms`);
    }
    await browser?.close();
    return failed;
}
