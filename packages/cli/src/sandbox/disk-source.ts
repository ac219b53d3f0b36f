import type { Client, CreateOptions } from '@svc/sdk';
import { UsageError } from '../usage-error.ts';

/** The source of a new sandbox's disk: an image, or a snapshot by its name. */
export async function diskSource(
  client: Client,
  image: string,
  snapshot: string | undefined,
): Promise<Pick<CreateOptions, 'image' | 'snapshotId'>> {
  if (snapshot === undefined) return { image };
  if (image !== '-')
    throw new UsageError(
      `--snapshot brings its own disk, so there is no image to give, and '${image}' stands in its place\n  try: svc run --snapshot ${snapshot} - COMMAND`,
    );
  return { snapshotId: (await client.call('snapshots.getByName', { params: { name: snapshot } })).id };
}
