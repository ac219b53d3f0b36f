interface Page<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

/** All items of a paged list; the next page is fetched when it is needed. */
export async function* eachItem<Item>(
  readPage: (cursor: { readonly cursor?: string }) => Promise<Page<Item>>,
): AsyncGenerator<Item, void> {
  for (let cursor: { readonly cursor?: string } = {}; ;) {
    const { data, next_cursor: next } = await readPage(cursor);
    yield* data;
    if (next === null) return;
    cursor = { cursor: next };
  }
}
