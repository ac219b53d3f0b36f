import type { Volume as VolumeRecord, VolumeMetrics } from '@svc/contract/rest';
import { callOptionsOf, type CallOptions } from '../client/call-budget.ts';
import { Client, type ClientCallOptions } from '../client/client.ts';
import { requireKnownOptions } from '../client/known-options.ts';
import { SvcError } from '../svc-error.ts';
import { VolumeFiles } from './volume-files.ts';

export interface CreateVolumeOptions extends ClientCallOptions {
  /** Lowercase letters, digits and single hyphens between them. */
  readonly name: string;
  /** Limit for the size of its files; no limit of its own unless given. */
  readonly capacityGib?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Storage that outlives sandboxes. Its files can be reached with no sandbox at all. */
export class Volume {
  readonly client: Client;
  readonly files: VolumeFiles;
  #info: VolumeRecord;

  private constructor(client: Client, info: VolumeRecord) {
    this.client = client;
    this.#info = info;
    this.files = new VolumeFiles(client, info.id);
  }

  /** @throws SvcError `name_already_exists`, `quota_exceeded` */
  static async create(options: CreateVolumeOptions): Promise<Volume> {
    const call = callOptionsOf(options, { name: true, capacityGib: true, labels: true });
    const { client = Client.ofEnvironment, name, capacityGib, labels } = options;
    const body = {
      name,
      ...(capacityGib === undefined ? {} : { capacity_gib: capacityGib }),
      ...(labels === undefined ? {} : { labels: { ...labels } }),
    };
    return new Volume(client, await client.call('volumes.create', { body }, call));
  }

  /** All of the organization, its host volume included. */
  static async list(options: ClientCallOptions = {}): Promise<readonly Volume[]> {
    const { client = Client.ofEnvironment } = options;
    const records = await client.call('volumes.list', {}, options);
    return records.map((record) => new Volume(client, record));
  }

  /** By its name or its id. @throws SvcError `volume_not_found` */
  static async get(nameOrId: string, options: ClientCallOptions = {}): Promise<Volume> {
    const found = (await Volume.list(options)).find(({ id, name }) => name === nameOrId || id === nameOrId);
    if (found !== undefined) return found;
    throw new SvcError('volume_not_found', `There is no volume '${nameOrId}'`, { details: { nameOrId } });
  }

  /** The host volume of the organization: where bind mounts and disk images are. */
  static async getDefault(options: ClientCallOptions = {}): Promise<Volume> {
    const { client = Client.ofEnvironment } = options;
    return new Volume(client, await client.call('volumes.getDefault', {}, options));
  }

  get id(): string {
    return this.#info.id;
  }

  /** Null: the host volume. */
  get name(): string | null {
    return this.#info.name;
  }

  /** The record of the server as of the last call. */
  get info(): VolumeRecord {
    return this.#info;
  }

  async refresh(options: CallOptions = {}): Promise<VolumeRecord> {
    this.#info = await this.client.call('volumes.get', { params: { id: this.id } }, options);
    return this.#info;
  }

  /** `capacityGib` null: no cap of its own. `labels` replaces all of them. */
  async update(
    change: { readonly capacityGib?: number | null; readonly labels?: Readonly<Record<string, string>> },
    options: CallOptions = {},
  ): Promise<void> {
    requireKnownOptions(change, { capacityGib: true, labels: true });
    const { capacityGib, labels } = change;
    const body = {
      ...(capacityGib === undefined ? {} : { capacity_gib: capacityGib }),
      ...(labels === undefined ? {} : { labels: { ...labels } }),
    };
    this.#info = await this.client.call('volumes.update', { params: { id: this.id }, body }, options);
  }

  /** With all its files. @throws SvcError `volume_in_use` */
  async remove(options: CallOptions = {}): Promise<void> {
    await this.client.call('volumes.remove', { params: { id: this.id } }, options);
  }

  /** Its usage over time. */
  async metrics(
    options: CallOptions & { readonly rangeSeconds?: number; readonly stepSeconds?: number } = {},
  ): Promise<VolumeMetrics> {
    const call = callOptionsOf(options, { rangeSeconds: true, stepSeconds: true });
    const { rangeSeconds, stepSeconds } = options;
    const query = {
      ...(rangeSeconds === undefined ? {} : { range_secs: rangeSeconds }),
      ...(stepSeconds === undefined ? {} : { step_secs: stepSeconds }),
    };
    return await this.client.call('volumes.metrics', { params: { id: this.id }, query }, call);
  }
}
