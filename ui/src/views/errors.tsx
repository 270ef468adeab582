// errors.tsx - failed jobs in groups of the same error: how many, since when, and what to do about each.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { jobsOf, sayError, useErrors, type ErrorGroup, type ErrorGroups } from '../errors';
import { clock, count, since } from '../fmt';
import { AgainGroup } from '../parts/again_group';
import { Ask, type Question } from '../parts/ask';
import { setParams, usePlace } from '../router';
import { may, useNow, useShared } from '../store';

// What is in none of the groups.
export function Limits({ found }: { found: ErrorGroups }): JSX.Element | null {
    if (!found.more && !found.others)
        return null;
    return (
        <p class="faint" role="note">
            {found.more && <>The last {count(found.looked)} failed jobs were looked at; there are older ones. </>}
            {found.others > 0 && <>{count(found.others)} more failed jobs have yet other errors.</>}
        </p>
    );
}

// `of`: the type that all of them have, which is not repeated.
export function GroupTable({ groups, now, of, again }: {
    groups: ErrorGroup[]; now: number; of?: string; again: () => void;
}): JSX.Element {
    const [group, setGroup] = useState<ErrorGroup>(), [question, setQuestion] = useState<Question>();
    return (
        <>
            <table class="broad errors">
                <thead><tr>
                    <th class="num">Jobs</th>{!of && <th>Type</th>}<th>Error</th><th>First</th><th>Last</th>
                    <th>Example</th>{may('admin') && <th><span class="hidden">Do</span></th>}
                </tr></thead>
                <tbody>{groups.map((g) => (
                    <tr key={`${g.type} ${g.error}`}>
                        <td class="num" data-label="Jobs"><a href={jobsOf(g)}
                            aria-label={`${count(g.count)} jobs of ${g.type}: ${sayError(g)}`}>{count(g.count)}</a></td>
                        {!of && <td class="name"><a href={`/types/${encodeURIComponent(g.type)}`}>{g.type}</a></td>}
                        <td class="wide error"><code class="mask" dir="auto">{sayError(g)}</code></td>
                        <td class="at" data-label="First" title={clock(g.first_at)}>{since(g.first_at, now)}</td>
                        <td class="at" data-label="Last" title={clock(g.last_at)}>{since(g.last_at, now)}</td>
                        <td data-label="Example"><a href={`/jobs/${g.example}`}>#{g.example}</a></td>
                        {may('admin') && <td class="does wide">
                            <button type="button" onClick={() => setGroup(g)}>Retry …</button>{' '}
                            <button type="button" onClick={() => setQuestion({ action: 'delete',
                                filter: { state: 'failed', type: g.type, error: g.error }, what: sayError(g) })}>
                                Delete</button></td>}
                    </tr>
                ))}</tbody>
            </table>
            {group && <AgainGroup group={group} close={() => { setGroup(undefined); again(); }} />}
            {question && <Ask question={question} close={() => setQuestion(undefined)} after={again} />}
        </>
    );
}

export function Errors(): JSX.Element {
    const { stats } = useShared();
    const type = usePlace().params.get('type') ?? '';
    const { found, why, again } = useErrors(type || undefined);
    const now = useNow();
    const types = stats?.types.filter((t) => t.counts.failed || t.type === type).map((t) => t.type) ?? [];
    return (
        <>
            <div class="title">
                <h1>Errors{type && <> of {type}</>}</h1>
                <div class="filters">
                    <select aria-label="Type" value={type} onChange={(e) => setParams({ type: e.currentTarget.value })}>
                        <option value="">all types</option>
                        {[...new Set([...types, ...(type ? [type] : [])])].map((t) => <option key={t} value={t}>{t}</option>)}
                    </select>
                </div>
            </div>
            {why && <p class="bad" role="alert">{why}</p>}
            {!found && !why && <p class="faint" aria-busy="true">…</p>}
            {found && !found.groups.length && <div class="empty"><p>Nothing has failed.</p></div>}
            {found && found.groups.length > 0 && <section class="panel" aria-label="Groups of errors">
                <GroupTable groups={found.groups} now={now} again={again} />
                <Limits found={found} />
            </section>}
        </>
    );
}
