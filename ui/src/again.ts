// again.ts - retry the jobs of a group of errors and see what becomes of them: so many at a time, the next when
// those have ended, until all are, it is stopped, or they fail again.
import { bulk } from './actions';
import { ApiError, get, query, type Job } from './api';
import type { ErrorGroup } from './errors';
import { listen, type WeirEvent } from './live';

// When so many have failed again, and more than were completed, the others are left.
const FAILED_AGAIN = 5;
// Events may be missing: now and then a few of those that run longest are looked at.
const LOOK_MS = 3000, LOOKED_AT = 50;

export type Outcome = 'complete' | 'failed' | 'other';
export interface Tally { retried: number; complete: number; failed: number; other: number; queued: number }

// A failed attempt is a failure, also when another attempt follows.
const OF_EVENT: Record<string, Outcome> = {
    complete: 'complete', failed: 'failed', failed_attempt: 'failed', cancelled: 'other', remove: 'other',
};

async function readOutcome(id: number): Promise<Outcome | undefined> {
    try {
        const job = await get<Job>(`/v1/jobs/${id}`);
        return job.state === 'complete' ? 'complete' : job.state === 'failed' ? 'failed'
            : job.state === 'cancelled' ? 'other' : job.state === 'delayed' && job.attempts ? 'failed' : undefined;
    } catch (e) {       // a job that is removed when it is complete is gone
        return e instanceof ApiError && e.status === 404 ? 'other' : undefined;
    }
}

// Watches jobs that were retried: `seen` is called once for each, with what became of it.
export class Watch {
    private ids = new Set<number>();
    private off: () => void;
    private timer: number;
    private wake: () => void = () => {};

    constructor(private seen: (outcome: Outcome, id: number) => void) {
        this.off = listen((e) => this.receive(e));
        this.timer = window.setInterval(() => void this.look(), LOOK_MS);
    }
    get size(): number { return this.ids.size; }
    add(ids: number[]): void { ids.forEach((id) => this.ids.add(id)); }
    close(): void {
        this.off();
        clearInterval(this.timer);
        this.ids.clear();
        this.wake();
    }
    // Until something has been seen, or the watch is closed.
    next(): Promise<void> { return new Promise((r) => { this.wake = r; }); }
    notify(): void { this.wake(); }

    private end(id: number, outcome?: Outcome): void {
        if (!outcome || !this.ids.delete(id))
            return;
        this.seen(outcome, id);
        this.wake();
    }
    private receive(e: WeirEvent | 'lost'): void {
        if (e === 'lost')
            void this.look();
        else if (Object.hasOwn(OF_EVENT, e.event))
            this.end(e.id, OF_EVENT[e.event]);
    }
    private async look(): Promise<void> {
        await Promise.all([...this.ids].slice(0, LOOKED_AT).map(async (id) => this.end(id, await readOutcome(id))));
    }
}

const retry = (ids: number[]): Promise<unknown> => bulk('retry', { ids, state: 'failed' }, {});

// What became of one job, once it has been retried; undefined: the watch was closed first.
export async function retryOne(id: number, watch: (w: Watch) => void): Promise<Outcome | undefined> {
    let outcome: Outcome | undefined;
    const one = new Watch((seen) => { outcome = seen; });
    watch(one);
    try {
        one.add([id]);
        await retry([id]);
        while (one.size)
            await one.next();
    } finally {
        one.close();
    }
    return outcome;
}

// The jobs of a group, from the one that failed last, `n` at a time.
class Pages {
    private after: string | null = '';
    constructor(private group: ErrorGroup) {}
    async next(n: number): Promise<number[]> {
        let ids: number[] = [];
        while (!ids.length && this.after !== null) {
            const page: { jobs: Job[]; next: string | null } = await get('/v1/jobs' + query({ state: 'failed',
                type: this.group.type, error: this.group.error, order: 'desc', limit: n, after: this.after }));
            ids = page.jobs.map((j) => j.id);
            this.after = page.next;
        }
        return ids;
    }
}

export const failAgain = (t: Tally): boolean => t.failed >= FAILED_AGAIN && t.failed > t.complete;

// At most `most` of them are queued or run at any time. `show` is called when the tally has changed. Answers in
// words how it ended.
export class Rest {
    readonly tally: Tally = { retried: 0, complete: 0, failed: 0, other: 0, queued: 0 };
    private stopped = false;
    private watch: Watch;

    constructor(private group: ErrorGroup, private most: number, private show: () => void) {
        this.watch = new Watch((outcome) => { this.tally[outcome]++; this.changed(); });
    }
    stop(): void {
        this.stopped = true;
        this.watch.notify();
    }
    private changed(): void {
        this.tally.queued = this.watch.size;
        this.show();
    }
    private over(): string {
        return failAgain(this.tally) ? 'Stopped, since they fail again.' : this.stopped ? 'Stopped.' : '';
    }
    // Until no more than `n` are queued or run, or it is over.
    private async until(n: number): Promise<void> {
        while (this.watch.size > n && !this.over())
            await this.watch.next();
    }
    async run(): Promise<string> {
        const pages = new Pages(this.group);
        try {
            for (;;) {
                const ids = this.over() ? [] : await pages.next(this.most - this.watch.size);
                if (!ids.length || this.over())
                    break;
                this.watch.add(ids);
                await retry(ids);
                this.tally.retried += ids.length;
                this.changed();
                await this.until(Math.floor(this.most / 2));
            }
            await this.until(0);
        } finally {
            this.watch.close();
        }
        return this.over() || 'All of them were retried.';
    }
}
