// log.tsx - a job's log, growing while it runs. Lines have no event of their own, so while the job
// is active the page asks for those behind the last one.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, query } from '../api';
import { clock } from '../fmt';

interface Line { n: number; at: number; text: string }
const ASK_MS = 1000, PAGE = 1000, KEPT = 5000;

// `turn` changes when something has happened to the job.
export function Log({ id, active, turn }: { id: number; active: boolean; turn: number }):
    JSX.Element | null {
    const [lines, setLines] = useState<Line[]>([]);
    const last = useRef(0), busy = useRef(false);
    const read = async (): Promise<void> => {
        if (busy.current)
            return;
        busy.current = true;
        try {
            for (;;) {
                const answer = await get<{ lines: Line[] }>(
                    `/v1/jobs/${id}/log` + query({ after: last.current || undefined, limit: PAGE }));
                const fresh = answer.lines.filter((l) => l.n > last.current);
                last.current = fresh[fresh.length - 1]?.n ?? last.current;
                if (fresh.length)
                    setLines((was) => [...was, ...fresh].slice(-KEPT));
                if (answer.lines.length < PAGE)
                    break;
            }
        } catch { /* the job itself tells what is wrong */ }
        busy.current = false;
    };
    useEffect(() => void read(), [turn]);
    useEffect(() => {
        const timer = active
            ? setInterval(() => { if (!document.hidden) void read(); }, ASK_MS) : undefined;
        return () => clearInterval(timer);
    }, [active]);
    return (
        <section class="panel" aria-label="Log">
            <h2>Log</h2>
            {lines.length ? <ol class="log">
                {lines.map((l) => <li key={l.n}><time>{clock(l.at)}</time><span dir="auto">{l.text}</span></li>)}
            </ol> : <p class="faint">No lines yet. <code>weir_job_log()</code>, a line{' '}
                <code>log TEXT</code> on file descriptor 3, or POST /v1/jobs/{id}/log add some.</p>}
        </section>
    );
}
