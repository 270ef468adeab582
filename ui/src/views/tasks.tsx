// tasks.tsx - tasks: jobs with ids of the caller's own. A list with filters; one task with its times,
// result and schedule; submit, fire, cancel, adjust.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, call, callText, get, query } from '../api';
import { memberText, span } from '../fmt';
import { follow } from '../live';
import { Command, weir } from '../parts/command';
import { Dialog } from '../parts/dialog';
import { Json } from '../parts/json';
import { ParamField } from '../parts/search';
import { complain, toast } from '../parts/toast';
import { setParams, usePlace } from '../router';
import { may, mayAll, useNow, useTitle } from '../store';
import { Moment } from './schedule_edit';
import { pathOf, TaskForm, type Task } from './task_edit';

const AGAIN_MS = 1000, PAGE = 100;

const STATE: Record<string, [mark: string, words: string, colour: string]> = {
    ready: ['○', 'ready', 'inactive'], running: ['◐', 'running', 'active'], completed: ['✓', 'completed', 'complete'],
    failed: ['✕', 'failed', 'failed'], cancelled: ['⊘', 'cancelled', 'cancelled'],
    timed_out: ['◷', 'timed out', 'failed'],
};
export const TASK_STATES = Object.keys(STATE);

function State({ task }: { task: Task }): JSX.Element {
    const [mark, words, colour] = STATE[task.state] ?? ['?', task.state, 'inactive'];
    return <span><span class={`mark ${colour}`} aria-hidden="true">{mark}</span> {words}</span>;
}

// ---- the list ----

interface Found { tasks: Task[]; next: string | null }

// The first tasks of a filter, as many as `n`; read again when something happens.
function useTasks(filter: Record<string, string>, n: number, turn: number): { found?: Found; why: string } {
    const [found, setFound] = useState<Found>();
    const [why, setWhy] = useState('');
    const asked = query({ ...filter, limit: filter['relative_ids'] ? undefined : Math.min(n, 1000) });
    useEffect(() => {
        let alive = true;
        const following = follow(async () => {
            try {
                const page = await get<Found>('/v1/tasks' + asked);
                if (alive) {
                    setFound(page);
                    setWhy('');
                }
            } catch (e) {           // the frame shows that a server or a store is away
                if (alive && e instanceof ApiError && e.status === 400)
                    setWhy(e.message);
            }
        }, AGAIN_MS);
        return () => { alive = false; following.stop(); };
    }, [asked, turn]);
    return { found, why };
}

const linkOf = (id: string): string => `/tasks/${encodeURIComponent(id)}`;

function List({ tasks, now }: { tasks: Task[]; now: number }): JSX.Element {
    return (
        <section class="panel" aria-label="Tasks"><table class="broad">
            <thead><tr><th>Task</th><th>State</th><th>Relative id</th><th>Classifier</th><th>Service</th><th>Runs at</th>
                <th>Result</th></tr></thead>
            <tbody>{tasks.map((t) => (
                <tr key={t.id}>
                    <td class="name"><a href={linkOf(t.id)}>{t.id}</a>
                        {t.name !== t.service && <span class="faint"> {t.name}</span>}</td>
                    <td data-label="State"><State task={t} /></td>
                    <td data-label="Relative id">{t.relative_id ?? '–'}</td>
                    <td data-label="Classifier">{t.classifier}</td>
                    <td data-label="Service">{t.service}</td>
                    <td data-label="Runs at" class="wide"><Moment at={t.run_at} now={now} />
                        {t.schedule && <> <span class="tag">{t.schedule}</span></>}</td>
                    <td data-label="Result" class="wide said">{(t.result_state ?? '–').slice(0, 100)}</td>
                </tr>
            ))}</tbody>
        </table></section>
    );
}

function Filters({ params }: { params: URLSearchParams }): JSX.Element {
    return (
        <>
            <ParamField name="classifier" title="Classifier" />
            <ParamField name="relative_ids" title="Relative ids" />
            <select aria-label="State" value={params.get('state') ?? ''}
                onChange={(e) => setParams({ state: e.currentTarget.value })}>
                <option value="">any state</option>
                {Object.entries(STATE).map(([name, [, words]]) => <option key={name} value={name}>{words}</option>)}
            </select>
        </>
    );
}

export function Tasks(): JSX.Element {
    const { params } = usePlace();
    const [n, setN] = useState(PAGE);
    const [turn, setTurn] = useState(0);
    const [adding, setAdding] = useState(false);
    const filter = Object.fromEntries(['classifier', 'relative_ids', 'state'].map((k) => [k, params.get(k) ?? '']));
    const { found, why } = useTasks(filter, n, turn);
    const now = useNow(), filtered = Object.values(filter).some(Boolean);
    if (!found && !why)
        return <p class="faint" aria-busy="true">…</p>;
    return (
        <>
            <div class="title"><h1>Tasks</h1>
                <div class="filters">
                    <Filters params={params} />
                    {may('produce') && <button type="button" class="main" onClick={() => setAdding(true)}>
                        Submit a task</button>}
                </div>
            </div>
            {why && <p class="bad" role="alert">{why}</p>}
            {found && (found.tasks.length ? <List tasks={found.tasks} now={now} /> : <div class="empty">
                {filtered ? <p>No task matches{found.next && ' among the first'}.</p> : <>
                    <p>A task is a job with an id of your own. Submit one:</p>
                    <Command text={weir('task submit thank --id thank-4711 --relative 4711')} /></>}
            </div>)}
            {found?.next && n < 1000 && <div class="end"><button type="button" onClick={() => setN(n + PAGE)}>
                More</button></div>}
            {adding && <TaskForm close={() => setAdding(false)} after={() => setTurn((was) => was + 1)} />}
        </>
    );
}

// ---- one ----

function Cancel({ task, close, after }: { task: Task; close: () => void; after: () => void }): JSX.Element {
    const [reason, setReason] = useState('');
    const cancel = async (e: Event): Promise<void> => {
        e.preventDefault();
        try {
            const { cancelled } = await call<{ cancelled: number }>('POST', '/v1/tasks/cancel',
                { ids: [task.id], ...(reason ? { reason } : {}) });
            toast(cancelled ? `${task.id} was cancelled` : `${task.id} is not ready any more`, { bad: !cancelled });
            after();
        } catch (problem) {
            complain(problem);
        }
        close();
    };
    return (
        <Dialog title={`Cancel ${task.id}`} close={close}>
            <form class="form" onSubmit={(e) => void cancel(e)}>
                <label class="line">Reason <input value={reason} maxLength={100} autofocus
                    onInput={(e) => setReason(e.currentTarget.value)} /></label>
                <p><button type="submit" class="danger">Cancel it</button>{' '}
                    <button type="button" onClick={close}>Leave it</button></p>
            </form>
        </Dialog>
    );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element | null {
    return children === undefined || children === null || children === '' || children === 0 || children === false ? null
        : <div><dt>{name}</dt><dd dir="auto">{children}</dd></div>;
}

function useTask(id: string): { shown?: { task: Task; text: string }; gone: string; again: () => void } {
    const [shown, setShown] = useState<{ task: Task; text: string }>();
    const [gone, setGone] = useState('');
    const [turn, setTurn] = useState(0);
    useEffect(() => {
        let alive = true, job = 0;
        const following = follow(async () => {
            try {
                const text = await callText('GET', pathOf(id)), task = JSON.parse(text) as Task;
                job = task.job;
                if (alive) {
                    setShown({ task, text });
                    setGone('');
                }
            } catch (e) {
                if (alive && e instanceof ApiError && e.status === 404)
                    setGone(e.message);
            }
        }, AGAIN_MS / 4, (e) => !job || e.id === job);
        return () => { alive = false; following.stop(); };
    }, [id, turn]);
    return { shown, gone, again: () => setTurn((n) => n + 1) };
}

function Facts({ task, now }: { task: Task; now: number }): JSX.Element {
    const moment = (at?: number | null): ComponentChildren => at ? <Moment at={at} now={now} /> : undefined;
    return (
        <dl class="facts">
            <Fact name="Service">{task.service}</Fact>
            <Fact name="Name">{task.name !== task.service && task.name}</Fact>
            <Fact name="Classifier">{task.classifier}</Fact>
            <Fact name="Relative id">{task.relative_id}</Fact>
            <Fact name="Submitted">{moment(task.created_at)}</Fact>
            <Fact name="Runs at">{task.state === 'ready' && moment(task.run_at)}</Fact>
            <Fact name="Started">{moment(task.started_at)}</Fact>
            <Fact name="Ended">{moment(task.ended_at)}</Fact>
            <Fact name="Schedule">{task.schedule && <><code>{task.schedule}</code> {task.zone}</>}</Fact>
            <Fact name="Longest run">{task.timeout ? span(task.timeout) : undefined}</Fact>
            <Fact name="Version">{task.version || undefined}</Fact>
            <Fact name="Host">{[task.host, task.ip].filter(Boolean).join(' · ')}</Fact>
            <Fact name="var1">{task.var1}</Fact>
            <Fact name="var2">{task.var2}</Fact>
            <Fact name="var3">{task.var3}</Fact>
            <Fact name="Job"><a href={`/jobs/${task.job}`}>#{task.job}</a></Fact>
        </dl>
    );
}

export function TaskView({ id }: { id: string }): JSX.Element {
    const { shown, gone, again } = useTask(id);
    const [dialog, setDialog] = useState('');
    const now = useNow();
    useTitle(gone ? 'Not here' : `Task ${id.slice(0, 60)}`);
    if (gone)
        return <div class="empty"><h1>Not here</h1><p>{gone}</p><p><a href="/tasks">All tasks</a></p></div>;
    if (!shown)
        return <p class="faint" aria-busy="true">…</p>;
    const { task, text } = shown;
    const fire = async (): Promise<void> => {
        try {
            await call('POST', `${pathOf(id)}/fire`);
            toast(`${id} is due now`);
        } catch (e) {
            complain(e);
        }
        again();
    };
    const json = (name: string): string | undefined => {
        const member = memberText(text, name);
        return member === 'null' ? undefined : member;
    };
    const attachment = json('attachment'), result = json('result');
    const close = (): void => setDialog('');
    return (
        <article>
            <div class="title"><h1>{task.id}</h1>
                {task.state === 'ready' && may('admin') && <div class="filters">
                    <button type="button" onClick={() => void fire()}>Fire now</button>
                    <button type="button" onClick={() => setDialog('adjust')}>Adjust</button>
                    {mayAll() && <button type="button" class="danger" onClick={() => setDialog('cancel')}>Cancel</button>}
                </div>}
            </div>
            <div class="columns">
                <div>
                    <section class={`panel ${task.state === 'failed' || task.state === 'timed_out' ? 'wrong' : ''}`}
                        aria-label="State"><p><State task={task} /></p>
                        {task.result_state && <p class="said" dir="auto">{task.result_state}</p>}</section>
                    {result !== undefined && <section class="panel" aria-label="Result"><h2>Result</h2>
                        <Json text={result} name="result" /></section>}
                    {attachment !== undefined && <section class="panel" aria-label="Attachment"><h2>Attachment</h2>
                        <Json text={attachment} name="attachment" /></section>}
                </div>
                <section class="panel" aria-label="Details"><h2>Details</h2><Facts task={task} now={now} /></section>
            </div>
            {dialog === 'cancel' && <Cancel task={task} close={close} after={again} />}
            {dialog === 'adjust' && <TaskForm old={task} attachment={attachment} close={close} after={again} />}
        </article>
    );
}
