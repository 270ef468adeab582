// jobs.tsx - a list of jobs: those in a state, or all; by type, priority, words. It follows what
// happens; what is chosen stays chosen.
import type { JSX } from 'preact';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { act, ACTION_LABEL, possible, type Action, type Filter } from '../actions';
import { STATE_LABEL, STATE_MARK } from '../app';
import { get, query, STATES, type Job, type State } from '../api';
import { ago, count, priority, PRIORITY_NAMES, span } from '../fmt';
import { useKeys } from '../keys';
import { listen } from '../live';
import { Ask, type Question } from '../parts/ask';
import { Command } from '../parts/command';
import { Ring } from '../parts/ring';
import { complain } from '../parts/toast';
import { go, setParams, usePlace } from '../router';
import { may, useNow, useShared } from '../store';

const PAGE = 50, AGAIN_MS = 500, MAX_LOOKED = 1000;

interface Page { jobs: Job[]; next: string | null }
interface Wanted { state?: State; type: string; words: string; order: string; priority: string }

// "type:mail state:failed user:42 smtp" in its parts; what is no filter is looked for as words.
export function readQuery(text: string): { type: string; state?: State; words: string } {
    let type = '', state: State | undefined;
    const words: string[] = [];
    for (const word of text.split(/\s+/).filter(Boolean)) {
        const [, name, value] = /^(type|state):(.+)$/.exec(word) ?? [];
        if (name === 'type')
            type = value as string;
        else if (name === 'state' && STATES.includes(value as State))
            state = value as State;
        else
            words.push(word.replace(/:/g, ' '));
    }
    return { type, state, words: words.join(' ') };
}

function useWanted(state?: State): Wanted {
    const { params } = usePlace();
    const text = params.get('q') ?? '', type = params.get('type') ?? '';
    const order = params.get('order') ?? '', prio = params.get('priority') ?? '';
    return useMemo(() => {
        const q = readQuery(text);
        const finished = state === 'failed' || state === 'complete' || state === 'cancelled' || !state;
        return {
            state: state ?? q.state, type: type || q.type, words: q.words, priority: prio,
            order: order || (finished ? 'desc' : 'asc'),
        };
    }, [text, type, order, prio, state]);
}

function fits(job: Job, wanted: Wanted): boolean {
    return !wanted.priority || priority(job.priority) === wanted.priority;
}

// At least `n` jobs that fit, or all there are. A filter that the server does not know is applied
// here, and gives up after so many.
async function load(wanted: Wanted, n: number, after: string | null): Promise<Page> {
    const jobs: Job[] = [];
    let next: string | null = after, looked = 0;
    do {
        const page: Page = await get<Page>('/v1/jobs' + query({
            state: wanted.state, type: wanted.type, search: wanted.words, order: wanted.order,
            limit: Math.max(PAGE, Math.min(1000, n - jobs.length)), after: next ?? undefined,
        }));
        jobs.push(...page.jobs.filter((j) => fits(j, wanted)));
        looked += page.jobs.length;
        next = page.next;
    } while (next && jobs.length < n && looked < MAX_LOOKED + n);
    return { jobs, next };
}

// The list as it is now, kept up with events; `more` loads the next page.
function useList(wanted: Wanted) {
    const [page, setPage] = useState<Page>();
    const size = useRef(PAGE), busy = useRef(false), stale = useRef(0), alive = useRef(true);
    const again = useCallback(async () => {
        if (busy.current) {
            stale.current = stale.current || 1;
            return;
        }
        busy.current = true;
        stale.current = 0;
        try {
            const fresh = await load(wanted, size.current, null);
            if (alive.current)
                setPage(fresh);
        } catch (e) {
            complain(e);
        }
        busy.current = false;
        if (stale.current && alive.current)
            setTimeout(() => void again(), AGAIN_MS);
    }, [wanted]);
    useEffect(() => {
        let timer = 0;
        alive.current = true;
        size.current = PAGE;
        setPage(undefined);
        void again();
        const off = listen((e) => {
            if (e !== 'lost' && wanted.type && e.type !== wanted.type)
                return;
            if (!timer && !document.hidden)
                timer = window.setTimeout(() => { timer = 0; void again(); }, AGAIN_MS);
        });
        return () => {
            alive.current = false;
            clearTimeout(timer);
            off();
        };
    }, [again]);
    const more = useCallback(async () => {
        if (busy.current || !page?.next)
            return;
        busy.current = true;
        try {
            const fresh = await load(wanted, PAGE, page.next);
            const seen = new Set(page.jobs.map((j) => j.id));
            const jobs = [...page.jobs, ...fresh.jobs.filter((j) => !seen.has(j.id))];
            size.current = Math.min(1000, jobs.length);
            setPage({ jobs, next: fresh.next });
        } catch (e) {
            complain(e);
        }
        busy.current = false;
    }, [page, wanted]);
    return { page, again, more };
}

// ---- one line ----

function title(job: Job): string {
    const data = job.data as Record<string, unknown> | null;
    const own = data && typeof data === 'object' && !Array.isArray(data) ? data['title'] : undefined;
    const text = typeof own === 'string' && own ? own : JSON.stringify(job.data);
    return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

function when(job: Job, now: number): string {
    switch (job.state) {
    case 'delayed': return job.promote_at ? ago(job.promote_at, now) : '';
    case 'active': return job.started_at ? `for ${span(Math.max(0, now - job.started_at))}` : '';
    case 'inactive': return `waits ${span(Math.max(0, now - job.created_at))}`;
    default: return job.finished_at ? ago(job.finished_at, now) : '';
    }
}

function Row({ job, now, at, chosen, choose, run }: {
    job: Job; now: number; at: boolean; chosen: boolean; choose: () => void;
    run: (a: Action) => void;
}): JSX.Element {
    const row = useRef<HTMLLIElement>(null);
    useEffect(() => {
        if (at)
            row.current?.scrollIntoView({ block: 'nearest' });
    }, [at]);
    const line = job.error?.split('\n', 1)[0] ?? '';
    return (
        <li ref={row} class={at ? 'row at' : 'row'} data-id={job.id}>
            {may('admin') && <input type="checkbox" checked={chosen} onChange={choose}
                aria-label={`Select job ${job.id}`} />}
            {job.state === 'active' ? <Ring percent={job.progress} size={34} />
                : <span class={`mark ${job.state}`} title={STATE_LABEL[job.state]}>
                    {STATE_MARK[job.state]}</span>}
            <div class="what">
                <a href={`/jobs/${job.id}`}><span class="id">#{job.id}</span> <b>{job.type}</b></a>
                {job.priority !== 0 && <span class="tag">{priority(job.priority)}</span>}
                {job.attempts > 0 && job.max_attempts > 1 &&
                    <span class="tag">attempt {job.attempts}/{job.max_attempts}</span>}
                <div class="text" dir="auto">
                    {line && job.state !== 'complete' ? <span class="bad">{line}</span> : title(job)}
                </div>
            </div>
            <span class="when">{when(job, now)}</span>
            {may('admin') && <span class="do">
                {possible(job.state).map((a) => (
                    <button key={a} type="button" onClick={() => run(a)}
                        aria-label={`${ACTION_LABEL[a]} job ${job.id}`}>{ACTION_LABEL[a]}</button>
                ))}
            </span>}
        </li>
    );
}

// ---- nothing there ----

const EMPTY: Record<State, string> = {
    inactive: 'Nothing waits for a worker.', active: 'No worker has a job right now.',
    delayed: 'No job waits for its time.', failed: 'Nothing has failed.',
    complete: 'Nothing is complete yet.', cancelled: 'Nothing was cancelled.',
};

function Empty({ wanted }: { wanted: Wanted }): JSX.Element {
    if (wanted.words || wanted.type || wanted.priority)
        return (
            <div class="empty">
                <p>No job matches. {wanted.words && <>Words are found in jobs that were added with{' '}
                    <code>search</code>, or whose type is searched:</>}</p>
                {wanted.words && <Command text={`weir types ${wanted.type || "'*'"} --search on`} />}
                <button type="button" onClick={() => go(location.pathname)}>Show all</button>
            </div>
        );
    return (
        <div class="empty">
            <p>{wanted.state ? EMPTY[wanted.state] : 'There are no jobs yet.'}</p>
            {wanted.state === 'active' ? <>
                <p>Any program can be a worker:</p>
                <Command text="weir work mail --exec ./send-mail" /></> : <>
                <p>Add one:</p>
                <Command text={`weir add mail '{"to":"ann@example.org"}'`} /></>}
        </div>
    );
}

// ---- the view ----

function Filters({ wanted, types }: { wanted: Wanted; types: string[] }): JSX.Element {
    return (
        <div class="filters">
            <select aria-label="Type" value={wanted.type}
                onChange={(e) => setParams({ type: e.currentTarget.value })}>
                <option value="">all types</option>
                {[...new Set([...types, ...(wanted.type ? [wanted.type] : [])])].map((t) =>
                    <option key={t} value={t}>{t}</option>)}
            </select>
            <select aria-label="Priority" value={wanted.priority}
                onChange={(e) => setParams({ priority: e.currentTarget.value })}>
                <option value="">any priority</option>
                {PRIORITY_NAMES.map((p) => <option key={p} value={p}>{p}</option>)}
            </select>
            <select aria-label="Order" value={wanted.order}
                onChange={(e) => setParams({ order: e.currentTarget.value })}>
                <option value="asc">first to last</option>
                <option value="desc">last to first</option>
            </select>
        </div>
    );
}

export function Jobs({ state }: { state?: State }): JSX.Element {
    const wanted = useWanted(state);
    const { stats } = useShared();
    const { page, again, more } = useList(wanted);
    const [chosen, setChosen] = useState<Set<number>>(new Set());
    const [at, setAt] = useState(-1);
    const [question, setQuestion] = useState<Question>();
    const end = useRef<HTMLDivElement>(null);
    const now = useNow();
    const jobs = page?.jobs ?? [];
    useEffect(() => setChosen(new Set()), [wanted]);
    useEffect(() => {
        const watch = new IntersectionObserver((seen) => seen[0]?.isIntersecting && void more());
        if (end.current)
            watch.observe(end.current);
        return () => watch.disconnect();
    }, [more]);

    const choose = (id: number): void => setChosen((was) => {
        const next = new Set(was);
        if (!next.delete(id))
            next.add(id);
        return next;
    });
    const run = (action: Action, ids: number[]): void =>
        act(action, { ids }, ids.length, () => { setChosen(new Set()); void again(); });
    const here = jobs[at];
    useKeys({
        'j': () => setAt(Math.min(jobs.length - 1, at + 1)),
        'k': () => setAt(Math.max(0, at - 1)),
        'Enter': () => here && go(`/jobs/${here.id}`),
        'x': () => here && may('admin') && choose(here.id),
        'r': () => here && may('admin') && possible(here.state).includes('retry') &&
            run('retry', [here.id]),
    });

    const filter: Filter = {
        state: wanted.state, type: wanted.type || undefined, search: wanted.words || undefined,
    };
    const offered = possible(wanted.state);
    const name = wanted.state ? STATE_LABEL[wanted.state] : wanted.words ? 'Found' : 'All jobs';
    return (
        <>
            <div class="title">
                <h1>{name}{wanted.words && <> <q>{wanted.words}</q></>}
                    {wanted.state && stats && !wanted.words && !wanted.type &&
                        <span class="faint"> {count(stats.counts[wanted.state])}</span>}</h1>
                <Filters wanted={wanted} types={stats?.types.map((t) => t.type) ?? []} />
            </div>
            {may('admin') && jobs.length > 0 && <div class="bulk" role="toolbar"
                aria-label="What to do with jobs">
                <label><input type="checkbox" aria-label="Select all that are shown"
                    checked={chosen.size > 0 && chosen.size === jobs.length}
                    onChange={(e) => setChosen(new Set(e.currentTarget.checked
                        ? jobs.map((j) => j.id) : []))} />
                {chosen.size ? ` ${count(chosen.size)} selected` : ' select'}</label>
                {chosen.size > 0 && offered.map((a) => (
                    <button key={a} type="button" onClick={() => setQuestion({
                        action: a, filter: { ids: [...chosen] }, what: 'the selected jobs',
                    })}>{ACTION_LABEL[a]} selected</button>
                ))}
                {!wanted.priority && (wanted.state || wanted.words || wanted.type) &&
                    offered.map((a) => (
                        <button key={a} type="button" class="quiet" onClick={() => setQuestion({
                            action: a, filter, what: 'all that match',
                        })}>{ACTION_LABEL[a]} all</button>
                    ))}
            </div>}
            {page && !jobs.length ? <Empty wanted={wanted} /> : (
                <ul class="jobs" aria-label={name} aria-busy={!page}>
                    {jobs.map((job, i) => (
                        <Row key={job.id} job={job} now={now} at={i === at}
                            chosen={chosen.has(job.id)} choose={() => choose(job.id)}
                            run={(a) => run(a, [job.id])} />
                    ))}
                </ul>
            )}
            <div ref={end} class="end">
                {page?.next && <button type="button" onClick={() => void more()}>More</button>}
            </div>
            {question && <Ask question={question} close={() => setQuestion(undefined)}
                after={() => { setChosen(new Set()); void again(); }} />}
        </>
    );
}
