// command.tsx - a command to copy.
import type { JSX } from 'preact';
import { toast } from './toast';

export async function copy(text: string, what = 'Copied'): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        toast(what);
    } catch {
        toast('The browser does not let this page copy', { bad: true });
    }
}

export function Command({ text }: { text: string }): JSX.Element {
    return (
        <div class="command">
            <code>{text}</code>
            <button type="button" onClick={() => void copy(text)}>Copy</button>
        </div>
    );
}
