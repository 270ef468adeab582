// build.mjs OUT.c OUT.d - bundle the page and write it as C: one entry for each file, as it is and
// compressed; and, for the build, what it was made from. Names of assets carry a hash of what is in them, so they can be kept for ever.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const [out, deps] = process.argv.slice(2);
const MAX_BYTES = 150 * 1024;       // of all files, compressed

const result = await build({
    entryPoints: [join(here, 'src/main.tsx')],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2020',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    outdir: 'assets',
    write: false,
    metafile: true,
    absWorkingDir: here,
    logLevel: 'warning',
});

const types = { js: 'text/javascript', css: 'text/css', html: 'text/html', svg: 'image/svg+xml' };
const files = [];

function add(path, bytes) {
    const type = types[path === '/' ? 'html' : path.split('.').pop()] + '; charset=utf-8';
    files.push({ path, type, bytes, gzip: gzipSync(bytes, { level: 9 }) });
}

function hashed(name, bytes) {
    const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 12);
    return name.replace(/\.(\w+)$/, `-${hash}.$1`);
}

const names = {};
for (const file of result.outputFiles) {
    const bytes = Buffer.from(file.contents);
    const name = file.path.split('/').pop();
    names[name] = '/assets/' + hashed(name, bytes);
    add(names[name], bytes);
}
const icon = readFileSync(join(here, 'src/icon.svg'));
names['icon.svg'] = '/assets/' + hashed('icon.svg', icon);
add(names['icon.svg'], icon);

let html = readFileSync(join(here, 'src/index.html'), 'utf8');
html = html.replace(/\{\{([\w.]+)\}\}/g, (_, name) => names[name] ?? name);
add('/', Buffer.from(html));

const total = files.reduce((sum, f) => sum + f.gzip.length, 0);
if (total > MAX_BYTES)
    throw new Error(`the page takes ${total} bytes compressed, more than ${MAX_BYTES}`);

function literal(bytes) {
    const lines = [];
    for (let i = 0; i < bytes.length; i += 24)
        lines.push('    "' + [...bytes.subarray(i, i + 24)]
            .map((b) => '\\' + b.toString(8).padStart(3, '0')).join('') + '"');
    return lines.join('\n') || '    ""';
}

let c = '/* Made from ui/ by ui/build.mjs. */\n#include "server/api/ui.h"\n\n';
c += 'const srv_asset srv_assets[] = {\n';
for (const f of files)
    c += `{ "${f.path}", "${f.type}", ${f.bytes.length}, ${f.gzip.length},\n` +
        `${literal(f.bytes)},\n${literal(f.gzip)} },\n`;
c += '{ 0 }\n};\n';
writeFileSync(out, c);
const inputs = [...Object.keys(result.metafile.inputs), 'src/index.html', 'src/icon.svg', 'build.mjs',
    'package-lock.json'].map((f) => join(here, f).replace(/ /g, '\\ '));
writeFileSync(deps, `${out.replace(/ /g, '\\ ')}: ${inputs.join(' ')}\n`);
console.log(`the page: ${files.length} files, ${total} bytes compressed`);
