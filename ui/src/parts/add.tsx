// add.tsx - a new job by a form: from nothing, or made from an old one. What the server refuses is said at
// the field that it is about.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, type Job } from '../api';
import { PRIORITY_NAMES } from '../fmt';
import { useTypes } from '../list';
import { go } from '../router';
import { bodyOf, draftOf, hasDeadline, NEW, type Draft } from '../spec';
import { may, serverNow } from '../store';
import { Dialog } from './dialog';
import { useFields } from './fields';
import { toast } from './toast';

const SELDOM: (keyof Draft)[] = ['values', 'run_at', 'ttl', 'deadline', 'unique', 'max_lost', 'search_keys',
    'removeOnComplete', 'search'];

export function SpecForm({ from, label, close }: { from: Draft; label: string; close: () => void }): JSX.Element {
    const { draft, wrong, fail, text, area, flag, form } = useFields(from);
    const [busy, setBusy] = useState(false);
    const types = useTypes();
    const submit = async (e: Event): Promise<void> => {
        e.preventDefault();
        setBusy(true);
        try {
            const added = await call<{ id: number; existed?: boolean }>('POST', '/v1/jobs', bodyOf(draft));
            toast(added.existed ? `Job ${added.id} has this unique key already` : `Job ${added.id} was added`);
            close();
            go(`/jobs/${added.id}`);
        } catch (problem) {
            fail(problem);
            setBusy(false);
        }
    };
    const seldom = SELDOM.some((name) => from[name]) || SELDOM.some((name) => wrong?.field === name);
    return (
        <form class="again" ref={form} onSubmit={(e) => void submit(e)}>
            {text('type', 'Type', { required: true, maxLength: 128, list: 'types', autofocus: !from.type })}
            <datalist id="types">{types.map((t) => <option key={t} value={t} />)}</datalist>
            {text('priority', 'Priority', { list: 'priorities' })}
            <datalist id="priorities">{PRIORITY_NAMES.map((p) => <option key={p} value={p} />)}</datalist>
            {text('attempts', 'Attempts', { inputMode: 'numeric' })}
            {area('data', 'Data', 8)}
            {text('delay', 'Start after', { placeholder: '30s, 2h' })}
            {text('backoff', 'Pause after a failure', { placeholder: 'exponential:1s:60s' })}
            {text('ttl', 'Longest run', { placeholder: '5m' })}
            <details class="wide" open={seldom}>
                <summary>Moments, unique key, search, values</summary>
                <div class="again">
                    {text('run_at', 'Start at', { type: 'datetime-local', about: '(your time)' })}
                    {text('deadline', 'Not after', { type: 'datetime-local', about: '(your time)' })}
                    {text('max_lost', 'Workers it may lose', { inputMode: 'numeric', placeholder: '3' })}
                    {text('unique', 'Unique key')}
                    {text('search_keys', 'Searched members', { placeholder: 'to, customer.name' })}
                    {flag('search', 'can be found by its words')}
                    {flag('removeOnComplete', 'is removed when it is complete')}
                    {area('values', 'Values', 2)}
                </div>
            </details>
            {wrong && !wrong.field && <p class="bad wide" role="alert">{wrong.text}</p>}
            <p class="wide">
                <button type="submit" class="main" disabled={busy}>{label}</button>{' '}
                <button type="button" onClick={close}>Leave it</button>
            </p>
        </form>
    );
}

export function Again({ job, data, values, close }:
    { job: Job; data: string; values?: string; close: () => void }): JSX.Element {
    const [from] = useState(() => draftOf(job, data, values, serverNow()));
    return (
        <Dialog title={`Edit job ${job.id} and run it again`} close={close}>
            {job.deadline && !hasDeadline(job, serverNow()) &&
                <p class="faint">Its deadline is over, so the new job has none.</p>}
            <SpecForm from={from} label="Add as a new job" close={close} />
        </Dialog>
    );
}

// The button that opens the form, for who may add. `type` is where it begins.
export function AddButton({ type = '' }: { type?: string }): JSX.Element | null {
    const [open, setOpen] = useState(false);
    return !may('produce') ? null : (
        <>
            <button type="button" class="main" onClick={() => setOpen(true)}>Add a job</button>
            {open && <Dialog title="Add a job" close={() => setOpen(false)}>
                <SpecForm from={{ ...NEW, type }} label="Add" close={() => setOpen(false)} />
            </Dialog>}
        </>
    );
}
