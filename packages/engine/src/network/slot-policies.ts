import { isDeepStrictEqual } from 'node:util';
import { KeyedMutex } from '@svc/contract/async';
import type { Logger } from 'pino';
import type { Egress, HeldRules } from '../egress/egress.ts';
import type { Pin } from '../egress/egress-messages.ts';
import { NO_INTERCEPTION } from '../egress/proxied-sandboxes.ts';
import type { ProxiedRules, ScopeKey } from '../egress/proxies.ts';
import type { AuthorityPem } from '../egress/tls/installation-authority.ts';
import type { HostNetworks } from '../policy/groups.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { StoredPins } from './stored-pins.ts';
import { readTraffic } from './link-traffic.ts';
import type { Slot, SlotLink } from './network.ts';
import { RulesetLoads, type Nft } from './nft.ts';
import {
  isProxied,
  pinCommands,
  policyCommands,
  removePolicyCommands,
  type PolicySlot,
  type SlotRules,
} from './policy-rules.ts';
import { rejudgeConnections } from './rejudge-connections.ts';
import { closeProxyChain } from './ruleset.ts';

export interface SlotPoliciesOptions {
  readonly instance: string;
  readonly hasIpv6: boolean;
  readonly nft: Pick<Nft, 'run'>;
  readonly egress: () => Pick<Egress, 'hold' | 'setScope'> | null;
  readonly hostNetworks: () => HostNetworks;
  /** Signs certificates for intercepted hosts. */
  readonly authority: () => AuthorityPem;
  readonly logger: Pick<Logger, 'warn'>;
  /** The file of the resolved addresses. */
  readonly pinsFile: string;
}

interface Held extends SlotRules {
  readonly key: string;
  readonly link: SlotLink;
}

const DEFAULT_POLICY = resolvePolicy(undefined);

/**
 * Applies the policies of slots to the packet filter, the resolver and the proxies. Slots without a policy have the default one, which
 * needs no entry. Changes and pins of one slot happen one after the other.
 */
export class SlotPolicies {
  readonly #options: SlotPoliciesOptions;
  readonly #held = new Map<string, Held>();
  /** The scopes of sandboxes by their addresses, also of those with the default policy. */
  readonly #scopes = new Map<string, ScopeKey>();
  readonly #mutex = new KeyedMutex();
  readonly #loads = new RulesetLoads();
  readonly #pins: StoredPins;

  constructor(options: SlotPoliciesOptions) {
    this.#options = options;
    this.#pins = new StoredPins(options.pinsFile, options.logger);
  }

  /** The rules for a process that starts now, by the addresses of sandboxes. */
  byAddress(): HeldRules {
    const all = [...this.#held.values()];
    return {
      policies: new Map(all.map(({ link, policy }) => [link.address, policy])),
      proxied: new Map(
        all.flatMap((held) => {
          const rules = this.#proxiedRules(held);
          return rules === null ? [] : [[held.link.address, rules] as const];
        }),
      ),
      scopes: this.#scopes,
    };
  }

  /** The addresses that a sandbox has resolved and that have not expired. */
  pinsOf(address: string): readonly Pin[] {
    return this.#pins.of(address);
  }

  /** The key of the slot with this address, if it has rules. */
  keyOf(address: string): string | undefined {
    return [...this.#held.values()].find(({ link }) => link.address === address)?.key;
  }

  /** Replaces all rules by these; returns the commands for them, to be loaded with the whole ruleset. */
  restore(slots: readonly Slot[], kept: ReadonlyMap<string, SlotRules>): string {
    this.#held.clear();
    this.#scopes.clear();
    for (const { key, link } of slots) {
      const given = kept.get(key);
      const rules = given === undefined ? null : simplified(given);
      if (link !== null && given !== undefined) this.#scopes.set(link.address, given.scope);
      if (link !== null && rules !== null) this.#held.set(key, { key, link, ...rules });
    }
    this.#pins.load(new Set([...this.#held.values()].map(({ link }) => link.address)));
    const { instance } = this.#options;
    const scopes = new Set([...this.byAddress().proxied.values()].map(({ scope }) => scope));
    return [
      ...[...scopes].map((scope) => closeProxyChain(instance, scope)),
      ...[...this.#held.values()].map(({ key, link, ...rules }) =>
        policyCommands(instance, this.#slotOf(key, link), rules, this.#pins.of(link.address), null),
      ),
    ].join('\n');
  }

  /** Applies the rules, also to existing connections. */
  async set({ key, link }: Slot, given: SlotRules): Promise<void> {
    if (link === null) return;
    await this.#mutex.run(key, async () => {
      this.#scopes.set(link.address, given.scope);
      this.#options.egress()?.setScope(link.address, given.scope);
      const before = this.#held.get(key);
      // A slot that had rules keeps its chains, also for the default.
      const rules = simplified(given) ?? (before === undefined ? null : given);
      if (rules === null || (before !== undefined && isDeepStrictEqual(rules, rulesOf(before)))) return;
      const { instance, egress } = this.#options;
      const held = { key, link, ...rules };
      // Held first, so that a process that starts from here on has it.
      this.#held.set(key, held);
      try {
        const pins = (await egress()?.hold(link.address, rules.policy, this.#proxiedRules(held))) ?? [];
        await this.#loads.load(
          policyCommands(instance, this.#slotOf(key, link), rules, pins, before?.policy ?? null),
        );
        await this.#rejudge(held, pins);
      } catch (error) {
        // Resolver and proxy continue with the old policy.
        if (before === undefined) this.#held.delete(key);
        else this.#held.set(key, before);
        await egress()?.hold(
          link.address,
          before?.policy ?? null,
          before === undefined ? null : this.#proxiedRules(before),
        );
        throw error;
      }
    });
  }

  /** Ends connections from before a restart that the operator's lowered ceiling denies. */
  async holdToCeilings(): Promise<void> {
    const held = [...this.#held.values()].filter(({ policy }) => policy.ceilings.length > 0);
    await Promise.all(held.map((each) => this.#rejudge(each, this.#pins.of(each.link.address))));
  }

  /** Ends existing connections that the new rules deny. The rules apply to new ones already, so a failure is a warning only. */
  async #rejudge({ link, policy, interception }: Held, pins: readonly Pin[]): Promise<void> {
    const { hostNetworks, logger } = this.#options;
    // A sandbox that has sent nothing has no connections, and most get their rules before they run.
    if (readTraffic({ link }).sentBytes === 0) return;
    const ports =
      interception?.readsPlainHttp === true ? 'all' : new Set(interception?.interceptedPorts ?? []);
    const addresses = [link.address, ...(link.ipv6 === undefined ? [] : [link.ipv6.address])];
    await rejudgeConnections({ addresses, policy, ports }, pins, hostNetworks()).catch((error: unknown) =>
      logger.warn({ error, address: link.address }, 'Connections from before a change of rules may go on'),
    );
  }

  #proxiedRules({ policy, interception, scope }: SlotRules): ProxiedRules | null {
    if (!isProxied(policy, interception)) return null;
    const { maxConnections } = policy;
    const authority = this.#options.authority();
    const settings = { ...(interception ?? NO_INTERCEPTION), maxConnections, authority };
    return { scope, policy, settings };
  }

  #slotOf(key: string, { hostInterface }: SlotLink): PolicySlot {
    return { key, hostInterface, hasIpv6: this.#options.hasIpv6 };
  }

  async remove({ key, link: left }: Slot): Promise<void> {
    await this.#mutex.run(key, async () => {
      if (left !== null) this.#scopes.delete(left.address);
      const held = this.#held.get(key);
      if (held === undefined) return;
      const { link, policy } = held;
      this.#pins.forget(link.address);
      await this.#options.egress()?.hold(link.address, null, null);
      await this.#loads.load(removePolicyCommands(this.#options.instance, this.#slotOf(key, link), policy));
      this.#held.delete(key);
    });
  }

  /** Adds the addresses of an answer to the rules about names, before the sandbox at `address` gets the answer. */
  async pin(address: string, pins: readonly Pin[]): Promise<void> {
    const key = this.keyOf(address);
    if (key === undefined) return;
    await this.#mutex.run(key, async () => {
      const held = this.#held.get(key);
      if (held === undefined) return;
      this.#pins.keep(address, pins);
      const commands = pinCommands(this.#options.instance, this.#slotOf(key, held.link), held.policy, pins);
      if (commands.length > 0) await this.#options.nft.run(commands.join('; '));
    });
  }
}

/** The default policy below ceilings that leave public addresses open is the default policy, which needs no chains: null. */
function simplified(rules: SlotRules): SlotRules | null {
  const { ceilings } = rules.policy;
  const isOpen = ceilings.every(({ groups }) => groups.includes('public'));
  const bare = { ...rules.policy, ceilings: isOpen ? [] : ceilings };
  return rules.interception === null && isDeepStrictEqual(bare, DEFAULT_POLICY) ? null : rules;
}

function rulesOf({ policy, interception, scope }: SlotRules): SlotRules {
  return { policy, interception, scope };
}
