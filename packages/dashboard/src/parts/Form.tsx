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
  /** What the inputs of the form are for, as the API names it. */
  readonly fields: Set<string>;
}

const FormContext = createContext<FormState>({ error: null, fields: new Set() });

interface FormProps {
  readonly className?: string;
  /** Of the last time that it was sent; null: none. */
  readonly error: unknown;
  readonly onSubmit: () => void;
  readonly children: ReactNode;
}

/**
 * What is wrong with one field is said beside its input, which gets the keyboard; the rest where `FormFailure` stands.
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

/** A failure that no input of the form shows. */
export function FormFailure() {
  const { error, fields } = useContext(FormContext);
  const named = fieldOf(error);
  if (error === null || error === undefined) return null;
  if (named !== undefined && [...fields].some((field) => isPartOf(named, field))) return null;
  return <Failure error={error} />;
}

/** What the server found wrong with what an input is for; undefined: nothing. */
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
