// workers.tsx - who works, on what, and when each worker was last seen.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, query, type Job } from '../api';
import { clock, since, span } from '../fmt';
import { follow } from '../live';
import { Command, weir } from '../parts/command';
import { LeaseLeft, lookAgain, seeLease, type Lease } from '../parts/lease';
import { Ring } from '../parts/ring';
import { serverNow, useNow } from '../store';
import type { Worker } from '../workers';

const AGAIN_MS = 500, SHOWN = 200;

type Leases = Map<number, Lease>;       // by the job's id
interface All { workers: Worker[]; active: Job[]; leases: Leases }

function seeLeases(jobs: Job[], before: Leases): Leases {
    const now = serverNow(), leases: Leases = new Map();
    for (const job of jobs) {
        const lease = seeLease(job, before.get(job.id), now);
        if (lease)
            leases.set(job.id, lease);
    }
    return leases;
}

// Active jobs name workers of other processes too, which this server has never talked to.
function useHeld(): All | undefined {
    const [held, setHeld] = useState<All>();
    useEffect(() => {
        let alive = true, leases: Leases = new Map();
        const following = follow(async () => {
            try {
                const [w, j] = await Promise.all([
                    get<{ workers: Worker[] }>('/v1/workers'),
                    get<{ jobs: Job[] }>('/v1/jobs' + query({ state: 'active', limit: SHOWN })),
                ]);
                leases = seeLeases(j.jobs, leases);
                if (alive)
                    setHeld({ workers: w.workers, active: j.jobs, leases });
            } catch { /* the frame shows trouble */ }
            return lookAgain([...leases.values()]);
        }, AGAIN_MS);
        return () => { alive = false; following.stop(); };
    }, []);
    return held;
}

function Held({ jobs, leases, now }: { jobs: Job[]; leases: Leases; now: number }): JSX.Element {
    return (
        <ul class="held">
            {jobs.map((j) => {
                const lease = leases.get(j.id);
                return (
                    <li key={j.id}><Ring percent={j.progress} size={30} />
                        <a href={`/jobs/${j.id}`}>#{j.id} {j.type}</a>
                        {j.started_at && <span class="faint"> for {span(Math.max(0, now - j.started_at))}</span>}
                        {lease && <span class="faint">lease <LeaseLeft lease={lease} now={now} /></span>}
                    </li>
                );
            })}
        </ul>
    );
}

export function Workers(): JSX.Element {
    const held = useHeld();
    const now = useNow();
    if (!held)
        return <p class="faint" aria-busy="true">…</p>;
    const names = [...new Set([...held.workers.map((w) => w.name),
        ...held.active.map((j) => j.workerId ?? '?')])].sort();
    return (
        <>
            <h1>Workers</h1>
            {!names.length && <div class="empty">
                <p>No worker has been seen. Any program can be one:</p>
                <Command text={weir('work mail --exec ./send-mail -j 4')} />
            </div>}
            {names.length > 0 && <section class="panel"><table class="stack">
                <thead><tr><th>Worker</th><th>Takes</th><th>Has</th><th>Last seen</th></tr></thead>
                <tbody>{names.map((name) => {
                    const w = held.workers.find((each) => each.name === name);
                    const jobs = held.active.filter((j) => (j.workerId ?? '?') === name);
                    return (
                        <tr key={name}>
                            <td class="name">{name}</td>
                            <td data-label="Takes" class="wide takes">{w?.types.join(', ') ??
                                [...new Set(jobs.map((j) => j.type))].join(', ')}</td>
                            <td data-label="Has" class="wide">{jobs.length ? <Held jobs={jobs} leases={held.leases} now={now} />
                                : <span class="faint">{w?.waiting ? 'waits for jobs' : 'nothing'}</span>}</td>
                            <td data-label="Last seen" class="wide at">{w?.last_seen_at ? <time title={clock(w.last_seen_at)}>{since(w.last_seen_at, now)}</time>
                                : <span class="faint">works in another process</span>}</td>
                        </tr>
                    );
                })}</tbody>
            </table></section>}
        </>
    );
}
