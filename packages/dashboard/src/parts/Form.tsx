import {
  createContext,
  useContext,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type ReactNode,
} from 'react';
import { explainError, fieldOf } from '../api/explain-error.ts';
import { Failure } from './Failure.tsx';
import { isPartOf } from './is-part-of.ts';

interface FormState {
  readonly error: unknown;
  /** The API's names of the fields that have an input. */
  readonly fields: Set<string>;
}

const FormContext = createContext<FormState>({ error: null, fields: new Set() });

interface FormProps {
  readonly className?: string;
  /** The error of the last submit; null: none. */
  readonly error: unknown;
  readonly onSubmit: () => void;
  readonly children: ReactNode;
}

/**
 * The error of a field is shown at its input, which gets the focus; other errors are shown by `FormFailure`.
 */
export function Form({ className = 'stack', error, onSubmit, children }: FormProps) {
  const element = useRef<HTMLFormElement>(null);
  const [fields] = useState(() => new Set<string>());
  useEffect(() => {
    if (error !== null) element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [error]);
  return (
    <form
      ref={element}
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <FormContext value={{ error, fields }}>{children}</FormContext>
    </form>
  );
}

/** Shows a failure that no input of the form shows. */
export function FormFailure() {
  const { error, fields } = useContext(FormContext);
  const named = fieldOf(error);
  if (error === null || error === undefined) return null;
  if (named !== undefined && [...fields].some((field) => isPartOf(named, field))) return null;
  return <Failure error={error} />;
}

/** The server's error about the field of an input; undefined: none. */
export function useProblem(field: string | undefined): ReactNode {
  const { error, fields } = useContext(FormContext);
  useLayoutEffect(() => {
    if (field === undefined) return undefined;
    fields.add(field);
    return () => void fields.delete(field);
  }, [field, fields]);
  const named = fieldOf(error);
  if (field === undefined || named === undefined || !isPartOf(named, field)) return undefined;
  const { code, message } = explainError(error);
  return (
    <>
      <code>{code}</code> {message}
    </>
  );
}
