import { isDeepStrictEqual } from 'node:util';
import { KeyedTurns } from '@svc/contract/async';
import type { EgressProcess } from '../egress/egress-process.ts';
import type { Pin } from '../egress/egress-messages.ts';
import type { Surroundings } from '../policy/groups.ts';
import { resolvePolicy, type ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Slot, SlotLink } from './network.ts';
import { loadRuleset, type Nft } from './nft.ts';
import { pinCommands, policyCommands, removePolicyCommands } from './policy-rules.ts';
import { rejudgeConnections } from './rejudge-connections.ts';

export interface SlotPoliciesOptions {
  readonly instance: string;
  readonly nft: Pick<Nft, 'run'>;
  readonly egress: () => Pick<EgressProcess, 'setPolicy'> | null;
  readonly surroundings: () => Surroundings;
}

interface Held {
  readonly key: string;
  readonly link: SlotLink;
  readonly policy: ResolvedPolicy;
}

const DEFAULT = resolvePolicy(undefined);

/**
 * The policies of slots that have one of their own, in the packet filter and in the egress process alike. Slots without one have the
 * default, which costs nothing. Changes of one slot follow each other, and what is pinned for it waits for them.
 */
export class SlotPolicies {
  readonly #options: SlotPoliciesOptions;
  readonly #held = new Map<string, Held>();
  readonly #turns = new KeyedTurns();

  constructor(options: SlotPoliciesOptions) {
    this.#options = options;
  }

  /** What an egress process has to know that starts now: policies by the address of their sandbox. */
  byAddress(): ReadonlyMap<string, ResolvedPolicy> {
    return new Map([...this.#held.values()].map(({ link, policy }) => [link.address, policy]));
  }

  /** Forgets everything and takes these; returns the commands that make them hold, to be loaded with the whole ruleset. */
  restore(slots: readonly Slot[], policies: ReadonlyMap<string, ResolvedPolicy>): string {
    this.#held.clear();
    for (const { key, link } of slots) {
      const policy = policies.get(key);
      if (link !== null && policy !== undefined && !isDeepStrictEqual(policy, DEFAULT))
        this.#held.set(key, { key, link, policy });
    }
    return [...this.#held.values()]
      .map(({ key, link, policy }) =>
        policyCommands(this.#options.instance, slotOf(key, link), policy, [], null),
      )
      .join('\n');
  }

  /** From now on the policy holds, for connections that exist too. */
  async set({ key, link }: Slot, policy: ResolvedPolicy): Promise<void> {
    if (link === null) return;
    await this.#turns.take(key, async () => {
      const before = this.#held.get(key);
      const old = before?.policy ?? null;
      if (isDeepStrictEqual(policy, old ?? DEFAULT)) return;
      const { instance, egress, surroundings } = this.#options;
      // Held first: an egress process that starts from here on knows it.
      this.#held.set(key, { key, link, policy });
      const pins = (await egress()?.setPolicy(link.address, policy)) ?? [];
      try {
        await loadRuleset(policyCommands(instance, slotOf(key, link), policy, pins, old));
      } catch (error) {
        // Both go on with the old one.
        if (before === undefined) this.#held.delete(key);
        else this.#held.set(key, before);
        await egress()?.setPolicy(link.address, old);
        throw error;
      }
      await rejudgeConnections(link.address, policy, pins, surroundings());
    });
  }

  async remove(key: string): Promise<void> {
    await this.#turns.take(key, async () => {
      const held = this.#held.get(key);
      if (held === undefined) return;
      const { link, policy } = held;
      await this.#options.egress()?.setPolicy(link.address, null);
      await loadRuleset(removePolicyCommands(this.#options.instance, slotOf(key, link), policy));
      this.#held.delete(key);
    });
  }

  /** Lets rules about names know what the sandbox at `address` is about to be told. */
  async pin(address: string, pins: readonly Pin[]): Promise<void> {
    const key = [...this.#held.values()].find(({ link }) => link.address === address)?.key;
    if (key === undefined) return;
    await this.#turns.take(key, async () => {
      const held = this.#held.get(key);
      if (held === undefined) return;
      const commands = pinCommands(this.#options.instance, key, held.policy, pins);
      if (commands.length > 0) await this.#options.nft.run(commands.join('; '));
    });
  }
}

function slotOf(key: string, link: SlotLink): { readonly key: string; readonly hostInterface: string } {
  return { key, hostInterface: link.hostInterface };
}
