// story.ts - the life of a job as steps, from its members and its history (docs/http.md).
import type { Job, Past, State } from './api';
import { priority, span } from './fmt';

export type Mark = 'added' | 'start' | 'error' | 'lost' | 'hand' | 'due' | 'deadline' | 'complete' |
    'failed' | 'cancelled' | 'forgotten';
// `state`: what it was from then on; none: not known, or still to come.
export interface Step { at: number; mark: Mark; text: string; state?: State }
// `whole`: nothing is forgotten of it.
export interface Story { steps: Step[]; deliveries: number; ran: number; waited: number; whole: boolean }

const ended = (s?: State): boolean => s === 'complete' || s === 'failed' || s === 'cancelled';

function changes(p: Past): string {
    return (p.priority === undefined ? '' :
        `, priority ${priority(p.priority)} (it was ${priority(p.old_priority ?? 0)})`) +
        (p.new_data ? ', new data' : '');
}

function outcome(p: Past): string {
    if (p.until)
        return `; tried again in ${span(p.until - p.at)}`;
    return p.state === 'inactive' ? '; queued again' : p.state === 'failed' ? '; failed for good' : '';
}

const LATE_MS = 1000;
function planned(p: Past): string {
    const late = p.planned ? p.at - p.planned : 0;
    return late < 0 ? `, ${span(-late)} early` : late >= LATE_MS ? `, ${span(late)} late` : '';
}

const later = (p: Past): string => p.until ? `, to start in ${span(p.until - p.at)}` : '';

const by = (p: Past): string => ` by ${p.by ?? 'hand'}`;

// What each event of a history says; `attempt` is its number, 0: not known.
const SAID: Record<Past['event'], (p: Past, attempt: number) => [Mark, string]> = {
    failed_attempt: (p, n) => ['error', `Attempt${n ? ` ${n}` : ''} failed: ${p.error}${outcome(p)}`],
    failed: (p, n) => ['failed', `Attempt${n ? ` ${n}` : ''} failed: ${p.error}; failed for good`],
    ttl_exceeded: (p) => ['error', `Took too long (ttl)${outcome(p)}`],
    stalled: (p) => ['lost', `Worker lost${outcome(p)}`],
    returned: (p) => ['hand', `Given back by its worker${outcome(p)}`],
    complete: () => ['complete', 'Complete'],
    due: (p) => ['due', `Its time came${planned(p)}`],
    deadline: () => ['failed', 'Failed: its deadline came before a worker did'],
    retried: (p) => ['hand', `Retried${by(p)}${later(p)}${changes(p)}`],
    promoted: (p) => ['hand', `Promoted${by(p)}${planned(p)}${changes(p)}`],
    delayed: (p) => ['hand', `Delayed${by(p)}${later(p)}${changes(p)}`],
    cancelled: (p) => ['cancelled', `Cancelled${by(p)}${changes(p)}`],
    set: (p) => ['hand', `Set to ${p.state}${by(p)}${changes(p)}`],
    changed: (p) => ['hand', `Changed${by(p)}${changes(p)}`],
};

function start(at: number, delivery: number, worker = '?'): Step {
    return { at, mark: 'start', text: `Delivery ${delivery}: started by ${worker}`, state: 'active' };
}

function added(job: Job, past: Past[]): Step {
    const first = past.find((p) => p.priority !== undefined)?.old_priority ?? job.priority;
    const delayed = past[0] ? past[0].n === 1 && past[0].planned !== undefined
        : !job.started_at && job.state === 'delayed';
    return {
        at: job.created_at, mark: 'added', state: past[0] && past[0].n > 1 ? undefined
            : delayed ? 'delayed' : 'inactive',
        text: `Added, ${priority(first)} priority, ${job.max_attempts} ` +
            `attempt${job.max_attempts === 1 ? '' : 's'}`,
    };
}

function tellPast(steps: Step[], past: Past[]): void {
    let attempt = past[0] && past[0].n > 1 ? NaN : 0;
    if (past[0] && past[0].n > 1)
        steps.push({ at: past[0].started_at ?? past[0].at, mark: 'forgotten',
            text: `What happened before is forgotten: ${past[0].n - 1} of ${past[past.length - 1]?.n}` });
    for (const p of past) {
        if (p.event === 'failed_attempt' || p.event === 'failed' || p.event === 'ttl_exceeded')
            attempt++;
        if (p.event === 'retried')
            attempt = 0;
        if (p.delivery)
            steps.push(start(p.started_at ?? p.at, p.delivery, p.worker));
        const [mark, text] = SAID[p.event]?.(p, attempt || 0) ?? ['hand', p.event];
        steps.push({ at: p.at, mark, text, state: p.state });
    }
}

// Its last delivery and its end, if no entry has them.
function tellEnd(steps: Step[], job: Job, past: Past[]): void {
    if (job.started_at && !past.some((p) => p.delivery === job.delivery))
        steps.push(start(job.started_at, job.delivery, job.workerId));
    if (job.error && job.failed_at && !past.some((p) => p.at === job.failed_at))
        steps.push({ at: job.failed_at, mark: 'error', text: `Failed: ${job.error}`, state: job.state });
    if (job.finished_at && !past.some((p) => p.state === job.state && p.at === job.finished_at))
        steps.push({ at: job.finished_at, mark: job.state as Mark, state: job.state,
            text: job.state === 'failed' ? 'Failed for good'
                : job.state === 'complete' ? 'Complete' : 'Cancelled' });
}

function tellFuture(steps: Step[], job: Job): void {
    if (job.state === 'delayed' && job.promote_at)
        steps.push({ at: job.promote_at, mark: 'due', text: 'Due' });
    if (job.deadline && !ended(job.state))
        steps.push({ at: job.deadline, mark: 'deadline', text: 'Deadline' });
}

// How long it was in that state, in words; '': nothing to say.
export function between(a: Step, b: Step): string {
    const ms = b.at - a.at;
    if (ms <= 0 || !a.state || !b.state)
        return '';
    return a.state === 'active' ? `ran ${span(ms)}` : a.state === 'inactive' ? `waited ${span(ms)}`
        : a.state === 'delayed' ? `delayed ${span(ms)}` : `${span(ms)} later`;
}

export function story(job: Job): Story {
    const past = job.history ?? [], steps = [added(job, past)];
    tellPast(steps, past);
    tellEnd(steps, job, past);
    steps.sort((a, b) => a.at - b.at);       // how it ended before a retry is written with that
    let ran = 0, waited = 0;
    steps.forEach((s, i) => {
        const before = steps[i - 1], ms = before?.state && s.state ? Math.max(0, s.at - before.at) : 0;
        if (before?.state === 'active')
            ran += ms;
        else if (!ended(before?.state))
            waited += ms;
    });
    tellFuture(steps, job);
    return { steps, deliveries: job.delivery ?? 0, ran, waited, whole: (past[0]?.n ?? 1) === 1 };
}
