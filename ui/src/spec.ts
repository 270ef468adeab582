// spec.ts - what is added as a job, as text in the fields of a form and as JSON. Data and values stay the
// text they are, so that no digit is lost.
import type { Job } from './api';
import { fieldOf, length, pretty, priority, readLength, timeOf } from './fmt';
import { jsonMember } from './parts/fields';

export interface Draft {
    type: string; data: string; values: string; priority: string; attempts: string;
    delay: string; run_at: string; backoff: string; ttl: string; deadline: string;
    unique: string; max_lost: string; search_keys: string;
    removeOnComplete: boolean; search: boolean;
}

export const NEW: Draft = {
    type: '', data: '{}', values: '', priority: 'normal', attempts: '1', delay: '', run_at: '', backoff: '',
    ttl: '', deadline: '', unique: '', max_lost: '', search_keys: '', removeOnComplete: false, search: false,
};

// "exponential:1s:60s:20%"
function backoffText(b: NonNullable<Job['backoff']>): string {
    const most = b.maxDelay || b.jitter ? `:${length(b.maxDelay ?? 0)}` : '';
    return `${b.type}:${length(b.delay)}${most}${b.jitter ? `:${b.jitter}%` : ''}`;
}

// A deadline that is over would let the new job fail at once: it is left out.
export const hasDeadline = (job: Job, now: number): boolean => !!job.deadline && job.deadline > now;

// Once more what that job was, with its data as the server sent it.
export function draftOf(job: Job, data: string, values: string | undefined, now: number): Draft {
    return {
        type: job.type, data: pretty(data), values: values ? pretty(values) : '',
        priority: priority(job.priority), attempts: String(job.max_attempts),
        delay: job.delay ? length(job.delay) : '', run_at: '',
        backoff: job.backoff ? backoffText(job.backoff) : '', ttl: job.ttl ? length(job.ttl) : '',
        deadline: hasDeadline(job, now) ? fieldOf(job.deadline) : '', unique: job.unique ?? '',
        max_lost: job.max_lost === undefined ? '' : String(job.max_lost),
        search_keys: job.search_keys ?? '', removeOnComplete: !!job.removeOnComplete, search: !!job.search,
    };
}

const number = (text: string): string | number | undefined =>
    /^-?\d+$/.test(text.trim()) ? Number(text) : text.trim() || undefined;

// The body of POST /v1/jobs.
export function bodyOf(d: Draft): string {
    const rest = JSON.stringify({
        type: d.type, priority: number(d.priority), attempts: number(d.attempts),
        delay: readLength(d.delay), run_at: timeOf(d.run_at), backoff: d.backoff.trim() || undefined,
        ttl: readLength(d.ttl), deadline: timeOf(d.deadline), unique: d.unique || undefined,
        max_lost: number(d.max_lost), search_keys: d.search_keys.trim() || undefined,
        removeOnComplete: d.removeOnComplete || undefined, search: d.search || undefined,
    });
    return rest.slice(0, -1) + (d.data.trim() ? jsonMember('data', d.data) : '') +
        (d.values.trim() ? jsonMember('values', d.values) : '') + '}';
}

// The same of a job that is there, with its data on one line.
export function bodyOfJob(job: Job, data: string, values: string | undefined, now: number): string {
    const draft = draftOf(job, data, values, now);
    return bodyOf({ ...draft, data, values: values ?? '' });
}
