// chart.tsx - curves and stacked bars over time with uPlot, in the colours of the page. Charts of one
// group have the same axis of time, and pointing at one points at all.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { clock } from '../fmt';
import { isDark, useTheme } from '../theme';

export interface Curve {
    label: string; colour: string; values: (number | null)[]; dash?: number[];
}

const HEIGHT = 180, FONT = '12px system-ui';
const css = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const two = (n: number): string => String(n).padStart(2, '0');
// Days where the marks are days, else hours and minutes, with seconds where they are close.
function timeMarks(seconds: number[], step: number): string[] {
    return seconds.map((s) => {
        const d = new Date(s * 1000);
        return step >= 86400 ? `${two(d.getMonth() + 1)}-${two(d.getDate())}`
            : `${two(d.getHours())}:${two(d.getMinutes())}` + (step < 60 ? `:${two(d.getSeconds())}` : '');
    });
}

// Steps of an axis of durations, in ms: those that clocks have.
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5,
    36e5, 72e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6];
// Those of an axis of counts: there is no half a job.
const STEPS = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3));
export function durationTick(ms: number): string {
    const units: [number, string][] = [[864e5, 'd'], [36e5, 'h'], [6e4, 'min'], [1e3, 's']];
    for (const [unit, name] of units)
        if (ms >= unit)
            return `${Number((ms / unit).toFixed(1))} ${name}`;
    return ms ? `${ms} ms` : '0';
}

// "1.2M": all axes have the same width, so that charts below each other have the same places.
const short = new Intl.NumberFormat('en', { notation: 'compact' });
const AXIS = 60;

// What the legend says when nothing is pointed at: the last bucket but one, since the last is not full
// yet, unless nothing is known of that.
const said = (curves: Curve[], n: number): number =>
    Math.max(0, curves.some((c) => c.values[n - 2] != null) ? n - 2 : n - 1);

// A point without neighbours is no line: it is drawn as a dot.
const alone = (values: (number | null | undefined)[]): number[] =>
    values.flatMap((v, i) => v != null && values[i - 1] == null && values[i + 1] == null ? [i] : []);

// Each curve on top of those before it.
function stacked(curves: Curve[]): (number | null)[][] {
    const sums: number[] = [];
    return curves.map((c) => c.values.map((v, i) => sums[i] = (sums[i] ?? 0) + (v ?? 0)));
}

const bars = uPlot.paths.bars?.({ size: [0.85, 100], align: 1 });

function options(p: ChartProps, el: HTMLElement, now: () => ChartProps, point: (i?: number) => void): uPlot.Options {
    const line = { stroke: css('--line'), width: 1 };
    const axis = { stroke: css('--faint'), grid: line, ticks: { stroke: css('--line') }, font: FONT };
    const order = p.curves.map((_, k) => p.bars ? p.curves.length - 1 - k : k);
    const incrs = { incrs: p.duration ? STEPS_MS : STEPS };
    const top = { range: (_: uPlot, _min: number, max: number): [number, number] => [0, Math.max(max, 1) * 1.1] };
    return {
        width: el.clientWidth || 400, height: HEIGHT, padding: [10, 20, 0, 0], legend: { show: false },
        hooks: { setCursor: [(u) => point((u.cursor.left ?? -1) < 0 ? undefined : u.cursor.idx ?? undefined)] },
        cursor: { drag: { x: false, y: false }, sync: { key: 'time', scales: ['x', null] } },
        series: [{}, ...order.map((k) => {
            const c = p.curves[k] as Curve;
            return {
                label: c.label, stroke: css(c.colour), width: p.bars ? 0 : 2, dash: c.dash,
                spanGaps: false,
                points: { show: false, size: 6, fill: css(c.colour),
                    ...(p.bars ? {} : { filter: (u: uPlot, i: number) => alone(u.data[i] as (number | null)[]) }) },
                ...(p.bars ? { paths: bars, fill: css(c.colour) } : {}),
            };
        })],
        axes: [
            { ...axis, size: 32, values: (_: uPlot, at: number[], _i: number, _s: number, step: number) =>
                timeMarks(at, step) },
            { ...axis, ...incrs, size: AXIS, values: (_: uPlot, ticks: number[]) =>
                ticks.map((v) => p.duration ? durationTick(v) : Number.isInteger(v) ? short.format(v) : '') },
        ],
        scales: { x: { range: () => now().range }, y: top },
    };
}

export interface ChartProps {
    title: string; about: string;       // what it shows, for those who do not see it
    note?: string;                      // beside the title while nothing is pointed at
    seconds: number[]; range: [number, number]; curves: Curve[];
    unit: (v: number) => string; duration?: boolean; bars?: boolean;
}

// What each curve is at that bucket.
function Legend({ p, at }: { p: ChartProps; at: number }): JSX.Element {
    return (
        <ul class={`legend${p.bars ? ' bars' : ''}`} aria-hidden="true">{p.curves.map((c) => {
            const v = c.values[at];
            return <li key={c.label}><i style={{ '--curve': `var(${c.colour})` }} class={c.dash ? 'dashed' : ''} />
                {c.label} <b>{v === null || v === undefined ? '–' : p.unit(v)}</b></li>;
        })}</ul>
    );
}

export function Chart(p: ChartProps): JSX.Element {
    const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | undefined>(undefined);
    const props = useRef(p), [pointed, point] = useState<number | undefined>(undefined);
    props.current = p;
    useTheme();
    const values = p.bars ? stacked(p.curves).reverse() : p.curves.map((c) => c.values);
    const data = [p.seconds, ...values] as uPlot.AlignedData;
    const shape = p.curves.map((c) => c.label).join() + String(isDark());
    useEffect(() => {
        const el = box.current as HTMLDivElement;
        const made = plot.current = new uPlot(options(p, el, () => props.current, point), data, el);
        uPlot.sync('time').sub(made);
        const resize = new ResizeObserver(() => made.setSize({ width: el.clientWidth, height: HEIGHT }));
        resize.observe(el);
        return () => { resize.disconnect(); uPlot.sync('time').unsub(made); made.destroy(); };
    }, [shape]);
    useEffect(() => plot.current?.setData(data), [data]);
    const time = pointed === undefined ? undefined : p.seconds[pointed];
    return (
        <figure class="panel chart" aria-label={`${p.title}: ${p.about}`}
            data-range={p.range.join()} data-buckets={p.seconds.length}>
            <figcaption><h2>{p.title}</h2>
                <span class="faint">{time === undefined ? p.note : clock(time * 1000).slice(0, 19)}</span></figcaption>
            <div ref={box} />
            <Legend p={p} at={pointed ?? said(p.curves, p.seconds.length)} />
        </figure>
    );
}
