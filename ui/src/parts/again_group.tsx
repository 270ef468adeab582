// again_group.tsx - retry a group of errors: one job first; when that works, the others, some at a time.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Rest, retryOne, type Outcome, type Watch } from '../again';
import { get, type Job } from '../api';
import { sayError, type ErrorGroup } from '../errors';
import { count } from '../fmt';
import { Dialog } from './dialog';
import { toast } from './toast';

const MOST = [10, 100, 1000];

const SAID: Record<Outcome, string> = {
    complete: 'It is complete.', failed: 'It has failed again', other: 'It was cancelled or removed.',
};

function One({ group, busy, done }:
    { group: ErrorGroup; busy: boolean; done: (outcome: Outcome) => void }): JSX.Element {
    const [runs, setRuns] = useState(false), [said, setSaid] = useState<Outcome>(), [why, setWhy] = useState('');
    const watch = useRef<Watch | undefined>(undefined);
    useEffect(() => () => watch.current?.close(), []);
    const run = async (): Promise<void> => {
        setRuns(true);
        setSaid(undefined);
        setWhy('');
        try {
            const outcome = await retryOne(group.example, (w) => { watch.current = w; });
            if (outcome) {
                setSaid(outcome);
                done(outcome);
                if (outcome === 'failed')
                    setWhy((await get<Job>(`/v1/jobs/${group.example}`)).error ?? '');
            }
        } catch (e) {
            setWhy((e as Error).message);
        }
        setRuns(false);
    };
    return (
        <>
            <p><button type="button" class={said === 'complete' ? '' : 'main'} disabled={runs || busy}
                onClick={() => void run()}>Try one</button>{' '}
                <a href={`/jobs/${group.example}`}>#{group.example}</a>, which failed last</p>
            <p role="status">{runs ? 'It waits or runs …' : <>{said && SAID[said]}
                {why && <>{said && ': '}<span class="bad">{why.slice(0, 200)}</span></>}</>}</p>
        </>
    );
}

function Others({ group, good, working }:
    { group: ErrorGroup; good: boolean; working: (rest?: Rest) => void }): JSX.Element {
    const [most, setMost] = useState(MOST[0] as number), [busy, setBusy] = useState(false), [said, setSaid] = useState('');
    const rest = useRef<Rest | undefined>(undefined), alive = useRef(true);
    const [, turn] = useState(0);
    useEffect(() => () => { alive.current = false; rest.current?.stop(); }, []);
    const run = async (): Promise<void> => {
        const mine = rest.current = new Rest(group, most, () => alive.current && turn((n) => n + 1));
        setBusy(true);
        setSaid('');
        working(mine);
        const words = await mine.run().catch((e: unknown) => (e as Error).message);
        if (!alive.current)
            return;
        setSaid(words);
        setBusy(false);
        working(undefined);
    };
    const t = rest.current?.tally;
    return (
        <>
            <p class="edit">
                <button type="button" class={good ? 'main' : ''} disabled={busy} onClick={() => void run()}>
                    {good ? 'Retry the group' : 'Retry the group anyway'}</button>
                <select aria-label="How many at a time" disabled={busy} value={most}
                    onChange={(e) => setMost(Number(e.currentTarget.value))}>
                    {MOST.map((n) => <option key={n} value={n}>{count(n)} at a time</option>)}
                </select>
                {busy && <button type="button" onClick={() => rest.current?.stop()}>Stop</button>}
            </p>
            <p role="status">{t && <>{count(t.retried)} of about {count(group.count)} retried: {count(t.complete)} complete,{' '}
                {count(t.failed)} failed again, {count(t.queued)} queued or running
                {t.other > 0 && <>, {count(t.other)} cancelled or removed</>}.{' '}</>}{said}</p>
            {busy && <p class="faint">The next are retried when these have ended. Closing this dialog or the page stops;
                what is queued stays queued.</p>}
        </>
    );
}

export function AgainGroup({ group, close }: { group: ErrorGroup; close: () => void }): JSX.Element {
    const [seen, setSeen] = useState<Outcome>(), [busy, setBusy] = useState<Rest>();
    const working = useRef<Rest | undefined>(undefined);
    working.current = busy;
    useEffect(() => () => {
        if (working.current)
            toast(`Stopped: ${count(working.current.tally.retried)} of about ${count(group.count)} of ${group.type} were retried`);
    }, []);
    return (
        <Dialog title={`Retry ${count(group.count)} of ${group.type}`} close={close}>
            <p><code class="mask">{sayError(group)}</code></p>
            <One group={group} busy={!!busy} done={setSeen} />
            {seen === 'failed' && <p>The others will hardly do better.</p>}
            <Others group={group} good={seen === 'complete'} working={setBusy} />
            <p><button type="button" onClick={close}>Close</button></p>
        </Dialog>
    );
}
