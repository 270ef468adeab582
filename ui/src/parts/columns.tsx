// columns.tsx - what a list shows of each job beyond the usual, as chosen in the address: `cols=worker,took`.
import type { JSX } from 'preact';
import type { Job } from '../api';
import { ago, clock, count, span } from '../fmt';
import { setParams, usePlace } from '../router';

const COLUMNS: Record<string, [label: string, of: (job: Job, now: number) => string]> = {
    created: ['added', (j, now) => ago(j.created_at, now)],
    at: ['added at', (j) => clock(j.created_at)],
    started: ['started', (j, now) => j.started_at ? ago(j.started_at, now) : ''],
    waited: ['waited', (j) => j.started_at ? span(Math.max(0, j.started_at - (j.promote_at || j.created_at))) : ''],
    took: ['took', (j) => j.duration === undefined ? '' : span(j.duration)],
    worker: ['worker', (j) => j.workerId ?? ''],
    deliveries: ['deliveries', (j) => j.delivery ? count(j.delivery) : ''],
    lost: ['workers lost', (j) => j.lost ? count(j.lost) : ''],
    unique: ['unique key', (j) => j.unique ?? ''],
    deadline: ['deadline', (j, now) => j.deadline ? ago(j.deadline, now) : ''],
};

export const COLUMN_NAMES = Object.keys(COLUMNS);

// Those of the address that there are.
export function useColumns(): string[] {
    return [...new Set((usePlace().params.get('cols') ?? '').split(','))].filter((name) => COLUMN_NAMES.includes(name));
}

export function Columns({ job, now, shown }: { job: Job; now: number; shown: string[] }): JSX.Element | null {
    const known = shown.map((name) => COLUMNS[name]).map((c) => c && [c[0], c[1](job, now)]).filter((c) => c?.[1]);
    return !known.length ? null : (
        <div class="more" dir="auto">{known.map((c) =>
            <span key={c?.[0]}><span class="faint">{c?.[0]}</span> {c?.[1]}</span>)}</div>
    );
}

export function ChooseColumns(): JSX.Element {
    const shown = useColumns();
    const toggle = (name: string): void => setParams({
        cols: (shown.includes(name) ? shown.filter((s) => s !== name) : [...shown, name]).join(','),
    }, true);
    return (
        <details class="choose">
            <summary>Show{shown.length > 0 && ` (${shown.length})`}</summary>
            <div class="panel">{Object.entries(COLUMNS).map(([name, [label]]) => (
                <label key={name}><input type="checkbox" checked={shown.includes(name)} onChange={() => toggle(name)} />{' '}
                    {label}</label>
            ))}</div>
        </details>
    );
}
