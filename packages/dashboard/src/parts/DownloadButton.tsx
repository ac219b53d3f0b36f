import { useEffect, useRef, useState } from 'react';
import { Button } from './Button.tsx';
import { formatBytes } from './format-amount.ts';
import { saveStream } from './save-stream.ts';
import { showToast } from './toast-list.ts';

/** A day, because the default time limit of the client is too short for large files. */
const DOWNLOAD_MS = 24 * 60 * 60_000;

interface DownloadButtonProps {
  /** The path of the file as text; its last part is the name of the saved file. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly read: (options: {
    readonly signal: AbortSignal;
    readonly timeoutMs: number;
  }) => Promise<AsyncIterable<Uint8Array>> | AsyncIterable<Uint8Array>;
}

/** Downloads a file; leaving the page or cancelling ends the download. */
export function DownloadButton({ path, sizeBytes, read }: DownloadButtonProps) {
  const download = useRef<AbortController>(null);
  const [receivedBytes, setReceived] = useState<number | null>(null);
  useEffect(() => () => download.current?.abort(), []);
  const start = async (): Promise<void> => {
    const { signal } = (download.current = new AbortController());
    setReceived(0);
    try {
      const content = await read({ signal, timeoutMs: DOWNLOAD_MS });
      await saveStream(path.slice(path.lastIndexOf('/') + 1), content, setReceived);
    } catch (error) {
      if (!signal.aborted) showToast(`${path} could not be downloaded`, error);
    }
    setReceived(null);
  };
  if (receivedBytes === null)
    return (
      <Button
        look="quiet"
        icon="download"
        aria-label={`Download ${path}`}
        title="Download"
        onClick={() => void start()}
      />
    );
  return (
    <>
      <span className="hint">
        {formatBytes(receivedBytes)} of {formatBytes(sizeBytes)}
      </span>
      <Button
        look="quiet"
        icon="cross"
        aria-label={`Cancel the download of ${path}`}
        title="Cancel the download"
        onClick={() => download.current?.abort()}
      />
    </>
  );
}
