import { parseReference } from '@svc/contract/image-reference';
import { addImage, type AddOptions } from './add-image.ts';
import type { ArchiveContents } from './archive-contents.ts';
import { checkDigest, digestOf, hexOf } from './digest.ts';
import { hostArchitecture } from './host-architecture.ts';
import { refused } from './image-failures.ts';
import type { ImageRecord } from './image-records.ts';
import type { LayerArchive } from './layer-archive.ts';
import {
  checkImage,
  chooseManifest,
  parseConfig,
  parseManifestOrList,
  type Manifest,
  type ManifestList,
} from './oci-documents.ts';

const REF_NAME = 'org.opencontainers.image.ref.name';

/** https://github.com/opencontainers/image-spec/blob/main/image-layout.md */
export async function importOciLayout(
  contents: ArchiveContents,
  reference: string,
  options: AddOptions,
): Promise<ImageRecord> {
  const index = parseManifestOrList(await contents.read('index.json'));
  if (!('manifests' in index)) throw refused('index.json is not a list of manifests');
  const { digest } = chooseByName(index, reference);
  const { manifest, manifestDigest } = await readManifest(contents, digest);
  const config = parseConfig(await readBlob(contents, manifest.config.digest));
  checkImage(manifest, config, options.limits, hostArchitecture());
  const archive = (place: number): LayerArchive => {
    const layer = manifest.layers[place]?.digest ?? '';
    return { type: 'file', path: contents.path(blobName(layer)), digest: layer };
  };
  return addImage(reference, { config, digest, manifestDigest, archive }, options);
}

/** Chooses among several images of a layout: the one named like the reference or its tag, or else the only one. */
function chooseByName(index: ManifestList, reference: string): { readonly digest: string } {
  const { tag } = parseReference(reference);
  const names = index.manifests.map(({ annotations }) => annotations?.[REF_NAME]);
  const named = index.manifests.filter(
    (_manifest, place) => names[place] === tag || names[place] === reference,
  );
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  const different = new Set(names);
  if (different.size > 1) {
    throw refused(
      `the layout holds several (${[...different].slice(0, 10).join(', ')}); give the import one of these as its tag`,
    );
  }
  return chooseManifest(index, hostArchitecture());
}

async function readManifest(
  contents: ArchiveContents,
  digest: string,
): Promise<{ readonly manifest: Manifest; readonly manifestDigest: string }> {
  const document = parseManifestOrList(await readBlob(contents, digest));
  if (!('manifests' in document)) return { manifest: document, manifestDigest: digest };
  const chosen = chooseManifest(document, hostArchitecture());
  const manifest = parseManifestOrList(await readBlob(contents, chosen.digest));
  if ('manifests' in manifest) throw refused('its list of manifests leads to another list');
  return { manifest, manifestDigest: chosen.digest };
}

async function readBlob(contents: ArchiveContents, digest: string): Promise<Buffer> {
  const bytes = await contents.read(blobName(digest));
  checkDigest('document', digest, digestOf(bytes));
  return bytes;
}

function blobName(digest: string): string {
  return `blobs/sha256/${hexOf(digest)}`;
}
