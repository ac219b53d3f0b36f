import { useSyncExternalStore } from 'react';

export interface Toast {
  readonly id: number;
  readonly text: string;
  /** A failure stays until it is closed. */
  readonly error?: unknown;
}

const SHOWN_MS = 4000;

let toasts: readonly Toast[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

/** Shows a short message in a corner; with an error, a failure. */
export function showToast(text: string, error?: unknown): void {
  const toast: Toast = { id: nextId++, text, ...(error === undefined ? {} : { error }) };
  change([...toasts, toast]);
  if (error === undefined) setTimeout(() => closeToast(toast.id), SHOWN_MS);
}

export function closeToast(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
}

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}
