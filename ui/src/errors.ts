// errors.ts - failed jobs in groups of the same error, as the server makes them.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, query } from './api';
import { follow, type Following } from './live';

export interface ErrorGroup {
    type: string; error: string; count: number; first_at: number; last_at: number; example: number;
}
export interface ErrorGroups { groups: ErrorGroup[]; looked: number; others: number; more: boolean }

// The server looks at thousands of jobs for it.
const EVERY_MS = 5000;

export const readErrors = (type?: string): Promise<ErrorGroups> =>
    get<ErrorGroups>('/v1/errors' + query({ type }));

export const sayError = (g: ErrorGroup): string => g.error || '(no text)';
export const jobsOf = (g: ErrorGroup): string =>
    `/failed?type=${encodeURIComponent(g.type)}&error=${encodeURIComponent(g.error)}`;

export function useErrors(type?: string): { found?: ErrorGroups; why: string; again: () => void } {
    const [found, setFound] = useState<ErrorGroups>();
    const [why, setWhy] = useState('');
    const following = useRef<Following | undefined>(undefined);
    useEffect(() => {
        let alive = true;
        setFound(undefined);
        following.current = follow(async () => {
            try {
                const fresh = await readErrors(type);
                if (alive) {
                    setFound(fresh);
                    setWhy('');
                }
            } catch (e) {           // the frame shows that a server or a store is away
                if (alive && e instanceof ApiError && e.status >= 400 && e.status < 500)
                    setWhy(e.message);
            }
        }, EVERY_MS, (e) => (e.event === 'failed' || e.event === 'remove') && (!type || e.type === type));
        return () => { alive = false; following.current?.stop(); };
    }, [type]);
    return { found, why, again: () => following.current?.again() };
}
