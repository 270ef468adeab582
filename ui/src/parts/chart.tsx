// chart.tsx - curves over time with uPlot, in the colours of the page.
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { isDark, useTheme } from '../theme';

export interface Curve { label: string; colour: string; values: (number | null)[]; dash?: number[] }

const HEIGHT = 190;
const css = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const two = (n: number): string => String(n).padStart(2, '0');
// Hours and minutes, with seconds where the marks are close.
function timeMarks(seconds: number[], step: number): string[] {
    return seconds.map((s) => {
        const d = new Date(s * 1000);
        return `${two(d.getHours())}:${two(d.getMinutes())}` + (step < 60 ? `:${two(d.getSeconds())}` : '');
    });
}

export function Chart({ title, seconds, curves, unit }:
    { title: string; seconds: number[]; curves: Curve[]; unit: (v: number) => string }): JSX.Element {
    const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | undefined>(undefined);
    const data = [seconds, ...curves.map((c) => c.values)] as uPlot.AlignedData;
    useTheme();
    const shape = curves.map((c) => c.label).join() + String(isDark());
    useEffect(() => {
        const el = box.current as HTMLDivElement;
        const axis = { stroke: css('--faint'), grid: { stroke: css('--line'), width: 1 },
            ticks: { stroke: css('--line') }, font: '12px system-ui' };
        const made = plot.current = new uPlot({
            width: el.clientWidth || 400, height: HEIGHT,
            cursor: { drag: { x: false, y: false } },
            series: [{ value: '{HH}:{mm}:{ss}' }, ...curves.map((c) => ({
                label: c.label, stroke: css(c.colour), width: 2, spanGaps: true, dash: c.dash,
                points: { show: false },
                value: (_: uPlot, v: number | null) => v === null || v === undefined ? '–' : unit(v),
            }))],
            axes: [{ ...axis, size: 32, values: (_: uPlot, at: number[], _i: number, _s: number,
                step: number) => timeMarks(at, step) }, { ...axis, size: 64, values: (_: uPlot, ticks: number[]) => ticks.map(unit) }],
            scales: { y: { range: (_u: uPlot, _min: number, max: number) => [0, Math.max(max, 1) * 1.1] } },
        }, data, el);
        const resize = new ResizeObserver(() =>
            made.setSize({ width: el.clientWidth, height: HEIGHT }));
        resize.observe(el);
        return () => { resize.disconnect(); made.destroy(); };
    }, [shape]);
    useEffect(() => {
        const made = plot.current as uPlot;
        made.setData(data);
        if (made.cursor.left === undefined || made.cursor.left < 0)     // else what is pointed at
            made.setLegend({ idx: seconds.length - 2 });                // the last is not full yet
    }, [data]);
    const last = (c: Curve): number | null => [...c.values].reverse().find((v) => v !== null) ?? null;
    return (
        <figure class="panel chart" aria-label={`${title}: ${curves.map((c) => {
            const v = last(c);
            return `${c.label} ${v === null ? 'none' : unit(v)}`;
        }).join(', ')}`}>
            <figcaption><h2>{title}</h2></figcaption>
            <div ref={box} />
        </figure>
    );
}
