import { useState, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { ConfirmDialog } from './Dialog.tsx';

interface RemoveButtonProps<Input> {
  /** The accessible name, which says what is removed. */
  readonly label: string;
  readonly question: string;
  /** The effect, and what cannot be undone. */
  readonly children: ReactNode;
  readonly verb: string;
  readonly input: Input;
  readonly action: {
    readonly mutate: (input: Input, options: { readonly onSuccess: () => void }) => void;
    readonly isPending: boolean;
    readonly error: unknown;
    readonly reset: () => void;
  };
}

/** A delete button of a row, with a confirmation. */
export function RemoveButton<Input>(props: RemoveButtonProps<Input>) {
  const { label, question, children, verb, input, action } = props;
  const [isAsking, setAsking] = useState(false);
  const close = (): void => {
    action.reset();
    setAsking(false);
  };
  return (
    <>
      <Button look="quiet" icon="trash" aria-label={label} title={label} onClick={() => setAsking(true)} />
      {isAsking ? (
        <ConfirmDialog
          title={question}
          action={verb}
          isBusy={action.isPending}
          error={action.error}
          onConfirm={() => action.mutate(input, { onSuccess: close })}
          onClose={close}
        >
          {children}
        </ConfirmDialog>
      ) : null}
    </>
  );
}
