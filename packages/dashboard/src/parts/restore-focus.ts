/**
 * Call it before removing elements: when the focused element is removed too, the focus moves to its table, or to the page when the
 * table is removed with its last row.
 */
export function restoreFocus(leaving: Element | null): void {
  const table = leaving?.closest<HTMLElement>('.table-room');
  const page = leaving?.closest('main');
  // The element is removed by then.
  queueMicrotask(() => {
    if (document.activeElement === document.body) (table?.isConnected === true ? table : page)?.focus();
  });
}
