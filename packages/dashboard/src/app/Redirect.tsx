import { useEffect } from 'react';
import { navigate } from '../router/location.ts';

export function Redirect({ to }: { readonly to: string }) {
  useEffect(() => navigate(to, { replace: true }), [to]);
  return null;
}
