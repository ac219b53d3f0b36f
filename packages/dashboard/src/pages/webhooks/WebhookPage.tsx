import { useState } from 'react';
import { changeShown } from '../../api/change-shown.ts';
import { useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { LoadingPage } from '../../parts/Loading.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { navigate } from '../../router/location.ts';
import type { PathParams } from '../../router/match-path.ts';
import { Deliveries, SentNow } from './Deliveries.tsx';
import { EditWebhook, RotateSecret, type Webhook } from './WebhookForm.tsx';
import { EventLabels, RemoveWebhook } from './WebhooksPage.tsx';
import { WebhookState } from './WebhookState.tsx';
import './webhooks.css';

const LIVE_MS = 5000;

/** One webhook: its events, its deliveries and its actions. */
export function WebhookPage({ params: { id = '' } }: { readonly params: PathParams }) {
  const { data: webhook, error } = useCall(
    'webhooks.get',
    { params: { webhook_id: id } },
    { everyMs: LIVE_MS },
  );
  const test = useAction('webhooks.test');
  if (webhook === undefined)
    return error === null ? (
      <LoadingPage />
    ) : (
      <Page title="Webhook">
        <Failure error={error} />
      </Page>
    );
  return (
    <Page
      title={new URL(webhook.url).host}
      mark={<WebhookState {...webhook} />}
      hint={webhook.description === '' ? undefined : webhook.description}
      actions={
        <Actions
          webhook={webhook}
          isTesting={test.isPending}
          onTest={() => test.mutate({ params: { webhook_id: id } })}
        />
      }
    >
      {error === null ? null : <Failure error={error} />}
      {test.error === null ? null : <Failure error={test.error} />}
      {test.data === undefined ? null : <SentNow what="The test" delivery={test.data} />}
      <Facts webhook={webhook} />
      <Deliveries webhookId={id} />
    </Page>
  );
}

interface ActionsProps {
  readonly webhook: Webhook;
  readonly isTesting: boolean;
  readonly onTest: () => void;
}

function Actions({ webhook, isTesting, onTest }: ActionsProps) {
  const { slug } = useOrganization();
  const [open, setOpen] = useState<'edit' | 'rotate' | null>(null);
  const close = (): void => setOpen(null);
  return (
    <>
      <Button look="primary" isBusy={isTesting} onClick={onTest}>
        Send a test
      </Button>
      <Switch webhook={webhook} />
      <Button icon="pencil" onClick={() => setOpen('edit')}>
        Change
      </Button>
      <Button icon="key" onClick={() => setOpen('rotate')}>
        New secret
      </Button>
      <RemoveWebhook webhook={webhook} onRemoved={() => navigate(`/orgs/${slug}/webhooks`)} />
      {open === 'edit' ? <EditWebhook webhook={webhook} onClose={close} /> : null}
      {open === 'rotate' ? <RotateSecret id={webhook.id} onClose={close} /> : null}
    </>
  );
}

function Switch({ webhook: { id, enabled } }: { readonly webhook: Webhook }) {
  const change = useAction('webhooks.update', {
    optimistically: (cache, { body }) =>
      changeShown(cache, ['webhooks.get', 'webhooks.list'], { id }, { ...body, disabled_reason: null }),
  });
  const turn = (): void =>
    change.mutate(
      { params: { webhook_id: id }, body: { enabled: !enabled } },
      { onError: (error) => showToast(`It stays ${enabled ? 'enabled' : 'disabled'}`, error) },
    );
  return (
    <Button icon={enabled ? 'stop' : 'play'} isBusy={change.isPending} onClick={turn}>
      {enabled ? 'Disable' : 'Enable'}
    </Button>
  );
}

function Facts({ webhook }: { readonly webhook: Webhook }) {
  return (
    <Panel title="Events">
      <dl className="facts webhook-facts">
        <div>
          <dt>Address</dt>
          <dd className="mono">{webhook.url}</dd>
        </div>
        <div>
          <dt>Events</dt>
          <dd>
            <EventLabels patterns={webhook.event_types} />
          </dd>
        </div>
        {webhook.disabled_reason === null ? null : (
          <div>
            <dt>Disabled because</dt>
            <dd>{webhook.disabled_reason}</dd>
          </div>
        )}
        {webhook.failing_since === null ? null : (
          <div>
            <dt>Every attempt failed since</dt>
            <dd>
              <Time at={webhook.failing_since} />
            </dd>
          </div>
        )}
        {webhook.previous_secret_until === null ? null : (
          <div>
            <dt>The previous secret is valid until</dt>
            <dd>
              <Time at={webhook.previous_secret_until} />
            </dd>
          </div>
        )}
      </dl>
    </Panel>
  );
}
