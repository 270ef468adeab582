// Search over window.WEIR_INDEX, which index.js sets: [page, anchor, title of page, heading, text] an entry. It works
// from the file system, where a page may not fetch.
(() => {
    const input = document.getElementById('search');
    const found = document.getElementById('found');
    const root = document.body.dataset.root;
    const MOST = 20;
    const entries = window.WEIR_INDEX.map(([page, anchor, title, heading, text]) => (
        { page, anchor, title, heading, text, low: `${title} ${heading} ${text}`.toLowerCase() }));

    function score(entry, words) {
        let sum = 0;
        for (const word of words) {
            if (!entry.low.includes(word)) return 0;
            sum += 1;
            if (entry.heading.toLowerCase().includes(word)) sum += 8;
            if (entry.heading.toLowerCase() === word) sum += 20;
            if (entry.title.toLowerCase().includes(word)) sum += 3;
        }
        return sum;
    }

    // The text around the first word; `add` makes a text or a marked word of each part.
    function excerpt(entry, words, add) {
        const low = entry.text.toLowerCase();
        const at = Math.max(0, Math.min(...words.map((w) => (low.includes(w) ? low.indexOf(w) : 0))) - 30);
        let rest = (at ? '... ' : '') + entry.text.slice(at, at + 160);
        while (rest) {
            const hits = words.map((w) => [rest.toLowerCase().indexOf(w), w.length]).filter(([i]) => i >= 0);
            const [i, n] = hits.sort((a, b) => a[0] - b[0])[0] ?? [rest.length, 0];
            add('text', rest.slice(0, i));
            if (n) add('b', rest.slice(i, i + n));
            rest = rest.slice(i + n);
        }
    }

    function row(entry, words) {
        const item = document.createElement('li');
        const link = item.appendChild(document.createElement('a'));
        link.href = `${root}${entry.page}${entry.anchor ? `#${entry.anchor}` : ''}`;
        link.append(entry.heading === entry.title ? entry.title : `${entry.title}: ${entry.heading}`);
        const small = link.appendChild(document.createElement('small'));
        excerpt(entry, words, (kind, text) => {
            if (kind === 'b') small.appendChild(document.createElement('b')).append(text);
            else small.append(text);
        });
        return item;
    }

    function search() {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        const hits = words.length ? entries.map((entry) => [score(entry, words), entry]).filter(([n]) => n) : [];
        hits.sort((a, b) => b[0] - a[0]);
        found.replaceChildren(...hits.slice(0, MOST).map(([, entry]) => row(entry, words)));
        if (words.length && !hits.length) found.append('Nothing found.');
        found.hidden = !words.length;
    }

    input.addEventListener('input', search);
    document.addEventListener('keydown', (event) => {
        if (event.key === '/' && document.activeElement !== input) {
            event.preventDefault();
            input.focus();
        } else if (event.key === 'Escape') {
            found.hidden = true;
        } else if (event.key === 'Enter' && document.activeElement === input) {
            found.querySelector('a')?.click();
        } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && !found.hidden) {
            const links = [input, ...found.querySelectorAll('a')];
            const at = links.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1);
            event.preventDefault();
            links[Math.max(0, Math.min(at, links.length - 1))].focus();
        }
    });
    document.addEventListener('click', (event) => {
        if (!event.target.closest('form')) found.hidden = true;
    });
})();
