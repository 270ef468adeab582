import type { JSX } from 'preact';

export function Settings(): JSX.Element {
    return <h1>Settings</h1>;
}
