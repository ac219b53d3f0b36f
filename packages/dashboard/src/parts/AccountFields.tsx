import { TextField } from './Field.tsx';

interface ValueProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The e-mail address of the account. */
export function EmailField({ isFixed = false, ...props }: ValueProps & { readonly isFixed?: boolean }) {
  return (
    <TextField
      label="E-mail address"
      field="email"
      type="text"
      inputMode="email"
      autoComplete="username"
      autoFocus={!isFixed}
      readOnly={isFixed}
      required
      {...props}
    />
  );
}

/** The code of the second factor, where it is the next step. */
export function SecondFactorField(props: ValueProps) {
  return (
    <TextField
      label="Code"
      field="code"
      hint="From your authenticator app, or a recovery code"
      autoComplete="one-time-code"
      autoFocus
      required
      {...props}
    />
  );
}

/** A field for a new password. */
export function NewPasswordField({
  label = 'Password',
  ...rest
}: ValueProps & { readonly label?: string; readonly autoFocus?: boolean }) {
  return (
    <TextField
      label={label}
      field="password"
      hint="At least 10 characters, of any kind"
      type="password"
      autoComplete="new-password"
      minLength={10}
      required
      {...rest}
    />
  );
}
