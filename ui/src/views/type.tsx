// type.tsx - one type: what happened to its jobs, what it is set to, its errors, the jobs that wait
// longest and that take longest, the schedules that add some.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, query, type Job, type Stats, type TypeStats } from '../api';
import { count, since, span } from '../fmt';
import { useErrors } from '../errors';
import { follow } from '../live';
import { shownSpan, SpanChoice, Trends } from '../parts/trends';
import { usePlace } from '../router';
import { may, useNow, useShared } from '../store';
import { GroupTable, Limits } from './errors';
import { Paused, setPaused } from './overview';
import type { Schedule } from './schedule_edit';
import { Editor, keepWords } from './types';

const SHOWN = 5, EVERY_MS = 2000, MAX_SCHEDULES = 1000, LOOKED = 100;

// The server sorts as many jobs at most (WEIR_MAX_SORT); more than a few are sorted less often.
const MAX_SORT = 100000, FEW = 5000, SELDOM_MS = 30000;

// `oldest`: of those that wait, the first that were added; not `sorted`: the next to be taken. `slowest`: of the
// `ended` last that completed.
interface Waiting { jobs: Job[]; sorted: boolean; at: number }
interface Seen { oldest: Waiting; running: Job[]; slowest: Job[]; ended: number; schedules: Schedule[] }

async function readJobs(type: string, state: string, more: { limit?: number; sort?: string; order?: string } = {}): Promise<Job[]> {
    return (await get<{ jobs: Job[] }>('/v1/jobs' + query({ state, type, limit: SHOWN, ...more }))).jobs;
}

async function readOldest(type: string, waiting: number, was?: Waiting): Promise<Waiting> {
    if (was?.sorted && waiting > FEW && Date.now() - was.at < SELDOM_MS)
        return was;
    if (waiting <= MAX_SORT)
        try {
            const jobs = await readJobs(type, 'inactive', { sort: 'created', order: 'asc' });
            return { jobs, sorted: true, at: Date.now() };
        } catch (e) {           // there are more meanwhile
            if (!(e instanceof ApiError && e.problem.code === 'ELIMIT'))
                throw e;
        }
    return { jobs: await readJobs(type, 'inactive'), sorted: false, at: Date.now() };
}

async function look(type: string, waiting: number, was?: Seen): Promise<Seen> {
    const [oldest, running, ended, all] = await Promise.all([readOldest(type, waiting, was?.oldest), readJobs(type, 'active'),
        readJobs(type, 'complete', { limit: LOOKED, order: 'desc' }),
        get<{ schedules: Schedule[] }>('/v1/schedules' + query({ limit: MAX_SCHEDULES })).catch(() => ({ schedules: [] }))]);
    const slowest = [...ended].sort((a, b) => (b.duration ?? 0) - (a.duration ?? 0)).slice(0, SHOWN);
    return { oldest, running, slowest, ended: ended.length,
        schedules: all.schedules.filter((s) => s.job.type === type) };
}

function useSeen(type: string, waiting: number): Seen | undefined {
    const [seen, setSeen] = useState<Seen>();
    const count = useRef(waiting);
    count.current = waiting;
    useEffect(() => {
        let alive = true, was: Seen | undefined;
        const following = follow(async () => {
            try {
                was = await look(type, count.current, was);
                if (alive)
                    setSeen(was);
            } catch { /* the frame shows trouble */ }
        }, EVERY_MS, (e) => e.type === type);
        return () => { alive = false; following.stop(); };
    }, [type]);
    return seen;
}

function Facts({ t, now }: { t: TypeStats; now: number }): JSX.Element {
    const runs = t.completed + t.failures;
    return (
        <dl class="facts wide">
            <div><dt>Queued</dt><dd>{count(t.counts.inactive)}</dd></div>
            <div><dt>Active</dt><dd>{count(t.counts.active)}</dd></div>
            <div><dt>Done, ever</dt><dd>{count(t.completed)}</dd></div>
            <div><dt>Failures</dt><dd>{runs ? `${(t.failures / runs * 100).toFixed(1)} %` : '–'}</dd></div>
            <div><dt>Mean time</dt><dd>{t.completed ? span(t.work_time / t.completed) : '–'}</dd></div>
            <div><dt>Last taken</dt><dd>{t.last_taken_at ? since(t.last_taken_at, now) : 'never'}</dd></div>
            <div><dt>Complete jobs are kept</dt><dd>{keepWords(t.settings.keep_complete)}</dd></div>
            <div><dt>Failed jobs are kept</dt><dd>{keepWords(t.settings.keep_failed)}</dd></div>
            <div><dt>Can be searched</dt><dd>{t.settings.search ? 'yes' : 'no'}</dd></div>
        </dl>
    );
}

function List({ title, jobs, none, say, all }: {
    title: string; jobs?: Job[]; none: string; say: (j: Job) => string; all?: string;
}): JSX.Element {
    return (
        <section class="panel" aria-label={title}>
            <h2>{title}</h2>
            {jobs && !jobs.length && <p class="faint">{none}</p>}
            <ul class="plain">{(jobs ?? []).map((j) => (
                <li key={j.id}><a href={`/jobs/${j.id}`}>#{j.id}</a> {say(j)}</li>
            ))}</ul>
            {all && jobs && jobs.length === SHOWN && <p><a href={all}>All</a></p>}
        </section>
    );
}

function ErrorsOf({ type, now }: { type: string; now: number }): JSX.Element {
    const { found, why, again } = useErrors(type);
    return (
        <section class="panel" aria-label="Errors">
            <h2>Errors</h2>
            {why && <p class="bad">{why}</p>}
            {found && !found.groups.length && <p class="faint">No job has failed.</p>}
            {found && found.groups.length > 0 && <GroupTable groups={found.groups.slice(0, SHOWN)} now={now} of={type} again={again} />}
            {found && found.groups.length > SHOWN &&
                <p><a href={`/errors?type=${encodeURIComponent(type)}`}>All {found.groups.length}</a></p>}
            {found && <Limits found={found} />}
        </section>
    );
}

function Known({ t, stats, now }: { t: TypeStats; stats: Stats; now: number }): JSX.Element {
    const [editing, setEditing] = useState(false);
    const { params } = usePlace();
    const seen = useSeen(t.type, t.counts.inactive), name = shownSpan(params.get('span'), t.type), of = encodeURIComponent(t.type);
    return (
        <>
            <div class="title">
                <h1>{t.type}{t.paused && <span class="tag">paused</span>}</h1>
                <div class="filters">
                    <SpanChoice name={name} type={t.type} />{' '}
                    {may('admin') && <>
                        <button type="button" onClick={() => void setPaused(t.type, !t.paused)}>
                            {t.paused ? 'Resume' : 'Pause'}</button>{' '}
                        <button type="button" onClick={() => setEditing(true)}>Settings</button>
                    </>}
                </div>
            </div>
            <Paused stats={stats} />
            <Trends name={name} type={t.type} now={now}
                waiting={{ n: t.counts.inactive, since: t.oldest_at || undefined }} />
            <section class="panel" aria-label="Numbers and settings"><Facts t={t} now={now} /></section>
            <ErrorsOf type={t.type} now={now} />
            <div class="lists">
                <List title={seen && !seen.oldest.sorted ? 'Next to be taken' : 'Oldest that wait'} jobs={seen?.oldest.jobs}
                    none="No job waits."
                    say={(j) => `has waited ${span(Math.max(0, now - (j.promote_at ?? j.created_at)))}`}
                    all={`/inactive?type=${of}${seen?.oldest.sorted ? '&sort=created&order=asc' : ''}`} />
                <List title="Running longest" jobs={seen?.running} none="No job runs."
                    say={(j) => `for ${span(Math.max(0, now - (j.started_at ?? now)))}${j.workerId ? `, ${j.workerId}` : ''}`}
                    all={`/active?type=${of}`} />
                <List title={seen?.ended ? `Slowest of the last ${count(seen.ended)}` : 'Slowest'} jobs={seen?.slowest}
                    none="No job is complete." say={(j) => `took ${span(j.duration ?? 0)}, ended ${j.finished_at ? since(j.finished_at, now) : ''}`} />
            </div>
            {seen && seen.schedules.length > 0 && <section class="panel" aria-label="Schedules">
                <h2>Schedules</h2>
                <ul class="plain">{seen.schedules.map((s) => (
                    <li key={s.name}><a href={`/schedules?name=${encodeURIComponent(s.name)}`}>{s.name}</a>{' '}
                        {s.paused ? 'paused' : s.words}</li>
                ))}</ul>
            </section>}
            {editing && <Editor t={t} close={() => setEditing(false)} />}
        </>
    );
}

export function Type({ type }: { type: string }): JSX.Element {
    const { stats } = useShared();
    const now = useNow();
    if (!stats)
        return <p class="faint" aria-busy="true">…</p>;
    const t = stats.types.find((one) => one.type === type);
    return t ? <Known t={t} stats={stats} now={now} /> : (
        <section class="panel empty" aria-label="No such type">
            <h1>{type}</h1>
            <p>The store has no such type. A type is known once a job of it was added.</p>
            <p><a href="/types">All types</a></p>
        </section>
    );
}
