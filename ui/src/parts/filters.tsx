// filters.tsx - what a list of jobs shows, and in which order: states, type, priority, time. All of it is
// in the address, which is that of a state (`/failed`) when just one is chosen.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { STATE_LABEL, STATE_MARK } from '../app';
import { STATES, type State } from '../api';
import { fieldOf, PRIORITY_NAMES, timeOf } from '../fmt';
import { momentOf, SORTS, SORT_LABEL, type Sort, type Wanted } from '../list';
import { go, setParams, usePlace } from '../router';

// States that the search names become those that are chosen.
function chooseStates(states: State[]): void {
    const params = new URLSearchParams(location.search);
    const q = (params.get('q') ?? '').split(/\s+/).filter((word) => !word.startsWith('state:')).join(' ');
    const change = (name: string, value: string): void => value ? params.set(name, value) : params.delete(name);
    change('q', q);
    change('state', states.length > 1 ? states.join(',') : '');
    const text = params.toString();
    go(`/${states.length === 1 ? states[0] : 'jobs'}${text ? `?${text}` : ''}`);
}

function States({ wanted }: { wanted: Wanted }): JSX.Element {
    const toggle = (s: State): void => chooseStates(STATES.filter((one) =>
        wanted.states.includes(one) !== (one === s)));
    return (
        <div class="chips" role="group" aria-label="States">
            {STATES.map((s) => (
                <button key={s} type="button" aria-pressed={wanted.states.includes(s)} onClick={() => toggle(s)}>
                    <span aria-hidden="true">{STATE_MARK[s]}</span> {STATE_LABEL[s]}</button>
            ))}
        </div>
    );
}

const SPANS: [string, string][] = [
    ['', 'any time'], ['15m', 'last 15 minutes'], ['1h', 'last hour'], ['24h', 'last 24 hours'], ['7d', 'last 7 days'],
];
const BETWEEN = 'between';

// A span up to now stays one as time goes on; two moments are numbers.
function Time({ wanted }: { wanted: Wanted }): JSX.Element {
    const usual = !wanted.until && SPANS.some(([since]) => since === wanted.since);
    const [asked, setAsked] = useState(false);
    const between = asked || !usual;
    const choose = (since: string): void => {
        setAsked(since === BETWEEN);
        if (since !== BETWEEN)
            setParams({ since, until: '' });
    };
    const moment = (name: 'since' | 'until', label: string): JSX.Element => (
        <label>{label} <input type="datetime-local" value={fieldOf(momentOf(wanted[name]))}
            onChange={(e) => setParams({ [name]: String(timeOf(e.currentTarget.value) ?? '') })} /></label>
    );
    return (
        <>
            <select aria-label="Time" value={between ? BETWEEN : wanted.since}
                onChange={(e) => choose(e.currentTarget.value)}>
                {SPANS.map(([since, text]) => <option key={since} value={since}>{text}</option>)}
                <option value={BETWEEN}>between …</option>
            </select>
            {between && <>{moment('since', 'from')} {moment('until', 'to')}</>}
        </>
    );
}

// What the ends of each order are; none: the usual order of a state.
const TIMES: [string, string] = ['oldest first', 'newest first'];
const ORDERS: Record<Sort | '', [asc: string, desc: string]> = {
    '': ['first to last', 'last to first'], id: ['lowest first', 'highest first'], created: TIMES, started: TIMES,
    ended: TIMES, took: ['shortest first', 'longest first'], attempts: ['fewest first', 'most first'],
    priority: ['most urgent first', 'least urgent first'],
};

export function Order({ wanted }: { wanted: Wanted }): JSX.Element {
    const [asc, desc] = ORDERS[wanted.sort];
    return (
        <>
            <select aria-label="Sort by" value={wanted.sort}
                onChange={(e) => setParams({ sort: e.currentTarget.value, order: '' })}>
                <option value="">usual order</option>
                {SORTS.map((s) => <option key={s} value={s}>by {SORT_LABEL[s]}</option>)}
            </select>
            <select aria-label="Order" value={wanted.order}
                onChange={(e) => setParams({ order: e.currentTarget.value })}>
                <option value="asc">{asc}</option>
                <option value="desc">{desc}</option>
            </select>
        </>
    );
}

// How many of the filters choose some jobs.
export const filtersOf = (wanted: Wanted): number =>
    [wanted.type, wanted.priority, wanted.since || wanted.until].filter(Boolean).length;

export function Filters({ wanted, types }: { wanted: Wanted; types: string[] }): JSX.Element {
    const { params } = usePlace();
    return (
        <>
            <States wanted={wanted} />
            <select aria-label="Type" value={wanted.type}
                onChange={(e) => setParams({ type: e.currentTarget.value })}>
                <option value="">all types</option>
                {[...new Set([...types, ...(wanted.type ? [wanted.type] : [])])].map((t) =>
                    <option key={t} value={t}>{t}</option>)}
            </select>
            <select aria-label="Priority" value={wanted.priority}
                onChange={(e) => setParams({ priority: e.currentTarget.value })}>
                <option value="">any priority</option>
                {[...new Set([...PRIORITY_NAMES, ...(wanted.priority ? [wanted.priority] : [])])].map((p) =>
                    <option key={p} value={p}>{p}</option>)}
            </select>
            <Time key={params.get('until') ? BETWEEN : params.get('since') ?? ''} wanted={wanted} />
        </>
    );
}
