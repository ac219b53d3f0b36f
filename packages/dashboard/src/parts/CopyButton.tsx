import { useEffect, useState } from 'react';
import { Button } from './Button.tsx';

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <Button
      look="quiet"
      icon={isCopied ? 'check' : 'copy'}
      aria-label={label}
      title={label}
      onClick={() => void copy()}
    />
  );
}
