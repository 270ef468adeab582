// fields.tsx - the fields of a form over a draft of texts and flags. What is refused is said at the field
// that it is about.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ApiError } from '../api';

export class FieldError extends Error {
    constructor(readonly field: string, message: string) {
        super(message);
    }
}

// `,"name":TEXT`, for the end of an object: the digits of the text stay as they are.
export function jsonMember(name: string, text: string): string {
    try {
        JSON.parse(text);
    } catch (e) {
        throw new FieldError(name, `This is not JSON: ${(e as Error).message}`);
    }
    return `,"${name}":${text}`;
}

interface Wrong { field?: string; text: string }

// "backoff.delay" is about the field "backoff", and the message need not name it again.
function wrongOf(e: unknown, fields: object, names: Record<string, string>): Wrong {
    if (e instanceof FieldError)
        return { field: e.field, text: e.message };
    const text = e instanceof Error ? e.message : String(e);
    const at = e instanceof ApiError ? e.problem.field : undefined;
    const first = at?.split(/[.[]/, 1)[0] ?? '', field = names[first] ?? first;
    if (!at || !(field in fields))
        return { text };
    return { field, text: text.startsWith(`${at}: `) ? text.slice(at.length + 2) : text };
}

type Of<D, T> = { [K in keyof D]: D[K] extends T ? K : never }[keyof D] & string;
type More = JSX.IntrinsicElements['input'] & { about?: string };

export interface Fields<D> {
    draft: D;
    wrong?: Wrong;
    fail: (e: unknown) => void;         // say what is wrong, and go there
    text: (name: Of<D, string>, title: string, more?: More) => JSX.Element;
    area: (name: Of<D, string>, title: string, rows: number) => JSX.Element;
    flag: (name: Of<D, boolean>, title: string) => JSX.Element;
    form: { current: HTMLFormElement | null };
}

// `names`: fields that the server calls otherwise.
export function useFields<D extends object>(from: D, names: Record<string, string> = {}): Fields<D> {
    const [draft, setDraft] = useState(from);
    const [wrong, setWrong] = useState<Wrong>();
    const form = useRef<HTMLFormElement>(null);
    const set = (name: string, value: string | boolean): void => {
        setDraft((d) => ({ ...d, [name]: value }));
        if (wrong?.field === name)
            setWrong(undefined);
    };
    const said = (name: string): JSX.Element | false => wrong?.field === name &&
        <span class="bad" role="alert" id={`wrong-${name}`}>{wrong.text}</span>;
    const invalid = (name: string): Record<string, unknown> => wrong?.field !== name ? {}
        : { 'aria-invalid': true, 'aria-describedby': `wrong-${name}` };
    return {
        draft, wrong, form,
        fail: (e) => {
            const found = wrongOf(e, from, names);
            setWrong(found);
            requestAnimationFrame(() => form.current?.querySelector<HTMLElement>(`[name="${found.field}"]`)?.focus());
        },
        text: (name, title, { about, ...more } = {}) => (
            <label>{title}{about && <span class="faint"> {about}</span>}
                <input name={name} value={String(draft[name])} spellcheck={false} {...more} {...invalid(name)}
                    onInput={(e) => set(name, e.currentTarget.value)} />{said(name)}</label>
        ),
        area: (name, title, rows) => (
            <label class="wide">{title} <textarea name={name} rows={rows} value={String(draft[name])} spellcheck={false}
                {...invalid(name)} onInput={(e) => set(name, e.currentTarget.value)} />{said(name)}</label>
        ),
        flag: (name, title) => (
            <label class="wide flag"><input type="checkbox" name={name} checked={!!draft[name]}
                onChange={(e) => set(name, e.currentTarget.checked)} />{title}{said(name)}</label>
        ),
    };
}
