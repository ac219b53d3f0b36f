import type { Client } from '@svc/sdk';

const PAGE = 100;

/** The id of the first of these snapshots that is there. */
export async function findSnapshot(
  client: Client,
  names: readonly (string | undefined)[],
): Promise<string | undefined> {
  const wanted = names.filter((name) => name !== undefined);
  if (wanted.length === 0) return undefined;
  const idOfName = new Map<string, string>();
  for (let place: { readonly cursor?: string } = {}; ;) {
    const page = await client.call('snapshots.list', { query: { limit: PAGE, ...place } });
    for (const { name, id } of page.data) idOfName.set(name, id);
    if (page.next_cursor === null) break;
    place = { cursor: page.next_cursor };
  }
  return wanted.map((name) => idOfName.get(name)).find((id) => id !== undefined);
}
