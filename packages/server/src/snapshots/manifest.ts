import type { SnapshotView } from '@svc/engine/client';

const SCHEMA = 'svc.snapshot/v1';

/** What a snapshot was made of, in the words of the public API. */
export function describeManifest(
  view: SnapshotView,
  labels: Readonly<Record<string, string>>,
  sandboxName: string,
): Readonly<Record<string, unknown>> {
  return {
    schema: SCHEMA,
    artifact: 'disk',
    scope: 'disk',
    created_at: view.createdAt,
    image: { ref: view.image.reference, manifest_digest: view.image.id },
    state: {
      type: 'file',
      format: 'raw',
      fstype: 'ext4',
      upper: { file: 'disk', size_bytes: view.sizeBytes, integrity: view.digest },
    },
    labels,
    extensions: {},
    requires: [],
    parent: null,
    source_sandbox: sandboxName,
  };
}
