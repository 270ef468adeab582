// trends.tsx - what happened to the jobs of the queue or a type, in four charts, each of which answers
// one question: how many ended and how, how long jobs waited, how long they ran, how many wait.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, query } from '../api';
import { count, span } from '../fmt';
import { follow } from '../live';
import { setParams } from '../router';
import { serverNow } from '../store';
import { Chart, type Curve } from './chart';

type Counts = number[];
type Times = (number | null)[];
interface History {
    step: number; from: number;
    added: Counts; completed: Counts; retried: Counts; failed: Counts; cancelled: Counts; lost: Counts;
    backlog: Times; oldest: Times;
    wait_p50: Times; wait_p95: Times; run_p50: Times; run_p95: Times;
}
// How many jobs wait now, and since when the next one does; undefined: none does.
export interface Waiting { n: number; since?: number }

const MINUTE = 60000, HOUR = 60 * MINUTE, DAY = 24 * HOUR, BAR_PX = 6;
interface Span { label: string; step: string; ms: number; every: number }
const FIRST: Span = { label: '15 minutes', step: '1s', ms: 15 * MINUTE, every: 2000 };
export const SPANS: Record<string, Span> = {
    '15m': FIRST,
    '3h': { label: '3 hours', step: '1m', ms: 3 * HOUR, every: 15000 },
    '24h': { label: 'a day', step: '1m', ms: DAY, every: 30000 },
    '7d': { label: '7 days', step: '1h', ms: 7 * DAY, every: MINUTE },
    '1y': { label: 'a year', step: '1h', ms: 364 * DAY, every: 5 * MINUTE },
};
// Lengths of bars that people know, and their names.
const STEPS = [1, 2, 3, 5, 10, 15, 20, 30].map((n) => n * 1000).concat(
    [1, 2, 3, 5, 10, 15, 20, 30].map((n) => n * MINUTE), [1, 2, 3, 4, 6, 8, 12].map((n) => n * HOUR),
    [1, 2, 4, 7, 14, 28, 91, 182, 364].map((n) => n * DAY));

export function stepName(ms: number): string {
    const units: [number, string, string][] = [[7 * DAY, 'week', 'weeks'], [DAY, 'day', 'days'], [HOUR, 'hour', 'hours'],
        [MINUTE, 'minute', 'minutes'], [1000, 'second', 'seconds']];
    const exact = units.find(([size]) => ms % size === 0 && ms >= size && ms < 60 * size);
    const [unit, one, many] = exact ?? units.find(([size]) => ms >= 0.95 * size) ?? [1, 'ms', 'ms'];
    const n = Math.round(ms / unit), article = unit === HOUR ? 'an' : 'a';
    return (n * unit === ms ? '' : 'about ') + (n === 1 ? `${article} ${one}` : `${count(n)} ${many}`);
}

const COUNTS = ['added', 'completed', 'retried', 'failed', 'cancelled', 'lost'] as const;
const TIMES = ['backlog', 'oldest', 'wait_p50', 'wait_p95', 'run_p50', 'run_p95'] as const;

// Seconds are counted for the whole queue alone.
const TYPE_SPANS = Object.keys(SPANS).filter((name) => name !== '15m');
export const spansOf = (type?: string): string[] => type === undefined ? Object.keys(SPANS) : TYPE_SPANS;
// The span that the address names, or the first that there is of it.
export const shownSpan = (name: string | null, type?: string): string =>
    spansOf(type).find((one) => one === name) ?? spansOf(type)[0] as string;

export function SpanChoice({ name, type }: { name: string; type?: string }): JSX.Element {
    return (
        <select aria-label="Time shown" value={name}
            onChange={(e) => setParams({ span: e.currentTarget.value })}>
            {spansOf(type).map((k) => <option key={k} value={k}>{SPANS[k]?.label}</option>)}
        </select>
    );
}

// By seconds nobody counts who waits: the minutes say it.
async function withBacklog(h: History): Promise<History> {
    const minutes = await get<History>('/v1/history' + query({ step: '1m', n: 17 }));
    const at = (curve: Times, i: number): number | null =>
        curve[Math.floor((h.from + (i + 1) * h.step - 1 - minutes.from) / minutes.step)] ?? null;
    return { ...h, backlog: h.backlog.map((_, i) => at(minutes.backlog, i)),
        oldest: h.oldest.map((_, i) => at(minutes.oldest, i)) };
}

async function read(s: Span, type: string | undefined, n: number): Promise<History> {
    const step = STEPS.find((one) => one * n >= s.ms) ?? s.ms, bars = Math.ceil(s.ms / step);
    // the server joins its buckets to bars that begin at multiples of their length
    const from = (Math.floor(serverNow() / step) - bars + 1) * step;
    const h = await get<History>('/v1/history' + query({ step: s.step, from, n: bars, type }));
    return s.step === '1s' ? withBacklog(h) : h;
}

function useHistory(s: Span, type: string | undefined, n: number): History | undefined {
    const [history, setHistory] = useState<History>();
    useEffect(() => {
        let alive = true;
        const following = !n ? undefined : follow(async () => {
            try {
                const fresh = await read(s, type, n);
                if (alive)
                    setHistory(fresh);
            } catch { /* the frame shows trouble */ }
        }, s.every);
        return () => { alive = false; following?.stop(); };
    }, [s, type, n]);
    return history;
}

// How many wait is noted each minute: until it is noted again, it is what it was.
const HELD_MS = 2 * MINUTE;
function hold(curve: Times, step: number): void {
    const end = curve.length - 1;           // the last is now
    let known = end - 1;
    while (known >= 0 && curve[known] === null)
        known--;
    if (known >= 0 && (end - 1 - known) * step <= HELD_MS)
        curve.fill(curve[known] as number, known + 1, end);
}

// The same curves as they are now: where nothing has happened since they were read, nothing has.
function upToNow(h: History, now: number, waiting?: Waiting): History {
    const length = h.completed.length;
    const n = Math.max(0, Math.min(length, Math.floor((now - h.from) / h.step) - length + 1));
    const fresh = { ...h, from: h.from + n * h.step };
    for (const name of COUNTS)
        fresh[name] = [...h[name].slice(n), ...new Array<number>(n).fill(0)];
    for (const name of TIMES)
        fresh[name] = [...h[name].slice(n), ...new Array<null>(n).fill(null)];
    hold(fresh.backlog, h.step);
    hold(fresh.oldest, h.step);
    if (waiting && length) {
        fresh.backlog[length - 1] = waiting.n;
        fresh.oldest[length - 1] = waiting.since ? Math.max(0, now - waiting.since) : 0;
    }
    return fresh;
}

// The width that a chart has, for as many bars.
function useBars(): { box: { current: HTMLDivElement | null }; n: number } {
    const box = useRef<HTMLDivElement>(null);
    const [n, setN] = useState(0);
    useEffect(() => {
        const measure = (): void => {
            const wide = box.current?.firstElementChild?.clientWidth ?? 0;
            setN(Math.max(10, Math.min(1440, Math.floor(wide / BAR_PX))));
        };
        const resize = new ResizeObserver(measure);
        measure();
        resize.observe(box.current as HTMLDivElement);
        return () => resize.disconnect();
    }, []);
    return { box, n };
}

const sum = (v: Counts): number => v.reduce((a, b) => a + b, 0);
const lastOf = (v: Times): number | null => [...v].reverse().find((x) => x !== null) ?? null;
const said = (v: number | null, unit: (v: number) => string): string => v === null ? 'none' : unit(v);

const OUTCOMES: [typeof COUNTS[number], string][] = [
    ['completed', '--good'], ['retried', '--warm'], ['failed', '--bad'], ['cancelled', '--faint'],
    ['lost', '--busy'],
];

export function Trends({ name, type, now, waiting }:
    { name: string; type?: string; now: number; waiting?: Waiting }): JSX.Element {
    const { box, n } = useBars();
    const read = useHistory(SPANS[name] ?? FIRST, type, n);
    const h = read && upToNow(read, now, waiting);
    const seconds = h ? h.completed.map((_, i) => (h.from + i * h.step) / 1000) : [];
    const range: [number, number] = h ? [h.from / 1000, (h.from + seconds.length * h.step) / 1000]
        : [now / 1000 - 900, now / 1000];
    const shared = { seconds, range };
    const pair = (which: 'wait' | 'run'): Curve[] => [
        { label: 'p50', colour: '--accent', values: h?.[`${which}_p50`] ?? [] },
        { label: 'p95', colour: '--warm', values: h?.[`${which}_p95`] ?? [] },
    ];
    const aboutPair = (which: 'wait' | 'run'): string => ['p50', 'p95'].map((p) => `${p} ${
        said(lastOf(h?.[`${which}_${p}` as 'wait_p50'] ?? []), span)}`).join(', ');
    return (
        <div class="charts" ref={box} aria-busy={!h}>
            <Chart {...shared} title="Ended jobs" note={h && `a bar is ${stepName(h.step)}`} bars unit={count}
                about={OUTCOMES.map(([k]) => `${k} ${h ? sum(h[k]) : 0}`).join(', ')}
                curves={OUTCOMES.map(([k, colour]) => ({ label: k, colour, values: h?.[k] ?? [] }))} />
            <Chart {...shared} title="How long jobs waited" duration unit={span}
                about={`${aboutPair('wait')}, oldest waits ${said(lastOf(h?.oldest ?? []), span)}`}
                curves={[...pair('wait'),
                    { label: 'oldest', colour: '--faint', dash: [4, 4], values: h?.oldest ?? [] }]} />
            <Chart {...shared} title="How long jobs ran" duration unit={span} about={aboutPair('run')}
                curves={pair('run')} />
            <Chart {...shared} title="Jobs that wait" unit={count}
                about={`${said(lastOf(h?.backlog ?? []), count)} wait`}
                curves={[{ label: 'waiting', colour: '--accent', values: h?.backlog ?? [] }]} />
        </div>
    );
}
