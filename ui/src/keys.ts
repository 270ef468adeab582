// keys.ts - keys that do something, unless somebody is typing.
import { useEffect, useRef } from 'preact/hooks';

// Fields take all keys, what can be pressed takes Enter, and an open dialog is all there is.
function taken(e: KeyboardEvent): boolean {
    const at = e.target as HTMLElement | null;
    const field = at?.closest?.('input:not([type=checkbox]), textarea, select');
    const pressed = e.key === 'Enter' && at?.closest?.('a, button, input');
    return !!(field || pressed || document.querySelector('dialog[open]'));
}

export function useKeys(keys: Record<string, () => void>): void {
    const now = useRef(keys);
    now.current = keys;
    useEffect(() => {
        const fn = (e: KeyboardEvent): void => {
            const run = now.current[e.key];
            if (!run || e.ctrlKey || e.metaKey || e.altKey || taken(e))
                return;
            e.preventDefault();
            run();
        };
        window.addEventListener('keydown', fn);
        return () => window.removeEventListener('keydown', fn);
    }, []);
}
