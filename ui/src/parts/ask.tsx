// ask.tsx - "delete 12,345 jobs?", asked before it is done.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { act, ACTION_LABEL, matching, type Action, type BulkAnswer, type Filter } from '../actions';
import { count } from '../fmt';
import { Dialog } from './dialog';
import { complain } from './toast';

export interface Question { action: Action; filter: Filter; what: string }

export function Ask({ question, close, after }:
    { question: Question; close: () => void; after: () => void }): JSX.Element {
    const { action, filter, what } = question;
    const [found, setFound] = useState<BulkAnswer>();
    useEffect(() => {
        matching(action, filter).then(setFound, (e) => { complain(e); close(); });
    }, []);
    const label = ACTION_LABEL[action], n = found?.matched;
    // what must be looked for is counted up to the most that one call does
    const lookedFor = filter.search || filter.priority || filter.error !== undefined || filter.since || filter.until;
    const atLeast = lookedFor && found?.more ? 'at least ' : '';
    return (
        <Dialog title={`${label}: ${what}`} close={close}>
            <p>{n === undefined ? 'Counting …'
                : n === 0 ? 'No job matches.' : <>This concerns {atLeast}<b>{count(n)}</b>{' '}
                    {n === 1 ? 'job' : 'jobs'}.</>}</p>
            <p>
                <button type="button" class={action === 'delete' ? 'danger' : 'main'} disabled={!n}
                    onClick={() => { act(action, filter, n as number, after); close(); }}>
                    {label}{n ? ` ${count(n)}` : ''}
                </button>{' '}
                <button type="button" onClick={close} autofocus>Leave them</button>
            </p>
        </Dialog>
    );
}
