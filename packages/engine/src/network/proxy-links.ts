import { settleAll } from '@svc/contract/async';
import type { HostCalls } from '../host/host-calls.ts';
import type { Link } from '../host/link-words.ts';
import { interfacesWithPrefix } from './host-routing.ts';
import type { PacketFilter } from './packet-filter.ts';
import { proxyLinkPrefix } from './ruleset.ts';
import type { PlannedLink, SlotPlans } from './slot-plans.ts';

interface ProxyLinksOptions {
  readonly instance: string;
  readonly hostCalls: Pick<HostCalls, 'deleteLink'>;
  readonly plans: Pick<SlotPlans, 'planProxyLink' | 'giveBack'>;
  readonly filter: Pick<PacketFilter, 'admit' | 'dismiss'>;
}

/** Links between this host and the network namespaces of proxies. A proxy makes its own link when it starts. */
export class ProxyLinks {
  readonly #options: ProxyLinksOptions;
  readonly #planned = new Map<Link, PlannedLink>();

  constructor(options: ProxyLinksOptions) {
    this.#options = options;
  }

  /** Removes the links of proxies of an earlier engine, also of those that still run. */
  async removeAll(): Promise<void> {
    const { hostCalls, instance } = this.#options;
    const names = await interfacesWithPrefix(proxyLinkPrefix(instance));
    await Promise.all(names.map((name) => hostCalls.deleteLink(name)));
  }

  /** Allocates a link, and lets its packets through. @throws PlatformError `insufficient_capacity` when all addresses are in use. */
  async open(): Promise<Link> {
    const { plans, filter } = this.#options;
    const planned = plans.planProxyLink();
    try {
      await filter.admit(planned.link);
    } catch (error) {
      plans.giveBack(planned);
      throw error;
    }
    this.#planned.set(planned.link, planned);
    return planned.link;
  }

  /** Returns when nothing of the link is left. Can be repeated. */
  async close(link: Link): Promise<void> {
    const { plans, filter, hostCalls } = this.#options;
    const planned = this.#planned.get(link);
    if (planned === undefined) return;
    await settleAll([filter.dismiss(planned.link), hostCalls.deleteLink(link.hostInterface)]);
    this.#planned.delete(link);
    plans.giveBack(planned);
  }
}
