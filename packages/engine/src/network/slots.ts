import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { settleAll } from '@svc/contract/async';
import type { Logger } from 'pino';
import type { HostCalls } from '../host/host-calls.ts';
import { interfacesWithPrefix } from './host-routing.ts';
import type { RequestedInterface } from './requested-interface.ts';
import type { Reach, Slot, SlotLink } from './network.ts';
import type { PacketFilter } from './packet-filter.ts';
import { linkPrefix, proxyLinkPrefix } from './ruleset.ts';
import type { SlotPlans } from './slot-plans.ts';
import type { SlotRecord, SlotRecords } from './slot-records.ts';

const LINK_POLL_MS = 5;
const LINK_TIMEOUT_MS = 500;

interface SlotsOptions {
  readonly instance: string;
  readonly hostCalls: HostCalls;
  readonly logger: Pick<Logger, 'warn'>;
  readonly plans: SlotPlans;
  readonly records: SlotRecords;
  readonly filter: Pick<PacketFilter, 'admit' | 'dismiss'>;
  /** Called while the namespaces of a slot are removed: its counters can still be read. */
  readonly onLeaving: (slot: Slot) => Promise<void>;
  /** Called when the packet filter has no entry of the slot any more. */
  readonly onLeft: (slot: Slot) => Promise<void>;
}

/** All slots of the engine: being made, prepared, in use or being removed. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #byKey = new Map<string, SlotRecord>();
  readonly #removing = new Map<string, Promise<void>>();

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#byKey.size;
  }

  withLink(isMeant: (link: SlotLink) => boolean): Slot | undefined {
    return this.#byKey.values().find(({ slot: { link } }) => link !== null && isMeant(link))?.slot;
  }

  /** Takes over the slots of an earlier process from their records. Returns those to keep that still exist. */
  async adopt(keep: ReadonlySet<string>): Promise<readonly Slot[]> {
    const { plans, records } = this.#options;
    for (const record of this.#byKey.values()) plans.giveBack(record);
    this.#byKey.clear();
    for (const key of await records.keys()) {
      const record = await records.read(key);
      if (record === null) continue;
      this.#byKey.set(key, record);
      plans.reserve(record);
    }
    const kept = [...this.#byKey.values()].map(({ slot }) => slot).filter(({ key }) => keep.has(key));
    const pinned = await Promise.all(kept.map(({ key }) => records.isPinned(key)));
    return kept.filter((_, position) => pinned[position]);
  }

  /** Removes all slots and their links but these. */
  async removeOthers(kept: readonly Slot[]): Promise<void> {
    const keys = new Set(kept.map(({ key }) => key));
    const names = new Set(kept.map(({ link }) => link?.hostInterface));
    const { hostCalls, instance, records } = this.#options;
    await Promise.all(
      (await records.keys())
        .filter((key) => !keys.has(key))
        .map(async (key) => {
          if (this.#byKey.has(key)) return this.release(key);
          // Killed before its record was complete.
          await hostCalls.removeNamespaces(records.userPath(key), records.networkPath(key));
          records.remove(key);
        }),
    );
    const links = await interfacesWithPrefix(linkPrefix(instance));
    const unused = links.filter((name) => !names.has(name) && !name.startsWith(proxyLinkPrefix(instance)));
    await Promise.all(unused.map((name) => hostCalls.deleteLink(name)));
  }

  async make(reach: Reach, requested: RequestedInterface | null = null): Promise<Slot> {
    const { plans, records, logger } = this.#options;
    const record = plans.plan(reach, requested);
    const { slot } = record;
    this.#byKey.set(slot.key, record);
    try {
      records.write(record);
      // In parallel, because packets of an interface without an element are dropped.
      await settleAll([this.#createNamespaces(slot), this.#admit(slot)]);
      return slot;
    } catch (error) {
      // The first error counts; what cannot be removed now is removed by the next `recover`.
      await this.release(slot.key).catch((failure: unknown) => {
        logger.warn({ error: failure, slot: slot.key }, 'A network slot that failed could not be removed');
      });
      throw error;
    }
  }

  /** Returns when nothing of the slot is left. Can be repeated; concurrent calls wait for the same removal. */
  async release(key: string): Promise<void> {
    const record = this.#byKey.get(key);
    if (record === undefined) return;
    const removing =
      this.#removing.get(key) ?? this.#remove(record).finally(() => this.#removing.delete(key));
    this.#removing.set(key, removing);
    await removing;
  }

  async #createNamespaces({ userNamespace, networkNamespace, idBase, link }: Slot): Promise<void> {
    await this.#options.hostCalls.createNamespaces({
      userPath: userNamespace,
      networkPath: networkNamespace,
      idBase,
      link,
    });
  }

  async #admit({ link }: Slot): Promise<void> {
    if (link !== null) await this.#options.filter.admit(link);
  }

  /** The index, and with it address and ids, is free again only when nothing of the slot is left. */
  async #remove(record: SlotRecord): Promise<void> {
    const { slot } = record;
    const { hostCalls, plans, records, filter, onLeaving, onLeft } = this.#options;
    const { userNamespace, networkNamespace, link } = slot;
    await settleAll([
      hostCalls.removeNamespaces(userNamespace, networkNamespace),
      link === null ? null : filter.dismiss(link),
      onLeaving(slot),
    ]);
    await onLeft(slot);
    if (link !== null) await waitUntilLinkIsGone(link.hostInterface, hostCalls);
    records.remove(slot.key);
    this.#byKey.delete(slot.key);
    plans.giveBack(record);
  }
}

/**
 * The kernel removes a veth with its namespace, in the background and in batches, which is far cheaper than deleting it; but a
 * namespace with references keeps its veth. After a timeout it is deleted, which disconnects the sandbox.
 */
async function waitUntilLinkIsGone(name: string, hostCalls: HostCalls): Promise<void> {
  const deadline = performance.now() + LINK_TIMEOUT_MS;
  while (existsSync(`/sys/class/net/${name}`)) {
    if (performance.now() > deadline) return hostCalls.deleteLink(name);
    await delay(LINK_POLL_MS);
  }
}
