// audit.tsx - who changed what: the audit log of the server, for those who may do everything.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, query } from '../api';
import { clock, count, since } from '../fmt';
import { setParams, usePlace } from '../router';
import { mayAudit, serverNow, useNow } from '../store';

const PAGE = 50, LINKS = 5, HOUR_MS = 3600000;

export interface Entry {
    number: number; at: number; action: string; status: number; count: number; ids: number[];
    token?: string; address?: string; path?: string; detail?: string;
}
interface Log { entries: Entry[]; mode: 'admin' | 'all' | 'off'; next: string | null }

const ACTIONS = ['job', 'job.change', 'job.retry', 'job.promote', 'job.cancel', 'job.delete', 'job.bulk',
    'job.state', 'job.import', 'type', 'type.pause', 'type.resume', 'type.settings', 'schedule', 'push', 'token', 'store'];
const SPANS: [string, string][] = [['1', 'last hour'], ['24', 'last day'], ['168', 'last 7 days']];

// A change of the file of tokens has no caller that the server knows.
const who = (e: Entry): string => e.token === undefined ? 'tokens.json' : e.token || 'loopback';

function Jobs({ e }: { e: Entry }): JSX.Element {
    const more = e.count - Math.min(e.ids.length, LINKS);
    return (
        <>
            {e.ids.slice(0, LINKS).map((id) => <><a href={`/jobs/${id}`}>#{id}</a>{' '}</>)}
            {more > 0 && <span class="faint">{e.ids.length ? '+ ' : ''}{count(more)}</span>}
        </>
    );
}

function Rows({ entries, now }: { entries: Entry[]; now: number }): JSX.Element {
    return (
        <>
            {entries.map((e) => (
                <tr key={e.number}>
                    <td title={new Date(e.at).toISOString()}>{since(e.at, now)}{' '}
                        <span class="faint">{clock(e.at)}</span></td>
                    <td><b>{who(e)}</b> <span class="faint">{e.address}</span></td>
                    <td>{e.action}</td>
                    <td class={e.status >= 400 ? 'bad' : ''}>{e.status >= 400 ? `refused: ${e.status}` : 'done'}</td>
                    <td><Jobs e={e} /></td>
                    <td class="said" dir="auto">{e.detail ?? e.path}</td>
                </tr>
            ))}
        </>
    );
}

function Filters({ params }: { params: URLSearchParams }): JSX.Element {
    const value = (name: string): string => params.get(name) ?? '';
    const text = (name: string, label: string): JSX.Element => (
        <input aria-label={label} placeholder={label} value={value(name)} size={12}
            onChange={(e) => setParams({ [name]: e.currentTarget.value.trim().replace(/^#/, '') })} />
    );
    return (
        <div class="filters">
            {text('token', 'Token')}
            <select aria-label="Action" value={value('action')}
                onChange={(e) => setParams({ action: e.currentTarget.value })}>
                <option value="">all actions</option>
                {ACTIONS.map((a) => <option key={a} value={a}>{a.includes('.') ? a : `all of ${a}`}</option>)}
            </select>
            {text('id', 'Job')}
            <select aria-label="Since" value={value('since')}
                onChange={(e) => setParams({ since: e.currentTarget.value })}>
                <option value="">at any time</option>
                {SPANS.map(([hours, label]) => <option key={hours} value={hours}>{label}</option>)}
            </select>
        </div>
    );
}

export function Audit(): JSX.Element {
    const { params } = usePlace();
    const [log, setLog] = useState<Log>();
    const [why, setWhy] = useState('');
    const now = useNow();
    const wanted = params.toString();
    const read = async (after: string | null, before: Entry[]): Promise<void> => {
        const hours = Number(params.get('since') ?? 0);
        try {
            const page = await get<Log>('/v1/audit' + query({
                token: params.get('token') ?? '', action: params.get('action') ?? '',
                id: params.get('id') ?? '', limit: PAGE, after: after ?? '',
                since: hours ? Math.round(serverNow() - hours * HOUR_MS) : '',
            }));
            setLog({ ...page, entries: [...before, ...page.entries] });
            setWhy('');
        } catch (problem) {
            setWhy((problem as Error).message);
        }
    };
    useEffect(() => void read(null, []), [wanted]);
    return (
        <>
            <div class="title"><h1>Audit</h1><Filters params={params} /></div>
            {why && <p class="bad" role="alert">{why}</p>}
            {!log && !why && <p class="faint" aria-busy="true">…</p>}
            {log?.mode === 'off' && <p class="empty">Nothing is recorded: the server runs with <code>--audit off</code>.</p>}
            {log && !log.entries.length && log.mode !== 'off' && <p class="empty">
                {wanted ? 'No recorded action matches.' : 'Nobody has changed anything yet. Actions by this page, the API and the command line appear here.'}</p>}
            {!!log?.entries.length && <div class="panel"><table class="audit">
                <thead><tr><th>Time</th><th>Who</th><th>Action</th><th>Outcome</th><th>Jobs</th><th>What</th></tr></thead>
                <tbody><Rows entries={log.entries} now={now} /></tbody>
            </table></div>}
            {log?.next && <button type="button" onClick={() => void read(log.next, log.entries)}>More</button>}
        </>
    );
}

// What was done to one job, on its page; nothing for those who may not see it.
export function JobAudit({ id, turn }: { id: number; turn: number }): JSX.Element | null {
    const [entries, setEntries] = useState<Entry[]>([]);
    const now = useNow();
    useEffect(() => {
        if (mayAudit())
            get<Log>('/v1/audit' + query({ id, limit: 20 })).then((log) => setEntries(log.entries), () => {});
    }, [id, turn]);
    if (!entries.length)
        return null;
    return (
        <section class="panel" aria-label="By whom"><h2>By whom</h2>
            <ul class="plain">
                {entries.map((e) => (
                    <li key={e.number}><b>{who(e)}</b> {e.action}{' '}
                        {e.status >= 400 && <span class="bad">refused: {e.status} </span>}
                        <span class="faint">{since(e.at, now)}</span></li>
                ))}
            </ul>
            <p><a href={`/audit?id=${id}`}>Audit log of this job</a></p>
        </section>
    );
}
