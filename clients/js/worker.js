// worker.js - workers by name: worker() registers a function, run() works until SIGTERM.
//
//     import { run, worker } from 'weir';
//
//     worker('mail', async (job) => send(job.data.to), { concurrency: 4 });
//
//     await run();            // the server of WEIR_STORE; or run('http://...', { token: 'wtk_...' })
import { Weir } from './weir.js';

const registered = [];

/** Register handler(job) for these types; run() calls it. Options are those of queue.work(): concurrency,
 *  leaseMs, worker. Answers the handler. */
export function worker(types, handler, options = {}) {
    if (typeof handler !== 'function')
        throw new TypeError('worker: the handler is missing; write worker(\'mail\', async (job) => ...)');
    registered.push({ types, handler, options });
    return handler;
}

/** Work with all registered handlers until SIGTERM or SIGINT arrives, or `signal` aborts. Handlers that run
 *  may finish. */
export async function run(url, { token, signal } = {}) {
    if (!registered.length)
        throw new Error('run: no worker is registered; call worker(\'mail\', handler) before');
    const queue = new Weir(url, { token }), stop = new AbortController();
    const end = () => stop.abort();
    const forget = onSignals(end);
    signal?.addEventListener('abort', end);
    if (signal?.aborted)
        end();
    try {
        await Promise.all(registered.map(({ types, handler, options }) =>
            queue.work(types, handler, { ...options, signal: stop.signal })
                .finally(end)));            // one that fails ends all
    } finally {
        signal?.removeEventListener('abort', end);
        forget();
    }
}

// Call end() when the process is to end; the answer undoes that. A browser has no such signals.
function onSignals(end) {
    const { Deno, process } = globalThis, names = ['SIGTERM', 'SIGINT'];
    const [add, remove] = Deno ? [Deno.addSignalListener, Deno.removeSignalListener]
        : process?.on ? [(name, fn) => process.on(name, fn), (name, fn) => process.off(name, fn)]
            : [() => {}, () => {}];
    names.forEach((name) => add(name, end));
    return () => names.forEach((name) => remove(name, end));
}
