import { useLayoutEffect, useRef, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { Failure } from './Failure.tsx';
import { handFocusOn } from './hand-focus-on.ts';
interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Over the page, with the keyboard kept inside and Escape to leave: the browser's own. Render it while it is open. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  // While it is still part of the page: only then closing it gives the keyboard back to what had it before.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      // What opened it may be gone, or go with it: the row that was deleted, the button of a list that was empty.
      handFocusOn(dialog);
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
  /** What happens, and what cannot be undone. */
  readonly children: ReactNode;
  readonly action: string;
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before something is destroyed. */
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
