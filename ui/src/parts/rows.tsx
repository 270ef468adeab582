// rows.tsx - the jobs of a list: a table with a column for each thing where there is room, else rows that wrap.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ACTION_LABEL, possible, type Action } from '../actions';
import { STATE_LABEL, STATE_MARK } from '../app';
import { titleOf, type State } from '../api';
import { ago, priority, since, span } from '../fmt';
import type { Listed } from '../list';
import { may } from '../store';
import { columnLabel, columnOf, Columns } from './columns';
import { Ring } from './ring';

export interface RowsProps {
    jobs: Listed[]; states: State[]; name: string; busy: boolean; now: number; cols: string[];
    at: number;                 // the job that keys are for
    chosen: Set<number>; choose: (id: number) => void; run: (a: Action, job: Listed) => void;
}

const MAX_TITLE = 160;

function title(job: Listed): string {
    const text = titleOf(job) || job.text;
    return text.length > MAX_TITLE ? `${text.slice(0, MAX_TITLE)}…` : text;
}

const errorLine = (job: Listed): string =>
    job.state === 'complete' ? '' : ((job.error ?? '').split('\n', 1)[0] as string).slice(0, MAX_TITLE);

function when(job: Listed, now: number): string {
    switch (job.state) {
    case 'delayed': return job.promote_at ? ago(job.promote_at, now) : '';
    case 'active': return job.started_at ? `for ${span(Math.max(0, now - job.started_at))}` : '';
    case 'inactive': return `waits ${span(Math.max(0, now - job.created_at))}`;
    default: return job.finished_at ? since(job.finished_at, now) : '';
    }
}

// ---- what both forms have ----

function Check({ job, p }: { job: Listed; p: RowsProps }): JSX.Element {
    return <input type="checkbox" checked={p.chosen.has(job.id)} onChange={() => p.choose(job.id)}
        aria-label={`Select job ${job.id}`} />;
}

function Mark({ job, size }: { job: Listed; size: number }): JSX.Element {
    return job.state === 'active' ? <Ring percent={job.progress} size={size} />
        : <span class={`mark ${job.state}`} title={STATE_LABEL[job.state]}>{STATE_MARK[job.state]}</span>;
}

function Buttons({ job, p }: { job: Listed; p: RowsProps }): JSX.Element | null {
    return job.gone ? null : (
        <span class="do">{possible(job.state).map((a) => (
            <button key={a} type="button" onClick={() => p.run(a, job)}
                aria-label={`${ACTION_LABEL[a]} job ${job.id}`}>{ACTION_LABEL[a]}</button>
        ))}</span>
    );
}

function Link({ job }: { job: Listed }): JSX.Element {
    return <a href={`/jobs/${job.id}`}><span class="id">#{job.id}</span> <b>{job.type}</b></a>;
}

function Text({ job }: { job: Listed }): JSX.Element {
    const line = errorLine(job);
    return (
        <>
            <div class="text" dir="auto">{title(job)}</div>
            {line && <div class="text bad" dir="auto">{line}</div>}
        </>
    );
}

const GONE = 'not here any more';

// The row that keys are for is in sight.
function useInSight<E extends Element>(at: boolean): { current: E | null } {
    const row = useRef<E>(null);
    useEffect(() => {
        if (at)
            row.current?.scrollIntoView({ block: 'nearest' });
    }, [at]);
    return row;
}

const classOf = (job: Listed, at: boolean): string => `row${at ? ' at' : ''}${job.gone ? ' gone' : ''}`;

// ---- a table ----

// What the last column but one says of jobs in one state.
const WHEN: Record<State, string> = {
    inactive: 'Waits', active: 'Runs', delayed: 'Due', failed: 'Failed', complete: 'Ended', cancelled: 'Cancelled',
};

function Line({ job, p }: { job: Listed; p: RowsProps }): JSX.Element {
    const at = job.id === p.at, row = useInSight<HTMLTableRowElement>(at), mixed = p.states.length !== 1;
    const cell = (text: ComponentChildren, c = ''): JSX.Element => <td class={c} dir="auto">{text}</td>;
    return (
        <tr ref={row} class={classOf(job, at)} data-id={job.id}>
            {may('admin') && <td class="sel"><Check job={job} p={p} /></td>}
            <td class="state"><span><Mark job={job} size={26} />{mixed && STATE_LABEL[job.state]}</span></td>
            <td class="what" title={job.type}><Link job={job} /></td>
            <td class="data"><div><Text job={job} /></div></td>
            {cell(priority(job.priority), job.priority ? 'priority' : 'priority faint')}
            {cell(job.max_attempts > 1 || job.attempts > 1 ? `${job.attempts} of ${job.max_attempts}` : job.attempts || '–',
                'num')}
            {p.cols.map((name) => <td key={name} class="col" dir="auto">{columnOf(name, job, p.now) || '–'}</td>)}
            <td class="when">{job.gone ? GONE : when(job, p.now)}</td>
            {may('admin') && <td class="acts"><Buttons job={job} p={p} /></td>}
        </tr>
    );
}

function Table(p: RowsProps): JSX.Element {
    const [one] = p.states;
    return (
        <div class={p.cols.length > 3 ? 'scroll' : ''}>
            <table class="jobs" aria-label={p.name} aria-busy={p.busy}>
                <thead><tr>
                    {may('admin') && <th><span class="hidden">Select</span></th>}
                    <th>{p.states.length === 1 ? <span class="hidden">State</span> : 'State'}</th>
                    <th>Job</th><th class="data"><div><span>Data</span>{p.jobs.some(errorLine) && <span>Error</span>}</div></th>
                    <th>Priority</th><th class="num">Attempts</th>
                    {p.cols.map((name) => <th key={name} class="col">{columnLabel(name)}</th>)}
                    <th class="when">{p.states.length === 1 && one ? WHEN[one] : 'When'}</th>
                    {may('admin') && <th><span class="hidden">Actions</span></th>}
                </tr></thead>
                <tbody>{p.jobs.map((job) => <Line key={job.id} job={job} p={p} />)}</tbody>
            </table>
        </div>
    );
}

// ---- rows that wrap ----

function Item({ job, p }: { job: Listed; p: RowsProps }): JSX.Element {
    const at = job.id === p.at, row = useInSight<HTMLLIElement>(at);
    return (
        <li ref={row} class={classOf(job, at)} data-id={job.id}>
            {may('admin') && <Check job={job} p={p} />}
            <Mark job={job} size={34} />
            <div class="what">
                <Link job={job} />
                {job.priority !== 0 && <span class="tag">{priority(job.priority)}</span>}
                {job.attempts > 0 && job.max_attempts > 1 &&
                    <span class="tag">attempt {job.attempts}/{job.max_attempts}</span>}
                <Text job={job} />
                <Columns job={job} now={p.now} shown={p.cols} />
            </div>
            <span class="when">{job.gone ? GONE : when(job, p.now)}</span>
            {may('admin') && <Buttons job={job} p={p} />}
        </li>
    );
}

export function Rows({ table, ...p }: RowsProps & { table: boolean }): JSX.Element {
    return table ? <Table {...p} /> : (
        <ul class="jobs" aria-label={p.name} aria-busy={p.busy}>
            {p.jobs.map((job) => <Item key={job.id} job={job} p={p} />)}
        </ul>
    );
}
