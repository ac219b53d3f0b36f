import { parseReference, type Reference } from '@svc/contract/image-reference';
import { isDigest } from './digest.ts';
import { isOpenTo, unionOf } from './image-access.ts';
import type { ImageRecord, ImageRecords } from './image-records.ts';
import type { Image } from './images.ts';
import type { LayerStore } from './layer-store.ts';
import { formatReference, nameOf } from './reference.ts';

/** The images on this host: finds them by the names that callers use, and builds their views. */
export class LocalImages {
  readonly #records: Pick<ImageRecords, 'all' | 'find'>;
  readonly #layers: Pick<LayerStore, 'folderOf'>;
  readonly #aliases: ReadonlyMap<string, string>;

  /** `aliases` maps names to other names. */
  constructor(
    records: Pick<ImageRecords, 'all' | 'find'>,
    layers: Pick<LayerStore, 'folderOf'>,
    aliases: Readonly<Record<string, string>>,
  ) {
    this.#records = records;
    this.#layers = layers;
    this.#aliases = new Map(
      Object.entries(aliases).map(([name, target]) => [normalizedName(name), normalizedName(target)]),
    );
  }

  aliasOf(name: string): string | undefined {
    return this.#aliases.get(name);
  }

  /** Finds an image by id, exact name, pinned digest or alias, among those that the caller may use. */
  find(name: string, isOpen: (record: ImageRecord) => boolean = () => true): ImageRecord | undefined {
    if (isDigest(name)) return this.#records.all().find((record) => record.id === name && isOpen(record));
    const exact = this.#records.find(name);
    if (exact !== undefined && isOpen(exact)) return exact;
    const parsed = parseReference(name);
    if (parsed.digest !== null) return this.#pinned(parsed, isOpen);
    const alias = this.#aliases.get(name);
    // Images behind aliases are made here and are public.
    return alias === undefined || exact !== undefined ? undefined : this.#records.find(alias);
  }

  #pinned(parsed: Reference, isOpen: (record: ImageRecord) => boolean): ImageRecord | undefined {
    return this.#records
      .all()
      .find(
        (record) =>
          isOpen(record) &&
          record.reference !== null &&
          nameOf(parseReference(record.reference)) === nameOf(parsed) &&
          (record.digest === parsed.digest || record.manifestDigest === parsed.digest),
      );
  }

  /** The image with only the names that the scope may use. */
  imageFor(image: Image, scope: string): Image {
    const isOpen = (reference: string) => isOpenTo(this.#records.find(reference)?.scopes ?? null, scope);
    return { ...image, references: image.references.filter(isOpen) };
  }

  imageOf(record: ImageRecord): Image {
    const names = this.#records.all().filter(({ id }) => id === record.id);
    return {
      id: record.id,
      digest: record.digest,
      references: names.flatMap(({ reference }) => reference ?? []).sort(),
      // Overlayfs refuses one folder twice; only the uppermost occurrence of a repeated layer is visible.
      layers: record.layers
        .filter((diffId, index) => record.layers.lastIndexOf(diffId) === index)
        .map((diffId) => this.#layers.folderOf(diffId)),
      config: record.config,
      architecture: record.architecture,
      sizeBytes: record.sizeBytes,
      createdAt: record.createdAt,
      scopes: unionOf(names.map(({ scopes }) => scopes)),
    };
  }
}

export function normalizedName(reference: string): string {
  return formatReference(parseReference(reference));
}
