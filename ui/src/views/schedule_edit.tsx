// schedule_edit.tsx - the form that adds or changes a schedule: when it fires, in words, as times and in a
// calendar while one types; what becomes of runs that come too late or too early.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, get, query } from '../api';
import { ago, clock, fieldOf, length, readLength, timeOf } from '../fmt';
import { byDay, Calendar, dayIn, useComing, type Firing, type Timing } from '../parts/calendar';
import { Dialog } from '../parts/dialog';
import { toast } from '../parts/toast';
import { serverNow, useNow } from '../store';

const TYPING_MS = 250;

export interface Schedule {
    name: string; when: string; zone?: string; words: string; explanation: string; next: number[]; paused: boolean;
    job: { type: string; data?: unknown } & Record<string, unknown>;
    next_at?: number; fired: number; overlap: string; missed: string; history: Firing[];
    day_or_weekday?: boolean; start_at?: number; end_at?: number; except?: string; jitter?: number;
    missed_limit?: number; created_at: number;
}

export const pathOf = (name: string): string => `/v1/schedules/${encodeURIComponent(name)}`;

export function Moment({ at, now }: { at: number; now: number }): JSX.Element {
    return <time title={new Date(at).toISOString()}>{clock(at).replace(/\.000$/, '')}{' '}
        <span class="faint">{ago(at, now)}</span></time>;
}

// ---- what is in the form ----

interface Draft {
    name: string; when: string; zone: string; type: string; data: string; overlap: string; missed: string;
    limit: string; start: string; end: string; except: string; jitter: string; either: boolean;
}

function draftOf(old?: Schedule): Draft {
    return {
        name: old?.name ?? '', when: old?.when ?? '0 6 * * *',
        zone: old ? old.zone ?? '' : Intl.DateTimeFormat().resolvedOptions().timeZone,
        type: old?.job.type ?? '', data: old ? JSON.stringify(old.job.data) ?? '' : '{}', overlap: old?.overlap ?? 'allow',
        missed: old?.missed ?? 'once', limit: old?.missed_limit ? String(old.missed_limit) : '',
        start: fieldOf(old?.start_at), end: fieldOf(old?.end_at), except: old?.except ?? '',
        jitter: old?.jitter ? length(old.jitter) : '', either: !!old?.day_or_weekday,
    };
}

export const datesOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
const timingOf = (d: Draft): Timing => ({
    when: d.when, zone: d.zone, start: timeOf(d.start), end: timeOf(d.end),
    except: datesOf(d.except).join(',') || undefined, day_or_weekday: d.either,
});

// A time that the form shows without its seconds is not changed by looking at it.
const kept = (field: string, old?: number): number | undefined => field === fieldOf(old) ? old : timeOf(field);

function bodyOf(d: Draft, old?: Schedule): Record<string, unknown> {
    return {
        when: d.when, zone: d.zone || undefined, overlap: d.overlap, missed: d.missed, paused: old?.paused,
        missed_limit: d.missed === 'all' && d.limit ? Number(d.limit) : undefined,
        start_at: kept(d.start, old?.start_at), end_at: kept(d.end, old?.end_at),
        except: datesOf(d.except).join(',') || undefined, jitter: readLength(d.jitter),
        day_or_weekday: d.either || undefined,
        job: { ...old?.job, type: d.type, data: d.data.trim() ? JSON.parse(d.data) as unknown : undefined },
    };
}

// ---- the preview ----

interface Preview { words: string; next: number[] }

function usePreview(timing: Timing): { preview?: Preview; why: string } {
    const [preview, setPreview] = useState<Preview>();
    const [why, setWhy] = useState('');
    const asked = query({ ...timing, zone: timing.zone || undefined,
        day_or_weekday: timing.day_or_weekday || undefined });
    useEffect(() => {
        let alive = true;
        const timer = setTimeout(() => {
            if (!timing.when.trim())
                return;
            get<Preview>('/v1/firings' + asked).then(
                (p) => { if (alive) { setPreview(p); setWhy(''); } },
                (e: Error) => { if (alive) { setPreview(undefined); setWhy(e.message); } });
        }, TYPING_MS);
        return () => { alive = false; clearTimeout(timer); };
    }, [asked]);
    return { preview, why };
}

// The days of a month; a click on one leaves it out, or takes it in again.
function Days({ draft, toggle }: { draft: Draft; toggle: (day: string) => void }): JSX.Element {
    const today = dayIn(draft.zone)(serverNow());
    const [month, setMonth] = useState(today.slice(0, 7));
    const [from] = useState(serverNow);
    const { at, more } = useComing(timingOf(draft), month, from, TYPING_MS);
    return (
        <>
            <Calendar month={month} setMonth={setMonth} zone={draft.zone} days={byDay(draft.zone, [], [], at)}
                today={today} choose={toggle} off={new Set(datesOf(draft.except))} />
            <p class="faint">A click on a day leaves it out: a holiday.{more &&
                ' It fires often: not all of this month is shown.'}</p>
        </>
    );
}

// ---- the form ----

const zones = (): string[] => {
    const all = (Intl as unknown as { supportedValuesOf?: (what: string) => string[] }).supportedValuesOf;
    return all ? ['UTC', ...all('timeZone')] : [];
};

export function Editor({ old, close, after }: { old?: Schedule; close: () => void; after: () => void }): JSX.Element {
    const [draft, setDraft] = useState(() => draftOf(old));
    const [refused, setRefused] = useState('');
    const { preview, why } = usePreview(timingOf(draft));
    const now = useNow();
    const set = (change: Partial<Draft>): void => setDraft((d) => ({ ...d, ...change }));
    const save = async (e: Event): Promise<void> => {
        e.preventDefault();
        try {
            await call('PUT', pathOf(draft.name), bodyOf(draft, old));
            toast(`${draft.name} was ${old ? 'changed' : 'added'}`);
            after();
            close();
        } catch (problem) {
            setRefused((problem as Error).message);
        }
    };
    const toggle = (day: string): void => {
        const dates = datesOf(draft.except);
        set({ except: (dates.includes(day) ? dates.filter((d) => d !== day) : [...dates, day].sort()).join(', ') });
    };
    const text = (label: string, member: keyof Draft, more: JSX.IntrinsicElements['input'] = {}): JSX.Element => (
        <label class="line">{label}
            <input value={String(draft[member])} spellcheck={false} {...more}
                onInput={(e) => set({ [member]: e.currentTarget.value })} /></label>
    );
    const choice = (label: string, member: keyof Draft, options: Record<string, string>): JSX.Element => (
        <label class="line">{label}
            <select value={String(draft[member])} onChange={(e) => set({ [member]: e.currentTarget.value })}>
                {Object.entries(options).map(([value, words]) => <option key={value} value={value}>{words}</option>)}
            </select></label>
    );
    return (
        <Dialog title={old ? `Change ${old.name}` : 'Add a schedule'} close={close}>
            <form class="form" onSubmit={(e) => void save(e)}>
                {!old && text('Name', 'name', { required: true, maxLength: 100 })}
                {text('When', 'when', { required: true, maxLength: 256, placeholder: '30 6 * * 1, @daily, every 90m' })}
                {text('Time zone', 'zone', { placeholder: 'UTC', list: 'zones' })}
                <datalist id="zones">{zones().map((z) => <option key={z} value={z} />)}</datalist>
                <div class="preview" aria-live="polite">
                    {why ? <p class="bad">{why}</p> : preview && <>
                        <p>{preview.words}</p>
                        <ol>{preview.next.map((at) => <li key={at}><Moment at={at} now={now} /></li>)}</ol>
                        {!preview.next.length && <p class="bad">It never fires.</p>}
                    </>}
                </div>
                {text('Type of its jobs', 'type', { required: true, maxLength: 128 })}
                {text('Data (JSON)', 'data')}
                {choice('If the last job has not ended', 'overlap', { allow: 'add another', skip: 'leave this run out',
                    queue: 'let one wait', replace: 'cancel the old one' })}
                {choice('If no process was there at the time', 'missed', { once: 'run once for all that were missed',
                    skip: 'leave them out', all: 'run each of them' })}
                {draft.missed === 'all' && text('At most this many of them', 'limit',
                    { type: 'number', min: 1, placeholder: '100' })}
                <details open={!!(draft.start || draft.end || draft.except || draft.jitter || draft.either)}>
                    <summary>Holidays, begin and end, jitter</summary>
                    <div class="form">
                        {text('Days on which it does not run', 'except', { placeholder: '2026-12-25, 2026-12-26' })}
                        <Days draft={draft} toggle={toggle} />
                        {text('Not before (your time)', 'start', { type: 'datetime-local' })}
                        {text('Not after (your time)', 'end', { type: 'datetime-local' })}
                        {text('Up to this much later, so that not all fire at once', 'jitter', { placeholder: '30s' })}
                        <label><input type="checkbox" checked={draft.either}
                            onChange={(e) => set({ either: e.currentTarget.checked })} />{' '}
                        If day and weekday are both given, one of them is enough</label>
                    </div>
                </details>
                {refused && <p class="bad" role="alert">{refused}</p>}
                <p><button type="submit" class="main" disabled={!!why}>Save</button>{' '}
                    <button type="button" onClick={close}>Leave it</button></p>
            </form>
        </Dialog>
    );
}
