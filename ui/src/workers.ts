// workers.ts - who works, as the server knows it.
import { useEffect, useState } from 'preact/hooks';
import { get, type Stats } from './api';

export interface Worker {
    name: string; types: string[]; waiting: boolean;
    first_seen_at?: number; last_seen_at?: number;      // if the server has seen it
    jobs: { id: number; type: string; started_at: number; lease_until?: number }[];
}

export const UNSEEN_MS = 60000;

export function useWorkers(stats?: Stats): Worker[] | undefined {
    const [workers, setWorkers] = useState<Worker[]>();
    useEffect(() => {
        get<{ workers: Worker[] }>('/v1/workers').then((a) => setWorkers(a.workers), () => {});
    }, [stats]);
    return workers;
}

// It waits for jobs, has some, or was seen recently.
export const isThere = (w: Worker, now: number): boolean =>
    w.waiting || w.jobs.length > 0 || now - (w.last_seen_at ?? 0) < UNSEEN_MS;
