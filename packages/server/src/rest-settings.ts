import type { SignUp } from './access/sign-up.ts';
import type { OutboundRules } from './outbound/send-outbound.ts';
import { NO_CEILINGS, type NetworkCeilings } from './sandboxes/network-ceilings.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from './webhooks/webhook-settings.ts';

/** Settings of the control plane. */
export interface RestSettings {
  /** After an outage, sandboxes recover automatically for this long; then a caller must decide. */
  readonly recoveryMs: number;
  /** How many calls with `wait_for` may be held at once. */
  readonly maxWaiters: number;
  /** Addresses of this host that callers may publish ports on, besides loopback. */
  readonly publishAddresses: readonly string[];
  /** Size in GiB of volumes without a cap of their own, including host volumes. Unused space is not allocated. */
  readonly defaultVolumeGib: number;
  /** Interval between measurements of each volume's contents. */
  readonly volumeSampleMs: number;
  /** Interval between measurements of each running sandbox's resources. */
  readonly metricSampleMs: number;
  /** For how long audit events are kept; null: for ever. */
  readonly keepEventsMs: number | null;
  /** For how long sandboxes are kept that failed and never ran; null: for ever. */
  readonly keepFailedMs: number | null;
  /** Interval between checks for runs that exceed a limit. */
  readonly limitCheckMs: number;
  /** How many organizations one user may own; null: no limit. */
  readonly maxOrganizationsPerUser: number | null;
  readonly signUp: SignUp;
  readonly networkCeilings: NetworkCeilings;
  /** Rules for requests to addresses that organizations configure. */
  readonly outbound: OutboundRules;
  readonly webhooks: WebhookSettings;
}

export const DEFAULT_REST_SETTINGS: RestSettings = {
  recoveryMs: 10 * 60_000,
  maxWaiters: 1024,
  publishAddresses: [],
  defaultVolumeGib: 10,
  volumeSampleMs: 60_000,
  metricSampleMs: 5000,
  keepEventsMs: 90 * 24 * 60 * 60_000,
  keepFailedMs: 24 * 60 * 60_000,
  limitCheckMs: 30_000,
  maxOrganizationsPerUser: 20,
  signUp: 'invited',
  networkCeilings: NO_CEILINGS,
  outbound: { mayReachInside: false },
  webhooks: DEFAULT_WEBHOOK_SETTINGS,
};
