import { useEffect, useState } from 'react';
import { Button } from './Button.tsx';
import { copyText } from './copy-text.ts';
import { showToast } from './toast-list.ts';

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async (button: HTMLElement): Promise<void> => {
    try {
      await copyText(text, button);
      setCopied(true);
    } catch (error) {
      showToast('It was not copied: select it, and press Ctrl-C', error);
    }
  };
  return (
    <Button
      look="quiet"
      icon={isCopied ? 'check' : 'copy'}
      aria-label={label}
      title={label}
      onClick={({ currentTarget }) => void copy(currentTarget)}
    />
  );
}
