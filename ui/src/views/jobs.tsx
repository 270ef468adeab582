import type { JSX } from 'preact';
import type { State } from '../api';

export function Jobs({ state }: { state?: State }): JSX.Element {
    return <h1>{state ?? 'All jobs'}</h1>;
}
