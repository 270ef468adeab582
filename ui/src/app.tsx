// app.tsx - the frame of the page: navigation with live counts, the search, and the view that the
// address names.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { STATES, type State, type Stats } from './api';
import { count } from './fmt';
import { useKeys } from './keys';
import { readQuery, useTypes } from './list';
import { wrongParams } from './params';
import { Guard } from './parts/guard';
import { Toasts } from './parts/toast';
import { go, setParams, usePlace, type Place } from './router';
import { mayAudit, useShared, useTitle } from './store';
import { cycleTheme, useTheme } from './theme';
import { Audit } from './views/audit';
import { Bus } from './views/bus';
import { Errors } from './views/errors';
import { Help } from './views/help';
import { Job } from './views/job';
import { Jobs } from './views/jobs';
import { Login } from './views/login';
import { Missing } from './views/missing';
import { Overview } from './views/overview';
import { Schedules } from './views/schedules';
import { Settings } from './views/settings';
import { Tasks, TaskView } from './views/tasks';
import { Trouble } from './views/trouble';
import { Type } from './views/type';
import { Types } from './views/types';
import { Workers } from './views/workers';

const TYPING_MS = 250;

// Kue's words for the states.
export const STATE_LABEL: Record<State, string> = {
    inactive: 'Queued', active: 'Active', delayed: 'Delayed', failed: 'Failed',
    complete: 'Complete', cancelled: 'Cancelled',
};
export const STATE_MARK: Record<State, string> = {
    inactive: '○', active: '◐', delayed: '◷', failed: '✕', complete: '✓', cancelled: '⊘',
};

// The mark of failed jobs is red when there are some.
export const markClass = (s: State, stats?: Stats): string =>
    s === 'failed' && !stats?.counts.failed ? 'mark inactive' : `mark ${s}`;

// A part of a path; one that is not encoded right stays as it is.
function decoded(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

function View({ place }: { place: Place }): JSX.Element {
    const state = place.path.slice(1) as State;
    const id = /^\/jobs\/(\d+)$/.exec(place.path)?.[1];
    if (id)
        return <Job key={id} id={Number(id)} />;
    const task = /^\/tasks\/([^/]+)$/.exec(place.path)?.[1];
    if (task)
        return <TaskView key={task} id={decoded(task)} />;
    if (STATES.includes(state))
        return <Jobs key={state} state={state} />;
    const type = /^\/types\/(.+)$/.exec(place.path)?.[1];
    if (type)
        return <Type key={type} type={decoded(type)} />;
    switch (place.path) {
    case '/': return <Overview />;
    case '/jobs': return <Jobs key="all" />;
    case '/workers': return <Workers />;
    case '/errors': return <Errors />;
    case '/types': return <Types />;
    case '/schedules': return <Schedules />;
    case '/tasks': return <Tasks />;
    case '/bus': return <Bus />;
    case '/audit': return <Audit />;
    case '/settings': return <Settings />;
    default: return <Missing path={place.path} />;
    }
}

const TITLES: Record<string, string> = {
    '/': 'Overview', '/jobs': 'All jobs', '/errors': 'Errors', '/types': 'Types', '/schedules': 'Schedules', '/tasks': 'Tasks', '/workers': 'Workers',
    '/bus': 'Event bus', '/audit': 'Audit', '/settings': 'Settings',
};

// Of the tab; '': the view says it itself. A search is named: tabs of the same list differ by it.
function titleOf({ path, params }: Place): string {
    if (/^\/(jobs\/\d+|tasks\/[^/]+)$/.test(path))
        return '';
    const type = /^\/types\/(.+)$/.exec(path)?.[1];
    if (type)
        return `Type: ${decoded(type).slice(0, 60)}`;
    const states = path === '/jobs' ? (params.get('state') ?? '').split(',') : [];
    const name = states.map((s) => STATE_LABEL[s as State]).filter(Boolean).join(', ') ||
        (STATE_LABEL[path.slice(1) as State] ?? TITLES[path] ?? 'Not found');
    const words = params.get('q') || params.get('name') || params.get('type');
    return words ? `${name}: ${words.slice(0, 60)}` : name;
}

function NavLink({ to, now, mark, children }:
    { to: string; now: string; mark?: string; children: ComponentChildren }): JSX.Element {
    return (
        <a href={to} aria-current={to === now ? 'page' : undefined}>
            {mark && <span class="mark cancelled" aria-hidden="true">{mark}</span>}{children}</a>
    );
}

function Nav({ path }: { path: string }): JSX.Element {
    const { stats } = useShared();
    const [open, setOpen] = useState(false);        // of a phone: elsewhere it always is
    useEffect(() => setOpen(false), [path]);
    return (
        <nav aria-label="Views" class={open ? 'open' : ''}>
            <button type="button" class="menu" aria-expanded={open} aria-controls="views"
                onClick={() => setOpen(!open)}><span aria-hidden="true">☰</span> Views
                {!!stats?.counts.failed && <span class="count bad">{count(stats.counts.failed)} failed</span>}
            </button>
            <div id="views">
                <NavLink to="/" now={path} mark="⌂">Overview</NavLink>
                {STATES.map((s) => (
                    <NavLink key={s} to={`/${s}`} now={path}>
                        <span class={markClass(s, stats)} aria-hidden="true">{STATE_MARK[s]}</span>
                        {STATE_LABEL[s]}
                        <span class="count">{stats ? count(stats.counts[s]) : '–'}</span>
                    </NavLink>
                ))}
                <NavLink to="/jobs" now={path} mark="≡">All jobs</NavLink>
                <NavLink to="/errors" now={path} mark="!">Errors</NavLink>
                <NavLink to="/types" now={path} mark="◇">Types</NavLink>
                <NavLink to="/schedules" now={path} mark="↻">Schedules</NavLink>
                <NavLink to="/tasks" now={path} mark="▤">Tasks</NavLink>
                <NavLink to="/workers" now={path} mark="◉">Workers</NavLink>
                <NavLink to="/bus" now={path} mark="⇄">Event bus</NavLink>
                {mayAudit() && <NavLink to="/audit" now={path} mark="✎">Audit</NavLink>}
                <NavLink to="/settings" now={path} mark="⚙︎">Settings</NavLink>
            </div>
        </nav>
    );
}

const MAX_OFFERED = 5;

// The states that "state:qu" may become.
function statesLike(word: string): string[] {
    const half = /^state:(.*)$/.exec(word)?.[1]?.toLowerCase();
    return half === undefined ? [] : STATES.map((s) => STATE_LABEL[s].toLowerCase())
        .filter((name) => name.startsWith(half) && name !== half);
}

// What the box has understood so far, and types and states that begin so.
function Understood({ text, choose }: { text: string; choose: (text: string) => void }): JSX.Element {
    const types = useTypes(), q = readQuery(text, types);
    const last = /(\S*)$/.exec(text)?.[1] ?? '';
    const half = statesLike(last);
    const offered = last.length ? types.filter((t) => t.startsWith(last.replace(/^type:/, '')) && t !== q.type)
        .slice(0, MAX_OFFERED) : [];
    return (
        <div class="understood" role="status" aria-label="What the search understands">
            {q.job && <span><b>job</b> #{q.job}</span>}
            {q.type && <span><b>type</b> {q.type}</span>}
            {q.states.length > 0 && <span><b>state</b> {q.states.map((s) => STATE_LABEL[s]).join(' or ')}</span>}
            {q.words && <span><b>words</b> {q.words}</span>}
            {q.unknown.filter((s) => !half.length || !last.endsWith(`:${s}`)).map((s) => <span key={s} class="bad">unknown state {s}: {STATES.map((one) =>
                STATE_LABEL[one].toLowerCase()).join(', ')}</span>)}
            {!text.trim() && <span class="faint">a number, a type, <code>state:queued</code>,{' '}
                <code>type:mail</code>, words of data, error or log</span>}
            {half.map((s) => <button key={s} type="button" class="quiet"
                onMouseDown={(e) => { e.preventDefault(); choose(`${text.slice(0, -last.length)}state:${s} `); }}>
                state:{s}</button>)}
            {offered.map((t) => <button key={t} type="button" class="quiet"
                onMouseDown={(e) => { e.preventDefault(); choose(`${text.slice(0, -last.length)}type:${t} `); }}>
                type:{t}</button>)}
        </div>
    );
}

// "12" is a job; everything else is looked for: in the list that is shown, as one types, or in all.
function Search({ place }: { place: Place }): JSX.Element {
    const [text, setText] = useState(place.params.get('q') ?? '');
    const [open, setOpen] = useState(false);
    const types = useTypes();
    const input = useRef<HTMLInputElement>(null), timer = useRef(0);
    useEffect(() => {
        clearTimeout(timer.current);
        if (document.activeElement !== input.current)
            setText(place.params.get('q') ?? '');
    }, [place]);
    useKeys({ '/': () => input.current?.focus() });
    const list = place.path === '/jobs' || STATES.includes(place.path.slice(1) as State);
    const type = (words: string): void => {
        setText(words);
        clearTimeout(timer.current);
        if (list && (words.trim().length > 1 || !words.trim()))
            timer.current = window.setTimeout(() => setParams({ q: words.trim() }, true), TYPING_MS);
    };
    const submit = (e: Event): void => {
        e.preventDefault();
        clearTimeout(timer.current);
        const wanted = text.trim(), q = readQuery(wanted, types);
        if (q.job)
            go(`/jobs/${q.job}`);
        else if (list && (!q.states.length || place.path === '/jobs'))
            setParams({ q: wanted });
        else
            go(wanted ? `/jobs?q=${encodeURIComponent(wanted)}` : '/jobs');
        input.current?.blur();
    };
    return (
        <form role="search" onSubmit={submit}>
            <input ref={input} type="search" value={text} aria-label="Search jobs"
                placeholder="Search: 42, mail, state:failed, words of an error" maxLength={200}
                onInput={(e) => type(e.currentTarget.value)}
                onFocus={() => setOpen(true)} onBlur={() => setOpen(false)}
                onKeyDown={(e) => e.key === 'Escape' && e.currentTarget.blur()} />
            <kbd aria-hidden="true">/</kbd>
            {open && <Understood text={text} choose={type} />}
        </form>
    );
}

// The address stays what it is.
function toMain(e: Event): void {
    e.preventDefault();
    document.getElementById('main')?.focus();
}

export function App(): JSX.Element {
    const place = usePlace();
    const shared = useShared();
    const [help, setHelp] = useState(false);
    const theme = useTheme();
    useKeys({ '?': () => setHelp(true) });
    useTitle(shared.login ? 'Sign in' : titleOf(place));
    if (shared.login)
        return <Login />;
    return (
        <>
            <a class="skip" href="#main" onClick={toMain}>Skip to the content</a>
            <header>
                <a class="brand" href="/">{shared.server?.title || 'weir'}</a>
                <Search place={place} />
                <span class={`link ${shared.up ? 'up' : 'down'}`} role="status">
                    {shared.up ? 'live' : 'connecting…'}
                </span>
                <button type="button" class="quiet" onClick={cycleTheme}
                    aria-label={`Colours: ${theme}`}>{theme}</button>
                <button type="button" class="quiet" onClick={() => setHelp(true)}
                    aria-label="Keyboard shortcuts">?</button>
            </header>
            <Nav path={place.path} />
            <main id="main" tabIndex={-1}>
                {shared.server?.demo && <p class="demo" role="note">This is {shared.server.demo}.</p>}
                {shared.trouble && <Trouble what={shared.trouble} />}
                {/* what is there stays as it was, half-written texts too, and comes back */}
                <div hidden={!!shared.trouble}>
                    {wrongParams(place.path, place.params).map((why) => <p key={why} class="demo" role="alert">{why}</p>)}
                    <Guard key={place.path}><View place={place} /></Guard>
                </div>
            </main>
            {help && <Help close={() => setHelp(false)} />}
            <Toasts />
        </>
    );
}
