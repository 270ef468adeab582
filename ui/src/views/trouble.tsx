// trouble.tsx - the server or its store does not answer: what that is, what would help. The page
// tries again by itself and goes away when all is well.
import type { JSX } from 'preact';
import { useShared, type Trouble as What } from '../store';

// What to look at, by what the jobs are in.
function remedy(store: string): JSX.Element {
    if (/^redis/.test(store))
        return <p>Jobs are in <code>{store}</code>. Does Redis run there, and does it let this server
            in? <code>redis-cli ping</code> answers that.</p>;
    if (/^https?:/.test(store))
        return <p>Jobs are with the server <code>{store}</code>. Does it run?</p>;
    return <p>Jobs are in <code>{store}</code>. Is the disk full, or the file of another owner? The
        server's last lines say more.</p>;
}

export function Trouble({ what }: { what: What }): JSX.Element {
    const { server } = useShared();
    return (
        <section class="trouble panel wrong" role="alert">
            <h1>{what.server ? 'The server does not answer' : 'The store does not answer'}</h1>
            <p class="bad">{what.why}</p>
            {what.server
                ? <p>Is <code>weir serve</code> running at <code>{location.origin}</code>? Its last
                    lines say why it ended.</p>
                : server && remedy(server.store)}
            <p>This page tries again every second and goes on by itself.{' '}
                <a href="/readyz" target="_blank">/readyz</a> says the same to machines.</p>
        </section>
    );
}
