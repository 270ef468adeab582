// fmt.ts - numbers, times and JSON for people.

export function ago(at: number, now: number): string {
    const ms = now - at;
    return ms >= 0 ? `${span(ms)} ago` : `in ${span(-ms)}`;
}

// Of what has happened: not to come, whatever the clocks say.
export const since = (at: number, now: number): string => ago(Math.min(at, now), now);

export function span(ms: number): string {
    if (ms < 1000)
        return `${Math.round(ms)} ms`;
    const s = ms / 1000;
    if (s < 10)
        return `${s.toFixed(1)} s`;
    if (s < 60)
        return `${Math.floor(s)} s`;
    const m = Math.floor(s / 60);
    if (m < 60)
        return `${m} min ${Math.floor(s % 60)} s`;
    const h = Math.floor(m / 60);
    if (h < 48)
        return `${h} h ${m % 60} min`;
    return `${Math.floor(h / 24)} d ${h % 24} h`;
}

// A length of time as one writes it, exactly: "250ms", "1h", "1m30s", "7d".
export function length(ms: number): string {
    let left = ms, text = '';
    for (const [unit, size] of [['d', 86400000], ['h', 3600000], ['m', 60000], ['s', 1000], ['ms', 1]] as const) {
        const n = Math.floor(left / size);
        text += n ? `${n}${unit}` : '';
        left -= n * size;
    }
    return text || '0';
}

// What was written in a field for that: text for the server to read, or undefined. Digits alone are
// milliseconds.
export const readLength = (text: string): string | number | undefined =>
    text.trim() ? /^\d+$/.test(text.trim()) ? Number(text) : text.trim() : undefined;

export const count = (n: number): string => n.toLocaleString('en');

// "2026-11-16 09:00:00.123", local time: the same for readers of every country.
export function clock(at: number): string {
    const d = new Date(at), two = (n: number): string => String(n).padStart(2, '0');
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
        `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}` +
        `.${String(d.getMilliseconds()).padStart(3, '0')}`;
}

// Of a field for date and time, which is in the time of the reader.
export const fieldOf = (at?: number): string => at ? clock(at).slice(0, 16).replace(' ', 'T') : '';
export const timeOf = (field: string): number | undefined => field ? new Date(field).getTime() : undefined;

const PRIORITIES: Record<number, string> = {
    10: 'low', 0: 'normal', [-5]: 'medium', [-10]: 'high', [-15]: 'critical',
};
export const priority = (p: number): string => PRIORITIES[p] ?? String(p);
export const PRIORITY_NAMES = ['critical', 'high', 'medium', 'normal', 'low'];

// The text of one member of an object in JSON text, as it stands there; undefined: not there.
export function memberText(json: string, name: string): string | undefined {
    let depth = 0, at = 0;
    while (at < json.length) {
        const c = json[at];
        if (c === '"') {
            const end = stringEnd(json, at);
            if (depth === 1 && json.slice(at, end) === JSON.stringify(name)) {
                const colon = skip(json, end);
                if (json[colon] === ':') {
                    const from = skip(json, colon + 1);
                    return json.slice(from, valueEnd(json, from));
                }
            }
            at = end;
            continue;
        }
        if (c === '{' || c === '[')
            depth++;
        else if (c === '}' || c === ']')
            depth--;
        at++;
    }
    return undefined;
}

function skip(json: string, at: number): number {
    while (at < json.length && ' \t\r\n'.includes(json[at] as string))
        at++;
    return at;
}

function stringEnd(json: string, at: number): number {
    while ((at = json.indexOf('"', at + 1)) >= 0) {
        let slashes = 0;
        while (json[at - 1 - slashes] === '\\')
            slashes++;
        if (slashes % 2 === 0)
            return at + 1;
    }
    return json.length;
}

function valueEnd(json: string, at: number): number {
    let depth = 0;
    for (; at < json.length; at++) {
        const c = json[at] as string;
        if (c === '"')
            at = stringEnd(json, at) - 1;
        else if (c === '{' || c === '[')
            depth++;
        else if (c === '}' || c === ']' || c === ',') {
            if (depth === 0)
                return at;
            if (c !== ',')
                depth--;
        }
    }
    return at;
}

// The texts of the elements of an array in JSON text.
export function elements(json: string): string[] {
    const found: string[] = [];
    for (let at = skip(json, 1); at < json.length && json[at] !== ']'; at = skip(json, at)) {
        const end = valueEnd(json, at);
        found.push(json.slice(at, end));
        at = json[end] === ',' ? end + 1 : end;
    }
    return found;
}

// JSON text with line breaks and indents; no byte of a number or string is changed.
export function pretty(json: string): string {
    let out = '', depth = 0;
    const line = (): string => '\n' + '  '.repeat(Math.min(depth, 40));
    for (let at = 0; at < json.length; at++) {
        const c = json[at] as string;
        if (c === '"') {
            const end = stringEnd(json, at);
            out += json.slice(at, end);
            at = end - 1;
        } else if (c === '{' || c === '[') {
            const next = skip(json, at + 1);
            if (json[next] === (c === '{' ? '}' : ']')) {
                out += c + json[next];
                at = next;
            } else {
                depth++;
                out += c + line();
            }
        } else if (c === '}' || c === ']') {
            depth--;
            out += line() + c;
        } else if (c === ',') {
            out += c + line();
        } else if (c === ':') {
            out += ': ';
        } else if (!' \t\r\n'.includes(c)) {
            out += c;
        }
    }
    return out;
}
