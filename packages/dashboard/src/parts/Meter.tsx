interface MeterProps {
  readonly label: string;
  readonly used: number;
  /** Null: there is no limit. */
  readonly limit: number | null;
  readonly format: (amount: number) => string;
}

const NEARLY = 0.85;

/** How much of a limit is taken. */
export function Meter({ label, used, limit, format }: MeterProps) {
  const part = limit === null || limit === 0 ? 0 : used / limit;
  const tone = part >= 1 ? 'bad' : part >= NEARLY ? 'warn' : 'good';
  return (
    <div className="meter">
      <div className="meter-words">
        <span>{label}</span>
        <span className="amount">
          {format(used)}
          <span className="hint"> {limit === null ? 'of no limit' : `of ${format(limit)}`}</span>
        </span>
      </div>
      <progress
        className={tone}
        max={limit ?? 1}
        value={limit === null ? 0 : Math.min(used, limit)}
        aria-label={label}
      />
    </div>
  );
}
