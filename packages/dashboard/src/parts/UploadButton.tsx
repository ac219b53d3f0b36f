import { useRef, useState } from 'react';
import { Button } from './Button.tsx';
import { showToast } from './toast-list.ts';

interface UploadButtonProps {
  readonly look?: 'primary' | 'plain';
  /** Sends one; what it throws is told, and the next one is sent. */
  readonly send: (file: File) => Promise<unknown>;
  readonly onDone?: () => void;
}

/** Chooses files and sends them one after the other. */
export function UploadButton({ look = 'plain', send, onDone }: UploadButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const sendAll = async (files: readonly File[]): Promise<void> => {
    setBusy(true);
    for (const file of files) {
      try {
        await send(file);
        showToast(`${file.name} is uploaded`);
      } catch (error) {
        showToast(`${file.name} was not uploaded`, error);
      }
    }
    setBusy(false);
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
          // Or the same file could not be chosen again, after it failed say.
          event.target.value = '';
          void sendAll(chosen);
        }}
      />
      <Button look={look} icon="upload" isBusy={isBusy} onClick={() => input.current?.click()}>
        Upload
      </Button>
    </>
  );
}
