import { Component, type ReactNode } from 'react';
import { Failure } from '../parts/Failure.tsx';

interface Props {
  readonly children: ReactNode;
}

/** Shows an error that a page throws during rendering. React requires a class for this. */
export class ErrorBoundary extends Component<Props, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <main className="sign-in">
        <Failure error={error} onRetry={() => location.reload()} />
      </main>
    );
  }
}
