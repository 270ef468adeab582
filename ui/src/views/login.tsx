// login.tsx - the server wants a token.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Command } from '../parts/command';
import { login, useShared } from '../store';

export function Login(): JSX.Element {
    const { loginError } = useShared();
    const [token, setToken] = useState('');
    return (
        <main class="login">
            <h1>weir</h1>
            <form onSubmit={(e) => { e.preventDefault(); login(token); }}>
                <label>
                    Token
                    <input type="password" value={token} autocomplete="current-password" autofocus
                        onInput={(e) => setToken(e.currentTarget.value)} />
                </label>
                {loginError && <p class="bad" role="alert">{loginError}</p>}
                <button type="submit" class="main" disabled={!token.trim()}>Sign in</button>
            </form>
            <p>The operator of this server makes one with</p>
            <Command text="weir token add NAME --role read" />
            <p class="faint">The token is kept in this tab alone, and forgotten with it.</p>
        </main>
    );
}
