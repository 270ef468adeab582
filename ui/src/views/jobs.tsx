// jobs.tsx - a list of jobs: those in a state, in several, or all; by type, priority, time, words; sorted.
// It follows what happens; what is chosen stays chosen.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { act, ACTION_LABEL, POSSIBLE, possible, possibleIn, type Action, type Filter } from '../actions';
import { STATE_LABEL } from '../app';
import type { State } from '../api';
import { count } from '../fmt';
import { useKeys } from '../keys';
import { isNarrow, momentOf, useList, useWanted, type Listed, type Wanted } from '../list';
import { AddButton } from '../parts/add';
import { Ask, type Question } from '../parts/ask';
import { ChooseColumns, useColumns } from '../parts/columns';
import { Command, quote, weir } from '../parts/command';
import { Filters, filtersOf, Order } from '../parts/filters';
import { Rows } from '../parts/rows';
import { go, setParams, usePlace } from '../router';
import { may, useNow, useShared } from '../store';
import { PHONE, TABLE, useMedia } from '../wide';

// ---- nothing there ----

const EMPTY: Record<State, string> = {
    inactive: 'Nothing waits for a worker.', active: 'No worker has a job right now.',
    delayed: 'No job waits for its time.', failed: 'Nothing has failed.',
    complete: 'Nothing is complete yet.', cancelled: 'Nothing was cancelled.',
};

function Empty({ wanted, state }: { wanted: Wanted; state?: State }): JSX.Element {
    const [one] = wanted.states;
    if (isNarrow(wanted) || wanted.states.length > 1)
        return (
            <div class="empty">
                <p>No job matches. {wanted.words && <>Words are found in jobs that were added with{' '}
                    <code>search</code>, or whose type is searched:</>}</p>
                {wanted.words && <Command text={weir(`types ${quote(wanted.type || '*')} --search on`)} />}
                <p>{state && wanted.words && <><button type="button"
                    onClick={() => go(`/jobs${location.search}`)}>Look in all states</button>{' '}</>}
                    <button type="button" onClick={() => go(location.pathname)}>Show all</button></p>
            </div>
        );
    return (
        <div class="empty">
            <p>{one ? EMPTY[one] : 'There are no jobs yet.'}</p>
            {(one === 'active' || one === 'complete') && <>
                <p>Any program can be a worker:</p>
                <Command text={weir('work mail --exec ./send-mail')} /></>}
            {(!one || one === 'inactive') && <>
                <p>Add one:</p>
                <Command text={weir(`add mail '{"to":"ann@example.org"}'`)} /></>}
            {one === 'delayed' && <>
                <p>Add one that waits:</p>
                <Command text={weir(`add mail '{"to":"ann@example.org"}' --delay 1h`)} /></>}
        </div>
    );
}

// The server makes no such list: more jobs than it sorts, for one.
function Refused({ why, wanted }: { why: string; wanted: Wanted }): JSX.Element {
    return (
        <section class="panel wrong" role="alert">
            <p>{why}</p>
            {wanted.sort && <p><button type="button" onClick={() => setParams({ sort: '', order: '' })}>
                Show them in the usual order</button></p>}
        </section>
    );
}

// ---- the head: what is shown, and in which order. On a phone the filters are behind a button ----

function Head({ wanted, types, children }:
    { wanted: Wanted; types: string[]; children: ComponentChildren }): JSX.Element {
    const phone = useMedia(PHONE), n = filtersOf(wanted);
    const [open, setOpen] = useState(false);
    return (
        <>
            <div class="title">
                <h1>{children}</h1>
                <div class="filters">
                    {phone ? <button type="button" aria-expanded={open} aria-controls="filters"
                        onClick={() => setOpen(!open)}>Filter{n > 0 && ` (${n})`}</button> : <Order wanted={wanted} />}
                    <ChooseColumns />
                    <AddButton type={wanted.type} />
                </div>
            </div>
            <div id="filters" class="filters">
                {(!phone || open) && <Filters wanted={wanted} types={types} />}
                {phone && open && <Order wanted={wanted} />}
            </div>
        </>
    );
}

// ---- the view ----

// Whether somebody is at the list, with the pointer or the keyboard. A finger has no place when it is lifted.
function useHold(): { busy: boolean; watch: JSX.IntrinsicElements['div'] } {
    const box = useRef<HTMLDivElement>(null);
    const [pointer, setPointer] = useState(false);
    const [focus, setFocus] = useState(false);
    useEffect(() => {           // what had the focus may have gone, without a word
        if (focus && !box.current?.querySelector(':focus-visible'))
            setFocus(false);
    });
    return {
        busy: pointer || focus,
        watch: {
            ref: box, onPointerEnter: (e) => setPointer(e.pointerType !== 'touch'),
            onPointerLeave: () => setPointer(false),
            onFocusIn: (e) => setFocus((e.target as Element).matches(':focus-visible')),
            onFocusOut: () => setFocus(false),
        },
    };
}

export function Jobs({ state }: { state?: State }): JSX.Element {
    const wanted = useWanted(state);
    const { stats } = useShared();
    const { params } = usePlace();
    const [chosen, setChosen] = useState<Set<number>>(new Set());
    const [at, setAt] = useState(0);                // the job that keys are for, by id: lists move
    const { busy, watch } = useHold();
    const cols = useColumns(wanted.sort), table = useMedia(TABLE);
    const { page, why, news, letIn, again, more } = useList(wanted, busy || chosen.size > 0 || at > 0);
    const [question, setQuestion] = useState<Question>();
    const end = useRef<HTMLDivElement>(null);
    const now = useNow();
    const jobs = page?.jobs ?? [], there = jobs.filter((j) => !j.gone);
    useEffect(() => {
        setChosen(new Set());
        setAt(0);
    }, [wanted]);
    useEffect(() => {
        const watch = new IntersectionObserver((seen) => seen[0]?.isIntersecting && more());
        if (end.current)
            watch.observe(end.current);
        return () => watch.disconnect();
    }, [page]);

    const choose = (id: number): void => setChosen((was) => {
        const next = new Set(was);
        if (!next.delete(id))
            next.add(id);
        return next;
    });
    const run = (action: Action, job: Listed): void =>
        act(action, { ids: [job.id], state: job.state }, 1, () => again());
    const place = jobs.findIndex((j) => j.id === at), here = jobs[place];
    const move = (by: number): void =>
        setAt(jobs[here ? Math.max(0, Math.min(jobs.length - 1, place + by)) : 0]?.id ?? 0);
    useKeys({
        'j': () => move(1),
        'k': () => move(-1),
        'Enter': () => here && go(`/jobs/${here.id}`),
        'n': letIn,
        'Escape': () => setAt(0),
        'x': () => here && may('admin') && choose(here.id),
        'r': () => here && !here.gone && may('admin') && possible(here.state).includes('retry') && run('retry', here),
    });

    const filter: Filter = {
        state: wanted.states, type: wanted.type || undefined, priority: wanted.priority || undefined,
        since: momentOf(wanted.since), until: momentOf(wanted.until), search: wanted.words || undefined,
        error: wanted.error,
    };
    const [one] = wanted.states;
    const offered = possibleIn(wanted.states).filter((a) => wanted.error === undefined || POSSIBLE[a].includes('failed'));
    const name = one ? wanted.states.map((s) => STATE_LABEL[s]).join(', ') : wanted.words ? 'Found' : 'All jobs';
    return (
        <>
            <Head wanted={wanted} types={stats?.types.map((t) => t.type) ?? []}>
                {name}{wanted.words && <> <q>{params.get('q')}</q></>}
                {one && stats && !isNarrow(wanted) && <span class="faint"> {count(wanted.states.reduce((n, s) =>
                    n + stats.counts[s], 0))}</span>}
            </Head>
            {wanted.error !== undefined && <p class="edit">With the error <code class="mask">{wanted.error || '(no text)'}</code>
                <button type="button" onClick={() => setParams({ error: '' })}>any error</button></p>}
            <div {...watch}>
                {may('admin') && jobs.length > 0 && <div class="bulk" role="toolbar"
                    aria-label="What to do with jobs">
                    <label><input type="checkbox" aria-label="Select all that are shown"
                        checked={chosen.size > 0 && chosen.size === there.length}
                        onChange={(e) => setChosen(new Set(e.currentTarget.checked
                            ? there.map((j) => j.id) : []))} />
                    {chosen.size ? `${count(chosen.size)} selected` : 'select'}</label>
                    {chosen.size > 0 && offered.map((a) => (
                        <button key={a} type="button" onClick={() => setQuestion({
                            action: a, filter: { ids: [...chosen], state: wanted.states }, what: 'the selected jobs',
                        })}>{ACTION_LABEL[a]} selected</button>
                    ))}
                    {(one || isNarrow(wanted)) &&
                        offered.map((a) => (
                            <button key={a} type="button" class="quiet" onClick={() => setQuestion({
                                action: a, filter, what: 'all that match',
                            })}>{ACTION_LABEL[a]} all</button>
                        ))}
                </div>}
                <div class="news" aria-live="polite">{news > 0 && <button type="button" onClick={letIn}>
                    {count(news)} new</button>}</div>
                {why && <Refused why={why} wanted={wanted} />}
                {page && !jobs.length && !page.next ? <Empty wanted={wanted} state={state} />
                    : (page || !why) && <Rows table={table} jobs={jobs} states={wanted.states} name={name} busy={!page}
                        now={now} cols={cols} at={at} chosen={chosen} choose={choose} run={run} />}
            </div>
            <div ref={end} class="end">
                {page?.next && <button type="button" onClick={more}>More</button>}
            </div>
            {question && <Ask question={question} close={() => setQuestion(undefined)}
                after={() => { setChosen(new Set()); again(true); }} />}
        </>
    );
}
