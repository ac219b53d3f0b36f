import type { ReactNode } from 'react';
import { Button } from './Button.tsx';
import { CodeBlock } from './CodeBlock.tsx';
import { Dialog } from './Dialog.tsx';

const KEEP = 'This is shown only now. Keep it where only you can read it.';

interface OnceDialogProps {
  readonly title: string;
  readonly label: string;
  readonly secret: string;
  /** What to do with it. */
  readonly advice?: ReactNode;
  /** The label of the close button. */
  readonly done?: string;
  /** How it is used. */
  readonly children?: ReactNode;
  readonly onClose: () => void;
}

/** Shows a secret once: the server does not keep it. */
export function OnceDialog({
  title,
  label,
  secret,
  advice = KEEP,
  done = 'I have it',
  children,
  onClose,
}: OnceDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="panel-body stack">
        <p>{advice}</p>
        <CodeBlock label={label} text={secret} />
        {children}
      </div>
      <footer className="dialog-foot">
        <Button look="primary" onClick={onClose}>
          {done}
        </Button>
      </footer>
    </Dialog>
  );
}
