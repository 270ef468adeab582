// test_package.mjs WEIR CLIENT-DIRECTORY - the npm package: import, require, its types, a worker of five
// lines. Writes TAP.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { client, directory, run } from './rig.mjs';

const { Weir } = await client('index.js');
const tsc = join(directory, '../../ui/node_modules/typescript/bin/tsc');
const NAMES = ['Bus', 'BusError', 'Message', 'ReturnJob', 'Weir', 'WeirError', 'observe', 'run', 'worker'];

const WORKER = `import { run, worker } from 'weir';

worker('sum', async (job) => job.data.a + job.data.b, { concurrency: 4 });

await run();
`;
const USER = `import { Bus, ReturnJob, Weir, observe, run, worker } from 'weir';
const queue = new Weir();
worker<{ to: string }>('mail', async (job) => {
    await job.progress(1, 2);
    if (job.attempts) throw new ReturnJob('5s');
    return job.data.to.length;
}, { concurrency: 2 });
export async function look(): Promise<number> {
    for await (const job of observe<number>(queue, 'n', { window: 2 }))
        await job.done(job.data + 1);
    const bus = new Bus();
    await bus.consume<number>('square', (message) => message.body ** 2);
    const { id } = await queue.add('mail', { to: 'ann' }, { priority: 'high' });
    const job = await queue.wait<{ to: string }, number>(id, { timeoutMs: 5 });
    await run();
    return job.result ?? 0;
}
`;
const WRONG = `${USER}
await queue.cancel('seven');
await queue.add('mail', {}, { priority: 'urgent' });
new Weir().publish();
`;

/** A directory of a user's, in which the package is installed. */
function project(type, files) {
    const dir = mkdtempSync(join(tmpdir(), 'weir-test-npm-'));
    mkdirSync(join(dir, 'node_modules'));
    symlinkSync(directory, join(dir, 'node_modules/weir'));
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ type }));
    for (const [name, text] of Object.entries(files))
        writeFileSync(join(dir, name), text);
    return dir;
}

function within(type, files, use) {
    const dir = project(type, files);
    try {
        return use(dir);
    } finally {
        rmSync(dir, { recursive: true });
    }
}

const node = (dir, ...args) => execFileSync(process.execPath, args, { cwd: dir }).toString().trim();
const check = (dir, file) => spawnSync(process.execPath, [tsc, '--noEmit', '--strict', '--target', 'es2022',
    '--module', 'node16', '--moduleResolution', 'node16', '--lib', 'es2022,dom', file],
    { cwd: dir, encoding: 'utf8' });

const cases = {
    'import has every name'() {
        within('module', { 'a.js': 'import * as weir from "weir"; console.log(Object.keys(weir).sort().join())' },
            (dir) => assert.equal(node(dir, 'a.js'), NAMES.join()));
    },
    'require has every name'() {
        within('commonjs', { 'a.js': 'console.log(Object.keys(require("weir")).sort().join())' },
            (dir) => assert.equal(node(dir, 'a.js'), NAMES.join()));
    },
    'what require loads is made of the sources'() {
        assert.equal(node(directory, 'make-cjs.mjs', '--check'), '');
    },
    'nothing of Node is imported before it is needed'() {
        for (const file of ['index.js', 'weir.js', 'worker.js', 'observe.js', 'bus.js'])
            assert.doesNotMatch(readFileSync(join(directory, file), 'utf8'), /^(import|export) .* from ['"](?!\.\/)/m);
    },
    'npm packs what is needed'() {
        const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--offline', '--ignore-scripts'],
            { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'] }));
        assert.deepEqual(files.map(({ path }) => path).sort(), ['bus.js', 'index.d.ts', 'index.js', 'observe.js',
            'package.json', 'weir.cjs', 'weir.d.cts', 'weir.js', 'worker.js']);
    },
    async 'a worker of five lines, imported'(server) {
        const dir = project('module', { 'work.js': WORKER });
        await works(server, dir);
    },
    async 'a worker of five lines, required'(server) {
        const dir = project('commonjs', { 'work.js': WORKER
            .replace(/import (.*) from (.*);/, 'const $1 = require($2);').replace('await run', 'run') });
        await works(server, dir);
    },
    'types hold for import and require'() {
        for (const type of ['module', 'commonjs'])
            within(type, { 'user.ts': USER }, (dir) => {
                const { stdout, status } = check(dir, 'user.ts');
                assert.equal(stdout, '');
                assert.equal(status, 0);
            });
    },
    'types say what is wrong'() {
        within('module', { 'wrong.ts': WRONG }, (dir) => {
            const { stdout } = check(dir, 'wrong.ts');
            assert.match(stdout, /Argument of type 'string' is not assignable to parameter of type 'number'/);
            assert.match(stdout, /'"urgent"' is not assignable to type 'Priority/);
            assert.match(stdout, /Property 'publish' does not exist on type 'Weir'/);
            assert.equal(stdout.match(/error TS/g).length, 3);
        });
    },
};

async function works(server, dir) {
    const child = spawn(process.execPath, ['work.js'], { cwd: dir, stdio: 'inherit',
        env: { ...process.env, WEIR_STORE: server.url } });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
        const queue = new Weir(server.url), { id } = await queue.add('sum', { a: 1, b: 2 });
        assert.equal((await queue.wait(id, { timeoutMs: 60000 })).result, 3);
    } finally {
        child.kill('SIGTERM');
    }
    assert.equal(await ended, 0);
    rmSync(dir, { recursive: true });
}

process.exit(await run(cases, (each, server) => each(server)));
