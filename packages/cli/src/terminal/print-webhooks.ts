import type { NewWebhook, Webhook, WebhookDelivery } from '@svc/sdk';
import { formatAge } from './amounts.ts';
import { print, report, reportEntry } from './print.ts';
import { formatTable } from './table.ts';

/** Prints only the secret, for a variable or a file; a call that was repeated after its answer was lost returns none. */
export function printWebhookSecret({ id, secret }: NewWebhook): void {
  if (secret !== null) print(secret);
  const lost =
    secret === null
      ? '; its secret was lost on the way: svc webhook rotate'
      : '; try it with: svc webhook test';
  report(`webhook ${id}${lost} ${id}`);
}

export function printWebhooks(webhooks: readonly Webhook[]): void {
  const now = Date.now();
  const rows = webhooks.map((webhook) => [
    webhook.id,
    webhook.url,
    webhook.event_types.join(','),
    stateOf(webhook),
    formatAge(webhook.created_at, now),
  ]);
  print(formatTable(['ID', 'URL', 'EVENTS', 'STATE', 'AGE'], rows));
}

function stateOf({ enabled, disabled_reason: reason, failing_since: since }: Webhook): string {
  if (!enabled) return reason === null ? 'disabled' : 'disabled: it failed';
  return since === null ? 'enabled' : 'failing';
}

export function printDeliveries(deliveries: readonly WebhookDelivery[]): void {
  const now = Date.now();
  const rows = deliveries.map((delivery) => [
    delivery.id,
    delivery.event_type,
    delivery.status,
    String(delivery.attempts.length),
    delivery.attempts.at(-1)?.status?.toString() ?? '-',
    delivery.attempts.at(-1)?.error ?? '-',
    formatAge(delivery.created_at, now),
  ]);
  print(formatTable(['ID', 'EVENT', 'STATE', 'ATTEMPTS', 'STATUS', 'ERROR', 'AGE'], rows));
}

/** @returns whether the delivery succeeded */
export function reportAttempt({ id, status, attempts }: WebhookDelivery): boolean {
  const last = attempts.at(-1);
  if (last === undefined) report(`delivery ${id} is on its way: svc webhook deliveries`);
  else if (status === 'succeeded') report(`taken with ${last.status} after ${last.latency_ms} ms`);
  else {
    reportEntry(`not taken: ${last.error}`);
    // The receiver chooses its answer, so its lines must not look like ours.
    if (last.response !== '') for (const line of last.response.split('\n')) reportEntry(`  | ${line}`);
  }
  return status === 'succeeded';
}
