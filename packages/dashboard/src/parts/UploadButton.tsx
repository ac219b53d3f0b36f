import { SvcError } from '@svc/sdk';
import { useEffect, useRef, useState } from 'react';
import { Button } from './Button.tsx';
import { formatBytes } from './format-amount.ts';
import { showToast } from './toast-list.ts';

export interface UploadWatch {
  readonly signal: AbortSignal;
  readonly onSent: (sentBytes: number) => void;
}

interface UploadButtonProps {
  readonly look?: 'primary' | 'plain';
  /** Sends one file; an error is shown, and the next file is sent. */
  readonly send: (file: File, watch: UploadWatch) => Promise<unknown>;
  readonly onDone?: () => void;
}

interface Progress {
  readonly file: File;
  readonly sentBytes: number;
  /** Number of files that wait behind this one. */
  readonly waiting: number;
}

/** Uploads the chosen files one after the other; leaving the page or cancelling ends the upload. */
export function UploadButton({ look = 'plain', send, onDone }: UploadButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  const upload = useRef<AbortController>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  useEffect(() => () => upload.current?.abort(), []);
  const sendAll = async (files: readonly File[]): Promise<void> => {
    const { signal } = (upload.current = new AbortController());
    for (const [index, file] of files.entries()) {
      const show = (sentBytes: number) => setProgress({ file, sentBytes, waiting: files.length - index - 1 });
      show(0);
      await sendOne(send, file, { signal, onSent: show });
      if (signal.aborted) break;
    }
    setProgress(null);
    onDone?.();
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => {
          const chosen = [...(event.target.files ?? [])];
          // Cleared, so that the same file can be chosen again, after a failure for example.
          event.target.value = '';
          if (chosen.length > 0) void sendAll(chosen);
        }}
      />
      {progress === null ? (
        <Button look={look} icon="upload" onClick={() => input.current?.click()}>
          Upload
        </Button>
      ) : (
        <Sending progress={progress} onCancel={() => upload.current?.abort()} />
      )}
    </>
  );
}

async function sendOne(send: UploadButtonProps['send'], file: File, watch: UploadWatch): Promise<void> {
  try {
    await send(file, watch);
    showToast(`${file.name} is uploaded`);
  } catch (error) {
    if (watch.signal.aborted && (SvcError.is(error, 'aborted') || !SvcError.is(error)))
      showToast(`${file.name} was cancelled; nothing of it was kept`);
    else showToast(`${file.name} was not uploaded`, error);
  }
}

interface SendingProps {
  readonly progress: Progress;
  readonly onCancel: () => void;
}

function Sending({ progress: { file, sentBytes, waiting }, onCancel }: SendingProps) {
  const more = waiting === 0 ? '' : `, then ${waiting} more`;
  return (
    <div className="sending">
      <div>
        <p className="hint">
          <span className="sending-name">{file.name}</span> {formatBytes(sentBytes)} of{' '}
          {formatBytes(file.size)}
          {more}
        </p>
        <progress
          className="good"
          max={Math.max(file.size, 1)}
          value={sentBytes}
          aria-label={`Upload of ${file.name}`}
        />
      </div>
      <Button onClick={onCancel}>Cancel</Button>
    </div>
  );
}
