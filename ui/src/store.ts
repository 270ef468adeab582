// store.ts - what the whole page knows: the server, the counts, whether the line is up. Views read
// it with useShared(); it is kept fresh by events, not by polling.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, get, getToken, setToken, type ServerInfo, type Stats } from './api';
import { listen, startLive } from './live';

export interface Shared {
    server?: ServerInfo;
    stats?: Stats;
    up: boolean;                // the stream of events is there
    skew: number;               // the server's clock less this one, ms
    login: boolean;             // a token is wanted
    loginError: string;
    trouble: string;            // why the store or the server does not answer; '' when it does
}

let shared: Shared = { up: false, skew: 0, login: false, loginError: '', trouble: '' };
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

export const serverNow = (): number => Date.now() + shared.skew;
export const may = (role: string): boolean =>
    !!shared.server?.you.roles.some((r) => r === role || r === 'admin');

// A clock that moves the ages on the screen.
export function useNow(everyMs = 1000): number {
    const [now, turn] = useState(serverNow());
    useEffect(() => {
        const timer = setInterval(() => turn(serverNow()), everyMs);
        return () => clearInterval(timer);
    }, [everyMs]);
    return now;
}

const AGAIN_MS = 400, RETRY_MS = 2000;
let pending = 0, asking = false, more = false;

// Something has changed: read the counts, soon, and not more often than needed.
export function refresh(): void {
    if (asking)
        more = true;
    else if (!pending && !document.hidden)
        pending = window.setTimeout(() => void readStats(), AGAIN_MS);
}
document.addEventListener('visibilitychange', () => {
    if (!document.hidden)
        refresh();
});

async function readStats(): Promise<void> {
    pending = 0;
    asking = true;
    more = false;
    try {
        set({ stats: await get<Stats>('/v1/stats'), trouble: '' });
    } catch (e) {
        failed(e);
    }
    asking = false;
    if (more)
        refresh();
}

function failed(e: unknown): void {
    if (e instanceof ApiError && e.status === 401) {
        set({ login: true, loginError: getToken() ? e.problem.message : '' });
        return;
    }
    set({ trouble: e instanceof Error ? e.message : String(e) });
    window.setTimeout(() => void begin(), RETRY_MS);
}

// Read everything anew: at the start, with another token, and after trouble.
let beginning = false;
export async function begin(): Promise<void> {
    if (beginning)
        return;
    beginning = true;
    try {
        const server = await get<ServerInfo>('/v1/server');
        document.title = server.title || 'weir';
        set({ server, skew: server.now - Date.now(), login: false, loginError: '' });
        set({ stats: await get<Stats>('/v1/stats'), trouble: '' });
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

listen(() => refresh());
