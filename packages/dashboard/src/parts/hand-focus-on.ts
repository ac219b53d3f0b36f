/**
 * For who works with the keyboard, before something goes away: when what has it then goes along, they go on from the table that it
 * was in; the last row takes that along too, and then from the page.
 */
export function handFocusOn(leaving: Element | null): void {
  const table = leaving?.closest<HTMLElement>('.table-room');
  const page = leaving?.closest('main');
  // By then it is gone.
  queueMicrotask(() => {
    if (document.activeElement === document.body) (table?.isConnected === true ? table : page)?.focus();
  });
}
