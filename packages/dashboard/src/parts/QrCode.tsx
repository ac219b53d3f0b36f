import { useMemo } from 'react';
import { encode } from 'uqr';

/** Modules of light around the code, without which readers do not find it. */
const QUIET_ZONE = 4;

/** A text for the camera of another device. Dark on light in every theme: readers expect that. */
export function QrCode({ label, text }: { readonly label: string; readonly text: string }) {
  const { data, size } = useMemo(() => encode(text, { ecc: 'M', border: QUIET_ZONE }), [text]);
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])));
  return (
    <svg
      className="qr-code"
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      role="img"
      aria-label={label}
    >
      <path d={squares.join('')} />
    </svg>
  );
}
