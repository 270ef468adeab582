// params.ts - the parameters that each address of the page understands; others are named, not ignored.
import { STATES } from './api';
import { SPANS } from './parts/trends';

const LIST = ['q', 'type', 'priority', 'order', 'cols', 'error', 'since', 'until', 'sort'];
const KNOWN: [RegExp, string[]][] = [
    [/^\/$/, ['span']],
    [new RegExp(`^/(${STATES.join('|')})$`), LIST],
    [/^\/jobs$/, [...LIST, 'state']],
    [/^\/types\/./, ['span']],
    [/^\/errors$/, ['type']],
    [/^\/schedules$/, ['name', 'after']],
    [/^\/tasks$/, ['classifier', 'relative_ids', 'state']],
    [/^\/bus$/, ['address']],
    [/^\/audit$/, ['token', 'action', 'id', 'since']],
];
// What a parameter can be, where that is not free.
const VALUES: Record<string, string[]> = { span: Object.keys(SPANS), order: ['asc', 'desc'] };

// What is wrong with the parameters of an address, a line each.
export function wrongParams(path: string, params: URLSearchParams): string[] {
    const known = KNOWN.find(([at]) => at.test(path))?.[1] ?? [];
    return [...new Set(params.keys())].flatMap((name) => {
        const values = VALUES[name], value = params.get(name) ?? '';
        if (!known.includes(name))
            return [`unknown parameter “${name.slice(0, 60)}”; this view accepts ${known.join(', ') || 'none'}`];
        return values && !values.includes(value)
            ? [`${name}: “${value.slice(0, 60)}” is none of ${values.join(', ')}`] : [];
    });
}
