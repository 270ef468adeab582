// make-cjs.mjs [--check] - writes weir.cjs, the package as one CommonJS file for require(), and its types
// weir.d.cts. With --check it says whether they are up to date. Sources have imports of the package's own
// files, and names exported where they are declared: no more is understood here.
import { readFileSync, writeFileSync } from 'node:fs';

const FILES = ['weir.js', 'worker.js', 'observe.js', 'bus.js'];
const read = (name) => {
    try {
        return readFileSync(new URL(name, import.meta.url), 'utf8');
    } catch {
        return '';
    }
};

function makeModule() {
    const names = [...read('index.js').matchAll(/^export \{ (.*) \}/gm)].flatMap(([, list]) => list.split(', '));
    const bodies = FILES.map((file) => {
        const shared = [];
        const text = read(file)
            .replace(/^import \{[^}]*\} from '\.\/.*';\n/gm, '')
            .replace(/^export (const) ([\s\S]*?;)/gm, (_, word, rest) => {
                shared.push(...[...rest.matchAll(/(?:^|, )([A-Za-z_]+) = /g)].map(([, name]) => name));
                return `${word} ${rest}`;
            })
            .replace(/^export ((?:async )?(?:class|function\*?) ([A-Za-z]+))/gm, (_, head, name) => {
                shared.push(name);
                return head;
            });
        return `const { ${shared.join(', ')} } = (() => {\n${text}\nreturn { ${shared.join(', ')} };\n})();\n`;
    });
    return `// Made by make-cjs.mjs from ${FILES.join(', ')}: change those.\n'use strict';\n\n${bodies.join('\n')}\n` +
        `module.exports = { ${names.join(', ')} };\n`;
}

const made = { 'weir.cjs': makeModule(), 'weir.d.cts': read('index.d.ts') };
for (const [name, text] of Object.entries(made)) {
    if (!process.argv.includes('--check')) {
        writeFileSync(new URL(name, import.meta.url), text);
    } else if (read(name) !== text) {
        console.log(`${name} is out of date: run node clients/js/make-cjs.mjs`);
        process.exitCode = 1;
    }
}
