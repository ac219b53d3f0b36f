import { useCall } from '../../api/use-call.ts';
import { Failure } from '../../parts/Failure.tsx';
import { formatCents, formatNumber } from '../../parts/format-amount.ts';
import { Loading } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';

const LIVE_MS = 30_000;
const SHOWN_LINES = 5;

/** What the month has cost so far. */
export function SpendPanel() {
  const { data, error } = useCall('billing.getUsage', {}, { everyMs: LIVE_MS });
  return (
    <Panel title="This month" hint="An estimate, in UTC">
      {error === null ? null : <Failure error={error} />}
      {data === undefined ? (
        <Loading rows={4} />
      ) : (
        <>
          <p className="figure-number">{formatCents(data.total_cents)}</p>
          <p className="hint">{formatCents(data.projected_spend_cents)} if the month goes on like this</p>
          <ul className="spend-lines">
            {data.line_items.slice(0, SHOWN_LINES).map(({ name, quantity, unit, amount_cents }) => (
              <li key={name}>
                <span>{name}</span>
                <span className="amount">
                  {formatNumber(quantity)} {unit} <span className="hint">{formatCents(amount_cents)}</span>
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}
