// timeline.tsx - the life of a job: every step, and between them how long it waited and ran.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Job } from '../api';
import { ago, clock, since, span } from '../fmt';
import { between, story, type Mark, type Step, type Story } from '../story';

const MARK: Record<Mark, string> = {
    added: '+', start: '▸', error: '✕', lost: '!', hand: '✎', due: '◷', deadline: '◷', complete: '✓',
    failed: '✕', cancelled: '⊘', forgotten: '⋯',
};
// Of a long one the first and the newest are shown, and the others when asked for.
const LONG = 40, NEWEST = 24;

function Summary({ of }: { of: Story }): JSX.Element | null {
    return of.deliveries < 2 ? null
        : <p class="faint">{of.deliveries} deliveries, ran {of.whole ? '' : 'at least '}{span(of.ran)},
            waited {span(of.waited)}</p>;
}

// What it has been up to since the last step.
function lately(job: Job, last: Step, now: number): string {
    const ms = span(Math.max(0, now - last.at));
    return job.state === 'active' ? `running for ${ms}` : job.state === 'inactive' ? `waiting for ${ms}` : '';
}

// Still to come, or it was: all else has happened, whatever the clocks say.
const isAhead = (s: Step): boolean => !s.state && (s.mark === 'due' || s.mark === 'deadline');

export function Timeline({ job, now }: { job: Job; now: number }): JSX.Element {
    const [whole, setWhole] = useState(false);
    const life = story(job), { steps } = life;
    const hidden = whole || steps.length <= LONG ? 0 : steps.length - NEWEST - 1;
    const last = steps.filter((s) => s.state).pop();
    return (
        <>
            <Summary of={life} />
            <ol class="timeline">
                {steps.map((s, i) => {
                    const before = steps[i - 1], gap = before && between(before, s);
                    if (hidden && i === 1)
                        return (
                            <li key="more" class="forgotten">
                                <button type="button" onClick={() => setWhole(true)}>
                                    Show {hidden} more</button>
                            </li>
                        );
                    if (hidden && i > 1 && i <= hidden)
                        return null;
                    return (
                        <li key={i} class={`${s.mark}${s.at > now ? ' ahead' : ''}`}>
                            {gap && <span class="gap">{gap}</span>}
                            <span class="dot" aria-hidden="true">{MARK[s.mark]}</span>
                            <span class="said" dir="auto">{s.text}</span>
                            {s.mark !== 'forgotten' && <time title={clock(s.at)}>{(isAhead(s) ? ago : since)(s.at, now)}</time>}
                        </li>
                    );
                })}
                {last && lately(job, last, now) &&
                    <li class="now"><span class="gap">{lately(job, last, now)}</span></li>}
            </ol>
        </>
    );
}
