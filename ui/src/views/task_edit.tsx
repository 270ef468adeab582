// task_edit.tsx - the form that submits a task, or adjusts one.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api';
import { fieldOf, length, pretty, readLength, timeOf } from '../fmt';
import { useTypes } from '../list';
import { Dialog } from '../parts/dialog';
import { jsonMember, useFields } from '../parts/fields';
import { toast } from '../parts/toast';
import { go } from '../router';

export interface Task {
    id: string; relative_id: string | null; classifier: string; name: string; service: string; state: string;
    run_at: number; timeout: number; created_at: number; started_at: number | null; ended_at: number | null;
    result_state: string | null; host: string | null; ip: string | null;
    var1: string | null; var2: string | null; var3: string | null;
    schedule: string | null; zone: string | null; version: number; job: number;
}

export const pathOf = (id: string): string => `/v1/tasks/${encodeURIComponent(id)}`;

type Draft = Record<'service' | 'id' | 'classifier' | 'relative_id' | 'name' | 'attachment' | 'var1' | 'var2' | 'var3' |
    'run_at' | 'schedule' | 'zone' | 'timeout' | 'version', string>;

function draftOf(old?: Task, attachment?: string): Draft {
    return {
        service: old?.service ?? '', id: old?.id ?? '', classifier: old?.classifier ?? '',
        relative_id: old?.relative_id ?? '', name: old?.name ?? '', attachment: attachment ? pretty(attachment) : '',
        var1: old?.var1 ?? '', var2: old?.var2 ?? '', var3: old?.var3 ?? '', run_at: fieldOf(old?.run_at),
        schedule: old?.schedule ?? '', zone: old?.schedule ? old.zone ?? '' : '',
        timeout: old?.timeout ? length(old.timeout) : '', version: old?.version ? String(old.version) : '',
    };
}

// What is filled in; of a task that is there, what was changed: the rest stays as it is.
function bodyOf(d: Draft, from: Draft, old?: Task): string {
    const body: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(d) as [keyof Draft, string][]) {
        if (name === 'attachment' || (old ? text === from[name] : !text.trim()))
            continue;
        body[name] = name === 'run_at' ? timeOf(text) : name === 'timeout' ? readLength(text)
            : name === 'version' ? Number(text) : text.trim();
    }
    const attachment = d.attachment !== from.attachment && d.attachment.trim()
        ? jsonMember('attachment', d.attachment) : '';
    const rest = JSON.stringify(body);
    return rest === '{}' ? `{${attachment.slice(1)}}` : `${rest.slice(0, -1)}${attachment}}`;
}

export function TaskForm({ old, attachment, close, after }:
    { old?: Task; attachment?: string; close: () => void; after: () => void }): JSX.Element {
    const [from] = useState(() => draftOf(old, attachment));
    const { draft, wrong, fail, text, area, form } = useFields<Draft>(from, { when: 'schedule' });
    const types = useTypes();
    const save = async (e: Event): Promise<void> => {
        e.preventDefault();
        try {
            const body = bodyOf(draft, from, old);
            if (old) {
                await call('PUT', pathOf(old.id), body);
                toast(`${old.id} was adjusted`);
            } else {
                const { id } = await call<{ id: string }>('POST', '/v1/tasks', body);
                toast(`${id} was submitted`);
                go(`/tasks/${encodeURIComponent(id)}`);
            }
            after();
            close();
        } catch (problem) {
            fail(problem);
        }
    };
    return (
        <Dialog title={old ? `Adjust ${old.id}` : 'Submit a task'} close={close}>
            <form class="again" ref={form} onSubmit={(e) => void save(e)}>
                {!old && <>
                    {text('service', 'Service', { required: true, maxLength: 128, list: 'services', autofocus: true })}
                    <datalist id="services">{types.map((t) => <option key={t} value={t} />)}</datalist>
                    {text('id', 'Id', { placeholder: 'a new one' })}
                </>}
                {text('relative_id', 'Relative id')}
                {text('classifier', 'Classifier', { placeholder: 'default' })}
                {text('name', 'Name', { placeholder: 'the service' })}
                {text('run_at', 'Run at', { type: 'datetime-local', about: '(your time)' })}
                {text('schedule', 'Schedule', { placeholder: '30 6 * * 1, @daily' })}
                {text('zone', 'Time zone', { placeholder: 'UTC' })}
                {!old && text('timeout', 'Longest run', { placeholder: '5m' })}
                {!old && text('version', 'Version', { inputMode: 'numeric', placeholder: '0' })}
                {area('attachment', 'Attachment (JSON)', 4)}
                {text('var1', 'var1')}
                {text('var2', 'var2')}
                {text('var3', 'var3')}
                {wrong && !wrong.field && <p class="bad wide" role="alert">{wrong.text}</p>}
                <p class="wide"><button type="submit" class="main">{old ? 'Adjust it' : 'Submit it'}</button>{' '}
                    <button type="button" onClick={close}>Leave it</button></p>
            </form>
        </Dialog>
    );
}
