import { authorize, type Authority } from '../../access/authorize-rest.ts';
import type { Identify } from '../../access/principal.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import { requireSandbox } from '../../handlers/sandboxes/rest-sandboxes.ts';
import type { Database } from '../../store/database.ts';
import type { OrganizationRecord } from '../../store/organizations.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface ChannelAccessParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly identify: Identify;
}

/** Authorizes channels: a caller who may use a sandbox over the control plane may open a channel to it. */
export class ChannelAccess {
  readonly #parts: ChannelAccessParts;

  constructor(parts: ChannelAccessParts) {
    this.#parts = parts;
  }

  /** @throws PlatformError `invalid_api_key`, `forbidden` */
  async admit(
    slug: string | undefined,
    authorization: string | undefined,
  ): Promise<Authority & { readonly organization: OrganizationRecord }> {
    const { database, identify } = this.#parts;
    const operation = { role: 'member', audience: 'both' } as const;
    const authority = await authorize(database, operation, slug, await identify(authorization));
    const { organization } = authority;
    if (organization === null) throw new Error('a channel has an organization');
    return { ...authority, organization };
  }

  /** @throws PlatformError `invalid_request`, `sandbox_not_found` */
  async find(organization: OrganizationRecord, id: string, query: unknown): Promise<SandboxRecord> {
    const [unknown] = Object.keys(query as object);
    if (unknown !== undefined) throw badField(unknown, 'is not known here');
    if (!UUID.test(id)) throw badField('sandbox_id', 'must be a UUID');
    return await requireSandbox(this.#parts.database, { organization }, { id });
  }
}
