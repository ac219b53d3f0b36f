import type { ButtonHTMLAttributes } from 'react';
import { Icon, type IconName } from './Icon.tsx';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  readonly look?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly icon?: IconName;
  /** The action is running: the button is disabled. */
  readonly isBusy?: boolean;
};

export function Button({
  look = 'plain',
  icon,
  isBusy = false,
  children,
  disabled,
  type = 'button',
  ...rest
}: ButtonProps) {
  return (
    // oxlint-disable-next-line react/button-has-type -- It has one: `button` unless another is given.
    <button
      {...rest}
      type={type}
      className={`button ${look}`}
      disabled={disabled === true || isBusy}
      aria-busy={isBusy}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children === undefined ? null : <span>{children}</span>}
    </button>
  );
}
