import { useState, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { ConfirmDialog } from './Dialog.tsx';

interface RemoveButtonProps<Input> {
  /** Says what is removed, also to who sees only the picture. */
  readonly label: string;
  readonly question: string;
  /** What happens, and what does not come back. */
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

/** A button of a row that asks before it destroys. */
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
