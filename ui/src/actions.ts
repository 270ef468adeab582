// actions.ts - what can be done to jobs: to some by id, or to all that match a filter. A count comes
// first, and what cannot be taken back waits a few seconds in which it can: deleting, and cancelling
// what does not run yet. A job that runs is cancelled at once, since every second of it may count.
import { call, type State } from './api';
import { count } from './fmt';
import { complain, toast } from './parts/toast';

export type Action = 'retry' | 'promote' | 'cancel' | 'delete';
export interface Filter {
    state?: State; type?: string; priority?: string; search?: string; ids?: number[];
}
export interface BulkAnswer { matched: number; done: number; skipped: number; more: boolean }

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

const jobs = (n: number): string => n === 1 ? '1 job' : `${count(n)} jobs`;
const UNDO_MS = 5000;

function bulk(action: Action, filter: Filter, dryRun: boolean): Promise<BulkAnswer> {
    const all = !filter.state && !filter.type && !filter.priority && !filter.search &&
        !filter.ids;
    return call<BulkAnswer>('POST', '/v1/jobs/bulk', {
        action, filter, dry_run: dryRun, ...(all ? { all: true } : {}),
    });
}

export const matching = (action: Action, filter: Filter): Promise<BulkAnswer> =>
    bulk(action, filter, true);

// Carry it out; the server does so many in a call, so it may take several.
async function carryOut(action: Action, filter: Filter): Promise<void> {
    let done = 0, skipped = 0;
    try {
        for (let answer: BulkAnswer | undefined; !answer || (answer.more && answer.done);) {
            answer = await bulk(action, filter, false);
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
        (action === 'cancel' && filter.state && filter.state !== 'active');
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
