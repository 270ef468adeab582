// rig.mjs - what the tests of the JavaScript client share: a server, waiting, TAP. Run as
// TEST.mjs WEIR CLIENT-DIRECTORY.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const [weir, directory] = process.argv.slice(2);
export const PATIENCE_MS = 60000;

/** A file of the client. */
export const client = (file) => import(pathToFileURL(join(directory, file)).href);

/** A server in a directory of its own; its port stays the same when it is started again. */
export class Server {
    constructor(...options) {
        this.dir = mkdtempSync(join(tmpdir(), 'weir-test-js-'));
        this.listen = '127.0.0.1:0';
        this.store = 'mem:';
        this.options = options;
    }

    async start() {
        const env = { ...process.env, XDG_RUNTIME_DIR: this.dir, WEIR_DATA: this.dir };
        delete env.WEIR_STORE;
        delete env.WEIR_TOKEN;
        this.child = spawn(weir, ['serve', '--store', this.store, '--data', this.dir, '--listen', this.listen,
            ...this.options], { env, stdio: ['ignore', 'pipe', 'inherit'] });
        this.ended = new Promise((resolve) => this.child.once('exit', resolve));
        const line = await new Promise((resolve, reject) => {
            this.child.stdout.once('data', (d) => resolve(String(d)));
            void this.ended.then(() => reject(new Error('the server ended')));
        });
        this.url = line.trim().split(/\s+/).pop();
        this.listen = this.url.split('//')[1];
        return this;
    }

    /** How it ended: 0, if all was well; null after SIGKILL. */
    async stop(signal = 'SIGTERM') {
        this.child.kill(signal);
        return this.ended;
    }

    remove() {
        rmSync(this.dir, { recursive: true, force: true });
    }
}

/** A Redis that keeps nothing: { url, stop() }. */
export async function redis() {
    const dir = mkdtempSync(join(tmpdir(), 'weir-test-js-')), socket = join(dir, 'redis.sock');
    const child = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', dir],
        { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    await until(() => existsSync(socket));
    return {
        url: `redis+unix://${socket}`,
        async stop() {
            kill();
            await ended;
            rmSync(dir, { recursive: true, force: true });
        },
    };
}

export async function until(fn) {
    for (const end = Date.now() + PATIENCE_MS; !(await fn());) {
        if (Date.now() > end)
            throw new Error(`never: ${fn}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
}

/** call(case, server) for each; writes TAP, and answers the status to exit with. */
export async function run(cases, call) {
    const server = await new Server().start();
    let failed = 0, n = 0;
    console.log(`1..${Object.keys(cases).length}`);
    for (const [name, each] of Object.entries(cases)) {
        n++;
        try {
            await call(each, server);
            console.log(`ok ${n} - js: ${name}`);
        } catch (why) {
            failed++;
            console.log(`not ok ${n} - js: ${name}\n# ${String(why.stack).replace(/\n/g, '\n# ')}`);
        }
    }
    const status = await server.stop();
    server.remove();
    return failed || status ? 1 : 0;
}
