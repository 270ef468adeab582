import type { JSX } from 'preact';

export function Types(): JSX.Element {
    return <h1>Types</h1>;
}
