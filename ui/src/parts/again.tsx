// again.tsx - a new job made from an old one: look at it, change it, run it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, type Job } from '../api';
import { pretty, priority } from '../fmt';
import { go } from '../router';
import { Dialog } from './dialog';
import { toast } from './toast';

export function Again({ job, data, close }: { job: Job; data: string; close: () => void }):
    JSX.Element {
    const [type, setType] = useState(job.type);
    const [text, setText] = useState(pretty(data));
    const [prio, setPrio] = useState(priority(job.priority));
    const [attempts, setAttempts] = useState(String(job.max_attempts));
    const [why, setWhy] = useState('');
    const submit = async (e: Event): Promise<void> => {
        e.preventDefault();
        // the data goes as it was written, digit by digit: the rest is put around it
        const rest = JSON.stringify({
            type, attempts: Number(attempts), priority: /^-?\d+$/.test(prio) ? Number(prio) : prio,
            ...(job.backoff ? { backoff: job.backoff } : {}),
            ...(job.ttl ? { ttl: job.ttl } : {}),
        });
        try {
            JSON.parse(text);
            const added = await call<{ id: number }>('POST', '/v1/jobs',
                `${rest.slice(0, -1)},"data":${text}}`);
            toast(`Job ${added.id} was added`);
            close();
            go(`/jobs/${added.id}`);
        } catch (problem) {
            setWhy((problem as Error).message);
        }
    };
    return (
        <Dialog title={`Edit job ${job.id} and run it again`} close={close}>
            <form class="again" onSubmit={(e) => void submit(e)}>
                <label>Type <input value={type} onInput={(e) => setType(e.currentTarget.value)} /></label>
                <label>Priority <input value={prio}
                    onInput={(e) => setPrio(e.currentTarget.value)} /></label>
                <label>Attempts <input value={attempts} inputMode="numeric"
                    onInput={(e) => setAttempts(e.currentTarget.value)} /></label>
                <label class="wide">Data <textarea rows={12} value={text} spellcheck={false}
                    onInput={(e) => setText(e.currentTarget.value)} /></label>
                {why && <p class="bad wide" role="alert">{why}</p>}
                <p class="wide">
                    <button type="submit" class="main">Add as a new job</button>{' '}
                    <button type="button" onClick={close}>Leave it</button>
                </p>
            </form>
        </Dialog>
    );
}
