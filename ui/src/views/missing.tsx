// missing.tsx - an address at which there is nothing.
import type { JSX } from 'preact';

export function Missing({ path }: { path: string }): JSX.Element {
    return (
        <div class="empty">
            <h1>Not found</h1>
            <p>There is nothing at <code>{path.slice(0, 200)}</code>.</p>
            <p><a href="/">Overview</a> · <a href="/jobs">All jobs</a></p>
        </div>
    );
}
