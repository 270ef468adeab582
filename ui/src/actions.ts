// actions.ts - what can be done to jobs: to some by id, or to all that match a filter. A count comes
// first, and what cannot be taken back waits a few seconds in which it can: deleting, and cancelling
// what does not run yet. A job that runs is cancelled at once, since every second of it may count.
import { call, type State } from './api';
import { count } from './fmt';
import { complain, toast } from './parts/toast';

export type Action = 'retry' | 'promote' | 'cancel' | 'delete';
export interface Filter {
    state?: State | State[]; type?: string; priority?: string; since?: number; until?: number; search?: string;
    error?: string; ids?: number[];
}
// `next`: where a call for a group of errors goes on.
export interface BulkAnswer { matched: number; done: number; skipped: number; more: boolean; next?: string }

export const ACTION_LABEL: Record<Action, string> = {
    retry: 'Retry', promote: 'Run now', cancel: 'Cancel', delete: 'Delete',
};
const DOING: Record<Action, string> = {
    retry: 'Running again', promote: 'Promoting', cancel: 'Cancelling', delete: 'Deleting',
};
const DONE: Record<Action, string> = {
    retry: 'queued again', promote: 'promoted', cancel: 'cancelled', delete: 'deleted',
};

// From which states an action makes sense; it is offered there alone.
export const POSSIBLE: Record<Action, State[]> = {
    retry: ['failed', 'complete', 'cancelled'],
    promote: ['delayed'],
    cancel: ['inactive', 'delayed', 'active'],
    delete: ['inactive', 'delayed', 'active', 'failed', 'complete', 'cancelled'],
};
export const ACTIONS = Object.keys(POSSIBLE) as Action[];
export const possible = (state?: State): Action[] =>
    ACTIONS.filter((a) => !state || POSSIBLE[a].includes(state));
// To some of the jobs in these states; none: in all.
export const possibleIn = (states: State[]): Action[] =>
    ACTIONS.filter((a) => !states.length || states.some((s) => POSSIBLE[a].includes(s)));
const statesOf = ({ state }: Filter): State[] => !state ? [] : Array.isArray(state) ? state : [state];

const jobs = (n: number): string => n === 1 ? '1 job' : `${count(n)} jobs`;
const UNDO_MS = 5000;

// Of several states, it concerns those in which it can be done.
export function bulk(action: Action, filter: Filter, more: { dry_run?: boolean; limit?: number; after?: string }):
    Promise<BulkAnswer> {
    const all = Object.values(filter).every((v) => v === undefined || (Array.isArray(v) && !v.length));
    const states = statesOf(filter).filter((s) => POSSIBLE[action].includes(s));
    return call<BulkAnswer>('POST', '/v1/jobs/bulk', {
        action, filter: { ...filter, state: states.length ? states : undefined }, ...more, ...(all ? { all: true } : {}),
    });
}

// A group of errors is counted in several calls, but not without end: then there are more.
const MAX_CALLS = 10;
export async function matching(action: Action, filter: Filter): Promise<BulkAnswer> {
    const sum = await bulk(action, filter, { dry_run: true });
    for (let calls = 1; sum.next && calls < MAX_CALLS; calls++) {
        const part = await bulk(action, filter, { dry_run: true, after: sum.next });
        Object.assign(sum, { matched: sum.matched + part.matched, more: part.more, next: part.next });
    }
    return sum;
}

// Carry it out; the server does so many in a call, so it may take several.
async function carryOut(action: Action, filter: Filter): Promise<void> {
    let done = 0, skipped = 0;
    try {
        for (let answer: BulkAnswer | undefined; !answer || (answer.more && (answer.done || answer.next));) {
            answer = await bulk(action, filter, { after: answer?.next });
            done += answer.done;
            skipped += answer.skipped;
        }
        toast(`${jobs(done)} ${DONE[action]}` +
            (skipped ? `; ${jobs(skipped)} had moved on` : ''));
    } catch (e) {
        complain(e);
    }
}

// `after` is called when it has been done, or taken back.
export function act(action: Action, filter: Filter, n: number, after: () => void): void {
    const waits = action === 'delete' ||
        (action === 'cancel' && statesOf(filter).length > 0 && !statesOf(filter).includes('active'));
    if (!waits) {
        void carryOut(action, filter).then(after);
        return;
    }
    const timer = setTimeout(() => void carryOut(action, filter).then(after), UNDO_MS);
    toast(`${DOING[action]} ${jobs(n)} …`, {
        ms: UNDO_MS,
        undo: () => {
            clearTimeout(timer);
            toast(`Nothing was ${DONE[action]}`);
            after();
        },
    });
}
