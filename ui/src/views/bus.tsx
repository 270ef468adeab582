// bus.tsx - the event bus: work queues with their work and processors, addresses with their consumers, and
// a form that sends a message and shows the reply.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, call, callText, get } from '../api';
import { count, memberText, span } from '../fmt';
import { useKeys } from '../keys';
import { follow } from '../live';
import { Command, weir } from '../parts/command';
import { Dialog } from '../parts/dialog';
import { Json } from '../parts/json';
import { complain, toast } from '../parts/toast';
import { setParams, usePlace } from '../router';
import { may, useShared } from '../store';
import { rate } from './overview';

const AGAIN_MS = 500, EVERY_MS = 2000, SHOWN = 200;

interface Address {
    address: string; here: number; elsewhere: number; delivered: number; per_second: number;
}
interface WorkQueue {
    address: string; process_timeout: number; timed_out_first: boolean; persist: boolean; collection?: string;
    configured: boolean; standby: boolean; waiting: number; running: number; idle: number; busy: number;
    done: number; timed_out: number; done_per_second: number;
}
interface BusState { queues: WorkQueue[]; addresses: Address[] }

// Addresses are shown to an admin alone, since only an admin may ask for them.
function useBus(turn: number): BusState | undefined {
    const [state, setState] = useState<BusState>();
    const { server } = useShared();
    const admin = may('admin');
    useEffect(() => {
        if (!server)
            return undefined;
        let alive = true;
        const following = follow(async () => {
            try {
                const [w, b] = await Promise.all([
                    get<{ work_queues: WorkQueue[] }>('/v1/workqueues'),
                    admin ? get<{ addresses: Address[] }>('/v1/bus') : { addresses: [] },
                ]);
                if (alive)
                    setState({ queues: w.work_queues, addresses: b.addresses });
            } catch { /* the frame reports trouble */ }
            return EVERY_MS;
        }, AGAIN_MS);
        return () => { alive = false; following.stop(); };
    }, [turn, !server, admin]);
    return state;
}

// ---- work queues ----

const pathOf = (address: string): string => `/v1/workqueues/${encodeURIComponent(address)}`;

function AddQueue({ close, after }: { close: () => void; after: () => void }): JSX.Element {
    const [address, setAddress] = useState('');
    const [timeout, setTimeout] = useState('5m');
    const [persist, setPersist] = useState(false);
    const [collection, setCollection] = useState('');
    const [first, setFirst] = useState(false);
    const [refused, setRefused] = useState('');
    const save = async (e: Event): Promise<void> => {
        e.preventDefault();
        try {
            await call('PUT', pathOf(address), { process_timeout: timeout, persist, timed_out_first: first,
                collection: persist && collection ? collection : undefined });
            toast(`The work queue ${address} has started`);
            after();
            close();
        } catch (problem) {
            setRefused((problem as Error).message);
        }
    };
    return (
        <Dialog title="Add a work queue" close={close}>
            <form class="form" onSubmit={(e) => void save(e)}>
                <label class="line">Address
                    <input value={address} required maxLength={200} spellcheck={false} autofocus
                        placeholder="resize" onInput={(e) => setAddress(e.currentTarget.value)} /></label>
                <label class="line">A processor has this long for a message
                    <input value={timeout} required spellcheck={false} placeholder="5m"
                        onInput={(e) => setTimeout(e.currentTarget.value)} /></label>
                <label><input type="checkbox" checked={first}
                    onChange={(e) => setFirst(e.currentTarget.checked)} />{' '}
                Work of a late processor goes to the head of the queue</label>
                <label><input type="checkbox" checked={persist}
                    onChange={(e) => setPersist(e.currentTarget.checked)} />{' '}
                Keep the work as jobs, so that it survives a restart</label>
                {persist && <label class="line">Type of these jobs
                    <input value={collection} placeholder={address || 'the address'} maxLength={128}
                        spellcheck={false} onInput={(e) => setCollection(e.currentTarget.value)} /></label>}
                {refused && <p class="bad" role="alert">{refused}</p>}
                <p><button type="submit" class="main">Add it</button>{' '}
                    <button type="button" onClick={close}>Leave it</button></p>
            </form>
        </Dialog>
    );
}

function RemoveQueue({ q, close, after }: { q: WorkQueue; close: () => void; after: () => void }): JSX.Element {
    const remove = async (): Promise<void> => {
        try {
            await call('DELETE', pathOf(q.address));
            toast(`The work queue ${q.address} was removed`);
        } catch (e) {
            complain(e);
        }
        after();
        close();
    };
    const held = q.waiting + q.running;
    return (
        <Dialog title={`Remove ${q.address}`} close={close}>
            <p>{q.persist ? 'Its work stays in the store, as jobs.'
                : held ? `${count(held)} ${held === 1 ? 'message that waits or runs is' : 'messages that wait or run are'} lost, and their senders' requests fail.`
                    : 'Nothing waits in it.'}</p>
            <p><button type="button" class="danger" onClick={() => void remove()}>Remove it</button>{' '}
                <button type="button" onClick={close} autofocus>Leave it</button></p>
        </Dialog>
    );
}

function Processors({ q }: { q: WorkQueue }): JSX.Element {
    if (!q.idle && !q.busy)
        return <span class={q.waiting ? 'bad' : 'faint'}>none</span>;
    return <>{count(q.idle + q.busy)} <span class="faint">{q.busy ? `(${count(q.busy)} busy)` : '(idle)'}</span></>;
}

function QueueTable({ queues, remove }:
    { queues: WorkQueue[]; remove: (q: WorkQueue) => void }): JSX.Element {
    const late = queues.some((q) => q.timed_out);
    return (
        <div class="scroll"><table class="cells">
            <thead><tr><th>Address</th><th class="num">Waiting</th><th class="num">Running</th>
                <th class="num">Processors</th><th class="num">Done</th><th class="num">A second</th>
                {late && <th class="num">Too late</th>}<th><span class="hidden">Remove</span></th></tr></thead>
            <tbody>{queues.map((q) => (
                <tr key={q.address}>
                    <td class="name"><a href={`/bus?address=${encodeURIComponent(q.address)}`}>{q.address}</a>
                        {q.persist && <a class="tag" href={`/jobs?type=${encodeURIComponent(q.collection ?? q.address)}`}>
                            jobs</a>}
                        {q.configured && <span class="tag">in the settings</span>}
                        {q.standby && <span class="tag" title="Another server serves this address">standby</span>}</td>
                    <td class="num" data-label="waiting">{count(q.waiting)}</td>
                    <td class="num" data-label="running">{count(q.running)}</td>
                    <td class="num" data-label="processors"><Processors q={q} /></td>
                    <td class="num" data-label="done">{count(q.done)}</td>
                    <td class="num" data-label="a second">{rate(q.done_per_second)}</td>
                    {late && <td class="num" data-label="too late"
                        title={`A processor has ${span(q.process_timeout)}`}>{count(q.timed_out)}</td>}
                    <td>{may('admin') && !q.configured && <button type="button" onClick={() => remove(q)}
                        aria-label={`Remove ${q.address}`}>Remove</button>}</td>
                </tr>
            ))}</tbody>
        </table></div>
    );
}

// ---- addresses ----

const KNOWN: Record<string, string> = {
    'vertx.kue.service.job.internal': 'job service', 'weir.bus': 'this server',
};

// Where processors register is known from the work queue.
const isRegistry = (address: string, queues: WorkQueue[]): boolean =>
    queues.some((q) => address === `${q.address}.register` || address === `${q.address}.unregister`);

// At these weir's processes agree with each other; nobody else can use them (docs/bus.md).
const isInner = (address: string): boolean => /^weir\.(group|leads|ends|servers)\./.test(address);

function kindOf(address: string, queues: WorkQueue[]): string {
    const queue = queues.some((q) => address === q.address);
    const processor = queues.some((q) => address.startsWith(`${q.address}.processor.`));
    return queue ? 'work queue' : processor ? 'processor' : KNOWN[address] ??
        (address.startsWith('vertx.kue.handler.') ? 'job service' : '');
}

function Addresses({ state }: { state: BusState }): JSX.Element {
    const [words, setWords] = useState('');
    const [all, setAll] = useState(false);
    const listed = state.addresses.filter((a) => !isInner(a.address) && !isRegistry(a.address, state.queues));
    const found = listed.filter((a) => a.address.includes(words.trim()));
    const shown = all ? found : found.slice(0, SHOWN);
    const theirs = listed.some((a) => !kindOf(a.address, state.queues));
    const elsewhere = listed.some((a) => a.elsewhere);
    return (
        <section class="panel" aria-label="Addresses">
            <div class="title"><h2>Addresses <span class="faint">{count(listed.length)}</span></h2>
                <input type="search" aria-label="Filter addresses" placeholder="Filter" value={words}
                    onInput={(e) => setWords(e.currentTarget.value)} /></div>
            {!theirs && <>
                <p>No program consumes an address yet. Any can, in any language; from a shell:</p>
                <Command text={weir('bus listen news')} />
            </>}
            <div class="scroll"><table class="cells">
                <thead><tr><th>Address</th><th class="num">Consumers</th>
                    {elsewhere && <th class="num">In other processes</th>}<th class="num">Delivered</th><th class="num">A second</th></tr></thead>
                <tbody>{shown.map((a) => (
                    <tr key={a.address}>
                        <td class="name"><a href={`/bus?address=${encodeURIComponent(a.address)}`}>{a.address}</a>
                            {kindOf(a.address, state.queues) && <span class="tag">{kindOf(a.address, state.queues)}</span>}</td>
                        <td class="num" data-label="consumers">{count(a.here)}</td>
                        {elsewhere && <td class="num" data-label="in other processes">{count(a.elsewhere)}</td>}
                        <td class="num" data-label="delivered">{count(a.delivered)}</td>
                        <td class="num" data-label="a second">{rate(a.per_second)}</td>
                    </tr>
                ))}</tbody>
            </table></div>
            {!found.length && <p class="faint">No address has “{words.trim()}” in it.</p>}
            {shown.length < found.length && <p><button type="button" onClick={() => setAll(true)}>
                Show all {count(found.length)}</button></p>}
        </section>
    );
}

// ---- a message to try ----

type How = 'request' | 'send' | 'publish';
const HOW: Record<How, { label: string; hint: string; done: string }> = {
    request: { label: 'Request', hint: 'One consumer receives it and replies.', done: '' },
    send: { label: 'Send', hint: 'One consumer receives it; consumers take turns.', done: 'Sent to one consumer.' },
    publish: { label: 'Publish', hint: 'Every consumer receives it.', done: 'Published to all consumers, if there are any.' },
};

interface Outcome { said?: string; reply?: string; failure?: { type: string; code: number; text: string }; ms: number }

// "name: value" lines.
function readHeaders(text: string): Record<string, string> {
    const headers: Record<string, string> = {};
    for (const line of text.split('\n').filter((l) => l.trim())) {
        const colon = line.indexOf(':');
        if (colon < 1)
            throw new Error(`Headers: “${line}” is no name: value`);
        headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
    }
    return headers;
}

// The body stays text on its way to the server, and the reply on its way back: no digit is lost.
async function tryMessage(how: How, address: string, body: string, headers: string, timeout: string):
    Promise<Outcome> {
    const members = JSON.stringify({ how, address, headers: readHeaders(headers),
        ...(how === 'request' && timeout ? { timeout } : {}) });
    const began = performance.now();
    const answer = await callText('POST', '/v1/bus', `${members.slice(0, -1)},"body":${body.trim() || 'null'}}`);
    const ms = performance.now() - began;
    if (how !== 'request')
        return { said: HOW[how].done, ms };
    const reply = memberText(answer, 'body');
    if (reply !== undefined)
        return { reply, ms };
    const why = JSON.parse(answer) as { failureType: string; failureCode: number; message: string };
    return { failure: { type: why.failureType, code: why.failureCode, text: why.message }, ms };
}

const HELP: Record<string, string> = {
    NO_HANDLERS: 'No consumer has registered this address.',
    TIMEOUT: 'A consumer received it and did not reply in time, or replies to nothing.',
    RECIPIENT_FAILURE: 'The consumer answered with this failure.',
    ERROR: 'The message did not reach a consumer, or the consumer was lost.',
};

function Shown({ outcome }: { outcome: Outcome }): JSX.Element {
    const { reply, failure, said, ms } = outcome;
    return (
        <div class="outcome" role="status" aria-label="What came back">
            {said && <p>{said}</p>}
            {reply !== undefined && <><h3>Reply <span class="faint">after {span(ms)}</span></h3>
                <Json text={reply} name="the reply" /></>}
            {failure && <>
                <p class="bad"><b>{failure.type}</b> {failure.code !== -1 && `(${failure.code}) `}{failure.text}</p>
                <p class="faint">{HELP[failure.type]}</p>
            </>}
        </div>
    );
}

function Try({ addresses }: { addresses: Address[] }): JSX.Element {
    const chosen = usePlace().params.get('address') ?? '';
    const [how, setHow] = useState<How>('request');
    const [address, setAddress] = useState(chosen);
    const [body, setBody] = useState('{}');
    const [headers, setHeaders] = useState('');
    const [timeout, setTimeout] = useState('5s');
    const [busy, setBusy] = useState(false);
    const [outcome, setOutcome] = useState<Outcome>();
    const [refused, setRefused] = useState('');
    const box = useRef<HTMLInputElement>(null);
    useKeys({ t: () => box.current?.focus() });
    useEffect(() => {
        if (chosen)
            setAddress(chosen);
    }, [chosen]);
    const submit = async (e: Event): Promise<void> => {
        e.preventDefault();
        if (busy)
            return;
        setBusy(true);
        setRefused('');
        setOutcome(undefined);
        try {
            if (body.trim())
                JSON.parse(body);
            setOutcome(await tryMessage(how, address, body, headers, timeout));
        } catch (problem) {
            setRefused(problem instanceof SyntaxError ? `Body: ${problem.message}` :
                problem instanceof ApiError && problem.problem.code === 'ENOENT' ? `No consumer has ${address}.` :
                    (problem as Error).message);
        }
        setBusy(false);
    };
    const withKeys = (e: KeyboardEvent): void => {
        if (e.key === 'Enter' && (e.ctrlKey || e.metaKey))
            void submit(e);
    };
    return (
        <section class="panel try" aria-label="Try a message">
            <h2>Try a message</h2>
            <form class="form" onSubmit={(e) => void submit(e)} onKeyDown={withKeys}>
                <div class="choice" role="radiogroup" aria-label="How">
                    {(Object.keys(HOW) as How[]).map((h) => (
                        <label key={h}><input type="radio" name="how" checked={how === h}
                            onChange={() => setHow(h)} /> {HOW[h].label}</label>
                    ))}
                </div>
                <p class="faint">{HOW[how].hint}</p>
                <label class="line">Address
                    <input ref={box} value={address} required maxLength={255} spellcheck={false}
                        list="addresses" placeholder="news" onInput={(e) => {
                            setAddress(e.currentTarget.value);
                            if (chosen)
                                setParams({ address: '' }, true);
                        }} /></label>
                <datalist id="addresses">{addresses.slice(0, SHOWN).map((a) => <option key={a.address} value={a.address} />)}</datalist>
                <label class="line">Body (JSON)
                    <textarea rows={4} value={body} spellcheck={false}
                        onInput={(e) => setBody(e.currentTarget.value)} /></label>
                <label class="line">Headers, a line each
                    <textarea rows={2} value={headers} spellcheck={false} placeholder="action: getJob"
                        onInput={(e) => setHeaders(e.currentTarget.value)} /></label>
                {how === 'request' && <label class="line">Wait for the reply
                    <input value={timeout} spellcheck={false} placeholder="5s" class="short"
                        onInput={(e) => setTimeout(e.currentTarget.value)} /></label>}
                <p><button type="submit" class="main" disabled={busy}>{HOW[how].label}</button>{' '}
                    <span class="faint">{busy ? 'waiting for the reply …' : <><kbd>Ctrl</kbd> <kbd>Enter</kbd></>}</span></p>
                {refused && <p class="bad" role="alert">{refused}</p>}
            </form>
            {outcome && <Shown outcome={outcome} />}
        </section>
    );
}

// ---- the view ----

export function Bus(): JSX.Element {
    const [turn, setTurn] = useState(0);
    const [adding, setAdding] = useState(false);
    const [removing, setRemoving] = useState<WorkQueue>();
    const state = useBus(turn);
    const again = (): void => setTurn((n) => n + 1);
    if (!state)
        return <p class="faint" aria-busy="true">…</p>;
    return (
        <>
            <div class="title"><h1>Event bus</h1>
                {may('admin') && <div class="filters">
                    <button type="button" class="main" onClick={() => setAdding(true)}>Add a work queue</button>
                </div>}
            </div>
            <div class={may('admin') ? 'bus' : ''}>
                <section class="panel" aria-label="Work queues">
                    <h2>Work queues</h2>
                    {state.queues.length ? <QueueTable queues={state.queues} remove={setRemoving} /> : <>
                        <p>A work queue gives the messages of one address to processors, one at a time to each, and
                            their replies to the senders:</p>
                        <Command text={weir('workqueue add resize')} />
                    </>}
                </section>
                {may('admin') ? <><Try addresses={state.addresses} /><Addresses state={state} /></>
                    : <p class="faint">Addresses and messages are shown to an admin alone.</p>}
            </div>
            {adding && <AddQueue close={() => setAdding(false)} after={again} />}
            {removing && <RemoveQueue q={removing} close={() => setRemoving(undefined)} after={again} />}
        </>
    );
}
