// timeline.tsx - the life of a job: each moment that is known of it, and between them how long it
// waited and ran. The store keeps the last start alone; earlier ones are here if the page saw them.
import type { JSX } from 'preact';
import { ago, clock, priority, span } from '../fmt';

export interface Moment { at: number; what: string }
export interface Start { at: number; delivery: number; worker: string }

type Kind = 'added' | 'start' | 'error' | 'lost' | 'due' | 'deadline' | 'complete' | 'failed' | 'cancelled';
interface Step { at: number; kind: Kind; text: string; delivery?: number }

const MARK: Record<Kind, string> = {
    added: '+', start: '▸', error: '✕', lost: '!', due: '◷', deadline: '◷', complete: '✓',
    failed: '✕', cancelled: '⊘',
};

// The words of explain, in parts.
function readMoment(m: Moment): Step {
    const start = /^started by (.*) \(delivery (\d+)\)$/s.exec(m.what);
    const added = /^added, priority (-?\d+), (.*)$/.exec(m.what);
    if (start)
        return { at: m.at, kind: 'start', text: start[1] as string, delivery: Number(start[2]) };
    if (added)
        return { at: m.at, kind: 'added', text: `Added, ${priority(Number(added[1]))} priority, ${added[2]}` };
    if (m.what.startsWith('error | '))
        return { at: m.at, kind: 'error', text: m.what.slice(8) };
    if (m.what.startsWith('stalled | '))
        return { at: m.at, kind: 'lost', text: `Worker lost: ${m.what.slice(10)}` };
    if (m.what === 'failed')
        return { at: m.at, kind: 'failed', text: 'Failed for good' };
    return { at: m.at, kind: m.what as Kind, text: m.what[0]?.toUpperCase() + m.what.slice(1) };
}

export function steps(moments: Moment[], starts: Start[]): Step[] {
    const known = moments.map(readMoment);
    for (const s of starts)
        if (!known.some((k) => k.delivery === s.delivery))
            known.push({ at: s.at, kind: 'start', text: s.worker, delivery: s.delivery });
    // in one millisecond a job starts before it ends
    const rank = (s: Step): number => s.kind === 'added' ? 0 : s.kind === 'start' ? 1 : 2;
    known.sort((a, b) => a.at - b.at || rank(a) - rank(b));
    let failures = 0;
    for (const s of known)
        if (s.kind === 'error')
            s.text = `Attempt ${++failures} failed: ${s.text}`;
        else if (s.kind === 'start')
            s.text = `Delivery ${s.delivery}: started by ${s.text}`;
    return known;
}

// What the time between two moments was.
function between(a: Step, b: Step): string {
    const ms = span(b.at - a.at);
    if (a.kind === 'start')
        return `ran ${ms}`;
    if (b.kind === 'error' || b.kind === 'lost' || b.kind === 'complete')
        return `waited and ran ${ms}`;
    return a.kind === 'error' && (b.kind === 'failed') ? '' : `waited ${ms}`;
}

export function Timeline({ moments, starts, running, now }:
    { moments: Moment[]; starts: Start[]; running: boolean; now: number }): JSX.Element {
    const all = steps(moments, starts);
    const last = all[all.length - 1];
    return (
        <ol class="timeline">
            {all.map((s, i) => {
                const before = all[i - 1];
                return (
                    <li key={i} class={`${s.kind}${s.at > now ? ' ahead' : ''}`}>
                        {before && s.at > before.at && between(before, s) &&
                            <span class="gap">{between(before, s)}</span>}
                        <span class="dot" aria-hidden="true">{MARK[s.kind] ?? '·'}</span>
                        <span class="said" dir="auto">{s.text}</span>
                        <time title={clock(s.at)}>{ago(s.at, now)}</time>
                    </li>
                );
            })}
            {running && last?.kind === 'start' &&
                <li class="now"><span class="gap">running for {span(Math.max(0, now - last.at))}</span></li>}
        </ol>
    );
}
