import type { JSX } from 'preact';

export function Workers(): JSX.Element {
    return <h1>Workers</h1>;
}
