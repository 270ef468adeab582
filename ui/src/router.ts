// router.ts - the address bar is the state: every view is a link that can be shared.
import { useEffect, useState } from 'preact/hooks';

export interface Place { path: string; params: URLSearchParams }

const here = (): Place => ({ path: location.pathname, params: new URLSearchParams(location.search) });
const watchers = new Set<() => void>();

function changed(): void {
    for (const fn of [...watchers])
        fn();
}
window.addEventListener('popstate', changed);

export function go(to: string, replace = false): void {
    if (to === location.pathname + location.search)
        return;
    history[replace ? 'replaceState' : 'pushState'](null, '', to);
    if (!replace)
        window.scrollTo(0, 0);
    changed();
}

// Change some parameters of this address; '' takes one away.
export function setParams(change: Record<string, string>, replace = false): void {
    const params = new URLSearchParams(location.search);
    for (const [k, v] of Object.entries(change))
        if (v)
            params.set(k, v);
        else
            params.delete(k);
    const text = params.toString();
    go(location.pathname + (text ? `?${text}` : ''), replace);
}

export function usePlace(): Place {
    const [place, set] = useState(here);
    useEffect(() => {
        const fn = (): void => set(here());
        watchers.add(fn);
        return () => void watchers.delete(fn);
    }, []);
    return place;
}

// Links stay links (middle click, copy), but do not load the page anew.
document.addEventListener('click', (e) => {
    const a = (e.target as Element | null)?.closest?.('a[href]') as HTMLAnchorElement | null;
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey ||
        a.target || a.origin !== location.origin || a.hasAttribute('download') ||
        a.pathname.startsWith('/v1/') || a.pathname === '/metrics')
        return;
    e.preventDefault();
    go(a.pathname + a.search);
});
