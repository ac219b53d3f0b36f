import { useState } from 'react';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CodeBlock } from '../../parts/CodeBlock.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { QrCode } from '../../parts/QrCode.tsx';

/** A code of an authenticator app beside the password. */
export function SecondFactor() {
  const { data, error } = useCall('secondFactor.get', {});
  const [open, setOpen] = useState<'on' | 'off' | null>(null);
  const close = (): void => setOpen(null);
  return (
    <Panel title="Second factor" hint="A code from an authenticator app, beside the password">
      {error === null ? null : <Failure error={error} />}
      {data === undefined ? (
        <Loading rows={1} />
      ) : (
        <>
          <p>{data.is_on ? `It is on. Recovery codes left: ${data.recovery_codes_left}.` : 'It is off.'}</p>
          <div className="actions">
            <Button onClick={() => setOpen(data.is_on ? 'off' : 'on')}>
              {data.is_on ? 'Turn it off' : 'Turn it on'}
            </Button>
          </div>
        </>
      )}
      {open === 'on' ? <TurnOn onClose={close} /> : null}
      {open === 'off' ? <TurnOff onClose={close} /> : null}
    </Panel>
  );
}

function TurnOn({ onClose }: { readonly onClose: () => void }) {
  const [code, setCode] = useState('');
  const begin = useAction('secondFactor.begin');
  const confirm = useAction('secondFactor.confirm');
  const recovery = confirm.data?.recovery_codes;
  if (recovery !== undefined && recovery !== null)
    return (
      <OnceDialog
        title="The second factor is on"
        label="Recovery codes"
        secret={recovery.join('\n')}
        onClose={onClose}
      >
        <p className="hint">Each signs you in once, if you do not have the device with the app.</p>
      </OnceDialog>
    );
  const uri = begin.data?.uri ?? null;
  if (uri === null)
    return (
      <FormDialog
        title="Turn on the second factor"
        action="Show the QR code"
        isBusy={begin.isPending}
        error={begin.error}
        onSubmit={() => begin.mutate({})}
        onClose={onClose}
      >
        <p>You need an authenticator app on your phone: any that shows codes of six digits works.</p>
      </FormDialog>
    );
  return (
    <FormDialog
      title="Turn on the second factor"
      action="Turn it on"
      isBusy={confirm.isPending}
      error={confirm.error}
      onSubmit={() => confirm.mutate({ body: { code: code.trim() } })}
      onClose={onClose}
    >
      <p>Scan this with your authenticator app, or type the secret into it.</p>
      <QrCode label="QR code with the secret" text={uri} />
      <CodeBlock label="Secret" text={new URL(uri).searchParams.get('secret') ?? ''} />
      <TextField
        label="Code from the app"
        field="code"
        inputMode="numeric"
        autoComplete="one-time-code"
        required
        value={code}
        onChange={setCode}
      />
    </FormDialog>
  );
}

function TurnOff({ onClose }: { readonly onClose: () => void }) {
  const [code, setCode] = useState('');
  const remove = useAction('secondFactor.remove', { onDone: onClose });
  return (
    <FormDialog
      title="Turn off the second factor"
      action="Turn it off"
      isBusy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate({ body: { code: code.trim() } })}
      onClose={onClose}
    >
      <TextField
        label="Code from the app, or a recovery code"
        field="code"
        required
        value={code}
        onChange={setCode}
      />
    </FormDialog>
  );
}
