import { PlatformError } from '@svc/contract';

/** Limits on open channels of this server. */
export interface ChannelLimits {
  readonly perSandbox: number;
  readonly perOrganization: number;
}

/** Counts open channels, so that one caller cannot take all of them. */
export class ChannelSlots {
  readonly #limits: ChannelLimits;
  readonly #bySandbox = new Map<string, number>();
  readonly #byOrganization = new Map<string, number>();

  constructor(limits: ChannelLimits) {
    this.#limits = limits;
  }

  /**
   * Takes a slot. @returns an idempotent function that releases it
   * @throws PlatformError `rate_limited`
   */
  take(sandboxId: string, organizationId: string): () => void {
    const { perSandbox, perOrganization } = this.#limits;
    requireBelow(this.#bySandbox, sandboxId, perSandbox, 'this sandbox');
    requireBelow(this.#byOrganization, organizationId, perOrganization, 'your organization');
    add(this.#bySandbox, sandboxId, 1);
    add(this.#byOrganization, organizationId, 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      add(this.#bySandbox, sandboxId, -1);
      add(this.#byOrganization, organizationId, -1);
    };
  }
}

function requireBelow(
  counts: ReadonlyMap<string, number>,
  key: string,
  maximum: number,
  whose: string,
): void {
  const open = counts.get(key) ?? 0;
  if (open < maximum) return;
  const message = `${open} channels of ${whose} are open, which is the most; close one and try again`;
  throw new PlatformError('rate_limited', message, { details: { limit: 'channels', value: open, maximum } });
}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
