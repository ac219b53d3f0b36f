import type { ReactNode } from 'react';
import { Button } from './Button.tsx';
import { Dialog } from './Dialog.tsx';
import { Form, FormFailure } from './Form.tsx';

interface FormDialogProps {
  readonly title: string;
  /** The label of the submit button. */
  readonly action: string;
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog with a few fields and a submit button. */
export function FormDialog({ title, action, isBusy, error, onSubmit, onClose, children }: FormDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form className="" error={error} onSubmit={onSubmit}>
        <div className="panel-body stack">{children}</div>
        <FormFailure />
        <footer className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={isBusy}>
            {action}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
