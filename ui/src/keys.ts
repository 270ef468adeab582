// keys.ts - keys that do something, unless somebody is typing.
import { useEffect, useRef } from 'preact/hooks';

function typing(e: KeyboardEvent): boolean {
    const at = e.target as HTMLElement | null;
    return !!at?.closest?.('input, textarea, select, [contenteditable]');
}

export function useKeys(keys: Record<string, () => void>): void {
    const now = useRef(keys);
    now.current = keys;
    useEffect(() => {
        const fn = (e: KeyboardEvent): void => {
            const run = now.current[e.key];
            if (!run || e.ctrlKey || e.metaKey || e.altKey || (typing(e) && e.key !== 'Escape'))
                return;
            if (e.key !== 'Escape')
                e.preventDefault();
            run();
        };
        window.addEventListener('keydown', fn);
        return () => window.removeEventListener('keydown', fn);
    }, []);
}
