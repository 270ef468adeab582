// attention.tsx - what needs attention, each with a link to where one acts: from the counts, the
// workers, the groups of errors and the trends of those types that may be in trouble.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get, query, type Stats, type TypeStats } from '../api';
import { jobsOf, readErrors, sayError, type ErrorGroup } from '../errors';
import { count, span } from '../fmt';
import { follow } from '../live';
import { ownTypes } from '../store';
import { Command, quote, weir } from './command';
import { isThere, UNSEEN_MS, type Worker } from '../workers';

// `advice`: what to do, in words; `remedy`: a command that does it.
export interface Wrong { text: string; advice?: string; remedy?: string; link: string; act: string }

const MINUTE = 60000, OLD_MS = 5 * MINUTE, ALONE_MS = 10000, EVERY_MS = 30000;
const RECENT = 15, BEFORE = 60;                 // minutes: now, and what it is compared with
const MAX_TYPES = 20;                           // whose trends are read
const MIN_FAILURES = 10, MIN_SHARE = 0.25, MIN_RISEN = 0.05, MIN_GROWTH = 100;
const MAX_USED = 0.9, ROOM_ENOUGH = 10e9;      // share of a limit, and bytes free that are enough all the same
const DAMAGED = /^damaged: its record/;

// What happened in each minute.
interface Trend { added: number[]; completed: number[]; retried: number[]; failed: number[]; lost: number[];
    backlog: (number | null)[] }
// Of what bounds the store: the disk of a file, the memory of a Redis. No limit: 0, or not known.
interface Room { used?: number; limit?: number }
export interface Seen { groups: ErrorGroup[]; lost: number; trends: Map<string, Trend>; room: Room }

const recent = (v: number[]): number => v.slice(-RECENT).reduce((a, b) => a + b, 0);
const before = (v: number[]): number => v.slice(0, -RECENT).reduce((a, b) => a + b, 0);
const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
const plural = (n: number, one: string, many: string): string => `${count(n)} ${n === 1 ? one : many}`;
const ofType = (path: string, type: string): string => `${path}?type=${encodeURIComponent(type)}`;

// ---- one kind of trouble each ----

function waits(t: TypeStats, workers: Worker[] | undefined, now: number): Wrong | undefined {
    const waiting = t.counts.inactive, age = t.oldest_at ? now - t.oldest_at : 0;
    const taken = t.last_taken_at && now - t.last_taken_at < UNSEEN_MS;
    const seen = workers?.some((w) => w.types.includes(t.type) && isThere(w, now));
    const shown = { link: ofType('/inactive', t.type), act: 'Show' };
    if (!taken && !seen && age > ALONE_MS)
        return { ...shown, remedy: weir(`work ${quote(t.type)} --exec ./your-program`),
            text: `${plural(waiting, 'job waits', 'jobs wait')} for “${t.type}”, and no worker takes ${
                waiting === 1 ? 'it' : 'them'}.` };
    if (age > OLD_MS)
        return { ...shown, remedy: weir(`work ${quote(t.type)} --exec ./your-program -j 8`),
            text: `The next “${t.type}” job has waited ${span(age)}: workers do not keep up.` };
    return undefined;
}

// As the alert rule WeirTypeFails, or from little to at least twice the share of the hour before.
function fails(type: string, trend: Trend, groups: ErrorGroup[]): Wrong | undefined {
    const failures = recent(trend.failed) + recent(trend.retried), runs = failures + recent(trend.completed);
    const failedBefore = before(trend.failed) + before(trend.retried), runsBefore = failedBefore + before(trend.completed);
    const share = runs ? failures / runs : 0, shareBefore = runsBefore ? failedBefore / runsBefore : undefined;
    const risen = shareBefore !== undefined && share >= MIN_RISEN && share >= 2 * shareBefore;
    if (failures < MIN_FAILURES || (share < MIN_SHARE && !risen))
        return undefined;
    const top = groups.find((g) => g.type === type);
    return {
        text: `“${type}” fails: ${percent(share)} of ${count(runs)} runs in the last ${RECENT} minutes` +
            (shareBefore === undefined ? '' : `, ${percent(shareBefore)} in the hour before`) +
            (top ? `. Most often: ${sayError(top)}` : '') + '.',
        advice: 'Mend the cause, then retry the group of errors: one job first. Until then, pause the type, so that no more fail.',
        link: ofType('/errors', type), act: 'Its errors',
    };
}

function grows(t: TypeStats, trend: Trend): Wrong | undefined {
    const now = t.counts.inactive, then = trend.backlog.slice(0, -RECENT).reverse().find((n) => n !== null);
    if (then === undefined || then === null || now - then < MIN_GROWTH || now < 2 * then)
        return undefined;
    return {
        text: `The backlog of “${t.type}” grows: ${count(now)} wait, ${count(then)} did ${RECENT} minutes ago. ` +
            `${count(recent(trend.added))} were added since then, ${count(recent(trend.completed))} completed.`,
        remedy: weir(`work ${quote(t.type)} --exec ./your-program -j 8`),
        link: `/types/${encodeURIComponent(t.type)}`, act: 'The type',
    };
}

const damaged = (groups: ErrorGroup[]): Wrong[] =>
    groups.filter((g) => DAMAGED.test(g.error)).map((g) => ({
        text: `${plural(g.count, 'job', 'jobs')} of “${g.type}” cannot be run: the record in the store is damaged.`,
        advice: 'Check the store; the jobs themselves can only be deleted and added again.',
        remedy: weir('check'), link: jobsOf(g), act: 'Show',
    }));

const bytes = (n: number): string => n >= 1e9 ? `${(n / 1e9).toFixed(1)} GB` : `${Math.round(n / 1e6)} MB`;

export function full({ used = 0, limit = 0 }: Room): Wrong | undefined {
    if (!limit || used < MAX_USED * limit || limit - used > ROOM_ENOUGH)
        return undefined;
    return {
        text: `The store has ${bytes(limit - used)} left of ${bytes(limit)}. When it is full, jobs can neither be added ` +
            'nor ended.',
        advice: 'Make room, or keep ended jobs for a shorter time.',
        link: '/types', act: 'Retention',
    };
}

// The worst first: a store without room, what nobody does, what is damaged, what fails, what grows.
export function whatIsWrong(stats: Stats, workers: Worker[] | undefined, seen: Seen | undefined, now: number): Wrong[] {
    const waiting = stats.paused ? [] : stats.types.filter((t) => t.counts.inactive && !t.paused);
    const stuck = new Map(waiting.map((t) => [t.type, waits(t, workers, now)]));
    const lost = seen?.lost ?? 0;
    return [
        full(seen?.room ?? {}),
        ...stuck.values(),
        ...damaged(seen?.groups ?? []),
        ...[...seen?.trends ?? []].map(([type, trend]) => fails(type, trend, seen?.groups ?? [])),
        ...waiting.map((t) => {
            const trend = seen?.trends.get(t.type);
            return trend && !stuck.get(t.type) ? grows(t, trend) : undefined;
        }),
        lost > 0 ? { link: '/workers', act: 'Workers', text: `${plural(lost, 'job', 'jobs')} lost ${
            lost === 1 ? 'its' : 'their'} worker in the last ${RECENT} minutes: it died, or did not renew its lease.`,
        advice: 'Look at the last lines of that worker, and whether its machine ran out of memory. If its handler runs longer ' +
            'than the lease without a report, give it a longer lease, or have it report progress.' } : undefined,
    ].filter((w) => w !== undefined);
}

// ---- what the counts do not say ----

// A read that is refused, to a token of few types for one, takes nothing from the others.
const or = <T,>(read: Promise<T>, instead: T): Promise<T> => read.catch(() => instead);

// The groups of all types; a token of some types names each.
async function readGroups(own: string[] | null): Promise<ErrorGroup[]> {
    const found = await Promise.all((own?.slice(0, MAX_TYPES) ?? [undefined]).map((type) =>
        or(readErrors(type).then((e) => e.groups), [])));
    return found.flat().sort((a, b) => b.count - a.count);
}

const trend = (type: string | undefined, n: number): Promise<Trend | undefined> =>
    or(get<Trend>('/v1/history' + query({ step: '1m', n, type })), undefined);

async function look(stats: Stats, own: string[] | null): Promise<Seen> {
    const groups = stats.counts.failed ? await readGroups(own) : [];
    const since = Date.now() - RECENT * MINUTE;
    const failing = groups.filter((g) => g.last_at > since).map((g) => g.type);
    const retried = stats.types.filter((t) => t.counts.delayed && t.failures).map((t) => t.type);
    const waiting = stats.types.filter((t) => t.counts.inactive >= MIN_GROWTH)
        .sort((a, b) => b.counts.inactive - a.counts.inactive).map((t) => t.type);
    const types = [...new Set([...failing, ...waiting, ...retried])].slice(0, MAX_TYPES);
    const info = or(call<{ answers: Room[] }>('POST', '/v1/batch', { ops: [{ op: 'info' }] }), { answers: [] });
    const [answer, all, each] = await Promise.all([info,
        Promise.all((own?.slice(0, MAX_TYPES) ?? [undefined]).map((type) => trend(type, RECENT))),
        Promise.all(types.map((type) => trend(type, RECENT + BEFORE)))]);
    const lost = all.reduce((n, one) => n + recent(one?.lost ?? []), 0);
    const trends = types.flatMap((type, i): [string, Trend][] => each[i] ? [[type, each[i]]] : []);
    return { groups, room: answer.answers[0] ?? {}, lost, trends: new Map(trends) };
}

export function useSeen(stats?: Stats): Seen | undefined {
    const [seen, setSeen] = useState<Seen>();
    const known = !!stats;
    useEffect(() => {
        let alive = true;
        const following = !stats ? undefined : follow(async () => {
            try {
                const fresh = await look(latest ?? stats, ownTypes());
                if (alive)
                    setSeen(fresh);
            } catch { /* the frame shows trouble */ }
        }, EVERY_MS);
        return () => { alive = false; following?.stop(); };
    }, [known]);
    latest = stats;
    return seen;
}
let latest: Stats | undefined;

// ---- shown ----

const SHOWN = 5;

export function Attention({ wrongs }: { wrongs: Wrong[] }): JSX.Element | null {
    const [all, setAll] = useState(false);
    if (!wrongs.length)
        return null;
    return (
        <section class="panel wrong" aria-label="Needs attention" role="alert">
            <h2>Needs attention</h2>
            {wrongs.slice(0, all ? wrongs.length : SHOWN).map((w) => (
                <div key={w.text}>
                    <p>{w.text} <a href={w.link}>{w.act}</a></p>
                    {w.advice && <p class="advice">{w.advice}</p>}
                    {w.remedy && <Command text={w.remedy} />}
                </div>
            ))}
            {wrongs.length > SHOWN && !all && <p><button type="button" onClick={() => setAll(true)}>
                {wrongs.length - SHOWN} more</button></p>}
        </section>
    );
}
