// samples.ts - what the page has seen of the counts while it was open: how fast each type goes, and
// how long the oldest job has waited. The server's history has no types and no ages.
import type { Stats } from './api';

interface Sample { at: number; done: Map<string, number>; oldest: number }
const WINDOW_MS = 30000, MAX_SAMPLES = 4000;
const samples: Sample[] = [];

const oldestAge = (stats: Stats, now: number): number =>
    Math.max(0, ...stats.types.filter((t) => t.oldest_at && !t.paused).map((t) => now - t.oldest_at));

export function sample(stats: Stats, now: number): void {
    samples.push({
        at: now, done: new Map(stats.types.map((t) => [t.type, t.completed])),
        oldest: oldestAge(stats, now),
    });
    if (samples.length > MAX_SAMPLES)
        samples.splice(0, MAX_SAMPLES / 2);
}

// Jobs of a type completed a second, of late; undefined: that is not known yet.
export function rateOf(type: string, now: number): number | undefined {
    let from = samples.length - 1;
    while (from > 0 && (samples[from] as Sample).at > now - WINDOW_MS)
        from--;
    const first = samples[from], last = samples[samples.length - 1];
    if (!first || !last || now - first.at < 1000)
        return undefined;
    return Math.max(0, (last.done.get(type) ?? 0) - (first.done.get(type) ?? 0)) /
        ((now - first.at) / 1000);
}

// The age of the oldest waiting job at each of these times. While a job waits that line goes up,
// also where the page was not open yet: it has been waiting since then.
export function oldestAt(times: number[], step: number, stats: Stats): (number | null)[] {
    const line: (number | null)[] = times.map((at) => oldestAge(stats, at + step) || null);
    for (const s of samples) {
        const i = Math.floor((s.at - (times[0] ?? 0)) / step);
        if (i >= 0 && i < line.length)
            line[i] = Math.max(line[i] ?? 0, s.oldest);
    }
    return line;
}
