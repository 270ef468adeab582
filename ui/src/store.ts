// store.ts - what the whole page knows: the server, the counts, whether the line is up. Views read
// it with useShared(); it is kept fresh by events, not by polling.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, callText, getToken, setToken, type ServerInfo, type Stats } from './api';
import { follow, startLive, type Following } from './live';
import { sample } from './samples';

export interface Shared {
    server?: ServerInfo;
    stats?: Stats;
    up: boolean;                // the stream of events is there
    skew: number;               // the server's clock less this one, ms
    login: boolean;             // a token is wanted
    loginError: string;
    trouble?: Trouble;          // the store or the server does not answer
}
export interface Trouble { server: boolean; why: string }   // server: it is that which is away

let shared: Shared = { up: false, skew: 0, login: false, loginError: '' };
const watchers = new Set<() => void>();

export const peek = (): Shared => shared;
function set(change: Partial<Shared>): void {
    shared = { ...shared, ...change };
    for (const fn of [...watchers])
        fn();
}

export function useShared(): Shared {
    const [, turn] = useState(0);
    useEffect(() => {
        const fn = (): void => turn((n) => n + 1);
        watchers.add(fn);
        return () => void watchers.delete(fn);
    }, []);
    return shared;
}

// What the tab says: what is shown, and the name of the server.
export function useTitle(what: string): void {
    const name = useShared().server?.title || 'weir';
    useEffect(() => {
        if (what)
            document.title = `${what} · ${name}`;
    }, [what, name]);
}

export const serverNow = (): number => Date.now() + shared.skew;
export const may = (role: string): boolean =>
    !!shared.server?.you.roles.some((r) => r === role || r === 'admin');

// The audit log has actions on jobs of all types.
export const mayAudit = (): boolean => mayAll();
export const mayAll = (): boolean => may('admin') && !shared.server?.you.types;

// The types of the token; null: all types.
export const ownTypes = (): string[] | null => shared.server?.you.types ?? null;

// A clock that moves the ages on the screen.
export function useNow(everyMs = 1000): number {
    const [now, turn] = useState(serverNow());
    useEffect(() => {
        const timer = setInterval(() => turn(serverNow()), everyMs);
        return () => clearInterval(timer);
    }, [everyMs]);
    return now;
}

const AGAIN_MS = 400, RETRY_MS = 1000, TIMEOUT_MS = 6000, PULSE_MS = 5000;

// A call that must be answered soon: whoever takes longer is as good as away.
async function ask<T>(path: string): Promise<T> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), TIMEOUT_MS);
    try {
        return JSON.parse(await callText('GET', path, undefined, limit.signal)) as T;
    } catch (e) {
        if (limit.signal.aborted)
            throw new ApiError(503, { code: 'EUNAVAIL', message: 'There was no answer in time.' });
        throw e;
    } finally {
        clearTimeout(timer);
    }
}

async function readStats(): Promise<void> {
    try {
        const stats = await ask<Stats>('/v1/stats');
        sample(stats, serverNow());
        set({ stats, trouble: undefined });
    } catch (e) {
        failed(e);
    }
}

// Something has changed: read the counts, soon.
let counts: Following | undefined;
export const refresh = (): void => counts?.again();

// A store that is away makes no events, so that this is looked for now and then.
let pulse = 0, healing = 0;
function failed(e: unknown): void {
    if (e instanceof ApiError && e.status === 401) {
        set({ login: true, loginError: getToken() ? e.problem.message : '' });
        return;
    }
    const server = e instanceof ApiError && e.status === 0;
    set({ trouble: { server, why: e instanceof Error ? e.message : String(e) } });
    clearInterval(pulse);
    clearTimeout(healing);
    healing = window.setTimeout(() => void begin(), RETRY_MS);
}

// Read everything anew: at the start, with another token, and after trouble.
let beginning = false;
export async function begin(): Promise<void> {
    if (beginning)
        return;
    beginning = true;
    try {
        const server = await ask<ServerInfo>('/v1/server');
        set({ server, skew: server.now - Date.now(), login: false, loginError: '' });
        const stats = await ask<Stats>('/v1/stats');
        sample(stats, serverNow());
        set({ stats, trouble: undefined });
        counts ??= follow(readStats, AGAIN_MS);
        clearInterval(pulse);
        pulse = window.setInterval(() => document.hidden || refresh(), PULSE_MS);
        startLive((up) => {
            set({ up });
            if (!up)
                refresh();
        });
    } catch (e) {
        failed(e);
    }
    beginning = false;
}

export function login(token: string): void {
    setToken(token.trim());
    void begin();
}

export function logout(): void {
    setToken('');
    location.reload();
}
