import { useCall } from '../../api/use-call.ts';
import { useIsPriced } from '../../api/use-is-priced.ts';
import { Failure } from '../../parts/Failure.tsx';
import { formatCents, formatQuantity } from '../../parts/format-amount.ts';
import { Loading } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';

const LIVE_MS = 30_000;
const SHOWN_LINES = 5;

/** What was used this month, and what it costs where the plan has prices. */
export function SpendPanel() {
  const { data, error } = useCall('billing.getUsage', {}, { everyMs: LIVE_MS });
  const isPriced = useIsPriced();
  return (
    <Panel title="This month" hint={isPriced === true ? 'An estimate, in UTC' : 'Usage, in UTC'}>
      {error === null ? null : <Failure error={error} />}
      {data === undefined || isPriced === undefined ? (
        <Loading rows={6} />
      ) : (
        <>
          {isPriced ? (
            <>
              <p className="figure-number">{formatCents(data.total_cents)}</p>
              <p className="hint">{formatCents(data.projected_spend_cents)} projected for the month</p>
            </>
          ) : null}
          <ul className="spend-lines">
            {data.line_items.slice(0, SHOWN_LINES).map(({ name, quantity, unit, amount_cents }) => (
              <li key={name}>
                <span>{name}</span>
                <span className="amount">
                  {formatQuantity(quantity, unit)}{' '}
                  {isPriced ? <span className="hint">{formatCents(amount_cents)}</span> : null}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}
