import { namesShown, roundUp } from './bar-scale.ts';

export interface Bar {
  readonly label: string;
  readonly amount: number;
}

interface BarChartProps {
  /** The accessible description; the numbers are in a table beside it. */
  readonly label: string;
  readonly bars: readonly Bar[];
  readonly format: (amount: number) => string;
  /** Like `format`, without the unit. */
  readonly formatScale: (amount: number) => string;
  readonly formatLabel: (label: string) => string;
}

const WIDTH = 720;
const HEIGHT = 160;
const GAP = 3;

/** One bar per day or item, on a scale from 0 to a round value. */
export function BarChart({ label, bars, format, formatScale, formatLabel }: BarChartProps) {
  const highest = roundUp(Math.max(...bars.map(({ amount }) => amount), 0));
  const step = WIDTH / Math.max(bars.length, 1);
  return (
    <div className="bar-chart">
      <div className="bar-scale" aria-hidden="true">
        {[highest, highest / 2, 0].map((amount) => (
          <span key={amount}>{formatScale(amount)}</span>
        ))}
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {[0.5, HEIGHT / 2, HEIGHT - 0.5].map((y) => (
          <line key={y} className="line" x1={0} x2={WIDTH} y1={y} y2={y} />
        ))}
        {bars.map(({ label: name, amount }, index) => {
          const height = Math.max((amount / highest) * HEIGHT, 1);
          return (
            <g key={name}>
              <title>{`${name}: ${format(amount)}`}</title>
              <rect className="room" x={index * step} y={0} width={step} height={HEIGHT} />
              <rect
                className="bar"
                x={index * step + GAP / 2}
                y={HEIGHT - height}
                width={Math.max(step - GAP, 1)}
                height={height}
              />
            </g>
          );
        })}
      </svg>
      <div className="bar-names" aria-hidden="true">
        {namesShown(bars.map((bar) => bar.label)).map((name) => (
          <span key={name}>{formatLabel(name)}</span>
        ))}
      </div>
    </div>
  );
}
