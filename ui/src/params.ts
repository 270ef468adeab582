// params.ts - the parameters that each address of the page understands, and their values; others are
// named, not ignored.
import { STATES } from './api';
import { SORTS, stateOf } from './list';
import { COLUMN_NAMES } from './parts/columns';
import { SPANS } from './parts/trends';
import { TASK_STATES } from './views/tasks';

// What a parameter can be; undefined: any text. `many`: several with commas. `of`: other names of a value.
interface Kind { values: string[]; many?: boolean; of?: (name: string) => string | undefined }
type Params = Record<string, Kind | undefined>;

const free = (...names: string[]): Params => Object.fromEntries(names.map((name) => [name, undefined]));
const SPAN: Params = { span: { values: Object.keys(SPANS) } };
const LIST: Params = {
    ...free('q', 'type', 'priority', 'error', 'since', 'until'),
    order: { values: ['asc', 'desc'] }, sort: { values: SORTS }, cols: { values: COLUMN_NAMES, many: true },
};
const KNOWN: [RegExp, Params][] = [
    [/^\/$/, SPAN],
    [new RegExp(`^/(${STATES.join('|')})$`), LIST],
    [/^\/jobs$/, { ...LIST, state: { values: STATES, many: true, of: stateOf } }],
    [/^\/types\/./, SPAN],
    [/^\/errors$/, free('type')],
    [/^\/schedules$/, free('name', 'after')],
    [/^\/tasks$/, { ...free('classifier', 'relative_ids'), state: { values: TASK_STATES } }],
    [/^\/bus$/, free('address')],
    [/^\/audit$/, free('token', 'action', 'id', 'since')],
];

function wrongValues({ values, many, of }: Kind, text: string): string[] {
    return (many ? text.split(',').filter(Boolean) : [text]).filter((v) => !values.includes(v) && !of?.(v));
}

// What is wrong with the parameters of an address, a line each.
export function wrongParams(path: string, params: URLSearchParams): string[] {
    const known = KNOWN.find(([at]) => at.test(path))?.[1] ?? {};
    return [...new Set(params.keys())].flatMap((name) => {
        if (!Object.hasOwn(known, name))
            return [`unknown parameter “${name.slice(0, 60)}”; this view accepts ${
                Object.keys(known).join(', ') || 'none'}`];
        const kind = known[name];
        return !kind ? [] : wrongValues(kind, params.get(name) ?? '').map((v) =>
            `${name}: “${v.slice(0, 60)}” is none of ${kind.values.join(', ')}`);
    });
}
