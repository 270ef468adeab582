// columns.tsx - what a list shows of each job beyond the usual, as chosen in the address: `cols=worker,took`.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Job } from '../api';
import { ago, clock, count, since, span } from '../fmt';
import type { Sort } from '../list';
import { setParams, usePlace } from '../router';

const COLUMNS: Record<string, [label: string, of: (job: Job, now: number) => string]> = {
    created: ['added', (j, now) => since(j.created_at, now)],
    at: ['added at', (j) => clock(j.created_at)],
    started: ['started', (j, now) => j.started_at ? since(j.started_at, now) : ''],
    waited: ['waited', (j) => j.started_at ? span(Math.max(0, j.started_at - (j.promote_at || j.created_at))) : ''],
    took: ['took', (j) => j.duration === undefined ? '' : span(j.duration)],
    worker: ['worker', (j) => j.workerId ?? ''],
    deliveries: ['deliveries', (j) => j.delivery ? count(j.delivery) : ''],
    lost: ['workers lost', (j) => j.lost ? count(j.lost) : ''],
    unique: ['unique key', (j) => j.unique ?? ''],
    deadline: ['deadline', (j, now) => j.deadline ? ago(j.deadline, now) : ''],
};

export const COLUMN_NAMES = Object.keys(COLUMNS);
export const columnLabel = (name: string): string => COLUMNS[name]?.[0] ?? name;
export const columnOf = (name: string, job: Job, now: number): string => COLUMNS[name]?.[1](job, now) ?? '';

// Those of the address that there are.
function useChosen(): string[] {
    return [...new Set((usePlace().params.get('cols') ?? '').split(','))].filter((name) => COLUMN_NAMES.includes(name));
}

// What a list is sorted by is shown, too.
export function useColumns(sort: Sort | ''): string[] {
    const chosen = useChosen();
    const by = ['created', 'started', 'took'].find((name) => name === sort && !chosen.includes(name));
    return by ? [...chosen, by] : chosen;
}

export function Columns({ job, now, shown }: { job: Job; now: number; shown: string[] }): JSX.Element | null {
    const known = shown.map((name) => [columnLabel(name), columnOf(name, job, now)]).filter(([, text]) => text);
    return !known.length ? null : (
        <div class="more" dir="auto">{known.map(([label, text]) =>
            <span key={label}><span class="faint">{label}</span> {text}</span>)}</div>
    );
}

export function ChooseColumns(): JSX.Element {
    const shown = useChosen();
    const box = useRef<HTMLDetailsElement>(null), panel = useRef<HTMLDivElement>(null);
    const [right, setRight] = useState(false);      // where there is no room at the right of its button
    const place = (): void => setRight((box.current?.getBoundingClientRect().left ?? 0) +
        (panel.current?.offsetWidth ?? 0) > document.documentElement.clientWidth - 8);
    const toggle = (name: string): void => setParams({
        cols: (shown.includes(name) ? shown.filter((s) => s !== name) : [...shown, name]).join(','),
    }, true);
    return (
        <details class={`choose${right ? ' right' : ''}`} ref={box} onToggle={place}>
            <summary>Show{shown.length > 0 && ` (${shown.length})`}</summary>
            <div class="panel" ref={panel}>{COLUMN_NAMES.map((name) => (
                <label key={name}><input type="checkbox" checked={shown.includes(name)} onChange={() => toggle(name)} />
                    {columnLabel(name)}</label>
            ))}</div>
        </details>
    );
}
