/**
 * Puts a text into the clipboard. Over plain HTTP browsers give scripts none: there it is selected beside `place` and copied as a
 * person would. Beside it, because a dialog takes the keyboard from what is outside. @throws Error when the browser refuses
 */
export async function copyText(text: string, place: HTMLElement): Promise<void> {
  // Undefined over plain HTTP, although its type does not say so.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) return await clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.className = 'visually-hidden';
  place.after(area);
  try {
    area.select();
    // oxlint-disable-next-line typescript/no-deprecated -- The one way that there is over plain HTTP.
    if (!document.execCommand('copy')) throw new Error('the browser refused to copy');
  } finally {
    area.remove();
    place.focus();
  }
}
