import { Button } from './Button.tsx';
import { Failure } from './Failure.tsx';
import { closeToast, useToasts } from './toast-list.ts';

export function Toasts() {
  const toasts = useToasts();
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text, error }) => (
        <div key={id} className={error === undefined ? 'toast' : 'toast bad'}>
          <div>
            <strong>{text}</strong>
            {error === undefined ? null : <Failure error={error} />}
          </div>
          <Button look="quiet" icon="cross" aria-label="Close" onClick={() => closeToast(id)} />
        </div>
      ))}
    </div>
  );
}
