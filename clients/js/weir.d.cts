// index.d.ts - the types of the package. clients/README.md is the guide.

/** Milliseconds, or a text such as "5s". */
export type Time = number | string;
export type State = 'inactive' | 'delayed' | 'active' | 'complete' | 'failed' | 'cancelled';
export type Priority = number | 'low' | 'normal' | 'medium' | 'high' | 'critical';

/** What went wrong: `status` of HTTP (0: no answer), `code` ("EINVAL"), `message`, `field`. */
export class WeirError extends Error {
    constructor(status: number, code: string | number, message: string, field?: string);
    status: number;
    code: string | number;
    field?: string;
}

/** Thrown by a handler to give the job back: it runs again after `delay`, and no attempt is used up. */
export class ReturnJob extends Error {
    constructor(delay?: Time);
    delay: Time;
}

/** Options of an add; docs/http.md has all of them. */
export interface AddOptions {
    priority?: Priority;
    attempts?: number;
    delay?: Time;
    run_at?: number | string;
    backoff?: unknown;
    ttl?: Time;
    deadline?: number | string;
    unique?: string;
    removeOnComplete?: boolean;
    search?: boolean | string[];
    values?: Record<string, unknown>;
    [more: string]: unknown;
}

export interface Spec extends AddOptions {
    type: string;
    data?: unknown;
}

export interface Added {
    id: number;
    state: State;
    existed: boolean;
    durability: string;
}

export interface ItemError {
    error: { code: string; message: string; field?: string };
}

/** Which jobs, as GET /v1/jobs takes them; `after` is `next` of the page before. */
export interface ListFilter {
    state?: State | State[] | string;
    type?: string;
    priority?: Priority;
    search?: string;
    error?: string;
    /** Milliseconds since 1970, or how long ago: '2h'. */
    since?: number | string;
    until?: number | string;
    sort?: 'id' | 'created' | 'started' | 'ended' | 'took' | 'attempts' | 'priority';
    order?: 'asc' | 'desc';
    limit?: number;
    after?: string | null;
    ids?: boolean;
}

/** A job as the server has it. */
export interface Job<Data = any, Result = any> {
    id: number;
    type: string;
    state: State;
    data: Data;
    result?: Result;
    error?: string;
    priority: number;
    progress: number;
    attempts: number;
    max_attempts: number;
    delivery: number;
    values?: Record<string, any>;
    workerId?: string;
    /** The W3C trace context of this execution. */
    traceparent?: string;
    created_at: number;
    history?: any[];
}

/** A job that a handler works on. */
export interface RunningJob<Data = any> extends Omit<Job<Data>, 'progress'> {
    /** Aborts when there is no point in going on: cancelled, removed, or given to another. */
    signal: AbortSignal;
    log(text: string): Promise<void>;
    /** Report how far it is: done of total. */
    progress(done: number, total: number, data?: unknown): Promise<void>;
    set(values: Record<string, unknown>): Promise<void>;
}

export interface Line {
    n: number;
    at: number;
    text: string;
}

export interface Event {
    event: string;
    id?: number;
    type?: string;
    [more: string]: any;
}

export interface Schedule {
    name: string;
    when: string;
    words: string;
    paused: boolean;
    next: number[];
    job: Spec;
    [more: string]: any;
}

export interface WorkOptions {
    /** Handlers at once; 1 by default. */
    concurrency?: number;
    leaseMs?: number;
    when?: string;
    /** The worker's name, as others see it. */
    worker?: string;
    signal?: AbortSignal;
}

export type Handler<Data = any> = (job: RunningJob<Data>) => unknown;

/** A queue on a weir server. */
export class Weir {
    /** Without arguments: the server of WEIR_STORE (else this machine's), and WEIR_TOKEN. */
    constructor(url?: string, options?: { token?: string; traceparent?: string });
    /** Any route of the API (docs/http.md): what it answers. */
    call(method: string, path: string, body?: unknown,
        options?: { headers?: Record<string, string>; again?: boolean; signal?: AbortSignal }): Promise<any>;
    add(type: string, data?: unknown, options?: AddOptions): Promise<Added>;
    addMany(specs: Spec[]): Promise<(Added | ItemError)[]>;
    get<Data = any, Result = any>(id: number): Promise<Job<Data, Result>>;
    list(filter?: ListFilter): Promise<{ jobs: Job[]; next: string | null }>;
    wait<Data = any, Result = any>(id: number, options?: { timeoutMs?: number; signal?: AbortSignal }):
        Promise<Job<Data, Result>>;
    set(id: number, values: Record<string, unknown>): Promise<void>;
    retry(id: number): Promise<any>;
    promote(id: number): Promise<any>;
    cancel(id: number): Promise<any>;
    /** Change a job, all of it or nothing. */
    update(id: number, changes: {
        priority?: Priority; data?: unknown; values?: Record<string, unknown>; delay?: Time; run_at?: number;
        state?: State; from?: State | State[];
    }): Promise<Job>;
    remove(id: number): Promise<void>;
    log(id: number, after?: number): Promise<Line[]>;
    stats(): Promise<any>;
    types(): Promise<any[]>;
    /** Workers take no more jobs of this type ('*', the default: of any), until resume(). */
    pause(type?: string): Promise<any>;
    resume(type?: string): Promise<any>;
    schedulePut(name: string, schedule: { when: string; job: Spec; [more: string]: unknown }): Promise<Schedule>;
    schedule(name: string): Promise<Schedule>;
    schedules(): AsyncGenerator<Schedule, void, void>;
    scheduleNext(when: string, more?: Record<string, unknown>): Promise<{ words: string; next: number[] }>;
    schedulePause(name: string): Promise<Schedule>;
    scheduleResume(name: string): Promise<Schedule>;
    scheduleFire(name: string): Promise<number>;
    scheduleBackfill(name: string, from: number, to?: number): Promise<number>;
    scheduleRemove(name: string): Promise<void>;
    workqueuePut(address: string, settings?: Record<string, unknown>): Promise<any>;
    workqueues(): Promise<any[]>;
    workqueueRemove(address: string): Promise<void>;
    events(filter?: { type?: string; id?: number; event?: string | string[]; signal?: AbortSignal }):
        AsyncGenerator<Event, void, void>;
    work<Data = any>(types: string | string[], handler: Handler<Data>, options?: WorkOptions): Promise<void>;
}

/** Register a handler of these types, for run(). Answers the handler. */
export function worker<Data = any>(types: string | string[], handler: Handler<Data>,
    options?: Omit<WorkOptions, 'signal'>): Handler<Data>;
/** Work with all registered handlers until SIGTERM or SIGINT arrives, or `signal` aborts. */
export function run(url?: string, options?: { token?: string; signal?: AbortSignal }): Promise<void>;

/** A job that waits for its outcome: the first of these calls is it. */
export interface ObservedJob<Data = any> extends Job<Data> {
    signal: AbortSignal;
    done(result?: unknown): Promise<void>;
    fail(error: unknown): Promise<void>;
    giveUp(error: unknown): Promise<void>;
    giveBack(delay?: Time): Promise<void>;
}

/** Jobs as an async iterator: at most `window` of them are without an outcome. */
export function observe<Data = any>(queue: Weir, types: string | string[],
    options?: { window?: number; leaseMs?: number; worker?: string; when?: string; signal?: AbortSignal }):
    AsyncGenerator<ObservedJob<Data>, void, void>;

// ---- the event bus ----

export type Failure = 'NO_HANDLERS' | 'TIMEOUT' | 'RECIPIENT_FAILURE' | 'ERROR';

/** A failure on the bus. A handler throws one to fail a request with a code. */
export class BusError extends WeirError {
    constructor(message: string, options?: { code?: number; failure?: Failure; error?: string });
    failure: Failure;
    error?: string;
}

export interface MessageOptions {
    headers?: Record<string, string>;
}
export interface RequestOptions extends MessageOptions {
    timeoutMs?: number;
}

/** A message, or a reply. */
export class Message<Body = any> {
    private constructor();
    address: string;
    body: Body;
    headers: Record<string, string>;
    /** False if it was published. */
    sent: boolean;
    readonly expectsReply: boolean;
    reply(body?: unknown, options?: MessageOptions): Promise<void>;
    request<Reply = any>(body?: unknown, options?: RequestOptions): Promise<Message<Reply>>;
    fail(code: number, text: string): Promise<void>;
}

/** Something that ends with close(). */
export interface Consumer {
    close(): Promise<void>;
}

/** The event bus of a server. */
export class Bus {
    /** A list: servers on one store, tried in turn. */
    constructor(url?: string | readonly string[], options?: { token?: string });
    close(): void;
    publish(address: string, body?: unknown, options?: MessageOptions): Promise<void>;
    send(address: string, body?: unknown, options?: MessageOptions): Promise<void>;
    request<Reply = any>(address: string, body?: unknown, options?: RequestOptions): Promise<Message<Reply>>;
    consume<Body = any>(address: string, handler: (message: Message<Body>) => unknown): Promise<Consumer>;
    service(name: string, actions: Record<string, (args: any, message: Message) => unknown>): Promise<Consumer>;
    call(name: string, action: string, args?: unknown, options?: RequestOptions): Promise<any>;
    process<Body = any>(address: string, handler: (message: Message<Body>) => unknown,
        options?: { concurrency?: number; processor?: string }): Promise<Consumer>;
}
