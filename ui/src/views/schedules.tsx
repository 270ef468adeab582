// schedules.tsx - schedules: when each fires next, in plain words; its last and next runs, also in a
// calendar; fire it now, pause it, change it.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, get, query } from '../api';
import { count } from '../fmt';
import { follow } from '../live';
import { byDay, Calendar, dayIn, timeIn, useComing, usePlanned, type Firing, type Runs } from '../parts/calendar';
import { Command, weir } from '../parts/command';
import { Dialog } from '../parts/dialog';
import { ParamField } from '../parts/search';
import { complain, toast } from '../parts/toast';
import { go, setParams, usePlace } from '../router';
import { may, useNow } from '../store';
import { datesOf, Editor, Moment, pathOf, type Schedule } from './schedule_edit';

const AGAIN_MS = 2000, PAGE = 100, SHOWN = 50, KEPT = 20;

const OUTCOME: Record<string, string> = {
    fired: 'added', 'by hand': 'added by hand', missed: 'left out: no process was there',
    'still running': 'left out: the job before was still running',
    'still waiting': 'left out: the job before had not started', refused: 'the job was refused',
};

interface Page { schedules: Schedule[]; next: string | null }
interface Found extends Page { one?: Schedule; asked: string }

// A page of them behind the name `after`, and the one that is chosen; asked again while the view is open.
function useSchedules(after: string, chosen: string, turn: number): Found | undefined {
    const [found, setFound] = useState<Found>();
    useEffect(() => {
        let alive = true;
        const choose = async (page: Page): Promise<Schedule | undefined> => {
            const there = page.schedules.find((s) => s.name === chosen);
            return there || !chosen ? there : get<Schedule>(pathOf(chosen)).catch(() => undefined);
        };
        const following = follow(async () => {
            try {
                const page = await get<Page>('/v1/schedules' + query({ limit: PAGE, after: after || undefined }));
                const one = await choose(page);
                if (alive)
                    setFound({ ...page, one, asked: chosen });
            } catch { /* the frame shows trouble */ }
            return undefined;
        }, AGAIN_MS);
        return () => { alive = false; following.stop(); };
    }, [after, chosen, turn]);
    return found;
}

// ---- one ----

// What ran, and what runs, on one day.
function Day({ day, runs, zone }: { day: string; runs?: Runs; zone: string }): JSX.Element {
    const all: (Partial<Firing> & { planned?: boolean })[] = [
        ...(runs?.planned ?? []).map((at) => ({ at, planned: true })), ...(runs?.past ?? []),
        ...(runs?.coming ?? []).map((at) => ({ at }))];
    const time = timeIn(zone);
    return (
        <div role="status" aria-label={`Runs of ${day}`}>
            <h3>{day}</h3>
            {!all.length && <p class="faint">No runs.</p>}
            <ol>{all.slice(0, SHOWN).map((run) => (
                <li key={`${run.at} ${run.job}`}>{time(run.at as number)}{' '}
                    {run.outcome ? <>{OUTCOME[run.outcome] ?? run.outcome}{' '}
                        {run.job && <a href={`/jobs/${run.job}`}>#{run.job}</a>}</>
                        : <span class="faint">{run.planned ? 'planned; what became of it is not kept'
                            : 'to come'}</span>}</li>
            ))}</ol>
            {all.length > SHOWN && <p class="faint">and {count(all.length - SHOWN)} more</p>}
        </div>
    );
}

// Its runs, a month at a time: the last 20 with what became of them, those before as its expression, as it is now,
// names them, and those to come.
function Month({ s, now }: { s: Schedule; now: number }): JSX.Element {
    const zone = s.zone ?? '', today = dayIn(zone)(now);
    const [month, setMonth] = useState(today.slice(0, 7));
    const [chosen, setChosen] = useState('');
    // the next run itself is known; those behind it are asked for
    const next = s.paused ? undefined : s.next_at;
    const timing = { when: s.when, zone, start: s.start_at, end: s.end_at, except: s.except,
        day_or_weekday: s.day_or_weekday };
    const coming = useComing(next ? timing : undefined, month, next ?? now);
    const known = s.history.length < KEPT ? undefined : s.history[0]?.done_at;
    const planned = usePlanned(known ? timing : undefined, month, s.created_at, known ?? 0);
    const noted = new Set(s.history.map((f) => f.at));
    const days = byDay(zone, s.history, planned.at.filter((at) => !noted.has(at)),
        next ? [...new Set([next, ...coming.at])] : []);
    return (
        <div class="runs">
            <div>
                <Calendar month={month} setMonth={setMonth} zone={zone} days={days} today={today} chosen={chosen}
                    choose={(day) => setChosen(day === chosen ? '' : day)} off={new Set(datesOf(s.except ?? ''))} />
                {(coming.more || planned.more) && <p class="faint">It fires often: not all of this month is shown.</p>}
            </div>
            {chosen && <Day day={chosen} runs={days.get(chosen)} zone={zone} />}
        </div>
    );
}

function Detail({ s, now, edit, after }:
    { s: Schedule; now: number; edit: () => void; after: () => void }): JSX.Element {
    const act = async (method: string, verb: string, done: string): Promise<void> => {
        try {
            await call(method, pathOf(s.name) + verb);
            toast(done);
            if (method === 'DELETE')
                go('/schedules');
            after();
        } catch (e) {
            complain(e);
        }
    };
    const [asking, setAsking] = useState(false);
    const box = useRef<HTMLElement>(null);
    useEffect(() => {           // it is below the list, which is long on a phone
        if ((box.current?.getBoundingClientRect().top ?? 0) > innerHeight / 2)
            box.current?.scrollIntoView({ block: 'start' });
    }, [s.name]);
    return (
        <section ref={box} class="panel detail" aria-label={`Schedule ${s.name}`}>
            <div class="title"><h2>{s.name}</h2>
                {may('admin') && <div class="filters">
                    <button type="button" onClick={() => void act('POST', '/fire', `A job of ${s.name} was added`)}>
                        Fire now</button>
                    <button type="button" onClick={() => void act('POST', s.paused ? '/resume' : '/pause',
                        `${s.name} ${s.paused ? 'goes on' : 'is paused'}`)}>{s.paused ? 'Resume' : 'Pause'}</button>
                    <button type="button" onClick={edit}>Change</button>
                    <button type="button" class="danger" onClick={() => setAsking(true)}>Remove</button>
                </div>}
            </div>
            <p>{s.words} <code>{s.when}</code> adds <a href={`/jobs?type=${encodeURIComponent(s.job.type)}`}>
                {s.job.type}</a>. {count(s.fired)} {s.fired === 1 ? 'run' : 'runs'} so far.</p>
            <p>{s.explanation}</p>
            <div class="runs">
                <div><h3>Next runs</h3>
                    {s.next.length ? <ol>{s.next.map((at) => <li key={at}><Moment at={at} now={now} /></li>)}</ol>
                        : <p class="faint">{s.paused ? 'None: it is paused.' : 'None: it has ended.'}</p>}</div>
                <div><h3>Last runs</h3>
                    {s.history.length ? <ol reversed>{[...s.history].reverse().map((f) => (
                        <li key={`${f.at} ${f.job}`}><Moment at={f.at} now={now} />{' '}
                            {OUTCOME[f.outcome] ?? f.outcome} {f.job && <a href={`/jobs/${f.job}`}>#{f.job}</a>}</li>
                    ))}</ol> : <p class="faint">None yet.</p>}</div>
            </div>
            <h3>Calendar</h3>
            <Month key={s.name} s={s} now={now} />
            {asking && <Dialog title={`Remove ${s.name}`} close={() => setAsking(false)}>
                <p>Its jobs stay.</p>
                <p><button type="button" class="danger"
                    onClick={() => void act('DELETE', '', `${s.name} was removed`)}>Remove it</button>{' '}
                <button type="button" onClick={() => setAsking(false)} autofocus>Leave it</button></p>
            </Dialog>}
        </section>
    );
}

// ---- all ----

function List({ list, one, now }: { list: Schedule[]; one?: Schedule; now: number }): JSX.Element {
    return (
        <section class="panel" aria-label="Schedules"><table class="stack">
            <thead><tr><th>Name</th><th>Next run</th><th>Fires</th><th>Adds</th></tr></thead>
            <tbody>{list.map((s) => (
                <tr key={s.name} aria-selected={s.name === one?.name}>
                    <td class="name"><a href={`/schedules?name=${encodeURIComponent(s.name)}`}
                        onClick={(e) => { e.preventDefault(); setParams({ name: s.name }); }}>{s.name}</a></td>
                    <td data-label="Next run" class="wide">{s.paused ? <span class="faint">paused</span>
                        : s.next_at ? <Moment at={s.next_at} now={now} /> : <span class="faint">never</span>}</td>
                    <td data-label="Fires" class="wide">{s.words}</td>
                    <td data-label="Adds">{s.job.type}</td>
                </tr>
            ))}</tbody>
        </table></section>
    );
}

export function Schedules(): JSX.Element {
    const [turn, setTurn] = useState(0);
    const [editing, setEditing] = useState<{ old?: Schedule }>();
    const { params } = usePlace(), chosen = params.get('name') ?? '', after = params.get('after') ?? '';
    const found = useSchedules(after, chosen, turn);
    const now = useNow();
    const again = (): void => setTurn((n) => n + 1);
    if (!found)
        return <p class="faint" aria-busy="true">…</p>;
    const { schedules, next } = found;
    const one = schedules.find((s) => s.name === chosen) ?? (found.asked === chosen ? found.one : undefined);
    return (
        <>
            <div class="title"><h1>Schedules</h1>
                <div class="filters">
                    {(after || next || chosen) && <ParamField name="name" title="Name" max={100} />}
                    {may('admin') && <button type="button" class="main" onClick={() => setEditing({})}>
                        Add a schedule</button>}
                </div>
            </div>
            {!schedules.length && !after && <div class="empty">
                <p>A schedule adds a job again and again:</p>
                <Command text={weir("schedule add report '30 6 * * 1' report --tz Europe/Berlin")} />
            </div>}
            {schedules.length > 0 && <List list={schedules} one={one} now={now} />}
            {(after || next) && <div class="end">
                {after && <button type="button" onClick={() => setParams({ after: '' })}>First page</button>}{' '}
                {next && <button type="button" onClick={() => setParams({ after: next })}>Next page</button>}
            </div>}
            {one && <Detail s={one} now={now} edit={() => setEditing({ old: one })} after={again} />}
            {chosen && !one && found.asked === chosen && <p class="faint" role="status">There is no schedule {chosen}.</p>}
            {editing && <Editor old={editing.old} close={() => setEditing(undefined)} after={again} />}
        </>
    );
}
