/** Saves a file through the browser. SAFETY: bytes without a type, unless given, so that it is never opened as a page of our origin. */
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
  // The browser has started the download by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
