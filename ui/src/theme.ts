// theme.ts - light, dark, or as the system has it.
const KEY = 'weir-theme', NAMES = ['auto', 'light', 'dark'];

export const themeName = (): string => localStorage.getItem(KEY) ?? 'auto';

function apply(): void {
    const name = themeName();
    if (name === 'auto')
        delete document.documentElement.dataset.theme;
    else
        document.documentElement.dataset.theme = name;
}
apply();

export function cycleTheme(): string {
    const next = NAMES[(NAMES.indexOf(themeName()) + 1) % NAMES.length] as string;
    localStorage.setItem(KEY, next);
    apply();
    return next;
}
