// toast.tsx - short words about what was done, with a way back where there is one.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

interface Toast { id: number; text: string; bad: boolean; undo?: () => void }
const SHOWN_MS = 6000;
let toasts: Toast[] = [], last = 0;
let changed: () => void = () => {};

function drop(id: number): void {
    toasts = toasts.filter((t) => t.id !== id);
    changed();
}

export function toast(text: string, more: { bad?: boolean; undo?: () => void; ms?: number } = {}):
    void {
    const id = ++last;
    toasts = [...toasts, { id, text, bad: !!more.bad, undo: more.undo }].slice(-4);
    changed();
    setTimeout(() => drop(id), more.ms ?? SHOWN_MS);
}

export function complain(e: unknown): void {
    toast(e instanceof Error ? e.message : String(e), { bad: true });
}

export function Toasts(): JSX.Element {
    const [, turn] = useState(0);
    useEffect(() => {
        changed = () => turn((n) => n + 1);
    }, []);
    return (
        <div class="toasts" role="status" aria-live="polite">
            {toasts.map((t) => (
                <div key={t.id} class={t.bad ? 'toast bad' : 'toast'}>
                    <span>{t.text}</span>
                    {t.undo && <button type="button" onClick={() => { t.undo?.(); drop(t.id); }}>
                        Undo</button>}
                    <button type="button" class="quiet" aria-label="Dismiss"
                        onClick={() => drop(t.id)}>×</button>
                </div>
            ))}
        </div>
    );
}
