// trouble.tsx - the server or its store does not answer: what that is, what would help. The page
// tries again by itself and goes away when all is well.
import type { JSX } from 'preact';
import { useShared } from '../store';

export function Trouble({ why }: { why: string }): JSX.Element {
    const { server } = useShared();
    return (
        <section class="trouble" role="alert">
            <h1>{server ? 'The store does not answer' : 'The server does not answer'}</h1>
            <p class="bad">{why}</p>
            <p>This page tries again every few seconds and goes on by itself.</p>
            {server
                ? <p>Jobs are in <code>{server.store}</code>. Look whether it runs, and at what the
                    server writes. <a href="/readyz" target="_blank">/readyz</a> says the same to
                    machines.</p>
                : <p>Is <code>weir serve</code> running? Its last lines say why it ended.</p>}
        </section>
    );
}
