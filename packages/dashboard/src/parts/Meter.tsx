interface MeterProps {
  readonly label: string;
  readonly used: number;
  /** Null: there is no limit. */
  readonly limit: number | null;
  readonly format: (amount: number) => string;
}

const NEARLY = 0.85;

/** The used part of a limit. */
export function Meter({ label, used, limit, format }: MeterProps) {
  const part = limit === null || limit === 0 ? 0 : used / limit;
  const tone = part >= 1 ? 'bad' : part >= NEARLY ? 'warn' : 'good';
  return (
    <div className="meter">
      <div className="meter-words">
        <span>{label}</span>
        <span className="amount">
          {format(used)}
          <span className="hint"> {limit === null ? '· no limit' : `of ${format(limit)}`}</span>
        </span>
      </div>
      {limit === null ? null : (
        <progress className={tone} max={limit} value={Math.min(used, limit)} aria-label={label} />
      )}
    </div>
  );
}
