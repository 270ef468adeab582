// samples.ts - what the page has seen of the counts while it was open: how fast each type goes.
import type { Stats } from './api';

interface Sample { at: number; done: Map<string, number> }
const WINDOW_MS = 30000, MAX_SAMPLES = 4000;
const samples: Sample[] = [];

export function sample(stats: Stats, now: number): void {
    samples.push({
        at: now, done: new Map(stats.types.map((t) => [t.type, t.completed])),
    });
    if (samples.length > MAX_SAMPLES)
        samples.splice(0, MAX_SAMPLES / 2);
}

// Jobs of a type completed a second, recently; undefined: that is not known yet.
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
