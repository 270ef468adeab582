// lease.tsx - how long a worker still has a job, unless it renews its lease. A renewal makes no
// event, so views that show leases read them again and again; whether a lease is renewed in time is
// judged by what was read of it, not by the clock of this page, which goes on in between.
import type { JSX } from 'preact';
import type { Job } from '../api';
import { ago, clock, span } from '../fmt';

export interface Lease {
    delivery: number; until: number;
    since: number;              // when it was first seen that it ends then
    renewed: boolean;           // and that it had another end before
    read: number;               // when it was last seen
}

const OFTEN_MS = 500, SELDOM_MS = 2000;

// What is known of a job's lease after one more look at it.
export function seeLease(job: Job, before: Lease | undefined, now: number): Lease | undefined {
    const until = job.lease_until, { delivery } = job;
    if (!until)
        return undefined;
    const known = before?.delivery === delivery;
    if (known && before.until === until)
        return { ...before, read: now };
    return { delivery, until, since: now, renewed: known, read: now };
}

// After how many ms to look again; undefined: there is none to look at.
export function lookAgain(leases: (Lease | undefined)[]): number | undefined {
    const left = leases.flatMap((l) => l ? [l.until - l.read] : []);
    return left.length ? Math.min(SELDOM_MS, Math.max(OFTEN_MS, Math.min(...left) / 3)) : undefined;
}

// Workers renew when a third of a lease is over. When two thirds are, something is wrong.
export function LeaseLeft({ lease, now }: { lease: Lease; now: number }): JSX.Element {
    const { until, since, read } = lease, at = clock(until);
    const ends = now < until ? `ends in ${span(until - now)}` : 'ends now';
    if (read >= until)
        return <span class="bad" title={at}>ended {ago(until, Math.max(now, read))}: the worker seems
            to be lost</span>;
    if ((until - read) * 3 < until - since)
        return <span class="bad" title={at}>not renewed, {ends}</span>;
    return <span title={at}>
        {lease.renewed && `renewed ${ago(since, Math.max(now, since))}, `}{ends}</span>;
}
