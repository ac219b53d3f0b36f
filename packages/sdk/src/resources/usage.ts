import { callOptionsOf } from '../client/call-budget.ts';
import { Client, type ClientCallOptions } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

export interface UsageWindow extends ClientCallOptions {
  /** RFC 3339; the start of the month unless given. */
  readonly from?: string;
  /** RFC 3339; now unless given. */
  readonly to?: string;
}

/** The usage and the limits of the organization. */
export const Usage = {
  /** Of the current month, with an estimate of what it costs. */
  async summary(options: ClientCallOptions = {}): Promise<RestCallOutput<'billing.getUsage'>> {
    return await clientOf(options).call('billing.getUsage', {}, options);
  },

  /** By sandbox and day. */
  async bySandbox(options: UsageWindow = {}): Promise<RestCallOutput<'billing.getSandboxUsage'>> {
    const call = callOptionsOf(options, { from: true, to: true });
    return await clientOf(options).call('billing.getSandboxUsage', windowOf(options), call);
  },

  /** By volume and day. */
  async byVolume(options: UsageWindow = {}): Promise<RestCallOutput<'billing.getStorageUsage'>> {
    const call = callOptionsOf(options, { from: true, to: true });
    return await clientOf(options).call('billing.getStorageUsage', windowOf(options), call);
  },

  /** The limits in force and how much of them is taken. */
  async quotas(options: ClientCallOptions = {}): Promise<RestCallOutput<'quotas.get'>> {
    return await clientOf(options).call('quotas.get', {}, options);
  },
} as const;

function clientOf({ client }: ClientCallOptions): Client {
  return client ?? Client.ofEnvironment;
}

function windowOf({ from, to }: UsageWindow): {
  readonly query: { readonly from?: string; readonly to?: string };
} {
  return { query: { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) } };
}
