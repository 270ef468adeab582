// search.tsx - a field whose text is a parameter of the address, once it has been entered.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { setParams, usePlace } from '../router';

// What is typed is kept here: the view around it is drawn again each second.
export function ParamField({ name, title, max }: { name: string; title: string; max?: number }): JSX.Element {
    const entered = usePlace().params.get(name) ?? '';
    const [text, setText] = useState(entered);
    useEffect(() => setText(entered), [entered]);
    return <input type="search" aria-label={title} placeholder={title.toLowerCase()} value={text} maxLength={max}
        onInput={(e) => setText(e.currentTarget.value)}
        onChange={(e) => setParams({ [name]: e.currentTarget.value.trim() })} />;
}
