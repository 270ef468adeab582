// settings.tsx - the server, and who you are to it.
import type { JSX } from 'preact';
import { getToken } from '../api';
import { clock, since } from '../fmt';
import { Command } from '../parts/command';
import { logout, useNow, useShared } from '../store';

export function Settings(): JSX.Element {
    const { server } = useShared();
    const now = useNow();
    if (!server)
        return <p class="faint" aria-busy="true">…</p>;
    const { you } = server;
    return (
        <>
            <h1>Settings</h1>
            <section class="panel" aria-label="Server">
                <h2>Server</h2>
                <dl class="facts">
                    <div><dt>Title</dt><dd>{server.title}</dd></div>
                    <div><dt>Version</dt><dd>{server.version}</dd></div>
                    <div><dt>Store</dt><dd><code>{server.store}</code></dd></div>
                    <div><dt>API at the root</dt><dd>{server.api}</dd></div>
                    <div><dt>Started</dt><dd><time title={clock(server.started_at)}>
                        {since(server.started_at, now)}</time></dd></div>
                </dl>
                <p class="faint">These are set where the server is started:</p>
                <Command text={`weir serve --title '${server.title}' --store '${server.store}'`} />
            </section>
            <section class="panel" aria-label="You">
                <h2>You</h2>
                <p>{you.name ? <>You use the token <b>{you.name}</b>.</>
                    : 'Nobody is asked for a token on this machine.'}{' '}
                You may {you.roles.includes('admin') ? 'do everything'
                    : you.roles.join(', ')}{you.types && <> with jobs of the type <b>{you.types.join(', ')}</b></>}.
                {you.expires_at && <> The token is valid until{' '}
                    <b>{clock(you.expires_at)}</b>.</>}
                {!you.roles.includes('admin') && ' Buttons that change jobs are not shown.'}</p>
                {getToken() && <button type="button" onClick={logout}>Sign out</button>}
            </section>
            <section class="panel" aria-label="For programs">
                <h2>For programs</h2>
                <p>Everything this page does, <a href="/v1/openapi.json" target="_blank">/v1/openapi.json</a>{' '}
                    describes. <a href="/metrics" target="_blank">/metrics</a> is for Prometheus.</p>
            </section>
        </>
    );
}
