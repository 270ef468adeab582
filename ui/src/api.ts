// api.ts - calls to the server that this page came from. Job data stays text: what the server sent
// is kept beside the parsed form, so that no number loses a digit on its way to the screen.

export interface Problem { code: string; message: string; field?: string }

export class ApiError extends Error {
    constructor(readonly status: number, readonly problem: Problem) {
        super(problem.message);
    }
}

export type State = 'inactive' | 'delayed' | 'active' | 'complete' | 'failed' | 'cancelled';
export const STATES: State[] = ['inactive', 'active', 'delayed', 'failed', 'complete', 'cancelled'];
export type Counts = Record<State, number>;

// An entry of a job's history: docs/http.md.
export interface Past {
    n: number; at: number; state: State;
    event: 'failed_attempt' | 'failed' | 'ttl_exceeded' | 'stalled' | 'returned' | 'complete' | 'due' |
        'deadline' | 'retried' | 'promoted' | 'delayed' | 'cancelled' | 'set' | 'changed';
    delivery?: number; worker?: string; started_at?: number; error?: string;
    planned?: number; until?: number; by?: string; old_priority?: number; priority?: number; new_data?: boolean;
}

export interface Job {
    id: number; type: string; state: State; priority: number;
    data: unknown; result?: unknown; error?: string;
    progress: number; progress_data?: unknown;
    attempts: number; max_attempts: number; delivery: number; lost: number;
    delay?: number; ttl?: number; deadline?: number; unique?: string; workerId?: string;
    created_at: number; promote_at?: number; updated_at: number;
    started_at?: number; failed_at?: number; finished_at?: number; duration?: number;
    lease_until?: number;       // active, and it is known
    values?: Record<string, unknown>;
    backoff?: { type: string; delay: number; maxDelay?: number; jitter?: number };
    max_lost?: number; removeOnComplete?: boolean; search?: boolean; search_keys?: string; history?: Past[];
}

// What a job calls itself, as in Kue: the title in its data; '' when it has none.
export function titleOf(job: Job): string {
    const data = job.data as Record<string, unknown> | null;
    const own = data && typeof data === 'object' && !Array.isArray(data) ? data['title'] : undefined;
    return typeof own === 'string' ? own : '';
}

export interface Keep { age: number; count: number }
export interface TypeStats {
    type: string; paused: boolean; counts: Counts;
    completed: number; failures: number; work_time: number;
    last_taken_at: number; oldest_at: number;
    settings: { keep_complete: Keep; keep_failed: Keep; search: boolean };
}
export interface Stats {
    paused: boolean; counts: Counts; types: TypeStats[]; last_id: number;     // paused: all of it
}
export interface ServerInfo {
    version: string; title: string; store: string; api: string; started_at: number; now: number;
    demo?: string;              // only of a demo: what becomes of its jobs
    you: { name: string; roles: string[]; types: string[] | null; expires_at?: number };
}

const TOKEN = 'weir-token';
export const getToken = (): string => sessionStorage.getItem(TOKEN) ?? '';
export function setToken(token: string): void {
    if (token)
        sessionStorage.setItem(TOKEN, token);
    else
        sessionStorage.removeItem(TOKEN);
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
    const token = getToken();
    return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

// The answer as text. Network trouble is an ApiError of status 0.
export async function callText(method: string, path: string, body?: unknown, signal?: AbortSignal):
    Promise<string> {
    let answer: Response;
    try {
        answer = await fetch(path, {
            method, signal,
            headers: headers(body === undefined ? {} : { 'Content-Type': 'application/json' }),
            body: body === undefined ? undefined
                : typeof body === 'string' ? body : JSON.stringify(body),
        });
    } catch {
        throw new ApiError(0, { code: 'network', message: 'The server cannot be reached.' });
    }
    const text = await answer.text();
    if (answer.ok)
        return text;
    let problem: Problem = { code: String(answer.status), message: answer.statusText };
    try {
        problem = (JSON.parse(text) as { error: Problem }).error ?? problem;
    } catch { /* not ours: a proxy's */ }
    throw new ApiError(answer.status, problem);
}

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const text = await callText(method, path, body);
    return (text ? JSON.parse(text) : undefined) as T;
}
export const get = <T>(path: string): Promise<T> => call<T>('GET', path);

export function query(params: Record<string, string | number | boolean | undefined>): string {
    const parts = Object.entries(params)
        .filter(([k, v]) => v !== undefined && (v !== '' || k === 'error'))
        .map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`);
    return parts.length ? `?${parts.join('&')}` : '';
}
