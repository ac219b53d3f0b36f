/**
 * Copies a text to the clipboard. Over plain HTTP there is no clipboard API: there the text is selected in an element beside `place`
 * and copied by a command. Beside `place`, because a dialog keeps the focus inside. @throws Error when the browser refuses
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
