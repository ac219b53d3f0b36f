import type { CodeRunResult } from '@svc/sdk';
import { useEffect, useMemo, useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { formatNumber } from '../../parts/format-amount.ts';
import { saveFile } from '../../parts/save-file.ts';

/** The endings that files of these types have; the first type that a result has is drawn. */
const ENDINGS = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
} as const;
type RasterType = keyof typeof ENDINGS;

/** Pixels. A PNG of 49 kB may decode to 20,000 by 20,000 pixels, which take 1.6 GB of memory. */
const MAX_SIDE = 8192;

export function rasterTypeOf({ data }: CodeRunResult): RasterType | undefined {
  // The keys of the table.
  return (Object.keys(ENDINGS) as RasterType[]).find((type) => typeof data[type] === 'string');
}

interface RasterPictureProps {
  readonly result: CodeRunResult;
  readonly type: RasterType;
  readonly number: number;
}

/** Draws a picture that code showed, or offers it as a download when it is too large or no picture. */
export function RasterPicture({ result, type, number }: RasterPictureProps) {
  const address = useMemo(() => `data:${type};base64,${String(result.data[type])}`, [result, type]);
  const size = usePictureSize(address);
  if (size === null) return null;
  const isPicture = size.width > 0;
  if (isPicture && Math.max(size.width, size.height) <= MAX_SIDE)
    return <img src={address} alt={result.text ?? `Result ${number}`} />;
  const save = (): void =>
    saveFile(`result-${number}.${ENDINGS[type]}`, [new Uint8Array(result.bytes(type) ?? [])]);
  const pixels = `${formatNumber(size.width)} × ${formatNumber(size.height)} pixels`;
  return (
    <>
      <p className="hint">
        {isPicture
          ? `This picture of ${pixels} is not drawn: the limit is ${formatNumber(MAX_SIDE)} in each direction.`
          : `This picture is not drawn: the browser cannot read it as ${type}.`}
      </p>
      <Button icon="download" onClick={save}>
        Save the picture
      </Button>
    </>
  );
}

interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** Null: not known yet. Browsers read the size from the header and decode the pixels only when they draw them. */
function usePictureSize(address: string): PictureSize | null {
  const [size, setSize] = useState<PictureSize | null>(null);
  useEffect(() => {
    const image = new Image();
    image.onload = () => setSize({ width: image.naturalWidth, height: image.naturalHeight });
    image.onerror = () => setSize({ width: 0, height: 0 });
    image.src = address;
    return () => {
      image.onload = null;
      image.onerror = null;
    };
  }, [address]);
  return size;
}
