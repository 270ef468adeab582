// again_group.tsx - retry a group of errors: one job first, then the rest at a chosen rate, which stops
// by itself when they fail again.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { bulk } from '../actions';
import { call, get, type Job } from '../api';
import { sayError, type ErrorGroup } from '../errors';
import { count } from '../fmt';
import { listen } from '../live';
import { Dialog } from './dialog';

const WAIT = '10s', STEP_MS = 1000, MOST = 10000;
const RATES: [string, number][] = [['10 a second', 10], ['100 a second', 100], ['all at once', MOST]];
// When so many of the type have failed, and more than came to a good end, they fail again.
const FAILED_AGAIN = 5;

interface Tally { retried: number; complete: number; failed: number }
const NOTHING: Tally = { retried: 0, complete: 0, failed: 0 };

// What becomes of the example, once it has been retried.
async function tryOne(id: number, alive: () => boolean): Promise<Job | undefined> {
    await call('POST', `/v1/jobs/${id}/retry`);
    for (;;) {
        const job = await get<Job>(`/v1/jobs/${id}/wait?timeout=${WAIT}`);
        if (!alive() || ['complete', 'failed', 'cancelled'].includes(job.state))
            return job;
    }
}

function One({ group, done }: { group: ErrorGroup; done: (job: Job) => void }): JSX.Element {
    const [busy, setBusy] = useState(false), [job, setJob] = useState<Job>(), [why, setWhy] = useState('');
    const alive = useRef(true);
    useEffect(() => () => { alive.current = false; }, []);
    const run = async (): Promise<void> => {
        setBusy(true);
        setWhy('');
        try {
            const seen = await tryOne(group.example, () => alive.current);
            if (seen && alive.current) {
                setJob(seen);
                done(seen);
            }
        } catch (e) {
            setWhy((e as Error).message);
        }
        setBusy(false);
    };
    return (
        <>
            <p><button type="button" class="main" disabled={busy} onClick={() => void run()}>Try one</button>{' '}
                <a href={`/jobs/${group.example}`}>#{group.example}</a>, which failed last</p>
            <p role="status">{busy ? 'It waits or runs …' : why ? <span class="bad">{why}</span>
                : !job ? '' : job.state === 'complete' ? 'It is complete.'
                    : <>It is {job.state}{job.error ? <>: <span class="bad">{job.error.slice(0, 200)}</span></> : ''}.</>}</p>
        </>
    );
}

// Retry step by step, until all are, it is stopped, or they fail again.
async function retryRest(group: ErrorGroup, rate: number, tally: Tally, stopped: () => boolean,
    show: () => void): Promise<string> {
    for (let after: string | undefined; ;) {
        const answer = await bulk('retry', { state: 'failed', type: group.type, error: group.error },
            { limit: rate, after });
        tally.retried += answer.done;
        show();
        after = answer.next;
        if (!after)
            return 'All of them are queued again.';
        await new Promise((r) => setTimeout(r, answer.done ? STEP_MS : 0));
        if (stopped())
            return 'Stopped.';
        if (tally.failed >= FAILED_AGAIN && tally.failed > tally.complete)
            return 'Stopped, since they fail again.';
    }
}

function Rest({ group }: { group: ErrorGroup }): JSX.Element {
    const [rate, setRate] = useState(10), [busy, setBusy] = useState(false), [said, setSaid] = useState('');
    const tally = useRef({ ...NOTHING }), stop = useRef(false);
    const [, turn] = useState(0);
    const show = (): void => turn((n) => n + 1);
    useEffect(() => {
        const off = listen((e) => {
            if (e === 'lost' || e.type !== group.type || !tally.current.retried)
                return;
            tally.current.complete += Number(e.event === 'complete');
            tally.current.failed += Number(e.event === 'failed' || e.event === 'failed_attempt');
            show();
        });
        return () => { stop.current = true; off(); };
    }, []);
    const run = async (): Promise<void> => {
        tally.current = { ...NOTHING };
        stop.current = false;
        setBusy(true);
        setSaid('');
        try {
            setSaid(await retryRest(group, rate, tally.current, () => stop.current, show));
        } catch (e) {
            setSaid((e as Error).message);
        }
        setBusy(false);
    };
    const t = tally.current;
    return (
        <>
            <p class="edit">
                <button type="button" disabled={busy} onClick={() => void run()}>Retry the group</button>
                <select aria-label="How fast" disabled={busy} value={rate}
                    onChange={(e) => setRate(Number(e.currentTarget.value))}>
                    {RATES.map(([name, n]) => <option key={n} value={n}>{name}</option>)}
                </select>
                {busy && <button type="button" onClick={() => { stop.current = true; }}>Stop</button>}
            </p>
            <p role="status">{t.retried > 0 && <>{count(t.retried)} queued again. Since then, of this type:{' '}
                {count(t.complete)} complete, {count(t.failed)} failed.{' '}</>}{said}</p>
        </>
    );
}

export function AgainGroup({ group, close }: { group: ErrorGroup; close: () => void }): JSX.Element {
    const [seen, setSeen] = useState<Job>();
    return (
        <Dialog title={`Retry ${count(group.count)} of ${group.type}`} close={close}>
            <p><code class="mask">{sayError(group)}</code></p>
            <One group={group} done={setSeen} />
            {seen && seen.state !== 'complete' && <p>The others will hardly do better.</p>}
            <Rest group={group} />
            <p><button type="button" onClick={close}>Close</button></p>
        </Dialog>
    );
}
