import type { RestCallOutput } from '@svc/sdk';
import { useAction, usePages } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { formatNumber } from '../../parts/format-amount.ts';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { showToast } from '../../parts/toast-list.ts';

type Delivery = RestCallOutput<'webhooks.test'>;
type Attempt = Delivery['attempts'][number];

const PAGE_SIZE = 50;
const LIVE_MS = 3000;

/** The deliveries of a webhook in the last week, with their results. */
export function Deliveries({ webhookId }: { readonly webhookId: string }) {
  const input = { params: { webhook_id: webhookId }, query: { limit: PAGE_SIZE } };
  const pages = usePages('webhooks.deliveries', input, { everyMs: LIVE_MS });
  return (
    <Panel title="Deliveries" hint="Of the last 7 days, newest first" isFlush>
      <DataTable
        label="Deliveries"
        columns={COLUMNS}
        rows={pages.items}
        keyOf={({ id }) => id}
        error={pages.error}
        more={pages}
        empty={
          <EmptyState icon="signal" title="No deliveries yet">
            <p>Send a test, or wait for one of its events to happen.</p>
          </EmptyState>
        }
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<Delivery>[] = [
  { title: 'Event', look: 'main', render: (delivery) => <Attempts {...delivery} /> },
  { title: 'Outcome', render: (delivery) => <Outcome {...delivery} /> },
  {
    title: 'Attempts',
    look: 'small',
    render: ({ attempts, next_attempt_at: next, status }) => (
      <>
        {attempts.length}
        {status === 'pending' && next !== null && attempts.length > 0 ? (
          <span className="hint">
            , the next <Time at={next} />
          </span>
        ) : null}
      </>
    ),
  },
  { title: 'When', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Actions', look: 'end', render: (delivery) => <SendAgain {...delivery} /> },
];

function Outcome({ status, attempts }: Delivery) {
  const last = attempts.at(-1);
  if (status === 'succeeded') return <span className="status good">taken, {last?.status}</span>;
  if (status === 'failed') return <span className="status bad">given up</span>;
  return last === undefined ? (
    <span className="status move">on its way</span>
  ) : (
    <span className="status warn">retrying</span>
  );
}

function Attempts({ event_type: type, message_id: id, attempts }: Delivery) {
  return (
    <details>
      <summary className="mono">{type}</summary>
      <p className="hint">
        webhook-id <code>{id}</code>
      </p>
      <ol className="attempts">
        {attempts.map((attempt) => (
          <li key={attempt.at}>
            <Time at={attempt.at} />: {describeAttempt(attempt)}
            {attempt.response === '' ? null : <pre className="payload">{attempt.response}</pre>}
          </li>
        ))}
      </ol>
    </details>
  );
}

function describeAttempt({ status, latency_ms: latency, error }: Attempt): string {
  const how = error === null ? `taken with ${status}` : error;
  return `${how} after ${formatNumber(latency)} ms`;
}

function SendAgain({ id, webhook_id: webhookId, event_type: type }: Delivery) {
  const send = useAction('webhooks.redeliver', {
    onDone: (delivery) => showToast(`${type}: ${wordOf(delivery)}`),
  });
  const input = { params: { webhook_id: webhookId, delivery_id: id } };
  return (
    <Button
      look="quiet"
      icon="refresh"
      aria-label={`Send ${type} again`}
      title="Send it again"
      isBusy={send.isPending}
      onClick={() =>
        send.mutate(input, { onError: (error) => showToast(`${type} was not sent again`, error) })
      }
    />
  );
}

function wordOf({ attempts }: Delivery): string {
  const last = attempts.at(-1);
  return last === undefined ? 'it is on its way' : describeAttempt(last);
}

interface SentNowProps {
  readonly what: string;
  readonly delivery: Delivery;
}

/** The result of a delivery that was just sent. */
export function SentNow({ what, delivery }: SentNowProps) {
  const last = delivery.attempts.at(-1);
  const isTaken = delivery.status === 'succeeded';
  return (
    <div className={isTaken ? 'taken' : 'failure'} role="status">
      <p>
        {what}: {wordOf(delivery)}
      </p>
      {isTaken ? null : (
        <p className="remedy">
          A receiver answers with a status from 200 to 299 within 15 seconds; redirects are not followed.
        </p>
      )}
      {last === undefined || last.response === '' ? null : <pre className="payload">{last.response}</pre>}
    </div>
  );
}
