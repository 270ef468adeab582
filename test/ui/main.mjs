// main.mjs WEIR [WORD...] - drive the page in a browser as its users do, against the real server.
// Words choose the cases whose names contain one of them. Writes TAP.
import { resolve } from 'node:path';
import { runCases } from './rig.mjs';
import './cases_types.mjs';
import './cases_views.mjs';
import './cases_actions.mjs';
import './cases_live.mjs';
import './cases_schedules.mjs';
import './cases_errors.mjs';
import './cases_address.mjs';
import './cases_tasks.mjs';
import './cases_bus.mjs';
import './cases_hostile.mjs';
import './cases_people.mjs';
import './cases_axe.mjs';
import './cases_many.mjs';

const [weir, ...only] = process.argv.slice(2);
process.exit(await runCases(resolve(weir), only) ? 1 : 0);
