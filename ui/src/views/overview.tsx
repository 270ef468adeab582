// overview.tsx - is all well? Counts, what is wrong with its remedy, curves of the recent past, and
// each type with what it does.
import type { JSX } from 'preact';
import { call, STATES, type Stats, type TypeStats } from '../api';
import { markClass, STATE_LABEL, STATE_MARK } from '../app';
import { count, span } from '../fmt';
import { AddButton } from '../parts/add';
import { Attention, useSeen, whatIsWrong } from '../parts/attention';
import { Command, weir } from '../parts/command';
import { complain } from '../parts/toast';
import { shownSpan, SpanChoice, Trends } from '../parts/trends';
import { usePlace } from '../router';
import { rateOf } from '../samples';
import { may, ownTypes, refresh, useNow, useShared } from '../store';
import { isThere, useWorkers, type Worker } from '../workers';

// ---- types ----

export async function setPaused(type: string, paused: boolean): Promise<void> {
    try {
        await call('POST', `/v1/types/${encodeURIComponent(type)}/${paused ? 'pause' : 'resume'}`);
    } catch (e) {
        complain(e);
    }
    refresh();
}

// The whole queue is paused: no worker gets anything.
export function Paused({ stats }: { stats: Stats }): JSX.Element | null {
    return !stats.paused ? null : (
        <section class="panel paused" aria-label="Paused">
            The whole queue is paused: workers get no jobs of any type.{' '}
            {may('admin') && <button type="button" class="main"
                onClick={() => void setPaused('*', false)}>Resume all</button>}
        </section>
    );
}

const failureShare = (t: TypeStats): number => {
    const all = t.completed + t.failures;
    return all ? t.failures / all : 0;
};

export const rate = (v?: number): string =>
    v === undefined ? '–' : v < 10 ? String(Number(v.toFixed(1))) : count(Math.round(v));

export function TypeTable({ types, workers, now }:
    { types: TypeStats[]; workers?: Worker[]; now: number }): JSX.Element {
    return (
        <table class="broad">
            <thead><tr>
                <th>Type</th><th class="num">Queued</th><th class="num">Active</th>
                <th class="num">Failed</th><th class="num">Done</th><th class="num">Done a second</th>
                <th class="num">Failures</th>
                <th class="num">Mean time</th><th class="num">Oldest waits</th>
                <th class="num">Workers</th><th><span class="hidden">Pause</span></th>
            </tr></thead>
            <tbody>{types.map((t) => (
                <tr key={t.type}>
                    <td class="name"><a href={`/types/${encodeURIComponent(t.type)}`}>{t.type}</a>
                        {t.paused && <span class="tag">paused</span>}</td>
                    <td class="num" data-label="Queued">{count(t.counts.inactive)}</td>
                    <td class="num" data-label="Active">{count(t.counts.active)}</td>
                    <td class="num" data-label="Failed">{t.counts.failed ? <a href={`/failed?type=${
                        encodeURIComponent(t.type)}`}>{count(t.counts.failed)}</a> : '0'}</td>
                    <td class="num" data-label="Done">{count(t.completed)}</td>
                    <td class="num" data-label="Done a second">{rate(rateOf(t.type, now))}</td>
                    <td class="num" data-label="Failures">{(failureShare(t) * 100).toFixed(failureShare(t) ? 1 : 0)} %</td>
                    <td class="num" data-label="Mean time">{t.completed ? span(t.work_time / t.completed) : '–'}</td>
                    <td class="num" data-label="Oldest waits">{t.oldest_at ? span(Math.max(0, now - t.oldest_at)) : '–'}</td>
                    <td class="num" data-label="Workers">{workers
                        ? workers.filter((w) => w.types.includes(t.type) && isThere(w, now)).length : '–'}</td>
                    <td class="do">{may('admin') && <button type="button"
                        aria-label={`${t.paused ? 'Resume' : 'Pause'} ${t.type}`}
                        onClick={() => void setPaused(t.type, !t.paused)}>
                        {t.paused ? 'Resume' : 'Pause'}</button>}</td>
                </tr>
            ))}</tbody>
        </table>
    );
}

// ---- the view ----

function Cards({ stats }: { stats: Stats }): JSX.Element {
    return (
        <div class="cards">
            {STATES.map((s) => (
                <a key={s} class="panel" href={`/${s}`}>
                    <span class={markClass(s, stats)} aria-hidden="true">{STATE_MARK[s]}</span>
                    <span>{STATE_LABEL[s]}</span>
                    <b>{count(stats.counts[s])}</b>
                </a>
            ))}
        </div>
    );
}

// Since when the oldest waits of those jobs that are next of their type.
function oldestOf(stats: Stats): number | undefined {
    const all = stats.types.filter((t) => t.oldest_at && !t.paused).map((t) => t.oldest_at);
    return all.length ? Math.min(...all) : undefined;
}

function First(): JSX.Element {
    return (
        <section class="panel empty" aria-label="First steps">
            <h2>There are no jobs yet</h2>
            <p>Add one, from any shell:</p>
            <Command text={weir(`add mail '{"to":"ann@example.org"}'`)} />
            <p>or without weir:</p>
            <Command text={`curl --json '{"type":"mail","data":{"to":"ann@example.org"}}' ` +
                `${location.origin}/v1/jobs`} />
            <p>and have it done by any program:</p>
            <Command text={weir('work mail --exec cat')} />
        </section>
    );
}

// Of the whole queue; a token of some types sees those of one of them here, and each at its type.
function Charts({ own, name, stats, now }:
    { own: string[] | null; name: string; stats: Stats; now: number }): JSX.Element {
    const type = own?.[0], t = stats.types.find((one) => one.type === type);
    const waiting = !own ? { n: stats.counts.inactive, since: oldestOf(stats) }
        : { n: t?.counts.inactive ?? 0, since: t?.oldest_at || undefined };
    return (
        <>
            {own && own.length > 1 && <p class="faint">The charts are those of “{type}”. Each other type has its own:{' '}
                {own.slice(1).map((one, i) => <>{i > 0 && ', '}
                    <a key={one} href={`/types/${encodeURIComponent(one)}`}>{one}</a></>)}.</p>}
            <Trends name={name} type={type} now={now} waiting={waiting} />
        </>
    );
}

export function Overview(): JSX.Element {
    const { stats } = useShared();
    const { params } = usePlace();
    const own = ownTypes(), type = own?.[0], name = shownSpan(params.get('span'), type);
    const workers = useWorkers(stats), seen = useSeen(stats);
    const now = useNow();
    if (!stats)
        return <p class="faint" aria-busy="true">…</p>;
    const empty = !stats.last_id && !stats.types.length;
    return (
        <>
            <div class="title">
                <h1>Overview</h1>
                <div class="filters">
                    <SpanChoice name={name} type={type} />
                    <AddButton />
                </div>
            </div>
            <Cards stats={stats} />
            <Paused stats={stats} />
            <Attention wrongs={whatIsWrong(stats, workers, seen, now)} />
            {empty ? <First /> : <>
                <Charts own={own} name={name} stats={stats} now={now} />
                <section class="panel" aria-label="Types">
                    <h2>Types</h2>
                    <TypeTable types={stats.types} workers={workers} now={now} />
                </section>
            </>}
        </>
    );
}
