// app.tsx - the frame of the page: navigation with live counts, the search, and the view that the
// address names.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { STATES, type State, type Stats } from './api';
import { count } from './fmt';
import { useKeys } from './keys';
import { Toasts } from './parts/toast';
import { go, setParams, usePlace, type Place } from './router';
import { mayAudit, useShared } from './store';
import { cycleTheme, useTheme } from './theme';
import { Audit } from './views/audit';
import { Help } from './views/help';
import { Job } from './views/job';
import { Jobs } from './views/jobs';
import { Login } from './views/login';
import { Overview } from './views/overview';
import { Schedules } from './views/schedules';
import { Settings } from './views/settings';
import { Trouble } from './views/trouble';
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

function View({ place }: { place: Place }): JSX.Element {
    const state = place.path.slice(1) as State;
    const id = /^\/jobs\/(\d+)$/.exec(place.path)?.[1];
    if (id)
        return <Job key={id} id={Number(id)} />;
    if (STATES.includes(state))
        return <Jobs key={state} state={state} />;
    switch (place.path) {
    case '/jobs': return <Jobs key="all" />;
    case '/workers': return <Workers />;
    case '/types': return <Types />;
    case '/schedules': return <Schedules />;
    case '/audit': return <Audit />;
    case '/settings': return <Settings />;
    default: return <Overview />;
    }
}

function NavLink({ to, now, children }: { to: string; now: string; children: ComponentChildren }):
    JSX.Element {
    return <a href={to} aria-current={to === now ? 'page' : undefined}>{children}</a>;
}

function Nav({ path }: { path: string }): JSX.Element {
    const { stats } = useShared();
    return (
        <nav aria-label="Views">
            <NavLink to="/" now={path}>Overview</NavLink>
            {STATES.map((s) => (
                <NavLink key={s} to={`/${s}`} now={path}>
                    <span class={markClass(s, stats)} aria-hidden="true">{STATE_MARK[s]}</span>
                    {STATE_LABEL[s]}
                    <span class="count">{stats ? count(stats.counts[s]) : '–'}</span>
                </NavLink>
            ))}
            <NavLink to="/jobs" now={path}>All jobs</NavLink>
            <NavLink to="/types" now={path}>Types</NavLink>
            <NavLink to="/schedules" now={path}>Schedules</NavLink>
            <NavLink to="/workers" now={path}>Workers</NavLink>
            {mayAudit() && <NavLink to="/audit" now={path}>Audit</NavLink>}
            <NavLink to="/settings" now={path}>Settings</NavLink>
        </nav>
    );
}

// "12" is a job; everything else is looked for: in the list that is shown, as one types, or in all.
function Search({ place }: { place: Place }): JSX.Element {
    const [text, setText] = useState(place.params.get('q') ?? '');
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
        const wanted = text.trim();
        if (/^#?\d+$/.test(wanted))
            go(`/jobs/${wanted.replace('#', '')}`);
        else if (list)
            setParams({ q: wanted });
        else
            go(wanted ? `/jobs?q=${encodeURIComponent(wanted)}` : '/jobs');
        input.current?.blur();
    };
    return (
        <form role="search" onSubmit={submit}>
            <input ref={input} type="search" value={text} aria-label="Search jobs"
                placeholder="Search: 42, type:mail, user:42, words of an error" maxLength={200}
                onInput={(e) => type(e.currentTarget.value)}
                onKeyDown={(e) => e.key === 'Escape' && e.currentTarget.blur()} />
            <kbd aria-hidden="true">/</kbd>
        </form>
    );
}

export function App(): JSX.Element {
    const place = usePlace();
    const shared = useShared();
    const [help, setHelp] = useState(false);
    const theme = useTheme();
    useKeys({ '?': () => setHelp(true) });
    if (shared.login)
        return <Login />;
    return (
        <>
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
            <main id="main">
                {shared.trouble && <Trouble what={shared.trouble} />}
                {/* what is there stays as it was, half-written texts too, and comes back */}
                <div hidden={!!shared.trouble}><View place={place} /></div>
            </main>
            {help && <Help close={() => setHelp(false)} />}
            <Toasts />
        </>
    );
}
