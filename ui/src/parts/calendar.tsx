// calendar.tsx - a month with past and coming runs of a schedule, a day a cell. Days are those of the
// schedule's time zone.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, query } from '../api';
import { count } from '../fmt';

export interface Firing { at: number; done_at: number; outcome: string; job?: number }
// `planned`: the expression named them; what became of them is not kept.
export interface Runs { past: Firing[]; planned: number[]; coming: number[] }

// What says when a schedule fires: as GET /v1/firings takes it.
export interface Timing {
    when: string; zone?: string; start?: number; end?: number; except?: string; day_or_weekday?: boolean;
}

const MAX_RUNS = 1000, ZONE_SLACK_MS = 15 * 3600000;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const two = (n: number): string => String(n).padStart(2, '0');

// In a time zone: "2026-11-18", "06:30". One that the browser has not is taken for UTC.
function format(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
    try {
        return new Intl.DateTimeFormat('sv-SE', { timeZone: zone || 'UTC', ...options });
    } catch {
        return new Intl.DateTimeFormat('sv-SE', { timeZone: 'UTC', ...options });
    }
}
export const dayIn = (zone: string): (at: number) => string => {
    const f = format(zone, { dateStyle: 'short' });
    return (at) => f.format(at);
};
export const timeIn = (zone: string): (at: number) => string => {
    const f = format(zone, { hour: '2-digit', minute: '2-digit' });
    return (at) => f.format(at);
};

// ---- months: "2026-11" ----

const startOf = (month: string): number => Date.parse(`${month}-01T00:00:00Z`);
export function addMonths(month: string, n: number): string {
    const d = new Date(startOf(month));
    d.setUTCMonth(d.getUTCMonth() + n);
    return d.toISOString().slice(0, 7);
}
const daysOf = (month: string): string[] => {
    const n = Math.round((startOf(addMonths(month, 1)) - startOf(month)) / 86400000);
    return Array.from({ length: n }, (_, i) => `${month}-${two(i + 1)}`);
};
const nameOf = (month: string): string =>
    new Date(startOf(month)).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

interface Firings { at: number[]; more: boolean }

// The firings of an expression in a month, behind `from` and up to `to`; `more`: there are more than could be asked
// for.
function useFirings(timing: Timing | undefined, month: string, from: number, to: number, waitMs = 0): Firings {
    const [firings, setFirings] = useState<Firings>({ at: [], more: false });
    const end = Math.min(to, timing?.end ?? Infinity, startOf(addMonths(month, 1)) + ZONE_SLACK_MS);
    const asked = timing && end > from ? query({ ...timing, from, n: MAX_RUNS, end, zone: timing.zone || undefined,
        day_or_weekday: timing.day_or_weekday || undefined }) : '';
    useEffect(() => {
        let alive = true;
        const timer = setTimeout(() => {
            const set = (at: number[]): void => {
                if (alive)
                    setFirings({ at, more: at.length >= MAX_RUNS });
            };
            if (asked)
                get<{ next: number[] }>('/v1/firings' + asked).then((a) => set(a.next), () => set([]));
            else
                set([]);
        }, waitMs);
        return () => { alive = false; clearTimeout(timer); };
    }, [asked]);
    return firings;
}

const isInterval = (timing?: Timing): boolean => /^@?every\b/.test(timing?.when ?? '');
const earliest = (month: string): number => startOf(month) - ZONE_SLACK_MS;

// Coming runs, from a moment on. An interval counts from the run before.
export function useComing(timing: Timing | undefined, month: string, from: number, waitMs = 0): Firings {
    return useFirings(timing, month, isInterval(timing) ? from : Math.max(from, earliest(month)), Infinity, waitMs);
}

// Runs that the expression names between the day the schedule was made and `until`. An interval counts from its
// start.
export function usePlanned(timing: Timing | undefined, month: string, created: number, until: number): Firings {
    const anchored = timing && isInterval(timing) ? { ...timing, start: timing.start ?? created } : timing;
    return useFirings(anchored, month, Math.max(created, earliest(month)), until);
}

export function byDay(zone: string, past: Firing[], planned: number[], coming: number[]): Map<string, Runs> {
    const days = new Map<string, Runs>(), day = dayIn(zone);
    const of = (at: number): Runs => {
        const key = day(at), had = days.get(key) ?? { past: [], planned: [], coming: [] };
        days.set(key, had);
        return had;
    };
    past.forEach((f) => of(f.at).past.push(f));
    planned.forEach((at) => of(at).planned.push(at));
    coming.forEach((at) => of(at).coming.push(at));
    return days;
}

const added = (f: Firing): boolean => f.job !== undefined;

function Cell({ day, runs, zone }: { day: string; runs?: Runs; zone: string }): JSX.Element {
    const done = runs?.past.filter(added).length ?? 0, left = (runs?.past.length ?? 0) - done;
    const coming = runs?.coming ?? [], planned = runs?.planned.length ?? 0, time = timeIn(zone);
    return (
        <>
            <b>{Number(day.slice(-2))}</b>
            {planned > 0 && <span class="faint">{`${count(planned)}×`}</span>}
            {done > 0 && <span class="done">✓{done > 1 && ` ${count(done)}`}</span>}
            {left > 0 && <span class="bad">✕{left > 1 && ` ${count(left)}`}</span>}
            {coming.length > 0 && <span class="coming">{coming.length === 1 ? time(coming[0] as number)
                : `${count(coming.length)}×`}</span>}
        </>
    );
}

function words(day: string, runs: Runs | undefined, off: boolean): string {
    const done = runs?.past.filter(added).length ?? 0, left = (runs?.past.length ?? 0) - done;
    const parts = [done && `${count(done)} added a job`, left && `${count(left)} left out`,
        runs?.planned.length && `${count(runs.planned.length)} planned`,
        runs?.coming.length && `${count(runs.coming.length)} to come`, off && 'does not run'].filter(Boolean);
    return `${day}: ${parts.join(', ') || 'no runs'}`;
}

// `choose` is called with a day. Days in `off` are shown as those on which it does not run; without `chosen`, they
// are what is chosen.
export function Calendar({ month, setMonth, zone, days, today, choose, chosen, off }: {
    month: string; setMonth: (month: string) => void; zone: string; days: Map<string, Runs>; today: string;
    choose: (day: string) => void; chosen?: string; off: Set<string>;
}): JSX.Element {
    const all = daysOf(month);
    const before = (new Date(startOf(month)).getUTCDay() + 6) % 7;
    const turn = (n: number): void => setMonth(addMonths(month, n));
    return (
        <div class="calendar" role="group" aria-label={`Runs in ${nameOf(month)}`}>
            <div class="month">
                <button type="button" aria-label="Month before" onClick={() => turn(-1)}>‹</button>
                <b aria-live="polite">{nameOf(month)}</b>
                <button type="button" aria-label="Month after" onClick={() => turn(1)}>›</button>
                {month !== today.slice(0, 7) && <button type="button" class="quiet"
                    onClick={() => setMonth(today.slice(0, 7))}>Today</button>}
                <span class="faint">days in {zone || 'UTC'}</span>
            </div>
            <div class="days">
                {WEEKDAYS.map((d) => <span key={d} class="weekday" aria-hidden="true">{d}</span>)}
                {all.map((day, i) => (
                    <button type="button" key={day} title={words(day, days.get(day), off.has(day))}
                        aria-pressed={chosen === undefined ? off.has(day) : day === chosen}
                        class={`day ${off.has(day) ? 'off' : ''} ${day === today ? 'today' : ''}`}
                        style={i ? undefined : { gridColumnStart: before + 1 }} onClick={() => choose(day)}>
                        <span class="hidden">{words(day, days.get(day), off.has(day))} </span>
                        <Cell day={day} runs={days.get(day)} zone={zone} />
                    </button>
                ))}
            </div>
        </div>
    );
}
