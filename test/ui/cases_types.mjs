// cases_types.mjs - what the compiler says about the page.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test, UI } from './rig.mjs';

test('the types of the page hold', () => {
    try {
        execFileSync(process.execPath, [join(UI, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', UI],
            { stdio: 'pipe' });
    } catch (e) {
        throw new Error(`${e.stdout}${e.stderr}`);
    }
});
