// list.ts - jobs as a list shows them: which ones are wanted, page by page, kept up with events.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, callText, query, STATES, type Job, type State } from './api';
import { elements, memberText, priority, priorityNumber } from './fmt';
import { follow, type Following } from './live';
import { complain } from './parts/toast';
import { usePlace } from './router';

const PAGE = 50, AGAIN_MS = 400, MAX_PAGE = 1000, MAX_LOOKED = 1000;
const LAST_ID = '9223372036854775807';

export interface Wanted { state?: State; type: string; words: string; order: string; priority: string }
export interface Listed extends Job { text: string }    // its data, as the server sent it
// `looked`: so many were looked at, where not all were and others may fit.
export interface Page { jobs: Listed[]; next: string | null; looked?: number }

// "type:mail state:failed user:42 smtp" in its parts; what is no filter is looked for as words.
export function readQuery(text: string): { type: string; state?: State; words: string } {
    let type = '', state: State | undefined;
    const words: string[] = [];
    for (const word of text.split(/\s+/).filter(Boolean)) {
        const [, name, value] = /^(type|state):(.+)$/.exec(word) ?? [];
        if (name === 'type')
            type = value as string;
        else if (name === 'state' && STATES.includes(value as State))
            state = value as State;
        else
            words.push(word.replace(/:/g, ' '));
    }
    return { type, state, words: words.join(' ') };
}

export function useWanted(state?: State): Wanted {
    const { params } = usePlace();
    const text = params.get('q') ?? '', type = params.get('type') ?? '';
    const order = params.get('order') ?? '', prio = params.get('priority') ?? '';
    return useMemo(() => {
        const q = readQuery(text);
        const shown = state ?? q.state;
        const finished = !shown || shown === 'failed' || shown === 'complete' || shown === 'cancelled';
        return {
            state: shown, type: type || q.type, words: q.words, priority: prio,
            order: order || (finished ? 'desc' : 'asc'),
        };
    }, [text, type, order, prio, state]);
}

// ---- reading ----

async function readPage(wanted: Wanted, limit: number, after: string | null): Promise<Page> {
    const text = await callText('GET', '/v1/jobs' + query({
        state: wanted.state, type: wanted.type, search: wanted.words, order: wanted.order, limit,
        after: after ?? undefined,
    }));
    return {
        jobs: elements(memberText(text, 'jobs') ?? '[]').map((job) =>
            ({ ...JSON.parse(job) as Job, text: memberText(job, 'data') ?? '' })),
        next: JSON.parse(memberText(text, 'next') ?? 'null') as string | null,
    };
}

// Jobs of one priority. Those that wait are in the order of it, so that they are all in one place;
// in other lists they are looked for, among so many.
async function loadPriority(wanted: Wanted, n: number, after: string | null): Promise<Page> {
    const p = priorityNumber(wanted.priority), up = wanted.order === 'asc';
    const ordered = wanted.state === 'inactive' && !wanted.words;
    const jobs: Listed[] = [];
    let next = after ?? (ordered ? (up ? `${p - 1}.${LAST_ID}` : `${p + 1}.0`) : null), looked = 0;
    do {
        const page = await readPage(wanted, ordered ? Math.max(PAGE, n - jobs.length) : MAX_PAGE, next);
        jobs.push(...page.jobs.filter((j) => priority(j.priority) === wanted.priority));
        looked += page.jobs.length;
        next = page.next;
        if (ordered && page.jobs.some((j) => up ? j.priority > p : j.priority < p))
            next = null;
    } while (next && jobs.length < n && looked < MAX_LOOKED);
    return { jobs, next, looked: next && !ordered ? looked : undefined };
}

// At least `n` jobs, or all there are; at most a server's page.
const load = (wanted: Wanted, n: number, after: string | null): Promise<Page> =>
    wanted.priority ? loadPriority(wanted, n, after) : readPage(wanted, n, after);

const size = (shown: number): number => Math.min(MAX_PAGE, Math.max(PAGE, shown));

function join(first: Page, then: Page): Page {
    const seen = new Set(first.jobs.map((j) => j.id));
    return {
        jobs: [...first.jobs, ...then.jobs.filter((j) => !seen.has(j.id))], next: then.next,
        looked: then.looked && then.looked + (first.looked ?? 0),
    };
}

// The list as it is now; `more` loads the next page.
export function useList(wanted: Wanted): { page?: Page; again: () => void; more: () => void } {
    const [page, setPage] = useState<Page>();
    const reader = useRef<Following & { more: () => void } | undefined>(undefined);
    useEffect(() => {
        let shown: Page = { jobs: [], next: null }, longer = false, alive = true;
        const read = async (): Promise<void> => {
            const grow = longer;
            longer = false;
            try {
                if (grow)
                    shown = join(shown, await load(wanted, PAGE, shown.next));
                else {
                    const n = shown.jobs.length, fresh = await load(wanted, size(n), null);
                    // what is further down than one call reaches stays as it was
                    shown = n > MAX_PAGE && fresh.next
                        ? join(fresh, { ...shown, jobs: shown.jobs.slice(MAX_PAGE) }) : fresh;
                }
                if (alive)
                    setPage(shown);
            } catch (e) {           // the frame tells of a server or a store that is away
                if (alive && e instanceof ApiError && e.status >= 400 && e.status < 500)
                    complain(e);
            }
        };
        setPage(undefined);
        const following = follow(read, AGAIN_MS, (e) => !wanted.type || e.type === wanted.type);
        reader.current = {
            ...following,
            more: () => {
                if (!longer && shown.next) {
                    longer = true;
                    following.again();
                }
            },
        };
        return () => { alive = false; following.stop(); };
    }, [wanted]);
    return {
        page,
        again: () => reader.current?.again(),
        more: () => reader.current?.more(),
    };
}
