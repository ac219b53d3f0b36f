import { parseBoundedJson } from '@svc/contract/bounded-json';
import { parseReference } from '@svc/contract/image-reference';
import { Type, type Static } from 'typebox';
import { Value } from 'typebox/value';
import { addImage, type AddOptions } from './add-image.ts';
import type { ArchiveContents } from './archive-contents.ts';
import { hostArchitecture } from './host-architecture.ts';
import { refused } from './image-failures.ts';
import type { ImageRecord } from './image-records.ts';
import type { LayerArchive } from './layer-archive.ts';
import { checkArchitecture, checkLayerCount, parseConfig } from './oci-documents.ts';
import { formatReference } from './reference.ts';

const Saved = Type.Object({
  Config: Type.String(),
  RepoTags: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
  Layers: Type.Array(Type.String(), { maxItems: 10_000 }),
});
type Saved = Static<typeof Saved>;

/** Imports the format of `docker save`, which has no digests of compressed layers: each layer is identified by its diff id. */
export async function importDockerArchive(
  contents: ArchiveContents,
  reference: string,
  options: AddOptions,
): Promise<ImageRecord> {
  const saved = choose(parseList(await contents.read('manifest.json')), reference);
  const config = parseConfig(await contents.read(saved.Config));
  checkArchitecture(config, hostArchitecture());
  checkLayerCount(config, options.limits);
  if (saved.Layers.length !== config.diffIds.length)
    throw refused('its manifest and its configuration list different layers');
  const archive = (place: number): LayerArchive => ({
    type: 'file',
    path: contents.path(saved.Layers[place] ?? ''),
    digest: null,
  });
  return addImage(reference, { config, digest: null, manifestDigest: null, archive }, options);
}

function parseList(bytes: Buffer): readonly Saved[] {
  let list: unknown;
  try {
    list = parseBoundedJson(bytes);
  } catch (error) {
    throw refused('manifest.json is not JSON', error);
  }
  if (!Value.Check(Type.Array(Saved, { maxItems: 1000 }), list))
    throw refused('manifest.json does not list images');
  return list;
}

/** Chooses among several images of an archive: the one tagged like the reference, or else the only one. */
function choose(list: readonly Saved[], reference: string): Saved {
  const [only, ...others] = list;
  if (only === undefined) throw refused('the archive holds no image');
  if (others.length === 0) return only;
  const tagged = list.find(({ RepoTags }) => RepoTags?.some((tag) => isSame(tag, reference)));
  if (tagged !== undefined) return tagged;
  const tags = list.flatMap(({ RepoTags }) => RepoTags ?? []);
  throw refused(
    `the archive holds several (${tags.slice(0, 10).join(', ')}); import one of them by its name`,
  );
}

function isSame(tag: string, reference: string): boolean {
  try {
    return formatReference(parseReference(tag)) === reference;
  } catch {
    // A tag that is not a valid reference cannot match.
    return false;
  }
}
