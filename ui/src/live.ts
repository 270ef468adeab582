// live.ts - what happens, as it happens: one stream of events for the whole page. It is read with
// fetch(), since an EventSource cannot carry a token; it comes back by itself after a break, and
// says then that something may have been missed.
import { headers } from './api';

export interface WeirEvent {
    event: string; id: number; type?: string; state?: string; at: number;
    attempts?: number; progress?: number; delivery?: number; text?: string;
}
// 'lost': events may be missing; look again.
export type Listener = (e: WeirEvent | 'lost') => void;

const FIRST_WAIT_MS = 250, LAST_WAIT_MS = 8000, SILENCE_MS = 40000;
const listeners = new Set<Listener>();
let lastId = '';
let running: AbortController | undefined;
let onLink: (up: boolean) => void = () => {};

export function listen(fn: Listener): () => void {
    listeners.add(fn);
    return () => listeners.delete(fn);
}

function emit(e: WeirEvent | 'lost'): void {
    for (const fn of [...listeners])
        fn(e);
}

// What was not read while nobody looked is read when somebody does.
document.addEventListener('visibilitychange', () => {
    if (!document.hidden)
        emit('lost');
});

export interface Following { again: () => void; stop: () => void }

// Run `read` now, and again when something happens that `concerns` it: at once, but never two at a
// time, and with a pause of `everyMs` between them; if nothing happens, after as many ms as it
// answers. Not while the page is hidden.
export function follow(read: () => Promise<number | void>, everyMs: number,
    concerns: (e: WeirEvent) => boolean = () => true): Following {
    let busy = false, stale = false, alive = true, timer = 0, idle = 0, last = -Infinity;
    const run = async (): Promise<void> => {
        clearTimeout(idle);
        timer = 0;
        busy = true;
        stale = false;
        const again = await read();
        busy = false;
        last = performance.now();
        if (stale)
            soon(everyMs);
        else if (alive && again)
            idle = window.setTimeout(() => document.hidden || soon(everyMs), again);
    };
    const soon = (pause: number): void => {
        if (busy)
            stale = true;
        else if (alive && !timer)
            timer = window.setTimeout(() => void run(), Math.max(0, last + pause - performance.now()));
    };
    const off = listen((e) => {
        if (!document.hidden && (e === 'lost' || concerns(e)))
            soon(everyMs);
    });
    soon(0);
    return {
        again: () => soon(0),
        stop: () => { alive = false; clearTimeout(timer); clearTimeout(idle); off(); },
    };
}

// One message: lines "name: value".
function message(text: string): void {
    let event = 'message', data = '';
    for (const line of text.split('\n')) {
        const colon = line.indexOf(':');
        if (colon <= 0)
            continue;
        const name = line.slice(0, colon), value = line.slice(colon + 1).replace(/^ /, '');
        if (name === 'event')
            event = value;
        else if (name === 'data')
            data += value;
        else if (name === 'id')
            lastId = value;
    }
    if (event === 'lost' || event === 'dropped')
        emit('lost');
    else if (data)
        emit(JSON.parse(data) as WeirEvent);
}

async function read(signal: AbortSignal): Promise<void> {
    const more: Record<string, string> = lastId ? { 'Last-Event-ID': lastId } : {};
    const answer = await fetch('/v1/events', { headers: headers(more), signal });
    if (!answer.ok || !answer.body)
        throw new Error(String(answer.status));
    onLink(true);
    if (!lastId)
        emit('lost');
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '', watchdog = 0;
    const alive = (): void => {
        clearTimeout(watchdog);
        watchdog = window.setTimeout(() => void reader.cancel(), SILENCE_MS);
    };
    try {
        for (;;) {
            alive();
            const { value, done } = await reader.read();
            if (done)
                return;
            text += value;
            for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2))
                message(text.slice(0, end));
        }
    } finally {
        clearTimeout(watchdog);
    }
}

// Start, or start anew (with another token). `link` is called when the stream is there and when not.
export function startLive(link: (up: boolean) => void): void {
    running?.abort();
    const mine = running = new AbortController();
    onLink = link;
    lastId = '';
    void (async () => {
        for (let wait = FIRST_WAIT_MS; !mine.signal.aborted;) {
            try {
                await read(mine.signal);
                wait = FIRST_WAIT_MS;
            } catch { /* tried again below */ }
            if (mine.signal.aborted)
                return;
            link(false);
            await new Promise((r) => setTimeout(r, wait + Math.random() * wait));
            wait = Math.min(wait * 2, LAST_WAIT_MS);
        }
    })();
}
