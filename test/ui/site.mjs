// site.mjs WEIR - the site of the documents, as `make docs` makes it: every link leads somewhere, and the search works
// in a browser that reads the pages from files. Writes TAP.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const weir = resolve(process.argv[2]);
const { chromium } = createRequire(join(here, '../../ui/package.json'))('playwright-core');
const dir = mkdtempSync(join(tmpdir(), 'weir-site.'));

const pages = () => readdirSync(dir, { recursive: true }).filter((name) => name.endsWith('.html'));
const url = (name, hash = '') => pathToFileURL(join(dir, name)).href + hash;

function is_made() {
    execFileSync(join(here, '../../scripts/make-site.py'), [weir, join(dirname(weir), '../../docs'), dir]);
    assert.ok(pages().length > 50, `${pages().length} pages`);
}

function links_lead_somewhere() {
    const lost = [];
    for (const name of pages()) {
        const text = readFileSync(join(dir, name), 'utf8');
        for (const [, link] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
            const [path, anchor] = link.split('#');
            if (/^[a-z]+:/.test(link))
                continue;
            const to = path ? join(dir, dirname(name), path) : join(dir, name);
            if (!existsSync(to))
                lost.push(`${name}: ${link}`);
            else if (anchor && !readFileSync(to, 'utf8').match(new RegExp(`(id|name)="${RegExp.escape?.(anchor) ?? anchor}"`)))
                lost.push(`${name}: ${link}: no such heading`);
        }
    }
    assert.deepEqual(lost, []);
}

async function is_complete() {
    const routes = readFileSync(join(dir, 'docs/routes.html'), 'utf8');
    assert.match(routes, /POST \/v1\/jobs<\/code>/);
    assert.match(readFileSync(join(dir, 'docs/commands/weir-add.html'), 'utf8'), /--priority/);
    assert.match(readFileSync(join(dir, 'docs/reference.html'), 'utf8'), /weir_add_many/);
}

async function search_finds() {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
        args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'] });
    try {
        const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
        const errors = [];
        page.on('pageerror', (error) => errors.push(error.message));
        for (const name of pages()) {
            await page.goto(url(name));
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 390, `${name} is too wide`);
        }
        await page.goto(url('docs/stores.html'));
        await page.keyboard.press('/');
        await page.keyboard.type('weir_pool_stop');
        const first = page.locator('#found a').first();
        assert.match(await first.getAttribute('href'), /reference\.html/);
        await page.keyboard.press('Enter');
        await page.waitForURL(/reference\.html/);
        await page.fill('#search', 'no<b>such</b>word');
        assert.equal(await page.locator('#found').textContent(), 'Nothing found.');
        assert.deepEqual(errors, []);
    } finally {
        await browser.close();
    }
}

const cases = [is_made, links_lead_somewhere, is_complete, search_finds];
console.log(`1..${cases.length}`);
let failed = 0;
for (const [i, one] of cases.entries()) {
    try {
        await one();
        console.log(`ok ${i + 1} - ${one.name.replaceAll('_', ' ')}`);
    } catch (why) {
        failed++;
        console.log(`not ok ${i + 1} - ${one.name.replaceAll('_', ' ')}`);
        console.log(String(why.stack ?? why).replaceAll(dir, relative('/', dir)).replace(/^/gm, '# ').slice(0, 4000));
    }
}
rmSync(dir, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
