import type { ReactNode } from 'react';
import { Button } from './Button.tsx';
import { CodeBlock } from './CodeBlock.tsx';
import { Dialog } from './Dialog.tsx';

const KEEP = 'Keep it where only you can read it.';

interface OnceDialogProps {
  readonly title: string;
  readonly label: string;
  readonly secret: string;
  /** What to do with it. */
  readonly advice?: ReactNode;
  /** How it is used. */
  readonly children?: ReactNode;
  readonly onClose: () => void;
}

/** A secret that the server does not know any more once this is closed. */
export function OnceDialog({ title, label, secret, advice = KEEP, children, onClose }: OnceDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="panel-body stack">
        <p>This is shown only now. {advice}</p>
        <CodeBlock label={label} text={secret} />
        {children}
      </div>
      <footer className="dialog-foot">
        <Button look="primary" onClick={onClose}>
          I have it
        </Button>
      </footer>
    </Dialog>
  );
}
