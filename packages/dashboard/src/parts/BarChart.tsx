export interface Bar {
  readonly label: string;
  readonly amount: number;
}

interface BarChartProps {
  /** Says what it shows, for who does not see it; the numbers stand in a table beside it. */
  readonly label: string;
  readonly bars: readonly Bar[];
  readonly format: (amount: number) => string;
}

const WIDTH = 720;
const HEIGHT = 160;
const GAP = 3;

/** One bar per day or thing. */
export function BarChart({ label, bars, format }: BarChartProps) {
  const highest = Math.max(...bars.map(({ amount }) => amount), 0);
  const step = WIDTH / Math.max(bars.length, 1);
  return (
    <svg className="bar-chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {bars.map(({ label: name, amount }, index) => {
        const height = highest === 0 ? 0 : (amount / highest) * (HEIGHT - 2);
        return (
          <g key={name}>
            <title>{`${name}: ${format(amount)}`}</title>
            <rect className="room" x={index * step} y={0} width={step} height={HEIGHT} />
            <rect
              className="bar"
              x={index * step + GAP / 2}
              y={HEIGHT - Math.max(height, 1)}
              width={Math.max(step - GAP, 1)}
              height={Math.max(height, 1)}
              rx={2}
            />
          </g>
        );
      })}
    </svg>
  );
}
