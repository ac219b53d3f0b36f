import type { ClientPolicies } from './client-policies.ts';
import type { ProxiedSandbox } from './egress-messages.ts';
import type { ProxiedSandboxes } from './proxied-sandboxes.ts';
import type { TransparentProxy } from './proxy/transparent-proxy.ts';
import type { DecisionReports } from './decision-reports.ts';

interface ReadSandboxesParts {
  readonly policies: ClientPolicies;
  readonly sandboxes: ProxiedSandboxes;
  readonly proxy: Pick<TransparentProxy, 'forget' | 'rejudge'>;
  readonly reports: Pick<DecisionReports, 'forget'>;
}

/** Updates the state of a proxy's sandboxes together: policy, names, settings, and the open connections that depend on them. */
export class ReadSandboxes {
  readonly #parts: ReadSandboxesParts;

  constructor(parts: ReadSandboxesParts) {
    this.#parts = parts;
  }

  /** null: the sandbox is gone, and its connections are closed. */
  set(client: string, sandbox: ProxiedSandbox | null): void {
    const { policies, sandboxes, proxy, reports } = this.#parts;
    policies.set(client, sandbox?.policy ?? null);
    policies.remember(client, sandbox?.pins ?? []);
    // Changed inspection closes all connections; a changed policy closes only those that it forbids.
    if (sandboxes.set(client, sandbox?.settings ?? null)) proxy.forget(client);
    else proxy.rejudge(client);
    if (sandbox === null) reports.forget(client);
  }
}
