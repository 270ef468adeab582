// command.tsx - a command to copy.
import type { JSX } from 'preact';
import { toast } from './toast';

// Pages that came without TLS from elsewhere have no clipboard; the old way works there.
function copyTheOldWay(text: string): boolean {
    const area = document.createElement('textarea');
    area.value = text;
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
}

export async function copy(text: string, what = 'Copied'): Promise<void> {
    let done = false;
    try {
        await navigator.clipboard.writeText(text);
        done = true;
    } catch {
        done = copyTheOldWay(text);
    }
    toast(done ? what : 'The browser does not let this page copy', { bad: !done });
}

const plain = /^[\w.,:/@%+-]+$/;
export const quote = (text: string): string => plain.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
// A command of weir's that talks to this server, from any shell.
export const weir = (command: string): string => `weir ${command} --store ${location.origin}`;

export function Command({ text }: { text: string }): JSX.Element {
    return (
        <div class="command">
            <code>{text}</code>
            <button type="button" onClick={() => void copy(text)}>Copy</button>
        </div>
    );
}
