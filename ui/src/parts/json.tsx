// json.tsx - JSON as text: nothing of it is ever markup, and long ones show their start first.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { count, pretty } from '../fmt';
import { copy } from './command';

const SHOWN = 20000;

export function Json({ text, name }: { text: string; name: string }): JSX.Element {
    const [all, setAll] = useState(false);
    const cut = !all && text.length > SHOWN;
    return (
        <div class="json">
            <button type="button" class="quiet" aria-label={`Copy ${name}`}
                onClick={() => void copy(text)}>Copy</button>
            <pre dir="auto">{cut ? text.slice(0, SHOWN) : pretty(text)}</pre>
            {cut && <p><button type="button" onClick={() => setAll(true)}>
                Show all {count(text.length)} characters</button></p>}
        </div>
    );
}
