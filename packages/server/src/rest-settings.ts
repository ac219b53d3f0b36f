import type { SignUp } from './access/sign-up.ts';
import type { OutboundRules } from './outbound/send-outbound.ts';
import { NO_CEILINGS, type NetworkCeilings } from './sandboxes/network-ceilings.ts';
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from './webhooks/webhook-settings.ts';

/** What an operator may choose of the control plane. */
export interface RestSettings {
  /** After an outage, sandboxes recover by themselves for this long; then somebody must decide. */
  readonly recoveryMs: number;
  /** How many calls with `wait_for` may be held at once. */
  readonly maxWaiters: number;
  /** Addresses of this host that callers may publish ports on, beside loopback. */
  readonly publishAddresses: readonly string[];
  /** GiB of volumes without a cap of their own, the host volumes among them. What is not used takes no space. */
  readonly defaultVolumeGib: number;
  /** How often what each volume holds is measured. */
  readonly volumeSampleMs: number;
  /** How often what each running sandbox uses is measured. */
  readonly metricSampleMs: number;
  /** For how long audit events are kept; null: for ever. */
  readonly keepEventsMs: number | null;
  /** For how long sandboxes are kept that failed and never ran; null: for ever. */
  readonly keepFailedMs: number | null;
  /** How often it is looked for runs that may not go on. */
  readonly limitCheckMs: number;
  /** How many organizations one user may own; null: as many as they like. */
  readonly maxOrganizationsPerUser: number | null;
  readonly signUp: SignUp;
  readonly networkCeilings: NetworkCeilings;
  /** Where requests to addresses go that organizations give. */
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
