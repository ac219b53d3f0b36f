import { Button } from '../../parts/Button.tsx';
import { Dialog } from '../../parts/Dialog.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';

interface NewSecretProps {
  /** Null: the answer was lost on the way, and a repeated answer holds no secret. */
  readonly secret: string | null;
  readonly onClose: () => void;
}

/** Shows the signing secret, once. */
export function NewSecret({ secret, onClose }: NewSecretProps) {
  if (secret !== null)
    return (
      <OnceDialog title="The secret of the webhook" label="Secret" secret={secret} onClose={onClose}>
        <p className="hint">
          The receiver checks with it that a message is from here: <code>verifyWebhook</code> of the SDK, or
          any library for Standard Webhooks.
        </p>
      </OnceDialog>
    );
  return (
    <Dialog title="The secret was lost" onClose={onClose}>
      <p className="panel-body">
        The webhook was created, but its secret was lost on the way here. Create a new secret on the page of
        the webhook.
      </p>
      <footer className="dialog-foot">
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      </footer>
    </Dialog>
  );
}
