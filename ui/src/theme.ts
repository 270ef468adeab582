// theme.ts - light, dark, or as the system has it.
import { useEffect, useState } from 'preact/hooks';

const KEY = 'weir-theme', NAMES = ['auto', 'light', 'dark'];
const system = matchMedia('(prefers-color-scheme: dark)');
const watchers = new Set<() => void>();

const themeName = (): string => localStorage.getItem(KEY) ?? 'auto';
// Whether it is dark now, whoever has said so.
export const isDark = (): boolean => themeName() === 'auto' ? system.matches : themeName() === 'dark';

function apply(): void {
    const name = themeName();
    if (name === 'auto')
        delete document.documentElement.dataset.theme;
    else
        document.documentElement.dataset.theme = name;
    for (const fn of [...watchers])
        fn();
}
apply();
system.addEventListener('change', apply);

export function cycleTheme(): void {
    localStorage.setItem(KEY, NAMES[(NAMES.indexOf(themeName()) + 1) % NAMES.length] as string);
    apply();
}

// The name of the theme; whoever uses it is drawn again when the colours change.
export function useTheme(): string {
    const [, turn] = useState(0);
    useEffect(() => {
        const fn = (): void => turn((n) => n + 1);
        watchers.add(fn);
        return () => void watchers.delete(fn);
    }, []);
    return themeName();
}
