// wide.ts - how wide the screen is, for what is not the same on each.
import { useEffect, useState } from 'preact/hooks';

// A table of jobs has room; filters have a row of their own.
export const TABLE = '(min-width: 1101px)', PHONE = '(max-width: 720px)';

export function useMedia(query: string): boolean {
    const [is, set] = useState(() => matchMedia(query).matches);
    useEffect(() => {
        const media = matchMedia(query), fn = (): void => set(media.matches);
        media.addEventListener('change', fn);
        fn();
        return () => media.removeEventListener('change', fn);
    }, [query]);
    return is;
}
