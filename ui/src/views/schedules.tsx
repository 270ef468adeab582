// schedules.tsx - schedules: when each fires next, in plain words; its last and next runs; fire it now,
// pause it, and change it with a preview of the next runs.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get, query } from '../api';
import { ago, clock, count } from '../fmt';
import { follow } from '../live';
import { Command, weir } from '../parts/command';
import { Dialog } from '../parts/dialog';
import { complain, toast } from '../parts/toast';
import { go, setParams, usePlace } from '../router';
import { may, useNow } from '../store';

const AGAIN_MS = 2000, TYPING_MS = 250;

interface Firing { at: number; done_at: number; outcome: string; job?: number }
interface Schedule {
    name: string; when: string; zone?: string; words: string; next: number[]; paused: boolean;
    job: { type: string; data?: unknown } & Record<string, unknown>;
    next_at?: number; fired: number; overlap: string; missed: string; history: Firing[];
    day_or_weekday?: boolean; start_at?: number; end_at?: number; except?: string; jitter?: number;
    missed_limit?: number;
}

const pathOf = (name: string): string => `/v1/schedules/${encodeURIComponent(name)}`;

const OUTCOME: Record<string, string> = {
    fired: 'added', 'by hand': 'added by hand', missed: 'left out: no process was there',
    'still running': 'left out: the job before had not ended', refused: 'the job was refused',
};

// One page after the other; asked again while the view is open.
function useSchedules(turn: number): Schedule[] | undefined {
    const [list, setList] = useState<Schedule[]>();
    useEffect(() => {
        let alive = true;
        const following = follow(async () => {
            try {
                const all: Schedule[] = [];
                for (let after: string | null = ''; after !== null;) {
                    const page: { schedules: Schedule[]; next: string | null } =
                        await get('/v1/schedules' + query({ limit: 1000, after: after || undefined }));
                    all.push(...page.schedules);
                    after = page.next;
                }
                if (alive)
                    setList(all);
            } catch { /* the frame tells of trouble */ }
            return undefined;
        }, AGAIN_MS);
        return () => { alive = false; following.stop(); };
    }, [turn]);
    return list;
}

function Moment({ at, now }: { at: number; now: number }): JSX.Element {
    return <time title={new Date(at).toISOString()}>{clock(at).replace(/\.000$/, '')}{' '}
        <span class="faint">{ago(at, now)}</span></time>;
}

// ---- add and change ----

interface Preview { words: string; next: number[] }

function usePreview(when: string, zone: string): { preview?: Preview; why: string } {
    const [preview, setPreview] = useState<Preview>();
    const [why, setWhy] = useState('');
    useEffect(() => {
        let alive = true;
        const timer = setTimeout(() => {
            if (!when.trim())
                return;
            get<Preview>('/v1/schedules/next' + query({ when, zone: zone || undefined })).then(
                (p) => { if (alive) { setPreview(p); setWhy(''); } },
                (e: Error) => { if (alive) { setPreview(undefined); setWhy(e.message); } });
        }, TYPING_MS);
        return () => { alive = false; clearTimeout(timer); };
    }, [when, zone]);
    return { preview, why };
}

function given(old: Schedule | undefined): Record<string, unknown> {
    const { day_or_weekday, start_at, end_at, except, jitter, missed, missed_limit, paused, job } = old ?? {};
    return { day_or_weekday, start_at, end_at, except, jitter, missed, missed_limit, paused, job };
}

function Editor({ old, close, after }: { old?: Schedule; close: () => void; after: () => void }): JSX.Element {
    const [name, setName] = useState(old?.name ?? '');
    const [when, setWhen] = useState(old?.when ?? '0 6 * * *');
    const [zone, setZone] = useState(old ? old.zone ?? '' : Intl.DateTimeFormat().resolvedOptions().timeZone);
    const [type, setType] = useState(old?.job.type ?? '');
    const [data, setData] = useState(JSON.stringify(old?.job.data ?? {}));
    const [overlap, setOverlap] = useState(old?.overlap ?? 'allow');
    const [refused, setRefused] = useState('');
    const { preview, why } = usePreview(when, zone);
    const now = useNow();
    const save = async (e: Event): Promise<void> => {
        e.preventDefault();
        try {
            const more = given(old);
            await call('PUT', pathOf(name), { ...more, when, zone: zone || undefined, overlap,
                job: { ...(more.job as object | undefined), type, data: JSON.parse(data || '{}') } });
            toast(old ? `${name} was changed` : `${name} was added`);
            after();
            close();
        } catch (problem) {
            setRefused((problem as Error).message);
        }
    };
    const text = (label: string, value: string, set: (v: string) => void, more = {}): JSX.Element => (
        <label class="line">{label}
            <input value={value} onInput={(e) => set(e.currentTarget.value)} {...more} /></label>
    );
    return (
        <Dialog title={old ? `Change ${old.name}` : 'Add a schedule'} close={close}>
            <form class="schedule" onSubmit={(e) => void save(e)}>
                {!old && text('Name', name, setName, { required: true, maxLength: 100 })}
                {text('When', when, setWhen, { required: true, maxLength: 256, spellcheck: false,
                    placeholder: '30 6 * * 1, @daily, every 90m' })}
                {text('Time zone', zone, setZone, { placeholder: 'UTC', spellcheck: false })}
                <div class="preview" aria-live="polite">
                    {why ? <p class="bad">{why}</p> : preview && <>
                        <p>{preview.words}</p>
                        <ol>{preview.next.map((at) => <li key={at}><Moment at={at} now={now} /></li>)}</ol>
                    </>}
                </div>
                {text('Type of its jobs', type, setType, { required: true, maxLength: 128 })}
                {text('Data (JSON)', data, setData, { spellcheck: false })}
                <label class="line">If the last job has not ended
                    <select value={overlap} onChange={(e) => setOverlap(e.currentTarget.value)}>
                        <option value="allow">add another</option>
                        <option value="skip">leave this run out</option>
                        <option value="queue">let one wait</option>
                        <option value="replace">cancel the old one</option>
                    </select></label>
                {refused && <p class="bad" role="alert">{refused}</p>}
                <p><button type="submit" class="main" disabled={!!why}>Save</button>{' '}
                    <button type="button" onClick={close}>Leave it</button></p>
            </form>
        </Dialog>
    );
}

// ---- one ----

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
    return (
        <section class="panel" aria-label={`Schedule ${s.name}`}>
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

export function Schedules(): JSX.Element {
    const [turn, setTurn] = useState(0);
    const [editing, setEditing] = useState<{ old?: Schedule }>();
    const list = useSchedules(turn);
    const now = useNow(), chosen = usePlace().params.get('name');
    const again = (): void => setTurn((n) => n + 1);
    if (!list)
        return <p class="faint" aria-busy="true">…</p>;
    const one = list.find((s) => s.name === chosen);
    return (
        <>
            <div class="title"><h1>Schedules</h1>
                {may('admin') && <div class="filters">
                    <button type="button" class="main" onClick={() => setEditing({})}>Add a schedule</button>
                </div>}
            </div>
            {!list.length && <div class="empty">
                <p>A schedule adds a job again and again:</p>
                <Command text={weir("schedule add report '30 6 * * 1' report --tz Europe/Berlin")} />
            </div>}
            {list.length > 0 && <section class="panel" aria-label="Schedules"><div class="scroll"><table>
                <thead><tr><th>Name</th><th>Next run</th><th>Fires</th><th>Adds</th></tr></thead>
                <tbody>{list.map((s) => (
                    <tr key={s.name} aria-selected={s === one}>
                        <td><a href={`/schedules?name=${encodeURIComponent(s.name)}`}
                            onClick={(e) => { e.preventDefault(); setParams({ name: s.name }); }}>{s.name}</a></td>
                        <td>{s.paused ? <span class="faint">paused</span>
                            : s.next_at ? <Moment at={s.next_at} now={now} /> : <span class="faint">never</span>}</td>
                        <td>{s.words}</td>
                        <td>{s.job.type}</td>
                    </tr>
                ))}</tbody>
            </table></div></section>}
            {one && <Detail s={one} now={now} edit={() => setEditing({ old: one })} after={again} />}
            {editing && <Editor old={editing.old} close={() => setEditing(undefined)} after={again} />}
        </>
    );
}
