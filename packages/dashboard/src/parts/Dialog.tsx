import { useLayoutEffect, useRef, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { Failure } from './Failure.tsx';
import { restoreFocus } from './restore-focus.ts';
interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The browser's modal dialog, which traps the focus and closes with Escape. Render it while it is open. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  // Closed before it is removed from the page: only then the browser returns the focus.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      // The element that opened it may be gone: a deleted row, the button of an empty list.
      restoreFocus(dialog);
    };
  }, []);
  return (
    <dialog ref={element} onCancel={onClose} aria-label={title}>
      <header className="panel-head">
        <h2>{title}</h2>
        <Button look="quiet" icon="cross" aria-label="Close" onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** The effect, and what cannot be undone. */
  readonly children: ReactNode;
  readonly action: string;
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Confirms a destructive action. */
export function ConfirmDialog({ title, children, action, isBusy, error, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="panel-body">{children}</div>
      {error === null || error === undefined ? null : <Failure error={error} />}
      <footer className="dialog-foot">
        <Button onClick={onClose}>Keep it</Button>
        <Button look="danger" isBusy={isBusy} onClick={onConfirm}>
          {action}
        </Button>
      </footer>
    </Dialog>
  );
}
