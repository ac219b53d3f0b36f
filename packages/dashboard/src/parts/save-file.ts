/** Hands the browser a file to keep. SAFETY: as bytes without a type, unless given, so that no page is opened in our name. */
export function saveFile(
  name: string,
  content: readonly BlobPart[],
  type = 'application/octet-stream',
): void {
  const url = URL.createObjectURL(new Blob([...content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun with it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
