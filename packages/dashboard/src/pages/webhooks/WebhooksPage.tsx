import { useState } from 'react';
import { canAct, useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { Link } from '../../router/Link.tsx';
import { NewWebhook, type Webhook } from './WebhookForm.tsx';
import { WebhookState } from './WebhookState.tsx';
import './webhooks.css';

const LIVE_MS = 5000;

/** The webhooks of the organization. */
export function WebhooksPage() {
  const { role } = useOrganization();
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('webhooks.list', {}, { everyMs: LIVE_MS });
  const make = canAct(role, 'admin') ? (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New webhook
    </Button>
  ) : null;
  return (
    <Page
      title="Webhooks"
      hint="Events of the organization are sent to these addresses, signed, at least once."
      actions={make}
    >
      <Panel isFlush>
        <DataTable
          label="Webhooks"
          columns={COLUMNS}
          rows={data}
          keyOf={({ id }) => id}
          error={error}
          empty={
            <EmptyState icon="signal" title="No webhooks yet">
              <p>Another program can be notified when a sandbox fails, ends soon or reaches a limit.</p>
              {make}
            </EmptyState>
          }
        />
      </Panel>
      {isMaking ? <NewWebhook onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Webhook>[] = [
  { title: 'Address', look: 'main', render: (webhook) => <Address {...webhook} /> },
  { title: 'State', render: (webhook) => <WebhookState {...webhook} /> },
  {
    title: 'Events',
    look: 'small',
    render: ({ event_types }) => <EventLabels patterns={event_types} most={SHOWN_EVENTS} />,
  },
  { title: 'Created', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Actions', look: 'end', render: (webhook) => <RemoveWebhook webhook={webhook} /> },
];

const SHOWN_EVENTS = 3;

function Address({ id, url, description }: Webhook) {
  const { slug } = useOrganization();
  return (
    <>
      <Link className="webhook-address" href={`/orgs/${slug}/webhooks/${id}`}>
        {url}
      </Link>
      {description === '' ? null : <span className="hint block">{description}</span>}
    </>
  );
}

interface EventLabelsProps {
  readonly patterns: readonly string[];
  /** How many events of a webhook are listed; for the rest only the number is shown. */
  readonly most?: number;
}

export function EventLabels({ patterns, most = patterns.length }: EventLabelsProps) {
  const more = patterns.length - most;
  return (
    <span className="labels">
      {patterns.slice(0, most).map((pattern) => (
        <span key={pattern} className="label">
          {pattern === '*' ? 'everything' : pattern}
        </span>
      ))}
      {more > 0 ? <span className="hint">and {more} more</span> : null}
    </span>
  );
}

interface RemoveWebhookProps {
  readonly webhook: Webhook;
  readonly onRemoved?: () => void;
}

export function RemoveWebhook({ webhook: { id, url }, onRemoved }: RemoveWebhookProps) {
  const action = useAction('webhooks.remove', onRemoved === undefined ? {} : { onDone: onRemoved });
  return (
    <RemoveButton
      label={`Delete ${url}`}
      question="Delete the webhook?"
      verb="Delete it"
      input={{ params: { webhook_id: id } }}
      action={action}
    >
      <p>
        <span className="mono webhook-address">{url}</span> is told of nothing any more, and the log of its
        deliveries goes with it.
      </p>
    </RemoveButton>
  );
}
