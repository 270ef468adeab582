// dialog.tsx - a question, or something to read, before going on.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Dialog({ title, close, children }:
    { title: string; close: () => void; children: ComponentChildren }): JSX.Element {
    const box = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        box.current?.showModal();
    }, []);
    return (
        <dialog ref={box} aria-label={title} onClose={close}
            onClick={(e) => e.target === box.current && close()}>
            <h2>{title}</h2>
            {children}
        </dialog>
    );
}
