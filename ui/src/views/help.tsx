// help.tsx - the keys.
import type { JSX } from 'preact';
import { Dialog } from '../parts/dialog';

const KEYS: [string, string][] = [
    ['/', 'search'], ['j', 'next job'], ['k', 'previous job'], ['Enter', 'open the job'],
    ['x', 'select the job'], ['n', 'let new jobs into the list'], ['r', 'retry'], ['u', 'up to the list'], ['t', 'try a message (event bus)'], ['?', 'this help'],
    ['Esc', 'close, or leave a field'],
];

export function Help({ close }: { close: () => void }): JSX.Element {
    return (
        <Dialog title="Keys" close={close}>
            <dl class="keys">
                {KEYS.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}
            </dl>
            <p>Search finds <code>42</code> (a job), <code>type:mail</code>, <code>state:failed</code>,{' '}
                <code>user:42</code>, words of data, errors and logs of jobs that were added with <code>search</code>.</p>
            <button type="button" class="main" onClick={close} autofocus>Close</button>
        </Dialog>
    );
}
