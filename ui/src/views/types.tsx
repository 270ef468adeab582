// types.tsx - the types: pause them, and say how long their finished jobs are kept.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, type Keep, type TypeStats } from '../api';
import { count, length, readLength } from '../fmt';
import { Dialog } from '../parts/dialog';
import { toast } from '../parts/toast';
import { may, refresh, useNow, useShared } from '../store';
import { useWorkers } from '../workers';
import { Paused, setPaused, TypeTable } from './overview';

export function keepWords(k: Keep): string {
    const parts = [k.age ? length(k.age) : '', k.count ? `${count(k.count)} jobs` : ''].filter(Boolean);
    return parts.length ? parts.join(', at most ') : 'everything';
}

export function Editor({ t, close }: { t: TypeStats; close: () => void }): JSX.Element {
    const keep = (k: Keep): { age: string; count: string } =>
        ({ age: k.age ? length(k.age) : '', count: k.count ? String(k.count) : '' });
    const [complete, setComplete] = useState(keep(t.settings.keep_complete));
    const [failed, setFailed] = useState(keep(t.settings.keep_failed));
    const [search, setSearch] = useState(t.settings.search);
    const [why, setWhy] = useState('');
    // the days of old, or milliseconds? A number alone is not guessed at
    const number = (k: { age: string; count: string }): { age: string | number; count: number } => {
        if (/^\d*[1-9]\d*$/.test(k.age.trim()))
            throw new Error(`${k.age.trim()} what? Write a length of time like 30m, 12h or 7d.`);
        return { age: readLength(k.age) ?? 0, count: Number(k.count || 0) };
    };
    const save = async (e: Event): Promise<void> => {
        e.preventDefault();
        try {
            await call('PATCH', `/v1/types/${encodeURIComponent(t.type)}`, {
                keep_complete: number(complete), keep_failed: number(failed), search,
            });
            toast(`The settings of ${t.type} were changed`);
            refresh();
            close();
        } catch (problem) {
            setWhy((problem as Error).message);
        }
    };
    const field = (label: string, k: { age: string; count: string },
        set: (k: { age: string; count: string }) => void): JSX.Element => (
        <fieldset>
            <legend>{label}</legend>
            <label>for <input value={k.age} placeholder="ever (1h, 7d)" spellcheck={false}
                onInput={(e) => set({ ...k, age: e.currentTarget.value })} /></label>
            <label>at most <input value={k.count} inputMode="numeric" placeholder="any number of"
                onInput={(e) => set({ ...k, count: e.currentTarget.value })} /> jobs</label>
        </fieldset>
    );
    return (
        <Dialog title={`Settings of ${t.type}`} close={close}>
            <form class="settings" onSubmit={(e) => void save(e)}>
                {field('Keep complete jobs', complete, setComplete)}
                {field('Keep failed and cancelled jobs', failed, setFailed)}
                <label><input type="checkbox" checked={search}
                    onChange={(e) => setSearch(e.currentTarget.checked)} /> new jobs can be searched</label>
                <p class="faint">Jobs beyond these limits are removed immediately.</p>
                {why && <p class="bad" role="alert">{why}</p>}
                <p><button type="submit" class="main">Save</button>{' '}
                    <button type="button" onClick={close}>Leave it</button></p>
            </form>
        </Dialog>
    );
}

export function Types(): JSX.Element {
    const { stats } = useShared();
    const [editing, setEditing] = useState<TypeStats>();
    const now = useNow(), workers = useWorkers(stats);
    if (!stats)
        return <p class="faint" aria-busy="true">…</p>;
    return (
        <>
            <div class="title"><h1>Types</h1>
                {may('admin') && !stats.paused && <div class="filters">
                    <button type="button" onClick={() => void setPaused('*', true)}>Pause all</button>
                </div>}
            </div>
            <Paused stats={stats} />
            <section class="panel" aria-label="Types">
                {stats.types.length ? <TypeTable types={stats.types} workers={workers} now={now} />
                    : <p class="faint">A type is known once a job of it was added.</p>}
            </section>
            <section class="panel" aria-label="Retention">
                <h2>Retention</h2>
                <table class="stack">
                    <thead><tr><th>Type</th><th>Complete</th><th>Failed, cancelled</th><th>Search</th><th><span class="hidden">Change</span></th></tr></thead>
                    <tbody>{stats.types.map((t) => (
                        <tr key={t.type}>
                            <td class="name">{t.type}</td>
                            <td data-label="Complete">{keepWords(t.settings.keep_complete)}</td>
                            <td data-label="Failed, cancelled">{keepWords(t.settings.keep_failed)}</td>
                            <td data-label="Search">{t.settings.search ? 'yes' : 'no'}</td>
                            <td class="do">{may('admin') && <button type="button" onClick={() => setEditing(t)}
                                aria-label={`Change the retention of ${t.type}`}>Change</button>}</td>
                        </tr>
                    ))}</tbody>
                </table>
            </section>
            {editing && <Editor t={editing} close={() => setEditing(undefined)} />}
        </>
    );
}
