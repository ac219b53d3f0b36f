import { useEffect, useRef } from 'react';
import Plot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { alignSamples, type Series } from './align-samples.ts';
import { useIsDark } from './use-is-dark.ts';

const HEIGHT = 180;

interface ChartProps {
  readonly label: string;
  readonly range: { readonly start: number; readonly end: number };
  readonly series: readonly Series[];
  readonly format: (amount: number) => string;
  /** What lies between two lines of the scale is one of these. */
  readonly steps?: readonly number[];
}

/** Lines over time. The latest values are repeated as text below it for screen readers. */
export function Chart({ label, range, series, format, steps }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const isDark = useIsDark();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const plot = new Plot(
      optionsOf(element, { range, series, format, steps }),
      alignSamples(series),
      element,
    );
    const watcher = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      plot.destroy();
    };
  }, [range, series, format, steps, isDark]);
  return (
    <figure>
      <div ref={place} className="chart" role="img" aria-label={label} />
      <figcaption className="hint chart-key">
        {series.map(({ name, samples }, index) => (
          <span key={name}>
            <span className={`swatch series-${index + 1}`} aria-hidden="true" /> {name}{' '}
            {samples.length === 0 ? '–' : format(samples.at(-1)?.[1] ?? 0)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function optionsOf(
  element: HTMLElement,
  {
    range,
    series,
    format,
    steps,
  }: Omit<ChartProps, 'label' | 'steps'> & { readonly steps: ChartProps['steps'] | undefined },
): Plot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => resolveColour(element, `var(${name})`);
  const axis = { stroke: style.color, grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: true, y: false },
    scales: {
      x: { range: () => [range.start / 1000, range.end / 1000] },
      y: { range: (_plot, _low, high) => [0, Math.max(high, 1) * 1.1] },
    },
    axes: [
      axis,
      {
        ...axis,
        size: 70,
        values: (_plot, amounts) => amounts.map(format),
        ...(steps === undefined ? {} : { incrs: [...steps] }),
      },
    ],
    series: [
      {},
      ...series.map(({ name }, index) => ({
        label: name,
        stroke: colour(`--series-${index + 1}`),
        width: 1.6,
        spanGaps: true,
      })),
    ],
  };
}

/** Resolves a CSS colour, because a canvas supports neither variables nor `light-dark()`. */
function resolveColour(element: HTMLElement, text: string): string {
  const probe = element.appendChild(document.createElement('span'));
  probe.style.color = text;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
