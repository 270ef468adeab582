// list.ts - jobs as a list shows them: which ones are wanted, page by page, kept up with events.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, callText, query, STATES, type Job, type State } from './api';
import { elements, memberText, priority } from './fmt';
import { follow, type Following } from './live';
import { usePlace } from './router';
import { useShared } from './store';

const PAGE = 50, AGAIN_MS = 400, MAX_PAGE = 1000, MAX_CALLS = 10;

// No states: all. `since` and `until`: milliseconds since 1970, or how long ago ("1h").
export interface Wanted {
    states: State[]; type: string; words: string; priority: string;
    error?: string; since: string; until: string; sort: Sort | ''; order: string;
}
export type Sort = 'id' | 'created' | 'started' | 'ended' | 'took' | 'attempts' | 'priority';
export const SORT_LABEL: Record<Sort, string> = {
    id: 'number', created: 'time added', started: 'start', ended: 'end', took: 'time it took',
    attempts: 'attempts', priority: 'priority',
};
export const SORTS = Object.keys(SORT_LABEL) as Sort[];
// `text`: its data, as the server sent it. `gone`: it is not in this list any more, and kept in its place.
export interface Listed extends Job { text: string; gone?: boolean }
export interface Page { jobs: Listed[]; next: string | null }

// The page's own names of states, and those of other queues.
const STATE_NAMES: Record<string, State> = {
    queued: 'inactive', waiting: 'inactive', pending: 'inactive', running: 'active',
    scheduled: 'delayed', done: 'complete', completed: 'complete', canceled: 'cancelled',
};
export const stateOf = (name: string): State | undefined => {
    const lower = name.toLowerCase();
    return STATES.includes(lower as State) ? lower as State
        : Object.hasOwn(STATE_NAMES, lower) ? STATE_NAMES[lower] : undefined;
};

const inOrder = (states: State[]): State[] => STATES.filter((s) => states.includes(s));

export interface Query { type: string; states: State[]; words: string; job?: number; unknown: string[] }

// "type:mail state:queued user:42 smtp" in its parts. The name of a type (`types`) is that type, a
// number alone is a job, jobs in any of the states are meant, what is no filter is looked for as words;
// `unknown` are states that there are not.
export function readQuery(text: string, types: string[]): Query {
    const all = text.split(/\s+/).filter(Boolean);
    const [, job] = (all.length === 1 && /^#?(\d+)$/.exec(all[0] as string)) || [];
    let type = '';
    const states: State[] = [], words: string[] = [], unknown: string[] = [];
    for (const word of job ? [] : all) {
        const [, name, value] = /^(type|state):(.+)$/.exec(word) ?? [];
        const named = name === 'state' ? stateOf(value as string) : undefined;
        if (name === 'type')
            type = value as string;
        else if (named)
            states.push(named);
        else if (name === 'state')
            unknown.push(value as string);
        else if (!type && types.includes(word))
            type = word;
        else
            words.push(word.replace(/:/g, ' '));
    }
    return { type, states: inOrder(states), words: words.join(' '), job: job ? Number(job) : undefined, unknown };
}

export const useTypes = (): string[] => useShared().stats?.types.map((t) => t.type) ?? [];

const ENDED: State[] = ['complete', 'failed', 'cancelled'];
const areEnded = (states: State[]): boolean => states.length > 0 && states.every((s) => ENDED.includes(s));

// The order that one looks for: what is newest, or highest; what is next of those that wait.
function usualOrder(states: State[], sort: string): string {
    if (sort)
        return sort === 'priority' ? 'asc' : 'desc';
    return states.length === 1 && !areEnded(states) ? 'asc' : 'desc';
}

export function useWanted(state?: State): Wanted {
    const { params } = usePlace();
    const param = (name: string): string => params.get(name) ?? '';
    const q = readQuery(param('q'), useTypes());
    const named = param('state').split(',').map(stateOf).filter((s): s is State => !!s);
    const states = (state ? [state] : q.states.length ? q.states : inOrder(named)).join();
    const type = param('type') || q.type, words = q.job ? String(q.job) : q.words;
    const prio = param('priority'), since = param('since'), until = param('until'), order = param('order');
    const error = params.get('error') ?? undefined;
    const sort = SORTS.find((s) => s === param('sort')) ?? '';
    return useMemo(() => {
        const chosen = states ? states.split(',') as State[] : [];
        return {
            states: chosen, type, words, error, since, until, sort,
            priority: /^-?\d+$/.test(prio) ? priority(Number(prio)) : prio,
            order: ['asc', 'desc'].includes(order) ? order : usualOrder(chosen, sort),
        };
    }, [type, words, states, prio, error, since, until, sort, order]);
}

export const isNarrow = (w: Wanted): boolean =>
    !!(w.type || w.priority || w.words || w.since || w.until) || w.error !== undefined;

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };

// A moment, or how long ago, in milliseconds since 1970.
export function momentOf(text: string): number | undefined {
    if (/^\d+$/.test(text))
        return Number(text);
    let ago = 0;
    for (const [, n, unit] of text.matchAll(/(\d+)(ms|[smhd])/g))
        ago += Number(n) * UNITS[unit as string]!;
    return ago ? Date.now() - ago : undefined;
}

// ---- reading ----

async function readPage(wanted: Wanted, limit: number, after: string | null): Promise<Page> {
    const text = await callText('GET', '/v1/jobs' + query({
        state: wanted.states.join(), type: wanted.type, priority: wanted.priority, search: wanted.words,
        error: wanted.error, since: wanted.since, until: wanted.until, sort: wanted.sort, order: wanted.order,
        limit, after: after ?? undefined,
    }));
    return {
        jobs: elements(memberText(text, 'jobs') ?? '[]').map((job) =>
            ({ ...JSON.parse(job) as Job, text: memberText(job, 'data') ?? '' })),
        next: JSON.parse(memberText(text, 'next') ?? 'null') as string | null,
    };
}

// `n` jobs, or all there are. The server ends a page early when it has looked at many jobs of other
// priorities, errors, times or states: then it is asked again, so many times.
async function load(wanted: Wanted, n: number, after: string | null): Promise<Page> {
    const all: Page = { jobs: [], next: after };
    for (let calls = 0; calls < MAX_CALLS && all.jobs.length < n && (all.next || !calls); calls++) {
        const part = await readPage(wanted, n - all.jobs.length, all.next);
        all.jobs.push(...part.jobs);
        all.next = part.next;
        if (!wanted.priority && wanted.error === undefined && !wanted.since && !wanted.until &&
            wanted.states.length < 2)
            break;
    }
    return all;
}

const size = (shown: number): number => Math.min(MAX_PAGE, Math.max(PAGE, shown));

function join(first: Page, then: Page): Page {
    const seen = new Set(first.jobs.map((j) => j.id));
    return { jobs: [...first.jobs, ...then.jobs.filter((j) => !seen.has(j.id))], next: then.next };
}

// ---- places in a list: [rank, id], in `next` "RANK.ID" ----

type Place = [number, number];

const KEYS: Record<Sort, (job: Job) => number | undefined> = {
    id: () => 0, created: (j) => j.created_at, started: (j) => j.started_at, ended: (j) => j.finished_at,
    took: (j) => j.duration, attempts: (j) => j.attempts, priority: (j) => j.priority,
};
const RANKS: Record<State, Sort | 'due'> = {
    inactive: 'priority', delayed: 'due', active: 'started', complete: 'ended', failed: 'ended', cancelled: 'ended',
};

// As the server has them: GET /v1/jobs in docs/http.md.
function placeOf(job: Job, wanted: Wanted): Place {
    const [one] = wanted.states;
    const usual = !one || wanted.words ? 'id'
        : areEnded(wanted.states) ? 'ended' : wanted.states.length > 1 ? 'id' : RANKS[one];
    const sort = wanted.sort || usual;
    return [(sort === 'due' ? job.promote_at : KEYS[sort](job)) ?? 0, job.id];
}

function readPlace(text: string): Place {
    const dot = text.lastIndexOf('.');
    return [Number(text.slice(0, dot)), Number(text.slice(dot + 1))];
}

function isBeyond(a: Place, b: Place, wanted: Wanted): boolean {
    const by = a[0] - b[0] || a[1] - b[1];
    return wanted.order === 'desc' ? by < 0 : by > 0;
}

// What was read anew, and behind it what was shown already further down than that reaches. `n`: so
// many were asked for.
function refreshed(fresh: Page, shown: Page, n: number, wanted: Wanted): Page {
    if (!fresh.next)
        return fresh;
    let rest = shown.jobs.slice(MAX_PAGE);
    if (fresh.jobs.length < n) {
        const end = readPlace(fresh.next);
        if (shown.next && !isBeyond(readPlace(shown.next), end, wanted))
            return fresh;
        rest = shown.jobs.filter((j) => isBeyond(placeOf(j, wanted), end, wanted));
    } else if (!rest.length) {
        return fresh;
    }
    return join(fresh, { jobs: rest, next: shown.next });
}

// ---- a list that somebody is at ----

const endOf = (page: Page): Listed | undefined => page.jobs[page.jobs.length - 1];

// Those that are not shown and would come before one that is.
function newcomers(shown: Page, fresh: Page, wanted: Wanted): Listed[] {
    const seen = new Set(shown.jobs.map((j) => j.id)), end = endOf(shown);
    return !end ? [] : fresh.jobs.filter((j) => !seen.has(j.id) &&
        !isBeyond(placeOf(j, wanted), placeOf(end, wanted), wanted));
}

// The rows that are shown, in their places: with what is known now, and marked if they are gone. What
// comes behind them moves nothing, so it is let in.
function still(shown: Page, fresh: Page, wanted: Wanted): Page {
    const now = new Map(fresh.jobs.map((j) => [j.id, j])), kept = new Set(shown.jobs.map((j) => j.id));
    const late = new Set(newcomers(shown, fresh, wanted));
    const reach = fresh.next ? readPlace(fresh.next) : undefined;
    const unread = (j: Listed): boolean => !!reach && isBeyond(placeOf(j, wanted), reach, wanted);
    return {
        jobs: [
            ...shown.jobs.map((j) => now.get(j.id) ?? (unread(j) ? j : { ...j, gone: true })),
            ...fresh.jobs.filter((j) => !kept.has(j.id) && !late.has(j)),
        ],
        next: fresh.next,
    };
}

// The list as it is now; `more` loads the next page. While it is `held`, rows stay where they are, and
// `news` others wait until `letIn` is called. `again(true)` reads it anew and takes it as it is then. `why`: the
// server refuses to make this list.
export function useList(wanted: Wanted, held: boolean):
    { page?: Page; why: string; news: number; letIn: () => void; again: (all?: boolean) => void; more: () => void } {
    const [page, setPage] = useState<Page>();
    const [why, setWhy] = useState('');
    const fresh = useRef<Page | undefined>(undefined), holds = useRef(held), all = useRef(false);
    const reader = useRef<Following & { more: () => void } | undefined>(undefined);
    holds.current = held;
    const letIn = (): void => setPage(fresh.current);
    useEffect(() => {
        let longer = false, alive = true;
        const read = async (): Promise<void> => {
            const grow = longer, had = fresh.current;
            longer = false;
            try {
                let found: Page;
                if (grow && had)
                    found = join(had, await load(wanted, PAGE, had.next));
                else {
                    const n = size(had?.jobs.length ?? 0), first = await load(wanted, n, null);
                    found = had ? refreshed(first, had, n, wanted) : first;
                }
                if (!alive)
                    return;
                fresh.current = found;
                setWhy('');
                const whole = all.current || !holds.current;
                all.current = false;
                setPage((was) => was?.jobs.length && !whole ? still(was, found, wanted) : found);
            } catch (e) {           // the frame shows that a server or a store is away
                if (alive && e instanceof ApiError && e.status >= 400 && e.status < 500)
                    setWhy(e.message);
            }
        };
        fresh.current = undefined;
        setPage(undefined);
        setWhy('');
        const following = follow(read, AGAIN_MS, (e) => !wanted.type || e.type === wanted.type);
        reader.current = {
            ...following,
            more: () => {
                if (!longer && fresh.current?.next) {
                    longer = true;
                    following.again();
                }
            },
        };
        return () => { alive = false; following.stop(); };
    }, [wanted]);
    useEffect(() => {
        if (!held)
            letIn();
    }, [held]);
    return {
        page, why, letIn,
        news: page && fresh.current && page !== fresh.current ? newcomers(page, fresh.current, wanted).length : 0,
        again: (whole = false) => {
            all.current = whole;
            reader.current?.again();
        },
        more: () => reader.current?.more(),
    };
}
