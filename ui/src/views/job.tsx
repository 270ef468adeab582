// job.tsx - one job on one screen: what it is, what happened to it and when, why it is where it is,
// and what can be done about it.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { act, ACTION_LABEL, possible } from '../actions';
import { ApiError, call, callText, get, titleOf, type Job as JobData, type State } from '../api';
import { STATE_LABEL, STATE_MARK } from '../app';
import { ago, clock, memberText, priority, PRIORITY_NAMES, since, span } from '../fmt';
import { useKeys } from '../keys';
import { follow, type Following } from '../live';
import { Again } from '../parts/add';
import { copy } from '../parts/command';
import { Json } from '../parts/json';
import { LeaseLeft, lookAgain, seeLease, type Lease } from '../parts/lease';
import { Log } from '../parts/log';
import { Ring } from '../parts/ring';
import { Timeline } from '../parts/timeline';
import { complain, toast } from '../parts/toast';
import { go } from '../router';
import { bodyOfJob } from '../spec';
import { may, serverNow, useNow, useTitle } from '../store';
import { JobAudit } from './audit';

interface Explained { why: string; remedy: string }

// What would help, by the remedies of GET /v1/jobs/{id}/explain.
const REMEDY: Record<string, string> = {
    resume: 'Resume its type.',
    resume_all: 'Resume all types.',
    start_worker: 'Start a worker for its type.',
    add_workers: 'Start more workers for its type, or give the job a better priority.',
    promote: 'To start it now, promote it.',
    finish_migration: 'Run the migration again, to go on.',
    cancel: 'If it should not go on, cancel it.',
    stop_worker: 'If it should not go on, stop its worker.',
    retry: 'Look at its log and mend the cause, then retry it.',
    retry_longer: 'Retry it with a longer ttl, or let its worker report progress, which extends the ttl.',
};

interface Shown { job: JobData; text: string; explained: Explained; lease?: Lease }
const AGAIN_MS = 250;

// The job with its explanation, read again whenever something happens to it. `turn` counts.
function useJob(id: number): { shown?: Shown; gone: string; turn: number; again: () => void } {
    const [shown, setShown] = useState<Shown>();
    const [gone, setGone] = useState('');
    const [turn, setTurn] = useState(0);
    const following = useRef<Following | undefined>(undefined);
    useEffect(() => {
        let alive = true, lease: Lease | undefined;
        const read = async (): Promise<number | void> => {
            try {
                const text = await callText('GET', `/v1/jobs/${id}`);
                const job = JSON.parse(text) as JobData;
                lease = seeLease(job, lease, serverNow());
                const explained = await get<Explained>(`/v1/jobs/${id}/explain`);
                if (!alive)
                    return;
                setShown({ job, text, explained, lease });
                setGone('');
                setTurn((n) => n + 1);
            } catch (e) {           // the frame shows that a server or a store is away
                if (alive && e instanceof ApiError && e.status === 404)
                    setGone(e.message);
            }
            return lookAgain([lease]);
        };
        following.current = follow(read, AGAIN_MS, (e) => e.id === id);
        return () => { alive = false; following.current?.stop(); };
    }, [id]);
    return { shown, gone, turn, again: () => following.current?.again() };
}

// A command that adds this job once more, for a shell.
function asCurl(job: JobData, data: string, values?: string): string {
    const body = bodyOfJob(job, data, values, serverNow());
    return `curl --json '${body.replace(/'/g, `'\\''`)}' ${location.origin}/v1/jobs`;
}

async function patch(id: number, change: Record<string, unknown>, done: string, again: () => void):
    Promise<void> {
    try {
        await call('PATCH', `/v1/jobs/${id}`, change);
        toast(done);
    } catch (e) {
        complain(e);
    }
    again();
}

// ---- parts ----

const NEXT: Record<State, State[]> = {
    inactive: ['cancelled'], delayed: ['inactive', 'cancelled'], active: ['cancelled'],
    complete: ['inactive'], failed: ['inactive'], cancelled: ['inactive'],
};

function StateAndPriority({ job, again }: { job: JobData; again: () => void }): JSX.Element {
    const mark = <span class={`mark ${job.state}`} aria-hidden="true">{STATE_MARK[job.state]}</span>;
    if (!may('admin'))
        return <p>{mark} {STATE_LABEL[job.state]} · {priority(job.priority)} priority</p>;
    const named = PRIORITY_NAMES.includes(priority(job.priority));
    return (
        <p class="edit">
            {mark}
            <select aria-label="State" value={job.state} onChange={(e) => void patch(job.id,
                { state: e.currentTarget.value }, 'The state was changed', again)}>
                {[job.state, ...NEXT[job.state]].map((s) =>
                    <option key={s} value={s}>{STATE_LABEL[s]}</option>)}
            </select>
            <select aria-label="Priority" value={priority(job.priority)} disabled={job.state === 'active'}
                onChange={(e) => void patch(job.id, { priority: e.currentTarget.value },
                    'The priority was changed', again)}>
                {!named && <option value={priority(job.priority)}>{priority(job.priority)}</option>}
                {PRIORITY_NAMES.map((p) => <option key={p} value={p}>{p}</option>)}
            </select>
        </p>
    );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element | null {
    return children === undefined || children === '' || children === false ? null
        : <div><dt>{name}</dt><dd dir="auto">{children}</dd></div>;
}

function backoffWords(b: NonNullable<JobData['backoff']>): string {
    return `${b.type}, ${span(b.delay)}${b.maxDelay ? `, at most ${span(b.maxDelay)}` : ''}` +
        (b.jitter ? `, jitter ${b.jitter}%` : '');
}

function Facts({ job, lease, now }: { job: JobData; lease?: Lease; now: number }): JSX.Element {
    const moment = (at: number | undefined, say: typeof ago): ComponentChildren =>
        at ? <time title={clock(at)}>{say(at, now)}</time> : undefined;
    const past = (at?: number): ComponentChildren => moment(at, since);
    return (
        <dl class="facts">
            <Fact name="Attempts">{job.attempts} of {job.max_attempts}</Fact>
            <Fact name="Deliveries">{job.delivery || undefined}</Fact>
            <Fact name="Workers lost">{job.lost || undefined}</Fact>
            <Fact name="Worker">{job.workerId}</Fact>
            <Fact name="Lease">{lease && <LeaseLeft lease={lease} now={now} />}</Fact>
            <Fact name="Created">{past(job.created_at)}</Fact>
            <Fact name="Due">{job.state === 'delayed' && moment(job.promote_at, ago)}</Fact>
            <Fact name="Started">{past(job.started_at)}</Fact>
            <Fact name={job.state === 'complete' ? 'Completed' : 'Ended'}>{past(job.finished_at)}</Fact>
            <Fact name="Last failure">{past(job.failed_at)}</Fact>
            <Fact name="Took">{job.duration !== undefined && job.state === 'complete' &&
                span(job.duration)}</Fact>
            <Fact name="Backoff">{job.backoff && backoffWords(job.backoff)}</Fact>
            <Fact name="Time to live">{job.ttl && span(job.ttl)}</Fact>
            <Fact name="Deadline">{moment(job.deadline, ago)}</Fact>
            <Fact name="Unique key">{job.unique}</Fact>
            <Fact name="When complete">{job.removeOnComplete && 'removed'}</Fact>
        </dl>
    );
}

// ---- the view ----

function Gone({ why }: { why: string }): JSX.Element {
    return (
        <div class="empty">
            <h1>Not here</h1>
            <p>{why}</p>
            <p class="faint">It may have been deleted, or removed because its type keeps only so
                many.</p>
            <p><a href="/jobs">All jobs</a></p>
        </div>
    );
}

export function Job({ id }: { id: number }): JSX.Element {
    const { shown, gone, turn, again } = useJob(id);
    const [editing, setEditing] = useState(false);
    const now = useNow();
    useTitle(gone ? 'Not here' : shown ? `#${id} ${shown.job.type}` : `#${id}`);
    const run = (a: Parameters<typeof act>[0]): void =>
        act(a, { ids: [id], state: shown?.job.state }, 1, again);
    useKeys({
        'u': () => history.length > 1 ? history.back() : go('/jobs'),
        'r': () => shown && may('admin') && possible(shown.job.state).includes('retry') && run('retry'),
    });
    if (gone)
        return <Gone why={gone} />;
    if (!shown)
        return <p class="faint" aria-busy="true">…</p>;
    const { job, text, explained, lease } = shown;
    const data = memberText(text, 'data') ?? '{}';
    const result = memberText(text, 'result'), progressData = memberText(text, 'progress_data');
    const values = memberText(text, 'values');
    return (
        <article class="job">
            <div class="title">
                <h1>#{job.id} <b>{job.type}</b> <span class="faint" dir="auto">{titleOf(job).slice(0, 200)}</span></h1>
                <div class="filters">
                    {may('admin') && possible(job.state).map((a) => (
                        <button key={a} type="button" class={a === 'delete' ? 'danger' : ''}
                            onClick={() => run(a)}>{ACTION_LABEL[a]}</button>
                    ))}
                    {may('produce') && <button type="button" onClick={() => setEditing(true)}>
                        Edit and run again</button>}
                    <button type="button" onClick={() => void copy(asCurl(job, data, values),
                        'The curl command was copied')}>Copy as curl</button>
                </div>
            </div>
            <div class="columns">
                <div>
                    {job.error && <section class="panel wrong" aria-label="Error">
                        <h2>Error</h2><pre dir="auto">{job.error}</pre></section>}
                    <section class="panel" aria-label="Data"><h2>Data</h2>
                        <Json text={data} name="data" /></section>
                    {values !== undefined && <section class="panel" aria-label="Values"><h2>Values</h2>
                        <Json text={values} name="values" /></section>}
                    {result !== undefined && <section class="panel" aria-label="Result"><h2>Result</h2>
                        <Json text={result} name="result" /></section>}
                    {progressData !== undefined && <section class="panel" aria-label="Progress data">
                        <h2>Progress data</h2><Json text={progressData} name="progress data" />
                    </section>}
                    <Log id={id} active={job.state === 'active'} turn={turn} />
                </div>
                <div>
                    <section class="panel" aria-label="State">
                        <div class="head">
                            <StateAndPriority job={job} again={again} />
                            {(job.state === 'active' || job.progress > 0) && <Ring percent={job.progress} size={56} />}
                        </div>
                        <p class="why" dir="auto">{explained.why}</p>
                        {REMEDY[explained.remedy] && <p class="help">{REMEDY[explained.remedy]}</p>}
                    </section>
                    <section class="panel" aria-label="Timeline"><h2>Timeline</h2>
                        <Timeline job={job} now={now} /></section>
                    <JobAudit id={id} turn={turn} />
                    <section class="panel" aria-label="Details"><h2>Details</h2>
                        <Facts job={job} lease={lease} now={now} /></section>
                </div>
            </div>
            {editing && <Again job={job} data={data} values={values} close={() => setEditing(false)} />}
        </article>
    );
}
