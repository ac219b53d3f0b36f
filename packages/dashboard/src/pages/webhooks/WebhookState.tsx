import type { Webhook } from './WebhookForm.tsx';

export function WebhookState({ enabled, disabled_reason: reason, failing_since: since }: Webhook) {
  if (!enabled)
    return reason === null ? (
      <span className="status rest">disabled</span>
    ) : (
      <span className="status bad" title={reason}>
        disabled: it failed
      </span>
    );
  return since === null ? (
    <span className="status good">enabled</span>
  ) : (
    <span className="status warn">failing</span>
  );
}
