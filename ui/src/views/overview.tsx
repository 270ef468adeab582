import type { JSX } from 'preact';

export function Overview(): JSX.Element {
    return <h1>Overview</h1>;
}
