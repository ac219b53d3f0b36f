import { createHash } from 'node:crypto';
import type { Snapshot } from '@svc/contract/rest';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { SnapshotRecord } from '../../store/snapshots.ts';
import { isReferenceClient } from '../sandboxes/reference-client.ts';

/** A snapshot as the control plane shows it to the caller. */
export function snapshotViewFor(call: Pick<RestCall, 'userAgent'>): (record: SnapshotRecord) => Snapshot {
  return isReferenceClient(call) ? toReferenceView : toView;
}

function toView(record: SnapshotRecord): Snapshot {
  return {
    kind: 'disk',
    id: record.id,
    name: record.name,
    location: { type: 'managed', id: record.id },
    digest: record.digest,
    size_bytes: record.sizeBytes,
    manifest: record.manifest,
    labels: record.labels,
    sandbox_id: record.sandboxId,
    created_at: record.createdAt,
  };
}

/**
 * The reference client reads the manifest as a descriptor of its own, and checks the digest against the descriptor's canonical text:
 * fields in this order, without white space, labels sorted by the bytes of their names.
 */
function toReferenceView(record: SnapshotRecord): Snapshot {
  // The snapshot worker writes all of these fields.
  const { image, state } = record.manifest as {
    readonly image: { readonly ref: string; readonly manifest_digest: string };
    readonly state: { readonly upper: { readonly size_bytes: number } };
  };
  const rest = {
    schema: 1,
    artifact: 'snapshot',
    scope: 'disk',
    created_at: withoutTrailingZeros(record.createdAt),
    parent: null,
    image: { ref: image.ref, manifest_digest: image.manifest_digest },
    source_sandbox: record.sandboxName,
    state: {
      kind: 'file',
      format: 'raw',
      fstype: 'ext4',
      upper: {
        file: 'disk',
        size_bytes: state.upper.size_bytes,
        integrity: { algorithm: 'sha256', digest: record.digest },
      },
    },
  };
  const start = JSON.stringify(rest).slice(0, -1);
  const canonical = `${start},"labels":${sortedObject(record.labels)},"extensions":{},"requires":[]}`;
  return {
    ...toView(record),
    digest: `sha256:${createHash('sha256').update(canonical).digest('hex')}`,
    manifest: { ...rest, labels: record.labels, extensions: {}, requires: [] },
  };
}

/** Written as text, because JavaScript objects reorder keys that are numbers. */
function sortedObject(labels: Readonly<Record<string, string>>): string {
  const entries = Object.entries(labels).toSorted(([one], [other]) =>
    Buffer.compare(Buffer.from(one), Buffer.from(other)),
  );
  return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`;
}

function withoutTrailingZeros(time: string): string {
  return new Date(time).toISOString().replace(/\.?0+Z$/, 'Z');
}
