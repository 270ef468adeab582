// log.tsx - a job's log, growing while it runs. Lines have no event of their own, so while the job
// is active the page asks for those behind the last one.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, query } from '../api';
import { clock, count } from '../fmt';
import { complain } from './toast';

interface Line { n: number; at: number; text: string }
const ASK_MS = 1000, PAGE = 1000, KEPT = 5000;

const readLines = async (id: number, after: number): Promise<Line[]> => (await get<{ lines: Line[] }>(
    `/v1/jobs/${id}/log` + query({ after: after || undefined, limit: PAGE }))).lines;

// All lines as a file, also those that are not shown any more.
async function download(id: number): Promise<void> {
    try {
        const all: string[] = [];
        for (let after = 0, page: Line[] = []; !after || page.length === PAGE; after = page[page.length - 1]?.n ?? -1) {
            page = await readLines(id, after);
            all.push(...page.map((l) => `${new Date(l.at).toISOString()} ${l.text}\n`));
        }
        const link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob(all, { type: 'text/plain' }));
        link.download = `job-${id}.log`;
        link.click();
        URL.revokeObjectURL(link.href);
    } catch (e) {
        complain(e);
    }
}

// The lines of a log as they come. `turn` changes when something has happened to the job.
function useLines(id: number, active: boolean, turn: number): Line[] {
    const [lines, setLines] = useState<Line[]>([]);
    const last = useRef(0), busy = useRef(false);
    const read = async (): Promise<void> => {
        if (busy.current)
            return;
        busy.current = true;
        try {
            for (;;) {
                const page = await readLines(id, last.current);
                const fresh = page.filter((l) => l.n > last.current);
                last.current = fresh[fresh.length - 1]?.n ?? last.current;
                if (fresh.length)
                    setLines((was) => [...was, ...fresh].slice(-KEPT));
                if (page.length < PAGE)
                    break;
            }
        } catch { /* the job itself shows what is wrong */ }
        busy.current = false;
    };
    useEffect(() => void read(), [turn]);
    useEffect(() => {
        const timer = active
            ? setInterval(() => { if (!document.hidden) void read(); }, ASK_MS) : undefined;
        return () => clearInterval(timer);
    }, [active]);
    return lines;
}

export function Log({ id, active, turn }: { id: number; active: boolean; turn: number }):
    JSX.Element | null {
    const lines = useLines(id, active, turn);
    const [words, setWords] = useState('');
    const [follow, setFollow] = useState(true);
    const list = useRef<HTMLOListElement>(null);
    const wanted = words.trim().toLowerCase();
    const shown = wanted ? lines.filter((l) => l.text.toLowerCase().includes(wanted)) : lines;
    useEffect(() => {
        if (follow && list.current)
            list.current.scrollTop = list.current.scrollHeight;
    }, [shown.length, follow]);
    return (
        <section class="panel" aria-label="Log">
            <div class="title">
                <h2>Log</h2>
                {lines.length > 0 && <div class="filters">
                    <input type="search" aria-label="Search the log" placeholder="Search the log" value={words}
                        onInput={(e) => setWords(e.currentTarget.value)} />
                    <label><input type="checkbox" checked={follow}
                        onChange={(e) => setFollow(e.currentTarget.checked)} /> follow</label>
                    <button type="button" onClick={() => void download(id)}>Download</button>
                </div>}
            </div>
            {shown.length ? <ol class="log" ref={list}>
                {shown.map((l) => <li key={l.n}><time>{clock(l.at)}</time><span dir="auto">{l.text}</span></li>)}
            </ol> : lines.length ? <p class="faint">None of {count(lines.length)} lines has “{words.trim()}”.</p>
                : <p class="faint">No lines yet. <code>weir_job_log()</code>, a line{' '}
                    <code>log TEXT</code> on file descriptor 3, or POST /v1/jobs/{id}/log add some.</p>}
        </section>
    );
}
