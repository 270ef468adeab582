// ring.tsx - progress as a ring with its number.
import type { JSX } from 'preact';

export function Ring({ percent, size = 44 }: { percent: number; size?: number }): JSX.Element {
    const r = 18, around = 2 * Math.PI * r, p = Math.max(0, Math.min(100, percent));
    return (
        <svg class="ring" width={size} height={size} viewBox="0 0 44 44" role="img"
            aria-label={`${p} percent`}>
            <circle cx="22" cy="22" r={r} class="track" />
            <circle cx="22" cy="22" r={r} class="done" stroke-dasharray={`${around * p / 100} ${around}`}
                transform="rotate(-90 22 22)" />
            <text x="22" y="26" text-anchor="middle">{p}</text>
        </svg>
    );
}
