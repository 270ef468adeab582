import type { JSX } from 'preact';

export function Job({ id }: { id: number }): JSX.Element {
    return <h1>Job {id}</h1>;
}
